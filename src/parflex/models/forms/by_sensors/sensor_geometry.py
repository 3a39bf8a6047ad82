"""Where the robot is, from all its sensors: motors and sensed joints stand as measured, the rest fits the loops best.

Unknown are the platform and the passive joints without a sensor. With sensors in passive joints there are more loop
equations than unknowns, and the sum of the squared openings is made least (openings of rotations times the typical
length); with those of the motors alone there are as many, and the loops close. [Zubizarreta2010, eqs. (31)-(34)] take
the mean of the corners and of the angles instead, which is the same where the data fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.checks import numbers
from parflex.closure.constraints import Closures, Constraint, Loop
from parflex.closure.mobility import SINGULAR, condition
from parflex.errors import InputError, SingularError, UnreachableError
from parflex.models.forms.by_sensors.redundant_sets import RedundantSets, redundant_sets
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type, solve

Array = np.ndarray
STILL = 1e-12  # a step this small, in turns or typical lengths, changes no digit that matters
CLOSED = 1e-9  # metres: loops that are more open than this after the last step were not closed by the motors' values


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
        J = _opened(closures).jacobian(at, jacobians(tree, at))
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
    A = J_c.T @ (units * _opened(closures).jacobian(at, links)[:, unknown])
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


def _opened(closures: Closures) -> Closures:
    """The same rows, not taken as closed."""
    return replace(closures, loops=tuple(replace(loop, closed=False) for loop in closures.loops))


def _loops(form: RedundantSets) -> Closures:
    """All loops and couplings that hold an unknown, loops seen from the platform where they hold it."""
    tree = form.robot.tree
    held = {loop.name: loop for loop in form.hold.closures.loops}
    loops = [held.get(loop.name, loop) for loop in form.robot.closures.loops]
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
