"""`inverse_dynamics` and `forward_dynamics` of states given as arrays, beside those given by names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from parflex.arrays.state_calls import answer, short_answer
from parflex.dynamics import dynamics
from parflex.dynamics.dynamics import Result
from parflex.errors import InputError
from parflex.forces.effort_allocation import EffortLimit, Preload, Weights, driven_cables, read_allocation
from parflex.forces.forces import Without, Wrench
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot, checked_terms
from parflex.robot.motor_values import Effort
from parflex.robot.robot import Robot

Array = np.ndarray
States = Sequence[float] | Array
Named = str | Mapping[str, float] | Configuration | None  # a pose that is no array
ByName = Mapping[str, float] | None


class Terms(TypedDict, total=False):
    """What acts in both models."""

    wrench: Wrench | None
    without: Without


class Allocation(Terms, total=False):
    """How redundant motors share the efforts, and whether limits are checked."""

    weights: Weights | None
    preload: Preload | None
    effort_limit: EffortLimit | None
    ignore_limits: bool


@overload
def inverse_dynamics(
    robot: Robot, pose: Named = None, velocity: ByName = None, acceleration: ByName = None, *,
    form: Literal["projected", "split"] = "split", reactions: bool = False, **allocation: Unpack[Allocation],
) -> Result: ...  # fmt: skip
@overload
def inverse_dynamics(
    robot: Robot, pose: States, velocity: States | None = None, acceleration: States | None = None, *,
    out: Array | None = None, **allocation: Unpack[Allocation],
) -> Array: ...  # fmt: skip
@overload
def inverse_dynamics(
    robot: Robot, *, q: States, qd: States | None = None, qdd: States | None = None, out: Array | None = None,
    **allocation: Unpack[Allocation],
) -> Array: ...  # fmt: skip
def inverse_dynamics(
    robot: Robot,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | States | None = None,
    acceleration: Mapping[str, float] | States | None = None,
    *,
    q: States | None = None,
    qd: States | None = None,
    qdd: States | None = None,
    wrench: Wrench | None = None,
    without: Without = (),
    form: Literal["projected", "split"] = "split",
    reactions: bool = False,
    weights: Weights | None = None,
    preload: Preload | None = None,
    effort_limit: EffortLimit | None = None,
    ignore_limits: bool = False,
    out: Array | None = None,
) -> Any:
    """Motor efforts in a motion, given by names or by arrays.

    By names: the motion of the end effector (world axes) or of joints. By arrays, `inverse_dynamics(robot, q, qd,
    qdd)`: closed positions, rates and accelerations; the first call of a robot compiles a program. With more motors
    than freedoms the efforts are those of least weighted norm, of a preload, within limits. What is in the robot file
    acts, except what `without` names. `form` has no effect on arrays.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or `q`; None is home (m, rad).
    velocity : Mapping[str, float] or Array, default None
        Velocities by name (frames in world axes), or `qd`; None: at rest (m/s, rad/s).
    acceleration : Mapping[str, float] or Array, default None
        Accelerations by name (frames in world axes), or `qdd`; None is zero (m/s^2, rad/s^2).
    q : Array, default None
        All positions, in the order of `robot.coordinates`; with a leading axis a batch (m, rad).
    qd : Array, default None
        Rates, in the order of `robot.rates` or of `robot.independent` (m/s, rad/s).
    qdd : Array, default None
        Accelerations, in the same order (m/s^2, rad/s^2).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz]; None is zero (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    form : {'split', 'projected'}, default "split"
        Theory (16), or theory (15) with all rows projected.
    reactions : bool, default False
        Also compute the wrench in every joint and closure.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare (N, N m).
    effort_limit : float or Mapping[str, float], default None
        Largest effort of all motors, or of each; a pair is a lowest and a highest effort (N, N m).
    ignore_limits : bool, default False
        Do not check the limits of the robot file.
    out : Array, default None
        Array that takes the efforts of a call by arrays.

    Returns
    -------
    Result or Array
        By names a `Result`: `efforts` by motor (N, N m), `internal`, reactions if asked for, warnings. By arrays the
        efforts in the order of `robot.motors`.

    Examples
    --------
    >>> parflex.inverse_dynamics(robot, "home", acceleration={"z": 1.0}).efforts
    """
    state = _read(robot, (pose, q), (velocity, qd), (acceleration, qdd), "qdd", reactions, out)
    if state is None:
        by_name: Any = (velocity, acceleration)
        return dynamics.inverse_dynamics(
            robot, pose, *by_name, wrench=wrench, without=without, form=form, reactions=reactions,
            weights=weights, preload=preload, effort_limit=effort_limit, ignore_limits=ignore_limits,
        )  # fmt: skip
    allocation = None
    if weights or preload or effort_limit is not None or driven_cables(robot):  # programs do not keep cables taut
        allocation = read_allocation(acting_robot(robot, checked_terms(without)), weights, preload, effort_limit)
    return answer(robot, "inverse", state, wrench, without, out, allocation, ignore_limits)


@overload
def forward_dynamics(
    robot: Robot, pose: Named = None, velocity: ByName = None, effort: Effort | None = None, *,
    reactions: bool = False, **terms: Unpack[Terms],
) -> Result: ...  # fmt: skip
@overload
def forward_dynamics(
    robot: Robot, pose: States, velocity: States | None = None, effort: Effort | None = None, *,
    out: Array | None = None, **terms: Unpack[Terms],
) -> Array: ...  # fmt: skip
@overload
def forward_dynamics(
    robot: Robot, *, q: States, qd: States | None = None, effort: Effort | None = None, out: Array | None = None,
    **terms: Unpack[Terms],
) -> Array: ...  # fmt: skip
def forward_dynamics(
    robot: Robot,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | States | None = None,
    effort: Effort | None = None,
    *,
    q: States | None = None,
    qd: States | None = None,
    wrench: Wrench | None = None,
    without: Without = (),
    reactions: bool = False,
    out: Array | None = None,
) -> Any:
    """Accelerations under efforts of the motors, given by names or by arrays.

    By arrays, `forward_dynamics(robot, q, qd, effort)`: closed positions, rates, and efforts in the order of
    `robot.motors`. What is in the robot file acts, except what `without` names.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or `q`; None is home (m, rad).
    velocity : Mapping[str, float] or Array, default None
        Velocities by name (frames in world axes), or `qd`; None: at rest (m/s, rad/s).
    effort : Effort, default None
        Efforts of the motors, by name or in their order; a motor not named has none (N, N m).
    q : Array, default None
        All positions, in the order of `robot.coordinates`; with a leading axis a batch (m, rad).
    qd : Array, default None
        Rates, in the order of `robot.rates` or of `robot.independent` (m/s, rad/s).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    reactions : bool, default False
        Also compute the wrench in every joint and closure.
    out : Array, default None
        Array that takes the accelerations of a call by arrays.

    Returns
    -------
    Result or Array
        By names a `Result`: all accelerations (m/s^2, rad/s^2), `acceleration_of(frame)`, reactions if asked for,
        warnings. By arrays the accelerations in the order of `robot.rates`.

    Examples
    --------
    >>> parflex.forward_dynamics(robot, "home", effort={"leg1.1": 2.0}).acceleration_of()
    """
    state = _read(robot, (pose, q), (velocity, qd), (effort, None), "effort", reactions, out)
    if state is None:
        named: Any = velocity
        return dynamics.forward_dynamics(
            robot, pose, named, effort, wrench=wrench, without=without, reactions=reactions
        )
    return answer(robot, "forward", state, wrench, without, out)


inverse_dynamics.short_way = partial(short_answer, "inverse")  # type: ignore[attr-defined]
forward_dynamics.short_way = partial(short_answer, "forward")  # type: ignore[attr-defined]


def _read(
    robot: Robot, poses: tuple[Any, Any], rates: tuple[Any, Any], last: tuple[Any, Any], key: str, reactions: bool,
    out: Any,
) -> tuple[Any, Any, Any] | None:  # fmt: skip
    """q, qd and qdd (or efforts) where a state is given by arrays; None where it is given by names."""
    pairs = (poses, ("pose", "q")), (rates, ("velocity", "qd")), (last, ("acceleration", key))
    for (by_name, by_array), names in pairs:
        if by_name is not None and by_array is not None:
            raise InputError(f"'{names[0]}' and '{names[1]}' mean the same", key=names[1], hint="keep one of them")
    q, qd, end = (by_array if by_name is None else by_name for (by_name, by_array), _ in pairs)
    motion = [qd, end] if key == "qdd" else [qd]
    arrays = any(_is_array(value) for value in motion) or any(pair[1] is not None for pair, _ in pairs)
    named = any(isinstance(value, Mapping) for value in motion)
    effort_by_name = key == "effort" and isinstance(end, Mapping)
    if arrays and named:
        raise InputError(
            "a motion is given by names and by arrays", key="qd", hint="give all of it as arrays, or by names"
        )
    if arrays and effort_by_name:
        raise InputError(
            "efforts are given by names and the state by arrays", key="effort",
            hint="give efforts in the order of robot.motors",
        )  # fmt: skip
    if named or effort_by_name or not (arrays or _is_array(q)):
        if out is not None:
            raise InputError(
                "'out' takes the answer of a state given by arrays", key="out", hint="give q, or leave it out"
            )
        return None
    if reactions:
        raise InputError(
            "a state given by arrays is answered by an array, without reactions", key="reactions",
            hint="give the velocity by names; the pose may be an array",
        )  # fmt: skip
    return q if _is_array(q) else configure(robot, q).q, qd, end


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, list, tuple))
