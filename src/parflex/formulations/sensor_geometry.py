"""Positions of a robot from all its sensors.

Motors and sensed joints have their measured values; the platform and the passive joints without a sensor are unknown.
With sensors in passive joints there are more loop equations than unknowns, and the sum of the squared loop residuals is
least (rotations times the characteristic length); with the motors alone the loops close. [Zubizarreta2010, eqs.
(31)-(34)] take the mean of corners and angles instead, which is equal if the values satisfy the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.checks import numbers
from parflex.closure import mobility
from parflex.closure.constraints import Closures, Constraint, Loop
from parflex.closure.mobility import SINGULAR, condition
from parflex.closure.partition import choose_partition
from parflex.errors import InputError, SingularError, UnreachableError
from parflex.formulations.base import CHANGE, ModelRequest
from parflex.formulations.general import GeneralFormulation, general_formulation
from parflex.records import Record
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type, solve

Array = np.ndarray

STILL = 1e-12  # a step this small, in turns or typical lengths, changes no digit that matters

CLOSED = 1e-9  # metres: loops that are more open than this after the last step were not closed by the motors' values

CLEAN = 1e-13  # of the largest entry: what is smaller is rounding

PRODUCTS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


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
    tree, part = form.robot.tree, form.general.partition
    at = pose(tree, q)
    if not form.overdetermined:
        closures = form.robot.closures
        J = _open_closures(closures).jacobian(at, jacobians(tree, at))
        A, right = J[np.ix_(part.rows, part.dependent)], -closures.linear_residual(at)[part.rows]
        unknown = part.dependent
    else:
        A, right, unknown = _normal_equations(form, at)
    step: Array = np.zeros(tree.n, dtype=scalar_type(A, right))
    if len(unknown):
        step[unknown] = solve(A, right)
    return step, A


def _normal_equations(form: RedundantSets, at: Pose) -> tuple[Array, Array, Array]:
    """Matrix, right side and unknown rates of a step towards the least squared openings."""
    tree, closures = form.robot.tree, _loops(form)
    unknown = np.array([*form.platform, *form.others], dtype=int)
    links, units = jacobians(tree, at), closures.row_units()[:, None]
    J_c = units * closures.jacobian(at, links)[:, unknown]
    A = J_c.T @ (units * _open_closures(closures).jacobian(at, links)[:, unknown])
    return A, -(J_c.T @ (units[:, 0] * closures.linear_residual(at))), unknown


def geometry_gaps(form: RedundantSets, q: Any) -> Array:
    """Return lengths in metres that vanish where positions fit the sensors best, over any scalar.

    With sensors in passive joints these are slopes of half the squared openings, else the openings themselves.
    """
    tree = form.robot.tree
    at = pose(tree, q)
    if not form.overdetermined:
        return form.robot.closures.gaps(at)
    _, right, unknown = _normal_equations(form, at)
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
    robot : Robot
        Robot, from `load`.
    values : Sequence[float]
        Measured positions of motors and sensed joints, in this order (m, rad).
    near : Array, default None
        All positions of a pose nearby; None is home (m, rad).
    steps : int, default 30
        Largest number of Newton steps.

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
        raise InputError(
            f"the sensors must give {len(form.positions)} finite values",
            key="values",
            value=str(values),
            hint="in this order: " + ", ".join(form.names),
        )
    q = with_measured(form, form.robot.home if near is None else numbers(near, (tree.nq,), "near"), measured)
    for _ in range(steps):
        step, A = geometry_step(form, q)
        _refuse_singular(A)
        q = tree.moved(q, step)
        if np.abs(step / tree.rate_units).max(initial=0.0) < STILL:
            if form.overdetermined or np.abs(form.robot.closures.residual(pose(tree, q))).max(initial=0.0) < CLOSED:
                return q
            break
    raise UnreachableError(
        "no pose near the given one fits the measured values",
        key="values",
        value=str([round(float(value), 6) for value in measured]),
        hint="give a closer pose as `near`, or check the sensors' zeros",
    )


def _refuse_singular(A: Array) -> None:
    size = np.sqrt(np.abs(np.diag(A))) if A.shape[0] == A.shape[1] else np.ones(len(A))
    scaled = A / np.outer(size, size) if np.all(size > 0) else A
    if not np.all(np.isfinite(A)) or condition(scaled) > SINGULAR:
        raise SingularError(
            "the sensors do not determine the pose here: the robot is at a singularity",
            key="values",
            hint="move away from this pose, or sense more joints",
        )


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
        raise InputError(
            "the redundant model needs rigid bodies",
            key="MODEL",
            value=robot.name,
            hint="use the robot without its beams, or the inverse model",
        )
    Configuration(robot, robot.home).refuse_undefined_actuation()
    motors = [k for k in robot.actuated if k not in robot.locked]
    if len(motors) > robot.mobility.freedoms(len(robot.free)):
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
        if loop.first.link in bodies:
            loops.append(replace(loop, closed=True))
        elif loop.second.link in bodies:
            loops.append(replace(loop.reversed(tree) or loop, closed=True))
        elif {*tree.path(loop.first.link), *tree.path(loop.second.link)} & set(bodies):
            loops.append(replace(loop, closed=True))
    closures = Closures(tree, tuple(loops))
    weights = closures.row_units()
    if not platform:
        return PlatformConstraint(closures, weights)
    rng = np.random.default_rng(0)
    jacobian_blocks = []
    for q in (robot.home, robot.home + rng.uniform(-1, 1, tree.nq)):
        at = pose(tree, q)
        jacobian_blocks.append(weights[:, None] * closures.jacobian(at, jacobians(tree, at))[:, platform])
    scaled = jacobian_blocks[0] * tree.rate_units[platform]
    if mobility.rank(scaled) < len(platform):
        raise InputError(
            "the joints of the legs do not determine the pose of the platform",
            key="MODEL",
            value=robot.name,
            hint="the redundant model needs a platform constrained by its closures",
        )
    if np.abs(jacobian_blocks[0] - jacobian_blocks[1]).max() > CHANGE:
        return PlatformConstraint(closures, weights)
    inverse = _clean(np.linalg.pinv(jacobian_blocks[0]) * weights)
    points = len(bodies) == 1 and all(_is_point(tree, loop, bodies[0]) for loop in loops)
    carries = any(link.parent == bodies[0] for link in tree.links)
    return PlatformConstraint(
        closures, weights, inverse, _quadratic(loops, inverse) if points and not carries else None
    )


def _is_point(tree: Any, loop: Loop, body: int) -> bool:
    all_translations = len(loop.translations) == (2 if tree.planar else 3)
    return all_translations and loop.turning == "free" and loop.first.link == body and loop.second.link != body


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
