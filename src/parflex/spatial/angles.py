"""Sines and cosines of angles in input files: exact where the angle is a multiple of 15 degrees.

The cosine of the number nearest to pi/2 is 6e-17, not zero. In a program such a number costs operators, and numbers
that symmetry makes equal must be equal to the last digit to be recognised. So an angle within rounding of a multiple of
15 degrees is taken for that multiple, and all four quadrants share one table.
"""

from __future__ import annotations

import math
from typing import Any

from parflex.spatial.varied import is_varied

STEP = math.pi / 12
QUADRANT = (  # sines of 0, 15, ... 90 degrees
    0.0,
    (math.sqrt(6) - math.sqrt(2)) / 4,
    0.5,
    math.sqrt(0.5),
    math.sqrt(0.75),
    (math.sqrt(6) + math.sqrt(2)) / 4,
    1.0,
)
ROUNDING = 4 * 2.0**-52  # of an angle computed by a few operations, such as 150*(pi/180)
LARGEST = 1000.0  # rad: rounding of larger ones says nothing about what was meant


def sine(angle: Any) -> Any:
    """Sine, exact at multiples of 15 degrees."""
    if is_varied(angle):
        return angle.sin()
    steps = _steps(angle)
    return math.sin(angle) if steps is None else _table(steps)


def cosine(angle: Any) -> Any:
    """Cosine, exact at multiples of 15 degrees."""
    if is_varied(angle):
        return angle.cos()
    steps = _steps(angle)
    return math.cos(angle) if steps is None else _table(steps + 6)


def tangent(angle: Any) -> Any:
    """Tangent; at a right angle a ZeroDivisionError, as there is none."""
    return sine(angle) / cosine(angle)


def _steps(angle: float) -> int | None:
    """Of how many steps an angle is the multiple, within rounding."""
    if not abs(angle) < LARGEST:
        return None
    steps = round(angle / STEP)
    return steps if abs(angle - steps * STEP) <= ROUNDING * abs(angle) else None


def _table(steps: int) -> float:
    half, steps = divmod(steps % 24, 12)
    value = QUADRANT[min(steps, 12 - steps)]
    return -value if half and value else value
