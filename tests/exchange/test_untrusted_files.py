"""Files of others that are wrong, odd or hostile: one sentence each; and what is said of those that can be read."""

import json
import random
import re
import sys
import tomllib
from pathlib import Path

import pytest
from support.cases import VERIFY
from support.command_line import answered, refused, run
from support.damaged import damaged
from support.foreign_robots import FOREIGN, random_urdf
from support.paths import DATA

import parflex

BODY = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def arm(
    joint: str = 'type="revolute"', more: str = "", inertia: str = BODY, place: str = "0 0 1", top: str = ""
) -> str:
    return (
        f'<robot name="arm">{top}<link name="ground"/><link name="hand">{inertia}</link><joint name="elbow" {joint}>'
        f'<parent link="ground"/><child link="hand"/><origin xyz="{place}"/><axis xyz="0 0 1"/>{more}</joint></robot>'
    )


@pytest.fixture
def mujoco():
    return pytest.importorskip("mujoco", minversion="3.2.3")


def read(tmp_path, text: str, name: str = "robot.urdf", **words):
    """Import a text."""
    (tmp_path / name).write_text(text)
    return parflex.import_robot(tmp_path / name, tmp_path / "robot.toml", **words)


def mjcf(body: str = "", top: str = "") -> str:
    """A file of MuJoCo of one joint."""
    return f'<mujoco>{top}<worldbody><body><joint name="j"/><geom size="0.1"/>{body}</body></worldbody></mujoco>'


PAR = (FOREIGN / "bars.par").read_text()
INVALID = (DATA / "refused_foreign_files.jsonl").read_text().splitlines()


@pytest.mark.parametrize("case", list(map(json.loads, INVALID)), ids=lambda case: case["case"])
def test_invalid_files_are_refused_in_one_sentence(case, tmp_path):
    name, text, message = case["file"], case["text"], case["message"]
    if name.endswith("xml"):
        pytest.importorskip("mujoco", minversion="3.2.3")
    loops = {"loops": tmp_path / name} if name == "loops.yaml" else {}
    (tmp_path / name).write_text(text)
    with pytest.raises(parflex.InputError) as error:
        read(tmp_path, arm() if loops else text, "robot.urdf" if loops else name, **loops)
    assert message in str(error.value) and "\n" not in str(error.value) and str(tmp_path) in error.value.file
    assert not (tmp_path / "robot.toml").exists()


HANGING = '<replicate count="1000000000"><geom size="1"/></replicate>'


def test_a_compiler_of_mujoco_that_hangs_is_stopped_and_later_files_are_read(mujoco, tmp_path, monkeypatch):
    from parflex.exchange import mjcf_compiler
    from parflex.exchange import mjcf_compiler as mjcf_files

    assert read(tmp_path, mjcf(), "robot.xml").check["ok"]
    process = mjcf_compiler.mujoco_compiler().process
    assert read(tmp_path, mjcf(), "robot.xml").check["ok"] and mjcf_compiler.mujoco_compiler().process is process
    monkeypatch.setattr(mjcf_compiler, "MAX_SECONDS", 0.5)
    monkeypatch.setattr(mjcf_files, "MAX_REPEATED", 1e12)
    with pytest.raises(parflex.InputError, match=r"MuJoCo's compiler is not done after 0\.5 s"):
        read(tmp_path, mjcf().replace("</worldbody>", HANGING + "</worldbody>"), "robot.xml")
    assert process.poll() is not None
    monkeypatch.undo()
    assert read(tmp_path, mjcf(), "robot.xml").check["ok"]
    mjcf_compiler.mujoco_compiler().process.kill()  # as a crash would
    mjcf_compiler.mujoco_compiler().process.wait()
    assert read(tmp_path, mjcf(), "robot.xml").check["ok"]


