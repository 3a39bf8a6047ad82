"""Steps along the boundary of assembly: chains that a step brings to the boundary are moved back to a margin.

A response changes as the square root of the distance from the boundary, so a step along it must end at the same
distance: Newton steps on the distance itself, which is smooth. They start inside: after a step beyond a curved
boundary, the design is first moved away from it until it assembles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from parflex.design.assembly_edge import AssemblyEdge
from parflex.errors import ParflexError

Array = np.ndarray
MARGIN = 1e-8  # squared singular value that is kept: 1e-4 of a length from the edge, where poses are still found
HELD = 2.0 * MARGIN  # nearer than this a chain is at its edge
ROUNDS = 25  # of a pose each


class EdgeSource(Protocol):
    """Where edges of designs come from."""

    def watch(self, z: Array) -> bool:
        """Watch the poses that cannot be reached at a design; whether there are new ones."""

    def at(self, z: Array, slopes: bool = True) -> list[AssemblyEdge]:
        """Edges at the watched poses of a design; an error where one of them cannot be reached."""


def edge_rows(edges: Sequence[AssemblyEdge]) -> tuple[Array, Array]:
    """Rows of a linear program, along a step of unit length, and their sides: no chain comes nearer than the margin."""
    rows, sides = [], []
    for edge in edges:
        size = float(np.linalg.norm(edge.slope))
        if size:
            rows.append(-edge.slope / size)
            sides.append(0.0 if edge.value <= HELD else (edge.value - MARGIN) / size)
    return np.array(rows), np.array(sides)


def slid(source: EdgeSource, here: Array, edges: Sequence[AssemblyEdge], there: Array, free: Array) -> Array:
    """The design at the end of a step, with the chains that it brings to their edge put back to the margin."""
    held = [edge for edge in edges if edge.value + edge.slope @ (there - here) <= HELD]
    if not held:
        return there
    z, wanted = there, 1.5 * MARGIN
    inside: tuple[Array, Array] | None = None  # a design that can be, and its distances
    slopes = np.array([edge.slope for edge in held]) * free
    lift, stopped = float(np.sum((there - here) ** 2)), ParflexError("")
    for _ in range(ROUNDS):
        try:
            values = _matched(held, source.at(z, slopes=False))
        except ParflexError as error:
            stopped = error
            if (
                inside is None
            ):  # beyond a bent edge: up from the tangent, by the square of the step at first, then by more
                z = _moved(there, slopes, np.full(len(held), lift))
                lift *= 4
            else:
                z = (z + inside[0]) / 2
            continue
        missing = np.where(np.isfinite(values), wanted - values, 0.0)
        if (np.abs(missing) <= 0.5 * MARGIN).all():
            return z
        if inside is not None:  # slopes follow what was found, as Broyden's do
            step = z - inside[0]
            rest = np.where(np.isfinite(values - inside[1]), values - inside[1], slopes @ step) - slopes @ step
            slopes = slopes + np.outer(rest, step) / max(float(step @ step), 1e-300)
        inside = z, values
        z = _moved(z, slopes, missing)
    if inside is None:
        raise stopped
    return inside[0]


def _moved(z: Array, slopes: Array, rise: Array) -> Array:
    """The nearest design whose distances are larger by a rise; variables at a bound leave it to the others."""
    step = np.linalg.pinv(slopes, rcond=1e-6) @ rise
    outside = ((z + step < 0) & (step < 0)) | ((z + step > 1) & (step > 0))
    if outside.any():
        step = np.linalg.pinv(slopes * ~outside, rcond=1e-6) @ rise
    return np.clip(z + step, 0.0, 1.0)


def _matched(held: Sequence[AssemblyEdge], now: Sequence[AssemblyEdge]) -> Array:
    """Values of the same chains at another design; infinite where a chain is far from its edge."""
    found = np.full(len(held), np.inf)
    for k, edge in enumerate(held):
        own = [one for one in now if one.pose is edge.pose]
        if own:
            found[k] = max(own, key=lambda one: abs(float(one.along @ edge.along))).value
    return found
