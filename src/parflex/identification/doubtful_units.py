"""Positions whose unit is doubtful: loops do not close, or efforts by the file are far off, and in another unit not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.base_columns import BaseColumns
from parflex.identification.estimates.least_squares import EffortRows
from parflex.identification.filtering import FilterChoice, smoothed
from parflex.identification.identified import share
from parflex.identification.measured_files import Measurement
from parflex.identification.prepared import rows_of_record
from parflex.identification.regressors import Regressor

Array = np.ndarray
DEGREE, MILLIMETRE = np.pi / 180, 1e-3
FAR = 0.5  # of the efforts, by which those of the file are off where something is wrong
NEARER = 0.5  # of that, where another unit explains it
WORDS = {DEGREE: "degrees", MILLIMETRE: "millimetres"}


def _units(regressor: Regressor) -> list[tuple[float, Array]]:
    """Other units, and factors of all motors: of those that turn, or of those that slide."""
    tree = regressor.robot.tree
    turning = np.array([tree.links[tree.link_of_rate[k]].joint.unit == "rad" for k in regressor.robot.actuated])
    both = ((DEGREE, turning), (MILLIMETRE, ~turning))
    return [(unit, np.where(those, unit, 1.0)) for unit, those in both if those.any()]


def _said(unit: float) -> str:
    return f"if they are {WORDS[unit]}, give gain = {unit:.9g}"


def unit_that_closes(regressor: Regressor, record: Measurement, choice: FilterChoice) -> str | None:
    """Of positions at which loops do not close: in which unit they do."""
    for unit, factors in _units(regressor):
        try:
            regressor.closed(smoothed(record, choice, record.in_other_units(factors)).position)
        except ParflexError:
            continue
        return f"loops close where the positions are {WORDS[unit]}: {_said(unit)}"
    return None


def unit_doubts(
    regressor: Regressor, base: BaseColumns, used: Sequence[Measurement],
    found: Sequence[tuple[Array, EffortRows, Array]], choice: FilterChoice,
) -> list[str]:  # fmt: skip
    """Warnings about records whose efforts the file explains only with positions in another unit."""
    told = []
    for record, own in zip(used, found, strict=True):
        off = _off(own)
        if record.warnings or not off > FAR:
            continue  # of what is said already, the cause is clear
        for unit, factors in _units(regressor):
            other = replace(record, position=record.in_other_units(factors))
            try:
                there = _off(rows_of_record(regressor, base, other, choice))
            except ParflexError:
                continue
            if there < NEARER * off:
                told.append(
                    f"{Path(record.name).name}: efforts by the numbers of the file are off by {100 * off:.3g} %, and "
                    f"by {100 * there:.3g} % with positions in {WORDS[unit]}: {_said(unit)}"
                )
                break
    return told


def _off(found: tuple[Array, EffortRows, Array]) -> float:
    """How far efforts by the numbers of the file are off."""
    _, rows, by_file = found
    return share(rows.mask * (rows.y - by_file), rows.mask * rows.y)
