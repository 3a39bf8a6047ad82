"""The direct model of an open tree by articulated bodies: operators grow with the number of links, not with its cube.

Each link, with all it carries hanging loose in its joints, answers a push like a body: f = I_A a + p_A, theory (23).
The inertia is kept in 3 x 3 blocks A (force per acceleration), B (force per angular acceleration) and C (moment per
angular acceleration).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.recursion.kinematics import Pose, motion
from parflex.recursion.newton_euler import joint_forces
from parflex.recursion.point_forces import element_wrenches
from parflex.spatial.linear import solve_positive
from parflex.spatial.rotations import cross, hat
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray


def articulated_accelerations(
    tree: Tree, at: Pose, q: Any, qd: Any, tau: Array, without: tuple[str, ...] = (), base: Array | None = None
) -> Array:
    """Accelerations along all rates under the forces `tau` along them; `base` is the acceleration of the ground."""
    base = -tree.gravity if base is None else base
    still = np.zeros(tree.n)
    drift = motion(tree, at, qd, still)  # what the rates alone cause, without gravity
    own = [_own_bias(tree, at, drift, j) for j in range(len(tree.links))]
    tau = tau - joint_forces(tree, q, qd, still, without)
    blocks = [_blocks(link.body.as_rigid()) for link in tree.links]
    f, m = [], []
    for j, link in enumerate(tree.links):
        force, moment = link.body.as_rigid().wrench(_spin(drift.w[j]), np.zeros(3))
        f.append(force)
        m.append(moment)
    for j, (force, moment, *_) in element_wrenches(tree, at, drift).items() if "springs" not in without else ():
        f[j], m[j] = f[j] - force, m[j] - moment
    hinges: list[Any] = [None] * len(tree.links)
    for j in reversed(range(len(tree.links))):
        link = tree.links[j]
        (A, B, C), (c, gamma) = blocks[j], own[j]
        S_v, S_w = link.joint.S_v, link.joint.S_w
        U_f, U_m = A @ S_v + B @ S_w, B.T @ S_v + C @ S_w
        D = S_v.T @ U_f + S_w.T @ U_m
        if link.terms.inert and "motor-inertia" not in without:
            D = D + link.terms.inertia
        u = tau[link.v] - S_v.T @ f[j] - S_w.T @ m[j]
        hinges[j] = (U_f, U_m, D, u)
        if link.parent == GROUND:
            continue
        K_f, K_m = _over(U_f, D), _over(U_m, D)
        A, B, C = A - K_f @ U_f.T, B - K_f @ U_m.T, C - K_m @ U_m.T
        f_j = f[j] + A @ c + B @ gamma + K_f @ u
        m_j = m[j] + B.T @ c + C @ gamma + K_m @ u
        _carry(tree, at, j, (A, B, C), f_j, m_j, blocks, f, m)
    return _accelerations(tree, at, own, hinges, base)


def _spin(w: Array) -> Array:
    """hat(w) hat(w)."""
    return hat(w) @ hat(w)


def _blocks(body: RigidBody) -> tuple[Array, Array, Array]:
    return body.m * np.eye(3), hat(body.S).T, body.I


def _own_bias(tree: Tree, at: Pose, drift: Any, j: int) -> tuple[Array, Array]:
    """Accelerations of a link, in its axes, beyond those that its parent's acceleration carries to it."""
    link = tree.links[j]
    if link.parent == GROUND:
        return drift.a[j], drift.al[j]
    k = link.parent
    carried = drift.a[k] + cross(drift.al[k], at.local_position[j])
    return drift.a[j] - at.from_parent(tree, j, carried), drift.al[j] - at.from_parent(tree, j, drift.al[k])


def _over(U: Array, D: Array) -> Array:
    """U D^-1 for a symmetric positive D."""
    if D.shape == (1, 1):
        return U / D[0, 0]
    return np.array([solve_positive(D, row) for row in U])


def _carry(
    tree: Tree,
    at: Pose,
    j: int,
    inertia: tuple[Array, Array, Array],
    f_j: Array,
    m_j: Array,
    blocks: list,
    f: list[Array],
    m: list[Array],
) -> None:
    """Add what a link leaves over to its parent, in the parent's axes at the parent's origin."""
    k, p = tree.links[j].parent, at.local_position[j]
    A, B, C = (_turned(tree, at, j, block) for block in inertia)
    P = hat(p)
    shifted = B - A @ P
    old = blocks[k]
    blocks[k] = (old[0] + A, old[1] + shifted, old[2] + C + P @ shifted - B.T @ P)
    force = at.to_parent(tree, j, f_j)
    f[k] = f[k] + force
    m[k] = m[k] + at.to_parent(tree, j, m_j) + cross(p, force)


def _turned(tree: Tree, at: Pose, j: int, block: Array) -> Array:
    return at.to_parent(tree, j, at.to_parent(tree, j, block).T).T


def _accelerations(tree: Tree, at: Pose, own: list, hinges: list, base: Array) -> Array:
    a: list[Array] = []
    al: list[Array] = []
    rows = []
    for j, link in enumerate(tree.links):
        if link.parent == GROUND:
            a_j, al_j = at.from_parent(tree, j, base), np.zeros(3)
        else:
            k = link.parent
            a_j = at.from_parent(tree, j, a[k] + cross(al[k], at.local_position[j]))
            al_j = at.from_parent(tree, j, al[k])
        a_j, al_j = a_j + own[j][0], al_j + own[j][1]
        U_f, U_m, D, u = hinges[j]
        right = u - U_f.T @ a_j - U_m.T @ al_j
        qdd = right / D[0, 0] if D.shape == (1, 1) else solve_positive(D, right)
        rows.append(qdd)
        a.append(a_j + link.joint.S_v @ qdd)
        al.append(al_j + link.joint.S_w @ qdd)
    return np.concatenate(rows)
