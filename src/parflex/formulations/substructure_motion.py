"""Compute rates and accelerations of the substructures.

Independent rates determine the twists of links and the rates of beams and hinges: twists propagate from the ground over
joints, beams and closures with known rates; a beam with two known ends gives its own rates.

Accelerations of links are affine functions of the unknowns. A free piece is written in the axes of the link that it
moves with, the piece on the ground in the axes of each link, as an arm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from parflex.bodies.elastic import Node
from parflex.errors import SingularError
from parflex.records import Record
from parflex.recursion.kinematics import Pose
from parflex.robot.substructures import ClosureJoint, CutBeam, CutStep, CutSubstructure, DependentBeam, Substructures
from parflex.spatial.linear import shared_call, solve
from parflex.spatial.rotations import cross, hat
from parflex.tree.tree import GROUND, Place

Array = np.ndarray
JointRow = tuple[tuple[int, ...], Array]  # unknowns, and what they give each
Twist = tuple[Array, Array]
Tip = tuple[Array, Array, Array]  # angular velocity in the axes of the root, then a twist


class FreeMotions(NamedTuple):
    """Free motions of a joint per rate, with rates and unknowns; `absolute` unknowns are the rotation of the frame."""

    S_v: Array
    S_w: Array
    rate: Array
    slots: slice
    absolute: bool = False

    def in_axes(self, R: Array) -> FreeMotions:
        """Return the motions in axes to which R takes vectors."""
        return self._replace(S_v=R @ self.S_v, S_w=R @ self.S_w)


STILL: Twist = (np.zeros(3), np.zeros(3))
FIXED = FreeMotions(np.zeros((3, 0)), np.zeros((3, 0)), np.zeros(0), slice(0, 0))


@dataclass(frozen=True, eq=False, repr=False)
class MovingFrame(Record):
    """A frame at an instant: its acceleration is a + J_v x, al + J_w x, x the unknowns `columns`.

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
    anchor: MovingFrame | None = None
    arm: Array | None = None

    @property
    def J(self) -> Array:
        """J_v over J_w."""
        return np.vstack([self.J_v, self.J_w])

    def out(self, vectors: Array) -> Array:
        """Return vectors of the frame in the axes used."""
        return vectors if self.turned is None else self.turned @ vectors

    def offset(self, p: Array, turned: Array | None) -> MovingFrame:
        """Return a frame fixed at p, in the same axes."""
        a = self.a + cross(self.al, p) + hat(self.w) @ hat(self.w) @ p
        return MovingFrame(turned, self.w, a, self.al, self.J_v - hat(p) @ self.J_w, self.J_w, self.columns)

    def in_axes(self, R: Array) -> MovingFrame:
        """Return the frame in axes rotated by R, which become its own."""
        w, a, al, J_v, J_w = (R.T @ part for part in (self.w, self.a, self.al, self.J_v, self.J_w))
        return MovingFrame(None, w, a, al, J_v, J_w, self.columns)

    def relative(self, sign: float, v_rel: Array, w_rel: Array, drift: Any = 0.0) -> tuple[Array, Array, Array]:
        """Return w, a, al of a frame with these relative velocities (1), or with their negatives (-1)."""
        w = self.w + sign * w_rel
        before = self.w if sign > 0 else w
        return w, self.a + 2 * sign * cross(before, v_rel), self.al + sign * (cross(before, w_rel) + drift)

    def across(self, joint: FreeMotions, sign: float) -> MovingFrame:
        """Return the frame after a joint (1), or before a joint (-1)."""
        J_v, J_w, columns, places = self.widened(joint.slots)
        width, S_w = len(places), joint.S_w
        if joint.absolute:
            # about all axes of a ball nothing is left of the turning before it
            J_w = np.zeros(J_w.shape, dtype=object) if width == 3 else J_w - np.outer(S_w[:, 0], S_w[:, 0] @ J_w)
            J_w[:, places] = np.eye(3) if width == 3 else S_w
        else:
            J_v[:, places], J_w[:, places] = sign * joint.S_v[:, :width], sign * S_w[:, :width]
        motion = self.relative(sign, joint.S_v @ joint.rate, S_w @ joint.rate)
        return MovingFrame(self.turned, *motion, J_v, J_w, columns)

    def widened(self, slots: slice) -> tuple[Array, Array, tuple[int, ...], list[int]]:
        """Return J_v, J_w and their columns with additional unknowns, and the places of these."""
        added = [k for k in range(slots.start, slots.stop) if k not in self.columns]
        columns = (*self.columns, *added)
        zero = np.zeros((3, len(added)))
        J_v, J_w = (np.hstack([part, zero]).astype(object) for part in (self.J_v, self.J_w))
        return J_v, J_w, columns, [columns.index(k) for k in range(slots.start, slots.stop)]


