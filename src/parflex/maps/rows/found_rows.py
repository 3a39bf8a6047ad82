"""Machine code for what was found at rows of poses: signs of shapes, and modes that go to the rows that were asked."""

from __future__ import annotations

import math

import numpy as np

from parflex.codegen.loop_functions import compiled

Array = np.ndarray
NEARLY = 0.9  # of the largest component, as where one pose is asked


@compiled
def put_signs(twists: Array, units: Array) -> None:
    """Shapes (poses x modes x components): the first component that is nearly as large as the largest is positive."""
    count = twists.shape[2]
    for pose in range(twists.shape[0]):
        for mode in range(twists.shape[1]):
            largest, sign = 0.0, 0.0
            for k in range(count):
                largest = max(largest, abs(twists[pose, mode, k]) * units[k])
            for k in range(count - 1, -1, -1):  # the first one comes last: no branch, since which it is is not foreseen
                own = twists[pose, mode, k]
                sign = (-1.0 if own < 0.0 else 1.0) if abs(own) * units[k] >= NEARLY * largest else sign
            for k in range(count):
                twists[pose, mode, k] *= sign


@compiled
def put_modes(
    x: Array, twists: Array, rows: Array, least: float, frequencies: Array, shapes: Array, done: Array
) -> int:
    """Frequencies and shapes into their `rows`, where `done`; how many have no shape though it is asked for.

    These are not done, nor are those whose lowest mode has no more than the share `least` of the highest.
    """
    modes, untold = x.shape[1], 0
    asked = shapes.shape[2]  # none where shapes are not
    for k in range(len(rows)):
        if done[k] == 0 or not x[k, 0] > least * x[k, modes - 1]:
            done[k] = 0
            continue
        rest = 0.0
        for mode in range(modes if asked > 0 else 0):
            part = 0.0
            for n in range(asked):
                part += 0.0 * twists[k, mode, n]  # not a number where one is not finite
            rest += part  # sums that do not wait for each other
        if rest != rest:
            done[k] = 0
            untold += 1
            continue
        row = rows[k]
        for mode in range(modes):
            frequencies[row, mode] = math.sqrt(x[k, mode]) / (2.0 * math.pi)
            for n in range(asked):
                shapes[row, mode, n] = twists[k, mode, n]
    return untold
