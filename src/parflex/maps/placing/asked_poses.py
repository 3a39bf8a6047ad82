"""What poses by the same coordinates ask for: what they leave open is kept, and what follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from parflex.closure.constraints import unstretched_rows
from parflex.closure.targets import FrameTarget, Target
from parflex.errors import ParflexError
from parflex.maps.batches import Geometry
from parflex.maps.placing.closing_parts import closable_parts
from parflex.maps.placing.given_coordinates import GivenCoordinates, NotGivenError
from parflex.robot.gearing import CouplingOrder, FollowingJoint, coupling_order
from parflex.robot.pose_input import read_pose
from parflex.robot.robot import Robot


class AskedPoses:
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
        found = robot.pose_finder.whole(self.read, robot.home) or self.read
        if found is not self.read and robot.pose_finder.contradicts(found):
            found = self.read  # what is named moves what it would keep
        wider = self.widened(found)
        return found if wider is None else wider

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
        if self.coupled is not None and self.coupled.left_open:
            names = ", ".join(f"'{name}'" for name in sorted(self.coupled.left_open))
            raise NotGivenError(f"elastic couplings ({names}) leave open which motor moves")

    @property
    def after(self) -> tuple[FollowingJoint, ...]:
        """Joints that follow when loops are closed."""
        return () if self.coupled is None else self.coupled.after


def why_placed_alone(robot: Robot) -> str:
    """Why poses by all coordinates of the end effector are found one by one; empty where they are not."""
    names = ["x", "y"] if robot.tree.planar else ["x", "y", "z"]
    geometry = Geometry(robot)
    try:
        given = GivenCoordinates(geometry, names)
        asked = AskedPoses(geometry, names, given.at_home.tolist())
        asked.refuse_open_couplings()
        closable_parts(geometry, given, asked.target)
    except NotGivenError as error:
        return str(error)
    except ParflexError as error:
        return error.message
    return ""
