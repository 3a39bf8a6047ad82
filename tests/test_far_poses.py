"""Far poses: what closes in several assemblies on one side of its singularities stays in that of home.

The crank of a spatial four-bar places one end of its coupler, the rocker the other; their distance is the coupler's
length. That is `a cos + b sin = c` for the rocker: two angles, told apart by the sign of their arc cosine. The cross
at the other end flips with it, so that the determinant of the loop does not tell them apart.
"""

from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.maps.batches import Geometry
from parflex.maps.positions import PositionSolver

FILE = Path(__file__).parent / "robots" / "spatial-four-bar.toml"
COUPLER, CROSS, PIVOT, BALL = 0.5, [0.12, 0.0, 0.02], [0.5, 0.1, 0.05], [0.25, 0.0, 0.03]
ROUNDING = 1e-9  # rad: loops close to 1e-10 of the typical length


def about(axis: int, angle: float) -> np.ndarray:
    """A rotation about a coordinate axis."""
    c, s = np.cos(angle), np.sin(angle)
    first, second = [(1, 2), (2, 0), (0, 1)][axis]
    result = np.eye(3)
    result[np.ix_([first, second], [first, second])] = [[c, -s], [s, c]]
    return result


def rocker(robot: parflex.Robot, crank: float, branch: float) -> float:
    """Angle of the rocker on one branch, from the length of the coupler alone."""
    placed = robot.tree.links[robot.tree.number("rocker")].rotation
    cross = about(2, crank) @ CROSS
    away = placed.T @ (cross - PIVOT)
    # |Rz(t) ball - away| = coupler
    a = 2 * (BALL[0] * away[0] + BALL[1] * away[1])
    b = 2 * (BALL[0] * away[1] - BALL[1] * away[0])
    c = float(np.dot(BALL, BALL) + away @ away - 2 * BALL[2] * away[2] - COUPLER**2)
    return float(np.arctan2(b, a) + branch * np.arccos(c / np.hypot(a, b)))


def apart(first: float, second: float) -> float:
    """Difference of two angles, whole turns aside."""
    return abs(float(np.angle(np.exp(1j * (first - second)))))


@pytest.fixture(scope="module")
def four_bar() -> tuple[parflex.Robot, float, int]:
    """The robot, the branch of its home, and where the rocker stands among the positions."""
    robot = parflex.load(FILE)
    index = robot.tree.links[robot.tree.number("rocker")].q.start
    branch = next(sign for sign in (1.0, -1.0) if apart(rocker(robot, 0.4, sign), robot.home[index]) < ROUNDING)
    return robot, branch, index


def test_a_far_crank_stays_in_the_assembly_of_home(four_bar: tuple[parflex.Robot, float, int]) -> None:
    """1.253 ended on the other branch with its cross flipped; random ones beside it."""
    robot, branch, index = four_bar
    for crank in [1.253, *np.random.default_rng(5).uniform(-1.15, 1.5, 8)]:
        found = robot.assemble({"crank": float(crank)})[index]
        assert apart(found, rocker(robot, crank, branch)) < ROUNDING
        whole = robot.assemble({"crank": float(crank) + 2 * np.pi})[index]  # the way round is blocked
        assert apart(whole, found) < ROUNDING


@pytest.mark.parametrize("count", [1, 9, 90])
def test_far_cranks_of_maps_stay_in_the_assembly_of_home(
    four_bar: tuple[parflex.Robot, float, int], count: int
) -> None:
    """One pose, few from home, and many from their neighbours, the farthest first."""
    robot, branch, index = four_bar
    cranks = np.linspace(1.5, -1.15, count)[:, None] if count > 1 else np.array([[1.253]])
    found = PositionSolver(Geometry(robot), ["crank"], [0.4])(cranks)
    assert not found.status.any()
    errors = [apart(q[index], rocker(robot, float(crank), branch)) for q, (crank,) in zip(found.q, cranks, strict=True)]
    assert max(errors) < ROUNDING


SPRUNG = """
format = 1
name = "sprung-crank"
motion = "planar"
gravity = [0, 0, 0]
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 0.5
inertia = { mass = 0.1 }
[[frame]]
name = "pin"
parent = "crank"
place = { position = [0.1, 0, 0] }
joint = "revolute"
start = 0.3
spring = { stiffness = 0.5 }
inertia = { mass = 0.2, centre = [0.2, 0, 0] }
[[frame]]
name = "rocker"
place = { position = [0.4, 0, 0] }
joint = "revolute"
start = 1.5
inertia = { mass = 0.1 }
[[point]]
name = "a"
frame = "pin"
position = [0.4, 0, 0]
[[point]]
name = "b"
frame = "rocker"
position = [0.25, 0, 0]
[[closure]]
between = ["a", "b"]
joint = "revolute"
[poses.home]
crank = 0.5
"""


def coupler(crank: np.ndarray) -> np.ndarray:
    """Angle of the pin of the sprung crank by triangles, followed from its first value on."""
    joint = 0.1 * np.exp(1j * crank)
    away = 0.4 - joint
    far = np.abs(away)
    inner = np.arccos((0.4**2 + far**2 - 0.25**2) / (2 * 0.4 * far))
    return np.unwrap(np.angle(away) + inner - crank)


def test_a_spring_is_wound_as_turning_there_from_home_winds_it(tmp_path: Path) -> None:
    """Turns of a passive joint with a spring count: alone, in maps, and beside other rows."""
    (tmp_path / "sprung.toml").write_text(SPRUNG)
    robot = parflex.load(tmp_path / "sprung.toml")
    pin = robot.tree.links[robot.tree.number("pin")].q.start
    goals = np.array([-3.0, 4.5, -4.5, 0.7, 6.0, -9.0])
    true = []
    for goal in goals:
        way = coupler(np.linspace(0.5, goal, 2001))
        true.append(robot.home[pin] + way[-1] - way[0])
    for goal, angle in zip(goals, true, strict=True):
        assert robot.assemble({"crank": float(goal)})[pin] == pytest.approx(angle, abs=ROUNDING)
        alone = PositionSolver(Geometry(robot), ["crank"], [0.5])(np.array([[goal]]))
        assert alone.q[0, pin] == pytest.approx(angle, abs=ROUNDING)
    together = PositionSolver(Geometry(robot), ["crank"], [0.5])(goals[:, None])
    assert not together.status.any() and together.q[:, pin] == pytest.approx(true, abs=ROUNDING)
