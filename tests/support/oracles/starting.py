"""Rates at the start of a led robot and impulses of its motors: minima under linear conditions, with multipliers."""

from collections.abc import Mapping, Sequence

import numpy as np


def least_elastic_rates(
    M: np.ndarray, A: np.ndarray, names: Sequence[str], given: Mapping[str, float], elastic: Sequence[str]
) -> tuple[np.ndarray, float]:
    """Elastic rates of least 1/2 ed^T M_ee ed among those that closures and given rates allow, and that energy."""
    own = [names.index(name) for name in elastic]
    W = np.zeros_like(M)
    W[np.ix_(own, own)] = M[np.ix_(own, own)]
    rates = _constrained(W, np.zeros(len(M)), A, names, given)
    ed = rates[own]
    return ed, float(0.5 * ed @ M[np.ix_(own, own)] @ ed)


def after_impulse(
    M: np.ndarray, A: np.ndarray, names: Sequence[str], given: Mapping[str, float], before: np.ndarray
) -> np.ndarray:
    """All rates behind an impulse that gives motors their new rates: M (after - before) = A^T r + impulses."""
    return _constrained(M, M @ before, A, names, given)


def _constrained(
    W: np.ndarray, right: np.ndarray, A: np.ndarray, names: Sequence[str], given: Mapping[str, float]
) -> np.ndarray:
    """Minimise 1/2 x^T W x - right^T x under A x = 0 and given entries of x; the shortest of several such x."""
    rows = np.eye(len(W))[[names.index(name) for name in given]].reshape(-1, len(W))
    C = np.vstack([A, rows])
    system = np.block([[W, C.T], [C, np.zeros((len(C), len(C)))]])
    values = np.concatenate([right, np.zeros(len(A)), list(given.values())])
    size = np.sqrt(np.abs(system).max(axis=1))  # rows of kilograms beside rows of metres
    size[size == 0] = 1.0
    solution = np.linalg.lstsq(system / np.outer(size, size), values / size, rcond=1e-13)[0] / size
    return solution[: len(W)]
