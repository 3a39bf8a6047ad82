"""Where a run starts: at rest and undeformed, in static equilibrium, held by the motors, or in a given state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.errors import InputError, SingularError, did_you_mean
from parflex.models.configuration import Configuration, configure
from parflex.models.driven_frame import check_system, held_frame, zero_dynamics
from parflex.models.equilibrium import equilibrium
from parflex.models.robot import Robot
from parflex.simulation.motions import MotorMotion
from parflex.simulation.pieces import Pieces
from parflex.simulation.poses import PoseMotion
from parflex.simulation.problem import Problem

Array = np.ndarray
STARTS = ("rest", "equilibrium", "held")


@dataclass(frozen=True)
class Started:
    """All positions and the independent rates at the start, what kind of start it is, and what is to be told of it."""

    q: Array
    rates: Array
    kind: str
    warnings: list[str] = field(default_factory=list)


def start_state(
    problem: Problem,
    robot: Robot,
    start: Any,
    pose: Any,
    motion: MotorMotion | PoseMotion | None,
    wrenches: Mapping[str, Pieces],
) -> Started:
    """Where a run starts; `pose` is where one without a motion does.

    By default a robot that bends starts in equilibrium: with motors locked where a motion leads them, else with the
    motors where they hold the end effector, if there is one for each of its ways to move. From the undeformed pose it
    would start with several times the static forces.
    """
    rates = [robot.tree.rate_names.index(name) for name in problem.independent]
    if isinstance(start, Mapping):
        return Started(*_given(robot, start, rates), "given")
    if start not in (None, *STARTS):
        hint = did_you_mean(str(start), STARTS)
        raise InputError(f"there is no start '{start}'", key="start", value=str(start), hint=hint)
    if motion is not None and pose is not None:
        raise InputError("the motion says where the run starts", key="pose", hint="leave out the pose or the motion")
    q = motion.start if motion is not None else configure(robot, pose).q
    still = np.zeros(len(rates))
    if start == "rest" or (start is None and not robot.tree.elastic):
        return Started(q, still, "rest")
    loads = {frame: pieces.at(0.0).tolist() for frame, pieces in wrenches.items()}
    here = Configuration(problem.robot, q)
    kind = start or _usual(problem)
    if kind == "equilibrium" and len(rates) <= len(problem.robot.actuated):
        return Started(q, still, "rest")
    try:
        if kind == "held":
            if problem.lead != "platform":
                held = held_frame(problem.robot, here, loads=loads)
                return Started(held.configuration.q, still, kind)
            led = zero_dynamics(problem.robot, here, loads=loads)
            near = check_system(led.held.configuration, led.held.frame)
            return Started(led.held.configuration.q, still, kind, [*near, *led.warnings()])
        found = equilibrium(problem.robot, here, loads=loads).configuration.q
        return Started(found, still, kind)
    except SingularError as error:
        if start is not None:
            raise
        return Started(q, still, "rest", [f"the run starts undeformed: {error.message}"])


def _usual(problem: Problem) -> str:
    """How a robot that bends starts if nothing is said."""
    ways = 3 if problem.robot.tree.planar else 6
    held = problem.lead == "platform" or (problem.lead == "efforts" and len(problem.robot.actuated) == ways)
    return "held" if held else "equilibrium"


def _given(robot: Robot, start: Mapping[str, Any], rates: list[int]) -> tuple[Array, Array]:
    """A pose and velocities in the words of poses, or all positions `q` and all rates `qd` of the tree."""
    for word in start:
        if word not in ("pose", "velocity", "q", "qd"):
            hint = did_you_mean(str(word), ("pose", "velocity", "q", "qd"))
            raise InputError(f"unknown key '{word}'", key="start", value=str(word), hint=hint)
    for word, size in (("q", robot.tree.nq), ("qd", robot.tree.n)):
        if word in start and np.shape(start[word]) != (size,):
            raise InputError(
                f"'{word}' has not as many numbers as the robot has coordinates",
                key="start",
                value=str(np.shape(start[word])),
                hint=f"give {size}, or a pose and velocities",
            )
    if "q" in start:
        here = Configuration(robot, np.asarray(start["q"], dtype=float))
    else:
        here = configure(robot, start.get("pose"))
    qd = np.asarray(start["qd"], dtype=float) if "qd" in start else here.rates(start.get("velocity"))
    return here.q, qd[rates]
