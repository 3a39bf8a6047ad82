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
    of="plan_motion",
    omit=("motion", "breaks"),
)
def motion(
    robot: Robot,
    given: str,
    *,
    step: float = 1e-3,
    time_optimal: bool = False,
    out: str | None = None,
    figure: str | None = None,
    **options: Any,
) -> Answer:
    """Plan a motion of the motors: table, largest velocities and accelerations, time-optimal law."""
    from parflex import draw_timing, plan_motion
    from parflex.trajectories.files import write_table
    from parflex.trajectories.motions import with_time_law

    number(step, "step", above=0.0, example=0.001)
    time = options["time"]
    plan = plan_motion(robot, with_time_law(robot, given) if time_optimal else given, **options)
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
    return Answer(answer, *tables, output.written(*written))


@verb(
    "time",
    "simulate dualemps --motion square --time 12.5 --without friction --out run.csv",
    "simulate rx90 --time 2 --effort 1=1,2=-40 --method dopri5 --out run.npz",
    of="simulate",
    omit=("breaks",),
)
def simulate(
    robot: Divided,
    *,
    time: float,
    velocity: Any = None,
    low_pass: float | None = None,
    convergence: str | None = None,
    out: str,
    **options: Any,
) -> Answer:
    """Move a robot in time and write named time series."""
    from parflex import simulate as run_simulation

    check_convergence(options["converge"], convergence)
    if low_pass is not None and not 0 < low_pass < math.inf:  # the rest is seen when the rows are there
        raise InputError("a cut-off is a positive frequency", key="low-pass", value=low_pass, hint="give e.g. 100")
    if velocity is not None:
        options["start"] = {"pose": options.pop("pose"), "positions": options["start"], "velocity": velocity}
    with progress_line("simulating", time) as progress:
        run = run_simulation(robot, time=time, progress=progress, **options)
    if low_pass is not None and run.status == "ok":
        run = _with_filtered_accelerations(run, low_pass)
    written = [str(file) for file in [*run.save(out), *draw_convergence(run, convergence)]]
    answer = {"files": written, "columns": list(run), **run.summary, "settings": run.settings}
    others = [each for each in run.diagnostics if each.code not in ("stopped", "interrupted")]
    answer["diagnostics"] = [*robot.diagnostics, *others, *_status_warnings(run)]
    done = run.status == "ok" and run.summary.get("converged", True)
    tables = [("run", ["", "value"], _rows(run.summary)), *_tables(run.summary), output.written(*written)]
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
    """Return refinements, stops that were met, joints that stuck, the largest stress, and the largest reactions."""
    steps, stops = ("elements", "coordinates", "change", "seconds"), ("joint", "side", "time", "speed")
    refined = [
        ["" if entry[word] is None else entry[word] for word in steps] for entry in summary.get("refinement", ())
    ]
    effort, stress = summary.get("largest_stop_effort"), summary.get("largest_stress")
    stresses = [(stress["beam"], stress["s"], stress["time"], stress["value"] / 1e6)] if stress else []
    reactions = [(name, *entry.values()) for name, entry in (summary.get("largest_reactions") or {}).items()]
    return [
        ("refinement", ["elements in each of the file", *steps[1:]], refined),
        ("sticks", ["joint", "time", "until"], [tuple(entry.values()) for entry in summary.get("sticks") or ()]),
        ("stops", stops, [[entry[word] for word in stops] for entry in summary.get("stops") or ()]),
        ("largest effort of a stop", ["joint", "effort", "time"], [tuple(effort.values())] if effort else []),
        ("largest stress of the rows", ["beam", "s", "time", "MPa"], stresses),
        ("largest reactions", ["", "force (N)", "time", "moment (N m)", "time"], reactions),
    ]


def _with_filtered_accelerations(run: Any, cutoff: float) -> Any:
    kinds = ("ax", "ay", "az", "alx", "aly", "alz")
    last = {name: name.rpartition(".")[2].removeprefix("local_").removeprefix("sensor_") for name in run if "." in name}
    names = [name for name, word in last.items() if word in kinds]
    return replace(run, columns={**run.columns, **{f"{name}.low": run.low_passed(name, cutoff) for name in names}})


def _status_warnings(run: Any) -> list[Diagnostic]:
    summary = run.summary
    if run.status == "interrupted" and "refinement" not in summary:  # whose warnings say which run is kept
        text = f"interrupted at t = {run.t[-1]:g} s; results so far are kept"
        return [Diagnostic("interrupted", text, "time", float(run.t[-1]))]
    if run.status != "diverged":
        return []
    where = f"; '{summary['coordinate']}' moves most" if summary["coordinate"] else ""
    text = (
        f"the run stopped after t = {summary['stopped_at']:g} s, since {summary['why']}{where}; what was computed is "
    )
    text += "kept: try a smaller --step, --method gauss4 or generalized-alpha, or a motion farther from singular poses"
    return [Diagnostic("stopped", text, "time", summary["stopped_at"])]
