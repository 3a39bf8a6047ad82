"""Columns of cubic elements under a normal force, with length and stiffness of 1."""

import numpy as np

from .beam_element import bending

HELD = {  # at the first and at the second end: 0 deflection, 1 slope
    "pinned": ((0,), (0,)),
    "clamped-free": ((0, 1), ()),
    "clamped-pinned": ((0, 1), (0,)),
    "clamped-clamped": ((0, 1), (0, 1)),
}


def buckling(elements: int, ends: str) -> float:
    """The lowest compression, in units of EI / L^2, under which K - P K_G is singular."""
    size, length = 2 * (elements + 1), 1 / elements
    K, K_G = np.zeros((2, size, size))
    for k in range(elements):
        own = np.ix_(range(2 * k, 2 * k + 4), range(2 * k, 2 * k + 4))
        K[own] += bending(length, 1.0, np.inf, 0.0, 0.0)[0]
        K_G[own] += bending(length, 0.0, np.inf, 0.0, 1.0)[1]  # slopes squared, as inertia against turning
    first, last = HELD[ends]
    free = np.setdiff1d(np.arange(size), [*first, *(size - 2 + k for k in last)])
    held = np.ix_(free, free)
    return float(1 / np.linalg.eigvals(np.linalg.solve(K[held], K_G[held])).real.max())
