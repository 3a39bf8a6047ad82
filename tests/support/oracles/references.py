"""Tables of the benchmark problems: made by the integrations beside this file, kept in `tests/references`.

    python -m oracles.references [NAME ...]        (from the folder of the tests)

Ordinary tests read the tables; `make verify` makes them anew, coarser, and compares: the difference is their error.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from support.oracles import flexible_benchmarks
from support.oracles.benchmarks import CORNERS, bricard, double_four_bar, slider_crank, squeezer_angles, squeezer_track
from support.oracles.constrained import integrate

Array = np.ndarray
Table = dict[str, Array]
FOLDER = Path(__file__).resolve().parents[2] / "references"


def _tolerance(coarse: bool) -> float:
    return 1e-11 if coarse else 1e-12


def squeezer_table(coarse: bool = False) -> Table:
    """Andrews' squeezer: angles of the joints and their rates for 30 ms, a constant torque on the crank."""
    t = np.linspace(0.0, 0.03, 31)
    made = squeezer_track(t, _tolerance(coarse))
    rates = {f"{name}.rate": value for name, value in squeezer_angles(made.v).items()}
    return {"t": t, **squeezer_angles(made.q), **rates}


def double_four_bar_table(coarse: bool = False) -> Table:
    """Three rockers and two couplers: angle of the rockers for 10 s, with 1 m/s along x at the top at first."""
    t = np.linspace(0.0, 10.0, 51)
    angle, rate = double_four_bar(t, tolerance=_tolerance(coarse))
    return {"t": t, "angle": angle, "rate": rate}


def slider_crank_table(coarse: bool = False) -> Table:
    """The spatial slider-crank for 5 s, the crank with 6 rad/s at first: slider, centre of the rod, crank."""
    t = np.linspace(0.0, 5.0, 51)
    assembly, q, v = slider_crank()
    made = integrate(assembly, t, q, v, _tolerance(coarse))
    rod = {f"rod.{letter}": made.q[:, 7 + k] for k, letter in enumerate("xyz")}
    return {"t": t, "slider": made.q[:, 14], "slider.rate": made.v[:, 12], "crank.rate": made.v[:, 3], **rod}


def bricard_table(coarse: bool = False) -> Table:
    """IFToMM's Bricard mechanism for 10 s from rest: the corner between the third and the fourth rod."""
    t = np.linspace(0.0, 10.0, 51)
    assembly, q = bricard()
    made = integrate(assembly, t, q, np.zeros(30), _tolerance(coarse))
    at = tuple((CORNERS[3] - CORNERS[2]) / 2)
    places = np.array([assembly.point(row, 2, at) for row in made.q])
    speeds = np.array([assembly.velocity(row, v, 2, at) for row, v in zip(made.q, made.v, strict=True)])
    return {"t": t, **dict(zip("xyz", places.T, strict=True)), **dict(zip(("vx", "vy", "vz"), speeds.T, strict=True))}


def flexible_slider_crank_table(coarse: bool = False) -> Table:
    """16 cable elements for 0.1 s (8 are 1e-4 off); energy in place of the torque, which rings along the rod."""
    made = flexible_benchmarks.slider_crank(np.linspace(0.0, 0.1, 201), 8 if coarse else 16, 1e-8)
    return {name: made[name] for name in ("t", "deflection", "slider", "energy")}


def spin_up_table(coarse: bool = False) -> Table:
    """Kane's manoeuvre for 20 s: way of the tip in the axes of the hub. Cable elements, 32 of them."""
    return flexible_benchmarks.spin_up(np.linspace(0.0, 20.0, 101), 16 if coarse else 32)


TABLES: dict[str, Callable[..., Table]] = {
    "squeezer": squeezer_table,
    "double-four-bar": double_four_bar_table,
    "slider-crank-spatial": slider_crank_table,
    "bricard-iftomm": bricard_table,
    "slider-crank-flexible": flexible_slider_crank_table,
    "spin-up": spin_up_table,
}


def read(name: str) -> Table:
    names = (FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    return dict(zip(names, np.loadtxt(FOLDER / f"{name}.csv", delimiter=",", skiprows=1).T, strict=True))


def write(name: str) -> None:
    table = TABLES[name]()
    FOLDER.mkdir(exist_ok=True)
    rows = np.stack(list(table.values()), axis=1)
    np.savetxt(FOLDER / f"{name}.csv", rows, "%.12g", ",", header=",".join(table), comments="")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or TABLES:
        write(chosen)
