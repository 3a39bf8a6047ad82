"""Programs that call one function for alike elements: the same numbers as written out, and work that grows linearly."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import Model
from parflex.codegen import compile, program_store
from parflex.codegen.compile import Kernel
from parflex.codegen.emit import emit_rows
from parflex.codegen.emit.emit_c import emit_c
from parflex.codegen.emit.emit_python import functions_of, run
from parflex.codegen.emit.row_plan import HOLE, arranged, row_plan, saved_by_rows, side_by_side
from parflex.codegen.make_model import model_with
from parflex.codegen.passes.optimise import make_program
from parflex.codegen.program import Program
from parflex.codegen.step_programs import step_programs
from parflex.codegen.traces.tracing import Options, Tracer
from parflex.graph.calls import Calls
from parflex.graph.expression import Graph
from parflex.spatial.alike import alike
from parflex.spatial.block_elimination import eliminate_groups, substitute_groups
from parflex.spatial.complex_pairs import Pair

LIMIT = 2_000_000
COUNTS = (5, 7, 9)  # elements per link: so many that the form is written in one way
ROBOTS = {  # loops in the plane, driven; a body free in space that bends
    "dualemps": ("dualemps", "state-rates-driven"),
    "bending satellite": (Path(__file__).parent / "robots" / "bending-satellite.toml", "state-rates"),
}
ELEMENTS = {"dualemps": 2, "bending satellite": 1}
CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
CASES = pytest.mark.parametrize("name", list(ROBOTS))


@cache
def made(name: str, calls: bool) -> Model:
    """The model of a state."""
    file, model = ROBOTS[name]
    return model_with(parflex.load(file, elements=ELEMENTS[name]), model, Options(calls=calls), LIMIT)


def computed(program: Program, x: np.ndarray) -> np.ndarray:
    """Outputs, by NumPy."""
    return np.array(run(program, list(x), functions_of("numpy")), dtype=float)


def near_home(model: Model) -> np.ndarray:
    """Inputs a little off home, in motion."""
    x = np.concatenate([np.ravel(values) for values in model.sample.values()])
    return x + 1e-3 * np.random.default_rng(1).standard_normal(len(x))


@CASES
def test_a_model_that_calls_functions_gives_the_numbers_of_one_written_out(name):
    called, written = made(name, True), made(name, False)
    assert called.program.functions and not written.program.functions
    x = near_home(written)
    found, expected = computed(called.program, x), computed(written.program, x)
    # sums in another order, through matrices whose condition is 1e4 to 1e5
    assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize("written_out", [0, compile.WRITTEN_OUT])
def test_machine_code_with_calls_computes_what_the_program_says(monkeypatch, written_out):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    monkeypatch.setattr(compile, "WRITTEN_OUT", written_out)
    program, x = made("dualemps", True).program, near_home(made("dualemps", True))
    rows = np.array([x, 0.999 * x])
    kernel, expected = Kernel(program), np.array([computed(program, row) for row in rows])
    found = [np.array([kernel.one(row) for row in rows]), both_rows(kernel, rows)]
    if not written_out:  # lanes call functions whatever their length
        found.append(kernel.many(rows))
    for one in found:
        # machine code rounds some products and sums together
        assert np.abs(one - expected).max() <= 1e-12 * np.abs(expected).max()
    single = np.zeros_like(expected[1])
    CALL(kernel.address("single"))(rows[1].ctypes.data, single.ctypes.data, 1)
    assert np.abs(single - expected[1]).max() <= 1e-12 * np.abs(expected).max()


def both_rows(kernel: Kernel, rows: np.ndarray) -> np.ndarray:
    """Outputs for two rows of inputs in one call."""
    found = np.zeros((2, len(kernel.program.outputs)))
    CALL(kernel.address("pair"))(rows.ctypes.data, found.ctypes.data, 1)
    return found


@pytest.mark.few
@CASES
@pytest.mark.parametrize("by_pairs", [True, False])
def test_steps_that_call_functions_solve_as_those_written_out(name, by_pairs):
    file, model = ROBOTS[name]
    robot = parflex.load(file, elements=ELEMENTS[name])
    results = []
    for calls in (True, False):
        step = step_programs(robot, model, 0.0, by_pairs, calls)
        assert step is not None
        moving = near_home(made(name, False))[: len(step.factor.program.inputs) - 4]
        state = np.concatenate([moving, [1e-4, 5e-5, 1e-8, 5e-9]])  # coefficients of damping and stiffness
        miss = np.random.default_rng(2).standard_normal(step.solve.inputs["miss"][0])
        factors = computed(step.factor.program, state)
        results.append(computed(step.solve.program, np.concatenate([miss, factors])))
    assert np.abs(results[0] - results[1]).max() <= 1e-11 * np.abs(results[1]).max()


def test_calls_written_out_compute_the_same_and_cost_the_same():
    program = made("dualemps", True).program
    plain, x = program.inlined(), near_home(made("dualemps", True))
    assert not plain.functions and plain.counts()["total"] == program.counts()["total"]
    assert program.length == len(plain.instructions) and program.depth() == plain.depth()
    found = program.evaluate(dict(zip(program.inputs, x, strict=True)))
    assert list(found.values()) == computed(plain, x).tolist()
    assert emit_c(program) == emit_c(plain)


def test_programs_with_functions_are_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    model = made("dualemps", True)
    program_store.write("kept.program", model)
    kept = program_store.read("kept.program")
    assert kept is not None
    assert kept["program"] == model.program and kept["program"].digest() == model.program.digest()


def test_tracing_and_programs_grow_linearly_and_functions_not_at_all(monkeypatch):
    nodes: dict[int, int] = {}
    sizes: dict[int, Program] = {}
    for elements in COUNTS:
        monkeypatch.setenv("PARFLEX_CACHE", "off")
        graphs = []
        monkeypatch.setattr(Options, "new_graph", lambda self, g=graphs: g.append(_calling()) or g[-1])
        robot = parflex.load("dualemps", elements=elements)
        sizes[elements] = model_with(robot, "state-rates-driven", Options(calls=True), LIMIT).program
        nodes[elements] = len(graphs[0])
    for grown in ([nodes[k] for k in COUNTS], [len(sizes[k].instructions) for k in COUNTS]):
        # but for a constant that two lengths of elements may share
        assert abs((grown[2] - grown[1]) - (grown[1] - grown[0])) <= 4
    words = [[word for one in sizes[k].functions for word, *_ in one.instructions] for k in COUNTS]
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

    first = alike(both, "both", x[:2], x[2:4])
    second = alike(both, "both", x[4:6], x[6:8])
    assert len(calls.functions) == 1 and len(calls.made) == 2
    assert first[0][2] == 2.0 and first[0][1].edge == x[1].edge  # what is no result of arithmetic needs no call
    third = alike(both, "both", x[4:6], np.array([0.0, 3.0]))  # a zero makes it shorter
    fourth = alike(both, "both", x[4:6], np.array([-x[4], 3.0]))  # as does an argument that stands twice
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

    (found,) = alike(product, "product", np.array([Pair(x[0], x[1]), Pair(x[2], x[3]), 0.0], dtype=object))
    assert seen == [0.0] and found[1] == 0.0
    program = make_program(tracer.graph, "product", {"re": found[0].re, "im": found[0].im})
    value = (1 + 2j) * (3 + 4j)
    numbers = program.evaluate({"x[0]": 1.0, "x[1]": 2.0, "x[2]": 3.0, "x[3]": 4.0})
    assert numbers == {"re": value.real, "im": value.imag}


def test_groups_of_unknowns_are_eliminated_as_single_ones_are():
    generator = np.random.default_rng(3)
    size = 12
    band = np.abs(np.subtract.outer(range(size), range(size))) < 5
    A = np.where(band, generator.standard_normal((size, size)), 0.0)
    A = ((A + A.T) / 2 + 10 * np.eye(size)).astype(object)
    b = generator.standard_normal(size)
    groups = [[3, 4, 5], [0, 1, 2], [6], [7, 8], [9, 10, 11]]
    steps = eliminate_groups(A, groups)
    assert sorted(k for step in steps for k in step.unknowns) == list(range(size))
    assert sum(len(step.others) for step in steps) <= 15  # inwards from both ends
    found = np.array(substitute_groups(steps, list(b)), dtype=float)
    assert np.abs(A.astype(float) @ found - b).max() < 1e-14 * 10  # rounding, the condition is about 2
    with pytest.raises(np.linalg.LinAlgError, match="no inertia"):
        eliminate_groups(np.zeros((1, 1), dtype=object), [[0]])


def six_legs(parameters: Sequence[str] = ()) -> Program:
    """Six legs of two alike parts that meet: one has a part of its own kind, another one more."""
    tracer = Tracer(_calling())
    x = tracer.group("x", 20)

    def part(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        return np.array([a[0] * b[0] + a[1], a[1] / (2.0 + b[1] * b[1])]), a * b

    legs = []
    for leg in range(6):
        first, _ = alike(part, "part", x[3 * leg : 3 * leg + 2], x[3 * leg + 1 : 3 * leg + 3])
        given = np.array([0.0, first[0] - x[18]]) if leg == 0 else np.array([first[1] + 0.5, first[0] - x[18]])
        second, third = alike(part, "part", first, given)
        legs.append(alike(part, "part", third, second)[0] if leg == 4 else second + third)
    ends = np.array(legs)
    flag = np.sin(x[19]) * ends[:, 0].sum().sign()
    back = [alike(part, "part", leg, np.array([flag, ends[:, 1].sum()]))[0] for leg in ends]
    y = np.concatenate([*back, ends.ravel(), ends[:, 0] * ends[:, 1]])
    return make_program(tracer.graph, "legs", {"y": y}, list(parameters))


def test_alike_calls_side_by_side_compute_what_each_alone_does(monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    monkeypatch.setattr(compile, "WRITTEN_OUT", 0)
    monkeypatch.setattr(emit_rows, "PIECE", 20)  # values go from piece to piece
    program = six_legs()
    rows = row_plan(program).rows
    assert any(row.wide and row.operation.startswith("call") and HOLE in row.lanes[:6] for row in rows)
    x = np.random.default_rng(4).uniform(0.5, 1.5, 20)
    expected = computed(program, x)
    assert np.abs(Kernel(program).one(x) - expected).max() <= 1e-14 * np.abs(expected).max()
    assert saved_by_rows(program) > 3


def test_what_a_setup_hands_over_lies_in_the_lanes_of_those_who_take_it(monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    monkeypatch.setattr(compile, "WRITTEN_OUT", 0)
    program = six_legs([f"x[{k}]" for k in range(18)])  # all but two numbers are known before
    setup, main = arranged(*program.split())
    handed = [name for name, _ in setup.outputs]
    assert tuple(handed) == main.parameters and any(name.startswith("spare") for name in handed)
    first, base = len(main.variables), len(main.inputs)
    calls = [row for row in row_plan(main).rows if row.wide and row.operation.startswith("call")]
    taken = [
        lanes for row in calls for lanes in row.operands if max(lanes) < base and min(set(lanes) - {HOLE}) >= first
    ]
    assert taken and all(side_by_side(lanes, base) for lanes in taken)
    x = np.random.default_rng(5).uniform(0.5, 1.5, 20)  # parameters stand behind the two variables
    both = np.concatenate([x[18:], Kernel(setup).one(x[:18])])
    expected = computed(program, np.concatenate([x[18:], x[:18]]))
    assert np.abs(Kernel(main).one(both) - expected).max() <= 1e-14 * np.abs(expected).max()
