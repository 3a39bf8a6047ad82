"""Legs in space in closed form: reach by lengths alone, joints of every kind of leg, sides that single poses share."""

import numpy as np
import pytest
from support.oracles.known_machines import orthoglide_design, orthoglide_slides

import parflex
from parflex.closure.point_legs import LegSide
from parflex.closure.working_modes import sides
from parflex.maps.batches import Geometry
from parflex.maps.kept_numbers import numbers_of_designs
from parflex.maps.positions import OK, UNREACHABLE, PositionSolver
from parflex.recursion import jacobians, pose
from parflex.spatial import vector_quaternion

BASE, PLATFORM, ARM, ROD = 0.2, 0.05, 0.25, 0.5  # of delta
LEGS = np.array([0.0, 2 * np.pi / 3, -2 * np.pi / 3])


def solver(robot, names, designs=None, compiled=False):
    geometry = Geometry(robot, designs)
    geometry.settle(10**6 if compiled else 1)
    return PositionSolver(geometry, list(names), robot.home[:3].tolist() + [0.0] * (len(names) - 3))


def delta_arms(values, base=BASE, platform=PLATFORM, arm=ARM, rod=ROD):
    """Angles of the arms of a Delta robot with its knees outside, below the horizontal; not a number out of reach."""
    found = []
    for gamma in LEGS:
        out, across = np.array([np.cos(gamma), np.sin(gamma), 0]), np.array([-np.sin(gamma), np.cos(gamma), 0])
        x, y, z = values @ out + platform - base, values @ across, values[:, 2]
        far = np.hypot(x, z)
        with np.errstate(invalid="ignore"):
            cosine = (arm**2 + far**2 - (rod**2 - y**2)) / (2 * arm * far)
            found.append(np.arctan2(z, x) + np.arccos(cosine))
    return np.array(found).T


@pytest.mark.parametrize("compiled", [False, True])
def test_reach_and_arms_of_delta_are_those_of_its_lengths(compiled):
    robot = parflex.load("delta")
    found_by = solver(robot, "xyz", compiled=compiled)
    values = np.array([0, 0, -0.4]) + 0.4 * np.random.default_rng(5).uniform(-1, 1, (1500, 3))
    arms = delta_arms(values)
    reached = np.isfinite(arms).all(axis=1)
    assert 500 < reached.sum() < 1000
    found = found_by(values)
    assert np.array_equal(found.status, np.where(reached, OK, UNREACHABLE))
    own = found.q[:, [robot.tree.links[robot.tree.number(f"leg{k}.arm")].q.start for k in (1, 2, 3)]]
    assert np.abs(np.sin(own - arms)[reached]).max() < 1e-9  # near the edge of reach rounding is a square root
    if not compiled:
        places, start = found_by.places, np.repeat(found_by.geometry.home[None], len(values), axis=0)
        assert np.array_equal(places(found_by.given.start(values, start))[0], ~reached)  # all of them are proved


def test_single_poses_of_delta_are_in_the_same_mode():
    """A determinant of four of five rows changed its sign where no leg is singular: knees were turned inside there."""
    robot = parflex.load("delta")
    values = np.array([0, 0, -0.4]) + 0.4 * np.random.default_rng(5).uniform(-1, 1, (160, 3))
    arms = delta_arms(values)
    reached = np.isfinite(arms).all(axis=1)
    some = [*np.flatnonzero(reached)[:60:4], np.flatnonzero(~reached)[0]]
    for row, own in zip(values[some], arms[some], strict=True):
        try:
            here = parflex.configure(robot, dict(zip("xyz", row, strict=True)))
        except parflex.UnreachableError:
            assert not np.isfinite(own).all()
            continue
        angles = [here.q[robot.tree.links[robot.tree.number(f"leg{k}.arm")].q.start] for k in (1, 2, 3)]
        assert np.abs(np.sin(np.array(angles) - own)).max() < 1e-9


