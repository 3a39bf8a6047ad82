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
  void *environment;
  told_t told;
  char name[128];
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

/* how long inputs have been acting: in co-simulation motions go on with their accelerations from when they were set, in
   model exchange all inputs are those of the instant */
static double acting_for(const State *s) { return KIND_ME ? 0 : s->now - s->since; }

/* inputs: efforts, or positions, rates and accelerations of motors, then wrenches */
static void give(Model *m) {
  double *c = m->system.coefficients.at;
  const double *u = m->state.inputs;
  m->system.breaks.at[0] = m->state.now - acting_for(&m->state);
  for (int j = 0; j < MOTORS; ++j)
    for (int p = 0; p < POWERS; ++p) c[p * GIVEN + j] = p == 2 ? 0.5 * u[p * MOTORS + j] : u[p * MOTORS + j];
  for (int j = 0; j < WRENCHES; ++j) c[wrench_places[j]] = u[POWERS * MOTORS + j];
}

/* of motions */
#define RATE_INPUT (POWERS == 3 ? MOTORS : 0)
static double motor_rate(const State *s, int j) {
  const double *u = s->inputs + j;
  return u[RATE_INPUT] + acting_for(s) * u[2 * RATE_INPUT];
}

static double motor_position(const State *s, int j) {
  const double *u = s->inputs + j;
  double t = acting_for(s);
  return u[0] + t * (u[RATE_INPUT] + 0.5 * t * u[2 * RATE_INPUT]);
}

/* motions as they are now, before some of them are set */
static void go_on_with(Model *m) {
  State *s = &m->state;
  double *u = s->inputs;
  for (int j = 0; POWERS == 3 && j < MOTORS; ++j) {
    double q = motor_position(s, j), qd = motor_rate(s, j);
    u[j] = q;
    u[MOTORS + j] = qd;
  }
  s->since = s->now;
}

static const char *failed(int64_t status) {
  switch (status) {
    case 1: return "the stages of a step do not converge";
    case 2: return "values are no longer finite, or the loops cannot be closed";
    case 3: return "the step becomes too small";
    default: return "the step cannot be made";
  }
}

static int watch(Model *m, const double *q, int walking);
static int reach(Model *m);
static void joints_follow(Model *m);
static void check_rates(Model *m);
static void end_step(Model *m);
#if WATCHED
static int jumped(Model *m, const double *before, const double *after, double time);
#endif

/* columns of what was evaluated */
static void see(Model *m) {
  State *s = &m->state;
  double x[LOOKED], y[SEEN];
  assemble(s->out_x, s->out_y, x);
  SEE_COLUMNS(s, x, y);
  finish(y, s->columns, s->turns); /* angles are followed from step to step */
  s->fresh = 1;
}

/* outputs at the state as it is, of which nothing changes but what was seen of it */
static int look(Model *m) {
  if (m->state.fresh) return 1;
  if (!reach(m)) return 0;
  see(m);
  return 1;
}

/* constants of the programs from the parameters */
static void set_constants(Model *m) {
  State *s = &m->state;
  SET_UP(s);
  for (int64_t row = 0; row < m->work.x.n[0]; ++row)
    for (int k = 0; k < CONSTANTS; ++k) *d2_at(m->work.x, row, WIDTH_X - CONSTANTS + k) = s->constants[k];
  s->fresh = 0;
}

