"""`tolerance`: errors of the pose at fixed motors by deviations of numbers of the robot file."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.calibration.batch import PoseBatch, Poses, small_turn
from parflex.design.sensitivity import checked_keys
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.maps.parameters import numbers_of_designs
from parflex.parameters.design_numbers import number_at
from parflex.records import Answer, brief, count_of
from parflex.robot.configuration import Pose, configure
from parflex.robot.robot import Robot
from parflex.spatial.batched import BatchedNumber

Array = np.ndarray
PARTS = ("x", "y", "z", "rx", "ry", "rz")
STATIC = 1e-9  # m or rad: what moves by less at fixed motors does not move


@dataclass(frozen=True, eq=False, repr=False)
class Tolerance(Answer):
    """Error of a frame at fixed motors, by number of the robot file and in total, at a pose or over a map of poses.

    Attributes
    ----------
    robot : str
        Name of the robot.
    frame : str
        Frame whose error it is.
    total : dict[str, float]
        Standard deviations to first order: x y z (m), rx ry rz (rad, world axes), and position and rotation, the roots
        of the sums of their squares; of a map the largest of each.
    contributions : dict[str, dict[str, float]]
        By key: the same of this number alone, and `share` of the variance of the position (of the rotation, if the
        position does not move); at the pose of the largest error.
    monte_carlo : dict[str, float]
        At a single pose: position and rotation of random robots as in `total`, `position_95`, which 95 % of them do not
        exceed, their number `samples`, and `failed`, which cannot be closed.
    poses : list[dict[str, float]]
        Of a map: its coordinates, position and rotation errors; NaN where the pose is not reached.
    diagnostics : tuple[Diagnostic, ...]
        Diagnostics.
    """

    robot: str
    frame: str
    total: dict[str, float]
    contributions: dict[str, dict[str, float]]
    monte_carlo: dict[str, float] = field(default_factory=dict)
    poses: list[dict[str, float]] = field(default_factory=list, repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("robot", "frame", "total", "contributions", "monte_carlo", "poses")
        return {word: getattr(self, word) for word in words}

    def _told(self) -> str:
        return f"{brief(self.robot)}: {self.frame} {self.total['position']:.3g} m, {self.total['rotation']:.3g} rad"


def tolerance(
    robot: Robot,
    keys: Mapping[str, float],
    pose: Pose | None = None,
    *,
    over: Sequence[tuple[str, float, float, int]] | None = None,
    frame: str | None = None,
    samples: int = 1000,
    seed: int = 0,
) -> Tolerance:
    """Error budget of a pose: what deviations of numbers of the robot file move a frame by while the motors stay.

    Exact derivatives through the closed loops, and random robots with normally distributed numbers.

    Parameters
    ----------
    robot, pose
        See `parflex.api.WORDS`.
    keys : Mapping[str, float]
        Standard deviations of numbers of the robot file by dotted path, in their units.
    over : Sequence[tuple], default None
        Axes of a grid of poses in place of one: (coordinate, first, last, count) (m, rad).
    frame
        See `parflex.api.WORDS`.
    samples : int, default 1000
        Random robots at a single pose.
    seed
        See `parflex.api.WORDS`.

    Returns
    -------
    Tolerance
        Standard deviations in total and by number.
    """
    names = checked_deviations(robot, keys)
    where = robot.tree.end_effector if frame is None else frame
    if not robot.tree.has(where, "frame"):
        raise InputError(f"there is no frame '{where}'", key="frame", value=where,
                         hint=did_you_mean(where, list(robot.tree.places)))  # fmt: skip
    if over is not None and pose is not None:
        raise InputError("'pose' and 'over' are given together", key="over", hint="keep one of them")
    batch = PoseBatch(robot, names, robot.motors)
    values = np.array([number_at(robot, key, "keys") for key in names])
    deviations = np.array([float(keys[key]) for key in names])
    points: list[Any] = [pose] if over is None else grid(over)
    q, reached = poses_of(robot, points)
    if not reached.any():
        raise InputError("no pose of the map is reached", key="over", value=str(over)[:60], hint="choose another range")
    poses = Poses(q[reached], np.zeros((int(reached.sum()), 0)))
    slopes, _ = batch.frame_slopes(values, poses, np.zeros((len(names), len(poses.q), len(batch.fixed))), where)
    errors = slopes * deviations  # poses x 6 x keys
    parts = np.sqrt((errors**2).sum(axis=2))
    sizes = np.stack([np.linalg.norm(parts[:, :3], axis=1), np.linalg.norm(parts[:, 3:], axis=1)], axis=1)
    worst = int(np.argmax(sizes[:, 0] if sizes[:, 0].max() > STATIC else sizes[:, 1]))
    total = dict(zip((*PARTS, "position", "rotation"), [*parts.max(axis=0), *sizes.max(axis=0)], strict=True))
    contributions = {}
    main = slice(0, 3) if sizes[worst, 0] > STATIC else slice(3, 6)
    square = float((errors[worst, main] ** 2).sum())
    for k, key in enumerate(names):
        own = errors[worst, :, k]
        lengths = [float(np.linalg.norm(own[:3])), float(np.linalg.norm(own[3:]))]
        contributions[key] = dict(zip((*PARTS, "position", "rotation"), [*map(float, own), *lengths], strict=True))
        contributions[key]["share"] = float((own[main] ** 2).sum()) / square if square else 0.0
    rows: list[dict[str, float]] = []
    if over is not None:
        filled = np.full((len(points), 2), np.nan)
        filled[reached] = sizes
        rows = [point | {"position": a, "rotation": b} for point, (a, b) in zip(points, filled.tolist(), strict=True)]
    random: dict[str, float] = {}
    if over is None:
        random = monte_carlo(batch, values, deviations, poses, where, samples, seed)
    missed = f"{count_of(int((~reached).sum()), 'pose')} of the map cannot be reached"
    lost = [] if reached.all() else [Diagnostic("failed-states", missed)]
    total = {word: float(value) for word, value in total.items()}
    return Tolerance(robot.name, where, total, contributions, random, rows, tuple(lost))


def checked_deviations(robot: Robot, keys: Any) -> list[str]:
    """Keys of standard deviations."""
    if not isinstance(keys, Mapping):
        raise InputError("'keys' are not standard deviations by key", key="keys", value=str(keys)[:60],
                         hint="give e.g. {'constants.arm': 1e-4}")  # fmt: skip
    for key, deviation in keys.items():
        if isinstance(deviation, bool) or not isinstance(deviation, int | float) or not 0 < deviation < np.inf:
            raise InputError(f"the deviation of '{key}' is not a positive number", key="keys", value=str(deviation),
                             hint="give a standard deviation in the unit of the key")  # fmt: skip
    return checked_keys(robot, list(keys))


def grid(over: Sequence[tuple[str, float, float, int]]) -> list[dict[str, float]]:
    """Poses of a grid."""
    axes = [np.linspace(first, last, count) for _, first, last, count in over]
    return [dict(zip([axis[0] for axis in over], map(float, point), strict=True)) for point in itertools.product(*axes)]


def poses_of(robot: Robot, points: Sequence[Any]) -> tuple[Array, Array]:
    """Positions at poses, and which are reached; a single one that is not raises its error."""
    q, reached = np.repeat(robot.home[None], len(points), axis=0), np.zeros(len(points), dtype=bool)
    for k, point in enumerate(points):
        try:
            q[k], reached[k] = configure(robot, point).q, True
        except ParflexError:
            if len(points) == 1:
                raise
    return q, reached


def monte_carlo(
    batch: PoseBatch, values: Array, deviations: Array, poses: Poses, frame: str, samples: int, seed: int
) -> dict[str, float]:
    """Errors of random robots at a pose, all closed together."""
    drawn = values + deviations * np.random.default_rng(seed).standard_normal((samples, len(values)))
    numbers = numbers_of_designs(batch.robot, dict(zip(batch.keys, drawn.T, strict=True)))
    good = ~numbers.alone
    columns = np.where(np.isfinite(numbers.values), numbers.values, numbers.nominal)
    made = numbers.with_numbers({k: BatchedNumber(np.ascontiguousarray(column)) for k, column in enumerate(columns.T)})
    twin = made.at_rest or made
    inverse = batch.inverse(batch.slopes_by_unknowns(batch.twin(values), poses))[0]
    many = Poses(np.repeat(poses.q, samples, axis=0), np.zeros((samples, 0)))
    closed, fits = batch.closed(twin, many, inverse)
    good &= fits
    places = []
    for robot, at in ((twin, closed), (batch.twin(values), poses)):
        R, P = batch.scene(robot, at).at.of(robot.tree.places[frame])
        places.append(batch.with_slopes([*P, *np.asarray(R).ravel()], len(at.q), 0)[0])
    moved = (places[0] - places[1])[good]
    rotations = [rows[:, 3:].reshape(-1, 3, 3) for rows in places]
    turn = np.stack(small_turn(np.einsum("pik,jk->ijp", rotations[0][good], rotations[1][0])))
    if not good.any():
        return {"samples": samples, "failed": samples}
    far = np.linalg.norm(moved[:, :3], axis=1)
    return {
        "position": float(np.sqrt(np.mean(far**2))), "position_95": float(np.quantile(far, 0.95)),
        "rotation": float(np.sqrt(np.mean((turn**2).sum(axis=0)))), "samples": samples, "failed": int((~good).sum()),
    }  # fmt: skip
