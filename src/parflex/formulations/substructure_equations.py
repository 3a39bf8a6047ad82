"""Equations of motion of the substructures, and the matrix of an implicit step.

Unknowns are the accelerations of the rigid pieces and of the joints inside them; beams give inertia and forces between
the nodes that they tie. The matrix is symmetric, positive definite and sparse, and its elimination without pivoting
keeps these properties. Elastic accelerations follow from those of the nodes. [Briot2014], [Germain2015] in one form.
Identical beams share one function of their numbers.

The matrix of an implicit step is A + c1 D + c2 K, as sparse as the inertia A: stiffness K and damping D of beams, modes
and joints act between the same nodes, so the order of elimination serves both, theory (59). The change of the inertial
forces with the pose is omitted: it is small against inertia in a step, and a Newton iteration corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.forces.forces import on_links, singular_inertia_error
from parflex.formulations.substructure_motion import MovingFrame, SubstructureState, accelerations, substructure_rates
from parflex.recursion.dynamics import joint_forces
from parflex.recursion.kinematics import acceleration_matrix, pose
from parflex.robot.substructures import CutBeam, CutModal, Substructures, is_free
from parflex.spatial.dual import ComplexPair, complex_pair
from parflex.spatial.linear import (
    EliminationStep,
    GroupStep,
    can_share_call,
    eliminate,
    eliminate_groups,
    is_zero,
    scalar_type,
    shared_call,
    solve_symmetric,
    substitute,
    substitute_groups,
)
from parflex.spatial.rotations import cross, hat

Array = np.ndarray

Load = Callable[..., Sequence[tuple[Array, Array]]]  # matrix and forces over root, tip and modes, for each state

Factors = Sequence[EliminationStep | GroupStep]


def substructure_state(
    form: Substructures,
    q: Any,
    independent: Array,
    without: tuple[str, ...] = (),
    external: Mapping[str, Array] | None = None,
) -> SubstructureState:
    """Inertia A and forces f with A x + f = forces of the motors, for closed positions and independent rates.

    Theory (31). `external` wrenches act on frames, at their origins, in world axes.
    """
    at = pose(form.robot.tree, q)
    rates = substructure_rates(form, at, independent)
    n = form.size
    A, f = np.zeros((n, n), dtype=object), np.zeros(n, dtype=object)
    state = SubstructureState(form, at, rates, accelerations(form, at, rates), A, f)
    for beam in form.beams:
        _add_beam(state, beam)
    for j, body in form.bodies.items():
        if j not in form.beam_of_body:
            frame = state.moving.links[j]
            M, forces = _body(body, frame.w, frame.turned)
            add_to(state, frame.J, frame.columns, M, forces + M @ np.concatenate([frame.a, frame.al]))
    for modal in form.modal:
        _add_modal(state, modal)
    _add_joints(state, without)
    _add_wrenches(state, external or {})
    return state


def _add_modal(state: SubstructureState, modal: CutModal) -> None:
    """Inertia and forces of a flexible body that is not cut."""
    link, frame = state.form.robot.tree.links[modal.link], state.moving.links[modal.link]
    e, ed = state.at.q[link.e], state.rates.qd[link.e_v]
    zero, count = np.zeros(3), modal.body.size
    w = state.rates.w(modal.link)
    forces = np.concatenate(modal.body.forces(acceleration_matrix(w, zero), zero, w, e, ed, np.zeros(count)))
    M = modal.body.inertia_matrix(e)
    J_v, J_w, columns, places = frame.widened(modal.slots)
    modes = np.zeros((count, len(columns)))
    modes[:, places] = np.eye(count)[:, list(modal.free)]
    parts = (frame.a, frame.al, J_v, J_w)
    a, al, J_v, J_w = parts if frame.turned is None else (frame.turned.T @ part for part in parts)
    add_to(state, np.vstack([J_v, J_w, modes]), columns, M, forces + M @ np.concatenate([a, al, np.zeros(count)]))


def _add_wrenches(state: SubstructureState, external: Mapping[str, Array]) -> None:
    for link, (force, moment, *bend) in on_links(state.form.robot.tree, state.at, external).items():
        _add_wrench(state, link, force, moment)
        if bend:
            _add_bending(state, link, bend[0])


def _add_wrench(state: SubstructureState, link: int, force: Array, moment: Array) -> None:
    frame = state.moving.links[link]
    columns = list(frame.columns)
    state.f[columns] = state.f[columns] - frame.J_v.T @ frame.out(force) - frame.J_w.T @ frame.out(moment)


def _add_bending(state: SubstructureState, link: int, bend: Array) -> None:
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


def _add_beam(state: SubstructureState, beam: CutBeam) -> None:
    """Inertia and forces of a beam and of what its ends carry, in the axes of its root."""
    form, link, rates = state.form, state.form.robot.tree.links[beam.link], state.rates
    used, count = list(form.used), len(form.used)
    carried = [form.bodies[j] if form.beam_of_body.get(j) == beam.link else None for j in (beam.link, beam.tip)]

    def loaded(e: Array, ed: Array, w: Array, w_tip: Array, R: Array) -> list[tuple[Array, Array]]:
        M, forces = beam.form.equations(e, ed, w, form.used)
        M, forces = M.astype(object), forces.astype(object)  # of root and tip, then of modes
        for body, spin, axes, span in (
            (carried[0], w, None, slice(0, count)),
            (carried[1], w_tip, R, slice(count, 2 * count)),
        ):
            if body is not None:
                added, forced = _body(body, spin, axes)
                M[span, span] = M[span, span] + added[np.ix_(used, used)]
                forces[span] = forces[span] + forced[used]
        return [(M, forces)]

    key = ("inertia", beam.body, tuple(carried))
    arguments = [state.at.q[link.e], rates.qd[link.e_v], rates.w(beam.link), rates.before[beam.tip]]
    assemble_beam([state], beam, loaded, key, *arguments, state.at.local_rotation[beam.tip])


def _add_joints(state: SubstructureState, without: tuple[str, ...]) -> None:
    """Motor inertia, friction and springs of the joints."""
    tree = state.form.robot.tree
    terms = joint_forces(tree, state.at.q, state.rates.qd, np.zeros(tree.n), without)
    for k, (columns, row) in state.moving.joints.items():
        joint_terms = tree.links[tree.link_of_rate[k]].terms
        inert = joint_terms.inert and "motor-inertia" not in without
        if inert or not is_zero(terms[k]):
            add_to(state, row[None, :], columns, np.array([[joint_terms.inertia if inert else 0.0]]), terms[k : k + 1])


def motor_slots(state: SubstructureState) -> list[int]:
    """The unknowns that are accelerations of the motors."""
    rows = [state.moving.joints[k] for k in state.form.robot.actuated]
    return [columns[int(np.flatnonzero(row)[0])] for columns, row in rows]


def independent_accelerations(state: SubstructureState, x: Array) -> Array:
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
        coordinates = [k for k in range(beam.ends) if start + k in requested]
        if coordinates:
            bent = elastic_acceleration(state, beam, x)
            values |= {start + k: bent[k] for k in coordinates}
    for j, link in enumerate(tree.links):
        if is_free(form.robot, j):
            moving = state.moving.links[j]
            gravity = state.at.rotation[j].T @ tree.gravity
            unknowns = x[list(moving.columns)]
            a, al = moving.a + moving.J_v @ unknowns + gravity, moving.al + moving.J_w @ unknowns
            motion = np.concatenate([a, al])[list(form.used)]
            values |= dict(zip(range(link.v.start, link.v.stop), motion, strict=True))
    return np.array([values[int(k)] for k in form.partition.independent])


def accelerations_under(state: SubstructureState, tau: Array) -> Array:
    """Accelerations of the independent coordinates under the efforts of the motors."""
    rhs = -state.f
    for slot, effort in zip(motor_slots(state), tau, strict=True):
        rhs[slot] = rhs[slot] + effort
    try:
        x = _solved(state, state.A, rhs, range(state.form.size))
    except np.linalg.LinAlgError:
        raise singular_inertia_error() from None
    return independent_accelerations(state, _numbers(x, state.at.q))


def efforts_for(state: SubstructureState, accelerations: Array) -> tuple[Array, Array]:
    """Efforts of the motors for their accelerations, and the accelerations of all independent coordinates."""
    driven = motor_slots(state)
    free = [k for k in range(state.form.size) if k not in set(driven)]
    A, f, q = state.A, state.f, state.at.q
    x = np.zeros(state.form.size, dtype=object)
    x[driven] = accelerations
    rhs = -f[free] - A[np.ix_(free, driven)] @ x[driven]
    x[free] = _solved(state, A[np.ix_(free, free)], rhs, free)
    effort = A[driven] @ x + f[driven]
    return _numbers(effort, q), independent_accelerations(state, _numbers(x, q))


def _solved(state: SubstructureState, A: Array, rhs: Array, unknowns: Sequence[int]) -> Array:
    """Unknowns from their part of the matrix, in an order that keeps it sparse."""
    if not can_share_call(state.f):
        return solve_symmetric(A, rhs, sparse=True)
    steps = eliminate_groups(A, groups_among(state.form, unknowns))
    return np.array(substitute_groups(steps, list(rhs)), dtype=object)


def groups_among(form: Substructures, unknowns: Sequence[int]) -> list[list[int]]:
    """Groups of unknowns as they are numbered among some of them."""
    place = {k: number for number, k in enumerate(unknowns)}
    groups = [[place[k] for k in group if k in place] for group in form.groups]
    return [group for group in groups if group]


def _numbers(values: Array, q: Any) -> Array:
    """Floats where the inputs are floats."""
    return values.astype(scalar_type(q))


def assemble_beam(states: Sequence[SubstructureState], beam: CutBeam, load: Load, key: Any, *arrays: Any) -> None:
    """Add matrices and forces of the motion of a beam's two ends, in the axes of its root, one pair to each state.

    `load` makes them from the arrays, and is the same for equal keys. What the root does is put in first, while the
    matrix still has the zeros of the beam's own axes; then the tip is moved to the joint that it hangs on and turned
    into the axes of its piece.
    """
    state = states[0]
    root, tip = state.moving.links[beam.link], state.moving.links[beam.tip]
    used, R = state.form.used, state.at.local_rotation[beam.tip]
    arm = tip.arm if tip.anchor is not None else None
    tip = tip.anchor if tip.anchor is not None and arm is not None else tip
    (J_A, root_columns), (J_B, tip_columns) = (_moving(end.J[list(used)], end.columns) for end in (root, tip))
    ends = [root.a, root.al, J_A, tip.a, tip.al, J_B, R, state.rates.before[beam.tip]]
    same = tip.turned is R
    rotations = [part for part in (root.turned, None if same else tip.turned) if part is not None]
    motion_arrays = [*ends, *rotations, *([] if arm is None else [arm])]
    layout = (used, root.turned is not None, same, tip.turned is not None, arm is not None)

    def blocks(*all_given: Array) -> tuple[Array, ...]:
        """Of each state: blocks of root, both, tip, modes, modes and ends, and their forces."""
        arguments = list(all_given[: len(motion_arrays)])
        motion = arguments[: len(ends)]
        optional = iter(arguments[len(ends) :])
        root_turned = next(optional) if layout[1] else None
        tip_turned = motion[6] if same else next(optional) if layout[3] else None
        tip_arm = next(optional) if arm is not None else None
        entries: list[Array] = []
        for M, forces in load(*all_given[len(motion_arrays) :]):
            entries += _project_blocks(M, forces, motion, root_turned, tip_turned, tip_arm, list(used))
        return tuple(entries)

    results = shared_call(blocks, ("beam", key, layout), *motion_arrays, *arrays)
    slots = list(range(beam.slots.start, beam.slots.stop))
    for number, into in enumerate(states):
        AA, f_A, AB, BB, f_B, II, f_I, IA, IB = results[9 * number : 9 * number + 9]
        _add_square(into, root_columns, AA, f_A)
        _add_square(into, tip_columns, BB, f_B)
        _add_between(into, root_columns, tip_columns, AB)
        if slots:
            _add_square(into, slots, II, f_I)
            _add_between(into, slots, root_columns, IA)
            _add_between(into, slots, tip_columns, IB)


def _project_blocks(
    M: Array,
    forces: Array,
    motion: list[Array],
    root_turned: Array | None,
    tip_turned: Array | None,
    arm: Array | None,
    used: list[int],
) -> list[Array]:
    """Blocks of a matrix over root, tip and modes, in the unknowns that move these."""
    a_A, al_A, J_A, a_B, al_B, J_B, R, w = motion
    count = len(used)
    arm = np.zeros(3) if arm is None else R @ arm
    tip_rotation = _tip_rotation(R, tip_turned)
    at_root = [part if root_turned is None else root_turned.T @ part for part in (a_A, al_A)]
    a, al = (part if tip_rotation is None else tip_rotation.T @ part for part in (a_B, al_B))
    at_tip = [a + cross(al, arm) + hat(w) @ hat(w) @ arm, al]
    zero_modes = np.zeros(len(M) - 2 * count)
    forces = forces + M @ np.concatenate([np.concatenate(at_root)[used], np.concatenate(at_tip)[used], zero_modes])
    root, tip, modes = slice(0, count), slice(count, 2 * count), slice(2 * count, len(M))
    M_AA, M_AB, M_BB = M[root, root], M[root, tip], M[tip, tip]
    M_IA, M_IB, f_A, f_B = M[modes, root], M[modes, tip], forces[root], forces[tip]
    if root_turned is not None:
        Q = _both(root_turned, used)
        M_AA, M_AB, M_IA, f_A = _turned(M_AA, Q, used), Q @ M_AB, M_IA @ Q.T, Q @ f_A
    blocks = [*projected(J_A, M_AA, f_A)]
    M_AB, M_IA = J_A.T @ M_AB, M_IA @ J_A
    if any(not _zero(x) for x in arm):
        shift = np.block([[np.eye(3), -hat(arm)], [np.zeros((3, 3)), np.eye(3)]])[np.ix_(used, used)]
        M_AB, M_BB, M_IB, f_B = M_AB @ shift, shift.T @ M_BB @ shift, M_IB @ shift, shift.T @ f_B
    if tip_rotation is not None:
        Q = _both(tip_rotation, used)
        M_AB, M_BB, M_IB, f_B = M_AB @ Q.T, _turned(M_BB, Q, used), M_IB @ Q.T, Q @ f_B
    return [*blocks, M_AB @ J_B, *projected(J_B, M_BB, f_B), M[modes, modes], forces[modes], M_IA, M_IB @ J_B]


def projected(J: Array, M: Array, forces: Array) -> tuple[Array, Array]:
    """J^T M J, symmetric, and J^T forces."""
    MJ, count = M @ J, J.shape[1]
    square, along = np.zeros((count, count), dtype=object), np.zeros(count, dtype=object)
    for a in range(count):
        for b in range(a + 1):
            square[a, b] = square[b, a] = J[:, a] @ MJ[:, b]
        along[a] = J[:, a] @ forces
    return square, along


def add_to(state: SubstructureState, J: Array, columns: Sequence[int], M: Array, forces: Array) -> None:
    """Add J^T M J and J^T forces, J over some unknowns."""
    J_nonzero, moving = _moving(J, columns)
    _add_square(state, moving, *projected(J_nonzero, M, forces))


def _add_square(state: SubstructureState, columns: list[int], square: Array, along: Array) -> None:
    A, f = state.A, state.f
    for a, i in enumerate(columns):
        for b, k in enumerate(columns[: a + 1]):
            A[i, k] = A[k, i] = A[i, k] + square[a, b]
        f[i] = f[i] + along[a]


def _add_between(state: SubstructureState, rows: list[int], columns: list[int], block: Array) -> None:
    """Add a block beside the diagonal, on both sides of it; an unknown may move both ends."""
    for i, row in zip(rows, block, strict=True):
        for k, value in zip(columns, row, strict=True):
            state.A[i, k] = state.A[i, k] + value
            state.A[k, i] = state.A[k, i] + value


def _moving(J: Array, columns: Sequence[int]) -> tuple[Array, list[int]]:
    """The columns of J that are not zero, and the unknowns that they belong to, in their order."""
    nonzero = sorted((k, place) for place, k in enumerate(columns) if any(not _zero(x) for x in J[:, place]))
    return J[:, [place for _, place in nonzero]], [k for k, _ in nonzero]


def _zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _tip_rotation(R: Array, turned: Array | None) -> Array | None:
    """Rotation from the axes of a beam's root to those in which its tip is written; None if they are the same."""
    if turned is None:
        return R.T
    return None if turned is R else turned @ R.T


