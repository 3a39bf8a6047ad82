"""Inverse and direct dynamic models of closed robots, and the reactions in their joints.

The principle of virtual powers: with qd_tot = J qd and qd_a = J_a qd, the forces f = M_tot qdd_tot + c_tot of the
open tree give J^T f = J_a^T tau. [Khalil2007, eq. (20)] is this; its eq. (22) takes the rows of the motors as they
are and projects only the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy

from parflex.checks import numbers, one_of
from parflex.errors import SingularError
from parflex.forces.forces import Without, Wrench, values_in_motion
from parflex.forces.reactions import reactions_of
from parflex.forces.shared_efforts import SharedEfforts, refuse_outside, shared_efforts
from parflex.forces.spare_motors import EffortLimit, Preload, Sharing, Weights, read_sharing
from parflex.forces.taut_cables import slack_warnings, tautened
from parflex.models.dynamics.reduced import MassMatrix, Result, is_joint_motion, state_at
from parflex.models.dynamics.underactuated import underactuated_inverse
from parflex.models.elastic.flexible_inverse import flexible_inverse
from parflex.recursion.energy import Energies
from parflex.recursion.energy import energies as tree_energies
from parflex.robot.configuration import Configuration, Pose, all_rates
from parflex.robot.limits import efforts_of_file, limit_warnings
from parflex.robot.load import acting_configuration
from parflex.robot.motor_values import Effort, read_efforts
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_norm
from parflex.statics.small_deformation import deflection_warnings

Array = np.ndarray


def inverse_dynamics(
    robot: Robot,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | None = None,
    acceleration: Mapping[str, float] | None = None,
    *,
    wrench: Wrench | None = None,
    without: Without = (),
    form: Literal["projected", "split"] = "split",
    reactions: bool = False,
    weights: Weights | None = None,
    preload: Preload | None = None,
    effort_limit: EffortLimit | None = None,
    ignore_limits: bool = False,
) -> Result:
    """Motor efforts in a motion, given by the end effector (world axes) or by joints.

    With more motors than freedoms the efforts are those of least weighted norm, of a preload, within limits. With
    fewer, motors accelerate as given (those not named do not), and the rest moves freely. What is in the robot file
    acts, except what `without` names.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    velocity : Mapping[str, float], default None
        Velocities by name; frames in world axes (m/s, rad/s).
    acceleration : Mapping[str, float], default None
        Accelerations by name; frames in world axes (m/s^2, rad/s^2).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    form : {'split', 'projected'}, default "split"
        Theory (16), or theory (15) with all rows projected.
    reactions : bool, default False
        Also compute the wrench in every joint and closure.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare (N, N m).
    effort_limit : float or Mapping[str, float], default None
        Largest effort of all motors, or of each; a pair is a lowest and a highest effort (N, N m).
    ignore_limits : bool, default False
        Do not check the limits of the robot file.

    Returns
    -------
    Result
        `efforts` by motor (N, N m), all rates and accelerations, `internal` efforts of spare motors, accelerations of
        `free` coordinates, reactions if asked for, warnings.

    Examples
    --------
    >>> parflex.inverse_dynamics(robot, "home", acceleration={"z": 1.0}).efforts
    """
    one_of(form, ("split", "projected"), "form")
    configuration = acting_configuration(robot, pose, without)
    sharing = read_sharing(configuration.robot, weights, preload, effort_limit)
    found = _inverse(configuration, velocity, acceleration, wrench, form, reactions, sharing)
    if not ignore_limits:
        found.warnings.extend(exceeded_limits(found, sharing))
    return found


def exceeded_limits(result: Result, sharing: Sharing | None = None) -> list[str]:
    """Return a sentence for each limit that a state, or the efforts of an inverse model, exceed."""
    efforts: Mapping[str, Any] = {} if result.direct else result.efforts
    if sharing is not None:
        efforts = efforts_of_file(efforts, sharing.lower, sharing.upper)
    return limit_warnings(result.robot, result.configuration.q, result.rates, efforts)


def _inverse(
    configuration: Configuration,
    velocity: Mapping[str, float] | None,
    acceleration: Mapping[str, float] | None,
    wrench: Wrench | None,
    form: str,
    reactions: bool,
    sharing: Sharing,
) -> Result:
    robot = configuration.robot
    if robot.tree.elastic:
        return flexible_inverse(configuration, velocity, acceleration, wrench, reactions, sharing)
    if not is_joint_motion(robot, velocity, acceleration):
        configuration.refuse_singular_legs()
    if configuration.lacks_motors:
        return underactuated_inverse(configuration, velocity, acceleration, wrench, reactions, sharing)
    configuration.refuse_undefined_actuation()
    qd = configuration.rates(velocity)
    qdd = configuration.accelerations(acceleration, qd, velocity)
    return rigid_inverse(configuration, qd, qdd, wrench, form, reactions, sharing)


def rigid_inverse(
    configuration: Configuration,
    qd: Array,
    qdd: Array,
    wrench: Wrench | None = None,
    form: str = "split",
    reactions: bool = False,
    sharing: Sharing | None = None,
) -> Result:
    """Efforts for rates and accelerations of all coordinates that fit the loops, where the motors define the motion."""
    robot, state = configuration.robot, state_at(configuration, qd, wrench)
    f = state.forces(qdd)
    redundant = len(robot.actuated) > state.J_a.shape[1]
    shared, lost = _efforts(configuration, state, f, form, sharing or read_sharing(robot))
    tau = shared.tau
    f = f - lost  # gears lose it, and neither motors nor closures give it
    efforts = dict(zip(robot.actuated_names, (float(value) for value in tau), strict=True))
    warnings = [*robot.warnings, *configuration.condition.warnings()]
    warnings += shared.warnings
    found = reactions_of(configuration, qd, qdd, f, tau, wrench, warnings) if reactions else None
    elements = values_in_motion(configuration, qd, lambda: f, tau)
    warnings += slack_warnings(robot, elements)
    return Result(
        robot, configuration, qd, qdd, efforts, redundant, found, warnings, elements=elements, internal=shared.internal
    )


def _efforts(
    configuration: Configuration, state: Any, f: Array, form: str, sharing: Sharing
) -> tuple[SharedEfforts, Any]:
    """Efforts for forces of the open tree, and what gears lose; with spare motors those that were asked for."""
    motors, freedoms = state.J_a.shape
    if motors > freedoms:
        return _shared(configuration, state, f, sharing)
    tau, lost = state.driven(f, form) if motors else (np.zeros(0), 0.0)
    refuse_outside(tau, sharing)
    return SharedEfforts(tau, None, []), lost


def _shared(configuration: Configuration, state: Any, f: Array, sharing: Sharing) -> tuple[SharedEfforts, Any]:
    """Efforts that spare motors share, and what gears lose under them."""
    A, losses = state.J_a.T, state.losses
    if losses is None:
        found = shared_efforts(A, state.reduction.forces(f), sharing)
        return tautened(found, configuration, A, f, sharing), 0.0

    def answer(lost: Array) -> tuple[SharedEfforts, Array]:
        found = shared_efforts(A, state.reduction.forces(f - lost), sharing)
        return found, f - lost - state.along_rates(found.tau)

    pushes = losses.pushes
    taken = [least_norm(A, state.reduction.forces(push), sharing.weights) for push in pushes]
    return losses.settled(answer, state.along_rates(np.array(taken).T) - pushes.T)


def forward_dynamics(
    robot: Robot,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | None = None,
    effort: Effort | None = None,
    *,
    wrench: Wrench | None = None,
    without: Without = (),
    reactions: bool = False,
) -> Result:
    """Accelerations under efforts of the motors.

    What is in the robot file acts, except what `without` names.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    velocity : Mapping[str, float], default None
        Velocities by name; frames in world axes (m/s, rad/s).
    effort : Effort, default None
        Efforts of the motors, by name or in their order; a motor not named has none (N, N m).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    reactions : bool, default False
        Also compute the wrench in every joint and closure.

    Returns
    -------
    Result
        All accelerations (m/s^2, rad/s^2), `acceleration_of(frame)`, reactions if asked for, warnings.

    Examples
    --------
    >>> parflex.forward_dynamics(robot, "home", effort={"leg1.1": 2.0}).acceleration_of()
    """
    configuration = acting_configuration(robot, pose, without)
    tau = read_efforts(configuration.robot, effort)
    found = moved_by(configuration, configuration.rates(velocity), tau, wrench, reactions)
    found.warnings.extend(exceeded_limits(found))
    return found


def moved_by(
    configuration: Configuration, qd: Array, tau: Array, wrench: Wrench | None = None, reactions: bool = False
) -> Result:
    """Accelerations under efforts of all motors, for rates of all coordinates that fit the loops."""
    robot, state = configuration.robot, state_at(configuration, qd, wrench)
    free, lost = state.pushed(tau, lambda M, right: _solve_mass(configuration, M, right))
    qdd = configuration.J @ free + state.bias
    warnings = [*robot.warnings, *configuration.condition.warnings()]
    warnings += deflection_warnings(robot.tree, configuration.q)
    efforts = dict(zip(robot.actuated_names, (float(value) for value in tau), strict=True))
    found = None
    if reactions:
        found = reactions_of(configuration, qd, qdd, state.forces(qdd) - lost, tau, wrench, warnings)
    elements = values_in_motion(configuration, qd, lambda: state.forces(qdd) - lost, tau)
    warnings += slack_warnings(robot, elements)
    elastic = {robot.tree.rate_names[k]: float(qdd[k]) for k in robot.tree.elastic}
    return Result(robot, configuration, qd, qdd, efforts, False, found, warnings, elastic, elements, direct=True)


def _solve_mass(configuration: Configuration, M: Array, right: Array) -> Array:
    """M^-1 right, after scaling; a motion without inertia is named."""
    if not len(right):
        return right
    units = configuration.robot.tree.rate_units[configuration.reduction.partition.independent]
    scaled = M * np.outer(units, units)
    try:
        factor = scipy.linalg.cho_factor(scaled)
        if np.min(np.abs(np.diag(factor[0]))) < 1e-9 * np.max(np.abs(np.diag(factor[0]))):
            raise np.linalg.LinAlgError
        return (units * scipy.linalg.cho_solve(factor, (units * right.T).T).T).T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scaled)
        names = configuration.independent_names
        weak = names[int(np.argmax(np.abs(vectors[:, 0])))]
        raise SingularError(
            f"the motion of '{weak}' has no positive inertia ({values[0]:.3g}), so its acceleration is undefined",
            key="inertia",
            value=weak,
            hint="give a mass and an inertia to the bodies that move with it",
        ) from None


def mass_matrix(
    robot: Robot,
    pose: Pose | None = None,
    coordinates: Literal["independent", "motors"] = "independent",
    without: Without = (),
) -> MassMatrix:
    """Mass matrix of the closed-loop robot.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    coordinates : {'independent', 'motors'}, default "independent"
        Rates of its rows and columns.
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.

    Returns
    -------
    MassMatrix
        `matrix` (kg, kg m, kg m^2) and `names` of its rates; an array to NumPy, unpacks as (matrix, names).

    Examples
    --------
    >>> M, names = parflex.mass_matrix(robot, "home", coordinates="motors")
    """
    one_of(coordinates, ("independent", "motors"), "coordinates")
    configuration = acting_configuration(robot, pose, without)
    robot = configuration.robot
    M = state_at(configuration, np.zeros(robot.tree.n)).mass_matrix
    if coordinates == "independent":
        return MassMatrix(M, list(configuration.independent_names))
    configuration.refuse_undefined_actuation()
    P = np.linalg.pinv(configuration.J_a)  # independent rates per rate of the motors
    return MassMatrix(P.T @ M @ P, list(robot.actuated_names))


def energies(
    robot: Robot | Configuration,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | Array | None = None,
    without: Without = (),
) -> Energies:
    """Kinetic and potential energy at a pose in a motion.

    Gravity is counted from the origin of the world. `energies(configuration, rates)` takes the rates of all
    coordinates.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    velocity : Mapping[str, float], default None
        Velocities by name; frames in world axes (m/s, rad/s).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.

    Returns
    -------
    Energies
        `kinetic`, `potential` = `elastic` + `gravity`, in J; unpacks as (kinetic, potential).

    Examples
    --------
    >>> kinetic, potential = parflex.energies(robot, "home", {"x": 0.5})
    """
    if isinstance(robot, Configuration):
        here = acting_configuration(robot.robot, robot, without)
        qd = numbers(pose, (here.robot.tree.n,), "qd")
    else:
        here = acting_configuration(robot, pose, without)
        qd = here.rates(velocity) if velocity is None or isinstance(velocity, Mapping) else all_rates(here, velocity)
    found = tree_energies(here.robot.tree, here.at, qd)
    return Energies(float(found.kinetic), float(found.elastic), float(found.gravity))
