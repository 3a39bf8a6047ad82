"""Base parameters of the recorded motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.codegen import cache
from parflex.errors import ParflexError, SingularError
from parflex.identification.regressor import ClosedMotion, Regressor
from parflex.identification.unknowns import Unknown, characteristic_sizes
from parflex.records import Record

Array = np.ndarray

DEPENDENT = 1e-5  # of a column, what is left of it beside others where it depends on them; files round to six digits

ZERO = 1e-10  # of the largest column, units taken off

FAINT = 1e-6  # of what is usual for a column, where motions of a record do not tell it

AMPLITUDE = 0.15  # rad, or typical lengths, about home; of rotors behind their gears

STRIDE = 0.15  # the same, of a step on a way from home

REACH = 1.5  # the same, of the whole way

NEAR_SINGULAR = 4.0  # times as fast as at home, the fastest joint where motors move alike

TURNED = 0.3  # of its first direction, by which a way turns in a step

SHORT = 0.3  # of the longest step, the shortest

BENT = 0.5  # of a step, what loops may add to it

SHARE = 1e-6  # of a parameter that goes to another, the least that is named

NEVER_NEGATIVE = ("FV", "FS", "FV_back", "FS_back", "IA", "k", "d")

EXACT = 1e-9  # of the base parameters: what numbers may miss of them


@dataclass(frozen=True, eq=False, repr=False)
class BaseColumns(Record):
    """Independent columns, and how the others depend on them.

    Attributes
    ----------
    kept : list[int]
        Numbers of the independent columns.
    groups : Array
        (kept x all): base parameters are this matrix times all parameters.
    unobservable : list[int]
        Columns that are zero in every motion.
    usual : Array
        Root mean square of all columns in the motion that they were found from.
    """

    kept: list[int]
    groups: Array
    unobservable: list[int]
    usual: Array


def base_columns(regressor: Regressor, along: Sequence[ClosedMotion] = (), seed: int = 0) -> BaseColumns:
    """The base parameters of the closed robot, from random states on ways from home, in the order of the unknowns.

    What holds near home need not hold where records go: states of theirs, `along`, are judged beside.
    """
    states = max(40, -(-3 * len(regressor.unknowns) // len(regressor.rows)))
    near = regressor.of(random_motion(regressor, states, seed))[0]
    others = (random_motion(regressor, states, seed + 1, on_ways=True), *along)
    ratio = regressor.robot.gearing.units / regressor.robot.tree.rate_units
    # efforts behind a gear are as much smaller as their rates are larger: rows and columns compare at its other side
    column_scales = np.array([_ratio(regressor, item, ratio) for item in regressor.unknowns])
    W = np.concatenate([near, *(regressor.of(item)[0] for item in others)])
    base = independent_columns(
        stacked(_evenly(W * ratio[list(regressor.partition.independent)][:, None] / column_scales))
    )
    groups = base.groups / column_scales[base.kept][:, None] * column_scales
    return replace(base, groups=groups, usual=np.sqrt(np.mean(stacked(near) ** 2, axis=0)))


def _evenly(W: Array) -> Array:
    """Rows of states that count alike: beside a singular pose they are so large that others would vanish."""
    for _ in range(2):  # columns are compared by what is usual for them, which is that of such rows
        usual = np.sqrt(np.mean(stacked(W) ** 2, axis=0))
        usual[usual <= ZERO * usual.max(initial=0.0)] = np.inf
        size = np.sqrt(np.mean((W / usual) ** 2, axis=(1, 2), keepdims=True))
        W = W / np.where(size > 0, size, 1.0)
    return W


def grouped_by(base: BaseColumns, record_base: BaseColumns) -> BaseColumns:
    """The same where rows of a record leave some of the columns: those that it does not tell go to those it tells."""
    if len(record_base.kept) == len(base.kept):
        return base
    groups = base.groups.copy()
    groups[record_base.kept] = record_base.groups @ base.groups
    size_ratios = base.usual[[base.kept[k] for k in record_base.kept]][:, None] / np.where(
        base.usual > 0, base.usual, np.inf
    )
    groups[record_base.kept] = np.where(
        np.abs(groups[record_base.kept]) * size_ratios < SHARE, 0.0, groups[record_base.kept]
    )
    return replace(base, groups=groups)


def _ratio(regressor: Regressor, unknown: Unknown, ratio: Array) -> float:
    """How much larger a column is behind the gear of its own link: as rates, and as what they cause."""
    return (
        1.0
        if unknown.element
        else float(np.max(ratio[regressor.robot.tree.links[unknown.link].v], initial=0.0) or 1.0) ** 2
    )


def independent_columns(W: Array, least: float = DEPENDENT, usual: Array | None = None) -> BaseColumns:
    """Columns in turn: one that the columns before it give is grouped with them.

    A column is zero beside the largest one, or beside what is usual for it.
    """
    size = np.linalg.norm(W, axis=0)
    independent: list[int] = []
    bound = ZERO * size.max() if usual is None else FAINT * usual * np.sqrt(len(W))
    empty = [int(k) for k in np.flatnonzero(size <= bound)]
    Q = np.zeros((len(W), 0))
    for k in range(W.shape[1]):
        if k in empty:
            continue
        rest = W[:, k] / size[k]
        for _ in range(2):  # twice is enough for orthogonality to rounding
            rest = rest - Q @ (Q.T @ rest)
        left = float(np.linalg.norm(rest))
        if left > least:
            independent.append(k)
            Q = np.column_stack([Q, rest / left])
    groups = np.zeros((len(independent), W.shape[1]))
    if independent:
        scaled = W / np.where(size > 0, size, 1.0)
        groups = np.linalg.lstsq(scaled[:, independent], scaled, rcond=None)[0] * size / size[independent][:, None]
        groups[np.abs(groups) * (size[independent][:, None] / np.where(size > 0, size, np.inf)) < SHARE] = 0.0
    groups[:, empty] = 0.0
    return BaseColumns(independent, groups, empty, size / np.sqrt(max(len(W), 1)))


def random_motion(regressor: Regressor, count: int, seed: int, on_ways: bool = False) -> ClosedMotion:
    """Closed states about home, or on ways from it, with random rates and accelerations of the motors."""
    robot, rng = regressor.robot, np.random.default_rng(seed)
    units = robot.gearing.units[list(robot.actuated)]
    q, drawn = _stored_poses(regressor, count, seed, on_ways)
    rng.uniform(-1, 1, (drawn, robot.tree.n))  # what the poses took
    shape = (count, len(units))
    return regressor.moved(q, rng.uniform(-2, 2, shape) * units, rng.uniform(-6, 6, shape) * units)


def _stored_poses(regressor: Regressor, count: int, seed: int, on_ways: bool) -> tuple[Array, int]:
    """Random closed poses, from the disk if they were found before, and how many were drawn for them."""
    robot, find_poses = regressor.robot, _poses_along_paths if on_ways else _poses_about_home
    key = cache.key_of(robot, find_poses.__name__, count, seed) if robot.closures.size else None
    if key is not None:
        key = key.removesuffix(".program") + ".poses"
    return cache.stored(
        key,
        lambda: find_poses(regressor, count, seed),
        lambda poses: {"q": poses[0].tolist(), "drawn": poses[1]},
        lambda content: (np.array(content["q"]), content["drawn"]),
    )


def _poses_about_home(regressor: Regressor, count: int, seed: int) -> tuple[Array, int]:
    robot, amplitude = regressor.robot, AMPLITUDE
    tree, rng, drawn = robot.tree, np.random.default_rng(seed), 0
    poses: list[Array] = []
    for _ in range(20 * count):
        if len(poses) == count:
            break
        try:
            drawn += 1
            near = tree.moved(robot.home, rng.uniform(-1, 1, tree.n) * amplitude * robot.gearing.units)
            poses.append(np.asarray(robot.close(near)) if robot.closures.size else near)
        except ParflexError:
            amplitude *= 0.9  # nearer to home
    if len(poses) < count:
        raise SingularError("no closed poses are found about home", key="home", hint="choose another home")
    return np.array(poses), drawn


def _poses_along_paths(regressor: Regressor, count: int, seed: int) -> tuple[Array, int]:
    """Closed poses on ways in random directions from home, each until it is long, or comes near to a singular pose.

    Near home columns of linkages differ by high powers of the motion alone: poses must be far apart to tell them.
    """
    rng, stride = np.random.default_rng(seed), STRIDE
    poses: list[Array] = []
    for drawn in range(20 * count):
        if len(poses) >= count:
            return np.array(poses[:count]), drawn
        directions = rng.uniform(-1, 1, (int(REACH / STRIDE), len(regressor.partition.independent)))
        directions[1:] *= TURNED
        lengths = stride * rng.uniform(SHORT, 1.0, len(directions))
        steps = list(_steps(regressor, np.cumsum(directions, axis=0), lengths))
        poses += steps
        if not steps:
            stride *= 0.9
    raise SingularError("no closed poses are found about home", key="home", hint="choose another home")


def _steps(regressor: Regressor, directions: Array, lengths: Array) -> Iterator[Array]:
    """Closed poses from home on, where independent rates have these directions."""
    robot, q = regressor.robot, regressor.robot.home
    units, rows = robot.gearing.units, list(regressor.partition.independent)
    still = np.zeros((1, len(robot.actuated)))

    def speeds(q: Array) -> Array:
        """All rates per independent one, each in its own unit."""
        return regressor.moved(q[None], still, still).J[0] * units[rows] / units[:, None]

    J = speeds(q)
    most = NEAR_SINGULAR * np.abs(J).max()
    for direction, length in zip(directions, lengths, strict=True):
        rates = J @ direction
        near = robot.tree.moved(q, rates * (length / np.abs(rates).max()) * units)
        try:
            there = np.asarray(robot.close(near)) if robot.closures.size else near
            J = speeds(there)
        except (ParflexError, np.linalg.LinAlgError):
            return
        bent = np.abs(there - near).max() > BENT * np.abs(near - q).max()  # not the way that was meant
        if bent or not np.abs(J).max() < most:
            return
        q = there
        yield q


def stacked(W: Array) -> Array:
    """Rows of all instants one below the other."""
    return W.reshape(-1, W.shape[-1])


def grouped_text(base: BaseColumns, names: list[str], place: int) -> str:
    """What a base parameter is made of, e.g. "ZZ[1] + 0.25 M[2]"."""
    weights = base.groups[place]
    column = base.kept[place]
    parts: list[Any] = [names[column]]
    for k in np.flatnonzero(weights):
        if k != column:
            weight = weights[k]
            sign, size = ("+", weight) if weight > 0 else ("-", -weight)
            parts.append(f"{sign} {names[k]}" if abs(size - 1) < SHARE else f"{sign} {size:.6g} {names[k]}")
    return " ".join(parts)


def nearest_parameters(
    base: BaseColumns, values: Array, every: Sequence[Unknown], identifiable: list[int]
) -> dict[str, float]:
    """All parameters, changed as little as the identified ones allow, each measured with its own size.

    Numbers of joints and springs that would become negative are zero where others can take their part.
    """
    theta, size = np.array([unknown.value for unknown in every]), characteristic_sizes(every, base.kept)
    G, target = base.groups[identifiable], values[identifiable]
    signed = np.array([unknown.symbol in NEVER_NEGATIVE for unknown in every])
    gone = np.zeros(len(every), dtype=bool)
    nearest = theta
    for _ in range(len(every)):
        start = np.where(gone, 0.0, theta)
        scales = np.where(gone, 0.0, size)
        change = np.linalg.lstsq(G * scales, target - G @ start, rcond=None)[0] * scales
        missed = np.abs(G @ (start + change) - target)
        if gone.any() and (missed > EXACT * (np.abs(G) @ np.maximum(np.abs(theta), size))).any():
            break  # others cannot: it is negative, and said to be
        nearest = start + change
        negative = signed & (nearest < 0)
        if not negative.any():
            break
        gone |= negative
    return {unknown.name: float(value) for unknown, value in zip(every, nearest, strict=True)}
