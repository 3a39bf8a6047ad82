"""A robot in pieces at a state: rates, motions, and the equations that beams, bodies and joints add their parts to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.models.forms.in_pieces.piece_motion import PieceMotion
from parflex.models.forms.in_pieces.piece_rates import Rates
from parflex.records import Record
from parflex.recursion.kinematics import Pose
from parflex.robot.substructures import Substructures

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class NodeState(Record):
    """Everything at a state: rates, accelerations per unknown, inertia and forces in the unknowns."""

    form: Substructures
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
