"""A motion as C99: a function of time that gives positions, velocities and accelerations of the motors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import metadata

import numpy as np

from parflex.codegen.emit.files import MARK
from parflex.codegen.emit.heading import identifier
from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.motions.waves import Waves

Array = np.ndarray
OWN = {"moving", "smooth_step", "start", "sine", "cosine", "rates", "breaks", "powers"}  # names within the file
OWN |= {"MOTORS", "PIECES", "POWERS", "WAVES"}
POLYNOMIALS = """  int low = 0, high = PIECES - 1;
  while (low < high) {  /* the last piece that begins before t */
    const int middle = (low + high + 1) / 2;
    if (breaks[middle] < t) low = middle; else high = middle - 1;
  }
  const double s = t - breaks[low];
  for (int j = 0; j < MOTORS; ++j) {
    double value = 0, slope = 0, curve = 0;
    for (int k = POWERS - 1; k >= 0; --k) {
      curve = curve * s + slope;
      slope = slope * s + value;
      value = value * s + powers[low][k][j];
    }
    q[j] = value;
    qd[j] = slope;
    qdd[j] = 2 * curve;
  }
"""
SINES = """  for (int j = 0; j < MOTORS; ++j) q[j] = qd[j] = qdd[j] = 0;
  for (int k = 0; k < WAVES; ++k) {
    const double w = rates[k], s = sin(w * t), c = cos(w * t);
    for (int j = 0; j < MOTORS; ++j) {
      q[j] += s * sine[k][j] + (c - 1) * cosine[k][j];
      qd[j] += w * (c * sine[k][j] - s * cosine[k][j]);
      qdd[j] -= w * w * (s * sine[k][j] + c * cosine[k][j]);
    }
  }
"""
CHIRP = """  PHASE
  const double s = sin(phase), c = cos(phase);
  for (int j = 0; j < MOTORS; ++j) {
    q[j] = s * sine[0][j];
    qd[j] = c * speed * sine[0][j];
    qdd[j] = (c * push - s * speed * speed) * sine[0][j];
  }
"""
FADE = """  double w0, w1, w2, b0 = 1, b1 = 0, b2 = 0;
  smooth_step(t, &w0, &w1, &w2);
  BACK
  const double v0 = w0 * b0, v1 = w1 * b0 - w0 * b1, v2 = w2 * b0 + w0 * b2 - 2 * w1 * b1;
  for (int j = 0; j < MOTORS; ++j) {
    qdd[j] = v0 * qdd[j] + 2 * v1 * qd[j] + v2 * q[j];
    qd[j] = v0 * qd[j] + v1 * q[j];
    q[j] = v0 * q[j];
  }
"""
STEP = """static void smooth_step(double t, double *w, double *wd, double *wdd) {
  const double ramp = RAMP, u = t < 0 ? 0 : t > ramp ? 1 : t / ramp;
  *w = u * u * u * (10 + u * (-15 + 6 * u));
  *wd = 30 * u * u * (1 + u * (-2 + u)) / ramp;
  *wdd = 60 * u * (1 + u * (-3 + 2 * u)) / (ramp * ramp);
}

