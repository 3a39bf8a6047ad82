"""Files of other programs read in: MuJoCo and Pinocchio find the same dynamics in the file that was read."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from conftest import RIGID
from support.foreign_robots import random_mjcf, random_urdf
from support.imported import (
    TOLERANCE,
    MujocoPeer,
    PinocchioPeer,
    anywhere,
    compare,
    import_some,
    loops_of,
    round_trip_misses,
    total_mass,
    tree_misses,
)
from support.states import Draws, random_states

import parflex
from parflex.cli.main import main

LONG = (pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify"))

FIVE_BAR = """<?xml version="1.0"?>
<robot name="bars">
  <link name="ground"><inertial><mass value="7"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  {arms}
  <link name="tool"/>
  <joint name="tool_fix" type="fixed"><parent link="far_left"/><child link="tool"/><origin xyz="0.4 0 0.1"/></joint>
  <transmission name="t"><joint name="near_left"/></transmission>
  <gazebo reference="tool"/>
</robot>
"""
ARM = """
  <link name="near_{side}">
    <inertial><origin xyz="0.1 0.02 -0.01" rpy="0.3 -0.2 0.5"/><mass value="1.2"/>
      <inertia ixx="0.02" ixy="0.003" ixz="-0.002" iyy="0.03" iyz="0.001" izz="0.025"/></inertial>
    <visual><geometry><mesh filename="package://bars/near.stl"/></geometry></visual>
  </link>
  <link name="far_{side}">
    <inertial><origin xyz="0.2 0 0"/><mass value="0.7"/>
      <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  </link>
  <link name="plate_{side}"><inertial><mass value="0.2"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="2e-4" iyz="0" izz="2e-4"/></inertial></link>
  <link name="end_{side}"/>
  <joint name="near_{side}" type="revolute">
    <parent link="ground"/><child link="near_{side}"/><origin xyz="{x} 0 0.2" rpy="{roll} 0 {near}"/>
    <axis xyz="0 {up} 0"/><limit lower="-3" upper="3" effort="20" velocity="4"/>
    <dynamics damping="0.3" friction="0.2"/>
  </joint>
  <joint name="far_{side}" type="continuous">
    <parent link="near_{side}"/><child link="far_{side}"/><origin xyz="0.3 0 0" rpy="0 {far} 0"/><axis xyz="0 2 0"/>
  </joint>
  <joint name="plate_{side}" type="fixed">
    <parent link="far_{side}"/><child link="plate_{side}"/><origin xyz="0.2 0.01 0" rpy="0 0 0.4"/>
  </joint>
  <joint name="end_{side}" type="fixed">
    <parent link="plate_{side}"/><child link="end_{side}"/><origin xyz="0.19 -0.1 0" rpy="0 0 -0.4"/>
  </joint>
