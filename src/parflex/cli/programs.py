"""Verbs about models as programs: what they cost, and their source code."""

from __future__ import annotations

import warnings
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.input import open_robot, robot_options


def _model_options(command: Any) -> Any:
    for option in (
        click.option(
            "--parameters",
            metavar="base|numbers|NAMES",
            help="Inertial parameters kept as symbols; default: see below.",
        ),
        click.option(
            "--with", "included", metavar="LIST", default="", help="Joint terms: friction, motor-inertia, springs."
        ),
        click.option("--operator-limit", type=int, default=200_000, show_default=True, help="Refuse longer programs."),
        click.argument("model", metavar="MODEL"),
    ):
        command = option(command)
    return command


def _make_model(
    loaded: Any, name: str, parameters: str | None, included: str, limit: int, default: str
) -> tuple[Any, list[str]]:
    """The model, and what is to be said about it."""
    from parflex.codegen.model import model as make

    chosen: Any = parameters or default
    if chosen not in ("base", "numbers"):
        chosen = [word.strip() for word in chosen.split(",") if word.strip()]
    terms = [word.strip() for word in included.split(",") if word.strip()]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = make(loaded, name, parameters=chosen, include=terms, limit=limit)
    return made, list(dict.fromkeys(str(warning.message) for warning in told))


@cli.command(
    epilog="\b\nExample:\n  parflex count rx90 inverse\n\n"
    "Open robots are counted with base parameters as symbols, closed ones with numbers."
)
@robot_options
@_model_options
def count(
    robot: str, model: str, as_json: bool, parameters: str | None, included: str, operator_limit: int, **choice: Any
) -> None:
    """Operators of a model: inverse direct mass-matrix kinematics jacobian-of-inverse geometry geometry-direct step."""
    loaded = open_robot(robot, **choice)
    default = "numbers" if loaded.closures.loops else "base"
    made, told = _make_model(loaded, model, parameters, included, operator_limit, default)
    output.show(
        {**made.counts, "warnings": told}, as_json, (f"{loaded.name} {model}", ["", "operators"], made.counts.items())
    )


@cli.command(
    epilog="\b\nExample:\n  parflex codegen gough-stewart inverse --target c -o generated\n\n"
    "Parameters are numbers unless --parameters says otherwise."
)
@robot_options
@_model_options
@click.option("--target", required=True, metavar="c|llvm|numpy|jax|casadi|sympy", help="Language of the files.")
@click.option("-o", "--output", "folder", required=True, metavar="DIR", help="Folder to write to.")
@click.option("--float32", is_flag=True, help="Single precision (C).")
@click.option("--force", is_flag=True, help="Replace files that parflex has not written.")
def codegen(
    robot: str,
    model: str,
    as_json: bool,
    parameters: str | None,
    included: str,
    operator_limit: int,
    target: str,
    folder: str,
    float32: bool,
    force: bool,
    **choice: Any,
) -> None:
    """Write a model as source code; for llvm also compile it for this machine."""
    from parflex.codegen.files import write_files

    loaded = open_robot(robot, **choice)
    made, told = _make_model(loaded, model, parameters, included, operator_limit, "numbers")
    files = made.files(target, float32)
    compiled = made.compiled() if target == "llvm" else None  # where a cache fails, that was said already
    written = write_files(folder, files, force)
    answer = {"files": [str(path) for path in written], "counts": made.counts, "inputs": list(made.program.inputs)}
    answer["outputs"] = [label for label, _ in made.program.outputs]
    tables: list[Any] = [("", ["written"], [(str(path),) for path in written])]
    if target == "llvm":
        answer["compiled"] = str(compiled) if compiled else None
        tables.append(("", ["compiled for this machine, kept in"], [(answer["compiled"] or "nothing: no cache",)]))
    answer["warnings"] = told
    output.show(answer, as_json, *tables, ("", ["", "operators"], made.counts.items()))
