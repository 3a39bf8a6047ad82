"""The dynamic model that keeps the sensors of passive joints as data, over any scalar. [Zubizarreta2010, eq. (26)].

tau = D qdd + C qd + G - F_ext in q = [q_a, q_s], the motors and the sensed passive joints. All joints of the legs move
with qd_r = T_q qd, the platform with x_dot = J_C qd_r, J_C = -J_x^+ J_q (39); what that motion takes is handed to the
motors by T^T, qd_r = T qd_a. Nothing of this is ever formed here: accelerations go out along the legs, forces come
back. `redundant_matrices` has the matrices. Data that fit the loops give the inverse model; other data give an answer
too, and a choice is made in it: rows of the loops are as at a closed pose, and J_C_dot is that of (43), so that

    J_x xdd + J_x_dot x_dot + J_q qdd_r + J_q_dot qd_r = 0   in the least squares of J_x^+.

Rows of rotations weigh with the typical length of the robot in it; legs that end in balls or hinges have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.closure.loops import Closures, Loop
from parflex.closure.reduction import Reduction, reduction
from parflex.errors import InputError
from parflex.models import general_form
from parflex.models.configuration import Configuration
from parflex.models.dynamics.forces import on_links
from parflex.models.general_form import GeneralForm
from parflex.models.robot import Robot
from parflex.recursion import Motion, Pose, jacobians, joint_forces, motion, newton_euler, pose
from parflex.recursion.kinematics import turning
from parflex.spatial.linear import is_symbolic, scalar_type, solve, solve_positive

Array = np.ndarray
CLEAN = 1e-13  # of the largest entry: what is smaller is rounding
PRODUCTS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@dataclass(frozen=True)
class Hold:
    """Loops that hold the platform, seen from it, and the least squares that find its motion from theirs.

    `inverse` is J_x^+ where it is made of numbers alone: the twist is in axes of the platform, so what is fixed on it
    does not change. `quadratic` then has, for each component of the platform's acceleration, what the products of its
    own angular velocity add; it is there only if all loops are balls (in the plane: hinges) on a platform that carries
    nothing else.
    """

    closures: Closures
    weights: Array = field(repr=False)
    inverse: Array | None = field(default=None, repr=False)
    quadratic: Array | None = field(default=None, repr=False)


@dataclass(frozen=True)
class RedundantForm:
    """A robot with its sets of rates: joints of legs q_r, of these q = [q_a, q_s] and the others q_p; platform x."""

    general: GeneralForm  # its independent rates are the motors
    legs: Array
    control: Array
    others: Array
    platform: Array
    hold: Hold

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.general.robot

    @property
    def names(self) -> list[str]:
        """Names of the motors, then of the sensed joints."""
        return [self.robot.tree.rate_names[k] for k in self.control]

    @property
    def positions(self) -> Array:
        """Where motors and sensed joints stand among all positions."""
        tree = self.robot.tree
        return np.array([tree.links[tree.link_of_rate[k]].q.start for k in self.control], dtype=int)

    @property
    def turns(self) -> Array:
        """Which of them are angles."""
        tree = self.robot.tree
        return np.array([tree.links[tree.link_of_rate[k]].joint.kind == "revolute" for k in self.control])


def redundant_form(robot: Robot) -> RedundantForm:
    """The form of a robot; its sensors are those of the file or of `Robot.sensing`."""
    tree = robot.tree
    if tree.elastic:
        raise InputError(
            "the redundant model is for rigid bodies",
            key="MODEL",
            value=robot.name,
            hint="use the robot without its beams, or the inverse model",
        )
    Configuration(robot, robot.home).refuse_undefined_actuation()
    motors = [k for k in robot.actuated if k not in robot.locked]
    if len(motors) > robot.mobility.freedoms(len(robot.free)):
        raise InputError(
            "a redundant model for more motors than freedoms is not made",
            key="actuation",
            value=robot.actuation,
            hint="choose an --actuation without spare motors",
        )
    passive = np.array([k for k in robot.free if k not in set(motors)], dtype=int)
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    chosen = mobility.choose_partition(J, passive, len(passive), np.ones(tree.n))
    partition = replace(chosen, independent=np.sort(np.array(motors, dtype=int)))
    bodies = [j for j, link in enumerate(tree.links) if link.joint.kind in ("free", "planar")]
    platform = [k for j in bodies for k in range(tree.links[j].v.start, tree.links[j].v.stop) if k in set(robot.free)]
    legs = np.array([k for k in range(tree.n) if k not in set(platform)], dtype=int)
    control = np.array([*motors, *robot.sensed], dtype=int)
    others = np.array([k for k in legs if k in set(robot.free) and k not in set(control)], dtype=int)
    general = general_form.general_form(robot, partition)
    return RedundantForm(general, legs, control, others, np.array(platform, dtype=int), _hold(robot, bodies, platform))


def _hold(robot: Robot, bodies: list[int], platform: list[int]) -> Hold:
    tree = robot.tree
    loops: list[Loop] = []
    for loop in robot.closures.loops:
        if loop.first.link in bodies:
            loops.append(replace(loop, closed=True))
        elif loop.second.link in bodies:
            loops.append(replace(loop.reversed(tree) or loop, closed=True))
        elif {*tree.path(loop.first.link), *tree.path(loop.second.link)} & set(bodies):
            loops.append(replace(loop, closed=True))
    closures = Closures(tree, tuple(loops))
    weights = closures.row_units()
    if not platform:
        return Hold(closures, weights)
    rng = np.random.default_rng(0)
    found = []
    for q in (robot.home, robot.home + rng.uniform(-1, 1, tree.nq)):
        at = pose(tree, q)
        found.append(weights[:, None] * closures.jacobian(at, jacobians(tree, at))[:, platform])
    scaled = found[0] * tree.rate_units[platform]
    if mobility.rank(scaled) < len(platform):
        raise InputError(
            "the joints of the legs do not say where the platform is",
            key="MODEL",
            value=robot.name,
            hint="the redundant model needs a platform that its closures hold",
        )
    if np.abs(found[0] - found[1]).max() > general_form.CHANGE:
        return Hold(closures, weights)
    inverse = _clean(np.linalg.pinv(found[0]) * weights)
    points = len(bodies) == 1 and all(_is_point(tree, loop, bodies[0]) for loop in loops)
    carries = any(link.parent == bodies[0] for link in tree.links)
    return Hold(closures, weights, inverse, _quadratic(loops, inverse) if points and not carries else None)


def _is_point(tree: Any, loop: Loop, body: int) -> bool:
    whole = len(loop.translations) == (2 if tree.planar else 3)
    return whole and loop.turning == "free" and loop.first.link == body and loop.second.link != body


def _quadratic(loops: list[Loop], inverse: Array) -> Array:
    """What the products of the angular velocity, in the order of `PRODUCTS`, add to the platform's acceleration.

    A point at r turns with w x (w x r) = W r; least squares of the rows n . W r, summed before symbols come in, so
    that regular platforms cost nothing.
    """
    columns = []
    for a, b in PRODUCTS:
        W = np.zeros((3, 3))
        if a == b:
            W[range(3), range(3)] = -1.0
            W[a, a] = 0.0
        else:
            W[a, b] = W[b, a] = 1.0
        columns.append(np.concatenate([loop.translations @ (W @ loop.first.position) for loop in loops]))
    size = np.linalg.norm([loop.first.position for loop in loops]) * np.abs(inverse).max()
    result = inverse @ np.array(columns).T
    return np.where(np.abs(result) < CLEAN * max(size, 1e-300), 0.0, result)


def _clean(values: Array) -> Array:
    return np.where(np.abs(values) < CLEAN * np.abs(values).max(), 0.0, values)


# -- motion --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Passive:
    """Passive joints without a sensor: J of all rates per motor rate, the rates z of the motors that fit q best."""

    reduced: Reduction
    E: Array  # rates of q per rate of the motors, without units
    units: Array
    z: Array
    b: Array  # accelerations that the motion itself causes

    def fit(self, values: Array) -> Array:
        """Of the motors, what fits values of q best."""
        return solve_positive(self.E.T @ self.E, self.E.T @ (values / self.units))


def _passive(form: RedundantForm, at: Pose, qd: Array) -> _Passive:
    """T_q = [1; J_p E^+], [Zubizarreta2010, eq. (17)]; sliding and turning joints compare by the typical length."""
    tree, closures = form.robot.tree, form.robot.closures
    reduced = reduction(closures.jacobian(at, jacobians(tree, at)), form.general.partition)
    units = tree.rate_units[form.control]
    found = _Passive(reduced, reduced.matrix[form.control] / units[:, None], units, qd, np.zeros(tree.n))
    z = found.fit(qd)
    b_star = closures.bias(at, motion(tree, at, reduced.rates(z), np.zeros(tree.n)))
    return replace(found, z=z, b=reduced.closing(b_star))


def _leg_rates(form: RedundantForm, qd: Array, passive: _Passive | None) -> Array:
    """T_q qd, with zeros for the platform."""
    rates: Array = np.zeros(form.robot.tree.n, dtype=scalar_type(qd, passive.z if passive else qd))
    rates[form.control] = qd
    if passive is not None:
        rates[form.others] = passive.reduced.matrix[form.others] @ passive.z
    return rates


def _leg_accelerations(form: RedundantForm, qdd: Array, passive: _Passive | None) -> Array:
    """T_q qdd + T_q_dot qd, with zeros for the platform."""
    accelerations: Array = np.zeros(form.robot.tree.n, dtype=scalar_type(qdd, passive.b if passive else qdd))
    accelerations[form.control] = qdd
    if passive is not None:
        J, b = passive.reduced.matrix[form.others], passive.b
        accelerations[form.others] = J @ passive.fit(qdd - b[form.control]) + b[form.others]
    return accelerations


def _followed(hold: Hold, J_x: Array | None, rows: Array) -> Array:
    """-J_x^+ rows: the motion of the platform that follows rows of the loops best."""
    if hold.inverse is not None:
        return -(hold.inverse @ rows)
    assert J_x is not None
    A = hold.weights[:, None] * J_x
    return solve_positive(A.T @ A, -(A.T @ (hold.weights * rows)))


def _end_rows(hold: Hold, at: Pose, moving: Motion, part: int) -> Array:
    """Velocities (part 0) or accelerations (part 2) of the legs' ends along the rows of the platform."""
    rows = []
    for loop in hold.closures.loops:
        (R1, _), (R2, _) = at.of(loop.first), at.of(loop.second)
        rows.append(loop.translations @ (R1.T @ (R2 @ moving.of(loop.second)[part])))
    return np.concatenate(rows)


