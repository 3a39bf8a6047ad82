"""Beams under axial load: where they buckle, how they vibrate, and that bending shortens their chord."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from support.oracles import columns

import parflex
from parflex import linear_model
from parflex.bodies import ElasticBody
from parflex.bodies.beam import Material, Section, beam, rolled
from parflex.bodies.elastic_body import with_damping
from parflex.models.terms import acting
from parflex.recursion import pose
from parflex.recursion.energy import energies as tree_energies

L, E, DENSITY, THIN, WIDE = 1.0, 2e11, 7870.0, 2e-3, 3e-3
AREA, I = THIN * WIDE, WIDE * THIN**3 / 12  # of the plane that bends easily
EI = E * I
HEAD = """
format = 1
name = "column"
motion = "{motion}"
gravity = [0, 0, 0]
end_effector = "end"
[materials.steel]
elastic_modulus = 2e11
density = 7870
[sections.strip]
shape = "rectangle"
y = {y}
z = {z}
{joint}
[[frame]]
name = "rod"
{on}
beam = {{ length = 1.0, material = "steel", section = "strip", elements = {elements}, roll = {roll} }}
[[point]]
name = "end"
frame = "rod.tip"
[[point]]
name = "rail"
frame = "base"
position = [1.0, 0, 0]
"""
FOOT = '[[frame]]\nname = "foot"\njoint = "universal"\nplace = { rotation = [0, 0, "pi/2"] }\n'
SLIDE = '[[closure]]\nname = "slide"\nbetween = ["rail", "end"]\njoint = "{joint}"\naxis = "x"\n'
EXACT = {  # of P L^2 / EI; of the third the root of tan x = x
    "pinned": np.pi**2,
    "clamped-free": np.pi**2 / 4,
    "clamped-pinned": scipy.optimize.brentq(lambda x: np.tan(x) - x, 4.4, 4.6) ** 2,
    "clamped-clamped": 4 * np.pi**2,
}
WAYS = ("in the plane", "in space, along y", "in space, along z", "in space, rolled")


def column(tmp_path, ends: str, elements: int, way: str = WAYS[0], more: str = ""):
    """A steel strip along x that bends easily in one plane."""
    spatial = way != WAYS[0]
    y, z = (THIN, WIDE) if way != "in space, along z" else (WIDE, THIN)
    joint, on = "", ""
    if ends == "pinned":
        # balls would let the strip spin
        joint, on = (
            (FOOT, 'parent = "foot"\nplace = { rotation = [0, 0, "-pi/2"] }')
            if spatial
            else (
                "",
                'joint = "revolute"',
            )
        )
    roll = 0.6 if way == "in space, rolled" else 0.0
    motion = "spatial" if spatial else "planar"
    text = HEAD.format(motion=motion, y=y, z=z, joint=joint, on=on, elements=elements, roll=roll)
    if not spatial:
        text = text.replace(", roll = 0.0", "")
    if ends != "clamped-free":
        text += SLIDE.format(joint="prismatic" if ends == "clamped-clamped" else "point-on-line")
    path = tmp_path / f"column-{len(list(tmp_path.iterdir()))}.toml"
    path.write_text(text.replace(" }\n[[point]]", f"{more} }}\n[[point]]", 1))
    return parflex.load(path)


def pulled(robot, tension: float):
    """The linear model about the equilibrium under a pull along x at the end."""
    return linear_model(robot, about="equilibrium", wrench={"end": [tension, 0, 0]})


def softest(robot, tension: float) -> float:
    """The lowest square of a circular frequency, negative where something grows."""
    model = pulled(robot, tension)
    return float(scipy.linalg.eigh(model.K, model.M, eigvals_only=True)[0])


def buckles_at(robot, load: float, within: float = 3e-5) -> bool:
    """Whether the softest motion loses its stiffness at a compression; strips are shortened by up to 1.3e-5 there."""
    return softest(robot, -(1 - within) * load) > 0 > softest(robot, -(1 + within) * load)


@pytest.mark.few
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("ends", "published"),
    [
        ("pinned", {1: 1.216, 2: 1.0075, 4: 1.0005}),
        ("clamped-free", {1: 1.0075, 2: 1.0005, 4: 1.00003}),
        ("clamped-pinned", {1: 1.486, 2: 1.026, 4: 1.002}),
        ("clamped-clamped", {2: 1.0132, 4: 1.0075}),
    ],
)
def test_columns_buckle_as_columns_of_cubic_elements_do(tmp_path, ends, published, way, figure):
    """Four ways to hold a column, both planes of bending: 12/pi^2 and so on above the exact loads, falling as h^4."""
    exact, unit = EXACT[ends], EI / L**2
    for elements, ratio in published.items():
        expected = columns.buckling(elements, ends)
        figure(f"{ends}, {way}, {elements} elements: buckling load over the exact one", round(expected / exact, 5))
        assert buckles_at(column(tmp_path, ends, elements, way), expected * unit)
        # the last decimal that is given
        assert expected / exact == pytest.approx(ratio, abs=0.6 * 10.0 ** -(len(str(ratio)) - 2))


def test_one_pinned_element_feels_a_tenth_of_eulers_load(tmp_path, figure):
    """With one element +4.0 % frequency under 0.1 Euler loads of tension; the rod itself +4.9 %."""
    euler = np.pi**2 * EI / L**2
    rod = column(tmp_path, "pinned", 1)
    still, pulled_on = (np.sqrt(softest(rod, share * euler)) for share in (0.0, 0.1))
    figure("one pinned element under 0.1 Euler loads: frequency gained", float(pulled_on / still - 1))
    assert pulled_on / still - 1 == pytest.approx(0.0403, abs=1e-4)  # sqrt(1 + 0.1 pi^2/12)
    assert column_frequency("pinned", 1, 0.1 * np.pi**2) == pytest.approx(float(pulled_on), rel=1e-5)


def column_frequency(ends: str, elements: int, tension: float) -> float:
    """The lowest circular frequency of a column of cubic elements, in 1/s."""
    return columns.frequency(elements, ends, tension) * np.sqrt(EI / (DENSITY * AREA)) / L**2


@pytest.mark.parametrize("way", WAYS)
def test_a_pinned_rod_vibrates_under_load_as_the_closed_form_says(tmp_path, way, figure):
    """f = f1 sqrt(1 + P / P_E) of tension and compression, exact for the sine in which a pinned rod bends."""
    euler = np.pi**2 * EI / L**2
    rod = column(tmp_path, "pinned", 4, way)
    first = np.pi**2 * np.sqrt(EI / (DENSITY * AREA)) / L**2
    errors = []
    for share in (-0.9, -0.5, 0.0, 0.5, 4.0):
        found = np.sqrt(softest(rod, share * euler))
        errors.append(float(found / (first * np.sqrt(1 + share)) - 1))
    figure(f"pinned rod of four elements {way}: frequencies under load, relative", str(np.round(errors, 5)))
    # four elements buckle 0.05 % late, which counts ten times where a tenth of the stiffness is left; under four
    # Euler loads the same error of the shape counts once
    assert np.abs(errors).max() < 3e-3


@pytest.mark.parametrize("ends", EXACT)
@pytest.mark.parametrize("elements", [1, 2])
def test_tension_never_takes_frequency(tmp_path, ends, elements):
    """No column loses frequency when it is pulled, however it is held and however hard."""
    if (ends, elements) == ("clamped-clamped", 1):
        return  # nothing of it can bend
    rod, unit = column(tmp_path, ends, elements), EI / L**2
    squares = [softest(rod, tension * unit) for tension in (0.0, 0.1, 1.0, 3.0, 10.0, 100.0)]
    assert np.all(np.diff(squares) > 0)


def test_without_the_term_a_pinned_element_buckles_in_tension(tmp_path):
    """What `axial = "linear"` means: in a frame tangent at its root the chord grows by v^2 / 2L, and pull softens."""
    euler = np.pi**2 * EI / L**2
    rod = column(tmp_path, "pinned", 1, more=', axial = "linear"')
    assert softest(rod, 0.2 * euler) > 0 > softest(rod, 0.4 * euler)


@pytest.mark.parametrize("axial", ["mean", "linear"])
def test_the_key_of_the_file_and_that_of_a_beam_say_the_same(tmp_path, axial):
    by_beam = column(tmp_path, "pinned", 1, more=f', axial = "{axial}"')
    by_file = parflex.load(by_beam.file, settings={"axial": axial, "frame.rod.beam.axial": axial})
    acting = {len(robot.tree.links[robot.tree.number("rod")].body.acting) for robot in (by_beam, by_file)}
    assert acting == {int(axial == "mean")}


def test_leaving_axial_out_is_linear_strain_everywhere(tmp_path):
    """`without = ["axial"]` and `axial = "linear"` are the same robot, in functions, programs and simulations."""
    rod = column(tmp_path, "pinned", 2)
    linear = parflex.load(rod.file, settings={"axial": "linear"})
    load = {"end": [0.3 * np.pi**2 * EI, 0, 0]}
    wanted, found, mean = (
        parflex.natural_frequencies(robot, about="equilibrium", wrench=load, modes=3, without=out).frequencies
        for robot, out in ((linear, ()), (rod, ["axial"]), (rod, ()))
    )
    assert np.array_equal(found, wanted) and not np.allclose(mean, wanted, rtol=1e-3)
    bent = rod.tree.moved(rod.home, np.random.default_rng(3).uniform(-0.02, 0.02, rod.tree.n))
    energies = [float(tree_energies(robot.tree, pose(robot.tree, bent), 0 * bent).elastic) for robot in (rod, linear)]
    assert energies[0] != pytest.approx(energies[1], rel=0.01)
    assert acting(rod, ["axial"]).tree.links[0].body.acting == ()
    wanted, found = (
        parflex.simulate(
            robot, time=0.01, start={"pose": {"rod.uy": 0.001}}, wrench={"end": [5, 0, 0]}, without=out, step=1e-3
        ).columns["energy.elastic"]
        for robot, out in ((linear, ()), (rod, ["axial"]))
    )
    assert np.array_equal(found, wanted)


def test_a_short_column_buckles_where_shear_lets_it(tmp_path, figure):
    """Engesser: P = P_E / (1 + P_E / kGA), for the slopes of the centre line, not the turns of the sections."""
    shear, euler = 2e-5 * E / 2.6 * AREA, np.pi**2 * EI / L**2
    expected = euler / (1 + euler / shear)
    assert expected < 0.75 * euler
    found = []
    for elements in (4, 8):
        rod = column(tmp_path, "pinned", elements, more=", shear = true, shear_coefficient = 2e-5")
        found.append(scipy.optimize.brentq(lambda x, rod=rod: softest(rod, -x * expected), 0.99, 1.02, xtol=1e-5) - 1)
    figure("column that shears, 4 and 8 elements: buckling load above Engesser's", str(np.round(found, 5)))
    assert found[0] / found[1] == pytest.approx(4, rel=0.03)  # the second power of the length, as all that shears
    assert abs(4 * found[1] - found[0]) / 3 < 1e-4  # and the limit is Engesser's, but for the next power


def test_bending_takes_from_the_chord_what_the_curve_needs(tmp_path):
    """A strip bent to a circular arc by a moment keeps the length of its centre line: its chord is shorter by L k^2/6.

    One element, no normal force: u_x = -1/2 int v'^2, which is the arc's own shortening to the fourth power.
    """
    rod = column(tmp_path, "clamped-free", 1)
    turn = 0.1
    rest = parflex.equilibrium(rod, wrench={"end": [0, 0, 0, 0, 0, turn * EI / L]})
    q = dict(zip(rod.tree.position_names, rest.configuration.q, strict=True))
    assert q["rod.rz"] == pytest.approx(turn, rel=1e-9)
    assert q["rod.ux"] == pytest.approx(-L * turn**2 / 6, rel=1e-6)  # no normal force: a couple alone acts
    assert q["rod.ux"] == pytest.approx(L * (np.sin(turn) / turn - 1), rel=turn**2 / 19)  # sin x / x = 1 - x^2/6 + ...


# -- damping and energy --------------------------------------------------------------------------------------------


def bent_body(shear: bool = True) -> ElasticBody:
    """An element in space with everything: two different planes, shear, a roll, damping."""
    section = Section(AREA, THIN * WIDE**3 / 12, I, 5e-12, 1e-11, 5 / 6, 5 / 6)
    element = rolled(beam(0.4, Material(E, E / 2.6, DENSITY), section, rotary_inertia=True, shear=shear), 0.7)
    return with_damping(element, 3.0, 2e-4)


def test_force_and_damping_of_an_element_are_those_of_its_energy():
    """Differences of the energy are the force, and the force takes what the energy loses and damping eats."""
    rng = np.random.default_rng(5)
    body = bent_body()
    for _ in range(5):
        e, ed = rng.uniform(-0.02, 0.02, 6), rng.uniform(-1, 1, 6)
        step = 1e-6
        slope = (body.strain_energy(e + step * ed) - body.strain_energy(e - step * ed)) / (2 * step)
        power = float(body.elastic_force(e, ed) @ ed)
        # the difference has the rounding of energies of 1e4 J over a step of 1e-6 s
        assert power == pytest.approx(slope + body.damping_power(e, ed), rel=1e-6)
        assert body.damping_power(e, ed) == pytest.approx(ed @ body.damping_at(e) @ ed, rel=1e-9)
        lost = np.array([body.elastic_force(e, unit) - body.elastic_force(e, 0 * unit) for unit in np.eye(6)]).T
        assert np.allclose(lost, body.damping_at(e), rtol=1e-7, atol=1e-9 * np.abs(lost).max())


def test_swaying_a_bent_beam_does_not_damp_its_stretch():
    """A rate that bends and shortens the chord at once strains no length: damping takes what bending takes alone."""
    body = with_damping(
        beam(0.4, Material(E, E / 2.6, DENSITY), Section(AREA, I, I, 5e-12, 1e-11, 5 / 6, 5 / 6)), 0.0, 1e-3
    )
    (strain,) = body.strains
    e = np.array([0.0, 0.03, 0, 0, 0, 0.1])
    ed = np.array([0.0, 1.0, 0, 0, 0, 0.5])
    ed[0] = -strain.slope(e)[1:] @ ed[1:]
    bending = body.K.copy()
    bending[0, 0] = 0.0
    assert body.damping_power(e, ed) == pytest.approx(1e-3 * ed @ bending @ ed, rel=1e-9)
    assert body.damping_power(0 * e, ed) > 100 * body.damping_power(e, ed)  # the same rate where it stretches


def test_a_strip_that_is_let_go_keeps_its_energy(tmp_path, figure):
    """Bent by a tenth of its length between two pins, free of loads and damping."""
    rod = column(tmp_path, "pinned", 2)
    start = {"pose": {"rod.1.uy": -0.03, "rod.1.rz": -0.2}}
    run = parflex.simulate(rod, time=0.01, start=start, step=1e-5, method="gauss6")
    total = run["energy.kinetic"] + run["energy.elastic"]
    drift = float(np.abs(total - total[0]).max() / total[0])
    figure("strip let go: drift of the energy, relative", drift)
    assert run["energy.kinetic"].max() > 0.5 * total[0]
    assert drift < 1e-8  # sixth order, twenty steps and more in a period of the stretch that the start has


# -- warnings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_elements_that_are_too_long_for_a_load_are_named_with_how_many_are_enough(tmp_path, sign):
    rod, load = column(tmp_path, "pinned", 1), {"end": [sign * 2.5 * EI / L**2, 0, 0]}
    (said,) = linear_model(rod, about="equilibrium", wrench=load).warnings
    assert "'rod'" in said and ("tension" if sign > 0 else "compression") in said and "use 2 elements" in said
    assert not linear_model(column(tmp_path, "pinned", 2), about="equilibrium", wrench=load).warnings
    assert not linear_model(rod, about="equilibrium", wrench={"end": [sign * 0.9 * EI / L**2, 0, 0]}).warnings
    linear = parflex.load(rod.file, settings={"axial": "linear"})
    if sign < 0:
        (said,) = linear_model(linear, about="equilibrium", wrench=load).warnings
        assert 'axial = "mean"' in said


def test_an_arm_of_one_element_that_turns_fast_is_named(tmp_path):
    """Omega sqrt(rho A L^4 / EI) = 6 from an arm that is not stretched: 12 EI / L^2, and twice as much on the way."""
    path = tmp_path / "arm.toml"
    text = HEAD.format(
        motion="planar", y=THIN, z=WIDE, joint="", on='joint = "revolute"\nactuated = true', elements=1, roll=0.0
    )
    path.write_text(text.replace(", roll = 0.0", ""))
    speed = 6 * np.sqrt(EI / (DENSITY * AREA)) / L**2
    for elements, said in ((1, True), (8, False)):
        arm = parflex.load(path, elements=elements)
        run = parflex.simulate(
            arm, time=0.02, effort={"rod": 0.0}, start={"pose": {}, "velocity": {"rod": speed}}, step=5e-4
        )
        warned = [line for line in run.summary["warnings"] if "'rod' is in tension" in line]
        assert bool(warned) == said
