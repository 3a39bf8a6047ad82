"""Errors of the model that the poses of a mode have in common, and what they do to intervals.

A mass that the file has wrong shifts the same mode of every pose to the same side. Taken as an error of every row for
itself it would cancel over many poses; taken as one error of each mode it does not. Part of it is then in the numbers
themselves, and residuals show less of it than it is. How much less is no guide where the numbers take up nearly all of
it: what residuals show is then of the rows, and the shared error is taken to be as large as theirs.
"""

from __future__ import annotations

import numpy as np

from parflex.updating.mode_fitting import FittedModes, Fitting

Array = np.ndarray


def shared_errors(fitting: Fitting, fit: FittedModes) -> tuple[Array, float]:
    """Covariance of the shares where the error of the model is one of each mode, and freedoms that tell its size.

    Deviations are not below those of errors of every row for itself, and not above those of the prior.
    """
    used, plain = fitting.used(fit), fitting.covariance(fit)
    if not fitting.error.any():
        return plain, float(max(fitting.freedoms(fit, 0), 1.0))
    S, row, kind = fitting.information(fit), fitting.row_of[used], fitting.kind[used]
    mode = np.array(fit.modes)[row]
    part = (fitting.by_model(fit) / fitting.spread(fit))[used]  # of deviations of the rows
    together = (mode[:, None] == mode) & (kind[:, None] == kind)
    shared = np.outer(part, part) * together
    taken = np.eye(len(S)) - S @ plain @ S.T  # residuals per error
    seen, alone = taken @ shared @ taken.T, taken @ np.diag(part**2) @ taken.T
    freedoms = np.trace(seen) ** 2 / max(float((seen * seen.T).sum()), 1e-300)
    # squares of residuals that a shared error leaves, as a part of those that errors of the rows leave: by that weight
    # it is 1/shows times as large as theirs, as residuals ask for, and by the rest just as large
    shows = min(float(np.trace(seen)) / max(float(np.trace(alone)), 1e-300), 1.0)
    larger = 2 - shows
    middle = S.T @ (np.diag(1 - part**2) + larger * shared) @ S + np.diag(1 / fitting.prior**2)
    # a size that is taken and not seen counts as one freedom
    return _between(plain, plain @ middle @ plain, fitting.prior), float(max(freedoms, 1.0) + (1 - shows))


def _between(least: Array, found: Array, most: Array) -> Array:
    """A covariance with deviations between those of another one and given ones."""
    low, own = (np.sqrt(np.maximum(np.diag(C), 1e-300)) for C in (least, found))
    factor = np.minimum(np.maximum(own, low), np.maximum(most, low)) / own
    return np.asarray(found * np.outer(factor, factor))
