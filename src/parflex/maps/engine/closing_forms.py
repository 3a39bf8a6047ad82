"""Loops without a beam, couplings and rods in a step: components that follow from others, so that D stays definite.

What holds a loop is a linear form of the unknowns that is zero. It depends on pose and design alone: dependent
components are taken out before any shift, and the signs of the pivots go on counting the modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parflex.closure.constraints import Constraint, Coupling, Distance, Loop
from parflex.closure.mobility import choose_partition
from parflex.maps.engine.frames import FrameBuilder, FrameTree, Hop, Row
from parflex.maps.engine.small_matrices import E3, dot, shift
from parflex.maps.node_unknowns import NotCoveredError, closing_rank
from parflex.spatial.linear import is_zero
from parflex.tree.tree import GROUND, Place

Array = np.ndarray
KEPT = 0.1  # of a joint: how willingly free twists of pieces and coordinates of bodies become dependent
SAFE = 0.1  # of the largest entry at home: what may be divided by


class ClosingForms:
    """The forms of all that closes a loop inside a piece, with their units: metres, or radians times the length."""

    def __init__(self, builder: FrameBuilder, constraints: Sequence[Constraint]) -> None:
        self.builder = builder
        self.length = float(builder.plain.length)
        self.forms: list[Row] = []
        self.units: list[float] = []
        for tie in builder.cut.left_over:
            assert tie.closure is not None  # joints and nodes are a forest: closures alone are left over
            self._loop(builder.loops[tie.closure])
        for row in constraints:
            if isinstance(row, Coupling):
                self._coupling(row)
            elif isinstance(row, Distance):
                self._distance(row)
            else:
                raise NotCoveredError(f"'{row.name}', a {row.kind}")

    def _put(self, form: Row, unit: float) -> None:
        self.forms.append({k: x for k, x in form.items() if not is_zero(x)})
        self.units.append(unit)

    def _twist(self, place: Place) -> list[Row]:
        """Twist of a place, in its axes."""
        if place.inner is not None:
            raise NotCoveredError("a closure inside a body")
        if place.link == GROUND:
            return [{} for _ in range(6)]
        builder = self.builder
        X = shift(builder.place_axes(place).T, dot(builder.own(place).T, place.position))[:, list(builder.used)]
        frame = builder.made.frames[place.link]
        return [{k: x for k, x in zip(frame, row, strict=True) if not is_zero(x)} for row in X]

    def _world(self, place: Place) -> tuple[Array, Array]:
        R, p = self.builder.world(place.link)
        return dot(R, self.builder.place_axes(place)), p + dot(R, dot(self.builder.own(place).T, place.position))

    def _loop(self, loop: Loop) -> None:
        """Rows of theory (9), (10) at a closed pose."""
        (R1, P1), (R2, P2) = self._world(loop.first), self._world(loop.second)
        turn = E3 if loop.turning == "none" else dot(R1.T, R2)
        whole = len(loop.translations) == (2 if self.builder.planar else 3)
        one, two = self._twist(loop.first), self._twist(loop.second)
        v1, w1 = one[:3], one[3:]
        v2, w2 = _combined(turn, two[:3]), _combined(turn, two[3:])
        opening = [_sum(a, b, -1.0) for a, b in zip(v2, v1, strict=True)]
        if not whole:  # the second place has left the first
            rho = dot(R1.T, P2 - P1)
            hat = np.zeros((3, 3), dtype=object)
            hat[0, 1], hat[0, 2], hat[1, 2] = -rho[2], rho[1], -rho[0]
            hat[1, 0], hat[2, 0], hat[2, 1] = rho[2], -rho[1], rho[0]
            opening = [_sum(a, b) for a, b in zip(opening, _combined(hat, w1), strict=True)]
        turning = [_sum(a, b, -1.0) for a, b in zip(w2, w1, strict=True)]
        for form in _combined(loop.translations, opening):
            self._put(form, 1.0)
        for form in _combined(loop.rotations, turning):
            self._put(form, self.length)
        if loop.turning == "universal":
            normal = np.cross(dot(turn, loop.u2), loop.u1)
            self._put(_combined(normal[None], turning)[0], self.length)

    def _coupling(self, row: Coupling) -> None:
        """Rates of joints; those that are locked do not move."""
        form: Row = {}
        for number, c in zip(row.numbers, row.coefficients, strict=True):
            form = _sum(form, self.builder.made.rates.get(number, {}), c)
        scale = float(row.scale(self.length)[0]) if all(isinstance(c, float | int) for c in row.coefficients) else 1.0
        self._put(form, scale)

    def _distance(self, row: Distance) -> None:
        """Along the line between the places, less the rate of a strut."""
        (R1, P1), (R2, P2) = self._world(row.first), self._world(row.second)
        across = P2 - P1
        across = across / np.sqrt(sum(x * x for x in across))
        form: Row = {}
        for R, place, sign in ((R2, row.second, 1.0), (R1, row.first, -1.0)):
            form = _sum(form, _combined(dot(R.T, across)[None], self._twist(place)[:3])[0], sign)
        if row.number is not None:
            form = _sum(form, self.builder.made.rates.get(row.number, {}), -1.0)
        self._put(form, 1.0)


def _sum(a: Row, b: Row, factor: Any = 1.0) -> Row:
    """A + factor b."""
    result = dict(a)
    for k, x in b.items():
        term = factor * x
        result[k] = result[k] + term if k in result else term
    return result


def _combined(A: Array, forms: Sequence[Row]) -> list[Row]:
    """Rows of A times forms."""
    found: list[Row] = []
    for row in A:
        total: Row = {}
        for x, form in zip(row, forms, strict=True):
            if not is_zero(x):
                total = _sum(total, form, x)
        found.append(total)
    return found


def typical_sizes(builder: FrameBuilder) -> dict[int, float]:
    """Of variables that are not turns."""
    length = float(builder.plain.length)
    found: dict[int, float] = {}
    for frame in (*builder.made.frames.values(), *(hop.frame for hop in builder.made.hops)):
        found |= {k: length for k, component in zip(frame, builder.used, strict=True) if component < 3}
    units = builder.plain.rate_units
    for entry in builder.cut.modal:
        own = units[builder.plain.links[entry.link].e_v][list(entry.free)]
        found |= dict(zip(builder.modal[entry.link], own.tolist(), strict=True))
    return found


def close_loops(
    builder: FrameBuilder, constraints: Sequence[Constraint], at_home: Callable[[list[Any]], Array]
) -> list[tuple[Any, float]]:
    """Let frames hop to what loops leave free; gives what is divided by, with its value at home."""
    held = ClosingForms(builder, constraints)
    if not held.forms:
        return []
    cut, frames = builder.cut, builder.made
    moving = {k for piece in cut.pieces if piece.reference != GROUND for k in frames.frames[piece.reference]}
    kept = moving | {k for own in builder.modal.values() for k in own}
    forms, sizes = free_forms(frames, held.forms), typical_sizes(builder)
    rows, divisors = dependent_rows(forms, held.units, sizes, kept, closing_rank(cut), at_home)
    frames.hops += [Hop({k: form}, [k]) for k, form in rows.items()]
    return divisors


def free_forms(frames: FrameTree, forms: Sequence[Row]) -> list[Row]:
    """Forms in free components alone."""
    rows = {k: row for hop in frames.hops for k, row in hop.rows.items()}
    known: dict[int, Row] = {}

    def of(k: int) -> Row:
        if k not in rows:
            return {k: 1.0}
        if k not in known:
            known[k] = expanded(rows[k])
        return known[k]

    def expanded(form: Row) -> Row:
        total: Row = {}
        for k, x in form.items():
            total = _sum(total, of(k), x)
        return {k: x for k, x in total.items() if not is_zero(x)}

    return [expanded(form) for form in forms]


def dependent_rows(
    forms: Sequence[Row],
    row_units: Sequence[float],
    sizes: dict[int, float],
    kept: set[int],
    rank: int,
    at_home: Callable[[list[Any]], Array],
) -> tuple[dict[int, Row], list[tuple[Any, float]]]:
    """Components that follow, over those that are left, and what was divided by, with its value at home.

    As many as `rank`; which ones is decided by their numbers at home.
    """
    columns = sorted({k for form in forms for k in form})
    entries = [(i, k) for i, form in enumerate(forms) for k in form]
    values = at_home([forms[i][k] for i, k in entries])
    C = np.zeros((len(forms), len(columns)))
    for (i, k), x in zip(entries, values, strict=True):
        C[i, columns.index(k)] = x
    units = np.array([sizes.get(k, 1.0) for k in columns])
    scaled = np.array(row_units)[:, None] * C * units
    scaled = scaled / max(float(np.abs(scaled).max(initial=0.0)), 1e-300)
    weights = np.array([KEPT if k in kept else 1.0 for k in columns])
    if min(scaled.shape) < rank:
        raise NotCoveredError("loops that hold in another way than at home")
    chosen = choose_partition(scaled, np.arange(len(columns)), rank, weights)
    work = {int(i): dict(forms[i]) for i in chosen.rows}
    home = {i: {k: C[i, columns.index(k)] * units[columns.index(k)] for k in form} for i, form in work.items()}
    left = {columns[k] for k in chosen.dependent}
    found: dict[int, Row] = {}
    divisors: list[tuple[Any, float]] = []
    waiting = set(work)
    owner: dict[int, int] = {}
    while waiting:
        i, k = _pivot(work, home, waiting, left)
        pivot, number = work[i][k], home[i][k] / sizes.get(k, 1.0)
        divisors.append((pivot, number))
        inverse = 1.0 / pivot
        work[i] = {j: x * inverse for j, x in work[i].items() if j != k}
        home[i] = {j: x / home[i][k] for j, x in home[i].items() if j != k}
        for other in work:
            if other != i and k in work[other]:
                factor, size = work[other].pop(k), home[other].pop(k)
                work[other] = _sum(work[other], {j: -x for j, x in work[i].items()}, factor)
                work[other] = {j: x for j, x in work[other].items() if not is_zero(x)}
                home[other] = {j: home[other].get(j, 0.0) - size * home[i].get(j, 0.0) for j in work[other]}
        owner[k] = i
        waiting.discard(i)
        left.discard(k)
    for k, i in owner.items():
        found[k] = {j: -x for j, x in work[i].items()}
    return found, divisors


def _pivot(
    work: dict[int, Row], home: dict[int, dict[int, float]], waiting: set[int], left: set[int]
) -> tuple[int, int]:
    """A row and its component to divide by: large beside the others at home, and cheap."""
    best: tuple[float, float, int, int] | None = None
    for i in sorted(waiting):
        here = {k: abs(home[i].get(k, 0.0)) for k in work[i] if k in left}
        top = max(here.values(), default=0.0)
        if not top:
            continue
        for k, size in here.items():
            if size < SAFE * top:
                continue
            cost = (len(work[i]) - 1) * (sum(k in form for form in work.values()) - 1)
            if best is None or (cost, -size) < best[:2]:
                best = cost, -size, i, k
    if best is None:
        raise NotCoveredError("loops that hold in another way than at home")
    return best[2], best[3]
