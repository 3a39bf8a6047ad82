"""Refine a design whose responses are smooth by sequential quadratic programming.

Linear programs find kinks exactly and smooth optima slowly. If each response has one worst piece, it is a smooth
function with known derivatives, and SciPy's SLSQP continues from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.optimize

from parflex.design.descent import FINE, Descent, DesignPoint, Designs, linear_step
from parflex.design.sliding import HELD
from parflex.errors import ParflexError

Array = np.ndarray
ROUNDS = 40  # of SLSQP
APART = 0.02  # of the worst value: pieces that are farther do not become the worst in the last steps


def polished(designs: Designs, found: Descent, free: Array) -> Descent:
    """The design, or a better one nearby where its responses are smooth; variables that are not `free` stay."""
    points: dict[bytes, DesignPoint] = {}

    def at(x: Array) -> DesignPoint:
        z = found.z.copy()
        z[free] = np.clip(x, 0.0, 1.0)
        key = z.tobytes()
        if key not in points:
            points[key] = designs.with_pieces(designs.at(z))
        return points[key]

    try:
        first_point = at(found.z[free]) if free.any() else None
        if first_point is None or not _smooth(designs, first_point) or _at_edge(first_point):
            return found
        terms = designs.terms
        first = terms[0]

        def row(point: DesignPoint, k: int) -> Array:
            return terms[k].sign / terms[k].scale * point.pieces[k][0].matrices[free, 0, 0]

        limits = [k for k, term in enumerate(terms) if term.limit is not None]

        def kept(x: Array) -> Array:
            values = at(x).values
            return np.array([terms[k].sign * (values[k] - (terms[k].limit or 0.0)) / terms[k].scale for k in limits])

        solution = scipy.optimize.minimize(
            lambda x: -first.sign * at(x).values[0] / first.scale,
            found.z[free],
            jac=lambda x: -row(at(x), 0),
            bounds=[(0.0, 1.0)] * int(free.sum()),
            constraints=[{"type": "ineq", "fun": kept, "jac": lambda x: np.array([row(at(x), k) for k in limits])}]
            if limits
            else [],
            method="SLSQP",
            options={"maxiter": ROUNDS, "ftol": 1e-10},
        )
        there = at(solution.x)
    except ParflexError:  # a step to a design that cannot be
        return found
    if designs.merit(there.values) >= designs.merit(found.values):
        return found
    _, _, multipliers = linear_step(designs, there, free, FINE)
    return replace(
        found, z=there.z, values=there.values, multipliers=multipliers, missed=designs.missed(there.values),
        evaluations=designs.evaluations,
    )  # fmt: skip


def _at_edge(point: DesignPoint) -> bool:
    """Whether the design is at the edge of what can be assembled, where a quadratic program steps beyond it."""
    return any(edge.value <= HELD for edge in point.edges or [])


def _smooth(designs: Designs, point: DesignPoint) -> bool:
    """Whether the worst piece of each term is single and the next one far: then the terms are smooth functions."""
    for pieces in point.pieces:
        value = abs(pieces[0].value)
        apart = len(pieces) == 1 or abs(pieces[1].value - pieces[0].value) > APART * value
        if pieces[0].matrices.shape[1] > 1 or not apart:
            return False
    return True
