"""The verb that plans a motion: its table and its largest values."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.input import open_robot, robot_options
from parflex.errors import InputError


@cli.command(epilog="\b\nExamples:\n  parflex motion dualemps circle --time 5 --out circle.csv")
@robot_options
@click.argument("motion", metavar="NAME|FILE|TABLE")
@click.option("--time", type=float, metavar="T", help="Duration of a motion without an end, s.")
@click.option("--step", type=float, default=1e-3, show_default=True, metavar="DT", help="Time between rows, s.")
@click.option("-o", "--out", "path", metavar="FILE", help="Table of the motors: .csv or .npz.")
def motion(
    robot: str,
    motion: str,
    as_json: bool,
    time: float | None,
    step: float,
    path: str | None,
    **choice: Any,
) -> None:
    """Plan a motion of the motors: table, largest velocities and accelerations."""
    from parflex.simulation.motions.plan import plan_motion
    from parflex.simulation.table_files import check_target, write_table

    if path is not None:
        check_target(path)
    if not 0 < step < float("inf"):
        raise InputError("'step' is not a positive number", key="step", value=step, hint="give e.g. 0.001")
    loaded = open_robot(robot, **choice)
    plan = plan_motion(loaded, motion, time)
    columns = plan.table(step, time)
    written = [] if path is None else [str(file) for file in write_table(path, columns, {"motion": motion})]
    answer: dict[str, Any] = {"files": written, "columns": list(columns), "rows": len(columns["t"])}
    answer["time"] = float(columns["t"][-1])
    answer["motors"] = {name: _largest(columns, name) for name in plan.motors}
    rows = [(name, *values.values()) for name, values in answer["motors"].items()]
    tables: list[Any] = [(f"motion in {answer['time']:.6g} s", ["motor", "way", "velocity", "acceleration"], rows)]
    warnings = list(loaded.warnings)
    answer["warnings"] = warnings
    output.show(answer, as_json, *tables, ("", ["written"], [(file,) for file in written]))


def _largest(columns: Any, name: str) -> dict[str, float]:
    """Way, and largest velocity and acceleration of a motor."""
    way = float(columns[name].max() - columns[name].min())
    rates = {word: float(abs(columns[f"{name}.{word}"]).max()) for word in ("velocity", "acceleration")}
    return {"way": way, **rates}
