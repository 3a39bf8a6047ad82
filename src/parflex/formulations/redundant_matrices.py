"""D, C and G of the redundant model as matrices, [Zubizarreta2010, eq. (26)].

`redundant_effort` gives the same efforts without these matrices. Time derivatives of the Jacobians are exact, by dual
numbers. The velocity terms of every body are a skew matrix of its momentum, so that Ddot - 2 C is skew in the model of
the motors alone. H holds friction, springs and dampers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from parflex.errors import InputError
from parflex.forces.coupling_losses import refuse_losses
from parflex.forces.forces import Without, Wrench, checked_wrenches, on_links
from parflex.formulations.redundant_sensors import (
    BY_SENSORS,
    PlatformConstraint,
    RedundantSets,
    all_rates,
    redundant_sets,
)
from parflex.records import Answer
from parflex.recursion.dynamics import carry_wrenches, joint_forces, newton_euler
from parflex.recursion.energy import element_wrenches
from parflex.recursion.kinematics import Pose as LinkPoses
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.robot.configuration import Pose
from parflex.robot.load import acting_configuration
from parflex.robot.robot import Robot
from parflex.spatial.dual import Dual
from parflex.spatial.rotations import hat
from parflex.tree.tree import Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class RedundantModel(Answer):
    """tau = D qdd + C qd + G + H - F_ext in q = [q_a, q_s]; qd_r = T qd_a = T_q qd and x_dot = J_C qd_r.

    `T_dot`, `T_q_dot` and `J_C_dot` are those that (26) needs, for data that fit the loops the derivatives in time.

    Attributes
    ----------
    names : list[str]
        Coordinates q: motors, then sensed joints.
    motors : list[str]
        Motors.
    D : Array
        Mass matrix (kg, kg m^2).
    C : Array
        Coriolis matrix.
    G : Array
        Gravity (N, N m).
    H : Array
        Friction, springs and dampers of joints (N, N m).
    F_ext : Array
        External wrenches (N, N m).
    T : Array
        Rates of the legs per motor rate.
    T_q : Array
        Rates of the legs per rate of q.
    J_C : Array
        Platform twist per rate of the legs.
    T_dot : Array
        Derivative of T in time (1/s).
    T_q_dot : Array
        Derivative of T_q in time (1/s).
    J_C_dot : Array
        Derivative of J_C in time (1/s).
    """

    names: list[str]  # of q
    motors: list[str]
    D: Array
    C: Array
    G: Array
    H: Array  # friction, springs and dampers of joints
    F_ext: Array
    T: Array = field(repr=False)
    T_q: Array = field(repr=False)
    J_C: Array = field(repr=False)
    T_dot: Array = field(repr=False)
    T_q_dot: Array = field(repr=False)
    J_C_dot: Array = field(repr=False)


class _PoseWithSlopes(NamedTuple):
    """A pose whose positions carry their own rates as slopes, and all rates."""

    at: LinkPoses
    links: Sequence[tuple[Array, Array]]
    rates: Array


def redundant_model(
    robot: Robot,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | None = None,
    *,
    sensed: Sequence[str] | None = None,
    wrench: Wrench | None = None,
    without: Without = (),
) -> RedundantModel:
    """Dynamic model in motors and sensed passive joints, at a pose in a motion.

    What is in the robot file acts, except what `without` names.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    velocity : Mapping[str, float], default None
        Velocities by name; frames in world axes (m/s, rad/s).
    sensed : Sequence[str], default None
        Passive joints with sensors; None: those of the file.
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.

    Returns
    -------
    RedundantModel
        Matrices of tau = D qdd + C qd + G + H - F_ext (SI) and names of the coordinates.
    """
    configuration = acting_configuration(robot, pose, without)
    robot = configuration.robot
    form = redundant_sets(robot if sensed is None else robot.sensing(sensed))
    if form.spare:
        raise InputError(
            "the matrices of the redundant model are those of as many motors as degrees of freedom",
            key="actuation",
            value=robot.actuation,
            hint="choose an actuation without spare motors, or use the model 'redundant', whose efforts they share",
        )
    configuration.refuse_undefined_actuation()
    tree = robot.tree
    loads = checked_wrenches(tree, wrench)
    return redundant_matrices(form, configuration.q, configuration.rates(velocity)[form.control], loads)


def redundant_matrices(
    form: RedundantSets, q: Array, qd: Array, wrenches: Mapping[str, Array] | None = None
) -> RedundantModel:
    """The matrices at all positions `q` and rates `qd` of motors and sensed joints, which need not fit the loops."""
    tree, q = form.robot.tree, np.asarray(q, dtype=float)
    refuse_losses(form.robot.closures, BY_SENSORS)
    rates = all_rates(form, q, qd)
    slopes = tree.position_rates(q, rates)
    entries = np.array([Dual(float(value), np.array([slope])) for value, slope in zip(q, slopes, strict=True)])
    at = pose(tree, entries)
    moving = _PoseWithSlopes(at, jacobians(tree, at), rates)
    S, S_dot = _per_motor(form, moving)
    T_q, T_q_dot = _per_control(form, S, S_dot)
    N, N_dot = _with_platform(form, moving)
    D_tot, C_tot = _tree_matrices(form.robot.tree, moving)
    motor_projection = (N @ S[form.legs]).T
    G, H, F_ext = (motor_projection @ forces for forces in _forces(tree, q, rates, wrenches or {}))
    return RedundantModel(
        names=form.names,
        motors=form.names[: S.shape[1]],
        D=motor_projection @ D_tot @ N @ T_q,
        C=motor_projection @ ((C_tot @ N + D_tot @ N_dot) @ T_q + D_tot @ N @ T_q_dot),
        **{"G": G, "H": H, "F_ext": F_ext},
        T=S[form.legs],
        T_q=T_q,
        J_C=N[form.platform],
        T_dot=S_dot[form.legs],
        T_q_dot=T_q_dot,
        J_C_dot=N_dot[form.platform],
    )


def _forces(tree: Tree, q: Array, rates: Array, wrenches: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """Forces along all rates: against gravity; of friction, springs and dampers, also between points; of wrenches."""
    plain, at, zeros = replace(tree, elements=()), pose(tree, q), np.zeros(tree.n)
    still = motion(tree, at, zeros, zeros, -tree.gravity)
    G = newton_euler(plain, at, still).forces
    F = -carry_wrenches(tree, at, on_links(tree, at, wrenches)).forces
    elements = element_wrenches(tree, at, motion(tree, at, rates, zeros))
    return G, joint_forces(tree, q, rates, zeros) + carry_wrenches(tree, at, elements).forces, F


def _parts(values: Array) -> tuple[Array, Array]:
    """Values and slopes of an array of dual numbers, plain numbers among them."""
    pairs = [(x.value, float(x.slope[0])) if isinstance(x, Dual) else (float(x), 0.0) for x in np.ravel(values)]
    both = np.array(pairs).reshape(*np.shape(values), 2)
    return both[..., 0], both[..., 1]


def _per_motor(form: RedundantSets, moving: _PoseWithSlopes) -> tuple[Array, Array]:
    """All rates per motor rate, and the derivative of that: J_f S_f = -J_0."""
    tree, part, motors = form.robot.tree, form.general.partition, form.motors
    S, S_dot = np.zeros((tree.n, len(motors))), np.zeros((tree.n, len(motors)))
    S[motors, range(len(motors))] = 1.0
    if len(part.dependent):
        J, J_dot = _parts(form.robot.closures.jacobian(moving.at, moving.links)[part.rows])
        block = J[:, part.dependent]
        S[part.dependent] = np.linalg.solve(block, -J[:, motors])
        S_dot[part.dependent] = np.linalg.solve(block, -(J_dot @ S))
    return S, S_dot


def _per_control(form: RedundantSets, S: Array, S_dot: Array) -> tuple[Array, Array]:
    """T_q = [1; J_p E^+] and its derivative along motions that fit, [Zubizarreta2010, eqs. (15)-(17)]."""
    tree = form.robot.tree
    place = {int(k): i for i, k in enumerate(form.legs)}
    control, others = [place[int(k)] for k in form.control], [place[int(k)] for k in form.others]
    T_q = np.zeros((len(form.legs), len(control)))
    T_q_dot = np.zeros_like(T_q)
    T_q[control, range(len(control))] = 1.0
    if others:
        units = tree.rate_units[form.control]
        H = np.linalg.pinv(S[form.control] / units[:, None]) / units
        T_q[others] = S[form.others] @ H
        T_q_dot[others] = (S_dot[form.others] - S[form.others] @ H @ S_dot[form.control]) @ H
    return T_q, T_q_dot


def _with_platform(form: RedundantSets, moving: _PoseWithSlopes) -> tuple[Array, Array]:
    """All rates per rate of the legs' joints, [1; J_C], and its derivative, [0; J_C_dot]."""
    N, N_dot = np.zeros((form.robot.tree.n, len(form.legs))), np.zeros((form.robot.tree.n, len(form.legs)))
    N[form.legs, range(len(form.legs))] = 1.0
    if not len(form.platform):
        return N, N_dot
    J, J_dot = _parts(form.hold.closures.jacobian(moving.at, moving.links))
    if form.hold.quadratic is not None:
        J_dot = J_dot + _turned(form.hold, moving) @ J
    weights = form.hold.weights
    inverse = np.linalg.pinv(weights[:, None] * J[:, form.platform]) * weights
    J_C = -(inverse @ J[:, form.legs])
    N[form.platform] = J_C
    N_dot[form.platform] = -(inverse @ (J_dot[:, form.legs] + J_dot[:, form.platform] @ J_C))
    return N, N_dot


