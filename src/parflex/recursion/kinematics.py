"""Compute poses, velocities, resolved accelerations and Jacobians of all links, from the base outwards.

Twists are [v; w] at the origin of a link, in its own axes. Accelerations are those of the point, written in the axes
of the link, not derivatives of components. The ground carries a_0 = -g for dynamics: then every `a` is the
acceleration less gravity, free bodies included, and differences across a closure are not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.bodies.elastic import Node
from parflex.records import Record
from parflex.spatial.linear import can_share_call, shared_call
from parflex.spatial.rotations import cross, exponential, hat
from parflex.tree.tree import GROUND, InnerNode, Place, Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Pose(Record):
    """Rotation and position of each link in its parent and in the world; `turned` is the part of the joint."""

    q: Any
    turned: list[Array]
    local_rotation: list[Array]
    local_position: list[Array]
    rotation: list[Array]
    position: list[Array]

    def from_parent(self, tree: Tree, link: int, vector: Array) -> Array:
        """Return a vector of the parent's axes in link axes, by the constant rotation, then the joint's."""
        return self.turned[link].T @ (tree.links[link].rotation.T @ vector)

    def to_parent(self, tree: Tree, link: int, vector: Array) -> Array:
        """Return a vector of the link's axes in those of its parent."""
        return tree.links[link].rotation @ (self.turned[link] @ vector)

    def of(self, place: Place) -> tuple[Array, Array]:
        """Return world rotation and position of a place."""
        if place.link == GROUND:
            return place.rotation, place.position
        R, p = self.rotation[place.link], self.position[place.link]
        if place.inner is not None:
            node_rotation, r = self.bent(place.inner)
            R, p = R @ node_rotation, p + R @ r
        return R @ place.rotation, p + R @ place.position

    def bent(self, inner: InnerNode) -> tuple[Array, Array]:
        """Return rotation and position of a node inside a body, in the axes of its link, theory (27)."""
        e = self.q[inner.e]
        return exponential(inner.node.Phi_r @ e), inner.node.r0 + inner.node.Phi_d @ e


@dataclass(frozen=True, eq=False, repr=False)
class Motion(Record):
    """v, w, a, al and U = hat(al) + hat(w) hat(w) of each link in its axes; `base`: acceleration of the ground."""

    v: list[Array]
    w: list[Array]
    a: list[Array]
    al: list[Array]
    U: list[Array]
    base: Array
    at: Pose
    qd: Any
    qdd: Any

    def of(self, place: Place) -> tuple[Array, Array, Array, Array]:
        """Return v, w, a, al of a place, in its own axes."""
        if place.link == GROUND:
            zero = np.zeros(3)
            return zero, zero, place.rotation.T @ self.base, zero
        X, r, j = place.rotation.T, place.position, place.link
        v, w, a, al, U = self.v[j], self.w[j], self.a[j], self.al[j], self.U[j]
        if place.inner is not None:
            v, w, a, al = self._inside(j, place.inner)
            U = acceleration_matrix(w, al)
        return X @ (v + cross(w, r)), X @ w, X @ (a + U @ r), X @ al

    def _inside(self, j: int, inner: InnerNode) -> tuple[Array, Array, Array, Array]:
        """Return v, w, a, al of a node inside the body of a link, in the axes of the node."""
        node_rotation, r = self.at.bent(inner)
        bend = _node_motion(inner.node, self.at.q[inner.e], self.w[j], self.qd[inner.e_v], self.qdd[inner.e_v])
        v, a = self.v[j] + cross(self.w[j], r) + bend[0], self.a[j] + self.U[j] @ r + bend[2]
        X = node_rotation.T
        return X @ v, X @ (self.w[j] + bend[1]), X @ a, X @ (self.al[j] + bend[3])


def pose(tree: Tree, q: Any) -> Pose:
    """Return the frames of all links."""
    result = Pose(q, [], [], [], [], [])
    parts = (result.turned, result.local_rotation, result.local_position, result.rotation, result.position)
    shares_calls = can_share_call(q)
    for link in tree.links:
        k = link.parent
        e: Any = None if link.node is None else q[tree.links[k].e]
        if shares_calls and link.node is not None:
            values = _beyond(link.node, result, k, e, link.rotation, link.position)
        else:
            joint_rotation, d = link.joint.transform(q[link.q]) if link.node is None else _bent(link.node, e)
            R, p = link.rotation @ joint_rotation, link.position + link.rotation @ d
            world = (R, p) if k == GROUND else (result.rotation[k] @ R, result.position[k] + result.rotation[k] @ p)
            values = (joint_rotation, R, p, *world)
        for part, value in zip(parts, values, strict=True):
            part.append(value)
    return result


