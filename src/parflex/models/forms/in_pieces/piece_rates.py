"""Rates of a robot cut into pieces: independent rates in, twists of links and rates of beams and hinges out.

Twists spread from the ground over joints, beams and closures whose rates are known; a beam whose two ends are known
gives its own rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from parflex.bodies.elastic import Node
from parflex.errors import SingularError
from parflex.records import Record
from parflex.recursion.kinematics import Pose
from parflex.robot.substructures import ClosureJoint, CutBeam, DependentBeam, Substructures
from parflex.spatial.linear import shared_call, solve
from parflex.spatial.rotations import cross
from parflex.tree.tree import GROUND, Place

Array = np.ndarray
Twist = tuple[Array, Array]


@dataclass(eq=False, repr=False)
class Rates(Record):
    """Twists of links in their own axes, all rates of the tree, rates of the closures as joints."""

    twists: dict[int, Twist]
    qd: Array
    hinge: dict[int, Array]
    before: dict[int, Array]  # angular velocities of links at tips of beams, in the axes of the beam's root

    def w(self, link: int) -> Array:
        """Angular velocity of a link."""
        return self.twists[link][1]


def piece_rates(form: Substructures, at: Pose, independent: Array) -> Rates:
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

    def run(self) -> Rates:
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
        return Rates(self.twists, qd, self.hinge, self.before)

    def _joints(self) -> bool:
        """Over joints of the tree with known rates."""
        moved = False
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
            moved = True
        return moved

    def _nodes(self) -> bool:
        """To nodes of bodies that are not cut, whose rates are always known, and back from them."""
        moved = False
        for j, link in enumerate(self.tree.links):
            if link.node is None or link.parent not in self.whole or (j in self.twists) == (link.parent in self.twists):
                continue
            if j in self.twists:
                self.twists[link.parent] = self._off_node(j, self.twists[j], True)
            else:
                v, w = self.twists[link.parent]
                slide, turn = self._on_node(j, self.qd[self.tree.links[link.parent].e_v])
                p = self.at.local_position[j]
                self.twists[j] = (self._into(j, v + cross(w, p) + slide), self._into(j, w + turn))
            moved = True
        return moved

    def _on_node(self, j: int, ed: Array) -> Twist:
        """How a node moves against its body."""
        link, e = self.tree.links[j], self.at.q[self.tree.links[self.tree.links[j].parent].e]
        assert link.node is not None
        return link.node.Phi_d @ ed, link.node.L(e) @ (link.node.Phi_r @ ed)

    def _off_node(self, j: int, twist: Twist, moving: bool) -> Twist:
        """The twist of the body that carries a node, its coordinates moving or held."""
        v, w = (self._out(j, part) for part in twist)
        if moving:
            slide, turn = self._on_node(j, self.qd[self.tree.links[self.tree.links[j].parent].e_v])
            w = w - turn
            return v - cross(w, self.at.local_position[j]) - slide, w
        return v - cross(w, self.at.local_position[j]), w

    def _into(self, j: int, vector: Array) -> Array:
        return self.at.from_parent(self.tree, j, vector)

    def _out(self, j: int, vector: Array) -> Array:
        return self.at.to_parent(self.tree, j, vector)

    def _beams(self) -> bool:
        """Over beams with known rates; rates of beams with known ends."""
        moved = False
        for beam in self.form.beams:
            link, tip = self.tree.links[beam.link], beam.form.body.nodes["tip"]
            known = all(self.known[link.e_v])
            ends = [end in self.twists for end in (beam.link, beam.tip)]
            e, p = self.at.q[link.e], self.at.local_position[beam.tip]
            if known and ends[0] != ends[1]:
                rest, turned = self.tree.links[beam.tip].rotation, self.at.turned[beam.tip]
                given = (e, self.qd[link.e_v], p, rest, turned)
                if ends[0]:
                    way, key = partial(_to_tip, tip), ("to tip", beam.body)
                    found = shared_call(way, key, *given, *self.twists[beam.link])
                    self.before[beam.tip], self.twists[beam.tip] = found[0], (found[1], found[2])
                else:
                    way, key = partial(_to_root, tip), ("to root", beam.body)
                    v, w = shared_call(way, key, *given, *self.twists[beam.tip])
                    self.twists[beam.link] = (v, w)
                moved = True
            elif not known and all(ends):
                start, stop = link.e_v.start, link.e_v.start + beam.ends
                self.qd[start:stop] = self._from_ends(beam, self.twists[beam.tip])
                self.known[start:stop] = [True] * beam.ends
                moved = True
        return moved

    def _from_ends(self, beam: CutBeam, tip: Twist) -> Array:
        def bent(e: Array, rest: Array, turned: Array, *twists: Array) -> tuple[Array]:
            at_tip = [rest @ (turned @ part) for part in twists[2:]]
            return (beam.form.elastic_rates(e) @ np.concatenate([*twists[:2], *at_tip]),)

        e, rest = self.at.q[self.tree.links[beam.link].e], self.tree.links[beam.tip].rotation
        given = (e, rest, self.at.turned[beam.tip], *self.twists[beam.link], *tip)
        return shared_call(bent, ("from ends", beam.body), *given)[0]

    def _closures(self) -> bool:
        """Over closures: welds at once, hinges when the beam behind them says how far they turn."""
        for given in self.form.given:
            h = self.form.hinges[given.closure]
            near, far = (h.loop.first, h.loop.second) if given.from_first else (h.loop.second, h.loop.first)
            if not h.size:
                for a, b in ((near, far), (far, near)):
                    if a.link in self.twists and b.link not in self.twists:
                        self.twists[b.link] = _to_link(b, self._across(given, self._of(a), a is h.loop.first))
                        return True
            beam = self.form.beams[given.beam]
            ready = near.link in self.twists and beam.link in self.twists and far.link not in self.twists
            if h.size and ready:
                self._turn_hinge(given, beam, near, far)
                return True
        return False

    def _of(self, place: Place) -> Twist:
        v, w = self.twists[place.link]
        return place.rotation.T @ (v + cross(w, place.position)), place.rotation.T @ w

    def _across(self, given: DependentBeam, twist: Twist, from_first: bool, rate: Array | None = None) -> Twist:
        """From one place of a closure to the other."""
        h = self.form.hinges[given.closure]
        turn, rho = hinge_pose(self.at, h)
        slide = h.S_v @ rate[h.guided :] if rate is not None else np.zeros(3)
        spin = h.S_w @ rate[h.guided :] if rate is not None else np.zeros(3)
        guided_v, guided_w = np.zeros(3), np.zeros(3)
        if h.guided and rate is not None:
            guided_v, guided_w = h.guided_v @ rate[: h.guided], h.guided_w @ rate[: h.guided]
        v, w = twist
        if from_first:
            return turn.T @ (v + cross(w, rho) + guided_v) + slide, turn.T @ (w + guided_w) + spin
        w = turn @ (w - spin) - guided_w
        return turn @ (v - slide) - guided_v - cross(w, rho), w

    def _turn_hinge(self, given: DependentBeam, beam: CutBeam, near: Place, far: Place) -> None:
        """The rates of a hinge from the coordinates of the beam that are given, then across it."""
        h = self.form.hinges[given.closure]
        base = self._of(near)
        zero = (np.zeros(3), np.zeros(3))
        still = self._down(_to_link(far, self._across(given, base, given.from_first)), far.link, beam.tip, True)
        link = self.tree.links[beam.link]
        requested = self.qd[link.e_v][list(given.kept)] - self._from_ends(beam, still)[list(given.kept)]
        matrix = []
        rates = beam.form.elastic_rates(self.at.q[link.e])[:, 6:]
        for unit in np.eye(h.size):
            moved = _to_link(far, self._across(given, zero, given.from_first, unit))
            end = self._down(moved, far.link, beam.tip, False)
            matrix.append((rates @ np.concatenate([self._out(beam.tip, part) for part in end]))[list(given.kept)])
        rate = solve(np.array(matrix).T, requested)
        self.hinge[given.closure] = rate
        self.twists[far.link] = _to_link(far, self._across(given, base, given.from_first, rate))

    def _down(self, twist: Twist, link: int, target: int, moving: bool) -> Twist:
        """The twist of a link nearer to the root, from one further out, joints between moving or held."""
        while link != target:
            own = self.tree.links[link]
            if own.node is not None:
                twist, link = self._off_node(link, twist, moving), own.parent
                continue
            rate: Any = self.qd[own.v] if moving else np.zeros(len(own.joint.rate_labels))
            w = self._out(link, twist[1] - own.joint.S_w @ rate)
            v = self._out(link, twist[0] - own.joint.S_v @ rate) - cross(w, self.at.local_position[link])
            twist, link = (v, w), own.parent
        return twist

    def _hinge_rate(self, closure: int) -> Array:
        """Rates of a closure whose two places are known."""
        h = self.form.hinges[closure]
        turn, rho = hinge_pose(self.at, h)
        (v1, w1), (v2, w2) = self._of(h.loop.first), self._of(h.loop.second)
        v, w = v2 - turn.T @ (v1 + cross(w1, rho)), w2 - turn.T @ w1
        own = np.linalg.pinv(np.vstack([h.S_v, h.S_w])) @ np.concatenate([v, w])
        if not h.guided:
            return own
        # of a closed loop, axes in the first place are at right angles to those in the second that turn or slide alike
        return np.concatenate([h.guided_v.T @ (turn @ v) + h.guided_w.T @ (turn @ w), own])


def _to_tip(node: Node, e: Array, ed: Array, p: Array, rest: Array, turned: Array, v: Array, w: Array) -> tuple:
    """The angular velocity at a tip in the axes of the root, then the twist of the tip, from that of the root."""
    slide, turn = node.Phi_d @ ed, node.L(e) @ (node.Phi_r @ ed)
    return w + turn, turned.T @ (rest.T @ (v + cross(w, p) + slide)), turned.T @ (rest.T @ (w + turn))


def _to_root(node: Node, e: Array, ed: Array, p: Array, rest: Array, turned: Array, v: Array, w: Array) -> Twist:
    """The twist of a root from that of the tip."""
    slide, turn = node.Phi_d @ ed, node.L(e) @ (node.Phi_r @ ed)
    w = rest @ (turned @ w) - turn
    return rest @ (turned @ v) - cross(w, p) - slide, w


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
