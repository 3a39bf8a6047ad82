"""The largest value of a response along a motion, with its derivatives at the instants that reach it.

The instant moves as numbers change, but the value has no derivative in time there: theory (64), with time for the
poses. Where friction jumps as a joint reverses, the largest value may be the limit at that instant and moves with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import legendre

from parflex.design.design_state import DesignState
from parflex.design.motion_instants import MotionInstants
from parflex.design.response_value import combined, value_of
from parflex.design.rigid_motion import RigidState
from parflex.design.smooth_pieces import SmoothPieces, TimePiece, roots
from parflex.records import Record
from parflex.spatial.dual import Sensitive

Array = np.ndarray
CLOSE = 1e-6  # of the largest value: tops of polynomials that are made exact
FLAT = 1e-11  # of the largest value: what changes less has no top of its own
JUMP = 1e-7  # relative: polynomials are closer than that to what they stand for
TOGETHER = 1e-9  # relative: other instants that come as near are active too


@dataclass(frozen=True, eq=False, repr=False)
class Top(Record):
    """A value at an instant, `behind` or before a jump of the motion; a `limit` is at an end of a piece."""

    value: float
    t: float
    behind: bool = False
    limit: tuple[TimePiece, int] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Sizes(Record):
    """Functions on the way of a motion, and what is made of them: the sum of their sizes, or their norm."""

    functions: SmoothPieces
    norm: bool = False
    known: dict[tuple[float, bool], float] = field(default_factory=dict)

    def of(self, values: Any) -> Any:
        """The size of values."""
        if self.norm:
            return np.sqrt(np.asarray(values) @ np.asarray(values))
        return sum((abs(value) for value in values), 0.0)

    def at(self, t: float, behind: bool = False, plain: bool = True) -> Any:
        """The size at an instant."""
        if plain and (t, behind) in self.known:
            return self.known[t, behind]
        functions = self.functions
        found = self.of(functions.functions(RigidState(functions.instants.state_at(t, behind, plain))))
        if plain:
            self.known[t, behind] = value_of(found)
        return found

    def tops(self, piece: TimePiece) -> list[tuple[float, float]]:
        """Places from -1 to 1 at which polynomials of a piece have local maxima or end, and the sizes there."""
        if self.norm:
            parts = [((-1.0, 1.0), sum((legendre.legmul(one, one) for one in piece.values.T), np.zeros(1)))]
        else:
            ends = sorted({-1.0, 1.0, *(x for one in piece.values.T for x in roots(one))})
            parts = [((a, b), piece.values @ np.sign(piece.at((a + b) / 2))) for a, b in pairwise(ends)]
        places = {-1.0, 1.0}
        for (a, b), polynomial in parts:
            if np.abs(polynomial[1:]).max(initial=0.0) > FLAT * np.abs(polynomial).max():
                places |= {x for x in roots(legendre.legder(polynomial)) if a <= x <= b}
        return [(x, float(self.of(piece.at(x)))) for x in sorted(places)]


def largest_on_the_way(
    state: DesignState, response: str, functions: Callable[[RigidState], Any], norm: bool = False, rubs: bool = True
) -> Any:
    """The largest sum of sizes (or norm) of functions over the motion that a response names behind its '@'."""
    instants = MotionInstants(state, response.rpartition("@")[2], response)
    sizes = Sizes(SmoothPieces(instants, response, functions, rubs), norm)
    pieces = sizes.functions.pieces
    rough = [(piece, x, size) for piece in pieces for x, size in sizes.tops(piece)]
    largest = max(size for _, _, size in rough)
    found = [_exact(sizes, piece, x, size) for piece, x, size in rough if size >= (1 - CLOSE) * largest]
    found.sort(key=lambda top: -top.value)
    if not state.keys:
        return found[0].value
    return combined([_with_slopes(sizes, top) for top in _active(found, instants)], state.count, False)


def _exact(sizes: Sizes, piece: TimePiece, x: float, size: float) -> Top:
    """The top of polynomials as that of the motion itself: beside it the value changes by the square of the time."""
    t, behind = piece.time(x), x == -1
    value = sizes.at(t, behind)
    # at an instant of rest dry friction has no sign: only what comes before or behind it has
    if abs(x) == 1 and (t in sizes.functions.turns or abs(value - size) > JUMP * size):
        return Top(size, t, behind, (piece, int(x)))
    return Top(value, t, behind)


def _active(tops: list[Top], instants: MotionInstants) -> list[Top]:
    """Instants that reach the largest value, each once."""
    found: list[Top] = []
    for top in tops:
        if top.value < tops[0].value * (1 - TOGETHER):
            break
        near = [one for one in found if abs(one.t - top.t) <= 1e-6 * instants.length and one.limit is top.limit]
        pushes = [instants.motors_at(one.t, one.behind)[2] for one in (top, *near)]
        if not any(np.allclose(push, pushes[0]) for push in pushes[1:]):
            found.append(top)
    return found


def _with_slopes(sizes: Sizes, top: Top) -> Any:
    """The value at an instant with its slopes; of a limit those of polynomials, and of the instant."""
    if top.limit is None:
        return sizes.at(top.t, top.behind, plain=False)
    piece, x = top.limit
    moved = legendre.legval(x, sizes.functions.slopes(piece))  # functions x keys
    if top.t in sizes.functions.turns:
        moved = moved + np.outer(piece.at(x, 1), sizes.functions.moved(top.t))
    return sizes.of([Sensitive(float(value), row) for value, row in zip(piece.at(x), moved, strict=True)])
