"""A chain of point masses on bars without mass, turning against springs behind locked motors: frequencies by hand."""

from __future__ import annotations

import numpy as np

Array = np.ndarray
LENGTHS = (0.5, 0.4, 0.3)
MASSES = (3.0, 2.0, 1.0)

FILE = """
format = 1
name = "chain"
motion = "planar"
gravity = [0, 0, 0]
end_effector = "tip"
[constants]
first = {0}
second = {1}
third = {2}
[[frame]]
name = "a"
joint = "revolute"
inertia = {{ M = 3.0, MX = 1.5, ZZ = 0.75 }}
spring = {{ stiffness = "first" }}
[[frame]]
name = "motor-b"
parent = "a"
joint = "revolute"
actuated = true
place = {{ position = [0.5, 0, 0] }}
[[frame]]
name = "b"
parent = "motor-b"
joint = "revolute"
inertia = {{ M = 2.0, MX = 0.8, ZZ = 0.32 }}
spring = {{ stiffness = "second" }}
[[frame]]
name = "motor-c"
parent = "b"
joint = "revolute"
actuated = true
place = {{ position = [0.4, 0, 0] }}
[[frame]]
name = "c"
parent = "motor-c"
joint = "revolute"
inertia = {{ M = 1.0, MX = 0.3, ZZ = 0.09 }}
spring = {{ stiffness = "third" }}
[[point]]
name = "tip"
frame = "c"
position = [0.3, 0, 0]
[poses.bent]
motor-b = 1.0
motor-c = -0.5
[poses.folded]
motor-b = 2.0
motor-c = 1.0
"""
POSES = {"home": (0.0, 0.0), "bent": (1.0, -0.5), "folded": (2.0, 1.0)}


def frequencies(pose: str, stiffness: Array) -> Array:
    """Hz, lowest first."""
    angles = np.cumsum([0.0, *POSES[pose]])
    ends = np.cumsum(
        [[length * np.cos(a), length * np.sin(a)] for length, a in zip(LENGTHS, angles, strict=True)], axis=0
    )
    starts = np.vstack([[0.0, 0.0], ends[:-1]])
    M = np.zeros((3, 3))
    for k, mass in enumerate(MASSES):
        J = np.zeros((2, 3))
        for j in range(k + 1):
            x, y = ends[k] - starts[j]
            J[:, j] = -y, x
        M += mass * J.T @ J
    values = np.linalg.eigvals(np.linalg.solve(M, np.diag(stiffness)))
    return np.sort(np.sqrt(values.real)) / (2 * np.pi)
