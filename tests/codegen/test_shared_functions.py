"""Programs that call one function for alike elements: the same numbers as written out, and work that grows linearly."""

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from support.robots import load_robot

import parflex
from parflex.codegen import simd_plan
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.model import model_with
from parflex.codegen.optimise import make_program
from parflex.codegen.options import Options
from parflex.codegen.program import Program
from parflex.codegen.simd_plan import arrange_parts
from parflex.codegen.step_programs import step_programs
from parflex.codegen.tracer import Tracer
from parflex.spatial.dual import ComplexPair
from parflex.spatial.linear import shared_call
from parflex.symbolic.expression import Calls, Graph

LIMIT = 2_000_000
ROBOTS = {"dualemps": "state-rates-driven", "bending satellite": "state-rates"}  # driven loops; a free body that bends


@cache
def robot(name: str) -> parflex.Robot:
    return parflex.load(name, elements=2) if name == "dualemps" else load_robot("bending-satellite", elements=1)


@cache
def made(name: str, calls: bool) -> parflex.Model:
    """The model of a state."""
    return model_with(robot(name), ROBOTS[name], Options(calls=calls), LIMIT)


def computed(program: Program, x: np.ndarray) -> np.ndarray:
    return np.array(list(program.evaluate(dict(zip(program.inputs, x, strict=True))).values()))


def near_home(model: parflex.Model) -> np.ndarray:
    x = np.concatenate([np.ravel(values) for values in model.sample.values()])
    return x + 1e-3 * np.random.default_rng(1).standard_normal(len(x))


@pytest.mark.parametrize("name", ROBOTS)
def test_a_model_that_calls_functions_gives_the_numbers_of_one_written_out(name):
    called, written = made(name, True), made(name, False)
    assert called.program.functions and not written.program.functions
    x = near_home(written)
    found, expected = computed(called.program, x), computed(written.program, x)
    # sums in another order, through matrices whose condition is 1e4 to 1e5
    assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()
    plain = called.program.inlined()
    assert not plain.functions and plain.counts()["total"] == called.program.counts()["total"]
    assert found.tolist() == computed(plain, x).tolist() and called.files("c")


