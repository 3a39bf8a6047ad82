"""Natural frequencies and stiffness of the 4RRR against the preload of its four motors, which servos hold.

    python examples/preload.py --output out

The script prints a table and writes a figure.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import parflex
from parflex.errors import ParflexError
from parflex.view.style import drawing

SERVO = 20.0  # N m/rad
POSE = {"x": 0.05, "y": 0.02, "theta": 0.3}  # m, rad


def main() -> int:
    """0 when all was computed, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="fewer preloads")
    options = parser.parse_args()
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        robot = parflex.load("4rrr")
        efforts = np.linspace(-12.0, 12.0, 13 if options.short else 49)
        frequencies, stiffness = [], []
        for effort in efforts:
            held = {"servo": SERVO, "preload": {robot.motors[0]: float(effort)}}
            modes = parflex.natural_frequencies(robot, POSE, **held)
            unstable = [np.nan] * len(modes.unstable_motions)
            frequencies.append([*unstable, *modes.frequencies])
            stiffness.append(np.diag(parflex.cartesian_stiffness(robot, POSE, **held).stiffness))
        picture = options.output / "preload.svg"
        draw(efforts, np.array(frequencies), np.array(stiffness), picture)
        for k in range(0, len(efforts), len(efforts) // 4):
            print(f"{efforts[k]:5.1f} N m: " + ", ".join(f"{hertz:.2f}" for hertz in frequencies[k]) + " Hz")
        print(f"Figure: {picture}")
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def draw(efforts: np.ndarray, frequencies: np.ndarray, stiffness: np.ndarray, path: Path) -> None:
    """Draw frequencies, stiffness and rotational stiffness over the preload."""
    with drawing(path, 2.5, title=f"4RRR, servos of {SERVO:g} N m/rad") as figure:
        panels = figure.subplots(1, 3)
        for panel, values, label in (
            (panels[0], {f"mode {k + 1}": column for k, column in enumerate(frequencies.T)}, "frequency (Hz)"),
            (panels[1], {"x": stiffness[:, 0] / 1e3, "y": stiffness[:, 1] / 1e3}, "stiffness (N/mm)"),
            (panels[2], {"theta": stiffness[:, 2]}, "rotational stiffness (N m/rad)"),
        ):
            for (name, column), line in zip(values.items(), ("-", "--", "-."), strict=False):
                panel.plot(efforts, column, line, label=name)
            panel.set_xlabel("preload of leg1.1 (N m)")
            panel.set_ylabel(label)
            panel.set_xlim(efforts[0], efforts[-1])
            panel.set_ylim(bottom=0)
            if len(values) > 1:
                panel.legend()


if __name__ == "__main__":
    sys.exit(main())
