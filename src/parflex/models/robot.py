"""A loaded robot: description, tree, closures, actuation, working mode, and how it can move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.closure.assembly import Assembler
from parflex.closure.constraints import Coupling, resting_rows, with_starts
from parflex.closure.drives import drive_springs
from parflex.closure.free_part import FreePart
from parflex.closure.loops import Closures
from parflex.closure.missed import missed_condition
from parflex.closure.pose_rows import as_rows
from parflex.closure.targets import PoseRows, Target
from parflex.description import schema
from parflex.errors import InputError, ParflexError, RobotFileError, SingularError, UnreachableError, did_you_mean
from parflex.models.brief_lines import robot_line
from parflex.models.given_states.closed_positions import ArrayOrder, closed_positions
from parflex.models.given_states.coupled_values import Contradiction, contradiction, coupling_warnings
from parflex.models.pose_input import read_pose, whole_end_effector
from parflex.models.sensors import sensed_rates
from parflex.records import Record, counted
from parflex.recursion import pose
from parflex.recursion.point_forces import distance
from parflex.tree import Tree

Array = np.ndarray
AT_LIMIT = 1e-9  # rad or typical lengths: poses close to 1e-12, and a joint on its limit is inside
SAME_FRAME = 1e-8  # typical lengths: a frame is where it should be
FAR = 0.6  # rad or typical lengths from its stated start at which a motor of the assembled robot is reported


@dataclass(frozen=True, eq=False, repr=False)
class Mobility(Record):
    """Rank of the closures and what follows from it."""

    rank: int
    redundant: tuple[int, ...]  # rows that repeat others
    home_rank: int

    def freedoms(self, columns: int) -> int:
        """Independent motions when this many rates are free."""
        return columns - self.rank


@dataclass(frozen=True, eq=False, repr=False)
class WrittenRobot(Record):
    """What a robot was loaded from: its whole table, what was set in it included, payload and refinement."""

    table: dict[str, Any]
    payload: tuple[float, ...] | None
    elements: int


@dataclass(frozen=True, eq=False, repr=False)
class Robot(ArrayOrder, Record):
    """A robot with a chosen `actuation` and `working_mode` (`mode`), made by `load`.

    `description` is what its `file` says, `tree` and `closures` what is made of it; `actuated`, `locked` and `sensed`
    are numbers of rates, `warnings` what is unusual about it, `written` the table it was loaded from.
    """

    description: schema.RobotFile
    file: str
    tree: Tree
    closures: Closures
    actuated: tuple[int, ...]  # rates that motors move
    locked: frozenset[int]  # locked rates
    actuation: str
    working_mode: str
    warnings: tuple[str, ...] = ()
    mode: schema.WorkingMode = field(default_factory=schema.WorkingMode, repr=False)
    sensed: tuple[int, ...] = ()  # rates of passive joints with a sensor
    written: WrittenRobot | None = field(default=None, repr=False, compare=False)  # what it was loaded from
    # of a robot that stands and moves alike; `replace` drops them, so that each copy says what it has in common
    known_home: InitVar[Array | None] = None
    known_mobility: InitVar[Mobility | None] = None
    _known: tuple[Array | None, Mobility | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self, known_home: Array | None, known_mobility: Mobility | None) -> None:
        object.__setattr__(self, "_known", (known_home, known_mobility))

    @property
    def refine(self) -> int:
        """Into how many each element of the file is divided."""
        return 1 if self.written is None else self.written.elements

    @property
    def payload(self) -> tuple[float, ...] | None:
        """Mass (kg) and place (m) of what was mounted on the end effector."""
        return None if self.written is None else self.written.payload

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.description.name

    @property
    def actuated_names(self) -> list[str]:
        """Names of the actuated joints, in the order of efforts."""
        return [self.tree.rate_names[k] for k in self.actuated]

    @property
    def sensed_names(self) -> list[str]:
        """Names of the passive joints with a sensor, in the order of `sensed`."""
        return [self.tree.rate_names[k] for k in self.sensed]

    def sensing(self, joints: Sequence[str]) -> Robot:
        """The same robot, at the same home, with sensors in the passive `joints`; none: the motors' sensors alone."""
        sensed = sensed_rates(self.tree, joints, self.actuated, self.locked)
        return replace(self, sensed=sensed, known_home=self.home)  # sensors do not move a robot

    @cached_property
    def free(self) -> Array:
        """Rates that are not locked."""
        return np.array([k for k in range(self.tree.n) if k not in self.locked], dtype=int)

    @cached_property
    def assembler(self) -> Assembler:
        """Finds poses of this robot in its working mode."""
        return Assembler(self.tree, self.closures, dict(self.mode.signs), self.preference)

    @cached_property
    def start(self) -> Array:
        """Start values of all positions in this working mode."""
        q = self.tree.start.copy()
        for number in self.drive_springs:
            q[self.tree.links[number].q] = self.tree.links[number].terms.rest
        for name, value in self.mode.start.items():
            q[self.tree.links[self.tree.number(name)].q] = value
        couplings = [row for row in self.closures.constraints if isinstance(row, Coupling)]
        stated = {link.name for link in self.tree.links if {link.name, link.name[:-2]} & self._said_starts}
        return with_starts([*couplings, *resting_rows(self.tree)], q, stated)

    @property
    def _said_starts(self) -> set[str]:
        """Frames of which the file or the working mode says where they start."""
        return {frame.name for frame in self.description.frame if frame.start} | set(self.mode.start)

    @cached_property
    def drive_springs(self) -> tuple[int, ...]:
        """Links on a spring right behind a joint of the same axis: at rest in every pose."""
        return drive_springs(self.tree, self.closures)

    @cached_property
    def deformations(self) -> tuple[int, ...]:
        """Rates that are zero as long as nothing deforms: of elastic bodies and of springs of elastic drives."""
        return (*self.tree.elastic, *(self.tree.links[number].v.start for number in self.drive_springs))

    @cached_property
    def home(self) -> Array:
        """Positions of the pose `home` (or of the start values, closed); every answer starts from it: read only."""
        known, _ = self._known
        q = self._home() if known is None else known
        q.setflags(write=False)
        return q

    def _home(self) -> Array:
        try:
            return self._of_default_motors._assembled_home()
        except (UnreachableError, SingularError):
            contradiction = self._contradiction()
            if contradiction is None:
                raise
            raise contradiction from None

    @property
    def _of_default_motors(self) -> Robot:
        """The same robot with the motors that its frames name: home does not depend on the chosen actuation."""
        from parflex.models.loading import default_motors  # which stands on this module

        motors = default_motors(self.description, self.tree)
        return self if not motors or motors == self.actuated else replace(self, actuated=motors)

    def _contradiction(self) -> RobotFileError | None:
        """What is said where the robot would stand without one of its couplings, and does not with it."""
        constraints = self.closures.constraints
        for count in range(len(constraints) + 1):
            kept = replace(self, closures=replace(self.closures, constraints=constraints[:count]))
            try:
                kept._assembled_home()
            except (UnreachableError, SingularError):
                if not count:
                    return None
                culprit = constraints[count - 1]
                parts = kept.assembler.parts(Target(), frozenset())
                beside = next(part.rows for part in parts if culprit in part.rows)
                names = ", ".join(f"'{row.name}'" for row in beside if row is not culprit) or "the pose home"
                return RobotFileError(
                    f"the {culprit.kind} '{culprit.name}' contradicts {names}: no pose near home meets both",
                    file=self.file,
                    key=f"{culprit.kind if culprit.kind == 'coupling' else 'element'} '{culprit.name}'",
                    value=culprit.name,
                    hint="correct its offset, ratio or length, give consistent starts, or remove it",
                )
        return None

    def _assembled_home(self) -> Array:
        given = self.description.poses.get("home", {})
        target = read_pose(self.tree, given, "poses.home", self.file, self.start) if given else Target()
        try:
            found, locked = self._assemble(target, self.start, None, self.locked), self.locked
        except UnreachableError:
            if not self.locked:
                raise
            locked = frozenset()  # locked joints stand as this pose needs them
            found = self._assemble(target, self.start, None, locked)
        stated = frozenset(self._stated_starts) - set(target.values)
        found = self.assembler.nearer(found, target, self.start, stated, locked | set(self.deformations))
        return self.tree.within_limits(found, set(target.values))

    @cached_property
    def _stated_starts(self) -> tuple[int, ...]:
        """Positions of motors of which the file says where they start."""
        said = self._said_starts
        links = [self.tree.links[self.tree.link_of_rate[k]] for k in self.actuated]
        return tuple(link.q.start for link in links if link.joint.one_axis and {link.name, link.name[:-2]} & said)

    def start_warnings(self) -> list[str]:
        """Sentences on motors that the loops leave far from where they are said to start, and on couplings."""
        said = [link for link in self.tree.links if {link.name, link.name[:-2]} & self._said_starts]
        warnings = coupling_warnings(self.closures.constraints, self.tree, said)
        given, flipped = self.description.poses.get("home", {}), self.assembler.legs_of_other_sign(self.start)
        for index in self._stated_starts:
            link = next(link for link in self.tree.links if link.q.start == index and link.q.stop > index)
            away = float(self.home[index] - self.start[index])
            away = float(np.arctan2(np.sin(away), np.cos(away))) if link.periodic else away
            if (
                link.name not in given
                and link.leg not in flipped
                and abs(away) > FAR * float(self.tree.rate_units[link.v.start])
            ):
                warnings.append(
                    f"joint '{link.name}' is assembled at {self.home[index]:.4g}, far from its start "
                    f"{self.start[index]:.4g}: check its start, or the starts of the joints that it carries"
                )
        return warnings

    def slack_cables(self) -> list[str]:
        """A sentence for each cable that is longer than its path at home."""
        if not any(element.pulls_only for element in self.tree.elements):
            return []
        at, found = pose(self.tree, self.home), []
        for element in self.tree.elements:
            path = float(distance(at, (element.first, element.second)))
            if element.pulls_only and element.rest > path:
                found.append(
                    f"the cable '{element.name}' of {element.rest:.4g} m is longer than its path of {path:.4g} m at "
                    "home: it is slack there"
                )
        return found

    @cached_property
    def _locked_robots(self) -> dict[frozenset[int], Robot]:
        return {}

    @cached_property
    def robots_without(self) -> dict[tuple[str, ...], Robot]:
        """The same robot without terms, by their words, as far as it was made."""
        return {}

    @cached_property
    def inner_motions(self) -> dict[str, Any]:
        """What is inside the elements of each beam, as far as it was made."""
        return {}

    def locking(self, rates: Collection[int]) -> Robot:
        """The same robot, at the same home, with the joints of `rates` (numbers) locked. Made once for each choice."""
        held = self.locked | frozenset(rates)
        if held not in self._locked_robots:
            actuated = tuple(k for k in self.actuated if k not in held)
            self._locked_robots[held] = replace(self, locked=held, actuated=actuated, known_home=self.home)
        return self._locked_robots[held]

    def assemble(
        self, given: str | Mapping[str, float] | Sequence[float] | Array | None = None, near: Array | None = None
    ) -> Array:
        """Positions of all coordinates (m, rad) at a pose.

        `given` is the name of a pose of the file, coordinates by name, or an array of them (m, rad), None home; `near`
        are all positions of a pose to start from, None home.
        """
        if given is None or (isinstance(given, str) and given == "home"):
            return self.home.copy()
        if not isinstance(given, str | Mapping):
            return closed_positions(self, given)
        if isinstance(given, str):
            if given not in self.description.poses:
                raise InputError(
                    f"the robot has no pose '{given}'",
                    key="pose",
                    value=given,
                    hint=did_you_mean(given, {*self.description.poses, "home"}),
                )
            given = self.description.poses[given]
        home = self.home if near is None else near
        target = self._read(given)
        found = self._found(target, home)
        if self.mobility.redundant:  # rows that repeat others at home may hold something elsewhere
            J = mobility.scaled_jacobian(self.closures, found)
            mobility.refuse_other_branch(J[:, self.free], self.mobility.rank)
        return found if near is not None else self.tree.within_limits(found, set(target.values))

    def _found(self, target: Target, q: Array) -> Array:
        """Positions at a target, from a pose on; where there are none, the condition that is missed is named."""
        try:
            return self._assemble(target, q, self.home, self.locked)
        except (UnreachableError, SingularError) as error:
            if self._conditions(target) > self._rigid_freedoms:
                raise
            missed = missed_condition(self.assembler, target, self.home, self.locked | set(self.deformations))
            if missed is None:
                raise
            missed.file = error.file
            raise missed from None

    def _assemble(self, target: Target, q: Array, reference: Array | None, locked: frozenset[int]) -> Array:
        """What the target leaves open keeps its value; it follows from the loops where they have fewer freedoms.

        Bodies stay undeformed, and so do the springs of elastic drives.
        """
        if self.at_rest is not None:
            try:
                return self.at_rest._assemble(target, q, reference, locked)
            except (UnreachableError, SingularError):
                pass  # the target itself stretches a coupling, or several cannot rest together
        locked = locked | set(self.deformations)
        if reference is None or not self._leaves_free(target):
            return self._closed(target, q, reference, locked)
        part = FreePart(self.closures, self.actuated, locked, reference, self._nearby, self._keepable)
        asked = part.widened(target)
        try:
            found = self._closed(self._given_whole(target, asked, reference), q, reference, locked, widen=False)
        except (UnreachableError, SingularError) as missed:  # not with what it had better keep
            if asked is target:
                raise
            asked = target
            try:
                found = self._closed(asked, q, reference, locked, widen=False)
            except ParflexError as error:
                dependent = self._conditions(target) >= self._rigid_freedoms
                raise (error if dependent else missed) from None
        near = part.pose(asked, found)
        if near is None:
            raise UnreachableError(
                "the pose does not determine the configuration, and none is nearest to home",
                key="pose",
                file=self.file,
                hint="give more components of the pose",
            )
        return near

    def _given_whole(self, target: Target, asked: Target, reference: Array) -> Target:
        """`asked` by coordinates of the platform where it keeps all of them: then the legs stand apart."""
        wider = whole_end_effector(self.tree, self.actuated, target, reference)
        if asked is target or not asked.frames or wider is None or wider.frames:
            return asked
        bodies = [self.tree.links[self.tree.link_of_rate[k]] for k in wider.fixed]
        kept = {i: float(reference[i]) for link in bodies for i in range(link.q.start, link.q.stop)}
        return replace(wider, values=kept | wider.values)

    @cached_property
    def at_rest(self) -> Robot | None:
        """The same robot with elastic couplings held where they do not stretch; None where there are none."""
        if not self.tree.springs:
            return None
        tree = replace(self.tree, springs=())
        rows = (*self.closures.constraints, *resting_rows(self.tree))
        return replace(self, tree=tree, closures=replace(self.closures, tree=tree, constraints=rows))

    def _read(self, given: Mapping[str, float]) -> Target:
        return read_pose(self.tree, given, "pose", None, self.home)

    def leaves_free(self, given: Mapping[str, float]) -> bool:
        """Whether the pose `given` by coordinates (m, rad) and other conditions leaves motions of the robot free."""
        if self.at_rest is not None:
            return self.at_rest.leaves_free(given)
        return self._leaves_free(self._read(given))

    def loose(self, given: Mapping[str, float]) -> bool:
        """Whether places of frames `given` (m, rad) leave motions free in which the frames cannot keep their turns."""
        if self.at_rest is not None:
            return self.at_rest.loose(given)
        target = self._read(given)
        return self._leaves_free(target) and self._free_part.widened(target) is target

    def path_motion(
        self, given: Mapping[str, float], q: Array, derivatives: Callable[[PoseRows], tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """All rates and accelerations where a path goes through a pose `q` that is `given` by conditions.

        `derivatives` has the first and second one of the rows of each condition, by the way along the path. Of what the
        conditions leave free they are those of the nearest pose; its accelerations are missing (nan).
        """
        target = as_rows(self.tree, self._read(given))
        part = self._free_part
        asked = part.widened(target) if (self.at_rest or self)._leaves_free(target) else target
        moved = max((abs(q[k] - value) for k, value in asked.values.items()), default=0.0)
        if self.assembler.opening(q, asked.frames) > SAME_FRAME or moved > SAME_FRAME:
            asked = target
        rates, pushes = zip(*map(derivatives, target.frames), strict=True)
        return part.moved(asked, q, np.concatenate(rates), np.concatenate(pushes))

    @property
    def _free_part(self) -> FreePart:
        rows_held = self.closures if self.at_rest is None else self.at_rest.closures
        held = self.locked | set(self.deformations)
        return FreePart(rows_held, self.actuated, held, self.home, self._nearby, self._keepable)

    @cached_property
    def _nearby(self) -> tuple[Array, ...]:
        """Poses beside home, where rows have the rank that they have in general; of robots without loops too."""
        rigid = self.locking(self.deformations) if self.deformations else self
        return rigid.reference_poses[1:] if self.closures.size else tuple(rigid._beside_home(rigid.free))

    def _conditions(self, target: Target) -> int:
        return len(self._words(target))

    def _words(self, target: Target) -> list[str]:
        """One for each condition; of conditions on one direction some are empty."""
        words = [self.tree.rate_names[k] for k in sorted(target.fixed)]
        return words + [word for frame in target.frames for word in frame.words(self.tree.planar)]

    def _leaves_free(self, target: Target) -> bool:
        """Whether there are fewer conditions than freedoms, or some of them repeat others wherever the robot is."""
        if self._conditions(target) < self._rigid_freedoms:
            return True
        key = (target.fixed, tuple(row.sort for row in target.frames))
        if key not in self._undetermined:
            rigid = self.locking(self.deformations) if self.deformations else self
            self._undetermined[key] = rigid._free_part.undetermined(target, (rigid.home, *rigid._nearby))
        return self._undetermined[key] > 0

    @cached_property
    def _keepable(self) -> dict[tuple, tuple[int, ...]]:
        return {}

    @cached_property
    def _undetermined(self) -> dict[tuple, int]:
        return {}

    def _closed(
        self, target: Target, q: Array, reference: Array | None, locked: frozenset[int], widen: bool = True
    ) -> Array:
        """Closed positions at a target, near `q`."""
        wider = whole_end_effector(self.tree, self.actuated, target, q) if widen else None
        try:
            if wider is None:
                return self.assembler.assemble(target, q, reference, locked)
            asked = len(wider.fixed) + sum(frame.size for frame in wider.frames)
            if reference is not None and asked <= self._rigid_freedoms:
                return self.assembler.assemble(wider, q, reference, locked)
            for choice in (wider, target):
                found = self.assembler.near(choice, q, reference, locked)
                if found is not None:
                    return found
            return self.assembler.assemble(target if reference is None else wider, q, reference, locked)
        except ParflexError as error:
            error.file = error.file or self.file
            if isinstance(error, UnreachableError) and reference is not None:
                said = self._contradicted(target, q, locked)
                if said is None:
                    self._count_conditions(error, target, locked)
                else:
                    error.message, error.hint = said.message("pose"), said.hint
            raise

    def _contradicted(self, target: Target, q: Array, locked: frozenset[int]) -> Contradiction | None:
        """What couplings say against the joint values of a pose."""
        given = {}
        for link in self.tree.links:
            if link.joint.one_axis and link.v.start in target.fixed | locked:
                given[link.v.start] = float(target.values.get(link.q.start, q[link.q.start]))
        return contradiction(self.closures.constraints, self.tree, given, offsets=True)

    def _count_conditions(self, error: UnreachableError, target: Target, locked: frozenset[int]) -> None:
        """Say so where more is asked for than the robot has freedoms: then nothing is too short."""
        names = self._words(target)
        if len(names) > self._rigid_freedoms and not self.assembler.sets_out(target, self.home, locked):
            given, freedoms = ", ".join(filter(None, names)), counted(self._rigid_freedoms, "freedom")
            error.message = (
                f"{len(names)} conditions are given ({given}), but the robot has {freedoms}, and the conditions "
                "contradict each other"
            )
            error.hint = f"leave out {len(names) - self._rigid_freedoms} of them"

    @cached_property
    def _rigid_freedoms(self) -> int:
        """Independent motions while nothing deforms."""
        rigid = self.locking(self.deformations) if self.deformations else self
        return rigid.mobility.freedoms(len(rigid.free))

    # -- how it moves ----------------------------------------------------------------------------------

    @cached_property
    def few_motors(self) -> bool:
        """Whether motors are fewer than freedoms, and each of them moves the robot."""
        from parflex.models.configuration import Configuration  # which stands on this module

        return Configuration(self, self.home).lacks_motors

    @cached_property
    def mobility(self) -> Mobility:
        """Rank at home and at a random pose nearby: the larger is the true one, home may be special."""
        _, known = self._known
        return self.mobility_with(self.locked) if known is None else known

    def mobility_with(self, locked: frozenset[int]) -> Mobility:
        """Mobility with the rates `locked` (numbers) locked."""
        free = np.array([k for k in range(self.tree.n) if k not in locked], dtype=int)
        J = mobility.scaled_jacobian(self.closures, self.home)[:, free]
        home_rank = mobility.rank(J)
        best, rank = J, home_rank
        for q in self._random_poses(free, J):
            other = mobility.scaled_jacobian(self.closures, q)[:, free]
            if mobility.rank(other) > rank:
                best, rank = other, mobility.rank(other)
        return Mobility(rank, tuple(mobility.redundant_rows(best, rank)), home_rank)

    @cached_property
    def reference_poses(self) -> tuple[Array, ...]:
        """Home and closed poses nearby: what holds at all of them holds in general."""
        J = mobility.scaled_jacobian(self.closures, self.home)[:, self.free]
        return (self.home, *self._random_poses(self.free, J))

    @cached_property
    def _usual_sizes(self) -> Array:
        """Largest singular values at regular poses: of the scaled closures, and of motors per allowed motion."""
        driven = [i for i, k in enumerate(self.free) if k in self.actuated]
        sizes = np.zeros(2)
        for q in self.reference_poses:
            J = mobility.scaled_jacobian(self.closures, q)[:, self.free]
            A = mobility.null_space(J, self.mobility.rank)[driven]
            sizes = np.maximum(sizes, np.array([np.linalg.norm(part, 2) if part.size else 0.0 for part in (J, A)]))
        return sizes

    def usual_closures(self) -> float:
        """Largest singular value of the scaled closures at regular poses."""
        return float(self._usual_sizes[0])

    def usual_actuation(self) -> float:
        """Largest singular value of the motors' rates per allowed motion at regular poses."""
        return float(self._usual_sizes[1])

    def _random_poses(self, free: Array, J: Array) -> list[Array]:
        """Two closed poses a little away from home, along motions that the closures allow."""
        if not self.closures.size:
            return []
        V = np.linalg.svd(J)[2] if J.size else np.eye(len(free))
        poses = []
        for q in self._beside_home(free, V[mobility.rank(J) :]):
            closed, error = self.assembler.newton(q, free, list(self.closures.rows))
            if error < 1e-11:
                poses.append(closed)
        return poses

    def _beside_home(self, free: Array, motions: Array | None = None) -> list[Array]:
        """Two poses a little away from home along random motions, of all free rates or of these (rows)."""
        rng, ways = np.random.default_rng(0), np.eye(len(free)) if motions is None else motions
        poses = []
        for size in (0.15, 0.1) if len(ways) else ():
            direction = rng.standard_normal(len(ways)) @ ways
            step = np.zeros(self.tree.n)
            step[free] = size * direction / np.abs(direction).max() * self.tree.rate_units[free]
            poses.append(self.tree.moved(self.home, step))
        return poses

    @cached_property
    def preference(self) -> Array:
        """Which rates had better depend on others: passive joints and tips of beams, motors, free bodies, modes."""
        weights = np.ones(self.tree.n)
        weights[list(self.actuated)] = 0.1
        for link in self.tree.links:
            if link.joint.moves_freely:
                weights[link.v] = 0.01
            if not link.body.by_tip:
                weights[link.e_v] = 0.001
        return weights

    def limit_warnings(self, q: Array) -> list[str]:
        """A sentence for each joint outside its limits at all positions `q` (m, rad)."""
        warnings = []
        for link in self.tree.links:
            if not link.limits:
                continue
            low, high = link.limits
            value, rounding = float(q[link.q.start]), AT_LIMIT * self.tree.rate_units[link.v.start]
            if not low - rounding <= value <= high + rounding:
                digits = next((n for n in (4, 6, 9) if f"{value:.{n}g}" not in (f"{low:.{n}g}", f"{high:.{n}g}")), 12)
                at, low_word, high_word = (f"{number:.{digits}g}" for number in (value, low, high))
                warnings.append(f"joint '{link.name}' is at {at}, outside its limits [{low_word}, {high_word}]")
        return warnings

    def __getstate__(self) -> dict[str, Any]:
        known = self.__dict__.get("home", self._known[0]), self.__dict__.get("mobility", self._known[1])
        return super().__getstate__() | {"_known": known}  # costly results are not computed again

    def _told(self) -> str:
        return robot_line(self)


def frames_at(robot: Robot, q: Array) -> dict[str, tuple[Array, Array]]:
    """World position and rotation matrix of every frame and point."""
    at = pose(robot.tree, q)
    result = {}
    for name, place in robot.tree.places.items():
        rotation, position = at.of(place)
        result[name] = (position, rotation)
    return result
