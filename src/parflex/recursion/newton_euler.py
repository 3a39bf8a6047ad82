"""Newton-Euler from the tips inwards: the wrench in every joint and the forces along the coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import Motion, Pose
from parflex.recursion.point_forces import Push, add_wrenches, element_wrenches
from parflex.spatial.rotations import cross
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray
JOINT_TERMS = ("motor-inertia", "friction", "springs")


@dataclass(frozen=True, eq=False, repr=False)
class NewtonEuler(Record):
    """`forces` along all rates, theory (8), and the wrench (f, m) that the parent puts on each link at its origin."""

    forces: Array
    f: list[Array]
    m: list[Array]


def newton_euler(tree: Tree, at: Pose, moving: Motion, external: Mapping[int, Push] | None = None) -> NewtonEuler:
    """Wrenches of the links in this motion, theory (6); `external` ones act on links, at their origins and axes.

    Elements between two points act as such wrenches, theory (44).
    """
    return inwards(tree, at, *link_wrenches(tree, at, moving, external))


def link_wrenches(
    tree: Tree, at: Pose, moving: Motion, external: Mapping[int, Push] | None = None
) -> tuple[list[Array], list[Array], list[Array]]:
    """What each link needs for itself: force, moment and forces along its elastic coordinates."""
    if tree.elements:
        acting = element_wrenches(tree, at, moving)
        add_wrenches(acting, external or {})
        external = acting
    f: list[Array] = []
    m: list[Array] = []
    elastic: list[Array] = []
    for j, link in enumerate(tree.links):
        e, ed, edd = at.q[link.e], moving.qd[link.e_v], moving.qdd[link.e_v]
        force, moment, s = link.body.forces(moving.U[j], moving.a[j], moving.w[j], e, ed, edd)
        if external and j in external:
            force, moment = force - external[j][0], moment - external[j][1]
            s = s - external[j][2] if len(external[j]) > 2 else s
        elastic.append(s)
        f.append(force)
        m.append(moment)
    return f, m, elastic


def relieved(
    needed: tuple[list[Array], list[Array], list[Array]], external: Mapping[int, Push]
) -> tuple[list[Array], list[Array], list[Array]]:
    """What links need less what acts on them."""
    f, m, elastic = (list(part) for part in needed)
    for j, pushed in external.items():
        f[j], m[j] = f[j] - pushed[0], m[j] - pushed[1]
        elastic[j] = elastic[j] - pushed[2] if len(pushed) > 2 else elastic[j]
    return f, m, elastic


def inwards(tree: Tree, at: Pose, f: list[Array], m: list[Array], elastic: list[Array]) -> NewtonEuler:
    """Wrenches that links need, and forces along their elastic coordinates, carried to the ground."""
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
                felt = link.node.Phi_d.T @ carried + link.node.Phi_r.T @ (L.T @ turning)
                elastic[link.parent] = elastic[link.parent] + felt
    return NewtonEuler(np.concatenate(rows) if rows else np.zeros(0), f, m)


def joint_forces(tree: Tree, q: Array, qd: Array, qdd: Array, without: tuple[str, ...] = ()) -> Array:
    """Forces along the rates of joints: motor inertia, friction, springs, dampers, theory (7), stops, couplings."""
    forces = np.zeros(tree.n, dtype=np.result_type(np.asarray(q).dtype, np.asarray(qd).dtype))
    for link in tree.links:
        if not link.joint.one_axis:
            continue
        terms, k = link.terms, link.v.start
        if terms.inert and "motor-inertia" not in without:
            forces[k] = forces[k] + terms.inertia * qdd[k]
        if terms.viscous and "friction" not in without:
            forces[k] = forces[k] + terms.viscous_friction(qd[k])
        if terms.rubs and "friction" not in without:
            forces[k] = forces[k] + terms.friction(qd[k])
        if terms.offset and "friction" not in without:
            forces[k] = forces[k] + terms.offset
        if terms.stiffness and "springs" not in without:
            forces[k] = forces[k] + terms.stiffness * (q[link.q.start] - terms.rest)
        if terms.damper and "springs" not in without:
            forces[k] = forces[k] + terms.damper * qd[k]
        if terms.stop is not None:
            forces[k] = forces[k] - terms.stop.effort(q[link.q.start], qd[k])
    for spring in tree.springs if "springs" not in without else ():
        spring.add_to(forces, q, qd)
    return forces
