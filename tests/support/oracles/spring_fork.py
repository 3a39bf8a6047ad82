"""Two similar arms on springs behind locked motors, on a base on a spring: modes that come near and veer."""

import numpy as np

Array = np.ndarray
LENGTHS = (0.4, 0.45)
MASSES = (2.0, 1.6)
PLACES = (0.3, -0.3)  # of the motors on the base, along x
BASE, STIFFNESS = 0.2, 20000.0  # inertia and spring of the base
POSES = {"home": (0.0, 3.0), "up": (1.6, 1.4), "apart": (0.4, 2.2), "down": (-1.2, -2.6)}


def frequencies(pose: str, first: float, second: float) -> Array:
    """Hz, lowest first."""
    M = np.diag([BASE, 0.0, 0.0])
    for k, (mass, length, place, angle) in enumerate(zip(MASSES, LENGTHS, PLACES, POSES[pose], strict=True)):
        arm = length * np.array([np.cos(angle), np.sin(angle)])
        J = np.zeros((2, 3))
        J[:, 0] = -arm[1], place + arm[0]
        J[:, 1 + k] = -arm[1], arm[0]
        M += mass * J.T @ J
    values = np.linalg.eigvals(np.linalg.solve(M, np.diag([STIFFNESS, first, second])))
    return np.sort(np.sqrt(values.real)) / (2 * np.pi)
