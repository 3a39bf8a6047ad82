"""The formulation with redundant sensors of passive joints, [Zubizarreta2010, eq. (26)], over any scalar.

tau = D qdd + C qd + G - F_ext in q = [q_a, q_s], the motors and the sensed passive joints. All joints of the legs move
with qd_r = T_q qd, the platform with x_dot = J_C qd_r, J_C = -J_x^+ J_q (39). The forces of that motion act on the
motors by T^T, where qd_r = T qd_a. The recursion forms none of these matrices; `redundant_matrices` does.

Sensor values that satisfy the loops give the inverse model. For other values the rows of the loops are as at a closed
pose, and J_C_dot is that of (43), so that

    J_x xdd + J_x_dot x_dot + J_q qdd_r + J_q_dot qd_r = 0   in the least squares of J_x^+.

The characteristic length of the robot weights rows of rotations; legs that end in balls or hinges have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from parflex.closure.partition import Reduction, reduction
from parflex.errors import InputError
from parflex.forces.coupling_losses import refuse_losses
from parflex.forces.effort_allocation import EffortAllocation
from parflex.forces.forces import on_links
from parflex.formulations.base import FAR, Answer, Formulation, Given, Groups, ModelRequest, residual_norm
from parflex.formulations.coordinates import fitted_rates
from parflex.formulations.general import driven_efforts, motor_efforts
from parflex.formulations.sensor_geometry import (
    PRODUCTS,
    PlatformConstraint,
    RedundantSets,
    geometry_gaps,
    geometry_step,
    redundant_sets,
    with_measured,
)
from parflex.records import Record
from parflex.recursion.dynamics import joint_forces, newton_euler
from parflex.recursion.kinematics import Motion, Pose, acceleration_matrix, jacobians, motion, pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import is_symbolic, scalar_type, solve, solve_positive

Array = np.ndarray

MODELS = ("redundant", "extended-law", "extended-step", "geometry-redundant")

OF_MOTORS = ("classical-law", "classical-step", "geometry-motors")  # the same with the motors' sensors alone

BY_SENSORS = "the model by sensors does not know"


@dataclass(frozen=True)
class RedundantSensorFormulation(Formulation):
    """A robot with the rates q = [q_a, q_s] of its motors and sensed joints."""

    name: ClassVar[str] = "redundant form"
    equations: ClassVar[tuple[int, ...]] = ()
    sets: RedundantSets

    @property
    def because(self) -> list[str]:
        """What goes in."""
        return [f"Motors and {len(self.robot.sensed)} sensed joints move as given, the platform as fits them best."]

    @property
    def independent(self) -> Array:
        """Numbers of the rates of motors and sensed joints; the loops tie them to each other."""
        return self.sets.control

    @property
    def state_groups(self) -> Groups:
        """All positions, and rates of motors and sensed joints."""
        return {"q": (self.robot.tree.nq,), "qd": (len(self.independent),)}

    @property
    def motion_groups(self) -> Groups:
        """Accelerations of motors and sensed joints."""
        return {"qdd": (len(self.independent),)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Motors and sensed joints by their names."""
        names, positions = self.independent_names, list(self.robot.tree.position_names)
        control_groups = (
            "qd",
            "qdd",
            "measured",
            "measured_rate",
            "reference",
            "reference_rate",
            "reference_acceleration",
        )
        motors = names[: len(self.sets.motors)]
        return (
            dict.fromkeys(control_groups, names) | dict.fromkeys(("q", "guess", "last"), positions) | {"effort": motors}
        )

    def state(self, inputs: Given) -> tuple[Array, Array]:
        """Positions and rates as given: they need not fit the loops."""
        return inputs["q"], inputs["qd"]

    def inverse(self, state: tuple[Array, Array], motion: Given) -> Answer:
        """Efforts of the motors for accelerations of motors and sensed joints."""
        return {"effort": redundant_effort(self.sets, *state, motion["qdd"], allocation=self.question.allocation)}

    def direct(self, state: Any, tau: Array) -> Answer:
        """D has more columns than rows: efforts do not say accelerations."""
        raise no_direct_model_error()

    def law(self, state: tuple[Array, Array], reference: tuple[Array, Array, Array], Kp: Any, Kv: Any) -> Array:
        """Efforts of the extended computed torque for a reference with its rates and accelerations."""
        return extended_effort(self.sets, *state, *reference, Kp, Kv, allocation=self.question.allocation)

    @property
    def geometry_groups(self) -> Groups:
        """A guess of all positions, and what the sensors give."""
        return {"guess": (self.robot.tree.nq,), "measured": (len(self.independent),)}

    def geometry(self, inputs: Given) -> tuple[Answer, dict[str, list[str]]]:
        """All positions that fit the sensors best, by Newton from the guess."""
        q = with_measured(self.sets, inputs["guess"], inputs["measured"])
        for _ in range(FAR):
            q = self.robot.tree.moved(q, geometry_step(self.sets, q)[0])
        return {"q": q, "residual": residual_norm(geometry_gaps(self.sets, q))}, self.labels


