"""Control laws as pairs of programs: one finds the nominal robot from what is measured, one gives the efforts.

Both are pure: the same measurements, reference and last pose give the same efforts. A law knows the nominal robot
alone, and of the plant only what its sensors say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from parflex.codegen.laws import motor_inertias
from parflex.codegen.model import Model, model
from parflex.codegen.tracer import KEPT
from parflex.control.following import Track
from parflex.control.gains import Gains
from parflex.errors import InputError, UnreachableError, did_you_mean
from parflex.forces.spare_motors import EffortLimit, Preload, Weights, spare_motors
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot

Array = np.ndarray
LAWS = ("pd", "ctc", "ctc-task", "extended")
PROGRAMS = {"pd": "pd-law", "ctc": "classical-law", "ctc-task": "task-law", "extended": "extended-law"}
COMPENSATED = ("motor-inertia", "springs")  # joint terms of the nominal robot that a law knows; friction on request


@dataclass(frozen=True, eq=False, repr=False)
class Law(Record):
    """A law ready for the loop, for one nominal robot."""

    name: str
    robot: Robot  # nominal
    sensed: list[str]  # joints that it measures, in the order of its inputs
    geometry: Model
    program: Model
    gains: Gains
    compensate: tuple[str, ...] = ()  # joint terms of the nominal robot that it knows
    shared: Mapping[str, Any] = field(default_factory=dict)  # what is asked of spare motors

    @cached_property
    def operators(self) -> int:
        """Additions, products and quotients of one evaluation, the geometry not counted."""
        return self.program.counts["total"]

    def __call__(self, measured: Any, rates: Any, reference: Any, last: Any) -> tuple[Array, Array]:
        """Efforts and the pose found, from measured positions and rates, a row of the reference and the last pose."""
        q = self.geometry(guess=last, measured=measured)["q"]
        found = self.geometry(guess=q, measured=measured)  # twice, as in a run
        q = found["q"]
        if found["status"][0]:
            raise UnreachableError(
                f"the loops do not close at the measured positions (residual {found['residual'][0]:.3g} m)",
                key="measured", value=str(measured), hint="give a nearer last pose",
            )  # fmt: skip
        flat = np.concatenate([q, np.ravel(rates), np.ravel(reference)])
        kernel, constants = self.program.machine_code()
        return kernel.one(np.concatenate([flat, constants])), q

    def reference_rows(self, track: Track, t: Array) -> Array:
        """What the law is given of the reference, a row for each time."""
        if self.name != "ctc-task":
            columns = [track.names.index(name) for name in self.sensed]
            return np.concatenate([part[:, columns] for part in track.at(t)], axis=1)
        path = track.path(t)
        parts = (path.position, path.rotation.reshape(-1, 9), path.velocity, path.angular_velocity)
        return np.concatenate([*parts, path.acceleration, path.angular_acceleration], axis=1)


def make_law(
    robot: Robot,
    name: str,
    gains: Gains,
    *,
    compensate: Sequence[str] = COMPENSATED,
    weights: Weights | None = None,
    preload: Preload | None = None,
    effort_limit: EffortLimit | None = None,
) -> Law:
    """The law of this name for a nominal robot; limits are known to it where internal efforts can keep them."""
    if name not in LAWS:
        raise InputError(f"there is no law '{name}'", key="law", value=name, hint=did_you_mean(name, LAWS))
    if robot.tree.elastic:
        raise InputError(
            "a law needs the model of a rigid robot",
            key="robot",
            value=robot.name,
            hint="give the rigid robot; 'control' takes the flexible one as its plant",
        )
    if not robot.closures.size:
        raise InputError(
            "the control laws need a parallel robot, and this one has no loops",
            key="robot",
            value=robot.name,
            hint="choose a robot with closures",
        )
    here = Configuration(robot, robot.home)
    here.refuse_undefined_actuation()
    if name == "extended" and not robot.sensed:
        raise InputError(
            "the extended law needs sensors in passive joints, and the robot has none",
            key="law",
            value=name,
            hint="mark them in the robot file (sensed = true), or use the law ctc",
        )
    extended = name == "extended"
    geometry = model(robot, "geometry-redundant" if extended else "geometry-motors")
    words: dict[str, Any] = {"weights": weights, "preload": preload}
    words["effort_limit"] = effort_limit if spare_motors(robot) in KEPT else None
    program = model(robot, PROGRAMS[name], include=compensate, **words)
    values = {"Kp": gains.Kp, "Kv": gains.Kv}
    if name == "pd":
        inertia = dict(zip(robot.actuated_names, motor_inertias(here), strict=True))
        gained = {"stiffness": gains.Kp, "damping": gains.Kv}
        values = {f"{word}[{motor}]": gain * own for word, gain in gained.items() for motor, own in inertia.items()}
    sensed = [*robot.actuated_names, *(robot.sensed_names if extended else ())]
    shared = {word: dict(given) for word, given in (("weights", weights), ("preload", preload)) if given}
    return Law(name, robot, sensed, geometry, program.with_parameters(values), gains, tuple(compensate), shared)
