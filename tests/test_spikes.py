"""Single samples far from their neighbours are replaced, and said; clean records are left as they are."""

import numpy as np
import pytest
from support.oracles import led_records
from support.recordings import ARM, arm_record

import parflex
from parflex import InputError
from parflex.identification.spikes import spikes

T = np.arange(20_000) / 1000
MOTION = 0.3 * np.sin(2 * T) + 0.05 * np.sin(23 * T)


def clean_columns():
    rng = np.random.default_rng(2)
    noise = rng.standard_normal(len(T))
    rate = np.gradient(MOTION, T)
    return {
        "exact": MOTION,
        "noise alone": noise,
        "noise": MOTION + 1e-5 * noise,
        "coarse encoder": np.round(MOTION / 1e-3) * 1e-3,
        "flickering": np.round(1e-4 * noise / 5e-4) * 5e-4,
        "friction that turns back": MOTION + 5 * np.sign(rate),
        "friction in three samples": MOTION + 5 * np.clip(rate / 1e-3, -1, 1) + 1e-3 * noise,
        "a pulse of three samples": MOTION + 5.0 * (np.abs(T - 3) < 0.0012),
        "a step of time": MOTION + 2 * np.pi * (T > 4),
        "at rest": np.zeros(len(T)),
    }


@pytest.mark.parametrize("name", list(clean_columns()))
def test_columns_without_spikes_have_none(name):
    assert not len(spikes(clean_columns()[name]))


@pytest.mark.parametrize("name", ["exact", "noise", "coarse encoder", "friction that turns back"])
def test_spikes_are_found_where_they_are(name):
    column, rng = clean_columns()[name].copy(), np.random.default_rng(4)
    turning = np.flatnonzero(np.diff(np.sign(np.gradient(MOTION, T))))  # beside a step there are two patterns
    places = np.setdiff1d(np.arange(100, len(T) - 100, 15), (turning[:, None] + np.arange(-5, 7)).ravel())
    at = np.sort(rng.choice(places, 30, replace=False))
    column[at] += rng.choice([-1, 1], 30) * rng.uniform(0.5, 3, 30)
    assert list(spikes(column)) == list(at)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "arm.toml"
    path.write_text(ARM)
    robot = parflex.load(path)
    record = led_records.as_measured(arm_record(robot), 0, 1e-6, 1e-7, 0.05, 40.0)
    spiked, motor = dict(record), robot.actuated_names[0]
    for word, size in (("q", 0.4), ("effort", 60.0)):
        spiked[f"{word}.{motor}"] = record[f"{word}.{motor}"].copy()
        spiked[f"{word}.{motor}"][[700, 1200]] += [size, -size]
    return robot, motor, record, spiked


def test_a_record_with_spikes_gives_the_parameters_of_one_without(arm):
    robot, motor, record, spiked = arm
    wanted, found = (parflex.identify(robot, one) for one in (record, spiked))
    off = (found.values - wanted.values) / [one.deviation for one in wanted.parameters.values()]
    assert np.abs(off).max() < 0.1  # four samples of thousands are interpolated
    for word in ("positions", "efforts"):
        said = f"record: {word} of '{motor}' leave the others in 2 single samples, first at t = {record['t'][700]:.6g}"
        assert sum(said in text for text in found.warnings) == 1
        assert not any(f"{word} of '{motor}' leave" in text for text in wanted.warnings)


def test_spikes_that_are_kept_are_fitted_or_refused(arm):
    robot, motor, record, spiked = arm
    with pytest.raises(InputError, match="jump"):
        parflex.identify(robot, spiked, keep_spikes=True)
    efforts = spiked | {f"q.{motor}": record[f"q.{motor}"]}
    wanted, kept = parflex.identify(robot, record), parflex.identify(robot, efforts, keep_spikes=True)
    assert not any("single samples" in text for text in kept.warnings)
    assert kept.relative_error > 2 * wanted.relative_error
