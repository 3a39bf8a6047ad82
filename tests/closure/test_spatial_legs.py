"""Legs and arms in space in closed form: reach by lengths alone, joints of every kind of leg, sides, designs."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.maps import OK, UNREACHABLE, end_effector, indices, pose_solver, sides_of, start_of
from support.oracles.known_machines import orthoglide_design, orthoglide_slides
from support.robots import load_robot, write_robot

import parflex
from parflex import Configuration
from parflex.closure.leg_geometry import LegSign

DELTA = {"base": 0.2, "platform": 0.05, "arm": 0.25, "rod": 0.5}  # m
LEGS = np.array([0.0, 2 * np.pi / 3, -2 * np.pi / 3])
PLACE = ["x", "y", "z", "rx", "ry", "rz"]
EDGE = 1e-9  # near the edge of reach rounding is a square root
MIDDLE = np.array([0, 0, -0.4])  # m, of the workspace of the Delta robot


def solver(robot, names, designs=None, compiled=False):
    position, rotation = end_effector(robot)
    home = dict(zip(PLACE, [*position, *Rotation.from_matrix(rotation).as_rotvec()], strict=True))
    return pose_solver(robot, names, [float(home[name]) for name in names], designs, compiled)


def arm_angle(ball, gamma, base, arm, rod):
    """Return the angle of an arm with its knee outside, in a plane at gamma; not a number out of reach."""
    out, across = np.array([np.cos(gamma), np.sin(gamma), 0]), np.array([-np.sin(gamma), np.cos(gamma), 0])
    x, y, z = ball @ out - base, ball @ across, ball[..., 2]
    far = np.hypot(x, z)
    with np.errstate(invalid="ignore"):
        return np.arctan2(z, x) + np.arccos((arm**2 + far**2 - (rod**2 - y**2)) / (2 * arm * far))


def delta_arms(values, base, platform, arm, rod):
    return np.array([arm_angle(values, gamma, base - platform, arm, rod) for gamma in LEGS]).T


def check_reach(robot, solver, values, joints, wanted, designs=None):
    """Check reach and the angles of some joints against a closed form; return which poses are reached, and q."""
    reached = np.isfinite(wanted).all(axis=1)
    assert 0.2 * len(values) < reached.sum() < 0.9 * len(values)
    found = solver(values) if designs is None else solver(values, designs)
    status = np.where(found.status == 4, OK, found.status)  # outside limits: closed forms know no limits of joints
    assert np.array_equal(status, np.where(reached, OK, UNREACHABLE))
    assert np.abs(np.sin(found.q[:, indices(robot, joints)] - wanted)[reached]).max() < EDGE
    return reached, found.q


def around(middle, size, count, seed=5):
    return middle + size * np.random.default_rng(seed).uniform(-1, 1, (count, 3))


ARMS = [f"leg{k}.arm" for k in (1, 2, 3)]


@pytest.mark.parametrize("compiled", [False, True])
def test_reach_and_arms_of_delta_are_those_of_its_lengths(compiled):
    robot = parflex.load("delta")
    delta, values = solver(robot, "xyz", compiled=compiled), around(MIDDLE, 0.4, 1500)
    reached, _ = check_reach(robot, delta, values, ARMS, delta_arms(values, **DELTA))
    if not compiled:
        assert np.array_equal(delta.places(start_of(delta, values))[0], ~reached)  # all of them are proved


def test_single_poses_of_delta_are_in_the_same_mode():
    robot, values = parflex.load("delta"), around(MIDDLE, 0.4, 160)
    arms = delta_arms(values, **DELTA)
    reached = np.isfinite(arms).all(axis=1)
    some = np.flatnonzero(reached)[:60:4]
    for row, angles in zip(values[some], arms[some], strict=True):
        q = parflex.configure(robot, dict(zip("xyz", row, strict=True))).q
        assert np.abs(np.sin(q[indices(robot, ARMS)] - angles)).max() < EDGE
    with pytest.raises(parflex.UnreachableError):
        parflex.configure(robot, dict(zip("xyz", values[~reached][0], strict=True)))


def test_sides_of_delta_are_its_numbers_alone():
    """Where knees are outside, whatever determinant of some of the rows is negative."""
    robot = parflex.load("delta")
    delta = solver(robot, "xyz")
    found, judged = delta(around(MIDDLE, 0.4, 300)), sides_of(robot, delta.target, robot.home)
    for q in found.q[found.status == OK]:
        here = Configuration(robot, q)
        assert all(one.fit(robot.tree, here.at, here.link_jacobians) for one in judged)


@pytest.mark.parametrize("name", ["delta", "delta-bars-on-elbow"])
def test_designs_have_their_own_reach(name):
    robot, rng = parflex.load(name) if name == "delta" else load_robot(name), np.random.default_rng(3)
    keys = ["base_radius", "platform_radius", "arm", "rod"] if name == "delta" else [*DELTA, "half"]
    rows = np.array([*DELTA.values(), 0.04])[: len(keys)] * rng.uniform(0.8, 1.2, (300, len(keys)))
    designs = solver(robot, "xyz", {f"constants.{key}": rows[:, k] for k, key in enumerate(keys)})
    values = MIDDLE + 0.3 * rng.uniform(-1, 1, (300, 3))
    arms = np.array([delta_arms(row[None], *own[:4])[0] for row, own in zip(values, rows, strict=True)])
    assert designs.places is not None
    check_reach(robot, designs, values, ARMS, arms, np.arange(300))


def opening_of_places(solver, values):
    """Return how far loops are open, in metres, where the closed form puts all joints."""
    q = solver.places(start_of(solver, values))[1]
    at = [Configuration(solver.robot, row).at for row in q]
    return max(np.abs(loop.residual(here, 1.0)).max() for here in at for loop in solver.robot.closures.loops)


@pytest.mark.few
@pytest.mark.parametrize("closed_form", [True, False])
@pytest.mark.parametrize("mounted", ["elbow", "coupler"])
def test_reach_and_arms_of_a_delta_with_parallelograms(mounted, closed_form, monkeypatch):
    """Rows of the parallelograms repeat others, so that determinants of some of them tell nothing."""
    if not closed_form:  # as legs are judged that are no such legs; another number, as programs are kept
        monkeypatch.setattr("parflex.closure.leg_geometry.find_parallelogram", lambda *_: None)
    robot = load_robot(f"delta-bars-on-{mounted}", settings={} if closed_form else {"platform.inertia.mass": 0.61})
    delta = solver(robot, "xyz", compiled=not closed_form)
    assert (delta.places is not None) == closed_form
    delta.follows_paths = False
    values = around(MIDDLE, 0.4, 600 if closed_form else 1500)
    arms = delta_arms(values, **DELTA)
    reached, _ = check_reach(robot, delta, values, ARMS, arms)
    if closed_form:
        assert opening_of_places(delta, values[reached][:20]) < 1e-9
        for row in np.flatnonzero(reached)[:6]:
            q = parflex.configure(robot, dict(zip("xyz", values[row], strict=True))).q
            assert np.abs(np.sin(q[indices(robot, ARMS)] - arms[row])).max() < EDGE


def test_a_wrist_behind_a_parallelogram_is_not_turned_by_it():
    robot = load_robot("delta-bars-with-wrist")
    delta = solver(robot, PLACE)
    values = np.zeros((40, 6))
    values[:, :3] = around(MIDDLE, 0.1, 40)
    arms = delta_arms(values[:, :3], **DELTA)
    assert np.isfinite(arms).all() and opening_of_places(delta, values) < 1e-9
    assert np.abs(np.sin(delta(values).q[:, indices(robot, ARMS)] - arms)).max() < EDGE


def test_reach_and_slides_of_the_orthoglide_are_those_of_its_lengths():
    robot, length = parflex.load("orthoglide"), orthoglide_design(0.2, 0.5, 2.0)[0]
    values = around(np.zeros(3), 0.36, 600)
    with np.errstate(invalid="ignore"):
        slides = np.array([orthoglide_slides(row, length) for row in values]) - length
    reached, q = check_reach(robot, solver(robot, "xyz"), values, [f"{k}.slide" for k in "xyz"], slides)
    # no parallelogram is past its flat pose
    assert np.abs(q[:, indices(robot, [f"{k}.bar" for k in "xyz"])][reached]).max() < np.pi / 2


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
    robot = parflex.load(write_robot(tmp_path, "".join(text), kind))
    frames = parflex.frames(robot, Configuration(robot, robot.start))  # closures where the legs end at their starts
    body, turn = frames["platform"]
    for leg in range(3):
        end = frames[f"end{leg}"].position
        if not hanging:
            end = turn.T @ (end - body)
        where = "base" if hanging else "platform"
        text.append(f'[[point]]\nname = "goal{leg}"\nframe = "{where}"\nposition = {end.tolist()}\n')
        text.append(f'[[closure]]\nbetween = ["goal{leg}", "end{leg}"]\njoint = "spherical"\n')
    return parflex.load(write_robot(tmp_path, "".join(text), kind))


@pytest.mark.few
@pytest.mark.parametrize("hanging", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_legs_of_every_kind_are_placed_and_told_apart(kind, hanging, tmp_path):
    """Joints go from home along a random path with loops closed: at its end the closed form must find them again."""
    robot = robot_of(kind, tmp_path, hanging)
    legs = solver(robot, PLACE)
    assert legs.places is not None and legs.fast
    judged = sides_of(robot, legs.target, robot.home)
    found = [one.dyads[0].leg for one in judged if isinstance(one.dyads[0], LegSign)]
    assert {(leg.kind, leg.alone) for leg in found} == {KINDS[kind][2:]} and len(found) == 3
    home = np.concatenate([robot.home[:3], np.zeros(3)])
    values = home + np.random.default_rng(1).uniform(-1, 1, (40, 6)) * np.array([0.1, 0.1, 0.1, 0.3, 0.3, 0.3])
    values[:5] = home + 0.06 * (values[:5] - home)
    beyond, q = legs.places(start_of(legs, values))
    followed = [follow(robot, home, row) for row in values[:5]]
    assert sum(end is not None for end in followed) >= 2
    for end, own, missed in zip(followed, q, beyond, strict=False):
        assert end is None or (not missed and np.abs(end - own).max() < 1e-7)
    for own in q[~beyond & np.isfinite(q).all(axis=1)]:  # all that is placed is closed, on the sides of home
        at = Configuration(robot, own).at
        assert max(np.abs(loop.residual(at, 1.0)).max() for loop in robot.closures.loops) < 1e-9
        assert all(one.fit(robot.tree, at, []) for one in judged)


def follow(robot, home, values):
    """Return positions at the end of a straight path, by Newton's method in eight steps; None if a step is large."""
    q, columns = robot.home.copy(), np.arange(6, robot.tree.n)
    for share in np.linspace(0, 1, 9)[1:]:
        now = home + share * (values - home)
        q[:3], q[3:7] = now[:3], np.roll(Rotation.from_rotvec(now[3:]).as_quat(), 1)
        before = q.copy()
        q, error = robot.assembler.newton(q, columns, robot.closures.loops, 20)
        if error > 1e-10 or np.abs(q[7:] - before[7:]).max() > 0.15:
            return None
    return q


