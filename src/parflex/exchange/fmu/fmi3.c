/* The functions of FMI 3.0. */
#include <stdbool.h>
#if defined _WIN32
#define SHOWN __declspec(dllexport)
#else
#define SHOWN __attribute__((visibility("default")))
#endif
typedef enum { fine_, warning_, discard_, error_, fatal_ } fmi3Status;
typedef void (*logger_t)(void *, fmi3Status, const char *, const char *);
typedef struct {
  Model model;
  logger_t logger;
  void *environment;
} Unit;
#define MODEL (&((Unit *)c)->model)
#define SAY(ok) ((ok) ? fine_ : error_)

static void told3(void *unit, const char *name, int severity, const char *text) {
  Unit *u = (Unit *)unit;
  (void)name;
  if (u->logger) u->logger(u->environment, (fmi3Status)severity, severity > 1 ? "logStatusError" : "logStatusWarning", text);
}

static void *unit_of(int model_exchange, const char *name, const char *token, void *environment, logger_t logger) {
  if (model_exchange != KIND_ME) {
    if (logger) logger(environment, error_, "logStatusError", KIND_ME ? "the unit was exported for model exchange alone"
                                                                      : "the unit was exported for co-simulation alone");
    return NULL;
  }
  if (!token || strcmp(token, TOKEN) != 0) {
    if (logger) logger(environment, error_, "logStatusError", "the instantiation token is that of another model");
    return NULL;
  }
  Unit *u = (Unit *)calloc(1, sizeof(Unit));
  if (!u) return NULL;
  u->logger = logger;
  u->environment = environment;
  make(&u->model, name, u, told3);
  return u;
}

SHOWN const char *fmi3GetVersion(void) { return "3.0"; }
SHOWN fmi3Status fmi3SetDebugLogging(void *c, bool on, size_t n, const char *const k[]) {
  return (void)c, (void)on, (void)n, (void)k, fine_;
}
SHOWN void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *place, bool visible, bool logging,
                                         void *environment, logger_t logger) {
  (void)place, (void)visible, (void)logging;
  return unit_of(1, name, token, environment, logger);
}
SHOWN void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *place, bool visible, bool logging,
                                        bool events, bool early, const unsigned v[], size_t n, void *environment,
                                        logger_t logger, void *update) {
  (void)place, (void)visible, (void)logging, (void)events, (void)early, (void)v, (void)n, (void)update;
  return unit_of(0, name, token, environment, logger);
}
SHOWN void *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *place, bool visible,
                                              bool logging, void *environment, logger_t logger, void *a, void *b,
                                              void *d) {
  (void)name, (void)token, (void)place, (void)visible, (void)logging, (void)environment, (void)logger;
  (void)a, (void)b, (void)d;
  return NULL;
}
SHOWN void fmi3FreeInstance(void *c) { free(c); }
SHOWN fmi3Status fmi3EnterInitializationMode(void *c, bool toleranced, double tolerance, double start, bool stops,
                                             double stop) {
  (void)toleranced, (void)tolerance, (void)stops, (void)stop;
  set_start_time(MODEL, start);
  return fine_;
}
SHOWN fmi3Status fmi3ExitInitializationMode(void *c) {
  return SAY(begin_run(MODEL));
}
SHOWN fmi3Status fmi3EnterEventMode(void *c) { return (void)c, fine_; }
SHOWN fmi3Status fmi3Terminate(void *c) { return (void)c, fine_; }
SHOWN fmi3Status fmi3Reset(void *c) {
  again(MODEL);
  return fine_;
}
SHOWN fmi3Status fmi3GetFloat64(void *c, const unsigned v[], size_t n, double r[], size_t m) {
  int ok = n == m;
  for (size_t k = 0; k < n && k < m; ++k) ok = read_value(MODEL, v[k], r + k) && ok;
  return SAY(ok);
}
SHOWN fmi3Status fmi3SetFloat64(void *c, const unsigned v[], size_t n, const double r[], size_t m) {
  int ok = n == m;
  for (size_t k = 0; k < n && k < m; ++k) ok = write_value(MODEL, v[k], r[k]) && ok;
  return SAY(ok);
}
#define NO_SUCH(word, kind)                                                                                      \
  SHOWN fmi3Status fmi3Get##word(void *c, const unsigned v[], size_t n, kind r[], size_t m) {                    \
    return (void)c, (void)v, (void)r, (void)m, n ? error_ : fine_;                                               \
  }                                                                                                              \
  SHOWN fmi3Status fmi3Set##word(void *c, const unsigned v[], size_t n, const kind r[], size_t m) {              \
    return (void)c, (void)v, (void)r, (void)m, n ? error_ : fine_;                                               \
  }
