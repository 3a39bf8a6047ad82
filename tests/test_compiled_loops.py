"""What compiled loops are made of: records read through one address, and functions that are compiled as parts."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from parflex.simulation.integrators import jit
from parflex.simulation.integrators.bundles import Bundle
from parflex.simulation.integrators.inner_code import JITCodeLibrary

Array = np.ndarray


class Several(Bundle):
    """One of each kind of value."""

    address: int  # the name of a field of the systems themselves
    size: float
    row: Array
    table: Array
    cube: Array
    places: Array
    more: int = 7


def several(**changed):
    rng = np.random.default_rng(3)
    given = {
        "address": 5,
        "size": -0.5,
        "row": rng.random(3),
        "table": rng.random((2, 3)),
        "cube": rng.random((2, 3, 4)),
    }
    return Several(**given | {"places": np.array([4, 1])} | changed)


@jit.inner
def weighted(bundle):
    total = bundle.address * 10.0 + bundle.size * bundle.more
    for i in range(bundle.cube.shape[0]):
        for j in range(bundle.cube.shape[1]):
            for k in range(bundle.cube.shape[2]):
                total += (1 + i + 10 * j + 100 * k) * bundle.cube[i, j, k] * bundle.table[i, j] * bundle.row[j]
    return total + bundle.places[0] - bundle.places[1]


@jit.inner
def noted(bundle):
    bundle.row[1] = weighted(bundle)
    return len(bundle.table)


@pytest.fixture(scope="module")
def outer():
    @numba.njit(**jit.OPTIONS)
    def outer(bundle):
        return noted(bundle) + bundle.table[1].sum()

    return outer


def test_compiled_code_reads_and_writes_what_a_bundle_holds(outer):
    for bundle in (several(), several(address=-3, more=2, row=np.ones(3))):
        row = bundle.row.copy()
        i, j, k = np.indices(bundle.cube.shape)
        expected = bundle.address * 10 + bundle.size * bundle.more + 3
        expected += ((1 + i + 10 * j + 100 * k) * bundle.cube * bundle.table[:, :, None] * row[:, None]).sum()
        assert outer(bundle) == pytest.approx(2 + bundle.table[1].sum(), rel=1e-14)  # sums in another order
        assert bundle.row[1] == pytest.approx(expected, rel=1e-14)
        assert bundle.row[0] == row[0]
    assert len(outer.signatures) == 1  # one machine code for all values


def test_a_bundle_is_made_of_its_fields_alone():
    bundle = several()
    assert bundle.address == 5 and bundle.more == 7
    other = bundle._replace(more=8)
    assert other.more == 8 and other.row is bundle.row and bundle.more == 7
    with pytest.raises(TypeError, match="takes address, size"):
        Several(1, 2.0)
    with pytest.raises(TypeError, match="takes address, size"):
        several(colour=1)
    with pytest.raises(TypeError, match="not contiguous"):
        several(table=np.ones((3, 4))[:, ::2])


def test_functions_inside_a_loop_are_optimised_once_as_parts_of_it(outer, monkeypatch):
    optimised = []
    before = JITCodeLibrary._optimize_final_module
    monkeypatch.setattr(
        JITCodeLibrary, "_optimize_final_module", lambda self: (optimised.append(self.name), before(self))[1]
    )

    @numba.njit(**jit.OPTIONS)
    def twice(bundle):
        return noted(bundle) + 2.0 * weighted(bundle)

    twice(several(row=np.ones(3, dtype=np.float32)))  # another kind of bundle: all is compiled anew
    assert sum("weighted" in name or "noted" in name for name in optimised) == 0
    assert sum("twice" in name for name in optimised) == 1
