"""End effectors on joints in space, placed for many poses at once: gears, redundant rows, what is kept as at home."""

import numpy as np
import pytest

import parflex
from parflex.maps.batches import Geometry
from parflex.maps.positions import OK, UNREACHABLE, PositionSolver
from parflex.recursion import pose
from parflex.spatial import vector_from_rotation

LEGS = np.array([np.pi / 4, 3 * np.pi / 4, -3 * np.pi / 4, -np.pi / 4])
ARMS = [f"{leg}.arm" for leg in ("front_left", "rear_left", "rear_right", "front_right")]


def solver(robot, names, compiled=False):
    geometry = Geometry(robot)
    geometry.settle(10**6 if compiled else 1)
    return PositionSolver(geometry, list(names), at_home(robot, names))


def at_home(robot, names):
    R, P = pose(robot.tree, robot.home).of(robot.tree.places[robot.tree.end_effector])
    own = dict(zip(("x", "y", "z", "rx", "ry", "rz"), [*P, *vector_from_rotation(R)], strict=True))
    return [float(own[name]) for name in names]


def par4_arms(values, angle, base=0.275, arm=0.375, rod=0.825, half=0.08, ratio=4):
    """Angles of the arms of a Par4, knees outside: its tool turns `ratio` times as far as its bars, the other way."""
    bar = -angle / ratio
    front = values + np.array([0, 0, 0.06])
    rear = front - 2 * half * np.stack([np.cos(bar), np.sin(bar), 0 * bar], axis=1)
    aside, found = np.array([0, half, 0]), []
    for gamma, ball in zip(LEGS, (front + aside, rear + aside, rear - aside, front - aside), strict=True):
        out, across = np.array([np.cos(gamma), np.sin(gamma), 0]), np.array([-np.sin(gamma), np.cos(gamma), 0])
        x, y, z = ball @ out - base, ball @ across, ball[:, 2]
        far = np.hypot(x, z)
        with np.errstate(invalid="ignore"):
            found.append(np.arctan2(z, x) + np.arccos((arm**2 + far**2 - (rod**2 - y**2)) / (2 * arm * far)))
    return np.array(found).T


@pytest.mark.verify
def test_reach_and_arms_of_par4_are_those_of_its_lengths():
    """The plate, its gear and four legs, of whose rows one repeats others; half of the cells are out of reach.

    Of rows that repeat others any choice is singular somewhere: far out these would take the robot for one in another
    mode, so that legs are judged by themselves.
    """
    robot = parflex.load("par4")
    found_by = solver(robot, ["x", "y", "z", "rx", "ry", "rz"], compiled=True)
    assert found_by.fast
    values = np.array([0.08, 0, -0.81, 0, 0, 0]) + np.random.default_rng(1).uniform(-1, 1, (1500, 6)) * 0.6
    values[:, 3:5] = 0.0
    found_by.walks = False  # neighbours suffice
    arms = par4_arms(values[:, :3], values[:, 5])
    reached = np.isfinite(arms).all(axis=1)
    assert 500 < reached.sum() < 1000
    found = found_by(values)
    assert np.array_equal(found.status == OK, reached)
    columns, good = [robot.tree.links[robot.tree.number(name)].q.start for name in ARMS], found.status == OK
    assert np.abs(np.sin(found.q[:, columns] - arms)[good]).max() < 1e-8  # at the edge of reach rounding is a root


def test_what_is_not_named_is_kept_as_at_home():
    robot = parflex.load("par4")
    found_by = solver(robot, "xyz")
    assert found_by.fast and found_by.keeps
    found_by.keeps = False  # nothing is left to single poses
    values = np.array([0.08, 0, -0.81]) + np.random.default_rng(1).uniform(-1, 1, (40, 3)) * 0.15
    found = found_by(values)
    arms = par4_arms(values, np.zeros(40))
    assert (found.status == OK).all() and np.isfinite(arms).all()
    columns = [robot.tree.links[robot.tree.number(name)].q.start for name in ARMS]
    assert np.abs(np.sin(found.q[:, columns] - arms)).max() < 1e-9


def test_hands_that_keep_their_direction_are_where_single_ones_are():
    robot = parflex.load("rx90")
    found_by = solver(robot, "xyz")
    assert found_by.keeps
    found_by.keeps = False  # nothing is left to single poses
    home = np.array(at_home(robot, "xyz"))
    values = home + np.array([[0.1, 0.05, -0.05], [0.55, 0.3, 0.2], [2.0, 0, 0]])
    found = found_by(values)
    assert found.status.tolist() == [OK, OK, UNREACHABLE]
    for row, q in zip(values[:2], found.q, strict=False):
        here = parflex.configure(robot, dict(zip("xyz", row.tolist(), strict=True)))
        assert np.abs(np.sin((here.q - q) / 2)).max() < 1e-7


@pytest.mark.parametrize("name", ["rx90", "puma560"])
def test_hands_of_open_chains_are_where_they_were_taken_from(name):
    """Joints go a random way from home: their hand is placed again, in the same assembly."""
    robot, rng = parflex.load(name), np.random.default_rng(2)
    names = ["x", "y", "z", "rx", "ry", "rz"]
    place = robot.tree.places[robot.tree.end_effector]
    joints = robot.home + 0.25 * rng.uniform(-1, 1, (40, robot.tree.nq))
    hands = [pose(robot.tree, q).of(place) for q in joints]
    values = np.array([[*P, *vector_from_rotation(R)] for R, P in hands])
    found_by = solver(robot, names)
    assert found_by.fast
    found = found_by(values)
    assert (found.status == OK).all()
    for q, (R, P) in zip(found.q, hands, strict=True):
        own = pose(robot.tree, q).of(place)
        assert np.abs(own[0] - R).max() < 1e-8 and np.abs(own[1] - P).max() < 1e-8
    assert np.abs(np.sin((found.q - joints) / 2)).max(axis=1).min() < 1e-7


def test_a_hand_that_is_turned_over_is_not_where_it_should_be():
    """Sines of half a turn vanish."""
    robot = parflex.load("rx90")
    names = ["x", "y", "z", "rx", "ry", "rz"]
    found_by = solver(robot, names)
    start = found_by.given.start(np.array([at_home(robot, names)]), found_by.geometry.home[None])
    (steps,) = found_by.steppers
    assert steps.judge(start, np.arange(1))[0][0] < 1e-12
    start[0, robot.tree.links[robot.tree.number("6")].q.start] += np.pi
    assert steps.judge(start, np.arange(1))[0][0] > 1
