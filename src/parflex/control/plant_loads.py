"""What a plant carries in a run under a law: efforts of stops and of friction, reactions, the largest stress."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.control.plant import Plant
from parflex.integrators.common import evaluate
from parflex.integrators.driver import IntegratedRows, new_work
from parflex.integrators.stiction import settle_friction
from parflex.simulation.contact_report import largest_stop_effort, stiction_events, stop_events
from parflex.simulation.outputs import signal_columns, signals_in_run
from parflex.simulation.problem import Problem
from parflex.simulation.reactions import add_reactions, chains_to_follow, read_outputs
from parflex.simulation.segments import Segment, Segments
from parflex.trajectories.polynomials import constant

Array = np.ndarray


def loads_on_plant(
    plant: Plant, rows: IntegratedRows, first_effort: Array, out_step: float, columns: dict[str, Array]
) -> dict[str, Any]:
    """Put efforts of stops and friction, and reactions, into the columns; what the summary says of them.

    A row shows the state and the efforts just before its sample, the first row those behind it.
    """
    problem = plant.problem
    stopped = any(link.terms.stop is not None for link in problem.robot.tree.links)
    if not (stopped or plant.reactions or problem.sticking or chains_to_follow(problem.robot, ())):
        return {}
    nq, n, motors = problem.robot.tree.nq, len(problem.independent), len(problem.robot.actuated)
    x, y = rows.x.copy(), rows.y.copy()
    x[0, nq + n : nq + n + motors] = first_effort
    if problem.sticking:  # found before the first sample, without the motors
        x[0] = _settled(problem, first_effort, x[0])
    y[0] = problem.model.call(x[:1])[0]
    run = Segments(1, out_step, [Segment(problem, replace(rows, x=x, y=y))])
    frames = [problem.robot.tree.end_effector]
    seen = signals_in_run(problem, run, frames)
    found = signal_columns(problem, run, seen, frames)
    columns |= {name: values for name, values in found.items() if name.startswith(("stop.", "friction."))}
    told: dict[str, Any] = {}
    if stopped:
        told = {"stops": stop_events(problem, rows.events), "largest_stop_effort": largest_stop_effort(columns)}
    if problem.sticking:
        told["sticks"] = stiction_events(problem, rows.events, found)
    return told | add_reactions(problem, seen, columns, read_outputs(problem.robot, (), plant.reactions))


def _settled(problem: Problem, effort: Array, row: Array) -> Array:
    """Inputs of the model with the friction that the motors' efforts leave to it."""
    system = problem.system(constant(effort))
    work = new_work(system, 2, 1)
    work.x[0, : len(row)] = row
    evaluate(system, work, work.x[0], work.y[0])
    settle_friction(system, work, 0, False, 0.0)
    return np.array(work.x[0, : len(row)])
