"""State space and frequency response: the receptance of a beam in closed form, SciPy's own systems, and files."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.io
import scipy.linalg
import scipy.signal
from support import bars
from support.command_line import answered, refused

import parflex
from parflex import InputError, state_space
from parflex.statics.mesh_error import bound_at


def receptance(hertz: np.ndarray) -> np.ndarray:
    """Deflection of the end of the cantilever per unit force there, by the differential equation of the beam."""
    lam = (bars.WEIGHT * (2 * np.pi * hertz) ** 2 / bars.EI) ** 0.25 * bars.LENGTH
    top = np.sin(lam) * np.cosh(lam) - np.cos(lam) * np.sinh(lam)
    return bars.LENGTH**3 / (bars.EI * lam**3) * top / (1 + np.cos(lam) * np.cosh(lam))


def test_the_response_of_a_cantilever_is_that_of_the_differential_equation(tmp_path, figure):
    hertz = np.array([1.0, 5.0, 20.0, 40.0, 60.0, 110.0])  # through two resonances, at 12.8 and 80 Hz
    errors = []
    for elements in (10, 20):
        bar = bars.cantilever(tmp_path, elements=elements)
        result = state_space(bar, ["bar.tip.fy"], ["bar.tip.y"]).response(hertz)[:, 0, 0]
        assert np.abs(result.imag).max() == 0.0  # nothing damps
        errors.append(float(np.abs(result / receptance(hertz) - 1).max()))
    figure("cantilever: receptance of twenty elements against the closed form", errors[1])
    # zeros and poles are off by up to (3.9 / elements)^4 / 1440; 60 Hz is a fifteenth from a zero: thirty times that
    assert errors[1] < 3e-5
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.05)  # the fourth power of the element length


def test_the_response_is_that_of_the_matrices_and_differentiates_in_time():
    robot = parflex.load("dualemps")
    system = state_space(
        robot,
        ["11", "17.fx"],
        ["17.y", "velocity:17.y", "acceleration:17.y", "13.uy", "21", "17.theta"],
        servo=1e6,
        servo_damping=300.0,
    )
    hertz = np.array([0.5, 7.0, 33.0, 150.0])
    with pytest.warns(parflex.ParflexWarning, match="both ends clamped"):  # the peer has the same elements
        result = system.response(hertz)
    for k, f in enumerate(hertz):
        s = 2j * np.pi * f
        expected = system.C @ np.linalg.solve(s * np.eye(len(system.A)) - system.A, system.B) + system.D
        # one solve of condition 1e8 each
        assert np.abs(result[k] - expected).max() < 1e-7 * np.abs(expected).max()
        assert result[k, 1] == pytest.approx(s * result[k, 0], rel=1e-9)  # velocity, then acceleration
        assert result[k, 2] == pytest.approx(s * s * result[k, 0], rel=1e-6, abs=1e-9 * np.abs(result[k, 2]).max())
    assert np.all(np.linalg.eigvals(system.A).real < 0)


def test_reciprocity_holds_between_any_two_places():
    robot = parflex.load("navaro")
    words = ["platform.fx", "platform.mz", "leg1.3.tip.fy"]
    system = state_space(robot, words, ["platform.x", "platform.rz", "leg1.3.tip.y"], pose="pose-3")
    for H in system.response([10.0, 45.0, 61.0]):
        assert np.abs(H - H.T).max() < 1e-9 * np.abs(H).max()  # rounding near resonances


def test_static_response_is_the_compliance_and_the_effort_of_a_joint_its_row(tmp_path):
    arm = '[[frame]]\nname = "arm"\njoint = "revolute"\nspring = { stiffness = 8 }\ninertia = { ZZ = 2 }\n'
    system = state_space(bars.robot(tmp_path, arm), ["arm"], ["arm", "acceleration:arm"])
    assert system.response([0.0])[0, :, 0] == pytest.approx([1 / 8, 0], abs=1e-15)
    assert np.abs(system.A - [[0, 1], [-4, 0]]).max() < 1e-14  # rounding
    assert pytest.approx(np.array([[0], [0.5]]), abs=1e-15) == system.B
    assert np.abs(system.C - [[1, 0], [-4, 0]]).max() < 1e-14
    assert pytest.approx(np.array([[0], [0.5]]), abs=1e-15) == system.D
    assert system.states == ["arm", "velocity:arm"]
    resonance = system.response([1 / np.pi])  # two radians a second: a pole
    assert not np.isfinite(resonance).all() or np.abs(resonance).max() > 1e9


@pytest.mark.parametrize("kind", ["npz", "mat"])
def test_the_file_holds_matrices_response_and_names(kind, tmp_path, capsys):
    path = tmp_path / f"plant.{kind}"
    answer = answered(
        capsys, "statespace", "dualemps", "--servo", "1e6", "--input", "11", "--output", "17.y,velocity:17.x",
        "--frequencies", "1:100:5:log", "--out", str(path),
    )  # fmt: skip
    stored = np.load(path) if kind == "npz" else scipy.io.loadmat(path)
    for key in ("A", "B", "C", "D"):
        assert np.array_equal(stored[key], np.array(answer[key]))
    names = {key: [str(np.ravel(name)[0]) for name in np.ravel(stored[key])] for key in ("states", "inputs", "outputs")}
    assert names == {key: answer[key] for key in names}
    assert names["outputs"] == ["17.y", "velocity:17.x"]
    real, imaginary = (np.array(answer["response"][part]) for part in ("real", "imaginary"))
    assert np.array_equal(stored["response"], real + 1j * imaginary)
    assert np.ravel(stored["frequencies_hz"]) == pytest.approx(np.geomspace(1, 100, 5))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]  # nothing half-written is left


def test_unknown_inputs_and_outputs_are_refused(capsys):
    robot = parflex.load("dualemps")
    for inputs, outputs, word in (
        (["11"], ["17.q"], "17.q"),
        (["12x"], ["17.y"], "12x"),
        (["13.uy"], ["17.y"], "13.uy"),
        (["17.fx"], ["speed:17.y"], "speed"),
        ([], ["17.y"], "no input"),
        (["17.fx"], [], "no output"),
    ):
        with pytest.raises(InputError, match=word):
            state_space(robot, inputs, outputs, lock="none")
    with pytest.raises(InputError, match="locked"):
        state_space(robot, ["11"], ["17.y"])
    ask = ("statespace", "dualemps", "--input", "17.fx", "--output", "17.y", "--frequencies")
    for span in ("1:2", "5:1:3", "0:10:3:log", "1:10:3:lin"):
        assert refused(capsys, *ask, span)["key"] == "frequencies", span


def test_too_few_elements_are_reported_as_for_natural_frequencies(tmp_path):
    bar = bars.cantilever(tmp_path, elements=1)
    system = parflex.state_space(bar, ["bar.tip.fy"], ["bar.tip.y"])
    said = parflex.natural_frequencies(bar).model.warnings
    assert said and system.model.warnings == said
    own = 22.3733 / (2 * np.pi) * np.sqrt(bars.EI / bars.WEIGHT) / bars.LENGTH**2  # Hz: held at both ends
    cases = {0.3: "", 0.5: "zeros up to 15% too high, by 'bar' most.*use 2", 0.96: "reaches the lowest.*'bar'.*use 2"}
    for share, words in cases.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = system.response([1.0, share * own])[1, 0, 0]
        assert [bool(re.search(words, str(one.message))) for one in caught] == [True] * bool(words)
        off = abs(result / receptance(share * own) - 1)
        assert off > 0.2 if words else off < 0.1


@pytest.mark.parametrize("elements", [1, 2, 3])
def test_resonances_and_zeros_are_within_the_bound_of_what_elements_leave_out(elements, tmp_path):
    bar = bars.cantilever(tmp_path, elements=elements)
    model = parflex.state_space(bar, ["bar.tip.fy"], ["bar.tip.y"]).model
    row = model.configuration.frame_rows("bar.tip")[1] @ model.J
    held = scipy.linalg.null_space(row[None])
    unit = np.sqrt(bars.EI / bars.WEIGHT) / bars.LENGTH**2 / (2 * np.pi)
    free, pinned = (1.8751041, 4.6940911, 7.8547574), (3.9266023, 7.0685827, 10.2101761)
    judged = 0
    for basis, exact in ((np.eye(len(row)), free), (held, pinned)):
        values = scipy.linalg.eigh(basis.T @ model.K @ basis, basis.T @ model.M @ basis, eigvals_only=True)
        for value, lam in zip(values, exact, strict=False):
            bound = bound_at(bar, lam**2 * unit).largest
            off = np.sqrt(value) / (2 * np.pi) / (lam**2 * unit) - 1
            assert -1e-6 < off < bound  # shapes of elements are stiffer than the beam, by rounding not more
            judged += bool(np.isfinite(bound))
    assert judged >= 2 * elements
