"""Dynamics of a platform on legs after Khalil.

Each leg is reduced to its wrench on the platform, [Khalil2007, eqs. (20)-(30)]. A flexible platform adds the elastic
unknowns of its attachments to its degrees of freedom, [Long2014, eqs. (41)-(49)].

Newton steps lead from the motors to the pose of the platform; the legs follow in closed form at every step. There are
six unknowns (three in the plane), over any scalar, with a fixed number of steps so that a program can be generated. The
steps keep the unit quaternion of the platform normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.leg_geometry import Angle
from parflex.records import Record
from parflex.recursion.dynamics import joint_forces, mass_matrix, newton_euler
from parflex.robot.legs import (
    Leg,
    LegMotion,
    Legs,
    PlatformMotion,
    from_leg_axes,
    leg_motion,
    leg_values,
    platform_wrench,
    to_leg_axes,
)
from parflex.spatial.linear import scalar_type, solve, solve_positive
from parflex.spatial.rotations import cross, quaternion_matrix, quaternion_product, rotation_about

Array = np.ndarray


def _freedoms(form: Legs, force: Array, moment: Array, elastic: Array) -> Array:
    """A world wrench, and forces along the elastic unknowns, along the platform's freedoms."""
    picked = np.array([force[0], force[1], moment[2]]) if form.planar else np.concatenate([force, moment])
    return picked if form.elastic is None else np.concatenate([picked, elastic])


def _at_attachment(form: Legs, leg: Leg, R: Array, force: Array) -> Array:
    """A force at an attachment along the elastic unknowns."""
    return np.zeros(0) if form.elastic is None else form.elastic.slots[leg.number].T @ (R.T @ force)


def motor_columns(form: Legs, states: list[LegMotion], R: Array | None = None) -> Array:
    """Columns: wrench on the platform per unit effort of each motor, J_r^-T of [Khalil2007, eq. (80)].

    Below it, for a flexible platform (its rotation is needed then), J_e^-T of [Long2014, eq. (33)].
    """
    columns: list[Any] = [None] * len(form.robot.actuated)
    R = np.eye(3) if R is None else R
    for state in states:
        for joint, motor in zip(state.leg.actuated, state.leg.motors, strict=True):
            unit = np.eye(state.leg.tree.n)[joint]
            force = from_leg_axes(state.leg, state.at, solve(state.J.T, unit))
            elastic_forces = _at_attachment(form, state.leg, R, force)
            columns[motor] = _freedoms(form, force, cross(state.arm, force), elastic_forces)
    return np.array(columns).T


def _legs(
    form: Legs, values: list[Any], platform: PlatformMotion, without: tuple[str, ...], passive: bool
) -> tuple[list[LegMotion], Array, Array]:
    """The legs in motion, what they all put on the platform, and the forces in the rows of the motors.

    `passive`: what motors carry themselves is not put on the platform.
    """
    motors: Array = np.zeros(len(form.robot.actuated), dtype=object)
    states, leg_forces = [], []
    for leg, q in zip(form.legs, values, strict=True):
        state = leg_motion(form, leg, q, platform)
        states.append(state)
        H = newton_euler(leg.tree, state.at, state.moving).forces + joint_forces(
            leg.tree, q, state.qd, state.qdd, without
        )
        motors[list(leg.motors)] = H[list(leg.actuated)]
        transmitted = [0.0 if passive and k in leg.actuated else H[k] for k in range(leg.tree.n)]
        leg_forces.append(from_leg_axes(leg, state.at, solve(state.J.T, np.array(transmitted, dtype=H.dtype))))
    return states, _summed(form, platform.R, states, leg_forces), motors


def inverse(
    form: Legs, values: list[Any], platform: PlatformMotion, without: tuple[str, ...] = ()
) -> tuple[Array, Array]:
    """Efforts of the motors, and accelerations of the modes of the platform; `values` are joint values of each leg."""
    force, moment, s = platform_wrench(form, platform)
    states, leg_load, motors = _legs(form, values, platform, without, passive=True)
    B = motor_columns(form, states, platform.R)
    if form.elastic is None:
        return solve(B, _freedoms(form, force, moment, s) + leg_load) + motors, s
    h = _reduced_rows(form, platform, force, moment, s) + leg_load
    A = _elastic_columns(form, platform, states, without)
    rigid = len(h) - form.elastic.size
    # [Long2014, eqs. (44)-(49)]: elastic rows first, what they leave of the others
    G = solve_positive(A[rigid:], A[:rigid].T).T
    shared = solve(B[:rigid] - G @ B[rigid:], h[:rigid] - G @ h[rigid:])
    y = solve_positive(A[rigid:], B[rigid:] @ shared - h[rigid:])
    return shared + motors, form.elastic.accelerations(y, s)


