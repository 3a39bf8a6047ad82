"""Updates with more than one solution: all are named, and shapes single one out."""

from __future__ import annotations

import numpy as np
import pytest
from support.command_line import answered
from support.oracles import sliding_pair

import parflex
from parflex.updating import fitting_steps
from parflex.updating.solutions import spread_points

KEYS = ["constants.first", "constants.second"]
SHARE = 0.002  # of the frequencies, their deviations
# priors pull numbers that are about one of their deviations away by (deviation of the fit / of the prior)^2 of it:
# (0.7 % / 30 %)^2 of 30 %, and (0.7 % / 10 %)^2 of 5 % where they are narrower: both far below a thousandth
PULLED = 1e-3


def pair(tmp_path, first, second, carried=True):
    path = tmp_path / "pair.toml"
    path.write_text(sliding_pair.file(first, second, carried))
    return parflex.load(path)


def rows(first, second, carried=True, poses=("home",), shapes=False, numbered=True):
    frequencies, seen = sliding_pair.modes(first, second, carried)
    return [
        {"pose": pose, "mode": k + 1 if numbered else "", "frequency_hz": f, "deviation_hz": SHARE * f}
        | (dict(zip(sliding_pair.SENSORS, seen[:, k], strict=True)) if shapes else {})
        for pose in poses for k, f in enumerate(frequencies)
    ]  # fmt: skip


def values(parameters):
    return [parameters[key]["value"] for key in KEYS]


def test_the_pair_by_hand_has_the_frequencies_of_its_file(tmp_path):
    for carried in (True, False):
        found = parflex.natural_frequencies(pair(tmp_path, 1500.0, 700.0, carried)).frequencies
        assert found == pytest.approx(sliding_pair.modes(1500.0, 700.0, carried)[0], rel=1e-9)
    assert sliding_pair.modes(1000.0, 1000.0)[0] == pytest.approx(sliding_pair.modes(2000.0, 500.0)[0])


def told(found):
    return [text for text in found.warnings if "another solution fits as well" in text]


@pytest.mark.parametrize("numbered", [True, False])
def test_a_second_solution_is_named_with_its_numbers(tmp_path, numbered):
    found = parflex.update(pair(tmp_path, 1500.0, 700.0), rows(1000.0, 1000.0, numbered=numbered), KEYS)
    assert values(found.parameters) == pytest.approx([2000.0, 500.0], rel=PULLED)
    (other,) = found.alternatives
    assert values(other["parameters"]) == pytest.approx([1000.0, 1000.0], rel=PULLED)
    # both have no residuals, so priors differ: (500^2/450^2 + 300^2/210^2) - (500^2/450^2 + 200^2/210^2)
    assert other["more"] == pytest.approx((300**2 - 200**2) / 210**2, rel=0.02)  # a thousandth of 1000 in 300, squared
    (text,) = told(found)
    assert "'constants.first' = 1000" in text and f"{other['more']:+.1f}" in text


def test_the_verb_tells_other_solutions(capsys, tmp_path):
    lines = [f"home,{row['mode']},{row['frequency_hz']},{row['deviation_hz']}" for row in rows(1000.0, 1000.0)]
    (tmp_path / "measured.csv").write_text("\n".join(["pose,mode,frequency_hz,deviation_hz", *lines]) + "\n")
    file = pair(tmp_path, 1500.0, 700.0).file
    answer = answered(capsys, "update", file, str(tmp_path / "measured.csv"), "--vary", ",".join(KEYS))
    assert values(answer["alternatives"][0]["parameters"]) == pytest.approx([1000.0, 1000.0], rel=PULLED)


def test_a_prior_that_excludes_the_second_solution_leaves_one(tmp_path):
    found = parflex.update(pair(tmp_path, 1900.0, 520.0), rows(1000.0, 1000.0), KEYS, prior=0.1)
    assert values(found.parameters) == pytest.approx([2000.0, 500.0], rel=PULLED)
    assert not found.alternatives and not told(found)


def test_shapes_single_out_one_of_two_solutions(tmp_path):
    # springs 3000 and 250 have the same frequencies, and are as far from the file over its priors
    found = parflex.update(pair(tmp_path, 1300.0, 700.0), rows(500.0, 1500.0, shapes=True), KEYS, prior=1.0)
    assert values(found.parameters) == pytest.approx([500.0, 1500.0], rel=PULLED)
    assert not found.alternatives and all(one["mac"] > 0.999 for one in found.pairs)


