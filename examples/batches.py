"""Torques of an RX-90 at many random states: one compiled model, all states side by side.

    python examples/batches.py --output out

The script compares the compiled model with the general one at a few states, prints how long all of them take, and draws
how large the torque of each joint gets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np

import parflex
from parflex.errors import ParflexError
from parflex.view.style import drawing, legend_above

LIMITS = np.array([1.0, 2.0, 5.0])  # rad, rad/s, rad/s2: states are spread evenly within them


def torques(robot: parflex.robot.robot.Robot, states: np.ndarray) -> tuple[np.ndarray, float]:
    """Torques at states (3 x count x joints), and the seconds of processor time that they took."""
    inverse = parflex.model(robot, "inverse")
    q, qd, qdd = states
    inverse(q=q[:8], qd=qd[:8], qdd=qdd[:8])  # compile
    start = process_time()
    return inverse(q=q, qd=qd, qdd=qdd)["effort"], process_time() - start


def largest_error(robot: parflex.robot.robot.Robot, states: np.ndarray, found: np.ndarray) -> float:
    """Difference from the general model at the first ten states."""
    errors = []
    for q, qd, qdd, effort in zip(*states[:, :10], found[:10], strict=True):
        named = [dict(zip(robot.actuated_names, values.tolist(), strict=True)) for values in (q, qd, qdd)]
        expected = parflex.inverse_dynamics(robot, *named).efforts
        errors.append(np.abs(effort - np.array(list(expected.values()))).max())
    return float(max(errors))


def draw(found: np.ndarray, names: list[str], path: Path) -> None:
    """Draw how often each joint exceeds a torque."""
    shares = np.linspace(100, 0, 400)
    with drawing(path, 2.8) as figure:
        axes = figure.add_subplot()
        for joint, name in enumerate(names):
            axes.semilogx(np.percentile(np.abs(found[:, joint]), 100 - shares), shares, label=f"joint {name}")
        axes.set_xlim(left=0.1)
        axes.set_ylim(0, 100)
        axes.set_xlabel("torque (N m)")
        axes.set_ylabel("states above this torque (%)")
        axes.set_title(f"RX-90: torques at {len(found)} random states")
        legend_above(axes, len(names))


def main() -> int:
    """0 when all was computed, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="a thousand states instead of a million")
    options = parser.parse_args()
    count = 1_000 if options.short else 1_000_000
    robot = parflex.load("rx90")
    random = np.random.default_rng(1).uniform(-1, 1, (3, count, len(robot.actuated)))
    states = random * LIMITS[:, None, None]
    found, seconds = torques(robot, states)
    print(f"{count} states in {seconds:.3f} s of processor time")
    print(f"largest difference from the general model: {largest_error(robot, states, found):.1e} N m")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        picture = options.output / "rx90-torques.svg"
        draw(found, robot.actuated_names, picture)
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Figure: {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
