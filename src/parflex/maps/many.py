"""Natural frequencies at many poses: what is asked and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from parflex.checking import names, numbers
from parflex.errors import InputError
from parflex.maps.batches import Geometry
from parflex.maps.designed_poses import DesignedPoses
from parflex.maps.frequencies import FrequencySolver
from parflex.maps.positions import OK, SINGULAR, UNREACHABLE, PositionSolver
from parflex.models.robot import Robot
from parflex.records import Record, counted

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class ManyFrequencies(Record):
    """Frequencies in Hz (poses x modes; not a number where the pose cannot be) and the state of each pose.

    `shapes`, if asked for, are the twists of the end effector in each mode (poses x modes x 6): velocity of its origin
    and angular velocity in world axes, for mass-normalised modes, the largest component positive.

    Attributes
    ----------
    frequencies : Array
        Hz, poses x modes; NaN where the pose is impossible.
    status : Array
        Of each pose: 0 ok, 1 unreachable, 2 singular, 3 its design is impossible.
    solver : FrequencySolver | DesignedPoses
        What computed them.
    shapes : Array | None
        Twists of the end effector (poses x modes x 6; m, rad per mass-normalised mode), the largest component
        positive; None unless asked for.
    reasons : list[str]
        Of each pose why it has no frequencies; empty where it has.
    """

    frequencies: Array
    status: Array
    solver: FrequencySolver | DesignedPoses = field(compare=False, repr=False)
    shapes: Array | None = None
    reasons: list[str] = field(default_factory=list, repr=False)

    @property
    def fallbacks(self) -> int:
        """Poses solved one by one where others are solved together."""
        return self.solver.solved_in_full

    def _told(self) -> str:
        return f"{counted(len(self.status), 'pose')}, {cells_line(self.frequencies, self.status == OK)}"


def cells_line(frequencies: Array, good: Array) -> str:
    """How many cells have frequencies, and between which the lowest lie."""
    lowest = frequencies[..., 0][good]
    span = f"lowest {lowest.min():.4g} to {lowest.max():.4g} Hz" if lowest.size else "no frequency"
    return f"{int(good.sum())} of {good.size} reached, {counted(frequencies.shape[-1], 'mode')}, {span}"


def many_frequencies(
    robot: Robot,
    coordinates: Sequence[str],
    poses: Array,
    modes: int = 6,
    lock: str | Sequence[str] = "actuators",
    shapes: bool = False,
    designs: Mapping[str, Sequence[float]] | None = None,
) -> ManyFrequencies:
    """Lowest natural frequencies at many undeformed poses; with springs under tension about the equilibrium.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    coordinates : Sequence[str]
        Coordinates by name, one for each column of `poses`.
    poses : Array
        Values of the coordinates, one row for each pose (m, rad).
    modes : int, default 6
        Number of modes.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    shapes : bool, default False
        Also compute the twist of the end effector in each mode.
    designs : Mapping[str, Sequence[float]], default None
        Numbers of the robot file by dotted path, one for each pose, e.g. {'constants.arm': [0.2, 0.3]}; None: those
        of the file.

    Returns
    -------
    ManyFrequencies
        Frequencies in Hz (poses x modes, NaN where the pose is impossible), the status of each pose, shapes if asked
        for.

    Examples
    --------
    >>> found = parflex.many_frequencies(robot, ["x", "y"], [[0.0, 0.0], [0.01, 0.0]], modes=2)
    """
    coordinates, values = names(coordinates, "coordinates", "['x', 'y']"), numbers(poses, (None, None), "poses")
    if values.ndim != 2 or values.shape[1] != len(coordinates) or not len(values):
        raise InputError(
            f"poses have the shape {values.shape}", key="poses", hint=f"give rows of {len(coordinates)} coordinates"
        )
    if designs:
        rows = DesignedPoses(robot, coordinates, values, designs, modes, lock, shapes)
        rows.solve()
        return ManyFrequencies(rows.frequencies, rows.status, rows, rows.twists, rows.reasons)
    geometry = Geometry(robot)
    solver = FrequencySolver(geometry, modes, lock)
    placed = PositionSolver(geometry, coordinates, values[0].tolist())(values)
    good = placed.status == OK
    result = np.full((len(values), modes), np.nan)
    twists = np.full((len(values), modes, 6), np.nan) if shapes else None
    if good.any():
        own = None if twists is None else np.full((int(good.sum()), modes, 6), np.nan)
        result[good] = solver(placed.q[good], own)
        if twists is not None:
            twists[good] = own
    status = placed.status.copy()
    status[good & ~np.isfinite(result).all(axis=1)] = SINGULAR
    solver.say(int(good.sum()), bool((status == OK).any()))
    said = {UNREACHABLE: "the pose cannot be reached", SINGULAR: "the robot is singular there", OK: ""}
    reasons = [solver.reasons.get(q.tobytes(), said[int(state)]) for q, state in zip(placed.q, status, strict=True)]
    return ManyFrequencies(result, status, solver, twists, reasons)
