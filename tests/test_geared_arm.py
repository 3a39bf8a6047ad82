"""A motor behind a gear with another zero, unit or ratio, and efforts with bursts of outliers: all are reported."""

from __future__ import annotations

import numpy as np
import pytest
from support.geared_arm import FILE, GEAR, recorded

import parflex
from parflex import ParflexError


@pytest.fixture
def arm(tmp_path):
    def loaded(gear=GEAR):
        (tmp_path / "geared.toml").write_text(FILE.format(gear))
        return parflex.load(tmp_path / "geared.toml")

    return loaded


@pytest.mark.few
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
