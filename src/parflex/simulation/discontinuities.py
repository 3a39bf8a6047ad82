"""Times at which inputs jump: steps end there, and a jump in a motor velocity applies an impulse.

A row at such a time has the values just before the jump: position, velocity, acceleration, effort and energy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.forces.forces import impulse_of_motors
from parflex.integrators.driver import System
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.simulation.problem import Problem
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
SAME_TIME = 1e-9  # s, or of the run where that is shorter: jumps that are nearer to each other are one
NONE = np.zeros(0)


@dataclass(frozen=True, eq=False, repr=False)
class Discontinuity(Record):
    """A time at which inputs jump, the system with the inputs behind it, and the effect on the state.

    `cross` takes closed positions and their rates of change, and returns independent rates and the work of the impulse.
    """

    time: float
    behind: System
    cross: Callable[[Array, Array], tuple[Array, float]] | None


@dataclass(frozen=True)
class InputSegments:
    """The system at the start, the corners on the way, and the jumps of velocity among them, which runs fill in."""

    first: System
    corners: tuple[Discontinuity, ...]
    jumps: list[dict[str, Any]]


def jump_times(inputs: Trajectory, motors: int) -> Array:
    """Return when velocities or accelerations of driven motors, the first inputs, or values of other inputs jump."""
    motion, others = inputs.selected(range(motors)), inputs.selected(range(motors, inputs.channels))
    return np.concatenate([motion.jumps(1)[0], motion.jumps(2)[0], others.jumps(0)[0]])


def input_segments(
    problem: Problem, inputs: Trajectory, time: float, near: float, begin: float = 0.0, instants: Array = NONE
) -> InputSegments:
    """Return the inputs of a run from one time to another, divided at their jumps and at the `instants`.

    A run starts behind a jump at t = 0; one that continues from a later row crosses it.
    """
    system, names = problem.system(inputs), problem.robot.actuated_names
    count = len(names) if problem.driven else 0
    motion = inputs.selected(range(count))
    if count:
        _refuse_gaps(motion, names, time)
    times, sizes = motion.jumps(1)
    after = near if begin == 0 else begin - near
    same = SAME_TIME * min(1.0, time)
    corner_times = _apart(np.concatenate([jump_times(inputs, count), instants]), after, time - near, same)
    jumps: list[dict[str, Any]] = []
    corners = []
    for moment, end in pairwise([*corner_times, time]):
        here = np.abs(times - moment) <= same
        cross = _crossing(problem, motion, moment, sizes[here].sum(axis=0), jumps) if here.any() else None
        corners.append(Discontinuity(moment, _with(system, inputs.between(moment, end)), cross))
    first = _with(system, inputs.between(min(begin, after), corner_times[0] if corner_times else time))
    return InputSegments(first, tuple(corners), jumps)


def _with(system: System, inputs: Trajectory) -> System:
    return system._replace(
        breaks=np.ascontiguousarray(inputs.breaks), coefficients=np.ascontiguousarray(inputs.coefficients)
    )


def _apart(times: Array, first: float, last: float, same: float) -> list[float]:
    """Return sorted times in a range, coincident ones once."""
    distinct: list[float] = []
    for t in np.sort(times):
        if first < t < last and (not distinct or t - distinct[-1] > same):
            distinct.append(float(t))
    return distinct


def _refuse_gaps(motion: Trajectory, names: list[str], time: float) -> None:
    """Raise if a position of a motor jumps."""
    times, sizes = motion.jumps(0)
    for t, size in zip(times, sizes, strict=True):
        if 0 < t < time:
            k = int(np.argmax(np.abs(size)))
            text = f"the position of '{names[k]}' jumps by {size[k]:.3g} at t = {t:.6g} s"
            raise InputError(text, key="motion", value=names[k], hint="make the motion continuous")


def _crossing(
    problem: Problem, motion: Trajectory, time: float, size: Array, jumps: list[dict[str, Any]]
) -> Callable[[Array, Array], tuple[Array, float]]:
    """Return the effect of the motors' impulse at a time, which it appends to `jumps`."""
    tree = problem.robot.tree
    motors, behind = list(problem.robot.actuated), motion.value(time, 1, behind=True)

    def cross(q: Array, position_rates: Array) -> tuple[Array, float]:
        before = tree.rates(q, position_rates)
        after, push = impulse_of_motors(Configuration(problem.robot, q), before, behind)
        for k, name in enumerate(problem.robot.actuated_names):
            if size[k]:
                jumps.append({"time": time, "joint": name, "jump": float(size[k]), "impulse": float(push[k])})
        return after[problem.places], float(push @ (before + after)[motors] / 2)

    return cross
