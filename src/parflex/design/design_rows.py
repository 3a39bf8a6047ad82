"""Responses of many designs: questions that a batch covers over designs and poses together, others one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from parflex.design.design_state import ResponseCase, value_of
from parflex.design.registry import ResponseQuestion
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.maps.batch import Batch
from parflex.maps.batch_result import BatchResult, warn_of_balanced, warn_of_unstable
from parflex.maps.continuation import OK, OUTSIDE, SINGULAR, UNREACHABLE
from parflex.maps.parameters import masses_of, numbers_of_designs
from parflex.maps.positions import IMPOSSIBLE, home_state, outside_limits
from parflex.maps.responses import BATCH_FROM, read_responses
from parflex.parameters.design_numbers import leaves, number_at
from parflex.parameters.robot_file import redesigned
from parflex.parameters.traced_numbers import trace_file
from parflex.records import Record
from parflex.robot.configuration import configure
from parflex.robot.coordinate_names import read_row
from parflex.robot.robot import Robot
from parflex.spatial.batched import BatchedNumber, VariedNumberError
from parflex.statics.load_case import LoadCase

Array = np.ndarray
WITHOUT_LIMITS = ("mass", "limit_margin", "reachable", "area", "volume")  # responses that joint limits do not void
TOGETHER = ("stiffness", "compliance", "deflection")  # responses in a direction that a batch answers alike
LONG = 60.0  # s: what takes longer is told before
ROWS, DESIGNS, ALONE = 50_000, 2_000, 4  # of a chunk: poses of all designs, designs, designs that are made one by one


@dataclass(eq=False, repr=False)
class QuestionGroup(Record):
    """Questions at the same poses under the same load case, which a batch answers in all designs together."""

    coordinates: tuple[str, ...]
    poses: Array
    case: LoadCase
    questions: dict[str, ResponseQuestion] = field(default_factory=dict)

    def is_like(self, other: QuestionGroup) -> bool:
        """Whether both are asked at the same poses under the same load case."""
        same = self.coordinates == other.coordinates and np.array_equal(self.poses, other.poses)
        return same and vars(self.case) == vars(other.case)

    def batch(self, robot: Robot, designs: Mapping[str, Array], often: bool = False) -> Batch:
        """Return the poses in each design as a batch; without designs these are of the robot as it is."""
        count = len(next(iter(designs.values()))) if designs else 1
        wide = {key: np.repeat(np.asarray(values, dtype=float), len(self.poses)) for key, values in designs.items()}
        words = list(dict.fromkeys(question.text for question in self.questions.values()))
        responses = read_responses(robot, words)
        return Batch(robot, self.coordinates, np.tile(self.poses, (count, 1)), responses, self.case, wide, often=often)

    def values(self, robot: Robot, designs: Mapping[str, Array]) -> Array | None:
        """Return the answers to its only question, designs x poses; None of too few rows for programs."""
        (question,) = self.questions.values()
        count = len(next(iter(designs.values()))) if designs else 1
        if count * len(self.poses) < BATCH_FROM:
            return None
        return self.batch(robot, designs).all().values[question.text].reshape(count, -1)


def question_group(
    robot: Robot, question: ResponseQuestion, named: Mapping[str, Mapping[str, Any]]
) -> QuestionGroup | None:
    """What a question asks of many rows, with poses by name; None where designs are asked one by one."""
    case, name, argument = question.case, question.response.name, question.argument
    modal = name == "frequency" and (not argument or (argument.isascii() and argument.isdigit()))
    direction = name in TOGETHER and argument.rpartition(".")[2] in ("x", "y", "z", "rx", "ry", "rz", "theta")
    loads = LoadCase(case.lock, case.about, wrench=case.wrench)
    usual = ResponseCase(**vars(loads))  # with others an equilibrium is meant, or a motion
    plain = all(getattr(case, word) in (value, None) for word, value in vars(usual).items())
    if not (modal or direction or (name == "mass" and not argument)) or not plain or question.tolerances is not None:
        return None
    if case.wrench and case.about == "undeformed":
        return None
    rows = [named.get("home" if pose is None else pose) if pose is None or isinstance(pose, str) else pose
            for pose in question.poses]  # fmt: skip
    if not all(isinstance(row, Mapping) and row and all(map(_is_number, row.values())) for row in rows):
        return None
    tables = [read_row(robot.tree, row) for row in rows]  # type: ignore[arg-type]
    if len({frozenset(table) for table in tables}) != 1:
        return None
    coordinates = tuple(tables[0])
    poses = np.array([[table[name] for name in coordinates] for table in tables])
    return QuestionGroup(coordinates, poses, loads, {question.text: question})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def fixed_poses(robot: Robot, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the poses of the file by name, but those that follow from a key."""
    poses = dict(robot.description.poses)
    if not poses or not keys:
        return {name: dict(given) for name, given in poses.items()}
    try:
        described = trace_file(robot, keys).description.poses
    except (ParflexError, TypeError, ZeroDivisionError):
        return {}
    varied = {name for name in poses if any(isinstance(x, BatchedNumber) for _, x in leaves(dict(described[name])))}
    return {name: dict(given) for name, given in poses.items() if name not in varied}


