"""A Gough-Stewart robot whose legs are steel tubes: the robot, a mode with locked motors, and a frequency map.

    python examples/mode_shapes.py --output out

Grey is the undeformed robot, colour the mode at an amplitude that can be seen.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import parflex
from parflex.errors import ParflexError
from parflex.view.map_figure import map_panel
from parflex.view.robot_figure import RobotFigure, drawable_mode
from parflex.view.style import drawing

ROBOT, AMPLITUDE = "gough-stewart-beams", 0.1
REACH = 0.4  # m, half the side of the map


def main() -> int:
    """0 when all was computed, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="a coarse map")
    options = parser.parse_args()
    count = 5 if options.short else 41
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        robot = parflex.load(ROBOT)
        modes = parflex.natural_frequencies(robot, modes=3)
        print(f"{ROBOT}: " + ", ".join(f"{value:.2f}" for value in modes.frequencies) + " Hz")
        home = parflex.frames(robot)["platform"].position
        over = [(word, home[k] - REACH, home[k] + REACH, count) for k, word in enumerate("xy")]
        found = parflex.frequency_map(robot, over, {"z": round(float(home[2]), 3)}, modes=1)
        shape = drawable_mode(modes, 0)
        picture = RobotFigure(modes.model.configuration, shape)
        path = options.output / "modes.svg"
        with drawing(path, 3.4, title="Gough-Stewart robot with legs of steel tubes, motors locked") as figure:
            left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
            picture.axes = left
            picture.mode(shape, AMPLITUDE)
            picture.frame(0)
            left.set_title(f"First mode, {modes.frequencies[0]:.1f} Hz (grey: undeformed)")
            map_panel(right, found)
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Figure: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
