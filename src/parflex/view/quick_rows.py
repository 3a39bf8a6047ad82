"""Responses of a design while a slider moves: cached programs only, and no search for distant poses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from parflex.design.design_rows import DesignAnswers, DesignRows
from parflex.design.evaluation import values_in_designs
from parflex.design.registry import ResponseQuestion
from parflex.errors import ParflexError
from parflex.maps.api import many_frequencies, solve_rows
from parflex.maps.batch import BatchResult
from parflex.maps.closed_rows import OK, UNREACHABLE
from parflex.maps.designed_poses import DesignedPoses
from parflex.maps.frequencies import WORTH
from parflex.maps.kinematics import COMPILE_FROM
from parflex.maps.positions import IMPOSSIBLE, SAID, Positions
from parflex.maps.response_rows import ResponseRows
from parflex.maps.responses import read_responses
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase
from parflex.statics.modes import natural_frequencies

Array = np.ndarray


class SeenPoses(DesignedPoses):
    """Frequencies at poses of one design; rows that programs do not find are left, `lost` are out of reach."""

    def __init__(
        self, robot: Robot, words: Sequence[str], poses: Array, values: Mapping[str, float], modes: int, lock: Any
    ) -> None:
        self.shown = len(poses)
        count = max(self.shown, WORTH)  # so many go by compiled steps, which are quicker than whole matrices of few
        designs = {key: np.full(count, value) for key, value in values.items()}
        super().__init__(robot, words, np.resize(poses, (count, poses.shape[1])), designs, modes, lock, False)
        self.often = True
        self.lost = np.zeros(count, dtype=bool)
        self.whole: Array | None = None  # all positions of the robot at the poses, once they are found
        self.solve(1)

    def _set_up(self, rows: Array) -> bool:
        if not super()._set_up(rows):
            return False
        self.positions.walks = False
        return True

    def _place(self, own: Array) -> Positions:
        found = super()._place(own)
        if self.whole is None:
            self.whole = np.full((len(self.poses), self.robot.tree.nq), np.nan)
        good = found.status == OK
        self.whole[self.rows[own[good]]] = self.geometry.whole(found.q[good][:, : len(self.geometry.kept)])
        self.lost[self.rows[own]] = found.status == UNREACHABLE
        return found

    def _by_matrices(self, chosen: Array, q: Array) -> Array:
        own = self.rows[chosen] < self.shown  # the others are there for their number alone
        return super()._by_matrices(chosen[own], q[own])

    def _one(self, row: int) -> None:
        self.status[row], self.reasons[row] = UNREACHABLE, SAID[UNREACHABLE]


class SeenResponses(ResponseRows):
    """Other responses at poses of one design; what is out of reach is not searched for."""

    at_least = COMPILE_FROM  # the same few rows are asked at every move of a slider

    def _set_up(self) -> None:
        super()._set_up()
        self.positions.walks = False

    def _loaded(self, found: BatchResult, row: int, number: int) -> None:
        if self.model is None or self.numbers is None or self.numbers.alone[self.number[number]]:
            super()._loaded(found, row, number)
            return
        placed = self.positions(self.poses[number : number + 1], self.number[number : number + 1])
        if placed.status[0] == OK:
            super()._loaded(found, row, number)
        else:
            found.mark(row, int(placed.status[0]), SAID[int(placed.status[0])])


class QuickRows(DesignRows):
    """Responses of one design while a slider moves."""

    def __init__(self, robot: Robot, keys: Sequence[str], questions: Mapping[str, ResponseQuestion]) -> None:
        super().__init__(robot, keys, questions)
        try:
            self.most = len(natural_frequencies(robot).frequencies)
        except ParflexError:  # nothing vibrates
            self.most = 0
        self.masses = []  # which need no pose
        for batch in self.batches:
            own = [name for name, one in batch.questions.items() if one.response.name == "mass"]
            self.masses += [(name, batch.questions.pop(name)) for name in own]
        self.batches = [batch for batch in self.batches if batch.questions]

    def __call__(self, designs: Mapping[str, Array], strict: bool = False) -> DesignAnswers:
        """Answers for one design."""
        found = super().__call__(designs, strict)
        for name, question in self.masses:
            values = values_in_designs(self.robot, question, designs)
            if values is not None:
                found.values[name][:] = values[:, 0]
            elif found.status[0] != IMPOSSIBLE:
                settings = {key: float(own[0]) for key, own in designs.items()}
                self._one(0, settings, {name: question}, found, strict)
        return found

    def _frequencies(self, batch: Any, poses: Array, modes: int, designs: Mapping[str, Array]) -> Any:
        values = {key: float(own[0]) for key, own in designs.items()}
        asked = max(modes, min(modes + 1, self.most))  # one more: pairs of symmetric robots are not cut in two
        seen = SeenPoses(self.robot, batch.coordinates, poses, values, asked, batch.lock)
        frequencies, status = seen.frequencies[: seen.shown, :modes], seen.status[: seen.shown]
        reasons = seen.reasons[: seen.shown]
        left = np.flatnonzero((status != OK) & ~seen.lost[: seen.shown])
        if len(left):
            some = {key: own[left] for key, own in designs.items()}
            exact = many_frequencies(
                self.robot, batch.coordinates, poses[left], modes, batch.lock, designs=some, threads=1  # type: ignore[arg-type]
            )  # fmt: skip
            frequencies[left], status[left] = exact.frequencies, exact.status
            for k, row in enumerate(left.tolist()):
                reasons[row] = exact.reasons[k]
        return SimpleNamespace(frequencies=frequencies, status=status, reasons=reasons, fallbacks=0)

    def _responses(self, batch: Any, poses: Array, words: list[str], designs: Mapping[str, Array]) -> Any:
        rows = SeenResponses(
            self.robot,
            batch.coordinates,
            poses,
            read_responses(self.robot, words),
            LoadCase(batch.lock),
            designs,
        )
        return solve_rows(rows, 1)
