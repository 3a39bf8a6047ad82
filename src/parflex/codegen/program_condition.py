"""Distance of a pose from those where a program fails because its independent rates do not determine the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.closure.mobility import condition, scaled_jacobian
from parflex.codegen.model import Model
from parflex.errors import InputError
from parflex.formulations.base import best_rows, cheapest_closures
from parflex.robot.robot import Robot

Array = np.ndarray


def model_condition(robot: Robot, model: Model, q: Any) -> float:
    """Condition number, without units, of what a program of a robot solves for its dependent rates at a closed pose.

    A program keeps the choice that was made at home. It loses about as many digits as this number has.
    """
    if not isinstance(model, Model):
        raise InputError(
            "the condition is that of a program", key="model", value=short_text(model),
            hint="make it first, by model(robot, 'direct')",
        )  # fmt: skip
    if "qd" not in model.labels or "q" not in model.inputs:
        raise InputError(
            "the program does not list its independent rates",
            key="model",
            value=model.name,
            hint="use its direct model",
        )
    q = np.asarray(q, dtype=float)
    if q.shape != (robot.tree.nq,):
        raise InputError(
            f"the pose has the shape {q.shape}", key="q", value=str(q.shape), hint=f"give {robot.tree.nq} positions"
        )
    coordinate_names, independent = robot.tree.rate_names, set(model.about.get("independent") or model.labels["qd"])
    dependent = np.array([k for k in robot.free if coordinate_names[k] not in independent], dtype=int)
    if not len(dependent):
        return 1.0
    closures = cheapest_closures(robot)
    rows = best_rows(closures, robot.home, dependent)
    return condition(scaled_jacobian(closures, q)[np.ix_(rows, dependent)], usual=robot.regular_closure_norm)
