"""Spikes of records: single samples far from what their neighbours say, replaced by it before any filter spreads them.

Two neighbours on either side say where a sample is, by a cubic. A spike leaves a pattern in the residuals of five
samples that neither a step, such as that of friction where a motor turns back, nor a pulse of more samples leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray
SPIKE = 10.0  # times the 95 % quantile of residuals, at least: the largest of a million of white noise has 2.5
USUAL = 3.0  # times the median of residuals nearby: about the 95 % quantile of white noise
ALIKE = 0.25  # of a spike: by so much the residuals of five samples may miss its pattern; noise of 0.1 makes 0.15
BESIDE = 10  # samples before and behind
MANY = 0.01  # of the samples: what comes more often is no spike
PATTERN = {-2: 1 / 6, -1: -2 / 3, 1: -2 / 3, 2: 1 / 6}  # of a spike of one in the residuals of its neighbours


def without_spikes(word: str, motors: Sequence[str], t: Array, values: Array) -> tuple[Array, list[str]]:
    """Columns without their spikes, and what was done in words."""
    found, told = values, []
    for k, motor in enumerate(motors):
        at = spikes(values[:, k])
        if not len(at) or len(at) > MANY * len(t):
            continue
        found = values.copy() if found is values else found
        found[at, k] = values[at, k] - _residuals(values[:, k])[at]
        several = f"{len(at)} single samples" if len(at) > 1 else "one sample"
        told.append(
            f"{word} of '{motor}' leave the others in {several}, first at t = {t[at[0]]:.6g} s: replaced by what "
            "neighbours say"
        )
    return found, told


def spikes(column: Array) -> Array:
    """Which samples are spikes."""
    left = _residuals(column)
    steps = np.abs(np.diff(column))
    line = steps[steps > 0].min(initial=np.inf)  # of an encoder: single ones come and go
    if not np.isfinite(line):
        return np.zeros(0, dtype=int)
    least = SPIKE * max(line, float(np.quantile(np.abs(left), 0.95)))
    far = np.flatnonzero(np.abs(left) > least)
    return np.array([k for k in far if _alone(left, int(k))], dtype=int)


def _alone(left: Array, k: int) -> bool:
    """Whether a large residual is that of one sample."""
    if not 4 <= k < len(left) - 4:
        return False
    near = np.abs(left[max(k - BESIDE, 0) : k + BESIDE + 1])
    if abs(left[k]) <= SPIKE * USUAL * float(np.median(near)):
        return False
    return all(abs(left[k + j] - share * left[k]) <= ALIKE * abs(left[k]) for j, share in PATTERN.items())


def _residuals(column: Array) -> Array:
    """What samples differ by from the cubic of two neighbours on either side."""
    found = np.zeros(len(column))
    found[2:-2] = column[2:-2] - (4 * (column[1:-3] + column[3:-1]) - column[:-4] - column[4:]) / 6
    return found
