"""Define dual numbers for exact directional derivatives, and complex numbers as pairs of any scalar.

One pass of code over any scalar computes a result and its derivatives along all directions by the chain rule, without
differences and step sizes. The two classes nest: `Dual` has derivatives along small motions of a robot, `Sensitive`
along changes of its file. A dual number of sensitive numbers has mixed second derivatives.

A complex pair is a real and an imaginary part, each a float or a symbol, because NumPy's complex numbers cannot contain
symbols. Zero parts cost nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.spatial.scalar import Scalar

Array = np.ndarray


def _by_value(compare: Callable[[Any, Any], Any]) -> Any:
    """Make a comparison that ignores slopes."""

    def method(self: DualNumber, other: Any) -> bool:
        return bool(compare(self.value, other.value if isinstance(other, self.__class__) else other))

    return method


class DualNumber(Scalar):
    """A number and its slopes; numbers of the types in `plain` are constants."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Any, slope: Array) -> None:
        self.value = value
        self.slope = slope

    def __add__(self, other: Any) -> Any:
        if other.__class__ is self.__class__:
            return self.__class__(self.value + other.value, self.slope + other.slope)
        if isinstance(other, self.plain):
            return self.__class__(self.value + other, self.slope) if other else self
        return NotImplemented

    def __neg__(self) -> Any:
        return self.__class__(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Any:
        if other.__class__ is self.__class__:
            return self.__class__(self.value - other.value, self.slope - other.slope)
        if isinstance(other, self.plain):
            return self.__class__(self.value - other, self.slope) if other else self
        return NotImplemented

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is self.__class__:
            return self.__class__(self.value * other.value, other.value * self.slope + self.value * other.slope)
        if isinstance(other, self.plain):
            return self.__class__(self.value * other, other * self.slope) if other else 0.0
        return NotImplemented

    def __truediv__(self, other: Any) -> Any:
        if other.__class__ is self.__class__:
            value = self.value / other.value
            return self.__class__(value, (self.slope - value * other.slope) / other.value)
        if isinstance(other, self.plain):
            return self.__class__(self.value / other, self.slope / other)
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if not isinstance(other, self.plain):
            return NotImplemented
        value = other / self.value
        return self.__class__(value, (-value / self.value) * self.slope)

    def _power(self, power: float) -> Any:
        return self._mapped(self.value**power, power * self.value ** (power - 1))

    def __abs__(self) -> Any:
        return -self if self.value < 0 else self

    # by value alone, as for NumPy's sign
    __lt__, __gt__, __le__, __ge__ = map(_by_value, (operator.lt, operator.gt, operator.le, operator.ge))

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, self.__class__) else bool(self.value == other)

    __hash__ = object.__hash__

    def _mapped(self, value: Any, slope: Any) -> Any:
        """Return a function of this number, with derivative `slope`."""
        return self.__class__(value, slope * self.slope)

    # names that NumPy calls on objects
    def sin(self) -> Any:
        """Return the sine."""
        return self._mapped(_call("sin", self.value), _call("cos", self.value))

    def cos(self) -> Any:
        """Return the cosine."""
        return self._mapped(_call("cos", self.value), -_call("sin", self.value))

    def sqrt(self) -> Any:
        """Return the square root."""
        root = _call("sqrt", self.value)
        return self._mapped(root, 0.5 / root)

    def arctan2(self, other: Any) -> Any:
        """Return the angle of the point (other, self)."""
        x = other if other.__class__ is self.__class__ else self.__class__(other, 0.0 * self.slope)
        square = x.value * x.value + self.value * self.value
        return self.__class__(np.arctan2(self.value, x.value), (x.value * self.slope - self.value * x.slope) / square)

    def __repr__(self) -> str:
        return f"{self.value!r} with {len(self.slope)} slopes"


def _call(name: str, x: Any) -> Any:
    return getattr(x, name)() if isinstance(x, DualNumber) else getattr(math, name)(x)


class Sensitive(DualNumber):
    """A number and its slopes by values of the robot file; zero only if its slopes are zero too."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self.value) or bool(np.any(self.slope))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sensitive):
            return self is other
        return bool(self.value == other) and not np.any(self.slope)

    __hash__ = object.__hash__


class Dual(DualNumber):
    """A number and its slopes along motions; its parts may be sensitive numbers."""

    __slots__ = ()
    plain = (int, float, Sensitive)


def seed_slopes(directions: Array, kind: type[DualNumber] = Dual) -> Array:
    """Return zeros with given slopes: row k is the slope of entry k; entries without slope are plain zeros."""
    entries = [kind(0.0, row) if bool(np.any(row)) else 0.0 for row in directions]
    result = np.empty(len(entries), dtype=object)
    result[:] = entries
    return result


def slopes(values: Any, count: int, kind: type[DualNumber] = Dual) -> Array:
    """Return the slopes of a vector, one row per entry; plain numbers have zero slopes."""
    rows = [entry.slope if isinstance(entry, kind) else np.zeros(count) for entry in values]
    return np.array(rows).reshape(-1, count)


def without_slopes(numbers: Any, kind: type[DualNumber] = Sensitive) -> Array:
    """Return the values of an array without their slopes."""
    entries = np.asarray(numbers)
    if entries.dtype != object:
        return entries
    flat = [entry.value if isinstance(entry, kind) else entry for entry in entries.ravel()]
    return np.array(flat).reshape(entries.shape)


def dual_type(*arrays: Array) -> type[DualNumber] | None:
    """Return the outer type of dual numbers in arrays, or None."""
    kinds = {entry.__class__ for array in arrays for entry in array.flat if isinstance(entry, DualNumber)}
    return next((kind for kind in (Dual, Sensitive) if kind in kinds), None)


def slopes_last(numbers: Array, kind: type[DualNumber], count: int) -> Array:
    """Return the slopes of all entries of an array along an additional last axis."""
    return slopes(np.asarray(numbers).ravel(), count, kind).reshape(*np.shape(numbers), count)


def with_slopes(values: Array, changes: Array, kind: type[DualNumber]) -> Array:
    """Return numbers with the slopes given along the last axis of `changes`."""
    result = np.empty(np.shape(values), dtype=object)
    for index in np.ndindex(*result.shape):
        result[index] = kind(values[index] if values.dtype == object else float(values[index]), changes[index])
    return result


def slope_count(kind: type[DualNumber], *arrays: Array) -> int:
    """Return the number of slopes of the entries of arrays."""
    return next(len(entry.slope) for array in arrays for entry in array.flat if isinstance(entry, kind))


@dataclass(frozen=True)
class ComplexPair(Scalar):
    """The complex number re + i im."""

    re: Any
    im: Any

    @property
    def calls_alike(self) -> bool:
        """Whether identical groups of elements share one function, as for the parts."""
        return getattr(self.re, "calls_alike", False)

    def __add__(self, other: Any) -> ComplexPair:
        other = complex_pair(other)
        return ComplexPair(self.re + other.re, self.im + other.im)

    def __neg__(self) -> ComplexPair:
        return ComplexPair(-self.re, -self.im)

    def __mul__(self, other: Any) -> ComplexPair:
        if not isinstance(other, ComplexPair):
            return ComplexPair(self.re * other, self.im * other)
        return ComplexPair(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __rtruediv__(self, other: Any) -> ComplexPair:
        scale = other / (self.re * self.re + self.im * self.im)
        return ComplexPair(self.re * scale, -(self.im * scale))


def complex_pair(value: Any) -> ComplexPair:
    """Return a number as a complex pair."""
    return value if isinstance(value, ComplexPair) else ComplexPair(value, 0.0)
