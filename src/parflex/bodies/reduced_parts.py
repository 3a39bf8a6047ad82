"""What lies beyond a section of a reduced beam: its elements behind that, and the part of the one that is cut.

The points of an element move by functions of its own ends, whose motions are known per coordinate of the whole; so the
integrals from a section to the tip are those of elements, put together as the body itself is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parflex.bodies.beam import add_spin, beam, rolled
from parflex.bodies.beam_parts import ElementParts
from parflex.bodies.element_chain import ElementChain
from parflex.bodies.reduced_link import ReducedLine
from parflex.records import Record

Array = np.ndarray
Moments = tuple[Array, Array]


@dataclass(frozen=True, eq=False, repr=False)
class ReducedParts(Record):
    """A reduced beam, cut at any of its sections; coordinates and axes are those of its body."""

    element: ElementParts  # one of its elements
    line: ReducedLine

    @property
    def stations(self) -> int:
        """Places that show every wave of its shapes."""
        return len(self.line.shapes)

    @cached_property
    def _chain(self) -> ElementChain:
        own = self.element
        body = beam(own.length, own.material, own.section, own.planar, own.rotary_inertia, own.shear)
        return ElementChain(rolled(body, own.roll) if own.roll else body, len(self.line.shapes) - 1)

    def shapes(self, xi: Array) -> tuple[Array, Array, Array]:
        """Of the sections at each xi: place at rest, and what coordinates displace and turn them by."""
        places = [self.line.at(float(s)) for s in np.asarray(xi)]
        if not places:
            count = self.line.shapes.shape[2]
            return np.zeros((0, 3)), np.zeros((0, 3, count)), np.zeros((0, 3, count))
        r0, Phi_d, Phi_r = (np.array([getattr(one, key) for one in places]) for key in ("r0", "Phi_d", "Phi_r"))
        return r0, Phi_d, Phi_r

    def beyond(self, xi: Array) -> tuple[Array, Array, Array]:
        """Mass, S and G of what lies beyond each xi: n, n x fields x 3, n x fields x fields x 3 x 3."""
        xi, count = np.asarray(xi, dtype=float), self._chain.count
        number = np.minimum((xi * count).astype(int), count - 1)
        m = self._mass * (1 - xi)
        rest = [self._element(int(j), float(s * count - j)) for j, s in zip(number, xi, strict=True)]
        fields = self.line.shapes.shape[2] + 1
        S = np.array([first + self._behind[0][j + 1] for (first, _), j in zip(rest, number, strict=True)])
        G = np.array([second + self._behind[1][j + 1] for (_, second), j in zip(rest, number, strict=True)])
        return m, S.reshape(-1, fields, 3), G.reshape(-1, fields, fields, 3, 3)

    def held_compliance(self, xi: float, at: float, stiffness: Array) -> Array:
        """Motion of the section at `at` by a unit wrench at `xi`, both ends held, that modes of such stiffness lack."""
        whole = replace(self.element, length=self.line.length).held_compliance(xi, at)
        first = self.line.shapes.shape[2] - len(stiffness)
        seen, loaded = (np.concatenate([node.Phi_d, node.Phi_r])[:, first:] for node in map(self.line.at, (at, xi)))
        return whole - (seen / stiffness) @ loaded.T

    def held_by_gravity(self, xi: float, gravity: Array, stiffness: Array) -> Array:
        """Motion of a section by gravity, both ends held, that modes of such stiffness lack."""
        whole = replace(self.element, length=self.line.length).held_by_gravity(xi, gravity)
        first, node = self.line.shapes.shape[2] - len(stiffness), self.line.at(xi)
        S = self.beyond(np.zeros(1))[1][0, 1 + first :]  # of what modes move
        return whole - np.concatenate([node.Phi_d, node.Phi_r])[:, first:] @ (S @ gravity / stiffness)

    @property
    def _mass(self) -> float:
        return float(self._chain.element.m) * self._chain.count

    @cached_property
    def _behind(self) -> Moments:
        """S and G of all elements from each one on; behind the last there is nothing."""
        whole = [self._element(j, 0.0) for j in range(self._chain.count)]
        sums = []
        for parts in zip(*whole, strict=True):
            stacked = np.array([*parts, np.zeros_like(parts[0])])
            sums.append(np.cumsum(stacked[::-1], axis=0)[::-1])
        return sums[0], sums[1]

    def _element(self, number: int, xi: float) -> Moments:
        """S and G of what lies beyond xi in one element."""
        chain, own = self._chain, self.line.shapes[number : number + 2]
        m, S, G = (part[0] for part in self._points.beyond(np.array([xi])))
        size = len(chain.products)
        gram = np.zeros((size, size))
        gram[0, 0], gram[0, 1:], gram[1:, 0] = m, S.ravel(), S.ravel()
        gram[1:, 1:] = G.transpose(0, 2, 1, 3).reshape(size - 1, size - 1)
        rest = np.zeros((1, 3, size))
        rest[0, :, 1:4], rest[0, 0, 0] = np.eye(3), number * chain.step
        fields = np.concatenate([rest, chain.fields(own[0], own[1])])
        S, G = fields @ gram[0], np.einsum("aif,fg,bjg->abij", fields, gram, fields, optimize=True)
        add_spin(G, self._spin(own, xi))
        return S, G

    @cached_property
    def _points(self) -> ElementParts:
        """The element without the inertia of sections that spin about x and are no moving points."""
        section = self.element.section
        Ip = section.Iy + section.Iz if self.element.rotary_inertia else 0.0
        own = self.element
        bare = type(section)(section.A, section.Iy, section.Iz, section.J, Ip, section.ky, section.kz)
        return ElementParts(
            own.length, own.material, bare, own.planar, own.rotary_inertia, own.shear, own.roll, own.fibres
        )

    def _spin(self, ends: Array, xi: float) -> Array:
        """Products of the turn of the root with those of coordinates, of the sections beyond xi."""
        chain, count = self._chain, self.line.shapes.shape[2]
        spin = np.zeros((count + 1, count + 1))
        j = chain.spin[0, 0]
        if j:
            first, twist = ends[0][3], (chain.components @ chain.bent(ends[0], ends[1]))[3]
            spin[0, 0] = j * (1 - xi)
            spin[0, 1:] = j * ((1 - xi) * first + (1 - xi**2) / 2 * twist)
        return spin
