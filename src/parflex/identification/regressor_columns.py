"""Base parameters: a QR decomposition of the regressor of random closed states and of recorded ones.

Columns are taken in the order of the unknowns. The diagonal of R is what is left of each beside those before it; a
column of which nothing is left is grouped with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parflex.codegen import cache
from parflex.errors import ParflexError, SingularError
from parflex.identification.regressor import ClosedMotion, Regressor
from parflex.identification.unknowns import NEVER_NEGATIVE, Unknown, characteristic_sizes
from parflex.records import Record

Array = np.ndarray
DEPENDENT = 1e-5  # of a column, what is left of it beside others where it depends on them; files round to six digits
ZERO = 1e-10  # of the largest column, units taken off
FAINT = 1e-6  # of what is usual for a column, where motions of a record do not tell it
NEAR, FAR = 0.15, 0.5  # rad, or typical lengths, about home; of rotors behind their gears
SHARE = 1e-6  # of a parameter that goes to another, the least that is named
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
    """The base parameters of the closed robot, from random states near home and far from it, and from recorded ones."""
    states = max(40, -(-3 * len(regressor.unknowns) // len(regressor.rows)))
    near = regressor.of(random_motion(regressor, states, seed))[0]
    others = (random_motion(regressor, states, seed + 1, FAR), *along)
    ratio = regressor.robot.gearing.units / regressor.robot.tree.rate_units
    # efforts behind a gear are as much smaller as their rates are larger: rows and columns compare at its other side
    links = regressor.robot.tree.links
    column_scales = np.array([
        1.0 if item.element else float(np.max(ratio[links[item.link].v], initial=0.0) or 1.0) ** 2
        for item in regressor.unknowns
    ])  # fmt: skip
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


def independent_columns(W: Array, least: float = DEPENDENT, usual: Array | None = None) -> BaseColumns:
    """Columns that do not depend on those before them, and how the others depend on them.

    A column is zero beside the largest one, or beside what is usual for it.
    """
    size = np.linalg.norm(W, axis=0)
    empty = size <= (ZERO * size.max() if usual is None else FAINT * usual * np.sqrt(len(W)))
    scaled = np.where(empty, 0.0, W / np.where(size > 0, size, 1.0))
    left = np.abs(np.diag(np.linalg.qr(scaled, mode="r")))
    kept = [int(k) for k in np.flatnonzero(left > least)]
    weights = np.linalg.lstsq(scaled[:, kept], scaled, rcond=None)[0]
    weights[np.abs(weights) < SHARE] = 0.0
    groups = weights * size / size[kept][:, None]
    return BaseColumns(kept, groups, [int(k) for k in np.flatnonzero(empty)], size / np.sqrt(max(len(W), 1)))


def random_motion(regressor: Regressor, count: int, seed: int, reach: float = NEAR) -> ClosedMotion:
    """Closed states about home with random rates and accelerations of the motors."""
    robot, rng = regressor.robot, np.random.default_rng(seed)
    units = robot.gearing.units[list(robot.actuated)]
    q, drawn = _stored_poses(regressor, count, seed, reach)
    rng.uniform(-1, 1, (drawn, robot.tree.n))  # what the poses took
    shape = (count, len(units))
    return regressor.moved(q, rng.uniform(-2, 2, shape) * units, rng.uniform(-6, 6, shape) * units)


def _stored_poses(regressor: Regressor, count: int, seed: int, reach: float) -> tuple[Array, int]:
    """Random closed poses, from the disk if they were found before, and how many were drawn for them."""
    robot = regressor.robot
    key = cache.key_of(robot, "_poses_about_home", count, seed, reach) if robot.closures.size else None
    if key is not None:
        key = key.removesuffix(".program") + ".poses"
    return cache.stored(key, lambda: _poses_about_home(regressor, count, seed, reach))


def _poses_about_home(regressor: Regressor, count: int, seed: int, amplitude: float) -> tuple[Array, int]:
    robot = regressor.robot
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


def stacked(W: Array) -> Array:
    """Rows of all instants one below the other."""
    return W.reshape(-1, W.shape[-1])


def grouped_text(base: BaseColumns, names: list[str], place: int) -> str:
    """What a base parameter is made of, e.g. "ZZ[1] + 0.25 M[2]"."""
    parts = [names[base.kept[place]]]
    for k in np.flatnonzero(base.groups[place]):
        if k != base.kept[place]:
            weight = base.groups[place, k]
            size = "" if abs(abs(weight) - 1) < SHARE else f"{abs(weight):.6g} "
            parts.append(f"{'+' if weight > 0 else '-'} {size}{names[k]}")
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
