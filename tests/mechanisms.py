"""Robots that were never in the catalogue, written from the description of the file format alone."""

from __future__ import annotations

THREE_PRS = """
# three slides on upright rails, hinged rods, balls: heave and two tilts, with parasitic motion
format = 1
name = "3-prs"
[constants]
rail = 0.40
reach = 0.20
rod = 0.45
[platform]
start = [0, 0, 0.6]
inertia = { mass = 3.1, centre = [0.01, 0.005, 0.02], about_centre = [0.03, 0.035, 0.06] }
points = { a = ["reach", 0, 0], b = ["-reach/2", "reach*sqrt(3)/2", 0], c = ["-reach/2", "-reach*sqrt(3)/2", 0] }
[legs]
names = ["a", "b", "c"]
gamma = [0, "2*pi/3", "-2*pi/3"]
[[legs.frame]]
name = "slide"
joint = "prismatic"
actuated = true
mdh = { gamma = "gamma", d = "rail" }
start = 0.2
inertia = { mass = 1.1, about_centre = [0.002, 0.002, 0.003] }
motor_inertia = 2
friction = { viscous = 15, coulomb = 3 }
[[legs.frame]]
name = "rod"
parent = "slide"
joint = "revolute"
mdh = { alpha = "pi/2" }
start = 2.0
inertia = { mass = 0.8, centre = ["rod/2", 0.01, 0.02], about_centre = [0.001, 0.014, 0.014] }
damper = 0.03
[[legs.point]]
name = "ball"
frame = "rod"
position = ["rod", 0, 0]
[[legs.closure]]
between = ["platform.{leg}", "ball"]
joint = "spherical"
[poses.home]
z = 0.6
rx = 0
"""

PLANAR_RPR = """
# driven strokes that lie in the plane between hinges
format = 1
name = "planar-rpr"
motion = "planar"
gravity = [1.5, -9.6, 0]
[platform]
name = "table"
start = [0.02, 0.05, 0.5]
inertia = { mass = 2.2, centre = [0.02, -0.01, 0], about_centre = [0, 0, 0.03] }
[legs]
names = ["one", "two", "three"]
base_angle = ["-pi/2", "pi/6", "5*pi/6"]
top_angle = ["-pi/2 - 0.2", "pi/6 + 0.1", "5*pi/6"]
[[legs.frame]]
name = "swing"
joint = "revolute"
place = { position = ["0.5*cos(base_angle)", "0.5*sin(base_angle)", 0] }
start = "base_angle - pi/2"
inertia = { mass = 0.9, centre = [0.01, 0.12, 0], about_centre = [0, 0, 0.006] }
friction = { viscous = 0.1, coulomb = 0.05 }
[[legs.frame]]
name = "stroke"
parent = "swing"
joint = "prismatic"
actuated = true
place = { rotation = ["pi/2", 0, 0] }
start = -0.3
inertia = { mass = 0.6, centre = [0.005, 0, 0.08], about_centre = [0.002, 0.002, 0.001] }
motor_inertia = 1.5
spring = { stiffness = 30, rest = -0.25 }
[[legs.point]]
name = "knuckle"
frame = "table"
position = ["0.14*cos(top_angle)", "0.14*sin(top_angle)", 0]
[[legs.closure]]
between = ["stroke", "knuckle"]
joint = "revolute"
[poses.home]
x = 0.02
y = 0.05
theta = 0.5
"""

SPATIAL_FOUR_BAR = """
# crank, coupler on a cross, ball, rocker about a skew axis
format = 1
name = "spatial-four-bar"
gravity = [0, 3, -9]
end_effector = "coupler"
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 0.4
inertia = { M = 0.5, MX = 0.03, MY = 0.002, XX = 0.001, YY = 0.004, ZZ = 0.005, XY = -0.0003 }
[[frame]]
name = "coupler"
parent = "crank"
joint = "universal"
place = { position = [0.12, 0, 0.02], rotation = [0.2, 1.0, 0.1] }
start = [0.1, -0.2]
inertia = { mass = 0.9, centre = [0.01, 0.02, 0.2], about_centre = [0.02, 0.021, 0.001] }
[[frame]]
name = "rocker"
joint = "revolute"
place = { position = [0.5, 0.1, 0.05], rotation = [0, 1.2, 0.3] }
start = 1.0
inertia = { mass = 0.7, centre = [0.12, 0, 0], about_centre = [0.001, 0.006, 0.006] }
damper = 0.05
[[point]]
name = "coupler-ball"
frame = "coupler"
position = [0, 0, 0.5]
[[point]]
name = "rocker-ball"
frame = "rocker"
position = [0.25, 0, 0.03]
[[closure]]
between = ["coupler-ball", "rocker-ball"]
joint = "spherical"
[poses.home]
crank = 0.4
"""

