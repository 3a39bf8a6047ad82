"""Limits as rows a u + b y^2 + d y + g <= 1 of path speed y and path acceleration u.

Efforts of a rigid robot on a path are A u + B y^2 + D y + G: inertia, velocity terms, viscous friction, and gravity
with Coulomb friction, whose sign is that of the path. With more motors than freedoms the forces that they can give are
a zonotope: its facets are rows, so that internal efforts are free and no program is solved on the way. Driven cables
pull: their tension is a row, or with spare motors one more bound of an effort in the facets.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from parflex.dynamics.dynamics import state_at
from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.simulation.time_optimal.cable_tensions import Winding, cable_names, taut_bounds, tensions, winding_of
from parflex.simulation.time_optimal.motor_limits import MotorLimits
from parflex.simulation.time_optimal.path_geometry import PathPlaces

Array = np.ndarray
SAMPLES = (0.5, 1.0, 1.5)  # of a speed: three give the terms in 1, y and y^2
FLAT = 1e-12  # of the largest: a facet that motors cannot tell from zero


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
        """Rows, and inverse largest speeds, anywhere: parabolas through both knots and the middle of an interval."""
        knots = self.s[::2]
        k = np.clip(np.searchsorted(knots, s, side="right") - 1, 0, len(knots) - 2)
        f = (s - knots[k]) / (knots[k + 1] - knots[k])
        weights = np.stack([(1 - f) * (1 - 2 * f), 4 * f * (1 - f), f * (2 * f - 1)])
        rows = np.einsum("np,nprk->prk", weights, np.stack([self.rows[2 * k + n] for n in range(3)]))
        return rows, np.einsum("np,np->p", weights, np.stack([1 / self.top[2 * k + n] for n in range(3)]))


def rows_along(robot: Robot, places: PathPlaces, limits: MotorLimits, speeds: Array, pushes: Array) -> PhaseRows:
    """Rows at all places; terms of efforts are fitted about speeds and accelerations."""
    motors = robot.actuated_names
    moving = zip(places.robots, places.rates, places.bends, speeds, pushes, strict=True)
    found = [_efforts(*each) for each in moving]
    efforts, actuation = (np.array([each[k] for each in found]) for k in range(2))
    freedoms, spare = actuation.shape[1], actuation.shape[1] != actuation.shape[2]
    winding = winding_of(places.robots[0]) if spare else ()
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
        made, named = _effort_rows(efforts, actuation, limits, motors, winding)
        rows += made
        names += named
    if not spare:
        made = _tension_rows(efforts[:, freedoms:], speeds)
        rows += made
        names += [("tension", cable) for cable in cable_names(robot)]
    for k, most in enumerate(limits.acceleration):
        if np.isfinite(most):
            own = np.zeros((len(places.s), 4))
            own[:, 0], own[:, 1] = places.slopes[0, :, k] / most, places.slopes[1, :, k] / most
            rows += [own, -own]
            names += [("acceleration", motors[k])] * 2
    speed = np.abs(places.slopes[0])
    allowed = np.where(speed > 0, limits.velocity / np.where(speed > 0, speed, 1.0), np.inf)
    every = np.stack(rows, axis=1) if rows else np.zeros((len(places.s), 0, 4))
    return PhaseRows(
        every, allowed.min(axis=1), tuple(map(int, allowed.argmin(axis=1))), tuple(names), efforts, actuation,
        places.s, winding,
    )  # fmt: skip


def _efforts(here: Configuration, q1: Array, q2: Array, speed: float, push: float) -> tuple[Array, Array]:
    """A, B, D, G of efforts, or of generalised forces where motors are spare; and what these are for efforts."""
    speeds = speed * np.array(SAMPLES)
    spare = here.J_a.shape[0] > here.J_a.shape[1]
    found = [_forces(here, q1, q2, y, push, spare) for y in speeds]
    A = _forces(here, q1, q2, speed, push + 1.0, spare) - found[1]
    still = np.array(found) - push * A
    terms = np.linalg.solve(np.stack([speeds**2, speeds, np.ones(len(speeds))], axis=1), still)
    return np.stack([A, *terms], axis=1), here.J_a.T if spare else np.eye(len(here.J_a))


def _forces(here: Configuration, q1: Array, q2: Array, y: float, push: float, spare: bool) -> Array:
    """Efforts of the motors and tensions; where motors are spare, generalised forces and efforts without tension."""
    state = state_at(here, q1 * y)
    f = state.forces(q2 * y**2 + push * q1)
    if spare:
        return np.concatenate([here.J.T @ f, taut_bounds(here, f)])
    tau = state.efforts(f)
    return np.concatenate([tau, tensions(here, f, tau)])


def model_forces(rows: PhaseRows, places: PathPlaces, speeds: Array, pushes: Array) -> Array:
    """What the model itself says at all places in the motion that was found."""
    spare = rows.actuation.shape[1] != rows.actuation.shape[2]
    moving = zip(places.robots, places.rates, places.bends, speeds, pushes, strict=True)
    return np.array([_forces(*each, spare) for each in moving])


def _tension_rows(terms: Array, speeds: Array) -> list[Array]:
    """Cables pull: their tension is at least zero, in shares of the largest at these speeds."""
    rows = []
    for k in range(terms.shape[1]):
        own = terms[:, k]
        usual = np.einsum("pk,kp->p", np.abs(own), np.stack([speeds**2, speeds**2, speeds, np.ones_like(speeds)]))
        row = -own / max(float(usual.max()), 1e-300)
        row[:, 3] += 1
        rows.append(row)
    return rows


def _effort_rows(
    efforts: Array, actuation: Array, limits: MotorLimits, motors: list[str], winding: Winding
) -> tuple[list[Array], list[tuple[str, str]]]:
    freedoms, count = actuation.shape[1:]
    rows, names = [], []
    if freedoms == count:
        for k in range(count):
            for bound, sign in ((limits.high[k], 1.0), (limits.low[k], -1.0)):
                if np.isfinite(bound):
                    rows.append(_bounded(efforts[:, k], sign, bound, _half(limits, k)))
                    names.append(("effort", motors[k]))
        return rows, names
    for k, (motor, sign) in enumerate(winding):  # the other end of a range that tension bounds from one side
        bound = limits.high[motor] if sign > 0 else limits.low[motor]
        rows.append(_bounded(efforts[:, freedoms + k], sign, bound, _half(limits, motor)))
        names.append(("effort", motors[motor]))
    normals = None
    made = []
    for W, terms in zip(actuation, efforts, strict=True):
        normals = _normals(W, normals)
        made.append(_facets(W, terms, limits, winding, normals))
    facets = np.unique(np.array(made), axis=1)
    return [*rows, *facets.transpose(1, 0, 2)], [*names, *[("effort", "motors together")] * facets.shape[1]]


def _bounded(terms: Array, sign: float, bound: float, half: float) -> Array:
    """The row of sign (effort - bound) <= 0, in halves of the range."""
    row = sign * terms / half
    row[:, 3] += 1 - sign * bound / half
    return row


def _half(limits: MotorLimits, k: int) -> float:
    """Half the range of efforts; the one bound that is there where the range is open."""
    both = limits.low[k], limits.high[k]
    if np.isfinite(both).all():
        return (both[1] - both[0]) / 2
    return abs(both[1] if np.isfinite(both[1]) else both[0]) or 1.0


def _normals(W: Array, before: Array | None) -> Array:
    """Normals of the facets of all forces W tau, with the signs that they had at the place before."""
    freedoms, count = W.shape
    scale = np.abs(W).max()
    chosen = combinations(range(count), freedoms - 1)
    normals = np.array([np.linalg.svd(W[:, own].T / scale)[2][-1] for own in chosen])
    if before is not None:
        normals[np.einsum("nf,nf->n", normals, before) < 0] *= -1
    return normals


def _facets(W: Array, terms: Array, limits: MotorLimits, winding: Winding, normals: Array) -> Array:
    """Facets of all forces W tau for efforts in their ranges, as rows of the terms of the force that is asked for.

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
                for k in (k for k, kept in zip(other, taut, strict=True) if kept):
                    motor, sign = winding[k]
                    if along[motor] * sign < 0:
                        row = row - along[motor] * terms[freedoms + k]
                        row[3] += most[motor]
                rows.append(np.zeros(4) if none else row / reach + [0, 0, 0, 1])
    return np.array(rows)
