"""Robots as FMUs: the model, its columns and the time loop as C, compiled, with a description."""

from __future__ import annotations

import hashlib
import html
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np

from parflex.codegen.emit.emit_c import emit_c
from parflex.codegen.emit.heading import identifier
from parflex.codegen.model import Model
from parflex.errors import InputError, did_you_mean
from parflex.exchange.fmu.compilers import libraries
from parflex.exchange.fmu.description_xml import Described, Variable, description
from parflex.exchange.fmu.instance_c import data_text, loop_text
from parflex.exchange.fmu.run_columns import RunColumns, run_columns
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.integrators.integrate import Method, method_named
from parflex.simulation.integrators.system import System, Work, new_work
from parflex.simulation.problem import Problem, prepare
from parflex.simulation.simulate import FRICTION_WIDTH, recorded_frames
from parflex.simulation.starts.start import start_state
from parflex.simulation.step_lengths.step_choice import ITERATION_TOLERANCE, TOLERANCE
from parflex.tree.contacts import has_contacts
from parflex.view.figures.units import unit_of
from parflex.whole_files import whole_file

Array = np.ndarray
DRIVES = ("efforts", "motions")
KINDS = ("cs", "me")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
DATE = (2020, 1, 1, 0, 0, 0)  # the same robot gives the same file


@dataclass(frozen=True, eq=False, repr=False)
class ExportedFmu(Record):
    """The `file`, the `platforms` it has libraries for, its `variables` as {name, causality, unit}, and `notes`."""

    file: str
    platforms: tuple[str, ...]
    variables: tuple[dict[str, str], ...]
    notes: tuple[str, ...] = ()


