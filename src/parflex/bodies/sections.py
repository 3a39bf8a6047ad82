"""Cross-sections of beams, their fibres, and the mass beyond a section.

Shear coefficients are those of Cowper's theory for Poisson's ratio 0: 5/6 for a rectangle, 6/7 for a circle, 1/2 for a
thin tube, 5/12 for a thin square box. Other ratios change them by a few percent. [G. R. Cowper, "The shear coefficient
in Timoshenko's beam theory", Journal of Applied Mechanics 33, 1966]

Shape functions are polynomials in xi = x / L, so the integrals of the mass from xi to the tip are polynomials too:
nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parflex.bodies.beam import (
    LABELS,
    PLANAR,
    Material,
    Section,
    centre_line,
    shape_coefficients,
    shear_ratios,
    tip_stiffness,
)
from parflex.records import Record
from parflex.spatial.batched import larger, smaller
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import rotation_about

Array = np.ndarray

TERMS = 40  # of the series for the torsion of a rectangle: exact to rounding

POWERS = np.add.outer(np.arange(4), np.arange(4))[:, :, None] == np.arange(7)  # of products of two cubics


def rectangle(y: float, z: float) -> Section:
    """Sides along y and z; the torsion constant by Saint-Venant's series."""
    long, short = larger(y, z), smaller(y, z)
    n = np.arange(1, 2 * TERMS, 2)
    series = np.sum(np.tanh(n * np.pi * (long / short) / 2) / n**5)
    J = long * short**3 / 3 * (1 - 192 * short / (np.pi**5 * long) * series)
    return Section(y * z, y * z**3 / 12, z * y**3 / 12, J, y * z * (y**2 + z**2) / 12, 5 / 6, 5 / 6)


def circle(diameter: float) -> Section:
    """A solid round bar."""
    return tube(diameter, diameter / 2)


def tube(diameter: float, thickness: float) -> Section:
    """A round tube of outer diameter and wall thickness."""
    outer, inner = diameter / 2, diameter / 2 - thickness
    polar = np.pi * (outer**4 - inner**4) / 2
    square = (inner / outer) ** 2
    k = 6 * (1 + square) ** 2 / (7 * (1 + square) ** 2 + 20 * square)
    return Section(np.pi * (outer**2 - inner**2), polar / 2, polar / 2, polar, polar, k, k)


def box(y: float, z: float, thickness: float) -> Section:
    """A hollow rectangle of outer sides along y and z, with the same wall all around.

    Area and moments are exact. The torsion constant is Bredt's for a thin closed wall: 4 t area^2 / length, of the
    middle line of the wall. The shear coefficients are those of a thin wall on that line too.
    """
    inner_y, inner_z = y - 2 * thickness, z - 2 * thickness
    Iy, Iz = (y * z**3 - inner_y * inner_z**3) / 12, (z * y**3 - inner_z * inner_y**3) / 12
    a, b = y - thickness, z - thickness  # sides of the middle line
    J = 2 * (a * b) ** 2 * thickness / (a + b)
    return Section(y * z - inner_y * inner_z, Iy, Iz, J, Iy + Iz, _thin_box_shear(b / a), _thin_box_shear(a / b))


def _thin_box_shear(n: float) -> float:
    """Shear coefficient of a thin box whose walls across the force are n times as long as those along it."""
    return 10 * (1 + 3 * n) ** 2 / (12 + 72 * n + 150 * n**2 + 120 * n**3 + 30 * n**4)


def numbers(
    A: float, Iy: float, Iz: float, J: float, Ip: float | None = None, ky: float | None = None, kz: float | None = None
) -> Section:
    """Any section by its area and moments; the shear coefficients of a beam without shear are not used."""
    return Section(A, Iy, Iz, J, Iy + Iz if Ip is None else Ip, ky or 1.0, kz or 1.0)


