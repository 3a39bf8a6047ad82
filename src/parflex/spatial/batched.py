"""Numbers with one value per row of a batch, so that physics over any scalar runs once for all rows.

A `Varied` number has a value in each of many parameter sets; the first is the nominal one. The nominal value decides
comparisons for all; sets with another decision are marked and built one by one. A varied number never becomes a plain
float implicitly: an operation that would drop its other values raises an error.

A `RowNumber` has a value in each row of a table. Zeros and ones of the robot stay plain numbers and cost nothing, as in
a trace. Nothing is traced or compiled, so large robots need no preparation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray

MEMORY = 3e8  # bytes of the numbers of the rows that are done together

FEWEST = 500  # of these rows: below, what Python itself takes is most

PLAIN_ROW_LIMIT = 6  # rows: numbers of many rows take as long as five to nine plain ones, by the robot


class VariedNumberError(TypeError):
    """A number that differs from design to design is used where one number is needed: designs are built one by one."""


class Decisions:
    """Which designs would have gone another way than the nominal one."""

    def __init__(self, count: int) -> None:
        self.differ = np.zeros(count, dtype=bool)

    def take(self, outcomes: Array) -> bool:
        """The nominal answer; designs with another one are marked."""
        nominal_outcome = bool(outcomes[0])
        self.differ |= outcomes != nominal_outcome
        return nominal_outcome


class Varied:
    """A number in many designs, and how it changes along some directions (directions x designs) if that is asked."""

    __slots__ = ("decisions", "slopes", "values")
    __hash__ = object.__hash__

    def __init__(self, values: Array, decisions: Decisions, slopes: Array | None = None) -> None:
        self.values = values
        self.decisions = decisions
        self.slopes = slopes

    @property
    def nominal(self) -> float:
        """The value of the first design."""
        return float(self.values[0])

    def _with(self, values: Array, slopes: Array | None) -> Varied:
        return Varied(values, self.decisions, slopes)

    def lifted(self, number: float) -> Varied:
        """A plain number as a varied one that does not vary."""
        return self._with(
            np.full_like(self.values, number), None if self.slopes is None else np.zeros_like(self.slopes)
        )

    def _mapped(self, values: Array, slope: Callable[[], Array]) -> Varied:
        """A function of this number, `slope` its derivative."""
        return self._with(values, None if self.slopes is None else slope() * self.slopes)

    # -- arithmetic ------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Varied):
            slopes = None if self.slopes is None or other.slopes is None else self.slopes + other.slopes
            return self._with(self.values + other.values, slopes)
        if isinstance(other, int | float):
            return self._with(self.values + other, self.slopes) if other else self
        return NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Varied:
        return self._with(-self.values, None if self.slopes is None else -self.slopes)

    def __pos__(self) -> Varied:
        return self

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Varied | int | float) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, int | float) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Varied):
            both_sloped = self.slopes is not None and other.slopes is not None
            slopes = other.values * self.slopes + self.values * other.slopes if both_sloped else None
            return self._with(self.values * other.values, slopes)
        if isinstance(other, int | float):
            return self._mapped(self.values * other, lambda: np.asarray(float(other))) if other else 0.0
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Varied):
            return self * (1.0 / other)
        return self * (1.0 / other) if isinstance(other, int | float) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / self.values
        self.decisions.differ |= ~np.isfinite(inverse)
        return self._mapped(other * inverse, lambda: -other * inverse * inverse) if other else 0.0

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, int | float):
            return NotImplemented
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self.values**power
            self.decisions.differ |= ~np.isfinite(values)
            return self._mapped(values, lambda: power * self.values ** (power - 1))

    def __abs__(self) -> Varied:
        return self._mapped(np.abs(self.values), lambda: np.sign(self.values))

    # -- comparisons: the nominal value decides --------------------------------------------------------

    def _compare(self, other: Any, test: Callable[[Array, Any], Any]) -> Any:
        if not isinstance(other, Varied | int | float):
            return NotImplemented
        return self.decisions.take(test(self.values, other.values if isinstance(other, Varied) else other))

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, np.less)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, np.less_equal)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, np.greater)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, np.greater_equal)

    def __eq__(self, other: object) -> Any:
        return self._compare(
            other, lambda own_values, other_values: (own_values == other_values) & ~self._slopes_differ(other)
        )

    def __ne__(self, other: object) -> Any:
        return self._compare(
            other, lambda own_values, other_values: (own_values != other_values) | self._slopes_differ(other)
        )

    def _slopes_differ(self, other: Any) -> Array:
        """Designs in which a change makes the two numbers differ: one with slopes is not zero for good."""
        if self.slopes is None:
            return np.zeros(len(self.values), dtype=bool)
        other_slopes = 0.0 if not isinstance(other, Varied) or other.slopes is None else other.slopes
        return np.any(self.slopes != other_slopes, axis=0)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def is_finite(self) -> bool:
        """Whether the nominal value is finite; designs in which that is otherwise are marked."""
        return self.decisions.take(np.isfinite(self.values))

    def __float__(self) -> float:
        raise VariedNumberError("a number that differs from design to design is used as one number")

    __int__ = __float__

    def __format__(self, form: str) -> str:
        if form:
            self.__float__()
        return str(self)

    # -- functions that NumPy calls on objects ---------------------------------------------------------

    def _function(self, function: Callable[[Array], Array], slope: Callable[[Array], Array]) -> Varied:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = function(self.values)
            self.decisions.differ |= ~np.isfinite(values)
            return self._mapped(values, lambda: slope(self.values))

    def sqrt(self) -> Varied:
        """Square root."""
        return self._function(np.sqrt, lambda x: 0.5 / np.sqrt(x))

    def sin(self) -> Varied:
        """Sine."""
        return self._function(np.sin, np.cos)

    def cos(self) -> Varied:
        """Cosine."""
        return self._function(np.cos, lambda x: -np.sin(x))

    def tan(self) -> Varied:
        """Tangent."""
        return self._function(np.tan, lambda x: 1 + np.tan(x) ** 2)

    def tanh(self) -> Varied:
        """Hyperbolic tangent."""
        return self._function(np.tanh, lambda x: 1 - np.tanh(x) ** 2)

    def arcsin(self) -> Varied:
        """Angle of a sine."""
        return self._function(np.arcsin, lambda x: 1 / np.sqrt(1 - x * x))

    def arccos(self) -> Varied:
        """Angle of a cosine."""
        return self._function(np.arccos, lambda x: -1 / np.sqrt(1 - x * x))

    def arctan(self) -> Varied:
        """Angle of a tangent."""
        return self._function(np.arctan, lambda x: 1 / (1 + x * x))

    def arctan2(self, other: Any) -> Varied:
        """Angle of the point (other, self)."""
        x = other if isinstance(other, Varied) else self.lifted(other)
        square = x.values**2 + self.values**2
        slopes = None
        if self.slopes is not None and x.slopes is not None:
            slopes = (x.values * self.slopes - self.values * x.slopes) / square
        return self._with(np.arctan2(self.values, x.values), slopes)

    def larger(self, other: Any) -> Any:
        """The larger of two numbers in each design, with the mean of both slopes where they are equal."""
        x = other if isinstance(other, Varied) else self.lifted(other)
        share = 0.5 + 0.5 * np.sign(self.values - x.values)
        both_sloped = self.slopes is not None and x.slopes is not None
        slopes = share * self.slopes + (1.0 - share) * x.slopes if both_sloped else None
        return self._with(np.maximum(self.values, x.values), slopes)

    def __repr__(self) -> str:
        return f"{self.nominal:g} in {len(self.values)} designs"


def is_varied(x: Any) -> bool:
    """Whether this number differs from design to design."""
    return isinstance(x, Varied)


def nominal(x: Any) -> float:
    """The number of the first design, where scales and shares are those of all."""
    return x.nominal if isinstance(x, Varied) else float(getattr(x, "value", x))


def function_of(name: str, plain: Callable[..., float]) -> Callable[..., Any]:
    """A function of floats that takes varied numbers too, by the method of this name."""

    def call(*arguments: Any) -> Any:
        template = next((argument for argument in arguments if isinstance(argument, Varied)), None)
        if template is None:
            return plain(*arguments)
        first = arguments[0] if isinstance(arguments[0], Varied) else template.lifted(arguments[0])
        return getattr(first, name)(*arguments[1:])

    return call


def larger(x: Any, y: Any) -> Any:
    """The larger of two numbers; which of them it is may differ from design to design."""
    if isinstance(x, Varied):
        return x.larger(y)
    return y.larger(x) if isinstance(y, Varied) else max(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two numbers; which of them it is may differ from design to design."""
    return -larger(-x, -y)


