"""Rates and accelerations of the substructures.

Independent rates determine the twists of links and the rates of beams and hinges: twists propagate from the ground over
joints, beams and closures with known rates; a beam with two known ends gives its own rates.

Accelerations of links are affine functions of the unknowns. A free piece is written in the axes of the link that it
moves with, the piece on the ground in the axes of each link, as an arm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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


@dataclass(frozen=True, eq=False, repr=False)
class MovingFrame(Record):
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
    anchor: MovingFrame | None = None
    arm: Array | None = None

    @property
    def J(self) -> Array:
        """Both, one below the other."""
        return np.vstack([self.J_v, self.J_w])

    def out(self, vectors: Array) -> Array:
        """Vectors of the frame in the axes used."""
        return vectors if self.turned is None else self.turned @ vectors

    def offset(self, p: Array, turned: Array | None) -> MovingFrame:
        """Of a frame fixed at p, in the same axes."""
        a = self.a + cross(self.al, p) + hat(self.w) @ hat(self.w) @ p
        return MovingFrame(turned, self.w, a, self.al, self.J_v - hat(p) @ self.J_w, self.J_w, self.columns)

    def in_axes(self, R: Array) -> MovingFrame:
        """In axes turned by R, which become those of the frame."""
        return MovingFrame(
            None, R.T @ self.w, R.T @ self.a, R.T @ self.al, R.T @ self.J_v, R.T @ self.J_w, self.columns
        )

    def behind(self, S_v: Array, S_w: Array, rate: Array, slots: slice, absolute: bool) -> MovingFrame:
        """Of a frame behind a joint here; `S_v`, `S_w` in the axes used."""
        v_rel, w_rel = S_v @ rate, S_w @ rate
        a, al = self.a + 2 * cross(self.w, v_rel), self.al + cross(self.w, w_rel)
        return MovingFrame(self.turned, self.w + w_rel, a, al, *self._moved(S_v, S_w, slots, absolute, 1.0))

    def before(self, S_v: Array, S_w: Array, rate: Array, slots: slice, absolute: bool) -> MovingFrame:
        """Of a frame before a joint, behind which this one is."""
        v_rel, w_rel = S_v @ rate, S_w @ rate
        w = self.w - w_rel
        J = self._moved(S_v, S_w, slots, absolute, -1.0)
        return MovingFrame(self.turned, w, self.a - 2 * cross(w, v_rel), self.al - cross(w, w_rel), *J)

    def _moved(
        self, S_v: Array, S_w: Array, slots: slice, absolute: bool, sign: float
    ) -> tuple[Array, Array, tuple[int, ...]]:
        """J behind a joint; with `absolute` its unknowns are the turning of the frame itself about its axes."""
        J_v, J_w, columns, places = self.widened(slots)
        width = len(places)
        if absolute:
            # about all axes of a ball nothing is left of the turning before it
            J_w = np.zeros(J_w.shape, dtype=object) if width == 3 else J_w - np.outer(S_w[:, 0], S_w[:, 0] @ J_w)
            J_w[:, places] = np.eye(3) if width == 3 else S_w
            return J_v, J_w, columns
        J_v[:, places], J_w[:, places] = sign * S_v[:, :width], sign * S_w[:, :width]
        return J_v, J_w, columns

    def widened(self, slots: slice) -> tuple[Array, Array, tuple[int, ...], list[int]]:
        """J_v, J_w and their columns with those of further unknowns, and where these stand."""
        added = [k for k in range(slots.start, slots.stop) if k not in self.columns]
        columns = (*self.columns, *added)
        zero = np.zeros((3, len(added)))
        J_v, J_w = (np.hstack([part, zero]).astype(object) for part in (self.J_v, self.J_w))
        return J_v, J_w, columns, [columns.index(k) for k in range(slots.start, slots.stop)]


@dataclass(frozen=True, eq=False, repr=False)
class SubstructureMotion(Record):
    """Accelerations of all links, and of the joints' free rates as rows over some of the unknowns."""

    links: dict[int, MovingFrame]
    joints: dict[int, JointRow]