RCCC = """
# spatial four-bar with three cylindrical joints, one of them at the closure
format = 1
name = "rccc"
end_effector = "coupler"
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 0.6
inertia = { mass = 0.6, centre = [0.05, 0, 0], about_centre = [0.001, 0.002, 0.002] }
motor_inertia = 0.01
[[frame]]
name = "coupler"
parent = "crank"
joint = "cylindrical"
mdh = { alpha = 0.5, d = 0.1, r = 0.02 }
start = [0.3, 0.05]
inertia = { mass = 1.2, centre = [0.12, 0.01, 0.03], about_centre = [0.003, 0.01, 0.011] }
[[frame]]
name = "follower"
parent = "coupler"
joint = "cylindrical"
mdh = { alpha = 0.9, d = 0.3 }
start = [1.2, -0.05]
inertia = { mass = 0.8, centre = [0.08, 0, -0.02], about_centre = [0.002, 0.005, 0.006] }
[[point]]
name = "pillar"
frame = "base"
position = [0.35, 0.05, 0]
rotation = [0.8, 0.1, 0]
[[closure]]
between = ["pillar", "follower"]
joint = "cylindrical"
axis_2 = [0.1, 0.6, 0.8]
"""

WRIST = """
# a plate on a ball, turned by three driven struts on crosses
format = 1
name = "wrist"
end_effector = "plate"
[[frame]]
name = "mast"
place = { position = [0, 0, 0.3] }
inertia = { mass = 5 }
[[frame]]
name = "plate"
parent = "mast"
joint = "spherical"
start = [0.1, -0.15, 0.4]
inertia = { mass = 1.6, centre = [0.01, 0.02, 0.06], about_centre = [0.012, 0.013, 0.02] }
point_masses = [{ mass = 0.2, position = [0.1, 0, 0.05] }]
[legs]
names = ["p", "q", "r"]
gamma = [0.1, 2.3, 4.2]
[[legs.frame]]
name = "cross"
joint = "universal"
place = { position = ["0.3*cos(gamma)", "0.3*sin(gamma)", 0] }
inertia = { mass = 0.5, centre = [0, 0, 0.1], about_centre = [0.003, 0.003, 0.0004] }
[[legs.frame]]
name = "strut"
parent = "cross"
joint = "prismatic"
actuated = true
start = 0.3
inertia = { mass = 0.3, centre = [0, 0, -0.08], about_centre = [0.001, 0.001, 0.0001] }
friction = { viscous = 10 }
[[legs.point]]
name = "horn"
frame = "plate"
position = ["0.16*cos(gamma - 0.5)", "0.16*sin(gamma - 0.5)", -0.02]
[[legs.closure]]
between = ["strut", "horn"]
joint = "spherical"
[poses.home]
"plate.rx" = 0.1
"plate.ry" = -0.15
"plate.rz" = 0.4
"""

