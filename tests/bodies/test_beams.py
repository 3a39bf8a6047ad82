"""Elastic bodies against closed forms and quadrature."""

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse.linalg
from support import bars
from support.command_line import answered

import parflex
from parflex.bodies import sections
from parflex.bodies.beam import BeamElement, Material, Section, beam
from parflex.bodies.elastic import with_damping

STEEL = Material(200e9, 77e9, 7800)
BAR = Section(2e-4, 2e-9, 6e-9, 5e-9, 8e-9, 5 / 6, 5 / 6)


def test_modes_are_orthogonal_mass_normalised_and_share_their_energy(capsys):
    robot = parflex.load("navaro")
    model, result = parflex.linear_model(robot, "pose-3"), parflex.natural_frequencies(robot, "pose-3", modes=6)
    shapes = np.linalg.lstsq(model.J, result.shapes, rcond=None)[0]
    # rounding of an eigenvalue problem of condition 1e8
    assert np.abs(shapes.T @ model.M @ shapes - np.eye(6)).max() < 1e-8
    for part in answered(capsys, "frequencies", "navaro", "--pose", "pose-3")["participation"]:
        assert sum(part.values()) == pytest.approx(1.0, abs=0.02)  # shares below 1e-4 are left out


def test_a_box_is_a_rectangle_without_its_inside():
    outer, inner = sections.rectangle(0.02, 0.03), sections.rectangle(0.016, 0.026)
    hollow = sections.box(0.02, 0.03, 0.002)
    for name in ("A", "Iy", "Iz", "Ip"):
        assert getattr(hollow, name) == pytest.approx(getattr(outer, name) - getattr(inner, name), rel=1e-12)
    t = 1e-7  # of a thin wall to the first order: two webs, two flanges
    thin = sections.box(0.02, 0.03, t)
    assert pytest.approx(2 * t * 0.05, rel=1e-4) == thin.A
    assert thin.Iy == pytest.approx(2 * t * (0.03**3 / 12 + 0.02 * 0.015**2), rel=1e-4)
    assert thin.Iz == pytest.approx(2 * t * (0.02**3 / 12 + 0.03 * 0.01**2), rel=1e-4)
    assert pytest.approx(2 * t * (0.02 * 0.03) ** 2 / 0.05, rel=1e-4) == thin.J


# percent that Bredt's formula is too low, in whole ones on the page of the robot file
@pytest.mark.parametrize(
    ("y", "z", "t", "low"), [(1, 1, 0.05, 2.4), (1, 1, 0.1, 5.4), (1, 1, 0.2, 13.3), (1, 2, 0.1, 3.5)]
)
def test_the_torsion_constant_of_a_box_is_bredts(y, z, t, low):
    coarse, fine = (hollow_torsion(y, z, t, cells) for cells in (5, 10))
    exact = fine + (fine - coarse) / (2 ** (4 / 3) - 1)  # the order that the corners of the hole leave
    found = 100 * (1 - sections.box(y, z, t).J / exact)
    assert found == pytest.approx(low, abs=0.1)  # grids twice as fine move it by less


def hollow_torsion(y: float, z: float, t: float, cells: int) -> float:
    """Saint-Venant's torsion constant by Prandtl's membrane over a square grid; over the hole it is a flat plate."""
    h = t / cells
    number = np.full((round(y / h) + 1, round(z / h) + 1), -1)  # on the rim
    inside = np.zeros(number.shape, bool)
    inside[1:-1, 1:-1] = True
    inside[cells:-cells, cells:-cells] = False
    number[cells:-cells, cells:-cells] = 0  # the plate
    number[inside] = 1 + np.arange(inside.sum())
    load = 2 * h**2 * np.bincount(number[number >= 0])
    edges = np.vstack([np.column_stack([a[:-1].ravel(), a[1:].ravel()]) for a in (number, number.T)])
    rows = np.repeat(np.arange(len(edges)), 2)
    used = edges.ravel() >= 0
    signs = np.tile([1.0, -1.0], len(edges))
    slopes = scipy.sparse.csc_array((signs[used], (rows[used], edges.ravel()[used])), shape=(len(edges), len(load)))
    return float(load @ scipy.sparse.linalg.spsolve(slopes.T @ slopes, load))


def test_a_cantilever_of_a_box_has_the_frequencies_of_its_stiffness_and_mass(tmp_path):
    robot = bars.cantilever(tmp_path, elements=8)
    box = {"sections.bar.shape": "box", "sections.bar.thickness": 0.001}
    hollow = parflex.load(robot.file, elements=8, settings=box)
    Iz, A = (0.02 * 0.01**3 - 0.018 * 0.008**3) / 12, 0.02 * 0.01 - 0.018 * 0.008
    roots = np.array([1.8751040687, 4.6940911330, 7.8547574382])
    expected = roots**2 * np.sqrt(200e9 * Iz / (7800 * A * 0.8**4)) / (2 * np.pi)
    result = parflex.natural_frequencies(hollow, modes=3).frequencies
    assert result == pytest.approx(expected, rel=9e-4)  # 1.33 / 1440 of (root / 8)^4


