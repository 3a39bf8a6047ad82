"""Reactions: every body obeys Newton and Euler, multipliers are those of Lagrange, and no more is claimed."""

from __future__ import annotations

import numpy as np
import pytest
from support.catalogue import CATALOGUE, RIGID
from support.comparison import after, error_against, largest, nearby_states, order_of, positions
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot
from support.robots import INVENTED, load_robot, robot_file
from support.states import Draws, random_states

import parflex
from parflex.recursion.dynamics import joint_forces
from parflex.recursion.kinematics import motion

ROBOTS = [*RIGID, *INVENTED]
FEW = pytest.mark.few("3rrr", "two-bodies")
OVER_CONSTRAINED = ("3-prrr", "bricard")
PUSH = np.array([12.0, -7.0, 5.0, 1.5, -2.0, 3.0])


def states_of(name, count=4):
    """The file of a robot and some states of it."""
    if name in INVENTED:
        return robot_file(name), list(nearby_states(load_robot(name), count, 41))
    path = CATALOGUE / f"{name}.toml"
    robot = parflex.load(path)
    return path, list(random_states(robot, count, 41, Draws(), spread=0.1 * robot.tree.length))


def with_reactions(state):
    robot = state.configuration.robot
    push = PUSH * ([1, 1, 0, 0, 0, 1] if robot.tree.planar else 1)
    load = {robot.tree.end_effector: push}
    given = (state.configuration, state.velocity, state.acceleration)
    return parflex.inverse_dynamics(robot, *given, wrench=load, reactions=True), push


def momenta(configuration, qd):
    """Linear momentum and angular momentum about the origin of the world, of each link."""
    tree, at = configuration.robot.tree, configuration.at
    moving, rows = motion(tree, at, qd, np.zeros(tree.n)), []
    for j, link in enumerate(tree.links):
        body, R, v, w = link.body, at.rotation[j], moving.v[j], moving.w[j]
        linear = R @ (body.m * v + np.cross(w, body.S))
        rows.append([*linear, *(np.cross(at.position[j], linear) + R @ (body.I @ w + np.cross(body.S, v)))])
    return np.array(rows)


def about_world(force, moment, place):
    """Force and moment about the origin of the world of a wrench that acts at a place."""
    return np.array([*force, *(moment + np.cross(place, force))])


def wrenches_on_links(result, push):
    """All that joints, closures, weight and the push put on each link, in the world, from the reported reactions."""
    configuration, tree = result.configuration, result.robot.tree
    at, closures = configuration.at, result.robot.closures
    total = np.zeros((len(tree.links), 6))
    for j, link in enumerate(tree.links):
        weight = link.body.m * tree.gravity
        total[j] += [*weight, *np.cross(link.body.m * at.position[j] + at.rotation[j] @ link.body.S, tree.gravity)]
        if link.name in result.reactions["joints"]:
            shown = result.reactions["joints"][link.name]
            acting = about_world(at.rotation[j] @ shown["force"], at.rotation[j] @ shown["moment"], at.position[j])
            total[j] += acting
            if link.parent >= 0:
                total[link.parent] -= acting
    for loop in closures.loops:
        R1, P2 = at.of(loop.first)[0], at.of(loop.second)[1]
        shown = result.reactions["closures"][loop.name]
        acting = about_world(R1 @ shown["force"], R1 @ shown["moment"], P2)
        for place, sign in ((loop.second, 1), (loop.first, -1)):
            if place.link >= 0:
                total[place.link] += sign * acting
    hand = tree.places[tree.end_effector]
    total[hand.link] += about_world(push[:3], push[3:], at.of(hand)[1])
    return total


@FEW
@pytest.mark.parametrize("name", ROBOTS)
def test_every_body_moves_as_the_wrenches_on_it_say(name, figure):
    worst, h = 0.0, 1e-6
    for state in states_of(name)[1]:
        result, push = with_reactions(state)
        ends = [momenta(*after(state.configuration, result.rates, result.accelerations, t)) for t in (h, -h)]
        growth, acting = (ends[0] - ends[1]) / (2 * h), wrenches_on_links(result, push)
        # a planar robot says nothing of the rest
        rows = [0, 1, 5] if state.configuration.robot.tree.planar else range(6)
        worst = max(worst, largest((growth - acting)[:, rows]) / max(largest(growth), largest(acting)))
    figure(f"{name}: balance of every body with its reactions, largest relative error", worst, 1e-7)
    # central differences at 10 rad/s: truncation (1e-5)^2 = 1e-10, rounding 1e-16/1e-6 = 1e-10, a hundred terms
    assert worst < 1e-7


@FEW
@pytest.mark.parametrize("name", ROBOTS)
def test_a_joint_gives_along_its_axis_only_what_its_motor_and_its_terms_give(name):
    for state in states_of(name, 2)[1]:
        result, _ = with_reactions(state)
        tree, q = result.robot.tree, state.configuration.q
        terms = joint_forces(tree, q, result.rates, result.accelerations)
        for coupling in result.robot.description.coupling:  # gears act about the axes as motors do
            effort = result.reactions["couplings"][coupling.name]["effort"]
            for joint, ratio in {coupling.joint: 1.0, **{other: -n for other, n in coupling.terms.items()}}.items():
                terms[tree.rate_names.index(joint)] -= ratio * effort
        size = max(largest(shown["force"]) + largest(shown["moment"]) for shown in result.reactions["joints"].values())
        for link in tree.links:
            if link.joint.kind in ("free", "planar"):
                continue
            shown = result.reactions["joints"][link.name]
            along = link.joint.S_v.T @ shown["force"] + link.joint.S_w.T @ shown["moment"]
            motor = np.array([result.efforts.get(tree.rate_names[k], 0.0) for k in range(link.v.start, link.v.stop)])
            # rounding times the condition of the closures, at most thousands
            assert largest(along - (motor - terms[link.v])) < 1e-10 * size