def elastic_acceleration(state: SubstructureState, beam: CutBeam, x: Array) -> Array:
    """Of the coordinates of a beam's tip, from the unknowns."""
    link = state.form.robot.tree.links[beam.link]
    root, tip, R = state.moving.links[beam.link], state.moving.links[beam.tip], state.at.local_rotation[beam.tip]
    same, form = tip.turned is R, beam.form
    turned = [None if end.turned is None or (same and end is tip) else end.turned for end in (root, tip)]

    def bent(
        e: Array, ed: Array, w: Array, R: Array, J_A: Array, x_A: Array, a_A: Array, J_B: Array, x_B: Array, a_B: Array,
        *rotations: Array,
    ) -> tuple[Array]:  # fmt: skip
        remaining = iter(rotations)
        frame_rotations = [None if part is None else next(remaining) for part in turned]
        ends = (frame_rotations[0], _tip_rotation(R, R if same else frame_rotations[1]))
        parts: list[Array] = []
        for J, unknowns, a, rotation in ((J_A, x_A, a_A, ends[0]), (J_B, x_B, a_B, ends[1])):
            acceleration = a + J @ unknowns
            parts += (
                [acceleration[:3], acceleration[3:]]
                if rotation is None
                else [rotation.T @ acceleration[:3], rotation.T @ acceleration[3:]]
            )
        return (form.elastic_rates(e) @ np.concatenate(parts) + form.drift(e, ed, w),)

    def motion(end: MovingFrame) -> list[Array]:
        return [end.J, x[list(end.columns)], np.concatenate([end.a, end.al])]

    key = ("elastic acceleration", beam.body, same, tuple(part is None for part in turned))
    state_of = [state.at.q[link.e], state.rates.qd[link.e_v], state.rates.w(beam.link), R]
    rotations = [part for part in turned if part is not None]
    return shared_call(bent, key, *state_of, *motion(root), *motion(tip), *rotations)[0]


