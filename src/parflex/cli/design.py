"""Commands `responses`, `response`, `sensitivities`, `optimise`, `sweep`."""

from __future__ import annotations

import sys
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import assignments, condition_options, read_load_options, read_pose_option, robot_options
from parflex.cli.output import count_progress


@cli.command(epilog="\b\nExample:\n  parflex responses")
@click.option("--json", "as_json", is_flag=True, help="Print a single JSON object.")
def responses(as_json: bool) -> None:
    """List the responses that `response`, `sensitivities`, `optimise` and `sweep` accept."""
    from parflex.design.registry import RESPONSES

    rows = [
        {"name": one.name, "argument": one.argument, "worst": one.worst, "help": one.help} for one in RESPONSES.values()
    ]
    table = [(f"{row['name']}:{row['argument']}".rstrip(":"), row["help"]) for row in rows]
    output.print_result({"responses": rows}, as_json, ("responses", ["name", "response"], table))


@cli.command(epilog="\b\nExample:\n  parflex response navaro frequency:1 --pose pose-3")
@robot_options
@condition_options
@click.argument("name", metavar="NAME[:ARG]")
def response(robot: str, as_json: bool, name: str, **options: Any) -> None:
    """Value of a response at a pose; `parflex responses` lists their names."""
    from parflex.design.design_state import ResponseCase
    from parflex.design.registry import read_question
    from parflex.design.sensitivity import sensitivities_of

    loaded, pose, case = read_load_options(robot, options)
    result = sensitivities_of(loaded, read_question(name, [pose], ResponseCase(**vars(case))), ())
    answer = {word: getattr(result, word) for word in ("response", "value", "unit")}
    row = (result.response, result.value, result.unit)
    table = (loaded.name, ["response", "value", "unit"], [row])
    output.print_result(answer | {"diagnostics": loaded.diagnostics}, as_json, table)


@cli.command(
    epilog="\b\nExamples:\n  parflex sensitivities navaro --response frequency:1 --to constants.bar,sections.link.Iz "
    "--pose pose-3\n  parflex sensitivities dualemps --response deflection:P.x --to constants.blade --wrench P=10,0,0"
)
@robot_options
@condition_options
@click.option(
    "--response", required=True, metavar="NAME[:ARG]",
    help="Response: frequency:k, stiffness:FRAME.x, deflection:FRAME.x, mass, effort:JOINT, stress:BEAM, ...",
)  # fmt: skip
@click.option("--to", "keys", required=True, metavar="KEY,...", help="Numbers of the robot file by dotted path.")
@click.option("--poses", metavar="POSE;POSE;...", help="Many poses in place of one; the worst value counts.")
@click.option("--velocity", metavar="KEY=VALUE,...", help="Velocity of the end effector or of joints.")
@click.option("--acceleration", metavar="KEY=VALUE,...", help="Acceleration of the end effector or of joints.")
@click.option("--tolerances", metavar="KEY=DEVIATION,...", help="Standard deviations of numbers of the robot file.")
@click.option("--statistic", default="mean", show_default=True, metavar="mean|QUANTILE", help="What of the spread.")
@click.option("--figure", metavar="FILE.svg", help="Also draw the elasticities to this file.")
def sensitivities(
    robot: str,
    as_json: bool,
    response: str,
    keys: str,
    poses: str | None,
    velocity: str | None,
    acceleration: str | None,
    tolerances: str | None,
    statistic: str,
    figure: str | None,
    **options: Any,
) -> None:
    """Exact derivatives of a response by numbers of the robot file; the pose stays, joints follow."""
    from parflex import sensitivities as derivatives
    from parflex.view.style import picture_path

    if figure:
        picture_path(figure)
    loaded, pose, case = read_load_options(robot, options)
    result = derivatives(
        loaded,
        response,
        [key.strip() for key in keys.split(",") if key.strip()],
        pose,
        poses=[read_pose_option(text.strip()) or "home" for text in poses.split(";")] if poses else None,
        velocity=assignments(velocity, "velocity") if velocity else None,
        acceleration=assignments(acceleration, "acceleration") if acceleration else None,
        tolerances=assignments(tolerances, "tolerances") if tolerances else None,
        statistic=statistic,
        load_case=case,
    )
    if figure:
        from parflex import draw_sensitivities

        draw_sensitivities(result, figure)
    answer = {**result.as_dict(), "figure": figure, "diagnostics": loaded.diagnostics}
    several = result.multiplicity > 1
    head = ["key", "elasticity (% per %)", f"derivative ({result.unit} per unit)"] + ["directional"] * several
    rows = [
        (key, _shown(entry["elasticity"]), entry["derivative"], *([result.directional[key]] if several else []))
        for key, entry in ((key, result.sensitivities[key]) for key in result.sorted_keys)
    ]
    title = f"{result.response} = {result.value:.6g} {result.unit}"
    title += f" ({result.multiplicity} equal values)" if several else ""
    output.print_result(answer, as_json, (title, head, rows))


