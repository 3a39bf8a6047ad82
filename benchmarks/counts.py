"""Operators beside those of peers: SYMORO as published, `casadi.cse` on the same recursion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report import Report
from timing import Harness

import parflex
from parflex.robot.load import JOINT_TERMS

SYMORO = {"rx90": 513, "puma560": 568}  # as published: numeric geometry, symbolic base parameters, gravity, no friction
BRIOT = 2842  # Briot2014: the inverse program of the DualEMPS, 1287 additions and 1555 products in 1041 variables
SOLVE = 191  # LU 6 x 6 with one right-hand side


def run(report: Report, harness: Harness, folder: Path) -> None:
    """`+ - * /` of one call; sine, cosine, square roots and signs apart."""
    casadi = report.optional("casadi_peer", "CasADi")
    for name, published in SYMORO.items():
        benchmark = f"operators, {name} inverse"
        report.progress(benchmark)
        robot = parflex.load(name)
        own = parflex.model(robot, "inverse", parameters="base", without=JOINT_TERMS).counts
        _keep(report, benchmark, "parflex", own, f"{own['setup']} more once for the parameters")
        report.figure(benchmark, "SYMORO", published, "operators", note="published")
        report.compare(benchmark, "parflex", "SYMORO")
        if casadi is not None:
            _, outputs = casadi.expressions(robot, "inverse", parameters="base")
            _keep(report, benchmark, "casadi.cse", casadi.counts(outputs), "same recursion, grouped alike")
            report.compare(benchmark, "parflex", "casadi.cse")
    robot = parflex.load("gough-stewart")
    for model in ("inverse", "direct"):
        benchmark = f"operators, gough-stewart {model}"
        report.progress(benchmark)
        own = parflex.model(robot, model, without=JOINT_TERMS).counts
        solve = (
            f"{own['total'] - SOLVE} and {SOLVE} of the pivoted 6 x 6 solve" if model == "inverse" else "solve included"
        )
        _keep(report, benchmark, "parflex", own, solve)
        if casadi is None:
            continue
        _, outputs = casadi.leanest(robot, model, casadi.own_solve)
        _keep(
            report, benchmark, "casadi.cse", casadi.counts(outputs), "same recursion, its own solve where there is one"
        )
        report.compare(benchmark, "parflex", "casadi.cse")
        if model == "inverse":
            _, outputs = casadi.leanest(robot, model, casadi.unpivoted_solve)
            plain = "casadi.cse, no pivots"
            _keep(report, benchmark, plain, casadi.counts(outputs), "unsafe: wrong where leg 1 has no x component")
            report.compare(benchmark, "parflex", plain)
            before = casadi.counts(casadi.before_solve(robot))["total"]
            report.figure(benchmark, "casadi.cse, before the solve", before, "operators", note=f"LU 6 x 6 adds {SOLVE}")
    _bending(report, casadi)


def _bending(report: Report, casadi: Any) -> None:
    """The flexible robot: closed positions in, no friction, the elastic solve included."""
    robot = parflex.load("dualemps")
    for model in ("inverse", "direct"):
        benchmark = f"operators, dualemps {model}"
        report.progress(benchmark)
        own = parflex.model(robot, model, without=JOINT_TERMS).counts
        _keep(report, benchmark, "parflex", own, f"{own['variables']} variables")
        if model == "inverse":
            report.figure(benchmark, "Briot2014", BRIOT, "operators", note="published: 1041 variables")
            report.compare(benchmark, "parflex", "Briot2014")
        if casadi is not None:
            _, outputs = casadi.leanest(robot, model, casadi.own_solve)
            _keep(report, benchmark, "casadi.cse", casadi.counts(outputs), "same recursion")
            report.compare(benchmark, "parflex", "casadi.cse")


def _keep(report: Report, benchmark: str, name: str, counted: dict[str, int], note: str) -> None:
    parts = f"+- {counted['add']}, * {counted['mul']}, / {counted['div']}"
    report.figure(benchmark, name, counted["total"], "operators", note=f"{parts}; {note}")
