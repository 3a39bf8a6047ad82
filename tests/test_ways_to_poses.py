"""Ways to poses: where the straight one meets a singular pose, answers stay in the assembly of home or say so.

Of a Gough-Stewart robot the lengths of legs are distances of points, and the assembly of home is followed here by their
own slopes. An arm that pans, tilts and slides is in polar coordinates.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import parflex
from parflex.closure.assembly.ways import ways
from parflex.maps.batches import Geometry
from parflex.maps.positions import OK, UNREACHABLE, PositionSolver

ROUNDING = 1e-9  # m, rad: loops close to 1e-10 of the typical length
FEET = np.array([[0.1, 0.3, 1.3, 1.0, -0.2, -0.7], [-0.2, -0.2, 0.4, 1.0, 0.9, 0.5], np.zeros(6)]).T
VERTICES = np.array([-2, -1, 0, 1, 2, 3]) * np.pi / 3
TOPS = 0.5 * np.array([np.cos(VERTICES), np.sin(VERTICES), np.zeros(6)]).T
HOME = np.array([0.25, 0.433, 1.0])
MOVED = np.random.default_rng(3).uniform(-0.03, 0.03, (8, 6))
BEYOND = [3, 7]  # rows of MOVED between which and home two assemblies meet and vanish


def legs(place: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the legs, and their slopes by translations and rotations of the platform in world axes."""
    arms = TOPS @ turn.T
    along = place + arms - FEET
    sizes = np.linalg.norm(along, axis=1)
    unit = along / sizes[:, None]
    return sizes, np.hstack([unit, np.cross(arms, unit)])


def followed_home(change: np.ndarray, steps: int = 60) -> tuple[np.ndarray, np.ndarray] | None:
    """Where the platform goes while all legs grow evenly; None where the slopes become singular before."""
    place, turn = HOME, np.eye(3)
    start, J = legs(place, turn)
    side = np.linalg.det(J)
    for step in range(1, steps + 1):
        for _ in range(20):
            sizes, J = legs(place, turn)
            move = np.linalg.solve(J, start + step / steps * change - sizes)
            if np.abs(move).max() > 0.3:
                return None
            place, turn = place + move[:3], Rotation.from_rotvec(move[3:]).as_matrix() @ turn
        if np.linalg.det(legs(place, turn)[1]) * side <= 0 or np.abs(move).max() > ROUNDING:
            return None
    return place, turn


@pytest.fixture(scope="module")
def hexapod() -> parflex.Robot:
    """The rigid Gough-Stewart robot."""
    return parflex.load("gough-stewart")


@pytest.mark.verify
def test_legs_beyond_a_singular_pose_are_refused_alone_and_in_maps(hexapod: parflex.Robot) -> None:
    """Alone they ended in an assembly 2.5 rad away, in maps they were out of reach without a reason."""
    names = list(hexapod.actuated_names)
    lengths = legs(HOME, np.eye(3))[0] + MOVED
    true = [followed_home(change) for change in MOVED]
    assert [k for k, one in enumerate(true) if one is None] == BEYOND
    geometry = Geometry(hexapod)
    geometry.settle(1000)  # compiled, which is faster here
    found = PositionSolver(geometry, names, lengths[0].tolist())(lengths)
    assert np.flatnonzero(found.status).tolist() == BEYOND and (found.status[BEYOND] == UNREACHABLE).all()
    assert found.said is not None
    assert all("only in another assembly mode" in found.said[k] for k in BEYOND)
    for k, one in enumerate(true):
        if one is not None and k < BEYOND[0]:
            alone = hexapod.assemble(dict(zip(names, lengths[k].tolist(), strict=True)))
            assert found.q[k] == pytest.approx(alone, abs=ROUNDING)
        if one is not None:
            assert found.q[k, :3] == pytest.approx(one[0], abs=ROUNDING)
    refused = dict(zip(names, lengths[BEYOND[0]].tolist(), strict=True))
    with pytest.raises(parflex.UnreachableError, match="only in another assembly mode"):
        hexapod.assemble(refused)


TURRET = """
format = 1
name = "turret"
gravity = [0, 0, 0]
end_effector = "tip"
[[frame]]
name = "pan"
joint = "revolute"
actuated = true
inertia = { mass = 1 }
[[frame]]
name = "tilt"
parent = "pan"
joint = "revolute"
actuated = true
place = { rotation = ["-pi/2", 0, 0] }
start = 0.6
inertia = { mass = 1 }
[[frame]]
name = "slide"
parent = "tilt"
joint = "prismatic"
actuated = true
place = { rotation = ["pi/2", 0, 0] }
start = 0.9
inertia = { mass = 1 }
[[point]]
name = "tip"
frame = "slide"
position = [0, 0, 0]
"""