def _platform_rates(form: RedundantForm, at: Pose, rates: Array) -> tuple[Array, Array | None]:
    """J_C qd_r, and J_x where it changes from pose to pose."""
    tree, hold = form.robot.tree, form.hold
    if hold.quadratic is not None:
        return _followed(hold, None, _end_rows(hold, at, motion(tree, at, rates, np.zeros(tree.n)), 0)), None
    J = hold.closures.jacobian(at, jacobians(tree, at))
    J_x = J[:, form.platform]
    return _followed(hold, J_x, J[:, form.legs] @ rates[form.legs]), J_x


def all_rates(form: RedundantForm, q: Any, qd: Array) -> Array:
    """Rates of all joints and of the platform; `q` are all positions, `qd` the rates of motors and sensed joints."""
    at = pose(form.robot.tree, q)
    rates = _leg_rates(form, qd, _passive(form, at, qd) if len(form.others) else None)
    if len(form.platform):
        rates[form.platform] = _platform_rates(form, at, rates)[0]
    return rates


def _moving(form: RedundantForm, at: Pose, rates: Array, accelerations: Array) -> Motion:
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
    follow = _followed(hold, None, _end_rows(hold, at, moving, 2)) + hold.quadratic @ products
    moving.a[body], moving.al[body] = joint.S_v @ follow, joint.S_w @ follow
    moving.U[body] = turning(w, moving.al[body])
    return moving


