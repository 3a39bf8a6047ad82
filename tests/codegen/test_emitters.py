"""Every emitter gives the numbers of the float path, which writes the same physics in another form."""

import subprocess
import sys

import numpy as np
import pytest
from support import traced
from support.cases import VERIFY
from support.emitted import EMITTERS, SHORT, STATES, c_library, casadi_file, flat, function_of_file, shaped

import parflex
from parflex import InputError, Model
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.model import SCRIPT_LIMIT
from parflex.codegen.optimise import make_program
from parflex.codegen.trace import MODELS
from parflex.symbolic.expression import Graph

# both sides divide by matrices of condition up to 1e3 in double precision (1e-16): rounding leaves 1e-13 to 1e-12; of a
# pose found by Newton rates come by that condition again, squared
TOLERANCE, STEP_TOLERANCE = 1e-11, 1e-9
DRIVEN = ("step", "classical-step", "state-rates-driven")  # rates of motors in, all others from them
ALWAYS = ("llvm batch", "llvm scalar", "numpy run")
SMALL = ("rx90", "four-bar", "5r", "3rrr")  # an arm, loops, a platform: all emitters in every run
LARGE = ("inverse", "direct")  # models whose long programs go through all emitters: compilers take a minute for each
CASES = [(name, model) for name in traced.ROBOTS for model in MODELS if traced.has_model(name, model)]
FEW = ("rx90-direct", "four-bar-inverse", "3rrr-geometry]", "5r-mass-matrix")


@pytest.mark.few("four-bar-inverse")
@pytest.mark.parametrize(("name", "model"), CASES)
def test_every_emitter_gives_the_numbers_of_the_float_path(name, model, tmp_path, figure):
    program, states = traced.made(name, model), traced.samples(name, STATES)
    given, wanted = traced.inputs(program, states), traced.expected(name, model, states)
    tolerance, angles = STEP_TOLERANCE if model in DRIVEN else TOLERANCE, model == "geometry"
    if model == "jacobian-of-inverse":  # the derivatives of the first emitter; test_expression_graph compares those
        wanted |= {group: value for group, value in program(**given).items() if group.startswith("by_")}
    assert set(wanted) == set(program.outputs)
    size = len(program.program.instructions)
    every = (size <= SHORT and (VERIFY or name in SMALL)) or (VERIFY and model in LARGE)
    for key, (emitter, count) in EMITTERS.items():
        if key not in ALWAYS and (size > SCRIPT_LIMIT or not every):
            continue
        found = emitter(program, {group: value[:count] for group, value in given.items()})
        error = traced.difference(found, {group: value[:count] for group, value in wanted.items()}, angles=angles)
        figure(f"{name} {model} by {key}", error, tolerance)
        assert error < tolerance, key
    if every:
        assert traced.difference(c_library(program, given, tmp_path), wanted, angles=angles) < tolerance, "c"


@pytest.mark.few("four-bar")
@pytest.mark.parametrize("name", [name for name in traced.CLOSED if name not in traced.LEG_FORM])
@pytest.mark.parametrize("model", ["geometry", "geometry-direct"])
def test_newton_steps_close_the_loops_and_hold_what_is_given(name, model):
    program, states = traced.made(name, model), traced.samples(name, 20)
    given = traced.inputs(program, states)
    found = program(**given)["q"]
    of = traced.robot(name)
    start = max(traced.closure_error(of, q) for q in given["guess"])
    left = max(traced.closure_error(of, q) for q in found)
    assert start > 1e-6  # the guess was off
    assert left < 1e-14 * max(of.tree.length, 1) * 10  # rounding of positions of the robot's size
    held = [of.tree.links[of.tree.link_of_rate[k]].q.start for k in of.actuated]
    if model == "geometry-direct":
        assert np.array_equal(found[:, held], given["guess"][:, held])
        off = given["guess"] + 30 * (given["guess"] - [state.configuration.q for state in states])
        again = program(guess=program(guess=off)["q"])["q"]  # a worse guess needs another call
        assert max(traced.closure_error(of, q) for q in again) < 1e-14 * max(of.tree.length, 1) * 10


