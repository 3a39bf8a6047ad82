"""Amplitudes of modes that the inputs of a run excite.

An input is a piecewise polynomial. A mode w'' + omega^2 w = f has a polynomial response to a polynomial f, exactly; the
rest of its motion is a free vibration whose amplitude changes only where pieces meet. Smooth and slow inputs excite
none, however far the robot deflects; pulses, steep ramps and fast motions do.
"""

from __future__ import annotations

import numpy as np

from parflex.integrators.tableaux import gauss_points
from parflex.trajectories.polynomials import Polynomials

Array = np.ndarray
LONG = 2.0  # rad in a piece: from there on polynomials are divided into what is followed and what is free
NODES, WEIGHTS = gauss_points(8)


def driven_amplitudes(
    push: Polynomials, gains: Array, omega: Array, time: float, sizes: Array, least: float = 0.0, beside: float = 0.0
) -> Array:
    """The largest free vibration of each mode, and how far it moves in all (rows, m), from rest under what acts at 0.

    `gains` (mode, channel) are accelerations of the modes by what acts, `sizes` what one of them moves the robot by.
    Modes that cannot vibrate by `least`, nor by the share `beside` of how far another one moves, have zero: no
    amplitude exceeds all changes of the inputs, added up, over omega^2.
    """
    inside = push.breaks[(push.breaks > 0) & (push.breaks < time)]
    breaks = np.unique(np.concatenate([[0.0], inside]))
    push = push.cut(breaks)
    lengths = np.diff(np.append(breaks, time))
    coefficients = push.coefficients.copy()
    coefficients[:, 0] -= coefficients[0, 0].copy()
    found = np.zeros((2, len(omega)))
    most = np.abs(gains) @ _changes(coefficients, lengths) / omega**2 * sizes
    for k in np.argsort(-most, kind="stable"):
        if not most[k] > max(least, beside * float(found.max())):
            break
        found[:, k] = np.array(_amplitudes(coefficients @ gains[k], breaks, lengths, float(omega[k]))) * sizes[k]
    return found


def _changes(coefficients: Array, lengths: Array) -> Array:
    """By how much each channel changes in all, at most."""
    powers = np.arange(coefficients.shape[1])
    parts = coefficients * lengths[:, None, None] ** powers[None, :, None]
    jumps = np.abs(parts[1:, 0] - parts[:-1].sum(axis=1))
    return np.abs(parts[:, 1:]).sum(axis=(0, 1)) + jumps.sum(axis=0)


def _amplitudes(f: Array, t: Array, h: Array, omega: float) -> tuple[float, float]:
    """Both of one mode under polynomials f (piece, power) that begin at t and last h."""
    long = omega * h >= LONG
    gained = np.empty(len(h), dtype=complex)  # by w' + i omega w in a piece, from rest
    followed = np.empty(len(h), dtype=complex)  # of it at the begin of a piece
    followed[long], ends = _followed(f[long], h[long], omega)
    gained[long] = ends - np.exp(1j * omega * h[long]) * followed[long]
    gained[~long] = _integral(f[~long], h[~long], omega)
    if (~long).any():  # a slope over a radian of the vibration: that of short pieces says nothing
        here, around = t[~long], 1 / omega
        slope = (np.interp(here + around, t, f[:, 0]) - np.interp(here - around, t, f[:, 0])) / (2 * around)
        followed[~long] = (slope + 1j * omega * f[~long, 0]) / omega**2
    turned = np.cumsum(gained * np.exp(-1j * omega * (t + h)))
    moved = np.concatenate([[0.0], turned[:-1]]) * np.exp(1j * omega * t)
    return float(np.abs(moved - followed).max()) / omega, float(np.abs(moved).max()) / omega


def _followed(f: Array, h: Array, omega: float) -> tuple[Array, Array]:
    """Values w' + i omega w of the polynomials that solve the equation, at begins and ends of pieces."""
    w = np.zeros((len(f), f.shape[1] + 2), dtype=f.dtype)
    for k in range(f.shape[1] - 1, -1, -1):
        w[:, k] = (f[:, k] - (k + 2) * (k + 1) * w[:, k + 2]) / omega**2
    powers = np.arange(w.shape[1])
    raised = h[:, None] ** powers
    position = (w * raised).sum(axis=1)
    rate = (w[:, 1:] * powers[1:] * raised[:, :-1]).sum(axis=1)
    return w[:, 1] + 1j * omega * w[:, 0], rate + 1j * omega * position


def _integral(f: Array, h: Array, omega: float) -> Array:
    """What pieces of at most two radians add to w' + i omega w."""
    s = h[:, None] * NODES
    values = np.zeros(s.shape, dtype=f.dtype)
    for k in range(f.shape[1] - 1, -1, -1):
        values = values * s + f[:, k, None]
    return (values * np.exp(1j * omega * (h[:, None] - s)) * WEIGHTS).sum(axis=1) * h