def accelerations(form: Substructures, at: Pose, rates: SubstructureRates) -> SubstructureMotion:
    """Of all links and joints."""
    carried: dict[int, MovingFrame] = {}
    joints: dict[int, JointRow] = {}
    for piece in form.pieces:
        carried[piece.reference] = _reference(form, at, rates, piece)
        for step in piece.steps:
            source = carried[step.source]
            carried[step.link] = _across_connection(form, at, rates, step, source, piece.reference != GROUND)
            if step.tie.joint is not None:
                joints |= _joint_rows(form, step, source, carried[step.link])
    return SubstructureMotion(carried, joints)


def _joint_rows(form: Substructures, step: CutStep, source: MovingFrame, target: MovingFrame) -> dict[int, JointRow]:
    """Accelerations of the free rates of a joint: unknowns of their own, or what one link turns beyond the other."""
    link = form.robot.tree.links[step.tie.second]
    joint_rates = [link.v.start + k for k in step.tie.free]
    if step.link in form.absolute:
        frame = target if step.forward else source
        axis = frame.out(link.joint.S_w)[:, 0]
        before, behind = (source, target) if step.forward else (target, source)
        columns = tuple(sorted({*behind.columns, *before.columns}))
        return {joint_rates[0]: (columns, axis @ (_over(columns, behind) - _over(columns, before)))}
    slots = range(step.slots.start, step.slots.stop)
    return {k: ((slot,), np.ones(1)) for k, slot in zip(joint_rates, slots, strict=True)}


def _over(columns: tuple[int, ...], carried: MovingFrame) -> Array:
    """J_w over more unknowns than its own."""
    expanded = np.zeros((3, len(columns)), dtype=object)
    expanded[:, [columns.index(k) for k in carried.columns]] = carried.J_w
    return expanded


def _reference(form: Substructures, at: Pose, rates: SubstructureRates, piece: CutSubstructure) -> MovingFrame:
    columns, zero = tuple(range(piece.slots.start, piece.slots.stop)), np.zeros(3)
    J = np.zeros((6, len(columns)))
    if piece.reference == GROUND:
        return MovingFrame(None, zero, -form.robot.tree.gravity, zero, J[:3], J[3:], columns)
    J[list(form.used), range(len(columns))] = 1.0
    turned, w = None, rates.w(piece.reference)
    if piece.reference in form.loose:
        turned, w = at.local_rotation[piece.reference], rates.before[piece.reference]
    return MovingFrame(turned, w, zero, zero, J[:3], J[3:], columns)


def _across_connection(
    form: Substructures, at: Pose, rates: SubstructureRates, step: CutStep, source: MovingFrame, aligned: bool
) -> MovingFrame:
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
    near_frame = _forward(source, ends[0].rotation, ends[0].position, *fixed)
    R, p = hinge_pose(at, h)
    if not h.guided:
        far_frame = across(near_frame, R, p, h.S_v, h.S_w, rate, step.slots, aligned, absolute)
    else:  # two joints in a row, passed in the order in which the step meets them
        split = step.slots.start + h.guided
        guided = np.eye(3), p, h.guided_v, h.guided_w, rate[: h.guided], slice(step.slots.start, split), aligned
        second_axes = R, np.zeros(3), h.S_v, h.S_w, rate[h.guided :], slice(split, step.slots.stop), aligned, absolute
        first, last = (guided, second_axes) if step.forward else (second_axes, guided)
        far_frame = across(across(near_frame, *first), *last)
    return _backward(far_frame, ends[1].rotation, ends[1].position, *fixed)


