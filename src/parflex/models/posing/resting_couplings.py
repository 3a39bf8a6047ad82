"""Joints that follow elastic couplings at rest: poses leave these unstretched unless they say otherwise.

One rule for single poses and for many. What a pose names is known; joints follow from it, one coupling after the other,
in the order of the file. Then what stays as at home, motors as a rule, and what follows from that. Then loops close,
and what is coupled to their joints follows. A coupling is stretched where all its joints are known from what is named
alone. Where they are known from what stays as at home, not all of that can stay: the pose leaves open which moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.constraints import Coupling, resting_rows
from parflex.closure.targets import Target
from parflex.closure.working_modes import following_rates
from parflex.records import Record

if TYPE_CHECKING:
    from parflex.models.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class FollowingJoint(Record):
    """A joint that stands where a coupling puts it: its position is `offset` less `ratios` times the `others`."""

    rate: int
    position: int
    others: tuple[int, ...]
    ratios: tuple[float, ...]
    offset: float

    def put(self, q: Array, place: dict[int, int]) -> None:
        """In rows of positions, in which coordinates have these columns."""
        q[:, place[self.position]] = self.offset - sum(
            ratio * q[:, place[k]] for ratio, k in zip(self.ratios, self.others, strict=True)
        )


@dataclass(frozen=True, eq=False, repr=False)
class RestingOrder(Record):
    """Joints that follow before and after loops close; couplings that the pose stretches, and those it leaves open.

    A pose that leaves some open is the one nearest to home: it is found alone.
    """

    target: Target  # with all that is known before loops close
    before: tuple[FollowingJoint, ...] = ()
    after: tuple[FollowingJoint, ...] = ()
    stretched: frozenset[str] = frozenset()
    left_open: frozenset[str] = frozenset()


def resting_order(robot: Robot, named: Target, whole: Target) -> RestingOrder:
    """What follows at a pose; `named` is what it says, `whole` has what stays as at home too."""
    rows = list(resting_rows(robot.tree))
    if not rows:
        return RestingOrder(whole)
    known = set(named.fixed) | set(robot.locked)
    before = _following(rows, known)
    said = {row.name for row in rows if known.issuperset(row.rates)}
    kept = set(whole.fixed) - known
    known |= kept
    before += _following(rows, known)
    held = robot.locked | frozenset(robot.deformations)
    target = replace(whole, fixed=whole.fixed | {one.rate for one in before})
    for part in robot.assembler.parts(target, held):
        rates = [int(k) for k in part.columns]
        if rates and len(following_rates(robot.tree, rates, part.rows, robot.home, robot.preference)) == len(rates):
            known |= set(rates)
    after = _following(rows, known)
    left = {row.name for row in rows}
    if not kept:  # loops close as the pose says, too
        said |= {row.name for row in rows if known.issuperset(row.rates)}
    return RestingOrder(target, tuple(before), tuple(after), frozenset(said), frozenset(left - said))


def _following(rows: list[Coupling], known: set[int]) -> list[FollowingJoint]:
    """Joints that rows decide, one after the other: these rows are taken away, and the joints become known."""
    found: list[FollowingJoint] = []
    waiting = True
    while waiting:
        waiting = False
        for row in list(rows):
            unknown = [n for n, rate in enumerate(row.rates) if rate not in known]
            if len(unknown) == 1:
                found.append(_follower(row, unknown[0]))
                known.add(row.rates[unknown[0]])
                rows.remove(row)
                waiting = True
    return found


def _follower(row: Coupling, n: int) -> FollowingJoint:
    own = row.coefficients[n]
    others = [m for m in range(len(row.rates)) if m != n]
    return FollowingJoint(
        row.rates[n],
        row.positions[n],
        tuple(row.positions[m] for m in others),
        tuple(row.coefficients[m] / own for m in others),
        row.offset / own,
    )


def put_in_order(joints: Sequence[FollowingJoint], q: Array, kept: Array) -> None:
    """Put joints where they follow, in rows of the positions `kept`."""
    place = {int(k): column for column, k in enumerate(kept)}
    for one in joints:
        one.put(q, place)
