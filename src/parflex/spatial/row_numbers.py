"""Numbers of many rows at once: the physics, written over any scalar, runs once for all rows of a table.

Zeros and ones of the robot stay plain numbers and cost nothing, as in a trace; but nothing is traced or compiled, so
that large robots are ready at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray
MEMORY = 3e8  # bytes of the numbers of the rows that are done together
FEWEST = 500  # of these rows: below, what Python itself takes is most
SINGLY = 6  # rows: numbers of many rows take as long as five to nine plain ones, by the robot


class RowNumber:
    """One number in each of many rows: NumPy's object arrays call its operators and its `sin`, `cos`, `sqrt`."""

    __slots__ = ("rows",)
    solves_whole = True  # systems are solved at once: blocks of them would save no time

    def __init__(self, rows: Array) -> None:
        self.rows = rows

    def __add__(self, other: Any) -> Any:
        if other.__class__ is RowNumber:
            return RowNumber(self.rows + other.rows)
        if other.__class__ is np.ndarray:
            return NotImplemented  # NumPy does it entry by entry
        return RowNumber(self.rows + other) if other != 0 else self

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if other.__class__ is RowNumber:
            return RowNumber(self.rows - other.rows)
        if other.__class__ is np.ndarray:
            return NotImplemented
        return RowNumber(self.rows - other) if other != 0 else self

    def __rsub__(self, other: Any) -> Any:
        return RowNumber(other - self.rows) if other != 0 else RowNumber(-self.rows)

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is RowNumber:
            return RowNumber(self.rows * other.rows)
        if other.__class__ is np.ndarray:
            return NotImplemented
        if other == 0:
            return 0.0
        return self if other == 1 else RowNumber(self.rows * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if other.__class__ is np.ndarray:
            return NotImplemented
        return RowNumber(self.rows / (other.rows if other.__class__ is RowNumber else other))

    def __rtruediv__(self, other: Any) -> Any:
        return RowNumber(other / self.rows) if other != 0 else 0.0

    def __pow__(self, power: Any) -> Any:
        return self * self if power == 2 else RowNumber(self.rows**power)

    def __neg__(self) -> RowNumber:
        return RowNumber(-self.rows)

    def __pos__(self) -> RowNumber:
        return self

    def sin(self) -> RowNumber:
        """Sine."""
        return RowNumber(np.sin(self.rows))

    def cos(self) -> RowNumber:
        """Cosine."""
        return RowNumber(np.cos(self.rows))

    def sqrt(self) -> RowNumber:
        """Square root."""
        return RowNumber(np.sqrt(self.rows))

    def sign(self) -> RowNumber:
        """-1, 0 or 1."""
        return RowNumber(np.sign(self.rows))

    def arctan2(self, other: Any) -> RowNumber:
        """Angle of the point (other, self)."""
        return RowNumber(np.arctan2(self.rows, getattr(other, "rows", other)))

    def hold(self) -> RowNumber:
        """The same: what is set up once from parameters has a name of its own in programs alone."""
        return self

    def solve_system(self, matrix: Array, right: Array) -> Array:
        """Elimination in each row, pivoted by columns: solutions, then what is left of rows that were no pivots."""
        A, B = gathered(matrix, len(self.rows)), gathered(right.reshape(len(matrix), -1), len(self.rows))
        n, every = matrix.shape[1], np.arange(len(self.rows))
        work = np.concatenate([A, B], axis=2)
        for k in range(n):
            pivot = k + np.argmax(np.abs(work[:, k:, k]), axis=1)
            work[every, k], work[every, pivot] = work[every, pivot], work[every, k].copy()
            work[:, k] /= work[:, k, k][:, None]
            factors = work[:, :, k].copy()
            factors[:, k] = 0.0
            work -= factors[:, :, None] * work[:, k][:, None, :]
        return scattered(work[:, :, n:]).reshape(right.shape)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions call methods of objects, but for `sign`, which compares: here it does not."""
        if ufunc is np.sign:
            return self.sign()
        return getattr(ufunc, method)(
            *(np.array(x, dtype=object) if isinstance(x, RowNumber) else x for x in inputs), **options
        )


def scattered(values: Array) -> Array:
    """Entries of a table, rows first, as numbers of all rows."""
    result = np.empty(values.shape[1:], dtype=object)
    for index in np.ndindex(*result.shape):
        result[index] = RowNumber(np.ascontiguousarray(values[(slice(None), *index)]))
    return result


def gathered(numbers: Any, rows: int) -> Array:
    """A table, rows first, of numbers of all rows; plain numbers are the same in each."""
    entries = np.asarray(numbers)
    result = np.empty((rows, *entries.shape))
    for index in np.ndindex(*entries.shape):
        entry = entries[index]
        result[(slice(None), *index)] = entry.rows if isinstance(entry, RowNumber) else entry
    return result


def in_all_rows(function: Callable[..., Array], *numbers: Array) -> Array:
    """What a function of tables, rows first, gives for numbers of all rows, or of one."""
    first = next((entry for array in numbers for entry in array.flat if isinstance(entry, RowNumber)), None)
    if first is None:
        return function(*(np.asarray(array, dtype=float)[None] for array in numbers))[0]
    return scattered(function(*(gathered(array, len(first.rows)) for array in numbers)))


def over_rows(
    function: Callable[[dict[str, Array]], Mapping[str, Any]], tables: Mapping[str, Array], size: int
) -> dict[str, Array]:
    """What a function of named numbers gives in all rows of these tables; it keeps about `size` numbers at a time.

    Few rows are faster one after the other, in plain numbers.
    """
    count = len(next(iter(tables.values())))
    length, parts = max(FEWEST, int(MEMORY / (8 * size))), []
    with np.errstate(all="ignore"):  # a row that is not finite stays so
        if 0 < count <= SINGLY:
            rows = [function({name: values[k] for name, values in tables.items()}) for k in range(count)]
            return {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0]}
        for first in range(0, max(count, 1), length):
            own = {name: values[first : first + length] for name, values in tables.items()}
            found = function({name: scattered(values) for name, values in own.items()})
            parts.append({name: gathered(entry, min(length, count - first)) for name, entry in found.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
