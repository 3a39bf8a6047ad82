"""Poses by motors and coordinates of the platform together: what is given folds where no leg is singular.

Legs have the working mode of home; of two poses that have it, the one on its side of the fold is meant. All assemblies
are known from circles that meet, written here without the package.
"""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex.maps.batches import Geometry
from parflex.maps.positions import OK, UNREACHABLE, PositionSolver
from parflex.recursion import pose

FEET, CRANK, ROD = (-0.12, 0.12), 0.3, 0.4  # of the 5r
CLEAR = 1e-3  # rad of sines: nearer to a fold or a stretched leg rounding chooses
SAME = 1e-6  # rad: positions are closed to 1e-9 of lengths, and folds are 1e-3 away


def sine(angle: float) -> float:
    return float(np.sin(angle))


def five_bars(crank: float, x: float) -> list[tuple[np.ndarray, float]]:
    """All assemblies of a five-bar with its left crank and x of its tip given: angles, and the side of the fold."""
    elbow = np.array([FEET[0], 0.0]) + CRANK * np.array([np.cos(crank), np.sin(crank)])
    if abs(x - elbow[0]) > ROD:
        return []
    found = []
    for turn in (1, -1):
        rod = turn * np.arccos((x - elbow[0]) / ROD)
        tip = elbow + ROD * np.array([np.cos(rod), np.sin(rod)]) - [FEET[1], 0.0]
        bend = (tip @ tip - CRANK**2 - ROD**2) / (2 * CRANK * ROD)
        for side in (1, -1) if abs(bend) <= 1 else ():
            knee = side * np.arccos(bend)
            foot = np.arctan2(tip[1], tip[0]) - np.arctan2(ROD * sine(knee), CRANK + ROD * np.cos(knee))
            found.append((np.array([crank, rod - crank, foot, knee]), sine(rod)))
    return found


def meant(found: list[tuple[np.ndarray, float]]) -> np.ndarray | None:
    """Left elbow to the left, right one to the right as at home, and above the fold if there is such a one."""
    mode = [one for one in found if sine(one[0][1]) < 0 < sine(one[0][3])]
    return max(mode, key=lambda one: one[1])[0] if mode else None


def clear(found: list[tuple[np.ndarray, float]]) -> bool:
    return all(min(abs(fold), abs(sine(q[1])), abs(sine(q[3]))) > CLEAR for q, fold in found)


def same(q: np.ndarray, other: np.ndarray) -> bool:
    return float(np.abs(np.angle(np.exp(1j * (q - other)))).max()) < SAME


@pytest.fixture(scope="module")
def five_bar() -> parflex.Robot:
    return parflex.load("5r")


def test_a_fold_of_a_coordinate_is_no_other_working_mode(five_bar):
    turns, places = np.linspace(0.1, 6.1, 8), np.linspace(-0.4, 0.4, 5)
    rows = np.array([(a, x) for a in turns for x in places if clear(five_bars(a, x))])
    solver = PositionSolver(Geometry(five_bar), ["left.1", "x"], rows[0])
    assert solver.fast
    found, folded = solver(rows), 0
    assert found.said is not None
    for row, q, state, said in zip(rows, found.q, found.status, found.said, strict=True):
        assemblies = five_bars(*row)
        wanted = meant(assemblies)
        if wanted is None:
            assert state == UNREACHABLE, row
            assert ("another working mode" in said) == bool(assemblies), row
        else:
            assert state == OK, row
            assert same(q, wanted), row
            folded += all(fold < 0 for other, fold in assemblies if same(other, wanted))
    assert folded > 5  # poses that the side of the fold would refuse


@pytest.mark.few
@pytest.mark.parametrize(
    ("crank", "x"),
    [(0.05, -0.2), (1.33, 0.1), (2.1, -0.15), (1.33, -0.4), (4.66, -0.1)],
    ids=["beyond the fold", "both sides", "one side", "another mode", "mirrored"],
)
def test_single_poses_are_those_of_maps(five_bar, crank, x):
    wanted = meant(five_bars(crank, x))
    if wanted is None:
        with pytest.raises(parflex.UnreachableError, match="another working mode"):
            five_bar.assemble({"left.1": crank, "x": x})
    else:
        assert same(five_bar.assemble({"left.1": crank, "x": x}), wanted)


