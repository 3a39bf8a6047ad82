"""Condensed legs tabulated over their shape: Chebyshev polynomials on boxes that are halved until they fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev

from parflex.maps.condensation import (
    FAR,
    POINTS,
    Band,
    LegGroup,
    chebyshev_coefficients,
    chebyshev_points,
    condense,
    coupling,
    kept_modes,
    separate,
)
from parflex.maps.legs import LegSubstructure, NotTabulatedError
from parflex.records import Record

Array = np.ndarray
TOLERANCE = 1e-10  # error of an entry beside the diagonal entries of its row and column
EPS = np.finfo(float).eps  # of the largest, an eigenvalue solver knows all eigenvalues so well: tables cannot do better
COUNTS = {0: (), 1: (14,), 2: (12, 12)}  # points along each coordinate of a box
FINE = {0: 1, 1: 96, 2: 16}  # points along each coordinate of the whole at which modes to keep are searched
FIRST = {1: 12, 2: 2}  # boxes along each coordinate to begin with: larger ones never fit
SMALLEST = 1 / 2**14  # boxes are not halved further than to this share of the whole
MOST_BOXES = 600
LARGEST = 2_000_000  # entries of matrices that are made at a time
NEAR = 0.9 * FAR  # a mode that is not kept and lies below this multiple of the band spoils the series
UNFELT = 1e-9  # a component that meets so little of its stiffness and mass through the leg is free of it


@dataclass(frozen=True, eq=False, repr=False)
class Layout(Record):
    """One group of a leg's coordinates: which ends it has, how many modes are kept, where its entries stand."""

    group: LegGroup
    ends: Array  # components of the port that feel the leg
    start: int  # first entry in the row of a table

    @property
    def sizes(self) -> tuple[int, int]:
        """Ends and kept modes."""
        return len(self.ends), self.group.kept

    @property
    def width(self) -> int:
        """Entries: k and m and the series at its points over pairs of ends, own stiffness of kept modes, c."""
        b, r = self.sizes
        return (2 + POINTS) * b * (b + 1) // 2 + r * (r + 1) // 2 + b * r


@dataclass(eq=False, repr=False)
class _Box(Record):
    low: Array
    high: Array
    coefficients: Array


@dataclass(eq=False, repr=False)
class LegTable(Record):
    """Entries of condensed legs as functions of shape; legs that are alike share one."""

    leg: LegSubstructure
    band: Band
    layouts: list[Layout]
    low: Array
    high: Array
    boxes: list[_Box] = field(default_factory=list)
    error: float = 0.0  # largest that was met at points between those of the tables

    def __call__(self, shapes: Array) -> Array:
        """Rows of entries at shapes; not a number outside the tables."""
        result = np.full((len(shapes), sum(layout.width for layout in self.layouts)), np.nan)
        for box, members in self._members(shapes):
            scaled = (2 * shapes[members] - box.low - box.high) / np.maximum(box.high - box.low, 1e-300)
            basis = np.ones((len(members), 1))
            for axis, count in enumerate(COUNTS[shapes.shape[1]]):
                powers = chebyshev.chebvander(scaled[:, axis], count - 1)
                basis = (basis[:, :, None] * powers[:, None, :]).reshape(len(members), -1)
            result[members] = basis @ box.coefficients
        return result

    def _members(self, shapes: Array) -> list[tuple[_Box, Array]]:
        """The shapes that lie in each box."""
        if shapes.shape[1] == 0:
            return [(self.boxes[0], np.arange(len(shapes)))]
        if shapes.shape[1] == 1:
            order = sorted(self.boxes, key=lambda box: float(box.low[0]))
            edges = np.array([box.low[0] for box in order[1:]])
            inside = (shapes[:, 0] >= self.low[0]) & (shapes[:, 0] <= self.high[0])
            number = np.where(inside, np.searchsorted(edges, shapes[:, 0], side="right"), -1)
            sequence = np.argsort(number, kind="stable")
            cuts = np.searchsorted(number[sequence], np.arange(len(order) + 1))
            return [(box, sequence[cuts[k] : cuts[k + 1]]) for k, box in enumerate(order) if cuts[k + 1] > cuts[k]]
        free, result = np.ones(len(shapes), dtype=bool), []
        for box in self.boxes:
            inside = free & ((shapes >= box.low) & (shapes <= box.high)).all(axis=1)
            free &= ~inside
            if inside.any():
                result.append((box, np.flatnonzero(inside)))
        return result


