"""Model updating: joint stiffnesses that come back, what is not told apart, tables that cannot be read."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import spring_chain
from test_command_line import answered, refused

import parflex
from parflex.errors import InputError

TRUE = np.array([900.0, 400.0, 150.0])
KEYS = ["constants.first", "constants.second", "constants.third"]


def chain(tmp_path, stiffness=(1100.0, 320.0, 180.0)):
    path = tmp_path / "chain.toml"
    path.write_text(spring_chain.FILE.format(*stiffness))
    return parflex.load(path)


def rows(noise=0.002, seed=0, poses=("home", "bent", "folded"), numbered=True):
    rng = np.random.default_rng(seed)
    return [
        {
            "pose": pose, "mode": k if numbered else "", "frequency_hz": f * (1 + noise * rng.standard_normal()),
            "deviation_hz": noise * f,
        }
        for pose in poses
        for k, f in enumerate(spring_chain.frequencies(pose, TRUE), start=1)
    ]  # fmt: skip


def test_the_chain_by_hand_has_the_frequencies_of_its_file(tmp_path):
    robot = chain(tmp_path, TRUE)
    for pose in spring_chain.POSES:
        found = parflex.natural_frequencies(robot, pose).frequencies
        assert found == pytest.approx(spring_chain.frequencies(pose, TRUE), rel=1e-9)


@pytest.mark.parametrize("numbered", [True, False])
def test_joint_stiffnesses_come_back_within_their_intervals(tmp_path, numbered):
    found = parflex.update(chain(tmp_path), rows(numbered=numbered), KEYS, "folded")
    for key, value in zip(KEYS, TRUE, strict=True):
        one = found.parameters[key]
        assert abs(one["value"] - value) < 3 * one["deviation"] < 0.05 * value, key
    held = [one for one in found.pairs if one["held_out"]]
    assert len(held) == 3 and all(one["pose"] == "folded" for one in held)
    for one in held:  # predicted, and twice as well as before
        assert abs(one["after"] - one["measured"]) < 4 * np.hypot(one["predicted_deviation"], one["deviation"])
    assert found.errors["held_out_after"] < 0.5 * found.errors["held_out_before"]
    assert found.model_error < 2 and all(0.8 < one["mac"] <= 1 + 1e-9 for one in found.pairs)


def test_covariances_cover_what_is_true(tmp_path):
    robot, squares = chain(tmp_path), 0.0
    for seed in range(4):
        found = parflex.update(robot, rows(seed=seed, poses=("home", "bent")), KEYS)
        off = np.array([found.parameters[key]["value"] for key in KEYS]) - TRUE
        squares += float(off @ np.linalg.solve(found.covariance, off))
    assert 2.2 < squares < 32.9  # chi squared of 12 freedoms, 0.1 % beyond at each side


def test_numbers_that_are_not_told_apart_are_named(tmp_path):
    text = (
        spring_chain.FILE.format(1100.0, 320.0, 180.0)
        .replace('stiffness = "first"', 'stiffness = "first*more"')
        .replace("[constants]\n", "[constants]\nmore = 1.0\n")
    )
    (tmp_path / "twice.toml").write_text(text)
    found = parflex.update(parflex.load(tmp_path / "twice.toml"), rows(), ["constants.first", "constants.more"])
    assert abs(found.cosines[0, 1]) == pytest.approx(1.0)
    assert any("not told apart" in text for text in found.warnings)


def test_a_model_that_cannot_fit_says_so_and_widens_its_intervals(tmp_path):
    robot = chain(tmp_path)
    fine = parflex.update(robot, rows(), KEYS)
    wrong = [row | {"frequency_hz": row["frequency_hz"] * (1.1 if row["mode"] == 2 else 1)} for row in rows()]
    found = parflex.update(robot, wrong, KEYS[:1])
    assert found.model_error > 5 and any("model has an error" in text for text in found.warnings)
    assert found.parameters[KEYS[0]]["deviation"] > 3 * fine.parameters[KEYS[0]]["deviation"]


def test_the_verb_writes_a_file_that_extends_the_first(capsys, tmp_path):
    robot = chain(tmp_path)
    table = tmp_path / "measured.csv"
    lines = [f"{one['pose']},{one['mode']},{one['frequency_hz']},{one['deviation_hz']}" for one in rows()]
    table.write_text("\n".join(["pose,mode,frequency_hz,deviation_hz", *lines, "home,4,,"]) + "\n")
    out = tmp_path / "fitted.toml"
    answer = answered(
        capsys,
        "update",
        robot.file,
        str(table),
        "--vary",
        ",".join(KEYS),
        "--hold-out",
        "bent,home:3",
        "--out",
        str(out),
    )
    assert {"parameters", "covariance", "cosines", "pairs"} <= set(answer)
    assert set(answer["pairs"][0]) >= {"pose", "mode", "measured", "before", "after", "mac", "held_out"}
    assert any("1 rows have no frequency" in text for text in answer["warnings"])
    again = parflex.natural_frequencies(parflex.load(out), "bent").frequencies
    assert again == pytest.approx([one["after"] for one in answer["pairs"] if one["pose"] == "bent"], rel=1e-9)


@pytest.mark.parametrize(
    ("text", "vary", "hold_out", "message"),
    [
        ("pose,mode,frequency\nhome,1,2\n", KEYS[0], "", "unknown column 'frequency'"),
        ("pose,mode\nhome,1\n", KEYS[0], "", "no column 'frequency_hz'"),
        ("pose,mode,frequency_hz\nhome,1,-2\n", KEYS[0], "", "not a positive number"),
        ("pose,mode,frequency_hz\nhome,0,2\n", KEYS[0], "", "is not 1, 2"),
        ("pose,mode,frequency_hz\nhome,1,2\nhome,1,2\n", KEYS[0], "", "measured twice"),
        ("pose,mode,frequency_hz\nhome,9,2\n", KEYS[0], "", "the robot has 3"),
        ("pose,mode,frequency_hz\nhome,1,\n", KEYS[0], "", "no frequency is measured"),
        ("pose,mode,frequency_hz\nhome,1,2\n", KEYS[0], "moon", "nothing measured is 'moon'"),
        ("pose,mode,frequency_hz\nhome,1,2\n", KEYS[0], "home", "everything measured is held out"),
        ("pose,mode,frequency_hz\nnowhere,1,2\n", KEYS[0], "", "nowhere"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(capsys, tmp_path, text, vary, hold_out, message):
    robot = chain(tmp_path)
    (tmp_path / "bad.csv").write_text(text)
    words = ["update", robot.file, str(tmp_path / "bad.csv"), "--vary", vary]
    assert message in refused(capsys, *words, *(["--hold-out", hold_out] if hold_out else []))["message"]


def test_wrong_numbers_are_refused(tmp_path):
    with pytest.raises(InputError, match="positive number"):
        parflex.update(chain(tmp_path), rows(), KEYS, prior=-1.0)
    with pytest.raises(InputError, match="key"):
        parflex.update(chain(tmp_path), rows(), [])
