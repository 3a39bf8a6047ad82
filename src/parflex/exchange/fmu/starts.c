/* Starts of flexible robots with loops: joints that were not set follow those that were, passive ones first, and
   bodies keep their deformation. A position is set where it is not what it was of itself. */
static void say_rates(Model *m) {
  if (m->state.said_rates) return;
  m->state.said_rates = 1;
  tell(m, 1, "the rates that were set deform bodies: set rates of joints that belong together");
}

/* of model exchange, where all rates are given: deformations that follow from them though none was given */
static void check_rates(Model *m) {
#if WATCHED
  const double *rates = m->state.out_y + POSITIONS;
  double joints = 0, given = 0, followed_by = 0;
  for (int p = 0, at = 0; p < POSITIONS; ++p) {
    double own = fabs(rates[p]) / position_units[p];
    for (at = 0; at < BENT && bent_positions[at] != p; ++at) continue;
    double *kind = at == BENT ? &joints : closes[p] == CLOSED ? &followed_by : &given;
    *kind = fmax(*kind, own);
  }
  if (given == 0 && followed_by > BENT_FAR * joints) say_rates(m);
#else
  (void)m;
#endif
}

#if FOLLOWING
/* least x with A x = b; rows of A are made orthogonal in place. What is left of b is how far it cannot be met. */
static double least(double *A, double *b, int rows, int columns, double *x) {
  double left = 0;
  int kept[LOOP_ROWS], count = 0;
  memset(x, 0, sizeof(double) * columns);
  for (int i = 0; i < rows; ++i) {
    double *a = A + i * columns, before = 0, after = 0;
    for (int k = 0; k < columns; ++k) before += a[k] * a[k];
    for (int twice = 0; twice < 2; ++twice)
      for (int j = 0; j < count; ++j) {
        double *e = A + kept[j] * columns, along = 0;
        for (int k = 0; k < columns; ++k) along += a[k] * e[k];
        for (int k = 0; k < columns; ++k) a[k] -= along * e[k];
        b[i] -= along * b[kept[j]];
      }
    for (int k = 0; k < columns; ++k) after += a[k] * a[k];
    if (after > 1e-14 * before) {
      double size = sqrt(after);
      for (int k = 0; k < columns; ++k) a[k] /= size;
      b[i] /= size;
      for (int k = 0; k < columns; ++k) x[k] += b[i] * a[k];
      kept[count++] = i;
    } else {
      left = fmax(left, fabs(b[i]));
    }
  }
  return left;
}

static int was_set(const State *s, int rate) {
  for (int p = joint_first[rate]; p < joint_last[rate]; ++p)
    if (s->q[p] != s->came[p]) return 1;
  return 0;
}

/* the loops closed by the joints that move; the others stay */
static int closed_by(double *q, const int *moves) {
  double in[POSITIONS + ALL_RATES], out[LOOP_ROWS * (FREE_RATES + 1) + POSITIONS];
  double A[LOOP_ROWS * FREE_RATES], x[FREE_RATES];
  for (int once = 0; once < 20; ++once) {
    int columns = 0;
    double size = 0;
    memcpy(in, q, sizeof(double) * POSITIONS);
    memset(in + POSITIONS, 0, sizeof(double) * ALL_RATES);
    program_starting(in, out);
    for (int k = 0; k < FREE_RATES; ++k) columns += moves[k];
    for (int i = 0; i < LOOP_ROWS; ++i) {
      int at = 0;
      out[i] = -out[i];
      for (int k = 0; k < FREE_RATES; ++k)
        if (moves[k]) A[i * columns + at++] = out[LOOP_ROWS + i * FREE_RATES + k];
    }
    least(A, out, LOOP_ROWS, columns, x);
    for (int k = 0, at = 0; k < FREE_RATES; ++k)
      if (moves[k]) {
        in[POSITIONS + free_rate[k]] = rate_unit[k] * x[at];
        size = fmax(size, fabs(x[at++]));
      }
    program_starting(in, out);
    for (int p = 0; p < POSITIONS; ++p) q[p] += out[LOOP_ROWS * (FREE_RATES + 1) + p];
    if (!(size < 1e3)) return 0;
    if (size < 1e-13 * POSITIONS) break;
  }
  memcpy(in, q, sizeof(double) * POSITIONS);
  program_starting(in, out);
  for (int i = 0; i < LOOP_ROWS; ++i)
    if (!(fabs(out[i]) < 1e-11)) return 0; /* metres */
  return 1;
}

static void made_units(const Model *m, double *q) {
  for (int64_t k = 0; k < m->system.quaternions.n[0]; ++k) {
    int64_t at = m->system.quaternions.at[k];
    double size = 0;
    for (int64_t p = at; p < at + 4; ++p) size += q[p] * q[p];
    for (int64_t p = at; size > 0 && p < at + 4; ++p) q[p] /= sqrt(size);
  }
}

