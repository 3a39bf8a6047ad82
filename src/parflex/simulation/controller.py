"""Controllers: pure functions of sensed values, called at a fixed sample time; their efforts are held in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from parflex.checks import number, short_text
from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.motor_values import by_motor, read_efforts
from parflex.robot.robot import Robot
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
LEAST = {0.0: "that is not negative", -np.inf: "that is finite"}
# of PD: the least value, and that of motors that are not named
GAINS = {"stiffness": (0.0, 0.0), "damping": (0.0, 0.0), "feedforward": (-np.inf, 0.0), "limit": (0.0, np.inf)}


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
        """Return efforts of the motors, and the state to remember."""


@dataclass(frozen=True, eq=False, repr=False)
class PD(Record):
    """Effort = stiffness (reference - position) + damping (its rate - rate), and a constant `feedforward`.

    Each is a number for all motors, one for each in their order, or a table by motor (0 for those not named).

    Attributes
    ----------
    stiffness : Any
        On position errors (N/m, N m/rad).
    damping : Any
        On rate errors (N s/m, N m s/rad).
    sample_time : float
        Sample time (s).
    feedforward : Any
        Constant effort (N, N m).
    limit : Any
        Largest effort; motors not named have none (N, N m).
    """

    stiffness: Any
    damping: Any
    sample_time: float = 1e-3
    feedforward: Any = 0.0
    limit: Any = field(default=np.inf)

    def __post_init__(self) -> None:
        """Raise if a gain is not a number, a list or a table of numbers."""
        number(self.sample_time, "sample_time", above=0.0, example=1e-3)
        for key, (least, _) in GAINS.items():
            gain = getattr(self, key)
            values = list(gain.values()) if isinstance(gain, Mapping) else gain
            try:
                row = np.asarray(values, dtype=float)
            except (TypeError, ValueError):
                row = np.array(np.nan)
            if row.ndim > 1 or np.isnan(row).any() or (row < least).any() or (key != "limit" and np.isinf(row).any()):
                text = f"the {key} of a PD controller is not a number, or one for each motor, {LEAST[least]}"
                hint = "give e.g. 10.0, [10.0, 20.0] or {'motor': 10.0}"
                raise InputError(text, key=key, value=short_text(gain), hint=hint)

    def of(self, motors: Sequence[str]) -> PD:
        """Return the same controller with arrays in the order of `motors`."""
        return replace(self, **{key: self._row(key, motors) for key in GAINS})  # type: ignore[arg-type]

    def _row(self, key: str, motors: Sequence[str]) -> Array:
        gain, (_, without) = getattr(self, key), GAINS[key]
        if isinstance(gain, Mapping):
            row = np.full(len(motors), without)
            for motor, value in by_motor(motors, gain, key, key).items():
                row[motor] = value
            return row
        values = np.asarray(gain, dtype=float)
        if values.shape not in ((), (1,), (len(motors),)):
            text = f"the {key} of a PD controller has {values.size} numbers for {len(motors)} motors"
            hint = f"give one number, or one for each of {', '.join(motors)}"
            raise InputError(text, key=key, value=short_text(gain), hint=hint)
        return np.broadcast_to(values, (len(motors),)).copy()

    def __call__(self, sensed: Sensed, memory: Any) -> tuple[Array, Any]:
        """Return the efforts; the memory is not used."""
        effort = np.asarray(self.stiffness) * (sensed.reference_position - sensed.position)
        effort = effort + np.asarray(self.damping) * (sensed.reference_velocity - sensed.velocity) + self.feedforward
        return np.clip(effort, -np.asarray(self.limit), self.limit), memory


def controlled(
    robot: Robot, controller: Controller, motion: Trajectory | None, start: Array, inputs: Trajectory
) -> Callable[[int, Array, Array], None]:
    """Return the function that the loop calls before each sample; it writes efforts into the inputs."""
    tree, motors = robot.tree, list(robot.actuated)
    positions = [tree.links[tree.link_of_rate[k]].q.start for k in motors]
    changes = [tree.nq + p for p in positions]
    rest = (start[positions], np.zeros(len(motors)), np.zeros(len(motors)))
    memory: Any = None
    last = -1
    law: Any = controller.of(robot.actuated_names) if isinstance(controller, PD) else controller

    def control(row: int, x: Array, y: Array) -> None:
        nonlocal last, memory
        if row <= last:  # computed again: the controller has its memory
            return
        last, t = row, row * controller.sample_time
        desired = rest if motion is None else motion.at(t)
        all_of_them = {"coordinates": y[: tree.nq].copy(), "coordinate_rates": y[tree.nq : 2 * tree.nq].copy()}
        sensed = Sensed(t, y[positions].copy(), y[changes].copy(), *desired, **all_of_them)
        efforts, memory = law(sensed, memory)
        inputs.coefficients[:, 0, : len(motors)] = read_efforts(robot, efforts, "controller")

    return control