def _node_motion(
    form: Substructures, at: Pose, rates: SubstructureRates, step: CutStep
) -> tuple[Array, Array, Array, Array, Array]:
    """Of a node against its body, in the axes of the body: Phi_d, Phi_r turned, the two motions, and L_dot's part."""
    tree = form.robot.tree
    body, node = tree.links[step.tie.first], tree.links[step.tie.second].node
    assert node is not None
    e, ed = at.q[body.e], rates.qd[body.e_v]
    free = next(list(modal.free) for modal in form.modal if modal.link == step.tie.first)
    rotations = node.L(e) @ node.Phi_r
    return node.Phi_d[:, free], rotations[:, free], node.Phi_d @ ed, rotations @ ed, node.L_drift(e, ed)


def _on_node(
    form: Substructures, at: Pose, rates: SubstructureRates, step: CutStep, source: MovingFrame, aligned: bool
) -> MovingFrame:
    """A node of a body that is not cut, which moves with it and by its coordinates."""
    translations, rotations, v_rel, w_rel, drift = (source.out(part) for part in _node_motion(form, at, rates, step))
    frame = source.offset(source.out(at.local_position[step.link]), source.turned)
    a, al = frame.a + 2 * cross(source.w, v_rel), frame.al + cross(source.w, w_rel) + drift
    J_v, J_w, columns, places = frame.widened(step.slots)
    J_v[:, places] += translations
    J_w[:, places] += rotations
    R = at.local_rotation[step.link]
    node_frame = MovingFrame(source.out(R) if aligned else None, source.w + w_rel, a, al, J_v, J_w, columns)
    return node_frame if aligned else replace(node_frame, turned=None).in_axes(R)


def _off_node(
    form: Substructures, at: Pose, rates: SubstructureRates, step: CutStep, source: MovingFrame, aligned: bool
) -> MovingFrame:
    """The body that carries a node, from the node."""
    node = step.source
    back = at.local_rotation[node].T
    frame = replace(source, turned=source.out(back)) if aligned else source.in_axes(back)
    translations, rotations, v_rel, w_rel, drift = (frame.out(part) for part in _node_motion(form, at, rates, step))
    w = frame.w - w_rel
    a, al = frame.a - 2 * cross(w, v_rel), frame.al - cross(w, w_rel) - drift
    J_v, J_w, columns, places = frame.widened(step.slots)
    J_v[:, places] -= translations
    J_w[:, places] -= rotations
    return MovingFrame(frame.turned, w, a, al, J_v, J_w, columns).offset(
        -frame.out(at.local_position[node]), frame.turned
    )


def _forward(
    source: MovingFrame,
    R: Array,
    p: Array,
    S_v: Array,
    S_w: Array,
    rate: Array,
    slots: slice,
    aligned: bool,
    absolute: bool = False,
) -> MovingFrame:
    """Over a frame at p, turned by R in the source, and a joint there."""
    if aligned:
        turned = source.out(R)
        frame = source.offset(source.out(p), turned)
        return frame.behind(turned @ S_v, turned @ S_w, rate, slots, absolute)
    return source.offset(p, None).in_axes(R).behind(S_v, S_w, rate, slots, absolute)


def _backward(
    source: MovingFrame,
    R: Array,
    p: Array,
    S_v: Array,
    S_w: Array,
    rate: Array,
    slots: slice,
    aligned: bool,
    absolute: bool = False,
) -> MovingFrame:
    """To the frame in which the source is behind a joint at p, turned by R."""
    if aligned:
        turned = source.out(R.T)
        anchor = replace(source.before(source.out(S_v), source.out(S_w), rate, slots, absolute), turned=turned)
        return replace(anchor.offset(-(turned @ p), turned), anchor=anchor, arm=-p)
    frame = source.before(S_v, S_w, rate, slots, absolute).in_axes(R.T)
    return frame.offset(-p, None)


@dataclass(eq=False, repr=False)
class SubstructureRates(Record):
    """Twists of links in their own axes, all rates of the tree, rates of the closures as joints."""

    twists: dict[int, Twist]
    qd: Array
    hinge: dict[int, Array]
    before: dict[int, Array]  # angular velocities of links at tips of beams, in the axes of the beam's root

    def w(self, link: int) -> Array:
        """Angular velocity of a link."""
        return self.twists[link][1]