def test_axes_that_designs_move_apart_do_not_count_as_crossing(tmp_path):
    robot_of("RUS", tmp_path)
    text = (tmp_path / "RUS.toml").read_text().replace("[constants]", "[constants]\noff = 0.0")
    turned = "0, 0], rotation = [1.4, 0, 0]"
    text = text.replace(f"position = [0, {turned}", f'position = ["off", {turned}')
    robot, off = parflex.load(write_robot(tmp_path, text, "off")), np.array([0.0, 0.01, 0.02])
    assert solver(robot, PLACE, {"constants.off": 0.0 * off}).places is not None  # where they happen to cross
    legs = solver(robot, PLACE, {"constants.off": off})
    assert legs.places is None and legs.unsettled.size == 9
    values = np.repeat(np.concatenate([robot.home[:3], np.zeros(3)])[None], 3, axis=0)
    found = legs(values, np.arange(3))
    assert (found.status == OK).all()
    for row, own in enumerate(off):
        one = parflex.load(robot.file, settings={"constants.off": float(own)})
        here = parflex.configure(one, dict(zip(PLACE, values[row].tolist(), strict=True)))
        assert np.abs(here.q[7:] - found.q[row, 7 : robot.tree.nq]).max() < 1e-8


PAR4 = {gamma: f"{leg}.arm" for gamma, leg in zip(
    np.radians([45, 135, -135, -45]), ("front_left", "rear_left", "rear_right", "front_right"), strict=True
)}  # fmt: skip


