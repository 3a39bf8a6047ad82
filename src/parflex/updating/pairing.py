"""Pair measured modes with modes of the model, by number or by frequency and shape, and track the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from parflex.records import Record
from parflex.updating.measured import MeasuredMode
from parflex.updating.modes import PoseModes

Array = np.ndarray
BEYOND = 4  # modes that are computed beyond the highest one that is measured
FREQUENCY_WIDTH = 0.15  # of a frequency: what numbers that are not known well do to it
MAC_WIDTH = 0.25
ALONE = 9.0  # cost above which a measured mode has no partner: 57 % of frequency, or a MAC of 0.25
CLOSE = 1.0  # cost by which another mode may be the partner as well


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Record):
    """Modes of the model, from 0, or -1 for none, and modes that would do nearly as well."""

    modes: list[int]
    others: list[list[int]]


@dataclass(frozen=True, eq=False, repr=False)
class PairingState(Record):
    """How measured modes are paired, and with which error of the model."""

    base: dict[str, PoseModes]
    pairs: dict[str, list[int]]
    others: dict[str, list[list[int]]]
    error: Array


def modes_needed(measured: Sequence[MeasuredMode]) -> int:
    """Modes of the model that are computed."""
    return max(max((row.mode or 0 for row in measured), default=0), len(measured)) + BEYOND


def pairing_costs(measured: Sequence[MeasuredMode], model: PoseModes) -> Array:
    """What it takes to pair measured modes (rows) with those of the model: squared distances over usual ones."""
    ratio = np.array([row.frequency for row in measured])[:, None] / model.frequencies[None, :]
    costs = (np.log(ratio) / FREQUENCY_WIDTH) ** 2
    for k, row in enumerate(measured):
        if len(row.shape) > 1:
            macs = np.array([model.mac(row.shape, mode) for mode in range(len(model.frequencies))])
            costs[k] += ((1 - macs) / MAC_WIDTH) ** 2
    return costs


def first_pairs(measured: Sequence[MeasuredMode], model: PoseModes) -> Pairs:
    """By their number; others so that frequencies and shapes fit best."""
    pairs = [row.mode - 1 if row.mode is not None else -1 for row in measured]
    cost = pairing_costs(measured, model)
    return _assigned(pairs, [k for k, mode in enumerate(pairs) if mode < 0], cost, model)


def pair_again(measured: Sequence[MeasuredMode], pairs: Sequence[int], model: PoseModes) -> Pairs:
    """Those without a number once more, by a model that was updated."""
    partners = [mode if row.mode is not None else -1 for row, mode in zip(measured, pairs, strict=True)]
    return _assigned(
        partners, [k for k, row in enumerate(measured) if row.mode is None], pairing_costs(measured, model), model
    )


def same_pairs(pairs: Sequence[int], other_pairs: Sequence[int], model: PoseModes) -> bool:
    """Whether two lists of partners are alike; equal modes count as one."""
    return all(
        first == second or (first >= 0 and second >= 0 and second in model.equal(first))
        for first, second in zip(pairs, other_pairs, strict=True)
    )


def _assigned(pairs: list[int], rows: list[int], cost: Array, model: PoseModes) -> Pairs:
    left = [k for k in range(cost.shape[1]) if k not in pairs]
    if rows and left:
        alone = np.full((len(rows), len(rows)), ALONE)
        chosen = scipy.optimize.linear_sum_assignment(np.hstack([cost[np.ix_(rows, left)], alone]))
        for row, column in zip(*chosen, strict=True):
            pairs[rows[row]] = left[column] if column < len(left) else -1
    others: list[list[int]] = [[] for _ in pairs]
    for k in rows:
        if pairs[k] >= 0:
            near = np.flatnonzero(cost[k] < min(cost[k, pairs[k]] + CLOSE, ALONE))
            others[k] = [int(mode) for mode in near if mode not in model.equal(pairs[k])]
    return Pairs(pairs, others)


def followed_pairs(pairs: Sequence[int], before: PoseModes, now: PoseModes) -> tuple[list[int], list[float]]:
    """The same modes of a changed model, by the likeness of their shapes, with it; of equal modes that of all."""
    all_macs = now.likeness(before)
    rows = list(pairs)
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
