"""Compute stiffness and compliance of frames, deflections, efforts and section forces of a robot in equilibrium.

Compliance of a frame is C = P K^-1 P^T with P its world twist per independent rate: the motion of the frame under a
unit wrench on it. Its inverse is the stiffness if no direction is rigid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from parflex.diagnostics import Diagnostic, with_code
from parflex.errors import InputError
from parflex.forces.effort_allocation import slack_warnings
from parflex.forces.forces import checked_wrenches, element_values, multipliers_of
from parflex.forces.section_forces import BeamLoads, largest_stress_of, loads_of_beams, missing_stress_warning
from parflex.records import Answer, brief, count_of, name_list
from parflex.robot.beam_nodes import at_nodes
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.limits import limit_warnings
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import Equilibrium, equilibrium_of
from parflex.statics.linear_model import LinearAnswer, LinearModel, about_pose, linear_model_of, linearisation_state
from parflex.statics.linear_system import StiffnessSolver
from parflex.statics.load_case import About, LoadCase, LoadKeywords, Lock, full_load_case
from parflex.statics.loads import AppliedLoads, has_force_elements
from parflex.statics.small_deformation import FIRST_ORDER_ROTATION, deflection_warnings, stress_warnings

Array = np.ndarray
RIGID = 1e-12  # of the largest compliance (rotations times characteristic length): directions below are rigid
IN_IT = 0.3  # smallest named component of a rigid direction; a diagonal has 0.58 in each axis
MOTIONS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, eq=False, repr=False)
class Stiffness(LinearAnswer):
    """Compliance and stiffness of a `frame` in world axes, of the linear `model`.

    Rows and columns are the `directions` x y z rx ry rz, planar x y theta. `compliance` has m/N, 1/N and rad/(N m),
    `stiffness` N/m, N and N m/rad; it is None where some direction is rigid, and `rigid` names these.
    """

    frame: str
    directions: tuple[str, ...]
    compliance: Array
    stiffness: Array | None
    rigid: list[str]
    model: LinearModel

    def _told(self) -> str:
        units = ["rad/(N m)" if word in ("rx", "ry", "rz", "theta") else "m/N" for word in self.directions]
        diagonal = zip(self.directions, np.diag(self.compliance), units, strict=True)
        rigid_text = f", rigid: {name_list(self.rigid)}" if self.rigid else ""
        return f"of '{self.frame}': compliance {name_list([f'{w} {c:.4g} {u}' for w, c, u in diagonal])}{rigid_text}"


@dataclass(frozen=True, eq=False, repr=False)
class Deflection(Answer):
    """Deflection of a robot under loads, at `configuration`, with `diagnostics`.

    `frames` has the displacement (m) and the rotation vector (rad) of each frame in world axes, `efforts` those of
    the motors (N, N m). `sections` are the section forces (N, N m) at both ends of each beam element, and `beams`
    the section forces along each beam. `elements` has length (m), rate (m/s) and force (N) of each element between
    two points.
    """

    frames: dict[str, Array]
    efforts: dict[str, float]
    sections: list[dict[str, Any]]
    configuration: Configuration
    diagnostics: tuple[Diagnostic, ...] = ()
    elements: dict[str, dict[str, Any]] = field(default_factory=dict)
    beams: dict[str, BeamLoads] = field(default_factory=dict)

    @property
    def largest_stress(self) -> dict[str, Any] | None:
        """Beam, place `s` and value (Pa) of the largest normal stress; None if no fibres are known."""
        return largest_stress_of(self.beams)

    def _told(self) -> str:
        norm = np.linalg.norm
        displacements = [f"'{name}' {norm(d[:3]):.4g} m, {norm(d[3:]):.4g} rad" for name, d in self.frames.items()]
        warned = f"; {count_of(len(self.diagnostics), 'warning')}" if self.diagnostics else ""
        return f"{brief(self.configuration.robot.name)}: moved {name_list(displacements, 3)}{warned}"


def cartesian_stiffness(
    robot: Robot,
    pose: Pose | None = None,
    frame: str | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    **load: Unpack[LoadKeywords],
) -> Stiffness:
    """Compute stiffness and compliance of a frame: 6 x 6, planar 3 x 3 (x, y, theta).

    Parameters
    ----------
    robot, pose, frame, lock, about, **load
        See `parflex.api.WORDS`.

    Returns
    -------
    Stiffness
        `stiffness` (N/m, N, N m/rad; None where a direction is rigid), `compliance`, names of the directions.
    """
    case = full_load_case(lock, about, load, loads_matter=False)
    return stiffness_of(linear_model_of(robot, pose, case, [frame] if frame else ()), frame)


def stiffness_of(model: LinearModel, frame: str | None = None) -> Stiffness:
    """Return stiffness and compliance of a frame that is a node of a linear model."""
    tree = model.robot.tree
    frame = _known(model.robot, frame)
    P = model.configuration.frame_rows(frame)[tree.components] @ model.J
    C = P @ StiffnessSolver(model.configuration, model.K).solve(P.T)
    directions = ("x", "y", "theta") if tree.planar else MOTIONS
    lengths = np.where(np.array(tree.components) < 3, 1.0, tree.length)
    scaled = C * np.outer(lengths, lengths)
    U, values, _ = np.linalg.svd(scaled)
    weak = values < RIGID * max(float(values[0]), 1e-300)
    S = None if weak.any() else np.linalg.inv(scaled) * np.outer(lengths, lengths)
    shares = np.abs(U[:, weak]).max(axis=1, initial=0.0)
    return Stiffness(frame, directions, C, S, [d for d, x in zip(directions, shares, strict=True) if x > IN_IT], model)


def deflection(
    robot: Robot,
    pose: Pose | None = None,
    frames: Sequence[str] = (),
    lock: Lock = "actuators",
    about: About | None = None,
    **load: Unpack[LoadKeywords],
) -> Deflection:
    """Compute deflections of frames under gravity, springs, wrenches and efforts.

    About the undeformed pose deflections are of first order and without preload; about the equilibrium they include
    large displacements.

    Parameters
    ----------
    robot, pose, frames, lock, about, **load
        See `parflex.api.WORDS`.

    Returns
    -------
    Deflection
        Displacements of frames (m, rad, world axes), efforts of the motors (N, N m), section forces of beams (N, N m).
    """
    return deflection_of(robot, pose, full_load_case(lock, about, load), frames)


deflection.doubts = lambda found: with_code(found.diagnostics, "unstable-equilibrium")  # type: ignore[attr-defined]


def deflection_of(robot: Robot, pose: Pose | None, case: LoadCase, frames: Sequence[str] = ()) -> Deflection:
    """Return the deflections of frames under a load case."""
    robot, pose = at_nodes(robot, pose, [*frames, *case.forced_frames])
    turning = has_force_elements(robot.tree)
    if case.about == "undeformed" and turning:
        text = "elements between points rotate as the robot deforms, so deflections are those of the equilibrium"
        raise InputError(text, key="about", value=case.about, hint="use about='equilibrium'")
    state = linearisation_state(robot, pose, case)
    if turning and not isinstance(state, Equilibrium):
        state = equilibrium_of(robot, pose, case)
    if isinstance(state, Equilibrium):
        return deflection_at(state, frames)
    here, loading = state
    model = about_pose(here, loading)
    step = here.J @ StiffnessSolver(here, model.K).solve(-here.reduction.forces(loading.forces(here)))
    displacements = {frame: here.frame_rows(frame) @ step for frame in [_known(robot, name) for name in frames or [""]]}
    result = _inside(acting_robot(robot, case.without), here, loading, step, displacements, model.K_tot @ step)
    rotations = [np.zeros(3)]  # of bodies and their nodes, to first order
    for link, (_, J_w) in zip(here.robot.tree.links, here.link_jacobians, strict=True):
        nodes = link.body.nodes.values()
        rotations += [J_w @ step, *(J_w @ step + node.Phi_r @ step[link.e_v] for node in nodes)]
    largest = float(np.linalg.norm(rotations, axis=1).max())
    if largest <= FIRST_ORDER_ROTATION:
        return result
    text = f"bodies rotate by up to {largest:.2g} rad: first-order deflections do not hold beyond "
    text += f"{FIRST_ORDER_ROTATION} rad, so use about='equilibrium'"
    return replace(result, diagnostics=(*result.diagnostics, Diagnostic("beyond-first-order", text, value=largest)))


def deflection_at(equilibrium: Equilibrium, frames: Sequence[str] = ()) -> Deflection:
    """Return the deflection of an equilibrium from its start pose, and inner forces; frames are nodes."""
    here, start, tree = equilibrium.configuration, equilibrium.start, equilibrium.robot.tree
    displacements = {}
    for frame in [_known(equilibrium.robot, name) for name in frames or [""]]:
        (R0, P0), (R, P) = start.at.of(tree.places[frame]), here.at.of(tree.places[frame])
        displacements[frame] = np.concatenate([P - P0, vector_from_rotation(R @ R0.T)])
    step = np.zeros(tree.n)
    for link in tree.links:
        if link.joint.one_axis:
            step[link.v] = here.q[link.q] - (equilibrium.held_at or start).q[link.q]
    result = _inside(equilibrium.given, here, equilibrium.loading, step, displacements, np.zeros(tree.n))
    return replace(result, diagnostics=(*equilibrium.diagnostics, *result.diagnostics))


def _inside(
    robot: Robot, here: Configuration, loading: AppliedLoads, step: Array, moved: dict[str, Array], strain: Array
) -> Deflection:
    """Return efforts and section forces; `strain` are elastic forces in addition to those of the configuration."""
    held_robot = here.robot
    lam = multipliers_of(here, loading.forces(here) + strain)
    needed = loading.closed_forces(here, lam) + strain
    efforts = {}
    for k in robot.actuated:
        before, held = (one.tree.links[robot.tree.link_of_rate[k]].terms.stiffness for one in (robot, held_robot))
        effort = needed[k] if k in held_robot.locked else loading.tau[k] - (held - before) * step[k]
        efforts[robot.tree.rate_names[k]] = float(effort)
    wrenches = loading.wrenches(here, lam)
    diagnostics = [*robot.diagnostics, *limit_warnings(robot, here.q), *deflection_warnings(here.robot.tree, here.q)]
    diagnostics += stress_warnings(here, wrenches)
    if held_robot.mobility.redundant:
        text = "the robot is over-constrained: efforts and section forces are those of least norm"
        diagnostics.append(Diagnostic("undetermined-forces", text))
    elements, still = element_values(here, None, lam), np.zeros(held_robot.tree.n)
    acting = checked_wrenches(held_robot.tree, loading.wrench)
    beams = loads_of_beams(here, still, still, wrenches, acting)
    diagnostics += missing_stress_warning(held_robot, {name: beam.chain for name, beam in beams.items()})
    sections = [entry for beam in beams.values() for entry in beam.at_ends(held_robot.tree)]
    diagnostics += slack_warnings(held_robot, elements)
    return Deflection(moved, efforts, sections, here, tuple(diagnostics), elements, beams)


def _known(robot: Robot, frame: str | None) -> str:
    robot.tree.place(frame or robot.tree.end_effector)
    return frame or robot.tree.end_effector
