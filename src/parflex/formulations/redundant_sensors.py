"""The formulation with redundant sensors of passive joints, [Zubizarreta2010, eq. (26)], over any scalar.

tau = D qdd + C qd + G - F_ext in q = [q_a, q_s], the motors and the sensed passive joints. All joints of the legs move
with qd_r = T_q qd, the platform with x_dot = J_C qd_r, J_C = -J_x^+ J_q (39). The forces of that motion act on the
motors by T^T, where qd_r = T qd_a. The recursion forms none of these matrices.

`redundant_model` forms them. Time derivatives of the Jacobians are exact, by dual numbers. The velocity terms of every
body are a skew matrix of its momentum, so that Ddot - 2 C is skew in the model of the motors alone. H holds friction,
springs and dampers.

Sensor values that satisfy the loops give the inverse model. For other values the rows of the loops are as at a closed
pose, and J_C_dot is that of (43), so that J_x xdd + J_x_dot x_dot + J_q qdd_r + J_q_dot qd_r = 0 in the least squares
of J_x^+. The characteristic length of the robot weights rows of rotations; legs that end in balls or hinges have none.

Positions follow from all sensors: with sensors in passive joints there are more loop equations than unknowns, and the
sum of the squared loop residuals is least; with the motors alone the loops close. [Zubizarreta2010, eqs. (31)-(34)]
take the mean of corners and angles instead, which is equal if the values satisfy the loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from parflex.checks import numbers
from parflex.closure import mobility
from parflex.closure.constraints import Closures, Constraint, Loop
from parflex.closure.mobility import SINGULAR, condition
from parflex.closure.partition import choose_partition, reduction
from parflex.errors import InputError, SingularError, UnreachableError
from parflex.forces.coupling_losses import refuse_losses
from parflex.forces.forces import Without, Wrench, checked_wrenches, on_links
from parflex.formulations.base import CHANGE, FAR, Answer, Formulation, Given, Groups, ModelRequest, residual_norm
from parflex.formulations.general import GeneralFormulation, general_formulation, motor_efforts
from parflex.records import Answer as Result
from parflex.records import Record
from parflex.recursion.dynamics import carry_wrenches, joint_forces, newton_euler
from parflex.recursion.energy import element_wrenches
from parflex.recursion.kinematics import Motion, acceleration_matrix, jacobians, motion, pose
from parflex.recursion.kinematics import Pose as LinkPoses
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.load import acting_configuration
from parflex.robot.robot import Robot
from parflex.spatial.dual import Dual
from parflex.spatial.linear import is_symbolic, least_squares, scalar_type, solve, solve_positive
from parflex.spatial.rotations import hat
from parflex.tree.tree import Tree

Array = np.ndarray
MODELS = ("redundant", "extended-law", "extended-step", "geometry-redundant")
OF_MOTORS = ("classical-law", "classical-step", "geometry-motors")  # the same with the motors' sensors alone
BY_SENSORS = "the model by sensors does not know"
STILL = 1e-12  # a step this small, in turns or typical lengths, changes no digit that matters
CLOSED = 1e-9  # metres: loops that are more open than this after the last step were not closed by the motors' values
CLEAN = 1e-13  # of the largest entry: what is smaller is rounding
PRODUCTS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


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
    def labels(self) -> dict[str, list[str]]:
        """Motors and sensed joints by their names."""
        names, positions = self.independent_names, list(self.robot.tree.position_names)
        groups = ("qd", "qdd", "measured", "measured_rate", "reference", "reference_rate", "reference_acceleration")
        labels = dict.fromkeys(groups, names) | dict.fromkeys(("q", "guess", "last"), positions)
        return labels | {"effort": names[: len(self.sets.motors)]}

    def state(self, inputs: Given) -> tuple[Array, Array]:
        """Positions and rates as given: they need not fit the loops."""
        return inputs["q"], inputs["qd"]

    def inverse(self, state: tuple[Array, Array], motion: Given) -> Answer:
        """Efforts of the motors for accelerations of motors and sensed joints."""
        return {"effort": redundant_effort(self._shared, *state, motion["qdd"])}

    def law(self, state: tuple[Array, Array], reference: Sequence[Array], Kp: Any, Kv: Any) -> Array:
        """Extended (without sensors classical) computed torque, [Zubizarreta2010, eq. (59)] with G for its G_r."""
        (q, qd), (positions, rates, accelerations), form = state, reference, self._shared
        differences = positions - np.asarray(q)[form.positions]
        pairs = zip(differences, form.turns, strict=True)
        wrapped = [np.arctan2(np.sin(value), np.cos(value)) if turn else value for value, turn in pairs]
        errors = np.array(wrapped, dtype=object if is_symbolic(differences) else float)
        return redundant_effort(form, q, qd, accelerations + Kv * (rates - qd) + Kp * errors)

    @property
    def _shared(self) -> RedundantSets:
        """The sets with the allocation of the question."""
        return replace(self.sets, general=replace(self.sets.general, question=self.question))

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


def redundant_sensor_formulation(robot: Robot, question: ModelRequest) -> RedundantSensorFormulation | str:
    """The form of a question about sensors, or why it is none."""
    if question.model not in (*MODELS, *OF_MOTORS):
        return f"'{question.model}' takes no sensors"
    sets = redundant_sets(robot.sensing([]) if question.model in OF_MOTORS else robot)
    return RedundantSensorFormulation(sets.robot, sets, question=question)


# -- motion --------------------------------------------------------------------------------------------
class _LegMotion:
    """Rates and accelerations of the joints of the legs, with zeros for the platform.

    T_q = [1; J_p E^+], [Zubizarreta2010, eq. (17)]: passive joints without a sensor follow those rates of the motors
    that fit q best; sliding and turning joints compare by the typical length.
    """

    def __init__(self, form: RedundantSets, at: LinkPoses, qd: Array) -> None:
        tree, closures = form.robot.tree, form.robot.closures
        self.form, self.units = form, tree.rate_units[form.control]
        reduced = reduction(closures.jacobian(at, jacobians(tree, at)), form.general.partition)
        self.matrix, self.E = reduced.matrix, reduced.matrix[form.control] / self.units[:, None]
        motors = self._fit(qd)
        still = np.zeros(len(form.general.independent))
        self.bias = reduced.accelerations(closures, at, reduced.rates(motors), still)  # that the motion itself causes
        self.rates: Array = np.zeros(tree.n, dtype=scalar_type(qd, motors))
        self.rates[form.control], self.rates[form.others] = qd, self.matrix[form.others] @ motors

    def _fit(self, values: Array) -> Array:
        """Of the motors, what fits values of q best."""
        return solve_positive(self.E.T @ self.E, self.E.T @ (values / self.units))

    def accelerations(self, qdd: Array) -> Array:
        """T_q qdd + T_q_dot qd."""
        form, b = self.form, self.bias
        result: Array = np.zeros(form.robot.tree.n, dtype=scalar_type(qdd, b))
        result[form.control] = qdd
        result[form.others] = self.matrix[form.others] @ self._fit(qdd - b[form.control]) + b[form.others]
        return result


def _followed(hold: PlatformConstraint, J_x: Array | None, rows: Array) -> Array:
    """-J_x^+ rows: the motion of the platform that follows rows of the loops best."""
    if hold.inverse is not None:
        return -(hold.inverse @ rows)
    assert J_x is not None
    A = hold.weights[:, None] * J_x
    return solve_positive(A.T @ A, -(A.T @ (hold.weights * rows)))


def _end_rows(hold: PlatformConstraint, at: LinkPoses, moving: Motion, part: int) -> Array:
    """Velocities (part 0) or accelerations (part 2) of the legs' ends along the rows of the platform."""
    rows = []
    for loop in hold.closures.loops:
        (R1, _), (R2, _) = at.of(loop.first), at.of(loop.second)
        rows.append(loop.translations @ (R1.T @ (R2 @ moving.of(loop.second)[part])))
    return np.concatenate(rows)


