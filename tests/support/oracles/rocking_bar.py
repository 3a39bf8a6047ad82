"""A bar of 1 kg on two springs at its ends, 1 m from its middle, that lifts and rocks: modes by hand.

Stiffness over lift and angle is ((kL + kR, kR - kL), (kR - kL, kL + kR)), and mass (1, J). Which spring is the stiffer
one does not show, and a small difference shows by its square.
"""

import numpy as np

Array = np.ndarray
FILE = """
format = 1
name = "bar"
gravity = [0, 0, 0]
end_effector = "bar"
[constants]
left = {0}
right = {1}
inertia = {2}
[[frame]]
name = "lift"
joint = "prismatic"
[[frame]]
name = "bar"
parent = "lift"
joint = "revolute"
place = {{ rotation = ["-pi/2", 0, 0] }}
inertia = {{ mass = 1.0, about_centre = [0.1, 0.1, "inertia"] }}
"""
SPRING = """
[[point]]
name = "end_{0}"
frame = "bar"
position = [{1}, 0, 0]
[[point]]
name = "ground_{0}"
frame = "base"
position = [{1}, 0, -0.3]
[[element]]
name = "spring_{0}"
kind = "spring"
between = ["ground_{0}", "end_{0}"]
stiffness = "{0}"
rest = 0.3
"""


def file(left: float, right: float, inertia: float) -> str:
    """The robot file."""
    return FILE.format(left, right, inertia) + SPRING.format("left", -1.0) + SPRING.format("right", 1.0)


def frequencies(left: float, right: float, inertia: float) -> Array:
    """Hz, lowest first."""
    root = np.array([1.0, inertia**-0.5])
    stiffness = np.array([[left + right, right - left], [right - left, left + right]])
    return np.asarray(np.sqrt(np.linalg.eigvalsh(stiffness * np.outer(root, root))) / (2 * np.pi))
