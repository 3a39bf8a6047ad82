/* The functions of FMI 2.0. */
#if defined _WIN32
#define SHOWN __declspec(dllexport)
#else
#define SHOWN __attribute__((visibility("default")))
#endif
typedef enum { fine_, warning_, discard_, error_, fatal_, pending_ } fmi2Status;
typedef struct {
  void (*logger)(void *, const char *, fmi2Status, const char *, const char *, ...);
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*finished)(void *, fmi2Status);
  void *environment;
} Callbacks;
typedef struct {
  Model model;
  Callbacks callbacks;
} Unit;
typedef struct {
  int new_discrete, terminate, nominals, values, next_defined;
  double next;
} EventInfo;
#define MODEL (&((Unit *)c)->model)
#define SAY(ok) ((ok) ? fine_ : error_)

static void told2(void *unit, const char *name, int severity, const char *text) {
  Unit *u = (Unit *)unit;
  if (u->callbacks.logger)
    u->callbacks.logger(u->callbacks.environment, name, (fmi2Status)severity, severity > 1 ? "logStatusError" : "logStatusWarning",
                        "%s", text);
}

SHOWN const char *fmi2GetTypesPlatform(void) { return "default"; }
SHOWN const char *fmi2GetVersion(void) { return "2.0"; }
SHOWN fmi2Status fmi2SetDebugLogging(void *c, int on, size_t n, const char *const k[]) {
  (void)c, (void)on, (void)n, (void)k;
  return fine_;
}
SHOWN void *fmi2Instantiate(const char *name, int kind, const char *guid, const char *place, const Callbacks *f,
                            int visible, int logging) {
  (void)place, (void)visible, (void)logging;
  if (kind != !KIND_ME) { /* model exchange is 0 */
    if (f && f->logger)
      f->logger(f->environment, name, error_, "logStatusError", "the unit was exported for %s alone",
                KIND_ME ? "model exchange" : "co-simulation");
    return NULL;
  }
  if (!guid || strcmp(guid, TOKEN) != 0) {
    if (f && f->logger) f->logger(f->environment, name, error_, "logStatusError", "the guid is that of another model");
    return NULL;
  }
  Unit *u = (Unit *)calloc(1, sizeof(Unit));
  if (!u) return NULL;
  if (f) u->callbacks = *f;
  make(&u->model, name, u, told2);
  return u;
}
SHOWN void fmi2FreeInstance(void *c) { free(c); }
SHOWN fmi2Status fmi2SetupExperiment(void *c, int toleranced, double tolerance, double start, int stops, double stop) {
  (void)toleranced, (void)tolerance, (void)stops, (void)stop;
  set_start_time(MODEL, start);
  return fine_;
}
SHOWN fmi2Status fmi2EnterInitializationMode(void *c) { return (void)c, fine_; }
SHOWN fmi2Status fmi2ExitInitializationMode(void *c) {
  return SAY(begin_run(MODEL));
}
SHOWN fmi2Status fmi2Terminate(void *c) { return (void)c, fine_; }
SHOWN fmi2Status fmi2Reset(void *c) {
  again(MODEL);
  return fine_;
}
SHOWN fmi2Status fmi2GetReal(void *c, const unsigned v[], size_t n, double r[]) {
  int ok = 1;
  for (size_t k = 0; k < n; ++k) ok = read_value(MODEL, v[k], r + k) && ok;
  return SAY(ok);
}
SHOWN fmi2Status fmi2SetReal(void *c, const unsigned v[], size_t n, const double r[]) {
  int ok = 1;
  for (size_t k = 0; k < n; ++k) ok = write_value(MODEL, v[k], r[k]) && ok;
  return SAY(ok);
}
#define NO_SUCH(word, kind)                                                                          \
  SHOWN fmi2Status fmi2Get##word(void *c, const unsigned v[], size_t n, kind r[]) {                  \
    return (void)c, (void)v, (void)r, n ? error_ : fine_;                                            \
  }                                                                                                  \
  SHOWN fmi2Status fmi2Set##word(void *c, const unsigned v[], size_t n, const kind r[]) {            \
    return (void)c, (void)v, (void)r, n ? error_ : fine_;                                            \
  }
