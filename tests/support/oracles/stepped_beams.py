"""Straight beams in steps, in the plane, by polynomials of high degree on each step (Ritz): no elements.

Fields on a step are Legendre series; continuity and supports are conditions on their coefficients, and what these
leave free is an eigenvalue problem. Deflection w, turn of the section th, and stretch u stand apart in a straight beam:
int EI th'^2 + kGA (w' - th)^2 + N w'^2 against rho A w^2 + rho I th^2, with th = w' where shear is rigid.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.polynomial import legendre

DEGREE = 18  # of each field on each step: modes with three waves on it are exact to 1e-9


@dataclass(frozen=True)
class Step:
    """A part of the beam with constant section."""

    length: float
    EA: float
    EI: float
    mass: float  # per length
    inertia: float = 0.0  # rho I, against turning
    shear: float = np.inf  # k G A


HELD = {  # at the start and at the end: of stretch u, deflection w, turn th
    "clamped-free": ("u w th", ""),
    "pinned": ("u w", "w"),
    "clamped-pinned": ("u w th", "w"),
    "clamped-clamped": ("u w th", "u w th"),
}


def _values(length: float, x: np.ndarray, order: int) -> np.ndarray:
    """Derivatives of the Legendre polynomials of a step at the places x in [-1, 1], one row a polynomial."""
    rows = []
    for k in range(DEGREE + 1):
        series = np.zeros(DEGREE + 1)
        series[k] = 1.0
        rows.append(legendre.legval(x, legendre.legder(series, order) if order else series) * (2 / length) ** order)
    return np.array(rows)


def _solved(K: np.ndarray, M: np.ndarray, conditions: list[np.ndarray]) -> np.ndarray:
    rows = np.array([row / np.abs(row).max() for row in conditions])
    Z = scipy.linalg.null_space(rows, rcond=1e-11)
    return scipy.linalg.eigh(Z.T @ K @ Z, Z.T @ M @ Z, eigvals_only=True)


def frequencies(
    steps: list[Step], ends: str, count: int, tension: Callable[[float], float] = lambda x: 0.0, tip: float = 0.0
) -> np.ndarray:
    """The lowest frequencies in Hz; `tension` at x from the start, `tip` a point mass (kg) at the end."""
    found = np.concatenate([_stretching(steps, ends, tip), _bending(steps, ends, tension, tip)])
    return np.sqrt(np.sort(found)[:count]) / (2 * np.pi)


def _stretching(steps: list[Step], ends: str, tip: float) -> np.ndarray:
    n = DEGREE + 1
    size = n * len(steps)
    K, M, x, weights = np.zeros((size, size)), np.zeros((size, size)), *legendre.leggauss(DEGREE + 2)
    for k, step in enumerate(steps):
        own = slice(k * n, (k + 1) * n)
        u, slope, w = _values(step.length, x, 0), _values(step.length, x, 1), weights * step.length / 2
        K[own, own], M[own, own] = step.EA * (slope * w) @ slope.T, step.mass * (u * w) @ u.T
    first, last = _at(steps, 0, 0, -1, size), _at(steps, len(steps) - 1, 0, 1, size)
    M += tip * np.outer(last, last)
    held = [row for word, row in zip(HELD[ends], (first, last), strict=True) if "u" in word.split()]
    joints = [_at(steps, k, 0, 1, size) - _at(steps, k + 1, 0, -1, size) for k in range(len(steps) - 1)]
    return _solved(K, M, held + joints)


def _at(steps: list[Step], k: int, order: int, side: int, size: int, offset: int = 0) -> np.ndarray:
    row, n = np.zeros(size), DEGREE + 1
    row[offset + k * n : offset + (k + 1) * n] = _values(steps[k].length, np.array([float(side)]), order)[:, 0]
    return row


def _bending(steps: list[Step], ends: str, tension: Callable[[float], float], tip: float) -> np.ndarray:
    """Rigid against shear as w alone with continuous slopes; else w and th apart."""
    n, soft = DEGREE + 1, np.isfinite(steps[0].shear)
    half = n * len(steps)
    size = 2 * half if soft else half
    K, M, x, weights = np.zeros((size, size)), np.zeros((size, size)), *legendre.leggauss(DEGREE + 4)
    start = 0.0
    for k, step in enumerate(steps):
        w, slope, turn = np.zeros((3, size, len(x)))
        curvature = np.zeros((size, len(x)))
        own = slice(k * n, (k + 1) * n)
        other = slice(half + k * n, half + (k + 1) * n) if soft else own
        w[own], slope[own] = _values(step.length, x, 0), _values(step.length, x, 1)
        turn[other], curvature[other] = (_values(step.length, x, order) for order in ((0, 1) if soft else (1, 2)))
        scale = weights * step.length / 2
        pull = np.array([tension(start + step.length * (place + 1) / 2) for place in x])
        K += step.EI * (curvature * scale) @ curvature.T + (slope * scale * pull) @ slope.T
        if soft:
            K += step.shear * ((slope - turn) * scale) @ (slope - turn).T
        M += step.mass * (w * scale) @ w.T + step.inertia * (turn * scale) @ turn.T
        start += step.length
    ways = {"w": (0, 0), "th": (0, half) if soft else (1, 0)}
    edge = {side: {word: _at(steps, k, order, side, size, offset) for word, (order, offset) in ways.items()}
            for k, side in ((0, -1), (len(steps) - 1, 1))}  # fmt: skip
    M += tip * np.outer(edge[1]["w"], edge[1]["w"])
    held = [
        edge[side][word]
        for side, words in zip((-1, 1), HELD[ends], strict=True)
        for word in words.split()
        if word != "u"
    ]
    for k in range(len(steps) - 1):
        for order, offset in ways.values():
            held.append(_at(steps, k, order, 1, size, offset) - _at(steps, k + 1, order, -1, size, offset))
    return _solved(K, M, held)
