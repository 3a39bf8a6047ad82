/* How well the independent rates determine the others. Of the scaled rows of the closures s_1 is the largest singular
   value, s_r the last that is not zero in general, s_f that of the columns of the dependent rates alone. The rates are
   kept: where s_f / s_r or s_r / s_1 is small the unit says so. */
#if WATCHED
/* eigenvalues of J J^T over some columns by rotations, as singular values of J, the largest first */
static void singular_values(const double *J, const int *columns, int count, double *values) {
  static const int n = ROWS_WATCHED;
  double G[ROWS_WATCHED][ROWS_WATCHED];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double total = 0;
      for (int k = 0; k < count; ++k)
        total += J[i * COLUMNS_WATCHED + columns[k]] * J[j * COLUMNS_WATCHED + columns[k]];
      G[i][j] = total;
    }
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0, on = 0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) *(i == j ? &on : &off) += G[i][j] * G[i][j];
    if (!(off > 1e-26 * on)) break;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        if (G[p][q] == 0) continue;
        double half = (G[q][q] - G[p][p]) / (2 * G[p][q]);
        double t = (half < 0 ? -1 : 1) / (fabs(half) + sqrt(1 + half * half));
        double c = 1 / sqrt(1 + t * t), s = t * c;
        for (int k = 0; k < n; ++k) {
          double a = G[k][p], b = G[k][q];
          G[k][p] = c * a - s * b;
          G[k][q] = s * a + c * b;
        }
        for (int k = 0; k < n; ++k) {
          double a = G[p][k], b = G[q][k];
          G[p][k] = c * a - s * b;
          G[q][k] = s * a + c * b;
        }
      }
  }
  for (int i = 0; i < n; ++i) {
    double value = sqrt(fmax(G[i][i], 0));
    int k = i;
    for (; k > 0 && values[k - 1] < value; --k) values[k] = values[k - 1];
    values[k] = value;
  }
}

/* closed positions of the run, or on the way to such; those that are near the ones that were checked last are not
   checked again */
static int watch(Model *m, const double *q, int walking) {
  double J[ROWS_WATCHED * COLUMNS_WATCHED], whole[ROWS_WATCHED], own[ROWS_WATCHED], way = 0;
  char text[768], where[96];
  State *s = &m->state;
  for (int k = 0; k < POSITIONS; ++k) way = fmax(way, fabs(q[k] - s->checked[k]) / position_units[k]);
  if (s->was_checked && way < FAR_FROM_CHECKED) return 1;
  program_rows(q, J);
  singular_values(J, may_depend, MAY_DEPEND, whole);
  singular_values(J, dependent, DEPENDENT, own);
  double top = fmax(whole[0], 1e-9), last = whole[RANK - 1];
  if (!(top > SMALL_ROWS)) top = fmax(top, USUAL_ROWS);
  if (walking) snprintf(where, sizeof where, "on the way to the positions that were set");
  else snprintf(where, sizeof where, "at t = %.6g s", s->now);
  if (!(last >= NEAR_SINGULAR * top)) {
    snprintf(text, sizeof text,
             "the closures are near a singular pose %s (last singular value %.2g of the first), where they hardly "
             "determine how the robot moves: %s",
             where, last / top, walking ? "export the robot with a pose near those" : "stop before it");
    tell(m, 3, text);
    return 0;
  }
  if (!(own[RANK - 1] >= LEAST_QUALITY * last)) {
    snprintf(text, sizeof text,
             "the independent rates (%s) hardly determine the others %s (%.2g of what the best ones would): "
             "an FMU keeps its rates; export it with other ones (independent)",
             INDEPENDENT, where, own[RANK - 1] / last);
    tell(m, 3, text);
    return 0;
  }
  memcpy(s->checked, q, sizeof(double) * POSITIONS);
  s->was_checked = 1;
  return 1;
}

/* whether positions went a way that their rates do not explain: the loops closed in another assembly */
static int jumped(Model *m, const double *before, const double *after, double time) {
  double largest = 0, missed = 0;
  for (int k = 0; k < POSITIONS; ++k) {
    double way = after[k] - before[k], mean = 0.5 * (after[POSITIONS + k] + before[POSITIONS + k]);
    largest = fmax(largest, fabs(way) / position_units[k]);
    missed = fmax(missed, fabs(way - time * mean) / position_units[k]);
  }
  int found = CAN_JUMP && missed > UNEXPLAINED * fmax(largest, FAR_FROM_CHECKED);
  for (int k = 0; k < LENGTHS; ++k) found = found || !(after[lengths[k]] > 0);
  if (found) tell(m, 3, "the loops closed in another assembly mode than before, so the robot jumps");
  return found;
}
#else
static int watch(Model *m, const double *q, int walking) { return (void)m, (void)q, (void)walking, 1; }
#endif
