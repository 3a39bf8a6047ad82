"""Compute wrenches in the joints and closures of a robot in a motion, and mark undetermined ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.closure.constraints import Coupling, Distance, Loop
from parflex.closure.mobility import rank
from parflex.diagnostics import Diagnostic
from parflex.forces.forces import Wrench, checked_wrenches, element_values, multipliers_of, tree_newton_euler
from parflex.forces.section_forces import largest_stress_of, loads_of_beams
from parflex.recursion.dynamics import carry_wrenches
from parflex.recursion.energy import LinkWrenches, add_wrenches
from parflex.recursion.kinematics import Pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.rotations import cross
from parflex.tree.tree import Link

Array = np.ndarray


def reactions_of(
    configuration: Configuration,
    qd: Array,
    qdd: Array,
    f: Array,
    tau: Array,
    wrenches: Wrench | None,
    diagnostics: list[Diagnostic],
) -> dict[str, Any]:
    """Return wrenches in all joints and closures from least-norm multipliers, theory (18), and Newton-Euler."""
    robot = configuration.robot
    lam = multipliers_of(configuration, f, tau)
    loose_rows, loose = _undetermined(configuration)
    loop_wrenches, acting = closure_loads(robot, configuration.at, lam)
    closures: dict[str, Any] = {
        name: {"force": force.tolist(), "moment": moment.tolist()} for name, (force, moment) in loop_wrenches.items()
    }
    result = tree_newton_euler(configuration, qd, qdd, wrenches, more=acting)
    if loose_rows:
        text = "the robot is over-constrained: reactions marked undetermined are those of least norm"
        diagnostics.append(Diagnostic("undetermined-forces", text))
    joints = {
        link.name: {"force": result.f[j].tolist(), "moment": result.m[j].tolist(), "undetermined": link.name in loose}
        for j, link in enumerate(robot.tree.links)
        if has_reaction(link)
    }
    couplings = {
        row.name: {"effort": float(lam[part][0])}
        for part, row in zip(robot.closures.slices(), robot.closures.rows, strict=True)
        if isinstance(row, Coupling)
    }
    for spring in robot.tree.springs:
        effort = -float(spring.effort(configuration.q, qd))
        couplings[spring.name] = {"effort": effort, "undetermined": False}
    elements = {
        name: {**value, "undetermined": False} for name, value in element_values(configuration, qd, lam).items()
    }
    kinds = {Coupling: couplings, Distance: elements}
    for row in robot.closures.rows:
        kinds.get(type(row), closures)[row.name]["undetermined"] = row.name in loose_rows
    reactions: dict[str, Any] = {"joints": joints, "closures": closures, "couplings": couplings, "elements": elements}
    beams = loads_of_beams(configuration, qd, qdd, result, checked_wrenches(robot.tree, wrenches))
    reactions["beams"] = {name: beam.table() for name, beam in beams.items()}
    reactions["largest_stress"] = largest_stress_of(beams)
    return {key: value for key, value in reactions.items() if value or key in ("joints", "closures")}


def has_reaction(link: Link) -> bool:
    """Return whether a joint has a reaction; free bodies and struts have none."""
    return not link.joint.moves_freely and not link.strut


def undetermined_reactions(configuration: Configuration) -> set[str]:
    """Return the joints and closures whose reactions are not unique."""
    rows, joints = _undetermined(configuration)
    return rows | joints


def _undetermined(configuration: Configuration) -> tuple[set[str], set[str]]:
    """Return the closures and joints whose reactions change with multipliers that apply no forces."""
    closures, J = configuration.robot.closures, configuration.scaled_closure_jacobian[:, configuration.robot.free]
    combinations = (np.linalg.svd(J)[0][:, rank(J) :] * closures.row_units()[:, None]).T if len(J) else np.zeros((0, 0))
    parts = zip(closures.slices(), closures.rows, strict=True)
    rows = {row.name for part, row in parts if len(combinations) and np.abs(combinations[:, part]).max() > 1e-9}
    return rows, _undetermined_joints(configuration, combinations)


def closure_loads(robot: Robot, at: Pose, lam: Array) -> tuple[dict[str, tuple[Array, Array]], LinkWrenches]:
    """Return force and moment of each loop by name, and loads of all rows on the links, over any scalar."""
    loop_wrenches: dict[str, tuple[Array, Array]] = {}
    acting: LinkWrenches = {}
    for part, loop in zip(robot.closures.slices(), robot.closures.loops, strict=False):  # loops come first
        force, moment = loop_wrenches[loop.name] = loop.wrench(at, lam[part])
        R1, _ = at.of(loop.first)
        _, P2 = at.of(loop.second)
        for link, sign in ((loop.second.link, 1.0), (loop.first.link, -1.0)):
            if link < 0:
                continue
            R, P = at.rotation[link], at.position[link]
            local_force = sign * R.T @ R1 @ force
            local_moment = sign * R.T @ R1 @ moment + cross(R.T @ (P2 - P), local_force)
            add_wrenches(acting, {link: (local_force, local_moment)})
    for part, row in list(zip(robot.closures.slices(), robot.closures.rows, strict=True))[len(robot.closures.loops) :]:
        assert not isinstance(row, Loop)
        add_wrenches(acting, row.on_links(at, lam[part]))
    return loop_wrenches, acting


def constraint_forces(configuration: Configuration, lam: Array) -> Array:
    """Return forces along rates of the constraints that act on no links, from multipliers of all rows."""
    closures = configuration.robot.closures
    forces = np.zeros(configuration.robot.tree.n)
    for part, row in list(zip(closures.slices(), closures.rows, strict=True))[len(closures.loops) :]:
        assert not isinstance(row, Loop)
        forces = forces + row.forces(closures.tree, configuration.at, lam[part])
    return forces


def _undetermined_joints(configuration: Configuration, undetermined: Array) -> set[str]:
    """Return the joints whose reaction changes with multipliers that apply no forces."""
    robot = configuration.robot
    loose: set[str] = set()
    for combination in undetermined:
        _, acting = closure_loads(robot, configuration.at, combination)
        result = carry_wrenches(robot.tree, configuration.at, acting)
        for j, link in enumerate(robot.tree.links):
            if max(np.abs(result.f[j]).max(), np.abs(result.m[j]).max()) > 1e-9:
                loose.add(link.name)
    return loose