class SubstructureMotion:
    """Accelerations of all links, and of the free rates of joints as rows over some unknowns."""

    def __init__(self, form: Substructures, at: Pose, rates: SubstructureRates) -> None:
        self.form, self.at, self.rates, self.tree = form, at, rates, form.robot.tree
        self.links: dict[int, MovingFrame] = {}
        self.joints: dict[int, JointRow] = {}
        for piece in form.pieces:
            self.aligned = piece.reference != GROUND  # links of a piece are written in the axes of one of them
            self.links[piece.reference] = self._reference(piece)
            for step in piece.steps:
                source = self.links[step.source]
                self.links[step.link] = self._across(step, source)
                if step.tie.joint is not None:
                    self.joints |= self._joint_rows(step, source, self.links[step.link])

    def _reference(self, piece: CutSubstructure) -> MovingFrame:
        columns, zero, link = tuple(range(piece.slots.start, piece.slots.stop)), np.zeros(3), piece.reference
        J = np.zeros((6, len(columns)))
        if link == GROUND:
            return MovingFrame(None, zero, -self.tree.gravity, zero, J[:3], J[3:], columns)
        J[list(self.form.used), range(len(columns))] = 1.0
        turned, w = None, self.rates.w(link)
        if link in self.form.loose:
            turned, w = self.at.local_rotation[link], self.rates.before[link]
        return MovingFrame(turned, w, zero, zero, J[:3], J[3:], columns)

    def _joint_rows(self, step: CutStep, source: MovingFrame, target: MovingFrame) -> dict[int, JointRow]:
        """Return accelerations of the free rates of a joint: unknowns, or relative rotations of links."""
        link = self.tree.links[step.tie.second]
        joint_rates = [link.v.start + k for k in step.tie.free]
        if step.link in self.form.absolute:
            before, behind = (source, target) if step.forward else (target, source)
            axis = (target if step.forward else source).out(link.joint.S_w)[:, 0]
            columns = tuple(sorted({*behind.columns, *before.columns}))
            return {joint_rates[0]: (columns, axis @ (_over(columns, behind) - _over(columns, before)))}
        slots = range(step.slots.start, step.slots.stop)
        return {k: ((slot,), np.ones(1)) for k, slot in zip(joint_rates, slots, strict=True)}

    def _across(self, step: CutStep, source: MovingFrame) -> MovingFrame:
        if step.tie.node:
            return self._over_node(step, source)
        across, absolute = self._forward if step.forward else self._backward, step.link in self.form.absolute
        if step.tie.joint is not None:
            j, link, free = step.tie.joint, self.tree.links[step.tie.joint], list(step.tie.free)
            S_v, S_w, rate = link.joint.S_v[:, free], link.joint.S_w[:, free], self.rates.qd[link.v][free]
            joint = FreeMotions(S_v, S_w, rate, step.slots, absolute)
            return across(source, self.at.local_rotation[j], self.at.local_position[j], joint)
        assert step.tie.closure is not None
        h, rate = self.form.hinges[step.tie.closure], self.rates.hinge[step.tie.closure]
        ends = (h.loop.first, h.loop.second) if step.forward else (h.loop.second, h.loop.first)
        frame = self._forward(source, ends[0].rotation, ends[0].position, FIXED)
        R, p = hinge_pose(self.at, h)
        split = step.slots.start + h.guided
        second = FreeMotions(h.S_v, h.S_w, rate[h.guided :], slice(split, step.slots.stop), absolute)
        if not h.guided:
            frame = across(frame, R, p, second)
        else:  # two joints in a row, passed in the order in which the step meets them
            guided = FreeMotions(h.guided_v, h.guided_w, rate[: h.guided], slice(step.slots.start, split))
            row: list[tuple[Array, Array, FreeMotions]] = [(np.eye(3), p, guided), (R, np.zeros(3), second)]
            for R, p, joint in row if step.forward else row[::-1]:
                frame = across(frame, R, p, joint)
        return self._backward(frame, ends[1].rotation, ends[1].position, FIXED)

    def _forward(self, source: MovingFrame, R: Array, p: Array, joint: FreeMotions) -> MovingFrame:
        """Return the frame after a joint at p, rotated by R in the source."""
        if not self.aligned:
            return source.offset(p, None).in_axes(R).across(joint, 1.0)
        turned = source.out(R)
        return source.offset(source.out(p), turned).across(joint.in_axes(turned), 1.0)

    def _backward(self, source: MovingFrame, R: Array, p: Array, joint: FreeMotions) -> MovingFrame:
        """Return the frame in which the source is after a joint at p, rotated by R."""
        if not self.aligned:
            return source.across(joint, -1.0).in_axes(R.T).offset(-p, None)
        turned = source.out(R.T)
        before = source.across(joint if source.turned is None else joint.in_axes(source.turned), -1.0)
        anchor = replace(before, turned=turned)
        return replace(anchor.offset(-(turned @ p), turned), anchor=anchor, arm=-p)

    def _node_motion(self, step: CutStep) -> tuple[Array, Array, Array, Array, Array]:
        """Return Phi_d, rotated Phi_r, the two motions and the drift of L of a node, in body axes."""
        body, node = self.tree.links[step.tie.first], self.tree.links[step.tie.second].node
        assert node is not None
        e, ed = self.at.q[body.e], self.rates.qd[body.e_v]
        free = next(list(modal.free) for modal in self.form.modal if modal.link == step.tie.first)
        rotations = node.L(e) @ node.Phi_r
        return node.Phi_d[:, free], rotations[:, free], node.Phi_d @ ed, rotations @ ed, node.L_drift(e, ed)

    def _over_node(self, step: CutStep, source: MovingFrame) -> MovingFrame:
        """Return the frame of a node of an uncut body, or the body from its node."""
        at, sign = self.at, 1.0 if step.forward else -1.0
        if step.forward:
            frame = source.offset(source.out(at.local_position[step.link]), source.turned)
        else:
            back = at.local_rotation[step.source].T
            frame = replace(source, turned=source.out(back)) if self.aligned else source.in_axes(back)
        translations, rotations, v_rel, w_rel, drift = (frame.out(part) for part in self._node_motion(step))
        J_v, J_w, columns, places = frame.widened(step.slots)
        J_v[:, places] += sign * translations
        J_w[:, places] += sign * rotations
        moved = MovingFrame(frame.turned, *frame.relative(sign, v_rel, w_rel, drift), J_v, J_w, columns)
        if not step.forward:
            return moved.offset(-frame.out(at.local_position[step.source]), frame.turned)
        R = at.local_rotation[step.link]
        return replace(moved, turned=source.out(R)) if self.aligned else moved.in_axes(R)


