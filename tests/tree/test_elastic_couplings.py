"""Couplings that give way: springs, dampers, play and losses, against Lagrange's equations and closed forms."""

import numpy as np
import pytest
from support.comparison import largest, order_of, positions, written
from support.coupled_robots import pair, saddle
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file

import parflex
from parflex.control.plant import plant_family

SPRING = "stiffness = 400\ndamping = 1.5"
MADE = {  # robot, the coupling that gives way, all motors that its freedoms need
    "screw-jack": ("belt", "terms = { motor = 0.4 }", ["motor", "spindle", "swing"]),
    "geared-five-bar": ("reducer", "terms = { motor = 0.04 }", ["motor", "left.shoulder"]),
    "geared-beams": ("reducer", "terms = { motor = 0.05 }", ["motor", "shoulder"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("elastic")


@pytest.fixture(scope="module", params=MADE)
def made(request, folder):
    """A robot one of whose couplings gives way, as many motors as freedoms, and its Lagrangian."""
    name, (_, old, motors) = request.param, MADE[request.param]
    text = robot_file(name).read_text()
    assert text.count(old) == 1
    text = text.replace(old, f"{old}\n{SPRING}") + f"[actuation.all]\nactuated = {motors}\n"
    path = written(text, folder, name)
    kind = FlexibleEnergyModel if name == "geared-beams" else EnergyModel
    return parflex.load(path, actuation="all"), kind(read_robot(path)), MADE[name][0]


def states(robot, count=3, seed=1):
    """Poses in which the coupling is stretched, with rates of all that is independent."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        at = parflex.configure(robot, {"motor": float(rng.uniform(-5, 5))})
        q, error = robot.assembler.newton(at.q + rng.uniform(-0.02, 0.02, len(at.q)), robot.free, robot.closures.rows)
        assert error < 1e-12
        here = parflex.Configuration(robot, q)
        rates = here.J @ rng.uniform(-2, 2, here.J.shape[1])
        yield here, rates, dict(zip(robot.actuated_names, rng.uniform(-3, 3, len(robot.actuated)), strict=True))


def named(robot, values):
    return dict(zip(robot.tree.rate_names, map(float, values), strict=True))


def test_accelerations_efforts_and_energies_are_those_of_lagrange(made, figure):
    robot, oracle, coupling = made
    worst = 0.0
    model = parflex.model(robot, "direct")
    assert "general" in parflex.explain(robot).form
    own = [robot.tree.rate_names.index(name) for name in model.labels["qd"]]
    for here, qd, effort in states(robot):
        expected, _ = saddle(oracle, here, qd, effort)
        result = parflex.forward_dynamics(robot, here, named(robot, qd), effort, reactions=True)
        out = model(q=here.q, qd=qd[own], effort=np.array(list(effort.values())))["qdd"]
        error = max(largest(result.accelerations - expected), largest(out - expected[own])) / largest(expected)
        worst = max(worst, error)
        spring = robot.tree.springs[0]
        stretch = sum(c * here.q[k] for c, k in zip(spring.coefficients, spring.positions, strict=True)) - spring.offset
        rate = sum(c * qd[k] for c, k in zip(spring.coefficients, spring.rates, strict=True))
        caught = result.reactions["couplings"][coupling]["effort"]
        assert caught == pytest.approx(-400 * stretch - 1.5 * rate, rel=1e-10)
        kinetic, potential = parflex.energies(robot, here, named(robot, qd))
        back = np.argsort(order_of(robot, oracle))
        assert [kinetic, potential] == pytest.approx(oracle.energy(positions(here), qd[back]), rel=1e-9)
        if not robot.tree.elastic:
            again = parflex.inverse_dynamics(robot, here, named(robot, qd), named(robot, expected))
            assert list(again.efforts.values()) == pytest.approx(list(effort.values()), rel=1e-7, abs=1e-7)
    figure(f"{robot.name} with an elastic coupling against Lagrange", worst, 1e-9)
    assert worst < 1e-9  # beams are stiff: their forces take digits


def test_an_elastic_coupling_is_explained_and_stretched_at_the_equilibrium(made):
    robot, _, coupling = made
    chapter = next(part for part in parflex.explain(robot).sections if part.key == "coordinates")
    assert 43 in chapter.equations and any(coupling in line for line in chapter.text)
    rest = parflex.equilibrium(robot, lock=["motor", "swing"] if robot.name == "screw-jack" else ["motor"])
    assert abs(robot.tree.springs[0].stretch(rest.configuration.q)) > 1e-5
    assert largest(parflex.forward_dynamics(rest.robot, rest.configuration).accelerations) < 1e-5


def test_frequencies_are_those_of_stiffness_and_mass(made):
    robot, oracle, _ = made
    at = parflex.configure(robot, {"motor": 4.0})
    assert abs(robot.tree.springs[0].stretch(at.q)) < 1e-12  # at rest in a pose
    M, _ = oracle.mass_matrix_and_bias(positions(at), np.zeros(robot.tree.n))
    w = np.array([oracle.data.couplings[0].weights.get(name, 0.0) for name in oracle.coordinates])
    if robot.tree.elastic:
        expected = oracle.frequencies(positions(at), ["motor"])[:4]
    else:
        A, _ = oracle.closure_jacobian(positions(at))
        held = np.eye(len(w))[[oracle.coordinates.index(n) for n in oracle.coordinates if n in ("motor", "swing")]]
        free = np.linalg.svd(np.vstack([A, held]))[2][len(A) + len(held) :].T
        expected = [np.sqrt(400 * float((free.T @ w)[0] ** 2 / (free.T @ M @ free)[0, 0])) / (2 * np.pi)]
    lock = [name for name in ("motor", "swing") if name in robot.tree.rate_names]
    result = parflex.natural_frequencies(robot, at, len(expected), lock)
    assert result.frequencies == pytest.approx(expected, rel=1e-8)
    many = parflex.many_frequencies(robot, ["motor"], np.array([[4.0], [-3.0]]), len(expected), lock)
    assert many.frequencies[0] == pytest.approx(expected, rel=1e-8)


PLAY = "terms = { pinion = -2 }\nstiffness = 80\nbacklash = 0.04"


def pair_with_two_motors(folder) -> parflex.Robot:
    both = '[actuation.both]\nactuated = ["pinion", "wheel"]\nlocked = ["rack", "ball"]\n'
    return parflex.load(pair(folder, PLAY, both).file, actuation="both")


def test_a_wheel_with_play_bounces_between_its_flanks_as_pieces_of_sines_and_lines(tmp_path, figure):
    """Pinion held: free flight at v over the play, half a period in each flank."""
    robot = pair(tmp_path, PLAY)
    omega, v, inertia = np.sqrt(80 / 0.2), 1.0, 0.2
    period = 2 * (0.04 / v + np.pi / omega)
    start = {"velocity": {"wheel": v, "pinion": 0.0}}
    held = parflex.linear_model(robot, lock=["pinion"]).robot
    run = parflex.simulate(held, None, 3 * period, step=1e-3, out_step=period / 8, start=start)
    t = np.minimum(np.arange(len(run["t"])) * period / 8, 3 * period)
    exact = bouncing(t, v, omega, 0.02, period)
    assert run["q.wheel"] == pytest.approx(exact, abs=1e-8)  # sines by steps of fourth order
    energy = run["energy.kinetic"] + run["energy.elastic"]
    figure("wheel between flanks: change of energy", largest(energy - inertia / 2) / (inertia / 2), 1e-8)
    assert energy == pytest.approx(np.full(len(t), inertia * v**2 / 2), rel=1e-8)
    met = run.summary["flanks"]
    times = 0.02 / v + period / 2 * np.arange(6)
    assert [one["time"] for one in met] == pytest.approx(times, abs=1e-8)
    assert [one["side"] for one in met] == ["upper", "lower"] * 3
    assert [one["speed"] for one in met] == pytest.approx([v] * 6, rel=1e-8)
    assert {one["coupling"] for one in met} == {"mesh"} and not run.summary["warnings"]
    long = parflex.simulate(held, None, period, step=period / 8, out_step=period / 8, start=start)  # 3 steps in a flank
    assert any("the contact of coupling 'mesh' with a flank takes" in word for word in long.summary["warnings"])


def test_a_driven_gear_with_play_damping_and_losses_keeps_the_balance_over_ten_seconds(tmp_path, figure):
    words = "terms = { pinion = -2 }\nstiffness = 80\nbacklash = 0.04\ndamping = 0.4\nefficiency = 0.9"
    run = parflex.simulate(
        pair(tmp_path, words), None, 10.0, effort={"pinion": lambda t: 0.05 * np.sin(4 * t)}, step=1e-3, out_step=0.05,
        start={"velocity": {"wheel": 1.0, "pinion": 0.0}},
    )  # fmt: skip
    size = np.ptp(run["energy.kinetic"])
    figure("gear with play over 10 s: balance of energy", run.summary["energy_balance_error"] / size, 1e-6)
    assert run.summary["energy_balance_error"] < 1e-6 * size  # losses change over the width of friction
    assert len(run.summary["flanks"]) > 10 and run["work.loss"][-1] > 0.5 * size
    assert largest(run["coupling.mesh.effort"]) == abs(run.summary["couplings"]["mesh"]["effort"]) > 0.1


def bouncing(t, v, omega, half, period):
    """Starts in the middle of the play."""
    place = []
    for now in t:
        s, sign = now % period, 1.0
        if s >= period / 2:
            s, sign = s - period / 2, -1.0
        if s < half / v:
            x = v * s
        elif s < half / v + np.pi / omega:
            x = half + v / omega * np.sin(omega * (s - half / v))
        else:
            x = half - v * (s - half / v - np.pi / omega)
        place.append(sign * x)
    return np.array(place)


@pytest.mark.parametrize("way", [1, -1])
def test_linear_models_and_equilibria_take_the_flank_that_is_loaded(way, tmp_path):
    result = parflex.natural_frequencies(pair(tmp_path, PLAY)).frequencies
    assert result == pytest.approx([np.sqrt(80 / 0.2) / (2 * np.pi)], rel=1e-12)
    robot, held = pair_with_two_motors(tmp_path), {"lock": ["pinion"], "effort": {"wheel": 4.0 * way}}
    for pose in ("home", {"wheel": 0.05, "pinion": 0.0}):  # home is in the middle of the play
        rest = parflex.equilibrium(robot, pose, **held)
        assert rest.configuration.q[1] == pytest.approx(way * (0.02 + 4.0 / 80), rel=1e-9)
    assert parflex.equilibrium(robot, lock=["pinion"]).configuration.q[1] == 0
    with pytest.raises(parflex.SingularError, match="the backlash of 'mesh' is not taken up"):
        parflex.equilibrium(robot, lock="none", effort={"wheel": 4.0})


@pytest.mark.parametrize(("speed", "factor"), [(3.0, 1 / 0.8), (-3.0, 0.8)])
def test_a_motor_lifts_against_losses_and_is_relieved_by_them_when_it_lowers(speed, factor):
    """A table of 12 kg on a spindle: the motor feels m g lead / 2 pi over the efficiency, or times it."""
    robot = load_robot("lift")
    way, weight = 0.01 / (2 * np.pi), 12 * 9.81
    sag = -weight / 2e5
    pose = {"spindle": 1.0, "table": way + sag}
    both = load_robot("lift", settings={"frame.table.actuated": True})
    rates = {"spindle": speed, "table": way * speed}
    caught = parflex.inverse_dynamics(both, pose, rates, dict.fromkeys(rates, 0.0))
    assert caught.efforts["table"] == pytest.approx(0.0, abs=1e-9)
    assert caught.efforts["spindle"] == pytest.approx(way * weight * factor, rel=1e-9)
    uneven = load_robot("lift", settings={"frame.table.actuated": True, "coupling.thread.efficiency_back": 0.3})
    caught = parflex.inverse_dynamics(uneven, pose, {"spindle": speed, "table": way * speed}, {"spindle": 0.0})
    assert caught.efforts["spindle"] == pytest.approx(way * weight * (factor if speed > 0 else 0.3), rel=1e-9)
    still = parflex.inverse_dynamics(both, pose, None, None)
    assert still.efforts["spindle"] == pytest.approx(way * weight, rel=1e-9)  # at rest nothing passes
    start = {"q": robot.assemble(pose), "velocity": {"spindle": speed, "table": way * speed}}
    push = {"spindle": way * weight * factor}
    run = parflex.simulate(robot, None, 0.2, effort=push, step=1e-4, out_step=0.02, start=start)
    assert run["q.spindle"] == pytest.approx(1.0 + speed * run["t"], abs=1e-6)  # keeps its speed
    size = way * weight * abs(speed) * 0.2
    assert run.summary["energy_balance_error"] < 1e-6 * size
    lost = run["work.loss"][-1]
    assert lost == pytest.approx(size * abs(factor - 1), rel=1e-4)


def test_terms_of_couplings_are_left_out_by_word(tmp_path):
    robot = pair(tmp_path, "terms = { pinion = -2 }\nstiffness = 80\ndamping = 3\nefficiency = 0.5")
    here = {"pinion": 0.0, "wheel": 0.1}

    def pull(*without):
        result = parflex.forward_dynamics(robot, here, {"pinion": 1.0, "wheel": -1.0}, without=without)
        return result.accelerations[:2] * [0.01, 0.2]

    effort = 80 * 0.1 + 3 * (-1 + 2)
    assert pull("friction") == pytest.approx([-2 * effort, -effort])
    assert pull("friction", "damping") == pytest.approx([-16, -8])
    assert pull("springs") == pytest.approx([0, 0], abs=1e-12)
    assert pull() == pytest.approx([-2 * effort * 2, -effort])  # the pinion drives the wheel forward: twice the effort


def test_a_family_has_the_stiffness_of_each_and_one_play(tmp_path):
    gear = "terms = {{ pinion = -2 }}\nstiffness = {}\nefficiency = 0.7"
    one, two = (pair(tmp_path, gear.format(k), name=f"k{k}") for k in (80, 95))
    shared = plant_family(one, two).plant(two).problem.model
    alone = parflex.model(two, "state-rates", friction_width=1e-3)
    q = two.home.copy()
    q[:2] = 0.3, -0.55
    inputs = {"q": q, "qd": np.array([1.0, -0.3]), "effort": np.array([0.4])}
    for name, values in alone(**inputs).items():
        assert shared(**inputs)[name] == pytest.approx(values, rel=1e-11)
    loose = pair(tmp_path, "terms = { pinion = -2 }\nstiffness = 95\nefficiency = 0.7\nbacklash = 0.1", name="loose")
    with pytest.raises(parflex.InputError, match="differ in more than numbers"):
        plant_family(one, loose)


def test_motors_lead_what_hangs_on_them_by_a_soft_belt(tmp_path):
    """Led motor, free wheel: the forced vibration of one mass, x'' = w^2 (y - x) with y(t) the motion of the motor."""
    more = "[motions.swing]\nduration = 0.5\nmoves = [{ pinion = 0.2 }]\n"
    robot = pair(tmp_path, "terms = { pinion = -2 }\nstiffness = 80", more)
    run = parflex.simulate(robot, "swing", 0.5, step=2e-4, out_step=0.01)
    y, x, t = -2 * run["q.pinion"], run["q.wheel"], run["t"]
    wanted = [0.0, 0.0]
    track, omega = [0.0], np.sqrt(80 / 0.2)
    for k in range(1, len(t)):  # exact for a straight piece of y between rows
        h, slope = t[k] - t[k - 1], (y[k] - y[k - 1]) / (t[k] - t[k - 1])
        off, rate = wanted[0] - y[k - 1], wanted[1] - slope
        c, s = np.cos(omega * h), np.sin(omega * h)
        wanted = [off * c + rate * s / omega + y[k], -off * omega * s + rate * c + slope]
        track.append(wanted[0])
    assert largest(x) > 0.3
    assert x == pytest.approx(track, abs=2e-3)  # straight pieces of 10 ms
    assert run["effort.pinion"][10] != 0
