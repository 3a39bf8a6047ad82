"""Formulate a flexible robot cut into rigid pieces that beams connect (two-node form).

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
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.partition import Reduction, reduction
from parflex.forces.forces import on_links
from parflex.formulations.base import Formulation, Given, JointTangent, ModelRequest
from parflex.formulations.general import GeneralFormulation
from parflex.formulations.substructure_motion import SubstructureMotion, SubstructureRates
from parflex.records import Record, count_of
from parflex.recursion.dynamics import joint_forces
from parflex.recursion.kinematics import Pose, acceleration_matrix, jacobians, pose
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.robot.substructures import (
    PREFERENCES,
    CutBeam,
    CutModal,
    Substructures,
    find_substructures,
    is_free,
    substructures_or_reason,
)
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
    solve_positive,
    substitute,
    substitute_groups,
)
from parflex.spatial.rotations import cross, hat

Array = np.ndarray
Load = Callable[..., Sequence[tuple[Array, Array]]]  # matrix and forces over root, tip and modes, for each state
Factors = Sequence[EliminationStep | GroupStep]

MAX_RATES_FOR_VARIANTS = 40  # robots with more are written one way only: each way to write one takes a second or more
PRESCRIBED_MOTION_MODELS = ("inverse", "jacobian-of-inverse", "state-rates-driven")  # accelerations of motors go in
MODELS = (*PRESCRIBED_MOTION_MODELS, "direct", "state-rates")


@dataclass(frozen=True)
class SubstructureFormulation(GeneralFormulation):
    """A robot in pieces, whose accelerations are the unknowns; loops through beams need no equation."""

    name: ClassVar[str] = "two-node form"
    equations: ClassVar[tuple[int, ...]] = (29, 30, 31)
    pieces: Substructures = field(kw_only=True)

    @property
    def because(self) -> list[str]:
        """Where the robot is cut, and its unknowns."""
        cuts = [count_of(len(self.pieces.beams), "beam element")] if self.pieces.beams else []
        modal = self.pieces.modal
        cuts += [count_of(len(modal), "body given by modes", "bodies given by modes")] if modal else []
        return [
            f"Cut at its {' and '.join(cuts)} the robot falls into {count_of(len(self.pieces.pieces), 'piece')}. "
            f"Unknown are their accelerations and those of the joints inside them, {self.pieces.size} in all; loops "
            "through beams need no equation. The matrix is symmetric and sparse and is eliminated from the tips "
            "inwards."
        ]

    @property
    def dependence(self) -> str:
        """The beam at a closure."""
        return (
            "Each closure fixes elastic coordinates of one body beside it, so that its end is where it must be: "
            f"{len(self.partition.dependent)} of {len(self.robot.free)} rates follow from the others."
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Pieces and unknowns."""
        return {"pieces": len(self.pieces.pieces), "unknowns": self.pieces.size}

    def ways(self) -> Sequence[Formulation]:
        """Return forms in which a piece moves with the root of a beam, a tip, or the link at a closure."""
        if len(self.robot.free) > MAX_RATES_FOR_VARIANTS or self.question.model == "jacobian-of-inverse":
            return [self]
        variants: dict[Any, SubstructureFormulation] = {_piece_structure(self.pieces): self}
        for other in (find_substructures(self.robot, preferred) for preferred in PREFERENCES[1:]):
            if other is not None:  # the same pieces once more would be the same program, made and optimised again
                variants.setdefault(_piece_structure(other), replace(self, partition=other.partition, pieces=other))
        return list(variants.values())

    def inertia(self, state: SubstructureState) -> tuple[Array, Array, bool]:
        """Return the inertia of pieces and beams in the unknowns: twists of pieces, and joints inside them."""
        units, translations = np.ones(self.pieces.size), [k for k, part in enumerate(self.pieces.used) if part < 3]
        for piece in self.pieces.pieces:
            if piece.slots.stop > piece.slots.start:
                units[[piece.slots.start + k for k in translations]] = self.robot.tree.length
        return state.A, units, True

    def moving(self, q: Any, rates: Array, wrenches: Given | None = None) -> SubstructureState:
        """Return the state with inertia and forces in the unknowns."""
        return substructure_state(self.pieces, q, rates, wrenches)

    def step_matrix(self, q: Any, c1: Any, c2: Any, joints: Mapping[int, JointTangent]) -> StepMatrix:
        """Return the step matrix, as sparse as the inertia in the unknowns."""
        return StepMatrix(self.pieces, q, c1, c2, self.question.model == "state-rates-driven", joints)


