"""Robots as people write them for other programs: rounded numbers, comments, block lists; then there and back."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from support.exchanged import Moving
from support.imported import TOLERANCE, MujocoPeer, PinocchioPeer, compare, import_some
from support.states import Draws, random_states

import parflex

# -- a planar five-bar whose elbow plate is kept parallel by a second loop -----------------------------------------

PLANAR = """<?xml version="1.0"?>
<!-- two motors on the base, z up -->
<robot name="plotter">
  <material name="alu"><color rgba="0.7 0.7 0.7 1"/></material>
  <link name="base_link"/>
  {links}
  <joint name="left_motor" type="revolute"><parent link="base_link"/><child link="left_arm"/>
    <origin xyz="-0.06 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="3.2" effort="2.5" velocity="10"/>
    <dynamics damping="0.01" friction="0.02"/></joint>
  <joint name="right_motor" type="revolute"><parent link="base_link"/><child link="right_arm"/>
    <origin xyz="0.06 0 0"/><axis xyz="0 0 -1"/><limit lower="-3.2" upper="1" effort="2.5" velocity="10"/></joint>
  <joint name="guide" type="continuous"><parent link="base_link"/><child link="guide_arm"/>
    <origin xyz="-0.1 0.03 0"/><axis xyz="0 0 1"/></joint>
  <joint name="plate" type="continuous"><parent link="left_arm"/><child link="elbow_plate"/>
    <origin xyz="0.2 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="left_elbow" type="continuous"><parent link="elbow_plate"/><child link="left_forearm"/>
    <origin xyz="0 0 0.01"/><axis xyz="0 0 1"/></joint>
  <joint name="right_elbow" type="continuous"><parent link="right_arm"/><child link="right_forearm"/>
    <origin xyz="0.2 0 0.01"/><axis xyz="0 0 1"/></joint>
  <joint name="pen_mount" type="fixed"><parent link="left_forearm"/><child link="pen"/><origin xyz="0.26 0 0"/></joint>
  <joint name="right_end" type="fixed"><parent link="right_forearm"/><child link="right_tip"/>
    <origin xyz="0.26 0 0"/></joint>
  <joint name="guide_end" type="fixed"><parent link="guide_arm"/><child link="guide_tip"/>
    <origin xyz="0.2 0 0"/></joint>
  <joint name="plate_end" type="fixed"><parent link="elbow_plate"/><child link="plate_tip"/>
    <origin xyz="-0.04 0.03 0"/></joint>
</robot>"""
LINK = """<link name="{}"><visual><geometry><box size="{x2} 0.02 0.005"/></geometry><material name="alu"/></visual>
    <inertial><origin xyz="{x} 0.001 0"/><mass value="{m}"/>
    <inertia ixx="1e-5" ixy="2e-6" ixz="0" iyy="4e-4" iyz="0" izz="4.1e-4"/></inertial></link>"""
PLANAR_LOOPS = """# loops of the plotter
closed_loop:
  - - pen          # the two forearms
    - right_tip
  - [guide_tip, plate_tip]
type:
  - 3d
  - "3d"
