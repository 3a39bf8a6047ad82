"""Instants of a motion of the file with derivatives by its numbers; motions whose changes are not followed are refused.

A path of the end effector stays fixed and the motors follow: each instant is on the path itself and not on quintics
through knots. Prescribed motors keep their motion relative to the place where it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.closure.targets import Target, with_fixed_rows
from parflex.design.design_state import DesignState, pose_conditions, pose_slopes
from parflex.errors import InputError, did_you_mean
from parflex.parameters.design_numbers import constants_of
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.robot.motor_values import by_motor
from parflex.robot.pose_input import read_pose
from parflex.robot.robot import Robot

Array = np.ndarray
Joints = tuple[Array, Array | None, Array | None]  # positions, rates, accelerations
INDEPENDENT = 1e-8  # of the largest singular value
NEAR = 0.03  # of the motion: from a known instant that is nearer, loops close in the same assembly
WORDS = ("x", "y", "z", "wx", "wy", "wz")
STAYS = 1e-7  # of the robot's length per relative change of a key: rounding of slopes of positions


class MotorState(DesignState):
    """A design whose motors stand at given positions, which move with the start of their motion alone."""

    def __init__(self, state: DesignState, q: Array, case: Any, started: Array) -> None:
        super().__init__(state.robot, Configuration(state.robot, q), state.keys, case, state.design)
        self.started = started

    @cached_property
    def steps(self) -> Array:
        """Rates of all coordinates per change of each key."""
        robot, tree = self.robot, self.robot.tree
        names, links = robot.actuated_names, [tree.links[tree.link_of_rate[k]] for k in robot.actuated]
        values = {name: float(self.here.q[link.q.start]) for name, link in zip(names, links, strict=True)}
        target = with_fixed_rows(tree, read_pose(tree, values, "pose", None, self.here.q))
        found = pose_slopes(robot, self.twin, self.here.q, target, self.keys)
        rigid = Configuration(robot.locking(robot.deformations), self.here.q)
        for k in np.flatnonzero(np.abs(self.started).max(axis=0, initial=0.0)):
            found[:, k] += rigid.rates(dict(zip(names, self.started[:, k].tolist(), strict=True)))
        return found


class MotionInstants:
    """A motion of the file by its name; `state_at` gives the design at an instant."""

    def __init__(self, state: DesignState, name: str, response: str) -> None:
        self.state, self.robot, self.table = state, state.robot, known_motion(state.robot, name, response)
        if state.case.velocity or state.case.acceleration:
            raise InputError(
                f"the motion '{name}' says how the robot moves",
                key="velocity",
                value=response,
                hint="leave velocity and acceleration out",
            )
        if state.keys:
            refuse_without_slopes(state, name, response)
        self.planned, self._known = _planned(self.robot, name, float(self.table.duration or 1.0))
        self.length = float(self.planned.period or self.planned.end)
        if self.planned.planned is not None or not np.isfinite(self.length) or self.length <= 0:
            raise InputError(
                f"the motion '{name}' has no end",
                key="response",
                value=response,
                hint="name one that ends" if self.table.circle is None else "add turns = 1 to its circle",
            )
        self.name = name

    @cached_property
    def course(self) -> Any:
        """The frame in time; None where motors are told what to do."""
        if self.by_motors or self.table.law_name == "time-optimal":
            return None
        from parflex.trajectories.frames import frame_trajectory

        return frame_trajectory(self.robot, self.name, self.table)

    @cached_property
    def breaks(self) -> Array:
        """Times between which the motion is smooth, from 0 to its end."""
        if self.course is not None:
            inside = self.course.breaks
        elif self.planned.waves is not None:
            inside = self.planned.waves.smooth_until(self.length)
        elif self.table.kind in ("sines", "chirp"):  # quintics of them, which repeat, meet smoothly enough
            inside = np.array([self.table.ramp, (self.table.duration or self.length) - self.table.ramp])
        else:
            inside = self.planned.breaks
        least = 1e-9 * self.length
        return np.array([0.0, *inside[(inside > least) & (inside < self.length - least)], self.length])

    @cached_property
    def by_motors(self) -> bool:
        """Whether motors are told what to do, and not a frame."""
        return self.table.kind in ("moves", "joints") or (
            self.table.kind in ("sines", "chirp") and not self.table.frame
        )

    @cached_property
    def started(self) -> Array:
        """Changes of the positions at which motors start, motors x keys: what is asked of the start is kept."""
        robot, given = self.robot, start_pose(self.robot, self.table)
        q = robot.locking(robot.deformations).assemble(given or None)
        target = pose_conditions(robot, given or None)
        return pose_slopes(robot, self.state.twin, q, target, self.state.keys)[list(robot.actuated)]

    def motors_at(self, t: float, behind: bool = False) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations of the motors; `behind` a jump, or before it."""
        if self.planned.waves is not None:
            return self.planned.at(t)
        value = self.planned.value
        return value(t), value(t, 1, behind), value(t, 2, behind)

    def joints(self, t: float) -> Joints:
        """All positions, bodies undeformed, found from those at the nearest instant, and rates and accelerations.

        These are missing where they are those of the motors, or where the path leaves motions to the motors.
        """
        if t not in self._known:
            self._known[t] = self._found(t, self._nearest(t))
        return self._known[t]

    def _nearest(self, t: float) -> Array:
        """Positions at the nearest instant; of one that is far, by the motors as they are planned."""
        nearest = min(self._known, key=lambda other: abs(other - t), default=0.0)
        near = self._known[nearest][0] if self._known else self.planned.start
        return near if abs(nearest - t) <= NEAR * self.length else self._by_motors(t, near)

    def _by_motors(self, t: float, near: Array) -> Array:
        values = dict(zip(self.planned.names, self.motors_at(t)[0].tolist(), strict=True))
        return self.robot.assemble(values, near=near)

    def _found(self, t: float, near: Array) -> Joints:
        if self.course is None:
            return self._by_motors(t, near), None, None
        from parflex.trajectories.follow import joints_of_pose

        rigid = self.robot.locking(self.robot.deformations)
        course = self.course
        here, rates, accelerations = joints_of_pose(rigid, course.frame, course.at(t), near, course.driven)
        if np.isnan(accelerations).any():
            return self._by_motors(t, near), None, None
        return here.q, rates, accelerations

    def state_at(self, t: float, behind: bool = False, plain: bool = False) -> DesignState:
        """The design at an instant, moving; `plain` without slopes."""
        (q, qd, qdd), (_, speed, push) = self.joints(t), self.motors_at(t, behind)
        rates, accelerations = (dict(zip(self.planned.names, row.tolist(), strict=True)) for row in (speed, push))
        moving = None if qd is None or qdd is None else (qd, qdd)
        if not self.by_motors and not plain:
            here = Configuration(self.robot.locking(self.robot.deformations), q)
            if qd is None or qdd is None:
                qd = here.rates(rates)
                qdd = here.accelerations(accelerations, qd, rates)
            words = end_effector_motion(here, qd, qdd)
            moving, (rates, accelerations) = (None, (rates, accelerations)) if words is None else (moving, words)
        given = replace(self.state.case, velocity=rates, acceleration=accelerations)
        keys = () if plain else self.state.keys
        if self.by_motors and keys:
            return MotorState(self.state, q, given, self.started)
        design = None if plain else self.state.design
        found = DesignState(self.robot, Configuration(self.robot, q), keys, given, design)
        found.moving = moving
        return found


