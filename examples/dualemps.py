"""The DualEMPS along its two motions: acceleration of its end P and efforts of both motors, as Briot2014 shows them.

    python examples/dualemps.py --output out

Slides and joints have friction. For each motion the script prints the largest values, and writes a figure and a table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import parflex
from parflex.errors import ParflexError
from parflex.simulation.runs import Run
from parflex.view.style import LINES, REST, drawing, legend_above, time_axis

MOTIONS = {"circle": 6.5, "square": 12.5}  # seconds: two turns, one period
CUTOFF = 40.0  # Hz, of the low-passed acceleration: between the third and the fourth natural frequency
SHOWN = ("P.local_ax", "P.local_ay", "effort.11", "effort.21", "energy.elastic")


def draw(name: str, run: Run, path: Path) -> None:
    """Draw accelerations of P in its own axes, as a sensor on it measures them, and both efforts."""
    with drawing(path, 5.4, title=f"DualEMPS on its {name}, with friction") as figure:
        panels = figure.subplots(3, 1, sharex=True)
        for panel, axis in zip(panels, "xy", strict=False):
            column = f"P.local_a{axis}"
            panel.plot(run.t, run[column], color=REST, linewidth=0.7, label="all frequencies")
            panel.plot(run.t, run.low_passed(column, CUTOFF), color=LINES[0], label=f"below {CUTOFF:g} Hz")
            panel.set_ylabel(f"$a_{axis}$ of P (m/s$^2$)")
        for joint in ("11", "21"):
            panels[2].plot(run.t, run[f"effort.{joint}"], linewidth=1.0, label=f"slide {joint}")
        panels[2].set_ylabel("effort (N)")
        for panel in panels:
            legend_above(panel, 2)
        figure.align_ylabels()
        time_axis(panels[2], run.t)


def main() -> int:
    """Return 0 when all was computed, 1 when it was interrupted, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--step", type=float, default=5e-4, metavar="S", help="step of the integrator, s")
    parser.add_argument("--short", action="store_true", help="only the first second of each motion")
    options = parser.parse_args()
    runs: dict[str, Run] = {}
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        robot = parflex.load("dualemps")
        for name, time in MOTIONS.items():
            how = {"step": options.step, "out_step": 1e-3, "check_width": False}
            run = runs[name] = parflex.simulate(robot, name, 1.0 if options.short else time, **how)
            run.save(options.output / f"dualemps-{name}.csv")
            draw(name, run, options.output / f"dualemps-{name}.svg")
            print(f"{name}: {run.t[-1]:g} s in {run.seconds:.2f} s; figure and table in {options.output}")
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    print(f"{'Largest values':<20}" + "".join(f"{column:>16}" for column in SHOWN))
    for name, run in runs.items():
        print(f"{name:<20}" + "".join(f"{np.abs(run[column]).max():16.4g}" for column in SHOWN))
    return 0 if all(run.status == "ok" for run in runs.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
