"""Frames of a robot, each with a twist in its own axes, and how each follows from the next on the way to the platform.

Every link has a frame. The links of a piece hang together by joints: seen from the link that the piece moves with, the
frame of each other link follows over one or more hops. A hop says which components of a frame are free, and how the
others follow from the frame behind it. Rotations stand in hops alone: bodies have their matrices in own axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.closure.constraints import neutral_rotation
from parflex.maps.engine.small_matrices import (
    E3,
    all_turns,
    along,
    clean,
    dot,
    has_symbols,
    product,
    shift,
    turned,
    unit,
)
from parflex.maps.node_unknowns import NotCoveredError
from parflex.recursion.kinematics import Pose
from parflex.robot.substructures import PLANE, SPACE, CutConnection, CutRobot, CutStep
from parflex.spatial.linear import is_zero
from parflex.tree.tree import GROUND, Place, Tree

Array = np.ndarray
Row = dict[int, Any]  # a linear form: coefficients by the numbers of variables


@dataclass(eq=False)
class Hop:
    """How components of a frame follow: rows by the number of the variable; what is not in them is free."""

    rows: dict[int, Row]
    frame: list[int]  # all components of the frame that hops


@dataclass(eq=False)
class FrameTree:
    """Variables of all frames and other unknowns, and the hops between them."""

    width: int
    count: int = 0
    frames: dict[int, list[int]] = field(default_factory=dict)  # variables of the frames of links
    hops: list[Hop] = field(default_factory=list)
    rates: dict[int, Row] = field(default_factory=dict)  # of joints with one axis: their rate as a form, by link

    def new(self, count: int) -> list[int]:
        """Numbers of further variables."""
        self.count += count
        return list(range(self.count - count, self.count))


class FrameBuilder:
    """Walks the pieces of a cut robot; rotations and positions of links come from a pose over any scalar."""

    def __init__(self, cut: CutRobot, tree: Tree, loops: Sequence[Any], at: Pose) -> None:
        self.cut, self.tree, self.loops, self.at = cut, tree, loops, at
        self.planar = tree.planar
        self.used = PLANE if self.planar else SPACE
        self.made = FrameTree(len(self.used))
        self.modal: dict[int, list[int]] = {}
        self.plain = cut.robot.tree

    def build(self) -> FrameTree:
        """All frames and hops."""
        made = self.made
        for j in range(len(self.tree.links)):
            made.frames[j] = made.new(made.width)
        for entry in self.cut.modal:
            self.modal[entry.link] = made.new(len(entry.free))
        for piece in self.cut.pieces:
            for step in piece.steps:
                self._step(step)
        return made

    def axes(self, j: int) -> Array:
        """Own axes of the frame of a link, in those of the link."""
        return own_axes(self.plain, j)

    def world(self, j: int) -> tuple[Array, Array]:
        """Own axes and origin of a link in the world."""
        if j == GROUND:
            return E3, np.zeros(3)
        return dot(self.at.rotation[j], self.axes(j)), self.at.position[j]

    def variables(self, j: int) -> list[int] | None:
        """Of the frame of a link; None for the ground."""
        return None if j == GROUND else self.made.frames[j]

    # -- hops --------------------------------------------------------------------------------------------

    def _hop(
        self,
        frame: list[int],
        behind: list[int] | None,
        R: Array,
        p: Array,
        S: Array,
        more: dict[int, Array] | None = None,
    ) -> list[Row]:
        """From a frame to the one behind it: `R` turns axes of that one into own axes, `p` is the own origin there.

        `S` are the free motions in own axes; `more` are twists by further variables. Returns what the frame would be
        without its free motions.
        """
        X = shift(R, p)[np.ix_(self.used, self.used)]
        rigid: list[Row] = []
        for i in range(len(frame)):
            row: Row = {}
            for k, x in enumerate(X[i]):
                if behind is not None and not is_zero(x):
                    row[behind[k]] = x
            for variable, twist in (more or {}).items():
                if not is_zero(twist[self.used[i]]):
                    row[variable] = twist[self.used[i]]
            rigid.append(row)
        free = S[list(self.used)]
        units = [k for k in map(unit, free.T) if k is not None]
        rows = dict(zip(frame, rigid, strict=True))
        if len(set(units)) == free.shape[1]:
            for k in units:
                del rows[frame[k]]
        else:  # motions along several components at once have variables of their own
            for variable, column in zip(self.made.new(free.shape[1]), free.T, strict=True):
                for i, x in enumerate(column):
                    if not is_zero(x):
                        rows[frame[i]] = rows[frame[i]] | {variable: x}
        self.made.hops.append(Hop(rows, frame))
        return rigid

    def _between(self, behind: list[int] | None, offset: Array) -> list[int] | None:
        """A frame in the axes of the one behind it, its origin moved."""
        if behind is None or not any(not is_zero(x) for x in offset):
            return behind
        frame = self.made.new(self.made.width)
        self._hop(frame, behind, E3, offset, np.zeros((6, 0)))
        return frame

    def _step(self, step: CutStep) -> None:
        tie = step.tie
        if tie.joint is not None:
            self._joint(step, tie.joint)
        elif tie.closure is not None:
            self._closure(step, tie)
        else:
            self._node(step)

    def _joint(self, step: CutStep, j: int) -> None:
        """A joint of the tree, outwards or inwards."""
        link, plain = self.tree.links[j], self.plain.links[j]
        A, turn = self.axes(j), self.at.turned[j]
        d = self.at.local_position[j]  # of the moved frame, in axes of the parent
        S = np.concatenate([link.joint.S_v, link.joint.S_w])[:, list(step.tie.free)]
        if step.forward:
            Ap = E3 if step.source == GROUND else self.axes(step.source)
            frame, behind = self.made.frames[j], self._between(self.variables(step.source), dot(Ap.T, d))
            R = dot(dot(A.T, turn.T), dot(link.rotation.T, Ap))
            rigid = self._hop(frame, behind, R, np.zeros(3), turned(A.T, S))
        else:
            c = step.link
            Ac, side = self.axes(c), dot(link.rotation, A)
            own = self.made.frames[c]
            frame = self.made.new(self.made.width)
            self._hop(own, frame, dot(Ac.T, side), -dot(side.T, d), np.zeros((6, 0)))
            moved = S if plain.joint.one_axis or S.shape[1] == 6 or all_turns(S) else turned(turn, S)
            R = dot(A.T, dot(turn, A))
            rigid = self._hop(frame, self.variables(step.source), R, np.zeros(3), turned(A.T, moved))
        if plain.joint.one_axis and step.tie.size:
            k = unit(turned(A.T, S)[list(self.used)][:, 0])
            if k is None:  # a screw: its rate has a variable of its own, made last
                self.made.rates[j] = {self.made.count - 1: 1.0 if step.forward else -1.0}
            else:
                sign = float(turned(A.T, S)[list(self.used)][k, 0]) * (1.0 if step.forward else -1.0)
                form = {variable: -sign * x for variable, x in rigid[k].items()} | {frame[k]: sign}
                self.made.rates[j] = form

    def _node(self, step: CutStep) -> None:
        """A node of a body that is not cut: its motion has parts of the body's own coordinates."""
        tie = step.tie
        node = self.tree.links[tie.second].node
        assert node is not None
        free = next(m.free for m in self.cut.modal if m.link == tie.first)
        Phi = np.concatenate([node.Phi_d, node.Phi_r])[:, list(free)]
        A, An = self.axes(tie.first), dot(self.tree.links[tie.second].rotation, self.axes(tie.second))
        if step.forward:
            R, p, moved = dot(An.T, A), dot(A.T, node.r0), turned(An.T, Phi)
        else:
            R, p = dot(A.T, An), -dot(An.T, node.r0)
            moved = -product(shift(dot(A.T, An), p), turned(An.T, Phi))
        more = dict(zip(self.modal[tie.first], moved.T, strict=True))
        self._hop(self.made.frames[step.link], self.variables(step.source), R, p, np.zeros((6, 0)), more)

    # -- closures ----------------------------------------------------------------------------------------

    def _closure(self, step: CutStep, tie: CutConnection) -> None:
        """A closure, from its first place to the second or back."""
        assert tie.closure is not None
        loop, hinge = self.loops[tie.closure], self.cut.hinges[tie.closure]
        own, other = (loop.second, loop.first) if step.forward else (loop.first, loop.second)
        A, B = self.place_axes(own), self.place_axes(other)  # places in own axes of their links
        S, led = np.concatenate([hinge.S_v, hinge.S_w]), np.concatenate([hinge.guided_v, hinge.guided_w])
        if has_symbols(loop.u1) or has_symbols(loop.u2) or has_symbols(loop.translations):
            raise NotCoveredError("a closure whose direction depends on the design")
        frame = self._moved_out(self.made.frames[step.link], dot(self.own(own).T, own.position))
        behind, at = self.variables(step.source), dot(self.own(other).T, other.position)
        motions = [(S, True), (led, False)] if step.forward else [(led, True), (S, False)]
        motions = [(one, near) for one, near in motions if one.shape[1]]
        if not motions:
            self._hop(frame, self._between(behind, at), dot(A, B.T), np.zeros(3), np.zeros((6, 0)))
            return
        self._turning(step, frame, motions, A, B, (behind, at))

    def _turning(
        self, step: CutStep, frame: list[int], motions: list[tuple[Array, bool]], A: Array, B: Array, back: Any
    ) -> None:
        """The hops of a closure that leaves motions free: in axes of the own place, then in those of the other."""
        behind, at = back
        mine = next((one for one, near in motions if near), np.zeros((6, 0)))
        theirs = next((one for one, near in motions if not near), np.zeros((6, 0)))
        R_own, p_own = self.world(step.link)
        R_other, p_other = self.world(step.source)
        relative = dot(R_own.T, R_other)  # of own axes, from axes of the other link
        place_own, place_other = self._places(step)
        gap = dot(R_other.T, (p_own + dot(R_own, place_own)) - (p_other + dot(R_other, place_other)))
        slides = np.concatenate([one[:3] for one, _ in motions], axis=1)
        where = at + gap if slides.any() else at  # of the own place, in axes of the other link
        S_own, S_other = turned(A, mine), turned(B, theirs)
        if not theirs.shape[1]:
            E, S_own = along(S_own, self.planar)
            front = self._rotated(frame, E)
            self._hop(front, self._between(behind, where), dot(E.T, relative), np.zeros(3), S_own)
            return
        if not mine.shape[1]:  # all motions along axes of the other place
            E, S_other = along(S_other, self.planar)
            front = self.made.new(self.made.width)
            self._hop(frame, front, dot(relative, E), np.zeros(3), np.zeros((6, 0)))
            self._hop(front, self._between(behind, where), E.T, np.zeros(3), S_other)
            return
        E, S_other = along(S_other, self.planar)  # a frame in axes of the other place between the two
        middle = self.made.new(self.made.width)
        if self._universal(motions):
            u_own, u_other = dot(R_own, S_own[3:, 0]), dot(R_other, _axis_before(S_other, E))
            third = np.cross(u_own, u_other)
            M = np.stack([u_other, u_own, third], axis=1)  # the cross of the joint
            F, S_first = along(S_own, self.planar)
            front = self._rotated(frame, F)
            self._hop(front, middle, dot(dot(F.T, R_own.T), M), np.zeros(3), S_first)
            self._hop(middle, self._between(behind, where), dot(M.T, R_other), np.zeros(3), np.eye(6)[:, [3]])
            return
        self._hop(frame, middle, dot(relative, E), np.zeros(3), S_own)
        self._hop(middle, self._between(behind, where), E.T, np.zeros(3), S_other)

    def _universal(self, motions: list[tuple[Array, bool]]) -> bool:
        return all(one.shape[1] == 1 and not one[:3].any() for one, _ in motions)

    def _places(self, step: CutStep) -> tuple[Array, Array]:
        loop = self.loops[step.tie.closure or 0]
        own, other = (loop.second, loop.first) if step.forward else (loop.first, loop.second)
        return dot(self.own(own).T, own.position), dot(self.own(other).T, other.position)

    def own(self, place: Place) -> Array:
        """Own axes of the link of a place, in those of the link."""
        return E3 if place.link == GROUND else self.axes(place.link)

    def place_axes(self, place: Place) -> Array:
        """Axes of a place in own axes of its link."""
        return dot(self.own(place).T, place.rotation)

    def _moved_out(self, own: list[int], offset: Array) -> list[int]:
        """A frame at a place of a link, in its axes, that the frame of the link follows."""
        if not any(not is_zero(x) for x in offset):
            return own
        frame = self.made.new(self.made.width)
        self._hop(own, frame, E3, -offset, np.zeros((6, 0)))
        return frame

    def _rotated(self, own: list[int], E: Array) -> list[int]:
        """A frame in axes E of another one, that the other follows."""
        if np.array_equal(E, E3):
            return own
        frame = self.made.new(self.made.width)
        self._hop(own, frame, E, np.zeros(3), np.zeros((6, 0)))
        return frame


def own_axes(tree: Tree, j: int) -> Array:
    """Axes of the frame of a link, in those of the link: its own; of a planar robot those of its plane."""
    return clean(neutral_rotation(tree, Place(j, E3, np.zeros(3))).T) if tree.planar else E3


def _axis_before(S: Array, E: Array) -> Array:
    """The axis of the one motion, in the axes before they were turned by E."""
    return dot(E, S[3:, 0])
