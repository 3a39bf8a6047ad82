"""Programs for reactions over time: what the closures have to give along the rates, and the wrenches in all joints.

Between the two stands a system for the multipliers, theory (18), which is solved in numbers for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parflex.codegen.model import Model
from parflex.codegen.passes.optimise import OPERATOR_LIMIT, make_program
from parflex.codegen.traces.coupling_signals import lost_forces
from parflex.codegen.traces.trace import Options, Tracer, prepared
from parflex.codegen.traces.tracing import open_gates
from parflex.models.dynamics.forces import forces_along_rates, on_links
from parflex.models.dynamics.reactions import closure_loads, has_reaction
from parflex.models.robot import Robot
from parflex.recursion import jacobians, motion, newton_euler, pose
from parflex.recursion.point_forces import add_wrenches

Array = np.ndarray
Inputs = dict[str, Any]


def balance(robot: Robot, independent: Sequence[str], wrenches: Sequence[str], width: float, quick: bool) -> Model:
    """A motion under efforts and wrenches in; what the closures have to give (`missing`) and their `rows` out.

    Both are over the free rates; the motion has all positions, their rates of change and all accelerations.
    """

    def outputs(robot: Robot, given: Inputs) -> dict[str, Array]:
        tree, at, effort = robot.tree, given["at"], given["effort"]
        q, qd, qdd, pushed = given["q"], given["qd"], given["accelerations"], given["wrenches"]
        missing = forces_along_rates(tree, at, q, qd, qdd, on_links(tree, at, pushed))
        places = [tree.rate_names.index(name) for name in independent]
        missing = missing - lost_forces(robot, places, (), q, qd, effort, pushed)
        for k, motor in enumerate(robot.actuated):
            missing[motor] = missing[motor] - effort[k]
        rows = robot.closures.jacobian(at, jacobians(tree, at))
        return {"missing": missing[robot.free], "rows": rows[:, robot.free]}

    return _program(robot, "reaction_balance", wrenches, width, quick, outputs)


def joint_wrenches(robot: Robot, wrenches: Sequence[str], width: float, quick: bool) -> Model:
    """The same and the multipliers of all rows in; of each joint and closure its name with force and moment out."""

    def outputs(robot: Robot, given: Inputs) -> dict[str, Array]:
        tree, at, lam = robot.tree, given["at"], given["multipliers"]
        shown, acting = closure_loads(robot, at, lam)
        external = on_links(tree, at, given["wrenches"])
        add_wrenches(external, acting)
        moving = motion(tree, at, given["qd"], given["accelerations"], -tree.gravity)
        found = newton_euler(tree, at, moving, external)
        joints = {link.name: (found.f[j], found.m[j]) for j, link in enumerate(tree.links) if has_reaction(link)}
        return {name: np.concatenate(parts) for name, parts in {**joints, **shown}.items()}

    return _program(robot, "joint_wrenches", wrenches, width, quick, outputs)


def _program(
    robot: Robot, name: str, wrenches: Sequence[str], width: float, quick: bool,
    outputs: Callable[[Robot, Inputs], dict[str, Array]],
) -> Model:  # fmt: skip
    tracer, changed = Tracer(), prepared(robot, name, Options(friction_width=width))
    tree = changed.tree
    q, change = tracer.group("q", tree.nq), tracer.group("position_rates", tree.nq)
    given: Inputs = {"q": q, "qd": tree.rates(q, change), "at": pose(tree, q)}
    given["accelerations"] = tracer.group("accelerations", tree.n)
    given["effort"] = tracer.group("effort", len(robot.actuated))
    given["multipliers"] = tracer.group("multipliers", changed.closures.size)
    given["wrenches"] = {frame: tracer.group(f"wrench_{frame}", 6) for frame in wrenches}
    open_gates(tracer, tree)
    found = {word: np.array(values, dtype=object) for word, values in outputs(changed, given).items()}
    program = make_program(tracer.graph, f"{robot.name}_{name}", found, [], OPERATOR_LIMIT, quick)
    inputs = {group: symbols.shape for group, symbols in tracer.inputs.items()}
    return Model(program.name, program, inputs, {word: values.shape for word, values in found.items()})