@pytest.mark.parametrize("model", ["inverse", "kinematics", "geometry-direct"])
def test_sympy_and_casadi_files_give_the_same_numbers(model):
    program, states = traced.made("four-bar", model), traced.samples("four-bar", 3)
    given = traced.inputs(program, states)
    wanted = traced.expected("four-bar", model, states)
    assert traced.difference(casadi_file(program, given), wanted) < TOLERANCE
    function = function_of_file(program, "sympy")
    rows = [[float(value) for value in function(list(row))] for row in flat(program, given)]
    assert traced.difference(shaped(program, np.array(rows)), wanted) < TOLERANCE


def test_sympy_expressions_are_formulas_of_the_inputs():
    import sympy

    program = traced.made("four-bar", "mass-matrix")
    symbols = sympy.symbols(f"x0:{len(program.program.inputs)}", real=True)
    (formula,) = function_of_file(program, "sympy")(list(symbols))
    assert formula.free_symbols <= set(symbols)
    state = traced.samples("four-bar", 1)[0]
    value = formula.subs(dict(zip(symbols, traced.inputs(program, [state])["q"][0], strict=True)))
    M = traced.expected("four-bar", "mass-matrix", [state])["mass_matrix"]
    assert float(value) == pytest.approx(M[0, 0], rel=1e-11)


def test_joint_terms_act_only_if_asked_and_then_as_in_the_float_path():
    for name in ("four-bar", "rx90"):
        states = traced.samples(name, 10)
        program = traced.made(name, "inverse", include=("motor-inertia", "friction", "springs"))
        wanted = []
        for state in states:
            motors = [(state.robot.tree.rate_names[k], k) for k in state.robot.actuated]
            both = (state.rates, state.accelerations)
            velocity, acceleration = ({word: float(values[k]) for word, k in motors} for values in both)
            result = parflex.inverse_dynamics(state.robot, state.configuration, velocity, acceleration)
            wanted.append(list(result.efforts.values()))
        found = program(**traced.inputs(program, states))
        assert traced.difference(found, {"effort": np.array(wanted)}) < TOLERANCE
        bare = traced.made(name, "inverse")(**traced.inputs(program, states))
        assert traced.difference(bare, found) > 1e-3  # they matter


def test_an_unknown_library_is_refused_by_name():
    program = traced.made("four-bar", "inverse")
    for call in (lambda: program.evaluate("nump", **program.sample), lambda: program.function("tensorflow")):
        with pytest.raises(InputError, match="there is no library") as stop:
            call()
        assert "numpy" in stop.value.hint


def test_a_program_too_long_for_a_library_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("parflex.codegen.model.SCRIPT_LIMIT", 10)
    program = traced.made("four-bar", "inverse")
    for call in (program.casadi_function, lambda: program.files("jax"), lambda: program.files("sympy")):
        with pytest.raises(InputError, match="too many for"):
            call()
    assert program.files("numpy")


