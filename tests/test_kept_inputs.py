"""No command and no call writes over a file that it reads, whatever path leads to it."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.cli.group import OUTPUTS, Verb
from parflex.cli.main import cli, main
from parflex.errors import InputError
from parflex.whole_files import check_writable, input_file, keeping_inputs, new_file, whole_file

SOURCES = Path(parflex.__file__).parent
PENDULUM = """format = 1
name = "pendulum"
end_effector = "tip"
gravity = [0.0, -9.81, 0.0]
[constants]
k = 40.0
[[frame]]
name = "a"
joint = "revolute"
actuated = true
inertia = { M = 1.0, MX = 0.3, ZZ = 0.2 }
spring = { stiffness = "k", rest = 0.0 }
[[point]]
name = "tip"
frame = "a"
position = [0.3, 0, 0]
"""
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
    "codegen": ("codegen upper.toml inverse --target numpy --force", "--out .", "m_pendulum_inverse_numpy.py"),
    "control": ("control upper.toml --law pd --kp 1 --kv 1 --reference motion.toml --time 0.01", "--out below.csv", ""),
    "draw": ("draw upper.toml", "--out below.svg", ""),
    "excite": ("excite upper.toml --time 1 --harmonics 1 --starts 1", "--out below.csv", "below.toml"),
    "export": ("export urdf upper.toml", "--out below.urdf", ""),
    "frequencies": ("frequencies below.svg --converge 1e-3", "--convergence below.svg", "below.svg"),
    "identify": ("identify upper.toml record.csv", "--out below.toml", ""),
    "import": ("import arm.urdf --loops loops.toml", "--out loops.toml", "loops.toml"),
    "map": ("map upper.toml --over a=0:0.1:2 --lock none --modes 1", "--out below.npz", "below.csv"),
    "motion": ("motion upper.toml motion.toml --time 0.1", "--out below.csv", ""),
    "new": ("new below.toml", "--out below.toml", "below.toml"),
    "optimise": ("optimise problem.toml", "--out .", "robot.toml"),
    "plot": ("plot upper.toml --servo 10", "--out below.svg", ""),
    "reproduce": ("reproduce below.html", "--report below.html", "below.html"),
    "sensitivities": ("sensitivities upper.toml --response mass --to constants.k", "--figure below.svg", ""),
    "simulate": ("simulate upper.toml --time 0.01 --step 0.01", "--out below.csv", ""),
    "statespace": ("statespace upper.toml --lock none --input a --output a", "--out below.npz", ""),
    "study": ("study below.json", "--out below.json", "below.json"),
    "sweep": ("sweep sweep.toml --jobs 1", "--out below.npz", ""),
    "update": ("update upper.toml modes.csv --vary constants.k --lock none", "--out below.toml", ""),
    "view": ("view upper.toml", "--record below.html", ""),
}  # fmt: skip


def writing(verb: str) -> set[str]:
    """Options of a verb that name what it writes."""
    return {name for one in cli.commands[verb].params for name in one.opts} & OUTPUTS


def test_every_verb_that_writes_is_looked_at():
    assert {verb for verb in cli.commands if writing(verb)} == set(VERBS)
    assert all(isinstance(one, Verb) for one in cli.commands.values())
    for verb, command in cli.commands.items():
        for option in command.params:
            told = (getattr(option, "help", None) or "").lower()
            if "FILE" in (option.metavar or "") and any(word in told for word in ("write ", "draw ", "output file")):
                assert writing(verb) & set(option.opts), (verb, option.opts)


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_writes_over_a_file_that_its_robot_extends(verb, tmp_path, monkeypatch, capsys):
    words, output, over = VERBS[verb]
    over = over or output.split()[1]
    texts = {
        "upper.toml": f'format = 1\nname = "pendulum"\nextends = "{over}"\n',
        "motion.toml": 'frequency = 1.0\nduration = 0.1\nstart = { a = 0.0 }\nsines = { a = [0.1] }\n',
        "record.csv": RECORD, "modes.csv": "pose,mode,frequency_hz\nhome,1,2.2\n", "problem.toml": PROBLEM,
        "sweep.toml": SWEEP, "arm.urdf": "<robot name='a'/>",
        over: 'format = 1\nname = "p"\nextends = "3rrr"\n' if verb == "control" else PENDULUM,
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main([*words.split(), *output.split()])
    said = capsys.readouterr().err.strip()
    assert end.value.code == 2
    assert len(said.splitlines()) == 1 and f"{over}: " in said and "is an input, which would be overwritten" in said
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == texts


@pytest.fixture
def upper(tmp_path, monkeypatch):
    """The file of a robot that extends another one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below.npz").write_text(PENDULUM)
    (tmp_path / "upper.toml").write_text('format = 1\nname = "pendulum"\nextends = "below.npz"\n')
    return tmp_path / "upper.toml"


