"""Accelerations of the links of a robot cut into pieces, as affine functions of the unknowns.

A piece that moves freely is written in one set of axes, those of the link that it moves with. What stands on the
ground is written in the axes of each link, as an arm is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.models.forms.in_pieces.piece_rates import Rates, hinge_pose
from parflex.records import Record
from parflex.recursion.kinematics import Pose
from parflex.robot.substructures import CutStep, CutSubstructure, Substructures
from parflex.spatial.rotations import cross, hat
from parflex.tree.tree import GROUND

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Carried(Record):
    """A frame at an instant: its acceleration is a + J_v x, al + J_w x with x those unknowns that are its `columns`.

    All is in axes that need not be its own: `turned` takes vectors of the frame to them (None: they are its own). A
    frame that hangs on a joint behind it knows the frame in that joint, turning with it, and its `arm` from there in
    its own axes: what has to be moved along the arm may be cheaper to move than the motion.
    """

    turned: Array | None
    w: Array
    a: Array
    al: Array
    J_v: Array
    J_w: Array
    columns: tuple[int, ...]
    anchor: Carried | None = None
    arm: Array | None = None

    @property
    def J(self) -> Array:
        """Both, one below the other."""
        return np.vstack([self.J_v, self.J_w])

    def out(self, vectors: Array) -> Array:
        """Vectors of the frame in the axes used."""
        return vectors if self.turned is None else self.turned @ vectors

    def offset(self, p: Array, turned: Array | None) -> Carried:
        """Of a frame fixed at p, in the same axes."""
        a = self.a + cross(self.al, p) + hat(self.w) @ hat(self.w) @ p
        return Carried(turned, self.w, a, self.al, self.J_v - hat(p) @ self.J_w, self.J_w, self.columns)

    def in_axes(self, R: Array) -> Carried:
        """In axes turned by R, which become those of the frame."""
        return Carried(None, R.T @ self.w, R.T @ self.a, R.T @ self.al, R.T @ self.J_v, R.T @ self.J_w, self.columns)

    def behind(self, S_v: Array, S_w: Array, rate: Array, slots: slice, absolute: bool) -> Carried:
        """Of a frame behind a joint here; `S_v`, `S_w` in the axes used."""
        slide, turn = S_v @ rate, S_w @ rate
        a, al = self.a + 2 * cross(self.w, slide), self.al + cross(self.w, turn)
        return Carried(self.turned, self.w + turn, a, al, *self._moved(S_v, S_w, slots, absolute, 1.0))

    def before(self, S_v: Array, S_w: Array, rate: Array, slots: slice, absolute: bool) -> Carried:
        """Of a frame before a joint, behind which this one is."""
        slide, turn = S_v @ rate, S_w @ rate
        w = self.w - turn
        J = self._moved(S_v, S_w, slots, absolute, -1.0)
        return Carried(self.turned, w, self.a - 2 * cross(w, slide), self.al - cross(w, turn), *J)

    def _moved(
        self, S_v: Array, S_w: Array, slots: slice, absolute: bool, sign: float
    ) -> tuple[Array, Array, tuple[int, ...]]:
        """J behind a joint; with `absolute` its unknowns are the turning of the frame itself about its axes."""
        J_v, J_w, columns, own = self.widened(slots)
        width = len(own)
        if absolute:
            # about all axes of a ball nothing is left of the turning before it
            J_w = np.zeros(J_w.shape, dtype=object) if width == 3 else J_w - np.outer(S_w[:, 0], S_w[:, 0] @ J_w)
            J_w[:, own] = np.eye(3) if width == 3 else S_w
            return J_v, J_w, columns
        J_v[:, own], J_w[:, own] = sign * S_v[:, :width], sign * S_w[:, :width]
        return J_v, J_w, columns

    def widened(self, slots: slice) -> tuple[Array, Array, tuple[int, ...], list[int]]:
        """J_v, J_w and their columns with those of further unknowns, and where these stand."""
        added = [k for k in range(slots.start, slots.stop) if k not in self.columns]
        columns = (*self.columns, *added)
        zero = np.zeros((3, len(added)))
        J_v, J_w = (np.hstack([part, zero]).astype(object) for part in (self.J_v, self.J_w))
        return J_v, J_w, columns, [columns.index(k) for k in range(slots.start, slots.stop)]


JointRow = tuple[tuple[int, ...], Array]  # unknowns, and what they give each


@dataclass(frozen=True, eq=False, repr=False)
class PieceMotion(Record):
    """Accelerations of all links, and of the joints' free rates as rows over some of the unknowns."""

    links: dict[int, Carried]
    joints: dict[int, JointRow]


