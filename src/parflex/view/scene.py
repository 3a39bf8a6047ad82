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
    Mark,
    Skeleton,
    beam_of,
    coupled_links,
    extent,
    is_platform,
    rim,
    skeleton,
    velocities,
)
from parflex.view.solids import (
    SIDES,
    Solid,
    along,
    arrow,
    box,
    circle,
    cylinder,
    hull_solid,
    merged,
    sphere,
    sweep_faces,
    unit_bar,
)
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
    def _rest(self) -> tuple[Array, Array]:
        """Link of each vertex, and its place in the axes of the link."""
        links = np.repeat([part.link for part in self.parts], [part.count for part in self.parts])
        return links, np.concatenate([part.local for part in self.parts])

    @cached_property
    def _moving(self) -> list[tuple[slice, Place]]:
        ends = np.cumsum([part.count for part in self.parts])
        slices = (slice(end - part.count, end) for end, part in zip(ends.tolist(), self.parts, strict=True))
        return [(k, part.place) for k, part in zip(slices, self.parts, strict=True) if part.place is not None]

    def vertices(self, q: Array, at: Pose | None = None) -> Array:
        """Return the world positions of all vertices at the positions `q` (m)."""
        at = pose(self.robot.tree, q) if at is None else at
        points = self.skeleton.points(q, at)
        links, rest = self._rest
        local = rest.copy()
        for part, place in self._moving:
            local[part] = place(q, points)
        R = np.array([*at.rotation, np.eye(3)])  # the ground is number -1
        P = np.array([*at.position, np.zeros(3)])
        return np.einsum("nij,nj->ni", R[links], local) + P[links]

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
            closed = all(part.closed for part in group_parts)
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


def bar(group: str, first: int, second: int, radius: float) -> Part:
    """Return a bar between two points of the skeleton that belong to two bodies."""

    def place(_: Array, points: Array) -> Array:
        return cylinder(points[first], points[second], radius)[0]

    return Part(group, GROUND, *unit_bar(SIDES), place)


def swept(link: Link, number: int, body: BodyPoints, ring: Array) -> Part:
    """Return a beam: its section (k x 3, in its axes) carried along its deformed axis."""

    def place(q: Array, _: Array) -> Array:
        turns, places = body.turned(q[link.e]), body.displaced(q[link.e])
        corners = np.einsum("nij,kj->nki", turns, ring) + places[:, None, :]
        return np.concatenate([corners, corners[:1], corners[-1:]]).reshape(-1, 3)

    stations = np.linalg.norm(body.r0 - body.r0[0], axis=1)
    shares = np.concatenate([stations, stations[:1], stations[-1:]]) / stations[-1]
    local = np.zeros((len(shares) * len(ring), 3))
    return Part("beams", number, local, sweep_faces(len(body.r0), len(ring)), place, np.repeat(shares, len(ring)))


def sheet(link: Link, number: int, body: BodyPoints) -> Part:
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


def parts_of(robot: Robot, bones: Skeleton, size: float) -> list[Part]:
    """Return all parts of a robot whose largest extent is `size`."""
    parts: list[Part] = []
    motors = {mark.point for mark in bones.marks if mark.motor}
    plates = {link for link, _, body in bones.elastic if len(body.triangles)}
    faced = {face.link for face in bones.faces if face.kind == "platform"}
    for edge in bones.edges:
        group = GROUPS.get(edge.kind, "links")
        group = "motors" if edge.kind in ("sleeve", "bar") and motors & set(edge[:2]) else group
        ends = bones.r0[[edge.first, edge.second]]
        if edge.kind in ("beam", "plate") or (edge.kind == "platform" and edge.link in faced):
            continue
        if edge.kind == "rail":
            way = ends[1] - ends[0]
            sides = np.array([1.8 * MOTOR * size, 1.8 * MOTOR * size, np.linalg.norm(way)])
            group = "ground" if edge.link == GROUND else group
            parts.append(Part(group, edge.link, *box(ends.mean(axis=0), along(way), sides)))
        elif bones.link[edge.first] == bones.link[edge.second]:
            parts.append(Part(group, edge.link, *cylinder(ends[0], ends[1], BARS.get(edge.kind, BAR) * size)))
        else:
            parts.append(bar(group, edge.first, edge.second, BARS[edge.kind] * size))
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
            parts.append(sheet(link, j, body))
        elif len(body.r0) > 1:
            thin = circle(BAR * size, 16) @ along(body.r0[-1] - body.r0[0])[:, :2].T
            parts.append(swept(link, j, body, section_ring(robot, link) if body.kind == "beam" else thin))
    parts += [Part("couplings", j, *_wheel(robot.tree.links[j], size)) for j in coupled_links(robot)]
    return [*parts, *(Part(MESHES, link, points, faces, closed=False) for link, points, faces in placed_meshes(robot))]


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


def _joint(bones: Skeleton, mark: Mark, here: Array, size: float, middle: float) -> list[Part]:
    """Return a pin along each axis, a ball, a block on a rail or a foot; those of motors are thicker."""
    group, link, centre = "motors" if mark.motor else "joints", int(bones.link[mark.point]), bones.r0[mark.point]
    match mark.kind:
        case "revolute" | "universal":
            at, radius = pose(bones.robot.tree, bones.robot.home), (MOTOR if mark.motor else PIN) * size
            parts: list[Part] = []
            for axis in mark.axes:  # each on the body that it is fixed to
                carrier = int(bones.link[axis])
                R, p = (at.rotation[carrier], at.position[carrier]) if carrier >= 0 else (np.eye(3), np.zeros(3))
                arm = here[axis] - here[mark.point]
                half = 1.5 * radius * arm / np.linalg.norm(arm)
                at_axis = here[mark.point] - p
                solid = cylinder((at_axis - half) @ R, (at_axis + half) @ R, radius)
                parts.append(Part(group, carrier, *solid))
            return parts
        case "prismatic" if bones.link[mark.axes[0]] == link:
            way = bones.r0[mark.axes[0]] - centre
            return [Part(group, link, *box(centre, along(way), np.array([2.4, 2.4, 3.2]) * MOTOR * size))]
        case "spherical":
            return [Part(group, link, *sphere(centre, BALL * size))]
        case "ground":
            away = np.array([0.0, 0.0, 1.0 if here[mark.point, 2] > middle + 0.02 * size else -1.0])
            foot = here[mark.point]
            solid = cylinder(foot, foot + 2.2 * MOTOR * size * away, 0.9 * MOTOR * size, 2.0 * MOTOR * size)
            return [Part("ground", GROUND, *solid)]
        case _:
            return []


def _wheel(link: Link, size: float) -> Solid:
    """Return the mark on a coupled joint, in the axes of its link: a wheel of a revolute, a nut of a prismatic one."""
    axis = np.eye(3)[link.joint.axis]
    radius, half = (WHEEL, 0.2) if link.joint.unit == "rad" else (0.5 * WHEEL, 0.6)
    return cylinder(-half * radius * size * axis, half * radius * size * axis, radius * size, sides=10)
