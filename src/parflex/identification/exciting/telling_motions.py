"""Motions that would tell what a record does not: simple ones of single motors first, then of two, then of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.base_columns import AMPLITUDE, BaseColumns
from parflex.identification.estimates.least_squares import EffortRows
from parflex.identification.regressors import Regressor

Array = np.ndarray
CLEAR = 1e-2  # of a column, what others must leave of it, so that a motion tells it
STATES = 12  # of each motion
SLOW = 1e-3  # rad/s, or typical lengths: friction has its sign, and nothing else is felt of the rate
FAST, HARD = 2.0, 6.0  # rates and accelerations, likewise


class TellingMotions:
    """Which motion, beside a record, tells a base parameter."""

    def __init__(self, regressor: Regressor, base: BaseColumns, rows: EffortRows, told: Sequence[int]) -> None:
        self.regressor, self.base, self.told = regressor, base, list(told)
        flat = (rows.W * rows.mask[:, :, None]).reshape(-1, rows.W.shape[2])
        usual = np.maximum(base.usual[base.kept], 1e-300)
        # rows of the record weigh as much as those of a motion
        self.record = flat / usual / np.sqrt(max(len(flat) / (STATES * rows.y.shape[1]), 1.0))
        self.usual = usual
        self.motors = list(regressor.robot.actuated_names)
        self.rows = cache(self._rows)

    def of(self, place: int) -> str:
        """The simplest motion that tells a base parameter, in words."""
        for words, motors, kind in self._candidates(place):
            found = self.rows(motors, kind)
            if found is not None and self._tells(found, place):
                return words
        return "move all motors at the same time, farther, at several speeds and accelerations"

    def _candidates(self, place: int) -> Iterator[tuple[str, tuple[int, ...], str]]:
        link = self.regressor.unknowns[self.base.kept[place]].link
        tree, motors = self.regressor.robot.tree, self.regressor.robot.actuated
        order = sorted(range(len(motors)), key=lambda k: tree.link_of_rate[motors[k]] != link)
        for k in order:
            name = self.motors[k]
            yield f"move '{name}' slowly to and fro", (k,), "slow"
            yield f"move '{name}' to and fro at several speeds", (k,), "fast"
            yield f"accelerate and brake '{name}' in several places", (k,), "hard"
        for one, two in combinations(order, 2):
            yield f"move '{self.motors[one]}' and '{self.motors[two]}' at the same time", (one, two), "all"

    def _rows(self, chosen: tuple[int, ...], kind: str) -> Array | None:
        """Rows of a motion of some motors about home, in usual units; None where the robot cannot go there."""
        robot, rng = self.regressor.robot, np.random.default_rng(0)
        units = robot.gearing.units[list(robot.actuated)]
        shape = (STATES, len(units))
        position = np.tile(robot.home[self.regressor.motor_q], (STATES, 1))
        rate, acceleration = np.zeros(shape), np.zeros(shape)
        way = np.linspace(-1.0, 1.0, STATES)
        for n, k in enumerate(chosen):
            position[:, k] += AMPLITUDE * units[k] * np.roll(way, 3 * n)
            signs = np.resize([1.0, -1.0], STATES) if kind != "all" else rng.choice([1.0, -1.0], STATES)
            speeds = rng.uniform(0.2, 1.0, STATES) * FAST if kind in ("fast", "all") else np.full(STATES, SLOW)
            rate[:, k] = signs * speeds * units[k]
            if kind in ("hard", "all"):
                acceleration[:, k] = rng.uniform(-HARD, HARD, STATES) * units[k]
        try:
            moving = self.regressor.moving(position, rate, acceleration, self.regressor.first(position[0]))
        except ParflexError:
            return None
        W, _ = self.regressor.of(moving, self.base.kept)
        return W.reshape(-1, W.shape[2]) / self.usual

    def _tells(self, more: Array, place: int) -> bool:
        both = np.concatenate([self.record, more])
        column, others = both[:, place], both[:, self.told]
        size = np.linalg.norm(column)
        if not size > CLEAR:
            return False
        scale = np.maximum(np.linalg.norm(others, axis=0), 1e-300)
        left = column - (others / scale) @ np.linalg.lstsq(others / scale, column, rcond=1e-10)[0]
        return bool(np.linalg.norm(left) > CLEAR * size)
