"""Plates by finite elements: published modes, closed forms, rates, thin limit, exact sums over the nodes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from parflex.bodies.modal import integrals, momenta
from parflex.bodies.modal_file import load_modal

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = ROOT / "src" / "parflex" / "description" / "catalogue"


@pytest.fixture(scope="module")
def script():
    """The script that makes the modal data of the catalogue."""
    spec = importlib.util.spec_from_file_location("make_hexagon_plate", ROOT / "examples" / "make_hexagon_plate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hexagon(script):
    return script.make()


def test_the_modal_data_of_the_catalogue_are_made_again_by_their_script(hexagon):
    kept = load_modal(CATALOGUE / "hexagon-plate.npz")
    assert kept.interface == hexagon.interface
    for name in ("nodes", "masses", "second_moments", "modal_masses", "damping_ratios"):
        np.testing.assert_allclose(getattr(hexagon, name), getattr(kept, name), rtol=0, atol=1e-14, err_msg=name)
    # eigenvectors of a problem with a condition of 1e8 or so, by an iterative solver: rounding grows to 1e-8 of a shape
    np.testing.assert_allclose(hexagon.modal_stiffnesses, kept.modal_stiffnesses, rtol=1e-8)
    np.testing.assert_allclose(hexagon.shapes, kept.shapes, rtol=0, atol=1e-6 * np.abs(kept.shapes).max())


def test_modes_of_the_hexagon_are_those_of_the_paper(script, hexagon, figure):
    own = np.sqrt(hexagon.modal_stiffnesses)
    off = own / np.array(script.PRINTED) - 1
    figure("hexagon: largest difference of modes 7-11", float(np.abs(off[:5]).max()))
    figure("hexagon: largest difference of modes 12-13", float(np.abs(off[5:7]).max()))
    figure("hexagon: largest difference of modes 14-16, coarse mesh of the paper", float(np.abs(off[7:]).max()))
    # the paper's mesh is coarse and its Poisson ratio a guess; above mode 13 its mesh is the whole difference
    assert np.abs(off[:5]).max() < 3e-3
    assert np.abs(off[5:7]).max() < 1.2e-2


def test_sums_over_nodes_give_mass_inertia_and_orthonormal_modes_exactly(hexagon):
    S, G = integrals(hexagon)
    side, h, rho = 0.5, 0.015, 7.5e3
    mass = 1.5 * np.sqrt(3) * side**2 * h * rho
    second = 5 * np.sqrt(3) / 16 * side**4 * h * rho
    assert hexagon.mass == pytest.approx(mass, rel=1e-13)
    assert mass == pytest.approx(73.069, rel=3e-5)  # as printed, with four digits after the point
    np.testing.assert_allclose(S[0], 0, atol=1e-12 * mass)
    np.testing.assert_allclose(G[0, 0], np.diag([second, second, mass * h**2 / 12]), atol=1e-12 * second)
    np.testing.assert_allclose(np.einsum("abii->ab", G[1:, 1:]), np.eye(10), atol=1e-13)
    assert np.abs(momenta(hexagon)).max() < 1e-13
