"""Distance of a pose from those where a program fails because its independent rates do not determine the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.checks import require, short_text
from parflex.closure.mobility import condition, scaled_jacobian
from parflex.codegen.model import Model
from parflex.formulations.base import best_rows, cheapest_closures
from parflex.robot.robot import Robot

Array = np.ndarray


def model_condition(robot: Robot, model: Model, q: Any) -> float:
    """Condition number, without units, of what a program of a robot solves for its dependent rates at a closed pose.

    A program keeps the choice that was made at home. It loses about as many digits as this number has.
    """
    hint = "make it first, by model(robot, 'direct')"
    require(isinstance(model, Model), "the condition is that of a program", "model", hint, short_text(model))
    listed = "qd" in model.labels and "q" in model.inputs
    require(listed, "the program does not list its independent rates", "model", "use its direct model", model.name)
    q = np.asarray(q, dtype=float)
    fits, hint = q.shape == (robot.tree.nq,), f"give {robot.tree.nq} positions"
    require(fits, f"the pose has the shape {q.shape}", "q", hint, str(q.shape))
    coordinate_names, independent = robot.tree.rate_names, set(model.about.get("independent") or model.labels["qd"])
    dependent = np.array([k for k in robot.free if coordinate_names[k] not in independent], dtype=int)
    if not len(dependent):
        return 1.0
    closures = cheapest_closures(robot)
    rows = best_rows(closures, robot.home, dependent)
    return condition(scaled_jacobian(closures, q)[np.ix_(rows, dependent)], usual=robot.regular_closure_norm)
