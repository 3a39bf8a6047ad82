"""Motions of redundant motors: as many motors as there are degrees of freedom drive, and all share the efforts.

Motions of the motors that contradict each other are refused. The driving motors are those that determine the motion
best along it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.errors import InputError
from parflex.forces.effort_allocation import EffortAllocation, actuation_redundancy, is_specified, read_allocation
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
FIT, GROSS = 1e-5, 0.1  # rad or typical lengths: splines through knots of a motion that fits are off by less
ROUNDS, STILL = 12, 1e-12  # of three Newton steps each, until positions stay
CHECKED_TIMES = 200  # at which motions are checked
DRIVEN = {"motors": "", "efforts": "", "platform": ", and here the platform follows it"}
MOST_SETS = 300  # of motors that are compared


@dataclass(frozen=True, eq=False, repr=False)
class RedundantDrive(Record):
    """A run in which some motors drive the robot and all of them share the efforts."""

    robot: Robot  # with all its motors
    driven: Robot  # with those that drive it
    allocation: EffortAllocation

    def efforts(self, t: Array, q: Array, tau: Array) -> Array:
        """Return efforts of all motors from those of the driving motors, row by row."""
        rows = []
        for time, positions, driving_efforts in zip(t, q, tau, strict=True):
            here = Configuration(self.robot, positions)
            g = here.J[list(self.driven.actuated)].T @ driving_efforts
            try:
                rows.append(self.allocation.solve(here.J_a.T, g).tau)
            except InputError as error:
                error.message = f"at t = {time:.6g} s {error.message}"
                raise
        return np.array(rows).reshape(len(t), len(self.robot.actuated))

    def told(self) -> dict[str, Any]:
        """Return how the efforts of the run were chosen; `preload` are the internal efforts at home."""
        near = () if self.allocation.near is None else self.allocation.near
        return {
            "spare_motors": actuation_redundancy(self.robot),
            "chosen_by": self.allocation.criteria("preload at home, elsewhere the nearest internal efforts"),
            "preload": {name: float(value) for name, value in zip(self.allocation.names, near, strict=False)},
        }

    def taut(self, q: Array, effort: Array, tensions: Array) -> Array:
        """Return efforts that keep driven cables taut, row by row, from efforts at which they have these tensions."""
        result = effort.copy()
        if self.allocation.has_preload:
            return result
        for row, (positions, tau, tension) in enumerate(zip(q, effort, tensions, strict=True)):
            here = Configuration(self.robot, positions)
            tightened = self.allocation.taut_efforts(here, here.J_a.T, tau, tension)
            result[row] = tau if tightened is None else tightened
        return result


def is_redundant(robot: Robot) -> bool:
    """Return whether motions of all motors of a robot depend on each other: those of flexible robots do not."""
    return not robot.tree.elastic and actuation_redundancy(robot) > 0


def positions_of_all_motors(robot: Robot, values: Array, near: Array) -> Array:
    """Return the closed positions, near others, that fit the positions of all motors best."""
    from parflex.formulations.base import ModelRequest
    from parflex.formulations.choice import choose  # which other runs do without
    from parflex.formulations.coordinates import MotorCoordinates

    motors = MotorCoordinates(choose(robot, ModelRequest("step")))
    q, sensed = np.array(near, dtype=float), np.asarray(values, dtype=float)
    for _ in range(ROUNDS):
        before, q = q, motors.fitted({"motor_position": sensed, "last": q})
        if np.abs(q - before).max() < STILL * robot.tree.length:
            break
    return q


def redundant_case(case: Any, words: Mapping[str, Any]) -> Any:
    """Return a run with the driving motors of a robot with redundant ones; `words` are refused on other robots."""
    robot = acting_robot(case.robot, case.without)
    if case.prescribed == "motors" and is_redundant(robot):
        spare = with_driving_motors(robot, case.motion, case.grid.rows * case.grid.out_step, **words)
        driving = [robot.actuated.index(k) for k in spare.driven.actuated]
        given = case.given.selected([*driving, *range(len(robot.actuated), case.given.channels)])
        return replace(case, robot=spare.driven, motion=case.motion.selected(driving), given=given, spare=spare)
    for key, value in words.items():
        if is_specified(value):
            text = f"'{key}' has an effect only if redundant motors follow a motion{DRIVEN[case.prescribed]}"
            hint = f"leave it out, or {'drive the motors' if case.prescribed == 'platform' else 'give a motion'}"
            raise InputError(text, key=key, value=short_text(value), hint=hint)
    return case


def with_driving_motors(
    robot: Robot, motion: Trajectory, end: float, weights: Any, preload: Any, effort_limit: Any
) -> RedundantDrive:
    """Return the motors that drive a motion, and the allocation of efforts; contradicting motions are refused."""
    allocation = read_allocation(robot, weights, preload, effort_limit)
    lossy = [row.name for row in robot.closures.constraints if getattr(row, "lossy", False)]
    if lossy:
        text = f"internal efforts change what the rigid coupling '{lossy[0]}' loses, so no motor can drive alone"
        hint = "leave out friction, or use a controller"
        raise InputError(text, key="efficiency", value=lossy[0], hint=hint)
    if allocation.has_preload:
        allocation = replace(allocation, preloaded=(), preload=np.zeros(0), near=allocation.home_preload(robot))
    motors, q, rows = list(robot.actuated), motion.start, []
    places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in motors]
    units = robot.tree.rate_units
    worst: tuple[float, float, int] = (0.0, 0.0, 0)  # by how much, when, and which motor
    for t in np.linspace(0.0, end, CHECKED_TIMES + 1):
        prescribed = motion.value(float(t))
        q = positions_of_all_motors(robot, prescribed, q)
        off = np.abs(q[places] - prescribed) / units[motors]
        worst = max(worst, (float(off.max()), float(t), int(off.argmax())))
        if not worst[0] <= GROSS:  # farther on, the nearest pose would be any
            break
        rows.append(Configuration(robot, q).J_a / units[motors][:, None])
    if not worst[0] <= FIT:
        share, t, k = worst
        unit = "m" if np.any(robot.tree.links[robot.tree.link_of_rate[motors[k]]].joint.S_v) else "rad"
        freedoms, off_by = len(motors) - actuation_redundancy(robot), f"{share * units[motors[k]]:.4g} {unit}"
        text = (
            f"the motions of the {len(motors)} motors do not fit the {freedoms} degrees of freedom: at t = {t:.4g} s "
        )
        text += f"the nearest pose leaves '{motion.names[k]}' off by {off_by}"
        hint = "give motions that the robot can have, e.g. along a path of its end effector"
        raise InputError(text, key="motion", value=motion.names[k], hint=hint)
    chosen = _best(np.array(rows))
    driven = replace(robot, actuated=tuple(motors[k] for k in chosen), known_home=robot.home)
    return RedundantDrive(robot, driven, allocation)


def _best(rows: Array) -> list[int]:
    """Return the set of motors whose rates determine the motion best at the worst of all times."""
    count, freedoms = rows.shape[1:]
    sets = [list(chosen) for _, chosen in zip(range(MOST_SETS), combinations(range(count), freedoms), strict=False)]
    return max(sets, key=lambda chosen: float(np.linalg.svd(rows[:, chosen], compute_uv=False)[:, -1].min()))
