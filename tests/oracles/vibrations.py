"""Vibrations under any force, by Duhamel's integral on a fine grid, and the modes of a clamped-free beam."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.signal import lfilter


def duhamel(omega, force, dt):
    """Position and rate of x'' + omega^2 x = force (an array in steps of dt) from rest."""
    turn = np.exp(1j * omega * dt)
    gained = np.concatenate([[0.0], dt / 2 * (turn * force[:-1] + force[1:])])
    z = lfilter([1], [1, -turn], gained)
    return z.imag / omega, z.real


def clamped_free(length, bending_stiffness, mass_per_length, modes):
    """Circular frequency of each mode, how an acceleration of its clamp and a force at its tip drive it, by its tip."""
    x = np.linspace(0.0, length, 2001)
    found = []
    for i in range(modes):
        middle = (i + 0.5) * np.pi
        z = brentq(lambda z: np.cos(z) + 1 / np.cosh(z), middle - 0.6, middle + 0.6)
        k, s = z / length, (np.cosh(z) + np.cos(z)) / (np.sinh(z) + np.sin(z))
        shape = np.cosh(k * x) - np.cos(k * x) - s * (np.sinh(k * x) - np.sin(k * x))
        whole = np.trapezoid(shape**2, x)
        tip = shape[-1]
        found.append(
            (
                k**2 * np.sqrt(bending_stiffness / mass_per_length),
                -tip * np.trapezoid(shape, x) / whole,
                tip**2 / (mass_per_length * whole),
            )
        )
    return found
