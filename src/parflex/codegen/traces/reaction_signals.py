"""Reactions over time: what the closures have to give along the rates, and the wrenches in all joints, in all rows.

Between the two stands a system for the multipliers, theory (18), which is solved in numbers for all rows at once. Both
are the physics over numbers of many rows: nothing is traced, so that robots of many elements are ready at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parflex.codegen.model_options import Options, prepared
from parflex.codegen.traces.coupling_signals import lost_forces
from parflex.forces.forces import on_links
from parflex.forces.reactions import closure_loads, has_reaction
from parflex.forces.sections import BeamChain, element_signals_of
from parflex.recursion.dynamics import joint_forces, less_external, link_wrenches, propagate_inwards
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.robot.robot import Robot
from parflex.spatial.batched import in_all_rows, over_rows

Array = np.ndarray
Inputs = dict[str, Any]
MANY = 100  # free rates from which some of them are taken where these determine what is asked
INSIDE = "@element "  # before the number of a link: no joint or closure has such a name
PUSHED = "wrench_"  # before the name of a frame: what acts on it


def joint_wrenches(
    robot: Robot,
    independent: Sequence[str],
    width: float,
    rows: Mapping[str, Array],
    multipliers: Callable[[Array, Array], Array],
    chains: Sequence[BeamChain] = (),
    by_loose: bool = False,
) -> tuple[dict[str, Array], dict[int, Array]]:
    """Of each joint and closure its name with force and moment in all rows, in a motion under efforts and wrenches.

    The motion has all positions, their rates of change and all accelerations. `multipliers` are those of closures, by
    their rows over free rates and by what these have to give there, rows of the run first. Then the signals of the
    elements of some beams, by their links. `by_loose`: multipliers follow from joints alone that move freely, whatever
    holds what is elastic, and motors.
    """
    changed = prepared(robot, "joint_wrenches", Options(friction_width=width))
    number = {name: k for k, name in enumerate(changed.tree.rate_names)}
    places = [number[name] for name in independent]
    along = _loose(changed) if by_loose else _determining(changed, places)

    def outputs(given: Inputs) -> dict[str, Array]:
        tree, q, qd, at, pushed = _state(changed, given)
        external = on_links(tree, at, pushed)
        moving = motion(tree, at, qd, given["accelerations"], -tree.gravity)
        shown: dict[str, tuple[Array, Array]] = {}
        needed = link_wrenches(tree, at, moving, external)
        if changed.closures.size:
            forces = propagate_inwards(tree, at, *less_external(needed, {})).forces
            missing = forces + joint_forces(tree, q, qd, given["accelerations"])
            missing = missing - lost_forces(changed, places, (), q, qd, given["effort"], pushed)
            for k, motor in enumerate(changed.actuated):
                missing[motor] = missing[motor] - given["effort"][k]
            held = changed.closures.jacobian(at, jacobians(tree, at, along))[:, along]
            shown, acting = closure_loads(changed, at, in_all_rows(multipliers, held, missing[along]))
            needed = less_external(needed, acting)
        found = propagate_inwards(tree, at, *needed)
        joints = {link.name: (found.f[j], found.m[j]) for j, link in enumerate(tree.links) if has_reaction(link)}
        inside: dict[str, Array] = {}
        for chain in chains:
            own = element_signals_of(tree, at, moving, found, chain, pushed)
            inside |= {f"{INSIDE}{j}": signals for j, signals in own.items()}
        return {name: np.concatenate(parts) for name, parts in {**joints, **shown}.items()} | inside

    found = over_rows(outputs, rows, _numbers(changed))
    elements = {int(name.removeprefix(INSIDE)): found.pop(name) for name in list(found) if name.startswith(INSIDE)}
    return found, elements


def _determining(robot: Robot, independent: Sequence[int]) -> Array:
    """Free rates that determine the multipliers: all, or of robots of many elements joints and dependent rates."""
    elastic, given = set(robot.deformations), set(independent)
    if robot.mobility.redundant or len(robot.free) <= MANY:
        return robot.free
    return np.array([k for k in robot.free if k not in elastic or k not in given], dtype=int)


def _loose(robot: Robot) -> Array:
    """Free rates without a motor or a spring; all, where these are too few to determine what closures carry."""
    held = {*robot.deformations, *robot.actuated}
    links = robot.tree.links
    stiff = [bool(links[robot.tree.link_of_rate[k]].terms.stiffness) for k in robot.free]
    found = [k for k, spring in zip(robot.free, stiff, strict=True) if k not in held and not spring]
    return robot.free if len(found) < robot.closures.size else np.array(found, dtype=int)


def _state(robot: Robot, given: Inputs) -> tuple[Any, Any, Any, Any, Inputs]:
    """Tree, positions, rates, pose, and wrenches by frame; contacts are as their gates say."""
    tree, q = robot.tree, given["q"]
    if tree.gates is not None:
        tree.gates.values = given["gates"]
    pushed = {word.removeprefix(PUSHED): wrench for word, wrench in given.items() if word.startswith(PUSHED)}
    return tree, q, tree.rates(q, given["position_rates"]), pose(tree, q), pushed


def _numbers(robot: Robot) -> int:
    """About how many numbers a pass over the tree keeps: those of each link, and its Jacobian along its path."""
    tree = robot.tree
    widths = [tree.links[j].own_v.stop - tree.links[j].own_v.start for j in range(len(tree.links))]
    return sum(120 + 6 * sum(widths[k] for k in tree.path(j)) for j in range(len(tree.links)))