def _over(columns: tuple[int, ...], carried: MovingFrame) -> Array:
    """Return J_w over more unknowns than its own."""
    expanded = np.zeros((3, len(columns)), dtype=object)
    expanded[:, [columns.index(k) for k in carried.columns]] = carried.J_w
    return expanded


class SubstructureRates:
    """Twists of links, all rates, rates of closures (`hinge`), rotation of tips in axes of roots (`before`)."""

    def __init__(self, form: Substructures, at: Pose, independent: Array) -> None:
        tree = form.robot.tree
        self.form, self.at, self.tree = form, at, tree
        self.qd: Array = np.zeros(tree.n, dtype=object)
        self.qd[form.partition.independent] = independent
        self.known = [k not in set(form.partition.dependent) for k in range(tree.n)]
        self.whole = {modal.link for modal in form.modal}  # flexible bodies that are not cut
        self.twists: dict[int, Twist] = {GROUND: STILL}
        self.before: dict[int, Array] = {}
        self.hinge: dict[int, Array] = {c: np.zeros(0) for c, h in enumerate(form.hinges) if not h.size}
        while len(self.twists) <= len(tree.links) or not all(self.known):
            if not (self._links() or self._beams() or self._closures()):
                raise SingularError("the rates of the robot do not follow from the independent ones", key="closure")
        self.hinge |= {c: self._hinge_rate(c) for c in range(len(form.hinges)) if c not in self.hinge}
        if all(isinstance(x, (int, float)) for x in self.qd):
            self.qd = self.qd.astype(float)
        for beam in form.beams:
            if beam.tip not in self.before:
                self.before[beam.tip] = self._out(beam.tip, self.w(beam.tip))

    def w(self, link: int) -> Array:
        """Return the angular velocity of a link."""
        return self.twists[link][1]

    def _links(self) -> bool:
        """Propagate over joints with known rates and nodes of uncut bodies, outwards and back."""
        progress = False
        for j, link in enumerate(self.tree.links):
            cut = link.node is not None and link.parent not in self.whole
            if cut or (j in self.twists) == (link.parent in self.twists) or not all(self.known[link.v]):
                continue
            if j in self.twists:
                self.twists[link.parent] = self._to_parent(j, self.twists[j])
            else:
                self.twists[j] = self._to_child(j, self.twists[link.parent])
            progress = True
        return progress

    def _to_child(self, j: int, twist: Twist) -> Twist:
        """Propagate over the joint or node of a link."""
        link, (v, w) = self.tree.links[j], twist
        if link.node is not None:
            _, v, w = _to_tip(link.node, *self._bent(j), v, w)
            return v, w
        rate, v = self.qd[link.v], self._into(j, v + cross(w, self.at.local_position[j]))
        return v + link.joint.S_v @ rate, self._into(j, w) + link.joint.S_w @ rate

    def _to_parent(self, j: int, twist: Twist, moving: bool = True) -> Twist:
        """Propagate back over the joint or node of a link, moving or fixed."""
        link, (v, w) = self.tree.links[j], twist
        if link.node is not None:
            e, ed, p, mounting, turned = self._bent(j)
            return _to_root(link.node, e, ed if moving else np.zeros(len(ed)), p, mounting, turned, v, w)
        rate: Any = self.qd[link.v] if moving else np.zeros(len(link.joint.rate_labels))
        w = self._out(j, w - link.joint.S_w @ rate)
        return self._out(j, v - link.joint.S_v @ rate) - cross(w, self.at.local_position[j]), w

    def _bent(self, j: int) -> tuple[Array, Array, Array, Array, Array]:
        """Return coordinates and rates of the body of a node, and the place of the node."""
        link = self.tree.links[j]
        body = self.tree.links[link.parent]
        return self.at.q[body.e], self.qd[body.e_v], self.at.local_position[j], link.rotation, self.at.turned[j]

    def _into(self, j: int, vector: Array) -> Array:
        return self.at.from_parent(self.tree, j, vector)

    def _out(self, j: int, vector: Array) -> Array:
        return self.at.to_parent(self.tree, j, vector)

    def _beams(self) -> bool:
        """Propagate over beams with known rates; compute rates of beams with known ends."""
        progress = False
        for beam in self.form.beams:
            rates, tip = self.tree.links[beam.link].e_v, beam.form.body.nodes["tip"]
            known, from_root, from_tip = all(self.known[rates]), beam.link in self.twists, beam.tip in self.twists
            if known and from_root and not from_tip:
                motion = (*self._bent(beam.tip), *self.twists[beam.link])
                self.before[beam.tip], v, w = shared_call(partial(_to_tip, tip), ("to tip", beam.body), *motion)
                self.twists[beam.tip] = (v, w)
            elif known and from_tip and not from_root:
                motion = (*self._bent(beam.tip), *self.twists[beam.tip])
                v, w = shared_call(partial(_to_root, tip), ("to root", beam.body), *motion)
                self.twists[beam.link] = (v, w)
            elif not known and from_root and from_tip:
                ends = slice(rates.start, rates.start + beam.ends)
                self.qd[ends] = self._from_ends(beam, self.twists[beam.tip])
                self.known[ends] = [True] * beam.ends
            else:
                continue
            progress = True
        return progress

    def _from_ends(self, beam: CutBeam, tip: Twist) -> Array:
        def bent(e: Array, mounting: Array, turned: Array, *twists: Array) -> tuple[Array]:
            at_tip = [mounting @ (turned @ part) for part in twists[2:]]
            return (beam.form.elastic_rates(e) @ np.concatenate([*twists[:2], *at_tip]),)

        e, mounting = self.at.q[self.tree.links[beam.link].e], self.tree.links[beam.tip].rotation
        arguments = (e, mounting, self.at.turned[beam.tip], *self.twists[beam.link], *tip)
        return shared_call(bent, ("from ends", beam.body), *arguments)[0]

    def _closures(self) -> bool:
        """Propagate over closures: welds at once, hinges once their rotation is known from the beam."""
        for dependent in self.form.given:
            h = self.form.hinges[dependent.closure]
            near, far = (h.loop.first, h.loop.second) if dependent.from_first else (h.loop.second, h.loop.first)
            if not h.size:
                for a, b in ((near, far), (far, near)):
                    if a.link in self.twists and b.link not in self.twists:
                        self.twists[b.link] = _to_link(b, self._across(dependent, self._of(a), a is h.loop.first))
                        return True
            beam = self.form.beams[dependent.beam]
            ready = near.link in self.twists and beam.link in self.twists and far.link not in self.twists
            if h.size and ready:
                self._solve_hinge_rates(dependent, beam, near, far)
                return True
        return False

    def _of(self, place: Place) -> Twist:
        v, w = self.twists[place.link]
        return place.rotation.T @ (v + cross(w, place.position)), place.rotation.T @ w

    def _across(self, dependent: DependentBeam, twist: Twist, from_first: bool, rate: Array | None = None) -> Twist:
        """Propagate from one place of a closure to the other."""
        h, (v, w) = self.form.hinges[dependent.closure], twist
        R, rho = hinge_pose(self.at, h)
        guided, rest = np.split(np.zeros(h.size) if rate is None else rate, [h.guided])
        v_rel, w_rel, guided_v, guided_w = h.S_v @ rest, h.S_w @ rest, h.guided_v @ guided, h.guided_w @ guided
        if from_first:
            return R.T @ (v + cross(w, rho) + guided_v) + v_rel, R.T @ (w + guided_w) + w_rel
        w = R @ (w - w_rel) - guided_w
        return R @ (v - v_rel) - guided_v - cross(w, rho), w

    def _solve_hinge_rates(self, dependent: DependentBeam, beam: CutBeam, near: Place, far: Place) -> None:
        """Compute the rates of a hinge from the independent coordinates of the beam, then propagate."""
        h, kept, first = self.form.hinges[dependent.closure], list(dependent.kept), dependent.from_first
        base, link = self._of(near), self.tree.links[beam.link]
        held_twist = _to_link(far, self._across(dependent, base, first))
        held = self._from_ends(beam, self._propagate_inwards(held_twist, far.link, beam.tip, True))
        matrix = []
        rates = beam.form.elastic_rates(self.at.q[link.e])[:, 6:]
        for unit in np.eye(h.size):
            unit_twist = _to_link(far, self._across(dependent, STILL, first, unit))
            end = self._propagate_inwards(unit_twist, far.link, beam.tip, False)
            matrix.append((rates @ np.concatenate([self._out(beam.tip, part) for part in end]))[kept])
        rate = solve(np.array(matrix).T, self.qd[link.e_v][kept] - held[kept])
        self.hinge[dependent.closure] = rate
        self.twists[far.link] = _to_link(far, self._across(dependent, base, first, rate))

    def _propagate_inwards(self, twist: Twist, link: int, target: int, moving: bool) -> Twist:
        """Return the twist of a link nearer to the root, with joints moving or fixed."""
        while link != target:
            twist, link = self._to_parent(link, twist, moving), self.tree.links[link].parent
        return twist

    def _hinge_rate(self, closure: int) -> Array:
        """Return rates of a closure with two known places."""
        h = self.form.hinges[closure]
        R, rho = hinge_pose(self.at, h)
        (v1, w1), (v2, w2) = self._of(h.loop.first), self._of(h.loop.second)
        v, w = v2 - R.T @ (v1 + cross(w1, rho)), w2 - R.T @ w1
        second_rates = np.linalg.pinv(np.vstack([h.S_v, h.S_w])) @ np.concatenate([v, w])
        if not h.guided:
            return second_rates
        # of a closed loop, axes in the first place are at right angles to those in the second that turn or slide alike
        return np.concatenate([h.guided_v.T @ (R @ v) + h.guided_w.T @ (R @ w), second_rates])


