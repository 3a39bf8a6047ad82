"""How flat pictures see a robot: a planar one as a plan, one in space from the side and above."""

from __future__ import annotations

import numpy as np

from parflex.robot.robot import Robot

Array = np.ndarray
TURN, TILT = -28.0, 55.0  # degrees: how a robot in space is seen at first


def angles_of_view(robot: Robot) -> tuple[float, float]:
    """Turn about z and tilt, in degrees; a tilt of 90 degrees is a plan."""
    return (0.0, 90.0) if robot.tree.planar else (TURN, TILT)


def view(turn: float, tilt: float) -> Array:
    """Two rows that make a picture of points: turned about z, then seen from above by the tilt (degrees)."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    up, along = np.sin(np.radians(tilt)), np.cos(np.radians(tilt))
    return np.array([[c, -s, 0.0], [s * up, c * up, along]])
