"""Every kind of closure, in space and in the plane, on mechanisms made up for it, against Lagrange's equations."""

from dataclasses import replace

import numpy as np
import pytest
from support.comparison import largest, order_of, positions
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot
from support.robots import robot_file, write_robot

import parflex
from parflex import Configuration
from parflex.recursion.kinematics import motion

SPATIAL = {  # rows of each kind: translations, rotations
    "spherical": (3, 0),
    "revolute": (3, 2),
    "universal": (3, 1),
    "cylindrical": (2, 2),
    "prismatic": (2, 3),
    "planar": (1, 2),
    "point-on-plane": (1, 0),
    "point-on-line": (2, 0),
    "welded": (3, 3),
}
PLANAR = {"revolute": (2, 0), "prismatic": (1, 1), "point-on-plane": (1, 0), "point-on-line": (1, 0), "welded": (2, 1)}

PLACES = [("on-arm", "on-body"), ("on-body", "on-arm"), ("on-base", "on-body"), ("on-body", "on-base")]
CASES = [("spatial", kind, ends) for kind in SPATIAL for ends in PLACES]
CASES += [("planar", kind, ends) for kind in PLANAR for ends in PLACES]
NAMES = [f"{motion}, {kind}, {first} to {second}" for motion, kind, (first, second) in CASES]
EVERY = pytest.mark.parametrize(("motion_kind", "kind", "ends"), CASES, ids=NAMES)


def made_up(motion, kind, ends, folder):
    """The file of a mechanism with one closure of this kind, its axes askew."""
    axes = "axis = [0.6, -0.3, 0]" if motion == "planar" else "axis = [0.6, -0.3, 0.5]\naxis_2 = [0.1, 0.4, 0.8]"
    closure = f'[[closure]]\nbetween = {list(ends)}\njoint = "{kind}"\n{axes}\n'
    file = robot_file("made-up-plane" if motion == "planar" else "made-up-space")
    return write_robot(folder, file.read_text(encoding="utf-8") + closure)


