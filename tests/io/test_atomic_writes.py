"""What parflex writes is there whole or not at all, with the rights of any other new file."""

import os
import stat
from typing import Any

import numpy as np
import pytest

import parflex
from parflex.cli.statics import write_arrays
from parflex.io import atomic_file, atomic_files, write_generated
from parflex.trajectories.files import write_table
from parflex.view.style import new_figure, write_picture


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
