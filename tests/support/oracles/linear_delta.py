"""A linear delta robot by trilateration, as printer firmware has it, and a fit of its bed touches by SciPy."""

import numpy as np
from scipy.optimize import least_squares

Array = np.ndarray
NAMES = ("endstop_a", "endstop_b", "endstop_c", "angle_a", "angle_b", "radius")
NOMINAL = np.array([0.333, 0.333, 0.333, np.deg2rad(210), np.deg2rad(330), 0.172])
ARM = 0.34


def nozzle(numbers: Array, travels: Array, arms: Array = ARM * np.ones(3)) -> Array:
    """Place of the nozzle where three spheres about the carriages meet, below them: rows of travels -> rows."""
    endstops, radius = numbers[:3], numbers[5]
    angles = np.array([numbers[3], numbers[4], np.pi / 2])
    heights = endstops + np.sqrt(arms**2 - radius**2) - travels
    P = np.stack([np.broadcast_to(radius * np.cos(angles), heights.shape),
                  np.broadcast_to(radius * np.sin(angles), heights.shape), heights], axis=-1)  # fmt: skip
    first, second = P[:, 1] - P[:, 0], P[:, 2] - P[:, 0]
    d = np.sqrt((first * first).sum(axis=-1))
    ex = first / d[:, None]
    i = (ex * second).sum(axis=-1)
    ey = second - i[:, None] * ex
    j = np.sqrt((ey * ey).sum(axis=-1))
    ey = ey / j[:, None]
    x = (arms[0] ** 2 - arms[1] ** 2 + d**2) / (2 * d)
    y = (arms[0] ** 2 - arms[2] ** 2 + i**2 + j**2) / (2 * j) - i / j * x
    z = np.sqrt(arms[0] ** 2 - x**2 - y**2)
    return P[:, 0] + x[:, None] * ex + y[:, None] * ey - z[:, None] * np.cross(ex, ey)


def fitted(travels: Array, heights: Array) -> tuple[Array, Array]:
    """The six numbers by SciPy with complex steps, and their deviations."""
    result = least_squares(lambda n: nozzle(n, travels)[:, 2] - heights, NOMINAL, jac="cs", x_scale="jac")
    numbers = result.x
    for _ in range(4):  # the search ends where the sum of squares is rounding
        J = np.array([nozzle(numbers + 1e-30j * unit, travels)[:, 2].imag / 1e-30 for unit in np.eye(6)]).T
        left = nozzle(numbers, travels)[:, 2] - heights
        numbers = numbers - np.linalg.lstsq(J, left, rcond=None)[0]
    return numbers, np.sqrt(np.diag(np.linalg.inv(J.T @ J)) * (left @ left) / (len(left) - len(numbers)))
