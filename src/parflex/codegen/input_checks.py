"""Checks of a program: whether its inputs satisfy the loops, and whether its outputs are defined.

All are without units, so that one tolerance serves all robots. `verdict` is at most 1 where no check exceeds what
arrays of double precision are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.checks import require, short_text
from parflex.closure.mobility import condition, scaled_jacobian
from parflex.codegen.model import Model
from parflex.formulations.base import Answer, Formulation, Given, best_rows, cheapest_closures
from parflex.recursion.kinematics import motion, pose
from parflex.robot.configuration import MISSED, NEAR_SINGULAR
from parflex.robot.limits import AT_LIMIT, SHARE
from parflex.robot.robot import Robot
from parflex.robot.states import OPEN
from parflex.spatial.linear import eliminate, scalar_type, solve, solve_positive
from parflex.statics.small_deformation import squared_shares

Array = np.ndarray
UNEVEN = 1e12  # ratio of pivots of a mass matrix: of sixteen digits four are left
ALLOWED = {  # largest values at which arrays are answered without a look at the state in floats
    "closure": OPEN,
    "closure_rate": MISSED,
    "closure_acceleration": MISSED,
    "condition": NEAR_SINGULAR,
    "pivots": UNEVEN,
}
CHECKS = (*ALLOWED, "limits", "verdict")
TINY = 1e-300  # times the sum of all inputs and outputs: nothing, unless one of them is not finite


def input_checks(form: Formulation, state: Any, inputs: Given, outputs: Answer) -> Answer:
    """How far given positions, rates and accelerations of all coordinates are from closed; condition of what is solved.

    Openings are measured with the typical length; rates and accelerations of the rows against 1 and those that were
    given, as for arrays.
    """
    inverse = "qdd" in inputs
    squares = _openings(form, inputs)
    systems = form.systems(state, motors=inverse)
    squares["condition"] = sum((_condition(*system) for system in systems), 0.0) if systems else 1.0
    if not inverse:
        squares["pivots"] = _pivot_ratio(*form.inertia(state)) ** 2
    limits = _exceeded(form, inputs, outputs)
    total = sum((values.sum() for values in (*inputs.values(), *outputs.values())), 0.0)
    verdict = sum((square / ALLOWED[name] ** 2 for name, square in squares.items()), limits + TINY * total)
    checks = {name: np.sqrt(square) for name, square in squares.items()} | {"limits": limits, "verdict": verdict}
    return {name: np.array([value], dtype=scalar_type(inputs["q"])) for name, value in checks.items()}


def _openings(form: Formulation, inputs: Given) -> dict[str, Any]:
    """Squares of what opens the loops, of how far quaternions are from unit length, of motions of locked joints."""
    tree, locked = form.robot.tree, sorted(form.robot.locked)
    loops = [replace(loop, closed=False) for loop in cheapest_closures(form.robot).loops]
    closures = replace(form.robot.closures, loops=tuple(loops))
    q, at, rows = inputs["q"], pose(tree, inputs["q"]), closures.row_units() / tree.length
    quaternions = [q[link.q_quaternion] for link in tree.links if link.joint.quaternion is not None]
    gaps = [*(rows * closures.linear_residual(at)), *(loop.one_minus_cosine(at) for loop in loops)]
    squares = {"closure": _squares([*gaps, *((quaternion @ quaternion - 1.0) / 2 for quaternion in quaternions)])}
    qd, qdd = inputs["qd"] / tree.rate_units, inputs["qdd"] / tree.rate_units if "qdd" in inputs else np.zeros(tree.n)
    moving = motion(tree, at, inputs["qd"], inputs["qdd"] if "qdd" in inputs else np.zeros(tree.n))
    speed = qd @ qd
    squares["closure_rate"] = _squares([*(rows * closures.rate(at, moving)), *qd[locked]]) / (1.0 + speed)
    if "qdd" in inputs:
        opening = _squares([*(rows * closures.bias(at, moving)), *qdd[locked]])
        squares["closure_acceleration"] = opening / (1.0 + qdd @ qdd + speed * speed)
    return squares


def condition_bound(A: Array) -> Any:
    """A bound of the condition number of a matrix, at most its size too large."""
    return np.sqrt(_condition(A, np.ones(len(A)), np.ones(A.shape[1])))


def _condition(A: Array, rows: Array, columns: Array) -> Any:
    """Square of a bound of the condition number of diag(rows) A diag(columns): of Frobenius norms with the inverse.

    Of a matrix with more rows than columns, such as that of spare motors, the inverse is the one of least norm. Entries
    are without units, of the order of 1 in regular poses: a 1 beside them tells where all of them become small, as the
    only entry of a single rate does.
    """
    scaled = rows[:, None] * A * columns
    if len(A) == A.shape[1]:
        inverse = solve(A, np.eye(len(A), dtype=scalar_type(A))) / rows / columns[:, None]
    else:
        inverse = solve_positive(scaled.T @ scaled, scaled.T)
    return _squares([1.0, *scaled.ravel()]) * _squares(inverse.ravel())


def _pivot_ratio(A: Array, units: Array, sparse: bool) -> Any:
    """A bound of the ratio of the pivots of a matrix without its units; no number where one of them is not positive."""
    if not len(A):
        return 1.0
    roots = [np.sqrt(step.pivot) * units[step.unknown] for step in eliminate(A, sparse)]
    return _squares(roots) * _squares([1.0 / root for root in roots])


def _exceeded(form: Formulation, inputs: Given, outputs: Answer) -> Any:
    """The number of limits that are exceeded, those of small deformations among them."""
    squares = squared_shares(form.robot.tree, inputs["q"])
    beyond = [*((square, 1.0) for square in squares), *_excesses(form, inputs, outputs)]
    return sum((0.5 + 0.5 * np.sign(excess - near) for excess, near in beyond), 0.0)


def _excesses(form: Formulation, inputs: Given, outputs: Answer) -> Iterator[tuple[Any, float]]:
    """By how much each limit is exceeded, and what counts as on the limit."""
    tree, efforts = form.robot.tree, dict(zip(form.robot.actuated, outputs.get("effort", ()), strict=False))
    rates = dict(enumerate(inputs["qd"]))
    for link in tree.links:
        if link.limits is not None and link.terms.stop is None:
            (low, high), value = link.limits, inputs["q"][link.q.start]
            near = AT_LIMIT * tree.rate_units[link.v.start]
            yield value - high, near
            yield low - value, near
        for values, limit in ((rates, link.velocity_limit), (efforts, link.effort_limit)):
            if limit is not None and link.v.start in values:
                yield values[link.v.start] - limit, SHARE * limit
                yield -limit - values[link.v.start], SHARE * limit


def _squares(entries: Any) -> Any:
    return sum((entry * entry for entry in entries), 0.0)


def model_condition(robot: Robot, model: Model, q: Any) -> float:
    """Condition number, without units, of what a program of a robot solves for its dependent rates at a closed pose.

    A program keeps the choice that was made at home. It loses about as many digits as this number has.
    """
    hint = "make it first, by model(robot, 'direct')"
    require(isinstance(model, Model), "the condition is that of a program", "model", hint, short_text(model))
    listed = "qd" in model.labels and "q" in model.inputs
    require(listed, "the program does not list its independent rates", "model", "use its direct model", model.name)
    q = np.asarray(q, dtype=float)
    fits, hint = q.shape == (robot.tree.nq,), f"give {robot.tree.nq} positions"
    require(fits, f"the pose has the shape {q.shape}", "q", hint, str(q.shape))
    coordinate_names, independent = robot.tree.rate_names, set(model.about.get("independent") or model.labels["qd"])
    dependent = np.array([k for k in robot.free if coordinate_names[k] not in independent], dtype=int)
    if not len(dependent):
        return 1.0
    closures = cheapest_closures(robot)
    rows = best_rows(closures, robot.home, dependent)
    return condition(scaled_jacobian(closures, q)[np.ix_(rows, dependent)], usual=robot.regular_closure_norm)
