"""Optimise a robot from a file: several starts, rounding to stock sizes, a robot file that extends the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.design.descent import (
    MET,
    Descent,
    DesignPoint,
    Designs,
    Term,
    bound_costs,
    descend,
    polished,
    with_remaining_slope,
)
from parflex.design.design_state import value_of
from parflex.design.problem import ProblemDesigns, ProblemFile, ResponsePiece, read_problem, robot_source
from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexError
from parflex.io import refuse_overwrite
from parflex.parameters.robot_file import write_design
from parflex.records import Answer, brief, name_list
from parflex.robot.load import load
from parflex.robot.robot import Robot

Array = np.ndarray
ACTIVE = 1e-4  # of a limit
# of the objective per range of the variables: where a step promises less, the conditions of an optimum hold; what is
# left to gain is of the order of its square
LEVEL = 1e-2
SAME = 1e-4  # of the objective: starts that end so near found the same optimum
ENDS = {
    "infeasible": "missed a limit",
    "steps": "used up their steps",
    "stalled": "ended before an optimum",
    "impossible": "cannot be assembled",
}


@dataclass(frozen=True, eq=False, repr=False)
class Optimised(Answer):
    """The best design that was found.

    Attributes
    ----------
    status : str
        'optimal', 'steps' where they were used up, 'stalled' where steps ended though the slopes promise more, or
        'infeasible' where a limit is not met.
    objective : float
        Value of the objective (unit of its response).
    variables : dict[str, dict[str, Any]]
        By key: `start`, `value`, `lower`, `upper`, in the units of the file; `at`, the bound that holds it ('lower',
        'upper') or None, and its `multiplier`.
    responses : dict[str, dict[str, Any]]
        By name: `response`, `before`, `after`, `unit`, and the `pose` at which the value after is found.
    constraints : list[dict[str, Any]]
        Name, `value`, `limit`, `active`, and `multiplier`: what the objective gains per unit of the limit; 0 unless the
        design is optimal.
    message : str
        A sentence on the status, and on the starts where there are several.
    evaluations : int
        Number of designs that were computed.
    robot : Robot
        The robot found.
    before : Robot
        The robot at the start.
    robot_file : str | None
        File of the robot found, which extends the first.
    front : list[dict[str, Any]]
        Where a second objective is asked for, designs of the Pareto front: `objectives` and `variables` by name.
    starts : list[float]
        What each start that can be came to: the objective, negative where it is maximised, with missed limits, in units
        of the objective before (dimensionless).
    searches : list[dict[str, Any]]
        For each start its `status` ('impossible' where it cannot be, with the `reason`) and its `objective`.
    poses : dict[str, list[Any]]
        Poses at which each response is asked (m, rad).
    """

    status: str
    objective: float
    variables: dict[str, dict[str, Any]]
    responses: dict[str, dict[str, Any]]
    constraints: list[dict[str, Any]]
    message: str
    evaluations: int
    robot: Robot
    before: Robot
    robot_file: str | None = None
    front: list[dict[str, Any]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    poses: dict[str, list[Any]] = field(default_factory=dict)
    searches: list[dict[str, Any]] = field(default_factory=list)

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """Diagnostics of the robot, and why the search ended where the result is not optimal."""
        ended = [Diagnostic("not-optimal", self.message)] if self.status != "optimal" else []
        return (*self.robot.diagnostics, *ended)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = (
            "status",
            "objective",
            "variables",
            "responses",
            "constraints",
            "message",
            "evaluations",
            "robot_file",
            "front",
            "searches",
        )
        return {word: getattr(self, word) for word in words}

    def _told(self) -> str:
        changed = [f"{key} {brief(variable['value'])}" for key, variable in self.variables.items()]
        return f"{self.status}: {brief(self.objective)}; {name_list(changed)}"


def optimise(path: str | Path, out: str | Path | None = None) -> Optimised:
    """Optimise the robot of a file: `robot`, variables with bounds, responses, objective, constraints.

    Parameters
    ----------
    out : str or Path, default None
        Folder for the robot file; None writes none.
    path
        See `parflex.api.WORDS`.

    Returns
    -------
    Optimised
        Status, objective, variables, responses before and after, constraints with multipliers, the robot.
    """
    from parflex.design.pareto import pareto_front  # which stands on this module

    problem = read_problem(path)
    source = robot_source(problem, path)
    robot = load(source)
    search = OptimisationProblem(problem, robot)
    target = None if out is None else Path(out) / "robot.toml"
    if target is not None:
        refuse_overwrite([target], [path, *robot.files])
    optimised = search.solved()
    if problem.pareto is not None:
        optimised = replace(optimised, front=pareto_front(search))
    if target is None:
        return optimised
    target.parent.mkdir(parents=True, exist_ok=True)
    settings = {key: variable["value"] for key, variable in optimised.variables.items()}
    write_design(source, robot, optimised.robot, settings, target, "optimised")
    return replace(optimised, robot_file=str(target))


class OptimisationProblem:
    """A problem with its robot."""

    def __init__(self, problem: ProblemFile, robot: Robot) -> None:
        self.problem, self.robot = problem, robot
        self.robots = ProblemDesigns(problem, robot)
        self.keys, self.before = self.robots.keys, self.robots.before
        objective = problem.objective
        name = objective.maximise or objective.minimise or ""
        limits = [
            (constraint.response, side, limit)
            for constraint in problem.constraint
            for limit, side in ((constraint.lower, 1.0), (constraint.upper, -1.0))
            if limit is not None
        ]
        self.designs = self.searched([(name, 1.0 if objective.maximise else -1.0, None), *limits])

    def searched(self, term_specs: Sequence[tuple[str, float, float | None]]) -> Designs:
        """What is searched: names, signs and limits of responses, the objective first."""
        terms = [
            Term(name, sign, limit, self._scale(name, limit), self._all(name, sign)) for name, sign, limit in term_specs
        ]
        names = [term.name for term in terms]

        def values(z: Array) -> Array:
            by_name = self.robots.values(z, names)
            return np.array([by_name[name] for name in names])

        def pieces(z: Array) -> list[list[ResponsePiece]]:
            by_name = self.robots.pieces(z, names)
            return [by_name[name] for name in names]

        return Designs(terms, values, pieces)

    def _scale(self, name: str, limit: float | None) -> float:
        return abs(limit or 0.0) or abs(self.robots.values_before[name]) or 1.0

    def _all(self, name: str, sign: float) -> bool:
        """Whether the worst value is the one that the term bounds, so that all pieces keep the bound."""
        return (self.robots.questions[name].response.worst == "smallest") == (sign > 0)

    # -- searching -------------------------------------------------------------------------------------

    def solved(self) -> Optimised:
        """The best of all starts, with stock sizes where they are asked for."""
        tried = self._tried(self.designs, self.starts())
        descents = [descent for descent in tried if isinstance(descent, Descent)]
        best = self.stock(self.designs, min(descents, key=lambda descent: self.designs.merit(descent.values)))
        return self._told(best, tried)

    def starts(self) -> list[Array]:
        """The first design, and random ones beside it."""
        rng = np.random.default_rng(self.problem.seed)
        return [self.robots.start, *rng.uniform(0, 1, (self.problem.starts - 1, len(self.keys)))]

    def descents(self, designs: Designs, starts: Sequence[Array]) -> list[Descent]:
        """What each start comes to; random ones that cannot be are left out."""
        return [descent for descent in self._tried(designs, starts) if isinstance(descent, Descent)]

    def _tried(self, designs: Designs, starts: Sequence[Array]) -> list[Descent | ParflexError]:
        """What each start comes to, or why it cannot be; the first one must be."""
        free = np.ones(len(self.keys), dtype=bool)
        attempts: list[Descent | ParflexError] = []
        for number, z in enumerate(starts):
            try:
                attempts.append(self._search(designs, z, free))
            except ParflexError as error:
                if number == 0:
                    raise
                attempts.append(error)
        return attempts

    def _search(self, designs: Designs, z: Array, free: Array) -> Descent:
        """Steps from a design; where they end before the conditions of an optimum hold, others are tried from there."""
        left, last = self.problem.steps, np.inf
        while True:
            descent = polished(designs, descend(designs, z, free, left, self.problem.tolerance), free)
            descent = with_remaining_slope(designs, descent, free)
            left, merit = left - descent.steps, designs.merit(descent.values)
            level = descent.slope <= LEVEL or descent.missed.max() > MET
            if level or not descent.done or not left or merit > last - self.problem.tolerance:
                return replace(descent, steps=self.problem.steps - left)
            z, last = descent.z, merit

    def stock(self, designs: Designs, best: Descent) -> Descent:
        """Choices from lists one after the other, each with the rest optimised again."""
        free = np.ones(len(self.keys), dtype=bool)
        low, width = self.robots.low, self.robots.width
        for k, key in enumerate(self.keys):
            choices = np.sort(np.array(self.problem.variables[key].choices))
            if not len(choices):
                continue
            free[k] = False
            x = low[k] + width[k] * best.z[k]
            adjacent = np.clip(np.searchsorted(choices, x) + np.array([-1, 0]), 0, len(choices) - 1)
            tried = []
            for choice in sorted({float(choices[i]) for i in adjacent}):
                z = best.z.copy()
                z[k] = (choice - low[k]) / width[k]
                tried.append(self._search(designs, z, free))
            best = min(tried, key=lambda descent: designs.merit(descent.values))
        return best

    def _variables(self, best: Descent, met: bool) -> dict[str, dict[str, Any]]:
        """Variables with the bounds at which they are, and what the objective changes by per unit of such a bound."""
        robots, settings = self.robots, self.robots.settings(best.z)
        free = np.array([not self.problem.variables[key].choices for key in self.keys])
        point = self.designs.with_pieces(DesignPoint(best.z, best.values))
        gains = bound_costs(self.designs, point, free) if met else np.zeros(len(free))
        variables: dict[str, dict[str, Any]] = {}
        for k, key in enumerate(self.keys):
            low, high = float(robots.low[k]), float(robots.low[k] + robots.width[k])
            side = ("upper" if best.z[k] > 0.5 else "lower") if gains[k] else None
            variables[key] = {
                "start": float(low + robots.width[k] * robots.start[k]),
                "value": settings[key],
                "lower": low,
                "upper": high,
                "at": side,
                "multiplier": float(gains[k] / robots.width[k]) * (-1.0 if side == "lower" else 1.0),
            }
        return variables

    def _status(self, descent: Descent) -> str:
        if descent.missed.max() > MET:
            return "infeasible"
        return "steps" if not descent.done else "optimal" if descent.slope <= LEVEL else "stalled"

    def _message(self, best: Descent, status: str) -> str:
        """A sentence on a status: what holds the design, or why steps end."""
        steps = self.problem.steps
        if status == "infeasible":
            worst = int(np.argmax(best.missed))
            term = self.designs.terms[worst]
            side = "at least" if term.sign > 0 else "at most"
            cannot = "cannot be" if best.done else f"is after {steps} steps not yet"
            return f"'{term.name}' {cannot} {side} {term.limit:g}: it is {best.values[worst]:.6g}"
        if status == "optimal":
            return "no step improves the design"
        if status == "steps":
            return f"stopped after {steps} steps, before an optimum, so that multipliers are 0"
        if best.stopped:
            return f"stopped at the edge of assembly, so that this may not be an optimum: {best.stopped}"
        why = "responses jump, or turn within the shortest steps"
        return f"steps end although the slopes promise more, so that this may not be an optimum: {why}"

    def _searches(self, tried: Sequence[Descent | ParflexError]) -> tuple[list[dict[str, Any]], str]:
        """What each start came to, and a sentence on them."""
        searches: list[dict[str, Any]] = [
            {"status": "impossible", "objective": None, "reason": entry.message}
            if isinstance(entry, ParflexError)
            else {"status": self._status(entry), "objective": float(entry.values[0]), "reason": ""}
            for entry in tried
        ]
        if len(searches) == 1:
            return searches, ""
        values = [entry["objective"] for entry in searches if entry["status"] == "optimal"]
        best = (max if self.designs.terms[0].sign > 0 else min)(values, default=0.0)
        same = sum(abs(value - best) <= SAME * abs(best) for value in values)
        counts = [
            (same, "came to the best optimum"),
            (len(values) - same, "to others"),
            *((sum(entry["status"] == status for entry in searches), text) for status, text in ENDS.items()),
        ]
        return searches, f"of {len(searches)} starts " + ", ".join(f"{count} {text}" for count, text in counts if count)

    def _told(self, best: Descent, tried: Sequence[Descent | ParflexError]) -> Optimised:
        robots, robot = self.robots, self.robots.design(best.z)
        status = self._status(best)
        searches, starts = self._searches(tried)
        message = "; ".join(text for text in (self._message(best, status), starts) if text)
        if status != "optimal":  # nothing is gained for limits, or the last program is not that of an optimum
            best = replace(best, multipliers=np.zeros(len(self.designs.terms)))
        constraints = []
        for k, term in enumerate(self.designs.terms):
            if term.limit is not None:
                off = abs(best.values[k] - term.limit) / term.scale
                constraints.append(
                    {"name": term.name, "value": float(best.values[k]), "limit": term.limit,
                     "active": bool(off <= ACTIVE or best.multipliers[k] != 0 or best.missed[k] > MET),
                     "multiplier": float(best.multipliers[k])}
                )  # fmt: skip
        variables = self._variables(best, status == "optimal")
        responses = {}
        for name, question in robots.questions.items():
            after = question.asked(robot)
            responses[name] = {
                "response": question.text,
                "before": robots.values_before[name],
                "after": value_of(after.answer),
                "unit": question.response.unit_of(robot, question.argument),
                "pose": after.pose,
            }
        return Optimised(
            status, float(best.values[0]), variables, responses, constraints, message, self.designs.evaluations, robot,
            self.before, None, [], [self.designs.merit(trial.values) for trial in tried if isinstance(trial, Descent)],
            {name: list(question.poses) for name, question in robots.questions.items()}, searches,
        )  # fmt: skip
