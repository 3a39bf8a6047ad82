/* Directional derivatives: programs of changes beside those of values, at closed positions. */
#if SLOPES
static int slopes(Model *m, const double *states, const double *inputs, double *derivatives_, double *columns) {
  const State *s = &m->state;
  double both[2 * VARIABLES + 1], dy[WIDTH_Y], z[2 * LOOKED], y[SEEN], dc[SEEN];
  double *x = both, *dx = both + VARIABLES;
  if (!look(m)) return 0;
  memcpy(x, s->out_x, sizeof(double) * VARIABLES);
  memset(dx, 0, sizeof(double) * VARIABLES);
  memset(dy, 0, sizeof dy);
  for (int k = 0; k < POSITIONS; ++k)
    if (closes[k] == CLOSED) x[k] = s->out_y[k];
  for (int k = 0; k < STATE_POSITIONS; ++k) dx[state_positions[k]] = states[k];
  for (int64_t k = 0; k < m->system.quaternions.n[0]; ++k) { /* of unit ones */
    int64_t at = m->system.quaternions.at[k];
    double size = 0, along = 0;
    for (int64_t p = at; p < at + 4; ++p) size += s->q[p] * s->q[p], along += x[p] * dx[p];
    for (int64_t p = at; p < at + 4; ++p) dx[p] = (dx[p] - along * x[p]) / sqrt(size);
  }
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) dx[POSITIONS + free_rates[k]] = states[STATE_POSITIONS + k];
  for (int j = 0; j < MOTORS; ++j) {
    double *own = dx + POSITIONS + RATES + j;
    if (POWERS == 1) {
      *own = inputs[j];
    } else {
      dx[m->system.motor_q.at[j]] = inputs[j];
      dx[POSITIONS + m->system.motor_v.at[j]] = inputs[RATE_INPUT + j];
      *own = inputs[2 * RATE_INPUT + j];
    }
  }
  for (int j = 0; j < WRENCHES; ++j) dx[POSITIONS + RATES + wrench_places[j]] = inputs[POWERS * MOTORS + j];
  SLOPE_ADDRESS(s, both, dy);
  for (int k = 0; k < STATE_POSITIONS; ++k) derivatives_[k] = dy[POSITIONS + state_positions[k]];
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k)
    derivatives_[STATE_POSITIONS + k] = dy[2 * POSITIONS + free_rates[k]];
  assemble(s->out_x, s->out_y, z);
  assemble(dx, dy, z + LOOKED);
  SEE_COLUMNS(s, z, y);
  SLOPE_COLUMNS(s, z, dc);
  finish_slopes(y, dc, s->columns, columns);
  return 1;
}

static int directional(Model *m, const unsigned unknown[], size_t n, const unsigned known[], size_t count,
                       const double along[], double found[]) {
  double states[STATES + 1] = {0}, inputs[INPUTS + 1] = {0}, rates[STATES + 1], columns[COLUMNS + 1];
  for (size_t k = 0; k < count; ++k) {
    unsigned v = known[k];
    if (v >= 1 && v <= INPUTS) inputs[v - 1] += along[k];
    else if (v >= FIRST_STATE && v < FIRST_STATE + STATES) states[v - FIRST_STATE] += along[k];
    else return tell(m, 3, "derivatives are by states and inputs"), 0;
  }
  if (!slopes(m, states, inputs, rates, columns)) return 0;
  for (size_t k = 0; k < n; ++k) {
    unsigned v = unknown[k];
    if (v > INPUTS && v < FIRST_STATE) found[k] = columns[v - 1 - INPUTS];
    else if (v >= FIRST_STATE + STATES && v < FIRST_PARAMETER) found[k] = rates[v - FIRST_STATE - STATES];
    else return tell(m, 3, "derivatives are of outputs and of derivatives of states"), 0;
  }
  return 1;
}
#else
static int directional(Model *m, const unsigned unknown[], size_t n, const unsigned known[], size_t count,
                       const double along[], double found[]) {
  (void)unknown, (void)n, (void)known, (void)count, (void)along, (void)found;
  return tell(m, 3, "directional derivatives are those of model exchange"), 0;
}
#endif
