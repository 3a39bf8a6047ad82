"""Commands `control` and `study`."""

from __future__ import annotations

import sys
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import (
    allocation_options,
    limits_option,
    open_robot,
    read_allocation,
    robot_options,
    split_names,
    without_option,
)
from parflex.cli.output import count_progress, time_progress
from parflex.diagnostics import Diagnostic


@cli.command(
    epilog="\b\nExamples:\n  parflex control 3rrr --working-mode +-+ --law ctc --reference circle:radius=0.1,time=2\n"
    "  parflex control 3rrr --law extended --reference circle:radius=0.05 --plant-set constants.distal=0.404 --json"
)
@robot_options
@click.option("--law", required=True, metavar="NAME", help="pd, ctc, ctc-task or extended.")
@click.option(
    "--reference",
    required=True,
    metavar="WORDS",
    help="circle:radius=0.1,time=2,x=0,y=0; line:x=0.1,time=1; quintic:FILE or spline:FILE of poses; a motion's name.",
)
@click.option("--plant", metavar="ROBOT", help="Robot that is simulated as the plant; default: the robot itself.")
@click.option("--plant-set", metavar="KEY=VALUE", multiple=True, help="Override a value of the plant's file.")
@click.option("--plant-payload", metavar="MASS,X,Y,Z", help="Point mass on the plant's end effector.")
@click.option("--time", type=float, metavar="T", help="Duration, s; default that of the reference.")
@click.option("--overshoot", type=float, default=0.1, show_default=True, help="Overshoot of the error's step response.")
@click.option("--peak-time", type=float, default=0.1, show_default=True, help="Peak time of that step response, s.")
@click.option("--kp", type=float, metavar="GAIN", help="Gain on errors, 1/s2, instead of overshoot and peak time.")
@click.option("--kv", type=float, metavar="GAIN", help="Gain on error rates, 1/s.")
@click.option(
    "--sample-time", type=float, default=1e-3, show_default=True, metavar="T", help="Sample time of the law, s."
)
@click.option(
    "--delay", type=int, default=0, show_default=True, metavar="N", help="Delay from sensing to effort, in samples."
)
@click.option(
    "--noise", type=float, default=0.0, show_default=True, metavar="S", help="Standard deviation of measured positions."
)
@click.option(
    "--rate-noise",
    type=float,
    default=0.0,
    show_default=True,
    metavar="S",
    help="Standard deviation of measured rates.",
)
@click.option(
    "--resolution", type=float, default=0.0, show_default=True, metavar="R", help="Resolution of position sensors."
)
@click.option(
    "--rates", default="measured", show_default=True, metavar="measured|differences", help="Source of the rates."
)
@allocation_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the noise.")
@click.option(
    "--start",
    default="motors",
    show_default=True,
    metavar="motors|platform",
    help="What starts on the reference.",
)
@click.option("--step", type=float, metavar="H", help="Step of the plant's integration, s; default 0.001.")
@click.option("--compensate", metavar="LIST", default="motor-inertia,springs", show_default=True,
              help="Joint terms in the model of the law: motor-inertia, springs, friction.")  # fmt: skip
@without_option
@click.option("--stops", is_flag=True, help="Let the limits of joints act, by the stops of the plant's file.")
@limits_option
@click.option("--reactions", is_flag=True, help="Columns of all reactions of joints and closures, with largest values.")
@click.option("-o", "--out", "path", metavar="FILE", help="Write time series to this file: .csv or .npz.")
def control(robot: str, as_json: bool, path: str | None, **options: Any) -> int:
    """Simulate tracking of a reference under a control law; the plant may differ from the model of the law."""
    from parflex import run_control
    from parflex.trajectories.files import check_target

    load_options = {key: options.pop(key) for key in ("settings", "payload", "actuation", "working_mode", "rigid")}
    loaded = open_robot(robot, **load_options)
    if path:
        check_target(path)
    plant_robot = _plant(
        robot, load_options, options.pop("plant"), options.pop("plant_set"), options.pop("plant_payload")
    )
    arguments = _arguments(options)
    with time_progress("controlling", arguments.get("time")) as progress:
        run = run_control(loaded, plant=plant_robot, progress=progress, **arguments)
    answer: dict[str, Any] = {
        "errors": run.errors,
        "failure": None if run.ok else {"kind": run.failure, "why": run.why, "stopped_at": run.stopped_at},
        "summary": run.summary,
        "settings": run.settings,
        "files": list(map(str, run.save(path))) if path else [],
        "diagnostics": [*loaded.diagnostics, *run.diagnostics],
    }
    if not run.ok:
        text = f"the run failed at t = {run.stopped_at:g} s: {run.why}"
        answer["diagnostics"].append(Diagnostic("stopped", text, "time", run.stopped_at))
    rows = [(name, "-" if value is None else value) for name, value in run.errors.items()]
    title = f"{loaded.name} under {run.settings['law']}"
    output.print_result(answer, as_json, (title, ["error of the end effector (m, s)", "value"], rows))
    return 0 if run.ok else 1


