"""Robot files of bars that the tests of statics and vibration share."""

from pathlib import Path

import numpy as np

import parflex

E, NU, DENSITY, Y, Z, LENGTH, G = 200e9, 0.3, 7800.0, 0.01, 0.02, 0.8, 9.81
AREA, IZ, IY = Y * Z, Z * Y**3 / 12, Y * Z**3 / 12
EA, EI, WEIGHT = E * AREA, E * IZ, DENSITY * AREA  # weight: mass per length
HEAD = """
format = 1
name = "bars"
motion = "{motion}"
gravity = {gravity}
[materials.steel]
elastic_modulus = 200e9
poisson_ratio = 0.3
density = 7800
[sections.bar]
shape = "rectangle"
y = 0.01
z = 0.02
"""
CANTILEVER = """
[[frame]]
name = "bar"
beam = { length = 0.8, material = "steel", section = "bar" }
"""
HINGE = 'joint = "revolute"\nactuated = true'


def robot(tmp_path: Path, text: str, gravity=(0, 0, 0), motion: str = "planar", elements: int | None = None):
    """A robot of bars, with the material and the section of this module."""
    path = tmp_path / f"bars-{len(list(tmp_path.iterdir()))}.toml"
    path.write_text(HEAD.format(motion=motion, gravity=list(gravity)) + text)
    return parflex.load(path, elements=elements)


def beam(tmp_path: Path, keys: str = "", more: str = "", joint: str = "", **words):
    """The bar with more keys of its beam, a joint at its root, and what is fixed to it."""
    text = CANTILEVER.replace('"bar" }', f'"bar", {keys} }}' if keys else '"bar" }')
    return robot(tmp_path, text.replace('name = "bar"\n', f'name = "bar"\n{joint}\n') + more, **words)


def cantilever(tmp_path: Path, gravity=(0, 0, 0), motion: str = "planar", elements: int | None = None):
    """A bar clamped at its root, along x."""
    return robot(tmp_path, CANTILEVER, gravity, motion, elements)


def bending(root: float) -> float:
    """Frequency in Hz of the bar for a root of its characteristic equation."""
    return root**2 / (2 * np.pi * LENGTH**2) * np.sqrt(EI / WEIGHT)