"""


@pytest.fixture
def five_bar(tmp_path):
    """A URDF of two arms, turned and with a cut pin, and its loops."""
    left = ARM.format(side="left", x=-0.1, roll=0.1, near=0, far=0.9, up=1)
    right = ARM.format(side="right", x=0.1, roll=0.1, near=0, far=-0.9, up=1)
    (tmp_path / "bars.urdf").write_text(FIVE_BAR.format(arms=left + right))
    loops = {"closed_loop": [["end_left", "end_right"]], "type": ["3d"], "name_mot": ["near_left", "near_right"]}
    loops |= {"rotor_inertia": {"near_left": 0.05}, "gravity": [0.5, 0, -9.81]}
    (tmp_path / "loops.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in loops.items()))
    return tmp_path


def test_pinocchio_finds_our_dynamics_in_a_urdf_with_loops(five_bar):
    found = parflex.import_robot(five_bar / "bars.urdf", five_bar / "bars.toml", loops=five_bar / "loops.yaml")
    assert found.check["ok"], found.check
    robot = parflex.load(found.file)
    peer = PinocchioPeer(str(five_bar / "bars.urdf"), loops_of(five_bar / "loops.yaml"))
    assert max(compare(robot, peer)) < TOLERANCE


FEW, MANY = 12, 150


@pytest.mark.parametrize("seeds", [range(FEW), pytest.param(range(FEW, MANY), marks=LONG)], ids=["few", "many"])
def test_mujoco_finds_our_forces_in_random_trees(seeds, tmp_path):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    for seed in seeds:
        file, rng = tmp_path / "tree.xml", np.random.default_rng(seed)
        file.write_text(random_mjcf(seed))
        try:
            found = parflex.import_robot(file, tmp_path / "tree.toml")
        except parflex.InputError as error:
            assert error.message == "no joint of it moves"
            continue
        robot, peer = parflex.load(found.file), MujocoPeer(mujoco, file)
        for _ in range(3):
            assert tree_misses(peer, anywhere(robot, rng)) < 1e-10, seed


@pytest.mark.parametrize("seeds", [range(FEW), pytest.param(range(FEW, MANY), marks=LONG)], ids=["few", "many"])
def test_pinocchio_finds_our_forces_in_random_trees(seeds, tmp_path):
    for seed in seeds:
        file, rng = tmp_path / "tree.urdf", np.random.default_rng(seed)
        file.write_text(random_urdf(seed))
        try:
            found = import_some(file, tmp_path / "tree.toml")
        except parflex.InputError as error:
            assert error.message == "no joint of it moves"
            continue
        robot, peer = parflex.load(found.file), PinocchioPeer(str(file), {})
        for _ in range(3):
            assert tree_misses(peer, anywhere(robot, rng)) < 1e-10, seed


@pytest.mark.parametrize("seeds", [range(FEW), pytest.param(range(FEW, MANY), marks=LONG)], ids=["few", "many"])
def test_rows_of_loops_are_those_of_mujoco(seeds, tmp_path):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    for seed in seeds:
        file = tmp_path / "tree.xml"
        file.write_text(random_mjcf(seed, loops=1 + seed % 2))
        try:
            found = parflex.import_robot(file, tmp_path / "tree.toml")
        except parflex.InputError as error:
            assert error.message == "no joint of it moves"
            continue
        robot, peer = parflex.load(found.file), MujocoPeer(mujoco, file)
        rng, at = np.random.default_rng(seed), parflex.configure(robot)
        for column in at.null_space.T:
            moving = anywhere(robot, rng, at.q)
            moving.qd = np.zeros(robot.tree.n)
            moving.qd[robot.free] = column * robot.tree.rate_units[robot.free]
            q, v, _ = peer.state(moving)
            assert np.abs(peer.rows(q) @ v).max(initial=0) < 1e-9 and peer.opening(q) < 1e-9, seed
        bodies = [robot.tree.place(end).link for one in robot.description.closure for end in one.between]
        assert len(bodies) == 2 * len(found.closures) and all(
            a != b for a, b in zip(bodies[::2], bodies[1::2], strict=True)
        )
        rank = np.linalg.matrix_rank(peer.rows(q), tol=1e-7) if at.null_space.size else 0
        assert not at.null_space.size or at.null_space.shape[1] == peer.n - rank


ROUND = ("3rrr", "delta", "5r")
SPRINGLESS = {"four-bar": {"frame.rocker.spring.stiffness": 0.0}}  # as URDF has it, with a note
ROUND_TRIPS = [name if name in ROUND else pytest.param(name, marks=LONG) for name in sorted({*RIGID, "4rrr", "par4"})]


@pytest.mark.few
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_robots_come_back_from_the_files_that_they_are_exported_to(name, tmp_path, figure):
    robot, tried = parflex.load(name), 0
    for export, file in ((parflex.export_mjcf, "robot.xml"), (parflex.export_urdf, "robot.urdf")):
        if file == "robot.xml":
            pytest.importorskip("mujoco", minversion="3.2.3")
        try:
            exported = export(robot, tmp_path / file)
        except parflex.InputError as error:
            assert "cannot express" in error.message
            continue
        loops = exported.files[1] if len(exported.files) > 1 else None
        found = import_some(exported.file, tmp_path / "again.toml", loops=loops)
        assert found.check["ok"], found.check
        again = parflex.load(found.file)
        assert again.actuated_names == robot.actuated_names
        if not any("move" in note for note in exported.notes):  # mass that joints do not feel is moved between bodies
            assert total_mass(again) == pytest.approx(total_mass(robot), rel=1e-12)
        left_out = any(link.terms.stiffness for link in robot.tree.links) and file == "robot.urdf"
        assert left_out == any("springs" in note for note in exported.notes)
        same = parflex.load(name, settings=SPRINGLESS[name]) if left_out else robot
        states = random_states(same, 2, 7, Draws(), 0.1 * robot.tree.length)
        missed = max(round_trip_misses(same, again, state) for state in states)
        figure(f"{name}: efforts after {file.split('.')[1]} and back", missed, TOLERANCE)
        assert missed < TOLERANCE
        tried += 1
    assert tried


LEGS = """<mujoco model="legs">
  <compiler angle="degree" autolimits="true" meshdir="meshes"/>
  <option gravity="0 0.3 -9.81"/>
  <default><joint damping="0.2" armature="0.01"/><default class="motor"><joint frictionloss="0.4" range="-170 170"/>
    </default></default>
  <worldbody>
    <geom type="plane" size="1 1 0.1"/>
    <body name="crank" pos="0 0 0.1" euler="20 0 0"><joint name="crank" class="motor" axis="0 1 0" ref="30"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>
      <body name="bar" pos="0.2 0 0"><joint name="bar.1" axis="0 0 1"/><joint name="bar.2"
        axis="0 1 0" pos="0 0 0"/>
        <geom type="capsule" fromto="0 0 0 0.5 0.1 0.3" size="0.01"/></body></body>
    <body name="rocker" pos="0.7 0 0.1" euler="0 10 0"><joint name="rocker" axis="0 1 0" stiffness="3" springref="20"/>
      <geom type="box" size="0.02 0.02 0.2" pos="0 0 0.2"/><site name="top" pos="0 0 0.4"/>
      <body name="sled" pos="0 0 0.1"><joint name="sled" type="slide" axis="0 0 2"/>
        <geom size="0.03" mass="0.4"/></body>
    </body>
    <body name="wheel" pos="0 0.5 0"><joint name="wheel" axis="1 1 0"/><geom type="box" size="0.1 0.05 0.02"/></body>
  </worldbody>
  <equality>
    <connect name="ball" body1="bar" body2="rocker" anchor="0.5 0.1 0.3"/>
    <joint name="gear" joint1="wheel" joint2="crank" polycoef="0.1 -2 0 0 0"/>
    <weld body1="wheel" body2="sled" active="false"/>
  </equality>
  <tendon><spatial name="pull" stiffness="30" damping="2" springlength="0.3"><site site="top"/><site site="anchor"/>
    </spatial></tendon>
  <actuator><position name="servo" joint="crank" kp="50"/><motor joint="sled" gear="3"/></actuator>
  <sensor><jointpos joint="crank"/></sensor>
