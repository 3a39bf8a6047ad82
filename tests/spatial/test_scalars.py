"""Dual, batched and complex numbers compute what floats do: one table of operations, every kind of number."""

import cmath
import math

import numpy as np
import pytest

from parflex.spatial.batched import BatchedNumber, Decisions, VariedNumberError, gathered, nominal
from parflex.spatial.dual import ComplexPair, Dual, Sensitive

BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "arctan2": np.arctan2,
    "hypot": np.hypot,
    "mixed": lambda x, y: 2.0 * x - y / 3.0 + (1.0 - x) * (0.5 / y) - 1 * x + 0 * y,
}
UNARY = {
    "negative": lambda x: -x,
    "positive": lambda x: +x,
    "absolute": abs,
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "inverse root": lambda x: x**-0.5,
    "reciprocal": lambda x: 1.0 / x,
    "shift": lambda x: 1.5 + x + 0.25,
    "less": lambda x: 1.5 - x - 0.25,
    "root": np.sqrt,
    "sine": np.sin,
    "cosine": np.cos,
}
OF_ROWS = {"tangent": np.tan, "tanh": np.tanh, "arcsine": np.arcsin, "arccosine": np.arccos, "arctangent": np.arctan}
OF_PAIRS = ("add", "subtract", "multiply", "divide", "mixed", "negative", "positive", "square", "reciprocal", "shift")
X, Y = np.array([0.3, 0.7, 0.45]), np.array([0.9, 0.2, 0.6])
DX, DY = np.array([[1.0, -0.5, 0.2], [0.0, 0.3, 0.4]]), np.array([[0.0, 0.7, 0.1], [1.0, -0.2, 0.6]])  # 2 directions
STEP = 1e-6


def two(function):
    return function if function in BINARY.values() else lambda x, y: function(x) + 0.0 * y


ALL = {name: two(function) for name, function in (BINARY | UNARY | OF_ROWS).items()}


def slopes_by_differences(function):
    """Along both directions, of each row."""
    return np.array(
        [
            (function(X + STEP * a, Y + STEP * b) - function(X - STEP * a, Y - STEP * b)) / (2 * STEP)
            for a, b in zip(DX, DY, strict=True)
        ]
    )


@pytest.mark.parametrize("name", ALL)
def test_batched_numbers_compute_in_each_row_what_floats_do(name):
    result = ALL[name](BatchedNumber(X), BatchedNumber(Y))
    np.testing.assert_allclose(gathered(result, 3), [ALL[name](x, y) for x, y in zip(X, Y, strict=True)], rtol=1e-14)


@pytest.mark.parametrize("kind", [Dual, Sensitive])
@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_dual_numbers_have_the_slopes_of_differences(name, kind):
    duals = [ALL[name](kind(x, a), kind(y, b)) for x, y, a, b in zip(X.tolist(), Y.tolist(), DX.T, DY.T, strict=True)]
    np.testing.assert_allclose(ALL[name](X, Y), [dual.value for dual in duals], rtol=1e-14)
    slopes = np.array([dual.slope for dual in duals]).T
    np.testing.assert_allclose(slopes, slopes_by_differences(ALL[name]), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", OF_PAIRS)
def test_complex_pairs_compute_what_complex_numbers_do(name):
    for a, b, c, d in ((0.3, -0.4, 0.9, 0.2), (-1.2, 0.5, 0.0, 0.7)):
        result, expected = ALL[name](ComplexPair(a, b), ComplexPair(c, d)), ALL[name](complex(a, b), complex(c, d))
        assert cmath.isclose(complex(result.re, result.im), expected, rel_tol=1e-14)


def test_a_dual_number_of_sensitive_ones_has_second_derivatives():
    x = Dual(Sensitive(0.3, np.array([1.0])), np.array([Sensitive(1.0, np.array([0.0]))], dtype=object))
    assert np.sin(x * x).slope[0].slope[0] == pytest.approx(2 * math.cos(0.09) - 4 * 0.09 * math.sin(0.09))


def test_zeros_and_ones_beside_a_number_cost_nothing():
    for x in (BatchedNumber(X), Dual(0.3, DX[:, 0])):
        assert x + 0 is x
        assert 0.0 + x is x
        assert x * 0 == 0.0
        assert isinstance(0 * x, float)
    x = BatchedNumber(X)
    assert 1 * x is x


def test_numbers_of_designs_decide_as_the_nominal_one_and_mark_the_others():
    decisions = Decisions(3)
    x = BatchedNumber(X, decisions)
    assert x < 0.4
    assert decisions.differ.tolist() == [False, True, True]
    assert np.sign(x - 0.45) == -1
    assert nominal(x) == 0.3
    with pytest.raises(VariedNumberError):
        float(x)


def test_designs_without_a_finite_number_are_marked():
    decisions = Decisions(3)
    np.sqrt(BatchedNumber(X, decisions) - 0.5)
    1.0 / (BatchedNumber(X, decisions) - 0.45)
    assert decisions.differ.tolist() == [True, False, True]


def test_rows_that_are_no_designs_do_not_compare():
    with pytest.raises(TypeError):
        assert BatchedNumber(X) < 0.4


def test_what_is_zero_in_value_alone_is_not_zero_if_it_has_slopes():
    assert not BatchedNumber(np.zeros(3), Decisions(3))
    assert Sensitive(0.0, DX[:, 0])
    assert not Sensitive(0.0, 0 * DX[:, 0])


def test_systems_are_solved_in_each_row_with_pivots_of_its_own():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3))
    A[1, 0, 0] = 0.0
    entries = np.array([[BatchedNumber(np.ascontiguousarray(A[:, i, j])) for j in range(3)] for i in range(3)])
    rhs = np.array([BatchedNumber(np.ascontiguousarray(b[:, i])) for i in range(3)])
    from parflex.spatial.linear import solve

    np.testing.assert_allclose(gathered(solve(entries, rhs), 4), np.linalg.solve(A, b[:, :, None])[:, :, 0], rtol=1e-12)
