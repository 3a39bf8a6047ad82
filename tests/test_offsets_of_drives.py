"""Constant efforts of drives that are not looked for are named where a record tells them, and only there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import test_lack_of_fit as lack
from oracles import measured

import parflex
from parflex.errors import ParflexError
from parflex.identification.regressors import Regressor
from parflex.identification.unknowns import unknowns

Array = np.ndarray
ROBOTS = Path(__file__).parent / "robots"
RIGHT = (
    "emps", "5r", "rod-linkage", "scara", "planar-arm",
    *(pytest.param(name, marks=pytest.mark.verify)
      for name in ("two-bodies", "3rrr", "delta", "orthoglide", "3-prrr", "rx90", "nested", "upu", "wrist", "struts")),
)  # fmt: skip


@cache
def led(name: str) -> tuple[parflex.Robot, Array, Array, Array, Array]:
    """Motors of a robot without friction about home: times, positions, rates, efforts."""
    path = ROBOTS / f"{name}.toml"
    robot = parflex.load(str(path) if path.exists() else name)
    regressor = Regressor(robot, unknowns(robot, "none"), "none")
    units, home = robot.tree.rate_units[list(robot.actuated)], robot.home[regressor.motor_q]
    t, reach = np.arange(1500) * 2e-3, 0.12
    w = 2 * np.pi * np.arange(1, 6) / 3.0
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 5, len(units))) / np.sqrt(np.arange(1, 6))[:, None]
    while True:  # until the robot can go there
        size = reach * units
        q, v = home + size * (s @ a + (c - 1) @ b), size * ((c * w) @ a - (s * w) @ b)
        try:
            W, known = regressor.of(regressor.moving(q, v, -size * ((s * w * w) @ a + (c * w * w) @ b)))
            return robot, t, q, v, W @ np.array([one.value for one in regressor.unknowns]) + known
        except ParflexError:
            reach /= 2


def record(name: str, offset: float, noise: float) -> dict[str, Array]:
    """With friction alike in both directions, and offsets of both signs as a share of the efforts."""
    robot, t, q, v, effort = led(name)
    rng, size = np.random.default_rng(1), np.sqrt((effort**2).mean(axis=0))
    size = np.maximum(size, 0.05 * size.max())
    signs = np.where(np.arange(len(size)) % 2, -1.0, 1.0)
    effort = effort + size * (0.1 * v / np.abs(v).max(axis=0) + 0.1 * np.sign(v) + offset * signs)
    effort = effort + noise * size * rng.standard_normal(effort.shape)
    q = q + (1e-5 if noise else 0.0) * np.ptp(q, axis=0) * rng.standard_normal(q.shape)
    columns = {f"q.{motor}": q[:, k] for k, motor in enumerate(robot.actuated_names)}
    return {"t": t} | columns | {f"effort.{motor}": effort[:, k] for k, motor in enumerate(robot.actuated_names)}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("noise", [0.0, 3e-3])
def test_drives_without_offsets_are_not_told_to_have_some(name, noise):
    found = parflex.identify(led(name)[0], record(name, 0.0, noise), friction="symmetric")
    assert not any("constant efforts" in text or "friction" in text for text in found.warnings)


@pytest.mark.parametrize("name", ["emps", "scara", "planar-arm"])
@pytest.mark.parametrize("noise", [0.0, 3e-3])
def test_offsets_of_drives_that_the_record_tells_are_named(name, noise):
    robot, given = led(name)[0], record(name, 0.05, noise)
    found = parflex.identify(robot, given, friction="symmetric")
    assert any("use friction 'offset'" in text for text in found.warnings)
    assert not any("friction" in text for text in parflex.identify(robot, given, friction="offset").warnings)


def test_offsets_that_weights_hide_are_named_with_their_size():
    """Residuals fall by a few per cent with them, and parameters are off by many deviations without."""
    clean = lack.followed(1)
    off = {f"effort.{m}": clean[f"effort.{m}"] + 3.0 * s for m, s in zip(measured.MOTORS, (1, -1, 1), strict=True)}
    found = parflex.identify(lack.ROBOT, measured.as_measured(clean | off, 0))
    (text,) = found.warnings
    assert "with constant efforts of the drives" in text
    assert text.endswith("use friction 'offset'")


def test_what_offsets_would_do_is_said_where_the_record_does_not_exclude_them():
    given = measured.as_measured(lack.followed(1), 0)
    found = parflex.identify(lack.ROBOT, given)
    (said,) = (step for step in found.steps if "constant efforts" in step)
    assert "10 % of its efforts, which the record does not exclude, would move M" in said
    assert not any("constant" in step for step in parflex.identify(lack.ROBOT, given, friction="offset").steps)
    for friction in ("symmetric", "offset"):  # a level axis tells them
        axis = parflex.identify(led("emps")[0], record("emps", 0.0, 3e-3), friction=friction)
        assert not any("constant" in step for step in axis.steps)
