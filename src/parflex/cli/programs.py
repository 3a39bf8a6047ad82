"""Verbs about models as programs: what they cost, and their source code."""

from __future__ import annotations

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


def _make_model(loaded: Any, name: str, parameters: str | None, included: str, limit: int, default: str) -> Any:
    from parflex.codegen.model import model as make

    chosen: Any = parameters or default
    if chosen not in ("base", "numbers"):
        chosen = [word.strip() for word in chosen.split(",") if word.strip()]
    terms = [word.strip() for word in included.split(",") if word.strip()]
    return make(loaded, name, parameters=chosen, include=terms, limit=limit)


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
    made = _make_model(loaded, model, parameters, included, operator_limit, default)
    output.show(
        {**made.counts, "warnings": []}, as_json, (f"{loaded.name} {model}", ["", "operators"], made.counts.items())
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
    **choice: Any,
) -> None:
    """Write a model as source code."""
    from parflex.codegen.model import write_files

    loaded = open_robot(robot, **choice)
    made = _make_model(loaded, model, parameters, included, operator_limit, "numbers")
    written = write_files(folder, made.files(target, float32))
    answer = {"files": [str(path) for path in written], "counts": made.counts, "inputs": list(made.program.inputs)}
    answer["outputs"] = [label for label, _ in made.program.outputs]
    output.show(
        answer,
        as_json,
        ("", ["written"], [(str(path),) for path in written]),
        ("", ["", "operators"], made.counts.items()),
    )