name_mot: [left_motor, 'right_motor']
gravity: [0, -9.81, 0]   # it stands on edge
"""


def plotter(folder) -> tuple[str, dict]:
    """Files of the plotter, and its loops."""
    arms = {"left_arm": 0.1, "right_arm": 0.1, "guide_arm": 0.09, "left_forearm": 0.13, "right_forearm": 0.12}
    links = [LINK.format(name, x=x, x2=2 * x, m=round(0.05 + x, 3)) for name, x in arms.items()]
    links += [LINK.format("elbow_plate", x=-0.01, x2=0.05, m=0.02), '<link name="pen"/><link name="right_tip"/>']
    links += ['<link name="guide_tip"/><link name="plate_tip"/>']
    (folder / "robot.urdf").write_text(PLANAR.format(links="\n  ".join(links)))
    (folder / "loops.yaml").write_text(PLANAR_LOOPS)
    pairs = [["pen", "right_tip"], ["guide_tip", "plate_tip"]]
    return "left_motor", {"closed_loop": pairs, "type": ["3d", "3d"], "gravity": [0, -9.81, 0]}


# -- a delta: three arms, six rods on crosses, the plate on a ball of the first rod ---------------------------------

ARM = """
  <link name="arm{k}"><inertial><origin xyz="0.1 0 0"/><mass value="0.3"/>
    <inertia ixx="1e-4" ixy="0" ixz="1e-5" iyy="1.1e-3" iyz="0" izz="1.1e-3"/></inertial></link>
  <joint name="motor{k}" type="revolute"><parent link="base"/><child link="arm{k}"/>
    <origin xyz="{x} {y} 0" rpy="0 0 {turn}"/><axis xyz="0 1 0"/>
    <limit lower="-1.2" upper="1.57" effort="30" velocity="6"/><dynamics damping="0.05"/></joint>"""
ROD = """
  <link name="cross{k}{s}"/>
  <link name="rod{k}{s}"><inertial><origin xyz="0 0 -0.2"/><mass value="0.08"/>
    <inertia ixx="1.1e-3" ixy="0" ixz="0" iyy="1.1e-3" iyz="0" izz="2e-6"/></inertial></link>
  <link name="tip{k}{s}"/>
  <joint name="swing{k}{s}" type="continuous"><parent link="arm{k}"/><child link="cross{k}{s}"/>
    <origin xyz="0.2 {side} 0"/><axis xyz="0 1 0"/></joint>
  <joint name="sway{k}{s}" type="continuous"><parent link="cross{k}{s}"/><child link="rod{k}{s}"/>
    <axis xyz="1 0 0"/></joint>
  <joint name="end{k}{s}" type="fixed"><parent link="rod{k}{s}"/><child link="tip{k}{s}"/>
    <origin xyz="0 0 -0.4"/></joint>"""
PLATE = """
  <link name="plate"><inertial><origin xyz="-0.05 -0.03 -0.01"/><mass value="0.25"/>
    <inertia ixx="2e-4" ixy="1e-5" ixz="0" iyy="2e-4" iyz="0" izz="3.5e-4"/></inertial></link>
  <joint name="ball" type="floating"><parent link="tip1a"/><child link="plate"/></joint>"""


def delta(folder) -> tuple[str, dict]:
    """Files of the delta, and its loops; the plate begins at its first corner."""
    turns = {1: "0", 2: "2.0944", 3: "-2.0944"}  # as people round them
    spots = {1: ("0.15", "0"), 2: ("-0.075", "0.1299"), 3: ("-0.075", "-0.1299")}
    corner = {1: (0.05, 0.0), 2: (-0.025, 0.0433), 3: (-0.025, -0.0433)}  # of the plate, about its centre
    along = {1: (0.0, 1.0), 2: (-0.86603, -0.5), 3: (0.86603, -0.5)}
    text, yaml, pairs = "", "closed_loop:\n", []
    first = (corner[1][0], corner[1][1] + 0.04)
    for k, turn in turns.items():
        text += ARM.format(k=k, turn=turn, x=spots[k][0], y=spots[k][1])
        for s, sign in (("a", 1), ("b", -1)):
            text += ROD.format(k=k, s=s, side=0.04 * sign)
            if (k, s) == (1, "a"):
                continue
            x, y = (corner[k][i] + 0.04 * sign * along[k][i] - first[i] for i in (0, 1))
            text += f'<link name="pad{k}{s}"/><joint name="pad{k}{s}_fix" type="fixed"><parent link="plate"/>'
            text += f'<child link="pad{k}{s}"/><origin xyz="{x:.5f} {y:.5f} 0"/></joint>'
            yaml += f"- [tip{k}{s}, pad{k}{s}]\n"
            pairs.append([f"tip{k}{s}", f"pad{k}{s}"])
    (folder / "robot.urdf").write_text(f'<robot name="delta"><link name="base"/>{text}{PLATE}</robot>')
    yaml += "type: ['3d', '3d', '3d', '3d', '3d']\nname_mot: [motor1, motor2, motor3]\n"
    yaml += "joint_name: [ball]\njoint_type: [SPHERICAL]\n"
    (folder / "loops.yaml").write_text(yaml)
    kinds = {"joint_name": ["ball"], "joint_type": ["SPHERICAL"]}
    return "motor1", {"closed_loop": pairs, "type": ["3d"] * 5, **kinds}


@pytest.mark.parametrize("written", [pytest.param(plotter, marks=pytest.mark.verify), delta])
def test_two_loops_and_five_loops_of_a_urdf_move_as_in_pinocchio(written, tmp_path, figure):
    from support.import_foreign import changed

    motor, loops = written(tmp_path)
    urdf = str(tmp_path / "robot.urdf")
    found = import_some(urdf, tmp_path / "robot.toml", loops=tmp_path / "loops.yaml")
    assert found.check["ok"], found.check
    robot = parflex.load(found.file)
    assert motor in robot.actuated_names
    assert robot.mobility.freedoms(robot.tree.n) == len(robot.actuated_names)
    missed = max(compare(robot, PinocchioPeer(urdf, loops, changed(urdf, loops)), spread=0.1 * robot.tree.length))
    figure(f"{robot.name} written by hand: inverse and direct dynamics beside Pinocchio", missed, TOLERANCE)
    assert missed < TOLERANCE
    there_and_back(robot, tmp_path)


def there_and_back(robot: parflex.Robot, folder, formats: tuple[str, ...] = ("out.urdf", "out.xml")) -> None:
    """Efforts after export and import, and ends of loops that bear the names of places of the first file."""
    states = list(random_states(robot, 2, 7, Draws(), 0.03 * robot.tree.length))
    for name in formats:
        export = parflex.export_urdf if name.endswith("urdf") else parflex.export_mjcf
        exported = export(robot, folder / name)
        loops = exported.files[1] if len(exported.files) > 1 else None
        again = import_some(exported.file, folder / "again.toml", loops=loops)
        assert again.check["ok"], again.check
        assert max(by_motors_misses(robot, parflex.load(again.file), state) for state in states) < TOLERANCE


def by_motors_misses(robot: parflex.Robot, again: parflex.Robot, state) -> float:
    """How far efforts are from those of the first; crosses of rods may be turned over, so motors alone are given."""
    moving, motors = Moving(robot, state), robot.actuated_names
    own = {link.name: link for link in robot.tree.links}
    values = [
        {name: float(row[getattr(own[name], which).start]) for name in motors}
        for row, which in ((moving.q, "q"), (moving.qd, "v"), (moving.qdd, "v"))
    ]
    found = parflex.inverse_dynamics(again, *values)
    size = max(map(abs, moving.effort.values()))
    return max(abs(found.efforts[name] - effort) for name, effort in moving.effort.items()) / size


# -- a file of MuJoCo with classes in classes, all kinds of equalities, tendons and actuators -----------------------

PRESS = """<mujoco model="press">
  <!-- a toggle press: crank, two bars, a ram on a guide; a second half of the ram is welded on -->
  <compiler angle="degree" coordinate="local" autolimits="true"/>
  <option timestep="0.001" gravity="0 0 -9.81" integrator="implicitfast"/>
  <default>
    <joint damping="0.05" armature="0.002"/>
    <geom type="capsule" size="0.015" density="2700" contype="0" conaffinity="0"/>
    <default class="heavy"><geom density="7800"/>
      <default class="driven"><joint armature="0.01" frictionloss="0.1" range="-120 120"/></default></default>
  </default>
  <worldbody>
    <site name="post" pos="0.3 0.1 0.8"/>
    <body name="crank" childclass="heavy" pos="0 0 0.5">
      <joint name="crank" class="driven" axis="0 1 0"/>
      <geom fromto="0 0 0 0.1 0 0"/>
      <body name="rod" pos="0.1 0 0" euler="0 30 0">
        <joint name="rod_pin" axis="0 1 0"/>
        <geom fromto="0 0 0 0.2 0 0" class="main"/>
      </body>
    </body>
    <body name="upper" pos="0.2732050807568877 0 0.6">
      <joint name="upper" axis="0 1 0" stiffness="0.3" springref="5"/>
      <geom fromto="0 0 0 0 0 -0.2"/>
      <site name="mid" pos="0.01 0 -0.1"/>
      <body name="lower" pos="0 0 -0.2">
        <joint name="knee" axis="0 1 0"/>
        <geom fromto="0 0 0 0 0 -0.25"/>
        <body name="lower_end" pos="0 0 -0.25"><joint name="ankle" axis="0 1 0"/>
          <geom size="0.02" fromto="0 0 0 0 0 -0.03"/></body>
      </body>
    </body>
    <body name="ram" pos="0.2732050807568877 0 0.1"><joint name="ram" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.05 0.05 0.02" mass="1.5"/></body>
    <body name="gear1" pos="0 0.2 0.5"><joint name="gear1" axis="0 1 0"/>
      <geom type="cylinder" size="0.04 0.01"/></body>
    <body name="gear2" pos="0.1 0.2 0.5"><joint name="gear2" axis="0 1 0"/>
      <geom type="cylinder" size="0.06 0.01"/></body>
    <body name="tray" pos="-0.3 0 0.2"><joint name="tray_x" type="slide" axis="1 0 0"/>
      <joint name="tray_z" type="slide" axis="0 0 1"/><geom type="box" size="0.05 0.05 0.01"/></body>
  </worldbody>
  <equality>
    <connect name="knee_pin" body1="rod" body2="lower" anchor="0.2 0 0"/>
    <weld name="ram_weld" body1="lower_end" body2="ram"/>
    <joint name="mesh" joint1="gear2" joint2="gear1" polycoef="0 -0.6667 0 0 0"/>
    <joint name="timing" joint1="gear1" joint2="crank" polycoef="0 1 0 0 0"/>
  </equality>
  <tendon>
    <spatial name="counterweight" stiffness="12" damping="0.4" springlength="0.2">
      <site site="post"/><site site="mid"/></spatial>
    <fixed name="sum"><joint joint="tray_x" coef="1"/><joint joint="tray_z" coef="2"/></fixed>
  </tendon>
  <actuator>
    <general name="press" joint="crank" gear="20" gaintype="fixed" gainprm="3" biastype="affine" biasprm="0 -1 -0.2"/>
    <velocity name="tray_speed" joint="tray_x" kv="4"/>
    <position name="tray_place" joint="tray_z" kp="100" gear="-2"/>
  </actuator>
