"""Joint motions for a reference of the end effector of the nominal robot, computed once before any run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from parflex.cache import cached
from parflex.errors import SingularError
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.limits import POSITION, check_limits, refuse_violations
from parflex.robot.robot import Robot
from parflex.trajectories.follow import Followed, Moving, RobotPath, follow_path, moving_frame
from parflex.trajectories.frames import FrameMotion, FrameTrajectory
from parflex.trajectories.trajectory import Trajectory, joined

Array = np.ndarray
TIMES = 2  # sets of times in memory: each may have a million
KNOT_STEP = 1e-2  # s between knots; quintics between them err by 1e-9 rad on a circle of 0.1 m in two seconds


@dataclass(frozen=True, eq=False, repr=False)
class Track(Record):
    """Joint values along a reference, with their rates, and all positions and rates of the robot at knots."""

    reference: FrameTrajectory
    names: list[str]
    pieces: Trajectory
    knots: Array = field(repr=False, compare=False)  # s
    q: Array = field(repr=False, compare=False)
    qd: Array = field(repr=False, compare=False)

    @property
    def start(self) -> Array:
        """All positions where the reference begins."""
        return self.q[0]

    @property
    def start_rates(self) -> Array:
        """All rates where the reference begins."""
        return self.qd[0]

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Return positions, rates and accelerations of the joints at times, a row for each."""
        return self._sampled(t)[0]

    def path(self, t: Array) -> FrameMotion:
        """Return poses and motions of the end effector at times."""
        return self._sampled(t)[1]

    def refuse_violations(self, robot: Robot, end: float, stopped: Collection[str] = ()) -> None:
        """Raise if the reference exceeds a limit of the robot until a time.

        Motors and sensed joints are checked at any instant, the others at the knots; not the ranges of joints that are
        `stopped` by stops.
        """
        rows, tree = self.knots <= end, robot.tree
        positions = dict(zip(tree.position_names, self.q[rows].T, strict=True))
        velocities = dict(zip(tree.rate_names, self.qd[rows].T, strict=True))
        found = check_limits(robot, positions, velocities, times=self.knots[rows])
        found += self.pieces.violations(robot, end)
        violations = {(violation.joint, violation.key): violation for violation in found}
        refuse_violations(
            violation for (joint, key), violation in violations.items() if key != POSITION or joint not in stopped
        )

    def _sampled(self, t: Array) -> tuple[tuple[Array, Array, Array], FrameMotion]:
        """Return both; all runs of a study have the same times."""
        times = np.clip(np.asarray(t, dtype=float), 0.0, self.reference.end)

        def build() -> tuple[tuple[Array, Array, Array], FrameMotion]:
            return self.pieces.at(times), self.reference.at(times)

        return cached("references at times", (times.shape, times.tobytes()), build, owners=(self,), limit=TIMES)


def track(robot: Robot, reference: FrameTrajectory, names: list[str]) -> Track:
    """Return joints of these names along a reference; an impossible pose, or a singularity on the way, is refused."""
    rigid, side = robot.locking(robot.tree.elastic), 0.0
    rates = [rigid.tree.links[rigid.tree.number(name)].v.start for name in names]
    placed = moving_frame(rigid, reference.frame, reference.driven, reference.at)

    def moving(t: float, near: Array) -> Moving:
        nonlocal side
        here, qd, qdd = placed(t, near)
        now = _orientation(here, reference.driven)
        if side * now < 0:
            raise SingularError(
                "it crosses a singularity of the platform",
                key="reference",
                value=reference.name,
                hint="choose another working mode or another path",
            )
        side = now or side
        return here, qd, qdd

    q, parts = rigid.home, list[Followed]()
    for begin, end in pairwise(map(float, reference.breaks)):
        path = RobotPath(begin, end, moving, _left, "reference", strict=False)
        parts.append(follow_path(rigid, path, q, max(8, int(np.ceil((end - begin) / KNOT_STEP))), rates))
        q = parts[-1].q[-1]
    knots, positions, velocities = (np.concatenate([getattr(part, word) for part in parts])
                                    for word in ("knots", "q", "qd"))  # fmt: skip
    return Track(
        reference,
        names,
        replace(joined([part.pieces for part in parts]), names=tuple(names)),
        knots,
        positions,
        velocities,
    )


def _left(t: float) -> str:
    return f"the reference cannot be tracked at t = {t:.4g} s"


def _orientation(here: Configuration, driven: Collection[int]) -> float:
    """Return a number that changes its sign where the motors lose the platform, whatever the choice of coordinates."""
    driven_rows = (here.frame_rows(here.robot.tree.end_effector) @ here.J)[list(driven)]
    motors = here.J_a
    if motors.shape[0] != motors.shape[1] or driven_rows.shape[0] != driven_rows.shape[1]:
        return 0.0  # more motors, or freedoms, than are driven: no sign tells
    return float(np.sign(np.linalg.det(motors)) * np.sign(np.linalg.det(driven_rows)))
