"""Meshes that a robot file names, as parts of its frames; what cannot be shown is told."""

from __future__ import annotations

import warnings

import numpy as np

from parflex.errors import InputError, ParflexWarning
from parflex.robot.robot import Robot
from parflex.spatial.rotations import rotation_from_vector
from parflex.view.scene.mesh_files import MAX_TRIANGLES, mesh_of

Array = np.ndarray
MESHES = "meshes"  # the group of parts


def placed_meshes(robot: Robot) -> list[tuple[int, Array, Array]]:
    """Of each mesh that can be read: the link that carries it, its vertices in the axes of that, and its triangles."""
    found, total = [], 0
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
            warnings.warn(ParflexWarning(f"{error.message}: it is not shown; {error.hint}"), stacklevel=2)
            continue
        own = points * np.array(visual.scale) @ rotation_from_vector(visual.rotation).T + np.array(visual.position)
        reflected = np.prod(visual.scale) < 0
        found.append((place.link, own @ place.rotation.T + place.position, faces[:, ::-1] if reflected else faces))
    return found