def _both(R: Array, used: list[int]) -> Array:
    """The rotation of force and moment, of the components that are used."""
    zero = np.zeros((3, 3))
    return np.block([[R, zero], [zero, R]])[np.ix_(used, used)]


def _turned(M: Array, Q: Array, used: list[int]) -> Array:
    """Q M Q^T. A multiple of the unit matrix does not turn: it is taken out of each block on the diagonal first."""
    split = sum(k < 3 for k in used)
    entries = np.diag(M)
    even = [_most_frequent(entries[:split])] * split + [_most_frequent(entries[split:])] * (len(used) - split)
    return np.diag(even) + Q @ (M - np.diag(even)) @ Q.T


def _most_frequent(entries: Array) -> float:
    """The number that stands most often among the entries, the last of those that stand once; 0 if all are symbols."""
    numbers = [float(x) for x in entries if isinstance(x, (int, float))]
    return max(reversed(numbers), key=numbers.count) if len(entries) > 1 and numbers else 0.0


@dataclass(frozen=True)
class JointTangent:
    """How the force of a joint grows with its coordinate and with its rate."""

    stiffness: Any
    damping: Any


def without_gravity(form: Substructures) -> Substructures:
    """The same pieces without weight: what is linear in accelerations stands alone."""
    tree = replace(form.robot.tree, gravity=np.zeros(3))
    robot = replace(form.robot, tree=tree, closures=replace(form.robot.closures, tree=tree))
    return replace(form, robot=robot)