# -- efforts -------------------------------------------------------------------------------------------


def redundant_effort(
    form: RedundantForm,
    q: Any,
    qd: Array,
    qdd: Array,
    without: tuple[str, ...] = (),
    wrenches: Mapping[str, Array] | None = None,
) -> Array:
    """D qdd + C qd + G - F_ext: efforts of the motors for accelerations of [q_a, q_s].

    `q` are all positions; `wrenches` act on frames, in world axes. Joint terms of the file act unless `without` names
    them.
    """
    tree = form.robot.tree
    motors = len(form.control) - len(form.robot.sensed)
    if motors == len(form.control):
        order = np.argsort(form.control)
        state = general_form.general_state(form.general, q, qd[order])
        forces = general_form.forces(state, qdd[order], without, on_links(tree, state.at, wrenches or {}))
        return general_form.motor_efforts(state.reduction, forces, [int(k) for k in form.control])
    at = pose(tree, q)
    passive = _passive(form, at, qd) if len(form.others) else None
    rates, accelerations = _leg_rates(form, qd, passive), _leg_accelerations(form, qdd, passive)
    moving = _moving(form, at, rates, accelerations)
    forces = newton_euler(tree, at, moving, on_links(tree, at, wrenches or {})).forces
    return to_motors(form, at, forces + joint_forces(tree, q, rates, accelerations, without))


def to_motors(form: RedundantForm, at: Pose, forces: Array) -> Array:
    """T^T (f_r + J_C^T f_x) of forces along all rates.

    J_C T is the motion of the platform per motor, so one system in the forces of the loops gives both parts.
    """
    tree, part = form.robot.tree, form.general.partition
    motors = form.control[: len(form.control) - len(form.robot.sensed)]
    if not len(part.dependent):
        return forces[motors]
    J = form.robot.closures.jacobian(at, jacobians(tree, at))[part.rows]
    return forces[motors] - J[:, motors].T @ solve(J[:, part.dependent].T, forces[part.dependent])


def joint_errors(form: RedundantForm, q: Any, reference: Array) -> Array:
    """Reference less measured values of [q_a, q_s]; angles in (-pi, pi]."""
    differences = reference - np.asarray(q)[form.positions]
    wrapped = [
        np.arctan2(np.sin(value), np.cos(value)) if turn else value
        for value, turn in zip(differences, form.turns, strict=True)
    ]
    return np.array(wrapped, dtype=object if is_symbolic(differences) else float)


def extended_effort(
    form: RedundantForm,
    q: Any,
    qd: Array,
    reference: Array,
    reference_rate: Array,
    reference_acceleration: Array,
    Kp: Any,
    Kv: Any,
    without: tuple[str, ...] = (),
) -> Array:
    """Extended computed torque, [Zubizarreta2010, eq. (59)] with G for its G_r; without sensed joints the classical."""
    errors = joint_errors(form, q, reference)
    wanted = reference_acceleration + Kv * (reference_rate - qd) + Kp * errors
    return redundant_effort(form, q, qd, wanted, without)
