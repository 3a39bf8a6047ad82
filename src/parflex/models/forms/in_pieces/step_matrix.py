"""The matrix of an implicit step of a robot cut into pieces: A + c1 D + c2 K, as sparse as the inertia A itself.

Stiffness K and damping D of beams, modes and joints act between the same nodes as inertia, so that the order of
elimination of the direct model serves, theory (59). What the forces of the motion and their change with the pose add is
left out: it is small against inertia in a step, and a Newton iteration corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.models.forms.in_pieces.beam_assembly import add_to, assemble_beam
from parflex.models.forms.in_pieces.node_equations import (
    groups_among,
    independent_accelerations,
    motor_slots,
    node_state,
)
from parflex.models.forms.in_pieces.piece_rates import piece_rates
from parflex.robot.substructures import CutBeam, Substructures
from parflex.spatial.dual import ComplexPair, complex_pair
from parflex.spatial.linear import (
    EliminationStep,
    GroupStep,
    can_share_call,
    eliminate,
    eliminate_groups,
    is_zero,
    shared_call,
    substitute,
    substitute_groups,
)

Array = np.ndarray
Factors = Sequence[EliminationStep | GroupStep]


@dataclass(frozen=True)
class JointSlope:
    """How the force of a joint grows with its coordinate and with its rate."""

    stiffness: Any
    damping: Any


def resting(form: Substructures) -> Substructures:
    """The same pieces without weight: what is linear in accelerations stands alone."""
    tree = replace(form.robot.tree, gravity=np.zeros(3))
    robot = replace(form.robot, tree=tree, closures=replace(form.robot.closures, tree=tree))
    return replace(form, cut=replace(form.cut, robot=robot))


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
        joints: Mapping[int, JointSlope] | None = None,
    ) -> None:
        self.form, self.c1, self.c2, self.joints = resting(form), c1, c2, dict(joints or {})
        self.state = node_state(self.form, q, np.zeros(len(form.partition.independent)))
        held = set(motor_slots(self.state)) if driven else set()
        self.rest = [k for k in range(form.size) if k not in held]
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
                assemble_beam(states, beam, _between_ends, "elastic matrices", rates, *acting)
        for which, modal in enumerate(self.form.modal):
            slots = range(modal.slots.start, modal.slots.stop)
            for state, matrix in zip((stiff, damped), self._modal(which), strict=True):
                add_to(state, np.eye(len(slots)), slots, matrix, np.zeros(len(slots)))
        for k, slope in self._slopes():
            columns, row = self.state.moving.joints[k]
            for state, value in ((stiff, slope.stiffness), (damped, slope.damping)):
                if not is_zero(value):
                    add_to(state, row[None, :], columns, np.array([[value]], dtype=object), np.zeros(1))
        whole = np.zeros((n, n), dtype=object)
        for i, k in np.argwhere(np.tril((self.state.A != 0) | (damped.A != 0) | (stiff.A != 0))):
            whole[i, k] = whole[k, i] = self._sum(self.state.A[i, k], damped.A[i, k], stiff.A[i, k])
        matrix = whole[np.ix_(self.rest, self.rest)]
        if can_share_call(self.state.f):
            return eliminate_groups(matrix, groups_among(self.form, self.rest))
        return eliminate(matrix, sparse=True)

    def _sum(self, own: Any, damping: Any, stiffness: Any) -> Any:
        """An entry of the matrix."""
        total = complex_pair(own) if isinstance(self.c2, ComplexPair) else own
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

    def _modal(self, which: int) -> tuple[Array, Array]:
        """The same of the free coordinates of a body that is not cut."""
        modal = self.form.modal[which]
        e, free = self.state.at.q[self.form.robot.tree.links[modal.link].e], np.ix_(modal.free, modal.free)
        return modal.body.stiffness_at(e)[free], modal.body.damping_at(e)[free]

    def _slopes(self) -> list[tuple[int, JointSlope]]:
        return [(k, self.joints[k]) for k in self.state.moving.joints if k in self.joints]

    # -- a step of Newton --------------------------------------------------------------------------------

    def correction(self, factors: Factors, miss: Array) -> tuple[Array, Array]:
        """What Newton changes the free accelerations by that miss those of the direct model by `miss`.

        Then how a change of rates by that changes the rates of `turning` positions.
        """
        stiff, damped = self._apart(self._forces, miss)
        right = [self.c2 * stiff[k] + self.c1 * damped[k] for k in self.rest]
        x = np.zeros(self.form.size, dtype=object)
        x[self.rest] = substitute_any(factors, right)
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
        qd = piece_rates(form, self.state.at, self._independent(free)).qd
        stiff, damped = (replace(self.state, f=np.zeros(form.size, dtype=object)) for _ in range(2))
        for beam in form.beams:
            strained, (rates, matrices) = qd[tree.links[beam.link].e_v], self._beam(beam)
            states = [state for state, matrix in zip((stiff, damped), matrices, strict=True) if np.any(matrix != 0)]
            acting = [matrix for matrix in matrices if np.any(matrix != 0)]
            if states:
                assemble_beam(states, beam, _against, "elastic forces", strained, rates, *acting)
        for which, modal in enumerate(form.modal):
            strained = qd[tree.links[modal.link].e_v][list(modal.free)]
            for state, matrix in zip((stiff, damped), self._modal(which), strict=True):
                state.f[modal.slots] = state.f[modal.slots] + matrix @ strained
        for k, slope in self._slopes():
            for state, value in ((stiff, slope.stiffness), (damped, slope.damping)):
                if not is_zero(value):
                    columns, row = self.state.moving.joints[k]
                    state.f[list(columns)] = state.f[list(columns)] + row * (value * qd[k])
        return stiff.f, damped.f


def substitute_any(factors: Factors, right: list[Any]) -> list[Any]:
    """Solutions by factors of single unknowns, or of groups of them."""
    groups = [step for step in factors if isinstance(step, GroupStep)]
    single = [step for step in factors if isinstance(step, EliminationStep)]
    return substitute_groups(groups, right) if groups else substitute(single, right)


def _between_ends(rates: Array, *matrices: Array) -> list[tuple[Array, Array]]:
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
