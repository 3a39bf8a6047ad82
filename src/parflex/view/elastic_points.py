"""Points of an elastic body at its elastic coordinates: of a beam along its axis, of any other body its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from parflex.bodies.beam import centre_line
from parflex.bodies.elastic import ElasticBody
from parflex.description import schema
from parflex.models.robot import Robot
from parflex.spatial import exponential
from parflex.tree.elements import read_material, read_section
from parflex.tree.tree import Link

Array = np.ndarray


@dataclass(frozen=True)
class BodyPoints:
    """Points at r0 + Phi_d e of a body, turned by exp(hat(Phi_r e)), and the lines between them."""

    r0: Array  # n x 3
    Phi_d: Array  # n x 3 x N
    Phi_r: Array  # n x 3 x N
    edges: list[tuple[int, int]]
    kind: str  # beam | plate

    def displaced(self, e: Array) -> Array:
        """Places of the points in the axes of the body."""
        return self.r0 + self.Phi_d @ e

    def turned(self, e: Array) -> Array:
        """Rotation matrices of what is attached at the points."""
        return np.array([exponential(turn) for turn in self.Phi_r @ e])


def points_of_body(robot: Robot, link: Link, stations: int) -> BodyPoints:
    """Points that show an elastic body; a beam of several elements has about `stations` of them."""
    beam = beam_of(robot, link)
    if beam is not None:
        return beam_points(robot, link, beam, stations)
    body: ElasticBody = link.body
    nodes = list(body.nodes.values())
    return BodyPoints(
        np.array([node.r0 for node in nodes]).reshape(-1, 3),
        np.array([node.Phi_d for node in nodes]).reshape(len(nodes), 3, body.size),
        np.nan_to_num(np.array([node.Phi_r for node in nodes]).reshape(len(nodes), 3, body.size)),
        [],
        "plate",
    )


def beam_of(robot: Robot, link: Link) -> schema.Beam | None:
    """The table of the beam that a link is an element of."""
    name, tables = link.name, {frame.name: frame.beam for frame in robot.description.frame}
    while name not in tables and "." in name:
        name = name.rpartition(".")[0]
    return tables.get(name) if isinstance(link.body, ElasticBody) and set(link.body.nodes) == {"tip"} else None


def beam_points(robot: Robot, link: Link, beam: schema.Beam, stations: int) -> BodyPoints:
    """Stations along one element of a beam, with the shape functions of its model."""
    length = float(link.body.nodes["tip"].r0[0])
    elements = max(1, round(beam.length / length))
    count = max(3, (stations - 1) // elements + 1)
    material = read_material(robot.description.materials[beam.material])
    section = read_section(robot.description.sections[beam.section], beam.shear_coefficient)
    xi = np.linspace(0.0, 1.0, count)
    Phi_d, Phi_r = centre_line(length, material, section, beam.shear, beam.roll, xi)
    used = [("ux", "uy", "uz", "rx", "ry", "rz").index(label) for label in link.body.labels]
    r0 = np.outer(xi * length, [1.0, 0.0, 0.0])
    return BodyPoints(r0, Phi_d[:, :, used], Phi_r[:, :, used], list(pairwise(range(count))), "beam")
