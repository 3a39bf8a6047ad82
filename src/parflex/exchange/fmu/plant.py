"""A robot as the plant of an FMU: its problem, columns, programs and C source."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

import numpy as np

from parflex.codegen.emit_c import emit_c
from parflex.codegen.model import Model
from parflex.codegen.program import Program
from parflex.codegen.tangent import tangent_program
from parflex.errors import InputError
from parflex.exchange.fmu.columns import RunColumns, read_plant_parameters, run_columns, with_plant_parameters
from parflex.exchange.fmu.description_xml import Variable
from parflex.exchange.fmu.plant_c import (
    data_text,
    deforms_in_loops,
    loop_text,
    starting_program,
    starting_text,
    watch_of,
    watch_text,
    watched_program,
    wrench_channels,
)
from parflex.integrators.driver import Grid, Method, System, Work, method_named, new_work
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.simulation.problem import Problem, prepare_problem, read_independent, with_independent_rates
from parflex.simulation.quantities import unit_of
from parflex.simulation.simulate import FRICTION_WIDTH
from parflex.simulation.start import start_state
from parflex.simulation.step_control import DEFAULT_SHARES, ITERATION_TOLERANCE, LEAST
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
NOT_INTEGRATED = ("work.input", "work.loss")  # by a solver outside: powers are there
INCLUDED = ("core.c", "watch.c", "walk.c", "starts.c", "motions.c", "slopes.c")


@dataclass(frozen=True, eq=False, repr=False)
class FmuPlant(Record):
    """All that an FMU of a robot is made of."""

    problem: Problem
    method: Method
    system: System
    work: Work
    columns: RunColumns
    start: tuple[Array, Array, Array]
    kind: str
    step: float
    parameters: dict[str, float] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Whether joints that are not set follow at the start, so that no body deforms."""
        return self.kind == "cs" and watch_of(self.problem) is not None and deforms_in_loops(self.problem, self.system)

    def programs(self) -> dict[str, Program]:
        """Programs by the names that they have in C: those of the loop, of columns, of the watch, of derivatives."""
        models: dict[str, Model | None] = {"address": self.problem.model, "power": self.problem.power}
        models |= {"gaps": self.problem.gaps}
        for word, names in (("pairs", ("factor", "solve")), ("real", ("real_factor", "real_solve"))):
            pair = self.problem.stepping.get(word)
            models |= dict(zip(names, (pair.factor, pair.solve) if pair else (None, None), strict=True))
        programs = {f"program_{word}": model.program for word, model in models.items() if model is not None}
        programs["program_columns"] = self.columns.program
        watch = watch_of(self.problem)
        if watch is not None:
            programs["program_rows"] = watched_program(watch)
        if self.follows:
            programs["program_starting"] = starting_program(self.problem.robot)
        if self.kind == "me":
            programs |= {
                f"slope_{word}": tangent_program(programs[f"program_{word}"]) for word in ("address", "columns")
            }
        return programs

    def sources(self, fmi: int, token: str) -> dict[str, str]:
        """Files of C."""
        programs = self.programs()
        files: dict[str, str] = {}
        for name, program in programs.items():
            files |= emit_c(replace(program, name=name))
        limit = ITERATION_TOLERANCE
        data = data_text(
            self.problem, self.method, self.system, self.work, self.columns, self.start, programs, self.step, limit,
            self.parameters,
        )  # fmt: skip
        heads = "".join(f'#include "{name}.h"\n' for name in programs)
        text = "#include <string.h>\n" + heads + loop_text(self.method, self.system, self.work) + data
        text += watch_text(watch_of(self.problem))
        text += starting_text(self.problem, self.system, self.start, self.follows)
        return files | unit_files(text, INCLUDED, self.kind, fmi, token)

    def variables(self) -> list[Variable]:
        """Time, inputs, columns; states of model exchange, or the start of co-simulation; parameters."""
        robot, tree = self.problem.robot, self.problem.robot.tree
        fmu_variables = [Variable("time", "independent", "s")]
        fmu_variables += [
            Variable(name, "input", column_unit(name, robot), float(value))
            for name, value in zip(inputs_of(self.problem), self.start[2], strict=True)
        ]
        fmu_variables += [Variable(name, "output", column_unit(name, robot)) for name in self.columns.names]
        places = [int(p) for p in self.system.simple[:, 0]] + [int(p) for p in self.system.turning]
        states = [("q", tree.position_names[p], self.start[0][p]) for p in places]
        states += [("qd", self.problem.independent[k], self.start[1][k]) for k in self.system.free]
        units = [column_unit(f"{word}.{name}", robot) for word, name, _ in states]
        first, last = len(fmu_variables), len(fmu_variables) + 2 * len(states)
        for k, ((word, name, value), unit) in enumerate(zip(states, units, strict=True)):
            if self.kind == "cs":
                fmu_variables.append(
                    Variable(f"start.{word}.{name}", "parameter", unit, float(value), reference=first + k)
                )
            else:
                title = f"state.{name}" if word == "q" else f"state.rate.{name}"
                fmu_variables.append(Variable(title, "local", unit, float(value)))
        if self.kind == "me":
            fmu_variables += [
                Variable(f"der({fmu_variables[first + k].name})", "local", _per_second(unit), None, first + k)
                for k, unit in enumerate(units)
            ]
        fmu_variables += [
            Variable(name, "parameter", _parameter_unit(name), value, reference=last + k)
            for k, (name, value) in enumerate(self.parameters.items())
        ]
        return fmu_variables


