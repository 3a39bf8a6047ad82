"""Compiled models as people use them: named arrays, batches, parameters, the cache on disk, and what is refused."""

import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from support.command_line import answered, refused
from support.robots import load_robot
from support.traced import difference, expected, inputs, made, samples

import parflex
from parflex.codegen import cache as disk_cache
from parflex.codegen import cache as program_store
from parflex.codegen.llvm_jit import Kernel, compile_in_background

ROUNDING = 1e-11  # systems of condition up to 1e3 in double precision


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


def test_a_small_wrist_on_a_heavy_machine_keeps_its_inertia_in_programs():
    model = parflex.model(load_robot("small-on-large"), "inverse")
    effort = model(q=np.zeros(3), qd=np.zeros(3), qdd=[0.0, 0.0, 1.0])["effort"]
    assert effort[2] == pytest.approx(1e-10, rel=1e-9)  # I qdd, by hand; the rest is rounding


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
    with pytest.raises(parflex.InputError, match=text) as stop:
        model(**{**model.sample, **change})
    assert stop.value.key == word and stop.value.hint


def test_a_missing_array_is_named():
    model = made("5r", "inverse")
    with pytest.raises(parflex.InputError, match="'qdd' is missing"):
        model(q=model.sample["q"], qd=model.sample["qd"])


def test_parameters_by_name_act_as_those_of_the_file():
    words = ("M", "MX", "MY", "MZ", "XX", "XY", "XZ", "YY", "YZ", "ZZ")
    model = made("rx90", "inverse", tuple(f"{word}[5]" for word in words))
    assert list(model.parameters) == [f"{word}[5]" for word in words]
    given, states = inputs(model, samples("rx90", 4)), samples("rx90", 4)
    assert difference(model(**given), expected("rx90", "inverse", states)) < ROUNDING
    mass, c, about = 3.5, np.array([0.002, 0.015, 0.003]), np.diag([0.004, 0.003, 0.0035])  # of the file: 1.5 kg
    inertia = (about + mass * (c @ c * np.eye(3) - np.outer(c, c)))[np.triu_indices(3)]
    heavier = model.with_parameters(dict(zip(model.parameters, [mass, *(mass * c), *inertia], strict=True)))
    assert difference(model(**given), expected("rx90", "inverse", states)) < ROUNDING  # the first one has not changed
    direct = parflex.model(parflex.load("rx90", settings={"frame.5.inertia.mass": mass}), "inverse", include=())
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
    monkeypatch.setattr("parflex.codegen.llvm_jit._engine", lambda *_: pytest.fail("compiled again"))
    heavier = model.with_parameters({"M[3]": 3.0})
    after = heavier(**model.sample)["effort"]
    assert after == pytest.approx(heavier.evaluate("numpy", **model.sample)["effort"], rel=1e-12)  # rounding
    assert np.abs(after - before).max() > 0.1


@pytest.mark.parametrize("value", ["much", float("nan"), None, True])
def test_a_parameter_that_is_no_number_is_refused_by_name(value):
    model = made("rx90", "inverse", ("MX[3]", "M[5]", "ZZ[6]"))
    with pytest.raises(parflex.InputError, match=r"M\[5\]"):
        model.with_parameters({"M[5]": value})


def test_an_unknown_parameter_is_refused_with_the_nearest_name():
    model = made("rx90", "inverse", ("MX[3]", "M[5]", "ZZ[6]"))
    with pytest.raises(parflex.InputError, match=r"no parameter 'MX\[4\]'") as stop:
        model.with_parameters({"MX[4]": 1.0})
    assert "MX[3]" in stop.value.hint
    with pytest.raises(parflex.InputError, match=r"no parameter 'MX\[77\]'"):
        parflex.model(parflex.load("rx90"), "inverse", parameters="MX[77]")


CALL = """
import numpy, parflex
model = parflex.model(parflex.load("four-bar"), "inverse")
print(repr(float(model(**model.sample)["effort"][0])))
"""
RECOMPILED = {
    "parflex.codegen.trace.traces": "traced again",
    "parflex.codegen.emit_llvm.build_module": "compiled again",
}


def process(code: str, **environment: str) -> subprocess.Popen:
    environment = {**os.environ, **environment}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes)


def ended(started: subprocess.Popen) -> str:
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    return out.strip()


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    """An empty folder for programs and machine code; the hash of the source is known already."""
    parflex.model(parflex.load("four-bar"), "inverse")
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def four_bar(**words) -> parflex.Model:
    return parflex.model(parflex.load("four-bar"), "inverse", **words)


NEW = count(1)


