"""Scenes as arrays: solids are closed and to scale, follow the configuration, and forces balance in their arrows."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import pytest
from conftest import CATALOGUE

import parflex
from parflex.recursion import pose
from parflex.view.page.session import Session
from parflex.view.scene import solids
from parflex.view.scene.elastic_points import BodyPoints
from parflex.view.scene.robot_scene import Scene, arrows, reaction_arrows, scene
from parflex.view.scene.stress_colours import stress_colours

X = np.array([1.0, 0.0, 0.0])
load = lru_cache(maxsize=None)(parflex.load)  # robots keep what they found out about themselves


@cache
def scene_of(name: str) -> Scene:
    """Scenes are made once for all tests of this file."""
    return scene(load(name))


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """By the divergence theorem: right only for closed surfaces whose triangles all look outwards."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def polygon(sides: int, radius: float) -> float:
    """Area of a regular polygon inside a circle."""
    return 0.5 * sides * radius**2 * np.sin(2 * np.pi / sides)


def test_solids_are_closed_and_have_the_volume_of_their_formulas():
    start, way = np.array([0.3, -0.2, 0.5]), np.array([0.2, 0.1, -0.4])
    length, n = float(np.linalg.norm(way)), solids.SIDES
    assert volume(*solids.cylinder(start, start + way, 0.05)) == pytest.approx(polygon(n, 0.05) * length)
    cone = polygon(n, 1.0) * length / 3 * (0.05**2 + 0.05 * 0.02 + 0.02**2)
    assert volume(*solids.cylinder(start, start + way, 0.05, 0.02)) == pytest.approx(cone)
    assert volume(*solids.box(start, solids.along(way), np.array([0.1, 0.2, 0.3]))) == pytest.approx(0.006)
    ball = volume(*solids.ball(start, 0.1))
    assert 0.97 * 4 / 3 * np.pi * 1e-3 < ball < 4 / 3 * np.pi * 1e-3  # flat faces inside the sphere
    corners = np.array([[2.0, 1, 0], [-2, 1, 0], [-2, -1, 0], [2, -1, 0]]) @ solids.along(way).T + start
    plate = volume(*solids.hull_solid(corners, 0.1, 0.2))
    assert plate == pytest.approx(0.1 * (8 + 2 * (4 + 2) * 0.2 + polygon(16, 0.2)))  # round corners
    tetrahedron = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert volume(*solids.hull_solid(tetrahedron, 0.1, 0.2)) == pytest.approx(1 / 6)
    head, shaft = 5 * 0.01, 0.3 - 5 * 0.01
    arrow = polygon(12, 0.01) * shaft + polygon(12, 0.024) * head / 3
    assert volume(*solids.arrow(start, 0.3 * X, 0.01)) == pytest.approx(arrow)
    assert not len(solids.arrow(start, 0 * X, 0.01)[0])


@pytest.mark.parametrize("name", parflex.catalogue_names())
def test_every_robot_of_the_catalogue_has_its_solids(name):
    made = scene_of(name)
    vertices = made.vertices(made.robot.home)
    assert np.isfinite(vertices).all()
    assert {"ground", "motors"} <= {mesh.name for mesh in made.meshes}
    assert sum(mesh.vertices.stop - mesh.vertices.start for mesh in made.meshes) == len(vertices)
    low, high = made.bounds(made.robot.home)
    assert made.size < (high - low).max() < 2 * made.size
    for mesh in made.meshes:
        own = vertices[mesh.vertices]
        assert mesh.faces.min() >= 0 and mesh.faces.max() < len(own)
        assert volume(own, mesh.faces) > 0


def test_beams_have_the_volume_of_their_file():
    made = scene_of("dualemps")
    table = made.robot.description
    beams = [frame.beam for frame in table.frame if frame.beam is not None]
    sections = [table.sections[beam.section] for beam in beams]
    expected = sum(beam.length * part.y * part.z for beam, part in zip(beams, sections, strict=True))
    (mesh,) = [mesh for mesh in made.meshes if mesh.name == "beams"]
    own = made.vertices(made.robot.home)[mesh.vertices]
    assert volume(own, mesh.faces) == pytest.approx(expected, rel=1e-12)


NUMBERS = f"A = {0.03 * 0.05}, Iy = {0.03 * 0.05**3 / 12}, Iz = {0.05 * 0.03**3 / 12}, J = 1e-7"


