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
    """Two panels over the preload."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    left.plot(efforts, frequencies, label=[f"mode {k + 1}" for k in range(frequencies.shape[1])])
    left.set(xlabel="preload of leg1.1 (N m)", ylabel="natural frequency (Hz)", ylim=(0, None))
    left.legend(frameon=False)
    right.plot(efforts, stiffness[:, 0] / 1e3, label="x")
    right.plot(efforts, stiffness[:, 1] / 1e3, "--", label="y")
    right.set(xlabel="preload of leg1.1 (N m)", ylabel="stiffness (N/mm)", ylim=(0, None))
    turning = right.twinx()
    turning.plot(efforts, stiffness[:, 2], "C2:", label="theta (right scale)")
    turning.set(ylabel="rotational stiffness (N m/rad)", ylim=(0, 2 * stiffness[:, 2].max()))
    right.legend(handles=[*right.lines, *turning.lines], frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.suptitle(f"4RRR, servos of {SERVO:g} N m/rad")
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
