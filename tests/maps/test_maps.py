"""Frequency maps: files that survive interruptions, the command line, lowest values, elements that are too few."""

import json
import shutil
import warnings

import numpy as np
import pytest
from support.command_line import answered, refused, run
from support.maps import small_chunks

import parflex

AXES = [("11", -0.05, 0.05, 5), ("21", -0.05, 0.05, 4)]


@pytest.fixture(scope="module")
def robot():
    return parflex.load("dualemps")


def test_a_map_that_was_killed_goes_on_to_the_same_bits_by_any_number_of_threads(robot, tmp_path, monkeypatch):
    small_chunks(monkeypatch, 6)
    out, left = tmp_path / "map.npz", tmp_path / "left.npz"
    asked = {"modes": 2, "responses": ["stiffness:x", "shape:1"]}

    def killed(done: int, total: int) -> None:
        if done == 18 and out.exists():  # two chunks are on disk, one is lost
            shutil.copy(out, left)

    whole = parflex.frequency_map(robot, AXES, out=out, threads=1, progress=killed, **asked)
    again = parflex.frequency_map(robot, AXES, out=left, threads=2, **asked)
    assert again.computed == 8 and not again.interrupted
    plain = parflex.frequency_map(robot, AXES, threads=2, **asked)
    for other in (again, plain):
        assert np.array_equal(other.frequencies, whole.frequencies)
        assert all(np.array_equal(other.responses[name], values) for name, values in whole.responses.items())
    with np.load(left) as one, np.load(out) as two:
        assert sorted(one.files) == sorted(two.files)
        assert all(np.array_equal(one[name], two[name], equal_nan=one[name].dtype.kind == "f") for name in one.files)


def test_chunks_that_were_finished_before_a_kill_are_not_computed_again(robot, tmp_path, monkeypatch):
    small_chunks(monkeypatch, 6, save_every=1e9)
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
    assert np.array_equal(again.frequencies, parflex.frequency_map(robot, AXES, threads=1, modes=2).frequencies)


