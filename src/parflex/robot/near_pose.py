"""Move to a pose by Newton's method from the present pose, without a search."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from parflex.robot.pose_input import complete_end_effector, read_pose
from parflex.robot.robot import Robot

Array = np.ndarray


def near_pose(rigid: Robot, coordinates: Mapping[str, float], q: Array) -> Array | None:
    """Positions of a robot with rigid bodies at a pose, by Newton from `q` on; None where that does not get there."""
    target = read_pose(rigid.tree, coordinates, "pose", None, rigid.home)
    whole = complete_end_effector(rigid.tree, rigid.actuated, target, q) or target
    rows = len(whole.fixed) + sum(frame.size for frame in whole.frames)
    freedoms = rigid.mobility.freedoms(len(rigid.free))
    for choice in (whole,) if rows <= freedoms else (whole, target):
        closed = rigid.assembler.near(choice, q, rigid.home, rigid.locked)
        if closed is not None:
            return closed
    return None