def _planned(robot: Robot, name: str, time: float) -> tuple[Any, dict[float, Joints]]:
    """Motors in the motion, and instants that are known of it, once for all responses of a robot."""
    from parflex.trajectories.motions import from_table  # which plans, and is not needed elsewhere

    key = "motion", name, time
    if key not in robot.cache:
        robot.cache[key] = from_table(robot, name, robot.description.motions[name], time), {}
    return robot.cache[key]


def known_motion(robot: Robot, name: str, response: str) -> Any:
    """The table of a motion of the file."""
    motions = robot.description.motions
    if name not in motions:
        raise InputError(
            f"the robot has no motion '{name}'" if name else "no motion is named",
            key="response",
            value=response,
            hint=did_you_mean(name, motions) if motions else "add [motions.NAME] to its file",
        )
    return motions[name]


def end_effector_motion(here: Configuration, qd: Array, qdd: Array) -> tuple[dict[str, float], dict[str, float]] | None:
    """What the end effector does, by as many components as the robot has freedoms; None if it leaves some to motors."""
    tree = here.robot.tree
    rows, frame = here.frame_rows(tree.end_effector), tree.end_effector
    chosen: list[int] = []
    size = np.linalg.norm(rows @ here.J) or 1.0
    for k in (0, 1, 5) if tree.planar else range(6):
        block = rows[[*chosen, k]] @ here.J
        if np.linalg.svd(block, compute_uv=False)[-1] > INDEPENDENT * size and len(block) <= here.J.shape[1]:
            chosen.append(k)
    if len(chosen) < here.J.shape[1]:
        return None
    twist, pushed = rows @ qd, here.frame_acceleration(frame, motion(tree, here.at, qd, qdd))
    velocity, acceleration = ({WORDS[k]: float(part[k]) for k in chosen} for part in (twist, pushed))
    return velocity, acceleration


