"""Maps in which every pose has its own design, beside direct stiffness with LAPACK's subset, both on one thread.

The peer reduces the matrices of many poses at once in NumPy and solves them by `scipy.linalg.eigh` for the six lowest
modes; its positions are given to it. Both sides take turns, round by round; everything is counted but compilation.
Two threads stand beside two processes that each solve the whole map at the same time: what these take more than one
alone is the machine's (caches, memory, cores that share their units), and no work of parflex.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.linalg
from report import Report
from timing import Harness

import parflex
from parflex.codegen.llvm_jit import host_target
from parflex.maps.continuation import OK
from parflex.maps.kinematics import Geometry
from parflex.maps.linear_models import LinearModels
from parflex.maps.parameters import number_at, numbers_of_designs
from parflex.maps.positions import PositionSolver
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import locked_robot

NAME = "design-maps"
MODES, ROUNDS, PEER = 6, 5, 256
POSES = 20_000
MORE = 40  # times the poses: many of those of navaro are out of reach
ELEMENTS = (1, 2, 4, 8, 16)
SPACE = ["x", "y", "z", "rx", "ry", "rz"]
CASES = {  # coordinates, middle, how far poses go from it, keys that differ by 5 %
    "navaro": (
        ["x", "y", "rz"],
        [0.0, 0.0, 0.0],
        [0.4, 0.4, np.pi],
        ["constants.bar", "constants.arm", "materials.dural.elastic_modulus", "sections.link.A", "sections.link.Iz"],
    ),
    "gough-stewart-beams": (
        SPACE,
        None,
        [0.15] * 6,
        ["constants.rod", "constants.cylinder", "sections.rod.diameter", "materials.steel.density"],
    ),
    "gough-stewart-elastic": (
        SPACE,
        None,
        [0.1] * 6,
        ["sections.rod.diameter", "sections.cylinder.thickness", "materials.steel.density"],
    ),
}


def _in_reach(poses: np.ndarray, designs: dict[str, np.ndarray]) -> np.ndarray:
    """Poses of navaro at which all legs reach the platform, in closed form."""
    angle = np.pi / 2 + 2 * np.pi / 3 * np.arange(3)
    arm = angle + np.pi / 3 + poses[:, 2:]
    centre = poses[:, :1] + 1j * poses[:, 1:2]
    to_end = centre + designs["constants.arm"][:, None] * np.exp(1j * arm) - 0.7 / np.sqrt(3) * np.exp(1j * angle)
    return (np.abs(to_end) < 1.98 * designs["constants.bar"][:, None]).all(axis=1)


class Case:
    """A robot, its poses and designs, and the peer."""

    def __init__(self, name: str, count: int, elements: int | None = None) -> None:
        self.coordinates, centre, spread, keys = CASES[name]
        self.robot = parflex.load(name) if elements is None else parflex.load(name, elements=elements)
        rng = np.random.default_rng(7)
        middle = self._home() if centre is None else np.array(centre)
        poses = middle + np.array(spread) * rng.uniform(-1, 1, (MORE * count, len(middle)))
        designs = {key: number_at(self.robot, key) * rng.uniform(0.95, 1.05, len(poses)) for key in keys}
        chosen = np.flatnonzero(_in_reach(poses, designs))[:count] if name == "navaro" else np.arange(count)
        self.poses, self.designs = poses[chosen], {key: values[chosen] for key, values in designs.items()}

    def _home(self) -> np.ndarray:
        tree = self.robot.tree
        first = tree.links[tree.places[tree.end_effector].link].q.start
        return np.r_[self.robot.home[first : first + 3], 0.0, 0.0, 0.0]

    def ours(self, threads: int = 1, count: int | None = None) -> tuple[float, parflex.maps.api.ManyFrequencies]:
        """CPU seconds a pose, and what was found."""
        rows = slice(None, count)
        start = time.process_time()
        found = parflex.many_frequencies(
            self.robot,
            self.coordinates,
            self.poses[rows],
            MODES,
            shapes=True,
            designs={key: values[rows] for key, values in self.designs.items()},
            threads=threads,
        )
        return (time.process_time() - start) / len(self.poses[rows]), found

    def set_up_peer(self, good: np.ndarray) -> None:
        """Positions and bodies of some rows, made once."""
        self.rows = np.flatnonzero(good)[:PEER]
        numbers = numbers_of_designs(self.robot, {key: values[self.rows] for key, values in self.designs.items()})
        geometry, own = Geometry(self.robot, numbers), np.arange(len(self.rows))
        placed = PositionSolver(geometry, self.coordinates, self.poses[0].tolist())(self.poses[self.rows], own)
        assert (placed.status == OK).all()
        held = locked_robot(self.robot, "actuators")
        models = LinearModels(self.robot, held, LoadCase(), [], MODES, numbers, True)
        self.statics, self.q = models.statics, models.wide(geometry.whole(placed.q[:, : len(geometry.kept)]), own)

    def theirs(self) -> tuple[float, np.ndarray]:
        """CPU seconds a pose of assembly and eigenvalues with their vectors, and the frequencies."""
        found, start = [], time.process_time()
        for first in range(0, len(self.rows), 64):
            q = self.q[first : first + 64]
            _, J, _ = self.statics.motions(q)
            K = np.swapaxes(J, 1, 2) @ (self.statics.programs.stiffness(q) @ J)
            M = self.statics.mass_matrices(q, J)
            for k, m in zip(K, M, strict=True):
                values, _ = scipy.linalg.eigh(
                    k, m, subset_by_index=[0, MODES - 1], overwrite_a=True, overwrite_b=True, check_finite=False
                )
                found.append(values)
        return (time.process_time() - start) / len(self.rows), np.sqrt(np.array(found)) / (2 * np.pi)


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Poses per second of both sides, of two threads, with more elements, and the first map of all."""
    report.figure(NAME, "doubles side by side", host_target()[-1], "lanes", note=f"load {os.getloadavg()[0]:.1f}")
    for name in CASES:
        _beside(report, name)
    _growth(report)
    for name in CASES:
        _first(report, name, folder)


