"""Maps on disk: killed and taken up again, the same bits by any number of threads, and what they hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.campaigns import campaign
from parflex.cli.main import main
from parflex.maps import grid
from parflex.maps.responses import response_rows
from parflex.maps.rows import frequency_rows

AXES = [("11", -0.05, 0.05, 5), ("21", -0.05, 0.05, 4)]


@pytest.fixture(scope="module")
def robot():
    return parflex.load("dualemps")


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(frequency_rows, "CHUNK_FULL", 6)
    monkeypatch.setattr(response_rows, "CHUNK_TOGETHER", 6)
    monkeypatch.setattr(campaign, "SAVE_EVERY", -1.0)  # after every chunk
    monkeypatch.setattr(campaign, "SAVING", np.inf)


def test_a_map_that_was_killed_goes_on_to_the_same_bits_by_any_number_of_threads(robot, tmp_path, small_chunks):
    out, left = tmp_path / "map.npz", tmp_path / "left.npz"
    asked = {"modes": 2, "responses": ["stiffness:x", "shape:1"]}

    def killed(done: int, total: int) -> None:
        if done == 18 and out.exists():  # two chunks are on disk, one is lost
            shutil.copy(out, left)

    whole = parflex.frequency_map(robot, AXES, out=out, threads=1, progress=killed, **asked)
    with np.load(left) as stored:
        assert (stored["status"] == grid.WAITING).sum() == 8
    again = parflex.frequency_map(robot, AXES, out=left, threads=2, **asked)
    assert again.computed == 8 and not again.interrupted
    plain = parflex.frequency_map(robot, AXES, threads=2, **asked)
    for other in (again, plain):
        assert np.array_equal(other.frequencies, whole.frequencies)
        for name, values in whole.responses.items():
            assert np.array_equal(other.responses[name], values)
    with np.load(left) as one, np.load(out) as two:
        assert sorted(one.files) == sorted(two.files)
        assert all(np.array_equal(one[name], two[name], equal_nan=one[name].dtype.kind == "f") for name in one.files)


def test_chunks_that_were_finished_before_a_kill_are_not_computed_again(robot, tmp_path, small_chunks, monkeypatch):
    monkeypatch.setattr(campaign, "SAVE_EVERY", 1e9)  # never on the way
    out, seen = tmp_path / "map.npz", []

    def killed(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 2:
            raise SystemExit

    with pytest.raises(SystemExit):
        parflex.frequency_map(robot, AXES, out=out, threads=1, modes=2, progress=killed)
    assert not out.exists() and (tmp_path / "map.npz.journal").exists()
    again = parflex.frequency_map(robot, AXES, out=out, threads=1, modes=2, csv=False)
    assert again.computed == 20 - seen[-1] and [path.name for path in tmp_path.iterdir()] == ["map.npz"]
    plain = parflex.frequency_map(robot, AXES, threads=1, modes=2)
    assert np.array_equal(again.frequencies, plain.frequencies)


def test_responses_of_a_map_are_those_of_many_poses_and_stand_in_both_files(robot, tmp_path):
    out = tmp_path / "map.npz"
    asked = ["stiffness:x", "deflection"]
    load = {robot.tree.end_effector: [10.0, 0.0, 0.0]}
    found = parflex.frequency_map(robot, AXES, modes=1, out=out, responses=asked, wrench=load)
    poses = np.array([[x, y] for x in found.axes["11"] for y in found.axes["21"]])
    many = parflex.many_responses(robot, ["11", "21"], poses, [*asked, "frequency:1"], wrench=load)
    assert found.responses["stiffness:x"].ravel() == pytest.approx(many["stiffness:x"], rel=1e-9)
    assert found.responses["deflection"].reshape(-1, 6) == pytest.approx(many["deflection"], rel=1e-9, abs=1e-15)
    assert found.frequencies.ravel() == pytest.approx(many["frequency:1"], rel=1e-9)
    rows = (tmp_path / "map.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("11,21,state,f1_hz,stiffness:x,deflection.x,") and len(rows) == 21
    assert float(rows[1].split(",")[4]) == found.responses["stiffness:x"][0, 0]
    with np.load(out) as stored:
        assert np.array_equal(stored["stiffness_x"], found.responses["stiffness:x"])
    with pytest.raises(InputError, match="other settings"):
        parflex.frequency_map(robot, AXES, modes=1, out=out, responses=asked)




def test_a_map_of_an_earlier_version_is_refused_in_one_sentence(robot, tmp_path):
    out = tmp_path / "map.npz"
    parflex.frequency_map(robot, AXES[:1], modes=1, out=out)
    with np.load(out) as stored:
        content = dict(stored)
    settings = json.loads(str(content["settings"]))
    del settings["format"]
    np.savez(out, **content | {"settings": np.array(json.dumps(settings))})
    with pytest.raises(InputError, match="an earlier version wrote this map") as told:
        parflex.frequency_map(robot, AXES[:1], modes=1, out=out)
    assert "\n" not in str(told.value)


def test_cells_without_frequencies_say_why(tmp_path):
    robot = parflex.load("3rrr-flexible")
    over = [("x", 0.0, 5.0, 2), ("y", 0.1, 0.2, 2)]
    found = parflex.frequency_map(robot, over, {"theta": 0.0}, modes=1, out=tmp_path / "map.npz")
    assert (found.status[1] == 1).all() and "cannot be reached" in found.reason_at(1, 0)
    again = parflex.frequency_map(robot, over, {"theta": 0.0}, modes=1, out=tmp_path / "map.npz")
    assert again.computed == 0 and again.reason_at(1, 1) == found.reason_at(1, 1)


def test_the_lowest_frequency_over_an_axis_is_that_of_its_cells(robot):
    found = parflex.frequency_map(robot, AXES, modes=2)
    lowest = found.lowest_over(["21"])
    assert list(lowest.axes) == ["11"] and lowest.status.tolist() == [0] * 5
    assert np.array_equal(lowest.frequencies, found.frequencies.min(axis=1))
    where = found.frequencies[..., 0].argmin(axis=1)
    assert np.array_equal(lowest.at["21"], found.axes["21"][where])
    for names, said in ((["31"], "not an axis"), (["11", "21"], "must remain"), ([], "must go")):
        with pytest.raises(InputError, match=said):
            found.lowest_over(names)




def test_the_verb_maps_responses_and_the_lowest_over_an_axis(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["map", "dualemps", "--over", "11=-0.1:0.1:3,21=-0.1:0.1:2", "--modes", "1", "--out", "m.npz", "--json"]
    more = ["--response", "stiffness:x", "--no-csv", "--threads", "1", "--figure", "m.svg"]
    code, out, _ = run(capsys, *words, *more)
    answer = json.loads(out)
    span = answer["responses"]["stiffness:x"]
    assert code == 0 and answer["csv"] is None and span["lowest"] < span["highest"] and span["unit"] == "N/m"
    assert {path.name for path in tmp_path.iterdir()} == {"m.npz", "m.svg"}
    assert "stiffness:x (N/m)" in (tmp_path / "m.svg").read_text(encoding="utf-8")
    code, out, _ = run(capsys, *words, "--response", "stiffness:x", "--lowest-over", "21")
    lowest = json.loads(out)["lowest"]
    assert code == 0 and lowest["frequency_hz"] == answer["lowest_hz"] and set(lowest["at"]) == {"11", "21"}
    for bad in (["--lowest-over", "31"], ["--lowest-over", "11,21"], ["--response", "loudness"], ["--threads", "0"]):
        code, out, err = run(capsys, *words, *bad)
        assert code == 2 and len(err.splitlines()) == 1, err


def test_positions_of_a_map_have_colours_in_the_viewer(tmp_path, capsys):
    from parflex.view.figures.style import STRESSES
    from parflex.view.scene.map_colours import map_points

    robot, out = parflex.load("3rrr-flexible"), tmp_path / "m.npz"
    over = [("x", -0.05, 5.0, 3), ("y", -0.05, 0.05, 2), ("theta", -0.1, 0.1, 2)]
    found = parflex.frequency_map(robot, over, modes=1, out=out).lowest_over(["theta"])
    shown = map_points(robot, out)
    assert shown.points[:, :2].tolist() == [[-0.05, -0.05], [-0.05, 0.05]]  # the others are out of reach
    values = found.frequencies[0, :, 0]
    assert (shown.lowest, shown.highest) == (values.min(), values.max())
    assert shown.colours[values.argmax()].tolist() == list(STRESSES[-1])
    assert shown.colours[values.argmin()].tolist() == list(STRESSES[0])
    with pytest.raises(InputError, match="the map is of '3rrr-flexible'"):
        map_points(parflex.load("3rrr"), out)
    page = tmp_path / "m.html"
    code, _, err = run(capsys, "view", "3rrr-flexible", "--map", str(out), "--record", str(page))
    assert code == 0 and page.stat().st_size > 1000, err
    code, _, err = run(capsys, "view", "3rrr-flexible", "--map", str(page), "--record", str(tmp_path / "n.html"))
    assert code == 2 and "not a map" in err


def test_reduced_beams_of_many_designs_are_made_one_by_one_and_right():
    """Numbers that the reading of many designs does not follow are named, and no other error is taken for it."""
    settings = {"legs.frame.2.beam.reduce": {"error": 0.01, "band": 300}, "legs.frame.2.beam.elements": 4}
    robot = parflex.load("3rrr-flexible", settings=settings)
    designs = {"sections.rod.diameter": [0.02, 0.022]}
    many = parflex.many_frequencies(robot, ["x", "y"], np.zeros((2, 2)), modes=2, designs=designs)
    found = parflex.many_responses(robot, ["x", "y"], np.zeros((2, 2)), ["frequency:2"], designs=designs)
    assert found.method == "one by one" and "one by one" in found.reason and many.fallbacks == 2
    for k, diameter in enumerate(designs["sections.rod.diameter"]):
        one = parflex.load("3rrr-flexible", settings=settings | {"sections.rod.diameter": diameter})
        expected = parflex.natural_frequencies(one, {"x": 0.0, "y": 0.0}, 2).frequencies
        assert many.frequencies[k] == pytest.approx(expected, rel=1e-9)
        assert found["frequency:2"][k] == pytest.approx(expected[1], rel=1e-9)


