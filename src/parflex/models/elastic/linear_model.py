"""The linear model of a robot at rest: mass, stiffness and damping, natural frequencies and mode shapes.

About the undeformed pose, preload left out, M = J^T M_tot J and K = J^T K_tot J with J of the closures [Germain2015].
About the equilibrium under gravity and loads, K is the derivative of the reduced forces, that of J^T included.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parflex.checking import one_of
from parflex.errors import InputError, SingularError
from parflex.models.brief_lines import hertz_line
from parflex.models.configuration import Configuration, Pose
from parflex.models.dynamics.forces import Without, Wrench
from parflex.models.dynamics.spare_motors import Preload, Weights
from parflex.models.elastic.deflection import deflection_warnings
from parflex.models.elastic.equilibrium import NOT_STABLE, Equilibrium, balanced, doubtful, equilibrium
from parflex.models.elastic.holding import Lock, Servo, locked_robot
from parflex.models.elastic.in_plane_load import stress_warnings
from parflex.models.elastic.loads_at_rest import Conditions, Loading, multipliers, prepare, tangent_stiffness
from parflex.models.elastic.preloaded import kept_taut, pushing_at_rest
from parflex.models.elastic.stiff_system import eigen, moving_names, rate_units, sorted_modes
from parflex.models.elastic.tension import (
    element_stiffness,
    refuse_just_taut,
    tense_parts,
    undeformed_warnings,
    why_balanced,
)
from parflex.models.motor_values import Effort
from parflex.models.robot import Robot
from parflex.models.vibration.beyond_band import band_warnings
from parflex.models.vibration.element_errors import element_errors, element_warnings
from parflex.records import Record, brief, counted
from parflex.recursion import mass_matrix as tree_mass_matrix
from parflex.spatial.linear import scalar_type

if TYPE_CHECKING:
    from parflex.models.vibration.refinement import Refinement

__all__ = ["LinearModel", "Modes", "linear_model", "locked_robot", "natural_frequencies", "tree_stiffness"]
Array = np.ndarray
About = Literal["undeformed", "equilibrium"]


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Record):
    """M qdd + D qd + K q = 0 in the independent coordinates, theory (28), and J from these to all coordinates.

    `K_tot` is the stiffness of the open tree where K is J^T K_tot J.

    Attributes
    ----------
    configuration : Configuration
        State that was linearised about.
    M : Array
        Mass matrix (kg, kg m, kg m^2).
    K : Array
        Stiffness matrix (N/m, N, N m).
    D : Array
        Damping matrix (N s/m, N s, N m s).
    J : Array
        All rates per independent rate.
    names : list[str]
        Independent coordinates: rows and columns of M, K, D.
    start : Configuration
        Pose before loads acted.
    loading : Loading
        What acts: wrenches, efforts, terms left out.
    warnings : list[str]
        Warnings.
    K_tot : Array | None
        Stiffness of the open tree where K = J^T K_tot J, else None.
    about : About
        'undeformed' or 'equilibrium'.
    """

    configuration: Configuration
    M: Array
    K: Array
    D: Array
    J: Array
    names: list[str]
    start: Configuration
    loading: Loading = field(default_factory=Loading)
    warnings: list[str] = field(default_factory=list)
    K_tot: Array | None = None
    about: About = "undeformed"

    @property
    def robot(self) -> Robot:
        """The robot as it is held."""
        return self.configuration.robot

    def _told(self) -> str:
        held = "about the undeformed pose" if self.about == "undeformed" else "about an equilibrium"
        return f"{brief(self.robot.name)}: {counted(len(self.names), 'independent coordinate')}, {held}"


@dataclass(frozen=True, eq=False, repr=False)
class Modes(Record):
    """Frequencies in Hz, shapes, damping ratios, and motions without stiffness by the name of what moves most.

    Shapes are over all coordinates, one column a mode, mass-normalised, the largest entry positive. Damping ratios are
    v^T D v / (2 omega): those of light damping. Unstable motions grow instead of vibrating.

    Attributes
    ----------
    frequencies : Array
        Hz, lowest first.
    shapes : Array
        All coordinates x modes, mass-normalised, the largest entry positive (m, rad).
    damping : Array
        Damping ratios v^T D v / (2 omega), for light damping (dimensionless).
    free_motions : list[str]
        Motions without stiffness, by what moves most.
    independent_coordinates : int
        Number of independent coordinates.
    unstable_motions : list[str]
        Motions that grow instead of vibrating.
    model : LinearModel
        The linear model.
    excess : Array
        Estimated shares by which frequencies are too high because elements are too few, or reduced beams leave modes
        out (from the lowest of these on it is the bound); infinite where elements of beams, held at both ends, vibrate
        by themselves at such a frequency (dimensionless).
    refinement : Refinement | None
        Number of elements that `converge` took, and how frequencies changed; None without it.
    by_elements : Array | None
        `excess` without what reduced beams leave out; None where it is not known (dimensionless).
    too_few : list[str]
        What is said where elements are too few; it is among the warnings of the model, too.
    """

    frequencies: Array
    shapes: Array
    damping: Array
    free_motions: list[str]
    independent_coordinates: int
    unstable_motions: list[str]
    model: LinearModel
    excess: Array = field(default_factory=lambda: np.zeros(0))
    refinement: Refinement | None = None
    by_elements: Array | None = None
    too_few: list[str] = field(default_factory=list)

    def _told(self) -> str:
        apart = ((self.free_motions, "motion", " without stiffness"), (self.unstable_motions, "unstable motion", ""))
        modes = f"{counted(len(self.frequencies), 'mode')}, {hertz_line(self.frequencies)}"
        parts = [f"{brief(self.model.robot.name)}: {modes}"]
        return "; ".join([*parts, *(f"{counted(len(names), word)}{rest}" for names, word, rest in apart if names)])


def state_about(
    about: About | None, wrench: Wrench | None, effort: Effort | None, felt: bool = True, preload: Any = None
) -> About:
    """What is linearised about: with loads or efforts the equilibrium, unless it is said; else the undeformed pose.

    `felt` is false where loads about the undeformed pose would change nothing of the answer.
    """
    loaded = any(_is_given(value) for value in (wrench, effort, preload))
    if about is None:
        return "equilibrium" if loaded else "undeformed"
    one_of(about, ("undeformed", "equilibrium"), "about")
    if about == "undeformed" and _is_given(preload):
        raise InputError(
            "a preload acts about the equilibrium", key="about", value=about, hint="use about='equilibrium', or omit it"
        )
    if about == "undeformed" and loaded and not felt:
        raise InputError(
            "about the undeformed pose, loads and efforts have no effect",
            key="about",
            value=about,
            hint="use about='equilibrium', or omit the load",
        )
    return about


def _is_given(value: Any) -> bool:
    return bool(value.size if isinstance(value, np.ndarray) else value)


def linear_model(
    robot: Robot,
    pose: Pose | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    *,
    servo: Servo | None = None,
    servo_damping: Servo | None = None,
    wrench: Wrench | None = None,
    effort: Effort | None = None,
    without: Without = (),
    weights: Weights | None = None,
    preload: Preload | None = None,
) -> LinearModel:
    """Mass, stiffness and damping at a pose, or about the equilibrium that is reached from it.

    About the undeformed pose to first order and without preload; about the equilibrium with large
    displacements. The equilibrium is the default where a wrench or efforts are given, or springs, cables or elastic
    couplings are under tension at the pose.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    about : {'undeformed', 'equilibrium'}, default None
        State of linearisation; None is the equilibrium under a wrench or efforts or where springs are under tension,
        else the undeformed pose.
    servo : float or Mapping[str, float], default None
        Stiffness of motors held by springs (N/m, N m/rad).
    servo_damping : float or Mapping[str, float], default None
        Damping of the servos (N s/m, N m s/rad).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    effort : Effort, default None
        Efforts of the motors, by name or in their order; a motor not named has none (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare (N, N m).

    Returns
    -------
    LinearModel
        `M`, `K`, `D` in the independent coordinates (SI), their names, and `J` from these to all coordinates.
    """
    given, about = about, state_about(about, wrench, effort, preload=preload or weights)
    conditions = Conditions(servo, servo_damping, wrench, effort, without, weights, preload)
    if about == "equilibrium":
        return about_equilibrium(equilibrium(robot, pose, lock, *conditions))
    configuration, loading = prepare(robot, pose, lock, *conditions)
    why = why_balanced(configuration, loading.without) if given is None else ""
    if why:
        return about_equilibrium(balanced(robot, configuration, why, lock, conditions))
    rest = kept_taut(robot, pose, lock, conditions) if given is None else None
    if rest is not None:
        return about_equilibrium(rest)
    refuse_just_taut(configuration, loading.without)
    K_tot, D_tot = tree_stiffness(configuration, loading.without)
    K = configuration.J.T @ K_tot @ configuration.J
    found = _model(configuration, configuration, loading, K, D_tot)
    warnings = undeformed_warnings(tense_parts(configuration, loading.without))
    return replace(found, K_tot=K_tot, warnings=warnings + pushing_at_rest(configuration, loading, K, K_tot))


def about_equilibrium(rest: Equilibrium) -> LinearModel:
    """The linear model about an equilibrium."""
    refuse_just_taut(rest.configuration, rest.loading.without)
    K = tangent_stiffness(rest.configuration, rest.loading)
    _, D_tot = tree_stiffness(rest.configuration, rest.loading.without)
    model = _model(rest.configuration, rest.start, rest.loading, K, D_tot)
    here = rest.configuration
    lam = multipliers(here, rest.loading.forces(here))
    stressed = stress_warnings(here, rest.loading.wrenches(here, lam))
    why = [word for word in (rest.why, rest.way) if word]
    warnings = [*why, *deflection_warnings(rest.robot.tree, here.q), *stressed, *pushing_at_rest(here, rest.loading)]
    return replace(model, warnings=warnings, about="equilibrium")


def _model(here: Configuration, start: Configuration, loading: Loading, K: Array, D_tot: Array) -> LinearModel:
    J = here.J
    M = J.T @ tree_mass_matrix(here.robot.tree, here.at, tuple(loading.without)) @ J
    return LinearModel(here, M, K, J.T @ D_tot @ J, J, here.independent_names, start, loading)


def tree_stiffness(configuration: Configuration, without: Without = ()) -> tuple[Array, Array]:
    """K_tot and D_tot of the open tree: elastic bodies, springs, dampers and viscous friction of joints.

    What a preload adds to the stiffness of bodies is not in K_tot; what the tension of elements adds is.
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
            if "springs" not in without:
                K[k, k], D[k, k] = link.terms.stiffness, link.terms.damper
            if "friction" not in without:
                D[k, k] += link.terms.viscous
    for spring in tree.springs if "springs" not in without else ():  # on its loaded flank where it has play
        if spring.slack(configuration.q):
            continue
        rates, c = list(spring.rates), np.array(spring.coefficients)
        K[np.ix_(rates, rates)] += spring.stiffness * np.outer(c, c)
        D[np.ix_(rates, rates)] += spring.damping * np.outer(c, c)
    if tree.elements and "springs" not in without:
        own, lost = element_stiffness(configuration)
        K, D = K + own, D + lost
    return K, D


def natural_frequencies(
    robot: Robot,
    pose: Pose | None = None,
    modes: int | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    *,
    servo: Servo | None = None,
    servo_damping: Servo | None = None,
    wrench: Wrench | None = None,
    effort: Effort | None = None,
    without: Without = (),
    weights: Weights | None = None,
    preload: Preload | None = None,
    converge: float | None = None,
) -> Modes:
    """Lowest natural frequencies, mode shapes and damping ratios at a pose.

    About the undeformed pose; under a wrench or efforts, or with springs under tension at the pose, about the
    equilibrium. Motions without stiffness are listed in `free_motions`.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    modes : int, default None
        Number of modes; None: six, or all if there are fewer.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    about : {'undeformed', 'equilibrium'}, default None
        State of linearisation; None is the equilibrium under a wrench or efforts or where springs are under tension,
        else the undeformed pose.
    servo : float or Mapping[str, float], default None
        Stiffness of motors held by springs (N/m, N m/rad).
    servo_damping : float or Mapping[str, float], default None
        Damping of the servos (N s/m, N m s/rad).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    effort : Effort, default None
        Efforts of the motors, by name or in their order; a motor not named has none (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare (N, N m).
    converge : float, default None
        Divide the elements of beams until the answer changes by no more than this share of it; None: as they are
        (dimensionless).

    Returns
    -------
    Modes
        `frequencies` in Hz, `shapes` over all coordinates (mass-normalised), `damping` ratios, `free_motions`; with
        `converge` also `refinement`.

    Examples
    --------
    >>> parflex.natural_frequencies(parflex.load("navaro"), "pose-3", modes=3).frequencies
    """
    state_about(about, wrench, effort, felt=False, preload=preload or weights)
    words = Conditions(servo, servo_damping, wrench, effort, without, weights, preload)._asdict()
    if converge is None:
        return modes_of(linear_model(robot, pose, lock, about, **words), modes)
    from parflex.models.vibration.converged_modes import converged_modes  # which stands on this module

    return converged_modes(robot, pose, modes, converge, lock=lock, about=about, **words)


natural_frequencies.doubts = lambda found: doubtful(found.model.warnings)  # type: ignore[attr-defined]


def check_modes(modes: object) -> None:
    """Refuse what is no number of modes before anything is computed."""
    if isinstance(modes, bool) or not isinstance(modes, int | np.integer) or modes < 1:
        raise InputError("the number of modes must be 1 or more", key="modes", value=modes, hint="give e.g. 6")


def modes_of(model: LinearModel, modes: int | None = None) -> Modes:
    """Lowest modes of a linear model: six, or all if there are fewer, unless it is said how many."""
    if modes is not None:
        check_modes(modes)
    here, count = model.configuration, len(model.names)
    units = rate_units(here)
    scale = np.outer(units, units)
    warnings = list(model.warnings)
    weights = np.sqrt(np.maximum(np.abs(np.diag(model.K)), 1e-300))
    if np.any(np.abs(model.K - model.K.T) > 1e-4 * np.outer(weights, weights)):  # frequencies feel the square of it
        warnings.append(
            "moments with axes fixed in the world are not conservative: "
            "the modes are those of the symmetric part of the stiffness"
        )
    K, M = (model.K + model.K.T) / 2 * scale, model.M * scale
    values, vectors = eigen(here, K, M)
    if model.K_tot is not None:
        values, vectors = _sharpened(values, vectors, model.K_tot, model.J @ (units[:, None] * vectors))
    values, vectors, unstable, free = sorted_modes(values, vectors, K, M)
    first = unstable + free
    if modes is None:
        modes = min(6, count - first)
    elif modes > count - first:
        if unstable:
            raise SingularError(
                NOT_STABLE,
                key="pose",
                hint=f"{count - first} of its {count} motions vibrate, {unstable} would grow: request fewer",
            )
        raise InputError(
            f"{modes} modes are requested, but the robot has {count - first}",
            key="modes",
            value=modes,
            hint=_fewer(first),
        )
    reduced = units[:, None] * vectors
    shapes = model.J @ reduced
    picked = shapes[:, first : first + modes]
    signs = np.sign(picked[np.abs(picked).argmax(axis=0), range(modes)])
    omega = np.sqrt(values[first : first + modes])
    damping = np.array([float(v @ model.D @ v) for v in reduced[:, first : first + modes].T]) / (2 * omega)
    names = [moving_names(here, part) for part in (shapes[:, unstable:first], shapes[:, :unstable])]
    if unstable:
        warnings.append("the equilibrium is not stable: " + ", ".join(f"'{name}'" for name in names[1]) + " would grow")
    errors = element_errors(here, values[first:], shapes[:, first:], modes)
    too_few = element_warnings(omega / (2 * np.pi), errors)
    warnings += too_few
    warnings += band_warnings(here.robot, omega / (2 * np.pi))
    told = replace(model, warnings=warnings)
    return Modes(
        omega / (2 * np.pi),
        picked * signs,
        damping,
        names[0],
        count,
        names[1],
        told,
        errors.shares,
        by_elements=errors.by_elements,
        too_few=too_few,
    )


def _sharpened(values: Array, vectors: Array, K_tot: Array, shapes: Array) -> tuple[Array, Array]:
    """Eigenvalues again, as twice the strain energy of each shape, body by body, and all in their order.

    The solver's rounding is relative to the highest eigenvalue. A shape is better than that, and energies of bodies are
    positive: what does not strain has none, and the slowest modes gain the digits that they lost.
    """
    strained = np.einsum("ik,ik->k", shapes, K_tot @ shapes)
    order = np.argsort(strained, kind="stable")
    return strained[order], vectors[:, order]


def _fewer(left_out: int) -> str:
    return "request fewer" if not left_out else f"request fewer; {left_out} motions have no frequency"
