"""The linear model about an undeformed pose at rest: mass, stiffness and damping, natural frequencies and mode shapes.

At the undeformed pose, preload left out, M = J^T M_tot J and K = J^T K_tot J with J of the closures. [Germain2015]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from parflex.bodies import ElasticBody
from parflex.errors import InputError, did_you_mean
from parflex.models.configuration import Configuration, PoseLike, configure
from parflex.models.robot import Robot
from parflex.recursion import mass_matrix as tree_mass_matrix

Array = np.ndarray
ZERO = 1e-7  # of the largest: eigenvalues below belong to motions without stiffness


@dataclass(frozen=True)
class LinearModel:
    """M qdd + D qd + K q = 0 in the independent coordinates, and J from these to all coordinates."""

    configuration: Configuration
    M: Array
    K: Array
    D: Array
    J: Array
    names: list[str]


@dataclass(frozen=True)
class Modes:
    """Frequencies in Hz, shapes, damping ratios, and motions without stiffness by the name of what moves most.

    Shapes are over all coordinates, one column a mode, mass-normalised, the largest entry positive.
    """

    frequencies: Array
    shapes: Array
    damping: Array
    free_motions: list[str]
    independent_coordinates: int


def locked_robot(robot: Robot, lock: str | Sequence[str] = "actuators") -> Robot:
    """The robot with its motors, none, or named joints standing still."""
    if lock == "none":
        return robot
    if lock == "actuators":
        return robot.locking(robot.actuated)
    held: set[int] = set()
    for name in [lock] if isinstance(lock, str) else lock:
        links = [
            link
            for link in robot.tree.links
            if link.name in (name, f"{name}.1", f"{name}.2") and link.joint.rate_labels
        ]
        if not links:
            joints = [link.name for link in robot.tree.links if link.joint.rate_labels]
            raise InputError(f"there is no joint '{name}'", key="lock", value=name, hint=did_you_mean(name, joints))
        held |= {k for link in links for k in range(link.v.start, link.v.stop)}
    return robot.locking(held)


def linear_model(
    robot: Robot, at: PoseLike | Configuration = None, lock: str | Sequence[str] = "actuators"
) -> LinearModel:
    """Mass, stiffness and damping at a pose."""
    q = configure(robot, at).q
    held = Configuration(locked_robot(robot, lock), q)
    J = held.J
    K_tot, D_tot = tree_stiffness(held)
    M_tot = tree_mass_matrix(robot.tree, held.at)
    return LinearModel(held, J.T @ M_tot @ J, J.T @ K_tot @ J, J.T @ D_tot @ J, J, held.independent_names)


def tree_stiffness(configuration: Configuration) -> tuple[Array, Array]:
    """K_tot and D_tot of the open tree: elastic bodies, springs, dampers and viscous friction of joints."""
    tree = configuration.robot.tree
    K, D = np.zeros((tree.n, tree.n)), np.zeros((tree.n, tree.n))
    for link in tree.links:
        if isinstance(link.body, ElasticBody):
            K[link.e_v, link.e_v] = link.body.K
            D[link.e_v, link.e_v] = link.body.D
        if link.joint.kind in ("revolute", "prismatic"):
            k = link.v.start
            K[k, k] = link.terms.stiffness
            D[k, k] = link.terms.damper + link.terms.viscous
    return K, D


def natural_frequencies(
    robot: Robot, at: PoseLike | Configuration = None, modes: int = 6, lock: str | Sequence[str] = "actuators"
) -> Modes:
    """Lowest natural frequencies at a pose, with mode shapes and damping ratios; motions without stiffness apart."""
    model = linear_model(robot, at, lock)
    count = len(model.names)
    if count == 0:
        raise InputError(
            "nothing can move: all joints are locked and no body bends", key="lock", hint="lock fewer joints"
        )
    units = robot.tree.rate_units[model.configuration.reduction.partition.independent]
    scale = np.outer(units, units)
    values, vectors = scipy.linalg.eigh(model.K * scale, model.M * scale)
    free = int(np.sum(values < ZERO**2 * max(values[-1], 1e-300)))
    if modes < 1 or modes > count - free:
        raise InputError(
            f"{modes} modes are asked for, the robot has {count - free}", key="modes", value=modes, hint="ask for fewer"
        )
    shapes = model.J @ (units[:, None] * vectors)
    picked = shapes[:, free : free + modes]
    signs = np.sign(picked[np.abs(picked).argmax(axis=0), range(modes)])
    picked = picked * signs
    omega = np.sqrt(values[free : free + modes])
    reduced = (units[:, None] * vectors)[:, free : free + modes]
    damping = np.array([float(v @ model.D @ v) for v in reduced.T]) / (2 * omega)
    names = [_moving(robot, shapes[:, k]) for k in range(free)]
    return Modes(omega / (2 * np.pi), picked, damping, names, count)


def participation(robot: Robot, shapes: Array) -> list[dict[str, float]]:
    """Of each mode, the share of its strain energy in each frame with a beam or a spring; small ones are left out."""
    result = []
    for shape in shapes.T:
        energy: dict[str, float] = {}
        for link in robot.tree.links:
            own = 0.0
            if isinstance(link.body, ElasticBody):
                own += float(shape[link.e_v] @ link.body.K @ shape[link.e_v])
            if link.joint.kind in ("revolute", "prismatic"):
                own += link.terms.stiffness * float(shape[link.v.start]) ** 2
            frame = _frame_of(robot, link.name)
            energy[frame] = energy.get(frame, 0.0) + own
        total = sum(energy.values())
        result.append({name: value / total for name, value in energy.items() if value > 1e-4 * total})
    return result


def _frame_of(robot: Robot, link: str) -> str:
    """The frame of the file that an element of a beam belongs to."""
    names = {frame.name for frame in robot.description.frame}
    while link not in names and "." in link:
        link = link.rpartition(".")[0]
    return link


def _moving(robot: Robot, shape: Array) -> str:
    """The coordinate that moves most."""
    return robot.tree.rate_names[int(np.abs(shape / robot.tree.rate_units).argmax())]
