"""`plan_calibration`: poses at which measurements determine numbers of the robot file best.

Candidates are poses of a grid, or of motors spread over their limits. A D-optimal set maximises the determinant of the
information; poses of the set are exchanged for candidates until no exchange increases it (Fedorov's algorithm).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from parflex.calibration.batch import PoseBatch, Poses
from parflex.calibration.calibrate import chosen_names
from parflex.calibration.measurements import MapReader, base_pose
from parflex.calibration.problem import CalibrationProblem, combinations, determined
from parflex.calibration.tolerance import grid, poses_of
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.io import write_text
from parflex.records import Answer, brief, count_of
from parflex.robot.limits import check_limits
from parflex.robot.robot import Robot

Array = np.ndarray
CANDIDATES = 256  # poses from which those of the plan are chosen: a power of two, as Sobol's sequence needs
GAIN = 1e-6  # increase of the log of the determinant by an exchange, that is worth it


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationPlan(Answer):
    """Poses at which to measure, and what measurements there determine.

    Attributes
    ----------
    robot : str
        Name of the robot.
    poses : list[dict[str, float]]
        Coordinates of the motors (m, rad).
    places : Array
        Position of the end effector in each pose (m).
    deviations : dict[str, float | None]
        Expected standard deviations by number; None where it is not determined.
    tool : dict[str, float]
        Expected error of the end effector over all candidates, by the deviations of the numbers: rms and max (m).
    log_det : float
        Logarithm of the determinant of the information.
    condition : float
        Condition number of the weighted Jacobian with columns of unit length.
    undetermined : list[dict[str, float]]
        Combinations that no candidate determines.
    candidates : int
        Number of candidates within limits and workspace.
    diagnostics : tuple[Diagnostic, ...]
        Diagnostics.
    """

    robot: str
    poses: list[dict[str, float]]
    places: Array = field(repr=False)
    deviations: dict[str, float | None]
    tool: dict[str, float]
    log_det: float
    condition: float
    undetermined: list[dict[str, float]]
    candidates: int
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_csv(self, path: str | Path) -> None:
        """Write the coordinates of the motors to a CSV file at `path`, one row a pose."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.poses[0])
        writer.writerows(pose.values() for pose in self.poses)
        write_text(Path(path), text.getvalue())

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("robot", "poses", "deviations", "tool", "log_det", "condition", "undetermined", "candidates")
        return {**{word: getattr(self, word) for word in words}, "places": self.places.tolist()}

    def _told(self) -> str:
        return f"{brief(self.robot)}: {count_of(len(self.poses), 'pose')}, tool within {self.tool['rms']:.3g} m"


def plan_calibration(
    robot: Robot,
    vary: Sequence[str] | str,
    count: int,
    *,
    columns: Any,
    over: Sequence[tuple[str, float, float, int]] | None = None,
    tolerances: Mapping[str, float] | None = None,
    seed: int = 0,
) -> CalibrationPlan:
    """Choose poses whose measurements determine numbers of the robot file best (D-optimal).

    Parameters
    ----------
    robot
        See `parflex.api.WORDS`.
    vary : Sequence[str]
        Numbers that are to be fitted, as in `calibrate`.
    count
        See `parflex.api.WORDS`.
    columns : str, Path or Mapping
        Map of the columns of the measurements, with their deviations; the columns need not exist.
    over : Sequence[tuple], default None
        Axes of a grid of candidates: (coordinate, first, last, count); None: motors within their limits (m, rad).
    tolerances : Mapping[str, float], default None
        Prior of numbers: standard deviations about their start values, in their units.
    seed : int, default 0
        Seed of the candidates and of the first set.

    Returns
    -------
    CalibrationPlan
        Poses, expected deviations of the numbers, and of the end effector over the workspace.
    """
    candidates = candidate_poses(robot, over, seed)
    measurements = MapReader(robot, None, columns, len(candidates.q)).measurements()
    names = chosen_names(robot, measurements, vary, dict(tolerances or {}))
    problem = CalibrationProblem(robot, measurements, names, prior=tolerances)
    used = problem.deviations[:, problem.present.any(axis=0)]
    if not np.isfinite(used).all():
        name = problem.labels[int(np.flatnonzero(~np.isfinite(problem.deviations).all(axis=0))[0])]
        raise InputError(f"'{name}' has no deviation, and expected deviations follow from those of the measurements",
                         key="columns", value=name, hint="give deviation (and rotation_deviation)")  # fmt: skip
    blocks = problem.weights[:, :, None] * jacobians_at(problem, candidates)
    prior = np.diag(problem.prior)
    found = determined(np.concatenate([blocks.reshape(-1, len(names)), prior[problem.prior > 0]]))
    rows = np.einsum("pck,kr->pcr", blocks, found.directions)
    base = (prior @ found.directions).T @ (prior @ found.directions)
    chosen = exchanged(rows, base, min(count, len(rows)), np.random.default_rng(seed))
    information = base + np.einsum("pcr,pcs->rs", rows[chosen], rows[chosen])
    if np.linalg.matrix_rank(information) < len(information):
        raise InputError(f"{count_of(count, 'pose')} cannot determine {len(names)} numbers", key="count", value=count,
                         hint="plan more poses, vary fewer numbers, or give tolerances")  # fmt: skip
    covariance = found.directions @ np.linalg.inv(information) @ found.directions.T
    deviations = {name: None if found.loose[k] else float(np.sqrt(covariance[k, k])) for k, name in enumerate(names)}
    slopes, places = tool_slopes(problem, candidates)
    tool = np.sqrt(np.einsum("pik,kl,pil->p", slopes, covariance, slopes))
    motors = [robot.tree.position_names.index(name) for name in robot.motors]
    table = [dict(zip(robot.motors, map(float, candidates.q[row, motors]), strict=True)) for row in chosen]
    lost = combinations(names, found.undetermined)
    weighted = np.concatenate([blocks[chosen].reshape(-1, len(names)), prior[problem.prior > 0]])
    notes = [Diagnostic("undetermined-parameters", f"no candidate determines {count_of(len(lost), 'combination')} of "
                        "the numbers", value=len(lost))] if lost else []  # fmt: skip
    return CalibrationPlan(
        robot.name, table, places[chosen], deviations,
        {"rms": float(np.sqrt(np.mean(tool**2))), "max": float(tool.max())}, float(np.linalg.slogdet(information)[1]),
        determined(weighted).condition, lost, len(rows), tuple(notes),
    )  # fmt: skip


