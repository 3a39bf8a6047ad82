"""Beams of a robot as chains of elements, and words for what their sections carry: `BEAM.Mz@0.5`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.bodies.elastic import Body
from parflex.bodies.reduced_beam import ReducedCentreLine, ReducedSections
from parflex.bodies.sections import ElementSections
from parflex.errors import InputError, did_you_mean
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robotfile import schema
from parflex.tree.build_elements import element_parts
from parflex.tree.tree import Tree

Array = np.ndarray
Ends = tuple[float, ...]
FORCES = ("N", "Vy", "Vz", "T", "My", "Mz")
IN_PLANE = (0, 1, 5)  # what a planar robot says of them
STRESS = "stress"
MOST_PLACES = 1001  # of a range
ALIKE = 1e-12  # of their length: elements that differ by no more are equal
RANGE = re.compile(r"([^@]+)@([^:@]+):([^:@]+):(\d+)((?:\.[A-Za-z_]\w*)?)")
HALF_RANGE = re.compile(r"[^@]+@([^@]*:[^@]*?)(?:\.[A-Za-z_]\w*)?")  # with a colon, but none of these


@dataclass(frozen=True, eq=False, repr=False)
class BeamChain(Record):
    """A beam: the links of its elements from root to tip, the link at its tip, and its first element.

    A reduced beam has a body of many elements in each link; `reduced` are those. Where these bodies, or the elements of
    a beam, are not alike, `each` has them, and `ends` are shares of the length.
    """

    name: str
    links: tuple[int, ...]
    tip: int
    parts: ElementSections
    reduced: bool = False
    each: tuple[ElementSections | ReducedSections, ...] = ()
    ends: Ends = ()

    def parts_of(self, element: int) -> ElementSections | ReducedSections:
        """The body of one of the links, to be cut at its sections."""
        return self.each[element] if self.each else self.parts

    def located(self, s: float) -> tuple[int, float]:
        """Number of the element that holds s of the whole length, and where in it; ends belong to the one before."""
        if self.ends:
            element = next(k for k, end in enumerate(self.ends) if s <= end or k == len(self.ends) - 1)
            start = (0.0, *self.ends)[element]
            return element, (s - start) / (self.ends[element] - start)
        along = s * len(self.links)
        element = min(max(int(np.ceil(along)) - 1, 0), len(self.links) - 1)
        return element, along - element

    def share(self, element: int, xi: float) -> float:
        """The place of a section of an element, of the whole length."""
        if self.ends:
            start = (0.0, *self.ends)[element]
            return start + xi * (self.ends[element] - start)
        return (element + xi) / len(self.links)


def beam_chains(robot: Robot) -> dict[str, BeamChain]:
    """All beams of a robot that have sections, by name."""
    found = {}
    for frame in robot.description.frame:
        if frame.beam is None:
            continue
        links = _elements(robot.tree, robot.tree.number(frame.name))
        if links is not None:
            own, tip = tuple(links[:-1]), links[-1]
            bodies = [robot.tree.links[j].body for j in own]
            reduced, lengths = bodies[0].reduced is not None, [float(body.nodes["tip"].r0[0]) for body in bodies]
            each = tuple(_cut(robot, frame.beam, body, length) for body, length in zip(bodies, lengths, strict=True))
            first = each[0].element if isinstance(each[0], ReducedSections) else each[0]
            ends = np.cumsum(lengths) / sum(lengths)
            alike = not reduced and max(lengths) - min(lengths) <= ALIKE * max(lengths)
            found[frame.name] = BeamChain(
                frame.name, own, tip, first, reduced, *(() if alike else (each, tuple(ends.tolist())))
            )
    return found


def left_out_of_stress(robot: Robot, chains: Mapping[str, BeamChain]) -> list[str]:
    """A sentence about beams whose stress is not known, where that of others is."""
    known = {name for name, chain in chains.items() if chain.parts.fibres is not None}
    names = [frame.name for frame in robot.description.frame if frame.beam is not None and frame.name not in known]
    if not known or not names:
        return []
    shown = ", ".join(f"'{name}'" for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"the largest stress leaves out {shown}: with a section given by numbers"]


def _cut(robot: Robot, beam: schema.Beam, body: Body, length: float) -> ElementSections | ReducedSections:
    """A body of a beam, to be cut at its sections."""
    if body.reduced is None:
        return element_parts(robot.description, beam, length)
    assert isinstance(body.inner, ReducedCentreLine)
    return ReducedSections(element_parts(robot.description, beam, length / body.reduced.elements), body.inner)


def _elements(tree: Tree, first: int) -> list[int] | None:
    """The elements of a beam and the link at its tip; None where it is another kind of body now."""
    links = [first]
    while tree.links[links[-1]].body.by_tip:
        after = (k for k, link in enumerate(tree.links) if link.parent == links[-1] and link.node is not None)
        links.append(next(after))
    return links if len(links) > 1 else None


@dataclass(frozen=True)
class SectionWord:
    """One quantity of a beam at one place."""

    word: str
    beam: str
    quantity: str
    s: float


def is_section_word(word: object) -> bool:
    """Whether a text asks for a quantity of a section."""
    return isinstance(word, str) and "@" in word and word.partition("@")[0].rpartition(".")[2] in (*FORCES, STRESS)


def each_place(word: str, key: str = "outputs") -> list[str]:
    """A text with a range of places, BEAM.Mz@0:1:5 or BEAM@0:1:5.vx, as texts of each; others as they are."""
    match = RANGE.fullmatch(word)
    if match is None and (half := HALF_RANGE.fullmatch(word)) is not None:
        raise InputError(
            f"'{half[1]}' is not a range of places", key=key, value=word,
            hint=f"give first:last:count from 0 to 1, with at most {MOST_PLACES} places, such as 0:1:21",
        )  # fmt: skip
    if match is None:
        return [word]
    beam, low, high, number, quantity = match.groups()
    try:
        first, last, count = float(low), float(high), int(number)
    except ValueError:
        return [word]
    if not 2 <= count <= MOST_PLACES or not 0 <= first < last <= 1:
        raise InputError(
            f"'{low}:{high}:{number}' is not a range of places", key=key, value=word,
            hint=f"give first:last:count from 0 to 1, with at most {MOST_PLACES} places, such as 0:1:21",
        )  # fmt: skip
    return [f"{beam}@{s:.6g}{quantity}" for s in np.linspace(first, last, count)]


def all_places(words: Sequence[str], key: str) -> list[str]:
    """All texts of a list, ranges of places as each of them."""
    return [one for word in words for one in (each_place(word, key) if isinstance(word, str) else [word])]


def inside_reduced(tree: Tree, frames: Sequence[str]) -> list[str]:
    """A sentence where loads act inside of beams that were reduced to their ends and a few modes."""
    named = [frame for frame in frames if frame in tree.places and tree.places[frame].inner is not None]
    named = [frame for frame in named if tree.links[tree.places[frame].link].body.reduced is not None]
    if not named:
        return []
    return [
        f"a load acts inside of a reduced beam ({', '.join(repr(frame) for frame in named[:5])}), which keeps a few "
        "modes of its inside: as a frame it moves too little there (BEAM.tangent_y@s has the rest), ends are right at "
        "rest; let something of the file act there, or leave out 'reduce'"
    ]


def section_examples(robot: Robot) -> list[str]:
    """Words that could be meant: each quantity of each beam in its middle."""
    words = (*(FORCES[k] for k in IN_PLANE), STRESS) if robot.tree.planar else (*FORCES, STRESS)
    return [f"{frame.name}.{word}@0.5" for frame in robot.description.frame if frame.beam for word in words]


def read_section_word(robot: Robot, chains: Mapping[str, BeamChain], word: str, key: str = "outputs") -> SectionWord:
    """The quantity, beam and place that a text names; refused in a sentence where there is none."""
    left, _, where = word.partition("@")
    beam, _, quantity = left.rpartition(".")
    if beam not in chains:
        raise InputError(_no_beam(robot, beam), key=key, value=word, hint=did_you_mean(beam, chains))
    if robot.tree.planar and quantity not in ("N", "Vy", "Mz", STRESS):
        raise InputError(
            f"a planar robot does not say what '{beam}' carries as {quantity}", key=key, value=word,
            hint="ask for N, Vy, Mz or stress",
        )  # fmt: skip
    if quantity == STRESS and chains[beam].parts.fibres is None:
        raise InputError(
            f"the stress in '{beam}' is not known, since its section is given by numbers", key=key, value=word,
            hint="give the shape of the section (rectangle, circle, tube, box), or ask for N, My and Mz",
        )  # fmt: skip
    return SectionWord(word, beam, quantity, read_share(where, beam, key, word))


def read_share(where: str, beam: str, key: str, word: str) -> float:
    """A place along a beam, from 0 at its frame to 1 at its tip."""
    try:
        s = float(where)
    except ValueError:
        s = np.nan
    if not 0 <= s <= 1:
        raise InputError(
            f"the place '{where}' is not on the beam '{beam}'", key=key, value=word,
            hint="give a number from 0 (its frame) to 1 (its tip)",
        )  # fmt: skip
    return s


def _no_beam(robot: Robot, name: str) -> str:
    if name not in robot.tree.places:
        return f"there is no beam '{name}'"
    link = robot.tree.places[name].link
    body = robot.tree.links[link].body if link >= 0 else None
    if body is not None and body.size and not body.by_tip:
        return f"'{name}' is given by modes and has no sections: its interfaces carry the reactions of its joints"
    return f"'{name}' is not a beam: rigid bodies have no sections"
