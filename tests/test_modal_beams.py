"""Beams written as bodies with modes: analytic integrals, and the same robots as with elements of beams."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from conftest import CATALOGUE
from support.comparison import largest
from support.flexible_states import reduced
from support.oracles.beam_robots import tube
from support.oracles.modal_data import Modes, clamped_beam, free_bar

import parflex
from parflex import Configuration, Robot, natural_frequencies
from parflex.bodies.modal import ModalData, integrals, modal_body, momenta, normalised
from parflex.bodies.modal_file import load_modal

TIP = ("ux", "uy", "uz", "rx", "ry", "rz")


def data(modes: Modes, folder: Path) -> ModalData:
    return load_modal(modes.write(folder / "modes.npz"))


# -- integrals -----------------------------------------------------------------------------------------


def test_integrals_of_a_free_bar_are_the_analytic_ones(tmp_path, figure):
    """Bending along y and z, and the first stretch, of a thin bar about its middle: sines and hyperbolic sines."""
    length, mass, bends = 2.0, 3.0, 3
    modes, roots = free_bar(length, mass, bends)
    S, G = integrals(data(modes, tmp_path))
    expected_S, expected_G = np.zeros_like(S), np.zeros_like(G)
    expected_G[0, 0, 0, 0] = mass * length**2 / 12
    # int x phi dm of the stretch sqrt(2/m) cos(pi s): it moves mass outwards, so the inertia changes with it
    expected_G[0, 1, 0, 0] = expected_G[1, 0, 0, 0] = -2 * np.sqrt(2 * mass) * length / np.pi**2
    expected_G[1, 1, 0, 0] = 1.0
    for k in range(bends):
        y, z = 2 + 2 * k, 3 + 2 * k
        expected_G[y, y, 1, 1] = expected_G[z, z, 2, 2] = 1.0
        expected_G[y, z, 1, 2] = expected_G[z, y, 2, 1] = 1.0  # lam of a pair: along x
    for k, root in enumerate(roots):  # the stretch shares mass with bending: int cos(pi s) curve(s)
        shared = _stretch_and_bend(root)
        for mode, axis in ((2 + 2 * k, 1), (3 + 2 * k, 2)):
            expected_G[1, mode, 0, axis] = expected_G[mode, 1, axis, 0] = shared
    worst = max(largest(S - expected_S), largest(G - expected_G))
    figure("integrals of a free bar against analytic ones", worst, 1e-11)
    assert worst < 1e-11  # sixty Gauss points; hyperbolic functions of 11 cost five digits


def _stretch_and_bend(root: float) -> float:
    """Integral over 0..1 of sqrt(2) cos(pi s) (cosh + cos - c (sinh + sin))(root s), in closed form."""
    c = (np.cosh(root) - np.cos(root)) / (np.sinh(root) - np.sin(root))
    # by parts twice: int cos(pi s) e^(a s) = a (-e^a - 1) / (a^2 + pi^2), for real and imaginary a
    real = [a * (-np.exp(a) - 1) / (a**2 + np.pi**2) for a in (root, -root)]
    turning = 1j * root * (-np.exp(1j * root) - 1) / (np.pi**2 - root**2)
    cosh, sinh = (real[0] + real[1]) / 2, (real[0] - real[1]) / 2
    return float(np.sqrt(2) * (cosh + turning.real - c * (sinh + turning.imag)))


def test_free_modes_have_modal_mass_one_and_no_momentum(tmp_path):
    plate = load_modal(CATALOGUE / "hexagon-plate.npz")
    for body, limit in ((data(free_bar(2.0, 3.0, 3)[0], tmp_path), 1e-11), (plate, 1e-9)):
        _, G = integrals(body)
        assert np.trace(G[1:, 1:], axis1=2, axis2=3) == pytest.approx(np.eye(body.count), abs=limit)
        assert largest(momenta(body)) < limit * np.sqrt(body.mass)  # of a body that moves as a whole: the root


def test_integrals_of_a_clamped_beam_are_those_of_the_element(tmp_path):
    """Gauss points with the second moments of their slices give the integrals of the element exactly."""
    robot = parflex.load("gough-stewart-beams")
    element = robot.tree.links[robot.tree.number("leg1.rod")].body
    modes = clamped_beam(0.6, tube(0.05, 0.008))
    body = modal_body(data(modes, tmp_path))
    end = modes.shapes[:, 1].T  # tip by modal coordinates
    mixed = np.eye(7)
    mixed[1:, 1:] = end
    for found, expected in (
        (body.G, np.einsum("ai,bj,abkl->ijkl", mixed, mixed, element.G)),
        (body.S, mixed.T @ element.S),
        (body.K, end.T @ element.K @ end),
    ):
        assert found == pytest.approx(expected, abs=1e-12 * largest(expected))  # sums of a few products
    assert body.m == pytest.approx(element.m, rel=1e-12)


# -- robots --------------------------------------------------------------------------------------------


@cache
def pair() -> tuple[Robot, Robot, np.ndarray]:
    """Legs with rods as elements and as bodies with modes; tip coordinates by modal ones."""
    folder = Path(mkdtemp())
    modes = clamped_beam(0.6, tube(0.05, 0.008))
    modes.write(folder / "rod.npz")
    text = (CATALOGUE / "gough-stewart-beams.toml").read_text(encoding="utf-8")
    for old, new in (
        (
            'beam = { length = "rod", material = "steel", section = "rod", rotary_inertia = true }',
            'modal = { file = "rod.npz" }',
        ),
        ('between = ["attachment", "rod.tip"]', 'between = ["attachment", "rod.end"]'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "modal.toml").write_text(text, encoding="utf-8")
    linear = {"axial": "linear"}  # nothing in these modes says what axial load does
    beams, modal = (parflex.load(robot, settings=linear) for robot in ("gough-stewart-beams", folder / "modal.toml"))
    return beams, modal, modes.shapes[:, 1].T


@pytest.mark.parametrize("pose", [None, {"x": 0.2, "y": 0.5, "z": 1.05, "rx": 0.1, "ry": -0.1, "rz": 0.2}])
def test_links_given_by_modes_have_the_frequencies_of_beams(pose, figure):
    beams, modal, _ = pair()
    for lock in ("actuators", "none"):
        one, two = (natural_frequencies(robot, pose, modes=14, lock=lock) for robot in (beams, modal))
        assert one.free_motions == two.free_motions or len(one.free_motions) == len(two.free_motions)
        worst = largest(one.frequencies / two.frequencies - 1)
        figure(f"rods as modes, locked {lock}: frequencies against beams", worst, 1e-9)
        assert worst < 1e-9  # eigenvalues up to 1e9 times the lowest: rounding


def test_links_given_by_modes_move_like_beams(figure):
    beams, modal, end = pair()
    rng, worst = np.random.default_rng(8), 0.0
    for _ in range(3):
        step = rng.uniform(-1, 1, beams.tree.n) * np.where(
            np.isin(np.arange(beams.tree.n), beams.tree.elastic), 1e-3, 0.1
        )
        q, error = beams.assembler.newton(beams.tree.moved(beams.home, step), beams.free, list(beams.closures.loops))
        assert error < 1e-12
        at = Configuration(beams, q)
        qd = at.J @ rng.uniform(-3, 3, at.J.shape[1])
        effort = rng.uniform(-300, 300, 6)
        there = Configuration(modal, _modal(beams, modal, end, q, positions=True))
        expected = _modal(beams, modal, end, reduced(at, qd, effort))
        found = reduced(there, _modal(beams, modal, end, qd), effort)
        worst = max(worst, largest(found - expected) / largest(expected))
        assert largest(modal.closures.residual(there.at)) < 1e-12
    figure("rods as modes: accelerations against beams", worst, 1e-10)
    assert worst < 1e-10  # the condition of the mass matrix is 1e5


def _modal(beams: Robot, modal: Robot, end: np.ndarray, values: np.ndarray, positions: bool = False) -> np.ndarray:
    """Coordinates or rates of the robot with beams, written for the one with modes."""
    names = beams.tree.position_names if positions else beams.tree.rate_names
    named = dict(zip(names, values, strict=True))
    for leg in range(1, 7):
        own = np.linalg.solve(end, [named[f"leg{leg}.rod.{part}"] for part in TIP])
        named |= {f"leg{leg}.rod.mode{k + 1}": value for k, value in enumerate(own)}
    return np.array([named[name] for name in (modal.tree.position_names if positions else modal.tree.rate_names)])


# -- normal form ---------------------------------------------------------------------------------------


def test_modes_that_were_scaled_mixed_and_shuffled_come_back_to_one_form(tmp_path):
    modes = clamped_beam(0.6, tube(0.05, 0.008))
    plain = data(modes, tmp_path)
    once = normalised(plain)
    assert np.isfinite(once.shapes).all()
    assert normalised(once).shapes == pytest.approx(once.shapes, abs=1e-9)
    rng = np.random.default_rng(2)
    shapes, order, sizes = modes.shapes.copy(), rng.permutation(6), rng.uniform(-3, 3, 6)
    for first in (0, 2):  # pairs of one stiffness, turned
        c, s = np.cos(0.7), np.sin(0.7)
        shapes[first : first + 2] = np.tensordot(np.array([[c, -s], [s, c]]), shapes[first : first + 2], axes=1)
    mixed = ModalData(
        plain.nodes,
        plain.masses,
        (sizes[:, None, None] * shapes)[order],
        (sizes**2 * plain.modal_stiffnesses)[order],
        (sizes**2)[order],
        plain.damping_ratios,
        plain.interface,
        plain.second_moments,
    )
    again = normalised(mixed)
    assert again.modal_stiffnesses == pytest.approx(once.modal_stiffnesses, rel=1e-9)
    assert again.modal_masses == pytest.approx(np.ones(6))
    assert again.shapes == pytest.approx(once.shapes, abs=1e-9 * largest(once.shapes))
