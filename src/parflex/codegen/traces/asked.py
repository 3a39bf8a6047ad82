"""Traces of models whose motion is given in coordinates that were asked for, whatever form they are written in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parflex.codegen.traces.tracing import Options, Outputs, Tracer
from parflex.errors import InputError, did_you_mean
from parflex.models.forms import Form
from parflex.models.forms.in_coordinates.coordinates import Coordinates
from parflex.models.forms.in_coordinates.input_checks import checks_of
from parflex.models.forms.in_coordinates.joint_coordinates import AllCoordinates, IndependentCoordinates

Array = np.ndarray
COORDINATES: dict[str, type[Coordinates]] = {kind.word: kind for kind in (AllCoordinates, IndependentCoordinates)}


def inverse(tracer: Tracer, form: Form, options: Options) -> Outputs:
    """Accelerations in, efforts out."""
    asked = _asked(form, options)
    given = tracer.groups(asked.state_groups)
    state = asked.state(given)
    given |= tracer.groups(asked.motion_groups)
    outputs = asked.inverse(state, given)
    return outputs | (checks_of(form, state, given, motors=True) if options.checks else {}), asked.labels


def direct(tracer: Tracer, form: Form, options: Options) -> Outputs:
    """Efforts in, accelerations out."""
    asked = _asked(form, options)
    given = tracer.groups(asked.state_groups)
    state = asked.state(given)
    outputs = asked.direct(state, tracer.group("effort", len(form.robot.actuated)))
    return outputs | (checks_of(form, state, given, motors=False) if options.checks else {}), asked.labels


MODELS: dict[str, Callable[[Tracer, Form, Options], Outputs]] = {"inverse": inverse, "direct": direct}


def _asked(form: Form, options: Options) -> Coordinates:
    assert options.coordinates is not None
    return COORDINATES[options.coordinates](form)


def refuse_unknown(model: str, options: Options) -> None:
    """Raise if a model does not exist in the coordinates that are asked for."""
    word = options.coordinates
    if word is not None and word not in COORDINATES:
        raise InputError(
            f"there are no coordinates '{word}'",
            key="coordinates",
            value=word,
            hint=did_you_mean(str(word), COORDINATES),
        )
    if word is not None and model not in MODELS:
        raise InputError(
            f"the inputs of '{model}' are what they are: it takes no coordinates",
            key="coordinates",
            value=word,
            hint=f"leave them out, or ask one of {', '.join(MODELS)}",
        )
    if options.checks and word != "all":
        raise InputError(
            "checks compare positions, rates and accelerations of all coordinates",
            key="checks",
            value=word,
            hint='ask with coordinates "all"',
        )