@FEW
@pytest.mark.parametrize("name", [name for name in ROBOTS if name not in (*OVER_CONSTRAINED, "puma560", "rx90")])
def test_closure_wrenches_are_the_multipliers_of_lagrange(name, figure):
    path, states = states_of(name)
    oracle, worst = EnergyModel(read_robot(path)), 0.0
    for state in states:
        result, push = with_reactions(state)
        robot, q = result.robot, positions(state.configuration)
        back = np.argsort(order_of(robot, oracle))
        mass, bias = oracle.mass_matrix_and_bias(q, result.rates[back])
        missing = mass @ result.accelerations[back] + bias
        missing -= oracle.frame_jacobian(q, robot.tree.end_effector).T @ push
        for motor, effort in result.efforts.items():
            missing[oracle.coordinates.index(motor)] -= effort
        J = oracle.closure_jacobian(q)[0]
        multipliers = np.linalg.lstsq(J.T, missing, rcond=None)[0]
        for closure, rows in zip(oracle.data.closures, robot.closures.slices(), strict=True):
            shown = result.reactions["closures"][closure.name]
            assert not shown["undetermined"]
            first, second = (oracle.frame_pose(q, end) for end in (closure.first, closure.second))
            force, moment = (first[:3, :3] @ shown[part] for part in ("force", "moment"))
            gap = second[:3, 3] - first[:3, 3]
            on_second = oracle.frame_jacobian(q, closure.second).T @ [*force, *moment]
            on_first = oracle.frame_jacobian(q, closure.first).T @ [*force, *(moment + np.cross(gap, force))]
            error = largest(on_second - on_first - J[rows].T @ multipliers[rows])
            worst = max(worst, error / largest(missing))
    figure(f"{name}: closure wrenches against the multipliers of Lagrange, largest relative error", worst, 1e-10)
    assert worst < 1e-10  # rounding times the condition of the closures, at most thousands
    joints = result.reactions["joints"].values()
    assert not any(shown["undetermined"] for shown in joints)


@pytest.mark.parametrize("name", OVER_CONSTRAINED)
def test_a_robot_that_is_over_constrained_everywhere_is_marked_everywhere(name):
    for state in states_of(name, 2)[1]:
        result, _ = with_reactions(state)
        assert any("over-constrained" in warning for warning in result.warnings)
        assert all(shown["undetermined"] for shown in result.reactions["joints"].values())
        assert all(shown["undetermined"] for shown in result.reactions["closures"].values())


def test_only_what_a_loop_strains_is_marked_and_what_is_known_is_right():
    """The pin of a flat loop in space has the forces of the planar robot in the plane; the others are not known."""
    space, plane = (parflex.load(robot_file("flat-loop"), settings={"motion": kind}) for kind in ("spatial", "planar"))
    assert len(space.mobility.redundant) == 3
    motion_given = {"crank": 3.0, "arm": -2.0}
    flat = parflex.inverse_dynamics(plane, "home", motion_given, motion_given, reactions=True)
    full = parflex.inverse_dynamics(space, "home", motion_given, motion_given, reactions=True)
    marks = {name: shown["undetermined"] for name, shown in full.reactions["joints"].items()}
    assert marks == {"crank": True, "coupler": True, "rocker": True, "arm": False}
    assert full.reactions["closures"]["pin"]["undetermined"]
    assert not flat.reactions["closures"]["pin"]["undetermined"]
    ours, theirs = (np.array(result.reactions["closures"]["pin"]["force"])[:2] for result in (full, flat))
    assert largest(ours - theirs) < 1e-11 * largest(theirs)  # rounding times the condition of the closure, some dozens
    for name, effort in flat.efforts.items():
        assert abs(effort - full.efforts[name]) < 1e-11 * abs(effort)  # as above
    state = next(nearby_states(space, 1, 3))
    assert error_against(EnergyModel(read_robot(robot_file("flat-loop"))), state) < 1e-10  # as in the other comparisons


def test_the_direct_model_tells_the_same_reactions():
    for name in ("delta", "3rrr", "two-bodies"):
        state = states_of(name, 1)[1][0]
        robot = state.configuration.robot
        first, push = with_reactions(state)
        load = {robot.tree.end_effector: push}
        rates = {name: first.rates[k] for name, k in zip(robot.actuated_names, robot.actuated, strict=True)}
        second = parflex.forward_dynamics(robot, state.configuration, rates, first.efforts, wrench=load, reactions=True)
        for kind in ("joints", "closures"):
            for part, shown in first.reactions[kind].items():
                other = second.reactions[kind][part]
                size = largest(shown["force"]) + largest(shown["moment"]) + 1
                # rounding times the conditions of M and of the closures
                assert largest(np.subtract(shown["force"], other["force"])) < 1e-9 * size
                assert largest(np.subtract(shown["moment"], other["moment"])) < 1e-9 * size
