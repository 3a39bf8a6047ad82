"""The scene of a robot as arrays: bars, beams, joints, couplings.

A few merged meshes have vertices that follow the configuration. Beams and plates have the size of their sections, links
and strokes their lengths; the size of the whole robot determines the thickness of rigid links and the size of joints.
Triangles never change, only vertices: scenes of two configurations can be subtracted, and an update sends one array per
mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.robot import Robot
from parflex.tree.build_elements import read_section
from parflex.tree.tree import GROUND, Link
from parflex.view.meshes import MESHES, placed_meshes
from parflex.view.skeleton import (
    BodyPoints,
    Edge,
    Mark,
    Skeleton,
    beam_of,
    coupled_links,
    extent,
    in_world,
    is_platform,
    rim,
    skeleton,
    velocities,
)
from parflex.view.solids import SIDES, along, arrow, box, circle, cylinder, hull_solid, merged, sphere, tube, tube_faces
from parflex.view.style import SOLIDS

Array = np.ndarray
Place = Callable[[Array, Array], Array]

# Radii and thicknesses, of the size of the robot
BAR, PIN, MOTOR, BALL, PLATE, PLANE, WHEEL = 0.009, 0.014, 0.021, 0.015, 0.014, 0.006, 0.034
BARS = {"slide": 0.0072, "sleeve": 0.0135, "bar": 0.006, "element": 0.003, "coupling": 0.0025}
GROUPS = {"platform": "platform", "plate": "platform", "rail": "slides", "sleeve": "joints", "slide": "slides",
          "coupling": "couplings", "element": "joints", "bar": "joints", "plane": "platform"}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Mesh(Record):
    """A group of parts of one colour: its range of vertices, and its triangles."""

    name: str
    vertices: slice
    faces: Array
    colour: tuple[int, int, int]
    closed: bool  # all its triangles look outwards, and none is seen from behind


@dataclass(frozen=True, eq=False, repr=False)
class Part(Record):
    """A solid of a link: its vertices in the axes of the link and its triangles; `place` moves what deforms."""

    group: str
    link: int
    local: Array
    faces: Array
    place: Place | None = None  # of positions and points of the skeleton
    along: Array | None = None  # of a beam: share of its length at each vertex
    closed: bool = True

    @property
    def count(self) -> int:
        """Number of its vertices."""
        return len(self.local)


@dataclass(frozen=True)
class Scene:
    """A robot as meshes; `vertices(q)` places them."""

    robot: Robot
    skeleton: Skeleton
    parts: tuple[Part, ...]
    meshes: tuple[Mesh, ...]
    size: float

    @cached_property
    def _fixed(self) -> tuple[Array, Array]:
        """Link of each vertex, and its place in the axes of the link."""
        links = np.repeat([part.link for part in self.parts], [part.count for part in self.parts])
        return links, np.concatenate([part.local for part in self.parts])

    @cached_property
    def _moving(self) -> list[tuple[slice, Place]]:
        ends = np.cumsum([part.count for part in self.parts]).tolist()
        pairs = zip(ends, self.parts, strict=True)
        return [(slice(end - part.count, end), part.place) for end, part in pairs if part.place is not None]

    def vertices(self, q: Array, at: Pose | None = None) -> Array:
        """Return the world positions of all vertices at the positions `q` (m)."""
        at = pose(self.robot.tree, q) if at is None else at
        points = self.skeleton.points(q, at)
        links, local = self._fixed
        local = local.copy()
        for part, place in self._moving:
            local[part] = place(q, points)
        return in_world(at, links, local)

    def shape(self, q: Array, rates: Array) -> Array:
        """Return displacements of all vertices in a mode, the largest one of the robot's own points being 1."""
        bones = velocities(self.robot, self.skeleton.points, q, rates)
        largest = float(np.linalg.norm(bones[self.skeleton.body], axis=1).max(initial=0.0))
        return velocities(self.robot, self.vertices, q, rates) / (largest or 1.0)

    def bounds(self, q: Array) -> tuple[Array, Array]:
        """Return the lowest and the highest corner of the box around the robot."""
        points = self.vertices(q)
        return points.min(axis=0), points.max(axis=0)


