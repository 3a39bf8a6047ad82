"""The time loop as C, from its own Python source: it makes the same steps as the compiled one, bit for bit."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.exchange.loops_in_c.c_types import REAL, WHOLE, Fields, View, bundle_type
from parflex.exchange.loops_in_c.loop_c import Translator
from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.integrators.integrate import METHODS, method_named
from parflex.simulation.integrators.system import new_work
from parflex.simulation.problem import prepare

ROWS, EVERY, STEP, LIMIT = 3, 20, 1e-3, 1e-10
LONG = (pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify"))
CASES = [("5r", "gauss4", 0.3), ("5r", "rk4", 0.3)]
EFFORTS = {"dualemps": 60.0, "gough-stewart": 60.0, "3rrr": 0.5}  # N, N, N m: none reaches the end of its workspace
MORE = [(name, method, effort) for name, effort in EFFORTS.items() for method in METHODS]
MORE += [("5r", method, 0.3) for method in METHODS[1:] if method != "rk4"]


def view_of(array):
    """An array as C has it, on the same memory."""
    ints = ctypes.c_int64 * array.ndim
    kind = type("view", (ctypes.Structure,), {"_fields_": [("at", ctypes.c_void_p), ("n", ints), ("s", ints)]})
    return kind(array.ctypes.data, ints(*array.shape), ints(*[stride // 8 for stride in array.strides]))


def struct_of(kind: Fields, bundle):
    """A bundle as C has it."""
    values = []
    for name, held in kind.held:
        value = getattr(bundle, name)
        word = ctypes.c_double if held == REAL else ctypes.c_int64
        values.append((name, view_of(value) if isinstance(held, View) else word(value)))
    fields = [(name, type(value)) for name, value in values]
    return type(kind.title, (ctypes.Structure,), {"_fields_": fields})(*(value for _, value in values))


def loop_in_c(method, system, work, folder: Path):
    """The loop, compiled by the C compiler of this machine."""
    types = [bundle_type(t, b) for t, b in (("System", system), ("Work", work), ("Tableau", method.tableau))]
    kinds = (*types, REAL, REAL, WHOLE, View("d", 1), View("d", 1), REAL, View("d", 2), View("d", 2))
    translator = Translator()
    loop = translator.function(method.steps, kinds)
    call = f"""
int run(System *s, Work *w, Tableau *b, double t, double h, int64_t every, d1 *q, d1 *qd, double e, d2 *x, d2 *y) {{
  {loop.returns.c} r = {loop.name}(s, w, b, t, h, every, *q, *qd, e, *x, *y);
  return (int)(100 * r.v0 + r.v1);
}}
"""
    source = folder / "loop.c"
    source.write_text("#include <math.h>\n#include <stdint.h>\n" + translator.text() + call)
    command = ["cc", "-std=c99", "-O1", "-Wall", "-Werror", "-Wno-unused-function", "-ffp-contract=off"]
    subprocess.run([*command, "-shared", "-fPIC", str(source), "-o", str(folder / "loop.so"), "-lm"], check=True)
    return types, ctypes.CDLL(str(folder / "loop.so"))


@pytest.mark.verify
@pytest.mark.parametrize(
    ("name", "word", "effort"), [*CASES, *(pytest.param(*case, marks=LONG) for case in MORE if case not in CASES)]
)
def test_the_loop_in_c_makes_the_steps_of_the_compiled_one(name, word, effort, tmp_path):
    robot, method = parflex.load(name), method_named(word)
    problem = prepare(robot, "efforts", numbers=method.numbers, sticking=True, width=1e-3)
    system = problem.system(Polynomials(np.array([0.0, np.inf]), np.full((1, 1, len(robot.actuated)), effort)))
    step = 1e-5 if robot.tree.elastic and word == "rk4" else STEP  # explicit steps must be stable
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
            given = [*map(by, structs), real(0.0), real(step), ctypes.c_int64(EVERY), *map(by, views[:2]), real(LIMIT)]
            assert library.run(*given, *map(by, views[2:])) == 100 * ROWS
        else:
            assert method.steps(system, work, method.tableau, 0.0, step, EVERY, q, qd, LIMIT, x, y) == (ROWS, 0)
        found.append((q, qd, x, y, work.counts))
    assert np.abs(found[0][0] - robot.home).max() > 1e-6 * (step / STEP) ** 2  # it moves
    for ours, theirs in zip(*found, strict=True):
        assert np.array_equal(ours, theirs)


def test_python_that_has_no_c_is_refused_by_name():
    def strange(a):
        with a:
            return 1

    with pytest.raises(TypeError, match="strange: no C for"):
        Translator().function(strange, (View("d", 1),))


def test_python_of_which_c_would_be_something_else_is_refused():
    def other_end(a):
        for k in range(3):
            a[k] = 0.0
        else:
            a[0] = 1.0

    def strides(a):
        for k in range(0, 4, 2):
            a[k] = 0.0

    def cut(a):
        b = a[0:4:2]
        b[0] = 1.0

    for function in (other_end, strides, cut):
        with pytest.raises(TypeError, match=f"{function.__name__}: no C for"):
            Translator().function(function, (View("d", 1),))


def test_one_value_goes_to_several_names():
    def both(a):
        a[0] = a[1] = a[2] + 1.0

    text = Translator().function(both, (View("d", 1),)).text
    assert "a, 0) = t1_" in text
    assert "a, 1) = t1_" in text
