"""Leg forces of a Gough-Stewart robot along a smooth motion of its platform.

    python examples/gough_stewart.py --output out

The platform goes from rest to rest along a quintic path, in position and orientation at once. The script prints the
leg forces at a few times, compares the work of the motors with the change of energy, and writes a figure and a table.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import parflex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from parflex.robot.robot import Robot

DURATION = 2.0  # s
SHIFT = np.array([0.15, -0.10, 0.20])  # m, in world axes
TURN = np.array([0.15, 0.10, 0.30])  # rotation vector, rad, in world axes
WORDS = ("x", "y", "z", "rx", "ry", "rz")
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#333333")  # told apart by colour-blind eyes too


@dataclass
class Record:
    """What is known of the motion so far."""

    times: list[float] = field(default_factory=list)
    poses: list[np.ndarray] = field(default_factory=list)  # x, y, z and rotation vector
    forces: list[np.ndarray] = field(default_factory=list)  # of the legs, N
    powers: list[float] = field(default_factory=list)  # of the motors, W
    energies: list[float] = field(default_factory=list)  # kinetic and potential, J


def quintic(t: float) -> tuple[float, float, float]:
    """Share of the way, its rate and its second rate: from rest to rest, without a jump in acceleration."""
    u = t / DURATION
    way = u**3 * (10 - 15 * u + 6 * u**2)
    rate = 30 * u**2 * (1 - u) ** 2 / DURATION
    second = 60 * u * (1 - u) * (1 - 2 * u) / DURATION**2
    return way, rate, second


def sample(robot: Robot, start: np.ndarray, t: float, record: Record) -> None:
    """Add the inverse dynamic model at one time; as the axis of the turn is fixed, TURN gives angular rates too."""
    way, rate, second = quintic(t)
    step = np.concatenate([SHIFT, TURN])
    at = start + way * step
    pose, velocity, acceleration = (dict(zip(WORDS, v.tolist(), strict=True)) for v in (at, rate * step, second * step))
    result = parflex.inverse_dynamics(robot, pose, velocity, acceleration)
    forces = np.array(list(result.efforts.values()))
    record.times.append(t)
    record.poses.append(at)
    record.forces.append(forces)
    record.powers.append(float(forces @ result.rates[list(robot.actuated)]))
    record.energies.append(sum(parflex.energies(result.configuration, result.rates)))


def compute(robot: Robot, count: int, console: Console) -> tuple[Record, bool]:
    """The whole motion, or as much of it as there is when Ctrl-C is pressed."""
    position, _ = parflex.frames(robot, "home")["platform"]
    start = np.concatenate([position, np.zeros(3)])
    record = Record()
    columns = (TextColumn("inverse dynamics"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            for t in progress.track(np.linspace(0.0, DURATION, count).tolist(), description=""):
                sample(robot, start, t, record)
    except KeyboardInterrupt:
        length = min(len(column) for column in vars(record).values())
        for column in vars(record).values():
            del column[length:]
        return record, False
    return record, True


def print_forces(record: Record, legs: list[str], console: Console) -> None:
    """Forces at nine times and the largest of all."""
    times, forces = np.array(record.times), np.array(record.forces)
    table = Table(title="Leg forces (N)", title_justify="left", box=None, pad_edge=False)
    for heading in ("time (s)", *legs):
        table.add_column(heading, justify="right")
    for k in np.unique(np.linspace(0, len(times) - 1, 9).round().astype(int)):
        table.add_row(f"{times[k]:.2f}", *(f"{force:.1f}" for force in forces[k]))
    table.add_section()
    largest = np.abs(forces).argmax(axis=0)
    table.add_row("largest", *(f"{forces[k, leg]:.1f}" for leg, k in enumerate(largest)), style="bold")
    table.add_row("at (s)", *(f"{times[k]:.2f}" for k in largest))
    console.print(table)


def print_balance(record: Record, console: Console) -> None:
    """Work of the motors against the change of energy: there is no friction in this robot."""
    powers, times = np.array(record.powers), np.array(record.times)
    work = float(np.diff(times) @ (powers[1:] + powers[:-1])) / 2
    change = record.energies[-1] - record.energies[0]
    console.print(f"\nWork of the motors {work:.3f} J, change of energy {change:.3f} J")


def figure(record: Record, legs: list[str]) -> Figure:
    """Forces over time, and below them how the platform moves."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    times, forces, poses = np.array(record.times), np.array(record.forces), np.array(record.poses)
    page = Figure(figsize=(8, 8.5), layout="constrained")
    FigureCanvasSVG(page)
    top, middle, bottom = page.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
    panels = (
        (top, forces, legs, "leg force (N), positive: pushing"),
        (middle, poses[:, :3] - poses[0, :3], ["x", "y", "z"], "platform shift (m)"),
        (bottom, poses[:, 3:], ["about x", "about y", "about z"], "platform turn (rad)"),
    )
    for axes, values, names, label in panels:
        for column, name, colour in zip(values.T, names, COLOURS, strict=False):
            axes.plot(times, column, color=colour, linewidth=1.8, label=name)
        axes.axhline(0, color="0.6", linewidth=0.8, zorder=0)
        axes.set_ylabel(label)
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    top.set_title("Gough-Stewart robot: forces of the six legs along a quintic motion", fontsize=11, loc="left")
    bottom.set_xlabel("time (s)")
    bottom.set_xlim(times[0], times[-1] if len(times) > 1 else DURATION)
    page.align_ylabels()
    return page


def svg(page: Figure) -> bytes:
    """The figure as SVG, the same bytes every time."""
    import matplotlib

    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "parflex"}):
        page.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()


def table(record: Record, robot: Robot) -> bytes:
    """All samples as CSV: s, m, rad, N."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["t", *(f"platform.{word}" for word in WORDS), *(f"effort.{name}" for name in robot.actuated_names)]
    )
    for t, pose, forces in zip(record.times, record.poses, record.forces, strict=True):
        writer.writerow([f"{value:.9g}" for value in (t, *pose, *forces)])
    return text.getvalue().encode()


def write(path: Path, make: Callable[[], bytes]) -> Path:
    """A whole file or none: an interruption leaves the old one."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_bytes(make())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def main() -> int:
    """0 when all was computed, 1 when it was interrupted, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--samples", type=int, default=200, metavar="N", help="points along the motion, 3 or more")
    options = parser.parse_args()
    if options.samples < 3:
        parser.error("--samples: give 3 or more")
    console, progress = Console(highlight=False), Console(stderr=True)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        robot = parflex.load("gough-stewart")
        record, complete = compute(robot, options.samples, progress)
        if len(record.times) > 1:
            legs = [name.split(".")[0] for name in robot.actuated_names]
            print_forces(record, legs, console)
            if complete:
                print_balance(record, console)
            picture = write(options.output / "gough-stewart.svg", lambda: svg(figure(record, legs)))
            numbers = write(options.output / "gough-stewart.csv", lambda: table(record, robot))
            console.print(f"Figure: {picture}\nTable:  {numbers} (s, m, rad, N)", soft_wrap=True)
    except OSError as error:
        progress.print(
            f"error: {error.filename}: cannot be written ({error.strerror}); choose another --output", soft_wrap=True
        )
        return 2
    except KeyboardInterrupt:
        complete = False
    if not complete:
        progress.print("interrupted: what was computed until then is kept")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