def equations(
    form: Legs, values: list[Any], platform: PlatformMotion, without: tuple[str, ...] = ()
) -> tuple[Array, Array, Array, Array]:
    """A, h and B of A Vd + h = B tau in the platform's freedoms (world axes), and its elastic rows.

    Theory (20) to (22), [Khalil2007, eqs. (28)-(30)]; below the freedoms of a flexible platform stand its elastic
    unknowns. The platform's acceleration in `platform` is zero but for gravity.
    """
    force, moment, s = platform_wrench(form, platform)
    states, leg_load, _ = _legs(form, values, platform, without, passive=False)
    B = motor_columns(form, states, platform.R)
    A = _platform_inertia(form, platform)
    for state in states:
        follow, picked = _follow(form, state, platform.R)
        A[np.ix_(picked, picked)] += follow.T @ mass_matrix(state.leg.tree, state.at, without) @ follow
    if form.elastic is None:
        return A, _freedoms(form, force, moment, s) + leg_load, B, s
    return A, _reduced_rows(form, platform, force, moment, s) + leg_load, B, s


def mode_accelerations(form: Legs, platform: PlatformMotion, freedom: Array, s: Array) -> Array:
    """Accelerations of all modes from those of the platform's freedoms and elastic unknowns."""
    assert form.elastic is not None
    rigid = len(freedom) - form.elastic.size
    A_re = _coupling(form, platform)
    return form.elastic.accelerations(freedom[rigid:], s + A_re.T @ freedom[:rigid])


def _rigid_rows(form: Legs) -> list[int]:
    return [0, 1, 5] if form.planar else list(range(6))


def _coupling(form: Legs, platform: PlatformMotion) -> Array:
    """A_re in world axes, along the platform's freedoms."""
    assert form.elastic is not None
    A_re = form.elastic.body.coupling(platform.e)
    return np.concatenate([platform.R @ A_re[:3], platform.R @ A_re[3:]])[_rigid_rows(form)]


def _reduced_rows(form: Legs, platform: PlatformMotion, force: Array, moment: Array, s: Array) -> Array:
    """What moves a flexible platform, with its modes reduced to the elastic unknowns."""
    assert form.elastic is not None
    rows = _freedoms(form, force, moment, form.elastic.lift.T @ s)
    rigid = len(_rigid_rows(form))
    rows[:rigid] = rows[:rigid] - _coupling(form, platform) @ (form.elastic.rest @ s)
    return rows


def _platform_inertia(form: Legs, platform: PlatformMotion) -> Array:
    """Inertia of the platform alone along its freedoms and elastic unknowns, in world axes."""
    R, rows = platform.R, _rigid_rows(form)
    if form.elastic is None:
        S, Sigma, m = form.body.S, form.body.Sigma, form.body.m
    else:
        S, Sigma = form.elastic.body.deformed(platform.e)
        m = form.elastic.body.m
    rigid = RigidBody(m, R @ S, R @ Sigma @ R.T).inertia_matrix()[np.ix_(rows, rows)]
    if form.elastic is None:
        return rigid.astype(scalar_type(R))
    A_re = _coupling(form, platform)
    corner = A_re @ form.elastic.lift
    inertia = np.block([[rigid - A_re @ form.elastic.rest @ A_re.T, corner], [corner.T, form.elastic.M_y]])
    return inertia.astype(scalar_type(R))


def _elastic_columns(form: Legs, platform: PlatformMotion, states: list[LegMotion], without: tuple[str, ...]) -> Array:
    """The columns of the elastic unknowns in the inertia of platform and legs."""
    assert form.elastic is not None
    rigid = len(_rigid_rows(form))
    A = np.concatenate([_coupling(form, platform) @ form.elastic.lift, form.elastic.M_y])
    A = A.astype(scalar_type(platform.R))
    for state in states:
        follow, picked = _follow(form, state, platform.R)
        leg_inertia = follow.T @ mass_matrix(state.leg.tree, state.at, without) @ follow[:, rigid:]
        A[np.ix_(picked, [k - rigid for k in picked[rigid:]])] += leg_inertia
    return A


def _summed(form: Legs, R: Array, states: list[LegMotion], leg_forces: list[Array]) -> Array:
    """Forces of all legs along the platform's freedoms."""
    force = sum(leg_forces[1:], leg_forces[0])
    elastic_forces = [
        _at_attachment(form, state.leg, R, leg_force) for state, leg_force in zip(states, leg_forces, strict=True)
    ]
    elastic = sum(elastic_forces[1:], elastic_forces[0])
    if not form.by_columns or form.elastic is not None:
        moments = [cross(state.arm, leg_force) for state, leg_force in zip(states, leg_forces, strict=True)]
        return _freedoms(form, force, sum(moments[1:], moments[0]), elastic)
    moment = np.zeros(3)
    for axis in range(3):
        weighted = sum(
            (state.leg.attachment[axis] * leg_force for state, leg_force in zip(states, leg_forces, strict=True)),
            np.zeros(3),
        )
        moment = moment + cross(R[:, axis], weighted)
    return _freedoms(form, force, moment, elastic)


