"""Dual numbers: a value with its slopes along many directions, so that the physics gives exact derivatives of itself.

One pass of any code written over any scalar gives its result and the derivatives of it along all directions, by the
chain rule: no difference of nearby numbers, no step to choose.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray


class Dual:
    """A number and its slopes."""

    __slots__ = ("slope", "value")

    def __init__(self, value: float, slope: Array) -> None:
        self.value = value
        self.slope = slope

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        if isinstance(other, (int, float)):
            return Dual(self.value + other, self.slope) if other else self
        return NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value - other.value, self.slope - other.slope)
        if isinstance(other, (int, float)):
            return Dual(self.value - other, self.slope) if other else self
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, (int, float)):
            return Dual(other - self.value, -self.slope)
        return NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, other.value * self.slope + self.value * other.slope)
        if isinstance(other, (int, float)):
            return Dual(self.value * other, other * self.slope) if other else 0.0
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            value = self.value / other.value
            return Dual(value, (self.slope - value * other.slope) / other.value)
        if isinstance(other, (int, float)):
            return Dual(self.value / other, self.slope / other)
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, (int, float)):
            value = other / self.value
            return Dual(value, (-value / self.value) * self.slope)
        return NotImplemented

    # by value alone: what NumPy's sign asks
    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, Dual) else bool(self.value == other)

    __hash__ = object.__hash__

    # names that NumPy calls on objects
    def sin(self) -> Dual:
        """Sine."""
        return Dual(math.sin(self.value), math.cos(self.value) * self.slope)

    def cos(self) -> Dual:
        """Cosine."""
        return Dual(math.cos(self.value), -math.sin(self.value) * self.slope)

    def sqrt(self) -> Dual:
        """Square root."""
        root = math.sqrt(self.value)
        return Dual(root, (0.5 / root) * self.slope)


def small_steps(directions: Array) -> Array:
    """Zeros with these slopes: row k is the slope of entry k; entries that do not move are plain zeros."""
    entries = [Dual(0.0, row) if row.any() else 0.0 for row in directions]
    result = np.empty(len(entries), dtype=object)
    result[:] = entries
    return result


def slopes(values: Any, count: int) -> Array:
    """Slopes of a vector, one row for each entry; plain numbers have none."""
    return np.array([entry.slope if isinstance(entry, Dual) else np.zeros(count) for entry in values]).reshape(
        -1, count
    )