def substructure_formulation(robot: Robot, question: ModelRequest) -> SubstructureFormulation | str:
    """Return the two-node form of a robot, or the reason against it."""
    if not robot.tree.elastic:
        return "no body is flexible"
    if question.model not in MODELS:
        return f"'{question.model}' is requested in the independent rates"
    if question.independent:
        return "the independent rates were named"
    pieces = substructures_or_reason(robot)
    if isinstance(pieces, str):
        return pieces
    locked = set(robot.actuated) - set(pieces.partition.independent.tolist())
    if question.model in PRESCRIBED_MOTION_MODELS and locked:
        return "a motor of it is locked"
    return SubstructureFormulation(robot, pieces.partition, pieces=pieces, question=question)


def _piece_structure(pieces: Substructures) -> tuple[tuple[int, ...], ...]:
    """Return a key of the choice of reference links and of the paths to other links."""
    return tuple((piece.reference, *(step.link for step in piece.steps)) for piece in pieces.pieces)


# -- equations of the pieces -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SubstructureState(Record):
    """A state: rates, accelerations per unknown, inertia and forces in the unknowns."""

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

    @cached_property
    def reduction(self) -> Reduction:
        """The blocks of the closures."""
        robot = self.form.robot
        return reduction(robot.closures.jacobian(self.at, jacobians(robot.tree, self.at)), self.form.partition)

    def accelerations(self, independent: Array) -> Array:
        """Return all accelerations; those of the dependent rates close the loops."""
        return self.reduction.accelerations(self.form.robot.closures, self.at, self.qd, independent)

    @property
    def motor_slots(self) -> list[int]:
        """Unknowns that are motor accelerations."""
        rows = [self.moving.joints[k] for k in self.form.robot.actuated]
        return [columns[int(np.flatnonzero(row)[0])] for columns, row in rows]

    def pushed(self, tau: Array) -> tuple[Array, Any]:
        """Return independent accelerations under motor efforts, and the losses of gears."""
        rhs = -self.f
        for slot, effort in zip(self.motor_slots, tau, strict=True):
            rhs[slot] = rhs[slot] + effort
        return self.independent_accelerations(self._solved(self.A, rhs, range(self.form.size))), 0.0

    def efforts_for(self, accelerations: Array) -> tuple[Array, Array]:
        """Return motor efforts for their accelerations, and all independent accelerations."""
        A, f, driven, x = self.A, self.f, self.motor_slots, np.zeros(self.form.size, dtype=object)
        free = [k for k in range(self.form.size) if k not in set(driven)]
        x[driven] = accelerations
        x[free] = self._solved(A[np.ix_(free, free)], -f[free] - A[np.ix_(free, driven)] @ x[driven], free)
        return (A[driven] @ x + f[driven]).astype(scalar_type(self.q)), self.independent_accelerations(x)

    def _solved(self, A: Array, rhs: Array, unknowns: Sequence[int]) -> Array:
        """Return unknowns from their part of the matrix, in an order that keeps it sparse."""
        if not can_share_call(self.f):
            return solve_positive(A, rhs, sparse=True)
        steps = eliminate_groups(A, groups_among(self.form, unknowns))
        return np.array(substitute_groups(steps, list(rhs)), dtype=object)

    def independent_accelerations(self, x: Array) -> Array:
        """Return independent accelerations from the unknowns."""
        form, tree, x = self.form, self.form.robot.tree, x.astype(scalar_type(self.q))
        values: dict[int, Any] = {k: row @ x[list(columns)] for k, (columns, row) in self.moving.joints.items()}
        requested = {int(k) for k in form.partition.independent}
        for modal in form.modal:
            start = tree.links[modal.link].e_v.start
            values |= dict(zip((start + k for k in modal.free), x[modal.slots], strict=True))
        for beam in form.beams:
            start = tree.links[beam.link].e_v.start
            values |= dict(zip(range(start + beam.ends, start + beam.body.size), x[beam.slots], strict=True))
            if requested & set(range(start, start + beam.ends)):
                values |= dict(zip(range(start, start + beam.ends), elastic_acceleration(self, beam, x), strict=True))
        for j, link in enumerate(tree.links):
            if is_free(form.robot, j):
                moving, gravity = self.moving.links[j], self.at.rotation[j].T @ tree.gravity
                unknowns = x[list(moving.columns)]
                a, al = moving.a + moving.J_v @ unknowns + gravity, moving.al + moving.J_w @ unknowns
                motion = np.concatenate([a, al])[list(form.used)]
                values |= dict(zip(range(link.v.start, link.v.stop), motion, strict=True))
        return np.array([values[int(k)] for k in form.partition.independent])


