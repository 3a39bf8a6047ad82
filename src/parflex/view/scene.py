"""The scene of a robot as arrays: bars, beams, joints, couplings.

A few merged meshes have vertices that follow the configuration. Beams and plates have the size of their sections, links
and strokes their lengths; the size of the whole robot determines the thickness of rigid links and the size of joints.
Triangles never change, only vertices: scenes of two configurations can be subtracted, and an update sends one array per
mesh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from parflex.closure.constraints import Loop
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.robot import Robot
from parflex.tree.build_elements import read_section
from parflex.tree.tree import GROUND, Link, Place
from parflex.view.meshes import MESHES, placed_meshes
from parflex.view.skeleton import (
    BodyPoints,
    Skeleton,
    beam_of,
    coupled_links,
    coupled_place,
    element_places,
    extent,
    is_platform,
    link_points,
    outline,
    skeleton,
    spanning_lines,
    velocities,
)
from parflex.view.solids import (
    ElementBar,
    Solid,
    along,
    arrow,
    box,
    circle,
    cylinder,
    element_bars,
    hull_solid,
    merged,
    polygon_prism,
    sphere,
    sweep_faces,
)
from parflex.view.style import SOLIDS

Array = np.ndarray

BAR, PIN, MOTOR, BALL, PLATE = 0.009, 0.014, 0.021, 0.015, 0.014  # radii and thickness, of the size of the robot

WHEEL, TOOTH, WIDTH = 0.034, 0.007, 0.012  # radius, height of teeth and width, of the size of the robot

THREAD, LINE = 0.017, 0.0025  # radii

TEETH, RIDGES = 14, 6

X = np.array([1.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False, repr=False)
class Mesh(Record):
    """A group of things of one colour: where its vertices stand among all, and its triangles."""

    name: str
    vertices: slice
    faces: Array
    colour: tuple[int, int, int]
    closed: bool  # all its triangles look outwards, and none is seen from behind


@dataclass(frozen=True)
class Scene:
    """A robot as meshes; `vertices(q)` places them."""

    robot: Robot
    skeleton: Skeleton
    parts: tuple[Part, ...]
    meshes: tuple[Mesh, ...]
    size: float

    @cached_property
    def _fixed(self) -> tuple[Array, Array, Array]:
        """Of all vertices that are fixed to a link: their numbers, links and places."""
        numbers, links, places, start = [], [], [], 0
        for part in self.parts:
            if isinstance(part, Fixed):
                numbers.append(np.arange(start, start + part.count))
                links.append(np.full(part.count, part.link))
                places.append(part.local)
            start += part.count
        return np.concatenate(numbers), np.concatenate(links), np.concatenate(places)

    @cached_property
    def _moving(self) -> list[tuple[slice, Part]]:
        starts = np.cumsum([0, *(part.count for part in self.parts)])
        return [
            (slice(int(a), int(a) + part.count), part)
            for a, part in zip(starts[:-1], self.parts, strict=True)
            if not isinstance(part, Fixed)
        ]

    def vertices(self, q: Array, at: Pose | None = None) -> Array:
        """World places of all vertices at the positions `q`."""
        at = pose(self.robot.tree, q) if at is None else at
        result = np.empty((sum(part.count for part in self.parts), 3))
        R = np.array([*at.rotation, np.eye(3)])  # the ground is number -1
        P = np.array([*at.position, np.zeros(3)])
        numbers, links, places = self._fixed
        result[numbers] = np.einsum("nij,nj->ni", R[links], places) + P[links]
        for part, body in self._moving:
            result[part] = body.placed(q) @ R[body.link].T + P[body.link]
        return result

    def shape(self, q: Array, rates: Array) -> Array:
        """How all vertices move in a mode, the largest displacement of the robot's own points being 1."""
        displacements = velocities(self.robot, self.vertices, q, rates)
        bones = velocities(self.robot, self.skeleton.points, q, rates)
        largest = float(np.linalg.norm(bones[self.skeleton.body], axis=1).max(initial=0.0))
        return displacements / (largest or 1.0)

    def bounds(self, q: Array) -> tuple[Array, Array]:
        """Lowest and highest corner of the box around the robot."""
        points = self.vertices(q)
        return points.min(axis=0), points.max(axis=0)


