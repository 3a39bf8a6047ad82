"""Poses beyond a fold of the coordinates that specify them, which no path along these coordinates reaches.

A pose by motors and coordinates of the platform together closes on both sides of a fold. Home determines the side as
long as a pose exists there; otherwise the legs alone determine the working mode, as for a single pose.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.newton import ClosurePart
from parflex.maps.closed_rows import FLAT, OK, SINGULAR

if TYPE_CHECKING:
    from parflex.maps.positions import PositionSolver

Array = np.ndarray
MANY, FEW_STARTS = 1024, 16  # rows up to which all starts are tried that single poses have, and how many of more


def beyond_folds(solver: PositionSolver, values: Array, own: Array, q: Array, states: Array) -> None:
    """Poses that were not reached on the side of home, in place: the nearest ones on the sides of its legs."""
    folding = [one for one in solver.steppers if one.folds]
    lost = np.flatnonzero(solver.lost(states))
    if not folding or not len(lost):
        return
    solver, geometry, assembler = solver.for_ways(), solver.geometry, solver.robot.assembler
    moved = np.unique(np.concatenate([one.columns for one in folding]))
    positions = geometry.kept[moved]
    turning, counted = (np.isin(positions, sorted(one)) for one in (assembler.periodic, assembler.counted))
    rates = [
        k for link in geometry.robot.tree.links if link.q.start in positions for k in range(link.v.start, link.v.stop)
    ]
    starts = assembler.starts(geometry.robot.home, ClosurePart("", (), np.array(rates, dtype=int)))
    best, every = np.full(len(lost), np.inf), np.arange(len(lost))
    for start in islice(starts, None if len(lost) <= MANY else FEW_STARTS):
        begin = np.repeat(start[geometry.kept][None], len(lost), axis=0)
        rows = solver.given.start(values[lost], geometry.rows(begin, own[lost]))
        good = solver.closed(rows)
        singular, strict = np.zeros(len(lost), dtype=bool), np.ones(len(lost), dtype=bool)
        with np.errstate(invalid="ignore"):
            for one in (*solver.steppers, *solver.judges):
                side = one.judge(rows, every)[1]
                if one.folds:
                    strict &= side > 0
                else:
                    good &= side > 0
                    singular |= side < FLAT * one.size
        off = rows[:, moved] - geometry.home[moved]
        turns = np.where(turning, np.round(off / (2 * np.pi)), 0.0)
        rows[:, moved] -= 2 * np.pi * turns
        off = (off - 2 * np.pi * turns) / np.where(turning | counted, 1.0, geometry.tree.length)
        far = np.abs(off).max(axis=1) + np.where(strict, 0.0, 1e3)  # the side of home first
        nearer = good & (far < best)
        best[nearer] = far[nearer]
        q[lost[nearer]], states[lost[nearer]] = rows[nearer], np.where(singular[nearer], SINGULAR, OK)
