"""Commands about stiffness, equilibrium and state space."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import condition_options, linear_model_of, read_load_options, read_range, robot_options
from parflex.errors import InputError, ParflexWarning
from parflex.io import atomic_file


@cli.command(epilog="\b\nExample:\n  parflex stiffness navaro --pose pose-3 --wrench platform=0,0,-50")
@robot_options
@condition_options
@click.option("--frame", metavar="NAME", help="Frame whose stiffness is computed; default: the end effector.")
def stiffness(robot: str, as_json: bool, frame: str | None, **options: Any) -> None:
    """Stiffness and compliance of a frame, deflection, holding efforts and section forces under loads."""
    from parflex import deflection, equilibrium, linear_model
    from parflex.robot.beam_nodes import at_nodes
    from parflex.statics.linear_model import about_equilibrium
    from parflex.statics.stiffness import deflection_at, stiffness_of

    loaded, pose, case = read_load_options(robot, options)
    frames = list(dict.fromkeys([frame or loaded.tree.end_effector, *case.forced_frames]))
    loaded, pose = at_nodes(loaded, pose, frames)
    if case.at_equilibrium:
        static_equilibrium = equilibrium(loaded, pose, load_case=case)
        deflected, result = (
            deflection_at(static_equilibrium, frames),
            stiffness_of(about_equilibrium(static_equilibrium), frame),
        )
    else:
        result = stiffness_of(linear_model(loaded, pose, load_case=case), frame)
        deflected = deflection(loaded, pose, frames, load_case=case)
    pick = loaded.tree.components
    deflections = {name: values[pick].tolist() for name, values in deflected.frames.items()}
    answer = {
        "frame": result.frame,
        "directions": list(result.directions),
        "stiffness": result.stiffness,
        "compliance": result.compliance,
        "rigid": result.rigid,
        "deflection": deflections,
        "efforts": deflected.efforts,
        "section_forces": deflected.sections,
        **(
            {"beams": {name: beam.table() for name, beam in deflected.beams.items()}}
            | {"largest_stress": deflected.largest_stress}
            if deflected.beams
            else {}
        ),
        **({"elements": deflected.elements} if deflected.elements else {}),
        "about": result.model.about,
        "diagnostics": deflected.diagnostics,
    }
    if result.model.loading.internal is not None:
        answer["internal"] = result.model.loading.internal
    tables: list[Any] = [_matrix("compliance", result.directions, result.compliance)]
    if result.stiffness is not None:
        tables.insert(0, _matrix("stiffness", result.directions, result.stiffness))
    tables.append(
        (
            "deflection",
            ["", *result.directions],
            output.rounded((name, *values) for name, values in deflections.items()),
        )
    )
    if deflected.efforts:
        tables.append(("efforts", ["joint", "N or N m"], output.rounded(deflected.efforts.items())))
    if deflected.sections:
        rows = [
            (section["element"], end, *section[end].values())
            for section in deflected.sections
            for end in ("root", "tip")
            if end in section
        ]
        tables.append(("section forces", ["element", "end", *deflected.sections[0]["root"]], output.rounded(rows)))
    most = deflected.largest_stress
    if most is not None:
        tables.append(("largest stress", ["beam", "s", "MPa"], [(most["beam"], most["s"], most["value"] / 1e6)]))
    output.print_result(answer, as_json, *tables)


def _matrix(title: str, names: tuple[str, ...], values: Any) -> tuple[str, list[str], list[tuple[Any, ...]]]:
    rows = [(name, *map(float, row)) for name, row in zip(names, values, strict=True)]
    return title, ["", *names], output.rounded(rows)


@cli.command(
    epilog="\b\nExample:\n  parflex statespace dualemps --servo 1e6 --input 11 --output 17.y --frequencies 1:100:200 "
    "--out plant.npz"
)
@robot_options
@condition_options
@click.option(
    "--input", "inputs", multiple=True, metavar="JOINT|FRAME.fx", help="Input: effort of a joint, or a force."
)
@click.option(
    "--output", "outputs", multiple=True, metavar="[velocity:]NAME", help="Output: coordinate, or FRAME.x ... FRAME.rz."
)
@click.option(
    "--frequencies", "span", metavar="A:B:N[:log]", help="Also compute the frequency response at these frequencies, Hz."
)
@click.option("-o", "--out", "path", metavar="FILE", help="Output file: .npz or .mat.")
def statespace(
    robot: str,
    as_json: bool,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    span: str | None,
    path: str | None,
    **options: Any,
) -> None:
    """State space A B C D and frequency response between any input and any output."""
    import numpy as np

    from parflex.statics.statespace import forced_frames, mode_warnings, state_space_of

    if path is not None:
        check_suffix(path)
    model, about = linear_model_of(robot, options, forced_frames(_split(inputs)))
    system = state_space_of(model, _split(inputs), _split(outputs))
    hertz = read_range(span) if span else []
    diagnostics = system.doubts(hertz) if span else mode_warnings(system.model)
    with warnings.catch_warnings(action="ignore", category=ParflexWarning):  # they are in the answer
        response = system.response(hertz)
    parts = {key: getattr(system, key) for key in ("A", "B", "C", "D")}
    names = {key: getattr(system, key) for key in ("states", "inputs", "outputs")}
    if path is not None:
        write_arrays(path, {**parts, **names, "frequencies_hz": np.array(hertz), "response": response})
    answer: dict[str, Any] = {
        **parts,
        **names,
        "about": about,
        "file": path,
        "diagnostics": [*system.diagnostics, *diagnostics],
    }
    if span:
        answer["frequencies_hz"] = hertz
        answer["response"] = {"real": response.real, "imaginary": response.imag}
    sizes = [("states", len(system.states)), ("inputs", len(system.inputs)), ("outputs", len(system.outputs))]
    tables: list[Any] = [("state space", ["", "count"], sizes)]
    if span:
        columns = [f"{name} / {source}" for name in system.outputs for source in system.inputs]
        gains = [(f, *map(float, np.abs(H).ravel())) for f, H in zip(hertz, response, strict=True)]
        tables.append(("gain", ["Hz", *columns], gains))
    if path is not None:
        tables.append(("", ["written"], [(path,)]))
    output.print_result(answer, as_json, *tables)


def _split(texts: tuple[str, ...]) -> list[str]:
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def check_suffix(path: str) -> None:
    """Refuse files that are neither .npz nor .mat before anything is computed."""
    if Path(path).suffix not in (".npz", ".mat"):
        raise InputError(
            f"'{path}' has an unknown file type", key="out", value=path, hint="use a name that ends in .npz or .mat"
        )


def write_arrays(path: str, arrays: dict[str, Any]) -> None:
    """Arrays and lists of names in a .npz or .mat file, whole or not at all."""
    import numpy as np
    import scipy.io

    with atomic_file(path) as file:
        if Path(path).suffix == ".npz":
            plain: dict[str, Any] = {key: np.asarray(value) for key, value in arrays.items()}
            np.savez(file, **plain)
        else:
            cells = {
                key: np.array(value, dtype=object) if isinstance(value, list) else value
                for key, value in arrays.items()
            }
            scipy.io.savemat(file, cells)
