"""Commands `motion` and `simulate`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from parflex.checks import number
from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table, progress_line
from parflex.cli.vibration import check_convergence, draw_convergence
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided, Robot

MOTION_WORDS = ("way", "velocity", "acceleration")


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
        name: dict(zip(MOTION_WORDS, map(float, values), strict=True))
        for name, values in zip(plan.names, largest, strict=True)
    }
    rows = [(name, *values.values()) for name, values in answer["motors"].items()]
    tables: list[Table] = [(f"motion in {end:.6g} s", ["motor", *MOTION_WORDS], rows)]
    answer["diagnostics"] = [*robot.diagnostics, *plan.diagnostics]
    if plan.timing is not None:
        answer |= plan.timing.answer()
        tables += plan.timing.tables()
        if figure is not None:
            draw_timing(plan, figure)
            written.append(figure)
    return Answer(answer, *tables, *output.written(*written))


@verb(
    "time",
    "simulate dualemps --motion square --time 12.5 --without friction --out run.csv",
    "simulate rx90 --time 2 --effort 1=1,2=-40 --method dopri5 --out run.npz",
)
def simulate(
    robot: Divided,
    *,
    motion: str | None = None,
    time: float,
    step: float | None = None,
    out_step: float | None = None,
    method: str | None = None,
    tolerance: float | None = None,
    check_steps: bool | None = None,
    radius: float = 0.8,
    without: Any = (),
    drive: str = "motors",
    start: str | None = None,
    pose: Any = None,
    velocity: Any = None,
    effort: Any = None,
    wrench: Any = None,
    allocation: dict[str, Any],
    friction_width: float | None = None,
    outputs: Any = None,
    reactions: bool = False,
    stops: bool = False,
    ignore_limits: bool = False,
    frames: Any = None,
    low_pass: float | None = None,
    converge: float | None = None,
    convergence: str | None = None,
    out: str,
) -> Answer:
    """Move a robot in time and write named time series."""
    options = {**locals(), **allocation}
    from parflex import simulate as run_simulation

    check_convergence(converge, convergence)
    if low_pass is not None and not 0 < low_pass < math.inf:  # the rest is seen when the rows are there
        raise InputError("a cut-off is a positive frequency", key="low-pass", value=low_pass, hint="give e.g. 100")
    for word in ("robot", "allocation", "low_pass", "convergence", "out"):
        del options[word]
    if velocity is not None:
        options["start"] = {"pose": options.pop("pose"), "positions": start, "velocity": options.pop("velocity")}
    given = {word: value for word, value in options.items() if value is not None}
    with progress_line("simulating", time) as progress:
        run = run_simulation(robot, progress=progress, **given)
    if low_pass is not None and run.status == "ok":
        run = _with_filtered_accelerations(run, low_pass)
    written = [str(file) for file in [*run.save(out), *draw_convergence(run, convergence)]]
    answer = {"files": written, "columns": list(run), **run.summary, "settings": run.settings}
    others = [each for each in run.diagnostics if each.code not in ("stopped", "interrupted")]
    answer["diagnostics"] = [*robot.diagnostics, *others, *_status_warnings(run)]
    done = run.status == "ok" and run.summary.get("converged", True)
    tables = [("run", ["", "value"], _rows(run.summary)), *_tables(run.summary), *output.written(*written)]
    return Answer(answer, *tables, code=0 if done else 1)


def _rows(summary: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return numbers of the summary, half the friction width, lengths and errors of steps, efforts of couplings."""
    rows: list[tuple[str, Any]] = [
        (key, value) for key, value in summary.items() if isinstance(value, (int, float, str))
    ]
    if "friction" in summary:
        frame, distance, turn = summary["friction"]["half_width_moves"].values()
        half = f"with half the friction width of {summary['friction']['width']:g}, '{frame}'"
        rows += [(f"{half} goes elsewhere by (m)", distance), (f"{half} turns elsewhere by (rad)", turn)]
    if "step_error" in summary:
        entry = summary["step_error"]
        rows += [("shortest and longest step (s)", f"{entry['shortest']:.3g}, {entry['longest']:.3g}")]
        rows += [("largest error of a step (m)", entry["largest"])]
    if "estimated_error" in summary:
        entry = summary["estimated_error"]
        words = f"error of '{entry['frame']}' in the run, by {entry['how']}"
        rows += [(f"{words} (m)", entry["metres"]), ("... (rad)", entry["radians"])]
    for name, most in summary.get("couplings", {}).items():
        rows.append((f"largest effort of the coupling '{name}' (N, N m), at t = {most['time']:.4g} s", most["effort"]))
    return rows


def _tables(summary: dict[str, Any]) -> list[Table]:
    """Return stops that were met, joints that stuck, the largest stress, and the largest reactions."""
    tables: list[Table] = []
    if "refinement" in summary:
        words = ("elements", "coordinates", "change", "seconds")
        rows: list[Any] = [
            ["" if entry[word] is None else entry[word] for word in words] for entry in summary["refinement"]
        ]
        tables.append(("refinement", ["elements in each of the file", *words[1:]], rows))
    if summary.get("sticks"):
        tables.append(("sticks", ["joint", "time", "until"], [tuple(entry.values()) for entry in summary["sticks"]]))
    if summary.get("stops"):
        words = ("joint", "side", "time", "speed")
        tables.append(("stops", words, [[entry[word] for word in words] for entry in summary["stops"]]))
    if summary.get("largest_stop_effort"):
        most = summary["largest_stop_effort"]
        tables.append(("largest effort of a stop", ["joint", "effort", "time"], [tuple(most.values())]))
    if summary.get("largest_stress"):
        beam, s, time, value = summary["largest_stress"].values()
        tables.append(("largest stress of the rows", ["beam", "s", "time", "MPa"], [(beam, s, time, value / 1e6)]))
    if summary.get("largest_reactions"):
        rows = [(name, *entry.values()) for name, entry in summary["largest_reactions"].items()]
        tables.append(("largest reactions", ["", "force (N)", "time", "moment (N m)", "time"], rows))
    return tables


def _with_filtered_accelerations(run: Any, cutoff: float) -> Any:
    kinds = ("ax", "ay", "az", "alx", "aly", "alz")
    last = {name: name.rpartition(".")[2].removeprefix("local_").removeprefix("sensor_") for name in run if "." in name}
    names = [name for name, word in last.items() if word in kinds]
    return replace(run, columns={**run.columns, **{f"{name}.low": run.low_passed(name, cutoff) for name in names}})


def _status_warnings(run: Any) -> list[Diagnostic]:
    if run.status == "interrupted" and "refinement" in run.summary:
        return []  # its warnings say which run is kept
    if run.status == "interrupted":
        text = f"interrupted at t = {run.t[-1]:g} s; results so far are kept"
        return [Diagnostic("interrupted", text, "time", float(run.t[-1]))]
    if run.status == "diverged":
        summary = run.summary
        where = f"; '{summary['coordinate']}' moves most" if summary["coordinate"] else ""
        text = (
            f"the run stopped after t = {summary['stopped_at']:g} s, since {summary['why']}{where}; what was computed "
            "is kept: try a smaller --step, --method gauss4 or generalized-alpha, or a motion farther from singular "
            "poses"
        )
        return [Diagnostic("stopped", text, "time", summary["stopped_at"])]
    return []
