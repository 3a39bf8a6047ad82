"""Paths by a parameter s: the whole rigid robot with its first and second derivatives by s, exact at each place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.paths import arcs_of, frame_along
from parflex.simulation.inputs.polynomials import Polynomials, hermite
from parflex.simulation.inputs.poses import Move, asked_turn, places_of
from parflex.simulation.inputs.prescribed_frames import FrameMotion, frame_components, joints_of_pose
from parflex.simulation.motions.joint_moves import positions_of
from parflex.spatial.rotations import vector_from_rotation

Array = np.ndarray
Moving = tuple[Configuration, Array, Array]  # the robot, its rates by s, and their derivatives by s
SUDDEN = 1e-3  # of the largest rate: quintics between every other place may be so far off in the middle
STILL = 1e-10  # of the largest rate: less is rounding
BISECTED = 30  # times
NEAR = 1e-4  # of the length: to both sides, for derivatives of rates that no rule gives


@dataclass(frozen=True, eq=False, repr=False)
class PathPart(Record):
    """From rest to rest: s goes from 0 to `length`, in m along a path of a frame, else as a share of a move."""

    name: str
    length: float
    at: Callable[[float, Array], Moving]
    unit: str


@dataclass(frozen=True, eq=False, repr=False)
class PathPlaces(Record):
    """The robot at places along a part, and its motors as quintics of s."""

    s: Array
    robots: tuple[Configuration, ...]
    rates: Array  # (place, rate)
    bends: Array
    motors: Polynomials
    slopes: Array  # first and second derivatives of the motors, (2, place, motor)


def parts_of(robot: Robot, motion: MotionTable, name: str) -> tuple[list[PathPart], Array]:
    """The parts of a motion, with rest between them, and all positions at the start."""
    rigid = robot.locking(robot.tree.elastic)
    if motion.along_path:
        return _arcs(rigid, motion, name), rigid.home
    if motion.poses:
        return _turns(rigid, motion, name)
    rows, start = positions_of(robot, motion, name)
    return [_joint_line(rigid, a, b, name) for a, b in pairwise(rows)], start


def _joint_line(rigid: Robot, first: Array, second: Array, name: str) -> PathPart:
    way, names = second - first, rigid.actuated_names
    if not way.any():
        raise InputError("a move goes nowhere", key=f"motions.{name}", hint="remove it, or use 'rest'")

    def at(s: float, near: Array) -> Moving:
        here = _placed(rigid, dict(zip(names, map(float, first + s * way), strict=True)), near)
        velocity = dict(zip(names, map(float, way), strict=True))
        qd = here.rates(velocity)
        return here, qd, here.accelerations(dict.fromkeys(names, 0.0), qd, velocity)

    return PathPart(name, 1.0, at, "")


def _placed(rigid: Robot, words: dict[str, float], near: Array) -> Configuration:
    q = rigid.assemble(words, near).copy()
    angles = [link.q.start for link in rigid.tree.links if link.periodic]
    q[angles] += 2 * np.pi * np.round((near[angles] - q[angles]) / (2 * np.pi))
    return Configuration(rigid, q)


def _arcs(rigid: Robot, motion: MotionTable, name: str) -> list[PathPart]:
    frame, turns = motion.frame or rigid.tree.end_effector, 1.0
    if motion.circle is not None:
        if motion.circle.turns is None:
            raise InputError(
                "the law 'time-optimal' needs an end", key=f"motions.{name}.circle.turns", hint="add turns = 1"
            )
        turns = motion.circle.turns

    def part(arc: Any) -> PathPart:
        desired, driven = frame_along(rigid, frame, arc, name)

        def at(s: float, near: Array) -> Moving:
            return joints_of_pose(rigid, frame, desired(s), near, driven)

        return PathPart(name, arc.length * turns, at, "m")

    return [part(arc) for arc in arcs_of(motion, name)]


def _turns(rigid: Robot, motion: MotionTable, name: str) -> tuple[list[PathPart], Array]:
    """Between poses: position and turn go the same share s of their ways."""
    frame, driven = rigid.tree.end_effector, frame_components(rigid, rigid.tree.end_effector)
    even = Polynomials(np.zeros(1), np.array([[[0.0], [1.0], [0.0]]]))
    places, turn = places_of(rigid, motion, name), asked_turn(rigid, motion)

    def part(one: Any, two: Any) -> PathPart:
        (_, p, R), (_, p_next, R_next) = one, two
        move = Move(0.0, 1.0, p, R, p_next - p, vector_from_rotation(R.T @ R_next), even)

        def at(s: float, near: Array) -> Moving:
            return joints_of_pose(rigid, frame, FrameMotion(*move.at(s), turn), near, driven)

        return PathPart(name, 1.0, at, "")

    return [part(one, two) for one, two in pairwise(places)], places[0][0]


def places_along(rigid: Robot, part: PathPart, s: Array, near: Array) -> PathPlaces:
    """The robot at places in order; refused where the motors would move too suddenly between them."""
    robots, rates, bends = [], [], []
    for place in s:
        here, q1, q2 = _exactly(part, float(place), near)
        if np.isnan(q2).any():
            q2 = _difference(part, float(place), here.q)
        robots.append(here)
        rates.append(q1)
        bends.append(q2)
        near = here.q
    own = list(rigid.actuated)
    positions = np.array(
        [here.q[[rigid.tree.links[rigid.tree.link_of_rate[k]].q.start for k in own]] for here in robots]
    )
    slopes = np.array([np.array(rates)[:, own], np.array(bends)[:, own]])
    _refuse_sudden(part, s, positions, slopes, rigid.tree.rate_units[own])
    return PathPlaces(s, tuple(robots), np.array(rates), np.array(bends), hermite(s, positions, *slopes), slopes)


def reversals(rigid: Robot, part: PathPart, near: Array, s: Array) -> list[float]:
    """PathPlaces at which a joint turns back whose friction knows directions, found by bisection between given ones."""
    links = [link for link in rigid.tree.links if link.v.stop > link.v.start]
    rubbing = [link.v.start for link in links if link.terms.coulomb or link.terms.more_viscous]
    if not rubbing:
        return []
    rates, positions = [], []
    for place in s:
        here, q1, _ = _exactly(part, float(place), near)
        rates.append(q1[rubbing])
        positions.append(near := here.q)
    found = []
    values = np.array(rates)
    for k, j in zip(*np.nonzero(values[:-1] * values[1:] < 0), strict=True):
        low, high, sign = float(s[k]), float(s[k + 1]), np.sign(values[k, j])
        for _ in range(BISECTED):
            middle = (low + high) / 2
            _, q1, _ = _exactly(part, middle, positions[k])
            low, high = (middle, high) if q1[rubbing[j]] * sign > 0 else (low, middle)
        found.append((low + high) / 2)
    return sorted(found)


def _exactly(part: PathPart, s: float, near: Array) -> Moving:
    """The robot at a place; joints whose rates are rounding rest, without Coulomb friction of either sign."""
    try:
        here, q1, q2 = part.at(s, near)
        here.refuse_undefined_actuation()
        shares = np.abs(q1 / here.robot.tree.rate_units)
        return here, np.where(shares > STILL * shares.max(initial=0.0), q1, 0.0), q2
    except ParflexError as error:
        error.message = f"the path stops at s = {s:.4g} of {part.length:.4g}: {error.message}"
        error.key = f"motions.{part.name}"
        raise


def _difference(part: PathPart, s: float, near: Array) -> Array:
    h = NEAR * part.length
    low, high = max(0.0, s - h), min(part.length, s + h)
    return (_exactly(part, high, near)[1] - _exactly(part, low, near)[1]) / (high - low)


def _refuse_sudden(part: PathPart, s: Array, positions: Array, slopes: Array, units: Array) -> None:
    coarse = hermite(s[::2], positions[::2], *(row[::2] for row in slopes))
    off = np.abs(coarse.at(s[1::2], 1) - slopes[0, 1::2]) / units
    largest = np.abs(slopes[0] / units).max()
    worst = int(np.argmax(off.max(axis=1)))
    if off[worst].max() > SUDDEN * largest:
        raise UnreachableError(
            f"at s = {s[2 * worst + 1]:.4g} of {part.length:.4g} the motors would have to move too suddenly",
            key=f"motions.{part.name}", hint="keep away from singular poses",
        )  # fmt: skip