@pytest.mark.parametrize("sizes", ['"box", y = 0.03, z = 0.05, thickness = 0.002', f'"numbers", {NUMBERS}'])
def test_a_beam_that_is_no_solid_rectangle_has_the_outline_of_one(sizes, tmp_path):
    path = tmp_path / "bar.toml"
    path.write_text(
        f"""
        format = 1
        name = "bar"
        materials.steel = {{ elastic_modulus = 200e9, density = 7800 }}
        sections.bar = {{ shape = {sizes} }}
        [[frame]]
        name = "bar"
        beam = {{ length = 0.8, material = "steel", section = "bar" }}
        """
    )
    made = scene(parflex.load(path))
    (mesh,) = [mesh for mesh in made.meshes if mesh.name == "beams"]
    own = made.vertices(made.robot.home)[mesh.vertices]
    assert np.ptp(own, axis=0) == pytest.approx([0.8, 0.03, 0.05], rel=1e-12)


def test_sections_stay_whole_where_a_beam_bends():
    made, step = scene_of("dualemps"), np.zeros(load("dualemps").tree.n)
    tree = made.robot.tree
    step[list(tree.elastic)] = 0.02
    (mesh,) = [mesh for mesh in made.meshes if mesh.name == "beams"]
    straight, bent = (made.vertices(tree.moved(made.robot.home, k * step))[mesh.vertices] for k in (0, 1))
    first, diagonal = straight[:8], np.linalg.norm(straight[0] - straight[4])
    assert np.linalg.norm(first - first.mean(axis=0), axis=1) == pytest.approx(diagonal / 2)
    for ring in range(13):
        corners = bent[8 * ring : 8 * ring + 8]
        assert np.linalg.norm(corners - corners.mean(axis=0), axis=1) == pytest.approx(diagonal / 2)
    assert np.abs(bent - straight).max() > 0.01


def test_vertices_follow_a_small_step_as_the_shape_of_a_mode_says():
    robot = load("gough-stewart-beams")
    made, modes = scene_of("gough-stewart-beams"), parflex.natural_frequencies(robot, modes=1)
    mode, q = modes.shapes[:, 0], modes.model.configuration.q
    shape = made.shape(q, mode)
    step = 1e-4
    moved = made.vertices(robot.tree.moved(q, step * mode)) - made.vertices(q)
    scale = np.linalg.norm(moved) / np.linalg.norm(shape)
    assert np.abs(moved - scale * shape).max() < 1e-2 * np.abs(moved).max()  # what is left is of second order
    (ground,) = [mesh for mesh in made.meshes if mesh.name == "ground"]
    assert not shape[ground.vertices].any()


@pytest.mark.parametrize("name", ["gough-stewart", "delta", "puma560"])
def test_the_arrows_at_the_ground_carry_the_weight_of_the_robot(name):
    robot = load(name)
    found = parflex.inverse_dynamics(robot, reactions=True)
    places, forces = reaction_arrows(robot, robot.home, found.reactions)
    names = [link.name for link in robot.tree.links if link.joint.kind not in ("free", "planar")]
    on_ground = [k for k, name in enumerate(names) if robot.tree.links[robot.tree.number(name)].parent < 0]
    mass = sum(float(link.body.m) for link in robot.tree.links)
    weight = mass * robot.tree.gravity
    total = forces[on_ground].sum(axis=0)
    assert np.abs(total + weight).max() < 1e-9 * np.abs(weight).max()  # a solve for multipliers and two recursions
    assert len(places) == len(forces) == len(names) + len(robot.closures.loops)


def test_beams_have_the_colours_of_their_stress():
    """Every triangle has one colour: the last where the stress is largest, the first where it vanishes."""
    robot = parflex.load("dualemps", elements=2)
    shown = scene(robot)
    colours = stress_colours(shown)
    found = {"13": (np.array([0.0, 1.0]), np.array([0.0, 5e6]))}
    levels = colours.levels(found, 5e6)
    beams = next(mesh for mesh in shown.meshes if mesh.name == "beams")
    assert sum(map(len, levels)) == len(beams.faces) and len(levels) == 9
    others = sum(
        len(part.faces)
        for part in shown.parts
        if part.group == "beams" and "13" not in robot.tree.links[part.link].name
    )
    assert len(levels[-1]) == others  # of which nothing is known
    places = shown.vertices(robot.home)[beams.vertices]
    ends = [places[levels[k]].reshape(-1, 3).mean(axis=0) for k in (0, 7)]
    at = pose(robot.tree, robot.home)
    root, tip = (at.of(robot.tree.places[name])[1] for name in ("13", "13.tip"))
    assert np.linalg.norm(ends[0] - root) < 0.1 * np.linalg.norm(tip - root)
    assert np.linalg.norm(ends[1] - tip) < 0.1 * np.linalg.norm(tip - root)
    assert stress_colours(scene(parflex.load("5r"))) is None


