"""Command `map`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parflex.cli.design import span
from parflex.cli.group import verb
from parflex.cli.output import Answer, interrupted, progress_line
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided


@verb(
    "studies",
    "map navaro --over x=-0.1:0.1:40,y=-0.1:0.1:40 --fixed rz=0.2 --out map.npz",
    "map dualemps --over 11=-0.1:0.1:9 --response stiffness:x --out map.npz",
    name="map",
)
def map_command(
    robot: Divided,
    *,
    over: Any,
    out: str,
    fixed: Any = None,
    modes: int | None = None,
    responses: tuple[str, ...] = (),
    lock: Any = "actuators",
    about: str | None = None,
    wrench: Any = None,
    threads: int | None = None,
    cluster: str | None = None,
    ignore_limits: bool = False,
    no_csv: bool = False,
    lowest_over: Any = (),
    figure: str | None = None,
) -> Answer:
    """Natural frequencies over a grid of poses; run it again to go on where it stopped."""
    from parflex import draw_map, frequency_map
    from parflex.maps.continuation import OK
    from parflex.view.map_figure import draw_panels, scalars

    _check_lowest_over([name for name, *_ in over], lowest_over)
    words: dict[str, Any] = {"about": about, "wrench": wrench, "threads": threads, "csv": not no_csv}
    words |= {"cluster": cluster, "ignore_limits": ignore_limits, "responses": list(responses)}
    with progress_line("map") as progress:
        result = frequency_map(robot, over, fixed or {}, modes, lock, out, progress, **words)
    answer = _answer(result, out, no_csv, robot.diagnostics)
    drawn = result.lowest_over(lowest_over) if lowest_over else result
    if lowest_over and (drawn.status == OK).any():
        answer["lowest"] = _lowest(drawn)
    if figure:
        if scalars(drawn):
            draw_panels(drawn, figure, title=robot.name)
        else:
            draw_map(drawn, figure, title=f"{robot.name}: lowest natural frequency")
        answer["figure"] = figure
    rows = [(name, answer[name]) for name in ("cells", "computed", "ok", "unreachable", "singular", "outside")]
    rows += [(f"first frequency, {word} (Hz)", answer[f"{word}_hz"]) for word in ("lowest", "highest")]
    rows += [
        (f"{name}, {word} ({result.units[name]})", entry[word])
        for name, entry in answer["responses"].items()
        for word in ("lowest", "highest")
    ]
    return Answer(answer, (f"map in {out}", ["", ""], rows), code=interrupted(result))


def _check_lowest_over(names: list[str], left_out: Sequence[str]) -> None:
    """Refuse what cannot be left out before anything is computed."""
    for word in left_out:
        if word not in names:
            text = f"'{word}' is not an axis of the map"
            raise InputError(text, key="lowest-over", value=word, hint=f"name {', '.join(names)}")
    if left_out and set(left_out) == set(names):
        raise InputError("an axis must remain", key="lowest-over", value=",".join(left_out), hint="name fewer axes")


def _answer(result: Any, out: str, no_csv: bool, diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    from parflex.maps.continuation import OK, OUTSIDE, SINGULAR, UNREACHABLE

    first = span(result.frequencies[result.status == OK][:, :1], "Hz")
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
        "lowest_hz": first["lowest"],
        "highest_hz": first["highest"],
        "method": result.method,
        "solved_in_full": result.solved_in_full,
        "largest_difference_hz": result.largest_difference,
        "responses": {name: span(values, result.units[name]) for name, values in result.responses.items()},
        "diagnostics": diagnostics,
    }


def _lowest(drawn: Any) -> dict[str, Any]:
    """Return the lowest frequency of all, and where it is."""
    import numpy as np

    cell = np.unravel_index(int(np.nanargmin(drawn.frequencies[..., 0])), drawn.status.shape)
    place = {name: float(axis[k]) for (name, axis), k in zip(drawn.axes.items(), cell, strict=True)}
    return {
        "frequency_hz": float(drawn.frequencies[(*cell, 0)]),
        "at": place | {name: float(values[cell]) for name, values in drawn.at.items()},
    }
