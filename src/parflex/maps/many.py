"""Natural frequencies at many poses: what is asked and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from parflex.forces.forces import Wrench
from parflex.maps.designed_poses import DesignedPoses, design_column
from parflex.maps.frequencies import FrequencySolver
from parflex.maps.reaching.closed_rows import OK
from parflex.maps.responses.at_one_pose import Held
from parflex.maps.responses.many_responses import solve_rows
from parflex.maps.responses.response_names import read_responses
from parflex.maps.responses.response_rows import ResponseRows
from parflex.maps.rows.frequency_rows import FrequencyRows
from parflex.maps.rows.pose_table import pose_table
from parflex.maps.rows.row_answers import warn_of_balanced
from parflex.maps.rows.row_chunks import Progress
from parflex.maps.worst_cell import warn_of_few_elements
from parflex.records import Answer, count_of
from parflex.robot.robot import Robot
from parflex.statics.linear_model import About
from parflex.statics.loads import has_force_elements
from parflex.statics.mesh_error import warn_beyond_band
from parflex.statics.modes import default_number_of_modes

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
        Of each pose: 0 ok, 1 unreachable, 2 singular, 3 its design is impossible.
    solver : FrequencySolver | DesignedPoses | ResponseRows
        What computed them.
    shapes : Array | None
        Twists of the end effector (poses x modes x 6; m, rad per mass-normalised mode); those of all rates
        (poses x modes x rates) where all are asked for; None unless asked for.
    reasons : list[str]
        Of each pose why it has no frequencies, or that its equilibrium is not stable; else empty.
    why : str
        As `reason` has it.
    """

    frequencies: Array
    status: Array
    solver: FrequencySolver | DesignedPoses | ResponseRows = field(compare=False, repr=False)
    shapes: Array | None = None
    reasons: list[str] = field(default_factory=list, repr=False)
    why: str = field(default="", repr=False)

    @property
    def fallbacks(self) -> int:
        """Poses solved one by one where others are solved together."""
        return self.solver.solved_in_full

    @property
    def method(self) -> str:
        """How most poses were solved: "steps" or "full"; about equilibria "one by one"."""
        return self.solver.method

    @property
    def reason(self) -> str:
        """Why poses are not solved by steps, or placed one by one; empty where they are, or are too few to compile."""
        return self.why

    @property
    def largest_difference(self) -> float:
        """Between steps and whole matrices, at poses that were solved by both (Hz)."""
        return getattr(self.solver, "largest_difference", 0.0)

    def _told(self) -> str:
        return f"{count_of(len(self.status), 'pose')}, {cells_line(self.frequencies, self.status == OK)}"


def cells_line(frequencies: Array, good: Array) -> str:
    """How many cells have frequencies, and between which the lowest lie."""
    lowest = frequencies[..., 0][good]
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
) -> ManyFrequencies:
    """Lowest natural frequencies at many poses: undeformed, or about their equilibria under gravity and loads.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    coordinates : Sequence[str]
        Coordinates by name, one for each column of `poses`.
    poses : Array
        Values of the coordinates, one row for each pose (m, rad).
    modes : int, default None
        Number of modes; None: six, or all if there are fewer at home.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    shapes : bool or 'all', default False
        Also compute the twist of the end effector in each mode; 'all': the rates of all coordinates.
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
    ManyFrequencies
        Frequencies in Hz (poses x modes, NaN where the pose is impossible), the status of each pose, shapes if asked
        for.

    Examples
    --------
    >>> found = parflex.many_frequencies(robot, ["x", "y"], [[0.0, 0.0], [0.01, 0.0]], modes=2)
    """
    coordinates, values = pose_table(robot, coordinates, poses)
    modes = default_number_of_modes(robot, modes, lock, about)
    held = Held(lock, about, wrench)
    held.check(())

    def pose_of(row: int) -> dict[str, float]:
        return dict(zip(coordinates, values[row].tolist(), strict=True))

    if held.balanced or shapes == "all" or (designs and has_force_elements(robot.tree)):
        return _responses(robot, coordinates, values, modes, shapes, designs, held, threads, progress)
    if designs:
        rows = DesignedPoses(robot, coordinates, values, designs, modes, lock, bool(shapes), about)
        rows.solve(threads, progress)
        rows.say(3)
        warn_beyond_band(robot, rows.frequencies, 2)
        return ManyFrequencies(rows.frequencies, rows.status, rows, rows.twists, rows.reasons, rows.why)
    plain = FrequencyRows(robot, coordinates, len(values), lambda some: values[some], modes, lock, about, bool(shapes))
    found = plain.all(threads, progress)
    plain.say(found.status)
    found.warn(3)
    warn_beyond_band(robot, found.values["frequencies"], 2)
    warn_of_few_elements(robot, found.values["frequencies"], pose_of, held, modes, 2)
    return ManyFrequencies(
        found.values["frequencies"], found.status, plain.solver, found.values.get("shapes"), found.reasons, plain.why
    )


def _responses(
    robot: Robot,
    coordinates: Sequence[str],
    values: Array,
    modes: int,
    shapes: bool | str,
    designs: Mapping[str, Sequence[float]] | None,
    held: Held,
    threads: int | None,
    progress: Progress | None,
) -> ManyFrequencies:
    """About equilibria, or with the shapes of all rates: mode by mode as responses."""
    kind = "motion" if shapes == "all" else "shape"
    numbers = range(1, modes + 1)
    words = [f"frequency:{k}" for k in numbers] + [f"{kind}:{k}" for k in numbers if shapes]
    columns = {key: design_column(robot, key, own, len(values)) for key, own in (designs or {}).items()}
    rows = ResponseRows(robot, coordinates, values, read_responses(robot, words), held, columns)
    found = solve_rows(rows, threads, progress)
    found.warn(4)
    if not held.balanced:
        warn_of_balanced(found.balanced, len(values), 4)
    frequencies = np.stack([found.values[f"frequency:{k}"] for k in numbers], axis=1)
    warn_beyond_band(robot, frequencies, 3)

    def pose_of(row: int) -> dict[str, float]:
        return dict(zip(coordinates, values[row].tolist(), strict=True))

    if not columns:
        warn_of_few_elements(robot, frequencies, pose_of, held, modes, 3)
    own = np.stack([found.values[f"{kind}:{k}"] for k in numbers], axis=1) if shapes else None
    return ManyFrequencies(frequencies, found.status, rows, own, found.reasons, rows.why)
