"""More motors than freedoms: which of the efforts that cause a motion are taken, theory (46) to (48).

A tau = g leaves internal efforts open, those with A tau = 0, which move nothing. Taken are the efforts of least
weighted norm, and on top of them the internal efforts of a stated preload; limits are kept by further internal efforts,
as small as can be. The same words are read here for functions, programs, laws and runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from parflex.checking import shown
from parflex.errors import InputError
from parflex.models.dynamics.bounded_efforts import nearest_outside, shortest_within
from parflex.models.motor_values import by_motor, one_effort
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.spatial.linear import least_norm, scalar_type

Array = np.ndarray
Weights = Mapping[str, float]
Preload = Mapping[str, float]
EffortLimit = float | Mapping[str, Any]
MISSED = 1e-9  # of the stated efforts: a preload that is met to rounding
OUT = 1e-9  # of an effort: nearer to its limit it stands there
IDLE = 1e-9  # of the largest share of a motor in internal efforts: a motor with less has none
SPARE_MOTORS = "there are more motors than degrees of freedom"
SPARE = f"{SPARE_MOTORS}: the efforts are those of least norm"
MIXED = "; newtons and newton metres weigh alike in it, which 'weights' changes"


@dataclass(frozen=True, eq=False, repr=False)
class Sharing(Record):
    """How motors share what a motion takes, in their order; numbers, or symbols of a program.

    `weights` of the squares of the efforts; `preload` are internal efforts of the motors `preloaded`.
    """

    names: tuple[str, ...] = ()
    weights: Array | None = None
    preloaded: tuple[int, ...] = ()
    preload: Array = field(default_factory=lambda: np.zeros(0))
    lower: Array | None = None
    upper: Array | None = None
    mixed: bool = False  # whether there are forces and torques among the efforts

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
    found = Sharing(
        tuple(motors),
        _weights(motors, weights) if weights else None,
        tuple(preloads),
        np.array([one_effort(motors[k], value, "preload") for k, value in preloads.items()]),
        *((lower, upper) if np.isfinite([*lower, *upper]).any() else (None, None)),
        mixed=len({_is_force(robot, k) for k in robot.actuated}) > 1,
    )
    for key, given in (("weights", weights), ("preload", preload)):
        if given and (spare_motors(robot) if spare is None else spare) <= 0:
            raise InputError(
                f"the robot has as many freedoms as motors, or more, so '{key}' has no effect",
                key=key,
                value=shown(given),
                hint=f"leave it out, or mark more joints as actuated than the {robot_freedoms(robot)} freedoms",
            )
    if len(found.preloaded) > (spare_motors(robot) if spare is None else spare) > 0:
        _refuse_many(found, spare_motors(robot) if spare is None else spare)
    return found


def robot_freedoms(robot: Robot) -> int:
    """Independent motions while no body deforms."""
    rigid = robot.locking(robot.deformations) if robot.deformations else robot
    return rigid.mobility.freedoms(len(rigid.free))


def spare_motors(robot: Robot) -> int:
    """How many motors there are beyond the freedoms of a robot with rigid bodies."""
    return len(robot.actuated) - robot_freedoms(robot)


def _refuse_many(sharing: Sharing, spare: int) -> None:
    names = ", ".join(f"'{sharing.names[k]}'" for k in sharing.preloaded)
    raise InputError(
        f"the preload names {len(sharing.preloaded)} motors ({names}), but {spare} of them determine the internal "
        "efforts",
        key="preload",
        value=names,
        hint=f"name {spare} at most",
    )


def _is_force(robot: Robot, rate: int) -> bool:
    return bool(np.any(robot.tree.links[robot.tree.link_of_rate[rate]].joint.S_v))


def _weights(motors: Sequence[str], given: Any) -> Array:
    found = np.ones(len(motors))
    for motor, value in by_motor(motors, given, "weights", "weight").items():
        fits = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value)) and value > 0
        if not fits:
            raise InputError(
                f"the weight of '{motors[motor]}' is not a positive number",
                key="weights",
                value=shown(value),
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
        pair = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) and len(value) == 2
        if not pair and not (_number(value) and value >= 0):
            raise InputError(
                f"the effort limit of '{motors[motor]}' must be positive or a pair of a lowest and a highest effort",
                key="effort_limit",
                value=shown(value),
                hint="give e.g. 20, or [5, 300] for a cable",
            )
        ends = (-np.inf, np.inf)
        low, high = (-value, value) if not pair else (e if v is None else v for v, e in zip(value, ends, strict=True))
        if not (_number(low) and _number(high) and low <= high and low < np.inf and high > -np.inf):
            raise InputError(
                f"the effort limits of '{motors[motor]}' are not a lowest and a highest effort",
                key="effort_limit",
                value=shown(value),
                hint="give them in this order, e.g. [5, 300]",
            )
        lower[motor], upper[motor] = float(low), float(high)
    return lower, upper


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not np.isnan(float(value))


# -- over any scalar -------------------------------------------------------------------------------------------------


def unbounded_efforts(A: Array, g: Array, sharing: Sharing) -> Array:
    """Efforts of least weighted norm with A tau = g, theory (46), and the preload, theory (47)."""
    tau = least_norm(A, g, sharing.weights)
    return tau + preload_efforts(A, sharing) if sharing.preloaded else tau


def preload_efforts(A: Array, sharing: Sharing) -> Array:
    """The internal efforts of least weighted norm of which some are as stated."""
    places = list(sharing.preloaded)
    stated: Array = np.eye(A.shape[1], dtype=scalar_type(A))[places]
    right = np.concatenate([np.zeros(len(A), dtype=scalar_type(sharing.preload)), sharing.preload])
    return least_norm(np.concatenate([A, stated]), right, sharing.weights)


# -- of numbers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SharedEfforts(Record):
    """Efforts of the motors, the internal part of them, and how they were chosen."""

    tau: Array
    internal: dict[str, Any] | None
    warnings: list[str]


def shared_efforts(A: Array, g: Array, sharing: Sharing) -> SharedEfforts:
    """Efforts with A tau = g, as asked for; refused where no internal effort meets what is asked."""
    motors, spare = A.shape[1], A.shape[1] - A.shape[0]
    if not motors:
        return SharedEfforts(np.zeros(0), None, [])
    least = least_norm(A, g, sharing.weights)
    if spare <= 0:
        refuse_outside(least, sharing)
        return SharedEfforts(least, None, [])
    N = internal_basis(A, sharing.weights)
    if len(sharing.preloaded) > spare:
        _refuse_many(sharing, spare)
    preload = _stated(N, sharing)
    tau, rest = least + preload, _left_open(N, sharing)
    if sharing.bounded:
        tau = tau + rest @ _within(tau, rest, N, sharing)
    return SharedEfforts(tau, _told(tau, least, preload, spare, sharing), [_said(sharing)])


def internal_basis(A: Array, weights: Array | None = None) -> Array:
    """Internal efforts, one column for each spare motor, with N^T W N = 1."""
    units = np.ones(A.shape[1]) if weights is None else 1 / np.sqrt(weights)
    return units[:, None] * np.linalg.svd(A * units)[2][len(A) :].T


def _stated(N: Array, sharing: Sharing) -> Array:
    """The internal efforts of the preload; a motor that cannot have its own is named."""
    places = list(sharing.preloaded)
    if not places:
        return np.zeros(len(N))
    size = np.linalg.norm(N, axis=1)
    for k in places:
        if size[k] <= IDLE * size.max():
            raise InputError(
                f"'{sharing.names[k]}' cannot be preloaded at this pose: the other motors cannot work against it",
                key="preload",
                value=sharing.names[k],
                hint="preload " + " or ".join(f"'{n}'" for n, s in zip(sharing.names, size, strict=True)
                                              if s > IDLE * size.max()),
            )  # fmt: skip
    z = np.linalg.lstsq(N[places], sharing.preload, rcond=IDLE)[0]
    missed = np.abs(N[places] @ z - sharing.preload)
    if missed.max() > MISSED * max(float(np.abs(sharing.preload).max()), 1e-300):
        k = places[int(missed.argmax())]
        raise InputError(
            f"no internal efforts are as the preload states: the nearest give '{sharing.names[k]}' "
            f"{float(N[k] @ z):.6g} instead of {float(sharing.preload[places.index(k)]):.6g}",
            key="preload",
            value=sharing.names[k],
            hint="name fewer motors, or efforts in the ratio of the internal ones",
        )
    return N @ z


def _left_open(N: Array, sharing: Sharing) -> Array:
    """Internal efforts that change nothing of the preload, with N^T W N = 1."""
    places = list(sharing.preloaded)
    if not places:
        return N
    _, values, Vt = np.linalg.svd(N[places], full_matrices=True)
    return N @ Vt[int(np.sum(values > IDLE * values.max(initial=0.0))) :].T


def refuse_outside(tau: Array, sharing: Sharing) -> None:
    """Raise where efforts that leave no choice are outside their limits."""
    _within(tau, np.zeros((len(tau), 0)), np.zeros((len(tau), 0)), sharing)


def _within(tau: Array, rest: Array, N: Array, sharing: Sharing) -> Array:
    """The shortest change that brings efforts within their limits; where there is none, the nearest is told."""
    if sharing.lower is None or sharing.upper is None:
        return np.zeros(rest.shape[1])
    z = shortest_within(rest, tau, sharing.lower, sharing.upper)
    if z is not None:
        return z
    nearest, outside = nearest_outside(rest, tau, sharing.lower, sharing.upper)
    k = int(outside.argmax())
    limit = sharing.lower[k] if nearest[k] < sharing.lower[k] else sharing.upper[k]
    kept = "with the stated preload " if sharing.preloaded else ""
    free = sharing.preloaded and shortest_within(N, tau, sharing.lower, sharing.upper) is not None
    raise InputError(
        f"{kept}no internal efforts keep the motors within their limits: at best '{sharing.names[k]}' has "
        f"{nearest[k]:.6g} for a limit of {limit:.6g}, {outside[k]:.4g} too much"
        if N.shape[1]
        else f"the effort of '{sharing.names[k]}' is {nearest[k]:.6g}, which leaves its limit of {limit:.6g} by "
        f"{outside[k]:.4g}, and without spare motors there is no choice",
        key="effort_limit",
        value=sharing.names[k],
        hint="change the preload, which contradicts limits that can be met" if free
        else "widen the limits, or ask for a slower motion, a smaller load or another pose",
    )  # fmt: skip


def _told(tau: Array, least: Array, preload: Array, spare: int, sharing: Sharing) -> dict[str, Any]:
    """What is said of the choice."""

    def table(values: Any) -> dict[str, float]:
        return {name: float(value) + 0.0 for name, value in zip(sharing.names, values, strict=True)}

    found: dict[str, Any] = {
        "spare_motors": spare,
        "chosen_by": _words(sharing),
        "efforts": table(tau - least),
        "weights": table(np.ones(len(tau)) if sharing.weights is None else sharing.weights),
    }
    if sharing.preloaded:
        found["preload"] = table(preload)
    if sharing.lower is not None and sharing.upper is not None:
        near = OUT * np.maximum(np.abs(tau), 1e-300)
        at = (tau - sharing.lower <= near) | (sharing.upper - tau <= near)
        found["limits"] = {
            name: [None if np.isinf(end) else float(end) for end in ends]
            for name, *ends in zip(sharing.names, sharing.lower, sharing.upper, strict=True)
        }
        found["at_limit"] = [name for name, there in zip(sharing.names, at, strict=True) if there]
    return found


def _words(sharing: Sharing) -> str:
    """How the efforts were chosen."""
    words = ["least weighted norm" if sharing.weights is not None else "least norm"]
    words += ["preload"] * bool(sharing.preloaded) + ["limits"] * sharing.bounded
    return ", ".join(words)


def _said(sharing: Sharing) -> str:
    norm = SPARE.replace("least norm", "least weighted norm") if sharing.weights is not None else SPARE
    more = [" and of the preload"] * bool(sharing.preloaded) + [", within their limits"] * sharing.bounded
    return norm + "".join(more) + (MIXED if sharing.mixed and sharing.weights is None else "")
