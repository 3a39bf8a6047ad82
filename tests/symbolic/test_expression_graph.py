"""Symbolic scalars, linear systems of symbols, and derivatives against differences, floats and JAX."""

import math

import numpy as np
import pytest
from support.emitted import function_of_file, jax_in_doubles
from support.traced import inputs, made, samples

import parflex
from parflex.codegen.optimise import make_program
from parflex.codegen.trace import trace
from parflex.spatial import linear
from parflex.symbolic.derivative import gradient, jacobian
from parflex.symbolic.expression import CONST, OP_NAMES, Expression, Graph, known_angle

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


def test_signs_zeros_and_ones_make_no_node_and_equal_expressions_are_one(graph, symbols):
    a, b, c, _ = symbols
    product, difference = a * b, a - b
    before = len(graph)
    assert same((-a).__neg__(), a) and same((-a).cos(), a.cos()) and same(-(a.sin()), (-a).sin())
    assert same((-a) * b, -product) and same(a * (-b), -product) and same((-a) * (-b), product)
    assert same(b - a, -difference) and same(-a + b, -difference) and same(a / b, -((-a) / b))
    assert same(a + 0, a) and same(0 + a, a) and same(a - 0, a) and same(0 - a, -a)
    assert same(a * 1, a) and same(a * -1, -a) and same(a / 1, a) and a * 0 == 0.0 and a - a == 0.0 and 0 / a == 0.0
    assert a / a == 1.0 and a / (-a) == -1.0
    made = [OP_NAMES[op] for op in graph.op[before:] if op != CONST]
    assert sorted(made) == ["cos", "div", "mul", "mul", "sin"]  # and the squares of sine and cosine
    assert same(-a - b, -(a + b)) and same((-a).sign(), -(a.sign()))
    assert same(a + b, b + a) and same((a + b) * c, c * (b + a)) and not same(a + b, a - b)
    assert same(a**2, a * a) and same(a**0.5, a.sqrt())
    with pytest.raises(TypeError, match="power"):
        a**3


def test_constants_fold_and_keep_fifteen_digits(graph, symbols):
    a, b, *_ = symbols
    assert same(2 * (3 * a), 6 * a) and same((a * 2) * -3, -6 * a)
    assert same(2 * a + 3 * a, 5 * a) and same(a + a, 2 * a) and same(2 * a - a, a) and same(3 * a - a, 2 * a)
    assert 2 * a - 2 * a == 0.0 and same(a / 4, 0.25 * a)
    assert same(0.5 * b, math.cos(math.pi / 3) * b)  # they differ by rounding alone
    assert isinstance(np.float64(2) * a, Expression)
    rng = np.random.default_rng(1)
    for number in rng.uniform(-1, 1, 50) * 10.0 ** rng.integers(-12, 12, 50):
        assert value(graph, a * number, a=1.0) == pytest.approx(number, rel=CONSTANT)


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


@pytest.mark.few
# a tree, a pivoted 2 x 2 block, legs with roots and a 6 x 6, legs with more rows than joints
@pytest.mark.parametrize("name", ["rx90", "5r", "gough-stewart", "3-prrr"])
def test_the_reverse_gradient_is_the_weighted_row_of_the_forward_jacobian(name):
    traced, sample = trace(parflex.load(name), "inverse"), parflex.model(parflex.load(name), "inverse").sample
    inputs = [symbol for group in traced.inputs.values() for symbol in group.flat]
    outputs = list(traced.outputs["effort"])
    weights = 0.3 + 0.4 * np.arange(len(outputs))
    rows = np.array(jacobian(outputs, inputs), dtype=object)
    back = np.array(gradient(outputs, list(weights), inputs), dtype=object)
    program = make_program(traced.graph, "both", {"forward": weights @ rows, "back": back})
    numbers = np.concatenate([np.ravel(sample[group]) for group in traced.inputs])
    names = [f"{g}[{','.join(map(str, i))}]" for g, x in traced.inputs.items() for i in np.ndindex(x.shape)]
    found = program.evaluate(dict(zip(names, map(float, numbers), strict=True)))
    first, second = np.array(list(found.values())).reshape(2, -1)
    # two orders of some thousand rounded operations
    assert 0 <= np.abs(first - second).max() < 1e-10 * np.abs(first).max()
    if name == "rx90":  # gravity is along the first axis: no effort changes with the first angle
        zero = np.array([[isinstance(entry, float) and entry == 0 for entry in row] for row in rows])
        assert zero[:, names.index("q[0]")].all() and not zero[:5, names.index("qdd[0]")].any()


