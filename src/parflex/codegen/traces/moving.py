"""Traces for simulation: a state in, its closed positions, its rates and accelerations out; and energies.

Positions that depend on others are taken as a guess and closed first, so that an integrator may carry them along
without ever relying on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.codegen.model_options import Options
from parflex.codegen.traces.tracing import Outputs, Tracer, open_gates
from parflex.formulations.base import Formulation
from parflex.recursion.energy import energies
from parflex.recursion.kinematics import pose

Array = np.ndarray


def state_rates(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Positions, independent rates and efforts in; what changes in time out."""
    return _rates(tracer, form, options, driven=False)


def prescribed_rates(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Prescribed accelerations of motors or of the platform in, the efforts that cause them out."""
    return _rates(tracer, form, options, driven=True)


def _rates(tracer: Tracer, form: Formulation, options: Options, driven: bool) -> Outputs:
    tree, motors, names = form.robot.tree, form.robot.actuated_names, form.independent_names
    q = form.closed(tracer.group("q", tree.nq))
    rates = tracer.group("qd", len(form.independent))
    given = tracer.group(*form.prescribed) if driven else tracer.group("effort", len(motors))
    wrenches = {frame: tracer.group(f"wrench_{frame}", 6) for frame in options.wrenches}
    open_gates(tracer, tree)
    state = form.moving(q, rates, wrenches)
    if driven:
        effort, accelerations = form.efforts_for(state, given)
    else:
        accelerations = form.accelerations_under(state, given)
    resolved: Array = np.zeros(tree.n, dtype=object)
    resolved[form.independent] = accelerations
    changes = tree.rate_changes(state.qd, resolved)[form.independent]
    outputs = {"q": state.q, "position_rates": tree.position_rates(state.q, state.qd), "rate_changes": changes}
    outputs["acceleration"] = accelerations
    positions = list(tree.position_names)
    labels = dict.fromkeys(("q", "position_rates"), positions)
    labels |= dict.fromkeys(("qd", "rate_changes", "acceleration"), names)
    labels |= dict.fromkeys(("effort", "motor_acceleration"), motors)
    outputs |= {"effort": effort} if driven else {}
    rubbing = [link for link in tree.links if link.terms.rubbing is not None]
    if rubbing:
        rates_of = [link.v.start for link in rubbing]
        outputs["rubbing_acceleration"] = _accelerations_of(form, state, rates_of, accelerations)
        labels["rubbing_acceleration"] = [link.name for link in rubbing]
    return outputs, labels


def _accelerations_of(form: Formulation, state: Any, rates: list[int], independent: Array) -> Array:
    """Accelerations of some coordinates, of dependent ones by the closures."""
    own = [int(k) for k in form.independent]
    if set(rates) <= set(own):
        return independent[[own.index(k) for k in rates]]
    return form.all_accelerations(state, independent)[rates]


def energy(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Closed positions and all rates in, energies out."""
    tree = form.robot.tree
    q, rates = tracer.group("q", tree.nq), tracer.group("rates", tree.n)
    found = energies(tree, pose(tree, q), rates)
    labels = {"q": list(tree.position_names), "rates": list(tree.rate_names)}
    values = {"kinetic": found.kinetic, "elastic": found.elastic, "gravity": found.gravity}
    return {name: np.array([value], dtype=object) for name, value in values.items()}, labels
