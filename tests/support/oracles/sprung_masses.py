"""Masses on springs, modes by hand: a pair on slides, a bar that lifts and rocks, four sliders in a row.

- Pair of 1 kg, the second on the first: squares are the roots of x^2 - (k1 + 2 k2) x + k1 k2, as of springs 2 k2 and
  k1/2. Side by side they are k1 and k2.
- Bar of 1 kg on two springs 1 m from its middle: which spring is stiffer does not show, its difference by the square.
"""

import numpy as np

Array = np.ndarray
SENSORS = ("c1.x", "c2.x")  # of the pair
MASSES = (2.0, 1.5, 1.0, 0.8)  # of the sliders
FIRST = {"k1": 40e3, "k2": 30e3, "k3": 20e3, "k4": 15e3, "c1": 6.0, "c3": 4.0}


def pair_modes(first: float, second: float, carried: bool = True) -> tuple[Array, Array]:
    """Hz, lowest first, and what the sensors see of the modes: sensors x modes."""
    if not carried:
        order = np.argsort([first, second])
        return np.sqrt(np.array([first, second])[order]) / (2 * np.pi), np.eye(2)[:, order]
    half, product = (first + 2 * second) / 2, first * second
    squares = half + np.sqrt(half**2 - product) * np.array([-1.0, 1.0])
    return np.sqrt(squares) / (2 * np.pi), np.array([1 - squares / second, [1.0, 1.0]])


def bar_frequencies(left: float, right: float, inertia: float) -> Array:
    """Hz, lowest first."""
    root = np.array([1.0, inertia**-0.5])
    stiffness = np.array([[left + right, right - left], [right - left, left + right]])
    return np.asarray(np.sqrt(np.linalg.eigvalsh(stiffness * np.outer(root, root))) / (2 * np.pi))


def slider_modes(**numbers: float) -> tuple[Array, Array]:
    """Hz, lowest first, and damping ratios."""
    given = {**FIRST, **numbers}
    apart = np.eye(4) - np.eye(4, k=-1)
    diagonals = (np.diag([given.get(f"{letter}{k}", 0.0) for k in (1, 2, 3, 4)]) for letter in "kc")
    stiffness, damping = (apart.T @ diagonal @ apart for diagonal in diagonals)
    rates = -np.hstack([stiffness, damping]) / np.array(MASSES)[:, None]
    poles = np.linalg.eigvals(np.vstack([np.hstack([np.zeros((4, 4)), np.eye(4)]), rates]))
    poles = sorted(poles[poles.imag > 0], key=abs)
    return np.abs(poles) / (2 * np.pi), -np.real(poles) / np.abs(poles)
