"""Beams that move fast against cables in absolute nodal coordinates and polynomials, which share no code with us.

What one gets with 1, 2, 4 and 8 elements is stated in docs/vibration.md; these tests hold it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.oracles import flexible_benchmarks as benchmarks
from support.oracles.cable import Cable
from support.oracles.references import read

import parflex
from parflex.recursion import motion, pose
from parflex.recursion.newton_euler import newton_euler

ROBOTS = Path(__file__).parent / "robots"

# -- the references themselves ----------------------------------------------------------------------------------

WRIGHT = {0: 3.5160, 1: 3.6816, 2: 4.1373, 3: 4.7973, 4: 5.5850, 5: 6.4495, 6: 7.3604, 12: 13.1702}


def test_forces_of_the_cable_are_the_slopes_of_its_energy():
    cable = Cable(1.0, 3, 1e4, 1.0, 1.0)
    q = cable.straight() + 0.1 * np.random.default_rng(4).normal(size=16)
    steps = 1e-6 * np.eye(16)
    slopes = [(cable.elastic_energy(q + step) - cable.elastic_energy(q - step)) / 2e-6 for step in steps]
    forces = cable.elastic_forces(q)
    assert np.abs(forces - slopes).max() < 1e-8 * np.abs(forces).max()  # rounding of the differences


@pytest.mark.parametrize("speed", WRIGHT)
def test_polynomials_give_the_published_frequencies_of_a_beam_that_turns(speed):
    assert benchmarks.turning_frequencies(speed, "flap")[0] == pytest.approx(WRIGHT[speed], abs=1e-4)  # as printed


@pytest.mark.parametrize("speed", [2.0, 6.0])
def test_the_cable_turns_as_the_polynomials(speed):
    cable = benchmarks.stretching_frequencies(speed, 1000.0)[0]
    # one thousandth of slenderness gives way by 1e-4, through stretching and its Coriolis force
    assert cable == pytest.approx(benchmarks.turning_frequencies(speed, "chord")[0], rel=1e-4)


def test_the_cable_spins_up_as_published():
    made = benchmarks.spin_up(np.linspace(0, 18, 181), 8, 1e-6, numbers=benchmarks.SIMO)
    assert made["across"].min() == pytest.approx(-0.57, abs=0.01)  # read from a figure
    assert made["along"][-25:].mean() == pytest.approx(5.14e-4, abs=1e-6)  # as printed: stretched by its own mass


# -- slider-crank -----------------------------------------------------------------------------------------------

TIME, LENGTH = 0.1, 0.3


def spun(elements: int, **settings) -> tuple[parflex.simulation.runs.Run, np.ndarray]:
    """A run with the rod in so many elements, and the deflection of its middle from its chord."""
    of = parflex.load(ROBOTS / "slider-crank-flexible.toml", settings={"frame.rod.beam.elements": elements, **settings})
    middle = [] if elements == 1 else [f"rod.{elements // 2}"]
    run = parflex.simulate(
        of, "spin", TIME, step=2.5e-5, out_step=5e-4, frames=["rod", "slider", *middle]
    )  # fmt: skip
    if elements == 1:
        return run, -run["q.rod.rz"] * LENGTH / 8  # cubic shape, less half the way of its end
    pin, end, off = (np.stack([run[f"{name}.{axis}"] for axis in "xy"]) for name in ("rod", "slider", middle[0]))
    chord, off = end - pin, off - pin
    return run, (chord[0] * off[1] - chord[1] * off[0]) / np.hypot(*chord)


# largest difference over the largest deflection, 1.86 mm; the table itself is right to some 0.003 %
SLIDER_CRANK = {1: 0.42, 2: 0.083, 4: 0.0062, 8: 0.0006}


@pytest.mark.few
@pytest.mark.parametrize("elements", [pytest.param(n, marks=[] if n < 8 else pytest.mark.verify) for n in SLIDER_CRANK])
def test_the_rod_of_a_fast_slider_crank_bends_as_the_cable(elements, figure):
    table = read("slider-crank-flexible")
    run, deflection = spun(elements)
    assert run.status == "ok"
    assert run["energy.kinetic"][0] == pytest.approx(34.03125 + 12.7494, abs=1e-4)  # crank, rod
    off = np.abs(deflection - table["deflection"]).max() / np.abs(table["deflection"]).max()
    figure(f"deflection of a rod of {elements} elements", float(off), SLIDER_CRANK[elements])
    assert off < SLIDER_CRANK[elements]
    # along its axis the rod is much stiffer: 8 mm of steel give way by 20 um
    assert np.abs(run["slider.x"] - table["slider"]).max() < 5e-5


def test_without_the_mean_strain_four_elements_are_four_times_worse(figure):
    table = read("slider-crank-flexible")
    _, deflection = spun(4, axial="linear")
    off = np.abs(deflection - table["deflection"]).max() / np.abs(table["deflection"]).max()
    figure("deflection of a rod of four elements with linear axial strain", float(off), "0.021 to 0.023")
    assert 0.021 < off < 0.023


# -- a beam that turns ------------------------------------------------------------------------------------------


def turning_frequencies(elements: int, speed: float) -> dict[str, float]:
    """Lowest frequencies about the steady state: complex steps through the recursion are exact to rounding."""
    settings = {"frame.beam.beam.elements": elements}
    tree = parflex.load(ROBOTS / "rotating-cantilever.toml", settings=settings).tree
    soft, hub = np.array(tree.elastic), tree.rate_names.index("hub")

    def forces(e, ed, edd):
        q, qd, qdd = np.zeros((3, tree.n), dtype=complex)
        q[soft], qd[soft], qdd[soft], qd[hub] = e, ed, edd, speed
        at = pose(tree, q)
        return newton_euler(tree, at, motion(tree, at, qd, qdd)).forces[soft].astype(complex)

    still = np.zeros(len(soft))

    def slopes(e, kind):
        parts = [[e, still, still] for _ in soft]
        for row, part in zip(1e-30j * np.eye(len(soft)), parts, strict=True):
            part[kind] = part[kind] + row
        return np.array([forces(*part).imag for part in parts]).T / 1e-30

    e = still
    for _ in range(3):  # the steady state is stretched by 1e-5: almost linear
        e = e - np.linalg.solve(slopes(e, 0), forces(e, still, still).real)
    K, G, M = (slopes(e, kind) for kind in range(3))
    found = {}
    for plane, words in (("flap", (".uz", ".ry")), ("chord", (".ux", ".uy", ".rz"))):
        rows = [k for k, index in enumerate(soft) if tree.rate_names[index].endswith(words)]
        m, g, k = (matrix[np.ix_(rows, rows)] for matrix in (M, G, K))
        A = np.block([[np.zeros_like(k), np.eye(len(rows))], [-np.linalg.solve(m, k), -np.linalg.solve(m, g)]])
        roots = np.linalg.eigvals(A)
        assert roots.real.max() < 1e-9  # stable
        found[plane] = float(roots.imag[roots.imag > 1e-6].min())
    return found


# how much too high the first frequency is: a single mean strain stiffens a long element as a whole
TURNING = {
    (1, 2): {"flap": 0.047, "chord": 0.061},
    (2, 2): {"flap": 0.0045, "chord": 0.0059},
    (4, 2): {"flap": 0.0005, "chord": 0.0006},
    (1, 6): {"flap": 0.077, "chord": 0.216},
    (2, 6): {"flap": 0.0125, "chord": 0.0366},
    (4, 6): {"flap": 0.0012, "chord": 0.0034},
}


@pytest.mark.parametrize(("elements", "speed"), TURNING)
def test_a_beam_that_turns_is_too_stiff_by_what_the_docs_state(elements, speed, figure):
    found = turning_frequencies(elements, float(speed))
    for plane, stated in TURNING[elements, speed].items():
        off = found[plane] / benchmarks.turning_frequencies(speed, plane)[0] - 1
        figure(f"{plane} frequency at speed {speed} with {elements} elements, too high by", off, stated)
        assert off == pytest.approx(stated, abs=1e-3)  # as stated, and 1e-4 from stretching


def test_a_beam_at_rest_has_the_frequencies_of_the_textbooks():
    found = turning_frequencies(4, 0.0)
    assert found["flap"] == pytest.approx(found["chord"], rel=1e-9)
    assert found["flap"] == pytest.approx(3.5160153, rel=4e-5)  # four cubic elements


# -- spin-up ----------------------------------------------------------------------------------------------------


def hub(t: float) -> list[list[float]]:
    """Position, velocity and acceleration of the hub."""
    T, W = benchmarks.RISE, benchmarks.SPIN
    phase = 2 * np.pi * min(t, T) / T
    rise = min(t, T) ** 2 / 2 + (T / (2 * np.pi)) ** 2 * (np.cos(phase) - 1)
    return [[W / T * rise + W * max(0.0, t - T)], [benchmarks.spin(t)[0]], [benchmarks.spin(t)[1]]]


SPUN_UP = {1: 0.27, 2: 0.042, 4: 0.004}  # of 0.75 m, almost a tenth of the length


@pytest.mark.few
@pytest.mark.parametrize("elements", SPUN_UP)
def test_a_beam_that_is_spun_up_stays_bounded_and_bends_as_the_cable(elements, figure):
    table = read("spin-up")
    of = parflex.load(ROBOTS / "spin-up.toml", settings={"frame.beam.beam.elements": elements})
    run = parflex.simulate(of, hub, 20.0, step=2e-3, out_step=0.2, frames=["hub", "beam.tip"])
    assert run.status == "ok"
    angle = run["q.hub"]
    across = np.cos(angle) * run["beam.tip.y"] - np.sin(angle) * run["beam.tip.x"]
    off = np.abs(across - table["across"]).max() / np.abs(table["across"]).max()
    figure(f"tip of a beam of {elements} elements that is spun up", float(off), SPUN_UP[elements])
    assert off < SPUN_UP[elements]
    spinning = run.t > 15.0
    assert np.abs(across[spinning]).max() < 0.03  # it swings on a little, as the cable does by 0.01 m
