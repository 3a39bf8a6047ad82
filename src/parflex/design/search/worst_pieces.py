"""What an optimiser sees of a response: all values near the worst one, over modes and poses, with their slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.design.answers import Cluster, slope_of, value_of
from parflex.design.design_state import DesignState, SensitiveDesign
from parflex.design.questions import ResponseQuestion
from parflex.design.vibrating import HeldState
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.records import Record
from parflex.robot.robot import Robot

Array = np.ndarray
NEAR = 0.15  # of the worst value: poses and modes that come so near may become the worst within a step
BEYOND = 3  # modes above the one that is asked for


@dataclass(frozen=True, eq=False, repr=False)
class Piece(Record):
    """Equal values of a response at one pose, and their symmetric slopes: keys x m x m."""

    value: float
    matrices: Array
    pose: Any = None

    def cut(self, direction: Array) -> Array:
        """Slope of the value along the mode `direction` of the equal ones."""
        return np.einsum("i,kij,j->k", direction, self.matrices, direction)


def pieces_of(robot: Robot, question: ResponseQuestion, keys: Sequence[str], known: Array | None = None) -> list[Piece]:
    """Pieces of a response, the worst first; `known` are its values at all poses, where they are."""
    if question.tolerances is not None:
        found = question.asked(robot, keys)
        return [_piece(found.answer, len(keys), found.pose)]
    sign = 1.0 if question.response.worst == "smallest" else -1.0
    if known is None and len(question.poses) > 1:
        plain = SensitiveDesign(robot, ())
        known = np.array([value_of(question.at(robot, pose, plain)) for pose in question.poses])
    values = sign * (np.zeros(1) if known is None else known)  # one pose is the worst, whatever its value
    worst = float(values.min())
    near = [int(k) for k in np.argsort(values, kind="stable") if values[k] <= worst + NEAR * abs(worst)]
    design, found_pieces = SensitiveDesign(robot, keys, often=True), []  # a search asks many designs
    for k in near:
        pose = question.poses[k]
        found_pieces += [_piece(answer, len(keys), pose) for answer in _answers(robot, question, pose, design)]
    return sorted(found_pieces, key=lambda piece: sign * piece.value)


def _answers(robot: Robot, question: ResponseQuestion, pose: Any, design: SensitiveDesign) -> list[Any]:
    """The answer at a pose; of frequencies also those of the next modes, which may cross it."""
    argument = question.argument or "1"
    if question.response.name != "frequency" or not argument.isdigit():
        return [question.at(robot, pose, design)]
    held = HeldState(DesignState(robot, pose, design.keys, question.circumstances, design))
    first = int(argument) - 1
    modes = lowest_modes(held, first + 1 + BEYOND)
    found: list[Any] = []
    number = first
    while number < len(modes.frequencies) and modes.frequencies[number] <= (1 + NEAR) * modes.frequencies[first]:
        answer = frequency_of(held, modes, number)
        found.append(answer)
        number += answer.multiplicity - answer.place if isinstance(answer, Cluster) else 1
    return found


def _piece(answer: Any, count: int, pose: Any) -> Piece:
    matrices = answer.matrices if isinstance(answer, Cluster) else slope_of(answer, count).reshape(count, 1, 1)
    return Piece(value_of(answer), matrices, pose)
