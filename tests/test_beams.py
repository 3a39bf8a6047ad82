"""Elastic bodies against closed forms, quadrature and published tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg
from support.published import published

import parflex
from parflex import Configuration, energies, linear_model, natural_frequencies
from parflex.bodies.beam import Material, Section, beam, rolled
from parflex.bodies.sections import box, circle, rectangle, tube
from parflex.description.schema import SectionTable
from parflex.models.elastic.participation import participation
from parflex.recursion import mass_matrix, motion, newton_euler, pose
from parflex.tree.elements import read_section

STEEL = Material(200e9, 77e9, 7800)
BAR = Section(2e-4, 2e-9, 6e-9, 5e-9, 8e-9, 5 / 6, 5 / 6)
NUMBERS = {"shape": "numbers", "A": 2e-4, "Iy": 2e-9, "Iz": 6e-9, "J": 5e-9}
# roots of the characteristic equations of Euler-Bernoulli beams
ROOTS = {
    "cantilever": (1.8751040687, 4.6940911330, 7.8547574382),
    "pinned": (np.pi, 2 * np.pi, 3 * np.pi),
    "clamped": (4.7300407449, 7.8532046241, 10.9956078380),
}
HEAD = """
format = 1
name = "bar"
motion = "planar"
gravity = [0, 0, 0]
[materials.steel]
elastic_modulus = 200e9
density = 7800
[sections.bar]
shape = "rectangle"
y = 0.01
z = 0.02
"""
FILES = {
    "cantilever": """
[[frame]]
name = "bar"
beam = { length = 0.8, material = "steel", section = "bar", elements = 1 }
""",
    "pinned": """
[[frame]]
name = "bar"
joint = "revolute"
beam = { length = 0.8, material = "steel", section = "bar", elements = 2 }
[[point]]
name = "wall"
frame = "base"
position = [0.8, 0, 0]
[[closure]]
between = ["wall", "bar.tip"]
joint = "point-on-line"
axis = "x"
""",
    "clamped": """
[[frame]]
name = "bar"
beam = { length = 0.8, material = "steel", section = "bar", elements = 2 }
[[point]]
name = "wall"
frame = "base"
position = [0.8, 0, 0]
[[closure]]
between = ["wall", "bar.tip"]
joint = "welded"
""",
}


def bending(root: float) -> float:
    """Frequency in Hz of a bar of 0.8 m."""
    return root**2 / (2 * np.pi * 0.8**2) * np.sqrt(200e9 * 0.02 * 0.01**3 / 12 / (7800 * 0.01 * 0.02))


@pytest.mark.parametrize("support", FILES)
def test_bars_converge_to_their_closed_form_at_the_rate_of_cubic_elements(support, tmp_path, figure):
    path = tmp_path / "bar.toml"
    path.write_text(HEAD + FILES[support])
    expected = np.array([bending(root) for root in ROOTS[support]])
    errors = []
    for elements in (8, 16):
        found = natural_frequencies(parflex.load(path, elements=elements), modes=3)
        errors.append(np.abs(found.frequencies / expected - 1))
    figure(f"{support} bar: largest relative error with the finer mesh", float(errors[1].max()))
    total = 16 * (1 if support == "cantilever" else 2)
    # cubic elements are off by (wave number times element length)^4 / 1440; a third more for the terms behind it
    assert np.all(errors[1] < 1.33 * (np.array(ROOTS[support]) / total) ** 4 / 1440)
    # the error falls with the fourth power of the element length: 16 for half of it, less what the next term adds
    assert np.all(np.log2(errors[0] / errors[1]) > 3.8)


def test_a_free_bar_has_its_rigid_motions_apart_and_named(tmp_path):
    path = tmp_path / "free.toml"
    path.write_text(
        HEAD
        + """