typedef const char *text_t;
NO_SUCH(Float32, float)
NO_SUCH(Int8, int8_t)
NO_SUCH(UInt8, uint8_t)
NO_SUCH(Int16, int16_t)
NO_SUCH(UInt16, uint16_t)
NO_SUCH(Int32, int32_t)
NO_SUCH(UInt32, uint32_t)
NO_SUCH(Int64, int64_t)
NO_SUCH(UInt64, uint64_t)
NO_SUCH(Boolean, bool)
NO_SUCH(String, text_t)
typedef const uint8_t *bytes_t;
SHOWN fmi3Status fmi3GetBinary(void *c, const unsigned v[], size_t n, size_t s[], bytes_t r[], size_t m) {
  return (void)c, (void)v, (void)s, (void)r, (void)m, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3SetBinary(void *c, const unsigned v[], size_t n, const size_t s[], const bytes_t r[], size_t m) {
  return (void)c, (void)v, (void)s, (void)r, (void)m, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3GetClock(void *c, const unsigned v[], size_t n, bool r[]) {
  return (void)c, (void)v, (void)r, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3SetClock(void *c, const unsigned v[], size_t n, const bool r[]) {
  return (void)c, (void)v, (void)r, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3GetNumberOfVariableDependencies(void *c, unsigned v, size_t *n) {
  return (void)c, (void)v, *n = 0, error_;
}
SHOWN fmi3Status fmi3GetVariableDependencies(void *c, unsigned v, size_t a[], unsigned b[], size_t d[], int e[], size_t n) {
  return (void)c, (void)v, (void)a, (void)b, (void)d, (void)e, (void)n, error_;
}
SHOWN fmi3Status fmi3GetFMUState(void *c, void **s) {
  if (!*s) *s = malloc(sizeof(State));
  if (!*s) return error_;
  memcpy(*s, &MODEL->state, sizeof(State));
  return fine_;
}
SHOWN fmi3Status fmi3SetFMUState(void *c, void *s) {
  memcpy(&MODEL->state, s, sizeof(State));
  return fine_;
}
SHOWN fmi3Status fmi3FreeFMUState(void *c, void **s) {
  (void)c;
  free(*s);
  *s = NULL;
  return fine_;
}
SHOWN fmi3Status fmi3SerializedFMUStateSize(void *c, void *s, size_t *n) { return (void)c, (void)s, *n = sizeof(State), fine_; }
SHOWN fmi3Status fmi3SerializeFMUState(void *c, void *s, uint8_t b[], size_t n) {
  (void)c;
  if (n < sizeof(State)) return error_;
  memcpy(b, s, sizeof(State));
  return fine_;
}
SHOWN fmi3Status fmi3DeserializeFMUState(void *c, const uint8_t b[], size_t n, void **s) {
  (void)c;
  if (n != sizeof(State)) return error_;
  *s = malloc(sizeof(State));
  if (!*s) return error_;
  memcpy(*s, b, sizeof(State));
  return fine_;
}
SHOWN fmi3Status fmi3GetDirectionalDerivative(void *c, const unsigned u[], size_t nu, const unsigned k[], size_t nk,
                                              const double dk[], size_t ndk, double du[], size_t ndu) {
  return SAY(nk == ndk && nu == ndu && directional(MODEL, u, nu, k, nk, dk, du));
}
SHOWN fmi3Status fmi3GetAdjointDerivative(void *c, const unsigned u[], size_t nu, const unsigned k[], size_t nk,
                                          const double du[], size_t ndu, double dk[], size_t ndk) {
  (void)c, (void)u, (void)nu, (void)k, (void)nk, (void)du, (void)ndu, (void)dk, (void)ndk;
  return error_;
}
SHOWN fmi3Status fmi3EnterConfigurationMode(void *c) { return (void)c, fine_; }
SHOWN fmi3Status fmi3ExitConfigurationMode(void *c) { return (void)c, fine_; }
#define CLOCKED(name, one, two)                                                                          \
  SHOWN fmi3Status fmi3##name(void *c, const unsigned v[], size_t n, one a[], two b[]) {                 \
    return (void)c, (void)v, (void)a, (void)b, n ? error_ : fine_;                                       \
  }
CLOCKED(GetIntervalDecimal, double, int)
CLOCKED(GetShiftFraction, uint64_t, uint64_t)
CLOCKED(SetIntervalFraction, const uint64_t, const uint64_t)
CLOCKED(SetShiftFraction, const uint64_t, const uint64_t)
SHOWN fmi3Status fmi3GetIntervalFraction(void *c, const unsigned v[], size_t n, uint64_t a[], uint64_t b[], int d[]) {
  return (void)c, (void)v, (void)a, (void)b, (void)d, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3GetShiftDecimal(void *c, const unsigned v[], size_t n, double a[]) {
  return (void)c, (void)v, (void)a, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3SetIntervalDecimal(void *c, const unsigned v[], size_t n, const double a[]) {
  return (void)c, (void)v, (void)a, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3SetShiftDecimal(void *c, const unsigned v[], size_t n, const double a[]) {
  return (void)c, (void)v, (void)a, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3EvaluateDiscreteStates(void *c) { return (void)c, fine_; }
SHOWN fmi3Status fmi3UpdateDiscreteStates(void *c, bool *a, bool *b, bool *d, bool *e, bool *f, double *next) {
  (void)c;
  *a = *b = *d = *e = *f = false;
  *next = 0;
  return fine_;
}
SHOWN fmi3Status fmi3EnterContinuousTimeMode(void *c) { return (void)c, fine_; }
SHOWN fmi3Status fmi3CompletedIntegratorStep(void *c, bool keep, bool *event, bool *terminate) {
  (void)keep;
  *event = *terminate = false;
  return SAY(look(MODEL));
}
SHOWN fmi3Status fmi3SetTime(void *c, double t) {
  set_time(MODEL, t);
  return fine_;
}
SHOWN fmi3Status fmi3SetContinuousStates(void *c, const double x[], size_t n) {
  if (n != STATES) return error_;
  put_states(MODEL, x);
  return fine_;
}
SHOWN fmi3Status fmi3GetContinuousStateDerivatives(void *c, double dx[], size_t n) {
  return SAY(n == STATES && derivatives(MODEL, dx));
}
SHOWN fmi3Status fmi3GetEventIndicators(void *c, double e[], size_t n) { return (void)c, (void)e, n ? error_ : fine_; }
SHOWN fmi3Status fmi3GetContinuousStates(void *c, double x[], size_t n) {
  if (n != STATES) return error_;
  take_states(MODEL, x);
  return fine_;
}
SHOWN fmi3Status fmi3GetNominalsOfContinuousStates(void *c, double x[], size_t n) {
  (void)c;
  for (size_t k = 0; k < n; ++k) x[k] = 1;
  return fine_;
}
SHOWN fmi3Status fmi3GetNumberOfEventIndicators(void *c, size_t *n) { return (void)c, *n = 0, fine_; }
SHOWN fmi3Status fmi3GetNumberOfContinuousStates(void *c, size_t *n) { return (void)c, *n = KIND_ME ? STATES : 0, fine_; }
SHOWN fmi3Status fmi3EnterStepMode(void *c) { return (void)c, fine_; }
SHOWN fmi3Status fmi3GetOutputDerivatives(void *c, const unsigned v[], size_t n, const int32_t o[], double r[], size_t m) {
  return (void)c, (void)v, (void)o, (void)r, (void)m, n ? error_ : fine_;
}
SHOWN fmi3Status fmi3DoStep(void *c, double t, double length, bool keep, bool *event, bool *terminate, bool *early,
                            double *last) {
  (void)keep;
  *event = *terminate = *early = false;
  int ok = do_step(MODEL, t, length);
  *last = MODEL->state.now;
  return SAY(ok);
}
SHOWN fmi3Status fmi3ActivateModelPartition(void *c, unsigned v, double t) { return (void)c, (void)v, (void)t, error_; }