/* the start: loops are closed as in the first row of a run */
static int begin_run(Model *m) {
  State *s = &m->state;
  set_constants(m);
  if (!reach(m)) return 0;
  for (int k = 0; k < WHOLE_TURNS; ++k) { /* angles of the loops in the turn nearest to the pose of the export */
    int at = whole_turns[k];
    double away = s->closed[at] - followed(s->closed[at], turn_of_export[k]);
    s->closed[at] -= away;
    if (away != 0) s->q[at] = s->closed[at];
  }
  give(m);
  if (m->system.rubbing.n[0] > 0)
    settle(&m->system, &m->work, s->now, row_of(s->q, POSITIONS), row_of(s->qd, RATES));
  int fine = record(&m->system, &m->work, s->now, row_of(s->q, POSITIONS), row_of(s->qd, RATES),
                    row_of(s->out_x, WIDTH_X), row_of(s->out_y, WIDTH_Y));
  if (!fine) {
    tell(m, 3, "the start is not finite, or the loops cannot be closed from it");
    return 0;
  }
  if (KIND_ME) check_rates(m);
  memset(s->turns, 0, sizeof s->turns); /* angles count from the start */
  see(m);
  s->begun = 1;
  end_step(m);
  return 1;
}

/* steps between two checks: as many as go evenly into all */
static int64_t portion(int64_t every, double h) {
  int64_t most = (int64_t)(CHECKED_OFTEN / h), found = 1;
  if (!WATCHED) return every;
  if (most < 2) most = 2;
  for (int64_t k = 2; k <= every && k <= most; ++k)
    if (every % k == 0) found = k;
  return found;
}

static int badly(Model *m) {
  State *s = &m->state;
  double steps = (double)s->whole[STEPS], again = (double)s->whole[REJECTED];
  return IMPLICIT && !s->said && steps >= 50 &&
         (again > fmax(10, MANY_REJECTED * steps) || (double)s->whole[EVALUATIONS] > LABOUR * steps);
}

static int begin_step(Model *m);

static int step_to(Model *m, double length) {
  State *s = &m->state;
  char text[256];
  if (!begin_step(m)) return 0;
  int64_t every = (int64_t)ceil(length / STEP * (1 - 1e-9));
  if (every < 1) every = 1;
  double h = length / (double)every, before[WIDTH_Y], start = s->now;
  int64_t part = portion(every, h);
  if (fabs(h - s->last_h) > 1e-12 * h) s->whole[STARTED] = 0; /* a matrix serves one length */
  s->last_h = h;
  s->whole[PIECE] = 0;
  give(m);
  for (int64_t done = 0; done < every; done += part) {
    memcpy(before, s->out_y, sizeof before);
    s->whole[EVENTS] = 0;
    LOOP_RESULT r = LOOP(&m->system, &m->work, &m->tableau, start + (double)done * h, h, part, row_of(s->q, POSITIONS),
                         row_of(s->qd, RATES), TOLERANCE, rows_of(s->out_x, WIDTH_X), rows_of(s->out_y, WIDTH_Y));
    s->fresh = 0;
    s->now = start + (double)(done + part) * h;
    if (r.v1 != 0) {
      snprintf(text, sizeof text, "%s about t = %.6g s, in steps of %.3g s", failed(r.v1), s->now, h);
      tell(m, 3, text);
      return 0;
    }
#if WATCHED
    if (jumped(m, before, s->out_y, (double)part * h) || !watch(m, s->out_y, 0)) return 0;
    memcpy(s->closed, s->out_y, sizeof(double) * POSITIONS);
#endif
  }
  s->now = start + length;
  end_step(m);
  if (badly(m)) {
    s->said = 1;
    snprintf(text, sizeof text, "steps of %.3g s converge badly: export the robot with a shorter step", h);
    tell(m, 1, text);
  }
  see(m);
  return 1;
}

static int do_step(Model *m, double t, double length) {
  char text[192];
  if (!(length > 0 && isfinite(length))) {
    tell(m, 3, "the communication step is not a positive number");
    return 0;
  }
  if (!(fabs(t - m->state.now) <= 1e-6 * length + 1e-12 * fabs(t))) {
    snprintf(text, sizeof text, "a step from t = %.9g s is asked for, but the last one ended at %.9g s", t, m->state.now);
    tell(m, 3, text);
    return 0;
  }
  m->state.now = t;
  return step_to(m, length);
}

