"""Points that show a robot: they stay on its bodies, bend as beams bend, and move in a mode as the Jacobians say."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import parflex
from parflex import Configuration
from parflex.bodies import sections
from parflex.bodies.beam import Material, centre_line
from parflex.view.scene.skeleton import mode_shape_points, skeleton

load = lru_cache(maxsize=None)(parflex.load)  # robots keep what they found out about themselves
ELASTIC = [name for name in parflex.catalogue_names() if load(name).tree.elastic]
STEEL, BLADE = Material(2.1e11, 8e10, 7800.0), sections.rectangle(0.004, 0.05)


def somewhere(robot: parflex.models.robot.Robot, seed: int) -> np.ndarray:
    """Positions a little away from home, loops open and bodies bent."""
    step = np.random.default_rng(seed).uniform(-0.05, 0.05, robot.tree.n) * robot.tree.rate_units
    return robot.tree.moved(robot.home, step)


@pytest.mark.parametrize("roll", [0.0, 0.4])
@pytest.mark.parametrize("shear", [False, True])
def test_the_line_of_a_beam_is_that_of_a_cantilever_with_a_load_at_its_tip(shear: bool, roll: float) -> None:
    length, load, xi = 0.4, np.array([0.0, 3.0, -2.0]), np.linspace(0, 1, 7)
    c, s = np.cos(roll), np.sin(roll)
    turn = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    own = turn.T @ load  # along the sides of the section
    x = xi * length
    line, slope = np.zeros((7, 3)), np.zeros((7, 3))
    for axis, inertia, area, about, sign in (
        (1, BLADE.Iz, BLADE.ky * BLADE.A, 2, 1.0),
        (2, BLADE.Iy, BLADE.kz * BLADE.A, 1, -1.0),
    ):
        line[:, axis] = own[axis] * x**2 * (3 * length - x) / (6 * STEEL.E * inertia)
        line[:, axis] += own[axis] * x / (area * STEEL.G) if shear else 0.0
        slope[:, about] = sign * own[axis] * x * (2 * length - x) / (2 * STEEL.E * inertia)
    line, slope = line @ turn.T, slope @ turn.T
    Phi_d, Phi_r = centre_line(length, STEEL, BLADE, shear, roll, xi)
    tip = np.concatenate([line[-1], slope[-1]])
    # polynomials of degree three, evaluated in another order: rounding
    assert np.abs(Phi_d @ tip - line).max() < 1e-13 * np.abs(line).max()
    assert np.abs(Phi_r @ tip - slope).max() < 1e-13 * np.abs(slope).max()


@pytest.mark.parametrize("name", ELASTIC)
def test_beams_end_where_the_next_body_begins(name: str) -> None:
    robot = load(name)
    bones = skeleton(robot)
    q = somewhere(robot, 1)
    points, at = bones.points(q), Configuration(robot, q).at
    assert bones.elastic
    for j, part, _ in bones.elastic:
        on_tip = [k for k, link in enumerate(robot.tree.links) if link.parent == j and link.node is not None]
        for child in on_tip:
            gap = np.linalg.norm(points[part] - at.position[child], axis=1).min()
            assert gap < 1e-13  # the same transform by another route, lengths of a metre


@pytest.mark.parametrize("name", parflex.catalogue_names())
def test_rigid_bodies_keep_their_lengths_wherever_the_robot_is(name: str) -> None:
    robot = load(name)
    bones = skeleton(robot)
    home, away = bones.points(robot.home), bones.points(somewhere(robot, 2))
    assert len(bones.edges) >= 2 and np.isfinite(home).all()
    for edge in bones.edges:
        if edge.kind in ("link", "platform"):
            lengths = [np.linalg.norm(p[edge.first] - p[edge.second]) for p in (home, away)]
            assert lengths[0] == pytest.approx(lengths[1], abs=1e-13)


@pytest.mark.parametrize("name", ELASTIC)
def test_points_move_in_a_mode_as_the_jacobians_say(name: str) -> None:
    robot = load(name)
    modes = parflex.natural_frequencies(robot)
    here = modes.model.configuration
    shape = mode_shape_points(robot, here, modes.shapes[:, 1])
    assert np.linalg.norm(shape.shape, axis=1).max() == pytest.approx(1.0)
    assert shape.edges.max() < len(shape.points) == len(shape.shape)
    assert len(shape.kinds) == len(shape.edges)
    origin = here.at.of(robot.tree.places[robot.tree.end_effector])[1]
    nearest = int(np.linalg.norm(shape.points - origin, axis=1).argmin())
    assert np.linalg.norm(shape.points[nearest] - origin) < 1e-12
    velocity = here.frame_rows(robot.tree.end_effector)[:3] @ modes.shapes[:, 1]
    if np.linalg.norm(velocity) < 1e-9 * np.linalg.norm(modes.shapes[:, 1]):
        pytest.skip("the end effector stands still in this mode")
    found = shape.shape[nearest]
    factor = (found @ velocity) / (velocity @ velocity)  # modes are normalised by mass, shapes by their largest way
    assert factor > 0
    assert np.abs(found - factor * velocity).max() < 1e-8  # differences over 1e-5: rounding 1e-11, curvature 1e-10


def test_loops_stay_closed_in_a_mode() -> None:
    robot = load("navaro")
    modes = parflex.natural_frequencies(robot)
    here = modes.model.configuration
    shape = mode_shape_points(robot, here, modes.shapes[:, 2])
    for loop in robot.closures.loops:
        place = here.at.of(loop.first)[1]
        together = np.linalg.norm(shape.points - place, axis=1) < 1e-9
        assert together.sum() > 1
        assert np.ptp(shape.shape[together], axis=0).max() < 1e-8  # as above


def test_pictures_show_rails_between_the_limits_of_carriages():
    robot = load("orthoglide")
    lines = [line for line in parflex.draw(robot, "near").axes[0].lines if line.get_linewidth() == 5]
    ends = [np.array(line.get_data_3d()) for line in lines]
    low, high = next(link.limits for link in robot.tree.links if link.name == "x.slide")
    origin = 0.04 + 0.2 / (1 / np.sqrt(18) + 1 / np.sqrt(6))  # of the slides, along each axis
    assert len(ends) == 3
    for axis, points in enumerate(ends):
        assert points[axis] == pytest.approx([origin + low, origin + high], abs=1e-9)
        assert np.abs(np.delete(points, axis, axis=0)).max() < 1e-9