[[frame]]
name = "bar"
joint = "free"
beam = { length = 0.8, material = "steel", section = "bar", elements = 8 }
"""
    )
    found = natural_frequencies(parflex.load(path), modes=2)
    assert len(found.free_motions) == 3
    # a free bar has the frequencies of a clamped one; eight cubic elements give the second to 1e-3
    assert found.frequencies == pytest.approx([bending(root) for root in ROOTS["clamped"][:2]], rel=1e-3)


def test_table_3_of_the_navaro(figure):
    """Germain2015, Table 3: eight poses, five frequencies, two decimals."""
    robot, table = parflex.load("navaro"), published("Germain2015", "Table 3, natural frequencies")
    found = {k: natural_frequencies(robot, f"pose-{k}", modes=5) for k in range(1, 9)}
    assert all(modes.independent_coordinates == 90 for modes in found.values())
    worst = max(np.abs(modes.frequencies - table[f"pose {k}"]).max() for k, modes in found.items())
    figure("navaro: Table 3, largest difference in Hz", float(worst), 0.006)
    assert worst < 0.006  # half a unit of the last printed digit, and one thousandth for rounded data
    for k, same in ((5, 3), (6, 4), (7, 3), (8, 4)):
        # the same pose in a robot turned by 120 degrees: rounding of the eigenvalue solver alone
        assert found[k].frequencies == pytest.approx(found[same].frequencies, abs=1e-8)


def test_frequencies_of_the_dualemps_with_the_printed_table_2(figure):
    """Briot2014, Table 2 as printed; the values an independent model gives for it."""
    found = natural_frequencies(parflex.load("dualemps")).frequencies
    expected = np.array([14.21, 25.04, 48.16, 91.91, 110.33, 436.2])
    figure("dualemps: largest difference of the first five in Hz", float(np.abs(found - expected)[:5].max()), 0.01)
    assert np.abs(found - expected)[:5].max() < 0.01  # two printed decimals
    assert abs(found[5] - expected[5]) < 0.1  # one printed decimal


def test_modes_are_orthogonal_mass_normalised_and_share_their_energy():
    robot = parflex.load("navaro")
    model = linear_model(robot, "pose-3")
    found = natural_frequencies(robot, "pose-3", modes=6)
    M = mass_matrix(robot.tree, model.configuration.at)
    gram = found.shapes.T @ M @ found.shapes
    assert np.abs(gram - np.eye(6)).max() < 1e-8  # rounding of an eigenvalue problem of condition 1e8
    for part in participation(found.model.configuration, found.shapes):
        assert sum(part.values()) == pytest.approx(1.0, abs=0.02)  # shares below 1e-4 are left out


@pytest.mark.parametrize("rotary", [True, False])
def test_invariants_equal_quadrature_over_the_volume(rotary):
    length, body = 0.6, beam(0.6, STEEL, BAR, rotary_inertia=True)
    nodes, weights = np.polynomial.legendre.leggauss(6)
    y, z = np.sqrt(BAR.Iz / BAR.A), np.sqrt(BAR.Iy / BAR.A)  # two points each way have the moments of the section
    S, G = np.zeros_like(body.S), np.zeros_like(body.G)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        for sy in (-y, y):
            for sz in (-z, z):
                fields = _fields(node, sy, sz, length)
                dm = STEEL.density * BAR.A * length * weight / 4
                S += dm * fields
                G += dm * np.einsum("ai,bj->abij", fields, fields)
    assert np.abs(S - body.S).max() < 1e-13 * np.abs(S).max()  # quadrature is exact for these polynomials
    assert np.abs(G - body.G).max() < 1e-13 * np.abs(G).max()
    if not rotary:
        thin = beam(length, STEEL, BAR)
        j = STEEL.density * BAR.Ip * length
        inertia = thin.inertia_matrix(np.zeros(6))
        assert inertia[3, 3] == pytest.approx(j, rel=1e-12)  # about its axis only the sections have inertia
        assert inertia[9, 9] == pytest.approx(j / 3, rel=1e-12)
        assert inertia[3, 9] == pytest.approx(j / 2, rel=1e-12)


def _fields(xi: float, y: float, z: float, length: float) -> np.ndarray:
    """Material point and its displacements per tip coordinate, from textbook shape functions."""
    h, g = 3 * xi**2 - 2 * xi**3, length * (xi**3 - xi**2)
    dh, dg = (6 * xi - 6 * xi**2) / length, 3 * xi**2 - 2 * xi
    return np.array(
        [
            [length * xi, y, z],
            [xi, 0, 0],
            [-y * dh, h, 0],
            [-z * dh, 0, h],
            [0, -z * xi, y * xi],
            [z * dg, 0, -g],
            [-y * dg, g, 0],
        ]
    )


def test_a_rolled_square_beam_is_the_same_and_a_quarter_turn_swaps_its_sides():
    flat = Section(2e-4, 2e-9, 6e-9, 5e-9, 8e-9, 5 / 6, 5 / 6)
    turned = rolled(beam(0.5, STEEL, flat, rotary_inertia=True), np.pi / 2)
    swapped = beam(0.5, STEEL, Section(2e-4, 6e-9, 2e-9, 5e-9, 8e-9, 5 / 6, 5 / 6), rotary_inertia=True)
    assert np.abs(turned.K - swapped.K).max() < 1e-12 * np.abs(swapped.K).max()  # rounding
    assert np.abs(turned.G - swapped.G).max() < 1e-12 * np.abs(swapped.G).max()


def test_sections_have_their_textbook_moments():
    square = rectangle(0.02, 0.02)
    assert pytest.approx(0.1405770 * 0.02**4, rel=1e-6) == square.J  # Saint-Venant
    assert pytest.approx(5.902e-9, rel=1e-3) == rectangle(0.01, 0.024).J  # Germain2015, Table 2, four digits
    assert pytest.approx(np.pi * 0.03**4 / 32, rel=1e-12) == circle(0.03).J
    assert tube(0.03, 0.002).Iy == pytest.approx(np.pi / 64 * (0.03**4 - 0.026**4), rel=1e-12)
    flat = rectangle(0.01, 0.024)
    assert flat.Iy == pytest.approx(0.01 * 0.024**3 / 12) and flat.Iz == pytest.approx(0.024 * 0.01**3 / 12)
    for section in (square, flat, circle(0.03), tube(0.03, 0.002), read_section(SectionTable(**NUMBERS))):
        assert pytest.approx(section.Iy + section.Iz, rel=1e-12) == section.Ip  # the theorem of perpendicular axes


def test_a_box_is_a_rectangle_without_its_inside():
    hollow, outer, inner = box(0.02, 0.03, 0.002), rectangle(0.02, 0.03), rectangle(0.016, 0.026)
    for name in ("A", "Iy", "Iz", "Ip"):
        assert getattr(hollow, name) == pytest.approx(getattr(outer, name) - getattr(inner, name), rel=1e-12)
    t = 1e-7  # of a thin wall to the first order: two webs, two flanges
    thin = box(0.02, 0.03, t)
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
    assert 100 * (1 - box(y, z, t).J / exact) == pytest.approx(low, abs=0.1)  # grids twice as fine move it by less


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
    path = tmp_path / "bar.toml"
    path.write_text(HEAD.replace('"rectangle"', '"box"\nthickness = 0.001') + FILES["cantilever"])
    Iz, A = (0.02 * 0.01**3 - 0.018 * 0.008**3) / 12, 0.02 * 0.01 - 0.018 * 0.008
    expected = np.array(ROOTS["cantilever"]) ** 2 * np.sqrt(200e9 * Iz / (7800 * A * 0.8**4)) / (2 * np.pi)
    found = natural_frequencies(parflex.load(path, elements=8), modes=3).frequencies
    assert found == pytest.approx(expected, rel=9e-4)  # 1.33 / 1440 of (root / 8)^4


@pytest.mark.parametrize("name", ["dualemps", "navaro"])
def test_velocity_terms_of_elastic_bodies_follow_from_the_mass_matrix(name):
    """Lagrange's equations with the derivatives of M by differences: another way to the terms of the recursion."""
    robot = parflex.load(name)
    tree, rng = robot.tree, np.random.default_rng(3)
    bent = np.zeros(tree.n)
    bent[list(tree.elastic)] = rng.uniform(-0.05, 0.05, len(tree.elastic))
    rigid = [k for k in range(tree.n) if tree.links[tree.link_of_rate[k]].joint.kind in ("free", "planar")]
    qd = rng.uniform(-1, 1, tree.n)
    qd[rigid] = 0.0  # rates of a free body are no derivatives of coordinates
    q = tree.moved(robot.home, bent)

    def mass(step: np.ndarray) -> np.ndarray:
        return mass_matrix(tree, Configuration(robot, tree.moved(q, step)).at)

    h = 1e-5
    along = (mass(h * qd) - mass(-h * qd)) / (2 * h) @ qd
    slope = np.zeros(tree.n)
    used = [k for k in range(tree.n) if k not in rigid][:40]
    for k in used:
        step = np.zeros(tree.n)
        step[k] = h
        slope[k] = qd @ (mass(step) - mass(-step)) @ qd / (4 * h)
    at = Configuration(robot, q).at
    forces = newton_euler(tree, at, motion(tree, at, qd, np.zeros(tree.n))).forces
    still = newton_euler(tree, at, motion(tree, at, np.zeros(tree.n), np.zeros(tree.n))).forces
    expected = along - slope
    error = np.abs((forces - still - expected)[used]).max() / np.abs(expected[used]).max()
    assert error < 1e-7  # central differences with steps of 1e-5