@pytest.mark.parametrize("name", ["dualemps", "gough-stewart-beams"])
def test_forces_at_zero_velocity_are_those_of_rates_that_vanish(name):
    """What does not move is computed by fewer operations: rates of 1e-200 take all of them, and are nothing."""
    robot = parflex.load(name)
    efforts = dict.fromkeys(robot.actuated_names, 7.0)
    names, words = robot.actuated_names, {"without": ["friction"]}
    rates = [dict.fromkeys(names, size) for size in (0.0, 1e-200)]
    still, nearly = (parflex.forward_dynamics(robot, "home", v, efforts, **words).accelerations for v in rates)
    np.testing.assert_allclose(nearly, still, rtol=0, atol=1e-12 * np.abs(still).max())  # sums in another order


def test_efforts_of_a_bending_robot_out_of_equilibrium_are_reported():
    """At zero velocity, in a motion that bodies do not follow, and of arrays without rates."""
    robot = parflex.load("3rrr-flexible")
    here = parflex.inverse_dynamics(robot)
    assert any("not in equilibrium" in warning for warning in here.warnings)
    bent = parflex.Configuration(robot, parflex.equilibrium(robot).configuration.q)
    held = parflex.inverse_dynamics(robot, bent)
    assert held.warnings == []
    expected = parflex.deflection(robot, about="equilibrium").efforts
    assert held.efforts == pytest.approx(expected, rel=1e-6)  # Newton ends at 1e-9 of the loads
    assert here.efforts != pytest.approx(expected, rel=1e-2)
    for order in ("velocity", "acceleration"):
        states = ((bent, 1e-6), (bent, 1.0), ("home", 1e-6))
        moving = (parflex.inverse_dynamics(robot, pose, **{order: {"leg1.1": size}}) for pose, size in states)
        slow, fast, straight = (found.warnings for found in moving)
        assert slow == []
        assert all(any("not in equilibrium in this motion" in text for text in said) for said in (fast, straight))
    with pytest.warns(parflex.ParflexWarning, match="not in equilibrium in this motion"):
        parflex.inverse_dynamics(robot, q=robot.home, qdd=[1.0, 0.0, 0.0])


LENGTH = 0.5
STOCKY = Section(1.2e-3, 4e-8, 3.6e-7, 1e-7, 4e-7, 0.8, 0.7)


@pytest.mark.parametrize("shear", [False, True], ids=["slender", "shear"])
@pytest.mark.parametrize("rotary", [True, False])
def test_invariants_equal_quadrature_over_the_volume(rotary, shear):
    section, RHO = STOCKY, STEEL.density
    body = beam(BeamElement(LENGTH, STEEL, section, rotary_inertia=rotary, shear=shear))
    ratios = [shear * STEEL.E * I / (k * STEEL.G * section.A) for I, k in ((section.Iz, 0.8), (section.Iy, 0.7))]
    nodes, weights = np.polynomial.legendre.leggauss(6)
    reach = (np.sqrt(section.Iz / section.A), np.sqrt(section.Iy / section.A)) if rotary else (0.0, 0.0)
    S, G = np.zeros_like(body.S), np.zeros_like(body.G)
    for x, weight in zip((nodes + 1) / 2 * LENGTH, weights / 8, strict=True):
        for y in (-reach[0], reach[0]):
            for z in (-reach[1], reach[1]):
                fields = _timoshenko_fields(x, y, z, *ratios)
                S += RHO * section.A * LENGTH * weight * fields
                G += RHO * section.A * LENGTH * weight * np.einsum("ai,bj->abij", fields, fields)
    polar = section.Ip - (section.Iy + section.Iz if rotary else 0.0)  # the twist that no point carries
    twist = RHO * LENGTH * polar
    inertia, expected = body.inertia_matrix(np.zeros(6)), np.einsum("abii->ab", G)[1:, 1:]
    assert np.abs(S - body.S).max() < 1e-13 * np.abs(S).max()  # quadrature is exact for these polynomials
    expected[3, 3] += twist / 3
    assert np.abs(inertia[6:, 6:] - expected).max() < 1e-13 * np.abs(expected).max()
    own = np.ones((7, 7), bool)
    own[0, 0] = own[0, 4] = own[4, 0] = False  # where the twist that no point carries is kept too
    assert np.abs((G - body.G)[own]).max() < 1e-13 * np.abs(G).max()
    assert inertia[3, 3] == pytest.approx(np.trace(G[0, 0]) - G[0, 0, 0, 0] + twist, rel=1e-12)
    assert inertia[3, 9] == pytest.approx(G[0, 4, 1, 2] - G[0, 4, 2, 1] + twist / 2, rel=1e-12)


