"""Couplings that lose power, and made-up ones, against every direction of power by brute force, and balances."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.cases import VERIFY
from support.comparison import accelerated, chosen, largest, nearby_states, order_of, positions
from support.coupled_robots import RIGID, pair
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.gear_losses import LossyGear, driven, pushed
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex import Configuration, InputError, RobotFileError, SingularError

LOSSY = {  # robot: its couplings with the efficiencies both ways, and an actuation
    "differential": {"mean": (0.7, 0.6), "difference": (0.9, 0.9)},
    "planetary": {"willis": (0.8, 0.75), "mesh": (0.6, 0.5)},
    "screw-jack": {"belt": (0.9, 0.85), "thread": (0.4, -0.3)},
    "geared-five-bar": {"reducer": (0.7, 0.5), "gears": (0.85, 0.85)},
    "nut-in-loop": {"thread": (0.5, 0.2)},
    "geared-beams": {"reducer": (0.7, 0.5), "belt": (0.9, 0.8)},
}


def losing(name, couplings, **settings):
    """A robot with efficiencies in its couplings."""
    names = [one.name for one in load_robot(name).description.coupling]
    for word, (forward, back) in couplings.items():
        at = f"coupling.{names.index(word)}"
        settings |= {f"{at}.efficiency": forward, f"{at}.efficiency_back": back}
    return load_robot(name, settings=settings, actuation=RIGID.get(name))


@cache
def lossy(name):
    """A robot whose rigid couplings lose power, and its Lagrangian without losses."""
    kind = FlexibleEnergyModel if name == "geared-beams" else EnergyModel
    return losing(name, LOSSY[name]), kind(read_robot(robot_file(name)))


def equations(robot, oracle, at, qd, efforts):
    """Mass matrix, forces, closures, their bias and the pushes of motors, in the order of the oracle."""
    back, named = np.argsort(order_of(robot, oracle)), positions(at)
    M, c = oracle.mass_matrix_and_bias(named, qd[back])
    A, bias = oracle.closure_jacobian(named, qd[back])
    push = np.zeros(len(M))
    push[[oracle.coordinates.index(name) for name in robot.motors]] = efforts
    return M, c, A, bias, push, qd[back]


def gears_of(oracle, rows, couplings):
    """The losses in the order of the oracle's rates; rows of rigid couplings are the last ones."""
    rigid = [one for one in oracle.data.couplings if one.stiffness is None]
    found = []
    for row, one in enumerate(rigid, rows - len(rigid)):
        joint = next(iter(one.weights))
        others = np.array([0.0 if n == joint else one.weights.get(n, 0.0) for n in oracle.coordinates])
        if one.name in couplings:
            found.append(LossyGear(row, oracle.coordinates.index(joint), others, *couplings[one.name]))
    return found


@pytest.mark.few("screw-jack", "geared-five-bar")
@pytest.mark.parametrize("name", LOSSY)
def test_accelerations_efforts_and_gears_are_those_of_the_one_direction_of_power_that_fits(name, figure):
    robot, oracle = lossy(name)
    rng, worst, changed = np.random.default_rng(8), 0.0, 0
    order, model, inverse = order_of(robot, oracle), *(parflex.model(robot, kind) for kind in ("direct", "inverse"))
    own = [robot.rates.index(rate) for rate in model.labels["qd"]]
    motors = [oracle.coordinates.index(motor) for motor in robot.motors]
    for state in nearby_states(robot, 6, 3):
        at, effort = state.configuration, rng.uniform(-5, 5, robot.nu)
        M, c, A, bias, push, qd = equations(robot, oracle, at, at.rates(state.velocity), effort)
        gears = gears_of(oracle, len(A), LOSSY[name])
        ((qdd, lam),) = pushed(M, c, A, bias, push, gears, qd)
        found = parflex.forward_dynamics(robot, at, state.velocity, effort, reactions=True)
        told = np.array([found.reactions["couplings"][one.name]["effort"] for one in oracle.data.couplings])
        expected = lam[[gear.row for gear in gears]]
        program = model(q=at.q, qd=qd[order][own], effort=effort)["qdd"]
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
        ((tau, _),) = driven(M @ qdd + c, A, gears, qd, motors)
        assert tau == pytest.approx(effort, rel=1e-7, abs=1e-7)  # the oracle agrees with itself
        given = dict(zip(robot.motors, found.accelerations[list(robot.actuated)], strict=True))
        again = parflex.inverse_dynamics(robot, at, state.velocity, given, reactions=True)
        assert list(again.efforts.values()) == pytest.approx(effort, rel=1e-7, abs=1e-7)
        back = inverse(q=at.q, qd=qd[order][own], qdd=qdd[order][own])["effort"]
        assert back == pytest.approx(effort, rel=1e-7, abs=1e-7)
    figure(f"{robot.name} with losses against brute force", worst, 1e-9)
    assert worst < 1e-9 and changed  # beams are stiff: their forces take digits


