"""The Gough-Stewart robot, direct and inverse: parflex, Pinocchio, MuJoCo, CasADi's C of the same recursion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from kernels import Contest
from report import Report
from robots import physical_gough_stewart, platform_states
from timing import STATES, Harness, python_loop

import parflex
from parflex.robot.load import JOINT_TERMS

DIRECT, INVERSE = "gough-stewart direct", "gough-stewart inverse"
CONSTRAINT, FORWARD = "Pinocchio constraintDynamics", "MuJoCo mj_forward"
PARTS = "Pinocchio rnea, Jacobians, solve"


def run_direct(report: Report, harness: Harness, folder: Path) -> None:
    """Acceleration of the platform from its pose, twist and the forces of the legs."""
    casadi = report.optional("casadi_peer", "CasADi")
    pinocchio = report.optional("pinocchio_peer", "Pinocchio")
    mujoco = report.optional("mujoco_peer", "MuJoCo")
    robot, physical = parflex.load("gough-stewart"), physical_gough_stewart()
    states = platform_states(robot, STATES)
    known = np.array([np.concatenate([state.a, state.al]) for state in states])
    report.progress(f"{DIRECT}: tracing and compiling")
    contest = Contest(report, harness, DIRECT, np.array([state.direct_input for state in states]), known, folder)
    contest.add_ours("parflex", parflex.model(robot, "direct", without=JOINT_TERMS).program)
    if casadi is not None:
        contest.add_casadi("CasADi C", casadi, casadi.leanest(robot, "direct", casadi.own_solve))
    if pinocchio is not None:
        peer = pinocchio.GoughStewart(physical)
        call, nothing = (python_loop(call) for call in peer.direct_calls(states[0]))
        contest.add_binding(
            CONSTRAINT, call, nothing, contest.error(np.array([peer.direct(state) for state in states]))
        )
    if mujoco is not None:
        world = mujoco.GoughStewart(physical)
        error = contest.error(np.array([world.direct(state) for state in states]))
        call, nothing = (python_loop(call) for call in world.calls(states[0]))
        contest.add_binding(FORWARD, call, nothing, error, "soft loops")
    contest.run()
    report.compare(DIRECT, "parflex, scalar", CONSTRAINT)
    report.compare(DIRECT, "parflex, scalar", FORWARD)
    report.compare(DIRECT, "parflex, scalar", "CasADi C")
    for peer_name in (CONSTRAINT, FORWARD, "CasADi C"):
        report.compare(DIRECT, "parflex, batched", peer_name)
    report.compare(DIRECT, "parflex, C by gcc", "CasADi C")


def run_inverse(report: Report, harness: Harness, folder: Path) -> None:
    """Forces of the legs from the motion of the platform."""
    casadi = report.optional("casadi_peer", "CasADi")
    pinocchio = report.optional("pinocchio_peer", "Pinocchio")
    robot = parflex.load("gough-stewart")
    states = platform_states(robot, STATES)
    known = np.array([state.effort for state in states])
    report.progress(f"{INVERSE}: tracing and compiling")
    contest = Contest(report, harness, INVERSE, np.array([state.inverse_input for state in states]), known, folder)
    contest.add_ours("parflex", parflex.model(robot, "inverse", without=JOINT_TERMS).program)
    if casadi is not None:
        contest.add_casadi("CasADi C", casadi, casadi.leanest(robot, "inverse", casadi.own_solve))
        unsafe = casadi.leanest(robot, "inverse", casadi.unpivoted_solve)
        contest.add_casadi("CasADi C without pivots", casadi, unsafe)
    if pinocchio is not None:
        peer = pinocchio.GoughStewart(physical_gough_stewart())
        error = contest.error(np.array([peer.inverse(state) for state in states]))
        for part, calls in peer.inverse_parts(states[0]).items():
            call, nothing = (python_loop(call) for call in calls)
            contest.add_binding(f"Pinocchio: {part}", call, nothing, error)
    times = contest.run()
    if pinocchio is not None:
        total = np.sum([rounds for name, rounds in times.items() if name.startswith("Pinocchio: ")], axis=0)
        report.timing(INVERSE, PARTS, total, error=error, note="the parts in one round")
    for peer_name in (PARTS, "CasADi C", "CasADi C without pivots"):
        report.compare(INVERSE, "parflex, scalar", peer_name)
        report.compare(INVERSE, "parflex, batched", peer_name)
    report.compare(INVERSE, "parflex, C by gcc", "CasADi C without pivots")