def _beside(report: Report, name: str) -> None:
    case = Case(name, POSES)
    _, found = case.ours()  # compiles, and keeps it on disk
    case.set_up_peer(found.status == OK)
    ours, theirs, two, apart = [], [], [], []
    other = _Other(name)
    for number in range(ROUNDS):
        report.progress(f"maps with designs: {name}, round {number + 1} of {ROUNDS}")
        seconds, found = case.ours()
        ours.append(seconds)
        seconds, expected = case.theirs()
        theirs.append(seconds)
        two.append(case.ours(threads=2)[0])
        other.begin()
        apart.append(0.5 * (case.ours()[0] + other.seconds()))
    other.end()
    error = float(np.abs(found.frequencies[case.rows] - expected).max())
    note = f"{error:.1e} Hz; {found.fallbacks} of {POSES} rows in full, {int((found.status != OK).sum())} not reached"
    report.timing(NAME, f"{name}: direct stiffness", 1e9 * np.array(theirs), error=None, note="SciPy, positions given")
    report.timing(NAME, f"{name}: parflex", 1e9 * np.array(ours), error=error / 50, note=note)
    report.timing(NAME, f"{name}: parflex, two threads", 1e9 * np.array(two), error=None, note="CPU seconds of both")
    report.compare(NAME, f"{name}: parflex", f"{name}: direct stiffness")
    ratio = float(np.median(np.array(theirs) / np.array(ours)))
    report.figure(NAME, f"{name}: times the peer", ratio, "", note=f"load {os.getloadavg()[0]:.1f}")
    for what, seconds in (("two threads", two), ("two processes side by side", apart)):
        report.figure(NAME, f"{name}: CPU of {what}", float(np.median(np.array(seconds) / np.array(ours))), "of one")
    ratio = float(np.median(np.array(two) / np.array(apart)))
    report.figure(NAME, f"{name}: CPU of two threads", ratio, "of two processes")


OTHER = """
import sys
sys.path.insert(0, {here!r})
from design_maps import POSES, Case
case = Case({name!r}, POSES)
case.ours()
print("ready", flush=True)
for line in sys.stdin:
    print(case.ours()[0], flush=True)
"""


class _Other:
    """A process that solves the same map when it is told to."""

    def __init__(self, name: str) -> None:
        code = OTHER.format(here=str(Path(__file__).parent), name=name)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._said()

    def begin(self) -> None:
        """Let it solve the map."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def seconds(self) -> float:
        """CPU seconds a pose that it took."""
        return float(self._said())

    def end(self) -> None:
        """Let it go."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


def _growth(report: Report) -> None:
    """Elements in each link, taken in turn."""
    cases = {elements: Case("navaro", POSES // 2, elements) for elements in ELEMENTS}
    for case in cases.values():
        case.ours()
    found = {elements: [case.ours()[0] for _ in range(1)] for elements, case in cases.items()}
    for _ in range(ROUNDS - 1):
        for elements, case in cases.items():
            found[elements].append(case.ours()[0])
    for elements in ELEMENTS[1:]:
        ratio = float(np.median(np.array(found[elements]) / np.array(found[1])))
        report.figure(NAME, f"navaro: time with {elements} elements", ratio, "of one")


FIRST = """
import sys, time
sys.path.insert(0, {here!r})
start = time.perf_counter()
from design_maps import Case
case = Case({name!r}, 1000)
case.ours()
print(time.perf_counter() - start)
"""


def _first(report: Report, name: str, folder: Path) -> None:
    """From an empty cache to the first map, in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        code = FIRST.format(here=str(Path(__file__).parent), name=name)
        said = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PARFLEX_CACHE": cache}, capture_output=True, text=True
        )
    seconds = float(said.stdout.split()[-1]) if said.stdout else float("nan")
    report.figure(NAME, f"{name}: first map from an empty cache", seconds, "s", note=f"load {os.getloadavg()[0]:.1f}")
