"""What compiled loops are made of: Python that is read as such, records read through one address, and their cache."""

from __future__ import annotations

import math

import numpy as np
import pytest

from parflex.codegen.loop_code import loop_functions
from parflex.codegen.loop_code.kinds import Bundle
from parflex.codegen.loop_code.unsupported import UnsupportedError
from parflex.simulation.integrators import jit

Array = np.ndarray
LIMIT = 3


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


@jit.compiled
def outer(bundle):
    total = 0
    for value in bundle.table[1]:
        total += value
    return noted(bundle) + total


@jit.inner
def first_beyond(values, limit):
    for k in range(len(values)):
        if not values[k] <= limit:
            return k, values[k]
    return -1, math.inf


@jit.compiled
def walk(values, whole, start, flag):
    """A little of all that loops are written with."""
    left, turns, found = start, 0, 0.0
    while left > 0.0:
        turns += 1
        if turns % 2 == 0:
            left -= 2.0
            continue
        left, found = left - 1, max(found, abs(left), 0.5) if flag and not turns > 10**2 else found
        if 40 < turns < 60 or turns == LIMIT**3:
            break
    place, value = first_beyond(values[1, 1:], 0.5)
    part = values[:, :2]
    for row, weight in ((part[0], 1), (part[1], 2)):
        for k in range(len(row) - 1, -1, -1):
            found += weight * row[k] ** 2
    values[0, -1], values[1, -1] = values[1, -1], values[0, -1]
    kept = (turns // 2, found) if math.isfinite(value) else (-turns // 2, math.sqrt(found))
    return kept[0] + whole[place] if place >= 0 else -1, kept[1], (-7 % 3) == 2, math.floor(-0.5) + float(-7 // 2)


def test_a_loop_does_what_its_python_does():
    rng = np.random.default_rng(5)
    for k in range(20):
        values, whole = rng.random((2, 4)) * (1 if k % 3 else 0.4), np.arange(4) * 10
        given = (values.copy(), whole, float(rng.uniform(-1, 90)), bool(k % 2))
        same = (given[0].copy(), *given[1:])
        expected, inside = plain(*given), walk(*same)
        assert inside == expected and [type(x) for x in inside] == [int, float, bool, float]
        assert np.array_equal(given[0], same[0])


def plain(*given):
    """The loop as Python runs it."""
    names = {"first_beyond": first_beyond.function, "math": math, "LIMIT": LIMIT}
    return type(walk.function)(walk.function.__code__, names)(*given)


@jit.inner
def bent(x, limit, values, k):
    if not x <= limit:
        return math.sqrt(x) - values[k]
    return -x if x > 0.0 else values[k]


@jit.compiled
def row_by_row(values, whole, found, limit):
    """Turns side by side, and turns written out; the first ones choose, call, and take whole numbers."""
    for n in range(len(whole)):
        for k in jit.abreast(LIMIT):
            whole[n, k] = int(values[k] * 10.0) - n if values[k] < limit else whole[n, k]
    for k in jit.abreast(len(values)):
        own = values[k]
        found[k] = bent(own, limit, values, k) if own == own and k != 2 else max(own, 1.0)
    for k in jit.unrolled(len(values)):
        found[k] += 0.5 * found[max(k - 3, 0)]


def test_turns_side_by_side_do_what_python_does(capfd):
    rng = np.random.default_rng(6)
    names = {"jit": jit, "bent": bent.function, "math": math, "LIMIT": LIMIT}
    plainly = type(row_by_row.function)(row_by_row.function.__code__, names)
    for size in (3, 4, 8, 9, 21):
        values = rng.uniform(-1, 1, size)
        values[size // 2] = np.nan
        given = [values, rng.integers(-9, 9, (2, LIMIT)), np.zeros(size), 0.3]
        given[1][:, size // 2 :] += 1
        same = [values, given[1].copy(), np.zeros(size), 0.3]
        plainly(*given)
        row_by_row(*same)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(given[:3], same[:3], strict=True))
    unit = loop_functions._Unit()
    text = unit.text(row_by_row, tuple(map(loop_functions.kind_of, same)))
    loop_functions._machine_code(text)
    assert not capfd.readouterr().err  # LLVM says which loops it leaves as they are


def test_compiled_code_reads_and_writes_what_a_bundle_holds():
    for bundle in (several(), several(address=-3, more=2, row=np.ones(3))):
        row = bundle.row.copy()
        i, j, k = np.indices(bundle.cube.shape)
        expected = bundle.address * 10 + bundle.size * bundle.more + 3
        expected += ((1 + i + 10 * j + 100 * k) * bundle.cube * bundle.table[:, :, None] * row[:, None]).sum()
        assert outer(bundle) == pytest.approx(2 + bundle.table[1].sum(), rel=1e-14)  # sums in another order
        assert bundle.row[1] == pytest.approx(expected, rel=1e-14)
        assert bundle.row[0] == row[0]
    assert len(outer.ready) == 1  # one machine code for all values


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


@jit.compiled
def listing(values):
    return [2 * value for value in values]


@jit.compiled
def both(values):
    found = values
    found = 1.0
    return found


@jit.compiled
def sometimes(x):
    if x > 0.0:
        return 1.0


def test_what_loops_cannot_be_is_refused_with_its_line():
    for loop, given, match in (
        (listing, np.ones(2), "know no such expression.*for value in values"),
        (both, np.ones(2), "two kinds"),
        (sometimes, 1.0, "not every way"),
    ):
        with pytest.raises(UnsupportedError, match=match):
            loop(given)
    with pytest.raises(TypeError, match="take no str"):
        both("text")
    with pytest.raises(TypeError, match="not contiguous"):
        first_beyond(np.ones((4, 2))[:, 0], 1.0)


def test_a_compiled_loop_is_read_from_the_disk_and_kept_for_one_state_of_its_code(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    fresh = loop_functions.LoopFunction(first_beyond.function)
    assert not fresh.is_kept()
    assert fresh(np.array([0.1, 0.7]), 0.5) == (1, 0.7)
    again = loop_functions.LoopFunction(first_beyond.function)
    assert again.is_kept()
    with monkeypatch.context() as patch:
        patch.setattr(loop_functions, "_machine_code", lambda *_: pytest.fail("compiled again"))
        assert again(np.array([0.1, 0.7]), 0.5) == (1, 0.7)
    texts = []
    for text in ("one", "another", "one"):
        (tmp_path / "called.py").write_text(text)
        texts.append(loop_functions.sources.__wrapped__(str(tmp_path)))
    assert texts[0] == texts[2] != texts[1]


class Switched(Bundle):
    """A number, and one that is mostly zero."""

    _switches = ("times",)
    size: float
    times: int


@jit.compiled
def enlarged(bundle):
    return bundle.size * bundle.times if bundle.times != 0 else bundle.size


def test_where_a_switch_is_zero_a_loop_is_compiled_for_that_alone(monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    texts = []
    compile_text = loop_functions._machine_code
    monkeypatch.setattr(
        loop_functions, "_machine_code", lambda text, wide: texts.append(text) or compile_text(text, wide)
    )
    assert [enlarged(Switched(1.5, times)) for times in (0, 2, 0, 4)] == [1.5, 3.0, 1.5, 6.0]
    without, with_it = (text.count(" load i64") for text in texts)  # compiled once each
    assert without < with_it
