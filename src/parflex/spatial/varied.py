"""Numbers that take another value in each of many designs: code over any scalar then builds all of them at once.

The first value is the nominal one. Where code decides by a comparison, the nominal value decides for all; designs in
which the comparison comes out otherwise are marked, so that they can be built one by one. A varied number never
becomes a plain float by itself: what would drop its other values raises an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


class OneNumberError(TypeError):
    """A number that differs from design to design is used where one number is needed: designs are built one by one."""


class Decisions:
    """Which designs would have gone another way than the nominal one."""

    def __init__(self, count: int) -> None:
        self.differ = np.zeros(count, dtype=bool)

    def take(self, answers: Array) -> bool:
        """The nominal answer; designs with another one are marked."""
        first = bool(answers[0])
        self.differ |= answers != first
        return first


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
            both = self.slopes is not None and other.slopes is not None
            slopes = other.values * self.slopes + self.values * other.slopes if both else None
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
        return self._compare(other, lambda mine, its: (mine == its) & ~self._parting(other))

    def __ne__(self, other: object) -> Any:
        return self._compare(other, lambda mine, its: (mine != its) | self._parting(other))

    def _parting(self, other: Any) -> Array:
        """Designs in which a change makes the two numbers differ: one with slopes is not zero for good."""
        if self.slopes is None:
            return np.zeros(len(self.values), dtype=bool)
        its = 0.0 if not isinstance(other, Varied) or other.slopes is None else other.slopes
        return np.any(self.slopes != its, axis=0)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def is_finite(self) -> bool:
        """Whether the nominal value is finite; designs in which that is otherwise are marked."""
        return self.decisions.take(np.isfinite(self.values))

    def __float__(self) -> float:
        raise OneNumberError("a number that differs from design to design is used as one number")

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
        both = self.slopes is not None and x.slopes is not None
        slopes = share * self.slopes + (1.0 - share) * x.slopes if both else None
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
        like = next((argument for argument in arguments if isinstance(argument, Varied)), None)
        if like is None:
            return plain(*arguments)
        first = arguments[0] if isinstance(arguments[0], Varied) else like.lifted(arguments[0])
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