"""


def motion_files(
    name: str, motors: Sequence[str], pieces: Polynomials, exact: Waves | None, period: float | None, origin: str
) -> dict[str, str]:
    """File name -> text: one .h and one .c, no allocation, no dependency but math.h."""
    word = identifier(name)
    word = word if word not in OWN else f"m_{word}"
    end = _end(pieces, exact, period)
    return {
        f"{word}.h": _header(word, name, motors, end, period, origin),
        f"{word}.c": _source(word, name, pieces, exact, period, end),
    }


def _end(pieces: Polynomials, exact: Waves | None, period: float | None) -> float:
    """When the last positions are reached; never for waves without an end and what is repeated."""
    if period is not None:
        return np.inf
    return exact.duration if exact is not None else float(pieces.breaks[-1])


def _header(word: str, name: str, motors: Sequence[str], end: float, period: float | None, origin: str) -> str:
    upper = word.upper()
    taken = {f"{upper}_{own}" for own in ("H", "MOTORS", "END", "PERIOD")}
    indices = []
    for k, motor in enumerate(motors):
        index = identifier(f"{upper}_{motor}").upper()
        index = index if index not in taken else f"{index}_{k}"
        taken.add(index)
        indices.append(f"#define {index} {k}  /* {motor} */")
    last = [f"#define {upper}_END {_number(end)}  /* s: from here on the last positions are held */"]
    lines = [
        f"/* {name}: {MARK} {metadata.version('parflex')}; do not edit.",
        f" * {origin}",
        " *",
        f" * {word}(t, q, qd, qdd) gives positions (m, rad), velocities and accelerations of the motors at t in s.",
        " * It returns -1 before t = 0, where the first positions are held at rest, 0 in the motion, and 1 behind its",
        " * end, where the last ones are. It needs no memory of its own and may be called at any times in any order.",
        " */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {upper}_MOTORS {len(motors)}",
        *(last if np.isfinite(end) else ["/* the motion has no end */"]),
        *([f"#define {upper}_PERIOD {_number(period)}  /* s */"] if period is not None else []),
        "/* places of the motors in q, qd and qdd */",
        *indices,
        "",
        f"int {word}(double t, double *q, double *qd, double *qdd);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        f"#endif /* {upper}_H */",
        "",
    ]
    return "\n".join(lines)


def _source(word: str, name: str, pieces: Polynomials, exact: Waves | None, period: float | None, end: float) -> str:
    upper = word.upper()
    lines = [f"/* {name}: {MARK}; do not edit. */", f'#include "{word}.h"', "", "#include <math.h>", ""]
    lines += [f"enum {{ MOTORS = {upper}_MOTORS }};"]
    text = "\n".join([*lines, *(_piece_tables(pieces, period) if exact is None else _wave_tables(exact))]) + "\n"
    if exact is not None and exact.ramp:
        text += STEP.replace("RAMP", _number(exact.ramp))
    text += "static void moving(double t, double *q, double *qd, double *qdd) {\n"
    text += POLYNOMIALS if exact is None else _wave_body(exact)
    return text + "}\n\n" + _bounds(word, period, end)


def _bounds(word: str, period: float | None, end: float) -> str:
    """The function that is called: rest before the start and behind the end."""
    lines = [
        f"int {word}(double t, double *q, double *qd, double *qdd) {{",
        f"  const int where = t < 0 ? -1 : {f't > {_number(end)} ? 1 : 0' if np.isfinite(end) else '0'};",
    ]
    inside = "t < 0 ? 0 : t" if not np.isfinite(end) else f"t < 0 ? 0 : t > {_number(end)} ? {_number(end)} : t"
    if period is not None:
        inside = f"t < 0 ? 0 : fmod(t, {_number(period)})"
    lines += [
        f"  moving({inside}, q, qd, qdd);",
        "  if (where)",
        "    for (int j = 0; j < MOTORS; ++j) qd[j] = qdd[j] = 0;",
        "  return where;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _piece_tables(pieces: Polynomials, period: float | None) -> list[str]:
    kept = len(pieces.breaks) if period is None else int(np.searchsorted(pieces.breaks, period * (1 - 1e-12)))
    breaks, powers = pieces.breaks[:kept], pieces.coefficients[:kept]
    used = 1 + max(np.flatnonzero(np.any(powers != 0, axis=(0, 2))), default=0)
    rows = ["{" + ", ".join("{" + _numbers(row) + "}" for row in piece[:used]) + "}" for piece in powers]
    return [
        f"enum {{ PIECES = {kept}, POWERS = {used} }};",
        f"static const double breaks[PIECES] = {{{_numbers(breaks)}}};",
        "static const double powers[PIECES][POWERS][MOTORS] = {",
        *(f"  {row}," for row in rows),
        "};",
        "",
    ]


def _wave_tables(waves: Waves) -> list[str]:
    lines = [f"static const double start[MOTORS] = {{{_numbers(waves.start)}}};"]
    tables = {"sine": waves.sine} if waves.sweep else {"sine": waves.sine, "cosine": waves.cosine}
    lines.append(f"enum {{ WAVES = {len(waves.sine)} }};")
    for word, rows in tables.items():
        inner = ", ".join("{" + _numbers(row) + "}" for row in rows)
        lines.append(f"static const double {word}[WAVES][MOTORS] = {{{inner}}};")
    if not waves.sweep:
        lines.append(f"static const double rates[WAVES] = {{{_numbers(2 * np.pi * waves.frequencies)}}};")
    return [*lines, ""]


def _wave_body(waves: Waves) -> str:
    text = SINES if not waves.sweep else CHIRP.replace("PHASE", _phase(waves))
    if waves.ramp:
        back = ""
        if np.isfinite(waves.duration):
            back = f"smooth_step({_number(waves.duration)} - t, &b0, &b1, &b2);"
        text += FADE.replace("BACK", back)
    return text + "  for (int j = 0; j < MOTORS; ++j) q[j] += start[j];\n"


def _phase(waves: Waves) -> str:
    first, last = 2 * np.pi * waves.frequencies
    if waves.sweep == "linear":
        push = _number((last - first) / waves.duration)
        begin = _number(first)
        return f"const double push = {push}, speed = {begin} + push * t, phase = {begin} * t + push * t * t / 2;"
    growth = float(np.log(last / first) / waves.duration)
    if growth == 0:
        return f"const double push = 0, speed = {_number(first)}, phase = speed * t;"
    rate = f"const double growth = {_number(growth)}, speed = {_number(first)} * exp(growth * t);"
    return f"{rate}\n  const double push = growth * speed, phase = {_number(first)} * expm1(growth * t) / growth;"


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(map(_number, values))


def _number(value: float) -> str:
    return repr(float(value))
