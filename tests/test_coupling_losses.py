"""Rigid couplings that lose power: against every direction of power by brute force, closed forms, and balances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.comparison import largest, nearby_states, order_of, positions, written
from support.coupled_robots import PAIR, RIGID, ROBOTS, pair
from support.emitted import (
    c_library,
    casadi_file,
    casadi_function,
    jax_file,
    llvm_batch,
    llvm_scalar,
    numpy_file,
    numpy_run,
)
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.gear_losses import LossyGear, driven, pushed
from support.oracles.reader import read_robot

import parflex
from parflex import Configuration, InputError, RobotFileError, SingularError
from parflex.models.dynamics.dynamic_models import moved_by

LOSSY = {  # robot: its couplings with the efficiencies both ways, and an actuation
    "differential": {"mean": (0.7, 0.6), "difference": (0.9, 0.9)},
    "planetary": {"willis": (0.8, 0.75), "mesh": (0.6, 0.5)},
    "screw-jack": {"belt": (0.9, 0.85), "thread": (0.4, -0.3)},
    "geared-five-bar": {"reducer": (0.7, 0.5), "gears": (0.85, 0.85)},
    "nut-in-loop": {"thread": (0.5, 0.2)},
    "geared-beams": {"reducer": (0.7, 0.5), "belt": (0.9, 0.8)},
}


def losing(text, couplings):
    """The same robot file with efficiencies in its couplings."""
    head, mark, tail = text.partition("[[coupling]]")
    for word, (forward, back) in couplings.items():
        name = f'name = "{word}"\n'
        assert tail.count(name) == 1
        tail = tail.replace(name, f"{name}efficiency = {forward}\nefficiency_back = {back}\n")
    return head + mark + tail


@pytest.fixture(scope="module", params=LOSSY)
def made(request, tmp_path_factory):
    """A robot whose rigid couplings lose power, its Lagrangian, and the losses apart."""
    name, couplings = request.param, LOSSY[request.param]
    text = losing((ROBOTS / f"{name}.toml").read_text(), couplings)
    path = written(text, tmp_path_factory.mktemp(name), name)
    kind = FlexibleEnergyModel if name == "geared-beams" else EnergyModel
    return parflex.load(path, actuation=RIGID.get(name)), kind(read_robot(ROBOTS / f"{name}.toml")), couplings


def gears_of(robot, oracle, couplings):
    """The losses in the order of the oracle's rates; rows of couplings are its last."""
    data, first = oracle.data.couplings, oracle.closure_rows - len(oracle.data.couplings)
    found = []
    for k, coupled in enumerate(data):
        joint = next(iter(coupled.weights))
        others = np.array([0.0 if n == joint else coupled.weights.get(n, 0.0) for n in oracle.coordinates])
        found.append(LossyGear(first + k, oracle.coordinates.index(joint), others, *couplings[coupled.name]))
    return found


