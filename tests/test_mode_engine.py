"""Compiled steps that find modes: counts, condensed chains, and answers of all kinds of robots by whole matrices."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import parflex
from parflex.designs.design_numbers import design_numbers, number_at
from parflex.maps.batches import Geometry
from parflex.maps.engine.mode_finder import ModeFinder
from parflex.maps.engine.mode_programs import StepTrace
from parflex.maps.node_unknowns import node_model
from parflex.maps.nodes import Assembly
from parflex.maps.positions import OK, PositionSolver
from parflex.models.elastic.linear_model import locked_robot

ROBOTS = Path(__file__).parent / "robots"
SPACE = ["x", "y", "z", "rx", "ry", "rz"]
AUDITED = {  # coordinates, how far they go from home, modes, keys of designs
    "navaro": (["x", "y", "rz"], 0.15, 6, ["constants.bar", "constants.arm"]),
    "navaro-refined": (["x", "y", "rz"], 0.05, 4, []),
    "dualemps": (["11", "21"], 0.2, 4, []),
    "gough-stewart-beams": (SPACE, 0.1, 6, ["constants.rod", "sections.rod.diameter", "materials.steel.density"]),
    "gough-stewart-elastic": (SPACE, 0.1, 10, ["sections.rod.diameter"]),  # its seventh mode is the same at all poses
    "gough-stewart-flexible": (SPACE, 0.1, 6, []),
    "3rrr-flexible": (["x", "y", "theta"], 0.05, 4, []),
    "three-beam-legs": (["leg1.upper", "leg1.lower", "leg2.upper", "leg3.lower"], 0.3, 6, []),
    "slider-crank-beam.toml": (["crank"], 0.5, 3, ["constants.l2"]),
    "rolled-beams.toml": ([], 0.0, 4, ["sections.flat.y"]),
    "pendulum-beam.toml": ([], 0.0, 3, []),
}

CENTRES = {"navaro": np.array([0, 0, -0.7]), "slider-crank-beam.toml": np.array([0.8])}  # home is far from the middle


def loaded(name: str) -> parflex.Robot:
    return parflex.load(ROBOTS / name if name.endswith(".toml") else name)


def lowest(K: np.ndarray, M: np.ndarray, free: int, modes: int) -> np.ndarray:
    """Squared frequencies by LAPACK."""
    last = min(free + modes, len(K)) - 1
    return scipy.linalg.eigh(K, M, subset_by_index=[free, last], eigvals_only=True)


def audit(name: str, count: int) -> tuple[float, float, int]:
    """Largest error in Hz, share of poses that were not proved, and how many were compared."""
    names, spread, modes, keys = AUDITED[name]
    robot = loaded(name)
    locked, rng = locked_robot(robot, "actuators"), np.random.default_rng(5)
    designs = None
    if keys:
        designs = design_numbers(robot, {key: number_at(robot, key) * rng.uniform(0.9, 1.1, count) for key in keys})
    geometry = Geometry(robot, designs)
    own = np.arange(count) if designs is None else np.flatnonzero(~designs.alone)
    features: np.ndarray | None = None
    q = geometry.rows(np.repeat(geometry.home[None], len(own), axis=0), own)
    if names:
        centre = CENTRES.get(name, at_home(robot, names))
        poses = centre + spread * rng.uniform(-1, 1, (len(own), len(names)))
        placed = PositionSolver(geometry, names, poses[0].tolist())(poses, own)
        q, own, poses = (rows[placed.status == OK] for rows in (placed.q, own, poses))
        given = [poses] if designs is None else [poses, designs.values[own]]
        features = np.concatenate(given, axis=1)  # by which modes are guessed where poses are many
    assembly = Assembly(node_model(locked), designs=designs)
    places = geometry.places(assembly.links)
    K, M = assembly(*places(q[:1]), None if designs is None else own[:1])
    values = scipy.linalg.eigh(K[0], M[0], eigvals_only=True)
    free = int(np.sum(values < 1e-14 * values[-1]))
    found = ModeFinder(locked, modes, free, designs)(q, None if designs is None else own, features=features)
    expected = np.empty((len(q), modes))
    for start in range(0, len(q), 200):  # ten thousand matrices of fine meshes do not fit into memory
        part = slice(start, start + 200)
        K, M = assembly(*places(q[part]), None if designs is None else own[part])
        expected[part] = [lowest(k, m, free, modes) for k, m in zip(K, M, strict=True)]
    off = np.abs(np.sqrt(found.x) - np.sqrt(expected))[found.ok] / (2 * np.pi)
    return float(off.max(initial=0.0)), 1 - found.ok.mean(), len(q)


def at_home(robot: parflex.Robot, names: list[str]) -> np.ndarray:
    """Coordinates of home."""
    tree = robot.tree
    place = tree.links[tree.places[tree.end_effector].link].q.start
    offsets = {"x": 0, "y": 1, "z": 2, "theta": 2}
    joints = {link.name: link.q.start for link in tree.links}
    return np.array(
        [
            robot.home[place + offsets[name]]
            if name in offsets
            else robot.home[joints[name]]
            if name in joints
            else 0.0
            for name in names
        ]
    )


@pytest.mark.parametrize("name", list(AUDITED))
def test_every_kind_of_robot_is_answered_as_by_whole_matrices(name, figure):
    error, failed, count = audit(name, 200)
    figure(f"{name}: largest error of frequencies in Hz", error, 1e-6)
    assert count > 100
    assert error < 1e-6 and failed < 0.01  # steps end at 1e-10, whole matrices have a condition of 1e8


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
@pytest.mark.parametrize("name", list(AUDITED))
def test_ten_thousand_poses_of_every_kind_of_robot_are_answered_as_by_whole_matrices(name, figure):
    error, failed, _ = audit(name, 10_000)
    figure(f"{name}: largest error of frequencies in Hz, 10 000 poses", error, 1e-6)
    assert error < 1e-6 and failed < 0.01  # as above


def test_counts_are_those_of_the_whole_matrices():
    robot = parflex.load("3rrr-flexible")
    locked, geometry = locked_robot(robot, "actuators"), Geometry(robot)
    assembly = Assembly(node_model(locked))
    K, M = assembly(*geometry.places(assembly.links)(geometry.home[None]))
    values = scipy.linalg.eigh(K[0], M[0], eigvals_only=True)
    shifts = np.sqrt(values[1:] * values[:-1])[np.diff(values) > 1e-6 * values[1:]]
    finder = ModeFinder(locked, 3)
    entries = np.repeat(finder._entries(geometry.home[None], None), len(shifts), axis=0)
    assert finder.programs.unknowns == len(values)
    assert finder._count(entries, shifts).tolist() == [int((values < s).sum()) for s in shifts]


@pytest.mark.parametrize("elements", [3, 4])
def test_chains_of_equal_elements_are_condensed_exactly(elements):
    robot = parflex.load("3rrr-flexible", elements=elements)
    locked, geometry = locked_robot(robot, "actuators"), Geometry(robot)
    assembly = Assembly(node_model(locked))
    K, M = assembly(*geometry.places(assembly.links)(geometry.home[None]))
    finder = ModeFinder(locked, 5)
    found = finder(geometry.home[None])
    assert finder.programs.condensed and found.ok.all()
    assert found.x[0] == pytest.approx(lowest(K[0], M[0], 0, 5), rel=1e-9)  # condition of the whole matrices 1e7


def test_equal_halves_of_a_chain_are_one_expression():
    """From 8 to 16 elements a link takes one join more, not eight."""
    counts = [
        ModeFinder(locked_robot(parflex.load("3rrr-flexible", elements=n), "actuators"), 3).programs.step.counts()[
            "total"
        ]
        for n in (4, 8, 16)
    ]
    assert counts[2] - counts[1] <= counts[1] - counts[0] + 2 < 0.5 * counts[0]


def test_positions_by_the_compiled_loop_are_those_of_single_poses():
    robot = parflex.load("3rrr")
    poses = np.random.default_rng(8).uniform(-0.12, 0.12, (100, 3))
    found = {}
    for compiled in (False, True):
        geometry = Geometry(robot)
        geometry.compiled = compiled
        found[compiled] = PositionSolver(geometry, ["x", "y", "theta"], poses[0].tolist())(poses)
    assert found[True].status.tolist() == found[False].status.tolist()
    assert (found[True].status == OK).sum() > 50
    good = found[True].status == OK
    # both end at rounding
    assert found[True].q[good] == pytest.approx(found[False].q[good], abs=1e-12)
    for row in np.flatnonzero(good)[:3]:
        one = robot.assemble(dict(zip(["x", "y", "theta"], poses[row].tolist(), strict=True)))
        turns = (found[True].q[row] - one[geometry.kept]) / (2 * np.pi)
        assert np.abs(turns - np.round(turns)).max() < 1e-9


def test_sixteen_elements_cost_less_than_half_as_much_again_as_one():
    counts = [
        StepTrace(locked_robot(parflex.load("gough-stewart-beams", elements=n), "actuators")).programs().step.counts()
        for n in (1, 16)
    ]
    assert counts[1]["total"] < 1.3 * counts[0]["total"]
