"""Elements between two points for the oracles: tension, energy and rows, differentiated automatically."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.interpolate import PchipInterpolator, PPoly

from .expressions import number
from .tables import Table

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class PointToPoint:
    """What acts between two frames, tension positive."""

    name: str
    kind: str
    first: str
    second: str
    stiffness: float = 0.0
    rest: float | None = None
    damping: float = 0.0
    by_length: Points = ()
    by_speed: Points = ()


def read_element(entry: Table, names: Mapping[str, float], platform: str) -> PointToPoint:
    """An entry of the file."""
    first, second = (platform if name == "platform" else name for name in entry["between"])
    table = entry.get("table", {})
    table = {"length": table} if isinstance(table, list) else table
    lists = [tuple((number(a, names), number(b, names)) for a, b in table.get(key, [])) for key in ("length", "speed")]
    rest = number(entry["rest"], names) if "rest" in entry else None
    stiffness, damping = (number(entry.get(key, 0), names) for key in ("stiffness", "damping"))
    wound = entry["kind"] == "cable" and "stiffness" not in entry  # its length is a coordinate, as that of a strut
    kind = "strut" if wound else entry["kind"]
    return PointToPoint(entry["name"], kind, first, second, stiffness, rest, damping, *lists)


def length(element: PointToPoint, transforms: Mapping[str, ca.SX]) -> ca.SX:
    return ca.norm_2(transforms[element.second][:3, 3] - transforms[element.first][:3, 3])


def tension(element: PointToPoint, long: ca.SX, rate: ca.SX) -> ca.SX:
    """Tension of everything but rods and struts."""
    stretch = long - (element.rest or 0.0)
    if element.kind == "cable":
        return ca.if_else(stretch > 0, ca.fmax(element.stiffness * stretch + element.damping * rate, 0), 0)
    found = element.damping * rate + element.stiffness * stretch
    if element.by_length:
        found += _piecewise(element.by_length, long, 0)
    if element.by_speed:
        found += _piecewise(element.by_speed, rate, 0)
    return found


def energy(element: PointToPoint, long: ca.SX) -> ca.SX:
    """Stored energy; of a table from its first point."""
    stretch = long - (element.rest or 0.0)
    if element.kind == "cable":
        return element.stiffness * ca.fmax(stretch, 0) ** 2 / 2
    found = element.stiffness * stretch**2 / 2
    return found + (_piecewise(element.by_length, long, 1) if element.by_length else 0)


def _piecewise(points: Points, x: ca.SX, integrals: int) -> ca.SX:
    """Monotone cubic interpolation of SciPy, straight on outside, or its integral from the first point."""
    xs, ys = (np.array(column) for column in zip(*points, strict=True))
    if len(xs) == 2:
        inner: PPoly = PPoly(np.array([[(ys[1] - ys[0]) / (xs[1] - xs[0])], [ys[0]]]), xs)
    else:
        inner = PchipInterpolator(xs, ys)
    slopes = [float(inner.derivative()(end)) for end in (xs[0], xs[-1])]
    if integrals:
        inner = inner.antiderivative()
        outside = [
            ys[k] * (x - xs[k]) + slope * (x - xs[k]) ** 2 / 2 + float(inner(xs[k]))
            for k, slope in zip((0, -1), slopes, strict=True)
        ]
    else:
        outside = [ys[k] + slope * (x - xs[k]) for k, slope in zip((0, -1), slopes, strict=True)]
    found = outside[1]
    for k in reversed(range(len(xs) - 1)):
        piece = ca.SX(0)
        for c in inner.c[:, k]:
            piece = piece * (x - xs[k]) + float(c)
        found = ca.if_else(x < xs[k + 1], piece, found)
    return ca.if_else(x < xs[0], outside[0], found)
