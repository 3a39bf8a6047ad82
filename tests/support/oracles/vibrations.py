"""Vibrations under any force, by Duhamel's integral on a fine grid, and the modes of a clamped-free beam."""

import numpy as np
from scipy.optimize import brentq
from scipy.signal import lfilter


def duhamel(omega, force, dt):
    """Position and rate of x'' + omega^2 x = force (an array in steps of dt) from rest."""
    turn = np.exp(1j * omega * dt)
    gained = np.concatenate([[0.0], dt / 2 * (turn * force[:-1] + force[1:])])
    z = lfilter([1], [1, -turn], gained)
    return z.imag / omega, z.real


def clamped_free_shape(mode):
    """Wave number times the length of a mode of a clamped-free beam, its shape over x/length, and the slope of that."""
    middle = (mode + 0.5) * np.pi
    z = brentq(lambda z: np.cos(z) + 1 / np.cosh(z), middle - 0.6, middle + 0.6)
    s = (np.cosh(z) + np.cos(z)) / (np.sinh(z) + np.sin(z))

    def shape(x):
        return np.cosh(z * x) - np.cos(z * x) - s * (np.sinh(z * x) - np.sin(z * x))

    def slope(x):
        return z * (np.sinh(z * x) + np.sin(z * x) - s * (np.cosh(z * x) - np.cos(z * x)))

    return z, shape, slope


def clamped_free(length, bending_stiffness, mass_per_length, modes):
    """Circular frequency of each mode, how an acceleration of its clamp and a force at its tip drive it, by its tip."""
    x = np.linspace(0.0, length, 2001)
    found = []
    for i in range(modes):
        z, shape_at, _ = clamped_free_shape(i)
        k, shape = z / length, shape_at(x / length)
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