def test_solutions_beside_a_fit_with_an_error_of_the_model_are_named(tmp_path):
    table = rows(1000.0, 1000.0, poses=("home", "out"))
    table = [row | {"frequency_hz": row["frequency_hz"] * (1.03 if row["pose"] == "out" else 1)} for row in table]
    found = parflex.update(pair(tmp_path, 1500.0, 700.0), table, KEYS)
    assert found.model_share["frequency"] > 0.01
    # the mean of both poses: stiffnesses larger by about 1.03, and some of the prior's pull
    both = [values(found.parameters), *(values(one["parameters"]) for one in found.alternatives)]
    assert sorted(round(one[0], -3) for one in both) == [1000.0, 2000.0] and told(found)


@pytest.mark.parametrize("true", [4500.0, 450.0])
def test_numbers_far_from_their_priors_are_found_where_the_prior_lets_them_explain_all(tmp_path, true):
    robot, table = pair(tmp_path, 1500.0, 700.0), rows(true, 700.0, poses=("home", "out"))
    found = parflex.update(robot, table, KEYS[0])
    one = found.parameters[KEYS[0]]
    assert abs(one["value"] - true) < one["deviation"] < 0.01 * true and found.model_share["frequency"] == 0
    away = abs(one["value"] / 1500 - 1) / 0.3
    warned = any(f"'constants.first' moved by {away:.2g} times the deviation of its prior" in text
                 for text in found.warnings)  # fmt: skip
    assert warned == (away > 3)


def test_a_narrow_prior_holds_a_number_and_the_warning_says_how_far_it_would_go(tmp_path):
    found = parflex.update(
        pair(tmp_path, 1500.0, 700.0), rows(4500.0, 700.0, poses=("home", "out")), KEYS[0], prior=0.05
    )
    # three times the stiffness is 40 deviations: a model error of tens of per cent costs less
    assert abs(found.parameters[KEYS[0]]["value"] / 1500 - 1) < 0.15 and found.model_share["frequency"] > 0.1
    (text,) = [text for text in found.warnings if "without an error of the model, 'constants.first' moves by" in text]
    assert "if that prior is too narrow, widen it" in text


def test_starts_number_modes_as_they_have_them_and_shapes_choose(tmp_path):
    """Beside each other: the first one was the slower, and is the faster."""
    robot = pair(tmp_path, 1700.0, 2100.0, carried=False)
    found = parflex.update(robot, rows(2100.0, 1900.0, False, shapes=True), KEYS)
    assert values(found.parameters) == pytest.approx([2100.0, 1900.0], rel=PULLED) and not found.alternatives
    assert all(one["mac"] > 0.999 for one in found.pairs)


def test_without_shapes_modes_that_cross_have_two_solutions(tmp_path):
    robot = pair(tmp_path, 1700.0, 2100.0, carried=False)
    found = parflex.update(robot, rows(2100.0, 1900.0, False), KEYS)
    assert values(found.parameters) == pytest.approx([1900.0, 2100.0], rel=PULLED)  # nearer to the file
    assert values(found.alternatives[0]["parameters"]) == pytest.approx([2100.0, 1900.0], rel=PULLED)


def test_fits_are_told_as_they_are_done(tmp_path):
    seen = []
    parflex.update(pair(tmp_path, 1500.0, 700.0), rows(1000.0, 1000.0), KEYS, progress=lambda *one: seen.append(one))
    assert seen == [(k, 9) for k in range(10)]  # from the file, and from eight other starts
    steps = fitting_steps.FittingSteps(lambda *one: seen.append(one), 2)  # as of two files of responses
    steps.step()
    steps.expect(3)
    assert seen[10:] == [(0, 2), (1, 2), (1, 5)]


def test_spread_points_fill_a_cube():
    for size in (1, 2, 5):
        points = spread_points(20, size)
        assert points.shape == (20, size) and points.min() >= 0 and points.max() < 1
        for column in points.T:  # every quarter has its share of 5, within 2
            assert (np.abs(np.histogram(column, 4, (0, 1))[0] - 5) <= 2).all()
