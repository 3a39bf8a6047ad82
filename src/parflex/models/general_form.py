"""Models of any closed robot over any scalar, for a fixed choice of dependent rates.

The choice is made once, with numbers; the equations are then plain arithmetic: rates of the dependent coordinates by
one regular block, forces by its transpose. The pivoting of the blocks is left to `solve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.mobility import Partition
from parflex.closure.reduction import Reduction, reduction
from parflex.models.robot import Robot
from parflex.recursion import Pose, jacobians, joint_forces, mass_matrix, motion, newton_euler, pose
from parflex.spatial.linear import scalar_type, solve, solve_positive

Array = np.ndarray


@dataclass(frozen=True)
class GeneralForm:
    """A robot with its partition."""

    robot: Robot
    partition: Partition

    @property
    def independent_names(self) -> list[str]:
        """Names of the independent rates."""
        return [self.robot.tree.rate_names[k] for k in self.partition.independent]


@dataclass(frozen=True)
class GeneralState:
    """A pose with all rates, the reduction there and the bias of the closure rows."""

    form: GeneralForm
    at: Pose
    q: Any
    reduction: Reduction
    qd: Array
    b_star: Array


def general_state(form: GeneralForm, q: Any, rates: Array) -> GeneralState:
    """All rates from the independent ones."""
    tree, closures = form.robot.tree, form.robot.closures
    at = pose(tree, q)
    reduced = reduction(closures.jacobian(at, jacobians(tree, at)), form.partition)
    qd = reduced.rates(rates)
    return GeneralState(form, at, q, reduced, qd, closures.bias(at, motion(tree, at, qd, np.zeros(tree.n))))


def forces(state: GeneralState, accelerations: Array, without: tuple[str, ...]) -> Array:
    """Forces along all rates of the open tree for independent accelerations."""
    tree = state.form.robot.tree
    qdd = state.reduction.accelerations(accelerations, state.b_star)
    moving = motion(tree, state.at, state.qd, qdd, -tree.gravity)
    return newton_euler(tree, state.at, moving).forces + joint_forces(tree, state.q, state.qd, qdd, without)


def motor_efforts(reduced: Reduction, f: Array, actuated: Sequence[int], form: str = "split") -> Array:
    """Efforts from the forces of the open tree; as many motors as freedoms.

    "projected": J^T f = J_a^T tau, [Khalil2007, eq. (20)]. "split": the rows of the motors as they are, only the
    others are projected, [Khalil2007, eq. (22)]. Where the motors are the independent rates both are plain sums.
    """
    actuated, independent = list(actuated), list(reduced.partition.independent)
    if set(actuated) == set(independent):
        return reduced.forces(f)[[independent.index(k) for k in actuated]]
    J_a = reduced.matrix()[actuated]
    if form == "projected":
        return solve(J_a.T, reduced.forces(f))
    others = f.copy()
    others[actuated] = 0.0
    return f[actuated] + solve(J_a.T, reduced.forces(others))


def inverse(form: GeneralForm, q: Any, rates: Array, accelerations: Array, without: tuple[str, ...] = ()) -> Array:
    """Efforts of the motors for independent rates and accelerations."""
    state = general_state(form, q, rates)
    return motor_efforts(state.reduction, forces(state, accelerations, without), form.robot.actuated)


def independent_mass_matrix(state: GeneralState, without: tuple[str, ...] = ()) -> Array:
    """M in the independent rates."""
    J = state.reduction.matrix()
    return J.T @ mass_matrix(state.form.robot.tree, state.at, without) @ J


def direct(form: GeneralForm, q: Any, rates: Array, tau: Array, without: tuple[str, ...] = ()) -> Array:
    """Independent accelerations under the efforts of the motors."""
    state = general_state(form, q, rates)
    c = state.reduction.forces(forces(state, np.zeros(len(form.partition.independent)), without))
    push: Array = np.zeros(len(state.qd), dtype=scalar_type(tau))
    push[list(form.robot.actuated)] = tau
    return solve_positive(independent_mass_matrix(state, without), state.reduction.forces(push) - c)
