"""Robots by name, positions of many poses as maps compute them, and the assemblies that their sides tell apart."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import parflex
from parflex import Configuration, Robot
from parflex.closure.working_modes import working_mode_signs
from parflex.maps.continuation import OK, UNREACHABLE
from parflex.maps.kinematics import Geometry
from parflex.maps.parameters import numbers_of_designs
from parflex.maps.positions import PositionSolver

__all__ = ["OK", "UNREACHABLE", "end_effector", "indices", "pose_solver", "sides_of", "start_of"]


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