def test_a_model_is_made_without_the_library_of_any_target():
    code = (
        "import sys, parflex; parflex.model(parflex.load('four-bar'), 'inverse').files('c');"
        "print([name for name in ('jax', 'casadi', 'sympy', 'llvmlite') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)  # as if it were missing
    with pytest.raises(InputError, match="casadi is not installed") as stop:
        traced.made("four-bar", "inverse").casadi_function()
    assert "pip install casadi" in stop.value.hint


def test_every_emitter_swaps_rows_where_a_pivot_vanishes_and_knows_signs(tmp_path):
    graph = Graph()
    entries = np.array([graph.symbol(word) for word in "abcdef"], dtype=object)
    x = entries[0].solve_system(entries[:4].reshape(2, 2), entries[4:])
    program = make_program(graph, "pivots", {"y": np.array([*x, entries[0].sign(), entries[4].sign()])})
    numbers = np.array([[0.0, 2.0, 4.0, 1.0, 3.0, 5.0], [3.0, 1.0, 0.0, 2.0, -1.0, 5.0]])
    given = {word: numbers[:, [k]] for k, word in enumerate("abcdef")}
    wanted = np.array([np.linalg.solve(row[:4].reshape(2, 2), row[4:]) for row in numbers])
    wanted = np.hstack([wanted, np.sign(numbers[:, [0, 4]])])
    sample = {word: values[0] for word, values in given.items()}
    model = Model("pivots", program, dict.fromkeys("abcdef", (1,)), {"y": (4,)}, sample=sample)
    for key, (emitter, _) in EMITTERS.items():
        assert emitter(model, given)["y"] == pytest.approx(wanted, rel=1e-14), key  # a dozen exact numbers
    assert c_library(model, given, tmp_path)["y"] == pytest.approx(wanted, rel=1e-14)
    for sympy in (function_of_file(model, "sympy"), model.function("sympy")):
        assert [float(value) for value in sympy(list(numbers[0]))] == pytest.approx(wanted[0], rel=1e-14)


def test_terms_behind_a_sign_stay_together_in_c(tmp_path):
    graph = Graph()
    a, b, c = (graph.symbol(word) for word in "abc")
    y = np.array([a - (b + c), a - (b - c), a + (c - b), a - b * c])
    program = make_program(graph, "terms", {"y": y}, quick=True)
    given = {"a": np.array([[1.0]]), "b": np.array([[10.0]]), "c": np.array([[100.0]])}
    model = Model("terms", program, dict.fromkeys("abc", (1,)), {"y": (4,)}, sample={k: v[0] for k, v in given.items()})
    assert c_library(model, given, tmp_path)["y"][0].tolist() == [-109.0, 91.0, 91.0, -999.0]


@pytest.mark.few("gough-stewart", "3rrr")
@pytest.mark.parametrize(("name", "model"), [("gough-stewart", "inverse"), ("3rrr", "geometry"), ("c5", "step")])
def test_a_lane_does_not_feel_its_neighbours(name, model):
    program, states = traced.made(name, model), traced.samples(name, 19)
    given = traced.inputs(program, states)
    together = program(**given)
    shuffled = np.random.default_rng(5).permutation(19)
    for k in (0, 7, 18):
        one = {group: value[k : k + 1] for group, value in given.items()}
        others = [
            program(**one),
            program(**{group: np.repeat(value, 9, axis=0) for group, value in one.items()}),
            program(**{group: value[shuffled] for group, value in given.items()}),
        ]
        places = (0, 4, int(np.argmax(shuffled == k)))
        for result, place in zip(others, places, strict=True):
            for group in program.outputs:
                assert np.array_equal(result[group][place], together[group][k])  # bit for bit
        alone = program(**{group: value[k] for group, value in given.items()})
        # the same operations; only which of them are fused may differ, and a condition of up to 1e3 carries that on
        assert traced.difference({group: value[None] for group, value in alone.items()}, others[0]) <= 1e-12


@pytest.fixture(scope="module")
def functions():
    graph = Graph()
    a, b = graph.symbol("a"), graph.symbol("b")
    program = make_program(graph, "functions", {"sin": a.sin(), "cos": a.cos(), "atan2": a.arctan2(b)})
    return Kernel(program)


def ulps(found, exact):
    return np.abs(found - exact) / np.spacing(np.abs(exact))


def test_sine_and_cosine_of_the_kernel_are_good_to_two_units_in_the_last_place(functions, figure):
    rng = np.random.default_rng(1)
    quarters = np.arange(-63_661, 63_662, 127) * (np.pi / 2)
    draws = [rng.uniform(-size, size, 40_000) for size in (10, 1e5)]
    angles = np.concatenate([*draws, quarters, [0.0, 1e-300, -1e-9]])
    found = functions.many(np.column_stack([angles, np.ones_like(angles)]))
    for k, exact in enumerate((np.sin(angles), np.cos(angles))):
        worst = float(ulps(found[:, k], exact).max())
        figure("sine and cosine of the kernel, units in the last place", worst, 2)
        assert worst <= 2  # what the module promises; NumPy's own are good to one
    for angle in (0.3, -7e4, 1e5):
        assert ulps(functions.one(np.array([angle, 1.0]))[:2], np.array([np.sin(angle), np.cos(angle)])).max() <= 2


def test_the_arctangent_of_the_kernel_is_good_in_every_quarter(functions):
    rng = np.random.default_rng(2)
    draws = rng.uniform(-1, 1, 20_000), 10.0 ** rng.uniform(-12, 12, 5_000)
    y = np.concatenate([*draws, [0, 0, 1, -1, 1, -1, 0.0, -0.0]])
    x = np.concatenate([rng.uniform(-1, 1, 20_000), rng.uniform(-1, 1, 5_000), [1, -1, 0, 0, 1, -1, 0.0, -1.0]])
    found = functions.many(np.column_stack([y, x]))[:, 2]
    exact = np.arctan2(y, x)
    assert np.array_equal(found[exact == 0], exact[exact == 0])
    some = exact != 0
    assert ulps(found[some], exact[some]).max() <= 3  # two for the polynomial, one for the turn by a part of pi
    assert found[-1] == -np.pi  # the sign of zero counts
