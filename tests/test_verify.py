"""The report of `make verify` and its mutations, the list of cases that only it runs, and arrays in `pytest.approx`."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import left_out
from support.mutation import mutate, source_file
from verify import TESTS, Report


def test_a_mutation_changes_one_function_only(tmp_path):
    source = "def f(x):\n    return 2 * x\n\n\nclass A:\n    def f(self, x):\n        return 2 * x\n"
    assert mutate(source, "A.f", "2 * x", "3 * x") == source[:-6] + "3 * x\n"
    for name, old, message in (("A.f", "4 * x", "0 times"), ("A.g", "2 * x", "no function"), ("A", "x", "2 times")):
        with pytest.raises(ValueError, match=message):
            mutate(source, name, old, "")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text(source)
    assert source_file("package.module.A.f", tmp_path) == (tmp_path / "package" / "module.py", "A.f")
    with pytest.raises(ValueError, match="no module"):
        source_file("package.other.f", tmp_path)


def test_the_report_of_verify_is_not_ok_after_a_failure_or_an_interrupt():
    assert "# Verification: ok" in Report(rows=[("tests", "passed", "3 cases", 1.0)]).text()
    assert "NOT OK" in Report(failures=["a mutation survived"]).text()
    assert "Interrupted" in Report(interrupted=True).text()


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
