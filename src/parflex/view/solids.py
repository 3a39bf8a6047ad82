"""Solids as triangles: cylinders, spheres, boxes, arrows, elements between points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.spatial.rotations import hat
from parflex.tree.tree import GROUND, Place
from parflex.view.skeleton import element_places

Array = np.ndarray

Solid = tuple[Array, Array]  # vertices n x 3, triangles m x 3

SIDES = 24

THICK = {"strut": 0.009, "rod": 0.006}  # radii, of the size of the robot

THIN = 0.003

X = np.array([1.0, 0.0, 0.0])


def merged(solids: Iterable[Solid]) -> Solid:
    """Several solids as one."""
    vertices: list[Array] = [np.zeros((0, 3))]
    faces: list[Array] = [np.zeros((0, 3), dtype=int)]
    count = 0
    for points, triangles in solids:
        vertices.append(points)
        faces.append(triangles + count)
        count += len(points)
    return np.concatenate(vertices), np.concatenate(faces)


def along(direction: Array) -> Array:
    """A rotation whose z axis points along a direction."""
    length = float(np.linalg.norm(direction))
    z = direction / length if length else np.array([0.0, 0.0, 1.0])
    x = hat(np.eye(3)[int(np.abs(z).argmin())]) @ z
    x /= np.linalg.norm(x)
    return np.array([x, hat(z) @ x, z]).T


def circle(radius: float, sides: int = SIDES) -> Array:
    """Points of a circle (n x 2)."""
    return radius * _unit_circle(sides)


@lru_cache(maxsize=16)
def _unit_circle(sides: int) -> Array:
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def polygon_prism(outline: Array, low: float, high: float) -> Solid:
    """A prism over a convex outline (n x 2, counter-clockwise), its flat sides sharp."""
    n = len(outline)
    following = np.roll(outline, -1, axis=0)
    solids = [_cap(outline, high, True), _cap(outline, low, False)]
    for k in range(n):
        a, b = outline[k], following[k]
        corners = np.array([[*a, low], [*b, low], [*b, high], [*a, high]])
        solids.append((corners, np.array([[0, 1, 2], [0, 2, 3]])))
    return merged(solids)


def _cap(outline: Array, height: float, up: bool) -> Solid:
    n = len(outline)
    points = np.column_stack([outline, np.full(n, height)])
    fan = np.array([[0, k, k + 1] for k in range(1, n - 1)], dtype=int).reshape(-1, 3)
    return points, fan if up else fan[:, ::-1]


def cylinder(start: Array, end: Array, radius: float, end_radius: float | None = None, sides: int = SIDES) -> Solid:
    """A round bar between two points; with another radius at its end, a cone."""
    direction = np.asarray(end, dtype=float) - start
    unit, faces = _unit_bar(sides)
    wide = np.where(unit[:, 2:] > 0, radius if end_radius is None else end_radius, radius)
    points = unit * np.concatenate([wide, wide, np.full_like(wide, np.linalg.norm(direction))], axis=1)
    return points @ along(direction).T + start, faces


@lru_cache(maxsize=16)
def _unit_bar(sides: int) -> Solid:
    """A bar of radius and height 1."""
    low = high = circle(1.0, sides)
    height = 1.0
    wall = np.concatenate([np.column_stack([low, np.zeros(sides)]), np.column_stack([high, np.full(sides, height)])])
    k, after = np.arange(sides), np.roll(np.arange(sides), -1)
    faces = np.concatenate([np.column_stack([k, after, after + sides]), np.column_stack([k, after + sides, k + sides])])
    return merged([(wall, faces), _cap(low, 0.0, False), _cap(high, height, True)])


def sphere(centre: Array, radius: float, sides: int = SIDES) -> Solid:
    """A ball."""
    points, faces = _unit_ball(sides)
    return points * radius + centre, faces


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


def box(centre: Array, axes: Array, sides: Array) -> Solid:
    """A box with these sides along the columns of `axes`."""
    x, y, z = np.asarray(sides) / 2
    points, faces = polygon_prism(np.array([[-x, -y], [x, -y], [x, y], [-x, y]]), -z, z)
    return points @ np.asarray(axes).T + centre, faces


def arrow(start: Array, vector: Array, radius: float) -> Solid:
    """An arrow: a shaft and a head of four radii, or a shorter one where the arrow is short."""
    length = float(np.linalg.norm(vector))
    if length < 1e-12:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=int)
    head = min(5 * radius, 0.6 * length)
    direction = vector / length
    neck = start + direction * (length - head)
    return merged([cylinder(start, neck, radius, sides=12), cylinder(neck, start + vector, 2.4 * radius, 0.0, 12)])


def hull_solid(points: Array, thickness: float, margin: float) -> Solid:
    """The convex body around points: a plate of a thickness where they lie in a plane, with a margin around."""
    from scipy.spatial import ConvexHull

    middle = points.mean(axis=0)
    _, sizes, across = np.linalg.svd(points - middle, full_matrices=True)
    if sizes[2] > 0.05 * sizes[0]:
        hull = ConvexHull(points)
        corners = points[hull.simplices]
        outward = np.einsum("ij,ij->i", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]),
                            hull.equations[:, :3]) > 0  # fmt: skip
        corners[~outward] = corners[~outward][:, ::-1]
        return corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3)
    axes = np.column_stack([across[0], across[1], np.cross(across[0], across[1])])
    flat = (points - middle) @ axes[:, :2]
    rounded = np.concatenate([corner + circle(margin, 16) for corner in flat])
    outline = rounded[ConvexHull(rounded).vertices]
    solid, faces = polygon_prism(outline, -thickness / 2, thickness / 2)
    return solid @ axes.T + middle, faces


@lru_cache(maxsize=64)
def sweep_faces(stations: int, corners: int) -> Array:
    """Triangles of a tube through rings of so many corners; its two ends are closed by further rings.

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


@dataclass(frozen=True, eq=False, repr=False)
class ElementBar(Record):
    """A bar between two places of two bodies."""

    group: str
    robot: Robot
    first: Place
    second: Place
    unit: Array  # a bar of length 1 along x
    faces: Array
    link: int = field(default=GROUND, init=False)

    @property
    def count(self) -> int:
        """Number of its vertices."""
        return len(self.unit)

    def placed(self, q: Array) -> Array:
        """Its vertices in the world."""
        at = pose(self.robot.tree, q)
        start, end = at.of(self.first)[1], at.of(self.second)[1]
        length = float(np.linalg.norm(end - start))
        turn = np.roll(along(end - start), 1, axis=1) if length else np.eye(3)  # its z axis is the line: made x
        return start + (self.unit * [length, 1.0, 1.0]) @ turn.T


def element_bars(robot: Robot, size: float) -> list[ElementBar]:
    """A bar for each element; struts with a motor are shown as motors."""
    motors = {robot.tree.rate_names[k] for k in robot.actuated}
    bars = []
    for element, (kind, first, second) in zip(robot.description.element, element_places(robot), strict=True):
        group = "motors" if element.name in motors else "slides" if kind == "strut" else "joints"
        unit, faces = cylinder(np.zeros(3), X, THICK.get(kind, THIN) * size)
        bars.append(ElementBar(group, robot, first, second, unit, faces))
    return bars
