"""Frequencies and responses at many poses: `many_frequencies(...)`, `many_responses(...)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic, with_code
from parflex.errors import ParflexError, ParflexWarning
from parflex.forces.forces import Wrench
from parflex.maps.batch import (
    BatchResult,
    Progress,
    chunks_of,
    in_order,
    number_of_threads,
    pose_table,
    warn_of_balanced,
)
from parflex.maps.closed_rows import OK
from parflex.maps.designed_poses import DesignedPoses, design_column
from parflex.maps.frequencies import FrequencySolver
from parflex.maps.frequency_rows import FrequencyRows
from parflex.maps.response_rows import CHUNK_ALONE, ResponseRows
from parflex.maps.responses import ResponseName, check_loads, read_responses
from parflex.records import Answer, count_of, name_list
from parflex.robot.beam_nodes import with_nodes_at
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.linear_model import About
from parflex.statics.load_case import LoadCase, read_load_case
from parflex.statics.loads import has_force_elements
from parflex.statics.mesh_error import WARNING_EXCESS, bound_at, inner_beams, warn_beyond_band
from parflex.statics.modes import default_number_of_modes, natural_frequencies
from parflex.statics.small_deformation import FIRST_ORDER_ROTATION

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
    load_case : LoadCase, default None
        The same values in one object.
    ignore_limits : bool, default False
        Do not check the limits of the robot file.

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
    conditions = read_load_case(load_case, lock=lock, about=about, wrench=wrench)
    modes = default_number_of_modes(robot, modes, conditions.lock, conditions.about)
    check_loads(conditions, ())
    robot = with_nodes_at(robot, conditions.deforming_frames)

    def pose_of(row: int) -> dict[str, float]:
        return dict(zip(coordinates, values[row].tolist(), strict=True))

    if conditions.at_equilibrium or shapes == "all" or (designs and has_force_elements(robot.tree)):
        return _responses(
            robot, coordinates, values, modes, shapes, designs, conditions, threads, progress, ignore_limits
        )
    if designs:
        rows = DesignedPoses(
            robot, coordinates, values, designs, modes, conditions.lock, bool(shapes), conditions.about, ignore_limits
        )
        rows.solve(threads, progress)
        rows.say(3)
        warn_beyond_band(robot, rows.frequencies)
        return ManyFrequencies(rows.frequencies, rows.status, rows, rows.twists, rows.reasons, rows.why)
    plain = FrequencyRows(
        robot,
        coordinates,
        len(values),
        lambda some: values[some],
        modes,
        conditions.lock,
        conditions.about,
        bool(shapes),
        ignore_limits,
    )
    batch = plain.all(threads, progress)
    plain.say(batch.status)
    batch.warn(3)
    warn_beyond_band(robot, batch.values["frequencies"])
    warn_of_few_elements(robot, batch.values["frequencies"], pose_of, conditions, modes, 2)
    return ManyFrequencies(
        batch.values["frequencies"], batch.status, plain.solver, batch.values.get("shapes"), batch.reasons, plain.why
    )


def _responses(
    robot: Robot,
    coordinates: Sequence[str],
    values: Array,
    modes: int,
    shapes: bool | str,
    designs: Mapping[str, Sequence[float]] | None,
    conditions: LoadCase,
    threads: int | None,
    progress: Progress | None,
    ignore_limits: bool,
) -> ManyFrequencies:
    """About equilibria, or with the shapes of all rates: mode by mode as responses."""
    kind = "motion" if shapes == "all" else "shape"
    numbers = range(1, modes + 1)
    response_names = [f"frequency:{k}" for k in numbers] + [f"{kind}:{k}" for k in numbers if shapes]
    columns = {key: design_column(robot, key, entries, len(values)) for key, entries in (designs or {}).items()}
    rows = ResponseRows(
        robot, coordinates, values, read_responses(robot, response_names), conditions, columns, ignore_limits
    )
    batch = solve_rows(rows, threads, progress)
    batch.warn(4)
    if not conditions.at_equilibrium:
        warn_of_balanced(batch.balanced, len(values), 4)
    frequencies = np.stack([batch.values[f"frequency:{k}"] for k in numbers], axis=1)
    warn_beyond_band(robot, frequencies)

    def pose_of(row: int) -> dict[str, float]:
        return dict(zip(coordinates, values[row].tolist(), strict=True))

    if not columns:
        warn_of_few_elements(robot, frequencies, pose_of, conditions, modes, 3)
    entries = np.stack([batch.values[f"{kind}:{k}"] for k in numbers], axis=1) if shapes else None
    return ManyFrequencies(frequencies, batch.status, rows, entries, batch.reasons, rows.why)


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
        Of each pose: 0 ok, 1 unreachable, 2 singular, 3 its design is impossible, 4 outside the limits of a joint.
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
    load_case: LoadCase | None = None,
    ignore_limits: bool = False,
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
    load_case : LoadCase, default None
        The same values in one object.
    ignore_limits : bool, default False
        Do not check the limits of the robot file.

    Returns
    -------
    ManyResponses
        `values` by name, their `units`, and `status` and `reasons` of the poses.

    Examples
    --------
    >>> found = parflex.many_responses(robot, ["x", "y"], [[0.0, 0.0], [0.01, 0.0]], ["stiffness:x", "deflection:z"])
    """
    coordinates, values = pose_table(robot, coordinates, poses)
    conditions = read_load_case(load_case, lock=lock, about=about, wrench=wrench)
    robot = with_nodes_at(robot, conditions.deforming_frames)
    requested = read_responses(robot, responses)
    check_loads(conditions, requested)
    columns = {
        key: design_column(robot, key, design_values, len(values)) for key, design_values in (designs or {}).items()
    }
    rows = ResponseRows(robot, coordinates, values, requested, conditions, columns, ignore_limits)
    batch = solve_rows(rows, threads, progress)
    warn_of_first_order(robot, requested, batch.values, conditions, batch.rests, 2)
    modes = [batch.values[response.name].ravel() for response in requested if response.kind == "frequency"]
    warn_beyond_band(robot, np.concatenate([np.zeros(0), *modes]))
    if modes and not columns:
        numbers = [int(response.name.partition(":")[2] or 1) for response in requested if response.kind == "frequency"]
        warn_of_few_elements(
            robot, np.stack(modes, axis=1), lambda row: dict(zip(coordinates, values[row].tolist(), strict=True)),
            conditions, max(numbers), 2,
        )  # fmt: skip
    return ManyResponses(
        batch.values,
        {response.name: response.unit for response in requested},
        {response.name: response.parts if response.shape else () for response in requested},
        batch.status,
        batch.reasons,
        batch.fallbacks,
        rows.way,
        rows.why,
    )