def scene(robot: Robot) -> Scene:
    """The meshes that show a robot."""
    bones = skeleton(robot)
    size = extent(bones.points(robot.home)[bones.body])
    parts = sorted(parts_of(robot, bones, size), key=lambda part: list(SOLIDS).index(part.group))
    meshes, start = [], 0
    for name, colour in SOLIDS.items():
        group_parts = [part for part in parts if part.group == name]
        count = sum(part.count for part in group_parts)
        if count:
            offsets = np.cumsum([0, *(part.count for part in group_parts)])
            faces = np.concatenate([part.faces + a for part, a in zip(group_parts, offsets[:-1], strict=True)])
            closed = name != MESHES and not any(
                isinstance(part, Sheet) and not part.body.thickness for part in group_parts
            )
            meshes.append(Mesh(name, slice(start, start + count), faces, colour, closed))
            start += count
    return Scene(robot, bones, tuple(parts), tuple(meshes), size)


def arrows(starts: Array, vectors: Array, size: float) -> tuple[Array, Array]:
    """Arrows as one mesh, the longest a quarter of the size of the robot."""
    longest = float(np.linalg.norm(vectors, axis=1).max(initial=0.0))
    if not longest:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=int)
    scale = 0.25 * size / longest
    shown = np.linalg.norm(vectors, axis=1) > 0.01 * longest
    pairs = zip(starts[shown], vectors[shown], strict=True)
    return merged(arrow(start, scale * vector, 0.006 * size) for start, vector in pairs)


def reaction_arrows(robot: Robot, q: Array, reactions: Mapping[str, Mapping[str, Mapping]]) -> tuple[Array, Array]:
    """Places (n x 3) and forces (n x 3), in world axes, of the reactions in joints and closures."""
    tree, at = robot.tree, pose(robot.tree, q)
    places, forces = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for name, reaction in reactions["joints"].items():
        j = tree.number(name)
        places.append(at.position[j][None, :])
        forces.append((at.rotation[j] @ np.array(reaction["force"], dtype=float))[None, :])
    for loop in robot.closures.loops:
        R1, _ = at.of(loop.first)
        _, point = at.of(loop.second)
        places.append(point[None, :])
        forces.append((R1 @ np.array(reactions["closures"][loop.name]["force"], dtype=float))[None, :])
    return np.concatenate(places), np.concatenate(forces)


class Part(Protocol):
    """A solid in the axes of a link, at given positions."""

    @property
    def group(self) -> str:
        """The mesh that it belongs to."""

    @property
    def link(self) -> int:
        """The link that carries it."""

    @property
    def faces(self) -> Array:
        """Its triangles."""

    @property
    def count(self) -> int:
        """Number of its vertices."""

    def placed(self, q: Array) -> Array:
        """Its vertices in the axes of the link."""


@dataclass(frozen=True, eq=False, repr=False)
class Fixed(Record):
    """A solid that is fixed to a link."""

    group: str
    link: int
    local: Array
    faces: Array

    @property
    def count(self) -> int:
        """Number of its vertices."""
        return len(self.local)

    def placed(self, q: Array) -> Array:
        """Its vertices in the axes of the link."""
        return self.local


@dataclass(frozen=True, eq=False, repr=False)
class Rod(Record):
    """A rod from the root of a slide to its carriage: as long as the stroke."""

    group: str
    link: int
    at_carriage: Array
    per_stroke: Array
    faces: Array
    coordinate: int

    @property
    def count(self) -> int:
        """Number of its vertices."""
        return len(self.at_carriage)

    def placed(self, q: Array) -> Array:
        """Its vertices in the axes of the carriage."""
        return self.at_carriage + self.per_stroke * q[self.coordinate]


