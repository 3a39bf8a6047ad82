"""Through rows of values at given times: a spline without stops, or straight lines with rounded corners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.errors import InputError
from parflex.simulation.inputs.polynomials import Polynomials, hermite

Array = np.ndarray


def splined(times: Sequence[float] | Array, values: Array) -> Polynomials:
    """A quintic spline through rows, at rest at both ends: its first four derivatives are continuous."""
    from scipy.interpolate import make_interp_spline

    rest = [(1, np.zeros(values.shape[1])), (2, np.zeros(values.shape[1]))]
    spline = make_interp_spline(times, values, k=5, bc_type=(rest, rest))
    return hermite(np.asarray(times, dtype=float), *(spline(times, order) for order in range(3)))


def blended(times: Sequence[float] | Array, values: Array, blend: float, key: str) -> Polynomials:
    """Constant speeds between rows, and quintics from `blend` before to `blend` behind each corner.

    The motion rests at both ends: their corners lie `blend` inside, so that quintics begin and end there.
    """
    t = np.array(times, dtype=float)
    t[0] += blend
    t[-1] -= blend
    gaps = np.diff(t)
    if gaps.min() < 2 * blend:
        k = int(np.argmin(gaps))
        raise InputError(
            f"the blends of {blend:g} s overlap between the times {times[k]:g} and {times[k + 1]:g} s",
            key=f"{key}.blend", value=blend, hint="make 'blend' shorter, or the times longer",
        )  # fmt: skip
    slopes = np.diff(values, axis=0) / gaps[:, None]
    still = np.zeros((1, values.shape[1]))
    before, behind = np.concatenate([still, slopes]), np.concatenate([slopes, still])
    knots = np.stack([t - blend, t + blend], axis=1).ravel()
    positions = np.stack([values - blend * before, values + blend * behind], axis=1).reshape(len(knots), -1)
    rates = np.stack([before, behind], axis=1).reshape(len(knots), -1)
    return hermite(knots, positions, rates, np.zeros_like(rates))
