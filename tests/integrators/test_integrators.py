"""The compiled time loop against SciPy on small systems, and its coefficients against their conditions."""

import os
import subprocess
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from support.swinging import exact, swinging, system_of

from parflex import InputError
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.integrators import tableaux
from parflex.integrators.common import record
from parflex.integrators.driver import Grid, grid_of, method_named, new_work, run_loop
from parflex.symbolic.expression import Graph
from parflex.trajectories import laws, trajectory

TIME = 4.0


@cache
def reference() -> np.ndarray:
    return exact((0, TIME), [1.2, 0, 0, 0.5]).y[:, -1]


def error_of(name: str, step: float, tolerance: float) -> float:
    system, kernel = swinging(trajectory.linear(np.array([0.0, 10.0]), np.array([[0.0], [3.0]])))
    grid = Grid(1.0, 1, 4, tolerance, step) if name == "dopri5" else grid_of(TIME, step, 1.0)
    track = run_loop(system, method_named(name), grid, [1.2, 0], [0, 0.5], ["a", "b"], tolerance)
    assert track.status == "ok" and kernel is not None and track.t[-1] == pytest.approx(TIME)
    return float(np.abs(track.y[-1, :4] - reference()).max())


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "order", "step"),
    [("gauss4", 4, 0.1), ("gauss6", 6, 0.25), ("rk4", 4, 0.05), ("generalized-alpha", 2, 0.02)],
)
def test_halving_the_step_gains_what_the_order_says(name, order, step, figure):
    errors = [error_of(name, step / 2**k, 1e-14) for k in range(3)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    figure(f"order of {name}", float(orders[-1]), order)
    assert np.abs(orders - order).max() < 0.25  # the next term of the error is not yet gone


def test_steps_chosen_by_the_error_keep_to_the_tolerance():
    errors = [error_of("dopri5", 0.1, tolerance) for tolerance in (1e-5, 1e-7, 1e-9, 1e-11)]
    assert errors[0] < 1e-3 and errors[-1] < 1e-9  # some dozen steps each add about the tolerance
    assert all(later < earlier / 5 for earlier, later in pairwise(errors))


@pytest.mark.parametrize("stages", [2, 3])
def test_gauss_coefficients_integrate_polynomials_of_their_order(stages):
    method = tableaux.gauss(stages)
    for power in range(2 * stages):
        assert method.b @ method.c**power == pytest.approx(1 / (power + 1), abs=1e-14)
    for power in range(stages):
        assert np.allclose(method.A @ method.c**power, method.c ** (power + 1) / (power + 1), atol=1e-14)
    assert np.allclose(method.once @ method.A, np.eye(stages), atol=1e-13)
    assert np.allclose(method.twice @ method.AA, np.eye(stages), atol=1e-13)


def order_conditions(A: np.ndarray, c: np.ndarray) -> dict[int, list[tuple[np.ndarray, int]]]:
    """Butcher's conditions of each order: columns, and the number that one is divided by to be their weighted sum."""
    Ac, Acc = A @ c, A @ c**2
    leaves = [(c**4, 5), (c**2 * Ac, 10), (Ac**2, 20), (c * Acc, 15), (A @ c**3, 20)]
    return {
        1: [(c**0, 1)],
        2: [(c, 2)],
        3: [(c**2, 3), (Ac, 6)],
        4: [(c**3, 4), (c * Ac, 8), (Acc, 12), (A @ Ac, 24)],
        5: [*leaves, (c * (A @ Ac), 30), (A @ (c * Ac), 40), (A @ Acc, 60), (A @ A @ Ac, 120)],
    }


@pytest.mark.parametrize("method", [tableaux.rk4(), tableaux.dopri5()], ids=["rk4", "dopri5"])
def test_explicit_coefficients_satisfy_the_conditions_of_their_order(method):
    weights = {method.order: method.b} | ({method.order - 1: method.b - method.error} if method.error.any() else {})
    for reached, b in weights.items():
        for order, conditions in order_conditions(method.A, method.c).items():
            for column, number in conditions if order <= reached else []:
                assert b @ column == pytest.approx(1 / number, abs=1e-14)  # rounding


def test_inputs_of_a_single_piece_follow_those_of_many_in_the_same_work():
    """What lies behind the piece in memory is read nowhere, though the work stood in a later piece of other inputs."""
    system, _kernel = swinging(trajectory.linear(np.array([0.0, 1.0, 2.0, 3.0]), np.arange(4.0)[:, None]))
    work, x, y = new_work(system, 2, 2), np.zeros(5), np.zeros(system.outputs)
    state = np.zeros(system.positions), np.zeros(system.rates)
    record(system, work, 2.5, *state, x, y)
    assert x[-1] == 2.5
    behind = np.full((4, 6, 1), np.nan)
    behind[0] = [[7.0]] + [[0.0]] * 5
    breaks = np.array([0.0, -9.0, -9.0, -9.0])[:1]
    record(system._replace(breaks=breaks, coefficients=behind[:1]), work, 0.0, *state, x, y)
    assert x[-1] == 7.0


def linear_system(A, D):
    """Return q'' = A q + D q' as a system of the loop."""
    graph, size = Graph(), len(A)
    q, qd = (np.array([graph.symbol(f"{word}[{k}]") for k in range(size)], dtype=object) for word in ("q", "qd"))
    graph.symbol("effort[0]")
    program = make_program(graph, "line", {"q": q, "position_rates": qd, "rate_changes": A @ q + D @ qd})
    kernel = Kernel(program)
    return system_of(kernel, trajectory.constant(np.zeros(1)), size, 3 * size), kernel


@pytest.mark.parametrize("name", ["gauss4", "gauss6", "generalized-alpha"])
def test_a_step_of_newton_is_exact_for_linear_systems(name):
    system, _kernel = linear_system(np.array([[-900.0, 30.0], [40.0, -50.0]]), np.array([[-8.0, 2.0], [1.0, -3.0]]))
    track = run_loop(system, method_named(name), grid_of(2.0, 0.05, 0.05), [1.0, 0.5], [0.0, 0.0], ["a", "b"], 1e-9)
    assert track.status == "ok" and track.counts["iterations"] <= 2 * track.counts["steps"] + 2  # a change, then none


@pytest.mark.parametrize("radius", [0.0, 0.5, 1.0])
def test_generalized_alpha_damps_fast_modes_by_its_radius(radius):
    # a spring far stiffer than the step resolves: each step multiplies the motion by the radius
    system, _kernel = linear_system(np.array([[-1e8]]), np.zeros((1, 1)))
    method = method_named("generalized-alpha", radius)
    track = run_loop(system, method, grid_of(4.0, 0.1, 0.1), [1.0], [0.0], ["a"], 1e-10)
    late = np.abs(track.y[20:40, 0])
    if radius == 0.0:
        assert late.max() < 1e-8  # the tolerance of the iteration
    else:
        assert (late[-1] / late[0]) ** (1 / 19) == pytest.approx(radius, rel=0.1)  # a double root: t r^t, slowly r^t


def test_unknown_methods_are_refused():
    with pytest.raises(InputError, match="did you mean"):
        method_named("gauss5")
    with pytest.raises(InputError, match="between 0 and 1"):
        method_named("generalized-alpha", 1.5)


def test_quintics_are_exact_for_pieces_of_degree_five():
    t = np.array([0.0, 0.3, 1.0, 1.4])
    shape = np.polynomial.Polynomial([1, -2, 0.5, 3, -1, 0.7])
    values = [np.array([shape.deriv(k)(t) if k else shape(t)]).T for k in range(3)]
    found = trajectory.hermite(t, *values)
    times = np.linspace(0, 1.39, 50)
    for order in range(3):
        wanted = shape.deriv(order)(times) if order else shape(times)
        assert np.abs(found.value(times, order)[:, 0] - wanted).max() < 1e-11  # rounding of powers up to 1/0.3^5
    assert found.value(9.0)[0] == pytest.approx(shape(1.4))
    assert found.value(9.0, 1)[0] == 0.0


def test_a_smooth_step_is_the_quintic_from_rest_to_rest():
    """Held against the six conditions at the ends of any quintic, solved as a linear system."""
    poly, rng = np.polynomial.polynomial, np.random.default_rng(5)

    def conditions(u):
        return [poly.polyder(np.eye(6), order).T @ u ** np.arange(6 - order) for order in range(3)]

    V = np.array([row for pair in zip(conditions(0.0), conditions(1.0), strict=True) for row in pair])
    given = rng.uniform(-1, 1, (3, 2))
    assert np.array(trajectory.quintic_powers(*given)) == pytest.approx(np.linalg.solve(V, given.ravel()), abs=1e-13)
    step = np.linalg.solve(V, [0, 1, 0, 0, 0, 0])
    u, time = np.linspace(0, 1, 7), 2.5
    law = laws.unit_law("quintic", time)
    for order in range(3):
        values = law.value(u * time, order)[:, 0]
        assert values == pytest.approx(poly.polyval(u, poly.polyder(step, order)) / time**order, abs=1e-13)
    assert [law.value(time, order, behind=True)[0] for order in range(3)] == [1.0, 0.0, 0.0]  # at rest, exactly
    assert laws.cruise(2.0, time).value(u * time)[:, 0] == pytest.approx(
        2.0 * time * poly.polyval(u, poly.polyint(step)), abs=1e-13
    )


@pytest.mark.skipif(os.name == "nt", reason="the folder is made unusable by a plain file, which is treated otherwise")
def test_loops_run_where_nothing_can_be_cached(tmp_path):
    (tmp_path / "file").write_text("in the way")
    code = "from parflex.integrators.steps import rows_ahead\nprint(rows_ahead(42.5, 1.0, 100))"
    without = {name: value for name, value in os.environ.items() if name != "PARFLEX_CACHE"}
    for chosen in ({"XDG_CACHE_HOME": str(tmp_path / "file")}, {"PARFLEX_CACHE": "off"}):
        words = {"capture_output": True, "text": True, "check": False, "env": without | chosen}
        done = subprocess.run([sys.executable, "-c", code], **words)
        assert done.stdout.strip() == "42", done.stderr
