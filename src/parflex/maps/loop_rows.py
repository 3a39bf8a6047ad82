"""What loops without a beam, couplings and rods leave of the unknowns of whole matrices, for many poses at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.constraints import Closures, Coupling, Distance, Loop
from parflex.closure.mobility import BRANCH, SINGULAR
from parflex.robot.substructures import CutRobot
from parflex.tree.tree import GROUND, Place

if TYPE_CHECKING:
    from parflex.maps.nodes import Assembly

Array = np.ndarray


class LoopRows:
    """Rows over the unknowns that are zero, and motions that they leave free."""

    def __init__(self, assembly: Assembly, closures: Closures, rank: int) -> None:
        self.assembly, self.rank = assembly, rank
        self.cut = assembly.model.cut
        self.loops = [closures.loops[tie.closure] for tie in self.cut.left_over if tie.closure is not None]
        self.rows = closures.constraints
        self.length = float(self.cut.robot.tree.length)
        self.units = unknown_sizes(self.cut)
        scales = [loop.scale(self.length) for loop in self.plain_loops()]
        scales += [row.scale(self.length) for row in self.cut.robot.closures.constraints]
        self.row_units = np.concatenate(scales) if scales else np.zeros(0)

    def of(self, assembly: Assembly) -> LoopRows:
        """The same rows in the designs of an assembly."""
        made = copy.copy(self)
        made.assembly = assembly
        return made

    def plain_loops(self) -> Sequence[Loop]:
        """Those of the nominal design."""
        own = self.cut.robot.closures.loops
        return [own[tie.closure] for tie in self.cut.left_over if tie.closure is not None]

    def motions(self, rotation: Array, position: Array) -> tuple[Array, Array]:
        """Unknowns per unit of each motion (poses x unknowns x motions); whether loops hold as they do at home."""
        C = self.matrix(rotation, position)
        scaled = self.row_units[:, None] * C * (self.units / self.length)
        _, values, V = np.linalg.svd(scaled, full_matrices=True)
        Z = self.units[:, None] * np.swapaxes(V[:, self.rank :], 1, 2)
        top = np.maximum(values[:, :1], 1e-300)
        usual = values[:, self.rank - 1] * SINGULAR > top[:, 0]
        return Z, usual & (values[:, self.rank :] <= BRANCH * top).all(axis=1)

    def matrix(self, rotation: Array, position: Array) -> Array:
        """Rows (poses x rows x unknowns)."""
        parts = [self._loop(loop, rotation, position) for loop in self.loops]
        for row in self.rows:
            if isinstance(row, Coupling):
                parts.append(self._coupling(row, len(rotation)))
            else:
                assert isinstance(row, Distance)
                parts.append(self._distance(row, rotation, position))
        return np.concatenate(parts, axis=1)

    def _world(self, place: Place, rotation: Array, position: Array) -> tuple[Array, Array]:
        chosen = self.assembly.chosen_number
        R, p = chosen(place.rotation).reshape(-1, 3, 3), chosen(place.position).reshape(-1, 3)
        if place.link == GROUND:
            return np.broadcast_to(R, (len(rotation), 3, 3)), np.broadcast_to(p, (len(rotation), 3))
        k = self.assembly.index[place.link]
        own = rotation[:, k]
        return own @ R, position[:, k] + (own @ p[:, :, None])[:, :, 0]

    def _twist(self, j: int, rotation: Array, position: Array) -> Array:
        """Twist of a link at the common point per unit of all unknowns."""
        wide = np.zeros((len(rotation), 6, self.assembly.model.columns))
        columns, W = self.assembly.twist(j, rotation, position)
        wide[:, :, columns] = W
        return wide

    def _loop(self, loop: Loop, rotation: Array, position: Array) -> Array:
        """Rows of theory (9), (10) at closed poses."""
        chosen = self.assembly.chosen_number
        (R1, _), (R2, P2) = (self._world(end, rotation, position) for end in (loop.first, loop.second))
        apart = self._twist(loop.second.link, rotation, position) - self._twist(loop.first.link, rotation, position)
        inverse = np.swapaxes(R1, 1, 2)
        v = inverse @ (apart[:, :3] + np.cross(apart[:, 3:], P2[:, :, None], axis=1))
        w = inverse @ apart[:, 3:]
        rows = [chosen(loop.translations) @ v, chosen(loop.rotations) @ w]
        if loop.turning == "universal":
            second = (inverse @ R2 @ chosen(loop.u2)[..., None])[..., 0]
            normal = np.cross(second, np.broadcast_to(chosen(loop.u1), second.shape))
            rows.append(normal[:, None] @ w)
        return np.concatenate(rows, axis=1)

    def _coupling(self, row: Coupling, count: int) -> Array:
        """Rates of joints; those that are locked are not among the unknowns."""
        found = np.zeros((count, 1, self.assembly.model.columns))
        own = self.assembly.rate_unknowns
        for number, c in zip(row.numbers, row.coefficients, strict=True):
            if number in own:
                found[:, 0, own[number]] += self.assembly.chosen_number(c)
        return found

    def _distance(self, row: Distance, rotation: Array, position: Array) -> Array:
        """Along the line between the places, less the rate of a strut."""
        (_, P1), (_, P2) = (self._world(end, rotation, position) for end in (row.first, row.second))
        across = P2 - P1
        across = across / np.linalg.norm(across, axis=1, keepdims=True)
        moved = []
        for place, P in ((row.first, P1), (row.second, P2)):
            W = self._twist(place.link, rotation, position)
            moved.append(W[:, :3] + np.cross(W[:, 3:], P[:, :, None], axis=1))
        found = across[:, None] @ (moved[1] - moved[0])
        if row.number in self.assembly.rate_unknowns:
            found[:, 0, self.assembly.rate_unknowns[row.number]] -= 1.0
        return found


def unknown_sizes(cut: CutRobot) -> Array:
    """Typical sizes of unknowns: the length where something slides, 1 where it turns."""
    tree, found = cut.robot.tree, np.ones(cut.size)
    for beam in cut.beams:
        rates = tree.rate_units[tree.links[beam.link].e_v]
        found[beam.slots] = rates[len(rates) - beam.body.held :]
    for entry in cut.modal:
        found[entry.slots] = tree.rate_units[tree.links[entry.link].e_v][list(entry.free)]
    for piece in cut.pieces:
        if piece.reference != GROUND:
            width = piece.slots.stop - piece.slots.start
            found[piece.slots] = [tree.length] * (width - (1 if width == 3 else 3)) + [1.0] * (1 if width == 3 else 3)
        for step in piece.steps:
            if step.tie.joint is not None:
                found[step.slots] = tree.rate_units[tree.links[step.tie.joint].v][list(step.tie.free)]
            elif step.tie.closure is not None:
                hinge = cut.hinges[step.tie.closure]
                turns = np.abs(np.concatenate([hinge.guided_w, hinge.S_w], axis=1)).max(axis=0) > 0
                found[step.slots] = np.where(turns, 1.0, tree.length)
    return found


def ends_of(cut: CutRobot) -> list[int]:
    """Links that loops without a beam and rods tie."""
    loops = cut.robot.closures.loops
    ends = [end for tie in cut.left_over if tie.closure is not None for end in loops[tie.closure].ends]
    ends += [end.link for row in cut.robot.closures.constraints if isinstance(row, Distance) for end in row.places]
    return sorted(set(ends) - {GROUND})