def candidate_poses(robot: Robot, over: Sequence[tuple[str, float, float, int]] | None, seed: int) -> Poses:
    """Poses of a grid, or of motors over their limits, that are reached within the limits of all joints."""
    if over is not None:
        q, good = poses_of(robot, grid(over))
    else:
        links = [robot.tree.links[robot.tree.link_of_rate[k]] for k in robot.actuated]
        for link in links:
            if link.limits is None:
                text = f"the motor '{link.name}' has no limits, between which poses could be chosen"
                raise InputError(text, key="over", value=link.name, hint="give the range of poses, e.g. x=-0.1:0.1:9")
        low, high = np.array([link.limits for link in links]).T
        motors = scipy.stats.qmc.Sobol(len(links), seed=seed).random(CANDIDATES)
        batch = PoseBatch(robot, [], robot.motors)
        poses, good = batch.from_home(np.zeros(0), low + motors * (high - low))
        q = poses.q
    names = robot.tree.position_names
    good &= [
        bool(ok) and not check_limits(robot, dict(zip(names, row, strict=True)))
        for ok, row in zip(good, q, strict=True)
    ]
    if good.sum() < 2:
        raise InputError("no candidates are within limits and workspace", key="over", value=int(good.sum()),
                         hint="choose another range of poses")  # fmt: skip
    return Poses(q[good], np.zeros((int(good.sum()), 0)))


def jacobians_at(problem: CalibrationProblem, candidates: Poses) -> Array:
    """Derivatives of all gauges by the numbers at the candidates."""
    robot, measurements = problem.robot, problem.measurements
    names = robot.tree.position_names
    if problem.batch.fixed:
        problem.readings = candidates.q[:, problem.batch.fixed]
    x, position = problem.first, 0
    scene = problem.batch.scene(problem.batch.twin(x[: len(problem.keys)]), candidates)
    for gauge in measurements.gauges:
        if gauge.rotation is not None:
            R, _ = scene.at.of(robot.tree.places[gauge.frames[0]])
            values, _ = problem.batch.with_slopes(np.asarray(R).ravel(), problem.count, 0)
            rotation = values.reshape(-1, 3, 3)
            if gauge.base:
                extras = {name: extra.value for name, extra in measurements.extras.items()}
                rotation = np.asarray(base_pose(gauge.base, extras)[0], dtype=float).T @ rotation
            problem.columns[position] = rotation
            position += 1
        else:
            position += len(gauge.columns)
    for k, reading in enumerate(measurements.noisy):
        problem.columns[position + k] = candidates.q[:, names.index(reading.joint)]
    return problem.linearised(x, candidates).slopes


def tool_slopes(problem: CalibrationProblem, candidates: Poses) -> tuple[Array, Array]:
    """Derivatives of the end effector's position by the numbers at fixed motors, and the position."""
    robot = problem.robot
    batch = PoseBatch(robot, problem.keys, robot.motors)
    directions = len(problem.names)
    fixed = np.zeros((directions, len(candidates.q), len(batch.fixed)))
    for i, position in enumerate(batch.fixed):
        for word, raw in (("offset", 1.0), ("gain", candidates.q[:, position])):
            name = f"{robot.tree.position_names[position]}.{word}"
            if name in problem.names:
                fixed[problem.names.index(name), :, i] = raw
    slopes, places = batch.frame_slopes(problem.first[: len(problem.keys)], candidates, fixed, robot.tree.end_effector)
    return slopes[:, :3], places[:, :3]


def exchanged(rows: Array, base: Array, count: int, rng: np.random.Generator) -> list[int]:
    """Numbers of candidates that maximise the determinant of the information, by exchanges."""
    blocks = np.einsum("pcr,pcs->prs", rows, rows)
    tiny = 1e-9 * np.trace(blocks.sum(axis=0)) / max(len(base), 1) * np.eye(len(base))  # while there are too few poses
    information, chosen = base + tiny, list[int]()
    for _ in range(count):
        gains = np.linalg.slogdet(information + blocks)[1]
        gains[chosen] = -np.inf
        chosen.append(int(np.argmax(gains)))
        information = information + blocks[chosen[-1]]
    while True:
        before = np.linalg.slogdet(information)[1]
        for place in rng.permutation(count):
            left = information - blocks[chosen[place]]
            gains = np.linalg.slogdet(left + blocks)[1]
            gains[[k for k in chosen if k != chosen[place]]] = -np.inf
            chosen[place] = int(np.argmax(gains))
            information = left + blocks[chosen[place]]
        if not np.linalg.slogdet(information)[1] > before + GAIN:
            return sorted(chosen)
