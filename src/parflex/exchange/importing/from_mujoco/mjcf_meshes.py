"""Meshes of a compiled model of MuJoCo, to be shown from the files that they were read from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parflex.exchange.importing.foreign_files import MESH_FORMATS, NO_MESH, OTHER_MESH
from parflex.spatial.rotations import compose, exact_entries, quaternion_matrix

Array = np.ndarray
SHAPES = "robot files have no shapes"


def carry_meshes(tables: Any, moved: bool) -> None:
    """Geoms with meshes as visuals; `moved`: some mesh has another origin in MuJoCo than in its file.

    Of a body with geoms that touch nothing these are shown, else all of them.
    """
    mujoco, model, robot = tables.mujoco, tables.model, tables.robot
    kind = int(mujoco.mjtGeom.mjGEOM_MESH)
    touching = (np.asarray(model.geom_contype) != 0) | (np.asarray(model.geom_conaffinity) != 0)
    geoms = [k for k in range(model.ngeom) if int(model.geom_type[k]) == kind and int(model.geom_dataid[k]) >= 0]
    shows = {int(model.geom_bodyid[k]) for k in geoms if not touching[k]}
    dropped: dict[int, str] = dict.fromkeys(range(model.nmesh), SHAPES)
    for geom in geoms:
        mesh, body = int(model.geom_dataid[geom]), int(model.geom_bodyid[geom])
        path = _path(model, mesh)
        if path is None or path.suffix.lower() not in MESH_FORMATS or moved:
            dropped[mesh] = NO_MESH if path is None else "its origin is moved in the source" if moved else OTHER_MESH
        elif not touching[geom] or body not in shows:
            own = _in_geom(model, mesh)
            frame, R, p = tables.at[body]
            here = compose(R, p, _turned(model.geom_quat[geom]), np.array(model.geom_pos[geom]))
            robot.add_visual(frame, path, *compose(*here, *own), np.array(model.mesh_scale[mesh]))
            dropped.pop(mesh, None)
    for mesh, why in dropped.items():
        robot.drop("mesh", tables.word("MESH", mesh, f"mesh{mesh}"), why)
    others = model.ngeom - len(geoms)
    if others:
        robot.drop("shape", f"{others} geoms", SHAPES)


def _path(model: Any, mesh: int) -> Path | None:
    """The file that a mesh was read from."""
    start = int(getattr(model, "mesh_pathadr", np.full(mesh + 1, -1))[mesh])
    if start < 0:
        return None
    path = Path(bytes(model.paths)[start:].split(b"\0")[0].decode(errors="replace"))
    return path if path.is_file() else None


def _in_geom(model: Any, mesh: int) -> tuple[Array, Array]:
    """Where the axes of the file stand in those of a geom, which are principal axes about the centre of the mesh."""
    R = _turned(model.mesh_quat[mesh]).T
    return R, -R @ np.array(model.mesh_pos[mesh])


def _turned(quaternion: Array) -> Array:
    return exact_entries(quaternion_matrix(np.array(quaternion) / np.linalg.norm(quaternion)))
