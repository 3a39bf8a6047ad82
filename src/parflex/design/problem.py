"""The file of an optimisation, its designs, and their responses: worst values over modes and poses, and batches.

A batch gives modes, stiffness and masses at many poses in many designs. Other responses are computed pose by pose.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from parflex.design.design_rows import fixed_poses, values_in_designs
from parflex.design.design_state import DesignState, MultipleValue, ResponseCase, SensitiveDesign, slope_of, value_of
from parflex.design.registry import ResponseQuestion, Tolerances, checked_tolerances, read_question
from parflex.design.statics_responses import HeldState
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, ParflexWarning
from parflex.io import read_bytes
from parflex.parameters.design_numbers import number_at
from parflex.parameters.robot_file import redesigned
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robotfile.read import catalogue_names, parse_toml, read_tables, resolve_file
from parflex.robotfile.values import Number, Table, Text, value_error

MAX_POSES = 10_000
Count = Annotated[int, Field(strict=True)]  # text is not a number of starts
WORDS = ("lower", "upper", "start", "choices")  # of a variable
Array = np.ndarray
OUTSIDE = 1e-9  # of a number: what is farther from its bounds than by rounding
NEAR = 0.15  # of the worst value: poses and modes that come so near may become the worst within a step
BEYOND = 3  # modes above the one that is asked for


class VariableTable(Table):
    """A number of the robot file that may change: between bounds, or one of a list."""

    lower: Number | None = None
    upper: Number | None = None
    start: Number | None = None
    choices: tuple[Number, ...] = ()

    @model_validator(mode="after")
    def _possible(self) -> VariableTable:
        if self.choices and (self.lower is not None or self.upper is not None):
            raise value_error(
                "bounds and choices are given together", "keep one of them", "choices", list(self.choices)
            )
        if "choices" in self.model_fields_set and len(set(self.choices)) < 2:
            what = "one choice leaves nothing to choose" if self.choices else "the list of choices is empty"
            raise value_error(what, "list two numbers or more, or give bounds", "choices", list(self.choices))
        if not self.choices and (self.lower is None or self.upper is None):
            raise value_error("a variable needs 'lower' and 'upper', or 'choices'", "give both bounds", "lower")
        low, high = self.bounds
        if not low < high:
            raise value_error(
                f"nothing lies between {low:g} and {high:g}", "give a lower and a higher bound", "upper", high
            )
        if self.start is not None and not low <= self.start <= high:
            raise value_error(
                f"the start {self.start:g} is outside its bounds", f"give one from {low:g} to {high:g}", "start",
                self.start,
            )  # fmt: skip
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value."""
        if self.choices:
            return min(self.choices), max(self.choices)
        assert self.lower is not None and self.upper is not None
        return self.lower, self.upper


class ResponseTable(Table):
    """A response under a load case, at a pose, at the worst of many, over a region, over tolerances."""

    response: Text
    pose: Any = None
    poses: list[Any] = []  # noqa: RUF012 - pydantic copies defaults
    region: dict[str, Any] = {}  # noqa: RUF012
    lock: Any = "actuators"
    about: Literal["undeformed", "equilibrium"] | None = None
    servo: Any = None
    wrench: dict[str, Any] | None = None
    without: list[str] = []  # noqa: RUF012
    velocity: dict[str, Number] | None = None
    acceleration: dict[str, Number] | None = None
    tolerances: dict[str, Number] | None = None
    statistic: Text = "mean"
    samples: Count = 32
    seed: Count = 0

    @model_validator(mode="after")
    def _consistent_options(self) -> ResponseTable:
        if "pose" in self.model_fields_set and (self.poses or self.region):
            other = "poses" if self.poses else "region"
            raise value_error(f"'pose' and '{other}' are given together", "keep one of them", "pose", self.pose)
        spread = {"statistic", "samples", "seed"} & self.model_fields_set
        if spread and self.tolerances is None:
            word = min(spread)
            raise value_error(
                f"'{word}' has no effect without 'tolerances'", "give standard deviations of keys", word,
                getattr(self, word),
            )  # fmt: skip
        if self.tolerances is not None:
            try:
                checked_tolerances(Tolerances(self.tolerances, self.statistic, self.samples, self.seed))
            except InputError as error:
                raise value_error(error.message, error.hint or "", error.key or "", error.value) from None
        return self

    def question(self) -> ResponseQuestion:
        """What is asked."""
        words = ("lock", "about", "servo", "wrench", "without", "velocity", "acceleration")
        circumstances = ResponseCase(**{word: getattr(self, word) for word in words} | {"without": tuple(self.without)})
        spread = None
        if self.tolerances is not None:
            spread = Tolerances(dict(self.tolerances), self.statistic, self.samples, self.seed)
        poses = [*self.poses, *region_poses(self.region)] or [self.pose]
        return read_question(self.response, poses, circumstances, spread)


class ObjectiveTable(Table):
    """What is made as large or as small as it can be."""

    maximise: Text | None = None
    minimise: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> ObjectiveTable:
        if (self.maximise is None) == (self.minimise is None):
            raise value_error("an objective is either 'maximise' or 'minimise'", "name one response", "maximise")
        return self