def masses_of_designs(robot: Robot, designs: Mapping[str, Array]) -> Array | None:
    """Return the mass of all moving bodies in each design, which needs no pose; None where it is not read together."""
    try:
        numbers = numbers_of_designs(robot, designs)
    except (ParflexError, VariedNumberError):
        return None
    return None if numbers.alone.any() else masses_of(robot, numbers)


def values_in_designs(
    robot: Robot, question: ResponseQuestion, designs: Mapping[str, Array], poses: Mapping[str, Mapping[str, Any]]
) -> Array | None:
    """Return values of a response, designs x poses, by a batch; None where it does not cover them.

    Without designs they are those of the robot as it is; `poses` are known by name.
    """
    if question.response.name == "mass" and not question.argument and designs and question.tolerances is None:
        masses = masses_of_designs(robot, designs)
        return None if masses is None else np.repeat(masses[:, None], len(question.poses), axis=1)
    group = question_group(robot, question, poses)
    return None if group is None else group.values(robot, designs)


class DesignRows:
    """A robot, the keys that change and what is asked; called with values of the keys it answers for each design.

    Where it is asked `often`, as while a slider moves, programs are compiled for however few rows.
    """

    def __init__(
        self, robot: Robot, keys: Sequence[str], questions: Mapping[str, ResponseQuestion], often: bool = False
    ) -> None:
        self.robot, self.keys, self.questions, self.often = robot, tuple(keys), dict(questions), often
        self.groups: list[QuestionGroup] = []
        self.alone: dict[str, ResponseQuestion] = {}
        self.slow = False  # rows are solved one by one after all
        self.why = ""  # they are
        self.first = 0.0  # s that the first design took
        poses = fixed_poses(robot, self.keys)
        for name, question in self.questions.items():
            group = question_group(robot, question, poses)
            if group is None:
                self.alone[name] = question
                continue
            group.questions = {name: question}
            for other in self.groups:
                if other.is_like(group):
                    other.questions[name] = question
                    break
            else:
                self.groups.append(group)

    @property
    def chunk(self) -> int:
        """Designs of a chunk: by what is asked alone, so that answers do not depend on who computes them."""
        if self.alone or self.slow:
            return ALONE
        return max(1, min(DESIGNS, ROWS // max(len(group.poses) for group in self.groups)))

    def check(self) -> None:
        """Refuse what cannot be asked of the robot as it is in its file; poses that it does not reach are no fault.

        How its rows are solved is found on the way.
        """
        nominal = {key: np.array([number_at(self.robot, key)]) for key in self.keys}
        begin = perf_counter()
        found = self(nominal, strict=True)
        self.first = perf_counter() - begin
        if found.status[0] == IMPOSSIBLE:
            redesigned(self.robot, {key: float(values[0]) for key, values in nominal.items()})

    @property
    def reason(self) -> str:
        """Why designs are made one by one."""
        if self.alone:
            return "because of " + ", ".join(f"'{name}'" for name in self.alone)
        return f"because {self.why}" if self.why else ""

    def seconds_left(self, designs: Mapping[str, Array]) -> float:
        """How long these designs will take one process, where they are made one by one; 0 where they are not."""
        count = len(next(iter(designs.values())))
        if not self.alone and not self.slow:
            return 0.0
        if self.first * count > LONG:  # the first design, that of the file, waits for some things and has others
            begin = perf_counter()
            self({key: values[count // 2 : count // 2 + 1] for key, values in designs.items()})
            self.first = perf_counter() - begin
        return self.first * count

    def __call__(self, designs: Mapping[str, Array], strict: bool = False) -> BatchResult:
        """One number for each design and question, state and reason; `strict` refuses questions that make no sense."""
        count = len(next(iter(designs.values())))
        found = BatchResult.empty(dict.fromkeys(self.questions, ()), count)
        alone = dict(self.alone)
        for group in self.groups:
            try:
                self._together(group, designs, found)
            except ParflexError:  # of one of them makes no sense what is asked of all: that one is found alone
                if strict:
                    raise
                alone |= group.questions
        for row in range(count) if alone else ():
            self._one(row, {key: float(designs[key][row]) for key in self.keys}, alone, found, strict)
        for values in found.values.values():
            values[found.status == IMPOSSIBLE] = np.nan
        return found

    def _together(self, group: QuestionGroup, designs: Mapping[str, Array], found: BatchResult) -> None:
        """Rows of all designs and poses."""
        size = len(group.poses)
        batch = group.batch(self.robot, {key: designs[key] for key in self.keys}, self.often)
        answers = batch.all(1)
        if answers.fallbacks > batch.count // 2:
            self.slow, self.why = True, self.why or batch.reason
        warn_of_unstable(answers.reasons, 2)
        warn_of_balanced(answers.balanced, batch.count, 2)
        for name, question in group.questions.items():
            table = answers.values[question.text].reshape(-1, size)
            smallest = question.response.worst == "smallest"
            found.values[name][:] = table.min(axis=1) if smallest else table.max(axis=1)  # NaN where one is
            if self.often and question.response.name == "mass":  # it needs no pose
                masses = masses_of_designs(self.robot, designs)
                found.values[name][:] = found.values[name] if masses is None else masses
        for row in np.flatnonzero(answers.status != OK).tolist():
            design, number = divmod(row, size)
            state, reason = int(answers.status[row]), answers.reasons[row]
            if state != IMPOSSIBLE and not reason.startswith(("home ", "at home ")):
                pairs = zip(group.coordinates, group.poses[number], strict=True)
                reason = f"{reason} ({', '.join(f'{name}={value:.6g}' for name, value in pairs)})"
            _note(found, design, state, reason)

    def _one(
        self,
        row: int,
        settings: dict[str, float],
        asked: Mapping[str, ResponseQuestion],
        found: BatchResult,
        strict: bool,
    ) -> None:
        """A design by loading it."""
        if not np.isfinite(list(settings.values())).all():
            key = next(key for key, value in settings.items() if not np.isfinite(value))
            _note(found, row, IMPOSSIBLE, f"'{key}' is not a finite number in this row")
            return
        try:
            robot = redesigned(self.robot, settings)
        except ParflexError as error:
            _note(found, row, *home_state(error))
            return
        for name, question in asked.items():
            try:
                beyond = self._outside(robot, question)
                if beyond:
                    _note(found, row, OUTSIDE, beyond)
                else:
                    found.values[name][row] = value_of(question.asked(robot).answer)
            except ParflexError as error:
                if strict and not isinstance(error, UnreachableError | SingularError):
                    raise
                _note(found, row, UNREACHABLE if isinstance(error, UnreachableError) else SINGULAR, error.message)

    @staticmethod
    def _outside(robot: Robot, question: ResponseQuestion) -> str:
        """The joint that is outside its limits at a pose of a question; empty where none is."""
        if question.response.name in WITHOUT_LIMITS or not any(link.limits for link in robot.tree.links):
            return ""
        return next(filter(None, (outside_limits(robot, configure(robot, pose).q) for pose in question.poses)), "")


def _note(found: BatchResult, row: int, state: int, reason: str) -> None:
    """Note that a design lacks an answer, and why; the first reason stays, unless the design is impossible."""
    if found.status[row] == OK or (state == IMPOSSIBLE and found.status[row] != IMPOSSIBLE):
        found.status[row], found.reasons[row] = state, reason
