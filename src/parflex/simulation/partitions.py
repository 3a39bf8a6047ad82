"""Which rates are independent: read from names, judged at a pose, chosen anew, and the model of a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.closure import mobility
from parflex.closure.mobility import scaled_jacobian
from parflex.codegen.model import model_with
from parflex.codegen.options import Options
from parflex.codegen.outputs import loses_power, powers
from parflex.errors import InputError, did_you_mean
from parflex.formulations.base import best_rows, cheapest_closures
from parflex.robot.robot import Robot
from parflex.simulation.problem import RUN_LIMIT, Problem, calls_elements

Array = np.ndarray
MODEL_NAMES = {"motors": "state-rates-driven", "efforts": "state-rates"}


def read_independent(robot: Robot, names: Sequence[str] | None, prescribed: str) -> tuple[str, ...]:
    """Names of rates to use as independent, in the order of the tree; none: the model chooses."""
    if names is None:
        return ()
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InputError("the independent rates are not a list of names", key="independent", hint="give e.g. ['crank']")
    known = [robot.tree.rate_names[k] for k in robot.free]
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no free rate '{name}'", key="independent", value=name, hint=did_you_mean(name, known)
            )
    required = robot.mobility.freedoms(len(robot.free))
    if len(set(names)) != required or len(names) != required:
        raise InputError(
            f"{len(set(names))} rates are named, but {required} are independent",
            key="independent",
            value=", ".join(names),
            hint=f"give {required} names of {', '.join(known[:12])}",
        )
    if prescribed == "platform":
        raise InputError(
            "the rates of a driven platform are the independent ones",
            key="independent",
            hint="leave it out, or drive the motors",
        )
    missing = [name for name in robot.actuated_names if name not in names] if prescribed == "motors" else []
    if missing:
        raise InputError(
            f"the motor '{missing[0]}' is driven, so its rate is independent",
            key="independent",
            value=missing[0],
            hint="list all driven motors",
        )
    _refuse_undetermined(robot, names)
    return tuple(known[k] for k in range(len(known)) if known[k] in names)


def _refuse_undetermined(robot: Robot, names: Sequence[str]) -> None:
    """Raise if rates do not determine the others at any pose: no model can be made with them."""
    dependent = dependent_rates(robot, names)
    blocks = [scaled_jacobian(robot.closures, q)[:, dependent] for q in robot.reference_poses]
    if len(dependent) and max(mobility.rank(block) for block in blocks) < len(dependent):
        raise InputError(
            f"the rates {', '.join(names)} do not determine the others",
            key="independent",
            value=", ".join(names),
            hint="choose others",
        )


def dependent_rates(robot: Robot, independent: Sequence[str]) -> Array:
    """Numbers of the free rates that are not named."""
    names = robot.tree.rate_names
    return np.array([k for k in robot.free if names[k] not in set(independent)], dtype=int)


def refuse_singular(problem: Problem, q: Array, key: str) -> None:
    """Raise if the independent rates of a model do not determine the others at a pose."""
    robot = problem.robot
    dependent = dependent_rates(robot, problem.independent)
    if not len(dependent):
        return
    J = scaled_jacobian(robot.closures, q)[:, dependent]
    value = mobility.condition(J, len(dependent), robot.usual_closures)
    if value > mobility.SINGULAR:
        raise InputError(
            f"the rates {', '.join(problem.independent)} do not determine the others at the start "
            f"(condition number {value:.1e})",
            key=key,
            value=", ".join(problem.independent),
            hint="choose others",
        )


def with_independent(problem: Problem, independent: Sequence[str], q: Array) -> Problem:
    """The same problem with other independent rates, and with the rows of the closures that suit them at a pose."""
    robot = problem.robot
    dependent = dependent_rates(robot, independent)
    rows, seen = (tuple(map(int, best_rows(of, q, dependent))) for of in (cheapest_closures(robot), robot.closures))
    options = Options(
        wrenches=problem.wrenches, friction_width=problem.width, independent=tuple(independent), rows=rows,
        calls=calls_elements(robot),
    )  # fmt: skip
    made = model_with(robot, MODEL_NAMES[problem.prescribed], options, RUN_LIMIT)
    if problem.power is not None and loses_power(robot):
        again = powers(robot, problem.wrenches, problem.width, independent, seen)
        return replace(problem, model=made, rows=seen, power=again)
    return replace(problem, model=made, rows=seen)
