"""Descent by the exact gradient with steps that back off from motions that cannot be (BFGS)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
ENOUGH = 1e-4  # of the decrease that the gradient promises
CAREFUL = 0.1  # of the longest step, where nothing is known of the curvature
HALVINGS = 25
SETTLED = 1e-7  # of the value, by which a step may still lower it


def descended(
    valued: Callable[[Array], tuple[float, Array]], x: Array, rounds: int, longest: float, settled: float = SETTLED
) -> Array:
    """The lowest point found; steps change no number by more than `longest`. A value that is infinite is refused."""
    value, slope = valued(x)
    H, fresh = np.eye(len(x)), True
    for _ in range(rounds):
        way = -H @ slope
        if not way @ slope < 0:
            H, way, fresh = np.eye(len(x)), -slope, True
        size = np.abs(way).max(initial=0.0)
        if size == 0:
            break
        length = min(1.0, longest / size) if not fresh else CAREFUL * longest / size
        for _ in range(HALVINGS):
            after, turned = valued(x + length * way)
            if after <= value + ENOUGH * length * float(way @ slope):
                break
            length /= 2
        else:
            if fresh:
                break
            H, fresh = np.eye(len(x)), True
            continue
        step, change = length * way, turned - slope
        done = value - after <= settled * max(1.0, abs(value))
        x, value, slope = x + step, after, turned
        product = float(step @ change)
        if product > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            if fresh:
                H *= product / float(change @ change)
            moved = H @ change
            H += (product + change @ moved) / product**2 * np.outer(step, step)
            H -= (np.outer(moved, step) + np.outer(step, moved)) / product
            fresh = False
        if done:
            break
    return x
