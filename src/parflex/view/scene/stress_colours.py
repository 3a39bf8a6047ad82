"""Beams in colours of their stress: which triangles of a scene have which of a few colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from parflex.forces.sections import beam_chains
from parflex.records import Record
from parflex.view.figures.style import STRESSES
from parflex.view.scene.parts import Swept
from parflex.view.scene.robot_scene import Scene

Array = np.ndarray
Along = Mapping[str, tuple[Array, Array]]  # of beams by name: places from 0 to 1, and stresses there
BEAMS = "beams"  # the mesh that they are in


@dataclass(frozen=True, eq=False, repr=False)
class StressColours(Record):
    """The triangles of the mesh of beams, and of each of its vertices the beam and the place along it."""

    faces: Array
    beam: Array  # number of the beam of each vertex; -1: not of a beam whose stress may be known
    s: Array
    names: tuple[str, ...]

    def levels(self, found: Along, largest: float) -> list[Array]:
        """Triangles of each colour from no stress to the largest; then those of which nothing is known."""
        values = np.full(len(self.s), np.nan)
        for number, name in enumerate(self.names):
            if name in found:
                own = self.beam == number
                values[own] = np.interp(self.s[own], *found[name])
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
        if not isinstance(part, Swept) or part.link not in where:
            beam.append(np.full(part.count, -1))
            s.append(np.zeros(part.count))
            continue
        number, low, high = where[part.link]
        xi = part.body.r0[:, 0] / part.body.r0[-1, 0]
        rings = np.concatenate([xi, xi[:1], xi[-1:]])  # and both ends once more
        beam.append(np.full(part.count, number))
        s.append(low + np.repeat(rings, len(part.ring)) * (high - low))
    return StressColours(mesh.faces, np.concatenate(beam), np.concatenate(s), tuple(chains))
