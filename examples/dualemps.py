"""The DualEMPS along its two motions: acceleration of its end P and efforts of both motors, as Briot2014 shows them.

    python examples/dualemps.py --output out

Slides and joints have friction. For each motion the script prints the largest values, and writes a figure and a table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

import parflex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from parflex.simulation.runs import Run

MOTIONS = {"circle": 6.5, "square": 12.5}  # seconds: two turns, one period
CUTOFF = 40.0  # Hz, of the low-passed acceleration: between the third and the fourth natural frequency
COLOURS = ("#0072b2", "#d55e00")


def simulate(motion: str, time: float, step: float) -> Run:
    """The robot on one of its motions, with everything that is in its file."""
    return parflex.simulate(parflex.load("dualemps"), motion, time, step=step, out_step=1e-3, check_width=False)


def largest(runs: dict[str, Run], console: Console) -> None:
    """The largest values of each motion."""
    columns = ("P.local_ax", "P.local_ay", "effort.11", "effort.21", "energy.elastic")
    table = Table(title="Largest values (SI units)", title_justify="left", box=None, pad_edge=False)
    for heading in ("motion", *columns):
        table.add_column(heading, justify="right")
    for name, run in runs.items():
        table.add_row(name, *(f"{np.abs(run[column]).max():.4g}" for column in columns))
    console.print(table)


def figure(name: str, run: Run) -> Figure:
    """Path of P; its accelerations in its own axes, as a sensor on it has them; both efforts."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    page = Figure(figsize=(9, 9), layout="constrained")
    FigureCanvasSVG(page)
    panels = page.subplots(3, 1, sharex=True)
    for axes, axis in zip(panels[:2], "xy", strict=True):
        column = f"P.local_a{axis}"
        axes.plot(run.t, run[column], color="0.75", linewidth=0.7, label="all of it")
        axes.plot(run.t, run.low_passed(column, CUTOFF), color=COLOURS[0], linewidth=1.2, label=f"below {CUTOFF:g} Hz")
        axes.set_ylabel(f"acceleration of P along\nits own {axis} (m/s$^2$)")
    for joint, colour in zip(("11", "21"), COLOURS, strict=True):
        panels[2].plot(run.t, run[f"effort.{joint}"], color=colour, linewidth=1.0, label=f"slide {joint}")
    panels[2].set_ylabel("effort (N)")
    panels[2].set_xlabel("time (s)")
    for axes in panels:
        axes.axhline(0, color="0.6", linewidth=0.8, zorder=0)
        axes.grid(color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    panels[0].set_xlim(run.t[0], run.t[-1])
    panels[0].set_title(f"DualEMPS on its {name}, with friction", fontsize=11, loc="left")
    page.align_ylabels()
    return page


def save(page: Figure, path: Path) -> None:
    """The figure as SVG, whole or not at all, the same bytes every time."""
    import matplotlib

    partial = path.with_name(path.name + ".part")
    try:
        with matplotlib.rc_context({"svg.hashsalt": "parflex"}):
            page.savefig(partial, format="svg", metadata={"Date": None})
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def main() -> int:
    """0 when all was computed, 1 when it was interrupted, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--step", type=float, default=5e-4, metavar="S", help="step of the integrator, s")
    parser.add_argument("--short", action="store_true", help="only the first second of each motion")
    options = parser.parse_args()
    console, errors = Console(highlight=False), Console(stderr=True)
    runs: dict[str, Run] = {}
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        for name, time in MOTIONS.items():
            runs[name] = simulate(name, 1.0 if options.short else time, options.step)
            run = runs[name]
            run.save(options.output / f"dualemps-{name}.csv")
            save(figure(name, run), options.output / f"dualemps-{name}.svg")
            console.print(f"{name}: {run.t[-1]:g} s in {run.seconds:.2f} s; figure and table in {options.output}")
        largest(runs, console)
    except OSError as error:
        errors.print(f"error: {error.filename}: cannot be written ({error.strerror}); choose another --output")
        return 2
    except KeyboardInterrupt:
        errors.print("interrupted: what was computed until then is kept")
        return 1
    return 0 if all(run.status == "ok" for run in runs.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
