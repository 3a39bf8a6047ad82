"""Colours of maps and of stresses in a scene."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parflex.errors import InputError
from parflex.forces.section_forces import beam_chains
from parflex.io import read_npz
from parflex.maps.continuation import OK
from parflex.maps.files import FOREIGN
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.view.scene import Scene
from parflex.view.style import STRESSES

Array = np.ndarray

MOST = 200_000  # points that a browser still turns without waiting

PLACES = ("x", "y", "z")

Along = Mapping[str, tuple[Array, Array]]  # of beams by name: places from 0 to 1, and stresses there

BEAMS = "beams"  # the mesh that they are in


@dataclass(frozen=True, eq=False, repr=False)
class MapPoints(Record):
    """Positions (n x 3, m), colours (n x 3, 0 to 255), lowest and highest frequency (Hz), distance of points (m)."""

    points: Array
    colours: Array
    lowest: float
    highest: float
    spacing: float


def map_points(robot: Robot, file: str | Path) -> MapPoints:
    """The lowest frequency of a map file over its positions; of other axes, such as orientations, the lowest value."""
    axes, frequencies, status = _read(robot, file)
    shown = [name for name in axes if name in PLACES]
    if not shown:
        raise _refused(file, "the map has no axis x, y or z", "map over positions of the end effector")
    known = np.where(status == OK, frequencies, np.inf)
    for k in reversed([k for k, name in enumerate(axes) if name not in PLACES]):
        known = known.min(axis=k)
    good = np.isfinite(known)
    if not good.any():
        raise _refused(file, "the map has no pose with frequencies", "map a reachable region")
    _, home = pose(robot.tree, robot.home).of(robot.tree.places[robot.tree.end_effector])
    mesh = dict(zip(shown, np.meshgrid(*(axes[name] for name in shown), indexing="ij"), strict=True))
    held = _fixed(file)
    points = np.stack(
        [
            mesh[name][good] if name in mesh else np.full(int(good.sum()), held.get(name, home[k]))
            for k, name in enumerate(PLACES)
        ],
        axis=1,
    )
    values = known[good]
    every = max(1, -(-len(values) // MOST))
    points, values = points[::every], values[::every]
    steps = [abs(float(axes[name][1] - axes[name][0])) for name in shown if len(axes[name]) > 1]
    return coloured(points, values, min(steps, default=0.01))


def coloured(points: Array, values: Array, spacing: float) -> MapPoints:
    """Points in colours from the lowest to the highest of their values."""
    low, high = float(values.min()), float(values.max())
    level = np.minimum(((values - low) / ((high - low) or 1.0) * len(STRESSES)).astype(int), len(STRESSES) - 1)
    return MapPoints(points, np.array(STRESSES)[level], low, high, spacing)


def _read(robot: Robot, file: str | Path) -> tuple[dict[str, Array], Array, Array]:
    """Axes in their order, the lowest frequency and the state of each cell."""
    try:
        stored = read_npz(file)
        settings = json.loads(str(stored["settings"]))
        axes = {name: stored[f"axis_{name}"] for name, *_ in settings["over"]}
        frequencies, status, name = stored["frequencies"][..., 0], stored["status"], settings["robot"]
    except FOREIGN:
        raise _refused(file, "the file is not a map", "give one that 'parflex map' wrote") from None
    if name != robot.name:
        raise _refused(file, f"the map is of '{name}'", f"show it with 'parflex view {name}'")
    return axes, frequencies, status


def _fixed(file: str | Path) -> dict[str, float]:
    return json.loads(str(read_npz(file, ["settings"])["settings"]))["fixed"]


def _refused(file: str | Path, what: str, hint: str) -> InputError:
    return InputError(what, file=str(file), key="map", value=str(file), hint=hint)


@dataclass(frozen=True, eq=False, repr=False)
class StressColours(Record):
    """The triangles of the mesh of beams, and of each of its vertices the beam and the place along it."""

    faces: Array
    beam: Array  # number of the beam of each vertex; -1: not of a beam whose stress may be known
    s: Array
    names: tuple[str, ...]

    def levels(self, stresses: Along, largest: float) -> list[Array]:
        """Triangles of each colour from no stress to the largest; then those of which nothing is known."""
        values = np.full(len(self.s), np.nan)
        for number, name in enumerate(self.names):
            if name in stresses:
                on_beam = self.beam == number
                values[on_beam] = np.interp(self.s[on_beam], *stresses[name])
        share = values[self.faces].mean(axis=1) / (largest or 1.0)
        known = np.isfinite(share)
        level = np.full(len(share), len(STRESSES))
        level[known] = np.minimum((share[known] * len(STRESSES)).astype(int), len(STRESSES) - 1)
        return [self.faces[level == k] for k in range(len(STRESSES) + 1)]


def stress_colours(scene: Scene) -> StressColours | None:
    """What is coloured in a scene; None where it has no beams."""
    mesh = next((mesh for mesh in scene.meshes if mesh.name == BEAMS), None)
    chains = beam_chains(scene.robot)
    if mesh is None or not chains:
        return None
    where = {
        link: (n, chain.share(k, 0.0), chain.share(k, 1.0))
        for n, chain in enumerate(chains.values())
        for k, link in enumerate(chain.links)
    }
    beam, s = [], []
    for part in (part for part in scene.parts if part.group == BEAMS):
        number, low, high = where.get(part.link, (-1, 0.0, 0.0)) if part.along is not None else (-1, 0.0, 0.0)
        beam.append(np.full(part.count, number))
        s.append(low + (np.zeros(part.count) if part.along is None else part.along) * (high - low))
    return StressColours(mesh.faces, np.concatenate(beam), np.concatenate(s), tuple(chains))