def test_a_flexible_robot_with_a_lossy_gear_accelerates_as_its_inverse_says():
    robot = losing("geared-beams", {"reducer": (0.6, 0.6)})
    at, velocity = parflex.configure(robot, {"motor": 3.0}), {"motor": 8.0}
    told = parflex.inverse_dynamics(robot, at, velocity, {"motor": 40.0}, reactions=True)
    back = parflex.forward_dynamics(robot, at, velocity, told.efforts, reactions=True)
    assert back.accelerations == pytest.approx(told.accelerations, rel=1e-9, abs=1e-7)
    gears = [result.reactions["couplings"]["reducer"]["effort"] for result in (back, told)]
    assert gears[0] == pytest.approx(gears[1], rel=1e-9)
    program = parflex.model(robot, "inverse")
    own = [robot.rates.index(name) for name in program.labels["qd"]]
    out = program(q=at.q, qd=told.rates[own], motor_acceleration=[40.0])
    assert out["effort"] == pytest.approx([told.efforts["motor"]], rel=1e-9)


@pytest.mark.parametrize(
    "share", [{}, {"preload": {"one": 0.4}}, {"weights": {"two": 5.0}}, {"effort_limit": {"one": 0.2}}]
)
def test_two_motors_on_one_wheel_share_what_their_lossy_gears_leave(share):
    """One pinion drives, the other may brake: whatever they share, it causes the motion that was asked for."""
    robot = load_robot("two-pinions")
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

LEAD_ANGLE = np.arctan(0.01 / (2 * np.pi * 0.012))


def lift(friction, **settings):
    return load_robot("lift-with-friction", settings={"constants.friction": friction} | settings)


@pytest.mark.parametrize("friction", [0.05, 0.2])  # rad; the lead angle is 0.132 rad: the second locks itself
def test_a_screw_jack_raises_and_lowers_with_the_torques_of_the_inclined_plane(friction):
    """F r tan(angle + friction) up, F r tan(angle - friction) down: negative where the screw locks itself."""
    robot, weight = lift(friction), 12 * 9.81
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


def test_a_self_locking_jack_stays_and_one_that_is_not_runs_down():
    """Without a motor torque: the first creeps below the width of friction, the second accelerates by its equation."""
    runs = [parflex.simulate(lift(f), None, 1.0, step=1e-3, out_step=0.1) for f in (0.2, 0.05)]
    assert largest(runs[0]["qd.spindle"]) < 5 * runs[0].settings["friction_width"]
    way, share = 0.01 / (2 * np.pi), np.tan(LEAD_ANGLE - 0.05) / np.tan(LEAD_ANGLE)
    acceleration = -way * 12 * 9.81 * share / (0.001 + way**2 * 12 * share)
    # the closed form loses from the first instant, the run only beyond the width of friction: a thousandth of the way
    assert runs[1]["q.spindle"][-1] == pytest.approx(acceleration / 2, rel=2e-3)
    lost = -acceleration / 2 * way * 12 * (9.81 + way * acceleration) * (1 - share)
    assert runs[1]["work.loss"][-1] == pytest.approx(lost, rel=2e-3)
    assert runs[1].summary["energy_balance_error"] < 1e-8


def test_a_jack_whose_losses_leave_no_direction_of_power_is_refused_by_name():
    """Self-locking, and nearly all inertia on the load: it would stop at once, which no acceleration describes."""
    robot = lift(0.3, **{"frame.0.inertia.about_centre": [1e-6, 1e-6, 1e-6]})
    with pytest.raises(SingularError, match="the coupling 'thread' jams in this motion"):
        parflex.forward_dynamics(robot, None, {"spindle": -2.0})
    run = parflex.simulate(robot, None, 0.1, effort={"spindle": 0.0}, start={"velocity": {"spindle": -2.0}})
    assert run.status == "diverged" and "'thread' jams" in run.summary["why"]


# -- balances ------------------------------------------------------------------------------------------------


@pytest.mark.few("screw-jack", "differential")
@pytest.mark.parametrize("name", ["differential", "planetary", "screw-jack"])
def test_power_and_energy_balance_over_seconds_with_losses(name, figure):
    couplings = {word: (forward, max(back, 0.1)) for word, (forward, back) in LOSSY[name].items()}
    robot, time = losing(name, couplings), 10.0 if VERIFY else 1.0
    assert all(row.lossy for row in robot.closures.constraints)
    effort = dict(zip(robot.actuated_names, (0.3, 0.1), strict=True))
    run = parflex.simulate(robot, None, time, effort=effort, step=1e-3, out_step=time / 20)
    size = np.ptp(run["energy.kinetic"])
    figure(f"{name} with losses: balance of energy over {time:g} s", run.summary["energy_balance_error"] / size, 1e-6)
    assert run.status == "ok" and run.summary["energy_balance_error"] < 1e-6 * size
    rows, seen = robot.closures.constraints, 0
    for k in range(1, 20, 3):  # a row is what the models say of that state
        pose = {name: run[f"q.{name}"][k] for name in robot.coordinates}
        told = parflex.forward_dynamics(
            robot, pose, {name: run[f"qd.{name}"][k] for name in robot.motors}, effort, reactions=True
        )
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


