"""Intervals of identified parameters hold what they say, over repetitions of records with new noise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from support.pinocchio_trees import ROBOTS, Array, Repeated, three_rrr

VERIFY = pytest.mark.verify
MANY = 200
FEWER = {("gough-stewart", "didim"): 50}


def shares(case: Repeated, estimator: str, count: int) -> tuple[Array, Array, list[str]]:
    """Of each base parameter, how many of the intervals of 95 % hold what it is; and of the white ones."""
    found = [case.found(estimator, seed) for seed in range(count)]
    error, shown, white = (np.array([one[k] for one in found]) for k in range(3))
    return (np.abs(error) < 1.96 * shown).mean(axis=0), (np.abs(error) < 1.96 * white).mean(axis=0), found[0][3]


@pytest.mark.verify
def test_intervals_of_a_few_records_hold_what_they_say():
    held, _, names = shares(three_rrr(led=True), "iv", 8)
    assert len(names) == 25
    # 200 numbers that are correlated within a record: 0.95 with a deviation of about 0.02
    assert 0.88 < held.mean() < 0.995


@VERIFY
@pytest.mark.parametrize(("name", "estimator"), list(ROBOTS))
def test_intervals_of_many_records_hold_what_they_say(name, estimator, figure):
    case, count = ROBOTS[name, estimator](), FEWER.get((name, estimator), MANY)
    held, white, names = shares(case, estimator, count)
    worst = int(np.argmin(held))
    # of fewer repetitions, what a share of 0.88 falls below once in a thousand times
    least = 0.88 if count == MANY else float(scipy.stats.binom.ppf(1e-3, count, 0.88)) / count
    figure(f"{name}, {estimator}: of {count}, share of intervals that hold, mean", float(held.mean()), "0.92 to 0.98")
    figure(f"{name}, {estimator}: lowest, of {names[worst]}", float(held[worst]), f"{least:.2f}")
    figure(f"{name}, {estimator}: by white deviations, mean", float(white.mean()))
    figure(f"{name}, ols: mean", float(shares(case, "ols", min(count, MANY // 4))[0].mean()))
    assert 0.92 < held.mean() < 0.98
    assert held.min() > least
