"""Compute home, the reference pose of a robot, warnings about it, and mobility at home and nearby."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure import mobility
from parflex.closure.targets import Target
from parflex.closure.unreachable import Refusal
from parflex.diagnostics import Diagnostic
from parflex.errors import RobotFileError, SingularError, UnreachableError
from parflex.records import Record
from parflex.recursion.energy import distance
from parflex.recursion.kinematics import pose
from parflex.robot.pose_input import read_pose
from parflex.robot.states import coupling_warnings

if TYPE_CHECKING:
    from parflex.robot.robot import Robot
    from parflex.tree.tree import Link

Array = np.ndarray
FAR = 0.6  # rad or characteristic lengths between start and home of a motor above which a warning is given
CLOSED = 1e-11  # m: Newton's method closes loops to rounding


def find_home(robot: Robot) -> Array:
    """Return positions at home with the motors of the frames; raise with the name of a contradicting coupling."""
    from parflex.robot.load import actuation_rates  # which imports robots

    motors, _ = actuation_rates(robot.description, robot.tree, None)
    try:
        return assembled_home(replace(robot, actuated=motors) if motors and motors != robot.actuated else robot)
    except (UnreachableError, SingularError) as error:
        raise _contradiction(robot) or error from None


def assembled_home(robot: Robot) -> Array:
    """Return positions at home with the motors of this robot."""
    coordinates = robot.description.poses.get("home", {})
    target = read_pose(robot.tree, coordinates, "poses.home", robot.file, robot.start) if coordinates else Target()
    locked = robot.locked
    q = robot.pose_finder.solve(target, robot.start, None, locked)
    if isinstance(q, Refusal) and locked:
        locked = frozenset()  # locked joints follow from this pose
        q = robot.pose_finder.solve(target, robot.start, None, locked)
    if isinstance(q, Refusal):
        error = q.error()
        error.file = robot.file
        raise error
    stated = frozenset(link.q.start for link in stated_motors(robot)) - set(target.values)
    q = robot.assembler.nearer(q, target, robot.start, stated, locked | set(robot.deformations))
    return robot.tree.within_limits(q, set(target.values))


def _contradiction(robot: Robot) -> RobotFileError | None:
    """Return the error for a robot that assembles without one of its couplings only."""
    constraints = robot.closures.constraints
    for count in range(len(constraints) + 1):
        reduced = replace(robot, closures=replace(robot.closures, constraints=constraints[:count]))
        try:
            assembled_home(reduced)
        except (UnreachableError, SingularError):
            if not count:
                return None
            culprit = constraints[count - 1]
            parts = reduced.assembler.parts(Target(), frozenset())
            coupled_rows = next(part.rows for part in parts if culprit in part.rows)
            names = ", ".join(f"'{row.name}'" for row in coupled_rows if row is not culprit) or "the pose home"
            return RobotFileError(
                f"the {culprit.kind} '{culprit.name}' contradicts {names}: no pose near home meets both",
                file=robot.file,
                key=f"{culprit.kind if culprit.kind == 'coupling' else 'element'} '{culprit.name}'",
                value=culprit.name,
                hint="correct its offset, ratio or length, give consistent starts, or remove it",
            )
    return None


def _stated(robot: Robot, links: Collection[Link]) -> list[Link]:
    """Return the links whose joints have a start in the file or the working mode."""
    return [link for link in links if {link.name, link.name[:-2]} & robot.frames_with_start]


def stated_motors(robot: Robot) -> list[Link]:
    """Return the links on motors that have a start in the file or the working mode."""
    links = [robot.tree.links[robot.tree.link_of_rate[k]] for k in robot.actuated]
    return [link for link in _stated(robot, links) if link.joint.one_axis]


def start_warnings(robot: Robot) -> list[Diagnostic]:
    """Return diagnostics of motors far from their stated start, and of couplings."""
    warnings = coupling_warnings(robot.closures.constraints, robot.tree, _stated(robot, robot.tree.links))
    coordinates = robot.description.poses.get("home", {})
    flipped = robot.assembler.legs_of_other_sign(robot.start)
    for link in stated_motors(robot):
        home, start = float(robot.home[link.q.start]), float(robot.start[link.q.start])
        away = float(np.arctan2(np.sin(home - start), np.cos(home - start))) if link.periodic else home - start
        far = abs(away) > FAR * float(robot.tree.rate_units[link.v.start])
        if far and link.name not in coordinates and link.leg not in flipped:
            text = (
                f"joint '{link.name}' is assembled at {home:.4g}, far from its start {start:.4g}: "
                "check its start, or the starts of the joints that it carries"
            )
            warnings.append(Diagnostic("far-start", text, link.name, away))
    return warnings


def slack_cables(robot: Robot) -> list[Diagnostic]:
    """Return a diagnostic for each cable that is longer than its path at home."""
    cables = [element for element in robot.tree.elements if element.pulls_only]
    if not cables:
        return []
    at, messages = pose(robot.tree, robot.home), []
    for cable in cables:
        path = float(distance(at, (cable.first, cable.second)))
        if cable.rest > path:
            text = (
                f"the cable '{cable.name}' of {cable.rest:.4g} m is longer than its path of {path:.4g} m at home: "
                "it is slack there"
            )
            messages.append(Diagnostic("slack-cable", text, cable.name, float(cable.rest) - path))
    return messages


# -- mobility ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Mobility(Record):
    """Rank of the closures, and the mobility."""

    rank: int
    redundant: tuple[int, ...]  # rows that repeat others
    home_rank: int
    beside: tuple[Array, ...] = ()  # closed poses nearby, at which it was judged

    def freedoms(self, columns: int) -> int:
        """Return the number of independent motions with this many free rates."""
        return columns - self.rank


def mobility_with(robot: Robot, locked: Collection[int]) -> Mobility:
    """Return the mobility with the rates `locked` (numbers), judged at poses near home, which may be singular."""
    free = np.array([k for k in range(robot.tree.n) if k not in locked], dtype=int)
    poses = poses_beside(robot, free)
    blocks = [mobility.scaled_jacobian(robot.closures, q)[:, free] for q in (robot.home, *poses)]
    ranks = [mobility.rank(J) for J in blocks]
    best = int(np.argmax(ranks))
    return Mobility(ranks[best], tuple(mobility.redundant_rows(blocks[best], ranks[best])), ranks[0], tuple(poses))


def poses_beside(robot: Robot, free: Array) -> list[Array]:
    """Return two closed poses near home along allowed motions of the `free` rates."""
    if not robot.closures.size:
        return []
    return robot.derived(("beside home", free.tobytes()), lambda: _closed_beside(robot, free))


def _closed_beside(robot: Robot, free: Array) -> list[Array]:
    """Return the poses of the known mobility if loops close there, else new poses."""
    known = robot.known[1]
    if known is not None and np.array_equal(free, robot.free):
        poses = [q for q in known.beside if len(q) == robot.tree.nq]
        opened = [robot.closures.residual(pose(robot.tree, q)) for q in poses]
        if poses and all(np.abs(rows).max() < CLOSED for rows in opened):
            return poses
    J = mobility.scaled_jacobian(robot.closures, robot.home)[:, free]
    V = np.linalg.svd(J)[2] if J.size else np.eye(len(free))
    starts = open_poses_beside(robot, free, V[mobility.rank(J) :])
    solutions = [robot.assembler.newton(q, free, list(robot.closures.rows)) for q in starts]
    return [q for q, error in solutions if error < CLOSED]


def open_poses_beside(robot: Robot, free: Array, motions: Array | None = None) -> list[Array]:
    """Return two poses near home along random motions of all free rates or of these rows."""
    rng, directions = np.random.default_rng(0), np.eye(len(free)) if motions is None else motions
    poses = []
    for size in (0.15, 0.1) if len(directions) else ():
        direction = rng.standard_normal(len(directions)) @ directions
        step = np.zeros(robot.tree.n)
        step[free] = size * direction / np.abs(direction).max() * robot.tree.rate_units[free]
        poses.append(robot.tree.moved(robot.home, step))
    return poses
