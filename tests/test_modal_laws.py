"""Laws of robots with bodies given by modes: the rigid limit, inverse and direct model, energy, momentum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import CATALOGUE
from scipy.spatial.transform import Rotation
from support.comparison import largest, positions
from support.modal_robots import GRAVITY, TRIANGLE, efforts_of, steadily_bent, with_platform
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import Modes, invented
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import RobotData, read_robot
from support.traced import long

import parflex
from parflex import Configuration, Robot

POSE = {"x": 0.3, "y": 0.4, "z": 1.05, "rx": 0.1, "ry": -0.15, "rz": 0.2}
VELOCITY, ACCELERATION = [0.4, -0.3, 0.5, 1.0, -1.5, 0.8], [2.0, 1.0, -3.0, 4.0, -2.0, 5.0]  # platform axes
FREE = ["friction", "damping"]


def modes(count: int = 10, stiffer: float = 1.0) -> Modes:
    body = invented(HEXAGON, count, seed=1)
    return replace(body, stiffnesses=stiffer * body.stiffnesses)


def rigid_data() -> RobotData:
    """The robot of the catalogue with a rigid platform of the mass and the inertia of the modes."""
    body = modes()
    M, gravity = body.mass_matrix(), np.array(GRAVITY)
    first = np.array([M[5, 1], M[3, 2], M[4, 0]])  # m c from the rows m (c x) of the turns
    data = read_robot(CATALOGUE / "gough-stewart.toml")
    own = {"mass": M[0, 0], "first_moment": first, "inertia": M[3:6, 3:6]}
    frames = [replace(frame, **own) if frame.name == "platform" else frame for frame in data.frames]
    return replace(data, frames=frames, gravity=gravity)


# -- the rigid limit -----------------------------------------------------------------------------------


def test_with_its_modes_held_the_robot_is_that_of_pinocchio(tmp_path, figure):
    robot = with_platform(tmp_path, "gough-stewart", modes())
    held = robot.locking(robot.tree.elastic)
    at = parflex.configure(held, POSE)
    tau, _ = efforts_of(at, VELOCITY, ACCELERATION)
    expected = _pinocchio(at)
    worst = largest(tau - expected) / largest(expected)
    figure("modes held: efforts against Pinocchio", worst, 1e-11)
    assert worst < 1e-11  # both solve systems of condition 1e3


def test_efforts_come_nearer_to_the_rigid_ones_as_one_over_the_stiffness_of_the_modes(tmp_path, figure):
    """The body is bent as much as keeps it from vibrating: e_dot = e_ddot = 0 in the motion of the platform."""
    expected = _pinocchio(parflex.configure(with_platform(tmp_path, "gough-stewart", modes()), POSE))
    errors, bent = [], []
    for decade in range(5):
        robot = with_platform(tmp_path, "gough-stewart", modes(stiffer=10.0**decade))
        tau, e = steadily_bent(robot, POSE, VELOCITY, ACCELERATION)
        errors.append(largest(tau - expected) / largest(expected))
        bent.append(largest(e))
    ratios = np.array(errors[:-1]) / errors[1:]
    figure("efforts nearer to those of Pinocchio per decade of stiffness", str(np.round(ratios, 3)))
    assert errors[0] > 1e-3 and bent[0] > 1e-3
    assert ratios == pytest.approx([10] * 4, rel=0.01)  # the next term of the series is a thousandth of the first


def _pinocchio(at: Configuration) -> np.ndarray:
    """Efforts of the rigid robot in the same motion of its platform."""
    oracle = PinocchioTree(rigid_data())
    parts = [f"platform.{part}" for part in ("vx", "vy", "vz", "wx", "wy", "wz")]
    motion = [dict(zip(parts, values, strict=True)) for values in (VELOCITY, ACCELERATION)]
    efforts = oracle.inverse(positions(at), *motion, at.robot.actuated_names)
    return np.array([efforts[name] for name in at.robot.actuated_names])


# -- inverse and direct model --------------------------------------------------------------------------


def test_the_direct_model_gives_back_the_motion_of_the_inverse_model(tmp_path, figure):
    robot = with_platform(tmp_path, "gough-stewart", modes())
    rng, worst = np.random.default_rng(4), 0.0
    joints = np.array([k for k in robot.free if robot.tree.rate_names[k].startswith("leg")])
    for _ in range(5):
        step = rng.uniform(-0.1, 0.1, robot.tree.n)
        q, _ = robot.assembler.newton(robot.tree.moved(robot.home, step), joints, list(robot.closures.loops))
        at = Configuration(robot, q)
        velocity, acceleration = (dict(zip(robot.actuated_names, rng.uniform(-2, 2, 6), strict=True)) for _ in "12")
        inverse = parflex.inverse_dynamics(robot, at, velocity, acceleration)
        direct = parflex.forward_dynamics(robot, at, velocity, inverse.efforts)
        size = largest(inverse.accelerations)
        worst = max(worst, largest(direct.accelerations - inverse.accelerations) / size)
        for k, name in zip(robot.actuated, robot.actuated_names, strict=True):
            assert abs(direct.accelerations[k] - acceleration[name]) < 1e-11 * size
    figure("direct model after inverse model", worst, 1e-11)
    assert worst < 1e-11  # asked for; rounding of both


# -- energy and momentum -------------------------------------------------------------------------------


def free_of_damping(case: str, folder: Path) -> Robot:
    if case == "plate":
        return parflex.load("gough-stewart-flexible", settings={"platform.modal.damping": 0.0})
    if case == "lumps":
        return with_platform(folder, "gough-stewart", modes(), damping=0)
    flat = invented(TRIANGLE, 3, seed=5, mass=2.0, planar=True)
    return with_platform(folder, "3rrr", flat, [1.0, -9.81, 0.0], damping=0)


@pytest.mark.parametrize("case", ["in the plane", *(pytest.param(case, marks=long) for case in ("plate", "lumps"))])
def test_a_robot_with_a_flexible_platform_keeps_its_energy_at_the_order_of_the_method(case, tmp_path, figure):
    robot = free_of_damping(case, tmp_path)
    here = parflex.configure(robot)
    rates = np.random.default_rng(3).uniform(-0.5, 0.5, here.J.shape[1])
    start, drifts = {"q": here.q, "qd": here.J @ rates}, []
    for step in (5e-4, 2.5e-4):
        run = parflex.simulate(
            robot, None, 0.1, start=start, step=step, out_step=0.01, without=["friction"], tolerance=1e-14
        )
        total = run["energy.total"]
        drifts.append(float(np.abs(total - total[0]).max() / run["energy.kinetic"].max()))
        assert run["closure_error"].max() < 1e-12
    figure(f"{case}: energy drift by gauss4 at 0.25 ms", drifts[1], 1e-9)
    figure(f"{case}: energy drift, ratio when the step is halved", drifts[0] / drifts[1])
    assert drifts[0] / drifts[1] == pytest.approx(16, rel=0.2)  # 2^4; rounding of 1e-12 shows in the finer one
    assert drifts[1] < 1e-9
    assert np.ptp(run["q.platform.mode1"]) > 1e-3  # it vibrates


def test_a_free_body_with_modes_keeps_its_momentum_and_energy(tmp_path, figure):
    body = modes(6)
    body.write(tmp_path / "body.npz")
    text = 'format = 1\nname = "body"\ngravity = [0, 0, 0]\n[platform]\nmodal = { file = "body.npz", damping = 0 }\n'
    (tmp_path / "body.toml").write_text(text, encoding="utf-8")
    robot = parflex.load(tmp_path / "body.toml")
    assert robot.tree.n == 12
    rates = np.array([0.3, -0.2, 0.5, 2.0, -3.0, 4.0, *np.random.default_rng(1).uniform(3, 6, 6)])
    start = {"q": robot.home, "qd": rates}
    run = parflex.simulate(robot, None, 0.3, start=start, method="gauss6", step=2.5e-4, out_step=5e-3, tolerance=1e-14)
    P, H, T = zip(*(_node_momenta(body, run, row) for row in range(len(run.t))), strict=True)
    lost = max(largest(np.array(values) - values[0]) / np.linalg.norm(values[0]) for values in (P, H))
    figure("momentum lost by a free body with modes", lost, 1e-9)
    assert np.linalg.norm(H[0]) > 10 and np.ptp(run["platform.orientation_x"]) > 0.1  # it turns by far
    assert np.ptp(run["q.platform.mode1"]) > 1e-2  # and vibrates
    assert lost < 1e-9  # steps of gauss6 of 0.25 ms through vibrations of up to 200 Hz
    total = run["energy.total"]
    assert largest(total - total[0]) < 1e-9 * run["energy.kinetic"].max()  # the same
    assert run["energy.kinetic"] == pytest.approx(np.array(T), rel=1e-12)  # a sum over nodes


def _node_momenta(body: Modes, run, row: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Linear and angular momentum about the origin, and kinetic energy, as sums over the nodes."""
    values = {word: np.array([run[f"platform.{word}{axis}"][row] for axis in "xyz"]) for word in ("", "v", "w")}
    R = Rotation.from_quat([run[f"platform.orientation_{axis}"][row] for axis in "wxyz"], scalar_first=True).as_matrix()
    e, ed = (np.array([run[f"{kind}.platform.mode{k + 1}"][row] for k in range(body.size)]) for kind in ("q", "qd"))
    u, ud = (np.tensordot(rates, body.shapes, axes=1) for rates in (e, ed))
    P, H, T = np.zeros(3), np.zeros(3), 0.0
    for r, mass, moments, shift, rate in zip(body.nodes, body.masses, body.second_moments, u, ud, strict=True):
        arm = R @ (r + shift[:3])
        v = values["v"] + np.cross(values["w"], arm) + R @ rate[:3]
        P += mass * v
        H += mass * np.cross(values[""] + arm, v)
        T += mass * v @ v / 2
        weights, ways = np.linalg.eigh(moments)  # specks about the node: they move with its turn
        for weight, way in zip(weights, ways.T, strict=True):
            offset = R @ (way + np.cross(shift[3:], way))
            speed = np.cross(values["w"], offset) + R @ np.cross(rate[3:], way)
            H += weight * np.cross(offset, speed)
            T += weight * speed @ speed / 2
    return P, H, T
