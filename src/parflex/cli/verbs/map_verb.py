"""The verb about maps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.input import assignments, numbers, open_robot, robot_options
from parflex.cli.progress import counter
from parflex.errors import InputError


@cli.command(
    "map", epilog="\b\nExample:\n  parflex map navaro --over x=-0.1:0.1:40,y=-0.1:0.1:40 --fixed rz=0.2 --out map.npz"
)
@robot_options
@click.option("--over", required=True, metavar="KEY=FROM:TO:COUNT,...", help="Coordinates and ranges of the grid.")
@click.option(
    "-o", "--out", required=True, metavar="FILE.npz", help="File of the map; a CSV file is written beside it."
)
@click.option("--fixed", metavar="KEY=VALUE,...", help="Coordinates that stay constant.")
@click.option("--modes", type=int, default=6, show_default=True, help="Number of modes.")
@click.option("--elements", type=int, metavar="N", help="Split every beam element into N.")
@click.option("--lock", default="actuators", show_default=True, metavar="actuators|none|NAMES", help="Joints to lock.")
@click.option("--figure", metavar="FILE.svg", help="Also draw the lowest frequency to this file.")
def map_verb(
    robot: str,
    as_json: bool,
    over: str,
    out: str,
    fixed: str | None,
    modes: int,
    elements: int | None,
    lock: str,
    figure: str | None,
    **choice: Any,
) -> None:
    """Natural frequencies over a grid of poses; run it again to go on where it stopped."""
    from parflex.maps.grid import OK, SINGULAR, UNREACHABLE, frequency_map

    if figure:
        from parflex.view.figures.robot_figure import picture_path

        picture_path(figure)
    axes = read_axes(over)
    held = assignments(fixed, "fixed") if fixed else {}
    loaded = open_robot(robot, elements=elements, **choice)
    names: Any = lock if lock in ("actuators", "none") else [word.strip() for word in lock.split(",")]
    with counter("map") as shown:
        found = frequency_map(loaded, axes, held, modes, names, out, shown)
    good = found.frequencies[found.status == OK]
    answer: dict[str, Any] = {
        "out": out,
        "csv": str(Path(out).with_suffix(".csv")),
        "cells": int(found.status.size),
        "computed": found.computed,
        "ok": found.count(OK),
        "unreachable": found.count(UNREACHABLE),
        "singular": found.count(SINGULAR),
        "interrupted": found.interrupted,
        "lowest_hz": float(good[:, 0].min()) if len(good) else None,
        "highest_hz": float(good[:, 0].max()) if len(good) else None,
        "method": found.method,
        "solved_in_full": found.solved_in_full,
        "largest_difference_hz": found.largest_difference,
        "warnings": list(loaded.warnings),
    }
    if figure:
        from parflex.view.figures.map_figure import draw_map

        draw_map(found, figure, title=f"{loaded.name}: lowest natural frequency")
        answer["figure"] = figure
    rows = [(name, answer[name]) for name in ("cells", "computed", "ok", "unreachable", "singular")]
    rows += [
        ("first frequency, lowest (Hz)", answer["lowest_hz"]),
        ("first frequency, highest (Hz)", answer["highest_hz"]),
    ]
    output.show(answer, as_json, (f"map in {out}", ["", ""], [(name, _shown(value)) for name, value in rows]))
    if found.interrupted:
        click.echo("interrupted: run the same command again to resume", err=True)
        sys.exit(1)


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def read_axes(text: str) -> list[tuple[str, float, float, int]]:
    """`x=a:b:n,y=a:b:n` as axes of a grid."""
    axes = []
    for part in text.split(","):
        word, equals, values = part.partition("=")
        pieces = values.split(":")
        if not equals or not word.strip() or len(pieces) != 3 or not all(piece.strip() for piece in pieces):
            raise InputError(
                f"'{part}' is not KEY=FROM:TO:COUNT", key="over", value=text, hint="write e.g. x=-0.1:0.1:50"
            )
        first, last, count = (numbers(piece.strip(), "over")[0] for piece in pieces)
        if count != int(count):
            raise InputError(
                f"'{pieces[2]}' is not a whole number", key="over", value=text, hint="give a count like 50"
            )
        axes.append((word.strip(), first, last, int(count)))
    return axes
