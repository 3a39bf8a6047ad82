"""How many modes are meant where it is not said."""

from __future__ import annotations

from collections.abc import Sequence

from parflex.errors import ParflexError
from parflex.models.elastic.linear_model import About
from parflex.models.vibration.natural_modes import check_modes, natural_frequencies
from parflex.robot.robot import Robot

USUAL = 6


def number_of_modes(
    robot: Robot, modes: int | None, lock: str | Sequence[str] = "actuators", about: About | None = None
) -> int:
    """As many as are asked for; six unless it is said, or all that the robot has at home if these are fewer."""
    if modes is not None:
        check_modes(modes)
        return modes
    try:
        found = len(natural_frequencies(robot, None, None, lock, about).frequencies)
    except ParflexError:  # what cannot be asked at home may be asked elsewhere, or is refused there
        return USUAL
    return found or USUAL
