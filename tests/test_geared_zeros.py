"""What is named where a motor behind a gear has another zero, unit or ratio, and where efforts have outliers."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

import parflex
from parflex.errors import ParflexError
from parflex.identification.doubts import other_positions
from parflex.identification.doubts.other_positions import OtherPositions

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


@pytest.mark.parametrize("off", [0.0, 4.0, -12.0])
def test_the_zero_of_a_motor_behind_a_gear_is_found(arm, off):
    record = recorded()
    told = parflex.identify(arm(), record | {"q.motor": record["q.motor"] + off}).warnings
    found = [text.partition("zero of 'motor' off by ")[2] for text in told if "with the zero of" in text]
    assert len(found) == (1 if off else 0) and (off or not told)
    if off:
        assert float(found[0].split()[0]) == pytest.approx(off, rel=0.03)  # noise of the record leaves some hundredths


def test_a_gear_of_another_ratio_is_no_zero(arm):
    told = parflex.identify(arm(0.0205), recorded()).warnings
    assert told and not any("to its offset" in text for text in told)


def test_the_one_motor_in_degrees_is_named(arm):
    record = recorded()
    try:
        told = " ".join(parflex.identify(arm(), record | {"q.elbow": np.degrees(record["q.elbow"])}).warnings)
    except ParflexError as error:
        told = str(error)
    assert "with positions of 'elbow' in degrees" in told and "give its gain = 0.0174532925" in told


@pytest.mark.parametrize("estimator", ["wls", "irls"])
def test_bursts_of_outliers_are_the_cause(arm, estimator):
    record, rng = recorded(), np.random.default_rng(1)
    for name in ("effort.motor", "effort.elbow"):
        record[name] = record[name].copy()
        for start in rng.integers(200, 2700, 8):
            record[name][start : start + 30] += 4 * record[name].std() * rng.choice([-1, 1])
    told = parflex.identify(arm(), record, estimator=estimator).warnings
    assert any("most of it in" in text and "outliers" in text for text in told)
    assert not any("check time unit" in text or "the model lacks" in text for text in told)


@pytest.mark.parametrize(("second", "named"), [(0.8, ["motor", "elbow"]), (2.5, ["motor"])])
def test_both_motors_are_named_where_their_zeros_explain_a_record_alike(monkeypatch, second, named):
    """None was, and parameters that were 24 deviations off went without a word."""
    left = {0: (0.5, 0.6, np.array([0.6, 0.7])), 1: (-0.01, 0.7, second * np.array([0.8, 1.0]))}
    monkeypatch.setattr(OtherPositions, "_moved_zeros", lambda own: [0, 1])
    monkeypatch.setattr(OtherPositions, "_followed", lambda own, motor: left[motor])
    (regressor := Mock()).spare, regressor.motor_q, regressor.rows = False, [0, 1], ["motor", "elbow"]
    regressor.robot.actuated_names = ["motor", "elbow"]
    monkeypatch.setattr(other_positions, "turning", lambda regressor: [True, True])
    trials, by_row = OtherPositions(regressor, None, [], [], [], None).zeros()
    assert [text.split("'")[1] for _, text in trials] == named
    assert by_row == {"motor": 0.6, "elbow": 0.7}
