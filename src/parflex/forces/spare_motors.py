"""Options of redundant motors: weights, preload and limits of their efforts.

Functions, programs, control laws and runs all read them here; `shared_efforts` computes the efforts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.motor_values import by_motor, motor_effort
from parflex.robot.robot import Robot

Array = np.ndarray
Weights = Mapping[str, float]
Preload = Mapping[str, float]
EffortLimit = float | Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Sharing(Record):
    """How motors share what a motion takes, in their order; numbers, or symbols of a program.

    `weights` of the squares of the efforts; `preload` are internal efforts of the motors `preloaded`, which have
    exactly these; `near` are efforts of all motors, to which the internal ones are the nearest.
    """

    names: tuple[str, ...] = ()
    weights: Array | None = None
    preloaded: tuple[int, ...] = ()
    preload: Array = field(default_factory=lambda: np.zeros(0))
    lower: Array | None = None
    upper: Array | None = None
    near: Array | None = None
    mixed: bool = False  # whether there are forces and torques among the efforts

    @property
    def preloads(self) -> bool:
        """Whether there is a preload."""
        return bool(self.preloaded) or self.near is not None

    def weights_alone(self) -> Sharing:
        """The same without preload and limits."""
        return Sharing(self.names, self.weights, mixed=self.mixed)

    @property
    def bounded(self) -> bool:
        """Whether there are limits."""
        return self.lower is not None


def read_sharing(
    robot: Robot, weights: Any = None, preload: Any = None, effort_limit: Any = None, spare: int | None = None
) -> Sharing:
    """What is asked of spare motors; `spare` is their number where it is not that of rigid bodies."""
    motors = robot.actuated_names
    lower, upper = read_limits(motors, effort_limit)
    preloads = by_motor(motors, preload, "preload", "preload")
    stated = np.array([motor_effort(motors[k], value, "preload") for k, value in preloads.items()])
    whole = bool(preloads) and len(preloads) == len(motors)
    limited = np.isfinite([*lower, *upper]).any()
    found = Sharing(
        tuple(motors),
        _weights(motors, weights) if weights else None,
        () if whole else tuple(preloads),
        np.zeros(0) if whole else stated,
        lower if limited else None,
        upper if limited else None,
        stated[np.argsort(list(preloads))] if whole else None,
        len({_is_force(robot, k) for k in robot.actuated}) > 1,
    )
    for key, given in (("weights", weights), ("preload", preload)):
        if given and (spare_motors(robot) if spare is None else spare) <= 0:
            raise InputError(
                f"the robot has as many freedoms as motors, or more, so '{key}' has no effect",
                key=key,
                value=short_text(given),
                hint=f"leave it out, or mark more joints as actuated than the {robot_freedoms(robot)} freedoms",
            )
    if len(found.preloaded) > (spare_motors(robot) if spare is None else spare) > 0:
        refuse_many(found, spare_motors(robot) if spare is None else spare)
    return found


def robot_freedoms(robot: Robot) -> int:
    """Independent motions while no body deforms."""
    rigid = robot.locking(robot.deformations) if robot.deformations else robot
    return rigid.mobility.freedoms(len(rigid.free))


def spare_motors(robot: Robot) -> int:
    """How many motors there are beyond the freedoms of a robot with rigid bodies."""
    return len(robot.actuated) - robot_freedoms(robot)


def refuse_many(sharing: Sharing, spare: int) -> None:
    """Raise where a preload names more motors than determine the internal efforts."""
    names = ", ".join(f"'{sharing.names[k]}'" for k in sharing.preloaded)
    raise InputError(
        f"the preload names {len(sharing.preloaded)} motors ({names}), but {spare} of them determine the internal "
        "efforts",
        key="preload",
        value=names,
        hint=f"name {spare} at most, or all motors for the internal efforts nearest to them",
    )


def _is_force(robot: Robot, rate: int) -> bool:
    return bool(np.any(robot.tree.links[robot.tree.link_of_rate[rate]].joint.S_v))


def _weights(motors: Sequence[str], given: Any) -> Array:
    found = np.ones(len(motors))
    for motor, value in by_motor(motors, given, "weights", "weight").items():
        fits = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf
        if not fits:
            raise InputError(
                f"the weight of '{motors[motor]}' is not a positive number",
                key="weights",
                value=short_text(value),
                hint="a larger weight means less effort; for a motor that gives none, limit its effort to 0",
            )
        found[motor] = float(value)
    return found


def read_limits(motors: Sequence[str], given: Any) -> tuple[Array, Array]:
    """Lowest and highest effort of each motor: one number for all, or by name a number or a pair of them."""
    lower, upper = np.full(len(motors), -np.inf), np.full(len(motors), np.inf)
    table = given if isinstance(given, Mapping) else dict.fromkeys(motors, given)
    for motor, value in by_motor(motors, table, "effort_limit", "effort limit").items():
        if value is None:
            continue
        pair = isinstance(value, list | tuple | np.ndarray) and np.shape(value) == (2,)
        if not pair and not (_number(value) and value >= 0):
            raise InputError(
                f"the effort limit of '{motors[motor]}' must be positive or a pair of a lowest and a highest effort",
                key="effort_limit",
                value=short_text(value),
                hint="give e.g. 20, or [5, 300] for a cable",
            )
        ends = (-np.inf, np.inf)
        low, high = (-value, value) if not pair else (e if v is None else v for v, e in zip(value, ends, strict=True))
        if not (_number(low) and _number(high) and low <= high and low < np.inf and high > -np.inf):
            raise InputError(
                f"the effort limits of '{motors[motor]}' are not a lowest and a highest effort",
                key="effort_limit",
                value=short_text(value),
                hint="give them in this order, e.g. [5, 300]",
            )
        lower[motor], upper[motor] = float(low), float(high)
    return lower, upper


def asked(value: Any) -> bool:
    """Whether something is given that is not an empty table."""
    return value is not None and not (isinstance(value, Mapping) and not value)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not np.isnan(float(value))
