/* Positions that are set: loops are closed there in the assembly that they have where they were closed last. Newton's
   method from afar may end in another one, so the way there is a straight line in small pieces, each of which moves all
   positions by less than two assemblies are apart at poses that the watch lets pass. */
#define SHORTEST_PIECE 1e-3 /* of the distance that is small: below it the loops do not close */

/* given positions, and guesses of the others where they were closed last */
static void goal_of(Model *m, double *q) {
  const State *s = &m->state;
  for (int k = 0; k < POSITIONS; ++k) q[k] = closes[k] == CLOSED ? s->closed[k] : s->q[k];
  for (int64_t j = 0; j < m->system.motor_q.n[0]; ++j) q[m->system.motor_q.at[j]] = motor_position(s, (int)j);
  for (int64_t k = 0; k < m->system.quaternions.n[0]; ++k) { /* a turn has two: the nearer one */
    double along = 0, size = 0;
    int64_t at = m->system.quaternions.at[k];
    for (int64_t p = at; p < at + 4; ++p) along += q[p] * s->closed[p], size += q[p] * q[p];
    for (int64_t p = at; p < at + 4; ++p) {
      if (size > 0) q[p] /= sqrt(size);
      if (along < 0) m->state.closed[p] = -m->state.closed[p];
    }
  }
}

static int evaluated(Model *m, const double *q, const double *qd) {
  State *s = &m->state;
  double at[POSITIONS + 1], rates[RATES + 1] = {0};
  memcpy(at, q, sizeof(double) * POSITIONS);
  if (qd) memcpy(rates, qd, sizeof(double) * RATES);
  return record(&m->system, &m->work, s->now, row_of(at, POSITIONS), row_of(rates, RATES), row_of(s->out_x, WIDTH_X),
                row_of(s->out_y, WIDTH_Y));
}

/* with the rates of the state */
static int moving(Model *m, const double *q) {
  give(m);
  return evaluated(m, q, m->state.qd);
}

/* without any, motors accelerating */
static int at_rest(Model *m, const double *q, const double *acceleration) {
  give(m);
  m->system.breaks.at[0] = m->state.now;
  for (int64_t j = 0; j < m->system.motor_q.n[0]; ++j) {
    double *c = m->system.coefficients.at + j;
    c[0] = q[m->system.motor_q.at[j]];
    c[GIVEN] = 0;
    c[2 * GIVEN] = acceleration ? 0.5 * acceleration[j] : 0;
  }
  return evaluated(m, q, NULL);
}

#if WATCHED
static double way_between(const double *a, const double *b) {
  double way = 0;
  for (int k = 0; k < POSITIONS; ++k) {
    double own = fabs(a[k] - b[k]) / position_units[k];
    if (!(own <= way)) way = own; /* what is not finite is far */
  }
  return way;
}

/* in pieces from where the loops were closed last to a goal; turns of frames are followed */
static int walk(Model *m, const double *goal) {
  State *s = &m->state;
  double from[POSITIONS + 1], q[POSITIONS + 1], done = 0;
  memcpy(from, s->closed, sizeof(double) * POSITIONS);
  double far = 0;
  for (int k = 0; k < POSITIONS; ++k)
    if (closes[k] != CLOSED) far = fmax(far, fabs(goal[k] - from[k]) / position_units[k]);
  double piece = fmin(1, 0.5 * FAR_FROM_CHECKED / fmax(far, 1e-300)), longest = piece;
  while (done < 1) {
    double at = done + piece > 1 - 1e-9 ? 1 : done + piece;
    for (int k = 0; k < POSITIONS; ++k) { /* what is given in part goes on from where the loops left it */
      double way = goal[k] - from[k];
      q[k] = closes[k] == CLOSED ? s->closed[k] : closes[k] == PARTLY ? s->closed[k] + (at - done) * way : from[k] + at * way;
    }
    s->whole[OPEN] = 0;
    if (!at_rest(m, q, NULL) || !(way_between(s->out_y, s->closed) < FAR_FROM_CHECKED)) {
      piece /= 2;
      if (piece * far < SHORTEST_PIECE * FAR_FROM_CHECKED || !(piece > 1e-9)) {
        tell(m, 3, "the loops do not close on the way to the positions that were set: set nearer ones, or export the "
                   "robot with a pose near them");
        break;
      }
      continue;
    }
    if (!watch(m, s->out_y, 1)) break;
    see(m);
    memcpy(s->closed, s->out_y, sizeof(double) * POSITIONS);
    done = at;
    piece = fmin(longest, 2 * piece);
  }
  s->whole[OPEN] = s->fresh = 0;
  if (done >= 1) return 1;
  memcpy(s->closed, from, sizeof(double) * POSITIONS);
  s->was_checked = 0;
  return 0;
}

/* bodies that deform further than bodies do, as the positions of joints do not belong together */
static void say_bent(Model *m, const double *before) {
  State *s = &m->state;
  double way = 0;
  char text[256];
  for (int k = 0; k < BENT; ++k) {
    int p = bent_positions[k];
    way = fmax(way, fabs(s->closed[p] - before[p]) / position_units[p]);
  }
  if (!(way > BENT_FAR) || s->said_bent) return;
  s->said_bent = 1;
  snprintf(text, sizeof text,
           "the positions that were set deform bodies by %.2g rad or typical lengths: set positions of joints that belong "
           "together, or export the robot with a pose near them",
           way);
  tell(m, 1, text);
}

/* outputs of the model at the given positions with the rates of the state, in `out_x` and `out_y` */
static int reach(Model *m) {
  State *s = &m->state;
  double goal[POSITIONS + 1], before[POSITIONS + 1];
  int64_t counts[COUNTS];
  memcpy(counts, s->whole, sizeof counts);
  if (!KIND_ME && !s->begun) joints_follow(m);
  memcpy(before, s->closed, sizeof(double) * POSITIONS);
  goal_of(m, goal);
  int near = way_between(goal, s->closed) < FAR_FROM_CHECKED && moving(m, goal) &&
             way_between(s->out_y, s->closed) < FAR_FROM_CHECKED;
  memcpy(s->whole, counts, sizeof counts);
  if (!near) {
    int there = walk(m, goal);
    memcpy(s->whole, counts, sizeof counts);
    if (!there) return 0;
    say_bent(m, before);
    goal_of(m, goal);
    for (int k = 0; k < POSITIONS; ++k) /* steps go on from here */
      if (closes[k] == CLOSED || (closes[k] == PARTLY && !s->begun)) s->q[k] = goal[k] = s->closed[k];
    near = moving(m, goal) && way_between(s->out_y, s->closed) < FAR_FROM_CHECKED;
    memcpy(s->whole, counts, sizeof counts);
  }
  if (!near) {
    tell(m, 3, "values are not finite, or the loops cannot be closed");
    return 0;
  }
  if (!watch(m, s->out_y, 0)) return 0;
  memcpy(s->closed, s->out_y, sizeof(double) * POSITIONS);
  return 1;
}
#else
static int reach(Model *m) {
  State *s = &m->state;
  int64_t counts[COUNTS];
  memcpy(counts, s->whole, sizeof counts);
  goal_of(m, s->closed);
  int fine = moving(m, s->closed);
  memcpy(s->whole, counts, sizeof counts);
  if (!fine) tell(m, 3, "values are not finite");
  return fine;
}
#endif
