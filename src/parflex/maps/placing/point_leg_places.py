"""Joints of legs in space from the place of their platform, in closed form over any scalar.

All is seen from a reference in which joints stand as at home: axes are lines there, and joints move a leg by turns
about and ways along these, the last joint first. See `parflex.closure.leg_geometry` for how the joints follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.closure.leg_geometry import (
    CROSSED_AXES,
    JointAxis,
    Parallelogram,
    PointLeg,
    in_plane,
    joint_axis,
    nearest_point,
    plane_normal,
)
from parflex.recursion.kinematics import Pose
from parflex.spatial.rotations import cross
from parflex.tree.tree import Tree

Array = np.ndarray
Move = tuple[Any, Any]  # cosine and sine of a turn; a way, and nothing
Meeting = tuple[Any, Any]  # by how much the parts of an equation miss each other; how far they are from touching
ROUNDING = 1e-10  # beside squares of what they are differences of: below, squares tell nothing


class PointLegPlaces:
    """The joints of one leg: `goal` is where the centre of its closure has to be, `turn` how the other body stands.

    Both are seen from the body that carries the leg as it stands in the reference, `turn` from the reference on.
    """

    def __init__(self, leg: PointLeg, tree: Tree, at: Pose, sides: dict[int, float], goal: Array, turn: Array) -> None:
        self.leg, self.sides = leg, sides
        self.lines = leg.lines(tree, at)
        rotation, self.end = at.of(leg.end)
        self.goal, self.meetings = goal, list[Meeting]()
        moves = self._crossed() if leg.kind == CROSSED_AXES else self._parallel()
        self.values = {
            j: np.arctan2(move[1], move[0]) if line.turns else move[0]
            for j, line, move in zip(leg.arm, self.lines, moves, strict=True)
        }
        if leg.linkage is not None:
            self._parallelogram(leg.linkage, tree, at, moves[2])
        if leg.wrist:
            u1, u2 = leg.loop.u1, leg.loop.u2
            own, other = (u1, u2) if leg.carries_first else (u2, u1)
            asked = turn @ (at.of(leg.goal)[0] @ other)
            for line, move, turns in zip(self.lines, moves, leg.turning(self.lines), strict=True):
                asked = _turned(asked, line, move, back=True) if turns else asked
            last = joint_axis(tree, at, leg.wrist[0])
            c, s = _angle(last.along, rotation @ own, asked)
            self.values[leg.wrist[0]] = np.arctan2(s, c)

    def _parallelogram(self, linkage: Parallelogram, tree: Tree, at: Pose, move: Move) -> None:
        """Joints that move with a bar, and whether it is on its side: past the flat pose it is in another mode."""
        for j, sense in zip(linkage.links[1:], linkage.senses, strict=True):
            self.values[j] = sense * self.values[linkage.bar]
        B, C, B2, _ = linkage.corners(at)
        axis, base, bar = self.lines[2].along, B2 - B, C - B
        area = self.sides[2] * (axis @ cross(base, _turned(bar, self.lines[2], move)))
        size = np.sqrt(_square(base) * _square(bar))
        self.meetings.append((-area / size, area / size))

    # -- neighbours that cross ----------------------------------------------------------------------------

    def _crossed(self) -> list[Move]:
        """Two neighbours keep the distance of their crossing from the end, or from its goal."""
        first, second, third = self.lines
        if self.leg.alone == 0:
            C = nearest_point(second, third)
            own = self._meets(first, C, self.goal, _square(self.end - C), 0)
            seen = _moved(self.goal, first, own, back=True)
            return [own, *self._turns(second, third, self.end - C, seen - C)]
        C = nearest_point(first, second)
        own = self._meets(third, self.end, C, _square(self.goal - C), 0)
        seen = _moved(self.end, third, own)
        return [*self._turns(first, second, seen - C, self.goal - C), own]

    def _turns(self, first: JointAxis, second: JointAxis, begin: Array, end: Array) -> tuple[Move, Move]:
        """Turns about two axes that bring a vector to another of its length: the second turn first."""
        a, b = first.along, second.along
        n, c = cross(a, b), a @ b
        size, height, depth = n @ n, a @ end, b @ begin
        alpha, beta = (height - c * depth) / size, (depth - c * height) / size
        length = _square(begin)
        left = length - (alpha * alpha + beta * beta + 2.0 * (alpha * beta) * c)  # what is along n, times its square
        self.meetings.append((-left / length, left / length))
        between = alpha * a + beta * b + self.sides[1] * np.sqrt(left / size) * n
        return _angle(a, between, end), _angle(b, begin, between)

    # -- neighbours that are parallel ------------------------------------------------------------------------

    def _parallel(self) -> list[Move]:
        """Two neighbours keep the height above their plane."""
        one, (i, j) = self.lines[self.leg.alone], self.leg.pair
        first, second = self.lines[i], self.lines[j]
        n = plane_normal(first, second)
        if self.leg.alone == 0:  # seen from the plane, which the first joint carries, the goal goes back
            moving, wanted, back = self.goal, n @ self.end, True
        else:
            moving, wanted, back = self.end, n @ self.goal, False
        if one.turns:
            v = moving - one.point
            A, B = n @ in_plane(v, one.along), n @ cross(one.along, v)
            D = wanted - n @ one.point - (n @ one.along) * (one.along @ v)
            own = self._root(A, -B if back else B, D, _square(v) + D * D, 0)
        else:
            way = (wanted - n @ moving) / (n @ one.along)
            own = (-way if back else way), 0.0
        seen = _moved(moving, one, own, back)
        goal, end = (seen, self.end) if self.leg.alone == 0 else (self.goal, seen)
        two = self._in_plane(first, second, n, goal, end)
        return [own, *two] if self.leg.alone == 0 else [*two, own]

    def _in_plane(self, first: JointAxis, second: JointAxis, n: Array, goal: Array, end: Array) -> tuple[Move, Move]:
        """Two joints that move the end to its goal, at the same height: the second joint first."""
        if not first.turns:  # the pivot of the second is carried along, and the goal is on a circle about it
            own = self._meets(first, second.point, goal, _square(in_plane(end - second.point, n)), 1, n)
            seen = _moved(goal, first, own, back=True)
            return own, _angle(second.along, end - second.point, seen - second.point)
        own = self._meets(second, end, first.point, _square(in_plane(goal - first.point, n)), 1, n)
        seen = _moved(end, second, own)
        return _angle(first.along, seen - first.point, goal - first.point), own

    # -- one equation -----------------------------------------------------------------------------------------

    def _meets(
        self, line: JointAxis, point: Array, centre: Array, radius2: Any, which: int, normal: Array | None = None
    ) -> Move:
        """The move of a joint that brings a point to a distance from a centre; with a normal, within its plane."""
        if line.turns:
            v, w = point - line.point, centre - line.point
            if normal is not None:
                v, w = in_plane(v, normal), in_plane(w, normal)
            h, k = line.along @ v, line.along @ w
            A, B = w @ v - h * k, w @ cross(line.along, v)
            D = (_square(w) + _square(v) - radius2) / 2.0 - h * k
            return self._root(A, B, D, _square(w) + _square(v) + radius2, which)
        w = centre - point if normal is None else in_plane(centre - point, normal)
        m, square = w @ line.along, _square(w)
        left = m * m - square + radius2
        size = square + radius2
        self.meetings.append((-left / size, left / size))
        return m + self.sides[which] * np.sqrt(left), 0.0

    def _root(self, A: Any, B: Any, D: Any, size: Any, which: int) -> Move:
        """Cosine and sine of x with A cos x + B sin x = D, on its side."""
        square = A * A + B * B
        left = square - D * D
        self.meetings.append((-left / (square + D * D + ROUNDING * (size * size)), left / square))
        root = self.sides[which] * np.sqrt(left)
        return (A * D - B * root) / square, (B * D + A * root) / square


def _angle(along: Array, begin: Array, end: Array) -> Move:
    """Cosine and sine, up to a common factor, of the turn that brings a vector to another about an axis."""
    return begin @ end - (along @ begin) * (along @ end), along @ cross(begin, end)


def _moved(place: Array, line: JointAxis, move: Move, back: bool = False) -> Any:
    """A place that a joint moves."""
    if not line.turns:
        return place - move[0] * line.along if back else place + move[0] * line.along
    return line.point + _turned(place - line.point, line, move, back)


def _turned(vector: Array, line: JointAxis, move: Move, back: bool = False) -> Any:
    """A vector that a joint turns."""
    c, s = move
    size = np.sqrt(c * c + s * s)
    c, s = c / size, (-s if back else s) / size
    h = line.along @ vector
    return c * vector + ((1.0 - c) * h) * line.along + s * cross(line.along, vector)


def _square(vector: Array) -> Any:
    return vector @ vector
