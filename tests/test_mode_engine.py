"""Compiled steps that find modes: counts, condensed chains, and answers of all kinds of robots by whole matrices."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import parflex
from parflex.designs.design_numbers import number_at
from parflex.maps.batches import Geometry
from parflex.maps.engine.mode_finder import FoundModes, ModeFinder
from parflex.maps.engine.mode_programs import StepTrace
from parflex.maps.kept_numbers import numbers_of_designs
from parflex.maps.lanes.mode_proof import reach
from parflex.maps.node_unknowns import node_model
from parflex.maps.nodes import Assembly
from parflex.maps.platform import Platform
from parflex.maps.positions import OK, PositionSolver
from parflex.maps.rows.pose_order import ordered
from parflex.models.elastic.holding import locked_robot

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


class Audited:
    """A robot at random poses with random designs, its whole matrices there, and what finds its modes."""

    def __init__(self, name: str, count: int, modes: int | None = None) -> None:
        names, spread, usual, keys = AUDITED[name]
        robot, self.modes = loaded(name), modes or usual
        locked, rng = locked_robot(robot, "actuators"), np.random.default_rng(5)
        self.designs = None
        if keys:
            values = {key: number_at(robot, key) * rng.uniform(0.9, 1.1, count) for key in keys}
            self.designs = numbers_of_designs(robot, values)
        geometry = Geometry(robot, self.designs)
        own = np.arange(count) if self.designs is None else np.flatnonzero(~self.designs.alone)
        self.features: np.ndarray | None = None
        q = geometry.rows(np.repeat(geometry.home[None], len(own), axis=0), own)
        if names:
            centre = CENTRES.get(name, at_home(robot, names))
            poses = centre + spread * rng.uniform(-1, 1, (len(own), len(names)))
            placed = PositionSolver(geometry, names, poses[0].tolist())(poses, own)
            q, own, poses = (rows[placed.status == OK] for rows in (placed.q, own, poses))
            given = [poses] if self.designs is None else [poses, self.designs.values[own]]
            self.features = np.concatenate(given, axis=1)  # by which modes are guessed where poses are many
        self.q, self.own = q, own
        model = node_model(locked)
        self.assembly = Assembly(model, designs=self.designs)
        self.places, self.platform = geometry.places(self.assembly.links), Platform(robot, geometry, model)
        values = scipy.linalg.eigh(*(matrix[0] for matrix in self.matrices(slice(0, 1))), eigvals_only=True)
        self.free = int(np.sum(values < 1e-14 * values[-1]))
        self.finder = ModeFinder(locked, self.modes, self.free, self.designs)

    def matrices(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """K and M of some poses."""
        own = None if self.designs is None else self.own[part]
        return self.assembly(*self.places(self.q[part]), own)

    def found(self, shapes: bool = False) -> FoundModes:
        """Modes by steps."""
        own = None if self.designs is None else self.own
        return self.finder(self.q, own, shapes, features=self.features)


def audit(name: str, count: int) -> tuple[float, float, int]:
    """Largest error in Hz, share of poses that were not proved, and how many were compared."""
    here = Audited(name, count)
    found = here.found()
    expected = np.empty((len(here.q), here.modes))
    for start in range(0, len(here.q), 200):  # ten thousand matrices of fine meshes do not fit into memory
        part = slice(start, start + 200)
        expected[part] = [lowest(k, m, here.free, here.modes) for k, m in zip(*here.matrices(part), strict=True)]
    off = np.abs(np.sqrt(found.x) - np.sqrt(expected))[found.ok] / (2 * np.pi)
    return float(off.max(initial=0.0)), 1 - found.ok.mean(), len(here.q)


def sharpened(K: np.ndarray, M: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Modes by LAPACK, and each by two steps of inverse iteration, which take its rounding away."""
    values, vectors = scipy.linalg.eigh(K, M, subset_by_index=[0, count - 1])
    for k, value in enumerate(values):
        if value > 1e-9 * values[-1]:
            factors = scipy.linalg.lu_factor(K - value * (1 + 1e-9) * M)
            for _ in range(2):
                x = scipy.linalg.lu_solve(factors, M @ vectors[:, k])
                vectors[:, k] = x / np.sqrt(x @ M @ x)
    return values, vectors


