"""Beams, frames and rings against solutions of their differential equations, each with its rate of convergence."""

import itertools

import numpy as np
import pytest
from support.oracles.beam_element import Bar
from support.oracles.exact_beams import CLAMPED, FREE, PINNED, ROLLER, corner, frequencies, ring, transfer
from support.robots import load_robot, robot_file

import parflex
from parflex import natural_frequencies

E, NU, RHO = 200e9, 0.3, 7800.0
Y, Z, LENGTH = 0.06, 0.02, 0.5  # stocky: shear and rotary inertia matter
K_SHEAR = 5 / 6
SUPPORTS = {  # joint at the root, closure at the tip, and its axis
    "cantilever": ("fixed", None, CLAMPED, FREE),
    "pinned": ("revolute", "point-on-line", PINNED, ROLLER),
    "clamped": ("fixed", "welded", CLAMPED, CLAMPED),
    "free": ("free", None, FREE, FREE),
}


def exact_bar(rotary: bool, shear: bool, y: float = Y) -> Bar:
    area = K_SHEAR * y * Z if shear else np.inf
    return Bar(E, E / (2 * (1 + NU)), RHO, y * Z, 1.0, Z * y**3 / 12, 1.0, 1.0, rotary, area, area)


def bar_settings(support: str, rotary: bool, shear: bool) -> tuple[str, dict]:
    """The robot and its settings: a bar that ends free, or one with a wall at its tip."""
    joint, closure, _, _ = SUPPORTS[support]
    keys = {"rotary_inertia": rotary, "shear": shear, "elements": 2}
    settings = {f"frame.bar.beam.{key}": value for key, value in keys.items()} | {"frame.bar.joint": joint}
    if closure:
        settings["closure.end.joint"] = closure
    return "stocky-bar-at-wall" if closure else "stocky-bar", settings


def errors_of(name, settings, expected, meshes) -> list[np.ndarray]:
    """Relative errors of the lowest frequencies, each element cut into so many."""
    robots = [load_robot(name, elements=n, settings=settings) for n in meshes]
    return [np.abs(natural_frequencies(robot, modes=len(expected)).frequencies / expected - 1) for robot in robots]


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
def test_bars_converge_to_the_solution_of_their_differential_equation(support, rotary, shear, figure):
    *_, start, end = SUPPORTS[support]
    bar = exact_bar(rotary, shear)
    expected = frequencies(lambda omega: transfer(bar, LENGTH, omega), start, end, 2, top=4500)
    coarse, fine = errors_of(*bar_settings(support, rotary, shear), expected, (4, 8))
    figure(f"{support} bar, 16 elements, largest relative error", float(fine.max()))
    assert np.all(fine < bound(bar, expected, LENGTH / 16))
    # halving the elements: a factor 16, or 4 where shear matters, less what the next term of the series adds
    rate = np.log2(coarse / fine)
    assert np.all(np.abs(rate - 2) < 0.1 if shear else rate > 3.8)


@pytest.mark.parametrize("motion", ["stretch", "twist"])
def test_stretch_and_twist_converge_with_the_square_of_the_element(motion):
    name, settings = bar_settings("cantilever", False, False)
    series = sum(np.tanh(n * np.pi * Y / (2 * Z)) / n**5 for n in range(1, 20, 2))
    Ip, J = Y * Z * (Y**2 + Z**2) / 12, Y * Z**3 * (1 / 3 - 64 / np.pi**5 * Z / Y * series)  # Saint-Venant
    modulus = E if motion == "stretch" else E / (2 * (1 + NU)) * J / Ip
    expected = np.sqrt(modulus / RHO) / (4 * LENGTH)  # a quarter wave
    label = "ux" if motion == "stretch" else "rx"
    errors = []
    for n in (4, 8):
        robot = load_robot(name, elements=n, settings=settings | {"motion": "spatial"})
        modes = natural_frequencies(robot, modes=12)
        rates = robot.tree.rate_names
        tip = rates.index(next(name for name in reversed(rates) if name.endswith(label)))
        pure = [k for k in range(12) if np.abs(modes.shapes[tip, k]) > 0.9 * np.abs(modes.shapes[-6:, k]).max()]
        errors.append(abs(modes.frequencies[pure[0]] / expected - 1))
    assert errors[1] < (np.pi / 2 / 16) ** 2 / 24 * 1.1  # linear shapes: (wave number times length)^2 / 24
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("shear", [False, True])
def test_a_frame_of_two_beams_converges_to_its_exact_frequencies(shear, figure):
    """Clamped, a corner of 70 degrees, then another beam that ends free or clamped; stocky only with shear."""
    y = Y if shear else 0.004
    settings = {"sections.bar.y": y, "frame.one.beam.shear": shear, "frame.two.beam.shear": shear}
    bar, turn = exact_bar(True, shear, y), corner(np.deg2rad(70))
    for name, zero in (("two-bars", FREE), ("two-bars-clamped", CLAMPED)):
        expected = frequencies(
            lambda omega: transfer(bar, 0.35, omega) @ turn @ transfer(bar, 0.5, omega),
            CLAMPED, zero, 3, top=4000 * y / Y,
        )  # fmt: skip
        coarse, fine = errors_of(name, settings, expected, (2, 4))
        figure(f"{name}: largest relative error", float(fine.max()))
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
        text = robot_file("stocky-bar").read_text().partition("[[frame]]")[0].replace(f"y = {Y}", "y = 4e-3")
        for k in range(sides):
            place = f'parent = "s{k - 1}.tip"\nplace = {{ rotation = [0, 0, "2*pi/{sides}"] }}'
            parent = place if k else 'joint = "free"'
            text += f'[[frame]]\nname = "s{k}"\n{parent}\n'
            text += f'beam = {{ length = {side!r}, material = "steel", section = "bar" }}\n'
        text += f'[[point]]\nname = "end"\nframe = "s{sides - 1}.tip"\nrotation = [0, 0, "2*pi/{sides}"]\n'
        text += '[[closure]]\nbetween = ["s0", "end"]\njoint = "welded"\n'
        path = tmp_path / "ring.toml"
        path.write_text(text)
        result = natural_frequencies(parflex.load(path), modes=4)
        assert len(result.free_motions) == 3
        errors.append(np.abs(result.frequencies / expected - 1))
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
        result = natural_frequencies(parflex.load(name, settings=settings)).frequencies
        worst = max(worst, float(np.abs(result / (10 ** (power / 2) * first) - 1).max()))
    figure(f"{name}: frequencies over the root of stiffness, largest relative change", worst, 1e-8)
    assert worst < 1e-8  # rounding of the eigenvalue problem, the same at every stiffness
