"""The verb that tells how a model is made."""

from __future__ import annotations

import shutil
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.input import coordinates_option, open_robot, robot_options
from parflex.errors import ParflexError

WIDEST = 100


@cli.command(
    epilog="\b\nExamples:\n  parflex explain gough-stewart\n  parflex explain dualemps --counts --json\n"
    "  parflex explain 3rrr --markdown > 3rrr.md"
)
@robot_options
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--counts", is_flag=True, help="Also count the operators of the programs; tracing them may take seconds.")
@coordinates_option
@click.option("--elements", type=int, metavar="N", help="Split every beam element into N.")
def explain(robot: str, as_json: bool, markdown: bool, counts: bool, coordinates: str | None, **choice: Any) -> None:
    """In words and equations: how the model of this robot is made.

    Bodies, coordinates, loops and where they are cut, what depends on what, motors, the form of its programs, and
    where its numbers come from. Equations have their numbers of the page Theory of the documentation.
    """
    from parflex.models.explaining.explain import explain as explain_robot

    loaded = open_robot(robot, **choice)
    told = explain_robot(loaded, coordinates)
    answer = told.as_dict()
    text = told.as_markdown() if markdown else told.as_text(min(WIDEST, shutil.get_terminal_size().columns))
    if counts:
        answer["operators"] = _operators(loaded, coordinates)
        rows = [f"{name}: {count}" for name, count in answer["operators"].items()]
        text += "\nOperators of the programs: " + ", ".join(rows) + "\n"
    if as_json:
        output.show(answer, as_json)
        return
    output.warn(told.warnings)
    click.echo(text, nl=False)


def _operators(loaded: Any, coordinates: Any) -> dict[str, Any]:
    """Operators of the inverse and direct models, as `count` counts; None where the actuation does not define one."""
    from parflex.codegen.model import model
    from parflex.models.terms import COUNTED_WITHOUT

    found: dict[str, Any] = {}
    for name in ("inverse", "direct"):
        try:
            found[name] = model(loaded, name, without=COUNTED_WITHOUT, coordinates=coordinates).counts["total"]
        except ParflexError:
            found[name] = None
    return found