def par4_arms(values, angle, half=0.08, ratio=4):
    """Return the angles of the arms of a Par4: its tool turns `ratio` times as far as its bars, the other way."""
    bar = -angle / ratio
    front = values + np.array([0, 0, 0.06])
    rear = front - 2 * half * np.stack([np.cos(bar), np.sin(bar), 0 * bar], axis=1)
    aside = np.array([0, half, 0])
    balls = (front + aside, rear + aside, rear - aside, front - aside)
    return np.array([arm_angle(ball, gamma, 0.275, 0.375, 0.825) for gamma, ball in zip(PAR4, balls, strict=True)]).T


@pytest.mark.verify
def test_reach_and_arms_of_par4_are_those_of_its_lengths():
    """Far out, redundant rows look like another mode; half of the cells are out of reach."""
    robot = parflex.load("par4")
    par4 = solver(robot, PLACE, compiled=True)
    assert par4.fast
    values = np.array([0.08, 0, -0.81, 0, 0, 0]) + np.random.default_rng(1).uniform(-1, 1, (1500, 6)) * 0.6
    values[:, 3:5] = 0.0
    par4.follows_paths = False  # neighbours suffice
    arms = par4_arms(values[:, :3], values[:, 5])
    reached, found = np.isfinite(arms).all(axis=1), par4(values)
    assert 500 < reached.sum() < 1000 and np.array_equal(found.status != UNREACHABLE, reached)
    assert np.abs(np.sin(found.q[:, indices(robot, PAR4.values())] - arms)[reached]).max() < 10 * EDGE


