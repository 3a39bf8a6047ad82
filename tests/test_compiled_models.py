"""Compiled models as people use them: named arrays, batches, parameters, the cache on disk, and what is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.command_line import answered, refused
from support.traced import difference, expected, inputs, made, samples

import parflex
from parflex import InputError
from parflex.codegen import disk_cache, kept_instructions, program_store
from parflex.codegen.compile import Kernel, meanwhile
from parflex.codegen.emit import emit_llvm
from parflex.codegen.emit.files import MARK, write_files
from parflex.codegen.passes.optimise import make_program
from parflex.codegen.program import OPERATIONS
from parflex.codegen.traces.trace import Options
from parflex.graph import Graph
from parflex.models.terms import COUNTED_WITHOUT

ROUNDING = 1e-11  # systems of condition up to 1e3 in double precision


# -- arrays --------------------------------------------------------------------------------------------------------


def test_arrays_go_in_and_come_out_by_name_alone_or_as_a_batch():
    model = made("gough-stewart", "inverse")
    assert model.inputs["rotation"] == (3, 3) and model.outputs == {"effort": (6,)}
    assert model.labels["effort"] == parflex.load("gough-stewart").actuated_names
    given = inputs(model, samples("gough-stewart", 5))
    together = model(**given)["effort"]
    assert together.shape == (5, 6)
    alone = model(**{name: value[2].tolist() for name, value in given.items()})["effort"]
    assert alone.shape == (6,)
    assert np.abs(alone - together[2]).max() < 1e-12 * np.abs(alone).max()
    reordered = dict(reversed(given.items()))
    assert np.array_equal(model(**reordered)["effort"], together)


SMALL_ON_LARGE = """
format = 1
name = "micro"
gravity = [0, 0, 0]
[[frame]]
name = "slide"
joint = "prismatic"
actuated = true
inertia = { mass = 2e4 }
[[frame]]
name = "arm"
parent = "slide"
joint = "revolute"
actuated = true
inertia = { mass = 1e-3, centre = [1e-4, 0, 0], about_centre = [0, 0, 1e-10] }
[[frame]]
name = "needle"
parent = "arm"
joint = "revolute"
actuated = true
place = { position = [1e-3, 0, 0] }
inertia = { mass = 1e-6, about_centre = [0, 0, 1e-10] }
"""


def test_a_small_wrist_on_a_heavy_machine_keeps_its_inertia_in_programs(tmp_path):
    path = tmp_path / "micro.toml"
    path.write_text(SMALL_ON_LARGE, encoding="utf-8")
    effort = parflex.model(parflex.load(path), "inverse")(q=np.zeros(3), qd=np.zeros(3), qdd=[0.0, 0.0, 1.0])["effort"]
    assert effort[2] == pytest.approx(1e-10, rel=1e-9)  # I qdd, by hand; the rest is rounding


def test_a_batch_of_none_gives_none():
    model = made("four-bar", "inverse")
    assert model(**{name: np.zeros((0, *shape)) for name, shape in model.inputs.items()})["effort"].shape == (0, 1)


def test_arrays_in_any_memory_order_are_taken():
    model = made("3rrr", "inverse")
    given = inputs(model, samples("3rrr", 6))
    odd = {name: np.asfortranarray(np.repeat(value, 2, axis=0))[::2] for name, value in given.items()}
    assert np.array_equal(model(**odd)["effort"], model(**given)["effort"])


@pytest.mark.parametrize(
    ("change", "word", "text"),
    [
        ({"qd": np.zeros(3)}, "qd", r"shape \(3,\), not \(2,\)"),
        ({"q": 1.0}, "q", r"shape \(\), not \(4,\)"),
        ({"q": np.zeros((2, 4))}, "qd", "another batch"),
        ({"speed": np.zeros(2)}, "speed", "no input 'speed'"),
        ({"qdd": None}, "qdd", "not an array of numbers|shape"),
        ({"qdd": ["a", "b"]}, "qdd", "not an array of numbers"),
    ],
)
def test_wrong_arrays_are_refused_by_name(change, word, text):
    model = made("5r", "inverse")
    with pytest.raises(InputError, match=text) as stop:
        model(**{**model.sample, **change})
    assert stop.value.key == word and stop.value.hint


def test_a_missing_array_is_named():
    model = made("5r", "inverse")
    with pytest.raises(InputError, match="'qdd' is missing"):
        model(**{name: value for name, value in model.sample.items() if name != "qdd"})


# -- parameters ----------------------------------------------------------------------------------------------------


def test_parameters_by_name_act_as_those_of_the_file():
    robot = parflex.load("rx90")
    model = made("rx90", "inverse", ("MX[3]", "M[5]", "ZZ[6]"))
    assert list(model.parameters) == ["MX[3]", "M[5]", "ZZ[6]"]
    given, states = inputs(model, samples("rx90", 4)), samples("rx90", 4)
    assert difference(model(**given), expected("rx90", "inverse", states)) < ROUNDING
    payload = {"M[5]": model.parameters["M[5]"] + 2.0}
    heavier = model.with_parameters(payload)
    assert difference(model(**given), expected("rx90", "inverse", states)) < ROUNDING  # the first one has not changed
    from parflex.models.dynamics.base_parameters import body_from_parameters, body_parameters

    links = list(robot.tree.links)
    links[4] = replace(links[4], body=body_from_parameters(body_parameters(links[4].body) + 2.0 * np.eye(10)[9]))
    other = replace(robot, tree=replace(robot.tree, links=tuple(links)))
    direct = parflex.model(other, "inverse", without=COUNTED_WITHOUT)  # as the first one
    assert difference(heavier(**given), direct(**given)) < ROUNDING
    assert difference(heavier(**given), model(**given)) > 1e-3
    assert difference(heavier.evaluate("numpy", **given), direct(**given)) < ROUNDING


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("gough-stewart", ("M[platform]", "MZ[leg1.3]", "ZZ[platform]")),
        ("delta", ("M[platform]",)),
        ("5r", ("ZZ[left.1]",)),
    ],
)
def test_symbolic_parameters_of_closed_robots_act_too(name, names):
    states = samples(name, 5)
    model = made(name, "inverse", names)
    given = inputs(model, states)
    assert difference(model(**given), expected(name, "inverse", states)) < ROUNDING
    changed = model.with_parameters({names[0]: model.parameters[names[0]] * 2 + 1})
    assert difference(changed(**given), model(**given)) > 1e-4


def test_all_base_parameters_of_a_closed_robot_may_be_symbols():
    states = samples("3rrr", 5)
    model = made("3rrr", "inverse", "base")
    assert len(model.parameters) > 5
    assert difference(model(**inputs(model, states)), expected("3rrr", "inverse", states)) < ROUNDING


def test_other_parameters_compile_nothing_again(monkeypatch):
    model = parflex.model(parflex.load("puma560"), "inverse", parameters=["M[3]"])
    before = model(**model.sample)["effort"]
    monkeypatch.setattr("parflex.codegen.compile._engine", lambda *_: pytest.fail("compiled again"))
    heavier = model.with_parameters({"M[3]": 3.0})
    after = heavier(**model.sample)["effort"]
    assert after == pytest.approx(heavier.evaluate("numpy", **model.sample)["effort"], rel=1e-12)  # rounding
    assert np.abs(after - before).max() > 0.1


@pytest.mark.parametrize("value", ["much", float("nan"), None, True])
def test_a_parameter_that_is_no_number_is_refused_by_name(value):
    model = made("rx90", "inverse", ("MX[3]", "M[5]", "ZZ[6]"))
    with pytest.raises(InputError, match=r"M\[5\]"):
        model.with_parameters({"M[5]": value})


def test_an_unknown_parameter_is_refused_with_the_nearest_name():
    model = made("rx90", "inverse", ("MX[3]", "M[5]", "ZZ[6]"))
    with pytest.raises(InputError, match=r"no parameter 'MX\[4\]'") as stop:
        model.with_parameters({"MX[4]": 1.0})
    assert "MX[3]" in stop.value.hint
    with pytest.raises(InputError, match=r"no parameter 'MX\[77\]'"):
        parflex.model(parflex.load("rx90"), "inverse", parameters="MX[77]")


# -- the cache on disk ---------------------------------------------------------------------------------------------

CALL = """
import numpy, parflex
model = parflex.model(parflex.load("four-bar"), "inverse")
print(repr(float(model(**model.sample)["effort"][0])))
"""


def process(code: str, **environment: str) -> subprocess.Popen:
    environment = {**os.environ, **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def ended(started: subprocess.Popen) -> str:
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    return out.strip()


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A small program and a folder for its compiled code."""
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    graph = Graph()
    program = make_program(graph, "small", {"y": graph.symbol("a") * 2.5 + 1})
    return program, tmp_path / "cache"


