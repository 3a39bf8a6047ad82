"""Complex numbers over any scalar: a real and an imaginary part, each a float or a symbol.

NumPy's own complex numbers hold no symbols. Products keep zeros: a part that is zero costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pair:
    """re + i im."""

    re: Any
    im: Any

    def __add__(self, other: Any) -> Pair:
        other = pair(other)
        return Pair(self.re + other.re, self.im + other.im)

    __radd__ = __add__

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)

    def __sub__(self, other: Any) -> Pair:
        other = pair(other)
        return Pair(self.re - other.re, self.im - other.im)

    def __rsub__(self, other: Any) -> Pair:
        return -self + other

    def __mul__(self, other: Any) -> Pair:
        if not isinstance(other, Pair):
            return Pair(self.re * other, self.im * other)
        return Pair(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    __rmul__ = __mul__

    def __rtruediv__(self, other: Any) -> Pair:
        scale = other / (self.re * self.re + self.im * self.im)
        return Pair(self.re * scale, -(self.im * scale))


def pair(value: Any) -> Pair:
    """The number as a pair."""
    return value if isinstance(value, Pair) else Pair(value, 0.0)