def test_what_is_not_named_is_kept_as_at_home():
    robot = parflex.load("par4")
    par4 = solver(robot, "xyz")
    assert par4.fast and par4.keeps
    par4.keeps = False  # nothing is left to single poses
    values = around(np.array([0.08, 0, -0.81]), 0.15, 40, 1)
    found, arms = par4(values), par4_arms(values, np.zeros(40))
    assert (found.status == OK).all() and np.isfinite(arms).all()
    assert np.abs(np.sin(found.q[:, indices(robot, PAR4.values())] - arms)).max() < 1e-9


def test_hands_that_keep_their_direction_are_where_single_ones_are():
    robot = parflex.load("rx90")
    arm = solver(robot, "xyz")
    assert arm.keeps
    arm.keeps = False  # nothing is left to single poses
    values = end_effector(robot)[0] + np.array([[0.1, 0.05, -0.05], [0.55, 0.3, 0.2], [2.0, 0, 0]])
    found = arm(values)
    assert found.status.tolist() == [OK, OK, UNREACHABLE]
    for row, q in zip(values[:2], found.q, strict=False):
        here = parflex.configure(robot, dict(zip("xyz", row.tolist(), strict=True)))
        assert np.abs(np.sin((here.q - q) / 2)).max() < 1e-7


@pytest.mark.parametrize("name", ["rx90", "puma560"])
def test_hands_of_open_chains_are_where_they_were_taken_from(name):
    """Joints go a random way from home: their hand is placed again, in the same assembly."""
    robot, rng = parflex.load(name), np.random.default_rng(2)
    joints = robot.home + 0.25 * rng.uniform(-1, 1, (40, robot.tree.nq))
    hands = [end_effector(robot, q) for q in joints]
    arm = solver(robot, PLACE)
    assert arm.fast
    found = arm(np.array([[*P, *Rotation.from_matrix(R).as_rotvec()] for P, R in hands]))
    assert (found.status == OK).all()
    for q, (P, R) in zip(found.q, hands, strict=True):
        position, rotation = end_effector(robot, q)
        assert np.abs(rotation - R).max() < 1e-8 and np.abs(position - P).max() < 1e-8
    assert np.abs(np.sin((found.q - joints) / 2)).max(axis=1).min() < 1e-7
