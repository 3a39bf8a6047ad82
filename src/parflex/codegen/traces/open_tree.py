"""Programs of the open tree with its loops beside it: rows of the closures, and all that moves without a reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from parflex.closure.mobility import scale, scaled_jacobian
from parflex.codegen.make_model import kept_program
from parflex.codegen.model import Model
from parflex.codegen.model_options import Options, prepared
from parflex.codegen.traces.tracing import Tracer, open_gates
from parflex.forces.forces import on_links
from parflex.recursion.dynamics import joint_forces, mass_matrix, newton_euler
from parflex.recursion.energy import energies, gate_values
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.robot.robot import Robot

Array = np.ndarray
MANY_RATES = 100  # free ones: numbers take milliseconds a pose, a program seconds to make and to compile


def closure_rows(robot: Robot) -> Callable[[Array], Array]:
    """The rows of the closures over the free rates, without units, as a function of closed positions, row by row.

    It is a program, but for robots of so many rates that a program would take longer than the few poses it is for.
    """
    if len(robot.free) > MANY_RATES:
        return lambda q: np.array([scaled_jacobian(robot.closures, one)[:, robot.free] for one in q])
    program = closure_rows_program(robot, quick=True)
    return lambda q: program(q=q)["rows"]


def closure_rows_program(robot: Robot, quick: bool = False) -> Model:
    """Closed positions in; the rows of the closures over the free rates, without units, out.

    `quick` where a run asks for them at some of its poses: passes would take longer than all these calls.
    """

    def outputs(tracer: Tracer) -> dict[str, Array]:
        at = pose(robot.tree, tracer.group("q", robot.tree.nq))
        J = robot.closures.jacobian(at, jacobians(robot.tree, at))
        return {"rows": np.array(scale(robot.closures, J)[:, robot.free])}

    return kept_program(robot, "closure-rows", Options(), outputs, quick=quick)


def open_tree(robot: Robot, wrenches: Sequence[str], friction_width: float) -> Model:
    """All positions and rates in; mass matrix, forces and energies of the tree, rows, bias and opening of its loops."""
    options = Options(friction_width=friction_width)

    def outputs(tracer: Tracer) -> dict[str, Array]:
        changed = prepared(robot, "open-tree", options)
        tree, closures = changed.tree, changed.closures
        q, qd = tracer.group("q", tree.nq), tracer.group("qd", tree.n)
        external = {frame: tracer.group(f"wrench_{frame}", 6) for frame in wrenches}
        at, still = pose(tree, q), np.zeros(tree.n)
        moving, found = motion(tree, at, qd, still, -tree.gravity), energies(tree, at, qd)
        forces = newton_euler(tree, at, moving, on_links(tree, at, external)).forces
        return {
            "mass_matrix": mass_matrix(tree, at, options.without),
            "forces": forces + joint_forces(tree, q, qd, still, options.without),
            "rows": closures.jacobian(at, jacobians(tree, at)),
            "bias": closures.bias(at, motion(tree, at, qd, still)),
            "opening": closures.linear_residual(at),
            "energy": np.array([found.kinetic, found.elastic + found.gravity], dtype=object),
        }

    return kept_program(robot, "open-tree", options, outputs, tuple(wrenches))


def contact_gaps(robot: Robot) -> Model:
    """Closed positions, their rates of change and the gates of contacts in; of each gate what it follows, and its rate.

    A gate is 1 while its number is positive: the time loop ends a step where that changes.
    """

    def outputs(tracer: Tracer) -> dict[str, Array]:
        tree = prepared(robot, "contact-gaps", Options()).tree
        q, change = tracer.group("q", tree.nq), tracer.group("position_rates", tree.nq)
        open_gates(tracer, tree)
        return {"gaps": np.array(gate_values(tree, pose(tree, q), tree.rates(q, change)), dtype=object)}

    return kept_program(robot, "contact-gaps", Options(), outputs)
