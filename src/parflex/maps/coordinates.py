"""Coordinates that define a pose at many poses: specified and free ones, parts that close independently."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from parflex.cache import cached
from parflex.closure import mobility
from parflex.closure.constraints import Coupling, unstretched_rows
from parflex.closure.leg_geometry import Dyad, LegSign
from parflex.closure.newton import ClosurePart
from parflex.closure.targets import FrameTarget, Target
from parflex.closure.working_modes import determined_rates, select_rows
from parflex.errors import ParflexError
from parflex.maps.closed_forms import tilted
from parflex.maps.kinematics import GEARING, Geometry
from parflex.maps.newton import ASKED, ClosingRows, NewtonStepper, dyad_judge, newton_stepper
from parflex.recursion.kinematics import place_jacobian, pose
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import joint_named
from parflex.robot.gearing import CouplingOrder, FollowingJoint, coupling_order, place_following_joints
from parflex.robot.pose_input import read_pose
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation, vector_quaternion
from parflex.tree.tree import GROUND

Array = np.ndarray

STILL = 1e-9  # of a rate without units: what moves less does not

AT_START = 1e-12  # rad or m: a platform stands at home where the file starts it

VECTOR = ("rx", "ry", "rz")

ALL = -1  # in the place of a link: all that a pose leaves as at home

Closable = tuple[ClosurePart, list[int], list[ClosingRows]]


class UnsuitedCoordinatesError(Exception):
    """Why these poses are not found together, as words that follow a colon."""


class PoseCoordinates:
    """Coordinates by name, each a joint or one of the end effector; the rotation vector stands apart.

    `following` are joints that elastic couplings at rest put somewhere by these coordinates.
    """

    following: tuple[FollowingJoint, ...] = ()

    def __init__(self, geometry: Geometry, names: Sequence[str]) -> None:
        self.geometry, self.robot, self.names = geometry, geometry.robot, list(names)
        tree = geometry.tree
        place = tree.places[tree.end_effector]
        link = tree.links[place.link]
        offset = {"x": 0, "y": 1, "theta": 2} if tree.planar else {"x": 0, "y": 1, "z": 2}
        self.where: dict[str, int] = {}
        self.asked: set[int] = set()  # axes along which a place on joints is given, by columns behind all others
        behind = len(self.geometry.kept) + len(self.geometry.varied)
        known = ", ".join((*offset, *(() if tree.planar else VECTOR)))
        for name in self.names:
            joint = joint_named(tree, name)
            if joint is not None:
                self.where[name] = joint.q.start
            elif name in offset or (name in VECTOR and not tree.planar):
                if link.joint.moves_freely and link.parent == GROUND:
                    self.where[name] = link.q.start + offset.get(name, 3)
                elif link.joint.moves_freely or place.inner is not None:
                    raise UnsuitedCoordinatesError(
                        f"'{name}' is that of a place inside a body, or on a body that another carries"
                    )
                elif name in VECTOR:
                    self.where[name] = behind + ASKED.index("qw")
                else:
                    self.where[name] = behind + ASKED.index(name)
                    self.asked |= {ASKED.index(name)} if name != "theta" else set()
            else:
                raise UnsuitedCoordinatesError(f"'{name}' is neither a joint nor one of {known} of the end effector")

    @property
    def columns(self) -> list[int]:
        """Positions that are given or follow from these; of a rotation vector all of its quaternion."""
        follow = [int(np.searchsorted(self.geometry.kept, joint.position)) for joint in self.following]
        quaternion = [k for name in self.names if name in VECTOR for k in range(self.where[name], self.where[name] + 4)]
        return [self.where[name] for name in self.names if name not in VECTOR] + quaternion + follow

    @cached_property
    def coordinates_fixed_at_home(self) -> list[str]:
        """Coordinates that are not named though they could move: of the end effector, or the other motors."""
        tree, input_names = self.robot.tree, set(self.names)
        if self.asked:  # by all its coordinates, and turned as its joints leave it
            return []
        joints = [joint_named(tree, name) is not None for name in self.names]
        if any(joints) and not all(joints):  # motors and coordinates of the platform: what is open follows
            return []
        if any(joints):
            follow = {joint.rate for joint in self.following}
            motors = zip(self.robot.actuated, self.robot.actuated_names, strict=True)
            return [name for rate, name in motors if name not in input_names and rate not in follow]
        configuration = Configuration(self.robot, self.robot.home)
        place = tree.places[tree.end_effector]
        v, w = place_jacobian(tree, configuration.at, configuration.link_jacobians, place)
        R = configuration.at.of(place)[0]
        rigid = [k for k in self.robot.free if k not in self.robot.deformations]
        closing = configuration.scaled_closure_jacobian[:, rigid]
        motions = mobility.null_space(closing, mobility.rank(closing)) * tree.rate_units[rigid][:, None]
        rates = np.concatenate([R @ v / tree.length, R @ w])[:, rigid] @ motions
        moved = np.abs(rates).max(axis=1, initial=0.0) > STILL
        rotations = [] if input_names & set(VECTOR) else ["theta"] if tree.planar else list(VECTOR)
        names = ["x", "y", "theta"] if tree.planar else ["x", "y", "z", *VECTOR]
        rows = [0, 1, 5] if tree.planar else range(6)
        movable = {name for name, row in zip(names, rows, strict=True) if moved[row]}
        return [name for name in ("x", "y", "z", *rotations) if name in movable - input_names]

    @cached_property
    def held_at_home(self) -> Array:
        """Positions of the coordinates that are fixed at home: joints, or a part of a platform on the ground."""
        tree, positions = self.geometry.tree, list[int]()
        link = tree.links[tree.places[tree.end_effector].link]
        first, words = link.q.start, ("x", "y", "theta" if tree.planar else "z")
        for name in self.coordinates_fixed_at_home:
            joint = joint_named(tree, name)
            if joint is not None:
                positions += range(joint.q.start, joint.q.stop)
            elif link.joint.moves_freely and link.parent == GROUND:
                positions += range(first + 3, first + 7) if name in VECTOR else [first + words.index(name)]
        return np.array(positions, dtype=int)

    def start(self, values: Array, q: Array) -> Array:
        """The positions with the given coordinates set; those of a place on joints are behind them."""
        if self.asked:  # what is not named is kept as at home
            q = np.concatenate([q, np.repeat(self.place_at_home[None], len(q), axis=0)], axis=1)
        vectors = np.zeros((len(values), 3)) if set(VECTOR) & set(self.names) else None
        for column, name in enumerate(self.names):
            if vectors is not None and name in VECTOR:
                vectors[:, VECTOR.index(name)] = values[:, column]
            else:
                q[:, self.where[name]] = values[:, column]
        if vectors is not None:
            first = self.where[next(name for name in self.names if name in VECTOR)]
            q[:, first : first + 4] = vector_quaternion(vectors)
        place_following_joints(self.following, q, self.geometry.kept, self.geometry.designed)
        return q

    @cached_property
    def place_at_home(self) -> Array:
        """Where the end effector is at home, by the words of a place on joints."""
        tree = self.geometry.tree
        R, P = pose(tree, self.geometry.home).of(tree.places[tree.end_effector])
        return np.concatenate([P, [np.arctan2(R[1, 0], R[0, 0])], vector_quaternion(vector_from_rotation(R))])

    @property
    def at_home(self) -> Array:
        """Coordinates of home."""
        home = self.geometry.home
        if self.asked:
            home = np.concatenate([home, np.zeros(len(self.geometry.varied)), self.place_at_home])
        values = np.array([0.0 if name in VECTOR else home[self.where[name]] for name in self.names])
        turned = [k for k, name in enumerate(self.names) if name in VECTOR]
        if turned:
            first = self.where[self.names[turned[0]]]
            w, axis = home[first], home[first + 1 : first + 4]
            size = float(np.linalg.norm(axis))
            vector = axis * (2 * np.arctan2(size, w) / size) if size else axis
            values[turned] = [vector[VECTOR.index(self.names[k])] for k in turned]
        return values


class RequestedPoses:
    """Poses of a robot by coordinates with these names; the first of them stands for all."""

    def __init__(self, geometry: Geometry, names: Sequence[str], first: Sequence[float]) -> None:
        self.robot, self.names, self.geometry = geometry.robot, list(names), geometry
        robot = self.robot
        self.read = read_pose(robot.tree, dict(zip(names, first, strict=True)), "pose", None, robot.home)

    @cached_property
    def target(self) -> Target:
        """The first pose, with what it leaves open and what follows from that."""
        return self._whole if self.coupled is None else self.coupled.target

    @cached_property
    def _whole(self) -> Target:
        robot = self.robot
        target = robot.pose_finder.whole(self.read, robot.home) or self.read
        if target is not self.read and robot.pose_finder.contradicts(target):
            target = self.read  # what is named moves what it would keep
        wider = self.widened(target)
        return target if wider is None else wider

    def widened(self, target: Target) -> Target | None:
        """Where a place on joints leaves motions free: it keeps what is not named as at home, where it can."""
        robot, tree = self.robot, self.robot.tree
        place = tree.places[tree.end_effector]
        if self.geometry.designs is not None or robot.at_rest is not None or not self.read.frames:
            return None
        if tree.links[place.link].joint.moves_freely or not robot.pose_finder.is_free(self.read):
            return None
        rows = robot.pose_finder.free_part.widened(self.read).frames
        if not all(isinstance(row, FrameTarget) and row.place is place for row in rows):
            return None
        position = {axis: value for row in rows if isinstance(row, FrameTarget) for axis, value in row.position.items()}
        turned = [row.rotation for row in rows if isinstance(row, FrameTarget) and row.rotation is not None]
        return replace(target, frames=(FrameTarget(rows[0].name, place, position, turned[0] if turned else None),))

    @cached_property
    def coupled(self) -> CouplingOrder | None:
        """What follows elastic couplings, which stay at rest; None where there are none, and nothing is placed."""
        return coupling_order(self.robot, self.read, self._whole) if unstretched_rows(self.robot.tree) else None

    def refuse_open_couplings(self) -> None:
        """Poses at which couplings leave motors open are the nearest ones, one by one."""
        if self.coupled is not None and self.coupled.undetermined_couplings:
            names = ", ".join(f"'{name}'" for name in sorted(self.coupled.undetermined_couplings))
            raise UnsuitedCoordinatesError(f"elastic couplings ({names}) leave open which motor moves")

    @property
    def after(self) -> tuple[FollowingJoint, ...]:
        """Joints that follow when loops are closed."""
        return () if self.coupled is None else self.coupled.after


def moved_at_home(geometry: Geometry, known: Collection[int]) -> list[str]:
    """Links that a pose leaves as at home, and that the home of a design may have elsewhere.

    `known` are positions that are given or solved for. The pose 'home' of the file states positions; a platform that
    starts there stays, and so does a joint that no loop holds. Others follow from how loops close with other lengths.
    """
    designs, robot = geometry.designs, geometry.robot
    if designs is None:
        return []
    left: dict[int, list[int]] = {}
    for number, link in enumerate(geometry.tree.links):
        unknown = sorted(set(range(link.q.start, link.q.stop)) - set(known))
        platform = link.joint.moves_freely and link.parent == GROUND  # one of its coordinates may be given alone
        if unknown and (platform or len(unknown) == link.q.stop - link.q.start):
            left[number] = unknown
    if not left:
        return []
    started = cached("joints that designs start", designs.name or None, lambda: frozenset(_started(designs.places)))
    parts = robot.assembler.parts(Target(), robot.locked | frozenset(robot.deformations))
    looped = {robot.tree.link_of_rate[int(k)] for part in parts for k in part.columns if part.rows}
    coupled = {number for spring in robot.tree.springs for number in spring.numbers}
    coupled |= {number for row in robot.closures.constraints for number in row.links(robot.tree)}
    if ALL in started or started & (looped | coupled):  # where one starts, others follow
        return [robot.tree.links[number].name for number in left]
    stated = robot.description.poses.get("home", {})
    moved = []
    for number, positions in left.items():
        link, own = robot.tree.links[number], geometry.kept[positions]
        if link.joint.moves_freely and link.parent == GROUND:
            at_start = np.abs(robot.home[own] - robot.start[own]).max(initial=0.0) <= AT_START
            stays = at_start or bool({"x", "y", "z", "theta", *VECTOR} & set(stated))
        else:
            stays = number not in looped or link.name in stated
        if number in started or (geometry.varied and not stays):
            moved.append(link.name)
    return moved


def _started(places: Iterable[Iterable[tuple[str | int, ...]]]) -> Iterable[int]:
    """Links that a number of designs starts elsewhere; `ALL` where it is a value of home or of a coupling."""
    for place in (place for own in places for place in own):
        if place[0] in ("home", "constraints") or (place[:2] == ("tree", "springs") and place[3] in GEARING):
            yield ALL
        elif place[:2] == ("tree", "links") and (place[3] == "start" or place[3:5] == ("terms", "rest")):
            yield int(place[2])


def single_pose_reason(robot: Robot) -> str:
    """Why poses by all coordinates of the end effector are found one by one; empty where they are not."""
    names = ["x", "y"] if robot.tree.planar else ["x", "y", "z"]
    geometry = Geometry(robot)
    try:
        coordinates = PoseCoordinates(geometry, names)
        requested = RequestedPoses(geometry, names, coordinates.at_home.tolist())
        requested.refuse_open_couplings()
        closable_parts(geometry, coordinates, requested.target)
    except UnsuitedCoordinatesError as error:
        return str(error)
    except ParflexError as error:
        return error.message
    return ""


def closable_parts(geometry: Geometry, coordinates: PoseCoordinates, target: Target) -> list[Closable]:
    """Parts of the robot with their rates and rows, where poses are closed together; an error says why not."""
    robot = geometry.robot
    place = robot.tree.places[robot.tree.end_effector]
    placed = [row for row in target.frames if isinstance(row, FrameTarget) and row.place is place]
    if len(placed) < len(target.frames) or bool(placed) != bool(coordinates.asked):
        raise UnsuitedCoordinatesError("some coordinates of the platform are given without the others")
    if geometry.designs is not None and any(set(row.position) != coordinates.asked for row in placed):
        # a coordinate that is not named stays as it is at the home of each design
        raise UnsuitedCoordinatesError(
            "a coordinate of the end effector is not named, and each design has its own home"
        )
    parts = robot.assembler.parts(target, robot.locked | frozenset(robot.deformations))
    if any(not all(isinstance(row, ClosingRows) for row in part.rows) for part in parts):
        raise UnsuitedCoordinatesError("rods or other conditions are among the closures")
    if not coordinates.asked and any(isinstance(row, Coupling) for part in parts for row in part.rows):
        # motors may turn many times what they drive: short steps would end on the way
        raise UnsuitedCoordinatesError("gears are among the closures")
    closable: list[Closable] = []
    for part in parts:
        rates = [int(k) for k in part.columns]
        loops = [row for row in part.rows if isinstance(row, ClosingRows)]
        if not rates:
            continue
        if any(robot.tree.links[robot.tree.link_of_rate[k]].joint.pitch for k in rates):
            raise UnsuitedCoordinatesError(
                "screws are among the closures"
            )  # they turn many times: short steps end on the way
        if len(determined_rates(robot.tree, rates, loops, robot.home, robot.preference)) < len(rates):
            raise UnsuitedCoordinatesError("the coordinates leave motions free, and the nearest pose to home is found")
        closable.append((part, rates, loops))
    return closable


def closing_parts(
    geometry: Geometry, coordinates: PoseCoordinates, target: Target
) -> tuple[list[NewtonStepper], list[NewtonStepper]]:
    """Steps of the parts of the robot, and those that judge on which side of a singularity they are."""
    robot = geometry.robot
    steppers: list[NewtonStepper] = []
    judges: list[NewtonStepper] = []
    for part, rates, loops in closable_parts(geometry, coordinates, target):
        sides = robot.assembler.judges(part, robot.home)
        judged, around = sides.own, sides.legs
        axes_tilted = tilted(geometry, loops, rates, judged.dyads)
        settled = robot.assembler.settled(part, robot.home) and not axes_tilted
        # where designs move axes that cross at home, numbers of a leg tell nothing: its determinant does
        judged_dyads = [item for item in judged.dyads if isinstance(item, Dyad) or not axes_tilted]
        by_numbers = sides.from_legs or any(isinstance(item, LegSign) for item in judged_dyads)
        picked = select_rows(robot.tree, loops, part.held, robot.assembler.block(robot.home, part))
        chosen = None if picked is None or by_numbers else picked.tolist()
        own_steps = newton_stepper(geometry, loops, rates, chosen, judged=not by_numbers)
        steppers.append(replace(own_steps, settled=settled, folds=sides.folds))
        # as where one pose is assembled: the whole part is judged where it is solved, legs as if the platform stood
        blocks = [(item, sides.folds) for item in judged.blocks if len(item.columns) < len(rates)]
        blocks += [(item, False) for leg in around for item in leg.blocks if {*item.columns.tolist()} != {*rates}]
        for item, folds in blocks:
            block_rows = [row for row in item.rows if isinstance(row, ClosingRows)]
            stepper = newton_stepper(geometry, block_rows, [int(k) for k in item.columns], item.picked.tolist())
            judges.append(replace(stepper, folds=folds))
        judges += [replace(dyad_judge(geometry, dyad), folds=sides.folds) for dyad in judged_dyads]
        judges += [dyad_judge(geometry, dyad) for leg in around for dyad in leg.dyads]
    return steppers, judges
