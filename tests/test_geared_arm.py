"""A motor behind a gear with another zero, unit or ratio, and efforts with bursts of outliers: all are reported."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex.errors import ParflexError

GEAR, LENGTH = 0.02, 0.4
FILE = (
    'format = 1\nname = "geared"\nmotion = "planar"\ngravity = [0, -9.81, 0]\n'
    '[[frame]]\nname = "motor"\njoint = "revolute"\nactuated = true\nplace = {{ position = [0, -0.3, 0] }}\n'
    "motor_inertia = 0.0002\n"
    '[[frame]]\nname = "shoulder"\njoint = "revolute"\ninertia = {{ M = 3, ZZ = 0.1, MX = 0.6 }}\n'
    '[[frame]]\nname = "elbow"\nparent = "shoulder"\njoint = "revolute"\nactuated = true\n'
    "place = {{ position = [0.4, 0, 0] }}\ninertia = {{ M = 2, ZZ = 0.15, MX = 0.4 }}\n"
    '[[coupling]]\nname = "gear"\njoint = "shoulder"\nterms = {{ motor = {} }}\n'
)


def recorded(seed=0, noise=2e-3):
    """An arm of two links by its equations of motion, the first behind a gear."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, 6, 2e-3)
    w, size, phase = 2 * np.pi * np.array([0.4, 0.9, 1.5]), np.array([0.5, 0.3, 0.2]), rng.uniform(0, 6, (2, 3))
    q1, q2 = (np.sin(np.outer(t, w) + one) @ size for one in phase)
    v1, v2 = (np.cos(np.outer(t, w) + one) @ (size * w) for one in phase)
    a1, a2 = (-np.sin(np.outer(t, w) + one) @ (size * w**2) for one in phase)
    ZZ1, MX1, ZZ2, MX2, M2, g = 0.12, 0.55, 0.14, 0.42, 2.1, 9.81
    c, s = LENGTH * MX2 * np.cos(q2), LENGTH * MX2 * np.sin(q2)
    first = (ZZ1 + ZZ2 + M2 * LENGTH**2 + 2 * c) * a1 + (ZZ2 + c) * a2 - s * (2 * v1 + v2) * v2
    first += g * ((MX1 + M2 * LENGTH) * np.cos(q1) + MX2 * np.cos(q1 + q2))
    second = (ZZ2 + c) * a1 + ZZ2 * a2 + s * v1**2 + g * MX2 * np.cos(q1 + q2)
    efforts = np.stack([GEAR * first + 2.5e-4 * a1 / GEAR, second])
    efforts += noise * efforts.std(axis=1, keepdims=True) * rng.standard_normal(efforts.shape)
    return {"t": t, "q.motor": q1 / GEAR, "q.elbow": q2, "effort.motor": efforts[0], "effort.elbow": efforts[1]}


@pytest.fixture
def arm(tmp_path):
    def loaded(gear=GEAR):
        (tmp_path / "geared.toml").write_text(FILE.format(gear))
        return parflex.load(tmp_path / "geared.toml")

    return loaded


@pytest.mark.parametrize(("off", "gear"), [(4.0, GEAR), (-12.0, GEAR), (0.0, 0.0205)])
def test_another_zero_or_ratio_of_a_gear_leaves_residuals_above_noise(arm, off, gear):
    record = recorded()
    assert not parflex.identify(arm(), record).warnings
    warnings = parflex.identify(arm(gear), record | {"q.motor": record["q.motor"] + off}).warnings
    assert any("residuals are above the noise level" in text and "'elbow'" in text for text in warnings)


def test_the_one_motor_in_degrees_is_named(arm):
    record = recorded()
    try:
        told = " ".join(parflex.identify(arm(), record | {"q.elbow": np.degrees(record["q.elbow"])}).warnings)
    except ParflexError as error:
        told = str(error)
    assert "with positions of 'elbow' in degrees" in told and "give its gain = 0.0174532925" in told


@pytest.mark.parametrize("estimator", ["wls", "irls"])
def test_efforts_with_bursts_of_outliers_are_reported_as_unexplained(arm, estimator):
    record, rng = recorded(), np.random.default_rng(1)
    for name in ("effort.motor", "effort.elbow"):
        record[name] = record[name].copy()
        for start in rng.integers(200, 2700, 8):
            record[name][start : start + 30] += 4 * record[name].std() * rng.choice([-1, 1])
    warnings = parflex.identify(arm(), record, estimator=estimator).warnings
    for motor in ("motor", "elbow"):
        assert any(f"of the efforts of '{motor}' unexplained" in text and "outliers" in text for text in warnings)
