/* One instance of a function: outputs follow from inputs, parameters and what is remembered of the last step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*told_t)(void *, const char *, int, const char *);
typedef struct {
  State state;
  void *environment;
  told_t told;
  char name[128];
} Model;

static void tell(Model *m, int severity, const char *text) {
  if (m->told) m->told(m->environment, m->name, severity, text);
}

static int look(Model *m) {
  State *s = &m->state;
  if (s->fresh) return 1;
  int fine = compute(s);
  for (int k = 0; k < COLUMNS; ++k) fine = fine && isfinite(s->columns[k]);
  if (!fine) tell(m, 3, "the positions cannot be computed from what is measured, or outputs are not finite");
  s->fresh = fine;
  return fine;
}

static void prepare(Model *m) {
  SET_UP(&m->state);
  m->state.fresh = 0;
}

static int begin(Model *m) {
  prepare(m);
  return look(m);
}

/* outputs of the inputs as they are now; the next ones start from the positions found */
static int do_step(Model *m, double t, double length) {
  if (!(length > 0 && isfinite(length))) {
    tell(m, 3, "the communication step is not a positive number");
    return 0;
  }
  if (!look(m)) return 0;
  memcpy(m->state.memory, m->state.found, sizeof m->state.found);
  m->state.now = t + length;
  return 1;
}

static void put_states(Model *m, const double *x) { (void)m, (void)x; }
static void take_states(const Model *m, double *x) { (void)m, (void)x; }
static int derivatives(Model *m, double *dx) { return (void)dx, look(m); }

static void again(Model *m) {
  start_of(&m->state);
  prepare(m);
}

static void set_time(Model *m, double t) {
  if (t > m->state.now && m->state.fresh) memcpy(m->state.memory, m->state.found, sizeof m->state.found);
  m->state.now = t;
}

static void set_start_time(Model *m, double t) { m->state.now = t; }

static void make(Model *m, const char *name, void *environment, told_t told) {
  snprintf(m->name, sizeof m->name, "%s", name ? name : "");
  m->environment = environment;
  m->told = told;
  again(m);
}

/* variables by number: time, inputs, outputs, what is remembered at the start, parameters */
#define FIRST_MEMORY (1 + INPUTS + COLUMNS)
#define FIRST_PARAMETER (FIRST_MEMORY + MEMORY)

static double *place_of(Model *m, unsigned which) {
  if (which >= 1 && which <= INPUTS) return m->state.inputs + which - 1;
  if (which >= FIRST_MEMORY && which < FIRST_PARAMETER) return m->state.memory + which - FIRST_MEMORY;
  if (which >= FIRST_PARAMETER && which < FIRST_PARAMETER + PARAMETERS)
    return m->state.parameters + which - FIRST_PARAMETER;
  return NULL;
}

static int read_value(Model *m, unsigned which, double *value) {
  const double *at = place_of(m, which);
  if (which == 0) {
    *value = m->state.now;
  } else if (at) {
    *value = *at;
  } else if (which <= INPUTS + COLUMNS) {
    if (!look(m)) return 0;
    *value = m->state.columns[which - 1 - INPUTS];
  } else {
    tell(m, 3, "there is no variable of this value reference");
    return 0;
  }
  return 1;
}

static int write_value(Model *m, unsigned which, double value) {
  double *at = place_of(m, which);
  if (!at || !isfinite(value)) {
    tell(m, 3, at ? "a value is not a finite number" : "this variable cannot be set");
    return 0;
  }
  *at = value;
  if (which >= FIRST_PARAMETER) prepare(m);
  m->state.fresh = 0;
  return 1;
}

static int directional(Model *m, const unsigned unknown[], size_t n, const unsigned known[], size_t count,
                       const double along[], double found[]) {
  (void)unknown, (void)n, (void)known, (void)count, (void)along, (void)found;
  return tell(m, 3, "directional derivatives are those of plants in model exchange"), 0;
}
