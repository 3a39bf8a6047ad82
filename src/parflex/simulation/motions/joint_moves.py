"""Motors that move by themselves: moves and positions one after the other, splines, blends and waves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.polynomials import Polynomials, integral, joined
from parflex.simulation.motions.through_times import blended, splined
from parflex.simulation.motions.unit_laws import scaled, unit_law
from parflex.simulation.motions.waves import Waves, waves_of

Array = np.ndarray


def joint_moves(robot: Robot, motion: MotionTable, name: str) -> tuple[Polynomials, Array]:
    """Moves one after the other, each by the law, or positions that are gone through."""
    rows, start = positions_of(robot, motion, name)
    if motion.law_word == "spline":
        return splined(motion.times, rows), start
    if motion.law_word == "blend":
        return blended(motion.times, rows, motion.blend, f"motions.{name}"), start
    if motion.moves and motion.law_word == "trapezoid":
        return _filtered_trapezoids(motion, rows), start
    parts, begin = [], motion.times[0] if motion.times else 0.0
    for index, (first, second) in enumerate(pairwise(rows)):
        duration = motion.duration if motion.duration is not None else motion.times[index + 1] - motion.times[index]
        parts.append(scaled(unit_law(motion.law_word, duration, motion.ramp), begin, first, second - first))
        begin = motion.times[index + 1] if motion.times else begin + duration + motion.rest
    return joined(parts), start


def positions_of(robot: Robot, motion: MotionTable, name: str) -> tuple[Array, Array]:
    """Positions of the motors between which moves go, a row each, and all positions at the start."""
    names, given = robot.actuated_names, dict(motion.start)
    rows = []
    for index, table in enumerate(motion.joints):
        values = by_motor(names, table, f"motions.{name}.joints.{index}", "position")
        if index == 0:
            given |= {names[motor]: value for motor, value in values.items()}
            start, current = start_of(robot, given)
        for motor, value in values.items():
            current[motor] = value
        rows.append(current.copy())
    if motion.moves:
        start, current = start_of(robot, given)
        rows = [current.copy()]
        for index, move in enumerate(motion.moves):
            for motor, value in by_motor(names, move, f"motions.{name}.moves.{index}", "move").items():
                current[motor] += value
            rows.append(current.copy())
    return np.array(rows), start


def start_of(robot: Robot, given: dict[str, float]) -> tuple[Array, Array]:
    """All positions where joints are as given (home), and those of the motors."""
    start = robot.locking(robot.tree.elastic).assemble(given or None)
    return start, start[[robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]].copy()


def joint_waves(robot: Robot, motion: MotionTable, name: str) -> tuple[Waves, Array]:
    """Sines or a chirp of motors, and all positions at the start."""
    start, first = start_of(robot, dict(motion.start))
    names, tables = robot.actuated_names, {}
    for key in ("sines", "cosines", "chirp"):
        given = by_motor(names, getattr(motion, key), f"motions.{name}.{key}", "amplitude")
        tables[key] = {names[motor]: value for motor, value in given.items()}
    return waves_of(motion.model_copy(update=tables), names, first), start


def _filtered_trapezoids(motion: MotionTable, rows: Array) -> Polynomials:
    """Trapezoidal velocities, convolved with a box: their derivative is a step function, integrated back exactly."""
    assert motion.duration is not None
    total = motion.duration - motion.ramp  # so much time at full speed goes the whole way
    events: list[tuple[float, Array]] = []
    begin = 0.0
    for way in np.diff(rows, axis=0):
        events += [(begin + t, change * way / total) for t, change in _trapezoid(motion)]
        begin += motion.duration + motion.smoothing + motion.rest
    order = 1 + bool(motion.ramp) + bool(motion.smoothing)
    times = np.unique(np.round([t for t, _ in events], 12))
    steps = np.zeros((len(times), rows.shape[1]))
    for t, change in events:
        steps[int(np.argmin(np.abs(times - t)))] += change
    return integral(times, np.cumsum(steps, axis=0), rows[0], order)


def _trapezoid(motion: MotionTable) -> list[tuple[float, float]]:
    """Jumps of the highest derivative that is a step function, for a move at unit speed."""
    assert motion.duration is not None
    jumps = [(0.0, 1.0), (motion.duration - motion.ramp, -1.0)]
    for width in (motion.ramp, motion.smoothing):
        if width:
            jumps = [(t + shift, change * sign / width) for t, change in jumps for shift, sign in ((0, 1), (width, -1))]
    return jumps
