"""Instants at which efforts were disturbed: few, in short runs, not those of one record, and not where the motion is.

What a model lacks comes again where the motion comes again: from most of a record, as a smooth function of it, what is
missed in the rest is predicted then. Disturbances are not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.identification.estimates.least_squares import MEDIAN, EffortRows, fit

Array = np.ndarray
STANDS_OUT, FAR_OUT = 0.4, 3.0  # of the root mean square, what most residuals are below; times these, an outlier
LONGEST = 0.1  # of a record, a run of outliers
OF_ONE = 0.9  # of the outliers, in one of several records: something is wrong with that record
PARTS = 5  # of the instants, each predicted from the others
SHAPES = 12  # of the motion, those that change most
FIRM = 0.1  # of the power of what is predicted: noise
PREDICTED = 0.3  # of the power of what is missed, from which it is no disturbance


def outlying(rows: EffortRows) -> list[float]:
    """Of each motor, the share of instants with efforts that are far above what is missed of most; zero: few stand out.

    Where residuals are noise, or a sine that the model lacks, 1.48 times the median of sizes is their root mean square.
    """
    plain = replace(rows, instruments=None)
    left = rows.y - rows.W @ fit(plain, "irls").values
    return [_share(rows, left[:, k], rows.mask[:, k] > 0) for k in range(left.shape[1])]


def _share(rows: EffortRows, column: Array, used: Array) -> float:
    size = np.abs(column[used])
    most = MEDIAN * float(np.median(size)) if len(size) else 0.0
    if not len(size) or not most < STANDS_OUT * float(np.sqrt((size**2).mean())):
        return 0.0
    far = used & (np.abs(column) > FAR_OUT * most)
    by_record = [far[part] for part in rows.parts]
    if len(by_record) > 1 and max(int(one.sum()) for one in by_record) > OF_ONE * far.sum():
        return 0.0
    if any(_longest(one) > LONGEST * len(one) for one in by_record) or _predicted(rows, column, used) > PREDICTED:
        return 0.0
    return float((size > FAR_OUT * most).mean())


def _longest(far: Array) -> int:
    """Instants of the longest run."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], far.astype(int), [0]])))
    return int((ends[1::2] - ends[::2]).max(initial=0))


def _predicted(rows: EffortRows, column: Array, used: Array) -> float:
    """Share of the power of what is missed that the motion predicts, each part of the record from the others.

    Shapes of the motion are those of all columns of the rows; what depends on them is smooth over their usual distance.
    """
    at = np.flatnonzero(used)
    flat = rows.W.reshape(len(rows.W), -1)[at]
    flat = (flat - flat.mean(axis=0)) / np.maximum(flat.std(axis=0), 1e-300)
    U, S, _ = np.linalg.svd(flat, full_matrices=False)
    shapes = (U * S)[:, :SHAPES]
    apart = np.linalg.norm(shapes[:, None] - shapes[None], axis=2)
    alike = np.exp(-0.5 * (apart / max(float(np.median(apart)), 1e-300)) ** 2)
    missed, left = column[at], 0.0
    for own in np.array_split(np.arange(len(at)), PARTS):
        others = np.setdiff1d(np.arange(len(at)), own)
        known = alike[np.ix_(others, others)] + FIRM * np.eye(len(others))
        said = alike[np.ix_(own, others)] @ np.linalg.solve(known, missed[others])
        left += float(((missed[own] - said) ** 2).sum())
    return 1 - left / max(float((missed**2).sum()), 1e-300)
