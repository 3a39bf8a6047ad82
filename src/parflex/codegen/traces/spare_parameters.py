"""Weights, preloads and limits of spare motors as parameters of a program, which a controller can change."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.codegen.model_options import Options
from parflex.codegen.traces.tracing import Tracer
from parflex.errors import InputError, ParflexWarning
from parflex.forces.shared_efforts import home_preload
from parflex.forces.spare_motors import Sharing, asked, read_sharing, spare_motors
from parflex.robot.robot import Robot

Array = np.ndarray
WITH_EFFORTS = ("inverse", "jacobian-of-inverse", "step", "pd-law", "task-law", "redundant")
KEPT = (1, 2)  # numbers of spare motors with which programs keep limits
OF_LAWS = ("extended-law", "classical-law", "extended-step", "classical-step")


def with_spare_words(
    robot: Robot,
    model: str,
    options: Options,
    weights: Mapping[str, float] | None,
    preload: Mapping[str, float] | None,
    effort_limit: Any,
) -> Options:
    """Options with what is asked of spare motors, checked for the robot and the model."""
    if not any(asked(value) for value in (weights, preload, effort_limit)):
        _warn_of_cables(robot, model)
        return options
    words = {"weights": weights, "preload": preload, "effort_limit": effort_limit}
    key = next(word for word, value in words.items() if asked(value))
    if model not in (*WITH_EFFORTS, *OF_LAWS):
        raise InputError(
            f"'{model}' gives no efforts, so '{key}' has no effect",
            key=key,
            value=short_text(words[key]),
            hint="leave it out",
        )
    sharing, spare = read_sharing(robot, weights, preload, effort_limit), spare_motors(robot)
    if sharing.bounded and spare not in KEPT:
        raise InputError(
            f"programs keep limits by internal efforts of one or two spare motors, and the robot has {max(spare, 0)}",
            key="effort_limit",
            value=short_text(effort_limit),
            hint="use inverse_dynamics, which keeps the limits of any number of motors",
        )
    lossy = [row.name for row in robot.closures.constraints if getattr(row, "lossy", False)]
    if sharing.bounded and lossy:
        raise InputError(
            f"programs do not keep limits where a rigid coupling ('{lossy[0]}') loses power",
            key="effort_limit",
            value=lossy[0],
            hint="leave out friction, or use inverse_dynamics",
        )
    names = sharing.names
    lower, upper = (() if ends is None else ends for ends in (sharing.lower, sharing.upper))
    return replace(
        options,
        weights=() if sharing.weights is None else tuple(zip(names, map(float, sharing.weights), strict=True)),
        preload=tuple(zip(names, map(float, home_preload(robot, sharing)), strict=True)) if sharing.preloads else (),
        limits=tuple((name, float(a), float(b)) for name, a, b in zip(names, lower, upper, strict=False)),
    )


def _warn_of_cables(robot: Robot, model: str) -> None:
    """Programs without limits take the least norm, in which driven cables may push."""
    cables = [link.name for link in robot.tree.links if link.pulls_only]
    if cables and model in (*WITH_EFFORTS, *OF_LAWS) and spare_motors(robot) > 0:
        said = f"'{cables[0]}' may push in efforts of least norm, which this program gives: limit the efforts of motors"
        warnings.warn(ParflexWarning(said), stacklevel=3)


def symbolic_sharing(tracer: Tracer, robot: Robot, options: Options) -> Sharing:
    """The same in symbols, for all motors: `weight[JOINT]`, `preload[JOINT]`, `lowest[JOINT]`, `highest[JOINT]`."""
    names = robot.actuated_names
    weights = _symbols([tracer.parameter(f"weight[{name}]", value) for name, value in options.weights])
    near = _symbols([tracer.parameter(f"preload[{name}]", value) for name, value in options.preload])
    lower = _symbols([_limit(tracer, f"lowest[{name}]", low) for name, low, _ in options.limits])
    upper = _symbols([_limit(tracer, f"highest[{name}]", high) for name, _, high in options.limits])
    return Sharing(tuple(names), weights, lower=lower, upper=upper, near=near)


def _symbols(entries: list[Any]) -> Array | None:
    return np.array(entries, dtype=object) if entries else None


def _limit(tracer: Tracer, name: str, value: float) -> Any:
    return tracer.parameter(name, value) if np.isfinite(value) else value