def test_what_is_compiled_is_kept_and_read_again(small, monkeypatch):
    program, folder = small
    first = Kernel(program).one(np.array([2.0]))
    (file,) = folder.iterdir()
    assert hashlib.sha256(file.read_bytes()[32:]).digest() == file.read_bytes()[:32]
    monkeypatch.setattr("parflex.codegen.emit.emit_llvm.build_module", lambda *_: pytest.fail("compiled again"))
    assert np.array_equal(Kernel(program).one(np.array([2.0])), first)


def test_machine_code_that_is_made_meanwhile_is_made_once_and_what_fails_is_said(small, monkeypatch):
    program, _ = small
    built, build = [], emit_llvm.build_module
    monkeypatch.setattr(emit_llvm, "build_module", lambda *given: built.append(given) or build(*given))
    kernel = Kernel(program)
    meanwhile("one", lambda: kernel.address("one"))
    assert kernel.one(np.array([2.0]))[0] == 6.0 and len(built) == 1
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    monkeypatch.setattr(emit_llvm, "build_module", lambda *_: 1 / 0)
    failing = Kernel(program)
    meanwhile("one", lambda: failing.address("one"))
    with pytest.raises(ZeroDivisionError):
        failing.address("one")


def test_machine_code_is_kept_for_one_program_and_one_emitter(small, monkeypatch):
    program, folder = small
    Kernel(program).half("one")
    graph = Graph()
    other = make_program(graph, "small", {"y": graph.symbol("a") * 2.5 + 2})
    assert Kernel(other).one(np.array([2.0]))[0] == 7.0
    monkeypatch.setattr("parflex.codegen.compile._code", lambda: "another emitter")
    Kernel(program).half("one")
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_file_is_ignored_and_written_again(small, damage):
    program, folder = small
    wanted = Kernel(program).one(np.array([2.0]))
    (file,) = folder.iterdir()
    good = file.read_bytes()
    file.write_bytes(good[:-100] + bytes(100) if damage is None else damage)
    assert np.array_equal(Kernel(program).one(np.array([2.0])), wanted)
    content = file.read_bytes()
    assert hashlib.sha256(content[32:]).digest() == content[:32]


