"""Dynamics of flexible robots in the twists of their rigid pieces, over any scalar.

Unknown are accelerations of pieces and of the joints inside them; beams give inertia and forces between the nodes that
they tie. The matrix is symmetric, positive definite and sparse, so it is eliminated without pivoting in an order that
keeps it so. Elastic accelerations follow from those of the nodes. [Briot2014], [Germain2015] in one form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.bodies import RigidBody
from parflex.models.cutting import CutBeam, CutModal, floats
from parflex.models.dynamics.forces import no_inertia, on_links
from parflex.models.forms.in_pieces.piece_motion import Carried, PieceMotion, accelerations
from parflex.models.forms.in_pieces.piece_rates import Rates, piece_rates
from parflex.models.forms.in_pieces.pieces import Pieces
from parflex.records import Record
from parflex.recursion import Pose, joint_forces, pose
from parflex.recursion.kinematics import turning
from parflex.spatial import cross, hat
from parflex.spatial.elimination import solve_symmetric
from parflex.spatial.linear import scalar_type

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class NodeState(Record):
    """Everything at a state: rates, accelerations per unknown, inertia and forces in the unknowns."""

    form: Pieces
    at: Pose
    rates: Rates
    moving: PieceMotion
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


def node_state(
    form: Pieces,
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
            J = np.vstack([own.J_v, own.J_w])
            add_to(state, J, M, forces + M @ np.concatenate([own.a, own.al]))
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
    forces = np.concatenate(modal.body.forces(turning(w, still), still, w, e, ed, np.zeros(count)))
    M = modal.body.inertia_matrix(e)
    modes = np.zeros((count, state.form.size))
    modes[:, modal.slots] = np.eye(count)[:, list(modal.free)]
    parts = (own.a, own.al, own.J_v, own.J_w)
    a, al, J_v, J_w = parts if own.turned is None else (own.turned.T @ part for part in parts)
    add_to(state, np.vstack([J_v, J_w, modes]), M, forces + M @ np.concatenate([a, al, np.zeros(count)]))


def _add_wrenches(state: NodeState, external: Mapping[str, Array]) -> None:
    for link, (force, moment, *bend) in on_links(state.form.robot.tree, state.at, external).items():
        _add_wrench(state, link, force, moment)
        if bend:
            _add_bending(state, link, bend[0])


def _add_wrench(state: NodeState, link: int, force: Array, moment: Array) -> None:
    own = state.moving.links[link]
    state.f[:] = state.f - own.J_v.T @ own.out(force) - own.J_w.T @ own.out(moment)


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
    """Inertia and forces of a beam and of what its ends carry."""
    assemble_beam(state, beam, *_loaded(state, beam))


def assemble_beam(state: NodeState, beam: CutBeam, M: Array, forces: Array) -> None:
    """Add a matrix and forces of the motion of a beam's two ends, in the axes of its root.

    What its root does is put in first, while the matrix still has the zeros of the beam's own axes; then the tip is
    moved to the joint that it hangs on and turned into the axes of its piece.
    """
    root, tip = state.moving.links[beam.link], state.moving.links[beam.tip]
    count, used = len(state.form.used), list(state.form.used)
    arm = np.zeros(3)
    if tip.anchor is not None and tip.arm is not None:
        tip, arm = tip.anchor, state.at.local_rotation[beam.tip] @ tip.arm
    turns = _turn_of_tip(state, beam, tip)
    w = state.rates.before[beam.tip]
    at_root = [part if root.turned is None else root.turned.T @ part for part in (root.a, root.al)]
    a, al = (part if turns is None else turns.T @ part for part in (tip.a, tip.al))
    at_tip = [a + cross(al, arm) + hat(w) @ hat(w) @ arm, al]
    still = np.zeros(len(M) - 2 * count)
    forces = forces + M @ np.concatenate([np.concatenate(at_root)[used], np.concatenate(at_tip)[used], still])
    J_A, J_B = (np.vstack([end.J_v, end.J_w])[used] for end in (root, tip))
    one, two, modes = slice(0, count), slice(count, 2 * count), slice(2 * count, len(M))
    M_AA, M_AB, M_BB = M[one, one], M[one, two], M[two, two]
    M_IA, M_IB, f_A, f_B = M[modes, one], M[modes, two], forces[one], forces[two]
    if root.turned is not None:
        Q = _both(root.turned, used)
        M_AA, M_AB, M_IA, f_A = _turned(M_AA, Q, used), Q @ M_AB, M_IA @ Q.T, Q @ f_A
    own, columns = _moving(J_A)
    add_to(state, J_A, M_AA, f_A)
    M_AB, M_IA = own.T @ M_AB, M_IA @ own
    if any(not _zero(x) for x in arm):
        shift = np.block([[np.eye(3), -hat(arm)], [np.zeros((3, 3)), np.eye(3)]])[np.ix_(used, used)]
        M_AB, M_BB, M_IB, f_B = M_AB @ shift, shift.T @ M_BB @ shift, M_IB @ shift, shift.T @ f_B
    if turns is not None:
        Q = _both(turns, used)
        M_AB, M_BB, M_IB, f_B = M_AB @ Q.T, _turned(M_BB, Q, used), M_IB @ Q.T, Q @ f_B
    add_to(state, J_B, M_BB, f_B)
    own, others = _moving(J_B)
    _add_between(state, columns, others, M_AB @ own)
    if beam.body.held:
        slots = list(range(beam.slots.start, beam.slots.stop))
        add_to(state, np.eye(state.form.size)[slots], M[modes, modes], forces[modes])
        _add_between(state, slots, columns, M_IA)
        _add_between(state, slots, others, M_IB @ own)


def _add_between(state: NodeState, rows: list[int], columns: list[int], block: Array) -> None:
    """Add a block beside the diagonal, on both sides of it; an unknown may move both ends."""
    for i, row in zip(rows, block, strict=True):
        for k, value in zip(columns, row, strict=True):
            state.A[i, k] = state.A[i, k] + value
            state.A[k, i] = state.A[k, i] + value


def _turn_of_tip(state: NodeState, beam: CutBeam, tip: Carried) -> Array | None:
    """Rotation from the axes of a beam's root to those in which its tip is written; None if they are the same."""
    R = state.at.local_rotation[beam.tip]
    if tip.turned is None:
        return R.T
    return None if tip.turned is R else tip.turned @ R.T