@pytest.mark.few
def test_accelerations_efforts_and_gears_are_those_of_the_one_direction_of_power_that_fits(made, figure):
    robot, oracle, couplings = made
    rng, worst, changed = np.random.default_rng(8), 0.0, 0
    order = order_of(robot, oracle)
    back, model = np.argsort(order), parflex.model(robot, "direct")
    own = [robot.tree.rate_names.index(name) for name in model.labels["qd"]]
    for state in nearby_states(robot, 6, 3):
        at = state.configuration
        qd, named = at.rates(state.velocity), positions(at)
        M, c = oracle.mass_matrix_and_bias(named, qd[back])
        A, bias = oracle.closure_jacobian(named, qd[back])
        gears = gears_of(robot, oracle, couplings)
        effort = dict(zip(robot.actuated_names, rng.uniform(-5, 5, len(robot.actuated)), strict=True))
        force = np.zeros(len(M))
        for name, value in effort.items():
            force[oracle.coordinates.index(name)] = value
        ((qdd, lam),) = pushed(M, c, A, bias, force, gears, qd[back])
        found = parflex.forward_dynamics(robot, at, state.velocity, effort, reactions=True)
        told = np.array([found.reactions["couplings"][c.name]["effort"] for c in oracle.data.couplings])
        expected = lam[[gear.row for gear in gears]]
        program = model(q=at.q, qd=qd[own], effort=np.array(list(effort.values())))["qdd"]
        errors = (
            largest(found.accelerations - qdd[order]) / largest(qdd),
            largest(program - qdd[order][own]) / largest(qdd),
            largest(told - expected) / largest(expected),
        )
        worst = max(worst, *errors)
        plain = parflex.forward_dynamics(robot, at, state.velocity, effort, without=["friction"])
        changed += largest(plain.accelerations - found.accelerations) > 1e-3 * largest(qdd)
        if robot.tree.elastic:
            continue
        motors = [oracle.coordinates.index(name) for name in robot.actuated_names]
        ((tau, _),) = driven(M @ qdd + c, A, gears, qd[back], motors)
        assert tau == pytest.approx(list(effort.values()), rel=1e-7, abs=1e-7)  # the oracle agrees with itself
        given = dict(zip(robot.actuated_names, found.accelerations[list(robot.actuated)], strict=True))
        again = parflex.inverse_dynamics(robot, at, state.velocity, given, reactions=True)
        assert list(again.efforts.values()) == pytest.approx(list(effort.values()), rel=1e-7, abs=1e-7)
    figure(f"{robot.name} with losses against brute force", worst, 1e-9)
    assert worst < 1e-9 and changed  # beams are stiff: their forces take digits


def test_a_flexible_robot_with_a_lossy_gear_accelerates_as_its_inverse_says(tmp_path):
    text = (ROBOTS / "geared-beams.toml").read_text().replace('name = "reducer"', 'name = "reducer"\nefficiency = 0.6')
    robot = parflex.load(written(text, tmp_path))
    at, velocity = parflex.configure(robot, {"motor": 3.0}), {"motor": 8.0}
    told = parflex.inverse_dynamics(robot, at, velocity, {"motor": 40.0}, reactions=True)
    back = parflex.forward_dynamics(robot, at, velocity, told.efforts, reactions=True)
    assert back.accelerations == pytest.approx(told.accelerations, rel=1e-9, abs=1e-7)
    assert back.reactions["couplings"]["reducer"]["effort"] == pytest.approx(
        told.reactions["couplings"]["reducer"]["effort"], rel=1e-9
    )
    program = parflex.model(robot, "inverse")
    own = [robot.tree.rate_names.index(name) for name in program.labels["qd"]]
    out = program(q=at.q, qd=told.rates[own], motor_acceleration=[40.0])
    assert out["effort"] == pytest.approx([told.efforts["motor"]], rel=1e-9)


@pytest.mark.parametrize(
    "share", [{}, {"preload": {"one": 0.4}}, {"weights": {"two": 5.0}}, {"effort_limit": {"one": 0.2}}]
)
def test_two_motors_on_one_wheel_share_what_their_lossy_gears_leave(share, tmp_path):
    """One pinion drives, the other may brake: whatever they share, it causes the motion that was asked for."""
    text = PAIR + "".join(
        f'[[frame]]\nname = "{name}"\njoint = "revolute"\nactuated = true\n'
        f"inertia = {{ mass = 1, about_centre = [0, 0, 0.01] }}\n" for name in ("one", "two")
    )  # fmt: skip
    text = text.replace("actuated = true", "locked = true", 1)
    for name, ratio, efficiency in (("one", -0.5, 0.7), ("two", 0.5, 0.8)):
        text += f'[[coupling]]\nname = "g{name}"\njoint = "wheel"\nterms = {{ {name} = {ratio} }}\n'
        text += f"efficiency = {efficiency}\n"
    robot = parflex.load(written(text, tmp_path))
    told = parflex.inverse_dynamics(robot, None, {"wheel": 2.0}, {"wheel": 3.0}, reactions=True, **share)
    gears, efforts = told.reactions["couplings"], told.efforts
    assert sum(gear["effort"] for gear in gears.values()) == pytest.approx(0.2 * 3.0, rel=1e-10)
    for name, ratio, efficiency in (("one", -0.5, 0.7), ("two", 0.5, 0.8)):
        on_wheel = gears[f"g{name}"]["effort"]
        felt = on_wheel / efficiency if on_wheel > 0 else on_wheel * efficiency  # the wheel turns forwards
        assert efforts[name] - ratio * felt == pytest.approx(0.01 * 3.0 / ratio, rel=1e-9)
    back = parflex.forward_dynamics(robot, None, {"wheel": 2.0}, efforts)
    assert back.accelerations == pytest.approx(told.accelerations, rel=1e-9)
    if "effort_limit" in share:
        assert abs(efforts["one"]) == pytest.approx(0.2)