def _platform_rates(form: RedundantSets, at: LinkPoses, rates: Array) -> tuple[Array, Array | None]:
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
    rates = _LegMotion(form, at, qd).rates
    if len(form.platform):
        rates[form.platform] = _platform_rates(form, at, rates)[0]
    return rates


def _moving(form: RedundantSets, at: LinkPoses, rates: Array, accelerations: Array) -> Motion:
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
def redundant_effort(form: RedundantSets, q: Any, qd: Array, qdd: Array, wrenches: Given | None = None) -> Array:
    """D qdd + C qd + G - F_ext: efforts for accelerations of [q_a, q_s], at all positions `q`, shared if redundant."""
    tree = form.robot.tree
    if len(form.motors) == len(form.control):
        motors, units = [int(k) for k in form.motors], tree.rate_units[form.motors]
        J_a = form.general.moving(q, np.zeros(len(form.general.independent))).reduction.matrix[motors]
        state = form.general.moving(q, least_squares(J_a, qd, units), wrenches)
        desired = least_squares(J_a, qdd - state.bias[motors], units)
        return state.driven(state.forces(state.accelerations(desired)), motors=motors)[0]
    at = pose(tree, q)
    legs = _LegMotion(form, at, qd)
    rates, accelerations = legs.rates, legs.accelerations(qdd)
    moving = _moving(form, at, rates, accelerations)
    forces = newton_euler(tree, at, moving, on_links(tree, at, wrenches or {})).forces
    return to_motors(form, at, forces + joint_forces(tree, q, rates, accelerations))