@dataclass(frozen=True)
class Fibres:
    """Where the fibres farthest from the centre line are: at the corners (y, z) and their mirror images, or all around.

    All known shapes are the same on both sides of y and z, so that the largest tension and the largest compression of
    bending are equal.
    """

    y: float
    z: float
    round: bool = False

    def stress(self, section: Section, N: Array, My: Array, Mz: Array) -> Array:
        """The largest normal stress in size: of the normal force, and of bending at the farthest fibre, theory (54)."""
        if self.round:
            return np.abs(N) / section.A + _length(My, Mz) * self.y / section.Iy
        return np.abs(N) / section.A + np.abs(My) * self.z / section.Iy + np.abs(Mz) * self.y / section.Iz


def _length(y: Array, z: Array) -> Array:
    """Length of the vector of both; entries of arrays of numbers with slopes may be plain."""
    first, second = np.broadcast_arrays(y, z)
    if object not in (first.dtype, second.dtype):
        return np.hypot(first, second)
    lengths = np.empty(first.shape, dtype=object)
    for index in np.ndindex(*lengths.shape):
        square = first[index] * first[index] + second[index] * second[index]
        lengths[index] = np.sqrt(square) if square else abs(first[index]) + abs(second[index])
    return lengths


def fibres_of(shape: str, sizes: dict[str, float]) -> Fibres | None:
    """The fibres of a shape of a robot file; a section given by numbers has none that are known."""
    if shape in ("circle", "tube"):
        return Fibres(sizes["diameter"] / 2, sizes["diameter"] / 2, round=True)
    return Fibres(sizes["y"] / 2, sizes["z"] / 2) if shape in ("rectangle", "box") else None


SHAPES: dict[str, Callable[..., Section]] = {  # words of a robot file; the arguments are the keys of its table
    "rectangle": rectangle,
    "circle": circle,
    "tube": tube,
    "box": box,
    "numbers": numbers,
}