def solve_rows(rows: Any, threads: int | None, progress: Progress | None = None) -> BatchResult:
    """All rows in chunks; what could not be asked at any of them is refused."""
    threads = number_of_threads(threads)
    rows.prepare()
    result = BatchResult.empty({response.name: response.shape for response in rows.responses}, len(rows.poses))
    chunks = chunks_of(len(rows.poses), rows.chunk)
    alone = rows.chunk == CHUNK_ALONE  # by the interpreter, which runs one thread at a time
    for chunk, part in in_order(chunks, rows.solve, 1 if alone else min(threads, len(chunks))):
        result.put(chunk, part)
        if progress is not None:
            progress(chunk.stop, len(rows.poses))
    if result.refused is not None and not (result.status == OK).any():
        raise result.refused
    for name, error in result.refusals.items():
        if not np.isfinite(result.values[name]).any():
            raise error
    result.warn(3)
    rows.solved_in_full = result.fallbacks
    return result


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


def warn_of_first_order(
    robot: Robot,
    responses: Sequence[ResponseName],
    values: Mapping[str, Array],
    conditions: LoadCase,
    rests: Array,
    level: int,
) -> None:
    """Warn once where deflections about the undeformed pose are beyond what first order holds for.

    Rows that `rests` names are about their equilibrium already, since springs are under tension there.
    """
    bent = [response for response in responses if response.kind == "deflection"]
    if not bent or conditions.at_equilibrium or has_force_elements(robot.tree):
        return
    lengths = np.array([_size(robot)] * 3 + [1.0] * 3)  # of x y z rx ry rz
    beyond = np.zeros(values[bent[0].name].size // max(1, int(np.prod(bent[0].shape))), dtype=bool)
    for response in bent:
        deflections = np.abs(values[response.name]).reshape(len(beyond), -1)
        beyond |= (
            deflections
            > FIRST_ORDER_ROTATION * (lengths if response.direction is None else lengths[response.direction])
        ).any(axis=1)
    beyond &= ~rests
    if beyond.any():
        text = (
            f"{int(beyond.sum())} of {len(beyond)} poses deflect by more than {FIRST_ORDER_ROTATION} of the size of "
            f"the robot, or turn by more than {FIRST_ORDER_ROTATION} rad: first order does not hold there, "
            "so ask about='equilibrium'"
        )
        diagnostic = Diagnostic("beyond-first-order", text, value=int(beyond.sum()))
        warnings.warn(ParflexWarning(diagnostic), stacklevel=level + 1)


def _size(robot: Robot) -> float:
    """The largest extent of the robot at home along an axis of the world."""
    at = Configuration(robot, robot.home).at
    places = [at.of(place)[1] for place in robot.tree.places.values()]
    return float(np.ptp([*places, *at.position], axis=0).max()) or robot.tree.length
