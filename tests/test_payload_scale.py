"""Gains of drives are as right as the payload that is named: what records and files tell of it."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles import measured
from support.sliding_axis_records import ROBOT, followed, noisy

import parflex

GAINS = dict(zip(measured.MOTORS, (1.3, 0.8, 1.1), strict=True))


def found(folder, named, *loads):
    """Gains from records with loads in the middle of the platform, and what is named of them."""
    for seed, load in enumerate((0.0, *loads)):
        record = noisy(followed(1, load), seed)
        currents = {f"effort.{m}": record[f"effort.{m}"] / gain for m, gain in GAINS.items()}
        np.savez(folder / f"{load:g}.npz", **(record | currents))
    columns = {
        "position": {m: f"q.{m}" for m in GAINS}, "effort": {m: f"effort.{m}" for m in GAINS},
        "payload": {f"{load:g}.npz": one for load, one in zip(loads, named, strict=True)},
    }  # fmt: skip
    return parflex.identify(ROBOT, [str(folder / f"{load:g}.npz") for load in (0.0, *loads)], columns, "tls")


@pytest.mark.parametrize("named", [3.0, 3.3])
def test_a_common_factor_is_told_by_the_file_alone(tmp_path, named):
    one = found(tmp_path, [[named, 0, 0, 0]], 3.0)
    for motor, gain in GAINS.items():
        assert one.gains[motor]["value"] == pytest.approx(gain * named / 3, rel=0.01)  # 0.13 % by four noises
    assert any("in proportion to what is known" in text and f"{named:g} kg in 3.npz" in text for text in one.steps)
    told = [text for text in one.warnings if "times those of the file, all alike" in text]
    assert len(told) == (named != 3.0)
    for text in told:  # the factor of the gains, which scatter by 0.13 %
        assert float(text.partition(" bodies are ")[2].split()[0]) == pytest.approx(1.1, rel=0.01)
        assert float(text.partition("check it, as ")[2].split()[0]) == pytest.approx(3.0, rel=0.01)
        assert "kg in place of 3.3 kg in 3.npz" in text


@pytest.mark.parametrize("named", [[3.0, 0.0, 0, 0], [3.0, 0.1, 0, 0]])
def test_a_centre_that_is_not_the_one_named_is_told(tmp_path, named):
    told = [text for text in found(tmp_path, [named], 3.0).warnings if "efforts fit a payload of" in text]
    assert len(told) == (named[1] != 0)


@pytest.mark.verify
def test_of_two_payloads_one_that_is_not_the_one_named_is_told(tmp_path):
    one = found(tmp_path, [[2.0, 0, 0, 0], [3.6, 0, 0, 0]], 2.0, 3.0)
    assert any("efforts fit a payload of" in text for text in one.warnings)
