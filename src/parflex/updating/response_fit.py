"""Measured frequency responses fitted by poles in common: H = s^d (sum of R/(s - p) and its conjugate + L/s^2 + U).

Residues R and the terms of modes below and above the band are linear, and taken out; d = 0, 1, 2 derivatives.
Deviations hold noise that neighbouring lines have in common, as behind windows and means, and what modes outside of the
band do beyond L and U: by how much poles move with the next terms of their series, less what noise moves them by.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize

Array = np.ndarray
TERMS, MORE = (-2, 0), (-4, -2, 0, 2)  # powers of s of modes below and above the band, and with the next ones
LONGEST = 0.1  # of all lines, that noise may have in common
CHANCE = 2.0  # deviations of a correlation of white noise


class ResponseFit:
    """All responses in a band (Hz, responses x frequencies), and the search for their poles."""

    def __init__(self, f: Array, H: Array, order: int) -> None:
        self.s, self.order = 2j * np.pi * f, order
        self.Y = np.concatenate([H.real, H.imag], axis=1).T
        self.sizes = np.linalg.norm(self.Y, axis=0)
        self.weights = 1 / np.where(self.sizes > 0, self.sizes, np.inf)  # a sensor in a node of all modes sees nothing

    def columns(self, x: Array, terms: Sequence[int] = TERMS) -> tuple[Array, Array]:
        """Responses per unit of real and imaginary parts of residues and of the other terms; and sizes of these."""
        poles = poles_of(x)
        one, other = (1 / (self.s[:, None] - p[None, :]) for p in (poles, poles.conj()))
        rest = np.stack([self.s**power for power in terms], axis=1)
        parts = self.s[:, None] ** self.order * np.concatenate([one + other, 1j * (one - other), rest], axis=1)
        stacked = np.concatenate([parts.real, parts.imag])
        sizes = np.linalg.norm(stacked, axis=0)
        return stacked / sizes, sizes

    def left(self, x: Array, terms: Sequence[int] = TERMS) -> Array:
        """Residuals of the best residues over the noise of each response."""
        Q = np.linalg.qr(self.columns(x, terms)[0])[0]
        return ((self.Y - Q @ (Q.T @ self.Y)) * self.weights).ravel()

    def best(self, poles: Array) -> tuple[Array, Array, Array]:
        """Poles (rad/s), deviations of frequency (Hz) and ratio, and residues (responses x modes)."""
        x = np.stack([np.log(np.abs(poles)), -poles.real / np.abs(poles)], axis=1).ravel()
        count = len(poles)
        freedoms = max(len(self.Y) - 2 * count - 2, 1)
        scale = np.full(2 * count, 1e-3)
        for _ in range(2):  # noise of each response from its residuals
            x = scipy.optimize.least_squares(self.left, x, x_scale=scale, xtol=1e-12, ftol=1e-12).x
            left = self.left(x).reshape(len(self.Y), -1)
            noise = np.sqrt((left**2).sum(axis=0) / freedoms) / np.where(self.weights > 0, self.weights, 1.0)
            self.weights = 1 / np.where(self.sizes > 0, np.maximum(noise, 1e-12 * self.sizes), np.inf)
        deviation = np.hypot(self._by_noise(x), self._by_other_modes(x, scale))
        found = poles_of(x)
        spread = np.stack([deviation[::2] * np.abs(found) / (2 * np.pi), deviation[1::2]], axis=1)
        columns, sizes = self.columns(x)
        parts = np.linalg.lstsq(columns, self.Y, rcond=None)[0] / sizes[:, None]
        return found, spread, (parts[:count] + 1j * parts[count : 2 * count]).T

    def _by_noise(self, x: Array, terms: Sequence[int] = TERMS) -> Array:
        """Deviations by noise as residuals have it: lines beside each other may have some in common."""
        J = scipy.optimize.approx_fprime(x, self.left, 1e-7, terms)
        long = np.maximum(np.linalg.norm(J, axis=0), 1e-300)  # a weak mode beside a strong one: squares would be lost
        P = np.linalg.pinv(J / long)
        parts = P.reshape(len(x), 2, len(self.s), -1)  # real and imaginary, lines, responses
        square = (P**2).sum(axis=1)
        for lag, rho in enumerate(self._in_common(x, terms), start=1):
            square = square + 2 * rho * (parts[:, :, lag:] * parts[:, :, :-lag]).sum(axis=(1, 2, 3))
        return np.asarray(np.sqrt(np.maximum(square, (P**2).sum(axis=1))) / long)

    def _in_common(self, x: Array, terms: Sequence[int]) -> list[float]:
        """Correlations of residuals of lines that are one, two, ... apart, up to the first that may be chance."""
        left = self.left(x, terms).reshape(2, len(self.s), -1)
        all_of_it, found = float((left**2).sum()), list[float]()
        for lag in range(1, int(LONGEST * len(self.s))):
            rho = float((left[:, lag:] * left[:, :-lag]).sum()) / max(all_of_it, 1e-300)
            if rho < CHANCE / np.sqrt(left.size):
                break
            found.append(rho)
        return found

    def _by_other_modes(self, x: Array, scale: Array) -> Array:
        """By how much poles move with more terms of modes outside of the band, beyond what noise moves them by."""
        more = scipy.optimize.least_squares(self.left, x, x_scale=scale, xtol=1e-12, ftol=1e-12, args=(MORE,)).x
        noise = np.maximum(self._by_noise(more, MORE) ** 2 - self._by_noise(x) ** 2, 0.0)
        return np.asarray(np.sqrt(np.maximum((more - x) ** 2 - noise, 0.0)))


def poles_of(x: Array) -> Array:
    """Poles (rad/s) from logarithms of their sizes and damping ratios, in turn."""
    omega, ratio = np.exp(x[::2]), x[1::2]
    return omega * (-ratio + 1j * np.sqrt(np.maximum(1 - ratio**2, 1e-12)))
