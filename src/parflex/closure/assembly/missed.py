"""Which condition of a pose cannot be met beside the others, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.closure import mobility
from parflex.closure.assembly.assembler import Assembler
from parflex.closure.pose_rows import GapTarget, OnFrame
from parflex.closure.targets import PoseRows, Target
from parflex.closure.working_modes import Rows
from parflex.errors import UnreachableError
from parflex.recursion.kinematics import pose

Array = np.ndarray
HARD = 1e3  # weight of what must hold beside what may be missed: it opens by a millionth of the miss
STILL = 1e-8  # of a motion of all coordinates: less is rounding
REACHED = 1e-7  # typical lengths, or turns: a smaller miss is none


def missed_condition(assembler: Assembler, target: Target, q: Array, locked: frozenset[int]) -> UnreachableError | None:
    """What direction or distance is missed, and by how much, where the pose could be without it; what cannot turn."""
    for name in _kept_turns(assembler, target, q, locked):
        return UnreachableError(
            f"'{name}' cannot turn: the loops keep its orientation",
            key="pose",
            value=name,
            hint="leave the rotation out of the pose",
        )
    for row in target.frames:
        if not isinstance(row, OnFrame | GapTarget):
            continue
        rest = replace(target, frames=tuple(other for other in target.frames if other is not row))
        near = assembler.near(rest, q, None, locked)
        if near is None:
            continue
        miss = _miss(assembler, rest, row, near, locked)
        if miss < REACHED * assembler.tree.length:
            continue
        beside = " beside the other conditions" if rest.frames or rest.fixed else ""
        if isinstance(row, GapTarget):
            wish, off = f"'{row.name}' = {row.distance:.4g} m", f"{miss:.4g} m"
        else:
            wish, off = f"this direction of '{row.name}'", f"{np.degrees(miss / assembler.tree.length):.3g} deg"
        return UnreachableError(
            f"no pose has {wish}{beside}: the nearest is off by {off}",
            key="pose",
            value=row.name,
            hint="give what the robot can have, or fewer other conditions",
        )
    return None


def _kept_turns(assembler: Assembler, target: Target, q: Array, locked: frozenset[int]) -> list[str]:
    """Free bodies that are asked to turn, and do not in any motion that the loops allow."""
    tree, first = assembler.tree, 2 if assembler.tree.planar else 3
    asked = [link for link in tree.links if link.joint.moves_freely and link.v.start + first in target.fixed]
    if not asked:
        return []
    free = [k for k in range(tree.n) if k not in locked]
    J = mobility.scaled_jacobian(assembler.closures, q)[:, free]
    motions = np.zeros((tree.n, len(free) - mobility.rank(J)))
    motions[free] = np.linalg.svd(J)[2][mobility.rank(J) :].T
    return [link.name for link in asked if np.linalg.norm(motions[link.v][first:]) < STILL]


def _miss(assembler: Assembler, rest: Target, row: PoseRows, q: Array, locked: frozenset[int]) -> float:
    """Smallest residual of a row, in metres, where all others hold."""
    tree = assembler.tree
    columns = np.array([k for k in range(tree.n) if k not in rest.fixed | locked], dtype=int)
    held: Sequence[Rows] = [*assembler.closures.rows, *rest.frames]

    def residual(step: Array) -> Array:

        increment = np.zeros(tree.n)
        increment[columns] = step * tree.rate_units[columns]
        at = pose(tree, tree.moved(q, increment))
        hard = [HARD * one.residual(at, tree.length) for one in held]
        return np.concatenate([*hard, row.residual(at, tree.length)])

    from scipy.optimize import least_squares  # a tenth of a second to load

    found = least_squares(residual, np.zeros(len(columns)), xtol=1e-10, ftol=1e-10, max_nfev=60)
    return float(np.linalg.norm(found.fun[-row.size :]))
