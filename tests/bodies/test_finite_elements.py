"""Finite-element bodies reduced to modes: frames, solids and plates against closed forms and published modes."""

import importlib.util
import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from scipy import sparse
from support.catalogue import CATALOGUE
from support.comparison import largest
from support.oracles.beam_element import Bar
from support.oracles.beam_robots import HEXAGON
from support.oracles.frame import FrameModel
from support.oracles.free_plates import free_disc, kirchhoff_rectangle, mindlin_rectangle
from support.oracles.modal_data import free_bar, invented
from support.paths import ROOT
from support.robots import load_robot

from parflex import InputError, natural_frequencies
from parflex.bodies.craig_bampton import (
    craig_bampton,
    craig_bampton_vectors,
    free_reduction,
    lowest_modes,
    lumped_masses,
    structure,
)
from parflex.bodies.modal import ModalData, integrals, load_modal, modal_body, momenta, normalised, save_modal
from parflex.bodies.plates import (
    Plate,
    discretise,
    discretise_kirchhoff,
    discretise_mindlin,
    free_modes,
    plate_modes,
    static_deflection,
    triangulate,
)

BAR = Bar(70e9, 26e9, 2700, 4e-4, 1.3e-8, 2e-8, 2.2e-8, 3.3e-8, rotary=True)
TIPS = {"a": 1, "b": 2, "c": 3}


def wye(elements):
    """Three beams from one point, not in a plane: the model, stiffness, mass and positions."""
    model = FrameModel()
    middle = model.node([0, 0, 0])
    for place in ([0.5, 0, 0.1], [-0.2, 0.45, 0], [-0.2, -0.4, -0.1]):
        model.node(place)
    for tip in TIPS.values():
        model.beam(middle, tip, BAR, elements=elements)
    K, M, _ = model.matrices()
    return model, K, M, np.array(model.positions)


def gram(data):
    return np.einsum("abii->ab", integrals(data)[1][1:, 1:])


def test_free_modes_have_the_frequencies_of_the_frame_and_no_momentum(figure):
    model, K, M, nodes = wye(12)
    reduced = free_reduction(M, K, nodes, TIPS, 8, damping=0.01)
    data = reduced.data
    hertz = np.sqrt(data.modal_stiffnesses) / (2 * np.pi)
    np.testing.assert_allclose(hertz, model.frequencies(8, skip=6), rtol=1e-8)  # rounding of the stiffest coordinate
    np.testing.assert_allclose(gram(data), np.eye(8), atol=1e-12)
    assert np.abs(momenta(data)).max() < 1e-13
    np.testing.assert_array_equal(data.nodes[:3], nodes[1:4])
    figure("sums over nodal masses, 12 elements a beam, 8 modes", reduced.sums)
    assert reduced.sums < 0.05  # falls with the square of the element length: see below


def test_nodal_masses_have_the_mass_centre_and_inertia_of_the_matrix():
    _, K, M, nodes = wye(4)
    data = free_reduction(M, K, nodes, TIPS, 3).data
    rigid = np.zeros((len(nodes), 6, 6))
    for block, (x, y, z) in zip(rigid, nodes, strict=True):
        block[:] = np.eye(6)
        block[:3, 3:] = [[0, z, -y], [-z, 0, x], [y, -x, 0]]
    exact = rigid.reshape(-1, 6).T @ M @ rigid.reshape(-1, 6)
    S, G = integrals(data)
    assert data.mass == pytest.approx(exact[0, 0], rel=1e-12)
    np.testing.assert_allclose(S[0], [exact[1, 5], exact[2, 3], exact[0, 4]], atol=1e-12)
    np.testing.assert_allclose(np.trace(G[0, 0]) * np.eye(3) - G[0, 0], exact[3:, 3:], atol=1e-12)