def scene(robot: Robot) -> Scene:
    """Return the meshes that show a robot."""
    bones = skeleton(robot)
    size = extent(bones.points(robot.home)[bones.body])
    parts: list[Part] = []
    meshes, start = [], 0
    everything = _parts(robot, bones, size)
    for name, colour in SOLIDS.items():
        group = [part for part in everything if part.group == name]
        vertices, faces = merged((part.local, part.faces) for part in group)
        if group:
            closed = all(part.closed for part in group)
            meshes.append(Mesh(name, slice(start, start + len(vertices)), faces, colour, closed))
            parts += group
            start += len(vertices)
    return Scene(robot, bones, tuple(parts), tuple(meshes), size)


def _parts(robot: Robot, bones: Skeleton, size: float) -> list[Part]:
    """Return all parts of a robot whose largest extent is `size`."""
    motors = {mark.point for mark in bones.marks if mark.motor}
    plates = {link for link, _, body in bones.elastic if len(body.triangles)}
    faced = {face.link for face in bones.faces if face.kind == "platform"}
    parts = [
        _line(bones, edge, size, motors)
        for edge in bones.edges
        if edge.kind not in ("beam", "plate") and not (edge.kind == "platform" and edge.link in faced)
    ]
    for face in bones.faces:
        thickness, margin = (PLANE, 0.0) if face.kind == "plane" else (PLATE, 1.6 * PIN)
        if face.link not in plates:
            solid = hull_solid(bones.r0[list(face.corners)], thickness * size, margin * size)
            parts.append(Part(GROUPS.get(face.kind, "links"), face.link, *solid))
    here = bones.points(robot.home)
    middle = float(here[bones.body, 2].mean())
    for mark in bones.marks:
        parts += _joint(bones, mark, here, size, middle)
    for j, _, body in bones.elastic:
        link = robot.tree.links[j]
        if len(body.triangles):
            parts.append(_sheet(link, j, body))
        elif len(body.r0) > 1:
            thin = circle(BAR * size, 16) @ along(body.r0[-1] - body.r0[0])[:, :2].T
            parts.append(_swept(link, j, body, section_ring(robot, link) if body.kind == "beam" else thin))
    for j in coupled_links(robot):  # a wheel of a revolute joint, a nut of a prismatic one
        joint = robot.tree.links[j].joint
        radius, share = (WHEEL * size, 0.2) if joint.unit == "rad" else (0.5 * WHEEL * size, 0.6)
        half = share * radius * np.eye(3)[joint.axis]
        parts.append(Part("couplings", j, *cylinder(-half, half, radius, sides=10)))
    return [*parts, *(Part(MESHES, link, points, faces, closed=False) for link, points, faces in placed_meshes(robot))]


def _line(bones: Skeleton, edge: Edge, size: float, motors: set[int]) -> Part:
    """Return a rail as a box, another edge as a bar; the bar between two bodies follows both."""
    first, second, kind, link = edge
    group, radius = GROUPS.get(kind, "links"), BARS.get(kind, BAR) * size
    group = "motors" if kind in ("sleeve", "bar") and motors & {first, second} else group
    ends = bones.r0[[first, second]]
    if kind == "rail":
        direction = ends[1] - ends[0]
        sides = np.array([1.8 * MOTOR * size, 1.8 * MOTOR * size, np.linalg.norm(direction)])
        return Part("ground" if link == GROUND else group, link, *box(ends.mean(axis=0), along(direction), sides))
    if bones.link[first] == bones.link[second]:
        return Part(group, link, *cylinder(ends[0], ends[1], radius))

    def place(_: Array, points: Array) -> Array:
        return cylinder(points[first], points[second], radius)[0]

    return Part(group, GROUND, np.zeros((4 * SIDES, 3)), tube_faces(2, SIDES), place)


def _swept(link: Link, number: int, body: BodyPoints, ring: Array) -> Part:
    """Return a beam: its section (k x 3, in its axes) carried along its deformed axis."""

    def place(q: Array, _: Array) -> Array:
        rotations, places = body.turned(q[link.e]), body.displaced(q[link.e])
        return tube(np.einsum("nij,kj->nki", rotations, ring) + places[:, None, :])[0]

    stations = np.linalg.norm(body.r0 - body.r0[0], axis=1)
    shares = np.repeat(np.concatenate([stations, stations[:1], stations[-1:]]) / stations[-1], len(ring))
    faces = tube_faces(len(body.r0), len(ring))
    return Part("beams", number, np.zeros((len(shares), 3)), faces, place, shares)


