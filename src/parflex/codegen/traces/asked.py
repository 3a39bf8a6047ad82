"""Traces of models whose motion is given in coordinates that were asked for, whatever form they are written in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.codegen.model_options import Options
from parflex.codegen.traces.tracing import Outputs, Tracer
from parflex.errors import InputError
from parflex.formulations.base import IN_COORDINATES, Formulation, refuse_unknown_coordinates
from parflex.formulations.coordinates import (
    AllCoordinates,
    IndependentCoordinates,
    MotorCoordinates,
    PlatformCoordinates,
    RequestedCoordinates,
    input_checks,
)

Array = np.ndarray
KINDS = (PlatformCoordinates, MotorCoordinates, IndependentCoordinates, AllCoordinates)
COORDINATES: dict[str, type[RequestedCoordinates]] = {kind.word: kind for kind in KINDS}


def inverse(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Accelerations in, efforts out."""
    asked, given, state = _moving(tracer, form, options)
    given |= tracer.groups(asked.motion_groups)
    outputs = asked.inverse(state, given) | asked.missed(state, given)
    return outputs | (input_checks(form, state, given, motors=True) if options.checks else {}), asked.labels


def direct(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Efforts in, accelerations out."""
    asked, given, state = _moving(tracer, form, options)
    outputs = asked.direct(state, tracer.group("effort", len(form.robot.actuated))) | asked.missed(state, given)
    return outputs | (input_checks(form, state, given, motors=False) if options.checks else {}), asked.labels


def kinematics(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Positions and rates of what is asked for in, those of the rest out."""
    asked, given, state = _moving(tracer, form, options)
    return asked.kinematics(state) | asked.missed(state, given), asked.labels


def mass_matrix(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Positions in; inertia in the rates of the coordinates out."""
    asked = _asked(form, options)
    given = tracer.groups(asked.place_groups)
    still = {name: np.zeros(shape) for name, shape in asked.rate_groups.items()}
    state = asked.state(given | still)
    M, names = asked.mass_matrix(state)
    return {"mass_matrix": M} | asked.found(state) | asked.missed(state, given), asked.labels | {"mass_matrix": names}


MODELS: dict[str, Callable[[Tracer, Formulation, Options], Outputs]] = {
    "inverse": inverse,
    "direct": direct,
    "mass-matrix": mass_matrix,
    "kinematics": kinematics,
}


def _asked(form: Formulation, options: Options) -> RequestedCoordinates:
    assert options.coordinates is not None
    return COORDINATES[options.coordinates](form)


def _moving(tracer: Tracer, form: Formulation, options: Options) -> tuple[RequestedCoordinates, dict[str, Array], Any]:
    """The form in its coordinates, what goes in, and the state."""
    asked = _asked(form, options)
    given = tracer.groups(asked.place_groups | asked.rate_groups)
    return asked, given, asked.state(given)


def rates_read(form: Formulation, options: Options) -> list[str]:
    """Names of the rates that a model in coordinates reads."""
    return _asked(form, options).read if options.coordinates is not None else []


def refuse_unknown(model: str, options: Options) -> None:
    """Raise if a model does not exist in the coordinates that are asked for."""
    word = options.coordinates
    if word is not None:
        refuse_unknown_coordinates(word)
    if word is not None and model not in IN_COORDINATES:
        raise InputError(
            f"the inputs of '{model}' do not depend on coordinates",
            key="coordinates",
            value=word,
            hint=f"omit 'coordinates', or use one of {', '.join(IN_COORDINATES)}",
        )
    if options.checks and (word != "all" or model not in ("inverse", "direct")):
        raise InputError(
            "checks compare given positions, rates and accelerations of all coordinates",
            key="checks",
            value=model,
            hint="use 'inverse' or 'direct' with coordinates \"all\"",
        )
