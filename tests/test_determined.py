"""Which numbers of an update the measurements determine, and the cost that ranks solutions."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles import rocking_bar, sliding_chain

import parflex

SHARE, OF_DAMPING = 0.003, 0.05  # of frequencies and damping ratios, their deviations


def loaded(tmp_path, text):
    path = tmp_path / "robot.toml"
    path.write_text(text)
    return parflex.load(path)


def rows(frequencies, noise=(0, 0, 0, 0), share=SHARE):
    return [{"pose": "home", "mode": k, "frequency_hz": f * (1 + share * n), "deviation_hz": share * f}
            for k, (f, n) in enumerate(zip(frequencies, noise, strict=False), start=1)]  # fmt: skip


def sliders(tmp_path, true, noise, of_damping=None, prior=0.3):
    frequencies, ratios = sliding_chain.modes(**true)
    table = rows(frequencies, noise)
    if of_damping:
        table = [row | {"damping": z * (1 + OF_DAMPING * n), "damping_deviation": OF_DAMPING * z}
                 for row, z, n in zip(table, ratios, of_damping, strict=True)]  # fmt: skip
    keys = [f"constants.{key}" for key in true]
    return parflex.update(loaded(tmp_path, sliding_chain.file()), table, keys, prior=prior)


def test_the_sliders_and_the_bar_by_hand_have_the_frequencies_of_their_files(tmp_path):
    found = parflex.natural_frequencies(loaded(tmp_path, sliding_chain.file()), without=["damping"]).frequencies
    assert found == pytest.approx(sliding_chain.modes(c1=0.0, c3=0.0)[0], rel=1e-9)
    found = parflex.natural_frequencies(loaded(tmp_path, rocking_bar.file(1000.0, 1300.0, 0.4))).frequencies
    assert found == pytest.approx(rocking_bar.frequencies(1000.0, 1300.0, 0.4), rel=1e-9)


def test_the_answer_has_the_least_sum(tmp_path):
    true, noise = {"k1": 60e3, "k3": 15e3}, np.array([0.8323, -0.1348, -1.0978, 1.2093])
    found = sliders(tmp_path, true, noise)
    (other,) = found.alternatives
    measured = sliding_chain.modes(**true)[0]

    def total(parameters):
        now = {key: parameters[f"constants.{key}"]["value"] for key in true}
        left = (sliding_chain.modes(**now)[0] / measured - 1) / SHARE - noise
        away = np.array([now[key] / sliding_chain.FIRST[key] - 1 for key in true]) / 0.3
        return left @ left + away @ away

    # 50.5e3 is the minimum next to the file, and just beyond chance; both are rounded, and 20 % from each other
    assert found.parameters["constants.k1"]["value"] == pytest.approx(60.2e3, rel=5e-3)
    assert other["parameters"]["constants.k1"]["value"] == pytest.approx(50.5e3, rel=5e-3)
    least = total(found.parameters)
    # a search ends a thousandth of a deviation from a minimum
    assert 0 < other["more"] == pytest.approx(total(other["parameters"]) - least, abs=1e-4)
    assert found.model_share["frequency"] == 0


BAR = ["constants.left", "constants.right", "constants.inertia"]


@pytest.mark.parametrize("share", [0.003, 0.01])
def test_both_mirror_solutions_are_found_from_the_saddle_between_them(tmp_path, share):
    table = rows(rocking_bar.frequencies(950.0, 1250.0, 0.4), share=share)
    found = parflex.update(loaded(tmp_path, rocking_bar.file(1000.0, 1000.0, 0.4)), table, BAR[:2])
    other = found.alternatives[0]
    one, two = ([parameters[key]["value"] for key in BAR[:2]] for parameters in (found.parameters, other["parameters"]))
    # priors pull by (deviation of the fit / of the prior)^2 of the way: (4.5 % / 30 %)^2 of 250 at most
    assert sorted(one) == pytest.approx([950.0, 1250.0], abs=15.0)
    assert one == pytest.approx(two[::-1], rel=1e-4)  # a search ends a thousandth of a deviation of 5 % from a minimum
    assert other["more"] == pytest.approx(0.0, abs=1e-6) and other["more"] >= 0
    assert all(parameter["interval"] for parameter in found.parameters.values())
    for saddle in found.alternatives[1:]:  # within the 95 % region of both, and without deviations
        assert all(number["deviation"] is None for number in saddle["parameters"].values())


def test_identical_springs_are_undetermined(tmp_path):
    table = rows(rocking_bar.frequencies(1000.0, 1000.0, 0.4))
    found = parflex.update(loaded(tmp_path, rocking_bar.file(1000.0, 1000.0, 0.4)), table, BAR[:2])
    assert all(found.parameters[key][word] is None for key in BAR[:2] for word in ("deviation", "interval", "relative"))
    (combination,) = found.undetermined
    assert abs(combination[BAR[0]]) == pytest.approx(0.5**0.5) and sum(combination.values()) == pytest.approx(
        0, abs=1e-6
    )
    assert any(
        "without an interval: 'constants.left', 'constants.right': vary fewer" in text for text in found.warnings
    )
    one = parflex.update(loaded(tmp_path, rocking_bar.file(1000.0, 1000.0, 0.4)), table, BAR[:1])
    assert one.parameters[BAR[0]]["interval"] and not one.undetermined


def test_a_number_that_compensates_for_the_square_of_what_is_undetermined_is_so_too(tmp_path):
    """Frequencies of springs 900 and 1300 with an inertia of 0.45 are those of equal springs with another inertia."""
    lowest, highest = rocking_bar.frequencies(900.0, 1300.0, 0.45)
    found = parflex.update(loaded(tmp_path, rocking_bar.file(1000.0, 1000.0, 0.4)), rows((lowest, highest)), BAR)
    inertia = found.parameters[BAR[2]]
    assert 0.45 - inertia["value"] > 10 * SHARE * 0.45  # far outside an interval by sensitivities alone
    assert all(one["interval"] is None for one in found.parameters.values()) and len(found.undetermined) == 1


@pytest.mark.parametrize(("share", "determined"), [(0.2, False), (0.1, True)])
def test_one_number_is_determined_where_measurements_are_sharper_than_its_prior(tmp_path, share, determined):
    """A frequency goes by the root of the stiffness: its deviation counts twice, against a prior of 0.3."""
    text = rocking_bar.file("sum/2", "sum/2", 0.4).replace("left = sum/2\nright = sum/2\n", "sum = 2000\n")
    text = text.replace('"left"', '"sum/2"').replace('"right"', '"sum/2"')
    lowest = rocking_bar.frequencies(1000.0, 1000.0, 0.4)[0]
    found = parflex.update(loaded(tmp_path, text), rows([lowest], share=share), "constants.sum")
    one = found.parameters["constants.sum"]
    assert (one["interval"] is not None) == determined and bool(found.undetermined) != determined
    if determined:
        assert one["deviation"] == pytest.approx(2000 / np.hypot(1 / 0.3, 1 / (2 * share)), rel=1e-6)
