"""Constant efforts of drives that are not looked for: weights take them, and no residual shows it.

Beside the parameters that are asked for, a constant effort of each motor is fitted to the same rows. It is named where
it is many deviations from zero and a share of the motor's efforts: without noise deviations are as good as zero, and
what filters leave is many of them. Where the record does not tell it, what it would do to parameters is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.identification.doubts.other_positions import OtherPositions, Trial
from parflex.identification.estimates.least_squares import EffortRows, Fit, fit, solution
from parflex.identification.measured_files import Measurement
from parflex.identification.prepared import joined
from parflex.identification.regressors import Regressor

Array = np.ndarray
SURE = 5.0  # deviations, by which an offset must differ from zero: each of several motors is asked
LEAST = 5e-3  # of the efforts of a motor: filters leave 1e-3 of those of records without noise
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least
TOLD = 1e-3  # of a constant, what parameters must leave of it
LARGE = 0.1  # of the efforts: a larger offset would have been seen in the efforts themselves
SIGNIFICANT = 1.96  # standard deviations
MOVES = 1.0  # deviations, by which offsets must move a parameter to be said


def offset_trials(other: OtherPositions) -> list[Trial]:
    """Constant efforts of the motors that are surely there, if there are some, and the share of residuals then left."""
    motors = without_offset(other.regressor)
    rows = replace(joined(other.parts), instruments=None)
    motors = [k for k in motors if rows.mask[:, k].any()]
    if not motors:
        return []
    values, weights = solution(rows, "wls")
    efforts = usual_efforts(rows)
    told, left, hint = _told(rows, values, weights, motors)
    if not (np.abs(hint) > LEAST / 2 * efforts[told]).any():  # as good as none: most records need no second fit
        return []
    size, own = rows.W.shape[2], constants(rows, told)
    wider = fit(replace(rows, W=np.concatenate([rows.W, own], axis=2)), "wls")
    offset, spread = wider.values[size:], np.sqrt(np.maximum(np.diag(wider.robust)[size:], 0.0))
    steps = _resolution(other.used)
    found = [
        (motor, value, deviation)
        for motor, value, deviation in zip(told, offset, spread, strict=True)
        if abs(value) > max(SURE * deviation, LEAST * efforts[motor], steps[motor])
    ]
    if not found:
        return []
    names, units = other.regressor.rows, _units(other.regressor)
    said = [
        f"{value:.3g} {units[motor]} of '{names[motor]}' ({abs(value) / max(deviation, 1e-300):.2g} deviations, "
        f"{100 * abs(value) / efforts[motor]:.2g} % of its efforts)"
        for motor, value, deviation in found
    ]
    words = f"with constant efforts of the drives, {', '.join(said)}: use friction 'offset'"
    return [(left, words)]


def offset_steps(regressor: Regressor, rows: EffortRows, fitted: Fit, names: Sequence[str]) -> list[str]:
    """What constant efforts of drives that the record does not exclude would do to parameters, if that is much."""
    motors = [k for k in without_offset(regressor) if rows.mask[:, k].any()]
    if not motors or fitted.weights.shape != rows.y.shape:
        return []
    own, efforts = constants(rows, motors), usual_efforts(rows)[motors]
    weighted = (rows.W * fitted.weights[:, :, None]).reshape(-1, rows.W.shape[2])
    flat = (own * fitted.weights[:, :, None]).reshape(len(weighted), -1)
    slopes = np.linalg.lstsq(weighted, flat, rcond=None)[0]
    white, robust = (np.sqrt(np.maximum(np.diag(C), 1e-300)) for C in (fitted.white, fitted.robust))
    rest = np.linalg.norm(flat - weighted @ slopes, axis=0)
    noise = float(np.linalg.norm(fitted.residuals * fitted.weights)) / np.sqrt(max(rows.mask.sum() - len(names), 1.0))
    spread = noise * float(np.median(robust / white)) / np.maximum(rest, 1e-300)
    open_offset = np.minimum(SIGNIFICANT * spread, LARGE * efforts)
    by = np.abs(slopes) * open_offset / robust[:, None]
    parameter, motor = divmod(int(np.argmax(by)), by.shape[1])
    if not by[parameter, motor] > MOVES:
        return []
    value, share = open_offset[motor], open_offset[motor] / efforts[motor]
    return [
        f"no constant efforts of drives are looked for: {value:.2g} {_units(regressor)[motors[motor]]} of "
        f"'{regressor.rows[motors[motor]]}', {100 * share:.2g} % of its efforts, which the record does not exclude, "
        f"would move {names[parameter]} by {by[parameter, motor]:.2g} deviations (friction 'offset' looks for them)"
    ]


def without_offset(regressor: Regressor) -> list[int]:
    """Places of the motors of which no constant effort is looked for; none where rows mix those of all motors."""
    if regressor.spare:
        return []
    links = {one.link for one in regressor.unknowns if one.symbol == "offset"}
    tree = regressor.robot.tree
    return [i for i, k in enumerate(regressor.robot.actuated) if tree.link_of_rate[k] not in links]


def constants(rows: EffortRows, motors: Sequence[int]) -> Array:
    """Columns of constant efforts of some motors: no low-pass changes them."""
    return np.broadcast_to(np.eye(rows.y.shape[1])[:, list(motors)], (*rows.y.shape, len(motors)))


def usual_efforts(rows: EffortRows) -> Array:
    """Root mean square of the efforts of each motor."""
    assert rows.known is not None
    effort = (rows.y + rows.known) * rows.mask
    size = np.sqrt((effort**2).sum(axis=0) / np.maximum(rows.mask.sum(axis=0), 1.0))
    return np.maximum(size, max(FAINT * float(size.max()), 1e-300))


def _resolution(used: Sequence[Measurement]) -> Array:
    """Least steps of the recorded efforts of each motor: what is rounded down is a constant of half a step."""
    columns = np.concatenate([record.effort for record in used])
    return np.array([float(np.diff(np.unique(column)).min()) if np.ptp(column) else 0.0 for column in columns.T])


def _told(rows: EffortRows, values: Array, weights: Array, motors: Sequence[int]) -> tuple[list[int], float, Array]:
    """Motors whose constants neither parameters nor constants before them follow.

    Beside them the share of the weighted residuals that their constants leave, and these.
    """
    flat = (rows.W * weights[:, :, None]).reshape(-1, rows.W.shape[2])
    Q = np.linalg.qr(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300))[0]
    columns = (constants(rows, motors) * weights[:, :, None]).reshape(len(Q), -1)
    rest = columns - Q @ (Q.T @ columns)
    found: list[int] = []
    for k in range(len(motors)):
        own = rest[:, [*found, k]]
        new = own[:, -1] - own[:, :-1] @ np.linalg.lstsq(own[:, :-1], own[:, -1], rcond=None)[0]
        if np.linalg.norm(new) > TOLD * np.linalg.norm(columns[:, k]):
            found.append(k)
    missed = ((rows.y - rows.W @ values) * weights).ravel()
    hint = np.linalg.lstsq(rest[:, found], missed, rcond=None)[0]
    after = float(np.linalg.norm(missed - rest[:, found] @ hint))
    return [motors[k] for k in found], after / max(float(np.linalg.norm(missed)), 1e-300), hint


def _units(regressor: Regressor) -> list[str]:
    tree = regressor.robot.tree
    return ["N m" if tree.links[tree.link_of_rate[k]].joint.unit == "rad" else "N" for k in regressor.robot.actuated]