def test_responses_of_a_map_are_those_of_many_poses_and_stand_in_both_files(robot, tmp_path):
    out, asked = tmp_path / "map.npz", ["stiffness:x", "deflection"]
    load = {robot.tree.end_effector: [10.0, 0.0, 0.0]}
    result = parflex.frequency_map(robot, AXES, modes=1, out=out, responses=asked, wrench=load)
    poses = np.array([[x, y] for x in result.axes["11"] for y in result.axes["21"]])
    many = parflex.many_responses(robot, ["11", "21"], poses, [*asked, "frequency:1"], wrench=load)
    assert result.responses["stiffness:x"].ravel() == pytest.approx(many["stiffness:x"], rel=1e-9)
    assert result.responses["deflection"].reshape(-1, 6) == pytest.approx(many["deflection"], rel=1e-9, abs=1e-15)
    assert result.frequencies.ravel() == pytest.approx(many["frequency:1"], rel=1e-9)
    rows = (tmp_path / "map.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("11,21,state,f1_hz,stiffness:x,deflection.x,") and len(rows) == 21
    assert float(rows[1].split(",")[4]) == result.responses["stiffness:x"][0, 0]
    with np.load(out) as stored:
        assert np.array_equal(stored["stiffness_x"], result.responses["stiffness:x"])


def test_a_file_of_another_map_is_neither_continued_nor_replaced(robot, tmp_path):
    out, axis = tmp_path / "map.npz", AXES[:1]
    parflex.frequency_map(robot, axis, modes=2, out=out)
    before, heavy = out.read_bytes(), parflex.load("dualemps", payload=(5.0, 0, 0, 0))
    load = {robot.tree.end_effector: [1.0, 0.0, 0.0]}
    changes = ({"modes": 3}, {"fixed": {"21": 0.01}}, {"lock": ["11"]}, {"wrench": load})
    for of, change in (*((robot, change) for change in changes), (heavy, {})):
        with pytest.raises(parflex.InputError, match="other settings"):
            parflex.frequency_map(of, axis, **{"modes": 2, "out": out} | change)
    assert out.read_bytes() == before
    with np.load(out) as stored:
        content = dict(stored)
    settings = json.loads(str(content["settings"]))
    del settings["format"]
    np.savez(out, **content | {"settings": np.array(json.dumps(settings))})
    with pytest.raises(parflex.InputError, match="an earlier version wrote this map"):
        parflex.frequency_map(robot, axis, modes=2, out=out)
    out.write_bytes(b"something else")
    with pytest.raises(parflex.InputError, match="not a map"):
        parflex.frequency_map(robot, axis, modes=2, out=out)


def test_cells_without_frequencies_have_reasons_and_the_others_colours_in_the_viewer(tmp_path, capsys):
    from parflex.view.colours import map_points
    from parflex.view.style import STRESSES

    flexible, out = parflex.load("3rrr-flexible"), tmp_path / "m.npz"
    over = [("x", -0.05, 5.0, 3), ("y", -0.05, 0.05, 2), ("theta", -0.1, 0.1, 2)]
    result = parflex.frequency_map(flexible, over, modes=1, out=out)
    assert (result.status[1:] == 1).all() and "cannot be reached" in result.reason_at(1, 0, 0)
    again = parflex.frequency_map(flexible, over, modes=1, out=out)
    assert again.computed == 0 and again.reason_at(1, 1, 1) == result.reason_at(1, 1, 1)
    values, shown = result.lowest_over(["theta"]).frequencies[0, :, 0], map_points(flexible, out)
    assert shown.points[:, :2].tolist() == [[-0.05, -0.05], [-0.05, 0.05]]  # the others are out of reach
    assert (shown.lowest, shown.highest) == (values.min(), values.max())
    assert shown.colours[values.argmax()].tolist() == list(STRESSES[-1])
    assert shown.colours[values.argmin()].tolist() == list(STRESSES[0])
    with pytest.raises(parflex.InputError, match="the map is of '3rrr-flexible'"):
        map_points(parflex.load("3rrr"), out)
    page = tmp_path / "m.html"
    answered(capsys, "view", "3rrr-flexible", "--map", out, "--record", page)
    assert page.stat().st_size > 1000
    told = refused(capsys, "view", "3rrr-flexible", "--map", page, "--record", tmp_path / "n.html")
    assert "not a map" in told["message"]


def test_the_lowest_frequency_over_an_axis_is_that_of_its_cells(robot):
    result = parflex.frequency_map(robot, AXES, modes=2)
    lowest = result.lowest_over(["21"])
    assert list(lowest.axes) == ["11"] and lowest.status.tolist() == [0] * 5
    assert np.array_equal(lowest.frequencies, result.frequencies.min(axis=1))
    assert np.array_equal(lowest.at["21"], result.axes["21"][result.frequencies[..., 0].argmin(axis=1)])
    for names, words in ((["31"], "not an axis"), (["11", "21"], "must remain"), ([], "must go")):
        with pytest.raises(parflex.InputError, match=words):
            result.lowest_over(names)


def test_reduced_beams_of_many_designs_are_made_one_by_one_and_right():
    settings = {"legs.frame.2.beam.reduce": {"error": 0.01, "band": 300}, "legs.frame.2.beam.elements": 4}
    reduced = parflex.load("3rrr-flexible", settings=settings)
    designs = {"sections.rod.diameter": [0.02, 0.022]}
    many = parflex.many_frequencies(reduced, ["x", "y"], np.zeros((2, 2)), modes=2, designs=designs)
    result = parflex.many_responses(reduced, ["x", "y"], np.zeros((2, 2)), ["frequency:2"], designs=designs)
    assert result.method == "one by one" and "one by one" in result.reason and many.fallbacks == 2
    for k, diameter in enumerate(designs["sections.rod.diameter"]):
        one = parflex.load("3rrr-flexible", settings=settings | {"sections.rod.diameter": diameter})
        expected = parflex.natural_frequencies(one, {"x": 0.0, "y": 0.0}, 2).frequencies
        assert many.frequencies[k] == pytest.approx(expected, rel=1e-9)
        assert result["frequency:2"][k] == pytest.approx(expected[1], rel=1e-9)


@pytest.mark.verify
def test_the_verb_writes_map_table_and_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["map", "dualemps", "--over", "11=-0.1:0.1:3,21=-0.1:0.1:2", "--modes", "1"]
    answer = answered(capsys, *words, "--out", "m.npz", "--figure", "m.svg")
    assert answer["cells"] == answer["ok"] == 6 and not answer["interrupted"] and answer["method"] == "full"
    assert {"m.npz", "m.csv", "m.svg"} == {path.name for path in tmp_path.iterdir()}
    assert answered(capsys, *words, "--out", "m.npz")["computed"] == 0
    words += ["--out", "k.npz", "--response", "stiffness:x", "--no-csv", "--threads", "1", "--figure", "k.svg"]
    answer = answered(capsys, *words)
    span = answer["responses"]["stiffness:x"]
    assert answer["csv"] is None and span["lowest"] < span["highest"] and span["unit"] == "N/m"
    assert "stiffness:x (N/m)" in (tmp_path / "k.svg").read_text(encoding="utf-8")
    lowest = answered(capsys, *words, "--lowest-over", "21")["lowest"]
    assert lowest["frequency_hz"] == answer["lowest_hz"] and set(lowest["at"]) == {"11", "21"}
    for bad in (["--lowest-over", "31"], ["--response", "loudness"], ["--out", "new.npz", "--threads", "0"]):
        refused(capsys, *words, *bad)


@pytest.mark.parametrize(
    ("over", "more", "words"),
    [
        ("x", [], "KEY=FROM:TO:COUNT"),
        ("x=0:one:3", [], "not a number"),
        ("x=0:1:-3", [], "at least one"),
        ("x=0:1:2", ["--fixed", "x=1"], "twice"),
        ("nonsense=0:1:2", [], "nonsense"),
        ("x=0:1:100000,y=0:1:100000", [], "cells"),
        ("x=0:0.01:2", ["--modes", "1000"], "modes"),
        ("x=0:0.01:2", ["--out", "nowhere/m.npz"], "written"),
    ],
)
def test_bad_input_of_the_verb_is_refused_and_nothing_written(over, more, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(capsys, "map", "navaro", "--over", over, "--out", "m.npz", *more)
    assert words in run(capsys, "map", "navaro", "--over", over, "--out", "m.npz", *more).err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("modes", [0, 1.5, 91])
def test_numbers_of_modes_that_cannot_be_are_refused(robot, modes):
    for ask in (
        lambda: parflex.frequency_map(robot, [("11", 0.0, 0.05, 2)], modes=modes),
        lambda: parflex.many_frequencies(robot, ["11", "21"], np.zeros((1, 2)), modes=modes),
        lambda: parflex.track_modes(robot, [{"11": 0.0}, {"11": 0.01}], modes=modes),
    ):
        with pytest.raises(parflex.InputError, match="modes"):
            ask()
    with pytest.raises(parflex.InputError, match="finest"):
        parflex.track_modes(robot, [{"11": 0.0}, {"11": 0.1}], modes=2, finest=0.0)


POSES = np.array([(a, b) for a in (-0.05, 0.05) for b in (-0.04, 0.05)])


def warned(ask) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    return [str(item.message) for item in caught if "too high" in str(item.message)]


@pytest.mark.parametrize("kind", ["many", "map", "responses", "equilibrium"])
def test_a_map_warns_as_the_single_answer_in_its_worst_cell(robot, kind):
    asked = {
        "many": lambda: parflex.many_frequencies(robot, ["11", "21"], POSES, modes=4),
        "map": lambda: parflex.frequency_map(robot, [("11", -0.05, 0.05, 2), ("21", -0.04, 0.05, 2)], modes=4),
        "responses": lambda: parflex.many_responses(robot, ["11", "21"], POSES, ["frequency:4"]),
        "equilibrium": lambda: parflex.many_frequencies(robot, ["11", "21"], POSES, modes=4, about="equilibrium"),
    }
    single = [parflex.natural_frequencies(robot, {"11": a, "21": b}, 4) for a, b in POSES]
    worst = int(np.argmax([answer.frequencies.max() for answer in single]))
    (warning,) = warned(asked[kind])  # once
    assert warning.endswith(single[worst].too_few[0])
    assert f"11 = {POSES[worst, 0]:.4g}, 21 = {POSES[worst, 1]:.4g}" in warning


@pytest.mark.parametrize(("elements", "modes"), [(1, 2), (4, 4), (1, 8), (3, 14)])
def test_a_map_warns_where_estimates_exceed_the_limit(elements, modes):
    of = parflex.load("dualemps", elements=elements)
    excess = parflex.natural_frequencies(of, {"11": 0.0, "21": 0.0}, modes).excess.max()
    warning = warned(lambda: parflex.many_frequencies(of, ["11", "21"], np.zeros((1, 2)), modes=modes))
    assert bool(warning) == (excess > 0.05)
