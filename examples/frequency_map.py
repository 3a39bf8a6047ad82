"""The lowest natural frequency of the NaVARo all over its workspace, motors locked.

    python examples/frequency_map.py --output out

The script prints the softest and the stiffest pose and writes a figure, the map as npz and a table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import parflex
from parflex.errors import ParflexError


def main() -> int:
    """0 when all was computed, 1 when it was interrupted, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="a coarse grid")
    options = parser.parse_args()
    count = 13 if options.short else 121
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        robot = parflex.load("navaro")
        over = [("x", -0.1, 0.1, count), ("y", -0.1, 0.1, count)]
        found = parflex.frequency_map(robot, over, modes=3, out=options.output / f"navaro-map-{count}.npz")
        lowest = found.frequencies[..., 0]
        for word, place in (("softest", np.nanargmin(lowest)), ("stiffest", np.nanargmax(lowest))):
            i, j = np.unravel_index(place, lowest.shape)
            x, y = found.axes["x"][i], found.axes["y"][j]
            print(f"{word}: {lowest[i, j]:.2f} Hz at x = {x:.3f} m, y = {y:.3f} m")
        print(f"{found.count(0)} of {lowest.size} poses can be reached")
        picture = options.output / "navaro-map.svg"
        parflex.draw_map(found, picture, title="NaVARo: lowest natural frequency, motors locked")
        print(f"Figure: {picture}")
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 1 if found.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
