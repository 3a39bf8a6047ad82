"""Closed positions near the start values, by damped least squares and Newton steps in the chart."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from . import chart
from .energy import EnergyModel


def assemble(
    model: EnergyModel, pose: Mapping[str, float], near: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return positions that close all loops with given joint values or frame coordinates (orientations given whole)."""
    q = dict(chart.start(model.data) if near is None else near)

    def gaps(position: Mapping[str, float]) -> np.ndarray:
        return np.concatenate([model.closure_residual(position), _pose_gaps(model, position, pose)])

    def slope(position: Mapping[str, float]) -> np.ndarray:
        h, count = 1e-6, len(model.coordinates)
        steps = h * np.eye(count)
        ahead, behind = ([gaps(chart.retract(model.data, position, s * sign)) for s in steps] for sign in (1, -1))
        return (np.array(ahead) - np.array(behind)).T / (2 * h)

    found = least_squares(lambda step: gaps(chart.retract(model.data, q, step)), np.zeros(len(model.coordinates)))
    q = chart.retract(model.data, q, found.x)
    for _ in range(5):
        q = chart.retract(model.data, q, -np.linalg.lstsq(slope(q), gaps(q), rcond=1e-6)[0])
    error = np.abs(gaps(q)).max(initial=0)
    assert error < 1e-12, f"does not close: {error}"
    return q


def _pose_gaps(model: EnergyModel, q: Mapping[str, float], pose: Mapping[str, float]) -> np.ndarray:
    """Differences from the wanted joint values and frame coordinates."""
    rows: list[float] = []
    turns: dict[str, dict[str, float]] = {}
    joints = {name for frame in model.data.frames if frame.kind not in chart.POSED for name in frame.coordinates}
    for key, value in pose.items():
        if key in joints:
            rows.append(q[key] - value)
            continue
        name, _, part = key.rpartition(".")
        if part in "xyz":
            rows.append(model.frame_pose(q, name)["xyz".index(part), 3] - value)
        else:
            turns.setdefault(name, {})[part] = value
    for name, turn in turns.items():
        if "theta" in turn:
            wanted = Rotation.from_euler("z", turn["theta"])
        elif "qw" in turn:
            wanted = Rotation.from_quat([turn[part] for part in ("qw", "qx", "qy", "qz")], scalar_first=True)
        else:
            wanted = Rotation.from_rotvec([turn[part] for part in ("rx", "ry", "rz")])
        difference = (wanted.inv() * Rotation.from_matrix(model.frame_pose(q, name)[:3, :3])).as_rotvec()
        rows += list(difference[2:] if "theta" in turn else difference)
    return np.array(rows)
