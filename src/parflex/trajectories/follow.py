"""Joint trajectories along a path, and motions of redundant motors.

Trajectories are cached on disk under a key of the robot, the path, its reference pose and the source code.

The positions of all joints fit all motors best, with closed loops. If a motor differs from them, the motions of the
motors contradict each other and are refused. Of redundant motors, as many as there are degrees of freedom drive the
robot: those that determine the motion best along the whole path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.codegen import cache
from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.forces.effort_allocation import EffortAllocation, actuation_redundancy, is_specified, read_allocation
from parflex.io import npz_bytes, read_npz
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.trajectories.polynomials import Polynomials, hermite, slopes_of

Array = np.ndarray

FINE = 1e-6  # of the fastest motor's rate: knots are doubled where quintics are further off midway between them

COARSE = 1e-3  # of it: what is still further off is refused

ROUNDING = 1e-10  # of the typical length, or a turn: positions are not known better

DOUBLED = 3  # times

HALVED = 8  # times, to tell a jump from a quick motion

JUMP = 0.5  # of a step between knots: what stays of it in a piece that is 2^8 times shorter; of a root it is 1/16

SUDDEN = 2.0  # times the faster of both rates: a longer step is checked before knots are added

Found = tuple[Polynomials, Array, Array]

FIT, GROSS = 1e-5, 0.1  # rad or typical lengths: splines through knots of a motion that fits are off by less

ROUNDS, STILL = 12, 1e-12  # of three Newton steps each, until positions stay

LOOKED_AT = 200  # times at which motions are checked

LEFT_OUT = "leave it out, or give a motion"

DRIVEN = {"motors": "", "efforts": "", "platform": ", and here the platform follows it"}

MOST_SETS = 300  # of motors that are compared


@dataclass(frozen=True, eq=False, repr=False)
class JointTrajectory(Record):
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


def joint_trajectory(
    robot: Robot, trajectory: JointTrajectory, near: Array, count: int
) -> tuple[Polynomials, Array, Array]:
    """Joints as functions of s, and all positions where the road begins and where it ends."""
    for doubled in range(DOUBLED + 1 if trajectory.strict else 2):
        knots = _knots(robot, trajectory, near, count * 2**doubled)
        pieces = hermite(knots.ways, *knots.values)
        off, allowed, worst = _off(_units(robot, trajectory), trajectory, knots, pieces)
        if off <= FINE + allowed:
            break
        _refuse_jump(robot, trajectory, knots, worst)
    if trajectory.strict and off > COARSE + allowed:
        raise UnreachableError(
            f"{trajectory.left(float(knots.ways[worst]))}: the motors would have to move too suddenly there",
            key=trajectory.key,
            hint="keep away from singular poses, or give more components of the pose",
        )
    return pieces, knots.q[0], knots.q[-1]


def _exactly(trajectory: JointTrajectory, s: float, near: Array) -> tuple[Array, Array]:
    try:
        return trajectory.at(s, near)
    except ParflexError as error:
        error.message = f"{trajectory.left(s)}: {error.message}"
        error.key = trajectory.key
        raise


def _knots(robot: Robot, trajectory: JointTrajectory, near: Array, count: int) -> _Knots:
    s_values, q, values = np.linspace(trajectory.begin, trajectory.end, count + 1), [near], []
    units = _units(robot, trajectory)
    for s in s_values:
        positions, motors = _exactly(trajectory, float(s), q[-1])
        q.append(positions)
        values.append(motors)
        if len(values) > 1 and _sudden(units, values[-2], values[-1], float(s_values[1] - s_values[0])):
            _refuse_jump(robot, trajectory, _Knots(s_values, q[1:], np.stack(values, axis=1)), len(values) - 2)
    every = np.stack(values, axis=1)
    if np.isnan(every[2]).any():
        every[2] = slopes_of(s_values, every[1], trajectory.closed)
    return _Knots(s_values, q[1:], every)


def _rates(robot: Robot, trajectory: JointTrajectory) -> list[int]:
    return list(robot.actuated if trajectory.rates is None else trajectory.rates)


def _units(robot: Robot, trajectory: JointTrajectory) -> Array:
    return robot.tree.rate_units[_rates(robot, trajectory)]


def _sudden(units: Array, before: Array, behind: Array, h: float) -> bool:
    rate = max(_size(units, before[1]), _size(units, behind[1]))
    return _size(units, behind[0] - before[0]) > SUDDEN * h * rate + ROUNDING


def _off(units: Array, trajectory: JointTrajectory, knots: _Knots, pieces: Polynomials) -> tuple[float, float, int]:
    """How far rates of quintics are from exact ones midway between knots, how far they may be, and the worst piece.

    Checked are three pieces on the way, and the one where positions and the integral of exact rates differ most.
    """
    (p, v, a), h = knots.values, float(knots.ways[1] - knots.ways[0])
    fastest = max(_size(units, v), _size(units, np.diff(p, axis=0) / h))  # rates may be wrong, even zero
    if not fastest:
        return 0.0, 0.0, 0
    opened = np.diff(p, axis=0) - h / 2 * (v[1:] + v[:-1]) + h**2 / 12 * np.diff(a, axis=0)
    worst = int(np.argmax(np.abs(opened / units).max(axis=1)))
    count, errors = len(p) - 1, {}
    for k in (worst, count // 5, count // 2, 7 * count // 8):
        s = float(knots.ways[k] + h / 2)
        _, exact = _exactly(trajectory, s, knots.q[k])
        apart = np.abs((pieces.at(s) - exact[0]) / h), np.abs(pieces.at(s, 1) - exact[1])
        errors[k] = float(np.max(np.maximum(*apart) / units)) / fastest
    most = max(errors, key=lambda k: errors[k])
    return errors[most], ROUNDING / (h * fastest), most


def _refuse_jump(robot: Robot, trajectory: JointTrajectory, knots: _Knots, piece: int) -> None:
    """Raise if a piece that is halved again and again keeps the step of its joints."""
    units = _units(robot, trajectory)
    (s, t), (q, _) = knots.ways[piece : piece + 2], knots.q[piece : piece + 2]
    first, last = knots.values[0, piece], knots.values[0, piece + 1]
    step = last - first
    for _ in range(HALVED):
        middle, (q_mid, values) = (s + t) / 2, _exactly(trajectory, float((s + t) / 2), q)
        if _size(units, values[0] - first) > _size(units, last - values[0]):
            t, last = middle, values[0]
        else:
            s, q, first = middle, q_mid, values[0]
    if _size(units, last - first) < JUMP * _size(units, step):
        return
    most = int(np.argmax(np.abs(last - first) / units))
    joint = robot.tree.rate_names[_rates(robot, trajectory)[most]]
    raise UnreachableError(
        f"{trajectory.left(float(s))}: '{joint}' would jump by {last[most] - first[most]:.3g} there, "
        "as what is not given of the pose cannot be kept beyond",
        key=trajectory.key,
        hint="end the path before it, or prescribe whole poses of the end effector",
    )


def _size(units: Array, step: Array) -> float:
    return float(np.abs(step / units).max(initial=0.0))


def cached_joint_trajectory(robot: Robot, choices: tuple[Any, ...], find: Callable[[], Found]) -> Found:
    """What `find` finds for a robot and all that it depends on beside it, from the disk if it was found before."""
    key = cache.key_of(robot, "road", *choices)
    if key is None:
        return find()
    key = key.removesuffix(".program") + ".road"
    data = cache.read_bytes(key)
    if data is not None:
        stored = read_npz(data)
        return Polynomials(stored["breaks"], stored["coefficients"]), stored["first"], stored["last"]
    pieces, first, last = find()
    arrays = {"breaks": pieces.breaks, "coefficients": pieces.coefficients, "first": first, "last": last}
    cache.write_bytes(key, npz_bytes(arrays))
    return pieces, first, last


@dataclass(frozen=True, eq=False, repr=False)
class RedundantDrive(Record):
    """A run in which some motors drive the robot and all of them share the efforts."""

    robot: Robot  # with all its motors
    driven: Robot  # with those that drive it
    allocation: EffortAllocation

    def efforts(self, t: Array, q: Array, tau: Array) -> Array:
        """Efforts of all motors from those of the motors that drive, row by row."""
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
        """How the efforts of the run were chosen; `preload` are the internal efforts at home."""
        near = () if self.allocation.near is None else self.allocation.near
        return {
            "spare_motors": actuation_redundancy(self.robot),
            "chosen_by": self.allocation.criteria("preload at home, elsewhere the nearest internal efforts"),
            "preload": {name: float(value) for name, value in zip(self.allocation.names, near, strict=False)},
        }

    def taut(self, q: Array, effort: Array, tensions: Array) -> Array:
        """Efforts that keep driven cables taut, row by row, from efforts at which they have these tensions."""
        result = effort.copy()
        if self.allocation.has_preload:
            return result
        for row, (positions, tau, tension) in enumerate(zip(q, effort, tensions, strict=True)):
            here = Configuration(self.robot, positions)
            tightened = self.allocation.taut_efforts(here, here.J_a.T, tau, tension)
            result[row] = tau if tightened is None else tightened
        return result


def is_redundant(robot: Robot) -> bool:
    """Whether motions of all motors of a robot have to fit each other: bodies that deform make them independent."""
    return not robot.tree.elastic and actuation_redundancy(robot) > 0


def positions_of_all_motors(robot: Robot, values: Array, near: Array) -> Array:
    """Closed positions at which all motors are as near to their values as can be, near others."""
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
    """A run with the motors that drive a robot with spare ones; what is asked of these has no effect elsewhere."""
    robot = acting_robot(case.robot, case.without)
    if case.prescribed == "motors" and is_redundant(robot):
        spare = with_driving_motors(robot, case.motion, case.grid.rows * case.grid.out_step, **words)
        names = tuple(spare.driven.actuated_names)
        driving = [robot.actuated_names.index(name) for name in names]
        moved = replace(case.motion, motors=names, pieces=_columns(case.motion.pieces, driving), exact=None)
        loads = range(len(robot.actuated), case.given.coefficients.shape[2])
        return replace(
            case, robot=spare.driven, motion=moved, given=_columns(case.given, [*driving, *loads]), spare=spare
        )
    for key, value in words.items():
        if is_specified(value):
            raise InputError(
                f"'{key}' has an effect where more motors than freedoms follow a motion{DRIVEN[case.prescribed]}",
                key=key,
                value=short_text(value),
                hint="leave it out, or drive the motors" if case.prescribed == "platform" else LEFT_OUT,
            )
    return case


def _columns(pieces: Polynomials, columns: list[int]) -> Polynomials:
    return replace(pieces, coefficients=np.ascontiguousarray(pieces.coefficients[:, :, columns]))


def with_driving_motors(
    robot: Robot, motion: Any, end: float, weights: Any, preload: Any, effort_limit: Any
) -> RedundantDrive:
    """Which motors drive a motion, and how all share the efforts; motions that do not fit are refused."""
    pieces: Polynomials = motion.pieces
    allocation = read_allocation(robot, weights, preload, effort_limit)
    lossy = [row.name for row in robot.closures.constraints if getattr(row, "lossy", False)]
    if lossy:
        raise InputError(
            f"internal efforts change what the rigid coupling '{lossy[0]}' loses, so no motor can drive alone",
            key="efficiency",
            value=lossy[0],
            hint="leave out friction, or use a controller",
        )
    if allocation.has_preload:
        allocation = replace(allocation, preloaded=(), preload=np.zeros(0), near=allocation.home_preload(robot))
    motors, q, rows = list(robot.actuated), motion.start, []
    places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in motors]
    units = robot.tree.rate_units
    worst: tuple[float, float, int] = (0.0, 0.0, 0)  # by how much, when, and which motor
    for t in np.linspace(0.0, end, LOOKED_AT + 1):
        prescribed = pieces.at(float(t))[: len(motors)]
        q = positions_of_all_motors(robot, prescribed, q)
        off = np.abs(q[places] - prescribed) / units[motors]
        worst = max(worst, (float(off.max()), float(t), int(off.argmax())))
        if not worst[0] <= GROSS:  # farther on, the nearest pose would be any
            break
        rows.append(Configuration(robot, q).J_a / units[motors][:, None])
    if not worst[0] <= FIT:
        raise _contradiction(robot, worst[1], worst[2], worst[0] * float(units[motors[worst[2]]]))
    chosen = _best(np.array(rows))
    driven = replace(robot, actuated=tuple(motors[k] for k in chosen), known_home=robot.home)
    return RedundantDrive(robot, driven, allocation)


def _best(rows: Array) -> list[int]:
    """The set of motors whose rates determine the motion best at the worst of all times."""
    count, freedoms = rows.shape[1:]
    sets = [list(chosen) for _, chosen in zip(range(MOST_SETS), combinations(range(count), freedoms), strict=False)]
    return max(sets, key=lambda chosen: float(np.linalg.svd(rows[:, chosen], compute_uv=False)[:, -1].min()))


def _contradiction(robot: Robot, t: float, motor: int, off: float) -> InputError:
    name = robot.actuated_names[motor]
    freedoms = len(robot.actuated) - actuation_redundancy(robot)
    unit = "m" if np.any(robot.tree.links[robot.tree.link_of_rate[robot.actuated[motor]]].joint.S_v) else "rad"
    return InputError(
        f"the motions of the {len(robot.actuated)} motors do not fit the {freedoms} freedoms: at t = {t:.4g} s the "
        f"nearest pose leaves '{name}' off by {off:.4g} {unit}",
        key="motion",
        value=name,
        hint="give motions that the robot can have, e.g. along a path of its end effector",
    )
