"""Elements of a beam in one line, to first order: what their ends do, and integrals over all of them at once.

An element moves with its first end, and by its shapes times what its second end does beyond that. Its points therefore
move by combinations of the functions 1, r0 and the shapes, whose products are the integrals of one element.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.bodies.beam import without_torsion
from parflex.bodies.elastic_body import ElasticBody
from parflex.records import Record
from parflex.spatial.rotations import hat

Array = np.ndarray
Y, Z, RY, RZ = 1, 2, 4, 5  # of (x, y, z, rx, ry, rz)


@dataclass(frozen=True, eq=False, repr=False)
class ElementChain(Record):
    """A number of alike elements, each fixed to the end of the one before."""

    element: ElasticBody
    count: int

    @property
    def step(self) -> float:
        """Length of an element."""
        return float(self.element.nodes["tip"].r0[0])

    @cached_property
    def components(self) -> Array:
        """6 x N: how the coordinates of an element are the motion of its end."""
        tip = self.element.nodes["tip"]
        return np.vstack([tip.Phi_d, tip.Phi_r])

    @cached_property
    def products(self) -> Array:
        """Integrals of the products of 1, r0 and the shapes of an element, each by its x, y, z."""
        points = without_torsion(self.element)
        count = 3 * (points.size + 1)
        gram = np.zeros((1 + count, 1 + count))
        gram[0, 0] = points.m
        gram[0, 1:] = gram[1:, 0] = points.S.ravel()
        gram[1:, 1:] = points.G.transpose(0, 2, 1, 3).reshape(count, count)
        return gram

    @property
    def spin(self) -> Array:
        """Products of the turns of sections that spin about x: with the first end, and by the coordinates."""
        spin = self.element.spin
        return np.zeros((self.element.size + 1, self.element.size + 1)) if spin is None else spin

    def bent(self, first: Array, second: Array) -> Array:
        """Coordinates of an element for motions (6 x m) of its two ends."""
        moved = np.concatenate([first[:3] - hat(np.array([self.step, 0.0, 0.0])) @ first[3:], first[3:]])
        return self.components.T @ (second - moved)

    def fields(self, first: Array, second: Array) -> Array:
        """The motion of the points of an element for motions of its two ends: m x 3 x functions."""
        e = self.bent(first, second)
        still = np.zeros((e.shape[1], 3, len(self.products)))
        still[:, :, 0] = first[:3].T
        still[:, :, 1:4] = [hat(turn) for turn in first[3:].T]
        still[:, :, 4:] = np.einsum("km,ij->mikj", e, np.eye(3)).reshape(len(still), 3, -1)
        return still

    def turns(self, first: Array, second: Array) -> Array:
        """How sections of an element turn about x for motions of its ends: with the first end, and by its shapes."""
        return np.vstack([first[3], self.bent(first, second)])

    def shortening(self, first: Array, second: Array) -> Array:
        """M x m: int (v'^2 + w'^2) dx of one element, its slopes measured from the line of the chain, theory (37)."""
        e = self.bent(first, second)
        whole = self.components @ e
        H = e.T @ self.element.strains[0].H @ e
        for turn, along in ((first[RZ], whole[Y]), (-first[RY], whole[Z])):
            H = H + self.step * np.outer(turn, turn) + np.outer(turn, along) + np.outer(along, turn)
        return H

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Motions of the two ends of an element per unit of both: 6 x 2N each."""
        none = np.zeros_like(self.components)
        return np.hstack([self.components, none]), np.hstack([none, self.components])

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """Mass and stiffness of an element over the motions of its two ends, 2N x 2N."""
        fields, turns, e = self.fields(*self.ends), self.turns(*self.ends), self.bent(*self.ends)
        M = np.einsum("aif,fg,big->ab", fields, self.products, fields, optimize=True) + turns.T @ self.spin @ turns
        return (M + M.T) / 2, e.T @ self.element.K @ e

    def assembled(self, own: list[int]) -> tuple[Array, Array]:
        """Mass and stiffness of all nodes, of each the coordinates `own`, which no other ones couple with."""
        N, count = self.element.size, len(own)
        picked = [*own, *(N + k for k in own)]
        size = (self.count + 1) * count
        M, K = np.zeros((2, size, size))
        for j in range(self.count):
            here = slice(j * count, (j + 2) * count)
            for whole, part in zip((M, K), self.matrices, strict=True):
                whole[here, here] += part[np.ix_(picked, picked)]
        return M, K

    def integrals(self, motions: Array) -> tuple[Array, Array, Array, Array, Array]:
        """S, G, spin, H and the coordinates' own inertia for nodal motions (nodes x 6 x N), sums over the elements."""
        count = motions.shape[2]
        S, G = np.zeros((count + 1, 3)), np.zeros((count + 1, count + 1, 3, 3))
        spin, (H, own) = np.zeros((count + 1, count + 1)), np.zeros((2, count, count))
        Mee = self.element.inertia_matrix(np.zeros(self.element.size))[6:, 6:]
        rest = np.zeros((1, 3, len(self.products)))
        rest[0, :, 1:4] = np.eye(3)
        for j in range(self.count):
            ends = motions[j], motions[j + 1]
            rest[0, 0, 0] = j * self.step
            fields = np.concatenate([rest, self.fields(*ends)])
            S += fields @ self.products[0]
            G += np.einsum("aif,fg,bjg->abij", fields, self.products, fields, optimize=True)
            turns = np.hstack([np.eye(self.element.size + 1)[:, :1], self.turns(*ends)])
            spin += turns.T @ self.spin @ turns
            e = self.bent(*ends)
            H += self.shortening(*ends)
            own += e.T @ Mee @ e
        return S, G, spin, H, own
