"""Numbers without units that tell whether the inputs of a program fit the loops, and whether its answers are defined.

Each is one number for which one tolerance serves for all robots, over any scalar.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.models.forms.form import Answer, Form, Given
from parflex.recursion.kinematics import motion, pose
from parflex.spatial.linear import scalar_type, solve, solve_positive

Array = np.ndarray
CHECKS = ("closure", "closure_rate", "closure_acceleration", "condition")
AT_REST = 1e-30  # squared rates below are none; single precision still holds it


def checks_of(form: Form, state: Any, given: Given, motors: bool) -> Answer:
    """How far given positions, rates and accelerations of all coordinates are from closed; condition of what is solved.

    Openings are measured with the typical length, rates and accelerations of the rows against those that were given.
    """
    tree, locked = form.robot.tree, sorted(form.robot.locked)
    loops = [replace(loop, closed=False) for loop in form.robot.closures.loops]
    closures = replace(form.robot.closures, loops=tuple(loops))
    q, at = given["q"], pose(tree, given["q"])
    rows = closures.row_units() / tree.length
    turns = [q[link.q_quaternion] for link in tree.links if link.joint.quaternion is not None]
    found = {"closure": _norm([*(rows * closures.linear_residual(at)), *(turn @ turn - 1.0 for turn in turns)])}
    qd = given["qd"] / tree.rate_units
    qdd = given["qdd"] / tree.rate_units if "qdd" in given else np.zeros(tree.n)
    moving = motion(tree, at, given["qd"], given["qdd"] if "qdd" in given else np.zeros(tree.n))
    speed = qd @ qd
    opening = _norm([*(rows * closures.rate(at, moving)), *qd[locked]])
    found["closure_rate"] = opening / np.sqrt(speed + AT_REST)
    if "qdd" in given:
        opening = _norm([*(rows * closures.bias(at, moving)), *qdd[locked]])
        found["closure_acceleration"] = opening / np.sqrt(qdd @ qdd + speed * speed + AT_REST)
    systems = form.systems(state, motors)
    found["condition"] = _norm([condition_bound(A) for A in systems]) if systems else 1.0
    return {name: np.array([value], dtype=scalar_type(q)) for name, value in found.items()}


def condition_bound(A: Array) -> Any:
    """A bound of the condition number of a matrix, at most its size too large: Frobenius norms of A and its inverse.

    Of a matrix with more rows than columns, such as that of spare motors, the inverse is the one of least norm. Entries
    are without units, of the order of 1 in regular poses: a 1 beside them tells where all of them become small, as the
    only entry of a single rate does.
    """
    one: Array = np.eye(A.shape[1], dtype=scalar_type(A))
    inverse = solve(A, one) if len(A) == len(one) else solve_positive(A.T @ A, A.T)
    return _norm([1.0, *A.ravel()]) * _norm(inverse.ravel())


def _norm(entries: Any) -> Any:
    total = sum(entry * entry for entry in entries)
    return np.sqrt(total)
