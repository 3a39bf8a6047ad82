"""The gain of one motor beside those of the others, looked for in every record: residuals may hide what it does.

Parameters of bodies follow a common gain of all motors, so that only ratios of gains are told. Parameters follow much
of one gain, too: a tenth of it may leave residuals as small as noise, and move parameters by many deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.identification.estimates.least_squares import EffortRows, fit, solution
from parflex.identification.prepared import joined

Array = np.ndarray
SURE = 6.0  # deviations, by which a gain must be off: each of several motors is asked
LEAST = 0.03  # of a gain: less is calibration
MOST = (0.2, 5.0)  # times: what drives are off by at most
TOLD = 1e-3  # of the efforts of a motor, what parameters must leave of them
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least

Trial = tuple[float, str]  # share of what is missed that is left with it, and what it is


def gain_trials(motors: Sequence[str], parts: Sequence[EffortRows]) -> list[Trial]:
    """The motor whose gain is off by many deviations, and by how much, if there is one.

    Of two motors either may be the one.
    """
    if len(motors) < 2:
        return []
    rows = replace(joined(parts), instruments=None)
    assert rows.known is not None
    effort = rows.y + rows.known
    size = np.sqrt(((effort * rows.mask) ** 2).mean(axis=0))
    weights = rows.mask / np.maximum(size, max(FAINT * float(size.max()), 1e-300))
    found: list[tuple[float, float, int]] = []
    now = float(np.linalg.norm((rows.y - rows.W @ solution(rows, "wls")[0]) * weights))
    for k in range(len(motors)):
        own = np.where(np.arange(len(motors)) == k, effort, 0.0)
        if not _told(rows, own):
            continue
        judged = fit(replace(rows, W=np.concatenate([rows.W, -own[:, :, None]], axis=2)), "wls")
        more, spread = float(judged.values[-1]), float(np.sqrt(max(judged.robust[-1, -1], 0.0)))
        if abs(more) > max(SURE * spread, LEAST) and MOST[0] < 1 + more < MOST[1]:
            scaled = replace(rows, y=rows.y + more * own)
            left = float(np.linalg.norm((scaled.y - rows.W @ solution(scaled, "wls")[0]) * weights))
            found.append((left / max(now, 1e-300), 1 + more, k))
    if not found:
        return []
    left, gain, k = min(found)
    other = f", or {1 / gain:.4g} times those of '{motors[1 - k]}'" if len(motors) == 2 else ""
    check = "their gains" if other else "its gain"
    return [(left, f"with {gain:.4g} times the efforts of '{motors[k]}'{other}: check {check}")]


def _told(rows: EffortRows, own: Array) -> bool:
    """Whether parameters do not follow the efforts of a motor on their own."""
    flat = (rows.W * rows.mask[:, :, None]).reshape(-1, rows.W.shape[2])
    Q = np.linalg.qr(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300))[0]
    column = (own * rows.mask).ravel()
    return bool(np.linalg.norm(column - Q @ (Q.T @ column)) > TOLD * np.linalg.norm(column))
