"""Positions by name, and the local chart `p + R d1`, `R exp(hat(d2))` of balls and free frames about a pose.

The angular velocity in body axes is Jr(d2) d2_dot, Jr = 1 - hat(d2)/2 + ..., so first and second derivatives of the
chart at zero are the twist and the resolved acceleration in body axes. The chart is laid anew about every pose.
"""

from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from .reader import Frame, RobotData

POSED = ("spherical", "free", "planar")


def start(data: RobotData) -> dict[str, float]:
    return {name: value for frame in data.frames for name, value in zip(frame.coordinates, frame.start, strict=True)}


def pose(frame: Frame, q: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of a ball or free frame in its placed axes."""
    name = frame.name
    if frame.kind == "planar":
        x, y, theta = (q[coordinate] for coordinate in frame.coordinates)
        return Rotation.from_euler("z", theta).as_matrix(), np.array([x, y, 0.0])
    position = np.array([q[f"{name}.{axis}"] for axis in "xyz"]) if frame.kind == "free" else np.zeros(3)
    if f"{name}.rx" in q:
        return Rotation.from_rotvec([q[f"{name}.r{axis}"] for axis in "xyz"]).as_matrix(), position
    quaternion = [q[coordinate] for coordinate in frame.coordinates[-4:]]
    return Rotation.from_quat(quaternion, scalar_first=True).as_matrix(), position


def retract(data: RobotData, q: Mapping[str, float], step: np.ndarray) -> dict[str, float]:
    """Positions moved by a step in the chart about them."""
    moved: dict[str, float] = {}
    first = 0
    for frame in data.frames:
        d = step[first : first + len(frame.rates)]
        first += len(frame.rates)
        if frame.kind not in POSED:
            moved |= {name: q[name] + value for name, value in zip(frame.coordinates, d, strict=True)}
            continue
        rotation, position = pose(frame, q)
        if frame.kind == "planar":
            x, y, _ = position + rotation @ [d[0], d[1], 0.0]
            values = [x, y, q[frame.coordinates[2]] + d[2]]
        else:
            turn = Rotation.from_matrix(rotation) * Rotation.from_rotvec(d[-3:])
            values = [*(position + rotation @ d[:3]), *turn.as_quat(scalar_first=True)][-len(frame.coordinates) :]
        moved |= dict(zip(frame.coordinates, values, strict=True))
    return moved


def placement(frame: Frame) -> np.ndarray:
    """Homogeneous transform of the placed axes in the parent."""
    transform = np.eye(4)
    transform[:3, :3], transform[:3, 3] = frame.rotation, frame.position
    return transform


def pseudo_inertia(frame: Frame) -> np.ndarray:
    """Second moments of the mass of the body in homogeneous coordinates (1 last)."""
    moments = np.zeros((4, 4))
    moments[:3, :3] = np.trace(frame.inertia) / 2 * np.eye(3) - frame.inertia
    moments[:3, 3] = moments[3, :3] = frame.first_moment
    moments[3, 3] = frame.mass
    return moments


def normals(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that form a right-handed triad with the axis."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)
