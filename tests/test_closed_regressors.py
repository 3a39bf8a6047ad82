"""Regressors through the loops beside Pinocchio's of the open tree, brought to the motors by its own closures."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from conftest import CATALOGUE
from support.oracles.led_records import LedRobot
from support.oracles.pinocchio_tree import PinocchioTree

import parflex
from parflex.identification.regressors import Regressor
from parflex.identification.unknowns import Unknown, unknowns

Array = np.ndarray
ORDER = {name: k for k, name in enumerate(("M", "MX", "MY", "MZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ"))}  # Pinocchio's
REACH = {
    "3rrr": 0.2,
    "gough-stewart": 0.01,
    "delta": 0.2,
}  # rad, m about home; singular poses are near to that of the second


class OtherRegressor:
    """Rows of the motors of a closed robot by Pinocchio."""

    def __init__(self, name: str) -> None:
        self.led = LedRobot(CATALOGUE / f"{name}.toml")
        self.tree = PinocchioTree(self.led.data)
        self.work = self.tree.model.createData()
        self.names = self.tree.coordinates
        self.places = [self.names.index(motor) for motor in self.led.motors]

    def rows(self, q: dict[str, float], rates: Array, accelerations: Array, every: list[Unknown]) -> Array:
        """Efforts of the motors per unit of each unknown."""
        motors, tree = self.led.motors, self.tree
        qd, qdd = tree.motion(q, *(dict(zip(motors, v, strict=True)) for v in (rates, accelerations)))
        whole = pin.computeJointTorqueRegressor(tree.model, self.work, tree._position(q), qd, tree._components(qd, qdd))
        loops, _ = tree.closure_jacobian(q)
        others = [k for k in range(len(self.names)) if k not in self.places]
        E = np.zeros((len(self.names), len(motors)))
        E[self.places, range(len(motors))] = 1.0
        E[others] = -np.linalg.lstsq(loops[:, others], loops[:, self.places], rcond=None)[0]
        assert np.abs(loops @ E).max() < 1e-12
        found = np.zeros((len(motors), len(every)))
        for k, one in enumerate(every):
            name = one.name.partition("[")[2].rstrip("]")
            if one.symbol in ORDER:
                joint = tree.model.getJointId(name) - 1
                found[:, k] = E.T @ whole[:, 10 * joint + ORDER[one.symbol]]
                continue
            at = self.names.index(name)
            value = {"IA": qdd[at], "FV": qd[at], "FS": np.sign(qd[at]), "offset": 1.0}[one.symbol]
            found[:, k] = E[at] * value
        return found


@pytest.mark.parametrize("name", ["3rrr", pytest.param("gough-stewart", marks=pytest.mark.verify), "delta"])
def test_rows_of_closed_robots_are_those_of_another_engine(name):
    robot, other = parflex.load(name), OtherRegressor(name)
    every = unknowns(robot, "offset")
    regressor = Regressor(robot, every, "offset")
    rng, home = np.random.default_rng(7), other.led.home()
    at = np.array([home[motor] for motor in other.led.motors])
    position = at + rng.uniform(-1, 1, (8, len(at))) * REACH[name]
    rate, acceleration = rng.uniform(-2, 2, (2, *position.shape))
    position = np.linspace(at, position, 5).swapaxes(0, 1)  # each reached from home
    for way, qd, qdd in zip(position, rate, acceleration, strict=True):
        rows, _ = regressor.of(regressor.moving(way[-1:], qd[None], qdd[None]))
        q = home
        for step in way:
            q = other.led.closed(q, dict(zip(other.led.motors, step, strict=True)))
        wanted = other.rows(q, qd, qdd, every)
        # loops are closed to 1e-11 m there and to 1e-9 by steps that converge quadratically here
        assert np.abs(rows[0] - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_records_that_begin_far_from_home_are_in_its_assembly():
    """On the way to zero a first step of Newton's method is seven radians long, and what follows is little of it."""
    led, robot = LedRobot(CATALOGUE / "5r.toml"), parflex.load("5r")
    q = home = led.home()
    for share in np.linspace(0, 1, 100):
        q = led.closed(q, {motor: (1 - share) * home[motor] for motor in led.motors})
    found = Regressor(robot, unknowns(robot, "file")).first(np.zeros(2))
    np.testing.assert_allclose(found, [q[name] for name in robot.tree.rate_names], atol=1e-8)  # loops closed to 1e-9
