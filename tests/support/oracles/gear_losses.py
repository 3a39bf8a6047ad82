"""Rigid gears that lose power, by brute force: every direction of power is tried, and those that fit are kept."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class LossyGear:
    """Row of the constraints, rates of its joint and of the others with their weights, efficiencies both ways."""

    row: int
    joint: int
    others: np.ndarray  # weights of the others along all rates, that of the joint zero
    forward: float
    back: float

    def share(self, side: float, qd: np.ndarray) -> float:
        """What the others give more, per effort on the joint, where that has the sign `side`."""
        power = side * float(-self.others @ qd)
        return 1 / self.forward - 1 if power > 0 else self.back - 1 if power < 0 else 0.0


def pushed(M, c, A, bias, force, gears: Sequence[LossyGear], qd) -> list[tuple[np.ndarray, np.ndarray]]:
    """All pairs of accelerations and multipliers under forces in which the directions of power fit."""
    found = []
    for sides in itertools.product((1.0, -1.0), repeat=len(gears)):
        felt = _felt(A, gears, sides, qd)
        system = np.block([[M, -felt.T], [A, np.zeros((len(A), len(A)))]])
        solution = np.linalg.solve(system, np.concatenate([force - c, -bias]))
        if all(side * solution[len(M) + gear.row] >= 0 for side, gear in zip(sides, gears, strict=True)):
            found.append((solution[: len(M)], solution[len(M) :]))
    return found


def driven(force, A, gears: Sequence[LossyGear], qd, motors: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """All pairs of efforts and multipliers that give these forces along all rates; as many motors as freedoms."""
    found = []
    E = np.eye(len(force))[list(motors)]
    for sides in itertools.product((1.0, -1.0), repeat=len(gears)):
        solution = np.linalg.solve(np.concatenate([E, _felt(A, gears, sides, qd)]).T, force)
        if all(side * solution[len(E) + gear.row] >= 0 for side, gear in zip(sides, gears, strict=True)):
            found.append((solution[: len(E)], solution[len(E) :]))
    return found


def _felt(A, gears, sides, qd) -> np.ndarray:
    """What each multiplier pushes along all rates."""
    felt = A.copy()
    for gear, side in zip(gears, sides, strict=True):
        felt[gear.row] = felt[gear.row] + gear.share(side, qd) * gear.others
    return felt
