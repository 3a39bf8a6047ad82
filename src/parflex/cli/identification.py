"""Commands `identify`, `excite`, `update`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import open_robot, robot_options, split_names, without_option
from parflex.cli.output import count_progress
from parflex.diagnostics import Diagnostic


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
@click.option("--keep-spikes", is_flag=True, help="Leave single samples that are far from their neighbours.")
@click.option("--keep", metavar="NAME,...", default="", help="Springs and dampers that stay as in the file; all.")
@click.option("-o", "--out", metavar="FILE.toml", help="Write a robot file that extends the first.")
@click.option("--page", metavar="DIR", help="Write a page with efforts, spectra and parameters to this folder.")
def identify(
    robot: str, as_json: bool, record: tuple[str, ...], out: str | None, page: str | None, **options: Any
) -> None:
    """Identify inertial parameters, friction and drive gains of a robot from records of its motors."""
    from parflex import identify as identified
    from parflex.identification.robot_update import check_robot_target

    load_options = {key: options.pop(key) for key in ("settings", "payload", "actuation", "working_mode", "rigid")}
    loaded = open_robot(robot, **load_options)
    if out:
        check_robot_target(out, loaded)
    options["validate"] = list(options["validate"]) or None
    options["keep"] = split_names(options["keep"])
    result = identified(loaded, list(record), **options)
    answer = result.as_dict()
    diagnostics = [*loaded.diagnostics, *result.diagnostics]
    if out:
        diagnostics += result.to_file(out)
        diagnostics += _unsaved_option_warnings(load_options)
        answer["out"] = out
    if page:
        from parflex.view.fit_report import write_identification

        answer["page"] = str(write_identification(page, result))
    answer["diagnostics"] = diagnostics
    rows = [
        (name, entry.value, entry.deviation, entry.deviation_white, f"{100 * entry.relative:.3g} %",
         "yes" if entry.essential else "no", entry.unit)
        for name, entry in result.parameters.items()
    ]  # fmt: skip
    more = [("relative error, all motors", result.relative_error), ("condition number", result.condition)]
    if result.validation is not None:
        more.append(("relative error, validation", result.validation["relative_error"]))
    if result.physical is not None:
        more.append(("relative error, bodies that can be", result.physical["relative_error"]))
    more += [(f"relative error of {name}", entry["relative_error"]) for name, entry in result.per_motor.items()]
    more += [(f"noise of {name} (N, N m)", entry["noise"]) for name, entry in result.per_motor.items()]
    head = ["parameter", "value", "deviation", "white", "relative", "essential", "unit"]
    tables: list[Any] = [(f"{loaded.name}: parameters by {result.estimator}", head, rows)]
    if result.gains:
        gains = [(name, entry["value"], entry["deviation"]) for name, entry in result.gains.items()]
        tables.append(("drive gains", ["motor", "gain", "deviation"], gains))
    tables.append(("fit", ["", ""], more))
    if result.undetermined:
        tables.append(
            ("undetermined", ["parameter", "why"], [(entry["name"], entry["why"]) for entry in result.undetermined])
        )
    tables.append(("steps", [""], [(step,) for step in result.steps]))
    written = [("robot file", out)] if out else []
    written += [("page", str(Path(page) / "index.html"))] if page else []
    if written:
        tables.append(("written", ["", ""], written))
    output.print_result(answer, as_json, *tables)


@cli.command(
    epilog="\b\nExamples:\n  parflex excite 3rrr --time 5 --harmonics 4 --velocity-limit 3 --out motion.csv\n"
    "  parflex excite emps --time 4 --harmonics 3 --velocity-limit 0.5 --effort-limit 300 --json"
)
@robot_options
@click.option("--time", type=float, default=10.0, show_default=True, metavar="T", help="Duration, s.")
@click.option("--harmonics", type=int, default=5, show_default=True, metavar="N", help="Harmonics of the motors.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the starts.")
@click.option("--amplitude", type=float,
              help="Reach of all motors about home, within the limits of the file, rad or typical lengths; "
              "default: 0.5 for motors without limits.")  # fmt: skip
@click.option("--velocity-limit", metavar="V|JOINT=V,...", help="Largest velocities of the motors, m/s or rad/s.")
@click.option("--effort-limit", metavar="E|JOINT=E,...", help="Largest efforts of the motors, N or N m.")
@click.option("--workspace", metavar="x=LOW:HIGH,...", help="Places of the end effector, m.")
@click.option("--distance", type=float, default=0.3, show_default=True, metavar="D",
              help="Least distance to singular poses: 1 at home, 0 at singular poses.")  # fmt: skip
@click.option("--friction", default="file", show_default=True, metavar="file|none|symmetric|offset|direction",
              help="Friction of motors that is looked for.")  # fmt: skip
@click.option("--starts", type=int, default=4, show_default=True, metavar="N", help="Random starts.")
@click.option("--step", type=float, default=1e-3, show_default=True, metavar="H", help="Time between rows, s.")
@click.option("-o", "--out", metavar="FILE.csv", help="Table of the motors; the motion stands beside it in FILE.toml.")
def excite(
    robot: str, as_json: bool, step: float, out: str | None, velocity_limit: str | None, effort_limit: str | None,
    workspace: str | None, **options: Any,
) -> None:  # fmt: skip
    """Find a motion of the motors that tells the base parameters best, within limits."""
    from parflex import excite as excited
    from parflex.api import check_argument
    from parflex.cli.options import number_or_table
    from parflex.identification.excitation import check_motion_target, read_region, write_motion

    check_argument("step", step)
    load_options = {key: options.pop(key) for key in ("settings", "payload", "actuation", "working_mode", "rigid")}
    box = read_region(workspace)
    limits = {
        "velocity_limit": number_or_table(velocity_limit, "velocity-limit"),
        "effort_limit": number_or_table(effort_limit, "effort-limit"),
    }
    loaded = open_robot(robot, **load_options)
    if out:
        check_motion_target(loaded, out)
    with count_progress("fits") as progress:
        result = excited(loaded, workspace=box, **limits, **options, progress=progress)
    files = write_motion(loaded, result, out, step) if out else []
    answer = {**result.as_dict(), "files": files, "diagnostics": loaded.diagnostics}
    limit_entries = [
        (kind, name, entry) for kind in ("position", "speed", "effort", "workspace")
        for name, entry in result.limits[kind].items()
    ]  # fmt: skip
    rows = [
        (kind, name, *(entry.get(word, "") for word in ("lowest", "highest", "largest")),
         _said(entry.get("limits", entry.get("limit"))))
        for kind, name, entry in [*limit_entries, ("distance", "", result.limits["distance"])]
    ]  # fmt: skip
    fit = [
        ("log det", result.log_det), ("condition number", result.condition),
        ("deviations, geometric mean", result.deviations["geometric_mean"]),
        ("deviations, largest", result.deviations["largest"]),
    ]  # fmt: skip
    tables: list[Any] = [
        (f"{loaded.name}: {len(result.parameters)} base parameters", ["", ""], fit),
        ("limits", ["of", "", "lowest", "highest", "largest", "limits"], rows),
    ]
    output.print_result(answer, as_json, *tables, ("", ["written"], [(file,) for file in files]))


def _unsaved_option_warnings(options: dict[str, Any]) -> list[Diagnostic]:
    """A diagnostic for what the robot had on the command line, and the written file does not have."""
    sentences = {
        "settings": "values of --set are not in the file: give them again with it",
        "payload": "the payload is not in the file: give it again with it",
    }
    return [Diagnostic("not-in-file", sentences[word], word) for word in ("settings", "payload") if options[word]]


def _said(limits: Any) -> str:
    """Limits in words; nothing where there are none."""
    if not isinstance(limits, list | tuple):
        return "" if limits is None else f"{limits:.4g}"
    low, high = ("" if limit is None else f"{limit:.4g}" for limit in limits)
    return f"{low} ... {high}" if low or high else ""


@cli.command(
    epilog="\b\nExamples:\n  parflex update navaro-refined measured.csv --vary legs.frame.1.spring.stiffness "
    "--hold-out pose-4 --out fitted.toml\n  parflex update dualemps hammer.uff --sensors 1=P,2=14 --pose home "
    "--vary materials.dural.elastic_modulus --page report --json"
)
@robot_options
@click.argument("measured", metavar="MEASURED...", nargs=-1, required=True)
@click.option("--vary", required=True, metavar="KEY,...", help="Numbers of the robot file by dotted path.")
@click.option("--hold-out", default="", metavar="POSE[:MODE],...", help="What is predicted and not used; :MODE too.")
@click.option(
    "--prior", metavar="R|KEY=R,...", help="Deviation of the numbers before, as a share of them; default 0.3."
)
@click.option("--lock", default="actuators", show_default=True, metavar="actuators|none|NAMES", help="Joints to lock.")
@click.option("--servo", metavar="VALUE|JOINT=VALUE,...", help="Stiffness of servos that hold the motors, N/m or N m.")
@click.option("--about", metavar="undeformed|equilibrium",
              help="State of linearisation; default the equilibrium where springs are under tension.")  # fmt: skip
@without_option
@click.option("--elements", type=int, metavar="N", help="Split every beam element into N.")
@click.option("--pose", multiple=True, metavar="NAME|KEY=VALUE,...",
              help="Pose of frequency responses; one for each file of them.")  # fmt: skip
@click.option("--band", metavar="LOW-HIGH", help="Frequencies in which poles of responses are found, Hz.")
@click.option("--order", type=int, metavar="N", help="Highest number of poles in the band; default 30.")
@click.option("--quantity", metavar="accelerance|mobility|receptance",
              help="What the responses are; default accelerance, or as the UFF file says.")  # fmt: skip
@click.option("--sensors", metavar="NODE=FRAME,...", help="Frames of the nodes of UFF files.")
@click.option("-o", "--out", metavar="FILE.toml", help="Write a robot file that extends the first.")
@click.option("--page", metavar="DIR", help="Write a page with pairs, MAC and cosines to this folder.")
def update(
    robot: str, as_json: bool, measured: tuple[str, ...], vary: str, hold_out: str, prior: str | None, lock: str,
    out: str | None, page: str | None, **options: Any,
) -> None:  # fmt: skip
    """Fit numbers of the robot file to measured natural frequencies, damping ratios and frequency responses."""
    from parflex import update as updated
    from parflex.cli.options import number_or_table
    from parflex.identification.robot_update import check_robot_target
    from parflex.updating.frequency_response import responses_of_words

    load_keys = ("settings", "payload", "actuation", "working_mode", "elements", "rigid")
    loaded = open_robot(robot, **{key: options[key] for key in load_keys})
    if out:
        check_robot_target(out)
    keys = [key.strip() for key in vary.split(",") if key.strip()]
    locked = lock if lock in ("actuators", "none") else [word.strip() for word in lock.split(",")]
    arguments = {} if prior is None else {"prior": number_or_table(prior, "prior")}
    arguments |= {"servo": number_or_table(options["servo"], "servo"), "about": options["about"]}
    arguments["without"] = split_names(options["without"])
    sources = responses_of_words(
        measured, **{key: options[key] for key in ("pose", "band", "order", "quantity", "sensors")}
    )
    with count_progress("starts") as progress:
        result = updated(loaded, sources, keys, hold_out, lock=locked, **arguments, progress=progress)
    answer = {**result.as_dict(), "diagnostics": [*loaded.diagnostics, *result.diagnostics]}
    if out:
        result.to_file(out)
        answer["out"] = out
        answer["diagnostics"] += _unsaved_option_warnings(options)
    if page:
        from parflex.view.fit_report import write_update

        answer["page"] = str(write_update(page, result))
    numbers = [
        (key, entry["before"], entry["value"], *(
            ("undetermined", "") if entry["interval"] is None
            else (entry["deviation"], f"{entry['interval'][0]:.5g} ... {entry['interval'][1]:.5g}")
        ))
        for key, entry in result.parameters.items()
    ]  # fmt: skip
    pairs = [
        (entry["pose"], entry["mode"], entry["measured"], entry["before"], entry["after"], entry["predicted_deviation"],
         f"{entry['mac']:.3f}", "yes" if entry["held_out"] else "")
        for entry in result.pairs
    ]  # fmt: skip
    ratios = [
        (entry["pose"], entry["mode"], *(entry["damping"][word] for word in ("measured", "before", "after")),
         entry["damping"]["predicted_deviation"])
        for entry in result.pairs if "damping" in entry
    ]  # fmt: skip
    head = ["pose", "mode", "measured (Hz)", "before (Hz)", "after (Hz)", "deviation (Hz)", "MAC", "held out"]
    fit = [*result.errors.items(), ("residuals over deviations", result.model_error)]
    fit += [(f"error of the model, share of {word}", share) for word, share in result.model_share.items()]
    tables: list[Any] = [
        (f"{loaded.name}: numbers that fit", ["key", "before", "value", "deviation", "95 %"], numbers),
        ("frequencies", head, pairs),
    ]
    if ratios:
        tables.append(("damping ratios", ["pose", "mode", "measured", "before", "after", "deviation"], ratios))
    written = [("robot file", out)] if out else []
    written += [("page", str(Path(page) / "index.html"))] if page else []
    tables += [("errors", ["", ""], fit), *([("written", ["", ""], written)] if written else [])]
    output.print_result(answer, as_json, *tables)
