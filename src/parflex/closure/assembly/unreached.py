"""Why a part of a robot stays open at a pose: which leg is too short and by how much, or that it is singular there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.assembly.newton import stack
from parflex.closure.constraints import Coupling
from parflex.closure.targets import FrameTarget, Target
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.records import listed
from parflex.recursion import pose

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
    small = assembler.branch(part.rows)
    tree, start, rows = small.tree, q[small.positions], [row.on(small) for row in part.rows]
    columns = np.searchsorted(small.rates, part.columns) if len(part.columns) else part.columns

    def residual(step: Array) -> Array:

        increment = np.zeros(tree.n)
        increment[columns] = step * tree.rate_units[columns]
        at = pose(tree, tree.moved(start, increment))
        return stack(row.residual(at, tree.length) for row in rows)

    if not len(part.columns):
        return float(np.linalg.norm(residual(np.zeros(0))))
    starts = [np.zeros(len(part.columns))]
    if len(part.columns) <= 6:
        starts += list(np.random.default_rng(1).uniform(-2, 2, (4, len(part.columns))))
    exact = {"xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-14, "max_nfev": 80}  # four digits are printed
    from scipy.optimize import least_squares  # a tenth of a second to load

    fits = (least_squares(residual, x0, **exact) for x0 in starts)
    return min(float(np.linalg.norm(fit.fun)) for fit in fits)
