"""Columns in C from the outputs of their program, and their changes: angles, quaternions, the opening of loops."""

from __future__ import annotations

from parflex.exchange.fmu.run_columns import RunColumns


def begins_turn(place: str) -> bool:
    """Whether a turn begins at a place: one number of an angle, four of a quaternion are remembered."""
    return place.startswith("theta") or (place.startswith("quaternion") and place.endswith(" 0"))


FINISH = """static double followed(double angle, double before) {
  const double turn = 6.283185307179586;
  return angle + turn * floor((before - angle) / turn + 0.5);
}
static void quaternion(const double *R, double *before, double *out) {
  double t[4] = {R[0] + R[4] + R[8], R[0] - R[4] - R[8], R[4] - R[0] - R[8], R[8] - R[0] - R[4]};
  int k = 0, largest = 0;
  for (int j = 1; j < 4; ++j)
    if (t[j] > t[k]) k = j;
  double s = sqrt(1 + t[k]) / 2, f = 0.25 / s, o[4], along = 0;
  double a = (R[7] - R[5]) * f, b = (R[2] - R[6]) * f, c = (R[3] - R[1]) * f;
  double d = (R[3] + R[1]) * f, e = (R[2] + R[6]) * f, g = (R[7] + R[5]) * f;
  if (k == 0) { o[0] = s; o[1] = a; o[2] = b; o[3] = c; }
  else if (k == 1) { o[0] = a; o[1] = s; o[2] = d; o[3] = e; }
  else if (k == 2) { o[0] = b; o[1] = d; o[2] = s; o[3] = g; }
  else { o[0] = c; o[1] = e; o[2] = g; o[3] = s; }
  for (int j = 0; j < 4; ++j) along += o[j] * before[j];
  for (int j = 1; j < 4; ++j)
    if (fabs(o[j]) > fabs(o[largest])) largest = j;
  if (along == 0) along = o[largest]; /* the first one */
  for (int j = 0; j < 4; ++j) out[j] = before[j] = along < 0 ? -o[j] : o[j];
}"""


def finish_lines(columns: RunColumns) -> list[str]:
    """Columns from the outputs of their program: angles and quaternions go on from where they were."""
    lines, turn = [], 0
    for k, place in enumerate(columns.places.values()):
        word, *numbers = place.split()
        if word == "theta":
            first = int(numbers[0])
            lines.append(f"  c[{k}] = turns[{turn}] = followed(atan2(y[{first + 1}], y[{first}]), turns[{turn}]);")
            turn += 1
        elif word == "quaternion":
            if numbers[1] == "0":
                lines.append(f"  quaternion(y + {numbers[0]}, turns + {turn}, c + {k});")
                turn += 4
        elif word == "opening":
            first, count = int(numbers[0]), int(numbers[1])
            lines.append(f"  c[{k}] = 0;")
            lines.append(f"  for (int k = {first}; k < {first + count}; ++k) c[{k}] = fmax(c[{k}], fabs(y[k]));")
        else:
            lines.append(f"  c[{k}] = y[{word}];")
    return [FINISH, "static void finish(const double *y, double *c, double *turns) {", "  (void)turns;", *lines, "}"]


SLOPES = """static void quaternion_slope(const double *R, const double *dR, const double *q, double *out) {
  double w[3]; /* dR = [w] R */
  w[0] = dR[6] * R[3] + dR[7] * R[4] + dR[8] * R[5];
  w[1] = dR[0] * R[6] + dR[1] * R[7] + dR[2] * R[8];
  w[2] = dR[3] * R[0] + dR[4] * R[1] + dR[5] * R[2];
  out[0] = -0.5 * (w[0] * q[1] + w[1] * q[2] + w[2] * q[3]);
  out[1] = 0.5 * (w[0] * q[0] + w[1] * q[3] - w[2] * q[2]);
  out[2] = 0.5 * (w[1] * q[0] + w[2] * q[1] - w[0] * q[3]);
  out[3] = 0.5 * (w[2] * q[0] + w[0] * q[2] - w[1] * q[1]);
}"""


def finish_slope_lines(columns: RunColumns) -> list[str]:
    """Changes of columns from the outputs of their program and the changes of these."""
    lines = []
    for k, place in enumerate(columns.places.values()):
        word, *numbers = place.split()
        if word == "theta":
            c, s = int(numbers[0]), int(numbers[0]) + 1
            square = f"(y[{c}] * y[{c}] + y[{s}] * y[{s}])"
            lines.append(f"  o[{k}] = (y[{c}] * d[{s}] - y[{s}] * d[{c}]) / {square};")
        elif word == "quaternion":
            if numbers[1] == "0":
                lines.append(f"  quaternion_slope(y + {numbers[0]}, d + {numbers[0]}, c + {k}, o + {k});")
        elif word == "opening":
            first, count = int(numbers[0]), int(numbers[1])
            lines.append(f"  o[{k}] = 0;")
            lines.append(
                f"  for (int k = {first}; k < {first + count}; ++k) "
                f"if (fabs(y[k]) == c[{k}]) o[{k}] = y[k] < 0 ? -d[k] : d[k];"
            )
        else:
            lines.append(f"  o[{k}] = d[{word}];")
    head = "static void finish_slopes(const double *y, const double *d, const double *c, double *o) {"
    return [SLOPES, head, "  (void)y, (void)c;", *lines, "}"]