/* in pieces from the pose of the export to what was set; joints that were set and move nevertheless come near to it */
static int positions_follow(Model *m, const int *moves) {
  State *s = &m->state;
  double goal[POSITIONS], q[POSITIONS], was[POSITIONS], done = 0, far = 0;
  memcpy(q, q_of_export, sizeof q);
  for (int p = 0; p < POSITIONS; ++p) goal[p] = closes[p] == CLOSED ? q[p] : s->q[p];
  for (int64_t j = 0; j < m->system.motor_q.n[0]; ++j) goal[m->system.motor_q.at[j]] = motor_position(s, (int)j);
  for (int k = 0; k < FREE_RATES; ++k)
    for (int p = joint_first[k]; moves[k] && p < joint_last[k]; ++p) goal[p] = q[p];
  for (int p = 0; p < POSITIONS; ++p) far = fmax(far, fabs(goal[p] - q[p]) / position_units[p]);
  double piece = fmin(1, 0.5 * FAR_FROM_CHECKED / fmax(far, 1e-300)), longest = piece;
  if (far == 0) done = 1;
  while (done < 1) {
    double at = done + piece > 1 - 1e-9 ? 1 : done + piece;
    memcpy(was, q, sizeof q);
    for (int p = 0; p < POSITIONS; ++p) q[p] += (at - done) / (1 - done) * (goal[p] - q[p]) * (goal[p] != q_of_export[p]);
    made_units(m, q);
    if (!closed_by(q, moves) || !(way_between(q, was) < 4 * FAR_FROM_CHECKED)) {
      memcpy(q, was, sizeof q);
      piece /= 2;
      if (!(piece * far > SHORTEST_PIECE * FAR_FROM_CHECKED)) return 0;
      continue;
    }
    made_units(m, q);
    done = at;
    piece = fmin(longest, 2 * piece);
  }
  for (int k = 0; k < FREE_RATES; ++k)
    for (int p = joint_first[k]; moves[k] && was_set(s, k) && p < joint_last[k]; ++p)
      if (!(fabs(q[p] - s->q[p]) < BENT_FAR * position_units[p])) return 0;
  for (int k = 0; k < FREE_RATES; ++k)
    for (int p = joint_first[k]; moves[k] && !was_set(s, k) && p < joint_last[k]; ++p) s->q[p] = s->came[p] = q[p];
  for (int p = 0; p < POSITIONS; ++p)
    if (closes[p] == CLOSED) s->q[p] = s->came[p] = q[p];
  memcpy(s->closed, q, sizeof q);
  return 1;
}

/* of the joints that move, so that no deformation changes but as was set, or by a share of the rates that were */
static int rates_follow(Model *m, const int *moves, double share) {
  State *s = &m->state;
  double in[POSITIONS + ALL_RATES] = {0}, out[LOOP_ROWS * (FREE_RATES + 1) + POSITIONS];
  double A[LOOP_ROWS * FREE_RATES], b[LOOP_ROWS] = {0}, x[FREE_RATES], largest = 0;
  int columns = 0, open[FREE_RATES];
  memcpy(in, s->closed, sizeof(double) * POSITIONS);
  program_starting(in, out);
  for (int k = 0; k < FREE_RATES; ++k) {
    int at = rate_stored[k];
    double own = DRIVEN && rate_role[k] == MOTOR ? motor_rate(s, rate_motor[k]) : at < 0 ? 0 : s->qd[at];
    open[k] = moves[k] && (at < 0 || s->qd[at] == s->came_rates[at]);
    columns += open[k];
    for (int i = 0; i < LOOP_ROWS && !open[k]; ++i) {
      double part = out[LOOP_ROWS + i * FREE_RATES + k] * own / rate_unit[k];
      b[i] -= part;
      largest = fmax(largest, fabs(part));
    }
  }
  for (int i = 0; i < LOOP_ROWS; ++i) {
    int at = 0;
    for (int k = 0; k < FREE_RATES; ++k)
      if (open[k]) A[i * columns + at++] = out[LOOP_ROWS + i * FREE_RATES + k];
  }
  if (least(A, b, LOOP_ROWS, columns, x) > share * largest) return 0;
  for (int k = 0, at = 0; k < FREE_RATES; ++k)
    if (open[k]) {
      double own = rate_unit[k] * x[at++];
      if (rate_stored[k] >= 0) s->qd[rate_stored[k]] = s->came_rates[rate_stored[k]] = own;
    }
  return 1;
}

static void joints_follow(Model *m) {
  int moves[FREE_RATES], passive[FREE_RATES], all[FREE_RATES];
  const State *s = &m->state;
  for (int k = 0; k < FREE_RATES; ++k) {
    passive[k] = rate_role[k] == PASSIVE;
    moves[k] = passive[k] && !was_set(s, k);
    all[k] = (passive[k] || (rate_role[k] == MOTOR && !DRIVEN)) && !was_set(s, k);
  }
  /* more joints may be set than the loops leave free: on a straight line they do not belong together, at its end they
     may */
  int there = positions_follow(m, moves) || positions_follow(m, all) || positions_follow(m, passive);
  for (int k = 0; k < FREE_RATES && !there; ++k)
    if (passive[k] && !all[k]) {
      all[k] = 1;
      there = positions_follow(m, all);
      all[k] = 0;
    }
  for (int k = 0; k < FREE_RATES; ++k) all[k] = passive[k] || (rate_role[k] == MOTOR && !DRIVEN);
  double exact = 1e-9, near = BENT_FAR;
  if (!rates_follow(m, passive, exact) && !rates_follow(m, all, exact) && !rates_follow(m, passive, near) &&
      !rates_follow(m, all, near))
    say_rates(m);
}
#else
static void joints_follow(Model *m) { (void)m; }
#endif
