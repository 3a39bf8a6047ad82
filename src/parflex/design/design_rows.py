"""Responses of many designs: modes, stiffness and mass in a batch over designs and poses, others one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import Any

import numpy as np

from parflex.design.design_state import ResponseCase
from parflex.design.registry import ResponseQuestion
from parflex.design.response_value import value_of
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.maps.api import many_frequencies, many_responses
from parflex.maps.closed_rows import OK, SINGULAR, UNREACHABLE
from parflex.maps.positions import IMPOSSIBLE, home_state
from parflex.parameters.design_numbers import design_numbers, leaves, number_at
from parflex.parameters.robot_file import redesigned
from parflex.records import Record, count_of
from parflex.robot.coordinate_names import read_row
from parflex.robot.robot import Robot
from parflex.spatial.batched import BatchedNumber, VariedNumberError
from parflex.tree.tree import Tree

Array = np.ndarray
TOGETHER = ("stiffness", "compliance", "deflection")  # responses that `many_responses` answers alike, and 'mass'
LONG = 60.0  # s: what takes longer is told before
ROWS, DESIGNS, ALONE = 50_000, 2_000, 4  # of a chunk: poses of all designs, designs, designs that are made one by one


@dataclass(eq=False, repr=False)
class DesignAnswers(Record):
    """Responses by name, one number for each design (NaN where there is none), its state and its reason."""

    values: dict[str, Array]
    status: Array
    reasons: list[str]

    def mark(self, row: int, state: int, reason: str) -> None:
        """Say that a design lacks an answer, and why; the first reason stays, unless the design is impossible."""
        if self.status[row] == OK or (state == IMPOSSIBLE and self.status[row] != IMPOSSIBLE):
            self.status[row], self.reasons[row] = state, reason

    def _told(self) -> str:
        return f"{count_of(len(self.status), 'design')}, {int((self.status == OK).sum())} with all answers"


@dataclass(eq=False, repr=False)
class _Batch(Record):
    """Questions that many designs and poses are asked together."""

    coordinates: tuple[str, ...]
    poses: Array
    lock: Any
    questions: dict[str, ResponseQuestion] = field(default_factory=dict)


class DesignRows:
    """A robot, the keys that change and what is asked; called with values of the keys it answers for each design."""

    def __init__(self, robot: Robot, keys: Sequence[str], questions: Mapping[str, ResponseQuestion]) -> None:
        self.robot, self.keys, self.questions = robot, tuple(keys), dict(questions)
        self.batches: list[_Batch] = []
        self.alone: dict[str, ResponseQuestion] = {}
        self.slow = False  # rows are solved one by one after all
        self.why = ""  # they are
        self.first = 0.0  # s that the first design took
        poses = self._known_poses()
        for name, question in self.questions.items():
            batch = _batch(robot.tree, question, poses)
            if batch is None:
                self.alone[name] = question
                continue
            for other in self.batches:
                if _alike(batch, other):
                    other.questions[name] = question
                    break
            else:
                batch.questions[name] = question
                self.batches.append(batch)

    @property
    def chunk(self) -> int:
        """Designs of a chunk: by what is asked alone, so that answers do not depend on who computes them."""
        if self.alone or self.slow:
            return ALONE
        return max(1, min(DESIGNS, ROWS // max(len(batch.poses) for batch in self.batches)))

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

    def __call__(self, designs: Mapping[str, Array], strict: bool = False) -> DesignAnswers:
        """Answers for designs; `strict` refuses questions that make no sense."""
        count = len(next(iter(designs.values())))
        empty = {name: np.full(count, np.nan) for name in self.questions}
        found = DesignAnswers(empty, np.full(count, OK, dtype=np.int8), [""] * count)
        alone = dict(self.alone)
        for batch in self.batches:
            try:
                self._together(batch, designs, found)
            except ParflexError:  # of one of them makes no sense what is asked of all: that one is found alone
                if strict:
                    raise
                alone |= batch.questions
        for row in range(count) if alone else ():
            self._one(row, {key: float(designs[key][row]) for key in self.keys}, alone, found, strict)
        for values in found.values.values():
            values[found.status == IMPOSSIBLE] = np.nan
        return found

    def _known_poses(self) -> dict[str, dict[str, Any]]:
        """Poses of the file by name, but those that follow from a key."""
        poses = dict(self.robot.description.poses)
        if not poses:
            return {}
        try:
            own = {key: np.array([number_at(self.robot, key)]) for key in self.keys}
            described = design_numbers(self.robot, own).description.poses
        except (ParflexError, VariedNumberError, TypeError):
            return {}
        varied = {name for name in poses if any(isinstance(x, BatchedNumber) for _, x in leaves(dict(described[name])))}
        return {name: dict(given) for name, given in poses.items() if name not in varied}

    # -- together --------------------------------------------------------------------------------------

    def _frequencies(self, batch: _Batch, poses: Array, modes: int, designs: Mapping[str, Array]) -> Any:
        """Frequencies of rows, each with its pose and design."""
        return many_frequencies(self.robot, batch.coordinates, poses, modes, batch.lock, designs=designs, threads=1)  # type: ignore[arg-type]

    def _responses(self, batch: _Batch, poses: Array, words: list[str], designs: Mapping[str, Array]) -> Any:
        """Other responses of rows."""
        return many_responses(self.robot, batch.coordinates, poses, words, batch.lock, designs, threads=1)  # type: ignore[arg-type]

    def _together(self, batch: _Batch, designs: Mapping[str, Array], found: DesignAnswers) -> None:
        """Rows of all designs and poses."""
        count, size = len(found.status), len(batch.poses)
        poses = np.tile(batch.poses, (count, 1))
        wide: dict[str, Any] = {key: np.repeat(np.asarray(designs[key], dtype=float), size) for key in self.keys}
        modes = {name: int(q.argument or 1) for name, q in batch.questions.items() if q.response.name == "frequency"}
        values: dict[str, Array] = {}
        states: list[tuple[Array, Sequence[str]]] = []
        if modes:
            many = self._frequencies(batch, poses, max(modes.values()), wide)
            values |= {name: many.frequencies[:, k - 1] for name, k in modes.items()}
            states.append((many.status, many.reasons))
            self._note_slow(many, len(poses))
        texts = {name: q.text for name, q in batch.questions.items() if name not in modes}
        if texts:
            words = list(dict.fromkeys(texts.values()))
            others = self._responses(batch, poses, words, wide)
            values |= {name: others.values[text] for name, text in texts.items()}
            states.append((others.status, others.reasons))
            self._note_slow(others, len(poses))
        for name, own in values.items():
            table = own.reshape(count, size)
            smallest = batch.questions[name].response.worst == "smallest"
            found.values[name][:] = table.min(axis=1) if smallest else table.max(axis=1)  # NaN where one is
        for status, reasons in states:
            for row in np.flatnonzero(status != OK).tolist():
                self._mark(found, batch, row, size, int(status[row]), reasons[row])

    def _note_slow(self, answers: Any, count: int) -> None:
        """Whether most rows were solved one by one, and why."""
        if answers.fallbacks > count // 2:
            self.slow, self.why = True, self.why or getattr(answers, "reason", "")

    @staticmethod
    def _mark(found: DesignAnswers, batch: _Batch, row: int, size: int, state: int, reason: str) -> None:
        design, number = divmod(row, size)
        if state != IMPOSSIBLE and not reason.startswith(("home ", "at home ")):
            pairs = zip(batch.coordinates, batch.poses[number], strict=True)
            reason = f"{reason} ({', '.join(f'{name}={value:.6g}' for name, value in pairs)})"
        found.mark(design, state, reason)

    # -- one by one ------------------------------------------------------------------------------------

    def _one(
        self,
        row: int,
        settings: dict[str, float],
        asked: Mapping[str, ResponseQuestion],
        found: DesignAnswers,
        strict: bool,
    ) -> None:
        """A design by loading it."""
        if not np.isfinite(list(settings.values())).all():
            key = next(key for key, value in settings.items() if not np.isfinite(value))
            found.mark(row, IMPOSSIBLE, f"'{key}' is not a finite number in this row")
            return
        try:
            robot = redesigned(self.robot, settings)
        except ParflexError as error:
            found.mark(row, *home_state(error))
            return
        for name, question in asked.items():
            try:
                found.values[name][row] = value_of(question.asked(robot).answer)
            except UnreachableError as error:
                found.mark(row, UNREACHABLE, error.message)
            except SingularError as error:
                found.mark(row, SINGULAR, error.message)
            except ParflexError as error:
                if strict:
                    raise
                found.mark(row, SINGULAR, error.message)


def _batch(tree: Tree, question: ResponseQuestion, named: Mapping[str, Mapping[str, Any]]) -> _Batch | None:
    """What a question asks of many rows; None where designs are asked one by one."""
    given, name, argument = question.case, question.response.name, question.argument
    modal = name == "frequency" and (not argument or (argument.isascii() and argument.isdigit()))
    direction = name in TOGETHER and argument.rpartition(".")[2] in ("x", "y", "z", "rx", "ry", "rz", "theta")
    usual = ResponseCase()  # with others an equilibrium is meant, or a motion
    words = [one.name for one in fields(given) if one.name != "lock"]
    plain = all(getattr(given, word) in (getattr(usual, word), None) for word in words) and question.tolerances is None
    if not (modal or direction or (name == "mass" and not argument)) or not plain:
        return None
    rows = [named.get(pose) if isinstance(pose, str) else named.get("home") if pose is None else pose
            for pose in question.poses]  # fmt: skip
    if not all(isinstance(row, Mapping) and row and all(_number(x) for x in row.values()) for row in rows):
        return None
    tables = [read_row(tree, row) for row in rows]  # type: ignore[arg-type]
    if len({frozenset(table) for table in tables}) != 1:
        return None
    coordinates = tuple(tables[0])
    poses = np.array([[table[name] for name in coordinates] for table in tables])
    return _Batch(coordinates, poses, given.lock)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _alike(one: _Batch, other: _Batch) -> bool:
    same = one.coordinates == other.coordinates and np.array_equal(one.poses, other.poses)
    return same and one.lock == other.lock
