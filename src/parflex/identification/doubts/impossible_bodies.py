"""Parameters that no robot has: negative ones that are never negative, and sets that no bodies give together.

A group of parameters is negative for no robot where its weights lie in the dual cone of the bodies that can be. Others
are asked together: of all robots with pseudo-inertias that are not negative, none may reach what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np

from parflex.errors import InputError
from parflex.identification.base_columns import BaseColumns
from parflex.identification.estimates.least_squares import Fit
from parflex.identification.estimates.physical import nearest_possible, never_negative
from parflex.identification.identified import IdentifiedParameter
from parflex.identification.regressors import Regressor

Array = np.ndarray
SIGNIFICANT = 1.96  # standard deviations: a parameter that is nearer to zero is not told from it
SURE = 6.0  # deviations, all parameters together: bodies with many parameters at their bounds leave some by chance
LEAST = 0.03  # of a parameter, by the numbers of the file: less is calibration, or what filters leave without noise
FAINT = 0.05  # of the largest effort that a parameter of the file has: smaller ones count as so large


def impossible_bodies(
    regressor: Regressor, base: BaseColumns, told: list[int], fitted: Fit,
    parameters: Mapping[str, IdentifiedParameter], explained: bool,
) -> list[str]:  # fmt: skip
    """Warnings about parameters, which are those that are told, that no robot has.

    Where a mistake is named that `explained` the record, all together are not asked: it moves them.
    """
    robot, every = regressor.robot, regressor.unknowns
    found = []
    for k, (name, one) in zip(told, parameters.items(), strict=True):
        if one.value < -SIGNIFICANT * one.deviation and never_negative(robot, every, base.groups[k]):
            found.append(
                f"{name} = {one.value:.4g} {one.unit} is negative: check the signs of efforts and positions, or the "
                f"columns; no bodies and no friction give it, and it is {_times(-one.value, one.deviation)} below zero"
            )
    if found or explained or not parameters or find_spec("clarabel") is None:
        return found
    try:
        nearest, far = nearest_possible(
            robot, every, base, told, fitted.values, _covariance(regressor, base, told, fitted)
        )
    except InputError:  # the solver gives up: nothing is known
        return found
    if not far > SURE:
        return found
    off = nearest - fitted.values
    k = int(np.argmax(np.abs(off) / np.sqrt(np.diag(fitted.robust))))
    name, one = list(parameters.items())[k]
    return [
        f"no bodies have these parameters: of those that can be the nearest have {name} = {nearest[k]:.4g} {one.unit} "
        f"in place of {one.value:.4g}, {_times(abs(off[k]), one.deviation)} off, and all parameters together "
        f"{far:.2g}: the model lacks something, or signs, zeros, gains or payloads are not those of the record "
        "(physical takes the nearest)"
    ]


def _covariance(regressor: Regressor, base: BaseColumns, told: list[int], fitted: Fit) -> Array:
    """That of the intervals that are shown, and of what filters leave of records without noise.

    How errors go together is that of white residuals, whose matrix is definite.
    """
    theta = np.abs([one.value for one in regressor.unknowns])
    white, robust = (np.sqrt(np.diag(C)) for C in (fitted.white, fitted.robust))
    own, felt = np.abs(base.groups[told]) @ theta, base.usual[[base.kept[k] for k in told]]
    own = np.maximum(own, FAINT * float((own * felt).max()) / np.maximum(felt, 1e-300))
    more = LEAST / SURE * own
    return np.asarray(fitted.white * np.outer(robust / white, robust / white) + np.diag(more**2))


def _times(value: float, deviation: float) -> str:
    return f"{min(value / max(deviation, 1e-300), 1e6):.2g} deviations"