# -- a screw with friction -----------------------------------------------------------------------------------

LIFT = """
format = 1
name = "lift"
end_effector = "table"
[constants]
radius = 0.012
lead = 0.01
friction = FRICTION
angle = "atan(lead/(2*pi*radius))"
[[frame]]
name = "spindle"
joint = "revolute"
actuated = true
inertia = { mass = 1, about_centre = [0.001, 0.001, 0.001] }
[[frame]]
name = "table"
joint = "prismatic"
inertia = { mass = 12 }
[[coupling]]
name = "thread"
joint = "table"
other = "spindle"
lead = "lead"
efficiency = "tan(angle)/tan(angle + friction)"
efficiency_back = "tan(angle - friction)/tan(angle)"
"""
LEAD_ANGLE = np.arctan(0.01 / (2 * np.pi * 0.012))


def lift(folder, friction):
    return parflex.load(written(LIFT.replace("FRICTION", str(friction)), folder, f"lift{friction}"))


@pytest.mark.parametrize("friction", [0.05, 0.2])  # rad; the lead angle is 0.132 rad: the second locks itself
def test_a_screw_jack_raises_and_lowers_with_the_torques_of_the_inclined_plane(friction, tmp_path):
    """F r tan(angle + friction) up, F r tan(angle - friction) down: negative where the screw locks itself."""
    robot, weight = lift(tmp_path, friction), 12 * 9.81
    for speed in (2.0, -2.0):
        torque = weight * 0.012 * np.tan(LEAD_ANGLE + np.sign(speed) * friction)
        told = parflex.inverse_dynamics(robot, {"spindle": 40.0}, {"spindle": speed}, reactions=True)
        assert told.efforts["spindle"] == pytest.approx(torque, rel=1e-12)
        assert told.reactions["couplings"]["thread"]["effort"] == pytest.approx(weight, rel=1e-12)
        back = parflex.forward_dynamics(robot, {"spindle": 40.0}, {"spindle": speed}, told.efforts)
        assert largest(back.accelerations) < 1e-10
        q, qd = back.configuration.q, back.rates
        assert parflex.inverse_dynamics(robot, q, qd, 0 * qd) == pytest.approx([torque], rel=1e-12)  # arrays
    still = parflex.inverse_dynamics(robot, {"spindle": 40.0})
    assert still.efforts["spindle"] == pytest.approx(weight * 0.01 / (2 * np.pi), rel=1e-12)  # at rest no loss


def test_a_self_locking_jack_stays_and_one_that_is_not_runs_down(tmp_path):
    """Without a motor torque: the first creeps below the width of friction, the second accelerates by its equation."""
    runs = [parflex.simulate(lift(tmp_path, f), None, 1.0, step=1e-3, out_step=0.1) for f in (0.2, 0.05)]
    assert largest(runs[0]["qd.spindle"]) < 5 * runs[0].settings["friction_width"]
    way, share = 0.01 / (2 * np.pi), np.tan(LEAD_ANGLE - 0.05) / np.tan(LEAD_ANGLE)
    acceleration = -way * 12 * 9.81 * share / (0.001 + way**2 * 12 * share)
    # the closed form loses from the first instant, the run only beyond the width of friction: a thousandth of the way
    assert runs[1]["q.spindle"][-1] == pytest.approx(acceleration / 2, rel=2e-3)
    lost = -acceleration / 2 * way * 12 * (9.81 + way * acceleration) * (1 - share)
    assert runs[1]["work.loss"][-1] == pytest.approx(lost, rel=2e-3)
    assert runs[1].summary["energy_balance_error"] < 1e-8


