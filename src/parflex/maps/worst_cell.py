"""Elements that are too few in a map: the rule of single answers, asked once, where the frequency is highest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parflex.errors import ParflexError, ParflexWarning
from parflex.maps.responses.at_one_pose import Held
from parflex.robot.robot import Robot
from parflex.statics.mesh_error import TOO_HIGH, bound_at, inner_beams
from parflex.statics.modes import natural_frequencies

Array = np.ndarray


def warn_of_few_elements(
    robot: Robot,
    frequencies: Array,
    pose_of: Callable[[int], Mapping[str, Any]],
    held: Held,
    modes: int,
    level: int,
) -> None:
    """Warn once where frequencies (Hz, rows first) of a map are too high because elements are too few.

    `pose_of` a row are its coordinates by name. Elements held at both ends vibrate at the same frequencies wherever the
    robot stands, so the highest frequency of the map comes nearest to them. Rows with their own designs are not
    judged: loading one takes as long as thousands of poses.
    """
    if not np.isfinite(frequencies).any():
        return
    highest = np.nanmax(np.where(np.isfinite(frequencies), frequencies, np.nan))
    row = int(np.argwhere(frequencies.reshape(len(frequencies), -1) == highest)[0, 0])
    try:
        if _are_enough(robot, float(highest), held):
            return
        pose = dict(pose_of(row))
        found = natural_frequencies(robot, pose, modes, held.lock, held.about, wrench=held.wrench)
    except ParflexError:  # which the map itself answers for
        return
    where = ", ".join(f"{name} = {float(value):.4g}" for name, value in pose.items())
    for told in found.too_few:
        warnings.warn(
            f"of the map, where frequencies are highest ({where}), {told}", ParflexWarning, stacklevel=level + 1
        )


def _are_enough(robot: Robot, highest: float, held: Held) -> bool:
    """Whether a frequency (Hz) is so far below those of elements by themselves that nothing need be solved."""
    return not inner_beams(robot) or (not held.balanced and bound_at(robot, highest).largest <= TOO_HIGH)
