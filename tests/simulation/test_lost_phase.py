"""Default steps of long runs: the phase of vibrations against closed forms."""

import re

import numpy as np
import pytest
from scipy.linalg import expm
from support.oracles.vibrations import clamped_free_shape
from support.robots import load_robot

import parflex
from parflex.integrators.driver import method_named
from parflex.simulation.lost_phase import Vibrations, decays, phase_steps

METHODS = ("gauss4", "gauss6", "rk4", "generalized-alpha")
ALLOWED = 0.01  # of the largest amplitude: what default steps may be off by


def slider(mass, omega, ratio=0.0, actuated=False):
    numbers = {"inertia.mass": mass, "spring.stiffness": mass * omega**2, "friction.viscous": 2 * ratio * omega * mass}
    settings = {f"frame.s.{key}": float(value) for key, value in numbers.items()}
    return load_robot("sprung-slider", settings=settings | {"frame.s.actuated": actuated})


def moved(words):
    """By how much a warning says that positions are off (m)."""
    return float(re.search(r"positions by (\S+) m", words)[1])


def released(start, omega, ratio, t):
    """x'' + 2 ratio omega x' + omega^2 x = 0 from a position and a rate."""
    decay, damped = ratio * omega, omega * np.sqrt(1 - ratio**2)
    x, v = start
    return np.exp(-decay * t) * (x * np.cos(damped * t) + (v + decay * x) / damped * np.sin(damped * t))


