"""Diagnostics of recorded signals: efforts without content, repeated samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.identification.estimators import EffortRows, LeastSquaresFit, fit_rows
from parflex.identification.lack_of_fit import LEAST
from parflex.identification.preprocess import (
    STICKS,
    FilterChoice,
    butterworth,
    dead_efforts,
    motors_with_friction,
    only_noise,
)
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor

Array = np.ndarray
SURE = 5.0  # deviations of the fit without slow samples: by so much slow ones seldom move one of many parameters


def effort_doubts(
    regressor: Regressor, used: Sequence[Recording], parts: Sequence[EffortRows], choice: FilterChoice
) -> list[Diagnostic]:
    """Diagnostics of motors that move, of whose efforts nothing but a constant or noise was recorded."""
    found = []
    for record, rows in zip(used, parts, strict=True):
        assert rows.rate is not None
        dead = dead_efforts(record.effort, rows.rate)
        band = 2 * choice.cutoff * record.step
        noise = only_noise(record.effort, butterworth(record.effort, band), band) & rows.rate.any(axis=0)
        name, motors = Path(record.name).name, regressor.robot.actuated_names
        left_out = "its rows are left out, " if not dead.all() and not regressor.spare else ""
        for motor, value, never, faint in zip(motors, record.effort[0], dead, noise, strict=True):
            if never:
                text = f"is {value:.4g} all the time though it moves: {left_out}check its column"
            elif faint:
                text = "has nothing but noise though it moves: check its column"
            else:
                continue
            found.append(Diagnostic("dead-effort", f"{name}: the effort of '{motor}' {text}", motor))
    return found


def refuse_repeated(used: Sequence[Recording]) -> None:
    """Refuse a record that is given twice: its noise would count as independent, and deviations would shrink."""
    for k, record in enumerate(used):
        for other in used[:k]:
            if record.same_as(other):
                raise InputError(
                    f"record {k + 1} has the samples of another one, {Path(other.name).name}", file=record.name,
                    key="record", value=record.name, hint="give each record once",
                )  # fmt: skip


def repeated_validation(used: Sequence[Recording], held_out: Sequence[Recording]) -> list[Diagnostic]:
    """Diagnostics of records for validation that were fitted."""
    text = "its samples are those of a record of the fit, and validate nothing"
    return [
        Diagnostic("repeated-record", f"{Path(record.name).name}: {text}", record.name)
        for record in held_out
        if any(record.same_as(other) for other in used)
    ]


def _felt(rows: EffortRows, change: Array) -> float:
    """Of the efforts of a motor, what other parameters change them by at most."""
    effort = rows.y if rows.known is None else rows.y + rows.known
    by, whole = (np.sqrt(((part * rows.mask) ** 2).sum(axis=0)) for part in (rows.W @ change, effort))
    return float((by / np.maximum(whole, 1e-300)).max())


def sticking_doubts(
    regressor: Regressor,
    rows: EffortRows,
    fitted: LeastSquaresFit,
    names: Sequence[str],
    choice: FilterChoice,
    estimator: str,
) -> list[Diagnostic]:
    """A diagnostic where slow samples, in which motors may stick, move a parameter of the fit."""
    rubbing = motors_with_friction(regressor)
    if choice.least_speed or not rubbing or regressor.spare or rows.rate is None:
        return []
    speed = np.abs(rows.rate)
    least = STICKS * speed.max(axis=0)
    used = rows.mask > 0
    used[:, rubbing] &= (speed >= least)[:, rubbing]
    if not used[:, rubbing].any():
        return []
    fast = fit_rows(replace(rows, used=used), estimator)
    # of the fit with fewer samples alone: where both are right it is larger than that of the difference (Hausman)
    deviation = np.sqrt(np.maximum(np.diag(fast.robust), 0.0))
    moved = (fitted.values - fast.values) / np.maximum(deviation, 1e-300)
    k = int(np.argmax(np.abs(moved)))
    if not abs(moved[k]) > SURE or not _felt(rows, fitted.values - fast.values) > LEAST:
        return []
    text = (
        f"slow samples move {names[k]} from {fast.values[k]:.4g} to {fitted.values[k]:.4g}, {abs(moved[k]):.2g} "
        f"deviations: motors stick there, or noise hides their direction; use a least speed of "
        f"{least[rubbing].max():.2g}, or irls"
    )
    return [Diagnostic("moved-by-stiction", text, names[k], float(moved[k]))]
