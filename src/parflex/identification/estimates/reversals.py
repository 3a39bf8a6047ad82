"""Samples beside reversals: where the low-pass of positions moves the instant at which dry friction changes its sign.

Dry friction makes accelerations jump where a joint turns back. The low-pass rounds that corner of its rate, and the
filtered rate changes its sign later than the joint does, at every reversal to the same side: by up to a tenth of the
period of the cutoff. Efforts then seem to come earlier than positions, and friction takes what is missed.

Behind a low-pass at twice the cutoff signs are nearer to the truth. What rows change by between the two, and within
the step of the samples in which the sign changes, is at stake. Where that moves a parameter by a share of its
deviation, rows with most of it are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.identification.estimates.least_squares import EffortRows, Fit, fit
from parflex.identification.filtering import FilterChoice, decimated, smoothed
from parflex.identification.measured_files import Measurement
from parflex.identification.regressors import ClosedMotion, Regressor

Array = np.ndarray
Prepared = tuple[Array, EffortRows, Array]  # instants, rows and efforts by the file of a record
SHARPER = 2.0  # times the cutoff: kernels are half as long; noise of rates is three times as large
HIGHEST = 0.45  # of the sample frequency, that cutoff at most
HOLDS = 0.3  # deviations by which what is at stake may move a parameter: an interval of 95 % then holds 94 %
LEVELS = (2.0, 1.0, 0.5, 0.25)  # times the noise of a row: where more is at stake it is left out
MEDIAN = 1.4826  # a standard deviation over the median of sizes
FEWEST = 3  # rows of a motor per parameter: with fewer left, friction is as good as not recorded
CREEPS = 1e-9  # of a rate: as good as zero, with its sign


def without_reversals(
    rows: EffortRows, found: Sequence[Prepared], told: list[int], choice: FilterChoice
) -> tuple[EffortRows, list[Prepared], int]:
    """Rows of all records and what is prepared of each, without rows beside reversals; and how many these are."""
    used = rows_that_hold(rows, [one[1].columns(told) for one in found], choice)
    left_out = int((rows.mask > 0).sum() - used.sum())
    if not left_out:
        return rows, list(found), 0
    parts = [
        (t, replace(one, used=used[part]), by_file)
        for (t, one, by_file), part in zip(found, rows.parts, strict=True)
    ]  # fmt: skip
    return replace(rows, used=used), parts, left_out


def rows_that_hold(rows: EffortRows, parts: Sequence[EffortRows], choice: FilterChoice) -> Array:
    """Which rows (instants x rows, of all records) are used; all where what is at stake moves no parameter."""
    mask = rows.mask > 0
    if all(part.late is None for part in parts):
        return mask
    plain = replace(rows, instruments=None)
    judged = fit(plain, "wls")
    stake = np.concatenate([at_stake(part, judged.values, choice) for part in parts])
    noise = _noise(plain, judged)
    for level in LEVELS:
        if deviations_moved(judged, plain, stake * mask) < HOLDS:
            break
        some = mask & (np.abs(stake) <= level * noise)
        if (some.sum(axis=0) < FEWEST * rows.W.shape[2] / rows.y.shape[1])[mask.any(axis=0)].any():
            break  # too few would be left
        mask = some
        judged = fit(replace(plain, used=mask), "wls")
    return mask


def at_stake(rows: EffortRows, values: Array, choice: FilterChoice) -> Array:
    """Efforts (instants x rows) by which signs that may change earlier change rows of a record."""
    if rows.late is None:
        return np.zeros_like(rows.y)
    samples, change, count = rows.late
    found = np.zeros((count, rows.y.shape[1]))
    np.add.at(found, samples, change @ values)
    return decimated(found, choice)


def _noise(rows: EffortRows, fitted: Fit) -> Array:
    """Of each row by the median: reversals are outliers."""
    seen = np.where(rows.mask > 0, np.abs(fitted.residuals), np.nan)
    seen[:, ~rows.mask.any(axis=0)] = 0.0
    return MEDIAN * np.nanmedian(seen, axis=0)


def deviations_moved(judged: Fit, rows: EffortRows, stake: Array) -> float:
    """Deviations by which efforts move the parameter that they move most."""
    W = (rows.W * judged.weights[:, :, None]).reshape(-1, rows.W.shape[2])
    change = np.linalg.lstsq(W, (stake * judged.weights).ravel(), rcond=None)[0]
    deviation = np.sqrt(np.maximum(np.diag(judged.robust), 0.0))
    return float((np.abs(change) / np.maximum(deviation, 1e-300)).max(initial=0.0))


def late_signs(
    regressor: Regressor, kept: Sequence[int], record: Measurement, moving: ClosedMotion, choice: FilterChoice
) -> tuple[Array, Array, int] | None:
    """Samples at which a joint with dry friction turns at another instant behind twice the cutoff.

    Beside them what rows change there, per parameter, and the number of all samples; None where no joint rubs.
    """
    tree = regressor.robot.tree
    rubbing = sorted({tree.links[one.link].v.start for one in regressor.unknowns if one.symbol == "FS"})
    if not rubbing:
        return None
    sharper = replace(choice, cutoff=min(SHARPER * choice.cutoff, HIGHEST / record.step))
    own = smoothed(record, sharper).rate
    if regressor.spare:
        own = np.einsum("nij,nj->ni", np.linalg.pinv(moving.J[:, list(regressor.robot.actuated)]), own)
    rate = np.einsum("nij,nj->ni", moving.J, own)[:, rubbing]
    # the mean of a sign over the step about its sample: one that changes between two samples acts from there on
    half = np.maximum(np.abs(np.gradient(rate, axis=0)) / 2, 1e-300)
    side = np.sign(moving.qd[:, rubbing])
    other = (1 - side * np.clip(rate / half, -1.0, 1.0)) / 2 * np.abs(side)  # part of the step with the other sign
    samples, change = [], []
    for k, part in zip(rubbing, other.T, strict=True):
        turned = np.flatnonzero(part)
        now = ClosedMotion(moving.q[turned], moving.qd[turned], moving.qdd[turned], moving.J[turned])
        forth, back = now.qd.copy(), now.qd.copy()
        forth[:, k] *= CREEPS
        back[:, k] *= -CREEPS
        rows, others = (regressor.of(replace(now, qd=qd), kept)[0] for qd in (forth, back))
        samples.append(turned)
        change.append(part[turned, None, None] * (rows - others))
    return np.concatenate(samples), np.concatenate(change), len(rate)
