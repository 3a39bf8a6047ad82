"""Represent a loaded robot: description, tree, closures, actuation and working mode."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from parflex.closure import mobility
from parflex.closure.assembler import Assembler
from parflex.closure.constraints import Closures, Coupling, unstretched_rows, with_starts
from parflex.closure.leg_geometry import drive_springs
from parflex.closure.partition import choose_partition, refuse_other_branch
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, SingularError, did_you_mean
from parflex.records import Answer, Record, brief, count_of, degrees_of_freedom, name_list
from parflex.recursion.kinematics import pose
from parflex.robot.gearing import Gearing, find_gearing
from parflex.robot.home import Mobility, find_home, mobility_with, poses_beside, start_warnings
from parflex.robot.poses import PoseFinder
from parflex.robot.states import close_positions, closed_positions, evaluate_batch
from parflex.robotfile import schema
from parflex.robotfile.values import INSIDE
from parflex.tree.tree import Tree

Array = np.ndarray
T = TypeVar("T")
PUBLIC = (  # names that `dir` lists: those of the documentation
    *("actuated", "actuated_names", "actuation", "close", "closures", "coordinates", "description"),
    *("diagnostics", "file", "files"),
    *("home", "independent", "locked", "mode", "motors", "name", "nq", "nu", "nv", "payload", "position_rates"),
    *("rate_changes", "rates", "sensed", "sensed_names", "sensing", "tree", "warnings", "working_mode", "written"),
)
TWO_AXES = ("universal", "cylindrical")
FORCES = {"rad": "N m", "m": "N"}


@dataclass(frozen=True, eq=False, repr=False)
class WrittenRobot(Record):
    """Origin of a robot: its whole table, settings included, payload and refinement.

    `files` are all files that were read: its own, extended files, and those of bodies. The table of a `rigid`
    version is that of the flexible robot. `nodes` are places of beams, such as `arm@0.37`, that are nodes in
    addition to those of the file. `tree` is the tree as built: a robot with another tree has other numbers than its
    file.
    """

    table: dict[str, Any]
    payload: tuple[float, ...] | None
    elements: int
    files: tuple[str, ...] = ()
    rigid: bool = False
    nodes: tuple[str, ...] = ()
    tree: Tree | None = None


class RobotCache(dict[Any, Any]):
    """Values cached for the lifetime of one robot; copies, also pickled ones, start empty."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return RobotCache, ()