def test_a_jack_whose_losses_leave_no_direction_of_power_is_refused_by_name(tmp_path):
    """Self-locking, and nearly all inertia on the load: it would stop at once, which no acceleration describes."""
    text = LIFT.replace("FRICTION", "0.3").replace("0.001, 0.001, 0.001", "1e-6, 1e-6, 1e-6")
    robot = parflex.load(written(text, tmp_path))
    with pytest.raises(SingularError, match="the coupling 'thread' jams in this motion"):
        parflex.forward_dynamics(robot, None, {"spindle": -2.0})
    run = parflex.simulate(robot, None, 0.1, effort={"spindle": 0.0}, start={"velocity": {"spindle": -2.0}})
    assert run.status == "diverged" and "'thread' jams" in run.summary["why"]


# -- balances ------------------------------------------------------------------------------------------------


@pytest.mark.few
@pytest.mark.parametrize("name", ["differential", "planetary", "screw-jack"])
def test_power_and_energy_balance_over_ten_seconds_with_losses(name, tmp_path, figure):
    couplings = {word: (forward, max(back, 0.1)) for word, (forward, back) in LOSSY[name].items()}
    text = losing((ROBOTS / f"{name}.toml").read_text(), couplings)
    robot = parflex.load(written(text, tmp_path), actuation=RIGID[name])
    assert all(row.lossy for row in robot.closures.constraints)
    effort = dict(zip(robot.actuated_names, (0.3, 0.1), strict=True))
    run = parflex.simulate(robot, None, 10.0, effort=effort, step=1e-3, out_step=0.5)
    size = np.ptp(run["energy.kinetic"])
    figure(f"{name} with losses: balance of energy over 10 s", run.summary["energy_balance_error"] / size, 1e-6)
    assert run.status == "ok" and run.summary["energy_balance_error"] < 1e-6 * size
    rows, seen = robot.closures.constraints, 0
    for k in range(1, 20, 3):  # a row is what the models say of that state
        told = parflex.forward_dynamics(
            robot, {n: run[f"q.{n}"][k] for n in robot.coordinates},
            {n: run[f"qd.{n}"][k] for n in robot.actuated_names}, effort, reactions=True,
        )  # fmt: skip
        wide = [replace(row, width=run.settings["friction_width"]).turning(told.rates) for row in rows]
        if min(map(abs, wide)) < 0.99999:  # slower, the run has less than the whole loss
            continue
        seen += 1
        for word, entry in told.reactions["couplings"].items():
            assert run[f"coupling.{word}.effort"][k] == pytest.approx(entry["effort"], rel=1e-4, abs=1e-4)
    assert seen
    for row in rows:
        most = run.summary["couplings"][row.name]["effort"]
        assert abs(most) == largest(run[f"coupling.{row.name}.effort"]) > 0


EMITTED = {  # robot, what its couplings have, program
    "lossy screw jack": ("screw-jack", LOSSY["screw-jack"], "direct"),
    "lossy five-bar": ("geared-five-bar", LOSSY["geared-five-bar"], "inverse"),
    "planetary gear": ("planetary", {}, "direct"),
    "elastic belt": ("screw-jack", {"belt": (0.9, 0.8)}, "state-rates"),
}


