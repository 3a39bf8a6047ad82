"""Frequencies, poles and their slopes with every kind of element, on joints, between points and on free platforms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import parflex
from parflex.design.design_state import Circumstances, SensitiveDesign
from parflex.updating.modelled.pose_modes import modes_at

CONSTANTS = {"m": 2.0, "k": 900.0, "c": 12.0, "a": 0.25}
KEYS = [f"constants.{key}" for key in CONSTANTS]
HEAD = "format = 1\nname = 'sprung'\ngravity = [0, 0, 0]\n[constants]\n" + "".join(
    f"{key} = {value}\n" for key, value in CONSTANTS.items()
)
ARM = (
    HEAD.replace("[constants]", "end_effector = 'tip'\n[constants]")
    + """
[[frame]]
name = "first"
joint = "revolute"
inertia = { mass = "m", centre = [0.1, 0, 0], about_centre = [0.01, 0.01, 0.02] }
spring = { stiffness = 150.0, rest = 0.0 }
damper = 0.3
[[frame]]
name = "second"
parent = "first"
joint = "revolute"
place = { position = [0.3, 0, 0] }
inertia = { mass = 1.0, centre = [0.1, 0, 0], about_centre = [0.01, 0.01, 0.01] }
spring = { stiffness = 80.0, rest = 0.0 }
[[point]]
name = "tip"
frame = "second"
position = ["a", 0.05, 0]
[[point]]
name = "wall"
frame = "base"
position = [0.4, 0.4, 0]
[poses.home]
first = 0.0
second = 0.0
"""
)
TABLE = HEAD + """
[platform]
start = [0, 0, 0]
inertia = { mass = "m", about_centre = [0.05, 0.06, 0.07] }
points = { p1 = ["a", 0.1, 0], p2 = [-0.2, 0.15, 0], p3 = [0, "-a", 0.1] }
""" + "".join(
    f"[[point]]\nname = '{place}{n}'\nframe = 'base'\nposition = {at}\n"
    for n, (place, at) in enumerate((p, q) for p, q in (
        ("g", [0.25, 0.1, 0.5]), ("g", [-0.2, 0.15, 0.5]), ("g", [0, -0.25, 0.6]), ("g", [0.75, 0.1, 0]),
        ("g", [-0.2, 0.65, 0]), ("g", [0.5, -0.25, 0.1]),
    ))
)  # fmt: skip
ELEMENTS = {  # kind of element, beside the ends
    "spring": 'kind = "spring"\nstiffness = "k"\nrest = 0.3\ndamping = "c"',
    "cable": 'kind = "cable"\nstiffness = "k"\nrest = 0.3\ndamping = "c"',
    "damper": 'kind = "damper"\ndamping = "c"',
    "force": 'kind = "force"\ndamping = "c"\n'
             'table = { length = [[0.1, "-k/10"], [0.9, "k/10"]], speed = [[-1, "-c"], [1, "c"]] }',
    "spring by a table": 'kind = "spring"\ntable = [[0.1, "-k/10"], [0.4, 0], [0.9, "k/5"]]\ndamping = "c"',
}  # fmt: skip
COUPLING = """
[[coupling]]
name = "belt"
joint = "second"
terms = { first = 0.5 }
stiffness = "k/10"
damping = "c/100"
"""


def element(name: str, ends: tuple[str, str], text: str) -> str:
    return f'[[element]]\nname = "{name}"\nbetween = ["{ends[0]}", "{ends[1]}"]\n{text}\n'


def held(text: str) -> str:
    """A free platform on six springs, one of which is of a kind."""
    ends = [("g0", "platform.p1"), ("g1", "platform.p2"), ("g2", "platform.p3"), ("g3", "platform.p1"),
            ("g4", "platform.p2"), ("g5", "platform.p3")]  # fmt: skip
    plain = 'kind = "spring"\nstiffness = 700.0\nrest = 0.5\ndamping = 3.0'
    return TABLE + "".join(element(f"s{n}", pair, plain) for n, pair in enumerate(ends)) + element("x", ends[2], text)


ROBOTS = {
    **{f"{kind} between links": ARM + element("x", ("wall", "tip"), text) for kind, text in ELEMENTS.items()},
    **{f"{kind} on a free platform": held(text) for kind, text in ELEMENTS.items()},
    "elastic coupling": ARM + COUPLING,
}


def poles(robot, about):
    """All that vibrate, by LAPACK on the whole matrices: frequency |pole|/(2 pi) and ratio, by frequency."""
    model = parflex.linear_model(robot, "home", about=about)
    M, D, K = (np.asarray(one, dtype=float) for one in (model.M, model.D, model.K))
    I, O = np.eye(len(M)), np.zeros_like(M)
    values = scipy.linalg.eigvals(np.block([[O, I], [-K, -D]]), np.block([[I, O], [O, M]]))
    values = values[values.imag > 1e-6]
    return np.array(sorted((abs(one) / (2 * np.pi), -one.real / abs(one)) for one in values))


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "about"),
    [
        *((name, "undeformed") for name in ROBOTS),
        ("spring between links", "equilibrium"),
        ("cable between links", "equilibrium"),
    ],
)
def test_poles_have_the_slopes_of_their_differences(name, about, tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(ROBOTS[name])
    robot = parflex.load(path)
    modes = modes_at(robot, "home", Circumstances(about=about), 3, SensitiveDesign(robot, KEYS))
    wanted, changes = poles(robot, about), []
    for key in KEYS:
        value = CONSTANTS[key.split(".")[1]]
        sides = [poles(parflex.load(path, settings={key: value * (1 + way)}), about) for way in (1e-4, -1e-4)]
        changes.append((sides[0] - sides[1]) / 2e-4)
    for mode in range(2):
        f, ratio, *slopes = modes.damped(mode)
        at = int(np.argmin(np.abs(wanted[:, 0] - f)))
        assert [f, ratio] == pytest.approx(wanted[at], rel=1e-9, abs=1e-12)
        found = np.transpose(slopes) * np.array(list(CONSTANTS.values()))[:, None]
        # differences of second order: 1e-8 of what changes, and rounding over steps of 1e-4
        assert found == pytest.approx(np.array(changes)[:, at], rel=1e-5, abs=1e-6)
