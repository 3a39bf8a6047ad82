"""Natural frequencies at many poses beside a direct-stiffness model solved pose by pose, both on one thread."""

from __future__ import annotations

import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from report import Report
from timing import Harness

import parflex
from parflex.design.grid import frequency_map
from parflex.maps.batch import Batch
from parflex.maps.continuation import OK
from parflex.maps.responses import read_responses
from parflex.statics.load_case import LoadCase

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.oracles.navaro_frame import Navaro, directions

POSES = 10_000
MODES = 6
ROUNDS = 3
CHECKED = 400
PEER_POSES = 300
ELEMENTS = (1, 2, 4, 8, 16)
GRID = 1000  # cells along each side of the map whose memory is measured
NAME = "frequency-map"


def random_poses(count: int) -> np.ndarray:
    """Poses that can be reached, with any orientation."""
    rng, poses = np.random.default_rng(11), []
    while len(poses) < count:
        pose = (*rng.uniform(-0.4, 0.4, 2), rng.uniform(-np.pi, np.pi))
        if np.isfinite(directions(*pose)).all():
            poses.append(pose)
    return np.array(poses)


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Poses per second of both sides, growth with the elements of a link, memory of a map."""
    poses = random_poses(POSES)
    peer = Navaro()
    robot = parflex.load("navaro")
    parflex.many_frequencies(
        robot, ["x", "y", "rz"], poses, shapes=True
    )  # compiled programs are kept on disk from here on
    ours, theirs, shaped, later, later_shaped = [], [], [], [], []
    for number in range(ROUNDS):
        report.progress(f"frequency map: round {number + 1} of {ROUNDS}")
        start = time.process_time()
        found = parflex.many_frequencies(robot, ["x", "y", "rz"], poses)
        ours.append((time.process_time() - start) / POSES)
        start = time.process_time()
        found = parflex.many_frequencies(robot, ["x", "y", "rz"], poses, shapes=True)
        shaped.append((time.process_time() - start) / POSES)
        start = time.process_time()
        for pose in poses[:PEER_POSES]:
            peer.modes(*pose)
        theirs.append((time.process_time() - start) / PEER_POSES)
        later.append(_again(robot, poses))
        later_shaped.append(_again(robot, poses, shapes=True))
    both = [peer.modes(*pose) for pose in poses[:CHECKED]]
    expected = np.array([frequencies for frequencies, _ in both])
    good = found.status[:CHECKED] == OK
    twists = np.array([vectors[-6:].T for _, vectors in both])[good]  # the last six unknowns are those of the platform
    off = np.abs(np.abs(found.shapes[:CHECKED][good]) - np.abs(twists)).max(axis=2) / np.abs(twists).max(axis=2)
    error = float(np.abs(found.frequencies[:CHECKED][good] - expected[good]).max())
    missed = f"{int((found.status != OK).sum())} of {POSES} poses not reached, {found.fallbacks} solved in full"
    report.timing(NAME, "direct stiffness, pose by pose", 1e9 * np.array(theirs), error=None, note="SciPy, 90 unknowns")
    report.timing(NAME, "parflex, everything", 1e9 * np.array(ours), error=error / 50, note=f"{error:.1e} Hz; {missed}")
    report.timing(
        NAME, "parflex, everything, with shapes", 1e9 * np.array(shaped), error=float(off.max()), note="twists"
    )
    note = "positions, modes, twists of the platform"
    report.timing(
        NAME, "parflex, programs there, with shapes", 1e9 * np.array(later_shaped), error=float(off.max()), note=note
    )
    report.timing(NAME, "parflex, programs there", 1e9 * np.array(later), error=error / 50, note="positions and modes")
    report.figure(NAME, "direct stiffness", 1 / min(theirs), "poses/s")
    report.figure(NAME, "parflex", 1 / min(ours), "poses/s", note="preparation counted")
    report.figure(NAME, "largest error", error, "Hz", note=f"{CHECKED} poses against the direct-stiffness model")
    report.compare(NAME, "parflex, everything", "direct stiffness, pose by pose")
    report.compare(NAME, "parflex, everything, with shapes", "direct stiffness, pose by pose")
    report.compare(NAME, "parflex, programs there, with shapes", "direct stiffness, pose by pose")
    report.figure(NAME, "largest error of shapes", float(off.max()), "of the shape", note="twists of the platform")
    report.compare(NAME, "parflex, programs there", "direct stiffness, pose by pose")
    _growth(report, poses)
    _memory(report, folder)


def _again(robot: parflex.Robot, poses: np.ndarray, shapes: bool = False) -> float:
    """Seconds a pose with the programs already there."""
    words = [f"{kind}:{k + 1}" for kind in ("frequency", "shape")[: 1 + shapes] for k in range(MODES)]
    again = Batch(robot, ["x", "y", "rz"], poses, read_responses(robot, words), LoadCase())
    again.prepare()
    start = time.process_time()
    again.all(1)
    return (time.process_time() - start) / len(poses)


def _growth(report: Report, poses: np.ndarray) -> None:
    for elements in ELEMENTS:
        report.progress(f"frequency map: {elements} elements in each beam")
        robot = parflex.load("navaro", elements=elements)
        start = time.process_time()
        found = parflex.many_frequencies(robot, ["x", "y", "rz"], poses)
        whole = time.process_time() - start
        note = f"{1e6 * _again(robot, poses):.0f} us a pose with programs there; {found.method}"
        report.figure(NAME, f"{elements} elements, {POSES} poses, everything", whole, "s", note=note)


def _memory(report: Report, folder: Path) -> None:
    """What a map adds to the memory of a process of its own: the peak never falls, so it cannot be told in this one."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        small, whole, reached, seconds = pool.submit(_mapped, str(folder / "map.npz")).result()
    size = (folder / "map.npz").stat().st_size / 2**20
    note = f"{small:.0f} MB for 20 x 20; {reached} cells reached, {seconds:.1f} s, file {size:.1f} MB"
    report.figure(NAME, f"memory of a {GRID} x {GRID} map", whole, "MB", note=note)


def _peak() -> int:
    """Return the peak of memory in kB since this program began; `getrusage` counts that of the parent."""
    return int(re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[0])


def _mapped(out: str) -> tuple[float, float, int, float]:
    """Growth of the peak by a small map, and by a large one, in MB."""
    robot = parflex.load("navaro")
    robot.home  # noqa: B018 - found before memory is measured
    before = _peak()
    frequency_map(robot, [("x", -0.3, 0.3, 20), ("y", -0.3, 0.3, 20)], {"rz": -1.0})
    small = _peak()
    start = time.process_time()
    found = frequency_map(robot, [("x", -0.3, 0.3, GRID), ("y", -0.3, 0.3, GRID)], {"rz": -1.0}, out=out)
    seconds = time.process_time() - start
    after = _peak()
    return (small - before) / 1024, (after - before) / 1024, found.count(OK), seconds
