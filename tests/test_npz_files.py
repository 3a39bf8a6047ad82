"""Files of arrays that declare more than they hold, or more than fits: refused before memory is taken for them."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.cli.main import main
from parflex.npz_files import MAX_BYTES, read_npz

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
    for source in (tmp_path / "a.npz", io.BytesIO((tmp_path / "a.npz").read_bytes())):
        found = read_npz(source)
        assert list(found) == list(arrays) and all(np.array_equal(found[k], v) for k, v in arrays.items())
    assert list(read_npz(tmp_path / "a.npz", ["b"])) == ["b"]


def test_declared_sizes_count_before_numbers_are_read(tmp_path, no_room):
    with pytest.raises(InputError, match=r"declare arrays of 80 GB, more than 2 GB"):
        read_npz(declaring(tmp_path / "one.npz", MANY, "t"))
    with pytest.raises(InputError, match="more than 2 GB"):  # together
        read_npz(declaring(tmp_path / "all.npz", MAX_BYTES // 8 // 2 + 1, "a", "b"))
    with pytest.raises(ValueError, match="declares more numbers than it holds"):
        read_npz(declaring(tmp_path / "few.npz", 1000, "t"))


@pytest.mark.parametrize("damage", ["cut", "turned", "npy", "empty", "object"])
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
    with pytest.raises(SystemExit) as end:
        main([*LINES[verb].format(path).split(), "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert end.value.code == 2 and "declare arrays of 160 GB" in error["message"]
    assert error["file"] == str(path) and error["hint"]


def test_a_huge_body_is_refused(tmp_path, no_room):
    text = 'format = 1\nname = "p"\n[platform]\nmodal = {{ file = "{}" }}\n'
    declaring(tmp_path / "huge.npz", MANY, "nodes")
    (tmp_path / "p.toml").write_text(text.format("huge.npz"))
    with pytest.raises(parflex.ParflexError, match="declare arrays of 80 GB"):
        parflex.load(tmp_path / "p.toml")


def test_entries_that_are_no_arrays_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x", b"hello")
    with pytest.raises(ValueError, match="'x' is not an array"):
        read_npz(tmp_path / "a.npz")