def substructure_rates(form: Substructures, at: Pose, independent: Array) -> SubstructureRates:
    """All rates from the independent ones."""
    return _Sweep(form, at, independent).run()


class _Sweep:
    def __init__(self, form: Substructures, at: Pose, independent: Array) -> None:
        tree = form.robot.tree
        self.form, self.at, self.tree = form, at, tree
        self.qd: Array = np.zeros(tree.n, dtype=object)
        self.qd[form.partition.independent] = independent
        self.known = [k not in set(form.partition.dependent) for k in range(tree.n)]
        self.whole = {modal.link for modal in form.modal}  # flexible bodies that are not cut
        self.twists: dict[int, Twist] = {GROUND: (np.zeros(3), np.zeros(3))}
        self.before: dict[int, Array] = {}
        self.hinge: dict[int, Array] = {c: np.zeros(0) for c, h in enumerate(form.hinges) if not h.size}

    def run(self) -> SubstructureRates:
        while len(self.twists) <= len(self.tree.links) or not all(self.known):
            if not (self._joints() or self._nodes() or self._beams() or self._closures()):
                raise SingularError("the rates of the robot do not follow from the independent ones", key="closure")
        for c in range(len(self.form.hinges)):
            if c not in self.hinge:
                self.hinge[c] = self._hinge_rate(c)
        plain = all(isinstance(x, (int, float)) for x in self.qd)
        qd = self.qd.astype(float) if plain else self.qd
        for beam in self.form.beams:
            if beam.tip not in self.before:
                self.before[beam.tip] = self._out(beam.tip, self.twists[beam.tip][1])
        return SubstructureRates(self.twists, qd, self.hinge, self.before)

    def _joints(self) -> bool:
        """Over joints of the tree with known rates."""
        progress = False
        for j, link in enumerate(self.tree.links):
            if link.node is not None:
                continue
            if (j in self.twists) == (link.parent in self.twists) or not all(self.known[link.v]):
                continue
            S_v, S_w, rate = link.joint.S_v, link.joint.S_w, self.qd[link.v]
            p = self.at.local_position[j]
            if link.parent in self.twists:
                v, w = self.twists[link.parent]
                v, w = self._into(j, v + cross(w, p)) + S_v @ rate, self._into(j, w) + S_w @ rate
                self.twists[j] = (v, w)
            else:
                v, w = self.twists[j]
                w = self._out(j, w - S_w @ rate)
                self.twists[link.parent] = (self._out(j, v - S_v @ rate) - cross(w, p), w)
            progress = True
        return progress

    def _nodes(self) -> bool:
        """To nodes of bodies that are not cut, whose rates are always known, and back from them."""
        progress = False
        for j, link in enumerate(self.tree.links):
            if link.node is None or link.parent not in self.whole or (j in self.twists) == (link.parent in self.twists):
                continue
            if j in self.twists:
                self.twists[link.parent] = self._off_node(j, self.twists[j], True)
            else:
                v, w = self.twists[link.parent]
                v_rel, w_rel = self._on_node(j, self.qd[self.tree.links[link.parent].e_v])
                p = self.at.local_position[j]
                self.twists[j] = (self._into(j, v + cross(w, p) + v_rel), self._into(j, w + w_rel))
            progress = True
        return progress

    def _on_node(self, j: int, ed: Array) -> Twist:
        """How a node moves against its body."""
        link, e = self.tree.links[j], self.at.q[self.tree.links[self.tree.links[j].parent].e]
        assert link.node is not None
        return link.node.Phi_d @ ed, link.node.L(e) @ (link.node.Phi_r @ ed)

    def _off_node(self, j: int, twist: Twist, moving: bool) -> Twist:
        """The twist of the body that carries a node, its coordinates moving or held."""
        v, w = (self._out(j, part) for part in twist)
        if moving:
            v_rel, w_rel = self._on_node(j, self.qd[self.tree.links[self.tree.links[j].parent].e_v])
            w = w - w_rel
            return v - cross(w, self.at.local_position[j]) - v_rel, w
        return v - cross(w, self.at.local_position[j]), w

    def _into(self, j: int, vector: Array) -> Array:
        return self.at.from_parent(self.tree, j, vector)

    def _out(self, j: int, vector: Array) -> Array:
        return self.at.to_parent(self.tree, j, vector)

    def _beams(self) -> bool:
        """Over beams with known rates; rates of beams with known ends."""
        progress = False
        for beam in self.form.beams:
            link, tip = self.tree.links[beam.link], beam.form.body.nodes["tip"]
            known = all(self.known[link.e_v])
            ends = [end in self.twists for end in (beam.link, beam.tip)]
            e, p = self.at.q[link.e], self.at.local_position[beam.tip]
            if known and ends[0] != ends[1]:
                mounting, turned = self.tree.links[beam.tip].rotation, self.at.turned[beam.tip]
                arguments = (e, self.qd[link.e_v], p, mounting, turned)
                if ends[0]:
                    propagate, key = partial(_to_tip, tip), ("to tip", beam.body)
                    tip_motion = shared_call(propagate, key, *arguments, *self.twists[beam.link])
                    self.before[beam.tip], self.twists[beam.tip] = tip_motion[0], (tip_motion[1], tip_motion[2])
                else:
                    propagate, key = partial(_to_root, tip), ("to root", beam.body)
                    v, w = shared_call(propagate, key, *arguments, *self.twists[beam.tip])
                    self.twists[beam.link] = (v, w)
                progress = True
            elif not known and all(ends):
                start, stop = link.e_v.start, link.e_v.start + beam.ends
                self.qd[start:stop] = self._from_ends(beam, self.twists[beam.tip])
                self.known[start:stop] = [True] * beam.ends
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
        """Over closures: welds at once, hinges when the beam behind them says how far they turn."""
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
        """From one place of a closure to the other."""
        h = self.form.hinges[dependent.closure]
        R, rho = hinge_pose(self.at, h)
        v_rel = h.S_v @ rate[h.guided :] if rate is not None else np.zeros(3)
        w_rel = h.S_w @ rate[h.guided :] if rate is not None else np.zeros(3)
        guided_v, guided_w = np.zeros(3), np.zeros(3)
        if h.guided and rate is not None:
            guided_v, guided_w = h.guided_v @ rate[: h.guided], h.guided_w @ rate[: h.guided]
        v, w = twist
        if from_first:
            return R.T @ (v + cross(w, rho) + guided_v) + v_rel, R.T @ (w + guided_w) + w_rel
        w = R @ (w - w_rel) - guided_w
        return R @ (v - v_rel) - guided_v - cross(w, rho), w

    def _solve_hinge_rates(self, dependent: DependentBeam, beam: CutBeam, near: Place, far: Place) -> None:
        """The rates of a hinge from the coordinates of the beam that are given, then across it."""
        h = self.form.hinges[dependent.closure]
        base = self._of(near)
        zero = (np.zeros(3), np.zeros(3))
        held_twist = self._propagate_inwards(
            _to_link(far, self._across(dependent, base, dependent.from_first)), far.link, beam.tip, True
        )
        link = self.tree.links[beam.link]
        requested = self.qd[link.e_v][list(dependent.kept)] - self._from_ends(beam, held_twist)[list(dependent.kept)]
        matrix = []
        rates = beam.form.elastic_rates(self.at.q[link.e])[:, 6:]
        for unit in np.eye(h.size):
            unit_twist = _to_link(far, self._across(dependent, zero, dependent.from_first, unit))
            end = self._propagate_inwards(unit_twist, far.link, beam.tip, False)
            matrix.append((rates @ np.concatenate([self._out(beam.tip, part) for part in end]))[list(dependent.kept)])
        rate = solve(np.array(matrix).T, requested)
        self.hinge[dependent.closure] = rate
        self.twists[far.link] = _to_link(far, self._across(dependent, base, dependent.from_first, rate))

    def _propagate_inwards(self, twist: Twist, link: int, target: int, moving: bool) -> Twist:
        """The twist of a link nearer to the root, from one further out, joints between moving or held."""
        while link != target:
            tree_link = self.tree.links[link]
            if tree_link.node is not None:
                twist, link = self._off_node(link, twist, moving), tree_link.parent
                continue
            rate: Any = self.qd[tree_link.v] if moving else np.zeros(len(tree_link.joint.rate_labels))
            w = self._out(link, twist[1] - tree_link.joint.S_w @ rate)
            v = self._out(link, twist[0] - tree_link.joint.S_v @ rate) - cross(w, self.at.local_position[link])
            twist, link = (v, w), tree_link.parent
        return twist

    def _hinge_rate(self, closure: int) -> Array:
        """Rates of a closure whose two places are known."""
        h = self.form.hinges[closure]
        R, rho = hinge_pose(self.at, h)
        (v1, w1), (v2, w2) = self._of(h.loop.first), self._of(h.loop.second)
        v, w = v2 - R.T @ (v1 + cross(w1, rho)), w2 - R.T @ w1
        second_rates = np.linalg.pinv(np.vstack([h.S_v, h.S_w])) @ np.concatenate([v, w])
        if not h.guided:
            return second_rates
        # of a closed loop, axes in the first place are at right angles to those in the second that turn or slide alike
        return np.concatenate([h.guided_v.T @ (R @ v) + h.guided_w.T @ (R @ w), second_rates])


