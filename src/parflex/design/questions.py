"""What is asked of a design: a response at a pose, its worst value over many, or its spread over tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.design.answers import joined, slope_of, value_of
from parflex.design.design_state import Circumstances, DesignState, SensitiveDesign, checked_number
from parflex.design.registry import Response, read_response
from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.configuration import Pose
from parflex.robot.load import with_settings
from parflex.robot.robot import Robot
from parflex.spatial.dual import Sensitive

Array = np.ndarray
MOST_SAMPLES = 1_000_000
MANY = 6  # poses from which programs pay
NEARLY = 1e-6  # of the worst value: poses that programs of maps find so near are asked once more
TOGETHER = 1e-9  # of the worst value: other poses that come as near are active too


@dataclass(frozen=True, eq=False, repr=False)
class Tolerances(Record):
    """Manufacturing: deviations of keys, normally distributed, and what is asked of the spread."""

    deviations: Mapping[str, float]  # standard deviations, in the units of the keys
    statistic: str = "mean"  # or a quantile from 0 to 1 as text
    samples: int = 32
    seed: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class DesignAnswer(Record):
    """The answer to a question: with slopes by keys, and the pose at which it was found."""

    answer: Any
    pose: Any = None
    active: list[Any] = field(default_factory=list)  # poses at which the value is the worst one


@dataclass(frozen=True, eq=False, repr=False)
class ResponseQuestion(Record):
    """A response with its argument, the poses at which it is asked, circumstances, and tolerances."""

    response: Response
    argument: str = ""
    poses: tuple[Pose | None, ...] = (None,)
    circumstances: Circumstances = field(default_factory=Circumstances)
    tolerances: Tolerances | None = None

    @property
    def text(self) -> str:
        """Name and argument."""
        return f"{self.response.name}:{self.argument}" if self.argument else self.response.name

    def asked(self, robot: Robot, keys: Sequence[str] = ()) -> DesignAnswer:
        """The answer of a robot, with slopes by the keys."""
        if self.tolerances is not None:
            return self._spread(robot, keys, self.tolerances)
        if len(self.poses) == 1:
            return DesignAnswer(
                self.at(robot, self.poses[0], SensitiveDesign(robot, keys)), self.poses[0], [self.poses[0]]
            )
        return self._worst(robot, keys)

    def at(self, robot: Robot, pose: Pose | None, design: SensitiveDesign) -> Any:
        """The answer at one pose."""
        return self.response.function(DesignState(robot, pose, design.keys, self.circumstances, design), self.argument)

    def _worst(self, robot: Robot, keys: Sequence[str]) -> DesignAnswer:
        """The worst over all poses; slopes are computed at those where it is reached, theory (64)."""
        design = SensitiveDesign(robot, keys, often=len(self.poses) >= MANY)
        sign = 1.0 if self.response.worst == "smallest" else -1.0
        values = np.full(len(self.poses), sign * np.inf)
        known = self._together(robot)
        asked, first = np.arange(len(values)), SensitiveDesign(robot, ())
        if known is not None and np.isfinite(known).all():  # of those near the worst the last digits count
            least = float(np.min(sign * known))
            asked, first = np.flatnonzero(sign * known[0] <= least + NEARLY * abs(least)), design
        answers: dict[int, Any] = {k: self.at(robot, self.poses[k], first) for k in asked.tolist()}
        for k, answer in answers.items():
            values[k] = value_of(answer)
        worst = float(np.min(sign * values))
        active = np.flatnonzero(sign * values <= worst + TOGETHER * abs(worst)).tolist()
        if first is not design and keys:
            answers = {k: self.at(robot, self.poses[k], design) for k in active}
        poses = [self.poses[k] for k in active]
        if not keys:
            return DesignAnswer(float(values[active[0]]), poses[0], poses)
        return DesignAnswer(joined([answers[k] for k in active], len(keys), sign > 0), poses[0], poses)

    def _together(self, robot: Robot) -> Array | None:
        """Frequencies at many poses by programs of maps, which bring the compiler; else None."""
        if self.response.name != "frequency" or len(self.poses) < MANY:
            return None
        from parflex.design.search.batched_values import values_in_designs  # which stands on this module

        return values_in_designs(robot, self, {})

    def _masses_in(
        self, robot: Robot, names: Sequence[str], nominal: Mapping[str, float], deviations: Mapping[str, float],
        draws: Array,
    ) -> Array | None:  # fmt: skip
        """Masses of all robots that are drawn, which need no pose, at once; None of other responses."""
        if self.response.name != "mass" or self.argument or not names:
            return None
        from parflex.design.search.batched_values import values_in_designs  # which stands on this module

        columns = {key: nominal[key] + deviations[key] * draws[:, k] for k, key in enumerate(names)}
        found = values_in_designs(robot, self, columns)
        return found[:, 0] if found is not None and np.isfinite(found).all() else None

    def _spread(self, robot: Robot, keys: Sequence[str], own: Tolerances) -> DesignAnswer:
        """Mean or quantile over robots whose keys deviate; each robot has its own slopes, which add up exactly."""
        rng = np.random.default_rng(own.seed)
        names = list(own.deviations)
        nominal = {key: checked_number(robot, key, "tolerances") for key in names}
        draws = rng.standard_normal((own.samples, len(names)))
        plain = replace(self, tolerances=None)
        together = None if keys else plain._masses_in(robot, names, nominal, own.deviations, draws)
        if together is not None:
            value = float(spread_weights(together, own.statistic) @ together)
            return DesignAnswer(value, self.poses[0], list(self.poses))
        values, changes = np.zeros(own.samples), np.zeros((own.samples, len(keys)))
        for row, draw in enumerate(draws):
            settings = {key: nominal[key] + own.deviations[key] * x for key, x in zip(names, draw, strict=True)}
            answer = plain.asked(with_settings(robot, settings), keys).answer
            values[row], changes[row] = value_of(answer), slope_of(answer, len(keys))
        weights = spread_weights(values, own.statistic)
        value = float(weights @ values)
        return DesignAnswer(Sensitive(value, weights @ changes) if keys else value, self.poses[0], list(self.poses))


def spread_weights(values: Array, statistic: str) -> Array:
    """Weights of samples in a mean, or in a quantile between the two samples next to it."""
    count = len(values)
    if statistic == "mean":
        return np.full(count, 1 / count)
    try:
        share = float(statistic)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(
            f"'{statistic}' is not a statistic",
            key="statistic",
            value=statistic,
            hint="give 'mean' or a quantile as 0.05",
        )
    order, at = np.argsort(values), share * (count - 1)
    low = min(int(at), count - 2) if count > 1 else 0
    weights = np.zeros(count)
    weights[order[low]] = 1 - (at - low)
    if count > 1:
        weights[order[low + 1]] = at - low
    return weights


def checked_tolerances(own: Tolerances) -> Tolerances:
    """Tolerances that can be drawn; what cannot is refused."""
    if not 1 <= own.samples <= MOST_SAMPLES:
        raise InputError(
            f"{own.samples} robots cannot be drawn", key="samples", value=own.samples, hint=f"give 1 to {MOST_SAMPLES}"
        )
    if own.seed < 0:
        raise InputError("a seed is not negative", key="seed", value=own.seed, hint="give 0 or more")
    for key, deviation in own.deviations.items():
        if not 0 <= deviation < np.inf:
            raise InputError(
                f"the standard deviation {deviation:g} of '{key}' is negative or not finite",
                key=f"tolerances.{key}", value=float(deviation), hint="give 0 or more, in the unit of the key",
            )  # fmt: skip
    spread_weights(np.zeros(own.samples), own.statistic)
    return own


def read_question(
    response: str,
    poses: Sequence[Any] | None = None,
    circumstances: Circumstances | None = None,
    tolerances: Tolerances | None = None,
) -> ResponseQuestion:
    """A question from its text."""
    found, argument = read_response(response)
    given = (None,) if poses is None else tuple(poses)
    if not given:
        raise InputError("no pose is given", key="poses", hint="give one or more")
    own = None if tolerances is None else checked_tolerances(tolerances)
    return ResponseQuestion(found, argument, given, circumstances or Circumstances(), own)
