"""Positions of all joints at many poses: Newton on all poses at once, from home, then from poses that were found."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.closure.assembly.far_poses import position_units
from parflex.closure.assembly.newton import STRIDE
from parflex.closure.assembly.unreached import another_mode
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.maps.batches import Geometry
from parflex.maps.placing.asked_poses import AskedPoses
from parflex.maps.placing.closing_loop import judged_rows, rows_apart
from parflex.maps.placing.closing_parts import closing_parts
from parflex.maps.placing.dyad_places import DyadPlaces, dyad_places
from parflex.maps.placing.given_coordinates import GivenCoordinates, NotGivenError
from parflex.maps.placing.homes_of_designs import moved_at_home
from parflex.maps.placing.kept_closures import kept_places, kept_steppers, legs_differ
from parflex.maps.placing.leg_bodies import leg_structure
from parflex.maps.placing.steppers import ASKED, POLISH, Stepper
from parflex.maps.reaching.beyond_folds import beyond_folds
from parflex.maps.reaching.neighbours import FEW, nearest_point, neighbours
from parflex.maps.reaching.ways_from_home import closes, walk
from parflex.models.pose_input import joint_named
from parflex.models.posing.resting_couplings import put_in_order
from parflex.records import Record

Array = np.ndarray
OK, UNREACHABLE, SINGULAR, IMPOSSIBLE, WAITING = 0, 1, 2, 3, -1
CLOSED = 1e-9  # opening, in typical lengths, from which a loop counts as open: Newton ends far below
FLAT = 1e-6  # determinant of a leg, beside that at home, below which the pose counts as singular
ROUNDS = 8  # times that poses which were not reached are tried again from their neighbours
APART = 32  # of so many poses one starts from home, the others from the nearest of them
SAID = {OK: "", UNREACHABLE: "the pose cannot be reached", SINGULAR: "the robot is singular there"}
IN_ANOTHER_ASSEMBLY = (
    "the robot reaches the pose only in another assembly mode: all ways there that were tried meet a singular pose"
)
NEIGHBOURS = 8  # from which a pose is tried while few are not reached
REMEMBERED = 128  # poses from which others start
WORTHWHILE = 0.25  # of far poses that others must bring near, for another round
NEARBY = 12  # steps from a pose nearby, of all parts: what needs more is tried from home
MANY_STRIDES = 24  # to poses of several assemblies, at most
TURN = 1.0  # rad of a given joint in a stride that winds springs: longer ones could lose a turn
TURNED = 6  # strides for each of these, at most
LONGEST, SHORTEST = 1 / 3, 1 / 60  # of their way, of one stride
LONG = 40  # steps of Newton's method from a pose that may be far
ONCE = 1  # step from a position in closed form
LENGTHY = 400  # instructions from which a step is compiled for ways: interpreted it takes milliseconds
SHORT = 8  # steps of Newton's method after a stride: what needs more has lost its way
WALKED = 1024  # poses up to which ways are walked: of more, as in maps, neighbours were tried


def home_state(error: ParflexError) -> tuple[int, str]:
    """State and reason of a design whose home is not found: it is singular, or the design makes no robot."""
    if not isinstance(error, UnreachableError | SingularError):
        return IMPOSSIBLE, error.message
    said = error.message.removeprefix("the pose ")
    state = SINGULAR if isinstance(error, SingularError) else IMPOSSIBLE
    own = "home of this design"
    return state, f"{own} {said}" if said != error.message else f"at the {own} {said}"


@dataclass(frozen=True, eq=False, repr=False)
class Positions(Record):
    """Positions of the rigid tree (poses x nq) and the state of each pose: OK, UNREACHABLE or SINGULAR.

    `said` are sentences on single poses that have none, where each has its own.
    """

    q: Array
    status: Array
    said: list[str] | None = None


class PositionSolver(AskedPoses):
    """Finds positions of a robot at poses that are given by the same coordinates."""

    known: tuple[Array, Array] | None = None  # poses that were found before, from which others start
    known_numbers: Array | None = None  # of these, where poses are in an order
    single: Any = None  # what finds poses one by one, once it was needed
    walks = True  # whether ways from home are tried for poses that are not reached otherwise

    def __init__(self, geometry: Geometry, names: Sequence[str], first: Sequence[float]) -> None:
        super().__init__(geometry, names, first)
        try:
            self.given = GivenCoordinates(geometry, names)
            self.refuse_open_couplings()
            self.given.following = () if self.coupled is None else self.coupled.before
            geometry.legs_differ = legs_differ(geometry, self.names, lambda: leg_structure(geometry, self.target))
            self.steppers, self.judges, self.joined = kept_steppers(
                geometry, self.names, lambda: closing_parts(geometry, self.given, self.target)
            )
            known = {int(k) for one in self.steppers for k in one.columns} | set(self.given.columns)
            known |= {int(np.searchsorted(geometry.kept, one.position)) for one in self.after}
            moved = moved_at_home(geometry, known)
            self.fast = not moved
            self.why_slow = f"'{moved[0]}' is not named, and designs move it at home" if moved else ""
        except (NotGivenError, ParflexError) as error:
            why = error.message if isinstance(error, ParflexError) else error
            self.fast, self.why_slow = False, f"positions are found one by one: {why}"

    def on_sides(self, q: Array) -> Array:
        """Which positions, as they are, have all parts on the sides of home."""
        every, good = np.arange(len(q)), np.ones(len(q), dtype=bool)
        if self.joined is not None and self._is_joined(q):
            told, (columns, signs, sizes) = self.joined.judging(q), self._signed
            self._put_determinants(told)
            return judged_rows(told, self.joined.openings[:0], 0.0, columns, signs, 0.0 * sizes)[0]
        with np.errstate(invalid="ignore"):
            for one in (*self.steppers, *self.judges):
                good &= one.judge(q, every)[1] > 0
        return good

    @cached_property
    def keeps(self) -> bool:
        """Whether poses keep more than is named: where they cannot, single ones are found that do not."""
        return self.fast and bool(self.given.asked) and self.widened(self.read) is not None

    def why(self, state: int) -> str:
        """Why a pose has no positions, in a sentence; what is kept at home is named."""
        kept = self.given.kept_at_home if state == UNREACHABLE and self.fast else []
        if not kept:
            return SAID[state]
        named = ", ".join(f"'{name}'" for name in kept[:3]) + (", ..." if len(kept) > 3 else "")
        return f"{SAID[state]} with {named} as at home"

    def __call__(self, values: Array, designs: Array | None = None) -> Positions:
        """Positions at poses, one row of coordinates each; `designs` are the numbers of their designs, if any."""
        values = np.asarray(values, dtype=float)
        if not self.fast:
            return self._slow(values)
        own = np.arange(len(values)) if designs is None else designs
        if self.places is None:
            q, status = self._searched(values, own)
        else:
            q, status = self._by_dyads(self.places, values, own)
        said = self._said(values, own, status)
        if self.keeps and (status == UNREACHABLE).any():
            said = self._without_what_is_kept(values, q, status, said)
        put_in_order(self.after, q, self.geometry.kept, self.geometry.designed)
        return Positions(q[:, : -len(ASKED)] if self.given.asked else q, status, said)

    def _without_what_is_kept(self, values: Array, q: Array, status: Array, said: list[str] | None) -> list[str]:
        """Poses that are reached only if they do not keep what is not named, one by one and in place; what is said."""
        said = [self.why(int(state)) for state in status] if said is None else said
        lost = np.flatnonzero(status == UNREACHABLE)
        found = self._slow(values[lost])
        q[lost, : found.q.shape[1]], status[lost] = found.q, found.status
        for row, words in zip(lost.tolist(), found.said or [], strict=True):
            said[row] = words
        return said

    def _said(self, values: Array, own: Array, status: Array) -> list[str] | None:
        """Sentences on poses that close in another mode, where some do; None where none was looked for.

        What closed forms exclude closes nowhere, or costs more to tell than to place.
        """
        lost = np.flatnonzero(status == UNREACHABLE)
        if not self.walks or self.places is not None or not 0 < len(lost) <= WALKED:
            return None
        elsewhere = lost[closes(self.for_ways(), values[lost], own[lost])]
        said = [self.why(int(state)) for state in status]
        parts = self.robot.assembler.parts(self.target, self.robot.locked | frozenset(self.robot.deformations))
        names = [part.name for part in parts if len(part.columns)]
        assemblies = any(not one.settled and not one.folds for one in self.steppers)
        mode = another_mode(names[0] if len(names) == 1 else "", False).message
        for row in elsewhere:
            said[row] = IN_ANOTHER_ASSEMBLY if assemblies else mode
        return said

    @cached_property
    def places(self) -> DyadPlaces | None:
        """Positions in closed form, where all legs are dyads that sides tell apart."""
        if self.unsettled.size:
            return None
        return kept_places(self.geometry, self.names, lambda: dyad_places(self.geometry, self.names, self.target))

    def _by_dyads(self, places: DyadPlaces, values: Array, own: Array) -> tuple[Array, Array]:
        """Poses in closed form, which Newton's method rounds and judges; what it does not confirm is searched for."""
        home = self.geometry.rows(np.broadcast_to(self.geometry.home, (len(values), len(self.geometry.home))), own)
        beyond, q = places(self.given.start(values, home))
        status, near = np.full(len(values), UNREACHABLE), np.flatnonzero(~beyond)
        if len(near) == len(values):  # as a rule: nothing is copied
            q, status = self._together(q, ONCE)
        else:
            q[near], status[near] = self._together(q[near], ONCE)
        left = near[status[near] == UNREACHABLE]
        if len(left):
            q[left], status[left] = self._searched(values[left], own[left])
        return q, status

    def _searched(self, values: Array, own: Array) -> tuple[Array, Array]:
        """Poses by Newton's method from home and from poses nearby, round after round."""
        scale = np.maximum(np.ptp(values, axis=0), 1e-300)
        q, status = self._from_near(values, own, scale)
        striding = self
        for _ in range(ROUNDS):
            open_ones, good = np.flatnonzero(status == UNREACHABLE), np.flatnonzero(status == OK)
            if not len(open_ones) or not len(good):
                break
            striding = self.for_ways() if self.unsettled.size and striding is self else striding
            tried = min(NEIGHBOURS if len(open_ones) <= FEW else 1, len(good))
            far, nearest = neighbours(values[good] / scale, values[open_ones] / scale, tried)
            close = far[:, 0] <= 2 * max(float(np.median(far[:, 0])), 1e-300)  # those at the edge of what was found
            if not close.any():
                break
            some = False
            for near in nearest[close].T:  # a pose may be beyond a singular one from its nearest neighbour
                left = status[open_ones[close]] == UNREACHABLE
                again = open_ones[close][left]
                if not len(again):
                    break
                begin = good[near[left]]
                found, state = striding._reached(values[again], own[again], values[begin], q[begin])
                gained = state != UNREACHABLE
                q[again[gained]], status[again[gained]] = found[gained], state[gained]
                some = some or bool(gained.any())
            if not some:
                break
        if len(values) >= FEW and 0 < (status == UNREACHABLE).sum() <= FEW:
            self._again_from_home(values, own, q, status)
        folds = any(one.folds for one in self.steppers)  # sides tell: all starts are tried, which finds more than ways
        if self.walks and (status == UNREACHABLE).sum() <= WALKED and (self.unsettled.size or not folds):
            walk(self.for_ways(), values, own, q, status)
        beyond_folds(self, values, own, q, status, FLAT, (OK, SINGULAR))
        return q, status

    def from_home(self, values: Array, own: Array) -> tuple[Array, Array]:
        """Poses from home."""
        home = np.repeat(self.geometry.home[None], len(values), axis=0)
        return self._reached(values, own, np.repeat(self.given.at_home[None], len(values), axis=0), home)

    def _reached(self, values: Array, own: Array, begun: Array, begin: Array) -> tuple[Array, Array]:
        """Poses from positions `begin` at coordinates `begun`; far ones along the way, where a robot could be lost."""
        q, status, before = self._begun(values, own, begin)
        self._along(values, own, begun, before, q, status)
        return q, status

    def _begun(self, values: Array, own: Array, begin: Array, near: bool = False) -> tuple[Array, Array, Array]:
        """Poses from positions by Newton's method alone: where they end, their state, and where they started."""
        start = self.given.start(values, self.geometry.rows(begin[:, : self.geometry.kept.size], own))
        before = start.copy() if self.unsettled.size else start
        return (*(self._together(start) if near else self._newton(start)), before)

    def _along(self, values: Array, own: Array, begun: Array, before: Array, q: Array, status: Array) -> None:
        """Poses that are far from where they started along the way to them, in place; lost ones are not reached."""
        far = np.flatnonzero((status == OK) & (self.jumped(before, q) | (self._turned(begun, values) > TURN)))
        if len(far):
            here, state = self.strided(values[far], own[far], begun[far], before[far])
            status[far[state != OK]] = UNREACHABLE  # Newton ended in whatever assembly
            q[far[state == OK]], status[far[state == OK]] = self.sharpened(
                values[far[state == OK]], own[far[state == OK]], here[state == OK]
            )

    def sharpened(self, values: Array, own: Array, near: Array) -> tuple[Array, Array]:
        """Poses to rounding, from positions beside them."""
        near = near[:, : self.geometry.kept.size]
        return self._together(self.given.start(values, self.geometry.rows(near, own)))

    def _from_others(self, values: Array, own: Array, begun: Array, before: Array, q: Array, status: Array) -> bool:
        """Far poses from the nearest ones that are not, all in place: also where each started. Whether some are."""
        far = self.jumped(before, q) | (self._turned(begun, values) > TURN)
        if not far.any():
            return False
        scale = np.maximum(np.ptp(values, axis=0), 1e-300)
        for _ in range(ROUNDS):
            open_ones, good = np.flatnonzero((status == OK) & far), np.flatnonzero((status == OK) & ~far)
            if not len(open_ones) or not len(good):
                break
            _, nearest = neighbours(values[good] / scale, values[open_ones] / scale, 1)
            begin = good[nearest[:, 0]]
            here = q[begin, : self.geometry.kept.size]
            start = self.given.start(values[open_ones], self.geometry.rows(here, own[open_ones]))
            begun[open_ones], before[open_ones] = values[begin], start
            found, state = self._together(start)
            gained = (state == OK) & ~self.jumped(before[open_ones], found)
            gained &= self._turned(begun[open_ones], values[open_ones]) <= TURN
            q[open_ones[gained]], far[open_ones[gained]] = found[gained], False
            if gained.mean() < WORTHWHILE:
                break
        return True

    @cached_property
    def unsettled(self) -> Array:
        """Positions of parts that close in several assemblies on the side of home."""
        return np.concatenate([np.zeros(0, dtype=int), *(one.columns for one in self.steppers if not one.settled)])

    def _turned(self, begun: Array, values: Array) -> Array:
        """By how much given joints turn on a way, where this winds springs: a whole turn winds them too."""
        if not self._winding:
            return np.zeros(len(values))
        return np.abs(values[:, self._winding] - begun[:, self._winding]).max(axis=1, initial=0.0)

    @cached_property
    def _winding(self) -> list[int]:
        """Coordinates that turn joints, where this winds springs."""
        links = {link.q.start: link for link in self.geometry.tree.links if link.joint.one_axis}
        if not self.counts_turns:
            return []
        own = [k for k, name in enumerate(self.names) if joint_named(self.geometry.tree, name) is not None]
        return [k for k in own if links[self.given.where[self.names[k]]].joint.periodic]

    @cached_property
    def counts_turns(self) -> bool:
        """Whether ways wind springs of joints."""
        wound = {link.q.start for link in self.geometry.tree.links if link.joint.one_axis and link.wound}
        return bool(wound & set(self.unsettled.tolist()))

    @cached_property
    def _units(self) -> Array:
        return position_units(self.geometry.tree)[self.unsettled]

    @cached_property
    def _turning(self) -> Array:
        periodic = {link.q.start for link in self.geometry.tree.links if link.periodic and not link.wound}
        return np.array([k in periodic for k in self.unsettled], dtype=bool)

    def jumped(self, before: Array, after: Array) -> Array:
        """Which rows moved so far that Newton may have left their assembly."""
        far = rows_apart(before, after, self.unsettled, STRIDE * self._units)
        if far.any():  # few: whole turns are no way
            own = after[far][:, self.unsettled] - before[far][:, self.unsettled]
            own[:, self._turning] = np.arctan2(np.sin(own[:, self._turning]), np.cos(own[:, self._turning]))
            far[far] = (np.abs(own) > STRIDE * self._units).any(axis=1)
        return np.asarray(far)

    def strided(
        self, values: Array, own: Array, begun: Array, begin: Array, shortest: float = SHORTEST
    ) -> tuple[Array, Array]:
        """Poses by strides along straight ways, shorter where one is lost or jumps; the shortest ends what is lost."""
        status, going, q = np.full(len(values), UNREACHABLE), np.arange(len(values)), begin.copy()
        longest = np.minimum(1.0, TURN / np.maximum(self._turned(begun, values), TURN))
        share, stride = np.zeros(len(values)), np.minimum(LONGEST, longest)
        turns = TURNED * int(1.0 / longest.min(initial=1.0))
        for _ in range(MANY_STRIDES + turns + int(np.log2(SHORTEST / shortest))):
            if not len(going):
                break
            ahead = np.minimum(share[going] + stride[going], 1.0)
            now = begun[going] + ahead[:, None] * (values[going] - begun[going])
            start = self.given.start(now, self.geometry.rows(q[going, : self.geometry.kept.size], own[going]))
            before = start.copy()
            here, state = self._together(start, SHORT)
            gained = (state == OK) & ~self.jumped(before, here)
            q[going[gained]], share[going[gained]] = here[gained], ahead[gained]
            stride[going] = np.minimum(stride[going] * np.where(gained, 2.0, 1.0 / 3.0), longest[going])
            status[going[gained & (ahead == 1.0)]] = OK
            going = going[(share[going] < 1.0) & (stride[going] >= shortest * longest[going])]
        return q, status

    def _from_near(self, values: Array, own: Array, scale: Array) -> tuple[Array, Array]:
        """Some poses from home, all others from the nearest of these, and those that fail from home."""
        if len(values) < FEW:
            return self.from_home(values, own)
        if self.known is None:
            first = np.arange(0, len(values), APART)
            q, status = self.from_home(values[first], own[first])
            good = np.flatnonzero(status == OK)
            if not len(good):
                return self.from_home(values, own)
            known, q = values[first[good]], q[good]
        else:
            known, q = self.known
        moving = scale > 1e-300
        if self.known_numbers is None:
            nearest = nearest_point(known[:, moving] / scale[moving], values[:, moving] / scale[moving])
        else:
            nearest = np.searchsorted(0.5 * (self.known_numbers[1:] + self.known_numbers[:-1]), own)
        begun = known[nearest]
        found, state, before = self._begun(values, own, q[nearest], near=True)
        far = self._from_others(values, own, begun, before, found, state)
        failed, good = np.flatnonzero(state != OK), np.flatnonzero(state == OK)
        if len(failed) and len(good):
            begin = good[
                nearest_point(values[good][:, moving] / scale[moving], values[failed][:, moving] / scale[moving])
            ]
            again, judged, start = self._begun(values[failed], own[failed], found[begin])
            gained = failed[judged == OK]
            begun[gained], before[gained] = values[begin[judged == OK]], start[judged == OK]
            found[gained], state[gained] = again[judged == OK], OK
            failed = failed[judged != OK]
        if far or len(good) < len(values):  # else all are where Newton's method left them, and near
            self._along(values, own, begun, before, found, state)
        if len(failed) > FEW or not len(good):  # few are tried from more neighbours first
            self._again_from_home(values, own, found, state)
        return found, state

    def _again_from_home(self, values: Array, own: Array, q: Array, status: Array) -> None:
        """Poses that are not reached from home, in place."""
        failed = np.flatnonzero(status != OK)
        again, judged = self.from_home(values[failed], own[failed])
        q[failed[judged == OK]], status[failed[judged == OK]] = again[judged == OK], OK

    def remember(self, values: Array, q: Array, numbers: Array | None = None) -> None:
        """Poses with their positions from which others start, in the place of some that start from home.

        `numbers` are those of their designs, where these are in an order in which poses that follow each other are
        alike: a pose then starts from the one whose number is nearest.
        """
        if len(values):
            some = slice(None, None, -(-len(values) // REMEMBERED) if numbers is None else 1)
            self.known, self.known_numbers = (np.asarray(values[some], dtype=float), q[some]), numbers

    def _newton(self, q: Array, steps: int = LONG) -> tuple[Array, Array]:
        """Newton in place; a row that a part of the robot does not reach is left by the next parts."""
        if len(q) <= FEW and self._is_joined(q):  # calls take longer than steps
            return self._together(q, steps)
        status, todo = np.full(len(q), OK), np.arange(len(q))
        for one in self.steppers:
            opening, side = one.solve(q, todo, steps)
            todo = self._judge(status, todo, one, (opening < CLOSED) & (side > 0), side)
        for one in self.judges:
            _, side = one.judge(q, todo)
            todo = self._judge(status, todo, one, side > 0, side)
        return q, status

    @staticmethod
    def lost(status: Array) -> Array:
        """Which poses are not reached."""
        return np.asarray(status == UNREACHABLE)

    def for_ways(self) -> PositionSolver:
        """The same with compiled steps where these are long: ways take hundreds of them, however few the poses."""
        if self.geometry.compiled or sum(len(one.program.program.instructions) for one in self.steppers) < LENGTHY:
            return self
        made = copy.copy(self)
        made.steppers = [replace(one, program=one.program.with_choice(True)) for one in self.steppers]
        made.judges = [replace(one, program=one.program.with_choice(True)) for one in self.judges]
        return made

    def closed(self, q: Array) -> Array:
        """Which rows Newton closes, on whatever side of their singularities, in place."""
        found = [one.solve(q, np.arange(len(q)), LONG)[0] < CLOSED for one in self.steppers]
        return np.all(found, axis=0)

    def _together(self, q: Array, steps: int | None = None) -> tuple[Array, Array]:
        """Newton in place on all parts of the robot at once, from positions that are near as a rule."""
        if not self._is_joined(q):
            return self._newton(q, steps or LONG)
        assert self.joined is not None
        told = self.joined(q, steps or NEARBY, POLISH)
        columns, signs, sizes = self._signed
        self._put_determinants(told)
        closed, flat = judged_rows(told, self.joined.openings, CLOSED**2, columns, signs, FLAT * sizes)
        return q, np.where(closed, np.where(flat, SINGULAR, OK), UNREACHABLE)

    @cached_property
    def _signed(self) -> tuple[Array, Array, Array]:
        """Of what the joined program tells: columns with determinants of all parts, their signs and sizes at home."""
        assert self.joined is not None
        parts = [*self.steppers, *self.judges]
        columns = np.array([own.stop - 1 for own in self.joined.told], dtype=np.int64)
        signs = np.array([1.0 if one.rows else one.side for one in parts], dtype=float)
        return columns, signs, np.array([one.size for one in parts], dtype=float)

    def _put_determinants(self, told: Array) -> None:
        """Determinants in the place of the last entry of matrices, signed, in place."""
        assert self.joined is not None
        for one, own in zip((*self.steppers, *self.judges), self.joined.told, strict=True):
            if one.rows:
                told[:, own.stop - 1] = one.sided(told[:, own])

    def _is_joined(self, q: Array) -> bool:
        """Whether one compiled program moves all parts of the robot."""
        return self.joined is not None and all(one.program.kernel(len(q)) is not None for one in self.steppers)

    @staticmethod
    def _judge(status: Array, todo: Array, one: Stepper, good: Array, side: Array) -> Array:
        """Mark rows by what a part of the robot says; gives those that go on."""
        reached = good[todo]
        status[todo[~reached]] = UNREACHABLE
        todo = todo[reached]
        flat = todo[side[todo] < FLAT * one.size]
        status[flat] = SINGULAR
        return todo

    def _slow(self, values: Array) -> Positions:
        """Pose by pose."""
        from parflex.maps.rows.single_positions import SinglePositions  # beside modules that stand on this one

        if self.single is None:
            self.single = SinglePositions(self.robot, self.names, (OK, UNREACHABLE, SINGULAR))
        q, status, said = self.single(values)
        return Positions(q[:, self.geometry.kept], status, said)
