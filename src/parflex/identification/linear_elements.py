"""Springs and dampers between points, and elastic couplings, whose forces are linear in their numbers.

Along a stretch s with the rate ds/dt the force is k s - k_rest + d ds/dt: k and d are stiffness and damping, k_rest is
stiffness times rest. Slack cables, tables and play are not linear in theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.recursion.energy import line_between, wrenches_on_ends
from parflex.recursion.kinematics import jacobians
from parflex.robot.robot import Robot
from parflex.tree.force_elements import CoupledSpring, PointElement
from parflex.tree.tree import Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class LinearElement(Record):
    """An element between points or an elastic coupling, and the numbers in which its force is linear."""

    name: str
    values: dict[str, float]  # by symbol: k, d, k_rest
    turns: bool  # whether its stretch is an angle


def linear_elements(robot: Robot) -> list[LinearElement]:
    """Of a robot, in the order of its file, elements before couplings."""
    offsets = {one.name for one in robot.description.coupling if "offset" in one.model_fields_set}
    found = [LinearElement(one.name, _of_element(one), False) for one in robot.tree.elements]
    for spring in robot.tree.springs:
        turns = robot.tree.links[spring.numbers[0]].joint.unit == "rad"
        found.append(LinearElement(spring.name, _of_coupling(spring, spring.name in offsets), turns))
    return [one for one in found if one.values]


def _of_element(one: PointElement) -> dict[str, float]:
    """A spring that rests where its points meet has no line there, along which a rest could act."""
    if one.pulls_only or not one.acts:
        return {}
    found = {"k": float(one.stiffness)} if one.stiffness and one.curve is None else {}
    found |= {"d": float(one.damping)} if one.damping else {}
    return found | ({"k_rest": float(one.stiffness * one.rest)} if "k" in found and not one.smooth_at_zero else {})


def _of_coupling(one: CoupledSpring, offset: bool) -> dict[str, float]:
    if one.play or one.pulls_only or one.lossy:
        return {}
    found = {"k": float(one.stiffness)} | ({"d": float(one.damping)} if one.damping else {})
    return found | ({"k_rest": float(one.stiffness * one.offset)} if offset else {})


class ElementColumns:
    """Forces along all rates, or along independent ones, per unit of the numbers of elements, over any scalar."""

    def __init__(self, tree: Tree, at: Any, moving: Any, J: Array | None) -> None:
        self.tree, self.at, self.moving, self.J = tree, at, moving, J
        self.elements = {one.name: one for one in tree.elements}
        self.springs = {one.name: one for one in tree.springs}
        self.jacobians = jacobians(tree, at) if tree.elements else []

    def of(self, name: str, symbol: str) -> Array:
        """One column."""
        if name in self.springs:
            return self._coupling(self.springs[name], symbol)
        element = self.elements[name]
        ends = (element.first, element.second)
        if element.smooth_at_zero:
            return self._along(ends, self.at.of(ends[1])[1] - self.at.of(ends[0])[1])
        across, length, rate = line_between(self.at, ends, name, self.moving)
        # of a unit of stiffness the tension is the length, which its direction is divided by
        share: Any = {"k": 1.0, "d": rate / length, "k_rest": -1 / length}[symbol]
        return self._along(ends, share * across)

    def _along(self, ends: Any, force: Array) -> Array:
        """What it takes along rates against a force on the first of two places, and its opposite on the second."""
        total: Any = 0.0
        for link, (pulled, turned) in wrenches_on_ends(self.at, ends, force).items():
            J_v, J_w = self.jacobians[link] if self.J is None else (part @ self.J for part in self.jacobians[link])
            total = total - (J_v.T @ pulled + J_w.T @ turned)
        return np.asarray(total)

    def _coupling(self, spring: CoupledSpring, symbol: str) -> Array:
        way = np.zeros(self.tree.n)
        way[list(spring.rates)] = spring.coefficients
        stretch = replace(spring, offset=0.0).stretch(self.at.q)
        share = {"k": stretch, "d": spring.rate(self.moving.qd), "k_rest": -1.0}[symbol]
        return (way if self.J is None else self.J.T @ way) * share


def with_element_numbers(tree: Tree, numbers: Mapping[str, Mapping[str, float]]) -> Tree:
    """The tree with elements and couplings that have these numbers, by name and symbol."""

    def changed(one: Any, rest: str) -> Any:
        own = numbers.get(one.name)
        return one if own is None else replace(one, **fields_of(own, rest))

    return replace(
        tree, elements=tuple(changed(one, "rest") for one in tree.elements),
        springs=tuple(changed(one, "offset") for one in tree.springs),
    )  # fmt: skip


def fields_of(own: Mapping[str, float], rest: str = "rest", damping: str = "damping") -> dict[str, float]:
    """Numbers of a spring and a damper as files have them."""
    found = {"stiffness": own["k"]} if "k" in own else {}
    found |= {damping: own["d"]} if "d" in own else {}
    return found | ({rest: own["k_rest"] / own["k"] if own["k"] else 0.0} if "k_rest" in own else {})


def without_elements(tree: Tree, names: Sequence[str]) -> Tree:
    """The tree without what is linear in some elements and couplings; tables of theirs stay."""
    gone = set(names)

    def left(one: PointElement) -> PointElement:
        return replace(one, stiffness=0.0, rest=0.0, damping=0.0) if one.name in gone else one

    elements = [left(one) for one in tree.elements]
    acting = [one for one in elements if one.name not in gone or one.curve is not None or one.speed_curve is not None]
    springs = [one for one in tree.springs if one.name not in gone]
    return replace(tree, elements=tuple(acting), springs=tuple(springs))
