"""Command `map`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import (
    assignments,
    limits_option,
    numbers,
    open_robot,
    read_wrenches,
    robot_options,
    split_names,
    wrench_option,
)
from parflex.cli.output import count_progress
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError


@cli.command(
    "map",
    epilog="\b\nExamples:\n  parflex map navaro --over x=-0.1:0.1:40,y=-0.1:0.1:40 --fixed rz=0.2 --out map.npz\n"
    "  parflex map dualemps --over 11=-0.1:0.1:9 --response stiffness:x --out map.npz",
)
@robot_options
@click.option("--over", required=True, metavar="KEY=FROM:TO:COUNT,...", help="Coordinates and ranges of the grid.")
@click.option(
    "-o", "--out", required=True, metavar="FILE.npz", help="File of the map; a CSV file is written beside it."
)
@click.option("--fixed", metavar="KEY=VALUE,...", help="Coordinates that stay constant.")
@click.option("--modes", type=int, metavar="N", help="Number of modes; default: six, or all if there are fewer.")
@click.option(
    "--response", "responses", multiple=True, metavar="NAME", help="Also stiffness:FRAME.x, deflection:FRAME, ..."
)
@click.option("--elements", type=int, metavar="N", help="Split every beam element into N.")
@click.option("--lock", default="actuators", show_default=True, metavar="actuators|none|NAMES", help="Joints to lock.")
@click.option("--about", metavar="undeformed|equilibrium", help="The pose as given, or the equilibrium under loads.")
@wrench_option
@click.option("--threads", type=int, metavar="N", help="Number of threads; default: one for each core.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers compute, as tcp://HOST:8786.")
@limits_option
@click.option("--no-csv", is_flag=True, help="Write no CSV file.")
@click.option("--lowest-over", metavar="KEY,...", help="Draw and report the lowest frequency over these coordinates.")
@click.option(
    "--figure",
    metavar="FILE.svg",
    help="Also draw the lowest frequency to this file, and each response with one number beside it.",
)
def map_command(
    robot: str,
    as_json: bool,
    over: str,
    out: str,
    fixed: str | None,
    modes: int | None,
    responses: tuple[str, ...],
    elements: int | None,
    lock: str,
    about: str | None,
    wrench: tuple[str, ...],
    threads: int | None,
    cluster: str | None,
    no_csv: bool,
    lowest_over: str | None,
    figure: str | None,
    ignore_limits: bool,
    **choice: Any,
) -> None:
    """Natural frequencies over a grid of poses; run it again to go on where it stopped."""
    from parflex import frequency_map
    from parflex.maps.closed_rows import OK

    if figure:
        from parflex.view.style import picture_path

        picture_path(figure)
    axes = read_axes(over)
    left_out = split_names(lowest_over or "")
    _check_lowest_over([name for name, *_ in axes], left_out)
    fixed_values = assignments(fixed, "fixed") if fixed else {}
    loaded = open_robot(robot, elements=elements, **choice)
    names: Any = lock if lock in ("actuators", "none") else [word.strip() for word in lock.split(",")]
    arguments: dict[str, Any] = {"about": about, "wrench": read_wrenches(wrench), "threads": threads, "csv": not no_csv}
    arguments |= {"cluster": cluster, "ignore_limits": ignore_limits}
    with count_progress("map") as progress:
        result = frequency_map(
            loaded, axes, fixed_values, modes, names, out, progress, responses=list(responses), **arguments
        )
    answer = _answer(result, out, no_csv, loaded.diagnostics)
    drawn = result.lowest_over(left_out) if left_out else result
    if left_out and (drawn.status == OK).any():
        answer["lowest"] = _lowest(drawn)
    if figure:
        from parflex import draw_map
        from parflex.view.map_figure import draw_panels, scalars

        if scalars(drawn):
            draw_panels(drawn, figure, title=loaded.name)
        else:
            draw_map(drawn, figure, title=f"{loaded.name}: lowest natural frequency")
        answer["figure"] = figure
    rows = [(name, answer[name]) for name in ("cells", "computed", "ok", "unreachable", "singular", "outside")]
    rows += [
        ("first frequency, lowest (Hz)", answer["lowest_hz"]),
        ("first frequency, highest (Hz)", answer["highest_hz"]),
    ]
    rows += [
        (f"{name}, {word} ({result.units[name]})", span[word])
        for name, span in answer["responses"].items()
        for word in ("lowest", "highest")
    ]
    output.print_result(answer, as_json, (f"map in {out}", ["", ""], [(name, _shown(value)) for name, value in rows]))
    if result.interrupted:
        click.echo("interrupted: run the same command again to resume", err=True)
        sys.exit(1)


def _check_lowest_over(names: list[str], left_out: list[str]) -> None:
    """Refuse what cannot be left out before anything is computed."""
    for word in left_out:
        if word not in names:
            raise InputError(
                f"'{word}' is not an axis of the map", key="lowest-over", value=word, hint=f"name {', '.join(names)}"
            )
    if left_out and set(left_out) == set(names):
        raise InputError("an axis must remain", key="lowest-over", value=",".join(left_out), hint="name fewer axes")


def _answer(result: Any, out: str, no_csv: bool, diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    import numpy as np

    from parflex.maps.closed_rows import OK, OUTSIDE, SINGULAR, UNREACHABLE

    frequencies = result.frequencies[result.status == OK]
    spans = {}
    for name, values in result.responses.items():
        finite = values[np.isfinite(values)]
        spans[name] = {
            "unit": result.units[name],
            "lowest": float(finite.min()) if finite.size else None,
            "highest": float(finite.max()) if finite.size else None,
        }
    return {
        "out": out,
        "csv": None if no_csv else str(Path(out).with_suffix(".csv")),
        "cells": int(result.status.size),
        "computed": result.computed,
        "ok": result.count(OK),
        "unreachable": result.count(UNREACHABLE),
        "singular": result.count(SINGULAR),
        "outside": result.count(OUTSIDE),
        "interrupted": result.interrupted,
        "lowest_hz": float(frequencies[:, 0].min()) if frequencies.size else None,
        "highest_hz": float(frequencies[:, 0].max()) if frequencies.size else None,
        "method": result.method,
        "solved_in_full": result.solved_in_full,
        "largest_difference_hz": result.largest_difference,
        "responses": spans,
        "diagnostics": diagnostics,
    }


def _lowest(drawn: Any) -> dict[str, Any]:
    """The lowest frequency of all, and where it is."""
    import numpy as np

    cell = np.unravel_index(int(np.nanargmin(drawn.frequencies[..., 0])), drawn.status.shape)
    place = {name: float(axis[k]) for (name, axis), k in zip(drawn.axes.items(), cell, strict=True)}
    return {
        "frequency_hz": float(drawn.frequencies[(*cell, 0)]),
        "at": place | {name: float(values[cell]) for name, values in drawn.at.items()},
    }


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
