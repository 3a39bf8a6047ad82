"""Dynamics of flexible robots in the twists of their rigid pieces, over any scalar.

Unknown are accelerations of pieces and of the joints inside them; beams give inertia and forces between the nodes that
they tie. The matrix is symmetric, positive definite and sparse, so it is eliminated without pivoting in an order that
keeps it so. Elastic accelerations follow from those of the nodes. [Briot2014], [Germain2015] in one form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.forces.forces import on_links, singular_inertia_error
from parflex.models.forms.in_pieces.beam_assembly import add_to, assemble_beam, elastic_acceleration
from parflex.models.forms.in_pieces.node_state import NodeState
from parflex.models.forms.in_pieces.piece_motion import accelerations
from parflex.models.forms.in_pieces.piece_rates import piece_rates
from parflex.recursion.dynamics import joint_forces
from parflex.recursion.kinematics import acceleration_matrix, pose
from parflex.robot.substructures import CutBeam, CutModal, Substructures, is_free
from parflex.spatial.linear import (
    can_share_call,
    eliminate_groups,
    is_zero,
    scalar_type,
    solve_symmetric,
    substitute_groups,
)
from parflex.spatial.rotations import cross, hat

Array = np.ndarray


def node_state(
    form: Substructures,
    q: Any,
    independent: Array,
    without: tuple[str, ...] = (),
    external: Mapping[str, Array] | None = None,
) -> NodeState:
    """Inertia A and forces f with A x + f = forces of the motors, for closed positions and independent rates.

    Theory (31). `external` wrenches act on frames, at their origins, in world axes.
    """
    at = pose(form.robot.tree, q)
    rates = piece_rates(form, at, independent)
    n = form.size
    A, f = np.zeros((n, n), dtype=object), np.zeros(n, dtype=object)
    state = NodeState(form, at, rates, accelerations(form, at, rates), A, f)
    for beam in form.beams:
        _add_beam(state, beam)
    for j, body in form.bodies.items():
        if j not in form.on_beams:
            own = state.moving.links[j]
            M, forces = _body(body, own.w, own.turned)
            add_to(state, own.J, own.columns, M, forces + M @ np.concatenate([own.a, own.al]))
    for modal in form.modal:
        _add_modal(state, modal)
    _add_joints(state, without)
    _add_wrenches(state, external or {})
    return state


def _add_modal(state: NodeState, modal: CutModal) -> None:
    """Inertia and forces of a flexible body that is not cut."""
    link, own = state.form.robot.tree.links[modal.link], state.moving.links[modal.link]
    e, ed = state.at.q[link.e], state.rates.qd[link.e_v]
    still, count = np.zeros(3), modal.body.size
    w = state.rates.w(modal.link)
    forces = np.concatenate(modal.body.forces(acceleration_matrix(w, still), still, w, e, ed, np.zeros(count)))
    M = modal.body.inertia_matrix(e)
    J_v, J_w, columns, places = own.widened(modal.slots)
    modes = np.zeros((count, len(columns)))
    modes[:, places] = np.eye(count)[:, list(modal.free)]
    parts = (own.a, own.al, J_v, J_w)
    a, al, J_v, J_w = parts if own.turned is None else (own.turned.T @ part for part in parts)
    add_to(state, np.vstack([J_v, J_w, modes]), columns, M, forces + M @ np.concatenate([a, al, np.zeros(count)]))


def _add_wrenches(state: NodeState, external: Mapping[str, Array]) -> None:
    for link, (force, moment, *bend) in on_links(state.form.robot.tree, state.at, external).items():
        _add_wrench(state, link, force, moment)
        if bend:
            _add_bending(state, link, bend[0])


def _add_wrench(state: NodeState, link: int, force: Array, moment: Array) -> None:
    own = state.moving.links[link]
    columns = list(own.columns)
    state.f[columns] = state.f[columns] - own.J_v.T @ own.out(force) - own.J_w.T @ own.out(moment)


def _add_bending(state: NodeState, link: int, bend: Array) -> None:
    """Forces along the elastic coordinates of a body: of a beam they are wrenches on its two ends, theory (29).

    Those along the modes of a reduced beam act on these.
    """
    beam = next((beam for beam in state.form.beams if beam.link == link), None)
    if beam is None:
        modal = next(modal for modal in state.form.modal if modal.link == link)
        state.f[modal.slots] = state.f[modal.slots] - bend[list(modal.free)]
        return
    ends = beam.form.elastic_rates(state.at.q[state.form.robot.tree.links[link].e]).T @ bend[: beam.ends]
    if beam.body.held:
        state.f[beam.slots] = state.f[beam.slots] - bend[beam.ends :]
    X = state.at.local_rotation[beam.tip].T
    _add_wrench(state, link, ends[:3], ends[3:6])
    _add_wrench(state, beam.tip, X @ ends[6:9], X @ ends[9:])


def _body(body: RigidBody, w: Array, R: Array | None) -> tuple[Array, Array]:
    """Inertia of a rigid body and the forces of its turning, in axes to which R takes its vectors."""
    S, I = (body.S, body.I) if R is None else (R @ body.S, R @ body.I @ R.T)
    M = np.block([[body.m * np.eye(3), hat(S).T], [hat(S), I]])
    return M, np.concatenate([hat(w) @ hat(w) @ S, cross(w, I @ w)])


def _add_beam(state: NodeState, beam: CutBeam) -> None:
    """Inertia and forces of a beam and of what its ends carry, in the axes of its root."""
    form, link, rates = state.form, state.form.robot.tree.links[beam.link], state.rates
    used, count = list(form.used), len(form.used)
    carried = [form.bodies[j] if form.on_beams.get(j) == beam.link else None for j in (beam.link, beam.tip)]

    def loaded(e: Array, ed: Array, w: Array, w_tip: Array, R: Array) -> list[tuple[Array, Array]]:
        M, forces = beam.form.equations(e, ed, w, form.used)
        M, forces = M.astype(object), forces.astype(object)  # of root and tip, then of modes
        for body, spin, axes, own in (
            (carried[0], w, None, slice(0, count)),
            (carried[1], w_tip, R, slice(count, 2 * count)),
        ):
            if body is not None:
                added, forced = _body(body, spin, axes)
                M[own, own] = M[own, own] + added[np.ix_(used, used)]
                forces[own] = forces[own] + forced[used]
        return [(M, forces)]

    key = ("inertia", beam.body, tuple(carried))
    given = [state.at.q[link.e], rates.qd[link.e_v], rates.w(beam.link), rates.before[beam.tip]]
    assemble_beam([state], beam, loaded, key, *given, state.at.local_rotation[beam.tip])


def _add_joints(state: NodeState, without: tuple[str, ...]) -> None:
    """Motor inertia, friction and springs of the joints."""
    tree = state.form.robot.tree
    terms = joint_forces(tree, state.at.q, state.rates.qd, np.zeros(tree.n), without)
    for k, (columns, row) in state.moving.joints.items():
        own = tree.links[tree.link_of_rate[k]].terms
        inert = own.inert and "motor-inertia" not in without
        if inert or not is_zero(terms[k]):
            add_to(state, row[None, :], columns, np.array([[own.inertia if inert else 0.0]]), terms[k : k + 1])


def motor_slots(state: NodeState) -> list[int]:
    """The unknowns that are accelerations of the motors."""
    rows = [state.moving.joints[k] for k in state.form.robot.actuated]
    return [columns[int(np.flatnonzero(row)[0])] for columns, row in rows]


def independent_accelerations(state: NodeState, x: Array) -> Array:
    """Accelerations of the independent coordinates from the unknowns."""
    form = state.form
    tree = form.robot.tree
    values: dict[int, Any] = {k: row @ x[list(columns)] for k, (columns, row) in state.moving.joints.items()}
    requested = {int(k) for k in form.partition.independent}
    for modal in form.modal:
        start = tree.links[modal.link].e_v.start
        values |= dict(zip((start + k for k in modal.free), x[modal.slots], strict=True))
    for beam in form.beams:
        start = tree.links[beam.link].e_v.start
        values |= dict(zip(range(start + beam.ends, start + beam.body.size), x[beam.slots], strict=True))
        own = [k for k in range(beam.ends) if start + k in requested]
        if own:
            bent = elastic_acceleration(state, beam, x)
            values |= {start + k: bent[k] for k in own}
    for j, link in enumerate(tree.links):
        if is_free(form.robot, j):
            moving = state.moving.links[j]
            gravity = state.at.rotation[j].T @ tree.gravity
            some = x[list(moving.columns)]
            a, al = moving.a + moving.J_v @ some + gravity, moving.al + moving.J_w @ some
            motion = np.concatenate([a, al])[list(form.used)]
            values |= dict(zip(range(link.v.start, link.v.stop), motion, strict=True))
    return np.array([values[int(k)] for k in form.partition.independent])


def accelerations_under(state: NodeState, tau: Array) -> Array:
    """Accelerations of the independent coordinates under the efforts of the motors."""
    right = -state.f
    for slot, effort in zip(motor_slots(state), tau, strict=True):
        right[slot] = right[slot] + effort
    try:
        x = _solved(state, state.A, right, range(state.form.size))
    except np.linalg.LinAlgError:
        raise singular_inertia_error() from None
    return independent_accelerations(state, _numbers(x, state.at.q))


def efforts_for(state: NodeState, accelerations: Array) -> tuple[Array, Array]:
    """Efforts of the motors for their accelerations, and the accelerations of all independent coordinates."""
    driven = motor_slots(state)
    rest = [k for k in range(state.form.size) if k not in set(driven)]
    A, f, q = state.A, state.f, state.at.q
    x = np.zeros(state.form.size, dtype=object)
    x[driven] = accelerations
    right = -f[rest] - A[np.ix_(rest, driven)] @ x[driven]
    x[rest] = _solved(state, A[np.ix_(rest, rest)], right, rest)
    effort = A[driven] @ x + f[driven]
    return _numbers(effort, q), independent_accelerations(state, _numbers(x, q))


def _solved(state: NodeState, A: Array, right: Array, unknowns: Sequence[int]) -> Array:
    """Unknowns from their part of the matrix, in an order that keeps it sparse."""
    if not can_share_call(state.f):
        return solve_symmetric(A, right, sparse=True)
    steps = eliminate_groups(A, groups_among(state.form, unknowns))
    return np.array(substitute_groups(steps, list(right)), dtype=object)


def groups_among(form: Substructures, unknowns: Sequence[int]) -> list[list[int]]:
    """Groups of unknowns as they are numbered among some of them."""
    place = {k: number for number, k in enumerate(unknowns)}
    found = [[place[k] for k in group if k in place] for group in form.groups]
    return [group for group in found if group]


def _numbers(values: Array, q: Any) -> Array:
    """Floats where the inputs are floats."""
    return values.astype(scalar_type(q))
