"""A beam on a prismatic motor."""

BEAM = """
format = 1
name = "stub"
motion = "planar"
gravity = [0, 0, 0]
end_effector = "arm.tip"
[materials.steel]
elastic_modulus = 210e9
density = 7850
[sections.flat]
shape = "rectangle"
y = {thickness}
z = 0.02
[[frame]]
name = "car"
joint = "prismatic"
actuated = true
place = {{ rotation = [0, "pi/2", 0] }}
inertia = {{ mass = 1 }}
[[frame]]
name = "back"
parent = "car"
place = {{ rotation = [0, "-pi/2", 0] }}
[[frame]]
name = "arm"
parent = "back"
place = {{ rotation = [0, 0, "pi/2"] }}
beam = {{ length = 0.1, material = "steel", section = "flat", elements = 4 }}
"""
