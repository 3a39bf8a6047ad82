"""Controllers: pure functions of what is sensed, called at a fixed sample time, with their efforts held in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from parflex.models.motor_values import read_efforts
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.simulation.inputs.motor_motions import MotorMotion
from parflex.simulation.inputs.polynomials import Polynomials

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Sensed(Record):
    """What a controller sees, in the order of the motors: positions and rates, and those of the reference motion.

    `coordinates` and `coordinate_rates` are those of the whole tree (`robot.tree.position_names`), for a controller
    that measures more than its motors, like the pose of the platform; one that needs less ignores them.

    Attributes
    ----------
    time : float
        s.
    position : Array
        Motor positions (m, rad).
    velocity : Array
        Motor rates (m/s, rad/s).
    reference_position : Array
        m, rad.
    reference_velocity : Array
        m/s, rad/s.
    reference_acceleration : Array
        m/s^2, rad/s^2.
    coordinates : Array
        All positions (m, rad).
    coordinate_rates : Array
        Their time derivatives (m/s, rad/s).
    """

    time: float
    position: Array
    velocity: Array
    reference_position: Array
    reference_velocity: Array
    reference_acceleration: Array
    coordinates: Array = field(default_factory=lambda: np.zeros(0))
    coordinate_rates: Array = field(default_factory=lambda: np.zeros(0))


@runtime_checkable
class Controller(Protocol):
    """`controller(sensed, memory) -> (efforts, memory)`; the first memory is None."""

    sample_time: float

    def __call__(self, sensed: Sensed, memory: Any) -> tuple[Any, Any]:
        """Efforts of the motors, and the state to remember."""


@dataclass(frozen=True)
class PD:
    """Effort = stiffness (reference - position) + damping (its rate - rate), and a constant `feedforward`.

    Attributes
    ----------
    stiffness : Any
        On position errors (N/m, N m/rad); a number, or one for each motor.
    damping : Any
        On rate errors (N s/m, N m s/rad).
    sample_time : float
        Sample time (s).
    feedforward : Any
        Constant effort (N, N m).
    limit : float
        Largest effort (N, N m).
    """

    stiffness: Any  # a number, or one for each motor
    damping: Any
    sample_time: float = 1e-3
    feedforward: Any = 0.0
    limit: float = field(default=np.inf)

    def __call__(self, sensed: Sensed, memory: Any) -> tuple[Array, Any]:
        """Efforts now; nothing is remembered."""
        effort = np.asarray(self.stiffness) * (sensed.reference_position - sensed.position)
        effort = effort + np.asarray(self.damping) * (sensed.reference_velocity - sensed.velocity) + self.feedforward
        return np.clip(effort, -self.limit, self.limit), memory


def controlled(
    robot: Robot, controller: Controller, motion: MotorMotion | None, start: Array, given: Polynomials
) -> Callable[[int, Array, Array], None]:
    """What the loop calls before each sample: it writes efforts into the given inputs."""
    tree, motors = robot.tree, list(robot.actuated)
    positions = [tree.links[tree.link_of_rate[k]].q.start for k in motors]
    changes = [tree.nq + p for p in positions]
    rest = (start[positions], np.zeros(len(motors)), np.zeros(len(motors)))
    memory: list[Any] = [None]

    def control(row: int, x: Array, y: Array) -> None:
        t = row * controller.sample_time
        desired = rest if motion is None else motion.at(t)
        all_of_them = {"coordinates": y[: tree.nq].copy(), "coordinate_rates": y[tree.nq : 2 * tree.nq].copy()}
        sensed = Sensed(t, y[positions].copy(), y[changes].copy(), *desired, **all_of_them)
        efforts, memory[0] = controller(sensed, memory[0])
        given.coefficients[:, 0, : len(motors)] = read_efforts(robot, efforts, "controller")

    return control