def test_matrices_of_a_frame_in_the_plane_are_reduced_as_they_are():
    model = FrameModel()
    corner = [model.node(place) for place in ([0, 0, 0], [0.5, 0.1, 0], [0.9, -0.3, 0])]
    for first, second in itertools.pairwise(corner):
        model.beam(first, second, BAR, elements=10)
    K, M, _ = model.matrices()
    out = np.flatnonzero(np.isin(np.arange(len(M)) % 6, (2, 3, 4)))
    for matrix in (K, M):
        matrix[out] = matrix[:, out] = 0.0
    inside = np.setdiff1d(np.arange(len(M)), out)
    exact = scipy.linalg.eigh(K[np.ix_(inside, inside)], M[np.ix_(inside, inside)], eigvals_only=True)
    nodes, ends = np.array(model.positions), {"a": corner[0], "b": corner[2]}
    free = free_reduction(M, K, nodes, ends, 4)
    np.testing.assert_allclose(free.data.modal_stiffnesses, exact[3:7], rtol=1e-7)  # beside the stiffest coordinate
    assert not np.nan_to_num(free.data.shapes)[:, :, [2, 3, 4]].any()
    held = craig_bampton(M, K, nodes, ends, 1, root="a")
    clamped = np.setdiff1d(inside, np.arange(6 * corner[0], 6 * corner[0] + 6))
    compliance = np.linalg.inv(K[np.ix_(clamped, clamped)])
    tip = np.flatnonzero(np.isin(clamped, [6 * corner[2], 6 * corner[2] + 1]))
    shapes = held.data.shapes[:, list(held.data.interface).index("b"), :2]
    result = np.einsum("ki,kj,k->ij", shapes, shapes, 1 / held.data.modal_stiffnesses)
    np.testing.assert_allclose(result, compliance[np.ix_(tip, tip)], rtol=1e-8)


