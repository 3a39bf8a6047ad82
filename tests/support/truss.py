"""A truss of bars."""

from __future__ import annotations

TRUSS = """
format = 1
name = "truss"
end_effector = "roof"
gravity = [0, 0, 0]
[[frame]]
name = "lift"
joint = "prismatic"
actuated = true
place = { position = [0, 0, 0.05] }
inertia = { mass = 1 }
[[frame]]
name = "roof"
parent = "lift"
joint = "prismatic"
inertia = { mass = 1 }
[[frame]]
name = "wall"
parent = "lift"
place = { position = [1, 0, -0.05] }
[[element]]
name = "bar"
kind = "spring"
between = ["wall", "roof"]
stiffness = 1000
rest = 1.001249219725039
"""