@pytest.mark.few
@pytest.mark.parametrize("case", EMITTED)
def test_every_emitter_gives_the_numbers_of_coupled_robots(case, tmp_path, figure):
    """Forwards, backwards and at rest: signs of power and of play in every language."""
    name, couplings, word = EMITTED[case]
    text = losing((ROBOTS / f"{name}.toml").read_text(), couplings)
    if case == "elastic belt":
        text = text.replace("terms = { motor = 0.4 }", "terms = { motor = 0.4 }\nstiffness = 50\nbacklash = 0.02")
    robot = parflex.load(written(text, tmp_path, name), actuation=None if case == "elastic belt" else RIGID[name])
    model, rng = parflex.model(robot, word), np.random.default_rng(5)
    own = [robot.tree.rate_names.index(n) for n in model.labels["qd"]]
    rows = {key: [] for key in model.inputs}
    wanted = []
    for k in range(8):
        at = parflex.configure(robot, {"motor": 30.0} if "motor" in robot.coordinates else None)
        q = at.q.copy()
        if case == "elastic belt":
            q[robot.coordinates.index("motor")] += rng.uniform(-0.1, 0.1)
        at = Configuration(robot, q)
        qd = at.J @ rng.uniform(-3, 3, at.J.shape[1]) * (k > 0)
        effort = rng.uniform(-2, 2, len(robot.actuated))
        found = moved_by(at, qd, effort)
        values = {"q": q, "qd": qd[own], "effort": effort, "qdd": found.accelerations[own]}
        for key in rows:
            rows[key].append(values[key])
        wanted.append(effort if word == "inverse" else found.accelerations[own])
    arrays, output = {key: np.array(value) for key, value in rows.items()}, {"inverse": "effort", "direct": "qdd"}
    output = output.get(word, "acceleration")
    for emitter in (llvm_batch, llvm_scalar, numpy_run, numpy_file, jax_file, casadi_function, casadi_file, c_library):
        answer = emitter(model, arrays, tmp_path) if emitter is c_library else emitter(model, arrays)
        error = largest(answer[output] - np.array(wanted)) / largest(np.array(wanted))
        figure(f"{case} by {emitter.__name__}", error, 1e-12)
        assert error < 1e-12, emitter.__name__


# -- the file and what is not there --------------------------------------------------------------------------


def test_a_loss_that_nothing_determines_and_efficiencies_that_no_gear_has_are_refused(tmp_path):
    twice = '[[coupling]]\nname = "again"\njoint = "pinion"\nterms = { wheel = -0.25 }'
    robot = pair(tmp_path, "terms = { pinion = -4 }\nefficiency = 0.8", twice)
    with pytest.raises(SingularError, match="'mesh' repeats what holds the robot anyway"):
        parflex.inverse_dynamics(robot)
    assert parflex.inverse_dynamics(robot, without=["friction"]).efforts
    for words, said in (("efficiency = 1.2", "between 0 and 1"), ("efficiency_back = 1.2", "driving back is above 1")):
        with pytest.raises(RobotFileError, match=said):
            pair(tmp_path, f"terms = {{ pinion = -4 }}\n{words}")
    with pytest.raises(InputError, match="does not know what the rigid coupling 'mesh' loses"):
        parflex.redundant_model(pair(tmp_path, "terms = { pinion = -4 }\nefficiency = 0.8"))


def test_time_optimal_motions_refuse_losses_that_their_effort_limits_would_miss(tmp_path):
    text = LIFT.replace("FRICTION", "0.05") + '[motions.up]\nlaw = "time-optimal"\nmoves = [{ spindle = 9 }]\n'
    limited = parflex.load(written(text + "effort_limit = 1\n", tmp_path, "limited"))
    with pytest.raises(InputError, match="time-optimal motions do not know what the rigid coupling 'thread' loses"):
        parflex.simulate(limited, "up", 1.0)


def test_losses_stiffness_and_play_are_told(tmp_path):
    said = " ".join(parflex.explain(lift(tmp_path, 0.2)).as_text().split())  # its lines are broken
    assert "thread: table = 0.00159155 spindle; efficiency 0.3849, driven back -0.5146 (self-locking)" in said
    robot = pair(tmp_path, "terms = { pinion = -2 }\nstiffness = 80\ndamping = 3\nbacklash = 0.1\nefficiency = 0.9")
    said = " ".join(parflex.explain(robot).as_text().split())
    assert (
        "mesh: wheel = -2 pinion: stiffness 80 N m/rad, damping 3 N m s/rad, backlash 0.1 rad; efficiency 0.9" in said
    )
    for one in (lift(tmp_path, 0.05), robot):
        assert any(49 in chapter.equations for chapter in parflex.explain(one).sections)


def test_gears_of_two_efficiencies_are_no_family(tmp_path):
    from parflex.control.plant import family

    one, two = (pair(tmp_path, f"terms = {{ pinion = -4 }}\nefficiency = {e}", name=f"e{e}") for e in (0.8, 0.7))
    with pytest.raises(InputError, match="differ in more than numbers"):
        family(one, two)