@cli.command(epilog="\b\nExample:\n  parflex optimise stiffer.toml --out better")
@click.argument("file", metavar="FILE.toml")
@click.option(
    "-o",
    "--out",
    "out",
    required=True,
    metavar="DIR",
    help="Folder for the robot file and the page.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def optimise(file: str, out: str, as_json: bool) -> int:
    """Optimise a robot: variables, responses, objective and constraints of a file."""
    from parflex import optimise as optimised
    from parflex.view.design_page import write_design_page

    result = optimised(file, out)
    answer = {**result.as_dict(), "page": write_design_page(result, out)}
    answer["diagnostics"] = result.diagnostics
    responses = [(key, entry["before"], entry["after"], entry["unit"]) for key, entry in result.responses.items()]
    variables = [
        (key, *(entry[word] for word in ("start", "value", "lower", "upper")))
        for key, entry in result.variables.items()
    ]
    limits = [
        (entry["name"], entry["value"], entry["limit"], "yes" if entry["active"] else "", entry["multiplier"])
        for entry in result.constraints
    ]
    output.print_result(
        answer,
        as_json,
        (f"{result.status}: {result.message}", ["response", "before", "after", "unit"], responses),
        ("variables", ["key", "before", "after", "lower", "upper"], variables),
        ("limits", ["of", "value", "limit", "active", "multiplier"], limits),
        *(
            [
                (
                    "Pareto front",
                    [*result.front[0]["objectives"], *result.variables],
                    [_point(entry) for entry in result.front],
                )
            ]
            if result.front
            else []
        ),
        ("files", ["", "path"], [("robot", result.robot_file), ("page", answer["page"])]),
    )
    return 1 if result.status == "infeasible" else 0


@cli.command(
    epilog="\b\nExamples:\n  parflex sweep sweep.toml --out sweep.npz --jobs 2\n"
    "  parflex sweep sweep.toml --out sweep.parquet --cluster tcp://127.0.0.1:8786"
)
@click.argument("file", metavar="FILE.toml")
@click.option(
    "-o", "--out", required=True, metavar="FILE.npz|FILE.parquet", help="Table; run the command again to resume."
)
@click.option("--jobs", type=int, metavar="N", help="Parallel processes; default: one per core.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers compute, as tcp://HOST:8786.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sweep(file: str, out: str, jobs: int | None, cluster: str | None, as_json: bool) -> None:
    """Responses of many designs of a robot: a grid, samples or a list, in a table that can be taken up again."""
    import numpy as np

    from parflex import sweep as swept

    with count_progress("sweep") as progress:
        result = swept(file, out, jobs=jobs, cluster=cluster, progress=progress)
    fields = ("designs", "done", "computed", "failed", "out")
    spans = {}
    for name, values in result.responses.items():
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (None, None)
        spans[name] = {"lowest": low, "highest": high, "unit": result.units[name]}
    answer = {**result.as_dict(), "responses": spans}
    output.print_result(
        answer,
        as_json,
        ("", ["", ""], [(word, getattr(result, word)) for word in fields]),
        ("responses", ["", "lowest", "highest", "unit"], [(name, *span.values()) for name, span in spans.items()]),
    )
    if result.interrupted:
        click.echo("interrupted: run the same command again to resume", err=True)
        sys.exit(1)


def _point(design: dict[str, Any]) -> tuple[Any, ...]:
    return (*design["objectives"].values(), *design["variables"].values())


def _shown(value: float | None) -> Any:
    return "" if value is None else value
