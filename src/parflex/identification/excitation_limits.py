"""Limits of exciting trajectories and derivatives of their regressors.

Rows of efforts along a motion of the motors have exact derivatives through the loops, in reverse mode: from rows,
efforts, joints and places to positions, rates and accelerations of the motors. Programs give the derivatives of rows
and closures by all joints; the two linear systems of the loops connect them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parflex.checks import number
from parflex.codegen.model import Model, cached_program
from parflex.codegen.options import Options
from parflex.codegen.tracer import Tracer
from parflex.errors import InputError, did_you_mean
from parflex.forces.effort_allocation import read_limits
from parflex.identification.regressor import ClosedMotion, Regressor, known_forces, rows_of
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.robot.motor_values import by_motor
from parflex.symbolic.derivative import gradient
from parflex.tree.tree import Tree

Array = np.ndarray
AXES = ("x", "y", "z")
AMPLITUDE = 0.5  # rad or typical lengths: half a radian to each side, far from the ends of usual joints


@dataclass(frozen=True, eq=False, repr=False)
class MotionLimit(Record):
    """Lowest and highest value of one signal: a column of "q", "qd", "efforts" or "place", and where its slope goes."""

    kind: str
    name: str
    signal: str
    column: int
    low: float
    high: float
    slope: int

    @property
    def width(self) -> float:
        """Half of what is between both, or the size of the only one."""
        if np.isfinite(self.high - self.low):
            return (self.high - self.low) / 2
        return max(abs(self.low if np.isfinite(self.low) else self.high), 1e-12)

    def judged(self, values: Array) -> dict[str, Any]:
        """Largest values with the limits."""
        low, high = (float(bound) if np.isfinite(bound) else None for bound in (self.low, self.high))
        if self.kind == "speed":
            return {"largest": float(np.abs(values).max()), "limit": high}
        return {"lowest": float(values.min()), "highest": float(values.max()), "limits": [low, high]}


@dataclass(frozen=True, eq=False, repr=False)
class MotionLimits(Record):
    """What a motion must keep: joints, motor rates, efforts, places, and its distance to singular poses."""

    limits: list[MotionLimit]
    distance: float
    home_spread: float  # of J at home

    def judged(self, regressor: Regressor, moving: ClosedMotion, efforts: Array, place: Array) -> dict[str, Any]:
        """Largest values, by kind, each with its limit."""
        signals, result = _signals(moving, efforts, place), dict[str, Any]()
        for limit in self.limits:
            values = signals[limit.signal][:, limit.column]
            result.setdefault(limit.kind, {})[limit.name] = limit.judged(values)
        near = float(self.home_spread / spread(regressor, moving.J).max())
        return result | {"distance": {"lowest": near, "limit": self.distance}}

    def _sides(self, signals: Mapping[str, Array]) -> Iterator[tuple[MotionLimit, float, Array]]:
        """Yield each limit, its side, and the share of its width that is left at all instants."""
        for limit in self.limits:
            values = signals[limit.signal][:, limit.column]
            for bound, sign in ((limit.high, 1.0), (limit.low, -1.0)):
                if np.isfinite(bound):
                    yield limit, sign, sign * (bound - values) / limit.width

    def margins(self, regressor: Regressor, moving: ClosedMotion, efforts: Array, place: Array) -> list[Array]:
        """Return the shares of all limits that are left at all instants; negative beyond a limit."""
        sides = [left for _, _, left in self._sides(_signals(moving, efforts, place))]
        return [*sides, 1 - spread(regressor, moving.J) * self.distance / self.home_spread]

    def barrier(
        self, regressor: Regressor, moving: ClosedMotion, efforts: Array, place: Array
    ) -> tuple[float, dict[str, Array]]:
        """Return the sum of -log of all margins, infinite beyond a limit, and its slopes by the signals and J."""
        signals = _signals(moving, efforts, place)
        slopes = {word: np.zeros_like(values) for word, values in (signals | {"q": moving.qd, "J": moving.J}).items()}
        margins = self.margins(regressor, moving, efforts, place)
        if not all((left > 0).all() for left in margins):
            return np.inf, slopes
        for limit, sign, left in self._sides(signals):
            slopes[limit.signal][:, limit.slope] += sign / limit.width / left
        size, units = spread(regressor, moving.J), in_units(regressor, np.ones_like(moving.J[:1]))
        share = self.distance / self.home_spread / np.maximum(size, 1e-300) / margins[-1]
        slopes["J"] += share[:, None, None] * moving.J * units**2
        return float(-sum(np.log(left).sum() for left in margins)), slopes


def _signals(moving: ClosedMotion, efforts: Array, place: Array) -> dict[str, Array]:
    return {"q": moving.q, "qd": moving.qd, "efforts": efforts, "place": place}


def spread(regressor: Regressor, J: Array) -> Array:
    """Rates of all joints per rate of the motors, in their units: it grows without bound at singular poses."""
    return np.linalg.norm(in_units(regressor, J), axis=(1, 2))


def in_units(regressor: Regressor, J: Array) -> Array:
    """Rates of all joints per rate of the independent ones, in their units, those of rotors behind their gears.

    Rotors add nothing: they move as what they drive.
    """
    gearing = regressor.robot.gearing
    scaled = J / gearing.units[:, None] * gearing.units[list(regressor.partition.independent)]
    return np.where(gearing.rotors[:, None], 0.0, scaled) if gearing.any else scaled


def read_motion_limits(
    regressor: Regressor, amplitude: float | None, velocity_limit: Any, effort_limit: Any,
    workspace: Mapping[str, Any] | None, distance: float,
) -> MotionLimits:  # fmt: skip
    """Return the requested limits: those of the file, and of motors an amplitude about home.

    Without an amplitude motors that have limits in the file keep them.
    """
    robot = regressor.robot
    tree, motors, limits = robot.tree, list(robot.actuated_names), list[MotionLimit]()
    for link in tree.links:
        if not link.joint.one_axis:
            continue
        rate, home = link.v.start, float(robot.home[link.q.start])
        low, high = (-np.inf, np.inf) if link.limits is None else map(float, link.limits)
        if rate in robot.actuated and (link.limits is None or amplitude is not None):
            reach = (amplitude or AMPLITUDE) * float(robot.gearing.units[rate])
            low, high = max(low, home - reach), min(high, home + reach)
        if rate in robot.actuated or link.limits is not None:
            limits.append(MotionLimit("position", tree.rate_names[rate], "q", link.q.start, low, high, rate))
    speed, (lower, upper) = read_velocity_limits(motors, velocity_limit), read_limits(motors, effort_limit)
    for k, (name, rate) in enumerate(zip(motors, robot.actuated, strict=True)):
        limits.append(MotionLimit("speed", name, "qd", rate, -speed[k], speed[k], rate))
        limits.append(MotionLimit("effort", name, "efforts", k, lower[k], upper[k], k))
    box = _box(workspace)
    for k, axis in enumerate(AXES[: 2 if tree.planar else 3]):
        limits.append(MotionLimit("workspace", axis, "place", k, float(box[k][0]), float(box[k][1]), k))
    home_J = regressor.moved(robot.home[None], *np.zeros((2, 1, len(motors)))).J
    return MotionLimits(limits, distance, float(spread(regressor, home_J)[0]))


def read_velocity_limits(motors: Sequence[str], limit: Any) -> Array:
    """The highest speed of each motor: one number for all, or by name."""
    limits = np.full(len(motors), np.inf)
    table = limit if isinstance(limit, Mapping) else dict.fromkeys(motors, limit)
    for motor, value in by_motor(motors, table, "velocity_limit", "speed limit").items():
        if value is not None:
            limits[motor] = number(value, "velocity_limit", above=0.0, example=2)
    return limits


def _box(workspace: Mapping[str, Any] | None) -> Array:
    box = np.tile([-np.inf, np.inf], (3, 1))
    for axis, pair in (workspace or {}).items():
        if axis not in AXES:
            raise InputError(f"'{axis}' is not a direction of the workspace", key="workspace", value=str(axis),
                             hint=did_you_mean(str(axis), AXES))  # fmt: skip
        try:
            low, high = (float(value) for value in pair)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if not low < high:
            raise InputError("limits of the workspace are a lowest and a highest place", key=f"workspace.{axis}",
                             value=str(pair), hint="give e.g. x = [-0.1, 0.1]")  # fmt: skip
        box[AXES.index(axis)] = low, high
    return box


@dataclass(frozen=True, eq=False, repr=False)
class Seeds(Record):
    """Slopes of a number by what a motion has: rows, known efforts, the end effector's place, joints, J."""

    rows: Array  # instants x rows x columns
    known: Array  # instants x rows
    place: Array  # instants x 3
    q: Array  # instants x rates: by positions, along rates
    qd: Array
    J: Array


