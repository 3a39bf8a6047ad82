"""Scenes and skeletons as arrays: closed solids to scale, beams that bend, modes, forces that balance."""

from functools import cache, lru_cache

import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.robots import load_robot

import parflex
from parflex.recursion.kinematics import pose
from parflex.view import solids
from parflex.view.colours import stress_colours
from parflex.view.scene import Scene, reaction_arrows, scene
from parflex.view.session import Session
from parflex.view.skeleton import mode_shape_points, skeleton

X = np.array([1.0, 0.0, 0.0])
load = lru_cache(maxsize=None)(parflex.load)  # robots keep what they found out about themselves


@cache
def scene_of(name: str) -> Scene:
    return scene(load(name))


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """By the divergence theorem: right only for closed surfaces whose triangles all look outwards."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def polygon(sides: int, radius: float) -> float:
    return 0.5 * sides * radius**2 * np.sin(2 * np.pi / sides)


def test_solids_are_closed_and_have_the_volume_of_their_formulas():
    start, way = np.array([0.3, -0.2, 0.5]), np.array([0.2, 0.1, -0.4])
    length, n = float(np.linalg.norm(way)), solids.SIDES
    assert volume(*solids.cylinder(start, start + way, 0.05)) == pytest.approx(polygon(n, 0.05) * length)
    cone = polygon(n, 1.0) * length / 3 * (0.05**2 + 0.05 * 0.02 + 0.02**2)
    assert volume(*solids.cylinder(start, start + way, 0.05, 0.02)) == pytest.approx(cone)
    assert volume(*solids.box(start, solids.along(way), np.array([0.1, 0.2, 0.3]))) == pytest.approx(0.006)
    ball = volume(*solids.sphere(start, 0.1))
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
    assert made.size < (high - low).max() < 3 * made.size  # rails reach beyond the bodies
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


NUMBERS = {"shape": "numbers", "A": 0.03 * 0.05, "Iy": 0.03 * 0.05**3 / 12, "Iz": 0.05 * 0.03**3 / 12, "J": 1e-7}


@pytest.mark.parametrize("section", [{"shape": "box", "y": 0.03, "z": 0.05, "thickness": 0.002}, NUMBERS])
def test_a_beam_that_is_no_solid_rectangle_has_the_outline_of_one(section):
    made = scene(load_robot("flat-bar", settings={"motion": "spatial", "sections.flat": section}))
    (mesh,) = [mesh for mesh in made.meshes if mesh.name == "beams"]
    own = made.vertices(made.robot.home)[mesh.vertices]
    assert np.ptp(own, axis=0) == pytest.approx([0.5, 0.03, 0.05], rel=1e-12)


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
    robot = parflex.load("dualemps", elements=2)
    shown = scene(robot)
    colours = stress_colours(shown)
    found = {"13": (np.array([0.0, 1.0]), np.array([0.0, 5e6]))}
    levels = colours.levels(found, 5e6)
    beams = next(mesh for mesh in shown.meshes if mesh.name == "beams")
    assert sum(map(len, levels)) == len(beams.faces) and len(levels) == 9
    beams_shown = [part for part in shown.parts if part.group == "beams"]
    others = sum(len(part.faces) for part in beams_shown if "13" not in robot.tree.links[part.link].name)
    assert len(levels[-1]) == others  # of which nothing is known
    places = shown.vertices(robot.home)[beams.vertices]
    ends = [places[levels[k]].reshape(-1, 3).mean(axis=0) for k in (0, 7)]
    at = pose(robot.tree, robot.home)
    root, tip = (at.of(robot.tree.places[name])[1] for name in ("13", "13.tip"))
    assert np.linalg.norm(ends[0] - root) < 0.1 * np.linalg.norm(tip - root)
    assert np.linalg.norm(ends[1] - tip) < 0.1 * np.linalg.norm(tip - root)
    assert stress_colours(scene(parflex.load("5r"))) is None


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


def test_a_run_is_shown_at_its_times_and_its_bending_magnified(tmp_path):
    from parflex.view.session import require_run

    robot = load("dualemps")
    tree, t = robot.tree, np.array([0.0, 0.1, 0.2])
    step = np.zeros((3, tree.n))
    step[:, list(tree.elastic)] = 0.01 * np.sin(np.arange(3))[:, None]
    q = np.array([tree.moved(robot.home, row) for row in step])
    columns = {"t": t} | {f"q.{name}": q[:, k] for k, name in enumerate(tree.position_names)}
    path = tmp_path / "run.csv"
    parflex.simulation.runs.Run(columns).save(path)
    played, session = require_run(robot, str(path)), Session(robot)
    assert played.duration == pytest.approx(0.2)
    for time, row in ((0.0, 0), (0.04, 0), (0.06, 1), (0.2, 2), (9.0, 2)):
        assert np.array_equal(played.positions(time), q[row])
    plain = session.in_run(played, 0.1)
    assert plain == pytest.approx(session.scene.vertices(q[1]))
    session.deformation_scale = 3.0
    straight = session.scene.vertices(played.undeformed(0.1))
    assert session.in_run(played, 0.1) - straight == pytest.approx(3 * (plain - straight))
    with pytest.raises(parflex.errors.InputError, match="not one of 'navaro'"):
        require_run(load("navaro"), str(path))


@pytest.fixture(scope="module")
def plate():
    modal = {"file": str(CATALOGUE / "hexagon-plate.npz"), "modes": 4}
    return parflex.load("gough-stewart", settings={"platform.inertia": {"mass": 0}, "platform.modal": modal})


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


ELASTIC = [name for name in parflex.catalogue_names() if load(name).tree.elastic]


def somewhere(robot: parflex.robot.robot.Robot, seed: int) -> np.ndarray:
    step = np.random.default_rng(seed).uniform(-0.05, 0.05, robot.tree.n) * robot.tree.rate_units
    return robot.tree.moved(robot.home, step)


@pytest.mark.parametrize("name", ELASTIC)
def test_beams_end_where_the_next_body_begins(name: str) -> None:
    robot = load(name)
    bones = skeleton(robot)
    q = somewhere(robot, 1)
    points, at = bones.points(q), parflex.Configuration(robot, q).at
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
def test_points_move_in_a_mode_as_by_the_jacobians(name: str) -> None:
    robot = load(name)
    modes = parflex.natural_frequencies(robot)
    here = modes.model.configuration
    shape = mode_shape_points(robot, here, modes.shapes[:, 1])
    assert np.linalg.norm(shape.shape[skeleton(robot).body], axis=1).max() == pytest.approx(1.0)
    assert shape.edges.max() < len(shape.points) == len(shape.shape)
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


def test_rails_reach_from_one_limit_of_their_carriages_to_the_other():
    robot = load("orthoglide")
    bones = skeleton(robot)
    points = bones.points(parflex.configure(robot, "near").q)
    rails = [points[[edge.first, edge.second]] for edge in bones.edges if edge.kind == "rail"]
    low, high = next(link.limits for link in robot.tree.links if link.name == "x.slide")
    origin = 0.04 + 0.2 / (1 / np.sqrt(18) + 1 / np.sqrt(6))  # of the slides, along each axis
    assert len(rails) == 3
    for axis, ends in enumerate(rails):
        assert ends[:, axis] == pytest.approx([origin + low, origin + high], abs=1e-9)
        assert np.abs(np.delete(ends, axis, axis=1)).max() < 1e-9


def test_axes_that_meet_make_one_joint():
    kinds = {
        name: [mark.kind for mark in skeleton(load(name)).marks] for name in ("gough-stewart", "delta", "dualemps")
    }
    assert kinds["gough-stewart"].count("universal") == kinds["gough-stewart"].count("spherical") == 6
    assert kinds["delta"].count("universal") == 6  # at the elbow and at the platform of each leg
    assert kinds["dualemps"].count("clamp") == 4  # three blades, and the weld that closes the loop
    assert sorted(mark.point for mark in skeleton(load("dualemps")).marks if mark.motor)


def test_points_of_one_plane_share_it_and_pushing_rods_are_no_carriages():
    robot = load("c5")
    bones = skeleton(robot)
    points = bones.points(robot.home)
    planes = [points[list(face.corners)] for face in bones.faces if face.kind == "plane"]
    assert len(planes) == 3 and {edge.kind for edge in bones.edges} == {"sleeve", "slide"}
    feet = {tuple(points[mark.point].round(9)) for mark in bones.marks if mark.kind == "spherical"}
    for axis, corners in enumerate(planes):  # faces of the cube: two feet and the corner at the origin are on each
        assert np.abs(corners[:, axis]).max() < 1e-12
        inside = [foot for foot in (*feet, (0.0, 0.0, 0.0)) if foot[axis] == 0
                  and (corners.min(axis=0) <= foot).all() and (foot <= corners.max(axis=0)).all()]  # fmt: skip
        assert len(inside) == 3
