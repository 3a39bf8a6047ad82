"""Linear algebra of closed loops: motion from some of its rates, efforts from the forces of the tree."""

from collections.abc import Mapping, Sequence

import numpy as np

RANK = 1e-10
TOLERANCE = 1e-8
TERMS = ("motor_inertia", "friction", "springs")
Numbers = Mapping[str, float]


class ClosedModel:
    """What models of closed robots have in common, given their closures and the forces along all coordinates."""

    coordinates: list[str]
    closure_rows: int

    def motion(self, q: Numbers, rates: Numbers, accelerations: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Rates and accelerations of all coordinates from some; fails if these do not fit or suffice."""
        jacobian, _ = self.closure_jacobian(q)
        qd = determine(jacobian, np.zeros(self.closure_rows), self.coordinates, rates)
        _, bias = self.closure_jacobian(q, qd)
        return qd, determine(jacobian, -bias, self.coordinates, accelerations)

    def inverse(
        self,
        q: Numbers,
        rates: Numbers,
        accelerations: Numbers,
        actuated: Sequence[str],
        include: Sequence[str] = TERMS,
        wrenches: Mapping[str, Sequence[float]] | None = None,
    ) -> dict[str, float]:
        """Efforts of the motors; `wrenches` hold force and moment, world axes, at a frame or point."""
        force, jacobian = self.forces(q, rates, accelerations, include, wrenches)
        return efforts(jacobian, force, self.coordinates, actuated)


def determine(jacobian: np.ndarray, right: np.ndarray, names: Sequence[str], given: Mapping[str, float]) -> np.ndarray:
    """The vector x with jacobian x = right that has the given entries; fails if there is none or several."""
    unit = np.eye(len(names))[[names.index(name) for name in given]].reshape(-1, len(names))
    matrix = np.vstack([jacobian, unit])
    target = np.concatenate([right, list(given.values())])
    solution, _, rank, _ = np.linalg.lstsq(matrix, target, rcond=RANK)
    assert rank == len(names), f"motion not determined: rank {rank} of {len(names)}"
    error = np.linalg.norm(matrix @ solution - target)
    assert error <= TOLERANCE * np.linalg.norm(target), f"motion inconsistent: {error}"
    return solution


def efforts(jacobian: np.ndarray, force: np.ndarray, names: Sequence[str], actuated: Sequence[str]) -> dict[str, float]:
    """The unique efforts with force = jacobian^T reactions + efforts; reactions of least norm."""
    chosen = [names.index(name) for name in actuated]
    matrix = np.hstack([jacobian.T, np.eye(len(names))[:, chosen]])
    left, values, right = np.linalg.svd(matrix)
    rank = int(np.sum(values > RANK * values[0]))
    solution = right[:rank].T @ ((left[:, :rank].T @ force) / values[:rank])
    error = np.linalg.norm(matrix @ solution - force)
    assert error <= TOLERANCE * np.linalg.norm(force), f"motion needs other motors: {error}"
    free = np.abs(right[rank:, len(jacobian) :])
    assert not np.any(free > TOLERANCE), "efforts not unique"
    return dict(zip(actuated, map(float, solution[len(jacobian) :]), strict=True))


def accelerations(mass: np.ndarray, force: np.ndarray, jacobian: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Those with mass qdd = force + jacobian^T reactions and jacobian qdd = -bias; repeated rows do not matter."""
    motions, fixed = _motions(jacobian), np.linalg.lstsq(jacobian, -bias, rcond=RANK)[0]
    return fixed + motions @ np.linalg.solve(motions.T @ mass @ motions, motions.T @ (force - mass @ fixed))


def _motions(jacobian: np.ndarray) -> np.ndarray:
    _, values, right = np.linalg.svd(jacobian)
    return right[int(np.sum(values > RANK * values[0])) :].T