# -- the file and what is not there --------------------------------------------------------------------------


def test_a_loss_that_nothing_determines_and_efficiencies_that_no_gear_has_are_refused(tmp_path):
    twice = '[[coupling]]\nname = "again"\njoint = "pinion"\nterms = { wheel = -0.25 }'
    robot = pair(tmp_path, "terms = { pinion = -4 }\nefficiency = 0.8", twice)
    with pytest.raises(SingularError, match="'mesh' is redundant"):
        parflex.inverse_dynamics(robot)
    assert parflex.inverse_dynamics(robot, without=["friction"]).efforts
    for words, said in (
        ("efficiency = 1.2", "between 0 and 1"),
        ("efficiency_back = 1.2", "efficiency_back = 1.2 is above 1"),
    ):
        with pytest.raises(RobotFileError, match=said):
            pair(tmp_path, f"terms = {{ pinion = -4 }}\n{words}")
    with pytest.raises(InputError, match="does not know what the rigid coupling 'mesh' loses"):
        parflex.redundant_model(pair(tmp_path, "terms = { pinion = -4 }\nefficiency = 0.8"))


def test_time_optimal_motions_refuse_losses_that_their_effort_limits_would_miss():
    limited = lift(0.05, **{"motions.up": {"law": "time-optimal", "moves": [{"spindle": 9}], "effort_limit": 1}})
    with pytest.raises(InputError, match="time-optimal motions do not know what the rigid coupling 'thread' loses"):
        parflex.simulate(limited, "up", 1.0)


def test_losses_stiffness_and_play_are_told(tmp_path):
    said = " ".join(parflex.explain(lift(0.2)).as_text().split())  # its lines are broken
    assert "thread: table = 0.00159155 spindle; efficiency 0.3849, driven back -0.5146 (self-locking)" in said
    robot = pair(tmp_path, "terms = { pinion = -2 }\nstiffness = 80\ndamping = 3\nbacklash = 0.1\nefficiency = 0.9")
    said = " ".join(parflex.explain(robot).as_text().split())
    assert (
        "mesh: wheel = -2 pinion: stiffness 80 N m/rad, damping 3 N m s/rad, backlash 0.1 rad; efficiency 0.9" in said
    )
    for one in (lift(0.05), robot):
        assert any(49 in chapter.equations for chapter in parflex.explain(one).sections)


SEEDS = range(60) if VERIFY else (0, 11, 23)  # the three have loss, spring and screw


def tree_of(rng) -> tuple[list[str], list[str]]:
    """Lines of a tree of drawn joints, and their kinds; lengths differ by ten from one robot to another."""
    size = 10 ** rng.uniform(-0.5, 0.5)
    lines, names, kinds = ["format = 1", 'name = "made-up"', "gravity = [1.1, -2.0, -9.3]"], ["base"], []
    for k in range(int(rng.integers(3, 7))):
        kinds.append(str(rng.choice(["revolute", "prismatic", "revolute", "helical"])))
        a, b, c = (rng.uniform(-0.3, 0.3, (3, 3)) * [[size], [1], [size]]).round(4).tolist()
        about = (rng.uniform(0.02, 0.04, 3) * size**2).round(5).tolist()
        lines += ["[[frame]]", f'name = "f{k}"', f'parent = "{rng.choice(names)}"', f'joint = "{kinds[-1]}"']
        lines += [f"place = {{ position = {a}, rotation = {b} }}", f"damper = {rng.uniform(0, 1):.3f}"]
        lines += [f"inertia = {{ mass = {rng.uniform(0.5, 2):.3f}, centre = {c}, about_centre = {about} }}"]
        lines += [f"pitch = {rng.uniform(0.01, 0.3) * size:.4f}"] if kinds[-1] == "helical" else []
        lines += [f"motor_inertia = {rng.uniform(0, 0.1) * size**2:.4f}"] if kinds[-1] != "prismatic" else []
        names.append(f"f{k}")
    return lines, kinds


