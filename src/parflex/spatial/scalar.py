"""Define the operators that dual, batched and complex numbers share.

A scalar type defines `__add__`, `__neg__`, `__mul__` and `__rtruediv__`, and the functions that NumPy calls on objects
(`sin`, `cos`, `sqrt`, `arctan2`) if the physics needs them; all other operators follow.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np


class Scalar:
    """A number for physics over any scalar; numbers of the types in `plain` are constants."""

    __slots__ = ()
    plain: ClassVar[tuple[type, ...]] = (int, float)

    def __add__(self, other: Any) -> Any:
        return NotImplemented

    def __neg__(self) -> Any:
        return NotImplemented

    def __mul__(self, other: Any) -> Any:
        return NotImplemented

    def __pos__(self) -> Any:
        return self

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other)

    def __rmul__(self, other: Any) -> Any:
        return self.__mul__(other)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        return self * (1.0 / other)

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, int | float):
            return NotImplemented
        return self * self if power == 2 else self._power(power)

    def _power(self, power: float) -> Any:
        return NotImplemented

    def hypot(self, other: Any) -> Any:
        """Return the length of the vector of both."""
        return np.sqrt(self * self + other * other)