def substructure_state(
    form: Substructures, q: Any, independent: Array, external: Given | None = None
) -> SubstructureState:
    """A and f with A x + f = forces of the motors, theory (31), under `external` wrenches on frames in world axes."""
    at = pose(form.robot.tree, q)
    rates = SubstructureRates(form, at, independent)
    empty = np.zeros((form.size, form.size), dtype=object), np.zeros(form.size, dtype=object)
    state = SubstructureState(form, at, rates, SubstructureMotion(form, at, rates), *empty)
    for beam in form.beams:
        _add_beam(state, beam)
    for j, body in form.bodies.items():
        if j not in form.beam_of_body:
            frame = state.moving.links[j]
            M, forces = _body(body, frame.w, frame.turned)
            add_to(state, frame.J, frame.columns, M, forces + M @ np.concatenate([frame.a, frame.al]))
    for modal in form.modal:
        _add_modal(state, modal)
    _add_joints(state)
    for link, (force, moment, *bend) in on_links(form.robot.tree, at, external or {}).items():
        _add_wrench(state, link, force, moment)
        if bend:
            _add_bending(state, link, bend[0])
    return state


def _add_modal(state: SubstructureState, modal: CutModal) -> None:
    """Add inertia and forces of an uncut flexible body."""
    link, frame = state.form.robot.tree.links[modal.link], state.moving.links[modal.link]
    e, ed = state.at.q[link.e], state.rates.qd[link.e_v]
    zero, count, w = np.zeros(3), modal.body.size, state.rates.w(modal.link)
    forces = np.concatenate(modal.body.forces(acceleration_matrix(w, zero), zero, w, e, ed, np.zeros(count)))
    M = modal.body.inertia_matrix(e)
    J_v, J_w, columns, places = frame.widened(modal.slots)
    modes = np.zeros((count, len(columns)))
    modes[:, places] = np.eye(count)[:, list(modal.free)]
    parts = (frame.a, frame.al, J_v, J_w)
    a, al, J_v, J_w = parts if frame.turned is None else (frame.turned.T @ part for part in parts)
    add_to(state, np.vstack([J_v, J_w, modes]), columns, M, forces + M @ np.concatenate([a, al, np.zeros(count)]))


def _add_wrench(state: SubstructureState, link: int, force: Array, moment: Array) -> None:
    frame = state.moving.links[link]
    columns = list(frame.columns)
    state.f[columns] = state.f[columns] - frame.J_v.T @ frame.out(force) - frame.J_w.T @ frame.out(moment)


