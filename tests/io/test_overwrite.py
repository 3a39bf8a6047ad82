"""No output replaces an input, whatever path leads to it; files are written whole or not at all."""

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import refused
from support.robots import robot_file

import parflex
from parflex.cli.group import OUTPUTS, Command, cli
from parflex.cli.vibration import write_arrays
from parflex.io import atomic_file, atomic_files, refuse_overwrite, write_generated
from parflex.robotfile.read import files_of
from parflex.trajectories.files import write_table
from parflex.view.style import new_figure, write_picture

PENDULUM = robot_file("sprung-pendulum").read_text()
ROWS = "\n".join(f"{0.01 * k},{0.3 * np.sin(0.2 * k):.6f},{np.cos(0.2 * k):.6f}" for k in range(200))
RECORD = "t,q.a,effort.a\n" + ROWS + "\n"
PROBLEM = """robot = "upper.toml"
[variables.constants.k]
lower = 20
upper = 80
[responses.first]
response = "frequency:1"
lock = "none"
[objective]
maximise = "first"
"""
SWEEP = PROBLEM.split("[objective]")[0] + '[samples]\nkind = "sobol"\ncount = 2\n'
# of each verb that writes: its words, the option that names what is written, and the file that it would write over
VERBS = {
    "calibrate": ("calibrate upper.toml record.csv --vary constants.k", "--out below.toml", ""),
    "codegen": ("codegen below.toml inverse --target numpy --force", "--out below.toml", ""),
    "control": ("control upper.toml --law pd --kp 1 --kv 1 --reference motion.toml --time 0.01", "--out below.csv", ""),
    "draw": ("draw upper.toml", "--out below.svg", ""),
    "excite": ("excite upper.toml --time 1 --harmonics 1 --starts 1", "--out below.csv", "below.toml"),
    "export": ("export urdf upper.toml", "--out below.urdf", ""),
    "frequencies": ("frequencies below.svg --converge 1e-3", "--convergence below.svg", "below.svg"),
    "identify": ("identify upper.toml record.csv", "--out below.toml", ""),
    "import": ("import arm.urdf --loops loops.toml", "--out loops.toml", "loops.toml"),
    "map": ("map upper.toml --over a=0:0.1:2 --lock none --modes 1", "--out below.npz", ""),
    "motion": ("motion upper.toml motion.toml --time 0.1", "--out below.csv", ""),
    "new": ("new below.toml", "--out below.toml", "below.toml"),
    "optimise": ("optimise problem.toml", "--out .", "robot.toml"),
    "plot": ("plot upper.toml --servo 10", "--out below.svg", ""),
    "reproduce": ("reproduce below.html", "--report below.html", "below.html"),
    "sensitivities": ("sensitivities upper.toml --response mass --to constants.k", "--figure below.svg", ""),
    "simulate": ("simulate upper.toml --time 0.01 --step 0.01", "--out below.csv", ""),
    "statespace": ("statespace upper.toml --lock none --input a --output a", "--out below.npz", ""),
    "study": ("study below.json", "--out below.json", "below.json"),
    "sweep": ("sweep sweep.toml --jobs 1", "--out sweep.toml", "sweep.toml"),
    "tolerance": ("tolerance upper.toml --keys constants.k=1", "--figure below.svg", ""),
    "update": ("update upper.toml modes.csv --vary constants.k --lock none", "--out below.toml", ""),
    "view": ("view upper.toml", "--record below.html", ""),
}  # fmt: skip


def writing(verb: str) -> set[str]:
    return {name for one in cli.commands[verb].params for name in one.opts} & OUTPUTS


def test_every_command_with_an_output_is_tested():
    assert {verb for verb in cli.commands if writing(verb)} == set(VERBS)
    assert all(isinstance(one, Command) for one in cli.commands.values())
    for verb, command in cli.commands.items():
        for option in command.params:
            told = (getattr(option, "help", None) or "").lower()
            if "FILE" in (option.metavar or "") and any(word in told for word in ("write ", "draw ", "output file")):
                assert writing(verb) & set(option.opts), (verb, option.opts)


@pytest.mark.parametrize("verb", VERBS)
def test_no_command_overwrites_its_robot_file_or_the_file_that_it_extends(verb, tmp_path, monkeypatch, capsys):
    words, output, over = VERBS[verb]
    over = over or output.split()[1]
    texts = {
        "upper.toml": f'format = 1\nname = "pendulum"\nextends = "{over}"\n',
        "motion.toml": 'frequency = 1.0\nduration = 0.1\nstart = { a = 0.0 }\nsines = { a = [0.1] }\n',
        "record.csv": RECORD, "modes.csv": "pose,mode,frequency_hz\nhome,1,2.2\n", "problem.toml": PROBLEM,
        "sweep.toml": SWEEP, "arm.urdf": "<robot name='a'/>",
    }  # fmt: skip
    if over not in texts:
        texts[over] = 'format = 1\nname = "p"\nextends = "3rrr"\n' if verb == "control" else PENDULUM
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    error = refused(capsys, *words.split(), *output.split())
    assert str(error["file"]).endswith(over) and "is an input, which would be overwritten" in error["message"]
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == texts


