"""A robot at many poses at once, with exact derivatives by numbers of its file and by its coordinates.

Coordinates of a pose are fixed by the readings of motors or unknown. Unknown ones close the loops, and at an
equilibrium also balance gravity and elastic forces; the multipliers of the loops are unknowns then. All poses are
closed together by Newton's method: each number is a row of values, and the physics over any scalar runs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from parflex.closure.newton import STRIDE
from parflex.closure.rows import stack
from parflex.errors import InputError, ParflexError
from parflex.parameters.design_numbers import DesignNumbers
from parflex.parameters.parameters import Parameters
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.configuration import Configuration
from parflex.robot.load import with_settings
from parflex.robot.robot import Robot
from parflex.spatial.batched import BatchedNumber, batched_entries, gathered
from parflex.spatial.dual import DualNumber
from parflex.statics.loads import AppliedLoads

Array = np.ndarray
CLOSED = 1e-9  # of the typical length (of the largest force): what is open by less is closed to rounding by more steps
ROUNDING = 1e-15  # of the typical length: no step improves it
STEPS, SLOW = 40, 0.1  # Newton steps, and the decrease of the opening below which the matrix is made again
RANK = 1e-9  # of the largest singular value of scaled rows: smaller ones are rounding
WAY = 0.2  # rad or typical lengths of a motor between two poses on the path from home
FARTHEST = 10.0  # of such units from home: drums turn farther, as do values in other units; these are searched alone
OPEN = 1e-6  # of the largest change of a loop: what is left of it, if larger, no motion closes
NAMED = 3  # unreachable poses that the search names before it ends: each may take half a second


class SlopedRow(DualNumber):
    """A number in each row of a batch, and its slopes (directions x rows); comparisons are those of objects."""

    __slots__ = ()

    def __abs__(self) -> SlopedRow:
        return self._mapped(np.abs(self.value), np.sign(self.value))

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def sin(self) -> SlopedRow:
        """Sine."""
        return self._mapped(np.sin(self.value), np.cos(self.value))

    def cos(self) -> SlopedRow:
        """Cosine."""
        return self._mapped(np.cos(self.value), -np.sin(self.value))

    def sqrt(self) -> SlopedRow:
        """Square root."""
        root = np.sqrt(self.value)
        return self._mapped(root, 0.5 / root)


def small_turn(R: Any) -> tuple[Any, Any, Any]:
    """Rotation vector of a small turn, to first order; R has rows and columns first."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


def row_number(values: Array, slopes: Array | None = None) -> BatchedNumber | SlopedRow:
    """A number in each row, with slopes if they are given."""
    return BatchedNumber(values) if slopes is None else SlopedRow(values, slopes)


@dataclass(frozen=True, eq=False, repr=False)
class Scene(Record):
    """A robot at all poses: `robot` and `at` have a number in each row, with slopes if they were asked for."""

    robot: Robot
    at: Pose
    multipliers: Array


@dataclass(frozen=True, eq=False, repr=False)
class Poses(Record):
    """Positions q (poses x nq) and multipliers of the closures (poses x rows) of all poses."""

    q: Array
    multipliers: Array

    def rows(self, rows: Array) -> Poses:
        """Some of the poses."""
        return Poses(self.q[rows], self.multipliers[rows])


