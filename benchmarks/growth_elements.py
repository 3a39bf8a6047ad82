"""How the time loop grows with the elements of each link: one second of the DualEMPS beside Exudyn, errors with it.

A run is prepared once and its loop is called again and again; both sides take turns within a round. Errors are those of
P against one converged run, as a share of the elastic deviation, with axial load on both sides.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from dualemps_motion import MEAN, OUTPUT, STEP, Path2D, distance, theirs
from report import Report
from timing import Harness

import parflex
from parflex.integrators import driver
from parflex.simulation import segments

BENCHMARK = "growth of the time loop"
ELEMENTS = (1, 2, 4, 8, 16, 32)
FITTED = (4, 32)  # elements between which the slope is taken
AGAINST = 16  # elements with which longer steps are tried
STEPS = (2e-3, 5e-3)  # longer ones, of both sides, with these elements: time at equal error
CONVERGED = 64  # elements of the reference, with half the step
ROUNDS = 5
SPATIAL = (1, 4, 16)  # elements of each tube of gough-stewart-beams
# of its reference, with a quarter of the step: errors fall with the fourth power of the elements
CONVERGED_SPATIAL = 8
SPATIAL_ROUNDS = 3
FALL = 0.2  # seconds
PUSH, PUSHED = np.array([1000.0, 600.0, -3000.0]), 0.1  # N at most, and for how long (s), on the platform
PUSH_STEPS = (5e-3, 2.5e-3)  # of parflex
PUSH_PEER = (1e-3, 5e-4)
REDUCED = 16  # elements of each link of moving robots whose links are reduced
BAND = {"error": 0.1, "band": 200}  # Hz: what its links are reduced for
SWING, STROKE, PERIOD, MOVED = 0.05, 0.01, 0.1, 0.05  # rad, m, s: how far and fast motors swing, and for how long


@dataclass(frozen=True)
class PreparedRun:
    """What a run found, and its loop alone: CPU seconds of a call in this thread."""

    found: Any
    loop: Callable[[], float]

    @property
    def p(self) -> Path2D:
        return Path2D(self.found.t, np.column_stack([self.found["P.x"], self.found["P.y"]]), 0.0)


def prepared(robot: Any, motion: Any, end: float, step: float, **more: Any) -> PreparedRun:
    """Simulate with `gauss4`, and keep what the time loop was called with."""
    calls: list[tuple[Any, ...]] = []

    def noted(*given: Any) -> Any:
        calls.append(given)
        return driver.run_loop(*given)

    with patch.object(segments, "run_loop", noted):
        found = parflex.simulate(
            robot, motion, end, method="gauss4", step=step, out_step=OUTPUT, check_width=False,
            **{"without": ("friction",)} | more,
        )  # fmt: skip

    def loop() -> float:
        with patch.object(driver, "perf_counter", thread_time):
            return sum(float(driver.run_loop(*given).seconds) for given in calls)

    return PreparedRun(found, loop)


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Loops of the DualEMPS beside Exudyn, then of the Gough-Stewart robot with beams."""
    peer = report.optional("exudyn_peer", "Exudyn")
    reference = _dualemps(report, CONVERGED, STEP / 2).p
    size = float(np.linalg.norm(reference.deviation("circle"), axis=1).max())
    note = f"{CONVERGED} elements per link, {1e3 * STEP / 2:g} ms; errors are shares of it"
    report.figure(BENCHMARK, "elastic deviation", 1e6 * size, "um", note=note)
    runs = {elements: _dualemps(report, elements, STEP) for elements in ELEMENTS}
    ours, peers = _rounds(report, runs, peer)
    for elements, made in runs.items():
        name = f"parflex, {elements} elements"
        _figure(report, name, ours[elements], distance(made.p, reference, size), _work(made))
        if peer is not None:
            error = distance(theirs(peer, "circle", 1.0, STEP, elements), reference, size)
            _figure(report, f"Exudyn, {elements} elements", peers[elements], error, "generalized-alpha")
            ratio = np.array(peers[elements]) / ours[elements]
            name = f"Exudyn / parflex, {elements} elements"
            report.figure(BENCHMARK, name, float(np.median(ratio)), "", note=_range(ratio))
    for name, found in (("parflex", ours), ("Exudyn", peers)):
        if found:
            slopes = _slopes(found)
            report.figure(BENCHMARK, f"{name}, log-log slope", float(np.median(slopes)), "", note=_range(slopes))
    if peer is not None:
        fine = theirs(peer, "circle", 1.0, STEP / 10, AGAINST, fine=True)
        note = "its step a tenth, smaller tolerance: what remains is not of its steps"
        name = f"Exudyn, {AGAINST} elements, fine: distance from the reference"
        report.figure(BENCHMARK, name, 100 * distance(fine, reference, size), "%", note=note)
    _longer_steps(report, peer, reference, size)
    _spatial(report)
    _pushed(report)
    _reduced(report)


