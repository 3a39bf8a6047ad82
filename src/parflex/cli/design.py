"""Commands of responses, designs and maps: `responses response sensitivities optimise sweep map`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parflex.cli.group import verb
from parflex.cli.output import Answer, Table, interrupted, progress_line
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided, LoadCase


@verb("studies", "responses")
def responses() -> Answer:
    """List the responses that `response`, `sensitivities`, `optimise` and `sweep` accept."""
    from parflex.design.registry import RESPONSES

    rows = [
        {"name": one.name, "argument": one.argument, "worst": one.worst, "help": one.help} for one in RESPONSES.values()
    ]
    table = [(f"{row['name']}:{row['argument']}".rstrip(":"), row["help"]) for row in rows]
    return Answer({"responses": rows}, ("responses", ["name", "response"], table))


@verb("studies", "response navaro frequency:1 --pose pose-3")
def response(robot: Divided, case: LoadCase, name: str, *, pose: Any = None) -> Answer:
    """Value of a response at a pose; `parflex responses` lists their names."""
    from parflex.design.design_state import ResponseCase
    from parflex.design.registry import read_question
    from parflex.design.sensitivity import sensitivities_of

    result = sensitivities_of(robot, read_question(name, [pose], ResponseCase(**vars(case))), ())
    answer = {word: getattr(result, word) for word in ("response", "value", "unit")}
    row = (result.response, result.value, result.unit)
    return Answer(answer | {"diagnostics": robot.diagnostics}, (robot.name, ["response", "value", "unit"], [row]))


@verb(
    "studies",
    "sensitivities navaro --response frequency:1 --to constants.bar,sections.link.Iz --pose pose-3",
    "sensitivities dualemps --response deflection:P.x --to constants.blade --wrench P=10,0,0",
    of="sensitivities",
    omit=("samples", "seed"),
)
def sensitivities(robot: Divided, case: LoadCase, *, figure: str | None = None, **options: Any) -> Answer:
    """Exact derivatives of a response by numbers of the robot file; the pose stays, joints follow."""
    from parflex import draw_sensitivities
    from parflex import sensitivities as derivatives

    result = derivatives(robot, load_case=case, **options)
    if figure:
        draw_sensitivities(result, figure)
    answer = {**result.as_dict(), "figure": figure, "diagnostics": robot.diagnostics}
    several = result.multiplicity > 1
    head = ["key", "elasticity (% per %)", f"derivative ({result.unit} per unit)"] + ["directional"] * several
    rows = []
    for key in result.sorted_keys:
        entry = result.sensitivities[key]
        elasticity = "" if entry["elasticity"] is None else entry["elasticity"]
        rows.append((key, elasticity, entry["derivative"], *([result.directional[key]] if several else [])))
    title = f"{result.response} = {result.value:.6g} {result.unit}"
    title += f" ({result.multiplicity} equal values)" if several else ""
    return Answer(answer, (title, head, rows))


@verb("studies", "optimise stiffer.toml --out better")
def optimise(file: str, *, out: str) -> Answer:
    """Optimise a robot: variables, responses, objective and constraints of a file."""
    from parflex import optimise as optimised
    from parflex.view.design_page import write_design_page

    result = optimised(file, out)
    page = write_design_page(result, out)
    words = ("start", "value", "lower", "upper")
    limits = [
        (entry["name"], entry["value"], entry["limit"], "yes" if entry["active"] else "", entry["multiplier"])
        for entry in result.constraints
    ]
    points = [(*entry["objectives"].values(), *entry["variables"].values()) for entry in result.front or ()]
    objectives = result.front[0]["objectives"] if result.front else ()
    tables: list[Table] = [
        (
            f"{result.status}: {result.message}",
            ["response", "before", "after", "unit"],
            [(key, entry["before"], entry["after"], entry["unit"]) for key, entry in result.responses.items()],
        ),
        (
            "variables",
            ["key", "before", "after", "lower", "upper"],
            [(key, *(entry[word] for word in words)) for key, entry in result.variables.items()],
        ),
        ("limits", ["of", "value", "limit", "active", "multiplier"], limits),
        ("Pareto front", [*objectives, *result.variables], points),
        ("files", ["", "path"], [("robot", result.robot_file), ("page", page)]),
    ]
    answer = {**result.as_dict(), "page": page, "diagnostics": result.diagnostics}
    return Answer(answer, *tables, code=1 if result.status == "infeasible" else 0)


@verb(
    "studies",
    "sweep sweep.toml --out sweep.npz --jobs 2",
    "sweep sweep.toml --out sweep.parquet --cluster tcp://127.0.0.1:8786",
)
def sweep(file: str, *, out: str, jobs: int | None = None, cluster: str | None = None) -> Answer:
    """Responses of many designs of a robot: a grid, samples or a list, in a table that can be taken up again."""
    from parflex import sweep as swept

    with progress_line("sweep") as progress:
        result = swept(file, out, jobs=jobs, cluster=cluster, progress=progress)
    spans = {name: span(values, result.units[name]) for name, values in result.responses.items()}
    rows = [(word, getattr(result, word)) for word in ("designs", "done", "computed", "failed", "out")]
    found = [(name, entry["unit"], entry["lowest"], entry["highest"]) for name, entry in spans.items()]
    tables: list[Table] = [("", ["", ""], rows), ("responses", ["", "unit", "lowest", "highest"], found)]
    return Answer({**result.as_dict(), "responses": spans}, *tables, code=interrupted(result))


@verb(
    "studies",
    "map navaro --over x=-0.1:0.1:40,y=-0.1:0.1:40 --fixed rz=0.2 --out map.npz",
    "map dualemps --over 11=-0.1:0.1:9 --response stiffness:x --out map.npz",
    name="map",
    of="frequency_map",
)
def map_command(
    robot: Divided,
    *,
    over: Any,
    out: str,
    lowest_over: Any = (),
    figure: str | None = None,
    csv: bool = True,
    **options: Any,
) -> Answer:
    """Natural frequencies over a grid of poses; run it again to go on where it stopped."""
    from parflex import draw_map, frequency_map
    from parflex.maps.continuation import OK
    from parflex.view.map_figure import draw_panels, scalars

    _check_lowest_over([name for name, *_ in over], lowest_over)
    with progress_line("map") as progress:
        result = frequency_map(robot, over, out=out, csv=csv, progress=progress, **options)
    answer = _map_answer(result, out, csv, robot.diagnostics)
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


def _map_answer(result: Any, out: str, csv: bool, diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    from parflex.maps.continuation import OK, OUTSIDE, SINGULAR, UNREACHABLE

    first = span(result.frequencies[result.status == OK][:, :1], "Hz")
    return {
        "out": out,
        "csv": str(Path(out).with_suffix(".csv")) if csv else None,
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
        "fallbacks": result.fallbacks,
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


def span(values: Any, unit: str) -> dict[str, Any]:
    """Return the unit and the lowest and highest finite value."""
    import numpy as np

    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    return {"unit": unit, "lowest": low, "highest": high}
