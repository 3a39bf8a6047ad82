"""Joints along a road (a path, a move, a reference): knots with exact rates, and quintics that fit between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parflex.errors import ParflexError, UnreachableError
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.simulation.inputs.polynomials import Polynomials, hermite, slopes_of

Array = np.ndarray
FINE = 1e-6  # of the fastest motor's rate: knots are doubled where quintics are further off midway between them
COARSE = 1e-3  # of it: what is still further off is refused
ROUNDING = 1e-10  # of the typical length, or a turn: positions are not known better
DOUBLED = 3  # times
HALVED = 8  # times, to tell a jump from a quick motion
JUMP = 0.5  # of a step between knots: what stays of it in a piece that is 2^8 times shorter; of a root it is 1/16
SUDDEN = 2.0  # times the faster of both rates: a longer step is checked before knots are added


@dataclass(frozen=True, eq=False, repr=False)
class Road(Record):
    """From `begin` to `end`: `at(s, near)` has all positions, and of some joints position and two derivatives.

    Second derivatives may be missing (nan): they are those of the first ones. A road that is not `strict` is taken even
    where quintics do not fit well, but not where a joint jumps.
    """

    begin: float
    end: float
    closed: bool
    at: Callable[[float, Array], tuple[Array, Array]]
    left: Callable[[float], str]  # "the path is left 0.1 m from its start"
    key: str  # of errors
    rates: tuple[int, ...] | None = None  # of the joints that `at` tells of; None: the motors
    strict: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class _Knots(Record):
    ways: Array
    q: list[Array]
    values: Array  # (3, knot, motor)


def joints_along(robot: Robot, road: Road, near: Array, count: int) -> tuple[Polynomials, Array, Array]:
    """Joints as functions of s, and all positions where the road begins and where it ends."""
    for doubled in range(DOUBLED + 1 if road.strict else 2):
        knots = _knots(robot, road, near, count * 2**doubled)
        pieces = hermite(knots.ways, *knots.values)
        off, allowed, worst = _off(_units(robot, road), road, knots, pieces)
        if off <= FINE + allowed:
            break
        _refuse_jump(robot, road, knots, worst)
    if road.strict and off > COARSE + allowed:
        raise UnreachableError(
            f"{road.left(float(knots.ways[worst]))}: the motors would have to move too suddenly there",
            key=road.key,
            hint="keep away from singular poses, or give more components of the pose",
        )
    return pieces, knots.q[0], knots.q[-1]


def _exactly(road: Road, s: float, near: Array) -> tuple[Array, Array]:
    try:
        return road.at(s, near)
    except ParflexError as error:
        error.message = f"{road.left(s)}: {error.message}"
        error.key = road.key
        raise


def _knots(robot: Robot, road: Road, near: Array, count: int) -> _Knots:
    ways, q, values = np.linspace(road.begin, road.end, count + 1), [near], []
    units = _units(robot, road)
    for s in ways:
        found, motors = _exactly(road, float(s), q[-1])
        q.append(found)
        values.append(motors)
        if len(values) > 1 and _sudden(units, values[-2], values[-1], float(ways[1] - ways[0])):
            _refuse_jump(robot, road, _Knots(ways, q[1:], np.stack(values, axis=1)), len(values) - 2)
    every = np.stack(values, axis=1)
    if np.isnan(every[2]).any():
        every[2] = slopes_of(ways, every[1], road.closed)
    return _Knots(ways, q[1:], every)


def _rates(robot: Robot, road: Road) -> list[int]:
    return list(robot.actuated if road.rates is None else road.rates)


def _units(robot: Robot, road: Road) -> Array:
    return robot.tree.rate_units[_rates(robot, road)]


def _sudden(units: Array, before: Array, behind: Array, h: float) -> bool:
    rate = max(_size(units, before[1]), _size(units, behind[1]))
    return _size(units, behind[0] - before[0]) > SUDDEN * h * rate + ROUNDING


def _off(units: Array, road: Road, knots: _Knots, pieces: Polynomials) -> tuple[float, float, int]:
    """How far rates of quintics are from exact ones midway between knots, how far they may be, and the worst piece.

    Checked are three pieces on the way, and the one where positions and the integral of exact rates differ most.
    """
    (p, v, a), h = knots.values, float(knots.ways[1] - knots.ways[0])
    fastest = max(_size(units, v), _size(units, np.diff(p, axis=0) / h))  # rates may be wrong, even zero
    if not fastest:
        return 0.0, 0.0, 0
    opened = np.diff(p, axis=0) - h / 2 * (v[1:] + v[:-1]) + h**2 / 12 * np.diff(a, axis=0)
    worst = int(np.argmax(np.abs(opened / units).max(axis=1)))
    count, found = len(p) - 1, {}
    for k in (worst, count // 5, count // 2, 7 * count // 8):
        s = float(knots.ways[k] + h / 2)
        _, exact = _exactly(road, s, knots.q[k])
        apart = np.abs((pieces.at(s) - exact[0]) / h), np.abs(pieces.at(s, 1) - exact[1])
        found[k] = float(np.max(np.maximum(*apart) / units)) / fastest
    most = max(found, key=lambda k: found[k])
    return found[most], ROUNDING / (h * fastest), most


def _refuse_jump(robot: Robot, road: Road, knots: _Knots, piece: int) -> None:
    """Raise if a piece that is halved again and again keeps the step of its joints."""
    units = _units(robot, road)
    (s, t), (q, _) = knots.ways[piece : piece + 2], knots.q[piece : piece + 2]
    first, last = knots.values[0, piece], knots.values[0, piece + 1]
    step = last - first
    for _ in range(HALVED):
        middle, (q_mid, values) = (s + t) / 2, _exactly(road, float((s + t) / 2), q)
        if _size(units, values[0] - first) > _size(units, last - values[0]):
            t, last = middle, values[0]
        else:
            s, q, first = middle, q_mid, values[0]
    if _size(units, last - first) < JUMP * _size(units, step):
        return
    most = int(np.argmax(np.abs(last - first) / units))
    joint = robot.tree.rate_names[_rates(robot, road)[most]]
    raise UnreachableError(
        f"{road.left(float(s))}: '{joint}' would jump by {last[most] - first[most]:.3g} there, "
        "as what is not given of the pose cannot be kept beyond",
        key=road.key,
        hint="end the path before it, or prescribe whole poses of the end effector",
    )


def _size(units: Array, step: Array) -> float:
    return float(np.abs(step / units).max(initial=0.0))
