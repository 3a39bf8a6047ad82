"""Where the nodes of a beam are: at the ends of equal elements, and wherever something acts on it beside its inertia.

Cubic shapes are exact where loads act at nodes alone. What is mounted on a beam, or pulls at it, between two nodes
would feel an element that is too stiff: the deflection of a beam clamped at both nodes is missing. So such places are
nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from parflex.errors import RobotFileError
from parflex.robotfile import schema
from parflex.robotfile.values import position_along_beam, split_place

MOST_ELEMENTS = 32  # equal ones, into which a beam is cut so that its nodes are where something is mounted
SAME_NODE = Fraction(1, 10**9)  # of the length of a beam
# of an element: so near to a node, a beam clamped at both nodes deflects by less than 1e-7 of what it does in its
# middle, and a node of its own would need an element that is 1e9 times as stiff as the others
SHORT = Fraction(1, 1000)


@dataclass(frozen=True)
class BeamMesh:
    """Nodes of a beam from root to tip, as shares of its length and by name.

    `tied` are those at places where something acts, by place; `acting` also those hardly beside such a place.
    """

    shares: tuple[Fraction, ...]
    names: tuple[str, ...]
    tied: Mapping[str, int]
    acting: frozenset[int]

    def counts(self) -> list[int | float]:
        """Of each element how many of its length the whole beam has."""
        found = [1 / (b - a) for a, b in pairwise(self.shares)]
        return [int(count) if count.denominator == 1 else float(count) for count in found]


def beam_mesh(name: str, elements: int, refine: int, mounted: Collection[str], pulled: Collection[str]) -> BeamMesh:
    """Of a beam that something is mounted on and pulled at, at places of it; elements are cut into `refine` at last.

    Equal elements are kept for what is mounted as long as they are few; else a node divides the element that is there.
    """
    places = {
        where: Fraction(repr(s)) for where in (*mounted, *pulled) if (s := position_along_beam(where)) is not None
    }
    total = elements * _equal_parts(elements, [places[where] for where in mounted if where in places])
    base = [Fraction(k, total) for k in range(total + 1)]
    for where in sorted(places, key=lambda where: where not in mounted):
        _add_node(base, places[where], f"{name}@{where}" if where in mounted else None, Fraction(1, total))
    shares = [a + (b - a) * k / refine for a, b in pairwise(base) for k in range(refine)] + [Fraction(1)]
    named = _names(name, shares, elements)
    nodes = {where: _nearest(shares, s) for where, s in places.items()}
    tied = {where: k for where, k in nodes.items() if abs(shares[k] - places[where]) < SAME_NODE}
    return BeamMesh(tuple(shares), tuple(named), tied, frozenset(nodes.values()))


def _equal_parts(elements: int, places: Iterable[Fraction]) -> int:
    """Into how many equal parts each element is cut so that places are nodes; 1 where that would be too many."""
    for parts in range(1, max(MOST_ELEMENTS // elements, 1) + 1):
        along = [s * elements * parts for s in places]
        if all(abs(x - round(x)) < SAME_NODE * elements * parts for x in along):
            return parts
    return 1


def _add_node(shares: list[Fraction], s: Fraction, mounted: str | None, element: Fraction) -> None:
    """Put a node at a place, if none is there; where that is hardly beside one, what pulls may stay there."""
    away = abs(shares[_nearest(shares, s)] - s)
    if away < SAME_NODE:
        return
    if away >= SHORT * element:
        shares.insert(bisect_left(shares, s), s)
    elif mounted is not None:
        raise RobotFileError(
            f"something is mounted on '{mounted}', {float(away / element):.2g} elements from a node: one as short as "
            "that would be stiffer than numbers can tell",
            key=f"frame '{mounted.partition('@')[0]}': beam.elements",
            value=mounted,
            hint=f"mount it on the node, at {float(shares[_nearest(shares, s)]):.6g}, or take fewer elements",
        )


def _nearest(shares: list[Fraction], s: Fraction) -> int:
    return min(range(len(shares)), key=lambda k: abs(shares[k] - s))


def _names(beam: str, shares: list[Fraction], elements: int) -> list[str]:
    """BEAM.2 is the second node of the file, BEAM.2.1 the first behind it."""
    named, behind = [beam], 0
    for s in shares[1:-1]:
        element = s * elements
        behind = 0 if element.denominator == 1 else behind + 1
        named.append(f"{beam}.{int(element)}.{behind}" if behind else f"{beam}.{int(element)}")
    return [*named, f"{beam}.tip"]


def mounted_inside(robot: schema.RobotFile) -> dict[str, list[str]]:
    """Of each body the places inside it on which the file mounts or closes something, or measures the robot."""
    return _by_body(mounted_names(robot))


def pulled_inside(robot: schema.RobotFile) -> dict[str, list[str]]:
    """Of each beam the places inside it at which elements of the file pull."""
    return _by_body(pulled_names(robot))


def mounted_names(robot: schema.RobotFile) -> dict[str, None]:
    """Names of what the file mounts or closes something on, or measures the robot by."""
    ties = [closure.between for closure in robot.closure]
    ties += [element.between for element in robot.element if element.kind == "rod" or element.measured]
    named = [*(frame.parent for frame in robot.frame), *(end for between in ties for end in between)]
    return dict.fromkeys([*named, robot.end_effector or ""])


def pulled_names(robot: schema.RobotFile) -> dict[str, None]:
    """Names of nodes and places of beams at which elements pull, by points there too."""
    beams = {frame.name for frame in robot.frame if frame.beam is not None}
    points = {point.name: point.frame for point in robot.point}
    pulling = [element for element in robot.element if element.kind != "rod" and not element.measured]
    named = [end for element in pulling for end in element.between]
    while any(name in points for name in named):  # a point may be on another one
        named = [points.get(name, name) for name in named]
    return dict.fromkeys(name for name in named if (split_place(name) or (name.rpartition(".")[0],))[0] in beams)


def _by_body(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for owner, where in filter(None, map(split_place, names)):
        found.setdefault(owner, []).append(where)
    return found