def _to_tip(node: Node, e: Array, ed: Array, p: Array, mounting: Array, turned: Array, v: Array, w: Array) -> tuple:
    """The angular velocity at a tip in the axes of the root, then the twist of the tip, from that of the root."""
    v_rel, w_rel = node.Phi_d @ ed, node.L(e) @ (node.Phi_r @ ed)
    return w + w_rel, turned.T @ (mounting.T @ (v + cross(w, p) + v_rel)), turned.T @ (mounting.T @ (w + w_rel))


def _to_root(node: Node, e: Array, ed: Array, p: Array, mounting: Array, turned: Array, v: Array, w: Array) -> Twist:
    """The twist of a root from that of the tip."""
    v_rel, w_rel = node.Phi_d @ ed, node.L(e) @ (node.Phi_r @ ed)
    w = mounting @ (turned @ w) - w_rel
    return mounting @ (turned @ v) - cross(w, p) - v_rel, w


def _to_link(place: Place, twist: Twist) -> Twist:
    """The twist of the link that carries a place."""
    w = place.rotation @ twist[1]
    return place.rotation @ twist[0] - cross(w, place.position), w


def hinge_pose(at: Pose, h: ClosureJoint) -> tuple[Array, Array]:
    """Rotation and position of the second place of a closure in the first."""
    if not h.slides and not h.turns:
        return np.eye(3), np.zeros(3)
    (R1, P1), (R2, P2) = at.of(h.loop.first), at.of(h.loop.second)
    return (R1.T @ R2 if h.turns else np.eye(3)), (R1.T @ (P2 - P1) if h.slides else np.zeros(3))


@dataclass(frozen=True, eq=False, repr=False)
class SubstructureState(Record):
    """Everything at a state: rates, accelerations per unknown, inertia and forces in the unknowns."""

    form: Substructures
    at: Pose
    rates: SubstructureRates
    moving: SubstructureMotion
    A: Array
    f: Array

    @property
    def q(self) -> Any:
        """All positions."""
        return self.at.q

    @property
    def qd(self) -> Array:
        """All rates."""
        return self.rates.qd