@pytest.mark.parametrize("name", ["dualemps", "gough-stewart-beams"])
def test_at_rest_forces_are_those_of_rates_that_vanish(name):
    """What does not move is computed by fewer operations: rates of 1e-200 take all of them, and are nothing."""
    robot, rng, pull = parflex.load(name), np.random.default_rng(3), np.array([1e6, -2e6, 3e6])  # beyond stiffnesses
    tree = robot.tree
    at = pose(tree, tree.moved(robot.home, rng.uniform(-0.02, 0.02, tree.n)))
    moving = np.full(tree.n, 1e-200)
    rest, nearly = (newton_euler(tree, at, motion(tree, at, v, v, pull)) for v in (0 * moving, moving))
    for one, other in ((rest.forces, nearly.forces), (rest.f, nearly.f), (rest.m, nearly.m)):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14 * np.abs(other).max())  # sums in another order


def test_energy_of_elastic_bodies_is_that_of_their_mass_matrix():
    robot = parflex.load("dualemps")
    rng = np.random.default_rng(1)
    qd = rng.uniform(-1, 1, robot.tree.n)
    configuration = parflex.configure(robot)
    kinetic, _ = energies(configuration, qd)
    assert kinetic == pytest.approx(0.5 * qd @ mass_matrix(robot.tree, configuration.at) @ qd, rel=1e-12)  # rounding


