"""Frequency maps: files, interruptions and the command line; modes of all poses against matrices of linear models."""

import json
import shutil
import warnings

import numpy as np
import pytest
import scipy.linalg
from support.command_line import answered, refused, run
from support.maps import ModeFinder, home_matrices, locked_robot, lowest, number_at, pose_solver, small_chunks
from support.robots import any_robot

import parflex
from parflex.diagnostics import with_code
from parflex.maps.mode_verification import error_bound

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


def test_chunks_that_were_finished_before_an_error_are_not_computed_again(robot, tmp_path, monkeypatch):
    small_chunks(monkeypatch, 6, save_every=1e9)
    out, seen = tmp_path / "map.npz", []

    def killed(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 2:
            raise SystemExit

    with pytest.raises(SystemExit):
        parflex.frequency_map(robot, AXES, out=out, threads=1, modes=2, progress=killed)
    assert [path.name for path in tmp_path.iterdir()] == ["map.npz"]
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
    assert (result.status[1:] == 1).all() and "cannot be reached" in result.reasons[1, 0, 0]
    again = parflex.frequency_map(flexible, over, modes=1, out=out)
    assert again.computed == 0 and np.array_equal(again.reasons, result.reasons)
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
    assert answer["cells"] == answer["ok"] == 6 and not answer["interrupted"] and answer["method"] == "together"
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
    (few,) = with_code(single[worst].diagnostics, "few-elements")
    assert warning.endswith(few.text)
    assert f"11 = {POSES[worst, 0]:.4g}, 21 = {POSES[worst, 1]:.4g}" in warning


@pytest.mark.parametrize(("elements", "modes"), [(1, 2), (4, 4), (1, 8), (3, 14)])
def test_a_map_warns_where_estimates_exceed_the_limit(elements, modes):
    of = parflex.load("dualemps", elements=elements)
    excess = parflex.natural_frequencies(of, {"11": 0.0, "21": 0.0}, modes).excess.max()
    warning = warned(lambda: parflex.many_frequencies(of, ["11", "21"], np.zeros((1, 2)), modes=modes))
    assert bool(warning) == (excess > 0.05)


SPACE = ["x", "y", "z", "rx", "ry", "rz"]
HOME = [0.25, 0.433, 1.0, 0, 0, 0]  # of the Gough-Stewart robots
AUDITED = {  # coordinates, the middle of their range, how far it goes, modes, keys of designs
    "navaro": (["x", "y", "rz"], [0, 0, -0.7], 0.05, 6, ["constants.bar", "constants.arm"]),
    "navaro-refined": (["x", "y", "rz"], [0, 0, 0], 0.05, 4, []),
    "dualemps": (["11", "21"], [0, 0], 0.2, 4, []),
    "gough-stewart-beams": (
        SPACE, HOME, 0.1, 6, ["constants.rod", "sections.rod.diameter", "materials.steel.density"]
    ),
    "gough-stewart-elastic": (SPACE, HOME, 0.1, 10, ["sections.rod.diameter"]),  # mode 7 is the same at all poses
    "gough-stewart-flexible": (SPACE, HOME, 0.1, 6, []),
    "3rrr-flexible": (["x", "y", "theta"], [0, 0, 0], 0.05, 4, []),
    "three-beam-legs": (["leg1.upper", "leg1.lower", "leg2.upper", "leg3.lower"], None, 0.3, 6, []),
    "slider-crank-beam": (["crank"], [0.8], 0.5, 3, ["constants.l2"]),
    "rolled-beams": ([], [], 0.0, 4, ["sections.flat.y"]),
    "pendulum-beam": ([], [], 0.0, 3, []),
}  # fmt: skip
SHAPED = {"navaro": 6, "3rrr-flexible": 3, "gough-stewart-beams": 6, "rolled-beams": 2, "dualemps": 3}
FULL = 100  # rows of a call that are solved by linear models


def audit(name: str, count: int, modes: int | None = None) -> tuple[parflex.ManyFrequencies, np.ndarray, np.ndarray]:
    """Modes at random poses with random designs by steps, and frequencies and shapes by linear models."""
    names, middle, spread, usual, keys = AUDITED[name]
    robot, rng = any_robot(name), np.random.default_rng(5)
    designs = {key: number_at(robot, key) * rng.uniform(0.9, 1.1, count) for key in keys}
    if middle is None:
        middle = robot.home[[robot.coordinates.index(word) for word in names]]
    poses = np.array(middle, dtype=float) + spread * rng.uniform(-1, 1, (count, len(names)))

    def solved(part: slice):
        own = {key: values[part] for key, values in designs.items()}
        words = {"shapes": modes is not None, "designs": own or None, "about": "undeformed"}
        return parflex.many_frequencies(robot, names, poses[part], modes or usual, **words)

    steps, parts = solved(slice(None)), [solved(slice(k, k + FULL)) for k in range(0, count, FULL)]
    assert steps.method == "steps" and {part.method for part in parts} == {"together"}
    shapes = [part.shapes for part in parts if part.shapes is not None]
    return steps, np.concatenate([part.frequencies for part in parts]), np.concatenate(shapes) if shapes else None


@pytest.mark.verify
@pytest.mark.parametrize("name", list(AUDITED))
def test_every_kind_of_robot_is_answered_as_by_linear_models(name, figure):
    steps, frequencies, _ = audit(name, 200)
    reached = steps.status == 0
    assert reached.sum() > 100 and steps.fallbacks < 0.01 * len(reached)
    error = float(np.abs(steps.frequencies - frequencies)[reached].max())
    figure(f"{name}: largest error of frequencies in Hz", error, 1e-6)
    assert error < 1e-6  # steps end at 1e-10, matrices have a condition of 1e8


@pytest.mark.verify
@pytest.mark.parametrize("name", list(AUDITED))
def test_ten_thousand_poses_of_every_kind_of_robot_are_answered_as_by_linear_models(name, figure):
    steps, frequencies, _ = audit(name, 10_000)
    error = float(np.nanmax(np.abs(steps.frequencies - frequencies)))
    figure(f"{name}: largest error of frequencies in Hz, 10 000 poses", error, 1e-6)
    assert error < 1e-6 and steps.fallbacks < 100  # as above


@pytest.mark.few("3rrr-flexible")
@pytest.mark.parametrize("name", list(SHAPED))
def test_shapes_differ_from_those_of_linear_models_by_rounding_over_gaps(name):
    steps, frequencies, shapes = audit(name, 200, SHAPED[name])
    compared = 0
    for values, mine, exact in zip(frequencies**2, steps.shapes, shapes, strict=True):
        for mode in np.flatnonzero(np.isfinite(values)):
            gap = np.abs(np.delete(values, mode) / values[mode] - 1).min()
            # rounding of LAPACK is 1e-16 of the highest eigenvalue, 1e6 times these; the next mode may be near, too
            off = np.abs(mine[mode] - exact[mode]).max() / np.abs(exact).max()
            if mode < len(values) - 1 and gap > 1e-3:
                assert off < 1e-6 + 1e-9 / gap
                compared += 1
    assert compared > 100


def test_shapes_from_whole_matrices_have_a_reason():
    """Its fourth mode lies above the lowest one of its links held at both ends: counts alone find it."""
    robot, poses = parflex.load("3rrr-flexible"), np.random.default_rng(3).uniform(-0.05, 0.05, (200, 3))
    mass = {"platform.inertia.mass": np.full(200, number_at(robot, "platform.inertia.mass"))}
    for designs in (None, mass):
        result = parflex.many_frequencies(robot, ["x", "y", "theta"], poses, 4, shapes=True, designs=designs)
        assert result.method == "steps" and result.fallbacks == 200 and "shapes of some poses" in result.reason
        few = parflex.many_frequencies(robot, ["x", "y", "theta"], poses, 3, shapes=True, designs=designs)
        assert few.fallbacks == 0 and few.reason == ""


def test_modes_of_condensed_matrices_are_within_the_bound():
    """Theory (72) on matrices without a robot: the pencil at a shift has its mode beside that of the whole matrices."""
    rng, share = np.random.default_rng(11), []
    for _ in range(20):
        K, M = (x @ x.T + 2.0 * np.eye(8) for x in rng.uniform(-1, 1, (2, 8, 8)))
        mode, pole = (scipy.linalg.eigh(k, m, eigvals_only=True)[0] for k, m in ((K, M), (K[5:, 5:], M[5:, 5:])))
        for off in (-3e-2, -1e-3, 1e-3, 3e-2):
            shift = mode - off * (pole - mode)
            D = K - shift * M
            X = np.concatenate([np.eye(5), -np.linalg.solve(D[5:, 5:], D[5:, :5])])
            beside = scipy.linalg.eigh(X.T @ D @ X, X.T @ M @ X, eigvals_only=True)
            rho = shift + beside[np.argmin(np.abs(beside))]
            bound = error_bound(rho, shift, 0.0, pole)
            assert abs(mode - rho) <= bound + 1e-12 * mode  # rounding
            share.append(abs(mode - rho) / bound)
    assert max(share) > 0.05  # it is not far too large either


@pytest.mark.parametrize("elements", [1, 3, 4])
def test_counts_and_modes_of_condensed_chains_are_those_of_the_whole_matrices(elements):
    robot = parflex.load("3rrr-flexible", elements=elements)
    locked = locked_robot(robot, "actuators")
    K, M = home_matrices(robot)
    finder, home = ModeFinder(locked, 5 if elements > 1 else 3), pose_solver(robot, ["x", "y"], [0, 0]).geometry.home
    result = finder(home[None])
    assert result.ok.all() and finder.programs.condensed
    assert result.x[0] == pytest.approx(lowest(K, M, 0, len(result.x[0])), rel=1e-9)  # condition of the matrices 1e7
    if elements == 1:
        values = scipy.linalg.eigh(K, M, eigvals_only=True)
        shifts = np.sqrt(values[1:] * values[:-1])[np.diff(values) > 1e-6 * values[1:]]
        entries = np.repeat(finder._entries(home[None], None), len(shifts), axis=0)
        assert finder.programs.unknowns == len(values)
        assert finder._count(entries, shifts).tolist() == [int((values < s).sum()) for s in shifts]


def test_positions_by_the_compiled_loop_are_those_of_single_poses():
    robot, names = parflex.load("3rrr"), ["x", "y", "theta"]
    poses = np.random.default_rng(8).uniform(-0.12, 0.12, (100, 3))
    plain, fast = (pose_solver(robot, names, poses[0], compiled=compiled)(poses) for compiled in (False, True))
    good = np.flatnonzero(fast.status == 0)
    assert fast.status.tolist() == plain.status.tolist() and len(good) > 50
    assert fast.q[good] == pytest.approx(plain.q[good], abs=1e-12)  # both end at rounding
    for row in good[:3]:
        single = robot.assemble(dict(zip(names, poses[row].tolist(), strict=True)))
        assert np.abs(np.exp(1j * fast.q[row]) - np.exp(1j * single)).max() < 1e-8  # whole turns aside