def _longer_steps(report: Report, peer: ModuleType | None, reference: Path2D, size: float) -> None:
    """Both sides at longer steps, since their errors at the same step are not alike."""
    for step in STEPS:
        made, name = _dualemps(report, AGAINST, step), f"{AGAINST} elements, {1e3 * step:g} ms"
        seconds: tuple[list[float], list[float]] = ([], [])
        found = None
        for _ in range(ROUNDS):
            seconds[0].append(made.loop())
            if peer is not None:
                found = theirs(peer, "circle", 1.0, step, AGAINST)
                seconds[1].append(found.seconds - peer.run("circle", step, step, AGAINST, step).seconds)
        _figure(report, f"parflex, {name}", seconds[0], distance(made.p, reference, size), _work(made))
        if found is not None:
            _figure(report, f"Exudyn, {name}", seconds[1], distance(found, reference, size), "generalized-alpha")


def _dualemps(report: Report, elements: int, step: float) -> PreparedRun:
    report.progress(f"{BENCHMARK}: {elements} elements per link get ready")
    return prepared(parflex.load("dualemps", elements=elements, settings=MEAN), "circle", 1.0, step)


def _rounds(
    report: Report, runs: dict[int, PreparedRun], peer: ModuleType | None
) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Seconds of the loops, round by round; of Exudyn without what it needs for a run of one step."""
    ours: dict[int, list[float]] = {elements: [] for elements in runs}
    peers: dict[int, list[float]] = {elements: [] for elements in runs} if peer is not None else {}
    for number in range(ROUNDS):
        report.progress(f"{BENCHMARK}: round {number + 1} of {ROUNDS}, load {os.getloadavg()[0]:.1f}")
        for elements, made in runs.items():
            ours[elements].append(made.loop())
            if peer is not None:
                start = peer.run("circle", STEP, STEP, elements, STEP).seconds
                peers[elements].append(theirs(peer, "circle", 1.0, STEP, elements).seconds - start)
    return ours, peers


def _figure(report: Report, name: str, seconds: list[float], error: float | None, what: str) -> None:
    note = f"{_range(1e3 * np.array(seconds))}; {what}; load {os.getloadavg()[0]:.1f}"
    report.figure(BENCHMARK, name, 1e3 * float(np.median(seconds)), "ms", error=error, note=note)


def _work(made: PreparedRun) -> str:
    return ", ".join(f"{made.found.summary[key]} {key}" for key in ("steps", "iterations", "evaluations"))


def _range(values: np.ndarray) -> str:
    low, high = np.percentile(values, [10, 90])
    return f"10 to 90 %: {low:.3g} to {high:.3g}"


def _slopes(found: dict[int, list[float]]) -> np.ndarray:
    """Of each round, the power of the elements with which the time grows."""
    counts = [elements for elements in found if FITTED[0] <= elements <= FITTED[1]]
    return np.polyfit(np.log(counts), np.log([found[elements] for elements in counts]), 1)[0]


def _spatial(report: Report) -> None:
    """The Gough-Stewart robot with beams, strokes held, let go undeformed; errors of the platform's centre."""
    peer = report.optional("exudyn_hexapod", "Exudyn")
    reference = _hexapod(report, CONVERGED_SPATIAL, STEP / 4)
    size = float(np.linalg.norm(_centre(reference) - _centre(reference)[0], axis=1).max())
    note = f"gough-stewart-beams, {CONVERGED_SPATIAL} elements per tube, {1e3 * STEP / 4:g} ms; errors are shares of it"
    report.figure(BENCHMARK, "sway of the platform", 1e6 * size, "um", note=note)
    if peer is not None:
        off = _off(peer.run(FALL, STEP / 10, 32).position, _centre(reference), size)
        report.figure(BENCHMARK, "Exudyn, 32 elements, fine: distance from the reference", 100 * off, "%")
    runs = {elements: _hexapod(report, elements, STEP) for elements in SPATIAL}
    ours: dict[int, list[float]] = {elements: [] for elements in SPATIAL}
    peers: dict[int, list[float]] = {elements: [] for elements in SPATIAL}
    places: dict[int, np.ndarray] = {}
    for number in range(SPATIAL_ROUNDS):
        report.progress(f"{BENCHMARK}: round {number + 1} of {SPATIAL_ROUNDS}, load {os.getloadavg()[0]:.1f}")
        for elements, made in runs.items():
            ours[elements].append(made.loop())
            if peer is not None:
                found = peer.run(FALL, STEP, elements)
                peers[elements].append(found.seconds - peer.run(STEP, STEP, elements, STEP).seconds)
                places[elements] = found.position
    for elements, made in runs.items():
        name, error = f"gough-stewart-beams, {elements} elements", _off(_centre(made), _centre(reference), size)
        _figure(report, f"parflex, {name}", ours[elements], error, _work(made))
        if peer is not None:
            error = _off(places[elements], _centre(reference), size)
            _figure(report, f"Exudyn, {name}", peers[elements], error, "generalized-alpha")
            ratio = np.array(peers[elements]) / ours[elements]
            report.figure(BENCHMARK, f"Exudyn / parflex, {name}", float(np.median(ratio)), "", note=_range(ratio))
    for name, seconds in (("parflex", ours), ("Exudyn", peers if peer is not None else {})):
        if seconds:
            slopes = _slopes(seconds)
            name = f"{name}, gough-stewart-beams, log-log slope"
            report.figure(BENCHMARK, name, float(np.median(slopes)), "", note=_range(slopes))


