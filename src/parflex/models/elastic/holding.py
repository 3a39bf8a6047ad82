"""The motors of a robot that vibrates or is loaded: locked, free, or held by servo springs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot
from parflex.tree.tree import Tree

Array = np.ndarray
Lock = str | Sequence[str]
Servo = float | Mapping[str, float]


def locked_robot(robot: Robot, lock: Lock = "actuators", but: Collection[int] = ()) -> Robot:
    """The robot with its motors, none, or named joints standing still; rates in `but` do not."""
    if lock == "none":
        return robot
    if lock == "actuators":
        return robot.locking(set(robot.actuated) - set(but))
    held: set[int] = set()
    for name in [lock] if isinstance(lock, str) else lock:
        links = [
            link
            for link in robot.tree.links
            if link.name in (name, f"{name}.1", f"{name}.2") and link.joint.rate_labels
        ]
        if not links:
            joints = [link.name for link in robot.tree.links if link.joint.rate_labels]
            raise InputError(f"there is no joint '{name}'", key="lock", value=name, hint=did_you_mean(name, joints))
        own = {k for link in links for k in range(link.v.start, link.v.stop)}
        if own & set(but):
            raise InputError(
                f"'{name}' cannot be locked and held by a servo", key="lock", value=name, hint="keep one of them"
            )
        held |= own
    return robot.locking(held)


def held_robot(
    robot: Robot, q: Array, lock: Lock = "actuators", servo: Servo | None = None, servo_damping: Servo | None = None
) -> Robot:
    """The robot with joints locked and motors held by servos, which pull towards the positions `q`.

    A servo is a spring and a damper in the row of its motor. A number is meant for all motors that are not locked
    by name; a motor with a servo is not locked by `lock="actuators"`.
    """
    stiffness = _by_motor(robot, servo, "servo", lock)
    damping = _by_motor(robot, servo_damping, "servo-damping", lock)
    locked = locked_robot(robot, lock, stiffness.keys() | damping.keys())
    if not stiffness and not damping:
        return locked
    tree = _with_servos(robot, q, stiffness, damping)
    closures = replace(robot.closures, tree=tree)
    # springs change neither the home nor how the robot can move
    return replace(locked, tree=tree, closures=closures, known_home=robot.home, known_mobility=locked.mobility)


def held_alike(robot: Robot, like: Robot, q: Array, lock: Lock = "actuators", servo: Servo | None = None) -> Robot:
    """A robot over any scalar that is held as another one, which moves alike, at positions `q` of any scalar."""
    stiffness = _by_motor(like, servo, "servo", lock)
    locked = locked_robot(robot, lock, stiffness.keys())
    tree = _with_servos(robot, q, stiffness, {})
    closures = replace(robot.closures, tree=tree)
    return replace(locked, tree=tree, closures=closures, known_home=like.home)


def _with_servos(robot: Robot, q: Array, stiffness: Mapping[int, float], damping: Mapping[int, float]) -> Tree:
    """The tree with springs and dampers in the rows of motors."""
    links = list(robot.tree.links)
    for k in sorted(stiffness.keys() | damping.keys()):
        j = robot.tree.link_of_rate[k]
        terms, position = links[j].terms, q[links[j].q.start]
        total = terms.stiffness + stiffness.get(k, 0.0)
        # two springs in parallel are one, which rests at the weighted mean
        pull = terms.stiffness * terms.rest + stiffness.get(k, 0.0) * position
        own = replace(
            terms, stiffness=total, rest=pull / total if total else 0.0, damper=terms.damper + damping.get(k, 0.0)
        )
        links[j] = replace(links[j], terms=own)
    return replace(robot.tree, links=tuple(links), known_length=robot.tree.length)


def _by_motor(robot: Robot, given: Servo | None, key: str, lock: Lock) -> dict[int, float]:
    """Values by rate of the motor; a number is meant for all."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        named = {lock} if isinstance(lock, str) else set(lock)
        given = {name: given for name in robot.actuated_names if name not in named}
        if not given:
            raise InputError("there is no motor to hold", key=key, hint="mark joints as actuated")
    result: dict[int, float] = {}
    for motor, value in by_motor(robot.actuated_names, given, key).items():
        k, word = robot.actuated[motor], robot.actuated_names[motor]
        if not robot.tree.links[robot.tree.link_of_rate[k]].joint.one_axis:
            raise InputError(
                f"'{word}' has more than one axis", key=key, value=word, hint="servos need joints with one axis"
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value) or value < 0:
            raise InputError(
                f"the value of '{word}' is not a finite non-negative number",
                key=key,
                value=value,
                hint="give N/m or N m/rad, e.g. 1e6",
            )
        result[k] = float(value)
    return result
