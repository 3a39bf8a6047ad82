"""Home: the reference pose of a robot, and warnings about it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.targets import Target
from parflex.diagnostics import Diagnostic
from parflex.errors import RobotFileError, SingularError, UnreachableError
from parflex.recursion.energy import distance
from parflex.recursion.kinematics import pose
from parflex.robot.pose_input import read_pose
from parflex.robot.states import coupling_warnings

if TYPE_CHECKING:
    from parflex.robot.robot import Robot

Array = np.ndarray
FAR = 0.6  # rad or typical lengths from its stated start at which a motor of the assembled robot is reported


class HomePose:
    """Home of a robot."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    def found(self) -> Array:
        """Positions at home, whichever motors were chosen; a coupling in the way is named."""
        try:
            return HomePose(self.of_default_motors).assembled()
        except (UnreachableError, SingularError):
            contradiction = self._contradiction()
            if contradiction is None:
                raise
            raise contradiction from None

    @property
    def of_default_motors(self) -> Robot:
        """The same robot with the motors that its frames name: home does not depend on the chosen actuation."""
        from parflex.robot.load import default_motors  # which stands on robots

        motors = default_motors(self.robot.description, self.robot.tree)
        return self.robot if not motors or motors == self.robot.actuated else replace(self.robot, actuated=motors)

    def _contradiction(self) -> RobotFileError | None:
        """What is said where the robot would stand without one of its couplings, and does not with it."""
        constraints = self.robot.closures.constraints
        for count in range(len(constraints) + 1):
            reduced = replace(self.robot, closures=replace(self.robot.closures, constraints=constraints[:count]))
            try:
                HomePose(reduced).assembled()
            except (UnreachableError, SingularError):
                if not count:
                    return None
                culprit = constraints[count - 1]
                parts = reduced.assembler.parts(Target(), frozenset())
                coupled_rows = next(part.rows for part in parts if culprit in part.rows)
                names = ", ".join(f"'{row.name}'" for row in coupled_rows if row is not culprit) or "the pose home"
                return RobotFileError(
                    f"the {culprit.kind} '{culprit.name}' contradicts {names}: no pose near home meets both",
                    file=self.robot.file,
                    key=f"{culprit.kind if culprit.kind == 'coupling' else 'element'} '{culprit.name}'",
                    value=culprit.name,
                    hint="correct its offset, ratio or length, give consistent starts, or remove it",
                )
        return None

    def assembled(self) -> Array:
        """Positions at home with the motors of this robot."""
        robot, locked = self.robot, self.robot.locked
        coordinates = robot.description.poses.get("home", {})
        target = read_pose(robot.tree, coordinates, "poses.home", robot.file, robot.start) if coordinates else Target()
        try:
            q = robot.pose_finder.assemble(target, robot.start, None, locked)
        except UnreachableError:
            if not locked:
                raise
            locked = frozenset()  # locked joints stand as this pose needs them
            q = robot.pose_finder.assemble(target, robot.start, None, locked)
        stated = frozenset(self.stated_starts) - set(target.values)
        q = robot.assembler.nearer(q, target, robot.start, stated, locked | set(robot.deformations))
        return robot.tree.within_limits(q, set(target.values))

    @cached_property
    def stated_starts(self) -> tuple[int, ...]:
        """Positions of motors of which the file says where they start."""
        frame_names = self.robot.frames_with_start
        links = [self.robot.tree.links[self.robot.tree.link_of_rate[k]] for k in self.robot.actuated]
        return tuple(
            link.q.start for link in links if link.joint.one_axis and {link.name, link.name[:-2]} & frame_names
        )

    def start_warnings(self) -> list[Diagnostic]:
        """Diagnostics of motors that the loops leave far from where they are said to start, and on couplings."""
        stated_links = [
            link for link in self.robot.tree.links if {link.name, link.name[:-2]} & self.robot.frames_with_start
        ]
        warnings = coupling_warnings(self.robot.closures.constraints, self.robot.tree, stated_links)
        coordinates = self.robot.description.poses.get("home", {})
        flipped = self.robot.assembler.legs_of_other_sign(self.robot.start)
        links = {link.q.start: link for link in self.robot.tree.links if link.q.stop > link.q.start}
        for index in self.stated_starts:
            link = links[index]
            away = float(self.robot.home[index] - self.robot.start[index])
            away = float(np.arctan2(np.sin(away), np.cos(away))) if link.periodic else away
            if (
                link.name not in coordinates
                and link.leg not in flipped
                and abs(away) > FAR * float(self.robot.tree.rate_units[link.v.start])
            ):
                text = (
                    f"joint '{link.name}' is assembled at {self.robot.home[index]:.4g}, far from its start "
                    f"{self.robot.start[index]:.4g}: check its start, or the starts of the joints that it carries"
                )
                warnings.append(Diagnostic("far-start", text, link.name, away))
        return warnings

    def slack_cables(self) -> list[Diagnostic]:
        """A diagnostic for each cable that is longer than its path at home."""
        if not any(element.pulls_only for element in self.robot.tree.elements):
            return []
        at, messages = pose(self.robot.tree, self.robot.home), []
        for element in self.robot.tree.elements:
            path = float(distance(at, (element.first, element.second)))
            if element.pulls_only and element.rest > path:
                text = (
                    f"the cable '{element.name}' of {element.rest:.4g} m is longer than its path of {path:.4g} m at "
                    "home: it is slack there"
                )
                messages.append(Diagnostic("slack-cable", text, element.name, float(element.rest) - path))
        return messages
