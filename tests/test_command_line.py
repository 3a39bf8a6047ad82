"""The command line: what each verb answers, and how it says no."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings

import pytest
from conftest import CATALOGUE
from support.command_line import answered, refused, run

import parflex
from parflex.cli import output
from parflex.cli.main import cli

VERBS = sorted(cli.commands)
COUNTS = ["bodies", "joints", "active", "passive", "elastic", "total_coordinates", "closure_rows"]
COUNTS += ["redundant_closures", "independent_coordinates", "degrees_of_freedom"]


def shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "parflex", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


# -- good input ------------------------------------------------------------------------------------------------


def test_list_names_every_robot_with_title_and_source(capsys):
    robots = answered(capsys, "list")["robots"]
    assert [robot["name"] for robot in robots] == sorted(path.stem for path in CATALOGUE.glob("*.toml"))
    assert all(set(robot) == {"name", "title", "source"} and robot["source"] for robot in robots)


@pytest.mark.few
@pytest.mark.parametrize("robot", sorted(path.stem for path in CATALOGUE.glob("*.toml")))
def test_every_verb_answers_for_every_robot_with_the_promised_keys(capsys, robot):
    info = answered(capsys, "info", robot)
    assert all(isinstance(info[key], int) for key in COUNTS)
    assert isinstance(info["locked"]["independent_coordinates"], int)
    assert set(info["names"]) >= {"actuated", "joints", "coordinates", "frames", "closures", "poses", "working_modes"}
    check = answered(capsys, "check", robot)
    assert check["ok"] is True
    inverse = answered(capsys, "inverse", robot, "--reactions")
    assert list(inverse["efforts"]) == info["names"]["actuated"]
    assert set(inverse) >= {"elastic_accelerations", "redundant_actuation", "reactions"}
    assert all(isinstance(value, float) for value in inverse["efforts"].values())
    direct = answered(capsys, "direct", robot, "--reactions")
    assert set(direct) >= {"accelerations", "reactions"}
    assert info["names"]["end_effector"] in direct["accelerations"]
    assert all("warnings" in answer for answer in (info, check, inverse, direct))


@pytest.mark.parametrize("robot", ["3rrr", "delta", "puma560"])
def test_pose_answers_with_joints_frames_and_condition(capsys, robot):
    pose = answered(capsys, "pose", robot)
    info = answered(capsys, "info", robot)
    assert list(pose["q"]) == info["names"]["coordinates"]
    assert set(pose["frames"]) == set(info["names"]["frames"])
    assert all(len(place["position"]) == 3 and len(place["rotation"]) == 3 for place in pose["frames"].values())
    assert 0 <= pose["closure_error"] < 1e-9
    assert set(pose["condition"]) == {"legs", "platform", "closures"}
    assert isinstance(pose["solutions"], dict)


def test_an_infinite_condition_number_is_null_in_json_and_no_warning_where_motors_are_missing(capsys, tmp_path):
    file = tmp_path / "arm.toml"
    file.write_text('format = 1\nname = "arm"\n[[frame]]\nname = "a"\njoint = "revolute"\n')
    pose = answered(capsys, "pose", file)
    assert pose["condition"]["platform"] is None
    assert pose["warnings"] == []


def test_tables_for_people_show_the_same_names(capsys):
    for verb in ("list", "info", "check", "pose", "inverse", "direct"):
        answer = run(capsys, verb, *([] if verb == "list" else ["3rrr"]))
        assert answer.code == 0
        assert "3rrr" in answer.out or "leg1.1" in answer.out


def test_draw_writes_a_picture_and_says_where(capsys, tmp_path):
    for ending in ("svg", "png", "pdf"):
        path = tmp_path / f"robot.{ending}"
        assert answered(capsys, "draw", "3rrr", "--pose", "theta_deg=10", "-o", path)["file"] == str(path)
        assert path.stat().st_size > 1000


def test_state_file_means_the_same_as_options(capsys, tmp_path):
    file = tmp_path / "state.json"
    state = {"pose": {"x": 0.3, "z": "11/10", "rz": 0.1}, "velocity": {"x": 0.5}, "acceleration": {"z": 2}}
    file.write_text(json.dumps({**state, "wrench": {"platform": [1, 2, 3]}}))
    options = ["--pose", "x=0.3,z=1.1,rz=0.1", "--velocity", "x=0.5", "--acceleration", "z=2"]
    by_options = answered(capsys, "inverse", "gough-stewart", *options, "--wrench", "platform=1,2,3")
    by_file = answered(capsys, "inverse", "gough-stewart", "--state", file)
    assert by_file == by_options
    over = answered(capsys, "inverse", "gough-stewart", "--state", file, "--velocity", "x=0")
    assert over != by_file
    file.write_text('{"pose": "home", "effort": {"leg1.3": 500}}')
    assert answered(capsys, "direct", "gough-stewart", "--state", file) == answered(
        capsys, "direct", "gough-stewart", "--effort", "leg1.3=500"
    )


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb_explains_itself(capsys, verb):
    answer = run(capsys, verb, "--help")
    assert answer.code == 0
    assert "Usage: parflex " + verb in answer.out
    assert "".join(cli.commands[verb].help.split()) in "".join(answer.out.split())


def test_without_a_verb_the_help_is_shown(capsys):
    answer = run(capsys)
    assert answer.code == 0
    assert all(verb in answer.out for verb in VERBS)


def test_help_comes_within_a_second():
    begin = os.times()
    assert shell("--help").returncode == 0
    end = os.times()  # processor time: the machine may be busy
    assert end.children_user + end.children_system - begin.children_user - begin.children_system < 1.0


def test_python_m_parflex_is_the_command_line():
    answer = shell("info", "3rrr", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["degrees_of_freedom"] == 3
    answer = shell("info", "3rr", "--json")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert "'3rrr'" in json.loads(answer.stdout)["error"]["hint"]


def test_no_colour_is_used_when_it_is_not_wanted():
    assert "\x1b" not in shell("list").stdout
    forced = shell("list", NO_COLOR="1", FORCE_COLOR="1")
    assert forced.returncode == 0
    assert not re.search(r"\x1b\[(\d+;)*([349][0-8]|10[0-7])[;m]", forced.stdout + forced.stderr)


def test_a_reader_that_stops_early_sees_no_traceback():
    command = [sys.executable, "-m", "parflex", "info", "3rrr", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 1
    assert said == ""


def test_arithmetic_warnings_of_libraries_are_not_shown():
    answer = shell("pose", "gough-stewart", "--pose", "x=1e9")
    assert "RuntimeWarning" not in answer.stderr


# -- bad options -------------------------------------------------------------------------------------------------


BAD_OPTIONS = {
    "unknown verb": (["lst"], "'list'"),
    "unknown option": (["info", "3rrr", "--jsn"], "--json"),
    "no robot": (["info"], "ROBOT"),
    "unknown robot": (["info", "gogh-stewart"], "'gough-stewart'"),
    "unknown actuation": (["info", "3rrr", "--actuation", "motors"], "'default'"),
    "unknown working mode": (["info", "3rrr", "--working-mode", "defalt"], "'default'"),
    "setting without value": (["info", "3rrr", "--set", "constants.arm"], "KEY=VALUE"),
    "setting a misspelt constant": (["info", "3rrr", "--set", "constants.amr=1"], "'arm'"),
    "setting a misspelt key": (["info", "3rrr", "--set", "platform.inertia.mas=1"], "'mass'"),
    "setting in no table": (["info", "3rrr", "--set", "platfrom.inertia.mass=1"], "'platform'"),
    "setting below a number": (["info", "3rrr", "--set", "constants.arm.x=1"], "'constants.arm' as a whole"),
    "setting in an unknown frame": (["info", "3rrr", "--set", "legs.frame.3.inertia.mass=1"], "'1', '2'"),
    "setting past the list": (["info", "3rrr", "--set", "gravity.3=1"], "'0', '1', '2'"),
    "setting to nonsense": (["info", "3rrr", "--set", "constants.arm=abc"], "'abc'"),
    "setting two lines": (["info", "3rrr", "--set", "constants.arm=1\nb=2"], "expression"),
    "setting nested too deeply": (["info", "3rrr", "--set", "constants.arm=" + "[" * 2000], "characters"),
    "setting a negative mass": (["info", "3rrr", "--set", "platform.inertia.mass=-1"], "-1"),
    "payload without place": (["inverse", "3rrr", "--payload", "1"], "mass,x,y,z"),
    "payload of text": (["inverse", "3rrr", "--payload", "a,0,0,0"], "'a'"),
    "negative payload": (["inverse", "3rrr", "--payload=-1,0,0,0"], "mass,x,y,z"),
    "wrench on no frame": (["inverse", "3rrr", "--wrench", "platfrm=1,2,3"], "'platform'"),
    "wrench without numbers": (["inverse", "3rrr", "--wrench", "platform"], "platform=0,0,-100"),
    "wrench of two numbers": (["inverse", "3rrr", "--wrench", "platform=1,2"], "fx,fy,fz"),
    "wrench of text": (["inverse", "3rrr", "--wrench", "platform=a,2,3"], "'a'"),
    "wrench twice": (["inverse", "3rrr", "--wrench", "platform=1,2,3", "--wrench", "platform=1,2,3"], "twice"),
    "wrench too large": (["inverse", "3rrr", "--wrench", "platform=1e300,0,0"], "too large"),
    "unknown term": (["inverse", "3rrr", "--without", "fricton"], "'friction'"),
    "effort of a passive joint": (["direct", "3rrr", "--effort", "leg1.2=1"], "'leg1.1'"),
    "effort that is no number": (["direct", "3rrr", "--effort", "leg1.1=nan"], "'nan'"),
    "effort without value": (["direct", "3rrr", "--effort", "leg1.1"], "KEY=VALUE"),
    "velocity of no frame": (["inverse", "gough-stewart", "--velocity", "platfrm.x=1"], "'platform.x'"),
    "velocity of a quaternion": (["inverse", "gough-stewart", "--velocity", "qw=1"], "'x'"),
    "velocity out of the plane": (["inverse", "3rrr", "--velocity", "z=1"], "x, y, theta"),
    "velocity twice": (["inverse", "3rrr", "--velocity", "x=1,vx=2"], "same coordinate"),
    "velocity in degrees along x": (["inverse", "3rrr", "--velocity", "x_deg=1"], "metres"),
    "velocity that loops forbid": (["inverse", "3rrr", "--velocity", "x=1,leg1.1=1,leg2.1=1,leg3.1=1"], "cannot have"),
    "pose of no name": (["pose", "3rrr", "--pose", "hom"], "'home'"),
    "pose of empty name": (["pose", "3rrr", "--pose", ""], "'home'"),
    "pose with a wrong word": (["pose", "3rrr", "--pose", "thta=1"], "'theta'"),
    "pose of a wrong frame": (["pose", "3rrr", "--pose", "platfrm.x=1"], "'platform.x'"),
    "pose out of the plane": (["pose", "3rrr", "--pose", "z=1"], "x, y and theta"),
    "rotation out of the plane": (["pose", "3rrr", "--pose", "rx=1"], "theta"),
    "theta in space": (["pose", "gough-stewart", "--pose", "theta=1"], "rx, ry, rz"),
    "pose without value": (["pose", "3rrr", "--pose", "x=1,y"], "KEY=VALUE"),
    "pose of text": (["pose", "3rrr", "--pose", "x=a"], "'a'"),
    "pose of NaN": (["pose", "3rrr", "--pose", "x=nan"], "'nan'"),
    "pose too large": (["pose", "3rrr", "--pose", "x=1e10"], "1e+09"),
    "pose given twice": (["pose", "3rrr", "--pose", "x=0,x=0"], "twice"),
    "pose in two units": (["pose", "3rrr", "--pose", "theta=0,theta_deg=0"], "same coordinate"),
    "pose by two names": (["pose", "3rrr", "--pose", "x=0,platform.x=0"], "same coordinate"),
    "length in degrees": (["pose", "3rrr", "--pose", "x_deg=1"], "metres"),
    "pose that runs code": (["pose", "3rrr", "--pose", "x=__import__('os')"], "not a number"),
    "quaternion not unit": (["pose", "gough-stewart", "--pose", "qw=1,qx=1"], "length 1.414"),
    "zero quaternion": (["pose", "gough-stewart", "--pose", "qw=0"], "length 0"),
    "rotation in two forms": (["pose", "gough-stewart", "--pose", "qw=1,rx=0"], "twice"),
    "pose of the ground": (["pose", "gough-stewart", "--pose", "b1.x=1"], "fixed to the base"),
    "name that is not a valid name": (["new", 'a"b'], "letters"),
    "empty name": (["new", ""], "letters"),
}


@pytest.mark.few
@pytest.mark.parametrize(("arguments", "words"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
def test_a_bad_option_is_one_sentence_with_a_hint(capsys, arguments, words):
    error = refused(capsys, *arguments)
    assert words in f"{error['message']}; {error['hint']}"
    assert error["kind"] == "usage" or error["key"] or error["file"]


BAD_STATES = {
    "nothing": ("", "state"),
    "half of JSON": ("{", "state"),
    "a list": ("[]", "state"),
    "a number": ("3", "state"),
    "nested too deeply": ("[" * 100_000, "state"),
    "a key twice": ('{"pose": {"x": 0, "x": 1}}', "state"),
    "an unknown key": ('{"posee": {}}', "posee"),
    "a pose that is a list": ('{"pose": [1]}', "pose"),
    "a pose of no name": ('{"pose": "hom"}', "pose"),
    "a pose with NaN": ('{"pose": {"x": NaN}}', "pose"),
    "a pose with null": ('{"pose": {"x": null}}', "pose"),
    "a pose with true": ('{"pose": {"x": true}}', "pose"),
    "a pose with a huge number": ('{"pose": {"x": ' + "9" * 400 + "}}", "pose"),
    "a pose with a wrong word": ('{"pose": {"xx": 0}}', "pose"),
    "a velocity that is text": ('{"velocity": "home"}', "velocity"),
    "a velocity with a wrong word": ('{"velocity": {"xx": 0}}', "velocity"),
    "a wrench that is a number": ('{"wrench": {"platform": 3}}', "wrench"),
    "a wrench of text": ('{"wrench": {"platform": ["a", 1, 2]}}', "wrench"),
    "a wrench of two": ('{"wrench": {"platform": [1, 2]}}', "wrench"),
    "a wrench of lists": ('{"wrench": {"platform": [[1], 2, 3]}}', "wrench"),
    "a wrench on no frame": ('{"wrench": {"platfrm": [1, 2, 3]}}', "wrench"),
}


@pytest.mark.parametrize(("content", "key"), BAD_STATES.values(), ids=BAD_STATES.keys())
def test_a_bad_state_file_is_named_with_its_key(capsys, tmp_path, content, key):
    file = tmp_path / "state.json"
    file.write_text(content)
    error = refused(capsys, "inverse", "3rrr", "--state", file)
    assert (error["file"], error["key"]) == (str(file), key)


def test_a_state_file_that_cannot_be_read_is_named(capsys, tmp_path):
    for path in (tmp_path, tmp_path / "none.json"):
        assert refused(capsys, "inverse", "3rrr", "--state", path)["file"] == str(path)
    file = tmp_path / "state.json"
    file.write_bytes(b"\xff\xfe")
    assert refused(capsys, "inverse", "3rrr", "--state", file)["file"] == str(file)
    with file.open("wb") as huge:
        huge.truncate(100_000_000)
    assert "MB" in refused(capsys, "inverse", "3rrr", "--state", file)["message"]


@pytest.mark.parametrize("name", ["robot.gif", "robot", "none/robot.svg", "folder.svg"])
def test_a_picture_that_cannot_be_written_leaves_nothing(capsys, tmp_path, name):
    (tmp_path / "folder.svg").mkdir()
    error = refused(capsys, "draw", "3rrr", "-o", tmp_path / name)
    assert error["key"] == "output"
    assert [path.name for path in tmp_path.rglob("*")] == ["folder.svg"]


def test_new_never_overwrites(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("mine")
    assert refused(capsys, "new", "robot", "-o", file)["file"] == str(file)
    assert file.read_text() == "mine"
    assert refused(capsys, "new", "robot", "-o", tmp_path / "none" / "mine.toml")["key"] == "output"


def test_control_characters_do_not_reach_the_terminal(capsys):
    error = refused(capsys, "pose", "3rrr", "--pose", "x=\x1b[31m\n1")
    assert error["key"] == "pose"


def test_a_failure_of_our_own_is_said_in_one_line(capsys, monkeypatch):
    monkeypatch.delenv("PARFLEX_DEBUG", raising=False)
    monkeypatch.setattr("parflex.models.frames_and_jacobians.counts", lambda robot: 1 / 0)
    answer = run(capsys, "info", "3rrr", "--json")
    assert answer.code == 1
    assert answer.err.count("\n") == 1
    assert json.loads(answer.out)["error"]["kind"] == "internal"


def test_tables_show_no_rounding_and_break_no_number(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(capsys, "inverse", "orthoglide", "--reactions").out
    efforts = answered(capsys, "inverse", "orthoglide")["efforts"]
    assert re.search(r"^x\.slide +0$", shown, flags=re.M) and 0 < abs(efforts["x.slide"]) < 1e-12  # JSON keeps it
    assert not re.search(r"e-1\d|^-\d\d$", shown, flags=re.M)
    assert re.search(r"^z\.slide \* +0 +0 +28\.6\d+ +0 +0\.76\d+ +0$", shown, flags=re.M)
    assert max(map(len, shown.splitlines())) <= 80


def test_what_is_told_on_the_way_is_not_told_again_with_the_answer(capsys, monkeypatch):
    @cli.command("twice")
    def twice() -> None:
        warnings.warn("slow", parflex.ParflexWarning, stacklevel=1)
        output.show({"warnings": ["slow", "far"]}, False)

    monkeypatch.setitem(cli.commands, "twice", cli.commands.pop("twice"))
    for _ in range(2):  # each command tells it once
        assert run(capsys, "twice").err == "warning: slow\nwarning: far\n"


def test_what_is_told_on_the_way_stands_in_the_json(capsys, monkeypatch):
    @cli.command("told")
    def told() -> None:
        warnings.warn("slow", parflex.ParflexWarning, stacklevel=1)
        output.show({"warnings": ["far"]}, True)

    monkeypatch.setitem(cli.commands, "told", cli.commands.pop("told"))
    assert json.loads(run(capsys, "told").out)["warnings"] == ["far", "slow"]