def push(t: float) -> np.ndarray:
    """A force on the platform (N) that comes and goes smoothly."""
    return PUSH * np.sin(np.pi * t / PUSHED) ** 2 if t < PUSHED else 0 * PUSH


def _pushed(report: Report) -> None:
    """The same robot without gravity, pushed smoothly: each side with steps that its error allows."""
    peer = report.optional("exudyn_hexapod", "Exudyn")
    reference = _hexapod(report, CONVERGED_SPATIAL, STEP / 4, pushed=True)
    size = float(np.linalg.norm(_centre(reference) - _centre(reference)[0], axis=1).max())
    note = f"gough-stewart-beams pushed, {CONVERGED_SPATIAL} elements per tube, {1e3 * STEP / 4:g} ms"
    report.figure(BENCHMARK, "sway of the pushed platform", 1e6 * size, "um", note=note)
    for elements in SPATIAL:
        runs = {step: _hexapod(report, elements, step, pushed=True) for step in PUSH_STEPS}
        ours: dict[float, list[float]] = {step: [] for step in PUSH_STEPS}
        peers: dict[float, list[float]] = {step: [] for step in PUSH_PEER if peer is not None}
        places: dict[float, np.ndarray] = {}
        for _ in range(SPATIAL_ROUNDS):
            for step, made in runs.items():
                ours[step].append(made.loop())
            for step in peers:
                assert peer is not None
                found = peer.run(FALL, step, elements, push=push)
                peers[step].append(found.seconds - peer.run(step, step, elements, step, push=push).seconds)
                places[step] = found.position
        for step, made in runs.items():
            name, error = (
                f"pushed, {elements} elements, {1e3 * step:g} ms",
                _off(_centre(made), _centre(reference), size),
            )
            _figure(report, f"parflex, {name}", ours[step], error, _work(made))
        for step in peers:
            name, error = (
                f"pushed, {elements} elements, {1e3 * step:g} ms",
                _off(places[step], _centre(reference), size),
            )
            _figure(report, f"Exudyn, {name}", peers[step], error, "generalized-alpha")


