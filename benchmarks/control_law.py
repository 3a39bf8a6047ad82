"""The extended control law of the planar robot of three legs: compiled, as NumPy recursion, and CasADi's C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from kernels import Contest
from report import Report
from robots import dense_puma, serial_states
from timing import STATES, Harness, python_loop

import parflex
from parflex.codegen.model import Model
from parflex.formulations.base import ModelRequest
from parflex.formulations.redundant_sensors import RedundantSensorFormulation, redundant_effort, redundant_sets
from parflex.robot.load import JOINT_TERMS, acting_robot
from parflex.robot.robot import Robot

ROBOT, MODE = "3rrr", "+-+"
RNEA = "Pinocchio RNEA of the Puma"


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Law and model; measured joints off the closed pose by a hundredth of a radian, as wrong lengths leave them."""
    robot = parflex.load(ROBOT, working_mode=MODE)
    _law(report, harness, folder, robot)
    _model(report, harness, folder, robot)


def _states(robot: Robot, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """All positions near home, and as many groups of values of motors and sensed joints."""
    rng = np.random.default_rng(3)
    q = robot.home + rng.uniform(-0.01, 0.01, (STATES, robot.tree.nq))
    return q, rng.uniform(-1, 1, (groups, STATES, len(robot.actuated) + len(robot.sensed)))


def _law(report: Report, harness: Harness, folder: Path, robot: Robot) -> None:
    benchmark = f"extended law, {ROBOT}"
    report.progress(f"{benchmark}: tracing and compiling")
    law = parflex.model(robot, "extended-law", without=JOINT_TERMS)
    form = redundant_sets(acting_robot(robot, JOINT_TERMS))
    formulation = RedundantSensorFormulation(form.robot, form, question=ModelRequest("extended-law"))
    q, (qd, off, rate, acceleration) = _states(robot, 4)
    reference = q[:, form.positions] + 0.01 * off
    gains = law.parameters["Kp"], law.parameters["Kv"]

    def plain(k: int) -> np.ndarray:
        return formulation.law((q[k], qd[k]), (reference[k], rate[k], acceleration[k]), *gains)

    x = np.hstack([q, qd, reference, rate, acceleration])
    contest = Contest(report, harness, benchmark, *_with_constants(law, x, plain), folder)
    main = law.program.split()[1]  # the gains come in as the last inputs
    contest.add_ours("parflex", replace(main, variables=main.inputs, parameters=()))
    contest.add_binding("NumPy recursion", python_loop(lambda: plain(0)), python_loop(lambda: None), 0.0)
    pinocchio = report.optional("pinocchio_peer", "Pinocchio")
    if pinocchio is not None:
        puma = dense_puma()
        peer = pinocchio.Serial(puma)
        call, nothing = (python_loop(call) for call in peer.calls(serial_states(puma, 1)[0]))
        contest.add_binding(RNEA, call, nothing, 0.0, "calibration")
    contest.run()
    report.compare(benchmark, "parflex, scalar", "NumPy recursion")


def _with_constants(law: Model, x: np.ndarray, plain: Callable[[int], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of inputs with what the setup makes of the gains behind them, and the right efforts."""
    constants = law.machine_code()[1]
    rows = np.hstack([x, np.broadcast_to(constants, (len(x), len(constants)))])
    return rows, np.array([plain(k) for k in range(len(x))])


def _model(report: Report, harness: Harness, folder: Path, robot: Robot) -> None:
    """Without the feedback, which CasADi's tracer has no arctangent for."""
    benchmark = f"redundant model, {ROBOT}"
    report.progress(f"{benchmark}: tracing and compiling")
    form = redundant_sets(acting_robot(robot, JOINT_TERMS))
    q, (qd, qdd) = _states(robot, 2)
    known = np.array([redundant_effort(form, *rows) for rows in zip(q, qd, qdd, strict=True)])
    contest = Contest(report, harness, benchmark, np.hstack([q, qd, qdd]), known, folder)
    contest.add_ours("parflex", parflex.model(robot, "redundant", without=JOINT_TERMS).program)
    casadi = report.optional("casadi_peer", "CasADi")
    if casadi is not None:
        contest.add_casadi("CasADi C", casadi, casadi.leanest(robot, "redundant", casadi.own_solve))
    contest.run()
    report.compare(benchmark, "parflex, scalar", "CasADi C")
    report.compare(benchmark, "parflex, batched", "CasADi C")
