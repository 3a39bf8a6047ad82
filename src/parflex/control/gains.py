"""Gains of second-order error dynamics, from how fast and how far an error is to overshoot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from parflex.errors import InputError


@dataclass(frozen=True)
class Gains:
    """`Kp` (1/s^2) on errors and `Kv` (1/s) on their rates.

    Attributes
    ----------
    Kp : float
        On errors (1/s^2).
    Kv : float
        On error rates (1/s).
    """

    Kp: float
    Kv: float


def gains_from(overshoot: float = 0.1, peak_time: float = 0.1) -> Gains:
    """Gains for which a step of the error has this overshoot and peak time.

    e_ddot + Kv e_dot + Kp e = 0 with damping ratio z and frequency w: the overshoot is exp(-pi z / sqrt(1 - z^2)), the
    peak comes after pi / (w sqrt(1 - z^2)); Kp = w^2, Kv = 2 z w.

    Parameters
    ----------
    overshoot : float, default 0.1
        Overshoot of a step of the error; 0.1 is 10 % (dimensionless).
    peak_time : float, default 0.1
        Time of the peak of such a step (s).

    Returns
    -------
    Gains
        `Kp` in 1/s^2, `Kv` in 1/s.
    """
    if not _number(overshoot) or not 0 < overshoot < 1:
        raise InputError(
            "an overshoot must lie between 0 and 1", key="overshoot", value=overshoot, hint="10 % is written 0.1"
        )
    if not _number(peak_time) or not 0 < peak_time < math.inf:
        raise InputError(
            "a peak time must be positive", key="peak_time", value=peak_time, hint="give seconds, e.g. 0.1"
        )
    slope = -math.log(overshoot) / math.pi  # z / sqrt(1 - z^2)
    damped = math.pi / peak_time
    return Gains(damped**2 * (1 + slope**2), 2 * slope * damped)


def checked_gains(Kp: Any, Kv: Any) -> Gains:
    """Gains as they are given."""
    for key, value in (("Kp", Kp), ("Kv", Kv)):
        if not _number(value) or not 0 <= value < math.inf:
            raise InputError(f"'{key}' is not a gain", key=key, value=value, hint="give zero or more")
    return Gains(float(Kp), float(Kv))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