def _timoshenko_fields(x: float, y: float, z: float, ratio_y: float, ratio_z: float) -> np.ndarray:
    """Material point and displacements per tip coordinate: cubics fitted to the conditions at both ends."""

    def bent(ratio: float) -> np.ndarray:
        def rows(s: float) -> list[list[float]]:
            return [[1, s, s**2, s**3], [0, 1, 2 * s, 3 * s**2 + 6 * ratio]]

        shapes = np.linalg.inv(np.array(rows(0) + rows(LENGTH)))[:, 2:]
        return np.array(rows(x)) @ shapes  # deflection and turn, per deflection and turn of the tip

    (v, a), (rz, b) = bent(ratio_y)
    (w, c), (ry, d) = bent(ratio_z)
    xi = x / LENGTH
    return np.array(
        [[x, y, z], [xi, 0, 0], [-y * rz, v, 0], [-z * ry, 0, w], [0, -z * xi, y * xi], [z * d, 0, -c], [-y * b, a, 0]]
    )


def test_sections_have_their_textbook_moments_and_shear_coefficients():
    square, flat, hollow = sections.rectangle(0.02, 0.02), sections.rectangle(0.01, 0.024), sections.tube(0.03, 0.002)
    assert pytest.approx(0.1405770 * 0.02**4, rel=1e-6) == square.J  # Saint-Venant
    assert pytest.approx(5.902e-9, rel=1e-3) == flat.J  # Germain2015, Table 2, four digits
    assert pytest.approx(np.pi * 0.03**4 / 32, rel=1e-12) == sections.circle(0.03).J
    assert hollow.Iy == pytest.approx(np.pi / 64 * (0.03**4 - 0.026**4), rel=1e-12)
    assert flat.Iy == pytest.approx(0.01 * 0.024**3 / 12) and flat.Iz == pytest.approx(0.024 * 0.01**3 / 12)
    for section in (square, flat, sections.circle(0.03), hollow):
        assert pytest.approx(section.Iy + section.Iz, rel=1e-12) == section.Ip  # the theorem of perpendicular axes
    assert sections.rectangle(0.01, 0.03).ky == pytest.approx(5 / 6)
    assert sections.circle(0.02).kz == pytest.approx(6 / 7)
    assert sections.tube(0.02, 1e-6).ky == pytest.approx(0.5, rel=1e-3)  # thin walls
    # 20 (1 + nu) / (48 + 39 nu) of a square tube, by Cowper
    assert sections.box(0.02, 0.02, 0.001).ky == pytest.approx(5 / 12)
    assert sections.box(1.0, 1e-6, 1e-7).ky == pytest.approx(5 / 6, rel=1e-5)  # webs alone are rectangles


@pytest.mark.parametrize(("y", "z"), [(0.02, 0.05), (0.05, 0.02), (0.03, 0.04)])
def test_a_thin_box_shears_by_the_energy_of_its_shear_flow(y, z):
    """k = I^2 / (A int Q^2 / t ds): without contraction sideways, Cowper's coefficient is that of the energy."""
    t = 1e-3
    section, b, h = sections.box(y, z, t), z - t, y - t  # a force along y: webs of height h, flanges of width b
    flange, web = np.linspace(0, b / 2, 2001), np.linspace(-h / 2, h / 2, 2001)
    Q = t * b / 2 * h / 2 + t * ((h / 2) ** 2 - web**2) / 2  # of half a flange and of the web beyond
    squares = 4 * scipy.integrate.simpson((t * flange * h / 2) ** 2, x=flange)
    squares += 2 * scipy.integrate.simpson(Q**2, x=web)
    I, A = t * h**3 / 6 + t * b * h**2 / 2, 2 * t * (b + h)
    assert section.ky == pytest.approx(I**2 / (A * squares / t), rel=1e-9)  # Simpson's rule on a quartic
    assert sections.box(z, y, t).kz == pytest.approx(section.ky, rel=1e-12)


STRIP = Section(6e-6, 4.5e-12, 2e-12, 5e-12, 1e-11, 5 / 6, 5 / 6)


def test_force_and_damping_of_an_element_are_those_of_its_energy():
    """Differences of the energy are the force, and the force takes what the energy loses and damping eats."""
    rng = np.random.default_rng(5)
    body = beam(BeamElement(0.4, STEEL, STRIP, rotary_inertia=True, shear=True, roll=0.7))
    body = with_damping(body, 3.0, 2e-4)
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
    body = with_damping(beam(BeamElement(0.4, STEEL, STRIP)), 0.0, 1e-3)
    (strain,) = body.strains
    e = np.array([0.0, 0.03, 0, 0, 0, 0.1])
    ed = np.array([0.0, 1.0, 0, 0, 0, 0.5])
    ed[0] = -strain.slope(e)[1:] @ ed[1:]
    bending = body.K.copy()
    bending[0, 0] = 0.0
    assert body.damping_power(e, ed) == pytest.approx(1e-3 * ed @ bending @ ed, rel=1e-9)
    assert body.damping_power(0 * e, ed) > 100 * body.damping_power(e, ed)  # the same rate where it stretches
