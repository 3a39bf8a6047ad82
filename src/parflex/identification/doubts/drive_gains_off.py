"""The gain of one motor beside those of the others, looked for in every record: residuals may hide what it does.

Parameters of bodies follow a common gain of all motors, so that only ratios of gains are told. Parameters follow much
of one gain, too: a tenth of it may leave residuals as small as noise, and move parameters by many deviations. Gains may
be any: signs, and units that differ by a thousand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.identification.doubts.by_file.hypotheses import turning
from parflex.identification.doubts.other_positions import OtherPositions, Trial
from parflex.identification.estimates.least_squares import EffortRows, fit, solution
from parflex.identification.filtering import decimated
from parflex.identification.prepared import joined, motion_of
from parflex.identification.regressors import Regressor

Array = np.ndarray
SURE = 6.0  # deviations, by which a gain must be off: each of several motors is asked
LEAST = 0.03  # of a gain: less is calibration
ROUNDS = 6  # until a gain no longer changes: noise of efforts makes it too small by what it is off
SETTLED = 1e-3  # of a gain
TOLD = 1e-3  # of the efforts of a motor, what parameters must leave of them
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least
NEAR = 0.03  # of a factor, by which gains may be off it and still be that of a unit
UNITS = {1e-3: ("N mm", "mN"), 1e3: ("kN m", "kN"), 9.80665: ("kgf m", "kgf")}  # of motors that turn, and that slide


def gain_trials(other: OtherPositions) -> list[Trial]:
    """The motor whose gain is off by many deviations, and by how much, if there is one.

    Of two motors either may be the one.
    """
    motors = list(other.regressor.robot.actuated_names)
    if len(motors) < 2:
        return []
    rows, own = replace(joined(other.parts), instruments=None), effort_columns(other)
    now = _missed(rows)
    found = []
    for k in range(len(motors)):
        judged = _judged(rows, own[:, :, k]) if _told(rows, own[:, :, k]) else None
        if judged is not None:
            found.append((_missed(_scaled(rows, own[:, :, k], judged)) / max(now, 1e-300), judged, k))
    if not found:
        return []
    left, gain, k = min(found)
    words, check = f"with {gain:.4g} times the efforts of '{motors[k]}'{_unit(other.regressor, k, gain)}", "its gain"
    if len(motors) == 2:  # parameters follow a common gain of both
        words += f", or {1 / gain:.4g} times those of '{motors[1 - k]}'{_unit(other.regressor, 1 - k, 1 / gain)}"
        check = "their gains"
    return [(left, f"{words}: check {check}")]


def effort_columns(other: OtherPositions) -> Array:
    """What the efforts of each motor are in all rows (instants x rows x motors)."""
    if not other.regressor.spare:
        rows = joined(other.parts)
        assert rows.known is not None
        return (rows.y + rows.known)[:, :, None] * np.eye(rows.y.shape[1])
    found, motors = [], list(other.regressor.robot.actuated)
    for record in other.used:
        _, moving = motion_of(other.regressor, record, other.choice)
        along = np.swapaxes(moving.J[:, motors], 1, 2) * other.choice.inside(record.effort)[:, None, :]
        found.append(decimated(along, other.choice))
    return np.concatenate(found)


def _judged(rows: EffortRows, own: Array) -> float | None:
    """The factor that the efforts of a motor lack; None where that is not sure, or nearly one."""
    gain, spread = 1.0, np.inf
    for _ in range(ROUNDS):
        now, column = _scaled(rows, own, gain), gain * own
        judged = fit(replace(now, W=np.concatenate([rows.W, -column[:, :, None]], axis=2)), "wls")
        more = float(judged.values[-1])
        spread = abs(gain) * float(np.sqrt(max(judged.robust[-1, -1], 0.0)))
        gain *= 1 + more
        if abs(more) < SETTLED:
            break
    else:
        return None
    return gain if abs(gain - 1) > max(SURE * spread, LEAST) and abs(gain) > SURE * spread else None


def _scaled(rows: EffortRows, own: Array, gain: float) -> EffortRows:
    """Rows where the efforts of a motor are others."""
    return replace(rows, y=rows.y + (gain - 1) * own)


def _missed(rows: EffortRows) -> float:
    """What parameters leave of the efforts, of each row as a share of its own."""
    assert rows.known is not None
    left, effort = ((rows.y - rows.W @ solution(rows, "wls")[0]) * rows.mask, (rows.y + rows.known) * rows.mask)
    size = np.linalg.norm(effort, axis=0)
    return float(np.linalg.norm(np.linalg.norm(left, axis=0) / np.maximum(size, max(FAINT * size.max(), 1e-300))))


def _told(rows: EffortRows, own: Array) -> bool:
    """Whether parameters do not follow the efforts of a motor on their own."""
    flat = (rows.W * rows.mask[:, :, None]).reshape(-1, rows.W.shape[2])
    Q = np.linalg.qr(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300))[0]
    column = (own * rows.mask).ravel()
    return bool(np.linalg.norm(column - Q @ (Q.T @ column)) > TOLD * np.linalg.norm(column))


def _unit(regressor: Regressor, motor: int, gain: float) -> str:
    """Which unit has such a gain, in words."""
    words = [names[0 if turning(regressor)[motor] else 1] for unit, names in UNITS.items()
             if abs(gain / unit - 1) < NEAR]  # fmt: skip
    return f", as those in {words[0]}" if words else ""
