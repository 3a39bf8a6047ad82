"""Positions that an encoder rounds: found from the values themselves, as a staircase hides from spectra.

A motor that passes a line at most every second sample leaves a staircase. Its error is as large as ever, up to half a
line, but lies below the rate of lines: the highest frequencies, which tell white noise, have next to nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.records import Record

Array = np.ndarray
SAME = 1e-9  # of the largest position: nearer samples are one line
SLOWEST = 2.0  # samples from line to line, from which a staircase is seen: below, its error is as good as white
LOW = 0.05  # of the gaps between values, below which they may be those of spikes that were replaced


@dataclass(frozen=True, eq=False, repr=False)
class Staircase(Record):
    """Of a motor: the line of its encoder, and the samples from line to line where it moves."""

    line: float
    samples: float

    @property
    def power(self) -> float:
        """Of the error at most: it is never larger than half a line."""
        return self.line**2 / 4

    @property
    def as_white(self) -> float:
        """Deviation of white noise with as much power at each frequency below the rate of lines."""
        return float(self.line / np.sqrt(12) * np.sqrt(self.samples / 2))


def staircase(position: Array) -> Staircase | None:
    """Of one motor's positions; None where they have no lines, or pass one at nearly every sample.

    Rests do not count, as they have one long interval, nor do encoders that flicker, which hides lines.
    """
    near = SAME * max(float(np.abs(position).max()), 1e-12)
    jumps = np.abs(np.diff(position))
    passed = np.flatnonzero(jumps > near)
    if len(passed) < 2:
        return None
    samples = float(np.median(np.diff(passed)))
    gaps = np.diff(np.unique(position))
    gaps = gaps[gaps > near]
    line = float(np.quantile(gaps, LOW, method="higher")) if len(gaps) else 0.0
    several = float(np.median(jumps[passed])) > 1.5 * line  # lines at once: no staircase, but values held for a while
    return None if samples < SLOWEST or several else Staircase(line, samples)


def rounded_away(position: Array) -> Array:
    """Deviations of white noise that is as strong as what encoders round away, of each motor; zero where none shows.

    At the frequencies of a motion the error of a staircase has less, so that this is the most that it can do.
    """
    found = [staircase(column) for column in position.T]
    return np.array([0.0 if one is None else one.as_white for one in found])