def no_direct_model_error() -> InputError:
    """What is said where a direct model of sensed joints is asked for."""
    return InputError(
        "the redundant model cannot be inverted: efforts do not determine the accelerations of more joints than motors",
        key="MODEL",
        value="redundant-direct",
        hint="use 'direct', the model in independent coordinates",
    )


def redundant_sensor_formulation(robot: Robot, question: ModelRequest) -> RedundantSensorFormulation | str:
    """The form of a question about sensors, or why it is none."""
    if question.model not in (*MODELS, *OF_MOTORS):
        return f"'{question.model}' takes no sensors"
    sets = redundant_sets(robot.sensing([]) if question.model in OF_MOTORS else robot)
    return RedundantSensorFormulation(sets.robot, sets, question=question)


# -- motion --------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class _PassiveJoints(Record):
    """Passive joints without a sensor: J of all rates per motor rate, the rates z of the motors that fit q best."""

    reduced: Reduction
    E: Array  # rates of q per rate of the motors, without units
    units: Array
    z: Array
    b: Array  # accelerations that the motion itself causes

    def fit(self, values: Array) -> Array:
        """Of the motors, what fits values of q best."""
        return solve_positive(self.E.T @ self.E, self.E.T @ (values / self.units))


def _passive(form: RedundantSets, at: Pose, qd: Array) -> _PassiveJoints:
    """T_q = [1; J_p E^+], [Zubizarreta2010, eq. (17)]; sliding and turning joints compare by the typical length."""
    tree, closures = form.robot.tree, form.robot.closures
    reduced = reduction(closures.jacobian(at, jacobians(tree, at)), form.general.partition)
    units = tree.rate_units[form.control]
    passive = _PassiveJoints(reduced, reduced.matrix[form.control] / units[:, None], units, qd, np.zeros(tree.n))
    z = passive.fit(qd)
    zero_accelerations = np.zeros(len(form.general.independent))
    return replace(passive, z=z, b=reduced.accelerations(closures, at, reduced.rates(z), zero_accelerations))


def _leg_rates(form: RedundantSets, qd: Array, passive: _PassiveJoints | None) -> Array:
    """T_q qd, with zeros for the platform."""
    rates: Array = np.zeros(form.robot.tree.n, dtype=scalar_type(qd, passive.z if passive else qd))
    rates[form.control] = qd
    if passive is not None:
        rates[form.others] = passive.reduced.matrix[form.others] @ passive.z
    return rates


def _leg_accelerations(form: RedundantSets, qdd: Array, passive: _PassiveJoints | None) -> Array:
    """T_q qdd + T_q_dot qd, with zeros for the platform."""
    accelerations: Array = np.zeros(form.robot.tree.n, dtype=scalar_type(qdd, passive.b if passive else qdd))
    accelerations[form.control] = qdd
    if passive is not None:
        J, b = passive.reduced.matrix[form.others], passive.b
        accelerations[form.others] = J @ passive.fit(qdd - b[form.control]) + b[form.others]
    return accelerations


def _followed(hold: PlatformConstraint, J_x: Array | None, rows: Array) -> Array:
    """-J_x^+ rows: the motion of the platform that follows rows of the loops best."""
    if hold.inverse is not None:
        return -(hold.inverse @ rows)
    assert J_x is not None
    A = hold.weights[:, None] * J_x
    return solve_positive(A.T @ A, -(A.T @ (hold.weights * rows)))


def _end_rows(hold: PlatformConstraint, at: Pose, moving: Motion, part: int) -> Array:
    """Velocities (part 0) or accelerations (part 2) of the legs' ends along the rows of the platform."""
    rows = []
    for loop in hold.closures.loops:
        (R1, _), (R2, _) = at.of(loop.first), at.of(loop.second)
        rows.append(loop.translations @ (R1.T @ (R2 @ moving.of(loop.second)[part])))
    return np.concatenate(rows)


def _platform_rates(form: RedundantSets, at: Pose, rates: Array) -> tuple[Array, Array | None]:
    """J_C qd_r, and J_x where it changes from pose to pose."""
    tree, hold = form.robot.tree, form.hold
    if hold.quadratic is not None:
        return _followed(hold, None, _end_rows(hold, at, motion(tree, at, rates, np.zeros(tree.n)), 0)), None
    J = hold.closures.jacobian(at, jacobians(tree, at))
    J_x = J[:, form.platform]
    return _followed(hold, J_x, J[:, form.legs] @ rates[form.legs]), J_x


def all_rates(form: RedundantSets, q: Any, qd: Array) -> Array:
    """Rates of all joints and of the platform; `q` are all positions, `qd` the rates of motors and sensed joints."""
    at = pose(form.robot.tree, q)
    rates = _leg_rates(form, qd, _passive(form, at, qd) if len(form.others) else None)
    if len(form.platform):
        rates[form.platform] = _platform_rates(form, at, rates)[0]
    return rates