def test_discs_at_nodes_are_lumped_as_the_second_moments_that_they_have():
    J = np.array([[[5.0, 0.3, 0], [0.3, 4.0, 0.1], [0, 0.1, 6.0]], [[1.0, 0, 0], [0, 2.0, 0], [0, 0, 2.5]]])
    M, spring = np.zeros((12, 12)), np.eye(6)
    for node, mass in enumerate((3.0, 2.0)):
        M[6 * node : 6 * node + 3, 6 * node : 6 * node + 3] = mass * np.eye(3)
        M[6 * node + 3 : 6 * node + 6, 6 * node + 3 : 6 * node + 6] = J[node]
    K = np.block([[spring, -spring], [-spring, spring]])
    masses, moments, distance = lumped_masses(structure(M, K, [[0, 0, 0], [1.0, 0.5, 0.2]], {"end": 1}))
    assert masses == pytest.approx([3, 2], rel=1e-12) and distance < 1e-12
    wanted = np.trace(J, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - J  # of J = int (r^2 - r r^T) dm
    assert np.abs(moments - wanted).max() < 1e-11


def test_sums_over_nodal_masses_tend_to_the_consistent_ones_with_the_square_of_the_element():
    off = [free_reduction(*reversed(wye(n)[1:3]), wye(n)[3], TIPS, 4).sums for n in (8, 16)]
    assert np.log2(off[0] / off[1]) == pytest.approx(2, abs=0.4)  # the next order is still seen


@pytest.mark.parametrize("root", [None, "a"])
def test_all_modes_of_craig_and_bampton_are_the_whole_body(root):
    _, K, M, nodes = wye(3)
    body = structure(M, K, nodes, TIPS)
    inner = 6 * (len(nodes) - len(TIPS))
    values, vectors = craig_bampton_vectors(body, inner, root)
    kept = np.arange(len(K)) if root is None else np.setdiff1d(np.arange(len(K)), range(6, 12))
    exact = scipy.linalg.eigvalsh(K[np.ix_(kept, kept)], M[np.ix_(kept, kept)])[6 if root is None else 0 :]
    # rounding is relative to the highest eigenvalue, 1e10 times the first
    np.testing.assert_allclose(values, exact, rtol=1e-6)
    np.testing.assert_allclose(vectors.T @ M @ vectors, np.eye(len(values)), atol=1e-9)
    np.testing.assert_allclose(vectors.T @ K @ vectors, np.diag(values), atol=1e-9 * values.max())


def test_few_modes_of_craig_and_bampton_give_low_frequencies_from_above(figure):
    model, K, M, nodes = wye(8)
    exact = (2 * np.pi * model.frequencies(3, skip=6)) ** 2
    body = structure(M, K, nodes, TIPS)
    off = [craig_bampton_vectors(body, count)[0][:3] / exact - 1 for count in (0, 6, 18)]
    figure("first modes by constraint modes and 0, 6, 18 more", ", ".join(f"{np.max(value):.1e}" for value in off))
    assert all((value > -1e-9).all() for value in off)  # Ritz' values are upper bounds, but for rounding
    assert off[0].max() > off[1].max() > off[2].max()
    assert off[2].max() < 1e-3


def test_a_clamped_body_bends_at_its_interface_exactly_as_its_matrices_do():
    _, K, M, nodes = wye(10)
    data = craig_bampton(M, K, nodes, TIPS, 4, root="a").data
    assert not data.shapes[:, 0].any()  # the root does not move at all
    np.testing.assert_allclose(gram(data), np.eye(data.count), atol=1e-11)
    rng = np.random.default_rng(3)
    load = np.zeros((len(nodes), 6))
    load[2:4] = rng.normal(size=(2, 6))
    kept = np.setdiff1d(np.arange(len(K)), range(6, 12))
    u = np.zeros(len(K))
    u[kept] = np.linalg.solve(K[np.ix_(kept, kept)], load.ravel()[kept])
    q = np.einsum("mnk,nk->m", data.shapes[:, 1:3], load[2:4]) / data.modal_stiffnesses
    result = np.einsum("m,mnk->nk", q, data.shapes[:, 1:3])
    np.testing.assert_allclose(result, u.reshape(-1, 6)[2:4], atol=1e-8 * np.abs(u).max())


def test_a_link_of_a_robot_may_be_a_reduced_frame(tmp_path):
    model, K, M, nodes = wye(16)
    data = craig_bampton(M, K, nodes - nodes[1], TIPS, 6, root="a").data
    save_modal(data, tmp_path / "wye.npz")
    robot = load_robot("reduced-wye", settings={"frame.link.modal.file": str(tmp_path / "wye.npz")})
    model.tie(1)
    model.mass(3, 0.5)
    # nodal masses of 16 elements a beam, six modes with the interface held
    np.testing.assert_allclose(natural_frequencies(robot, "home").frequencies[:4], model.frequencies(4), rtol=2e-3)


def solid(order):
    skfem = pytest.importorskip("skfem")
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    mesh = skfem.MeshTet.init_tensor(np.linspace(0, 0.6, 7), np.linspace(0, 0.1, 3), np.linspace(0, 0.2, 3))
    element = {1: skfem.ElementTetP1, 2: skfem.ElementTetP2}[order]()
    basis = skfem.Basis(mesh, skfem.ElementVector(element), intorder=4)
    K = linear_elasticity(*lame_parameters(70e9, 0.33)).assemble(basis)

    @skfem.BilinearForm
    def inertia(u, v, _):
        return 2700 * sum(u[i] * v[i] for i in range(3))

    return inertia.assemble(basis), K, basis.doflocs[:, ::3].T


@pytest.mark.parametrize("order", [1, 2])
def test_a_solid_without_rotations_keeps_its_frequencies_mass_and_inertia(order):
    M, K, nodes = solid(order)
    reduced = free_reduction(M, K, nodes, {"one": 0}, 4)
    data = reduced.data
    exact = scipy.linalg.eigvalsh(K.toarray(), M.toarray())[6:10]
    np.testing.assert_allclose(data.modal_stiffnesses, exact, rtol=1e-8)
    assert np.isnan(data.shapes[:, :, 3:]).all()
    assert data.second_moments is None
    mass = 2700 * 0.6 * 0.1 * 0.2
    S, G = integrals(data)
    assert data.mass == pytest.approx(mass, rel=1e-12)
    np.testing.assert_allclose(S[0], mass * np.array([0.3, 0.05, 0.1]), rtol=1e-10)
    np.testing.assert_allclose(np.diag(G[0, 0]), mass * np.array([0.36, 0.01, 0.04]) / 3, rtol=1e-10)
    np.testing.assert_allclose(gram(data), np.eye(4), atol=1e-12)
    assert np.abs(momenta(data)).max() < 1e-12
    assert not modal_body(data).nodes["one"].turns


def test_large_sparse_bodies_are_solved_like_small_ones(monkeypatch):
    _, K, M, nodes = wye(10)
    body = structure(M, K, nodes, TIPS)
    small = lowest_modes(body.M, body.K, 5, body.rigid)[0]
    monkeypatch.setattr("parflex.bodies.craig_bampton.DENSE", 0)
    body = structure(sparse.csr_matrix(M), sparse.csr_matrix(K), nodes, TIPS)
    large = lowest_modes(body.M, body.K, 5, body.rigid)[0]
    np.testing.assert_allclose(large, small, rtol=1e-8)
    with pytest.raises(InputError, match="negative stiffness"):
        structure(sparse.csr_matrix(M), sparse.csr_matrix(K - 1e-3 * np.diag(np.diag(K))), nodes, TIPS)


def test_integrals_of_a_free_bar_are_the_analytic_ones(tmp_path, figure):
    """Bending along y and z, and the first stretch, of a thin bar about its middle: sines and hyperbolic sines."""
    length, mass, bends = 2.0, 3.0, 3
    modes, roots = free_bar(length, mass, bends)
    S, G = integrals(load_modal(modes.write(tmp_path / "modes.npz")))
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


def test_modes_that_were_scaled_mixed_and_shuffled_come_back_to_one_form(tmp_path):
    stiffnesses = 1e4 * np.array([1.0, 1.0, 2.0, 2.0, 3.0, 4.0])  # two pairs of one stiffness
    modes = replace(invented(HEXAGON, 6, seed=1), stiffnesses=stiffnesses)
    plain = load_modal(modes.write(tmp_path / "modes.npz"))
    once = normalised(plain)
    assert np.isfinite(once.shapes).all()
    assert normalised(once).shapes == pytest.approx(once.shapes, abs=1e-9)
    rng = np.random.default_rng(2)
    shapes, order, sizes = modes.shapes.copy(), rng.permutation(6), rng.uniform(-3, 3, 6)
    for first in (0, 2):  # pairs, turned
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


def few_elements() -> dict:
    _, K, M, nodes = wye(2)
    return {"M": M, "K": K, "nodes": nodes, "interface": TIPS, "modes": 2}


def changed(matrix, row, column, factor):
    matrix = matrix.copy()
    matrix[row, column] *= factor
    return matrix


def bad_inputs():
    _, K, M, nodes = wye(2)
    off = np.unravel_index(np.abs(np.triu(K, 1)).argmax(), K.shape)
    held = K.copy()
    held[0, 0] += 1e9
    loose = np.zeros((len(K) + 6, len(K) + 6))
    loose_mass = np.eye(len(K) + 6)
    loose[:-6, :-6], loose_mass[:-6, :-6] = K, M
    return {
        "nodes": ({"nodes": nodes[:, :2]}, "not a list of points"),
        "symmetric": ({"K": changed(K, *off, 2.0)}, "K is not symmetric"),
        "negative mass": ({"M": changed(M, 0, 0, -1.0)}, "M is not positive semidefinite: it has negative masses"),
        "negative stiffness": ({"K": -K}, "K is not positive semidefinite: it has motions with negative stiffness"),
        "number": ({"K": changed(K, 0, 0, np.nan)}, "K has an entry that is not a number"),
        "index": ({"interface": {"a": 99}}, "'a' has the index 99, the body has 7 nodes"),
        "held": ({"K": held}, "the body is not free"),
        "loose": ({"K": loose, "M": loose_mass, "nodes": [*nodes, [1, 1, 1]]}, "motions without stiffness"),
        "many": ({"modes": 1000}, "1000 modes are requested, but the body has at most 36"),
        "coarse": ({"modes": 36}, "violate the orthogonality"),
        "one node": ({"interface": {"a": 1, "b": 1}}, "two interface names refer to one node"),
        "complex": ({"K": K + 1j}, "K is complex"),
        "few rows": ({"K": K[:6, :6]}, "K is 6 x 6, which does not match 7 nodes"),
        "no mass": ({"M": 0 * M}, "M is empty or not square"),
        "no modes": ({"modes": 0}, "0 modes are requested"),
    }


ROD = np.kron([[1.0, -1.0], [-1.0, 1.0]], np.eye(3))  # springs along x, y and z between two points
BALLS = {"M": np.eye(6), "K": ROD, "nodes": [[0, 0, 0], [1, 0, 0]], "interface": {"a": 0}, "modes": 1}
BAD_REDUCTIONS = {  # of Craig and Bampton
    "unknown root": ({"root": "z"}, "has no interface node 'z'"),
    "loose root": (BALLS | {"root": "a"}, "clamping the node 'a' leaves the body free to move"),
    "many fixed": ({"modes": 99, "root": None}, "99 fixed-interface modes are requested"),
    "negative": ({"modes": -1, "root": None}, "-1 fixed-interface modes are requested"),
}


@pytest.mark.parametrize("case", [*bad_inputs(), *BAD_REDUCTIONS])
def test_inconsistent_matrices_and_reductions_are_refused(case):
    change, words = (bad_inputs() | BAD_REDUCTIONS)[case]
    with pytest.raises(InputError, match=words) as error:
        (craig_bampton if "root" in change else free_reduction)(**(few_elements() | change))
    assert "\n" not in str(error.value)


E, RHO, NU = 2e11, 7800.0, 0.3
SQUARE = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
ELL = np.array([[0, 0], [2, 0], [2, 0.6], [0.7, 0.6], [0.7, 2], [0, 2]])


def numbers(omega, side, h):
    return omega * side**2 * np.sqrt(RHO * h / (E * h**3 / (12 * (1 - NU**2))))


def square(theory, h, level, count=6, **options):
    mesh = triangulate(SQUARE).refined(level)
    result = free_modes(theory(Plate(SQUARE, h, E, RHO, NU), mesh, **options), count)[0]
    return numbers(np.sqrt(result), 1.0, h)


@cache
def thin_square():
    return numbers(kirchhoff_rectangle(1, 1, 0.01, E, RHO, NU, 18, 6, rotary=False), 1.0, 0.01)


def polygon(sides):
    angles = 2 * np.pi * np.arange(sides) / sides
    radius = np.sqrt(np.pi / (sides / 2 * np.sin(2 * np.pi / sides)))
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_hexagon_plate", ROOT / "examples" / "make_hexagon_plate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hexagon():
    return load_modal(CATALOGUE / "hexagon-plate.npz")


@pytest.mark.verify
def test_the_modal_data_of_the_catalogue_are_made_again_by_their_script(script, hexagon):
    made = script.make()
    assert made.interface == hexagon.interface
    for name in ("nodes", "masses", "second_moments", "modal_masses", "damping_ratios"):
        np.testing.assert_allclose(getattr(made, name), getattr(hexagon, name), rtol=0, atol=1e-14, err_msg=name)
    # eigenvectors of a problem with a condition of 1e8 or so, by an iterative solver: rounding grows to 1e-8 of a shape
    np.testing.assert_allclose(made.modal_stiffnesses, hexagon.modal_stiffnesses, rtol=1e-8)
    np.testing.assert_allclose(made.shapes, hexagon.shapes, rtol=0, atol=1e-6 * np.abs(hexagon.shapes).max())


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


def test_a_thin_free_square_has_the_published_numbers():
    own = square(discretise_kirchhoff, 0.01, 2, rotary_inertia=False)
    # five digits are published; 13.489 of older tables is an upper bound by fewer terms
    np.testing.assert_allclose(own[:3], [13.468, 19.596, 24.270], atol=6e-4)
    ritz = thin_square()
    # singular twist at the corners: the elements are good to 7e-6 here, the polynomials to 1e-8
    np.testing.assert_allclose(own, ritz, rtol=1e-5)


def test_thin_elements_converge_with_the_fourth_power_at_least(figure):
    ritz = thin_square()
    errors = np.array([square(discretise_kirchhoff, 0.01, level, rotary_inertia=False) / ritz - 1 for level in (1, 2)])
    rates = np.log2(errors[0] / errors[1])
    figure("rate of Argyris' triangle, slowest and fastest mode", f"{rates.min():.1f}, {rates.max():.1f}")
    assert rates.min() > 3.8  # the singular twist at the corners allows about 4 for the first mode


@pytest.mark.verify
def test_elements_with_shear_converge_to_a_thick_square_with_the_fourth_power(figure):
    h = 0.1
    ritz = numbers(mindlin_rectangle(1, 1, h, E, RHO, NU, 16, 6), 1.0, h)  # good to 1e-6
    errors = np.array([square(discretise_mindlin, h, level) / ritz - 1 for level in (3, 4)])
    rates = np.log2(errors[0] / errors[1])
    figure("rate of the triangle with shear, slowest and fastest mode", f"{rates.min():.1f}, {rates.max():.1f}")
    assert rates.min() > 3.4  # quadratic strains: 4, less the layer at the edge, seen by six triangles
    assert np.abs(errors[1]).max() < 1e-4


def test_a_thin_plate_with_shear_does_not_lock():
    ritz = thin_square()
    errors = {h: square(discretise_mindlin, h, 3) / ritz - 1 for h in (1e-2, 1e-3, 1e-4)}
    # what is left on 256 triangles is their own error, the same for any thickness; locking would grow as 1/h^2
    assert np.abs(errors[1e-4]).max() < 1e-3
    np.testing.assert_allclose(errors[1e-3], errors[1e-4], atol=3e-5)  # h itself, from the layer at the edge
    assert np.abs(errors[1e-2]).max() < 2e-3


def test_a_polygon_of_many_sides_tends_to_the_free_disc(figure):
    exact = np.sort([*2 * list(free_disc(2, NU, 1)), *free_disc(0, NU, 1), *2 * list(free_disc(3, NU, 1))])
    np.testing.assert_allclose(exact[[0, 2, 3]], [5.358, 9.003, 12.439], atol=6e-4)  # published
    off = []
    for sides in (12, 24):
        corners = polygon(sides)
        plate = Plate(corners, 0.01, E, RHO, NU)
        result = free_modes(discretise_kirchhoff(plate, triangulate(corners), rotary_inertia=False), 5)[0]
        off.append(np.abs(numbers(np.sqrt(result), 1.0, 0.01) / exact - 1).max())
    figure("polygons of 12 and 24 sides against the free disc", f"{off[0]:.1e}, {off[1]:.1e}")
    # sides that cut off as much as they add: the first effect of N sides is of the order 1/N^4
    assert off[0] < 3e-3
    assert off[1] < off[0] / 8


@pytest.mark.parametrize("theory", ["mindlin", "kirchhoff"])
def test_rigid_motions_of_the_elements_strain_nothing(theory):
    plate = Plate([[0, 0], [0.6, 0], [0.7, 0.5], [0.1, 0.4]], 0.08, 70e9, 2700)  # thick: its sections turn with it
    elements = discretise(plate, theory, 1)
    assert np.abs(elements.rigid.T @ (elements.M @ elements.rigid) - np.eye(3)).max() < 1e-9
    size = np.abs(elements.K).max() * np.abs(elements.rigid).max()
    assert np.abs(elements.K @ elements.rigid).max() < 1e-9 * size  # rounding of a mass matrix of condition 1e5


def test_any_polygon_has_its_exact_mass_and_inertia_and_its_attachments_as_nodes():
    attachments = {"corner": (2, 0.6), "inside": (1.5, 0.3), "edge": (1.0, 0.0)}
    data = plate_modes(Plate(ELL, 0.02, E, RHO, NU, attachments), 4, refinements=1)
    assert data.interface == tuple(attachments)
    np.testing.assert_array_equal(data.nodes[:3, :2], list(attachments.values()))
    np.testing.assert_array_equal(data.nodes[:, 2], 0)
    S, G = integrals(data)
    boxes = np.array([[0, 2, 0, 0.6], [0, 0.7, 0.6, 2]])
    a, b, c, d = boxes.T
    sigma = RHO * 0.02
    assert data.mass == pytest.approx(sigma * np.sum((b - a) * (d - c)), rel=1e-13)
    np.testing.assert_allclose(S[0, 0], sigma * np.sum((b**2 - a**2) / 2 * (d - c)), rtol=1e-13)
    np.testing.assert_allclose(G[0, 0, 0, 0], sigma * np.sum((b**3 - a**3) / 3 * (d - c)), rtol=1e-13)
    np.testing.assert_allclose(G[0, 0, 0, 1], sigma * np.sum((b**2 - a**2) * (d**2 - c**2) / 4), rtol=1e-13)
    assert G[0, 0, 2, 2] == pytest.approx(data.mass * 0.02**2 / 12, rel=1e-12)
    assert np.abs(momenta(data)).max() < 1e-12
    np.testing.assert_allclose(np.einsum("abii->ab", G[1:, 1:]), np.eye(4), atol=1e-12)


def test_slopes_at_attachments_are_those_of_the_deflection():
    d = 0.1
    cross = {"m": (0.1, 0.2), "e": (0.1 + d, 0.2), "w": (0.1 - d, 0.2), "n": (0.1, 0.2 + d), "s": (0.1, 0.2 - d)}
    data = plate_modes(Plate(SQUARE, 1e-3, E, RHO, NU, cross), 3, theory="kirchhoff", refinements=0)
    m, e, w, n, s = (data.shapes[:, k, 2:5].T for k in range(5))  # deflection, rotations about x and y
    scale = np.abs(m[0]).max()
    # Simpson's rule over slopes; its error d^5/90 times a fifth derivative is below a thousandth of the deflection
    np.testing.assert_allclose(n[0] - s[0], d / 3 * (n[1] + 4 * m[1] + s[1]), atol=1e-3 * scale)
    np.testing.assert_allclose(e[0] - w[0], -d / 3 * (e[2] + 4 * m[2] + w[2]), atol=1e-3 * scale)


def test_a_plate_held_at_its_corners_carries_its_weight_there(script):
    plate = script.hexagon()
    discrete = discretise(plate, refinements=2)
    corners = [f"a{leg}" for leg in range(1, 7)]
    held = static_deflection(discrete, pressure=-plate.density * plate.thickness * 9.81, held=corners)
    # equal by symmetry; 1e-7 is the rounding of the solution
    np.testing.assert_allclose(list(held.reactions.values()), plate.mass * 9.81 / 6, rtol=1e-7)
    np.testing.assert_allclose([held.total[name][0] for name in corners], 0, atol=1e-12)
    free = static_deflection(discrete, forces=dict.fromkeys(corners, plate.mass * 9.81 / 6))
    for name in plate.attachments:  # the same forces in another way: the elastic part is the same
        np.testing.assert_allclose(held.elastic[name], free.elastic[name], atol=1e-9)


def test_a_square_held_at_its_corners_sags_as_published():
    corners = dict(zip("abcd", SQUARE, strict=True))
    plate = Plate(SQUARE, 1e-3, E, RHO, NU, corners | {"m": (0, 0)})
    sag = static_deflection(discretise(plate, "kirchhoff", 2), pressure=1.0, held="abcd").total["m"][0]
    # [0.0255 q a^4 / D]: three digits are published for Poisson's ratio 0.3
    assert sag * plate.bending_stiffness == pytest.approx(0.0255, abs=6e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attachments": {"a": (0.7, 0.0)}}, "lies 0.2 m outside the plate"),
        ({"polygon": [[0, 0], [1, 1], [1, 0], [0, 1]]}, "sides 1 and 3 of the polygon intersect"),
        ({"thickness": -1.0}, "thickness of a plate must be a positive number"),
        ({"poisson_ratio": 0.7}, "Poisson's ratio lies between"),
        ({"polygon": [[0, 0], [1, 1]]}, "a list of at least three points"),
        ({"polygon": [[0, 0], [1, 0], [1, 0], [0, 1]]}, "corners 2 and 3 of the polygon are the same point"),
        ({"polygon": [[0, 0], [1, 0], [2, 0]]}, "lie on a line"),
        ({"theory": "thick"}, "'thick' is not a plate theory"),
        ({"modes": 999}, "1000 modes cannot be found on this mesh"),
    ],
)
def test_invalid_plates_are_refused(change, words):
    given = {"polygon": SQUARE, "thickness": 0.01, "elastic_modulus": E, "density": RHO} | change
    options = {key: given.pop(key) for key in ("theory", "modes") if key in given}
    with pytest.raises(InputError, match=words) as error:
        plate_modes(Plate(**given), refinements=0, **options)
    assert "\n" not in str(error.value)


