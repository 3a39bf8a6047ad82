"""A flexible platform: closed form against the general reduction, time of both models, a second of simulation.

The general form takes the positions of all joints as given, and its inverse drives the motors; the closed form finds
the joints of the legs itself, and its inverse drives the platform.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np
from kernels import Contest, GraphTracer
from report import Report
from robots import dense_puma, serial_states
from timing import STATES, Harness, python_loop

import parflex
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.model import Model
from parflex.codegen.optimise import make_program
from parflex.codegen.options import Options, prepared_robot
from parflex.codegen.program import Program
from parflex.dynamics.dynamics import state_at
from parflex.formulations.base import ModelRequest
from parflex.formulations.general import general_formulation
from parflex.robot.configuration import Configuration
from parflex.robot.load import JOINT_TERMS, acting_configuration
from parflex.robot.program_rates import motor_partition
from parflex.robot.robot import Robot

ROBOT, TOUR, TIME = "gough-stewart-flexible", "tour", 4.2
RNEA = "Pinocchio RNEA of the Puma"
GENERAL, GIVEN = "general form, scalar", "joint positions given"
ROUNDS = 5


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Both models, and the time loop."""
    robot = parflex.load(ROBOT)
    states = [_state(robot, np.random.default_rng(seed)) for seed in range(STATES)]
    for model in ("direct", "inverse"):
        _model(report, harness, folder, robot, model, states)
    _simulation(report, robot)


