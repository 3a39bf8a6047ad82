"""What a viewer shows of a robot, as plain arrays: a few merged meshes whose vertices follow the configuration.

Beams and plates have the size of their sections, links and strokes their lengths; what the robot file does not say, the
thickness of rigid links and the size of joints, follows from the size of the whole robot. Triangles never change, only
vertices do: pictures of two configurations can be subtracted, and an update sends one array a mesh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.robot import Robot
from parflex.view.figures.style import SOLIDS
from parflex.view.scene.elastic_points import BodyPoints
from parflex.view.scene.mesh_parts import MESHES
from parflex.view.scene.parts import Fixed, Part, Sheet, parts_of
from parflex.view.scene.skeleton import ModeShape, Skeleton, extent, mode_shape_points, skeleton, velocities
from parflex.view.scene.solids import arrow, merged

__all__ = ["BodyPoints", "Mesh", "ModeShape", "Scene", "arrows", "mode_shape_points", "scene"]
Array = np.ndarray


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
        found = velocities(self.robot, self.vertices, q, rates, self.size)
        bones = velocities(self.robot, self.skeleton.points, q, rates, self.size)
        largest = float(np.linalg.norm(bones, axis=1).max(initial=0.0))
        return found / (largest or 1.0)

    def bounds(self, q: Array) -> tuple[Array, Array]:
        """Lowest and highest corner of the box around the robot."""
        points = self.vertices(q)
        return points.min(axis=0), points.max(axis=0)


def scene(robot: Robot) -> Scene:
    """The meshes that show a robot."""
    bones = skeleton(robot)
    size = extent(bones.points(robot.home))
    parts = sorted(parts_of(robot, bones, size), key=lambda part: list(SOLIDS).index(part.group))
    meshes, start = [], 0
    for name, colour in SOLIDS.items():
        own = [part for part in parts if part.group == name]
        count = sum(part.count for part in own)
        if count:
            offsets = np.cumsum([0, *(part.count for part in own)])
            faces = np.concatenate([part.faces + a for part, a in zip(own, offsets[:-1], strict=True)])
            closed = name != MESHES and not any(isinstance(part, Sheet) and not part.body.thickness for part in own)
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
    for name, found in reactions["joints"].items():
        j = tree.number(name)
        places.append(at.position[j][None, :])
        forces.append((at.rotation[j] @ np.array(found["force"], dtype=float))[None, :])
    for loop in robot.closures.loops:
        R1, _ = at.of(loop.first)
        _, point = at.of(loop.second)
        places.append(point[None, :])
        forces.append((R1 @ np.array(reactions["closures"][loop.name]["force"], dtype=float))[None, :])
    return np.concatenate(places), np.concatenate(forces)
