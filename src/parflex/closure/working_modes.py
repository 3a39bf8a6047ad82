"""Define working modes by signs of determinants of a leg, split so that two simultaneous sign changes are detected.

A leg stays on one side of its singularity while a determinant keeps its sign. The determinant of a whole leg is a
product of those of its knee, its inner loops and other legs, so two changes would cancel. It is split into the blocks
of the triangular form of its rows, and inner loops by themselves. Where these do not distinguish all assemblies, legs
in a plane are split by their dyads and legs in space by their point legs.

The rows of a pose fold if it specifies motors and coordinates of the platform together, or only some of them: at some
poses a specified coordinate is stationary although no leg is stretched. Such a fold is a singularity of the coordinates
and not of the robot. The working mode of a part of the closures therefore has two sets of signs: the `strict` ones,
with folds, distinguish its assemblies; those of its legs alone, with the platform fixed, give its working mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Loop
from parflex.closure.leg_geometry import Dyad, LegSign, Sign, dyads, leg_signs
from parflex.closure.newton import ClosurePart, ClosureParts, stepped
from parflex.closure.rows import Rows, block, connected
from parflex.closure.targets import FrameTarget, PoseRows, Target
from parflex.records import Record
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.spatial.linear import triangular_blocks
from parflex.tree.tree import Tree

Array = np.ndarray
FLAT = 1e-6  # last pivot of a block, beside the first: below, the reference is singular and tells no side
ASIDE = 1e-3  # rad or typical lengths, of a motion that shows on what a side depends
DETERMINANT_CHANGE_TOLERANCE = 1e-9  # of a determinant: what changes less in such a motion does not depend on it


@dataclass(frozen=True, eq=False, repr=False)
class SignBlock(Sign):
    """A square block whose determinant has a sign: rows of some loops or targets, and the rates that close them."""

    rows: tuple[Rows, ...]
    columns: Array
    picked: Array  # of the rows, as many as there are columns
    side: float  # sign of the determinant at the reference

    def value(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> float:
        """Return the determinant."""
        return float(np.linalg.det(block(tree, self.rows, self.columns, at, links)[self.picked]))


@dataclass(frozen=True, eq=False, repr=False)
class WorkingModeSigns(Record):
    """All signs of a part at its singularities."""

    blocks: list[SignBlock]
    dyads: list[Dyad | LegSign]  # or the numbers of a leg in space that brings a point to its place
    apart: bool  # whether they tell all assemblies apart, whole turns aside

    def fit(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> bool:
        """Return whether a pose has the signs of the reference."""
        return all(sign.fits(tree, at, links) for sign in (*self.blocks, *self.dyads))


def working_mode_signs(tree: Tree, part: ClosurePart, weights: Array, reference: Array) -> WorkingModeSigns:
    """Return the determinants that define the working mode of a part.

    Blocks of one joint, or of two in a plane, close in two ways, which their sides tell apart. Where there are larger
    ones, dyads are judged too, or the two steps by which a leg in space follows.
    """
    blocks, largest = _sign_blocks(tree, part, weights, reference), 2 if tree.planar else 1
    covered = {int(k) for sign_block in blocks for k in sign_block.columns}
    if covered == {int(k) for k in part.columns} and all(len(block.columns) <= largest for block in blocks):
        return WorkingModeSigns(blocks, [], True)
    legs = leg_signs(tree, part.rows, part.columns, reference)
    if legs:  # whose numbers are factors of the determinant; of spare rows it may change its sign elsewhere too
        return WorkingModeSigns([], list(legs), True)
    dyad_signs = dyads(tree, part.rows, part.columns, reference)
    return WorkingModeSigns(blocks, list(dyad_signs or ()), dyad_signs is not None)


def _sign_blocks(tree: Tree, part: ClosurePart, weights: Array, reference: Array) -> list[SignBlock]:
    """Return blocks of a part with separate signs.

    The result is empty at a singular reference, or if the part has more rates than its rows determine. Loops
    without a held link have their own signs even then.
    """
    rows, columns, at = part.rows, part.columns, pose(tree, reference)
    links = jacobians(tree, at)
    J = block(tree, rows, columns, at, links)
    result, selected = [], select_rows(tree, rows, part.held, J)
    if selected is not None:
        owner = np.repeat(np.arange(len(rows)), [row.size for row in rows])
        pattern = np.array([[tree.link_of_rate[k] in row.links(tree) for k in columns] for row in rows], dtype=float)
        try:
            split = triangular_blocks(pattern[owner[selected]])
        except np.linalg.LinAlgError:  # the rows cannot be matched: all as one
            split = [(list(range(len(selected))), list(range(len(columns))))]
        for block_rows, block_columns in split:
            picked = selected[block_rows]
            members = sorted(set(owner[picked].tolist()))
            inside = np.searchsorted(np.flatnonzero(np.isin(owner, members)), picked)
            side = float(np.sign(np.linalg.det(J[picked][:, block_columns])))
            result.append(SignBlock(tuple(rows[index] for index in members), columns[block_columns], inside, side))
    for loops, rates in _inner_loops(tree, part, weights, reference):
        inner = block(tree, loops, np.array(rates), at, links)
        best = _picked(inner)
        if best is not None and len(rates) < len(columns):
            side = float(np.sign(np.linalg.det(inner[best])))
            result.append(SignBlock(tuple(loops), np.array(rates), best, side))
    return result


def select_rows(tree: Tree, rows: Sequence[Rows], placed_links: Collection[int], J: Array) -> Array | None:
    """Return rows of the best square block of J, inner loops first, or None.

    Redundant rows, as of loops in a plane, determine different quantities: one row of such a loop and a dependent
    row of the leg around it make a determinant that vanishes at regular poses.
    """
    owner = np.repeat(np.arange(len(rows)), [row.size for row in rows])
    inside = [k for k, row in enumerate(rows) if isinstance(row, Loop) and not set(row.links(tree)) & set(placed_links)]
    is_inner = np.isin(owner, inside)
    if len(J) <= J.shape[1] or not is_inner.any() or is_inner.all():
        return _picked(J)
    order, sizes = mobility.pivoted_columns(J[is_inner].T, min(J[is_inner].shape))
    inner = np.flatnonzero(is_inner)[np.sort(order[sizes > FLAT * sizes[0]])]  # as many as decide all that these do
    null_basis = mobility.null_space(J[inner], len(inner))
    second = _picked(J[~is_inner] @ null_basis)
    return None if second is None else np.sort([*inner, *np.flatnonzero(~is_inner)[second]])


def _inner_loops(
    tree: Tree, part: ClosurePart, weights: Array, reference: Array
) -> Iterator[tuple[list[Loop], list[int]]]:
    """Return loops of a part without a held link, grouped by common joints, and their dependent rates."""
    inner = [row for row in part.rows if isinstance(row, Loop) and not part.held.intersection(row.links(tree))]
    sets = [{int(k) for k in part.columns if tree.link_of_rate[k] in loop.links(tree)} for loop in inner]
    for numbers, loop_rates in connected(sets):
        loops = [inner[i] for i in numbers]
        rates = determined_rates(tree, sorted(loop_rates), loops, reference, weights)
        if rates:
            yield loops, rates


def determined_rates(tree: Tree, rates: Sequence[int], loops: Sequence[Rows], q: Array, weights: Array) -> list[int]:
    """Return the rates that loops determine from the others: passive joints before motors, by weight."""
    at, picked = pose(tree, q), np.array(rates, dtype=int)
    J = block(tree, loops, picked, at, jacobians(tree, at))
    rank = mobility.rank(J)
    return sorted(int(picked[k]) for k in mobility.pivoted_columns(J * weights[picked], rank)[0])


def is_regular(J: Array) -> bool:
    """Return whether rows determine all of their rates at a pose, so assemblies are isolated."""
    return _picked(J) is not None


def _picked(J: Array) -> Array | None:
    """Return rows of the best regular square block, or None."""
    count = J.shape[1]
    if not 0 < count <= J.shape[0]:
        return None
    order, sizes = mobility.pivoted_columns(J.T, count)
    return np.sort(order) if sizes[-1] > FLAT * sizes[0] else None


@dataclass(frozen=True, eq=False, repr=False)
class PartWorkingMode(Record):
    """The signs of a part at a reference."""

    own: WorkingModeSigns  # of its rows with all that a pose asks for
    legs: list[WorkingModeSigns] = field(default_factory=list)  # as if the platform stood; where it is given, its own
    folds: bool = False  # whether a side of its own may be that of a coordinate: then the legs alone tell the mode
    from_legs: bool = False  # whether no determinant of all its rows is among its own: some repeat others

    @property
    def strict(self) -> list[WorkingModeSigns]:
        """All signs."""
        return [self.own, *self.legs]

    @property
    def working_mode(self) -> list[WorkingModeSigns]:
        """Signs of the legs."""
        return self.legs if self.folds else self.strict


def part_working_mode(closures: ClosureParts, part: ClosurePart, weights: Array, reference: Array) -> PartWorkingMode:
    """Return the signs of a part at the reference.

    If a frame with dependent coordinates is placed, the legs have signs too, as for a fixed platform.
    """
    tree = closures.tree
    own, folding = working_mode_signs(tree, part, weights, reference), _may_fold(closures, part)
    if not folding:
        if not (closures.free_bodies and any(isinstance(row, PoseRows) for row in part.rows)):
            return PartWorkingMode(own)
        leg_mode = _by_legs(closures, part, weights, reference)
        if leg_mode is not None:
            return leg_mode
    legs = [working_mode_signs(tree, leg, weights, reference) for leg in _legs(closures, part, reference)]
    if not folding:
        return PartWorkingMode(own, legs)
    decisive = [signs for signs in legs if signs.blocks or signs.dyads]
    pose_dependent = [_pose_dependent_signs(closures, signs, part, reference) for signs in decisive]
    return PartWorkingMode(own, pose_dependent, bool(decisive))


def _by_legs(closures: ClosureParts, part: ClosurePart, weights: Array, reference: Array) -> PartWorkingMode | None:
    """Return the signs of a part with redundant rows by its legs and loops of the platform, or None.

    Any choice among redundant rows is singular at some regular poses, so a determinant of some rows is not
    conclusive. Legs between the ground and a fixed platform have their own signs, and the remaining loops belong to
    the platform.
    """
    tree, columns = closures.tree, {int(k) for k in part.columns}
    if sum(row.size for row in part.rows) <= len(columns):
        return None
    bodies = {j for j, link in enumerate(tree.links) if link.joint.moves_freely}
    platform = {j for j, link in enumerate(tree.links) if link.leg is None and bodies & set(tree.path(j))}
    platform_rates = frozenset(k for j in platform for k in closures.rates_of(j))
    legs = closures.moving_parts(Target(fixed=platform_rates), frozenset(range(tree.n)) - columns)
    signs_of_legs = [working_mode_signs(tree, leg, weights, reference) for leg in legs]
    covered = platform_rates.union(int(k) for leg in legs for k in leg.columns)
    if not columns <= covered or not all(signs.apart for signs in signs_of_legs):
        return None
    # loops between bodies of the platform, which the frame that is placed does not hold
    loops_inside = tuple(row for row in part.rows if isinstance(row, Loop) and set(row.links(tree)) <= platform)
    inside = ClosurePart("", loops_inside, np.array(sorted(platform_rates & columns)), frozenset(bodies))
    blocks = []
    for loops, rates in _inner_loops(tree, inside, weights, reference):
        group = replace(inside, rows=tuple(loops), columns=np.array(rates))
        blocks += _sign_blocks(tree, group, weights, reference)
    return PartWorkingMode(WorkingModeSigns(blocks, [], False), signs_of_legs, False, from_legs=True)


def _may_fold(closures: ClosureParts, part: ClosurePart) -> bool:
    """Return whether some platform coordinates are specified without the others, or together with joints."""
    rows = [row for row in part.rows if isinstance(row, PoseRows)]
    if not all(isinstance(row, FrameTarget) for row in rows):
        return False
    columns, axes = {int(k) for k in part.columns}, 2 if closures.tree.planar else 3
    partly_given = any(
        rates & columns and rates & part.given
        for rates in (
            set(closures.rates_of(j)) for j, link in enumerate(closures.tree.links) if link.joint.moves_freely
        )
    )
    partly_given = partly_given or any(len(row.position) < axes for row in rows if isinstance(row, FrameTarget))
    return partly_given or bool(rows and part.given - closures.free_bodies)


def _legs(closures: ClosureParts, part: ClosurePart, reference: Array) -> list[ClosurePart]:
    """Return the legs of a part, with their specified joints, for a fixed platform or end effector."""
    tree, part_rates = closures.tree, {int(k) for k in part.columns} | part.given
    fixed_rates = frozenset(range(tree.n)) - part_rates
    if closures.free_bodies:
        return closures.moving_parts(Target(fixed=closures.free_bodies), fixed_rates)
    place = tree.places[tree.end_effector]
    rotation, origin = pose(tree, reference).of(place)
    position = {axis: float(origin[axis]) for axis in range(2 if tree.planar else 3)}
    for turn in (None, rotation):
        held = Target(frames=(FrameTarget(tree.end_effector, place, position, turn),))
        legs = closures.moving_parts(held, fixed_rates)
        if legs and all(is_regular(closures.block(reference, leg)) for leg in legs):
            return legs
    return []  # it has fewer freedoms than its place: no leg stands alone


def _pose_dependent_signs(
    closures: ClosureParts, signs: WorkingModeSigns, part: ClosurePart, reference: Array
) -> WorkingModeSigns:
    """Return signs without those that specified joints alone determine."""
    tree = closures.tree
    step = ASIDE * np.random.default_rng(0).uniform(-1, 1, len(part.columns))  # the same every time
    poses = [pose(tree, q) for q in (reference, stepped(tree, reference, part.columns, step))]
    states = [(at, jacobians(tree, at)) for at in poses]

    def depends(sign: Sign) -> bool:
        value, shifted_value = (sign.value(tree, *state) for state in states)
        return abs(shifted_value - value) > DETERMINANT_CHANGE_TOLERANCE * abs(value)

    blocks = [sign for sign in signs.blocks if depends(sign)]
    return replace(signs, blocks=blocks, dyads=[sign for sign in signs.dyads if depends(sign)])