def accelerations(form: Substructures, at: Pose, rates: Rates) -> PieceMotion:
    """Of all links and joints."""
    carried: dict[int, Carried] = {}
    joints: dict[int, JointRow] = {}
    for piece in form.pieces:
        carried[piece.reference] = _reference(form, at, rates, piece)
        for step in piece.steps:
            source = carried[step.source]
            carried[step.link] = _stepped(form, at, rates, step, source, piece.reference != GROUND)
            if step.tie.joint is not None:
                joints |= _joint_rows(form, step, source, carried[step.link])
    return PieceMotion(carried, joints)


def _joint_rows(form: Substructures, step: CutStep, source: Carried, target: Carried) -> dict[int, JointRow]:
    """Accelerations of the free rates of a joint: unknowns of their own, or what one link turns beyond the other."""
    link = form.robot.tree.links[step.tie.second]
    own = [link.v.start + k for k in step.tie.free]
    if step.link in form.absolute:
        moved = target if step.forward else source
        axis = moved.out(link.joint.S_w)[:, 0]
        before, behind = (source, target) if step.forward else (target, source)
        columns = tuple(sorted({*behind.columns, *before.columns}))
        return {own[0]: (columns, axis @ (_over(columns, behind) - _over(columns, before)))}
    slots = range(step.slots.start, step.slots.stop)
    return {k: ((slot,), np.ones(1)) for k, slot in zip(own, slots, strict=True)}


def _over(columns: tuple[int, ...], carried: Carried) -> Array:
    """J_w over more unknowns than its own."""
    whole = np.zeros((3, len(columns)), dtype=object)
    whole[:, [columns.index(k) for k in carried.columns]] = carried.J_w
    return whole


def _reference(form: Substructures, at: Pose, rates: Rates, piece: CutSubstructure) -> Carried:
    columns, zero = tuple(range(piece.slots.start, piece.slots.stop)), np.zeros(3)
    J = np.zeros((6, len(columns)))
    if piece.reference == GROUND:
        return Carried(None, zero, -form.robot.tree.gravity, zero, J[:3], J[3:], columns)
    J[list(form.used), range(len(columns))] = 1.0
    turned, w = None, rates.w(piece.reference)
    if piece.reference in form.loose:
        turned, w = at.local_rotation[piece.reference], rates.before[piece.reference]
    return Carried(turned, w, zero, zero, J[:3], J[3:], columns)


def _stepped(form: Substructures, at: Pose, rates: Rates, step: CutStep, source: Carried, aligned: bool) -> Carried:
    if step.tie.node:
        return (_on_node if step.forward else _off_node)(form, at, rates, step, source, aligned)
    across, absolute = _forward if step.forward else _backward, step.link in form.absolute
    if step.tie.joint is not None:
        j, link, free = step.tie.joint, form.robot.tree.links[step.tie.joint], list(step.tie.free)
        S_v, S_w, rate = link.joint.S_v[:, free], link.joint.S_w[:, free], rates.qd[link.v][free]
        R, p = at.local_rotation[j], at.local_position[j]
        return across(source, R, p, S_v, S_w, rate, step.slots, aligned, absolute)
    assert step.tie.closure is not None
    h = form.hinges[step.tie.closure]
    none, rate = slice(0, 0), rates.hinge[step.tie.closure]
    ends = (h.loop.first, h.loop.second) if step.forward else (h.loop.second, h.loop.first)
    fixed = np.zeros((3, 0)), np.zeros((3, 0)), np.zeros(0), none, aligned
    here = _forward(source, ends[0].rotation, ends[0].position, *fixed)
    R, p = hinge_pose(at, h)
    if not h.guided:
        there = across(here, R, p, h.S_v, h.S_w, rate, step.slots, aligned, absolute)
    else:  # two joints in a row, passed in the order in which the step meets them
        split = step.slots.start + h.guided
        guided = np.eye(3), p, h.guided_v, h.guided_w, rate[: h.guided], slice(step.slots.start, split), aligned
        own = R, np.zeros(3), h.S_v, h.S_w, rate[h.guided :], slice(split, step.slots.stop), aligned, absolute
        first, last = (guided, own) if step.forward else (own, guided)
        there = across(across(here, *first), *last)
    return _backward(there, ends[1].rotation, ends[1].position, *fixed)