/* model exchange: states are independent positions, then free rates; the others are closed from where they were */
static void put_states(Model *m, const double *x) {
  for (int k = 0; k < STATE_POSITIONS; ++k) m->state.q[state_positions[k]] = x[k];
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) m->state.qd[free_rates[k]] = x[STATE_POSITIONS + k];
  m->state.fresh = 0;
}

static void take_states(const Model *m, double *x) {
  for (int k = 0; k < STATE_POSITIONS; ++k) x[k] = m->state.q[state_positions[k]];
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) x[STATE_POSITIONS + k] = m->state.qd[free_rates[k]];
}

static int derivatives(Model *m, double *dx) {
  const double *y = m->state.out_y;
  if (!look(m)) return 0;
  for (int k = 0; k < STATE_POSITIONS; ++k) dx[k] = y[POSITIONS + state_positions[k]];
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) dx[STATE_POSITIONS + k] = y[2 * POSITIONS + free_rates[k]];
  return 1;
}

static void again(Model *m) {
  start_of(&m->state);
  wire(&m->state, &m->system, &m->work, &m->tableau);
  set_constants(m);
}

static void set_time(Model *m, double t) {
  if (t != m->state.now) m->state.fresh = 0;
  m->state.now = t;
}

static void set_start_time(Model *m, double t) {
  m->state.now = m->state.since = t;
  m->state.fresh = 0;
}

static void make(Model *m, const char *name, void *environment, told_t told) {
  snprintf(m->name, sizeof m->name, "%s", name ? name : "");
  m->environment = environment;
  m->told = told;
  again(m);
}

/* variables by number: time, inputs, outputs, states, their derivatives, parameters */
#define FIRST_STATE (1 + INPUTS + COLUMNS)
#define FIRST_PARAMETER (FIRST_STATE + 2 * STATES)

static int read_value(Model *m, unsigned which, double *value) {
  double all[STATES + 1];
  if (which == 0) {
    *value = m->state.now;
  } else if (which <= INPUTS) {
    *value = m->state.inputs[which - 1];
  } else if (which < FIRST_STATE) {
    if (!look(m)) return 0;
    *value = m->state.columns[which - 1 - INPUTS];
  } else if (which < FIRST_STATE + STATES) {
    take_states(m, all);
    *value = all[which - FIRST_STATE];
  } else if (which < FIRST_PARAMETER) {
    if (!derivatives(m, all)) return 0;
    *value = all[which - FIRST_STATE - STATES];
  } else if (which < FIRST_PARAMETER + PARAMETERS) {
    *value = m->state.parameters[which - FIRST_PARAMETER];
  } else {
    tell(m, 3, "there is no variable of this value reference");
    return 0;
  }
  return 1;
}

static int write_value(Model *m, unsigned which, double value) {
  double all[STATES + 1];
  if (!isfinite(value)) {
    tell(m, 3, "a value is not a finite number");
    return 0;
  }
  if (which >= 1 && which <= INPUTS) {
    go_on_with(m);
    m->state.inputs[which - 1] = value;
    m->state.anew = 1;
  } else if (m->state.begun && which >= (KIND_ME ? FIRST_PARAMETER : FIRST_STATE)) {
    tell(m, 3, "fixed parameters and start values are set before the initialisation ends");
    return 0;
  } else if (which >= FIRST_STATE && which < FIRST_STATE + STATES) {
    take_states(m, all);
    all[which - FIRST_STATE] = value;
    put_states(m, all);
  } else if (which >= FIRST_PARAMETER && which < FIRST_PARAMETER + PARAMETERS) {
    if (value < 0 && masses[which - FIRST_PARAMETER]) {
      tell(m, 3, "a mass is not negative");
      return 0;
    }
    m->state.parameters[which - FIRST_PARAMETER] = value;
    set_constants(m);
  } else {
    tell(m, 3, "this variable cannot be set");
    return 0;
  }
  m->state.fresh = 0;
  return 1;
}