class DifferentiatedRows:
    """Rows of some unknowns of a robot whose motors are moved, and slopes back to these."""

    def __init__(self, regressor: Regressor, columns: Sequence[int]) -> None:
        self.regressor, self.columns = regressor, list(columns)

    @cached_property
    def _place(self) -> Model:
        robot = self.regressor.robot

        def outputs(tracer: Tracer) -> dict[str, Array]:
            at = pose(robot.tree, tracer.group("q", robot.tree.nq))
            return {"place": at.of(robot.tree.places[robot.tree.end_effector])[1]}

        return cached_program(robot, "place", Options(), outputs)

    def places(self, q: Array) -> Array:
        """Where the end effector is."""
        return self._place(q=q)["place"]

    @cached_property
    def _row_gradients(self) -> Model:
        """What the weighted sum of rows, known efforts and places feels of all joints and of J."""
        regressor = self.regressor
        robot, every = regressor.robot, [regressor.unknowns[k] for k in self.columns]
        count, loops = len(regressor.partition.independent), len(regressor.partition.dependent) > 0

        def outputs(tracer: Tracer) -> dict[str, Array]:
            tree = robot.tree
            q, qd, qdd = tracer.group("q", tree.nq), tracer.group("qd", tree.n), tracer.group("qdd", tree.n)
            J: Any = tracer.group("J", tree.n, count) if loops else None
            at = pose(tree, q)
            moving = motion(tree, at, qd, qdd, -tree.gravity)
            W = rows_of(tree, regressor.unknowns, at, moving, J, regressor.smooth)[:, self.columns]
            known = known_forces(regressor, at, moving, J)
            place = at.of(tree.places[tree.end_effector])[1]
            values = [*W.ravel(), *known, *place]
            weights = [
                *tracer.group("weights", *W.shape).ravel(), *tracer.group("known", len(known)),
                *tracer.group("place", 3),
            ]  # fmt: skip
            inputs = [*q, *qd, *qdd, *(J.ravel() if loops else ())]
            slopes = np.array(gradient(values, weights, inputs), dtype=object)
            cuts = np.cumsum([tree.nq, tree.n, tree.n])
            by_q, by_qd, by_qdd, by_J = np.split(slopes, cuts)
            result = {"q": _along_rates(tree, q, by_q), "qd": by_qd, "qdd": by_qdd}
            return result | ({"J": by_J.reshape(tree.n, count)} if loops else {})

        names = tuple(unknown.name for unknown in every)
        more = (names, tuple(map(int, regressor.partition.independent)), regressor.friction, *regressor.softness)
        return cached_program(robot, "effort-rows-felt", Options(), outputs, *more)

    @cached_property
    def _loop_gradients(self) -> Model:
        """What weighted rows of the closures and their bias feel of all joints."""
        robot, rows = self.regressor.robot, self.regressor.partition.rows

        def outputs(tracer: Tracer) -> dict[str, Array]:
            tree = robot.tree
            q, qd = tracer.group("q", tree.nq), tracer.group("qd", tree.n)
            at = pose(tree, q)
            C = robot.closures.jacobian(at, jacobians(tree, at))[rows]
            bias = robot.closures.bias(at, motion(tree, at, qd, np.zeros(tree.n)))[rows]
            weights = [*tracer.group("rows", *C.shape).ravel(), *tracer.group("bias", len(bias))]
            slopes = np.array(gradient([*C.ravel(), *bias], weights, [*q, *qd]), dtype=object)
            by_q, by_qd = np.split(slopes, [tree.nq])
            return {"q": _along_rates(tree, q, by_q), "qd": by_qd}

        return cached_program(robot, "closing-felt", Options(rows=tuple(map(int, rows))), outputs)

    def back(self, moving: ClosedMotion, rate: Array, acceleration: Array, seeds: Seeds) -> tuple[Array, Array, Array]:
        """Slopes by positions, rates and accelerations of the motors (each instants x motors)."""
        part, J = self.regressor.partition, moving.J
        inputs = {"q": moving.q, "qd": moving.qd, "qdd": moving.qdd, "weights": seeds.rows, "known": seeds.known,
                 "place": seeds.place}  # fmt: skip
        if not len(part.dependent):
            slopes = self._row_gradients(**inputs)
            by_q, by_qd = slopes["q"] + seeds.q, slopes["qd"] + seeds.qd
            chosen = part.independent
            return by_q[:, chosen], by_qd[:, chosen], slopes["qdd"][:, chosen]
        slopes = self._row_gradients(**inputs, J=J)
        by_q, by_qd, by_qdd = slopes["q"] + seeds.q, slopes["qd"] + seeds.qd, slopes["qdd"]
        by_J = slopes["J"] + seeds.J + by_qdd[:, :, None] * acceleration[:, None, :]
        C = self.regressor.loop_rows(moving.q)
        turned = np.swapaxes(C[:, :, part.dependent], 1, 2)
        bias = moving.qdd - np.einsum("nij,nj->ni", J, acceleration)
        pulls = -np.linalg.solve(turned, by_qdd[:, part.dependent, None])[..., 0]  # by the bias of the closures
        weights = np.zeros_like(C)
        weights[:, :, part.dependent] = pulls[:, :, None] * bias[:, None, part.dependent]
        # rates feel the bias, J feels rates: their parts before those of the rows of the closures
        first = self._loop_gradients(q=moving.q, qd=moving.qd, rows=weights, bias=pulls)
        by_qd = by_qd + first["qd"]
        by_J = by_J + by_qd[:, :, None] * rate[:, None, :]
        of_J = -np.linalg.solve(turned, by_J[:, part.dependent])
        weights[:, :, part.independent] = of_J
        weights[:, :, part.dependent] += of_J @ np.swapaxes(J[:, part.dependent], 1, 2)
        last = self._loop_gradients(q=moving.q, qd=moving.qd, rows=weights, bias=pulls)
        by_q = by_q + last["q"]
        position, rates, accelerations = (np.einsum("nij,ni->nj", J, slope) for slope in (by_q, by_qd, by_qdd))
        return position, rates, accelerations


def _along_rates(tree: Tree, q: Array, by_q: Array) -> Array:
    """Slopes along the rates, from those by coordinates, of which a joint may have more."""
    slopes = np.zeros(tree.n, dtype=object)
    for link in tree.links:
        for k in range(link.v.start, link.v.stop):
            unit = np.zeros(link.v.stop - link.v.start)
            unit[k - link.v.start] = 1.0
            changes = link.joint.position_rates(q[link.q], unit)
            slopes[k] = sum((change * slope for change, slope in zip(changes, by_q[link.q], strict=True)), 0.0)
    return slopes