def test_a_plate_that_is_not_held_is_refused():
    plate = Plate(SQUARE, 0.01, E, RHO, NU, {"a": SQUARE[0], "b": SQUARE[2]})
    with pytest.raises(InputError, match="do not constrain the plate"):
        static_deflection(discretise(plate, refinements=1), held=["a", "b"])
    with pytest.raises(InputError, match="the plate has no attachment 'c'"):
        static_deflection(discretise(plate, refinements=0), forces={"c": 1.0})


@pytest.mark.parametrize(
    ("corners", "points", "area"),
    [
        ([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]], [[0.5, 0.5], [1.5, 0], [1, 1.2]], 3),
        ([[0, 0], [4, 0], [4, 3], [2, 0.3], [0, 3]], [], 6.6),
        ([[0, 0], [5, 0.2], [0, 0.4]], [[1, 0.2]], 1),
    ],
)
def test_meshes_of_polygons_fill_them_and_have_attachments_at_corners(corners, points, area):
    mesh = triangulate(corners, points)
    sizes = np.abs(mesh.mapping().detDF(np.zeros((2, 1))).ravel()) / 2
    assert sizes.sum() == pytest.approx(area, rel=1e-12)  # none lies outside or on another one
    edges = mesh.p[:, mesh.facets[1]] - mesh.p[:, mesh.facets[0]]
    assert np.linalg.norm(edges, axis=0).max() < np.sqrt(area) / 2 * (1 + 1e-9)
    for point in [*corners, *points]:
        assert np.abs(mesh.p.T - point).sum(axis=1).min() < 1e-12