def _sheet(link: Link, number: int, body: BodyPoints) -> Part:
    """Return a plate whose middle is a surface through nodes, with the walls of its rim; or a solid's surface."""
    t, n = body.triangles, len(body.r0)
    group = "platform" if is_platform(link) else "beams"
    if not body.thickness:
        return Part(group, number, body.r0, t, lambda q, _: body.displaced(q[link.e]), closed=False)
    a = rim(t)
    b = np.roll(a, -1)
    k = 2 * n + 4 * np.arange(len(a))[:, None]
    faces = np.concatenate([t, t[:, ::-1] + n, k + np.array([0, 2, 1]), k + np.array([1, 2, 3])])
    first = body.r0[t[0]]
    normal = np.cross(first[1] - first[0], first[2] - first[0])
    normal *= body.thickness / 2 / np.linalg.norm(normal)

    def place(q: Array, _: Array) -> Array:
        middle, offset = body.displaced(q[link.e]), body.turned(q[link.e]) @ normal
        top, bottom = middle + offset, middle - offset
        walls = np.stack([top[a], top[b], bottom[a], bottom[b]], axis=1).reshape(-1, 3)
        return np.concatenate([top, bottom, walls])

    return Part(group, number, np.zeros((2 * n + 4 * len(a), 3)), faces, place)


def section_ring(robot: Robot, link: Link) -> Array:
    """Return corners of a beam's section; one given by numbers is drawn as the rectangle of equal stiffness."""
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


def _joint(bones: Skeleton, mark: Mark, here: Array, size: float, middle: float) -> list[Part]:
    """Return a pin along each axis, a ball, a block on a rail or a foot; those of motors are thicker."""
    group, link, centre = "motors" if mark.motor else "joints", int(bones.link[mark.point]), bones.r0[mark.point]
    foot = here[mark.point]
    match mark.kind:
        case "revolute" | "universal":
            at, radius = pose(bones.robot.tree, bones.robot.home), (MOTOR if mark.motor else PIN) * size
            parts: list[Part] = []
            for axis in mark.axes:  # each on the body that it is fixed to
                carrier = int(bones.link[axis])
                R, p = (at.rotation[carrier], at.position[carrier]) if carrier >= 0 else (np.eye(3), np.zeros(3))
                half = 1.5 * radius * (here[axis] - foot) / np.linalg.norm(here[axis] - foot)
                parts.append(Part(group, carrier, *cylinder((foot - p - half) @ R, (foot - p + half) @ R, radius)))
            return parts
        case "prismatic" if bones.link[mark.axes[0]] == link:
            direction = bones.r0[mark.axes[0]] - centre
            return [Part(group, link, *box(centre, along(direction), np.array([2.4, 2.4, 3.2]) * MOTOR * size))]
        case "spherical":
            return [Part(group, link, *sphere(centre, BALL * size))]
        case "ground":
            height = np.array([0.0, 0.0, 2.2 * MOTOR * size]) * (1.0 if foot[2] > middle + 0.02 * size else -1.0)
            return [Part("ground", GROUND, *cylinder(foot, foot + height, 0.9 * MOTOR * size, 2.0 * MOTOR * size))]
        case _:
            return []


def arrows(starts: Array, vectors: Array, size: float) -> tuple[Array, Array]:
    """Return arrows as one mesh, the longest a quarter of the size of the robot."""
    lengths = np.linalg.norm(vectors, axis=1)
    longest = float(lengths.max(initial=0.0))
    shown = lengths > 0.01 * longest
    pairs = zip(starts[shown], vectors[shown], strict=True)
    return merged(arrow(start, 0.25 * size / longest * vector, 0.006 * size) for start, vector in pairs)


def reaction_arrows(robot: Robot, q: Array, reactions: Mapping[str, Mapping[str, Mapping]]) -> tuple[Array, Array]:
    """Return places (n x 3) and forces (n x 3), in world axes, of the reactions in joints and closures."""
    at = pose(robot.tree, q)
    places, forces = [], []
    for name, reaction in reactions["joints"].items():
        j = robot.tree.number(name)
        places.append(at.position[j])
        forces.append(at.rotation[j] @ np.array(reaction["force"], dtype=float))
    for loop in robot.closures.loops:
        places.append(at.of(loop.second)[1])
        forces.append(at.of(loop.first)[0] @ np.array(reactions["closures"][loop.name]["force"], dtype=float))
    return np.array(places).reshape(-1, 3), np.array(forces).reshape(-1, 3)
