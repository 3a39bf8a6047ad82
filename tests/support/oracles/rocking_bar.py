"""A bar of 1 kg on two springs at its ends, 1 m from its middle, that lifts and rocks: modes by hand.

Stiffness over lift and angle is ((kL + kR, kR - kL), (kR - kL, kL + kR)), and mass (1, J). Which spring is the stiffer
one does not show, and a small difference shows by its square.
"""

import numpy as np

Array = np.ndarray


def frequencies(left: float, right: float, inertia: float) -> Array:
    """Hz, lowest first."""
    root = np.array([1.0, inertia**-0.5])
    stiffness = np.array([[left + right, right - left], [right - left, left + right]])
    return np.asarray(np.sqrt(np.linalg.eigvalsh(stiffness * np.outer(root, root))) / (2 * np.pi))
