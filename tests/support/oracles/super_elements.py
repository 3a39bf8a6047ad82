"""Super-elements by plain finite elements: reduction of a beam, and a hexapod on flexures by direct assembly."""

import numpy as np
import scipy.io
import scipy.linalg
from scipy.spatial.transform import Rotation

from . import chains
from .beam_element import Bar, element
from .frame import cross_matrix


def round_bar(diameter: float, E: float = 210e9, density: float = 7850.0, poisson: float = 0.3) -> Bar:
    """A solid circular section."""
    A, I = np.pi * diameter**2 / 4, np.pi * diameter**4 / 64
    return Bar(E, E / (2 + 2 * poisson), density, A, I, I, 2 * I, 2 * I)


def chain(length: float, count: int, bar: Bar) -> tuple[np.ndarray, np.ndarray]:
    """Mass and stiffness of a beam along x in equal elements, six unknowns per node."""
    whole = chains.chain(length, bar, count)
    return whole.M, whole.K


def reduced(M: np.ndarray, K: np.ndarray, kept: list[int], modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Craig and Bampton: static shapes of the kept unknowns, then modes with these held."""
    T = chains.craig_bampton(M, K, kept, modes)
    return T.T @ M @ T, T.T @ K @ T


def reduced_beam(length: float, count: int, bar: Bar, modes: int) -> tuple[np.ndarray, np.ndarray]:
    """A beam reduced to its ends."""
    M, K = chain(length, count, bar)
    return reduced(M, K, [*range(6), *range(len(M) - 6, len(M))], modes)


def flexure_hexapod(file: str, count: int = 12) -> np.ndarray:
    """Frequencies (Hz) of the platform of `flexure-hexapod.toml` by assembly of the matrices of all parts."""
    found = scipy.io.loadmat(file)
    flexure = found["M"], found["K"]
    modes = len(flexure[0]) - 12
    radius, length, tilt = 0.15, 0.1, np.radians(25)
    height = length * np.cos(tilt)
    beam = element(length, round_bar(0.012))[::-1]
    own = 12 + 2 * modes  # unknowns of a leg: both ends of the rod, modes of its flexures
    size = 6 * own + 6
    M, K = np.zeros((2, size, size))
    platform = [size - 6 + k for k in range(6)]
    along_x = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # axes of the rod in those of the leg
    for leg in range(6):
        foot = np.radians([-20, 20, 100, 140, 220, 260][leg])
        lean = np.radians([70, -70, 190, 50, 310, 170][leg])
        R = Rotation.from_rotvec(tilt * np.array([-np.sin(lean), np.cos(lean), 0.0])).as_matrix()
        top = np.array([radius * np.cos(foot), radius * np.sin(foot), 0]) + length * R[:, 2] - [0, 0, height]
        first = leg * own
        rows = [first + k for k in range(own)]
        carried = np.zeros((6, size))  # the node on the platform, in world axes
        carried[:, platform] = np.block([[np.eye(3), -cross_matrix(top)], [np.zeros((3, 3)), np.eye(3)]])
        nodes = [np.zeros((6, size)), np.eye(size)[rows[:6]], np.eye(size)[rows[6:12]], carried]
        turned = np.kron(np.eye(2), R.T)
        for number, (lower, upper) in enumerate(((0, 1), (2, 3))):
            modal = np.eye(size)[rows[12 + number * modes : 12 + (number + 1) * modes]]
            T = np.vstack([turned @ nodes[lower], turned @ nodes[upper], modal])
            M += T.T @ flexure[0] @ T
            K += T.T @ flexure[1] @ T
        T = np.vstack([np.kron(np.eye(2), along_x.T) @ turned @ node for node in nodes[1:3]])
        M += T.T @ beam[0] @ T
        K += T.T @ beam[1] @ T
    M[np.ix_(platform, platform)] += np.diag([2.0, 2.0, 2.0, 0.01, 0.01, 0.018])
    return np.sqrt(scipy.linalg.eigvalsh(K, M)[:count]) / (2 * np.pi)