def to_motors(form: RedundantSets, at: LinkPoses, forces: Array) -> Array:
    """T^T (f_r + J_C^T f_x) of forces along all rates; one system in the forces of the loops gives both parts."""
    tree, part, motors = form.robot.tree, form.general.partition, form.motors
    refuse_losses(form.robot.closures, BY_SENSORS)
    J = form.robot.closures.jacobian(at, jacobians(tree, at))
    if form.spare:
        allocation = form.general.question.allocation
        return motor_efforts(reduction(J, part), forces, [int(k) for k in motors], "split", allocation)
    if not len(part.dependent):
        return forces[motors]
    J = J[part.rows]
    return forces[motors] - J[:, motors].T @ solve(J[:, part.dependent].T, forces[part.dependent])


# -- positions from sensors ------------------------------------------------------------------------------
def with_measured(form: RedundantSets, q: Any, measured: Array) -> Array:
    """Positions in which motors and sensed joints stand as measured."""
    result: Array = np.array(q, dtype=scalar_type(np.asarray(q), measured))
    result[form.positions] = measured
    return result


def geometry_step(form: RedundantSets, q: Any) -> tuple[Array, Array]:
    """A step of the unknown rates towards the best fit, over any scalar, and the matrix it was solved with.

    The openings r are least where J_c^T r = 0, J_c being the rows as at a closed pose: what a gap adds to a row is
    normal to the gap. With balls on a platform J_c is made of numbers, so that this is Newton's method and not Gauss's.
    """
    A, right, unknown = _equations(form, pose(form.robot.tree, q))
    step: Array = np.zeros(form.robot.tree.n, dtype=scalar_type(A, right))
    if len(unknown):
        step[unknown] = solve(A, right)
    return step, A


def _equations(form: RedundantSets, at: LinkPoses) -> tuple[Array, Array, Array]:
    """Matrix, right side and unknown rates of a step that closes the loops, or makes their squared openings least."""
    tree, part, closures = form.robot.tree, form.general.partition, form.robot.closures
    links = jacobians(tree, at)
    if not form.overdetermined:
        J = _open_closures(closures).jacobian(at, links)
        return J[np.ix_(part.rows, part.dependent)], -closures.linear_residual(at)[part.rows], part.dependent
    closures, unknown = _loops(form), np.array([*form.platform, *form.others], dtype=int)
    units = closures.row_units()[:, None]
    J_c = units * closures.jacobian(at, links)[:, unknown]
    A = J_c.T @ (units * _open_closures(closures).jacobian(at, links)[:, unknown])
    return A, -(J_c.T @ (units[:, 0] * closures.linear_residual(at))), unknown


