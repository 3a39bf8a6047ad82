"""Linearise a robot about static equilibrium: mass, damping and stiffness.

About the undeformed pose, without preload, M = J^T M_tot J and K = J^T K_tot J with J of the closures [Germain2015].
About the equilibrium under gravity and loads, K is the derivative of the reduced forces, that of J^T included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import SingularError
from parflex.forces.effort_allocation import driven_cables, slack_warnings
from parflex.forces.forces import element_values, multipliers_of
from parflex.records import Answer, brief, count_of
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.robot.beam_nodes import at_nodes
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type
from parflex.statics.equilibrium import Equilibrium, equilibrium_near, equilibrium_of, equilibrium_with_taut_cables
from parflex.statics.linear_system import StiffnessSolver
from parflex.statics.load_case import About, LoadCase, LoadKeywords, Lock, full_load_case
from parflex.statics.loads import (
    AppliedLoads,
    are,
    element_stiffness,
    equilibrium_reason,
    multipliers,
    prepare_loads,
    prestressed_parts,
    refuse_cables_at_rest_length,
    tangent_stiffness,
)
from parflex.statics.small_deformation import deflection_warnings, stress_warnings

__all__ = ["LinearModel", "linear_model", "tree_stiffness"]
Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Answer):
    """M qdd + D qd + K q = 0 in the independent coordinates `names`, theory (28).

    `M` (kg, kg m, kg m^2), `K` (N/m, N, N m) and `D` (N s/m, N s, N m s) are those at `configuration`. `about` is
    'undeformed', or 'equilibrium' for the equilibrium that the loads of `loading` reach from `start`. `J` has all
    rates per independent rate. `K_tot` is the stiffness of the open tree if K = J^T K_tot J, else None.
    `diagnostics` are those of the state.
    """

    configuration: Configuration
    M: Array
    K: Array
    D: Array
    J: Array
    names: list[str]
    start: Configuration
    loading: AppliedLoads = field(default_factory=AppliedLoads)
    diagnostics: tuple[Diagnostic, ...] = ()
    K_tot: Array | None = None
    about: About = "undeformed"

    @property
    def robot(self) -> Robot:
        """The robot with its locks and servos."""
        return self.configuration.robot

    def _told(self) -> str:
        state = "about the undeformed pose" if self.about == "undeformed" else "about an equilibrium"
        return f"{brief(self.robot.name)}: {count_of(len(self.names), 'independent coordinate')}, {state}"


class LinearAnswer(Answer):
    """An answer from a linear `model`."""

    model: LinearModel

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """Diagnostics of the robot and of its linear model."""
        return (*self.model.robot.diagnostics, *self.model.diagnostics)


def linear_model(
    robot: Robot,
    pose: Pose | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    **load: Unpack[LoadKeywords],
) -> LinearModel:
    """Compute mass, stiffness and damping at a pose, or about the equilibrium reached from this pose.

    About the undeformed pose the answer is of first order and without preload; about the equilibrium it includes
    large displacements. The default is the equilibrium for wrenches, efforts, or springs, cables or elastic
    couplings under tension at the pose.

    Parameters
    ----------
    robot, pose, lock, about, **load
        See `parflex.api.WORDS`.

    Returns
    -------
    LinearModel
        `M`, `K`, `D` in the independent coordinates (SI), their names, and `J` from these to all coordinates.
    """
    return linear_model_of(robot, pose, full_load_case(lock, about, load))


def linear_model_of(robot: Robot, pose: Pose | None, case: LoadCase, frames: Sequence[str] = ()) -> LinearModel:
    """Return the linear model of a load case; frames inside beams on which forces act become nodes."""
    state = linearisation_state(robot, pose, case, frames)
    if isinstance(state, Equilibrium):
        return about_equilibrium(state)
    here, loading = state
    model, tense = about_pose(here, loading), prestressed_parts(here)
    text = f"{are(tense)} under tension at this pose, which a model about the undeformed pose does not "
    unbalanced = (
        [Diagnostic("unbalanced-tension", f"{text}balance: use about='equilibrium'", tense[0])] if tense else []
    )
    return replace(model, diagnostics=(*unbalanced, *_pushing_cables(model)))


def linearisation_state(
    robot: Robot, pose: Pose | None, case: LoadCase, frames: Sequence[str] = ()
) -> Equilibrium | tuple[Configuration, AppliedLoads]:
    """Return the equilibrium of a load case, or the pose and its loads; `frames` inside beams become nodes."""
    robot, pose = at_nodes(robot, pose, [*frames, *case.deforming_frames])
    if case.at_equilibrium:
        return equilibrium_of(robot, pose, case)
    configuration, loading = prepare_loads(robot, pose, case)
    if case.about is None:
        why = equilibrium_reason(configuration)
        if why:
            return equilibrium_near(robot, configuration, why, case)
        return equilibrium_with_taut_cables(robot, configuration, case) or (configuration, loading)
    return configuration, loading


def about_pose(configuration: Configuration, loading: AppliedLoads) -> LinearModel:
    """Return the linear model about an undeformed pose."""
    refuse_cables_at_rest_length(configuration)
    K_tot, D_tot = tree_stiffness(configuration)
    K = configuration.J.T @ K_tot @ configuration.J
    return replace(_model(configuration, configuration, loading, K, D_tot), K_tot=K_tot)


def about_equilibrium(equilibrium: Equilibrium) -> LinearModel:
    """Return the linear model about an equilibrium."""
    here, loading = equilibrium.configuration, equilibrium.loading
    refuse_cables_at_rest_length(here)
    _, D_tot = tree_stiffness(here)
    model = _model(here, equilibrium.start, loading, tangent_stiffness(here, loading), D_tot)
    stress = stress_warnings(here, loading.wrenches(here, multipliers(here, loading.forces(here))))
    diagnostics = [*equilibrium.subject, *deflection_warnings(here.robot.tree, here.q), *stress]
    return replace(model, diagnostics=(*diagnostics, *_pushing_cables(model)), about="equilibrium")


def _pushing_cables(model: LinearModel) -> list[Diagnostic]:
    """Return diagnostics of driven cables that would push in equilibrium or under first-order loads."""
    here, F = model.configuration, model.loading.forces(model.configuration)
    if not driven_cables(here.robot):
        return []
    if model.K_tot is not None:
        try:
            F = F + model.K_tot @ here.J @ StiffnessSolver(here, model.K).solve(-here.reduction.forces(F))
        except SingularError:  # nothing holds the loads, so there is no tension to report
            return []
    return slack_warnings(here.robot, element_values(here, None, multipliers_of(here, F)))


def _model(here: Configuration, start: Configuration, loading: AppliedLoads, K: Array, D_tot: Array) -> LinearModel:
    J = here.J
    M = J.T @ tree_mass_matrix(here.robot.tree, here.at) @ J
    return LinearModel(here, M, K, J.T @ D_tot @ J, J, here.independent_names, start, loading)


def tree_stiffness(configuration: Configuration) -> tuple[Array, Array]:
    """Return K_tot and D_tot of the open tree: elastic bodies, springs, dampers and viscous friction of joints.

    K_tot excludes the geometric stiffness of bodies by preload and includes that of elements.
    """
    tree = configuration.robot.tree
    kind = scalar_type(configuration.q)
    K: Array = np.zeros((tree.n, tree.n), dtype=kind)
    D: Array = np.zeros((tree.n, tree.n), dtype=kind)
    for link in tree.links:
        e = configuration.q[link.e]
        K[link.e_v, link.e_v] = link.body.material_stiffness(e)
        D[link.e_v, link.e_v] = link.body.damping_at(e)
        if link.joint.one_axis:
            k = link.v.start
            K[k, k], D[k, k] = link.terms.stiffness, link.terms.damper + link.terms.viscous
    for spring in tree.springs:  # on its loaded side if it has backlash
        if spring.slack(configuration.q):
            continue
        rates, c = list(spring.rates), np.array(spring.coefficients)
        K[np.ix_(rates, rates)] += spring.stiffness * np.outer(c, c)
        D[np.ix_(rates, rates)] += spring.damping * np.outer(c, c)
    if any(element.acts for element in tree.elements):
        K_elements, D_elements = element_stiffness(configuration)
        K, D = K + K_elements, D + D_elements
    return K, D
