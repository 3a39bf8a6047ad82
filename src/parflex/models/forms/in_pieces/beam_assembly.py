"""Beams between pieces: matrices and forces of the motion of their two ends, put where the unknowns of these stand.

All that is computed for one beam is one function of its own numbers: beams that are alike share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parflex.models.forms.in_pieces.node_state import NodeState
from parflex.models.forms.in_pieces.piece_motion import Carried
from parflex.robot.substructures import CutBeam
from parflex.spatial.linear import shared_call
from parflex.spatial.rotations import cross, hat

Array = np.ndarray
Load = Callable[..., Sequence[tuple[Array, Array]]]  # matrix and forces over root, tip and modes, for each state


def assemble_beam(states: Sequence[NodeState], beam: CutBeam, load: Load, key: Any, *arrays: Any) -> None:
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
    (J_A, rows), (J_B, others) = (_moving(end.J[list(used)], end.columns) for end in (root, tip))
    ends = [root.a, root.al, J_A, tip.a, tip.al, J_B, R, state.rates.before[beam.tip]]
    same = tip.turned is R
    turns = [part for part in (root.turned, None if same else tip.turned) if part is not None]
    more = [*ends, *turns, *([] if arm is None else [arm])]
    how = (used, root.turned is not None, same, tip.turned is not None, arm is not None)

    def blocks(*all_given: Array) -> tuple[Array, ...]:
        """Of each state: blocks of root, both, tip, modes, modes and ends, and their forces."""
        own = list(all_given[: len(more)])
        motion = own[: len(ends)]
        rest = iter(own[len(ends) :])
        root_turned = next(rest) if how[1] else None
        tip_turned = motion[6] if same else next(rest) if how[3] else None
        hangs = next(rest) if arm is not None else None
        found: list[Array] = []
        for M, forces in load(*all_given[len(more) :]):
            found += _in_unknowns(M, forces, motion, root_turned, tip_turned, hangs, list(used))
        return tuple(found)

    results = shared_call(blocks, ("beam", key, how), *more, *arrays)
    slots = list(range(beam.slots.start, beam.slots.stop))
    for number, into in enumerate(states):
        AA, f_A, AB, BB, f_B, II, f_I, IA, IB = results[9 * number : 9 * number + 9]
        _add_square(into, rows, AA, f_A)
        _add_square(into, others, BB, f_B)
        _add_between(into, rows, others, AB)
        if slots:
            _add_square(into, slots, II, f_I)
            _add_between(into, slots, rows, IA)
            _add_between(into, slots, others, IB)


def _in_unknowns(
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
    turns = _turn_of_tip(R, tip_turned)
    at_root = [part if root_turned is None else root_turned.T @ part for part in (a_A, al_A)]
    a, al = (part if turns is None else turns.T @ part for part in (a_B, al_B))
    at_tip = [a + cross(al, arm) + hat(w) @ hat(w) @ arm, al]
    still = np.zeros(len(M) - 2 * count)
    forces = forces + M @ np.concatenate([np.concatenate(at_root)[used], np.concatenate(at_tip)[used], still])
    one, two, modes = slice(0, count), slice(count, 2 * count), slice(2 * count, len(M))
    M_AA, M_AB, M_BB = M[one, one], M[one, two], M[two, two]
    M_IA, M_IB, f_A, f_B = M[modes, one], M[modes, two], forces[one], forces[two]
    if root_turned is not None:
        Q = _both(root_turned, used)
        M_AA, M_AB, M_IA, f_A = _turned(M_AA, Q, used), Q @ M_AB, M_IA @ Q.T, Q @ f_A
    found = [*projected(J_A, M_AA, f_A)]
    M_AB, M_IA = J_A.T @ M_AB, M_IA @ J_A
    if any(not _zero(x) for x in arm):
        shift = np.block([[np.eye(3), -hat(arm)], [np.zeros((3, 3)), np.eye(3)]])[np.ix_(used, used)]
        M_AB, M_BB, M_IB, f_B = M_AB @ shift, shift.T @ M_BB @ shift, M_IB @ shift, shift.T @ f_B
    if turns is not None:
        Q = _both(turns, used)
        M_AB, M_BB, M_IB, f_B = M_AB @ Q.T, _turned(M_BB, Q, used), M_IB @ Q.T, Q @ f_B
    return [*found, M_AB @ J_B, *projected(J_B, M_BB, f_B), M[modes, modes], forces[modes], M_IA, M_IB @ J_B]


def projected(J: Array, M: Array, forces: Array) -> tuple[Array, Array]:
    """J^T M J, symmetric, and J^T forces."""
    MJ, count = M @ J, J.shape[1]
    square, along = np.zeros((count, count), dtype=object), np.zeros(count, dtype=object)
    for a in range(count):
        for b in range(a + 1):
            square[a, b] = square[b, a] = J[:, a] @ MJ[:, b]
        along[a] = J[:, a] @ forces
    return square, along


def add_to(state: NodeState, J: Array, columns: Sequence[int], M: Array, forces: Array) -> None:
    """Add J^T M J and J^T forces, J over some unknowns."""
    own, moving = _moving(J, columns)
    _add_square(state, moving, *projected(own, M, forces))


def _add_square(state: NodeState, columns: list[int], square: Array, along: Array) -> None:
    A, f = state.A, state.f
    for a, i in enumerate(columns):
        for b, k in enumerate(columns[: a + 1]):
            A[i, k] = A[k, i] = A[i, k] + square[a, b]
        f[i] = f[i] + along[a]


def _add_between(state: NodeState, rows: list[int], columns: list[int], block: Array) -> None:
    """Add a block beside the diagonal, on both sides of it; an unknown may move both ends."""
    for i, row in zip(rows, block, strict=True):
        for k, value in zip(columns, row, strict=True):
            state.A[i, k] = state.A[i, k] + value
            state.A[k, i] = state.A[k, i] + value


def _moving(J: Array, columns: Sequence[int]) -> tuple[Array, list[int]]:
    """The columns of J that are not zero, and the unknowns that they belong to, in their order."""
    found = sorted((k, place) for place, k in enumerate(columns) if any(not _zero(x) for x in J[:, place]))
    return J[:, [place for _, place in found]], [k for k, _ in found]


def _zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _turn_of_tip(R: Array, turned: Array | None) -> Array | None:
    """Rotation from the axes of a beam's root to those in which its tip is written; None if they are the same."""
    if turned is None:
        return R.T
    return None if turned is R else turned @ R.T