def geometry_gaps(form: RedundantSets, q: Any) -> Array:
    """Return lengths (m) that vanish at the best fit: openings, or slopes of half their squares, over any scalar."""
    tree = form.robot.tree
    at = pose(tree, q)
    if not form.overdetermined:
        return form.robot.closures.gaps(at)
    _, right, unknown = _equations(form, at)
    return right * tree.rate_units[unknown] / tree.length


def _open_closures(closures: Closures) -> Closures:
    """The same rows, not taken as closed."""
    return replace(closures, loops=tuple(replace(loop, closed=False) for loop in closures.loops))


def _loops(form: RedundantSets) -> Closures:
    """All loops and couplings that hold an unknown, loops seen from the platform where they hold it."""
    tree = form.robot.tree
    from_platform = {loop.name: loop for loop in form.hold.closures.loops}
    loops = [from_platform.get(loop.name, loop) for loop in form.robot.closures.loops]
    unknown = {*form.platform, *form.others}

    def moved(row: Loop | Constraint) -> bool:
        return any(k in unknown for j in row.links(tree) for k in range(tree.links[j].v.start, tree.links[j].v.stop))

    constraints = tuple(row for row in form.robot.closures.constraints if moved(row))
    return Closures(tree, tuple(loop for loop in loops if moved(loop)), constraints)


def geometry_from_sensors(
    robot: Robot | RedundantSets, values: Sequence[float] | Array, near: Array | None = None, steps: int = 30
) -> Array:
    """All positions from measured positions of motors and sensed joints.

    With sensors in passive joints the loop openings are made least; without, the robot is assembled by its motors.

    Parameters
    ----------
    robot, values, near, steps
        See `parflex.api.WORDS`.

    Returns
    -------
    Array
        All positions (m, rad), in the order of `robot.coordinates`.
    """
    form = robot if isinstance(robot, RedundantSets) else redundant_sets(robot)
    tree = form.robot.tree
    try:
        measured = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        measured = np.array(np.nan)  # of no shape that is asked for
    if measured.shape != form.positions.shape or not np.all(np.isfinite(measured)):
        text, hint = f"the sensors must give {len(form.positions)} finite values", ", ".join(form.names)
        raise InputError(text, key="values", value=str(values), hint=f"in this order: {hint}")
    q = with_measured(form, form.robot.home if near is None else numbers(near, (tree.nq,), "near"), measured)
    for _ in range(steps):
        step, A = geometry_step(form, q)
        size = np.sqrt(np.abs(np.diag(A))) if A.shape[0] == A.shape[1] else np.ones(len(A))
        scaled = A / np.outer(size, size) if np.all(size > 0) else A
        if not np.all(np.isfinite(A)) or condition(scaled) > SINGULAR:
            text = "the sensors do not determine the pose here: the robot is at a singularity"
            raise SingularError(text, key="values", hint="move away from this pose, or sense more joints")
        q = tree.moved(q, step)
        if np.abs(step / tree.rate_units).max(initial=0.0) < STILL:
            if form.overdetermined or np.abs(form.robot.closures.residual(pose(tree, q))).max(initial=0.0) < CLOSED:
                return q
            break
    text, hint = "no pose near the given one fits the measured values", "give a closer pose as `near`, or check the "
    shown = str([round(float(value), 6) for value in measured])
    raise UnreachableError(text, key="values", value=shown, hint=f"{hint}sensors' zeros")


