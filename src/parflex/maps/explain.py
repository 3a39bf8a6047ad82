"""Explain how a map of a robot is computed, and why, before it is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.errors import ParflexError
from parflex.formulations.explain import Explanation, ExplanationSection
from parflex.robot.robot import Robot
from parflex.statics.modes import natural_frequencies


def map_method(robot: Robot, lock: str = "actuators") -> tuple[str, str]:
    """How frequencies at many poses are found ("fast", "reduced", "together", "one by one", "none"), and why."""
    try:
        if not robot.tree.elastic:  # rigid robots without springs are told without what compiles programs
            natural_frequencies(robot, None, 1, lock)
        return _method_and_reason(robot, lock)
    except ParflexError as error:
        return "none", f"With its motors locked the robot has no natural frequency: {error.message}."


def _method_and_reason(robot: Robot, lock: str) -> tuple[str, str]:
    from parflex.maps.matrices import NotCoveredError, node_model
    from parflex.maps.modes import ModeFinder
    from parflex.maps.springs import single_spring_reason
    from parflex.statics.load_case import LoadCase
    from parflex.statics.loads import has_springs, locked_robot

    locked = locked_robot(robot, lock)
    try:
        size, free = node_model(locked).columns, len(natural_frequencies(robot, None, 1, lock).free_motions)
    except NotCoveredError as error:
        alone = single_spring_reason(robot, LoadCase(lock)) if has_springs(robot.tree) else str(error)
        if not alone:
            return "together", (
                f"Because of {error}, maps are solved by Newton's method for many poses together, "
                "about the equilibrium where something is under tension: a pose takes milliseconds. What does not "
                "converge so is solved by itself."
            )
        return "one by one", (
            f"Maps are computed pose by pose by the general reduction, because of {alone}: this is slow."
        )
    try:
        ModeFinder(locked, 1, free)
    except (NotCoveredError, np.linalg.LinAlgError) as error:
        return "reduced", (
            f"Maps are computed from whole matrices with {size} unknowns at each pose, which LAPACK solves, "
            f"because of {error}."
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