@pytest.mark.parametrize("radius", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("method", METHODS)
def test_the_phase_that_steps_lose_is_that_of_the_method(method, radius):
    if method != "generalized-alpha" and radius:
        pytest.skip("the method has no radius")
    omega, time, aim = 500.0, 0.25, 1e-5  # of amplitudes of 1e-3
    one = Vibrations(np.array([omega]), np.array([1e-3]), np.zeros(1), aim)
    (step,) = phase_steps(one, time, method_named(method, radius).tableau)
    end = round(time / step) * step
    given = {"radius": radius} if method == "generalized-alpha" else {}
    run = parflex.simulate(
        slider(2.0, omega), None, end, start={"pose": {"s": 1e-3}}, method=method, step=step, out_step=step,
        **given,
    )  # fmt: skip
    off = np.abs(run["q.s"] - 1e-3 * np.cos(omega * run.t)).max()
    # steps of gauss6 have omega h = 1.4, and a next term that counts
    assert off == pytest.approx(aim, rel=0.2 if method == "gauss6" else 0.1)


@pytest.mark.parametrize(("seed", "cases"), [(7, 10), pytest.param(8, 100, marks=pytest.mark.verify)])
def test_random_springs_keep_their_phase_over_runs_of_any_length(seed, cases):
    draw = np.random.default_rng(seed)
    limited = told = 0
    for _ in range(cases):
        method = METHODS[draw.integers(4)]
        omega, ratio = 2 * np.pi * 10 ** draw.uniform(1, 3.3), 10 ** draw.uniform(-5, -0.5) * draw.integers(2)
        periods = 10 ** draw.uniform(0.5, 3.5)
        of, time = slider(10 ** draw.uniform(-1, 1), omega, ratio), periods * 2 * np.pi / omega
        start = (1e-3, 0.0) if draw.integers(2) else (0.0, 1e-3 * omega)
        given = {"pose": {"s": start[0]}, "velocity": {"s": start[1]}}
        run = parflex.simulate(of, None, time, start=given, method=method, out_step=time / 2000)
        x = released(start, omega, ratio, run.t)
        off = float(np.abs(run["q.s"] - x).max() / 1e-3)
        said = [words for words in run.summary["warnings"] if "drift by up to" in words]
        limited, told = limited + ("whose phase" in run.summary["step_choice"]), told + len(said)
        if said:
            # of the whole amplitude, two digits; rows may miss the instant
            assert off == pytest.approx(moved(said[0]) / 1e-3, rel=0.15), (method, periods, ratio)
        else:
            # the amplitudes that rk4 and generalized-alpha lose are smaller than their phases
            assert off < 1.1 * ALLOWED, (method, periods, ratio)
    assert limited and told  # the draw has both kinds


@pytest.mark.parametrize(("seed", "cases"), [(1, 12), pytest.param(2, 100, marks=pytest.mark.verify)])
def test_the_reported_drift_of_random_springs_is_their_error(seed, cases):
    """Phases and amplitudes that any method loses with 3 to 60 steps in a period, in runs of any length."""
    draw = np.random.default_rng(seed)
    told, of = {}, None
    for case in range(cases):
        if case % 4 == 0:  # the same spring under all methods
            omega, ratio = 2 * np.pi * 10 ** draw.uniform(1, 3.3), 10 ** draw.uniform(-5, -1) * draw.integers(2)
            of = slider(10 ** draw.uniform(-1, 1), omega, ratio)
        method, radius = METHODS[case % 4], float(draw.choice([0.0, 0.5, 0.8, 1.0]))
        step = 2 * np.pi / omega / 10 ** draw.uniform(0.5, 0.8 if method == "gauss6" else 1.8)
        if method == "rk4":
            step = min(step, 2.5 / omega)  # beyond it is not stable
        steps = int(10 ** draw.uniform(1, 3.5) * 2 * np.pi / omega / step) + 1
        start = (1e-3, 0.0) if draw.integers(2) else (0.0, 1e-3 * omega)
        given = {"pose": {"s": start[0]}, "velocity": {"s": start[1]}}
        words = {"start": given, "method": method, "step": step, "out_step": step, "radius": radius}
        run = parflex.simulate(of, None, steps * step, **words)
        off = float(np.abs(run["q.s"] - released(start, omega, ratio, run.t)).max() / 1e-3)
        said = [words for words in run.summary["warnings"] if words.startswith("vibrations at")]
        what = (method, radius, omega * step, steps, ratio, off)
        # damping shifts phases of long steps a little; generalized-alpha begins with an acceleration of another place,
        # once: (omega h)^2/4 at most
        once = 0.25 * (omega * step) ** 2 if method == "generalized-alpha" else 0.0
        if said:
            told[method] = told.get(method, 0) + 1
            assert off == pytest.approx(moved(said[0]) / 1e-3, rel=0.15, abs=once), what
        else:
            assert off < 1.7 * ALLOWED + once, what
    assert set(told) == set(METHODS)


@pytest.mark.parametrize("method", ["gauss4", "generalized-alpha"])
def test_the_same_vibration_has_the_same_steps_and_words_however_small_it_is(method):
    """Loads down to 1e-5 of the first one; zero velocity and load excite nothing."""
    draw = np.random.default_rng(5)
    omega, ratio = 2 * np.pi * float(draw.uniform(20, 60)), 1e-4
    of, time = slider(2.0, omega, ratio, actuated=True), 1.5
    first = None
    for force in (10.0, 10 * 10 ** draw.uniform(-4, -3), 10 * 10 ** draw.uniform(-5, -4.6)):
        pulse = ([0, 0.001, 0.004, time], [0, force, 0, 0])
        chosen = parflex.simulate(of, None, time, effort={"s": pulse}, method=method, out_step=0.01)
        given = parflex.simulate(of, None, time, effort={"s": pulse}, method=method, step=4e-3, out_step=0.012)
        words = [word for word in given.summary["warnings"] if word.startswith("vibrations at")]
        share = re.search(r"\((\S+ % of|\S+ times) the largest", words[0])[1]
        found = chosen.summary["steps"], share, chosen["q.s"] / force
        first = first or found
        assert found[:2] == first[:2], force
        # iterations end at 1e-12 typical lengths, of 3e-10
        assert found[2] == pytest.approx(first[2], abs=1e-2 * np.abs(first[2]).max()), force
    rest = parflex.simulate(of, None, time, method=method, out_step=0.01)
    assert "no frequency that is excited" in rest.summary["step_choice"] and not rest.summary["warnings"]


def test_amplitudes_that_long_steps_lose_are_reported():
    """Steps of two radians keep 0.745 of an amplitude, sqrt(1 - x^6/72 + x^8/576), and 0.034 rad too much of phase."""
    omega, steps = 100.0, 12
    step = 2.0 / omega
    run = parflex.simulate(
        slider(2.0, omega), None, steps * step, start={"pose": {"s": 1e-3}}, method="rk4", step=step,
        out_step=step,
    )  # fmt: skip
    (said,) = (words for words in run.summary["warnings"] if words.startswith("vibrations at"))
    assert f"lose up to {100 * (1 - (5 / 9) ** (steps / 2)):.2g} % of their amplitude" in said
    off = np.abs(run["q.s"] - released((1e-3, 0.0), omega, 0.0, run.t)).max()
    assert moved(said) == pytest.approx(off, rel=0.1)  # the phase in which it ends


def test_the_drift_of_a_long_run_is_reported_with_a_sufficient_step():
    """A pulse leaves a vibration: 30 s with 34 steps of generalized-alpha in a period end in opposite phase."""
    omega, time = 2 * np.pi * 6, 30.0
    of = slider(2.0, omega, actuated=True)
    pulse = ([0, 0.1, 0.2, time], [0, 5, 0, 0])
    asked = {"effort": {"s": pulse}, "method": "generalized-alpha", "out_step": 0.01}
    run = parflex.simulate(of, None, time, step=5e-3, **asked)
    (said,) = (words for words in run.summary["warnings"] if words.startswith("vibrations at 6 Hz drift by up to"))
    follows = parflex.simulate(of, None, time, step=float(said.rpartition(" ")[2]), **asked)
    assert not any(words.startswith("vibrations") for words in follows.summary["warnings"])
    for found, off in ((run, moved(said)), (follows, None)):
        # kinks of the force, 50 N/s, -100 and 50: each begins a vibration and a ramp
        kinks = [(0.0, 25.0), (0.1, -50.0), (0.2, 25.0)]
        ramps = [(k, np.maximum(found.t - at, 0)) for at, k in kinks]
        x = sum(k / omega**2 * (s - np.sin(omega * s) / omega) for k, s in ramps)
        real = np.abs(found["q.s"] - x).max()
        assert real == pytest.approx(off, rel=0.1) if off else real < ALLOWED * np.abs(x).max()


def test_what_decays_needs_its_phase_no_longer():
    omega, time = 2 * np.pi * 500, 10.0
    steps = {}
    for ratio in (0.0, 1e-4, 1e-2):
        run = parflex.simulate(slider(2.0, omega, ratio), None, time, start={"pose": {"s": 1e-3}})
        off = np.abs(run["q.s"] - released((1e-3, 0.0), omega, ratio, run.t)).max()
        assert off < ALLOWED * 1e-3
        steps[ratio] = run.summary["steps"]
    # (0.01/43.6/... )^(1/4): 51 in a period; with a time constant of 3.2 s the error is 0.117 of that; then 20 do
    assert steps[0.0] == pytest.approx(255e3, rel=0.03) and steps[1e-4] == pytest.approx(149e3, rel=0.03)
    assert steps[1e-2] == pytest.approx(100e3, rel=0.01)


def test_a_friction_that_is_the_same_at_any_speed_is_no_damping():
    omega = 2 * np.pi * 500
    numbers = {"frame.s.spring.stiffness": 2 * omega**2, "frame.s.friction": {"coulomb": 1e-3}}
    robot, start = load_robot("sprung-slider", settings=numbers), {"pose": {"s": 1e-3}}
    run = parflex.simulate(robot, None, 2.0, start=start, friction_width=1e-4, check_width=False)
    assert "34 in a period" in run.summary["step_choice"]  # as without: 0.01 rad in 1000 periods


def test_coupled_damping_lets_each_mode_last_as_long_as_its_longest_vibration():
    """Random chains, some nearly alike, with any damping: the energy of no mode decays faster than it is told to."""
    draw = np.random.default_rng(11)
    for _ in range(200):
        n = int(draw.integers(1, 6))
        omega = 100 * (1 + 10.0 ** draw.uniform(-5, 0) * draw.uniform(0, 1, n))
        root = draw.normal(size=(n, int(draw.integers(1, n + 1)))) * 10 ** draw.uniform(-2, 1)
        damping = -root @ root.T
        told = decays(omega, damping, np.ones(n))
        A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.diag(omega**2), damping]])
        values = np.linalg.eigvals(A)
        slowest, fastest = (-values.real).min(), (-values.real).max()
        assert np.all(told >= slowest * (1 - 1e-6) - 1e-9) and np.all(told <= fastest * (1 + 1e-6) + 1e-9)
        when = 3 / max(told.max(), 1e-3)
        left = expm(A * when)
        for k in range(n):  # from one in its own mode: what is left of it is no less than what is told, but for beating
            energy = np.abs(np.concatenate([omega, np.ones(n)]) * left[:, n + k])
            assert np.linalg.norm(energy) > 1e-3 * np.exp(-told[k] * when)