def _bent(node: Node, e: Any) -> tuple[Array, Array]:
    """Return rotation and displacement of a node of a body."""
    return exponential(node.Phi_r @ e), node.Phi_d @ e


def _beyond(node: Node, at: Pose, parent: int, e: Array, rotation: Array, position: Array) -> tuple[Array, ...]:
    """Return the pose of a link on a node of its parent, by a function that identical nodes share."""

    def placed(e: Array, R0: Array, p0: Array, R: Array, p: Array) -> tuple[Array, ...]:
        joint_rotation, d = _bent(node, e)
        local_rotation, local_position = R0 @ joint_rotation, p0 + R0 @ d
        return joint_rotation, local_rotation, local_position, R @ local_rotation, p + R @ local_position

    return shared_call(placed, ("node", node), e, rotation, position, at.rotation[parent], at.position[parent])


def motion(tree: Tree, at: Pose, qd: Any, qdd: Any, base: Array | None = None) -> Motion:
    """Velocities and accelerations of all links, theory (4), (5); `base` is the world acceleration of the ground.

    Consecutive revolute joints with parallel axes rotate a link by the sum of their angles.
    """
    base = np.zeros(3) if base is None else base
    if all(isinstance(rates, np.ndarray) and rates.dtype.kind == "f" and not rates.any() for rates in (qd, qdd)):
        return _at_rest(tree, at, qd, qdd, base)
    zero = np.zeros(3)
    result = Motion([], [], [], [], [], base, at, qd, qdd)
    groups: list[tuple[Array, Any, Any]] = []  # of parallel axes: al before the first one, sums of rates and of qdd
    for j, link in enumerate(tree.links):
        S_v, S_w = link.joint.S_v, link.joint.S_w
        rate, change = qd[link.v], qdd[link.v]
        if link.parent == GROUND:
            v, w, a, al = zero, zero, at.from_parent(tree, j, base), zero
        else:
            k, p, body = link.parent, at.local_position[j], tree.links[link.parent]
            bend = (zero, zero, zero, zero)  # what the bending of the parent adds
            if link.node is not None:
                bend = _node_motion(link.node, at.q[body.e], result.w[k], qd[body.e_v], qdd[body.e_v])
            v = at.from_parent(tree, j, result.v[k] + cross(result.w[k], p) + bend[0])
            w = at.from_parent(tree, j, result.w[k] + bend[1])
            a = at.from_parent(tree, j, result.a[k] + result.U[k] @ p + bend[2])
            if link.node is None and _parallel(tree, j):
                al, rates, changes = groups[k]
                al, rate, change = at.from_parent(tree, j, al), rate + rates, change + changes
            else:
                al = at.from_parent(tree, j, result.al[k] + bend[3])
        groups.append((al, rate, change))
        slide, turn = S_v @ qd[link.v], S_w @ qd[link.v]
        result.v.append(v + slide)
        result.w.append(w + turn)
        result.a.append(a + S_v @ qdd[link.v] + 2 * cross(w, slide))
        result.al.append(al + S_w @ change + cross(w, S_w @ rate))
        result.U.append(acceleration_matrix(result.w[j], result.al[j]))
    return result


def _parallel(tree: Tree, j: int) -> bool:
    """Return whether a link and its parent are on revolute joints with parallel axes."""
    link, parent = tree.links[j], tree.links[tree.links[j].parent]
    both = link.joint.kind == parent.joint.kind == "revolute"
    return both and np.array_equal(link.rotation @ link.joint.S_w, parent.joint.S_w)


def _at_rest(tree: Tree, at: Pose, qd: Array, qdd: Array, base: Array) -> Motion:
    """Return the motion at zero velocity and acceleration, with the acceleration of the ground in link axes."""
    zeros = [np.zeros(3)] * len(tree.links)
    result = Motion(zeros, zeros, [], zeros, [np.zeros((3, 3))] * len(tree.links), base, at, qd, qdd)
    for j, link in enumerate(tree.links):
        result.a.append(at.from_parent(tree, j, base if link.parent == GROUND else result.a[link.parent]))
    return result


def _node_motion(node: Node, e: Any, w: Array, ed: Any, edd: Any) -> tuple[Array, Array, Array, Array]:
    """Return the contribution of deformation to v, w, a and al of a node, in the axes of the body."""
    L = node.L(e)
    slide, turn = node.Phi_d @ ed, L @ (node.Phi_r @ ed)
    a = 2 * cross(w, slide) + node.Phi_d @ edd
    al = cross(w, turn) + L @ (node.Phi_r @ edd) + node.L_drift(e, ed)
    return slide, turn, a, al


