"""Compute inverse and direct dynamic models of closed robots, mass matrix and energies.

By the principle of virtual power, with qd_tot = J qd and qd_a = J_a qd, the forces f = M_tot qdd_tot + c_tot of the
open tree give J^T f = J_a^T tau. [Khalil2007, eq. (20)] is this equation; its eq. (22) takes the rows of the motors
directly and projects only the others.

A robot with fewer motors than degrees of freedom moves in part by itself: M qdd + c = J_a^T tau and as many specified
accelerations as motors are solved together, theory (17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy

from parflex.checks import numbers, one_of
from parflex.closure.constraints import Distance
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, SingularError
from parflex.forces.coupling_losses import with_losses
from parflex.forces.effort_allocation import (
    AllocatedEfforts,
    EffortAllocation,
    EffortLimit,
    Preload,
    Weights,
    actuation_redundancy,
    read_allocation,
    slack_warnings,
)
from parflex.forces.forces import Without, Wrench, checked_wrenches, element_values, multipliers_of
from parflex.forces.reactions import reactions_of
from parflex.formulations.base import ModelRequest
from parflex.formulations.choice import choose
from parflex.records import Answer, NamedMatrix, brief, count_of, degrees_of_freedom, name_list
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.energy import Energies
from parflex.recursion.energy import energies as tree_energies
from parflex.recursion.kinematics import motion
from parflex.robot.batches import answer_rows, is_batch
from parflex.robot.configuration import Configuration, Pose, all_accelerations, all_rates, configure, refuse_dependent
from parflex.robot.coordinate_names import elastic_names
from parflex.robot.limits import efforts_of_file, limit_warnings
from parflex.robot.load import acting_configuration
from parflex.robot.motor_values import Effort, read_efforts
from parflex.robot.pose_input import read_motion
from parflex.robot.rates import Bias, requested_rates
from parflex.robot.robot import Robot, effort_units
from parflex.robot.states import ToleranceFactors, as_numbers, closed_positions, common_batch, refuse_infinite
from parflex.spatial.linear import least_norm
from parflex.statics.linear_system import missing_inertia
from parflex.statics.small_deformation import deflection_warnings
from parflex.statics.zero_dynamics import check_system, zero_dynamics

Array = np.ndarray

LARGE = 1e60  # products of a few larger numbers may overflow
STILL = 1e-3  # m/s2: a ten-thousandth of gravity, far above the residual of an equilibrium


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
    """Compute the motor efforts for a motion of the end effector (world axes) or of joints; as in `parflex`.

    With fewer motors than degrees of freedom, motors have the specified accelerations (zero by default), and other
    joints move freely.
    """
    here = acting_configuration(robot, pose, without)
    allocation = read_allocation(here.robot, weights, preload, effort_limit)
    if robot.tree.elastic:
        qd, moving = here.rates(velocity), bool(velocity or acceleration)
        rows, desired, notes = _driven(here, velocity, acceleration, qd, here.acceleration_bias(qd))
        result = driven_inverse(here, qd, rows, desired, wrench, reactions, allocation, notes, moving)
    else:
        if not is_joint_motion(here.robot, velocity, acceleration):
            here.refuse_singular_legs()
        qd = here.rates(velocity)
        if here.is_underactuated_here:
            rows, desired = _given(here, acceleration, qd, here.acceleration_bias(qd))
            result = driven_inverse(here, qd, rows, desired, wrench, reactions, allocation)
        else:
            here.refuse_undefined_actuation()
            qdd = here.accelerations(acceleration, qd, velocity)
            result = rigid_inverse(here, qd, qdd, wrench, form, reactions, allocation)
    limits = [] if ignore_limits else exceeded_limits(result, allocation)
    return replace(result, diagnostics=(*result.diagnostics, *limits))


def exceeded_limits(result: Result, allocation: EffortAllocation | None = None) -> list[Diagnostic]:
    """Return a diagnostic for each limit that a state, or the efforts of an inverse model, exceed."""
    efforts: Mapping[str, Any] = {} if result.direct else result.efforts
    if allocation is not None:
        efforts = efforts_of_file(efforts, allocation.lower, allocation.upper)
    return limit_warnings(result.robot, result.configuration.q, result.rates, efforts)


def rigid_inverse(
    configuration: Configuration,
    qd: Array,
    qdd: Array,
    wrench: Wrench | None = None,
    form: str = "split",
    reactions: bool = False,
    allocation: EffortAllocation | None = None,
) -> Result:
    """Return the efforts for rates and accelerations of all coordinates that fit the loops."""
    state = state_at(configuration, qd, wrench)
    f, redundant = state.forces(qdd), len(state.J_a) > state.J_a.shape[1]
    allocation = allocation or read_allocation(configuration.robot)
    if redundant:
        shared, loss_forces = _shared(configuration, state, f, allocation)
    else:
        tau, loss_forces = state.driven(f, form) if len(state.J_a) else (np.zeros(0), 0.0)
        shared = allocation.only(tau)
    diagnostics = [*configuration.robot.diagnostics, *configuration.condition.diagnostics, *shared.diagnostics]
    outcome = configuration, qd, qdd, shared.tau, lambda: f - loss_forces, diagnostics
    return _result(*outcome, wrench, reactions, redundant_actuation=redundant, internal=shared.internal)


def _result(
    configuration: Configuration,
    qd: Array,
    qdd: Array,
    tau: Array,
    forces: Callable[[], Array],
    diagnostics: Sequence[Diagnostic],
    wrench: Wrench | None,
    reactions: bool,
    **others: Any,
) -> Result:
    """Return the result of a solved model, with reactions on request; `forces` of the tree exclude gear losses."""
    robot, notes = configuration.robot, list(diagnostics)
    wrenches = reactions_of(configuration, qd, qdd, forces(), tau, wrench, notes) if reactions else None
    rods = any(isinstance(row, Distance) for row in robot.closures.constraints)
    values = element_values(configuration, qd, multipliers_of(configuration, forces(), tau) if rods else None)
    notes += slack_warnings(robot, values)
    efforts = dict(zip(robot.actuated_names, map(float, tau), strict=True))
    elastic = {robot.tree.rate_names[k]: float(qdd[k]) for k in robot.tree.elastic}
    others |= {"reactions": wrenches, "diagnostics": tuple(notes), "elastic_accelerations": elastic, "elements": values}
    return Result(robot, configuration, qd, qdd, efforts, **others)


def _shared(
    configuration: Configuration, state: Any, f: Array, allocation: EffortAllocation
) -> tuple[AllocatedEfforts, Any]:
    """Return efforts of redundant motors, and the forces that gears lose under them."""
    A, losses = state.J_a.T, state.losses
    if losses is None:
        return allocation.solve(A, state.reduction.forces(f), configuration, f), 0.0

    def answer(loss_forces: Array) -> tuple[AllocatedEfforts, Array]:
        shared = allocation.solve(A, state.reduction.forces(f - loss_forces))
        return shared, f - loss_forces - state.along_rates(shared.tau)

    forces_per_loss = losses.pushes
    compensating_efforts = [
        least_norm(A, state.reduction.forces(forces), allocation.weights) for forces in forces_per_loss
    ]
    return losses.settled(answer, state.along_rates(np.array(compensating_efforts).T) - forces_per_loss.T)


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
    """Compute accelerations under efforts of the motors in a motion by names; as in `parflex`."""
    configuration = acting_configuration(robot, pose, without)
    tau = read_efforts(configuration.robot, effort)
    result = accelerations_under(configuration, configuration.rates(velocity), tau, wrench, reactions)
    return replace(result, diagnostics=(*result.diagnostics, *exceeded_limits(result)))


def accelerations_under(
    configuration: Configuration, qd: Array, tau: Array, wrench: Wrench | None = None, reactions: bool = False
) -> Result:
    """Return accelerations under efforts of all motors, for rates of all coordinates that fit the loops."""
    robot, state = configuration.robot, state_at(configuration, qd, wrench)
    free, loss_forces = state.pushed(tau, lambda M, right: _solve_mass(configuration, M, right))
    qdd = configuration.J @ free + state.bias
    diagnostics = [*robot.diagnostics, *configuration.condition.diagnostics]
    diagnostics += deflection_warnings(robot.tree, configuration.q)
    outcome = configuration, qd, qdd, tau, lambda: state.forces(qdd) - loss_forces, diagnostics
    return _result(*outcome, wrench, reactions, direct=True)


def _solve_mass(configuration: Configuration, M: Array, right: Array) -> Array:
    """Return M^-1 right, after scaling; raise with the name of a motion without inertia."""
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
        raise missing_inertia(configuration, scaled, "acceleration") from None


def mass_matrix(
    robot: Robot,
    pose: Pose | None = None,
    coordinates: Literal["independent", "motors"] = "independent",
    without: Without = (),
) -> MassMatrix:
    """Compute the mass matrix of the closed robot; rows of a batch are in the rates of `robot.independent`.

    Parameters
    ----------
    robot, without
        See `parflex.api.WORDS`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or an array of all positions; with a leading
        axis a batch; None is home (m, rad).
    coordinates : {'independent', 'motors'}, default "independent"
        Rates of its rows and columns.

    Returns
    -------
    MassMatrix
        `matrix` (kg, kg m, kg m^2) and `names` of its rates; an array to NumPy, unpacks as (matrix, names). Of a batch
        with a leading axis.
    """
    one_of(coordinates, ("independent", "motors"), "coordinates")

    def at(pose: Any, independent: Sequence[int] | None) -> tuple[Array, Configuration]:
        """Return the matrix at a pose, in its independent rates or in the specified ones."""
        configuration = acting_configuration(robot, pose, without)
        M = state_at(configuration, np.zeros(robot.nv)).mass_matrix
        if coordinates == "motors":
            configuration.refuse_undefined_actuation()
            P = np.linalg.pinv(configuration.J_a)  # independent rates per rate of the motors
        elif independent is not None:
            refuse_dependent(configuration, "rates")
            P = np.linalg.inv(configuration.J[list(independent)])
        else:
            return M, configuration
        return P.T @ M @ P, configuration

    names = list(robot.actuated_names)
    if is_batch(pose):
        names = names if coordinates == "motors" else robot.independent
        own = robot.independent_rates
        return MassMatrix(answer_rows(pose, lambda _, row: [at(row, own)[0]], (len(names), len(names)))[0], names)
    M, configuration = at(pose, None)
    return MassMatrix(M, list(configuration.independent_names) if coordinates == "independent" else names)


def energies(
    robot: Robot | Configuration,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | Array | None = None,
    without: Without = (),
) -> Energies:
    """Compute kinetic and potential energy at a pose in a motion.

    The potential energy of gravity is zero at the origin of the world. `energies(configuration, rates)` takes the
    rates of all coordinates.

    Parameters
    ----------
    robot, without
        See `parflex.api.WORDS`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or an array of all positions; with a leading
        axis a batch; None is home (m, rad).
    velocity : Mapping[str, float] or Array, default None
        Velocities by name (frames in world axes), or rates in the order of `robot.rates` or `robot.independent`; with a
        leading axis a batch (m/s, rad/s).

    Returns
    -------
    Energies
        `kinetic`, `potential` = `elastic` + `gravity`, in J; unpacks as (kinetic, potential). Of a batch arrays.
    """
    if isinstance(robot, Configuration):
        configuration = acting_configuration(robot.robot, robot, without)
        return Energies(*_energies(configuration, numbers(pose, (configuration.robot.nv,), "qd")))

    rows, poses = as_numbers(velocity, "velocity") if is_batch(velocity) else None, pose
    if rows is not None:
        poses = as_numbers(pose if is_batch(pose) else configure(robot, pose).q[None], "pose")
        count = common_batch({"pose": poses, "velocity": rows}) or 0
        poses, rows = (np.broadcast_to(array, (count, array.shape[1])) for array in (poses, rows))

    def at(number: int, pose: Any) -> tuple[float, ...]:
        """Return the energies at a pose in its motion."""
        configuration = acting_configuration(robot, pose, without)
        given: Any = velocity if rows is None else rows[number]
        named = given is None or isinstance(given, Mapping)
        return _energies(configuration, configuration.rates(given) if named else all_rates(configuration, given))

    return Energies(*answer_rows(poses, at, (), (), ()))


def _energies(configuration: Configuration, qd: Array) -> tuple[float, ...]:
    energy = tree_energies(configuration.robot.tree, configuration.at, qd)
    return float(energy.kinetic), float(energy.elastic), float(energy.gravity)


@dataclass(frozen=True, eq=False, repr=False)
class Result(Answer):
    """Result of a dynamic model of `robot`, with its active terms, at `configuration`.

    `rates` and `accelerations` are in the order of `robot.rates` (m/s, rad/s and per second), `efforts` by motor in
    the order of `robot.motors` (N, N m). `direct` is true for a direct model. `redundant_actuation` is true for
    more motors than degrees of freedom; `internal` then has their number, the criterion of the efforts, and the
    internal part (N, N m). With fewer motors `free` has the accelerations of free motions by name;
    `elastic_accelerations` those of elastic coordinates. `elements` has the length (m), rate (m/s) and force (N,
    positive in tension) of each element by name. `reactions`, if requested: `joints` and `closures`, {name: {force
    (N), moment (N m), undetermined}}, force and moment as [x, y, z]; `couplings`, {name: {effort (N, N m),
    undetermined}}; `elements`. `diagnostics` hold for this state.
    """

    robot: Robot
    configuration: Configuration
    rates: Array  # all rates
    accelerations: Array  # all accelerations
    efforts: dict[str, float]
    redundant_actuation: bool = False
    reactions: dict[str, Any] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    elastic_accelerations: dict[str, float] = field(default_factory=dict)
    elements: dict[str, dict[str, Any]] = field(default_factory=dict)  # length, rate and force of elements by name
    direct: bool = False  # efforts were given, and accelerations found
    free: dict[str, float] = field(default_factory=dict)  # accelerations of what no motor drives, by name
    internal: dict[str, Any] | None = None  # of redundant motors

    @property
    def values(self) -> Array:
        """Efforts of an inverse model, accelerations of a direct one."""
        return self.accelerations if self.direct else np.array(list(self.efforts.values()))

    def acceleration_of(self, frame: str | None = None) -> Array:
        """Return the world acceleration (m/s^2, rad/s^2) of the frame `frame`, None for the end effector."""
        moving = motion(self.robot.tree, self.configuration.at, self.rates, self.accelerations)
        return self.configuration.frame_acceleration(frame or self.robot.tree.end_effector, moving)

    def _told(self) -> str:
        warned = f"; {count_of(len(self.diagnostics), 'warning')}" if self.diagnostics else ""
        values = self.computed_accelerations()
        units, word = effort_units(self.robot), "accelerations" if values else "efforts"
        if values:
            units = {name: "m/s2" if unit == "N" else "rad/s2" for name, unit in units.items()}
        rows = [f"{name} {x:.5g} {units.get(name, '')}".strip() for name, x in (values or self.efforts).items()]
        return f"{brief(self.robot.name)}: {word} {name_list(rows)}{warned}"

    def computed_accelerations(self) -> dict[str, float]:
        """Return the accelerations from a direct model, of the motors or of the independent rates if more."""
        robot = self.robot
        independent = self.configuration.reduction.partition.independent
        most = robot.actuated if robot.tree.elastic else max(robot.actuated, independent, key=len)
        return {robot.tree.rate_names[k]: float(self.accelerations[k]) for k in most} if self.direct else {}


@dataclass(frozen=True, eq=False, repr=False)
class MassMatrix(NamedMatrix):
    """Mass matrix of a closed robot; an array to NumPy, and unpacks as (`matrix`, `names`).

    Square (kg, kg m, kg m^2), of a batch with a leading axis; the names are those of the rates of rows and columns.
    """

    matrix: Array
    names: list[str]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.matrix, self.names))

    def __getitem__(self, key: Any) -> Any:
        """Return an entry by row and column; for one number, an item of the unpacked record."""
        return self.matrix[key] if isinstance(key, tuple) else (self.matrix, self.names)[key]

    def _told(self) -> str:
        return f"{len(self.names)}x{len(self.names)} of {name_list(self.names)}"


def is_joint_motion(robot: Robot, *motion_tables: Mapping[str, float] | None) -> bool:
    """Return whether all names of a motion are joints or elastic coordinates."""
    keys = [key for table in motion_tables if table for key in table]
    names = {link.name for link in robot.tree.links} | elastic_names(robot.tree)
    return bool(keys) and all(key in names or key.removeprefix("q") in names for key in keys)


def state_at(configuration: Configuration, qd: Array, wrenches: Wrench | None = None) -> Any:
    """Return a state of the general form in floats, with dependent rates that suit this pose."""
    robot = configuration.robot
    form: Any = choose(robot, ModelRequest("numbers", at=configuration))
    return form.here(qd, checked_wrenches(robot.tree, wrenches))


def driven_inverse(
    configuration: Configuration,
    qd: Array,
    rows: Array,
    desired: Array,
    wrench: Wrench | None,
    reactions: bool,
    allocation: EffortAllocation,
    notes: Sequence[Diagnostic] = (),
    moving: bool | None = None,
) -> Result:
    """Return efforts for `desired` accelerations along `rows`; undriven coordinates move freely.

    M qdd + c = J_a^T tau and J_x qdd = (accelerations of driven rows) are solved together, [Long2014, eq. (46)] for
    a driven platform. Equilibrium of a flexible robot is judged in motion or at zero velocity by `moving`; None
    skips this check.
    """
    robot, state = configuration.robot, state_at(configuration, qd, wrench)
    shared, qdd, loss_forces = driven_by(state, rows @ configuration.J, desired, allocation)
    others: dict[str, Any] = {}
    if robot.tree.elastic:
        diagnostics = [*shared.diagnostics, *deflection_warnings(robot.tree, configuration.q), *notes]
        diagnostics += [] if moving is None else equilibrium_warnings(configuration, qdd, moving)
        others |= {"redundant_actuation": actuation_redundancy(robot) > 0, "internal": shared.internal}
    else:
        free = {robot.tree.rate_names[k]: float(qdd[k]) for k in configuration.free_rates(rows)}
        names = ", ".join(f"'{name}'" for name in free)
        count = f"{count_of(len(shared.tau), 'motor')} for {degrees_of_freedom(len(state.mass_matrix))}"
        text = f"fewer motors than degrees of freedom ({count}): {names} {'moves' if len(free) == 1 else 'move'} freely"
        diagnostics, others = [*configuration.condition.diagnostics, Diagnostic("underactuated", text)], {"free": free}
    outcome = configuration, qd, qdd, shared.tau, lambda: state.forces(qdd) - loss_forces
    return _result(*outcome, [*robot.diagnostics, *diagnostics], wrench, reactions, **others)


def float_answer(robot: Robot, model: str, state: Sequence[Any], wrench: Wrench, *options: Any) -> Result:
    """Return the inverse or direct model of a state of arrays; raise if numbers overflow."""
    names = ["q", "qd", "qdd" if model == "inverse" else "effort", *wrench]
    entries = [
        (abs(float(value)), name, place, float(value))
        for name, array in zip(names, [*state, *wrench.values()], strict=True)
        for place, value in enumerate(() if array is None else array)
        if np.isfinite(value)
    ]
    size, name, place, value = max(entries, default=(0.0, "q", 0, 0.0))
    result = None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            result = _state_in_floats(robot, model, state, wrench, *options)
    except (ParflexError, ValueError):  # also of a library that was given what has overflown
        if size <= LARGE:
            raise
    if result is None or not np.isfinite(result.values).all():
        text = f"entry {place} of '{name}' is {value:.4g}, so large that the answer is not finite"
        raise InputError(text, key=name, value=value, hint="give a smaller number") from None
    return result


def _state_in_floats(
    robot: Robot,
    model: str,
    state: Sequence[Any],
    wrench: Wrench,
    tolerances: ToleranceFactors,
    allocation: EffortAllocation | None,
) -> Result:
    """Return the model of a state after checking that rates and accelerations fit the loops.

    As in a motion by joints, a singularity of a leg does not matter, because its rates are known. Flexible and
    underactuated robots take accelerations of the motors.
    """
    q, qd, last = state
    configuration = Configuration(robot, closed_positions(robot, q, factor=tolerances.positions))
    if model == "direct":
        tau = np.zeros(robot.nu) if last is None else last
        refuse_infinite(tau, "effort")
        return accelerations_under(configuration, all_rates(configuration, qd, tolerances.rates), tau, wrench)
    rates, allocation = all_rates(configuration, qd, tolerances.rates), allocation or read_allocation(robot)
    if not robot.tree.elastic and not configuration.is_underactuated_here:
        configuration.refuse_undefined_actuation()
        accelerations = all_accelerations(configuration, rates, last, tolerances.accelerations)
        return rigid_inverse(configuration, rates, accelerations, wrench, allocation=allocation)
    motors, target = list(robot.actuated), np.zeros(robot.nu)
    if last is not None:
        refuse_infinite(last, "qdd")
        target = last if len(last) in (robot.nv, robot.nu) else all_accelerations(configuration, rates, last)
        target = target if len(target) == robot.nu else target[motors]
    target = target - configuration.acceleration_bias(rates)[motors]
    moving = last is not None if qd is None else None
    return driven_inverse(
        configuration, rates, np.eye(robot.nv)[motors], target, wrench, False, allocation, moving=moving
    )


def _given(
    configuration: Configuration, acceleration: Mapping[str, float] | None, qd: Array, b: Array
) -> tuple[Array, Array]:
    """Return rows of all specified rates, and their accelerations less the bias of the rates."""
    robot = configuration.robot
    requested = requested_rates(configuration, acceleration or {}, Bias(qd, b))
    motors = list(robot.actuated)
    if not requested.frames and set(requested.joints) <= set(motors):
        motor_accelerations = np.array([requested.joints.get(k, 0.0) for k in motors])
        return np.eye(robot.tree.n)[motors], motor_accelerations - b[motors]
    requested.refuse_contradicted()
    if requested.values.any():
        requested.solve([])  # which refuses impossible accelerations
    count = len(requested.values)
    if not count == requested.rank == len(motors):
        given, wanted = count_of(count, "acceleration"), count_of(len(motors), "motor")
        text = f"{given} ({requested.rank} independent) for {wanted}: the others move freely"
        hint = "give accelerations of motors, or as many of frames and joints as there are motors"
        raise InputError(text, key="acceleration", value=count, hint=hint)
    return requested.rows * requested.units[:, None], requested.values * requested.units


def driven_by(
    state: Any, rows: Array, desired: Array, allocation: EffortAllocation
) -> tuple[AllocatedEfforts, Array, Any]:
    """Return efforts and all accelerations for `desired` accelerations along `rows` of the independent rates.

    Additional motors share the efforts; those without effect on the rows are internal efforts. The third result are
    the forces of gear losses along all rates.
    """
    M, J_a = state.mass_matrix, state.J_a
    count, k = len(M), len(J_a)
    if k > len(rows):
        return _redundant_efforts_by_rows(state, rows, desired, allocation)
    if allocation.preloaded or allocation.weights is not None:
        text, key = "bodies deform, so motions of all motors determine their efforts: no motor is redundant", "weights"
        key = "preload" if allocation.preloaded else key
        raise InputError(text, key=key, hint="give the motion of the end effector, or leave it out")
    system = np.block([[M, -J_a.T], [rows, np.zeros((len(rows), k))]])

    def solved(c: Array, accelerations: Array) -> tuple[Array, Array]:
        solution = np.linalg.solve(system, np.concatenate([-c, accelerations]))
        return solution[count:], solution[:count]

    try:
        tau, free, loss_forces = with_losses(state, solved, state.c, desired)
    except np.linalg.LinAlgError:
        text, hint = "the motors do not define the motion here", "choose another pose, or use rigid=True"
        raise SingularError(text, key="pose", hint=hint) from None
    return allocation.only(tau), state.reduction.matrix @ free + state.bias, loss_forces


def _redundant_efforts_by_rows(
    state: Any, rows: Array, desired: Array, allocation: EffortAllocation
) -> tuple[AllocatedEfforts, Array, Any]:
    """Return efforts and accelerations for more motors than rows."""
    J, k, losses = state.reduction.matrix, len(state.J_a), state.losses
    responses = np.linalg.solve(state.mass_matrix, np.column_stack([state.J_a.T, state.c]))

    def answer(loss_forces: Any) -> tuple[tuple[AllocatedEfforts, Array], Array]:
        bias_response = responses[:, k] - (
            np.linalg.solve(state.mass_matrix, J.T @ loss_forces) if losses is not None else 0.0
        )
        shared = allocation.solve(rows @ responses[:, :k], desired + rows @ bias_response)
        qdd = J @ (responses[:, :k] @ shared.tau - bias_response) + state.bias
        return (shared, qdd), state.forces(qdd) - loss_forces - state.along_rates(shared.tau)

    if losses is None:
        return *answer(0.0)[0], 0.0
    forces_per_loss = losses.pushes.T
    loss_responses = np.linalg.solve(state.mass_matrix, J.T @ forces_per_loss)
    compensating_efforts = -np.array(
        [least_norm(rows @ responses[:, :k], rows @ column, allocation.weights) for column in loss_responses.T]
    ).T
    inertia_forces = tree_mass_matrix(state.form.robot.tree, state.at) @ (
        J @ (responses[:, :k] @ compensating_efforts + loss_responses)
    )
    (shared, qdd), loss_forces = losses.settled(
        answer, inertia_forces - forces_per_loss - state.along_rates(compensating_efforts)
    )
    return shared, qdd, loss_forces


def _driven(
    configuration: Configuration,
    velocity: Mapping[str, float] | None,
    acceleration: Mapping[str, float] | None,
    qd: Array,
    b: Array,
) -> tuple[Array, Array, list[Diagnostic]]:
    """Return rows of motors or of the end effector, accelerations (zero by default) less the bias, and diagnostics."""
    robot, frame = configuration.robot, configuration.robot.tree.end_effector
    if is_joint_motion(robot, velocity, acceleration) or not (velocity or acceleration):
        elastic = elastic_names(robot.tree)
        motor_values = {word: value for word, value in (acceleration or {}).items() if word not in elastic}
        joints, _ = read_motion(robot.tree, motor_values, "acceleration")
        for name in [robot.tree.rate_names[k] for k in joints if k not in robot.actuated]:
            text, hint = f"'{name}' is not a motor", "give accelerations of motors"
            raise InputError(text, key="acceleration", value=name, hint=hint)
        motors = list(robot.actuated)
        return np.eye(robot.nv)[motors], np.array([joints.get(k, 0.0) for k in motors]) - b[motors], []
    _, frames = read_motion(robot.tree, {**(velocity or {}), **(acceleration or {})}, "acceleration")
    for name in [name for name in frames if name != frame]:
        text = f"'{name}' is not the end effector"
        raise InputError(text, key="acceleration", value=name, hint=f"drive '{frame}'")
    _, frames = read_motion(robot.tree, acceleration or {}, "acceleration")
    parts = robot.tree.components
    bias = configuration.frame_acceleration(frame, motion(robot.tree, configuration.at, qd, b))
    desired = np.array([frames.get(frame, {}).get(part, 0.0) for part in parts]) - bias[parts]
    notes, open_text = check_system(configuration, frame), ""
    if actuation_redundancy(robot) > 0:
        open_text = "equilibrium was not checked: the deformations depend on how redundant motors share the efforts"
    else:
        try:
            notes += zero_dynamics(robot, configuration).diagnostics
        except SingularError as error:
            open_text = f"the elastic zero dynamics are unknown: {error.message}"
    notes += [Diagnostic("unknown-zero-dynamics", open_text)] if open_text else []
    return configuration.frame_rows(frame)[parts], desired, notes


def equilibrium_warnings(configuration: Configuration, qdd: Array, moving: bool) -> list[Diagnostic]:
    """Warn if elastic coordinates accelerate, so the state is not in equilibrium, at zero velocity or `moving`."""
    elastic = list(configuration.robot.tree.elastic)
    size = np.abs(qdd[elastic] * configuration.robot.tree.rate_units[elastic])
    if size.max(initial=0.0) < STILL:
        return []
    name = configuration.robot.tree.rate_names[elastic[int(size.argmax())]]
    text = (
        f"the bodies are not in equilibrium in this motion: they start to deform ('{name}' most), so these efforts "
        "hold for this instant only; simulate the motion for its efforts in time"
        if moving
        else f"the robot is at rest but not in equilibrium: it starts to deform ('{name}' most), so these are not "
        "holding efforts; compute the deflection ('parflex stiffness'), or use the configuration of an equilibrium"
    )
    return [Diagnostic("not-in-equilibrium", text, name, float(size.max()))]