def test_direct_and_inverse_models_of_a_robot_that_bends_undo_each_other():
    robot = parflex.load("dualemps")
    drive, push = {"11": 0.4, "21": -0.3}, {"11": 2.0, "21": 5.0}
    result = parflex.inverse_dynamics(robot, "home", drive, push)
    again = parflex.forward_dynamics(robot, "home", drive, result.efforts)
    assert len(result.elastic_accelerations) == 9
    # one solve of a system of condition 1e6 each way
    assert np.abs(again.accelerations - result.accelerations).max() < 1e-9 * np.abs(result.accelerations).max()


def test_efforts_at_rest_that_do_not_hold_a_bending_robot_are_said_to_be_none():
    robot = parflex.load("3rrr-flexible")
    here = parflex.inverse_dynamics(robot)
    assert any("not in equilibrium" in warning for warning in here.warnings)
    bent = Configuration(robot, parflex.equilibrium(robot).configuration.q)
    held = parflex.inverse_dynamics(robot, bent)
    assert held.warnings == []
    expected = parflex.deflection(robot, about="equilibrium").efforts
    assert held.efforts == pytest.approx(expected, rel=1e-6)  # Newton ends at 1e-9 of the loads
    assert here.efforts != pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("order", ["velocity", "acceleration"])
def test_efforts_in_a_motion_that_bodies_do_not_follow_are_said_to_hold_for_an_instant(order):
    robot = parflex.load("3rrr-flexible")
    bent = parflex.equilibrium(robot).configuration
    slow, fast = (parflex.inverse_dynamics(robot, bent, **{order: {"leg1.1": size}}) for size in (1e-6, 1.0))
    assert slow.warnings == []
    assert any("not in equilibrium in this motion" in warning for warning in fast.warnings)
    undeformed = parflex.inverse_dynamics(robot, "home", **{order: {"leg1.1": 1e-6}})
    assert any("not in equilibrium in this motion" in warning for warning in undeformed.warnings)


def test_arrays_without_rates_warn_of_accelerations_that_bodies_do_not_follow():
    robot = parflex.load("3rrr-flexible")
    with pytest.warns(parflex.ParflexWarning, match="not in equilibrium in this motion"):
        parflex.inverse_dynamics(robot, q=robot.home, qdd=[1.0, 0.0, 0.0])
