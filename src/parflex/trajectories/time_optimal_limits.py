"""Limits of time-optimal motions: velocity, acceleration, effort and cable tension.

A limit is a row a u + b y^2 + d y + g <= 1 of path speed y and path acceleration u. Efforts of a rigid robot on a path
are A u + B y^2 + D y + G: inertia, velocity terms, viscous friction, and gravity with Coulomb friction, whose sign is
that of the path. The forces that redundant motors can apply are a zonotope: its facets are rows, so internal efforts
are free and no program is solved along the path.

Driven cables only pull. Without redundancy the tension follows from the motion, theory (18), and is a row. Redundant
motors choose it: there the tension of a cable that one motor winds bounds the effort of this motor from one side, by
inertia and friction of the drum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.dynamics.dynamics import state_at
from parflex.errors import InputError, UnreachableError
from parflex.forces.effort_allocation import (
    cable_rows,
    cable_tensions,
    driven_cables,
    internal_basis,
    nearest_outside,
    shortest_within,
)
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.limits import check_limits
from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import LIMIT_KEYS, MotionTable
from parflex.trajectories.follow import Moving, RobotPath, as_words, configuration_near, joint_values, moving_frame
from parflex.trajectories.frames import path_length, paths_of
from parflex.trajectories.motions import positions_of
from parflex.trajectories.trajectory import Trajectory, hermite

Array = np.ndarray
SAMPLES = (0.5, 1.0, 1.5)  # of a speed: three give the terms in 1, y and y^2
FLAT = 1e-12  # of the largest: a facet that motors cannot tell from zero
SUDDEN = 1e-3  # of the largest rate: quintics between every other place may be so far off in the middle
STILL = 1e-10  # of the largest rate: less is rounding
BISECTED = 30  # times
NEAR = 1e-4  # of the length: to both sides, for derivatives of rates that no rule gives
Winding = tuple[tuple[int, float], ...]  # of each cable its motor, and 1 where positive efforts wind it up, else -1
EXACT = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class PhaseRows(Record):
    """At each place: rows (place, row, [a, b, d, g]) that are at most 1, and the largest speed; names of the rows."""

    rows: Array
    top: Array  # speeds that velocities of the motors allow
    fastest: tuple[int, ...]  # the motor that has the lowest such speed
    names: tuple[tuple[str, str], ...]  # limit and joint of each row
    efforts: Array  # (place, freedom or motor, [A, B, D, G]), then tensions or, with spare motors, efforts for none
    actuation: Array  # (place, freedom, motor): forces for efforts; the unit matrix where motors are not spare
    s: Array  # places: knots, and the middles between them
    winding: Winding = ()  # of cables, where motors are spare

    def at(self, s: Array) -> tuple[Array, Array]:
        """Return rows and inverse top speeds anywhere, by parabolas through knots and middle of an interval."""
        knots = self.s[::2]
        k = np.clip(np.searchsorted(knots, s, side="right") - 1, 0, len(knots) - 2)
        f = (s - knots[k]) / (knots[k + 1] - knots[k])
        weights = np.stack([(1 - f) * (1 - 2 * f), 4 * f * (1 - f), f * (2 * f - 1)])
        rows = np.einsum("np,nprk->prk", weights, np.stack([self.rows[2 * k + n] for n in range(3)]))
        return rows, np.einsum("np,np->p", weights, np.stack([1 / self.top[2 * k + n] for n in range(3)]))


def rows_along(robot: Robot, places: PathPlaces, limits: MotorLimits, speeds: Array, pushes: Array) -> PhaseRows:
    """Return rows at all places; terms of efforts are fitted about speeds and accelerations."""
    motors = robot.actuated_names
    moving = zip(places.robots, places.rates, places.bends, speeds, pushes, strict=True)
    terms = [_effort_terms(*each) for each in moving]
    efforts, actuation = (np.array([each[k] for each in terms]) for k in range(2))
    freedoms, spare = actuation.shape[1], actuation.shape[1] != actuation.shape[2]
    winding = winding_motors(places.robots[0]) if spare else ()
    rows: list[Array] = []
    names: list[tuple[str, str]] = []
    bounded = np.isfinite([limits.low, limits.high])
    if bounded.any():
        if spare and not bounded.all():
            free = motors[int(np.argmin(bounded.all(axis=0)))]
            raise InputError(
                f"'{free}' has no effort limit, and there are more motors than freedoms", key="effort_limit",
                value=free, hint="give every motor a lowest and a highest effort",
            )  # fmt: skip
        rows, names = _effort_rows(efforts, actuation, limits, motors, winding)
    if not spare:
        rows += _tension_rows(efforts[:, freedoms:], speeds)
        names += [("tension", cable) for cable in cable_names(robot)]
    for k, most in enumerate(limits.acceleration):
        if np.isfinite(most):
            row = np.zeros((len(places.s), 4))
            row[:, 0], row[:, 1] = places.slopes[0, :, k] / most, places.slopes[1, :, k] / most
            rows += [row, -row]
            names += [("acceleration", motors[k])] * 2
    with np.errstate(divide="ignore"):
        allowed = limits.velocity / np.abs(places.slopes[0])
    every = np.stack(rows, axis=1) if rows else np.zeros((len(places.s), 0, 4))
    return PhaseRows(
        every, allowed.min(axis=1), tuple(map(int, allowed.argmin(axis=1))), tuple(names), efforts, actuation,
        places.s, winding,
    )  # fmt: skip


def _effort_terms(here: Configuration, q1: Array, q2: Array, speed: float, push: float) -> tuple[Array, Array]:
    """Return A, B, D, G of efforts, or of generalised forces with spare motors, and these forces for unit efforts."""
    speeds, spare = speed * np.array(SAMPLES), here.J_a.shape[0] > here.J_a.shape[1]
    forces = [_forces(here, q1, q2, y, push) for y in speeds]
    A = _forces(here, q1, q2, speed, push + 1.0) - forces[1]
    still = np.array(forces) - push * A
    terms = np.linalg.solve(np.stack([speeds**2, speeds, np.ones(len(speeds))], axis=1), still)
    return np.stack([A, *terms], axis=1), here.J_a.T if spare else np.eye(len(here.J_a))


def _forces(here: Configuration, q1: Array, q2: Array, y: float, push: float) -> Array:
    """Return efforts of the motors and tensions; with spare motors, generalised forces and efforts without tension."""
    state = state_at(here, q1 * y)
    f = state.forces(q2 * y**2 + push * q1)
    if here.J_a.shape[0] > here.J_a.shape[1]:
        return np.concatenate([here.J.T @ f, taut_bounds(here, f)])
    tau = state.efforts(f)
    return np.concatenate([tau, cable_tensions(here, f, tau)])


def _tension_rows(terms: Array, speeds: Array) -> list[Array]:
    """Return the rows of cables, whose tension is at least zero, in shares of the largest at these speeds."""
    state = np.stack([speeds**2, speeds**2, speeds, np.ones_like(speeds)])
    usual = np.einsum("pkc,cp->pk", np.abs(terms), state).max(axis=0, initial=1e-300)
    return list(np.moveaxis(np.array([0.0, 0.0, 0.0, 1.0]) - terms / usual[:, None], 1, 0))


def _effort_rows(
    efforts: Array, actuation: Array, limits: MotorLimits, motors: list[str], winding: Winding
) -> tuple[list[Array], list[tuple[str, str]]]:
    freedoms, count = actuation.shape[1:]
    rows, names = [], []
    if freedoms == count:
        for k in range(count):
            for bound, sign in ((limits.high[k], 1.0), (limits.low[k], -1.0)):
                if np.isfinite(bound):
                    rows.append(_bounded(efforts[:, k], sign, limits, k))
                    names.append(("effort", motors[k]))
        return rows, names
    for k, (motor, sign) in enumerate(winding):  # the other end of a range that tension bounds from one side
        rows.append(_bounded(efforts[:, freedoms + k], sign, limits, motor))
        names.append(("effort", motors[motor]))
    normals = None
    made = []
    for W, terms in zip(actuation, efforts, strict=True):
        normals = _normals(W, normals)
        made.append(_facets(W, terms, limits, winding, normals))
    facets = np.unique(np.array(made), axis=1)
    return [*rows, *facets.transpose(1, 0, 2)], [*names, *[("effort", "motors together")] * facets.shape[1]]


def _bounded(terms: Array, sign: float, limits: MotorLimits, motor: int) -> Array:
    """Return the row of sign (effort - bound) <= 0, in halves of the range, or in shares of the one bound there is."""
    low, high = limits.low[motor], limits.high[motor]
    bound = high if sign > 0 else low
    half = (high - low) / 2 if np.isfinite(high - low) else abs(bound) or 1.0
    row = sign * terms / half
    row[:, 3] += 1 - sign * bound / half
    return row


def _normals(W: Array, before: Array | None) -> Array:
    """Return normals of the facets of all forces W tau, with the signs of the place before."""
    freedoms, count = W.shape
    scale = np.abs(W).max()
    chosen = combinations(range(count), freedoms - 1)
    normals = np.array([np.linalg.svd(W[:, columns].T / scale)[2][-1] for columns in chosen])
    if before is not None:
        normals[np.einsum("nf,nf->n", normals, before) < 0] *= -1
    return normals


def _facets(W: Array, terms: Array, limits: MotorLimits, winding: Winding, normals: Array) -> Array:
    """Return facets of all forces W tau for efforts in their ranges, as rows of the terms of the required force.

    Where cables must be taut, a range ends at its limit or at the effort for no tension: the facets of either hold.
    """
    freedoms, count = W.shape
    half = (limits.high - limits.low) / 2
    rows = []
    for normal, chosen in zip(normals, combinations(range(count), freedoms - 1), strict=True):
        other = [k for k, (motor, _) in enumerate(winding) if motor not in chosen]
        for n in (normal, -normal):
            along = n @ W
            along[list(chosen)] = 0.0
            reach = float(np.abs(along) @ half)
            none = reach <= FLAT * np.abs(W).max() * np.linalg.norm(half)
            most = along * np.where(along > 0, limits.high, limits.low)
            for taut in product((False, True), repeat=len(other)):
                row = n @ terms[:freedoms]
                row[3] -= most.sum()
                for k in (k for k, is_taut in zip(other, taut, strict=True) if is_taut):
                    motor, sign = winding[k]
                    if along[motor] * sign < 0:
                        row = row - along[motor] * terms[freedoms + k]
                        row[3] += most[motor]
                rows.append(np.zeros(4) if none else row / reach + [0, 0, 0, 1])
    return np.array(rows)


@dataclass(frozen=True, eq=False, repr=False)
class PathPlaces(Record):
    """The robot at places along a part, and its motors as quintics of s."""

    s: Array
    robots: tuple[Configuration, ...]
    rates: Array  # (place, rate)
    bends: Array
    motors: Trajectory
    slopes: Array  # first and second derivatives of the motors, (2, place, motor)

    def forces(self, speeds: Array, pushes: Array) -> Array:
        """Return the forces of the model itself at all places, at these speeds and accelerations."""
        moving = zip(self.robots, self.rates, self.bends, speeds, pushes, strict=True)
        return np.array([_forces(*each) for each in moving])


def parts_of(robot: Robot, motion: MotionTable, name: str) -> tuple[list[RobotPath], Array]:
    """Return the paths of a motion, from rest to rest, and all positions at the start.

    The parameter s goes from 0 to the length, in m along a path of a frame, else as a share of a move.
    """
    rigid = robot.locking(robot.tree.elastic)
    if not (motion.along_path or motion.poses):
        rows, start = positions_of(robot, motion, name)
        return [_part(name, 1.0, _joint_line(rigid, a, b, name), "") for a, b in pairwise(rows)], start
    paths, driven, positions = paths_of(rigid, motion, name)
    frame, parts = motion.frame or rigid.tree.end_effector, []
    for path in paths:
        length = path_length(motion, path, name)
        parts.append(_part(name, length, moving_frame(rigid, frame, driven, path.at), path.unit))
    return parts, positions[0] if positions else rigid.home


def _part(name: str, length: float, moving: Callable[[float, Array], Moving], unit: str) -> RobotPath:
    """Return a path on which joints rest whose rates are rounding, without Coulomb friction of either sign."""

    def at(s: float, near: Array) -> Moving:
        here, q1, q2 = moving(s, near)
        here.refuse_undefined_actuation()
        shares = np.abs(q1 / here.robot.tree.rate_units)
        return here, np.where(shares > STILL * shares.max(initial=0.0), q1, 0.0), q2

    return RobotPath(0.0, length, at, lambda s: f"the path stops at s = {s:.4g} of {length:.4g}", f"motions.{name}",
                     unit=unit)  # fmt: skip


def _joint_line(rigid: Robot, first: Array, second: Array, name: str) -> Callable[[float, Array], Moving]:
    travel, names = second - first, rigid.actuated_names
    if not travel.any():
        raise InputError("a move goes nowhere", key=f"motions.{name}", hint="remove it, or use 'rest'")
    velocity = as_words(names, travel)

    def moving(s: float, near: Array) -> Moving:
        here = configuration_near(rigid, as_words(names, first + s * travel), near)
        qd = here.rates(velocity)
        return here, qd, here.accelerations(dict.fromkeys(names, 0.0), qd, velocity)

    return moving


def places_along(rigid: Robot, part: RobotPath, s: Array, near: Array) -> PathPlaces:
    """Return the robot at places in order; refused where the motors would move too suddenly between them."""
    rows: list[Moving] = []
    for place in s:
        here, q1, q2 = part.at(float(place), rows[-1][0].q if rows else near)
        if np.isnan(q2).any():
            h = NEAR * part.end
            low, high = max(0.0, place - h), min(part.end, place + h)
            q2 = (part.at(high, here.q)[1] - part.at(low, here.q)[1]) / (high - low)
        rows.append((here, q1, q2))
    positions, *slopes = np.stack([joint_values(*row, rigid.actuated) for row in rows], axis=1)
    _refuse_sudden(part, s, positions, np.array(slopes), rigid.tree.rate_units[list(rigid.actuated)])
    robots, rates, bends = zip(*rows, strict=True)
    motors = hermite(s, positions, *slopes)
    return PathPlaces(s, robots, np.array(rates), np.array(bends), motors, np.array(slopes))


def refuse_beyond_limits(part: RobotPath, places: PathPlaces) -> None:
    """Raise where joints on the path leave their limits: no law of time changes that."""
    robot, q = places.robots[0].robot, np.array([here.q for here in places.robots])
    for violation in check_limits(robot, dict(zip(robot.tree.position_names, q.T, strict=True)), times=places.s):
        sentence = replace(violation, time=None).sentence
        raise UnreachableError(
            f"at s = {violation.time:.4g} of {part.end:.4g} {sentence}", key=part.key, value=violation.value,
            hint="change the path or the limit, or ignore the limits (ignore_limits)",
        )  # fmt: skip


def reversals(rigid: Robot, part: RobotPath, near: Array, s: Array) -> list[float]:
    """Return the places at which a joint with Coulomb friction reverses, by bisection between places `s`."""
    links = [link for link in rigid.tree.links if link.v.stop > link.v.start]
    rubbing = [link.v.start for link in links if link.terms.coulomb or link.terms.more_viscous]
    if not rubbing:
        return []
    rates, positions = [], []
    for place in s:
        here, q1, _ = part.at(float(place), near)
        rates.append(q1[rubbing])
        positions.append(near := here.q)
    places = []
    values = np.array(rates)
    for k, j in zip(*np.nonzero(values[:-1] * values[1:] < 0), strict=True):
        low, high, sign = float(s[k]), float(s[k + 1]), np.sign(values[k, j])
        for _ in range(BISECTED):
            middle = (low + high) / 2
            _, q1, _ = part.at(middle, positions[k])
            low, high = (middle, high) if q1[rubbing[j]] * sign > 0 else (low, middle)
        places.append((low + high) / 2)
    return sorted(places)


def _refuse_sudden(part: RobotPath, s: Array, positions: Array, slopes: Array, units: Array) -> None:
    coarse = hermite(s[::2], positions[::2], *(row[::2] for row in slopes))
    off = np.abs(coarse.value(s[1::2], 1) - slopes[0, 1::2]) / units
    largest = np.abs(slopes[0] / units).max()
    worst = int(np.argmax(off.max(axis=1)))
    if off[worst].max() > SUDDEN * largest:
        raise UnreachableError(
            f"at s = {s[2 * worst + 1]:.4g} of {part.end:.4g} the motors would have to move too suddenly",
            key=part.key, hint="keep away from singular poses",
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class MotorLimits(Record):
    """Limits in the order of the motors; infinite where there are none."""

    low: Array  # efforts
    high: Array
    velocity: Array
    acceleration: Array


def limits_of(robot: Robot, motion: MotionTable, name: str) -> MotorLimits:
    """Return the limits of a table; raise if it has none."""
    efforts, velocity, acceleration = (_read(robot, getattr(motion, key), key, name) for key in LIMIT_KEYS)
    limits = MotorLimits(efforts[0], efforts[1], velocity[1], acceleration[1])
    if not any(np.isfinite(values).any() for values in (efforts, velocity, acceleration)):
        raise InputError(
            "a time-optimal motion has no limits", key=f"motions.{name}.effort_limit",
            hint="add effort_limit, velocity_limit or acceleration_limit",
        )  # fmt: skip
    return limits


def _read(robot: Robot, limit: Any, key: str, name: str) -> Array:
    """Return lowest and highest values of all motors; infinite where there is no limit."""
    motors, where = robot.actuated_names, f"motions.{name}.{key}"
    table = limit if isinstance(limit, Mapping) else dict.fromkeys(motors, limit)
    bounds = np.full((2, len(motors)), np.inf) * np.array([[-1.0], [1.0]])
    for motor, value in by_motor(motors, table, where, "limit").items():
        if value is None:
            continue
        pair = isinstance(value, tuple)
        bounds[:, motor] = value if pair else (-value, value)
        if bounds[0, motor] >= bounds[1, motor] or (pair and key != "effort_limit"):
            raise InputError(
                f"the limit {list(value) if pair else value} of '{motors[motor]}' is neither positive nor a range",
                key=where, value=str(value), hint="give one positive number, or [lowest, highest] of efforts",
            )  # fmt: skip
    return bounds


def feasible_efforts(actuation: Array, forces: Array, limits: MotorLimits, winding: Winding, taut: Array) -> Array:
    """Return efforts (place, motor) for forces (place, freedom); of redundant motors the least within their limits.

    `taut` (place, cable) are efforts at which cables have no tension.
    """
    if actuation.shape[1] == actuation.shape[2]:
        return forces
    efforts = []
    for W, force, least in zip(actuation, forces, taut, strict=True):
        low, high = limits.low.copy(), limits.high.copy()
        for (motor, sign), effort in zip(winding, least, strict=True):
            bound, nearer = (low, max) if sign > 0 else (high, min)
            bound[motor] = nearer(bound[motor], effort)
        tau, N = np.linalg.lstsq(W, force, rcond=None)[0], internal_basis(W)
        z = shortest_within(N, tau, low, high)
        efforts.append(nearest_outside(N, tau, low, high)[0] if z is None else tau + N @ z)
    return np.array(efforts)


def taut_bounds(here: Configuration, f: Array) -> Array:
    """Return the effort of the motor of each driven cable at which its tension is zero, for forces of the open tree."""
    rows = cable_rows(here.robot)
    shares = _shares(here) if rows else np.zeros((0, len(f)))
    motors = shares[:, list(here.robot.actuated)]
    return shares @ f / motors.sum(axis=1)


def winding_motors(here: Configuration) -> Winding:
    """Return the motor of each cable; cables that share motors are refused."""
    robot = here.robot
    if not cable_rows(robot):
        return ()
    motors = _shares(here)[:, list(robot.actuated)]
    turning = np.abs(motors) > EXACT * np.abs(motors).max(axis=1, keepdims=True)
    bad = (turning.sum(axis=1) != 1) | (turning @ turning.sum(axis=0) != 1)
    if bad.any():
        name = cable_names(robot)[int(np.argmax(bad))]
        raise InputError(
            f"with spare motors the cable '{name}' is not wound by a motor of its own, so that its tension is not "
            "known in time-optimal motions",
            key="element", value=name, hint="use another law",
        )  # fmt: skip
    return tuple((int(np.argmax(row)), float(np.sign(motors[k] @ row))) for k, row in enumerate(turning))


def cable_names(robot: Robot) -> list[str]:
    """Return driven cables in the order of their tensions."""
    wound = driven_cables(robot)
    return [row.name for row in robot.closures.rows if row.name in wound]


def _shares(here: Configuration) -> Array:
    """Return rows w (cable, rate) with tension = w . (tau - f), from the equations of drums, gears and lengths.

    A virtual motion of these that breaks the condition of one cable and no other condition: its work is that of the
    tension.
    """
    robot, J = here.robot, here.closure_jacobian
    lengths = [link.v.start for link in robot.tree.links if link.pulls_only]
    couplings = [
        J[part.start] != 0
        for part, row in zip(robot.closures.slices(), robot.closures.rows, strict=True)
        if isinstance(row, Coupling)
    ]
    moving = np.zeros(J.shape[1], dtype=bool)
    moving[lengths] = True
    for _ in couplings:
        for touched in couplings:
            moving |= touched if (touched & moving).any() else False
    chosen = [k for k in robot.free if moving[k]]
    rows = cable_rows(robot)
    targets = np.eye(len(J))[:, rows]
    solution = np.linalg.lstsq(J[:, chosen], targets, rcond=EXACT)[0]
    shares = np.zeros((len(rows), J.shape[1]))
    shares[:, chosen] = solution.T
    off = np.abs(J[:, chosen] @ solution - targets).max(axis=0)
    shares[off > EXACT * max(1.0, float(np.abs(J).max()))] = np.nan
    return shares
