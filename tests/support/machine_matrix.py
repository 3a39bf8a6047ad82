"""A planar arm with options for each joint."""

from __future__ import annotations

ARM = """
format = 1
name = "arm"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "shoulder"
joint = "revolute"
start = 0.4
actuated = SHOULDER
inertia = { mass = 2.0, centre = [0.2, 0.01, 0], about_centre = [0, 0, 0.02] }
[[frame]]
name = "elbow"
parent = "shoulder"
joint = "revolute"
start = 0.7
actuated = ELBOW
place = { position = [0.4, 0, 0] }
inertia = { mass = 1.0, centre = [0.15, 0.02, 0], about_centre = [0, 0, 0.01] }
[[point]]
name = "hand"
frame = "elbow"
position = [0.3, 0.05, 0]
[[point]]
name = "wall"
frame = "base"
position = [0.1, 0.9, 0]
[[element]]
name = "part"
between = ["wall", "hand"]
"""


def arm(keys: str, shoulder: bool = True, elbow: bool = True) -> str:
    """A planar arm of two links with an element from the wall to its hand."""
    marks = {"SHOULDER": str(shoulder).lower(), "ELBOW": str(elbow).lower()}
    text = ARM
    for word, mark in marks.items():
        text = text.replace(word, mark)
    return text + keys.replace("; ", "\n") + "\n"
