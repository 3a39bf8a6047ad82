"""Starts of simulated records: what the first samples leave open of them, and efforts would show.

Positions and rates at the start follow from a few noisy samples. Soft controllers keep such an error for a long time:
efforts of the `gough-stewart` are moved by it more than by their own noise, and parameters by nine deviations. So the
starts are found with the parameters, in all directions that matter to efforts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray
# of the noise of efforts, all rows together, per deviation of a start: less makes no variance of a parameter larger by
# more than the square of it, and of such directions the first samples tell more than efforts do
UNSEEN = 0.1


def seen_starts(responses: Sequence[Array], spreads: Sequence[Array], weights: Sequence[Array]) -> list[Array]:
    """Of each record, the directions of its start (numbers x directions) that efforts show, in deviations of it.

    `responses` (instants x rows x numbers) are efforts per unit of a start, `spreads` its deviations as the first
    samples leave them, `weights` (instants x rows) one over the noise of efforts, or zero where they are not used.
    """
    found = []
    for response, spread, weight in zip(responses, spreads, weights, strict=True):
        shown = (response * spread * weight[:, :, None]).reshape(-1, len(spread))
        _, sizes, ways = np.linalg.svd(shown, full_matrices=False)
        found.append(spread[:, None] * ways[sizes > UNSEEN].T)
    return found


def along(responses: Sequence[Array], ways: Sequence[Array]) -> Array:
    """Efforts of all records (instants x rows x directions) per unit of each direction: a record has its own alone."""
    count, first, parts = sum(way.shape[1] for way in ways), 0, []
    for response, way in zip(responses, ways, strict=True):
        part = np.zeros((*response.shape[:2], count))
        part[:, :, first : first + way.shape[1]] = response @ way
        first += way.shape[1]
        parts.append(part)
    return np.concatenate(parts)


def offsets(ways: Sequence[Array], coordinates: Array) -> list[Array]:
    """By how much each start is off, from coordinates along all directions."""
    ends = np.cumsum([way.shape[1] for way in ways])[:-1]
    return [way @ part for way, part in zip(ways, np.split(coordinates, ends), strict=True)]


def without(columns: Array, values: Array, weights: Array) -> Array:
    """Values (instants x rows x any) less what some columns explain of them, by weighted least squares.

    Least squares of what is left are those with the columns (Frisch, Waugh and Lovell).
    """
    if not columns.shape[2]:
        return values
    flat = (columns * weights[:, :, None]).reshape(-1, columns.shape[2])
    explained = np.linalg.lstsq(flat, (values * weights[:, :, None]).reshape(len(flat), -1), rcond=None)[0]
    return values - (columns @ explained).reshape(values.shape)


def shrunk_start(columns: Array, efforts: Array, weights: Array) -> Array:
    """Coordinates of starts from efforts (instants x rows), each with a deviation of one by the first samples."""
    flat = (columns * weights[:, :, None]).reshape(-1, columns.shape[2])
    return np.linalg.solve(flat.T @ flat + np.eye(flat.shape[1]), flat.T @ (efforts * weights).ravel())
