"""Export a robot as an FMU: `export_fmu(...)`."""

from __future__ import annotations

import hashlib
import html
import zipfile
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from parflex.codegen.source_files import identifier
from parflex.dynamics.dynamics import inverse_dynamics
from parflex.errors import InputError, ParflexError
from parflex.exchange.fmu.compile import compiled_files, libraries
from parflex.exchange.fmu.controller import FmuController, make_controller
from parflex.exchange.fmu.description import ModelDescription, Variable, build_description, description
from parflex.exchange.fmu.plant import FmuPlant, make_plant
from parflex.integrators.driver import rounded_down
from parflex.io import atomic_file
from parflex.records import Answer
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.simulation.outputs import recorded_frames
from parflex.simulation.problem import metres_per_unit
from parflex.simulation.step_control import needed_step
from parflex.trajectories.trajectory import Trajectory
from parflex.tree.force_elements import has_contacts

TOKEN = "{token of this model}"
DATE = (2020, 1, 1, 0, 0, 0)  # the same robot gives the same file
FALL = 9.81  # m/s^2, which motors are taken to cause at once: an effort that lifts the robot, or this acceleration
POWERS = 6  # of the polynomials of runs
SHORT = 0.1  # s: a motion by which the step is judged


@dataclass(frozen=True, eq=False, repr=False)
class ExportedFmu(Answer):
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
    independent: Sequence[str] | None = None,
    parameters: str | Sequence[str] = (),
    law: str | None = None,
    model: str | None = None,
    coordinates: str | None = None,
) -> ExportedFmu:
    """Write a robot as an FMU, or its controller.

    Parameters
    ----------
    robot, fmi, kind, platforms, wrench_frames, frames, without, independent, coordinates
        See parflex.api.WORDS.
    out : str or Path
        File to write.
    drive : str, default "efforts"
        Inputs of the motors: efforts, or motions (positions, rates and accelerations).
    method : str, default "gauss4"
        Method of co-simulation: gauss4, gauss6, rk4, dopri5 or generalized-alpha.
    step : float, default 5e-4
        Longest step of co-simulation (s).
    pose : Pose, default None
        Pose at the start; None: home (m, rad).
    parameters : str or Sequence[str], default ()
        Numbers that can be changed in the FMU: gravity, payload, inertial ones like "M[leg1.2]".
    law : {'pd', 'ctc', 'ctc-task', 'extended'}, default None
        Control law, as an FMU of its own in place of the robot.
    model : str, default None
        Model of `model`, as inverse, as an FMU of its own in place of the robot.

    Returns
    -------
    ExportedFmu
        File, platforms and variables.
    """
    name, how = identifier(robot.name), f"the motors have {drive} as inputs"
    requested = [parameters] if isinstance(parameters, str) and parameters != "base" else parameters
    unit: FmuController | FmuPlant
    notes: tuple[str, ...] = ()
    if law is not None or model is not None:
        unit = make_controller(robot, law, model, coordinates, pose, requested, tuple(without), kind)
        name, how = f"{name}_{identifier(law or str(model))}", unit.title
    elif coordinates is not None:
        message = "coordinates are those of a model of a controller"
        raise InputError(message, key="coordinates", value=coordinates, hint="give a model, e.g. inverse")
    else:
        refuse_plant(robot, kind, drive)
        shown = recorded_frames(robot, frames)
        unit = make_plant(robot, kind, drive, method, step, wrench_frames, shown, pose, without, independent, requested)
        notes = step_notes(unit)
    variables = unit.variables()
    refuse_names(variables)
    sources = unit.sources(fmi, TOKEN)
    token = "{" + hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:32] + "}"
    sources["unit.c"] = sources["unit.c"].replace(TOKEN, token)
    made = libraries(sources, name, fmi, platforms)
    title, plant = robot.description.title or robot.name, isinstance(unit, FmuPlant)
    version, files = metadata.version("parflex"), compiled_files(sources)
    about = ModelDescription(robot.name, name, token, kind, step, version, title, plant, files)
    entries: dict[str, bytes] = {"modelDescription.xml": description(about, variables, fmi).encode(), **made}
    entries["documentation/index.html"] = _page(about, variables, how, method).encode()
    entries |= {f"sources/{file}": text.encode() for file, text in sources.items()}
    if fmi == 3:
        entries["sources/buildDescription.xml"] = build_description(about).encode()
    with atomic_file(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries.items():
            archive.writestr(zipfile.ZipInfo(path, DATE), data, zipfile.ZIP_DEFLATED)
    descriptions = tuple({"name": v.name, "causality": v.causality, "unit": v.unit} for v in variables)
    return ExportedFmu(str(out), tuple(path.split("/")[1] for path in made), descriptions, notes)


def _page(about: ModelDescription, variables: Sequence[Variable], how_driven: str, method: str) -> str:
    """The page of documentation inside the FMU."""
    rows = "".join(
        f"<tr><td>{html.escape(v.name)}</td><td>{v.causality}</td><td>{html.escape(v.unit)}</td></tr>\n"
        for v in variables
    )
    how = f"co-simulation, {method}, steps of at most {about.step:g} s" if about.kind == "cs" else "model exchange"
    return (
        f"<!DOCTYPE html>\n<html><head><meta charset='utf-8'><title>{html.escape(about.name)}</title></head><body>\n"
        f"<h1>{html.escape(about.name)}</h1>\n<p>{html.escape(about.text)}</p>\n"
        f"<p>Made by parflex {about.version}: {how}; {how_driven}. SI units and radians. "
        "Variables have the names of the columns of a simulation.</p>\n"
        f"<table>\n<tr><th>variable</th><th>causality</th><th>unit</th></tr>\n{rows}</table>\n</body></html>\n"
    )


def refuse_plant(robot: Robot, kind: str, drive: str) -> None:
    """Raise for robots that cannot be driven so, or whose contacts a solver outside does not know."""
    freedoms = robot.mobility.freedoms(len(robot.free))
    if drive == "motions" and len(robot.actuated) > freedoms:
        text = f"the robot has {len(robot.actuated)} motors for {freedoms} degrees of freedom: motions are dependent"
        raise InputError(text, key="drive", value=drive, hint="choose drive='efforts', or another actuation")
    if kind == "me" and has_contacts(robot.tree):
        text = "model exchange of robots with stops, backlash or cables is not supported"
        raise InputError(text, key="kind", value=kind, hint="choose kind='cs'")


def refuse_names(variables: Sequence[Variable]) -> None:
    """Raise where FMI does not allow a name, or two variables would have the same one."""
    names = [variable.name for variable in variables]
    for name in names:
        if not name.isprintable() or name != " ".join(name.split(" ")).strip():
            text = f"FMI allows no line breaks, tabs or outer spaces in names, as {name!r} has"
            raise InputError(text, key="robot", value=repr(name), hint="rename it in the robot file")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        text = f"two variables of the FMU would have the name '{twice[0]}'"
        hint = "rename a joint or frame in the robot file, or leave the frame out of 'frames'"
        raise InputError(text, key="robot", value=twice[0], hint=hint)


def step_notes(plant: FmuPlant) -> tuple[str, ...]:
    """A sentence where the fixed step is longer than the mean step that error control takes for a motion.

    Efforts lift the robot from its start, or motors accelerate as much.
    """
    if plant.kind == "me" or plant.method.name == "dopri5" or not len(plant.system.free):
        return ()
    problem, (q, qd, inputs) = plant.problem, plant.start
    tree, motors = problem.robot.tree, list(problem.robot.actuated)
    metres = metres_per_unit(tree)[motors]
    coefficients = np.zeros((1, POWERS, plant.system.coefficients.shape[2]))
    if problem.driven:
        coefficients[0, 0, : len(motors)] = inputs[: len(motors)]
        coefficients[0, 2, : len(motors)] = 0.5 * FALL / metres
    else:
        mass = sum(float(link.body.m) for link in tree.links)
        coefficients[0, 0, : len(motors)] = _holding(problem.robot, q) + mass * FALL * metres
    step = needed_step(problem, plant.method, Trajectory(np.zeros(1), coefficients), q, qd, SHORT)
    if step > plant.step * (1 - 1e-6):
        return ()
    return (
        f"the step {plant.step:g} s is too long for the robot: it needs {rounded_down(step)} s, the mean of steps "
        f"whose errors are followed for {SHORT:g} s from its start, under loads as large as its weight",
    )


def _holding(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Efforts that hold a robot of rigid bodies at rest, where its motors can: frequencies are those about a rest."""
    try:
        if robot.tree.elastic:
            return np.zeros(len(robot.actuated))
        return np.array(list(inverse_dynamics(robot, Configuration(robot, q), {}, {}).efforts.values()))
    except ParflexError:
        return np.zeros(len(robot.actuated))
