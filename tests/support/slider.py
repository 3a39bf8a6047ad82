"""A slider on a spring."""

SLIDER = """
format = 1
name = "slider"
motion = "planar"
gravity = [0, 0, 0]
[[frame]]
name = "s"
joint = "prismatic"
place = { rotation = [0, "pi/2", 0] }
inertia = { mass = 2 }
spring = { stiffness = 5e5 }
"""