def _node_motion(
    form: Substructures, at: Pose, rates: Rates, step: CutStep
) -> tuple[Array, Array, Array, Array, Array]:
    """Of a node against its body, in the axes of the body: Phi_d, Phi_r turned, the two motions, and L_dot's part."""
    tree = form.robot.tree
    body, node = tree.links[step.tie.first], tree.links[step.tie.second].node
    assert node is not None
    e, ed = at.q[body.e], rates.qd[body.e_v]
    free = next(list(modal.free) for modal in form.modal if modal.link == step.tie.first)
    turns = node.L(e) @ node.Phi_r
    return node.Phi_d[:, free], turns[:, free], node.Phi_d @ ed, turns @ ed, node.L_drift(e, ed)


def _on_node(form: Substructures, at: Pose, rates: Rates, step: CutStep, source: Carried, aligned: bool) -> Carried:
    """A node of a body that is not cut, which moves with it and by its coordinates."""
    slides, turns, slide, turn, drift = (source.out(part) for part in _node_motion(form, at, rates, step))
    moved = source.offset(source.out(at.local_position[step.link]), source.turned)
    a, al = moved.a + 2 * cross(source.w, slide), moved.al + cross(source.w, turn) + drift
    J_v, J_w, columns, own = moved.widened(step.slots)
    J_v[:, own] += slides
    J_w[:, own] += turns
    R = at.local_rotation[step.link]
    bent = Carried(source.out(R) if aligned else None, source.w + turn, a, al, J_v, J_w, columns)
    return bent if aligned else replace(bent, turned=None).in_axes(R)


def _off_node(form: Substructures, at: Pose, rates: Rates, step: CutStep, source: Carried, aligned: bool) -> Carried:
    """The body that carries a node, from the node."""
    node = step.source
    back = at.local_rotation[node].T
    here = replace(source, turned=source.out(back)) if aligned else source.in_axes(back)
    slides, turns, slide, turn, drift = (here.out(part) for part in _node_motion(form, at, rates, step))
    w = here.w - turn
    a, al = here.a - 2 * cross(w, slide), here.al - cross(w, turn) - drift
    J_v, J_w, columns, own = here.widened(step.slots)
    J_v[:, own] -= slides
    J_w[:, own] -= turns
    return Carried(here.turned, w, a, al, J_v, J_w, columns).offset(-here.out(at.local_position[node]), here.turned)


def _forward(
    source: Carried,
    R: Array,
    p: Array,
    S_v: Array,
    S_w: Array,
    rate: Array,
    slots: slice,
    aligned: bool,
    absolute: bool = False,
) -> Carried:
    """Over a frame at p, turned by R in the source, and a joint there."""
    if aligned:
        turned = source.out(R)
        moved = source.offset(source.out(p), turned)
        return moved.behind(turned @ S_v, turned @ S_w, rate, slots, absolute)
    return source.offset(p, None).in_axes(R).behind(S_v, S_w, rate, slots, absolute)


def _backward(
    source: Carried,
    R: Array,
    p: Array,
    S_v: Array,
    S_w: Array,
    rate: Array,
    slots: slice,
    aligned: bool,
    absolute: bool = False,
) -> Carried:
    """To the frame in which the source is behind a joint at p, turned by R."""
    if aligned:
        turned = source.out(R.T)
        anchor = replace(source.before(source.out(S_v), source.out(S_w), rate, slots, absolute), turned=turned)
        return replace(anchor.offset(-(turned @ p), turned), anchor=anchor, arm=-p)
    moved = source.before(S_v, S_w, rate, slots, absolute).in_axes(R.T)
    return moved.offset(-p, None)
