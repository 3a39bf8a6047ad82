"""Rods between two balls: each spins about the line through their centres, which moves nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Closures
from parflex.errors import ActuationError
from parflex.recursion.kinematics import Pose as LinkPoses

Array = np.ndarray
SAME = 1e-6  # of the typical length: balls that are nearer are one, lines that are nearer pass through them


def spinning(
    closures: Closures, at: LinkPoses, links: Sequence[tuple[Array, Array]], motions: Array, end: Array
) -> tuple[list[str], Array]:
    """Names of the rods that spin in these motions, and a basis of what is left of the motions without them.

    `motions` are columns of all rates that leave the motors at rest, `end` the rows of the end effector. A rod (all
    bodies of an SPS leg are one) spins where all bodies that move with the end effector at rest only turn, each about
    a line of its own, and two balls stand on each line.
    """
    still = _kernel(end @ motions)
    spins = motions @ still
    moving = _turning(at, links, spins, closures.tree.length)
    balls = _balls(closures, at)
    if not moving or not all(_held_by_two(line, balls, closures.tree.length) for line in moving.values()):
        return [], motions
    names = {j: closures.tree.links[j].name for j in moving}
    first = [name for j, name in names.items() if not set(closures.tree.path(j)[1:]) & set(moving)]
    return first, motions @ _kernel(still.T)


def spin_error(rods: list[str]) -> ActuationError:
    """The error for rods that spin while everything else is driven."""
    names = ", ".join(f"'{name}'" for name in rods)
    one = len(rods) == 1
    return ActuationError(
        f"{names} {'spins' if one else 'spin'} freely about {'its' if one else 'their'} own axis between two "
        "spherical joints: the motors do not determine that motion, which affects neither them nor the end effector",
        key="joint",
        value=rods[0],
        hint="replace one spherical joint of each rod by a universal joint",
    )


def _kernel(J: Array) -> Array:
    _, values, Vt = np.linalg.svd(J, full_matrices=True)
    return Vt[int(np.sum(values > mobility.RANK_TOLERANCE)) :].T


def _turning(
    at: LinkPoses, links: Sequence[tuple[Array, Array]], motions: Array, length: float
) -> dict[int, tuple[Array, Array] | None]:
    """Of each link that moves, a point and the direction of the line that it turns about; None where it does more."""
    found: dict[int, tuple[Array, Array] | None] = {}
    for j, (J_v, J_w) in enumerate(links):
        twist = np.concatenate([at.rotation[j] @ J_v / length, at.rotation[j] @ J_w]) @ motions
        if not twist.size or np.linalg.norm(twist) < SAME:
            continue
        U, values, _ = np.linalg.svd(twist)
        v, w = U[:3, 0] * length, U[3:, 0]
        turn = float(w @ w)
        only = turn > SAME and values[1:].sum() < SAME * values[0] and abs(v @ w) < SAME * length * turn
        found[j] = (at.position[j] + np.cross(w, v) / turn, w / np.sqrt(turn)) if only else None
    return found


def _balls(closures: Closures, at: LinkPoses) -> list[Array]:
    joints = [at.position[j] for j, link in enumerate(closures.tree.links) if link.joint.kind == "spherical"]
    ties = [loop for loop in closures.loops if loop.kind == "spherical" and len(loop.translations) == 3]
    return [np.asarray(p, dtype=float) for p in [*joints, *(at.of(loop.first)[1] for loop in ties)]]


def _held_by_two(line: tuple[Array, Array] | None, balls: list[Array], length: float) -> bool:
    if line is None:
        return False
    on = [p for p in balls if np.linalg.norm(np.cross(p - line[0], line[1])) < SAME * length]
    return any(np.linalg.norm(a - b) > SAME * length for a, b in combinations(on, 2))