@pytest.fixture
def upper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below.npz").write_text(PENDULUM)
    (tmp_path / "upper.toml").write_text('format = 1\nname = "pendulum"\nextends = "below.npz"\n')
    return tmp_path / "upper.toml"


def test_other_paths_to_an_input_are_recognised(upper):
    link, hard = upper.with_name("link.toml"), upper.with_name("hard.toml")
    link.symlink_to(upper)
    os.link(upper, hard)
    for path in ("upper.toml", "./upper.toml", f"../{upper.parent.name}/upper.toml", upper, link, hard):
        with pytest.raises(parflex.InputError, match="is an input"):
            refuse_overwrite(["free.toml", path], ["absent.toml", upper])
    refuse_overwrite(["below.npz", "free.toml", ""], [upper, "absent.toml"])


def test_functions_do_not_overwrite_the_files_of_their_robots(upper):
    robot = parflex.load("upper.toml")
    assert robot.files == (str(upper), str(upper.with_name("below.npz")))
    with pytest.raises(parflex.InputError, match=r"below\.npz: out: is an input"):
        parflex.frequency_map(robot, [("a", 0.0, 0.1, 2)], modes=1, lock="none", out="below.npz")
    run = parflex.simulate(robot, time=0.01, step=0.01)
    Path("run.csv").write_text("old")
    assert run.save("run.csv")  # not an input
    os.link(upper, "alike.csv")
    with pytest.raises(parflex.InputError, match=r"alike\.csv: out: is an input"):
        run.save("alike.csv")
    assert upper.read_text().startswith("format") and Path("below.npz").read_text() == PENDULUM
    Path("5r.toml").write_text("old")  # not the file of the catalogue
    assert parflex.load("5r").files == ()


def test_data_files_of_a_robot_are_inputs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mesh = tmp_path / "link.stl"
    mesh.write_text("solid link\nendsolid link\n")
    (tmp_path / "robot.toml").write_text(PENDULUM + '[[visual]]\nframe = "a"\nfile = "link.stl"\n')
    assert str(mesh) in files_of("robot.toml")
    error = refused(capsys, "simulate", "robot.toml", "--time", "0.01", "-o", "link.stl")
    assert "is an input, which would be overwritten" in error["message"]
    assert mesh.read_text().startswith("solid")


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with atomic_file(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(1), OSError(28, "No space left")])
def test_a_failed_write_changes_nothing_and_leaves_no_file(tmp_path, error):
    (tmp_path / "a.txt").write_text("old")
    shown = parflex.InputError if isinstance(error, OSError) else type(error)
    with pytest.raises(shown), atomic_files([tmp_path / "a.txt", tmp_path / "b.txt"]) as (first, second):
        first.write(b"new")
        second.write(b"new")
        raise error
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_of_several_files_all_are_replaced_or_none(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(parflex.InputError, match="is a folder"), atomic_files([tmp_path / "a.txt", tmp_path / "b.txt"]):
        pass
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "there").read_text() == "old"
    assert (tmp_path / "link").read_text() == "new" and not (tmp_path / "link").is_symlink()


WRITERS: dict[str, tuple[str, Any]] = {
    "a run as npz": ("run.npz", lambda p: write_table(p, {"t": np.zeros(2)}, {})),
    "a run as csv": ("run.csv", lambda p: write_table(p, {"t": np.zeros(2)}, {})),
    "arrays": ("a.npz", lambda p: write_arrays(str(p), {"A": np.eye(2)})),
    "arrays for MATLAB": ("a.mat", lambda p: write_arrays(str(p), {"A": np.eye(2), "names": ["a", "b"]})),
    "a picture": ("a.svg", lambda p: write_picture(new_figure(1.0), p)),
    "a map": ("map.npz", lambda p: parflex.frequency_map(parflex.load("dualemps"), [("11", 0, 0.01, 2)], out=str(p))),
    "a program": ("a.c", lambda p: write_generated(p.parent, {p.name: "text"}, force=True)),
}


@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS.keys())
def test_every_writer_is_atomic_with_usual_file_permissions(name, write, tmp_path, monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    before = os.umask(0o027)
    try:
        write(tmp_path / name)
    finally:
        os.umask(before)
    for path in tmp_path.iterdir():
        assert not path.name.startswith("."), path
        assert stat.S_IMODE(path.stat().st_mode) == 0o640, path
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / name).mkdir()
    with pytest.raises(parflex.InputError):
        write(tmp_path / "sub" / name)
    assert [path.name for path in (tmp_path / "sub").iterdir()] == [name]