def build_table(leg: LegSubstructure, low: Array, high: Array, band: Band, samples: Array) -> LegTable:
    """The table of a leg over a box of shapes; `samples` are shapes within it that help to decide what is kept."""
    # the edges of the box matter most: there legs are stretched or folded
    axes = [chebyshev_points(FINE[len(low)], a, b) for a, b in zip(low, high, strict=True)]
    layouts = _layouts(leg, band, np.concatenate([samples, np.array(list(product(*axes))).reshape(-1, len(low))]))
    table = LegTable(leg, band, layouts, low, high)
    if not len(low):
        K, M = leg.matrices(np.zeros((1, 0)))
        table.boxes = [_Box(low, high, _rows(table, K, M, _references(table, K, M))[0])]
        return table
    cuts = np.linspace(low, high, FIRST[len(low)] + 1)
    steps = list(product(*(range(FIRST[len(low)]) for _ in low)))
    own = np.arange(len(low))
    waiting = [(cuts[np.array(step), own], cuts[np.array(step) + 1, own]) for step in steps]
    while waiting:
        if len(waiting) + len(table.boxes) > MOST_BOXES:
            raise NotTabulatedError(f"the tables of {leg.name} grow beyond {MOST_BOXES} boxes")
        found = _fitted(table, waiting)
        waiting = []
        for box, error in found:
            if error <= TOLERANCE:
                table.boxes.append(box)
                table.error = max(table.error, error)
                continue
            share = (box.high - box.low) / (high - low)
            axis = int(np.argmax(share))
            if share[axis] <= SMALLEST:
                raise NotTabulatedError(f"the matrices of {leg.name} are not smooth in its shape")
            middle = 0.5 * (box.low[axis] + box.high[axis])
            for side in (0, 1):
                a, b = box.low.copy(), box.high.copy()
                (b if side == 0 else a)[axis] = middle
                waiting.append((a, b))
    return table


