"""Normal stresses in beams whose fibres are known, and where the largest is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from parflex.models.inside_beams.beam_chains import BeamChain
from parflex.models.inside_beams.section_forces import ElementRows, joined, sections_of_element

Array = np.ndarray
STATIONS = 9  # of a beam of one element; in between, a parabola tells the largest
FEWEST = 3  # of an element
TOGETHER = 20_000  # rows at a time
NEAR = 0.9  # of the largest so far: pieces whose parabolas stay below hold nothing larger
TRIED = 20  # rows of a piece, those with the largest parabolas, that have fine stations
FINE = 65  # of these stations
ROUNDING = 1e-14  # of a stress
ZOOMS, ZOOM = 12, 17  # then the neighbourhood of the best is cut into so many, until only rounding is left


@dataclass(frozen=True)
class LargestStress:
    """The largest normal stress (Pa) of all rows and places: in which beam, where along it, and in which row."""

    beam: str
    s: float
    row: int
    value: float


def stresses(chain: BeamChain, forces: Array, planar: bool) -> Array:
    """The largest normal stress in size over the fibres of sections, for section forces along the last axis."""
    parts = chain.parts
    assert parts.fibres is not None
    moments = parts.in_section(forces[..., 3:])
    My, Mz = (0 * moments[..., 1] if planar else moments[..., 1]), moments[..., 2]
    return parts.fibres.stress(parts.section, forces[..., 0], My, Mz)


def largest_stress(
    chains: Mapping[str, BeamChain], elements: Mapping[int, ElementRows], planar: bool
) -> LargestStress | None:
    """The largest of all beams whose fibres are known; None where there is none.

    Of each element some stations are computed in all rows. Between them, forces and moments are polynomials of degree
    7 in xi, without kinks that could hold a maximum; so in the rows that come nearest the place is found to rounding.
    """
    pieces = []
    for chain in chains.values():
        if chain.parts.fibres is not None:
            for number, link in enumerate(chain.links):
                pieces += [_Piece(chain, number, elements[link], span, planar) for span in _spans(elements[link])]
    peaks = _peaks_of(pieces)
    best: LargestStress | None = None
    for k in sorted(range(len(pieces)), key=lambda k: -float(peaks[k].max(initial=0.0))):
        if best is not None and peaks[k].max() < NEAR * best.value:
            break
        found = pieces[k].largest(np.argsort(peaks[k])[::-1][:TRIED])
        best = found if best is None or found.value > best.value else best
    return best


@dataclass(frozen=True, eq=False)
class _Piece:
    """A piece of an element between two loads: the one at its begin is not in it, the one at its end is."""

    chain: BeamChain
    number: int
    rows: ElementRows
    span: tuple[float, float]
    planar: bool

    def stresses(self, xi: Array, rows: ElementRows) -> Array:
        """At stations in rows; what is not finite is no stress."""
        forces = sections_of_element(self.chain.parts_of(self.number), rows, xi)
        first = xi <= self.span[0]
        if self.span[0] > 0 and first.any():
            forces[:, first] = sections_of_element(self.chain.parts_of(self.number), rows, xi[first], behind=True)
        return np.nan_to_num(stresses(self.chain, forces, self.planar), nan=0.0, posinf=0.0)

    @property
    def count(self) -> int:
        """Stations that show about how large its stresses are."""
        return max(FEWEST, (STATIONS - 1) // len(self.chain.links) + 1, self.chain.parts_of(self.number).stations)

    def peaks(self) -> Array:
        """About the largest of each row."""
        xi, rows = np.linspace(*self.span, self.count), len(self.rows.a)
        parts = [self.rows.part(slice(first, first + TOGETHER)) for first in range(0, rows, TOGETHER)]
        return np.concatenate([_tops(self.stresses(xi, part)) for part in parts]) if parts else np.zeros(0)

    def largest(self, tried: Array) -> LargestStress:
        """Of these rows, to rounding."""
        xi = np.linspace(*self.span, FINE)
        found = self.stresses(xi, self.rows.part(tried))
        best = int(found.max(axis=1).argmax())
        row, where = int(tried[best]), int(found[best].argmax())
        place, value, own = float(xi[where]), float(found[best, where]), self.rows.part(slice(row, row + 1))
        for _ in range(ZOOMS):
            xi = np.linspace(xi[max(where - 1, 0)], xi[min(where + 1, len(xi) - 1)], ZOOM)
            near = self.stresses(xi, own)[0]
            where = int(near.argmax())
            if near[where] > value * (1 + ROUNDING):  # an end is named as it is
                place, value = float(xi[where]), float(near[where])
        return LargestStress(self.chain.name, self.chain.share(self.number, place), row, value)


def _peaks_of(pieces: Sequence[_Piece]) -> list[Array]:
    """About the largest of each row, of each piece; elements of a beam without loads on them are one table of rows."""
    found: list[Array] = [np.zeros(0)] * len(pieces)
    alike: dict[tuple[int, ...], list[int]] = {}
    for k, piece in enumerate(pieces):
        own = id(piece.chain.parts_of(piece.number)), id(piece.chain.parts), piece.count
        alike.setdefault(own if not piece.rows.loads else (*own, k), []).append(k)
    for group in alike.values():
        first = pieces[group[0]]
        together = first.rows if len(group) == 1 else joined([pieces[k].rows for k in group])
        peaks = replace(first, rows=together).peaks()
        for k, own_peaks in zip(group, np.split(peaks, len(group)), strict=True):
            found[k] = own_peaks
    return found


def _tops(found: Array) -> Array:
    """Of each row the largest at a station, or on the parabola through it and its neighbours."""
    top = found.max(axis=1)
    a, b, c = found[:, :-2], found[:, 1:-1], found[:, 2:]
    bend = a - 2 * b + c
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = np.where((bend < 0) & (np.abs(a - c) <= -2 * bend), b - (a - c) ** 2 / (8 * bend), top[:, None])
    return np.maximum(top, raised.max(axis=1))


def _spans(rows: ElementRows) -> list[tuple[float, float]]:
    """Pieces of an element between which loads make steps."""
    ends = sorted({0.0, 1.0, *(xi for xi, _ in rows.loads)})
    return list(pairwise(ends))
