"""Records of an arm, an axis, the 3rrr and other robots, computed from known parameters."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import scipy.special

import parflex
from parflex.identification.regressor import Regressor
from parflex.identification.unknowns import unknowns
from support.oracles import led_records, measured
from support.oracles import three_rrr as hand
from support.robots import any_robot, load_robot, robot_file

Array = np.ndarray
Columns = dict[str, Array]

HAND = {"M[axis]": 8.0, "FV[axis]": 12.0, "FS[axis]": 3.0}
BY_HAND = {
    "position": {"axis": {"column": "x", "gain": 1e-3, "offset": 0.3}},
    "effort": {"axis": {"column": "i", "gain": 2.5}},
}
UNDER_CONTROL = {
    "position": {"axis": "x"},
    "effort": {"axis": {"column": "i", "gain": 2.5}},
    "reference": {"axis": "ref"},
    "controller": {"kp": 60, "kv": 40, "limit": 30},
}
ARM = robot_file("arm-of-two-links").read_text()


def slide(**friction: float) -> parflex.Robot:
    """Load the axis; with other friction than that of the file."""
    settings = {"frame.axis.friction": {"viscous": 1, "coulomb": 1} | friction} if friction else None
    return load_robot("sliding-axis", settings=settings)


@cache
def axis_record(payload: float = 0.0, noise: float = 0.0) -> Columns:
    """A mass that slides, with friction that differs by direction."""
    t = np.arange(4000) * 1e-3
    x = 0.1 * np.sin(2 * t) + 0.05 * np.sin(7 * t)
    v = 0.2 * np.cos(2 * t) + 0.35 * np.cos(7 * t)
    a = -0.4 * np.sin(2 * t) - 2.45 * np.sin(7 * t)
    force = (8.0 + payload) * a + np.where(v > 0, 12 * v + 3, 20 * v - 5)
    wander = np.cumsum(np.random.default_rng(0).standard_normal(len(t))) * noise
    return {"t": t, "x": 1e3 * (x - 0.3), "i": force / 2.5 + wander}


def loaded(folder: Path, carried: float) -> list[str]:
    """Write two records of the axis, without and with a payload."""
    rng = np.random.default_rng(5)
    for name, payload in (("empty", 0.0), ("loaded", carried)):
        record = axis_record(payload)
        np.savez(folder / f"{name}.npz", **record | {"i": record["i"] + 0.02 * rng.standard_normal(len(record["i"]))})
    return [str(folder / "empty.npz"), str(folder / "loaded.npz")]


def arm_record(robot: parflex.Robot) -> Columns:
    """Small motions of the arm: in degrees they are below a turn in radians."""
    t = np.arange(0, 4, 2e-3)
    q = np.stack([0.06 * np.sin(5 * t), 0.05 * np.sin(7 * t + 1)], axis=1)
    qd, qdd = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    tau = np.array([parflex.inverse_dynamics(robot, *row) for row in zip(q, qd, qdd, strict=True)])
    return {"t": t, "q.s": q[:, 0], "q.e": q[:, 1], "effort.s": tau[:, 0], "effort.e": tau[:, 1]}


SLOW = measured.Loop(sample=2e-3)


@cache
def three_rrr() -> parflex.Robot:
    """Load the 3rrr of the records, with friction that the records do not have."""
    rubbed = {"legs.frame.1.friction": {"viscous": 0.1, "coulomb": 0.1}}
    return parflex.load("3rrr", working_mode="+-+", settings=rubbed)


@cache
def followed(seed: int, load: float = 0.0) -> Columns:
    """A record of the 3rrr without noise; `load` is a mass in the middle of the platform."""
    return measured.followed(4.0, seed, SLOW, hand.Parameters(m_c=hand.Parameters().m_c + load))


def noisy(clean: Columns, seed: int = 0) -> Columns:
    return measured.as_measured(clean, seed)


def columns_of(*words: str, **more: object) -> dict[str, object]:
    names = {"position": "q", "effort": "effort", "reference": "ref"}
    return {word: {m: f"{names[word]}.{m}" for m in measured.MOTORS} for word in words} | more


def true_values(found) -> Array:
    true = {"FV": 0.4, "FS": 0.25}
    return np.array([true.get(name.partition("[")[0], p.file_value) for name, p in found.parameters.items()])


def errors(found) -> Array:
    """Errors of the base parameters of the 3rrr, in deviations."""
    return (found.values - true_values(found)) / [p.deviation for p in found.parameters.values()]


def unlikely(errors: Array, found) -> bool:
    """Return whether chance makes one of these errors so large in less than one of a thousand records.

    Errors over the deviations of a fit have Student's distribution with the freedoms of its intervals.
    """
    deviations, halves = np.array([(p.deviation, p.interval[1] - p.value) for p in found.parameters.values()]).T
    freedoms = scipy.special.stdtridf(0.975, halves / deviations)
    chances = 2 * scipy.special.stdtr(freedoms, -np.abs(errors) / deviations)
    return bool(chances.min() < 1e-3 / len(chances))


def regressor_of(robot: parflex.Robot, friction: str = "file") -> Regressor:
    """Return efforts per unit of each parameter of a robot."""
    return Regressor(robot, unknowns(robot, friction), "none" if friction == "none" else "file")


@cache
def led(name: str) -> tuple[parflex.Robot, Array, Array, Array, Array]:
    """Return motions of the motors of a robot without friction about home: times, positions, rates, efforts."""
    robot = any_robot(name)
    regressor = regressor_of(robot, "none")
    units, home = robot.tree.rate_units[list(robot.actuated)], robot.home[regressor.motor_q]
    t, reach = np.arange(1500) * 2e-3, 0.12
    w = 2 * np.pi * np.arange(1, 6) / 3.0
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 5, len(units))) / np.sqrt(np.arange(1, 6))[:, None]
    while True:  # until the robot can go there
        size = reach * units
        q, v = home + size * (s @ a + (c - 1) @ b), size * ((c * w) @ a - (s * w) @ b)
        try:
            W, known = regressor.of(regressor.moving(q, v, -size * ((s * w * w) @ a + (c * w * w) @ b)))
            return robot, t, q, v, W @ np.array([one.value for one in regressor.unknowns]) + known
        except parflex.ParflexError:
            reach /= 2


def led_record(name: str, offset: float, noise: float) -> Columns:
    """Return a record with equal friction in both directions, and offsets of both signs as a share of the efforts."""
    robot, t, q, v, effort = led(name)
    rng, size = np.random.default_rng(1), np.sqrt((effort**2).mean(axis=0))
    size = np.maximum(size, 0.05 * size.max())
    signs = np.where(np.arange(len(size)) % 2, -1.0, 1.0)
    effort = effort + size * (0.1 * v / np.abs(v).max(axis=0) + 0.1 * np.sign(v) + offset * signs)
    effort = effort + noise * size * rng.standard_normal(effort.shape)
    q = q + (1e-5 if noise else 0.0) * np.ptp(q, axis=0) * rng.standard_normal(q.shape)
    columns = {f"q.{motor}": q[:, k] for k, motor in enumerate(robot.actuated_names)}
    return {"t": t} | columns | {f"effort.{motor}": effort[:, k] for k, motor in enumerate(robot.actuated_names)}


RANGES = {
    "rod1": (0.5, 0.7), "rod2": (0.5, 0.7), "m1": (0.5, 3), "m2": (0.5, 3), "ms": (1, 6),
    "fv": (1, 10), "fs": (0.5, 4), "fv2": (0.05, 0.3), "fs2": (0.02, 0.2),
}  # fmt: skip


def drawn_robot(name: str, seed: int, folder: Path) -> tuple[parflex.Robot, Columns]:
    """Return a planar robot with random numbers, every other one upright, and its noisy record of 4 s at 100 Hz."""
    rng, path, text = np.random.default_rng(seed), folder / f"{name}-{seed}.toml", robot_file(name).read_text()
    for key, both in RANGES.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {float(rng.uniform(*both))!r}", text, flags=re.MULTILINE)
    path.write_text(text if seed % 2 == 0 else text.replace("-9.81", "0.0"))
    led, t = led_records.LedRobot(path), np.arange(400) / 100
    clean, rng = led.led(t, led.about_home(t, seed, 0.08)), np.random.default_rng(seed)
    for word in clean:
        if word != "t":
            size = 1e-6 if word.startswith("q.") else 3e-3 * np.abs(clean[word]).max()
            clean[word] = clean[word] + size * rng.standard_normal(len(t))
    return parflex.load(path), clean
