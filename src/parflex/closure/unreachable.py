"""Explain why a pose is not reached: the open loop and its gap, the missed condition, or another working mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Coupling, Loop
from parflex.closure.newton import ClosurePart, newton, openings, stepped
from parflex.closure.rows import Rows, block
from parflex.closure.targets import DistanceTarget, FrameRotationRows, FrameTarget, PoseRows, Target
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.records import Record, name_list
from parflex.recursion.kinematics import jacobians, pose
from parflex.tree.tree import Place, Tree

if TYPE_CHECKING:
    from parflex.closure.assembler import Assembler

Array = np.ndarray
HARD = 1e3  # weight of what must hold beside what may be missed: it opens by a millionth of the miss
STILL = 1e-8  # of a motion of all coordinates: less is rounding
REACHED = 1e-7  # typical lengths, or turns: a smaller miss is none
SAME = 1e-8  # typical lengths: what stays as little open closes in a double root
BYSTANDER = 1e-3  # of the opening of a part: loops that stay open by less are not named
MOST_STEPS = 80  # towards the smallest opening, of which four digits are printed
SMALLEST_DECREASE = 1e-8  # of the squared opening, of a step: less changes no digit, even if the next 999 do as much
RANK_ONE = 1e-8  # share of the product of two vectors below which no rank-one update is made (Nocedal and Wright)
LEAST_DAMPING, MOST_DAMPING = 1e-9, 1e9  # of steps, by the curvature: with the most, no step comes closer


@dataclass(frozen=True, eq=False, repr=False)
class Refusal(Record):
    """A part that does not close at a target: not at all, or in another mode, or assembly on the `same_side`.

    `start` is where Newton's method ended.
    """

    assembler: Assembler
    start: Array
    part: ClosurePart
    closes: bool = False
    same_side: bool = False
    target: Target | None = None  # for which the part was closed

    def error(self) -> ParflexError:
        """Return the error to raise."""
        assembler, part = self.assembler, self.part
        if self.closes:
            return other_mode_reason(part.name, self.same_side)
        (name, gap), least = _worst_leg(assembler, self.start, part), SAME * assembler.tree.length
        if gap < least:  # each condition by itself can be met
            whole = _gap(assembler, self.start, part)
            name, gap = (name, gap) if whole[1] < least else whole
        if gap < least:
            text = f"'{name}' is at a singularity of the leg: it reaches this pose only fully stretched or folded"
            return SingularError(text, key="pose", value=name, hint="choose another pose")
        coupling = next((row for row in part.rows if isinstance(row, Coupling) and row.name == name), None)
        if coupling is not None:
            joints, unit = name_list([f"'{joint}'" for joint in coupling.joints]), coupling.unit
            off = gap / coupling.scale(assembler.tree.length)[0]
            text = f"the pose contradicts the coupling '{name}': '{coupling.joints[0]}' is off by {off:.4g} {unit}"
            hint = f"it says {coupling.relation}; give fewer of {joints} and of what moves with them"
            return UnreachableError(text, key="pose", value=name, hint=hint)
        miss = f"misses it by {gap:.4g} m"
        text = f"the pose cannot be reached: {f'the nearest {miss}, at {name}' if ',' in name else f'{name} {miss}'}"
        hint = "choose a pose inside the workspace or another working mode"
        return UnreachableError(text, key="pose", value=name, hint=hint)


def other_mode_reason(name: str, same_side: bool) -> UnreachableError:
    """What is said of a part that closes, but not in the mode of the reference; without a name of the whole robot."""
    label = "the robot" if "," in name or not name else name
    text, hint = f"{label} reaches this pose only in another working mode", "choose that working mode, or another pose"
    if same_side:
        text = f"{label} reaches this pose only in another assembly mode: "
        text += "all ways there that were tried meet a singular pose"
        hint = "give a pose on this side of it, or a home in that mode"
    return UnreachableError(text, key="pose", value=name, hint=hint)


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
            missing = max(missing, chains.shortfall(row, loops))
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

    def between(self, start: Place, end: Place) -> list[float]:
        """Return lengths between two places over the link that carries both, or none if they change."""
        common = set(self.tree.path(start.link)) & set(self.tree.path(end.link))
        first, second = self.corners(start, common), self.corners(end, common)
        if first is None or second is None:
            return []
        return [*_sides(first), *_sides(second), float(np.linalg.norm(second[0] - first[0]))]

    def shortfall(self, target: FrameTarget, loops: list[Loop]) -> float:
        """By how much the ways to a frame from the ground, directly and over one loop, are too short for its place."""
        routes = [(target.place, 0.0)]
        for loop in loops:
            for end, beyond in ((loop.first, loop.second), (loop.second, loop.first)):
                sides = self.between(end, target.place)
                routes += [(beyond, sum(sides))] if sides else []
        axes, missing = list(target.position), 0.0
        for place, length in routes:
            corners = self.corners(place, set())
            if corners is not None:
                distance = np.linalg.norm(corners[0][axes] - list(target.position.values()))
                missing = max(missing, float(distance) - sum(_sides(corners)) - length)
        return missing


def _sides(corners: list[Array]) -> list[float]:
    return [float(np.linalg.norm(b - a)) for a, b in pairwise(corners)]


def _worst_leg(assembler: Assembler, q: Array, part: ClosurePart) -> tuple[str, float]:
    """Which leg is too short, and by how much: that which carries the placed frame, or the worst of the others."""
    columns = {int(k) for k in part.columns}
    gaps: list[tuple[str, float]] = []
    for row in part.rows:
        if not isinstance(row, FrameTarget):
            continue
        carrying = {k for j in row.links(assembler.tree) for k in assembler.rates_of(j)} & columns
        carrier = assembler.part([row], carrying)
        placed, _ = assembler.newton(q, carrier.columns, carrier.rows)
        gaps.append(_gap(assembler, placed, carrier))
        legs = assembler.parts(Target(fixed=frozenset(carrying)), frozenset(range(assembler.tree.n)) - columns)
        gaps += [_gap(assembler, placed, leg) for leg in legs]
    return max(gaps, key=lambda gap: gap[1]) if gaps else _gap(assembler, q, part)


def _gap(assembler: Assembler, q: Array, part: ClosurePart) -> tuple[str, float]:
    """The leg, or those loops of the part that stay open, and the smallest distance by which they do."""
    missing = missing_length(assembler, q, part)
    if missing and assembler.tree.planar and [row.size for row in part.rows] == [2]:  # a loop of points
        return part.name, missing
    small = assembler.branch(part.rows)
    tree, start, rows = small.tree, q[small.positions], [row.on(small) for row in part.rows]
    columns, ends = np.searchsorted(small.rates, part.columns), [start]
    if 0 < len(columns) <= 6:
        steps = np.random.default_rng(1).uniform(-2, 2, (4, len(columns)))  # the same every time
        ends += [end for end, _ in newton(tree, [stepped(tree, start, columns, s) for s in steps], columns, rows, 40)]
    nearest = min(ends, key=lambda end: float(np.linalg.norm(openings(tree, rows, pose(tree, end)))))
    opening = _least_opening(tree, nearest, columns, rows)
    gap, each = float(np.linalg.norm(opening)), np.split(opening, np.cumsum([row.size for row in rows])[:-1])
    if "," not in part.name or gap < SAME * tree.length:
        return part.name, gap
    sizes = zip(part.rows, map(np.linalg.norm, each), strict=True)
    names = [row.name for row, size in sizes if size > BYSTANDER * gap and not isinstance(row, PoseRows)]
    return ", ".join(names) or part.name, gap


def _least_opening(tree: Tree, q: Array, columns: Array, rows: Sequence[Rows], hard: Sequence[Rows] = ()) -> Array:
    """Rows (m) at the smallest opening that steps of some rates reach from `q`; `hard` ones hold.

    Levenberg-Marquardt about the positions of each step, so that the slopes of the rows are those at these positions.
    The opening stays, so its curvature counts too: it is learned from changes of the slopes (NL2SOL), by rank-one
    updates. Scales of the damping never fall (Moré), as slopes vanish where a chain is stretched.
    """
    weights = np.concatenate([np.full(sum(row.size for row in part), w) for part, w in ((hard, HARD), (rows, 1.0))])
    every, damping, scales = [*hard, *rows], LEAST_DAMPING, np.zeros(len(columns))
    bending, before, step = np.zeros((len(columns), len(columns))), None, np.zeros(len(columns))
    at = pose(tree, q)
    r = weights * openings(tree, every, at)
    for _ in range(MOST_STEPS if len(columns) else 0):
        J = weights[:, None] * block(tree, every, columns, at, jacobians(tree, at, columns))
        if before is not None:
            change = (J - before).T @ r - bending @ step
            if abs(change @ step) > RANK_ONE * np.linalg.norm(change) * np.linalg.norm(step):
                bending += np.outer(change, change) / (change @ step)
        slope, curvature, decrease, before = J.T @ r, J.T @ J + bending, -1.0, J
        scales = np.maximum(scales, np.sum(J**2, axis=0))
        while decrease < -SMALLEST_DECREASE and damping < MOST_DAMPING:
            step = np.linalg.lstsq(curvature + damping * np.diag(scales), -slope, rcond=None)[0]
            trial = pose(tree, stepped(tree, q, columns, step))
            trial_r = weights * openings(tree, every, trial)
            decrease = 1 - (trial_r @ trial_r) / max(r @ r, 1e-300)
            damping *= 10
        if decrease < SMALLEST_DECREASE:
            break
        q, at, r, damping = np.asarray(trial.q), trial, trial_r, max(damping / 100, LEAST_DAMPING)
    return np.asarray(tree.length * r[-sum(row.size for row in rows) :])


def unmet_condition(assembler: Assembler, target: Target, q: Array, locked: frozenset[int]) -> UnreachableError | None:
    """What direction or distance is missed, and by how much, where the pose could be without it; what cannot turn."""
    for name in _blocked_rotations(assembler, target, q, locked):
        text = f"'{name}' cannot turn: the loops keep its orientation"
        return UnreachableError(text, key="pose", value=name, hint="leave the rotation out of the pose")
    for row in target.frames:
        if not isinstance(row, FrameRotationRows | DistanceTarget):
            continue
        remaining = replace(target, frames=tuple(condition for condition in target.frames if condition is not row))
        nearby = assembler.near(remaining, q, None, locked)
        if nearby is None:
            continue
        tree, hard = assembler.tree, [*assembler.closures.rows, *remaining.frames]
        columns = np.array([k for k in range(tree.n) if k not in remaining.fixed | locked])
        rest = _least_opening(tree, nearby, columns, [row], hard)
        miss = float(np.linalg.norm(rest))
        if miss < REACHED * assembler.tree.length:
            continue
        suffix = " beside the other conditions" if remaining.frames or remaining.fixed else ""
        if isinstance(row, DistanceTarget):
            requested, deviation = f"'{row.name}' = {row.distance:.4g} m", f"{miss:.4g} m"
        else:
            requested, deviation = f"this direction of '{row.name}'", f"{np.degrees(miss / tree.length):.3g} deg"
        text = f"no pose has {requested}{suffix}: the nearest is off by {deviation}"
        hint = "give what the robot can have, or fewer other conditions"
        return UnreachableError(text, key="pose", value=row.name, hint=hint)
    return None


def _blocked_rotations(assembler: Assembler, target: Target, q: Array, locked: frozenset[int]) -> list[str]:
    """Free bodies that are asked to turn, and do not in any motion that the loops allow."""
    tree, first = assembler.tree, 2 if assembler.tree.planar else 3
    turning_links = [link for link in tree.links if link.joint.moves_freely and link.v.start + first in target.fixed]
    if not turning_links:
        return []
    free = [k for k in range(tree.n) if k not in locked]
    J = mobility.scaled_jacobian(assembler.closures, q)[:, free]
    motions = np.zeros((tree.n, len(free) - mobility.rank(J)))
    motions[free] = np.linalg.svd(J)[2][mobility.rank(J) :].T
    return [link.name for link in turning_links if np.linalg.norm(motions[link.v][first:]) < STILL]
