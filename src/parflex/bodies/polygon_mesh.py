"""Triangle meshes of polygons.

Coarse meshes by ear clipping and flips, or a fan; then regular refinement. Attachments become corners of triangles. The
same polygon gives the same mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.errors import InputError

Array = np.ndarray

FAN = 8  # convex polygons with at most so many sides are a fan about their centre: it keeps their symmetry

NEAR = 1e-9  # of the size of the polygon: closer points are the same point

ROUNDS = 20000  # of flips or splits: far more than any polygon needs


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
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3 or not np.isfinite(corners).all():
        raise InputError(
            f"a polygon is a list of at least three points (x, y), but this one has the shape {corners.shape}",
            key="polygon",
        )
    n = len(corners)
    for i in range(n):
        if np.linalg.norm(corners[(i + 1) % n] - corners[i]) < NEAR * extent(corners):
            raise InputError(f"corners {i + 1} and {(i + 1) % n + 1} of the polygon are the same point", key="polygon")
    for i in range(n):
        a, b = corners[i], corners[(i + 1) % n]
        for j in range(i + 2, n if i else n - 1):
            if _segments_intersect(a, b, corners[j], corners[(j + 1) % n]):
                raise InputError(
                    f"sides {i + 1} and {j + 1} of the polygon intersect",
                    key="polygon",
                    hint="give the corners in order",
                )
    if abs(area(corners)) < NEAR * extent(corners) ** 2:
        raise InputError("the corners of the polygon lie on a line", key="polygon")
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
        if gap:
            raise InputError(
                f"the attachment at ({point[0]:g}, {point[1]:g}) lies {gap:.4g} m outside the plate",
                key="attachments",
                value=point.tolist(),
                hint="move it onto the plate",
            )
    centre = corners.mean(axis=0)
    tolerance = NEAR * extent(corners)
    free = [p for p in required if np.min(np.linalg.norm(np.vstack([corners, centre]) - p, axis=1)) > tolerance]
    if size is None and not free and len(corners) <= FAN and _convex(corners):
        n = len(corners)
        triangles = np.array([[i, (i + 1) % n, n] for i in range(n)])
        nodes = np.vstack([corners, centre])
    else:
        nodes, triangles = _general(corners, required, np.sqrt(area(corners)) / 2 if size is None else size)
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
    return _turn(a, b, c) * _turn(a, b, d) <= 0 and _turn(c, d, a) * _turn(c, d, b) <= 0 and _boxes_overlap(a, b, c, d)


def _boxes_overlap(a: Array, b: Array, c: Array, d: Array) -> bool:
    return bool((np.maximum(a, b) >= np.minimum(c, d)).all() and (np.maximum(c, d) >= np.minimum(a, b)).all())


def _general(corners: Array, required: Array, size: float) -> tuple[Array, Array]:
    """Ears, then the points, then halves of long edges; flips to Delaunay's triangles after each."""
    tolerance = NEAR * extent(corners)
    nodes = list(corners)
    triangles = _clip_ears(corners)
    for point in required:
        if min(np.linalg.norm(node - point) for node in nodes) > tolerance:
            triangles = _inserted(nodes, triangles, point, tolerance)
            _flip(nodes, triangles)
    _flip(nodes, triangles)
    for _ in range(ROUNDS):
        length, a, b = max((float(np.linalg.norm(nodes[a] - nodes[b])), a, b) for a, b in _edges(triangles))
        if length <= size * (1 + NEAR):
            break
        triangles = _split(nodes, triangles, a, b, (nodes[a] + nodes[b]) / 2)
        _flip(nodes, triangles)
    return np.array(nodes), np.array(triangles)