class PoseBatch:
    """A robot at many poses.

    `fixed` are position coordinates that readings give; all other coordinates are unknown, but for those of locked
    joints and, without an equilibrium, deformations.
    """

    def __init__(self, robot: Robot, keys: Sequence[str], fixed: Sequence[str], at_equilibrium: bool = False) -> None:
        self.robot, self.keys, self.tree, self.at_equilibrium = robot, tuple(keys), robot.tree, at_equilibrium
        names = list(robot.tree.position_names)
        self.fixed = [names.index(name) for name in fixed]
        held = {robot.tree.rate_names.index(name) for name in fixed} | robot.locked
        held |= set() if at_equilibrium else set(robot.deformations)
        self.columns = np.array([k for k in range(robot.nv) if k not in held], dtype=int)
        self.moving = sorted({i for k in self.columns for i in self._positions_of(int(k))} | set(self.fixed))
        self.rest = robot if at_equilibrium else robot.at_rest or robot
        self.forces = robot.closures.size if at_equilibrium else 0
        self.unknowns = len(self.columns) + self.forces

    def _positions_of(self, rate: int) -> list[int]:
        link = self.tree.links[self.tree.link_of_rate[rate]]
        if link.e_v.start <= rate < link.e_v.stop:
            return [link.e.start + rate - link.e_v.start]
        if link.joint.plain:
            return [link.q.start + rate - link.v.start]
        return list(range(link.q.start, link.q.stop))

    # -- numbers -----------------------------------------------------------------------------------------------------

    def numbers(self, values: Array) -> DesignNumbers:
        """Numbers of the robot with slopes by the keys at values of these."""
        parameters = Parameters(self.robot, self.keys)
        parameters.values = np.asarray(values, dtype=float)
        if parameters.numbers is not None:
            return parameters.numbers
        settings = {key: float(value) for key, value in zip(self.keys, values, strict=True)}
        again = Parameters(with_settings(self.robot, settings), self.keys)
        return replace(again.sloped_numbers, robot=self.robot)

    def twin(self, values: Array, directions: int = 0) -> Robot:
        """The robot with values of the keys; with slopes along so many directions, of which the keys are the first."""
        if not self.keys:
            return self.rest
        numbers = self.numbers(values)
        assert numbers.slopes is not None
        changes = np.zeros((directions, len(numbers.nominal)))
        changes[: len(self.keys)] = numbers.slopes[:directions]
        made = numbers.with_numbers(
            {
                k: SlopedRow(np.array([value]), changes[:, [k]]) if directions else float(value)
                for k, value in enumerate(numbers.nominal)
            }
        )
        return made if self.at_equilibrium else made.at_rest or made

    # -- kinematics --------------------------------------------------------------------------------------------------

    def scene(self, twin: Robot, poses: Poses, slopes: Array | None = None, first: int = 0) -> Scene:
        """The robot at all poses; `slopes` (directions x poses x fixed) are those of the fixed coordinates.

        Unknowns have unit slopes along the directions from `first` on.
        """
        q = np.array(poses.q.T)
        entries: Any = list(self.robot.home)  # what does not move stays a plain number
        for k in self.moving:
            entries[k] = BatchedNumber(np.ascontiguousarray(q[k]))
        multipliers = batched_entries(poses.multipliers)
        if slopes is not None:
            directions = len(slopes)
            changes: dict[int, Array] = {k: np.zeros((directions, 1)) for k in self.moving}
            changes |= {k: slopes[:, :, i] for i, k in enumerate(self.fixed)}
            for number, rate in enumerate(self.columns):
                for k, change in self._position_rates(entries, int(rate)):
                    if changes[k].shape[1] != len(poses.q):
                        changes[k] = np.zeros((directions, len(poses.q)))
                    changes[k][first + number] += change
            for k, change in changes.items():
                entries[k] = SlopedRow(entries[k].values, change)
            for j in range(self.forces):
                unit = np.eye(directions)[:, [first + len(self.columns) + j]]
                multipliers[j] = SlopedRow(multipliers[j].values, unit)
        positions = np.empty(len(entries), dtype=object)
        positions[:] = [float(x) if isinstance(x, np.floating) else x for x in entries]
        return Scene(twin, pose(twin.tree, positions), multipliers)

    def _position_rates(self, entries: Any, rate: int) -> list[tuple[int, Any]]:
        """Rates of position coordinates for a unit rate, in each row."""
        link = self.tree.links[self.tree.link_of_rate[rate]]
        if link.joint.plain or link.e_v.start <= rate < link.e_v.stop:
            return [(self._positions_of(rate)[0], 1.0)]
        unit = np.eye(link.v.stop - link.v.start)[rate - link.v.start]
        q = np.empty(link.q.stop - link.q.start, dtype=object)
        q[:] = [BatchedNumber(entries[k].values) for k in range(link.q.start, link.q.stop)]
        moved = link.joint.position_rates(q, unit)
        return [(link.q.start + i, getattr(x, "values", x)) for i, x in enumerate(moved)]

    def equations(self, scene: Scene) -> Array:
        """What vanishes: openings of the loops over the typical length, then forces along the unknown coordinates."""
        closures, length = scene.robot.closures, self.tree.length
        rows = stack(row.scale(1.0) * row.linear_residual(scene.at) for row in closures.rows)
        units = stack(row.scale(length) for row in closures.rows) / length
        if not self.at_equilibrium:
            return rows * units
        here = Configuration(scene.robot, scene.at.q)
        here.__dict__["at"] = scene.at
        loads = AppliedLoads(tau=np.zeros(self.robot.nv))
        forces = loads.closed_forces(here, scene.multipliers * self.force)[self.columns]
        return np.concatenate([rows * units, forces / self.force])

    def with_slopes(self, numbers: Any, count: int, directions: int) -> tuple[Array, Array]:
        """Values (poses x rows) and slopes (poses x rows x directions) of an array of numbers."""
        entries = np.asarray(numbers, dtype=object)
        values, slopes = np.empty((count, len(entries))), np.zeros((count, len(entries), directions))
        for k, x in enumerate(entries):
            if isinstance(x, SlopedRow):
                values[:, k], slopes[:, k] = x.value, x.slope.T
            else:
                values[:, k] = x.values if isinstance(x, BatchedNumber) else x
        return values, slopes

    def frame_slopes(self, values: Array, poses: Poses, fixed: Array, frame: str) -> tuple[Array, Array]:
        """Derivatives of position and rotation (world axes) of a frame at closed poses: poses x 6 x directions.

        `fixed` (directions x poses x fixed) are slopes of the fixed coordinates; the keys are the first directions. The
        second array is the place itself: poses x 12, position and rotation matrix.
        """
        count, directions = len(fixed), len(fixed) + self.unknowns
        padded = np.concatenate([fixed, np.zeros((self.unknowns, *fixed.shape[1:]))])
        scene = self.scene(self.twin(values, directions), poses, padded, count)
        _, equations = self.with_slopes(self.equations(scene), len(poses.q), directions)
        R, P = scene.at.of(scene.robot.tree.places[frame])
        values, slopes = self.with_slopes([*P, *np.asarray(R).ravel()], len(poses.q), directions)
        inverse, left = self.inverse(equations[:, :, count:])
        if np.abs(slopes[:, :, count:] @ left).max(initial=0.0) > RANK:
            text = "the motors do not determine the pose, so that it has no error at fixed motors"
            raise InputError(text, key="robot", value=self.robot.name, hint="choose another actuation")
        steps = inverse @ equations[:, :, :count]
        missed = np.abs(equations[:, :, :count] - equations[:, :, count:] @ steps).max(axis=(0, 1), initial=0.0)
        for key, size, whole in zip(self.keys, missed, np.abs(equations).max(axis=(0, 1))[:count], strict=False):
            if size > OPEN * whole:
                text = f"the robot cannot be closed at fixed motors when '{key}' changes alone"
                raise InputError(text, key="keys", value=key, hint="change lengths of all legs together")
        total = slopes[:, :, :count] - slopes[:, :, count:] @ steps
        rotation, turning = values[:, 3:].reshape(-1, 3, 3), total[:, 3:].reshape(-1, 3, 3, count)
        turn = np.stack(small_turn(np.einsum("pikd,pjk->ijpd", turning, rotation)), axis=1)
        return np.concatenate([total[:, :3], turn], axis=1), values

    # -- closing -----------------------------------------------------------------------------------------------------

    @cached_property
    def force(self) -> float:
        """The largest force along a coordinate at home, by which forces and multipliers are measured."""
        loads = AppliedLoads(tau=np.zeros(self.robot.nv))
        return float(np.abs(loads.forces(Configuration(self.robot, self.robot.home))).max(initial=0.0)) or 1.0

    @cached_property
    def units(self) -> Array:
        """What one step of each unknown is: a rate of a typical length or radian; multipliers by equilibration."""
        return np.concatenate([self.tree.rate_units[self.columns], np.ones(self.forces)])

    def inverse(self, J: Array) -> tuple[Array, Array]:
        """Pseudoinverse of the equations by the unknowns, and a basis of what they leave open; one rank for all."""
        scaled = J * self.units
        rows = _scales(scaled, 2)
        columns = _scales(scaled * rows, 1)
        scaled = scaled * rows * columns
        back = _regular_inverses(scaled)
        left = np.zeros((*J.shape[::2], 0))
        if back is None:
            U, sizes, V = np.linalg.svd(scaled, full_matrices=True)
            ranks = (sizes > RANK * sizes[:, :1]).sum(axis=1)
            rank = int(np.median(ranks)) if len(ranks) else 0
            back = np.einsum("pki,pk,pjk->pij", V[:, :rank], 1 / sizes[:, :rank], U[:, :, :rank])
            left = np.swapaxes(V[:, rank:], 1, 2)
        units = np.swapaxes(columns, 1, 2) * self.units[:, None]
        return back * np.swapaxes(rows, 1, 2) * units, left * units

    def slopes_by_unknowns(self, twin: Robot, poses: Poses) -> Array:
        """Derivatives of the equations by the unknowns: poses x equations x unknowns."""
        count = len(poses.q)
        seeds = np.zeros((self.unknowns, count, len(self.fixed)))
        return self.with_slopes(self.equations(self.scene(twin, poses, seeds)), count, self.unknowns)[1]

    def moved(self, poses: Poses, step: Array) -> Poses:
        """Poses after steps of the unknowns (poses x unknowns)."""
        rates = np.zeros((len(step), self.robot.nv))
        rates[:, self.columns] = step[:, : len(self.columns)]
        q = np.array([self.tree.moved(*row) for row in zip(poses.q, rates, strict=True)])
        return Poses(q, poses.multipliers + step[:, len(self.columns) :])

    def closed(self, twin: Robot, poses: Poses, inverse: Array | None = None) -> tuple[Poses, Array]:
        """Poses whose equations hold, from poses nearby, and which of them do; with an `inverse` that stays."""
        opening, given = np.full(len(poses.q), np.inf), inverse is not None
        for _ in range(STEPS):
            values = gathered(self.equations(self.scene(twin, poses)), len(poses.q))
            before, opening = opening, np.abs(values).max(axis=1, initial=0.0)
            near = opening <= CLOSED
            if (near & ((opening <= ROUNDING) | (opening >= 0.5 * before))).all() or not np.isfinite(opening).all():
                break
            if inverse is None or (not given and (opening > np.maximum(SLOW * before, CLOSED)).any()):
                if not len(self.columns):
                    break
                inverse = self.inverse(self.slopes_by_unknowns(twin, poses))[0]
            step = -np.einsum("pij,pj->pi", inverse, values)
            far = np.abs(step[:, : len(self.columns)] / self.tree.rate_units[self.columns]).max(axis=1, initial=0.0)
            poses = self.moved(poses, step * np.minimum(1.0, STRIDE / np.maximum(far, 1e-300))[:, None])
        return poses, opening <= CLOSED

    def from_home(self, values: Array, fixed: Array) -> tuple[Poses, Array]:
        """Poses on the straight paths of the fixed coordinates from home, on the same side of singularities."""
        home = Poses(np.repeat(self.robot.home[None], len(fixed), axis=0), np.zeros((len(fixed), self.forces)))
        plain = self if not self.forces else PoseBatch(self.robot, self.keys, [self._name(k) for k in self.fixed])
        poses, good = plain._followed(plain.twin(values), Poses(home.q, np.zeros((len(fixed), 0))), fixed)
        poses = Poses(poses.q, home.multipliers)
        if self.forces and good.any():
            rows = np.flatnonzero(good)
            balanced, good[rows] = self.closed(self.twin(values), poses.rows(rows))
            poses.q[rows], poses.multipliers[rows] = balanced.q, balanced.multipliers
        return poses, good

    def _name(self, position: int) -> str:
        return self.tree.position_names[position]

    def _followed(self, twin: Robot, poses: Poses, fixed: Array) -> tuple[Poses, Array]:
        rates = [self.tree.rate_names.index(self._name(k)) for k in self.fixed]
        begin = poses.q[:1, self.fixed]
        far = np.abs((fixed - begin) / self.tree.rate_units[rates])
        side, good = self._side(twin, poses.rows(np.zeros(1, dtype=int))), (far <= FARTHEST).all(axis=1)
        for share in np.linspace(0, 1, max(int(np.ceil(far[good].max(initial=0.0) / WAY)), 1) + 1)[1:]:
            if not good.any():
                return poses, good
            q = np.array(poses.q)
            q[:, self.fixed] = begin + share * (fixed - begin)
            rows = np.flatnonzero(good)
            moved, good[rows] = self.closed(twin, Poses(q, poses.multipliers).rows(rows))
            q[rows] = moved.q
            poses = Poses(q, poses.multipliers)
        if side is not None:
            rows = np.flatnonzero(good)
            now = self._side(twin, poses.rows(rows), side[1])
            good[rows] &= now[0] == side[0] if now is not None else True
        return poses, good

    def _side(self, twin: Robot, poses: Poses, chosen: Array | None = None) -> tuple[Array, Array] | None:
        """Sign of the determinant of the equations, and the rows that it is of; None where motions stay open."""
        J = self.slopes_by_unknowns(twin, poses) * self.units
        if J.shape[1] < J.shape[2]:
            return None
        if chosen is None:
            chosen = np.sort(scipy.linalg.qr(J[0].T, mode="r", pivoting=True)[1][: J.shape[2]])
        return np.linalg.slogdet(J[:, chosen])[0], chosen

    def start(self, values: Array, fixed: Array) -> tuple[Poses, dict[int, ParflexError]]:
        """Poses at fixed coordinates (poses x fixed) from home, and the errors of the first that are not reached."""
        poses, good = self.from_home(values, fixed)
        errors: dict[int, ParflexError] = {}
        settings = {key: float(value) for key, value in zip(self.keys, values, strict=True)}
        robot: Robot | None = None
        for row in np.flatnonzero(~good).tolist():
            if len(errors) == NAMED:
                break
            try:
                robot = robot or (with_settings(self.robot, settings) if settings else self.robot)
                given = dict(zip(map(self._name, self.fixed), fixed[row].tolist(), strict=True))
                poses.q[row] = robot.assemble(given, near=self.robot.home)
            except ParflexError as error:
                errors[row] = error
        if self.forces and not errors and not good.all():
            rows = np.flatnonzero(~good)
            balanced, closed = self.closed(self.twin(values), poses.rows(rows))
            poses.q[rows], poses.multipliers[rows] = balanced.q, balanced.multipliers
            errors = {int(row): ParflexError("no equilibrium is found") for row in rows[~closed]}
        return poses, errors


def _scales(matrices: Array, axis: int) -> Array:
    """Factors that make the largest entries along an axis one; of rounding they are one."""
    sizes = np.abs(matrices).max(axis=axis, keepdims=True, initial=0.0)
    small = sizes <= RANK * sizes.max(initial=0.0)
    return np.asarray(1.0 / np.where(small, 1.0, sizes))


def _regular_inverses(matrices: Array) -> Array | None:
    """Inverses of square matrices, which cost less than singular values; None where one is not regular."""
    if matrices.shape[1] != matrices.shape[2] or not np.isfinite(matrices).all():
        return None
    try:
        inverses = np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        return None
    conditions = np.linalg.norm(matrices, axis=(1, 2)) * np.linalg.norm(inverses, axis=(1, 2))
    return inverses if (conditions < 1 / RANK).all() else None
