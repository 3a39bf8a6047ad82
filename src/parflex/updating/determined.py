"""Which numbers the measurements determine, and which only their prior does.

In units of the prior deviations, the prior has the information 1 along every direction, and the measurements have
v^T A v along v, with A = P S^T S P (S: sensitivities over deviations, P: prior deviations). Along an eigenvector of A
whose eigenvalue is below 1, the measurements determine less than the prior does. A number is undetermined if such
directions make up more than half of its variance: its interval would be that of the prior, given as a measurement.

Two identical springs are one case. Frequencies are stationary in their difference, so S has no part along it, and the
deviations of both springs are those of the prior. Another number may compensate for the square of that difference.
So the part of such a direction in a variance comes from the model a deviation away, not from S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.errors import ParflexError
from parflex.records import Record
from parflex.updating.mode_fitting import FittedModes, Fitting

Array = np.ndarray
EQUAL = 1.0  # information of the measurements over that of the prior, where both determine a direction alike


@dataclass(frozen=True, eq=False, repr=False)
class Undetermined(Record):
    """Combinations of the numbers that the measurements determine less than the prior, and the numbers in them.

    Rows of `combinations` are directions over the prior deviations, of length 1; `numbers` is true where a number is
    undetermined.
    """

    combinations: Array
    numbers: Array


def undetermined(fitting: Fitting, fit: FittedModes) -> Undetermined:
    """Return what the measurements leave to the prior."""
    S, prior = fitting.information(fit), fitting.prior
    _, sizes, directions = np.linalg.svd(S * prior)
    values = np.zeros(len(prior))
    values[: len(sizes)] = sizes**2
    weak = values < EQUAL
    steps = directions * prior / np.sqrt(1 + values)[:, None]  # a deviation along each; their squares are variances
    strong = steps[~weak]
    by_prior = sum((_part(fitting, fit, S, one, strong) for one in steps[weak]), np.zeros(len(prior)))
    return Undetermined(directions[weak], by_prior > (strong**2).sum(axis=0))


def _part(fitting: Fitting, fit: FittedModes, S: Array, step: Array, strong: Array) -> Array:
    """Return the part of a weak direction in all variances, with the strong directions fitted again."""
    found = step**2
    if not len(strong):
        return found
    used = fitting.used(fit)
    step = step * min(1.0, 0.5 / float(np.abs(step / fit.shares).max()))  # numbers keep their signs
    for away in (step, -step):
        try:
            there = fitting.at(fit.shares + away, every=False)
        except ParflexError:  # no robot has these numbers
            continue
        left = (there.values - fit.values)[used] / fitting.spread(fit)[used] - S @ away
        found = np.maximum(found, (away - strong.T @ (strong @ (S.T @ left))) ** 2)
    return found
