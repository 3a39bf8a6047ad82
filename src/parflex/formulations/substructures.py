"""The two-node form: a flexible robot, cut into rigid pieces that beams tie together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from parflex.closure.partition import Reduction, reduction
from parflex.formulations.base import Formulation, Given, ModelRequest, System, closure_system
from parflex.formulations.general import GeneralFormulation
from parflex.formulations.substructure_equations import (
    JointTangent,
    StepMatrix,
    accelerations_under,
    efforts_for,
    substructure_state,
)
from parflex.formulations.substructure_motion import SubstructureState
from parflex.records import count_of
from parflex.recursion.kinematics import jacobians
from parflex.robot.robot import Robot
from parflex.robot.substructures import (
    PREFERENCES,
    Substructures,
    find_substructures,
    substructures_or_reason,
)

Array = np.ndarray
MAX_RATES_FOR_VARIANTS = 40  # robots with more are written one way only: each way to write one takes a second or more
PRESCRIBED_MOTION_MODELS = ("inverse", "jacobian-of-inverse", "state-rates-driven")  # accelerations of motors go in
MODELS = (*PRESCRIBED_MOTION_MODELS, "direct", "state-rates")


@dataclass(frozen=True)
class SubstructureFormulation(GeneralFormulation):
    """A robot in pieces; the pieces' accelerations are the unknowns, loops through beams need no equation."""

    name: ClassVar[str] = "two-node form"
    equations: ClassVar[tuple[int, ...]] = (29, 30, 31)
    pieces: Substructures = field(kw_only=True)

    @property
    def because(self) -> list[str]:
        """Where the robot is cut, and what is unknown then."""
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
        """By the beam beside a closure."""
        return (
            "Each closure fixes elastic coordinates of one body beside it, so that its end is where it must be: "
            f"{len(self.partition.dependent)} of {len(self.robot.free)} rates follow from the others."
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Pieces and unknowns."""
        return {"pieces": len(self.pieces.pieces), "unknowns": self.pieces.size}

    def ways(self) -> Sequence[Formulation]:
        """A piece may move freely with the root of a beam, the tip of one or the link at a closure."""
        if len(self.robot.free) > MAX_RATES_FOR_VARIANTS or self.question.model == "jacobian-of-inverse":
            return [self]
        variants: dict[Any, SubstructureFormulation] = {_piece_structure(self.pieces): self}
        for other in (find_substructures(self.robot, preferred) for preferred in PREFERENCES[1:]):
            if other is not None:  # the same pieces once more would be the same program, made and optimised again
                variants.setdefault(_piece_structure(other), replace(self, partition=other.partition, pieces=other))
        return list(variants.values())

    # -- of all coordinates ----------------------------------------------------------------------------

    def _reduction(self, state: SubstructureState) -> Reduction:
        return reduction(self.robot.closures.jacobian(state.at, jacobians(self.robot.tree, state.at)), self.partition)

    def all_accelerations(self, state: SubstructureState, independent: Array) -> Array:
        """The dependent ones close the loops."""
        return self._reduction(state).accelerations(self.robot.closures, state.at, state.qd, independent)

    def systems(self, state: SubstructureState, motors: bool) -> list[System]:
        """J_f; the motors are independent rates."""
        part = self.partition
        block = self._reduction(state).block
        return [closure_system(self.robot, part.rows, part.dependent, block)] if len(part.dependent) else []

    def inertia(self, state: SubstructureState) -> tuple[Array, Array, bool]:
        """That of the pieces and beams, in the unknowns: twists of pieces, and joints inside them."""
        units, translations = np.ones(self.pieces.size), [k for k, part in enumerate(self.pieces.used) if part < 3]
        for piece in self.pieces.pieces:
            if piece.slots.stop > piece.slots.start:
                units[[piece.slots.start + k for k in translations]] = self.robot.tree.length
        return state.A, units, True

    # -- motion in time --------------------------------------------------------------------------------

    def moving(self, q: Any, rates: Array, wrenches: Given | None = None) -> SubstructureState:
        """Inertia and forces in the unknowns."""
        return substructure_state(self.pieces, q, rates, (), wrenches)

    def accelerations_under(self, state: SubstructureState, tau: Array) -> Array:
        """Independent accelerations under the efforts of the motors."""
        return accelerations_under(state, tau)

    def efforts_for(self, state: SubstructureState, accelerations: Array) -> tuple[Array, Array]:
        """Efforts of the motors for their accelerations, and all independent accelerations."""
        return efforts_for(state, accelerations)

    def step_matrix(self, q: Any, c1: Any, c2: Any, joints: Mapping[int, JointTangent]) -> StepMatrix:
        """As sparse as the inertia in the unknowns."""
        return StepMatrix(self.pieces, q, c1, c2, self.question.model == "state-rates-driven", joints)


def substructure_formulation(robot: Robot, question: ModelRequest) -> SubstructureFormulation | str:
    """The two-node form of a robot, or why it has none."""
    if not robot.tree.elastic:
        return "no body is flexible"
    if question.model not in MODELS:
        return f"'{question.model}' is asked in the independent rates"
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
    """What tells one way to write pieces from another: the link that each moves with, and the way to its others."""
    return tuple((piece.reference, *(step.link for step in piece.steps)) for piece in pieces.pieces)
