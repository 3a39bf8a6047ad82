"""No command and no call writes over its input files, whatever path leads to them."""

import os
from pathlib import Path

import numpy as np
import pytest
from support.command_line import refused
from support.robots import robot_file

import parflex
from parflex.cli.group import OUTPUTS, Command, cli
from parflex.io import refuse_overwrite
from parflex.robotfile.read import files_of

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
