"""The inverse model of the Puma 560: parflex, CasADi's C of the same recursion, Pinocchio's RNEA."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from kernels import Contest, ungrouped_program
from report import Report
from robots import dense_puma, serial_states
from timing import STATES, Harness, python_loop

import parflex
from parflex.robot.load import JOINT_TERMS
from parflex.robot.robot import Robot

NAME = "puma inverse"
RNEA = "Pinocchio RNEA"


def run(report: Report, harness: Harness, folder: Path) -> None:
    """All ten parameters of each link, base parameters alone, and the numbers of the catalogue."""
    casadi = report.optional("casadi_peer", "CasADi")
    pinocchio = report.optional("pinocchio_peer", "Pinocchio")
    dense = dense_puma()
    for label, robot, grouped in (
        ("all parameters", dense, False),
        ("base parameters", dense, True),
        ("catalogue", parflex.load("puma560"), True),
    ):
        benchmark = f"{NAME}, {label}"
        report.progress(f"{benchmark}: tracing and compiling")
        x = serial_states(robot, STATES)
        contest = Contest(report, harness, benchmark, x, _known(robot, x), folder)
        contest.add_ours(
            "parflex",
            parflex.model(robot, "inverse", without=JOINT_TERMS).program
            if grouped
            else ungrouped_program(robot, "inverse"),
        )
        if casadi is not None:
            contest.add_casadi("CasADi C", casadi, casadi.expressions(robot, "inverse", grouped=grouped))
        if pinocchio is not None:
            peer = pinocchio.Serial(robot)
            error = contest.error(np.array([peer.inverse(row) for row in x]))
            call, nothing = (python_loop(call) for call in peer.calls(x[0]))
            contest.add_binding(RNEA, call, nothing, error, "calibration")
        contest.run()
        report.compare(benchmark, "parflex, scalar", "CasADi C")
        report.compare(benchmark, "parflex, batched", "CasADi C")
        report.compare(benchmark, "parflex, scalar", RNEA)
        report.compare(benchmark, "parflex, batched", RNEA)
        report.compare(benchmark, "parflex, C by gcc", "CasADi C")


def _known(robot: Robot, x: np.ndarray) -> np.ndarray:
    """Efforts by the NumPy recursion on the bodies as they are."""
    from parflex.recursion.dynamics import newton_euler
    from parflex.recursion.kinematics import motion, pose

    rows = []
    for row in x:
        q, qd, qdd = np.split(row, 3)
        at = pose(robot.tree, q)
        rows.append(newton_euler(robot.tree, at, motion(robot.tree, at, qd, qdd, -robot.tree.gravity)).forces)
    return np.array(rows)
