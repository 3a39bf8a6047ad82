"""Commands `identify`, `excite`, `update`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from parflex.checks import number
from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table, progress_line
from parflex.diagnostics import Diagnostic

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided, Robot


@verb(
    "studies",
    "identify emps DATA_EMPS.mat --columns columns.toml --cutoff 100 --out axis.toml",
    "identify 3rrr run1.csv run2.csv --columns columns.toml --validate run3.csv --page report --json",
)
def identify(
    robot: Robot,
    choice: dict[str, Any],
    *record: str,
    columns: str | None = None,
    estimator: str = "wls",
    cutoff: float | None = None,
    decimate: int | None = None,
    least_speed: float | None = None,
    friction: str = "file",
    validate: Any = None,
    physical: bool = False,
    keep_spikes: bool = False,
    keep: Any = (),
    out: str | None = None,
    page: str | None = None,
) -> Answer:
    """Identify inertial parameters, friction and drive gains of a robot from records of its motors."""
    options = {**locals(), "record": list(record)}
    from parflex import identify as identified
    from parflex.identification.robot_update import check_robot_target
    from parflex.view.fit_report import write_identification

    for word in ("choice", "out", "page"):
        del options[word]
    if out:
        check_robot_target(out, robot)
    result = identified(**options)
    answer, diagnostics = result.as_dict(), [*robot.diagnostics, *result.diagnostics]
    if out:
        diagnostics += [*result.to_file(out), *_unsaved_option_warnings(choice)]
        answer["out"] = out
    if page:
        answer["page"] = str(write_identification(page, result))
    answer["diagnostics"] = diagnostics
    rows = []
    for name, entry in result.parameters.items():
        half, essential = entry.interval[1] - entry.value, "yes" if entry.essential else "no"
        rows.append((name, entry.value, half, entry.unit, entry.deviation, essential))
    unsure = sum(not entry.essential for entry in result.parameters.values())
    more: list[tuple[str, Any]] = [
        ("intervals that contain zero", f"{unsure} of {len(rows)}"),
        ("relative error, all motors", result.relative_error),
        ("condition number", result.condition),
    ]
    if result.validation is not None:
        more.append(("relative error, validation", result.validation["relative_error"]))
    if result.physical is not None:
        more.append(("relative error, bodies that can be", result.physical["relative_error"]))
    more += [(f"relative error of {name}", entry["relative_error"]) for name, entry in result.per_motor.items()]
    more += [(f"noise of {name} (N, N m)", entry["noise"]) for name, entry in result.per_motor.items()]
    head = ["parameter", "value", "± 95 %", "unit", "deviation", "essential"]
    tables: list[Table] = [(f"{robot.name}: parameters by {result.estimator}", head, rows)]
    combined = [(name, entry.made_of) for name, entry in result.parameters.items() if entry.made_of != name]
    if combined:
        tables.append(("combinations", ["parameter", "stands for"], combined))
    if result.gains:
        gains = [(name, entry["value"], entry["deviation"]) for name, entry in result.gains.items()]
        tables.append(("drive gains", ["motor", "gain", "deviation"], gains))
    tables.append(("fit", ["", ""], more))
    if result.undetermined:
        undetermined = [(entry["name"], entry["why"]) for entry in result.undetermined]
        tables.append(("undetermined", ["parameter", "why"], undetermined))
    tables.append(("steps", [""], [(step,) for step in result.steps]))
    return Answer(answer, *tables, *_written(out, page))


def _written(out: str | None, page: str | None) -> list[Table]:
    return output.written(out, page and Path(page) / "index.html")


def _unsaved_option_warnings(options: dict[str, Any]) -> list[Diagnostic]:
    """Return a diagnostic for what the robot had on the command line, and the written file does not have."""
    sentences = {
        "settings": "values of --set are not in the file: give them again with it",
        "payload": "the payload is not in the file: give it again with it",
    }
    return [Diagnostic("not-in-file", sentence, word) for word, sentence in sentences.items() if options[word]]


@verb(
    "studies",
    "excite 3rrr --time 5 --harmonics 4 --velocity-limit 3 --out motion.csv",
    "excite emps --time 4 --harmonics 3 --velocity-limit 0.5 --effort-limit 300 --json",
)
def excite(
    robot: Robot,
    *,
    time: float = 10.0,
    harmonics: int = 5,
    seed: int = 0,
    amplitude: float | None = None,
    velocity_limit: Any = None,
    effort_limit: Any = None,
    workspace: Any = None,
    distance: float = 0.3,
    friction: str = "file",
    starts: int = 4,
    step: float = 1e-3,
    out: str | None = None,
) -> Answer:
    """Find a motion of the motors that determines the base parameters best, within limits."""
    options = {**locals()}
    from parflex import excite as excited
    from parflex.identification.excitation import check_motion_target, write_motion

    number(step, "step", above=0.0, example=0.001)
    for word in ("step", "out"):
        del options[word]
    if out:
        check_motion_target(robot, out)
    with progress_line("fits") as progress:
        result = excited(**options, progress=progress)
    files = write_motion(robot, result, out, step) if out else []
    limits = [
        (kind, name, entry)
        for kind in ("position", "speed", "effort", "workspace")
        for name, entry in result.limits[kind].items()
    ]
    rows = []
    for kind, name, entry in [*limits, ("distance", "", result.limits["distance"])]:
        values = [entry.get(word, "") for word in ("lowest", "highest", "largest")]
        rows.append((kind, name, *values, _said(entry.get("limits", entry.get("limit")))))
    per_noise = "deviation (N, N m) by effort noise of 1 N (N m)"
    fit = [
        ("log det", result.log_det),
        ("condition number", result.condition),
        (f"{per_noise}, geometric mean", result.deviations["geometric_mean"]),
        (f"{per_noise}, largest", result.deviations["largest"]),
    ]
    tables: list[Table] = [
        (f"{robot.name}: {len(result.parameters)} base parameters", ["", ""], fit),
        ("limits", ["of", "", "lowest", "highest", "largest", "limits"], rows),
    ]
    answer = {**result.as_dict(), "files": files, "diagnostics": robot.diagnostics}
    return Answer(answer, *tables, *output.written(*files))


def _said(limits: Any) -> str:
    """Return limits in words; nothing where there are none."""
    if not isinstance(limits, list | tuple):
        return "" if limits is None else f"{limits:.4g}"
    low, high = ("" if limit is None else f"{limit:.4g}" for limit in limits)
    return f"{low} ... {high}" if low or high else ""


@verb(
    "studies",
    "update navaro-refined measured.csv --vary legs.frame.1.spring.stiffness --hold-out pose-4 --out fitted.toml",
    "update dualemps hammer.uff --sensors 1=P,2=14 --pose home --vary materials.dural.elastic_modulus --page report "
    "--json",
)
def update(
    robot: Divided,
    choice: dict[str, Any],
    *measured: str,
    vary: Any,
    hold_out: str = "",
    prior: Any = None,
    lock: Any = "actuators",
    servo: Any = None,
    about: str | None = None,
    without: Any = (),
    pose: tuple[str, ...] = (),
    band: str | None = None,
    order: int | None = None,
    quantity: str | None = None,
    sensors: str | None = None,
    out: str | None = None,
    page: str | None = None,
) -> Answer:
    """Fit numbers of the robot file to measured natural frequencies, damping ratios and frequency responses."""
    from parflex import update as updated
    from parflex.identification.robot_update import check_robot_target
    from parflex.updating.frequency_response import responses_of_words
    from parflex.view.fit_report import write_update

    if out:
        check_robot_target(out)
    words = {} if prior is None else {"prior": prior}
    words |= {"lock": lock, "servo": servo, "about": about, "without": without}
    sources = responses_of_words(measured, pose=pose, band=band, order=order, quantity=quantity, sensors=sensors)
    with progress_line("starts") as progress:
        result = updated(robot, sources, vary, hold_out, **words, progress=progress)
    answer = {**result.as_dict(), "diagnostics": [*robot.diagnostics, *result.diagnostics]}
    if out:
        result.to_file(out)
        answer["out"] = out
        answer["diagnostics"] += _unsaved_option_warnings(choice)
    if page:
        answer["page"] = str(write_update(page, result))
    numbers: list[Any] = []
    for key, entry in result.parameters.items():
        known = ("undetermined", "")
        if entry["interval"] is not None:
            known = (entry["deviation"], "{:.5g} ... {:.5g}".format(*entry["interval"]))
        numbers.append((key, entry["before"], entry["value"], *known))
    pairs, ratios = [], []
    for pair in result.pairs:
        mode = (pair["pose"], pair["mode"])
        held = (f"{pair['mac']:.3f}", "yes" if pair["held_out"] else "")
        pairs.append((*mode, *(pair[word] for word in PAIR), *held))
        if "damping" in pair:
            ratios.append((*mode, *(pair["damping"][word] for word in PAIR)))
    head = ["pose", "mode", "measured (Hz)", "before (Hz)", "after (Hz)", "deviation (Hz)", "MAC", "held out"]
    fit = [*result.errors.items(), ("residuals over deviations", result.model_error)]
    fit += [(f"error of the model, share of {word}", share) for word, share in result.model_share.items()]
    tables: list[Table] = [
        (f"{robot.name}: numbers that fit", ["key", "before", "value", "deviation", "95 %"], numbers),
        ("frequencies", head, pairs),
    ]
    if ratios:
        tables.append(("damping ratios", ["pose", "mode", "measured", "before", "after", "deviation"], ratios))
    return Answer(answer, *tables, ("errors", ["", ""], fit), *_written(out, page))


PAIR = ("measured", "before", "after", "predicted_deviation")
