"""Define batched numbers, which have one value per row, so that physics over any scalar evaluates all rows at once.

Rows are instants of a run, poses, or designs of a robot. Zeros and ones of the robot stay plain numbers and cost
nothing, as in a trace. Nothing is traced or compiled, so large robots need no preparation.

Batched numbers over designs share `Decisions`: the first design is nominal, and its value decides comparisons for all
designs. Designs with a different decision are marked and built separately. A batched number never becomes a float
implicitly: an operation that would drop the other values raises an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partialmethod
from typing import Any

import numpy as np

from parflex.spatial.scalar import Scalar

Array = np.ndarray
MEMORY = 3e8  # bytes of rows that are evaluated together
FEWEST = 500  # rows evaluated together at least: below, the overhead of Python dominates
PLAIN_ROW_LIMIT = 6  # rows up to which plain numbers are faster: a batched number costs five to nine plain ones


class VariedNumberError(TypeError):
    """A batched number over designs is used where a single number is required: build these designs separately."""


class Decisions:
    """Designs whose comparisons differ from those of the nominal design."""

    def __init__(self, count: int) -> None:
        self.differ = np.zeros(count, dtype=bool)

    def take(self, outcomes: Array) -> bool:
        """Return the nominal outcome and mark designs with another outcome."""
        nominal_outcome = bool(outcomes[0])
        self.differ |= outcomes != nominal_outcome
        return nominal_outcome


def _function(name: str, function: Callable[[Array], Array]) -> Any:
    """Make a method that applies a function of one number to each row and marks designs with non-finite results."""

    def call(self: BatchedNumber) -> BatchedNumber:
        with np.errstate(invalid="ignore", divide="ignore"):
            return BatchedNumber(self._finite(function(self.values)), self.decisions)

    call.__name__, call.__doc__ = name, f"Return the {name} in each row."
    return call


class BatchedNumber(Scalar):
    """A number with one value per row."""

    __slots__ = ("decisions", "values")

    def __init__(self, values: Array, decisions: Decisions | None = None) -> None:
        self.values = values
        self.decisions = decisions

    @property
    def nominal(self) -> float:
        """The value of the first design."""
        return float(self.values[0])

    def lifted(self, number: float) -> BatchedNumber:
        """Return a plain number as a batched number with equal values."""
        return BatchedNumber(np.full_like(self.values, number), self.decisions)

    def _finite(self, values: Array) -> Array:
        """Return the values, and mark designs in which they are not finite."""
        if self.decisions is not None:
            self.decisions.differ |= ~np.isfinite(values)
        return values

    def __add__(self, other: Any) -> Any:
        if isinstance(other, BatchedNumber):
            return BatchedNumber(self.values + other.values, self.decisions)
        if isinstance(other, self.plain):
            return BatchedNumber(self.values + other, self.decisions) if other else self
        return NotImplemented

    def __neg__(self) -> BatchedNumber:
        return BatchedNumber(-self.values, self.decisions)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, BatchedNumber):
            return BatchedNumber(self.values * other.values, self.decisions)
        if isinstance(other, self.plain):
            return (self if other == 1 else BatchedNumber(self.values * other, self.decisions)) if other else 0.0
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if not isinstance(other, self.plain):
            return NotImplemented
        with np.errstate(divide="ignore", invalid="ignore"):
            return BatchedNumber(self._finite(other / self.values), self.decisions) if other else 0.0

    def _power(self, power: float) -> BatchedNumber:
        return _function("power", lambda x: x**power)(self)

    def __abs__(self) -> BatchedNumber:
        return BatchedNumber(np.abs(self.values), self.decisions)

    def _compare(self, other: Any, test: Callable[[Array, Any], Any]) -> Any:
        """Return the nominal outcome of a comparison; raise for rows that are not designs."""
        if self.decisions is None or not isinstance(other, BatchedNumber | int | float):
            return NotImplemented
        return self.decisions.take(test(self.values, other.values if isinstance(other, BatchedNumber) else other))

    __lt__ = partialmethod(_compare, test=np.less)
    __le__ = partialmethod(_compare, test=np.less_equal)
    __gt__ = partialmethod(_compare, test=np.greater)
    __ge__ = partialmethod(_compare, test=np.greater_equal)

    __eq__ = partialmethod(_compare, test=np.equal)
    __ne__ = partialmethod(_compare, test=np.not_equal)
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self != 0)

    def is_finite(self) -> bool:
        """Return whether the nominal value is finite, and mark designs with another outcome."""
        return self.decisions is None or self.decisions.take(np.isfinite(self.values))

    def __float__(self) -> float:
        raise VariedNumberError("a number that differs from design to design is used as one number")

    __int__ = __float__

    def __format__(self, form: str) -> str:
        if form:
            self.__float__()
        return str(self)

    def __repr__(self) -> str:
        return f"{self.nominal:g} in {len(self.values)} rows"

    sqrt = _function("square root", np.sqrt)
    sin = _function("sine", np.sin)
    cos = _function("cosine", np.cos)
    tan = _function("tangent", np.tan)
    tanh = _function("hyperbolic tangent", np.tanh)
    arcsin = _function("angle of a sine", np.arcsin)
    arccos = _function("angle of a cosine", np.arccos)
    arctan = _function("angle of a tangent", np.arctan)

    def _with_other(self, other: Any, function: Callable[[Array, Array], Array]) -> BatchedNumber:
        """Apply a function of two numbers."""
        x = other if isinstance(other, BatchedNumber) else self.lifted(other)
        return BatchedNumber(function(self.values, x.values), self.decisions)

    def arctan2(self, other: Any) -> Any:
        """Return the angle of the point (other, self)."""
        return self._with_other(other, np.arctan2)

    def larger(self, other: Any) -> Any:
        """Return the larger of two numbers in each row."""
        return self._with_other(other, np.maximum)

    def sign(self) -> Any:
        """Return -1, 0 or 1 in each row; in designs as the nominal design decides."""
        if self.decisions is None:
            return BatchedNumber(np.sign(self.values))
        return -1 if self < 0 else 1 if self > 0 else 0

    def hold(self) -> BatchedNumber:
        """Return this number; only symbols name intermediate values that are set up once from parameters."""
        return self

    @property
    def solves_whole(self) -> bool:
        """Whether linear systems are solved without splitting them into blocks; not so for designs."""
        return self.decisions is None

    def solve_system(self, matrix: Array, rhs: Array) -> Array:
        """Eliminate in each row with column pivoting; return solutions, then the reduced other rows."""
        if self.decisions is not None:
            self.__float__()
        A, B = gathered(matrix, len(self.values)), gathered(rhs.reshape(len(matrix), -1), len(self.values))
        n, rows = matrix.shape[1], np.arange(len(self.values))
        augmented = np.concatenate([A, B], axis=2)
        for k in range(n):
            pivot = k + np.argmax(np.abs(augmented[:, k:, k]), axis=1)
            augmented[rows, k], augmented[rows, pivot] = augmented[rows, pivot], augmented[rows, k].copy()
            augmented[:, k] /= augmented[:, k, k][:, None]
            factors = augmented[:, :, k].copy()
            factors[:, k] = 0.0
            augmented -= factors[:, :, None] * augmented[:, k][:, None, :]
        return batched_entries(augmented[:, :, n:]).reshape(rhs.shape)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute NumPy's `sign` without comparisons; other functions call methods of the entries."""
        if ufunc is np.sign:
            return self.sign()
        objects = (np.array(x, dtype=object) if isinstance(x, BatchedNumber) else x for x in inputs)
        return getattr(ufunc, method)(*objects, **options)