def elastic_acceleration(state: NodeState, beam: CutBeam, x: Array) -> Array:
    """Of the coordinates of a beam's tip, from the unknowns."""
    link = state.form.robot.tree.links[beam.link]
    root, tip, R = state.moving.links[beam.link], state.moving.links[beam.tip], state.at.local_rotation[beam.tip]
    same, form = tip.turned is R, beam.form
    turned = [None if end.turned is None or (same and end is tip) else end.turned for end in (root, tip)]

    def bent(
        e: Array, ed: Array, w: Array, R: Array, J_A: Array, x_A: Array, a_A: Array, J_B: Array, x_B: Array, a_B: Array,
        *turns: Array,
    ) -> tuple[Array]:  # fmt: skip
        rest = iter(turns)
        own = [None if part is None else next(rest) for part in turned]
        ends = (own[0], _turn_of_tip(R, R if same else own[1]))
        parts: list[Array] = []
        for J, moved, a, turn in ((J_A, x_A, a_A, ends[0]), (J_B, x_B, a_B, ends[1])):
            whole = a + J @ moved
            parts += [whole[:3], whole[3:]] if turn is None else [turn.T @ whole[:3], turn.T @ whole[3:]]
        return (form.elastic_rates(e) @ np.concatenate(parts) + form.drift(e, ed, w),)

    def motion(end: Carried) -> list[Array]:
        return [end.J, x[list(end.columns)], np.concatenate([end.a, end.al])]

    key = ("elastic acceleration", beam.body, same, tuple(part is None for part in turned))
    state_of = [state.at.q[link.e], state.rates.qd[link.e_v], state.rates.w(beam.link), R]
    turns = [part for part in turned if part is not None]
    return shared_call(bent, key, *state_of, *motion(root), *motion(tip), *turns)[0]


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
