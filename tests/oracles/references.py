"""Tables of the benchmark problems: made by the integrations beside this file, kept in `tests/references`.

    python -m oracles.references [NAME ...]        (from the folder of the tests)

Ordinary tests read the tables; `make verify` makes them anew and compares.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from oracles.benchmarks import CORNERS, bricard, double_four_bar, slider_crank, squeezer_angles, squeezer_track
from oracles.constrained import integrate

Array = np.ndarray
Table = dict[str, Array]
FOLDER = Path(__file__).resolve().parents[1] / "references"


def squeezer_table(tolerance: float = 1e-12) -> Table:
    """Andrews' squeezer: angles of the joints and their rates for 30 ms, a constant torque on the crank."""
    t = np.linspace(0.0, 0.03, 31)
    made = squeezer_track(t, tolerance)
    rates = {f"{name}.rate": value for name, value in squeezer_angles(made.v).items()}
    return {"t": t, **squeezer_angles(made.q), **rates}


def double_four_bar_table(tolerance: float = 1e-13) -> Table:
    """Three rockers and two couplers: angle of the rockers for 10 s, with 1 m/s along x at the top at first."""
    t = np.linspace(0.0, 10.0, 51)
    angle, rate = double_four_bar(t, tolerance=tolerance)
    return {"t": t, "angle": angle, "rate": rate}


def slider_crank_table(tolerance: float = 1e-12) -> Table:
    """The spatial slider-crank for 5 s, the crank with 6 rad/s at first: slider, centre of the rod, crank."""
    t = np.linspace(0.0, 5.0, 51)
    assembly, q, v = slider_crank()
    made = integrate(assembly, t, q, v, tolerance)
    rod = {f"rod.{letter}": made.q[:, 7 + k] for k, letter in enumerate("xyz")}
    return {"t": t, "slider": made.q[:, 14], "slider.rate": made.v[:, 12], "crank.rate": made.v[:, 3], **rod}


def bricard_table(tolerance: float = 1e-12) -> Table:
    """IFToMM's Bricard mechanism for 10 s from rest: the corner between the third and the fourth rod."""
    t = np.linspace(0.0, 10.0, 51)
    assembly, q = bricard()
    made = integrate(assembly, t, q, np.zeros(30), tolerance)
    at = tuple((CORNERS[3] - CORNERS[2]) / 2)
    places = np.array([assembly.point(row, 2, at) for row in made.q])
    speeds = np.array([assembly.velocity(row, v, 2, at) for row, v in zip(made.q, made.v, strict=True)])
    return {"t": t, **dict(zip("xyz", places.T, strict=True)), **dict(zip(("vx", "vy", "vz"), speeds.T, strict=True))}


TABLES: dict[str, Callable[..., Table]] = {
    "squeezer": squeezer_table,
    "double-four-bar": double_four_bar_table,
    "slider-crank-spatial": slider_crank_table,
    "bricard-iftomm": bricard_table,
}


def read(name: str) -> Table:
    """A table that is kept."""
    names = (FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    return dict(zip(names, np.loadtxt(FOLDER / f"{name}.csv", delimiter=",", skiprows=1).T, strict=True))


def write(name: str) -> None:
    """Make a table and keep it."""
    table = TABLES[name]()
    FOLDER.mkdir(exist_ok=True)
    rows = np.stack(list(table.values()), axis=1)
    np.savetxt(FOLDER / f"{name}.csv", rows, "%.14g", ",", header=",".join(table), comments="")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or TABLES:
        write(chosen)
