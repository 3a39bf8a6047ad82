"""A part of a tree as a tree of its own: some links with all that carry them, numbered anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from parflex.tree.tree import GROUND, Place, Tree

Array = np.ndarray


@dataclass(frozen=True)
class Branch:
    """The smaller tree, and which positions and rates of the whole one it has, in rising order."""

    tree: Tree
    number: dict[int, int]  # of links, from the whole tree
    positions: Array
    rates: Array

    def place(self, place: Place) -> Place:
        """The place in the smaller tree."""
        return replace(place, link=self.number[place.link])


def branch(tree: Tree, links: Iterable[int]) -> Branch:
    """These links of a tree with all that carry them; lengths are measured as in the whole tree."""
    kept = sorted({j for link in links if link != GROUND for j in tree.path(link)})
    number = {GROUND: GROUND} | {j: k for k, j in enumerate(kept)}
    moved = []
    positions: list[int] = []
    rates: list[int] = []
    for j in kept:
        link = tree.links[j]
        slices = {}
        for name, own, listed in (("q", link.q, positions), ("v", link.v, rates)):
            slices[name] = slice(len(listed), len(listed) + own.stop - own.start)
            listed += range(own.start, own.stop)
        for name, own, listed in (("e", link.e, positions), ("e_v", link.e_v, rates)):
            slices[name] = slice(len(listed), len(listed) + own.stop - own.start)
            listed += range(own.start, own.stop)
        moved.append(replace(link, parent=number[link.parent], **slices))
    small = replace(tree, links=tuple(moved), places={})
    small.__dict__["length"] = tree.length  # where cached_property keeps it
    return Branch(small, number, np.array(positions, dtype=int), np.array(rates, dtype=int))
