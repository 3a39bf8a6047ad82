"""Commands `identify`, `excite`, `update`."""

from __future__ import annotations

from collections.abc import Sequence
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
    of="identify",
)
def identify(
    robot: Robot,
    choice: dict[str, Any],
    *record: str,
    out: str | None = None,
    page: str | None = None,
    **options: Any,
) -> Answer:
    """Identify inertial parameters, friction and drive gains of a robot from records of its motors."""
    from parflex import identify as identified
    from parflex.view.fit_report import write_identification

    check_fit_target(out, robot)
    result = identified(robot, list(record), **options)
    rows = []
    for name, entry in result.parameters.items():
        half, essential = entry.interval[1] - entry.value, "yes" if entry.essential else "no"
        rows.append((name, entry.value, half, entry.unit, entry.deviation, essential))
    unsure = sum(not entry.essential for entry in result.parameters.values())
    fit: list[tuple[str, Any]] = [
        ("intervals that contain zero", f"{unsure} of {len(rows)}"),
        ("relative error, all motors", result.relative_error),
        ("condition number", result.condition),
    ]
    others = {"validation": result.validation, "physically consistent bodies": result.physical}
    fit += [(f"relative error, {name}", entry["relative_error"]) for name, entry in others.items() if entry is not None]
    fit += [(f"relative error of {name}", entry["relative_error"]) for name, entry in result.per_motor.items()]
    fit += [(f"noise of {name} (N, N m)", entry["noise"]) for name, entry in result.per_motor.items()]
    head = ["parameter", "value", "± 95 %", "unit", "deviation", "essential"]
    combined = [(name, entry.made_of) for name, entry in result.parameters.items() if entry.made_of != name]
    gains = [(name, entry["value"], entry["deviation"]) for name, entry in (result.gains or {}).items()]
    tables: list[Table] = [
        (f"{robot.name}: parameters by {result.estimator}", head, rows),
        ("combinations", ["parameter", "stands for"], combined),
        ("drive gains", ["motor", "gain", "deviation"], gains),
        ("fit", ["", ""], fit),
        ("undetermined", ["parameter", "why"], [(entry["name"], entry["why"]) for entry in result.undetermined]),
        ("steps", [""], [(step,) for step in result.steps]),
    ]
    return fit_answer(result, tables, choice, out, page, write_identification)


def check_fit_target(out: str | None, robot: Robot | None = None) -> None:
    """Refuse a robot file that cannot be written before anything is computed."""
    from parflex.identification.robot_update import check_robot_target

    if out:
        check_robot_target(out, robot)


def fit_answer(
    result: Any, tables: Sequence[Table], choice: dict[str, Any], out: str | None, page: str | None, write_page: Any
) -> Answer:
    """Write the robot file and the page of a fit; return the answer."""
    answer, diagnostics = result.as_dict(), [*result.source.diagnostics, *result.diagnostics]
    if out:
        diagnostics += result.to_file(out)
        answer["out"] = out
        diagnostics += unsaved_options(choice)
    if page:
        answer["page"] = str(write_page(page, result))
    answer["diagnostics"] = diagnostics
    return Answer(answer, *tables, output.written(out, page and Path(page) / "index.html"))


def unsaved_options(choice: dict[str, Any]) -> list[Diagnostic]:
    """Return a diagnostic for what the robot had on the command line, and a written file does not have."""
    sentences = {
        "settings": "values of --set are not in the file: give them again with it",
        "payload": "the payload is not in the file: give it again with it",
    }
    return [Diagnostic("not-in-file", sentence, word) for word, sentence in sentences.items() if choice[word]]


@verb(
    "studies",
    "excite 3rrr --time 5 --harmonics 4 --velocity-limit 3 --out motion.csv",
    "excite emps --time 4 --harmonics 3 --velocity-limit 0.5 --effort-limit 300 --json",
    of="excite",
)
def excite(robot: Robot, *, step: float = 1e-3, out: str | None = None, **options: Any) -> Answer:
    """Find a motion of the motors that determines the base parameters best, within limits."""
    from parflex import excite as excited
    from parflex.identification.excitation import check_motion_target, write_motion

    number(step, "step", above=0.0, example=0.001)
    if out:
        check_motion_target(robot, out)
    with progress_line("fits") as progress:
        result = excited(robot, **options, progress=progress)
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
    title, head = (
        f"{robot.name}: {len(result.parameters)} base parameters",
        ["of", "", "lowest", "highest", "largest", "limits"],
    )
    answer = {**result.as_dict(), "files": files, "diagnostics": robot.diagnostics}
    return Answer(answer, (title, ["", ""], fit), ("limits", head, rows), output.written(*files))


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
    of="update",
)
def update(
    robot: Divided,
    choice: dict[str, Any],
    *measured: str,
    pose: tuple[str, ...] = (),
    band: str | None = None,
    order: int | None = None,
    quantity: str | None = None,
    sensors: str | None = None,
    out: str | None = None,
    page: str | None = None,
    **options: Any,
) -> Answer:
    """Fit numbers of the robot file to measured natural frequencies, damping ratios and frequency responses."""
    from parflex import update as updated
    from parflex.updating.frequency_response import responses_of_words
    from parflex.view.fit_report import write_update

    check_fit_target(out)
    sources = responses_of_words(measured, pose=pose, band=band, order=order, quantity=quantity, sensors=sensors)
    with progress_line("starts") as progress:
        result = updated(robot, sources, **options, progress=progress)
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
        ("damping ratios", ["pose", "mode", "measured", "before", "after", "deviation"], ratios),
        ("errors", ["", ""], fit),
    ]
    return fit_answer(result, tables, choice, out, page, write_update)


PAIR = ("measured", "before", "after", "predicted_deviation")
