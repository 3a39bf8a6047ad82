"""Operators and time of the direct model with and without the reduction of beams."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from parflex.codegen.model import Model, model
from parflex.formulations.explain import without_reduction
from parflex.robot.load import COUNTED_WITHOUT
from parflex.robot.robot import Robot

BATCH = 64  # states of a call
CALLS = 20  # of which the shortest counts


def reduction_saving(robot: Robot) -> dict[str, Any]:
    """Operators and microseconds of a call of the direct model, of the robot as it is and with all its elements."""
    found: dict[str, Any] = {}
    for word, one in (("reduced", robot), ("full", without_reduction(robot))):
        made = model(one, "direct", without=COUNTED_WITHOUT)
        found[word] = {"operators": made.counts["total"], "microseconds": _microseconds(made)}
    for key in ("operators", "microseconds"):
        found[f"{key}_saved"] = found["full"][key] / found["reduced"][key]
    return found


def _microseconds(made: Model) -> float:
    """Of one call, in a batch at home."""
    inputs = {name: np.repeat(value[None], BATCH, axis=0) for name, value in made.sample.items()}
    made(**inputs)
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        made(**inputs)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / BATCH