# -- what a person does with it ------------------------------------------------------------------------


@pytest.mark.few
@pytest.mark.parametrize("name", parflex.catalogue_names())
def test_a_motor_slider_moves_every_robot_of_the_catalogue(name):
    session = Session(load(name))
    before = session.base.copy()
    motor = session.motor_sliders()[0]
    assert motor.low <= motor.value <= motor.high
    assert session.move({motor.word: motor.value + 0.02 * (motor.high - motor.low)}), session.trouble
    assert np.abs(session.base - before).max() > 1e-3 * session.scene.size
    now = {slider.word: slider.value for slider in session.motor_sliders()}[motor.word]
    assert now == pytest.approx(motor.value + 0.02 * (motor.high - motor.low))
    assert session.status() and not session.trouble
    for slider in session.pose_sliders():
        assert slider.low < slider.value < slider.high and slider.unit in ("m", "rad")


def test_a_pose_that_cannot_be_reached_is_told_and_the_last_good_one_kept():
    session = Session(load("3rrr"))
    assert session.move({"x": 0.05, "y": 0.02, "theta": 0.1})
    good, shown = session.q.copy(), session.base.copy()
    assert not session.move({"x": 5.0, "y": 0.02, "theta": 0.1})
    assert "cannot be reached" in session.trouble
    assert session.asked == pytest.approx([5.0, 0.02, 0.0])
    assert np.array_equal(session.q, good) and np.array_equal(session.base, shown)
    assert session.move("home") and not session.trouble and session.asked is None


def test_a_mode_swings_about_the_pose_with_its_amplitude():
    session = Session(load("navaro"))
    assert session.mode_names()[0] == "1: 44.10 Hz"
    assert len(session.mode_names()) == 12
    forth, back = (session.in_mode(0, phase, 0.05) for phase in (np.pi / 2, -np.pi / 2))
    assert forth + back == pytest.approx(2 * session.base)
    way = np.linalg.norm(forth - session.base, axis=1).max()
    assert way == pytest.approx(0.05 * session.scene.size, rel=0.1)  # thick parts move a little more than their axes
    assert session.in_mode(0, 0.0, 0.05) == pytest.approx(session.base)


def test_a_rigid_robot_has_modes_on_springs_and_says_so_without():
    session = Session(load("gough-stewart"))
    assert session.mode_names() == [] and "nothing can move" in session.trouble
    session.set_servo(1e6)
    assert len(session.mode_names()) == 6


def test_deformation_is_magnified_about_the_straight_robot():
    robot = load("gough-stewart-beams")
    session = Session(robot)
    straight = session.base.copy()
    rest = parflex.equilibrium(robot).configuration.q
    bent = session.scene.vertices(rest) - straight
    session.sag(True, 40.0)
    assert session.base - straight == pytest.approx(40 * bent)
    session.sag(False)
    assert np.array_equal(session.base, straight)


def test_a_run_is_shown_at_its_times_and_its_bending_magnified(tmp_path):
    from parflex.view.page.session import require_run

    robot = load("dualemps")
    tree, t = robot.tree, np.array([0.0, 0.1, 0.2])
    step = np.zeros((3, tree.n))
    step[:, list(tree.elastic)] = 0.01 * np.sin(np.arange(3))[:, None]
    q = np.array([tree.moved(robot.home, row) for row in step])
    columns = {"t": t} | {f"q.{name}": q[:, k] for k, name in enumerate(tree.position_names)}
    path = tmp_path / "run.csv"
    parflex.simulation.runs.Run(columns).save(path)
    played, session = require_run(robot, str(path)), Session(robot)
    assert played.duration == pytest.approx(0.2) and played.bends
    for time, row in ((0.0, 0), (0.04, 0), (0.06, 1), (0.2, 2), (9.0, 2)):
        assert np.array_equal(played.positions(time), q[row])
    plain = session.in_run(played, 0.1)
    assert plain == pytest.approx(session.scene.vertices(q[1]))
    session.deformation_scale = 3.0
    straight = session.scene.vertices(played.undeformed(0.1))
    assert session.in_run(played, 0.1) - straight == pytest.approx(3 * (plain - straight))
    with pytest.raises(parflex.errors.InputError, match="not one of 'navaro'"):
        require_run(load("navaro"), str(path))


