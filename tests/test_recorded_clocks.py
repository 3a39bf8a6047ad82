"""Times of records that are not regular: jitter of stamps, samples at changing times, drifts, lost samples."""

from __future__ import annotations

import numpy as np
import pytest
from support.recordings import slide

import parflex
from parflex import InputError

STEP = 1e-3  # s


def moved(t, seed=0):
    """A mass of 8 kg with friction, by hand, at any times; noise of 1 um and of 0.02 N."""
    rng = np.random.default_rng(seed)
    x = 0.1 * np.sin(2 * t) + 0.05 * np.sin(7 * t)
    v = 0.2 * np.cos(2 * t) + 0.35 * np.cos(7 * t)
    a = -0.4 * np.sin(2 * t) - 2.45 * np.sin(7 * t)
    force = 8 * a + 12 * v + 3 * np.sign(v)
    noise = rng.standard_normal((2, len(t)))
    return {"q.axis": x + 1e-6 * noise[0], "effort.axis": force + 0.02 * noise[1]}


def jittered(share):
    """A regular clock, and stamps that are off by up to this share of a step."""
    regular = np.arange(4000) * STEP
    return regular, regular + share * STEP * np.random.default_rng(3).uniform(-1, 1, len(regular))


def identified(folder, stamps, samples):
    return parflex.identify(slide(folder), {"t": stamps, **moved(samples)}, cutoff=50)


@pytest.mark.parametrize("share", [0.01, 0.2])
@pytest.mark.parametrize("follow", [False, True])
def test_jitter_of_stamps_moves_nothing(tmp_path, share, follow):
    regular, stamps = jittered(share)
    found = identified(tmp_path, stamps, stamps if follow else regular)
    one, right = found.parameters["M[axis]"], identified(tmp_path, regular, regular).parameters["M[axis]"]
    assert abs(one.value - right.value) < 2 * right.deviation  # interpolation leaves other noise
    (said,) = [text for text in found.steps if "off a regular clock" in text]
    assert f"up to {100 * share:.2g} % of a step" in said
    words = "samples follow them" if follow else "samples are regular"
    assert words in said  # 10 us at 0.4 m/s are 4 um, which noise of 1 um shows
    assert one.deviation < 1.2 * right.deviation  # as of regular samples, but for what interpolation does to noise


def test_jitter_below_the_noise_is_left(tmp_path):
    regular, stamps = jittered(0.01)
    coarse = moved(stamps)
    coarse["q.axis"] = coarse["q.axis"] + 1e-3 * np.random.default_rng(1).standard_normal(len(stamps))
    found = parflex.identify(slide(tmp_path), {"t": stamps, **coarse}, cutoff=50)
    assert any("which noise of positions hides" in text for text in found.steps)
    assert not any("regular clock" in text for text in identified(tmp_path, regular, regular).steps)


def lost(stamps):
    return np.delete(stamps, 1700)


def drifting(stamps):
    return stamps + 0.01 * (stamps - 2.0) ** 2 / 4  # steps from 0.99 to 1.01 ms


def waiting(stamps):
    """Of a loop that waits after each sample: errors of steps add up."""
    return stamps[0] + np.cumsum(STEP * (1 + 0.3 * np.random.default_rng(0).uniform(-1, 1, len(stamps))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lost, "samples are missing: a gap of 0.00[12]"),
        (drifting, "the clock drifts: steps of time are 0.000991"),
        (waiting, "off a regular clock|the clock drifts"),
    ],
)  # fmt: skip
def test_times_that_matter_are_refused(tmp_path, change, message):
    stamps = change(jittered(0.01)[1])
    with pytest.raises(InputError, match=message):
        identified(tmp_path, stamps, stamps)
