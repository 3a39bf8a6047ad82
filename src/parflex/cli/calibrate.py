"""Commands `calibrate`, `tolerance`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parflex.cli.group import verb
from parflex.cli.identification import check_fit_target, fit_answer
from parflex.cli.output import Answer, Table, written
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot


@verb(
    "studies",
    "calibrate linear-delta probes.csv --columns map.toml --vary constants.radius,constants.endstop_a --out mine.toml",
    "calibrate gough-stewart tracker.csv --columns map.toml --vary constants.radius --hold-out 1-5 --page report",
    "calibrate linear-delta --columns map.toml --vary constants.radius --plan 9 --over x=-0.1:0.1:9,y=-0.1:0.1:9",
    of="calibrate",
)
def calibrate(
    robot: Robot,
    choice: dict[str, Any],
    *data: str,
    plan: int | None = None,
    over: Any = None,
    seed: int = 0,
    out: str | None = None,
    page: str | None = None,
    **options: Any,
) -> Answer:
    """Fit geometry of the robot file to measured poses, distances, contacts and passive sensors, or plan these."""
    if plan is not None:
        words = {word: options[word] for word in ("columns", "tolerances")} | {"over": over, "seed": seed}
        return _planned(robot, data, options["vary"], plan, words, out)
    if not data:
        raise InputError("no measurements are given", key="data", hint="name CSV files, or plan poses with --plan N")
    from parflex import calibrate as calibrated
    from parflex.view.fit_report import write_calibration

    check_fit_target(out, robot)
    result = calibrated(robot, list(data), **options)
    return fit_answer(result, result.tables, choice, out, page, write_calibration)


def _planned(
    robot: Any, data: tuple[str, ...], vary: Any, count: int, words: dict[str, Any], out: str | None
) -> Answer:
    """Return the answer of `--plan`."""
    from parflex import plan_calibration

    if data:
        raise InputError("'--plan' chooses poses before they are measured", key="plan", value=data[0],
                         hint="leave out the data")  # fmt: skip
    if words["columns"] is None:
        raise InputError("a plan needs the map of the measurements", key="columns", hint="give --columns MAP.toml")
    result = plan_calibration(robot, vary, count, **words)
    answer = {**result.as_dict(), "diagnostics": [*robot.diagnostics, *result.diagnostics]}
    if out:
        result.to_csv(out)
        answer["out"] = out
    numbers = [(name, "not determined" if x is None else x) for name, x in result.deviations.items()]
    tool = [("tool, rms (m)", result.tool["rms"]), ("tool, largest (m)", result.tool["max"])]
    tool += [("condition number", result.condition), ("candidates", result.candidates)]
    poses = [tuple(pose.values()) for pose in result.poses]
    tables: list[Table] = [
        (f"{robot.name}: {count} poses", list(result.poses[0]), poses),
        ("expected deviations", ["number", "deviation"], numbers),
        ("over all candidates", ["", ""], tool),
        written(out),
    ]
    return Answer(answer, *tables)


@verb(
    "studies",
    "tolerance linear-delta --keys constants.radius=1e-4,constants.arm_a=1e-4 --pose x=0.1,y=0,z=0.05",
    "tolerance linear-delta --keys constants.radius=1e-4 --map x=-0.1:0.1:9,y=-0.1:0.1:9 --figure budget.svg",
    of="tolerance",
)
def tolerance(robot: Robot, *, figure: str | None = None, **options: Any) -> Answer:
    """Error budget of a pose at fixed motors, by deviations of numbers of the robot file."""
    from parflex import tolerance as budget
    from parflex.view.fit_figure import draw_tolerance

    result = budget(robot, **options)
    if figure:
        draw_tolerance(result, figure)
    answer = {**result.as_dict(), "figure": figure, "diagnostics": [*robot.diagnostics, *result.diagnostics]}
    rows: list[Any] = [
        (key, one["position"], one["rotation"], f"{one['share']:.1%}") for key, one in result.contributions.items()
    ]
    rows.append(("total", result.total["position"], result.total["rotation"], ""))
    if result.monte_carlo:
        random: dict[str, Any] = result.monte_carlo
        rows.append((f"{random['samples']} random robots", random.get("position", ""), random.get("rotation", ""), ""))
    head = ["number", "position (m)", "rotation (rad)", "share of the variance"]
    return Answer(answer, (f"{robot.name}: error of {result.frame}", head, rows), written(figure))
