"""Pages of what has many numbers: runs, controlled runs, maps, studies. Their figures are those of `draw_...`."""

from __future__ import annotations

from typing import Any

from parflex.control.control import Controlled
from parflex.control.study import Study
from parflex.errors import ParflexError
from parflex.maps.closed_rows import OK, SINGULAR, UNREACHABLE
from parflex.maps.grid import FrequencyMap
from parflex.robot.load import load
from parflex.robot.robot import Robot
from parflex.simulation.runs import Run
from parflex.view.figures.map_figure import draw_map
from parflex.view.figures.run_figures import draw_run
from parflex.view.figures.study_figure import draw_study
from parflex.view.notebook.html_parts import beside, card, drawn, names, notes, table

ERRORS = {"ise": "m² s", "iae": "m s", "itae": "m s²", "max": "m"}


def run_page(run: Run) -> str:
    """Plots of the end effector, efforts and energies, and how the run went."""
    summary, settings = run.summary, run.settings
    rows = [
        ("status", run.status),
        ("rows", len(run.t)),
        ("time", f"{run.t[-1] if len(run.t) else 0.0:.5g} s"),
        ("method", f"{settings.get('method', '')}, step {settings.get('step', 0.0):.3g} s" if settings else ""),
        ("start", summary.get("start", "")),
        ("largest stress", _stress(summary.get("largest_stress"))),
        ("energy balance error", _unit(summary.get("energy_balance_error"), "J")),
        ("largest opening of loops", _unit(summary.get("closure_error"), "m")),
        ("columns", names(list(run), 10)),
    ]
    of = str(settings.get("robot", "")) or "run"
    told, why = list(summary.get("warnings", ())), summary.get("why")
    told += [why] * bool(why and not any(why in sentence for sentence in told))
    words = table([row for row in rows if row[1] != ""])
    return card(f"{of}: run", _plots(run, _robot(of)), beside(words), notes(told))


def controlled_page(run: Controlled) -> str:
    """Plots, and the errors of the end effector."""
    errors = [(word, float(value), ERRORS.get(word, "")) for word, value in run.errors.items() if value is not None]
    law = str(run.settings.get("law", ""))
    failed = [f"{run.failure}: {run.why}"] if run.failure else []
    told = table(errors, ["error of the end effector", "", ""])
    return card(f"run under {law}", _plots(run, None), beside(told), notes(failed))


def frequencymap_page(found: FrequencyMap) -> str:
    """The lowest frequency over the grid, and how many poses were reached."""
    good = found.frequencies[..., 0][found.status == OK]
    rows = [
        *((f"{name}", f"{axis[0]:.4g} to {axis[-1]:.4g}, {len(axis)} values") for name, axis in found.axes.items()),
        ("poses with frequencies", found.count(OK)),
        ("unreachable", found.count(UNREACHABLE)),
        ("singular", found.count(SINGULAR)),
        ("lowest frequency", f"{good.min():.5g} to {good.max():.5g} Hz" if good.size else "none"),
    ]
    picture = drawn(draw_map(found), "lowest natural frequency over the grid") if good.size else ""
    return card("frequency map", beside(picture, table(rows)))


def study_page(found: Study) -> str:
    """Mean errors of the laws over how wrong the parameters are."""
    rows = []
    for row in found.summary():
        for law, errors in row["errors"].items():
            rows.append((f"{row['percentage']:g} %", law, row["compared"], *(_number(errors.get(w)) for w in ERRORS)))
    head = ["off by", "law", "compared", *(f"{word} ({unit})" for word, unit in ERRORS.items())]
    picture = drawn(draw_study(found), "mean errors of each law") if found.cases else ""
    return card(f"{found.file.robot}: study, {len(found.cases)} of {found.total} cases", picture, table(rows, head))


def _plots(run: Any, robot: Robot | None) -> str:
    try:
        return drawn(draw_run(run, robot=robot), "columns over time")
    except ParflexError:  # too many kinds of columns for one figure, or none: the table says what there is
        return ""


def _robot(name: str) -> Robot | None:
    """The robot of the catalogue, which tells the units of joints."""
    try:
        return load(name)
    except ParflexError:
        return None


def _number(value: Any) -> Any:
    return "" if value is None else float(value)


def _stress(most: Any) -> str:
    where = most and f"in '{most['beam']}' at {most['s']:.3g} of its length, t = {most['time']:.4g} s"
    return f"{most['value'] / 1e6:.4g} MPa {where}" if most else ""


def _unit(value: Any, unit: str) -> str:
    return "" if value is None else f"{value:.2e} {unit}"