def test_a_mujoco_file_that_crashes_the_compiler_is_refused(mujoco, tmp_path, monkeypatch):
    from parflex.exchange import mjcf_compiler

    crashes = mjcf_compiler.SERVES.replace("mujoco.mj_saveModel(", "os.abort() or (")
    monkeypatch.setattr(mjcf_compiler, "SERVES", crashes)
    compiler = mjcf_compiler.MujocoCompiler()
    (tmp_path / "robot.xml").write_text(mjcf())
    with pytest.raises(parflex.InputError, match="MuJoCo's compiler crashed"):
        compiler.compiled(str(tmp_path / "robot.xml"))
    assert compiler.process is None


def test_repeated_includes_count_as_often_as_they_are_made(mujoco, tmp_path):
    many = '<mujocoinclude><replicate count="1000"><geom size="0.1"/></replicate></mujocoinclude>'
    (tmp_path / "part.xml").write_text(many)
    with pytest.raises(parflex.InputError, match="repeats elements more than 10000 times"):
        read(tmp_path, mjcf('<replicate count="500"><include file="part.xml"/></replicate>'), "robot.xml")
    for k in range(1500):
        (tmp_path / f"p{k}.xml").write_text(f'<mujocoinclude><include file="p{k + 1}.xml"/></mujocoinclude>')
    (tmp_path / "p1500.xml").write_text("<mujocoinclude/>")
    with pytest.raises(parflex.InputError, match="nested too deeply"):
        read(tmp_path, mjcf('<include file="p0.xml"/>'), "robot.xml")


def test_included_files_are_searched_next_to_the_first_file_then_next_to_the_including_file(mujoco, tmp_path):
    """As MuJoCo does: bodies in a folder of their own include each other."""
    (tmp_path / "parts").mkdir()
    body = '<mujocoinclude><body name="{}"><joint name="{}" axis="0 1 0"/><geom size="0.1"/></body></mujocoinclude>'
    (tmp_path / "parts" / "arm.xml").write_text('<mujocoinclude><include file="hand.xml"/></mujocoinclude>')
    (tmp_path / "parts" / "hand.xml").write_text(body.format("beside", "beside"))
    main = '<mujoco><worldbody><include file="parts/arm.xml"/></worldbody></mujoco>'
    assert read(tmp_path, main, "robot.xml").joints == ("beside",)
    (tmp_path / "hand.xml").write_text(body.format("first", "first"))
    assert read(tmp_path, main, "robot.xml").joints == ("first",)
    (tmp_path / "parts" / "arm.xml").write_text('<mujocoinclude><include file="../../hand.xml"/></mujocoinclude>')
    with pytest.raises(parflex.InputError, match="outside the folder"):
        read(tmp_path, main, "robot.xml")


def test_includes_defaults_and_inertias_of_meshes_are_read_by_the_compiler(mujoco, tmp_path):
    corners = " ".join(f"{x} {y} {z}" for x in (0, 0.2) for y in (0, 0.1) for z in (0, 0.4))
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "shape.xml").write_text(
        f'<mujocoinclude><asset><mesh name="box" vertex="{corners}"/></asset>'
        '<default><joint damping="0.7"/></default></mujocoinclude>'
    )
    body = '<body pos="0 0 0.3"><joint name="k" axis="0 1 0"/><geom type="mesh" mesh="box" density="500"/></body>'
    found = read(tmp_path, mjcf(body, '<include file="parts/shape.xml"/>'), "robot.xml")
    table = tomllib.loads((tmp_path / "robot.toml").read_text())["frame"][1]
    assert found.check["ok"] and table["damper"] == 0.7
    assert table["inertia"]["mass"] == pytest.approx(500 * 0.2 * 0.1 * 0.4, rel=1e-6)  # vertices have single precision
    assert any(one.kind == "mesh" and one.name == "box" for one in found.dropped)


