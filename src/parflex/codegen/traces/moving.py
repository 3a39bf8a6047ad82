"""Traces for simulation: a state in, its closed positions, its rates and accelerations out; and energies.

Positions that depend on others are taken as a guess and closed by Newton steps first, so that an integrator may carry
them along without ever relying on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.closure.mobility import Partition
from parflex.codegen.traces import flexible
from parflex.codegen.traces.geometry_traces import closed_by
from parflex.codegen.traces.moving_legs import moving_legs
from parflex.codegen.traces.moving_legs import state_rates as leg_state_rates
from parflex.codegen.traces.tracing import Options
from parflex.errors import InputError
from parflex.models import general_form, node_form
from parflex.models.configuration import Configuration
from parflex.models.dynamics.forces import on_links
from parflex.models.pieces import Pieces
from parflex.models.robot import Robot
from parflex.recursion import pose
from parflex.recursion.energy import energies

Array = np.ndarray
STEPS = 2  # from the guesses of an integrator, off by 1e-5 at most: Newton squares the error each time


def moving_form(robot: Robot, driven: bool, options: Options) -> Pieces | general_form.GeneralForm:
    """The form of a robot in motion; where motors drive it, they are among the independent rates."""
    lead = options.lead
    if options.independent:
        return general_form.general_form(robot, named_partition(robot, options.independent), options.rows)
    if robot.tree.elastic:
        form = flexible.form_of(robot, lead)
        return form if isinstance(form, Pieces) or not driven else flexible.with_motors(robot)
    if driven:
        return flexible.with_motors(robot)
    return general_form.general_form(robot, Configuration(robot, robot.home).reduction.partition)


def named_partition(robot: Robot, independent: Sequence[str]) -> Partition:
    """All other free rates depend on the named ones; of the rows there are as many as dependent rates."""
    chosen = {robot.tree.rate_names.index(name) for name in independent}
    dependent = np.array([k for k in robot.free if k not in chosen], dtype=int)
    return Partition(np.arange(len(dependent)), dependent, np.array(sorted(chosen), dtype=int))


def closed(form: Any, q: Array, steps: int = STEPS) -> Array:
    """Positions after Newton steps of the dependent coordinates of a form, over any scalar."""
    robot, part = form.robot, form.partition
    if not len(part.dependent):
        return q
    return closed_by(robot, part, q, steps)


def state_rates(tracer: Any, robot: Robot, driven: bool, options: Any) -> Any:
    """Positions, independent rates and efforts (or accelerations of motors) in; what changes in time out."""
    legs = None if driven or options.independent else moving_legs(robot, options)
    if legs is not None:
        return leg_state_rates(tracer, legs, False, options)
    return rates_of_form(tracer, moving_form(robot, driven, options), driven, options)


def rates_of_form(tracer: Any, form: Any, driven: bool, options: Any) -> Any:
    """The same for a form that was chosen before; the numbers of its robot may be symbols."""
    tree, motors = form.robot.tree, form.robot.actuated_names
    q = closed(form, tracer.group("q", tree.nq))
    rates = tracer.group("qd", len(form.partition.independent))
    given = tracer.group("motor_acceleration" if driven else "effort", len(motors))
    external = {frame: tracer.group(f"wrench_{frame}", 6) for frame in options.wrenches}
    effort, accelerations, all_rates = _accelerations(form, q, rates, given, driven, external, options.without)
    resolved: Array = np.zeros(tree.n, dtype=object)
    resolved[form.partition.independent] = accelerations
    changes = tree.rate_changes(all_rates, resolved)[form.partition.independent]
    outputs = {"q": q, "position_rates": tree.position_rates(q, all_rates), "rate_changes": changes}
    outputs["acceleration"] = accelerations
    labels = {"q": list(tree.position_names), "qd": form.independent_names, "effort": motors}
    labels |= {"position_rates": list(tree.position_names)}
    labels |= dict.fromkeys(("rate_changes", "acceleration"), form.independent_names)
    if not driven:
        return outputs, labels
    return outputs | {"effort": effort}, labels | {"motor_acceleration": motors}


def following(tracer: Any, robot: Robot, options: Any) -> Any:
    """Positions, rates and accelerations of the platform in; efforts that cause them and what changes in time out."""
    legs = moving_legs(robot, options)
    if legs is None:
        raise InputError(
            "only a platform on legs that follow in closed form can be led in time",
            key="drive",
            value="platform",
            hint="lead the motors",
        )
    return leg_state_rates(tracer, legs, True, options)


def _accelerations(
    form: Any, q: Array, rates: Array, given: Array, driven: bool, external: Any, without: tuple[str, ...]
) -> tuple[Array, Array, Array]:
    """Efforts, independent accelerations and all rates."""
    if isinstance(form, Pieces):
        nodes = node_form.node_state(form, q, rates, without, external)
        if driven:
            return *node_form.efforts_for(nodes, given), nodes.rates.qd
        return given, node_form.accelerations_under(nodes, given), nodes.rates.qd
    state = general_form.general_state(form, q, rates)
    on = on_links(form.robot.tree, state.at, external)
    if driven:
        return *general_form.efforts_for(state, given, without, on), state.qd
    return given, general_form.accelerations_under(state, given, without, on), state.qd


def energy(tracer: Any, robot: Robot) -> Any:
    """Closed positions and all rates in, energies out."""
    tree = robot.tree
    q, rates = tracer.group("q", tree.nq), tracer.group("rates", tree.n)
    found = energies(tree, pose(tree, q), rates)
    labels = {"q": list(tree.position_names), "rates": list(tree.rate_names)}
    values = {"kinetic": found.kinetic, "elastic": found.elastic, "gravity": found.gravity}
    return {name: np.array([value], dtype=object) for name, value in values.items()}, labels