@dataclass(frozen=True, eq=False, repr=False)
class Robot(Answer):
    """A robot with a chosen `actuation` and `working_mode` (`mode`), made by `load`.

    `description` is the content of its `file`, `tree` and `closures` follow from it; `actuated`, `locked` and
    `sensed` are numbers of rates, `diagnostics` its warnings, `written` the table it was loaded from.
    """

    description: schema.RobotFile
    file: str
    tree: Tree
    closures: Closures
    actuated: tuple[int, ...]  # rates that motors move
    locked: frozenset[int]  # locked rates
    actuation: str
    working_mode: str
    diagnostics: tuple[Diagnostic, ...] = ()
    mode: schema.WorkingMode = field(default_factory=schema.WorkingMode, repr=False)
    sensed: tuple[int, ...] = ()  # rates of passive joints with a sensor
    written: WrittenRobot | None = field(default=None, repr=False, compare=False)  # what it was loaded from
    # of a robot with equal kinematics; `replace` drops them, so each copy states what it shares
    known_home: InitVar[Array | None] = None
    known_mobility: InitVar[Mobility | None] = None
    _known: tuple[Array | None, Mobility | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self, known_home: Array | None, known_mobility: Mobility | None) -> None:
        object.__setattr__(self, "_known", (known_home, known_mobility))

    def __dir__(self) -> list[str]:
        return list(PUBLIC)

    @property
    def refine(self) -> int:
        """Number of elements per element of the file."""
        return 1 if self.written is None else self.written.elements

    @property
    def nodes(self) -> tuple[str, ...]:
        """Places of beams that are nodes in addition to those of the file."""
        return () if self.written is None else self.written.nodes

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the robot."""
        return () if self.written is None else self.written.files

    @property
    def payload(self) -> tuple[float, ...] | None:
        """Mass (kg) and place (m) of the payload on the end effector."""
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
        """Return the same robot, at the same home, with sensors in passive `joints` in addition to the motors."""
        sensed = sensed_rates(self.tree, joints, self.actuated, self.locked)
        return replace(self, sensed=sensed, known_home=self.home)  # sensors do not move a robot

    @cached_property
    def free(self) -> Array:
        """Rates that are not locked."""
        return np.array([k for k in range(self.tree.n) if k not in self.locked], dtype=int)

    @cached_property
    def assembler(self) -> Assembler:
        """Solver of closed poses in the working mode."""
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
        stated = {link.name for link in self.tree.links if {link.name, link.name[:-2]} & self.frames_with_start}
        return with_starts([*couplings, *unstretched_rows(self.tree)], q, stated)

    @cached_property
    def frames_with_start(self) -> set[str]:
        """Frames whose start the file or the working mode states."""
        return {frame.name for frame in self.description.frame if frame.start} | set(self.mode.start)

    @cached_property
    def drive_springs(self) -> tuple[int, ...]:
        """Links on a spring right behind a joint of the same axis, unstretched in every pose."""
        return drive_springs(self.tree, self.closures)

    @cached_property
    def gearing(self) -> Gearing:
        """The rates of rotors, and units of all rates, those of rotors behind their gears."""
        return find_gearing(self.tree, self.closures)

    @cached_property
    def deformations(self) -> tuple[int, ...]:
        """Rates that are zero without deformation: of elastic bodies and of springs of elastic drives."""
        return (*self.tree.elastic, *(self.tree.links[number].v.start for number in self.drive_springs))

    @cached_property
    def home(self) -> Array:
        """Positions of the pose `home` (or of the closed start values), the start of all solutions; read-only."""
        known_home, _ = self._known
        q = find_home(self) if known_home is None else known_home
        q.setflags(write=False)
        return q

    @cached_property
    def pose_finder(self) -> PoseFinder:
        """Solver of requested poses."""
        return PoseFinder(self)

    def start_warnings(self) -> list[Diagnostic]:
        """Return diagnostics of motors far from their stated start, and of couplings."""
        return start_warnings(self)

    def derived(self, key: Any, make: Callable[[], T]) -> T:
        """Return a value that depends on this robot only, by `key`; `make` is called once."""
        if key not in self.cache:  # two threads may both make it: they make the same
            self.cache[key] = make()
        value: T = self.cache[key]
        return value

    def on_tree(self, tree: Tree) -> Robot:
        """Return the same robot on another `tree` with equal coordinates and closures."""
        closures = replace(self.closures, tree=tree)
        return replace(self, tree=tree, closures=closures, known_home=self.home, known_mobility=self.known[1])

    def locking(self, rates: Collection[int]) -> Robot:
        """Return the same robot, at the same home, with joints of `rates` (numbers) locked; cached for each choice."""
        locked = self.locked | frozenset(rates)
        actuated = tuple(k for k in self.actuated if k not in locked)
        return self.derived(
            ("locking", locked), lambda: replace(self, locked=locked, actuated=actuated, known_home=self.home)
        )

    def assemble(
        self, given: str | Mapping[str, float] | Sequence[float] | Array | None = None, near: Array | None = None
    ) -> Array:
        """Return the positions of all coordinates (m, rad) at a pose.

        `given` is the name of a pose of the file, coordinates by name, an array of them (m, rad), or None for
        home; `near` are all positions of the start pose, None for home.
        """
        if given is None or (isinstance(given, str) and given == "home"):
            return self.home.copy()
        if not isinstance(given, str | Mapping):
            return closed_positions(self, given)
        if isinstance(given, str):
            if given not in self.description.poses:
                hint = did_you_mean(given, {*self.description.poses, "home"})
                raise InputError(f"the robot has no pose '{given}'", key="pose", value=given, hint=hint)
            given = self.description.poses[given]
        home = self.home if near is None else near
        target = self.pose_finder.read(given)
        positions = self.pose_finder.find(target, home)
        if self.mobility.redundant:  # rows that repeat others at home may hold something elsewhere
            J = mobility.scaled_jacobian(self.closures, positions)
            refuse_other_branch(J[:, self.free], self.mobility.rank)
        return positions if near is not None else self.tree.within_limits(positions, set(target.values))

    @cached_property
    def at_rest(self) -> Robot | None:
        """The same robot with elastic couplings held unstretched, or None without elastic couplings."""
        return self.resting_but(frozenset())

    def resting_but(self, stretched: frozenset[str]) -> Robot | None:
        """Return the robot with elastic couplings held except `stretched`, or None if no other is left."""
        unstretched = tuple(row for row in unstretched_rows(self.tree) if row.name not in stretched)
        if not unstretched:
            return None
        tree = replace(self.tree, springs=())
        rows = (*self.closures.constraints, *unstretched)
        closures = replace(self.closures, tree=tree, constraints=rows)
        return self.derived(("unstretched", stretched), lambda: replace(self, tree=tree, closures=closures))

    # -- arrays ----------------------------------------------------------------------------------------

    @property
    def coordinates(self) -> list[str]:
        """Names of all position coordinates, the order of arrays `q`; a quaternion has four."""
        return list(self.tree.position_names)

    @property
    def rates(self) -> list[str]:
        """Names of all rates, the order of arrays `qd` and `qdd`."""
        return list(self.tree.rate_names)

    @property
    def independent(self) -> list[str]:
        """Names of the independent rates, in arrays and programs; the others follow from the loops."""
        return [self.tree.rate_names[k] for k in self.independent_rates]

    @property
    def motors(self) -> list[str]:
        """Names of the motors, the order of arrays of efforts."""
        return self.actuated_names

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.tree.nq

    @property
    def nv(self) -> int:
        """Number of rates."""
        return self.tree.n

    @property
    def nu(self) -> int:
        """Number of motors."""
        return len(self.actuated)

    @cached_property
    def independent_rates(self) -> tuple[int, ...]:
        """Numbers of the independent rates of programs, or of a nearby pose if home is singular."""
        from parflex.robot.program_rates import independent_rates  # which takes robots

        try:
            return tuple(int(k) for k in independent_rates(self))
        except SingularError as error:
            singular = error
        for q in self.reference_poses[1:]:
            with suppress(SingularError):
                J = mobility.scaled_jacobian(self.closures, q)
                chosen = choose_partition(J, self.free, self.mobility.rank, self.preference)
                return tuple(int(k) for k in chosen.independent)
        raise singular

    def close(self, q: Any) -> Array:
        """Return closed positions near `q`, with all or the independent coordinates; a leading axis is a batch."""
        return close_positions(self, q)

    def position_rates(self, q: Any, qd: Any) -> Array:
        """Return time derivatives of all positions `q` at all rates `qd`; a leading axis is a batch."""
        return evaluate_batch(self.tree.position_rates, (q, "q", self.nq), (qd, "qd", self.nv))

    def rate_changes(self, qd: Any, qdd: Any) -> Array:
        """Return time derivatives of all rates `qd` at all accelerations `qdd`; a leading axis is a batch."""
        return evaluate_batch(self.tree.rate_changes, (qd, "qd", self.nv), (qdd, "qdd", self.nv))

    @cached_property
    def cache(self) -> RobotCache:
        """Values and programs computed for this robot, by request."""
        return RobotCache()

    # -- how it moves ----------------------------------------------------------------------------------

    @cached_property
    def is_underactuated(self) -> bool:
        """Whether motors are fewer than degrees of freedom, and each moves the robot."""
        from parflex.robot.configuration import Configuration  # which imports this module

        return Configuration(self, self.home).is_underactuated_here

    @property
    def driven_by_motors(self) -> bool:
        """Whether inverse models take motor accelerations alone, because bodies deform or motors are too few."""
        return bool(self.tree.elastic) or self.is_underactuated

    @cached_property
    def mobility(self) -> Mobility:
        """Larger of the ranks at home and at a random pose nearby, because home may be singular."""
        _, known_mobility = self._known
        return mobility_with(self, self.locked) if known_mobility is None else known_mobility

    @property
    def freedoms(self) -> int:
        """Number of degrees of freedom."""
        return self.mobility.freedoms(len(self.free))

    @property
    def undeformed(self) -> Robot:
        """The same robot without deformation."""
        return self.locking(self.deformations) if self.deformations else self

    @property
    def known(self) -> tuple[Array | None, Mobility | None]:
        """Home and mobility, if computed."""
        return self.__dict__.get("home", self._known[0]), self.__dict__.get("mobility", self._known[1])

    @cached_property
    def reference_poses(self) -> tuple[Array, ...]:
        """Home and closed poses nearby, which together show general properties."""
        return (self.home, *poses_beside(self, self.free))

    @cached_property
    def _usual_sizes(self) -> Array:
        """Largest singular values at regular poses: of the scaled closures, and of motors per allowed motion."""
        free, sizes = self.free, np.zeros(2)
        driven = [i for i, k in enumerate(free) if k in self.actuated]
        for q in self.reference_poses:
            J = mobility.scaled_jacobian(self.closures, q)[:, free]
            J, _, _, motions = self.gearing.judged(J, free, self.mobility.rank, self.tree.rate_units)
            sizes = np.maximum(
                sizes, [float(np.linalg.norm(part, 2)) if part.size else 0.0 for part in (J, motions[driven])]
            )
        return sizes

    def regular_closure_norm(self) -> float:
        """Return the largest singular value of the scaled closures at regular poses."""
        return float(self._usual_sizes[0])

    def regular_actuation_norm(self) -> float:
        """Return the largest singular value of motor rates per allowed motion at regular poses."""
        return float(self._usual_sizes[1])

    @cached_property
    def preference(self) -> Array:
        """Preference of rates as dependent: passive joints and tips of beams, motors, free bodies, modes."""
        weights = np.ones(self.tree.n)
        weights[list(self.actuated)] = 0.1
        for link in self.tree.links:
            if link.joint.moves_freely:
                weights[link.v] = 0.01
            if not link.body.by_tip:
                weights[link.e_v] = 0.001
        return weights

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_known": self.known}  # costly results are not computed again

    def _told(self) -> str:
        motors, elastic = self.actuated_names, len(self.tree.elastic)
        parts = [freedoms_of(self), f"motors {name_list(motors)}" if motors else "no motors"]
        parts.append(f"flexible ({count_of(elastic, 'elastic coordinate')})" if elastic else "rigid")
        chosen = (("actuation", self.actuation), ("working mode", self.working_mode))
        parts += [f"{word} {brief(name)}" for word, name in chosen if name != "default"]
        parts += [f"{count_of(len(self.locked), 'locked rate')}"] * bool(self.locked)
        parts += [f"sensors {name_list(self.sensed_names)}"] * bool(self.sensed)
        parts += [count_of(len(self.diagnostics), "warning")] * bool(self.diagnostics)
        return f"{brief(self.name)}: {', '.join(parts)}"


def frames_at(robot: Robot, q: Array) -> dict[str, tuple[Array, Array]]:
    """Return world position and rotation matrix of every frame and point."""
    at = pose(robot.tree, q)
    return {name: at.of(place)[::-1] for name, place in robot.tree.places.items()}


def file_frame(robot: Robot, link: str) -> str:
    """Return the frame of the file that a beam element belongs to."""
    names = {frame.name for frame in robot.description.frame}
    link = link.partition(INSIDE)[0]
    while link not in names and "." in link:
        link = link.rpartition(".")[0]
    return link


def axis_names(frame: schema.Frame) -> tuple[str, ...]:
    """Return the names of the links of the joint of a frame; universal and cylindrical joints have two."""
    return (f"{frame.name}.1", f"{frame.name}.2") if frame.joint in TWO_AXES else (frame.name,)


def marked_rates(description: schema.RobotFile, tree: Tree, excluded: Collection[int]) -> tuple[int, ...]:
    """Return the sensed rates of the file, except those that the actuation moves or locks."""
    rates: list[int] = []
    for frame in description.frame:
        marks = frame.sensed if isinstance(frame.sensed, tuple) else (frame.sensed,) * 2
        marked = [name for name, mark in zip(axis_names(frame), marks, strict=False) if mark]
        rates += [tree.links[tree.number(name)].v.start for name in marked]
    return tuple(k for k in rates if k not in excluded)


def sensed_rates(
    tree: Tree, joints: Sequence[str], actuated: Collection[int], locked: Collection[int]
) -> tuple[int, ...]:
    """Return the rates of passive joints by name; raise for actuated or locked joints."""
    known = {link.name: link.v.start for link in tree.links if link.joint.one_axis}
    chosen: list[int] = []
    for name in [joints] if isinstance(joints, str) else joints:
        if name not in known:
            message, hint = f"there is no joint '{name}' with one axis", did_you_mean(name, known)
            raise InputError(message, key="sensors", value=name, hint=hint)
        reasons = {"has a motor": actuated, "is locked": locked, "is listed twice": chosen}
        for reason in (words for words, rates in reasons.items() if known[name] in rates):
            hint = "list passive joints, each once"
            raise InputError(f"the joint '{name}' {reason}", key="sensors", value=name, hint=hint)
        chosen.append(known[name])
    return tuple(chosen)


def effort_units(robot: Robot) -> dict[str, str]:
    """Return the unit of the effort of each motor."""
    tree = robot.tree
    units = {tree.rate_names[k]: tree.links[tree.link_of_rate[k]].joint.unit for k in range(tree.n)}
    return {name: FORCES.get(unit, "N or N m") for name, unit in units.items()}


def freedoms_of(robot: Robot) -> str:
    """Return the degrees of freedom of the undeformed robot, or a text if it cannot be assembled."""
    try:
        return degrees_of_freedom(robot.undeformed.freedoms)
    except (ParflexError, np.linalg.LinAlgError):
        return "unknown degrees of freedom"
