"""The largest value of a response on the way of a motion, with its slopes at the instants that reach it.

The instant moves as numbers change, but the value has no slope in time there: theory (64), with time for the poses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.design.answers import joined, value_of
from parflex.design.design_state import DesignState
from parflex.design.on_the_way.motion_instants import MotionInstants
from parflex.errors import InputError

Array = np.ndarray
At = Callable[[float, bool], float]
# instants of a motion, one after the other until nothing larger is found; no multiples, so that no vibration is met at
# the same phases again
STEPS = (42, 70, 118, 200, 336, 570)
STILL = 1e-3  # relative change: friction jumps where motors turn back, and its largest value is a limit
NEAR = 0.9  # of the largest value: instants from which a higher top may be reached
NODES = 9  # of an interpolation about a top
ROUNDS = 4  # of closer and closer interpolations
EXACT = 1e-12  # relative: an interpolation that is not further off has the instant too
TOGETHER = 1e-9  # relative: other instants that come as near are active too


@dataclass(frozen=True)
class Top:
    """A value at an instant, `behind` or before a jump of the motion."""

    value: float
    t: float
    behind: bool = False


def largest_on_the_way(state: DesignState, response: str, function: Callable[[DesignState], Any]) -> Any:
    """The largest size of a function of the design over the motion that a response names behind its '@'."""
    instants = MotionInstants(state, response.rpartition("@")[2], response)

    def at(t: float, behind: bool) -> float:
        return abs(value_of(function(instants.state_at(t, behind, plain=True))))

    found = _tops(at, instants, STEPS[0])
    for steps in STEPS[1:]:
        before, found = found, _tops(at, instants, steps)
        if abs(found[0].value - before[0].value) <= STILL * found[0].value:
            break
    else:
        raise InputError(
            f"the largest value of '{response}' is not found with {STEPS[-1]} instants",
            key="response",
            value=response,
            hint="name a shorter motion, or one with fewer periods",
        )
    if not state.keys:
        return found[0].value
    active = _active(found, instants)
    return joined([abs(function(instants.state_at(top.t, top.behind))) for top in active], state.count, False)


def _active(tops: list[Top], instants: MotionInstants) -> list[Top]:
    """Instants that reach the largest value, each once."""
    found: list[Top] = []
    for top in tops:
        if top.value < tops[0].value * (1 - TOGETHER):
            break
        near = [one for one in found if abs(one.t - top.t) <= 1e-6 * instants.length]
        pushes = [instants.motors_at(one.t, one.behind)[2] for one in (top, *near)]
        if not any(np.allclose(push, pushes[0]) for push in pushes[1:]):
            found.append(top)
    return found


def _tops(at: At, instants: MotionInstants, steps: int) -> list[Top]:
    """Local maxima, largest first: the best of equal intervals between jumps, each made exact."""
    smooth = [
        [Top(at(t, k == 0), t, k == 0) for k, t in enumerate(times.tolist())] for times in instants.smooth_parts(steps)
    ]
    largest = max(top.value for part in smooth for top in part)
    found: list[Top] = []
    for part in smooth:
        for k, top in enumerate(part):
            low, high = part[max(k - 1, 0)], part[min(k + 1, len(part) - 1)]
            if top.value >= max(low.value, high.value, NEAR * largest):
                found += [top, _refined(at, low.t, high.t)]
    return sorted(found, key=lambda top: -top.value)


def _refined(at: At, low: float, high: float) -> Top:
    """The top between two instants, by interpolation with polynomials about it."""
    best = Top(-np.inf, low)
    nodes = np.polynomial.chebyshev.chebpts1(NODES)
    a, b = low, high
    for _ in range(ROUNDS):
        middle, half = (a + b) / 2, (b - a) / 2
        values = np.array([at(float(middle + half * x), False) for x in nodes])
        fit = np.polynomial.chebyshev.chebfit(nodes, values, NODES - 1)
        still = np.polynomial.chebyshev.chebroots(np.polynomial.chebyshev.chebder(fit)) if values.any() else np.zeros(0)
        inside = np.real(still[(np.abs(np.imag(still)) < 1e-9) & (np.abs(np.real(still)) <= 1)])
        if not len(inside):
            break
        guesses = np.polynomial.chebyshev.chebval(inside, fit)
        x, guess = float(inside[np.argmax(guesses)]), float(guesses.max())
        t = middle + half * x
        top = Top(at(t, False), t)
        exact = abs(top.value - guess) <= EXACT * abs(guess)
        if top.value >= best.value * (1 - EXACT):  # of two as good the later round knows the instant better
            best = top
        if exact:
            break
        a, b = max(low, t - half / 4), min(high, t + half / 4)
    return best