</mujoco>""".replace('<geom type="plane"', '<site name="anchor" pos="0.2 0.3 0.9"/><geom type="plane"')


@pytest.fixture
def legs(tmp_path):
    """A file of MuJoCo with a loop of a ball, a gear, a spring in space and servos."""
    (tmp_path / "legs.xml").write_text(LEGS)
    return tmp_path / "legs.xml"


def test_mujoco_finds_our_dynamics_in_its_own_file_with_loops(legs, tmp_path):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    found = parflex.import_robot(legs, tmp_path / "legs.toml")
    assert found.check["ok"], found.check
    assert found.joints == ("crank", "bar.1", "bar.2", "rocker", "sled", "wheel") and found.closures == ("ball",)
    robot = parflex.load(found.file)
    assert robot.actuated_names == ["crank", "sled"]
    assert max(compare(robot, MujocoPeer(mujoco, str(legs)))) < TOLERANCE
    kinds = {one.kind for one in found.dropped}
    assert {"contact", "shape", "sensor", "softness", "actuator law", "equality"} <= kinds
    text = (tmp_path / "legs.toml").read_text()
    assert "# Not carried over:" in text and "# - equality equality2: it is not active" in text


FINGER = """<body name="driver.{k}" pos="0 {y} 0" quat="{quat}"><joint name="driver.{k}" class="driver"/>
  <inertial mass="0.02" pos="0 0.01 0.02" diaginertia="2e-6 3e-6 4e-6"/>
  <body name="coupler.{k}" pos="0 0.04 0.01"><joint name="coupler.{k}"/>
    <inertial mass="0.03" pos="0 0.01 0.02" diaginertia="3e-6 3e-6 2e-6"/></body></body>
