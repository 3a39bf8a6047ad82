"""Track modes along a path of poses by the modal assurance criterion (MAC).

Neighbouring poses are compared by MAC = (a^T M b)^2 of mass-normalised shapes. Nearly repeated modes are compared as
subspaces, and their basis is rotated to the nearest one at the pose before (orthogonal Procrustes). Where shapes change
too much, a pose is inserted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from parflex.errors import InputError
from parflex.records import Answer, Record, count_of
from parflex.recursion.dynamics import mass_matrix
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.modes import default_number_of_modes, natural_frequencies

Array = np.ndarray

MIN_MAC = 0.8  # MAC from which two shapes are one mode: a rival then has 0.2 at most
CLOSE = 1e-3  # relative distance of frequencies within which modes are taken as one subspace
SPARE = 4  # modes above those that are followed: partners of a branch that leaves the lowest ones


@dataclass(frozen=True, eq=False, repr=False)
class TrackedModes(Answer):
    """Branches along a path: frequencies (poses x branches) in Hz, shapes (poses x coordinates x branches).

    `places` counts the poses that were given; a pose put between has a fraction. `agreement` (poses x branches) is the
    MAC with the pose before, of a double mode that of its subspace; `doubtful` lists places where it stays low however
    near the poses are.

    Attributes
    ----------
    places : Array
        Number of the pose; fractions are poses in between.
    positions : Array
        All positions at each place (m, rad).
    frequencies : Array
        Hz, places x branches.
    shapes : Array
        Places x coordinates x branches, mass-normalised (m, rad).
    agreement : Array
        MAC with the place before, of a double mode that of its subspace (dimensionless).
    doubtful : list[float]
        Places where the agreement stays low.
    """

    places: Array
    positions: Array
    frequencies: Array
    shapes: Array
    agreement: Array
    doubtful: list[float] = field(default_factory=list)

    def _told(self) -> str:
        poses, branches = self.frequencies.shape
        span = f"{np.nanmin(self.frequencies):.4g} to {np.nanmax(self.frequencies):.4g} Hz"
        doubts = f", {count_of(len(self.doubtful), 'doubtful place')}" if self.doubtful else ""
        return f"{count_of(branches, 'mode')} at {count_of(poses, 'pose')}, {span}{doubts}"


@dataclass(frozen=True, eq=False, repr=False)
class TrackedPose(Record):
    """Modes at one place of the path."""

    place: float
    q: Array
    M: Array
    frequencies: Array
    shapes: Array


def track_modes(
    robot: Robot,
    poses: Sequence[str | Mapping[str, float]],
    modes: int | None = None,
    lock: str | Sequence[str] = "actuators",
    agreement: float = MIN_MAC,
    finest: float = 1 / 64,
) -> TrackedModes:
    """Track the lowest modes of the first pose along a path of poses, by their shapes.

    Poses are inserted where shapes change too much, down to the `finest` share of the way.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    poses : Sequence
        Poses of the path, at least two, each with the same coordinates (m, rad).
    modes : int, default None
        Number of modes; None: six, or all if there are fewer at home.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    agreement : float, default 0.8
        MAC from which two shapes are one mode (dimensionless).
    finest : float, default 0.015625
        Smallest share of the way between two poses (dimensionless).

    Returns
    -------
    TrackedModes
        Frequencies in Hz (poses x branches), shapes, and places where the tracking is doubtful.
    """
    modes = default_number_of_modes(robot, modes, lock)
    for key, value in (("agreement", agreement), ("finest", finest)):
        if not 0 < value <= 1:  # a finest share of zero would be searched for endlessly
            raise InputError(f"'{key}' is a share", key=key, value=value, hint="give a number above 0, up to 1")
    stations = _stations(robot, poses)
    current = _pose_at(robot, stations, 0.0, robot.home, modes, lock)
    current = replace(current, frequencies=current.frequencies[:modes], shapes=current.shapes[:, :modes])
    tracked, agreements, doubtful = [current], [np.ones(modes)], []
    waiting = [_pose_at(robot, stations, float(k), None, modes, lock) for k in reversed(range(1, len(stations)))]
    while waiting:
        next_pose = waiting[-1]
        before = _settled(current, next_pose) if len(tracked) == 1 else current
        matched, agreeing = match_modes(before, next_pose)
        if agreeing.min() < agreement:
            if next_pose.place - current.place > finest:
                middle = (current.place + next_pose.place) / 2
                waiting.append(_pose_at(robot, stations, middle, current.q, modes, lock))
                continue
            doubtful.append(next_pose.place)
        tracked[-1], current = before, matched
        tracked.append(current)
        agreements.append(agreeing)
        waiting.pop()
    places, positions, frequencies, shapes = (
        np.array([getattr(entry, name) for entry in tracked]) for name in ("place", "q", "frequencies", "shapes")
    )
    return TrackedModes(places, positions, frequencies, shapes, np.array(agreements), doubtful)


def match_modes(before: TrackedPose, after: TrackedPose) -> tuple[TrackedPose, Array]:
    """The modes of `after` that continue those of `before`, in their order and basis, and how well each agrees."""
    from scipy.optimize import linear_sum_assignment  # a tenth of a second to load

    overlap = before.shapes.T @ (0.5 * (before.M + after.M)) @ after.shapes
    sizes = np.outer(*(np.sqrt(np.einsum("ik,ij,jk->k", s.shapes, s.M, s.shapes)) for s in (before, after)))
    overlap = overlap / sizes
    groups = close_groups(after.frequencies)
    likeness = np.empty_like(overlap)
    for group in groups:
        likeness[:, group] = (overlap[:, group] ** 2).sum(axis=1)[:, None]  # of the whole subspace
    branches, partners = linear_sum_assignment(-likeness)
    shapes, squares = np.empty_like(before.shapes), np.empty(len(branches))
    for group in groups:
        matched = np.flatnonzero(np.isin(partners, group))
        if not len(matched):
            continue
        U, _, Vt = np.linalg.svd(overlap[matched][:, group], full_matrices=False)
        rotation = (U @ Vt).T  # columns: the basis of the group nearest to the branches
        shapes[:, matched] = after.shapes[:, group] @ rotation
        squares[matched] = (after.frequencies[group] ** 2) @ rotation**2
    return replace(after, frequencies=np.sqrt(squares), shapes=shapes), likeness[branches, partners]


def close_groups(frequencies: Array) -> list[list[int]]:
    """Numbers of modes whose frequencies are close, lowest first."""
    groups: list[list[int]] = []
    for k, frequency in enumerate(frequencies):
        if groups and frequency - frequencies[groups[-1][-1]] <= CLOSE * frequency:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def _settled(first: TrackedPose, after: TrackedPose) -> TrackedPose:
    """The first pose has no pose before it: inside its double modes the basis is taken from the next pose."""
    shapes = first.shapes.copy()
    mean = 0.5 * (first.M + after.M)
    for group in close_groups(first.frequencies):
        if len(group) == 1:
            continue
        overlap = first.shapes[:, group].T @ mean @ after.shapes
        partners = np.sort(np.argsort(-(overlap**2).sum(axis=0))[: len(group)])
        U, _, Vt = np.linalg.svd(overlap[:, partners])
        shapes[:, group] = first.shapes[:, group] @ (U @ Vt)
    return replace(first, shapes=shapes)


def _pose_at(
    robot: Robot,
    stations: list[dict[str, float]],
    place: float,
    near: Array | None,
    modes: int,
    lock: str | Sequence[str],
) -> TrackedPose:
    """Modes at any place of the path; coordinates between two poses are interpolated."""
    k = min(int(place), len(stations) - 2)
    share = place - k
    coordinates = {word: (1 - share) * value + share * stations[k + 1][word] for word, value in stations[k].items()}
    configuration = Configuration(robot, robot.assemble(coordinates, near))
    try:
        result = natural_frequencies(robot, configuration, modes + SPARE, lock)
    except InputError:  # fewer modes than that: all of them do
        result = natural_frequencies(robot, configuration, modes, lock)
    M = mass_matrix(robot.tree, result.model.configuration.at)
    return TrackedPose(place, configuration.q, M, result.frequencies, result.shapes)


def _stations(robot: Robot, poses: Sequence[str | Mapping[str, float]]) -> list[dict[str, float]]:
    """The poses of the path as coordinates by name; all give the same ones, so that there are poses between."""
    if len(poses) < 2:
        raise InputError("a path needs at least two poses", key="poses", value=len(poses), hint="give start and end")
    file_poses = robot.description.poses
    stations = []
    for entry in poses:
        if isinstance(entry, str) and entry not in file_poses:
            raise InputError(f"the robot has no pose '{entry}'", key="poses", value=entry, hint="see 'parflex info'")
        stations.append(dict(file_poses[entry] if isinstance(entry, str) else entry))
        if stations[-1].keys() != stations[0].keys():
            raise InputError(
                "the poses of a path give different coordinates",
                key="poses",
                value=", ".join(stations[-1]),
                hint=f"give {', '.join(stations[0])} in each",
            )
    return stations
