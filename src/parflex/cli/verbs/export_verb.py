"""The verb that writes a robot for other programs."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import QuietOption, cli
from parflex.cli.input import open_robot, robot_options
from parflex.errors import InputError, did_you_mean

FORMATS = ("mjcf", "urdf")


@cli.command(
    epilog="\b\nExamples:\n  parflex export mjcf delta -o delta.xml\n"
    "  parflex export urdf gough-stewart -o hexapod.urdf\n\n"
    "FORMAT is mjcf (MuJoCo) or urdf (with the loops in a YAML file beside it). Flexible bodies are rigid in both."
)
@click.argument("format_name", metavar="FORMAT")
@robot_options
@click.option("-o", "--out", "--output", "out", cls=QuietOption, required=True, metavar="FILE", help="File to write.")
def export(format_name: str, robot: str, as_json: bool, out: str, **choice: Any) -> None:
    """Write a robot as a file for other programs."""
    if format_name not in FORMATS:
        raise InputError(
            f"there is no format '{format_name}'",
            key="format",
            value=format_name,
            hint=did_you_mean(format_name, FORMATS),
        )
    loaded = open_robot(robot, **choice)
    from parflex.exchange.mjcf import export_mjcf
    from parflex.exchange.urdf import export_urdf

    found = (export_mjcf if format_name == "mjcf" else export_urdf)(loaded, out)
    answer = {"file": found.file, "files": list(found.files), "notes": list(found.notes)}
    rows = [("file", name) for name in found.files] + [("note", note) for note in found.notes]
    output.show(answer | {"warnings": list(loaded.warnings)}, as_json, ("", ["", "written"], rows))
