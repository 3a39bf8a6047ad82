"""Gauss-Newton on the rows of a part: short steps with backtracking, longer ones for screws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.closure.loops import Loop
from parflex.closure.working_modes import Rows
from parflex.recursion.kinematics import jacobians, pose
from parflex.tree.tree import Tree

Array = np.ndarray
CLOSED = 1e-10  # of the typical length: Newton ends far below, an open loop far above
STALLED = 0.97  # of the squared opening: steps that leave more, five in a row, do not converge; double roots leave 1/16
NEARLY = 0.01  # of the squared opening: where screws turn many times, a step that leaves less is taken whole
FALLING = 0.5  # of the opening: whole steps from nearby leave less
STRIDE = 0.5  # longest Newton step, as an angle: longer ones jump to other assemblies


def newton(tree: Tree, q: Array, columns: Array, rows: Sequence[Rows], steps: int) -> tuple[Array, float]:
    """Newton on a tree that carries all rows."""
    L = tree.length
    at = pose(tree, q)
    r = stack(row.residual(at, L) for row in rows) / L
    error, polish, slow = largest(r), 0, 0
    if not len(columns):
        return q, error
    units = tree.rate_units[columns] / L
    scale = np.concatenate([row.scale(L) for row in rows]) if rows else np.zeros(0)
    screws, along = strides(tree, columns, rows)
    driven = [_as_if_closed(row) if screws else row for row in rows]
    for _ in range(steps):
        if error <= CLOSED:
            polish += 1  # near a singular leg the last digits come slowly
            if polish > 30 or error < 1e-15:
                break
        links = jacobians(tree, at, columns)
        J = np.concatenate([row.jacobian(tree, at, links)[:, columns] for row in driven]) * scale[:, None] * units
        step = np.linalg.lstsq(J, -r, rcond=1e-10)[0]
        longest = largest(step * along)
        if not (screws and _left(tree, q, columns, step, rows, r) < NEARLY):
            step *= min(1.0, STRIDE / longest) if longest > 0 else 1.0
        for _ in range(12):
            increment = np.zeros(tree.n)
            increment[columns] = step * tree.rate_units[columns]
            trial = tree.moved(q, increment)
            trial_at = pose(tree, trial)
            trial_r = stack(row.residual(trial_at, L) for row in rows) / L
            if trial_r @ trial_r < r @ r:
                break
            step = step / 3
        else:
            break
        slow = slow + 1 if trial_r @ trial_r > STALLED * (r @ r) and not screws else 0
        q, at, r, error = trial, trial_at, trial_r, largest(trial_r)
        if slow > 4 and error > CLOSED:
            break  # at a smallest opening that is not zero
    return q, error


def corrected(tree: Tree, q: Array, columns: Array, rows: Sequence[Rows], steps: int) -> tuple[Array, float]:
    """Newton with whole steps from nearby, to `CLOSED`; what they do not close at once is given up.

    So it is after a step along a way: what would take short steps, or many, is too far.
    """
    L, units = tree.length, tree.rate_units[columns]
    scale = np.concatenate([row.scale(L) for row in rows])
    before = np.inf
    for _ in range(steps):
        at = pose(tree, q)
        r = stack(row.residual(at, L) for row in rows) / L
        error = largest(r)
        if error <= CLOSED or not error < FALLING * before:
            return q, error
        links = jacobians(tree, at, columns)
        J = np.concatenate([row.jacobian(tree, at, links)[:, columns] for row in rows]) * scale[:, None] * (units / L)
        increment = np.zeros(tree.n)
        increment[columns] = np.linalg.lstsq(J, -r, rcond=1e-10)[0] * units
        q, before = tree.moved(q, increment), error
    return q, np.inf


def strides(tree: Tree, columns: Array, rows: Sequence[Rows]) -> tuple[bool, Array]:
    """Whether screws turn in the rows, and how much of a step of each rate counts as one of an angle.

    Screws go far by many turns; rates that only couplings hold enter linearly, and no step of them is too long.
    """
    pitches = np.array([abs(tree.links[tree.link_of_rate[k]].joint.pitch) for k in columns])
    couplings = [row for row in rows if isinstance(row, Coupling)]
    for row in couplings:
        pitches = np.maximum(pitches, [0.0 if np.any(tree.rate_units[k] != 1) else row.lead_of(k) for k in columns])
    along = np.where(pitches, pitches / tree.length, 1.0)
    if couplings:
        bent = {j for row in rows if not isinstance(row, Coupling) for j in row.links(tree)}
        along = np.where([tree.link_of_rate[k] in bent for k in columns], along, 0.0)
    return bool(pitches.any()), along


def _as_if_closed(row: Rows) -> Rows:
    """A loop whose slopes do not turn the gap with its first end, which a screw would turn many times."""
    return replace(row, closed=True) if isinstance(row, Loop) and row.turning != "none" else row


def _left(tree: Tree, q: Array, columns: Array, step: Array, rows: Sequence[Rows], r: Array) -> float:
    """Share of the squared opening that a step leaves."""
    increment = np.zeros(tree.n)
    increment[columns] = step * tree.rate_units[columns]
    at = pose(tree, tree.moved(q, increment))
    there = stack(row.residual(at, tree.length) for row in rows) / tree.length
    return float(there @ there) / float(r @ r)


def stack(parts: Iterator[Array] | Sequence[Array]) -> Array:
    """Rows of all parts, one below the other."""
    rows = list(parts)
    return np.concatenate(rows) if rows else np.zeros(0)


def largest(values: Array) -> float:
    """Largest size; of none, zero."""
    return float(np.abs(values).max()) if len(values) else 0.0