def singular_steps(robot: Robot | RedundantSets, positions: Sequence[Array]) -> list[int]:
    """Numbers of the steps of a path of closed positions in which the robot passes a singularity of its motors.

    There the passive joints and the platform can move with the motors locked: the determinant of their block of the
    closures changes its sign. More motors than freedoms pass around such poses: no sign changes.
    """
    form = robot if isinstance(robot, RedundantSets) else redundant_sets(robot)
    if form.spare:
        return []
    tree, part = form.robot.tree, form.general.partition
    signs = []
    for q in positions:
        at = pose(tree, q)
        block = form.robot.closures.jacobian(at, jacobians(tree, at))[np.ix_(part.rows, part.dependent)]
        signs.append(np.linalg.slogdet(block)[0] if len(block) else 1.0)
    return [k for k, (before, after) in enumerate(pairwise(signs)) if before * after <= 0]


@dataclass(frozen=True, eq=False, repr=False)
class PlatformConstraint(Record):
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


@dataclass(frozen=True, eq=False, repr=False)
class RedundantSets(Record):
    """A robot with its sets of rates: joints of legs q_r, of these q = [q_a, q_s] and the others q_p; platform x."""

    general: GeneralFormulation  # its independent rates are the motors, unless some of these are spare
    legs: Array
    control: Array
    others: Array
    platform: Array
    hold: PlatformConstraint

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.general.robot

    @property
    def motors(self) -> Array:
        """Rates of the motors."""
        return self.control[: len(self.control) - len(self.robot.sensed)]

    @property
    def spare(self) -> bool:
        """Whether there are more motors than freedoms."""
        return len(self.motors) > len(self.general.independent)

    @property
    def overdetermined(self) -> bool:
        """Whether sensors give more than the freedoms: then loops close in their least squares."""
        return len(self.control) > len(self.general.independent)

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
        """Which of them are angles that a whole turn does not change."""
        tree = self.robot.tree
        return np.array([tree.links[tree.link_of_rate[k]].periodic for k in self.control])


def redundant_sets(robot: Robot) -> RedundantSets:
    """The sets of a robot; its sensors are those of the file or of `Robot.sensing`."""
    tree = robot.tree
    if tree.elastic:
        text, hint = "the redundant model needs rigid bodies", "use the robot without its beams, or the inverse model"
        raise InputError(text, key="robot", value=robot.name, hint=hint)
    Configuration(robot, robot.home).refuse_undefined_actuation()
    motors = [k for k in robot.actuated if k not in robot.locked]
    if len(motors) > robot.freedoms:
        partition = Configuration(robot, robot.home).reduction.partition
    else:
        passive = np.array([k for k in robot.free if k not in set(motors)], dtype=int)
        J = mobility.scaled_jacobian(robot.closures, robot.home)
        chosen = choose_partition(J, passive, len(passive), np.ones(tree.n))
        partition = replace(chosen, independent=np.sort(np.array(motors, dtype=int)))
    bodies = [j for j, link in enumerate(tree.links) if link.joint.moves_freely]
    platform = [k for j in bodies for k in range(tree.links[j].v.start, tree.links[j].v.stop) if k in set(robot.free)]
    if any(
        row.kind != "coupling" and {*tree.path(j)} & {*bodies} for row in robot.closures.constraints for j in row.ends
    ):
        bodies, platform = [], []  # rods and struts hold it, not the joints of legs: it follows as these do
    legs = np.array([k for k in range(tree.n) if k not in set(platform)], dtype=int)
    control = np.array([*motors, *robot.sensed], dtype=int)
    others = np.array([k for k in legs if k in set(robot.free) and k not in set(control)], dtype=int)
    general = general_formulation(robot, partition, ModelRequest("redundant"))
    hold = platform_constraint(robot, bodies, platform)
    return RedundantSets(general, legs, control, others, np.array(platform, dtype=int), hold)


