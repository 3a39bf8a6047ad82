"""Sweeps: samples, answers of many designs, tables that survive everything, and who may compute them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.cli.main import main
from parflex.designs.design_numbers import number_at
from parflex.sweeps.design_samples import designs_of
from parflex.sweeps.sweep_file import read_sweep

HEAD = """
robot = "3rrr-flexible"
[variables.constants.proximal]
lower = 0.45
upper = 0.55
[variables."constants.distal"]
choices = [0.38, 0.4, 0.42]
[responses.lowest]
response = "frequency:1"
region = { x = [-0.02, 0.02, 2], y = [0, 0.02, 2] }
[responses.mass]
response = "mass"
"""
SLOW = HEAD + '[responses.skew]\nresponse = "conditioning"\npose = { x = 0.0, y = 0.0 }\n'
QUICK = """
robot = "5r"
[variables.constants.proximal]
lower = 0.27
upper = 0.33
[variables."constants.distal"]
choices = [0.38, 0.4, 0.42]
[responses.mass]
response = "mass"
[responses.skew]
response = "conditioning"
pose = { x = 0.0, y = 0.5 }
"""
SOBOL = '[samples]\nkind = "sobol"\ncount = 14\nseed = 3\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sweeps")


@pytest.fixture(scope="module")
def slow(folder):
    """A sweep in chunks of four designs, and what it finds in one process."""
    path = folder / "slow.toml"
    path.write_text(SLOW + SOBOL)
    return path, parflex.sweep(path, folder / "slow.npz", jobs=1)


@pytest.fixture(scope="module")
def quick(folder):
    """As many chunks of a robot that is made at once, and what one process finds: for proofs of who computes what."""
    path = folder / "quick.toml"
    path.write_text(QUICK + SOBOL)
    return path, parflex.sweep(path, folder / "serial.npz", jobs=1)


def written(folder: Path, text: str, name: str = "sweep.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def table(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def same(one: Path, other: Path) -> bool:
    """Whether two tables have the same columns, bit for bit."""
    first, second = table(one), table(other)
    return list(first) == list(second) and all(
        np.array_equal(first[name], second[name], equal_nan=first[name].dtype.kind == "f") for name in first
    )


# -- answers -------------------------------------------------------------------------------------------


@pytest.mark.verify
def test_answers_are_those_of_robots_loaded_one_by_one(slow):
    _, found = slow
    assert (found.designs, found.done, found.computed, found.failed) == (14, 14, 14, 0)
    poses = [{"x": x, "y": y} for x in (-0.02, 0.02) for y in (0.0, 0.02)]
    for row in (0, 13):
        settings = {key: float(values[row]) for key, values in found.variables.items()}
        robot = parflex.load("3rrr-flexible", settings=settings)
        lowest = min(parflex.natural_frequencies(robot, pose, 1).frequencies[0] for pose in poses)
        assert abs(found.responses["lowest"][row] - lowest) < 1e-7 * lowest  # rounding of two ways to solve
        skew = parflex.sensitivities(robot, "conditioning", "constants.proximal", {"x": 0.0, "y": 0.0}).value
        assert found.responses["skew"][row] == pytest.approx(skew, rel=1e-9)
    assert found.units == {"lowest": "Hz", "mass": "kg", "skew": "dimensionless"}


def test_the_table_has_keys_responses_status_and_reason(slow, folder):
    columns = table(folder / "slow.npz")
    names = ["constants.proximal", "constants.distal", "lowest", "mass", "skew", "status", "reason"]
    assert list(columns) == [*names, "settings"] and all(len(columns[name]) == 14 for name in names)
    said = json.loads(str(columns["settings"]))
    assert said["robot"] == "3rrr-flexible" and said["file"]["samples"]["seed"] == 3


def test_designs_that_cannot_be_are_lines_with_their_reasons(tmp_path):
    designs = "constants.proximal,constants.distal\n0.5,0.4\n0.1,0.05\n0.35,0.3\n0.5,\n0.5,0.41\n"
    (tmp_path / "designs.csv").write_text(designs)
    path = written(tmp_path, HEAD.partition("[variables")[0] + "[responses" + HEAD.partition("[responses")[2]
                   + '[samples]\nkind = "list"\nfile = "designs.csv"\n')  # fmt: skip
    found = parflex.sweep(path, jobs=1)
    assert found.status.tolist()[0] == 0 and found.status.tolist()[4] == 0 and found.failed == 3
    assert found.status.tolist()[1:4] == [3, 3, 3] and "constants.distal" in found.reasons[3]
    assert found.reasons[1].startswith("home of this design cannot be reached: leg1 misses it by 0.6")
    assert all(bool(text) == bool(state) for text, state in zip(found.reasons, found.status, strict=True))
    assert np.isnan(found.responses["mass"][1]) and np.isfinite(found.responses["mass"][[0, 4]]).all()
    good = parflex.sensitivities(parflex.load("3rrr-flexible"), "mass", "constants.arm").value
    assert found.responses["mass"][0] == pytest.approx(good, rel=1e-12)


def test_poses_out_of_reach_are_named_and_leave_the_other_answers(tmp_path):
    path = written(tmp_path, HEAD.replace("[-0.02, 0.02, 2]", "[0, 3, 2]") + '[samples]\nkind = "sobol"\ncount = 2\n')
    found = parflex.sweep(path, jobs=1)
    assert found.status.tolist() == [1, 1] and "x=3" in found.reasons[0]
    assert np.isnan(found.responses["lowest"]).all() and np.isfinite(found.responses["mass"]).all()


def test_a_design_of_which_the_question_makes_no_sense_is_one_line_of_the_table(tmp_path):
    """Without its spring a slide is free, and the robot has one mode less."""
    (tmp_path / "slides.toml").write_text(
        'format = 1\nname = "slides"\ngravity = [0, 0, 0]\n[constants]\nk1 = 1000\nk2 = 2000\n'
        '[[frame]]\nname = "a"\njoint = "prismatic"\nspring = { stiffness = "k1" }\ninertia = { mass = 2 }\n'
        '[[frame]]\nname = "b"\nparent = "a"\njoint = "prismatic"\nspring = { stiffness = "k2" }\n'
        "inertia = { mass = 1 }\n[poses.home]\na = 0\nb = 0\n"
    )
    (tmp_path / "designs.csv").write_text("constants.k1,constants.k2\n1000,2000\n0,2000\n")
    keys = "".join(f"[variables.constants.k{n}]\nlower = 1\nupper = 3000\n" for n in (1, 2))
    text = f'robot = "slides.toml"\n{keys}[responses.second]\nresponse = "frequency:2"\n'
    found = parflex.sweep(written(tmp_path, text + '[samples]\nkind = "list"\nfile = "designs.csv"\n'), jobs=1)
    squares = np.linalg.eigvals(np.array([[1500.0, -1000.0], [-2000.0, 2000.0]]))  # M^-1 K
    assert found.responses["second"][0] == pytest.approx(np.sqrt(squares.max()) / (2 * np.pi), rel=1e-9)
    assert found.status[0] == 0 and found.status[1] != 0 and "the robot has 1" in found.reasons[1]


def test_listed_designs_beyond_bounds_are_computed_and_said(tmp_path):
    (tmp_path / "designs.csv").write_text("constants.proximal,constants.distal\n0.5,0.4\n0.56,0.39\n0.57,0.42\n")
    path = written(tmp_path, HEAD + '[samples]\nkind = "list"\nfile = "designs.csv"\n')
    found = parflex.sweep(path, jobs=1)
    assert found.failed == 0 and len(found.warnings) == 2
    assert "2 of 3 listed designs have a 'constants.proximal' beyond its bounds 0.45 and 0.55" in found.warnings[0]
    assert "1 of 3 listed designs have a 'constants.distal' beyond its choices, the first 0.39" in found.warnings[1]
    assert found.as_dict()["warnings"] == found.warnings


def test_how_long_designs_take_one_by_one_is_told_before(quick, monkeypatch):
    from parflex.sweeps import design_rows, sweep

    for module in (design_rows, sweep):
        monkeypatch.setattr(module, "LONG", 1e-9)
    with pytest.warns(
        parflex.ParflexWarning,
        match=r"computed one by one \(because of 'skew'\), .* s each: about 0 min of one process",
    ) as told:
        found = parflex.sweep(quick[0], jobs=1)
    assert str(told[0].message) in found.as_dict()["warnings"]


def test_the_time_that_is_left_follows_the_pace_since_the_first_call(monkeypatch):
    """Slow designs come seldom and several at once: two within a moment are not a pace."""
    from parflex.cli import progress

    now = iter([0.0, 100.0, 100.1, 200.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    pace = progress._Pace()
    assert [pace.left(done, 20) for done in (2, 4, 6, 10)] == [None, 800.0, pytest.approx(350.35), 250.0]


# -- samples -------------------------------------------------------------------------------------------


def samples(folder: Path, text: str) -> dict[str, np.ndarray]:
    path = written(folder, HEAD + text, "samples.toml")
    return designs_of(read_sweep(path), folder)


def test_a_grid_has_all_combinations(tmp_path):
    found = samples(tmp_path, '[samples]\nkind = "grid"\ncount = 3\n')
    pairs = list(zip(*found.values(), strict=True))
    assert len(set(pairs)) == len(pairs) == 9 and {x for x, _ in pairs} == {0.45, 0.5, 0.55}
    assert len(samples(tmp_path, "[samples]\n[samples.count.constants]\nproximal = 5\n")["constants.distal"]) == 15


@pytest.mark.parametrize("kind", ["sobol", "latin-hypercube"])
def test_samples_fill_the_space_and_hang_on_the_seed(kind, tmp_path):
    first, again, other = (
        samples(tmp_path, f'[samples]\nkind = "{kind}"\ncount = 64\nseed = {seed}\n') for seed in (1, 1, 2)
    )
    x = first["constants.proximal"]
    assert np.array_equal(x, again["constants.proximal"]) and not np.array_equal(x, other["constants.proximal"])
    assert (np.histogram(x, 8, (0.45, 0.55))[0] == 8).all()  # each eighth has its share
    assert set(np.unique(first["constants.distal"])) == {0.38, 0.4, 0.42}


# -- processes, interruptions --------------------------------------------------------------------------


def test_processes_find_the_same_bits_as_one(quick, folder):
    path, _ = quick
    seen = []
    found = parflex.sweep(path, folder / "two.npz", jobs=2, progress=lambda done, total: seen.append((done, total)))
    assert found.computed == 14 and same(folder / "two.npz", folder / "serial.npz")
    assert seen[-1] == (14, 14) and len(seen) == 4


def test_any_executor_computes(quick, folder):
    path, _ = quick
    with ThreadPoolExecutor(2) as pool:
        parflex.sweep(path, folder / "threads.npz", executor=pool)
        assert pool.submit(int, "3").result() == 3  # it is the caller's to end
    assert same(folder / "threads.npz", folder / "serial.npz")


def test_an_interrupted_sweep_goes_on_and_has_the_same_bits(quick, tmp_path, folder):
    path, _ = quick
    out = tmp_path / "out.npz"

    def stop(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    first = parflex.sweep(path, out, jobs=1, progress=stop)
    assert first.interrupted and (first.done, first.computed) == (8, 8) and len(table(out)["status"]) == 8
    second = parflex.sweep(path, out, jobs=1)
    assert (second.done, second.computed, second.interrupted) == (14, 6, False)
    assert same(out, folder / "serial.npz") and parflex.sweep(path, out, jobs=1).computed == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.npz"]  # no journal, nothing half-written


KILLED = """
import os, signal, sys
import parflex

