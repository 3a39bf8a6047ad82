"""Formulate closed robots in general, and open trees, over any scalar.

The dependent rates are chosen once, with floats; the equations are then plain arithmetic: dependent rates follow by one
regular block, forces by its transpose. `solve` pivots the blocks. With floats at a pose these are the equations of
`inverse_dynamics` and `forward_dynamics`, with symbols those of the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from parflex.closure.partition import Partition, Reduction, reduction
from parflex.forces.coupling_losses import CouplingLosses, coupling_losses, with_losses
from parflex.forces.effort_allocation import EffortAllocation
from parflex.forces.forces import forces_along_rates, on_links
from parflex.formulations.base import (
    FAR,
    STEPS_FROM_GUESS,
    Answer,
    Formulation,
    Given,
    ModelRequest,
    System,
    best_rows,
    cheapest_closures,
    closure_system,
    newton_closed,
    regular_leg_blocks,
    residual_norm,
)
from parflex.formulations.coordinates import COORDINATES
from parflex.records import Record
from parflex.recursion.dynamics import articulated_accelerations, mass_matrix
from parflex.recursion.energy import LinkWrenches
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type, solve, solve_positive

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class GeneralState(Record):
    """A pose with all rates, its reduction, and the wrenches on links."""

    form: GeneralFormulation
    at: Pose
    reduction: Reduction
    qd: Array
    external: LinkWrenches = field(default_factory=dict)

    def accelerations(self, independent: Array) -> Array:
        """Return all accelerations; those of the dependent rates close the loops, theory (12)."""
        return self.reduction.accelerations(self.form.robot.closures, self.at, self.qd, independent)

    @cached_property
    def bias(self) -> Array:
        """Accelerations b of all coordinates due to the rates alone."""
        return self.accelerations(np.zeros(len(self.form.independent)))

    @property
    def q(self) -> Any:
        """All positions."""
        return self.at.q

    def forces(self, accelerations: Array) -> Array:
        """Return forces along all rates of the open tree for accelerations of all coordinates."""
        return forces_along_rates(self.form.robot.tree, self.at, self.qd, accelerations, self.external)

    @property
    def J_a(self) -> Array:
        """Motor rates per independent rate."""
        return self.reduction.matrix[list(self.form.robot.actuated)]

    def efforts(self, forces: Array) -> Array:
        """Return motor efforts for forces along all rates."""
        return self.driven(forces)[0]

    def driven(self, forces: Array, form: str = "split", motors: Sequence[int] | None = None) -> tuple[Array, Any]:
        """Return motor efforts for forces along all rates, and the part of lossy gears in these forces."""
        motors, allocation = list(self.form.robot.actuated if motors is None else motors), self.form.question.allocation
        reduced, losses = self.reduction, self.losses
        tau = motor_efforts(reduced, forces, motors, form, allocation)
        if losses is None:
            return tau, 0.0
        directions = losses.pushes
        alone = None if allocation is None else allocation.weights_only()  # what a loss adds is linear in it
        per_loss = np.array([motor_efforts(reduced, direction, motors, form, alone) for direction in directions]).T
        missing, change = forces.copy(), -directions.T
        missing[motors] = missing[motors] - tau
        change[motors] = change[motors] + per_loss
        loss_sizes, gear_forces = losses.forces(missing, change)
        return tau - per_loss @ loss_sizes, gear_forces

    @cached_property
    def losses(self) -> CouplingLosses | None:
        """Losses of rigid couplings, or None."""
        return coupling_losses(self.form.robot.closures, self.reduction, self.qd)

    def pushed(self, tau: Array, solve_mass: Callable[[Array, Array], Array] = solve_positive) -> tuple[Array, Any]:
        """Return independent accelerations under motor efforts, theory (17), and the forces of lossy gears."""

        def solved(c: Array, tau: Array) -> tuple[Array, Array]:
            """Return independent accelerations under efforts, for forces along the independent rates."""
            return tau, solve_mass(self.mass_matrix, self.reduction.forces(self.along_rates(tau)) - c)

        return with_losses(self, solved, self.c, tau)[1:]

    def efforts_for(self, accelerations: Array) -> tuple[Array, Array]:
        """Return efforts for accelerations of motors among the independent rates, and all independent accelerations."""
        independent = [int(k) for k in self.form.independent]
        motors = [independent.index(k) for k in self.form.robot.actuated]
        unactuated = [k for k in range(len(independent)) if k not in set(motors)]
        qdd: Array = np.zeros(len(independent), dtype=scalar_type(self.qd, accelerations))
        qdd[motors] = accelerations
        if not unactuated:
            return self.driven(self.forces(self.accelerations(qdd)), motors=independent)[0][motors], qdd
        M, c = self.mass_matrix, self.c

        def solved(c: Array, driven: Array) -> tuple[Array, Array]:
            solution = np.zeros((len(independent), *c.shape[1:]), dtype=scalar_type(c, driven, M))
            solution[motors] = driven
            solution[unactuated] = solve_positive(
                M[np.ix_(unactuated, unactuated)], -c[unactuated] - M[np.ix_(unactuated, motors)] @ solution[motors]
            )
            return M[motors] @ solution + c[motors], solution

        return with_losses(self, solved, c, qdd[motors])[:2]

    def along_rates(self, tau: Array) -> Array:
        """Return motor efforts along all rates; several cases are columns."""
        forces: Array = np.zeros((len(self.qd), *tau.shape[1:]), dtype=scalar_type(tau))
        forces[list(self.form.robot.actuated)] = tau
        return forces

    @cached_property
    def mass_matrix(self) -> Array:
        """M in the independent rates."""
        J = self.reduction.matrix
        return J.T @ mass_matrix(self.form.robot.tree, self.at) @ J

    @cached_property
    def c(self) -> Array:
        """Forces of velocity, gravity and wrenches along the independent rates, theory (17)."""
        return self.reduction.forces(self.forces(self.bias))


@dataclass(frozen=True)
class GeneralFormulation(Formulation):
    """A robot with its partition; loops may be seen from other ends than in the file."""

    name: ClassVar[str] = "general form"
    equations: ClassVar[tuple[int, ...]] = (13, 16, 17)
    coordinates: ClassVar[Mapping[str, Any]] = COORDINATES
    partition: Partition
    finder: GeneralFormulation | None = None  # finds positions from those of the motors or the platform

    @property
    def because(self) -> list[str]:
        """How the rates are reduced, and why no shorter form fits."""
        form = "two-node form" if self.robot.tree.elastic else "leg form"
        return [
            "Dependent rates are chosen once, at home, and eliminated by blocks. The robot does not fit the "
            f"{form}: {self.refused.get(form, 'it was not requested')}."
        ]

    @property
    def independent(self) -> Array:
        """Numbers of the independent rates."""
        return self.partition.independent

    @property
    def labels(self) -> dict[str, list[str]]:
        """Names of positions, rates and motors."""
        names, motors = self.independent_names, self.robot.actuated_names
        labels = dict.fromkeys(("qd", "qdd", "mass_matrix"), names)
        labels |= dict.fromkeys(("effort", "motor_acceleration"), motors)
        labels |= {"q": list(self.robot.tree.position_names), "rates": list(self.robot.tree.rate_names)}
        return labels | {"free_acceleration": [name for name in names if name not in set(motors)]}

    def inverse(self, state: Any, motion: Given) -> Answer:
        """Return motor efforts, theory (14), (16), for a flexible robot with the other accelerations."""
        if self.robot.driven_by_motors:
            effort, qdd = self.efforts_for(state, motion["motor_acceleration"])
            unactuated = [i for i, k in enumerate(self.independent) if int(k) not in set(self.robot.actuated)]
            return {"effort": effort, "free_acceleration": qdd[unactuated]}
        return {"effort": state.efforts(state.forces(state.accelerations(motion["qdd"])))}

    def systems(self, state: Any, motors: bool) -> list[System]:
        """Return J_f, J_a unless the motors are independent rates, and regular blocks of the legs."""
        units, part, actuated = self.robot.tree.rate_units, self.partition, list(self.robot.actuated)
        systems = [closure_system(self.robot, part.rows, part.dependent, state.reduction.block)]
        systems = systems if len(part.dependent) else []
        if motors and len(actuated) >= len(part.independent) and set(actuated) != set(part.independent.tolist()):
            systems.append((state.J_a, 1 / units[actuated], units[part.independent]))
        if motors and self.robot.closures.size and not self.robot.tree.elastic:
            J = self.robot.closures.jacobian(state.at, jacobians(self.robot.tree, state.at))
            blocks = regular_leg_blocks(self.robot)
            systems += [closure_system(self.robot, *block, J[np.ix_(*block)]) for block in blocks]
        return systems

    def inertia(self, state: Any) -> tuple[Array, Array, bool]:
        """Return M in the independent rates."""
        return state.mass_matrix, self.robot.tree.rate_units[self.independent], False

    def closed(self, q: Any) -> Any:
        """Return positions after Newton steps of the dependent ones from the guesses of an integrator."""
        return newton_closed(self.robot, self.partition, q, STEPS_FROM_GUESS)

    def moving(self, q: Any, rates: Array, wrenches: Given | None = None) -> Any:
        """Return the state with all rates from the independent ones, at closed positions."""
        tree = self.robot.tree
        at = pose(tree, q)
        reduced = reduction(self.robot.closures.jacobian(at, jacobians(tree, at)), self.partition)
        return GeneralState(self, at, reduced, reduced.rates(rates), on_links(tree, at, wrenches or {}))

    def here(self, qd: Array, wrenches: Given | None = None) -> GeneralState:
        """Return the state at the requested pose, with all rates known."""
        configuration = self.question.at
        assert configuration is not None
        loads = on_links(self.robot.tree, configuration.at, wrenches or {})
        return GeneralState(self, configuration.at, configuration.reduction, qd, loads)

    def geometry(self, inputs: Given) -> tuple[Answer, dict[str, list[str]]]:
        """Return all positions by Newton steps from a guess with fixed independent positions."""
        names = list(self.robot.tree.position_names)
        q = newton_closed(self.robot, self.partition, inputs["guess"], FAR)
        residual = residual_norm(self.robot.closures.gaps(pose(self.robot.tree, q)))
        return {"q": q, "residual": residual}, {"guess": names, "q": names}


def general_formulation(
    robot: Robot, partition: Partition, question: ModelRequest, rows: Sequence[int] = ()
) -> GeneralFormulation:
    """Return the form with `cheapest_closures`; `rows` determine the dependent rates, by default at home."""
    if not len(partition.rows):
        return GeneralFormulation(robot, partition, question=question)
    closures = cheapest_closures(robot)
    chosen = np.array(rows, dtype=int) if rows else best_rows(closures, robot.home, partition.dependent)
    return GeneralFormulation(replace(robot, closures=closures), replace(partition, rows=chosen), question=question)


def motor_efforts(
    reduced: Reduction, f: Array, actuated: Sequence[int], form: str, allocation: EffortAllocation | None
) -> Array:
    """Return efforts from forces of the open tree; redundant motors share them, theory (46) to (48).

    "projected": J^T f = J_a^T tau, [Khalil2007, eq. (20)]. "split": the rows of the motors as they are, only the
    others are projected, [Khalil2007, eq. (22)]. Where the motors are the independent rates both are plain sums.
    """
    actuated, independent = list(actuated), list(reduced.partition.independent)
    if set(actuated) == set(independent):
        return reduced.forces(f)[[independent.index(k) for k in actuated]]
    J_a = reduced.matrix[actuated]
    if len(actuated) > len(independent):
        return (allocation or EffortAllocation()).solve_program(J_a.T, reduced.forces(f))
    if form == "projected":
        return solve(J_a.T, reduced.forces(f))
    others = f.copy()
    others[actuated] = 0.0
    return f[actuated] + solve(J_a.T, reduced.forces(others))


@dataclass(frozen=True)
class OpenTreeFormulation(GeneralFormulation):
    """A tree without dependent rates."""

    name: ClassVar[str] = "open tree"
    equations: ClassVar[tuple[int, ...]] = (23,)

    @property
    def because(self) -> list[str]:
        """Description of the two models."""
        if self.robot.locked:
            return ["The inverse model is the recursion; the direct one solves the mass matrix of what is not locked."]
        return ["The inverse model is the recursion, the direct one goes by articulated bodies."]

    def direct(self, state: GeneralState, tau: Array) -> Answer:
        """Return accelerations by articulated bodies, without locked joints."""
        if self.robot.locked:
            return super().direct(state, tau)
        forces = state.along_rates(tau)
        return {"qdd": articulated_accelerations(self.robot.tree, state.at, state.qd, forces)}

    def mass_matrix(self, state: GeneralState) -> Array:
        """Return the mass matrix of the tree."""
        return super().mass_matrix(state) if self.robot.locked else mass_matrix(self.robot.tree, state.at)


def open_tree_formulation(robot: Robot, question: ModelRequest) -> OpenTreeFormulation | str:
    """Return the form of a rigid robot without loops, or the reason against it."""
    if question.model == "state-rates-following":
        return "no legs carry what is driven"
    if robot.closures.size and question.model != "energy":
        return "it has loops" if robot.closures.loops else "its joints are coupled"
    if robot.tree.elastic and question.model != "energy":
        return "its bodies are flexible"
    none: Array = np.zeros(0, dtype=int)
    return OpenTreeFormulation(robot, Partition(none, none, robot.free), question=question)
