"""Positions of all joints at many poses: Newton's method on all poses at once, from home, then from closed poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.closure.unreachable import other_mode_reason
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.maps.closed_forms import DyadPlaces, dyad_places, leg_structure
from parflex.maps.continuation import (
    FEW,
    OK,
    OUTSIDE,
    SINGULAR,
    TURN,
    UNREACHABLE,
    StridingRows,
    close_anywhere,
    close_beyond_folds,
    follow_paths,
    nearest_point,
    neighbours,
)
from parflex.maps.coordinates import STILL, PoseCoordinates, UnsuitedCoordinatesError, closing_parts, moved_at_home
from parflex.maps.kinematics import Geometry
from parflex.maps.newton import ASKED, cached_places, cached_steppers, legs_differ
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import joint_named
from parflex.robot.gearing import place_following_joints
from parflex.robot.limits import AT_LIMIT, POSITION, check_limits
from parflex.robot.robot import Robot
from parflex.tree.tree import Link

Array = np.ndarray
LAST = 20  # poses found before, of which the nearest is the start
SEARCHED, LEAST = 1 / 64, 8  # share of all rows that are searched for, and how many of few
SPARE = 1e-9  # of the typical length: how far beyond its links a pose is to count as beyond them
BEYOND_LINKS = "the pose cannot be reached: the links are too short or too long for it"
NOT_FOUND = "the pose was not found from home or from its neighbours: it may be out of reach"
IMPOSSIBLE, WAITING = 3, -1  # beside the states of rows that were closed
ROUNDS = 8  # times that poses which were not reached are tried again from their neighbours
APART = 32  # of so many poses one starts from home, the others from the nearest of them
MESSAGES = {OK: "", UNREACHABLE: "the pose cannot be reached", SINGULAR: "the robot is singular there"}
OTHER_ASSEMBLY_MESSAGE = (
    "the robot reaches the pose only in another assembly mode: all ways there that were tried meet a singular pose"
)
NEIGHBOURS = 8  # from which a pose is tried while few are not reached
REMEMBERED = 128  # poses from which others start
WORTHWHILE = 0.25  # of far poses that others must bring near, for another round
ONCE = 1  # step from a position in closed form
MAX_POSES_FOR_PATHS = 1024  # unreached poses up to which paths are followed: of more, as in maps, neighbours were tried


def home_state(error: ParflexError) -> tuple[int, str]:
    """State and reason of a design whose home is not found: it is singular, or the design makes no robot."""
    if not isinstance(error, UnreachableError | SingularError):
        return IMPOSSIBLE, error.message
    reason = error.message.removeprefix("the pose ")
    state = SINGULAR if isinstance(error, SingularError) else IMPOSSIBLE
    label = "home of this design"
    return state, f"{label} {reason}" if reason != error.message else f"at the {label} {reason}"


def outside_limits(robot: Robot, q: Array) -> str:
    """Return which joint is outside its limits at positions; empty where none is."""
    beyond = check_limits(robot, dict(zip(robot.tree.position_names, q, strict=True)))
    position = [violation for violation in beyond if violation.key == POSITION]
    return f"the joint '{position[0].joint}' is outside its limits" if position else ""


@dataclass(frozen=True, eq=False, repr=False)
class Positions(Record):
    """Positions of the rigid tree (poses x nq) and the state of each pose: OK, UNREACHABLE, SINGULAR or OUTSIDE.

    `messages` are sentences on single poses that have no positions, where each has its own.
    """

    q: Array
    status: Array
    messages: list[str] | None = None


class PositionSolver(StridingRows):
    """Finds positions of a robot at poses that are given by the same coordinates."""

    known: tuple[Array, Array] | None = None  # poses that were found before, from which others start
    known_design_numbers: Array | None = None  # of these, where poses are in an order
    single: Any = None  # what finds poses one by one, once it was needed
    is_slice = False  # whether coordinates that are not named stay as at home
    follows_paths = True  # whether paths from home are followed to poses that are not reached otherwise

    def __init__(
        self, geometry: Geometry, names: Sequence[str], first: Sequence[float], ignore_limits: bool = False
    ) -> None:
        super().__init__(geometry, names, first)
        self.ignore_limits = ignore_limits
        try:
            self.given = PoseCoordinates(geometry, names)
            self.refuse_open_couplings()
            self.given.following = () if self.coupled is None else self.coupled.before
            geometry.legs_differ = legs_differ(geometry, self.names, lambda: leg_structure(geometry, self.target))
            self.steppers, self.judges, self.joined = cached_steppers(
                geometry, self.names, lambda: closing_parts(geometry, self.given, self.target)
            )
            known = {int(k) for item in self.steppers for k in item.columns} | set(self.given.columns)
            known |= {int(np.searchsorted(geometry.kept, item.position)) for item in self.after}
            moved = moved_at_home(geometry, known)
            self.fast, self.is_slice = not moved, True
            self.single_solve_reason = f"'{moved[0]}' is not named, and designs move it at home" if moved else ""
        except (UnsuitedCoordinatesError, ParflexError) as error:
            why = error.message if isinstance(error, ParflexError) else error
            self.fast, self.single_solve_reason = False, f"positions are found one by one: {why}"

    @cached_property
    def keeps(self) -> bool:
        """Whether poses keep more than is named: where they cannot, single ones are found that do not."""
        return self.fast and bool(self.given.asked) and self.widened(self.read) is not None

    def why(self, state: int) -> str:
        """Return why a pose has no positions, in a sentence that names the coordinates held at home."""
        fixed = self.given.coordinates_fixed_at_home if state == UNREACHABLE and self.is_slice else []
        if not fixed:
            return MESSAGES[state]
        named = ", ".join(f"'{name}'" for name in fixed[:3]) + (", ..." if len(fixed) > 3 else "")
        return f"{MESSAGES[state]} with {named} as at home"

    def leaves_slice(self, robot: Robot, q: Array) -> bool:
        """Return whether a design, assembled by itself, reaches a pose only outside the slice of a map.

        A single pose without all coordinates is the nearest one, and it may stretch elastic couplings. Rows are a
        slice, however their positions are found: coordinates stay as at home, or follow couplings at rest.
        """
        if not self.is_slice:
            return False
        held = self.given.held_at_home
        moved = (q - robot.home)[self.geometry.kept[held]] / self.geometry.position_units[held]
        resting = () if self.coupled is None else (*self.coupled.before, *self.coupled.after)
        stretch = [robot.tree.springs[one.spring].stretch(q) / robot.tree.rate_units[one.rate] for one in resting]
        return bool((np.abs([*moved, *stretch]) > STILL).any())

    def __call__(self, values: Array, designs: Array | None = None) -> Positions:
        """Positions at poses, one row of coordinates each; `designs` are the numbers of their designs, if any."""
        values = np.asarray(values, dtype=float)
        design_rows = np.arange(len(values)) if designs is None else designs
        placed = self._placed(values, design_rows) if self.fast else self._solve_one_by_one(values)
        return self._limited(placed, design_rows) if self._limits else placed

    def _placed(self, values: Array, design_rows: Array) -> Positions:
        if self.places is None:
            q, status = self._searched(values, design_rows)
        else:
            q, status = self._by_dyads(self.places, values, design_rows)
        messages = self._messages(values, design_rows, status)
        if self.keeps and (status == UNREACHABLE).any():
            messages = self._retry_without_home_coordinates(values, q, status, messages)
        place_following_joints(self.after, q, self.geometry.kept, self.geometry.designed)
        return Positions(q[:, : -len(ASKED)] if self.given.asked else q, status, messages)

    @cached_property
    def _limits(self) -> list[tuple[Link, Array]]:
        """Links with limits, and these: one pair, or one for each design."""
        designs, links = self.geometry.designs, [] if self.ignore_limits else self.geometry.tree.links
        return [
            (link, np.array(link.limits) if designs is None else designs.values_at(("links", j, "limits"), link.limits))
            for j, link in enumerate(links)
            if link.limits is not None and link.terms.stop is None
        ]

    def _limited(self, placed: Positions, designs: Array) -> Positions:
        """Mark poses that are outside the limits of a joint, angles in the turn that the limits allow."""
        named = [joint_named(self.geometry.tree, name) for name in self.names]
        given = {joint.name for joint in named if joint is not None}
        messages: list[str] | None = None
        for link, limits in self._limits:
            low, high = limits.T if limits.ndim == 1 else limits[designs].T
            tolerance, value = AT_LIMIT * self.geometry.tree.rate_units[link.v.start], placed.q[:, link.q.start]
            if link.periodic and not link.wound and link.name not in given:
                value = low - tolerance + (value - low + tolerance) % (2 * np.pi)
            beyond = (placed.status == OK) & ((value < low - tolerance) | (value > high + tolerance))
            if beyond.any() and messages is None:
                messages = placed.messages or [self.why(int(state)) for state in placed.status]
            for row in np.flatnonzero(beyond):
                assert messages is not None
                messages[row] = f"the joint '{link.name}' is outside its limits"
            placed.status[beyond] = OUTSIDE
        return placed if messages is None else Positions(placed.q, placed.status, messages)

    def _retry_without_home_coordinates(
        self, values: Array, q: Array, status: Array, messages: list[str] | None
    ) -> list[str]:
        """Retry poses without the coordinates held at home, one by one and in place; return the messages."""
        messages = [self.why(int(state)) for state in status] if messages is None else messages
        unreached = np.flatnonzero(status == UNREACHABLE)
        positions = self._solve_one_by_one(values[unreached])
        q[unreached, : positions.q.shape[1]], status[unreached] = positions.q, positions.status
        for row, message in zip(unreached.tolist(), positions.messages or [], strict=True):
            messages[row] = message
        return messages

    def _messages(self, values: Array, designs: Array, status: Array) -> list[str] | None:
        """Sentences on poses that close in another mode, where some do; None where none was looked for.

        What closed forms exclude closes nowhere, or costs more to tell than to place.
        """
        unreached = np.flatnonzero(status == UNREACHABLE)
        if not self.follows_paths or self.places is not None or not 0 < len(unreached) <= MAX_POSES_FOR_PATHS:
            return None
        elsewhere = unreached[close_anywhere(self.with_compiled_steps(), values[unreached], designs[unreached])]
        messages = [self.why(int(state)) for state in status]
        parts = self.robot.assembler.parts(self.target, self.robot.locked | frozenset(self.robot.deformations))
        names = [part.name for part in parts if len(part.columns)]
        assemblies = any(not stepper.settled and not stepper.folds for stepper in self.steppers)
        mode = other_mode_reason(names[0] if len(names) == 1 else "", False).message
        for row in elsewhere:
            messages[row] = OTHER_ASSEMBLY_MESSAGE if assemblies else mode
        return messages

    @cached_property
    def places(self) -> DyadPlaces | None:
        """Positions in closed form, where all legs are dyads that sides tell apart."""
        if self.unsettled.size:
            return None
        return cached_places(self.geometry, self.names, lambda: dyad_places(self.geometry, self.names, self.target))

    def _by_dyads(self, places: DyadPlaces, values: Array, designs: Array) -> tuple[Array, Array]:
        """Poses in closed form, which Newton's method rounds and judges; what it does not confirm is searched for."""
        home = self.geometry.rows(np.broadcast_to(self.geometry.home, (len(values), len(self.geometry.home))), designs)
        beyond, q = places(self.given.start(values, home))
        status, near = np.full(len(values), UNREACHABLE), np.flatnonzero(~beyond)
        if len(near) == len(values):  # as a rule: nothing is copied
            q, status = self._together(q, ONCE)
        else:
            q[near], status[near] = self._together(q[near], ONCE)
        left = near[status[near] == UNREACHABLE]
        if len(left):
            q[left], status[left] = self._searched(values[left], designs[left])
        return q, status

    def _searched(self, values: Array, designs: Array) -> tuple[Array, Array]:
        """Poses by Newton's method from home and from poses nearby, round after round."""
        scale = np.maximum(np.ptp(values, axis=0), 1e-300)
        q, status = self._solve_from_neighbours(values, designs, scale)
        striding = self
        for _ in range(ROUNDS):
            open_ones, reached = np.flatnonzero(status == UNREACHABLE), np.flatnonzero(status == OK)
            if not len(open_ones) or not len(reached):
                break
            striding = self.with_compiled_steps() if self.unsettled.size and striding is self else striding
            tried = min(NEIGHBOURS if len(open_ones) <= FEW else 1, len(reached))
            distances, nearest = neighbours(values[reached] / scale, values[open_ones] / scale, tried)
            close = distances[:, 0] <= 2 * max(
                float(np.median(distances[:, 0])), 1e-300
            )  # those at the edge of what was found
            if not close.any():
                break
            some = False
            for neighbour in nearest[close].T:  # a pose may be beyond a singular one from its nearest neighbour
                left = status[open_ones[close]] == UNREACHABLE
                again = open_ones[close][left]
                if not len(again):
                    break
                begin = reached[neighbour[left]]
                positions, state = striding._solve_from(values[again], designs[again], values[begin], q[begin])
                gained = state != UNREACHABLE
                q[again[gained]], status[again[gained]] = positions[gained], state[gained]
                some = some or bool(gained.any())
            if not some:
                break
        if len(values) >= FEW and 0 < (status == UNREACHABLE).sum() <= FEW:
            self._retry_from_home(values, designs, q, status)
        folds = any(stepper.folds for stepper in self.steppers)
        few = (status == UNREACHABLE).sum() <= MAX_POSES_FOR_PATHS
        if self.follows_paths and few and (self.unsettled.size or not folds):
            follow_paths(self.with_compiled_steps(), values, designs, q, status)
        close_beyond_folds(self, values, designs, q, status)
        return q, status

    def from_home(self, values: Array, designs: Array) -> tuple[Array, Array]:
        """Poses from home."""
        home = np.repeat(self.geometry.home[None], len(values), axis=0)
        return self._solve_from(values, designs, np.repeat(self.given.at_home[None], len(values), axis=0), home)

    def _solve_from(self, values: Array, designs: Array, begun: Array, begin: Array) -> tuple[Array, Array]:
        """Return poses from positions `begin` at coordinates `begun`; far poses along lines."""
        q, status, before = self._newton_from(values, designs, begin)
        self._along(values, designs, begun, before, q, status)
        return q, status

    def _newton_from(
        self, values: Array, designs: Array, begin: Array, near: bool = False
    ) -> tuple[Array, Array, Array]:
        """Poses from positions by Newton's method alone: where they end, their state, and where they started."""
        start = self.given.start(values, self.geometry.rows(begin[:, : self.geometry.kept.size], designs))
        before = start.copy() if self.unsettled.size else start
        return (*(self._together(start) if near else self._newton(start)), before)

    def _along(self, values: Array, designs: Array, begun: Array, before: Array, q: Array, status: Array) -> None:
        """Follow lines to poses that are far from their start, in place; poses that leave the line are not reached."""
        far = np.flatnonzero((status == OK) & (self.jumped(before, q) | (self._turned(begun, values) > TURN)))
        if len(far):
            positions, state = self.follow_lines(values[far], designs[far], begun[far], before[far])
            status[far[state != OK]] = UNREACHABLE  # Newton ended in whatever assembly
            q[far[state == OK]], status[far[state == OK]] = self.refined_positions(
                values[far[state == OK]], designs[far[state == OK]], positions[state == OK]
            )

    def refined_positions(self, values: Array, designs: Array, guess: Array) -> tuple[Array, Array]:
        """Poses to rounding, from positions beside them."""
        guess = guess[:, : self.geometry.kept.size]
        return self._together(self.given.start(values, self.geometry.rows(guess, designs)))

    def _restart_from_reached(
        self, values: Array, designs: Array, begun: Array, before: Array, q: Array, status: Array
    ) -> bool:
        """Far poses from the nearest ones that are not, all in place: also where each started. Whether some are."""
        far = self.jumped(before, q) | (self._turned(begun, values) > TURN)
        if not far.any():
            return False
        scale = np.maximum(np.ptp(values, axis=0), 1e-300)
        for _ in range(ROUNDS):
            open_ones, reached = np.flatnonzero((status == OK) & far), np.flatnonzero((status == OK) & ~far)
            if not len(open_ones) or not len(reached):
                break
            _, nearest = neighbours(values[reached] / scale, values[open_ones] / scale, 1)
            begin = reached[nearest[:, 0]]
            neighbour_q = q[begin, : self.geometry.kept.size]
            start = self.given.start(values[open_ones], self.geometry.rows(neighbour_q, designs[open_ones]))
            begun[open_ones], before[open_ones] = values[begin], start
            positions, state = self._together(start)
            gained = (state == OK) & ~self.jumped(before[open_ones], positions)
            gained &= self._turned(begun[open_ones], values[open_ones]) <= TURN
            q[open_ones[gained]], far[open_ones[gained]] = positions[gained], False
            if gained.mean() < WORTHWHILE:
                break
        return True

    def _solve_from_neighbours(self, values: Array, designs: Array, scale: Array) -> tuple[Array, Array]:
        """Some poses from home, all others from the nearest of these, and those that fail from home."""
        if len(values) < FEW:
            return self.from_home(values, designs)
        if self.known is None:
            first = np.arange(0, len(values), APART)
            q, status = self.from_home(values[first], designs[first])
            reached = np.flatnonzero(status == OK)
            if not len(reached):
                return self.from_home(values, designs)
            known, q = values[first[reached]], q[reached]
        else:
            known, q = self.known
        moving = scale > 1e-300
        if self.known_design_numbers is None:
            nearest = nearest_point(known[:, moving] / scale[moving], values[:, moving] / scale[moving])
        else:
            nearest = np.searchsorted(0.5 * (self.known_design_numbers[1:] + self.known_design_numbers[:-1]), designs)
        begun = known[nearest]
        positions, state, before = self._newton_from(values, designs, q[nearest], near=True)
        far = self._restart_from_reached(values, designs, begun, before, positions, state)
        failed, reached = np.flatnonzero(state != OK), np.flatnonzero(state == OK)
        if len(failed) and len(reached):
            begin = reached[
                nearest_point(values[reached][:, moving] / scale[moving], values[failed][:, moving] / scale[moving])
            ]
            again, judged, start = self._newton_from(values[failed], designs[failed], positions[begin])
            gained = failed[judged == OK]
            begun[gained], before[gained] = values[begin[judged == OK]], start[judged == OK]
            positions[gained], state[gained] = again[judged == OK], OK
            failed = failed[judged != OK]
        if far or len(reached) < len(values):  # else all are where Newton's method left them, and near
            self._along(values, designs, begun, before, positions, state)
        if len(failed) > FEW or not len(reached):  # few are tried from more neighbours first
            self._retry_from_home(values, designs, positions, state)
        return positions, state

    def _retry_from_home(self, values: Array, designs: Array, q: Array, status: Array) -> None:
        """Poses that are not reached from home, in place."""
        failed = np.flatnonzero(status != OK)
        again, judged = self.from_home(values[failed], designs[failed])
        q[failed[judged == OK]], status[failed[judged == OK]] = again[judged == OK], OK

    def remember(self, values: Array, q: Array, numbers: Array | None = None) -> None:
        """Poses with their positions from which others start, in the place of some that start from home.

        `numbers` are those of their designs, where these are in an order in which poses that follow each other are
        alike: a pose then starts from the one whose number is nearest.
        """
        if len(values):
            some = slice(None, None, -(-len(values) // REMEMBERED) if numbers is None else 1)
            self.known, self.known_design_numbers = (np.asarray(values[some], dtype=float), q[some]), numbers

    def _solve_one_by_one(self, values: Array) -> Positions:
        """Pose by pose."""
        if self.single is None:
            self.single = SinglePositions(self.robot, self.names)
        q, status, messages = self.single(values)
        return Positions(q[:, self.geometry.kept], status, messages)


@dataclass(frozen=True, eq=False, repr=False)
class Chain(Record):
    """A chain of links from a fixed point to the end effector: nearest and farthest distance that it spans."""

    foot: Array
    nearest: float
    farthest: float


class Reach:
    """What the lengths of links say of places of the end effector, as far as coordinates name these."""

    def __init__(self, robot: Robot, names: list[str]) -> None:
        tree = robot.tree
        axes = {"x": 0, "y": 1, "z": 2}
        plain = {name: axes[name] for name in names if name in axes and joint_named(tree, name) is None}
        self.columns = [names.index(name) for name in plain]
        self.axes = list(plain.values())
        self.whole = len(plain) == (2 if tree.planar else 3)
        self.spare = SPARE * tree.length
        self.chains = self._chains(robot) if plain else []

    def _chains(self, robot: Robot) -> list[Chain]:
        tree, at = robot.tree, Configuration(robot, robot.home).at
        tip = tree.places[tree.end_effector]
        end = at.of(tip)[1]
        chains = [(tip.link, [end])]
        for loop in robot.closures.loops:
            if len(loop.translations) < (2 if tree.planar else 3):
                continue
            for own, other in ((loop.first, loop.second), (loop.second, loop.first)):
                if own.link == tip.link:
                    chains.append((other.link, [at.of(own)[1], end]))
        found = []
        for link, rest in chains:
            path = sorted(tree.path(link)) if link >= 0 else []  # from the ground on
            if not path or any(np.any(tree.links[j].joint.S_v) for j in path):
                continue  # what slides has no length
            points = [at.position[j] for j in path] + rest
            sizes = [float(np.linalg.norm(b - a)) for a, b in pairwise(points)]
            total, longest = sum(sizes), max(sizes)
            found.append(Chain(np.asarray(points[0], dtype=float), max(0.0, 2 * longest - total), total))
        return found

    def excludes(self, row: Array) -> bool:
        """Whether no turn of the joints brings the end effector there."""
        for chain in self.chains:
            far = float(np.linalg.norm(row[self.columns] - chain.foot[self.axes]))
            if far > chain.farthest + self.spare or (self.whole and far < chain.nearest - self.spare):
                return True
        return False


class SinglePositions:
    """Finds poses one after the other, with few searches: lengths of links first, then neighbours and home.

    A search over many starts takes a hundred times as long as Newton's method from a neighbour, and is in vain at poses
    out of reach. A pose is therefore excluded if the lengths of links prove it unreachable, then tried from its
    neighbours and from home; only some of the remaining poses are searched for.
    """

    def __init__(self, robot: Robot, names: list[str]) -> None:
        self.robot, self.names = robot, names
        self.rigid = robot.locking(robot.deformations) if robot.deformations else robot
        self.reach = Reach(self.rigid, names)
        # elastic couplings are at rest at a pose, and rows that repeat others at home may hold something elsewhere:
        # where one pose is assembled, this is seen to
        self.plain = robot.at_rest is None and not robot.mobility.redundant

    def __call__(self, values: Array) -> tuple[Array, Array, list[str]]:
        """Whole positions (home where there are none), states, and sentences on poses without positions."""
        count = len(values)
        q, status, messages = (
            np.repeat(self.robot.home[None], count, axis=0),
            np.full(count, UNREACHABLE),
            [""] * count,
        )
        found: list[int] = []
        left = max(LEAST, int(SEARCHED * count))
        for k, row in enumerate(values):
            if self.reach.excludes(row):
                messages[k] = BEYOND_LINKS
                continue
            last = found[-LAST:]
            nearest = [q[last[int(np.argmin(np.abs(values[last] - row).sum(axis=1)))]]] if last else []
            if self.plain:
                status[k], whole, messages[k] = self._near(row, [*nearest, self.robot.home])
            else:
                status[k], whole, messages[k] = self._searched(row, nearest[0]) if nearest else self._searched(row)
            if whole is None and status[k] == UNREACHABLE and left > 0 and (self.plain or nearest):
                status[k], whole, messages[k] = self._searched(row)
                left -= status[k] != OK  # where searches find poses they go on
            if whole is not None:
                q[k] = whole
                found.append(k)
        return q, status, messages

    def _near(self, row: Array, starts: list[Array]) -> tuple[int, Array | None, str]:
        """By Newton's method alone; of poses that leave motions free nothing, since these stay near home."""
        given = self._given(row)
        try:
            if self.robot.pose_finder.leaves_free(given):
                return UNREACHABLE, None, NOT_FOUND
            for start in starts:
                whole = self.rigid.pose_finder.near(given, start)
                if whole is not None:
                    fixed = set(self.robot.pose_finder.read(given).values)
                    return self._judged(
                        whole if start is not self.robot.home else self.robot.tree.within_limits(whole, fixed)
                    )
        except SingularError as error:
            return SINGULAR, None, error.message
        except ParflexError as error:
            return UNREACHABLE, None, error.message
        return UNREACHABLE, None, NOT_FOUND

    def _searched(self, row: Array, near: Array | None = None) -> tuple[int, Array | None, str]:
        """As one pose is found: from home or from a pose nearby, then from starts all over its joints."""
        try:
            return self._judged(self.robot.assemble(self._given(row), near))
        except SingularError as error:
            return SINGULAR, None, error.message
        except ParflexError as error:
            return UNREACHABLE, None, error.message

    def _judged(self, whole: Array) -> tuple[int, Array | None, str]:
        try:
            Configuration(self.robot, whole).reduction  # noqa: B018 - raises where the closures are singular
        except SingularError as error:
            return SINGULAR, None, error.message
        return OK, whole, ""

    def _given(self, row: Array) -> dict[str, float]:
        return dict(zip(self.names, row.tolist(), strict=True))