def unit_files(text: str, included: Sequence[str], kind: str, fmi: int, token: str) -> dict[str, str]:
    """The file that is compiled, and those that it includes."""
    folder = resources.files("parflex.exchange.fmu")
    names = (*included, f"fmi{fmi}.c")
    text += f'#define TOKEN "{token}"\n#define KIND_ME {int(kind == "me")}\n'
    text += "".join(f'#include "{name}"\n' for name in names)
    return {name: folder.joinpath(name).read_text("utf-8") for name in names} | {"unit.c": text}


def inputs_of(problem: Problem) -> list[str]:
    """Names of the inputs in their order: of motors, then of wrenches."""
    words = ("q", "qd", "qdd") if problem.driven else ("effort",)
    names = [f"{word}.{motor}" for word in words for motor in problem.robot.actuated_names]
    return names + [f"wrench.{problem.wrenches[k // 6]}.{WRENCH[k % 6]}" for k in wrench_channels(problem)]


def make_plant(
    robot: Robot, kind: str, drive: str, method: str, step: float, wrenches: Sequence[str], frames: Sequence[str],
    pose: Any, without: Collection[str], independent: Sequence[str] | None, parameters: Sequence[str] = (),
) -> FmuPlant:  # fmt: skip
    """The plant at its start, with rates that determine the others there."""
    chosen = method_named(method if kind == "cs" else "rk4")
    prescribed = "motors" if drive == "motions" else "efforts"
    problem = prepare_problem(
        robot, prescribed, tuple(wrenches), without, FRICTION_WIDTH, read_independent(robot, independent, prescribed),
        sticking=kind == "cs", numbers=chosen.numbers,
    )  # fmt: skip
    started = start_state(problem, robot, None, pose, None, {})
    values = read_plant_parameters(problem.robot, parameters)
    problem = with_plant_parameters(_well_chosen(problem, started.q, independent), values)
    motors = len(robot.actuated)
    powers = 3 if problem.driven else 1
    polynomials = Trajectory(np.array([0.0, np.inf]), np.zeros((1, powers, motors + 6 * len(wrenches))))
    system = problem.system(polynomials)
    work = new_work(system, chosen.stages, chosen.unknowns)
    if chosen.name == "dopri5":
        length = robot.tree.length
        Grid(step, 1, 1, LEAST * length, step, share=DEFAULT_SHARES["dopri5"], farthest=length).control(work)
    if len(work.events):
        work = work._replace(events=np.zeros((1, 4)))
    qd = started.qd[problem.places]
    inputs = np.zeros(powers * motors + len(wrench_channels(problem)))
    if problem.driven:
        places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]
        inputs[:motors] = started.q[places]
    left_out = [*inputs_of(problem), *(NOT_INTEGRATED if kind == "me" else ())]
    columns = run_columns(problem, frames, left_out, list(values))
    return FmuPlant(problem, chosen, system, work, columns, (started.q, qd, inputs), kind, step, values)


def _well_chosen(problem: Problem, q: Array, independent: Sequence[str] | None) -> Problem:
    """The problem with other rates where the start asks for such, as a run has them; refused near singular poses."""
    watch = watch_of(problem)
    event = None if watch is None else watch.at_start(q, problem.independent)
    if watch is None or event is None:
        return problem
    if event.kind == "cross":
        raise InputError(
            "the start is near a singular pose of the closures", key="pose", hint="start from another pose"
        )
    return problem if independent else with_independent_rates(problem, watch.best(q)[0], q)


def column_unit(name: str, robot: Robot) -> str:
    """Of a column, an input or a state, as FMI writes it."""
    if name.startswith("wrench."):
        return "N" if name[-2] == "f" else "N.m"
    unit, _ = unit_of(name, robot)
    return unit.replace("²", "2").replace("N m", "N.m") if " or " not in unit else ""


def _per_second(unit: str) -> str:
    return {"m": "m/s", "rad": "rad/s", "m/s": "m/s2", "rad/s": "rad/s2"}.get(unit, "")


def _parameter_unit(name: str) -> str:
    """Of gravity, a payload or an inertial parameter."""
    word, _, axis = name.partition(".")
    if axis:
        return "m/s2" if word == "gravity" else "kg" if axis == "mass" else "m"
    return {"M": "kg", "MX": "kg.m", "MY": "kg.m", "MZ": "kg.m"}.get(name.partition("[")[0], "kg.m2")
