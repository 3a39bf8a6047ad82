"""Beams, frames and rings against solutions of their differential equations, each with its rate of convergence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.integrate
from support.oracles.beam_element import Bar
from support.oracles.exact_beams import CLAMPED, FREE, PINNED, ROLLER, corner, frequencies, ring, transfer

import parflex
from parflex import natural_frequencies
from parflex.bodies.beam import Material, Section, beam
from parflex.bodies.sections import box, circle, rectangle, tube

E, NU, RHO = 200e9, 0.3, 7800.0
Y, Z, LENGTH = 0.06, 0.02, 0.5  # stocky: shear and rotary inertia matter
K_SHEAR = 5 / 6
HEAD = f"""
format = 1
name = "bar"
motion = "planar"
gravity = [0, 0, 0]
[materials.steel]
elastic_modulus = {E}
density = {RHO}
[sections.bar]
shape = "rectangle"
y = {Y}
z = {Z}
"""
WALL = f"""
[[point]]
name = "wall"
frame = "base"
position = [{LENGTH}, 0, 0]
[[closure]]
between = ["wall", "bar.tip"]
"""
SUPPORTS = {
    "cantilever": ("fixed", "", CLAMPED, FREE),
    "pinned": ("revolute", WALL + 'joint = "point-on-line"\naxis = "x"\n', PINNED, ROLLER),
    "clamped": ("fixed", WALL + 'joint = "welded"\n', CLAMPED, CLAMPED),
    "free": ("free", "", FREE, FREE),
}


def exact_bar(rotary: bool, shear: bool, y: float = Y) -> Bar:
    area = K_SHEAR * y * Z if shear else np.inf
    return Bar(E, E / (2 * (1 + NU)), RHO, y * Z, 1.0, Z * y**3 / 12, 1.0, 1.0, rotary, area, area)


def write_bar(path, joint: str, closure: str, rotary: bool, shear: bool):
    flags = f"rotary_inertia = {str(rotary).lower()}, shear = {str(shear).lower()}, elements = 2"
    row = f'[[frame]]\nname = "bar"\njoint = "{joint}"\n'
    path.write_text(
        HEAD + row + f'beam = {{ length = {LENGTH}, material = "steel", section = "bar", {flags} }}\n' + closure
    )
    return path


def errors_of(path, expected, meshes) -> list[np.ndarray]:
    """Relative errors of the lowest frequencies, each element cut into so many."""
    found = [natural_frequencies(parflex.load(path, elements=n), modes=len(expected)).frequencies for n in meshes]
    return [np.abs(f / expected - 1) for f in found]


def bound(bar: Bar, expected: np.ndarray, element: float) -> np.ndarray:
    """Relative errors of cubic shapes in bending, linear ones in stretch and shear; a third more for terms behind."""
    omega = 2 * np.pi * expected
    bending = omega**2 * RHO * bar.A / (E * bar.Iz) * element**4 / 1440  # (wave number times length)^4
    sliding = (omega * element) ** 2 * RHO / 24  # (wave number times length)^2, with the modulus of stretch or shear
    return 1.33 * (bending + sliding / E + sliding * bar.A / (bar.G * bar.shear_y))


@pytest.mark.few
@pytest.mark.parametrize("shear", [False, True], ids=["slender", "shear"])
@pytest.mark.parametrize("rotary", [False, True], ids=["line", "rotary"])
@pytest.mark.parametrize("support", SUPPORTS)
def test_bars_converge_to_the_solution_of_their_differential_equation(support, rotary, shear, tmp_path, figure):
    joint, closure, start, end = SUPPORTS[support]
    path = write_bar(tmp_path / "bar.toml", joint, closure, rotary, shear)
    bar = exact_bar(rotary, shear)
    expected = frequencies(lambda omega: transfer(bar, LENGTH, omega), start, end, 2, top=4500)
    coarse, fine = errors_of(path, expected, (4, 8))
    figure(f"{support} bar, 16 elements, largest relative error", float(fine.max()))
    assert np.all(fine < bound(bar, expected, LENGTH / 16))
    # halving the elements: a factor 16, or 4 where shear matters, less what the next term of the series adds
    rate = np.log2(coarse / fine)
    assert np.all(np.abs(rate - 2) < 0.1 if shear else rate > 3.8)


@pytest.mark.parametrize("motion", ["stretch", "twist"])
def test_stretch_and_twist_converge_with_the_square_of_the_element(motion, tmp_path):
    path = write_bar(tmp_path / "bar.toml", "fixed", "", False, False)
    path.write_text(path.read_text().replace("planar", "spatial"))
    section = rectangle(Y, Z)
    modulus = E if motion == "stretch" else E / (2 * (1 + NU)) * section.J / section.Ip
    expected = np.sqrt(modulus / RHO) / (4 * LENGTH)  # a quarter wave
    label = "ux" if motion == "stretch" else "rx"
    errors = []
    for n in (4, 8):
        robot = parflex.load(path, elements=n)
        modes = natural_frequencies(robot, modes=12)
        tip = robot.tree.rate_names.index(
            next(name for name in reversed(robot.tree.rate_names) if name.endswith(label))
        )
        pure = [k for k in range(12) if np.abs(modes.shapes[tip, k]) > 0.9 * np.abs(modes.shapes[-6:, k]).max()]
        errors.append(abs(modes.frequencies[pure[0]] / expected - 1))
    assert errors[1] < (np.pi / 2 / 16) ** 2 / 24 * 1.1  # linear shapes: (wave number times length)^2 / 24
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("shear", [False, True])
def test_a_frame_of_two_beams_converges_to_its_exact_frequencies(shear, tmp_path, figure):
    """Clamped, a corner of 70 degrees, then another beam that ends free or clamped; stocky only with shear."""
    y = Y if shear else 0.004
    flags = f"rotary_inertia = true, shear = {str(shear).lower()}, elements = 2"

    def arm(length: float) -> str:
        return f'beam = {{ length = {length}, material = "steel", section = "bar", {flags} }}\n'

    text = HEAD.replace(f"y = {Y}", f"y = {y}") + '[[frame]]\nname = "one"\n' + arm(0.5)
    text += '[[frame]]\nname = "two"\nparent = "one.tip"\nplace = { rotation = [0, 0, "70*deg"] }\n' + arm(0.35)
    bar, turn = exact_bar(True, shear, y), corner(np.deg2rad(70))
    ends = {
        "free": ("", FREE),
        "clamped": (
            '[[point]]\nname = "wall"\nframe = "base"\nposition = ["0.5 + 0.35*cos(70*deg)", "0.35*sin(70*deg)", 0]\n'
            'rotation = [0, 0, "70*deg"]\n[[closure]]\nbetween = ["wall", "two.tip"]\njoint = "welded"\n',
            CLAMPED,
        ),
    }
    for end, (closure, zero) in ends.items():
        path = tmp_path / "corner.toml"
        path.write_text(text + closure)
        expected = frequencies(
            lambda omega: transfer(bar, 0.35, omega) @ turn @ transfer(bar, 0.5, omega),
            CLAMPED,
            zero,
            3,
            top=4000 * y / Y,
        )
        coarse, fine = errors_of(path, expected, (2, 4))
        figure(f"corner of two beams, {end} end: largest relative error", float(fine.max()))
        assert np.all(fine < bound(bar, expected, LENGTH / 8))
        rate = np.log2(coarse / fine)
        assert np.all(np.abs(rate - 2) < 0.3 if shear else rate > 3.7)  # with what bending adds and stretch takes


def test_a_polygon_of_beams_becomes_a_ring(tmp_path, figure):
    radius = 0.8
    thin = Bar(E, 1.0, RHO, 4e-3 * Z, 1.0, Z * 4e-3**3 / 12, 1.0, 1.0)
    expected = np.array([ring(thin, radius, n) for n in (2, 2, 3, 3)])
    errors = []
    for sides in (12, 24, 48):
        side = float(2 * radius * np.sin(np.pi / sides))
        text = HEAD.replace(f"y = {Y}", "y = 4e-3")
        for k in range(sides):
            parent = (
                'joint = "free"'
                if k == 0
                else f'parent = "s{k - 1}.tip"\nplace = {{ rotation = [0, 0, "2*pi/{sides}"] }}'
            )
            text += f'[[frame]]\nname = "s{k}"\n{parent}\n'
            text += f'beam = {{ length = {side!r}, material = "steel", section = "bar" }}\n'
        text += f'[[point]]\nname = "end"\nframe = "s{sides - 1}.tip"\nrotation = [0, 0, "2*pi/{sides}"]\n'
        text += '[[closure]]\nbetween = ["s0", "end"]\njoint = "welded"\n'
        path = tmp_path / "ring.toml"
        path.write_text(text)
        found = natural_frequencies(parflex.load(path), modes=4)
        assert len(found.free_motions) == 3
        errors.append(np.abs(found.frequencies / expected - 1))
    figure("polygon of 48 beams as a ring: largest relative error", float(errors[-1].max()))
    # the sagitta of a side is (pi / sides)^2 / 2 of the radius: geometry and stiffness are off by that order
    assert errors[-1].max() < 3 * (np.pi / 48) ** 2
    for coarse, fine in itertools.pairwise(errors):
        assert np.log2(coarse / fine) == pytest.approx(2, abs=0.15)  # twelve sides are not yet in the limit


@pytest.mark.parametrize("name", ["navaro", "dualemps"])
def test_frequencies_grow_with_the_square_root_of_stiffness(name, figure):
    soft = parflex.load(name)
    first = natural_frequencies(soft).frequencies
    material = soft.description.materials["dural"]
    worst = 0.0
    for power in (2, 4, 6):
        settings = {"materials.dural.elastic_modulus": 10**power * material.elastic_modulus}
        if material.shear_modulus is not None:
            settings["materials.dural.shear_modulus"] = 10**power * material.shear_modulus
        found = natural_frequencies(parflex.load(name, settings=settings)).frequencies
        worst = max(worst, float(np.abs(found / (10 ** (power / 2) * first) - 1).max()))
    figure(f"{name}: frequencies over the root of stiffness, largest relative change", worst, 1e-8)
    assert worst < 1e-8  # rounding of the eigenvalue problem, the same at every stiffness


def test_shear_adds_to_the_deflection_of_a_cantilever():
    """F L^3 / 3EI + F L / kGA, at once for one element; the end turns as without shear."""
    material, section = Material(E, E / 2.6, RHO), Section(Y * Z, Y * Z**3 / 12, Z * Y**3 / 12, 1e-7, 2e-7, 0.8, 0.7)
    K = beam(LENGTH, material, section, shear=True).K
    for direction, turn, inertia, k, sign in ((1, 5, section.Iz, 0.8, 1), (2, 4, section.Iy, 0.7, -1)):
        push = np.eye(6)[direction]
        bent = np.linalg.solve(K, push)
        expected = LENGTH**3 / (3 * E * inertia) + LENGTH / (k * material.G * section.A)
        assert bent[direction] == pytest.approx(expected, rel=1e-12)  # rounding
        assert bent[turn] == pytest.approx(sign * LENGTH**2 / (2 * E * inertia), rel=1e-12)


@pytest.mark.parametrize("rotary", [True, False])
def test_invariants_with_shear_equal_quadrature(rotary):
    material, section = Material(E, E / 2.6, RHO), Section(Y * Z, Y * Z**3 / 12, Z * Y**3 / 12, 1e-7, 2e-7, 0.8, 0.7)
    body = beam(LENGTH, material, section, rotary_inertia=rotary, shear=True)
    ratios = [E * I / (k * material.G * section.A) for I, k in ((section.Iz, 0.8), (section.Iy, 0.7))]
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


def test_shapes_of_sections_have_their_shear_coefficients():
    assert rectangle(0.01, 0.03).ky == pytest.approx(5 / 6)
    assert circle(0.02).kz == pytest.approx(6 / 7)
    assert tube(0.02, 1e-6).ky == pytest.approx(0.5, rel=1e-3)  # thin walls
    assert box(0.02, 0.02, 0.001).ky == pytest.approx(5 / 12)  # Cowper's 20 (1 + nu) / (48 + 39 nu) of a square tube
    assert box(1.0, 1e-6, 1e-7).ky == pytest.approx(5 / 6, rel=1e-5)  # webs alone are rectangles


@pytest.mark.parametrize(("y", "z"), [(0.02, 0.05), (0.05, 0.02), (0.03, 0.04)])
def test_a_thin_box_shears_by_the_energy_of_its_shear_flow(y, z):
    """k = I^2 / (A int Q^2 / t ds): without contraction sideways, Cowper's coefficient is that of the energy."""
    t = 1e-3
    section, b, h = box(y, z, t), z - t, y - t  # a force along y: webs of height h, flanges of width b
    flange, web = np.linspace(0, b / 2, 2001), np.linspace(-h / 2, h / 2, 2001)
    Q = t * b / 2 * h / 2 + t * ((h / 2) ** 2 - web**2) / 2  # of half a flange and of the web beyond
    squares = 4 * scipy.integrate.simpson((t * flange * h / 2) ** 2, x=flange)
    squares += 2 * scipy.integrate.simpson(Q**2, x=web)
    I, A = t * h**3 / 6 + t * b * h**2 / 2, 2 * t * (b + h)
    assert section.ky == pytest.approx(I**2 / (A * squares / t), rel=1e-9)  # Simpson's rule on a quartic
    assert box(z, y, t).kz == pytest.approx(section.ky, rel=1e-12)