def test_a_knee_that_is_given_is_as_it_is_given(five_bar):
    q = five_bar.assemble({"left.2": 0.4, "x": 0.0})
    assert q[1] == pytest.approx(0.4)
    assert sine(q[3]) > 0  # the other leg is in the mode of home


ARM, PROXIMAL, DISTAL = 0.1732, 0.5, 0.4  # of the 3rrr
BASES = np.array([[-0.15, -0.84], [0.69, -0.17], [-0.66, 0.21]])
PHI = np.array([1, 5, 9]) * np.pi / 6


def turns_of_platform(crank: float, place: np.ndarray) -> list[tuple[float, float, bool]]:
    """Turns at which leg 1 closes with its crank given: the sine of its knee, and whether the other legs reach it."""
    elbow = BASES[0] + PROXIMAL * np.array([np.cos(crank), np.sin(crank)])
    away = elbow - place
    far = float(np.linalg.norm(away))
    spread = (far**2 + ARM**2 - DISTAL**2) / (2 * far * ARM)
    found = []
    for side in (1, -1) if abs(spread) <= 1 else ():
        attached = np.arctan2(away[1], away[0]) + side * np.arccos(spread)
        rod = place + ARM * np.array([np.cos(attached), np.sin(attached)]) - elbow
        angles = attached + PHI - PHI[0]
        reach = place + ARM * np.column_stack([np.cos(angles), np.sin(angles)]) - BASES
        reached = bool(np.all(np.abs(np.linalg.norm(reach[1:], axis=1) - PROXIMAL) < DISTAL))
        found.append((attached - PHI[0] - np.pi, float(np.sin(np.arctan2(rod[1], rod[0]) - crank)), reached))
    return found


def test_platforms_follow_a_motor_and_their_place():
    robot = parflex.load("3rrr")
    home, spread = robot.home, np.random.default_rng(3).uniform(-1, 1, (16, 3))
    rows = np.array([home[3], home[0], home[1]]) + spread * [1.5, 0.15, 0.15]
    solver = PositionSolver(Geometry(robot), ["leg1.1", "x", "y"], rows[0])
    assert solver.fast
    found = solver(rows)
    answered = 0
    for row, q, state in zip(rows, found.q, found.status, strict=True):
        all_turns = turns_of_platform(row[0], row[1:])
        mode = [turn for turn, knee, reached in all_turns if reached and knee > 0]
        assert (state == OK) == bool(mode), (row, all_turns)
        if mode:
            assert min(abs(np.angle(np.exp(1j * (turn - q[2])))) for turn in mode) < SAME
            assert [sine(q[k]) > 0 for k in (4, 6, 8)] == [True, False, True]
            answered += 1
    assert 2 < answered < len(rows)


@pytest.mark.parametrize(
    ("name", "by", "to"),
    [("navaro", ["x", "y", "rz"], ["leg1.1", "leg2.1", "leg3.1"]), ("four-bar", None, ["x"])],
    ids=["three motors of six", "one coordinate of two"],
)
def test_what_a_pose_names_moves_what_it_would_keep(name, by, to):
    """Poses are read off as other coordinates, which give them again: those that are not named follow."""
    robot = parflex.load(name)
    by = by or [robot.actuated_names[0]]
    tree, spread = robot.tree, np.random.default_rng(5).uniform(-0.02, 0.02, (4, len(by)))

    def read(q: np.ndarray, words: list[str]) -> list[float]:
        R, P = pose(tree, q).of(tree.places[tree.end_effector])
        own = {"x": P[0], "y": P[1], "rz": np.arctan2(R[1, 0], R[0, 0])}
        own |= {link.name: q[link.q.start] for link in tree.links if link.joint.one_axis}
        return [float(own[word]) for word in words]

    poses = [robot.assemble(dict(zip(by, np.add(read(robot.home, by), row).tolist(), strict=True))) for row in spread]
    rows = np.array([read(q, to) for q in poses])
    geometry = Geometry(robot)
    found = PositionSolver(geometry, to, rows[0])(rows)
    assert (found.status == OK).all()
    for one, row, q in zip(poses, rows, found.q, strict=True):
        assert np.abs(q - one[geometry.kept]).max() < SAME
        assert np.abs(robot.assemble(dict(zip(to, row.tolist(), strict=True))) - one).max() < SAME