<body name="link.{k}" pos="0 {near} 0.02" quat="{quat}"><joint name="link.{k}" damping="0.01" stiffness="0.05"/>
  <inertial mass="0.02" pos="0 0.02 0.02" diaginertia="2e-6 2e-6 1e-6"/>
  <body name="pad.{k}" pos="0 0.03 0.04"><joint name="pad.{k}"/>
    <inertial mass="0.04" pos="0 0 0.02" diaginertia="4e-6 4e-6 1e-6"/></body></body>
"""
GRIPPER = """<mujoco model="gripper"><compiler angle="radian" autolimits="true"/><option gravity="0 1 -9.81"/>
<default><joint axis="1 0 0" armature="0.0001"/><default class="driver"><joint range="0 0.8" damping="0.02"/></default>
</default><worldbody><body name="palm" pos="0 0 0.1">{fingers}</body></worldbody>
<tendon><fixed name="split"><joint joint="driver.r" coef="0.5"/><joint joint="driver.l" coef="0.5"/></fixed></tendon>
<equality><connect body1="coupler.r" body2="pad.r" anchor="0 -0.005 0.06"/>
  <connect body1="coupler.l" body2="pad.l" anchor="0 -0.005 0.06"/>
  <joint joint1="driver.r" joint2="driver.l" polycoef="0 1 0 0 0"/></equality>
