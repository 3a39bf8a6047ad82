"""Exported files: MuJoCo and Pinocchio load them and find the dynamics of the robot."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from support.catalogue import RIGID
from support.command_line import answered
from support.peers import TOLERANCE, Moving, MujocoPeer, PinocchioPeer, tree_forces
from support.robots import load_robot
from support.states import Draws, random_states

import parflex
from parflex.exchange.rigid_model import consistent_bodies, is_consistent, rigid_parts

REFUSED = {
    "mjcf": {
        "c5": "cannot express the point-on-plane closure",
        "par4": "'front_left.wrist', which moves and has no mass",
        "planar-cable": "the cable 'lower_left.cable'",
        "nut-in-loop": "cannot express the universal closure 'joined'",
    },
    "urdf": {
        "planar-cable": "the cable 'lower_left.cable'",
        "ball-screw": "cannot express the screw 'screw'",
        "rod-linkage": "cannot express the rod 'link'",
        "differential": "cannot express the coupling 'mean' of 3 joints",
    },
}
EXPORTS = {"mjcf": (parflex.export_mjcf, "robot.xml"), "urdf": (parflex.export_urdf, "robot.urdf")}
LOAD = {True: load_robot, False: parflex.load}
LEFT_OUT = {"emps": {"frame.axis.friction.offset": 0.0}}  # with a note
MACHINES = ("3-prs-2r", "4rrr", "emps", "hexaglide", "orthoglide", "par4", "planar-cable")
# screws, nuts, balls and rods by elements, sums of couplings
SMALL = ("ball-screw", "nut-in-loop", "rod-linkage", "differential")
QUICK = ("3rrr", "delta", "gough-stewart", "puma560", *SMALL)
LONG = {name: pytest.param(name, marks=pytest.mark.verify) for name in {*RIGID, *MACHINES, *SMALL} - set(QUICK)}
NAMES = [LONG.get(name, name) for name in sorted({*RIGID, *MACHINES, *SMALL})]


@pytest.fixture(scope="module")
def mujoco():
    return pytest.importorskip("mujoco", minversion="3.2.3")


@pytest.mark.parametrize("kind", EXPORTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_engines_find_the_efforts_of_a_robot_in_its_file(name, kind, tmp_path, figure, mujoco):
    """Efforts of the tree and openings of the loops, at random states about home."""
    robot, (export, file) = LOAD[name in SMALL](name, settings=LEFT_OUT.get(name)), EXPORTS[kind]
    if name in REFUSED[kind]:
        with pytest.raises(parflex.InputError, match=REFUSED[kind][name]):
            export(robot, tmp_path / file)
        return
    files = export(robot, tmp_path / file).files
    peer = MujocoPeer(mujoco, files[0]) if kind == "mjcf" else PinocchioPeer(*files)
    missed, opened = 0.0, 0.0
    for state in random_states(robot, 4, 7, Draws(), 0.1 * robot.tree.length):
        moving = Moving(robot, state)
        for link in robot.tree.links if kind == "urdf" else ():  # URDF has no springs, and a note reports that
            if link.terms.stiffness:
                pull = link.terms.stiffness * (moving.q[link.q.start] - link.terms.rest)
                moving.effort[link.name] = moving.effort.get(link.name, 0.0) - pull
        missed, opened = max(missed, peer.inverse_misses(moving)), max(opened, peer.opening(peer.state(moving)[0]))
    figure(f"{name}: efforts in the tree of {kind}, openings of the loops", max(missed, opened), TOLERANCE)
    assert missed < TOLERANCE and opened < TOLERANCE


KINDS = {"spherical": 3, "welded": 6, "revolute": 5, "universal": 4, "cylindrical": 4, "prismatic": 5, "planar": 3}
KINDS |= {"point-on-plane": 1, "point-on-line": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_closure_ties_two_frames_of_the_urdf_as_in_the_robot(kind, tmp_path):
    settings = {"closure.0.joint": kind} | ({"closure.0.axis_2": [2, 1, -2]} if kind == "universal" else {})
    robot = load_robot("loose-body", settings=settings)
    peer, rng = PinocchioPeer(*parflex.export_urdf(robot, tmp_path / "loose.urdf").files), np.random.default_rng(3)
    for _ in range(3):
        q, v, _ = peer.state(Moving.along_freedoms(robot, rng))
        rows = peer.rows(q)
        assert peer.opening(q) < 1e-12 and np.abs(rows @ v).max() < 1e-12 * np.abs(v).max()
        # joints of the loop, without the rotation of the post and the loose body
        assert np.linalg.matrix_rank(rows, tol=1e-9) - (peer.n - 7) == KINDS[kind]


@pytest.mark.parametrize("name", ["3rrr-flexible", "gough-stewart-flexible"])
def test_flexible_bodies_are_rigid_in_both_formats_and_notes_report_it(name, tmp_path, capsys):
    robot = parflex.load(name)
    for kind, (_, file) in EXPORTS.items():
        answer = answered(capsys, "export", kind, name, "-o", tmp_path / file)
        assert answer["file"] == str(tmp_path / file) and len(answer["files"]) == (1 if kind == "mjcf" else 2)
        assert any("flexible bodies are rigid here" in note for note in answer["notes"])
    masses = [float(mass.get("value")) for mass in ElementTree.parse(tmp_path / "robot.urdf").iter("mass")]
    total = sum(float(link.body.inertia_matrix(np.zeros(link.body.size))[0, 0]) for link in robot.tree.links)
    assert sum(masses) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(("name", "count"), [("delta", 6), ("5r", 1)])
def test_pins_in_space_are_held_at_two_points_of_their_axes(name, count, tmp_path):
    file = parflex.export_mjcf(parflex.load(name), tmp_path / "robot.xml").file
    assert len(ElementTree.parse(file).getroot().findall("equality/connect")) == count


@pytest.mark.parametrize("name", ["gough-stewart", "puma560"])
def test_inconsistent_bodies_become_consistent_bodies_with_the_same_forces(name):
    robot, rng = parflex.load(name), np.random.default_rng(5)
    parts = rigid_parts(robot)
    real = consistent_bodies(parts)
    assert not all(is_consistent(part.body) for part in parts) and all(is_consistent(part.body) for part in real)
    links = [replace(link, body=part.body) for link, part in zip(robot.tree.links, real, strict=True)]
    moving = Moving.along_freedoms(robot, rng)
    moving.qd, moving.qdd = rng.uniform(-2, 2, (2, robot.tree.n))
    ours = tree_forces(moving)
    moving.tree = replace(robot.tree, links=tuple(links))
    assert np.abs(ours - tree_forces(moving)).max() < 1e-10 * np.abs(ours).max()


@pytest.mark.parametrize("kind", EXPORTS)
def test_friction_by_direction_and_its_offset_are_noted(kind, tmp_path):
    export, file = EXPORTS[kind]
    notes = export(load_robot("axis-with-friction"), tmp_path / file).notes
    assert "friction of joint 'a' differs by direction: the mean of both is written" in notes
    assert "friction of joint 'a' has an offset: it is left out" in notes
