"""The compiled time loop against SciPy on small systems written out here, and the given inputs against closed forms."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from support.swinging import swinging, whole

import parflex
from parflex import InputError
from parflex.codegen.compile import Kernel
from parflex.codegen.passes.optimise import make_program
from parflex.graph import Graph
from parflex.simulation.inputs import polynomials, quintics
from parflex.simulation.integrators import tableaux
from parflex.simulation.integrators.integrate import METHODS, grid_of, method_named, run_loop
from parflex.simulation.integrators.loop import EVALUATIONS, evaluate, evaluate_pair, record
from parflex.simulation.integrators.system import System, new_work
from parflex.simulation.problem import prepare

TIME = 4.0


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    def slope(t, s):
        pull = 0.5 * (s[0] - s[1])
        return [s[2], s[3], -np.sin(s[0]) - pull + 0.3 * t, -4 * s[1] + pull - 0.1 * s[3]]

    return solve_ivp(slope, (0, TIME), [1.2, 0, 0, 0.5], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


def error_of(name: str, step: float, reference: np.ndarray, tolerance: float) -> float:
    ramp = polynomials.linear(np.array([0.0, 10.0]), np.array([[0.0], [3.0]]))
    system, kernel = swinging(ramp)
    track = run_loop(system, method_named(name), grid_of(TIME, step, 1.0), [1.2, 0], [0, 0.5], ["a", "b"], tolerance)
    assert track.status == "ok" and kernel is not None
    assert track.t[-1] == pytest.approx(TIME)
    return float(np.abs(track.y[-1, :4] - reference).max())


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "order", "step"),
    [("gauss4", 4, 0.1), ("gauss6", 6, 0.25), ("rk4", 4, 0.05), ("generalized-alpha", 2, 0.02)],
)
def test_halving_the_step_gains_what_the_order_says(name, order, step, reference, figure):
    errors = [error_of(name, step / 2**k, reference, 1e-14) for k in range(3)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    figure(f"order of {name}", float(orders[-1]), order)
    assert np.abs(orders - order).max() < 0.25  # the next term of the error is not yet gone


def test_steps_chosen_by_the_error_keep_to_the_tolerance(reference):
    errors = [error_of("dopri5", 0.1, reference, tolerance) for tolerance in (1e-5, 1e-7, 1e-9, 1e-11)]
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


def test_constants_of_a_model_stand_behind_its_inputs_at_every_stage():
    ramp = polynomials.linear(np.array([0.0, 1.0]), np.array([[0.0], [3.0]]))
    system = swinging(ramp)[0]._replace(constants=np.array([7.0, 8.0]))
    assert (new_work(system, 2, 2).x == [0, 0, 0, 0, 0, 7, 8]).all()  # q, qd, one effort, constants


def test_inputs_of_one_piece_follow_those_of_many_in_the_same_work():
    """What lies behind the piece in memory is read nowhere, though the work stood in a later piece of other inputs."""
    system, _kernel = swinging(polynomials.linear(np.array([0.0, 1.0, 2.0, 3.0]), np.arange(4.0)[:, None]))
    work, x, y = new_work(system, 2, 2), np.zeros(5), np.zeros(system.outputs)
    record(system, work, 2.5, np.zeros(system.positions), np.zeros(system.rates), x, y)
    assert x[-1] == 2.5
    behind = np.full((4, 6, 1), np.nan)
    behind[0] = [[7.0]] + [[0.0]] * 5
    one = system._replace(breaks=np.array([0.0, -9.0, -9.0, -9.0])[:1], coefficients=behind[:1])
    record(one, work, 0.0, np.zeros(system.positions), np.zeros(system.rates), x, y)
    assert x[-1] == 7.0


@pytest.mark.parametrize("name", ["gauss4", "gauss6", "generalized-alpha"])
def test_a_step_of_newton_is_exact_for_linear_systems(name):
    graph = Graph()
    q, qd = (np.array([graph.symbol(f"{word}[{k}]") for k in range(2)], dtype=object) for word in ("q", "qd"))
    graph.symbol("effort[0]")
    pulls = np.array([[-900.0, 30.0], [40.0, -50.0]]) @ q + np.array([[-8.0, 2.0], [1.0, -3.0]]) @ qd
    kernel = Kernel(make_program(graph, "line", {"q": q, "position_rates": qd, "rate_changes": pulls}))
    still, none, both = polynomials.constant(np.zeros(1)), whole(), whole(0, 1)
    fixed = (kernel.address("one"), 2, 2, both, np.array([[0, 0], [1, 1]], dtype=np.int64), *[none] * 6)
    system = System(*fixed, np.ones(2), np.zeros(0), 6, 20, still.breaks, still.coefficients)
    track = run_loop(system, method_named(name), grid_of(2.0, 0.05, 0.05), [1.0, 0.5], [0.0, 0.0], ["a", "b"], 1e-9)
    assert track.status == "ok" and track.counts["iterations"] <= 2 * track.counts["steps"] + 2  # a change, then none


def test_stages_side_by_side_are_closed_as_alone():
    """Two rows in one call of the model, the second with a guess of its closing angles that is far off."""
    robot = parflex.load("5r")
    problem = prepare(robot, "efforts", numbers=("pairs",))  # whose machine code lives as long as it does
    system = problem.system(polynomials.Polynomials(np.array([0.0, np.inf]), np.zeros((1, 1, 2))))
    work = new_work(system, 2, 2)
    rates = 0.3 * np.arange(1, system.rates + 1)
    for row in work.x[:2]:
        row[: system.positions] = parflex.configure(robot).q
        row[system.positions : system.positions + system.rates] = rates
    work.x[1, system.closing] += 0.03
    alone = work.x.copy(), work.y.copy()
    for x, y in zip(*alone, strict=True):
        evaluate(system, work, x, y)
    work.counts[:] = 0
    evaluate_pair(system, work)
    assert work.counts[EVALUATIONS] >= 4  # the second row took another call
    for found, known in ((work.y, alone[1]), (work.x, alone[0])):
        # a closure that is closed once more moves by rounding
        assert np.abs(found[:2] - known[:2]).max() <= 1e-12 * np.abs(known[:2]).max()


@pytest.mark.parametrize("radius", [0.0, 0.5, 1.0])
def test_generalized_alpha_damps_what_is_fast_as_asked(radius):
    # a spring far stiffer than the step resolves: each step multiplies the motion by the radius
    graph = Graph()
    q, qd, _ = (np.array([graph.symbol(name)], dtype=object) for name in ("q[0]", "qd[0]", "effort[0]"))
    kernel = Kernel(make_program(graph, "stiff", {"q": q, "position_rates": qd, "rate_changes": -1e8 * q}))
    still, none = polynomials.constant(np.zeros(1)), whole()
    fixed = (kernel.address("one"), 1, 1, whole(0), np.array([[0, 0]], dtype=np.int64), *[none] * 6)
    system = System(*fixed, np.ones(1), np.zeros(0), 3, 5, still.breaks, still.coefficients)
    method = method_named("generalized-alpha", radius)
    track = run_loop(system, method, grid_of(4.0, 0.1, 0.1), [1.0], [0.0], ["a"], 1e-10)
    late = np.abs(track.y[20:40, 0])
    if radius == 0.0:
        assert late.max() < 1e-8  # the tolerance of the iteration
    else:
        assert (late[-1] / late[0]) ** (1 / 19) == pytest.approx(radius, rel=0.1)  # a double root: t r^t, slowly r^t


def test_a_method_that_is_not_there_is_named():
    with pytest.raises(InputError, match="did you mean"):
        method_named("gauss5")
    with pytest.raises(InputError, match="between 0 and 1"):
        method_named("generalized-alpha", 1.5)
    assert len(METHODS) == 5


def test_quintics_are_exact_for_pieces_of_degree_five():
    t = np.array([0.0, 0.3, 1.0, 1.4])
    shape = np.polynomial.Polynomial([1, -2, 0.5, 3, -1, 0.7])
    values = [np.array([shape.deriv(k)(t) if k else shape(t)]).T for k in range(3)]
    found = polynomials.hermite(t, *values)
    times = np.linspace(0, 1.39, 50)
    for order in range(3):
        wanted = shape.deriv(order)(times) if order else shape(times)
        assert np.abs(found.at(times, order)[:, 0] - wanted).max() < 1e-11  # rounding of powers up to 1/0.3^5
    assert found.at(9.0)[0] == pytest.approx(shape(1.4))
    assert found.at(9.0, 1)[0] == 0.0


def test_a_smooth_step_is_the_quintic_from_rest_to_rest():
    """Held against the six conditions at the ends of any quintic, solved as a linear system."""
    rng = np.random.default_rng(5)

    def conditions(u):
        return [np.polynomial.polynomial.polyder(np.eye(6), order).T @ u ** np.arange(6 - order) for order in range(3)]

    V = np.array([row for pair in zip(conditions(0.0), conditions(1.0), strict=True) for row in pair])
    given = rng.uniform(-1, 1, (3, 2))
    wanted = np.linalg.solve(V, given.ravel())
    assert np.array(quintics.quintic_powers(*given)) == pytest.approx(wanted, abs=1e-13)  # rounding
    step = np.linalg.solve(V, [0, 1, 0, 0, 0, 0])
    u, time = np.linspace(0, 1, 7), 2.5
    for order, found in enumerate(quintics.smooth_step(u, time)):
        exact = np.polynomial.polynomial.polyval(u, np.polynomial.polynomial.polyder(step, order)) / time**order
        assert found == pytest.approx(exact, abs=1e-13)
    way = np.polynomial.polynomial.polyval(u, np.polynomial.polynomial.polyint(step))
    assert quintics.smooth_step_integral(u) == pytest.approx(way, abs=1e-14)
    assert [part[-1] for part in quintics.smooth_step(u)] == [1.0, 0.0, 0.0]  # at rest, exactly


def test_repeated_integrals_of_steps_are_those_of_quadrature():
    t, jumps = np.array([0.0, 0.5, 1.2]), np.array([[1.0], [-2.0], [0.0]])
    found = polynomials.integral(t, jumps, np.array([3.0]), 2)

    def rate(s: float) -> float:
        return quad(lambda u: 1.0 if u < 0.5 else -2.0 if u < 1.2 else 0.0, 0, s, points=[0.5, 1.2])[0]

    for s in (0.2, 0.9, 1.6):
        assert found.at(s, 1)[0] == pytest.approx(rate(s), abs=1e-9)
        assert found.at(s)[0] == pytest.approx(3.0 + quad(rate, 0, s, points=[0.5, 1.2])[0], abs=1e-8)


def test_channels_beside_each_other_keep_their_values():
    first = polynomials.linear(np.array([0.0, 1.0, 3.0]), np.array([[0.0], [2.0], [-1.0]]))
    second = polynomials.hermite(np.array([0.5, 2.0]), *(np.array([[a], [b]]) for a, b in ((1, 2), (0, 1), (3, 0))))
    both = first.beside(second)
    times = np.linspace(-0.5, 4, 30)
    assert np.allclose(both.at(times)[:, 0], first.at(times)[:, 0], atol=1e-12)
    inside = (times > 0.5) & (times < 2.0)
    assert np.allclose(both.at(times)[inside, 1], second.at(times)[inside, 0], atol=1e-12)


def test_loops_run_where_nothing_can_be_kept(tmp_path):
    if os.name == "nt":
        pytest.skip("the folder is made unusable by a plain file, which is treated otherwise there")
    (tmp_path / "file").write_text("in the way")
    code = "from parflex.simulation.integrators.chosen_steps import rows_ahead\nprint(rows_ahead(42.5, 1.0, 100))"
    without = {name: value for name, value in os.environ.items() if name != "PARFLEX_CACHE"}
    for chosen in ({"XDG_CACHE_HOME": str(tmp_path / "file")}, {"PARFLEX_CACHE": "off"}):
        environment = without | chosen
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
        )
        assert done.stdout.strip() == "42", done.stderr
