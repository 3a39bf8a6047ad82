"""Pareto fronts of two objectives: by gradients with successive limits, or by the evolutionary search of pymoo.

By gradients, both ends of the front are optimised first; then the second objective is limited at values between them,
each time from the design before. By pymoo, one call of the programs of maps gives the responses of a population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.design.descent import MET, Descent
from parflex.design.optimise import OptimisationProblem
from parflex.errors import InputError, ParflexError

Array = np.ndarray
TermSpec = tuple[str, float, float | None]  # name, sign, limit
REFUSED = 1e6  # of the scale of a response: the worth of a design that cannot be


def undominated(points: Array) -> Array:
    """Which rows no other row is better than in both coordinates, which are made large; of equal ones the first."""
    nondominated = np.ones(len(points), dtype=bool)
    for k, point in enumerate(points):
        better = (points >= point).all(axis=1) & (points > point).any(axis=1)
        same = (points[:k] == point).all(axis=1).any()
        nondominated[k] = not better.any() and not same
    return nondominated


def pareto_front(problem: OptimisationProblem) -> list[dict[str, Any]]:
    """Designs of which none is better in both objectives than another, by the first one, for JSON."""
    table = problem.problem.pareto
    assert table is not None
    first, *limits = [(term.name, term.sign, term.limit) for term in problem.designs.terms]
    second: TermSpec = (table.maximise or table.minimise or "", 1.0 if table.maximise else -1.0, None)
    rows = (_by_gradients if table.method == "gradients" else _by_population)(problem, first, second, limits)
    if not rows:
        raise InputError(
            "no design meets all limits, so that there is no front",
            key="pareto",
            value=f"{first[0]}, {second[0]}",
            hint="widen a limit or a bound",
        )
    signs = np.array([first[1], second[1]])
    points = np.array([point for point, _ in rows])
    order = [int(k) for k in np.argsort(signs[0] * points[:, 0], kind="stable") if undominated(signs * points)[k]]
    return [
        {
            "objectives": {first[0]: float(points[k, 0]), second[0]: float(points[k, 1])},
            "variables": problem.robots.settings(rows[k][1]),
        }
        for k in order
    ]


def _by_gradients(
    problem: OptimisationProblem, first: TermSpec, second: TermSpec, limits: Sequence[TermSpec]
) -> list[tuple[Array, Array]]:
    """Both ends, and the first objective with the second one limited between them."""
    table = problem.problem.pareto
    assert table is not None

    def best(term_specs: Sequence[TermSpec], starts: Sequence[Array]) -> Descent | None:
        designs = problem.searched(term_specs)
        descents = problem.descents(designs, starts)
        chosen = problem.stock(designs, min(descents, key=lambda descent: designs.merit(descent.values)))
        return chosen if chosen.missed.max() <= MET else None

    ends = [best([objective, *limits], problem.starts()) for objective in (second, first)]
    feasible_ends = [end for end in ends if end is not None]
    if len(feasible_ends) < 2:
        return []
    rows = [_row(problem, end.z, first, second) for end in feasible_ends]
    low, high = rows[0][0][1], rows[1][0][1]
    z = feasible_ends[0].z
    for value in np.linspace(low, high, table.points)[1:-1]:
        optimum = best([first, (second[0], second[1], float(value)), *limits], [z])
        if optimum is not None:
            rows.append(_row(problem, optimum.z, first, second))
            z = optimum.z
    return rows


def _row(problem: OptimisationProblem, z: Array, first: TermSpec, second: TermSpec) -> tuple[Array, Array]:
    responses = problem.robots.values(z, [first[0], second[0]])
    return np.array([responses[first[0]], responses[second[0]]]), z


def _by_population(
    problem: OptimisationProblem, first: TermSpec, second: TermSpec, limits: Sequence[TermSpec]
) -> list[tuple[Array, Array]]:
    """NSGA-II of pymoo over all variables; stock sizes are rounded to their lists."""
    try:
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.core.problem import Problem
        from pymoo.optimize import minimize
    except ImportError:
        raise InputError(
            "pymoo is not installed", key="pareto.method", value="pymoo", hint="install parflex[pareto]"
        ) from None
    table, robots = problem.problem.pareto, problem.robots
    assert table is not None
    term_specs = [first, second, *limits]

    def rounded(designs: Array) -> Array:
        result = np.clip(designs, 0.0, 1.0)
        for k, key in enumerate(problem.keys):
            choices = np.array(problem.problem.variables[key].choices)
            if len(choices):
                scaled_choices = (choices - robots.low[k]) / robots.width[k]
                result[:, k] = scaled_choices[np.abs(result[:, k, None] - scaled_choices).argmin(axis=1)]
        return result

    class Population(Problem):
        """The problem as pymoo takes it: everything is made small, limits are kept below zero."""

        def __init__(self) -> None:
            super().__init__(n_var=len(problem.keys), n_obj=2, n_ieq_constr=len(limits), xl=0.0, xu=1.0)

        def _evaluate(self, x: Array, out: dict[str, Any], *_: Any, **__: Any) -> None:
            values = _values(problem, rounded(x), [name for name, _, _ in term_specs])
            signs = np.array([sign for _, sign, _ in term_specs])
            bounds = np.array([limit or 0.0 for _, _, limit in term_specs])
            worth = -signs * (values - bounds)
            worth = np.where(np.isfinite(worth), worth, REFUSED * (1.0 + np.abs(bounds)))
            out["F"] = worth[:, :2]
            if limits:
                out["G"] = worth[:, 2:]

    result = minimize(
        Population(), NSGA2(pop_size=table.population), ("n_gen", table.generations), seed=problem.problem.seed + 1
    )
    if result.X is None:
        return []
    designs = rounded(np.atleast_2d(result.X))
    values = _values(problem, designs, [first[0], second[0]])
    return [(row, z) for row, z in zip(values, designs, strict=True) if np.isfinite(row).all()]


def _values(problem: OptimisationProblem, designs: Array, names: Sequence[str]) -> Array:
    """Responses by columns at rows of designs; not a number where a design cannot be."""
    robots, columns = problem.robots, []
    for name in names:
        batch_values = robots.together(designs, name)
        columns.append(np.full(len(designs), np.nan) if batch_values is None else robots.worst(batch_values, name))
    values = np.stack(columns, axis=1)
    for row in np.flatnonzero(~np.isfinite(values).all(axis=1)):
        try:
            design_values = robots.values(designs[row], names)
        except ParflexError:
            continue
        values[row] = [design_values[name] for name in names]
    return values
