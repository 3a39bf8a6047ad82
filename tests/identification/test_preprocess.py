"""Records before an identification: spikes, held samples, low-passes beside those of scipy.signal, loops of drives."""

import numpy as np
import pytest
import scipy.signal
from support.geared_arm import recorded
from support.oracles import led_records
from support.recordings import ARM, arm_record
from support.robots import load_robot, write_robot

import parflex
from parflex.identification.preprocess import ORDER, butterworth, decimated, mean_spectrum
from parflex.identification.recordings import read_column_map, read_recording, spikes

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
    robot = parflex.load(write_robot(tmp_path_factory.mktemp("arm"), ARM))
    record = led_records.as_measured(arm_record(robot), 0, 1e-6, 1e-7, 0.05, 40.0)
    spiked, motor = dict(record), robot.actuated_names[0]
    for word, size in (("q", 0.4), ("effort", 60.0)):
        spiked[f"{word}.{motor}"] = record[f"{word}.{motor}"].copy()
        spiked[f"{word}.{motor}"][[700, 1200]] += [size, -size]
    return robot, motor, record, spiked


def test_a_record_with_spikes_gives_the_parameters_of_the_clean_record(arm):
    robot, motor, record, spiked = arm
    wanted, repaired = (parflex.identify(robot, data) for data in (record, spiked))
    off = (repaired.values - wanted.values) / [parameter.deviation for parameter in wanted.parameters.values()]
    assert np.abs(off).max() < 0.1  # four samples of thousands are interpolated
    for word in ("positions", "efforts"):
        said = f"record: {word} of '{motor}' leave the others in 2 single samples, first at t = {record['t'][700]:.6g}"
        assert sum(said in text for text in repaired.warnings) == 1
        assert not any(f"{word} of '{motor}' leave" in text for text in wanted.warnings)
    with pytest.raises(parflex.InputError, match="jump"):
        parflex.identify(robot, spiked, keep_spikes=True)
    kept = parflex.identify(robot, spiked | {f"q.{motor}": record[f"q.{motor}"]}, keep_spikes=True)
    assert not any("single samples" in text for text in kept.warnings)
    assert kept.relative_error > 2 * wanted.relative_error


@pytest.fixture
def geared():
    return load_robot("arm-behind-gear")


def holding(record, rows, words=("q.", "effort.")):
    """Columns with these words stand at the last of these rows."""
    last = np.asarray(rows)[np.searchsorted(rows, np.arange(len(record["t"])), side="right") - 1]
    return {name: values[last] if name.startswith(words) else values for name, values in record.items()}


def read(robot, record):
    return read_recording(record, read_column_map(None, list(robot.actuated_names)), robot)


@pytest.mark.parametrize("words", [("q.", "effort."), ("q.",)])
def test_samples_that_are_held_are_used_once(geared, words):
    record = recorded()
    data = read(geared, holding(record, np.arange(0, 3000, 5), words))
    for word, values in (("q", data.position), ("effort", data.effort)):
        assert values == pytest.approx(np.stack([record[f"{word}.motor"], record[f"{word}.elbow"]], 1)[::5], rel=1e-12)
    assert data.t == pytest.approx(record["t"][::5]) and "one of 5 rows" in data.warnings[0]
    assert ("all values" in data.warnings[0]) == (len(words) == 2)
    assert not read(geared, record).warnings
    line = 2 * np.pi / 400  # of an encoder of the elbow: it stands for many rows, and efforts do not
    assert len(read(geared, record | {"q.elbow": line * np.round(record["q.elbow"] / line)}).t) == 3000


def test_samples_at_different_times_are_refused(geared):
    record = recorded()
    slow = holding(holding(record, np.arange(0, 3000, 5), ("q.",)), np.r_[0, np.arange(2, 3000, 5)], ("effort.",))
    with pytest.raises(parflex.InputError, match=r"one of 5 rows, .* at other instants"):
        read(geared, slow)


SAMPLES = 3001


@pytest.fixture(scope="module")
def wandering():
    rng = np.random.default_rng(5)
    return 3 + np.cumsum(rng.standard_normal((SAMPLES, 2, 3)), axis=0)


@pytest.mark.parametrize("band", [0.01, 0.06, 0.4])
def test_the_low_pass_of_positions_is_that_of_scipy_with_long_ends(wandering, band):
    sections = scipy.signal.butter(ORDER, band, output="sos")
    theirs = scipy.signal.sosfiltfilt(sections, wandering, axis=0, padlen=SAMPLES - 1)
    assert np.abs(butterworth(wandering, band) - theirs).max() < 1e-9  # rounding of sums of 1e4 samples of size 100


@pytest.mark.parametrize("every", [2, 7, 33])
def test_decimation_keeps_samples_of_the_low_pass_of_scipy(wandering, every):
    sections = scipy.signal.cheby1(8, 0.05, 0.8 / every, output="sos")
    theirs = scipy.signal.sosfiltfilt(sections, wandering, axis=0, padlen=SAMPLES - 1)[::every]
    # what is before the reflected part is forgotten to 1e-8 of values of 100
    assert np.abs(decimated(wandering, every) - theirs).max() < 1e-6


def test_short_records_are_reflected_as_often_as_the_filter_remembers():
    line = np.linspace(2, 5, 40)[:, None] * [1.0, -2.0]
    assert np.abs(butterworth(line, 0.02) - line).max() < 1e-9
    even = 10 ** (-0.05 / 10)  # of both passes: an even order has its ripple at rest
    assert np.abs(decimated(line, 10) - even * line[::10]).max() < 1e-6


@pytest.mark.parametrize("size", [255, 512, 9999])
def test_the_mean_spectrum_is_that_of_welch(wandering, size):
    f, power = scipy.signal.welch(wandering, 500.0, nperseg=min(size, SAMPLES), axis=0)
    found = mean_spectrum(wandering, 1 / 500.0, size)
    assert np.abs(found[0] - f).max() < 1e-9
    assert np.abs(found[1] - power).max() < 1e-12 * power.max()
