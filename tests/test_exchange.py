"""Files for MuJoCo and Pinocchio: these engines load them and find the same dynamics."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import RIGID
from support.exchanged import Moving, by_mujoco, by_pinocchio
from support.states import Draws, random_states

import parflex
from parflex.cli.main import main
from parflex.exchange.real_bodies import is_real, real_bodies
from parflex.exchange.rigid_parts import parts_of
from parflex.recursion import motion, newton_euler, pose

# files have 17 digits, states conditions up to 1e4; MuJoCo turns inertias to their axes within 1e-12
TOLERANCE = 1e-8
NOT_IN_MJCF = {
    "c5": "cannot express the point-on-plane closure",
    "par4": "'front_left.wrist', which moves and has no mass",
    "planar-cable": "the cable 'lower_left.cable'",
}
NOT_IN_URDF = {"planar-cable": "the cable 'lower_left.cable'"}
LEFT_OUT = {"emps": {"frame.axis.friction.offset": 0.0}}  # with a note
MACHINES = ("3-prs-2r", "4rrr", "emps", "hexaglide", "orthoglide", "par4", "planar-cable")
ROBOTS = Path(__file__).parent / "robots"
ALL = sorted({*RIGID, *MACHINES})
FEW = ("3rrr", "delta", "gough-stewart", "puma560")
LONG = (pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify"))
NAMES = [name if name in FEW else pytest.param(name, marks=LONG) for name in ALL]
COUNT, NEAR = 4, 0.1  # typical lengths about home


def worst(robot, found) -> tuple[float, float]:
    """Largest error of efforts, and largest opening of the loops, over random states."""
    missed, opened = 0.0, 0.0
    for state in random_states(robot, COUNT, 7, Draws(), NEAR * robot.tree.length):
        moving = Moving(robot, state)
        here = found(moving)
        missed, opened = max(missed, here.misses(moving)), max(opened, here.opening)
    return missed, opened


@pytest.mark.parametrize("name", NAMES)
def test_mujoco_finds_our_efforts_in_the_file_of_a_robot(name, tmp_path, figure):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    robot = parflex.load(name, settings=LEFT_OUT.get(name))
    if name in NOT_IN_MJCF:
        return
    file = parflex.export_mjcf(robot, tmp_path / "robot.xml").file
    missed, opened = worst(robot, lambda moving: by_mujoco(mujoco, file, moving))
    figure(f"{name}: efforts in MuJoCo's tree, loops of its constraints", max(missed, opened), TOLERANCE)
    assert missed < TOLERANCE and opened < TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_pinocchio_finds_our_efforts_in_the_file_of_a_robot(name, tmp_path, figure):
    robot = parflex.load(name, settings=LEFT_OUT.get(name))
    if name in NOT_IN_URDF:
        return
    files = parflex.export_urdf(robot, tmp_path / "robot.urdf").files
    missed, opened = worst(robot, lambda moving: by_pinocchio(files, moving))
    figure(f"{name}: efforts in Pinocchio's tree, loops of the file beside it", max(missed, opened), TOLERANCE)
    assert missed < TOLERANCE and opened < TOLERANCE


@pytest.mark.verify
def test_robots_that_a_format_cannot_express_are_refused_with_the_reason(tmp_path):
    for name in ALL:
        robot = parflex.load(name)
        for export, refused, file in (
            (parflex.export_mjcf, NOT_IN_MJCF, "robot.xml"),
            (parflex.export_urdf, NOT_IN_URDF, "robot.urdf"),
        ):
            if name not in refused:
                export(robot, tmp_path / file)
                continue
            with pytest.raises(parflex.InputError, match=refused[name]):
                export(robot, tmp_path / file)


@pytest.mark.parametrize("name", ["3rrr-flexible", "gough-stewart-flexible"])
def test_flexible_bodies_are_rigid_in_both_formats_and_notes_say_so(name, tmp_path):
    robot = parflex.load(name)
    for exported in (
        parflex.export_mjcf(robot, tmp_path / "robot.xml"),
        parflex.export_urdf(robot, tmp_path / "robot.urdf"),
    ):
        assert any("flexible bodies are rigid here" in note for note in exported.notes)
    masses = [float(mass.get("value")) for mass in ElementTree.parse(tmp_path / "robot.urdf").iter("mass")]
    total = sum(float(link.body.inertia_matrix(np.zeros(link.body.size))[0, 0]) for link in robot.tree.links)
    assert sum(masses) == pytest.approx(total, rel=1e-12)


LOOSE = """
format = 1
name = "loose"
gravity = [0, 0, -9.81]
[[frame]]
name = "post"
joint = "revolute"
place = { position = [0.1, 0.2, 0.3], rotation = [0.3, -0.2, 0.5] }
inertia = { mass = 2, about_centre = [0.1, 0.1, 0.1] }
[[frame]]
name = "body"
joint = "free"
start = [0.1, 0.2, 0.3, 0.3, -0.2, 0.5]
inertia = { mass = 1, centre = [0.1, 0, 0], about_centre = [0.01, 0.02, 0.03] }
[[closure]]
between = ["post", "body"]
joint = "KIND"
axis = [1, 2, 2]
AXIS_2
"""
KINDS = {"spherical": 3, "welded": 6, "revolute": 5, "universal": 4, "cylindrical": 4, "prismatic": 5, "planar": 3}
KINDS |= {"point-on-plane": 1, "point-on-line": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_closure_ties_two_frames_of_the_urdf_as_ours_does(kind, tmp_path):
    second = "axis_2 = [2, 1, -2]" if kind == "universal" else ""
    (tmp_path / "loose.toml").write_text(LOOSE.replace("KIND", kind).replace("AXIS_2", second))
    robot = parflex.load(tmp_path / "loose.toml")
    files = parflex.export_urdf(robot, tmp_path / "loose.urdf").files
    rng = np.random.default_rng(3)
    for _ in range(3):
        found = by_pinocchio(files, Moving.along_freedoms(robot, rng))
        assert found.opening < 1e-12
        free = found.rows.shape[1] - 7  # joints of the loop, beside the turn of the post and the loose body
        assert np.linalg.matrix_rank(found.rows, tol=1e-9) - free == KINDS[kind]


@pytest.mark.parametrize("name", ["ball-screw", "nut-in-loop", "rod-linkage", "differential"])
def test_screws_balls_rods_and_sums_of_couplings_are_what_the_engines_find(name, tmp_path):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    robot = parflex.load(ROBOTS / f"{name}.toml")
    tried = 0
    for export, file in ((parflex.export_mjcf, "robot.xml"), (parflex.export_urdf, "robot.urdf")):
        try:
            files = export(robot, tmp_path / file).files
        except parflex.InputError as error:
            assert "cannot express" in error.message
            continue
        engine = (lambda moving, f=files: by_mujoco(mujoco, f[0], moving)) if len(files) == 1 else None
        missed, opened = worst(robot, engine or (lambda moving, f=files: by_pinocchio(f, moving)))
        assert missed < TOLERANCE and opened < TOLERANCE
        tried += 1
    assert tried


def test_the_command_line_writes_both_formats_and_tells_files_and_notes(tmp_path, capsys):
    for kind, count in (("mjcf", 1), ("urdf", 2)):
        with pytest.raises(SystemExit) as done:
            main(["export", kind, "3rrr-flexible", "-o", str(tmp_path / f"robot.{kind}"), "--json"])
        answer = json.loads(capsys.readouterr().out)
        assert done.value.code == 0 and answer["file"] == str(tmp_path / f"robot.{kind}")
        assert len(answer["files"]) == count and "flexible bodies are rigid" in answer["notes"][0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["step", "5r", "-o", "x"], "there is no format 'step'"),
        (["mjfc", "5r", "-o", "x"], "did you mean 'mjcf'"),
        (["mjcf", "c5", "-o", "x"], "MJCF cannot express the point-on-plane closure"),
        (["mjcf", "5r", "-o", "nowhere/x.xml"], "cannot be written"),
        (["mjcf", "dualemps", "-o", "x"], "'25', which moves and has no mass"),
    ],
)
def test_exports_that_cannot_be_are_refused_in_a_sentence(words, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(["export", *words])
    assert done.value.code == 2 and says in capsys.readouterr().err


def test_pins_in_space_are_held_at_two_points_of_their_axes(tmp_path):
    ties = dict.fromkeys(("delta", "5r"), 0)
    for name in ties:
        file = parflex.export_mjcf(parflex.load(name), tmp_path / "robot.xml").file
        ties[name] = len(ElementTree.parse(file).getroot().findall("equality/connect"))
    assert ties == {"delta": 6, "5r": 1}


def tree_forces(tree, q, qd, qdd):
    at = pose(tree, q)
    return newton_euler(tree, at, motion(tree, at, qd, qdd)).forces


def test_bodies_that_cannot_be_become_real_ones_that_move_alike():
    rng = np.random.default_rng(5)
    for name in ("gough-stewart", "puma560"):
        robot = parflex.load(name)
        parts = parts_of(robot)
        assert not all(is_real(part.body) for part in parts)
        real = real_bodies(parts)
        assert real is not None and all(is_real(part.body) for part in real)
        links = [replace(link, body=part.body) for link, part in zip(robot.tree.links, real, strict=True)]
        other = replace(robot.tree, links=tuple(links))
        qd, qdd = rng.uniform(-2, 2, (2, robot.tree.n))
        ours, theirs = (tree_forces(tree, robot.home, qd, qdd) for tree in (robot.tree, other))
        assert np.abs(ours - theirs).max() < 1e-10 * np.abs(ours).max()


def test_friction_by_direction_and_its_offset_are_noted(tmp_path):
    file = tmp_path / "axis.toml"
    file.write_text(
        'format = 1\nname = "axis"\ngravity = [0, 0, 0]\n[[frame]]\nname = "a"\njoint = "prismatic"\nactuated = true\n'
        "inertia = { mass = 1, about_centre = [1, 1, 1] }\n"
        "friction = { viscous = 3, coulomb = 2, coulomb_back = 1, offset = 0.5 }\n"
    )
    robot = parflex.load(str(file))
    for exported in (parflex.export_mjcf(robot, tmp_path / "a.xml"), parflex.export_urdf(robot, tmp_path / "a.urdf")):
        assert "friction of joint 'a' differs by direction: the mean of both is written" in exported.notes
        assert "friction of joint 'a' has an offset: it is left out" in exported.notes
