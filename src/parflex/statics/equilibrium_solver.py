"""Find static equilibria of rows of states by Newton's method, or by arc length while the loads grow.

Newton's method from the pose is accepted if every tangent stiffness is positive definite, the stiffness along each step
stays within a factor of two, and steps stay below bounds that start at the trust length and halve.

Otherwise the stable states are followed by arc length in motion and load factor s, from the pose with its tension
released to all of the loads: F(q, s) = s F_1(q) + (1 - s) (F_0(q) - F_0(q_0)). F_1 are the forces under all loads and
F_0 those without loads. Where loads alone hold a coordinate, as the weight holds a pendulum, F_0 = F_1. The path ends
at a critical point, where the tangent stiffness becomes singular: states beyond it are not searched.

Steps, arcs and planes are those of all rates without units, so that they do not depend on the independent rates.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import numpy as np

from parflex.closure.partition import Partition
from parflex.records import Record
from parflex.statics.linear_system import REGULAR, loads_rigid_modes, split_stiffness

Array = np.ndarray

TRUST = 0.3  # rad or characteristic lengths: the tangent of a rotation by TRUST has an error of a tenth
CONTRACTION = 0.5  # of consecutive bounds of Newton steps: slower convergence is a failure
STEADY = 2.0  # factor of the stiffness along a Newton step beyond which the step may pass unstable states
FINE = 1e-12  # rad or characteristic lengths: a shorter step is the last, because the next would be rounding
ROUNDING = 1e-9  # rad, characteristic lengths or of the largest eigenvalue: rounding of ill-conditioned tangents
QUADRATIC = 1e-7  # of the displacement: the square of a shorter step is rounding, so it is the last
NEAR = 1e-6  # rad, characteristic lengths or of an arc: distance within which the tangent stiffness is accurate
FIRST_ARC, LONGEST_ARC = 0.1, 0.6  # load factor, rad or characteristic lengths: a path has several points
SHORTEST_ARC = 2e-4  # resolves the load factor of a critical point, and columns with an imperfection of 1e-4 rad
FOLD_ARC = 0.02  # arc across a limit point: the error of its load factor is about the square
FEW = 5  # Newton steps to a point below which arcs become longer
ALIGNED = 0.87  # cosine between tangents at both ends of an arc: a right angle takes three arcs
MOST_ARCS = 100  # more than a path with several folds needs


@dataclass(eq=False, repr=False)
class States(Record):
    """Rows of states, with motions and forces along the independent rates without units.

    `motions` are all rates per independent rate, `force` the reduced forces at the load factor, and `load` their
    derivative with respect to the load factor. `ok` marks the rows that are defined.
    """

    partition: Partition
    q: Array
    motions: Array
    K: Array
    force: Array
    load: Array
    ok: Array

    def of_rows(self, rows: Array) -> States:
        """Return the states of some rows."""
        own = {field.name: getattr(self, field.name)[rows] for field in fields(self) if field.name != "partition"}
        return replace(self, **own)

    def put(self, rows: Array, other: States) -> States:
        """Return these states with some rows replaced."""
        if len(rows) == len(self.q):  # a single row may have another partition
            return other
        for name in (field.name for field in fields(self) if field.name != "partition"):
            getattr(self, name)[rows] = getattr(other, name)
        return self


class StaticModel(Protocol):
    """A robot under loads, in rows of positions."""

    @property
    def rate_units(self) -> Array:
        """Units of all rates."""

    def states(self, q: Array, share: Array, rows: Array) -> States:
        """Return the states at positions under a share of the loads of these rows."""

    def mass(self, states: States, row: int) -> Array:
        """Return the mass matrix of one of the states, along its independent rates without units."""

    def moved(self, states: States, x: Array) -> tuple[Array, Array]:
        """Return positions after motions of the independent rates with all loops closed, and the rows that close."""

    def released(self, q: Array, loads_hold: bool) -> Self:
        """Return the model with a path of loads, along which the tension at the positions `q` is released."""

    def stretch(self, q: Array) -> tuple[Array, Array]:
        """Return the stretch of the couplings from the middle of their backlash, and half of the backlash."""

    def on_flanks(self, q: Array, flanks: Array) -> tuple[Self, Array]:
        """Return the model whose couplings push and pull on these flanks, and its positions."""


@dataclass(eq=False, repr=False)
class Equilibria(Record):
    """Rows of equilibria: positions, rows that have one, load factor reached and number of linearised states.

    `last` has the last stable state of rows whose path of loads was followed, and `critical` those of them that stop at
    a critical point; the path of others is lost.
    """

    q: Array
    ok: Array
    share: Array
    steps: Array
    last: dict[int, States]
    critical: set[int]


@dataclass(eq=False, repr=False)
class Inverse(Record):
    """Inverses of rows of stiffnesses; `free` has mass-normalised motions without stiffness by row, and force rows."""

    matrices: Array
    free: dict[int, tuple[Array, Array]]
    ok: Array

    def driven(self, columns: Array) -> Array:
        """Return the rows in which one of the loads (rows x rates x loads) drives a motion without stiffness."""
        driven = np.zeros(len(self.ok), dtype=bool)
        for k, (motions, along) in self.free.items():
            driven[k] = loads_rigid_modes(motions, columns[k], along @ columns[k])
        return driven


def inverse_of(model: StaticModel, states: States) -> Inverse:
    """Return the inverses of the stiffnesses of states."""
    K, ok = states.K, states.ok & np.isfinite(states.K).all(axis=(1, 2))
    inverse = Inverse(np.zeros_like(K), {}, ok)
    for k in np.flatnonzero(ok).tolist():
        try:
            inverse.matrices[k] = np.linalg.inv(K[k])
            if np.linalg.norm(K[k], 1) * np.linalg.norm(inverse.matrices[k], 1) < REGULAR:
                continue
        except np.linalg.LinAlgError:
            pass  # singular to the last digit
        try:
            split = split_stiffness((K[k] + K[k].T) / 2, model.mass(states, k))
            inverse.matrices[k], along = split.solve(np.eye(K.shape[1]))
            inverse.free[k] = (split.free, along)
        except (np.linalg.LinAlgError, ValueError):
            ok[k], inverse.matrices[k] = False, 0.0
    return inverse


def is_positive(K: Array) -> bool:
    """Return whether a stiffness without units has no negative eigenvalue beyond rounding."""
    K = (K + K.T) / 2
    if not np.isfinite(K).all():
        return False
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        values = np.linalg.eigvalsh(K)
        return bool(values.min(initial=0.0) >= -ROUNDING * np.abs(values).max(initial=0.0))
    return True


def find_equilibria(model: StaticModel, q: Array) -> Equilibria:
    """Return the equilibria that loads reach in stable states from rows of positions."""
    count, n = len(q), len(model.rate_units)
    ones, full_load = np.ones(count), np.zeros((count, n + 1))
    full_load[:, n] = 1.0
    point = _corrected(model, q, ones, full_load, TRUST * ones, 0.0 * ones, np.arange(count))
    equilibria = Equilibria(np.where(point.ok[:, None], point.q, q), point.ok, 1.0 * point.ok, point.steps, {}, set())
    for loads_hold in (False, True):
        rows = np.array([k for k in np.flatnonzero(~equilibria.ok).tolist() if k not in equilibria.last], dtype=int)
        if len(rows):
            _follow(model.released(q, loads_hold), equilibria, rows)
    return equilibria


def find_on_flanks(model: StaticModel, q: Array) -> Equilibria:
    """Return the equilibria at which loads press each coupling with backlash to one of its flanks.

    Without backlash the loads determine in which direction a coupling is stretched. On that flank, which pushes and
    pulls, the equilibrium is computed; rows in which a flank pulls have none.
    """
    stretch, half = model.stretch(q)
    inside, flanks = np.abs(stretch) <= half, np.sign(stretch) * half
    centred = find_equilibria(*model.on_flanks(q, np.where(inside, 0.0, flanks)))
    pressed = np.sign(model.stretch(centred.q)[0]) * half
    flanks = np.where(inside, pressed, flanks)
    equilibria = find_equilibria(*model.on_flanks(centred.q, flanks))
    equilibria.ok &= centred.ok & (np.sign(flanks) * model.stretch(equilibria.q)[0] - half > FINE).all(axis=1)
    equilibria.steps += centred.steps
    return equilibria


@dataclass(eq=False, repr=False)
class _Points(Record):
    """Rows of points on a path: the last states before convergence, and unit directions of the path there."""

    q: Array
    share: Array
    ok: Array
    stable: Array
    steps: Array
    along: Array
    states: States


def _corrected(
    model: StaticModel, q: Array, share: Array, across: Array, reach: Array, near: Array, rows: Array
) -> _Points:
    """Newton's method to the states of balance in the planes across directions of all rates and the load factor.

    The first step is at most `reach`, and a step below `near` is the last. With `near` zero, all states have to be
    stable and the stiffness steady.
    """
    nowhere = np.zeros(len(rows), dtype=bool)
    at = model.states(q.copy(), share, rows)
    point = _Points(q.copy(), share.copy(), nowhere.copy(), nowhere.copy(), nowhere.astype(int), across.copy(), at)
    stands, free, way, going = nowhere.copy(), near > 0.0, np.zeros(len(rows)), np.arange(len(rows))
    step, along_step = np.zeros_like(across[:, :-1]), np.zeros(len(rows))  # without units, and the stiffness along it
    for number in itertools.count():  # bounds fall below rounding, which ends it
        inverse, loads = inverse_of(model, at), np.stack([at.force, at.load], axis=2)
        solved, motions = inverse.matrices @ loads, at.motions / model.rate_units[:, None]
        plane, upward = np.einsum("rn,rnj->rj", across[going, :-1], motions), across[going, -1]
        away, ahead = solved[:, :, 0], -solved[:, :, 1]  # motions per load factor
        with np.errstate(all="ignore"):
            more = np.sum(plane * away, axis=1) / (upward + np.sum(plane * ahead, axis=1))
        x = more[:, None] * ahead - away
        motion = (motions @ x[:, :, None])[:, :, 0]
        size, bound = np.sqrt(np.sum(motion * motion, axis=1) + more * more), CONTRACTION**number * reach[going]
        if number == 0:
            stands = size <= NEAR
        stable = np.array([is_positive(K) for K in at.K])
        point.steps[going] += 1
        point.stable[going], point.along[going] = stable, _over_all_rates(model, at, ahead)
        before = step[going][:, at.partition.independent]
        now = np.einsum("ri,rij,rj->r", before, at.K, before)
        steady = (now <= STEADY * along_step[going]) & (now >= along_step[going] / STEADY) | (way[going] <= NEAR)
        good = inverse.ok & ~inverse.driven(loads) & (stable & steady | stands[going] | free[going])
        good &= size <= np.maximum(bound, ROUNDING)
        step[going] = motion
        along_step[going] = -np.sum(x * at.force, axis=1)
        way[going] += size
        last = (size <= np.maximum(near[going], np.maximum(QUADRATIC * way[going], FINE))) | (bound < ROUNDING)
        x[~good] = 0.0
        moved, closed = model.moved(at, x)
        moved[~closed] = at.q[~closed]
        good &= closed | (size < ROUNDING)
        point.q[going[good]], point.share[going[good]] = moved[good], (point.share[going] + more)[good]
        point.ok[going] = good & last
        going = going[good & ~last]
        if not len(going):
            break
        at = model.states(point.q[going], point.share[going], rows[going])
        point.states = point.states.put(going, at)
    return point


def _over_all_rates(model: StaticModel, at: States, ahead: Array) -> Array:
    """Return unit directions of the path over all rates and the load factor."""
    motions = (at.motions @ ahead[:, :, None])[:, :, 0] / model.rate_units
    along = np.concatenate([motions, np.ones((len(ahead), 1))], axis=1)
    return along / np.linalg.norm(along, axis=1)[:, None]


def _follow(model: StaticModel, equilibria: Equilibria, rows: Array) -> None:
    """Follow the stable states of rows while their loads grow, up to all loads or a critical point.

    The predictor is of second order: first order would stretch slender beams, and their tension misleads the corrector.
    """
    count, n = len(rows), len(model.rate_units)
    q, share, arc, shortened = equilibria.q[rows], np.zeros(count), np.full(count, FIRST_ARC), np.zeros(count, bool)
    here = model.states(q.copy(), share, rows)
    inverse, load = inverse_of(model, here), here.load[:, :, None]
    stable = inverse.ok & ~inverse.driven(load) & np.array([is_positive(K) for K in here.K])
    along = _over_all_rates(model, here, -(inverse.matrices @ load)[:, :, 0])
    bend, full_load = np.zeros_like(along), np.append(np.zeros(n), 1.0)
    equilibria.steps[rows] += 1
    critical = np.zeros(count, bool)
    for _ in range(MOST_ARCS):
        going = np.flatnonzero(stable & (share < 1.0) & (arc >= SHORTEST_ARC))
        if not len(going):
            break
        at = here.of_rows(going)
        own = along[going][:, np.append(at.partition.independent, n)]
        step = np.minimum(arc[going], (1.0 - share[going]) / own[:, -1])
        last = step < arc[going]
        curve = bend[going][:, np.append(at.partition.independent, n)]
        motion = step[:, None] * own + (step**2 / 2)[:, None] * curve
        ahead, closed = model.moved(replace(at, q=q[going]), motion[:, :-1])
        point = _corrected(
            model,
            ahead,
            np.where(last, 1.0, share[going] + motion[:, -1]),
            np.where(last[:, None], full_load, along[going]),
            CONTRACTION * step,
            np.where(last, FINE, NEAR * step),
            rows[going],
        )
        equilibria.steps[rows[going]] += point.steps
        turn = np.sum(point.along * along[going], axis=1)
        found = closed & point.ok
        fold = found & (turn <= -ALIGNED) & (step <= FOLD_ARC)  # the path of stable states turned back
        good = found & point.stable & (point.share <= 1.0) & ((turn >= ALIGNED) | (step <= 2 * SHORTEST_ARC))
        longer = np.where(shortened[going] | (point.steps > FEW), 1.0, 1.0 / CONTRACTION) * step
        arc[going] = np.where(good, np.minimum(LONGEST_ARC, longer), np.where(fold, 0.0, step / 2))
        shortened[going], there = ~good, going[good]
        critical[going] = fold | found & ~point.stable
        if len(there):
            bend[there] = (point.along[good] - along[there]) / step[good][:, None]
            q[there], share[there], along[there] = point.q[good], point.share[good], point.along[good]
            here = here.put(there, point.states.of_rows(np.flatnonzero(good)))
    for k in np.flatnonzero(stable).tolist():
        row = int(rows[k])
        equilibria.q[row], equilibria.share[row], equilibria.ok[row] = q[k], share[k], share[k] == 1.0
        equilibria.last[row] = here.of_rows(np.array([k]))
        if critical[k]:
            equilibria.critical.add(row)
