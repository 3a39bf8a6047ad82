"""What a unit knows to start flexible robots: which joints follow where others are set, so that no body deforms.

In a run the cheapest rates depend on the others, which may be those of deformations. A start says where joints are: the
joints that it leaves open follow in the loops, and bodies keep the deformation that they have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.closure.mobility import scale
from parflex.codegen.model import cached_program
from parflex.codegen.options import Options
from parflex.codegen.program import Program
from parflex.codegen.tracer import Tracer
from parflex.integrators.driver import System
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.robot import Robot
from parflex.simulation.problem import Problem
from parflex.simulation.start import AWAY

Array = np.ndarray


def deforms_in_loops(problem: Problem, system: System) -> bool:
    """Whether deformations depend on other rates in the steps of a robot."""
    return bool(set(_bent_positions(problem.robot)) & set(system.closing.tolist()))


def starting_program(robot: Robot) -> Program:
    """Positions and rates in; opening of the loops, their rows over free rates, without units, and changes out."""

    def outputs(tracer: Tracer) -> dict[str, Array]:
        tree, closures = robot.tree, robot.closures
        q, qd = tracer.group("q", tree.nq), tracer.group("qd", tree.n)
        at = pose(tree, q)
        return {
            "opening": closures.row_units() * closures.linear_residual(at),
            "rows": np.array(scale(closures, closures.jacobian(at, jacobians(tree, at)))[:, robot.free]),
            "change": tree.position_rates(q, qd),
        }

    return cached_program(robot, "starting", Options(), outputs).program


def starting_text(problem: Problem, system: System, start: tuple[Array, Array, Array], follows: bool) -> str:
    """Sizes and tables; of each free rate its joint, whether it is a motor or a deformation, and where it is stored."""
    robot, tree = problem.robot, problem.robot.tree
    bent = [*_bent_positions(robot)]
    lines = [f"#define FOLLOWING {int(follows)}", f"#define BENT {len(bent)}", f"#define BENT_FAR {AWAY!r}"]
    lines.append(f"static const int bent_positions[] = {{{_listed([*bent, 0])}}};")
    if not follows:
        return "\n".join(lines) + "\n"
    free = [int(k) for k in robot.free]
    deformed, motors, places = set(robot.deformations), list(robot.actuated), problem.places
    joints = [tree.links[tree.link_of_rate[k]].q if k not in set(tree.elastic) else slice(0, 0) for k in free]
    tables = {
        "free_rate": free,
        "joint_first": [joint.start for joint in joints],
        "joint_last": [joint.stop for joint in joints],
        "rate_role": [2 if k in deformed else 1 if k in motors else 0 for k in free],
        "rate_motor": [motors.index(k) if k in motors else -1 for k in free],
        "rate_stored": [places.index(k) if k in places else -1 for k in free],
    }
    lines += [f"#define FREE_RATES {len(free)}", f"#define ALL_RATES {tree.n}"]
    lines += [f"#define LOOP_ROWS {len(robot.closures.row_units())}", f"#define DRIVEN {int(problem.driven)}"]
    lines += ["enum { PASSIVE, MOTOR, DEFORMATION }; /* of rates */"]
    lines += [f"static const int {name}[] = {{{_listed([*values, 0])}}};" for name, values in tables.items()]
    units = (tree.rate_units / tree.length)[free]
    for name, values in (("rate_unit", units), ("q_of_export", start[0])):
        lines.append(f"static const double {name}[] = {{{_listed([*map(float, values), 1.0])}}};")
    return "\n".join(lines) + "\n"


def _bent_positions(robot: Robot) -> list[int]:
    tree = robot.tree
    own = [p for link in tree.links for p in range(link.e.start, link.e.stop)]
    return own + [tree.links[number].q.start for number in robot.drive_springs]


def _listed(values: list[Any]) -> str:
    return ", ".join(map(repr, values))