class ConstraintTable(Table):
    """A response that stays above a lower or below an upper limit."""

    response: Text
    lower: Number | None = None
    upper: Number | None = None

    @model_validator(mode="after")
    def _limited(self) -> ConstraintTable:
        if self.lower is None and self.upper is None:
            raise value_error("a constraint needs 'lower' or 'upper'", "give a limit", "upper")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise value_error(
                f"nothing lies between {self.lower:g} and {self.upper:g}", "swap them", "upper", self.upper
            )
        return self


class ParetoTable(ObjectiveTable):
    """A second objective, and how the front of both is found."""

    method: Literal["gradients", "pymoo"] = "gradients"
    points: Count = 9
    population: Count = 40
    generations: Count = 60

    @model_validator(mode="after")
    def _enough(self) -> ParetoTable:
        _within("points", self.points, 3, 1000)
        _within("population", self.population, 4, 10_000)
        _within("generations", self.generations, 1, 10_000)
        return self


class ProblemFile(Table):
    """An optimisation."""

    robot: Text
    variables: dict[str, VariableTable]
    responses: dict[str, ResponseTable]
    objective: ObjectiveTable
    constraint: list[ConstraintTable] = []  # noqa: RUF012
    pareto: ParetoTable | None = None
    starts: Count = 1
    seed: Count = 0
    steps: Count = 60
    tolerance: Number = 1e-6
    samples: Any = None  # of sweeps, which read the same file

    @model_validator(mode="after")
    def _known(self) -> ProblemFile:
        if not self.variables:
            raise value_error("there are no variables", "name numbers of the robot file", "variables")
        _within("starts", self.starts, 1, 1000)
        _within("steps", self.steps, 1, 10_000)
        _within("seed", self.seed, 0, 2**63)
        if not 0 < self.tolerance < 1:
            raise value_error(
                f"'tolerance' is {self.tolerance:g}, not between 0 and 1", "give e.g. 1e-6", "tolerance", self.tolerance
            )
        both = {"objective": self.objective} | ({"pareto": self.pareto} if self.pareto else {})
        references = {
            f"{table_name}.{'maximise' if entry.maximise else 'minimise'}": entry.maximise or entry.minimise or ""
            for table_name, entry in both.items()
        }
        names = list(references.values())
        references |= {f"constraint.{k}.response": entry.response for k, entry in enumerate(self.constraint)}
        for key, name in references.items():
            if name not in self.responses:
                raise value_error(
                    f"there is no response '{name}'", f"choose from {', '.join(self.responses)}", key, name
                )
        if len(names) == 2 and names[0] == names[1]:
            raise value_error("both objectives are one response", "name another one", "pareto", names[1])
        return self


def _within(key: str, value: int, least: int, most: int) -> None:
    """Refuse a count that is out of range, by its key."""
    if not least <= value <= most:
        raise value_error(f"'{key}' is {value}, not from {least} to {most}", f"give {least} or more", key, value)


def region_poses(region: dict[str, Any]) -> list[dict[str, float]]:
    """Poses of a region: {x = [from, to, count], rz = 0.2}."""
    axes: list[list[tuple[str, float]]] = []
    for key, values in region.items():
        numbers = values if isinstance(values, list) else [values, values, 1]
        plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers)
        if not plain or len(numbers) != 3 or numbers[2] != int(numbers[2]) or not 1 <= numbers[2] <= MAX_POSES:
            raise InputError(
                f"'{key}' of the region is not a range", key="region", value=key, hint="write x = [from, to, count]"
            )
        axes.append([(key, float(x)) for x in np.linspace(float(numbers[0]), float(numbers[1]), int(numbers[2]))])
    count = int(np.prod([len(axis) for axis in axes])) if axes else 0
    if count > MAX_POSES:
        raise InputError(f"the region has {count} poses", key="region", value=count, hint=f"up to {MAX_POSES}")
    return [dict(entries) for entries in product(*axes)] if axes else []


def read_problem(path: str | Path) -> ProblemFile:
    """The optimisation of a file."""
    return read_tables(ProblemFile, design_tables(path), str(path), "docs/design.md")


def design_tables(path: str | Path) -> dict[str, Any]:
    """Tables of a file of designs; keys of variables may be written as nested tables or in quotes."""
    table = parse_toml(read_bytes(path, "FILE"), str(path))
    if isinstance(table.get("variables"), dict):
        table["variables"] = dict(flat_variables(table["variables"]))
    return table


def flat_variables(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Tables of variables by dotted path."""
    variables: list[tuple[str, Any]] = []
    for key, value in table.items():
        path = f"{prefix}.{key}" if prefix else key
        inner = isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values())
        variables += flat_variables(value, path) if inner else [(path, value)]
    return variables


def robot_source(problem: ProblemFile, path: str | Path) -> str:
    """Return the robot of the catalogue, or its file, as the file of the problem names it."""
    return problem.robot if problem.robot in catalogue_names() else resolve_file(problem.robot, path, "robot")


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
