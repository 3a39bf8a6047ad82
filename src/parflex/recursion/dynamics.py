"""Compute Newton-Euler forces, composite and articulated bodies, and the inertial-parameter regressor.

The direct model of an open tree by articulated bodies takes operators in proportion to the number of links. A link with
all bodies that it carries responds like a body to a force: f = I_A a + p_A, theory (23). The inertia is stored in 3 x 3
blocks A (force per acceleration), B (force per angular acceleration) and C (moment per angular acceleration).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.records import Record
from parflex.recursion.energy import LinkWrench, add_wrenches, element_wrenches
from parflex.recursion.kinematics import Motion, Pose, acceleration_matrix, jacobians, motion
from parflex.spatial.linear import scalar_type, solve_positive
from parflex.spatial.rotations import cross, hat
from parflex.tree.tree import GROUND, Link, Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class NewtonEuler(Record):
    """`forces` along all rates, theory (8), and the wrench (f, m) of the parent on each link at its origin."""

    forces: Array
    f: list[Array]
    m: list[Array]


def newton_euler(tree: Tree, at: Pose, moving: Motion, external: Mapping[int, LinkWrench] | None = None) -> NewtonEuler:
    """Return wrenches of the links in this motion, theory (6); `external` wrenches act at origins of links.

    Elements between two points act as wrenches, theory (44).
    """
    return propagate_inwards(tree, at, *link_wrenches(tree, at, moving, external))


def link_wrenches(
    tree: Tree, at: Pose, moving: Motion, external: Mapping[int, LinkWrench] | None = None
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the inertial force, moment and forces along elastic coordinates of each link."""
    needed: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
    for j, link in enumerate(tree.links):
        e, ed, edd = at.q[link.e], moving.qd[link.e_v], moving.qdd[link.e_v]
        for part, own in zip(needed, link.body.forces(moving.U[j], moving.a[j], moving.w[j], e, ed, edd), strict=True):
            part.append(own)
    acting = element_wrenches(tree, at, moving)
    add_wrenches(acting, external or {})
    return subtract_external(needed, acting)


