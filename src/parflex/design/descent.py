"""Descent of designs: linear programs with exact derivatives inside a trust region.

The maximum of many values has kinks, and symmetric robots have their best designs there. Therefore a common bound of
all values over modes and poses is optimised, theory (66). Equal values keep the bound along every combination of their
modes: cuts are added for the combination that violates it, until none does. Multipliers of the last program are the
costs of the limits. Where all responses are smooth, SLSQP of SciPy takes the last steps. A step to a design that cannot
be assembled is shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.optimize

from parflex.design.problem import ResponsePiece
from parflex.errors import ParflexError
from parflex.records import Record

Array = np.ndarray
CUTS = 12  # rounds of cuts of equal values
FINE = 1e-4  # region of trust of the program whose multipliers are told
BOUND_TOLERANCE = 1e-9  # of its range: a variable that is nearer to a bound is at it
# of a missed limit, in objectives: at first, how much harder it becomes where limits stay missed, and at most
PENALTY, PENALTY_GROWTH, MAX_PENALTY = 20.0, 100.0, 2e5
MET = 1e-6  # of a limit: missed by less it is met
LARGEST, FIRST = 0.5, 0.1  # region of trust, of the ranges of the variables
POLISHING_ROUNDS = 40  # of SLSQP
APART = 0.02  # of the worst value: pieces that are farther do not become the worst in the last steps
OPTIMALITY_TRUST = (
    1e-3  # region of trust in which a design is tested: what a step promises there, over its length, is the slope
)


@dataclass(frozen=True, eq=False, repr=False)
class Term(Record):
    """A response as the optimiser takes it: all its pieces are at least a bound, `sign` 1, or at most, `sign` -1.

    `limit` is None for the objective, whose bound is what is improved. Where only the worst piece counts, the response
    is not a bound for all, and steps follow that piece alone.
    """

    name: str
    sign: float
    limit: float | None
    scale: float
    all_pieces_count: bool = True


@dataclass(eq=False, repr=False)
class DesignPoint(Record):
    """A design in units of its ranges, the values of all terms there, and their pieces."""

    z: Array
    values: Array
    pieces: list[list[ResponsePiece]] = field(default_factory=list)


@dataclass(frozen=True, eq=False, repr=False)
class Descent(Record):
    """Where the steps ended: the design, values of all terms, multipliers of limits, and whether limits are met."""

    z: Array
    values: Array
    multipliers: Array
    missed: Array  # of each term, in its scale; zero for the objective
    steps: int
    evaluations: int
    done: bool = True  # else steps were used up
    slope: float = 0.0  # what a step still promises, in objectives per range of the variables
    stopped: str = ""  # why the last step that was tried cannot be, if it cannot


class Designs:
    """Values and pieces of all terms at designs."""

    def __init__(
        self,
        terms: Sequence[Term],
        values: Callable[[Array], Array],
        pieces: Callable[[Array], list[list[ResponsePiece]]],
    ) -> None:
        self.terms, self._values, self._pieces = list(terms), values, pieces
        self.evaluations, self.penalty = 0, PENALTY

    def at(self, z: Array) -> DesignPoint:
        """A design with its values."""
        self.evaluations += 1
        return DesignPoint(z, self._values(z))

    def with_pieces(self, point: DesignPoint) -> DesignPoint:
        """The same with pieces."""
        if not point.pieces:
            point.pieces = self._pieces(point.z)
        return point

    def missed(self, values: Array) -> Array:
        """By how much limits are missed, in their scales."""
        violations = [
            0.0 if term.limit is None else max(0.0, term.sign * (term.limit - value) / term.scale)
            for term, value in zip(self.terms, values, strict=True)
        ]
        return np.array(violations)

    def merit(self, values: Array) -> float:
        """What falls from step to step: the objective, which is improved, and what limits are missed by."""
        first = self.terms[0]
        return float(-first.sign * values[0] / first.scale + self.penalty * self.missed(values).sum())


def descend(designs: Designs, z: Array, free: Array, steps: int, tolerance: float) -> Descent:
    """The best design that steps from one reach; variables that are not `free` stay."""
    here, trust, taken, done = designs.at(z), FIRST, 0, False
    multipliers, stopped = np.zeros(len(designs.terms)), ""
    while taken < steps:
        taken += 1
        designs.with_pieces(here)
        change, ahead, multipliers = linear_step(designs, here, free, trust)
        promised = designs.merit(here.values) - ahead
        missed = designs.missed(here.values).max() > MET
        near = tolerance * (designs.penalty / PENALTY if missed else 1.0)  # what is promised of missed limits counts so
        if promised <= near or trust < tolerance:
            if missed and designs.penalty < MAX_PENALTY:
                designs.penalty *= PENALTY_GROWTH  # the objective may gain more than what missing a limit costs
                trust = FIRST
                continue
            done = True
            break
        try:
            there = designs.at(np.clip(here.z + change, 0.0, 1.0))
            gained, stopped = designs.merit(here.values) - designs.merit(there.values), ""
        except ParflexError as error:  # a design that cannot be: shorter steps stay inside
            there, gained, stopped = here, -np.inf, error.message
        share = gained / promised
        if share > 0.1:
            here = there
        if share > 0.7:
            trust = min(2.0 * trust, LARGEST)
        elif share < 0.3:
            trust = 0.4 * min(trust, float(np.abs(change).max()))
    missed = designs.missed(here.values)
    return Descent(here.z, here.values, multipliers, missed, taken, designs.evaluations, done, stopped=stopped)


def with_remaining_slope(designs: Designs, descent: Descent, free: Array) -> Descent:
    """The same with what a step still promises there: nothing where the conditions of an optimum hold."""
    point = designs.with_pieces(DesignPoint(descent.z, descent.values))
    promised = designs.merit(point.values) - linear_step(designs, point, free, OPTIMALITY_TRUST)[1]
    promised -= (
        designs.penalty * designs.missed(point.values).sum()
    )  # limits that are met but for rounding gain nothing
    return replace(descent, slope=promised / OPTIMALITY_TRUST)


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
        if first_point is None or not _smooth(first_point):
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
            options={"maxiter": POLISHING_ROUNDS, "ftol": 1e-10},
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


def _smooth(point: DesignPoint) -> bool:
    """Whether the worst piece of each term is single and the next one far: then the terms are smooth functions."""
    for pieces in point.pieces:
        value = abs(pieces[0].value)
        apart = len(pieces) == 1 or abs(pieces[1].value - pieces[0].value) > APART * value
        if pieces[0].matrices.shape[1] > 1 or not apart:
            return False
    return True


def linear_step(designs: Designs, here: DesignPoint, free: Array, trust: float) -> tuple[Array, float, Array]:
    """The step that a linear program promises most of, the merit it promises, and multipliers of all limits."""
    change, ahead, costs, _ = _step(designs, here, free, trust)
    return change, ahead, costs


def bound_costs(designs: Designs, here: DesignPoint, free: Array) -> Array:
    """What the objective gains as the bound at which each variable is moves out, along its range; else zero."""
    sides = _step(designs, here, free, FINE)[3]
    held = free & ((here.z <= BOUND_TOLERANCE) | (here.z >= 1 - BOUND_TOLERANCE))
    return np.where(held, designs.terms[0].sign * designs.terms[0].scale * np.abs(sides), 0.0)


def _step(designs: Designs, point: DesignPoint, free: Array, trust: float) -> tuple[Array, float, Array, Array]:
    """The same, and the marginals of the merit by the ends of each variable's step."""
    n, terms = len(point.z), designs.terms
    low = np.where(free, np.maximum(-trust, -point.z), 0.0)
    high = np.where(free, np.minimum(trust, 1.0 - point.z), 0.0)
    slack_terms = [k for k, term in enumerate(terms) if term.limit is not None]
    # unknowns: the step, the bound of the objective in its scale, and what each limit is missed by
    cost = np.concatenate([np.zeros(n), [-1.0], np.full(len(slack_terms), designs.penalty)])
    bounds = [*zip(low, high, strict=True), (None, None), *[(0.0, None)] * len(slack_terms)]
    rows: list[Array] = []
    scaled_rhs: list[float] = []
    owners: list[int] = []

    def add(k: int, piece: ResponsePiece, mode: Array) -> None:
        """The value along a mode keeps the bound: -sign slope d + bound <= sign value."""
        term = terms[k]
        row = np.zeros(len(cost))
        row[:n] = -term.sign * piece.cut(mode) / term.scale
        if term.limit is None:
            row[n] = 1.0
            scaled_rhs.append(term.sign * piece.value / term.scale)
        else:
            row[n + 1 + slack_terms.index(k)] = -1.0
            scaled_rhs.append(term.sign * (piece.value - term.limit) / term.scale)
        rows.append(row)
        owners.append(k)

    counted = [
        pieces if term.all_pieces_count else pieces[:1] for term, pieces in zip(terms, point.pieces, strict=True)
    ]
    counted_pieces = [(k, piece) for k, pieces in enumerate(counted) for piece in pieces]
    for k, piece in counted_pieces:
        for mode in np.eye(piece.matrices.shape[1]):
            add(k, piece, mode)
    solution = None
    for _ in range(CUTS):
        solution = scipy.optimize.linprog(cost, np.array(rows), np.array(scaled_rhs), bounds=bounds, method="highs")
        if solution.status != 0 or not _cut(terms, counted_pieces, solution.x, slack_terms, add, n):
            break
    if solution is None or solution.status != 0:
        return np.zeros(n), designs.merit(point.values), np.zeros(len(terms)), np.zeros(n)
    duals = np.zeros(len(terms))
    for owner, marginal in zip(owners, solution.ineqlin.marginals, strict=True):
        duals[owner] -= marginal
    first = terms[0]
    # what the objective gains as a limit moves by one unit
    units = [0.0 if term.limit is None else -first.sign * term.sign * first.scale / term.scale for term in terms]
    costs = np.array(units) * duals
    ends = np.where(point.z > 0.5, solution.upper.marginals[:n], solution.lower.marginals[:n])
    return solution.x[:n], float(solution.fun), costs, ends


def _cut(
    terms: Sequence[Term], counted_pieces: Sequence[tuple[int, ResponsePiece]], x: Array, slack_terms: list[int],
    add: Callable[[int, ResponsePiece, Array], None], n: int,
) -> bool:  # fmt: skip
    """Add the combinations of equal values that the step lets fall below their bound; whether there were any."""
    added = False
    for k, piece in counted_pieces:
        if piece.matrices.shape[1] == 1:
            continue
        term = terms[k]
        changes, modes = np.linalg.eigh(term.sign * np.tensordot(x[:n], piece.matrices, 1) / term.scale)
        value = term.sign * (piece.value - (term.limit or 0.0)) / term.scale + changes[0]
        bound = x[n] if term.limit is None else -x[n + 1 + slack_terms.index(k)]
        if value < bound - 1e-9:
            add(k, piece, modes[:, 0])
            added = True
    return added
