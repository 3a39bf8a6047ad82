"""Working modes: signs of the determinants of a leg, split so that two simultaneous sign changes are detected.

A leg stays on one side of its singularity while a determinant keeps its sign. The determinant of a whole leg is a
product of those of its knee, its inner loops and other legs, so two changes would cancel. It is split into the blocks
of the triangular form of its rows, and inner loops by themselves. Where these do not distinguish all assemblies, legs
in a plane are split by their dyads and legs in space by their point legs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.constraints import Loop
from parflex.closure.leg_geometry import Dyad, LegSign, dyads, leg_signs
from parflex.records import Record
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.spatial.linear import triangular_blocks
from parflex.tree.tree import Branch, Tree

Array = np.ndarray
FLAT = 1e-6  # last pivot of a block, beside the first: below, the reference is singular and tells no side


class RowSource(Protocol):
    """A loop, a constraint or a frame target."""

    @property
    def size(self) -> int:
        """Number of rows."""
        ...

    @property
    def name(self) -> str:
        """For messages."""
        ...

    def scale(self, length: float) -> Array:
        """Makes rows of the Jacobian those of the residual, in metres."""
        ...

    @property
    def ends(self) -> tuple[int, ...]:
        """Links on which the rows lie."""
        ...

    def on(self, small: Branch) -> RowSource:
        """The same rows on a part of the tree."""
        ...

    def links(self, tree: Tree) -> list[int]:
        """Links whose joints change the rows."""
        ...

    def residual(self, at: Pose, length: float) -> Array:
        """How far the rows are from zero, in metres."""
        ...

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Rows per unit of all rates."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class SignBlock(Record):
    """A square block whose determinant tells a side: rows of some loops or targets, and the rates that close them."""

    rows: tuple[RowSource, ...]
    columns: Array
    picked: Array  # of the rows, as many as there are columns
    side: float  # sign of the determinant at the reference

    def fits(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> bool:
        """Whether a pose is on the side of the reference."""
        return bool(self.side * np.linalg.det(block(tree, self.rows, self.columns, at, links)[self.picked]) >= 0)


def block(
    tree: Tree, rows: Sequence[RowSource], columns: Array, at: Pose, links: Sequence[tuple[Array, Array]]
) -> Array:
    """Rows without units for some rates."""
    parts = [row.jacobian(tree, at, links)[:, columns] * row.scale(tree.length)[:, None] for row in rows]
    return np.concatenate([np.zeros((0, len(columns))), *parts]) * (tree.rate_units[columns] / tree.length)


@dataclass(frozen=True, eq=False, repr=False)
class WorkingModeSigns(Record):
    """All that tells on which side of its singularities a part stands."""

    blocks: list[SignBlock]
    dyads: list[Dyad | LegSign]  # or the numbers of a leg in space that brings a point to its place
    apart: bool  # whether they tell all assemblies apart, whole turns aside

    def fit(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> bool:
        """Whether a pose is on the sides of the reference."""
        signs: list[SignBlock | Dyad | LegSign] = [*self.blocks, *self.dyads]
        return all(sign.fits(tree, at, links) for sign in signs)


def working_mode_signs(
    tree: Tree,
    rows: Sequence[RowSource],
    columns: Array,
    placed_links: Collection[int],
    weights: Array,
    reference: Array,
) -> WorkingModeSigns:
    """Return the determinants that define the working mode of a part; the target itself places `placed_links`.

    Blocks of one joint, or of two in a plane, close in two ways, which their sides tell apart. Where there are larger
    ones, dyads are judged too, or the two steps by which a leg in space follows.
    """
    blocks = sign_blocks(tree, rows, columns, placed_links, weights, reference)
    covered, max_columns = {int(k) for sign_block in blocks for k in sign_block.columns}, 2 if tree.planar else 1
    if covered == {int(k) for k in columns} and all(len(sign_block.columns) <= max_columns for sign_block in blocks):
        return WorkingModeSigns(blocks, [], True)
    legs = leg_signs(tree, rows, columns, reference)
    if legs:  # whose numbers are factors of the determinant; of spare rows it may change its sign elsewhere too
        return WorkingModeSigns([], list(legs), True)
    dyad_signs = dyads(tree, rows, columns, reference)
    return WorkingModeSigns(blocks, list(dyad_signs or ()), dyad_signs is not None)


def sign_blocks(
    tree: Tree,
    rows: Sequence[RowSource],
    columns: Array,
    placed_links: Collection[int],
    weights: Array,
    reference: Array,
) -> list[SignBlock]:
    """Blocks of a part that are judged apart; `placed_links` are links that the target itself places.

    Nothing where the reference is singular, or where the part has more rates than its rows decide; loops that touch no
    held link are judged by themselves even then.
    """
    at = pose(tree, reference)
    links = jacobians(tree, at)
    J = block(tree, rows, columns, at, links)
    result, selected = [], select_rows(tree, rows, placed_links, J)
    if selected is not None:
        owner = np.repeat(np.arange(len(rows)), [row.size for row in rows])
        pattern = np.array([[tree.link_of_rate[k] in row.links(tree) for k in columns] for row in rows], dtype=float)
        for block_rows, block_columns in _triangular(pattern[owner[selected]]):
            picked = selected[block_rows]
            members = sorted(set(owner[picked].tolist()))
            inside = np.searchsorted(np.flatnonzero(np.isin(owner, members)), picked)
            side = float(np.sign(np.linalg.det(J[picked][:, block_columns])))
            result.append(SignBlock(tuple(rows[index] for index in members), columns[block_columns], inside, side))
    for loops, rates in inner_loops(tree, rows, columns, placed_links, weights, reference):
        inner = block(tree, loops, np.array(rates), at, links)
        best = _picked(inner)
        if best is not None and len(rates) < len(columns):
            side = float(np.sign(np.linalg.det(inner[best])))
            result.append(SignBlock(tuple(loops), np.array(rates), best, side))
    return result


def select_rows(tree: Tree, rows: Sequence[RowSource], placed_links: Collection[int], J: Array) -> Array | None:
    """Rows that make the best square block of J, those of loops inside first; None where there is none.

    Of rows that repeat each other, as with loops in a plane, not all choices decide the same: one row of such a loop
    and one of the leg around it that follows from the loop make a determinant that vanishes where nothing is singular.
    """
    owner = np.repeat(np.arange(len(rows)), [row.size for row in rows])
    inside = [k for k, row in enumerate(rows) if isinstance(row, Loop) and not set(row.links(tree)) & set(placed_links)]
    is_inner = np.isin(owner, inside)
    if len(J) <= J.shape[1] or not is_inner.any() or is_inner.all():
        return _picked(J)
    first = _independent_rows(J[is_inner])
    inner = np.flatnonzero(is_inner)[first]
    null_basis = mobility.null_space(J[inner], len(inner))
    second = _picked(J[~is_inner] @ null_basis)
    return None if second is None else np.sort([*inner, *np.flatnonzero(~is_inner)[second]])


def inner_loops(
    tree: Tree,
    rows: Sequence[RowSource],
    columns: Array,
    placed_links: Collection[int],
    weights: Array,
    reference: Array,
) -> list[tuple[list[Loop], list[int]]]:
    """Loops of a part that touch no held link, those that share a joint together, and the rates that follow by them."""
    groups: list[tuple[list[Loop], set[int]]] = []
    for loop in rows:
        links = set(loop.links(tree))
        if not isinstance(loop, Loop) or links & set(placed_links):
            continue
        loop_rates = {int(k) for k in columns if tree.link_of_rate[k] in links}
        touching = [group for group in groups if group[1] & loop_rates]
        for group in touching:
            groups.remove(group)
            loop_rates |= group[1]
        groups.append(([*(member for group in touching for member in group[0]), loop], loop_rates))
    candidates = [
        (loops, determined_rates(tree, sorted(loop_rates), loops, reference, weights)) for loops, loop_rates in groups
    ]
    return [(loops, rates) for loops, rates in candidates if rates]


def determined_rates(
    tree: Tree, rates: Sequence[int], loops: Sequence[RowSource], q: Array, weights: Array
) -> list[int]:
    """The rates that loops decide when the others are given: those of large weight, passive joints before motors."""
    at, picked = pose(tree, q), np.array(rates, dtype=int)
    J = block(tree, loops, picked, at, jacobians(tree, at))
    rank = mobility.rank(J)
    if not rank:
        return []
    order = scipy.linalg.qr(J * weights[picked], mode="economic", pivoting=True)[2]
    return sorted(int(picked[k]) for k in order[:rank])


def is_regular(J: Array) -> bool:
    """Whether rows decide all of their rates at a pose: then they close in single assemblies around it."""
    return _picked(J) is not None


def _independent_rows(J: Array) -> Array:
    """As many rows as decide all that these rows do."""
    _, R, order = scipy.linalg.qr(J.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    return np.sort(order[: int((sizes > FLAT * sizes[0]).sum())])


def _picked(J: Array) -> Array | None:
    """Rows that make the best square block; None where there is none that is regular."""
    count = J.shape[1]
    if not 0 < count <= J.shape[0]:
        return None
    _, R, order = scipy.linalg.qr(J.T, mode="economic", pivoting=True)
    return np.sort(order[:count]) if abs(R[count - 1, count - 1]) > FLAT * abs(R[0, 0]) else None


def _triangular(pattern: Array) -> list[tuple[list[int], list[int]]]:
    """Rows and columns of diagonal blocks; all as one where the rows cannot be matched."""
    try:
        return triangular_blocks(pattern)
    except np.linalg.LinAlgError:
        return [(list(range(len(pattern))), list(range(len(pattern))))]
