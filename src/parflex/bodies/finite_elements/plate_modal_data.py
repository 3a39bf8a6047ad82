"""Modes of a free plate, as modal data: attachments first, then points of quadrature with their masses."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import eigsh, splu

from parflex.bodies.finite_elements import kirchhoff, mindlin
from parflex.bodies.finite_elements.mesh import graded, quadrature, triangulate
from parflex.bodies.finite_elements.nodal import settled
from parflex.bodies.finite_elements.plate import Discrete, Plate
from parflex.bodies.modal import ModalData, normalised
from parflex.errors import InputError

Array = np.ndarray
RIGID = 3  # motions of a plate that is rigid in its plane
PAIR = 1  # one more mode is computed, so that the last one is turned by rule if it is the first of a pair
TRIANGLES = {"mindlin": 1536, "kirchhoff": 96}  # at most, unless refinements are asked for: frequencies to 1e-4 or so
SAMPLES = 2.4  # triangles with nodes for each mode, at least
SHARPENING = 3  # steps of inverse iteration after the eigenvalue solver, whose vectors have ten digits
SAMPLED = 1e-2  # sums over the nodes may miss the integrals by so much before they are corrected


def discretise(plate: Plate, theory: str = "mindlin", refinements: int | None = None) -> Discrete:
    """Finite elements of a plate. The theory is `mindlin` (with shear) or `kirchhoff` (thin)."""
    if theory not in TRIANGLES:
        raise InputError(f"'{theory}' is not a plate theory", key="theory", value=theory, hint="mindlin or kirchhoff")
    mesh = triangulate(plate.polygon, plate.points)
    rounds = max(1, int(np.log2(TRIANGLES[theory] / mesh.t.shape[1]) / 2)) if refinements is None else refinements
    if theory == "kirchhoff":
        return kirchhoff.discretise(plate, mesh.refined(rounds))
    return mindlin.discretise(plate, graded(mesh, rounds, plate.thickness))


def free_modes(discrete: Discrete, count: int) -> tuple[Array, Array]:
    """Stiffnesses (squares of angular frequencies) and vectors of the first elastic modes of a free plate; mass 1."""
    M, K, plate = discrete.M, discrete.K, discrete.plate
    if not 1 <= count <= M.shape[0] // 4:
        raise InputError(
            f"{count} modes cannot be found on this mesh", key="modes", value=count, hint="refine the mesh"
        )
    span = np.ptp(plate.polygon, axis=0).max()
    # a shift of the size of the first mode, on the side where nothing is: K - sigma M is positive definite
    sigma = -100 * plate.bending_stiffness / (plate.density * plate.thickness * span**4)
    start = np.random.default_rng(0).normal(size=M.shape[0])
    values, vectors = _sharpened(M, K, sigma, eigsh(K, count + RIGID, M, sigma=sigma, which="LM", v0=start)[1])
    if not np.abs(values[:RIGID]).max() < 1e-6 * values[RIGID]:
        raise InputError(
            "rounding errors hide the rigid-body motions of the plate",
            key="theory",
            hint="use 'kirchhoff' for very thin plates, 'mindlin' for attachments close to each other",
        )
    return values[RIGID:], vectors[:, RIGID:]


def _sharpened(M: Any, K: Any, sigma: float, vectors: Array) -> tuple[Array, Array]:
    """Eigenvalues in their order and vectors after inverse iteration: what symmetry makes zero is zero to rounding."""
    solver = splu(csc_matrix(K - sigma * M))
    for _ in range(SHARPENING):
        vectors = solver.solve(M @ vectors)
        values, turn = eigh(vectors.T @ (K @ vectors), vectors.T @ (M @ vectors))
        vectors = vectors @ turn
    return values, vectors


def plate_modes(
    plate: Plate,
    modes: int = 10,
    theory: str = "mindlin",
    refinements: int | None = None,
    sampling: int | None = None,
    degree: int = 8,
    damping: float = 0.0,
    title: str = "",
    source: str = "",
) -> ModalData:
    """Modal data of a free plate.

    The nodes are the attachments, without mass, and the points of a quadrature of the given degree on the coarse mesh
    refined `sampling` times, by default as often as the number of modes needs. Sums over them give mass and inertia
    exactly; the modes are made exactly orthonormal and free of momentum.
    """
    discrete = discretise(plate, theory, refinements)
    stiffnesses, vectors = free_modes(discrete, modes + PAIR)
    mesh = triangulate(plate.polygon, plate.points)
    if sampling is None:
        sampling = max(0, int(np.ceil(np.log2(SAMPLES * modes / mesh.t.shape[1]) / 2 - 1e-9)))
    points, weights = _points(mesh.refined(sampling), degree)
    masses = np.concatenate([np.zeros(len(plate.points)), plate.density * plate.thickness * weights])
    both = [
        np.concatenate([(a @ vectors), (b @ vectors)]).T
        for a, b in zip(discrete.at_corners(plate.points), discrete.at(points), strict=True)
    ]
    shapes = np.zeros((len(stiffnesses), len(masses), 6))
    shapes[:, :, 2], shapes[:, :, 3], shapes[:, :, 4] = both[0], both[2], -both[1]
    data = ModalData(
        nodes=np.column_stack([np.concatenate([plate.points, points]), np.zeros(len(masses))]),
        masses=masses,
        shapes=shapes,
        modal_stiffnesses=stiffnesses,
        modal_masses=np.ones(len(stiffnesses)),
        damping_ratios=np.full(len(stiffnesses), damping),
        interface=tuple(plate.attachments),
        second_moments=masses[:, None, None] * np.diag([0, 0, plate.thickness**2 / 12]),
        thickness=plate.thickness,
        title=title,
        source=source,
    )
    return normalised(settled(data, free=True, limit=SAMPLED)[0]).with_modes(modes)


def _points(mesh: Any, degree: int) -> tuple[Array, Array]:
    """Points (n x 2) and weights that integrate polynomials of the degree over the triangles exactly."""
    X, W = quadrature(degree)
    x = mesh.mapping().F(X)  # 2 x triangles x points
    return x.reshape(2, -1).T, (np.abs(mesh.mapping().detDF(X)) * W).ravel()
