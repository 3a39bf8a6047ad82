/* One instance of a model: memory of the time loop, inputs, and outputs computed when they are asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*told_t)(void *, const char *, int, const char *);
typedef struct {
  State state;
  System system;
  Work work;
  Tableau tableau;
  int fresh; /* outputs are those of the state */
  int mode;
  void *environment;
  told_t told;
  char name[128];
  double columns[COLUMNS];
  double out_x[WIDTH_X];
  double out_y[WIDTH_Y];
} Model;

static void tell(Model *m, int severity, const char *text) {
  if (m->told) m->told(m->environment, m->name, severity, text);
}

static d1 row_of(double *at, int64_t n) {
  d1 r = {at, {n}, {1}};
  return r;
}

static d2 rows_of(double *at, int64_t n) {
  d2 r = {at, {1, n}, {n, 1}};
  return r;
}

/* inputs since they were set: efforts, or positions, rates and accelerations of motors, which go on with these
   accelerations, then wrenches */
static void give(Model *m) {
  double *c = m->system.coefficients.at;
  const double *u = m->state.inputs;
  m->system.breaks.at[0] = m->state.since;
  for (int j = 0; j < MOTORS; ++j)
    for (int p = 0; p < POWERS; ++p) c[p * GIVEN + j] = p == 2 ? 0.5 * u[p * MOTORS + j] : u[p * MOTORS + j];
  for (int j = 0; j < GIVEN - MOTORS; ++j) c[MOTORS + j] = u[POWERS * MOTORS + j];
}

/* motions as they are now, before some of them are set */
static void go_on_with(Model *m) {
  double *u = m->state.inputs, s = m->state.now - m->state.since;
  if (POWERS == 3)
    for (int j = 0; j < MOTORS; ++j) {
      u[j] += s * (u[MOTORS + j] + 0.5 * s * u[2 * MOTORS + j]);
      u[MOTORS + j] += s * u[2 * MOTORS + j];
    }
  m->state.since = m->state.now;
}

static const char *failed(int64_t status) {
  switch (status) {
    case 1: return "the stages of a step do not converge";
    case 2: return "values are no longer finite, or the loops cannot be closed";
    case 3: return "the step becomes too small";
    default: return "the step cannot be made";
  }
}

/* outputs at the state as it is: nothing of it changes */
static int look(Model *m) {
  double q[POSITIONS + 1], qd[RATES + 1], x[LOOKED], y[SEEN];
  if (m->fresh) return 1;
  memcpy(q, m->state.q, sizeof(double) * POSITIONS);
  memcpy(qd, m->state.qd, sizeof(double) * RATES);
  int64_t counts[COUNTS];
  memcpy(counts, m->state.whole, sizeof counts);
  give(m);
  int fine = record(&m->system, &m->work, m->state.now, row_of(q, POSITIONS), row_of(qd, RATES),
                    row_of(m->out_x, WIDTH_X), row_of(m->out_y, WIDTH_Y));
  memcpy(m->state.whole, counts, sizeof counts);
  if (!fine) {
    tell(m, 3, "values are not finite, or the loops cannot be closed");
    return 0;
  }
  assemble(m->out_x, m->out_y, x);
  program_columns(x, y);
  finish(y, m->columns, m->state.turns);
  m->fresh = 1;
  return 1;
}

static void begin(Model *m) {
  give(m);
  if (m->system.rubbing.n[0] > 0)
    settle(&m->system, &m->work, m->state.now, row_of(m->state.q, POSITIONS), row_of(m->state.qd, RATES));
  m->fresh = 0;
}

static int step_to(Model *m, double length) {
  int64_t every = (int64_t)ceil(length / STEP * (1 - 1e-9));
  if (every < 1) every = 1;
  double h = length / (double)every;
  if (fabs(h - m->state.last_h) > 1e-12 * h) m->state.whole[STARTED] = 0; /* a matrix serves one length */
  m->state.last_h = h;
  m->state.whole[PIECE] = 0;
  m->state.whole[EVENTS] = 0;
  give(m);
  LOOP_RESULT r = LOOP(&m->system, &m->work, &m->tableau, m->state.now, h, every, row_of(m->state.q, POSITIONS),
                       row_of(m->state.qd, RATES), TOLERANCE, rows_of(m->out_x, WIDTH_X), rows_of(m->out_y, WIDTH_Y));
  m->fresh = 0;
  if (r.v1 != 0) {
    tell(m, 3, failed(r.v1));
    return 0;
  }
  m->state.now += length;
  look(m); /* angles are followed from step to step */
  return 1;
}

/* model exchange: states are independent positions, then free rates; the others are closed from where they were */
static void put_states(Model *m, const double *x) {
  for (int k = 0; k < STATE_POSITIONS; ++k) m->state.q[state_positions[k]] = x[k];
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) m->state.qd[free_rates[k]] = x[STATE_POSITIONS + k];
  m->fresh = 0;
}

static void take_states(const Model *m, double *x) {
  for (int k = 0; k < STATE_POSITIONS; ++k) x[k] = m->state.q[state_positions[k]];
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) x[STATE_POSITIONS + k] = m->state.qd[free_rates[k]];
}

static int derivatives(Model *m, double *dx) {
  if (!look(m)) return 0;
  for (int k = 0; k < POSITIONS; ++k) /* the next closing starts where this one ended */
    if (closes[k]) m->state.q[k] = m->out_y[k];
  for (int k = 0; k < STATE_POSITIONS; ++k) dx[k] = m->out_y[POSITIONS + state_positions[k]];
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) dx[STATE_POSITIONS + k] = m->out_y[2 * POSITIONS + free_rates[k]];
  return 1;
}

static Model *make(const char *name, void *environment, told_t told) {
  Model *m = (Model *)calloc(1, sizeof(Model));
  if (!m) return NULL;
  snprintf(m->name, sizeof m->name, "%s", name ? name : "");
  m->environment = environment;
  m->told = told;
  start_of(&m->state);
  wire(&m->state, &m->system, &m->work, &m->tableau);
  return m;
}

static void again(Model *m) {
  start_of(&m->state);
  m->fresh = 0;
}

/* variables by number: time, inputs, outputs, states, their derivatives */
static int read_value(Model *m, unsigned which, double *value) {
  double all[STATES + 1];
  if (which == 0) {
    *value = m->state.now;
  } else if (which <= INPUTS) {
    *value = m->state.inputs[which - 1];
  } else if (which <= INPUTS + COLUMNS) {
    if (!look(m)) return 0;
    *value = m->columns[which - 1 - INPUTS];
  } else if (which <= INPUTS + COLUMNS + STATES) {
    take_states(m, all);
    *value = all[which - 1 - INPUTS - COLUMNS];
  } else if (which <= INPUTS + COLUMNS + 2 * STATES) {
    if (!derivatives(m, all)) return 0;
    *value = all[which - 1 - INPUTS - COLUMNS - STATES];
  } else {
    tell(m, 3, "there is no variable of this value reference");
    return 0;
  }
  return 1;
}

static int write_value(Model *m, unsigned which, double value) {
  double all[STATES + 1];
  if (which >= 1 && which <= INPUTS) {
    go_on_with(m);
    m->state.inputs[which - 1] = value;
  } else if (which > INPUTS + COLUMNS && which <= INPUTS + COLUMNS + STATES) {
    take_states(m, all);
    all[which - 1 - INPUTS - COLUMNS] = value;
    put_states(m, all);
  } else {
    tell(m, 3, "this variable cannot be set");
    return 0;
  }
  m->fresh = 0;
  return 1;
}
