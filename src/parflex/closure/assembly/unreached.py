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
from parflex.records import name_list
from parflex.recursion.kinematics import jacobians, pose
from parflex.tree.tree import Place

if TYPE_CHECKING:
    from parflex.closure.assembly.assembler import Assembler
    from parflex.closure.assembly.closure_parts import ClosurePart

Array = np.ndarray
SHOWN = 1e-6  # of a distance: four digits are shown
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
        joints, unit = name_list([f"'{joint}'" for joint in coupling.joints]), coupling.unit
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


def another_mode(name: str, same_side: bool) -> UnreachableError:
    """What is said of a part that closes, but not in the mode of the reference; without a name of the whole robot."""
    whole = "the robot" if "," in name or not name else name
    if not same_side:
        return UnreachableError(
            f"{whole} reaches this pose only in another working mode",
            key="pose",
            value=name,
            hint="choose that working mode, or another pose",
        )
    return UnreachableError(
        f"{whole} reaches this pose only in another assembly mode: all ways there that were tried meet a singular pose",
        key="pose",
        value=name,
        hint="give a pose on this side of it, or a home in that mode",
    )


def missing_length(assembler: Assembler, q: Array, part: ClosurePart) -> float:
    """By how much links are too short or too long to close a loop of the part, however its joints turn; 0 if not.

    Origins of the joints that turn, and the end that is closed, are the corners of a polygon with sides of fixed
    lengths: it does not close where one side is longer than all others together. A frame that is to have some
    coordinates is not farther from the foot of a leg that carries it than the leg and the bodies between are long.
    """
    chains = _Chains(assembler, q, part)
    full = 2 if assembler.tree.planar else 3
    loops = [row for row in part.rows if isinstance(row, Loop) and len(row.translations) >= full]
    missing = 0.0
    for loop in loops:
        sides = chains.between(loop.first, loop.second)
        if sides:
            missing = max(missing, 2 * max(sides) - sum(sides))
    for row in part.rows:
        if isinstance(row, FrameTarget) and row.position:
            missing = max(missing, chains.short_of(row, loops))
    return missing if missing > SAME * assembler.tree.length else 0.0


class _Chains:
    """Lengths between places that do not change while the joints of a part turn."""

    def __init__(self, assembler: Assembler, q: Array, part: ClosurePart) -> None:
        self.tree, self.at = assembler.tree, pose(assembler.tree, q)
        self.rates: dict[int, list[int]] = {}  # of each joint that moves
        for k in part.columns:
            link = self.tree.link_of_rate[k]
            self.rates.setdefault(link, []).append(int(k) - self.tree.links[link].v.start)

    def corners(self, place: Place, common: set[int]) -> list[Array] | None:
        """Origins of the joints that turn on the way to a place, and the place; none where something slides."""
        moving = sorted(j for j in self.tree.path(place.link) if j in self.rates and j not in common)
        if any(np.any(self.tree.links[j].joint.S_v[:, self.rates[j]]) for j in moving):
            return None  # what slides has no length
        return [*(np.asarray(self.at.position[j], dtype=float) for j in moving), np.asarray(self.at.of(place)[1])]

    def between(self, one: Place, other: Place) -> list[float]:
        """Lengths on the way from one place over the link that carries both to the other; none if they change."""
        common = set(self.tree.path(one.link)) & set(self.tree.path(other.link))
        first, second = self.corners(one, common), self.corners(other, common)
        if first is None or second is None:
            return []
        return [*_sides(first), *_sides(second), float(np.linalg.norm(second[0] - first[0]))]

    def short_of(self, target: FrameTarget, loops: list[Loop]) -> float:
        """By how much the ways to a frame from the ground, directly and over one loop, are too short for its place."""
        ways = [(target.place, 0.0)]
        for loop in loops:
            for end, beyond in ((loop.first, loop.second), (loop.second, loop.first)):
                sides = self.between(end, target.place)
                ways += [(beyond, sum(sides))] if sides else []
        axes, missing = list(target.position), 0.0
        for place, rest in ways:
            corners = self.corners(place, set())
            if corners is not None:
                away = np.linalg.norm(corners[0][axes] - list(target.position.values()))
                missing = max(missing, float(away) - sum(_sides(corners)) - rest)
        return missing


def _sides(corners: list[Array]) -> list[float]:
    return [float(np.linalg.norm(b - a)) for a, b in pairwise(corners)]


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
    missing = missing_length(assembler, q, part)
    if missing and assembler.tree.planar and len(part.rows) == 1 and _of_points(part.rows[0]):
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

    gap = np.inf
    for x0 in starts:
        gap = min(gap, float(np.linalg.norm(least_squares(residual, x0, **exact).fun)))
        if gap <= missing * (1 + SHOWN):  # none is smaller
            break
    return gap


def _of_points(row: Any) -> bool:
    """Whether the Jacobian of a row is that of its residual where it is open too: of those without turns."""
    return isinstance(row, Loop) and row.size == len(row.translations)
