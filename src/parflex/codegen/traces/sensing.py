"""Traces of what a controller with sensors in passive joints calls: model, control laws, geometry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.models.redundant import RedundantForm, extended_effort, redundant_effort, redundant_form
from parflex.models.robot import Robot
from parflex.models.sensor_geometry import geometry_step, with_measured

Array = np.ndarray
GAINS = {"Kp": 1517.15, "Kv": 46.05}  # 10 % overshoot and a peak after 0.1 s, [Zubizarreta2010, section 4.8]
STEPS = 3  # of the geometry, from the pose of the last sample


def redundant(tracer: Any, robot: Robot, options: Any) -> Any:
    """All positions, rates and accelerations of [q_a, q_s] in, efforts out."""
    form = redundant_form(robot)
    q, qd, labels = _state(tracer, form)
    qdd = tracer.group("qdd", len(form.control))
    labels["qdd"] = form.names
    return {"effort": redundant_effort(form, q, qd, qdd, options.without)}, labels


def law(tracer: Any, robot: Robot, options: Any) -> Any:
    """Measured and reference joint values in, efforts out; the gains are parameters."""
    form = redundant_form(robot)
    q, qd, labels = _state(tracer, form)
    effort, more = _controlled(tracer, form, q, qd, options)
    return {"effort": effort}, labels | more


def step(tracer: Any, robot: Robot, options: Any) -> Any:
    """A whole controller: what sensors give, the reference and the last pose in; efforts and the pose out."""
    form = redundant_form(robot)
    names = list(robot.tree.position_names)
    last = tracer.group("last", len(names))
    measured, rates = (tracer.group(name, len(form.control)) for name in ("measured", "measured_rate"))
    q = _found(form, last, measured)
    effort, labels = _controlled(tracer, form, q, rates, options)
    labels |= {"last": names, "q": names, "measured": form.names, "measured_rate": form.names}
    return {"effort": effort, "q": q}, labels


def geometry(tracer: Any, robot: Robot) -> Any:
    """A guess of all positions and measured values of [q_a, q_s] in, all positions out."""
    form = redundant_form(robot)
    names = list(robot.tree.position_names)
    q = _found(form, tracer.group("guess", len(names)), tracer.group("measured", len(form.control)))
    return {"q": q}, {"guess": names, "q": names, "measured": form.names}


def _found(form: RedundantForm, guess: Array, measured: Array) -> Array:
    q = with_measured(form, guess, measured)
    for _ in range(STEPS):
        q = form.robot.tree.moved(q, geometry_step(form, q)[0])
    return q


def _controlled(
    tracer: Any, form: RedundantForm, q: Array, qd: Array, options: Any
) -> tuple[Array, dict[str, list[str]]]:
    """Efforts of the law for a reference that is symbols too, and the names of what goes in and out."""
    groups = ("reference", "reference_rate", "reference_acceleration")
    reference, rate, acceleration = (tracer.group(name, len(form.control)) for name in groups)
    Kp, Kv = (tracer.parameter(name, value) for name, value in GAINS.items())
    effort = extended_effort(form, q, qd, reference, rate, acceleration, Kp, Kv, options.without)
    return effort, dict.fromkeys(groups, form.names) | {"effort": _motors(form)}


def refuse_direct() -> None:
    """D has more columns than rows: efforts do not say accelerations."""
    raise InputError(
        "the redundant model cannot be inverted: efforts do not say the accelerations of more joints than motors",
        key="MODEL",
        value="redundant-direct",
        hint="use 'direct', the model in independent coordinates",
    )


def _state(tracer: Any, form: RedundantForm) -> tuple[Array, Array, dict[str, list[str]]]:
    names = list(form.robot.tree.position_names)
    q, qd = tracer.group("q", len(names)), tracer.group("qd", len(form.control))
    return q, qd, {"q": names, "qd": form.names, "effort": _motors(form)}


def _motors(form: RedundantForm) -> list[str]:
    return form.names[: len(form.control) - len(form.robot.sensed)]


MODELS: dict[str, Callable[[Any, Robot, Robot, Any], Any]] = {
    "redundant": lambda tracer, robot, grouped, options: redundant(tracer, grouped, options),
    "extended-law": lambda tracer, robot, grouped, options: law(tracer, grouped, options),
    "classical-law": lambda tracer, robot, grouped, options: law(tracer, grouped.sensing([]), options),
    "extended-step": lambda tracer, robot, grouped, options: step(tracer, grouped, options),
    "classical-step": lambda tracer, robot, grouped, options: step(tracer, grouped.sensing([]), options),
    "geometry-redundant": lambda tracer, robot, grouped, options: geometry(tracer, robot),
    "geometry-motors": lambda tracer, robot, grouped, options: geometry(tracer, robot.sensing([])),
}
