"""Operators and time of the direct model with and without the reduction of beams."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from parflex.codegen.model import Model, model
from parflex.errors import InputError
from parflex.robot.load import JOINT_TERMS, with_numbers
from parflex.robot.robot import Robot

BATCH = 64  # states of a call
CALLS = 20  # of which the shortest counts


def reduction_saving(robot: Robot) -> dict[str, Any]:
    """Operators and microseconds of a call of the direct model, of the robot as it is and with all its elements."""
    saving: dict[str, Any] = {}
    for word, variant in (("reduced", robot), ("full", _without_reduction(robot))):
        direct_model = model(variant, "direct", without=JOINT_TERMS)
        saving[word] = {"operators": direct_model.counts["total"], "microseconds": _microseconds(direct_model)}
    for key in ("operators", "microseconds"):
        saving[f"{key}_saved"] = saving["full"][key] / saving["reduced"][key]
    return saving


def _without_reduction(robot: Robot) -> Robot:
    """Return the robot with all elements of its reduced beams; InputError if no beam is reduced."""
    if all(link.body.reduced is None for link in robot.tree.links):
        hint = "write reduce = { error, band } in a beam"
        raise InputError("no beam of this robot is reduced", key="reduce", hint=hint)
    frames = tuple(
        frame
        if frame.beam is None
        else frame.model_copy(update={"beam": frame.beam.model_copy(update={"reduce": None})})
        for frame in robot.description.frame
    )
    return with_numbers(robot, robot.description.model_copy(update={"frame": frames}))


def _microseconds(direct_model: Model) -> float:
    """Of one call, in a batch at home."""
    inputs = {name: np.repeat(value[None], BATCH, axis=0) for name, value in direct_model.sample.items()}
    direct_model(**inputs)
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        direct_model(**inputs)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / BATCH