def kill(done, total):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

parflex.sweep(sys.argv[1], sys.argv[2], jobs=int(sys.argv[4]), progress=kill)
"""


@pytest.mark.verify
@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_a_killed_sweep_loses_and_doubles_nothing(quick, tmp_path, folder):
    path, _ = quick
    out = tmp_path / "out.npz"
    code = subprocess.run([sys.executable, "-c", KILLED, str(path), str(out), "8", "2"]).returncode
    assert code == -signal.SIGKILL
    journal = out.with_name("out.npz.journal")
    with journal.open("ab") as file:
        file.write(journal.read_bytes()[-100:])  # as if it had been killed in the middle of an entry
    found = parflex.sweep(path, out, jobs=1)
    assert found.done == 14 and found.computed in (4, 6)  # what was finished before is not done again
    assert same(out, folder / "serial.npz") and not journal.exists()


def test_two_processes_do_not_write_one_table(quick, tmp_path):
    path, _ = quick
    out, entered, go = tmp_path / "out.npz", threading.Event(), threading.Event()

    def wait(done: int, total: int) -> None:
        entered.set()
        go.wait(60)

    beside = threading.Thread(target=lambda: parflex.sweep(path, out, jobs=1, progress=wait))
    beside.start()
    try:
        assert entered.wait(60)
        with pytest.raises(InputError, match="another process"):
            parflex.sweep(path, out, jobs=1)
    finally:
        go.set()
        beside.join()
    assert len(table(out)["status"]) == 14


def test_parquet_holds_the_same_table_and_is_taken_up(quick, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path, serial = quick
    out = tmp_path / "out.parquet"

    def stop(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    assert parflex.sweep(path, out, jobs=1, progress=stop).interrupted and parquet.read_table(out).num_rows == 8
    assert parflex.sweep(path, out, jobs=1).computed == 6
    found = parquet.read_table(out).to_pydict()
    assert list(found) == [*serial.variables, *serial.responses, "status", "reason"]
    assert found["skew"] == serial.responses["skew"].tolist() and found["reason"] == serial.reasons


# -- bad input -----------------------------------------------------------------------------------------


def test_a_table_of_another_sweep_is_not_replaced(quick, tmp_path, folder):
    out = tmp_path / "out.npz"
    out.write_bytes((folder / "serial.npz").read_bytes())
    other = written(tmp_path, QUICK + SOBOL.replace("seed = 3", "seed = 4"))
    with pytest.raises(InputError, match="belongs to another sweep"):
        parflex.sweep(other, out, jobs=1)
    assert same(out, folder / "serial.npz")
    out.write_bytes(b"no table")
    with pytest.raises(InputError, match="not the table of a sweep"):
        parflex.sweep(other, out, jobs=1)


FULL = """
import resource, sys
import parflex

resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    parflex.sweep(sys.argv[1], sys.argv[2], jobs=1)
except parflex.InputError as error:
    print(error)
"""


@pytest.mark.verify
@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_said_and_what_was_finished_is_kept(quick, tmp_path, folder):
    path, _ = quick
    out = tmp_path / "out.npz"
    environment = {**os.environ, "PARFLEX_CACHE": "off"}
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(out)], capture_output=True, text=True, env=environment
    )
    assert "cannot be written" in run.stdout and "free some space" in run.stdout, run.stderr
    found = parflex.sweep(path, out, jobs=1)
    wanted = table(folder / "serial.npz")["skew"]
    assert found.computed == 10  # the first chunk is there; without a cache its numbers are rounded otherwise
    assert np.abs(found.responses["skew"] / wanted - 1).max() < 1e-9


BAD = {
    "unknown key": ("[samples]\nkind='sobol'\ncount=2\nsize=3\n", "samples.size", "unknown"),
    "no count": ("[samples]\nkind = 'sobol'\n", "samples.count", "missing"),
    "no samples": ("", "samples", "missing"),
    "count": ("[samples]\nkind = 'sobol'\ncount = 0\n", "samples.count", "not a number of designs"),
    "counts": ("[samples]\ncount = { 'constants.no' = 3 }\n", "samples", "not a variable"),
    "kind": ("[samples]\nkind = 'random'\ncount = 3\n", "samples.kind", "not known"),
    "file": ("[samples]\nkind = 'sobol'\ncount = 3\nfile = 'a.csv'\n", "samples.file", "belongs to the kind"),
    "no file": ("[samples]\nkind = 'list'\nfile = 'none.csv'\n", "samples.file", "cannot be read"),
    "seed": ("[samples]\nkind = 'sobol'\ncount = 3\nseed = -1\n", "samples.seed", "negative"),
    "name": ("[responses.status]\nresponse = 'mass'\n[samples]\ncount = 3\n", "responses", "cannot name"),
    "response": ("[responses.other]\nresponse = 'masses'\n[samples]\ncount = 3\n", "response", "no response"),
    "frame": ("[responses.k]\nresponse = 'stiffness:no.x'\n[samples]\ncount = 3\n", "frame", "no frame"),
    "modes": ("[responses.high]\nresponse = 'frequency:9999'\n[samples]\ncount = 3\n", "modes", "modes"),
    "variable": ("[variables.constants.no]\nlower = 1\nupper = 2\n[samples]\ncount = 3\n", "variables", "no"),
}


@pytest.mark.parametrize(("text", "key", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_sweep_is_refused_with_its_key(text, key, words, tmp_path):
    with pytest.raises(parflex.ParflexError, match=words) as refusal:
        parflex.sweep(written(tmp_path, HEAD + text), tmp_path / "out.npz", jobs=1)
    assert refusal.value.key == key and refusal.value.hint
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"out": "table.csv"}, "out"),
        ({"out": "no/folder/table.npz"}, "out"),
        ({"jobs": 0}, "jobs"),
        ({"jobs": 2, "cluster": "tcp://127.0.0.1:1"}, "cluster"),
        ({"executor": "two"}, "executor"),
    ],
)
def test_a_sweep_that_nobody_can_compute_is_refused(words, key, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refusal:
        parflex.sweep(quick[0], **words)
    assert refusal.value.key == key and refusal.value.hint


def test_the_verb_says_how_many_and_where(tmp_path, capsys):
    path = written(tmp_path, HEAD + '[samples]\nkind = "sobol"\ncount = 4\n')
    out = tmp_path / "out.npz"
    for computed in (4, 0):
        with pytest.raises(SystemExit) as end:
            main(["sweep", str(path), "--out", str(out), "--jobs", "1", "--json"])
        assert end.value.code == 0
        answer = json.loads(capsys.readouterr().out)
        wanted = {"designs": 4, "done": 4, "computed": computed, "failed": 0, "interrupted": False, "out": str(out)}
        assert answer | wanted == answer


def test_an_optimisation_and_a_sweep_share_their_file(tmp_path):
    text = HEAD + '[objective]\nmaximise = "lowest"\n[samples]\nkind = "sobol"\ncount = 2\n'
    path = written(tmp_path, text)
    assert parflex.sweep(path, jobs=1).done == 2
    from parflex.design.problem_file import read_problem

    assert read_problem(path).objective.maximise == "lowest"
    assert number_at(parflex.load("3rrr-flexible"), "constants.distal") == 0.4
