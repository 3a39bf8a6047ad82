"""Joint motions for a reference of the end effector of the nominal robot, computed once before any run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from parflex.cache import cached
from parflex.codegen.laws import driven_components
from parflex.control.references import Path, Reference
from parflex.errors import SingularError
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.limits import POSITION, check_limits, refuse_violations
from parflex.robot.robot import Robot
from parflex.trajectories.follow import JointTrajectory, joint_trajectory
from parflex.trajectories.paths import joints_of_pose, motion_channels
from parflex.trajectories.polynomials import Polynomials, check_channels, joined

Array = np.ndarray
TIMES = 2  # sets of times in memory: each may have a million
KNOT_STEP = 1e-2  # s between knots; quintics between them err by 1e-9 rad on a circle of 0.1 m in two seconds


@dataclass(frozen=True, eq=False, repr=False)
class Track(Record):
    """Joint values along a reference, with their rates, and all positions of the robot at knots."""

    reference: Reference
    names: list[str]
    pieces: Polynomials
    start: Array  # all positions where it begins
    start_rates: Array  # all rates there
    driven: tuple[int, ...]  # components of the end effector's twist that the robot can prescribe
    visited: tuple[Array, Array, Array] = field(repr=False, compare=False)  # times, and all positions and rates there

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations of the joints at times, a row for each."""
        return self._sampled(t)[0]

    def path(self, t: Array) -> Path:
        """Place and motion of the end effector at times."""
        return self._sampled(t)[1]

    def refuse_violations(self, robot: Robot, end: float, stopped: Collection[str] = ()) -> None:
        """Raise if the reference exceeds a limit of the robot until a time.

        Motors and sensed joints are checked at any instant, the others at the knots; not the ranges of joints that are
        `stopped` by stops.
        """
        t, q, qd = self.visited
        rows, tree = t <= end, robot.tree
        positions = dict(zip(tree.position_names, q[rows].T, strict=True))
        velocities = dict(zip(tree.rate_names, qd[rows].T, strict=True))
        violations = {
            (violation.joint, violation.key): violation
            for violation in check_limits(robot, positions, velocities, times=t[rows])
        }
        violations |= {
            (violation.joint, violation.key): violation
            for violation in check_channels(robot, self.names, self.pieces, end)
        }
        refuse_violations(
            violation for (joint, key), violation in violations.items() if key != POSITION or joint not in stopped
        )

    def _sampled(self, t: Array) -> tuple[tuple[Array, Array, Array], Path]:
        """Return both; all runs of a study have the same times."""
        times = np.clip(np.asarray(t, dtype=float), 0.0, self.reference.time)

        def build() -> tuple[tuple[Array, Array, Array], Path]:
            value, rate, change = (self.pieces.at(times, order) for order in range(3))
            return (value, rate, change), self.reference.at(times)

        return cached("references at times", (times.shape, times.tobytes()), build, owners=(self,), limit=TIMES)


def track(robot: Robot, reference: Reference, names: list[str], step: float = KNOT_STEP) -> Track:
    """Joints of these names along a reference; a pose that cannot be, or a singularity on the way, is refused."""
    rigid = robot.locking(robot.tree.elastic)
    tracker = _Way(rigid, reference, driven_components(rigid))
    rates = tuple(rigid.tree.links[rigid.tree.number(name)].v.start for name in names)

    def at(t: float, near: Array) -> tuple[Array, Array]:
        return motion_channels(*tracker.at(t, near), rates)

    q, parts = rigid.home, []
    for begin, end in pairwise([0.0, *reference.corners, reference.time]):
        trajectory = JointTrajectory(begin, end, False, at, _left, "reference", rates, strict=False)
        pieces, _, q = joint_trajectory(rigid, trajectory, q, max(8, int(np.ceil((end - begin) / step))))
        parts.append(pieces)
    assert tracker.start is not None
    times, positions, velocities = (np.array(part) for part in zip(*tracker.visited, strict=True))
    visited = (times, positions, velocities)
    return Track(reference, names, joined(parts), *tracker.start, tracker.driven, visited)


def _left(t: float) -> str:
    return f"the reference cannot be tracked at t = {t:.4g} s"


@dataclass(eq=False, repr=False)
class _Way(Record):
    """The robot along a reference; it stays on its side of singularities of the platform."""

    rigid: Robot
    reference: Reference
    driven: tuple[int, ...]
    start: tuple[Array, Array] | None = None  # all positions and rates where it begins
    side: float = 0.0
    visited: list[tuple[float, Array, Array]] = field(default_factory=list)  # times, all positions and rates

    def at(self, t: float, near: Array) -> tuple[Configuration, Array, Array]:
        """The robot at a time, with all rates and accelerations."""
        frame = self.rigid.tree.end_effector
        here, qd, qdd = joints_of_pose(self.rigid, frame, self.reference.at(t).row(0), near, self.driven)
        side = _orientation(here, self.driven)
        if self.side * side < 0:
            raise SingularError(
                "it crosses a singularity of the platform",
                key="reference",
                value=self.reference.name,
                hint="choose another working mode or another path",
            )
        self.start = (here.q, qd) if self.start is None else self.start
        self.side = side or self.side
        self.visited.append((t, here.q, qd))
        return here, qd, qdd


def _orientation(here: Configuration, driven: tuple[int, ...]) -> float:
    """A number that changes its sign where the motors lose the platform; the choice of coordinates drops out."""
    driven_rows = (here.frame_rows(here.robot.tree.end_effector) @ here.J)[list(driven)]
    motors = here.J_a
    if motors.shape[0] != motors.shape[1] or driven_rows.shape[0] != driven_rows.shape[1]:
        return 0.0  # more motors, or freedoms, than are driven: no sign tells
    return float(np.sign(np.linalg.det(motors)) * np.sign(np.linalg.det(driven_rows)))