@pytest.fixture
def new_model() -> Callable[..., parflex.Model]:
    """Makes models of a robot that this process has not compiled."""
    robot = {"gravity": [0, -float(next(NEW)), 0]}
    return lambda **words: parflex.model(parflex.load("four-bar", settings=robot), "inverse", **words)


def effort(model: parflex.Model) -> float:
    return float(model(**model.sample)["effort"][0])


def test_a_model_that_was_made_once_is_read_and_neither_traced_nor_compiled_again(cache, new_model, monkeypatch):
    words = {"parameters": ["M[coupler]"], "include": ["friction"]}
    first = new_model(**words)
    value = effort(first)
    assert sorted(file.suffix for file in cache.iterdir()) == ["", ".program"]
    for name, message in RECOMPILED.items():
        monkeypatch.setattr(name, lambda *_, message=message: pytest.fail(message))
    again = new_model(**words)
    for part in ("name", "inputs", "outputs", "parameters", "labels", "program", "counts"):
        assert getattr(again, part) == getattr(first, part), part
    assert all(np.array_equal(again.sample[name], part) for name, part in first.sample.items())
    assert effort(again) == value
    monkeypatch.undo()  # in another cache nothing is known
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    assert effort(new_model(**words)) == value and len(list(cache.iterdir())) == 2


def test_machine_code_that_is_made_meanwhile_is_made_once_and_what_fails_is_said(cache, monkeypatch):
    kernel = Kernel(four_bar().program)
    compile_in_background("one", lambda: kernel.address("one"))
    x = np.concatenate([np.ravel(value) for value in four_bar().sample.values()])
    assert kernel.one(x)[0] == pytest.approx(effort(four_bar()))
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    monkeypatch.setattr("parflex.codegen.emit_llvm.build_module", lambda *_: 1 / 0)
    failing = Kernel(four_bar().program)
    compile_in_background("one", lambda: failing.address("one"))
    with pytest.raises(ZeroDivisionError):
        failing.address("one")


@pytest.mark.parametrize("suffix", [".program", ""])  # of programs, and of machine code
@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_file_is_ignored_and_written_again(cache, new_model, damage, suffix):
    first = new_model()
    value = effort(first)
    (file,) = (one for one in cache.iterdir() if one.suffix == suffix)
    good = file.read_bytes()
    file.write_bytes(good[:-100] + bytes(100) if damage is None else damage)
    again = new_model()
    assert again.program == first.program and effort(again) == value
    content = file.read_bytes()
    assert content == good or (not suffix and hashlib.sha256(content[32:]).digest() == content[:32])


@pytest.mark.verify
def test_two_processes_at_once_share_a_cache(tmp_path):
    started = [process(CALL, PARFLEX_CACHE=str(tmp_path)) for _ in range(2)]
    answers = {ended(one) for one in started}
    assert len(answers) == 1
    kept = sorted(path.suffix for path in tmp_path.iterdir())
    assert kept == ["", ".code", ".program"]  # one program, its compiled code and the hash of the source, no leftovers
    assert {ended(process(CALL, PARFLEX_CACHE=str(tmp_path)))} == answers


def test_whatever_changes_a_program_is_kept_beside_it(cache, monkeypatch):
    """Each further model is one file; what is no part of a program, as its title, is none."""

    def programs(model="inverse", settings=None, locked=False, **words) -> int:
        robot = parflex.load("5r", settings=settings, payload=words.pop("payload", None))
        parflex.model(robot.locking([robot.actuated[0]]) if locked else robot, model, **words)
        return len(list(cache.glob("*.program")))

    changes = [
        {},
        {"payload": (2.0, 0.0, 0.0, 0.1)},
        {"settings": {"legs.frame.0.motor_inertia": 0.5}, "include": ["motor-inertia"]},
        {"settings": {"constants.proximal": 0.41}},
        {"settings": {"gravity": [0, 0, -1.62]}},
        {"locked": True, "model": "mass-matrix"},
        {"model": "direct"},
        {"parameters": "base"},
        {"parameters": ["M[left.2]"]},
        {"include": ["friction"]},
    ]
    assert [programs(**change) for change in changes] == list(range(1, len(changes) + 1))
    assert programs() == programs(settings={"title": "faster"}) == len(changes)
    monkeypatch.setattr("parflex.codegen.cache._code", lambda: b"another version")
    assert programs() == len(changes) + 1