@dataclass(frozen=True, eq=False, repr=False)
class ElementSections(Record):
    """One element of a beam, cut at any of its sections; coordinates and axes are those of its body."""

    length: float
    material: Material
    section: Section
    planar: bool = False
    rotary_inertia: bool = False
    shear: bool = False
    roll: float = 0.0
    fibres: Fibres | None = None  # None: the section is given by numbers

    @property
    def stations(self) -> int:
        """Places that show every wave of its shapes."""
        return 2

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates of the tip that move it."""
        return tuple(LABELS[k] for k in self._used)

    @property
    def _used(self) -> tuple[int, ...]:
        return PLANAR if self.planar else tuple(range(6))

    @cached_property
    def _turn(self) -> Array:
        """From the axes of the section at rest to those of the element."""
        return rotation_about(0, self.roll)

    @cached_property
    def _densities(self) -> tuple[Array, Array]:
        """Of first and second moments of the fields, what stands at each power of xi, in axes of the section."""
        section, rho = self.section, self.material.density
        weights = rho * np.array([section.A, section.Iz, section.Iy]) * [1.0, self.rotary_inertia, self.rotary_inertia]
        C = shape_coefficients(self.length, self.material, section, self.shear)
        S = weights[0] * self.length * C[0]
        G = self.length * np.einsum("p,paik,pbjl,kln->abijn", weights, C, C, POWERS)
        if not self.planar:  # sections that turn about the beam but are no moving points, as the body has them
            included_polar = section.Iy + section.Iz if self.rotary_inertia else 0.0
            j = self.length * rho * (section.Ip - included_polar)
            G = G.astype(scalar_type(G, j))
            G[0, 0, :, :, 0] += j / 2 * np.diag([-1.0, 1.0, 1.0])
            turn = j / 2 * np.array([[0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
            G[0, 4, :, :, 1] += turn
            G[4, 0, :, :, 1] += turn.T
        return S, G

    def beyond(self, xi: Array) -> tuple[Array, Array, Array]:
        """Mass, S and G of what lies beyond each xi: n, n x fields x 3, n x fields x fields x 3 x 3."""
        S, G = self._densities
        first, second = (_from(xi, density.shape[-1]) for density in (S, G))
        m = self.material.density * self.section.A * self.length * (1 - xi)
        S, G = np.einsum("aik,nk->nai", S, first), np.einsum("abijk,nk->nabij", G, second)
        R = self._turn
        mix: Array = np.eye(7, dtype=scalar_type(R))
        mix[1:4, 1:4] = mix[4:, 4:] = R
        if self.roll:
            S, G = mix @ S @ R.T, np.einsum("ai,bj,nijkl,mk,ol->nabmo", mix, mix, G, R, R, optimize=True)
        fields = [0, *(k + 1 for k in self._used)]
        return m, S[:, fields], G[:, fields][:, :, fields]

    def shapes(self, xi: Array) -> tuple[Array, Array, Array]:
        """Of the sections at each xi: place at rest, and what coordinates displace and turn them by."""
        Phi_d, Phi_r = centre_line(self.length, self.material, self.section, self.shear, self.roll, xi)
        used = list(self._used)
        return np.outer(xi * self.length, [1.0, 0.0, 0.0]), Phi_d[:, :, used], Phi_r[:, :, used]

    def clamped_compliance(self, xi: float, at: float) -> Array:
        """Motion (displacement, turn) of the section at `at` by a unit wrench at `xi`, both ends held: 6 x 6.

        Exact in statics: the parts of the element on both sides of the load have the shapes of elements.
        """
        first, second = xi * self.length, (1 - xi) * self.length
        mirrored = np.diag([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])  # the root of an element is its tip, seen from behind
        K = self._tip_stiffness(first) + mirrored @ self._tip_stiffness(second) @ mirrored
        C: Array = np.zeros((6, 6), dtype=K.dtype)
        for k in {0, 3} & set(self._used):
            C[k, k] = 1 / K[k, k]
        for k, n in [pair for pair in ((1, 5), (2, 4)) if set(pair) <= set(self._used)]:
            size = K[k, k] * K[n, n] - K[k, n] * K[k, n]
            C[k, k], C[n, n], C[k, n] = K[n, n] / size, K[k, k] / size, -K[k, n] / size
            C[n, k] = C[k, n]
        if at != xi:
            C = (self._before(first, at / xi) if at < xi else self._behind(second, (at - xi) / (1 - xi))) @ C
        T = np.kron(np.eye(2), self._turn)
        return T @ C @ T.T if self.roll else C

    @property
    def shear_ratios(self) -> tuple[Any, Any]:
        """Ps of bending along y and along z of the section; zero where shear is left out."""
        return shear_ratios(self.length, self.material, self.section) if self.shear else (0.0, 0.0)

    def _tip_stiffness(self, length: Any) -> Array:
        return tip_stiffness(length, self.material, self.section, self.shear)

    def _before(self, length: Any, xi: float) -> Array:
        """Motion of a section of a part whose root is held by that of its tip."""
        Phi = centre_line(length, self.material, self.section, self.shear, 0.0, np.array([xi]))
        return np.concatenate([Phi[0][0], Phi[1][0]])

    def _behind(self, length: Any, xi: float) -> Array:
        """Motion of a section of a part whose tip is held by that of its root."""
        return _carried(xi * length) - self._before(length, xi) @ _carried(length)

    def in_section(self, vectors: Array) -> Array:
        """Vectors in axes of the element, in those along which the section has its sides."""
        return vectors @ self._turn


def _from(xi: Array, powers: int) -> Array:
    """Integrals of the powers of xi from there to 1."""
    k = np.arange(1, powers + 1)
    return (1 - xi[:, None] ** k) / k


def _carried(x: Any) -> Array:
    """Motion of a place at x along the beam by that of its root."""
    motion: Array = np.eye(6).astype(scalar_type(x))
    motion[1, 5], motion[2, 4] = x, -x
    return motion
