"""Control: laws, references and the sampled loop, against a robot written by hand and against what laws promise."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.oracles import three_rrr
from support.traced import long

import parflex
from parflex import Gains, InputError, gains_from
from parflex.control import references
from parflex.control.following import track
from parflex.control.laws import make_law
from parflex.control.plant import family, make_plant
from parflex.control.reference_text import reference_from
from parflex.control.run import LoopSettings, run_law
from parflex.control.variation import KINDS, parameters_of, varied

MODES = {"+-+": (1, -1, 1), "-+-": (-1, 1, -1), "+++": (1, 1, 1), "++-": (1, 1, -1)}
SIGNS = np.array(MODES["+-+"], dtype=float)
JOINTS = ["leg1.1", "leg2.1", "leg3.1", "leg1.2", "leg2.2", "leg3.2"]


@cache
def nominal(mode="+-+"):
    return parflex.load("3rrr", working_mode=mode)


@cache
def law(name, mode="+-+"):
    return make_law(nominal(mode), name, gains_from())


@cache
def circle(mode="+-+"):
    return track(nominal(mode), references.circle(nominal(mode), 0.1, 2.0), JOINTS)


@cache
def plants():
    """Programs for all plants of the tests."""
    robot = nominal()
    every = {p: 1 + 1e-3 * (1 + k) for k, p in enumerate(parameters_of(robot))}
    return family(varied(robot, {}), varied(robot, every))


def wrong(seed, percentage):
    """A plant that is off, and the same numbers in the words of the paper."""
    words = parameters_of(nominal())
    rng = np.random.default_rng(seed)
    factors = {p: 1 + percentage / 100 * s for p, s in zip(words, rng.choice([-1, 1], len(words)), strict=True)}
    return varied(nominal(), factors), by_hand({p.word: f for p, f in factors.items()})


def by_hand(factors):
    p = three_rrr.Parameters()
    for i, leg in enumerate(("leg1", "leg2", "leg3")):
        p.L[i] *= factors[f"lengths: {leg}.1 to {leg}.2"]
        p.l[i] *= factors[f"lengths: {leg}.2 to {leg}.end"]
        p.d[i] *= factors[f"lengths: platform to {leg}.attachment"]
        for symbol, kind in (("m", "masses"), ("I", "inertias")):
            getattr(p, f"{symbol}_1")[i] *= factors[f"{kind}: {leg}.1"]
            getattr(p, f"{symbol}_2")[i] *= factors[f"{kind}: {leg}.2"]
            getattr(p, f"{symbol}_s")[i] *= factors[f"{kind}: {leg}.1: point mass"]
        p.c_1[i] *= factors[f"centres: {leg}.1"]
        p.c_2[i] *= factors[f"centres: {leg}.2"]
    p.m_p *= factors["masses: platform"]
    p.m_c *= factors["masses: platform: point mass"]
    p.I_p *= factors["inertias: platform"]
    p.I_c *= factors["inertias: platform: point mass"]
    return p


# -- gains and laws ------------------------------------------------------------------------------------


def test_gains_of_ten_percent_and_a_tenth_of_a_second_are_those_of_the_paper(figure):
    gains = gains_from(overshoot=0.1, peak_time=0.1)
    figure("Kp", gains.Kp)
    assert abs(gains.Kp - 1517.15) < 5e-3 and abs(gains.Kv - 46.05) < 5e-3  # as many digits as are known


def test_an_error_under_the_gains_overshoots_as_asked():
    gains = gains_from(overshoot=0.25, peak_time=0.3)
    t = np.linspace(0, 0.6, 60001)
    w, z = np.sqrt(gains.Kp), gains.Kv / 2 / np.sqrt(gains.Kp)
    damped = w * np.sqrt(1 - z**2)
    step = 1 - np.exp(-z * w * t) * (np.cos(damped * t) + z / np.sqrt(1 - z**2) * np.sin(damped * t))
    assert abs(step.max() - 1.25) < 1e-6 and abs(t[step.argmax()] - 0.3) < 2e-5  # the steps of t


def settled(name, q, qd, row):
    """Efforts of a law that found its pose before: three steps of Newton from home do not get there."""
    pose = nominal().home
    for _ in range(3):
        effort, pose = law(name)(q, qd, row, pose)
    return effort


def random_state(seed):
    """A pose near the middle, rates, and a reference that is off, all by hand."""
    rng = np.random.default_rng(seed)
    x, xd = rng.uniform(-0.08, 0.08, 3), rng.uniform(-1, 1, 3)
    p = three_rrr.Parameters()
    q = three_rrr.inverse_geometry(p, x, SIGNS)
    J_x, J_q = three_rrr.jacobians(p, x, q)
    return p, x, xd, q, -np.linalg.solve(J_q, J_x @ xd), rng


@pytest.mark.parametrize("seed", range(4))
def test_computed_torque_of_motors_makes_their_errors_linear(seed):
    p, x, xd, q, qd, rng = random_state(seed)
    wanted = [q[:3] + rng.uniform(-0.1, 0.1, 3), rng.uniform(-1, 1, 3), rng.uniform(-9, 9, 3)]
    effort = settled("ctc", q[:3], qd[:3], np.concatenate(wanted))
    xdd = three_rrr.accelerations(p, x, xd, effort, SIGNS)[0]
    J_x, J_q = three_rrr.jacobians(p, x, q)
    motors = -np.linalg.solve(J_q, J_x @ xdd + three_rrr.drift(p, x, xd, q, qd))[:3]
    command = wanted[2] + three_rrr.KV * (wanted[1] - qd[:3]) + three_rrr.KP * (wanted[0] - q[:3])
    assert np.abs(motors - command).max() < 1e-10 * np.abs(command).max()  # rounding of two solves


@pytest.mark.parametrize("seed", range(4))
def test_computed_torque_in_task_space_makes_errors_of_the_platform_linear(seed):
    p, x, xd, q, qd, rng = random_state(seed)
    goal, twist, push = x + rng.uniform(-0.05, 0.05, 3), rng.uniform(-1, 1, 3), rng.uniform(-9, 9, 3)
    c, s = np.cos(goal[2]), np.sin(goal[2])
    row = [*goal[:2], 0, c, -s, 0, s, c, 0, 0, 0, 1, *twist[:2], 0, 0, 0, twist[2], *push[:2], 0, 0, 0, push[2]]
    effort = settled("ctc-task", q[:3], qd[:3], row)
    xdd = three_rrr.accelerations(p, x, xd, effort, SIGNS)[0]
    command = push + three_rrr.KV * (twist - xd) + three_rrr.KP * (goal - x)
    assert np.abs(xdd - command).max() < 1e-10 * np.abs(command).max()  # as above


def test_pd_holds_the_weight_and_pushes_errors_back():
    p, x, _, q, _, rng = random_state(7)
    weight = three_rrr.classical_law(p, x, q[:3], np.zeros(3), (q[:3], np.zeros(3), np.zeros(3)), 0, 0, SIGNS)
    rest = settled("pd", q[:3], np.zeros(3), [*q[:3], *np.zeros(6)])
    assert np.abs(rest - weight).max() < 1e-10 * np.abs(weight).max()
    off = rng.uniform(-0.1, 0.1, 3)
    pushed = settled("pd", q[:3], np.zeros(3), [*(q[:3] + off), *np.zeros(6)])
    assert ((pushed - rest) * off > 0).all()
    # an error at home pushes its motor by the stiffness times what that accelerates while the others stand still
    robot, stiffness = nominal(), gains_from().Kp
    for motor in robot.actuated_names:
        push = {name: float(name == motor) for name in robot.actuated_names}
        still = parflex.inverse_dynamics(robot, "home", acceleration=dict.fromkeys(push, 0.0))
        moved = parflex.inverse_dynamics(robot, "home", acceleration=push)
        inertia = moved.efforts[motor] - still.efforts[motor]
        assert law("pd").program.parameters[f"stiffness[{motor}]"] == pytest.approx(stiffness * inertia, rel=1e-9)


@pytest.mark.few
@pytest.mark.parametrize("name", ["pd", "ctc", "extended"])
def test_errors_of_joints_are_taken_the_short_way_round(name):
    q = circle().at(np.array([0.0, 0.7]))[0][1]
    measured = q[: len(law(name).sensed)]
    rows = [[*(measured + 0.01 + turn), *np.zeros(2 * len(measured))] for turn in (0.0, 2 * np.pi, -2 * np.pi)]
    efforts = [law(name)(measured, np.zeros(len(measured)), row, circle().start)[0] for row in rows]
    assert np.abs(efforts[1] - efforts[0]).max() < 1e-9  # 2 pi is rounded
    assert np.abs(efforts[2] - efforts[0]).max() < 1e-9


def test_a_law_without_passive_sensors_asks_for_motors_alone():
    assert law("ctc").sensed == law("pd").sensed == law("ctc-task").sensed == JOINTS[:3]
    assert law("ctc").geometry.inputs["measured"] == (3,)
    assert law("extended").sensed == JOINTS


# -- the loop ------------------------------------------------------------------------------------------


@pytest.mark.verify
@pytest.mark.parametrize(
    ("name", "percentage"),
    [("ctc", 5), ("extended", 5), *(pytest.param(name, 0, marks=long) for name in ("ctc", "extended"))],
)
def test_the_loop_moves_as_the_robot_by_hand_does(name, percentage, figure):
    robot, parameters = wrong(3, percentage)
    run = run_law(law(name), plants().plant(robot), circle(), time=0.15)
    rows, _, efforts = three_rrr.run(name, three_rrr.Parameters(), parameters, SIGNS, 0.15)
    pose = np.stack([run[f"platform.{word}"] for word in ("x", "y", "theta")], axis=1)
    pushed = np.stack([run[f"effort.{motor}"] for motor in JOINTS[:3]], axis=1)
    figure(f"pose under {name}, {percentage} % off", float(np.abs(pose - rows).max()), 1e-11)
    assert np.abs(pose - rows).max() < 1e-11  # 150 samples, each good to rounding: 2e-13 are found
    assert np.abs(pushed[:-1] - efforts).max() < 1e-6  # joints of the reference are quintics between knots: 1e-8


@pytest.mark.parametrize("name", ["ctc", "ctc-task", "extended"])
def test_with_right_parameters_the_circle_is_followed_within_twenty_micrometres(name, figure):
    run = run_law(law(name), plants().plant(varied(nominal(), {})), circle())
    figure(f"largest error under {name}", run.errors["max"], 2e-5)
    assert run.ok and run.errors["max"] < 2e-5  # what is asked at 1 ms; efforts are held, so not zero
    assert run["error"][0] < 1e-12  # it starts on the reference
    assert set(run.errors) == {"ise", "iae", "itae", "max"}


def test_the_error_falls_with_the_sample_time():
    errors = [
        run_law(law("ctc"), plants().plant(varied(nominal(), {})), circle(), LoopSettings(sample_time=h)).errors["max"]
        for h in (4e-3, 2e-3, 1e-3)
    ]
    # holding is a delay of half a sample: of first order
    assert 1.7 < errors[0] / errors[1] < 2.3 and 1.7 < errors[1] / errors[2] < 2.3


def again(run, loop, name="ctc"):
    """Efforts of a run from its own columns: what a law says to what it measured."""
    sensed = law(name).sensed
    q = np.stack([run[f"q.{joint}"] for joint in sensed], axis=1)
    qd = np.stack([run[f"qd.{joint}"] for joint in sensed], axis=1)
    if loop.resolution:
        q = np.floor(q / loop.resolution + 0.5) * loop.resolution
    if loop.rates == "differences":
        qd = np.vstack([np.zeros(len(sensed)), np.diff(q, axis=0) / loop.sample_time])
    rows = law(name).reference_rows(circle(), run["t"])
    efforts, pose = [], circle().start
    for k in range(len(q)):
        _, pose = law(name)(q[k], qd[k], rows[k], pose)
        effort, pose = law(name)(q[k], qd[k], rows[k], pose)
        efforts.append(np.clip(effort, *loop.limits(JOINTS[:3])))
    late = [efforts[0]] * loop.delay + efforts
    return np.array(late[: len(q) - 1])


@pytest.mark.parametrize(
    "loop",
    [
        LoopSettings(),
        LoopSettings(delay=3),
        LoopSettings(resolution=1e-4, rates="differences"),
        LoopSettings(effort_limit=3.0, sample_time=2e-3),
        LoopSettings(effort_limit={"leg2.1": 1.5}, delay=1, resolution=1e-3),
    ],
    ids=["plain", "late", "coarse", "weak", "all"],
)
def test_efforts_are_what_the_law_says_to_what_it_measured(loop):
    run = run_law(law("ctc"), plants().plant(wrong(5, 2)[0]), circle(), loop, time=0.25)
    pushed = np.stack([run[f"effort.{motor}"] for motor in JOINTS[:3]], axis=1)[:-1]
    assert np.abs(pushed - again(run, loop)).max() < 1e-9  # the same program on the same numbers
    if loop.effort_limit:
        _, limit = loop.limits(JOINTS[:3])
        assert (np.abs(pushed) <= limit).all() and (np.abs(pushed) == limit).any()


def test_noise_of_positions_counts_by_the_one_gain_and_that_of_rates_by_the_other():
    settings = (LoopSettings(), LoopSettings(noise=1e-5), LoopSettings(rate_noise=1e-5))
    runs = [run_law(law("ctc"), plants().plant(nominal()), circle(), loop, time=0.02) for loop in settings]
    plain, position, rate = (np.stack([run[f"effort.{motor}"][:1] for motor in JOINTS[:3]]) for run in runs)
    ratio = np.linalg.norm(position - plain) / np.linalg.norm(rate - plain)
    assert 5 < ratio < 200  # Kp over Kv is 33; noise is drawn for each


def test_noise_is_the_same_for_the_same_seed_and_makes_errors_larger():
    runs = [
        run_law(
            law("extended"),
            plants().plant(varied(nominal(), {})),
            circle(),
            LoopSettings(noise=noise, seed=seed),
            time=0.3,
        )
        for noise, seed in ((1e-4, 1), (1e-4, 1), (1e-4, 2), (0.0, 1))
    ]
    assert runs[0].errors == runs[1].errors != runs[2].errors
    assert min(runs[0].errors["iae"], runs[2].errors["iae"]) > 3 * runs[3].errors["iae"]


def test_a_plant_with_a_program_of_its_own_moves_as_one_of_a_family():
    # that program gives angles between -pi and pi, and the second motor stands beyond
    robot = wrong(5, 2)[0]
    for loop in (LoopSettings(), LoopSettings(rates="differences")):
        runs = [
            run_law(law("extended"), plant, circle(), loop, time=0.3)
            for plant in (plants().plant(robot), make_plant(robot))
        ]
        assert np.abs(runs[0]["error"] - runs[1]["error"]).max() < 1e-11
        assert np.abs(runs[0]["q.leg2.1"] - runs[1]["q.leg2.1"]).max() < 1e-11


def test_a_plant_may_start_with_its_platform_on_the_reference():
    plant = plants().plant(wrong(5, 2)[0])
    first = [
        run_law(law("ctc"), plant, circle(), LoopSettings(start=s), time=0.01)["error"][0]
        for s in ("motors", "platform")
    ]
    assert first[0] > 1e-3 and first[1] < 1e-12


# -- what goes wrong -----------------------------------------------------------------------------------


def test_a_plant_that_crosses_a_singularity_is_told_and_has_no_errors():
    # long distal links and a small platform let the classical law lose this plant
    robot = nominal()
    lengths = parameters_of(robot, ["lengths"])
    for seed in range(40):
        signs = np.random.default_rng(seed).choice([-1, 1], len(lengths))
        plant = varied(robot, {p: 1 + 0.06 * s for p, s in zip(lengths, signs, strict=True)})
        run = run_law(law("ctc"), plants().plant(plant), circle())
        if run.failure == "singularity":
            break
    assert run.failure == "singularity" and "singularity" in run.why
    assert 0 < run.stopped_at < 2 and set(run.errors.values()) == {None}


def test_an_unstable_loop_is_reported_with_motor_and_time():
    plant = plants().plant(varied(nominal(), {}))
    run = run_law(
        make_law(nominal("+-+"), "pd", Gains(1e7, 6000.0)), plant, circle(), LoopSettings(start="platform"), time=0.1
    )
    assert run.failure == "unstable" and run.stopped_at < 0.05
    named = re.search(r"unstable: motor (\S+) left its reference at (\S+) ms; .*lower the gains", run.why)
    error = np.abs(run[f"q.{named[1]}"] - run[f"reference.{named[1]}"])
    assert error[-1] > 100 * error[int(float(named[2])) - 1] and float(named[2]) * 1e-3 < run.stopped_at


def test_sensors_that_tell_nonsense_end_the_run():
    run = run_law(law("ctc"), plants().plant(varied(nominal(), {})), circle(), LoopSettings(noise=1.0))
    assert run.failure == "geometry" and "sensors" in run.why


def test_a_plant_that_cannot_be_where_it_starts_is_a_failure_not_an_error():
    lengths = parameters_of(nominal(), ["lengths"])
    run = run_law(law("ctc"), plants().plant(varied(nominal(), dict.fromkeys(lengths, 0.5))), circle())
    assert run.failure == "start" and run.errors["iae"] is None and len(run["t"]) == 0


@pytest.mark.few
@pytest.mark.parametrize("mode", ["---", "--+", "-++", "+--"])
def test_a_reference_through_a_singularity_is_refused(mode):
    with pytest.raises(parflex.errors.ParflexError, match="singular") as refusal:
        track(nominal(mode), references.circle(nominal(mode), 0.1, 2.0), JOINTS, step=0.04)
    assert refusal.value.key == "reference"


def test_a_reference_out_of_reach_says_when():
    with pytest.raises(parflex.errors.ParflexError, match="at t = ") as refusal:
        track(nominal(), references.circle(nominal(), 0.6, 2.0), JOINTS)
    assert refusal.value.key == "reference"


# -- references ----------------------------------------------------------------------------------------

SPATIAL = [{"z": 1.1, "rx": 0.1}, {"x": 0.3, "z": 1.0, "rz": 0.2}, {"y": 0.5, "ry": -0.15}]


@cache
def reference(kind):
    stewart = parflex.load("gough-stewart")
    wave = lambda t: {"x": 0.05 * np.sin(t) ** 2, "theta": 0.1 * t**3}  # noqa: E731
    return {
        "circle": lambda: references.circle(nominal(), 0.1, 2.0, pose={"x": 0.02, "theta": 0.1}, turns=-2),
        "tilted circle": lambda: references.circle(stewart, 0.05, 1.0, axis=(1.0, 0.0, 1.0)),
        "line": lambda: references.line(stewart, SPATIAL[0], 1.0),
        "quintic": lambda: references.through(stewart, SPATIAL, [0, 1, 1.5]),
        "spline": lambda: references.through(stewart, SPATIAL, 2.0, kind="spline"),
        "function": lambda: references.from_function(nominal(), wave, 1.0),
    }[kind]()


@pytest.mark.parametrize("kind", ["circle", "tilted circle", "line", "quintic", "spline", "function"])
def test_velocities_and_accelerations_are_derivatives(kind):
    path, h = reference(kind), 1e-4
    t = np.linspace(0.1, 0.9, 17) * path.time
    here, before, after = path.at(t), path.at(t - h), path.at(t + h)
    speed = (after.position - before.position) / (2 * h)
    assert np.abs(speed - here.velocity).max() < 1e-5  # h^2 of a motion of some 100 m/s3
    push = (after.velocity - before.velocity) / (2 * h)
    assert np.abs(push - here.acceleration).max() < 2e-3
    turn = (after.rotation - before.rotation) / (2 * h) @ here.rotation.transpose(0, 2, 1)
    spin = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
    assert np.abs(spin - here.angular_velocity).max() < 1e-5
    push = (after.angular_velocity - before.angular_velocity) / (2 * h)
    assert np.abs(push - here.angular_acceleration).max() < 2e-3


@pytest.mark.parametrize("kind", ["circle", "tilted circle", "line", "quintic", "spline"])
def test_references_rest_at_both_ends(kind):
    ends = reference(kind).at(np.array([0.0, reference(kind).time]))
    for part in ("velocity", "angular_velocity", "acceleration", "angular_acceleration"):
        assert np.abs(getattr(ends, part)).max() < 1e-9


def test_a_circle_goes_round_its_centre_and_comes_back():
    path = reference("circle").at(np.linspace(0, 2, 41))
    out = path.position - [0.02, 0, 0]
    assert np.abs(np.linalg.norm(out, axis=1) - 0.1).max() < 1e-12
    angle = np.unwrap(np.arctan2(out[:, 1], out[:, 0]))
    assert abs(angle[-1] - angle[0] + 4 * np.pi) < 1e-9  # two turns, clockwise
    assert np.abs(np.arctan2(path.rotation[:, 1, 0], path.rotation[:, 0, 0]) - 0.1).max() < 1e-12


@pytest.mark.parametrize(("kind", "times"), [("quintic", [0, 1, 1.5]), ("spline", [0, 1, 2])])
def test_references_go_through_their_poses(kind, times):
    stewart = parflex.load("gough-stewart")
    path = reference(kind).at(np.array(times, dtype=float))
    for k, pose in enumerate(SPATIAL):
        place, turn = parflex.frames(stewart, pose)[stewart.tree.end_effector]
        assert np.abs(path.position[k] - place).max() < 1e-12 and np.abs(path.rotation[k] - turn).max() < 1e-12
    middle = np.linalg.norm(path.velocity[1])
    assert middle < 1e-9 if kind == "quintic" else middle > 0.1  # a spline does not stop


@pytest.mark.verify
@pytest.mark.parametrize("mode", ["+-+", *(pytest.param(mode, marks=long) for mode in ("-+-", "+++", "++-"))])
def test_joints_of_a_reference_are_those_of_the_robot_by_hand(mode):
    t = np.linspace(0.0, 2.0, 41) + np.r_[0, np.full(39, 3e-3), 0]  # between knots too
    signs = np.array(MODES[mode], dtype=float)
    for k, part in enumerate(circle(mode).at(t)):
        hand = np.array([three_rrr.circle(three_rrr.Parameters(), s, 0.1, 2.0, signs)[1][k] for s in t])
        off = three_rrr.wrap(part - hand) if k == 0 else part - hand
        assert np.abs(off).max() < (1e-9, 1e-6, 1e-4)[k]  # quintics between knots of 10 ms: h^6, h^5, h^4


def test_words_make_the_same_references_as_calls(tmp_path):
    words = reference_from(nominal(), "circle:radius=0.1,time=2,x=0.02,theta=0.1,turns=-2")
    t = np.linspace(0, 2, 9)
    assert np.array_equal(words.at(t).position, reference("circle").at(t).position)
    table = tmp_path / "poses.csv"
    table.write_text("t,x,y\n0,0,0\n0.5,0.03,0.01\n1,0.05,0\n")
    path = reference_from(nominal(), f"spline:{table}")
    assert path.time == 1.0 and np.abs(path.at(0.5).position[0] - [0.03, 0.01, 0]).max() < 1e-12
    for axis in "xyz":
        about = reference_from(parflex.load("gough-stewart"), f"circle:radius=0.05,time=1,axis={axis}").at(t / 2)
        assert (np.ptp(about.position, axis=0) < 1e-12).tolist() == [axis == one for one in "xyz"]
    line = reference_from(nominal(), {"kind": "line", "x": 0.05, "time": 1.0})
    assert np.abs(line.at(1.0).position[0] - [0.05, 0, 0]).max() < 1e-12


def test_a_motion_of_the_robot_file_is_a_reference_of_its_end_effector(tmp_path, monkeypatch):
    file = tmp_path / "robot.toml"
    head = 'format = 1\nname = "five"\nextends = "5r"\n[motions.up]\nduration = 0.6\nramp = 0.2\n'
    file.write_text(head + 'smoothing = 0.1\nmoves = [{ "left.1" = 0.2, "right.1" = 0.1 }]\n')
    robot = parflex.load(file)
    monkeypatch.setattr(references, "KNOT_STEP", 0.02)  # enough here, and ten times as fast
    path, h = reference_from(robot, {"kind": "motion", "name": "up", "time": 0.8}), 1e-4
    joints = track(robot, path, ["left.1", "right.1"])
    way = joints.at(np.array([0.0, 0.8]))[0]
    assert np.abs(way[1] - way[0] - [0.2, 0.1]).max() < 1e-9
    speed = (path.at(0.3 + h).position - path.at(0.3 - h).position) / (2 * h)
    assert np.abs(speed - path.at(0.3).velocity).max() < 1e-5


# -- other robots --------------------------------------------------------------------------------------


def test_a_robot_without_platform_is_controlled_by_the_same_code(figure):
    # its friction is left out: the laws do not compensate it unless asked
    robot = parflex.load("5r", settings={"legs.frame.1.friction": {"viscous": 0, "coulomb": 0}})
    path = track(robot, references.circle(robot, 0.03, 1.0), [*robot.actuated_names, *robot.sensed_names])
    plant = make_plant(robot)
    for name in ("ctc", "ctc-task", "extended"):
        run = run_law(make_law(robot, name, gains_from()), plant, path)
        figure(f"5R under {name}", run.errors["max"], 5e-5)
        assert run.ok and run.errors["max"] < 5e-5  # held efforts at 1 ms, as for the 3RRR


@pytest.mark.parametrize("name", [pytest.param(name, marks=long) for name in ("ctc", "extended")])
def test_a_spatial_robot_is_controlled_by_the_same_code(name, figure):
    robot = parflex.load("gough-stewart")
    path = track(robot, references.circle(robot, 0.05, 1.0), [*robot.actuated_names, *robot.sensed_names])
    run = run_law(make_law(robot, name, gains_from()), make_plant(robot), path)
    figure(f"Gough-Stewart under {name}", run.errors["max"], 5e-5)
    assert run.ok and run.errors["max"] < 5e-5 and run.summary["rotation_max"] < 5e-5


@pytest.mark.parametrize("name", [pytest.param(name, marks=long) for name in ("ctc", "extended")])
def test_a_plant_with_elastic_links_is_stable_under_the_law_of_the_rigid_robot(name, figure):
    plant = make_plant(parflex.load("3rrr-flexible", working_mode="+-+"))
    run = run_law(law(name), plant, circle(), time=2.5)
    figure(f"tip error with elastic links under {name}", run.errors["max"], 3e-5)
    assert run.ok and run.errors["max"] < 3e-5  # 1.1e-5 and 1.5e-5 m are measured
    rest = run["error"][run["t"] > 2.4]
    figure(f"and at rest under {name}", float(rest.max()))
    assert rest.max() < 5e-6  # the weight bends the rods, and the extended law hears it: 3.6e-6 m
    assert np.ptp(rest) < 2e-7  # nothing swings on
    most = run.summary["largest_stress"]
    still = parflex.deflection(plant.robot, "home", wrench={}).largest_stress
    assert most["beam"] in plant.robot.tree.places and 0.2 < most["value"] / still["value"] < 50 and "time" in most


# -- parameters ----------------------------------------------------------------------------------------


def test_the_parameters_of_a_robot_are_those_of_the_paper():
    words = [parameter.word for parameter in parameters_of(nominal())]
    # L, l, d of three legs; three bodies of a leg, platform and load; their inertias; centres of both links
    assert [sum(word.startswith(kind) for word in words) for kind in KINDS] == [9, 11, 11, 6]
    assert len(set(words)) == 37


def test_a_plant_of_a_family_moves_as_a_robot_of_its_own(figure):
    robot = wrong(11, 5)[0]
    alone = parflex.model(robot, "state-rates")
    shared = plants().plant(robot).problem.model
    rng = np.random.default_rng(0)
    inputs = {"q": robot.home, "qd": rng.uniform(-1, 1, 3), "effort": rng.uniform(-5, 5, 3)}
    one, two = alone(**inputs), shared(**inputs)
    one["q"], two["q"] = (np.exp(1j * found["q"]) for found in (one, two))  # angles but for whole turns
    worst = max(float(np.abs(one[name] - two[name]).max()) for name in one)
    figure("family against a program of its own", worst, 1e-11)
    assert worst < 1e-11  # accelerations of some 10 m/s2


def test_a_sensor_at_the_end_of_a_link_moves_with_its_length():
    (length,) = [p for p in parameters_of(nominal()) if p.word == "lengths: leg1.1 to leg1.2"]
    (frame,) = [f for f in varied(nominal(), {length: 1.1}).description.frame if f.name == "leg1.1"]
    assert abs(frame.point_masses[0].position[0] - 0.55) < 1e-15
    assert frame.inertia.centre == (0.25, 0.0, 0.0)  # its own parameter


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"sample_time": -1e-3}, "sample_time"),
        ({"sample_time": float("nan")}, "sample_time"),
        ({"delay": -1}, "delay"),
        ({"delay": 1.5}, "delay"),
        ({"noise": -1.0}, "noise"),
        ({"rates": "guessed"}, "rates"),
        ({"effort_limit": -2.0}, "effort_limit"),
        ({"effort_limit": {"leg9.1": 2.0}}, "effort_limit"),
        ({"start": "home"}, "start"),
        ({"sample_tim": 1e-3}, "sample_tim"),
        ({"overshoot": 10.0}, "overshoot"),
        ({"peak_time": 0.0}, "peak_time"),
        ({"Kp": 100.0}, "Kv"),
        ({"Kp": -1.0, "Kv": 1.0}, "Kp"),
        ({"time": -1.0}, "time"),
    ],
)
def test_what_no_loop_can_be_is_refused_by_name(words, key):
    with pytest.raises(InputError) as refusal:
        parflex.run_control(nominal(), "circle:radius=0.01,time=0.1", **words)
    assert refusal.value.key == key and refusal.value.hint


def test_laws_refuse_robots_that_they_cannot_control():
    flexible = replace(nominal(), tree=parflex.load("3rrr-flexible").tree)
    for robot, name, words in (
        (nominal(), "cct", "no law"),
        (parflex.load("delta"), "extended", "sensors in passive joints"),
        (parflex.load("rx90"), "ctc", "has no loops"),
        (flexible, "ctc", "rigid"),
    ):
        with pytest.raises(InputError, match=words):
            make_law(robot, name, gains_from())


@pytest.mark.verify
def test_joints_of_a_plant_stick_as_in_a_run_with_the_same_efforts():
    """Efforts that a law held from sample to sample, given again by a controller that does not look."""
    of = parflex.load("5r")
    run = parflex.run_control(of, lambda t: {"x": 0.01 * np.sin(3 * t) ** 3}, "ctc", time=1.5, peak_time=0.3)
    assert run.settings["sticking"] == ["left.1", "right.1"] and run.settings["friction_width"] is None
    sticks = run.summary["sticks"]
    assert len(sticks) > 3 and all(one["until"] is None or one["until"] > one["time"] for one in sticks)
    for one in sticks:  # at rest within
        inside = (run.columns["t"] >= one["time"]) & (run.columns["t"] <= (one["until"] or 2.0))
        assert np.abs(run.columns[f"qd.{one['joint']}"][inside]).max(initial=0.0) < 1e-9

    def replay(sensed, memory):
        row = round(sensed.time / 1e-3)
        return [float(run.columns[f"effort.{name}"][row]) for name in of.motors], memory

    replay.sample_time = 1e-3
    pose = {name: float(run.columns[f"q.{name}"][0]) for name in of.motors}
    again = parflex.simulate(of, None, 1.5, controller=replay, pose=pose, method="rk4", step=1e-3)
    for name in of.motors:
        assert np.abs(again[f"q.{name}"] - run.columns[f"q.{name}"]).max() < 1e-9
        assert np.abs(again[f"friction.{name}.effort"] - run.columns[f"friction.{name}.effort"])[1:].max() < 1e-6
    told = [(one["joint"], one["until"] is None) for one in again.summary["sticks"]]
    assert told == [(one["joint"], one["until"] is None) for one in sticks]
