"""Springs, dampers and cables that are taken from the file, looked for in every record: others may hide a wrong one.

Parameters of bodies, friction and zeros of encoders follow much of a force that the file has wrong. Each element is
tried with numbers of its own; where these are off by many deviations, and by a share of its force, it is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.identification.doubts.other_positions import OtherPositions, Trial
from parflex.identification.estimates.least_squares import EffortRows, fit, solution
from parflex.identification.filtering import decimated, kept_instants, smoothed
from parflex.identification.linear_elements import FORCE, fields_of, linear_elements
from parflex.identification.prepared import joined
from parflex.identification.regressors import Regressor
from parflex.identification.unknowns import Unknown, unknowns
from parflex.models.robot import Robot

Array = np.ndarray
SURE = 6.0  # deviations, by which a number must be off: each of several elements is asked
LEAST = 0.03  # of the force of an element: less is calibration
TOLD = 1e-3  # of a column, what parameters must leave of it


def element_trials(other: OtherPositions) -> list[Trial]:
    """Elements whose numbers in the file are off, the worst first, and what they should be, if there are some."""
    robot = other.regressor.robot
    groups = _taken(robot, other.regressor.unknowns)
    if not groups:
        return []
    every = [one for group in groups.values() for one in group]
    columns = _columns(other, Regressor(robot, every))
    rows = replace(joined(other.parts), instruments=None)
    values, weights = solution(rows, "wls")
    left = now = float(np.linalg.norm((rows.y - rows.W @ values) * weights))
    words: list[str] = []
    while groups:  # one after the other, those before it with numbers of their own
        tried: list[tuple[float, str, EffortRows, Array]] = []
        for name, group in groups.items():
            found = _tried(rows, weights, columns[:, :, [every.index(one) for one in group]], group)
            tried += [] if found is None else [(found[0], name, *found[1:])]
        if not tried:
            break
        left, name, rows, more = min(tried, key=lambda one: one[0])
        words.append(_words(name, groups.pop(name), more))
    cure = (
        "check their numbers in the file, or do not keep them" if words[1:] else "check its numbers, or do not keep it"
    )
    return [(left / max(now, 1e-300), f"with {' and '.join(words)}: {cure}")] if words else []


def _taken(robot: Robot, looked_for: Sequence[Unknown]) -> dict[str, list[Unknown]]:
    """Numbers of joints, elements and couplings that are not looked for; of those that are not linear one factor."""
    known = {one.name for one in looked_for}
    groups: dict[str, list[Unknown]] = {}
    for one in unknowns(robot, "none"):
        if one.symbol in ("k", "d", "k_rest") and one.name not in known:
            groups.setdefault(one.element or robot.tree.links[one.link].name, []).append(one)
    linear = {one.name for one in linear_elements(robot)}
    acting = [*(one.name for one in robot.tree.elements), *(one.name for one in robot.tree.springs)]
    for name in [name for name in acting if name not in linear]:
        groups[name] = [Unknown(f"{FORCE}[{name}]", FORCE, -1, "", 1.0, name)]
    return groups


def _columns(other: OtherPositions, regressor: Regressor) -> Array:
    """Efforts of all rows per unit of each number; slow as the motion is, no filter changes it."""
    parts = []
    for record in other.used:
        smooth = smoothed(record, other.choice)
        q, qd, qdd = (kept_instants(one, other.choice) for one in (smooth.position, smooth.rate, smooth.acceleration))
        gain = decimated(np.ones(len(smooth.t)), other.choice)[:, None, None]  # of all rows at rest
        parts.append(gain * regressor.of(regressor.moving(q, qd, qdd))[0])
    return np.concatenate(parts)


def _tried(
    rows: EffortRows, weights: Array, own: Array, group: Sequence[Unknown]
) -> tuple[float, EffortRows, Array] | None:
    """What is left where numbers of an element are others than in the file, rows with them, and by how much they are.

    None where that is not sure, or small.
    """
    size, told = rows.W.shape[2], told_columns(rows, weights, own)
    if not told:
        return None
    more = np.zeros(own.shape[2])
    wider = replace(rows, W=np.concatenate([rows.W, own[:, :, told]], axis=2))
    judged = fit(wider, "wls")
    more[told] = judged.values[size:]
    far = float(more[told] @ np.linalg.pinv(judged.robust[size:, size:]) @ more[told])
    force = np.linalg.norm(own @ np.array([one.value for one in group]))
    if not (far > SURE**2 * len(told) and np.linalg.norm(own @ more) > LEAST * force):
        return None
    return float(np.linalg.norm(judged.residuals * weights)), wider, more


def told_columns(rows: EffortRows, weights: Array, own: Array, least: float = TOLD) -> list[int]:
    """Columns that neither parameters nor those before them follow."""
    flat = (rows.W * weights[:, :, None]).reshape(-1, rows.W.shape[2])
    Q = np.linalg.qr(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300))[0]
    told: list[int] = []
    for k in range(own.shape[2]):
        column = (own[:, :, k] * weights).ravel()
        rest = column - Q @ (Q.T @ column)
        if np.linalg.norm(rest) > least * max(float(np.linalg.norm(column)), 1e-300):
            told.append(k)
            Q = np.column_stack([Q, rest / np.linalg.norm(rest)])
    return told


def _words(name: str, group: Sequence[Unknown], more: Array) -> str:
    if group[0].symbol == FORCE:
        return f"{1 + more[0]:.4g} times the force of '{name}'"
    before = {one.symbol: one.value for one in group}
    after = {one.symbol: one.value + float(change) for one, change in zip(group, more, strict=True)}
    old, new = fields_of(before), fields_of(after)
    changed = [key for key in new if abs(new[key] - old[key]) > LEAST * abs(old[key])] or list(new)
    said = ", ".join(f"{key} {new[key]:.4g} in place of {old[key]:.4g}" for key in changed)
    return f"{said} of '{name}'"
