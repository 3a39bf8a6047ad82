"""Designs of a problem and their responses: worst values over modes and poses, and batches.

A batch gives modes, stiffness and masses at many poses in many designs. Other responses are computed pose by pose.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.design.design_rows import fixed_poses, values_in_designs
from parflex.design.design_state import DesignState, SensitiveDesign
from parflex.design.linear_model import HeldState
from parflex.design.problem import ProblemFile
from parflex.design.registry import ResponseQuestion
from parflex.design.response_value import MultipleValue, slope_of, value_of
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, ParflexWarning
from parflex.parameters.design_numbers import number_at
from parflex.parameters.robot_file import redesigned
from parflex.records import Record
from parflex.robot.robot import Robot

Array = np.ndarray

OUTSIDE = 1e-9  # of a number: what is farther from its bounds than by rounding

NEAR = 0.15  # of the worst value: poses and modes that come so near may become the worst within a step

BEYOND = 3  # modes above the one that is asked for


class ProblemDesigns:
    """Robots of a problem; a design `z` has a number from 0 to 1 for each variable, along its range."""

    def __init__(self, problem: ProblemFile, robot: Robot) -> None:
        self.problem, self.robot = problem, robot
        self.keys = list(problem.variables)
        nominal = np.array([number_at(robot, key, "variables") for key in self.keys])
        bounds = np.array([problem.variables[key].bounds for key in self.keys])
        self.low, self.width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
        self.questions = {name: table.question() for name, table in problem.responses.items()}
        self._poses = fixed_poses(robot, self.keys)
        starts = [problem.variables[key].start for key in self.keys]
        first = np.array([x if s is None else s for x, s in zip(nominal, starts, strict=True)])
        self.start = np.clip((first - self.low) / self.width, 0.0, 1.0)
        self.before = self._first()
        self.values_before = {name: self.value(self.before, name) for name in self.questions}
        for key, x, s, z in zip(self.keys, nominal, starts, self.low + self.width * self.start, strict=True):
            if s is None and abs(x - z) > OUTSIDE * abs(x):
                text = (
                    f"'{key}' is {x:g} in the robot file, outside its bounds: the search starts at {z:g}, and what is "
                    "told of the robot before is told of that one"
                )
                warnings.warn(ParflexWarning(Diagnostic("outside-bounds", text, key, float(x))), stacklevel=2)

    def _first(self) -> Robot:
        """The robot at the start; bounds that shut out the robot of the file may make it impossible."""
        try:
            return self.design(self.start)
        except ParflexError as error:
            shown = ", ".join(f"{key} = {value:g}" for key, value in self.settings(self.start).items())
            raise InputError(
                f"the robot cannot be at the start of the search, {shown}: {error.message}",
                key="variables",
                value=", ".join(self.keys),
                hint="give bounds, or a start, with which the robot can be assembled",
            ) from None

    def settings(self, z: Array) -> dict[str, float]:
        """Numbers of the file at a design."""
        return dict(zip(self.keys, (self.low + self.width * z).tolist(), strict=True))

    def design(self, z: Array) -> Robot:
        """The robot at a design, in the working mode of the loaded one."""
        return redesigned(self.robot, self.settings(z))

    # -- responses -------------------------------------------------------------------------------------

    def value(self, robot: Robot, name: str) -> float:
        """A response of a robot."""
        return value_of(self.questions[name].asked(robot).answer)

    def together(self, designs: Array, name: str) -> Array | None:
        """Values at rows of designs and all poses by programs of maps; None where they do not cover the response."""
        columns = self.low + self.width * designs
        by_key = {key: columns[:, k] for k, key in enumerate(self.keys)}
        return values_in_designs(self.robot, self.questions[name], by_key, self._poses)

    def worst(self, values: Array, name: str) -> Array:
        """The value that counts of those at all poses."""
        return values.min(axis=-1) if self.questions[name].response.worst == "smallest" else values.max(axis=-1)

    def values(self, z: Array, names: Sequence[str]) -> dict[str, float]:
        """Responses at a design, by name."""
        values: dict[str, float] = {}
        robot: Robot | None = None
        for name in dict.fromkeys(names):
            batch_values = self.together(z[None], name)
            if batch_values is None or not np.isfinite(batch_values).all():
                robot = robot or self.design(z)
                values[name] = self.value(robot, name)
            else:
                values[name] = float(self.worst(batch_values, name)[0])
        return values

    def pieces(self, z: Array, names: Sequence[str]) -> dict[str, list[ResponsePiece]]:
        """Pieces of responses at a design, by name, with slopes along the ranges."""
        robot = self.design(z)
        pieces: dict[str, list[ResponsePiece]] = {}
        for name in dict.fromkeys(names):
            batch_values = self.together(z[None], name) if len(self.questions[name].poses) > 1 else None
            batch_values = batch_values if batch_values is not None and np.isfinite(batch_values).all() else None
            robot_pieces = response_pieces(
                robot, self.questions[name], self.keys, None if batch_values is None else batch_values[0]
            )
            pieces[name] = [
                ResponsePiece(p.value, p.matrices * self.width[:, None, None], p.pose) for p in robot_pieces
            ]
        return pieces


@dataclass(frozen=True, eq=False, repr=False)
class ResponsePiece(Record):
    """Equal values of a response at one pose, and their symmetric slopes: keys x m x m."""

    value: float
    matrices: Array
    pose: Any = None

    def cut(self, direction: Array) -> Array:
        """Slope of the value along the mode `direction` of the equal ones."""
        return np.einsum("i,kij,j->k", direction, self.matrices, direction)


def response_pieces(
    robot: Robot, question: ResponseQuestion, keys: Sequence[str], known: Array | None = None
) -> list[ResponsePiece]:
    """Pieces of a response, the worst first; `known` are its values at all poses, where they are."""
    if question.tolerances is not None:
        worst_answer = question.asked(robot, keys)
        return [_piece(worst_answer.answer, len(keys), worst_answer.pose)]
    sign = 1.0 if question.response.worst == "smallest" else -1.0
    if known is None and len(question.poses) > 1:
        plain = SensitiveDesign(robot, ())
        known = np.array([value_of(question.at(robot, pose, plain)) for pose in question.poses])
    values = sign * (np.zeros(1) if known is None else known)  # one pose is the worst, whatever its value
    worst = float(values.min())
    near_worst = [int(k) for k in np.argsort(values, kind="stable") if values[k] <= worst + NEAR * abs(worst)]
    design, found_pieces = SensitiveDesign(robot, keys, often=True), []  # a search asks many designs
    for k in near_worst:
        pose = question.poses[k]
        found_pieces += [_piece(answer, len(keys), pose) for answer in _answers(robot, question, pose, design)]
    return sorted(found_pieces, key=lambda piece: sign * piece.value)


def _answers(robot: Robot, question: ResponseQuestion, pose: Any, design: SensitiveDesign) -> list[Any]:
    """The answer at a pose; of frequencies also those of the next modes, which may cross it."""
    argument = question.argument or "1"
    if question.response.name != "frequency" or not argument.isdigit():
        return [question.at(robot, pose, design)]
    held = HeldState(DesignState(robot, pose, design.keys, question.case, design))
    first = int(argument) - 1
    modes = lowest_modes(held, first + 1 + BEYOND)
    answers: list[Any] = []
    number = first
    while number < len(modes.frequencies) and modes.frequencies[number] <= (1 + NEAR) * modes.frequencies[first]:
        answer = frequency_of(held, modes, number)
        answers.append(answer)
        number += answer.multiplicity - answer.place if isinstance(answer, MultipleValue) else 1
    return answers


def _piece(answer: Any, count: int, pose: Any) -> ResponsePiece:
    matrices = answer.matrices if isinstance(answer, MultipleValue) else slope_of(answer, count).reshape(count, 1, 1)
    return ResponsePiece(value_of(answer), matrices, pose)
