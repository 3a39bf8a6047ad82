"""The equations of a closed robot in its independent rates, and what a model of it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.forces.forces import Without, Wrench, checked_wrenches
from parflex.formulations.base import ModelRequest
from parflex.formulations.choice import choose
from parflex.records import NamedMatrix, Record, brief, count_of, name_list
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import elastic_names
from parflex.robot.load import acting_configuration
from parflex.robot.robot import Robot, accelerations_line, efforts_line

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Result(Record):
    """Outcome of a dynamic model.

    Attributes
    ----------
    robot : Robot
        The robot as it acts.
    configuration : Configuration
        Where it is.
    rates : Array
        All rates (m/s, rad/s), in the order of `robot.rates`.
    accelerations : Array
        All accelerations (m/s^2, rad/s^2), in the same order.
    efforts : dict[str, float]
        Motor efforts (N, N m) by joint, in the order of `robot.motors`.
    redundant_actuation : bool
        Whether there are more motors than freedoms.
    reactions : dict[str, Any] | None
        If requested: `joints` and `closures`, {name: {force (N), moment (N m), undetermined}}, force and moment as
        [x, y, z]; `couplings`, {name: {effort (N, N m), undetermined}}; `elements`.
    warnings : list[str]
        Warnings.
    elastic_accelerations : dict[str, float]
        Accelerations of elastic coordinates by name (SI).
    elements : dict[str, dict[str, Any]]
        Length (m), rate (m/s) and force (N, positive in tension) of elements by name.
    direct : bool
        Whether efforts were given and accelerations found.
    free : dict[str, float]
        With fewer motors than freedoms, accelerations of coordinates that move freely (m/s^2, rad/s^2).
    internal : dict[str, Any] | None
        With spare motors: their number, how the efforts were chosen, and the part of them (N, N m) that moves nothing.
    """

    robot: Robot
    configuration: Configuration
    rates: Array  # all rates
    accelerations: Array  # all accelerations
    efforts: dict[str, float]
    redundant_actuation: bool = False
    reactions: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    elastic_accelerations: dict[str, float] = field(default_factory=dict)
    elements: dict[str, dict[str, Any]] = field(default_factory=dict)  # length, rate and force of elements by name
    direct: bool = False  # efforts were given, and accelerations found
    free: dict[str, float] = field(default_factory=dict)  # accelerations of what no motor drives, by name
    internal: dict[str, Any] | None = None  # of spare motors

    def acceleration_of(self, frame: str | None = None) -> Array:
        """World acceleration (m/s^2, rad/s^2) of the frame `frame`; None is the end effector."""
        moving = motion(self.robot.tree, self.configuration.at, self.rates, self.accelerations)
        return self.configuration.frame_acceleration(frame or self.robot.tree.end_effector, moving)

    def _told(self) -> str:
        warned = f"; {count_of(len(self.warnings), 'warning')}" if self.warnings else ""
        found = self.found_accelerations()
        line = efforts_line(self.robot, self.efforts) if not found else accelerations_line(self.robot, found)
        return f"{brief(self.robot.name)}: {line}{warned}"

    def found_accelerations(self) -> dict[str, float]:
        """Of a direct model, the accelerations of the motors, or of the independent rates if they are more."""
        robot = self.robot
        independent = self.configuration.reduction.partition.independent
        most = robot.actuated if robot.tree.elastic else max(robot.actuated, independent, key=len)
        return {robot.tree.rate_names[k]: float(self.accelerations[k]) for k in most} if self.direct else {}


@dataclass(frozen=True, eq=False, repr=False)
class MassMatrix(NamedMatrix):
    """Mass matrix of a closed robot; an array to NumPy, and unpacks as (matrix, names).

    Attributes
    ----------
    matrix : Array
        Square (kg, kg m, kg m^2).
    names : list[str]
        Rates of its rows and columns.
    """

    matrix: Array  # kg, kg m or kg m^2, square
    names: list[str]  # of the rates of its rows and columns

    def __iter__(self) -> Iterator[Any]:
        return iter((self.matrix, self.names))

    def __getitem__(self, key: Any) -> Any:
        """An entry by row and column; of one number, what unpacking gives."""
        return self.matrix[key] if isinstance(key, tuple) else (self.matrix, self.names)[key]

    def _told(self) -> str:
        return f"{len(self.names)}x{len(self.names)} of {name_list(self.names)}"


def is_joint_motion(robot: Robot, *given: Mapping[str, float] | None) -> bool:
    """Whether a motion is given by joints alone; deformations of bodies do not define frames either."""
    words = [word for table in given if table for word in table]
    names = {link.name for link in robot.tree.links} | elastic_names(robot.tree)
    return bool(words) and all(word in names or word.removeprefix("q") in names for word in words)


def reduced_equations(
    configuration: Configuration, qd: Array, wrenches: Wrench | None = None, without: Without = ()
) -> tuple[Array, Array, Array]:
    """M, c of M qdd + c = J_a^T tau, theory (17), in the independent rates, and the bias b of all accelerations."""
    state = state_at(acting_configuration(configuration.robot, configuration, without), qd, wrenches)
    return state.mass_matrix, state.c, state.bias


def state_at(configuration: Configuration, qd: Array, wrenches: Wrench | None = None) -> Any:
    """A state of the general form at a pose: the equations of the programs, with numbers.

    Dependent rates are those that suit this pose, so that every regular pose is answered.
    """
    robot = configuration.robot
    form: Any = choose(robot, ModelRequest("numbers", at=configuration))
    return form.here(qd, checked_wrenches(robot.tree, wrenches))