def _add_bending(state: SubstructureState, link: int, bend: Array) -> None:
    """Add forces along elastic coordinates: wrenches on beam ends, theory (29), and forces of modes."""
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
    """Return inertia of a rigid body and its gyroscopic forces, in axes to which R takes vectors."""
    S, I = (body.S, body.I) if R is None else (R @ body.S, R @ body.I @ R.T)
    M = np.block([[body.m * np.eye(3), hat(S).T], [hat(S), I]])
    return M, np.concatenate([hat(w) @ hat(w) @ S, cross(w, I @ w)])


def _add_beam(state: SubstructureState, beam: CutBeam) -> None:
    """Add inertia and forces of a beam and of bodies at its ends, in the axes of its root."""
    form, link, rates = state.form, state.form.robot.tree.links[beam.link], state.rates
    used, count = list(form.used), len(form.used)
    carried = [form.bodies[j] if form.beam_of_body.get(j) == beam.link else None for j in (beam.link, beam.tip)]

    def loaded(e: Array, ed: Array, w: Array, w_tip: Array, R: Array) -> list[tuple[Array, Array]]:
        M, forces = beam.form.equations(e, ed, w, form.used)
        M, forces = M.astype(object), forces.astype(object)  # of root and tip, then of modes
        for start, body, spin, axes in ((0, carried[0], w, None), (count, carried[1], w_tip, R)):
            if body is not None:
                span, (added, forced) = slice(start, start + count), _body(body, spin, axes)
                M[span, span] = M[span, span] + added[np.ix_(used, used)]
                forces[span] = forces[span] + forced[used]
        return [(M, forces)]

    key = ("inertia", beam.body, tuple(carried))
    arguments = [state.at.q[link.e], rates.qd[link.e_v], rates.w(beam.link), rates.before[beam.tip]]
    assemble_beam([state], beam, loaded, key, *arguments, state.at.local_rotation[beam.tip])


def _add_joints(state: SubstructureState) -> None:
    """Add motor inertia, friction and springs of the joints."""
    tree = state.form.robot.tree
    terms = joint_forces(tree, state.at.q, state.rates.qd, np.zeros(tree.n))
    for k, (columns, row) in state.moving.joints.items():
        joint_terms = tree.links[tree.link_of_rate[k]].terms
        if joint_terms.inert or not is_zero(terms[k]):
            inertia = joint_terms.inertia if joint_terms.inert else 0.0
            add_to(state, row[None, :], columns, np.array([[inertia]]), terms[k : k + 1])


def groups_among(form: Substructures, unknowns: Sequence[int]) -> list[list[int]]:
    """Return groups of unknowns, numbered among some of them."""
    place = {k: number for number, k in enumerate(unknowns)}
    groups = [[place[k] for k in group if k in place] for group in form.groups]
    return [group for group in groups if group]


