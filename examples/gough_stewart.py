"""Leg forces of a Gough-Stewart robot along a smooth motion of its platform.

    python examples/gough_stewart.py --output out

The platform moves along a quintic path, in position and orientation at once. The script prints the leg forces at a few
times, compares the work of the motors with the change of energy, and writes a figure and a table.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import parflex
from parflex.errors import ParflexError
from parflex.io import write_text
from parflex.robot.robot import Robot
from parflex.view.style import REST, drawing, time_axis

DURATION = 2.0  # s
SHIFT = np.array([0.15, -0.10, 0.20])  # m, in world axes
TURN = np.array([0.15, 0.10, 0.30])  # rotation vector, rad, in world axes
WORDS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass
class Samples:
    """The motion at some times."""

    times: np.ndarray  # s
    poses: np.ndarray  # x, y, z (m) and rotation vector (rad)
    forces: np.ndarray  # of the legs, N
    powers: np.ndarray  # of all motors, W
    energies: np.ndarray  # kinetic and potential, J


def quintic(t: float) -> tuple[float, float, float]:
    """Return the share of the path, its rate and its second rate: no velocity or acceleration at both ends."""
    u = t / DURATION
    share = u**3 * (10 - 15 * u + 6 * u**2)
    return share, 30 * u**2 * (1 - u) ** 2 / DURATION, 60 * u * (1 - u) * (1 - 2 * u) / DURATION**2


def compute(robot: Robot, count: int) -> Samples:
    """Return the inverse dynamic model along the motion; as its axis is fixed, TURN gives angular rates too."""
    position, _ = parflex.frames(robot, "home")["platform"]
    start, step = np.concatenate([position, np.zeros(3)]), np.concatenate([SHIFT, TURN])
    times, rows = np.linspace(0.0, DURATION, count), []
    for t in times.tolist():
        share, rate, second = quintic(t)
        at = start + share * step
        states = [dict(zip(WORDS, values.tolist(), strict=True)) for values in (at, rate * step, second * step)]
        result = parflex.inverse_dynamics(robot, *states)
        forces = np.array(list(result.efforts.values()))
        power = float(forces @ result.rates[list(robot.actuated)])
        rows.append((at, forces, power, sum(parflex.energies(result.configuration, result.rates))))
    return Samples(times, *map(np.array, zip(*rows, strict=True)))


def show(samples: Samples, legs: list[str]) -> None:
    """Print forces at nine times, the largest of all, and the balance of energy: the robot has no friction."""
    times, forces, powers = samples.times, samples.forces, samples.powers
    largest = np.abs(forces).argmax(axis=0)
    shown = np.unique(np.linspace(0, len(times) - 1, 9).round().astype(int))
    rows = [("Leg forces (N)", legs), ("time (s)", [])]
    rows += [(f"{times[k]:.2f}", [f"{force:.1f}" for force in forces[k]]) for k in shown]
    rows.append(("largest", [f"{forces[k, leg]:.1f}" for leg, k in enumerate(largest)]))
    rows.append(("at (s)", [f"{times[k]:.2f}" for k in largest]))
    for name, cells in rows:
        print(f"{name:<15}" + "".join(f"{cell:>10}" for cell in cells))
    work = float(np.diff(times) @ (powers[1:] + powers[:-1])) / 2
    print(f"\nWork of the motors {work:.3f} J, change of energy {samples.energies[-1] - samples.energies[0]:.3f} J")


def draw(samples: Samples, legs: list[str], path: Path) -> None:
    """Draw forces over time, and below them the motion of the platform."""
    poses = samples.poses
    with drawing(path, 5.4, title="Gough-Stewart robot along a quintic motion") as figure:
        panels = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
        for panel, values, names, label in (
            (panels[0], samples.forces, legs, "leg force, pushing (N)"),
            (panels[1], poses[:, :3] - poses[0, :3], WORDS[:3], "translation (m)"),
            (panels[2], poses[:, 3:], WORDS[3:], "rotation (rad)"),
        ):
            for column, name in zip(values.T, names, strict=True):
                panel.plot(samples.times, column, label=name)
            panel.axhline(0, color=REST, linewidth=0.8, zorder=0)
            panel.set_ylabel(label)
            panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.align_ylabels()
        time_axis(panels[-1], samples.times)


def main() -> int:
    """Return 0 when all was computed, 1 when it was interrupted, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--samples", type=int, default=200, metavar="N", help="points along the motion, 3 or more")
    options = parser.parse_args()
    if options.samples < 3:
        parser.error("--samples: give 3 or more")
    picture, table = options.output / "gough-stewart.svg", options.output / "gough-stewart.csv"
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        robot = parflex.load("gough-stewart")
        samples = compute(robot, options.samples)
        legs = [name.split(".")[0] for name in robot.actuated_names]
        show(samples, legs)
        draw(samples, legs, picture)
        head = ["t", *(f"platform.{word}" for word in WORDS), *(f"effort.{name}" for name in robot.actuated_names)]
        rows = np.column_stack([samples.times, samples.poses, samples.forces]).tolist()
        lines = [",".join(head), *(",".join(f"{value:.9g}" for value in row) for row in rows)]
        write_text(table, "\n".join(lines) + "\n")
        print(f"Figure: {picture}\nTable:  {table} (s, m, rad, N)")
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
