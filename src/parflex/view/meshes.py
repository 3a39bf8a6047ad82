"""Triangle meshes from STL, OBJ and MuJoCo files.

The files are not trusted: sizes are bounded before allocation, and files that they name (materials) are not opened.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexWarning
from parflex.io import read_bytes
from parflex.robot.robot import Robot
from parflex.spatial.rotations import rotation_from_vector

Array = np.ndarray

MESHES = "meshes"  # the group of parts
MAX_MESH_BYTES = 50_000_000
MAX_TRIANGLES = 300_000  # of all meshes of a robot together: browsers have to draw them
HEAD, TRIANGLE = 84, 50  # bytes in a binary STL
ENDING = 400  # bytes at the end of a text STL, with the word and the name of the solid


def placed_meshes(robot: Robot) -> list[tuple[int, Array, Array]]:
    """Return the link, the vertices in its axes, and the triangles of each mesh that can be read."""
    meshes, total = [], 0
    for visual in robot.description.visual:
        place = robot.tree.places[visual.frame]
        try:
            if place.inner is not None:
                hint = "fix it to a frame or node"
                raise InputError(f"a mesh at '{visual.frame}' has no body to be fixed to", key="visual", hint=hint)
            points, faces = mesh_of(visual.file)
            total += len(faces)
            if total > MAX_TRIANGLES:
                message = f"meshes of more than {MAX_TRIANGLES} triangles together are not shown"
                raise InputError(message, key="visual", hint="reduce the number of their triangles")
        except InputError as error:
            diagnostic = Diagnostic("mesh-not-shown", f"{error.message}: it is not shown; {error.hint}", visual.frame)
            warnings.warn(ParflexWarning(diagnostic), stacklevel=2)
            continue
        vertices = points * np.array(visual.scale) @ rotation_from_vector(visual.rotation).T + np.array(visual.position)
        faces = faces[:, ::-1] if np.prod(visual.scale) < 0 else faces  # a reflection
        meshes.append((place.link, vertices @ place.rotation.T + place.position, faces))
    return meshes


def mesh_of(file: str) -> tuple[Array, Array]:
    """Return vertices (n x 3) and triangles (m x 3) of a file."""
    path = Path(file)
    try:
        about = path.stat()
    except (OSError, ValueError):
        raise _unusable(path, "is not there", "put it where the robot file says") from None
    return _read(str(path), about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _read(file: str, changed: int, size: int) -> tuple[Array, Array]:
    """Read a file, once for each of its versions."""
    path = Path(file)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        kind = "Collada" if path.suffix.lower() == ".dae" else f"'{short_text(path.suffix)}'"
        raise _unusable(path, f"cannot be read, as parflex reads no {kind} meshes", "convert it to STL or OBJ")
    content = read_bytes(path, "visual.file", most=MAX_MESH_BYTES, hint="reduce the number of its triangles")
    try:
        points, faces = reader(content)
        if faces.size and not 0 <= faces.min() <= faces.max() < len(points):
            raise ValueError
    except (ValueError, IndexError):
        kind = path.suffix[1:].upper()
        raise _unusable(path, f"is not a whole {kind} file", "write it again") from None
    if not len(faces) or not np.isfinite(points).all() or np.abs(points).max() > 1e9:
        raise _unusable(path, "holds no triangles of finite size", "write it again")
    if len(faces) > MAX_TRIANGLES:
        raise _unusable(path, f"has {len(faces)} triangles, more than {MAX_TRIANGLES}", "reduce their number")
    points, numbers = np.unique(points, axis=0, return_inverse=True)
    return points, numbers.ravel()[faces]


def _stl(content: bytes) -> tuple[Array, Array]:
    """Read an STL file, each triangle with corners of its own."""
    count = int.from_bytes(content[80:HEAD], "little") if len(content) >= HEAD else 0
    if len(content) == HEAD + TRIANGLE * count and count:
        kind = np.dtype([("numbers", "<f4", (4, 3)), ("colour", "<u2")])
        corners = np.frombuffer(content, kind, count, HEAD)["numbers"][:, 1:]
    else:
        if content.lstrip()[:5].lower() != b"solid" or b"endsolid" not in content[-ENDING:].lower():
            raise ValueError
        words = content.split()
        places = [k for k, word in enumerate(words) if word == b"vertex"]
        corners = np.array([[float(x) for x in words[k + 1 : k + 4]] for k in places]).reshape(-1, 3, 3)
    return corners.reshape(-1, 3).astype(float), np.arange(3 * len(corners)).reshape(-1, 3)


def _obj(content: bytes) -> tuple[Array, Array]:
    """Read an OBJ file; polygons are cut into triangles about their first corner."""
    points: list[list[float]] = []
    faces: list[list[int]] = []
    for line in content.splitlines():
        words = line.split()
        if words and words[0] == b"v":
            points.append([float(x) for x in words[1:4]])
        elif words and words[0] == b"f":
            corners = [int(word.split(b"/")[0]) for word in words[1:]]
            corners = [k - 1 if k > 0 else len(points) + k for k in corners]
            faces += [[corners[0], a, b] for a, b in pairwise(corners[1:])]
    return np.array(points, dtype=float).reshape(-1, 3), np.array(faces, dtype=int).reshape(-1, 3)


def _msh(content: bytes) -> tuple[Array, Array]:
    """Read MuJoCo's own format: counts of vertices, normals, texture coordinates and faces, then these."""
    if len(content) < 16:
        raise ValueError
    vertices, normals, textures, faces = np.frombuffer(content, "<i4", 4).tolist()
    if min(vertices, normals, textures, faces) < 0 or len(content) != 16 + 4 * (
        3 * vertices + 3 * normals + 2 * textures + 3 * faces
    ):
        raise ValueError
    points = np.frombuffer(content, "<f4", 3 * vertices, 16).reshape(-1, 3).astype(float)
    return points, np.frombuffer(content[len(content) - 12 * faces :], "<i4").reshape(-1, 3).astype(int)


READERS = {".stl": _stl, ".obj": _obj, ".msh": _msh}


def _unusable(path: Path, message: str, hint: str) -> InputError:
    return InputError(f"the mesh {short_text(path.name)} {message}", file=str(path), key="visual.file", hint=hint)
