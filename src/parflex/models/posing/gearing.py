"""Rotors of gears: joints that turn beside the mechanism, and the units in which they move the links that they drive.

How far a joint moves says nothing where a gear turns it: behind 100 : 1 a motor makes sixteen turns while its arm moves
by a radian. So what compares motions of joints, as distances to singular poses and random states do, measures a rotor
at the other side of its gear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.closure.loops import Closures
from parflex.records import Record
from parflex.spatial.varied import nominal
from parflex.tree import Tree

Array = np.ndarray
TOLD = 1e-9  # of singular values of couplings without units: what is smaller leaves a rotor free


@dataclass(frozen=True, eq=False, repr=False)
class Gearing(Record):
    """Units of all rates, those of rotors behind their gears, and which rates are those of rotors.

    Attributes
    ----------
    units : Array
        Of all rates: without gears those of the tree.
    rotors : Array
        Whether a rate follows, as that of a rotor, from those of the mechanism.
    """

    units: Array
    rotors: Array

    @property
    def any(self) -> bool:
        """Whether there are rotors."""
        return bool(self.rotors.any())

    def without_rotors(self, J: Array, columns: Array) -> Array:
        """Rows of closures without units (rows x columns) on what they hold beside rotors, these in their units."""
        own = self.rotors[columns]
        if not own.any():
            return J
        U, sizes, _ = np.linalg.svd(J[:, own])
        return np.asarray(U[:, int(np.sum(sizes > TOLD * sizes.max(initial=0.0))) :].T @ J[:, ~own])


def gearing(tree: Tree, closures: Closures) -> Gearing:
    """Rotors of a robot: joints of couplings whose links carry nothing, close no loop and are not its end."""
    couplings = [row for row in closures.constraints if isinstance(row, Coupling)]
    units, rotors = tree.rate_units.copy(), np.zeros(tree.n, dtype=bool)
    if not couplings:
        return Gearing(units, rotors)
    busy = _busy(tree, closures)
    for part in _parts(couplings):
        joints = {k: number for row in part for k, number in zip(row.rates, row.numbers, strict=True)}
        arms = {k for k, number in joints.items() if number in busy}
        if not arms:  # the link with mass, or of several the slowest
            heavy = {k for k, number in joints.items() if tree.links[number].heavy} or set(joints)
            first = next(iter(heavy))
            speeds = _followed(part, {first: float(units[first])})
            arms = {min(heavy, key=lambda k: speeds.get(k, np.inf) / units[k])}
        found = _followed(part, {k: float(units[k]) for k in arms})
        for k in found.keys() - arms:
            units[k] = found[k]
        own = sorted(found.keys() - arms)
        rows = np.zeros((len(part), tree.n))
        for i, row in enumerate(part):
            rows[i, list(row.rates)] = _sizes(row) * units[list(row.rates)]
            rows[i] /= np.abs(rows[i]).max()
        sizes = np.linalg.svd(rows[:, own], compute_uv=False) if own else np.zeros(0)
        if len(sizes) == len(own) and (sizes > TOLD).all():  # otherwise rotors move while the arms rest
            rotors[own] = True
    return Gearing(units, rotors)


def _sizes(row: Coupling) -> Array:
    return np.array([nominal(c) for c in row.coefficients], dtype=float)


def _busy(tree: Tree, closures: Closures) -> set[int]:
    """Links that others are mounted on, that loops, rods, springs or flexible bodies have, or that are the end."""
    found = {link.parent for link in tree.links} | {tree.place(tree.end_effector).link}
    found |= {j for j, link in enumerate(tree.links) if link.body.size or not link.joint.one_axis}
    for row in closures.rows:
        found |= set() if isinstance(row, Coupling) else set(row.ends)
    for element in tree.elements:
        found |= {element.first.link, element.second.link}
    return found | {number for spring in tree.springs for number in spring.numbers}


def _parts(couplings: Sequence[Coupling]) -> list[list[Coupling]]:
    """Couplings that share joints, together."""
    parts: list[tuple[set[int], list[Coupling]]] = []
    for row in couplings:
        joints, rows = set(row.rates), [row]
        for part in [part for part in parts if part[0] & joints]:
            parts.remove(part)
            joints, rows = joints | part[0], [*part[1], *rows]
        parts.append((joints, rows))
    return [rows for _, rows in parts]


def _followed(part: Sequence[Coupling], known: dict[int, float]) -> dict[int, float]:
    """How far joints move, from those that are known on: as far as one of these moves them, in the tightest row."""
    found = dict(known)
    while True:
        more: dict[int, float] = {}
        for row in part:
            sizes = dict(zip(row.rates, np.abs(_sizes(row)), strict=True))
            way = max((sizes[k] * found[k] for k in sizes if k in found), default=0.0)
            for k in sizes:
                if way and sizes[k] and k not in found:
                    more[k] = min(more.get(k, np.inf), way / sizes[k])
        if not more:
            return found
        found |= more
