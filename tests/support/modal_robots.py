"""Robots with bodies given by modes: files of the package, and the same robots for the oracles."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import parflex
from support.catalogue import CATALOGUE
from support.flexible_states import reduced_equations
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import Modes, invented, read_modes
from support.oracles.modal_lagrange import ModalEnergyModel
from support.oracles.reader import Frame, RobotData, read_robot
from support.robots import robot_file, write_robot

# [Long2014, Table 2]: generalized stiffness of modes 7 to 16
PRINTED_STIFFNESS = [
    35625.55, 35625.63, 99677.16, 160816.0, 225384.5, 503473.4, 503505.8, 686059.1, 686091.1, 1717622.0
]  # fmt: skip
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
STILL = (0.0,) * 6
GRAVITY = [1.0, -2.0, -9.81]  # along no axis of the robots


def with_platform(
    folder: Path, name: str, modes: Modes, gravity: Sequence[float] = GRAVITY, extra: str = "", **options: object
) -> parflex.Robot:
    """A robot of the catalogue with a platform given by modes in place of its own."""
    modes.write(folder / "platform.npz")
    keys = "".join(f", {key} = {value}" for key, value in options.items())
    text = f"""format = 1
name = "modal"
extends = "{name}"
gravity = {list(gravity)}
{extra}
[platform]
inertia = {{ mass = 0 }}
point_masses = []
modal = {{ file = "platform.npz"{keys} }}
"""
    return parflex.load(write_robot(folder, text, "modal"))


def lagrange(
    name: str, modes: Mapping[str, Modes], gravity: Sequence[float] = GRAVITY, more: Sequence[Frame] = ()
) -> ModalEnergyModel:
    """A robot of the catalogue, or of a file, with modes in place of the bodies of some frames, and more frames."""
    path = CATALOGUE / f"{name}.toml"
    data = read_robot(path if path.exists() else Path(name))
    return ModalEnergyModel(replace(data, gravity=np.array(gravity), frames=[*_massless(data, modes), *more]), modes)


def _massless(data: RobotData, modes: Mapping[str, Modes]) -> list[Frame]:
    none = {"mass": 0.0, "first_moment": np.zeros(3), "inertia": np.zeros((3, 3))}
    return [replace(frame, **none) if frame.name in modes else frame for frame in data.frames]


TURNS = np.pi / 6 * np.arange(1, 10, 4)
TRIANGLE = {f"corner{k}": -0.1732 * np.array([np.cos(a), np.sin(a), 0]) for k, a in enumerate(TURNS)}
TOOL = """[[frame]]
name = "tool"
parent = "platform"
place = { position = [0.5, 0, 0], rotation = [0.3, 0.2, -0.4] }
inertia = { M = 7, XX = 0.6, YY = 0.7, ZZ = 0.5, MX = 0.7, MY = 0.35, MZ = 1.4 }
"""
TOOL_FRAME = Frame(
    "tool",
    "platform",
    np.array([0.5, 0, 0]),
    Rotation.from_rotvec([0.3, 0.2, -0.4]).as_matrix(),
    mass=7.0,
    first_moment=np.array([0.7, 0.35, 1.4]),
    inertia=np.diag([0.6, 0.7, 0.5]),
)
ARM = {"root": np.zeros(3), "end": np.array([0.5, 0.6, 0.0]), "side": np.array([0.2, 0.1, 0.1])}
OTHER = {"root": np.zeros(3), "end": np.array([-0.5, 0.6, 0.0])}


def arms(folder: Path, name: str, arm: Modes, other: Modes) -> tuple[parflex.Robot, ModalEnergyModel]:
    """Two links given by modes, in a row or in a loop (`welded` if its name says so), with a lump on a node."""
    arm.write(folder / "arm.npz")
    other.write(folder / "other.npz")
    file, _, joint = name.partition(", ")
    text = robot_file(file).read_text(encoding="utf-8")
    if joint:
        head, closure, tail = text.partition("[[closure]]")
        text = head + closure + tail.replace("revolute", joint)
    path = write_robot(folder, text)
    return parflex.load(path), lagrange(str(path), {"arm": arm, "fore": other})


def efforts_of(
    at: parflex.Configuration, velocity: Sequence[float], acceleration: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Efforts that a motion of the platform (in its axes) needs while its modes stand still, and what these lack."""
    names = at.independent_names
    own = [names.index(f"platform.{part}") for part in TWIST]
    rest = [k for k, name in enumerate(names) if "mode" in name]
    rates, accelerations = np.zeros((2, len(names)))
    rates[own], accelerations[own] = velocity, acceleration
    M, c, _ = reduced_equations(at, at.J @ rates)
    needed = M @ accelerations + c
    tau = np.linalg.solve(at.J_a.T[own], needed[own])
    return tau, needed[rest] - at.J_a.T[rest] @ tau


def steadily_bent(
    robot: parflex.Robot,
    pose: str | Mapping[str, float],
    velocity: Sequence[float] = STILL,
    acceleration: Sequence[float] = STILL,
) -> tuple[np.ndarray, np.ndarray]:
    """Efforts and modal coordinates that keep the modes from vibrating while the platform moves: e_dot = e_ddot = 0."""
    at, tree = parflex.configure(robot, pose), robot.tree
    places = [tree.position_names.index(tree.rate_names[k]) for k in tree.elastic]
    joints = np.array([k for k in robot.free if tree.rate_names[k].startswith("leg")])
    K = np.diag(tree.links[tree.number("platform")].body.K)
    for _ in range(60):
        tau, lack = efforts_of(at, velocity, acceleration)
        if np.abs(lack / K).max() < 1e-14:
            return tau, at.q[places]
        q = at.q.copy()
        q[places] -= lack / K
        q, error = robot.assembler.newton(q, joints, list(robot.closures.loops))
        assert error < 1e-12
        at = parflex.Configuration(robot, q)
    raise AssertionError(f"the modes do not come to rest: {lack / K}")


POSES = {  # x, y, z and a rotation vector
    "home": (0.25, 0.433, 1.0, 0.0, 0.0, 0.0),
    "low": (0.2, 0.4, 0.9, 0.1, -0.05, 0.2),
    "aside": (0.35, 0.3, 1.05, -0.15, 0.1, -0.25),
    "tilted": (0.25, 0.45, 1.0, 0.25, 0.2, 0.0),
}
MODES = 12  # compared: those of the plate below 200 Hz, of the legs from 90 Hz on, and mixed ones


def bodies() -> dict[str, Modes]:
    """A body of no symmetry, and the plate of the catalogue."""
    plate = replace(read_modes(CATALOGUE / "hexagon-plate.npz"), stiffnesses=np.array(PRINTED_STIFFNESS))
    return {"lumps": invented(HEXAGON, 10, seed=1), "plate": plate}


def place(name: str) -> tuple[np.ndarray, np.ndarray]:
    return np.array(POSES[name][:3]), Rotation.from_rotvec(POSES[name][3:]).as_matrix()
