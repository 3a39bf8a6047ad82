"""Commands `control` and `study`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parflex.cli.group import verb
from parflex.cli.output import Answer, Table, interrupted, progress_line
from parflex.cli.vocabulary import open_robot
from parflex.diagnostics import Diagnostic

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot


@verb(
    "time",
    "control 3rrr --working-mode +-+ --law ctc --reference circle:radius=0.1,time=2",
    "control 3rrr --law extended --reference circle:radius=0.05 --plant-set constants.distal=0.404 --json",
    of="run_control",
    omit=("breaks",),
)
def control(
    robot: Robot,
    choice: dict[str, Any],
    *,
    law: Any,
    reference: str,
    plant: str | None = None,
    plant_set: tuple[str, ...] = (),
    plant_payload: Any = None,
    out: str | None = None,
    **options: Any,
) -> Answer:
    """Simulate tracking of a reference under a control law; the plant may differ from the model of the law."""
    from parflex import run_control

    simulated = _plant(choice, plant, plant_set, plant_payload)
    with progress_line("controlling", options["time"]) as progress:
        run = run_control(robot, reference, law, plant=simulated, progress=progress, **options)
    answer: dict[str, Any] = {
        "errors": run.errors,
        "failure": None if run.ok else {"kind": run.failure, "why": run.why, "stopped_at": run.stopped_at},
        "summary": run.summary,
        "settings": run.settings,
        "files": list(map(str, run.save(out))) if out else [],
        "diagnostics": [*robot.diagnostics, *run.diagnostics],
    }
    if not run.ok:
        text = f"the run failed at t = {run.stopped_at:g} s: {run.why}"
        answer["diagnostics"].append(Diagnostic("stopped", text, "time", run.stopped_at))
    rows = [(name, "-" if value is None else value) for name, value in run.errors.items()]
    title = f"{robot.name} under {run.settings['law']}"
    return Answer(answer, (title, ["error of the end effector (m, s)", "value"], rows), code=0 if run.ok else 1)


def _plant(choice: dict[str, Any], name: str | None, settings: tuple[str, ...], payload: Any) -> Robot | None:
    """Return the plant, if it is not the robot itself."""
    if name is None and not settings and payload is None:
        return None
    own = (choice["settings"] or ()) if name is None else ()
    choice = {**choice, "settings": (*own, *settings), "payload": choice["payload"] if payload is None else payload}
    return open_robot(**{**choice, "robot": name or choice["robot"], "rigid": choice["rigid"] and name is None})


@verb("studies", "study study.toml --out study.json --jobs 2")
def study(
    file: str, *, out: str | None = None, jobs: int | None = None, cluster: str | None = None, figure: str | None = None
) -> Answer:
    """Compare laws on plants whose parameters are wrong: templates of signs times percentages."""
    from parflex import draw_study, run_study
    from parflex.control.study_file import read_study

    table = read_study(file)
    with progress_line("study") as progress:
        result = run_study(table, out, jobs=jobs, cluster=cluster, progress=progress)
    rows = result.summary()
    answer: dict[str, Any] = {
        "percentages": rows,
        "laws": list(table.laws),
        "cases": result.total,
        "done": len(result.cases),
        "computed": result.computed,
        "interrupted": result.interrupted,
        "seconds": result.seconds,
        "parameters": result.parameters,
        "out": out,
    }
    if figure and result.cases:
        draw_study(result, figure)
        answer["figure"] = figure
    return Answer(answer, *_tables(rows, table.laws), code=interrupted(result, out))


def _tables(rows: list[dict[str, Any]], laws: Any) -> list[Table]:
    """Return a row for each percentage and law."""
    completed, failed = [], []
    for row in rows:
        share = f"{row['percentage']:g} %"
        for law in laws:
            means = ["-" if value is None else value for value in row["errors"][law].values()]
            completed.append((share, law, row["compared"], *means))
            failed += [(share, law, kind, n) for kind, n in row["failures"][law].items()]
    head = ["off by", "law", "templates", "ISE", "IAE", "ITAE", "max"]
    return [
        ("means over templates that all laws complete", head, completed),
        ("failed, excluded from means", ["off by", "law", "failure", "templates"], failed),
    ]
