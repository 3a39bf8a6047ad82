"""Two masses of 1 kg on slides along x, the second one carried by the first or beside it: modes by hand.

Carried, with springs k1 and k2, squares of angular frequencies are the roots of x^2 - (k1 + 2 k2) x + k1 k2: springs
2 k2 and k1/2 have the same. Beside each other they are k1 and k2, whichever is the larger.
"""

import numpy as np

Array = np.ndarray
SENSORS = ("c1.x", "c2.x")


def modes(first: float, second: float, carried: bool = True) -> tuple[Array, Array]:
    """Hz, lowest first, and what the sensors see of the modes: sensors x modes."""
    if not carried:
        order = np.argsort([first, second])
        return np.sqrt(np.array([first, second])[order]) / (2 * np.pi), np.eye(2)[:, order]
    half, product = (first + 2 * second) / 2, first * second
    squares = half + np.sqrt(half**2 - product) * np.array([-1.0, 1.0])
    return np.sqrt(squares) / (2 * np.pi), np.array([1 - squares / second, [1.0, 1.0]])
