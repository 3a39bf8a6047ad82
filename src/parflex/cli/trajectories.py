"""Command `motion`: table, largest values, and the time-optimal law along its path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parflex.checks import number
from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot

WORDS = ("way", "velocity", "acceleration")


@verb(
    "time",
    "motion dualemps circle --time 5 --out circle.csv",
    "motion dualemps square --time-optimal --effort-limit 100 --out fast.csv",
)
def motion(
    robot: Robot,
    given: str,
    *,
    time: float | None = None,
    step: float = 1e-3,
    time_optimal: bool = False,
    effort_limit: Any = None,
    velocity_limit: Any = None,
    acceleration_limit: Any = None,
    ignore_limits: bool = False,
    out: str | None = None,
    figure: str | None = None,
) -> Answer:
    """Plan a motion of the motors: table, largest velocities and accelerations, time-optimal law."""
    from parflex import draw_timing, plan_motion
    from parflex.trajectories.files import write_table
    from parflex.trajectories.motions import with_time_law

    number(step, "step", above=0.0, example=0.001)
    limits = {"effort_limit": effort_limit, "velocity_limit": velocity_limit, "acceleration_limit": acceleration_limit}
    requested_motion = with_time_law(robot, given) if time_optimal else given
    plan = plan_motion(robot, requested_motion, time, **limits, ignore_limits=ignore_limits)
    if figure is not None and plan.timing is None:
        raise InputError("only a time-optimal motion has such a picture", key="figure", hint="add --time-optimal")
    columns = plan.table(step, time)
    end = float(columns["t"][-1])
    written = [] if out is None else [str(file) for file in write_table(out, columns, {"motion": given})]
    answer: dict[str, Any] = {"files": written, "columns": list(columns), "rows": len(columns["t"]), "time": end}
    largest = zip(*plan.until(end).largest_values(end), strict=True)
    answer["motors"] = {
        name: dict(zip(WORDS, map(float, values), strict=True))
        for name, values in zip(plan.names, largest, strict=True)
    }
    rows = [(name, *values.values()) for name, values in answer["motors"].items()]
    tables: list[Table] = [(f"motion in {end:.6g} s", ["motor", *WORDS], rows)]
    answer["diagnostics"] = [*robot.diagnostics, *plan.diagnostics]
    if plan.timing is not None:
        answer |= plan.timing.answer()
        tables += plan.timing.tables()
        if figure is not None:
            draw_timing(plan, figure)
            written.append(figure)
    return Answer(answer, *tables, *output.written(*written))
