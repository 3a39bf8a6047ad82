"""Extended and classical computed torque on a 3RRR robot whose parameters are wrong: figures 4 to 9 of Zubizarreta2010.

    python examples/extended_ctc.py --output out

Ten templates of signs, 1 to 5 %, both laws on each plant. The script prints the means, what failed and how often the
extended law loses, and writes six figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parflex.control.control import Controlled, run_law
from parflex.control.study import StudySetup, run_study
from parflex.control.study_file import StudyFile
from parflex.view.style import LINES, REST, drawing, time_axis

INDEXES = {"ise": ("4", "ISE (m$^2$ s)"), "iae": ("5", "IAE (m s)"), "itae": ("6", "ITAE (m s$^2$)")}
STYLES: dict[str, dict[str, Any]] = {  # as in the paper: extended solid, classical dashed
    "extended": {"color": LINES[0], "linestyle": "-", "label": "extended"},
    "ctc": {"color": LINES[1], "linestyle": "--", "label": "classical"},
}
HEAD = ("off by", "templates", "IAE classical", "IAE extended", "ratio", "lost", "failed")
Rows = list[dict[str, Any]]
Runs = Mapping[str, Controlled]


def draw_means(rows: Rows, index: str, label: str, path: Path) -> None:
    """Draw figures 4 to 6: the mean of an index over the parameter errors."""
    shown = [row for row in rows if row["compared"]]
    percentages = [row["percentage"] for row in shown]
    with drawing(path, 2.6, "column") as figure:
        axes = figure.add_subplot()
        for law, style in STYLES.items():
            axes.plot(percentages, [row["errors"][law][index] for row in shown], marker="o", markersize=4, **style)
        axes.set_xlabel("parameter error (%)")
        axes.set_xticks(percentages)
        axes.set_ylabel(f"mean {label}")
        axes.set_ylim(bottom=0)
        axes.legend()


def draw_error(runs: Runs, path: Path) -> None:
    """Draw figure 7: the distance of the end effector from its reference."""
    with drawing(path, 2.6, "column") as figure:
        axes = figure.add_subplot()
        for law, style in STYLES.items():
            axes.plot(runs[law]["t"], 1e3 * runs[law]["error"], **style)
        axes.set_ylabel("error of the end effector (mm)")
        axes.set_ylim(bottom=0)
        axes.legend()
        time_axis(axes, runs["ctc"]["t"])


def draw_followed(runs: Runs, names: list[tuple[str, str, str]], columns: int, path: Path) -> None:
    """Draw figures 8 and 9: coordinates over time and their references; names are column, reference, label."""
    count = -(-len(names) // columns)
    with drawing(path, 1.6 * count + 0.5) as figure:
        panels = figure.subplots(count, columns, sharex=True, squeeze=False)
        for axes, (column, reference, label) in zip(panels.T.flat, names, strict=True):
            run = runs["extended"]
            axes.plot(run["t"], run[reference], color=REST, linewidth=3, label="reference")
            for law, style in STYLES.items():
                axes.plot(runs[law]["t"], runs[law][column], **style)
            axes.set_ylabel(label)
        for axes in panels[-1]:
            time_axis(axes, runs["ctc"]["t"])
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


def show(rows: Rows) -> None:
    """Print the means of both laws over templates that both finish, their ratio, and what is not in them."""
    print("Means over templates that both laws finish\n" + " ".join(f"{word:>13}" for word in HEAD))
    for row in rows:
        cells = [f"{row['percentage']:g} %", str(row["compared"]), *["-"] * 4]
        if row["compared"]:
            cells[2:4] = (f"{row['errors'][law]['iae']:.5f}" for law in ("ctc", "extended"))
            cells[4:] = f"{row['ratio']['extended']['iae']:.3f}", f"{100 * row['losing']['extended']['iae']:.0f} %"
        failed = sum(sum(kinds.values()) for kinds in row["failures"].values())
        print(" ".join(f"{cell:>13}" for cell in [*cells, str(failed)]))


def single(bench: StudySetup, percentage: int) -> tuple[int, Runs]:
    """Return the first template that both laws finish at a percentage, by number, and both runs."""
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
    show(rows)
    template, runs = single(bench, len(file.percentages) - 1)
    largest = {law: 1e3 * float(np.max(run["error"])) for law, run in runs.items()}
    print(
        f"template {template} at {file.percentages[-1]:g} %: largest error "
        f"{largest['ctc']:.2f} mm classical, {largest['extended']:.2f} mm extended"
    )
    choice.output.mkdir(parents=True, exist_ok=True)
    paths = {number: choice.output / f"extended-ctc-figure-{number}.svg" for number in "456789"}
    for index, (number, label) in INDEXES.items():
        draw_means(rows, index, label, paths[number])
    draw_error(runs, paths["7"])
    place = [("platform.x", "reference.x", "x (m)"), ("platform.y", "reference.y", "y (m)")]
    draw_followed(runs, [*place, ("platform.theta", "reference.theta", "theta (rad)")], 1, paths["8"])
    joints = [f"leg{leg}.{joint}" for joint in (1, 2) for leg in (1, 2, 3)]
    draw_followed(runs, [(f"q.{name}", f"reference.{name}", f"{name} (rad)") for name in joints], 2, paths["9"])
    print("Figures: " + ", ".join(map(str, paths.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
