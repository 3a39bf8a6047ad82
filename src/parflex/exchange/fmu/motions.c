/* Motors that follow motions, where these are set anew between two steps. */
static void end_step(Model *m) {
  State *s = &m->state;
  for (int j = 0; POWERS == 3 && j < MOTORS; ++j) {
    s->ended[j] = motor_position(s, j);
    s->ended[MOTORS + j] = motor_rate(s, j);
  }
  s->anew = 0;
}

/* Rates of motors that jump: their impulses move what is free, as accelerations of the same size would, and their work
   is that at the mean rates. */
static int push(Model *m, const double *jump) {
  State *s = &m->state;
  double moved[RATES + 1], pushed[MOTORS + 1], still[MOTORS + 1] = {0};
  int64_t counts[COUNTS];
  memcpy(counts, s->whole, sizeof counts);
  int fine = at_rest(m, s->closed, jump);
  memcpy(moved, s->out_y + 2 * POSITIONS, sizeof(double) * RATES);
  memcpy(pushed, s->out_y + 2 * POSITIONS + 2 * RATES, sizeof(double) * MOTORS);
  fine = at_rest(m, s->closed, still) && fine;
  memcpy(s->whole, counts, sizeof counts);
  for (int k = 0; k < STATES - STATE_POSITIONS; ++k) {
    int rate = free_rates[k];
    s->qd[rate] += moved[rate] - s->out_y[2 * POSITIONS + rate];
  }
  for (int j = 0; j < MOTORS; ++j) {
    double impulse = pushed[j] - s->out_y[2 * POSITIONS + 2 * RATES + j];
    m->work.numbers.at[INPUT_WORK] += impulse * (motor_rate(s, j) - 0.5 * jump[j]);
  }
  return fine;
}

static int begin_step(Model *m) {
  State *s = &m->state;
  double jump[MOTORS + 1] = {0}, largest = 0, gap = 0;
  char text[256];
  if (POWERS == 1 || !s->anew) return 1;
  for (int j = 0; j < MOTORS; ++j) {
    jump[j] = motor_rate(s, j) - s->ended[MOTORS + j];
    largest = fmax(largest, fabs(jump[j]));
    gap = fmax(gap, fabs(motor_position(s, j) - s->ended[j]) / motor_units[j]);
  }
  if (gap > GAP && !s->said_gap) {
    s->said_gap = 1;
    snprintf(text, sizeof text,
             "the position of a motor jumps by %.3g rad or typical lengths at t = %.6g s, which takes no work here: set "
             "positions, rates and accelerations that belong together",
             gap, s->now);
    tell(m, 1, text);
  }
  s->fresh = 0;
  if (!reach(m)) return 0;
  if (!(largest > 0)) return 1;
  if (push(m, jump) && reach(m)) return 1;
  tell(m, 3, "the impulse of the motors is not finite");
  return 0;
}
