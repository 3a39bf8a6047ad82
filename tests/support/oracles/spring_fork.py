"""Two arms on a base that turns against a spring, each with its own spring behind a locked motor: modes by hand.

Arms are alike, so that two modes come near to each other and veer where one spring grows and the other falls.
"""

import numpy as np

Array = np.ndarray
LENGTHS = (0.4, 0.45)
MASSES = (2.0, 1.6)
PLACES = (0.3, -0.3)  # of the motors on the base, along x
BASE, STIFFNESS = 0.2, 20000.0  # inertia and spring of the base
POSES = {"home": (0.0, 3.0), "up": (1.6, 1.4), "apart": (0.4, 2.2), "down": (-1.2, -2.6)}

FILE = """
format = 1
name = "fork"
motion = "planar"
gravity = [0, 0, 0]
end_effector = "tip"
[constants]
first = {0}
second = {1}
[[frame]]
name = "base-turn"
joint = "revolute"
inertia = {{ ZZ = 0.2 }}
spring = {{ stiffness = 20000 }}
[[frame]]
name = "motor-a"
parent = "base-turn"
joint = "revolute"
actuated = true
place = {{ position = [0.3, 0, 0] }}
start = 0.0
[[frame]]
name = "a"
parent = "motor-a"
joint = "revolute"
spring = {{ stiffness = "first" }}
point_masses = [{{ mass = 2.0, position = [0.4, 0, 0] }}]
[[frame]]
name = "motor-b"
parent = "base-turn"
joint = "revolute"
actuated = true
place = {{ position = [-0.3, 0, 0] }}
start = 3.0
[[frame]]
name = "b"
parent = "motor-b"
joint = "revolute"
spring = {{ stiffness = "second" }}
point_masses = [{{ mass = 1.6, position = [0.45, 0, 0] }}]
[[point]]
name = "tip"
frame = "a"
position = [0.4, 0, 0]
[poses.up]
motor-a = 1.6
motor-b = 1.4
[poses.apart]
motor-a = 0.4
motor-b = 2.2
[poses.down]
motor-a = -1.2
motor-b = -2.6
"""


def frequencies(pose: str, first: float, second: float) -> Array:
    """Hz, lowest first."""
    M = np.diag([BASE, 0.0, 0.0])
    for k, (mass, length, place, angle) in enumerate(zip(MASSES, LENGTHS, PLACES, POSES[pose], strict=True)):
        arm = length * np.array([np.cos(angle), np.sin(angle)])
        J = np.zeros((2, 3))
        J[:, 0] = -arm[1], place + arm[0]
        J[:, 1 + k] = -arm[1], arm[0]
        M += mass * J.T @ J
    values = np.linalg.eigvals(np.linalg.solve(M, np.diag([STIFFNESS, first, second])))
    return np.sort(np.sqrt(values.real)) / (2 * np.pi)
