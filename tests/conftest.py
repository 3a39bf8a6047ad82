"""Hooks and fixtures of the tests: one BLAS thread, long cases, comparison of arrays, figures for the report."""

import gc
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

# Matrices of robots are small: more BLAS threads than one wait for each other and take other workers' processors.
# Before NumPy is imported; workers and programs that tests start inherit it.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from support.cases import VERIFY  # noqa: E402

FEW = 2  # one case may pass by chance, two differ in a parameter


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip long tests unless `make verify` runs.

    `verify` marks a test or a case (`pytest.param(..., marks=pytest.mark.verify)`). `few` keeps the first two cases of
    a parametrised test, and `few("delta", "3rrr")` those whose names contain one of the texts.
    """
    if VERIFY:
        return
    runs: Counter[str] = Counter()
    for item in items:
        function = item.nodeid.partition("[")[0]
        long = item.get_closest_marker("verify")
        few = item.get_closest_marker("few")
        if not long and few and few.args:
            long = not any(text in item.name.partition("[")[2] for text in few.args)
        elif not long and few:
            runs[function] += 1
            long = runs[function] > FEW
        if long:
            item.add_marker(pytest.mark.skip(reason="long: make verify"))


def _within(self: Any, actual: Any) -> bool:
    """Whether an array of numbers is within the tolerance everywhere, by the rule of `pytest.approx`."""
    arrays = (np.asarray(self.expected), actual)
    if not isinstance(actual, np.ndarray) or any(array.dtype.kind != "f" for array in arrays):
        return False
    if actual.shape != arrays[0].shape:
        return False
    allowed = 1e-12 if self.abs is None else self.abs
    if self.rel is not None or self.abs is None:
        allowed = np.maximum((1e-6 if self.rel is None else self.rel) * np.abs(arrays[0]), allowed)
    with np.errstate(invalid="ignore"):  # what is not a number, or infinite on both sides, is compared one by one
        return bool(np.all(np.abs(arrays[0] - actual) <= allowed))


def compare_arrays_at_once() -> None:
    """Let `pytest.approx` compare arrays as a whole first: 100 000 numbers take a second one by one."""
    kind: Any = type(pytest.approx(np.zeros(1)))
    if hasattr(kind, "one_by_one"):
        return
    one_by_one = kind.__eq__
    kind.__eq__ = lambda self, actual: _within(self, actual) or one_by_one(self, actual)
    kind.one_by_one = one_by_one


compare_arrays_at_once()


def pytest_collection_finish() -> None:
    """Search for cycles only among what tests make: modules and tests stay, and programs are made by the thousand."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


class Figures:
    """Figures of a test: printed, and collected in the report of `make verify`."""

    def __init__(self, test: str) -> None:
        self.test = test

    def __call__(self, what: str, value: float | str, limit: float | str | None = None) -> None:
        shown = f"{value:.3g}" if isinstance(value, float) else str(value)
        print(f"{what}: {shown}" + (f" (limit {limit})" if limit is not None else ""))
        if target := os.environ.get("PARFLEX_FIGURES"):
            line = {"test": self.test, "what": what, "value": shown, "limit": str(limit or "")}
            with Path(target).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def below(self, what: str, value: float, limit: float) -> None:
        """Note a figure and assert that it is below its limit."""
        self(what, value, limit)
        assert value < limit, what


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figures:
    """Return what notes the figures of this test."""
    return Figures(request.node.name)
