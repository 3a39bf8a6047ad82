"""Responses at many poses and designs: against the functions of single poses, however rows are cut and ordered."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.maps.responses import response_rows
from parflex.maps.rows import frequency_rows
from parflex.maps.rows.row_chunks import chunks_of, in_order

DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")


@pytest.fixture(scope="module")
def robots():
    return {name: parflex.load(name) for name in ("gough-stewart-beams", "dualemps", "3rrr-flexible")}


def poses_of(robot, count: int, seed: int = 2) -> tuple[list[str], np.ndarray]:
    """Motor positions around home; of six legs the pose of the platform, from which each leg follows by itself."""
    if robot.name == "gough-stewart-beams":
        shift = np.random.default_rng(seed).uniform(-0.05, 0.05, (count, 6))
        return list(DIRECTIONS), np.array([0.25, 0.433, 1.0, 0.0, 0.0, 0.0]) + shift
    names = list(robot.actuated_names)
    q = robot.home[[robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]]
    spread = 0.03 * robot.tree.rate_units[list(robot.actuated)]
    return names, q + np.random.default_rng(seed).uniform(-1, 1, (count, len(names))) * spread


@pytest.mark.few
@pytest.mark.parametrize("name", ["gough-stewart-beams", "dualemps", "3rrr-flexible"])
def test_responses_of_many_poses_are_those_of_single_ones(robots, name):
    robot = robots[name]
    names, poses = poses_of(robot, 3)
    tip = robot.tree.end_effector
    asked = ["frequency:1", "frequency:4", "damping:2", f"stiffness:{tip}", f"compliance:{tip}", f"deflection:{tip}"]
    found = parflex.many_responses(robot, names, poses, [*asked, "strain:1", "stiffness:x", "deflection:rz"])
    assert found.status.tolist() == [0, 0, 0] and found.fallbacks == 0 and found.method == "together"
    for k, pose in enumerate(poses):
        at = dict(zip(names, pose.tolist(), strict=True))
        modes = parflex.natural_frequencies(robot, at, modes=4)
        frame = parflex.cartesian_stiffness(robot, at)
        bent = parflex.deflection(robot, at, about="undeformed")
        # rounding of K, whose condition number is up to 1e8 before it is scaled
        assert found["frequency:4"][k] == pytest.approx(modes.frequencies[3], rel=1e-9)
        assert found["damping:2"][k] == pytest.approx(modes.damping[1], rel=1e-9, abs=1e-15)
        assert found[f"compliance:{tip}"][k] == pytest.approx(
            frame.compliance, rel=1e-9, abs=1e-9 * np.abs(frame.compliance).max()
        )
        assert found[f"stiffness:{tip}"][k] == pytest.approx(
            frame.stiffness, rel=1e-9, abs=1e-9 * np.abs(frame.stiffness).max()
        )
        assert found["stiffness:x"][k] == found[f"stiffness:{tip}"][k, 0, 0]
        moved = bent.frames[tip]
        assert found[f"deflection:{tip}"][k] == pytest.approx(
            moved, rel=1e-9, abs=1e-9 * max(np.abs(moved).max(), 1e-12)
        )
        assert found["deflection:rz"][k] == found[f"deflection:{tip}"][k, 5]
        assert found["strain:1"][k].sum() == pytest.approx(1.0, rel=1e-12)
    assert found.units["stiffness:x"] == "N/m" and found.units["deflection:rz"] == "rad"


def test_kinds_that_are_solved_pose_by_pose_are_those_of_single_poses(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 2)
    motor, beam = names[0], next(iter(parflex.deflection(robot).beams))
    asked = ["conditioning", "singularity", f"effort:{motor}", f"stress:{beam}", "mass", "motion:2"]
    found = parflex.many_responses(robot, names, poses, asked)
    for k, pose in enumerate(poses):
        at = dict(zip(names, pose.tolist(), strict=True))
        here, bent = parflex.configure(robot, at).condition, parflex.deflection(robot, at)
        assert found["conditioning"][k] == pytest.approx(here.platform, rel=1e-9)  # Newton of two ways of assembly
        assert found["singularity"][k] == pytest.approx(1 / max(here.platform, *here.legs.values(), here.closures))
        assert found[f"effort:{motor}"][k] == pytest.approx(bent.efforts[motor], rel=1e-8)
        assert found[f"stress:{beam}"][k] > 0
        shapes = parflex.natural_frequencies(robot, at, 2).shapes[:, 1]
        assert found["motion:2"][k] == pytest.approx(shapes, abs=1e-6 * np.abs(shapes).max())
    assert found["mass"] == pytest.approx([sum(link.body.m for link in robot.tree.links)] * 2)


def test_responses_under_a_wrench_are_those_of_the_equilibrium_or_of_first_order(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 2)
    load = {robot.tree.end_effector: [3000.0, -2000.0, 50.0]}
    rest = parflex.many_responses(robot, names, poses, ["deflection", "frequency:1"], wrench=load)
    first = parflex.many_responses(robot, names, poses, ["deflection"], wrench=load, about="undeformed")
    many = parflex.many_frequencies(robot, names, poses, modes=2, wrench=load, shapes=True)
    for k, pose in enumerate(poses):
        at = dict(zip(names, pose.tolist(), strict=True))
        for found, about in ((rest, None), (first, "undeformed")):
            moved = parflex.deflection(robot, at, wrench=load, about=about).frames[robot.tree.end_effector]
            # both start from loops that are closed to 1e-11 of a length, each in its own way
            assert found["deflection"][k] == pytest.approx(moved, rel=1e-8, abs=1e-11)
        one = parflex.natural_frequencies(robot, at, 2, wrench=load).frequencies
        assert many.frequencies[k] == pytest.approx(one, rel=1e-9)
        assert rest["frequency:1"][k] == pytest.approx(one[0], rel=1e-9)
    assert np.abs(rest["deflection"] - first["deflection"]).max() > 1e-9
    with pytest.raises(InputError, match="have no effect"):
        parflex.many_frequencies(robot, names, poses, wrench=load, about="undeformed")


def test_designs_of_responses_are_those_of_robots_loaded_one_by_one(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 4)
    key = next(
        f"sections.{name}.{word}"
        for name, own in robot.description.sections.items()
        for word in own.model_fields_set
        if word in ("y", "diameter", "z")
    )
    value = parflex.designs.design_numbers.number_at(robot, key)
    designs = {key: value * np.array([0.95, 1.05, -1.0, np.nan])}
    asked = ["stiffness:x", "deflection:y", "frequency:2", "damping:1", "mass"]
    found = parflex.many_responses(robot, names, poses, asked, designs=designs)
    assert found.status.tolist() == [0, 0, 3, 3] and "not a finite number" in found.reasons[3]
    for k in range(2):
        other = parflex.load("3rrr-flexible", settings={key: float(designs[key][k])})
        one = parflex.many_responses(other, names, poses[k : k + 1], asked)
        for word in asked:
            assert found[word][k] == pytest.approx(one[word][0], rel=1e-9)  # the same matrices, rounded otherwise


def test_the_order_of_rows_the_size_of_chunks_and_the_number_of_threads_change_nothing(robots, monkeypatch):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 12)
    asked = ["frequency:1", "stiffness:x"]
    whole = parflex.many_responses(robot, names, poses, asked, threads=1)
    plain = parflex.many_frequencies(robot, names, poses, modes=2, threads=1)
    monkeypatch.setattr(response_rows, "CHUNK_TOGETHER", 5)
    monkeypatch.setattr(frequency_rows, "CHUNK_FULL", 5)
    order = np.random.default_rng(0).permutation(12)
    one, two = (parflex.many_responses(robot, names, poses, asked, threads=n) for n in (1, 2))
    mixed = parflex.many_responses(robot, names, poses[order], asked, threads=2)
    for word in asked:
        assert np.array_equal(one[word], two[word])
        # Newton may start elsewhere: closed to 1e-12, which stiff directions feel
        assert one[word] == pytest.approx(whole[word], rel=1e-9)
        assert mixed[word] == pytest.approx(whole[word][order], rel=1e-9)
    halves = [parflex.many_frequencies(robot, names, poses, modes=2, threads=n).frequencies for n in (1, 2)]
    assert np.array_equal(*halves) and halves[0] == pytest.approx(plain.frequencies, rel=1e-9)


def test_rows_that_are_not_numbers_are_marked_without_a_warning(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 3)
    poses[1, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        many = parflex.many_frequencies(robot, names, poses, modes=2, shapes=True)
        found = parflex.many_responses(robot, names, poses, ["stiffness:x", "conditioning"])
        designs = {"sections.rod.diameter": [0.02, 0.021, np.inf]}
        varied = parflex.many_frequencies(robot, names, poses, modes=2, designs=designs)
    for status, reasons in ((many.status, many.reasons), (found.status, found.reasons)):
        assert status.tolist() == [0, 1, 0] and reasons[1] == f"'{names[0]}' is not a finite number in this row"
    assert np.isnan(many.shapes[1]).all() and np.isnan(found["stiffness:x"][1])
    assert varied.status[1] == 1 and "not a finite number" in varied.reasons[1]
    assert varied.status[2] == 3 and "not a finite number" in varied.reasons[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["loudness"], "'loudness' is not a response"),
        ([], "no response"),
        (["frequency:one"], "is not a mode"),
        (["stiffness:nowhere"], "there is no frame"),
        (["mass:platform"], "of the whole robot"),
        (["effort:nobody"], "there is no motor"),
        (["mass", "mass"], "twice"),
        (["frequency:1000"], "modes are requested, but the robot has"),
    ],
)
def test_what_is_no_response_is_refused_in_one_sentence(robots, words, said):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 1)
    with pytest.raises(InputError, match=said) as told:
        parflex.many_responses(robot, names, poses, words)
    assert "\n" not in str(told.value)


def test_a_rigid_direction_has_no_stiffness_and_no_compliance():
    robot = parflex.load("3rrr-flexible")
    names, poses = poses_of(robot, 1)
    motor = robot.tree.links[robot.tree.link_of_rate[robot.actuated[0]]].name
    found = parflex.many_responses(robot, names, poses, [f"compliance:{motor}", f"stiffness:{motor}"])
    one = parflex.cartesian_stiffness(robot, dict(zip(names, poses[0].tolist(), strict=True)), frame=motor)
    assert one.stiffness is None and np.isnan(found[f"stiffness:{motor}"]).all()
    assert found[f"compliance:{motor}"][0] == pytest.approx(one.compliance, abs=1e-18)


@pytest.mark.parametrize("rows", [[[0.1, 0.2]], "home"])
def test_poses_with_another_number_of_columns_are_refused(robots, rows):
    for ask in (parflex.many_frequencies, lambda *given: parflex.many_responses(*given, ["mass"])):
        with pytest.raises(InputError, match="poses"):
            ask(robots["3rrr-flexible"], ["x", "y", "theta"], rows)


def test_rows_say_why_they_go_alone_and_how_far_they_are():
    robot, told = parflex.load("3rrr-flexible"), []
    poses = np.zeros((3, 2))
    found = parflex.many_responses(
        robot, ["x", "y"], poses, ["effort:leg1.1", "motion:1"], progress=lambda *n: told.append(n)
    )
    assert found.units == {"effort:leg1.1": "N m", "motion:1": "m, rad"} and told == [(3, 3)]
    assert found.method == "one by one" and found.reason == "effort, motion: computed pose by pose"
    assert (
        parflex.many_responses(parflex.load("gough-stewart-elastic"), ["x"], [[0.0]], ["effort:leg1.3"]).units[
            "effort:leg1.3"
        ]
        == "N"
    )
