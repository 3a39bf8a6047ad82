"""The forms that programs are traced from, computed with plain numbers, against Lagrange's equations.

A program is a form over symbols: what a form gives for floats is what its program gives, but for the passes, which
other tests hold to their values. So every term of a form is proven here without the minutes of tracing and compiling.
Bodies are soft and bend far, that no term is too small to be seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import test_flexible_lagrange as beams
import test_modal_lagrange as modes
from support.comparison import largest
from support.forms_lagrange import BEHIND, STATES, held_from_behind

from parflex import Robot
from parflex.models.dynamics.reduced import reduced_equations
from parflex.models.forms.choice import motor_partition
from parflex.models.forms.form import Question
from parflex.models.forms.general_form import general_form
from parflex.models.forms.in_pieces.node_equations import accelerations_under, efforts_for, node_state
from parflex.models.forms.in_pieces.pieces import PREFERENCES, pieces, pieces_or_reason
from parflex.models.forms.on_legs import leg_equations
from parflex.models.forms.on_legs.platform_legs import PlatformMotion, end_masses_on_platform, find_legs
from parflex.recursion import motion, pose

TOLERANCE = 1e-10  # accelerations come out of systems whose condition is up to 1e6
IN_PIECES = [
    "on beams",
    "links in a row",
    "dualemps",
    "navaro",
    "gough-stewart-beams",
    "three-beam-legs",
    "rolled-beams",
    beams.MEAN,
]
IN_LOOPS = ["with a tool on a corner, soft", "links in a loop, hinged", "links in a loop, welded"]
ON_LEGS = ["free modes, soft", "other modes, soft"]


IN_PIECES += BEHIND


def robot_and_states(case: str) -> tuple[Robot, list[dict]]:
    """Soft robots in wild motion; efforts as arrays, and the sizes of what efforts and accelerations are made of."""
    if case in BEHIND:
        return held_from_behind(case)
    if case not in modes.CASES:
        return beams.pair(case, beams.SOFT)[0], beams.states(case, beams.SOFT)[:STATES]
    robot, found = modes.pair(case)[0], []
    for state in modes.states(case)[:STATES]:
        inertia = np.abs(state["M"][list(robot.actuated)]) @ np.abs(state["accelerations"])
        sizes = {"effort": max(300.0, largest(inertia)), "qdd": largest(state["accelerations"])}
        effort = np.array(list(state["efforts"].values()))
        found.append(state | {"q": state["at"].q, "effort": effort, "sizes": sizes})
    return robot, found


def worst(
    robot: Robot, states: list[dict], independent: np.ndarray, direct: Callable, inverse: Callable | None
) -> float:
    """Largest relative error of accelerations under efforts, and of efforts for accelerations of the motors."""
    errors = []
    for state in states:
        q, rates, wanted = state["q"], state["rates"][independent], state["accelerations"]
        errors.append(largest(direct(q, rates, state["effort"]) - wanted[independent]) / state["sizes"]["qdd"])
        if inverse is not None:
            effort, qdd = inverse(q, rates, wanted[list(robot.actuated)])
            errors.append(largest(effort - state["effort"]) / state["sizes"]["effort"])
            errors.append(largest(qdd - wanted[independent]) / state["sizes"]["qdd"])
    return max(errors)


@pytest.mark.few
@pytest.mark.parametrize("preferred", PREFERENCES)
@pytest.mark.parametrize("case", IN_PIECES)
def test_robots_in_pieces_move_as_by_lagrange(case, preferred, figure):
    robot, states = robot_and_states(case)
    form = pieces_or_reason(robot, preferred, at_any_cost=True)
    assert not isinstance(form, str), form
    error = worst(
        robot,
        states,
        form.partition.independent,
        lambda q, rates, tau: accelerations_under(node_state(form, q, rates), tau),
        lambda q, rates, wanted: efforts_for(node_state(form, q, rates), wanted),
    )
    figure(f"{case}, pieces by {preferred}, against Lagrange", error, TOLERANCE)
    assert error < TOLERANCE


@pytest.mark.parametrize(("case", "frame"), [("links in a row", "hand"), ("gough-stewart-beams", "platform")])
def test_wrenches_act_on_robots_in_pieces_as_on_the_tree(case, frame, figure):
    """Against the general reduction, whose wrenches are held against both oracles with rigid robots."""
    robot, states = robot_and_states(case)
    form, state = pieces(robot), states[0]
    load = {frame: np.array([80.0, -50.0, 30.0, 7.0, -9.0, 4.0])}
    independent, at = form.partition.independent, state["at"]
    M, c, b = reduced_equations(at, state["rates"], load)
    qdd = (at.J @ np.linalg.solve(M, at.J_a.T @ state["effort"] - c) + b)[independent]
    found = accelerations_under(node_state(form, state["q"], state["rates"][independent], (), load), state["effort"])
    error = largest(found - qdd) / largest(qdd)
    figure(f"{case}, pieces under a wrench, against the general reduction", error, TOLERANCE)
    assert error < TOLERANCE
    assert largest(qdd - state["accelerations"][independent]) > 1e-3 * largest(qdd)  # the wrench matters


@pytest.mark.parametrize("case", [*IN_LOOPS, "links in a row", "dualemps"])
def test_the_general_form_moves_as_by_lagrange(case, figure):
    robot, states = robot_and_states(case)
    assert (pieces(robot) is None) == (case in IN_LOOPS)
    form = general_form(robot, motor_partition(robot), Question("state-rates-driven"))
    error = worst(
        robot,
        states,
        form.partition.independent,
        lambda q, rates, tau: form.accelerations_under(form.moving(q, rates), tau),
        lambda q, rates, wanted: form.efforts_for(form.moving(q, rates), wanted),
    )
    figure(f"{case}, general form, against Lagrange", error, TOLERANCE)
    assert error < TOLERANCE


@pytest.mark.parametrize("end_masses", [False, True])
@pytest.mark.parametrize("case", ON_LEGS)
def test_flexible_platforms_on_legs_move_as_by_lagrange(case, end_masses, figure):
    robot, states = robot_and_states(case)
    form = find_legs(robot)
    assert not isinstance(form, str) and form.elastic is not None
    form = end_masses_on_platform(form) if end_masses else form
    tree, errors = robot.tree, []
    for state in states:
        at = pose(tree, state["q"])
        moving = motion(tree, at, state["rates"], state["accelerations"])
        link, R = tree.links[form.platform], at.rotation[form.platform]
        p, v, w, a, al = (
            at.position[form.platform],
            *(R @ part[form.platform] for part in (moving.v, moving.w, moving.a, moving.al)),
        )
        bent = state["q"][link.e], state["rates"][link.e_v]
        legs = [state["q"][[tree.links[j].q.start for j in leg.links]] for leg in form.legs]
        edd, sizes = state["accelerations"][link.e_v], state["sizes"]
        effort, modes = leg_equations.inverse(form, legs, PlatformMotion(R, p, v, w, a - tree.gravity, al, *bent))
        errors += [largest(effort - state["effort"]) / sizes["effort"], largest(modes - edd) / sizes["qdd"]]
        still = PlatformMotion(R, p, v, w, -tree.gravity, np.zeros(3), *bent)
        A, h, B, s = leg_equations.equations(form, legs, still)
        freedom = np.linalg.solve(A.astype(float), B.astype(float) @ state["effort"] - h.astype(float))
        errors.append(largest(freedom[:6] - np.concatenate([a, al])) / sizes["qdd"])
        errors.append(largest(leg_equations.mode_accelerations(form, still, freedom, s) - edd) / sizes["qdd"])
    figure(
        f"{case}, legs{', their ends on the platform' if end_masses else ''}, against Lagrange", max(errors), TOLERANCE
    )
    assert max(errors) < TOLERANCE