def _clip_ears(corners: Array) -> list[list[int]]:
    """Triangles of a simple polygon, cut off one by one: the fattest ear first."""
    remaining = list(range(len(corners)))
    triangles = []
    while len(remaining) > 3:
        best, ear = -1.0, None
        for k in range(len(remaining)):
            i, j, l = remaining[k - 1], remaining[k], remaining[(k + 1) % len(remaining)]
            a, b, c = corners[[i, j, l]]
            shape = _turn(a, b, c) / max(np.sum((a - b) ** 2), np.sum((b - c) ** 2), np.sum((c - a) ** 2))
            other_corners = [corners[m] for m in remaining if m not in (i, j, l)]
            if shape > max(best, 0) and not any(
                min(_turn(a, b, p), _turn(b, c, p), _turn(c, a, p)) >= 0 for p in other_corners
            ):
                best, ear = shape, k
        if ear is None:
            raise InputError("the polygon cannot be triangulated", key="polygon", hint="give the corners in order")
        triangles.append([remaining[ear - 1], remaining[ear], remaining[(ear + 1) % len(remaining)]])
        del remaining[ear]
    return [*triangles, remaining]


def _edges(triangles: list[list[int]]) -> dict[tuple[int, int], list[int]]:
    """Edges (lower node first) and the triangles beside them."""
    edges: dict[tuple[int, int], list[int]] = {}
    for index, (a, b, c) in enumerate(triangles):
        for i, j in ((a, b), (b, c), (c, a)):
            edges.setdefault((min(i, j), max(i, j)), []).append(index)
    return edges


def _opposite(triangle: list[int], a: int, b: int) -> int:
    return next(node for node in triangle if node not in (a, b))


def _inserted(nodes: list[Array], triangles: list[list[int]], point: Array, tolerance: float) -> list[list[int]]:
    """The triangles with one more node inside."""
    for a, b in _edges(triangles):
        along = nodes[b] - nodes[a]
        length = float(np.linalg.norm(along))
        if abs(_turn(nodes[a], nodes[b], point)) / length < tolerance and 0 < along @ (point - nodes[a]) < length**2:
            return _split(nodes, triangles, a, b, point)
    for index, (a, b, c) in enumerate(triangles):
        if min(_turn(nodes[i], nodes[j], point) for i, j in ((a, b), (b, c), (c, a))) > 0:
            nodes.append(point)
            new = len(nodes) - 1
            return [*triangles[:index], *triangles[index + 1 :], [a, b, new], [b, c, new], [c, a, new]]
    raise InputError(f"the attachment at ({point[0]:g}, {point[1]:g}) lies outside the plate", key="attachments")


def _split(nodes: list[Array], triangles: list[list[int]], a: int, b: int, point: Array) -> list[list[int]]:
    """The triangles with a node on an edge."""
    nodes.append(point)
    new = len(nodes) - 1
    result = []
    for triangle in triangles:
        if a in triangle and b in triangle:
            result.append([new if node == a else node for node in triangle])
            result.append([new if node == b else node for node in triangle])
        else:
            result.append(triangle)
    return result


def _flip(nodes: list[Array], triangles: list[list[int]]) -> None:
    """Lawson's flips, until every pair of neighbours is Delaunay's."""
    for _ in range(ROUNDS):
        for (a, b), adjacent in _edges(triangles).items():
            if len(adjacent) < 2:
                continue
            c, d = (_opposite(triangles[index], a, b) for index in adjacent)
            if _angle(nodes, a, b, c) + _angle(nodes, a, b, d) > np.pi + NEAR:
                first, second = [c, d, a], [c, d, b]
                for index, triangle in zip(adjacent, (first, second), strict=True):
                    if _turn(*(nodes[node] for node in triangle)) < 0:
                        triangle[1], triangle[2] = triangle[2], triangle[1]
                    triangles[index] = triangle
                break
        else:
            return


def _angle(nodes: list[Array], a: int, b: int, c: int) -> float:
    """The angle at c."""
    u, v = nodes[a] - nodes[c], nodes[b] - nodes[c]
    return float(np.arccos(np.clip(u @ v / np.sqrt((u @ u) * (v @ v)), -1, 1)))