def test_without_a_cache_nothing_is_written(small, monkeypatch):
    program, folder = small
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    Kernel(program).half("one")
    assert not folder.exists() and disk_cache.folder() is None


@pytest.mark.verify
def test_two_processes_at_once_share_a_cache(tmp_path):
    started = [process(CALL, PARFLEX_CACHE=str(tmp_path)) for _ in range(2)]
    answers = {ended(one) for one in started}
    assert len(answers) == 1
    kept = sorted(path.suffix for path in tmp_path.iterdir())
    assert kept == ["", ".code", ".program"]  # one program, its compiled code and the hash of the source, no leftovers
    assert {ended(process(CALL, PARFLEX_CACHE=str(tmp_path)))} == answers


def test_a_model_that_was_made_once_is_read_and_not_traced_again(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    first = parflex.model(parflex.load("rx90"), "inverse", parameters=["M[5]"], include=["friction"])
    monkeypatch.setattr("parflex.codegen.traces.trace.traces", lambda *_: pytest.fail("traced again"))
    again = parflex.model(parflex.load("rx90"), "inverse", parameters=["M[5]"], include=["friction"])
    for part in ("name", "inputs", "outputs", "parameters", "labels", "program"):
        assert getattr(again, part) == getattr(first, part), part
    assert again.program.digest() == first.program.digest()  # so its compiled code is found too
    assert all(np.array_equal(again.sample[name], value) for name, value in first.sample.items())
    monkeypatch.setattr("parflex.codegen.emit.emit_llvm.build_module", lambda *_: pytest.fail("compiled again"))
    with pytest.raises(BaseException, match="compiled again"):
        again(**again.sample)  # it was never called before: the program was kept, not its code


def test_whatever_changes_a_program_changes_its_key(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    plain = parflex.load("gough-stewart")
    heavy = parflex.load("gough-stewart", payload=(2.0, 0.0, 0.0, 0.1))
    links = list(plain.tree.links)
    links[3] = replace(links[3], terms=replace(links[3].terms, motor_inertia=0.5))
    robots = [plain, heavy, replace(plain, tree=replace(plain.tree, links=tuple(links)))]
    links[3] = replace(plain.tree.links[3], position=plain.tree.links[3].position + 1e-3)
    robots += [replace(plain, tree=replace(plain.tree, links=tuple(links)))]
    robots += [parflex.load("gough-stewart", settings={"gravity": [0, 0, -1.62]}), plain.locking([plain.actuated[0]])]
    robots += [parflex.load(name) for name in parflex.catalogue_names() if name != plain.name]
    keys = [program_store.key_of(robot, "inverse", Options(), 1000) for robot in robots]
    choices = [("direct", Options(), 1000), ("inverse", Options("base"), 1000), ("inverse", Options(), 999)]
    choices += [("inverse", Options(without=("friction",)), 1000), ("inverse", Options(("M[platform]",)), 1000)]
    keys += [program_store.key_of(plain, *choice) for choice in choices]
    assert len(set(keys)) == len(keys)
    assert program_store.key_of(parflex.load("gough-stewart"), "inverse", Options(), 1000) == keys[0]
    faster = {"motions.circle.speed": 0.9, "title": "faster"}
    bending = [parflex.load("dualemps", settings=settings) for settings in (faster, None)]
    assert (
        len({program_store.key_of(one, "inverse", Options(), 1000) for one in bending}) == 1
    )  # motions are not in a program
    monkeypatch.setattr(program_store, "_code", lambda: b"another version")
    assert program_store.key_of(plain, "inverse", Options(), 1000) not in keys


def test_the_source_of_the_package_is_read_again_where_a_file_of_it_changed(monkeypatch, tmp_path):
    """A file of the same length and time of change too; the same text in another folder has the same hash."""
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file.py").write_text("k = 1")
    file = tmp_path / "one" / "inner" / "file.py"
    first = program_store._digest_of_source(tmp_path / "one")
    assert program_store._digest_of_source(tmp_path / "two") == first
    monkeypatch.setattr(Path, "read_bytes", _only_from(tmp_path / "cache", Path.read_bytes))
    assert program_store._digest_of_source(tmp_path / "one") == first
    monkeypatch.undo()
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    now = file.stat()
    file.write_text("k = 2")
    os.utime(file, ns=(now.st_atime_ns, now.st_mtime_ns))
    assert program_store._digest_of_source(tmp_path / "one") != first


def _only_from(folder, read):
    """As `read`, where files of any other folder may not be read."""

    def reading(path):
        assert path.parent == folder
        return read(path)

    return reading


@pytest.fixture(autouse=True)
def _source_is_known():
    """The hash of the source is kept too, in whichever cache is the first to be asked: not in those of these tests."""
    program_store._code()


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_program_is_made_again(monkeypatch, tmp_path, damage):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    first = parflex.model(parflex.load("four-bar"), "inverse")
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    file.write_bytes(good[:-100] + bytes(100) if damage is None else damage)
    assert parflex.model(parflex.load("four-bar"), "inverse").program == first.program
    assert file.read_bytes() == good


def test_a_refused_model_is_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    for _ in range(2):
        with pytest.raises(InputError, match="limit of 100"):
            parflex.model(parflex.load("rx90"), "direct", operator_limit=100)
    assert list(tmp_path.iterdir()) == []


def test_a_process_killed_while_writing_leaves_nothing_that_is_read(tmp_path, monkeypatch):
    stuck = """
import os, pathlib, time
from parflex.codegen import disk_cache
def wait(self, target):
    print("writing", flush=True)
    time.sleep(60)
pathlib.Path.replace = wait
disk_cache.write("key", b"data" * 1000)
"""
    started = process(stuck, PARFLEX_CACHE=str(tmp_path))
    assert started.stdout.readline().strip() == "writing"
    os.kill(started.pid, signal.SIGKILL)
    started.communicate()
    assert not (tmp_path / "key").exists()
    left = list(tmp_path.iterdir())
    assert all(file.name.startswith(".part-") for file in left)
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    assert disk_cache.read("key") is None
    disk_cache.write("key", b"data")
    assert disk_cache.read("key") == b"data"


@pytest.fixture
def unwarned(monkeypatch):
    """No folder was reported yet."""
    monkeypatch.setattr(disk_cache, "_told", set())


@pytest.mark.parametrize("variable", ["PARFLEX_CACHE", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, None])
def test_a_cache_that_cannot_be_written_prevents_nothing(small, monkeypatch, tmp_path, unwarned, code, variable):
    """A full disk, a disk that is read-only, a folder of others, and a file in the way."""
    program, _ = small
    monkeypatch.delenv("PARFLEX_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "file" / "cache" if code is None else tmp_path / "cache"))
    if code is None:
        (tmp_path / "file").write_text("in the way")
    else:

        def failing(*_, **__):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(disk_cache, "replacing", failing)
    with pytest.warns(UserWarning, match="not cached") as told:
        values = [Kernel(program).one(np.array([1.0])) for _ in range(2)]
    assert np.isfinite(values).all() and len(told) == 1


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_machine_code_that_others_can_write_is_not_loaded(monkeypatch, tmp_path, unwarned):
    place = tmp_path / "made" / "cache"
    monkeypatch.setenv("PARFLEX_CACHE", str(place))
    before = os.umask(0)
    try:
        disk_cache.write("key", b"data")
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700 and stat.S_IMODE((place / "key").stat().st_mode) == 0o600
    assert disk_cache.read("key") == b"data"
    for path, mode in ((place, 0o770), (place, 0o702), (place / "key", 0o660), (place / "key", 0o602)):
        disk_cache._told.clear()
        rights = path.stat().st_mode
        path.chmod(mode)
        with pytest.warns(UserWarning, match="can be written by other users") as told:
            assert disk_cache.read("key") is None and disk_cache.read("key") is None
        assert len(told) == 1 and str(path) in str(told[0].message)
        path.chmod(rights)
    disk_cache._told.clear()
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(place).st_uid + 1)  # noqa: PTH116
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert disk_cache.read("key") is None


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.few
@pytest.mark.parametrize(
    ("arguments", "key", "text"),
    [
        (("count", "rx90", "invers"), "MODEL", "there is no model 'invers'"),
        (("count", "rx90", "geometry"), "MODEL", "open robot"),
        (("count", "rx90", "direct", "--operator-limit", "100"), "operator-limit", "more than the limit of 100"),
        (("count", "rx90", "inverse", "--with", "frictio"), "with", "'frictio' is not a term that can be included"),
        (("count", "rx90", "inverse", "--parameters", "MX[9]"), "parameters", "no parameter 'MX[9]'"),
        (("codegen", "rx90", "inverse", "--target", "fortran", "-o", "OUT"), "target", "there is no target 'fortran'"),
        (("codegen", "rx90", "invers", "--target", "c", "-o", "OUT"), "MODEL", "there is no model"),
        (
            ("codegen", "rx90", "inverse", "--target", "numpy", "--float32", "-o", "OUT"),
            "float32",
            "single precision is available in C only",
        ),
        (("codegen", "rx90", "inverse", "--target", "c", "-o", "OUT/file/inner"), "output", "cannot be written"),
        (
            ("codegen", "rx90", "inverse", "--operator-limit", "9", "--target", "c", "-o", "OUT"),
            "operator-limit",
            "limit",
        ),
    ],
)
def test_bad_requests_get_one_sentence_and_write_nothing(capsys, tmp_path, arguments, key, text):
    (tmp_path / "file").write_text("in the way")
    error = refused(capsys, *(part.replace("OUT", str(tmp_path)) for part in arguments))
    assert error["key"] == key and text in error["message"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_on_the_way_leaves_nothing(monkeypatch, tmp_path):
    files = made("four-bar", "inverse").files("c")
    real, opened = os.fdopen, []

    def full(handle, mode):
        opened.append(real(handle, mode))
        if len(opened) == len(files):  # the last of them
            opened[-1].close()
            return Path("/dev/full").open("wb", buffering=0)
        return opened[-1]

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(InputError, match="No space left"):
        write_files(tmp_path, files)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_place_of_a_file_keeps_the_others_as_they_were(tmp_path):
    files = made("four-bar", "inverse").files("c")
    first, *_, last = files
    (tmp_path / first).write_text(f"old, {MARK}")
    (tmp_path / last).mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_files(tmp_path, files)
    assert (tmp_path / first).read_text() == f"old, {MARK}"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([first, last])


@pytest.mark.parametrize("target", ["c", "llvm", "numpy", "jax", "casadi", "sympy"])
def test_the_command_line_writes_every_target(capsys, tmp_path, target):
    answer = answered(capsys, "codegen", "four-bar", "inverse", "--target", target, "-o", tmp_path / "new" / "folder")
    assert sorted(answer["files"]) == sorted(str(path) for path in (tmp_path / "new" / "folder").iterdir())
    assert answer["counts"] == parflex.model(parflex.load("four-bar"), "inverse").counts
    assert answer["outputs"] == ["effort[0]"] and len(answer["inputs"]) == 5
    assert json.dumps(answer) and all(Path(file).read_text() for file in answer["files"])


@pytest.mark.parametrize("target", ["c", "llvm", "numpy", "jax", "casadi", "sympy"])
def test_a_file_that_is_not_ours_is_kept_unless_forced(capsys, tmp_path, target):
    call = ("codegen", "four-bar", "inverse", "--target", target, "-o", tmp_path)
    files = [Path(file) for file in answered(capsys, *call)["files"]]
    assert all(MARK in file.read_text().splitlines()[0] for file in files)
    fresh = [file.read_bytes() for file in files]
    assert len(answered(capsys, *call)["files"]) == len(files)  # ours are written again
    files[0].write_text(f"{MARK}: an older one\n")
    files[-1].write_text("my own work\n")
    error = refused(capsys, *call)
    assert error["key"] == "output" and error["value"] == files[-1].name and "--force" in error["hint"]
    assert files[-1].read_text() == "my own work\n" and (len(files) == 1 or "older" in files[0].read_text())
    assert sorted(tmp_path.iterdir()) == sorted(files)
    answered(capsys, *call, "--force")
    assert [file.read_bytes() for file in files] == fresh


def test_the_command_line_compiles_for_this_machine_and_says_where(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    call = ("codegen", "four-bar", "inverse", "--target", "llvm", "-o", tmp_path / "out")
    compiled = Path(answered(capsys, *call)["compiled"])
    assert compiled.parent == tmp_path / "cache" and compiled.is_file()
    monkeypatch.setattr("parflex.codegen.emit.emit_llvm.build_module", lambda *_: pytest.fail("compiled again"))
    model = parflex.model(parflex.load("four-bar"), "inverse")
    assert np.isfinite(model(**model.sample)["effort"]).all()  # the same code serves Python
    assert model.compiled() == compiled
    monkeypatch.undo()
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    assert answered(capsys, *call)["compiled"] is None


def test_a_cache_that_cannot_be_written_is_a_warning_in_the_answer(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("PARFLEX_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    answer = answered(capsys, "codegen", "four-bar", "inverse", "--target", "llvm", "-o", tmp_path / "out")
    assert answer["compiled"] is None and len(answer["files"]) == 1
    (warning,) = answer["warnings"]
    assert "not cached" in warning
    monkeypatch.setattr(disk_cache, "_told", set())
    (warning,) = answered(capsys, "count", "four-bar", "inverse")["warnings"]
    assert "not cached" in warning


def test_a_kept_program_is_called_without_its_instructions_and_has_them_when_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    robot = parflex.load("5r")
    first = parflex.model(robot, "inverse")
    expected = first(**first.sample)["effort"]
    with monkeypatch.context() as patch:
        patch.setattr(kept_instructions, "unpacked", lambda _: pytest.fail("instructions were read"))
        kept = parflex.model(robot, "inverse")
        assert np.array_equal(kept(**kept.sample)["effort"], expected)
        assert len(kept.program.instructions) == len(first.program.instructions)
    assert type(kept.program.instructions) is not tuple and kept.program == first.program
    assert repr(kept.program.instructions) == repr(first.program.instructions)
    assert kept.program.digest() == first.program.digest() and kept.counts == first.counts
    for file in tmp_path.glob("*.program"):
        file.write_bytes(file.read_bytes()[:-1])
    again = parflex.model(robot, "inverse")  # damaged: it is made anew
    assert type(again.program.instructions) is tuple and again.program == first.program


def test_instructions_are_the_same_behind_their_bytes():
    one = [("const", -0.1), ("const", 1e300), ("atan2", 0, 1), ("select", 2, 1, 0), ("neg", 3), ("greater", 4, 5)]
    one += [(word, 0) for word in ("sqrt", "sin", "cos", "abs", "sign")] + [(word, 1, 2) for word in ("add", "sub")]
    one += [("call 2", 3, 4, 5, 6, 7), ("pick 1", 13), ("call 0", 1)]
    assert kept_instructions.unpacked(kept_instructions.packed(one)) == tuple(one)
    assert set(kept_instructions.WORDS) == {*OPERATIONS, "call", "pick"}
