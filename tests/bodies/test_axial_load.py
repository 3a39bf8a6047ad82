"""Beams under axial load: where they buckle, how they vibrate, and that bending shortens their chord."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from numpy.polynomial import polynomial as poly
from support.oracles import columns
from support.robots import load_robot

import parflex
from parflex import SingularError
from parflex.bodies.modal import ModalData, load_modal, normalised, save_modal

L, E, DENSITY, THIN, WIDE = 1.0, 2e11, 7870.0, 2e-3, 3e-3
AREA, I = THIN * WIDE, WIDE * THIN**3 / 12  # of the plane that bends easily
EI = E * I
EXACT = {  # of P L^2 / EI; of the third the root of tan x = x
    "pinned": np.pi**2,
    "clamped-free": np.pi**2 / 4,
    "clamped-pinned": scipy.optimize.brentq(lambda x: np.tan(x) - x, 4.4, 4.6) ** 2,
    "clamped-clamped": 4 * np.pi**2,
}
WAYS = ("in the plane", "in space, along y", "in space, along z", "in space, rolled")


def column(ends: str, elements: int, way: str = WAYS[0], **beam):
    """A steel strip along x that bends easily in one plane; `beam` are further keys of its beam."""
    spatial = way != WAYS[0]
    beam |= {"elements": elements} | ({"roll": 0.6} if way == "in space, rolled" else {})
    settings = {f"frame.rod.beam.{key}": value for key, value in beam.items()}
    settings["motion"] = "spatial" if spatial else "planar"
    if way == "in space, along z":
        settings |= {"sections.strip.y": WIDE, "sections.strip.z": THIN}
    if ends == "pinned" and not spatial:
        settings["frame.rod.joint"] = "revolute"
    if ends == "clamped-clamped":
        settings["closure.slide.joint"] = "prismatic"
    on_foot = ends == "pinned" and spatial
    name = "column" if ends == "clamped-free" else "column-on-foot" if on_foot else "column-on-rail"
    return load_robot(name, settings=settings)


def pulled(robot, tension: float):
    """The linear model about the equilibrium under a pull along x at the end."""
    frame = "end" if "end" in robot.tree.places else "strip.tip"
    return parflex.linear_model(robot, about="equilibrium", wrench={frame: [tension, 0, 0]})


def softest(robot, tension: float) -> float:
    """The lowest square of a circular frequency; -1 if the load is refused, as a critical point lies below it."""
    try:
        model = pulled(robot, tension)
    except SingularError as error:
        assert "becomes unstable" in error.message
        return -1.0
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
def test_columns_buckle_as_columns_of_cubic_elements_do(ends, published, way, figure):
    """Four ways to hold a column, both planes of bending: 12/pi^2 and so on above the exact loads, falling as h^4."""
    exact, unit = EXACT[ends], EI / L**2
    for elements, ratio in published.items():
        expected = columns.buckling(elements, ends)
        figure(f"{ends}, {way}, {elements} elements: buckling load over the exact one", round(expected / exact, 5))
        assert buckles_at(column(ends, elements, way), expected * unit)
        # the last decimal that is given
        assert expected / exact == pytest.approx(ratio, abs=0.6 * 10.0 ** -(len(str(ratio)) - 2))


@pytest.mark.parametrize("way", WAYS)
def test_a_pinned_rod_vibrates_under_load_as_the_closed_form_says(way, figure):
    """f = f1 sqrt(1 + P / P_E) of tension and compression, exact for the sine in which a pinned rod bends."""
    euler = np.pi**2 * EI / L**2
    rod = column("pinned", 4, way)
    first = np.pi**2 * np.sqrt(EI / (DENSITY * AREA)) / L**2
    errors = []
    for share in (-0.9, -0.5, 0.0, 0.5, 4.0):
        result = np.sqrt(softest(rod, share * euler))
        errors.append(float(result / (first * np.sqrt(1 + share)) - 1))
    figure(f"pinned rod of four elements {way}: frequencies under load, relative", str(np.round(errors, 5)))
    # four elements buckle 0.05 % late, which counts ten times where a tenth of the stiffness is left; under four
    # Euler loads the same error of the shape counts once
    assert np.abs(errors).max() < 3e-3


def test_without_the_term_a_pinned_element_buckles_in_tension():
    """With `axial = "linear"` the chord grows by v^2 / 2L, which softens in tension; keys of beams go first."""
    euler, hinge = np.pi**2 * EI / L**2, {"frame.rod.joint": "revolute"}
    for keys, linear in (
        ({"frame.rod.beam.axial": "linear"}, True),
        ({"axial": "linear"}, True),
        ({"axial": "linear", "frame.rod.beam.axial": "mean"}, False),
    ):
        rod = load_robot("column-on-rail", settings=hinge | keys)
        assert softest(rod, 0.2 * euler) > 0
        assert (softest(rod, 0.4 * euler) < 0) == linear


@pytest.mark.verify
def test_columns_with_linear_strain_buckle_late(figure):
    """With `axial = "linear"` two, four and eight elements buckle 28, 6 and 1 percent above Euler, one not at all."""
    euler, result = np.pi**2 * EI / (2 * L) ** 2, {}
    for elements in (2, 4, 8):
        rod = column("clamped-free", elements, axial="linear")
        share = scipy.optimize.brentq(lambda share, rod=rod: softest(rod, -share * euler), 0.5, 1.6, xtol=1e-4)
        result[elements] = share
        figure(f"column of {elements} elements, linear strain: buckling load over Euler's", result[elements])
    assert [round(100 * (result[n] - 1)) for n in (2, 4, 8)] == [28, 6, 1]
    single = column("clamped-free", 1, axial="linear")
    # squares of frequencies: only the shortening of the rod changes
    assert softest(single, -0.9 * euler) == pytest.approx(softest(single, 0.0), rel=2e-3)


def test_leaving_axial_out_is_linear_strain_everywhere():
    """`without = ["axial"]` and `axial = "linear"` are the same robot, in functions, programs and simulations."""
    rod = column("pinned", 2)
    linear = column("pinned", 2, axial="linear")
    load = {"end": [0.3 * np.pi**2 * EI, 0, 0]}
    cases = ((linear, ()), (rod, ["axial"]), (rod, ()))
    words = {"about": "equilibrium", "wrench": load, "modes": 3}
    wanted, result, mean = (parflex.natural_frequencies(rod, without=out, **words).frequencies for rod, out in cases)
    assert np.array_equal(result, wanted) and not np.allclose(mean, wanted, rtol=1e-3)
    words = {"start": {"pose": {"rod.uy": 0.001}}, "wrench": {"end": [5, 0, 0]}, "step": 1e-3}
    runs = (parflex.simulate(robot, time=0.01, without=out, **words) for robot, out in cases)
    wanted, result, mean = (run.columns["energy.elastic"] for run in runs)
    assert np.array_equal(result, wanted) and not np.allclose(mean, wanted, rtol=1e-3)


def test_a_short_column_buckles_where_shear_lets_it(figure):
    """Engesser: P = P_E / (1 + P_E / kGA), for the slopes of the centre line, not the turns of the sections."""
    shear, euler = 2e-5 * E / 2.6 * AREA, np.pi**2 * EI / L**2
    expected = euler / (1 + euler / shear)
    assert expected < 0.75 * euler
    result = []
    for elements in (4, 8):
        rod = column("pinned", elements, shear=True, shear_coefficient=2e-5)
        result.append(scipy.optimize.brentq(lambda x, rod=rod: softest(rod, -x * expected), 0.99, 1.02, xtol=1e-5) - 1)
    figure("column that shears, 4 and 8 elements: buckling load above Engesser's", str(np.round(result, 5)))
    assert result[0] / result[1] == pytest.approx(4, rel=0.03)  # the second power of the length, as all that shears
    assert abs(4 * result[1] - result[0]) / 3 < 1e-4  # and the limit is Engesser's, but for the next power


def test_bending_takes_from_the_chord_what_the_curve_needs():
    """The chord of an arc is shorter by L k^2/6: u_x = -1/2 int v'^2 without normal force, to the fourth power."""
    rod = column("clamped-free", 1)
    turn = 0.1
    rest = parflex.equilibrium(rod, wrench={"end": [0, 0, 0, 0, 0, turn * EI / L]})
    q = dict(zip(rod.tree.position_names, rest.configuration.q, strict=True))
    assert q["rod.rz"] == pytest.approx(turn, rel=1e-9)
    assert q["rod.ux"] == pytest.approx(-L * turn**2 / 6, rel=1e-6)  # no normal force: a couple alone acts
    assert q["rod.ux"] == pytest.approx(L * (np.sin(turn) / turn - 1), rel=turn**2 / 19)  # sin x / x = 1 - x^2/6 + ...


