"""Bodies given by modes against Lagrange's equations, differentiated from the kinetic energy of their nodes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from conftest import CATALOGUE
from support.comparison import largest, order_of, positions
from support.flexible_states import batch, error_of, reduced
from support.modal_robots import (
    ARM,
    CHAIN,
    GRAVITY,
    LOOP,
    OTHER,
    PRINTED_STIFFNESS,
    TOOL,
    TOOL_FRAME,
    arms,
    lagrange,
    with_platform,
)
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import Modes, invented, read_modes
from support.oracles.modal_lagrange import ModalEnergyModel
from support.traced import VERIFY, long

import parflex
from parflex import Configuration, Robot
from parflex.models.dynamics.forces import tree_forces
from parflex.recursion import mass_matrix, motion

STATES = 20 if VERIFY else 3
SIZE = 0.1  # of modal coordinates: centimetres at the nodes, the static deflection of a plate of 15 mm
BEAMS = 2e-4  # m and rad at the ends of steel tubes
# robot, whether the modes carry no momentum, how much softer the body is: elastic forces then hide nothing
CASES = {
    "free modes": ("gough-stewart", True, 1.0),
    "free modes, soft": ("gough-stewart", True, 1e-6),
    "other modes, soft": ("gough-stewart", False, 1e-6),
    "on beams": ("gough-stewart-beams", True, 1.0),
    "a plate on beams": ("gough-stewart-elastic", True, 1.0),
    "with a tool on a corner, soft": ("gough-stewart", True, 1e-6),
    "links in a row": (CHAIN, False, 1e-3),
    "links in a loop, hinged": (LOOP.replace("{joint}", "revolute"), False, 1e-3),
    "links in a loop, welded": (LOOP.replace("{joint}", "welded"), False, 1e-3),
}
ALL = [pytest.param(case, marks=long if case == "a plate on beams" else []) for case in CASES]
TOLERANCE = 1e-11  # asked for; rounding of sums over nodes and of systems of condition 1e4 leaves 1e-13


def platform(free: bool, softer: float, count: int = 10) -> Modes:
    modes = invented(HEXAGON, count, seed=1 + free, free=free)
    return replace(modes, stiffnesses=softer * modes.stiffnesses)


@cache
def pair(case: str) -> tuple[Robot, ModalEnergyModel]:
    """A robot and its Lagrangian."""
    name, free, softer = CASES[case]
    if "links" in case:
        two = [invented(places, 7, seed, False, mass=5.0, held="root") for seed, places in enumerate((ARM, OTHER))]
        return arms(Path(mkdtemp()), name, *(replace(one, stiffnesses=softer * one.stiffnesses) for one in two))
    if name == "gough-stewart-elastic":
        modes = read_modes(CATALOGUE / "hexagon-plate.npz")
        modes = replace(modes, stiffnesses=np.array(PRINTED_STIFFNESS), damping_ratios=np.full(10, 0.4))
        robot = parflex.load(name, settings={"gravity": GRAVITY})
        return robot, lagrange("gough-stewart-beams", {"platform": modes})
    modes = platform(free, softer)
    if "tool" in case:
        robot = with_platform(Path(mkdtemp()), name, modes, extra=TOOL)
        return robot, lagrange(name, {"platform": modes}, more=[TOOL_FRAME])
    return with_platform(Path(mkdtemp()), name, modes), lagrange(name, {"platform": modes})


@cache
def states(case: str) -> list[dict]:
    """Bent, closed positions in motion, with efforts, and all that follows by Lagrange's equations."""
    robot, oracle = pair(case)
    tree, rng, found = robot.tree, np.random.default_rng(3), []
    for _ in range(STATES):
        size = np.full(tree.n, 0.1)
        size[list(tree.elastic)] = [SIZE if "mode" in tree.rate_names[k] else BEAMS for k in tree.elastic]
        joints = [k for k in robot.free if "mode" not in tree.rate_names[k]]
        dependent = robot.free if "links" in case else np.array(joints)
        start = tree.moved(robot.home, rng.uniform(-1, 1, tree.n) * size)
        q, error = robot.assembler.newton(start, dependent, list(robot.closures.loops))
        assert error < 1e-12
        found.append(_moving(robot, oracle, Configuration(robot, q), rng))
    assert max(largest(motion(tree, one["at"].at, one["rates"], one["rates"]).w) for one in found) > 3  # rad/s
    return found


def _moving(robot: Robot, oracle: ModalEnergyModel, at: Configuration, rng: np.random.Generator) -> dict:
    order, named = order_of(robot, oracle), positions(at)
    chosen = dict(zip(at.independent_names, rng.uniform(-5, 5, len(at.independent_names)), strict=True))
    qd, _ = oracle.motion(named, chosen, dict.fromkeys(chosen, 0.0))
    efforts = dict(zip(robot.actuated_names, rng.uniform(-300, 300, len(robot.actuated)), strict=True))
    M, c = oracle.mass_matrix_and_bias(named, qd)
    _, still = oracle.mass_matrix_and_bias(named, 0 * qd)
    qdd = oracle.accelerations(named, qd, efforts)
    return {
        "at": at,
        "rates": qd[order],
        "M": M[np.ix_(order, order)],
        "at rest": still[order],
        "moving": (c - still)[order],
        "efforts": efforts,
        "accelerations": qdd[order],
    }