def is_varied(x: Any) -> bool:
    """Return whether a number differs from row to row."""
    return isinstance(x, BatchedNumber)


def is_batched(array: Array) -> bool:
    """Return whether an array has batched numbers over rows that are not designs."""
    return array.dtype == object and any(isinstance(x, BatchedNumber) and x.decisions is None for x in array.flat)


def nominal(x: Any) -> float:
    """Return the value of the first design, which sets scales for all designs."""
    return x.nominal if isinstance(x, BatchedNumber) else float(getattr(x, "value", x))


def function_of(name: str, plain: Callable[..., float]) -> Callable[..., Any]:
    """Make a function of floats accept batched numbers, through their method `name`."""

    def call(*arguments: Any) -> Any:
        template = next((argument for argument in arguments if isinstance(argument, BatchedNumber)), None)
        if template is None:
            return plain(*arguments)
        first = arguments[0] if isinstance(arguments[0], BatchedNumber) else template.lifted(arguments[0])
        return getattr(first, name)(*arguments[1:])

    return call


larger = function_of("larger", max)  # of two numbers; which of them it is may differ from row to row


def smaller(x: Any, y: Any) -> Any:
    """Return the smaller of two numbers in each row."""
    return -larger(-x, -y)


def finite(x: Any) -> bool:
    """Return whether a number is finite, and mark designs in which it is not."""
    return x.is_finite() if isinstance(x, BatchedNumber) else math.isfinite(x)


def batched_entries(values: Array) -> Array:
    """Return the entries of a table (rows first) as batched numbers."""
    result = np.empty(values.shape[1:], dtype=object)
    for index in np.ndindex(*result.shape):
        result[index] = BatchedNumber(np.ascontiguousarray(values[(slice(None), *index)]))
    return result


def gathered(numbers: Any, rows: int) -> Array:
    """Return a table (rows first) of batched numbers; plain numbers repeat in each row."""
    entries = np.asarray(numbers)
    result = np.empty((rows, *entries.shape))
    for index in np.ndindex(*entries.shape):
        entry = entries[index]
        result[(slice(None), *index)] = entry.values if isinstance(entry, BatchedNumber) else entry
    return result


def apply_rowwise(function: Callable[..., Array], *numbers: Array) -> Array:
    """Apply a function of tables (rows first) to batched or plain numbers."""
    first = next((entry for array in numbers for entry in array.flat if isinstance(entry, BatchedNumber)), None)
    if first is None:
        return function(*(np.asarray(array, dtype=float)[None] for array in numbers))[0]
    return batched_entries(function(*(gathered(array, len(first.values)) for array in numbers)))


def evaluate_rows(
    function: Callable[[dict[str, Array]], Mapping[str, Any]], tables: Mapping[str, Array], size: int
) -> dict[str, Array]:
    """Evaluate a function of named numbers in all rows of tables, storing about `size` numbers at a time.

    Few rows are evaluated one by one in plain numbers, which is faster.
    """
    count = len(next(iter(tables.values())))
    length, parts = max(FEWEST, int(MEMORY / (8 * size))), []
    with np.errstate(all="ignore"):  # a row that is not finite stays so
        if 0 < count <= PLAIN_ROW_LIMIT:
            rows = [function({name: values[k] for name, values in tables.items()}) for k in range(count)]
            return {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0]}
        for first in range(0, max(count, 1), length):
            chunk = {name: values[first : first + length] for name, values in tables.items()}
            results = function({name: batched_entries(values) for name, values in chunk.items()})
            parts.append({name: gathered(entry, min(length, count - first)) for name, entry in results.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
