"""Files of arrays that declare more than they hold, and tables with semicolons and decimal commas."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.command_line import refused
from support.robots import write_robot

import parflex
from parflex.io import MAX_BYTES, npz_bytes, read_npz
from parflex.trajectories.files import read_table

MANY = 10**10


def header(count: int) -> bytes:
    """The head of an array of doubles, with none of its numbers."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (count,)})
    return stream.getvalue()


def declaring(path: Path, count: int, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(f"{name}.npy", header(count))
    return path


@pytest.fixture
def no_room(monkeypatch):
    """Fail where an array of the declared size would be made."""

    def read(*_, **__):
        pytest.fail("the numbers are read")

    monkeypatch.setattr(np.lib.format, "read_array", read)


def test_arrays_come_back_as_they_were_written(tmp_path):
    arrays = {"a": np.arange(3.0), "b": np.array("text"), "c": np.zeros((2, 0)), "d": np.eye(2, dtype=complex)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    for source in (tmp_path / "a.npz", (tmp_path / "a.npz").read_bytes(), npz_bytes(arrays)):
        found = read_npz(source)
        assert list(found) == list(arrays) and all(np.array_equal(found[k], v) for k, v in arrays.items())
    assert list(read_npz(tmp_path / "a.npz", ["b"])) == ["b"]


def test_declared_sizes_count_before_numbers_are_read(tmp_path, no_room):
    with pytest.raises(parflex.InputError, match=r"declare arrays of 80 GB, more than 2 GB"):
        read_npz(declaring(tmp_path / "one.npz", MANY, "t"))
    with pytest.raises(parflex.InputError, match="more than 2 GB"):  # together
        read_npz(declaring(tmp_path / "all.npz", MAX_BYTES // 8 // 2 + 1, "a", "b"))
    with pytest.raises(ValueError, match="declares more numbers than it holds"):
        read_npz(declaring(tmp_path / "few.npz", 1000, "t"))


@pytest.mark.parametrize("damage", ["cut", "turned", "npy", "empty", "text", "object"])
def test_damaged_files_are_value_errors(damage, tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(1000.0))
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:200])
    elif damage == "turned":
        path.write_bytes(content[:80] + bytes(200) + content[280:])
    elif damage == "npy":
        np.save(path.open("wb"), np.eye(3))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x", b"hello")
    else:
        np.savez(path, a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"."):
        read_npz(path)


LINES = {
    "plot": "plot {} -o a.svg",
    "identify": "identify 5r {}",
    "simulate": "simulate 5r --motion {} --time 0.1 --out b.npz",
    "view": "view 5r --map {} --no-browser --seconds 0",
}


@pytest.mark.parametrize("verb", LINES)
def test_a_huge_file_is_refused_in_one_sentence(verb, tmp_path, capsys, no_room):
    path = declaring(tmp_path / "huge.npz", MANY, "t", "settings")
    error = refused(capsys, *LINES[verb].format(path).split())
    assert "declare arrays of 160 GB" in error["message"] and error["file"] == str(path)


PLAIN = "t,q.axis\n0,-1.5\n0.001,2e-3\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", ";").replace(".", ",").replace("q,axis", "q.axis"),
        "sep=;\r\n" + PLAIN.replace(",", ";").replace("0.001", "0,001").replace("-1.5", "-1,5").replace("\n", "\r\n"),
        PLAIN.replace(",", "\t"),
    ],
)
def test_tables_are_read_with_semicolons_tabs_and_decimal_commas(tmp_path, text):
    path = tmp_path / "record.csv"
    path.write_text("\ufeff" + text, encoding="utf-8", newline="")
    found = read_table(str(path), "record")
    np.testing.assert_array_equal(np.stack([found["t"], found["q.axis"]]), [[0, 0.001], [-1.5, 2e-3]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t;q\n0;1.234,5\n", "numbers have points and commas"),
        ("t;q\n0;1,234,567\n", "several commas"),
        ("t,q\n0,0,1,5\n", "rows have 4 numbers and 2 names: commas stand between numbers and in them"),
        ("t;q\n0;a\n", "is not a table of numbers"),
    ],
)
def test_tables_that_may_mean_two_things_are_refused(tmp_path, text, message):
    path = tmp_path / "record.csv"
    path.write_text(text)
    with pytest.raises(parflex.InputError, match=message):
        read_table(str(path), "record")


def test_a_huge_modal_body_is_refused(tmp_path, no_room):
    declaring(tmp_path / "huge.npz", MANY, "nodes")
    path = write_robot(tmp_path, 'format = 1\nname = "p"\n[platform]\nmodal = { file = "huge.npz" }\n')
    with pytest.raises(parflex.ParflexError, match="declare arrays of 80 GB"):
        parflex.load(path)


def test_a_null_byte_in_a_path_is_an_input_error(tmp_path):
    with pytest.raises(parflex.InputError, match="null byte"):
        parflex.import_robot("a\0b.urdf", tmp_path / "robot.toml")
