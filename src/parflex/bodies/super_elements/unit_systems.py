"""Units of reduced matrices, and a check of those that the robot file says.

Two numbers of a body have bounds that every material keeps. Its mass, over the volume of the box that has its second
moments, is at most 9/8 of its density: an ellipsoid is the most compact body. The speed c with c^2 = x^T K x / m, x the
motion of interfaces under a uniform unit strain, is at most that of waves: static shapes store least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.bodies.super_elements.reduced_matrices import ReducedMatrices
from parflex.records import Record

Array = np.ndarray
DENSEST = 25_500.0  # kg/m3: osmium as an ellipsoid, 9/8 of 22 600
FASTEST_WAVE = 50_000.0  # m/s: diamond has 18 000; rigid regions around nodes shorten what is strained
THIN = 1e-3  # kg/m3, mass over the cube of the radius of gyration: a thousandth of air
FLAT = 1e-6  # of the longest side: a box is not thinner


@dataclass(frozen=True, eq=False, repr=False)
class UnitSystem(Record):
    """Units of mass, length, force and time in kg, m, N and s, and what they are called."""

    mass: float
    length: float
    force: float
    time: float
    said: str


UNITS = {
    "m": UnitSystem(1.0, 1.0, 1.0, 1.0, "kg, m, N"),
    "mm": UnitSystem(1e3, 1e-3, 1.0, 1.0, "t, mm, N"),
    "kg-mm-N": UnitSystem(1.0, 1e-3, 1.0, 1.0, "kg, mm, N"),
    "kg-mm-ms": UnitSystem(1.0, 1e-3, 1e3, 1e-3, "kg, mm, ms, kN"),
    "kg-mm-s": UnitSystem(1.0, 1e-3, 1e-3, 1.0, "kg, mm, s, mN"),
    "in": UnitSystem(175.126835246, 0.0254, 4.4482216152605, 1.0, "lbf s2/in, in, lbf"),
}


def in_metres(data: ReducedMatrices, units: str) -> ReducedMatrices:
    """The same body in kg, m and N; modal coordinates keep their numbers."""
    system = UNITS[units]
    if units == "m":
        return data
    t = np.ones(data.size)
    for node in data.nodes:
        t[list(node.rows[:3])] /= system.length
    whole = np.outer(t, t)
    energy = system.force * system.length
    KG = data.geometric
    if KG is not None:
        KG = energy * KG * whole * (t[:, None, None] if KG.ndim == 3 else 1.0)
    nodes = tuple(
        node if node.position is None else type(node)(node.number, node.rows, node.position * system.length)
        for node in data.nodes
    )
    return ReducedMatrices(
        M=system.mass * system.length**2 * data.M * whole,
        K=energy * data.K * whole,
        D=None if data.D is None else energy * system.time * data.D * whole,
        nodes=nodes,
        geometric=KG,
        file=data.file,
        units=units,
    )


def unit_doubts(
    data: ReducedMatrices, mass: float, centre: Array, inertia: Array, positions: Array, lowest: float
) -> list[str]:
    """Report a density or a wave speed that no material has in the units of the robot file.

    `lowest` is its lowest elastic frequency in Hz: by Rayleigh's quotient of a uniform strain that of waves over the
    radius of gyration along its longest axis, at most.
    """
    squares, axes = np.linalg.eigh((np.trace(inertia) / 2 * np.eye(3) - inertia) / mass)
    radius = np.sqrt(max(float(np.trace(inertia)), 0.0) / (2 * mass))
    if radius == 0:
        return []
    sides = np.sqrt(12 * np.maximum(squares, (FLAT * radius) ** 2))
    density, speed = mass / float(np.prod(sides)), _speed(data, mass, (positions - centre) @ axes, axes)
    speed = max(speed, 2 * np.pi * lowest * sides[-1] / np.sqrt(12)) if np.isfinite(lowest) else speed
    box = " x ".join(f"{side:.3g}" for side in sides[::-1])
    if mass / radius**3 < THIN:
        what = f"a mass of {mass:.3g} kg within a radius of gyration of {radius:.3g} m is thinner than air"
    elif density > DENSEST and squares.min() > 0:
        what = (
            f"a mass of {mass:.3g} kg in a box of {box} m (that of its moments of inertia) is {density:.2g} kg/m3, "
            "more than any material has"
        )
    elif speed > FASTEST_WAVE:
        what = (
            f"a mass of {mass:.3g} kg in a box of {box} m is so light for its stiffness that waves would run at "
            f"{speed:.2g} m/s (steel: 6000)"
        )
    else:
        return []
    return [
        f"{what}: the matrices are read in {UNITS[data.units].said}; check 'units' ({', '.join(UNITS)}) and the order "
        "of the rows"
    ]


def _speed(data: ReducedMatrices, mass: float, places: Array, axes: Array) -> float:
    """The largest speed of waves that the stiffness between interfaces asks for; 0 where they coincide."""
    squares = [0.0]
    for k in range(3):
        x = np.zeros(data.size)
        for node, place in zip(data.nodes, places, strict=True):
            x[list(node.rows[:3])] = place[k] * axes[:, k]
        squares.append(float(x @ data.K @ x) / mass)
    return float(np.sqrt(max(squares)))
