"""Plates by finite elements: meshes, statics and modal data.

Meshes are those of Delaunay, or a fan, then refined regularly. Attachments become corners of triangles. The same
polygon gives the same mesh.

Kirchhoff plates omit shear. For Reissner-Mindlin plates, with shear and rotary inertia, the triangle does not lock.
Deflection w is quadratic; slopes s are quadratic plus a cubic bubble in each triangle; the shear strain is grad w - R
s. R maps the slopes to the rotated Raviart-Thomas space of second order by the moments along the edges and inside.
Since grad w lies in that space, thin plates can bend with s = grad w in the mean. This is the element MITC7 of
[Bathe1989]. On the reference triangle R is one constant matrix because covariant components keep tangential moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import eigh
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import eigsh, splu
from scipy.spatial import Delaunay

from parflex.bodies.craig_bampton import orthonormalised
from parflex.bodies.modal import ModalData, normalised, require
from parflex.errors import InputError, did_you_mean
from parflex.records import Record

Array = np.ndarray

FAN = 8  # convex polygons with at most so many sides are a fan about their centre: it keeps their symmetry

NEAR = 1e-9  # of the size of the polygon: closer points are the same point

ROUNDS = 2000  # of halved edges: far more than any polygon needs

CORNERS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # of the reference triangle

RIGID = 3  # motions of a plate that is rigid in its plane

PAIR = 1  # one more mode is computed, so that the last one is turned by rule if it is the first of a pair

TRIANGLES = {"mindlin": 1536, "kirchhoff": 96}  # at most, unless refinements are asked for: frequencies to 1e-4 or so

SAMPLES = 2.4  # triangles with nodes for each mode, at least

SHARPENING = 3  # steps of inverse iteration after the eigenvalue solver, whose vectors have ten digits

SAMPLED = 1e-2  # sums over the nodes may miss the integrals by so much before they are corrected

KIRCHHOFF_DEGREE = 10  # of what is integrated exactly: the product of two shapes

MINDLIN_DEGREE = 6  # of what is integrated exactly: the product of two bubbles


@dataclass(frozen=True, eq=False, repr=False)
class Plate(Record):
    """Corners in the plane z = 0 of the body's frame, thickness, material and attachments (name: (x, y)).

    It moves along z and turns about x and y; it is rigid in its own plane. SI units.
    """

    polygon: Any
    thickness: float
    elastic_modulus: float
    density: float
    poisson_ratio: float = 0.3
    attachments: Mapping[str, Any] = field(default_factory=dict)
    shear_coefficient: float = 5 / 6

    def __post_init__(self) -> None:
        for key in ("thickness", "elastic_modulus", "density", "shear_coefficient"):
            value, message = getattr(self, key), f"the {key.replace('_', ' ')} of a plate must be a positive number"
            require(isinstance(value, (int, float)) and 0 < value < np.inf, message, key, "give it in SI units", value)
        ratio, message = self.poisson_ratio, "Poisson's ratio lies between -1 and 0.5"
        require(-1 < ratio < 0.5, message, "poisson_ratio", "try 0.3", ratio)
        object.__setattr__(self, "polygon", checked_polygon(self.polygon))

    @property
    def bending_stiffness(self) -> float:
        """D = E h^3 / 12 (1 - nu^2)."""
        return self.elastic_modulus * self.thickness**3 / (12 * (1 - self.poisson_ratio**2))

    @property
    def mass(self) -> float:
        """In kg."""
        return self.density * self.thickness * area(self.polygon)

    @property
    def points(self) -> Array:
        """Attachments, n x 2."""
        return np.array(list(self.attachments.values()), dtype=float).reshape(-1, 2)


@dataclass(frozen=True, eq=False, repr=False)
class Discrete(Record):
    """Mass and stiffness of a plate's finite elements, and its fields at any point.

    `fields(cells, X)` gives three sparse matrices that take the unknowns to the deflection w and the slopes s_x, s_y at
    the reference points X (2 x n) of the triangles `cells`. A section turns by the vector (s_y, -s_x, 0); thin plates
    have s = grad w.
    """

    plate: Plate
    mesh: Any
    M: sparse.csc_matrix
    K: sparse.csc_matrix
    fields: Callable[[Array, Array], tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]]

    def at(self, points: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        """The fields at points (n x 2) of the plate."""
        points = np.asarray(points, dtype=float).reshape(-1, 2)
        cells = self.mesh.element_finder()(*points.T)
        X = self.mesh.mapping().invF(points.T[:, :, None], tind=cells)[:, :, 0]
        return self.fields(cells, X)

    def at_corners(self, points: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        """The fields at points that are corners of triangles: attachments."""
        corners = np.array([corner_of(self.mesh, point) for point in points], dtype=int).reshape(-1, 2)
        return self.fields(corners[:, 0], CORNERS[:, corners[:, 1]])

    @cached_property
    def rigid(self) -> Array:
        """The three rigid motions as unknowns, orthonormal in mass: they lie in the space of the elements."""
        plate = self.plate
        X, W = quadrature(10)
        cells, X = np.repeat(np.arange(self.mesh.t.shape[1]), X.shape[1]), np.tile(X, self.mesh.t.shape[1])
        weights = np.tile(W, self.mesh.t.shape[1]) * np.abs(self.mesh.mapping().detDF(np.zeros((2, 1))).ravel())[cells]
        x, y = self.mesh.mapping().F(X[:, :, None], tind=cells)[:, :, 0]
        w, s_x, s_y = self.fields(cells, X)
        ones, zeros = np.ones_like(x), np.zeros_like(x)
        deflections, slopes = np.array([ones, x, y]).T, np.array([zeros, ones, zeros]).T
        parts = w.T @ (weights[:, None] * deflections)
        for field_, slope in ((s_x, slopes), (s_y, slopes[:, [0, 2, 1]])):
            parts += plate.thickness**2 / 12 * field_.T @ (weights[:, None] * slope)
        R = splu(self.M).solve(plate.density * plate.thickness * parts)
        return R @ np.linalg.inv(np.linalg.cholesky(R.T @ (self.M @ R))).T


def gather_rows(dofs: Array, values: Array, size: int) -> sparse.csr_matrix:
    """Rows of a matrix from the unknowns (k x n) and values (k x n) of n points."""
    k, n = dofs.shape
    return sparse.csr_matrix((values.ravel(), (np.tile(np.arange(n), k), dofs.ravel())), shape=(n, size))


def discretise(plate: Plate, theory: str = "mindlin", refinements: int | None = None) -> Discrete:
    """Finite elements of a plate. The theory is `mindlin` (with shear) or `kirchhoff` (thin)."""
    if theory not in TRIANGLES:
        raise InputError(f"'{theory}' is not a plate theory", key="theory", value=theory, hint="mindlin or kirchhoff")
    mesh = triangulate(plate.polygon, plate.points)
    rounds = max(1, int(np.log2(TRIANGLES[theory] / mesh.t.shape[1]) / 2)) if refinements is None else refinements
    if theory == "kirchhoff":
        return discretise_kirchhoff(plate, mesh.refined(rounds))
    return discretise_mindlin(plate, graded(mesh, rounds, plate.thickness))


def free_modes(discrete: Discrete, count: int) -> tuple[Array, Array]:
    """Stiffnesses (squares of angular frequencies) and vectors of the first elastic modes of a free plate; mass 1."""
    M, K, plate = discrete.M, discrete.K, discrete.plate
    message = f"{count} modes cannot be found on this mesh"
    require(1 <= count <= M.shape[0] // 4, message, "modes", "refine the mesh", count)
    span = np.ptp(plate.polygon, axis=0).max()
    # a shift of the size of the first mode, on the side where nothing is: K - sigma M is positive definite
    sigma = -100 * plate.bending_stiffness / (plate.density * plate.thickness * span**4)
    start = np.random.default_rng(0).normal(size=M.shape[0])
    values, vectors = _sharpened(M, K, sigma, eigsh(K, count + RIGID, M, sigma=sigma, which="LM", v0=start)[1])
    hidden = not np.abs(values[:RIGID]).max() < 1e-6 * values[RIGID]
    hint = "use 'kirchhoff' for very thin plates, 'mindlin' for attachments close to each other"
    require(not hidden, "rounding errors hide the rigid-body motions of the plate", "theory", hint)
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
    fields = [
        np.concatenate([(a @ vectors), (b @ vectors)]).T
        for a, b in zip(discrete.at_corners(plate.points), discrete.at(points), strict=True)
    ]
    shapes = np.zeros((len(stiffnesses), len(masses), 6))
    shapes[:, :, 2], shapes[:, :, 3], shapes[:, :, 4] = fields[0], fields[2], -fields[1]
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
    return normalised(orthonormalised(data, free=True, limit=SAMPLED)[0]).with_modes(modes)


def _points(mesh: Any, degree: int) -> tuple[Array, Array]:
    """Points (n x 2) and weights that integrate polynomials of the degree over the triangles exactly."""
    X, W = quadrature(degree)
    x = mesh.mapping().F(X)  # 2 x triangles x points
    return x.reshape(2, -1).T, (np.abs(mesh.mapping().detDF(X)) * W).ravel()


@dataclass(frozen=True, eq=False, repr=False)
class PlateDeflection(Record):
    """What loads do to a plate: deflections along z and rotations about x and y, at each attachment by name.

    `elastic` is `total` less the rigid motion in it: the part that free modes describe. `reactions` are the forces
    along z at the attachments that were held.
    """

    total: dict[str, Array]
    elastic: dict[str, Array]
    reactions: dict[str, float]


def static_deflection(
    discrete: Discrete,
    pressure: float = 0.0,
    forces: Mapping[str, float] | None = None,
    held: Iterable[str] = (),
) -> PlateDeflection:
    """Deflection of a plate under a pressure (N/m^2, along z) and forces (N, along z) at attachments.

    With nothing held the plate is free and accelerates; its inertia balances the loads (inertia relief). Otherwise the
    attachments in `held` do not move along z; three that are not on a line are needed at least.
    """
    plate, held = discrete.plate, list(held)
    names = list(plate.attachments)
    for name in [*(forces or {}), *held]:
        if name not in names:
            raise InputError(f"the plate has no attachment '{name}'", key=name, hint=did_you_mean(name, names))
    w, s_x, s_y = discrete.at_corners(plate.points)
    R, inertia = discrete.rigid, discrete.M @ discrete.rigid
    load = w.T @ np.array([(forces or {}).get(name, 0.0) for name in names])
    corners = discrete.at_corners(plate.polygon)[0]
    if pressure:
        along = R @ np.linalg.lstsq(corners @ R, np.ones(len(plate.polygon)), rcond=None)[0]  # rigid motion along z
        load = load + pressure / (plate.density * plate.thickness) * (discrete.M @ along)
    if held:
        rows = sparse.csr_matrix(w)[[names.index(name) for name in held]]
        if np.linalg.matrix_rank(rows @ R) < 3:
            raise InputError("the supports do not constrain the plate", key="held", hint="support three corners")
    else:
        load = load - inertia @ (R.T @ load)  # balanced: any three supports carry nothing
        rows = sparse.csr_matrix(corners)[linalg.qr((corners @ R).T, pivoting=True)[2][:3]]
    scale = np.abs(discrete.K.diagonal()).mean()
    system = sparse.bmat([[discrete.K, scale * rows.T], [scale * rows, None]], format="csc")
    solution = splu(system).solve(np.concatenate([load, np.zeros(rows.shape[0])]))
    u, support_forces = solution[: len(load)], scale * solution[len(load) :]
    elastic = u - R @ (inertia.T @ u)

    def at_attachments(vector: Array) -> dict[str, Array]:
        rows = np.column_stack([w @ vector, s_y @ vector, -(s_x @ vector)])
        return dict(zip(names, rows, strict=True))

    reactions = dict(zip(held, -support_forces, strict=True)) if held else {}
    return PlateDeflection(at_attachments(u), at_attachments(elastic), {k: float(v) for k, v in reactions.items()})


def discretise_kirchhoff(plate: Plate, mesh: Any, rotary_inertia: bool = True, element: str = "argyris") -> Discrete:
    """Matrices of the plate on a mesh (`MeshTri`); `element` may also be `morley`.

    The shapes are polynomials in x and y, which lose digits far from the origin: they are set up on a copy of the mesh
    about its middle, in lengths of half its extent.
    """
    fem = skfem()
    from skfem.helpers import dd, ddot, dot, grad, trace

    shape = {"argyris": fem.ElementTriArgyris, "morley": fem.ElementTriMorley}[element]()
    length, middle = extent(plate.polygon) / 2, plate.polygon.mean(axis=0)
    unit = fem.MeshTri((mesh.p - middle[:, None]) / length, mesh.t)
    basis = fem.Basis(unit, shape, intorder=KIRCHHOFF_DEGREE if element == "argyris" else 4)
    D, nu, h = plate.bending_stiffness / length**2, plate.poisson_ratio, plate.thickness
    turning = h**2 / (12 * length**2) if rotary_inertia else 0.0

    @fem.BilinearForm
    def stiffness(u: Array, v: Array, _: Array) -> Array:
        return D * ((1 - nu) * ddot(dd(u), dd(v)) + nu * trace(dd(u)) * trace(dd(v)))

    @fem.BilinearForm
    def inertia(u: Array, v: Array, _: Array) -> Array:
        return plate.density * h * length**2 * (u * v + turning * dot(grad(u), grad(v)))

    def fields(cells: Array, X: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        parts = [shape.gbasis(basis.mapping, X[:, :, None], k, tind=cells)[0] for k in range(basis.Nbfun)]
        dofs = basis.element_dofs[:, cells]
        w = np.array([np.asarray(part)[:, 0] for part in parts])
        slopes = [np.array([part.grad[a][:, 0] for part in parts]) / length for a in range(2)]
        return (
            gather_rows(dofs, w, basis.N),
            gather_rows(dofs, slopes[0], basis.N),
            gather_rows(dofs, slopes[1], basis.N),
        )

    return Discrete(
        plate, mesh, sparse.csc_matrix(inertia.assemble(basis)), sparse.csc_matrix(stiffness.assemble(basis)), fields
    )


def discretise_mindlin(plate: Plate, mesh: object) -> Discrete:
    """Matrices of the plate on a mesh; unknowns: all w, then all s_x, then all s_y."""
    fem = skfem()
    w, s = fem.Basis(mesh, fem.ElementTriP2()), fem.Basis(mesh, fem.ElementTriP2B())
    X, W = quadrature(MINDLIN_DEGREE)
    values, gradients = _bubble_basis(X)
    mapping = w.mapping
    J = mapping.DF(X)[:, :, :, 0]  # 2 x 2 x triangles: d x_c / d X_a
    inverse = np.linalg.inv(J.transpose(2, 0, 1))  # triangles x 2 x 2: d X_a / d x_c
    dA = np.abs(np.linalg.det(J.transpose(2, 0, 1)))[:, None] * W  # triangles x points

    Me, Ke = _element_matrices(plate, X, values, gradients, J.transpose(2, 0, 1), inverse, dA)
    dofs = np.vstack([w.element_dofs, w.N + s.element_dofs, w.N + s.N + s.element_dofs])
    size = w.N + 2 * s.N
    rows = np.repeat(dofs[:, None, :], 20, axis=1).transpose(2, 0, 1).ravel()
    cols = np.repeat(dofs[None, :, :], 20, axis=0).transpose(2, 0, 1).ravel()
    M = sparse.csc_matrix((Me.ravel(), (rows, cols)), shape=(size, size))
    K = sparse.csc_matrix((Ke.ravel(), (rows, cols)), shape=(size, size))

    def fields(cells: Array, X: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        values, _ = _bubble_basis(X)
        turned = w.N + s.element_dofs[:, cells]
        return (
            gather_rows(w.element_dofs[:, cells], values[:6], size),
            gather_rows(turned, values, size),
            gather_rows(turned + s.N, values, size),
        )

    return Discrete(plate, mesh, M, K, fields)


def _element_matrices(
    plate: Plate, X: Array, values: Array, gradients: Array, J: Array, inverse: Array, dA: Array
) -> tuple[Array, Array]:
    """Mass and stiffness (triangles x 20 x 20), unknowns w (6), s_x (7), s_y (7)."""
    count, points = dA.shape
    h, nu = plate.thickness, plate.poisson_ratio
    grad = np.einsum("eac,ajq->ecjq", inverse, gradients)  # of the seven functions, in x and y

    bend = np.zeros((count, 3, 20, points))  # curvatures xx, yy and twice xy
    bend[:, 0, 6:13], bend[:, 1, 13:] = grad[:, 0], grad[:, 1]
    bend[:, 2, 6:13], bend[:, 2, 13:] = grad[:, 1], grad[:, 0]
    C = plate.bending_stiffness * np.array([[1, nu, 0], [nu, 1, 0], [0, 0, (1 - nu) / 2]])

    sheared = np.zeros((count, 2, 20, points))  # covariant shear strain
    sheared[:, :, :6] = gradients[:, :6]
    reduced = _reduction(X)
    for c in range(2):
        sheared[:, :, 6 + 7 * c : 13 + 7 * c] = -np.einsum("ea,bajq->ebjq", J[:, c], reduced)
    shear = np.einsum("eac,eajq->ecjq", inverse, sheared)
    G = plate.elastic_modulus / (2 * (1 + nu))

    K = np.einsum("ecjq,cd,edkq,eq->ejk", bend, C, bend, dA, optimize=True)
    K += plate.shear_coefficient * G * h * np.einsum("ecjq,eckq,eq->ejk", shear, shear, dA, optimize=True)
    products = np.einsum("jq,kq,eq->ejk", values, values, dA, optimize=True)
    M = np.zeros((count, 20, 20))
    M[:, :6, :6] = plate.density * h * products[:, :6, :6]
    M[:, 6:13, 6:13] = M[:, 13:, 13:] = plate.density * h**3 / 12 * products
    return M, K


def _bubble_basis(X: Array) -> tuple[Array, Array]:
    """The six quadratic functions and the bubble at points: values (7 x n) and gradients (2 x 7 x n)."""
    element = skfem().ElementTriP2B()
    parts = [element.lbasis(X, i) for i in range(7)]
    ones = np.ones(X.shape[1])
    return (
        np.array([value * ones for value, _ in parts]),
        np.array([[slope[a] * ones for _, slope in parts] for a in range(2)]),
    )


def _tied(X: Array) -> Array:
    """A basis of the rotated Raviart-Thomas space of second order at points: 2 x 8 x n."""
    x, y = X
    o, l = np.zeros_like(x), np.ones_like(x)
    return np.array([[l, x, y, o, o, o, -x * y, -y * y], [o, o, o, l, x, y, x * x, x * y]])


def _moments() -> tuple[Array, Array]:
    """Moments (8) of the tied space (8 x 8) and of slopes (8 x 2 x 7): two along each edge, two inside."""
    place, weight = np.polynomial.legendre.leggauss(3)  # cubic slopes times a linear weight: degree 4
    place, weight = (place + 1) / 2, weight / 2
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    tied, slopes = np.zeros((8, 8)), np.zeros((8, 2, 7))
    for edge, (i, j) in enumerate(((0, 1), (1, 2), (2, 0))):
        t = corners[j] - corners[i]
        X = corners[i][:, None] + t[:, None] * place
        for power in range(2):
            weighted = weight * place**power
            tied[2 * edge + power] = np.einsum("a,akq,q->k", t, _tied(X), weighted)
            slopes[2 * edge + power] = np.einsum("a,kq,q->ak", t, _bubble_basis(X)[0], weighted)
    X, W = quadrature(4)
    tied[6:] = _tied(X) @ W
    slopes[6, 0] = slopes[7, 1] = _bubble_basis(X)[0] @ W
    return tied, slopes


def _reduction(X: Array) -> Array:
    """R at points: what slopes along a with function j become, component b: 2 x 2 x 7 x n."""
    tied, slopes = _moments()
    return np.einsum("bkq,kaj->bajq", _tied(X), np.linalg.solve(tied, slopes.reshape(8, 14)).reshape(8, 2, 7))


def skfem() -> Any:
    """The finite-element library, an extra; imported when it is needed."""
    try:
        import skfem
    except ImportError as error:
        raise InputError(
            "modes of plates need the library scikit-fem", key="fe", hint="pip install parflex[fe]"
        ) from error
    return skfem


def checked_polygon(polygon: Any) -> Array:
    """The corners (n x 2) of a simple polygon, counterclockwise."""
    corners = np.array(polygon, dtype=float)
    points = corners.ndim == 2 and corners.shape[1] == 2 and len(corners) >= 3 and np.isfinite(corners).all()
    message = f"a polygon is a list of at least three points (x, y), but this one has the shape {corners.shape}"
    require(points, message, "polygon", "write [[0, 0], [1, 0], [1, 1]]")
    n, hint = len(corners), "give the corners in order"
    for i in range(n):
        message = f"corners {i + 1} and {(i + 1) % n + 1} of the polygon are the same point"
        apart = np.linalg.norm(corners[(i + 1) % n] - corners[i]) >= NEAR * extent(corners)
        require(apart, message, "polygon", "leave one of them out")
    for i in range(n):
        a, b = corners[i], corners[(i + 1) % n]
        for j in range(i + 2, n if i else n - 1):
            crossing = _segments_intersect(a, b, corners[j], corners[(j + 1) % n])
            require(not crossing, f"sides {i + 1} and {j + 1} of the polygon intersect", "polygon", hint)
    flat = abs(area(corners)) < NEAR * extent(corners) ** 2
    require(not flat, "the corners of the polygon lie on a line", "polygon", hint)
    return corners if area(corners) > 0 else corners[::-1].copy()


def area(corners: Array) -> float:
    """Area inside, negative if the corners run clockwise."""
    x, y = corners.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)


def extent(corners: Array) -> float:
    """Length of the diagonal of the box around it."""
    return float(np.linalg.norm(np.ptp(corners, axis=0)))


def distance(corners: Array, point: Array) -> float:
    """How far a point lies outside the polygon; 0 inside and on the edge."""
    a, b = corners, np.roll(corners, -1, axis=0)
    t = np.clip(np.sum((point - a) * (b - a), axis=1) / np.sum((b - a) ** 2, axis=1), 0, 1)
    edge = float(np.min(np.linalg.norm(a + t[:, None] * (b - a) - point, axis=1)))
    above = (a[:, 1] > point[1]) != (b[:, 1] > point[1])
    crossing = np.zeros(len(a))
    crossing[above] = (a + ((point[1] - a[:, 1]) / np.where(above, b[:, 1] - a[:, 1], 1))[:, None] * (b - a))[above, 0]
    inside = bool(np.sum(above & (crossing > point[0])) % 2)
    return 0.0 if inside or edge < NEAR * extent(corners) else edge


def triangulate(polygon: Any, points: Sequence[Any] | Array = (), size: float | None = None) -> Any:
    """A coarse mesh (a `MeshTri`) of the polygon with the given points among its corners.

    Convex polygons with few sides, and no points but corners and the centre, are a fan about the centre. Otherwise no
    edge is longer than `size`, by default half the square root of the area.
    """
    corners = checked_polygon(polygon)
    required = np.array(points, dtype=float).reshape(-1, 2)
    for point in required:
        gap = distance(corners, point)
        message = f"the attachment at ({point[0]:g}, {point[1]:g}) lies {gap:.4g} m outside the plate"
        require(not gap, message, "attachments", "move it onto the plate", point.tolist())
    centre = corners.mean(axis=0)
    tolerance = NEAR * extent(corners)
    free = [p for p in required if np.min(np.linalg.norm(np.vstack([corners, centre]) - p, axis=1)) > tolerance]
    if size is None and not free and len(corners) <= FAN and _convex(corners):
        n = len(corners)
        triangles = np.array([[i, (i + 1) % n, n] for i in range(n)])
        nodes = np.vstack([corners, centre])
    else:
        nodes, triangles = _delaunay(corners, required, np.sqrt(area(corners)) / 2 if size is None else size)
    return skfem().MeshTri(np.ascontiguousarray(nodes.T), np.ascontiguousarray(triangles.T))


def graded(mesh: Any, rounds: int, layer: float) -> Any:
    """The mesh refined regularly, with finer triangles along the edge, where a plate has a layer of its thickness.

    In a fan nodes move towards the edge, so that the last of n rows is 1/n^2 of the whole: the mesh keeps its symmetry.
    Elsewhere triangles that touch the edge are refined further, until they are thinner than the layer.
    """
    centre = _centre_of_fan(mesh)
    fine = mesh.refined(rounds)
    if centre is not None:
        offsets = fine.p - mesh.p[:, [centre]]
        radial = np.zeros(fine.p.shape[1])  # 0 in the centre, 1 on the edge
        for a, b in (nodes[nodes != centre] for nodes in mesh.t.T):
            edges = mesh.p[:, [a, b]] - mesh.p[:, [centre]]
            barycentric = np.linalg.solve(edges, offsets)
            radial = np.where((barycentric > -NEAR).all(axis=0), barycentric.sum(axis=0), radial)
        positions = mesh.p[:, [centre]] + offsets * np.where(radial < 1 - NEAR, 2 - radial, 1.0)
        return type(fine)(np.ascontiguousarray(positions), fine.t)
    for _ in range(rounds):
        edge = np.zeros(fine.p.shape[1], dtype=bool)
        edge[fine.boundary_nodes()] = True
        touching = np.flatnonzero(edge[fine.t].any(axis=0))
        x = fine.p[:, fine.t[:, touching]]
        longest = np.max([np.linalg.norm(x[:, i] - x[:, i - 1], axis=0) for i in range(3)], axis=0)
        if (longest < layer).all():
            break
        fine = fine.refined(touching[longest >= layer])
    return fine


def _centre_of_fan(mesh: Any) -> int | None:
    """The node that all triangles share."""
    shared = set(mesh.t[:, 0]).intersection(*mesh.t.T)
    return int(shared.pop()) if len(shared) == 1 else None


def corner_of(mesh: Any, point: Array) -> tuple[int, int]:
    """A triangle with a corner at the point, and which of its corners that is."""
    node = int(np.argmin(np.linalg.norm(mesh.p - np.asarray(point, dtype=float)[:, None], axis=0)))
    local, cell = np.argwhere(mesh.t == node)[0]
    return int(cell), int(local)


def quadrature(degree: int) -> tuple[Array, Array]:
    """Points (2 x n) and weights on the reference triangle, exact for polynomials of the degree."""
    fem = skfem()
    X, W = fem.quadrature.get_quadrature(fem.ElementTriP1, degree)
    return X, W


def _convex(corners: Array) -> bool:
    side = np.roll(corners, -1, axis=0) - corners
    turn = side[:, 0] * np.roll(side, -1, axis=0)[:, 1] - side[:, 1] * np.roll(side, -1, axis=0)[:, 0]
    return bool((turn > NEAR * extent(corners) ** 2).all())


def _turn(a: Array, b: Array, c: Array) -> float:
    """Twice the area of a triangle, positive counterclockwise."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _segments_intersect(a: Array, b: Array, c: Array, d: Array) -> bool:
    boxes = (np.maximum(a, b) >= np.minimum(c, d)).all() and (np.maximum(c, d) >= np.minimum(a, b)).all()
    return bool(boxes and _turn(a, b, c) * _turn(a, b, d) <= 0 and _turn(c, d, a) * _turn(c, d, b) <= 0)


