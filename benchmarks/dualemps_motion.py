"""Motions of the DualEMPS beside Exudyn: time at equal error, how far the two models agree, growth with elements.

Errors are those of P against one fine reference, as a share of the elastic deviation: the largest distance of P from
where the rigid robot has it. Exudyn's beams are not quite ours (they feel their axial load), so its error against its
own fine solution stands beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import process_time
from types import ModuleType

import dualemps_path as path
import numpy as np
from growth import cache_in
from report import Report
from timing import Harness, measure

import parflex
from parflex.codegen.llvm_jit import Kernel
from parflex.robot.load import JOINT_TERMS

OUTPUT = 0.01  # seconds between rows, on both sides
ROUNDS = 5  # of a run of ours; the best counts
STEP = 5e-4
METHODS = (
    ("gauss4", 5e-3),
    ("gauss4", 2e-3),
    ("gauss4", 1e-3),
    ("gauss4", STEP),
    ("gauss6", 2e-3),
    ("generalized-alpha", STEP),
    ("rk4", 1e-4),
)
FINE = ("gauss6", 1e-4)
FINE_PEER = 5e-5
ELEMENTS = (1, 2, 4, 8, 16)
MEAN = {"axial": "mean"}  # axial load stiffens Exudyn's elements, so that ours are to feel it too
CIRCLE, HARSH = "circle, 25 s", "circle-harsh, 5 s"


@dataclass(frozen=True)
class Path2D:
    """P in time, and the seconds that it took to compute."""

    times: np.ndarray
    p: np.ndarray
    seconds: float
    making: float = 0.0

    def deviation(self, motion: str) -> np.ndarray:
        """P from where the rigid robot has it."""
        return self.p - np.column_stack(path.point(*path.positions(motion, self.times, np), np))


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Everything about the DualEMPS."""
    peer = report.optional("exudyn_peer", "Exudyn")
    for benchmark, motion, end in ((CIRCLE, "circle", 25.0), (HARSH, "circle-harsh", 5.0)):
        _race(report, peer, benchmark, motion, end)
    if peer is not None:
        for motion in ("square", "circle-harsh"):
            for elements in (1, 2, 4):
                _agreement(report, peer, motion, elements)
    _growth(report, harness)


def ours(motion: str, end: float, method: str, step: float, elements: int = 1, rounds: int = 1) -> Path2D:
    """A run of parflex without friction; CPU time of the time loop, the best of several."""
    robot = parflex.load("dualemps", elements=elements, settings=MEAN)
    seconds, making = [], []
    for _ in range(rounds):
        marks: list[float] = []  # after the first row of output, and so on to the last
        found = parflex.simulate(
            robot, motion, end, method=method, step=step, out_step=OUTPUT, without=("friction",),
            progress=lambda t, marks=marks: marks.append(process_time()),
        )  # fmt: skip
        seconds.append(marks[-1] - marks[0])
        making.append(float(found.summary["preparation_seconds"]))
    return Path2D(found.t, np.column_stack([found["P.x"], found["P.y"]]), min(seconds), making[0])


def theirs(peer: ModuleType, motion: str, end: float, step: float, elements: int = 1, fine: bool = False) -> Path2D:
    """A run of Exudyn; a fine one with less numerical damping and a smaller tolerance."""
    how = peer.Settings(spectral_radius=0.95, relative=1e-5) if fine else peer.Settings()
    found = peer.run(motion, end, step, elements, OUTPUT, how)
    return Path2D(found.times, np.column_stack([found.x, found.y]), found.seconds)


def distance(one: Path2D, other: Path2D, size: float) -> float:
    """Largest distance between two paths at the same times, as a share."""
    rows = min(len(one.times), len(other.times))
    if not np.allclose(one.times[:rows], other.times[:rows], atol=1e-9):
        raise ValueError("the runs have other rows")
    return float(np.linalg.norm(one.p[:rows] - other.p[:rows], axis=1).max() / size)


def _race(report: Report, peer: ModuleType | None, benchmark: str, motion: str, end: float) -> None:
    """One element per link: seconds of the time loop, and the error."""
    report.progress(f"{benchmark}: fine reference")
    reference = ours(motion, end, *FINE)
    size = float(np.linalg.norm(reference.deviation(motion), axis=1).max())
    report.figure(benchmark, "elastic deviation", 1e6 * size, "um", note="errors are shares of it")
    note = "compiled loops and programs may come from caches on disk"
    report.figure(benchmark, "parflex, first run: made and compiled", reference.making, "s", note=note)
    for method, step in METHODS:
        report.progress(f"{benchmark}: {method}, {1e3 * step:g} ms")
        found = ours(motion, end, method, step, rounds=ROUNDS)
        note = f"beside it {found.making:.2g} s to get ready"
        name = f"parflex, {method}, {1e3 * step:g} ms"
        report.figure(benchmark, name, found.seconds, "s", error=distance(found, reference, size), note=note)
    if peer is None:
        return
    report.progress(f"{benchmark}: Exudyn")
    found = min((theirs(peer, motion, end, STEP) for _ in range(2)), key=lambda one: one.seconds)
    fine = theirs(peer, motion, min(end, 5.0), FINE_PEER, fine=True)
    note = f"generalized-alpha, {1e3 * STEP:g} ms; against its own fine solution over {min(end, 5.0):g} s: "
    note += f"{distance(found, fine, size):.1e}"
    report.figure(benchmark, "Exudyn", found.seconds, "s", error=distance(found, reference, size), note=note)
    for method, step in METHODS:
        report.compare(benchmark, f"parflex, {method}, {1e3 * step:g} ms", "Exudyn", allowed=None)


def _agreement(report: Report, peer: ModuleType, motion: str, elements: int) -> None:
    """Elastic deviation of both models with as many elements, both with steps that are short enough."""
    benchmark = "elastic deviation of P"
    report.progress(f"{benchmark}: {motion}, {elements} elements per link")
    mine = ours(motion, 5.0, "gauss4", 1e-4, elements)
    fine, coarse = (theirs(peer, motion, 5.0, step, elements, fine=True) for step in (FINE_PEER, 2 * FINE_PEER))
    size = float(np.linalg.norm(mine.deviation(motion), axis=1).max())
    note = f"largest deviation {1e6 * size:.1f} um; halving Exudyn's step changes {distance(fine, coarse, size):.1e}"
    name = f"{motion}, {elements} elements per link: difference"
    report.figure(benchmark, name, 100 * distance(mine, fine, size), "%", note=note)


def _growth(report: Report, harness: Harness) -> None:
    """More elements per link: operators and one call of the direct model."""
    benchmark = "growth, dualemps"
    for elements in ELEMENTS:
        report.progress(f"{benchmark}: {elements} elements per link")
        robot = parflex.load("dualemps", elements=elements, settings=MEAN)
        begin = process_time()
        with cache_in(Path("off")):
            made = parflex.model(robot, "direct", without=JOINT_TERMS)
            kernel = Kernel(made.program)
        report.figure(benchmark, f"direct made and compiled, {elements} elements", process_time() - begin, "s")
        report.figure(benchmark, f"direct operators, {elements} elements", made.counts["total"], "operators")
        x = np.concatenate([np.ravel(made.sample[name]) for name in made.inputs])
        outputs = sum(int(np.prod(shape)) for shape in made.outputs.values())
        loop = harness.one(kernel.address("one"), np.tile(x, (4, 1)), outputs)
        report.figure(benchmark, f"direct call, {elements} elements", measure({"": loop})[""].min(), "ns")
