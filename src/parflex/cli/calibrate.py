"""Commands `calibrate`, `tolerance`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parflex.cli.group import verb
from parflex.cli.identification import _unsaved_option_warnings, _written
from parflex.cli.output import Answer, Table

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot


@verb(
    "studies",
    "calibrate linear-delta probes.csv --columns map.toml --vary constants.radius,constants.endstop_a --out mine.toml",
    "calibrate gough-stewart tracker.csv --columns map.toml --vary constants.radius --hold-out 1-5 --page report",
)
def calibrate(
    robot: Robot,
    choice: dict[str, Any],
    *data: str,
    vary: Any,
    columns: str | None = None,
    hold_out: str = "",
    tolerances: Any = None,
    loss: str = "linear",
    about: str | None = None,
    out: str | None = None,
    page: str | None = None,
) -> Answer:
    """Fit geometry of the robot file to measured poses, distances, contacts and passive sensors."""
    from parflex import calibrate as calibrated
    from parflex.identification.robot_update import check_robot_target
    from parflex.view.calibration_figure import write_calibration

    if out:
        check_robot_target(out, robot)
    words = {"columns": columns, "tolerances": tolerances, "loss": loss, "about": about}
    result = calibrated(robot, list(data), vary, hold_out, **words)
    answer = {**result.as_dict(), "diagnostics": [*robot.diagnostics, *result.diagnostics]}
    if out:
        result.to_file(out)
        answer["out"] = out
        answer["diagnostics"] += _unsaved_option_warnings(choice)
    if page:
        answer["page"] = str(write_calibration(page, result))
    rows: list[Any] = []
    for name, item in result.parameters.items():
        known: tuple[Any, str] = ("not determined", "")
        if item.interval is not None:
            known = (item.deviation, "{:.6g} ... {:.6g}".format(*item.interval))
        rows.append((name, item.before, item.value, *known, item.unit))
    fit = [("rms before", result.rms_before), ("rms after", result.rms_after)]
    fit += [("rms of rows held out", result.rms_held_out)] if result.rms_held_out is not None else []
    fit += [("condition number", result.condition), ("residuals over deviations", result.noise)]
    head = ["number", "before", "value", "deviation", "95 %", "unit"]
    tables: list[Table] = [(f"{robot.name}: calibrated numbers", head, rows), ("fit", ["", ""], fit)]
    if result.undetermined:
        lost = [(k + 1, name, w) for k, item in enumerate(result.undetermined) for name, w in item.items()]
        tables.append(("not determined", ["combination", "number", "weight"], lost))
    return Answer(answer, *tables, *_written(out, page))
