"""An arm on a spherical joint."""

BALL_ARM = """
format = 1
name = "ball-arm"
end_effector = "hand"
[materials.steel]
elastic_modulus = 200e9
density = 7850
[sections.box]
shape = "rectangle"
y = 0.02
z = 0.01
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
[[frame]]
name = "link"
parent = "arm"
place = { rotation = [0, 0.9, 0] }
beam = { length = 0.4, material = "steel", section = "box" }
[[frame]]
name = "hand"
parent = "link.tip"
joint = "spherical"
inertia = { mass = 0.6, centre = [0, 0, -0.05], about_centre = [1e-3, 2e-3, 1.5e-3] }
[poses.home]
arm = 0
"""
