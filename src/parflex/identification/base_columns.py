"""Base parameters of a closed robot: which columns of its regressor are independent, and what the others go to."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.codegen import disk_cache, program_store
from parflex.errors import ParflexError, SingularError
from parflex.identification.regressors import ClosedMotion, Regressor
from parflex.identification.unknowns import Unknown
from parflex.models.robot import Robot
from parflex.records import Record

Array = np.ndarray
DEPENDENT = 1e-5  # of a column, what is left of it beside others where it depends on them; files round to six digits
ZERO = 1e-10  # of the largest column, units taken off
FAINT = 1e-6  # of what is usual for a column, where motions of a record do not tell it
AMPLITUDE = 0.15  # rad, or typical lengths, about home; of rotors behind their gears
SHARE = 1e-6  # of a parameter that goes to another, the least that is named


@dataclass(frozen=True, eq=False, repr=False)
class BaseColumns(Record):
    """Independent columns, and how the others depend on them.

    Attributes
    ----------
    kept : list[int]
        Numbers of the independent columns.
    groups : Array
        (kept x all): base parameters are this matrix times all parameters.
    without_effect : list[int]
        Columns that are zero in every motion.
    usual : Array
        Root mean square of all columns in the motion that they were found from.
    """

    kept: list[int]
    groups: Array
    without_effect: list[int]
    usual: Array


def base_columns(regressor: Regressor, seed: int = 0) -> BaseColumns:
    """The base parameters of the closed robot, from random states about home, in the order of the unknowns."""
    size = len(regressor.unknowns)
    rows = len(regressor.rows)
    states = max(40, -(-3 * size // rows))
    W = regressor.of(random_motion(regressor, states, seed))[0]
    ratio = regressor.robot.gearing.units / regressor.robot.tree.rate_units
    if (ratio == 1).all():
        return independent_columns(stacked(W))
    # efforts behind a gear are as much smaller as their rates are larger: rows and columns compare at its other side
    own = np.array([_ratio(regressor, one, ratio) for one in regressor.unknowns])
    found = independent_columns(stacked(W * ratio[list(regressor.partition.independent)][:, None]) / own)
    groups = found.groups / own[found.kept][:, None] * own
    return replace(found, groups=groups, usual=np.sqrt(np.mean(stacked(W) ** 2, axis=0)))


def _ratio(regressor: Regressor, one: Unknown, ratio: Array) -> float:
    """How much larger a column is behind the gear of its own link: as rates, and as what they cause."""
    return 1.0 if one.element else float(np.max(ratio[regressor.robot.tree.links[one.link].v], initial=0.0) or 1.0) ** 2


def independent_columns(W: Array, least: float = DEPENDENT, usual: Array | None = None) -> BaseColumns:
    """Columns in turn: one that the columns before it give is grouped with them.

    A column is zero beside the largest one, or beside what is usual for it.
    """
    size = np.linalg.norm(W, axis=0)
    kept: list[int] = []
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
            kept.append(k)
            Q = np.column_stack([Q, rest / left])
    groups = np.zeros((len(kept), W.shape[1]))
    if kept:
        scaled = W / np.where(size > 0, size, 1.0)
        groups = np.linalg.lstsq(scaled[:, kept], scaled, rcond=None)[0] * size / size[kept][:, None]
        groups[np.abs(groups) * (size[kept][:, None] / np.where(size > 0, size, np.inf)) < SHARE] = 0.0
    groups[:, empty] = 0.0
    return BaseColumns(kept, groups, empty, size / np.sqrt(max(len(W), 1)))


def random_motion(regressor: Regressor, count: int, seed: int, amplitude: float = AMPLITUDE) -> ClosedMotion:
    """Closed states about home with random rates and accelerations of the motors."""
    robot, rng = regressor.robot, np.random.default_rng(seed)
    units = robot.gearing.units[list(robot.actuated)]
    q, drawn = _kept_poses(robot, count, seed, amplitude)
    rng.uniform(-1, 1, (drawn, robot.tree.n))  # what the poses took
    shape = (count, len(units))
    return regressor.moved(q, rng.uniform(-2, 2, shape) * units, rng.uniform(-6, 6, shape) * units)


def _kept_poses(robot: Robot, count: int, seed: int, amplitude: float) -> tuple[Array, int]:
    """Random closed poses, from the disk if they were found before, and how many were drawn for them."""
    key = program_store.key_of(robot, "random poses", count, seed, amplitude) if robot.closures.size else None
    if key is None:
        return _random_poses(robot, count, seed, amplitude)
    key = key.removesuffix(".program") + ".poses"
    data = disk_cache.read(key)
    if data is not None:
        kept = json.loads(data)
        return np.array(kept["q"]), kept["drawn"]
    q, drawn = _random_poses(robot, count, seed, amplitude)
    disk_cache.write(key, json.dumps({"q": q.tolist(), "drawn": drawn}).encode())
    return q, drawn


def _random_poses(robot: Robot, count: int, seed: int, amplitude: float) -> tuple[Array, int]:
    tree, rng, drawn = robot.tree, np.random.default_rng(seed), 0
    found: list[Array] = []
    for _ in range(20 * count):
        if len(found) == count:
            break
        try:
            drawn += 1
            near = tree.moved(robot.home, rng.uniform(-1, 1, tree.n) * amplitude * robot.gearing.units)
            found.append(np.asarray(robot.close(near)) if robot.closures.size else near)
        except ParflexError:
            amplitude *= 0.9  # nearer to home
    if len(found) < count:
        raise SingularError("no closed poses are found about home", key="home", hint="choose another home")
    return np.array(found), drawn


def stacked(W: Array) -> Array:
    """Rows of all instants one below the other."""
    return W.reshape(-1, W.shape[-1])


def grouped_text(base: BaseColumns, names: list[str], place: int) -> str:
    """What a base parameter is made of, e.g. "ZZ[1] + 0.25 M[2]"."""
    weights = base.groups[place]
    own = base.kept[place]
    parts: list[Any] = [names[own]]
    for k in np.flatnonzero(weights):
        if k != own:
            weight = weights[k]
            sign, size = ("+", weight) if weight > 0 else ("-", -weight)
            parts.append(f"{sign} {names[k]}" if abs(size - 1) < SHARE else f"{sign} {size:.6g} {names[k]}")
    return " ".join(parts)
