"""The lowest modes of two flexible robots, motors locked: the NaVARo from above, and a Gough-Stewart robot on tubes.

    python examples/mode_shapes.py --output out

Grey is the robot at rest, colour the mode at an amplitude that can be seen.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import parflex
from parflex.errors import ParflexError
from parflex.view.skeleton import mode_shape_points
from parflex.view.style import write_picture

ROBOTS = {  # the view of each: rows of the picture's right and up in world axes
    "navaro": np.array([[1, 0, 0], [0, 1, 0]]),
    "gough-stewart-beams": np.array([[0.83, 0.56, 0], [-0.19, 0.28, 0.94]]),
}
COLOURS = {"beam": "#0072b2", "platform": "#d55e00", "plate": "#d55e00"}
AMPLITUDE = 0.12  # of the size of the robot


def draw_mode(axes: Axes, name: str, number: int, modes: parflex.statics.modes.Modes) -> None:
    """One mode in one panel."""
    held = modes.model.robot
    seen = mode_shape_points(held, modes.model.configuration, modes.shapes[:, number])
    edges = {colour: [] for colour in ("0.25", *COLOURS.values())}
    for edge, kind in zip(seen.edges, seen.kinds, strict=True):
        if kind != "slide":  # cylinders and rods are beams: where they slide needs no line of its own
            edges[COLOURS.get(kind, "0.25")].append(edge)
    for way in (0.0, AMPLITUDE * seen.size):
        flat = np.vstack([(seen.points + way * seen.shape) @ ROBOTS[name].T, [np.nan, np.nan]])
        for colour, pairs in edges.items():
            line = flat[[point for pair in pairs for point in (*pair, -1)]]  # the last point lifts the pen
            axes.plot(*line.T, color=colour if way else "0.8", linewidth=1.8 if way else 1.2)
    axes.set_title(f"{name}: {modes.frequencies[number]:.1f} Hz", fontsize=10)
    axes.set_aspect("equal")
    axes.axis("off")


def main() -> int:
    """0 when all was computed, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="one mode of each robot")
    options = parser.parse_args()
    count = 1 if options.short else 3
    page = Figure(figsize=(3.3 * count, 6.2), layout="constrained")
    FigureCanvasAgg(page)
    panels = page.subplots(len(ROBOTS), count, squeeze=False)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        for row, name in zip(panels, ROBOTS, strict=True):
            modes = parflex.natural_frequencies(parflex.load(name), modes=count)
            for number, axes in enumerate(row):
                draw_mode(axes, name, number, modes)
            print(f"{name}: " + ", ".join(f"{value:.2f}" for value in modes.frequencies) + " Hz")
        picture = options.output / "modes.svg"
        write_picture(page, picture)
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Figure: {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
