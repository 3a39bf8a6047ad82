"""Pair measured modes with modes of the model, by number or by frequency and shape, and track the pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize

from parflex.updating.measured import MeasuredMode
from parflex.updating.modes import PoseModes

Array = np.ndarray
BEYOND = 4  # modes that are computed beyond the highest one that is measured
FREQUENCY_WIDTH = 0.15  # of a frequency: what numbers that are not known well do to it
MAC_WIDTH = 0.25
ALONE = 9.0  # cost above which a measured mode has no partner: 57 % of frequency, or a MAC of 0.25


def modes_needed(measured: Sequence[MeasuredMode]) -> int:
    """Modes of the model that are computed."""
    return max(max((row.mode or 0 for row in measured), default=0), len(measured)) + BEYOND


def paired_modes(
    measured: Sequence[MeasuredMode], model: PoseModes, followed: Sequence[int] | None = None
) -> list[int]:
    """Modes of the model, from 0, or -1 for none: by number, others so that frequencies and shapes fit best.

    `followed` are partners of the numbered ones in a model that was updated.
    """
    numbered = followed or [(row.mode or 0) - 1 for row in measured]
    pairs = [mode if row.mode is not None else -1 for row, mode in zip(measured, numbered, strict=True)]
    rows = [k for k, row in enumerate(measured) if row.mode is None]
    left = [k for k in range(len(model.frequencies)) if k not in pairs]
    if rows and left:
        costs = [[_cost(measured[k], model, mode) for mode in left] + [ALONE] * len(rows) for k in rows]
        for row, column in zip(*scipy.optimize.linear_sum_assignment(np.array(costs)), strict=True):
            pairs[rows[row]] = left[column] if column < len(left) else -1
    return pairs


def _cost(row: MeasuredMode, model: PoseModes, mode: int) -> float:
    """What it takes to pair a measured mode with one of the model: squared distances over usual ones."""
    cost = (np.log(row.frequency / model.frequencies[mode]) / FREQUENCY_WIDTH) ** 2
    return float(cost + ((1 - model.mac(row.shape, mode)) / MAC_WIDTH) ** 2 if len(row.shape) > 1 else cost)


def same_pairs(pairs: Sequence[int], other_pairs: Sequence[int], model: PoseModes) -> bool:
    """Whether two lists of partners are alike; equal modes count as one."""
    return all(
        first == second or (first >= 0 and second >= 0 and second in model.equal(first))
        for first, second in zip(pairs, other_pairs, strict=True)
    )


def followed_pairs(pairs: Sequence[int], before: PoseModes, now: PoseModes) -> tuple[list[int], list[float]]:
    """The same modes of a changed model, by the likeness of their shapes, with it; of equal modes that of all."""
    all_macs, rows = now.likeness(before), list(pairs)
    chosen, columns = scipy.optimize.linear_sum_assignment(-all_macs[rows])
    places = dict(zip(chosen, columns, strict=True))
    partners = _in_order(rows, [int(places[k]) for k in range(len(rows))], now)
    macs = [
        max(float(all_macs[row, now.equal(column)].sum()), float(all_macs[before.equal(row), column].sum()))
        for row, column in zip(rows, partners, strict=True)
    ]
    return partners, [min(mac, 1.0) for mac in macs]


def _in_order(rows: Sequence[int], partners: Sequence[int], now: PoseModes) -> list[int]:
    """The same partners, where those among equal modes come in the order of what they follow.

    Which of equal modes a shape is most like is rounding, and errors that a mode has at all poses go by its number.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for k in sorted(range(len(rows)), key=lambda k: rows[k]):
        groups.setdefault(tuple(now.equal(partners[k])), []).append(k)
    ordered, taken = list(partners), set(partners)
    for equal, members in groups.items():
        free = sorted(({*equal} - taken) | {partners[k] for k in members})
        for k, mode in zip(members, free, strict=False):
            ordered[k] = int(mode)
        taken |= {ordered[k] for k in members}
    return ordered