def test_machine_code_with_calls_computes_what_the_program_says(monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    program, x = made("dualemps", True).program, near_home(made("dualemps", True))
    rows = np.array([x, 0.999 * x])
    kernel, expected = Kernel(program), np.array([computed(program, row) for row in rows])
    results = [np.array([kernel.one(row) for row in rows]), kernel.many(rows)]
    for entry, count in (("pair", 2), ("single", 1)):
        found = expected.copy()
        found[:count] = 0.0
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(kernel.address(entry))
        call(rows.ctypes.data, found.ctypes.data, 1)
        results.append(found)
    for found in results:  # machine code rounds some products and sums together
        assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.few
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("by_pairs", [True, False])
def test_steps_that_call_functions_solve_as_those_written_out(name, by_pairs):
    results = []
    for calls in (True, False):
        step = step_programs(robot(name), ROBOTS[name], 0.0, by_pairs, calls)
        moving = near_home(made(name, False))[: len(step.factor.program.inputs) - 4]
        state = np.concatenate([moving, [1e-4, 5e-5, 1e-8, 5e-9]])  # coefficients of damping and stiffness
        miss = np.random.default_rng(2).standard_normal(step.solve.inputs["miss"][0])
        results.append(computed(step.solve.program, [*miss, *computed(step.factor.program, state)]))
    assert np.abs(results[0] - results[1]).max() <= 1e-11 * np.abs(results[1]).max()


def test_programs_grow_linearly_with_the_elements_and_functions_not_at_all(monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    robots = [parflex.load("dualemps", elements=elements) for elements in (5, 7, 9)]
    programs = [model_with(one, "state-rates-driven", Options(calls=True), LIMIT).program for one in robots]
    five, seven, nine = (len(program.instructions) for program in programs)
    assert abs((nine - seven) - (seven - five)) <= 4  # but for a constant that two lengths of elements may share
    words = [[word for one in program.functions for word, *_ in one.instructions] for program in programs]
    assert words[0] == words[1] == words[2]  # their constants are those of longer and of shorter elements


def _calling() -> Graph:
    graph = Graph()
    graph.calls = Calls()
    return graph


def test_alike_calls_share_a_function_and_other_ones_do_not():
    tracer = Tracer(_calling())
    x, calls = tracer.group("x", 8), tracer.graph.calls
    assert calls is not None

    def both(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        return np.array([a[0] * b[0] + a[1], a[1], 2.0]), -a

    first = shared_call(both, "both", x[:2], x[2:4])
    second = shared_call(both, "both", x[4:6], x[6:8])
    assert len(calls.functions) == 1 and len(calls.made) == 2
    assert first[0][2] == 2.0 and first[0][1].edge == x[1].edge  # what is no result of arithmetic needs no call
    third = shared_call(both, "both", x[4:6], np.array([0.0, 3.0]))  # a zero makes it shorter
    fourth = shared_call(both, "both", x[4:6], np.array([-x[4], 3.0]))  # as does an argument that stands twice
    assert third[0][0].edge == x[5].edge and len(calls.functions) == 3
    program = make_program(tracer.graph, "both", {"y": np.concatenate([first[0], second[0], fourth[0], second[1]])})
    found = program.evaluate({f"x[{k}]": float(k + 1) for k in range(8)})
    assert list(found.values()) == [5, 2, 2, 41, 6, 2, -19, 6, 2, -5, -6]


def test_pairs_go_through_calls_and_zeros_among_them_stay_zeros():
    tracer = Tracer(_calling())
    x = tracer.group("x", 4)
    seen = []

    def product(a: np.ndarray) -> tuple[np.ndarray]:
        seen.append(a[2])
        return (np.array([a[0] * a[1], a[2]], dtype=object),)

    pairs = [ComplexPair(x[0], x[1]), ComplexPair(x[2], x[3]), 0.0]
    (found,) = shared_call(product, "product", np.array(pairs, dtype=object))
    assert seen == [0.0] and found[1] == 0.0
    program = make_program(tracer.graph, "product", {"re": found[0].re, "im": found[0].im})
    value = (1 + 2j) * (3 + 4j)
    numbers = program.evaluate({"x[0]": 1.0, "x[1]": 2.0, "x[2]": 3.0, "x[3]": 4.0})
    assert numbers == {"re": value.real, "im": value.imag}


def six_legs(parameters: Sequence[str] = ()) -> Program:
    """Six legs of two alike parts that meet: one has a part of its own kind, another one more."""
    tracer = Tracer(_calling())
    x = tracer.group("x", 20)

    def part(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        return np.array([a[0] * b[0] + a[1], a[1] / (2.0 + b[1] * b[1])]), a * b

    legs = []
    for leg in range(6):
        first, _ = shared_call(part, "part", x[3 * leg : 3 * leg + 2], x[3 * leg + 1 : 3 * leg + 3])
        given = np.array([0.0, first[0] - x[18]]) if leg == 0 else np.array([first[1] + 0.5, first[0] - x[18]])
        second, third = shared_call(part, "part", first, given)
        legs.append(shared_call(part, "part", third, second)[0] if leg == 4 else second + third)
    ends = np.array(legs)
    flag = np.sin(x[19]) * ends[:, 0].sum().sign()
    back = [shared_call(part, "part", leg, np.array([flag, ends[:, 1].sum()]))[0] for leg in ends]
    y = np.concatenate([*back, ends.ravel(), ends[:, 0] * ends[:, 1]])
    return make_program(tracer.graph, "legs", {"y": y}, list(parameters))


@pytest.mark.parametrize("known", [0, 18])  # numbers that are parameters, of the twenty
def test_alike_calls_in_machine_code_compute_what_each_alone_does(monkeypatch, known):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    monkeypatch.setattr(simd_plan, "WHOLE", 0)
    monkeypatch.setattr(simd_plan, "CHUNK", 20)  # values go from piece to piece
    program, x = six_legs([f"x[{k}]" for k in range(known)]), np.random.default_rng(4).uniform(0.5, 1.5, 20)
    expected = computed(program, [*x[known:], *x[:known]])  # parameters stand behind the variables
    if known:
        setup, main = arrange_parts(*program.split())
        assert [name for name, _ in setup.outputs] == list(main.parameters)
        found = Kernel(main).one(np.concatenate([x[known:], Kernel(setup).one(x[:known])]))
    else:
        found = Kernel(program).one(x)
    assert np.abs(found - expected).max() <= 1e-14 * np.abs(expected).max()
