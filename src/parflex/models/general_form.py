"""Models of any closed robot over any scalar, for a fixed choice of dependent rates.

The choice is made once, with numbers; the equations are then plain arithmetic: rates of the dependent coordinates by one regular
block, forces by its transpose. The pivoting of the blocks is left to `solve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.mobility import Partition
from parflex.models.configuration import Configuration
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


def general_form(robot: Robot) -> GeneralForm:
    """The form with the partition that is best at home."""
    return GeneralForm(robot, Configuration(robot, robot.home).reduction.partition)


@dataclass(frozen=True)
class GeneralState:
    """A pose with all rates, the blocks of the closures and their bias."""

    form: GeneralForm
    at: Pose
    q: Any
    qd: Array
    block: Array  # J_f
    rest: Array  # J_0: rows of the independent rates
    bias: Array  # b_star


def general_state(form: GeneralForm, q: Any, rates: Array) -> GeneralState:
    """All rates from the independent ones."""
    robot, part = form.robot, form.partition
    tree = robot.tree
    at = pose(tree, q)
    qd = np.zeros(tree.n, dtype=scalar_type(rates, at.rotation[0], at.rotation[-1]))
    qd[part.independent] = rates
    if not len(part.dependent):
        empty = np.zeros((0, 0))
        return GeneralState(form, at, q, qd, empty, np.zeros((0, len(rates))), np.zeros(0))
    J = robot.closures.jacobian(at, jacobians(tree, at))
    block, rest = J[np.ix_(part.rows, part.dependent)], J[np.ix_(part.rows, part.independent)]
    qd[part.dependent] = solve(block, -(rest @ rates))
    bias = robot.closures.bias(at, motion(tree, at, qd, np.zeros(tree.n)))[part.rows]
    return GeneralState(form, at, q, qd, block, rest, bias)


def all_accelerations(state: GeneralState, accelerations: Array) -> Array:
    """All accelerations from the independent ones."""
    part = state.form.partition
    qdd = np.zeros(len(state.qd), dtype=scalar_type(state.qd, accelerations))
    qdd[part.independent] = accelerations
    if len(part.dependent):
        qdd[part.dependent] = solve(state.block, -(state.rest @ accelerations) - state.bias)
    return qdd


def forces(state: GeneralState, qdd: Array, without: tuple[str, ...]) -> Array:
    """Forces along all rates of the open tree."""
    tree = state.form.robot.tree
    base = np.zeros(3) if "gravity" in without else -tree.gravity
    moving = motion(tree, state.at, state.qd, qdd, base)
    return newton_euler(tree, state.at, moving).forces + joint_forces(tree, state.q, state.qd, qdd, without)


def reduced(state: GeneralState, f: Array) -> Array:
    """J^T f: forces along the independent rates."""
    part = state.form.partition
    if not len(part.dependent):
        return f[part.independent]
    return f[part.independent] - state.rest.T @ solve(state.block.T, f[part.dependent])


def all_rates(state: GeneralState) -> Array:
    """J: all rates per independent rate."""
    part = state.form.partition
    J = np.zeros((len(state.qd), len(part.independent)), dtype=scalar_type(state.block))
    J[part.independent, range(len(part.independent))] = 1.0
    if len(part.dependent):
        J[part.dependent] = solve(state.block, -state.rest)
    return J


def inverse(form: GeneralForm, q: Any, rates: Array, accelerations: Array, without: tuple[str, ...] = ()) -> Array:
    """Efforts of the motors for independent rates and accelerations. As many motors as freedoms."""
    state = general_state(form, q, rates)
    f = forces(state, all_accelerations(state, accelerations), without)
    actuated = list(form.robot.actuated)
    if set(actuated) == set(form.partition.independent):
        order = [list(form.partition.independent).index(k) for k in actuated]
        return reduced(state, f)[order]
    # motors among the dependent rates: their rows as they are, the others projected [Khalil2007, eq. (22)]
    others = f.copy()
    others[actuated] = 0.0
    return f[actuated] + solve(all_rates(state)[actuated].T, reduced(state, others))


def independent_mass_matrix(state: GeneralState, without: tuple[str, ...] = ()) -> Array:
    """M in the independent rates."""
    J = all_rates(state)
    return J.T @ mass_matrix(state.form.robot.tree, state.at, without) @ J


def direct(form: GeneralForm, q: Any, rates: Array, tau: Array, without: tuple[str, ...] = ()) -> Array:
    """Independent accelerations under the efforts of the motors."""
    state = general_state(form, q, rates)
    zero = np.zeros(len(form.partition.independent))
    c = reduced(state, forces(state, all_accelerations(state, zero), without))
    push = np.zeros(len(state.qd), dtype=scalar_type(tau))
    push[list(form.robot.actuated)] = tau
    return solve_positive(independent_mass_matrix(state, without), reduced(state, push) - c)
