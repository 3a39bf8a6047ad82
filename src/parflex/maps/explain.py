"""Explain how a map of a robot is computed, and why, before it is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.errors import ParflexError
from parflex.formulations.explain import Explanation, ExplanationSection
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase
from parflex.statics.modes import natural_frequencies


def map_method(robot: Robot) -> tuple[str, str]:
    """How frequencies at many poses are found ("fast", "reduced", "together", "one by one", "none"), and why."""
    try:
        if not robot.tree.elastic:  # rigid robots without springs are told without what compiles programs
            natural_frequencies(robot, None, 1)
        from parflex.maps.batch import STEPS_FROM, Batch
        from parflex.maps.responses import read_responses

        batch = Batch(robot, [], np.zeros((STEPS_FROM, 0)), read_responses(robot, ["frequency:1"]), LoadCase())
    except ParflexError as error:
        return "none", f"With its motors locked the robot has no natural frequency: {error.message}."
    if batch.models is None:
        return "one by one", (
            "Maps are computed pose by pose by the functions of single poses, because of "
            f"{batch.fallback_reason}: this is slow."
        )
    size = len(batch.models.statics.independent)
    if batch.finder is None:
        return "together", (
            f"Because of {batch.finder_reason}, maps are computed from matrices with {size} unknowns at each pose, by "
            "Newton's method about the equilibrium where something is under tension: a pose takes milliseconds."
        )
    return "fast", (
        f"Maps are fast: the {size} unknowns of a pose are eliminated by compiled steps of inverse iteration; every "
        "mode is proved by counts. Poses with springs under tension, and those about an equilibrium, are solved "
        "together by Newton's method."
    )


def _placed(robot: Robot) -> tuple[str, ...]:
    """What is said of poses that are found one by one."""
    from parflex.maps.coordinates import single_pose_reason

    why = single_pose_reason(robot)
    return (f"Poses by coordinates of the end effector are found one by one: {why}. This is slow.",) if why else ()


def with_maps(explanation: Explanation, robot: Robot) -> Explanation:
    """An explanation with a chapter on maps before that on where numbers come from."""
    method, why = map_method(robot)
    placement = () if method == "none" else _placed(robot)
    *sections, last = explanation.sections
    return replace(
        explanation, sections=(*sections, ExplanationSection("maps", f"Maps: {method}", (why, *placement)), last)
    )
