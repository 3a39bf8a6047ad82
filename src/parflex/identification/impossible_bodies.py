"""Parameters that no robot can have: negative ones that are never negative, and sets that no bodies produce together.

A group of parameters is never negative if its weights lie in the dual cone of the physically consistent bodies. For the
others, a semidefinite program looks for a robot with non-negative pseudo-inertias that has the estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.identification.estimators import EffortRows, LeastSquaresFit
from parflex.identification.physical import nearest_consistent, never_negative
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns
from parflex.identification.result import IdentifiedParameter

Array = np.ndarray
BELOW = 3.0  # deviations: one in 700 numbers that are zero is as far below it, and a robot has dozens
SURE = 6.0  # deviations, all parameters together: bodies with many parameters at their bounds leave some by chance
LEAST = 2e-3  # of the efforts: filters leave 1.3e-3 of a record without noise


def impossible_bodies(
    regressor: Regressor, base: BaseColumns, told: list[int], fitted: LeastSquaresFit,
    parameters: Mapping[str, IdentifiedParameter], rows: EffortRows, explained: bool,
) -> list[Diagnostic]:  # fmt: skip
    """Diagnostics of parameters, which are those that are told, that no robot has.

    Where a mistake is named that `explained` the record, all together are not asked: it moves them.
    """
    robot, every = regressor.robot, regressor.unknowns
    found = []
    for k, (name, one) in zip(told, parameters.items(), strict=True):
        if one.value < -BELOW * one.deviation and never_negative(robot, every, base.groups[k]):
            text = (
                f"{name} = {one.value:.4g} {one.unit} is negative: check the signs of efforts and positions, or the "
                f"columns; no bodies and no friction give it, and it is {_times(-one.value, one.deviation)} below zero"
            )
            found.append(Diagnostic("impossible-parameter", text, name, one.value))
    if found or explained or not parameters or find_spec("clarabel") is None:
        return found
    try:
        nearest, far = nearest_consistent(robot, every, base, told, fitted.values, _covariance(rows, fitted))
    except InputError:  # the solver gives up: nothing is known
        return found
    if not far > SURE:
        return found
    off = nearest - fitted.values
    k = int(np.argmax(np.abs(off) / np.sqrt(np.diag(fitted.robust))))
    name, one = list(parameters.items())[k]
    text = (
        f"no bodies have these parameters: of those that can be the nearest have {name} = {nearest[k]:.4g} {one.unit} "
        f"in place of {one.value:.4g}, {_times(abs(off[k]), one.deviation)} off, and all parameters together "
        f"{far:.2g}: the model lacks something, or signs, zeros, gains or payloads are not those of the record "
        "(physical takes the nearest)"
    )
    return [Diagnostic("impossible-parameter", text, name, one.value)]


def _covariance(rows: EffortRows, fitted: LeastSquaresFit) -> Array:
    """That of white residuals, as much wider as any interval is, and as if they were never less than filters leave.

    One factor for all: parameters that go together are told by their sum, whatever each of them is.
    """
    wider = float((np.diag(fitted.robust) / np.maximum(np.diag(fitted.white), 1e-300)).max())
    left, effort = (float(np.linalg.norm(part * rows.mask)) for part in (fitted.residuals, rows.y))
    return np.asarray(max(1.0, wider) * max(1.0, LEAST * effort / max(left, 1e-300)) ** 2 * fitted.white)


def _times(value: float, deviation: float) -> str:
    return f"{min(value / max(deviation, 1e-300), 1e6):.2g} deviations"
