"""Parameters that no bodies have are told; those that some bodies have are not."""

from __future__ import annotations

import numpy as np
import pytest
from support.sliding_axis_records import ROBOT, followed, noisy

import parflex
from parflex.identification.doubts import impossible_bodies
from parflex.identification.estimates.physical import never_negative
from parflex.identification.unknowns import Unknown

BODY = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")


def drawn(rng):
    """The ten numbers of a random heap of a few points, some of them far away."""
    at, m = rng.standard_normal((3, 3)) * rng.choice([0.1, 1.0, 10.0]), rng.uniform(0, 1, 3)
    inertia = (m * (at**2).sum(axis=1)).sum() * np.eye(3) - (at.T * m) @ at
    return np.array([*inertia[np.triu_indices(3)], *(m @ at), m.sum()])


@pytest.mark.few
@pytest.mark.parametrize(
    ("weights", "never"),
    [
        ({"M": 1.0}, True),
        ({"ZZ": 1.0, "M": 0.25, "MX": -1.0}, True),  # about a point half a metre away
        ({"ZZ": 1.0, "M": 0.24, "MX": -1.0}, False),  # by 4 %
        ({"M": 1.0, "MX": -2.5}, False),  # of a rod that is shared by its ends: its centre may be beyond them
        ({"XX": 1.0, "YY": 1.0, "ZZ": -1.0}, True),  # the triangle of the moments of inertia
        ({"XX": 1.0, "YY": -1.0}, False),
    ],
)  # fmt: skip
def test_groups_that_are_never_negative_are_those_of_no_heap_of_points(weights, never):
    every = [Unknown(f"{symbol}[x]", symbol, 0, "", 0.0) for symbol in BODY]
    row = np.array([weights.get(symbol, 0.0) for symbol in BODY])
    assert never_negative(ROBOT, every, row) == never
    rng = np.random.default_rng(0)
    lowest = min(float(row @ body) / float(np.abs(row) @ np.abs(body)) for body in (drawn(rng) for _ in range(3000)))
    if never:
        assert lowest > -1e-12
    elif weights != {"ZZ": 1.0, "M": 0.24, "MX": -1.0}:  # chance does not find a heap in a ball of 0.1 m there
        assert lowest < 0
    else:
        point = np.array([0, 0, 0, 0.25, 0, 0.25, 0.5, 0, 0, 1])  # of a kilogram half a metre away
        assert row @ point < 0
    of_joints = [Unknown(f"{symbol}[x]", symbol, 0, "", 0.0) for symbol in ("FV", "offset")]
    assert [never_negative(ROBOT, of_joints, weight) for weight in np.eye(2)] == [True, False]


def told(load, monkeypatch=None, without=False):
    if without:
        monkeypatch.setattr(impossible_bodies, "find_spec", lambda name: None)
    return parflex.identify(ROBOT, noisy(followed(1, load))).warnings


@pytest.mark.verify
def test_masses_that_no_bodies_have_are_told(monkeypatch):
    pytest.importorskip("clarabel")
    (text,) = told(-4.0)  # kg: a platform of -2.1 kg, whose group no sign forbids
    assert "no bodies have these parameters" in text and "in place of" in text and "deviations off" in text
    # -1.7 kg alone are 75 deviations below zero; centres of legs that are elsewhere reach some, at the cost of others
    assert float(text.partition("all parameters together ")[2].split(":")[0]) > 30
    assert not told(-4.0, monkeypatch, without=True)