def _turned(hold: PlatformConstraint, moving: _PoseWithSlopes) -> Array:
    """What turns rows fixed on the platform into rows of the world, as (43) has them."""
    result = np.zeros((hold.closures.size, hold.closures.size))
    for rows, loop in zip(hold.closures.slices(), hold.closures.loops, strict=True):
        w = _parts(moving.links[loop.first.link][1])[0] @ moving.rates
        n = loop.translations @ loop.first.rotation.T
        result[rows, rows] = n @ hat(w) @ n.T
    return result


def _tree_matrices(tree: Tree, moving: _PoseWithSlopes) -> tuple[Array, Array]:
    """Inertia and Coriolis matrix of the open tree: sums of J^T M J and of J^T (M J_dot + [momentum] J)."""
    D, C = np.zeros((tree.n, tree.n)), np.zeros((tree.n, tree.n))
    for link, both in zip(tree.links, moving.links, strict=True):
        J, J_dot = _parts(np.concatenate(both))
        inertia: Any = link.body.as_rigid().inertia_matrix()
        momentum = inertia @ (J @ moving.rates)
        p, L = hat(momentum[:3]), hat(momentum[3:])
        D += J.T @ inertia @ J
        C += J.T @ (inertia @ J_dot - np.block([[np.zeros((3, 3)), p], [p, L]]) @ J)
        if link.terms.motor_inertia:
            D[link.v.start, link.v.start] += link.terms.motor_inertia
    return D, C