class StepMatrix:
    """The matrix at a pose, for coefficients c1 (s) of damping and c2 (s^2) of stiffness: both real, or both pairs.

    `joints` are the slopes of the forces of joints, by their rates. Where the motors are `driven`, they are held.
    """

    def __init__(
        self,
        form: Substructures,
        q: Any,
        c1: Any,
        c2: Any,
        driven: bool,
        joints: Mapping[int, JointTangent] | None = None,
    ) -> None:
        self.form, self.c1, self.c2, self.joints = without_gravity(form), c1, c2, dict(joints or {})
        self.state = substructure_state(self.form, q, np.zeros(len(form.partition.independent)))
        held_slots = set(motor_slots(self.state)) if driven else set()
        self.rest = [k for k in range(form.size) if k not in held_slots]
        motors = {int(k) for k in form.robot.actuated} if driven else set()
        self.free = [i for i, k in enumerate(form.partition.independent) if int(k) not in motors]
        self.turning = turning_positions(form, [int(form.partition.independent[i]) for i in self.free])
        self._beams: dict[int, tuple[Array, tuple[Array, Array]]] = {}

    # -- the matrix --------------------------------------------------------------------------------------

    def factors(self) -> Factors:
        """L and D of the matrix."""
        n = self.form.size
        stiff, damped = (replace(self.state, A=np.zeros((n, n), dtype=object)) for _ in range(2))
        for beam in self.form.beams:
            rates, matrices = self._beam(beam)
            states = [state for state, matrix in zip((stiff, damped), matrices, strict=True) if np.any(matrix != 0)]
            acting = [matrix for matrix in matrices if np.any(matrix != 0)]
            if states:
                assemble_beam(states, beam, _end_matrices, "elastic matrices", rates, *acting)
        for number, modal in enumerate(self.form.modal):
            slots = range(modal.slots.start, modal.slots.stop)
            for state, matrix in zip((stiff, damped), self._modal(number), strict=True):
                add_to(state, np.eye(len(slots)), slots, matrix, np.zeros(len(slots)))
        for k, slope in self._slopes():
            columns, row = self.state.moving.joints[k]
            for state, value in ((stiff, slope.stiffness), (damped, slope.damping)):
                if not is_zero(value):
                    add_to(state, row[None, :], columns, np.array([[value]], dtype=object), np.zeros(1))
        total = np.zeros((n, n), dtype=object)
        for i, k in np.argwhere(np.tril((self.state.A != 0) | (damped.A != 0) | (stiff.A != 0))):
            total[i, k] = total[k, i] = self._sum(self.state.A[i, k], damped.A[i, k], stiff.A[i, k])
        matrix = total[np.ix_(self.rest, self.rest)]
        if can_share_call(self.state.f):
            return eliminate_groups(matrix, groups_among(self.form, self.rest))
        return eliminate(matrix, sparse=True)

    def _sum(self, inertia: Any, damping: Any, stiffness: Any) -> Any:
        """An entry of the matrix."""
        total = complex_pair(inertia) if isinstance(self.c2, ComplexPair) else inertia
        for factor, part in ((self.c1, damping), (self.c2, stiffness)):
            total = total if is_zero(part) else total + factor * part
        return total

    def _beam(self, beam: CutBeam) -> tuple[Array, tuple[Array, Array]]:
        """Elastic rates of a beam from those of its ends and modes; stiffness and damping in them."""
        if beam.link not in self._beams:
            used = self.form.used

            def at(e: Array) -> tuple[Array, ...]:
                return beam.form.all_rates(e, used), beam.body.stiffness_at(e), beam.body.damping_at(e)

            e = self.state.at.q[self.form.robot.tree.links[beam.link].e]
            rates, stiffness, damping = shared_call(at, ("elastic rates", beam.body, used), e)
            self._beams[beam.link] = rates, (stiffness, damping)
        return self._beams[beam.link]

    def _modal(self, number: int) -> tuple[Array, Array]:
        """The same of the free coordinates of a body that is not cut."""
        modal = self.form.modal[number]
        e, free = self.state.at.q[self.form.robot.tree.links[modal.link].e], np.ix_(modal.free, modal.free)
        return modal.body.stiffness_at(e)[free], modal.body.damping_at(e)[free]

    def _slopes(self) -> list[tuple[int, JointTangent]]:
        return [(k, self.joints[k]) for k in self.state.moving.joints if k in self.joints]

    # -- a step of Newton --------------------------------------------------------------------------------

    def correction(self, factors: Factors, miss: Array) -> tuple[Array, Array]:
        """What Newton changes the free accelerations by that miss those of the direct model by `miss`.

        Then how a change of rates by that changes the rates of `turning` positions.
        """
        stiff, damped = self._apart(self._forces, miss)
        rhs = [self.c2 * stiff[k] + self.c1 * damped[k] for k in self.rest]
        x = np.zeros(self.form.size, dtype=object)
        x[self.rest] = substitute_factors(factors, rhs)
        (back,) = self._apart(lambda part: (independent_accelerations(self.state, part)[self.free],), x)
        change = np.array([m - b for m, b in zip(miss, back, strict=True)], dtype=object)
        (turned,) = self._apart(self._turned, change)
        return change, turned

    def _apart(self, linear: Callable[[Array], tuple[Array, ...]], values: Array) -> list[Array]:
        """Outcomes of a linear function with real coefficients, of real and imaginary parts one after the other."""
        if not isinstance(self.c2, ComplexPair):
            return list(linear(values))
        parts = [linear(np.array([getattr(complex_pair(value), word) for value in values])) for word in ("re", "im")]
        return [
            np.array([ComplexPair(a, b) for a, b in zip(real, imaginary, strict=True)], dtype=object)
            for real, imaginary in zip(*parts, strict=True)
        ]

    def _independent(self, free: Array) -> Array:
        rates = np.zeros(len(self.form.partition.independent), dtype=object)
        rates[self.free] = free
        return rates

    def _turned(self, free: Array) -> tuple[Array]:
        """Rates of turning positions; the rates of their joints are free ones, or held."""
        qd = np.zeros(self.form.robot.tree.n, dtype=object)
        qd[self.form.partition.independent] = self._independent(free)
        return (self.form.robot.tree.position_rates(self.state.at.q, qd)[self.turning],)

    def _forces(self, free: Array) -> tuple[Array, Array]:
        """Along the unknowns, what stiffness and damping put against free rates."""
        form, tree = self.form, self.form.robot.tree
        qd = substructure_rates(form, self.state.at, self._independent(free)).qd
        stiff, damped = (replace(self.state, f=np.zeros(form.size, dtype=object)) for _ in range(2))
        for beam in form.beams:
            strained, (rates, matrices) = qd[tree.links[beam.link].e_v], self._beam(beam)
            states = [state for state, matrix in zip((stiff, damped), matrices, strict=True) if np.any(matrix != 0)]
            acting = [matrix for matrix in matrices if np.any(matrix != 0)]
            if states:
                assemble_beam(states, beam, _against, "elastic forces", strained, rates, *acting)
        for number, modal in enumerate(form.modal):
            strained = qd[tree.links[modal.link].e_v][list(modal.free)]
            for state, matrix in zip((stiff, damped), self._modal(number), strict=True):
                state.f[modal.slots] = state.f[modal.slots] + matrix @ strained
        for k, slope in self._slopes():
            for state, value in ((stiff, slope.stiffness), (damped, slope.damping)):
                if not is_zero(value):
                    columns, row = self.state.moving.joints[k]
                    state.f[list(columns)] = state.f[list(columns)] + row * (value * qd[k])
        return stiff.f, damped.f


