"""Frequencies at many poses: `many_frequencies(...)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.diagnostics import with_code
from parflex.errors import ParflexError, ParflexWarning
from parflex.forces.forces import Wrench
from parflex.maps.batch import Batch
from parflex.maps.batch_result import (
    Progress,
    parameter_columns,
    pose_table,
    warn_of_balanced,
    warn_of_unstable,
)
from parflex.maps.continuation import OK, SINGULAR
from parflex.maps.responses import check_loads, read_responses, refuse_still
from parflex.records import Answer, count_of
from parflex.robot.beam_nodes import with_nodes_at
from parflex.robot.robot import Robot
from parflex.statics.linear_model import About
from parflex.statics.load_case import LoadCase, read_load_case
from parflex.statics.mesh_error import WARNING_EXCESS, bound_at, inner_beams, warn_beyond_band
from parflex.statics.modes import default_number_of_modes, natural_frequencies

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class ManyFrequencies(Answer):
    """Frequencies in Hz (poses x modes; not a number where the pose cannot be) and the state of each pose.

    `shapes`, if asked for, are the twists of the end effector in each mode (poses x modes x 6): velocity of its origin
    and angular velocity in world axes, for mass-normalised modes; the first component of at least 0.9 of the largest is
    positive, turns taken times the characteristic length.

    Attributes
    ----------
    frequencies : Array
        Hz, poses x modes; NaN where the pose is impossible.
    status : Array
        Of each pose: 0 ok, 1 unreachable, 2 singular, 3 its design is impossible, 4 outside the limits of a joint.
    reasons : list[str]
        Of each pose why it has no frequencies, or that its equilibrium is not stable; else empty.
    fallbacks : int
        Poses solved one by one where others are solved together.
    method : str
        How most poses are solved: "steps", "together" or "one by one".
    reason : str
        Why poses are not solved by steps, or placed one by one; empty where they are.
    largest_difference : float
        Between steps and single poses, at a few poses of the robot that were solved by both (Hz).
    shapes : Array | None
        Twists of the end effector (poses x modes x 6; m, rad per mass-normalised mode); those of all rates
        (poses x modes x rates) where all are asked for; None unless asked for.
    """

    frequencies: Array
    status: Array
    reasons: list[str] = field(repr=False)
    fallbacks: int
    method: str
    reason: str
    largest_difference: float
    shapes: Array | None = None

    def _told(self) -> str:
        return f"{count_of(len(self.status), 'pose')}, {cells_line(self.frequencies, self.status == OK)}"


def cells_line(frequencies: Array, good: Array) -> str:
    """How many cells have frequencies, and between which the lowest lie."""
    lowest = frequencies[good].ravel()[:: frequencies.shape[-1] or 1]
    span = f"lowest {lowest.min():.4g} to {lowest.max():.4g} Hz" if lowest.size else "no frequency"
    return f"{int(good.sum())} of {good.size} reached, {count_of(frequencies.shape[-1], 'mode')}, {span}"


def many_frequencies(
    robot: Robot,
    coordinates: Sequence[str],
    poses: Array,
    modes: int | None = None,
    lock: str | Sequence[str] = "actuators",
    shapes: bool | str = False,
    designs: Mapping[str, Sequence[float]] | None = None,
    about: About | None = None,
    wrench: Wrench | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    load_case: LoadCase | None = None,
    ignore_limits: bool = False,
) -> ManyFrequencies:
    """Lowest natural frequencies at many poses: undeformed, or about their equilibria under gravity and loads.

    Parameters
    ----------
    coordinates : Sequence[str]
        Coordinates by name, one for each column of `poses`.
    poses : Array
        Values of the coordinates, one row for each pose (m, rad).
    shapes : bool or 'all', default False
        Also compute the twist of the end effector in each mode; 'all': the rates of all coordinates.
    robot, modes, lock, designs, about, wrench, threads, progress, load_case, ignore_limits
        See `parflex.api.WORDS`.

    Returns
    -------
    ManyFrequencies
        Frequencies in Hz (poses x modes, NaN where the pose is impossible), the status of each pose, shapes if asked
        for.
    """
    coordinates, values = pose_table(robot, coordinates, poses)
    conditions = read_load_case(load_case, lock=lock, about=about, wrench=wrench)
    modes = default_number_of_modes(robot, modes, conditions.lock, conditions.about)
    check_loads(conditions, ())
    robot = with_nodes_at(robot, conditions.deforming_frames)
    columns = parameter_columns(robot, designs, len(values))
    kind = "motion" if shapes == "all" else "shape"
    if shapes and kind == "shape":
        refuse_still(robot)
    kinds = ["frequency", kind] if shapes else ["frequency"]
    requested = read_responses(robot, [f"{word}:{k + 1}" for word in kinds for k in range(modes)])
    batch = Batch(robot, coordinates, values, requested, conditions, columns, ignore_limits)
    found = batch.all(threads, progress)
    warn_of_unstable(found.reasons, 3)
    if not conditions.at_equilibrium:
        warn_of_balanced(found.balanced, int(((found.status == OK) | (found.status == SINGULAR)).sum()), 3)
    frequencies = found.modal("frequency", modes)
    warn_beyond_band(robot, frequencies)
    if not columns:
        warn_of_few_elements(robot, frequencies, batch.pose_of, conditions, modes, 2)
    return ManyFrequencies(
        frequencies,
        found.status,
        found.reasons,
        found.fallbacks,
        batch.method,
        batch.reason,
        batch.largest_difference,
        found.modal(kind, modes) if shapes else None,
    )


def warn_of_few_elements(
    robot: Robot,
    frequencies: Array,
    pose_of: Callable[[int], Mapping[str, Any]],
    conditions: LoadCase,
    modes: int,
    level: int,
) -> None:
    """Warn once where frequencies (Hz, rows first) of a map are too high because elements are too few.

    `pose_of` a row are its coordinates by name. Elements held at both ends vibrate at the same frequencies wherever the
    robot stands, so the highest frequency of the map comes nearest to them. Rows with their own designs are not
    judged: loading one takes as long as thousands of poses.
    """
    if not np.isfinite(frequencies).any():
        return
    highest = np.nanmax(np.where(np.isfinite(frequencies), frequencies, np.nan))
    row = int(np.argwhere(frequencies.reshape(len(frequencies), -1) == highest)[0, 0])
    try:
        if _are_enough(robot, float(highest), conditions):
            return
        pose = dict(pose_of(row))
        pose_modes = natural_frequencies(
            robot, pose, modes, conditions.lock, conditions.about, wrench=conditions.wrench
        )
    except ParflexError:  # which the map itself answers for
        return
    where = ", ".join(f"{name} = {float(value):.4g}" for name, value in pose.items())
    for diagnostic in with_code(pose_modes.diagnostics, "few-elements"):
        here = diagnostic.prefixed(f"of the map, where frequencies are highest ({where}), ")
        warnings.warn(ParflexWarning(here), stacklevel=level + 1)


def _are_enough(robot: Robot, highest: float, held: LoadCase) -> bool:
    """Whether a frequency (Hz) is so far below those of elements by themselves that nothing need be solved."""
    return not inner_beams(robot) or (not held.at_equilibrium and bound_at(robot, highest).largest <= WARNING_EXCESS)
