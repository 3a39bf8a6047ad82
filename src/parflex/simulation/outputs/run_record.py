"""What a run records of itself: how it went, and from what it came."""

from __future__ import annotations

import hashlib
import platform
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.integrators.driver import CITATIONS, IntegratedRows
from parflex.robot.robot import Robot
from parflex.simulation.problem import Problem
from parflex.simulation.run_checks import balance_error

if TYPE_CHECKING:
    from parflex.simulation.run_case import Case

Array = np.ndarray
EFFORT = ("evaluations", "steps", "iterations", "jacobians", "rejected")  # what a run took, in its summary


def run_summary(track: IntegratedRows, columns: dict[str, Array], making: float) -> dict[str, Any]:
    """How a run went, and what it conserved."""
    total = columns["energy.total"]
    summary: dict[str, Any] = {
        "status": track.status,
        "time": float(track.t[-1]),
        "rows": len(track.t),
        "seconds": track.seconds,
        "preparation_seconds": making,
        "real_time_factor": float(track.t[-1]) / track.seconds if track.seconds else None,
        **{word: track.counts[word] for word in EFFORT if word in track.counts},
        "closure_error": float(columns["closure_error"].max()),
        "energy": {"first": float(total[0]), "last": float(total[-1])},
        "energy_balance_error": balance_error(columns),
    }
    if track.status == "diverged":
        summary |= {"stopped_at": track.stopped, "coordinate": track.coordinate, "why": track.why}
    return summary


def run_settings(robot: Robot, case: Case, problem: Problem, method: str) -> dict[str, Any]:
    """All that a run depends on, with the versions that computed it."""
    return {
        "robot": robot.name,
        "file": robot.file,
        "file_sha256": file_hash(robot),
        "description_sha256": hashlib.sha256(robot.description.model_dump_json().encode()).hexdigest(),
        "actuation": robot.actuation,
        "working_mode": robot.working_mode,
        "rigid": robot.written is not None and robot.written.rigid,
        "motion": None if case.motion is None else case.motion.name,
        "controller": None if case.controller is None else repr(case.controller),
        "drive": case.prescribed,
        "start": case.start if isinstance(case.start, str | None) else "given",
        "without": list(case.without),
        "stops": case.stops,
        "friction_width": problem.width or None,
        "sticking": [link.name for link in problem.sticking],
        "method": method,
        "citation": CITATIONS[method],
        "step": None if case.grid.begin else case.grid.step,
        "out_step": case.grid.out_step,
        "tolerance": case.grid.aim or case.tolerance,
        "operators": problem.model.counts["total"],
        "versions": versions(),
    }


def file_hash(robot: Robot) -> str | None:
    """SHA-256 of the robot file as it is now; None if it is gone."""
    inside = resources.files("parflex.robotfile").joinpath("catalogue", robot.file)
    try:
        data = Path(robot.file).read_bytes() if Path(robot.file).is_file() else inside.read_bytes()
    except OSError:
        return None
    return hashlib.sha256(data).hexdigest()


def versions() -> dict[str, str]:
    """Versions of what computed."""
    packages = ("parflex", "numpy", "scipy", "llvmlite")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}
