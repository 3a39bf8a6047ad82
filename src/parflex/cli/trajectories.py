"""Command `motion`: table, largest values, and the time-optimal law along its path."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import limits_option, number_or_table, open_robot, robot_options
from parflex.errors import InputError


@cli.command(
    epilog="\b\nExamples:\n  parflex motion dualemps circle --time 5 --out circle.csv\n"
    "  parflex motion dualemps square --time-optimal --effort-limit 100 --out fast.csv"
)
@robot_options
@click.argument("given", metavar="NAME|FILE|TABLE")
@click.option("--time", type=float, metavar="T", help="Duration of a motion without an end, s.")
@click.option("--step", type=float, default=1e-3, show_default=True, metavar="H", help="Time between rows, s.")
@click.option("--time-optimal", is_flag=True, help="Replace the law of the motion by the time-optimal one.")
@click.option("--effort-limit", metavar="E|JOINT=E,...", help="Largest efforts of the motors, N or N m.")
@click.option("--velocity-limit", metavar="V|JOINT=V,...", help="Largest velocities of the motors, m/s or rad/s.")
@click.option(
    "--acceleration-limit", metavar="A|JOINT=A,...", help="Largest accelerations of the motors, m/s^2 or rad/s^2."
)
@limits_option
@click.option("-o", "--out", "path", metavar="FILE", help="Table of the motors: .csv or .npz.")
@click.option("--figure", metavar="FILE", help="Picture of a time-optimal motion: phase plane and efforts.")
def motion(
    robot: str,
    given: str,
    as_json: bool,
    time: float | None,
    step: float,
    time_optimal: bool,
    effort_limit: str | None,
    velocity_limit: str | None,
    acceleration_limit: str | None,
    ignore_limits: bool,
    path: str | None,
    figure: str | None,
    **choice: Any,
) -> None:
    """Plan a motion of the motors: table, largest velocities and accelerations, time-optimal law."""
    from parflex import plan_motion
    from parflex.trajectories.files import check_target, write_table
    from parflex.trajectories.motions import with_time_law

    if not 0 < step < float("inf"):
        raise InputError("'step' is not a positive number", key="step", value=step, hint="give e.g. 0.001")
    loaded = open_robot(robot, **choice)
    if path is not None:
        check_target(path)
    limits = {
        "effort_limit": number_or_table(effort_limit, "effort-limit"),
        "velocity_limit": number_or_table(velocity_limit, "velocity-limit"),
        "acceleration_limit": number_or_table(acceleration_limit, "acceleration-limit"),
    }
    requested_motion = with_time_law(loaded, given) if time_optimal else given
    plan = plan_motion(loaded, requested_motion, time, **limits, ignore_limits=ignore_limits)
    if figure is not None and plan.timing is None:
        raise InputError("only a time-optimal motion has such a picture", key="figure", hint="add --time-optimal")
    columns = plan.table(step, time)
    written = [] if path is None else [str(file) for file in write_table(path, columns, {"motion": given})]
    answer: dict[str, Any] = {"files": written, "columns": list(columns), "rows": len(columns["t"])}
    answer["time"] = float(columns["t"][-1])
    largest = zip(*plan.until(answer["time"]).largest_values(answer["time"]), strict=True)
    words = ("way", "velocity", "acceleration")
    answer["motors"] = {
        name: dict(zip(words, map(float, values), strict=True))
        for name, values in zip(plan.names, largest, strict=True)
    }
    rows = [(name, *values.values()) for name, values in answer["motors"].items()]
    tables: list[Any] = [(f"motion in {answer['time']:.6g} s", ["motor", "way", "velocity", "acceleration"], rows)]
    diagnostics = [*loaded.diagnostics, *plan.diagnostics]
    if plan.timing is not None:
        answer |= plan.timing.answer()
        tables += plan.timing.tables()
        if figure is not None:
            from parflex import draw_timing

            draw_timing(plan, figure)
            written.append(figure)
    answer["diagnostics"] = diagnostics
    output.print_result(answer, as_json, *tables, ("", ["written"], [(file,) for file in written]))
