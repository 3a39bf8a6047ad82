"""Where deflections of many poses are too large for the first order by which they are found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from parflex.errors import ParflexWarning
from parflex.maps.responses.at_one_pose import Held
from parflex.maps.responses.response_names import ResponseName
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.loads import has_force_elements
from parflex.statics.small_deformation import FIRST_ORDER

Array = np.ndarray


def warn_of_first_order(
    robot: Robot, asked: Sequence[ResponseName], values: Mapping[str, Array], held: Held, rests: Array, level: int
) -> None:
    """Warn once where deflections about the undeformed pose are beyond what first order holds for.

    Rows that `rests` names are about their equilibrium already, since springs are under tension there.
    """
    bent = [one for one in asked if one.kind == "deflection"]
    if not bent or held.balanced or has_force_elements(robot.tree):
        return
    lengths = np.array([_size(robot)] * 3 + [1.0] * 3)  # of x y z rx ry rz
    beyond = np.zeros(values[bent[0].name].size // max(1, int(np.prod(bent[0].shape))), dtype=bool)
    for one in bent:
        own = np.abs(values[one.name]).reshape(len(beyond), -1)
        beyond |= (own > FIRST_ORDER * (lengths if one.direction is None else lengths[one.direction])).any(axis=1)
    beyond &= ~rests
    if beyond.any():
        warnings.warn(
            f"{int(beyond.sum())} of {len(beyond)} poses deflect by more than {FIRST_ORDER} of the size of the robot, "
            f"or turn by more than {FIRST_ORDER} rad: first order does not hold there, so ask about='equilibrium'",
            ParflexWarning,
            stacklevel=level + 1,
        )


def _size(robot: Robot) -> float:
    """The largest extent of the robot at home along an axis of the world."""
    at = Configuration(robot, robot.home).at
    places = [at.of(place)[1] for place in robot.tree.places.values()]
    return float(np.ptp([*places, *at.position], axis=0).max()) or robot.tree.length