@dataclass(frozen=True, eq=False, repr=False)
class Swept(Record):
    """A beam: its section carried along its deformed axis."""

    group: str
    link: int
    body: BodyPoints
    ring: Array  # corners of the section, k x 3, in the axes of the body
    coordinates: slice

    @cached_property
    def faces(self) -> Array:
        """Its triangles."""
        return sweep_faces(len(self.body.r0), len(self.ring))

    @property
    def count(self) -> int:
        """Number of its vertices."""
        return (len(self.body.r0) + 2) * len(self.ring)

    def placed(self, q: Array) -> Array:
        """Its vertices in the axes of the root."""
        e = q[self.coordinates]
        turns, places = self.body.turned(e), self.body.displaced(e)
        corners = np.einsum("nij,kj->nki", turns, self.ring) + places[:, None, :]
        rings = np.concatenate([corners, corners[:1], corners[-1:]])
        return rings.reshape(-1, 3)


@dataclass(frozen=True)
class Sheet:
    """A plate whose middle is a surface through nodes: its two faces and the rim between them; or a solid's surface."""

    group: str
    link: int
    body: BodyPoints
    coordinates: slice

    @cached_property
    def rim(self) -> Array:
        """Edges that belong to one triangle only (m x 2)."""
        t = self.body.triangles
        edges = np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]])
        _, first, count = np.unique(np.sort(edges, axis=1), axis=0, return_index=True, return_counts=True)
        return edges[first[count == 1]]

    @cached_property
    def faces(self) -> Array:
        """Its triangles."""
        t, n = self.body.triangles, len(self.body.r0)
        if not self.body.thickness:
            return t
        k = 2 * n + 4 * np.arange(len(self.rim))[:, None]
        walls = np.concatenate([k + np.array([0, 2, 1]), k + np.array([1, 2, 3])])
        return np.concatenate([t, t[:, ::-1] + n, walls])

    @property
    def count(self) -> int:
        """Number of its vertices."""
        return 2 * len(self.body.r0) + 4 * len(self.rim) if self.body.thickness else len(self.body.r0)

    def placed(self, q: Array) -> Array:
        """Its vertices in the axes of the body."""
        e = q[self.coordinates]
        middle = self.body.displaced(e)
        if not self.body.thickness:
            return middle
        t = self.body.triangles[0]
        normal = np.cross(self.body.r0[t[1]] - self.body.r0[t[0]], self.body.r0[t[2]] - self.body.r0[t[0]])
        offset = self.body.turned(e) @ (normal / np.linalg.norm(normal)) * self.body.thickness / 2
        top, bottom = middle + offset, middle - offset
        a, b = self.rim.T
        walls = np.stack([top[a], top[b], bottom[a], bottom[b]], axis=1).reshape(-1, 3)
        return np.concatenate([top, bottom, walls])


def parts_of(robot: Robot, bones: Skeleton, size: float) -> list[Part]:
    """All parts of a robot whose largest extent is `size`."""
    parts: list[Part] = []
    motors = {robot.tree.link_of_rate[k] for k in robot.actuated}
    for j, link in enumerate(robot.tree.links):
        if link.strut:
            continue
        parts += _body(robot, j, size)
        parts += _joint(link, j, size, j in motors)
        if link.joint.unit == "m":
            parts += _slide(robot, link, j, size, j in motors)
    for j, _, body in bones.elastic:
        link = robot.tree.links[j]
        if body.kind == "beam":
            parts.append(Swept("beams", j, body, section_ring(robot, link), link.e))
        elif len(body.triangles):
            parts.append(Sheet("platform" if is_platform(link) else "beams", j, body, link.e))
        elif len(body.r0) > 1:
            ring = circle(BAR * size, 16) @ along(body.r0[-1] - body.r0[0])[:, :2].T
            parts.append(Swept("beams", j, body, ring, link.e))
    for loop in robot.closures.loops:
        parts += _closure(robot, loop, size)
    parts += [Fixed("couplings", j, *mark(robot, j, size)) for j in coupled_links(robot)]
    parts += [Fixed(MESHES, link, points, faces) for link, points, faces in placed_meshes(robot)]
    return [*parts, *lines_between(robot, size), *element_bars(robot, size), *_feet(robot, size)]


