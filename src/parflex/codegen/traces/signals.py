"""Outputs of a simulation, as one program: frames in motion, energies, losses, opening of the loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.closure.mobility import pivots, scaled_jacobian
from parflex.codegen.make_model import kept_program
from parflex.codegen.model import Model
from parflex.codegen.model_options import OPERATOR_LIMIT, Options, prepared
from parflex.codegen.traces.coupling_signals import coupling_signals, lossy, lost_forces
from parflex.codegen.traces.element_signals import element_signals
from parflex.codegen.traces.power import loss
from parflex.codegen.traces.tracing import Tracer, open_gates
from parflex.formulations.base import best_rows
from parflex.recursion.energy import energies
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.robot.robot import Robot
from parflex.spatial.batched import over_rows
from parflex.spatial.linear import scalar_type, solve

Array = np.ndarray
NUMBERS = 300  # about how many a pass over the tree keeps of each link


def signals(
    robot: Robot,
    frames: Sequence[str],
    independent: Sequence[str],
    friction_width: float = 0.0,
    rows: Sequence[int] = (),
    limit: int = OPERATOR_LIMIT,
    quick: bool = False,
    wrenches: Sequence[str] = (),
) -> Model:
    """Outputs of a run: closed positions, their rates of change and independent accelerations in.

    Out come of each frame pose, twist and acceleration in world axes, energies, the power lost, how far the loops are
    open, of elements length and force, and of couplings the effort; these need efforts and wrenches too. `rows` of the
    closures give the dependent accelerations (none: those that do it best at home). Programs are kept on disk;
    `quick` makes it without passes, to be run a few times.
    """
    options = Options(friction_width=friction_width, rows=tuple(int(row) for row in rows))

    def outputs(tracer: Tracer) -> Any:
        return signal_outputs(tracer, prepared(robot, "signals", options), frames, independent, options, wrenches)

    more = (tuple(frames), tuple(independent), tuple(wrenches))
    return kept_program(robot, "signals", options, outputs, *more, limit=limit, quick=quick)


class _GivenGroups:
    """Groups of inputs that are there already, where a tracer would make symbols."""

    def __init__(self, given: Mapping[str, Array]) -> None:
        self.given = given

    def group(self, name: str, *shape: int) -> Array:
        """The group of this name."""
        return self.given[name]


def signals_in_rows(
    robot: Robot,
    frames: Sequence[str],
    independent: Sequence[str],
    friction_width: float,
    rows: Sequence[int],
    wrenches: Sequence[str],
    states: Mapping[str, Array],
) -> dict[str, Array]:
    """The same signals in all rows of states at once, without a program: for robots whose program would be long."""
    rows = rows or _closing_rows(robot, independent)
    options = Options(friction_width=friction_width, rows=tuple(int(row) for row in rows))
    changed = prepared(robot, "signals", options)

    def outputs(given: dict[str, Array]) -> Mapping[str, Any]:
        return signal_outputs(_GivenGroups(given), changed, frames, independent, options, wrenches)

    return over_rows(outputs, states, NUMBERS * len(robot.tree.links))


def _closing_rows(robot: Robot, independent: Sequence[str]) -> list[int]:
    """Rows of the closures that determine the other rates at home."""
    given = {robot.tree.rate_names.index(name) for name in independent}
    dependent = [k for k in robot.free if k not in given]
    if not dependent:
        return []
    return sorted(pivots(scaled_jacobian(robot.closures, robot.home)[:, dependent].T, len(dependent)))


def signal_outputs(
    tracer: Any,
    robot: Robot,
    frames: Sequence[str],
    independent: Sequence[str],
    options: Options,
    wrenches: Sequence[str] = (),
) -> Any:
    """The signals of a run over symbols, which are groups of inputs of the tracer."""
    tree = robot.tree
    q, change = tracer.group("q", tree.nq), tracer.group("position_rates", tree.nq)
    given = tracer.group("acceleration", len(independent))
    open_gates(tracer, tree)
    qd, at = tree.rates(q, change), pose(tree, q)
    number = {name: k for k, name in enumerate(tree.rate_names)}
    places = [number[name] for name in independent]
    qdd = _all_accelerations(robot, at, qd, given, places, options.rows)
    moving = motion(tree, at, qd, qdd)
    outputs: dict[str, Array] = {"accelerations": qdd}
    for name in frames:
        place = tree.places[name]
        R, p = at.of(place)
        v, w, a, al = moving.of(place)
        twist = np.concatenate([R @ v, R @ w, R @ a, R @ al])
        outputs |= {f"{name}.position": p, f"{name}.rotation": R, f"{name}.motion": twist}
    found = energies(tree, at, qd, moving)
    outputs["energy"] = np.array([found.kinetic, found.elastic, found.gravity], dtype=object)
    pushed: dict[str, Array] = {}
    effort: Array = np.zeros(0)
    if robot.description.element or robot.description.coupling:
        pushed = {name: tracer.group(f"wrench_{name}", 6) for name in wrenches}
        effort = tracer.group("effort", len(robot.actuated))
    lost = lost_forces(robot, places, options.rows, q, qd, effort, pushed)
    outputs["loss"] = np.array([loss(tree, q, qd) - (lost @ qd if lossy(robot) else 0.0)], dtype=object)
    for link in tree.links:
        if link.terms.stop is not None:
            push = link.terms.stop.effort(q[link.q.start], qd[link.v.start])
            outputs[f"stop.{link.name}.effort"] = np.array([push], dtype=object)
        if link.terms.rubbing is not None:
            outputs[f"friction.{link.name}.effort"] = np.array([-link.terms.friction(qd[link.v.start])], dtype=object)
    if robot.closures.size:
        outputs["opening"] = robot.closures.linear_residual(at)
    given_rates = set(places)
    dependent = [k for k in robot.free if k not in given_rates]
    if robot.description.element:
        outputs |= element_signals(robot, at, qd, qdd, dependent, options.rows, pushed, effort, lost)
    if robot.description.coupling:
        outputs |= coupling_signals(robot, at, qd, qdd, (dependent, options.rows), effort, pushed, lost)
    return outputs


def _all_accelerations(
    robot: Robot, at: Any, qd: Array, given: Array, independent: list[int], rows: tuple[int, ...] = ()
) -> Array:
    """The dependent accelerations close the loops."""
    tree = robot.tree
    qdd: Array = np.zeros(tree.n, dtype=scalar_type(at.q, qd, given))  # rows of plain numbers stay so: LAPACK solves
    qdd[independent] = given
    led = set(independent)
    dependent = [k for k in robot.free if k not in led]
    if dependent:
        chosen = list(rows) or best_rows(robot.closures, robot.home, np.array(dependent, dtype=int))
        block = robot.closures.jacobian(at, jacobians(tree, at, dependent))[np.ix_(chosen, dependent)]
        opening = robot.closures.bias(at, motion(tree, at, qd, qdd))
        qdd[dependent] = solve(block, -opening[chosen])
    return qdd
