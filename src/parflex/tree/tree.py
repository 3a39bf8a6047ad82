"""Define the numbered tree: links with their coordinates, and places fixed to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from parflex.bodies.elastic import Body, Node
from parflex.errors import InputError, did_you_mean
from parflex.records import Record, count_of
from parflex.robotfile.values import position_along_beam, split_place
from parflex.spatial.batched import nominal
from parflex.spatial.rotations import vector_length
from parflex.tree.force_elements import CoupledSpring, Gates, JointTerms, PointElement
from parflex.tree.joints import Joint

Array = np.ndarray
GROUND = -1
NODE_TOLERANCE = 1e-12  # of an element: a place nearer to one of its ends is that end


@dataclass(frozen=True, eq=False, repr=False)
class Link(Record):
    """A moving link: its mount, the joint that carries it, its body and its slices of the coordinates."""

    name: str
    parent: int
    rotation: Array = field(repr=False)
    position: Array = field(repr=False)
    joint: Joint = field(repr=False)
    body: Body = field(repr=False)
    q: slice
    v: slice
    start: Array = field(repr=False)
    terms: JointTerms = field(default=JointTerms(), repr=False)
    limits: tuple[float, float] | None = None
    leg: str | None = None
    node: Node | None = field(default=None, repr=False)  # where it sits on the elastic body of its parent
    e: slice = field(default_factory=lambda: slice(0, 0))  # elastic coordinates of its body among the positions
    e_v: slice = field(default_factory=lambda: slice(0, 0))  # and among the rates
    counted: bool = False  # a coupling counts the turns of its joint
    strut: bool = False  # it carries nothing: its coordinate is the length of a strut or of a driven cable
    pulls_only: bool = False  # its coordinate is the length of a cable
    velocity_limit: float | None = None
    effort_limit: float | None = None

    @property
    def own_q(self) -> slice:
        """Joint and elastic coordinates."""
        return slice(self.q.start, max(self.q.stop, self.e.stop))

    @property
    def own_v(self) -> slice:
        """Joint and elastic rates."""
        return slice(self.v.start, max(self.v.stop, self.e_v.stop))

    @property
    def periodic(self) -> bool:
        """Whether a whole turn of its joint is the same pose."""
        return self.joint.periodic and not self.counted

    @property
    def wound(self) -> bool:
        """Whether a spring counts the turns of its joint: a whole turn is the same pose in another state."""
        no_spring = isinstance(self.terms.stiffness, int | float) and self.terms.stiffness == 0.0
        return self.joint.periodic and not no_spring

    @property
    def heavy(self) -> bool:
        """Whether it has mass."""
        return bool(np.any(self.body.inertia_matrix(np.zeros(self.body.size))))

    @property
    def q_quaternion(self) -> slice:
        """Positions of the quaternion of its joint among all positions."""
        assert self.joint.quaternion is not None
        return slice(self.q.start + self.joint.quaternion.start, self.q.start + self.joint.quaternion.stop)

    @property
    def position_labels(self) -> tuple[str, ...]:
        """Suffixes of its coordinate names."""
        return self.joint.position_labels + self.elastic_labels

    @property
    def rate_labels(self) -> tuple[str, ...]:
        """Suffixes of its rate names."""
        return self.joint.rate_labels + self.elastic_labels

    @property
    def elastic_labels(self) -> tuple[str, ...]:
        """Suffixes of its elastic coordinate names."""
        return self.body.labels


def new_link(links: Sequence[Link], name: str, at: Place, joint: Joint, body: Body, start: Array, **more: Any) -> Link:
    """Return a link mounted at a place, with the coordinates after those of other links."""
    q0, v0 = (links[-1].own_q.stop, links[-1].own_v.stop) if links else (0, 0)
    q, v = slice(q0, q0 + len(joint.position_labels)), slice(v0, v0 + len(joint.rate_labels))
    e, e_v = slice(q.stop, q.stop + body.size), slice(v.stop, v.stop + body.size)
    return Link(name, at.link, at.rotation, at.position, joint, body, q, v, start, e=e, e_v=e_v, **more)


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Record):
    """Links in an order in which parents come first."""

    links: tuple[Link, ...]
    places: dict[str, Place]  # by name; places inside bodies, as `BEAM@0.5`, are there without being listed
    gravity: Array
    planar: bool
    end_effector: str
    springs: tuple[CoupledSpring, ...] = ()
    elements: tuple[PointElement, ...] = ()  # forces between two places
    gates: Gates | None = field(default=None, repr=False, compare=False)  # of contacts, in runs
    known_length: InitVar[float | None] = None  # that of the tree which this one is a branch of; `replace` drops it
    _known_length: float | None = field(init=False, repr=False, compare=False)

    def __post_init__(self, known_length: float | None) -> None:
        object.__setattr__(self, "_known_length", known_length)
        object.__setattr__(self, "places", NamedPlaces(self.places, self.links))

    def _told(self) -> str:
        return f"{count_of(len(self.links), 'link')}, {count_of(self.n, 'rate')}, end effector '{self.end_effector}'"

    @cached_property
    def nq(self) -> int:
        """Number of position coordinates (a quaternion has four)."""
        return self.links[-1].own_q.stop if self.links else 0

    @cached_property
    def n(self) -> int:
        """Number of rates."""
        return self.links[-1].own_v.stop if self.links else 0

    @cached_property
    def position_names(self) -> tuple[str, ...]:
        """Names of the position coordinates."""
        return tuple(_join(link.name, label) for link in self.links for label in link.position_labels)

    @cached_property
    def rate_names(self) -> tuple[str, ...]:
        """Names of the rates."""
        return tuple(_join(link.name, label) for link in self.links for label in link.rate_labels)

    @property
    def components(self) -> list[int]:
        """Possible components of a twist: in the plane x, y and the rotation."""
        return [0, 1, 5] if self.planar else list(range(6))

    @cached_property
    def link_of_rate(self) -> tuple[int, ...]:
        """Link of each rate."""
        return tuple(j for j, link in enumerate(self.links) for _ in link.rate_labels)

    @cached_property
    def start(self) -> Array:
        """Start values of all position coordinates."""
        parts = [np.concatenate([link.start, np.zeros(len(link.elastic_labels))]) for link in self.links]
        return np.concatenate(parts) if self.links else np.zeros(0)

    @cached_property
    def length(self) -> float:
        """Characteristic length of the robot, which scales rotations to translations."""
        return nominal(self.computed_length) if self._known_length is None else self._known_length

    @property
    def computed_length(self) -> Any:
        """Characteristic length over any scalar from its own numbers; 1 m if these have no length."""
        return self._largest_length() or 1.0

    @cached_property
    def has_length(self) -> bool:
        """Whether numbers of the robot determine its characteristic length."""
        return self._known_length is not None or bool(nominal(self._largest_length()))

    def _largest_length(self) -> Any:
        sizes = [vector_length(link.position) for link in self.links]
        sizes += [vector_length(place.position) for place in self.places.values()]
        sizes += [abs(link.start[0]) for link in self.links if link.joint.unit == "m"]
        return max(sizes, default=0.0)

    @cached_property
    def rate_units(self) -> Array:
        """1 for rotations, the characteristic length for translations, which makes scaled rates comparable."""
        units = np.ones(self.n)
        for link in self.links:
            if link.joint.rate_labels:
                units[link.v] = [self.length if unit == "m" else 1.0 for unit in link.joint.rate_units]
            units[link.e_v] = [self.length if unit == "m" else 1.0 for unit in link.body.units]
        return units

    def within_limits(self, q: Array, prescribed: Collection[int] = ()) -> Array:
        """Return positions with angles in the turn that their limits allow, except prescribed ones.

        A whole turn is the same pose, and solvers may find any turn; a spring distinguishes turns.
        """
        result = q.copy()
        for link in self.links:
            if link.limits and link.periodic and not link.wound and link.q.start not in prescribed:
                low, high = link.limits
                value = result[link.q.start]
                inside = value + 2 * np.pi * np.ceil((low - value) / (2 * np.pi))
                if not low <= value <= high and inside <= high:
                    result[link.q.start] = inside
        return result

    @cached_property
    def _plain(self) -> tuple[Array, Array, list[Link]]:
        """Positions that are integrals of single rates, these rates, and the links with other joints."""
        positions: list[int] = []
        rates: list[int] = []
        for link in self.links:
            for q, v in ((link.q, link.v), (link.e, link.e_v)) if link.joint.plain else ((link.e, link.e_v),):
                positions += range(q.start, q.stop)
                rates += range(v.start, v.stop)
        return np.array(positions, dtype=int), np.array(rates, dtype=int), [i for i in self.links if not i.joint.plain]

    def moved(self, q: Array, step: Array) -> Array:
        """Return positions after an increment along the rates."""
        positions, rates, others = self._plain
        if not others:
            return q + step
        result = np.array(q, dtype=np.result_type(q, step))
        result[positions] = result[positions] + step[rates]
        for link in others:
            result[link.q] = link.joint.moved(q[link.q], step[link.v])
        return result

    def position_rates(self, q: Array, qd: Array) -> Array:
        """Return time derivatives of all positions, over any scalar."""
        return self._joined(lambda i: i.joint.position_rates(q[i.q], qd[i.v]), lambda i: qd[i.e_v])

    def rates(self, q: Array, position_rates: Array) -> Array:
        """Return all rates for time derivatives of all positions."""
        return self._joined(lambda i: i.joint.rates(q[i.q], position_rates[i.q]), lambda i: position_rates[i.e])

    def rate_changes(self, qd: Array, qdd: Array) -> Array:
        """Return time derivatives of all rates for resolved accelerations."""
        return self._joined(lambda i: i.joint.rate_changes(qd[i.v], qdd[i.v]), lambda i: qdd[i.e_v])

    def _joined(self, of_joint: Callable[[Link], Array], of_body: Callable[[Link], Array]) -> Array:
        """Return numbers of all links, of each its joint and then its elastic body."""
        return np.concatenate([part for link in self.links for part in (of_joint(link), of_body(link))])

    @cached_property
    def elastic(self) -> tuple[int, ...]:
        """Numbers of the elastic rates."""
        return tuple(k for link in self.links for k in range(link.e_v.start, link.e_v.stop))

    def path(self, link: int) -> list[int]:
        """Return the links from this one to the ground."""
        links = []
        while link != GROUND:
            links.append(link)
            link = self.links[link].parent
        return links

    def place(self, frame: str) -> Place:
        """Return the mount of a frame or point; raise with the name of an unknown one."""
        if not isinstance(frame, str) or frame not in self.places:
            raise InputError(
                f"there is no frame '{frame}'", key="frame", value=frame, hint=did_you_mean(str(frame), self.places)
            )
        return self.places[frame]

    def has(self, frame: object, key: str) -> bool:
        """Return whether a frame exists; raise for an invalid place inside a body."""
        try:
            return isinstance(frame, str) and frame in self.places
        except InputError as error:
            error.key = key
            raise

    def number(self, name: str) -> int:
        """Return the number of the link of this name."""
        return self._numbers[name]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {link.name: j for j, link in reversed(list(enumerate(self.links)))}  # of equal names the first


def _join(name: str, label: str) -> str:
    return f"{name}.{label}" if label else name


@dataclass(frozen=True, eq=False, repr=False)
class Branch(Record):
    """A subtree, with the positions and rates of the whole tree that it contains, in rising order."""

    tree: Tree
    number: dict[int, int]  # of links, from the whole tree
    positions: Array
    rates: Array

    def place(self, place: Place) -> Place:
        """Return the place in the subtree."""
        return place.on(self.number[place.link], self.tree.links)


def branch(tree: Tree, links: Iterable[int]) -> Branch:
    """Return these links of a tree with all links that carry them, and the characteristic length of the tree."""
    link_numbers = sorted({j for link in links if link != GROUND for j in tree.path(link)})
    number = {GROUND: GROUND} | {j: k for k, j in enumerate(link_numbers)}
    branch_links = []
    positions: list[int] = []
    rates: list[int] = []
    for j in link_numbers:
        link = tree.links[j]
        q, v = _listed(link.q, positions), _listed(link.v, rates)
        e, e_v = _listed(link.e, positions), _listed(link.e_v, rates)
        branch_links.append(replace(link, parent=number[link.parent], q=q, v=v, e=e, e_v=e_v))
    small = replace(tree, links=tuple(branch_links), places={}, springs=(), elements=(), known_length=tree.length)
    return Branch(small, number, np.array(positions, dtype=int), np.array(rates, dtype=int))


def _listed(indices: slice, listed: list[int]) -> slice:
    """Return the numbers shifted to their position in the list."""
    first = len(listed)
    listed += range(indices.start, indices.stop)
    return slice(first, len(listed))


@dataclass(frozen=True, eq=False, repr=False)
class InnerNode(Record):
    """A node inside the body of a link, with the positions and rates of the elastic coordinates."""

    node: Node = field(repr=False)
    e: slice
    e_v: slice


@dataclass(frozen=True, eq=False, repr=False)
class Place(Record):
    """A named frame at `position` with `rotation`: on a link, on the ground, or on a node inside a body."""

    link: int
    rotation: Array = field(repr=False)
    position: Array = field(repr=False)
    inner: InnerNode | None = field(default=None, repr=False)

    def on(self, number: int, links: Sequence[Link]) -> Place:
        """Return the place with another link number."""
        inner = None if self.inner is None else InnerNode(self.inner.node, links[number].e, links[number].e_v)
        return replace(self, link=number, inner=inner)


class BeamElement(NamedTuple):
    """One element of a beam: its link, the link at its tip, and its ends as shares of the beam length."""

    link: int
    tip: int
    start: float
    end: float


class NamedPlaces(dict[str, Place]):
    """Places by name; places inside bodies are made on request."""

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
        """Return a place or the default, as any mapping."""
        return self[name] if name in self else default  # noqa: SIM401 - that is this method

    def _inside(self, name: str) -> Place | None:
        """Return the place inside a body, or None for an unknown name; raise if the body has no such place."""
        if name not in self._found:
            parts = split_place(name)
            owner = None if parts is None else _number(self._links, parts[0])
            if parts is None or (owner is None and not super().__contains__(parts[0])):
                return None
            place = self._on(owner, name, *parts)
            if place is None:
                return None
            self._found[name] = place
        return self._found[name]

    def _on(self, number: int | None, name: str, owner: str, where: str) -> Place | None:
        link = None if number is None else self._links[number]
        if number is None or link is None or link.body.inner is None:
            message = f"'{owner}' is not a beam or modal body, so '{name}' is no place"
            hint = "name a beam or modal body, or give the robot a point there"
            raise InputError(message, key="frame", value=name, hint=hint)
        if link.body.by_tip:
            return self._along(number, name, owner, where)
        node = node_of(link.body, where)
        if node is None:
            if "." in where:
                return None  # a frame of which something is asked, as in `BODY@12.x`
            hint = f"give the name or the number (from 0) of a node of its modal data, such as {owner}@0"
            raise InputError(f"the body '{owner}' has no node '{where}'", key="frame", value=name, hint=hint)
        full_name = f"{owner}.{where}"
        return self[full_name] if dict.__contains__(self, full_name) else place_on_node(number, link, node)

    def _along(self, number: int, name: str, owner: str, where: str) -> Place | None:
        s = position_along_beam(where)
        if s is None and "." in where and not _is_number(where):
            return None  # a frame of which something is asked, as in `BEAM@0.5.x`
        if s is None:
            hint = "give a number from 0 (its root) to 1 (its tip)"
            raise InputError(f"'{where}' is not a place of the beam '{owner}'", key="frame", value=name, hint=hint)
        elements = beam_elements(self._links, number)
        element = next(candidate for candidate in elements if s <= candidate.end or candidate is elements[-1])
        xi = (s - element.start) / (element.end - element.start)
        if xi < NODE_TOLERANCE or xi > 1 - NODE_TOLERANCE:
            return Place(element.link if xi < NODE_TOLERANCE else element.tip, np.eye(3), np.zeros(3))
        link = self._links[element.link]
        assert link.body.inner is not None
        return place_on_node(element.link, link, link.body.inner.node(repr(xi)))


def beam_root(links: Sequence[Link], number: int) -> int:
    """Return the first link of the beam of a link."""
    while links[number].node is not None:
        number = links[number].parent
    return number


def beam_elements(links: Sequence[Link], root: int) -> list[BeamElement]:
    """Return the elements of the beam that begins with a link, from root to tip."""
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


def node_of(body: Body, where: str) -> Node | None:
    """Return the node inside a body by name or number, or None."""
    assert body.inner is not None
    try:
        return body.inner.node(where)
    except LookupError:
        return None


def place_on_node(number: int, link: Link, node: Node) -> Place:
    """Return a place inside the body of a link by link number."""
    return Place(number, np.eye(3), np.zeros(3), InnerNode(node, link.e, link.e_v))
