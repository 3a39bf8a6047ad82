"""Solids as triangles: tubes through rings, and convex bodies."""

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


def circle(radius: float, sides: int = SIDES) -> Array:
    """Return points of a circle (n x 2)."""
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def tube(rings: Array) -> Solid:
    """Return a smooth wall through rings (stations x corners x 3); both ends are flat, with vertices of their own.

    Corners run anticlockwise as seen from the next ring.
    """
    return np.concatenate([rings, rings[:1], rings[-1:]]).reshape(-1, 3), tube_faces(*rings.shape[:2])


@lru_cache(maxsize=64)
def tube_faces(stations: int, corners: int) -> Array:
    """Return the triangles of a tube; its vertices are those of the rings, then the first and the last ring again."""
    k, after = np.arange(corners), np.roll(np.arange(corners), -1)
    wall = [np.column_stack([k, after, after + corners]), np.column_stack([k, after + corners, k + corners])]
    walls = np.concatenate(wall) + corners * np.arange(stations - 1)[:, None, None]
    end = np.column_stack([np.zeros(corners - 2, dtype=int), k[1:-1], k[2:]]) + stations * corners
    return np.concatenate([walls.reshape(-1, 3), end[:, ::-1], end + corners])


def cylinder(start: Array, end: Array, radius: float, end_radius: float | None = None, sides: int = SIDES) -> Solid:
    """Return a round bar between two points; with another radius at its end, a cone."""
    ring = circle(1.0, sides) @ along(np.asarray(end, dtype=float) - start)[:, :2].T
    return tube(np.stack([start + radius * ring, end + (radius if end_radius is None else end_radius) * ring]))


def sphere(centre: Array, radius: float, sides: int = SIDES) -> Solid:
    """Return a ball."""
    polar = np.linspace(0, np.pi, sides // 2 + 1)[:, None, None]
    ring = np.column_stack([circle(1.0, sides), np.ones(sides)])
    return tube(centre + radius * ring * np.concatenate([np.sin(polar), np.sin(polar), -np.cos(polar)], axis=2))


def arrow(start: Array, vector: Array, radius: float) -> Solid:
    """Return an arrow: a shaft and a head of five radii, or a shorter one where the arrow is short."""
    length = float(np.linalg.norm(vector))
    if length < 1e-12:
        return merged([])
    neck = start + vector * (1 - min(5 * radius, 0.6 * length) / length)
    return merged([cylinder(start, neck, radius, sides=12), cylinder(neck, start + vector, 2.4 * radius, 0.0, 12)])


def convex(points: Array) -> Solid:
    """Return the convex hull of points with sharp edges."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    corners = points[hull.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0
    corners[inward] = corners[inward][:, ::-1]
    return corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3)


def box(centre: Array, axes: Array, sides: Array) -> Solid:
    """Return a box with these sides along the columns of `axes`."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.asarray(sides) / 2
    return convex(corners @ np.asarray(axes).T + centre)


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