def test_sides_of_delta_are_its_numbers_alone():
    """Where knees are outside, whatever determinant of some of the rows is negative."""
    robot, values = (
        parflex.load("delta"),
        np.array([0, 0, -0.4]) + 0.4 * np.random.default_rng(5).uniform(-1, 1, (300, 3)),
    )
    found_by = solver(robot, "xyz")
    found = found_by(values)
    parts = [part for part in robot.assembler.parts(found_by.target, robot.locked) if len(part.columns)]
    judged = [sides(robot.tree, p.rows, p.columns, p.held, robot.preference, robot.home) for p in parts]
    for q in found.q[found.status == OK]:
        at = pose(robot.tree, q)
        assert all(one.fit(robot.tree, at, jacobians(robot.tree, at)) for one in judged)


def test_designs_of_delta_have_their_own_reach():
    robot, rng = parflex.load("delta"), np.random.default_rng(3)
    rows = np.array([BASE, PLATFORM, ARM, ROD]) * rng.uniform(0.8, 1.2, (400, 4))
    keys = ["constants.base_radius", "constants.platform_radius", "constants.arm", "constants.rod"]
    numbers = numbers_of_designs(robot, {key: rows[:, k] for k, key in enumerate(keys)})
    found_by = solver(robot, "xyz", numbers)
    assert found_by.places is not None
    values = np.array([0, 0, -0.4]) + 0.3 * rng.uniform(-1, 1, (400, 3))
    arms = np.array([delta_arms(row[None], *own)[0] for row, own in zip(values, rows, strict=True)])
    reached = np.isfinite(arms).all(axis=1)
    assert 100 < reached.sum() < 350
    found = found_by(values, np.arange(400))
    assert np.array_equal(found.status, np.where(reached, OK, UNREACHABLE))
    own = found.q[:, [robot.tree.links[robot.tree.number(f"leg{k}.arm")].q.start for k in (1, 2, 3)]]
    assert np.abs(np.sin(own - arms)[reached]).max() < 1e-9


# -- parallelograms ------------------------------------------------------------------------------------------

BARS = """
format = 1
name = "bars"
[constants]
base = 0.2
platform = 0.05
arm = 0.25
rod = 0.5
half = 0.04
[platform]
start = [0, 0, -0.4]
inertia = { mass = 0.6, about_centre = [6e-4, 7e-4, 11e-4] }
[legs]
names = ["leg1", "leg2", "leg3"]
gamma = [0, "2*pi/3", "-2*pi/3"]
[[legs.frame]]
name = "arm"
joint = "revolute"
actuated = true
mdh = { gamma = "gamma", alpha = "pi/2", d = "base" }
start = -0.2
inertia = { mass = 0.7, about_centre = [2e-4, 2e-4, 2e-4] }
[[legs.frame]]
name = "elbow"
parent = "arm"
joint = "revolute"
mdh = { d = "arm" }
start = -2.2
[[legs.frame]]
name = "bar"
parent = "elbow"
joint = "revolute"
mdh = { b = "-half", alpha = "-pi/2" }
[[legs.frame]]
name = "coupler"
parent = "bar"
joint = "revolute"
mdh = { d = "rod" }
[[legs.frame]]
name = "bar2"
joint = "revolute"
BAR2
[[legs.closure]]
between = ["second", "end"]
joint = "revolute"
axis = "AXIS"
axis_2 = "z"
[[legs.point]]
name = "middle"
frame = "coupler"
position = [0, "-half", 0]
[[legs.point]]
name = "attachment"
frame = "platform"
position = ["platform*cos(gamma)", "platform*sin(gamma)", 0]
"""
HINGE = """
[[legs.closure]]
between = ["attachment", "middle"]
joint = "revolute"
axis = ["-sin(gamma)", "cos(gamma)", 0]
axis_2 = "y"
"""
WRIST = """
[[legs.frame]]
name = "wrist"
parent = "coupler"
joint = "revolute"
place = { position = [0, "-half", 0], rotation = ["-pi/2", 0, 0] }
[[legs.closure]]
between = ["attachment", "wrist"]
joint = "revolute"
axis = ["0.6*cos(gamma)", "0.6*sin(gamma)", 0.8]
axis_2 = "x"
"""  # the hinge, then another in a direction of its own
MOUNTED = {
    "carrier": (
        """
parent = "elbow"
mdh = { b = "half", alpha = "-pi/2" }
[[legs.point]]
name = "second"
frame = "coupler"
position = [0, "-2*half", 0]
[[legs.point]]
name = "end"
frame = "bar2"
position = ["rod", 0, 0]
"""
    ),
    "coupler": (
        """
parent = "coupler"
place = { position = [0, "-2*half", 0], rotation = [0, 0, "pi"] }
[[legs.point]]
name = "second"
frame = "elbow"
position = [0, 0, "half"]
[[legs.point]]
name = "end"
frame = "bar2"
position = ["rod", 0, 0]
"""
    ),
}


