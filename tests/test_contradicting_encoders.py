"""Encoders of more motors than freedoms: the one that contradicts the others through the loops is named."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import parflex
from parflex import ParflexError

FIRST, SECOND, RADIUS, MASS = 0.22, 0.24, 0.35, 2.0  # m, kg: a mass on the pin of three legs, by hand
ANGLES = np.pi / 2 + 2 * np.pi / 3 * np.arange(3)
MOTORS = ("a0", "a1", "a2")


def angles(x, y):
    """Of the motors and of the links behind them, by triangles."""
    base = RADIUS * np.stack([np.cos(ANGLES), np.sin(ANGLES)])
    way = np.stack([x, y])[:, None, :] - base[:, :, None]
    d = np.hypot(*way)
    first = np.arctan2(way[1], way[0]) + np.arccos((FIRST**2 + d**2 - SECOND**2) / (2 * FIRST * d))
    first = np.mod(first, 2 * np.pi)
    second = np.arctan2(way[1] - FIRST * np.sin(first), way[0] - FIRST * np.cos(first)) - first
    return first, np.mod(second + np.pi, 2 * np.pi) - np.pi


FRAME = """[[frame]]
name = "{name}"
parent = "{parent}"
joint = "revolute"
place = {{ position = [{x:.16g}, {y:.16g}, 0.0] }}
start = {start:.16g}
"""
LEG = (
    FRAME
    + """actuated = true
"""
)
REST = """[[point]]
name = "e{k}"
frame = "b{k}"
position = [0.24, 0.0, 0.0]
"""
WHOLE = """format = 1
name = "three legs"
motion = "planar"
gravity = [0.0, -9.81, 0.0]
end_effector = "e0"
{frames}
[[closure]]
between = ["e0", "e1"]
joint = "revolute"
[[closure]]
between = ["e0", "e2"]
joint = "revolute"
[poses.home]
"e0.x" = 0.0
"e0.y" = 0.0
"""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    first, second = (part[:, 0] for part in angles(np.zeros(1), np.zeros(1)))
    text = ""
    for k, angle in enumerate(ANGLES):
        x, y = RADIUS * np.cos(angle), RADIUS * np.sin(angle)
        text += LEG.format(name=f"a{k}", parent="base", x=x, y=y, start=first[k])
        text += FRAME.format(name=f"b{k}", parent=f"a{k}", x=FIRST, y=0.0, start=second[k])
        text += f"inertia = {{ mass = {MASS}, centre = [{SECOND}, 0.0, 0.0] }}\n" if k == 0 else ""
    text += "".join(REST.format(k=k) for k in range(3))
    file = tmp_path_factory.mktemp("legs") / "legs.toml"
    file.write_text(WHOLE.format(frames=text))
    return parflex.load(str(file))


@cache
def moved():
    """A record of the mass along two sines: J^T tau is its force, J by differences; with noise of encoders."""
    t = np.arange(0, 4, 4e-3)
    rates = np.array([[3.0, 4.1]]).T
    place = 0.06 * np.sin(rates * t + [[0.3], [1.0]])
    force = MASS * (-(rates**2) * place + [[0.0], [9.81]])
    q, small = angles(*place)[0], 1e-6
    J = np.stack([(angles(*(place + small * e))[0] - q) / small for e in np.eye(2)[:, :, None]], axis=1)
    effort = np.stack([np.linalg.pinv(J[:, :, k].T) @ force[:, k] for k in range(len(t))], axis=1)
    rng = np.random.default_rng(0)
    q = q + 1e-5 * rng.standard_normal(q.shape)
    effort = effort * (1 + 1e-3 * rng.standard_normal(effort.shape))
    record = {"t": t} | {f"q.{m}": q[k] for k, m in enumerate(MOTORS)}
    return record | {f"effort.{m}": effort[k] for k, m in enumerate(MOTORS)}


def told(robot, change=None, column="q.a1"):
    record = dict(moved())
    record[column] = record[column] if change is None else change(record[column])
    return parflex.identify(robot, record).warnings


def test_right_encoders_and_efforts_of_spare_motors_are_not_doubted(robot):
    assert not told(robot)


@pytest.mark.few
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda q: q + 0.05, "agree with the zero of 'a1' off by 0.05 rad: add -0.05 rad to its offset"),
        (lambda q: 0 * q + q[0], "agree without 'a1', which does not move though loops move it"),
        (lambda q: q[0] + 1.2 * (q - q[0]), "agree with another gain of positions of 'a1': give 0.8333 times"),
    ],
)
def test_the_encoder_that_contradicts_the_others_is_named(robot, change, words):
    (text,) = [one for one in told(robot, change) if "contradict" in one]
    assert "loops stay open by up to" in text and words in text


def test_no_encoder_is_named_where_two_are_wrong(robot):
    record = dict(moved()) | {"q.a1": moved()["q.a1"] + 0.05, "q.a0": moved()["q.a0"] + 0.03}
    (text,) = [one for one in parflex.identify(robot, record).warnings if "contradict" in one]
    assert "no zero, sign or gain of one encoder explains it" in text


@pytest.mark.parametrize("change", [lambda q: -q, lambda q: 2 * q[0] - q])
def test_an_encoder_with_which_loops_do_not_close_at_all_is_named(robot, change):
    with pytest.raises(ParflexError, match=r"agree with the other sign of positions of 'a1': give -1 times its gain"):
        told(robot, change)


@pytest.mark.parametrize("gain", [1.2, -1.0, 1e3])
def test_another_gain_of_a_spare_motor_leaves_residuals_above_noise(robot, gain):
    assert any("above the noise level" in text for text in told(robot, lambda effort: gain * effort, "effort.a1"))