<actuator><general name="grip" tendon="split" gainprm="80 0 0" biastype="affine" biasprm="0 -100 -10"/></actuator>
</mujoco>"""


def test_a_gripper_of_two_coupled_loops_moves_as_in_mujoco(tmp_path):
    """Of the kind that public collections have: defaults, a loop in each finger, one servo on a sum of joints."""
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    fingers = FINGER.format(k="r", y=0.03, near=0.012, quat="1 0 0 0") + FINGER.format(k="l", y=-0.03, near=-0.012,
                                                                                       quat="0 0 0 1")  # fmt: skip
    (tmp_path / "gripper.xml").write_text(GRIPPER.format(fingers=fingers))
    found = parflex.import_robot(tmp_path / "gripper.xml", tmp_path / "gripper.toml")
    assert found.check["ok"], found.check
    robot = parflex.load(found.file)
    assert robot.actuated_names == ["driver.r"] and len(found.closures) == 2
    peer, rng = MujocoPeer(mujoco, str(tmp_path / "gripper.xml")), np.random.default_rng(2)
    for _ in range(2):
        assert tree_misses(peer, anywhere(robot, rng)) < 1e-10
    assert robot.mobility.freedoms(robot.tree.n) == peer.n - np.linalg.matrix_rank(
        peer.rows(peer.model.qpos0), tol=1e-7
    )


SWITCHES = """<mujoco><option gravity="0 0.5 -9.81" {groups}><flag {flag}/></option>
  <worldbody><body name="a" gravcomp="{first}"><joint name="j" axis="0 1 0" stiffness="3" damping="2" frictionloss="0.4"
      range="-3 3" limited="true"/><geom size="0.05" mass="2" pos="0.3 0 0"/>
    <body name="b" pos="0.3 0 0" gravcomp="{second}"><joint name="k" axis="0 1 0.2" stiffness="1"/>
      <geom size="0.05" mass="1" pos="0.2 0 0"/>
      <body name="c" pos="0 0 0.2"><joint name="l" axis="1 0 0"/><inertial pos="0 0 0.1" mass="1e-9"
      diaginertia="1e-9 1e-9 1e-9"/></body></body></body></worldbody>
  <equality><joint joint1="k" joint2="j" polycoef="0 0.5 0 0 0"/></equality>
  <actuator><motor name="m" joint="j" group="2"/><motor name="n" joint="l"/></actuator></mujoco>"""


@pytest.mark.parametrize("first, second", [(0, 0), (0.6, 0.6), (0.6, 0)])
@pytest.mark.parametrize(
    "flag", ["spring", "damper", "frictionloss", "limit", "equality", "constraint", "gravity", "actuation", "both"]
)
def test_what_options_of_mujoco_switch_off_does_not_act(flag, first, second, tmp_path):
    """Springs, dampers, equalities, friction, gravity; a share of gravity that no body feels."""
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    file = tmp_path / "arm.xml"
    words = "spring damper" if flag == "both" else flag
    text = SWITCHES.format(flag=" ".join(f'{word}="disable"' for word in words.split()), first=first, second=second,
                           groups="")  # fmt: skip
    file.write_text(text.replace('<body name="c" pos', f'<body name="c" gravcomp="{second}" pos'))
    found = parflex.import_robot(file, tmp_path / "arm.toml")
    robot, peer = parflex.load(found.file), MujocoPeer(mujoco, file)
    said = " ".join(found.warnings)
    assert flag in ("gravity", "both") or flag == "constraint" or f"the option {flag} is disabled" in said
    if first != second and flag not in ("gravity", "both"):
        assert "gravity compensation of a is left out" in said
        peer.model.body_gravcomp[:] = 0
    if flag in ("frictionloss", "constraint"):
        peer.model.dof_frictionloss[:] = 0
    rng = np.random.default_rng(5)
    for _ in range(2):
        assert tree_misses(peer, anywhere(robot, rng)) < 1e-10
    assert bool(robot.description.coupling) == (flag not in ("equality", "constraint"))
    assert (robot.description.frame[0].limits is None) == (flag in ("limit", "constraint"))


def test_groups_of_actuators_that_are_switched_off_are_no_motors(tmp_path):
    pytest.importorskip("mujoco", minversion="3.2.3")
    text = SWITCHES.format(flag='energy="enable"', first=0, second=0, groups='actuatorgroupdisable="2 5"')
    (tmp_path / "arm.xml").write_text(text)
    found = parflex.import_robot(tmp_path / "arm.xml", tmp_path / "arm.toml")
    assert parflex.load(found.file).actuated_names == ["l"]
    assert any(one.kind == "actuator" and one.name == "m" for one in found.dropped)


def test_the_command_line_imports_and_tells_what_was_dropped(five_bar, capsys):
    words = [str(five_bar / "bars.urdf"), "--loops", str(five_bar / "loops.yaml"), "-o", str(five_bar / "bars.toml")]
    with pytest.raises(SystemExit) as done:
        main(["import", *words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert done.value.code == 0 and answer["check"]["ok"] and answer["file"] == str(five_bar / "bars.toml")
    assert answer["joints"] == ["near_left", "far_left", "near_right", "far_right"]
    assert answer["closures"] == ["end_left~end_right"]
    assert {"kind": "gazebo", "name": "tool", "why": "robot files do not have it"} in answer["dropped"]
    assert any(one["kind"] == "mesh" and one["name"] == "package://bars/near.stl" for one in answer["dropped"])