def _hexapod(report: Report, elements: int, step: float, pushed: bool = False) -> PreparedRun:
    report.progress(f"{BENCHMARK}: gough-stewart-beams with {elements} elements gets ready")
    robot = parflex.load("gough-stewart-beams", elements=elements)
    home = parflex.configure(robot).q
    strokes = np.array([home[robot.tree.links[robot.tree.number(name)].q][0] for name in robot.motors])
    more: dict[str, Any] = {"start": "rest"}
    if pushed:
        more["wrench"] = {"platform": lambda t: np.concatenate([push(t), np.zeros(3)])}
        more["without"] = ("friction", "gravity")
    return prepared(robot, lambda t: (strokes, np.zeros(6), np.zeros(6)), FALL, step, **more)


def _centre(made: PreparedRun) -> np.ndarray:
    return np.column_stack([made.found[f"platform.{word}"] for word in "xyz"])


def _off(found: np.ndarray, wanted: np.ndarray, size: float) -> float:
    return float(np.linalg.norm(found - wanted, axis=1).max() / size)


def navaro(elements: int, reduce: bool) -> Any:
    """The NaVARo with one motor a leg, its links of elements or reduced."""
    settings = {f"legs.frame.{name}.beam.reduce": BAND for name in "12345"} if reduce else {}
    return parflex.load("navaro", elements=elements, actuation="111", settings=settings)


def hexapod(elements: int, reduce: bool) -> Any:
    """The Gough-Stewart robot with beams, its tubes of elements or reduced."""
    settings = {f"legs.frame.{name}.beam.reduce": BAND for name in ("cylinder", "rod")} if reduce else {}
    return parflex.load("gough-stewart-beams", elements=elements, settings=settings)


def swinging(robot: Any, swing: float = SWING, step: float = STEP) -> PreparedRun:
    """Its motors swing from home, each a part of a period after the other, and come to speed smoothly."""
    home = parflex.configure(robot).q
    begin = np.array([home[robot.tree.links[robot.tree.number(name)].q][0] for name in robot.motors])
    w, phase = 2 * np.pi / PERIOD, 2 * np.pi / len(begin) * np.arange(len(begin))

    def motion(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, c = np.sin(w * t + phase), np.cos(w * t + phase)
        grow, rate, curve = (1 - np.cos(w * t)) / 2, w * np.sin(w * t) / 2, w**2 * np.cos(w * t) / 2
        moved = grow * s, rate * s + grow * w * c, curve * s + 2 * rate * w * c - grow * w**2 * s
        return begin + swing * moved[0], swing * moved[1], swing * moved[2]

    return prepared(robot, motion, MOVED, step, start="rest")


def _reduced(report: Report) -> None:
    """What the reduction of their links saves robots in motion."""
    for name, load, swing in (("navaro", navaro, SWING), ("gough-stewart-beams", hexapod, STROKE)):
        runs = {}
        for word, reduce in (("all elements", False), ("reduced", True)):
            report.progress(f"{BENCHMARK}: {name} with {REDUCED} elements gets ready, {word}")
            runs[word] = swinging(load(REDUCED, reduce), swing)
        seconds: dict[str, list[float]] = {word: [] for word in runs}
        for _ in range(SPATIAL_ROUNDS):
            for word, made in runs.items():
                seconds[word].append(made.loop())
        whole, small = (_centre(made) for made in runs.values())
        way = float(np.linalg.norm(whole - whole[0], axis=1).max())
        report.figure(BENCHMARK, f"way of the moving {name}", 1e3 * way, "mm")
        for word, made in runs.items():
            error = None if made is runs["all elements"] else _off(small, whole, way)
            _figure(report, f"parflex, {name} moves, {REDUCED} elements, {word}", seconds[word], error, _work(made))
        ratio = np.array(seconds["all elements"]) / seconds["reduced"]
        told = f"{name} moves, all elements / reduced"
        report.figure(BENCHMARK, told, float(np.median(ratio)), "", note=_range(ratio))