def export_fmu(
    robot: Robot,
    out: str | Path,
    *,
    fmi: int = 2,
    kind: str = "cs",
    drive: str = "efforts",
    method: str = "gauss4",
    step: float = 5e-4,
    platforms: str = "own",
    wrench_frames: Sequence[str] = (),
    frames: Sequence[str] | None = None,
    pose: Any = None,
    without: Collection[str] = (),
) -> ExportedFmu:
    """Write a robot as an FMU.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    out : str or Path
        File to write.
    fmi : int, default 2
        Version of FMI: 2 or 3.
    kind : str, default "cs"
        Co-simulation (cs) or model exchange (me).
    drive : str, default "efforts"
        Inputs of the motors: efforts, or motions (positions, rates and accelerations).
    method : str, default "gauss4"
        Method of co-simulation: gauss4, gauss6, rk4, dopri5 or generalized-alpha.
    step : float, default 5e-4
        Longest step of co-simulation (s).
    platforms : str, default "own"
        Libraries for this machine by its C compiler (own), or for all platforms by zig (all).
    wrench_frames : Sequence[str], default ()
        Frames with a wrench as an input of the model.
    frames : Sequence[str], default None
        Frames to report; None: the end effector.
    pose : Pose, default None
        Pose at the start; None: home (m, rad).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.

    Returns
    -------
    ExportedFmu
        File, platforms and variables.

    Examples
    --------
    >>> parflex.export_fmu(parflex.load("5r"), "5r.fmu").platforms
    """
    _check(robot, fmi, kind, drive, step)
    shown = recorded_frames(robot, frames)
    plant = _plant(robot, kind, drive, method, wrench_frames, shown, pose, without)
    name = identifier(robot.name)
    token = (
        "{" + hashlib.sha256(f"{robot.description!r}{fmi}{kind}{drive}{method}{step}".encode()).hexdigest()[:32] + "}"
    )
    sources = plant.sources(fmi, kind, step, token)
    made = libraries(sources, name, fmi, platforms)
    variables = plant.variables(kind)
    version = metadata.version("parflex")
    about = Described(robot.name, name, token, kind, step, version, robot.description.title or robot.name)
    entries: dict[str, bytes] = {"modelDescription.xml": description(about, variables, fmi).encode()}
    entries |= made
    page = _page(robot, about, variables, drive, method).encode()
    entries["documentation/index.html"] = page
    if fmi == 2:
        entries |= {f"sources/{file}": text.encode() for file, text in sources.items()}
    with whole_file(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries.items():
            archive.writestr(zipfile.ZipInfo(path, DATE), data, zipfile.ZIP_DEFLATED)
    told = tuple({"name": v.name, "causality": v.causality, "unit": v.unit} for v in variables)
    return ExportedFmu(str(out), tuple(path.split("/")[1] for path in made), told)


def _check(robot: Robot, fmi: int, kind: str, drive: str, step: float) -> None:
    if not step > 0:
        raise InputError("the step must be positive", key="step", value=step, hint="give e.g. 0.0005")
    for key, value, known in (("kind", kind, KINDS), ("drive", drive, DRIVES)):
        if value not in known:
            raise InputError(f"there is no {key} '{value}'", key=key, value=value, hint=did_you_mean(value, known))
    if fmi not in (2, 3):
        raise InputError(f"there is no FMI {fmi}", key="fmi", value=fmi, hint="give 2 or 3")
    freedoms = robot.mobility.freedoms(len(robot.free))
    if drive == "motions" and len(robot.actuated) > freedoms:
        raise InputError(
            f"the robot has {len(robot.actuated)} motors for {freedoms} freedoms: their motions are not independent",
            key="drive",
            value=drive,
            hint="choose drive='efforts', or another actuation",
        )
    if kind == "me" and has_contacts(robot.tree):
        raise InputError(
            "model exchange of robots with stops, flanks or cables is not known",
            key="kind",
            value=kind,
            hint="choose kind='cs'",
        )


@dataclass(frozen=True, eq=False, repr=False)
class FmuPlant(Record):
    """All that an FMU is made of."""

    problem: Problem
    method: Method
    system: System
    work: Work
    columns: RunColumns
    start: tuple[Array, Array, Array]

    def programs(self) -> dict[str, Any]:
        """Programs that the loop calls, by the names that they have in C."""
        found: dict[str, Model | None] = {"address": self.problem.model, "power": self.problem.power}
        found |= {"gaps": self.problem.gaps}
        for word, names in (("pairs", ("factor", "solve")), ("real", ("real_factor", "real_solve"))):
            pair = self.problem.stepping.get(word)
            found |= dict(zip(names, (pair.factor, pair.solve) if pair else (None, None), strict=True))
        programs = {f"program_{word}": one.program for word, one in found.items() if one is not None}
        return programs | {"program_columns": self.columns.program}

    def sources(self, fmi: int, kind: str, step: float, token: str) -> dict[str, str]:
        """Files of C."""
        files: dict[str, str] = {}
        programs = self.programs()
        for name, program in programs.items():
            files |= emit_c(replace(program, name=name))
        limit = TOLERANCE.get(self.method.name, ITERATION_TOLERANCE)
        called = [name for name in programs if name != "program_columns"]
        data = data_text(
            self.problem, self.method, self.system, self.work, self.columns, self.start, called, step, limit
        )  # fmt: skip
        heads = "".join(f'#include "{name}.h"\n' for name in programs)
        text = "#include <string.h>\n" + heads + loop_text(self.method, self.system, self.work) + data
        text += (
            f'#define TOKEN "{token}"\n#define KIND_ME {int(kind == "me")}\n#include "core.c"\n#include "fmi{fmi}.c"\n'
        )
        folder = resources.files("parflex.exchange.fmu")
        own = {file: folder.joinpath(file).read_text("utf-8") for file in ("core.c", f"fmi{fmi}.c")}
        return files | own | {"unit.c": text}

    def variables(self, kind: str) -> list[Variable]:
        """Time, inputs, columns, and states of model exchange."""
        robot, tree = self.problem.robot, self.problem.robot.tree
        names = self.inputs()
        found = [Variable("time", "independent", "s")]
        found += [
            Variable(name, "input", _unit(name, robot), float(value))
            for name, value in zip(names, self.start[2], strict=True)
        ]
        found += [Variable(name, "output", _unit(name, robot)) for name in self.columns.names]
        if kind == "cs":
            return found
        simple = [int(p) for p in self.system.simple[:, 0]] + [int(p) for p in self.system.turning]
        states = [(f"state.{tree.position_names[p]}", self.start[0][p]) for p in simple]
        states += [(f"state.rate.{self.problem.independent[k]}", self.start[1][k]) for k in self.system.free]
        first = len(found)
        found += [Variable(name, "local", "", float(value)) for name, value in states]
        found += [Variable(f"der({name})", "local", "", None, first + k) for k, (name, _) in enumerate(states)]
        return found

    def inputs(self) -> list[str]:
        """Names of the inputs in their order."""
        return inputs_of(self.problem)


def inputs_of(problem: Problem) -> list[str]:
    """Names of the inputs in their order: of motors, then of wrenches."""
    words = ("q", "qd", "qdd") if problem.driven else ("effort",)
    names = [f"{word}.{motor}" for word in words for motor in problem.robot.actuated_names]
    return names + [f"wrench.{frame}.{word}" for frame in problem.wrenches for word in WRENCH]


def _plant(
    robot: Robot, kind: str, drive: str, method: str, wrenches: Sequence[str], frames: Sequence[str], pose: Any,
    without: Collection[str],
) -> FmuPlant:  # fmt: skip
    chosen = method_named(method if kind == "cs" else "rk4")
    prescribed = "motors" if drive == "motions" else "efforts"
    problem = prepare(
        robot, prescribed, tuple(wrenches), without, FRICTION_WIDTH, sticking=kind == "cs", numbers=chosen.numbers
    )
    motors = len(robot.actuated)
    powers = 3 if problem.driven else 1
    given = Polynomials(np.array([0.0, np.inf]), np.zeros((1, powers, motors + 6 * len(wrenches))))
    system = problem.system(given)
    work = new_work(system, chosen.stages, chosen.unknowns)
    if len(work.events):
        work = work._replace(events=np.zeros((1, 4)))
    started = start_state(problem, robot, None, pose, None, {})
    qd = started.qd[problem.places]
    inputs = np.zeros(powers * motors + 6 * len(wrenches))
    if problem.driven:
        places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]
        inputs[:motors] = started.q[places]
    return FmuPlant(
        problem, chosen, system, work, run_columns(problem, frames, inputs_of(problem)), (started.q, qd, inputs)
    )