def cantilever(thickness, elements):
    beam = {"frame.arm.beam.length": 0.02, "frame.arm.beam.elements": elements, "sections.flat.y": thickness}
    return load_robot("driven-beam", settings=beam)


@pytest.mark.verify
@pytest.mark.parametrize(("mode", "elements", "periods"), [(0, 8, 500), (1, 20, 1500)])
def test_a_cantilever_released_in_a_mode_keeps_its_phase(mode, elements, periods):
    thickness, length = 1e-4, 0.02
    z, shape, slope = clamped_free_shape(mode)
    omega = (z / length) ** 2 * np.sqrt(210e9 * thickness**2 / 12 / 7850)
    x = np.linspace(0, 1, elements + 1)
    w, turn, each = shape(x) * 4e-6, slope(x) * 4e-6 / length, length / elements
    names = ["arm", *(f"arm.{k}" for k in range(1, elements))]
    start = {f"{name}.uy": w[k + 1] - w[k] - turn[k] * each for k, name in enumerate(names)}
    start |= {f"{name}.rz": turn[k + 1] - turn[k] for k, name in enumerate(names)}
    time = periods * 2 * np.pi / omega
    still = {"joints": [{"car": 0}, {"car": 0}], "duration": time}
    of = cantilever(thickness, elements)
    q = [float(start.get(name, 0.0)) for name in of.tree.position_names]
    run = parflex.simulate(of, still, time, start={"q": q}, out_step=time / periods / 7)
    assert "whose phase is to hold" in run.summary["step_choice"]
    bent = run["arm.tip.x"] - run["q.car"]
    bent = bent * w[-1] / bent[0]
    off = np.abs(bent - w[-1] * np.cos(omega * run.t)).max() / abs(w[-1])
    # 1 % by the steps; elements are early by (z/elements)^4/1440 of the phase, and their sections turn
    assert off < ALLOWED + 2 * np.pi * periods * ((z / elements) ** 4 / 1440 + 3e-6)
