"""Build plates by finite elements: meshes, statics and modal data.

Meshes are those of Delaunay, or a fan, then refined regularly. Attachments become corners of triangles. The same
polygon gives the same mesh.

Kirchhoff plates omit shear. For Reissner-Mindlin plates, with shear and rotary inertia, the triangle does not lock.
Deflection w is quadratic; slopes s are quadratic plus a cubic bubble in each triangle; the shear strain is grad w - R
s. R maps the slopes to the rotated Raviart-Thomas space of second order by the moments along the edges and inside.
Since grad w lies in that space, thin plates can bend with s = grad w in the mean. This is the element MITC7 of
[Bathe1989]. Covariant components keep tangential moments, so R of the reference triangle serves all triangles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh, splu
from scipy.spatial import Delaunay

from parflex.bodies.craig_bampton import orthonormalised
from parflex.bodies.modal import ModalData, normalised
from parflex.checks import require
from parflex.errors import InputError, did_you_mean
from parflex.records import Record

Array = np.ndarray
FAN = 8  # convex polygons with at most so many sides are meshed as a fan, which keeps their symmetry
NEAR = 1e-9  # of the size of the polygon: nearer points coincide
ROUNDS = 2000  # of halved edges, far more than any polygon needs
CORNERS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # of the reference triangle
RIGID = 3  # number of rigid-body modes of a plate that is rigid in its plane
PAIR = 1  # additional mode that completes a pair of degenerate modes
TRIANGLES = {"mindlin": 1536, "kirchhoff": 96}  # by default at most, for frequencies to about 1e-4
SAMPLES = 2.4  # least number of triangles with nodes per mode
SHARPENING = 3  # steps of inverse iteration after the eigenvalue solver, whose vectors have ten digits
SAMPLED = 1e-2  # relative error of sums over the nodes before their correction
KIRCHHOFF_DEGREE = 10  # of exact quadrature: the product of two shapes
MINDLIN_DEGREE = 6  # of exact quadrature: the product of two bubbles


@dataclass(frozen=True, eq=False, repr=False)
class Plate(Record):
    """Corners in the plane z = 0 of the body's frame, thickness, material and attachments (name: (x, y)).

    It moves along z, rotates about x and y, and is rigid in its own plane. SI units.
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
        """Mass in kg."""
        return self.density * self.thickness * area(self.polygon)

    @property
    def points(self) -> Array:
        """Attachments, n x 2."""
        return np.array(list(self.attachments.values()), dtype=float).reshape(-1, 2)


Fields = tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]


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
    fields: Callable[[Array, Array], Fields]

    def at(self, points: Array) -> Fields:
        """Return the fields at points (n x 2) of the plate."""
        points = np.asarray(points, dtype=float).reshape(-1, 2)
        cells = self.mesh.element_finder()(*points.T)
        return self.fields(cells, self.mesh.mapping().invF(points.T[:, :, None], tind=cells)[:, :, 0])

    def at_corners(self, points: Array) -> Fields:
        """Return the fields at points that are corners of triangles: attachments."""
        nodes = [int(np.argmin(np.linalg.norm(self.mesh.p.T - point, axis=1))) for point in np.asarray(points, float)]
        corners = np.array([np.argwhere(self.mesh.t == node)[0] for node in nodes], dtype=int).reshape(-1, 2)
        return self.fields(corners[:, 1], CORNERS[:, corners[:, 0]])

    def lowest(self, count: int) -> tuple[Array, Array]:
        """Return the lowest eigenvalues, the first three of rigid-body modes, and vectors of mass 1.

        Inverse iteration after the solver sets entries that vanish by symmetry to zero within rounding.
        """
        M, K, plate = self.M, self.K, self.plate
        span = np.ptp(plate.polygon, axis=0).max()
        # a shift of the size of the first mode, on the side where nothing is: K - sigma M is positive definite
        sigma = -100 * plate.bending_stiffness / (plate.density * plate.thickness * span**4)
        start, solver = np.random.default_rng(0).normal(size=M.shape[0]), splu(sparse.csc_matrix(K - sigma * M))
        values, vectors = eigsh(K, count, M, sigma=sigma, which="LM", v0=start)
        for _ in range(SHARPENING):
            vectors = solver.solve(M @ vectors)
            values, turn = linalg.eigh(vectors.T @ (K @ vectors), vectors.T @ (M @ vectors))
            vectors = vectors @ turn
        return values, vectors

    @cached_property
    def rigid(self) -> Array:
        """The three rigid-body modes as unknowns, orthonormal in mass, which the elements represent exactly."""
        return self.lowest(RIGID)[1]