def section_ring(robot: Robot, link: Link) -> Array:
    """Corners of the outline of a beam's section; one given by numbers is drawn as the rectangle of equal stiffness."""
    beam = beam_of(robot, link)
    assert beam is not None
    table = robot.description.sections[beam.section]
    if table.diameter is not None:
        ring = circle(table.diameter / 2, 16)
    else:
        if table.y is not None and table.z is not None:
            y, z = table.y / 2, table.z / 2
        else:
            section = read_section(table)
            y, z = np.sqrt(3 * section.Iz / section.A), np.sqrt(3 * section.Iy / section.A)  # half sides
        corners = np.array([[y, z], [-y, z], [-y, -z], [y, -z]])
        ring = np.repeat(corners, 2, axis=0)  # twice each, so that edges look sharp
    c, s = np.cos(beam.roll), np.sin(beam.roll)
    return np.column_stack([np.zeros(len(ring)), ring @ np.array([[c, s], [-s, c]])])


def _body(robot: Robot, j: int, size: float) -> list[Part]:
    """A platform as the hull of its points, any other rigid link as bars between them."""
    link, points = robot.tree.links[j], link_points(robot, j)
    group = "platform" if is_platform(link) else "links"
    if is_platform(link) and len(outline(points)) > 2:
        return [Fixed(group, j, *hull_solid(points, PLATE * size, 1.6 * PIN * size))]
    return [
        Fixed(group, j, *cylinder(points[a], points[b], BAR * size))
        for a, b in spanning_lines(points)
        if np.linalg.norm(points[a] - points[b]) > 1e-3 * size
    ]


def _joint(link: Link, j: int, size: float, motor: bool) -> list[Part]:
    """A pin along the axis, a ball for a spherical joint; motors are thicker."""
    group = "motors" if motor else "joints"
    zero = np.zeros(3)
    if link.joint.unit == "rad":
        axis = np.eye(3)[link.joint.axis]
        return [Fixed(group, j, *_pin(zero, axis, (MOTOR if motor else PIN) * size))]
    if link.joint.quaternion and not link.joint.moves_freely:
        return [Fixed(group, j, *sphere(zero, BALL * size))]
    return []


def _pin(centre: Array, axis: Array, radius: float) -> Solid:
    return cylinder(centre - 1.5 * radius * axis, centre + 1.5 * radius * axis, radius)


def runs_on_rail(robot: Robot, link: Link, size: float) -> bool:
    """Whether a slide is a carriage on a rail: it has no stroke at home."""
    return link.joint.unit == "m" and not link.strut and abs(float(robot.home[link.q.start])) < 0.2 * size


def _slide(robot: Robot, link: Link, j: int, size: float, motor: bool) -> list[Part]:
    """A sleeve where the slide begins, and a rod from there to what it carries; without a stroke, a rail."""
    axis, stroke = np.eye(3)[link.joint.axis], float(robot.home[link.q.start])
    group = "motors" if motor else "joints"
    direction = link.rotation @ axis * np.sign(stroke or 1.0)
    sleeve = 0.5 * abs(stroke)
    if runs_on_rail(robot, link, size):
        low, high = link.limits or (stroke - 0.4 * size, stroke + 0.4 * size)
        middle = link.position + link.rotation @ axis * (low + high) / 2
        rail = box(middle, link.rotation, np.where(axis > 0, high - low, 0.9 * MOTOR * size))
        block = box(np.zeros(3), np.eye(3), np.where(axis > 0, 3.2 * MOTOR * size, 2.4 * MOTOR * size))
        return [Fixed("slides", link.parent, *rail), Fixed(group, j, *block)]
    tube = cylinder(link.position, link.position + sleeve * direction, 1.5 * BAR * size)
    unit, faces = cylinder(np.zeros(3), axis, 0.8 * BAR * size)
    lengthwise = np.outer(unit @ axis, axis)
    outward = faces[:, ::-1] if stroke > 0 else faces  # from the carriage back to the root: a mirrored bar
    parts: list[Part] = [Fixed(group, link.parent, *tube)]
    return [*parts, Rod("slides", j, unit - lengthwise, -lengthwise, outward, link.q.start)]


