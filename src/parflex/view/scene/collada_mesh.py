"""Triangles of a Collada file (`.dae`): geometries where the nodes of its scene put them, in metres.

The axes are those of the file: `up_axis` turns nothing, as in RViz. Other files (textures) are not opened.
"""

from __future__ import annotations

from itertools import pairwise
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np

Array = np.ndarray
MAX_DEPTH = 60  # of elements, and of nodes in nodes
MAX_ELEMENTS = 200_000
MAX_NODES = 20_000  # of the scene, each counted as often as it is named
MAX_CORNERS = 3_000_000  # of all triangles of the scene: one geometry may stand in many places
MAX_INPUTS = 64  # of a corner: its place, its normal, colours and others
FACES = ("triangles", "polylist", "polygons", "tristrips", "trifans")


def collada_triangles(content: bytes) -> tuple[Array, Array]:
    """Corners and triangles of all geometries in the scene. Raises ValueError for what is no whole file."""
    with np.errstate(all="ignore"):  # what is not finite is found by whoever asked
        parts = _Collada(_document(content)).placed()
    corners = [corners for corners, _ in parts]
    starts = np.cumsum([0, *map(len, corners)])
    faces = [own + start for (_, own), start in zip(parts, starts, strict=False)]
    if not faces:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=int)
    return np.concatenate(corners), np.concatenate(faces)


def _document(content: bytes) -> Element:
    """The root; names without their namespaces. A document type, which may name other files, is refused."""
    parser, stack, count = expat.ParserCreate(namespace_separator=" "), [Element("all")], 0

    def refused(*_: object) -> None:
        raise ValueError

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS or len(stack) > MAX_DEPTH:
            raise ValueError
        element = Element(tag.rpartition(" ")[2], attributes)
        element.text = ""
        stack[-1].append(element)
        stack.append(element)
        parts.append([])

    def end(_: str) -> None:
        stack.pop().text = "".join(parts.pop())

    parts: list[list[str]] = [[]]
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: parts[-1].append(text)
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refused
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError):
        raise ValueError from None
    return stack[0][0]


class _Collada:
    """Elements by their names, and what nodes place."""

    def __init__(self, root: Element) -> None:
        if root.tag != "COLLADA":
            raise ValueError
        self.root, self.corners, self.nodes = root, 0, 0
        self.known = {element.get("id", ""): element for element in root.iter() if element.get("id")}
        unit = root.find("asset/unit")
        self.metre = float(unit.get("meter", 1)) if unit is not None else 1.0

    def called(self, reference: str | None, tag: str) -> Element:
        """The element that another one names; only this file is looked in."""
        found = self.known.get((reference or "").removeprefix("#"))
        if found is None or found.tag != tag or not (reference or "").startswith("#"):
            raise ValueError
        return found

    def placed(self) -> list[tuple[Array, Array]]:
        """Corners and triangles of each geometry of the scene; of a file without a scene all of them, as they are."""
        named = self.root.find("scene/instance_visual_scene")
        scene = self.root.find("library_visual_scenes/visual_scene")
        scene = self.called(named.get("url"), "visual_scene") if named is not None else scene
        whole = np.diag([self.metre] * 3 + [1.0])
        if scene is None:
            return [self.geometry(one, whole) for one in self.root.iterfind("library_geometries/geometry")]
        return [part for node in scene.iterfind("node") for part in self.node(node, whole, 0)]

    def node(self, node: Element, at: Array, depth: int) -> list[tuple[Array, Array]]:
        """What a node and those within it place; nodes may name others, not without end."""
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise ValueError
        found: list[tuple[Array, Array]] = []
        for part in node:
            if part.tag in TRANSFORMS:
                at = at @ TRANSFORMS[part.tag](_numbers(part))
            elif part.tag == "instance_geometry":
                found.append(self.geometry(self.called(part.get("url"), "geometry"), at))
            elif part.tag == "instance_node":
                found += self.node(self.called(part.get("url"), "node"), at, depth + 1)
            elif part.tag == "node":
                found += self.node(part, at, depth + 1)
        return found

    def geometry(self, geometry: Element, at: Array) -> tuple[Array, Array]:
        """Corners and triangles of a geometry at a place; lines and curved surfaces are left out."""
        mesh = geometry.find("mesh")
        corners: list[Array] = [np.zeros((0, 3))]
        faces: list[Array] = [np.zeros((0, 3), dtype=int)]
        count = 0
        for part in [] if mesh is None else [one for one in mesh if one.tag in FACES]:
            points, own = self.vertices(part), np.array(_triangles(part), dtype=int).reshape(-1, 3)
            self.corners += own.size + len(points)
            if (own.size and not 0 <= own.min() <= own.max() < len(points)) or self.corners > MAX_CORNERS:
                raise ValueError
            corners.append(points @ at[:3, :3].T + at[:3, 3])
            faces.append((own if np.linalg.det(at[:3, :3]) > 0 else own[:, ::-1]) + count)
            count += len(points)
        return np.concatenate(corners), np.concatenate(faces)

    def vertices(self, part: Element) -> Array:
        """Positions that the triangles of a part count."""
        vertex = next((one for one in part.iterfind("input") if one.get("semantic") == "VERTEX"), None)
        named = self.called(None if vertex is None else vertex.get("source"), "vertices")
        place = next((one for one in named.iterfind("input") if one.get("semantic") == "POSITION"), None)
        source = self.called(None if place is None else place.get("source"), "source")
        accessor, numbers = source.find("technique_common/accessor"), source.find("float_array")
        if accessor is None or numbers is None:
            raise ValueError
        values, stride, first = _numbers(numbers), int(accessor.get("stride", 1)), int(accessor.get("offset", 0))
        count = int(accessor.get("count", 0))
        if stride < 3 or first < 0 or count < 0 or first + count * stride > len(values):
            raise ValueError
        return values[first : first + count * stride].reshape(count, stride)[:, :3]


