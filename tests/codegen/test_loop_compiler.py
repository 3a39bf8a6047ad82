"""Loops that are compiled from their Python source, to machine code and to C: they compute what Python does."""

import ctypes
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.codegen import loop_functions
from parflex.codegen import loop_functions as jit
from parflex.codegen.loop_c import c_text, c_type
from parflex.codegen.loop_compiler import TypedLoop, simd_range, unrolled_range
from parflex.codegen.loop_llvm import LoopModule
from parflex.codegen.loop_types import REAL, WHOLE, ArrayKind, CompiledRecord, RecordKind, UnsupportedError, kind_of
from parflex.integrators.driver import METHODS, method_named, new_work
from parflex.simulation.problem import prepare_problem
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
LIMIT = 3


class Several(CompiledRecord):
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
    given = {"address": 5, "size": -0.5, "row": rng.random(3)}
    given |= {"table": rng.random((2, 3)), "cube": rng.random((2, 3, 4))}
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
        for k in simd_range(LIMIT):
            whole[n, k] = int(values[k] * 10.0) - n if values[k] < limit else whole[n, k]
    for k in simd_range(len(values)):
        own = values[k]
        found[k] = bent(own, limit, values, k) if own == own and k != 2 else max(own, 1.0)
    for k in unrolled_range(len(values)):
        found[k] += 0.5 * found[max(k - 3, 0)]


def test_turns_side_by_side_do_what_python_does(capfd):
    rng = np.random.default_rng(6)
    names = {"simd_range": simd_range, "unrolled_range": unrolled_range}
    names |= {"bent": bent.function, "math": math, "LIMIT": LIMIT}
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
    text, _ = LoopModule().text([(row_by_row, tuple(map(kind_of, same)))])
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
    assert not fresh.is_compiled()
    assert fresh(np.array([0.1, 0.7]), 0.5) == (1, 0.7)
    again = loop_functions.LoopFunction(first_beyond.function)
    assert again.is_compiled()
    with monkeypatch.context() as patch:
        patch.setattr(loop_functions, "_machine_code", lambda *_: pytest.fail("compiled again"))
        assert again(np.array([0.1, 0.7]), 0.5) == (1, 0.7)
    texts = []
    for text in ("one", "another", "one"):
        (tmp_path / "called.py").write_text(text)
        texts.append(loop_functions.sources.__wrapped__(str(tmp_path)))
    assert texts[0] == texts[2] != texts[1]


def test_loops_compiled_together_share_machine_code_on_the_disk(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "cache"))
    texts, compile_text = [], loop_functions._machine_code
    monkeypatch.setattr(loop_functions, "_machine_code", lambda *given: texts.append(given) or compile_text(*given))
    row, kinds = np.array([0.1, 0.7]), tuple(map(kind_of, (np.zeros(1), 0.5)))
    for _ in range(2):
        first, second = (jit.LoopFunction(loop.function) for loop in (first_beyond, doubled))
        jit.compile_together((first, kinds), (second, (kinds[0], WHOLE)))
        assert first(row, 0.5) == (1, 0.7) and second(row.copy(), 1) == 1.4
    assert len(texts) == 1


class Switched(CompiledRecord):
    _switches = ("times",)
    size: float
    times: int


@jit.compiled
def enlarged(bundle):
    return bundle.size * bundle.times if bundle.times != 0 else bundle.size


@jit.compiled
def closed(bundle):
    wanted = bundle.times != 0
    return math.gamma(bundle.size) if wanted and bundle.size > 0.0 else bundle.size


def test_what_a_switch_never_lets_run_is_not_compiled():
    assert closed(Switched(1.5, 0)) == 1.5
    with pytest.raises(UnsupportedError, match="cannot call this"):
        closed(Switched(1.5, 1))


