"""Other solutions beside the best one: their numbers, what they cost more, and how they predict what was held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.errors import ParflexError
from parflex.updating.mode_fitting import FittedModes, Fitting
from parflex.updating.pairing import ALONE
from parflex.updating.solved.minima import Minimum

Array = np.ndarray
DECISIVE = 2 * np.log(20.0)  # of -2 log of likelihoods: odds of 20 to 1
MOST_NAMED = 3  # other solutions


def alternatives(fitting: Fitting, others: Sequence[Minimum], best: FittedModes) -> list[dict[str, Any]]:
    """Numbers of other solutions with their deviations, how much more their sum of squares is, and what is held out."""
    found = []
    for one in others:
        deviations = np.sqrt(np.abs(np.diag(np.linalg.pinv(one.precision))))
        numbers = {
            key: {"value": float(first * share), "deviation": float(abs(first) * deviation)}
            for key, first, share, deviation in zip(
                fitting.keys, fitting.first, one.fit.shares, deviations, strict=True
            )
        }
        found.append({"parameters": numbers, "more": one.cost})
        if fitting.apart.any() and (worse := _predicted_worse(fitting, one, best)) is not None:
            found[-1]["held_out"] = worse
    return found


def _predicted_worse(fitting: Fitting, one: Minimum, best: FittedModes) -> float | None:
    """By how much more than by the best solution another one misses what was held out: -2 log of the likelihoods."""
    kept = fitting.partners()
    try:
        fitting.restore(one.partners)
        fit = fitting.at(one.fit.shares)
        if one.counted and fitting.recounted(fit):
            fit = fitting.at(one.fit.shares)
        fit, _ = fitting.paired(fit, lambda same: same)  # modes without a number by this model
    except ParflexError:
        return None
    finally:
        fitting.restore(kept)
    row = fitting.row_of
    known = [fitting.apart[row] & np.isfinite(each.values) & np.isfinite(each.excess[row]) for each in (fit, best)]
    both = known[0] & known[1]
    alone = ALONE * (int((known[1] & ~both).sum()) - int((known[0] & ~both).sum()))
    missed = [_missed(fitting, each, both) for each in (fit, best)]
    return float(missed[0] - missed[1] + alone) if any(each.any() for each in known) else None


def _missed(fitting: Fitting, fit: FittedModes, which: Array) -> float:
    """Squares of what a fit predicts wrongly over their covariance, with the logarithm of its determinant."""
    S, left = fit.slopes[which], (fitting.y - fit.values)[which]
    C = np.diag(fitting.spread(fit)[which] ** 2) + S @ fitting.covariance(fit) @ S.T
    return float(left @ np.linalg.solve(C, left) + np.linalg.slogdet(C)[1])


def told_of(solutions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A warning for each of the nearest ones."""
    found = []
    for one in solutions[:MOST_NAMED]:
        numbers = ", ".join(f"'{key}' = {number['value']:.4g}" for key, number in one["parameters"].items())
        found.append(
            f"another solution fits as well: {numbers} (sum of squares {one['more']:+.1f}{_of_held_out(one)}); "
            "intervals are of one solution alone: measure shapes or other poses, or narrow a prior"
        )
    if len(solutions) > MOST_NAMED:
        found.append(f"{len(solutions)} other solutions in all fit as well: see alternatives")
    return found


def _of_held_out(one: Mapping[str, Any]) -> str:
    """Which solution predicts what was held out, and whether that decides."""
    if "held_out" not in one:
        return ""
    more = one["held_out"]
    decides = "decisive" if abs(more) > DECISIVE else "not decisive"
    return f", and what is held out is predicted {'worse' if more > 0 else 'better'} by it: {more:+.1f}, {decides}"
