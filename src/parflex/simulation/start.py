"""Where a run starts: at rest and undeformed, in static equilibrium, or in a given state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.models.configuration import Configuration, configure
from parflex.models.equilibrium import equilibrium
from parflex.models.robot import Robot
from parflex.simulation.motions import MotorMotion
from parflex.simulation.pieces import Pieces
from parflex.simulation.problem import Problem

Array = np.ndarray
STARTS = ("rest", "equilibrium")


def start_state(
    problem: Problem, robot: Robot, start: Any, pose: Any, motion: MotorMotion | None, wrenches: Mapping[str, Pieces]
) -> tuple[Array, Array]:
    """All positions and the independent rates; `pose` is where a run without a motion starts."""
    rates = [robot.tree.rate_names.index(name) for name in problem.independent]
    if isinstance(start, Mapping):
        return _given(robot, start, rates)
    if start not in STARTS:
        hint = did_you_mean(str(start), STARTS)
        raise InputError(f"there is no start '{start}'", key="start", value=str(start), hint=hint)
    if motion is not None and pose is not None:
        raise InputError("the motion says where the run starts", key="pose", hint="leave out the pose or the motion")
    q = motion.start if motion is not None else configure(robot, pose).q
    if start == "equilibrium" and len(rates) > len(problem.robot.actuated):
        loads = {frame: pieces.at(0.0).tolist() for frame, pieces in wrenches.items()}
        terms = [term for term in ("springs",) if term not in problem.include]
        q = equilibrium(problem.robot, Configuration(problem.robot, q), loads=loads, without=terms).configuration.q
    return q, np.zeros(len(rates))


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
