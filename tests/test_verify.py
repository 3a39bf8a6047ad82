"""The report of `make verify`, the list of cases that only it runs, and arrays in `pytest.approx`."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import left_out
from verify import SOURCE, TESTS, Mutation, Outcome, report


def test_a_mutation_that_survives_or_was_not_tried_is_not_ok():
    one, other = (Mutation(what, "errors.py", "old", "new", "test_laws.py") for what in ("sign", "factor"))
    fine = Outcome(suite="passed", control="passed", mutations={one: "noticed", other: "noticed"})
    assert fine.ok
    assert "# Verification: ok" in report(fine, [one, other])
    for verdict in ("survived", "not run: pytest ended with 4"):
        outcome = Outcome(suite="passed", control="passed", mutations={one: "noticed", other: verdict})
        assert not outcome.ok
        assert verdict in report(outcome, [one, other])
    assert not Outcome(suite="passed", control="failed", mutations=fine.mutations).ok
    assert "not run" in report(Outcome(interrupted=True), [one])
    with pytest.raises(ValueError, match="0 times"):
        Mutation("", "errors.py", "no such text", "", "").apply(SOURCE / "parflex")


def test_cases_that_are_left_out_of_runs_exist_and_leave_others_of_their_test(request):
    """Else a name that has changed would bring a long case back into every run."""
    collected: dict[str, list[str]] = {}
    for item in request.session.items:
        collected.setdefault(item.path.name, []).append(item.name)
    for file, cases in left_out().items():
        source = (TESTS / file).read_text(encoding="utf-8")
        for case in cases:
            function = case.partition("[")[0]
            assert f"def {function}(" in source, f"{file}: {case}"
            own = [name for name in collected.get(file, []) if name.partition("[")[0] == function]
            if len(own) > 1:  # the whole file is collected, or all cases of the test
                assert any(name.startswith(case) for name in own), f"{file}: {case}"
                assert not all(name.startswith(cases) for name in own), f"{file}: every case of {function} is left out"


@pytest.mark.parametrize("tolerance", [{}, {"rel": 1e-3}, {"abs": 1e-3}, {"rel": 1e-4, "abs": 1e-3}, {"nan_ok": True}])
def test_arrays_compared_at_once_are_equal_where_they_are_number_by_number(tolerance):
    rng = np.random.default_rng(3)
    equal = 0
    for k in range(60):
        expected = rng.normal(size=(2, 2)) * 10.0 ** rng.integers(-3, 4)
        actual = expected * (1 + 10.0 ** rng.uniform(-8, -2) * rng.normal(size=(2, 2)))
        if k % 3 == 0:
            expected[0, 0] = actual[0, 0] = (np.nan, np.inf, 0.0)[k % 9 // 3]
        wanted = pytest.approx(expected, **tolerance)
        assert (actual == wanted) == wanted.one_by_one(actual)
        equal += actual == wanted
    assert 0 < equal < 60
    assert np.zeros(2) != pytest.approx(np.zeros(3)) and np.ones(2) != pytest.approx(np.array([1.0, np.nan]))
