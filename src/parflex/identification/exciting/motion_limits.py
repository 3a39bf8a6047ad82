"""Limits of an exciting motion: values over limits at all instants, and slopes of how far they are beyond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.checks import number
from parflex.errors import InputError, did_you_mean
from parflex.forces.spare_motors import read_limits
from parflex.identification.regressors import ClosedMotion, Regressor
from parflex.records import Record
from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot

Array = np.ndarray
AXES = ("x", "y", "z")
AMPLITUDE = 0.5  # rad or typical lengths: half a radian to each side, far from the ends of usual joints


@dataclass(frozen=True, eq=False, repr=False)
class MotionLimits(Record):
    """What a motion must keep: joints, motor rates, efforts, places, and its distance to singular poses."""

    joints: list[tuple[int, int, float, float]]  # coordinate, rate, lowest, highest
    speed: Array  # of the motors
    lower: Array  # efforts of the motors
    upper: Array
    box: Array  # 3 x 2
    distance: float
    home_spread: float  # of J at home

    def judged(self, regressor: Regressor, moving: ClosedMotion, efforts: Array, place: Array) -> dict[str, Any]:
        """Largest values, by kind, each with its limit."""
        robot = regressor.robot
        tree, motors = robot.tree, robot.actuated_names
        found: dict[str, Any] = {"position": {}, "speed": {}, "effort": {}, "workspace": {}}
        for q, v, low, high in self.joints:
            values = moving.q[:, q]
            found["position"][tree.rate_names[v]] = _told(values.min(), values.max(), low, high)
        rates = moving.qd[:, list(robot.actuated)]
        for k, name in enumerate(motors):
            found["speed"][name] = _told(-np.abs(rates[:, k]).max(), np.abs(rates[:, k]).max(), None, self.speed[k])
            found["effort"][name] = _told(efforts[:, k].min(), efforts[:, k].max(), self.lower[k], self.upper[k])
        for k, axis in enumerate(AXES[: 2 if tree.planar else 3]):
            found["workspace"][axis] = _told(place[:, k].min(), place[:, k].max(), *self.box[k])
        near = float(self.home_spread / self.spread(regressor, moving.J).max())
        found["distance"] = {"lowest": near, "limit": self.distance}
        return found

    def watched(self, regressor: Regressor, moving: ClosedMotion, efforts: Array, place: Array) -> tuple[Array, Array]:
        """Values (instants x values) and what each may reach at most: of both sides of all limits.

        Values with a limit on either side are measured from the middle.
        """
        values, bounds = [], []

        def both(one: Array, low: float, high: float) -> None:
            middle = (low + high) / 2 if np.isfinite(low) and np.isfinite(high) else 0.0
            values.extend([one - middle, middle - one])
            bounds.extend([high - middle, middle - low])

        for q, _, low, high in self.joints:
            both(moving.q[:, q], low, high)
        for k, rate in enumerate(regressor.robot.actuated):
            both(moving.qd[:, rate], -self.speed[k], self.speed[k])
            both(efforts[:, k], self.lower[k], self.upper[k])
        for k in range(2 if regressor.robot.tree.planar else 3):
            both(place[:, k], float(self.box[k, 0]), float(self.box[k, 1]))
        values.append(self.spread(regressor, moving.J))
        bounds.append(self.home_spread / self.distance if self.distance else np.inf)
        return np.stack(values, axis=1), np.array(bounds)

    def spread(self, regressor: Regressor, J: Array) -> Array:
        """Rates of all joints per rate of the motors, in their units: it grows without bound at singular poses."""
        return np.linalg.norm(in_units(regressor, J), axis=(1, 2))

    def slack(
        self, regressor: Regressor, moving: ClosedMotion, efforts: Array, place: Array
    ) -> tuple[float, dict[str, Array]]:
        """Sum of -log of what is left to all limits, as shares of them; and slopes by what moves.

        Infinite where one is passed.
        """
        tree, motors = regressor.robot.tree, list(regressor.robot.actuated)
        slopes = {
            "q": np.zeros_like(moving.qd), "qd": np.zeros_like(moving.qd), "J": np.zeros_like(moving.J),
            "efforts": np.zeros_like(efforts), "place": np.zeros_like(place),
        }  # fmt: skip
        total = 0.0

        def two_sided(values: Array, low: float, high: float, into: Array) -> None:
            nonlocal total
            width = (high - low) / 2 if np.isfinite(high - low) else max(abs(low if np.isfinite(low) else high), 1e-12)
            for limit, sign in ((high, 1.0), (low, -1.0)):
                if np.isfinite(limit):
                    total += _log(left := sign * (limit - values) / width)
                    into += sign / width / np.where(left > 0, left, 1.0)

        for q, v, low, high in self.joints:
            two_sided(moving.q[:, q], low, high, slopes["q"][:, v])
        for k, rate in enumerate(motors):
            two_sided(moving.qd[:, rate], -self.speed[k], self.speed[k], slopes["qd"][:, rate])
            two_sided(efforts[:, k], self.lower[k], self.upper[k], slopes["efforts"][:, k])
        for k in range(2 if tree.planar else 3):
            two_sided(place[:, k], float(self.box[k, 0]), float(self.box[k, 1]), slopes["place"][:, k])
        if self.distance:
            spread = self.spread(regressor, moving.J)
            most = self.home_spread / self.distance
            total += _log(left := 1 - spread / most)
            units = in_units(regressor, np.ones_like(moving.J[:1]))
            share = 1 / most / np.maximum(spread, 1e-300) / np.where(left > 0, left, 1.0)
            slopes["J"] += share[:, None, None] * moving.J * units**2
        return total, slopes


def _log(left: Array) -> float:
    return float(-np.log(left).sum()) if (left > 0).all() else np.inf


def in_units(regressor: Regressor, J: Array) -> Array:
    """Rates of all joints per rate of the independent ones, in their units, those of rotors behind their gears.

    Rotors add nothing: they move as what they drive.
    """
    gearing = regressor.robot.gearing
    found = J / gearing.units[:, None] * gearing.units[list(regressor.partition.independent)]
    return np.where(gearing.rotors[:, None], 0.0, found) if gearing.any else found


def _told(low: float, high: float, lowest: float | None, highest: float) -> dict[str, Any]:
    def bound(value: float | None) -> float | None:
        return None if value is None or not np.isfinite(value) else float(value)

    if lowest is None:
        return {"largest": float(high), "limit": bound(highest)}
    return {"lowest": float(low), "highest": float(high), "limits": [bound(lowest), bound(highest)]}


def read_motion_limits(
    regressor: Regressor, amplitude: float | None, velocity_limit: Any, effort_limit: Any,
    workspace: Mapping[str, Any] | None, distance: float,
) -> MotionLimits:  # fmt: skip
    """Return the requested limits: those of the file, and of motors an amplitude about home.

    Without an amplitude motors that have limits in the file keep them.
    """
    robot = regressor.robot
    tree, joints = robot.tree, []
    for link in tree.links:
        if not link.joint.one_axis:
            continue
        rate, home = link.v.start, float(robot.home[link.q.start])
        limits = None if link.limits is None else tuple(map(float, link.limits))
        if rate in robot.actuated:
            reach = (amplitude or AMPLITUDE) * float(robot.gearing.units[rate])
            low, high = (-np.inf, np.inf) if limits is None else limits
            if limits is None or amplitude is not None:
                low, high = max(low, home - reach), min(high, home + reach)
            joints.append((link.q.start, rate, low, high))
        elif limits is not None:
            joints.append((link.q.start, rate, *limits))
    motors = list(robot.actuated_names)
    speed = read_speeds(motors, velocity_limit)
    lower, upper = read_limits(motors, effort_limit)
    home_J = regressor.moved(robot.home[None], *np.zeros((2, 1, len(motors)))).J
    found = MotionLimits(joints, speed, lower, upper, _box(robot, workspace), distance, 1.0)
    spread = float(found.spread(regressor, home_J)[0])
    return MotionLimits(joints, speed, lower, upper, found.box, distance, spread)


def read_speeds(motors: Sequence[str], given: Any) -> Array:
    """The highest speed of each motor: one number for all, or by name."""
    found = np.full(len(motors), np.inf)
    table = given if isinstance(given, Mapping) else dict.fromkeys(motors, given)
    for motor, value in by_motor(motors, table, "velocity_limit", "speed limit").items():
        if value is not None:
            found[motor] = number(value, "velocity_limit", above=0.0, example=2)
    return found


def _box(robot: Robot, given: Mapping[str, Any] | None) -> Array:
    box = np.tile([-np.inf, np.inf], (3, 1))
    for axis, pair in (given or {}).items():
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
