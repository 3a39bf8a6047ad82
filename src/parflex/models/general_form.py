"""Models of any closed robot over any scalar, for a fixed choice of dependent rates.

The choice is made once, with numbers; the equations are then plain arithmetic: rates of the dependent coordinates by
one regular block, forces by its transpose. The pivoting of the blocks is left to `solve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from parflex.closure.loops import Closures, Loop
from parflex.closure.mobility import Partition, scaled_jacobian
from parflex.closure.reduction import Reduction, reduction
from parflex.models.dynamics.forces import no_inertia
from parflex.models.robot import Robot
from parflex.recursion import Pose, jacobians, joint_forces, mass_matrix, motion, newton_euler, pose
from parflex.spatial.linear import scalar_type, solve, solve_positive

Array = np.ndarray
CHANGE = 1e-9  # lengths and directions that differ by less between two random poses are the same, but for rounding


@dataclass(frozen=True)
class GeneralForm:
    """A robot with its partition; its loops may be seen from other ends than those of the file."""

    robot: Robot
    partition: Partition

    @property
    def independent_names(self) -> list[str]:
        """Names of the independent rates."""
        return [self.robot.tree.rate_names[k] for k in self.partition.independent]


def general_form(robot: Robot, partition: Partition, rows: Sequence[int] = ()) -> GeneralForm:
    """The form in which the closures of a robot cost least, for rates that were chosen before.

    `rows` of `cheapest_closures` give the dependent rates; where none are named, those that do it best at home.
    """
    closures = cheapest_closures(robot)
    if not len(partition.rows):
        return GeneralForm(robot, partition)
    chosen = np.array(rows, dtype=int) if rows else best_rows(closures, robot.home, partition.dependent)
    return GeneralForm(replace(robot, closures=closures), replace(partition, rows=chosen))


def best_rows(closures: Closures, q: Array, dependent: Array) -> Array:
    """As many rows of the closures as there are dependent rates, those that determine them best at a pose."""
    block = scaled_jacobian(closures, q)[:, dependent]
    return np.sort(scipy.linalg.qr(block.T, mode="r", pivoting=True)[1][: len(dependent)])


def cheapest_closures(robot: Robot) -> Closures:
    """The closures of a robot, each seen from the end from which it costs least.

    Loops are taken as closed, which every pose of a model is, and seen from the end from which fewer entries of the
    joints' columns change from pose to pose: seen from the end of a leg, the axes of its last joints stand still.
    """
    tree = robot.tree
    joints = [k for k in range(tree.n) if tree.links[tree.link_of_rate[k]].joint.kind not in ("free", "planar")]
    loops = []
    for loop in robot.closures.loops:
        ends = [replace(end, closed=True) for end in (loop, loop.reversed(tree)) if end is not None]
        loops.append(min(ends, key=lambda end: _changing(robot, end, joints)))
    return replace(robot.closures, loops=tuple(loops))


def _changing(robot: Robot, loop: Loop, columns: list[int]) -> int:
    """How many entries of the rows of a loop in these columns differ between poses; any poses will do."""
    found = []
    for seed in range(2):
        q = robot.home + np.random.default_rng(seed).uniform(-1, 1, len(robot.home))
        at = pose(robot.tree, q)
        found.append(loop.jacobian(robot.tree, at, jacobians(robot.tree, at))[:, columns])
    return int(np.sum(np.abs(found[0] - found[1]) > CHANGE))


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


def forces(
    state: GeneralState,
    accelerations: Array,
    without: tuple[str, ...],
    external: Mapping[int, tuple[Array, Array]] | None = None,
) -> Array:
    """Forces along all rates of the open tree for independent accelerations; `external` wrenches act on links."""
    tree = state.form.robot.tree
    # the independent accelerations alone open the loops; that the others close them again costs fewer operators than J
    start: Array = np.zeros(tree.n, dtype=scalar_type(accelerations, state.qd))
    start[state.form.partition.independent] = accelerations
    opening = state.form.robot.closures.bias(state.at, motion(tree, state.at, state.qd, start))
    qdd = start + state.reduction.closing(opening)
    moving = motion(tree, state.at, state.qd, qdd, -tree.gravity)
    return newton_euler(tree, state.at, moving, external).forces + joint_forces(tree, state.q, state.qd, qdd, without)


def motor_efforts(reduced: Reduction, f: Array, actuated: Sequence[int], form: str = "split") -> Array:
    """Efforts from the forces of the open tree; as many motors as freedoms.

    "projected": J^T f = J_a^T tau, [Khalil2007, eq. (20)]. "split": the rows of the motors as they are, only the
    others are projected, [Khalil2007, eq. (22)]. Where the motors are the independent rates both are plain sums.
    """
    actuated, independent = list(actuated), list(reduced.partition.independent)
    if set(actuated) == set(independent):
        return reduced.forces(f)[[independent.index(k) for k in actuated]]
    J_a = reduced.matrix[actuated]
    if form == "projected":
        return solve(J_a.T, reduced.forces(f))
    others = f.copy()
    others[actuated] = 0.0
    return f[actuated] + solve(J_a.T, reduced.forces(others))


def inverse(form: GeneralForm, q: Any, rates: Array, accelerations: Array, without: tuple[str, ...] = ()) -> Array:
    """Efforts of the motors for independent rates and accelerations, theory (14), (16)."""
    state = general_state(form, q, rates)
    return motor_efforts(state.reduction, forces(state, accelerations, without), form.robot.actuated)


def independent_mass_matrix(state: GeneralState, without: tuple[str, ...] = ()) -> Array:
    """M in the independent rates."""
    J = state.reduction.matrix
    return J.T @ mass_matrix(state.form.robot.tree, state.at, without) @ J


def direct(form: GeneralForm, q: Any, rates: Array, tau: Array, without: tuple[str, ...] = ()) -> Array:
    """Independent accelerations under the efforts of the motors."""
    return accelerations_under(general_state(form, q, rates), tau, without)


def accelerations_under(
    state: GeneralState,
    tau: Array,
    without: tuple[str, ...] = (),
    external: Mapping[int, tuple[Array, Array]] | None = None,
) -> Array:
    """Independent accelerations under the efforts of the motors, of a state."""
    still = np.zeros(len(state.form.partition.independent))
    c = state.reduction.forces(forces(state, still, without, external))
    push: Array = np.zeros(len(state.qd), dtype=scalar_type(tau))
    push[list(state.form.robot.actuated)] = tau
    try:
        return solve_positive(independent_mass_matrix(state, without), state.reduction.forces(push) - c)
    except np.linalg.LinAlgError:
        raise no_inertia() from None


def driven(
    form: GeneralForm, q: Any, rates: Array, accelerations: Array, without: tuple[str, ...] = ()
) -> tuple[Array, Array]:
    """Efforts of motors among the independent rates for their accelerations, and all independent accelerations."""
    return efforts_for(general_state(form, q, rates), accelerations, without)


def efforts_for(
    state: GeneralState,
    accelerations: Array,
    without: tuple[str, ...] = (),
    external: Mapping[int, tuple[Array, Array]] | None = None,
) -> tuple[Array, Array]:
    """Efforts of motors among the independent rates for their accelerations, and all independent accelerations."""
    independent = list(state.form.partition.independent)
    count = len(independent)
    motors = [independent.index(k) for k in state.form.robot.actuated]
    rest = [k for k in range(count) if k not in set(motors)]
    qdd: Array = np.zeros(count, dtype=scalar_type(state.qd, accelerations))
    qdd[motors] = accelerations
    if rest:
        M = independent_mass_matrix(state, without)
        c = state.reduction.forces(forces(state, np.zeros(count), without, external))
        qdd[rest] = solve_positive(M[np.ix_(rest, rest)], -c[rest] - M[np.ix_(rest, motors)] @ qdd[motors])
        return M[motors] @ qdd + c[motors], qdd
    return state.reduction.forces(forces(state, qdd, without, external))[motors], qdd
