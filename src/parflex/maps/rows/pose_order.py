"""The order of poses in which lanes go: each starts from the modes of the pose before, so that these should be alike.

A space-filling curve puts poses in order that are near to each other; along it each pose is followed by the nearest of
the next few.
"""

from __future__ import annotations

import numpy as np

from parflex.codegen.loop_functions import compiled

Array = np.ndarray
BITS = 5  # of each coordinate along the curve
DIRECTIONS = 6  # along which poses are put in order: a platform in space has as many
SEEN = 512  # poses by which directions are chosen, about
BLOCK = 32  # poses along the curve of which the nearest comes next: more take longer to compare than they save
SPREAD = [  # bits of numbers with so many places between them as there are other directions
    np.array([sum((k >> bit & 1) << bit * count for bit in range(BITS)) for k in range(2**BITS)], np.int32)
    for count in range(1, DIRECTIONS + 1)
]


@compiled
def turn(values: Array, ways: Array, along: Array) -> None:
    """Coordinates of poses along other directions (directions x poses)."""
    for pose in range(len(values)):
        for n in range(len(along)):
            total = 0.0
            for k in range(len(ways)):
                total += values[pose, k] * ways[k, n]
            along[n, pose] = total


@compiled
def follow_nearest(along: Array, order: Array, here: Array, near: Array, far: Array, left: Array) -> None:
    """Change the order in place: in each block of it the nearest pose that is left follows.

    `along` are the poses (directions x poses); the others are for work: a pose, the poses of a block (directions x
    block), their distances, and which they are.
    """
    width, count, block = along.shape[0], len(order), len(far)
    for n in range(width):
        here[n] = along[n, order[0]]
    for start in range(0, count, block):
        some = min(block, count - start)
        for k in range(some):
            left[k] = order[start + k]
            for n in range(width):
                near[n, k] = along[n, order[start + k]]
        for place in range(start, start + some):
            rest = start + some - place
            for k in range(rest):
                far[k] = (near[0, k] - here[0]) * (near[0, k] - here[0])
            for n in range(1, width):
                for k in range(rest):
                    far[k] += (near[n, k] - here[n]) * (near[n, k] - here[n])
            best, least = 0, far[0]
            for k in range(1, rest):
                if far[k] < least:
                    best, least = k, far[k]
            order[place] = left[best]
            left[best] = left[rest - 1]
            for n in range(width):
                here[n] = near[n, best]
                near[n, best] = near[n, rest - 1]


def ordered(values: Array, nearest: bool = True) -> Array:
    """An order of poses in which neighbours are alike; without `nearest` that of the curve alone."""
    count, width = values.shape
    if count < 3 or not width:
        return np.arange(count)
    some = values[:: max(1, count // SEEN)]
    middle, span = some.mean(axis=0), np.ptp(some, axis=0)
    moving = np.flatnonzero(span > 0)
    if not len(moving):
        return np.arange(count)
    scaled = (some[:, moving] - middle[moving]) / span[moving]
    main = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :DIRECTIONS]
    seen = scaled @ main
    low, high = seen.min(axis=0), seen.max(axis=0)
    ways = np.zeros((width, main.shape[1]))
    ways[moving] = main / span[moving, None]
    along = np.empty((ways.shape[1], count))
    turn(np.ascontiguousarray(values, dtype=float), ways, along)  # a library of matrices would wake its threads
    order = _along_curve(along, middle @ ways + low, 2**BITS / np.maximum(high - low, 1e-300))
    if nearest:
        # single precision: how products of matrices are rounded must not show in the order
        rough = along.astype(np.float32).astype(float)
        work = np.empty(len(along)), np.empty((len(along), BLOCK)), np.empty(BLOCK), np.empty(BLOCK, dtype=np.int64)
        follow_nearest(rough, order, *work)
    return order


def _along_curve(along: Array, low: Array, cells: Array) -> Array:
    """The order of poses (directions x poses) along the directions of most change: a space-filling curve."""
    count = along.shape[1]
    cell = ((along - low[:, None]) * cells[:, None]).clip(0, 2**BITS - 1).astype(np.int16)
    code = np.zeros(count, dtype=np.int32)
    for k, own in enumerate(cell):
        code |= SPREAD[len(cell) - 1][own] << k
    for far in (1, 2, 4, 8, 16):  # the place in Gray's order, in which cells that follow each other differ in one bit
        code ^= code >> far
    places = code.astype(np.int64) * count + np.arange(count)  # sorted in a quarter of the time of a stable `argsort`
    places.sort()
    return places % count
