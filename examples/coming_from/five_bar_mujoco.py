"""The five-bar robot of docs/coming-from.md in MuJoCo: its model, and what closes its loop exactly."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

MOTORS, PASSIVE = [0, 2], [1, 3]

model = mujoco.MjModel.from_xml_path(str(Path(__file__).with_name("five_bar.xml")))
data = mujoco.MjData(model)


def pin_jacobian() -> np.ndarray:
    """Velocity of the tip relative to the eye per rate, at the positions in `data`."""
    rows = np.zeros((2, 3, model.nv))
    for row, site in zip(rows, ("tip", "eye"), strict=True):
        mujoco.mj_jacSite(model, data, row, None, model.site(site).id)
    return (rows[0] - rows[1])[:2]


def close(left: float, right: float) -> None:
    """Set all joint angles in `data` at two motor angles, by Newton's method."""
    data.qpos[:] = [left, -1.3, right, 1.3]
    for _ in range(8):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        gap = (data.site("tip").xpos - data.site("eye").xpos)[:2]
        data.qpos[PASSIVE] -= np.linalg.solve(pin_jacobian()[:, PASSIVE], gap)


def reduction() -> np.ndarray:
    """All joint rates per motor rate."""
    J = pin_jacobian()
    N = np.zeros((4, 2))
    N[MOTORS] = np.eye(2)
    N[PASSIVE] = -np.linalg.solve(J[:, PASSIVE], J[:, MOTORS])
    return N


def closed_accelerations(motors: np.ndarray) -> np.ndarray:
    """All joint accelerations at those of the motors, at the state in `data`."""
    drift = np.zeros(3)
    for sign, name in ((1, "tip"), (-1, "eye")):
        rows = np.zeros((3, model.nv))
        mujoco.mj_jacDot(model, data, rows, None, data.site(name).xpos, model.site(name).bodyid[0])
        drift += sign * rows @ data.qvel
    a = reduction() @ motors
    a[PASSIVE] -= np.linalg.solve(pin_jacobian()[:, PASSIVE], drift[:2])
    return a