def _to_tip(node: Node, e: Array, ed: Array, p: Array, mounting: Array, turned: Array, v: Array, w: Array) -> Tip:
    """Return the angular velocity at a tip in root axes, and the twist of the tip, from that of the root."""
    v_rel, w_rel = node.Phi_d @ ed, node.L(e) @ (node.Phi_r @ ed)
    return w + w_rel, turned.T @ (mounting.T @ (v + cross(w, p) + v_rel)), turned.T @ (mounting.T @ (w + w_rel))


def _to_root(node: Node, e: Array, ed: Array, p: Array, mounting: Array, turned: Array, v: Array, w: Array) -> Twist:
    """Return the twist of a root from that of the tip."""
    v_rel, w_rel = node.Phi_d @ ed, node.L(e) @ (node.Phi_r @ ed)
    w = mounting @ (turned @ w) - w_rel
    return mounting @ (turned @ v) - cross(w, p) - v_rel, w


def _to_link(place: Place, twist: Twist) -> Twist:
    """Return the twist of the link of a place."""
    w = place.rotation @ twist[1]
    return place.rotation @ twist[0] - cross(w, place.position), w


def hinge_pose(at: Pose, h: ClosureJoint) -> tuple[Array, Array]:
    """Return rotation and position of the second place of a closure in the first."""
    if not h.slides and not h.turns:
        return np.eye(3), np.zeros(3)
    (R1, P1), (R2, P2) = at.of(h.loop.first), at.of(h.loop.second)
    return (R1.T @ R2 if h.turns else np.eye(3)), (R1.T @ (P2 - P1) if h.slides else np.zeros(3))
