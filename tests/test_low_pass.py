"""Low-passes of records beside those of scipy.signal, which shares no code with them."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.signal

from parflex.identification.low_pass import ORDER, butterworth, decimated, mean_spectrum

SAMPLES = 3001


@pytest.fixture(scope="module")
def wandering():
    """Columns that are neither zero nor periodic at their ends."""
    rng = np.random.default_rng(5)
    return 3 + np.cumsum(rng.standard_normal((SAMPLES, 2, 3)), axis=0)


@pytest.mark.parametrize("band", [0.01, 0.06, 0.4])
def test_the_low_pass_of_positions_is_that_of_scipy_with_long_ends(wandering, band):
    sections = scipy.signal.butter(ORDER, band, output="sos")
    theirs = scipy.signal.sosfiltfilt(sections, wandering, axis=0, padlen=SAMPLES - 1)
    # rounding of sums of 1e4 samples of size 100
    assert np.abs(butterworth(wandering, band) - theirs).max() < 1e-9


@pytest.mark.parametrize("every", [2, 7, 33])
def test_decimation_keeps_samples_of_the_low_pass_of_scipy(wandering, every):
    theirs = scipy.signal.sosfiltfilt(
        scipy.signal.cheby1(8, 0.05, 0.8 / every, output="sos"), wandering, axis=0, padlen=SAMPLES - 1
    )[::every]
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


def test_identify_does_without_scipy_signal():
    """Its import takes a third of the time of a record of a hexapod."""
    code = "import sys, parflex.identification.identify; sys.exit('scipy.signal' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
