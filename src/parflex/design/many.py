"""Responses at many poses, by name: `many_responses(...)`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from parflex.design.registry import bound_responses
from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexWarning
from parflex.forces.forces import Wrench
from parflex.maps.api import warn_of_few_elements
from parflex.maps.batch import Batch
from parflex.maps.batch_result import Progress, parameter_columns, pose_table, warn_of_unstable
from parflex.maps.continuation import OK
from parflex.maps.responses import ResponseName, check_loads
from parflex.records import Answer, count_of, name_list
from parflex.robot.beam_nodes import with_nodes_at
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.linear_model import About
from parflex.statics.load_case import LoadCase, read_load_case
from parflex.statics.loads import has_force_elements
from parflex.statics.mesh_error import warn_beyond_band
from parflex.statics.small_deformation import FIRST_ORDER_ROTATION

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class ManyResponses(Answer):
    """Responses by name (poses x ...; not a number where the pose cannot be) and the state of each pose.

    Attributes
    ----------
    responses : dict[str, Array]
        By the names that were asked for: one number at each pose, or a vector or matrix whose entries `parts` names.
    units : dict[str, str]
        Of each response.
    parts : dict[str, tuple[str, ...]]
        Names along the axes of an answer; empty where it is one number.
    status : Array
        Of each pose: 0 ok, 1 unreachable, 2 singular, 3 its design is impossible, 4 outside the limits of a joint.
    reasons : list[str]
        Of each pose why it has no answer; empty where it has.
    fallbacks : int
        Poses solved one by one where others are solved together.
    method : str
        "together" or "one by one".
    reason : str
        Why poses are not solved together, or not placed together, and how many designs are loaded alone.
    """

    responses: dict[str, Array]
    units: dict[str, str]
    parts: dict[str, tuple[str, ...]]
    status: Array
    reasons: list[str] = field(repr=False)
    fallbacks: int
    method: str
    reason: str

    def __getitem__(self, name: str) -> Array:
        return self.responses[name]

    def _told(self) -> str:
        good = int((self.status == OK).sum())
        return f"{count_of(len(self.status), 'pose')}, {good} reached: {name_list(list(self.responses))}"


def many_responses(
    robot: Robot,
    coordinates: Sequence[str],
    poses: Array,
    responses: Sequence[str],
    lock: str | Sequence[str] = "actuators",
    designs: Mapping[str, Sequence[float]] | None = None,
    about: About | None = None,
    wrench: Wrench | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    load_case: LoadCase | None = None,
    ignore_limits: bool = False,
) -> ManyResponses:
    """Stiffness, deflections, modes and condition at many poses, each with its own design if need be.

    Parameters
    ----------
    coordinates : Sequence[str]
        Coordinates by name, one for each column of `poses`.
    poses : Array
        Values of the coordinates, one row for each pose (m, rad).
    responses : Sequence[str]
        What is asked: any response that `parflex responses` lists; 'stiffness:FRAME', 'compliance:FRAME' and
        'deflection:FRAME' with .x ... .rz or .theta for one direction, else of all.
    robot, lock, designs, about, wrench, threads, progress, load_case, ignore_limits
        See `parflex.api.WORDS`.

    Returns
    -------
    ManyResponses
        `responses` by name, their `units`, and `status` and `reasons` of the poses.
    """
    coordinates, values = pose_table(robot, coordinates, poses)
    conditions = read_load_case(load_case, lock=lock, about=about, wrench=wrench)
    robot = with_nodes_at(robot, conditions.deforming_frames)
    requested = bound_responses(robot, responses)
    check_loads(conditions, requested)
    columns = parameter_columns(robot, designs, len(values))
    batch = Batch(robot, coordinates, values, requested, conditions, columns, ignore_limits)
    found = batch.all(threads, progress)
    warn_of_unstable(found.reasons, 3)
    warn_of_first_order(robot, requested, found.values, conditions, found.rests, 2)
    modes = [one for one in requested if one.kind == "frequency"]
    if modes:
        frequencies = np.stack([found.values[one.name] for one in modes], axis=1)
        warn_beyond_band(robot, frequencies)
    if modes and not columns:
        highest = max(one.mode for one in modes)
        warn_of_few_elements(robot, frequencies, batch.pose_of, conditions, highest, 2)
    return ManyResponses(
        found.values,
        {response.name: response.unit for response in requested},
        {response.name: response.parts if response.shape else () for response in requested},
        found.status,
        found.reasons,
        found.fallbacks,
        batch.method,
        batch.reason,
    )


def warn_of_first_order(
    robot: Robot,
    responses: Sequence[ResponseName],
    values: Mapping[str, Array],
    conditions: LoadCase,
    rests: Array,
    level: int,
) -> None:
    """Warn once where deflections about the undeformed pose are beyond what first order holds for.

    Rows that `rests` names are about their equilibrium already, since springs are under tension there.
    """
    bent = [response for response in responses if response.kind == "deflection"]
    if not bent or conditions.at_equilibrium or has_force_elements(robot.tree):
        return
    lengths = np.array([_size(robot)] * 3 + [1.0] * 3)  # of x y z rx ry rz
    beyond = np.zeros(values[bent[0].name].size // max(1, int(np.prod(bent[0].shape))), dtype=bool)
    for response in bent:
        deflections = np.abs(values[response.name]).reshape(len(beyond), -1)
        beyond |= (
            deflections
            > FIRST_ORDER_ROTATION * (lengths if response.direction is None else lengths[response.direction])
        ).any(axis=1)
    beyond &= ~rests
    if beyond.any():
        text = (
            f"{int(beyond.sum())} of {len(beyond)} poses deflect by more than {FIRST_ORDER_ROTATION} of the size of "
            f"the robot, or turn by more than {FIRST_ORDER_ROTATION} rad: first order does not hold there, "
            "so use about='equilibrium'"
        )
        diagnostic = Diagnostic("beyond-first-order", text, value=int(beyond.sum()))
        warnings.warn(ParflexWarning(diagnostic), stacklevel=level + 1)


def _size(robot: Robot) -> float:
    """The largest extent of the robot at home along an axis of the world."""
    at = Configuration(robot, robot.home).at
    places = [at.of(place)[1] for place in robot.tree.places.values()]
    return float(np.ptp([*places, *at.position], axis=0).max()) or robot.tree.length
