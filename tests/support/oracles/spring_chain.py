"""A chain of point masses on bars without mass, turning against springs behind locked motors: modes by hand."""

import numpy as np

Array = np.ndarray
LENGTHS = (0.5, 0.4, 0.3)
MASSES = (3.0, 2.0, 1.0)

POSES = {"home": (0.0, 0.0), "bent": (1.0, -0.5), "folded": (2.0, 1.0)}
SENSORS = ("b.x", "b.y", "c.x", "c.y", "tip.x", "tip.y")  # the ends of the bars


def ends(pose: str) -> Array:
    """What the ends of the bars do per unit of the three angles: bars x (x, y) x angles."""
    angles = np.cumsum([0.0, *POSES[pose]])
    bars = [[length * np.cos(a), length * np.sin(a)] for length, a in zip(LENGTHS, angles, strict=True)]
    places = np.cumsum(bars, axis=0)
    starts = np.vstack([[0.0, 0.0], places[:-1]])
    found = np.zeros((3, 2, 3))
    for k in range(3):
        for j in range(k + 1):
            x, y = places[k] - starts[j]
            found[k, :, j] = -y, x
    return found


def mass(pose: str) -> Array:
    return sum(m * J.T @ J for m, J in zip(MASSES, ends(pose), strict=True))


def frequencies(pose: str, stiffness: Array) -> Array:
    """Hz, lowest first."""
    values = np.linalg.eigvals(np.linalg.solve(mass(pose), np.diag(stiffness)))
    return np.sort(np.sqrt(values.real)) / (2 * np.pi)


def shapes(pose: str, stiffness: Array) -> Array:
    """What the sensors see of the modes: sensors x modes."""
    values, vectors = np.linalg.eig(np.linalg.solve(mass(pose), np.diag(stiffness)))
    return ends(pose).reshape(6, 3) @ vectors[:, np.argsort(values.real)].real


def poles(pose: str, stiffness: Array, dampers: Array) -> Array:
    """Those above the real axis (rad/s), lowest first, from the state matrix."""
    M = mass(pose)
    below = [-np.linalg.solve(M, np.diag(stiffness)), -np.linalg.solve(M, np.diag(dampers))]
    values = np.linalg.eigvals(np.block([[np.zeros((3, 3)), np.eye(3)], below]))
    return np.array(sorted(values[values.imag > 0], key=abs))


def responses(pose: str, stiffness: Array, dampers: Array, f: Array, force: int = 5) -> Array:
    """Accelerations of the sensors per force along one of them: sensors x frequencies (Hz)."""
    M, rows = mass(pose), ends(pose).reshape(6, 3)
    found = np.zeros((6, len(f)), dtype=complex)
    for k, w in enumerate(2 * np.pi * f):
        found[:, k] = -(w**2) * rows @ np.linalg.solve(np.diag(stiffness) - w**2 * M + 1j * w * np.diag(dampers),
                                                       rows[force])  # fmt: skip
    return found