def test_units_and_missing_data_that_look_wrong_are_reported(tmp_path):
    cases = {
        "are they millimetres?": arm(place="0 0 450"),
        "no body has an inertia": arm(inertia=""),
        "are they degrees?": arm(more='<limit lower="-90" upper="90"/>'),
        "is it in kg mm2": arm(inertia=BODY.replace('ixx="1"', 'ixx="3e4"'), place="0 0 0.5"),
        "no motors are named": arm(),
    }
    for says, text in cases.items():
        assert any(says in warning for warning in read(tmp_path, text).warnings), says


def test_names_that_robot_files_do_not_allow_are_changed_and_reported(tmp_path):
    text = arm().replace('"elbow"', '"left/elbow: 1"').replace('"hand"', '"base"')
    found = read(tmp_path, text)
    assert found.joints == ("left_elbow_ 1",) and found.check["ok"]
    assert "'left/elbow: 1' is called 'left_elbow_ 1' here" in found.warnings
    assert "# - 'left/elbow: 1' is called" in (tmp_path / "robot.toml").read_text()
    assert parflex.load(found.file).name == "arm"
    found = read(tmp_path, arm().replace('<robot name="arm"', '<robot name="arm/2"'))
    assert parflex.load(found.file).name == "arm_2" and "'arm/2' is called 'arm_2' here" in found.warnings


def test_the_end_effector_of_a_urdf_is_its_only_leaf_or_is_named(tmp_path, capsys):
    claw = '<link name="claw"/><joint name="grip" type="fixed"><parent link="{}"/><child link="claw"/></joint></robot>'
    text = arm().replace("</robot>", claw.format("hand"))
    assert tomllib.loads(Path(read(tmp_path, text).file).read_text())["end_effector"] == "claw"
    root = re.search(r'parent link="(\w+)"', arm())[1]
    on_the_ground = arm().replace("</robot>", claw.format(root))
    assert parflex.load(read(tmp_path, on_the_ground).file).tree.end_effector != "claw"
    two = text.replace("</robot>", '<link name="eye"/><joint name="see" type="fixed"><parent link="hand"/>'
                       '<child link="eye"/></joint></robot>')  # fmt: skip
    with pytest.raises(parflex.InputError, match=r"2 leaf links.*one of claw, eye"):
        read(tmp_path, two)
    out = ("import", tmp_path / "robot.urdf", "-o", tmp_path / "robot.toml")
    assert "give --end-effector, one of claw, eye" in refused(capsys, *out)["hint"]
    answered(capsys, *out, "--end-effector", "eye")
    assert parflex.load(tmp_path / "robot.toml").tree.end_effector == "eye"
    with pytest.raises(parflex.InputError, match="there is no frame 'nose'"):
        read(tmp_path, two, end_effector="nose")


def test_mimics_become_couplings_and_a_floating_root_is_a_free_body(tmp_path):
    follower = '<link name="claw">' + BODY + '</link><joint name="claw" type="prismatic"><parent link="hand"/>'
    follower += '<child link="claw"/><axis xyz="0 1 0"/><mimic joint="elbow" multiplier="-0.5" offset="0.1"/></joint>'
    text = arm().replace("</robot>", follower + "</robot>")
    text = text.replace('<link name="ground"/>', f'<link name="ground">{BODY}</link>')
    found = read(tmp_path, text, floating=True)
    table = tomllib.loads((tmp_path / "robot.toml").read_text())
    assert found.joints == ("ground", "elbow", "claw") and found.check["ok"]
    assert table["frame"][0]["joint"] == "free" and table["frame"][0]["inertia"]["mass"] == 1
    assert table["coupling"] == [{"name": "claw.mimic", "joint": "claw", "terms": {"elbow": -0.5}, "offset": 0.1}]
    assert parflex.load(found.file).actuated_names == ["elbow"]


CROSSES = """
closed_loop: [
  ["tip", 'ground'],   # the hand on the ground
]
type: [3D]
name_mot: []
joint_name: [elbow]
joint_type:
  - UJOINT_XY
made_up: 3
"""


