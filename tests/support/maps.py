"""Positions, matrices and modes of many poses as maps compute them, and maps in small chunks."""

import numpy as np
import pytest
import scipy.linalg

from parflex import Robot, jobs
from parflex.maps import batch
from parflex.maps.continuation import OK, UNREACHABLE
from parflex.maps.kinematics import COMPILE_FROM, Geometry
from parflex.maps.modes import ModeFinder
from parflex.maps.parameters import numbers_of_designs
from parflex.maps.positions import PositionSolver
from parflex.parameters.design_numbers import number_at
from parflex.robot.configuration import Configuration
from parflex.statics.linear_model import about_pose
from parflex.statics.loads import AppliedLoads, held_robot, locked_robot

__all__ = ["COMPILE_FROM", "OK", "UNREACHABLE", "Geometry", "ModeFinder", "PositionSolver"]
__all__ += ["held_robot", "home_matrices", "locked_robot", "lowest", "number_at", "numbers_of_designs", "small_chunks"]


def home_matrices(robot: Robot, held: Robot | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return K and M at home without units, with locked motors unless another held robot is given."""
    model = about_pose(Configuration(held or locked_robot(robot, "actuators"), robot.home), AppliedLoads())
    units = robot.tree.rate_units[model.configuration.reduction.partition.independent]
    return model.K * np.outer(units, units), model.M * np.outer(units, units)


def lowest(K: np.ndarray, M: np.ndarray, free: int, modes: int) -> np.ndarray:
    """Return squared frequencies above rigid-body modes, by LAPACK."""
    last = min(free + modes, len(K)) - 1
    return scipy.linalg.eigh(K, M, subset_by_index=[free, last], eigvals_only=True)


def small_chunks(monkeypatch: pytest.MonkeyPatch, rows: int, save_every: float = -1.0) -> None:
    """Let maps compute few rows at a time and save at intervals in seconds; by default after every chunk."""
    monkeypatch.setattr(batch, "CHUNK_TOGETHER", rows)
    monkeypatch.setattr(batch, "CHUNK_ALONE", rows)
    monkeypatch.setattr(jobs, "SAVE_EVERY", save_every)
    monkeypatch.setattr(jobs, "SAVING", np.inf)
