"""A part of a tree as a tree of its own: some links with all that carry them, numbered anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from parflex.records import Record
from parflex.tree.inner_places import Place
from parflex.tree.link_tree import GROUND, Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Branch(Record):
    """The smaller tree, and which positions and rates of the whole one it has, in rising order."""

    tree: Tree
    number: dict[int, int]  # of links, from the whole tree
    positions: Array
    rates: Array

    def place(self, place: Place) -> Place:
        """The place in the smaller tree."""
        return place.on(self.number[place.link], self.tree.links)


def branch(tree: Tree, links: Iterable[int]) -> Branch:
    """These links of a tree with all that carry them; lengths are measured as in the whole tree."""
    kept = sorted({j for link in links if link != GROUND for j in tree.path(link)})
    number = {GROUND: GROUND} | {j: k for k, j in enumerate(kept)}
    moved = []
    positions: list[int] = []
    rates: list[int] = []
    for j in kept:
        link = tree.links[j]
        q, v = _listed(link.q, positions), _listed(link.v, rates)
        e, e_v = _listed(link.e, positions), _listed(link.e_v, rates)
        moved.append(replace(link, parent=number[link.parent], q=q, v=v, e=e, e_v=e_v))
    small = replace(tree, links=tuple(moved), places={}, springs=(), elements=(), known_length=tree.length)
    return Branch(small, number, np.array(positions, dtype=int), np.array(rates, dtype=int))


def _listed(own: slice, known: list[int]) -> slice:
    """Where these numbers stand behind those that are listed already."""
    first = len(known)
    known += range(own.start, own.stop)
    return slice(first, len(known))
