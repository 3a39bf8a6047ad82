"""NamedPlaces inside flexible bodies by name: `BEAM@0.5` along a whole beam, `BODY@NODE` on a body given by modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parflex.bodies.elastic import Node
from parflex.errors import InputError
from parflex.records import Record
from parflex.robotfile.values import position_along_beam, split_place
from parflex.spatial.batched import nominal

if TYPE_CHECKING:
    from parflex.tree.link_tree import Link

Array = np.ndarray
AT_NODE = 1e-12  # of an element: a place nearer to one of its ends is that end


@dataclass(frozen=True, eq=False, repr=False)
class InnerNode(Record):
    """A node inside the body of a link, and where the elastic coordinates of that stand among positions and rates."""

    node: Node = field(repr=False)
    e: slice
    e_v: slice


@dataclass(frozen=True, eq=False, repr=False)
class Place(Record):
    """A named frame at `position`, turned by `rotation`: on a link, on the ground, or on a node inside a body."""

    link: int
    rotation: Array = field(repr=False)
    position: Array = field(repr=False)
    inner: InnerNode | None = field(default=None, repr=False)

    def on(self, number: int, links: Sequence[Link]) -> Place:
        """The same place where its link has another number among other links."""
        own = None if self.inner is None else InnerNode(self.inner.node, links[number].e, links[number].e_v)
        return replace(self, link=number, inner=own)


class BeamElement(NamedTuple):
    """One element of a beam: its link, that on its tip, and its ends as shares of the length of the whole beam."""

    link: int
    tip: int
    start: float
    end: float


class NamedPlaces(dict[str, Place]):
    """NamedPlaces by name; those inside bodies are not listed, and are made when they are asked for."""

    def __init__(self, named: Mapping[str, Place], links: Sequence[Link]) -> None:
        super().__init__(named)
        self._links = links
        self._found: dict[str, Place] = {}

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self._inside(name) is not None)

    def __missing__(self, name: str) -> Place:
        place = self._inside(name)
        if place is None:
            raise KeyError(name)
        return place

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping."""
        return self[name] if name in self else default  # noqa: SIM401 - that is this method

    def _inside(self, name: str) -> Place | None:
        """The place inside a body; None if nothing has such a name, refused if the body has no such place."""
        if name not in self._found:
            parts = split_place(name)
            owner = None if parts is None else _number(self._links, parts[0])
            if parts is None or (owner is None and not super().__contains__(parts[0])):
                return None
            found = self._on(owner, name, *parts)
            if found is None:
                return None
            self._found[name] = found
        return self._found[name]

    def _on(self, number: int | None, name: str, owner: str, where: str) -> Place | None:
        link = None if number is None else self._links[number]
        if number is None or link is None or link.body.inner is None:
            raise InputError(
                f"'{owner}' is not a beam or modal body, so that '{name}' means nothing",
                key="frame",
                value=name,
                hint="name a beam or modal body, or give the robot a point there",
            )
        if link.body.by_tip:
            return self._along(number, name, owner, where)
        node = _node_of(link, where)
        if node is None:
            if "." in where:
                return None  # a frame of which something is asked, as in `BODY@12.x`
            raise InputError(
                f"the body '{owner}' has no node '{where}'",
                key="frame",
                value=name,
                hint=f"give the name or the number (from 0) of a node of its modal data, such as {owner}@0",
            )
        same = f"{owner}.{where}"
        return self[same] if dict.__contains__(self, same) else place_on_node(number, link, node)

    def _along(self, number: int, name: str, owner: str, where: str) -> Place | None:
        s = position_along_beam(where)
        if s is None and "." in where and not _is_number(where):
            return None  # a frame of which something is asked, as in `BEAM@0.5.x`
        if s is None:
            raise InputError(
                f"'{where}' is not a place of the beam '{owner}'",
                key="frame",
                value=name,
                hint="give a number from 0 (its root) to 1 (its tip)",
            )
        elements = beam_elements(self._links, number)
        element = next(one for one in elements if s <= one.end or one is elements[-1])
        xi = (s - element.start) / (element.end - element.start)
        if xi < AT_NODE or xi > 1 - AT_NODE:
            return Place(element.link if xi < AT_NODE else element.tip, np.eye(3), np.zeros(3))
        link = self._links[element.link]
        assert link.body.inner is not None
        return place_on_node(element.link, link, link.body.inner.node(repr(xi)))


def beam_elements(links: Sequence[Link], root: int) -> list[BeamElement]:
    """The elements of the beam that begins with a link, from its root to its tip."""
    chain, tips, lengths = [root], [], []
    while links[chain[-1]].body.size and links[chain[-1]].body.by_tip:
        last = chain[-1]
        tip = next(j for j in range(last + 1, len(links)) if links[j].parent == last and links[j].node is not None)
        tips.append(tip)
        lengths.append(nominal(links[last].body.nodes["tip"].r0[0]))  # shares of the length stay as it changes
        chain.append(tip)
    ends = np.cumsum(lengths) / sum(lengths)
    return [
        BeamElement(j, tip, float(end), float(after))
        for j, tip, end, after in zip(chain, tips, [0.0, *ends[:-1]], [*ends[:-1], 1.0], strict=False)
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(links: Sequence[Link], name: str) -> int | None:
    return next((j for j, link in enumerate(links) if link.name == name), None)


def _node_of(link: Link, where: str) -> Node | None:
    assert link.body.inner is not None
    try:
        return link.body.inner.node(where)
    except LookupError:
        return None


def place_on_node(number: int, link: Link, node: Node) -> Place:
    """A place inside the body of a link, by the number of that."""
    return Place(number, np.eye(3), np.zeros(3), InnerNode(node, link.e, link.e_v))