</mujoco>"""


def test_a_press_of_mujoco_with_all_equalities_and_actuators_moves_as_there(tmp_path, figure):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    (tmp_path / "press.xml").write_text(PRESS)
    found = parflex.import_robot(tmp_path / "press.xml", tmp_path / "robot.toml")
    assert found.check["ok"], found.check
    robot = parflex.load(found.file)
    assert robot.actuated_names == ["crank", "tray_x", "tray_z"]
    assert set(found.closures) == {"knee_pin", "ram_weld"}
    missed = max(compare(robot, MujocoPeer(mujoco, str(tmp_path / "press.xml")), spread=0.05))
    figure("press written by hand: inverse and direct dynamics beside MuJoCo", missed, TOLERANCE)
    assert missed < TOLERANCE
    told = {(one.kind, one.name) for one in found.dropped}
    assert {("actuator law", "press"), ("actuator law", "tray_speed"), ("actuator law", "tray_place")} <= told
    with pytest.raises(parflex.InputError, match="URDF cannot express the spring 'counterweight'"):
        parflex.export_urdf(robot, tmp_path / "out.urdf")
    there_and_back(robot, tmp_path, ("out.xml",))


def test_ends_of_loops_get_names_that_no_other_place_has(tmp_path):
    """Points of an imported robot are called as its loops' ends are; a URDF with two links of one name is none."""
    pytest.importorskip("mujoco", minversion="3.2.3")
    spring = PRESS.index("<spatial"), PRESS.index("</spatial>") + len("</spatial>")
    text = PRESS[: spring[0]] + PRESS[spring[1] :]
    (tmp_path / "press.xml").write_text(text.replace(' stiffness="0.3" springref="5"', ""))  # URDF has no springs
    robot = parflex.load(parflex.import_robot(tmp_path / "press.xml", tmp_path / "robot.toml").file)
    assert "knee_pin.A" in robot.tree.places
    exported = parflex.export_urdf(robot, tmp_path / "out.urdf")
    names = [link.get("name") for link in ElementTree.parse(exported.file).getroot().iter("link")]
    assert len(set(names)) == len(names)
    there_and_back(robot, tmp_path)
