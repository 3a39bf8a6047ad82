"""Commands `count` and `codegen`."""

from __future__ import annotations

import warnings
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import (
    allocation_options,
    coordinates_option,
    open_robot,
    read_allocation,
    robot_options,
    split_names,
    without_option,
)
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError


def _model_options(command: Any) -> Any:
    for option in (
        click.option(
            "--parameters",
            metavar="base|numbers|NAMES",
            help="Inertial parameters to keep as symbols; default: see below.",
        ),
        click.option(
            "--friction-width",
            type=float,
            metavar="W",
            help="Rate (rad/s, m/s) over which Coulomb friction is smoothed; default: none.",
        ),
        without_option,
        coordinates_option,
        allocation_options,
        click.option("--operator-limit", type=int, default=200_000, show_default=True, help="Refuse longer programs."),
        click.argument("model", metavar="MODEL"),
    ):
        command = option(command)
    return command


def _make_model(
    loaded: Any,
    name: str,
    parameters: str,
    without: str,
    included: str | None,
    width: float | None,
    coordinates: Any,
    limit: int,
    spare: dict[str, Any],
) -> tuple[Any, list[str], list[Diagnostic]]:
    """The model, what is left out of it, and its diagnostics."""
    from parflex import model as make
    from parflex.robot.load import omitted_terms

    chosen: Any = parameters if parameters in ("base", "numbers") else split_names(parameters)
    terms = omitted_terms(split_names(without), None if included is None else split_names(included))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        generated = make(
            loaded, name, parameters=chosen, without=terms, friction_width=width or 0.0, coordinates=coordinates,
            operator_limit=limit, **spare,
        )  # fmt: skip
    return generated, list(terms), [output.diagnostic_of(warning.message) for warning in caught]


@cli.command(
    epilog="\b\nExample:\n  parflex count rx90 inverse\n\n"
    "Open rigid robots are counted with base parameters as symbols, others with numbers. By convention, friction, "
    "motor inertia and springs are counted only if --with names them; all programs contain them."
)
@robot_options
@_model_options
@click.option(
    "--with", "included", metavar="LIST", default="", help="Terms to count as well: friction, motor-inertia, springs."
)
def count(
    robot: str,
    model: str,
    as_json: bool,
    parameters: str | None,
    without: str,
    included: str,
    friction_width: float | None,
    coordinates: str | None,
    operator_limit: int,
    **choice: Any,
) -> None:
    """Operators of a model: inverse direct mass-matrix kinematics jacobian-of-inverse geometry geometry-direct step."""
    spare = read_allocation(choice)
    loaded = open_robot(robot, **choice)
    default = "numbers" if loaded.closures.size or loaded.tree.elastic else "base"
    generated, terms, diagnostics = _make_model(
        loaded, model, parameters or default, without, included, friction_width, coordinates, operator_limit,
        spare,
    )  # fmt: skip
    rows = [*generated.counts.items(), ("not counted", ", ".join(terms) or "-")]
    answer = {**generated.counts, "coordinates": coordinates, "without": terms, "diagnostics": diagnostics}
    output.print_result(answer, as_json, (f"{loaded.name} {model}", ["", "operators"], rows))


@cli.command(
    epilog="\b\nExample:\n  parflex codegen gough-stewart inverse --target c -o generated\n\n"
    "Parameters are numbers unless --parameters says otherwise. The program has all terms of the robot file except "
    "those named by --without."
)
@robot_options
@_model_options
@click.option(
    "--target", required=True, metavar="c|llvm|numpy|jax|casadi|sympy", help="Language of the generated files."
)
@click.option("-o", "--out", "folder", required=True, metavar="DIR", help="Output folder.")
@click.option("--float32", is_flag=True, help="Use single precision (C only).")
@click.option("--force", is_flag=True, help="Overwrite files that parflex did not write.")
def codegen(
    robot: str,
    model: str,
    as_json: bool,
    parameters: str | None,
    without: str,
    friction_width: float | None,
    coordinates: str | None,
    operator_limit: int,
    target: str,
    folder: str,
    float32: bool,
    force: bool,
    **choice: Any,
) -> None:
    """Write a model as source code; for llvm also compile it for this machine."""
    from parflex.io import write_generated

    spare = read_allocation(choice)
    loaded = open_robot(robot, **choice)
    if model == "motion":
        raise InputError(
            "a motion is a table, not a program", key="model", value=model,
            hint="write it with 'parflex motion ROBOT MOTION --out FILE.csv'",
        )  # fmt: skip
    generated, terms, diagnostics = _make_model(
        loaded, model, parameters or "numbers", without, None, friction_width, coordinates, operator_limit,
        spare,
    )  # fmt: skip
    files = generated.files(target, float32)
    compiled = generated.compiled() if target == "llvm" else None  # where a cache fails, that was said already
    written = write_generated(folder, files, force=force)
    answer = {
        "files": [str(path) for path in written],
        "counts": generated.counts,
        "inputs": list(generated.program.inputs),
    }
    answer["outputs"] = [label for label, _ in generated.program.outputs]
    answer |= {"signals": generated.signals, "coordinates": coordinates, "about": generated.about}
    tables: list[Any] = [("", ["written"], [(str(path),) for path in written])]
    if target == "llvm":
        answer["compiled"] = str(compiled) if compiled else None
        tables.append(("", ["compiled for this machine, kept in"], [(answer["compiled"] or "nothing: no cache",)]))
    answer |= {"without": terms, "diagnostics": diagnostics}
    output.print_result(answer, as_json, *tables, ("", ["", "operators"], generated.counts.items()))
