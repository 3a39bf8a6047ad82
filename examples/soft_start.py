"""How gently must a robot start, so that its crank does not ring? The robot of the tutorial, stopped in many ways.

    python examples/soft_start.py --output out

The tool is driven along a line whose ramps take 10 to 120 ms. What is left of the vibration after the stop is printed
and drawn: ramps of more than two periods of the first mode hardly leave any.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import parflex
from parflex.errors import ParflexError
from parflex.view.style import LINES, REST, drawing

ROBOT = Path(__file__).with_name("crank-slide-flexible.toml")
END = {"x": 0.33, "y": 0.36}  # of the line
TIME = 0.7  # s


def swing(ramp: float) -> float:
    """Largest distance of the tool from where it comes to rest, after the stop, m."""
    robot = parflex.load(ROBOT, settings={"motions.line.ramp": ramp})
    run = parflex.simulate(robot, "line", TIME, start="equilibrium", step=1e-3, out_step=2e-3)
    after = run.t > 0.45
    tool = np.column_stack([run["tool.x"], run["tool.y"]])[after]
    return float(np.linalg.norm(tool - tool.mean(axis=0), axis=1).max())


def draw(ramps: np.ndarray, swings: np.ndarray, frequency: float, path: Path) -> None:
    """Draw the swing over the ramp, with the periods of the first mode."""
    with drawing(path, 2.8) as figure:
        axes = figure.add_subplot()
        for number in (1, 2, 3):
            period = 1000 * number / frequency
            axes.axvline(period, color=REST, linewidth=1.2)
            label = "one period\nof mode 1" if number == 1 else f"{number} periods"
            axes.annotate(label, (period, 1), (3, -3), xycoords=("data", "axes fraction"), textcoords="offset points",
                          va="top")  # fmt: skip
        axes.plot(1000 * ramps, 1000 * swings, "o-", color=LINES[0], markersize=4)
        axes.set_xlabel("duration of a ramp (ms)")
        axes.set_ylabel("swing after the stop (mm)")
        axes.set_xlim(0, 1000 * ramps.max() * 1.03)
        axes.set_ylim(bottom=0)
        axes.set_title(f"Crank-slide robot, first mode at {frequency:.1f} Hz")


def main() -> int:
    """0 when all was computed, 1 when it was interrupted, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="three ramps only")
    options = parser.parse_args()
    ramps = np.array([0.02, 0.04, 0.07]) if options.short else np.linspace(0.01, 0.12, 23)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        frequency = float(parflex.natural_frequencies(parflex.load(ROBOT), END, modes=1).frequencies[0])
        swings = np.array([swing(float(ramp)) for ramp in ramps])
        for ramp, way in zip(ramps, swings, strict=True):
            print(f"ramp {1000 * ramp:5.1f} ms: swing {1000 * way:.4f} mm")
        picture = options.output / "soft-start.svg"
        draw(ramps, swings, frequency, picture)
        print(f"Figure: {picture}")
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
