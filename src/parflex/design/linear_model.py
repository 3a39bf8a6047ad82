"""The linear model of a robot with derivatives: held as specified, at its pose or about its equilibrium.

Stationary values need no derivative of the motions at which they are stationary: with float motions of the independent
rates, energies of the robot with derivatives give those of frequencies, compliances and deflections, theory (61), (62).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from parflex.design.design_state import DesignState, FollowingConfiguration, ResponseCase
from parflex.errors import InputError
from parflex.recursion.energy import kinetic_energy
from parflex.robot.load import acting_robot
from parflex.spatial.dual import (
    Sensitive,
    dual_type,
    seed_slopes,
    slope_count,
    slopes,
    slopes_last,
    with_slopes,
    without_slopes,
)
from parflex.spatial.linear import is_symbolic
from parflex.statics.linear_model import LinearModel, linear_model_of, tree_stiffness
from parflex.statics.linear_system import StiffnessSolver
from parflex.statics.loads import AppliedLoads, forces_along, held_robot, multipliers

Array = np.ndarray


class HeldState:
    """The linear model of a robot, and the robot with slopes as it is held and loaded there.

    `frames` inside beams become nodes.
    """

    def __init__(self, state: DesignState, frames: Sequence[str] = ()) -> None:
        state = state.with_nodes_at([*frames, *state.case.deforming_frames])
        self.state, circumstances = state, state.case
        if not state.robot.tree.elastic and not _springy(state.robot, circumstances):
            raise InputError(
                "the robot has no elastic bodies, no springs and no servos: nothing vibrates or deflects",
                key="response",
                value=state.robot.name,
                hint="use a robot with flexible bodies, or hold the motors by servo stiffnesses (servo)",
            )
        self.model: LinearModel = linear_model_of(state.robot, state.here, circumstances)
        if self.model.loading.internal is not None:
            raise InputError(
                "spare motors keep this robot taut, and sensitivities of their efforts are not covered",
                key="response",
                value=state.robot.name,
                hint="lock the motors, or ask for a response without stiffness",
            )

    @property
    def loading(self) -> AppliedLoads:
        """What acts on the robot."""
        return self.model.loading

    @cached_property
    def solver(self) -> StiffnessSolver:
        """Solves systems with the stiffness."""
        return StiffnessSolver(self.model.configuration, self.model.K)

    @cached_property
    def start(self) -> FollowingConfiguration:
        """The robot with slopes at the pose before loads deform it."""
        state, circumstances = self.state, self.state.case
        twin = acting_robot(state.twin, circumstances.without)
        held = held_robot(twin, state.q, circumstances, state.robot)
        return FollowingConfiguration(held, state.q, self.model.configuration.reduction.partition)

    @cached_property
    def there(self) -> FollowingConfiguration:
        """The robot with slopes where it is linearised: at the pose, or at the equilibrium, which moves too."""
        if self.model.about == "undeformed":
            return self.start
        return self._at_rest()

    def _at_rest(self) -> FollowingConfiguration:
        """The equilibrium by the implicit function theorem, theory (63): J^T d(F - J_tot^T lam) = 0, loops closed.

        Locked joints stand where the pose puts them; the dependent rates close the loops, and the independent ones
        bring the forces back to zero.
        """
        here, count, held = self.model.configuration, self.state.count, self.start.robot
        tree, part, closures = here.robot.tree, here.reduction.partition, held.closures
        step = np.zeros((tree.n, count))
        locked = sorted(here.robot.locked)
        step[locked] = self.state.steps[locked]

        def moved(along: Array) -> FollowingConfiguration:
            return FollowingConfiguration(held, tree.moved(here.q, seed_slopes(along, Sensitive)), part)

        if closures.size:
            opened = slopes(closures.linear_residual(moved(step).at), count, Sensitive)
            if len(part.dependent):
                step[part.dependent] = -np.linalg.solve(here.reduction.block, opened[part.rows])
        lam = multipliers(here, self.loading.forces(here))
        pushed = slopes(self.loading.closed_forces(moved(step), lam), count, Sensitive)
        return moved(step + here.J @ self.solver.solve(-(here.J.T @ pushed), refuse=False))

    @cached_property
    def step(self) -> Array:
        """Linear deflection of all coordinates under the loads, about the undeformed pose: K x = -J^T F.

        Its slopes are those that keep the forces in balance, theory (63).
        """
        here, there, count = self.model.configuration, self.there, self.state.count
        x = self.solver.solve(-here.reduction.forces(self.loading.forces(here)))
        if not count:
            return here.J @ x
        moved = there.along(x[:, None])
        left = there.pulled(self.loading.forces(there) + self.stiffness_times(moved)[:, 0])
        dx = self.solver.solve(-slopes(left, count, Sensitive), refuse=False)
        return there.along(with_slopes(x, dx, Sensitive)[:, None])[:, 0]

    @cached_property
    def reactions(self) -> tuple[Array, Array]:
        """Multipliers of the closures, of least norm, and forces along all rates that locked joints bear."""
        if not self.state.count:
            here, loading = self.model.configuration, self.loading
        else:
            here, loading = self.there, self.loading
        strain: Any = 0.0
        if self.model.about == "undeformed":
            strain = self.K_tot @ self.step if self.state.count else tree_stiffness(here)[0] @ self.step
        F, free = loading.forces(here) + strain, self.state.robot.locking(self.model.robot.locked).free
        lam = (
            minimum_norm_solution(here.closure_jacobian[:, free].T, F[free])
            if len(here.closure_jacobian)
            else np.zeros(0)
        )
        return lam, loading.closed_forces(here, lam) + strain

    # -- energies of motions ---------------------------------------------------------------------------

    def stiffness_times(self, motions: Array) -> Array:
        """K times columns of motions of the robot with slopes, along all rates."""
        if self.model.about == "undeformed":
            return self.K_tot @ motions
        return forces_along(self.there, self.loading, motions)

    @cached_property
    def K_tot(self) -> Array:
        """Stiffness of the open tree with slopes."""
        return tree_stiffness(self.there)[0]

    def stiffness_of(self, motions: Array) -> Array:
        """Motions^T K motions, symmetric."""
        K = motions.T @ self.stiffness_times(motions)
        return (K + K.T) / 2

    def mass_of(self, motions: Array) -> Array:
        """Motions^T M motions: twice the kinetic energy, of two motions by that of their sum and difference."""
        count = motions.shape[1]
        tree, at = self.there.robot.tree, self.there.at
        mass: Array = np.zeros((count, count), dtype=object)
        for i in range(count):
            for j in range(i + 1):
                if i == j:
                    mass[i, i] = 2 * kinetic_energy(tree, at, motions[:, i])
                else:
                    both, apart = (kinetic_energy(tree, at, motions[:, i] + sign * motions[:, j]) for sign in (1, -1))
                    mass[i, j] = mass[j, i] = 0.5 * (both - apart)
        return mass

    def independent(self, shapes: Array) -> Array:
        """Independent rates of motions of all coordinates."""
        return shapes[self.model.configuration.reduction.partition.independent]


def _springy(robot: Any, circumstances: ResponseCase) -> bool:
    tree = robot.tree
    springs = tree.springs or tree.elements or any(link.terms.stiffness for link in tree.links)
    return bool(springs) or circumstances.servo is not None


def minimum_norm_solution(A: Array, b: Array) -> Array:
    """The shortest x with A x = b, for an A whose rank does not change with the keys and a b that it reaches."""
    if not is_symbolic(A, b) or dual_type(A, b) is None:  # what no key touches has no slopes
        return np.linalg.lstsq(A.astype(float), b.astype(float), rcond=1e-12)[0]
    count = slope_count(Sensitive, A, b)
    P = np.linalg.pinv(without_slopes(A).astype(float), rcond=1e-12)
    x = P @ without_slopes(b).astype(float)
    dA, db = slopes_last(A, Sensitive, count), slopes_last(b, Sensitive, count)
    changes = P @ (db - np.einsum("ijk,j->ik", dA, x))
    along = np.einsum("ijk,i->jk", dA, P.T @ x)  # the part of the change that the rows do not see, as the rows turn
    return with_slopes(x, changes + along - P @ (without_slopes(A).astype(float) @ along), Sensitive)
