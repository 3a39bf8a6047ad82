"""Solids as triangles: cylinders, spheres, boxes, convex bodies, arrows, sweeps."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from parflex.spatial.rotations import hat

Array = np.ndarray
Solid = tuple[Array, Array]  # vertices n x 3, triangles m x 3
SIDES = 24
FLAT = 0.05  # of the largest extent: thinner sets of points are plates


def merged(solids: Iterable[Solid]) -> Solid:
    """Return several solids as one."""
    vertices: list[Array] = [np.zeros((0, 3))]
    faces: list[Array] = [np.zeros((0, 3), dtype=int)]
    count = 0
    for points, triangles in solids:
        vertices.append(points)
        faces.append(triangles + count)
        count += len(points)
    return np.concatenate(vertices), np.concatenate(faces)


def along(direction: Array) -> Array:
    """Return a rotation whose z axis points along a direction."""
    length = float(np.linalg.norm(direction))
    z = direction / length if length else np.array([0.0, 0.0, 1.0])
    x = hat(np.eye(3)[int(np.abs(z).argmin())]) @ z
    x /= np.linalg.norm(x)
    return np.array([x, hat(z) @ x, z]).T


@lru_cache(maxsize=16)
def _unit_circle(sides: int) -> Array:
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def circle(radius: float, sides: int = SIDES) -> Array:
    """Return points of a circle (n x 2)."""
    return radius * _unit_circle(sides)


def convex(points: Array) -> Solid:
    """Return the convex hull of points with sharp edges."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    corners = points[hull.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0
    corners[inward] = corners[inward][:, ::-1]
    return corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3)


def cylinder(start: Array, end: Array, radius: float, end_radius: float | None = None, sides: int = SIDES) -> Solid:
    """Return a round bar between two points; with another radius at its end, a cone."""
    direction = np.asarray(end, dtype=float) - start
    unit, faces = unit_bar(sides)
    wide = np.where(unit[:, 2:] > 0, radius if end_radius is None else end_radius, radius)
    points = unit * np.concatenate([wide, wide, np.full_like(wide, np.linalg.norm(direction))], axis=1)
    return points @ along(direction).T + start, faces


@lru_cache(maxsize=16)
def unit_bar(sides: int) -> Solid:
    """Return a bar of radius and height 1 along z: a smooth wall, and both ends with vertices of their own."""
    ring = np.column_stack([circle(1.0, sides), np.zeros(sides)])
    top = ring + np.array([0.0, 0.0, 1.0])
    k, after = np.arange(sides), np.roll(np.arange(sides), -1)
    wall = np.concatenate([np.column_stack([k, after, after + sides]), np.column_stack([k, after + sides, k + sides])])
    fan = np.column_stack([np.zeros(sides - 2, dtype=int), k[1:-1], k[2:]])
    return merged([(np.concatenate([ring, top]), wall), (ring, fan[:, ::-1]), (top, fan)])


@lru_cache(maxsize=16)
def _unit_ball(sides: int) -> Solid:
    rows = sides // 2
    polar = np.linspace(0, np.pi, rows + 1)
    ring = circle(1.0, sides)
    points = np.concatenate([np.column_stack([np.sin(angle) * ring, np.full(sides, np.cos(angle))]) for angle in polar])
    faces = []
    for i in range(rows):
        for k in range(sides):
            a, b = i * sides + k, i * sides + (k + 1) % sides
            below, above = [a, a + sides, b + sides], [a, b + sides, b]
            faces += [below] * (i < rows - 1) + [above] * (i > 0)  # at a pole one of the two has no area
    return points, np.array(faces)


def sphere(centre: Array, radius: float, sides: int = SIDES) -> Solid:
    """Return a ball."""
    points, faces = _unit_ball(sides)
    return points * radius + centre, faces


def box(centre: Array, axes: Array, sides: Array) -> Solid:
    """Return a box with these sides along the columns of `axes`."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.asarray(sides) / 2
    return convex(corners @ np.asarray(axes).T + centre)


def arrow(start: Array, vector: Array, radius: float) -> Solid:
    """Return an arrow: a shaft and a head of five radii, or a shorter one where the arrow is short."""
    length = float(np.linalg.norm(vector))
    if length < 1e-12:
        return merged([])
    head = min(5 * radius, 0.6 * length)
    neck = start + vector * (1 - head / length)
    return merged([cylinder(start, neck, radius, sides=12), cylinder(neck, start + vector, 2.4 * radius, 0.0, 12)])


def hull_solid(points: Array, thickness: float, margin: float) -> Solid:
    """Return the convex body around points: a plate of a thickness, with a margin, where they lie in a plane."""
    middle = points.mean(axis=0)
    _, sizes, across = np.linalg.svd(points - middle, full_matrices=True)
    if sizes[2] > FLAT * sizes[0]:
        return convex(points)
    flat = (points - middle) @ across[:2].T
    rounded = np.concatenate([corner + circle(margin, 16) for corner in flat]) if margin else flat
    sides = [np.column_stack([rounded, np.full(len(rounded), z)]) for z in (-thickness / 2, thickness / 2)]
    return convex(np.concatenate(sides) @ across + middle)


@lru_cache(maxsize=64)
def sweep_faces(stations: int, corners: int) -> Array:
    """Return the triangles of a tube through rings of so many corners; its two ends are closed by further rings.

    Vertices are those of the rings one after the other, then the ring of the start and that of the end once more.
    """
    faces = []
    for i in range(stations - 1):
        for k in range(corners):
            a, b = i * corners + k, i * corners + (k + 1) % corners
            faces += [[a, b, b + corners], [a, b + corners, a + corners]]
    start, end = stations * corners, (stations + 1) * corners
    for k in range(1, corners - 1):
        faces += [[start, start + k + 1, start + k], [end, end + k, end + k + 1]]
    return np.array(faces, dtype=int)
