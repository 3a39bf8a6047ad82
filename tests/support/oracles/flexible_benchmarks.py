"""Benchmark problems with a beam: a fast slider-crank, a beam that is spun up, frequencies of one that turns.

- Slider-crank: crank 0.15 m led at 150 rad/s, steel rod 0.30 m of 8 x 8 mm, as B. Simeon's (Computing and Visualization
  in Science 1, 1998) with a physical rod; here the rod is a cable in absolute nodal coordinates.
- Spin-up: T. R. Kane, R. R. Ryan, A. K. Banerjee, Journal of Guidance, Control, and Dynamics 10 (1987) 139-151; the
  beam of 8 m with the numbers that later papers use. The same manoeuvre of another beam: J. C. Simo, L. Vu-Quoc,
  Journal of Applied Mechanics 53 (1986) 855-863.
- Frequencies: A. D. Wright et al., Journal of Applied Mechanics 49 (1982) 197-202, here by polynomials.
"""

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import eig, eigh

from support.oracles.cable import Cable, run

Array = np.ndarray

CRANK, ROD, SPEED = 0.15, 0.30, 150.0
ELASTIC_MODULUS, DENSITY, SIDE, SLIDER = 2e11, 7870.0, 0.008, 0.075552


def slider_crank(t: Array, elements: int, tolerance: float = 1e-9) -> dict[str, Array]:
    """Deflection of the middle of the rod, slider, torque, energies; starts straight and stretched, as a rigid rod."""
    area, last = SIDE**2, 4 * elements
    rod = Cable(
        ROD, elements, ELASTIC_MODULUS * area, ELASTIC_MODULUS * SIDE**4 / 12, DENSITY * area, [0, 1, last + 1],
        {last: SLIDER},
    )  # fmt: skip
    q = rod.straight((CRANK, 0.0))
    v = np.zeros((elements + 1, 4))
    turn = -CRANK * SPEED / ROD
    v[:, 1] = CRANK * SPEED * (1 - np.linspace(0, 1, elements + 1))
    v[:, 3] = turn

    def given(time: float) -> tuple[Array, Array, Array]:
        c, s = np.cos(SPEED * time), np.sin(SPEED * time)
        place, speed = CRANK * np.array([c, s]), CRANK * SPEED * np.array([-s, c])
        return np.append(place, 0.0), np.append(speed, 0.0), np.append(-(SPEED**2) * place, 0.0)

    q, v, forces = run(rod, t, q, v.ravel(), given, tolerance=tolerance)
    pin, end, middle = rod.place(q, 0.0), rod.place(q, 1.0), rod.place(q, 0.5)
    chord = (end - pin) / np.linalg.norm(end - pin, axis=1)[:, None]
    off = middle - pin
    energy = [rod.kinetic_energy(rate) + rod.elastic_energy(place) for place, rate in zip(q, v, strict=True)]
    return {
        "t": t,
        "deflection": chord[:, 0] * off[:, 1] - chord[:, 1] * off[:, 0],
        "slider": end[:, 0],
        "torque": pin[:, 0] * forces[:, 1] - pin[:, 1] * forces[:, 0],
        "energy": np.array(energy),  # of rod and slider
    }


KANE = {"length": 8.0, "axial": 6.895e10 * 7.2968e-5, "bending": 6.895e10 * 8.2181e-9, "line": 2766.67 * 7.2968e-5}
SIMO = {"length": 10.0, "axial": 2.8e7, "bending": 1.4e4, "line": 1.2}
SPIN, RISE = 6.0, 15.0


def spin(t: float) -> tuple[float, float]:
    """Angular velocity and acceleration of the hub."""
    if t >= RISE:
        return SPIN, 0.0
    phase = 2 * np.pi * t / RISE
    return SPIN / RISE * (t - RISE / (2 * np.pi) * np.sin(phase)), SPIN / RISE * (1 - np.cos(phase))


def spin_up(
    t: Array, elements: int, tolerance: float = 1e-8, method: str = "Radau", numbers: dict[str, float] | None = None
) -> dict[str, Array]:
    """Way of the tip in the axes of the hub, along the undeformed beam and across."""
    numbers = numbers or KANE
    beam = Cable(**numbers, elements=elements, held=[0, 1, 3])  # along x of the hub: x' of the root may stretch
    still = np.zeros(4 * (elements + 1))
    q, _, _ = run(beam, t, beam.straight(), still, None, spin, tolerance, method)
    tip = beam.place(q, 1.0)
    return {"t": t, "along": tip[:, 0] - numbers["length"], "across": tip[:, 1]}


def _clamped_polynomials(degree: int, x: Array) -> list[Array]:
    """`x^2 P_k(2x - 1)` with two derivatives: polynomials that leave the root at rest."""
    out: list[list[Array]] = [[], [], []]
    for k in range(degree):
        p = legendre.Legendre.basis(k, domain=[0, 1])
        values = [p(x), p.deriv(1)(x), p.deriv(2)(x)]
        out[0].append(x**2 * values[0])
        out[1].append(2 * x * values[0] + x**2 * values[1])
        out[2].append(2 * values[0] + 4 * x * values[1] + x**2 * values[2])
    return [np.array(part) for part in out]


def turning_frequencies(speed: float, plane: str, degree: int = 12) -> Array:
    """Of a cantilever on a hub in `sqrt(EI / (rho A L^4))`; "chord" is "flap" less the square of the speed."""
    x, weights = np.polynomial.legendre.leggauss(3 * degree)
    x, weights = (x + 1) / 2, weights / 2
    F, D, B = _clamped_polynomials(degree, x)
    M = (F * weights) @ F.T
    K = (B * weights) @ B.T + speed**2 * (D * weights * (1 - x**2) / 2) @ D.T
    if plane == "chord":
        K = K - speed**2 * M
    return np.sqrt(eigh(K, M, eigvals_only=True))


def stretching_frequencies(speed: float, slenderness: float, elements: int = 16) -> Array:
    """Frequencies in the plane of rotation about the stretched state; `slenderness` is `sqrt(EA L^2 / EI)`."""
    beam = Cable(1.0, elements, slenderness**2, 1.0, 1.0, [0, 1, 3])
    free, q = beam.free, beam.straight()
    turn = np.kron(np.eye(2 * (elements + 1)), np.array([[0.0, -1.0], [1.0, 0.0]]))
    for _ in range(20):
        residual = beam.elastic_forces(q) - speed**2 * beam.M @ q
        K = _tangent(beam, q) - speed**2 * beam.M
        step = np.linalg.solve(K[np.ix_(free, free)], -residual[free])
        q[free] += step
    M = beam.M[np.ix_(free, free)]
    G = 2 * speed * (beam.M @ turn)[np.ix_(free, free)]
    K = (_tangent(beam, q) - speed**2 * beam.M)[np.ix_(free, free)]
    n = len(free)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, G)]])
    roots = eig(A, right=False)
    return np.sort(roots.imag[roots.imag > 1e-9])


def _tangent(beam: Cable, q: Array) -> Array:
    """Stiffness by a complex step, exact to rounding, in one batch."""
    return beam.elastic_forces(q + 1e-30j * np.eye(len(q))).imag.T / 1e-30
