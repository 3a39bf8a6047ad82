"""Two planar robots that no other test has, with any numbers, and their records by Lagrange's equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from support.oracles import led_records

Array = np.ndarray
# both slides on one rail: no effort feels that they are shifted together
RAIL = """
format = 1
name = "rail-pair"
motion = "planar"
gravity = [0, {gravity}, 0]
end_effector = "tip"
[legs]
names = ["left", "right"]
place_x = [-0.35, 0.35]
rod = [{rod1}, {rod2}]
rod_mass = [{m1}, {m2}]
slope = [0.9, 2.2]
stand = [0.1, -0.07]
[[legs.frame]]
name = "slide"
joint = "prismatic"
actuated = true
place = {{ position = ["place_x", 0, 0], rotation = [0, "pi/2", 0] }}
start = "stand"
inertia = {{ mass = {ms}, centre = [0, 0, 0], about_centre = [0.01, 0.01, 0.01] }}
friction = {{ viscous = {fv}, coulomb = {fs} }}
[[legs.frame]]
name = "rod"
parent = "slide"
joint = "revolute"
place = {{ rotation = [0, "-pi/2", 0] }}
start = "slope"
inertia = {{ mass = "rod_mass", centre = ["rod/2", 0, 0], about_centre = [0, 0, "rod_mass*rod**2/12"] }}
[[legs.point]]
name = "end"
frame = "rod"
position = ["rod", 0, 0]
[[point]]
name = "tip"
frame = "left.end"
position = [0, 0, 0]
[[closure]]
between = ["left.end", "right.end"]
joint = "revolute"
[poses.home]
"left.slide" = 0.1
"right.slide" = -0.07
"""
# a slide and a crank: two units
MIXED = """
format = 1
name = "slide-and-crank"
motion = "planar"
gravity = [0, {gravity}, 0]
end_effector = "tip"
[[frame]]
name = "slide"
joint = "prismatic"
actuated = true
place = {{ position = [-0.4, 0, 0], rotation = [0, "pi/2", 0] }}
start = 0.08
inertia = {{ mass = {ms}, centre = [0, 0, 0], about_centre = [0.01, 0.01, 0.01] }}
friction = {{ viscous = {fv}, coulomb = {fs} }}
[[frame]]
name = "rod"
parent = "slide"
joint = "revolute"
place = {{ rotation = [0, "-pi/2", 0] }}
start = 0.9
inertia = {{ mass = {m1}, centre = [0.3, 0.02, 0], about_centre = [0, 0, 0.03] }}
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
place = {{ position = [0.3, 0, 0] }}
start = 1.25
inertia = {{ mass = {m2}, centre = [0.1, 0, 0], about_centre = [0, 0, 0.01] }}
motor_inertia = 0.05
friction = {{ viscous = {fv2}, coulomb = {fs2} }}
[[frame]]
name = "coupler"
parent = "crank"
joint = "revolute"
mdh = {{ d = 0.3 }}
start = 1.0
inertia = {{ mass = {m2}, centre = [0.2, 0, 0], about_centre = [0, 0, 0.02] }}
[[point]]
name = "tip"
frame = "rod"
position = [{rod1}, 0, 0]
[[point]]
name = "end"
frame = "coupler"
position = [{rod2}, 0, 0]
[[closure]]
between = ["tip", "end"]
joint = "revolute"
[poses.home]
slide = 0.08
crank = 1.25
"""
ROBOTS = {"rail": RAIL, "mixed": MIXED}
RANGES = {
    "rod1": (0.5, 0.7), "rod2": (0.5, 0.7), "m1": (0.5, 3), "m2": (0.5, 3), "ms": (1, 6),
    "fv": (1, 10), "fs": (0.5, 4), "fv2": (0.05, 0.3), "fs2": (0.02, 0.2),
}  # fmt: skip


def written(name: str, seed: int, folder: Path) -> Path:
    """A robot file with random numbers; every other robot moves in an upright plane."""
    rng = np.random.default_rng(seed)
    numbers = {key: float(rng.uniform(*both)) for key, both in RANGES.items()}
    path = folder / f"{name}-{seed}.toml"
    path.write_text(ROBOTS[name].format(gravity=-9.81 if seed % 2 == 0 else 0.0, **numbers))
    return path


def recorded(path: Path, seed: int, reach: float = 0.08) -> dict[str, Array]:
    """4 s at 100 Hz, with noise of encoders, and of efforts 0.3 % of the largest."""
    led = led_records.LedRobot(path)
    t = np.arange(400) / 100
    clean = led.led(t, led.about_home(t, seed, reach))
    rng = np.random.default_rng(seed)
    for name in clean:
        if name.startswith("q."):
            clean[name] = clean[name] + 1e-6 * rng.standard_normal(len(t))
        elif name.startswith("effort."):
            clean[name] = clean[name] + 3e-3 * np.abs(clean[name]).max() * rng.standard_normal(len(t))
    return clean
