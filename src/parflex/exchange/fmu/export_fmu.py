"""Robots as FMUs: the model, its columns and the time loop as C, compiled, with a description."""

from __future__ import annotations

import hashlib
import html
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from parflex.codegen.source_files import identifier
from parflex.errors import InputError
from parflex.exchange.fmu.compilers import compiled_files, libraries
from parflex.exchange.fmu.description_xml import Described, Variable, build_description, description
from parflex.exchange.fmu.export_checks import refuse_choice, refuse_names, refuse_plant, step_notes
from parflex.exchange.fmu.fmu_controller import FmuController, make_controller
from parflex.exchange.fmu.fmu_plant import FmuPlant, make_plant
from parflex.io import atomic_file
from parflex.records import Answer
from parflex.robot.robot import Robot
from parflex.simulation.outputs import recorded_frames

TOKEN = "{token of this model}"
DATE = (2020, 1, 1, 0, 0, 0)  # the same robot gives the same file


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
    independent : Sequence[str], default None
        Rates that are integrated and stay so; None leaves the choice.
    parameters : str or Sequence[str], default ()
        Numbers that can be changed in the FMU: gravity, payload, inertial ones like "M[leg1.2]".
    law : {'pd', 'ctc', 'ctc-task', 'extended'}, default None
        Control law, as an FMU of its own in place of the robot.
    model : str, default None
        Model of `model`, as inverse, as an FMU of its own in place of the robot.
    coordinates : str, default None
        Coordinates in which motions of such a model are given: platform, motors, independent or all.

    Returns
    -------
    ExportedFmu
        File, platforms and variables.

    Examples
    --------
    >>> parflex.export_fmu(parflex.load("5r"), "5r.fmu").platforms
    """
    refuse_choice(fmi, kind, step, platforms)
    name = identifier(robot.name)
    asked = [parameters] if isinstance(parameters, str) and parameters != "base" else parameters
    unit: FmuController | FmuPlant
    notes: tuple[str, ...] = ()
    if law is not None or model is not None:
        unit = make_controller(robot, law, model, coordinates, pose, asked, tuple(without), kind)
        name, how = f"{name}_{identifier(law or str(model))}", unit.title
    else:
        if coordinates is not None:
            said = "coordinates are those of a model of a controller"
            raise InputError(said, key="coordinates", value=coordinates, hint="give a model, e.g. inverse")
        refuse_plant(robot, kind, drive)
        shown = recorded_frames(robot, frames)
        plant = unit = make_plant(
            robot, kind, drive, method, step, wrench_frames, shown, pose, without, independent, asked
        )
        notes, how = step_notes(plant), f"the motors have {drive} as inputs"
    variables = unit.variables()
    refuse_names(variables)
    sources = unit.sources(fmi, TOKEN)
    token = "{" + hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:32] + "}"
    sources["unit.c"] = sources["unit.c"].replace(TOKEN, token)
    made = libraries(sources, name, fmi, platforms)
    version = metadata.version("parflex")
    title = robot.description.title or robot.name
    files = compiled_files(sources)
    about = Described(robot.name, name, token, kind, step, version, title, isinstance(unit, FmuPlant), files)
    entries: dict[str, bytes] = {"modelDescription.xml": description(about, variables, fmi).encode()}
    entries |= made
    page = _page(about, variables, how, method).encode()
    entries["documentation/index.html"] = page
    entries |= {f"sources/{file}": text.encode() for file, text in sources.items()}
    if fmi == 3:
        entries["sources/buildDescription.xml"] = build_description(about).encode()
    with atomic_file(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries.items():
            archive.writestr(zipfile.ZipInfo(path, DATE), data, zipfile.ZIP_DEFLATED)
    told = tuple({"name": v.name, "causality": v.causality, "unit": v.unit} for v in variables)
    return ExportedFmu(str(out), tuple(path.split("/")[1] for path in made), told, notes)


def _page(about: Described, variables: Sequence[Variable], how_driven: str, method: str) -> str:
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