def _gathered(dofs: Array, values: Sequence[Any], size: int) -> sparse.csr_matrix:
    """Return rows of a matrix from the unknowns (k x n) and values (k x n) of n points."""
    k, n = dofs.shape
    entries = np.ravel([np.asarray(part) for part in values])
    return sparse.csr_matrix((entries, (np.tile(np.arange(n), k), dofs.ravel())), shape=(n, size))


def _basis_at(basis: Any, cells: Array, X: Array) -> list[Any]:
    """Return the functions of a basis at reference points X (2 x n) of the triangles `cells`."""
    return [basis.elem.gbasis(basis.mapping, X[:, :, None], k, tind=cells)[0] for k in range(basis.Nbfun)]


def discretise(plate: Plate, theory: str = "mindlin", refinements: int | None = None) -> Discrete:
    """Return the finite elements of a plate by the theory `mindlin` (with shear) or `kirchhoff` (thin)."""
    require(theory in TRIANGLES, f"'{theory}' is not a plate theory", "theory", "mindlin or kirchhoff", theory)
    mesh = triangulate(plate.polygon, plate.points)
    rounds = max(1, int(np.log2(TRIANGLES[theory] / mesh.t.shape[1]) / 2)) if refinements is None else refinements
    if theory == "kirchhoff":
        return discretise_kirchhoff(plate, mesh.refined(rounds))
    return discretise_mindlin(plate, graded(mesh, rounds, plate.thickness))