def substitute_factors(factors: Factors, rhs: list[Any]) -> list[Any]:
    """Solutions by factors of single unknowns, or of groups of them."""
    groups = [step for step in factors if isinstance(step, GroupStep)]
    single = [step for step in factors if isinstance(step, EliminationStep)]
    return substitute_groups(groups, rhs) if groups else substitute(single, rhs)


def _end_matrices(rates: Array, *matrices: Array) -> list[tuple[Array, Array]]:
    """Matrices over elastic coordinates as such over the ends of a beam and its modes, without forces."""
    return [(rates.T @ matrix @ rates, np.zeros(rates.shape[1])) for matrix in matrices]


def _against(strained: Array, rates: Array, *matrices: Array) -> list[tuple[Array, Array]]:
    """Forces of elastic coordinates along the motions of the ends and modes, without matrices."""
    none = np.zeros((rates.shape[1], rates.shape[1]))
    return [(none, rates.T @ (matrix @ strained)) for matrix in matrices]


def turning_positions(form: Substructures, free: list[int]) -> list[int]:
    """Positions of joints whose rates are not their derivatives, where such rates are free."""
    links = [link for link in form.robot.tree.links if not link.joint.one_axis]
    moved = [link for link in links if set(free) & set(range(link.v.start, link.v.stop))]
    return [p for link in moved for p in range(link.q.start, link.q.stop)]