typedef const char *text_t;
NO_SUCH(Integer, int)
NO_SUCH(Boolean, int)
NO_SUCH(String, text_t)
SHOWN fmi2Status fmi2GetFMUstate(void *c, void **s) {
  if (!*s) *s = malloc(sizeof(State));
  if (!*s) return error_;
  memcpy(*s, &MODEL->state, sizeof(State));
  return fine_;
}
SHOWN fmi2Status fmi2SetFMUstate(void *c, void *s) {
  memcpy(&MODEL->state, s, sizeof(State));
  return fine_;
}
SHOWN fmi2Status fmi2FreeFMUstate(void *c, void **s) {
  (void)c;
  free(*s);
  *s = NULL;
  return fine_;
}
SHOWN fmi2Status fmi2SerializedFMUstateSize(void *c, void *s, size_t *n) {
  (void)c, (void)s;
  *n = sizeof(State);
  return fine_;
}
SHOWN fmi2Status fmi2SerializeFMUstate(void *c, void *s, char b[], size_t n) {
  (void)c;
  if (n < sizeof(State)) return error_;
  memcpy(b, s, sizeof(State));
  return fine_;
}
SHOWN fmi2Status fmi2DeSerializeFMUstate(void *c, const char b[], size_t n, void **s) {
  (void)c;
  if (n != sizeof(State)) return error_;
  *s = malloc(sizeof(State));
  if (!*s) return error_;
  memcpy(*s, b, sizeof(State));
  return fine_;
}
SHOWN fmi2Status fmi2GetDirectionalDerivative(void *c, const unsigned u[], size_t nu, const unsigned k[], size_t nk,
                                              const double dk[], double du[]) {
  return SAY(directional(MODEL, u, nu, k, nk, dk, du));
}
SHOWN fmi2Status fmi2SetRealInputDerivatives(void *c, const unsigned v[], size_t n, const int o[], const double r[]) {
  (void)c, (void)v, (void)o, (void)r;
  return n ? error_ : fine_;
}
SHOWN fmi2Status fmi2GetRealOutputDerivatives(void *c, const unsigned v[], size_t n, const int o[], double r[]) {
  (void)c, (void)v, (void)o, (void)r;
  return n ? error_ : fine_;
}
SHOWN fmi2Status fmi2DoStep(void *c, double t, double length, int keep) {
  (void)keep;
  return SAY(do_step(MODEL, t, length));
}
SHOWN fmi2Status fmi2CancelStep(void *c) { return (void)c, error_; }
SHOWN fmi2Status fmi2GetStatus(void *c, int k, fmi2Status *s) { return (void)c, (void)k, (void)s, discard_; }
SHOWN fmi2Status fmi2GetRealStatus(void *c, int k, double *s) {
  (void)k;
  *s = MODEL->state.now;
  return fine_;
}
SHOWN fmi2Status fmi2GetIntegerStatus(void *c, int k, int *s) { return (void)c, (void)k, (void)s, discard_; }
SHOWN fmi2Status fmi2GetBooleanStatus(void *c, int k, int *s) { return (void)c, (void)k, (void)s, discard_; }
SHOWN fmi2Status fmi2GetStringStatus(void *c, int k, const char **s) { return (void)c, (void)k, (void)s, discard_; }
SHOWN fmi2Status fmi2EnterEventMode(void *c) { return (void)c, fine_; }
SHOWN fmi2Status fmi2NewDiscreteStates(void *c, EventInfo *e) {
  (void)c;
  memset(e, 0, sizeof *e);
  return fine_;
}
SHOWN fmi2Status fmi2EnterContinuousTimeMode(void *c) { return (void)c, fine_; }
SHOWN fmi2Status fmi2CompletedIntegratorStep(void *c, int keep, int *event, int *terminate) {
  (void)keep;
  *event = *terminate = 0;
  return SAY(look(MODEL));
}
SHOWN fmi2Status fmi2SetTime(void *c, double t) {
  set_time(MODEL, t);
  return fine_;
}
SHOWN fmi2Status fmi2SetContinuousStates(void *c, const double x[], size_t n) {
  if (n != STATES) return error_;
  put_states(MODEL, x);
  return fine_;
}
SHOWN fmi2Status fmi2GetDerivatives(void *c, double dx[], size_t n) { return SAY(n == STATES && derivatives(MODEL, dx)); }
SHOWN fmi2Status fmi2GetEventIndicators(void *c, double e[], size_t n) { return (void)c, (void)e, n ? error_ : fine_; }
SHOWN fmi2Status fmi2GetContinuousStates(void *c, double x[], size_t n) {
  if (n != STATES) return error_;
  take_states(MODEL, x);
  return fine_;
}
SHOWN fmi2Status fmi2GetNominalsOfContinuousStates(void *c, double x[], size_t n) {
  (void)c;
  for (size_t k = 0; k < n; ++k) x[k] = 1;
  return fine_;
}