def audit_shapes(name: str, count: int, modes: int) -> tuple[float, float, int]:
    """By how much shapes are turned at most, as parts of what is promised, and off in length; how many were compared.

    A twist that is off by d has a motion of the robot behind it that is off by the root of d C^-1 d in the norm of the
    mass at least, with C = P M^-1 P^T.
    """
    here = Audited(name, count, modes)
    found, turned, longer, compared = here.found(shapes=True), 0.0, 0.0, 0
    for k in np.flatnonzero(found.ok & np.isfinite(found.twists).all(axis=(1, 2))).tolist():
        part = slice(k, k + 1)
        K, M = (matrix[0] for matrix in here.matrices(part))
        last = min(here.free + modes + 1, len(K))
        values, vectors = sharpened(K, M, last)
        P = here.platform.jacobians(here.q[part], None if here.designs is None else here.own[part])[0]
        inverse = np.linalg.pinv(P @ np.linalg.solve(M, P.T), rcond=1e-12)
        values, exact = values[here.free :], (P @ vectors[:, here.free :]).T
        for mode in range(modes):
            others = np.delete(values, mode)
            gap = np.abs(others / values[mode] - 1).min()
            off = found.twists[k, mode] * np.sign(found.twists[k, mode] @ exact[mode]) - exact[mode]
            share, promised = np.sqrt(exact[mode] @ inverse @ exact[mode]), max(1e-8, 1e-11 / gap)
            if share < 1e-6:  # the end effector is at rest in this mode
                continue
            along = (off @ inverse @ exact[mode]) / share**2
            rest = off - along * exact[mode]
            turned = max(turned, np.sqrt(rest @ inverse @ rest) / promised)
            longer, compared = max(longer, abs(along) - promised / share), compared + 1  # a turn is along it, too
    return turned, longer, compared


SHAPED = {"navaro": 6, "3rrr-flexible": 3, "gough-stewart-beams": 6, "rolled-beams.toml": 2, "dualemps": 3}


@pytest.mark.few
@pytest.mark.parametrize("name", list(SHAPED))
def test_shapes_are_turned_by_no_more_than_is_promised(name):
    turned, longer, compared = audit_shapes(name, 100, SHAPED[name])
    assert compared > 50
    assert turned < 1.0 and longer < 3e-6  # what the page on maps says


def test_modes_of_condensed_matrices_are_as_near_as_the_bound_says():
    """Theory (72) on matrices without a robot: the pencil at a shift has its mode beside that of the whole matrices."""
    rng, share = np.random.default_rng(11), []
    for _ in range(20):
        K, M = (x @ x.T + 2.0 * np.eye(8) for x in rng.uniform(-1, 1, (2, 8, 8)))
        mode, pole = (scipy.linalg.eigh(k, m, eigvals_only=True)[0] for k, m in ((K, M), (K[5:, 5:], M[5:, 5:])))
        for off in (-3e-2, -1e-3, 1e-3, 3e-2):
            shift = mode - off * (pole - mode)
            D = K - shift * M
            X = np.concatenate([np.eye(5), -np.linalg.solve(D[5:, 5:], D[5:, :5])])
            beside = scipy.linalg.eigh(X.T @ D @ X, X.T @ M @ X, eigvals_only=True)
            rho = shift + beside[np.argmin(np.abs(beside))]
            bound = reach(rho, shift, 0.0, pole)
            assert abs(mode - rho) <= bound + 1e-12 * mode  # rounding
            share.append(abs(mode - rho) / bound)
    assert max(share) > 0.05  # it is not far too large either


def test_reasons_say_why_shapes_come_from_whole_matrices():
    """Its fourth mode lies above the lowest one of its links held at both ends: counts alone find it."""
    robot, poses = parflex.load("3rrr-flexible"), np.random.default_rng(3).uniform(-0.05, 0.05, (200, 3))
    mass = {"platform.inertia.mass": np.full(200, number_at(robot, "platform.inertia.mass"))}
    for designs in (None, mass):
        found = parflex.many_frequencies(robot, ["x", "y", "theta"], poses, 4, shapes=True, designs=designs)
        assert found.method == "steps" and found.fallbacks == 200 and "shapes of some poses" in found.reason
        few = parflex.many_frequencies(robot, ["x", "y", "theta"], poses, 3, shapes=True, designs=designs)
        assert few.fallbacks == 0 and few.reason == ""


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


@pytest.mark.few
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




@pytest.mark.verify
def test_equal_halves_are_one_expression_in_every_design():
    """Numbers of designs are symbols, which mirror each other by the formulas of the file alone."""
    counts = []
    for elements in (1, 4, 16):
        robot = parflex.load("navaro", elements=elements)
        keys = {key: np.full(2, number_at(robot, key)) for key in ("constants.bar", "sections.link.Iz")}
        numbers = numbers_of_designs(robot, keys)
        made = StepTrace(locked_robot(robot, "actuators"), numbers).programs()
        counts.append(made.step.counts()["total"])
    assert counts[2] < 1.4 * counts[0]  # 1.6 where each half is written out
    # two joins more from each to the next; the first one starts from matrices with more zeros
    assert counts[2] - counts[1] == pytest.approx(counts[1] - counts[0], rel=0.2)
