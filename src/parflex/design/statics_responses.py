"""Responses of robots under load, and the linear model of a robot with derivatives, at its pose or its equilibrium.

Stationary values need no derivative of the motions at which they are stationary: with float motions of the independent
rates, energies of the robot with derivatives give those of frequencies, compliances and deflections, theory (61), (62).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.bodies.beam import BeamElement
from parflex.design.design_state import DesignState, FollowingConfiguration, ResponseCase
from parflex.errors import InputError, did_you_mean
from parflex.forces.forces import checked_wrenches
from parflex.forces.section_forces import (
    BeamChain,
    beam_chains,
    element_rows,
    element_signals_of,
    largest_stress_of,
    loads_of_beams,
    sections_of_element,
    stresses,
)
from parflex.maps.responses import read_response
from parflex.recursion.energy import kinetic_energy
from parflex.recursion.kinematics import motion
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
from parflex.spatial.linear import is_symbolic, solve
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.linear_model import LinearModel, linear_model_of, tree_stiffness
from parflex.statics.linear_system import StiffnessSolver
from parflex.statics.loads import AppliedLoads, forces_along, has_force_elements, held_robot, multipliers
from parflex.statics.stiffness import stiffness_of
from parflex.tree.build_elements import element_parts

Array = np.ndarray


def frame_and_direction(state: DesignState, name: str, argument: str) -> tuple[str, int]:
    """A frame and the number of one of its directions: FRAME.x, or x of the end effector."""
    response = read_response(state.robot, f"{name}:{argument}")
    if response.direction is None:
        text, hint = f"'{argument}' does not end with a direction of a frame", f"add one of {', '.join(response.parts)}"
        raise InputError(text, key="response", value=response.name, hint=hint)
    return response.of, response.direction


def stiffness(state: DesignState, argument: str) -> Any:
    """Stiffness of a frame in a direction: on the diagonal of its matrix."""
    frame, k = frame_and_direction(state, "stiffness", argument)
    C = compliance_of(HeldState(state, [frame]), frame, argument)
    unit = np.zeros(len(C))
    unit[k] = 1.0
    return solve(C, unit.astype(C.dtype))[k]


def compliance(state: DesignState, argument: str) -> Any:
    """Compliance of a frame in a direction: its motion under a unit force or moment."""
    frame, k = frame_and_direction(state, "compliance", argument)
    return compliance_of(HeldState(state, [frame]), frame)[k, k]


def compliance_of(held: HeldState, frame: str, stiff: str = "") -> Array:
    """C = P K^-1 P^T with slopes, theory (62): stationary in the motions under unit wrenches."""
    stiffness, robot = stiffness_of(held.model, frame), held.state.robot
    if stiff and stiffness.stiffness is None:
        raise InputError(
            f"'{frame}' is rigid in {', '.join(stiffness.rigid)}, so it has no stiffness matrix",
            key="response",
            value=f"stiffness:{stiff}",
            hint=f"request compliance:{stiff}",
        )
    if not held.state.count:
        return stiffness.compliance
    configuration, components = held.model.configuration, robot.tree.components
    P = configuration.frame_rows(frame)[components] @ configuration.J
    right = held.there.along(held.solver.solve(P.T))
    left = right
    if np.abs(held.model.K - held.model.K.T).max() > 0:
        from parflex.statics.linear_system import StiffnessSolver

        left = held.there.along(StiffnessSolver(configuration, held.model.K.T).solve(P.T))
    rows = held.there.frame_rows(frame)[components]
    return rows @ right + (rows @ left).T - left.T @ held.stiffness_times(right)


def deflected(state: DesignState, frames: Sequence[str] = ()) -> HeldState:
    """The robot under its loads; elements between points turn, so that their robots are about the equilibrium."""
    circumstances = state.case
    if circumstances.about is None and has_force_elements(state.robot.tree):
        from dataclasses import replace

        state.case = replace(circumstances, about="equilibrium")
    return HeldState(state, [*frames, *state.case.forced_frames])


def frame_displacement(held: HeldState, frame: str) -> Array:
    """Displacement and rotation vector of a frame under the loads, in world axes."""
    with_keys = bool(held.state.count)
    if held.model.about == "undeformed":
        here = held.there if with_keys else held.model.configuration
        return here.frame_rows(frame) @ held.step
    start, here = (held.start, held.there) if with_keys else (held.model.start, held.model.configuration)
    place = here.robot.tree.place(frame)
    (R0, P0), (R, P) = start.at.of(place), here.at.of(place)
    return np.concatenate([P - P0, vector_from_rotation(R @ R0.T)])


def deflection(state: DesignState, argument: str) -> Any:
    """Deflection of a frame in a direction under gravity, springs and the wrench."""
    frame, k = frame_and_direction(state, "deflection", argument)
    return frame_displacement(deflected(state, [frame]), frame)[k]


def static_error(state: DesignState, argument: str) -> Any:
    """How far a frame is from its place under gravity, springs and the wrench."""
    frame = argument or state.robot.tree.end_effector
    state.robot.tree.place(frame)
    moved = frame_displacement(deflected(state, [frame]), frame)[:3]
    return np.sqrt(moved @ moved)


def holding_effort(state: DesignState, number: int) -> Any:
    """Effort of a motor that holds a flexible robot at rest under its loads."""
    held = deflected(state)
    state = held.state
    k = state.robot.actuated[number]
    j = state.robot.tree.link_of_rate[k]
    if k in held.model.robot.locked:
        return held.reactions[1][k]
    configuration, nominal_robot = (held.there, state.twin) if state.count else (held.model.configuration, state.robot)
    pull = configuration.robot.tree.links[j].terms.stiffness - nominal_robot.tree.links[j].terms.stiffness
    if held.model.about == "undeformed":
        return -pull * held.step[k]
    start, link = (held.start if state.count else held.model.start), state.robot.tree.links[j]
    return -pull * (configuration.q[link.q.start] - start.q[link.q.start])


def stress(state: DesignState, argument: str) -> Any:
    """Largest normal stress in a beam under gravity, springs and the wrench; of all beams where none is named."""
    held = deflected(state)
    state, robot = held.state, held.model.robot
    chains = {name: chain for name, chain in beam_chains(robot).items() if chain.parts.fibres is not None}
    if not chains or (argument and argument not in chains):
        known = bool(chains)
        raise InputError(
            f"there is no beam '{argument}' with a known shape" if known else "the robot has no beam of a known shape",
            key="response",
            value=f"stress:{argument}",
            hint=did_you_mean(argument, chains) if known else "give the shape of its sections",
        )
    configuration, zero_rates = held.model.configuration, np.zeros(robot.tree.n)
    wrenches = checked_wrenches(robot.tree, held.loading.wrench)
    plain = held if not state.count else HeldState(_without_keys(state))
    lam, _ = plain.reactions
    loads = held.loading.wrenches(configuration, lam)
    beams = loads_of_beams(configuration, zero_rates, zero_rates, loads, wrenches)
    most = largest_stress_of({name: beam for name, beam in beams.items() if name == argument or not argument})
    assert most is not None
    if not state.count:
        return float(most["value"])
    return _stress_at(held, chains[most["beam"]], most["s"], wrenches)


def _without_keys(state: DesignState) -> DesignState:
    return DesignState(state.robot, state.here, (), state.case)


def _stress_at(held: HeldState, chain: BeamChain, s: float, wrenches: dict[str, Array]) -> Any:
    """The stress at a place of a beam with slopes: where it is largest along the beam, the place need not move."""
    there, tree, zero_rates = held.there, held.there.robot.tree, np.zeros(held.there.robot.tree.n)
    if chain.reduced:
        raise InputError(
            f"'{chain.name}' is reduced, so that its stress has no slopes",
            key="response",
            value=f"stress:{chain.name}",
            hint="leave 'reduce' out of the beam",
        )
    number, xi = chain.located(s)
    j = chain.links[number]
    parts = _sensitive_parts(held.state, chain, there, j)
    loads = held.loading.wrenches(there, held.reactions[0])
    moving = motion(tree, there.at, zero_rates, zero_rates, -tree.gravity)
    signals = element_signals_of(tree, there.at, moving, loads, [chain], wrenches)[j]
    rows = element_rows(
        tree, j, there.q[None], zero_rates[None].astype(object), zero_rates[None], signals[None], list(wrenches)
    )
    sections = [sections_of_element(parts, rows, [xi], behind=behind) for behind in (False, True)]
    candidates = [stresses(parts, forces, tree.planar)[0, 0] for forces in sections]
    return max(candidates, key=lambda x: x.value if isinstance(x, Sensitive) else x)


def _sensitive_parts(state: DesignState, chain: BeamChain, there: Any, link: int) -> BeamElement:
    """An element of a beam with slopes in its length, material, section and fibres."""

    def made(description: Any) -> BeamElement:
        return element_parts(description, next(f.beam for f in description.frame if f.name == chain.name), 1.0)

    parts = state.design.parameters.sloped_part(made)
    length = there.robot.tree.links[link].body.nodes["tip"].r0[0]
    return replace(parts, length=length)


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
                "redundant motors keep cables taut, and sensitivities of their efforts are not supported",
                key="response",
                value=state.robot.name,
                hint="lock the motors, or request a response without stiffness",
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
