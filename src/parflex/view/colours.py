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
Stresses = Mapping[str, tuple[Array, Array]]  # of beams by name: places from 0 to 1, and stresses there

MOST = 200_000  # points that a browser still turns without waiting
BEAMS = "beams"  # the mesh of beams


@dataclass(frozen=True, eq=False, repr=False)
class MapPoints(Record):
    """Positions (n x 3, m), colours (n x 3, 0 to 255), lowest and highest frequency (Hz), distance of points (m)."""

    points: Array
    colours: Array
    lowest: float
    highest: float
    spacing: float


def map_points(robot: Robot, file: str | Path) -> MapPoints:
    """Return the lowest frequency of a map file over its positions; over other axes, such as rotations, the lowest."""

    def refused(what: str, hint: str) -> InputError:
        return InputError(what, file=str(file), key="map", value=str(file), hint=hint)

    try:
        stored = read_npz(file)
        settings = json.loads(str(stored["settings"]))
        axes = {name: stored[f"axis_{name}"] for name, *_ in settings["over"]}
        status, fixed, name = stored["status"], settings["fixed"], settings["robot"]
        known = np.where(status == OK, stored["frequencies"][..., 0], np.inf)
    except FOREIGN:
        raise refused("the file is not a map", "give one that 'parflex map' wrote") from None
    if name != robot.name:
        raise refused(f"the map is of '{name}'", f"show it with 'parflex view {name}'")
    shown = [name for name in axes if name in ("x", "y", "z")]
    if not shown:
        raise refused("the map has no axis x, y or z", "map over positions of the end effector")
    known = known.min(axis=tuple(k for k, name in enumerate(axes) if name not in shown))
    good = np.isfinite(known)
    if not good.any():
        raise refused("the map has no pose with frequencies", "map a reachable region")
    home = end_effector(robot, robot.home)
    points = np.tile([fixed.get(name, home[k]) for k, name in enumerate("xyz")], (int(good.sum()), 1))
    for name, grid in zip(shown, np.meshgrid(*(axes[name] for name in shown), indexing="ij"), strict=True):
        points[:, "xyz".index(name)] = grid[good]
    every = -(-len(points) // MOST)
    steps = [abs(float(axes[name][1] - axes[name][0])) for name in shown if len(axes[name]) > 1]
    return coloured(points[::every], known[good][::every], min(steps, default=0.01))


def end_effector(robot: Robot, q: Array) -> Array:
    """Return the position of the end effector."""
    return pose(robot.tree, q).of(robot.tree.places[robot.tree.end_effector])[1]


def coloured(points: Array, values: Array, spacing: float) -> MapPoints:
    """Return points in colours from the lowest to the highest of their values."""
    low, high = float(values.min()), float(values.max())
    return MapPoints(points, np.array(STRESSES)[_level((values - low) / ((high - low) or 1.0))], low, high, spacing)


def _level(share: Array) -> Array:
    """Return numbers of colours of shares from 0 to 1."""
    return np.minimum((share * len(STRESSES)).astype(int), len(STRESSES) - 1)


@dataclass(frozen=True, eq=False, repr=False)
class StressColours(Record):
    """The triangles of the mesh of beams, and for each vertex its beam and the place along it."""

    faces: Array
    beam: Array  # number of the beam of each vertex; -1: of none whose stress may be known
    s: Array
    names: tuple[str, ...]

    def levels(self, stresses: Stresses, largest: float) -> list[Array]:
        """Return triangles of each colour from no stress to the largest, then those of unknown stress."""
        values = np.full(len(self.s), np.nan)
        for number, name in enumerate(self.names):
            if name in stresses:
                on_beam = self.beam == number
                values[on_beam] = np.interp(self.s[on_beam], *stresses[name])
        share = values[self.faces].mean(axis=1) / (largest or 1.0)
        level = np.where(np.isfinite(share), _level(np.nan_to_num(share)), len(STRESSES))
        return [self.faces[level == k] for k in range(len(STRESSES) + 1)]


def stress_colours(scene: Scene) -> StressColours | None:
    """Return what is coloured in a scene; None where it has no beams."""
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
        along = np.zeros(part.count) if part.along is None else part.along
        number, low, high = where.get(part.link, (-1, 0.0, 0.0)) if part.along is not None else (-1, 0.0, 0.0)
        beam.append(np.full(part.count, number))
        s.append(low + along * (high - low))
    return StressColours(mesh.faces, np.concatenate(beam), np.concatenate(s), tuple(chains))
