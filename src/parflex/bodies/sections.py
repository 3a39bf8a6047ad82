"""Compute the properties of beam cross-sections and their fibres.

Shear coefficients are those of Cowper's theory for Poisson's ratio 0: 5/6 for a rectangle, 6/7 for a circle, 1/2 for a
thin tube, 5/12 for a thin square box. Other ratios change them by a few percent. [G. R. Cowper, "The shear coefficient
in Timoshenko's beam theory", Journal of Applied Mechanics 33, 1966]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parflex.bodies.beam import Section
from parflex.spatial.batched import larger, smaller

Array = np.ndarray
TERMS = 40  # terms of the torsion series of a rectangle, exact to rounding


def rectangle(y: float, z: float) -> Section:
    """Return the section with sides y and z; the torsion constant by Saint-Venant's series."""
    long, short = larger(y, z), smaller(y, z)
    n = np.arange(1, 2 * TERMS, 2)
    series = np.sum(np.tanh(n * np.pi * (long / short) / 2) / n**5)
    J = long * short**3 / 3 * (1 - 192 * short / (np.pi**5 * long) * series)
    return Section(y * z, y * z**3 / 12, z * y**3 / 12, J, y * z * (y**2 + z**2) / 12, 5 / 6, 5 / 6)


def circle(diameter: float) -> Section:
    """Return a solid round section."""
    return tube(diameter, diameter / 2)


def tube(diameter: float, thickness: float) -> Section:
    """Return a round tube of outer diameter and wall thickness."""
    outer, inner = diameter / 2, diameter / 2 - thickness
    polar = np.pi * (outer**4 - inner**4) / 2
    square = (inner / outer) ** 2
    k = 6 * (1 + square) ** 2 / (7 * (1 + square) ** 2 + 20 * square)
    return Section(np.pi * (outer**2 - inner**2), polar / 2, polar / 2, polar, polar, k, k)


def box(y: float, z: float, thickness: float) -> Section:
    """Return a hollow rectangle of outer sides y and z with equal walls.

    Area and moments are exact. The torsion constant is Bredt's for a thin closed wall: 4 t area^2 / length, of the
    middle line of the wall. The shear coefficients are those of a thin wall on that line too.
    """
    inner_y, inner_z = y - 2 * thickness, z - 2 * thickness
    Iy, Iz = (y * z**3 - inner_y * inner_z**3) / 12, (z * y**3 - inner_z * inner_y**3) / 12
    a, b = y - thickness, z - thickness  # sides of the middle line
    J = 2 * (a * b) ** 2 * thickness / (a + b)
    return Section(y * z - inner_y * inner_z, Iy, Iz, J, Iy + Iz, _thin_box_shear(b / a), _thin_box_shear(a / b))


def _thin_box_shear(n: float) -> float:
    """Return the shear coefficient of a thin box, n the ratio of its walls across and along the force."""
    return 10 * (1 + 3 * n) ** 2 / (12 + 72 * n + 150 * n**2 + 120 * n**3 + 30 * n**4)


def numbers(
    A: float, Iy: float, Iz: float, J: float, Ip: float | None = None, ky: float | None = None, kz: float | None = None
) -> Section:
    """Return a section from its area and moments; beams without shear do not use shear coefficients."""
    return Section(A, Iy, Iz, J, Iy + Iz if Ip is None else Ip, ky or 1.0, kz or 1.0)


@dataclass(frozen=True)
class Fibres:
    """Places of the fibres farthest from the centre line: the corners (y, z) and their mirror images, or a circle.

    All shapes are symmetric about y and z, so the largest tension and compression of bending are equal.
    """

    y: float
    z: float
    round: bool = False

    def stress(self, section: Section, N: Array, My: Array, Mz: Array) -> Array:
        """Return the largest magnitude of normal stress from normal force and bending, theory (54)."""
        if self.round:
            return np.abs(N) / section.A + _length(My, Mz) * self.y / section.Iy
        return np.abs(N) / section.A + np.abs(My) * self.z / section.Iy + np.abs(Mz) * self.y / section.Iz


def _length(y: Array, z: Array) -> Array:
    """Return the length of a vector; entries of dual arrays may be plain numbers."""
    first, second = np.broadcast_arrays(y, z)
    if object not in (first.dtype, second.dtype):
        return np.hypot(first, second)
    lengths = np.empty(first.shape, dtype=object)
    for index in np.ndindex(*lengths.shape):
        square = first[index] * first[index] + second[index] * second[index]
        lengths[index] = np.sqrt(square) if square else abs(first[index]) + abs(second[index])
    return lengths


def fibres_of(shape: str, sizes: dict[str, float]) -> Fibres | None:
    """Return the fibres of a shape of a robot file, or None for a section by numbers."""
    if shape in ("circle", "tube"):
        return Fibres(sizes["diameter"] / 2, sizes["diameter"] / 2, round=True)
    return Fibres(sizes["y"] / 2, sizes["z"] / 2) if shape in ("rectangle", "box") else None


# words of a robot file; the arguments are the keys of its table
SHAPES: dict[str, Callable[..., Section]] = {shape.__name__: shape for shape in (rectangle, circle, tube, box, numbers)}
