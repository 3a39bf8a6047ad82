"""The parts of a robot as solids: bars, beams, slides, plates, joints, motors, couplings and feet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from parflex.closure.constraints import Loop
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.tree.build_elements import read_section
from parflex.tree.tree import GROUND, Link, Place
from parflex.view.figures.style import SOLIDS as GROUPS
from parflex.view.scene.coupling_parts import coupled_links, lines_between, mark
from parflex.view.scene.elastic_points import BodyPoints, beam_of
from parflex.view.scene.element_parts import element_places, ties
from parflex.view.scene.mesh_parts import MESHES, placed_meshes
from parflex.view.scene.skeleton import Skeleton, is_platform, link_points, outline, spanning_lines
from parflex.view.scene.solids import Solid, along, ball, box, circle, cylinder, hull_solid, merged, sweep_faces

__all__ = ["GROUPS", "Fixed", "Part", "parts_of"]
Array = np.ndarray
BAR, PIN, MOTOR, BALL, PLATE = 0.009, 0.014, 0.021, 0.015, 0.014  # radii and thickness, of the size of the robot


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
    return [*parts, *lines_between(robot, size), *ties(robot, size), *_feet(robot, size)]


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
        return [Fixed(group, j, *ball(zero, BALL * size))]
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
    way = link.rotation @ axis * np.sign(stroke or 1.0)
    sleeve = 0.5 * abs(stroke)
    if runs_on_rail(robot, link, size):
        low, high = link.limits or (stroke - 0.4 * size, stroke + 0.4 * size)
        middle = link.position + link.rotation @ axis * (low + high) / 2
        rail = box(middle, link.rotation, np.where(axis > 0, high - low, 0.9 * MOTOR * size))
        block = box(np.zeros(3), np.eye(3), np.where(axis > 0, 3.2 * MOTOR * size, 2.4 * MOTOR * size))
        return [Fixed("slides", link.parent, *rail), Fixed(group, j, *block)]
    tube = cylinder(link.position, link.position + sleeve * way, 1.5 * BAR * size)
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
                Fixed("joints", second.link, *ball(second.position, BALL * size)),
            ]
        case _:
            return [Fixed("joints", second.link, *ball(second.position, BALL * size))]


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
