"""Benchmark mechanisms against integrations of our own in redundant coordinates, which share no code with the package.

The tables are in `tests/references`; `oracles.references` makes them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.oracles.benchmarks import SQUEEZER_END, bricard, slider_crank, squeezer, squeezer_angles
from support.oracles.constrained import accelerations, integrate
from support.oracles.references import TABLES, read
from support.traced import long

import parflex

ROBOTS = Path(__file__).parent / "robots"


def simulated(name: str, time: float, method: str = "gauss6", **how):
    return parflex.simulate(parflex.load(ROBOTS / f"{name}.toml"), None, time, method=method, **how)


# -- the references themselves ----------------------------------------------------------------------------------


def test_the_squeezer_of_the_table_ends_where_the_publications_say(figure):
    table = read("squeezer")
    off = max(abs(table[name][-1] - value) / max(1, abs(value)) for name, value in SQUEEZER_END.items())
    figure("squeezer: reference against the Test Set for IVP Solvers", float(off), 2e-10)
    assert off < 2e-10  # the published figures are right to ten digits


def test_accelerations_of_the_squeezer_at_the_start_are_the_published_ones():
    linkage, q = squeezer()
    a, _ = accelerations(linkage, 0.0, q, np.zeros(21))
    found = squeezer_angles(a)
    assert found["K1"] == pytest.approx(14222.4439199541138705911625887, rel=1e-12)
    assert found["K2"] == pytest.approx(-10666.8329399655854029433719415, rel=1e-12)


@pytest.mark.parametrize("make", [squeezer, slider_crank, bricard])
def test_references_keep_their_energy(make):
    system, q, *given = make()
    v = given[0] if given else np.zeros(len(system.masses))
    span = 0.003 if make is squeezer else 0.1
    made = integrate(system, np.linspace(0, span, 3), q, v, 1e-11)
    energy = [system.energy(*row) for row in zip(made.q, made.v, strict=True)]
    kinetic = 0.5 * system.masses @ made.v[-1] ** 2
    assert abs(energy[-1] - energy[0]) < 1e-10 * kinetic  # some hundred steps with errors of 1e-11 or less
    assert np.abs(system.openings(span, made.q[-1])).max() < 1e-13


# with ten times the tolerance; the rates of the squeezer, 1e3 rad/s and 4e6 rad/s^2, are the worst of them
ERRORS = dict.fromkeys(TABLES, 2e-8)
# with half the elements, whose error falls with the fourth power of their number
ERRORS |= {"slider-crank-flexible": 1e-3, "spin-up": 1e-4}
RINGING = 5e-3  # of the energy of the slider-crank, in which the rod rings along its axis


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "double-four-bar" else long) for name in TABLES]
)
def test_the_tables_are_what_the_references_give(name, figure):
    kept = read(name)
    for column, values in TABLES[name](coarse=True).items():
        off = float(np.abs(values - kept[column]).max() / np.abs(kept[column]).max())
        limit = RINGING if column == "energy" else ERRORS[name]
        figure(f"{name}, {column}: a coarser reference", off, limit)
        assert off < limit


# -- parflex against them ---------------------------------------------------------------------------------------


@pytest.mark.verify
def test_andrews_squeezer_moves_as_the_reference(figure):
    table = read("squeezer")
    run = simulated("squeezer", 0.03, effort={"K1": 0.033}, step=1e-4, out_step=1e-3)
    assert run.status == "ok"
    for name in SQUEEZER_END:
        off = np.abs(run[f"q.{name}"] - table[name]).max()
        figure(f"squeezer, angle {name}", float(off), 1e-8)
        # steps of 1e-4 s at up to 1400 rad/s: halving them moves the angles by 1e-9
        assert off < 1e-8
        assert np.abs(run[f"qd.{name}"] - table[f"{name}.rate"]).max() < 1e-5  # of 1e3 rad/s


@pytest.mark.verify
@pytest.mark.parametrize("method", ["gauss6", *(pytest.param(method, marks=long) for method in ("rk4", "gauss4"))])
def test_the_double_four_bar_swings_as_a_pendulum_through_singular_poses(method, figure):
    table = read("double-four-bar")
    start = {"pose": "home", "velocity": {"r0": -1.0}}
    run = simulated("double-four-bar", 10.0, method=method, start=start, step=1e-3, out_step=0.2)
    assert run.status == "ok"
    off = max(np.abs(run[f"q.{name}"] - table["angle"]).max() for name in ("r0", "r1", "r2"))
    figure(f"double four-bar by {method}, through all flat poses", float(off), 1e-6)
    assert off < 1e-6  # the benchmark allows 1e-3; an instant of a flat pose that is 1e-9 s off makes 1e-8


def test_the_spatial_slider_crank_turns_as_the_reference_though_its_motor_is_the_slider(figure):
    table = read("slider-crank-spatial")
    start = {"pose": "home", "velocity": {"crank": 6.0}}
    run = simulated("slider-crank-spatial", 5.0, start=start, step=2.5e-4, out_step=0.1, frames=["C", "Brod"])
    assert run.status == "ok"
    found = {"slider": run["C.x"], "slider.rate": run["C.vx"]}
    found |= {f"rod.{axis}": (run[f"C.{axis}"] + run[f"Brod.{axis}"]) / 2 for axis in "xyz"}
    for name, values in found.items():
        off = float(np.abs(values - table[name]).max())
        figure(f"spatial slider-crank, {name}", off, 1e-6)
        assert off < 1e-6  # more than eight turns of the crank, at 5 to 24 rad/s


def test_iftomms_bricard_mechanism_moves_as_the_reference(figure):
    table = read("bricard-iftomm")
    run = simulated("bricard-iftomm", 10.0, step=2e-3, out_step=0.2)
    assert run.status == "ok"
    for name in ("x", "y", "z", "vx", "vy", "vz"):
        off = float(np.abs(run[f"P3.{name}"] - table[name]).max())
        figure(f"IFToMM's Bricard mechanism, {name} of P3", off, 1e-8)
        assert off < 1e-8  # sixth order, 5000 steps; the table is right to 1e-9