def _closure(robot: Robot, loop: Loop, size: float) -> list[Part]:
    """What ties two links: a pin, a cross, a ball, or a face that a point slides on."""
    first, second = loop.first, loop.second
    axis = first.rotation @ loop.u1 if not robot.tree.planar else _plane_normal(robot, first)
    match loop.kind:
        case "revolute" | "cylindrical":
            return [Fixed("joints", first.link, *_pin(first.position, axis, PIN * size))]
        case "universal":
            cross = second.rotation @ loop.u2
            return [
                Fixed("joints", first.link, *_pin(first.position, axis, PIN * size)),
                Fixed("joints", second.link, *_pin(second.position, cross, PIN * size)),
            ]
        case "point-on-plane" | "planar":
            side = 0.16 * size
            foot = _foot(robot, loop)
            face = box(foot, along(axis), np.array([side, side, 0.006 * size]))
            arm = [cylinder(np.zeros(3), foot, BAR * size)] if first.link != GROUND else []
            return [
                Fixed("platform", first.link, *merged([face, *arm])),
                Fixed("joints", second.link, *sphere(second.position, BALL * size)),
            ]
        case _:
            return [Fixed("joints", second.link, *sphere(second.position, BALL * size))]


def _foot(robot: Robot, loop: Loop) -> Array:
    """Where the point of the second link stands at home, in the axes of the first."""
    at = pose(robot.tree, robot.home)
    _, point = at.of(loop.second)
    if loop.first.link == GROUND:
        return point
    return at.rotation[loop.first.link].T @ (point - at.position[loop.first.link])


def _plane_normal(robot: Robot, place: Place) -> Array:
    """The z axis of the world in the axes of a link of a planar robot; it is the same in every pose."""
    if place.link == GROUND:
        return np.array([0.0, 0.0, 1.0])
    return pose(robot.tree, robot.home).rotation[place.link].T @ np.array([0.0, 0.0, 1.0])


def _feet(robot: Robot, size: float) -> list[Part]:
    """Blocks where the robot stands on the ground, or hangs from it."""
    feet = [
        link.position
        for link in robot.tree.links
        if link.parent == GROUND and not is_platform(link) and link.node is None and not link.strut
    ]
    feet += [place.position for _, *ends in element_places(robot) for place in ends if place.link == GROUND]
    feet += [
        place.position for loop in robot.closures.loops for place in (loop.first, loop.second) if place.link == GROUND
    ]
    middle = float(np.mean(pose(robot.tree, robot.home).position, axis=0)[2])
    solids = []
    for foot in feet:
        away = np.array([0.0, 0.0, 1.0 if foot[2] > middle + 0.02 * size else -1.0])
        solids.append(cylinder(foot, foot + 2.2 * MOTOR * size * away, 0.9 * MOTOR * size, 2.0 * MOTOR * size))
    return [Fixed("ground", GROUND, *merged(solids))] if solids else []


def mark(robot: Robot, j: int, size: float) -> Solid:
    """The mark on a coupled joint, in the axes of its link: a toothed wheel that turns with it, or a thread."""
    joint = robot.tree.links[j].joint
    axis = np.eye(3)[joint.axis]
    if joint.unit == "m":
        steps = np.linspace(-2.5, 2.5, RIDGES) * WIDTH * size
        half = 0.35 * WIDTH * size * axis
        return merged(cylinder(step * axis - half, step * axis + half, THREAD * size) for step in steps)
    angles = np.arange(4 * TEETH) * np.pi / (2 * TEETH)
    radii = (WHEEL + TOOTH * np.tile([0.0, 1.0, 1.0, 0.0], TEETH)) * size
    outline = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)
    vertices, faces = polygon_prism(outline, -WIDTH * size / 2, WIDTH * size / 2)
    return vertices @ along(axis).T, faces


def lines_between(robot: Robot, size: float) -> list[ElementBar]:
    """A thin bar from the joint of each coupling to each of the others."""
    bars = []
    for coupling in robot.description.coupling:
        for other in coupling.others:
            first, second = (coupled_place(robot, name) for name in (coupling.joint, other))
            unit, faces = cylinder(np.zeros(3), X, LINE * size)
            bars.append(ElementBar("couplings", robot, first, second, unit, faces))
    return bars