def _plant(
    robot: str, load_options: dict[str, Any], name: str | None, settings: tuple[str, ...], payload: str | None
) -> Any:
    """The plant, if it is not the robot itself."""
    if name is None and not settings and payload is None:
        return None
    robot_settings = load_options["settings"] if name is None else ()
    loaded = {
        **load_options,
        "settings": (*robot_settings, *settings),
        "payload": payload if payload is not None else load_options["payload"],
    }
    loaded["rigid"] = load_options["rigid"] and name is None
    return open_robot(name or robot, **loaded)


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the equivalent Python call."""
    arguments = {key: value for key, value in options.items() if value is not None}
    for short, word in (("kp", "Kp"), ("kv", "Kv")):
        if short in arguments:
            arguments[word] = arguments.pop(short)
    arguments["compensate"] = split_names(arguments["compensate"])
    arguments["without"] = split_names(arguments["without"])
    return arguments | read_allocation(arguments)


@cli.command(epilog="\b\nExample:\n  parflex study study.toml --out study.json --jobs 2")
@click.argument("file", metavar="FILE.toml")
@click.option(
    "-o", "--out", metavar="FILE.json", help="File for the results of all cases; run the command again to resume."
)
@click.option("--jobs", type=int, metavar="N", help="Parallel processes; default: one per core.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers compute, as tcp://HOST:8786.")
@click.option("--figure", metavar="FILE.svg", help="Also draw the mean errors to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print a single JSON object.")
def study(file: str, out: str | None, jobs: int | None, cluster: str | None, figure: str | None, as_json: bool) -> None:
    """Compare laws on plants whose parameters are wrong: templates of signs times percentages."""
    from parflex import run_study
    from parflex.control.study_file import read_study

    if figure:
        from parflex.view.style import picture_path

        picture_path(figure)
    table = read_study(file)
    with count_progress("study") as progress:
        result = run_study(table, out, jobs=jobs, cluster=cluster, progress=progress)
    rows = result.summary()
    answer: dict[str, Any] = {
        "percentages": rows,
        "laws": list(table.laws),
        "cases": result.total,
        "done": len(result.cases),
        "computed": result.computed,
        "interrupted": result.interrupted,
        "seconds": result.seconds,
        "parameters": result.parameters,
        "out": out,
    }
    if figure and result.cases:
        from parflex import draw_study

        draw_study(result, figure)
        answer["figure"] = figure
    output.print_result(answer, as_json, *_tables(rows, table.laws))
    if result.interrupted:
        click.echo("interrupted: run the same command again to resume" if out else "interrupted", err=True)
        sys.exit(1)


def _tables(rows: list[dict[str, Any]], laws: Any) -> list[Any]:
    """A row for each percentage and law."""
    completed, failed = [], []
    for row in rows:
        for law in laws:
            means = ["-" if value is None else value for value in row["errors"][law].values()]
            completed.append((f"{row['percentage']:g} %", law, row["compared"], *means))
            failed += [(f"{row['percentage']:g} %", law, kind, n) for kind, n in row["failures"][law].items()]
    tables: list[Any] = [
        (
            "means over templates that all laws complete",
            ["off by", "law", "templates", "ISE", "IAE", "ITAE", "max"],
            completed,
        )
    ]
    if failed:
        tables.append(("failed, excluded from means", ["off by", "law", "failure", "templates"], failed))
    return tables
