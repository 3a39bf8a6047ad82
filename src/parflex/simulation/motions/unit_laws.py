"""Laws of one move, from 0 to 1 and from rest to rest, as piecewise polynomials of time; one list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import Polynomial

from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.inputs.quintics import STEP

Array = np.ndarray
SEPTIC = (0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0)  # also the jerk vanishes at both ends
LINEAR = (0.0, 1.0)


def unit_law(word: str, duration: float, ramp: float = 0.0) -> Polynomials:
    """The share of the way from 0 to 1 in a time that begins at zero; 1 is held behind it."""
    return UNIT_LAWS[word](duration, ramp)


def _one_piece(powers: Sequence[float]) -> Callable[[float, float], Polynomials]:
    def law(duration: float, _ramp: float) -> Polynomials:
        return _pieces([0.0, duration], [Polynomial(powers)(Polynomial([0.0, 1 / duration]))])

    return law


def _ramped(rise: Sequence[float]) -> Callable[[float, float], Polynomials]:
    """Constant speed between two flanks, on which the speed goes as `rise` from 0 to 1."""

    def law(duration: float, ramp: float) -> Polynomials:
        top = 1 / (duration - ramp)
        if ramp == 0:
            return _pieces([0.0, duration], [Polynomial([0.0, top])])
        way = top * ramp * Polynomial(rise).integ()  # in shares of the flank
        up = way(Polynomial([0.0, 1 / ramp]))
        down = 1 - way(Polynomial([1.0, -1 / ramp]))
        middle = duration - 2 * ramp
        if middle <= 1e-12 * duration:
            return _pieces([0.0, ramp, duration], [up, down])
        between = Polynomial([way(1.0), top])
        return _pieces([0.0, ramp, ramp + middle, duration], [up, between, down])

    return law


UNIT_LAWS: dict[str, Callable[[float, float], Polynomials]] = {
    "quintic": _one_piece(STEP),
    "septic": _one_piece(SEPTIC),
    "trapezoid": _ramped(LINEAR),
    "constant-speed": _ramped(STEP),
}


def _pieces(breaks: Sequence[float], parts: Sequence[Polynomial]) -> Polynomials:
    """Polynomials of the time since each break, and 1 behind the last."""
    coefficients = np.zeros((len(breaks), max(len(part.coef) for part in parts), 1))
    for k, part in enumerate(parts):
        coefficients[k, : len(part.coef), 0] = part.coef
    coefficients[-1, 0, 0] = 1.0
    return Polynomials(np.array(breaks, dtype=float), coefficients)


def scaled(law: Polynomials, begin: float, first: Array, way: Array) -> Polynomials:
    """Channels that start somewhere at a time and go their ways by the same law."""
    coefficients = law.coefficients * way[None, None, :]
    coefficients[:, 0] += first
    return Polynomials(law.breaks + begin, coefficients)
