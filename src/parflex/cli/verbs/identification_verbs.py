"""The verbs about measured robots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.input import open_robot, robot_options


@cli.command(
    epilog="\b\nExamples:\n  parflex identify emps DATA_EMPS.mat --columns columns.toml --cutoff 100 --out axis.toml\n"
    "  parflex identify 3rrr run1.csv run2.csv --columns columns.toml --validate run3.csv --page report --json"
)
@robot_options
@click.argument("record", metavar="RECORD...", nargs=-1, required=True)
@click.option("--columns", metavar="MAP.toml", help="Columns of the records; default t, q.JOINT, effort.JOINT.")
@click.option(
    "--estimator", default="wls", show_default=True, metavar="ols|wls|irls|tls|iv|didim", help="Method of estimation."
)
@click.option("--cutoff", type=float, metavar="HZ", help="Low-pass of positions, Hz; default: from their spectrum.")
@click.option("--decimate", type=int, metavar="N", help="Keep one of N samples; default: as the cutoff needs.")
@click.option("--least-speed", type=float, metavar="V", help="Leave out slower samples of motors with dry friction.")
@click.option(
    "--friction", default="file", show_default=True, metavar="file|none|symmetric|offset|direction",
    help="Friction of motors that is looked for.",
)  # fmt: skip
@click.option("--validate", metavar="RECORD", multiple=True, help="Record to predict, not used; repeatable.")
@click.option("--physical", is_flag=True, help="Bodies that can be, nearest to the file's; needs clarabel.")
@click.option("-o", "--out", metavar="FILE.toml", help="Write a robot file that extends the first.")
@click.option("--page", metavar="DIR", help="Write a page with efforts, spectra and parameters to this folder.")
def identify(
    robot: str, as_json: bool, record: tuple[str, ...], out: str | None, page: str | None, **options: Any
) -> None:
    """Identify inertial parameters, friction and drive gains of a robot from records of its motors."""
    from parflex.identification.identify import identify as identified
    from parflex.identification.written_robot import check_robot_target, write_robot

    words = {key: options.pop(key) for key in ("settings", "payload", "actuation", "working_mode")}
    loaded = open_robot(robot, **words)
    if out:
        check_robot_target(out)
    options["validate"] = list(options["validate"]) or None
    found = identified(loaded, list(record), **options)
    answer = found.as_dict()
    warnings = [*loaded.warnings, *found.warnings]
    if out:
        warnings += write_robot(loaded, found, out)
        warnings += ["values of --set are not in the file"] if words["settings"] else []
        answer["out"] = out
    if page:
        from parflex.view.notebook.identification_page import write_identification

        answer["page"] = str(write_identification(page, found))
    answer["warnings"] = warnings
    rows = [
        (name, one.value, one.deviation, one.deviation_white, f"{100 * one.relative:.3g} %",
         "yes" if one.essential else "no", one.unit)
        for name, one in found.parameters.items()
    ]  # fmt: skip
    more = [("relative error", found.relative_error), ("condition number", found.condition)]
    if found.validation is not None:
        more.append(("relative error, validation", found.validation["relative_error"]))
    if found.physical is not None:
        more.append(("relative error, bodies that can be", found.physical["relative_error"]))
    more += [(f"noise of {name} (N, N m)", one["noise"]) for name, one in found.per_motor.items()]
    head = ["parameter", "value", "deviation", "white", "relative", "essential", "unit"]
    tables: list[Any] = [(f"{loaded.name}: parameters by {found.estimator}", head, rows)]
    if found.gains:
        gains = [(name, one["value"], one["deviation"]) for name, one in found.gains.items()]
        tables.append(("drive gains", ["motor", "gain", "deviation"], gains))
    tables.append(("fit", ["", ""], more))
    if found.undetermined:
        tables.append(("undetermined", ["parameter", "why"], [(one["name"], one["why"]) for one in found.undetermined]))
    tables.append(("steps", [""], [(step,) for step in found.steps]))
    written = [("robot file", out)] if out else []
    written += [("page", str(Path(page) / "index.html"))] if page else []
    if written:
        tables.append(("written", ["", ""], written))
    output.show(answer, as_json, *tables)
