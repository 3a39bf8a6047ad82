"""Encoders whose lines are passed more seldom than samples are taken: their rounding counts as the noise it is."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex.identification.estimates.rounded_positions import staircase
from parflex.identification.filtering import choose_filter
from parflex.identification.measured_files import Measurement

INERTIA, WEIGHT, VISCOUS, DRY = 0.9, 8.0, 0.4, 0.6  # kg m^2, N m, N m s/rad, N m
LINE = 2 * np.pi / 1000
PENDULUM = (
    'format = 1\nname = "pendulum"\nmotion = "planar"\ngravity = [0, -10, 0]\n'
    '[[frame]]\nname = "arm"\njoint = "revolute"\nactuated = true\ninertia = { M = 2, ZZ = 0.5, MX = 0.5 }\n'
    "friction = { viscous = 0.1, coulomb = 0.1 }\n"
)
TRUE = {"ZZ[arm]": INERTIA, "MX[arm]": WEIGHT / 10, "MY[arm]": 0.0, "FV[arm]": VISCOUS, "FS[arm]": DRY}


def swung(rate, line, seed=0, highest=0.25):
    """A pendulum that is led slowly: its equation of motion is a line."""
    rng = np.random.default_rng(seed)
    t = np.arange(20 * rate) / rate
    w = 2 * np.pi * highest * np.array([0.2, 0.6, 1.0])
    size, phase = np.array([0.3, 0.2, 0.12]), rng.uniform(0, 6, 3)
    q = np.sin(np.outer(t, w) + phase) @ size
    qd, qdd = np.cos(np.outer(t, w) + phase) @ (size * w), -np.sin(np.outer(t, w) + phase) @ (size * w**2)
    tau = INERTIA * qdd + WEIGHT * np.cos(q) + VISCOUS * qd + DRY * np.sign(qd)
    tau = tau + 0.005 * tau.std() * rng.standard_normal(len(t))
    return {"t": t, "q.arm": line * np.round(q / line), "effort.arm": tau}


@pytest.fixture
def pendulum(tmp_path):
    (tmp_path / "pendulum.toml").write_text(PENDULUM)
    return parflex.load(tmp_path / "pendulum.toml")


@pytest.mark.parametrize("rate", [200, 1000])
def test_a_coarse_encoder_in_slow_motion_does_not_pull_inertias_to_zero(pendulum, rate):
    off = []
    for seed in range(4):
        found = parflex.identify(pendulum, swung(rate, LINE, seed))
        assert found.filter.cutoff < 6  # by the highest frequencies alone a fifth of those of the samples
        off += [(one.value - TRUE[name]) / one.deviation for name, one in found.parameters.items()]
        assert not any("rests in" in text for text in found.warnings)
    # 20 deviations: at 200 Hz behind 40 Hz they are 40 and more; those of right intervals have a mean square of one
    assert np.sqrt(np.mean(np.square(off))) < 1.5


def test_a_cutoff_that_lets_rounding_through_is_told_and_no_rest_is(pendulum):
    told = parflex.identify(pendulum, swung(200, LINE), cutoff=40).warnings
    assert any("noise of positions may move" in text for text in told)
    slow = [text for text in told if "Coulomb friction has no sign" in text]
    assert len(slow) == 1 and "rests" not in slow[0] and "behind a lower cutoff: use" in slow[0]


def test_the_cutoff_does_not_follow_the_line_that_steps_have_at_a_steady_speed():
    t = np.arange(20 * 500) / 500
    x = 0.2 * np.abs((0.1 * t) % 2 - 1)  # forth and back at 0.02 rad/s: 3.2 lines per second
    found = {}
    for line in (LINE, 1e-9):
        position = (line * np.round(x / line))[:, None]
        found[line] = choose_filter([Measurement("hand", t, position, 0 * position)], None, None, None, None).cutoff
    assert found[LINE] < 6 < 20 < found[1e-9]  # corners of the motion have all frequencies


def test_steps_of_an_encoder_are_found_from_the_values():
    t = np.arange(4000) * 1e-3
    slow, fast = 0.1 * np.sin(t), 100 * np.sin(t)
    found = staircase(LINE * np.round(slow / LINE))
    assert found.line == pytest.approx(LINE) and found.samples > 20
    rng = np.random.default_rng(0)
    rests = np.where(t < 3, 0.0, LINE * np.round(fast / LINE))
    for other in (
        slow, LINE * np.round(fast / LINE), rests, 0 * t,
        LINE * np.round((slow + LINE * rng.standard_normal(len(t))) / LINE),  # flickers
    ):  # fmt: skip
        assert staircase(other) is None
    # error of a line per 100 samples: as strong at each frequency below a line's rate as white noise of this size
    steps = staircase(np.repeat(np.arange(200.0), 100))
    assert steps.as_white == pytest.approx(np.sqrt(1 / 12 * 50))