def free_modes(discrete: Discrete, count: int) -> tuple[Array, Array]:
    """Return stiffnesses (squared angular frequencies) and vectors (mass 1) of elastic modes of a free plate."""
    message = f"{count} modes cannot be found on this mesh"
    require(1 <= count <= discrete.M.shape[0] // 4, message, "modes", "refine the mesh", count)
    values, vectors = discrete.lowest(count + RIGID)
    hidden = not np.abs(values[:RIGID]).max() < 1e-6 * values[RIGID]
    hint = "use 'kirchhoff' for very thin plates, 'mindlin' for attachments close to each other"
    require(not hidden, "rounding errors hide the rigid-body motions of the plate", "theory", hint)
    return values[RIGID:], vectors[:, RIGID:]


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
    """Return modal data of a free plate.

    The nodes are the attachments, without mass, and the points of a quadrature of the given degree on the coarse mesh
    refined `sampling` times, by default as often as the number of modes needs. Sums over them give mass and inertia
    exactly; the modes are made exactly orthonormal and free of momentum.
    """
    discrete = discretise(plate, theory, refinements)
    stiffnesses, vectors = free_modes(discrete, modes + PAIR)
    mesh = triangulate(plate.polygon, plate.points)
    if sampling is None:
        sampling = max(0, int(np.ceil(np.log2(SAMPLES * modes / mesh.t.shape[1]) / 2 - 1e-9)))
    mapping, (X, W) = mesh.refined(sampling).mapping(), quadrature(degree)
    points, weights = mapping.F(X).reshape(2, -1).T, (np.abs(mapping.detDF(X)) * W).ravel()
    masses = np.concatenate([np.zeros(len(plate.points)), plate.density * plate.thickness * weights])
    parts = zip(discrete.at_corners(plate.points), discrete.at(points), strict=True)
    fields = [np.concatenate([a @ vectors, b @ vectors]).T for a, b in parts]
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


@dataclass(frozen=True, eq=False, repr=False)
class PlateDeflection(Record):
    """Deflections of a plate along z and rotations about x and y under loads, at each attachment by name.

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
    """Return the deflection under a pressure (N/m^2, along z) and forces (N, along z) at attachments.

    Without `held` the plate is free and accelerates; its inertia balances the loads (inertia relief). Otherwise the
    attachments in `held` do not move along z; at least three that are not on a line are required.
    """
    plate, held = discrete.plate, list(held)
    names = list(plate.attachments)
    for name in [*(forces or {}), *held]:
        require(name in names, f"the plate has no attachment '{name}'", name, did_you_mean(name, names))
    w, s_x, s_y = discrete.at_corners(plate.points)
    R, inertia = discrete.rigid, discrete.M @ discrete.rigid
    load = w.T @ np.array([(forces or {}).get(name, 0.0) for name in names])
    corners = discrete.at_corners(plate.polygon)[0]
    if pressure:
        along = R @ np.linalg.lstsq(corners @ R, np.ones(len(plate.polygon)), rcond=None)[0]  # rigid motion along z
        load = load + pressure / (plate.density * plate.thickness) * (discrete.M @ along)
    if held:
        rows = sparse.csr_matrix(w)[[names.index(name) for name in held]]
        holds = np.linalg.matrix_rank(rows @ R) == 3
        require(holds, "the supports do not constrain the plate", "held", "support three corners")
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


def discretise_kirchhoff(plate: Plate, mesh: Any, rotary_inertia: bool = True) -> Discrete:
    """Return the matrices of the plate on a mesh (`MeshTri`) of Argyris triangles.

    The shapes are polynomials in x and y, which lose digits far from the origin: they are set up on a copy of the
    mesh about its middle, in lengths of half its extent.
    """
    fem = skfem()
    from skfem.helpers import dd, ddot, dot, grad, trace

    length, middle = extent(plate.polygon) / 2, plate.polygon.mean(axis=0)
    unit = fem.MeshTri((mesh.p - middle[:, None]) / length, mesh.t)
    basis = fem.Basis(unit, fem.ElementTriArgyris(), intorder=KIRCHHOFF_DEGREE)
    D, nu, h = plate.bending_stiffness / length**2, plate.poisson_ratio, plate.thickness
    turning = h**2 / (12 * length**2) if rotary_inertia else 0.0

    @fem.BilinearForm
    def stiffness(u: Array, v: Array, _: Array) -> Array:
        return D * ((1 - nu) * ddot(dd(u), dd(v)) + nu * trace(dd(u)) * trace(dd(v)))

    @fem.BilinearForm
    def inertia(u: Array, v: Array, _: Array) -> Array:
        return plate.density * h * length**2 * (u * v + turning * dot(grad(u), grad(v)))

    def fields(cells: Array, X: Array) -> Fields:
        parts, dofs = _basis_at(basis, cells, X), basis.element_dofs[:, cells]
        s_x, s_y = (_gathered(dofs, [part.grad[a] / length for part in parts], basis.N) for a in range(2))
        return _gathered(dofs, parts, basis.N), s_x, s_y

    M, K = (sparse.csc_matrix(form.assemble(basis)) for form in (inertia, stiffness))
    return Discrete(plate, mesh, M, K, fields)


def discretise_mindlin(plate: Plate, mesh: Any) -> Discrete:
    """Return the matrices of the plate on a mesh; unknowns: all w, then s_x and s_y of each node in turn."""
    fem = skfem()
    from skfem.helpers import ddot, dot, grad, sym_grad, trace

    elements = (fem.ElementTriP2(), fem.ElementVector(fem.ElementTriP2B()), _tied_element())
    w, s, tied = (fem.Basis(mesh, element, intorder=MINDLIN_DEGREE) for element in elements)
    D, nu, h = plate.bending_stiffness, plate.poisson_ratio, plate.thickness
    sheared = plate.shear_coefficient * plate.elastic_modulus / (2 * (1 + nu)) * h

    @fem.BilinearForm
    def bending(u: Any, v: Any, _: Any) -> Array:
        return D * ((1 - nu) * ddot(sym_grad(u), sym_grad(v)) + nu * trace(grad(u)) * trace(grad(v)))

    product = fem.BilinearForm(lambda u, v, _: dot(u, v))
    mixed = fem.BilinearForm(lambda u, v, _: -sheared * dot(u, grad(v))).assemble(tied, w)
    membrane = fem.BilinearForm(lambda u, v, _: sheared * dot(grad(u), grad(v))).assemble(w)
    K = sparse.bmat([[membrane, mixed], [mixed.T, bending.assemble(s) + sheared * product.assemble(tied)]], "csc")
    lumps = fem.BilinearForm(lambda u, v, _: plate.density * h * u * v).assemble(w)
    M = sparse.block_diag([lumps, plate.density * h**3 / 12 * product.assemble(s)], "csc")

    def fields(cells: Array, X: Array) -> Fields:
        deflections = _gathered(w.element_dofs[:, cells], _basis_at(w, cells, X), K.shape[0])
        parts, dofs = _basis_at(s, cells, X), w.N + s.element_dofs[:, cells]
        s_x, s_y = (_gathered(dofs[a::2], [np.asarray(part)[a] for part in parts[a::2]], K.shape[0]) for a in range(2))
        return deflections, s_x, s_y

    return Discrete(plate, mesh, M, K, fields)


def _tied_element() -> Any:
    """Return an element with the unknowns of the slopes s and the functions R s of the reduced shear strain."""
    fem = skfem()

    class TiedSlopes(fem.ElementVector):  # type: ignore[name-defined]
        def gbasis(self, mapping: Any, X: Array, i: int, tind: Any = None) -> Any:
            function, axis = divmod(i, 2)
            tied, slopes = _moments()
            reduction = np.linalg.solve(tied, slopes.reshape(8, 14)).reshape(8, 2, 7)[:, :, function]
            reduced = np.einsum("bkq,ka->baq", _tied(X), reduction)  # of slopes along each axis, the components
            covariant = np.einsum("baq,aeq->beq", reduced, mapping.DF(X, tind)[axis])
            return (fem.DiscreteField(np.einsum("bdeq,beq->deq", mapping.invDF(X, tind), covariant)),)

    return TiedSlopes(fem.ElementTriP2B())


def _tied(X: Array) -> Array:
    """Return a basis of the rotated Raviart-Thomas space of second order at points: 2 x 8 x n."""
    x, y = X
    o, l = np.zeros_like(x), np.ones_like(x)
    return np.array([[l, x, y, o, o, o, -x * y, -y * y], [o, o, o, l, x, y, x * x, x * y]])


def _bubble_basis(X: Array) -> Array:
    """Return the six quadratic functions and the bubble at points: 7 x n."""
    element = skfem().ElementTriP2B()
    return np.array([element.lbasis(X, i)[0] * np.ones(X.shape[1]) for i in range(7)])


def _moments() -> tuple[Array, Array]:
    """Return moments (8) of the tied space (8 x 8) and of slopes (8 x 2 x 7): two along each edge, two inside."""
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
            slopes[2 * edge + power] = np.einsum("a,kq,q->ak", t, _bubble_basis(X), weighted)
    X, W = quadrature(4)
    tied[6:] = _tied(X) @ W
    slopes[6, 0] = slopes[7, 1] = _bubble_basis(X) @ W
    return tied, slopes


def skfem() -> Any:
    """Import the finite-element library, an optional dependency."""
    try:
        import skfem
    except ImportError as error:
        message, hint = "modes of plates need the library scikit-fem", "pip install parflex[fe]"
        raise InputError(message, key="fe", hint=hint) from error
    return skfem


def checked_polygon(polygon: Any) -> Array:
    """Return the corners (n x 2) of a simple polygon, counterclockwise."""
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
    """Return the enclosed area, negative if the corners run clockwise."""
    x, y = corners.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)


def extent(corners: Array) -> float:
    """Return the diagonal of the bounding box."""
    return float(np.linalg.norm(np.ptp(corners, axis=0)))


def distance(corners: Array, point: Array) -> float:
    """Return the distance of a point outside the polygon; 0 inside and on the edge."""
    a, b = corners, np.roll(corners, -1, axis=0)
    t = np.clip(np.sum((point - a) * (b - a), axis=1) / np.sum((b - a) ** 2, axis=1), 0, 1)
    edge = float(np.min(np.linalg.norm(a + t[:, None] * (b - a) - point, axis=1)))
    above = (a[:, 1] > point[1]) != (b[:, 1] > point[1])
    crossing = np.zeros(len(a))
    crossing[above] = (a + ((point[1] - a[:, 1]) / np.where(above, b[:, 1] - a[:, 1], 1))[:, None] * (b - a))[above, 0]
    inside = bool(np.sum(above & (crossing > point[0])) % 2)
    return 0.0 if inside or edge < NEAR * extent(corners) else edge


def triangulate(polygon: Any, points: Sequence[Any] | Array = (), size: float | None = None) -> Any:
    """Return a coarse mesh (a `MeshTri`) of the polygon with the points among its corners.

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
    """Return the mesh refined regularly, with finer triangles in the boundary layer of the plate.

    In a fan, nodes move towards the edge so that the last of n rows is 1/n^2 of the whole: the mesh keeps its
    symmetry. Otherwise triangles at the edge are refined until they are thinner than the layer.
    """
    fine, shared = mesh.refined(rounds), set(mesh.t[:, 0]).intersection(*mesh.t.T)
    if len(shared) == 1:  # all triangles of a fan share its centre
        centre = int(shared.pop())
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


def quadrature(degree: int) -> tuple[Array, Array]:
    """Return points (2 x n) and weights on the reference triangle, exact for polynomials of the degree."""
    fem = skfem()
    X, W = fem.quadrature.get_quadrature(fem.ElementTriP1, degree)
    return X, W


def _convex(corners: Array) -> bool:
    return all(_turn(*corners[[k - 2, k - 1, k]]) > NEAR * extent(corners) ** 2 for k in range(len(corners)))


def _turn(a: Array, b: Array, c: Array) -> float:
    """Return twice the area of a triangle, positive counterclockwise."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _segments_intersect(a: Array, b: Array, c: Array, d: Array) -> bool:
    boxes = (np.maximum(a, b) >= np.minimum(c, d)).all() and (np.maximum(c, d) >= np.minimum(a, b)).all()
    return bool(boxes and _turn(a, b, c) * _turn(a, b, d) <= 0 and _turn(c, d, a) * _turn(c, d, b) <= 0)


def _delaunay(corners: Array, required: Array, size: float) -> tuple[Array, Array]:
    """Return Delaunay triangles of corners and points, halving sides that are no edges, then edges above `size`."""
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