def _unit(name: str, robot: Robot) -> str:
    if name.startswith("wrench."):
        return "N" if name[-2] == "f" else "N.m"
    unit, _ = unit_of(name, robot)
    return unit.replace("²", "2").replace("N m", "N.m") if " or " not in unit else ""


def _page(robot: Robot, about: Described, variables: Sequence[Variable], drive: str, method: str) -> str:
    """The page of documentation inside the FMU."""
    rows = "".join(
        f"<tr><td>{html.escape(v.name)}</td><td>{v.causality}</td><td>{html.escape(v.unit)}</td></tr>\n"
        for v in variables
    )
    how = f"co-simulation, {method}, steps of at most {about.step:g} s" if about.kind == "cs" else "model exchange"
    return (
        f"<!DOCTYPE html>\n<html><head><meta charset='utf-8'><title>{html.escape(about.name)}</title></head><body>\n"
        f"<h1>{html.escape(about.name)}</h1>\n<p>{html.escape(about.text)}</p>\n"
        f"<p>Made by parflex {about.version}: {how}; the motors have {drive} as inputs. SI units and radians. "
        "Variables have the names of the columns of a simulation.</p>\n"
        f"<table>\n<tr><th>variable</th><th>causality</th><th>unit</th></tr>\n{rows}</table>\n</body></html>\n"
    )