def robot_of_bars(tmp_path, mounted, end=HINGE):
    """A Delta robot with bars in pairs, the second of which is mounted on the elbow or on the coupler."""
    path = tmp_path / f"{mounted}.toml"
    text = BARS.replace("BAR2", MOUNTED[mounted]).replace("AXIS", "z" if mounted == "carrier" else "y")
    path.write_text(text + end)
    return parflex.load(path)


def arms_of(robot, q):
    return q[:, [robot.tree.links[robot.tree.number(f"leg{k}.arm")].q.start for k in (1, 2, 3)]]


def opening_of_places(found_by, values):
    """How far loops are open, in metres, where the closed form puts all joints."""
    robot, home = found_by.robot, found_by.geometry.home
    q = found_by.places(found_by.given.start(values, np.repeat(home[None], len(values), axis=0)))[1]
    at = [pose(robot.tree, row) for row in q]
    return max(np.abs(loop.residual(a, 1.0)).max() for a in at for loop in robot.closures.loops)


@pytest.mark.few
@pytest.mark.parametrize("closed_form", [True, False])
@pytest.mark.parametrize("mounted", MOUNTED)
def test_reach_and_arms_of_a_delta_with_parallelograms(mounted, closed_form, tmp_path, monkeypatch):
    """Rows of the parallelograms repeat others: determinants of some of them turned knees inside, or missed poses."""
    robot = robot_of_bars(tmp_path, mounted)
    if not closed_form:  # as legs are judged that are no such legs; another number, as programs are kept
        monkeypatch.setattr("parflex.closure.point_legs.parallelogram", lambda *_: None)
        robot = parflex.load(robot.file, settings={"platform.inertia.mass": 0.61})
    found_by = solver(robot, "xyz", compiled=not closed_form)
    assert (found_by.places is not None) == closed_form
    found_by.walks = False
    count = 600 if closed_form else 1500
    values = np.array([0, 0, -0.4]) + 0.4 * np.random.default_rng(5).uniform(-1, 1, (count, 3))
    arms = delta_arms(values)
    reached = np.isfinite(arms).all(axis=1)
    assert 0.3 * count < reached.sum() < 0.7 * count
    found = found_by(values)
    assert np.array_equal(found.status, np.where(reached, OK, UNREACHABLE))
    assert np.abs(np.sin(arms_of(robot, found.q) - arms)[reached]).max() < 1e-9  # as above, near the edge of reach
    if closed_form:
        assert opening_of_places(found_by, values[reached][:20]) < 1e-9
        for row in np.flatnonzero(reached)[:6]:
            here = parflex.configure(robot, dict(zip("xyz", values[row], strict=True)))
            assert np.abs(np.sin(arms_of(robot, here.q[None]) - arms[row])).max() < 1e-9


