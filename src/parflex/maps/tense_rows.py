"""Poses at which springs of joints or couplings are under tension: these have a linear model about the equilibrium."""

from __future__ import annotations

import numpy as np

from parflex.parameters.design_numbers import of_designs
from parflex.robot.robot import Robot
from parflex.statics.loads import NEAR_REST
from parflex.tree.tree import Tree

Array = np.ndarray


def tense_rows(locked: Robot, tree: Tree, q: Array, kept: Array, rows: Array | None = None) -> Array:
    """Which rows of positions of the rigid tree; `tree` may hold designs, of which `rows` are the numbers.

    `kept` are the positions of the robot that the rigid tree has.
    """
    found = np.zeros(len(q), dtype=bool)
    units, count = locked.tree.rate_units, len(q)

    def number(value: object) -> Array:
        designs = _designs(value)
        wide = of_designs(value, designs)
        return np.broadcast_to(wide if not wide.ndim else wide[rows], count)

    def column(k: int) -> Array:
        return q[:, int(np.searchsorted(kept, k))]

    for link, plain in zip(tree.links, locked.tree.links, strict=True):
        if plain.joint.one_axis and plain.v.start not in locked.locked and np.any(number(link.terms.stiffness)):
            found |= np.abs(column(plain.q.start) - number(link.terms.rest)) > NEAR_REST * units[plain.v.start]
    for spring, own in zip(tree.springs, locked.tree.springs, strict=True):
        off = -number(spring.offset)
        for k, c in zip(own.positions, spring.coefficients, strict=True):
            off = off + number(c) * column(k)
        found |= np.abs(off) - number(spring.play) / 2 > NEAR_REST * units[own.rates[0]]
    return found


def _designs(value: object) -> int:
    """How many designs a number stands for."""
    values = getattr(value, "values", None)
    return 1 if values is None else len(values) - 1
