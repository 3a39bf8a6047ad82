"""Solve losses of rigid couplings: the effort in a gear determines its loss, and the loss changes that effort.

The loss of each gear applies forces to its other joints, theory (49). All other equations are linear in these forces.
The efforts in the gears without losses, and per force, leave a small system that is linear for each direction of power.
With one gear the direction is that without losses, unless the gear jams.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.constraints import Closures, Coupling
from parflex.closure.mobility import rank, scaled_jacobian
from parflex.closure.partition import Reduction
from parflex.errors import InputError, SingularError
from parflex.records import Record
from parflex.recursion.dynamics import mass_matrix
from parflex.spatial.linear import scalar_type, solve
from parflex.tree.force_elements import gear_loss

Array = np.ndarray
OPEN_SHARE = 1e-9  # share of a gear in combinations of efforts without motion that is above rounding
SETTLING, SETTLED = 60, 1e-13  # largest number of iterations, and relative change of efforts that is rounding
FLAT, NOTHING = 1e-12, 1e-9  # determinants, and efforts relative to the largest, that are rounding
MAX_ENUMERATED_GEARS = 6  # number of gears up to which all directions of power are tried


@dataclass(frozen=True, eq=False, repr=False)
class CouplingLosses(Record):
    """The lossy rigid couplings of a robot in a motion."""

    reduction: Reduction
    gears: tuple[Coupling, ...]
    rows: tuple[int, ...]  # theirs, among those of the reduction
    turns: Array  # directions in which their joints move

    @property
    def pushes(self) -> Array:
        """Forces along all rates per unit loss, one row per coupling."""
        forces: Array = np.zeros((len(self.gears), self.reduction.size), dtype=scalar_type(self.reduction.rest))
        for i, gear in enumerate(self.gears):
            for c, k in gear.others:
                forces[i, k] = c
        return forces

    def efforts(self, missing: Array) -> Array:
        """Return gear efforts that balance `missing` forces along dependent rates, theory (18); columns are cases."""
        dependent = self.reduction.partition.dependent
        return solve(self.reduction.block.T, missing[dependent])[list(self.rows)]

    def forces(self, missing: Array, per_loss: Array) -> tuple[Array, Array]:
        """Return losses and their forces along all rates from `missing` forces and their change `per_loss`."""
        losses = self._solved(self.efforts(missing), self.efforts(per_loss))
        return losses, self.pushes.T @ losses

    def settled(self, evaluate: Callable[[Array], tuple[Any, Array]], per_loss: Array) -> tuple[Any, Array]:
        """Return a result of `evaluate` that is nonlinear in the losses, and consistent forces along all rates."""
        K, losses = self.efforts(per_loss), np.zeros(len(self.gears))
        for _ in range(SETTLING):
            forces = self.pushes.T @ losses
            result, missing = evaluate(forces)
            effort = self.efforts(missing)
            new_losses = self._solved(effort - K @ losses, K)
            if np.abs(new_losses - losses).max() <= SETTLED * (np.abs(new_losses).max() + np.abs(effort).max()):
                return result, forces
            losses = new_losses
        name, hint = self.gears[0].name, "give wider effort limits, or leave out friction"
        text = f"the effort limits of the redundant motors and the loss of '{name}' have no common solution"
        raise SingularError(text, key="efficiency", value=name, hint=hint)

    def _solved(self, start: Array, K: Array) -> Array:
        """Return losses for efforts start + K losses by Newton's method, in floats by trying directions of power."""
        count = len(self.gears)
        if scalar_type(start, K, self.turns) is not object and count <= MAX_ENUMERATED_GEARS:
            return self._consistent_losses(start, K)
        effort = start
        for _ in range(1 if count == 1 else count + 1):
            shares = self._shares([np.sign(value) for value in effort])
            effort = solve(np.eye(count) - K * shares, start)
        return shares * effort * self._regular(K)

    def _consistent_losses(self, start: Array, K: Array) -> Array:
        """Return the losses for the only consistent direction of power of each gear; raise for none or several."""
        solutions: list[tuple[Array, Array]] = []  # efforts and losses
        size = float(np.abs(start).max())
        for directions in itertools.product((1.0, -1.0), repeat=len(self.gears)):
            shares = self._shares(directions)
            system = np.eye(len(self.gears)) - K * shares
            if abs(np.linalg.det(system)) < FLAT:
                raise self._jamming_error(K, shares)
            effort = np.linalg.solve(system, start)
            fits = np.all(np.array(directions) * effort >= -NOTHING * size)  # an idle gear fits both ways
            if fits and not any(np.abs(effort - known_effort).max() <= NOTHING * size for known_effort, _ in solutions):
                solutions.append((effort, shares * effort))
        if len(solutions) != 1:
            raise self._jamming_error(K, self._shares(-np.sign(start)))
        return solutions[0][1]

    def _shares(self, directions: Any) -> Array:
        sides = zip(self.gears, self.turns, directions, strict=True)
        return np.array([gear_loss(turn, side, gear.efficiency, gear.back) for gear, turn, side in sides])

    def _regular(self, K: Array) -> Any:
        """Return one, or in programs NaN where a gear jams, which ends a run."""
        factors = []
        for i in range(len(self.gears)):
            up, down = (1.0 - K[i, i] * self._shares(np.full(len(self.gears), side))[i] for side in (1.0, -1.0))
            factors.append(np.sqrt(up) * np.sqrt(down) / np.sqrt(up * down))
        return np.array(factors)

    def _jamming_error(self, K: Array, shares: Array) -> SingularError:
        """Return the error for no or several consistent directions of power."""
        worst = self.gears[int(np.argmin(1.0 - np.diag(K) * shares))].name
        text = f"the coupling '{worst}' jams in this motion: its losses allow no direction of power, or several"
        hint = "give it a stiffness, a higher efficiency_back, or leave out friction"
        return SingularError(text, key="efficiency", value=worst, hint=hint)


