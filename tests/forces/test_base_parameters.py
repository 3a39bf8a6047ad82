"""Base parameters and regressors, through the loops too, against literature and the regressors of Pinocchio."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from support.catalogue import CATALOGUE, RIGID
from support.comparison import largest
from support.oracles import led_records
from support.oracles.led_records import LedRobot
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.recordings import unlikely
from support.robots import load_robot, robot_file
from support.states import Draws, random_states

import parflex
from parflex import Configuration
from parflex.forces.base_parameters import PARAMETERS
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import base_columns
from parflex.identification.unknowns import Unknown, unknowns

SERIAL = ("rx90", "puma560")


@cache
def based(name):
    """Robot and its base parameters; samples enough for four times as many rows as a body has parameters."""
    robot = parflex.load(name)
    return robot, parflex.base_parameters(robot, samples=40 if name in SERIAL else 12)


def rank(matrix):
    """Number of singular values that are not rounding, columns of equal size."""
    sizes = np.linalg.norm(matrix, axis=0)
    kept = sizes > 1e-10 * sizes.max()
    values = np.linalg.svd(matrix[:, kept] / sizes[kept], compute_uv=False)
    gap = values[:-1] / np.maximum(values[1:], 1e-300)
    count = int(np.sum(values > 1e-9 * values[0]))  # between the smallest true one (1e-4) and rounding (1e-15)
    assert count == len(values) or gap[count - 1] > 1e4  # the cut falls into a wide gap
    return count


def pinocchio_regressor(path, samples=40):
    """Torques per unit of each inertial parameter at random motions, and the accelerations of the joints."""
    tree = PinocchioTree(read_robot(path))
    pin.seed(1)
    rng, data, rows, accelerations = np.random.default_rng(1), tree.model.createData(), [], []
    for _ in range(samples):
        q = pin.randomConfiguration(tree.model, -2 * np.ones(tree.model.nq), 2 * np.ones(tree.model.nq))
        qd, qdd = rng.uniform(-2, 2, tree.model.nv), rng.uniform(-4, 4, tree.model.nv)
        rows.append(pin.computeJointTorqueRegressor(tree.model, data, q, qd, qdd))
        accelerations.append(np.diag(qdd))
    return np.concatenate(rows), np.concatenate(accelerations)


@pytest.mark.few("3rrr", "puma560")
@pytest.mark.parametrize("name", RIGID)
def test_base_parameters_are_the_rank_of_the_regressor_and_give_the_same_efforts(name, figure):
    robot, base = based(name)
    matrix, rotors = pinocchio_regressor(CATALOGUE / f"{name}.toml")
    assert rank(matrix) == len(base.names) == len(set(base.names)) <= base.after_rules
    if name in SERIAL:  # four rotors cannot be grouped with bodies: 40, as Khalil and Dombre count them for the RX-90
        assert len(base.names) == 36 and rank(np.hstack([matrix, rotors])) == 40
    lean, worst = base.robot, 0.0
    pairs = zip(robot.tree.links, lean.tree.links, strict=True)
    assert any(largest(one.body.I - other.body.I) > 0 for one, other in pairs)  # it is not the same robot
    for state in random_states(robot, 5, 51, Draws(), spread=0.1 * robot.tree.length):
        q = state.configuration.q
        first = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        second = parflex.inverse_dynamics(lean, Configuration(lean, q), state.velocity, state.acceleration)
        one, other = (np.array(list(result.efforts.values())) for result in (first, second))
        worst = max(worst, largest(one - other) / largest(one))
    figure(f"{name}: efforts with base parameters, largest relative difference", worst, 1e-11)
    assert worst < 1e-11  # weights of the grouping are known to 1e-14, efforts are sums of some hundred terms


def test_what_the_rules_leave_is_grouped_by_rank():
    robot = parflex.load(robot_file("scara"))
    base, rng = parflex.base_parameters(robot), np.random.default_rng(4)
    assert len(base.names) == rank(pinocchio_regressor(robot_file("scara"))[0]) < base.after_rules
    assert set(base.grouped) == {"MX[quill]", "MY[forearm]"}
    for _ in range(5):
        q, motors = rng.uniform(-2, 2, 3), robot.actuated_names
        velocity, acceleration = (dict(zip(motors, rng.uniform(-3, 3, 3), strict=True)) for _ in range(2))
        one, other = (
            np.array(list(parflex.inverse_dynamics(r, Configuration(r, q), velocity, acceleration).efforts.values()))
            for r in (robot, base.robot)
        )
        assert largest(one - other) < 1e-11 * largest(one)  # as for the catalogue


@pytest.mark.parametrize("name", ["5r", pytest.param("3rrr", marks=pytest.mark.verify)])
def test_base_parameters_of_the_closed_robot_are_fewer_and_give_the_same_efforts(name):
    robot = parflex.load(name)
    of_tree, of_loops = parflex.base_parameters(robot), parflex.base_parameters(robot, closed=True)
    inertial = [one for one in unknowns(robot, "none") if one.name.split("[")[0] in PARAMETERS]
    assert len(of_loops.names) == len(base_columns(Regressor(robot, inertial)).kept) < len(of_tree.names)
    rng = np.random.default_rng(3)
    for _ in range(3):
        moving = [dict(zip(robot.motors, rng.uniform(-2, 2, len(robot.motors)).tolist(), strict=True)) for _ in "va"]
        efforts = [parflex.inverse_dynamics(one, "home", *moving).efforts for one in (robot, of_loops.robot)]
        assert efforts[1] == pytest.approx(efforts[0], rel=1e-9, abs=1e-9)  # rounding of the projected regressor


ORDER = {name: k for k, name in enumerate(("M", "MX", "MY", "MZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ"))}  # Pinocchio's
REACH = {"3rrr": 0.2, "gough-stewart": 0.01, "delta": 0.2}  # rad, m about home; of the second towards singular poses


class OtherRegressor:
    """Rows of the motors of a closed robot by Pinocchio."""

    def __init__(self, name: str) -> None:
        self.led = LedRobot(CATALOGUE / f"{name}.toml")
        self.tree = PinocchioTree(self.led.data)
        self.work = self.tree.model.createData()
        self.names = self.tree.coordinates
        self.places = [self.names.index(motor) for motor in self.led.motors]

    def rows(self, q: dict[str, float], rates, accelerations, every: list[Unknown]):
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


@pytest.mark.parametrize(
    "name", ["3rrr", *(pytest.param(name, marks=pytest.mark.verify) for name in ("gough-stewart", "delta"))]
)
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


# -- identified linkages with one motor


BARS = {  # mass, centre, moment about the centre
    "crank": (0.7, (0.04, 0.015), 9e-4),
    "coupler": (1.2, (0.17, 0.05), 1.3e-2),
    "rocker": (1.0, (0.12, 0.04), 6e-3),
    "link": (0.5, (0.15, 0.02), 5e-3),
    "swing": (0.8, (0.13, -0.03), 5e-3),
}


@cache
def record(reach: float, noise: float) -> dict[str, np.ndarray]:
    """Efforts that a motion of the crank about home takes, by Lagrange's equations, with noise."""
    oracle, t = led_records.LedRobot(robot_file("six-bar")), np.arange(400) * 1e-2
    clean = oracle.led(t, oracle.about_home(t, 3, reach))
    effort = clean["effort.crank"]
    return clean | {"effort.crank": effort + noise * effort.std() * np.random.default_rng(0).normal(size=len(t))}