def _delaunay(corners: Array, required: Array, size: float) -> tuple[Array, Array]:
    """Delaunay's triangles of the corners and points: sides that are no edges are halved, then edges above `size`."""
    tolerance = NEAR * extent(corners)
    nodes, n = list(corners), len(corners)
    for point in required:
        if min(np.linalg.norm(node - point) for node in nodes) > tolerance:
            nodes.append(point)
    sides = {(min(k, (k + 1) % n), max(k, (k + 1) % n)) for k in range(n)}
    for k in range(n, len(nodes)):
        for a, b in list(sides):
            along, offset = nodes[b] - nodes[a], nodes[k] - nodes[a]
            length = float(np.linalg.norm(along))
            if abs(_turn(nodes[a], nodes[b], nodes[k])) < tolerance * length and 0 < along @ offset < length**2:
                sides = sides - {(a, b)} | {(a, k), (b, k)}
    for _ in range(ROUNDS):
        points = np.array(nodes)
        triangles = [t if _turn(*points[t]) > 0 else t[::-1] for t in Delaunay(points).simplices]
        inner = [t for t in triangles if _turn(*points[t]) > tolerance * extent(corners)]
        triangles = [t for t in inner if not distance(corners, points[t].mean(axis=0))]
        edges = {(min(t[i], t[i - 1]), max(t[i], t[i - 1])) for t in triangles for i in range(3)}
        halved = min(sides - edges, default=None)
        if halved is None:
            length, halved = max((float(np.linalg.norm(nodes[a] - nodes[b])), (a, b)) for a, b in edges)
            if length <= size * (1 + NEAR):
                return points, np.array(triangles)
        a, b = halved
        if halved in sides:
            sides = sides - {halved} | {(a, len(nodes)), (b, len(nodes))}
        nodes.append((nodes[a] + nodes[b]) / 2)
    raise InputError("the polygon cannot be triangulated", key="polygon", hint="give the corners in order")
