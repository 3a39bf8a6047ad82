"""Springs, dampers, cables and forces by table between two points: the tension for a length and its rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.records import Record
from parflex.spatial.linear import scalar_type
from parflex.tree.contacts import Contact

if TYPE_CHECKING:
    from parflex.tree.inner_places import Place

Array = np.ndarray


@dataclass(frozen=True)
class Curve:
    """A function by points: cubic in between with continuous slope, straight on beyond the first and last point.

    Slopes at the points are weighted harmonic means, zero at extrema: no swing that the points do not have. The
    function is a sum over the pieces, each constant outside its own, so that symbols need no case distinction.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]

    @property
    def slopes(self) -> Array:
        """At the points."""
        h, secants = np.diff(self.x), np.diff(self.y) / np.diff(self.x)
        if len(secants) == 1:
            return np.repeat(secants, 2)
        slopes: Array = np.zeros(len(self.x), dtype=scalar_type(secants, h))
        slopes[0] = _end_slope(h[0], h[1], secants[0], secants[1])
        slopes[-1] = _end_slope(h[-1], h[-2], secants[-1], secants[-2])
        for k in range(1, len(self.x) - 1):
            one, two = secants[k - 1], secants[k]
            if one * two > 0:
                w1, w2 = 2 * h[k] + h[k - 1], h[k] + 2 * h[k - 1]
                slopes[k] = (w1 + w2) / (w1 / one + w2 / two)
        return slopes

    def _pieces(self, x: Any) -> list[tuple[Any, float, float, tuple[float, float, float]]]:
        """Of each piece: how far x is in it (0 to 1), its width and rise, and the cubic as a t + b t^2 + c t^3."""
        m, found = self.slopes.tolist(), []
        for k in range(len(self.x) - 1):
            h, rise = self.x[k + 1] - self.x[k], self.y[k + 1] - self.y[k]
            t = (_positive(x - self.x[k]) - _positive(x - self.x[k + 1])) / h
            a, b = h * m[k], h * m[k + 1]
            found.append((t, h, rise, (a, 3 * rise - 2 * a - b, a + b - 2 * rise)))
        return found

    def value(self, x: Any) -> Any:
        """The function, over any scalar."""
        m = self.slopes.tolist()
        total = self.y[0] - m[0] * _positive(self.x[0] - x) + m[-1] * _positive(x - self.x[-1])
        for t, _, _, (a, b, c) in self._pieces(x):
            total = total + t * (a + t * (b + t * c))
        return total

    def integral(self, x: Any) -> Any:
        """Its integral from the first point."""
        m, below, above = self.slopes.tolist(), _positive(self.x[0] - x), _positive(x - self.x[-1])
        total = self.y[0] * (x - self.x[0]) + 0.5 * m[0] * (below * below) + 0.5 * m[-1] * (above * above)
        for k, (t, h, rise, (a, b, c)) in enumerate(self._pieces(x)):
            total = total + h * (t * t * (a / 2 + t * (b / 3 + t * (c / 4)))) + rise * _positive(x - self.x[k + 1])
        return total


@dataclass(frozen=True, eq=False, repr=False)
class PointElement(Record):
    """A force along the line between two places, by its length and rate; tension is positive, theory (44)."""

    name: str
    kind: str
    first: Place = field(repr=False)
    second: Place = field(repr=False)
    stiffness: Any = 0.0
    rest: Any = 0.0
    damping: Any = 0.0
    curve: Curve | None = None  # tension over length, in the place of stiffness and rest
    speed_curve: Curve | None = None  # tension over rate of length, added
    acts: bool = True  # else it is there, but left out
    contact: Contact | None = None  # of a cable in a run, which finds when it becomes taut

    @property
    def pulls_only(self) -> bool:
        """Whether it is slack below its rest length and never pushes."""
        return self.kind == "cable"

    @property
    def smooth_at_zero(self) -> bool:
        """Whether the force is known where the two points meet: a plain spring that rests there."""
        loose = self.curve is None and self.speed_curve is None and not self.pulls_only
        return not self.acts or (loose and self.rest == 0 and self.damping == 0)

    def stored(self, length: Any) -> Any:
        """The part of the tension that comes from energy."""
        if not self.acts:
            return 0.0
        if self.curve is not None:
            return self.curve.value(length)
        return self.stiffness * (_positive(length - self.rest) if self.pulls_only else length - self.rest)

    def tension(self, length: Any, rate: Any) -> Any:
        """Tension at a length, while it grows at this rate."""
        found = self.stored(length)
        if not self.acts:
            return found
        if self.contact is not None and self.contact.gated_now:
            return self.contact.force(length - self.rest, rate)
        if self.damping != 0:
            found = found + self.damping * rate
        if self.speed_curve is not None:
            found = found + self.speed_curve.value(rate)
        if self.pulls_only and self.damping != 0:  # a taut cable may not push while it shortens
            taut = (1 + np.sign(length - self.rest)) / 2
            found = taut * _positive(found)
        return found

    def energy(self, length: Any) -> Any:
        """What is stored at a length; of a table counted from its first point."""
        if not self.acts:
            return 0.0
        if self.curve is not None:
            return self.curve.integral(length)
        stretch = _positive(length - self.rest) if self.pulls_only else length - self.rest
        return 0.5 * self.stiffness * (stretch * stretch)

    def lost_power(self, length: Any, rate: Any) -> Any:
        """Power that the part by speed takes; negative where it drives."""
        return (self.tension(length, rate) - self.stored(length)) * rate

    def slack(self, length: float) -> bool:
        """Whether it is a cable that is too long to pull."""
        return self.acts and self.pulls_only and length < float(self.rest)

    def as_spring(self) -> PointElement:
        """The same, pushing where it is short."""
        return replace(self, kind="spring")

    def undamped(self) -> PointElement:
        """The same without the part by speed."""
        return replace(self, damping=0.0, speed_curve=None)

    def idle(self) -> PointElement:
        """The same, left out."""
        return replace(self, acts=False)

    def numbers_in(self) -> dict[str, float]:
        """Numbers in which robots of a family may differ; not tables, which shape the program."""
        shape = (self.kind, self.acts, self.curve, self.speed_curve, bool(self.damping), bool(self.rest))
        return {f"element[{self.name},{shape},{key}]": float(getattr(self, key)) for key in _NUMBERS}

    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> PointElement:
        """The same with symbols in the place of some of these numbers, between other places."""
        words = zip(_NUMBERS, self.numbers_in(), strict=True)
        values = {key: symbols.get(word, getattr(self, key)) for key, word in words}
        return replace(self, first=end(self.first), second=end(self.second), **values)


_NUMBERS = ("stiffness", "rest", "damping")


def curve_of(points: Sequence[Sequence[float]]) -> Curve | None:
    """The curve through points of the file; None where there are none."""
    return Curve(tuple(p[0] for p in points), tuple(p[1] for p in points)) if points else None


def _end_slope(h0: float, h1: float, own: float, next_one: float) -> float:
    """Slope at an end by three points, kept from turning or overshooting."""
    slope = ((2 * h0 + h1) * own - h0 * next_one) / (h0 + h1)
    if slope * own <= 0:
        return 0.0
    return 3 * own if own * next_one < 0 and abs(slope) > 3 * abs(own) else slope


def _positive(value: Any) -> Any:
    """The value where it is positive, else zero."""
    return (value + value * np.sign(value)) / 2