def of_truth(made_of: str) -> float:
    """What the parameters give of which a base parameter is made."""
    every = {}
    for name, (mass, (cx, cy), moment) in BARS.items():
        every |= {f"M[{name}]": mass, f"MX[{name}]": mass * cx, f"MY[{name}]": mass * cy}
        every |= {f"ZZ[{name}]": moment + mass * (cx * cx + cy * cy)}
    every |= {"IA[crank]": 0.003, "FV[crank]": 0.06, "FS[crank]": 0.12}
    total = 0.0
    for sign, weight, name in re.findall(r"(^|[+-] )([0-9.e+-]+ )?([A-Z]+\[\w+\])", made_of):
        total += (-1.0 if sign.startswith("-") else 1.0) * (float(weight) if weight else 1.0) * every[name]
    return total


# the crank about home: little, so that columns are powers of it, of which five have less than 1e-6 left beside others,
# and by half a turn
@pytest.mark.verify
@pytest.mark.parametrize(
    ("reach", "noise", "least"), [(0.03, 1e-6, 9), pytest.param(0.5, 1e-4, 15, marks=pytest.mark.verify)]
)
def test_identified_parameters_of_a_six_bar_are_those_of_its_bars(reach, noise, least):
    robot = load_robot("six-bar", settings={"constants.heavier": 1.4})
    found = parflex.identify(robot, record(reach, noise), cutoff=20)
    off = np.array([one.value - of_truth(one.made_of) for one in found.parameters.values()])
    assert len(off) >= least and not unlikely(off, found), dict(zip(found.parameters, off, strict=True))
    assert found.relative_error < 1e-3 and {each.code for each in found.diagnostics} <= {"hardly-determined"}


@pytest.mark.verify
def test_a_wide_motion_is_predicted_from_a_narrow_one():
    # of a robot file that is right: what the record leaves open is as in the file, and nothing is lost of it
    narrow, wide = (record(reach, 0.0) for reach in (0.03, 0.5))
    found = parflex.identify(load_robot("six-bar"), narrow, validate=wide, cutoff=20)
    assert len(found.parameters) < 15 and found.undetermined
    assert found.validation["relative_error"] < 1e-3  # differences of the narrow one, magnified by the wide one
