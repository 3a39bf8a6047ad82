"""Recordings of an arm and of an axis, computed from known parameters."""

from __future__ import annotations

from functools import cache

import numpy as np

import parflex

RUBBED = {"legs.frame.1.friction": {"viscous": 0.1, "coulomb": 0.1}}


AXIS = """
format = 1
name = "axis"
gravity = [0, 0, 0]
[[frame]]
name = "axis"
joint = "prismatic"
actuated = true
inertia = { M = 5 }
friction = { viscous = 1, coulomb = 1 }
"""


@cache
def axis_record(payload=0.0, noise=0.0):
    """A mass that slides, with friction that differs by direction, written down by hand."""
    t = np.arange(4000) * 1e-3
    x = 0.1 * np.sin(2 * t) + 0.05 * np.sin(7 * t)
    v = 0.2 * np.cos(2 * t) + 0.35 * np.cos(7 * t)
    a = -0.4 * np.sin(2 * t) - 2.45 * np.sin(7 * t)
    force = (8.0 + payload) * a + np.where(v > 0, 12 * v + 3, 20 * v - 5)
    wander = np.cumsum(np.random.default_rng(0).standard_normal(len(t))) * noise
    return {"t": t, "x": 1e3 * (x - 0.3), "i": force / 2.5 + wander}


def slide(tmp_path):
    (tmp_path / "axis.toml").write_text(AXIS)
    return parflex.load(tmp_path / "axis.toml")


BY_HAND = {
    "position": {"axis": {"column": "x", "gain": 1e-3, "offset": 0.3}},
    "effort": {"axis": {"column": "i", "gain": 2.5}},
}


def loaded(tmp_path, carried):
    """Two records, without and with a payload."""
    rng = np.random.default_rng(5)
    for name, payload in (("empty", 0.0), ("loaded", carried)):
        one = dict(axis_record(payload))
        one["i"] = one["i"] + 0.02 * rng.standard_normal(len(one["i"]))
        np.savez(tmp_path / f"{name}.npz", **one)
    return [str(tmp_path / "empty.npz"), str(tmp_path / "loaded.npz")]


ARM = (
    'format = 1\nname = "arm"\nmotion = "planar"\ngravity = [0, -9.81, 0]\n'
    '[[frame]]\nname = "s"\njoint = "revolute"\nactuated = true\ninertia = { M = 3, ZZ = 0.1, MX = 0.6 }\n'
    '[[frame]]\nname = "e"\nparent = "s"\njoint = "revolute"\nactuated = true\nplace = { position = [0.5, 0, 0] }\n'
    "inertia = { M = 2, ZZ = 0.1, MX = 0.4 }\nfriction = { viscous = 0.5, coulomb = 0.5 }\n"
)


def arm_record(robot):
    """Small motions: in degrees they are below a turn in radians."""
    t = np.arange(0, 4, 2e-3)
    q = np.stack([0.06 * np.sin(5 * t), 0.05 * np.sin(7 * t + 1)], axis=1)
    qd, qdd = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    tau = np.array([parflex.inverse_dynamics(robot, *row) for row in zip(q, qd, qdd, strict=True)])
    return {"t": t, "q.s": q[:, 0], "q.e": q[:, 1], "effort.s": tau[:, 0], "effort.e": tau[:, 1]}


UNDER_CONTROL = {
    "position": {"axis": "x"},
    "effort": {"axis": {"column": "i", "gain": 2.5}},
    "reference": {"axis": "ref"},
    "controller": {"kp": 60, "kv": 40, "limit": 30},
}


HAND = {"M[axis]": 8.0, "FV[axis]": 12.0, "FS[axis]": 3.0}
