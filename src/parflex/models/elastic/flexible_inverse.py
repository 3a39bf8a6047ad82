"""The inverse model of flexible robots: motors, or the end effector, move as given, bodies are free to deform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.errors import InputError, SingularError
from parflex.forces.forces import Wrench, values_in_motion
from parflex.forces.gear_losses import with_losses
from parflex.forces.reactions import reactions_of
from parflex.forces.shared_efforts import SharedEfforts, refuse_outside, shared_efforts
from parflex.forces.spare_motors import Sharing, read_sharing, spare_motors
from parflex.forces.taut_cables import slack_warnings
from parflex.models.dynamics.reduced import Result, is_joint_motion, state_at
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import elastic_names
from parflex.robot.pose_input import read_motion
from parflex.spatial.linear import least_norm
from parflex.statics.small_deformation import deflection_warnings
from parflex.statics.zero_dynamics import check_system, zero_dynamics

Array = np.ndarray
STILL = 1e-3  # m/s2: a ten-thousandth of gravity, and far above what Newton leaves of an equilibrium


def flexible_inverse(
    configuration: Configuration,
    velocity: Mapping[str, float] | None,
    acceleration: Mapping[str, float] | None,
    wrenches: Wrench | None,
    reactions: bool,
    sharing: Sharing | None = None,
) -> Result:
    """Efforts and elastic accelerations when motors, or the end effector, move as given and bodies are free to deform.

    M qdd + c = J_a^T tau and J_x qdd = (accelerations of what is driven) are solved together, [Long2014, eq. (46)]
    for a driven platform.
    """
    robot = configuration.robot
    by_frame = not is_joint_motion(robot, velocity, acceleration) and bool(velocity or acceleration)
    qd = configuration.rates(velocity)
    state = state_at(configuration, qd, wrenches)
    rows, desired = _driven(configuration, velocity, acceleration, qd, state.bias, by_frame)
    near = check_system(configuration, robot.tree.end_effector) if by_frame else []
    if sharing is None:
        sharing = read_sharing(robot)
    shared, qdd, lost = driven_by(state, rows, desired, sharing)
    tau = shared.tau
    warnings = [*robot.warnings, *shared.warnings]
    warnings += deflection_warnings(robot.tree, configuration.q)
    if by_frame:
        warnings += [*near, *_growth_warnings(configuration)]
    warnings += equilibrium_warnings(configuration, qdd, moving=bool(velocity or acceleration))
    found = None
    if reactions:
        found = reactions_of(configuration, qd, qdd, state.forces(qdd) - lost, tau, wrenches, warnings)
    efforts = dict(zip(robot.actuated_names, (float(value) for value in tau), strict=True))
    elastic = {robot.tree.rate_names[j]: float(qdd[j]) for j in robot.tree.elastic}
    elements = values_in_motion(configuration, qd, lambda: state.forces(qdd) - lost, tau)
    warnings += slack_warnings(robot, elements)
    return Result(
        robot, configuration, qd, qdd, efforts, spare_motors(robot) > 0, found, warnings, elastic, elements,
        internal=shared.internal,
    )  # fmt: skip


def driven_by(state: Any, rows: Array, desired: Array, sharing: Sharing) -> tuple[SharedEfforts, Array, Any]:
    """Efforts, and all accelerations, at which `rows` of the independent accelerations are as `desired`.

    Motors beyond the rows share the efforts; those that accelerate no row are internal ones. Then come forces along
    all rates that gears lose.
    """
    M, J_a = state.mass_matrix, state.J_a
    count, k = len(M), len(J_a)
    if k > len(rows):
        return _shared(state, rows, desired, sharing)
    if sharing.preloaded or sharing.weights is not None:
        raise InputError(
            "bodies deform, so motions of all motors determine their efforts: none is spare",
            key="preload" if sharing.preloaded else "weights",
            hint="give the motion of the end effector, or leave it out",
        )
    system = np.block([[M, -J_a.T], [rows, np.zeros((len(rows), k))]])

    def solved(c: Array, wanted: Array) -> tuple[Array, Array]:
        solution = np.linalg.solve(system, np.concatenate([-c, wanted]))
        return solution[count:], solution[:count]

    try:
        tau, free, lost = with_losses(state, solved, state.c, desired)
    except np.linalg.LinAlgError:
        raise SingularError(
            "the motors do not define the motion here", key="pose", hint="choose another pose, or use rigid=True"
        ) from None
    refuse_outside(tau, sharing)
    return SharedEfforts(tau, None, []), state.reduction.matrix @ free + state.bias, lost


def _shared(state: Any, rows: Array, desired: Array, sharing: Sharing) -> tuple[SharedEfforts, Array, Any]:
    """The same for more motors than rows."""
    J, k, losses = state.reduction.matrix, len(state.J_a), state.losses
    push = np.linalg.solve(state.mass_matrix, np.column_stack([state.J_a.T, state.c]))

    def answer(lost: Any) -> tuple[tuple[SharedEfforts, Array], Array]:
        held = push[:, k] - (np.linalg.solve(state.mass_matrix, J.T @ lost) if losses is not None else 0.0)
        shared = shared_efforts(rows @ push[:, :k], desired + rows @ held, sharing)
        qdd = J @ (push[:, :k] @ shared.tau - held) + state.bias
        return (shared, qdd), state.forces(qdd) - lost - state.along_rates(shared.tau)

    if losses is None:
        return *answer(0.0)[0], 0.0
    pushes = losses.pushes.T
    held = np.linalg.solve(state.mass_matrix, J.T @ pushes)
    taken = -np.array([least_norm(rows @ push[:, :k], rows @ column, sharing.weights) for column in held.T]).T
    moved = tree_mass_matrix(state.form.robot.tree, state.at) @ (J @ (push[:, :k] @ taken + held))
    (shared, qdd), lost = losses.settled(answer, moved - pushes - state.along_rates(taken))
    return shared, qdd, lost


def _driven(
    configuration: Configuration,
    velocity: Mapping[str, float] | None,
    acceleration: Mapping[str, float] | None,
    qd: Array,
    b: Array,
    by_frame: bool,
) -> tuple[Array, Array]:
    """Rows of what is driven, per independent rate, and their prescribed accelerations less the bias.

    Motors, or all components of the end effector; what is not given does not accelerate.
    """
    robot = configuration.robot
    if not by_frame:
        given = {word: value for word, value in (acceleration or {}).items() if word not in elastic_names(robot.tree)}
        joints, _ = read_motion(robot.tree, given, "acceleration")
        strange = [robot.tree.rate_names[k] for k in joints if k not in robot.actuated]
        if strange:
            raise InputError(
                f"'{strange[0]}' is not a motor",
                key="acceleration",
                value=strange[0],
                hint="give accelerations of motors",
            )
        desired = np.array([joints.get(k, 0.0) for k in robot.actuated])
        return configuration.J_a, desired - b[list(robot.actuated)]
    frame = robot.tree.end_effector
    words = {**(velocity or {}), **(acceleration or {})}
    _, frames = read_motion(robot.tree, words, "acceleration")
    other = [name for name in frames if name != frame]
    if other:
        raise InputError(
            f"'{other[0]}' is not the end effector", key="acceleration", value=other[0], hint=f"drive '{frame}'"
        )
    _, frames = read_motion(robot.tree, acceleration or {}, "acceleration")
    parts = [0, 1, 5] if robot.tree.planar else list(range(6))
    bias = configuration.frame_acceleration(frame, motion(robot.tree, configuration.at, qd, b))
    desired = np.array([frames.get(frame, {}).get(part, 0.0) for part in parts]) - bias[parts]
    return (configuration.frame_rows(frame) @ configuration.J)[parts], desired


def equilibrium_warnings(configuration: Configuration, qdd: Array, moving: bool) -> list[str]:
    """Warn where elastic coordinates accelerate: they are not in equilibrium with the state, at rest or `moving`."""
    elastic = list(configuration.robot.tree.elastic)
    size = np.abs(qdd[elastic] * configuration.robot.tree.rate_units[elastic])
    if size.max(initial=0.0) < STILL:
        return []
    name = configuration.robot.tree.rate_names[elastic[int(size.argmax())]]
    if moving:
        return [
            f"the bodies are not in equilibrium in this motion: they start to deform ('{name}' most), so these efforts "
            "hold for this instant only; simulate the motion for its efforts in time"
        ]
    return [
        f"the robot is at rest but not in equilibrium: it starts to deform ('{name}' most), so these are not holding "
        "efforts; compute the deflection ('parflex stiffness'), or use the configuration of an equilibrium"
    ]


def _growth_warnings(configuration: Configuration) -> list[str]:
    """Whether the deformations would grow while the end effector is driven."""
    if spare_motors(configuration.robot) > 0:
        return ["how the deformations go on depends on how spare motors share the efforts: it is not judged"]
    try:
        return zero_dynamics(configuration.robot, configuration).warnings()
    except SingularError as error:
        return [f"the elastic zero dynamics are unknown: {error.message}"]
