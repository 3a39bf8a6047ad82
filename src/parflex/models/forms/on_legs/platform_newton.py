"""From motors to the platform by Newton steps, for robots in leg form: the legs follow in closed form at every step.

Six unknowns (three in the plane) instead of all joints. Over any scalar, with a fixed number of steps, so that it can
be generated; the platform's rotation is a unit quaternion that the steps keep normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.leg_geometry import Angle
from parflex.models.forms.on_legs.leg_equations import motor_columns
from parflex.records import Record
from parflex.robot.legs import Leg, LegMotion, Legs, PlatformMotion, leg_motion, leg_values
from parflex.spatial.linear import solve
from parflex.spatial.rotations import quaternion_matrix, quaternion_product, rotation_about

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class PlatformPose(Record):
    """Position and, in space, quaternion; in the plane x, y and the angle."""

    position: Array
    turn: Array

    def world(self, planar: bool) -> tuple[Array, Array]:
        """Rotation matrix and position."""
        if planar:
            return rotation_about(2, self.turn[0]), np.array([*self.position, 0.0])
        return quaternion_matrix(self.turn), self.position

    def moved(self, step: Array, planar: bool) -> PlatformPose:
        """The pose after a small step in world axes."""
        if planar:
            return PlatformPose(self.position + step[:2], self.turn + step[2:])
        turn = quaternion_product(np.array([1.0, *(step[3:] / 2)]), self.turn)
        return PlatformPose(self.position + step[:3], turn / np.sqrt(turn @ turn))


def newton(form: Legs, pose: PlatformPose, motors: Array, angle: Angle, steps: int) -> PlatformPose:
    """The pose at which the motors have the given values, from one nearby."""
    for _ in range(steps):
        states = follow(form, pose, angle)
        missing = np.zeros(len(motors), dtype=object)
        for state, values in states:
            for own, motor in zip(state.leg.actuated, state.leg.motors, strict=True):
                missing[motor] = _missing(state.leg, own, values[own], motors[motor])
        columns = motor_columns(form, [state for state, _ in states])
        pose = pose.moved(solve(columns.T, missing), form.planar)
    return pose


def follow(
    form: Legs, pose: PlatformPose, angle: Angle, v: Array | None = None, w: Array | None = None
) -> list[tuple[LegMotion, list[Any]]]:
    """The legs at a pose, in a motion without acceleration of the platform, and their joint values."""
    R, p = pose.world(form.planar)
    zero = np.zeros(3)
    platform = PlatformMotion(R, p, zero if v is None else v, zero if w is None else w, -form.robot.tree.gravity, zero)
    result = []
    for leg in form.legs:
        values = leg_values(form, leg, platform, angle)
        result.append((leg_motion(form, leg, np.array(values, dtype=object), platform), values))
    return result


def _missing(leg: Leg, own: int, here: Any, desired: Any) -> Any:
    """What a motor still has to move; a small angle by its sine, so that no angle has to be found from it."""
    if not leg.tree.links[own].periodic:
        return desired - here
    return np.sin(desired) * np.cos(here) - np.cos(desired) * np.sin(here)


def motor_gaps(form: Legs, values: Sequence[Any], motors: Array) -> Array:
    """Return how far motors are from the given values, in metres; angles as chords, which vanish at no other angle."""
    length, gaps = form.robot.tree.length, []
    for leg, joints in zip(form.legs, values, strict=True):
        for own, motor in zip(leg.actuated, leg.motors, strict=True):
            link, here, desired = leg.tree.links[own], joints[own], motors[motor]
            if link.periodic:
                gaps += [length * (np.sin(desired) - np.sin(here)), length * (np.cos(desired) - np.cos(here))]
            else:
                unit = length if link.joint.rate_units[0] == "rad" else 1.0
                gaps.append(unit * (desired - here))
    return np.array(gaps)


def motor_motion(form: Legs, pose: PlatformPose, rates: Array, angle: Angle) -> tuple[PlatformMotion, list[Any]]:
    """The platform's pose and twist from the rates of the motors, and the joint values of the legs."""
    states = follow(form, pose, angle)
    columns = motor_columns(form, [state for state, _ in states])
    v, w = _split(solve(columns.T, rates), form.planar)
    R, p = pose.world(form.planar)
    return PlatformMotion(R, p, v, w, -form.robot.tree.gravity, np.zeros(3)), [values for _, values in states]


def motor_accelerations(form: Legs, platform: PlatformMotion, values: list[Any], desired: Array) -> tuple[Array, Array]:
    """Acceleration and angular acceleration of the platform for those of the motors."""
    pairs = zip(form.legs, values, strict=True)
    states = [leg_motion(form, leg, np.array(own, dtype=object), platform) for leg, own in pairs]
    drift = np.zeros(len(desired), dtype=object)
    for state in states:
        drift[list(state.leg.motors)] = state.qdd[list(state.leg.actuated)]
    return _split(solve(motor_columns(form, states).T, desired - drift), form.planar)


def _split(freedom: Array, planar: bool) -> tuple[Array, Array]:
    if planar:
        return np.array([freedom[0], freedom[1], 0.0]), np.array([0.0, 0.0, freedom[2]])
    return freedom[:3], freedom[3:]
