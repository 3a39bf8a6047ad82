"""Frequencies of robots with bodies given by modes, against direct stiffness with the modes as unknowns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import CATALOGUE
from scipy.spatial.transform import Rotation
from support.comparison import largest, positions
from support.modal_robots import PRINTED_STIFFNESS, lagrange, with_platform
from support.oracles.beam_robots import HEXAGON, add_legs
from support.oracles.frame import FrameModel
from support.oracles.modal_data import Modes, invented, read_modes
from support.oracles.plate_on_beams import gough_stewart_on_beams
from support.traced import long

import parflex
from parflex import Robot, natural_frequencies

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


def pose(name: str) -> dict[str, float]:
    return dict(zip(("x", "y", "z", "rx", "ry", "rz"), POSES[name], strict=True))


def place(name: str) -> tuple[np.ndarray, np.ndarray]:
    return np.array(POSES[name][:3]), Rotation.from_rotvec(POSES[name][3:]).as_matrix()


def stiffer(robot: Robot, factor: float) -> Robot:
    """The robot with legs of another steel."""
    E = factor * robot.description.materials["steel"].elastic_modulus
    return parflex.load(robot.file, settings={"materials.steel.elastic_modulus": E})


@pytest.mark.parametrize("body", bodies())
def test_a_flexible_platform_on_flexible_legs_equals_direct_stiffness(body, tmp_path, figure):
    modes = bodies()[body]
    plate = body == "plate"
    robot = parflex.load("gough-stewart-elastic") if plate else with_platform(tmp_path, "gough-stewart-beams", modes)
    worst = 0.0
    for name in POSES:
        found = natural_frequencies(robot, pose(name), modes=MODES)
        expected = gough_stewart_on_beams(modes, *place(name)).frequencies(MODES)
        assert not found.free_motions
        worst = max(worst, largest(found.frequencies / expected - 1))
    figure(f"{body} on beam legs: frequencies against direct stiffness over {len(POSES)} poses", worst, 1e-6)
    assert worst < 1e-8  # asked for: 1e-6; eigenvalues up to 1e9 times the lowest leave 1e-9
    rigid = gough_stewart_on_beams(replace(modes, stiffnesses=1e6 * modes.stiffnesses), *place("home")).frequencies(6)
    assert largest(expected[:6] / rigid - 1) > 0.3  # the platform matters


def test_stiffer_legs_come_nearer_to_the_robot_with_a_flexible_platform_only(tmp_path, figure):
    """Error as one over the stiffness of the steel; the limit is the Lagrangian with its beams held straight."""
    modes = bodies()["lumps"]
    robot = with_platform(tmp_path, "gough-stewart-beams", modes)
    still = parflex.configure(robot, pose("tilted"))
    oracle = lagrange("gough-stewart-beams", {"platform": modes})
    beams = [robot.tree.rate_names[k] for k in robot.tree.elastic if "mode" not in robot.tree.rate_names[k]]
    rigid = oracle.frequencies(positions(still), [*robot.actuated_names, *beams])
    assert len(rigid) == modes.size  # six motors hold the platform: what is left are its modes
    errors = []
    for factor in (1e1, 1e2, 1e3):
        found = natural_frequencies(stiffer(robot, factor), pose("tilted"), modes=5).frequencies
        errors.append(largest(found / rigid[:5] - 1))
    ratios = np.array(errors[:-1]) / errors[1:]
    figure("flexible platform: nearer per decade of stiffness of the legs", str(np.round(ratios, 3)))
    assert errors[0] > 1e-4
    assert ratios == pytest.approx([10, 10], rel=0.05)  # the next term is some hundredths of the first
    held = natural_frequencies(robot.locking([robot.tree.rate_names.index(name) for name in beams]), pose("tilted"))
    assert held.frequencies == pytest.approx(rigid[: len(held.frequencies)], rel=1e-9)  # rounding, as above


def test_a_stiffer_platform_comes_nearer_to_the_robot_with_flexible_legs_only(tmp_path, figure):
    """Error as one over the stiffness of the modes; the limit is a rigid body of the same mass on the same legs."""
    modes = bodies()["plate"]
    position, rotation = place("aside")
    model = FrameModel()
    plate = model.node(position)
    mass = modes.masses.sum()
    model.mass(plate, mass, rotation @ modes.mass_matrix()[3:6, 3:6] @ rotation.T)
    add_legs(model, [model.rigid(plate, position + rotation @ vertex) for vertex in HEXAGON.values()])
    rigid = model.frequencies(6)
    errors = []
    for factor in (1e5, 1e6, 1e7):
        robot = with_platform(tmp_path, "gough-stewart-beams", replace(modes, stiffnesses=factor * modes.stiffnesses))
        errors.append(largest(natural_frequencies(robot, pose("aside")).frequencies[:6] / rigid - 1))
    ratios = np.array(errors[:-1]) / errors[1:]
    figure("flexible legs: nearer per decade of stiffness of the platform", str(np.round(ratios, 3)))
    assert errors[0] > 1e-4
    assert ratios == pytest.approx([10, 10], rel=0.05)  # as above


@pytest.mark.parametrize("body", [pytest.param("lumps", marks=long)])
def test_the_two_oracles_agree_about_a_flexible_platform_on_flexible_legs(body):
    """They share the data and nothing else: energies with multipliers, direct stiffness with ties."""
    modes = bodies()[body]
    oracle = lagrange("gough-stewart-beams", {"platform": modes})
    robot = parflex.load("gough-stewart-beams")
    at = parflex.configure(robot, pose("low"))
    q = positions(at) | {f"platform.mode{k + 1}": 0.0 for k in range(modes.size)}
    found = oracle.frequencies(q, robot.actuated_names)[:MODES]
    assert found == pytest.approx(gough_stewart_on_beams(modes, *place("low")).frequencies(MODES), rel=1e-8)