def subtract_external(
    required: tuple[list[Array], list[Array], list[Array]], external: Mapping[int, LinkWrench]
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return required wrenches less external wrenches."""
    f, m, elastic = (list(part) for part in required)
    for j, wrench in external.items():
        for part, acting in zip((f, m, elastic), wrench, strict=False):
            part[j] = part[j] - acting
    return f, m, elastic


def propagate_inwards(tree: Tree, at: Pose, f: list[Array], m: list[Array], elastic: list[Array]) -> NewtonEuler:
    """Propagate wrenches of links and forces along their elastic coordinates to the ground."""
    rows: list[Any] = [None] * len(tree.links)
    for j in reversed(range(len(tree.links))):
        link = tree.links[j]
        rows[j] = np.concatenate([link.joint.S_v.T @ f[j] + link.joint.S_w.T @ m[j], elastic[j]])
        if link.parent != GROUND:
            carried = at.to_parent(tree, j, f[j])
            turning = at.to_parent(tree, j, m[j])
            f[link.parent] = f[link.parent] + carried
            m[link.parent] = m[link.parent] + turning + cross(at.local_position[j], carried)
            if link.node is not None:
                L = link.node.L(at.q[tree.links[link.parent].e])
                elastic_force = link.node.Phi_d.T @ carried + link.node.Phi_r.T @ (L.T @ turning)
                elastic[link.parent] = elastic[link.parent] + elastic_force
    return NewtonEuler(np.concatenate(rows) if rows else np.zeros(0), f, m)


def carry_wrenches(tree: Tree, at: Pose, external: Mapping[int, LinkWrench]) -> NewtonEuler:
    """Return the joint wrenches of a tree without inertia under `external` wrenches on links."""
    zero, unbent = [np.zeros(3)] * len(tree.links), [np.zeros(link.body.size) for link in tree.links]
    return propagate_inwards(tree, at, *subtract_external((zero, zero, unbent), external))


def joint_forces(tree: Tree, q: Array, qd: Array, qdd: Array) -> Array:
    """Return forces of joints: motor inertia, friction, springs, dampers, theory (7), stops, couplings."""
    forces = np.zeros(tree.n, dtype=np.result_type(np.asarray(q).dtype, np.asarray(qd).dtype))
    for link in tree.links:
        if not link.joint.one_axis:
            continue
        terms, k = link.terms, link.v.start
        acting = [terms.inertia * qdd[k]] if terms.inert else []
        acting += [terms.viscous_friction(qd[k])] if terms.viscous else []
        acting += [terms.friction(qd[k])] if terms.rubs else []
        acting += [terms.offset] if terms.offset else []
        acting += [terms.stiffness * (q[link.q.start] - terms.rest)] if terms.stiffness else []
        acting += [terms.damper * qd[k]] if terms.damper else []
        acting += [-terms.stop.effort(q[link.q.start], qd[k])] if terms.stop is not None else []
        for force in acting:
            forces[k] = forces[k] + force
    for spring in tree.springs:
        spring.add_to(forces, q, qd)
    return forces


def mass_matrix(tree: Tree, at: Pose) -> Array:
    """Return M_tot of theory (8): inertia along all rates of the open tree, motor inertias included."""
    if tree.elastic:
        return _summed(tree, at)
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
            ancestor = tree.links[k]
            M[ancestor.v, link.v] = ancestor.joint.S_v.T @ force + ancestor.joint.S_w.T @ moment
            M[link.v, ancestor.v] = M[ancestor.v, link.v].T
        if link.terms.inert:
            M[link.v.start, link.v.start] += link.terms.inertia
    return M


def _summed(tree: Tree, at: Pose) -> Array:
    """Return the mass matrix as a sum of J^T M J over bodies, for trees with elastic bodies."""
    M: Array = np.zeros((tree.n, tree.n), dtype=scalar_type(*at.rotation, *at.position))
    for link, rates in zip(tree.links, jacobians(tree, at), strict=True):
        J = body_rows(tree, link, rates)
        M = M + J.T @ link.body.inertia_matrix(at.q[link.e]) @ J
        if link.terms.inert:
            M[link.v.start, link.v.start] += link.terms.inertia
    return M


def body_rows(tree: Tree, link: Link, rates: tuple[Array, Array]) -> Array:
    """Return twist and elastic rates of the body of a link per rate of the tree."""
    return np.concatenate([*rates, np.eye(tree.n)[link.e_v]])


def articulated_accelerations(tree: Tree, at: Pose, qd: Any, tau: Array) -> Array:
    """Return accelerations along all rates under the forces `tau` along them."""
    zeros = np.zeros(tree.n)
    drift = motion(tree, at, qd, zeros)  # what the rates alone cause, without gravity
    tau = tau - joint_forces(tree, at.q, qd, zeros)
    bodies = [link.body.as_rigid() for link in tree.links]
    blocks = [(body.m * np.eye(3), hat(body.S).T, body.I) for body in bodies]
    wrenches = [body.wrench(hat(w) @ hat(w), np.zeros(3)) for body, w in zip(bodies, drift.w, strict=True)]
    f, m = ([wrench[k] for wrench in wrenches] for k in range(2))
    for j, (force, moment, *_) in element_wrenches(tree, at, drift).items():
        f[j], m[j] = f[j] - force, m[j] - moment
    hinges: list[Any] = [None] * len(tree.links)  # of each link U, D and u of its joint, and its own bias
    for j in reversed(range(len(tree.links))):
        link, k, p = tree.links[j], tree.links[j].parent, at.local_position[j]
        (A, B, C), (c, gamma) = blocks[j], _link_bias(tree, at, drift, j)
        S_v, S_w = link.joint.S_v, link.joint.S_w
        U_f, U_m = A @ S_v + B @ S_w, B.T @ S_v + C @ S_w
        D = S_v.T @ U_f + S_w.T @ U_m
        if link.terms.inert:
            D = D + link.terms.inertia
        u = tau[link.v] - S_v.T @ f[j] - S_w.T @ m[j]
        hinges[j] = (U_f, U_m, D, u, c, gamma)
        if k == GROUND:
            continue
        K_f, K_m = _over(U_f, D), _over(U_m, D)
        A, B, C = A - K_f @ U_f.T, B - K_f @ U_m.T, C - K_m @ U_m.T
        f_j = f[j] + A @ c + B @ gamma + K_f @ u
        m_j = m[j] + B.T @ c + C @ gamma + K_m @ u
        # what the link leaves over, in the axes of its parent at the origin of that
        A, B, C = (at.to_parent(tree, j, at.to_parent(tree, j, block).T).T for block in (A, B, C))
        P, force = hat(p), at.to_parent(tree, j, f_j)
        shifted = B - A @ P
        A_k, B_k, C_k = blocks[k]
        blocks[k] = (A_k + A, B_k + shifted, C_k + C + P @ shifted - B.T @ P)
        f[k], m[k] = f[k] + force, m[k] + at.to_parent(tree, j, m_j) + cross(p, force)
    return _hinge_accelerations(tree, at, hinges)


def _link_bias(tree: Tree, at: Pose, drift: Motion, j: int) -> tuple[Array, Array]:
    """Return the acceleration of a link, in its axes, without the part of its parent's acceleration."""
    link, k = tree.links[j], tree.links[j].parent
    if k == GROUND:
        return np.zeros(3), np.zeros(3)
    w, U = at.from_parent(tree, j, drift.w[k]), acceleration_matrix(drift.w[k], np.zeros(3))
    slide, turn = (S @ drift.qd[link.v] for S in (link.joint.S_v, link.joint.S_w))
    return at.from_parent(tree, j, U @ at.local_position[j]) + 2 * cross(w, slide), cross(w, turn)


def _over(U: Array, D: Array) -> Array:
    """Return U D^-1 for a symmetric positive D."""
    return U / D[0, 0] if D.shape == (1, 1) else np.array([solve_positive(D, row) for row in U])


def _hinge_accelerations(tree: Tree, at: Pose, hinges: list[Any]) -> Array:
    """Return accelerations along all rates, from the ground outwards."""
    a: list[Array] = []
    al: list[Array] = []
    rows = []
    for j, (link, (U_f, U_m, D, u, c, gamma)) in enumerate(zip(tree.links, hinges, strict=True)):
        a_j, al_j, k = -tree.gravity, np.zeros(3), link.parent
        if k != GROUND:
            a_j, al_j = a[k] + cross(al[k], at.local_position[j]), al[k]
        a_j, al_j = at.from_parent(tree, j, a_j) + c, at.from_parent(tree, j, al_j) + gamma
        rhs = u - U_f.T @ a_j - U_m.T @ al_j
        rows.append(rhs / D[0, 0] if D.shape == (1, 1) else solve_positive(D, rhs))
        a.append(a_j + link.joint.S_v @ rows[j])
        al.append(al_j + link.joint.S_w @ rows[j])
    return np.concatenate(rows)


def body_regressor(tree: Tree, at: Pose, moving: Motion, J: Array | None = None) -> Array:
    """Return forces along rates per unit of XX XY XZ YY YZ ZZ MX MY MZ M of each link, theory (65).

    Rows are those of all rates, or of the independent rates for J (n x m). `moving` includes an acceleration of the
    ground against gravity.
    """
    columns = []
    for j, (J_v, J_w) in enumerate(jacobians(tree, at)):
        if J is not None:
            J_v, J_w = J_v @ J, J_w @ J
        a, U = moving.a[j], moving.U[j]
        columns += [J_w.T @ moment for moment in _second_moments(U)]
        columns += [J_v.T @ U[:, i] + J_w.T @ cross(unit, a) for i, unit in enumerate(np.eye(3))]
        columns.append(J_v.T @ a)
        if tree.links[j].strut:  # the slide of a strut is no body
            columns[-10:] = [0 * column for column in columns[-10:]]
    return np.stack(columns, axis=1)


def _second_moments(U: Array) -> list[Array]:
    """Return the axial part of U Sigma for units of XX, XY, XZ, YY, YZ, ZZ, theory (3)."""
    turn = [(U[2, 1] - U[1, 2]) / 2, (U[0, 2] - U[2, 0]) / 2, (U[1, 0] - U[0, 1]) / 2]  # angular acceleration
    mixed = [(U[2, 1] + U[1, 2]) / 2, (U[0, 2] + U[2, 0]) / 2, (U[1, 0] + U[0, 1]) / 2]  # products of rates
    return [
        np.array([turn[0], mixed[1], -mixed[2]]),
        np.array([-U[2, 0], U[2, 1], U[0, 0] - U[1, 1]]),
        np.array([U[1, 0], U[2, 2] - U[0, 0], -U[1, 2]]),
        np.array([-mixed[0], turn[1], mixed[2]]),
        np.array([U[1, 1] - U[2, 2], -U[0, 1], U[0, 2]]),
        np.array([mixed[0], -mixed[1], turn[2]]),
    ]