def _moving(form: RedundantSets, at: Pose, rates: Array, accelerations: Array) -> Motion:
    """The motion of all links, less gravity, once that of the legs is known."""
    tree, hold = form.robot.tree, form.hold
    if not len(form.platform):
        return motion(tree, at, rates, accelerations, -tree.gravity)
    rates[form.platform], J_x = _platform_rates(form, at, rates)
    if hold.quadratic is None:
        moving = motion(tree, at, rates, accelerations)
        accelerations[form.platform] = _followed(hold, J_x, hold.closures.bias(at, moving))
        return motion(tree, at, rates, accelerations, -tree.gravity)
    # gravity goes through the least squares as it is: all ends and the platform accelerate by it alike
    moving = motion(tree, at, rates, accelerations, -tree.gravity)
    body = tree.link_of_rate[int(form.platform[0])]
    joint, w = tree.links[body].joint, moving.w[body]
    products = np.array([w[a] * w[b] for a, b in PRODUCTS])
    platform_acceleration = _followed(hold, None, _end_rows(hold, at, moving, 2)) + hold.quadratic @ products
    moving.a[body], moving.al[body] = joint.S_v @ platform_acceleration, joint.S_w @ platform_acceleration
    moving.U[body] = acceleration_matrix(w, moving.al[body])
    return moving


# -- efforts -------------------------------------------------------------------------------------------
def redundant_effort(
    form: RedundantSets,
    q: Any,
    qd: Array,
    qdd: Array,
    without: tuple[str, ...] = (),
    wrenches: Mapping[str, Array] | None = None,
    allocation: EffortAllocation | None = None,
) -> Array:
    """D qdd + C qd + G - F_ext: efforts of the motors for accelerations of [q_a, q_s].

    `q` are all positions; `wrenches` act on frames, in world axes. Joint terms of the file act unless `without` names
    them. More motors than freedoms share what is needed.
    """
    tree = form.robot.tree
    if form.spare and len(form.motors) == len(form.control):
        motors = [int(k) for k in form.motors]
        J_a = form.general.moving(q, np.zeros(len(form.general.independent))).J_a
        state = form.general.moving(q, fitted_rates(form.robot, J_a, qd), wrenches)
        desired = fitted_rates(form.robot, J_a, qdd - state.bias[motors])
        forces = state.forces(state.accelerations(desired), without)
        return driven_efforts(state, forces, motors, allocation=allocation)[0]
    if len(form.motors) == len(form.control):
        order = np.argsort(form.control)
        state = form.general.moving(q, qd[order], wrenches)
        forces = state.forces(state.accelerations(qdd[order]), without)
        return driven_efforts(state, forces, [int(k) for k in form.control])[0]
    at = pose(tree, q)
    passive = _passive(form, at, qd) if len(form.others) else None
    rates, accelerations = _leg_rates(form, qd, passive), _leg_accelerations(form, qdd, passive)
    moving = _moving(form, at, rates, accelerations)
    forces = newton_euler(tree, at, moving, on_links(tree, at, wrenches or {})).forces
    return to_motors(form, at, forces + joint_forces(tree, q, rates, accelerations, without), allocation)


def to_motors(form: RedundantSets, at: Pose, forces: Array, allocation: EffortAllocation | None = None) -> Array:
    """T^T (f_r + J_C^T f_x) of forces along all rates.

    J_C T is the motion of the platform per motor, so one system in the forces of the loops gives both parts.
    """
    tree, part = form.robot.tree, form.general.partition
    motors = form.motors
    refuse_losses(form.robot.closures, BY_SENSORS)
    if form.spare:
        reduced = reduction(form.robot.closures.jacobian(at, jacobians(tree, at)), part)
        return motor_efforts(reduced, forces, [int(k) for k in motors], allocation=allocation)
    if not len(part.dependent):
        return forces[motors]
    J = form.robot.closures.jacobian(at, jacobians(tree, at))[part.rows]
    return forces[motors] - J[:, motors].T @ solve(J[:, part.dependent].T, forces[part.dependent])


def joint_errors(form: RedundantSets, q: Any, reference: Array) -> Array:
    """Reference less measured values of [q_a, q_s]; angles in (-pi, pi]."""
    differences = reference - np.asarray(q)[form.positions]
    wrapped = [
        np.arctan2(np.sin(value), np.cos(value)) if turn else value
        for value, turn in zip(differences, form.turns, strict=True)
    ]
    return np.array(wrapped, dtype=object if is_symbolic(differences) else float)


def extended_effort(
    form: RedundantSets,
    q: Any,
    qd: Array,
    reference: Array,
    reference_rate: Array,
    reference_acceleration: Array,
    Kp: Any,
    Kv: Any,
    without: tuple[str, ...] = (),
    allocation: EffortAllocation | None = None,
) -> Array:
    """Extended computed torque, [Zubizarreta2010, eq. (59)] with G for its G_r; without sensed joints the classical."""
    errors = joint_errors(form, q, reference)
    desired = reference_acceleration + Kv * (reference_rate - qd) + Kp * errors
    return redundant_effort(form, q, qd, desired, without, allocation=allocation)
