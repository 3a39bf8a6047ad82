"""Numbers that represent all parameter sets by a symbol: a program then computes the numbers of the robot.

Decisions follow the nominal set. Comparisons are recorded, so sets with another decision are detected.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.parameters.design_numbers import Path, leaves, number_at, reread_file
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.spatial.batched import BatchedNumber, Decisions, VariedNumberError
from parflex.symbolic.expression import Expression, Graph

Array = np.ndarray
LARGEST_POWER = 8
HOW = ("lt", "le", "gt", "ge", "eq", "ne")  # a number compared with zero
LEAST = float(np.nextafter(0.0, 1.0))
BETWEEN = {  # where a comparison holds: between which numbers, or outside of these
    "lt": (-np.inf, -LEAST, True),
    "le": (-np.inf, 0.0, True),
    "gt": (LEAST, np.inf, True),
    "ge": (0.0, np.inf, True),
    "eq": (0.0, 0.0, True),
    "ne": (0.0, 0.0, False),
}


class TracedDecisions(Decisions):
    """What decides, as expressions: differences with how they were compared, and what must be finite.

    Where numbers are `parting`, one that is zero does not count as zero: as a key changes, it leaves zero.
    """

    def __init__(self, graph: Graph, parting: bool = False) -> None:
        super().__init__(1)
        self.graph, self.parting = graph, parting
        self.compared: dict[tuple[int, str], bool] = {}  # edge and how -> the nominal answer
        self.finite: set[int] = set()

    def compare(self, difference: Any, nominal: float, how: str) -> bool:
        """The nominal answer."""
        if self.parting and how in ("eq", "ne") and isinstance(difference, Expression):
            return how == "ne"
        answer = bool(getattr(operator, how)(nominal, 0.0))
        if isinstance(difference, Expression):
            self.compared[difference.edge, how] = answer
        return answer

    def must_be_finite(self, x: Any) -> None:
        """Designs in which this is not finite go their own way."""
        if isinstance(x, Expression):
            self.finite.add(x.edge)


def _comparison(how: str) -> Callable[[TracedNumber, Any], Any]:
    def compare(self: TracedNumber, other: Any) -> Any:
        if not isinstance(other, BatchedNumber | int | float):
            return NotImplemented
        nominal = self.nominal - _nominal(other)
        return self.decisions.compare(self.expression - _expression(other), nominal, how)

    return compare


def _operation(function: Callable[[Any, Any], Any]) -> Callable[[TracedNumber, Any], Any]:
    def operate(self: TracedNumber, other: Any) -> Any:
        if not isinstance(other, BatchedNumber | int | float):
            return NotImplemented
        return self._made(function(self.nominal, _nominal(other)), function(self.expression, _expression(other)))

    return operate


def _function(name: str) -> Callable[[TracedNumber], Any]:
    def evaluate(self: TracedNumber) -> Any:
        return self._checked(float(getattr(np, name)(self.nominal)), getattr(self.expression, name)())

    return evaluate


class TracedNumber(BatchedNumber):
    """A number by its nominal value and an expression of symbols."""

    __slots__ = ("expression",)
    __hash__ = object.__hash__
    decisions: TracedDecisions

    def __init__(self, nominal: float, expression: Expression, decisions: TracedDecisions) -> None:
        super().__init__(np.array([nominal]), decisions)
        self.expression = expression

    def _made(self, nominal: float, expression: Any) -> Any:
        """A number that follows from this one; a plain one where it does not vary."""
        if not isinstance(expression, Expression):
            return float(expression)
        return TracedNumber(nominal, expression, self.decisions)

    def lifted(self, number: float) -> TracedNumber:
        """A plain number as one that does not vary."""
        graph = self.decisions.graph
        return TracedNumber(float(number), Expression(graph, graph.edge(number)), self.decisions)

    __add__ = __radd__ = _operation(operator.add)
    __mul__ = __rmul__ = _operation(operator.mul)
    __lt__, __le__, __gt__, __ge__, __eq__, __ne__ = map(_comparison, HOW)
    sqrt, sin, cos = map(_function, ("sqrt", "sin", "cos"))

    def __neg__(self) -> Any:
        return self._made(-self.nominal, -self.expression)

    def __rtruediv__(self, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        if not other:
            return 0.0
        inverse = 1.0 / self.expression
        self.decisions.must_be_finite(inverse)
        return self._made(other / self.nominal if self.nominal else math.inf, inverse * float(other))

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, int | float):
            return NotImplemented
        twice = round(2 * abs(power))
        if twice != 2 * abs(power) or twice > 2 * LARGEST_POWER:
            raise VariedNumberError(f"a power of {power} is not traced")
        result: Any = self.sqrt() if twice % 2 else 1.0
        for _ in range(twice // 2):
            result = result * self
        return 1.0 / result if power < 0 else result

    def __abs__(self) -> Any:
        return self._made(abs(self.nominal), self.expression * self.expression.sign())

    def __bool__(self) -> bool:
        return self.decisions.compare(self.expression, self.nominal, "ne")

    def is_finite(self) -> bool:
        """Whether the nominal value is finite; designs in which it is not are marked."""
        self.decisions.must_be_finite(self.expression)
        return math.isfinite(self.nominal)

    def _checked(self, nominal: float, expression: Any) -> Any:
        self.decisions.must_be_finite(expression)
        return self._made(nominal, expression)

    def tan(self) -> Any:
        """Tangent."""
        return self.sin() / self.cos()

    def tanh(self) -> Any:
        """Hyperbolic tangent: exp(-2x) as the 64th power of a Pade quotient, which vanishes for large x.

        The quotient is off by 7e-7 z^8, z = x / 32: by less than rounding where exp(-2x) matters beside one.
        """
        z = self.expression * (1.0 / 32)
        below = 1.0 + z * (4.0 / 7 + z * (1.0 / 7 + z * (2.0 / 105 + z * (1.0 / 840))))
        power = (1.0 - z * (3.0 / 7 - z * (1.0 / 14 - z * (1.0 / 210)))) / below
        for _ in range(6):
            power = power * power
        return self._checked(math.tanh(self.nominal), (1.0 - power) / (1.0 + power))

    def arctan2(self, other: Any) -> Any:
        """Angle of the point (other, self)."""
        nominal = math.atan2(self.nominal, _nominal(other))
        return self._made(nominal, self.expression.arctan2(_expression(other)))

    def arctan(self) -> Any:
        """Angle of a tangent."""
        return self.arctan2(1.0)

    def arcsin(self) -> Any:
        """Angle of a sine."""
        return self.arctan2((1.0 - self * self).sqrt())

    def arccos(self) -> Any:
        """Angle of a cosine."""
        return (1.0 - self * self).sqrt().arctan2(self)

    def larger(self, other: Any) -> Any:
        """The larger of two numbers: half of their sum and of the size of their difference."""
        return 0.5 * (self + other + abs(self - other))


@dataclass(frozen=True, eq=False, repr=False)
class TracedFile(Record):
    """Numbers of a robot as expressions of symbols for keys, the places of each, and what the reading decided by.

    `description` is that of the file, with these numbers in it.
    """

    description: Any
    graph: Graph
    symbols: tuple[Expression, ...]
    numbers: tuple[TracedNumber, ...]
    places: tuple[tuple[Path, ...], ...]
    decisions: TracedDecisions

    @property
    def checks(self) -> dict[str, list[Expression]]:
        """What tells designs that are read otherwise: what was compared with zero, and what must be finite."""
        decided = self.decisions
        return {
            "compared": [Expression(self.graph, edge) for edge, _ in decided.compared],
            "finite": [Expression(self.graph, edge) for edge in sorted(decided.finite)],
        }

    @property
    def compared(self) -> tuple[tuple[str, bool], ...]:
        """How it was compared, and the answer."""
        return tuple((how, bool(answer)) for (_, how), answer in self.decisions.compared.items())


def same_reading(compared: Sequence[tuple[str, bool]], values: Array) -> Array:
    """Return in which rows all that was compared with zero comes out as where the file was traced."""
    low, high, inside = np.array([BETWEEN[how] for how, _ in compared]).reshape(-1, 3).T
    expected = (inside > 0) == np.array([answer for _, answer in compared], dtype=bool)
    return (~np.isnan(values) & (((low <= values) & (values <= high)) == expected)).all(axis=1)


def trace_file(robot: Robot, keys: Sequence[str], parting: bool = False) -> TracedFile:
    """Read the file of a robot with symbols at keys.

    Numbers are `parting` as in `TracedDecisions`. Raises `VariedNumberError` where a number cannot be traced.
    """
    graph = Graph()
    decisions = TracedDecisions(graph, parting)
    symbols = tuple(graph.symbol(f"key[{k}]") for k in range(len(keys)))
    settings = {key: TracedNumber(number_at(robot, key), x, decisions) for key, x in zip(keys, symbols, strict=True)}
    traced: dict[int, tuple[TracedNumber, list[Path]]] = {}
    try:
        description, parts = reread_file(robot, settings)
    except (TypeError, ZeroDivisionError) as error:  # a number is taken as a plain one
        raise VariedNumberError(str(error)) from None
    for name, part in parts.items():
        for place, x in leaves(part):
            if isinstance(x, TracedNumber):
                traced.setdefault(x.expression.edge, (x, []))[1].append((name, *place))
            elif isinstance(x, BatchedNumber):
                raise VariedNumberError("a number is not traced")
    numbers, places = tuple(x for x, _ in traced.values()), tuple(tuple(paths) for _, paths in traced.values())
    return TracedFile(description, graph, symbols, numbers, places, decisions)


def _nominal(x: Any) -> float:
    return x.nominal if isinstance(x, BatchedNumber) else float(x)


def _expression(x: Any) -> Any:
    return x.expression if isinstance(x, TracedNumber) else float(x)
