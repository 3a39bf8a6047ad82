"""Control laws and gains.

A law is a pair of pure programs: one computes the nominal robot from the measured values, the other the efforts. A law
depends on the nominal robot and the sensors of the plant alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex import checks
from parflex.codegen.laws import motor_inertias
from parflex.codegen.model import Model, model
from parflex.errors import InputError, UnreachableError, did_you_mean
from parflex.forces.effort_allocation import Preload, Weights
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.trajectories.follow import Track

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

    def __call__(self, measured: Any, rates: Any, reference: Any, last: Any) -> tuple[Array, Array]:
        """Return efforts and the pose, from measured positions and rates, a row of the reference and the last pose."""
        q = self.geometry(guess=last, measured=measured)["q"]
        geometry_outputs = self.geometry(guess=q, measured=measured)  # twice, as in a run
        q = geometry_outputs["q"]
        if geometry_outputs["status"][0]:
            raise UnreachableError(
                f"the loops do not close at the measured positions (residual {geometry_outputs['residual'][0]:.3g} m)",
                key="measured", value=str(measured), hint="give a nearer last pose",
            )  # fmt: skip
        flat = np.concatenate([q, np.ravel(rates), np.ravel(reference)])
        kernel, constants = self.program.machine_code()
        return kernel.one(np.concatenate([flat, constants])), q

    def reference_rows(self, track: Track, t: Array) -> Array:
        """Return the inputs of the law from the reference, a row for each time."""
        if self.name != "ctc-task":
            columns = [track.joints.names.index(name) for name in self.sensed]
            return np.concatenate([part[:, columns] for part in track.at(t)], axis=1)
        path = track.path(t)
        assert path.rotation is not None
        return np.concatenate([path.position, path.rotation.reshape(-1, 9), path.twist, path.acceleration], axis=1)


def make_law(
    robot: Robot,
    name: str,
    gains: Gains,
    *,
    compensate: Sequence[str] = COMPENSATED,
    weights: Weights | None = None,
    preload: Preload | None = None,
) -> Law:
    """Return the law of a name for a nominal robot."""
    if name not in LAWS:
        raise InputError(f"there is no law '{name}'", key="law", value=name, hint=did_you_mean(name, LAWS))
    if robot.tree.elastic:
        hint = "give the rigid robot; 'control' takes the flexible one as its plant"
        raise InputError("a law needs the model of a rigid robot", key="robot", value=robot.name, hint=hint)
    if not robot.closures.size:
        text = "the control laws need a parallel robot, and this one has no loops"
        raise InputError(text, key="robot", value=robot.name, hint="choose a robot with closures")
    here = Configuration(robot, robot.home)
    here.refuse_undefined_actuation()
    if name == "extended" and not robot.sensed:
        text = "the extended law needs sensors in passive joints, and the robot has none"
        hint = "mark them in the robot file (sensed = true), or use the law ctc"
        raise InputError(text, key="law", value=name, hint=hint)
    extended = name == "extended"
    geometry = model(robot, "geometry-redundant" if extended else "geometry-motors")
    program = model(robot, PROGRAMS[name], include=compensate, weights=weights, preload=preload)
    values = {"Kp": gains.Kp, "Kv": gains.Kv}
    if name == "pd":
        inertias = list(zip(robot.actuated_names, motor_inertias(here), strict=True))
        gained = (("stiffness", gains.Kp), ("damping", gains.Kv))
        values = {f"{word}[{motor}]": gain * inertia for word, gain in gained for motor, inertia in inertias}
    sensed = [*robot.actuated_names, *(robot.sensed_names if extended else ())]
    shared = {word: dict(table) for word, table in (("weights", weights), ("preload", preload)) if table}
    return Law(name, robot, sensed, geometry, program.with_parameters(values), gains, tuple(compensate), shared)


@dataclass(frozen=True)
class Gains:
    """`Kp` (1/s^2) on errors and `Kv` (1/s) on their rates.

    Attributes
    ----------
    Kp : float
        On errors (1/s^2).
    Kv : float
        On error rates (1/s).
    """

    Kp: float
    Kv: float


def gains_from(overshoot: float = 0.1, peak_time: float = 0.1) -> Gains:
    """Return gains for which a step of the error has this overshoot and peak time.

    e_ddot + Kv e_dot + Kp e = 0 with damping ratio z and frequency w: the overshoot is exp(-pi z / sqrt(1 - z^2)), the
    peak comes after pi / (w sqrt(1 - z^2)); Kp = w^2, Kv = 2 z w.

    Parameters
    ----------
    overshoot, peak_time
        See `parflex.api.WORDS`.

    Returns
    -------
    Gains
        `Kp` in 1/s^2, `Kv` in 1/s.
    """
    if not checks.number(overshoot, "overshoot", above=0.0) < 1:
        raise InputError(
            "an overshoot must lie between 0 and 1", key="overshoot", value=overshoot, hint="10 % is written 0.1"
        )
    checks.number(peak_time, "peak_time", above=0.0)
    slope = -math.log(overshoot) / math.pi  # z / sqrt(1 - z^2)
    damped = math.pi / peak_time
    return Gains(damped**2 * (1 + slope**2), 2 * slope * damped)


def read_gains(overshoot: float, peak_time: float, Kp: float | None, Kv: float | None) -> Gains:
    """Return the gains as they are given, or those of an overshoot and a peak time."""
    if Kp is None and Kv is None:
        return gains_from(overshoot, peak_time)
    if Kp is None or Kv is None:
        raise InputError("Kp and Kv must be given together", key="Kv" if Kv is None else "Kp", hint="give both")
    return Gains(checks.number(Kp, "Kp", least=0.0, example=1000), checks.number(Kv, "Kv", least=0.0, example=50))
