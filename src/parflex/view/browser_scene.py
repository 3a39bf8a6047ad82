"""The scene in the browser: meshes sent once and then moved, ghost, arrows, marks and camera."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.recursion.kinematics import pose
from parflex.spatial.rotations import matrix_quaternion
from parflex.tree.tree import Tree
from parflex.view.colours import BEAMS, MapPoints
from parflex.view.meshes import MESHES
from parflex.view.scene import Scene
from parflex.view.skeleton import coupling_labels
from parflex.view.style import GHOST, REACTION, SOLIDS, STRESSES, UNREACHABLE

Array = np.ndarray
SPARE = 256  # points of a map are a multiple of this: a few more or less need no new point cloud
PLAIN = {"cast_shadow": False, "receive_shadow": False}


class Stage:
    """What stands in the page of a server."""

    scene: Scene

    def __init__(self, server: Any, marked: Sequence[str] = ()) -> None:
        self.server, self.marked = server, list(marked)
        server.scene.configure_environment_map(hdri=None)
        # one sun and the sky: browsers without a graphics card pay for every light at every pixel
        server.scene.configure_default_lights(enabled=False, cast_shadow=False)
        server.scene.add_light_directional("/sun", color=(255, 255, 255), intensity=2.0, position=(0.5, -1.0, 1.5))
        sky = {"sky_color": (255, 255, 255), "ground_color": (170, 175, 190)}
        server.scene.add_light_hemisphere("/light", **sky, intensity=2.2)
        self.meshes: dict[str, Any] = {}
        self.sent: dict[str, Array] = {}  # vertices of each mesh in the browser
        self.coloured: list[Any] = []  # beams in colours of their stress, in place of their mesh
        self.axes: dict[str, Any] = {}  # of the end effector and marked frames
        self.labels: dict[str, Any] = {}  # of marked frames and couplings
        self.ghost: Any = None
        self.arrows: Any = None
        self.mark: Any = None
        self.map: Any = None

    def build(self, scene: Scene, q: Array) -> None:
        """Put a robot on the stage in place of the one before."""
        for word in ("ghost", "arrows", "mark"):
            self._remove(word)
        for handle in [*self.coloured, *self.labels.values(), *self.axes.values(), *self.meshes.values()]:
            handle.remove()
        self.meshes, self.sent, self.coloured, self.axes, self.labels = {}, {}, [], {}, {}
        self.scene, tree, add = scene, scene.robot.tree, self.server.scene
        low, high = scene.bounds(q)
        self._floor(low, high)
        vertices = scene.vertices(q)
        for mesh in scene.meshes:
            self.meshes[mesh.name] = add.add_mesh_simple(
                f"/robot/{mesh.name}", vertices[mesh.vertices], mesh.faces, color=mesh.colour,
                flat_shading=mesh.name == MESHES, side="front" if mesh.closed else "double", **PLAIN,
            )  # fmt: skip
        marked = [name for name in self.marked if _has(tree, name)]
        for k, (name, length) in enumerate([(tree.end_effector, 0.07), *((name, 0.05) for name in marked)]):
            size = {"axes_length": length * scene.size, "axes_radius": length * scene.size / 17}
            self.axes[name] = add.add_frame(f"/frames/{k}", **size)
            if k:
                self.labels[f"frame {name}"] = add.add_label(f"/frames/{k}/name", name)
        for name in coupling_labels(scene.robot, q):
            self.labels[name] = add.add_label(f"/couplings/{name}", name)
        self.move(vertices)
        self.place_axes(q)
        self._camera(low, high)

    def follow(self, scene: Scene, q: Array, vertices: Array) -> None:
        """Show a robot with other numbers: move vertices if the triangles are the same, else build it anew."""
        old = list(self.meshes)
        same = [mesh.name for mesh in scene.meshes] == old and all(
            mesh.vertices == before.vertices and np.array_equal(mesh.faces, before.faces)
            for mesh, before in zip(scene.meshes, self.scene.meshes, strict=True)
        )
        if not same:
            self.build(scene, q)
            return
        self.scene = scene
        self.move(vertices)
        self.place_axes(q)

    def _floor(self, low: Array, high: Array) -> None:
        size = self.scene.size
        cell = 10.0 ** np.floor(np.log10(size / 2))
        side = cell * np.ceil(1.8 * size / cell)
        fine = side / cell < 8
        x, y, _ = np.round((low + high) / 2 / cell) * cell
        self.server.scene.add_grid(
            "/floor", width=side, height=side, plane="xy", position=(x, y, low[2] - 0.02 * size),
            cell_size=cell / 2 if fine else cell, section_size=cell if fine else 5 * cell,
            cell_color=(226, 229, 234), section_color=(204, 209, 217),
        )  # fmt: skip

    def _camera(self, low: Array, high: Array) -> None:
        flat = (high - low)[2] < 0.2 * self.scene.size
        direction = np.array([0.0, -0.42, 0.72]) if flat else np.array([0.46, -0.74, 0.34])
        middle = (low + high) / 2
        camera = self.server.initial_camera
        camera.position = tuple(middle + np.linalg.norm(high - low) * direction)
        camera.look_at = tuple(middle)

    def move(self, vertices: Array) -> None:
        """Send the vertices of the meshes that moved."""
        with self.server.atomic():
            for mesh in self.scene.meshes:
                moved = np.asarray(vertices[mesh.vertices], dtype=np.float32)
                if mesh.name not in self.sent or not np.array_equal(moved, self.sent[mesh.name]):
                    for handle in (self.meshes[mesh.name], *(self.coloured if mesh.name == BEAMS else ())):
                        handle.vertices = moved
                    self.sent[mesh.name] = moved

    def place_axes(self, q: Array) -> None:
        """Place the axes of the end effector and of marked frames, and the labels of couplings."""
        tree = self.scene.robot.tree
        at = pose(tree, q)
        for name, axes in self.axes.items():
            rotation, position = at.of(tree.places[name])
            axes.position, axes.wxyz = position, matrix_quaternion(rotation)
        for name, place in coupling_labels(self.scene.robot, q).items():
            self.labels[name].position = tuple(place)

    def name_couplings(self, efforts: Mapping[str, str]) -> None:
        """Write the names of couplings, with an effort where one is known."""
        for coupling in self.scene.robot.description.coupling:
            name = coupling.name
            self.labels[name].text = f"{name}: {efforts[name]}" if name in efforts else name

    def show_ghost(self, vertices: Array | None) -> None:
        """Show a pale copy of the robot, or none."""
        self._remove("ghost")
        if vertices is not None:
            faces = np.concatenate([mesh.faces + mesh.vertices.start for mesh in self.scene.meshes])
            style = {"color": GHOST, "opacity": 0.25, "side": "double", **PLAIN}
            self.ghost = self.server.scene.add_mesh_simple("/ghost", vertices, faces, **style)

    def show_arrows(self, vertices: Array, faces: Array) -> None:
        """Show arrows of forces, or none."""
        self._remove("arrows")
        if len(faces):
            self.arrows = self.server.scene.add_mesh_simple("/reactions", vertices, faces, color=REACTION, **PLAIN)

    def show_mark(self, place: Array | None) -> None:
        """Show a red ball at a position that the end effector cannot reach, or none."""
        self._remove("mark")
        if place is not None:
            style = {"radius": 0.025 * self.scene.size, "color": UNREACHABLE, "opacity": 0.7, **PLAIN}
            self.mark = self.server.scene.add_icosphere("/unreachable", position=tuple(place), **style)

    def _remove(self, word: str) -> None:
        handle = getattr(self, word)
        if handle is not None:
            handle.remove()
            setattr(self, word, None)

    def colour_beams(self, levels: list[Array] | None) -> None:
        """Show triangles of each colour of stress, then beams of unknown stress; None: beams of one colour."""
        if BEAMS not in self.meshes:
            return
        self.meshes[BEAMS].visible = levels is None
        if levels is None:
            for handle in self.coloured:
                handle.remove()
            self.coloured = []
            return
        with self.server.atomic():
            for k, (faces, colour) in enumerate(zip(levels, (*STRESSES, SOLIDS[BEAMS]), strict=True)):
                shown = faces if len(faces) else np.zeros((1, 3), dtype=int)  # a triangle of one point is invisible
                if len(self.coloured) > k:
                    self.coloured[k].faces = shown
                    continue
                style = {"color": colour, "side": self.meshes[BEAMS].side, **PLAIN}
                handle = self.server.scene.add_mesh_simple(f"/stress/{k}", self.sent[BEAMS], shown, **style)
                self.coloured.append(handle)

    def show_map(self, shown: MapPoints | None) -> None:
        """Show points of a map in their colours, or none."""
        if shown is None:
            self._remove("map")
            return
        count, size = len(shown.points), 0.6 * shown.spacing
        there = 0 if self.map is None else len(self.map.points)
        room = there if there >= count else -(-count // SPARE) * SPARE
        spare = (0, room - count), (0, 0)  # filled with the last point again
        points, colours = (np.pad(array, spare, "edge") for array in (shown.points, shown.colours.astype(np.uint8)))
        if room > there:
            self.map = self.server.scene.add_point_cloud("/map", points, colours, point_size=size)
        else:
            self.map.points, self.map.colors, self.map.point_size = points, colours, size


def _has(tree: Tree, name: str) -> bool:
    """Whether a robot, read again from a changed file, still has a frame or a place."""
    try:
        return name in tree.places
    except InputError:
        return False