def start_pose(robot: Robot, table: Any) -> dict[str, float]:
    """What a motion of motors asks of its start; home where that is nothing."""
    given = dict(table.start)
    if table.joints:
        names = robot.actuated_names
        given |= {names[k]: value for k, value in by_motor(names, table.joints[0], "motion", "position").items()}
    return given


def refuse_without_slopes(state: DesignState, name: str, response: str) -> None:
    """Refuse a motion that changes with the keys in a way that is not followed."""
    table = state.robot.description.motions[name]
    key = _key_in_motion(state.robot, name, state.keys)
    if key is not None:
        raise _refusal(f"the motion '{name}' itself follows from '{key}'", response, "name another key")
    if table.law_name == "time-optimal":
        raise _refusal(
            f"the time-optimal motion '{name}' takes another time in each design",
            response,
            "name a motion in given time",
        )
    if table.kind not in ("moves", "joints") and table.frame and not _is_end_effector(state.twin, table.frame):
        raise _refusal(
            f"the motion '{name}' is that of '{table.frame}', to which the end effector may move", response,
            "let the end effector go along it",
        )  # fmt: skip
    if table.kind == "joints":
        _check_joints(state, name, response)
    elif table.kind == "poses":
        for pose in table.poses:
            _check_place(state, pose, name, response)
    elif table.kind in ("sines", "chirp") and table.frame:
        _check_place(state, dict(table.start) or None, name, response)
    elif table.along_path:
        _check_place(state, None, name, response, path=True)


def _is_end_effector(twin: Robot, frame: str) -> bool:
    """Whether a frame is where the end effector is, and stays there as keys change: slopes of places are compared."""
    one, two = (twin.tree.places[name] for name in (frame, twin.tree.end_effector))
    if one.link != two.link or one.inner is not two.inner:
        return False
    differences = np.concatenate([np.ravel(one.position - two.position), np.ravel(one.rotation - two.rotation)])
    return not any(map(bool, differences))  # a number with slopes is false where they vanish too


def _check_joints(state: DesignState, name: str, response: str) -> None:
    """Motors that the first position leaves open start where home puts them: those that go on must not."""
    robot = state.robot
    table = robot.description.motions[name]
    given = start_pose(robot, table)
    q = robot.locking(robot.deformations).assemble(given or None)
    moved = pose_slopes(robot, state.twin, q, pose_conditions(robot, given or None), state.keys)[list(robot.actuated)]
    later = {motor for one in table.joints[1:] for motor in by_motor(robot.actuated_names, one, "motion", "position")}
    if any(np.abs(moved[motor]).max(initial=0.0) > STAYS for motor in later):
        raise _refusal(
            f"the motion '{name}' starts where home puts motors, which changes with the keys",
            response, "name all motors in the first of its positions",
        )  # fmt: skip


def _check_place(state: DesignState, given: Any, name: str, response: str, path: bool = False) -> None:
    """Refuse a motion through a pose whose end effector moves with the keys; paths take its turn alone."""
    robot = state.robot
    rigid = robot.locking(robot.deformations)
    here = Configuration(rigid, rigid.assemble(given))
    rows = here.frame_rows(robot.tree.end_effector)
    if path:
        block = rows[:3] @ here.J
        sizes = np.linalg.svd(block, compute_uv=False)
        if (sizes > INDEPENDENT * max(float(sizes[0]), 1e-300)).sum() >= here.J.shape[1]:
            return  # places decide over turns
    asked, stays = (
        pose_slopes(robot, state.twin, here.q, target, state.keys)
        for target in (pose_conditions(robot, given), Target())
    )
    moved = rows @ (asked - stays) / np.repeat([robot.tree.length, 1.0], 3)[:, None]
    if np.abs(moved[3:] if path else moved).max(initial=0.0) > STAYS:
        raise _refusal(
            f"the motion '{name}' goes through a pose that is given by joints, so that it changes with the keys",
            response, "give the pose by the end effector, and turns of a path by 'orientation'",
        )  # fmt: skip


def _key_in_motion(robot: Robot, name: str, keys: Sequence[str]) -> str | None:
    """A key that the table of a motion is computed from, through constants."""
    assert robot.written is not None
    used = {f"constants.{word}" for word in constants_of(robot, robot.written.table.get("motions", {}).get(name, {}))}
    own = (f"motions.{name}", f"motions.{name}.")
    return next((key for key in keys if key == own[0] or key.startswith(own[1]) or key in used), None)


def _refusal(what: str, response: str, hint: str) -> InputError:
    return InputError(f"{what}, so that '{response}' has no slopes", key="keys", value=response, hint=hint)
