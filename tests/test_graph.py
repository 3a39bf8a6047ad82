"""Symbolic scalars: signs cost nothing, equal things are one, rules are exact, and tracing is quick."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from parflex.codegen.passes.optimise import make_program
from parflex.graph import Expression, Graph, known_angle
from parflex.graph.expression import ADD, CONST, MUL, OP_NAMES

# numbers that agree in 15 digits are one: at most half a unit of the fifteenth is lost
CONSTANT = 5e-15


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def symbols(graph):
    return [graph.symbol(name) for name in "abcd"]


def same(x, y) -> bool:
    """Whether two results are one edge of the graph (or equal numbers)."""
    if isinstance(x, Expression) and isinstance(y, Expression):
        return x.graph is y.graph and x.edge == y.edge
    return not isinstance(x, Expression) and not isinstance(y, Expression) and x == y


def value(graph, expression, **values) -> float:
    """The number of an expression, by its program without any pass that could help."""
    program = make_program(graph, "test", {"y": expression})
    return program.evaluate({name: values.get(name, 0.0) for name in program.inputs})["y"]


def test_negation_makes_no_node(graph, symbols):
    a, b, *_ = symbols
    product = a * b
    before = len(graph)
    assert same((-a).__neg__(), a)
    assert same((-a) * b, -product) and same(a * (-b), -product) and same((-a) * (-b), product)
    assert same(-(a.sin()), (-a).sin()) and same((-a).cos(), a.cos())
    assert same((-a).sign(), -(a.sign()))
    assert [OP_NAMES[op] for op in graph.op[before:] if op in (ADD, MUL)] == ["mul", "mul"]  # the marked squares


def test_a_difference_and_its_opposite_are_one_node(graph, symbols):
    a, b, *_ = symbols
    first = a - b
    before = len(graph)
    assert same(b - a, -first)
    assert same(-a + b, -first)
    assert same(a / b, -((-a) / b))
    assert len(graph) == before + 1  # the quotient alone is new
    assert same(-a - b, -(a + b))


def test_equal_things_are_one_node(symbols):
    a, b, c, _ = symbols
    assert same(a + b, b + a) and same(a * b, b * a)
    assert same((a + b) * c, c * (b + a))
    assert not same(a + b, a - b)
    assert same(a**2, a * a) and same(a**0.5, a.sqrt())
    with pytest.raises(TypeError, match="power"):
        a**3


def test_zero_and_one_leave_no_operation(graph, symbols):
    a, *_ = symbols
    before = len(graph)
    assert same(a + 0, a) and same(0 + a, a) and same(a - 0, a) and same(0 - a, -a)
    assert same(a * 1, a) and same(a * -1, -a) and same(a / 1, a)
    assert a * 0 == 0.0 and a - a == 0.0 and 0 / a == 0.0
    assert a / a == 1.0 and a / (-a) == -1.0
    assert all(op == CONST for op in graph.op[before:])


def test_constants_fold_on_the_way(graph, symbols):
    a, b, *_ = symbols
    assert same(2 * (3 * a), 6 * a) and same((a * 2) * -3, -6 * a)
    assert same(2 * a + 3 * a, 5 * a) and same(a + a, 2 * a) and same(2 * a - a, a) and same(3 * a - a, 2 * a)
    assert 2 * a - 2 * a == 0.0
    assert same(a / 4, 0.25 * a)
    assert same(0.5 * b, math.cos(math.pi / 3) * b)  # they differ by rounding alone
    assert isinstance(np.float64(2) * a, Expression)


def test_squares_of_cosine_and_sine_add_up_to_one(symbols):
    a, b, c, d = symbols
    assert a.cos() * a.cos() + a.sin() * a.sin() == 1.0
    assert (-a).sin() ** 2 + a.cos() ** 2 == 1.0
    assert -(a.cos() ** 2) - a.sin() ** 2 == -1.0
    assert isinstance(a.cos() ** 2 - a.sin() ** 2, Expression)
    assert isinstance(a.cos() ** 2 + b.sin() ** 2, Expression)
    angle = known_angle(c, d)
    assert angle.cos() ** 2 + angle.sin() ** 2 == 1.0


def test_numpy_functions_and_arrays_take_symbols(symbols):
    a, b, c, _ = symbols
    array = np.array([a, b, 2.0], dtype=object)
    for result in (a * array, array * a):
        assert same(result[0], a * a) and same(result[1], a * b) and same(result[2], 2 * a)
    assert same((a - array)[1], a - b) and same((array - a)[1], b - a) and same((a + array)[2], a + 2)
    assert same((a / array)[1], a / b) and same((array / a)[2], 2 / a)
    assert same(array @ array, a * a + b * b + 4)
    assert same(np.sqrt(a), a.sqrt()) and same(np.sin(a), a.sin()) and same(np.cos(array[:2])[1], b.cos())
    assert same(np.sign(a), a.sign()) and same(np.arctan2(a, b), a.arctan2(b))
    assert same(np.float64(2) - c, 2 - c) and same(np.float64(2) / c, 2 / c)


def test_a_solve_gives_the_solution_whatever_entries_vanish(graph):
    names = [f"m{k}" for k in range(9)] + ["r0", "r1", "r2"]
    symbols = [graph.symbol(name) for name in names]
    matrix, right = np.array(symbols[:9], dtype=object).reshape(3, 3), np.array(symbols[9:], dtype=object)
    x = symbols[0].solve_system(matrix, right)
    program = make_program(graph, "solve", {"x": x})
    rng = np.random.default_rng(3)
    for pattern in (
        [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        [[0, 0, 1], [0, 1, 0], [1, 0, 0]],
        [[0, 1, 0], [1, 1, 1], [1, 0, 1]],
    ):
        A, b = rng.uniform(0.5, 2, (3, 3)) * np.array(pattern), rng.uniform(-1, 1, 3)
        found = program.evaluate(dict(zip(names, [*A.flat, *b], strict=True)))
        assert list(found.values()) == pytest.approx(np.linalg.solve(A, b), rel=1e-13)  # condition below 100


def test_systems_with_zeros_and_ones_among_symbols_have_the_right_solution():
    rng, tried = np.random.default_rng(6), 0
    for _ in range(40):
        graph, numbers = Graph(), {}

        def entry(graph=graph, numbers=numbers):
            if rng.random() < 0.5:
                return float(rng.choice([0.0, 0.0, 1.0, -1.0]))
            name = f"x{len(numbers)}"
            numbers[name] = rng.uniform(-1, 1)
            return graph.symbol(name)

        entries = np.array([entry() for _ in range(12)], dtype=object)
        plain = np.array(
            [numbers[graph.names[graph.a[x.edge >> 1]]] if isinstance(x, Expression) else x for x in entries]
        )
        A, b = plain[:9].astype(float).reshape(3, 3), plain[9:].astype(float)
        if not numbers or np.linalg.cond(A) > 100:
            continue
        tried += 1
        x = graph.symbol(next(iter(numbers))).solve_system(entries[:9].reshape(3, 3), entries[9:])
        program = make_program(graph, "solve", {"x": x})
        found = program.evaluate({name: numbers[name] for name in program.inputs})
        assert list(found.values()) == pytest.approx(np.linalg.solve(A, b), rel=1e-12, abs=1e-13)  # condition below 100
    assert tried > 10


def test_elimination_of_more_rows_than_unknowns_solves_some_and_leaves_the_rest(graph):
    m, n = 5, 3
    names = [f"m{k}" for k in range(m * n)] + [f"r{k}" for k in range(m)]
    symbols = [graph.symbol(name) for name in names]
    matrix, right = np.array(symbols[: m * n], dtype=object).reshape(m, n), np.array(symbols[m * n :], dtype=object)
    program = make_program(graph, "solve", {"x": symbols[0].solve_system(matrix, right)})
    rng = np.random.default_rng(4)
    for density in (1.0, 0.6, 0.6, 0.6):
        A = rng.uniform(0.5, 2, (m, n)) * (rng.random((m, n)) < density)
        A[rng.permutation(m)[:n], range(n)] = 3.0  # the rank is full, whatever else vanishes
        b = rng.uniform(-1, 1, m)
        found = np.array(list(program.evaluate(dict(zip(names, [*A.flat, *b], strict=True))).values()))
        opening = b - A @ found[:n]  # zero in the rows that were pivots
        pivots = np.argsort(np.abs(opening))[:n]
        assert np.abs(opening[pivots]).max() < 1e-14
        assert np.linalg.matrix_rank(A[pivots]) == n
        assert sorted(found[n:]) == pytest.approx(sorted(np.delete(opening, pivots)), abs=1e-14)


def test_equal_systems_are_one_and_a_negative_right_side_is_free(graph, symbols):
    a, b, c, d = symbols
    matrix = np.array([[a, b], [c, d]], dtype=object)
    x, again = a.solve_system(matrix, np.array([a, b])), a.solve_system(matrix, np.array([[-a, c], [-b, d]]))
    assert same(again[0, 0], -x[0]) and same(again[1, 0], -x[1])
    assert len(graph.systems) == 2
    assert list(a.solve_system(matrix, np.array([0.0, 0.0]))) == [0.0, 0.0]


def random_expression(rng, symbols, numbers, depth):
    """The same random expression over symbols and over floats."""
    if depth == 0:
        if rng.random() < 0.25:
            constant = float(rng.choice([0.0, 1.0, -1.0, 2.0, 0.5, round(rng.uniform(-3, 3), 6)]))
            return constant, constant
        k = rng.integers(len(symbols))
        return symbols[k], numbers[k]
    (x, u), (y, v) = (random_expression(rng, symbols, numbers, rng.integers(depth)) for _ in range(2))
    match rng.integers(9):
        case 0 | 1:
            return x + y, u + v
        case 2 | 3:
            return x - y, u - v
        case 4 | 5:
            return x * y, u * v
        case 6:
            return (-x, -u) if not isinstance(x, Expression) else (x.cos(), math.cos(u))
        case 7:
            return (x, u) if not isinstance(x, Expression) else (x.sin(), math.sin(u))
        case _:
            return (x / y, u / v) if abs(v) > 0.1 and isinstance(y, Expression) else (x, u)


def test_random_expressions_have_the_values_of_plain_floats():
    rng = np.random.default_rng(0)
    for _ in range(400):
        graph = Graph()
        symbols = [graph.symbol(name) for name in "abcd"]
        numbers = rng.uniform(-2, 2, 4).tolist()
        expression, number = random_expression(rng, symbols, numbers, 9)
        if not isinstance(expression, Expression):
            assert expression == pytest.approx(number, rel=1e-12, abs=1e-12)
            continue
        found = value(graph, expression, **dict(zip("abcd", numbers, strict=True)))
        # another order of up to 512 operations and constants of 15 digits; intermediate values stay below some hundreds
        assert found == pytest.approx(number, rel=1e-10, abs=1e-11)


def test_constants_keep_fifteen_digits(graph, symbols):
    a, *_ = symbols
    rng = np.random.default_rng(1)
    for number in rng.uniform(-1, 1, 50) * 10.0 ** rng.integers(-12, 12, 50):
        assert value(graph, a * number, a=1.0) == pytest.approx(number, rel=CONSTANT)


@pytest.mark.parametrize("digits", [8, 11, 13])
def test_numbers_that_differ_by_more_than_rounding_stay_two(graph, symbols, digits):
    a, *_ = symbols
    one, other = 1 / 3, 1 / 3 + 10.0**-digits
    assert not same(one * a, other * a)
    assert value(graph, other * a - one * a, a=1.0) == pytest.approx(10.0**-digits, abs=CONSTANT)


def test_tracing_takes_microseconds_for_an_operator(figure):
    from parflex import load
    from parflex.codegen.traces.trace import trace

    robot = load("delta")
    start = time.process_time()
    traced = trace(robot, "jacobian-of-inverse")
    seconds = time.process_time() - start
    operators = len(traced.graph)
    figure("trace of the Jacobian of delta's inverse model: operators", operators)
    figure("seconds", seconds, 20)
    assert operators > 25_000
    assert seconds < 20  # a second or less on an idle machine; a quadratic graph would take minutes
