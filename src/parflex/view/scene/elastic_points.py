"""Points of an elastic body at its elastic coordinates: of a beam along its axis, of any other body its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np

from parflex.bodies.beam import CentreLine, centre_line
from parflex.bodies.elastic import Node
from parflex.bodies.modal import load_modal
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robotfile import schema
from parflex.tree.build_elements import read_material, read_section
from parflex.tree.tree import Link

Array = np.ndarray
MOST_NODES = 600  # that are drawn of a body given by modes
FLAT = 1e-6  # of the size of a body: what is thinner is a row or a sheet of nodes


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
        """Places of the points in the axes of the body."""
        return self.r0 + self.Phi_d @ e

    def turned(self, e: Array) -> Array:
        """Rotation matrices of what is attached at the points."""
        turns = self.Phi_r @ e
        angle = np.linalg.norm(turns, axis=1)[:, None, None]
        hats = np.cross(np.eye(3)[None], turns[:, None, :])  # rows e_i x turn make the matrix of turn x
        first, second = np.sinc(angle / np.pi), 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
        return np.eye(3) + first * hats + second * (hats @ hats)


def points_of_body(robot: Robot, link: Link, stations: int) -> BodyPoints:
    """Points that show an elastic body; a beam of several elements has about `stations` of them."""
    beam = beam_of(robot, link)
    if beam is not None:
        return beam_points(robot, link, beam, stations)
    table = modal_of(robot, link)
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


def modal_of(robot: Robot, link: Link) -> schema.Modal | None:
    """The table of the modal data of a link."""
    tables = {frame.name: frame.modal for frame in robot.description.frame}
    if robot.description.platform is not None:
        tables[robot.description.platform.name] = robot.description.platform.modal
    return tables.get(link.name)


def modal_points(table: schema.Modal) -> BodyPoints:
    """The nodes of a body given by modes, in a row, on a sheet or around a solid; of very many nodes some."""
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
    """Triangles over a sheet, all looking the same way, or around a solid, looking outwards."""
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
    """The table of the beam that a link is an element of."""
    name, tables = link.name, {frame.name: frame.beam for frame in robot.description.frame}
    while name not in tables and "." in name:
        name = name.rpartition(".")[0]
    return tables.get(name) if link.body.by_tip else None


@lru_cache(maxsize=64)
def _shapes(length: float, Ps: tuple[float, float], roll: float, count: int) -> tuple[Array, Array]:
    """Motions of so many sections of an element: many elements of a robot are alike."""
    return CentreLine(length, Ps, roll).along(np.linspace(0.0, 1.0, count))


def beam_points(robot: Robot, link: Link, beam: schema.Beam, stations: int) -> BodyPoints:
    """Stations along one element of a beam, with the shape functions of its model, or along all of a reduced one."""
    length = float(link.body.nodes["tip"].r0[0])
    if link.body.reduced is not None and link.body.inner is not None:
        nodes = [link.body.inner.node(repr(float(s))) for s in np.linspace(0.0, 1.0, stations)]
        r0, Phi_d, Phi_r = (np.array([getattr(node, key) for node in nodes]) for key in ("r0", "Phi_d", "Phi_r"))
        return BodyPoints(r0, Phi_d, Phi_r, list(pairwise(range(stations))), "beam")
    elements = max(1, round(beam.length / length))
    count = max(3, (stations - 1) // elements + 1)
    xi = np.linspace(0.0, 1.0, count)
    inner = link.body.inner
    if isinstance(inner, CentreLine):
        Phi_d, Phi_r = _shapes(float(inner.length), inner.Ps, inner.roll, count)
    else:
        material = read_material(robot.description.materials[beam.material])
        section = read_section(robot.description.sections[beam.section], beam.shear_coefficient)
        Phi_d, Phi_r = centre_line(length, material, section, beam.shear, beam.roll, xi)
    used = [("ux", "uy", "uz", "rx", "ry", "rz").index(label) for label in link.body.labels]
    r0 = np.outer(xi * length, [1.0, 0.0, 0.0])
    return BodyPoints(r0, Phi_d[:, :, used], Phi_r[:, :, used], list(pairwise(range(count))), "beam")
