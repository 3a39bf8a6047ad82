"""Two masses of 1 kg on slides along x, the second one carried by the first or beside it: modes by hand.

Carried, with springs k1 and k2, squares of angular frequencies are the roots of x^2 - (k1 + 2 k2) x + k1 k2: springs
2 k2 and k1/2 have the same. Beside each other they are k1 and k2, whichever is the larger.
"""

import numpy as np

Array = np.ndarray
SENSORS = ("c1.x", "c2.x")
FILE = """
format = 1
name = "pair"
gravity = [0, 0, 0]
end_effector = "c2"
[constants]
first = {0}
second = {1}
[[frame]]
name = "drive"
joint = "prismatic"
actuated = true
place = {{ rotation = [0, "pi/2", 0] }}
[[frame]]
name = "c1"
parent = "drive"
joint = "prismatic"
spring = {{ stiffness = "first" }}
inertia = {{ mass = 1.0 }}
[[frame]]
name = "c2"
parent = "{2}"
joint = "prismatic"
spring = {{ stiffness = "second" }}
inertia = {{ mass = 1.0 }}
[poses.out]
drive = 0.3
"""


def file(first: float, second: float, carried: bool = True) -> str:
    """The robot file."""
    return FILE.format(first, second, "c1" if carried else "drive")


def modes(first: float, second: float, carried: bool = True) -> tuple[Array, Array]:
    """Hz, lowest first, and what the sensors see of the modes: sensors x modes."""
    if not carried:
        order = np.argsort([first, second])
        return np.sqrt(np.array([first, second])[order]) / (2 * np.pi), np.eye(2)[:, order]
    half, product = (first + 2 * second) / 2, first * second
    squares = half + np.sqrt(half**2 - product) * np.array([-1.0, 1.0])
    return np.sqrt(squares) / (2 * np.pi), np.array([1 - squares / second, [1.0, 1.0]])