def assemble_beam(states: Sequence[SubstructureState], beam: CutBeam, load: Load, key: Any, *arrays: Any) -> None:
    """Add matrices and forces of the motion of a beam's two ends, in the axes of its root, one pair to each state.

    `load` makes them from the arrays, and is the same for equal keys. What the root does is put in first, while the
    matrix still has the zeros of the beam's own axes; then the tip is moved to the joint that it hangs on and turned
    into the axes of its piece.
    """
    state = states[0]
    root, tip = state.moving.links[beam.link], state.moving.links[beam.tip]
    used, R = list(state.form.used), state.at.local_rotation[beam.tip]
    arm = tip.arm if tip.anchor is not None else None
    tip = tip.anchor if tip.anchor is not None and arm is not None else tip
    (J_A, root_columns), (J_B, tip_columns) = (_moving(end.J[used], end.columns) for end in (root, tip))
    ends = [root.a, root.al, J_A, tip.a, tip.al, J_B, R, state.rates.before[beam.tip]]
    same = tip.turned is R
    optional = [root.turned, None if same else tip.turned, arm]
    motion_arrays = [*ends, *(part for part in optional if part is not None)]
    layout = (*used, same, *(part is not None for part in optional))

    def blocks(*arguments: Array) -> tuple[Array, ...]:
        """Return blocks of root, both, tip, modes, modes and ends for each state, and their forces."""
        motion, remaining = arguments[: len(ends)], iter(arguments[len(ends) : len(motion_arrays)])
        root_turned, tip_turned, tip_arm = (None if part is None else next(remaining) for part in optional)
        turned, loads = (root_turned, motion[6] if same else tip_turned), load(*arguments[len(motion_arrays) :])
        return tuple(
            entry for M, forces in loads for entry in _project_blocks(M, forces, motion, turned, tip_arm, used)
        )

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
    motion: Sequence[Array],
    turned: tuple[Array | None, ...],
    arm: Array | None,
    used: list[int],
) -> list[Array]:
    """Return blocks of a matrix over root, tip and modes, in the unknowns that move them."""
    (a_A, al_A, J_A, a_B, al_B, J_B, R, w), (root_turned, tip_turned) = motion, turned
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
    """Return J^T M J, symmetric, and J^T forces."""
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
    """Add an off-diagonal block on both sides; an unknown may move both ends."""
    for i, row in zip(rows, block, strict=True):
        for k, value in zip(columns, row, strict=True):
            state.A[i, k] = state.A[i, k] + value
            state.A[k, i] = state.A[k, i] + value


def _moving(J: Array, columns: Sequence[int]) -> tuple[Array, list[int]]:
    """Return the nonzero columns of J and their unknowns, in order."""
    nonzero = sorted((k, place) for place, k in enumerate(columns) if any(not _zero(x) for x in J[:, place]))
    return J[:, [place for _, place in nonzero]], [k for k, _ in nonzero]


def _zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _tip_rotation(R: Array, turned: Array | None) -> Array | None:
    """Return the rotation from root axes of a beam to those of its tip, or None if they are equal."""
    if turned is None:
        return R.T
    return None if turned is R else turned @ R.T


def elastic_acceleration(state: SubstructureState, beam: CutBeam, x: Array) -> Array:
    """Return accelerations of the tip coordinates of a beam from the unknowns."""
    link, form = state.form.robot.tree.links[beam.link], beam.form
    root, tip, R = state.moving.links[beam.link], state.moving.links[beam.tip], state.at.local_rotation[beam.tip]
    same = tip.turned is R
    optional = [root.turned, None if same else tip.turned]

    def bent(e: Array, ed: Array, w: Array, R: Array, *ends: Array) -> tuple[Array]:
        remaining = iter(ends[6:])
        root_turned, tip_turned = (None if part is None else next(remaining) for part in optional)
        parts: list[Array] = []
        for number, rotation in enumerate((root_turned, _tip_rotation(R, R if same else tip_turned))):
            J, unknowns, bias = ends[3 * number : 3 * number + 3]
            both = np.split(bias + J @ unknowns, 2)
            parts += both if rotation is None else [rotation.T @ part for part in both]
        return (form.elastic_rates(e) @ np.concatenate(parts) + form.drift(e, ed, w),)

    key = ("elastic acceleration", beam.body, same, tuple(part is None for part in optional))
    arrays = [state.at.q[link.e], state.rates.qd[link.e_v], state.rates.w(beam.link), R]
    for end in (root, tip):
        arrays += [end.J, x[list(end.columns)], np.concatenate([end.a, end.al])]
    return shared_call(bent, key, *arrays, *(part for part in optional if part is not None))[0]


def _both(R: Array, used: list[int]) -> Array:
    """Return the rotation of the used components of force and moment."""
    zero = np.zeros((3, 3))
    return np.block([[R, zero], [zero, R]])[np.ix_(used, used)]