def finite(x: Any) -> bool:
    """Whether a number is finite; designs in which it is not are marked."""
    return x.is_finite() if isinstance(x, Varied) else math.isfinite(x)


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

    def solve_system(self, matrix: Array, rhs: Array) -> Array:
        """Elimination in each row, pivoted by columns: solutions, then what is left of rows that were no pivots."""
        A, B = gathered(matrix, len(self.rows)), gathered(rhs.reshape(len(matrix), -1), len(self.rows))
        n, all_rows = matrix.shape[1], np.arange(len(self.rows))
        augmented = np.concatenate([A, B], axis=2)
        for k in range(n):
            pivot = k + np.argmax(np.abs(augmented[:, k:, k]), axis=1)
            augmented[all_rows, k], augmented[all_rows, pivot] = (
                augmented[all_rows, pivot],
                augmented[all_rows, k].copy(),
            )
            augmented[:, k] /= augmented[:, k, k][:, None]
            factors = augmented[:, :, k].copy()
            factors[:, k] = 0.0
            augmented -= factors[:, :, None] * augmented[:, k][:, None, :]
        return to_row_numbers(augmented[:, :, n:]).reshape(rhs.shape)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions call methods of objects, but for `sign`, which compares: here it does not."""
        if ufunc is np.sign:
            return self.sign()
        return getattr(ufunc, method)(
            *(np.array(x, dtype=object) if isinstance(x, RowNumber) else x for x in inputs), **options
        )


def to_row_numbers(values: Array) -> Array:
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


def apply_rowwise(function: Callable[..., Array], *numbers: Array) -> Array:
    """What a function of tables, rows first, gives for numbers of all rows, or of one."""
    first = next((entry for array in numbers for entry in array.flat if isinstance(entry, RowNumber)), None)
    if first is None:
        return function(*(np.asarray(array, dtype=float)[None] for array in numbers))[0]
    return to_row_numbers(function(*(gathered(array, len(first.rows)) for array in numbers)))


def evaluate_rows(
    function: Callable[[dict[str, Array]], Mapping[str, Any]], tables: Mapping[str, Array], size: int
) -> dict[str, Array]:
    """What a function of named numbers gives in all rows of these tables; it keeps about `size` numbers at a time.

    Few rows are faster one after the other, in plain numbers.
    """
    count = len(next(iter(tables.values())))
    length, parts = max(FEWEST, int(MEMORY / (8 * size))), []
    with np.errstate(all="ignore"):  # a row that is not finite stays so
        if 0 < count <= PLAIN_ROW_LIMIT:
            rows = [function({name: values[k] for name, values in tables.items()}) for k in range(count)]
            return {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0]}
        for first in range(0, max(count, 1), length):
            chunk = {name: values[first : first + length] for name, values in tables.items()}
            results = function({name: to_row_numbers(values) for name, values in chunk.items()})
            parts.append({name: gathered(entry, min(length, count - first)) for name, entry in results.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