@pytest.mark.parametrize("sign", [1, -1])
def test_elements_that_are_too_long_for_a_load_are_named_with_how_many_are_enough(sign):
    rod, load = column("pinned", 1), {"end": [sign * 2.5 * EI / L**2, 0, 0]}
    (said,) = parflex.linear_model(rod, about="equilibrium", wrench=load).warnings
    assert "'rod'" in said and ("tension" if sign > 0 else "compression") in said and "use 2 elements" in said
    assert not parflex.linear_model(column("pinned", 2), about="equilibrium", wrench=load).warnings
    assert not parflex.linear_model(rod, about="equilibrium", wrench={"end": [sign * 0.9 * EI / L**2, 0, 0]}).warnings
    if sign < 0:
        (said,) = parflex.linear_model(column("pinned", 1, axial="linear"), about="equilibrium", wrench=load).warnings
        assert 'axial = "mean"' in said


def test_an_arm_of_one_element_that_turns_fast_is_named():
    """Omega sqrt(rho A L^4 / EI) = 6 from an arm that is not stretched: 12 EI / L^2, and twice as much on the way."""
    speed = 6 * np.sqrt(EI / (DENSITY * AREA)) / L**2
    for elements, said in ((1, True), (8, False)):
        turning = {"frame.rod.joint": "revolute", "frame.rod.actuated": True}
        arm = load_robot("column", elements=elements, settings=turning)
        start = {"pose": {}, "velocity": {"rod": speed}}
        run = parflex.simulate(arm, time=0.02, effort={"rod": 0.0}, start=start, step=5e-4)
        assert any("'rod' is in tension" in line for line in run.summary["warnings"]) == said