def _follow(form: Legs, state: LegMotion, R: Array) -> tuple[Array, list[int]]:
    """Joint rates of a leg per unit of the freedoms that move its end, and the numbers of these."""
    leg, units = state.leg, np.eye(3)
    translations, rotations = ((0, 1), (2,)) if form.planar else ((0, 1, 2), (0, 1, 2))
    columns = [to_leg_axes(leg, state.at, units[axis]) for axis in translations]
    columns += [to_leg_axes(leg, state.at, cross(units[axis], state.arm)) for axis in rotations]
    picked = list(range(len(columns)))
    if form.elastic is not None:
        slots = form.elastic.slots[leg.number]
        active = [k for k in range(slots.shape[1]) if slots[:, k].any()]
        columns += [to_leg_axes(leg, state.at, R @ slots[:, k]) for k in active]
        picked += [len(_rigid_rows(form)) + k for k in active]
    return solve(state.J, np.array(columns).T), picked


@dataclass(frozen=True, eq=False, repr=False)
class PlatformPose(Record):
    """Position and, in space, quaternion; in the plane x, y and the angle."""

    position: Array
    turn: Array

    def world(self, planar: bool) -> tuple[Array, Array]:
        """Rotation matrix and position."""
        if planar:
            return rotation_about(2, self.turn[0]), np.array([*self.position, 0.0])
        return quaternion_matrix(self.turn), self.position

    def moved(self, step: Array, planar: bool) -> PlatformPose:
        """The pose after a small step in world axes."""
        if planar:
            return PlatformPose(self.position + step[:2], self.turn + step[2:])
        turn = quaternion_product(np.array([1.0, *(step[3:] / 2)]), self.turn)
        return PlatformPose(self.position + step[:3], turn / np.sqrt(turn @ turn))


def platform_newton(form: Legs, pose: PlatformPose, motors: Array, angle: Angle, steps: int) -> PlatformPose:
    """The pose at which the motors have the given values, from one nearby."""
    for _ in range(steps):
        states = legs_at(form, pose, angle)
        missing = np.zeros(len(motors), dtype=object)
        for state, values in states:
            for joint, motor in zip(state.leg.actuated, state.leg.motors, strict=True):
                missing[motor] = _missing(state.leg, joint, values[joint], motors[motor])
        columns = motor_columns(form, [state for state, _ in states])
        pose = pose.moved(solve(columns.T, missing), form.planar)
    return pose


def legs_at(
    form: Legs, pose: PlatformPose, angle: Angle, v: Array | None = None, w: Array | None = None
) -> list[tuple[LegMotion, list[Any]]]:
    """The legs at a pose, in a motion without acceleration of the platform, and their joint values."""
    R, p = pose.world(form.planar)
    zero = np.zeros(3)
    platform = PlatformMotion(R, p, zero if v is None else v, zero if w is None else w, -form.robot.tree.gravity, zero)
    result = []
    for leg in form.legs:
        values = leg_values(form, leg, platform, angle)
        result.append((leg_motion(form, leg, np.array(values, dtype=object), platform), values))
    return result


def _missing(leg: Leg, joint: int, current: Any, desired: Any) -> Any:
    """What a motor still has to move; a small angle by its sine, so that no angle has to be found from it."""
    if not leg.tree.links[joint].periodic:
        return desired - current
    return np.sin(desired) * np.cos(current) - np.cos(desired) * np.sin(current)


def motor_residual(form: Legs, values: Sequence[Any], motors: Array) -> Array:
    """Return how far motors are from the given values, in metres; angles as chords, which vanish at no other angle."""
    length, gaps = form.robot.tree.length, []
    for leg, joints in zip(form.legs, values, strict=True):
        for joint, motor in zip(leg.actuated, leg.motors, strict=True):
            link, current, desired = leg.tree.links[joint], joints[joint], motors[motor]
            if link.periodic:
                gaps += [length * (np.sin(desired) - np.sin(current)), length * (np.cos(desired) - np.cos(current))]
            else:
                unit = length if link.joint.rate_units[0] == "rad" else 1.0
                gaps.append(unit * (desired - current))
    return np.array(gaps)


def motor_motion(form: Legs, pose: PlatformPose, rates: Array, angle: Angle) -> tuple[PlatformMotion, list[Any]]:
    """The platform's pose and twist from the rates of the motors, and the joint values of the legs."""
    states = legs_at(form, pose, angle)
    columns = motor_columns(form, [state for state, _ in states])
    v, w = _split(solve(columns.T, rates), form.planar)
    R, p = pose.world(form.planar)
    return PlatformMotion(R, p, v, w, -form.robot.tree.gravity, np.zeros(3)), [values for _, values in states]


def motor_accelerations(form: Legs, platform: PlatformMotion, values: list[Any], desired: Array) -> tuple[Array, Array]:
    """Acceleration and angular acceleration of the platform for those of the motors."""
    pairs = zip(form.legs, values, strict=True)
    states = [leg_motion(form, leg, np.array(joint_values, dtype=object), platform) for leg, joint_values in pairs]
    drift = np.zeros(len(desired), dtype=object)
    for state in states:
        drift[list(state.leg.motors)] = state.qdd[list(state.leg.actuated)]
    return _split(solve(motor_columns(form, states).T, desired - drift), form.planar)


def _split(freedom: Array, planar: bool) -> tuple[Array, Array]:
    if planar:
        return np.array([freedom[0], freedom[1], 0.0]), np.array([0.0, 0.0, freedom[2]])
    return freedom[:3], freedom[3:]