@pytest.mark.parametrize("case", ALL)
def test_mass_matrix_and_forces_are_those_of_the_nodes(case, figure):
    (robot, _), softer = pair(case), CASES[case][2]
    errors = {"mass matrix": 0.0, "at rest": 0.0, "moving": 0.0}
    for state in states(case):
        at, still = state["at"], np.zeros(robot.tree.n)
        rest = tree_forces(at, still, still)
        found = {"mass matrix": mass_matrix(robot.tree, at.at), "at rest": rest}
        found["moving"] = tree_forces(at, state["rates"], still) - rest
        wanted = {"mass matrix": state["M"], "at rest": state["at rest"], "moving": state["moving"]}
        for what, values in found.items():
            errors[what] = max(errors[what], largest(values - wanted[what]) / largest(wanted[what]))
    for what, error in errors.items():
        figure(f"{case}: {what} against nodes", error)
    assert errors["mass matrix"] < 1e-13 and errors["at rest"] < 1e-13  # sums of some hundred products
    # elastic forces of 1e5 N and more are subtracted to see those of motion, which are 1e3 N
    assert errors["moving"] < (1e-13 if softer < 1 else TOLERANCE)


@pytest.mark.parametrize("case", ALL)
def test_closed_robots_accelerate_as_by_lagrange(case, figure):
    _, oracle = pair(case)
    worst = loops = 0.0
    for state in states(case):
        found = reduced(state["at"], state["rates"], np.array(list(state["efforts"].values())))
        worst = max(worst, largest(found - state["accelerations"]) / largest(state["accelerations"]))
        loops = max(loops, largest(oracle.closure_residual(positions(state["at"]))))
    figure(f"{case}: accelerations against Lagrange", worst, TOLERANCE)
    assert worst < TOLERANCE
    assert loops < 1e-12  # both say that the loops are closed


@pytest.mark.few
@pytest.mark.parametrize("case", ALL)
def test_public_direct_and_inverse_models_are_those_of_lagrange(case, figure):
    """The functions take rates of motors; the body is bent but does not vibrate beyond what these ask for."""
    robot, oracle = pair(case)
    order, worst = order_of(robot, oracle), {"direct": 0.0, "inverse": 0.0}
    for state in states(case):
        at, q = state["at"], positions(state["at"])
        rates = dict(zip(robot.actuated_names, map(float, state["rates"][list(robot.actuated)]), strict=True))
        direct = parflex.forward_dynamics(robot, at, rates, state["efforts"])
        qd = np.empty(robot.tree.n)
        qd[order] = direct.rates
        expected = oracle.accelerations(q, qd, state["efforts"])[order]
        worst["direct"] = max(worst["direct"], largest(direct.accelerations - expected) / largest(expected))
        wanted = dict(zip(robot.actuated_names, map(float, state["accelerations"][list(robot.actuated)]), strict=True))
        inverse = parflex.inverse_dynamics(robot, at, rates, wanted)
        expected, needed = oracle.driven(q, qd, wanted)
        missed = [inverse.efforts[name] - needed[name] for name in needed]
        # efforts are what is left of the inertia of everything that moves with a motor
        inertia = np.abs(state["M"][list(robot.actuated)]) @ np.abs(expected[order])
        worst["inverse"] = max(
            worst["inverse"],
            largest(inverse.accelerations - expected[order]) / largest(expected),
            largest(missed) / max(largest(list(needed.values())), largest(inertia)),
        )
    for what, error in worst.items():
        figure(f"{case}: {what} model against Lagrange", error, TOLERANCE)
    assert max(worst.values()) < TOLERANCE


PROGRAMS = [(case, model) for case in [*CASES][4:] for model in ("direct", "inverse")]
# of links in a loop modes depend on the motors: the choice of coordinates matters; links in a row are written in pieces
SHORT = [("links in a loop, hinged", "inverse"), ("links in a row", "direct")]


@pytest.mark.parametrize(
    ("case", "model"), [pytest.param(*one, marks=[] if one in SHORT else long) for one in PROGRAMS]
)
def test_compiled_programs_give_the_numbers_of_lagrange(case, model, figure):
    robot, _ = pair(case)
    some = []
    for state in states(case):
        inertia = np.abs(state["M"][list(robot.actuated)]) @ np.abs(state["accelerations"])
        sizes = {"effort": max(300.0, largest(inertia)), "qdd": largest(state["accelerations"])}
        effort = np.array(list(state["efforts"].values()))
        some.append(state | {"q": state["at"].q, "effort": effort, "sizes": sizes})
    program = parflex.model(robot, model, include=("motor-inertia",))
    given, wanted = batch(some, program, robot)
    error = error_of(program(**given), wanted, some)
    figure(f"{case} {model}: program against Lagrange", error, TOLERANCE)
    assert error < TOLERANCE
