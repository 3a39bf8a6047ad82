"""Measured frequency responses fitted by poles in common: H = s^d (sum of R/(s - p) and its conjugate + L/s^2 + U).

Residues R and the terms of modes below and above the band are linear, and taken out; d = 0, 1, 2 derivatives.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize

Array = np.ndarray


class ResponseFit:
    """All responses in a band (Hz, responses x frequencies), and the search for their poles."""

    def __init__(self, f: Array, H: Array, order: int) -> None:
        self.s, self.order = 2j * np.pi * f, order
        self.Y = np.concatenate([H.real, H.imag], axis=1).T
        self.sizes = np.linalg.norm(self.Y, axis=0)
        self.weights = 1 / np.where(self.sizes > 0, self.sizes, np.inf)  # a sensor in a node of all modes sees nothing

    def columns(self, x: Array) -> tuple[Array, Array]:
        """Responses per unit of real and imaginary parts of residues and of the other terms; and sizes of these."""
        poles = poles_of(x)
        one, other = (1 / (self.s[:, None] - p[None, :]) for p in (poles, poles.conj()))
        rest = np.stack([1 / self.s**2, np.ones(len(self.s))], axis=1)
        parts = self.s[:, None] ** self.order * np.concatenate([one + other, 1j * (one - other), rest], axis=1)
        stacked = np.concatenate([parts.real, parts.imag])
        sizes = np.linalg.norm(stacked, axis=0)
        return stacked / sizes, sizes

    def left(self, x: Array) -> Array:
        """Residuals of the best residues over the noise of each response."""
        Q = np.linalg.qr(self.columns(x)[0])[0]
        return ((self.Y - Q @ (Q.T @ self.Y)) * self.weights).ravel()

    def best(self, poles: Array) -> tuple[Array, Array, Array]:
        """Poles (rad/s), deviations of frequency (Hz) and ratio for white noise, and residues (responses x modes)."""
        x = np.stack([np.log(np.abs(poles)), -poles.real / np.abs(poles)], axis=1).ravel()
        count = len(poles)
        freedoms = max(len(self.Y) - 2 * count - 2, 1)
        scale = np.full(2 * count, 1e-3)
        for _ in range(2):  # noise of each response from its residuals
            x = scipy.optimize.least_squares(self.left, x, x_scale=scale, xtol=1e-12, ftol=1e-12).x
            left = self.left(x).reshape(len(self.Y), -1)
            noise = np.sqrt((left**2).sum(axis=0) / freedoms) / np.where(self.weights > 0, self.weights, 1.0)
            self.weights = 1 / np.where(self.sizes > 0, np.maximum(noise, 1e-12 * self.sizes), np.inf)
        J = scipy.optimize.approx_fprime(x, self.left, 1e-7)
        long = np.maximum(np.linalg.norm(J, axis=0), 1e-300)  # a weak mode beside a strong one: squares would be lost
        deviation = np.linalg.norm(np.linalg.pinv(J / long), axis=1) / long
        found = poles_of(x)
        spread = np.stack([deviation[::2] * np.abs(found) / (2 * np.pi), deviation[1::2]], axis=1)
        columns, sizes = self.columns(x)
        parts = np.linalg.lstsq(columns, self.Y, rcond=None)[0] / sizes[:, None]
        return found, spread, (parts[:count] + 1j * parts[count : 2 * count]).T


def poles_of(x: Array) -> Array:
    """Poles (rad/s) from logarithms of their sizes and damping ratios, in turn."""
    omega, ratio = np.exp(x[::2]), x[1::2]
    return omega * (-ratio + 1j * np.sqrt(np.maximum(1 - ratio**2, 1e-12)))
