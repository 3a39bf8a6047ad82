"""Efforts of redundant motors in programs: the projection of theory (48) by arithmetic without branches.

Numbers and symbols take the same code. Signs select between candidates, each of which is exact.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np

from parflex.forces.bounded_efforts import OUTSIDE
from parflex.forces.shared_efforts import unbounded_efforts
from parflex.forces.spare_motors import Sharing
from parflex.spatial.linear import scalar_type, solve_positive

Array = np.ndarray
FAR_AWAY, NOTHING = 1e30, 1e-20  # beyond every effort, and below every share; single precision holds both


def program_efforts(A: Array, g: Array, sharing: Sharing) -> Array:
    """Efforts with A tau = g in a program: limits come before the preload, from which they move as little as they must.

    With one spare motor the limits leave a range of its internal direction; with two, all sets of motors that may stand
    at their limits are tried.
    """
    tau = unbounded_efforts(A, g, sharing)
    if not sharing.bounded:
        return tau
    return _in_range(A, tau, sharing) if A.shape[1] == A.shape[0] + 1 else _by_active_sets(A, tau, sharing)


def _limits(sharing: Sharing) -> list[list[tuple[float, Any]]]:
    """Of each motor, its limits: with 1.0 the lowest effort, with -1.0 the highest."""
    assert sharing.lower is not None and sharing.upper is not None
    pairs = zip(sharing.lower, sharing.upper, strict=True)
    return [
        [(side, end) for side, end in ((1.0, low), (-1.0, high)) if not (isinstance(end, float) and np.isinf(end))]
        for low, high in pairs
    ]


def _in_range(A: Array, tau: Array, sharing: Sharing) -> Array:
    n = internal_direction(A)
    size = np.sqrt(n @ n)
    lowest, highest = -FAR_AWAY, FAR_AWAY
    for k, (share, limits) in enumerate(zip(n / size, _limits(sharing), strict=True)):
        way = np.sign(share)
        for side, limit in limits:
            reach, above = side * (limit - tau[k]) / (share * way + NOTHING), (1.0 + side * way) / 2
            lowest = _larger(lowest, above * reach - (1.0 - above) * FAR_AWAY)
            highest = -_larger(-highest, (1.0 - above) * reach - above * FAR_AWAY)
    z = -_larger(-_larger(0.0, lowest), -highest)
    return tau + n / size * z


def _by_active_sets(A: Array, tau: Array, sharing: Sharing) -> Array:
    """The least weighted change that keeps all limits, by every set of at most two motors that stand at theirs.

    P maps forces on motors to the internal efforts that they cause: a set at its limits changes the efforts by P z.
    """
    count = A.shape[1]
    inverse = 1.0 / (np.ones(count) if sharing.weights is None else sharing.weights)
    P = np.diag(inverse) - (A * inverse).T @ solve_positive((A * inverse) @ A.T, A * inverse)
    limits = _limits(sharing)
    scale = tau @ tau + sum(end * end for own in limits for _, end in own)
    best, least = tau, _excess(tau, limits, scale)
    for chosen in (*combinations(range(count), 1), *combinations(range(count), 2)):
        for ends in product(*(limits[k] for k in chosen)):
            d: Array = np.array(
                [end - tau[k] for k, (_, end) in zip(chosen, ends, strict=True)], dtype=scalar_type(tau, P)
            )
            z = _small_solve(P[np.ix_(chosen, chosen)], d)
            found = tau + P[:, chosen] @ z
            others = [[] if k in chosen else own for k, own in enumerate(limits)]
            score = d @ z / scale * np.trace(P) + _excess(found, others, scale)
            better = (1.0 + np.sign(least - score)) / 2
            best, least = better * found + (1.0 - better) * best, better * score + (1.0 - better) * least
    return best


def _excess(tau: Array, limits: list[list[tuple[float, Any]]], scale: Any) -> Any:
    """By how much efforts leave their limits, beyond rounding and so that nothing else weighs as much."""
    most: Any = 0.0
    for effort, own in zip(tau, limits, strict=True):
        for side, end in own:
            most = _larger(most, side * (end - effort))
    return 1e12 * _larger(0.0, most / np.sqrt(scale) - OUTSIDE)


def _small_solve(P: Array, d: Array) -> Array:
    """Z with P z = d for one or two unknowns; far away, not infinite, where P is singular."""
    if len(d) == 1:
        return d / (P[0, 0] + NOTHING)
    det = P[0, 0] * P[1, 1] - P[0, 1] * P[1, 0]
    size = det * np.sign(det) + NOTHING
    return np.array([P[1, 1] * d[0] - P[0, 1] * d[1], P[0, 0] * d[1] - P[1, 0] * d[0]], dtype=d.dtype) / size


def _larger(a: Any, b: Any) -> Any:
    """The larger of two numbers, exactly."""
    first = (1.0 + np.sign(a - b)) / 2
    return first * a + (1.0 - first) * b


def internal_direction(A: Array) -> Array:
    """The internal efforts of one spare motor: minors of A, which vanish together only where A loses its rank."""
    rows, columns = A.shape
    minors: dict[tuple[int, ...], Any] = {(): 1.0}
    for row in range(rows):
        wider: dict[tuple[int, ...], Any] = {}
        for kept in combinations(range(columns), row + 1):
            terms = [
                (-1.0) ** (row + place) * A[row, k] * minors[kept[:place] + kept[place + 1 :]]
                for place, k in enumerate(kept)
            ]
            wider[kept] = sum(terms[1:], terms[0])
        minors = wider
    every = tuple(range(columns))
    return np.array([(-1.0) ** k * minors[every[:k] + every[k + 1 :]] for k in every], dtype=scalar_type(A))