def test_a_wrist_behind_a_parallelogram_is_not_turned_by_it(tmp_path):
    robot = robot_of_bars(tmp_path, "carrier", WRIST)
    found_by = solver(robot, ["x", "y", "z", "rx", "ry", "rz"])
    values = np.array([0, 0, -0.4, 0, 0, 0]) + np.random.default_rng(5).uniform(-1, 1, (40, 6)) * 0.1
    values[:, 3:] = 0.0
    arms = delta_arms(values[:, :3])
    assert np.isfinite(arms).all() and opening_of_places(found_by, values) < 1e-9
    assert np.abs(np.sin(arms_of(robot, found_by(values).q) - arms)).max() < 1e-9


def test_designs_of_parallelograms_have_their_own_reach(tmp_path):
    robot, rng = robot_of_bars(tmp_path, "carrier"), np.random.default_rng(3)
    rows = np.array([BASE, PLATFORM, ARM, ROD, 0.04]) * rng.uniform(0.8, 1.2, (300, 5))
    keys = [f"constants.{word}" for word in ("base", "platform", "arm", "rod", "half")]
    found_by = solver(robot, "xyz", numbers_of_designs(robot, {key: rows[:, k] for k, key in enumerate(keys)}))
    assert found_by.places is not None
    values = np.array([0, 0, -0.4]) + 0.3 * rng.uniform(-1, 1, (300, 3))
    arms = np.array([delta_arms(row[None], *own[:4])[0] for row, own in zip(values, rows, strict=True)])
    reached = np.isfinite(arms).all(axis=1)
    assert 100 < reached.sum() < 250
    found = found_by(values, np.arange(300))
    assert np.array_equal(found.status, np.where(reached, OK, UNREACHABLE))
    assert np.abs(np.sin(arms_of(robot, found.q) - arms)[reached]).max() < 1e-9


def test_reach_and_slides_of_the_orthoglide_are_those_of_its_lengths():
    robot = parflex.load("orthoglide")
    found_by, length = solver(robot, "xyz"), orthoglide_design(0.2, 0.5, 2.0)[0]
    assert found_by.places is not None
    values = 0.36 * np.random.default_rng(5).uniform(-1, 1, (600, 3))
    with np.errstate(invalid="ignore"):
        slides = np.array([orthoglide_slides(row, length) for row in values]) - length
    reached = np.isfinite(slides).all(axis=1)
    assert 150 < reached.sum() < 300
    found = found_by(values)
    assert np.array_equal(found.status, np.where(reached, OK, UNREACHABLE))
    own = found.q[:, [robot.tree.links[robot.tree.number(f"{k}.slide")].q.start for k in "xyz"]]
    assert np.abs(own - slides)[reached].max() < 1e-9
    bars = found.q[:, [robot.tree.links[robot.tree.number(f"{k}.bar")].q.start for k in "xyz"]]
    assert np.abs(bars[reached]).max() < np.pi / 2  # no parallelogram is past its flat pose


# -- every kind ----------------------------------------------------------------------------------------------

