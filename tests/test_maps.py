"""Frequencies at many poses: compiled steps against the oracle, positions against closed forms, maps on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.oracles.navaro_frame import Navaro, directions

import parflex
from parflex import InputError, frequency_map, many_frequencies, natural_frequencies
from parflex.cli.main import main
from parflex.maps import frequencies
from parflex.maps.engine.mode_finder import ModeFinder
from parflex.maps.frequencies import FrequencySolver
from parflex.maps.grid import OK, UNREACHABLE, WAITING
from parflex.maps.positions import PositionSolver
from parflex.maps.rows import frequency_rows


@pytest.fixture(scope="module")
def navaro():
    return parflex.load("navaro")


def random_poses(count: int) -> np.ndarray:
    """Poses of the robot that it can reach, with any orientation."""
    rng, poses = np.random.default_rng(3), []
    while len(poses) < count:
        pose = np.array([*rng.uniform(-0.35, 0.35, 2), rng.uniform(-np.pi, np.pi)])
        if np.isfinite(directions(*pose)).all():
            poses.append(pose)
    return np.array(poses)


def test_compiled_steps_equal_the_finite_element_model_at_random_poses(navaro, figure):
    poses = random_poses(700)
    found = many_frequencies(navaro, ["x", "y", "rz"], poses)
    assert found.solver.finder is not None, found.solver.why_not
    reached = found.status == OK
    assert reached.mean() > 0.995
    oracle = Navaro()
    expected = np.array([oracle.modes(*pose)[0] for pose in poses[reached][:150]])
    error = np.abs(found.frequencies[reached][:150] - expected).max()
    figure("frequencies by compiled steps, largest error in Hz", float(error), 2e-7)
    assert error < 2e-7  # proved to 5e-10 of 120 Hz; the full problem has a condition of 1e8
    assert found.solver.solved_in_full == 0


def together(frequencies: np.ndarray) -> list[slice]:
    """Modes one by one, those of equal frequency together."""
    cuts = [0, *(np.flatnonzero(np.diff(frequencies) > 1e-5 * frequencies[1:]) + 1), len(frequencies)]
    return [slice(a, b) for a, b in pairwise(cuts)]


def outer(twists: np.ndarray) -> np.ndarray:
    """What the twists of modes make up together, whatever their signs, and the basis of equal ones."""
    return twists.T @ twists


@pytest.mark.parametrize("count", [600, 8])
def test_shapes_at_the_platform_are_those_of_the_finite_element_model(navaro, figure, count):
    """By steps and from whole matrices; in the middle the robot looks alike from three sides: modes are double."""
    poses = random_poses(count)
    poses[:2] = (0, 0, -1.0), (0, 0, 0.3)
    found = many_frequencies(navaro, ["x", "y", "rz"], poses, shapes=True)
    assert (found.solver.finder is not None) == (count > 500)
    assert found.solver.solved_in_full == (2 if count > 500 else 0)  # shapes of double modes come from whole matrices
    oracle, error, double = Navaro(), 0.0, 0
    for pose, status, twists in zip(poses[:120], found.status, found.shapes, strict=False):
        frequencies, vectors = oracle.modes(*pose)
        for modes in together(frequencies) if status == OK else []:
            expected = outer(vectors[-6:, modes].T)
            error = max(error, float(np.abs(outer(twists[modes]) - expected).max() / np.abs(expected).max()))
            double += modes.stop - modes.start == 2
    figure(f"twists of the platform in modes, relative, {count} poses", error, 1e-6)
    assert (
        error < 1e-6
    )  # modes are told apart if 1e-5 of x lies between them; shapes know others to 1e-9 / 1e-5 at worst
    assert double >= 2




def test_steps_that_disagree_with_full_solutions_are_given_up(navaro, monkeypatch):
    poses = random_poses(200)
    found = many_frequencies(navaro, ["x", "y", "rz"], poses)
    solver, placed = found.solver, found.status == OK
    q = PositionSolver(solver.geometry, ["x", "y", "rz"], poses[0].tolist())(poses).q[placed]
    assert solver.finder is not None and solver.largest_difference < 2e-7  # as above
    right = ModeFinder.__call__
    monkeypatch.setattr(
        ModeFinder, "__call__", lambda self, q, **more: replace(right(self, q), x=1.1 * right(self, q).x)
    )
    other = FrequencySolver(solver.geometry, 6)
    assert np.abs(other(q[:200]) - found.frequencies[placed][:200]).max() < 2e-7  # as above
    assert other.finder is None and "disagree" in other.why_not


@pytest.mark.parametrize(
    ("name", "names", "spread"),
    [("navaro", ["x", "y", "rz"], 0.05), ("dualemps", ["11", "21"], 0.1), ("navaro-refined", ["x", "y", "rz"], 0.05)],
)
def test_node_coordinates_give_the_frequencies_of_the_general_reduction(name, names, spread):
    robot = parflex.load(name)
    poses = np.random.default_rng(1).uniform(-spread, spread, (4, len(names)))
    found = many_frequencies(robot, names, poses, modes=5)
    assert found.solver.assembly is not None
    for pose, got in zip(poses, found.frequencies, strict=True):
        expected = natural_frequencies(robot, dict(zip(names, pose.tolist(), strict=True)), 5).frequencies
        assert got == pytest.approx(expected, rel=1e-8)  # rounding of two eigenvalue problems of condition 1e8


def test_unreachable_cells_are_marked_and_reachable_ones_found(navaro):
    found = frequency_map(navaro, [("x", -0.5, 0.5, 15), ("y", -0.5, 0.5, 15)], {"rz": -1.0}, modes=2)
    x, y = found.axes.values()
    possible = np.array([[np.isfinite(directions(a, b, -1.0)).all() for b in y] for a in x])
    assert ((found.status == OK) == possible).all()
    assert np.isnan(found.frequencies[found.status == UNREACHABLE]).all()
    assert np.isfinite(found.frequencies[found.status == OK]).all()


def test_a_robot_that_cannot_vibrate_is_refused():
    with pytest.raises(InputError):
        FrequencySolver(frequencies.Geometry(parflex.load("four-bar")), 1)


def test_more_modes_than_there_are_are_refused(navaro):
    with pytest.raises(InputError, match="the robot has 90"):
        many_frequencies(navaro, ["x"], np.zeros((1, 1)), modes=91)


# -- on disk -------------------------------------------------------------------------------------------





def test_a_map_with_other_settings_is_refused(navaro, tmp_path):
    out = tmp_path / "map.npz"
    frequency_map(navaro, [("x", 0, 0.05, 2)], modes=2, out=out)
    before = out.read_bytes()
    for change in ({"modes": 3}, {"fixed": {"y": 0.01}}, {"lock": ["leg1.1"]}):
        with pytest.raises(InputError, match="other settings"):
            frequency_map(navaro, [("x", 0, 0.05, 2)], **{"modes": 2, "out": out} | change)
    out.write_bytes(b"something else")
    with pytest.raises(InputError, match="not a map"):
        frequency_map(navaro, [("x", 0, 0.05, 2)], modes=2, out=out)
    assert before




def test_the_verb_writes_map_table_and_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("map", "dualemps", "--over", "11=-0.1:0.1:3,21=-0.1:0.1:3", "--modes", "3", "--out", "m.npz", "--json")
    code, out, _ = run(capsys, *words, "--figure", "m.svg")
    answer = json.loads(out)
    assert code == 0 and answer["cells"] == answer["ok"] == 9 and not answer["interrupted"]
    assert answer["lowest_hz"] <= answer["highest_hz"] and answer["method"] == "full"
    assert (tmp_path / "m.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert {"m.npz", "m.csv", "m.svg"} == {path.name for path in tmp_path.iterdir()}
    code, out, _ = run(capsys, *words)
    assert code == 0 and json.loads(out)["computed"] == 0


@pytest.mark.parametrize(
    ("over", "more", "said"),
    [
        ("x", [], "KEY=FROM:TO:COUNT"),
        ("x=0:one:3", [], "not a number"),
        ("x=0:1:-3", [], "at least one"),
        ("x=0:1:2", ["--fixed", "x=1"], "twice"),
        ("nonsense=0:1:2", [], "nonsense"),
        ("x=0:1:100000,y=0:1:100000", [], "cells"),
        ("x=0:0.01:2", ["--modes", "1000"], "modes"),
        ("x=0:0.01:2", ["--out", "nowhere/m.npz"], "written"),
        ("x=0:0.01:2", ["--out", "m.csv"], "is not a map file"),
    ],
)
def test_bad_input_of_the_verb_is_one_sentence(over, more, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "map", "navaro", "--over", over, "--out", "m.npz", "--json", *more)
    assert code == 2, err
    assert said in err and len(err.splitlines()) == 1
    assert json.loads(out)["error"]["message"]
    assert not list(tmp_path.iterdir())




@pytest.mark.parametrize("modes", [0, 1.5, ])
def test_numbers_of_modes_that_cannot_be_are_refused_in_words(modes):
    robot = parflex.load("dualemps")
    for ask in (
        lambda: parflex.frequency_map(robot, [("11", 0.0, 0.05, 2)], modes=modes),
        lambda: parflex.many_frequencies(robot, ["11", "21"], np.zeros((1, 2)), modes=modes),
        lambda: parflex.track_modes(robot, ["home", {"11": 0.01}], modes=modes),
        lambda: parflex.natural_frequencies(robot, modes=modes),
    ):
        with pytest.raises(InputError, match="modes"):
            ask()


def test_a_finest_share_of_nothing_is_refused_instead_of_looked_for_without_end():
    with pytest.raises(InputError, match="finest"):
        parflex.track_modes(parflex.load("dualemps"), ["home", {"11": 0.1}], modes=2, finest=0.0)