# -- bodies given by modes -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plate(tmp_path_factory):
    """A robot whose platform is the hexagonal plate of the catalogue: side 0.5 m, thickness 15 mm."""
    folder = tmp_path_factory.mktemp("plate")
    text = f"""format = 1
name = "plate"
extends = "gough-stewart"
[platform]
inertia = {{ mass = 0 }}
modal = {{ file = "{(CATALOGUE / "hexagon-plate.npz").as_posix()}", modes = 4 }}
"""
    (folder / "plate.toml").write_text(text, encoding="utf-8")
    return parflex.load(folder / "plate.toml")


def test_a_plate_is_a_closed_sheet_of_its_thickness_through_its_nodes(plate):
    made = scene(plate)
    (mesh,) = [mesh for mesh in made.meshes if mesh.name == "platform"]
    flat = made.vertices(plate.home)[mesh.vertices]
    # the npz file keeps its nodes in single places of a metre to rounding
    assert volume(flat, mesh.faces) == pytest.approx(1.5 * np.sqrt(3) * 0.5**2 * 0.015, rel=1e-9)
    step = np.zeros(plate.tree.n)
    step[list(plate.tree.elastic)] = 0.05
    q = plate.tree.moved(plate.home, step)
    bent = made.vertices(q)
    assert np.abs(bent[mesh.vertices] - flat).max() > 1e-3
    assert volume(bent[mesh.vertices], mesh.faces) == pytest.approx(volume(flat, mesh.faces), rel=1e-2)
    points, at = made.skeleton.points(q), pose(plate.tree, q)
    on_nodes = [j for j, link in enumerate(plate.tree.links) if link.node is not None]
    assert len(on_nodes) >= 6
    for j in on_nodes:
        assert np.linalg.norm(points - at.position[j], axis=1).min() < 1e-12  # the same sums in another order


def test_the_modes_of_a_plate_are_shown(plate):
    session = Session(plate)
    assert len(session.mode_names()) == 4
    shape = session.mode_shape(0)
    (mesh,) = [mesh for mesh in session.scene.meshes if mesh.name == "platform"]
    assert np.linalg.norm(shape[mesh.vertices], axis=1).max() == pytest.approx(1.0, abs=0.05)


def test_nodes_in_a_row_are_a_bar_and_nodes_around_a_solid_its_hull(tmp_path):
    from parflex.bodies.modal import ModalData
    from parflex.bodies.modal_file import save_modal
    from parflex.description.schema import Modal
    from parflex.view.scene.elastic_points import modal_points

    one = np.ones(1)
    row = np.outer([0.0, 3.0, 1.0, 2.0], [0.6, 0.0, 0.8])
    cube = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    for name, nodes in (("row", row), ("cube", cube)):
        shapes = np.zeros((1, len(nodes), 6))
        shapes[0, :, 2] = np.where(np.arange(len(nodes)) % 2, 1.0, -1.0) / np.sqrt(len(nodes))
        data = ModalData(nodes, np.ones(len(nodes)), shapes, 5 * one, one, 0 * one)
        save_modal(data, tmp_path / f"{name}.npz")
    bar = modal_points(Modal(file=str(tmp_path / "row.npz")))
    assert np.linalg.norm(bar.r0, axis=1) == pytest.approx([0, 1, 2, 3]) or np.linalg.norm(
        bar.r0, axis=1
    ) == pytest.approx([3, 2, 1, 0])
    assert bar.edges == [(0, 1), (1, 2), (2, 3)] and not len(bar.triangles)
    solid = modal_points(Modal(file=str(tmp_path / "cube.npz")))
    assert volume(solid.r0, solid.triangles) == pytest.approx(1.0)
