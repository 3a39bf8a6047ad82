"""Programs of a state given as arrays that verify the state beside computing the result.

Inputs are closed positions with all rates and accelerations, or the independent ones. Outputs besides the result are
sums of squares, at most 1 if the state satisfies the loops and the program is reliable: the residuals of positions,
rates and accelerations, and a bound of all condition numbers. A state that fails is computed again in floats with
suitable rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.partition import choose_partition
from parflex.closure.targets import Target
from parflex.codegen.model import Model, cached_program
from parflex.codegen.options import Options
from parflex.codegen.tracer import Tracer, grouped_robot
from parflex.formulations.base import ModelRequest, best_rows, cheapest_closures
from parflex.formulations.choice import choose
from parflex.recursion.kinematics import Pose, jacobians, motion
from parflex.robot.configuration import MISSED, NEAR_SINGULAR
from parflex.robot.limits import AT_LIMIT, SHARE
from parflex.robot.robot import Robot
from parflex.robot.states import OPEN
from parflex.spatial.linear import eliminate, solve, substitute
from parflex.statics.small_deformation import squared_shares

Array = np.ndarray
CHECKS = ("verdict", "size", "positions", "rates", "accelerations", "condition", "limits")
MOTORS_LAST = 1e-3  # weight of motors among the rates that may depend on others
MOST_RATES = 40  # of a flexible robot: programs of more would take minutes to make
UNEVEN = 1e12  # ratio of pivots of a mass matrix above which a program is not trusted
TINY = 1e-300  # times the squares of all inputs: nothing, unless one of them is not finite


@dataclass(frozen=True)
class StateQuestion:
    """What is asked of a state: a model, the groups of which only the independent ones are given, loaded frames."""

    model: str  # "inverse" or "forward"
    few: tuple[str, ...] = ()  # of "qd" and "qdd"
    frames: tuple[str, ...] = ()


def state_program(robot: Robot, question: StateQuestion, making: Callable[[], None] | None = None) -> Model | None:
    """The program of a state, kept on disk; None where answers come in floats alone.

    `making` is called before a program is made that is not on disk.
    """
    if (question.model == "inverse" and not robot.nu) or (robot.tree.elastic and robot.nv > MOST_RATES):
        return None
    chosen = _independent(robot, question.model)
    if chosen is None:
        return None

    def outputs(tracer: Tracer) -> dict[str, Any]:
        if making is not None:
            making()
        grouped, _ = grouped_robot(robot, tracer.graph, "numbers")
        return _Traced(tracer, robot, grouped, question).outputs(chosen)

    return cached_program(robot, f"{question.model}-state", Options(), outputs, question)


# -- what the program keeps, chosen with numbers ---------------------------------------------------------------------


def _independent(robot: Robot, model: str) -> list[int] | None:
    """The independent rates of a program: motors where they are to define the motion; None where they do not."""
    if model == "forward":
        return list(robot.independent_rates)
    weights = robot.preference.copy() if robot.tree.elastic else np.ones(robot.nv)
    weights[list(robot.actuated)] = MOTORS_LAST * weights.min()
    for q in robot.reference_poses:
        J = mobility.scaled_jacobian(robot.closures, q)
        block = J[:, robot.free]
        if robot.mobility.rank and mobility.condition(block, robot.mobility.rank) > NEAR_SINGULAR:
            continue
        partition = choose_partition(J, robot.free, robot.mobility.rank, weights)
        dependent_block = J[np.ix_(partition.rows, partition.dependent)]
        motors, chosen = set(robot.actuated), set(partition.independent.tolist())
        fits = motors <= chosen if robot.tree.elastic else chosen <= motors
        if fits and mobility.condition(dependent_block) <= NEAR_SINGULAR:
            return [int(k) for k in partition.independent]
    return None


def _regular_pose(robot: Robot, dependent: Array) -> Array:
    """The reference pose at which these rates follow best from the others."""

    def worst(q: Array) -> float:
        return mobility.condition(mobility.scaled_jacobian(robot.closures, q)[:, dependent])

    return min(robot.reference_poses, key=worst)


def _leg_blocks(robot: Robot) -> list[tuple[Array, Array, Array, Array]]:
    """Of each leg, or side of a loop, its rows and joints, and those of its largest regular block."""
    bodies, selected_closures, leg_blocks = robot.assembler.free_bodies, cheapest_closures(robot), []
    numbers = {
        id(loop): row_indices for loop, row_indices in zip(robot.closures.rows, robot.closures.slices(), strict=True)
    }
    assembler, locked = robot.assembler, robot.locked
    for part in assembler.parts(Target(fixed=bodies), locked) if bodies else assembler.sides(locked):
        if not len(part.columns):
            continue
        rows = np.concatenate([np.arange(*numbers[id(loop)].indices(robot.closures.size)) for loop in part.rows])
        blocks = [
            mobility.scaled_jacobian(selected_closures, q)[np.ix_(rows, part.columns)] for q in robot.reference_poses
        ]
        best = max(blocks, key=mobility.rank)
        rank = mobility.rank(best)
        row_indices = np.sort(scipy.linalg.qr(best.T, mode="r", pivoting=True)[1][:rank])
        columns = np.sort(scipy.linalg.qr(best[row_indices], mode="r", pivoting=True)[1][:rank])
        leg_blocks.append((rows, part.columns, rows[row_indices], part.columns[columns]))
    return leg_blocks


# -- the trace -------------------------------------------------------------------------------------------------------


class _Traced:
    """The symbols of a state, and what is computed from them."""

    def __init__(self, tracer: Tracer, robot: Robot, grouped: Robot, question: StateQuestion) -> None:
        self.robot, self.grouped, self.question = robot, grouped, question
        last = "qdd" if question.model == "inverse" else "effort"
        names = ["q", "qd", last, *(f"wrench_{frame}" for frame in question.frames)]
        groups = [tracer.group(*pair) for pair in zip(names, group_lengths(robot, question), strict=True)]
        self.q, rates, self.last = groups[:3]
        self.wrenches = dict(zip(question.frames, groups[3:], strict=True))
        self.inputs = tracer.inputs
        self.home = self._form(list(robot.independent_rates)).given(self.q, rates, self.wrenches)
        self.qd: Array = self.home.qd

    def _form(self, independent: list[int]) -> Any:
        """The general form with these independent rates."""
        names = tuple(self.robot.tree.rate_names[k] for k in independent)
        dependent = np.array([k for k in self.robot.free if k not in set(independent)], dtype=int)
        rows: tuple[int, ...] = ()
        if len(dependent):
            closures, q = cheapest_closures(self.robot), _regular_pose(self.robot, dependent)
            rows = tuple(int(row) for row in best_rows(closures, q, dependent))
        return choose(self.grouped, ModelRequest("state", independent=names, rows=rows))

    def outputs(self, independent: list[int]) -> dict[str, Any]:
        """The answer, and what vouches for it, in the order of `CHECKS`."""
        few = self.question.few
        same = independent == list(self.robot.independent_rates)
        state = self.home if same else self._form(independent).given(self.q, self.qd, self.wrenches)
        conditions = [self._condition(state)]
        conditions += [self._condition(self.home)] if few and not same else []
        missed: Any = 0.0
        if self.question.model == "inverse":
            effort, missed = self._efforts(state)
            answer = {"effort": effort}
            conditions += [] if self.robot.tree.elastic else self._leg_conditions(state.at)
        else:
            accelerations, uneven = _accelerations(state, self.last)
            answer = {"qdd": state.accelerations(accelerations)}
            conditions.append(uneven)
        size = sum((values.ravel() @ values.ravel() for values in (*self.inputs.values(), *answer.values())), 0.0)
        rates = 0.0 if "qd" in few else self._missed_rates(state.at)
        parts = [self._missed_positions(state.at), rates, missed, sum(conditions, 0.0), self._outside(answer)]
        return answer | {"checks": np.array([sum(parts, TINY * size), size, *parts], dtype=object)}

    def _efforts(self, state: Any) -> tuple[Array, Any]:
        """Efforts, and what the accelerations miss; a flexible robot takes those of its motors, and deforms freely."""
        if self.robot.tree.elastic:
            return state.form.efforts_for(state, self.last)[0], 0.0
        if "qdd" in self.question.few:
            return state.efforts(state.forces(self.home.accelerations(self.last))), 0.0
        return state.efforts(state.forces(self.last)), self._missed_accelerations(state.at, self.last)

    # -- what the state misses -------------------------------------------------------------------------

    def _missed_positions(self, at: Pose) -> Any:
        """Openings of the loops, and how far quaternions are from the length 1."""
        closures, tree = self.grouped.closures, self.grouped.tree
        rows = closures.row_units() * closures.linear_residual(at) / (OPEN * tree.length)
        missed = rows @ rows if len(rows) else 0.0
        for loop in closures.loops:
            missed = missed + (2 * loop.one_minus_cosine(at)) ** 2  # an angle of 60 degrees
        for link in tree.links:
            if link.joint.quaternion is not None:
                quaternion = self.q[link.q_quaternion]
                missed = missed + ((quaternion @ quaternion - 1.0) / (2 * OPEN)) ** 2
        return missed

    def _missed_rates(self, at: Pose) -> Any:
        return self._missed(self._rows(at) @ (self.qd / self.robot.tree.rate_units), self.qd, self._size(self.qd))

    def _missed_accelerations(self, at: Pose, qdd: Array) -> Any:
        closures, tree = self.home.form.robot.closures, self.grouped.tree
        moving = motion(tree, at, self.qd, qdd, -tree.gravity)  # as in the forces; differences do not feel it
        rows = closures.row_units() * closures.bias(at, moving) / tree.length
        return self._missed(rows, qdd, self._size(qdd) + self._size(self.qd) ** 2)

    def _missed(self, rows: Array, values: Array, size: Any) -> Any:
        """Squares of what opens the loops and moves locked joints, beside the squares of what is given."""
        held = values[sorted(self.robot.locked)] / self.robot.tree.rate_units[sorted(self.robot.locked)]
        missed = (rows @ rows if len(rows) else 0.0) + (held @ held if len(held) else 0.0)
        return missed / (MISSED**2 * (1.0 + size))

    def _size(self, values: Array) -> Any:
        scaled = values / self.robot.tree.rate_units
        return scaled @ scaled

    def _outside(self, answer: dict[str, Any]) -> Any:
        """Twice the number of limits that are exceeded, and of bodies beyond those of small deformations."""
        count: Any = sum((1.0 + np.sign(share - 1.0) for share in squared_shares(self.robot.tree, self.q)), 0.0)
        for beyond, near in self._beyond(answer):
            count = count + 1.0 + np.sign(beyond - near)
        return count

    def _beyond(self, answer: dict[str, Any]) -> Iterator[tuple[Any, float]]:
        """By how much each limit is exceeded, and what counts as on the limit."""
        efforts = dict(zip(self.robot.actuated, answer.get("effort", ()), strict=False))
        for link in self.robot.tree.links:
            if link.limits is not None and link.terms.stop is None:
                (low, high), q = link.limits, self.q[link.q.start]
                near = AT_LIMIT * self.robot.tree.rate_units[link.v.start]
                yield q - high, near
                yield low - q, near
            for values, limit in ((self.qd, link.velocity_limit), (efforts, link.effort_limit)):
                if limit is not None and (values is self.qd or link.v.start in efforts):
                    yield values[link.v.start] - limit, SHARE * limit
                    yield -limit - values[link.v.start], SHARE * limit

    # -- condition numbers -----------------------------------------------------------------------------

    def _rows(self, at: Pose) -> Array:
        """All rows of the closures without units."""
        robot = self.home.form.robot
        return mobility.scale(robot.closures, robot.closures.jacobian(at, jacobians(robot.tree, at)))

    def _condition(self, state: Any) -> Any:
        """Square of a bound of the condition number of the closures and of motors as independent rates."""
        reduced = state.reduction
        if not len(reduced.partition.dependent):
            return 0.0
        rows = self._rows(state.at)[np.ix_(reduced.partition.rows, self.robot.free)]
        return _bound(rows, reduced.inverse)

    def _leg_conditions(self, at: Pose) -> list[Any]:
        conditions, J = [], self._rows(at) if self.robot.closures.size else None
        for rows, columns, block_rows, picked in _leg_blocks(self.robot):
            assert J is not None
            block = J[np.ix_(block_rows, picked)]
            inverse = solve(block, np.eye(len(block), dtype=object))
            conditions.append(_bound(J[np.ix_(rows, columns)], inverse))
        return conditions


def _bound(matrix: Array, inverse: Array) -> Any:
    """Square of a bound of a condition number, as a share of what is near a singularity: by Frobenius norms."""
    return (matrix.ravel() @ matrix.ravel()) * (inverse.ravel() @ inverse.ravel()) / NEAR_SINGULAR**2


def _accelerations(state: Any, tau: Array) -> tuple[Array, Any]:
    """Independent accelerations under efforts, theory (17), and how uneven the pivots of the mass matrix are."""
    units = state.form.robot.tree.rate_units[state.form.independent]
    steps = eliminate(state.mass_matrix * np.outer(units, units))

    def solved(_: Array, right: Array) -> Array:
        if right.ndim == 2:
            return np.array([solved(_, column) for column in right.T], dtype=object).T
        return units * np.array(substitute(steps, units * right), dtype=object)

    accelerations, _ = state.pushed(tau, solved)
    pivots = np.array([step.pivot for step in steps], dtype=object)
    inverses = np.array([step.inverse for step in steps], dtype=object)
    uneven = (pivots @ pivots) * (inverses @ inverses) / UNEVEN**2
    return accelerations, uneven + sum((1.0 - np.sign(pivot) for pivot in pivots), 0.0)


def group_lengths(robot: Robot, question: StateQuestion) -> list[int]:
    """Lengths of the groups of inputs, in their order."""
    few, n = len(robot.independent_rates), robot.nv
    by_motors = question.model == "forward" or robot.tree.elastic
    last = robot.nu if by_motors else few if "qdd" in question.few else n
    return [robot.nq, few if "qd" in question.few else n, last, *(6 for _ in question.frames)]