def couplings_of(rng, kinds) -> tuple[list[str], dict[str, tuple[float, float]]]:
    """Lines of couplings that do not repeat each other, and the efficiencies of those that lose power."""
    n, rows, lines, lossy = len(kinds), np.zeros((0, len(kinds))), [], {}
    for i in range(int(rng.integers(1, n))):
        joints = rng.permutation(n)[: int(rng.integers(2, min(n, 4) + 1))]
        ratios = rng.uniform(0.05, 3, len(joints) - 1) * rng.choice([-1, 1], len(joints) - 1)
        row = np.zeros(n)
        row[joints[0]], row[joints[1:]] = 1.0, -ratios
        if np.linalg.matrix_rank(np.vstack([rows, row]), tol=1e-2) <= len(rows):
            continue
        rows = np.vstack([rows, row])
        slides = [kinds[j] == "prismatic" for j in joints]
        lines += ["[[coupling]]", f'name = "c{i}"', f'joint = "f{joints[0]}"', f"offset = {rng.uniform(-0.3, 0.3):.3f}"]
        if len(joints) == 2 and slides[0] != slides[1]:
            lead = 2 * np.pi * ratios[0] if slides[0] else 2 * np.pi / ratios[0]
            lines += [f'other = "f{joints[1]}"', f"lead = {float(lead)!r}"]
        else:
            terms = ", ".join(f"f{j} = {ratio!r}" for j, ratio in zip(joints[1:], map(float, ratios), strict=True))
            lines.append(f"terms = {{ {terms} }}")
        if rng.random() < 0.3:
            lines += [f"stiffness = {rng.uniform(20, 300):.2f}", f"damping = {rng.uniform(0, 2):.2f}"]
        elif rng.random() < 0.6:
            lossy[f"c{i}"] = forward, back = tuple(map(float, rng.uniform(0.5, 0.99, 2)))
            lines += [f"efficiency = {forward!r}", f"efficiency_back = {back!r}"]
    return lines, lossy


def any_motors(rng, robot) -> list[str]:
    """As many joints as freedoms, which determine the motion at home; coupled-away joints among them."""
    chosen: list[int] = []
    motions = Configuration(robot, robot.home).motions
    for k in map(int, rng.permutation(robot.tree.n)):
        if np.linalg.matrix_rank(motions[[*chosen, k]], tol=0.02) == len(chosen) + 1:
            chosen.append(k)
    return [robot.tree.rate_names[k] for k in sorted(chosen)]


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_couplings_move_and_carry_as_brute_force_says(seed, tmp_path, figure):
    rng = np.random.default_rng(seed)
    lines, kinds = tree_of(rng)
    more, lossy = couplings_of(rng, kinds)
    text = "\n".join([*lines, *more, ""])
    plain = parflex.load(write_robot(tmp_path, text, "plain"))
    path = write_robot(tmp_path, f"{text}[actuation.any]\nactuated = {any_motors(rng, plain)}\n", "made-up")
    robot, oracle = parflex.load(path, actuation="any"), EnergyModel(read_robot(path))
    q, error = robot.assembler.newton(robot.home + rng.uniform(-0.3, 0.3, robot.nq), robot.free, robot.closures.rows)
    assert error < 1e-10
    at, order = Configuration(robot, q), order_of(robot, oracle)
    qd, tau = at.J @ rng.uniform(-2, 2, at.J.shape[1]), rng.uniform(-3, 3, robot.nu)
    M, c, A, bias, push, rates = equations(robot, oracle, at, qd, tau)
    gears = gears_of(oracle, len(A), lossy)
    rigid = [one for one in oracle.data.couplings if one.stiffness is None]
    ((qdd, lam),) = pushed(M, c, A, bias, push, gears, rates)
    found = accelerated(at, qd, tau, reactions=True)
    carried = np.array([found.reactions["couplings"][one.name]["effort"] for one in rigid])
    errors = [largest(found.accelerations - qdd[order]) / largest(qdd)]
    errors.append(largest(carried - lam[len(A) - len(rigid) :]) / max(largest(carried), 1.0))
    motors = [oracle.coordinates.index(name) for name in robot.actuated_names]
    ways = driven(M @ qdd + c, A, gears, rates, motors)
    if len(ways) == 1:
        back = parflex.inverse_dynamics(robot, at, chosen(at, qd), chosen(at, found.accelerations))
        errors.append(largest(np.array(list(back.efforts.values())) - tau) / (1 + largest(found.accelerations)))
    else:  # where motors stand, several efforts cause this motion
        with pytest.raises(SingularError, match="jams in this motion"):
            parflex.inverse_dynamics(robot, at, chosen(at, qd), chosen(at, found.accelerations))
    model = parflex.model(robot, "direct")
    own = [robot.rates.index(name) for name in model.labels["qd"]]
    out = model.evaluate("numpy", q=q[None], qd=qd[own][None], effort=tau[None])["qdd"][0]
    errors.append(largest(out - qdd[order][own]) / largest(qdd))
    figure(f"made-up couplings, seed {seed}", max(errors), 1e-8)
    assert max(errors) < 1e-8  # ratios up to 60 multiply: conditions up to 1e5
