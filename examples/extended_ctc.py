"""Extended and classical computed torque on a 3RRR robot whose parameters are wrong: figures 4 to 9 of Zubizarreta2010.

    python examples/extended_ctc.py --output out

Ten templates of signs, 1 to 5 %, both laws on each plant. The script prints the means, what failed and how often the
extended law loses, and writes six figures.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from parflex.control.control import Controlled, run_law
from parflex.control.study import StudySetup, run_study
from parflex.control.study_file import StudyFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INDEXES = {"ise": ("4", "ISE (m$^2$ s)"), "iae": ("5", "IAE (m s)"), "itae": ("6", "ITAE (m s$^2$)")}
STYLES: dict[str, dict[str, Any]] = {  # as in the paper: extended solid, classical dashed
    "extended": {"color": "#0072b2", "linestyle": "-", "label": "extended"},
    "ctc": {"color": "#d55e00", "linestyle": "--", "label": "classical"},
}
Rows = list[dict[str, Any]]


def page(width: float, height: float) -> Figure:
    """An empty page."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(made)
    return made


def means(rows: Rows, index: str, label: str) -> Figure:
    """Figures 4 to 6: the mean of an index over how wrong the parameters are."""
    made = page(6, 4)
    axes = made.add_subplot()
    shown = [row for row in rows if row["compared"]]
    for law, style in STYLES.items():
        values = [row["errors"][law][index] for row in shown]
        axes.plot([row["percentage"] for row in shown], values, marker="o", **style)
    axes.set_xlabel("parameters off by (%)")
    axes.set_xticks([row["percentage"] for row in shown])
    axes.set_ylabel(f"mean {label}")
    axes.set_ylim(bottom=0)
    axes.legend()
    return made


def error(runs: dict[str, Controlled]) -> Figure:
    """Figure 7: how far the tool is from its reference in time."""
    made = page(6, 4)
    axes = made.add_subplot()
    for law, style in STYLES.items():
        axes.plot(runs[law]["t"], 1e3 * runs[law]["error"], **style)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("error of the tool (mm)")
    axes.set_ylim(bottom=0)
    axes.legend()
    return made


def followed(runs: dict[str, Controlled], names: list[tuple[str, str, str]], columns: int) -> Figure:
    """Figures 8 and 9: coordinates in time, the reference as triangles; names are column, reference, label."""
    count = -(-len(names) // columns)
    made = page(4.2 * columns, 2.1 * count + 0.6)
    panels = made.subplots(count, columns, sharex=True, squeeze=False)
    for axes, (column, reference, label) in zip(panels.T.flat, names, strict=True):
        run = runs["extended"]
        axes.plot(run["t"][::100], run[reference][::100], "^", color="0.4", markersize=4, label="reference")
        for law, style in STYLES.items():
            axes.plot(runs[law]["t"], runs[law][column], linewidth=1.2, **style)
        axes.set_ylabel(label)
    for axes in panels[-1]:
        axes.set_xlabel("time (s)")
    made.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return made


def show(rows: Rows, console: Console) -> None:
    """The means of both laws, their ratio, and what is not in them."""
    table = Table(title="Means over templates that both laws finish", title_justify="left", box=None, pad_edge=False)
    for heading in ("off by", "templates", "IAE classical", "IAE extended", "ratio", "lost", "failed"):
        table.add_column(heading, justify="right")
    for row in rows:
        failed = sum(sum(kinds.values()) for kinds in row["failures"].values())
        cells = [f"{row['percentage']:g} %", str(row["compared"])]
        if row["compared"]:
            cells += [f"{row['errors'][law]['iae']:.5f}" for law in ("ctc", "extended")]
            cells += [f"{row['ratio']['extended']['iae']:.3f}", f"{100 * row['losing']['extended']['iae']:.0f} %"]
        else:
            cells += ["-"] * 4
        table.add_row(*cells, str(failed))
    console.print(table)


def single(bench: StudySetup, percentage: int) -> tuple[int, dict[str, Controlled]]:
    """The first template that both laws finish at a percentage, by number, and both runs."""
    for template in range(bench.file.templates):
        plant = bench.family.plant(bench.plant_robot((percentage, template)))
        runs = {law.name: run_law(law, plant, bench.track, bench.loop) for law in bench.laws}
        if all(run.ok for run in runs.values()):
            return template, runs
    raise SystemExit("no template is finished by both laws")


def main(arguments: list[str] | None = None) -> int:
    """Run the study and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("out"), help="folder of the figures")
    parser.add_argument("--seed", type=int, default=1, help="of the templates")
    parser.add_argument("--templates", type=int, default=10)
    parser.add_argument("--jobs", type=int, help="processes side by side")
    choice = parser.parse_args(arguments)
    file = StudyFile(
        robot="3rrr",
        working_mode="+-+",
        reference={"kind": "circle", "radius": 0.1, "time": 2.0},
        laws=("ctc", "extended"),
        templates=choice.templates,
        seed=choice.seed,
    )
    bench = StudySetup(file)
    rows = run_study(file, jobs=choice.jobs, bench=bench).summary()
    console = Console(highlight=False)
    show(rows, console)
    template, runs = single(bench, len(file.percentages) - 1)
    largest = {law: float(np.max(run["error"])) for law, run in runs.items()}
    console.print(
        f"template {template} at {file.percentages[-1]:g} %: largest error "
        f"{1e3 * largest['ctc']:.2f} mm classical, {1e3 * largest['extended']:.2f} mm extended"
    )
    figures = {number: means(rows, index, label) for index, (number, label) in INDEXES.items()}
    figures["7"] = error(runs)
    place = [("platform.x", "reference.x", "x (m)"), ("platform.y", "reference.y", "y (m)")]
    figures["8"] = followed(runs, [*place, ("platform.theta", "reference.theta", "theta (rad)")], 1)
    joints = [f"leg{leg}.{joint}" for joint in (1, 2) for leg in (1, 2, 3)]
    figures["9"] = followed(runs, [(f"q.{name}", f"reference.{name}", f"{name} (rad)") for name in joints], 2)
    choice.output.mkdir(parents=True, exist_ok=True)
    for number, made in figures.items():
        target = choice.output / f"extended-ctc-figure-{number}.svg"
        made.savefig(target, metadata={"Date": None})
        console.print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
