"""The skeleton of a robot: points of its bodies and lines between them at any configuration.

A point belongs to a body: on a rigid body it has fixed coordinates, on an elastic one it moves with the elastic
coordinates by shape functions. The set of points and lines does not depend on the configuration, so skeletons of two
configurations can be subtracted, scaled and played.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from parflex.bodies.beam import BeamElement
from parflex.bodies.elastic import LineNodes, Node
from parflex.bodies.modal import load_modal
from parflex.closure.constraints import Loop
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot, file_frame
from parflex.robotfile import schema
from parflex.spatial.rotations import hat
from parflex.tree.tree import GROUND, Link, Place

Array = np.ndarray

E3 = np.eye(3)
OUT = 0.02  # of the size of a plate: points farther from its plane stand out of it
TOGETHER = 1e-9  # of the size of the robot: points nearer than that are one
PARALLEL = 1e-6  # sine of the angle between axes that are one to rounding
TURNING = {"revolute", "universal", "spherical"}
AXIS, RAIL = 0.05, 0.25  # of the size of the robot: length of an axis, half length of a rail without limits
STATIONS = 13  # points along a beam, however many elements it has
MOST_NODES = 600  # that are drawn of a body given by modes
FLAT = 1e-6  # of the size of a body: what is thinner is a row or a sheet of nodes


class Edge(NamedTuple):
    """A line between two points of a link."""

    first: int
    second: int
    kind: str  # link | beam | sleeve | slide | rail | platform | plate | element | bar | ...
    link: int


class Face(NamedTuple):
    """The polygon of a rigid body, of an elastic platform, or of a plane on which a point slides."""

    corners: tuple[int, ...]
    kind: str  # link | platform | plate | plane
    link: int


class Mark(NamedTuple):
    """A joint, a clamp, a foot on the ground or the end effector, at a point; `axes` are points along its axes."""

    kind: str  # revolute | universal | spherical | prismatic | clamp | ground | end
    point: int
    axes: tuple[int, ...] = ()
    motor: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Skeleton(Record):
    """Points by the body that they are on, their coordinates there, and what is drawn between them."""

    robot: Robot
    link: Array  # of each point; -1 is the ground
    r0: Array  # n x 3, in the axes of the link
    edges: tuple[Edge, ...]
    elastic: tuple[tuple[int, slice, BodyPoints], ...]  # link, its points, how they move
    faces: tuple[Face, ...]
    marks: tuple[Mark, ...]

    @cached_property
    def body(self) -> list[int]:
        """Numbers of the points of bodies and joints: without rails, planes and points along axes."""
        ends = {k for edge in self.edges if edge.kind != "rail" for k in edge[:2]}
        return sorted(ends | {mark.point for mark in self.marks})

    def points(self, q: Array, at: Pose | None = None) -> Array:
        """Return the world positions of all points (n x 3, m) at the positions `q`."""
        at = pose(self.robot.tree, q) if at is None else at
        local = self.r0.copy()
        for j, part, body in self.elastic:
            local[part] = body.displaced(q[self.robot.tree.links[j].e])
        return in_world(at, self.link, local)


@dataclass(frozen=True, eq=False, repr=False)
class ModeShape(Record):
    """A mode as plain arrays: the undeformed `points` move to `points + amplitude * shape`.

    The largest displacement of `shape` is 1, so an amplitude is a length. `edges` are pairs of point numbers, `size` is
    the largest extent of the robot.
    """

    points: Array
    shape: Array
    edges: Array
    size: float


def skeleton(robot: Robot) -> Skeleton:
    """Return the points and lines that show a robot."""
    return _Builder(robot).build()


def mode_shape_points(robot: Robot, configuration: Configuration, mode: Array) -> ModeShape:
    """Return how the points of a robot move in a mode: a column of `shapes`, over the rates of all coordinates."""
    bones = skeleton(robot)
    points = bones.points(configuration.q)
    shape = velocities(robot, bones.points, configuration.q, mode)
    largest = float(np.linalg.norm(shape[bones.body], axis=1).max(initial=0.0))
    edges = np.array([edge[:2] for edge in bones.edges], dtype=int).reshape(-1, 2)
    return ModeShape(points, shape / (largest or 1.0), edges, extent(points[bones.body]))


def in_world(at: Pose, links: Array, local: Array) -> Array:
    """Return the world positions (m) of points in the axes of their links; -1 is the ground."""
    R, P = np.array([*at.rotation, np.eye(3)]), np.array([*at.position, np.zeros(3)])
    return np.einsum("nij,nj->ni", R[links], local) + P[links]


def extent(points: Array) -> float:
    """Return the longest side of the box around points."""
    return float(np.ptp(points, axis=0).max()) if len(points) else 1.0


def velocities(robot: Robot, places: Any, q: Array, rates: Array) -> Array:
    """Return velocities of places that a function gives for positions, in a motion with these rates.

    By central differences: with a step that moves things by 1e-5 of their size both its errors are near 1e-10.
    """
    tree = robot.tree
    fastest = float(np.abs(np.asarray(rates) / tree.rate_units).max(initial=0.0))
    if not fastest:
        return np.zeros_like(places(q))
    step = 1e-5 / fastest
    ahead, behind = (places(tree.moved(q, sign * step * np.asarray(rates))) for sign in (1.0, -1.0))
    return (ahead - behind) / (2 * step)


def spanning_lines(points: Array, tied: Sequence[int] = (0,)) -> list[tuple[int, int]]:
    """Return the shortest lines that tie all points to those that are tied already, one after the other."""
    tied, lines = list(tied), []
    distances = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    while remaining := sorted(set(range(len(points))) - set(tied)):
        _, i, j = min((distances[i, j], i, j) for i in tied for j in remaining)
        lines.append((i, j))
        tied.append(j)
    return lines


def outline(points: Array) -> Array:
    """Return numbers of the corners of the convex polygon around points, in order, in their plane of best fit.

    None if the points lie on a line.
    """
    from scipy.spatial import ConvexHull

    centred = points - points.mean(axis=0)
    _, sizes, across = np.linalg.svd(centred, full_matrices=True)
    if len(points) < 3 or sizes[1] < 1e-6 * sizes[0]:
        return np.zeros(0, dtype=int)
    return ConvexHull(centred @ across[:2].T).vertices


def rim(triangles: Array) -> Array:
    """Return the numbers of the points on the rim of a sheet, in order: edges of one triangle only."""
    directed = {(int(t[k]), int(t[k - 2])) for t in triangles for k in range(3)}
    following = {i: j for i, j in directed if (j, i) not in directed}
    loop = [next(iter(following))]
    while following[loop[-1]] != loop[0]:
        loop.append(following[loop[-1]])
    return np.array(loop)


def in_plane(points: Array, corners: Array) -> list[int]:
    """Return numbers of the points that lie in the plane of a polygon of some of them."""
    middle = points[corners].mean(axis=0)
    normal = np.linalg.svd(points[corners] - middle)[2][2]
    out = np.abs((points - middle) @ normal) > OUT * np.ptp(points, axis=0).max()
    return [i for i in range(len(points)) if i in corners or not out[i]]


def is_platform(link: Link) -> bool:
    """Whether a link is a body that no joint carries."""
    return link.joint.moves_freely


def link_points(robot: Robot, number: int) -> Array:
    """Return points of a link, in its axes: its joint, joints and loops that it carries, the end effector.

    What sits on a node of its elastic body is not among them. The origin of a rod that slides out of a moving sleeve is
    a point only if nothing else is.
    """
    tree, loops = robot.tree, robot.closures.loops
    used = [place for loop in loops for place in (loop.first, loop.second)] + [tree.places[tree.end_effector]]
    used += [place for _, *ends in element_places(robot) for place in ends]
    points = [child.position for child in tree.links if child.parent == number and child.node is None]
    points += [place.position for place in used if place.link == number]
    if number != GROUND and not (points and slides_out(robot, tree.links[number])):
        points = [np.zeros(3), *points]
    unique: list[Array] = []
    for point in points:
        if not any(np.linalg.norm(point - other) < TOGETHER * tree.length for other in unique):
            unique.append(point)
    return np.array(unique).reshape(-1, 3)


def slides_out(robot: Robot, link: Link) -> bool:
    """Whether a link is a rod in a sleeve, not a carriage on a rail.

    On the ground rods are links that carry no joint and whose limits exclude the stroke zero.
    """
    if link.joint.unit != "m" or link.strut or not robot.home[link.q.start]:
        return False
    low, high = link.limits or (0.0, 0.0)
    carries = any(child.parent == robot.tree.number(link.name) for child in robot.tree.links)
    return link.parent != GROUND or (low * high > 0 and not carries)


def element_places(robot: Robot) -> list[tuple[str, Place, Place]]:
    """Return kind and ends of each element of a robot."""
    places = robot.tree.places
    return [(e.kind, places[e.between[0]], places[e.between[1]]) for e in robot.description.element]


def coupled_links(robot: Robot) -> list[int]:
    """Return links on coupled joints, each once; struts and cables are lines, and need no mark."""
    tree = robot.tree
    names = dict.fromkeys(
        name for coupling in robot.description.coupling for name in (coupling.joint, *coupling.others)
    )
    return [number for name in names if not tree.links[number := tree.number(name)].strut]


def coupled_place(robot: Robot, name: str) -> Place:
    """Return the place of a coupled joint: its link; of a strut or a cable, its first end."""
    number = robot.tree.number(name)
    if not robot.tree.links[number].strut:
        return Place(number, np.eye(3), np.zeros(3))
    element = next(entry for entry in robot.description.element if entry.name == name)
    return robot.tree.places[element.between[0]]


def coupling_labels(robot: Robot, q: Array) -> dict[str, Array]:
    """Return the place of the name of each coupling: half way between its joint and the first of the others."""
    at = pose(robot.tree, q)
    joints = {coupling.name: (coupling.joint, coupling.others[0]) for coupling in robot.description.coupling}
    return {
        name: np.mean([at.of(coupled_place(robot, joint))[1] for joint in pair], axis=0)
        for name, pair in joints.items()
    }


class _Builder:
    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.arm = AXIS * robot.tree.length
        self.at_home = pose(robot.tree, robot.home)
        self.numbers: list[int] = []
        self.places: list[Array] = []
        self.edges: list[Edge] = []
        self.faces: list[Face] = []
        self.marks: list[Mark] = []
        self.planes: list[tuple[Place, Array, list[Array]]] = []  # normals and points in the axes of a place
        self.elastic: list[tuple[int, slice, BodyPoints]] = []

    def build(self) -> Skeleton:
        robot, tree = self.robot, self.robot.tree
        held = {*robot.actuated, *robot.locked}  # motors of a model whose motors are locked are motors
        motors = {j for j, link in enumerate(tree.links) if held & set(range(link.v.start, link.v.stop))}
        for j, link in enumerate(tree.links):
            if not link.strut:
                self._body(j, link)
                self._joint(j, link, j in motors)
        for loop in robot.closures.loops:
            self._closure(loop)
        for plane in self.planes:
            self._plane(*plane)
        for element, (kind, *ends) in zip(robot.description.element, element_places(robot), strict=True):
            first, second = (self._end(end) for end in ends)
            name = "bar" if kind in ("rod", "strut", "cable") else "element"
            self.edges.append(Edge(first, second, name, max(end.link for end in ends)))
            self.marks += [Mark("ground", k) for k, end in zip((first, second), ends, strict=True) if end.link < 0]
            if element.name in {tree.links[j].name for j in motors}:
                self.marks.append(Mark("prismatic", first, (second,), True))
        for coupling in robot.description.coupling:
            places = [coupled_place(robot, name) for name in (coupling.joint, *coupling.others)]
            first, *others = (self._end(place) for place in places)
            self.edges += [Edge(first, other, "coupling", places[0].link) for other in others]
        self.marks.append(Mark("end", self._end(tree.places[tree.end_effector])))
        local, links = np.array(self.places).reshape(-1, 3), np.array(self.numbers, dtype=int)
        bones = Skeleton(robot, links, local, tuple(self.edges), tuple(self.elastic), tuple(self.faces), ())
        return replace(bones, marks=_merged(self.marks, bones.points(robot.home, self.at_home), tree.length))

    def _add(self, link: int, points: Array) -> int:
        start = len(self.places)
        self.numbers += [link] * len(points)
        self.places += list(points)
        return start

    def _end(self, end: Place, offset: Array | float = 0.0) -> int:
        """Add the origin of a place, or a point at an offset in its axes; inside a body it moves with that body."""
        shift = end.position + end.rotation @ (offset * np.ones(3))
        if end.inner is None:
            return self._add(end.link, shift[None, :])
        node = end.inner.node
        arm = node.Phi_d - hat(shift) @ node.Phi_r
        start = self._add(end.link, (node.r0 + shift)[None, :])
        point = BodyPoints((node.r0 + shift)[None], arm[None], node.Phi_r[None], [], "beam")
        self.elastic.append((end.link, slice(start, start + 1), point))
        return start

    def _tie(self, link: int, start: int, pairs: Any, kind: str) -> None:
        self.edges += [Edge(start + int(i), start + int(j), kind, link) for i, j in pairs]

    def _body(self, j: int, link: Link) -> None:
        points = link_points(self.robot, j)
        self.first, self.count = first, _ = self._add(j, points), len(points)
        if link.body.size:
            body = points_of_body(self.robot, link, STATIONS)
            start = self._add(j, body.r0)
            self.elastic.append((j, slice(start, start + len(body.r0)), body))
            self._tie(j, start, body.edges, body.kind)
            if len(body.triangles):
                corners = rim(body.triangles) if body.thickness else outline(body.r0)
                self.faces.append(Face(tuple(start + corners), "plate", j))
        corners = outline(points)
        kind = "platform" if is_platform(link) else "link"
        if len(corners) < 3:
            self._tie(j, first, spanning_lines(points), kind)
            return
        kind = "plate" if link.body.size else kind
        stalks = spanning_lines(points, in_plane(points, corners))
        self._tie(j, first, [*zip(corners, np.roll(corners, -1), strict=True), *stalks], kind)
        if not link.body.size:
            self.faces.append(Face(tuple(first + corners), kind, j))

    def _joint(self, j: int, link: Link, motor: bool) -> None:
        joint, first = link.joint, self.first
        mounted = Place(link.parent, link.rotation, link.position)
        on_ground = link.parent == GROUND and not joint.moves_freely
        if joint.kind == "fixed":
            rigid = link.parent == GROUND or not self.robot.tree.links[link.parent].body.size
            if link.body.size and rigid and link.node is None:
                self.marks.append(Mark("clamp", first, (self._add(j, np.array([[self.arm, 0.0, 0.0]])),)))
        elif joint.unit == "m":
            axis = E3[joint.axis]
            stroke = float(self.robot.home[link.q.start])
            if slides_out(self.robot, link):
                root, middle = self._end(mounted), self._end(mounted, 0.5 * stroke * axis)
                arm = self._end(mounted, (0.5 * stroke + self.arm) * axis)
                rod = [abs(point @ axis + 0.5 * stroke) for point in self.places[first : first + self.count]]
                self.edges.append(Edge(root, middle, "sleeve", link.parent))
                self.edges.append(Edge(middle, first + int(np.argmin(rod)), "slide", j))
                self.marks.append(Mark("prismatic", middle, (arm,), motor))
                self.marks += [Mark("ground", root)] * on_ground
                return
            reach = RAIL * self.robot.tree.length
            low, high = link.limits or (stroke - reach, stroke + reach)
            start, end = self._end(mounted, low * axis), self._end(mounted, high * axis)
            self.edges.append(Edge(start, end, "rail", link.parent))
            self.marks.append(Mark("prismatic", first, (self._add(j, self.arm * axis[None, :]),), motor))
            return
        elif joint.quaternion and not joint.moves_freely:
            self.marks.append(Mark("spherical", first, (), motor))
        elif joint.one_axis:
            self.marks.append(Mark("revolute", first, (self._add(j, self.arm * E3[[joint.axis]]),), motor))
        if on_ground:
            self.marks.append(Mark("ground", first if joint.kind == "fixed" else self._end(mounted)))

    def _closure(self, loop: Loop) -> None:
        first, second = loop.first, loop.second
        self.marks += [Mark("ground", self._end(end)) for end in (first, second) if end.link == GROUND]
        point = self._end(second)
        if loop.kind in ("revolute", "cylindrical", "universal"):
            R = self.at_home.of(first)[0]
            u1 = R.T @ E3[2] if self.robot.tree.planar else loop.u1
            axes = [self._end(first, self.arm * u1)]
            if loop.kind == "universal":
                axes.append(self._end(second, self.arm * loop.u2))
            self.marks.append(Mark("revolute" if len(axes) < 2 else "universal", self._end(first), tuple(axes)))
        elif loop.kind == "welded":
            self.marks.append(Mark("clamp", point))
        else:
            self.marks.append(Mark("spherical", point))
        if loop.kind in ("point-on-plane", "planar"):
            self._touch(loop)

    def _touch(self, loop: Loop) -> None:
        """Add a point to the plane on which it slides; loops with one plane share it."""
        point, axes = self.at_home.of(loop.second)[1], self.at_home.of(loop.first)[0]
        for place, normal, feet in self.planes:
            R, p = self.at_home.of(place)
            foot, tilt = R.T @ (point - p), np.cross(normal, R.T @ axes @ loop.u1)
            near = abs((foot - feet[0]) @ normal) < TOGETHER * self.robot.tree.length
            if place.link == loop.first.link and near and np.linalg.norm(tilt) < PARALLEL:
                feet.append(foot)
                return
        self.planes.append((loop.first, loop.u1, [axes.T @ (point - self.at_home.of(loop.first)[1])]))

    def _plane(self, place: Place, normal: Array, feet: list[Array]) -> None:
        """Draw a rectangle around the points at home that slide on a plane, and the origin of its place."""
        length = self.robot.tree.length
        across = np.linalg.svd(normal[None, :])[2][1:]
        contains_origin = abs(feet[0] @ normal) < TOGETHER * length
        flat, margin = np.array(feet) @ across.T, RAIL / 2 * length
        (x0, y0), (x1, y1) = flat.min(axis=0) - margin, flat.max(axis=0) + margin
        if contains_origin:
            x0, y0, x1, y1 = min(x0, 0.0), min(y0, 0.0), max(x1, 0.0), max(y1, 0.0)
        corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]) @ across + feet[0] @ normal * normal
        self.faces.append(Face(tuple(self._end(place, corner) for corner in corners), "plane", place.link))
        if place.link != GROUND and not contains_origin:
            middle = self._end(place, np.mean(feet, axis=0))
            self.edges.append(Edge(self._end(place), middle, "platform", place.link))


def _merged(marks: Sequence[Mark], points: Array, size: float) -> tuple[Mark, ...]:
    """Return joints at one place as one mark: two axes make a universal joint, more of them a spherical one."""
    result: list[Mark] = []
    for mark in marks:
        same = [
            (k, other)
            for k, other in enumerate(result)
            if np.linalg.norm(points[other.point] - points[mark.point]) < TOGETHER * size
            and (other.kind == mark.kind or {other.kind, mark.kind} <= TURNING)
        ]
        if not same:
            result.append(mark)
            continue
        k, other = same[0]
        axes = list(other.axes)
        directions = [points[axis] - points[other.point] for axis in axes]
        for axis in mark.axes:
            arm = points[axis] - points[mark.point]
            if all(np.linalg.norm(np.cross(arm, known)) > PARALLEL * (known @ known) for known in directions):
                axes.append(axis)
                directions.append(arm)
        ball = "spherical" in (other.kind, mark.kind) or len(axes) > 2
        kind = "spherical" if ball else "universal" if len(axes) == 2 else other.kind
        kind = kind if mark.kind in TURNING else mark.kind
        result[k] = Mark(kind, other.point, tuple(axes), other.motor or mark.motor)
    return tuple(result)


@dataclass(frozen=True, eq=False, repr=False)
class BodyPoints(Record):
    """Points at r0 + Phi_d e of a body, turned by exp(hat(Phi_r e)), and the lines between them."""

    r0: Array  # n x 3
    Phi_d: Array  # n x 3 x N
    Phi_r: Array  # n x 3 x N
    edges: list[tuple[int, int]]
    kind: str  # beam | plate
    triangles: Array = field(default_factory=lambda: np.zeros((0, 3), dtype=int))  # of a surface through the points
    thickness: float = 0.0  # of a plate whose middle the points are

    def displaced(self, e: Array) -> Array:
        """Return places of the points in the axes of the body."""
        return self.r0 + self.Phi_d @ e

    def turned(self, e: Array) -> Array:
        """Return rotation matrices of what is attached at the points."""
        turns = self.Phi_r @ e
        angle = np.linalg.norm(turns, axis=1)[:, None, None]
        hats = np.cross(np.eye(3)[None], turns[:, None, :])  # rows e_i x turn make the matrix of turn x
        first, second = np.sinc(angle / np.pi), 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
        return np.eye(3) + first * hats + second * (hats @ hats)


def points_of_body(robot: Robot, link: Link, stations: int) -> BodyPoints:
    """Return points that show an elastic body; a beam of several elements has about `stations` of them."""
    beam = beam_of(robot, link)
    if beam is not None:
        return beam_points(robot, link, beam, stations)
    tables = {frame.name: frame.modal for frame in (*robot.description.frame, robot.description.platform) if frame}
    table = tables.get(link.name)
    if table is not None:
        return modal_points(table)
    body = link.body
    nodes = list(body.nodes.values())
    if body.found is not None:  # what is held by its frame is held there
        still = np.zeros((3, body.size))
        nodes = [Node(np.zeros(3), still, still), *nodes]
    return BodyPoints(
        np.array([node.r0 for node in nodes]).reshape(-1, 3),
        np.array([node.Phi_d for node in nodes]).reshape(len(nodes), 3, body.size),
        np.array([node.Phi_r for node in nodes]).reshape(len(nodes), 3, body.size),
        [] if body.found is None else [(0, k) for k in range(1, len(nodes))],
        "plate",
    )


def modal_points(table: schema.Modal) -> BodyPoints:
    """Return nodes of a body given by modes, in a row, on a sheet or around a solid; of very many nodes some."""
    data = load_modal(table.file)
    data = data if table.modes is None else data.with_modes(table.modes)
    n = len(data.nodes)
    first = np.arange(len(data.interface))
    chosen = np.unique(np.concatenate([first, np.arange(0, n, -(-n // MOST_NODES))]))
    nodes, shapes = data.nodes[chosen], np.nan_to_num(data.shapes[:, chosen])
    middle = nodes.mean(axis=0)
    _, sizes, across = np.linalg.svd(nodes - middle, full_matrices=True)
    extents = np.concatenate([sizes, np.zeros(3)])[:3]
    thickness, triangles = 0.0, np.zeros((0, 3), dtype=int)
    if extents[1] < FLAT * extents[0]:
        order = np.argsort((nodes - middle) @ across[0])
        nodes, shapes = nodes[order], shapes[:, order]
        edges = list(pairwise(range(len(nodes))))
    else:
        thickness = data.thickness if extents[2] < FLAT * extents[0] else 0.0
        triangles = _surface(nodes, (nodes - middle) @ across.T, extents[2] < FLAT * extents[0])
        pairs = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
        edges = [(int(i), int(j)) for i, j in np.unique(pairs, axis=0)]
    Phi = np.moveaxis(shapes, 0, 2)
    return BodyPoints(nodes, Phi[:, :3], Phi[:, 3:], edges, "plate", triangles, thickness)


def _surface(nodes: Array, along: Array, flat: bool) -> Array:
    """Return triangles over a sheet, all with normals to one side, or around a solid, with normals outwards."""
    from scipy.spatial import ConvexHull, Delaunay

    if not flat:
        hull = ConvexHull(nodes)
        normals, corners = hull.equations[:, :3], nodes[hull.simplices]
        faces = hull.simplices
    else:
        faces = Delaunay(along[:, :2]).simplices
        corners = np.column_stack([along[:, :2], np.zeros(len(along))])[faces]
        normals = np.array([0.0, 0.0, 1.0])
    turned = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(turned, axis=1)
    inward = np.sum(turned * normals, axis=1) < 0
    faces = np.where(inward[:, None], faces[:, ::-1], faces)
    return faces[area > 1e-9 * area.max()]


def beam_of(robot: Robot, link: Link) -> schema.Beam | None:
    """Return the table of the beam that a link is an element of."""
    name = file_frame(robot, link.name)
    tables = (frame.beam for frame in robot.description.frame if frame.name == name)
    return next(tables, None) if link.body.by_tip else None


@lru_cache(maxsize=64)
def _shapes(line: LineNodes, count: int) -> tuple[Array, Array, Array]:
    """Return places and motions of so many sections of an element; many elements of a robot are identical."""
    return line.shapes(np.linspace(0.0, 1.0, count))


def beam_points(robot: Robot, link: Link, beam: schema.Beam, stations: int) -> BodyPoints:
    """Return stations along one element of a beam by its shape functions, or along all of a reduced beam."""
    line = link.body.inner
    assert isinstance(line, LineNodes)
    if isinstance(line, BeamElement):
        elements = max(1, round(beam.length / float(link.body.nodes["tip"].r0[0])))
        stations = max(3, (stations - 1) // elements + 1)
    return BodyPoints(*_shapes(line, stations), list(pairwise(range(stations))), "beam")
