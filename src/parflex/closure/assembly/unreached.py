"""Why a part of a robot stays open at a pose: which leg is too short and by how much, or that it is singular there."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.closure.assembly.newton import stack
from parflex.closure.constraints import Coupling
from parflex.closure.loops import Loop
from parflex.closure.targets import FrameTarget, Target
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.records import listed
from parflex.recursion import jacobians, pose

if TYPE_CHECKING:
    from parflex.closure.assembly.assembler import Assembler, ClosurePart

Array = np.ndarray
SAME = 1e-8  # typical lengths: what stays as little open closes in a double root


def why_open(assembler: Assembler, start: Array, part: ClosurePart) -> ParflexError:
    """What is said of a part that no start closes."""
    name, gap = _culprit(assembler, start, part)
    if gap < SAME * assembler.tree.length:  # each condition by itself can be met
        whole = _gap(assembler, start, part)
        name, gap = (name, gap) if whole < SAME * assembler.tree.length else (part.name, whole)
    if gap < SAME * assembler.tree.length:
        return SingularError(
            f"'{name}' is at a singularity of the leg: it reaches this pose only fully stretched or folded",
            key="pose",
            value=name,
            hint="choose another pose",
        )
    coupling = next((row for row in part.rows if isinstance(row, Coupling) and row.name == name), None)
    if coupling is not None:
        joints, unit = listed([f"'{joint}'" for joint in coupling.joints]), coupling.unit
        off = gap / coupling.scale(assembler.tree.length)[0]
        return UnreachableError(
            f"the pose contradicts the coupling '{name}': '{coupling.joints[0]}' is off by {off:.4g} {unit}",
            key="pose",
            value=name,
            hint=f"it says {coupling.relation}; give fewer of {joints} and of what moves with them",
        )
    return UnreachableError(
        f"the pose cannot be reached: {name} misses it by {gap:.4g} m",
        key="pose",
        value=name,
        hint="choose a pose inside the workspace or another working mode",
    )


def missing_length(assembler: Assembler, q: Array, part: ClosurePart) -> float:
    """By how much links are too short or too long to close a loop of the part, however its joints turn; 0 if not.

    Origins of the joints that turn, and the end that is closed, are the corners of a polygon with sides of fixed
    lengths: it does not close where one side is longer than all others together.
    """
    missing = 0.0
    tree, at = assembler.tree, pose(assembler.tree, q)
    turning = {tree.link_of_rate[k] for k in part.columns}
    for loop in part.rows:
        if not isinstance(loop, Loop) or len(loop.translations) < (2 if tree.planar else 3):
            continue
        common = set(tree.path(loop.first.link)) & set(tree.path(loop.second.link))
        sides, feet = [], []
        for place in (loop.first, loop.second):
            moving = sorted(j for j in tree.path(place.link) if j in turning - common)
            if any(np.any(tree.links[j].joint.S_v) for j in moving):
                break  # what slides has no length
            corners = [*(np.asarray(at.position[j], dtype=float) for j in moving), np.asarray(at.of(place)[1])]
            sides += [float(np.linalg.norm(b - a)) for a, b in pairwise(corners)]
            feet.append(corners[0])
        else:
            sides.append(float(np.linalg.norm(feet[1] - feet[0])))
            missing = max(missing, 2 * max(sides) - sum(sides))
    return missing if missing > SAME * tree.length else 0.0


def _culprit(assembler: Assembler, q: Array, part: ClosurePart) -> tuple[str, float]:
    """Which leg is too short, and by how much: that which carries the placed frame, or the worst of the others."""
    columns = {int(k) for k in part.columns}
    gaps: list[tuple[float, str]] = []
    for row in part.rows:
        if not isinstance(row, FrameTarget):
            continue
        carrying = {k for j in row.links(assembler.tree) for k in assembler.rates_of(j)} & columns
        own = assembler.part([row], carrying)
        placed, _ = assembler.newton(q, own.columns, own.rows)
        gaps.append((_gap(assembler, placed, own), own.name))
        others = assembler.parts(Target(fixed=frozenset(carrying)), frozenset(range(assembler.tree.n)) - columns)
        gaps += [(_gap(assembler, placed, other), other.name) for other in others]
    if not gaps:
        return part.name, _gap(assembler, q, part)
    gap, name = max(gaps)
    return name, gap


def _gap(assembler: Assembler, q: Array, part: ClosurePart) -> float:
    """Smallest distance by which the part stays open."""
    if assembler.tree.planar and len(part.rows) == 1 and _of_points(part.rows[0]):
        missing = missing_length(assembler, q, part)
        if missing:
            return missing
    small = assembler.branch(part.rows)
    tree, start, rows = small.tree, q[small.positions], [row.on(small) for row in part.rows]
    columns = np.searchsorted(small.rates, part.columns) if len(part.columns) else part.columns

    def moved(step: Array) -> Any:
        increment = np.zeros(tree.n)
        increment[columns] = step * tree.rate_units[columns]
        return pose(tree, tree.moved(start, increment))

    def residual(step: Array) -> Array:
        at = moved(step)
        return stack(row.residual(at, tree.length) for row in rows)

    def slopes(step: Array) -> Array:
        at = moved(step)
        links = jacobians(tree, at)
        own = [row.jacobian(tree, at, links)[:, columns] * row.scale(tree.length)[:, None] for row in rows]
        return np.concatenate(own) * tree.rate_units[columns]

    if not len(part.columns):
        return float(np.linalg.norm(residual(np.zeros(0))))
    starts = [np.zeros(len(part.columns))]
    if len(part.columns) <= 6:
        starts += list(np.random.default_rng(1).uniform(-2, 2, (4, len(part.columns))))
    exact: dict[str, Any] = {"xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-14, "max_nfev": 80}  # four digits are printed
    if all(tree.links[tree.link_of_rate[k]].joint.one_axis for k in columns) and all(map(_of_points, rows)):
        exact["jac"] = slopes
    from scipy.optimize import least_squares  # a tenth of a second to load

    fits = (least_squares(residual, x0, **exact) for x0 in starts)
    return min(float(np.linalg.norm(fit.fun)) for fit in fits)


def _of_points(row: Any) -> bool:
    """Whether the Jacobian of a row is that of its residual where it is open too: of those without turns."""
    return isinstance(row, Loop) and row.size == len(row.translations)
