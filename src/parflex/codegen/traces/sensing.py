"""Traces of what a controller with sensors in passive joints calls: model, control laws, geometry."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.codegen.traces.tracing import Options, Outputs, Tracer

Array = np.ndarray
GAINS = {"Kp": 1517.15, "Kv": 46.05}  # 10 % overshoot and a peak after 0.1 s, [Zubizarreta2010, section 4.8]
MODELS = (
    *("redundant", "extended-law", "classical-law", "extended-step", "classical-step"),
    *("geometry-redundant", "geometry-motors"),
)
REFERENCE = ("reference", "reference_rate", "reference_acceleration")


def law(tracer: Tracer, form: Any, options: Options) -> Outputs:
    """Measured and reference joint values in, efforts out; the gains are parameters."""
    state = form.state(tracer.groups(form.state_groups))
    return {"effort": _controlled(tracer, form, state)}, form.labels


def step(tracer: Tracer, form: Any, options: Options) -> Outputs:
    """A whole controller: what sensors give, the reference and the last pose in; efforts and the pose out."""
    guess, count = tracer.group("last", form.robot.tree.nq), len(form.independent)
    measured, rates = (tracer.group(name, count) for name in ("measured", "measured_rate"))
    found = form.geometry({"guess": guess, "measured": measured})[0]
    return {"effort": _controlled(tracer, form, (found["q"], rates))} | found, form.labels


def _controlled(tracer: Tracer, form: Any, state: tuple[Array, Array]) -> Array:
    """Efforts of the law for a reference that is symbols too."""
    reference = tuple(tracer.group(name, len(form.independent)) for name in REFERENCE)
    return form.law(state, reference, *(tracer.parameter(name, value) for name, value in GAINS.items()))
