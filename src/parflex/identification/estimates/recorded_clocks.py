"""Clocks of records: stamps about a regular clock, and whether samples are regular or follow their stamps.

Stamps of logging software are late by changing times though samples are regular; a loop that waits samples at changing
times, and its stamps are right. Samples that follow their stamps differ from regular ones by rate times lateness. That
is as rough as the stamps are, and the motion is smooth: fifth differences of the positions tell which it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from parflex.errors import InputError
from parflex.records import Record

Array = np.ndarray
GAP = 1.5  # of the usual step: a longer one is a gap
EVEN = 1e-3  # of a step: stamps that are nearer to a regular clock are regular
FARTHEST = 0.5  # of a step, by which stamps may be off a regular clock: beyond, it is not known which sample is which
PARTS = 10  # of a record, in which the mean lateness is followed
DRIFT = 1e-3  # of the usual step, by which that of a part may differ: accelerations are then off by twice that
ROUGH = 5  # differences, of which a smooth motion leaves nothing
BESIDE = 4  # samples before and behind, of which a rate is taken
FOLLOW = 0.5  # of the lateness, from which samples follow their stamps rather than a regular clock
SEEN = 0.1  # deviation of that share, with which noise of positions hides it


@dataclass(frozen=True, eq=False, repr=False)
class RecordedClock(Record):
    """The regular clock of a record, and what its stamps are late by.

    Attributes
    ----------
    regular : Array
        Times with equal steps (s).
    late : Array
        Stamps beside them (s).
    """

    regular: Array
    late: Array

    @property
    def jitter(self) -> float:
        """How far stamps are off at most, in steps."""
        return float(np.abs(self.late).max() / (self.regular[1] - self.regular[0]))


def recorded_clock(t: Array) -> RecordedClock:
    """The clock of stamps that grow; refuses gaps, drifts and stamps that may be those of other samples."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    k = int(np.argmax(steps))
    if steps[k] > GAP * usual:
        raise InputError(
            f"samples are missing: a gap of {steps[k]:.4g} s at t = {t[k]:.6g} s, where steps are {usual:.4g} s",
            key="time", value=float(t[k]), hint="give the parts before and behind the gap as two records",
        )  # fmt: skip
    place = np.arange(len(t)) - (len(t) - 1) / 2
    step = float(place @ t) / float(place @ place)
    regular = t.mean() + step * place
    edges = np.linspace(0, len(t), PARTS + 1).astype(int)
    slices = [slice(a, b) for a, b in pairwise(edges)]
    mean = np.array([(t - regular)[part].mean() for part in slices])
    at = np.array([place[part].mean() for part in slices])
    rates = 1 + np.diff(mean) / np.diff(at) / step
    if np.ptp(mean) > FARTHEST * step and np.abs(rates - 1).max() > DRIFT:
        raise InputError(
            f"the clock drifts: steps of time are {step * rates.min():.6g} s in one part of the record and "
            f"{step * rates.max():.6g} s in another", key="time", value=usual,
            hint="where times are right, interpolate the record to equal steps; else repair its clock",
        )  # fmt: skip
    found = RecordedClock(regular, t - regular - np.interp(place, at, mean) * (np.ptp(mean) > FARTHEST * step))
    if found.jitter > FARTHEST:
        raise InputError(
            f"steps of time differ between {steps.min():.4g} and {steps.max():.4g} s, and times are up to "
            f"{found.jitter:.2g} steps off a regular clock", key="time", value=usual,
            hint="where times are right, interpolate the record to equal steps; else give those of a regular clock",
        )  # fmt: skip
    return found


def followed_share(clock: RecordedClock, positions: Array) -> tuple[float, float]:
    """Which share of the lateness of stamps samples have, and its deviation: 1 where they follow, 0 where regular."""
    step = float(clock.regular[1] - clock.regular[0])
    rate = np.zeros_like(positions)
    rate[BESIDE:-BESIDE] = (positions[2 * BESIDE :] - positions[: -2 * BESIDE]) / (2 * BESIDE * step)
    inside = slice(BESIDE, len(positions) - BESIDE)
    along = np.diff(rate[inside] * clock.late[inside, None], ROUGH, axis=0)
    rough = np.diff(positions[inside], ROUGH, axis=0)
    share, spread = 0.0, np.inf
    for _ in range(3):  # motors count by what is left of them
        power = np.maximum(((rough - share * along) ** 2).mean(axis=0), 1e-300)
        size = float((along**2 / power).sum())
        if not size:
            return 0.0, np.inf
        share, spread = float((along * rough / power).sum()) / size, 1 / np.sqrt(size)
    return share, spread


def evened(clock: RecordedClock, parts: dict[str, Array]) -> tuple[dict[str, Array], str]:
    """Columns at equal steps of time, and what was done to stamps that are not, in words."""
    if not clock.jitter > EVEN:
        return parts, ""
    share, spread = followed_share(clock, parts["position"])
    off = f"times are up to {100 * clock.jitter:.2g} % of a step off a regular clock"
    if spread > SEEN:
        return parts, f"{off}, which noise of positions hides: equal steps are taken"
    if share < FOLLOW:
        return parts, f"{off}, and samples are regular (they have {100 * share:.2g} % of it): equal steps are taken"
    from scipy.interpolate import CubicSpline

    even = {word: CubicSpline(clock.regular + clock.late, values)(clock.regular) for word, values in parts.items()}
    said = f"{off}, and samples follow them (they have {100 * share:.2g} % of it): interpolated to equal steps"
    return even, said