def test_a_way_around_a_singular_pose_stays_on_the_side_of_home(tmp_path: Path) -> None:
    """Straight to the other side of its axis an arm passes through it; around it, it keeps its tilt and pans."""
    (tmp_path / "turret.toml").write_text(TURRET)
    robot = parflex.load(tmp_path / "turret.toml")
    pan, tilt, slide = (robot.tree.links[robot.tree.number(name)].q.start for name in ("pan", "tilt", "slide"))
    goals = np.array([[-0.5, 0.0, 0.7], [-0.3, 0.0, 0.8], [-0.2, 0.3, 0.9]])
    mapped = PositionSolver(Geometry(robot), ["x", "y", "z"], goals[0].tolist())(goals)
    assert (mapped.status == OK).all()
    for row, goal in enumerate(goals):
        far = np.hypot(goal[0], goal[1])
        alone = robot.assemble(dict(zip("xyz", goal.tolist(), strict=True)))
        for q in (alone, mapped.q[row]):
            assert np.exp(1j * q[pan]) == pytest.approx((goal[0] + 1j * goal[1]) / far, abs=ROUNDING)
            assert q[tilt] == pytest.approx(np.arctan2(far, goal[2]), abs=ROUNDING)
            assert q[slide] == pytest.approx(np.linalg.norm(goal), abs=ROUNDING)


def test_ways_end_at_the_goal_and_lie_beside_each_other() -> None:
    """The straight one first, whole turns aside next, then ways whose points are off it in comparable units."""
    home, goal, units = np.array([0.1, 0.0]), np.array([0.1 + 1.5 * np.pi, 20.0]), np.array([1.0, 100.0])
    found = list(ways(home, goal, units, np.array([True, False])))
    assert np.array_equal(found[0], goal[None])
    shorter = goal - [2 * np.pi, 0]
    assert found[1] == pytest.approx(shorter[None])
    assert all(np.abs(np.sin((way[-1, 0] - goal[0]) / 2)) < ROUNDING and way[-1, 1] == goal[1] for way in found)
    beside = [way[0] for way in found if len(way) == 2][2:]
    along = (shorter - home) / units
    offs = [(point - (home + shorter) / 2) / units for point in beside]
    assert len(offs) == 4 and [float(off @ along) for off in offs] == pytest.approx([0.0] * 4, abs=ROUNDING)
    assert sorted({round(float(np.linalg.norm(off) / np.linalg.norm(along)), 6) for off in offs}) == [0.5, 1.0]


def test_a_pose_that_is_given_by_more_joints_than_freedoms_is_that_of_these_joints():
    """Nothing closes on a straight way of all joints: what is given tells the assembly."""
    robot = parflex.load("3rrr")
    q = robot.assemble({"x": 0.05, "y": -0.05, "theta": 0.9})
    joints = {name: float(q[k]) for k, name in enumerate(robot.tree.position_names) if name.startswith("leg")}
    assert np.allclose(robot.assemble(joints), q, atol=1e-9)  # of joints written with all digits


ROCKER = """
format = 1
name = "arm-on-a-four-bar"
motion = "planar"
end_effector = "hand"
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 1.2
place = { position = [-0.3, 0, 0] }
inertia = { mass = 0.2, about_centre = [0, 0, 0.001] }
[[frame]]
name = "coupler"
parent = "crank"
joint = "revolute"
start = -1.1
place = { position = [0.1, 0, 0] }
inertia = { mass = 0.2, about_centre = [0, 0, 0.001] }
[[point]]
name = "eye"
frame = "coupler"
position = [0.3, 0, 0]
[[frame]]
name = "upper"
joint = "revolute"
start = 1.4
inertia = { mass = 0.5, about_centre = [0, 0, 0.001] }
[[point]]
name = "horn"
frame = "upper"
position = [0.15, 0, 0]
[[closure]]
name = "pin"
between = ["eye", "horn"]
joint = "revolute"
[[frame]]
name = "fore"
parent = "upper"
place = { position = [0.3, 0, 0] }
joint = "revolute"
actuated = true
start = -1.2
inertia = { mass = 0.5, centre = [0.1, 0, 0], about_centre = [0, 0, 0.001] }
[[point]]
name = "hand"
frame = "fore"
position = [0.25, 0, 0]
"""


def test_maps_say_where_only_another_working_mode_reaches_a_pose(tmp_path):
    """An arm whose shoulder a four-bar turns: with its elbow on the other side it may reach what is out of its range.

    Elbows and the range of the rocker by hand: the crank of 0.1 and the coupler of 0.3 span 0.2 to 0.4 from its pivot.
    """
    file = tmp_path / "rocker.toml"
    file.write_text(ROCKER)
    robot, poses = parflex.load(file), np.random.default_rng(2).uniform(-0.5, 0.5, (40, 2))
    far = np.hypot(*poses.T)
    within = (far < 0.55) & (far > 0.05)  # of upper arm and forearm
    turn = np.arccos(np.clip((0.3**2 + far**2 - 0.25**2) / (0.6 * far), -1, 1))
    spans = []
    for side in (1, -1):  # at home the forearm is turned to the right of the upper arm
        shoulder = np.arctan2(poses[:, 1], poses[:, 0]) + side * turn
        span = np.hypot(0.15 * np.cos(shoulder) + 0.3, 0.15 * np.sin(shoulder))
        spans.append(within & (span > 0.2) & (span < 0.4))
    found = parflex.many_responses(robot, ["x", "y"], poses, ["mass"])
    own, other = spans
    assert np.array_equal(found.status == OK, own) and 3 < (~own & other).sum() < 30
    for k in np.flatnonzero(~own):
        said = "pin reaches this pose only in another working mode" if other[k] else "the pose cannot be reached"
        assert found.reasons[k] == said
    row = int(np.flatnonzero(~own & other)[0])
    with pytest.raises(parflex.UnreachableError, match="pin reaches this pose only in another working mode"):
        robot.assemble(dict(zip("xy", poses[row].tolist(), strict=True)))
