"""Functions of time sampled in parts: where the velocity jumps, one part ends and the next begins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parflex.errors import InputError

Array = np.ndarray
Row = Callable[[float], Array]  # position, velocity, acceleration of all motors
SUSPICIOUS = 1e-3  # of the largest velocity: what accelerations do not explain between two samples is checked
HALVINGS = 30  # from a millisecond to a picosecond
APART = 1e-3  # of the time between samples: those nearer to a jump are left out, since short pieces are rough


def smooth_parts(row: Row, t: Array, rows: Array) -> list[tuple[Array, Array, Array, Array]]:
    """Times, positions, velocities and accelerations of each part without a jump."""
    speed = float(np.abs(rows[:, 1]).max(initial=0.0))
    apart = APART * float(np.diff(t).max(initial=0.0))
    parts, begin, first = [], 0, None  # first: what a jump leaves at the begin of a part
    for k in range(len(t) - 1):
        found = None
        if _unexplained(t[k], rows[k], t[k + 1], rows[k + 1]) > SUSPICIOUS * speed:
            found = _jump(row, t[k], rows[k], t[k + 1], rows[k + 1])
        if found is None:
            continue
        moment, before, behind = found
        behind = np.concatenate([before[:1], behind[1:]])  # positions do not jump
        inside = [i for i in range(begin, k + 1) if t[i] < moment - apart]
        part = _part(t[inside], rows[inside], first, (moment, before))
        if part is not None:
            parts.append(part)
        first, begin = (moment, behind), k + 1 if t[k + 1] > moment + apart else k + 2
    last = list(range(begin, len(t)))
    part = _part(t[last], rows[last], first, None)
    if part is not None:
        parts.append(part)
    _check_derivatives(parts, speed)
    return parts


def _part(t: Array, rows: Array, first: tuple | None, last: tuple | None) -> tuple[Array, Array, Array, Array] | None:
    """Samples between two jumps; None where there is no time between them."""
    times = [*([first[0]] if first else []), *t, *([last[0]] if last else [])]
    values = np.array([*([first[1]] if first else []), *rows, *([last[1]] if last else [])])
    return (np.array(times), values[:, 0], values[:, 1], values[:, 2]) if len(times) > 1 else None


def _unexplained(t: float, row: Array, after: float, next_row: Array) -> float:
    """Change of velocity less the integral of the acceleration, at most."""
    return float(np.abs(next_row[1] - row[1] - (after - t) * (row[2] + next_row[2]) / 2).max(initial=0.0))


def _jump(row: Row, t: float, before: Array, after: float, behind: Array) -> tuple[float, Array, Array] | None:
    """The time of a jump between two samples with what is before and behind it; None where all is smooth."""
    size = _unexplained(t, before, after, behind)
    for _ in range(HALVINGS):
        middle = (t + after) / 2
        here = row(middle)
        if _unexplained(t, before, middle, here) > _unexplained(middle, here, after, behind):
            after, behind = middle, here
        else:
            t, before = middle, here
        if _unexplained(t, before, after, behind) < 0.3 * size:
            return None
    return after, before, behind


def _check_derivatives(parts: list[tuple[Array, Array, Array, Array]], speed: float) -> None:
    """Refuse velocities that are not the rates of change of positions: motors would shake between the samples."""
    for t, position, velocity, _ in parts:
        h = np.diff(t)[:, None]
        mean = np.diff(position, axis=0) / h
        off = np.abs(mean - (velocity[1:] + velocity[:-1]) / 2) - 1e-11 * np.abs(position[1:]) / h
        scale = max(speed, float(np.abs(mean).max(initial=0.0)))
        if np.any(off > 0.25 * scale):
            k = int(np.argmax(off.max(axis=1)))
            raise InputError(
                f"the velocities of the motion are not the derivatives of its positions at t = {t[k]:.4g} s",
                key="motion",
                value=float(t[k]),
                hint="correct the function, or give a table of positions only",
            )