TWO_BODIES = """
# a carriage on a round bar, a drawer in the carriage: both are free bodies tied by closures, three struts drive them
format = 1
name = "two-bodies"
end_effector = "carriage"
[[frame]]
name = "carriage"
joint = "free"
start = [-0.05, 0, 0.5, 0, 0, "-atan(0.05)"]
inertia = { mass = 4, centre = [0.02, 0.05, 0.01], about_centre = [0.05, 0.06, 0.07] }
[[frame]]
name = "drawer"
joint = "free"
start = [-0.05, 0.1, 0.52, 0, 0, "-atan(0.05)"]
inertia = { mass = 1.5, centre = [0, 0.1, 0.05], about_centre = [0.01, 0.012, 0.009] }
[[point]]
name = "bar"
frame = "base"
position = [0, 0, 0.5]
rotation = [0, "pi/2", 0]
[[closure]]
name = "bar"
between = ["bar", "carriage"]
joint = "cylindrical"
axis_2 = [1, 0.05, 0]
[[closure]]
name = "drawer"
between = ["carriage", "drawer"]
joint = "prismatic"
axis = [0, 1, 0.2]
[legs]
names = ["a", "b", "c"]
foot_x = [-0.4, 0.3, 0.2]
foot_y = [0.2, -0.3, 0.5]
[[legs.frame]]
name = "cross"
joint = "universal"
place = { position = ["foot_x", "foot_y", 0] }
inertia = { mass = 0.5, centre = [0, 0, 0.1], about_centre = [0.003, 0.003, 0.0004] }
[[legs.frame]]
name = "strut"
parent = "cross"
joint = "prismatic"
actuated = true
start = 0.5
inertia = { mass = 0.4, centre = [0, 0, -0.1], about_centre = [0.002, 0.002, 0.0002] }
motor_inertia = 0.7
[[point]]
name = "top-a"
frame = "carriage"
position = [-0.1, 0.08, 0.02]
[[point]]
name = "top-b"
frame = "carriage"
position = [0.12, -0.1, 0.05]
[[point]]
name = "top-c"
frame = "drawer"
position = [0.05, 0.15, 0]
[[legs.closure]]
between = ["strut", "top-{leg}"]
joint = "spherical"
[poses.home]
x = -0.05
"""

NESTED_LOOPS = """
# a five-bar whose left leg is a parallelogram: its plate keeps its direction and carries the next bar
format = 1
name = "nested"
motion = "planar"
gravity = [0, -9.81, 0]
end_effector = "tip"
[constants]
arm = 0.3
gap = 0.08
bar = 0.35
[[frame]]
name = "driver"
joint = "revolute"
actuated = true
place = { position = [-0.2, 0, 0] }
start = 1.9
inertia = { mass = 0.5, centre = ["arm/2", 0, 0], about_centre = [0, 0, 0.004] }
friction = { viscous = 0.1, coulomb = 0.2 }
[[frame]]
name = "plate"
parent = "driver"
joint = "revolute"
place = { position = ["arm", 0, 0] }
start = -1.9
inertia = { mass = 0.4, centre = ["gap/2", 0.02, 0], about_centre = [0, 0, 0.0008] }
[[frame]]
name = "follower"
joint = "revolute"
place = { position = ["-0.2 + gap", 0, 0] }
start = 1.9
inertia = { mass = 0.3, centre = ["arm/2", 0.01, 0], about_centre = [0, 0, 0.003] }
[[frame]]
name = "slider"
parent = "plate"
joint = "prismatic"
place = { position = ["gap", 0.05, 0], rotation = [0, "pi/2", 0] }
start = 0.1
inertia = { mass = 0.35, centre = [0.01, 0, 0.03], about_centre = [0.001, 0.002, 0.001] }
spring = { stiffness = 50, rest = 0.05 }
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
place = { position = [0.25, 0, 0] }
start = 1.2
inertia = { mass = 0.5, centre = ["arm/2", 0, 0], about_centre = [0, 0, 0.004] }
[[frame]]
name = "bar"
parent = "crank"
joint = "revolute"
place = { position = ["arm", 0, 0] }
start = 1.4
inertia = { mass = 0.4, centre = ["bar/2", 0, 0], about_centre = [0, 0, 0.004] }
[[point]]
name = "plate-end"
frame = "plate"
position = ["gap", 0, 0]
[[point]]
name = "follower-end"
frame = "follower"
position = ["arm", 0, 0]
[[point]]
name = "tip"
frame = "slider"
position = [0, 0, 0]
[[point]]
name = "bar-end"
frame = "bar"
position = ["bar", 0, 0]
[[closure]]
name = "parallelogram"
between = ["plate-end", "follower-end"]
joint = "revolute"
[[closure]]
name = "outer"
between = ["tip", "bar-end"]
joint = "revolute"
"""

INVENTED = {  # text, freedoms, redundant rows
    "3-prs": (THREE_PRS, 3, 0),
    "planar-rpr": (PLANAR_RPR, 3, 0),
    "spatial-four-bar": (SPATIAL_FOUR_BAR, 1, 0),
    "rccc": (RCCC, 1, 0),
    "wrist": (WRIST, 3, 0),
    "two-bodies": (TWO_BODIES, 3, 0),
    "nested": (NESTED_LOOPS, 2, 0),
}