def derivatives(build, at: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Of functions of a few symbols: by the graph, and by central differences of their values."""
    graph = Graph()
    symbols = [graph.symbol(f"x{k}") for k in range(len(at))]
    outputs = build(*symbols)
    rows = jacobian(outputs, symbols)
    slopes = make_program(graph, "slopes", {"J": np.array(rows, dtype=object)})
    backwards = [gradient(outputs, unit, symbols) for unit in np.eye(len(outputs))]
    reverse = make_program(graph, "reverse", {"J": np.array(backwards, dtype=object)})
    values = make_program(graph, "values", {"y": np.array(outputs, dtype=object)})
    names = [f"x{k}" for k in range(len(at))]

    def run(program, numbers):
        return np.array(list(program.evaluate(dict(zip(names, numbers, strict=True))).values()))

    step = 1e-6
    columns = [(run(values, at + step * unit) - run(values, at - step * unit)) / (2 * step) for unit in np.eye(len(at))]
    exact = run(slopes, at).reshape(len(outputs), len(at))
    # the same derivatives the other way through the graph
    assert run(reverse, at).reshape(exact.shape) == pytest.approx(exact, rel=1e-12, abs=1e-13)  # rounding
    return exact, np.array(columns).T


FUNCTIONS = {
    "sums and products": lambda a, b, c: [a + b - 2 * c, -a, a * b * c, (a - b) * (b - c)],
    "quotients and roots": lambda a, b, c: [a / b, -a / (b * c), 1 / (a + 3), a.sqrt(), (-a * -b).sqrt()],
    "angles": lambda a, b, c: [a.sin(), a.cos(), (a * b).sin() * c, (-b).sin(), (a - b).cos()],
    "arctangent": lambda a, b, c: [a.arctan2(b), (-a).arctan2(b * c), (a * c).arctan2(-b), a.arctan2(2.0)],
    "held and sign": lambda a, b, c: [(a * b).hold() * c, a.sign() * b],
    "solve": lambda a, b, c: list(a.solve_system(np.array([[a, b], [c, 2.0]]), np.array([b * c, a]))),
    "two": lambda a, b, c: list(a.solve_system(np.array([[0.0, -b], [c, -a]]), np.array([[b, 1.0], [a, -c]])).flat),
    "more rows": lambda a, b, c: list(a.solve_system(np.array([[a], [-3.0 * b], [c]]), np.array([b * c, a, -a * c]))),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_derivatives_equal_differences_of_the_values(case):
    rng = np.random.default_rng(2)
    for _ in range(5):
        exact, differences = derivatives(FUNCTIONS[case], rng.uniform(0.4, 1.5, 3))
        # a central difference over 1e-6 misses by its square times third derivatives (below 100) and by 1e-16 / 1e-6
        assert exact == pytest.approx(differences, abs=2e-8)
        assert np.abs(exact).max() > 0.1


def test_what_an_output_does_not_depend_on_is_plain_zero():
    graph = Graph()
    a, b = graph.symbol("a"), graph.symbol("b")
    assert jacobian([a * 2, 3.0, b - b], [a, b]) == [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert jacobian([a], []) == [[]]


@pytest.mark.parametrize(
    "name", ["5r", "four-bar", *(pytest.param(name, marks=pytest.mark.verify) for name in ("3rrr", "puma560"))]
)
def test_jax_differentiates_the_emitted_function_to_the_same_jacobian(name):
    import jax

    program, derived = made(name, "inverse"), made(name, "jacobian-of-inverse")
    given = {group: value[0] for group, value in inputs(program, samples(name, 1)).items()}
    x = np.concatenate([given[group].ravel() for group in program.inputs])
    function = function_of_file(program, "jax")
    with jax_in_doubles():
        by_jax = np.array(jax.jit(jax.jacfwd(lambda v: jax.numpy.stack(function(v))))(x))
    found = derived(**given)
    efforts = len(by_jax)
    by_graph = np.concatenate([found[f"by_{group}"].reshape(efforts, -1) for group in program.inputs], axis=1)
    # both are exact: rounding times the condition of what is solved
    assert np.abs(by_jax - by_graph).max() < 1e-11 * np.abs(by_jax).max()


def test_the_graph_knows_the_derivative_of_a_closed_geometry():
    """Joints by the platform's position: arctangents and roots of a robot with legs in closed form."""
    traced = trace(parflex.load("3rrr"), "geometry")
    position = traced.inputs["position"]
    rows = np.array(jacobian(list(traced.outputs["joints"]), list(position)), dtype=object)
    slopes = make_program(traced.graph, "slopes", {"J": rows})
    values = make_program(traced.graph, "values", {"joints": traced.outputs["joints"]})
    home = made("3rrr", "geometry").sample
    point = {f"position[{k}]": home["position"][k] for k in range(2)}
    point |= {f"rotation[{i},{j}]": home["rotation"][i, j] for i in range(2) for j in range(2)}
    exact = np.array(list(slopes.evaluate(point).values())).reshape(-1, 2)
    for k in range(2):
        ends = []
        for sign in (1, -1):
            moved = point | {f"position[{k}]": point[f"position[{k}]"] + sign * 1e-6}
            ends.append(np.array(list(values.evaluate(moved).values())))
        # a central difference over 1e-6: its square times third derivatives (below 1e3), and 1e-16 / 1e-6
        assert exact[:, k] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def symbolic(graph: Graph, name: str, numbers: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """Symbols where an array has numbers, plain zeros where it has zeros; and their values."""
    array, values = np.zeros(numbers.shape, dtype=object), {}
    for index in np.ndindex(numbers.shape):
        if numbers[index] != 0:
            label = f"{name}{index}"
            array[index], values[label] = graph.symbol(label), float(numbers[index])
    return array, values


def solved(solver, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    graph = Graph()
    (left, values), (right, more) = symbolic(graph, "A", A), symbolic(graph, "b", b)
    program = make_program(graph, "solve", {"x": solver(left, right)})
    found = program.evaluate({name: (values | more).get(name, 0.0) for name in program.inputs})
    return np.array(list(found.values())).reshape(b.shape)


@pytest.mark.parametrize("columns", [None, 2])
def test_systems_of_symbols_are_solved_by_their_structure(columns):
    rng = np.random.default_rng(6)
    for density in (0.4, 0.7, 1.0):
        for _ in range(8):
            A = rng.uniform(-1, 1, (6, 6)) * (rng.random((6, 6)) < density) + np.eye(6)[rng.permutation(6)] * 2
            b = rng.uniform(-1, 1, 6 if columns is None else (6, columns))
            wanted = np.linalg.solve(A, b)
            # the condition of such matrices is below 1e3
            assert solved(linear.solve, A, b) == pytest.approx(wanted, abs=1e-12 * max(1, np.abs(wanted).max()) * 1e2)


def test_a_system_whose_leading_pivots_vanish_is_solved():
    graph, names = Graph(), [f"a{k}" for k in range(16)]
    A = np.array([graph.symbol(name) for name in names], dtype=object).reshape(4, 4)
    b = np.array([1.0, -2, 3, 4])
    program = make_program(graph, "solve", {"x": linear.solve(A, b.astype(object))})
    numbers = np.array([[0, 0, 0, 2.0], [0, 0, 3, 1], [0, 4, 1, 1], [5, 1, 1, 1]])  # entries are zero, symbols are not
    found = program.evaluate(dict(zip(names, numbers.ravel(), strict=True)))
    assert list(found.values()) == pytest.approx(np.linalg.solve(numbers, b), rel=1e-14)


def legs_on_a_platform(rng, legs: int, zeros: float) -> np.ndarray:
    """A regular matrix like that of legs with 4 joints and 5 rows each on a platform with as many unknowns as legs."""
    while True:
        A = np.zeros((5 * legs, 5 * legs))
        for k in range(legs):
            own = slice(5 * k, 5 * k + 5)
            A[own, 4 * k : 4 * k + 4] = rng.uniform(-1, 1, (5, 4)) * (rng.random((5, 4)) > zeros)
            A[own, 4 * legs :] = rng.uniform(-1, 1, (5, legs)) * (rng.random((5, legs)) > zeros)
        if np.linalg.cond(A) < 1e3:
            return A


def test_legs_are_eliminated_one_by_one_at_any_pose():
    """The same program for matrices whose entries vanish in other places each time: no row can be chosen beforehand."""
    rng, graph, legs = np.random.default_rng(10), Graph(), 3
    A, _ = symbolic(graph, "A", np.abs(legs_on_a_platform(rng, legs, 0.0)))
    b = np.array([graph.symbol(f"b{k}") for k in range(5 * legs)], dtype=object)
    program = make_program(graph, "legs", {"x": linear.solve(A, b)})
    # in one block elimination alone takes 2 n^3 / 3; leg by leg it is about 4 x 5 x (4 + 3 + 1) for each, and 3 x 3
    assert program.counts()["total"] < 2 * (5 * legs) ** 3 / 3 / 3
    for _ in range(20):
        numbers, right = legs_on_a_platform(rng, legs, 0.4), rng.uniform(-1, 1, 5 * legs)
        values = {f"A{index}": numbers[index] for index in np.ndindex(numbers.shape)}
        values |= {f"b{k}": value for k, value in enumerate(right)}
        found = program.evaluate({name: float(values[name]) for name in program.inputs})
        # rounding times the condition
        assert list(found.values()) == pytest.approx(np.linalg.solve(numbers, right), rel=1e-10, abs=1e-10)


def test_constants_among_symbols_are_eliminated_as_numbers():
    graph = Graph()

    def system(a, b, kind):
        rows = [[1.0, 2.0, 0, 0, a], [3.0, 1.0, 0, 0, b], [-1.0, 4.0, 0, 0, 1.0], [0, 0, a, b, 1.0], [0, 0, b, -a, 0]]
        return np.array(rows, dtype=kind), np.array([1.0, 2.0, 3.0, a, 0.0], dtype=kind)

    program = make_program(graph, "mixed", {"x": linear.solve(*system(graph.symbol("a"), graph.symbol("b"), object))})
    found = program.evaluate({"a": 0.7, "b": 1.3})
    wanted = np.linalg.solve(*system(0.7, 1.3, float))
    assert list(found.values()) == pytest.approx(wanted, rel=1e-13)  # condition below 100


def test_a_positive_definite_system_is_solved_without_pivots():
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 6):
        J = rng.uniform(-1, 1, (n + 2, n))
        A, b = J.T @ J + 0.1 * np.eye(n), rng.uniform(-1, 1, n)
        exact = np.linalg.solve(A, b)
        assert solved(linear.solve_positive, A, b) == pytest.approx(exact, rel=1e-11)  # condition below 1e3


def test_blocks_come_in_an_order_in_which_each_needs_earlier_ones_only():
    rng = np.random.default_rng(8)
    for _ in range(20):
        A = rng.uniform(1, 2, (7, 7)) * (rng.random((7, 7)) < 0.3) + np.eye(7)[rng.permutation(7)]
        known: set[int] = set()
        for rows, columns in linear.triangular_blocks(A):
            used = {int(k) for row in rows for k in np.flatnonzero(A[row])}
            assert used <= known | set(columns)
            known |= set(columns)
        assert known == set(range(7))
    with pytest.raises(np.linalg.LinAlgError, match="structure"):
        linear.triangular_blocks(np.array([[1.0, 0], [1.0, 0]]))


def test_a_sparse_system_is_solved_as_a_dense_one():
    rng = np.random.default_rng(8)
    A = np.diag(rng.uniform(3, 5, 8)) + 0.0
    for i, j in ((0, 3), (3, 7), (1, 2), (2, 7), (4, 5), (5, 6)):
        A[i, j] = A[j, i] = rng.uniform(-1, 1)
    b = rng.uniform(-1, 1, 8)
    graph = Graph()
    symbols = A.astype(object)
    symbols[0, 0] = graph.symbol("a")
    x = linear.solve_positive(symbols, b.astype(object), sparse=True)
    program = make_program(graph, "x", {"x": x})
    assert program.counts()["div"] <= 8
    found = list(program.evaluate({"a": A[0, 0]}).values())
    assert np.abs(found - np.linalg.solve(A, b)).max() < 1e-14


def test_groups_of_unknowns_are_eliminated_as_single_ones_are():
    generator = np.random.default_rng(3)
    size = 12
    band = np.abs(np.subtract.outer(range(size), range(size))) < 5
    A = np.where(band, generator.standard_normal((size, size)), 0.0)
    A = ((A + A.T) / 2 + 10 * np.eye(size)).astype(object)
    b = generator.standard_normal(size)
    groups = [[3, 4, 5], [0, 1, 2], [6], [7, 8], [9, 10, 11]]
    steps = linear.eliminate_groups(A, groups)
    assert sorted(k for step in steps for k in step.unknowns) == list(range(size))
    assert sum(len(step.others) for step in steps) <= 15  # inwards from both ends
    found = np.array(linear.substitute_groups(steps, list(b)), dtype=float)
    assert np.abs(A.astype(float) @ found - b).max() < 1e-14 * 10  # rounding, the condition is about 2
    with pytest.raises(np.linalg.LinAlgError, match="no inertia"):
        linear.eliminate_groups(np.zeros((1, 1), dtype=object), [[0]])