def _triangles(part: Element) -> list[tuple[int, int, int]]:
    """Numbers of corners, three for each triangle; polygons are cut about their first corner."""
    inputs = list(part.iterfind("input"))
    offsets = [int(one.get("offset", 0)) for one in inputs]
    if not inputs or min(offsets) < 0 or max(offsets) > MAX_INPUTS:
        raise ValueError
    step = max(offsets) + 1
    first = next(int(one.get("offset", 0)) for one in inputs if one.get("semantic") == "VERTEX")
    lists = [_numbers(one).astype(int)[first::step].tolist() for one in part.iterfind("p")]
    if part.tag == "triangles":
        return [(run[k], run[k + 1], run[k + 2]) for run in lists for k in range(0, len(run) - len(run) % 3, 3)]
    if part.tag == "tristrips":
        return [(run[k], run[k + 1 + k % 2], run[k + 2 - k % 2]) for run in lists for k in range(len(run) - 2)]
    if part.tag == "polylist":
        sizes = part.find("vcount")
        counts = [] if sizes is None else _numbers(sizes).astype(int).tolist()
        if any(count < 0 for count in counts) or sum(counts) != sum(map(len, lists)):
            raise ValueError
        run, ends = [k for one in lists for k in one], np.cumsum([0, *counts]).tolist()
        lists = [run[a:b] for a, b in pairwise(ends)]
    return [(run[0], a, b) for run in lists for a, b in pairwise(run[1:])]


def _numbers(element: Element) -> Array:
    return np.array((element.text or "").split(), dtype=float)


def _moved(values: Array) -> Array:
    at = np.eye(4)
    at[:3, 3] = values
    return at


def _turned(values: Array) -> Array:
    """About an axis, by degrees."""
    axis, angle = values[:3] / np.linalg.norm(values[:3]), np.deg2rad(values[3])
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    at = np.eye(4)
    at[:3, :3] = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    return at


TRANSFORMS = {
    "matrix": lambda values: values.reshape(4, 4),
    "translate": _moved,
    "rotate": _turned,
    "scale": lambda values: np.diag([*values[:3], 1.0]),
}
