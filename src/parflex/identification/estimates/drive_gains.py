"""Gains of drives from a known payload: total least squares.

Efforts are known up to a factor of each motor, forces of the payload exactly. With efforts in columns of their own,
Y s = W theta + known; the columns W and known are taken as exact, the efforts as noisy: the factors s are the direction
in which what W and known leave of Y is smallest, and the known forces say how long it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.errors import InputError
from parflex.identification.estimates.least_squares import EffortRows, Fit, fit, noise_of, usual_lag

Array = np.ndarray
MOST_ROUNDS, SETTLED = 20, 1e-6  # of weights, and what the last may change gains by
RESAMPLED = 200  # times, for the deviations
LEAST_KNOWN = 1e-3  # of the efforts: what is known must be felt


def total_least_squares(rows: EffortRows) -> tuple[Fit, Array, Array, Array]:
    """Parameters with known gains, and the factors of the gains with their deviations, robust and white."""
    assert rows.known is not None
    if not np.linalg.norm(rows.known) > LEAST_KNOWN * np.linalg.norm(rows.y):
        raise InputError(
            "gains of drives need a payload that is known: without one all parameters could be scaled with them",
            key="payload", value=0.0, hint="name the payload of a record in [payload] of the map",
        )  # fmt: skip
    raw = rows.y + rows.known
    motors = raw.shape[1]
    noise, factors = fit(rows, "wls").noise, np.ones(motors)
    for _ in range(MOST_ROUNDS):  # what wrong gains leave is no noise: motors count by what found ones leave
        blocks = _products(rows, raw, 1 / noise)
        before, (factors, values) = factors, _solved(blocks.sum(axis=0), motors)
        if np.abs(factors - before).max() <= SETTLED * np.abs(factors).max():
            break
        noise = noise_of(rows, raw * factors - rows.known - rows.W @ values) / np.abs(factors)
    scaled = replace(rows, y=raw * factors - rows.known)
    after = fit(scaled, "wls")
    scores = np.einsum("nrc,nr->nc", rows.W, after.residuals * rows.mask)
    lag = max(1, max(usual_lag(scores[part]) for part in rows.parts))
    spreads = []
    for length in (2 * lag, 1):  # blocks of instants keep what is correlated together
        rng = np.random.default_rng(0)
        sums = np.cumsum(np.concatenate([np.zeros((1, *blocks.shape[1:])), blocks]), axis=0)
        found = []
        for _ in range(RESAMPLED):
            chosen = [_chosen(rng, part, length) for part in rows.parts]  # without its record, no payload is known
            first, last = (np.concatenate(ends) for ends in zip(*chosen, strict=True))
            s, theta = _solved((sums[last] - sums[first]).sum(axis=0), motors)
            found.append(np.concatenate([s, theta]))
        spreads.append(np.atleast_2d(np.cov(np.array(found).T)))
    robust, white = spreads
    judged = Fit(
        values, white[motors:, motors:], robust[motors:, motors:], scaled.y - rows.W @ values, after.condition,
        noise_of(rows, scaled.y - rows.W @ values), lag, after.weights,
    )  # fmt: skip
    return judged, factors, np.sqrt(np.diag(robust)[:motors]), np.sqrt(np.diag(white)[:motors])


def _chosen(rng: np.random.Generator, part: slice, length: int) -> tuple[Array, Array]:
    """First and last instants of random blocks of a record, about as many instants as it has."""
    count = part.stop - part.start
    length = min(length, count)
    first = part.start + rng.choice(np.arange(count - length + 1), -(-count // length))
    return first, first + length


def _products(rows: EffortRows, raw: Array, weights: Array) -> Array:
    """Of each instant the products of all columns: efforts of each motor, parameters, what is known."""
    count, motors, size = rows.W.shape
    X = np.zeros((count, motors, motors + size + 1))
    X[:, range(motors), range(motors)] = raw
    X[:, :, motors:-1], X[:, :, -1] = rows.W, rows.known
    X = X * weights[None, :, None] * rows.mask[:, :, None]
    return np.einsum("nri,nrj->nij", X, X)


def _solved(G: Array, motors: int) -> tuple[Array, Array]:
    """Factors and parameters from the products of all columns."""
    exact = slice(motors, None)
    size = np.sqrt(np.maximum(np.diag(G)[exact], 0.0))
    size = np.where(size > 0, size, 1.0)  # a column that these instants do not have
    inner = G[exact, exact] / np.outer(size, size)
    cross = G[exact, :motors] / size[:, None]
    per = np.linalg.lstsq(inner, cross, rcond=1e-14)[0]
    left = G[:motors, :motors] - cross.T @ per
    _, vectors = np.linalg.eigh((left + left.T) / 2)
    s = vectors[:, 0]
    found = (per @ s) / size
    return s / found[-1], found[:-1] / found[-1]
