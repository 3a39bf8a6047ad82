"""Robot files that say only what differs from another one."""

import os
from pathlib import Path

import pytest
from support.command_line import refused
from support.robots import robot_file, write_robot

import parflex
from parflex.robotfile.read import load_table

PARENT = robot_file("two-links").read_text()


def write(folder: Path, name: str, text: str) -> Path:
    return write_robot(folder, text if text is PARENT else f'format = 1\nname = "{name}"\n{text}', name)


def test_a_file_takes_everything_it_does_not_say_itself(tmp_path):
    write(tmp_path, "parent", PARENT)
    child = write(
        tmp_path,
        "child",
        'extends = "parent.toml"\n[constants]\nlength = 0.8\n[poses.home]\nlower = 0.3\n'
        '[[frame]]\nname = "lower"\ninertia = { M = 2, ZZ = 0.2 }\n[[frame]]\nname = "hand"\nparent = "lower"\n'
        '[[closure]]\nname = "lower~upper"\naxis = "y"\n[[point]]\nname = "spot"\nframe = "hand"\n',
    )
    robot = parflex.load(child).description
    assert (robot.name, robot.title, robot.motion, robot.extends) == ("child", "two links", "planar", "parent.toml")
    assert robot.constants == {"length": 0.8, "half": 0.4}  # expressions are read after the files are put together
    assert [frame.name for frame in robot.frame] == ["upper", "lower", "hand"]
    assert robot.frame[1].inertia.M == 2 and robot.frame[1].inertia.mass is None  # replaced as a whole
    assert robot.frame[1].joint == "revolute" and robot.frame[1].place.position == (0.8, 0, 0)
    (closure,) = robot.closure
    assert closure.joint == "point-on-line" and closure.axis == (0, 1, 0)
    assert robot.poses == {"home": {"lower": 0.3}, "up": {"upper": 1.5}}


def test_settings_reach_what_a_file_has_taken_from_another(tmp_path):
    write(tmp_path, "parent", PARENT)
    child = write(tmp_path, "child", 'extends = "parent.toml"\n')
    grandchild = write(tmp_path, "grandchild", 'extends = "child.toml"\ntitle = "third"\n')
    loaded = parflex.load(grandchild, settings={"constants.length": 0.6, "frame.lower.inertia.mass": 3})
    robot = loaded.description
    assert robot.constants["half"] == 0.3 and (robot.frame[0].inertia.M, robot.frame[1].inertia.mass) == (1, 3)
    assert loaded.file == str(grandchild) and robot.title == "third" and child.exists()


BAD = {
    "a number": ("extends = 3\n", "'extends' must name a robot or a file, not 3"),
    "nothing": ('extends = ""\n', "'extends' must name a robot or a file"),
    "an unknown robot": (
        'extends = "navarro"\n',
        "there is no robot or file 'navarro' to extend; did you mean 'navaro'",
    ),
    "the other": ('extends = "two.toml"\n', "/two.toml -> /"),
    "itself": ('extends = "bad.toml"\n', "extend each other in a cycle"),
    "a folder": ('extends = "."\n', "is a folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_extended_is_refused_with_one_sentence(case, tmp_path, capsys):
    text, words = BAD[case]
    write(tmp_path, "two", 'extends = "bad.toml"\n')
    error = refused(capsys, "info", write(tmp_path, "bad", text))
    assert words in f"{error['message']}; {error['hint']}"
    assert error["file"] and error["hint"]


def test_a_long_line_of_files_is_refused(tmp_path):
    write(tmp_path, "r0", 'extends = "four-bar"\n')
    for k in range(1, 10):
        write(tmp_path, f"r{k}", f'extends = "r{k - 1}.toml"\n')
    assert parflex.load(tmp_path / "r5.toml").name == "r5"
    with pytest.raises(parflex.RobotFileError, match="more than 8 files extend each other"):
        parflex.load(tmp_path / "r9.toml")


def test_a_name_is_never_taken_from_another_file(tmp_path):
    with pytest.raises(parflex.RobotFileError, match="key 'name' is missing"):
        parflex.load(write_robot(tmp_path, 'format = 1\nextends = "four-bar"\n'))


def test_a_path_is_seen_from_the_folder_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    write(tmp_path, "parent", PARENT)
    write(tmp_path / "deep", "child", 'extends = "../parent.toml"\n')
    monkeypatch.chdir(tmp_path / "deep")
    assert parflex.load("child.toml").description.title == "two links"
    monkeypatch.chdir(os.sep)
    assert parflex.load(tmp_path / "deep" / "child.toml").description.title == "two links"


ROD = """
[[frame]]
name = "1"
joint = "revolute"
actuated = true
inertia = {{ mass = 1, about_centre = [1, 1, 1] }}
[[visual]]
frame = "1"
file = "{file}"
"""
NAMING = {  # text of a robot file that names a file as a parent, a mesh or a body
    "extends": 'extends = "{file}"\n',
    "visual": ROD,
    "modal": '[platform]\nmodal = {{ file = "{file}" }}\n',
    "superelement": '[platform]\nsuperelement = {{ file = "{file}", nodes = {{ a = 1, b = 2 }} }}\n',
}


def read(path: Path, kind: str) -> str:
    """The file that a robot takes its content from, as it was found."""
    table, files = load_table(path)
    if kind == "extends":
        return files[1]
    return table["visual"][0]["file"] if kind == "visual" else table["platform"][kind]["file"]


@pytest.mark.parametrize("kind", NAMING)
def test_paths_of_files_follow_one_rule(kind, tmp_path):
    """Absolute, or from the folder of the file that names them; links are followed, the robot file's first."""
    for folder in ("robots", "data", "elsewhere"):
        (tmp_path / folder).mkdir()
    real = tmp_path / "data" / "real"
    real.write_text(PARENT)
    (tmp_path / "robots" / "near").write_text(PARENT)
    (tmp_path / "robots" / "link").symlink_to(real)
    targets = {"near": "robots/near", "../data/real": "data/real", str(real): "data/real", "link": "data/real"}
    for name, target in targets.items():
        path = write(tmp_path / "robots", "robot", NAMING[kind].format(file=name))
        assert os.path.samefile(read(path, kind), tmp_path / target)  # noqa: PTH121
    robot = write(tmp_path / "robots", "robot", NAMING[kind].format(file="near"))
    (tmp_path / "elsewhere" / "shortcut.toml").symlink_to(robot)
    (tmp_path / "elsewhere" / "near").write_text("of another robot")
    assert read(tmp_path / "elsewhere" / "shortcut.toml", kind) == str(tmp_path / "robots" / "near")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("kind", NAMING)
def test_files_that_are_none_are_refused_before_they_are_opened(kind, tmp_path):
    """A pipe is waited for without end."""
    os.mkfifo(tmp_path / "pipe")
    key = "extends" if kind == "extends" else f"{kind}.file"
    refusals = {"pipe": "not a file", "/dev/zero": "not a file", ".": "is a folder", "a\\u0000b": "no path"}
    for name, words in refusals.items():
        with pytest.raises(parflex.RobotFileError, match=words) as refusal:
            parflex.load(write(tmp_path, "robot", NAMING[kind].format(file=name)))
        assert refusal.value.key == key and refusal.value.hint
    if kind == "extends":
        with pytest.raises(parflex.RobotFileError, match="there is no robot or file"):
            parflex.load(write(tmp_path, "robot", f'extends = "{"a" * 300}"\n'))  # longer than names of files may be
