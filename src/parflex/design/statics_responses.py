"""Responses of robots under load: stiffness, deflection, error of frames, efforts of motors, stress in beams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.bodies.beam import BeamElement
from parflex.design.design_state import DesignState
from parflex.design.linear_model import HeldState
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
from parflex.recursion.kinematics import motion
from parflex.spatial.dual import Sensitive
from parflex.spatial.linear import solve
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.loads import has_force_elements
from parflex.statics.stiffness import stiffness_of
from parflex.tree.build_elements import element_parts

Array = np.ndarray
PLANAR, SPATIAL = ("x", "y", "theta"), ("x", "y", "z", "rx", "ry", "rz")


def frame_and_direction(state: DesignState, argument: str, name: str, directions: tuple[str, ...]) -> tuple[str, int]:
    """A frame and one of its directions: FRAME.x, or x of the end effector."""
    tree = state.robot.tree
    frame, _, word = argument.rpartition(".")
    frame = frame or tree.end_effector
    word = "rz" if word == "theta" and "rz" in directions and tree.planar else word
    if word not in directions:
        raise InputError(
            f"'{argument}' does not end with a direction of a frame",
            key="response",
            value=f"{name}:{argument}",
            hint=f"write {name}:{tree.end_effector}.x, with one of {', '.join(directions)}",
        )
    tree.place(frame)
    return frame, directions.index(word)


def stiffness(state: DesignState, argument: str) -> Any:
    """Stiffness of a frame in a direction: on the diagonal of its matrix."""
    frame, k = frame_and_direction(state, argument, "stiffness", PLANAR if state.robot.tree.planar else SPATIAL)
    C = compliance_of(HeldState(state, [frame]), frame, argument)
    unit = np.zeros(len(C))
    unit[k] = 1.0
    return solve(C, unit.astype(C.dtype))[k]


def compliance(state: DesignState, argument: str) -> Any:
    """Compliance of a frame in a direction: its motion under a unit force or moment."""
    frame, k = frame_and_direction(state, argument, "compliance", PLANAR if state.robot.tree.planar else SPATIAL)
    return compliance_of(HeldState(state, [frame]), frame)[k, k]


def compliance_of(held: HeldState, frame: str, stiff: str = "") -> Array:
    """C = P K^-1 P^T with slopes, theory (62): stationary in the motions under unit wrenches."""
    stiffness, robot = stiffness_of(held.model, frame), held.state.robot
    if stiff and stiffness.stiffness is None:
        raise InputError(
            f"'{frame}' is rigid in {', '.join(stiffness.rigid)}, so it has no stiffness matrix",
            key="response",
            value=f"stiffness:{stiff}",
            hint=f"ask for compliance:{stiff}",
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
    frame, k = frame_and_direction(state, argument, "deflection", SPATIAL)
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
