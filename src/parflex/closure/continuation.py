"""Continuation to distant poses, and the reason why a pose cannot be reached.

Loops may close in several assemblies on one side of their singularities, and at every whole turn of a shaft, with its
screws or gears elsewhere. Only a path without a singular pose determines the assembly. The straight path is tried
first; if it meets a singular pose, paths around that pose may still reach the assembly of home.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.closure.constraints import Coupling, Loop
from parflex.closure.newton import stack
from parflex.closure.targets import FrameTarget, PoseRows, Target
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.records import name_list
from parflex.recursion.kinematics import jacobians, pose
from parflex.tree.tree import Place, Tree

if TYPE_CHECKING:
    from parflex.closure.assembler import Assembler
    from parflex.closure.newton import ClosurePart

Array = np.ndarray

Newton = Callable[[Array, Array, Sequence[Any]], tuple[Array, float]]

FIRST = 0.1  # rad, typical lengths: longest first step of what is driven

CORRECTED = 0.1  # rad, typical lengths: a step that Newton corrects by more is halved

SMOOTH = 0.02  # by less: the next one is twice as long

MOST_STEPS = 4000

SHORTEST = 1e-9  # of the way

ASIDE = (0.5, 1.0)  # of the length of a way: how far its way points lie beside its middle

DIRECTIONS = 3  # at most, in which they lie, to both sides

SHOWN = 1e-6  # of a distance: four digits are shown

SAME = 1e-8  # typical lengths: what stays as little open closes in a double root


def follow_to_target(
    tree: Tree,
    target: Target,
    q: Array,
    rows: Sequence[Any],
    newton: Newton,
    columns: Array,
    closed: float,
    shortest: float = SHORTEST,
) -> Array | None:
    """Positions at a target, by steps from `q` that each continue the last one; None where the way ends before it.

    `newton` closes rows by columns; a row is closed where it leaves less than `closed`. A way that takes a shorter step
    than this share of it ends.
    """
    units, goal, at = position_units(tree), target.applied(q), pose(tree, q)
    driven = [index for index in target.values if goal[index] != q[index]]
    longest = max((abs(goal[k] - q[k]) / units[k] for k in driven), default=0.0)
    origin, current, share, step = q, q, 0.0, min(1.0, FIRST / max(longest, FIRST))
    slope = np.zeros(len(q))  # of all positions over the way
    for _ in range(MOST_STEPS):
        next_share = min(1.0, share + step)
        guess = current + (next_share - share) * slope
        for k in driven:
            guess[k] = origin[k] + next_share * (goal[k] - origin[k])
        guess = target.applied(guess) if next_share == 1.0 else guess
        guess = _unit(tree, guess)
        path_rows = [row.between(at, next_share) if isinstance(row, PoseRows) else row for row in rows]
        solution, error = newton(guess, columns, path_rows)
        change = float(np.abs((solution - guess) / units).max(initial=0.0))
        first = not slope.any()
        if error > closed or change > (4 if first else 1) * CORRECTED:
            step /= 2
            if step < shortest:
                return None
            continue
        slope, current, share = (solution - current) / (next_share - share), solution, next_share
        if share == 1.0:
            return current
        step *= 2 if change < SMOOTH else 1
    return None


def position_units(tree: Tree) -> Array:
    """Of all positions: angles and quaternions 1, ways the typical length."""
    units = np.ones(tree.nq)
    for link in tree.links:
        if link.joint.one_axis:
            units[link.q.start] = np.max(tree.rate_units[link.v.start])
    return units


def _unit(tree: Tree, q: Array) -> Array:
    """Positions whose quaternions have the length 1."""
    result = q.copy()
    for link in tree.links:
        if link.joint.quaternion:
            result[link.q_quaternion] /= np.linalg.norm(result[link.q_quaternion])
    return result


def waypoints(origin: Array, goal: Array, units: Array, turning: Array) -> Iterator[Array]:
    """Way points (points x coordinates) to a goal, the last of them; the straight way is the first.

    Coordinates that turn freely go by the shorter turn next, and later by the longer one; then one coordinate moves
    after the other, and then all of them over points beside the way, by `units` that make them comparable.
    """
    yield goal[None]
    shortest_goal = goal - np.where(turning, 2 * np.pi * np.round((goal - origin) / (2 * np.pi)), 0.0)
    if np.any(shortest_goal != goal):
        yield shortest_goal[None]
    step, count = shortest_goal - origin, len(goal)
    moving = np.flatnonzero(step)
    for order in (moving, moving[::-1]) if len(moving) > 1 else ():
        points = np.repeat(origin[None], len(order), axis=0)
        for number, k in enumerate(order):
            points[number:, k] = shortest_goal[k]
        yield points
    for k in moving[turning[moving]]:
        longer_turn = shortest_goal.copy()
        longer_turn[k] -= 2 * np.pi * np.sign(step[k])
        yield longer_turn[None]
    length = float(np.linalg.norm(step / units))
    if count < 2 or not length:
        return
    random_vectors = np.random.default_rng(0).standard_normal((count, count - 1))  # the same every time
    normals = np.linalg.qr(np.column_stack([step / units, random_vectors]))[0][:, 1 : 1 + DIRECTIONS]
    for offset in ASIDE:
        for direction in normals.T:
            for side in (1.0, -1.0):
                yield np.array([origin + step / 2 + side * offset * length * direction * units, shortest_goal])


class TargetPaths:
    """The coordinates of a target as numbers, and targets on the way to it from some positions."""

    def __init__(self, tree: Tree, target: Target, q: Array, units: Array, periodic: Collection[int]) -> None:
        self.target, self.at = target, pose(tree, q)
        quaternions = {k for link in tree.links if link.joint.quaternion for k in _range(link.q_quaternion)}
        self.joints = [k for k in target.values if k not in quaternions]
        self.placed = [(row, axis) for row in target.frames if isinstance(row, FrameTarget) for axis in row.position]
        self.turned = {k: q[k] for k in target.values if k in quaternions}
        place_origins = [float(self.at.of(row.place)[1][axis]) for row, axis in self.placed]
        self.origin = np.array([*(q[k] for k in self.joints), *place_origins], dtype=float)
        place_goals = [row.position[axis] for row, axis in self.placed]
        self.goal = np.array([*(target.values[k] for k in self.joints), *place_goals], dtype=float)
        self.units = np.array([*(units[k] for k in self.joints), *(tree.length for _ in self.placed)])
        self.turning = np.array([*(k in periodic for k in self.joints), *(False for _ in self.placed)], dtype=bool)

    def ways(self) -> Iterator[list[tuple[Target, dict[int, PoseRows]]]]:
        """Targets one after the other, and the rows that stand in the place of those of the target, by their ids."""
        for points in waypoints(self.origin, self.goal, self.units, self.turning):
            yield [self._target(point, (k + 1) / len(points)) for k, point in enumerate(points)]

    def _target(self, point: Array, share: float) -> tuple[Target, dict[int, PoseRows]]:
        """The target at a way point; rotations have gone this share of their way."""
        goal_values = self.target.values
        values = dict(zip(self.joints, point.tolist(), strict=False))
        values |= {k: start_value + share * (goal_values[k] - start_value) for k, start_value in self.turned.items()}
        if share == 1.0:
            return replace(self.target, values=values), {}
        positions: dict[int, dict[int, float]] = {}
        for (row, axis), value in zip(self.placed, point[len(self.joints) :].tolist(), strict=True):
            positions.setdefault(id(row), {})[axis] = value
        rows: dict[int, PoseRows] = {}
        for condition in self.target.frames:
            part = condition.between(self.at, share)
            if isinstance(part, FrameTarget) and part.position:
                part = replace(part, position=positions[id(condition)])
            rows[id(condition)] = part
        return replace(self.target, values=values, frames=tuple(rows.values())), rows


def _range(indices: slice) -> range:
    return range(indices.start, indices.stop)


def open_reason(assembler: Assembler, start: Array, part: ClosurePart) -> ParflexError:
    """What is said of a part that no start closes."""
    name, gap = _worst_leg(assembler, start, part)
    if gap < SAME * assembler.tree.length:  # each condition by itself can be met
        total_gap = _gap(assembler, start, part)
        name, gap = (name, gap) if total_gap < SAME * assembler.tree.length else (part.name, total_gap)
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


def other_mode_reason(name: str, same_side: bool) -> UnreachableError:
    """What is said of a part that closes, but not in the mode of the reference; without a name of the whole robot."""
    label = "the robot" if "," in name or not name else name
    if not same_side:
        return UnreachableError(
            f"{label} reaches this pose only in another working mode",
            key="pose",
            value=name,
            hint="choose that working mode, or another pose",
        )
    return UnreachableError(
        f"{label} reaches this pose only in another assembly mode: all ways there that were tried meet a singular pose",
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
        """Lengths on the way from one place over the link that carries both to the other; none if they change."""
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
    gaps: list[tuple[float, str]] = []
    for row in part.rows:
        if not isinstance(row, FrameTarget):
            continue
        carrying = {k for j in row.links(assembler.tree) for k in assembler.rates_of(j)} & columns
        carrier = assembler.part([row], carrying)
        placed, _ = assembler.newton(q, carrier.columns, carrier.rows)
        gaps.append((_gap(assembler, placed, carrier), carrier.name))
        legs = assembler.parts(Target(fixed=frozenset(carrying)), frozenset(range(assembler.tree.n)) - columns)
        gaps += [(_gap(assembler, placed, leg), leg.name) for leg in legs]
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
        blocks = [row.jacobian(tree, at, links)[:, columns] * row.scale(tree.length)[:, None] for row in rows]
        return np.concatenate(blocks) * tree.rate_units[columns]

    if not len(part.columns):
        return float(np.linalg.norm(residual(np.zeros(0))))
    starts = [np.zeros(len(part.columns))]
    if len(part.columns) <= 6:
        starts += list(np.random.default_rng(1).uniform(-2, 2, (4, len(part.columns))))
    options: dict[str, Any] = {"xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-14, "max_nfev": 80}  # four digits are printed
    if all(tree.links[tree.link_of_rate[k]].joint.one_axis for k in columns) and all(map(_of_points, rows)):
        options["jac"] = slopes
    from scipy.optimize import least_squares  # a tenth of a second to load

    gap = np.inf
    for x0 in starts:
        gap = min(gap, float(np.linalg.norm(least_squares(residual, x0, **options).fun)))
        if gap <= missing * (1 + SHOWN):  # none is smaller
            break
    return gap


def _of_points(row: Any) -> bool:
    """Whether the Jacobian of a row is that of its residual where it is open too: of those without turns."""
    return isinstance(row, Loop) and row.size == len(row.translations)
