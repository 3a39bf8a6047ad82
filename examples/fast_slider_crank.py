"""How many elements does a fast rod need? A slider-crank at 1432 turns a minute beside a reference that shares no code.

    python examples/fast_slider_crank.py --output out

The crank runs at 150 rad/s from the first instant; the rod, 0.3 m of 8 x 8 mm steel, deflects by 1.9 mm. Its middle
is drawn for 1, 2, 4 and 8 elements, beside 16 cable elements in absolute nodal coordinates, kept in a table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import parflex
from parflex.errors import ParflexError
from parflex.view.style import LINES, REST, drawing, legend_above

TESTS = Path(__file__).resolve().parents[1] / "tests"
ROBOT, REFERENCE = TESTS / "robots" / "slider-crank-flexible.toml", TESTS / "references" / "slider-crank-flexible.csv"
TIME, ROD = 0.1, 0.3  # s, m
ELEMENTS = (1, 2, 4, 8)

Array = np.ndarray


def deflection(elements: int, t: Array) -> Array:
    """How far the middle of the rod is from the line between its ends, m."""
    robot = parflex.load(ROBOT, settings={"frame.rod.beam.elements": elements})
    middle = f"rod.{elements // 2}" if elements > 1 else "rod.tip"
    how = {"step": 2.5e-5, "out_step": float(t[1]), "frames": ["rod", "slider", middle]}
    run = parflex.simulate(robot, "spin", TIME, **how)
    if elements == 1:  # between its ends an element is a cubic
        return -run["q.rod.rz"] * ROD / 8
    pin, end, place = (np.array([run[f"{name}.x"], run[f"{name}.y"]]) for name in ("rod", "slider", middle))
    chord, off = end - pin, place - pin
    return (chord[0] * off[1] - chord[1] * off[0]) / np.hypot(*chord)


def draw(t: Array, reference: Array, found: dict[int, Array], path: Path) -> None:
    """Draw deflections over time, and the largest difference from the reference until then."""
    colours = dict(zip(ELEMENTS, (LINES[4], LINES[2], LINES[0], LINES[1]), strict=True))
    with drawing(path, 4.4, title="Slider-crank at 150 rad/s: deflection of its rod") as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        above.plot(1000 * t, 1000 * reference, color=REST, linewidth=5, label="reference")
        for elements, values in found.items():
            label = f"{elements} element" + "s" * (elements > 1)
            above.plot(1000 * t, 1000 * values, color=colours[elements], label=label)
            largest = np.maximum.accumulate(np.abs(values - reference)) / np.abs(reference).max()
            below.semilogy(1000 * t[1:], 100 * largest[1:], color=colours[elements])
        above.set_ylim(-2.1, 2.1)
        above.set_ylabel("middle of the rod (mm)")
        legend_above(above, len(found) + 1)
        below.set_ylabel("largest difference (%)")
        below.set_xlabel("time (ms)")
        below.set_xlim(0, 1000 * t[-1])
        below.set_ylim(1e-3, 100)


def main() -> int:
    """0 when all was computed, 1 when it was interrupted, 2 when the files cannot be read or written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="one and two elements only")
    options = parser.parse_args()
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        t, reference = np.loadtxt(REFERENCE, delimiter=",", skiprows=1, usecols=(0, 1)).T
        found = {elements: deflection(elements, t) for elements in ((1, 2) if options.short else ELEMENTS)}
        for elements, values in found.items():
            off = np.abs(values - reference).max() / np.abs(reference).max()
            print(f"{elements} elements: {100 * off:.2f} % of {1000 * np.abs(reference).max():.2f} mm")
        picture = options.output / "fast-slider-crank.svg"
        draw(t, reference, found, picture)
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