def test_other_paths_to_an_input_are_seen(upper):
    link, hard = upper.with_name("link.toml"), upper.with_name("hard.toml")
    link.symlink_to(upper)
    os.link(upper, hard)
    with keeping_inputs():
        assert input_file("upper.toml") == Path("upper.toml")
        for path in ("upper.toml", "./upper.toml", f"../{upper.parent.name}/upper.toml", upper, link, hard):
            for writing in (whole_file, lambda path: check_writable(path) or whole_file("free")):
                with pytest.raises(InputError, match="is an input"), writing(path) as file:
                    file.write(b"lost")
        with whole_file("other.toml") as file:
            file.write(b"new")
    assert upper.read_text().startswith("format") and Path("other.toml").read_text() == "new"
    with whole_file(upper) as file:  # of another call
        file.write(b"new")
    with keeping_inputs("upper.toml"), pytest.raises(InputError, match="already exists"), new_file("upper.toml"):
        pass


def test_what_is_read_within_a_call_is_kept_until_the_outer_one_ends(upper):
    with keeping_inputs() as outer:
        with keeping_inputs() as inner:
            parflex.load(upper)
        assert list(inner) == list(outer) == [str(upper), str(upper.with_name("below.npz"))]
        with pytest.raises(InputError, match="is an input"), whole_file("below.npz"):
            pass


def test_calls_know_the_files_of_their_robots(upper):
    """They were read by another call."""
    robot = parflex.load("upper.toml")
    assert robot.files == (str(upper), str(upper.with_name("below.npz")))
    with pytest.raises(InputError, match=r"below\.npz: out: is an input"):
        parflex.frequency_map(robot, [("a", 0.0, 0.1, 2)], modes=1, lock="none", out="below.npz")
    run = parflex.simulate(robot, time=0.01, step=0.01)
    Path("run.csv").write_text("old")
    assert run.save("run.csv")  # which is no input
    os.link(upper, "alike.csv")
    with pytest.raises(InputError, match=r"alike\.csv: out: is an input"):
        run.save("alike.csv")
    assert upper.read_text().startswith("format") and Path("below.npz").read_text() == PENDULUM


# files that are not the user's, or outputs of an earlier call that this one continues
OTHER_FILES = {
    "__init__.py", "campaigns/chunk_tasks.py", "campaigns/journal.py", "codegen/compile.py", "codegen/disk_cache.py",
    "codegen/emit/files.py", "codegen/loop_code/loop_functions.py", "codegen/program_store.py",
    "control/study_results.py", "description/template.py", "exchange/fmu/compilers.py", "exchange/fmu/fmu_plant.py",
    "maps/grids/map_files.py", "maps/grids/map_results.py", "reproduction/peers.py",
    "reproduction/published_tables.py", "reproduction/report.py", "simulation/inputs/kept_roads.py",
    "simulation/outputs/run_record.py", "sweeps/sweep_table.py",
    "whole_files.py",
}  # fmt: skip
READING = re.compile(r"(^|\.)(open|read_text|read_bytes|loadtxt|genfromtxt|loadmat|UFF|fromfile)$|^np\.load$")
CALLS = re.compile(r"\b(open|read_\w+|load\w*|genfromtxt|UFF|fromfile)\(")
# bytes in memory, other programs, folders of the package, and functions of parflex that read by themselves
ELSEWHERE = re.compile(r"BytesIO|^(subprocess|webbrowser|os)\.|\bfolder\.joinpath|^read_(text|bytes)\(|\(rows")


def test_whoever_reads_a_file_says_so():
    """Reading calls of all modules, but those of files that no user gives, name the file by `input_file`."""
    found = []
    for module in SOURCES.rglob("*.py"):
        if module.relative_to(SOURCES).as_posix() in OTHER_FILES:
            continue
        text = module.read_text(encoding="utf-8")
        calls = (part for part in ast.walk(ast.parse(text)) if isinstance(part, ast.Call)) if CALLS.search(text) else ()
        for call in calls:
            name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
            if not CALLS.match(f"{name}("):
                continue
            said = ast.unparse(call)
            if READING.search(ast.unparse(call.func)) and "input_file(" not in said and not ELSEWHERE.search(said):
                found.append(f"{module.relative_to(SOURCES)}: {said}")
    assert found == []