# a strip clamped at its root, STRIP_MASS per length
LENGTH, STRIP_EA, STRIP_EI, STRIP_MASS = 0.5, 2e5, 4.0, 0.3
POWERS = range(2, 7)  # of x in the deflections: five shapes that are clamped at the root
STRIP_EULER = np.pi**2 * STRIP_EI / (4 * LENGTH**2)


def strip(geometric: bool) -> ModalData:
    """Modes of a clamped strip by Ritz's method: five of bending along y and one of stretch, sums over Gauss points."""
    points, weights = np.polynomial.legendre.leggauss(9)  # exact to degree 17; squares of the shapes have degree 12
    x, weights = (points + 1) / 2 * LENGTH, weights / 2 * LENGTH
    shapes = [np.eye(max(POWERS) + 1)[p] / LENGTH**p for p in POWERS]

    def gram(order: int) -> np.ndarray:
        rows = np.array([poly.polyval(x, poly.polyder(shape, order)) for shape in shapes])
        return (rows * weights) @ rows.T

    K, M, slopes = STRIP_EI * gram(2), STRIP_MASS * gram(0), gram(1)
    values, vectors = scipy.linalg.eigh(K, M)
    nodes = np.concatenate([[[0, 0, 0], [LENGTH, 0, 0]], np.array([[p, 0, 0] for p in x])])
    count = len(values) + 1
    fields = np.zeros((count, len(nodes), 6))
    for k, vector in enumerate(vectors.T):
        shape = vector @ np.array(shapes)
        fields[k, :, 1] = poly.polyval(nodes[:, 0], shape)
        fields[k, :, 5] = poly.polyval(nodes[:, 0], poly.polyder(shape))
    fields[-1, :, 0] = nodes[:, 0] / LENGTH  # stretched evenly by a metre
    masses = np.concatenate([[0, 0], STRIP_MASS * weights])
    stretch = float(masses @ fields[-1, :, 0] ** 2)
    added = np.zeros((count, count, count))
    added[-1, :-1, :-1] = (
        STRIP_EA / LENGTH * vectors.T @ slopes @ vectors
    )  # its normal force STRIP_EA/LENGTH, times products of slopes
    return ModalData(
        nodes=nodes, masses=masses, shapes=fields, modal_stiffnesses=np.append(values, STRIP_EA / LENGTH),
        modal_masses=np.append(np.ones(len(values)), stretch), damping_ratios=np.full(count, 0.01),
        interface=("root", "tip"), geometric=added if geometric else None,
    )  # fmt: skip


def modal_strip(folder, geometric: bool, **settings):
    file = save_modal(strip(geometric), folder / "strip.npz")
    return load_robot("modal-strip", settings={"frame.strip.modal.file": str(file)} | settings)


def test_a_body_with_geometric_stiffness_buckles_at_eulers_load(tmp_path):
    of = modal_strip(tmp_path, True)
    # five polynomials have the sine to 1e-6; the strip is shortened by 2e-4 at the load
    assert softest(of, -0.999 * STRIP_EULER) > 0 > softest(of, -1.001 * STRIP_EULER)
    squares = [softest(of, share * STRIP_EULER) for share in (0.0, 0.5, 2.0, 10.0)]
    assert np.all(np.diff(squares) > 0)
    assert not pulled(of, 0.5 * STRIP_EULER).warnings


def test_without_geometric_stiffness_or_with_linear_strain_the_load_is_reported(tmp_path):
    of, linear = modal_strip(tmp_path, False), modal_strip(tmp_path, True, axial="linear")
    for robot in (of, linear):  # nothing in the data says what stress does, or it is left out
        assert softest(robot, -0.9 * STRIP_EULER) == pytest.approx(softest(robot, 0.0), rel=1e-3)
    for sign, word in ((1, "stiffer"), (-1, "softer")):
        (said,) = pulled(of, sign * 0.5 * STRIP_EULER).warnings
        assert "'strip'" in said and word in said and "geometric" in said
    assert not pulled(of, 0.02 * STRIP_EULER).warnings
    (said,) = pulled(linear, -0.5 * STRIP_EULER).warnings
    assert "linear strain" in said


def test_the_exchange_file_keeps_it_and_refuses_what_cannot_be(tmp_path):
    data = strip(True)
    read = load_modal(save_modal(data, tmp_path / "a.npz"))
    assert np.array_equal(read.geometric, data.geometric)
    assert read.with_modes(3).geometric.shape == (3, 3, 3)
    crooked = data.geometric.copy()
    crooked[-1, 0, 1] *= 2
    for wrong, word in ((data.geometric[:2], "match"), (crooked, "symmetric")):
        with pytest.raises(parflex.InputError, match=word):
            save_modal(replace(data, geometric=wrong), tmp_path / "b.npz")
    with pytest.raises(parflex.InputError, match="as given"):
        normalised(data)