def test_the_source_of_the_package_is_read_again_where_a_file_of_it_changed(monkeypatch, tmp_path):
    """A file of the same length and time of change too; the same text in another folder has the same hash."""
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file.py").write_text("k = 1")
    file = tmp_path / "one" / "inner" / "file.py"
    first = program_store._source_digest(tmp_path / "one")
    assert program_store._source_digest(tmp_path / "two") == first
    now = file.stat()
    file.write_text("k = 2")
    os.utime(file, ns=(now.st_atime_ns, now.st_mtime_ns))
    assert program_store._source_digest(tmp_path / "one") != first


def test_a_refused_model_is_not_kept(cache):
    for _ in range(2):
        with pytest.raises(parflex.InputError, match="limit of 100"):
            parflex.model(parflex.load("rx90"), "direct", operator_limit=100)
    assert not cache.exists() or list(cache.iterdir()) == []


def test_a_process_killed_while_writing_leaves_nothing_that_is_read(tmp_path, monkeypatch):
    stuck = """
import pathlib, time
def wait(self, target):
    print("writing", flush=True)
    time.sleep(60)
pathlib.Path.replace = wait
"""
    started = process(stuck + CALL, PARFLEX_CACHE=str(tmp_path))
    assert started.stdout.readline().strip() == "writing"
    os.kill(started.pid, signal.SIGKILL)
    started.communicate()
    assert all(file.name.startswith(".part-") for file in tmp_path.iterdir())
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    assert np.isfinite(effort(four_bar()))


@pytest.fixture
def unwarned(monkeypatch):
    """No folder was reported yet."""
    monkeypatch.setattr(disk_cache, "_told", set())


@pytest.mark.parametrize("variable", ["PARFLEX_CACHE", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, None])
def test_a_cache_that_cannot_be_written_prevents_nothing(cache, monkeypatch, tmp_path, unwarned, code, variable):
    """A full disk, a disk that is read-only, a folder of others, and a file in the way."""
    monkeypatch.delenv("PARFLEX_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "file" / "cache" if code is None else cache))
    if code is None:
        (tmp_path / "file").write_text("in the way")
    else:

        def failing(*_, **__):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(disk_cache, "atomic_file", failing)
    with pytest.warns(UserWarning, match="not cached") as told:
        values = [effort(four_bar()) for _ in range(2)]
    assert np.isfinite(values).all() and len(told) == 1


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_machine_code_that_others_can_write_is_not_loaded(monkeypatch, tmp_path, unwarned):
    place = tmp_path / "made" / "cache"
    monkeypatch.setenv("PARFLEX_CACHE", str(place))
    before = os.umask(0)
    try:
        disk_cache.write_bytes("key", b"data")
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700 and stat.S_IMODE((place / "key").stat().st_mode) == 0o600
    assert disk_cache.read_bytes("key") == b"data"
    for path, mode in ((place, 0o770), (place, 0o702), (place / "key", 0o660), (place / "key", 0o602)):
        disk_cache._told.clear()
        rights = path.stat().st_mode
        path.chmod(mode)
        with pytest.warns(UserWarning, match="can be written by other users") as told:
            assert disk_cache.read_bytes("key") is None and disk_cache.read_bytes("key") is None
        assert len(told) == 1 and str(path) in str(told[0].message)
        path.chmod(rights)
    disk_cache._told.clear()
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(place).st_uid + 1)  # noqa: PTH116
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert disk_cache.read_bytes("key") is None


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


TARGETS = ["c", "llvm", "numpy", "jax", "casadi", "sympy"]
MARK = "generated by parflex"  # in the first line of files that are written again


@pytest.mark.parametrize("target", TARGETS)
def test_the_command_line_writes_every_target(capsys, tmp_path, target):
    answer = answered(capsys, "codegen", "four-bar", "inverse", "--target", target, "-o", tmp_path / "new" / "folder")
    assert sorted(answer["files"]) == sorted(str(path) for path in (tmp_path / "new" / "folder").iterdir())
    assert answer["counts"] == four_bar().counts
    assert answer["outputs"] == ["effort[0]"] and len(answer["inputs"]) == 5
    assert all(Path(file).read_text() for file in answer["files"])


@pytest.mark.parametrize("target", TARGETS)
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


def test_the_command_line_compiles_for_this_machine_and_says_where(capsys, cache, monkeypatch, tmp_path):
    call = ("codegen", "four-bar", "inverse", "--target", "llvm", "-o", tmp_path / "out")
    compiled = Path(answered(capsys, *call)["compiled"])
    assert compiled.parent == cache and compiled.is_file()
    monkeypatch.setattr("parflex.codegen.emit_llvm.build_module", lambda *_: pytest.fail("compiled again"))
    assert np.isfinite(effort(four_bar()))  # the same code serves Python
    assert four_bar().compiled() == compiled
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
