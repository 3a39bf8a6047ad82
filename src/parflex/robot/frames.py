"""Compute frames, Jacobians, all assemblies of the legs, and counts of coordinates for users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from parflex.closure.targets import Target
from parflex.records import NamedMatrix, Unpacked, name_list
from parflex.robot.batches import answer_rows, is_batch
from parflex.robot.configuration import Pose, configure
from parflex.robot.home import mobility_with
from parflex.robot.robot import Robot

Array = np.ndarray
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class FramePose(Unpacked):
    """A frame in world axes: origin (m) and 3 x 3 rotation; unpacks as (`position`, `rotation`)."""

    _unpacked: ClassVar = ("position", "rotation")
    position: Array  # m, of its origin
    rotation: Array  # 3 x 3, from its axes to those of the world


@dataclass(frozen=True, eq=False, repr=False)
class Jacobian(NamedMatrix):
    """World twist of a `frame` per rate of each motor; an array to NumPy.

    Rows of `matrix` are the `directions` vx vy vz wx wy wz, columns the `motors`.
    """

    matrix: Array  # 6 x motors (m/s and rad/s per rad/s or m/s); of a batch with a leading axis
    frame: str
    directions: tuple[str, ...]  # of its rows: vx vy vz wx wy wz
    motors: list[str]  # of its columns

    def _told(self) -> str:
        return f"of '{self.frame}' per rate of {name_list(self.motors)}"


def frames(robot: Robot, pose: Pose | None = None) -> dict[str, FramePose]:
    """Compute world position and rotation matrix of every frame and point, and of requested places such as `arm@0.5`.

    Parameters
    ----------
    robot
        See `parflex.api.WORDS`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or an array of all positions; with a leading
        axis a batch; None is home (m, rad).

    Returns
    -------
    dict[str, FramePose]
        `position` (m) and `rotation` (3 x 3, frame axes to world axes) by frame; unpacks as (position, rotation). Of a
        batch with a leading axis.
    """
    place = partial(_poses, robot, pose if is_batch(pose) else configure(robot, pose))
    names = list(robot.tree.places)
    return _Frames(zip(names, place(*names), strict=True), place)


def _poses(robot: Robot, pose: Any, *names: str) -> Iterator[FramePose]:
    """Return the poses of these frames, in every row of a batch."""

    def ask(_: int, row: Any) -> list[Array]:
        here = configure(robot, row)
        return [part for name in names for part in here.at.of(robot.tree.place(name))[::-1]]

    parts = iter(answer_rows(pose, ask, *((3,), (3, 3)) * len(names)))
    return (FramePose(position, rotation) for position, rotation in zip(parts, parts, strict=True))


class _Frames(dict[str, FramePose]):
    """All frames by name; places inside bodies are computed on request."""

    def __init__(self, places: Any, place: Callable[..., Iterator[FramePose]]) -> None:
        super().__init__(places)
        self._place = place

    def __missing__(self, name: str) -> FramePose:
        return next(self._place(name))


def jacobian(robot: Robot, pose: Pose | None = None, frame: str | None = None) -> Jacobian:
    """Compute the world twist of a frame per motor rate; of the end effector J_p, [Khalil2007, eq. (8)].

    Parameters
    ----------
    robot, frame
        See `parflex.api.WORDS`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or an array of all positions; with a leading
        axis a batch; None is home (m, rad).

    Returns
    -------
    Jacobian
        `matrix` (6 x motors; m/s and rad/s per unit of motor rate), `directions` of its rows, `motors` of its columns.
        Of a batch with a leading axis.
    """
    name = frame or robot.tree.end_effector

    def per_rate(_: int, pose: Any) -> list[Array]:
        configuration = configure(robot, pose)
        configuration.refuse_undefined_actuation()
        return [configuration.frame_rows(name) @ configuration.J @ np.linalg.pinv(configuration.J_a)]

    robot.tree.place(name)  # which refuses unknown frames
    (matrix,) = answer_rows(pose, per_rate, (6, robot.nu))
    return Jacobian(matrix, name, TWIST, list(robot.actuated_names))


def geometric_solutions(robot: Robot, pose: Pose | None = None) -> dict[str, list[dict[str, float]]]:
    """Compute all inverse geometric solutions of each leg at the pose of the platform.

    Searches of legs with at most three joints start from configurations spread over all joint angles. They find
    every solution of the closed forms: two for a leg of two bars, four for a U-P-S leg, half of them with negative
    stroke.

    Parameters
    ----------
    robot, pose
        See `parflex.api.WORDS`.

    Returns
    -------
    dict[str, list[dict[str, float]]]
        By leg a list of solutions, each joint values by name (m, rad).
    """
    configuration = configure(robot, pose)
    tree = robot.tree
    platform_rates = frozenset(
        k for link in tree.links if link.joint.moves_freely for k in range(link.v.start, link.v.stop)
    )
    result: dict[str, list[dict[str, float]]] = {}
    for part in robot.assembler.parts(Target(fixed=platform_rates), robot.locked) if platform_rates else []:
        if not 0 < len(part.columns) <= 3:
            continue
        indices = [tree.links[tree.link_of_rate[k]].q.start for k in part.columns]
        solutions = robot.assembler.solutions(configuration.q, part)
        result[part.name] = [{tree.position_names[i]: float(q[i]) for i in indices} for q in solutions]
    return result


def counts(robot: Robot) -> dict[str, Any]:
    """Return numbers of bodies, joints, coordinates and closure rows, with motors free and with motors locked."""
    tree = robot.tree
    jointed = [frame for frame in robot.description.frame if frame.joint not in ("fixed", "free")]
    moving = set(robot.actuated)
    driven = {tree.links[tree.link_of_rate[k]].name for k in moving}
    active = [frame.name for frame in jointed if driven & {frame.name, f"{frame.name}.1", f"{frame.name}.2"}]
    struts = [element.name for element in robot.description.element if element.measured]
    active += [name for name in struts if name in robot.actuated_names]
    joints = [*(frame.name for frame in jointed), *struts]
    rank = robot.mobility.rank
    free = len(robot.free)
    names = robot.closures.row_names
    locked_rates = robot.locked | moving
    locked = mobility_with(robot, locked_rates)
    remaining = tree.n - len(locked_rates)
    return {
        "bodies": sum(1 for link in tree.links if link.heavy),
        "joints": len(joints),
        "active": len(active),
        "passive": len(joints) - len(active),
        "elastic": len(tree.elastic),
        "total_coordinates": free,
        "closure_rows": robot.closures.size,
        "redundant_closures": len(robot.mobility.redundant),
        "independent_coordinates": free - rank,
        "degrees_of_freedom": robot.undeformed.freedoms,
        "locked": {
            "total_coordinates": remaining,
            "redundant_closures": len(locked.redundant),
            "independent_coordinates": remaining - locked.rank,
        },
        "names": {
            "actuated": robot.actuated_names,
            "sensed": robot.sensed_names,
            "joints": joints,
            "coordinates": list(tree.position_names),
            "rates": list(tree.rate_names),
            "independent": robot.independent,
            "frames": list(tree.places),
            "closures": [loop.name for loop in robot.closures.loops],
            "couplings": [coupling.name for coupling in robot.description.coupling],
            "elements": [element.name for element in robot.description.element],
            "redundant_closures": [names[k] for k in robot.mobility.redundant],
            "end_effector": tree.end_effector,
            "poses": sorted({"home", *robot.description.poses}),
            "working_modes": sorted({"default", *robot.description.working_modes}),
            "actuations": sorted({"default", *robot.description.actuation}),
        },
    }
