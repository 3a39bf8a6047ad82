"""The two-node form: a flexible robot, cut into rigid pieces that beams tie together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.closure.partition import Reduction, reduction
from parflex.formulations.base import (
    STEPS_FROM_GUESS,
    Answer,
    Formulation,
    Given,
    Groups,
    ModelRequest,
    System,
    closure_system,
    newton_closed,
)
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
PRESCRIBED_MOTION_MODELS = (
    "inverse",
    "jacobian-of-inverse",
    "state-rates-driven",
)  # the motors' accelerations are given
MODELS = (*PRESCRIBED_MOTION_MODELS, "direct", "state-rates")


@dataclass(frozen=True)
class SubstructureFormulation(Formulation):
    """A robot in pieces; the pieces' accelerations are the unknowns, loops through beams need no equation."""

    name: ClassVar[str] = "two-node form"
    equations: ClassVar[tuple[int, ...]] = (29, 30, 31)
    pieces: Substructures

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
        dependent = len(self.pieces.partition.dependent)
        return (
            "Each closure fixes elastic coordinates of one body beside it, so that its end is where it must be: "
            f"{dependent} of {len(self.robot.free)} rates follow from the others."
        )

    @property
    def independent(self) -> Array:
        """Numbers of the independent rates."""
        return self.pieces.partition.independent

    @property
    def sizes(self) -> dict[str, int]:
        """Pieces and unknowns."""
        return {"pieces": len(self.pieces.pieces), "unknowns": self.pieces.size}

    def ways(self) -> Sequence[Formulation]:
        """A piece may move freely with the root of a beam, the tip of one or the link at a closure."""
        if len(self.robot.free) > MAX_RATES_FOR_VARIANTS or self.question.model == "jacobian-of-inverse":
            return [self]
        variants = {_piece_structure(self.pieces): self.pieces}
        for other in (find_substructures(self.robot, preferred) for preferred in PREFERENCES[1:]):
            if other is not None:  # the same pieces once more would be the same program, made and optimised again
                variants.setdefault(_piece_structure(other), other)
        return [self if pieces is self.pieces else SubstructureFormulation(self.robot, pieces, question=self.question)
                for pieces in variants.values()]  # fmt: skip

    # -- inverse and direct model ----------------------------------------------------------------------

    @property
    def state_groups(self) -> Groups:
        """All positions, closed, and the independent rates."""
        return {"q": (self.robot.tree.nq,), "qd": (len(self.independent),)}

    @property
    def motion_groups(self) -> Groups:
        """Accelerations of the motors: bodies are free to deform."""
        return {"motor_acceleration": (len(self.robot.actuated),)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Positions, rates and motors by their names."""
        names, motors = self.independent_names, self.robot.actuated_names
        motor_names = set(motors)
        return {
            **{"q": list(self.robot.tree.position_names), "qd": names, "qdd": names},
            **{"effort": motors, "motor_acceleration": motors},
            "free_acceleration": [name for name in names if name not in motor_names],
        }

    def state(self, inputs: Given) -> SubstructureState:
        """Inertia and forces in the unknowns."""
        return self.moving(inputs["q"], inputs["qd"])

    def inverse(self, state: SubstructureState, motion: Given) -> Answer:
        """Efforts of the motors for their accelerations, and how the rest accelerates."""
        effort, qdd = self.efforts_for(state, motion["motor_acceleration"])
        unactuated = [i for i, k in enumerate(self.independent) if int(k) not in set(self.robot.actuated)]
        return {"effort": effort, "free_acceleration": qdd[unactuated]}

    def direct(self, state: SubstructureState, tau: Array) -> Answer:
        """Accelerations of the independent coordinates under the efforts of the motors."""
        return {"qdd": accelerations_under(state, tau)}

    # -- of all coordinates ----------------------------------------------------------------------------

    def _reduction(self, state: SubstructureState) -> Reduction:
        J = self.robot.closures.jacobian(state.at, jacobians(self.robot.tree, state.at))
        return reduction(J, self.pieces.partition)

    def all_accelerations(self, state: SubstructureState, independent: Array) -> Array:
        """The dependent ones close the loops."""
        return self._reduction(state).accelerations(self.robot.closures, state.at, state.qd, independent)

    def systems(self, state: SubstructureState, motors: bool) -> list[System]:
        """J_f; the motors are independent rates."""
        part = self.pieces.partition
        if not len(part.dependent):
            return []
        return [closure_system(self.robot, part.rows, part.dependent, self._reduction(state).block)]

    def inertia(self, state: SubstructureState) -> tuple[Array, Array, bool]:
        """That of the pieces and beams, in the unknowns: twists of pieces, and joints inside them."""
        units, translations = np.ones(self.pieces.size), [k for k, part in enumerate(self.pieces.used) if part < 3]
        for piece in self.pieces.pieces:
            if piece.slots.stop > piece.slots.start:
                units[[piece.slots.start + k for k in translations]] = self.robot.tree.length
        return state.A, units, True

    # -- motion in time --------------------------------------------------------------------------------

    def closed(self, q: Any) -> Any:
        """Positions after Newton steps of the dependent ones from the guesses of an integrator."""
        part = self.pieces.partition
        return newton_closed(self.robot, part, q, STEPS_FROM_GUESS) if len(part.dependent) else q

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
    if question.model in PRESCRIBED_MOTION_MODELS and not set(robot.actuated) <= set(
        pieces.partition.independent.tolist()
    ):
        return "a motor of it is locked"
    return SubstructureFormulation(robot, pieces, question=question)


def _piece_structure(pieces: Substructures) -> tuple[tuple[int, ...], ...]:
    """What tells one way to write pieces from another: the link that each moves with, and the way to its others."""
    return tuple((piece.reference, *(step.link for step in piece.steps)) for piece in pieces.pieces)