def acceleration_matrix(w: Array, al: Array) -> Array:
    """Return U = hat(al) + hat(w) hat(w): U r is the acceleration of a fixed point r about the origin."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return np.array(
        [
            [-(yy + zz), xy - al[2], xz + al[1]],
            [xy + al[2], -(xx + zz), yz - al[0]],
            [xz - al[1], yz + al[0], -(xx + yy)],
        ]
    )


class LinkJacobians(Sequence[tuple[Array, Array]]):
    """J_v and J_w of each link over all rates, completed with zeros on request."""

    def __init__(self, n: int, link_columns: list[tuple[list[int], Array, Array]]) -> None:
        self.n, self.own = n, link_columns
        self._whole: dict[int, tuple[Array, Array]] = {}

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, j: Any) -> Any:
        if isinstance(j, slice):
            return [self[k] for k in range(*j.indices(len(self)))]
        if j not in self._whole:
            columns, *both = self.own[j]
            full = [np.zeros((3, self.n), dtype=J.dtype) for J in both]
            for whole, J in zip(full, both, strict=True):
                whole[:, columns] = J
            self._whole[j] = (full[0], full[1])
        return self._whole[j]


def jacobians(tree: Tree, at: Pose, rates: Collection[int] | None = None) -> LinkJacobians:
    """Return J_v and J_w (3 x n) of each link: its twist in its own axes is J qd, theory (4).

    With `rates`, only their columns are computed, and the others are zero.
    """
    requested = None if rates is None else set(rates.tolist() if isinstance(rates, np.ndarray) else rates)
    link_columns: list[tuple[list[int], Array, Array]] = []  # rates that move a link, and their columns alone
    for j, link in enumerate(tree.links):
        X, p = at.local_rotation[j].T, at.local_position[j]
        columns: list[int] = []
        parts: list[tuple[Array, Array]] = []
        if link.parent != GROUND and link_columns[link.parent][0]:
            columns, parent_v, parent_w = link_columns[link.parent]
            parts.append((X @ (parent_v - hat(p) @ parent_w), X @ parent_w))
        if link.node is not None:
            carrier = tree.links[link.parent]
            moving, selection = _asked(carrier.e_v, requested)
            if moving:
                rotation_columns = X @ link.node.L(at.q[carrier.e]) @ link.node.Phi_r
                parts.append(((X @ link.node.Phi_d)[:, selection], rotation_columns[:, selection]))
                columns = [*columns, *moving]
        moving, selection = _asked(link.v, requested)
        if moving:
            parts.append((link.joint.S_v[:, selection], link.joint.S_w[:, selection]))
            columns = [*columns, *moving]
        if not parts or (len(parts) == 1 and parts[0][0].dtype != X.dtype):  # of the scalar of the pose in any case
            parts.insert(0, (np.zeros((3, 0), dtype=X.dtype), np.zeros((3, 0), dtype=X.dtype)))
        J_v, J_w = parts[0] if len(parts) == 1 else (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
        link_columns.append((columns, J_v, J_w))
    return LinkJacobians(tree.n, link_columns)


def _asked(rates: slice, requested: set[int] | None) -> tuple[list[int], list[int] | slice]:
    """Return the requested rates among some rates, and their positions, without a copy for all."""
    link_rates = range(rates.start, rates.stop)
    selected = list(link_rates) if requested is None else [k for k in link_rates if k in requested]
    return selected, slice(None) if len(selected) == len(link_rates) else [k - rates.start for k in selected]


def place_jacobian(tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]], place: Place) -> tuple[Array, Array]:
    """Return J_v and J_w of a place, in its own axes, from the Jacobians `links`."""
    if place.link == GROUND:
        return np.zeros((3, tree.n)), np.zeros((3, tree.n))
    J_v, J_w = links[place.link]
    if place.inner is not None:
        inner = place.inner
        node_rotation, r = at.bent(inner)
        J_v = node_rotation.T @ _with(J_v - hat(r) @ J_w, inner.e_v, inner.node.Phi_d)
        J_w = node_rotation.T @ _with(J_w, inner.e_v, inner.node.L(at.q[inner.e]) @ inner.node.Phi_r)
    return place.rotation.T @ (J_v - hat(place.position) @ J_w), place.rotation.T @ J_w


def _with(J: Array, columns: slice, part: Array) -> Array:
    """Return a matrix with a part added to some of its columns, over any scalar."""
    result = J.astype(np.result_type(J, part))
    result[:, columns] = result[:, columns] + part
    return result