def _loaded(state: NodeState, beam: CutBeam) -> tuple[Array, Array]:
    """Inertia and forces of a beam with the bodies at its ends, in the axes of its root."""
    form, link, rates = state.form, state.form.robot.tree.links[beam.link], state.rates
    used, count = list(form.used), len(form.used)
    M, forces = beam.form.equations(state.at.q[link.e], rates.qd[link.e_v], rates.w(beam.link), form.used)
    M, forces = M.astype(object), forces.astype(object)  # of root and tip, then of modes
    for j, w, R, own in (
        (beam.link, rates.w(beam.link), None, slice(0, count)),
        (beam.tip, rates.before[beam.tip], state.at.local_rotation[beam.tip], slice(count, 2 * count)),
    ):
        if form.on_beams.get(j) == beam.link:
            added, turning = _body(form.bodies[j], w, R)
            M[own, own] = M[own, own] + added[np.ix_(used, used)]
            forces[own] = forces[own] + turning[used]
    return M, forces


def _both(R: Array, used: list[int]) -> Array:
    """The rotation of force and moment, of the components that are used."""
    zero = np.zeros((3, 3))
    return np.block([[R, zero], [zero, R]])[np.ix_(used, used)]


def _turned(M: Array, Q: Array, used: list[int]) -> Array:
    """Q M Q^T. A multiple of the unit matrix does not turn: it is taken out of each block on the diagonal first."""
    split = sum(k < 3 for k in used)
    entries = np.diag(M)
    even = [_repeated(entries[:split])] * split + [_repeated(entries[split:])] * (len(used) - split)
    return np.diag(even) + Q @ (M - np.diag(even)) @ Q.T


def _repeated(entries: Array) -> float:
    """The number that stands most often among the entries, the last of those that stand once; 0 if all are symbols."""
    numbers = [float(x) for x in entries if isinstance(x, (int, float))]
    return max(reversed(numbers), key=numbers.count) if len(entries) > 1 and numbers else 0.0


def add_to(state: NodeState, J: Array, M: Array, forces: Array) -> None:
    """Add J^T M J and J^T forces."""
    A, f = state.A, state.f
    own, columns = _moving(J)
    MJ = M @ own
    for a, i in enumerate(columns):
        for b, k in enumerate(columns[: a + 1]):
            A[i, k] = A[k, i] = A[i, k] + own[:, a] @ MJ[:, b]
        f[i] = f[i] + own[:, a] @ forces


