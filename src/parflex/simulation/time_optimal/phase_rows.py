"""Limits as rows a u + b y^2 + d y + g <= 1 of path speed y and path acceleration u.

Efforts of a rigid robot on a path are A u + B y^2 + D y + G: inertia, velocity terms, viscous friction, and gravity
with Coulomb friction, whose sign is that of the path. With more motors than freedoms the forces that they can give are
a zonotope: its facets are rows, so that internal efforts are free and no program is solved on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from parflex.errors import InputError
from parflex.models.configuration import Configuration
from parflex.models.dynamics.reduced import state_at
from parflex.models.robot import Robot
from parflex.records import Record
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
    efforts: Array  # (place, freedom or motor, [A, B, D, G])
    actuation: Array  # (place, freedom, motor): forces for efforts; the unit matrix where motors are not spare
    s: Array  # places: knots, and the middles between them

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
    rows: list[Array] = []
    names: list[tuple[str, str]] = []
    bounded = np.isfinite([limits.low, limits.high])
    if bounded.any():
        if actuation.shape[1] != actuation.shape[2] and not bounded.all():
            free = motors[int(np.argmin(bounded.all(axis=0)))]
            raise InputError(
                f"'{free}' has no effort limit, and there are more motors than freedoms", key="effort_limit",
                value=free, hint="give every motor a lowest and a highest effort",
            )  # fmt: skip
        made, named = _effort_rows(efforts, actuation, limits, motors)
        rows += made
        names += named
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
        places.s,
    )  # fmt: skip


def _efforts(here: Configuration, q1: Array, q2: Array, speed: float, push: float) -> tuple[Array, Array]:
    """A, B, D, G of efforts, or of generalised forces where motors are spare; and what these are for efforts."""
    speeds = speed * np.array(SAMPLES)
    spare = here.J_a.shape[0] > here.J_a.shape[1]
    found = [_forces(here, q1, q2, y, push, spare) for y in speeds]
    A = _forces(here, q1, q2, speed, push + 1.0, spare) - found[1]
    still = np.array(found) - push * A
    terms = np.linalg.solve(np.stack([speeds**2, speeds, np.ones(len(speeds))], axis=1), still)
    return np.stack([A, *terms], axis=1), here.J_a.T if spare else np.eye(len(A))


def _forces(here: Configuration, q1: Array, q2: Array, y: float, push: float, spare: bool) -> Array:
    """Efforts of the motors, or generalised forces where motors are spare, of the model itself."""
    state = state_at(here, q1 * y)
    f = state.forces(q2 * y**2 + push * q1)
    return here.J.T @ f if spare else state.efforts(f)


def model_forces(rows: PhaseRows, places: PathPlaces, speeds: Array, pushes: Array) -> Array:
    """What the model itself says at all places in the motion that was found."""
    spare = rows.actuation.shape[1] != rows.actuation.shape[2]
    moving = zip(places.robots, places.rates, places.bends, speeds, pushes, strict=True)
    return np.array([_forces(*each, spare) for each in moving])


def _effort_rows(
    efforts: Array, actuation: Array, limits: MotorLimits, motors: list[str]
) -> tuple[list[Array], list[tuple[str, str]]]:
    freedoms, count = actuation.shape[1:]
    if freedoms == count:
        rows, names = [], []
        for k in range(count):
            for bound, sign in ((limits.high[k], 1.0), (limits.low[k], -1.0)):
                if np.isfinite(bound):
                    half = _half(limits, k)
                    row = sign * efforts[:, k] / half
                    row[:, 3] += 1 - sign * bound / half  # sign (effort - bound) <= 0, in halves of the range
                    rows.append(row)
                    names.append(("effort", motors[k]))
        return rows, names
    made = [_facets(W, terms, limits) for W, terms in zip(actuation, efforts, strict=True)]
    width = max(len(facets) for facets in made)
    padded = np.zeros((len(made), width, 4))
    for k, facets in enumerate(made):
        padded[k, : len(facets)] = facets
    return list(padded.transpose(1, 0, 2)), [("effort", "motors together")] * width


def _half(limits: MotorLimits, k: int) -> float:
    """Half the range of efforts; the one bound that is there where the range is open."""
    both = limits.low[k], limits.high[k]
    if np.isfinite(both).all():
        return (both[1] - both[0]) / 2
    return abs(both[1] if np.isfinite(both[1]) else both[0]) or 1.0


def _facets(W: Array, terms: Array, limits: MotorLimits) -> Array:
    """Facets of all forces W tau for efforts in their ranges, as rows of the terms of the force that is asked for."""
    freedoms, count = W.shape
    centre, half = (limits.high + limits.low) / 2, (limits.high - limits.low) / 2
    scale = np.abs(W).max()
    rows = []
    for chosen in combinations(range(count), freedoms - 1):
        normal = np.linalg.svd(W[:, chosen].T / scale)[2][-1]
        reach = float(np.abs(normal @ W) @ half)
        if reach <= FLAT * scale * np.linalg.norm(half):
            continue
        row = normal @ terms / reach
        row[3] -= normal @ W @ centre / reach
        rows += [row, -row]
    return np.array(rows)
