"""Positions, matrices and modes of many poses as maps compute them, maps in small chunks, and sides of assemblies."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import parflex
from parflex import Configuration, Robot, jobs
from parflex.closure.working_modes import working_mode_signs
from parflex.maps import batch
from parflex.maps.continuation import OK, UNREACHABLE
from parflex.maps.kinematics import Geometry
from parflex.maps.modes import ModeFinder
from parflex.maps.parameters import numbers_of_designs
from parflex.maps.positions import PositionSolver
from parflex.parameters.design_numbers import number_at
from parflex.statics.linear_model import about_pose
from parflex.statics.loads import AppliedLoads, held_robot, locked_robot

__all__ = ["OK", "UNREACHABLE", "Geometry", "ModeFinder", "PositionSolver", "end_effector", "held_robot", "indices"]
__all__ += ["home_matrices", "locked_robot", "lowest", "number_at", "pose_solver", "sides_of", "small_chunks"]
__all__ += ["start_of"]


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


def indices(robot: Robot, names: Iterable[str]) -> list[int]:
    return [robot.coordinates.index(name) for name in names]


def end_effector(robot: Robot, q: np.ndarray | None = None, frame: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return position and rotation of the end effector, or of another frame, at positions; at home by default."""
    at = Configuration(robot, robot.home if q is None else q)
    return parflex.frames(robot, at)[frame or robot.tree.end_effector]


def pose_solver(
    robot: Robot,
    names: Sequence[str],
    first: Sequence[float],
    designs: dict[str, np.ndarray] | None = None,
    compiled: bool = False,
) -> PositionSolver:
    """Return what maps take for positions: of poses by these coordinates, in designs if there are any."""
    geometry = Geometry(robot, None if designs is None else numbers_of_designs(robot, designs))
    geometry.settle(10**6 if compiled else 1)
    return PositionSolver(geometry, list(names), list(first))


def start_of(solver: PositionSolver, values: np.ndarray) -> np.ndarray:
    """Return positions at home with the coordinates of each pose put in, one row for each pose."""
    home = np.repeat(solver.geometry.home[None], len(values), axis=0)
    return solver.given.start(values, solver.geometry.rows(home, np.arange(len(values))))


def sides_of(robot: Robot, target: Any, reference: np.ndarray) -> list[Any]:
    """Return the sides of all parts of a robot that a target leaves open, as they are at a reference."""
    parts = robot.assembler.parts(target, robot.locked | frozenset(robot.deformations))
    parts = [part for part in parts if len(part.columns)]
    fixed = robot.preference, reference
    return [working_mode_signs(robot.tree, part, *fixed) for part in parts]
