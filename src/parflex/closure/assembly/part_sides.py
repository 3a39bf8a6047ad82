"""On which sides of its singularities a part of the closures stands: its own, and those of the legs that it moves.

Where a pose gives motors and coordinates of the platform together, or only some of these, its rows fold: at some poses
a coordinate that is given is stationary, though no leg is stretched and the robot moves on. Such a fold is a
singularity of the coordinates, none of the robot. So the part has two answers: `strict` sides, folds among them, which
tell its assemblies apart, and those of its legs alone, as if the platform stood, which tell its working mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.closure.assembly.closure_parts import ClosurePart, ClosureParts
from parflex.closure.dyads import Dyad
from parflex.closure.loops import Loop
from parflex.closure.point_legs import LegSide
from parflex.closure.targets import FrameTarget, PoseRows, Target
from parflex.closure.working_modes import Judged, Sides, block, inner_loops, judged_blocks, regular, sides
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose

Array = np.ndarray
ASIDE = 1e-3  # rad or typical lengths, of a motion that shows on what a side depends
DECIDED = 1e-9  # of a determinant: what changes less in such a motion does not depend on it


@dataclass(frozen=True, eq=False, repr=False)
class PartSides(Record):
    """What tells the sides of a part at a reference."""

    own: Sides  # of its rows with all that a pose asks for
    legs: list[Sides]  # as if the platform stood; where it is given there are none but its own
    folds: bool  # whether a side of its own may be that of a coordinate: then the legs alone tell the working mode
    by_legs: bool = False  # whether no determinant of all its rows is among its own: some repeat others

    @property
    def strict(self) -> list[Sides]:
        """All of them."""
        return [self.own, *self.legs]

    @property
    def working_mode(self) -> list[Sides]:
        """Those of the legs."""
        return self.legs if self.folds else self.strict


def part_sides(closures: ClosureParts, part: ClosurePart, weights: Array, reference: Array) -> PartSides:
    """On which sides a part stands at the reference.

    Where a frame is placed that the coordinates do not give, the legs are judged too, as if the platform stood.
    """
    own = sides(closures.tree, part.rows, part.columns, part.held, weights, reference)
    folding = _may_fold(closures, part)
    if not folding and not (closures.free_bodies and any(isinstance(row, PoseRows) for row in part.rows)):
        return PartSides(own, [], False)
    if not folding:
        found = _by_legs(closures, part, weights, reference)
        if found is not None:
            return found
    legs = _legs(closures, part, reference) or []
    told = [sides(closures.tree, leg.rows, leg.columns, leg.held, weights, reference) for leg in legs]
    known = [one for one in told if one.blocks or one.dyads]
    if not folding:
        return PartSides(own, told, False)
    return PartSides(own, [_undecided(closures, one, part, reference) for one in known], bool(known))


def _by_legs(closures: ClosureParts, part: ClosurePart, weights: Array, reference: Array) -> PartSides | None:
    """Sides of a part with spare rows, by its legs and the loops of a platform of several bodies; else None.

    Of rows that repeat others each choice is singular somewhere, where nothing is: a determinant of some of them says
    little. Legs that stand between the ground and a platform, all of whose bodies stand, tell their assemblies by
    numbers of their own, and what is left are loops of the platform.
    """
    tree, own = closures.tree, {int(k) for k in part.columns}
    if sum(row.size for row in part.rows) <= len(own):
        return None
    bodies = {j for j, link in enumerate(tree.links) if link.joint.moves_freely}
    platform = {j for j, link in enumerate(tree.links) if link.leg is None and bodies & set(tree.path(j))}
    standing = frozenset(k for j in platform for k in closures.rates_of(j))
    legs = [leg for leg in closures.parts(Target(fixed=standing), frozenset(range(tree.n)) - own) if len(leg.columns)]
    told = [sides(tree, leg.rows, leg.columns, leg.held, weights, reference) for leg in legs]
    covered = standing.union(int(k) for leg in legs for k in leg.columns)
    if not own <= covered or not all(one.apart for one in told):
        return None
    # loops between bodies of the platform, which the frame that is placed does not hold
    inside = [row for row in part.rows if isinstance(row, Loop) and set(row.links(tree)) <= platform]
    blocks = []
    for loops, rates in inner_loops(tree, inside, np.array(sorted(standing & own)), bodies, weights, reference):
        blocks += judged_blocks(tree, loops, np.array(rates), bodies, weights, reference)
    return PartSides(Sides(blocks, [], False), told, False, by_legs=True)


def _may_fold(closures: ClosureParts, part: ClosurePart) -> bool:
    """Whether some coordinates of the platform are given without the others, or beside joints."""
    rows = [row for row in part.rows if isinstance(row, PoseRows)]
    if not all(isinstance(row, FrameTarget) for row in rows):
        return False
    own, axes = {int(k) for k in part.columns}, 2 if closures.tree.planar else 3
    partly = any(
        rates & own and rates & part.given
        for rates in (
            set(closures.rates_of(j)) for j, link in enumerate(closures.tree.links) if link.joint.moves_freely
        )
    )
    partly = partly or any(len(row.position) < axes for row in rows if isinstance(row, FrameTarget))
    return partly or bool(rows and part.given - closures.free_bodies)


def _legs(closures: ClosureParts, part: ClosurePart, reference: Array) -> list[ClosurePart] | None:
    """The legs of a part, with those of their joints that are given, as if the platform or the end effector stood."""
    tree, own = closures.tree, {int(k) for k in part.columns} | part.given
    held = frozenset(range(tree.n)) - own
    if closures.free_bodies:
        return [leg for leg in closures.parts(Target(fixed=closures.free_bodies), held) if len(leg.columns)]
    place = tree.places[tree.end_effector]
    at = pose(tree, reference)
    rotation, position = at.of(place)
    whole = FrameTarget(
        tree.end_effector, place, {axis: float(position[axis]) for axis in range(2 if tree.planar else 3)}
    )
    for placed in (whole, replace(whole, rotation=rotation)):
        legs = [leg for leg in closures.parts(Target(frames=(placed,)), held) if len(leg.columns)]
        if legs and all(regular(closures.block(reference, leg)) for leg in legs):
            return legs
    return None  # it has fewer freedoms than its place: no leg stands alone


def _undecided(closures: ClosureParts, found: Sides, part: ClosurePart, reference: Array) -> Sides:
    """Sides without those that given joints alone decide: these are as they are asked for."""
    tree = closures.tree
    step = np.zeros(tree.n)
    spread = np.random.default_rng(0).uniform(-1, 1, len(part.columns))  # the same every time
    step[part.columns] = ASIDE * spread * tree.rate_units[part.columns]
    poses = [pose(tree, q) for q in (reference, tree.moved(reference, step))]
    links = [jacobians(tree, at) for at in poses]

    def depends(one: Judged | Dyad | LegSide) -> bool:
        here, beside = (
            float(np.linalg.det(block(tree, one.rows, one.columns, at, own)[one.picked]))
            if isinstance(one, Judged)
            else float(one.sine(tree, at))
            for at, own in zip(poses, links, strict=True)
        )
        return abs(beside - here) > DECIDED * abs(here)

    blocks = [one for one in found.blocks if depends(one)]
    return replace(found, blocks=blocks, dyads=[one for one in found.dyads if depends(one)])
