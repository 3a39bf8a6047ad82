"""Legs whose joints follow from their end point in closed form, over any scalar and without trigonometry.

A leg is recognised by its axes, never by its name: two crossed revolute joints and a slide through their crossing
(U-P), or two parallel revolute joints (R-R). The values are given as cosines and sines, so that a program needs two
square roots a leg.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.tree.tree import Place, Tree

Array = np.ndarray
Angle = Callable[[Any, Any], Any]  # from cosine and sine to something with cos() and sin()


@dataclass(frozen=True, eq=False, repr=False)
class CrossedSlide(Record):
    """U-P: axes 1 and 2 cross at right angles, the slide starts at their crossing at right angles to axis 2."""

    root: Array  # rotation of the first joint's placed frame
    origin: Array
    radial: Array  # horizontal direction in which the end lies when the first joint is at zero
    lift: Array  # 2 x 2: (height, radius) per (cos q2, sin q2), for a stroke of one
    side: float  # sign of the radius in this working mode
    stroke: float  # sign of the stroke
    offset: float  # what the prismatic row adds to the joint value

    def values(self, end: Array, angle: Angle) -> list[Any]:
        """Joint values from the end point (in axes of the ground of the leg)."""
        d = self.root.T @ (end - self.origin)
        radius = self.side * np.sqrt(d[0] * d[0] + d[1] * d[1])
        length = self.stroke * np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
        inner, outer = 1.0 / radius, 1.0 / length
        x, y = d[0] * inner, d[1] * inner
        c1, s1 = x * self.radial[0] + y * self.radial[1], y * self.radial[0] - x * self.radial[1]
        height, along = d[2] * outer, radius * outer
        back = np.linalg.inv(self.lift).round(15)
        c2 = back[0, 0] * height + back[0, 1] * along
        s2 = back[1, 0] * height + back[1, 1] * along
        return [angle(c1, s1), angle(c2, s2), length - self.offset]


@dataclass(frozen=True, eq=False, repr=False)
class TwoBars(Record):
    """R-R: parallel axes; the end of the second bar is reached with the elbow on one of two sides."""

    root: Array
    origin: Array
    first: Array  # from the first axis to the second, in the first's plane
    second: Array  # from the second axis to the end
    side: float  # sign of the sine of the angle from the first bar to the second

    def values(self, end: Array, angle: Angle) -> list[Any]:
        """Joint values from the end point."""
        d = self.root.T @ (end - self.origin)
        l1, l2 = float(np.hypot(*self.first)), float(np.hypot(*self.second))
        square = d[0] * d[0] + d[1] * d[1]
        cosine = (square - (l1 * l1 + l2 * l2)) / (2 * l1 * l2)
        sine = self.side * np.sqrt(1 - cosine * cosine)
        # the joint angle is the angle between the bars less that between their own axes
        (a, b), (c, e) = self.first / l1, self.second / l2
        turn_c, turn_s = a * c + b * e, b * c - a * e
        c2, s2 = turn_c * cosine - turn_s * sine, turn_s * cosine + turn_c * sine
        # end = Rz(q1) (first + Rz(q2) second)
        x = self.first[0] + c2 * self.second[0] - s2 * self.second[1]
        y = self.first[1] + s2 * self.second[0] + c2 * self.second[1]
        inverse = 1.0 / square
        return [angle((d[0] * x + d[1] * y) * inverse, (d[1] * x - d[0] * y) * inverse), angle(c2, s2)]


def recognise(tree: Tree, links: list[int], end: Place, q: Array) -> CrossedSlide | TwoBars | None:
    """The closed form of a leg, on the side on which it stands at `q`; None if it has none that is known here."""
    kinds = [tree.links[j].joint.kind for j in links]
    axes = [tree.links[j].joint.axis for j in links]
    if any(axis != 2 for axis in axes) or tree.links[links[0]].parent != -1:
        return None
    if kinds == ["revolute", "revolute", "prismatic"]:
        return _crossed_slide(tree, links, end, q)
    if kinds == ["revolute", "revolute"]:
        return _two_bars(tree, links, end, q)
    return None


def _crossed_slide(tree: Tree, links: list[int], end: Place, q: Array) -> CrossedSlide | None:
    first, second, third = (tree.links[j] for j in links)
    axis_2, slide = second.rotation[:, 2], third.rotation[:, 2]
    straight = np.allclose(second.position, 0, atol=1e-12) and np.allclose(end.position[:2], 0, atol=1e-12)
    offset = float(slide @ third.position) + float(end.position[2])
    through = np.allclose(third.position, slide * (slide @ third.position), atol=1e-12)
    if not straight or not through or abs(axis_2[2]) > 1e-12 or abs(slide[2]) > 1e-12:
        return None
    radial = np.array([axis_2[1], -axis_2[0]]).round(15)  # horizontal, at right angles to axis 2
    toward = np.array([radial[0], radial[1], 0.0])
    # height and radius of the end for a unit stroke are linear in cos q2 and sin q2
    turned = {angle: second.rotation @ _turn(angle) @ slide for angle in (0.0, np.pi / 2)}
    lift = np.array([[turned[0.0][2], turned[np.pi / 2][2]], [toward @ turned[0.0], toward @ turned[np.pi / 2]]]).round(
        15
    )
    value = q[third.q.start] + offset
    radius = float(lift[1] @ [np.cos(q[second.q.start]), np.sin(q[second.q.start])]) * value
    return CrossedSlide(first.rotation, first.position, radial, lift, _side(radius), _side(value), offset)


def _two_bars(tree: Tree, links: list[int], end: Place, q: Array) -> TwoBars | None:
    first, second = (tree.links[j] for j in links)
    if not np.allclose(second.rotation, np.eye(3), atol=1e-12):
        return None
    bar_1, bar_2 = second.position[:2], end.position[:2]
    if np.hypot(*bar_1) < 1e-9 or np.hypot(*bar_2) < 1e-9:
        return None
    turned = _turn(q[second.q.start])[:2, :2] @ bar_2
    side = _side(float(bar_1[0] * turned[1] - bar_1[1] * turned[0]))
    return TwoBars(first.rotation, first.position, bar_1, bar_2, side)


def _turn(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def _side(value: float) -> float:
    return 1.0 if value >= 0 else -1.0
