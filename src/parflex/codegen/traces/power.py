"""Powers of a robot in motion as a small program: of motors and wrenches, and what friction and dampers take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.codegen.make_model import kept_program
from parflex.codegen.model import Model
from parflex.codegen.model_options import Options, prepared
from parflex.codegen.traces.coupling_signals import lossy, lost_forces
from parflex.codegen.traces.tracing import Tracer, open_gates
from parflex.recursion.dynamics import joint_forces
from parflex.recursion.energy import elements_loss
from parflex.recursion.kinematics import motion, pose
from parflex.robot.robot import Robot
from parflex.tree.tree import Tree

Array = np.ndarray


def powers(
    robot: Robot,
    wrenches: Sequence[str] = (),
    friction_width: float = 0.0,
    independent: Sequence[str] = (),
    rows: Sequence[int] = (),
) -> Model:
    """Closed positions, their rates of change, efforts and wrenches on frames (world axes) in; the two powers out.

    The time loop integrates them along with the motion. Losses of rigid couplings follow from accelerations, by
    `independent` rates and `rows` of the closures as in the motion. Programs are kept on disk.
    """
    options = Options(friction_width=friction_width)
    if lossy(robot):
        options = replace(options, independent=tuple(independent), rows=tuple(int(row) for row in rows))

    def outputs(tracer: Tracer) -> dict[str, Array]:
        return _outputs(tracer, prepared(robot, "powers", options), wrenches, options)

    return kept_program(robot, "powers", options, outputs, tuple(wrenches))


def _outputs(tracer: Any, robot: Robot, wrenches: Sequence[str], options: Options) -> dict[str, Array]:
    tree = robot.tree
    q, change = tracer.group("q", tree.nq), tracer.group("position_rates", tree.nq)
    effort = tracer.group("effort", len(robot.actuated))
    qd = tree.rates(q, change)
    given = {name: tracer.group(f"wrench_{name}", 6) for name in wrenches}
    open_gates(tracer, tree)
    put_in: Any = effort @ qd[list(robot.actuated)] if robot.actuated else 0.0
    if wrenches:
        at = pose(tree, q)
        moving = motion(tree, at, qd, np.zeros(tree.n))
        for name in wrenches:
            R, _ = at.of(tree.places[name])
            v, w, _, _ = moving.of(tree.places[name])
            put_in = put_in + given[name] @ np.concatenate([R @ v, R @ w])
    taken = loss(tree, q, qd)
    if lossy(robot):
        places = [tree.rate_names.index(name) for name in options.independent]
        taken = taken - lost_forces(robot, places, options.rows, q, qd, effort, given) @ qd
    return {"power": np.array([put_in, taken], dtype=object)}


def loss(tree: Tree, q: Array, qd: Array) -> Any:
    """Power that friction, dampers and the damping of bodies take."""
    plain = [
        replace(link, terms=replace(link.terms, stiffness=0.0, motor_inertia=0.0, stop=None)) for link in tree.links
    ]
    total = joint_forces(replace(tree, links=tuple(plain), springs=(), elements=()), q, qd, np.zeros(tree.n)) @ qd
    for spring in tree.springs:
        total = total + spring.lost_power(q, qd)
    for link in tree.links:
        if link.terms.stop is not None:
            total = total + link.terms.stop.lost_power(q[link.q.start], qd[link.v.start])
    if tree.elements:
        at = pose(tree, q)
        total = total + elements_loss(tree, at, motion(tree, at, qd, np.zeros(tree.n)))
    for link in tree.links:
        total = total + link.body.damping_power(q[link.e], qd[link.e_v])
    return total
