"""Joints that follow elastic couplings at rest: poses leave these unstretched unless they say otherwise.

One rule for single poses and for many. What a pose names is known; joints follow from it, one coupling after the other,
in the order of the file. Then what stays as at home, motors as a rule, and what follows from that. Then loops close,
and what is coupled to their joints follows. A coupling is stretched where all its joints are known from what is named
alone. Where they are known from what stays as at home, not all of that can stay: the pose leaves open which moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.closure.constraints import Coupling, unstretched_rows
from parflex.closure.targets import Target
from parflex.closure.working_modes import determined_rates
from parflex.records import Record

if TYPE_CHECKING:
    from parflex.models.robot import Robot

Array = np.ndarray
Place = tuple[str | int, ...]  # of a number in a robot, by fields and indices


@dataclass(frozen=True, eq=False, repr=False)
class FollowingJoint(Record):
    """A joint that stands where a coupling puts it: the one of its joints that `own` numbers.

    `spring` is the number of the coupling among those of the tree.
    """

    row: Coupling
    spring: int
    own: int

    @property
    def rate(self) -> int:
        """Of the joint."""
        return self.row.rates[self.own]

    @property
    def position(self) -> int:
        """Of the joint."""
        return self.row.positions[self.own]

    def put(self, q: Array, place: Mapping[int, int], designed: Mapping[Place, int]) -> None:
        """In rows of positions, in which coordinates have these columns, and numbers of designs those of `designed`."""

        def number(plain: float, *word: str | int) -> Any:
            column = designed.get(("tree", "springs", self.spring, *word))
            return plain if column is None else q[:, column]

        row = self.row
        shares = [number(c, "coefficients", n) for n, c in enumerate(row.coefficients)]
        others = sum(shares[n] * q[:, place[k]] for n, k in enumerate(row.positions) if n != self.own)
        with np.errstate(all="ignore"):  # what couples nothing is no position, and is refused where it is loaded
            q[:, place[self.position]] = (number(row.offset, "offset") - others) / shares[self.own]


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
    rows = dict(enumerate(unstretched_rows(robot.tree)))
    if not rows:
        return RestingOrder(whole)
    known = set(named.fixed) | set(robot.locked)
    before = _following(rows, known)
    said = {row.name for row in rows.values() if known.issuperset(row.rates)}
    kept = set(whole.fixed) - known
    known |= kept
    before += _following(rows, known)
    held = robot.locked | frozenset(robot.deformations)
    target = replace(whole, fixed=whole.fixed | {one.rate for one in before})
    for part in robot.assembler.parts(target, held):
        rates = [int(k) for k in part.columns]
        if rates and len(determined_rates(robot.tree, rates, part.rows, robot.home, robot.preference)) == len(rates):
            known |= set(rates)
    after = _following(rows, known)
    left = {row.name for row in rows.values()}
    if not kept:  # loops close as the pose says, too
        said |= {row.name for row in rows.values() if known.issuperset(row.rates)}
    return RestingOrder(target, tuple(before), tuple(after), frozenset(said), frozenset(left - said))


def _following(rows: dict[int, Coupling], known: set[int]) -> list[FollowingJoint]:
    """Joints that rows decide, one after the other: these rows are taken away, and the joints become known."""
    found: list[FollowingJoint] = []
    waiting = True
    while waiting:
        waiting = False
        for spring, row in list(rows.items()):
            unknown = [n for n, rate in enumerate(row.rates) if rate not in known]
            if len(unknown) == 1:
                found.append(FollowingJoint(row, spring, unknown[0]))
                known.add(row.rates[unknown[0]])
                del rows[spring]
                waiting = True
    return found


def put_in_order(
    joints: Sequence[FollowingJoint], q: Array, kept: Array, designed: Mapping[Place, int] | None = None
) -> None:
    """Put joints where they follow, in rows of the positions `kept`.

    `designed` are columns of the same rows with numbers of designs, by where these stand in the robot.
    """
    place = {int(k): column for column, k in enumerate(kept)}
    for one in joints:
        one.put(q, place, designed or {})
