"""Gains of drives from a payload that one of several records has, and few instants that count by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from parflex.identification.estimates.drive_gains import total_least_squares
from parflex.identification.estimates.least_squares import EffortRows


@pytest.mark.parametrize("seed", range(3))
def test_every_resampled_record_keeps_its_payload(seed):
    """Slow noise leaves few blocks; of those without the payload no gain is known, and they divided by zero."""
    rng, count, factors, theta = np.random.default_rng(seed), 60, np.array([1.1, 0.9]), np.array([2.0, -1.0, 0.5])
    t = np.linspace(0, 6, 2 * count)[:, None, None]
    W = np.sin(t * np.array([0.9, 1.7, 2.9]) + rng.uniform(0, 6, (1, 2, 3)))
    known = np.zeros((2 * count, 2))
    known[count:] = 3 + np.sin(5 * t[count:, 0])
    slow = np.cumsum(rng.standard_normal((2 * count, 2)), axis=0) * 2e-3
    raw = (W @ theta + known) / factors + slow - slow.mean(axis=0)
    rows = EffortRows(W, raw - known, (0, count), known=known)
    fitted, found, deviation, white = total_least_squares(rows)
    assert np.isfinite([*fitted.values, *deviation, *white]).all() and (deviation > 0).all()
    assert found == pytest.approx(factors, rel=0.05) and deviation.max() < 0.05  # noise is a hundredth of efforts
