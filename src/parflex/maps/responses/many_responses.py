"""Responses at many poses: what is asked and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.forces.forces import Wrench
from parflex.maps.designed_poses import design_column
from parflex.maps.reaching.closed_rows import OK
from parflex.maps.responses.at_one_pose import Held
from parflex.maps.responses.first_order import warn_of_first_order
from parflex.maps.responses.response_names import read_responses
from parflex.maps.responses.response_rows import CHUNK_ALONE, ResponseRows
from parflex.maps.rows.pose_table import pose_table
from parflex.maps.rows.row_answers import RowAnswers
from parflex.maps.rows.row_chunks import Progress, chunks_of, in_order, number_of_threads
from parflex.maps.worst_cell import warn_of_few_elements
from parflex.records import Answer, count_of, name_list
from parflex.robot.robot import Robot
from parflex.statics.linear_model import About
from parflex.statics.mesh_error import warn_beyond_band

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class ManyResponses(Answer):
    """Responses by name (poses x ...; not a number where the pose cannot be) and the state of each pose.

    Attributes
    ----------
    values : dict[str, Array]
        By the names that were asked for: one number at each pose, or a vector or matrix whose entries `parts` names.
    units : dict[str, str]
        Of each response.
    parts : dict[str, tuple[str, ...]]
        Names along the axes of an answer; empty where it is one number.
    status : Array
        Of each pose: 0 ok, 1 unreachable, 2 singular, 3 its design is impossible.
    reasons : list[str]
        Of each pose why it has no answer; empty where it has.
    fallbacks : int
        Poses solved one by one where others are solved together.
    method : str
        "together" or "one by one".
    reason : str
        Why poses are not solved together, or not placed together, and how many designs are loaded alone.
    """

    values: dict[str, Array]
    units: dict[str, str]
    parts: dict[str, tuple[str, ...]]
    status: Array
    reasons: list[str] = field(repr=False)
    fallbacks: int
    method: str
    reason: str

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    def _told(self) -> str:
        good = int((self.status == OK).sum())
        return f"{count_of(len(self.status), 'pose')}, {good} reached: {name_list(list(self.values))}"


def many_responses(
    robot: Robot,
    coordinates: Sequence[str],
    poses: Array,
    responses: Sequence[str],
    lock: str | Sequence[str] = "actuators",
    designs: Mapping[str, Sequence[float]] | None = None,
    about: About | None = None,
    wrench: Wrench | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ManyResponses:
    """Stiffness, deflections, modes and condition at many poses, each with its own design if need be.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    coordinates : Sequence[str]
        Coordinates by name, one for each column of `poses`.
    poses : Array
        Values of the coordinates, one row for each pose (m, rad).
    responses : Sequence[str]
        What is asked: 'frequency:K', 'damping:K', 'shape:K' (twist of the end effector), 'motion:K' (all rates) and
        'strain:K' (shares of the strain energy by frame) of mode K; 'stiffness:FRAME', 'compliance:FRAME' and
        'deflection:FRAME', with .x ... .rz or .theta for one direction; 'effort:JOINT', 'stress:BEAM', 'mass',
        'conditioning', 'singularity'.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    designs : Mapping[str, Sequence[float]], default None
        Numbers of the robot file by dotted path, one for each pose, e.g. {'constants.arm': [0.2, 0.3]}; None: those
        of the file.
    about : {'undeformed', 'equilibrium'}, default None
        State of linearisation; None is the equilibrium under a wrench or efforts or where springs are under tension,
        else the undeformed pose.
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    threads : int, default None
        Number of threads; None: one for each core.
    progress : callable, default None
        Called with (rows done, all rows) at intervals.

    Returns
    -------
    ManyResponses
        `values` by name, their `units`, and `status` and `reasons` of the poses.

    Examples
    --------
    >>> found = parflex.many_responses(robot, ["x", "y"], [[0.0, 0.0], [0.01, 0.0]], ["stiffness:x", "deflection:z"])
    """
    coordinates, values = pose_table(robot, coordinates, poses)
    asked = read_responses(robot, responses)
    held = Held(lock, about, wrench)
    held.check(asked)
    columns = {key: design_column(robot, key, own, len(values)) for key, own in (designs or {}).items()}
    rows = ResponseRows(robot, coordinates, values, asked, held, columns)
    found = solve_rows(rows, threads, progress)
    warn_of_first_order(robot, asked, found.values, held, found.rests, 2)
    modes = [found.values[one.name].ravel() for one in asked if one.kind == "frequency"]
    warn_beyond_band(robot, np.concatenate([np.zeros(0), *modes]), 2)
    if modes and not columns:
        numbers = [int(one.name.partition(":")[2] or 1) for one in asked if one.kind == "frequency"]
        warn_of_few_elements(
            robot, np.stack(modes, axis=1), lambda row: dict(zip(coordinates, values[row].tolist(), strict=True)),
            held, max(numbers), 2,
        )  # fmt: skip
    return ManyResponses(
        found.values,
        {one.name: one.unit for one in asked},
        {one.name: one.parts if one.shape else () for one in asked},
        found.status,
        found.reasons,
        found.fallbacks,
        rows.way,
        rows.why,
    )


def solve_rows(rows: Any, threads: int | None, progress: Progress | None = None) -> RowAnswers:
    """All rows in chunks; what could not be asked at any of them is refused."""
    threads = number_of_threads(threads)
    rows.prepare()
    found = RowAnswers.empty({one.name: one.shape for one in rows.responses}, len(rows.poses))
    chunks = chunks_of(len(rows.poses), rows.chunk)
    alone = rows.chunk == CHUNK_ALONE  # by the interpreter, which runs one thread at a time
    for chunk, part in in_order(chunks, rows.solve, 1 if alone else min(threads, len(chunks))):
        found.put(chunk, part)
        if progress is not None:
            progress(chunk.stop, len(rows.poses))
    if found.refused is not None and not (found.status == OK).any():
        raise found.refused
    for name, error in found.refusals.items():
        if not np.isfinite(found.values[name]).any():
            raise error
    found.warn(3)
    rows.solved_in_full = found.fallbacks
    return found