def platform_constraint(robot: Robot, bodies: list[int], platform: list[int]) -> PlatformConstraint:
    """How the loops of a robot hold its free bodies, which have these rates."""
    tree = robot.tree
    loops: list[Loop] = []
    for loop in robot.closures.loops:
        first, second = loop.first.link, loop.second.link
        if {*tree.path(first), *tree.path(second)} & {*bodies}:
            other_end = loop.reversed(tree) if second in bodies and first not in bodies else None
            loops.append(replace(other_end or loop, closed=True))
    closures = Closures(tree, tuple(loops))
    weights = closures.row_units()
    if not platform:
        return PlatformConstraint(closures, weights)
    other = robot.home + np.random.default_rng(0).uniform(-1, 1, tree.nq)
    poses = (pose(tree, q) for q in (robot.home, other))
    block, elsewhere = (weights[:, None] * closures.jacobian(at, jacobians(tree, at))[:, platform] for at in poses)
    if mobility.rank(block * tree.rate_units[platform]) < len(platform):
        text = "the joints of the legs do not determine the pose of the platform"
        hint = "the redundant model needs a platform constrained by its closures"
        raise InputError(text, key="robot", value=robot.name, hint=hint)
    if np.abs(block - elsewhere).max() > CHANGE:
        return PlatformConstraint(closures, weights)
    inverse = np.linalg.pinv(block) * weights
    inverse = np.where(np.abs(inverse) < CLEAN * np.abs(inverse).max(), 0.0, inverse)
    rows, alone = 2 if tree.planar else 3, len(bodies) == 1 and all(link.parent != bodies[0] for link in tree.links)
    free = (len(loop.translations) == rows and loop.turning == "free" for loop in loops)
    on_platform = (loop.first.link == bodies[0] != loop.second.link for loop in loops)
    quadratic = _quadratic(loops, inverse) if alone and all(free) and all(on_platform) else None
    return PlatformConstraint(closures, weights, inverse, quadratic)


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


# -- matrices ------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class RedundantModel(Result):
    """tau = D qdd + C qd + G + H - F_ext in q = [q_a, q_s]; qd_r = T qd_a = T_q qd and x_dot = J_C qd_r.

    `names` are the coordinates q, motors first, and `motors` those. `D` is the mass matrix (kg, kg m^2), `C` that of
    Coriolis; `G` gravity, `H` friction, springs and dampers of joints, `F_ext` external wrenches (N, N m). `T` and
    `T_q` have rates of the legs per rate of motors and of q, `J_C` the twist of the platform per rate of the legs.
    `T_dot`, `T_q_dot` and `J_C_dot` (1/s) are those that (26) needs, for data that fit the loops the derivatives.
    """

    names: list[str]
    motors: list[str]
    D: Array
    C: Array
    G: Array
    H: Array
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
    robot, pose, velocity, sensed, wrench, without
        See `parflex.api.WORDS`.

    Returns
    -------
    RedundantModel
        Matrices of tau = D qdd + C qd + G + H - F_ext (SI) and names of the coordinates.
    """
    configuration = acting_configuration(robot, pose, without)
    robot = configuration.robot
    form = redundant_sets(robot if sensed is None else robot.sensing(sensed))
    if form.spare:
        text = "the matrices of the redundant model are those of as many motors as degrees of freedom"
        hint = "choose an actuation without spare motors, or use the model 'redundant', whose efforts they share"
        raise InputError(text, key="actuation", value=robot.actuation, hint=hint)
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
    D = motor_projection @ D_tot @ N @ T_q
    C = motor_projection @ ((C_tot @ N + D_tot @ N_dot) @ T_q + D_tot @ N @ T_q_dot)
    maps, slopes_of_maps = (S[form.legs], T_q, N[form.platform]), (S_dot[form.legs], T_q_dot, N_dot[form.platform])
    return RedundantModel(form.names, form.names[: S.shape[1]], D, C, G, H, F_ext, *maps, *slopes_of_maps)


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
    part = form.general.partition
    S, S_dot = _parts(reduction(form.robot.closures.jacobian(moving.at, moving.links), part).matrix)
    order = [list(part.independent).index(k) for k in form.motors]
    return S[:, order], S_dot[:, order]


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