def test_where_a_switch_is_zero_a_loop_is_compiled_for_that_alone(monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    texts = []
    compile_text = loop_functions._machine_code
    seen = lambda text, *how: texts.append(text) or compile_text(text, *how)  # noqa: E731
    monkeypatch.setattr(loop_functions, "_machine_code", seen)
    assert [enlarged(Switched(1.5, times)) for times in (0, 2, 0, 4)] == [1.5, 3.0, 1.5, 6.0]
    without, with_it = (text.count(" load i64") for text in texts)  # compiled once each
    assert without < with_it


ROWS, EVERY, STEP, TOLERANCE = 3, 20, 1e-3, 1e-10
EFFORTS = {"5r": 0.3, "dualemps": 60.0, "gough-stewart": 60.0, "3rrr": 0.5}  # N m, N: none reaches its limits


def view_of(array):
    """An array as C has it, on the same memory."""
    ints = ctypes.c_int64 * array.ndim
    kind = type("view", (ctypes.Structure,), {"_fields_": [("at", ctypes.c_void_p), ("n", ints), ("s", ints)]})
    return kind(array.ctypes.data, ints(*array.shape), ints(*[stride // 8 for stride in array.strides]))


def struct_of(kind: RecordKind, bundle):
    """A bundle as C has it."""
    values = []
    for name, held in kind.held:
        value = getattr(bundle, name)
        word = ctypes.c_double if held == REAL else ctypes.c_int64
        values.append((name, view_of(value) if isinstance(held, ArrayKind) else word(value)))
    fields = [(name, type(value)) for name, value in values]
    return type(kind.title, (ctypes.Structure,), {"_fields_": fields})(*(value for _, value in values))


def loop_in_c(method, system, work, folder: Path):
    """The loop, compiled by the C compiler of this machine."""
    types = [
        RecordKind(t, kind_of(b).held) for t, b in (("System", system), ("Work", work), ("Tableau", method.tableau))
    ]
    row, rows, typed = ArrayKind(REAL, 1), ArrayKind(REAL, 2), TypedLoop()
    loop = typed.function(method.steps, (*types, REAL, REAL, WHOLE, row, row, REAL, rows, rows))
    call = f"""
int run(System *s, Work *w, Tableau *b, double t, double h, int64_t every, d1 *q, d1 *qd, double e, d2 *x, d2 *y) {{
  {c_type(loop.returned)} r = {loop.name}(s, w, b, t, h, every, *q, *qd, e, *x, *y);
  return (int)(100 * r.v0 + r.v1);
}}
"""
    source = folder / "loop.c"
    source.write_text("#include <math.h>\n#include <stdint.h>\n" + c_text(typed) + call)
    command = ["cc", "-std=c99", "-O1", "-Wall", "-Werror", "-Wno-unused-function", "-ffp-contract=off"]
    subprocess.run([*command, "-shared", "-fPIC", str(source), "-o", str(folder / "loop.so"), "-lm"], check=True)
    return types, ctypes.CDLL(str(folder / "loop.so"))


@pytest.mark.verify
@pytest.mark.parametrize("word", METHODS)
@pytest.mark.parametrize("name", EFFORTS)
def test_the_loop_in_c_makes_the_steps_of_the_compiled_one(name, word, tmp_path):
    robot, method = parflex.load(name), method_named(word)
    problem = prepare_problem(robot, "efforts", numbers=method.numbers, sticking=True, width=1e-3)
    system = problem.system(Trajectory(np.array([0.0, np.inf]), np.full((1, 1, robot.nu), EFFORTS[name])))
    step = 1e-5 if robot.tree.elastic and word in ("rk4", "dopri5") else STEP  # explicit steps must be stable
    found = []
    for in_c in (False, True):
        work = new_work(system, method.stages, method.unknowns)
        q, qd = np.array(robot.home), np.zeros(system.rates)
        x, y = np.zeros((ROWS, work.x.shape[1] - len(system.constants))), np.zeros((ROWS, system.outputs + 2))
        if in_c:
            types, library = loop_in_c(method, system, work, tmp_path)
            structs = [struct_of(t, b) for t, b in zip(types, (system, work, method.tableau), strict=True)]
            views = [view_of(array) for array in (q, qd, x, y)]
            real, by = ctypes.c_double, ctypes.byref
            given = [*map(by, structs), real(0.0), real(step), ctypes.c_int64(EVERY)]
            given += [*map(by, views[:2]), real(TOLERANCE)]
            assert library.run(*given, *map(by, views[2:])) == 100 * ROWS
        else:
            assert method.steps(system, work, method.tableau, 0.0, step, EVERY, q, qd, TOLERANCE, x, y) == (ROWS, 0)
        found.append((q, qd, x, y, work.counts))
    assert np.abs(found[0][0] - robot.home).max() > 1e-6 * (step / STEP) ** 2  # it moves
    for ours, theirs in zip(*found, strict=True):
        assert np.array_equal(ours, theirs)


def test_python_that_is_not_compiled_is_refused():
    def strange(a):
        with a:
            return 1

    def other_end(a):
        for k in range(3):
            a[k] = 0.0
        else:
            a[0] = 1.0

    def cut(a):
        b = a[0:4:2]
        b[0] = 1.0

    def left(a):
        for k in (0, 1):
            a[k] = 0.0
            break

    for function, why in (
        (strange, "no such statement"), (other_end, "no such statement"), (cut, "no steps"), (left, "leaves a loop"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match=why):
            TypedLoop().function(function, (ArrayKind(REAL, 1),))


ORDERED = """
double array[3] = {1.0, 2.0, 4.0};
double run(int64_t k, int yes) { d1 a = {array, {3}, {1}}; return ordered(a, k, yes); }
"""


@jit.inner
def doubled(a, k):
    a[k] = 2.0 * a[k]
    return a[k]


@jit.compiled
def ordered(a, k, yes):
    """Operands and members are found from the left, steps of ranges are any, and powers are products."""
    total = a[k] - doubled(a, k) + (a[k] if yes and doubled(a, k) > 0.0 else 10.0)
    pair = (a[k], doubled(a, k))
    for n in range(8, -1, -3):
        total += pair[1] / pair[0] + n % -3 + (n - 4) // 3
    return total + a[k] ** 3


def test_both_printers_keep_the_order_of_operands(tmp_path):
    array, numbers, typed = np.array([1.0, 2.0, 4.0]), {"doubled": doubled.function}, TypedLoop()
    python = type(ordered.function)(ordered.function.__code__, numbers)
    typed.function(ordered, (ArrayKind(REAL, 1), WHOLE, kind_of(True)))
    (tmp_path / "ordered.c").write_text("#include <math.h>\n#include <stdint.h>\n" + c_text(typed) + ORDERED)
    command = ["cc", "-std=c99", "-Wall", "-Werror", "-Wno-unused-function", "-shared", "-fPIC", "ordered.c", "-lm"]
    subprocess.run([*command, "-o", "ordered.so"], check=True, cwd=tmp_path)
    in_c = ctypes.CDLL(str(tmp_path / "ordered.so")).run
    in_c.restype = ctypes.c_double
    other = array.copy()
    for k, yes in ((0, True), (1, False), (1, True), (2, True)):
        expected = python(array, k, yes)
        assert ordered(other, k, yes) == expected and in_c(ctypes.c_int64(k), yes) == expected
