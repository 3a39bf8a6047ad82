"""The mass matrix of the tree by composite bodies: each link with all it carries is one body."""

from __future__ import annotations

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.recursion.kinematics import Pose, jacobians
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import cross
from parflex.tree.tree import GROUND, Link, Tree

Array = np.ndarray


def mass_matrix(tree: Tree, at: Pose, without: tuple[str, ...] = ()) -> Array:
    """M_tot of theory (8): inertia along all rates of the open tree, motor inertias included."""
    if tree.elastic:
        return _summed(tree, at, without)
    composite: list[RigidBody] = [link.body.as_rigid() for link in tree.links]
    for j in reversed(range(len(tree.links))):
        parent = tree.links[j].parent
        if parent != GROUND:
            composite[parent] = composite[parent] + composite[j].in_parent(at.local_rotation[j], at.local_position[j])
    M: Array = np.zeros((tree.n, tree.n), dtype=scalar_type(*at.rotation, *at.position))
    for j, link in enumerate(tree.links):
        body, S_v, S_w = composite[j], link.joint.S_v, link.joint.S_w
        # wrench of the composite body for a unit acceleration along each rate of the link
        force = body.m * S_v - cross(body.S, S_w)
        moment = cross(body.S, S_v) + body.I @ S_w
        M[link.v, link.v] = S_v.T @ force + S_w.T @ moment
        k = j
        while tree.links[k].parent != GROUND:
            R, p = at.local_rotation[k], at.local_position[k]
            force = R @ force
            moment = R @ moment + cross(p, force)
            k = tree.links[k].parent
            other = tree.links[k]
            M[other.v, link.v] = other.joint.S_v.T @ force + other.joint.S_w.T @ moment
            M[link.v, other.v] = M[other.v, link.v].T
        if link.terms.inert and "motor-inertia" not in without:
            M[link.v.start, link.v.start] += link.terms.inertia
    return M


def _summed(tree: Tree, at: Pose, without: tuple[str, ...]) -> Array:
    """The same as a sum of J^T M J over bodies, for trees with elastic ones."""
    M: Array = np.zeros((tree.n, tree.n), dtype=scalar_type(*at.rotation, *at.position))
    for link, rates in zip(tree.links, jacobians(tree, at), strict=True):
        J = body_rows(tree, link, rates)
        M = M + J.T @ link.body.inertia_matrix(at.q[link.e]) @ J
        if link.terms.inert and "motor-inertia" not in without:
            M[link.v.start, link.v.start] += link.terms.inertia
    return M


def body_rows(tree: Tree, link: Link, rates: tuple[Array, Array]) -> Array:
    """Twist and elastic rates of the body of a link per rate of the tree, from those of the link: what it moves by."""
    return np.concatenate([*rates, np.eye(tree.n)[link.e_v]])