def closed_configurations(robot, count=4):
    """Closed positions, each from another start."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        start = robot.tree.moved(robot.tree.start, rng.uniform(-0.4, 0.4, robot.tree.n))
        q, error = robot.assembler.newton(start, robot.free, robot.closures.loops)
        assert error < 1e-12  # of the typical length; Newton ends at rounding
        yield Configuration(robot, q)


@pytest.mark.few("spatial, universal, on-arm", "planar, revolute, on-arm", "point-on-line, on-arm")
@EVERY
def test_a_closure_holds_what_lagrange_holds(motion_kind, kind, ends, tmp_path):
    path = made_up(motion_kind, kind, ends, tmp_path)
    robot, oracle = parflex.load(path), EnergyModel(read_robot(path))
    loop, order, rng = robot.closures.loops[0], order_of(robot, oracle), np.random.default_rng(8)
    translations, rotations = (PLANAR if motion_kind == "planar" else SPATIAL)[kind]
    assert loop.size == robot.closures.size == oracle.closure_rows == translations + rotations
    assert sum(name.startswith("translation") for name in loop.row_names) == translations
    for configuration in closed_configurations(robot):
        q, J = positions(configuration), configuration.closure_jacobian
        assert largest(oracle.closure_residual(q)) < 1e-11  # what rounding leaves of a closed loop, in their units
        theirs = oracle.closure_jacobian(q)[0][:, order]
        null = np.linalg.svd(J)[2][loop.size :].T
        assert np.linalg.matrix_rank(J) == np.linalg.matrix_rank(theirs) == loop.size
        assert largest(theirs @ null) < 1e-12 * largest(theirs)  # same null space: products of directions of length one
        qd = null @ rng.standard_normal(null.shape[1])
        ours = robot.closures.bias(configuration.at, motion(robot.tree, configuration.at, qd, np.zeros(robot.tree.n)))
        bias = oracle.closure_jacobian(q, qd[np.argsort(order)])[1]
        # rows may be scaled and mixed: the smallest acceleration that keeps the loop closed is not
        smallest = np.linalg.lstsq(J, -ours, rcond=None)[0]
        expected = np.linalg.lstsq(theirs, -bias, rcond=None)[0]
        assert largest(expected) > 1e-3 or "on-base" in ends  # on the base some closures have no bias
        assert largest(smallest - expected) < 1e-11 * largest(qd) ** 2  # rounding times conditions of some dozens


@EVERY
def test_a_closure_is_the_derivative_of_its_opening(motion_kind, kind, ends, tmp_path):
    robot = parflex.load(made_up(motion_kind, kind, ends, tmp_path))
    tree, rng = robot.tree, np.random.default_rng(9)
    units = robot.closures.row_units() / tree.length
    for configuration in closed_configurations(robot, 2):

        def opening(step, configuration=configuration):
            return robot.closures.residual(Configuration(robot, tree.moved(configuration.q, step)).at) / tree.length

        assert largest(opening(np.zeros(tree.n))) < 1e-12  # Newton ends at rounding
        any_rates, h = rng.uniform(-1, 1, tree.n), 1e-5
        slope = (opening(h * any_rates) - opening(-h * any_rates)) / (2 * h)
        # truncation 1e-10, rounding 1e-16/1e-5
        assert largest(slope - units * (configuration.closure_jacobian @ any_rates)) < 1e-8
        null = np.linalg.svd(configuration.closure_jacobian)[2][robot.closures.size :].T
        qd, qdd, h = null @ rng.uniform(-1, 1, null.shape[1]), rng.uniform(-1, 1, tree.n), 3e-4
        bend = sum(c * opening(t * qd + t**2 / 2 * qdd) for c, t in ((1, h), (-2, 0.0), (1, -h))) / h**2
        ours = units * robot.closures.bias(configuration.at, motion(tree, configuration.at, qd, qdd))
        assert largest(bend - ours) < 1e-5  # truncation 1e-7, rounding 1e-16/1e-7, a dozen terms


def test_axes_that_coincide_point_the_same_way(tmp_path):
    robot = parflex.load(made_up("spatial", "revolute", ("on-arm", "on-body"), tmp_path))
    loop = robot.closures.loops[0]
    for configuration in closed_configurations(robot):
        frames = parflex.frames(robot, configuration)
        first, second = frames["on-arm"].rotation @ loop.u1, frames["on-body"].rotation @ loop.u2
        assert largest(first - second) < 1e-12  # rounding of two products of rotations


@pytest.mark.few("spatial, universal, on-arm", "planar, revolute, on-arm", "point-on-line, on-arm")
@EVERY
def test_a_closed_loop_seen_from_its_other_end_or_taken_as_closed_holds_the_same(motion_kind, kind, ends, tmp_path):
    robot = parflex.load(made_up(motion_kind, kind, ends, tmp_path))
    tree, loop, rng = robot.tree, robot.closures.loops[0], np.random.default_rng(9)
    other = loop.reversed(tree)
    assert (other is None) == kind.startswith("point-on")
    for configuration in closed_configurations(robot):
        at, links = configuration.at, configuration.link_jacobians
        J = loop.jacobian(tree, at, links)
        any_rates = rng.uniform(-1, 1, tree.n)
        moving = motion(tree, at, any_rates - np.linalg.pinv(J) @ (J @ any_rates), np.zeros(tree.n))
        held = np.column_stack([J, loop.bias(tree, at, moving)])  # J qdd + bias = 0
        for same in (replace(loop, closed=True), *([] if other is None else [other, replace(other, closed=True)])):
            found = np.column_stack([same.jacobian(tree, at, links), same.bias(tree, at, moving)])
            assert found.shape == held.shape
            mix = found[:, :-1] @ np.linalg.pinv(J)
            assert found == pytest.approx(mix @ held, abs=1e-11)  # entries of size one, closed to 1e-13
            assert np.linalg.cond(mix) < 1e2  # nothing is lost: directions and arms of size one