def _turned(M: Array, Q: Array, used: list[int]) -> Array:
    """Return Q M Q^T, with multiples of the identity in diagonal blocks, which are invariant, treated apart."""
    split = sum(k < 3 for k in used)
    entries = np.diag(M)
    even = [_most_frequent(entries[:split])] * split + [_most_frequent(entries[split:])] * (len(used) - split)
    return np.diag(even) + Q @ (M - np.diag(even)) @ Q.T


def _most_frequent(entries: Array) -> float:
    """Return the most frequent number among the entries, the last of single ones; 0 if all are symbols."""
    numbers = [float(x) for x in entries if isinstance(x, (int, float))]
    return max(reversed(numbers), key=numbers.count) if len(entries) > 1 and numbers else 0.0


class StepMatrix:
    """The matrix at a pose, for coefficients c1 (s) of damping and c2 (s^2) of stiffness, real or complex pairs.

    `joints` are the slopes of joint forces by their rates. `driven` motors are fixed.
    """

    def __init__(
        self, form: Substructures, q: Any, c1: Any, c2: Any, driven: bool, joints: Mapping[int, JointTangent]
    ) -> None:
        self.c1, self.c2, self.joints = c1, c2, joints
        self.form = replace(form, robot=acting_robot(form.robot, ("gravity",)))  # what is linear in accelerations alone
        self.state = substructure_state(self.form, q, np.zeros(len(form.partition.independent)))
        held_slots = set(self.state.motor_slots) if driven else set()
        self.rest = [k for k in range(form.size) if k not in held_slots]
        motors = {int(k) for k in form.robot.actuated} if driven else set()
        self.free = [i for i, k in enumerate(form.partition.independent) if int(k) not in motors]
        rates, links = {int(form.partition.independent[i]) for i in self.free}, form.robot.tree.links
        turning = [x for x in links if not x.joint.one_axis and rates & set(range(x.v.start, x.v.stop))]
        self.turning = [p for link in turning for p in range(link.q.start, link.q.stop)]  # rates are no derivatives
        self._beams: dict[int, tuple[Array, ...]] = {}

    def factors(self) -> Factors:
        """Return L and D of the matrix."""
        n, A = self.form.size, self.state.A
        stiff, damped = (part.A for part in self._elastic())
        total = np.zeros((n, n), dtype=object)
        for i, k in np.argwhere(np.tril((A != 0) | (damped != 0) | (stiff != 0))):
            total[i, k] = total[k, i] = self._sum(A[i, k], damped[i, k], stiff[i, k])
        matrix = total[np.ix_(self.rest, self.rest)]
        if can_share_call(self.state.f):
            return eliminate_groups(matrix, groups_among(self.form, self.rest))
        return eliminate(matrix, sparse=True)

    def _elastic(self, qd: Array | None = None) -> tuple[SubstructureState, SubstructureState]:
        """Return stiffness and damping matrices over the unknowns; for rates `qd` their forces."""
        n, form = self.form.size, self.form
        empty = (replace(self.state, A=np.zeros((n, n), dtype=object), f=np.zeros(n, dtype=object)) for _ in range(2))
        stiff, damped = empty
        for beam in form.beams:
            rates, *matrices = self._beam(beam)
            acting = [(into, M) for into, M in zip((stiff, damped), matrices, strict=True) if np.any(M != 0)]
            states, arrays = [into for into, _ in acting], [rates, *(M for _, M in acting)]
            strained = [] if qd is None else [qd[form.robot.tree.links[beam.link].e_v]]
            key = "elastic matrices" if qd is None else "elastic forces"
            if states:
                assemble_beam(states, beam, _elastic_loads, key, *strained, *arrays)
        for modal in form.modal:
            link, free, slots = form.robot.tree.links[modal.link], list(modal.free), modal.slots
            e, bent = self.state.at.q[link.e], None if qd is None else qd[link.e_v][free]
            for into, M in ((stiff, modal.body.stiffness_at(e)), (damped, modal.body.damping_at(e))):
                loads = _matrix_or_forces(M[np.ix_(free, free)], bent)
                add_to(into, np.eye(len(free)), range(slots.start, slots.stop), *loads)
        for k, slope in ((k, self.joints[k]) for k in self.state.moving.joints if k in self.joints):
            columns, row = self.state.moving.joints[k]
            for into, value in ((stiff, slope.stiffness), (damped, slope.damping)):
                if not is_zero(value):
                    loads = _matrix_or_forces(np.array([[value]], dtype=object), None if qd is None else qd[[k]])
                    add_to(into, row[None, :], columns, *loads)
        return stiff, damped

    def _sum(self, inertia: Any, damping: Any, stiffness: Any) -> Any:
        """Return an entry of the matrix."""
        total = complex_pair(inertia) if isinstance(self.c2, ComplexPair) else inertia
        for factor, part in ((self.c1, damping), (self.c2, stiffness)):
            total = total if is_zero(part) else total + factor * part
        return total

    def _beam(self, beam: CutBeam) -> tuple[Array, ...]:
        """Return elastic rates of a beam from those of its ends and modes, with stiffness and damping."""
        if beam.link not in self._beams:
            used = self.form.used

            def at(e: Array) -> tuple[Array, ...]:
                return beam.form.all_rates(e, used), beam.body.stiffness_at(e), beam.body.damping_at(e)

            e = self.state.at.q[self.form.robot.tree.links[beam.link].e]
            self._beams[beam.link] = shared_call(at, ("elastic rates", beam.body, used), e)
        return self._beams[beam.link]

    def correction(self, factors: Factors, miss: Array) -> tuple[Array, Array]:
        """Return the Newton step of accelerations with residual `miss`, and of rates of `turning` positions."""
        stiff, damped = self._apart(self._forces, miss)
        rhs = [self.c2 * stiff[k] + self.c1 * damped[k] for k in self.rest]
        x = np.zeros(self.form.size, dtype=object)
        groups = [step for step in factors if isinstance(step, GroupStep)]
        single = [step for step in factors if isinstance(step, EliminationStep)]
        x[self.rest] = substitute_groups(groups, rhs) if groups else substitute(single, rhs)
        (back,) = self._apart(lambda part: (self.state.independent_accelerations(part)[self.free],), x)
        change = np.array([m - b for m, b in zip(miss, back, strict=True)], dtype=object)
        (turned,) = self._apart(self._turned, change)
        return change, turned

    def _apart(self, linear: Callable[[Array], tuple[Array, ...]], values: Array) -> list[Array]:
        """Return results of a real linear function of real and imaginary parts."""
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
        """Return rates of rotating positions; rates of their joints are free or fixed."""
        qd = np.zeros(self.form.robot.tree.n, dtype=object)
        qd[self.form.partition.independent] = self._independent(free)
        return (self.form.robot.tree.position_rates(self.state.at.q, qd)[self.turning],)

    def _forces(self, free: Array) -> tuple[Array, Array]:
        """Return the forces of stiffness and damping along the unknowns for free rates."""
        stiff, damped = self._elastic(SubstructureRates(self.form, self.state.at, self._independent(free)).qd)
        return stiff.f, damped.f


def _matrix_or_forces(M: Array, strained: Array | None) -> tuple[Array, Array]:
    """Return a matrix without forces, or the forces of rates."""
    return (M, np.zeros(len(M))) if strained is None else (np.zeros(M.shape), M @ strained)


def _elastic_loads(*arrays: Array) -> list[tuple[Array, Array]]:
    """Return matrices over elastic coordinates in ends and modes, or the forces of deformed coordinates."""
    if arrays[0].ndim == 1:
        bent, rates, *matrices = arrays
        return [(np.zeros((rates.shape[1],) * 2), rates.T @ (matrix @ bent)) for matrix in matrices]
    rates, *matrices = arrays
    return [(rates.T @ matrix @ rates, np.zeros(rates.shape[1])) for matrix in matrices]
