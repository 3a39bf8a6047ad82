"""Reactions over time: what the closures have to give along the rates, and the wrenches in all joints, in all rows.

Between the two stands a system for the multipliers, theory (18), which is solved in numbers for all rows at once. Both
are the physics over numbers of many rows: nothing is traced, so that robots of many elements are ready at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.codegen.traces.coupling_signals import lost_forces
from parflex.codegen.traces.trace import Options, prepared
from parflex.models.dynamics.forces import forces_along_rates, on_links
from parflex.models.dynamics.reactions import closure_loads, has_reaction
from parflex.models.inside_beams.beam_chains import BeamChain
from parflex.models.inside_beams.section_forces import element_signals_of
from parflex.models.robot import Robot
from parflex.recursion import jacobians, motion, newton_euler, pose
from parflex.recursion.point_forces import add_wrenches
from parflex.spatial.row_numbers import over_rows

Array = np.ndarray
Inputs = dict[str, Any]
INSIDE = "@element "  # before the number of a link: no joint or closure has such a name
PUSHED = "wrench_"  # before the name of a frame: what acts on it


def balance(robot: Robot, independent: Sequence[str], width: float, rows: Mapping[str, Array]) -> tuple[Array, Array]:
    """Of a motion under efforts and wrenches: `rows` of the closures, and what these have to give, over free rates.

    The motion has all positions, their rates of change and all accelerations.
    """
    changed = prepared(robot, "reaction_balance", Options(friction_width=width))
    places = [changed.tree.rate_names.index(name) for name in independent]

    def outputs(given: Inputs) -> dict[str, Array]:
        tree, q, qd, at, pushed = _state(changed, given)
        missing = forces_along_rates(tree, at, q, qd, given["accelerations"], on_links(tree, at, pushed))
        missing = missing - lost_forces(changed, places, (), q, qd, given["effort"], pushed)
        for k, motor in enumerate(changed.actuated):
            missing[motor] = missing[motor] - given["effort"][k]
        held = changed.closures.jacobian(at, jacobians(tree, at))
        return {"missing": missing[changed.free], "rows": held[:, changed.free]}

    found = over_rows(outputs, rows, _numbers(changed))
    return found["rows"], found["missing"]


def joint_wrenches(
    robot: Robot, width: float, rows: Mapping[str, Array], chains: Sequence[BeamChain] = ()
) -> tuple[dict[str, Array], dict[int, Array]]:
    """With the multipliers of all rows: of each joint and closure its name with force and moment.

    Then the signals of the elements of some beams, by their links.
    """
    changed = prepared(robot, "joint_wrenches", Options(friction_width=width))

    def outputs(given: Inputs) -> dict[str, Array]:
        tree, _, qd, at, pushed = _state(changed, given)
        shown, acting = closure_loads(changed, at, given["multipliers"])
        external = on_links(tree, at, pushed)
        add_wrenches(external, acting)
        moving = motion(tree, at, qd, given["accelerations"], -tree.gravity)
        found = newton_euler(tree, at, moving, external)
        joints = {link.name: (found.f[j], found.m[j]) for j, link in enumerate(tree.links) if has_reaction(link)}
        inside: dict[str, Array] = {}
        for chain in chains:
            own = element_signals_of(tree, at, moving, found, chain, pushed)
            inside |= {f"{INSIDE}{j}": signals for j, signals in own.items()}
        return {name: np.concatenate(parts) for name, parts in {**joints, **shown}.items()} | inside

    found = over_rows(outputs, rows, _numbers(changed))
    elements = {int(name.removeprefix(INSIDE)): found.pop(name) for name in list(found) if name.startswith(INSIDE)}
    return found, elements


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
