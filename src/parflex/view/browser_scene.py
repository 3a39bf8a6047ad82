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
SPARE = 256  # points of a map are a multiple of these, so that some more or less do not make another one
PLAIN = {"cast_shadow": False, "receive_shadow": False}


class Stage:
    """What stands in the page of a server."""

    def __init__(self, server: Any, marked: Sequence[str] = ()) -> None:
        self.server, self.marked = server, list(marked)
        server.scene.configure_environment_map(hdri=None)
        # one sun and the sky: browsers without a graphics card pay for every light at every pixel
        server.scene.configure_default_lights(enabled=False, cast_shadow=False)
        server.scene.add_light_directional("/sun", color=(255, 255, 255), intensity=2.0, position=(0.5, -1.0, 1.5))
        server.scene.add_light_hemisphere(
            "/light", sky_color=(255, 255, 255), ground_color=(170, 175, 190), intensity=2.2
        )
        self.meshes: dict[str, Any] = {}
        self.sent: dict[str, Array] = {}
        self.ghost: Any = None
        self.arrows: Any = None
        self.coloured: list[Any] = []  # beams in colours of their stress, in place of their mesh
        self.mark: Any = None
        self.map: Any = None
        self.tool: Any = None
        self.names: dict[str, Any] = {}  # labels of couplings
        self.frames: dict[str, tuple[Any, Any]] = {}  # axes and label of each frame that is marked
        self.scene: Scene | None = None

    def build(self, scene: Scene, q: Array) -> None:
        """Put a robot on the stage; what stood there is taken away."""
        self._clear()
        self.scene = scene
        low, high = scene.bounds(q)
        self._floor(low, high, scene)
        vertices = scene.vertices(q)
        for mesh in scene.meshes:
            self.meshes[mesh.name] = self.server.scene.add_mesh_simple(
                f"/robot/{mesh.name}", vertices[mesh.vertices], mesh.faces, color=mesh.colour,
                flat_shading=mesh.name == MESHES, side="front" if mesh.closed else "double", **PLAIN,
            )  # fmt: skip
        self.sent = {}
        self.tool = self.server.scene.add_frame("/tool", axes_length=0.07 * scene.size, axes_radius=0.004 * scene.size)
        for name, place in coupling_labels(scene.robot, q).items():
            self.names[name] = self.server.scene.add_label(f"/couplings/{name}", name, position=tuple(place))
        for k, name in enumerate(name for name in self.marked if _has(scene.robot.tree, name)):
            size = {"axes_length": 0.05 * scene.size, "axes_radius": 0.003 * scene.size}
            axes = self.server.scene.add_frame(f"/marked/{k}", **size)
            self.frames[name] = axes, self.server.scene.add_label(f"/marked/{k}/name", name)
        self.move(vertices)
        self.place_tool(q)
        self._camera(low, high, scene)

    def follow(self, scene: Scene, q: Array, vertices: Array) -> None:
        """Show a robot with other numbers: vertices move where triangles are the same, else it is built anew."""
        old = {} if self.scene is None else {mesh.name: mesh for mesh in self.scene.meshes}
        same = [mesh.name for mesh in scene.meshes] == list(old) and all(
            mesh.vertices == old[mesh.name].vertices and np.array_equal(mesh.faces, old[mesh.name].faces)
            for mesh in scene.meshes
        )
        if not same:
            self.build(scene, q)
            return
        self.scene = scene
        self.move(vertices)
        self.place_tool(q)

    def _clear(self) -> None:
        marked = [handle for pair in self.frames.values() for handle in reversed(pair)]
        plain = [*self.coloured, self.ghost, self.arrows, self.mark, self.tool]
        for handle in [*self.meshes.values(), *self.names.values(), *marked, *plain]:
            if handle is not None:
                handle.remove()
        self.names, self.frames, self.coloured = {}, {}, []
        self.meshes, self.ghost, self.arrows, self.mark, self.tool = {}, None, None, None, None

    def _floor(self, low: Array, high: Array, scene: Scene) -> None:
        cell = 10.0 ** np.floor(np.log10(scene.size / 2))
        side = cell * np.ceil(1.8 * scene.size / cell)
        middle = np.round((low + high) / 2 / cell) * cell
        self.server.scene.add_grid(
            "/floor",
            width=side,
            height=side,
            plane="xy",
            cell_size=cell / 2 if side / cell < 8 else cell,
            section_size=cell if side / cell < 8 else 5 * cell,
            cell_color=(226, 229, 234),
            section_color=(204, 209, 217),
            position=(middle[0], middle[1], low[2] - 0.02 * scene.size),
        )

    def _camera(self, low: Array, high: Array, scene: Scene) -> None:
        middle = (low + high) / 2
        reach = float(np.linalg.norm(high - low))
        flat = (high - low)[2] < 0.2 * scene.size
        direction = np.array([0.0, -0.42, 0.72]) if flat else np.array([0.46, -0.74, 0.34])
        camera = self.server.initial_camera
        camera.position = tuple(middle + reach * direction)
        camera.look_at = tuple(middle)

    def move(self, vertices: Array) -> None:
        """Send the vertices of the meshes that moved."""
        assert self.scene is not None
        with self.server.atomic():
            for mesh in self.scene.meshes:
                mesh_vertices = np.asarray(vertices[mesh.vertices], dtype=np.float32)
                if mesh.name not in self.sent or not np.array_equal(mesh_vertices, self.sent[mesh.name]):
                    for handle in (self.meshes[mesh.name], *(self.coloured if mesh.name == BEAMS else ())):
                        handle.vertices = mesh_vertices
                    self.sent[mesh.name] = mesh_vertices

    def place_tool(self, q: Array) -> None:
        """Put the axes of the end effector, marked frames and the names of couplings where they are."""
        assert self.scene is not None
        tree = self.scene.robot.tree
        at = pose(tree, q)
        for name, axes in ((tree.end_effector, self.tool), *((name, pair[0]) for name, pair in self.frames.items())):
            rotation, position = at.of(tree.places[name])
            axes.position, axes.wxyz = position, matrix_quaternion(rotation)
        for name, place in coupling_labels(self.scene.robot, q).items() if self.names else ():
            self.names[name].position = tuple(place)

    def name_couplings(self, efforts: Mapping[str, str]) -> None:
        """Names of the couplings, with an effort where one is known."""
        for name, label in self.names.items():
            label.text = f"{name}: {efforts[name]}" if name in efforts else name

    def show_ghost(self, vertices: Array | None) -> None:
        """A pale copy of the robot at rest, or none."""
        if self.ghost is not None:
            self.ghost.remove()
            self.ghost = None
        if vertices is not None and self.scene is not None:
            faces = np.concatenate([mesh.faces + mesh.vertices.start for mesh in self.scene.meshes])
            self.ghost = self.server.scene.add_mesh_simple(
                "/ghost", vertices, faces, color=GHOST, opacity=0.25, side="double", **PLAIN
            )

    def colour_beams(self, levels: list[Array] | None) -> None:
        """Triangles of each colour of stress, then of beams whose stress is not known; None: as they are."""
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
                shown = faces if len(faces) else np.zeros((1, 3), dtype=int)  # a triangle of one point is not seen
                if len(self.coloured) <= k:
                    self.coloured.append(
                        self.server.scene.add_mesh_simple(
                            f"/stress/{k}", self.sent[BEAMS], shown, color=colour, side=self.meshes[BEAMS].side, **PLAIN
                        )
                    )
                else:
                    self.coloured[k].faces = shown

    def show_arrows(self, vertices: Array, faces: Array) -> None:
        """Arrows of forces, or none."""
        if self.arrows is not None:
            self.arrows.remove()
            self.arrows = None
        if len(faces):
            self.arrows = self.server.scene.add_mesh_simple("/reactions", vertices, faces, color=REACTION, **PLAIN)

    def show_map(self, shown: MapPoints | None) -> None:
        """Points of a map in their colours, or none."""
        if shown is None and self.map is not None:
            self.map.remove()
            self.map = None
        if shown is None:
            return
        count, size = len(shown.points), 0.6 * shown.spacing
        known = 0 if self.map is None else len(self.map.points)
        wide = known if known >= count else -(-count // SPARE) * SPARE
        same = (0, wide - count), (0, 0)  # the last point again in the place of cells that are not there
        points, colours = (np.pad(array, same, "edge") for array in (shown.points, shown.colours.astype(np.uint8)))
        if self.map is None or wide > known:
            self.map = self.server.scene.add_point_cloud("/map", points, colours, point_size=size)
        else:
            self.map.points, self.map.colors, self.map.point_size = points, colours, size

    def show_mark(self, place: Array | None) -> None:
        """A red ball at the requested position if the end effector cannot reach it."""
        if self.mark is not None:
            self.mark.remove()
            self.mark = None
        if place is not None and self.scene is not None:
            self.mark = self.server.scene.add_icosphere(
                "/unreachable",
                radius=0.025 * self.scene.size,
                color=UNREACHABLE,
                opacity=0.7,
                position=tuple(place),
                cast_shadow=False,
                receive_shadow=False,
            )


def _has(tree: Tree, name: str) -> bool:
    """Whether a robot, read again from a changed file, still has a frame or a place."""
    try:
        return name in tree.places
    except InputError:
        return False
