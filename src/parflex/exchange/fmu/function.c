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

/* Positions from what is given of them. Newton's method from afar may close the loops in another assembly, so the way
   from what was given last is a straight line in pieces that move no position by more than a little. */
#if LOCATED
static double way_between(const double *a, const double *b) {
  double way = 0;
  for (int k = 0; k < LOCATED; ++k) {
    double own = fabs(a[k] - b[k]) / position_units[k];
    if (!(own <= way)) way = own; /* what is not finite is far */
  }
  return way;
}

/* closed positions; found twice at least, so that they are exact to rounding */
static int closed_near(const State *s, const double *given, const double *guess, double *found) {
  double q[LOCATED];
  int status = 1;
  memcpy(q, guess, sizeof q);
  for (int calls = 0; calls < 2 || (status && calls < 3); ++calls) {
    status = locate(s, given, q, found);
    memcpy(q, found, sizeof q);
  }
  return !status && way_between(found, guess) < NEAR_BY;
}

static int placed(State *s) {
  double goal[GIVEN], from[GIVEN], given[GIVEN], q[LOCATED], done = 0;
  for (int k = 0; k < GIVEN; ++k) { /* what is given of joints is among the positions */
    from[k] = s->memory[given_places[k] < 0 ? LOCATED + k : given_places[k]];
    goal[k] = turning[k] ? followed(s->inputs[k], from[k]) : s->inputs[k];
  }
  memcpy(s->found + LOCATED, goal, sizeof goal);
  if (closed_near(s, goal, s->memory, s->found)) return 1;
  double piece = 1, longest = 1, far = 0;
  memcpy(q, s->memory, sizeof q);
  for (int k = 0; k < GIVEN; ++k) far = fmax(far, fabs(goal[k] - from[k]) / given_units[k]);
  piece = longest = fmin(1, 0.5 * NEAR_BY / fmax(far, 1e-300));
  while (done < 1) {
    double at = done + piece > 1 - 1e-9 ? 1 : done + piece;
    for (int k = 0; k < GIVEN; ++k) given[k] = from[k] + at * (goal[k] - from[k]);
    if (at < 1) make_rotations(given);
    if (closed_near(s, given, q, s->found)) {
      memcpy(q, s->found, sizeof q);
      done = at;
      piece = fmin(longest, 2 * piece);
    } else {
      piece /= 2;
      if (!(piece * far > 1e-3 * NEAR_BY)) return 0;
    }
  }
  return 1;
}
#else
static int placed(State *s) { return (void)s, 1; }
#endif

static int look(Model *m) {
  State *s = &m->state;
  if (s->fresh) return 1;
  if (!placed(s)) {
    tell(m, 3, "the loops do not close on the way to the positions that are given: give nearer ones, start values near "
               "them, or export with a pose near them");
    return 0;
  }
  if (opening(s) > OPEN_LOOP) {
    tell(m, 3, "the loops are open at the positions that are given: give all positions of a closed pose");
    return 0;
  }
  if (compute(s)) {
    tell(m, 3, "the Newton steps of the model do not converge: give a last pose that is nearer");
    return 0;
  }
  int fine = 1;
  for (int k = 0; k < COLUMNS; ++k) fine = fine && isfinite(s->columns[k]);
  if (!fine) tell(m, 3, "outputs are not finite: the pose cannot be reached, or is singular");
  s->fresh = fine;
  return fine;
}

static void set_constants(Model *m) {
  SET_UP(&m->state);
  m->state.fresh = 0;
}

static int begin_run(Model *m) {
  set_constants(m);
  m->state.begun = look(m);
  return (int)m->state.begun;
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
  set_constants(m);
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
  if (which >= FIRST_MEMORY && m->state.begun) {
    tell(m, 3, "fixed parameters and start values are set before the initialisation ends");
    return 0;
  }
  *at = value;
  if (which >= FIRST_PARAMETER) set_constants(m);
  m->state.fresh = 0;
  return 1;
}

static int directional(Model *m, const unsigned unknown[], size_t n, const unsigned known[], size_t count,
                       const double along[], double found[]) {
  (void)unknown, (void)n, (void)known, (void)count, (void)along, (void)found;
  return tell(m, 3, "directional derivatives are those of plants in model exchange"), 0;
}