def coupling_losses(closures: Closures, reduction: Reduction, qd: Array) -> CouplingLosses | None:
    """Return the losses of rigid couplings in a motion with all rates `qd`, or None."""
    gears = [row for row in closures.constraints if isinstance(row, Coupling) and row.lossy]
    if not gears:
        return None
    row_starts = {id(row): part.start for part, row in zip(closures.slices(), closures.rows, strict=True)}
    chosen_rows = [int(row) for row in reduction.partition.rows]
    for gear in gears:
        if row_starts[id(gear)] not in chosen_rows:
            raise undetermined_loss_error(gear.name)
    rows = tuple(chosen_rows.index(row_starts[id(gear)]) for gear in gears)
    return CouplingLosses(reduction, tuple(gears), rows, np.array([gear.turning(qd) for gear in gears]))


def with_losses(
    state: Any, solved: Callable[[Array, Array], tuple[Array, Array]], c: Array, accelerations: Array
) -> tuple[Array, Array, Any]:
    """Return efforts and accelerations with losses, and loss forces; `solved` maps forces to both without losses."""
    (tau, qdd), losses = solved(c, accelerations), state.losses
    if losses is None:
        return tau, qdd, 0.0
    J, forces_per_loss = state.reduction.matrix, losses.pushes.T
    efforts_per_loss, accelerations_per_loss = solved(
        -(J.T @ forces_per_loss), np.zeros((len(accelerations), forces_per_loss.shape[1]))
    )
    missing = state.forces(state.bias + J @ qdd) - state.along_rates(tau)
    change = (
        mass_matrix(state.form.robot.tree, state.at) @ (J @ accelerations_per_loss)
        - forces_per_loss
        - state.along_rates(efforts_per_loss)
    )
    loss_efforts, loss_forces = losses.forces(missing, change)
    return tau + efforts_per_loss @ loss_efforts, qdd + accelerations_per_loss @ loss_efforts, loss_forces


def refuse_losses(closures: Closures, who: str, key: str = "efficiency") -> None:
    """Raise if a rigid coupling loses power, which `who` (with its verb) does not support."""
    for row in closures.constraints:
        if isinstance(row, Coupling) and row.lossy:
            hint = "leave out friction, or use the inverse model"
            raise InputError(f"{who} what the rigid coupling '{row.name}' loses", key=key, value=row.name, hint=hint)


def refuse_undetermined_losses(closures: Closures, q: Array, free: Array) -> None:
    """Raise if other rows share the load of a lossy gear at the positions `q`: its effort is undetermined."""
    parts = list(zip(closures.slices(), closures.rows, strict=True))
    gears = [(part.start, row.name) for part, row in parts if isinstance(row, Coupling) and row.lossy]
    if not gears:
        return
    rows = scaled_jacobian(closures, q)[:, free]
    U = np.linalg.svd(rows)[0][:, rank(rows) :]  # combinations of efforts that act on nothing
    for row, name in gears:
        if np.abs(U[row]).max(initial=0.0) > OPEN_SHARE:
            raise undetermined_loss_error(name)


def undetermined_loss_error(name: str) -> SingularError:
    """Return the error for a gear whose effort, and thus loss, is undetermined."""
    text = f"the coupling '{name}' is redundant: its effort, and thus its loss, is undetermined"
    hint = "remove the coupling or the constraint that it repeats, or leave out friction"
    return SingularError(text, key="efficiency", value=name, hint=hint)