RIGHT = 1.5707963267948966
KINDS = {  # joints of a leg, each with where it stands on the one before: position, then rotation
    "PUS": ("PRR", [([0, 0, 0], [0.3, 0.2, 0]), ([0, 0.05, 0], [1.2, 0, 0]), ([0, 0, 0], [0, 1.57, 0])], "crossed", 0),
    "RUS": ("RRR", [([0, 0, 0], [1.5, 0.2, 0]), ([0.3, 0, 0.02], [0, 0.4, 0]), ([0, 0, 0], [1.4, 0, 0])], "crossed", 0),
    "UPS": ("RRP", [([0, 0, 0], [0.2, 0.1, 0]), ([0, 0, 0], [1.5, 0, 0]), ([0.02, 0, 0], [1.5, 0, 0])], "crossed", 2),
    "URS": ("RRR", [([0, 0, 0], [0.2, 0.1, 0]), ([0, 0, 0], [1.5, 0, 0]), ([0.4, 0, 0], [0.3, 0.2, 0])], "crossed", 2),
    "RRRS": ("RRR", [([0, 0, 0], [0.1, 0, 0]), ([0.05, 0.04, 0.1], [1.4, 0, 0]), ([0.3, 0, 0.02], [0, 0, 0])],
             "parallel", 0),
    "PRRS": ("PRR", [([0, 0, 0], [0.3, 0, 0]), ([0.1, 0, 0], [0.4, 0, 0]), ([0.3, 0, 0], [0, 0, 0])], "parallel", 0),
    "RPRS": ("RPR", [([0, 0, 0], [0.3, 0, 0]), ([0.1, 0, 0.1], [1.2, 0.3, 0]), ([0, 0.1, 0], [RIGHT, 0, 0])],
             "parallel", 0),
    "RRPS": ("RRP", [([0, 0, 0], [0.1, 0, 0]), ([0.05, 0.04, 0.1], [1.4, 0, 0]), ([0, 0.1, 0], [RIGHT, 0, 0])],
             "parallel", 0),
    "SCARA": ("RRP", [([0, 0, 0], [0.3, 0, 0]), ([0.3, 0, 0], [0, 0, 0]), ([0.2, 0, 0], [0.4, 0, 0])], "parallel", 2),
    "2R-R": ("RRR", [([0, 0, 0], [0.3, 0, 0]), ([0.3, 0, 0], [0, 0, 0]), ([0.2, 0.03, 0.05], [1.3, 0.2, 0])],
             "parallel", 2),
}  # fmt: skip
START = {"R": [0.3, 0.9, -1.2], "P": [0.1, 0.2, 0.25]}


def robot_of(kind, tmp_path, hanging=False):
    """A platform on three such legs; `hanging`: these are mounted on the platform and end on the ground."""
    joints, mounts, _, _ = KINDS[kind]
    text = ['format = 1\nname = "legs"\n[constants]\nlength = 0.35\n[platform]\nstart = [0.02, 0.03, 0.5]\n']
    text.append("inertia = { mass = 1, about_centre = [0.01, 0.02, 0.03] }\n")
    for leg in range(3):
        turn = 2 * np.pi * leg / 3 + 0.2 * leg
        for k, (joint, (position, rotation)) in enumerate(zip(joints, mounts, strict=True)):
            place = [list(position), list(rotation)]
            if k == 0:
                c, s = np.cos(turn), np.sin(turn)
                x, y, z = position
                place = [[float(0.3 * c + x), float(0.3 * s + y), z], [*rotation[:2], float(turn)]]
            parent = f'parent = "l{leg}.{k - 1}"\n' if k else 'parent = "platform"\n' if hanging else ""
            word = "revolute" if joint == "R" else "prismatic"
            text.append(
                f'[[frame]]\nname = "l{leg}.{k}"\n{parent}joint = "{word}"\nstart = {START[joint][k]}\n'
                f"actuated = {'true' if k < 2 else 'false'}\n"
                f"place = {{ position = {place[0]}, rotation = {place[1]} }}\n"
                "inertia = { mass = 0.1, about_centre = [0.001, 0.001, 0.001] }\n"
            )
        text.append(f'[[point]]\nname = "end{leg}"\nframe = "l{leg}.2"\nposition = ["length", 0.02, 0.03]\n')
    path = tmp_path / f"{kind}.toml"
    path.write_text("".join(text))
    open_one = parflex.load(path)
    at = pose(open_one.tree, open_one.start)  # closures where the legs end at their start values
    body = open_one.tree.number("platform")
    for leg in range(3):
        end = at.of(open_one.tree.places[f"end{leg}"])[1]
        if not hanging:
            end = at.rotation[body].T @ (end - at.position[body])
        where = "base" if hanging else "platform"
        text.append(f'[[point]]\nname = "goal{leg}"\nframe = "{where}"\nposition = {end.tolist()}\n')
        text.append(f'[[closure]]\nbetween = ["goal{leg}", "end{leg}"]\njoint = "spherical"\n')
    path.write_text("".join(text))
    return parflex.load(path)