def _state(robot: Robot, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A closed, bent position in motion under efforts: all that a program may be given or must give."""
    tree = robot.tree
    step = rng.uniform(-0.05, 0.05, tree.n)
    q, _ = robot.assembler.newton(tree.moved(robot.home, step), robot.free, list(robot.closures.loops))
    at = Configuration(robot, q)
    rates = at.J @ rng.uniform(-2, 2, at.J.shape[1])
    state = state_at(acting_configuration(robot, at, JOINT_TERMS), rates)
    M, c, b = state.mass_matrix, state.c, state.bias
    effort = rng.uniform(-1000, 1000, len(robot.actuated))
    accelerations = at.J @ np.linalg.solve(M, at.J_a.T @ effort - c) + b
    link = tree.links[tree.number("platform")]
    R, modes = at.at.rotation[tree.number("platform")], slice(link.e_v.start, link.e_v.stop)
    return {
        "q": q,
        "rates": rates,
        "accelerations": accelerations,
        "effort": effort,
        "position": at.at.position[tree.number("platform")],
        "rotation": R.ravel(),
        "elastic": q[link.e],
        "elastic_rate": rates[modes],
        "velocity": R @ rates[:3],
        "angular_velocity": R @ rates[3:6],
        "acceleration": R @ accelerations[:3],
        "angular_acceleration": R @ accelerations[3:6],
        "elastic_acceleration": accelerations[modes],
    }


def _rows(states: list[dict[str, np.ndarray]], names: list[str]) -> np.ndarray:
    return np.array([np.concatenate([state[name] for name in names]) for state in states])


def _model(
    report: Report, harness: Harness, folder: Path, robot: Robot, model: str, states: list[dict[str, np.ndarray]]
) -> None:
    benchmark = f"{ROBOT} {model}"
    report.progress(f"{benchmark}: tracing and compiling")
    ours: Model = parflex.model(robot, model, without=JOINT_TERMS)
    x, known = _rows(states, list(ours.inputs)), _rows(states, list(ours.outputs))
    contest = Contest(report, harness, benchmark, x, known, folder)
    contest.add_ours("closed form", ours.program)
    report.figure(benchmark, "closed form, operators", ours.counts["total"], "")
    program, independent = _general(robot, model)
    report.figure(benchmark, "general form, operators", program.counts()["total"], "", note=GIVEN)
    _add_general(contest, harness, program, robot, model, states, independent)
    pinocchio = report.optional("pinocchio_peer", "Pinocchio")
    if pinocchio is not None:
        puma = dense_puma()
        call, nothing = (python_loop(call) for call in pinocchio.Serial(puma).calls(serial_states(puma, 1)[0]))
        contest.add_binding(RNEA, call, nothing, 0.0, "calibration")
    contest.run()
    report.compare(benchmark, "closed form, scalar", GENERAL)


def _general(robot: Robot, model: str) -> tuple[Program, list[int]]:
    """The model by the general reduction of closed loops, and its independent rates."""
    tracer, grouped = GraphTracer(), prepared_robot(robot, model, Options(without=JOINT_TERMS))
    direct = model == "direct"
    home = Configuration(grouped, grouped.home).reduction.partition
    form = general_formulation(grouped, home if direct else motor_partition(grouped), ModelRequest(model))
    independent = [int(k) for k in form.independent]
    q, qd = tracer.group("q", robot.tree.nq), tracer.group("qd", len(independent))
    given = tracer.group("given", len(robot.actuated))
    if direct:
        outputs = form.direct(form.moving(q, qd), given)
    else:
        effort, qdd = form.efforts_for(form.moving(q, qd), given)
        outputs = {"effort": effort, "qdd": qdd}
    return make_program(tracer.graph, f"{robot.name}_{model}", outputs), independent


def _add_general(
    contest: Contest, harness: Harness, program: Program, robot: Robot, model: str,
    states: list[dict[str, np.ndarray]], independent: list[int],
) -> None:  # fmt: skip
    motors = list(robot.actuated)
    given = "effort" if model == "direct" else "accelerations"
    pick = slice(None) if model == "direct" else motors
    x = np.array([np.concatenate([s["q"], s["rates"][independent], s[given][pick]]) for s in states])
    kernel = Kernel(program)
    contest.kept.append(kernel)
    found = np.array([kernel.one(row) for row in x])
    if model == "direct":
        expected = np.array([s["accelerations"][independent] for s in states])
    else:
        found, expected = found[:, : len(motors)], np.array([s["effort"] for s in states])
    contest.loops[GENERAL] = harness.one(kernel.address("one"), x, len(program.outputs))
    contest.errors[GENERAL] = float(np.abs(found - expected).max() / np.abs(expected).max())
    contest.notes[GENERAL] = f"{program.counts()['total']} operators, {GIVEN}"


def _simulation(report: Report, robot: Robot) -> None:
    """The tour by the inverse model, and its first second by the direct one under the efforts that this gives."""
    benchmark = f"{ROBOT} simulation"
    report.progress(f"{benchmark}: compiling the loop")
    seconds, cpu = [], []
    for _ in range(ROUNDS):
        begin = process_time()
        driven = parflex.simulate(robot, TOUR, TIME, drive="platform", frames=["platform"])
        cpu.append((process_time() - begin) / TIME)
        seconds.append(driven.seconds / TIME)
    note = f"gauss4, {driven.settings['step']:g} s, {driven.settings['operators']} operators a call"
    report.figure(benchmark, "driven by the inverse model, loop", min(seconds), "s/s", note=note)
    report.figure(benchmark, "driven by the inverse model, all of it", min(cpu), "s/s", note="start and columns too")
    table = {name: (driven.t, driven[f"effort.{name}"]) for name in robot.actuated_names}
    seconds = []
    for _ in range(ROUNDS):
        free = parflex.simulate(robot, None, 1.0, effort=table, pose="home", start="held", frames=["platform"])
        seconds.append(free.seconds)
    rows = len(free.t)
    off = max(float(np.abs(free[f"platform.{axis}"] - driven[f"platform.{axis}"][:rows]).max()) for axis in "xyz")
    report.figure(
        benchmark, "efforts from a table, direct model, loop", min(seconds), "s/s",
        note=f"{free.settings['operators']} operators a call; off the tour by {off:.1e} m",
    )  # fmt: skip