def _moving(J: Array) -> tuple[Array, list[int]]:
    """The columns of J that are not zero, and their numbers."""
    columns = [k for k in range(J.shape[1]) if any(not _zero(x) for x in J[:, k])]
    return J[:, columns], columns


def _zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _add_joints(state: NodeState, without: tuple[str, ...]) -> None:
    """Motor inertia, friction and springs of the joints."""
    tree = state.form.robot.tree
    terms = joint_forces(tree, state.at.q, state.rates.qd, np.zeros(tree.n), without)
    for k, row in state.moving.joints.items():
        own = tree.links[tree.link_of_rate[k]].terms
        inert = own.inert and "motor-inertia" not in without
        if inert or not _zero(terms[k]):
            add_to(state, row[None, :], np.array([[own.inertia if inert else 0.0]]), terms[k : k + 1])


def motor_slots(state: NodeState) -> list[int]:
    """The unknowns that are accelerations of the motors."""
    return [int(np.flatnonzero(state.moving.joints[k])[0]) for k in state.form.robot.actuated]


def independent_accelerations(state: NodeState, x: Array) -> Array:
    """Accelerations of the independent coordinates from the unknowns."""
    form = state.form
    tree = form.robot.tree
    values: dict[int, Any] = {k: row @ x for k, row in state.moving.joints.items()}
    requested = {int(k) for k in form.partition.independent}
    for modal in form.modal:
        start = tree.links[modal.link].e_v.start
        values |= dict(zip((start + k for k in modal.free), x[modal.slots], strict=True))
    for beam in form.beams:
        start = tree.links[beam.link].e_v.start
        values |= dict(zip(range(start + beam.ends, start + beam.body.size), x[beam.slots], strict=True))
        own = [k for k in range(beam.ends) if start + k in requested]
        if own:
            bent = _elastic_acceleration(state, beam, x)
            values |= {start + k: bent[k] for k in own}
    for j, link in enumerate(tree.links):
        if floats(form.robot, j):
            moving = state.moving.links[j]
            gravity = state.at.rotation[j].T @ tree.gravity
            a, al = moving.a + moving.J_v @ x + gravity, moving.al + moving.J_w @ x
            motion = np.concatenate([a, al])[list(form.used)]
            values |= dict(zip(range(link.v.start, link.v.stop), motion, strict=True))
    return np.array([values[int(k)] for k in form.partition.independent])


def _elastic_acceleration(state: NodeState, beam: CutBeam, x: Array) -> Array:
    link = state.form.robot.tree.links[beam.link]
    e, ed = state.at.q[link.e], state.rates.qd[link.e_v]
    root, tip = state.moving.links[beam.link], state.moving.links[beam.tip]
    parts: list[Array] = []
    for end, turned in ((root, root.turned), (tip, _turn_of_tip(state, beam, tip))):
        moved = (end.a + end.J_v @ x, end.al + end.J_w @ x)
        parts += moved if turned is None else [turned.T @ part for part in moved]
    return beam.form.elastic_rates(e) @ np.concatenate(parts) + beam.form.drift(e, ed, state.rates.w(beam.link))


def accelerations_under(state: NodeState, tau: Array) -> Array:
    """Accelerations of the independent coordinates under the efforts of the motors."""
    right = -state.f
    for slot, effort in zip(motor_slots(state), tau, strict=True):
        right[slot] = right[slot] + effort
    try:
        x = solve_symmetric(state.A, right, sparse=True)
    except np.linalg.LinAlgError:
        raise no_inertia() from None
    return independent_accelerations(state, _numbers(x, state.at.q))


def efforts_for(state: NodeState, accelerations: Array) -> tuple[Array, Array]:
    """Efforts of the motors for their accelerations, and the accelerations of all independent coordinates."""
    driven = motor_slots(state)
    rest = [k for k in range(state.form.size) if k not in set(driven)]
    A, f, q = state.A, state.f, state.at.q
    x = np.zeros(state.form.size, dtype=object)
    x[driven] = accelerations
    right = -f[rest] - A[np.ix_(rest, driven)] @ x[driven]
    x[rest] = solve_symmetric(A[np.ix_(rest, rest)], right, sparse=True)
    effort = A[driven] @ x + f[driven]
    return _numbers(effort, q), independent_accelerations(state, _numbers(x, q))


def _numbers(values: Array, q: Any) -> Array:
    """Floats where the inputs are floats."""
    return values.astype(scalar_type(q))
