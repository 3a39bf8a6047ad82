"""A gain, a sign or a zero of one motor that one of several records has alone, as where a drive was set up anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.doubts.by_file.hypotheses import turning
from parflex.identification.doubts.likely_causes import LIKE, RecordedRows, Trial
from parflex.identification.doubts.other_positions import OtherPositions
from parflex.identification.estimates.least_squares import solution
from parflex.identification.prepared import joined, rows_of_record

Array = np.ndarray
LEAST = 0.03  # of a gain: less is calibration
ROUNDS = 4  # until a gain no longer changes
NEAREST, FARTHEST = 5e-3, 0.5  # rad, or typical lengths: less is calibration, slopes do not hold for more


def trials_of_one_record(rows: RecordedRows, other: OtherPositions) -> list[Trial]:
    """The best of them, and those that explain records alike, as one trial; none where motors are spare."""
    if len(rows.used) < 2 or rows.regressor.spare:
        return []
    tried = sorted((*_gains(rows), *_zeros(rows, other)))
    alike = [words for left, words in tried if left <= LIKE * tried[0][0]]
    return [(tried[0][0], ", or ".join(alike) + ": check that record")] if tried else []


def _of_record(rows: RecordedRows, record: int) -> Array:
    """One at the instants of a record, and zero at others."""
    counts = [len(part.y) for part in rows.parts]
    return np.repeat(np.arange(len(counts)) == record, counts).astype(float)[:, None]


def _gains(rows: RecordedRows) -> Iterator[Trial]:
    for record, used in enumerate(rows.used):
        for k, motor in enumerate(rows.regressor.rows):
            own = rows.effort * _of_record(rows, record) * (np.arange(rows.effort.shape[1]) == k)
            gain = 1.0
            for _ in range(ROUNDS):  # noise of efforts makes it too small by what it is off
                effort = rows.effort + (gain - 1) * own
                gain *= 1 + float(rows.missed(effort, -gain * own[:, :, None])[1][0])
            if abs(gain - 1) > LEAST and gain:
                left, _ = rows.missed(rows.effort + (gain - 1) * own)
                yield left, f"with {gain:.4g} times the efforts of '{motor}' in {Path(used.name).name} alone"


def _zeros(rows: RecordedRows, other: OtherPositions) -> Iterator[Trial]:
    """The zero of a motor in one record that is followed to where it explains most: that which slopes say is best."""
    units, turns = other.units, turning(rows.regressor)

    def slopes(where: OtherPositions, record: int) -> list[Array]:
        """By the parameters of the other records, in which nothing is wrong then."""
        others = [part for k, part in enumerate(where.parts) if k != record]
        return where.slopes(solution(joined(others), "wls")[0])

    tried = [
        (rows.missed(more=(way * _of_record(rows, record))[:, :, None]), record, motor)
        for record in range(len(rows.used)) for motor, way in enumerate(slopes(other, record))
    ]  # fmt: skip
    (_, (offset,)), record, motor = min(tried, key=lambda one: one[0][0])
    own = np.arange(len(units)) == motor
    try:
        for _ in range(ROUNDS):
            if not NEAREST * units[motor] < abs(offset) < FARTHEST * units[motor]:
                return
            there = _shifted(other, record, offset * own)
            moved = RecordedRows(rows.regressor, there.used, there.parts, rows.choice)
            way = slopes(there, record)[motor]
            left, (more,) = moved.missed(more=(way * _of_record(rows, record))[:, :, None])
            offset += more
    except ParflexError:
        return
    name, unit = rows.regressor.robot.actuated_names[motor], "rad" if turns[motor] else "m"
    yield left, f"with {offset:.3g} {unit} more of '{name}' in {Path(rows.used[record].name).name} alone"


def _shifted(other: OtherPositions, record: int, offset: Array) -> OtherPositions:
    """The same where encoders of one record have other zeros."""
    used, parts = list(other.used), list(other.parts)
    used[record] = replace(used[record], position=used[record].position + offset, reference=None)
    whole = rows_of_record(other.regressor, other.base, used[record], other.choice)[1]
    parts[record] = replace(whole.columns(other.told), used=parts[record].used)
    return replace(other, used=used, parts=parts)
