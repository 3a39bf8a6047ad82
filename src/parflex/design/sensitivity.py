"""Sensitivities of a response to numbers of the robot file: `sensitivities(...)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.design.design_state import MultipleValue, ResponseCase, slope_of, value_of
from parflex.design.registry import ResponseQuestion, Tolerances, read_question
from parflex.errors import InputError
from parflex.forces.forces import Without, Wrench
from parflex.parameters.design_numbers import constants_of, number_at
from parflex.records import Answer, brief, name_list
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.robot import Robot
from parflex.robotfile.read import value_at
from parflex.statics.linear_model import About
from parflex.statics.load_case import LoadCase, read_load_case
from parflex.statics.loads import Lock, Servo

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivities(Answer):
    """A response and its derivatives by numbers of the robot file.

    Attributes
    ----------
    response : str
        Name and argument of the response.
    value : float
        Its value.
    unit : str
        Its unit.
    multiplicity : int
        Number of modes or poses that have this value at once; above 1 it has directional derivatives alone.
    sensitivities : dict[str, dict[str, float | None]]
        By key: `derivative` (unit per unit of the key) as the key grows, `elasticity` (percent per percent).
    directional : dict[str, list[float]]
        By key, where the multiplicity is above 1: derivatives of all equal values as the key grows, sorted.
    matrices : Array
        Keys x m x m of a multiple value: eigenvalues of the sum of change times matrix are the changes, sorted.
    pose : Any
        The pose at which the value is found, of many the worst.
    active : list[Any]
        Poses at which the value is reached.
    """

    response: str
    value: float
    unit: str
    multiplicity: int
    sensitivities: dict[str, dict[str, float | None]]
    directional: dict[str, list[float]] = field(default_factory=dict)
    matrices: Array = field(default_factory=lambda: np.zeros((0, 1, 1)))
    pose: Any = None
    active: list[Any] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        pose = self.pose if not isinstance(self.pose, Configuration) else None
        return {
            "response": self.response,
            "value": self.value,
            "unit": self.unit,
            "multiplicity": self.multiplicity,
            "sensitivities": self.sensitivities,
            "directional": self.directional,
            "pose": pose.tolist() if isinstance(pose, np.ndarray) else pose,
        }

    @property
    def sorted_keys(self) -> list[str]:
        """Keys by the size of their elasticities, or of their derivatives where the value is zero."""
        word = "elasticity" if self.value else "derivative"
        return sorted(self.sensitivities, key=lambda key: -abs(self.sensitivities[key][word] or 0.0))

    def _told(self) -> str:
        shown = [f"{key} {brief(self.sensitivities[key]['elasticity'])}" for key in self.sorted_keys]
        return f"{self.response} = {brief(self.value)} {self.unit}; percent per percent: {name_list(shown)}"


def sensitivities(
    robot: Robot,
    response: str,
    keys: Sequence[str] | str,
    pose: Pose | None = None,
    *,
    poses: Sequence[Pose] | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    servo: Servo | None = None,
    wrench: Wrench | None = None,
    without: Without = (),
    velocity: Mapping[str, float] | None = None,
    acceleration: Mapping[str, float] | None = None,
    tolerances: Mapping[str, float] | None = None,
    statistic: str = "mean",
    samples: int = 32,
    seed: int = 0,
    load_case: LoadCase | None = None,
) -> Sensitivities:
    """Exact derivatives of a response by numbers of the robot file, at a pose that stays while joints follow.

    Responses are e.g. `frequency:1`, `stiffness:platform.x`, `deflection:platform.z`, `mass`, `effort:JOINT`,
    `stress:BEAM`, `conditioning`. With `poses` the worst of them counts, with `tolerances` the mean or a quantile.

    Parameters
    ----------
    poses : Sequence[Pose], default None
        Many poses in place of one; the worst value counts, with the derivatives at the poses that reach it (m, rad).
    tolerances : Mapping[str, float], default None
        Standard deviations of keys, in their units, for the mean or a quantile over normally distributed robots.
    samples : int, default 32
        Number of robots that are drawn.
    seed : int, default 0
        Start of the random numbers.
    robot, response, keys, pose, lock, about, servo, wrench, without, velocity, acceleration, statistic, load_case
        See `parflex.api.WORDS`.

    Returns
    -------
    Sensitivities
        Value, unit, and by key the derivative and the elasticity; directional derivatives of multiple values.
    """
    loads = read_load_case(load_case, lock=lock, about=about, servo=servo, wrench=wrench, without=without)
    circumstances = ResponseCase(**vars(loads), velocity=velocity, acceleration=acceleration)
    if pose is not None and poses is not None:
        raise InputError("'pose' and 'poses' are given together", key="pose", value=str(pose), hint="keep one of them")
    if tolerances is None and statistic != "mean":
        raise InputError(
            "'statistic' has no effect without 'tolerances'", key="statistic", value=statistic,
            hint="give standard deviations of keys",
        )  # fmt: skip
    spread = None if tolerances is None else Tolerances(dict(tolerances), statistic, samples, seed)
    question = read_question(response, [pose] if poses is None else poses, circumstances, spread)
    return sensitivities_of(robot, question, checked_keys(robot, keys))


def checked_keys(robot: Robot, keys: Any) -> list[str]:
    """Keys of the robot file that have numbers, each once; in one text they are separated by commas."""
    if not isinstance(keys, str | Iterable):
        raise InputError(
            f"'keys' are names of numbers of the robot file, not {type(keys).__name__}", key="keys", value=repr(keys),
            hint="give e.g. ['constants.bar']",
        )  # fmt: skip
    names = [word.strip() for word in keys.split(",") if word.strip()] if isinstance(keys, str) else list(keys)
    if not names:
        raise InputError("no key is given", key="keys", hint="name numbers of the robot file, e.g. 'constants.bar'")
    for key in names:
        if not isinstance(key, str):
            raise InputError("a key of the robot file is a text", key="keys", value=repr(key), hint="'constants.bar'")
        number_at(robot, key, "keys")
    twice = [key for k, key in enumerate(names) if key in names[:k]]
    if twice:
        raise InputError(f"'{twice[0]}' is named twice", key="keys", value=twice[0], hint="name it once")
    for key in names:
        assert robot.written is not None
        derived = {f"constants.{name}" for name in constants_of(robot, value_at(robot.written.table, key, robot.file))}
        if derived & set(names):  # the number would be changed twice
            text = f"'{key}' follows from '{min(derived & set(names))}', which is named too"
            raise InputError(text, key="keys", value=key, hint="name one of them")
    return names


def sensitivities_of(robot: Robot, question: ResponseQuestion, keys: Sequence[str]) -> Sensitivities:
    """The answer to a question."""
    worst = question.asked(robot, keys)
    answer, count = worst.answer, len(keys)
    value, slope = value_of(answer), slope_of(answer, count)
    table: dict[str, dict[str, float | None]] = {}
    for k, key in enumerate(keys):
        share = slope[k] * number_at(robot, key, "keys") / value if value else None
        table[key] = {"derivative": float(slope[k]), "elasticity": None if share is None else float(share)}
    several = isinstance(answer, MultipleValue)
    return Sensitivities(
        question.text,
        value,
        question.response.unit_of(robot, question.argument),
        answer.multiplicity if several else 1,
        table,
        {key: answer.directional[k].tolist() for k, key in enumerate(keys)} if several else {},
        answer.matrices if several else slope.reshape(count, 1, 1),
        worst.pose,
        worst.active,
    )