@pytest.mark.few
@pytest.mark.parametrize("hanging", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_legs_of_every_kind_are_placed_and_told_apart(kind, hanging, tmp_path):
    """Joints go from home on a random way with loops closed: at its end the closed form must find them again."""
    robot = robot_of(kind, tmp_path, hanging)
    found_by = solver(robot, ["x", "y", "z", "rx", "ry", "rz"])
    assert found_by.places is not None and found_by.fast
    parts = [p for p in robot.assembler.parts(found_by.target, robot.locked) if len(p.columns)]
    judged = [sides(robot.tree, p.rows, p.columns, p.held, robot.preference, robot.home) for p in parts]
    legs = [one.dyads[0].leg for one in judged if isinstance(one.dyads[0], LegSide)]
    assert {(leg.kind, leg.alone) for leg in legs} == {KINDS[kind][2:]} and len(legs) == 3
    rng = np.random.default_rng(1)
    home = np.concatenate([robot.home[:3], np.zeros(3)])
    values = home + rng.uniform(-1, 1, (40, 6)) * np.array([0.1, 0.1, 0.1, 0.3, 0.3, 0.3])
    values[:5] = home + 0.06 * (values[:5] - home)
    start = found_by.given.start(values, np.repeat(found_by.geometry.home[None], 40, axis=0))
    beyond, q = found_by.places(start)
    walked = [_walked(robot, home, row) for row in values[:5]]
    assert sum(gone is not None for gone in walked) >= 2
    for gone, own, missed in zip(walked, q, beyond, strict=False):
        assert gone is None or (not missed and np.abs(gone - own).max() < 1e-7)
    good = ~beyond & np.isfinite(q).all(axis=1)
    for own in q[good]:  # all that is placed is closed, on the sides of home
        at = pose(robot.tree, own)
        assert max(np.abs(loop.residual(at, 1.0)).max() for loop in robot.closures.loops) < 1e-9
        assert all(one.fit(robot.tree, at, []) for one in judged)


def _walked(robot, home, values):
    """Positions at the end of a straight way, by Newton's method in eight steps; None where a step is large."""
    q, tree = robot.home.copy(), robot.tree
    columns = np.arange(6, tree.n)
    for share in np.linspace(0, 1, 9)[1:]:
        now = home + share * (values - home)
        q[:3] = now[:3]
        q[3:7] = vector_quaternion(now[None, 3:])[0]
        before = q.copy()
        q, error = robot.assembler.newton(q, columns, robot.closures.loops, 20)
        if error > 1e-10 or np.abs(q[7:] - before[7:]).max() > 0.15:
            return None
    return q


def test_axes_that_designs_move_apart_do_not_count_as_crossing(tmp_path):
    robot_of("RUS", tmp_path)
    text = (tmp_path / "RUS.toml").read_text().replace("[constants]", "[constants]\noff = 0.0")
    text = text.replace(
        "position = [0, 0, 0], rotation = [1.4, 0, 0]", 'position = ["off", 0, 0], rotation = [1.4, 0, 0]'
    )
    (tmp_path / "off.toml").write_text(text)
    robot = parflex.load(tmp_path / "off.toml")
    names, off = ["x", "y", "z", "rx", "ry", "rz"], np.array([0.0, 0.01, 0.02])
    still = solver(robot, names, numbers_of_designs(robot, {"constants.off": 0.0 * off}))
    assert still.places is not None  # where they happen to cross, they count as crossing
    found_by = solver(robot, names, numbers_of_designs(robot, {"constants.off": off}))
    assert found_by.places is None and found_by.unsettled.size == 9
    values = np.repeat(np.concatenate([robot.home[:3], np.zeros(3)])[None], 3, axis=0)
    found = found_by(values, np.arange(3))
    assert (found.status == OK).all()
    for row, own in enumerate(off):
        one = parflex.load(tmp_path / "off.toml", settings={"constants.off": float(own)})
        here = parflex.configure(one, dict(zip(names, values[row].tolist(), strict=True)))
        assert np.abs(here.q[7:] - found.q[row, 7 : robot.tree.nq]).max() < 1e-8
