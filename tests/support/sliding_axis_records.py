"""Recordings of an axis under a controller, with noise."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import parflex
from parflex import ParflexError
from parflex.identification.regressors import Regressor
from parflex.identification.unknowns import unknowns
from support.oracles import measured
from support.oracles import three_rrr as hand
from support.recordings import RUBBED

ROBOT = parflex.load("3rrr", working_mode="+-+", settings=RUBBED)


@cache
def followed(seed, load=0.0):
    loop, p = measured.Loop(sample=2e-3), hand.Parameters()
    return measured.followed(4.0, seed, loop, hand.Parameters(m_c=p.m_c + load))


def noisy(clean, seed=0):
    return measured.as_measured(clean, seed)


Array = np.ndarray


ROBOTS = Path(__file__).parents[1] / "robots"


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


def led_record(name: str, offset: float, noise: float) -> dict[str, Array]:
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