def test_joints_of_another_kind_stand_in_the_file_of_loops(tmp_path):
    tip = '<link name="tip"/><joint name="t" type="fixed"><parent link="hand"/><child link="tip"/>'
    text = arm().replace("</robot>", tip + '<origin xyz="0 0 -1"/></joint></robot>')
    (tmp_path / "loops.yaml").write_text(CROSSES)
    found = read(tmp_path, text, loops=tmp_path / "loops.yaml", end_effector="hand")
    assert found.joints == ("elbow_X", "elbow_Y") and found.closures == ("tip~base",)
    assert any(one.kind == "key" and one.name == "made_up" for one in found.dropped)
    (tmp_path / "loops.yaml").write_text("joint_name: [elbow]\njoint_type: [SPHERICAL]")
    read(tmp_path, text, loops=tmp_path / "loops.yaml", end_effector="hand")
    assert tomllib.loads((tmp_path / "robot.toml").read_text())["frame"][0]["joint"] == "spherical"


def test_files_of_loops_name_the_package_that_reads_them(tmp_path, monkeypatch):
    (tmp_path / "loops.yaml").write_text("closed_loop: []")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(parflex.ParflexError, match=re.escape("pip install 'parflex[yaml]'")):
        read(tmp_path, arm(), loops=tmp_path / "loops.yaml")


def test_a_robot_whose_loops_cannot_close_is_written_and_its_check_fails(tmp_path, capsys):
    (tmp_path / "loops.yaml").write_text("closed_loop: [[hand, ground]]\ntype: [3d]\nname_mot: [elbow]")
    (tmp_path / "robot.urdf").write_text(arm())
    words = ["--loops", tmp_path / "loops.yaml", "-o", tmp_path / "robot.toml", "--end-effector", "hand", "--json"]
    answer = run(capsys, "import", tmp_path / "robot.urdf", *words)
    assert answer.code == 1 and (tmp_path / "robot.toml").exists() and '"ok": false' in answer.out


def test_a_closure_within_one_body_is_refused_in_a_robot_file_and_left_out_of_others(tmp_path):
    tip = '<link name="tip"/><joint name="t" type="fixed"><parent link="hand"/><child link="tip"/></joint></robot>'
    (tmp_path / "loops.yaml").write_text("closed_loop: [[tip, hand]]\nname_mot: [elbow]")
    found = read(tmp_path, arm().replace("</robot>", tip), loops=tmp_path / "loops.yaml", end_effector="hand")
    assert found.check["ok"] and not found.closures and "both its ends are on one body" in found.dropped[-1].why
    closure = '[[closure]]\nbetween = ["tip", "elbow"]\njoint = "spherical"\n'
    (tmp_path / "robot.toml").write_text((tmp_path / "robot.toml").read_text() + closure)
    with pytest.raises(parflex.RobotFileError, match="both ends of the closure are on the same body"):
        parflex.load(tmp_path / "robot.toml")


@pytest.mark.parametrize("kind", ["urdf", "yaml", "par"])
def test_damaged_files_are_read_or_refused_in_a_sentence(kind, tmp_path):
    """No traceback, whatever stands in a file; `make verify` tries more of them."""
    parflex.export_urdf(parflex.load("5r"), tmp_path / "5r.urdf")
    content = {
        "urdf": random_urdf(1).encode(),
        "yaml": (tmp_path / "5r.loops.yaml").read_bytes(),
        "par": PAR.encode(),
    }[kind]
    rng, file = random.Random(3), tmp_path / f"damaged.{kind}"
    for _ in range(200 if VERIFY else 6):
        file.write_bytes(damaged(content, rng))
        read, loops = (tmp_path / "5r.urdf", file) if kind == "yaml" else (file, None)
        try:
            parflex.import_robot(read, tmp_path / "out.toml", loops=loops)
        except parflex.ParflexError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 900
