"""Bodies given by modes under loads that stretch or press them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from numpy.polynomial import polynomial as poly

import parflex
from parflex import InputError, linear_model
from parflex.bodies.modal import ModalData, normalised
from parflex.bodies.modal_file import load_modal, save_modal

L, EA, EI, MASS = 0.5, 2e5, 4.0, 0.3  # a strip clamped at its root, MASS per length
POWERS = range(2, 7)  # of x in the deflections: five shapes that are clamped at the root
EULER = np.pi**2 * EI / (4 * L**2)
ROBOT = """
format = 1
name = "strip"
gravity = [0, 0, 0]
[[frame]]
name = "hub"
joint = "revolute"
actuated = true
[[frame]]
name = "strip"
parent = "hub"
modal = { file = "strip.npz" }
"""


def strip(geometric: bool) -> ModalData:
    """Modes of a clamped strip by Ritz's method: five of bending along y and one of stretch, sums over Gauss points."""
    points, weights = np.polynomial.legendre.leggauss(9)  # exact to degree 17; squares of the shapes have degree 12
    x, weights = (points + 1) / 2 * L, weights / 2 * L
    shapes = [np.eye(max(POWERS) + 1)[p] / L**p for p in POWERS]

    def gram(order: int) -> np.ndarray:
        rows = np.array([poly.polyval(x, poly.polyder(shape, order)) for shape in shapes])
        return (rows * weights) @ rows.T

    K, M, slopes = EI * gram(2), MASS * gram(0), gram(1)
    values, vectors = scipy.linalg.eigh(K, M)
    nodes = np.concatenate([[[0, 0, 0], [L, 0, 0]], np.array([[p, 0, 0] for p in x])])
    count = len(values) + 1
    fields = np.zeros((count, len(nodes), 6))
    for k, vector in enumerate(vectors.T):
        shape = vector @ np.array(shapes)
        fields[k, :, 1] = poly.polyval(nodes[:, 0], shape)
        fields[k, :, 5] = poly.polyval(nodes[:, 0], poly.polyder(shape))
    fields[-1, :, 0] = nodes[:, 0] / L  # stretched evenly by a metre
    masses = np.concatenate([[0, 0], MASS * weights])
    stretch = float(masses @ fields[-1, :, 0] ** 2)
    added = np.zeros((count, count, count))
    added[-1, :-1, :-1] = EA / L * vectors.T @ slopes @ vectors  # its normal force EA/L, times products of slopes
    return ModalData(
        nodes=nodes, masses=masses, shapes=fields, modal_stiffnesses=np.append(values, EA / L),
        modal_masses=np.append(np.ones(len(values)), stretch), damping_ratios=np.full(count, 0.01),
        interface=("root", "tip"), geometric=added if geometric else None,
    )  # fmt: skip


def robot(tmp_path: Path, geometric: bool, **settings):
    save_modal(strip(geometric), tmp_path / "strip.npz")
    (tmp_path / "strip.toml").write_text(ROBOT)
    return parflex.load(tmp_path / "strip.toml", settings=settings)


def pulled(of, tension: float):
    return linear_model(of, about="equilibrium", wrench={"strip.tip": [tension, 0, 0]})


def softest(of, tension: float) -> float:
    model = pulled(of, tension)
    return float(scipy.linalg.eigh(model.K, model.M, eigvals_only=True)[0])


def test_a_body_with_geometric_stiffness_buckles_at_eulers_load(tmp_path):
    of = robot(tmp_path, True)
    # five polynomials have the sine to 1e-6; the strip is shortened by 2e-4 at the load
    assert softest(of, -0.999 * EULER) > 0 > softest(of, -1.001 * EULER)
    squares = [softest(of, share * EULER) for share in (0.0, 0.5, 2.0, 10.0)]
    assert np.all(np.diff(squares) > 0)
    assert not pulled(of, 0.5 * EULER).warnings


def test_without_it_the_load_is_told(tmp_path):
    of = robot(tmp_path, False)
    still, pressed = softest(of, 0.0), softest(of, -0.9 * EULER)
    assert pressed == pytest.approx(still, rel=1e-3)  # nothing in the data says what stress does
    for sign, word in ((1, "stiffer"), (-1, "softer")):
        (said,) = pulled(of, sign * 0.5 * EULER).warnings
        assert "'strip'" in said and word in said and "geometric" in said
    assert not pulled(of, 0.02 * EULER).warnings


def test_linear_strain_leaves_it_out_and_says_so(tmp_path):
    of = robot(tmp_path, True, axial="linear")
    assert softest(of, -0.9 * EULER) == pytest.approx(softest(of, 0.0), rel=1e-3)
    (said,) = pulled(of, -0.5 * EULER).warnings
    assert "linear strain" in said


def test_the_exchange_file_keeps_it_and_refuses_what_cannot_be(tmp_path):
    data = strip(True)
    read = load_modal(save_modal(data, tmp_path / "a.npz"))
    assert np.array_equal(read.geometric, data.geometric)
    assert read.with_modes(3).geometric.shape == (3, 3, 3)
    crooked = data.geometric.copy()
    crooked[-1, 0, 1] *= 2
    for wrong, word in ((data.geometric[:2], "match"), (crooked, "symmetric")):
        with pytest.raises(InputError, match=word):
            save_modal(replace(data, geometric=wrong), tmp_path / "b.npz")
    with pytest.raises(InputError, match="as given"):
        normalised(data)