def _some_matrices(leg: LegSubstructure, shapes: Array) -> Iterator[tuple[slice, Array, Array]]:
    """Matrices at shapes, so many at a time that they stay small."""
    size = len(leg.columns) + len(leg.port_columns)
    count = max(1, LARGEST // size**2)
    for start in range(0, len(shapes), count):
        rows = slice(start, start + count)
        yield rows, *leg.matrices(shapes[rows])


def _layouts(leg: LegSubstructure, band: Band, samples: Array) -> list[Layout]:
    """Groups of coordinates that stay apart at all samples, with the modes to keep."""
    inner = len(leg.columns)
    pattern = np.max([coupling(K, M) for _, K, M in _some_matrices(leg, samples)], axis=0)
    groups = separate(pattern, inner)
    spectra: list[list[Array]] = [[] for _ in groups]
    felt = [np.zeros(len(ends), dtype=bool) for _, ends in groups]
    for _, K, M in _some_matrices(leg, samples):
        for k, (own, ends) in enumerate(groups):
            columns = inner + ends
            if len(own):
                found = condense(K, M, inner, LegGroup(own, ends, 0), band, None)
                spectra[k].append(found["spectrum"])
            else:
                found = {"k": K[:, columns[:, None], columns], "m": M[:, columns[:, None], columns]}
            felt[k] |= _felt(found, K, M, columns)
    layouts, start = [], 0
    for (own, ends), spectrum, used in zip(groups, spectra, felt, strict=True):
        kept = kept_modes(np.concatenate(spectrum), band.top) if spectrum else 0
        layouts.append(Layout(LegGroup(own, ends, kept), ends[used], start))
        start += layouts[-1].width
    return layouts


def _felt(found: dict, K: Array, M: Array, columns: Array) -> Array:
    """Which ends feel the leg: a free hinge hands on neither force nor inertia."""
    parts = []
    for name, matrix in (("k", K), ("m", M)):
        own = np.abs(np.diagonal(found[name], axis1=1, axis2=2)).max(axis=0)
        raw = np.abs(np.diagonal(matrix, axis1=1, axis2=2)[:, columns]).max(axis=0)
        parts.append(own > UNFELT * raw)
    return parts[0] | parts[1]


def _fitted(table: LegTable, boxes: list[tuple[Array, Array]]) -> list[tuple[_Box, float]]:
    """Polynomials on boxes, and their errors at points between; all boxes in one batch."""
    width = len(table.low)
    counts = COUNTS[width]
    nodes, checks = [], []
    for low, high in boxes:
        axes = [chebyshev_points(count, a, b) for count, a, b in zip(counts, low, high, strict=True)]
        nodes.append(np.array(list(product(*axes))))
        share = (np.arange(7) + 0.5) / 7
        spread = np.stack([np.modf(share * (1 + 2.618 * axis))[0] for axis in range(width)], axis=1)
        checks.append(low + (high - low) * spread)
    middles = np.array([0.5 * (low + high) for low, high in boxes])
    count, per = len(nodes[0]), len(nodes[0]) + len(checks[0])
    shapes = np.concatenate([np.concatenate(pair) for pair in zip(nodes, checks, strict=True)])
    n = len(boxes)
    parts = [_references(table, K, M) for _, K, M in _some_matrices(table.leg, middles)]
    references = [[np.concatenate(one) for one in zip(*pairs, strict=True)] for pairs in zip(*parts, strict=True)]
    found = []
    for rows, K, M in _some_matrices(table.leg, shapes):
        box_of = np.arange(len(shapes))[rows] // per
        found.append(_rows(table, K, M, [(modes[box_of], mass[box_of]) for modes, mass in references]))
    values, sizes = (np.concatenate(part).reshape(n, per, -1) for part in zip(*found, strict=True))
    result = []
    for k, (low, high) in enumerate(boxes):
        coefficients = values[k, :count].reshape(*counts, -1)
        for axis in range(width):
            coefficients = chebyshev_coefficients(coefficients, axis)
        box = _Box(low, high, coefficients.reshape(count, -1))
        part = LegTable(table.leg, table.band, table.layouts, low, high, [box])
        error = np.abs(part(checks[k]) - values[k, count:]) / sizes[k, count:]
        result.append((box, float(error.max())))
    return result


def _references(table: LegTable, K: Array, M: Array) -> list[tuple[Array, Array]]:
    """Of each group, the kept modes and the mass at shapes that others are turned to."""
    result = []
    for layout in table.layouts:
        if not len(layout.group.inner):
            result.append((np.zeros((len(K), 0, 0)), np.zeros((len(K), 0, 0))))
            continue
        found = condense(K, M, len(table.leg.columns), layout.group, table.band, None)
        result.append((found["modes"], found["mass"]))
    return result


def _rows(table: LegTable, K: Array, M: Array, references: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Entries at shapes, and the size that errors of each are measured with."""
    inner = len(table.leg.columns)
    parts, sizes = [], []
    for layout, reference in zip(table.layouts, references, strict=True):
        found = _condensed(K, M, inner, layout, table.band, reference)
        values, size = packed(found, layout)
        parts.append(values)
        sizes.append(size)
    return np.concatenate(parts, axis=1), np.concatenate(sizes, axis=1)


def _condensed(K: Array, M: Array, inner: int, layout: Layout, band: Band, reference: tuple[Array, Array]) -> dict:
    b = np.searchsorted(layout.group.ends, layout.ends)
    if len(layout.group.inner):
        found = condense(K, M, inner, layout.group, band, reference)
        if (found["spectrum"][:, layout.group.kept :] < NEAR * band.top).any():
            raise NotTabulatedError("a discarded mode comes close to the band")
    else:
        own = layout.group.ends + inner
        zero = np.zeros((len(K), POINTS, len(own), len(own)))
        found = {"k": K[:, own[:, None], own], "m": M[:, own[:, None], own], "series": zero}
        found |= {
            "own": np.zeros((len(K), 0, 0)),
            "c": np.zeros((len(K), len(own), 0)),
            "spectrum": np.zeros((len(K), 1)),
        }
    return {
        "k": found["k"][:, b[:, None], b],
        "m": found["m"][:, b[:, None], b],
        "series": found["series"][:, :, b[:, None], b],
        "own": found["own"],
        "c": found["c"][:, b],
        "rounding": EPS * found["spectrum"][:, -1],
    }


def packed(found: dict, layout: Layout) -> tuple[Array, Array]:
    """The matrices of a group as rows of entries, and the size of each entry: root of the product of diagonals.

    Squares of frequencies have the rounding of their solver on top, which grows with the elements of a beam.
    """
    b, r = layout.sizes
    upper, own = np.triu_indices(b), np.triu_indices(r)
    count = len(found["k"])
    values, sizes = [], []

    def add(matrix: Array, index: tuple[Array, Array], size: Array) -> None:
        values.append(matrix[:, index[0], index[1]])
        sizes.append(size[:, index[0], index[1]])

    for name in ("k", "m"):
        add(found[name], upper, _size(found[name]))
    for k in range(POINTS):
        add(found["series"][:, k], upper, _size(found["series"][:, k]) + _size(found["m"]) ** 2 / _size(found["k"]))
    add(found["own"], own, _size(found["own"]) + found["rounding"][:, None, None] / TOLERANCE)
    values.append(found["c"].reshape(count, b * r))
    sizes.append(np.repeat(np.sqrt(np.diagonal(_size(found["m"]), axis1=1, axis2=2)), r, axis=1))
    return np.concatenate(values, axis=1), np.concatenate(sizes, axis=1)


def _size(matrix: Array) -> Array:
    diagonal = np.sqrt(np.abs(np.diagonal(matrix, axis1=1, axis2=2)))
    return np.maximum(diagonal[:, :, None] * diagonal[:, None, :], 1e-300)


def unpacked(row: Array, layout: Layout) -> dict[str, Array]:
    """The matrices of a group from one row of entries, over any scalar."""
    b, r = layout.sizes
    pairs, position = b * (b + 1) // 2, layout.start
    full = [_square(row[position + k * pairs : position + (k + 1) * pairs], b) for k in range(2 + POINTS)]
    position += (2 + POINTS) * pairs
    own = _square(row[position : position + r * (r + 1) // 2], r)
    position += r * (r + 1) // 2
    c = row[position : position + b * r].reshape(b, r)
    return {"k": full[0], "m": full[1], "series": np.array(full[2:]), "own": own, "c": c}


def _square(entries: Array, size: int) -> Array:
    index = np.zeros((size, size), dtype=int)
    upper = np.triu_indices(size)
    index[upper] = np.arange(len(upper[0]))
    return entries[np.maximum(index, index.T).ravel()].reshape(size, size)
