"""Optimisation of a robot from a file: several starts, stock sizes by rounding, a robot file that extends the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.design.answers import value_of
from parflex.design.descent import Descent, Designs, Term, descend
from parflex.design.design_state import checked_number
from parflex.design.problem_file import ProblemFile, read_problem, robot_source
from parflex.design.robot_difference import extending_text
from parflex.design.worst_pieces import Piece, pieces_of
from parflex.errors import ParflexError
from parflex.models.loading import load, redesigned
from parflex.models.robot import Robot
from parflex.records import Record, brief, listed
from parflex.whole_files import whole_file

Array = np.ndarray
MET = 1e-6  # of a limit: missed by less it is met
ACTIVE = 1e-4  # of a limit


@dataclass(frozen=True, eq=False, repr=False)
class Optimised(Record):
    """The best design that was found.

    Attributes
    ----------
    status : str
        'optimal', 'steps' where they were used up, or 'infeasible' where a limit cannot be met.
    objective : float
        Value of the objective (unit of its response).
    variables : dict[str, dict[str, float]]
        By key: `start`, `value`, `lower`, `upper`, in the units of the file.
    responses : dict[str, dict[str, Any]]
        By name: `response`, `before`, `after`, `unit`.
    constraints : list[dict[str, Any]]
        Name, `value`, `limit`, `active`, and `multiplier`: what the objective gains per unit of the limit.
    message : str
        A sentence on the status.
    evaluations : int
        Number of designs that were computed.
    robot : Robot
        The robot found.
    before : Robot
        The robot at the start.
    robot_file : str | None
        File of the robot found, which extends the first.
    starts : list[float]
        What each start came to: the objective, negative where it is maximised, with missed limits, in units of the
        objective before (dimensionless).
    """

    status: str
    objective: float
    variables: dict[str, dict[str, float]]
    responses: dict[str, dict[str, Any]]
    constraints: list[dict[str, Any]]
    message: str
    evaluations: int
    robot: Robot
    before: Robot
    robot_file: str | None = None
    starts: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("status", "objective", "variables", "responses", "constraints", "message", "evaluations", "robot_file")
        return {word: getattr(self, word) for word in words}

    def _told(self) -> str:
        changed = [f"{key} {brief(one['value'])}" for key, one in self.variables.items()]
        return f"{self.status}: {brief(self.objective)}; {listed(changed)}"


def optimise(path: str | Path, out: str | Path | None = None) -> Optimised:
    """Optimise the robot of a file: `robot`, variables with bounds, responses, objective, constraints.

    Parameters
    ----------
    path : str or Path
        File.
    out : str or Path, default None
        Folder for the robot file; None writes none.

    Returns
    -------
    Optimised
        Status, objective, variables, responses before and after, constraints with multipliers, the robot.

    Examples
    --------
    >>> parflex.optimise("stiffer.toml").variables
    """
    problem = read_problem(path)
    source = robot_source(problem, path)
    found = Optimisation(problem, load(source)).solved()
    if out is None:
        return found
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "robot.toml"
    settings = {key: one["value"] for key, one in found.variables.items()}
    with whole_file(target) as file:
        file.write(extending_text(source, found.before, settings, target).encode())
    return replace(found, robot_file=str(target))


class Optimisation:
    """A problem with its robot."""

    def __init__(self, problem: ProblemFile, robot: Robot) -> None:
        self.problem, self.robot = problem, robot
        self.keys = list(problem.variables)
        self.given = np.array([checked_number(robot, key, "variables") for key in self.keys])
        bounds = np.array([problem.variables[key].bounds for key in self.keys])
        self.low, self.width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
        self.questions = {name: table.question() for name, table in problem.responses.items()}
        start = [problem.variables[key].start for key in self.keys]
        first = np.array([x if s is None else s for x, s in zip(self.given, start, strict=True)])
        self.start = np.clip((first - self.low) / self.width, 0.0, 1.0)
        self.before = self.design(self.start)
        self.values_before = {name: self._value(self.before, name) for name in self.questions}
        self.terms = self._terms()
        self.designs = Designs([term for term, _ in self.terms], self._values, self._pieces)

    def design(self, z: Array) -> Robot:
        """The robot at a design."""
        robot = redesigned(self.robot, self.settings(z))
        robot.assemble()  # what cannot be assembled is no design
        return robot

    def settings(self, z: Array) -> dict[str, float]:
        """Numbers of the file at a design."""
        return dict(zip(self.keys, (self.low + self.width * z).tolist(), strict=True))

    def _value(self, robot: Robot, name: str) -> float:
        return value_of(self.questions[name].asked(robot).answer)

    def _terms(self) -> list[tuple[Term, str]]:
        """The objective, then each limit."""
        objective = self.problem.objective
        name = objective.maximise or objective.minimise or ""
        sign = 1.0 if objective.maximise else -1.0
        found = [(Term(name, sign, None, self._scale(name, None), self._all(name, sign)), name)]
        for one in self.problem.constraint:
            for limit, side in ((one.lower, 1.0), (one.upper, -1.0)):
                if limit is not None:
                    scale = self._scale(one.response, limit)
                    found.append((Term(one.response, side, limit, scale, self._all(one.response, side)), one.response))
        return found

    def _scale(self, name: str, limit: float | None) -> float:
        return abs(limit or 0.0) or abs(self.values_before[name]) or 1.0

    def _all(self, name: str, sign: float) -> bool:
        """Whether the worst value is the one that the term bounds, so that all pieces keep the bound."""
        return (self.questions[name].response.worst == "smallest") == (sign > 0)

    def _values(self, z: Array) -> Array:
        robot = self.design(z)
        by_name = {name: self._value(robot, name) for name in {name for _, name in self.terms}}
        return np.array([by_name[name] for _, name in self.terms])

    def _pieces(self, z: Array) -> list[list[Piece]]:
        robot = self.design(z)
        by_name: dict[str, list[Piece]] = {}
        for _, name in self.terms:
            if name not in by_name:
                found = pieces_of(robot, self.questions[name], self.keys)
                by_name[name] = [Piece(p.value, p.matrices * self.width[:, None, None], p.pose) for p in found]
        return [by_name[name] for _, name in self.terms]

    # -- searching -------------------------------------------------------------------------------------

    def solved(self) -> Optimised:
        """The best of all starts, with stock sizes where they are asked for."""
        problem = self.problem
        rng = np.random.default_rng(problem.seed)
        starts = [self.start, *rng.uniform(0, 1, (problem.starts - 1, len(self.keys)))]
        free = np.ones(len(self.keys), dtype=bool)
        found: list[Descent] = []
        for number, z in enumerate(starts):
            try:
                found.append(descend(self.designs, z, free, problem.steps, problem.tolerance))
            except ParflexError:
                if number == 0:
                    raise
        best = min(found, key=lambda one: self.designs.merit(one.values))
        best = self._stock(best)
        return self._told(best, [self.designs.merit(one.values) for one in found])

    def _stock(self, best: Descent) -> Descent:
        """Choices from lists one after the other, each with the rest optimised again."""
        free = np.ones(len(self.keys), dtype=bool)
        for k, key in enumerate(self.keys):
            choices = np.sort(np.array(self.problem.variables[key].choices))
            if not len(choices):
                continue
            free[k] = False
            x = self.low[k] + self.width[k] * best.z[k]
            beside = np.clip(np.searchsorted(choices, x) + np.array([-1, 0]), 0, len(choices) - 1)
            near = sorted({float(choices[i]) for i in beside})
            tried = []
            for choice in near:
                z = best.z.copy()
                z[k] = (choice - self.low[k]) / self.width[k]
                tried.append(descend(self.designs, z, free, self.problem.steps, self.problem.tolerance))
            best = min(tried, key=lambda one: self.designs.merit(one.values))
        return best

    def _told(self, best: Descent, merits: Sequence[float]) -> Optimised:
        problem, robot = self.problem, self.design(best.z)
        worst = int(np.argmax(best.missed))
        feasible = best.missed[worst] <= MET
        status = "optimal" if best.steps < problem.steps else "steps"
        message = "no step improves the design" if status == "optimal" else f"stopped after {problem.steps} steps"
        if not feasible:
            term = self.terms[worst][0]
            side = "at least" if term.sign > 0 else "at most"
            status = "infeasible"
            message = f"'{term.name}' cannot be {side} {term.limit:g}: it is {best.values[worst]:.6g}"
        settings = self.settings(best.z)
        constraints = []
        for k, (term, name) in enumerate(self.terms):
            if term.limit is not None:
                off = abs(best.values[k] - term.limit) / term.scale
                constraints.append(
                    {"name": name, "value": float(best.values[k]), "limit": term.limit,
                     "active": bool(off <= ACTIVE or best.multipliers[k] != 0),
                     "multiplier": float(best.multipliers[k])}
                )  # fmt: skip
        variables = {
            key: {
                "start": float(self.low[k] + self.width[k] * self.start[k]),
                "value": settings[key],
                "lower": float(self.low[k]),
                "upper": float(self.low[k] + self.width[k]),
            }
            for k, key in enumerate(self.keys)
        }
        responses = {
            name: {
                "response": question.text,
                "before": self.values_before[name],
                "after": self._value(robot, name),
                "unit": question.response.unit_of(robot, question.argument),
            }
            for name, question in self.questions.items()
        }
        return Optimised(
            status, float(best.values[0]), variables, responses, constraints, message, self.designs.evaluations, robot,
            self.before, None, list(merits),
        )  # fmt: skip
