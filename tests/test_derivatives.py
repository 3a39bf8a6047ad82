"""Derivatives of the graph against differences and against JAX, rule by rule and robot by robot."""

from __future__ import annotations

import numpy as np
import pytest
from support.emitted import function_of_file, jax_in_doubles
from support.traced import LONG_JACOBIANS, ROBOTS, inputs, long, made, samples

from parflex.codegen.passes.optimise import make_program
from parflex.graph import Graph
from parflex.graph.derivative import jacobian
from parflex.graph.reverse import gradient, sparsity


def derivatives(build, at: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Of functions of a few symbols: by the graph, and by central differences of their values."""
    graph = Graph()
    symbols = [graph.symbol(f"x{k}") for k in range(len(at))]
    outputs = build(*symbols)
    rows = jacobian(outputs, symbols)
    slopes = make_program(graph, "slopes", {"J": np.array(rows, dtype=object)})
    backwards = [gradient(outputs, unit, symbols) for unit in np.eye(len(outputs))]
    reverse = make_program(graph, "reverse", {"J": np.array(backwards, dtype=object)})
    felt = sparsity(outputs, symbols)
    values = make_program(graph, "values", {"y": np.array(outputs, dtype=object)})
    names = [f"x{k}" for k in range(len(at))]

    def run(program, numbers):
        return np.array(list(program.evaluate(dict(zip(names, numbers, strict=True))).values()))

    step = 1e-6
    columns = [(run(values, at + step * unit) - run(values, at - step * unit)) / (2 * step) for unit in np.eye(len(at))]
    exact = run(slopes, at).reshape(len(outputs), len(at))
    # the same derivatives the other way through the graph, and none where there can be none
    assert run(reverse, at).reshape(exact.shape) == pytest.approx(exact, rel=1e-12, abs=1e-13)  # rounding
    assert np.all(np.array(felt) | (exact == 0))
    return exact, np.array(columns).T


@pytest.mark.parametrize(
    "build",
    [
        lambda a, b, c: [a + b - 2 * c, -a, a * b * c, (a - b) * (b - c)],
        lambda a, b, c: [a / b, -a / (b * c), 1 / (a + 3), a.sqrt(), (-a * -b).sqrt()],
        lambda a, b, c: [a.sin(), a.cos(), (a * b).sin() * c, (-b).sin(), (a - b).cos()],
        lambda a, b, c: [a.arctan2(b), (-a).arctan2(b * c), (a * c).arctan2(-b), a.arctan2(2.0)],
        lambda a, b, c: [(a * b).hold() * c, a.sign() * b],
        lambda a, b, c: list(a.solve_system(np.array([[a, b], [c, 2.0]]), np.array([b * c, a]))),
        lambda a, b, c: list(a.solve_system(np.array([[0.0, -b], [c, -a]]), np.array([[b, 1.0], [a, -c]])).flat),
        lambda a, b, c: list(a.solve_system(np.array([[a], [-3.0 * b], [c]]), np.array([b * c, a, -a * c]))),
    ],
    ids=[
        "sums and products",
        "quotients and roots",
        "angles",
        "arctangent",
        "held and sign",
        "solve",
        "solve of two",
        "more rows",
    ],
)
def test_derivatives_equal_differences_of_the_values(build):
    rng = np.random.default_rng(2)
    for _ in range(5):
        exact, differences = derivatives(build, rng.uniform(0.4, 1.5, 3))
        # a central difference over 1e-6 misses by its square times third derivatives (below 100) and by 1e-16 / 1e-6
        assert exact == pytest.approx(differences, abs=2e-8)
        assert np.abs(exact).max() > 0.1


def test_what_an_output_does_not_depend_on_is_plain_zero():
    graph = Graph()
    a, b = graph.symbol("a"), graph.symbol("b")
    assert jacobian([a * 2, 3.0, b - b], [a, b]) == [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert jacobian([a], []) == [[]]


ROBOTS_WITH_LONG = [pytest.param(name, marks=long if name in LONG_JACOBIANS else []) for name in ROBOTS]


@pytest.mark.few
@pytest.mark.parametrize("name", ROBOTS_WITH_LONG)
def test_the_jacobian_of_the_inverse_model_equals_differences_of_the_inverse_model(name, figure):
    program, derived = made(name, "inverse"), made(name, "jacobian-of-inverse")
    states = samples(name, 6)
    given = inputs(program, states)
    found = derived(**given)
    worst = 0.0
    for group, value in given.items():
        exact = found[f"by_{group}"]
        for index in np.ndindex(value.shape[1:]):
            step = np.zeros_like(value)
            step[(slice(None), *index)] = 2e-5
            near = [program(**(given | {group: value + k * step}))["effort"] for k in (1, -1, 2, -2)]
            slope = (8 * (near[0] - near[1]) - (near[2] - near[3])) / (12 * 2e-5)
            miss = np.abs(exact[(slice(None), slice(None), *index)] - slope).max(axis=1)
            size = np.maximum(np.abs(exact).reshape(len(states), -1).max(axis=1), 1.0)
            worst = max(worst, float((miss / size).max()))
    figure(f"{name}: Jacobian of the inverse model against differences", worst, 1e-7)
    # five points over 2e-5 miss by 1e-19 times fifth derivatives (1e10 near a stretched leg); rounding of values whose
    # systems have a condition of up to 1e3, 1e-13, is divided by the step
    assert worst < 1e-7


@pytest.mark.parametrize("name", ["5r", "four-bar", *(pytest.param(name, marks=long) for name in ("3rrr", "puma560"))])
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
    from parflex import load
    from parflex.codegen.traces.trace import Options, trace

    traced = trace(load("3rrr"), "geometry", Options())
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
