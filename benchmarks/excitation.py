"""Exciting motions: what a D-optimal one tells of base parameters, beside random ones and a circle."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from report import Report
from timing import Harness

import parflex
from parflex.identification.excitation import FINE, ExcitationSearch
from parflex.identification.excitation_limits import MotionLimits, read_motion_limits

RANDOM = 20  # series, each as large as limits allow
STARTS, DISTANCE = 4, 0.3
LARGE = 2000.0  # rad or m over the square of the duration: accelerations that no limit allows
WORDS = ("log det", "geometric mean of deviations", "largest deviation")


@dataclass(frozen=True)
class Case:
    """A robot, its limits, and the radius of the circle."""

    robot: str
    harmonics: int
    seconds: float
    speed: float
    radius: float
    starts: int = STARTS
    effort: float | None = None
    friction: str = "file"
    mode: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case("3rrr", 4, 5.0, 3.0, 0.1, friction="symmetric", mode={"working_mode": "+-+"}),
    Case("delta", 5, 5.0, 3.0, 0.1),
    Case("gough-stewart", 5, 4.0, 2.6, 0.1, starts=2, effort=2.1e4),
)


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Log det, geometric mean of the deviations and the largest, of one motion after the other."""
    for case in CASES:
        _compared(report, case)


def _compared(report: Report, case: Case) -> None:
    robot = parflex.load(case.robot, **case.mode)
    search = ExcitationSearch(robot, case.seconds, case.harmonics, case.friction)
    limits = read_motion_limits(search.regressor, 0.5, case.speed, case.effort, None, DISTANCE)
    benchmark = f"excitation, {case.robot}"
    report.figure(benchmark, "base parameters", len(search.base.kept), "")

    def told(rows: np.ndarray) -> tuple[float, float, float]:
        found = search.deviations(rows)
        return float(np.linalg.slogdet(search.information(rows))[1]), found["geometric_mean"], found["largest"]

    def rows_of(position: np.ndarray, rate: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        moving = search.regressor.moving(position, rate, acceleration)
        return search.regressor.of(moving, search.base.kept)[0]

    t = search.instants(FINE)
    rng = np.random.default_rng(0)
    series = [_random(search, rng, limits) for _ in range(RANDOM)]
    others = np.array([told(rows_of(*search.series.moved(x, t))) for x in series])
    circle = told(rows_of(*_circle(search, case)))
    for k, word in enumerate(WORDS):
        best = others[:, k].max() if k == 0 else others[:, k].min()
        report.figure(benchmark, f"random, best, {word}", float(best), "")
        report.figure(benchmark, f"random, median, {word}", float(np.median(others[:, k])), "")
        report.figure(benchmark, f"circle, {word}", circle[k], "")
    began = time.process_time()
    found = parflex.excite(
        robot, case.seconds, case.harmonics, velocity_limit=case.speed, effort_limit=case.effort, distance=DISTANCE,
        friction=case.friction, starts=case.starts,
    )  # fmt: skip
    report.figure(benchmark, f"{case.starts} starts", time.process_time() - began, "s", note="CPU")
    numbers = found.log_det, found.deviations["geometric_mean"], found.deviations["largest"]
    for word, value in zip(WORDS, numbers, strict=True):
        report.figure(benchmark, f"D-optimal, {word}", value, "")
    for k, reached in enumerate(found.starts):
        report.figure(benchmark, f"start {k + 1}, log det", reached, "")


def _random(search: ExcitationSearch, rng: np.random.Generator, limits: MotionLimits) -> np.ndarray:
    """A series about home with random amplitudes, all joints alike, as large as limits allow."""
    robot, series = search.regressor.robot, search.series
    per_number = search.alike * robot.tree.rate_units[list(robot.actuated)][:, None]
    x = (per_number @ rng.standard_normal((series.motors, series.free))).ravel()
    x = series.shrunk(x, LARGE / np.abs(series.moved(x, search.instants())[2]).max() * series.time**-2)
    values = x.reshape(series.motors, series.free)
    values[:, 0] += robot.home[search.regressor.motor_q] - series.moved(x, search.instants())[0].mean(axis=0)
    return search.between(series.shrunk(x, 1e-3), x, limits)


def _circle(search: ExcitationSearch, case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two turns of the end effector about home in the same time, in its plane or level; motors by closing the loops."""
    robot = search.regressor.robot
    x, y, z = search.sloped.places(np.asarray(robot.home)[None])[0]
    motion = {"circle": {"centre": [x, y, z], "start": [x + case.radius, y, z], "turns": 2},
              "law": "quintic", "duration": case.seconds}  # fmt: skip
    run = parflex.simulate(robot, motion, case.seconds)
    motors = robot.actuated_names
    return tuple(np.stack([run[f"{word}.{m}"] for m in motors], axis=1) for word in ("q", "qd", "qdd"))  # type: ignore[return-value]
