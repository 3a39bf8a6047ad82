"""Runs go on where the rates that they integrate no longer determine the others, and through singular poses."""

import numpy as np
import pytest
from support.oracles.references import read
from support.robots import load_robot

from parflex import InputError, SingularError, configure, load, model, simulate
from parflex.codegen.input_checks import model_condition


def positions(run):
    return np.stack([run[name] for name in run if name.startswith("q.")])


def test_the_motion_is_the_same_whatever_rates_are_independent():
    robot = load("four-bar")
    given = {"time": 0.1, "start": {"velocity": {"crank": 2.0}}, "without": ["friction"], "step": 1e-3}
    runs = {name: simulate(robot, independent=[name], **given) for name in ("crank", "coupler", "rocker")}
    for name, run in runs.items():
        assert run.status == "ok" and f"qdd.{name}" in run
        # order four: halving the steps of 1e-3 s moves no position by more than 1e-9
        assert np.abs(positions(run) - positions(runs["crank"])).max() < 1e-8


def test_a_robot_that_bends_moves_the_same_with_other_independent_rates():
    robot, given = load("dualemps"), {"time": 0.02, "without": ["friction"], "step": 1e-4}
    chosen = ["11", "12", "21", *(f"{beam}.{axis}" for beam in ("13", "16") for axis in ("ux", "uy", "rz"))]
    chosen += ["23.uy", "23.rz"]
    first, second = simulate(robot, "square", **given), simulate(robot, "square", independent=chosen, **given)
    names = [{name[4:] for name in run if name.startswith("qdd.")} for run in (first, second)]
    assert second.status == "ok" and names[0] != names[1] == set(chosen)
    assert np.abs(positions(first) - positions(second)).max() < 1e-9  # of 1e-4 m of bending


@pytest.mark.parametrize(
    ("names", "message"),
    [(["krank"], "krank"), ([], "0 rates are named"), (["crank", "rocker"], "but 1 are"), ("crank", "list of names")],
)
def test_impossible_independent_rates_are_refused(names, message):
    with pytest.raises(InputError, match=message):
        simulate(load("four-bar"), time=0.1, independent=names)
    with pytest.raises(InputError, match="the motor 'crank' is driven"):
        simulate(load("four-bar"), lambda t: ([t], [1.0], [0.0]), time=0.1, independent=["rocker"])


METHODS = ("gauss4", "gauss6", "rk4", "dopri5", "generalized-alpha")


@pytest.mark.few("gauss4", "rk4", "generalized")
@pytest.mark.parametrize("method", METHODS)
def test_the_slider_crank_turns_over_its_dead_centres_whatever_is_the_motor(method):
    robot, wanted = load_robot("slider-crank-spatial"), read("slider-crank-spatial")
    start = {"velocity": {"crank": 6.0}}
    run = simulate(robot, time=5.0, start=start, step=1e-3, out_step=0.1, method=method)
    assert run.status == "ok" and len(run.t) == 51 and "qdd.slider" in run  # the names are those of the start
    assert run["closure_error"].max() < 1e-13
    # orders 4 to 6 at up to 24 rad/s, order 2 of generalized-alpha: halving its steps divides its error by four
    allowed = 5e-3 if method == "generalized-alpha" else 1e-6
    assert np.abs(run["q.slider"] - wanted["slider"]).max() < allowed
    assert np.abs(run["qd.crank"] - wanted["crank.rate"]).max() < 100 * allowed


def test_accelerations_keep_their_names_when_other_rates_take_over():
    robot = load_robot("slider-crank-spatial")
    run = simulate(robot, time=0.5, start={"velocity": {"crank": 6.0}}, step=5e-4, out_step=5e-4)
    names = run.summary["changes"]
    assert names and names[0]["independent"] == ["crank"]
    slope = np.gradient(run["qd.slider"], run.t)
    # differences of second order: a quarter of the third derivative times 5e-4 squared
    assert np.abs(slope - run["qdd.slider"])[2:-2].max() < 1e-3 * np.abs(slope).max()


def test_a_falling_five_bar_goes_on_when_its_rods_are_in_line():
    given = {"time": 0.6, "without": ["friction"], "out_step": 0.01}
    coarse, fine = (simulate(load("5r"), step=step, **given) for step in (1e-3, 5e-4))
    assert coarse.status == fine.status == "ok" and len(coarse.t) == 61
    assert coarse.summary["changes"] and coarse["closure_error"].max() < 1e-13
    lost = [float(np.ptp(run["energy.total"])) for run in (coarse, fine)]  # nothing acts but gravity
    assert lost[1] < 5e-6 and lost[0] > 8 * lost[1]  # of 4 J; order four, through both changes: 16
    assert np.abs(positions(coarse) - positions(fine)).max() < 1e-4  # the coarse run; order four: a whip of 11 rad/s


@pytest.mark.few
@pytest.mark.parametrize(("name", "time"), [("5r", 0.6), ("3rrr", 0.5)])
@pytest.mark.parametrize(("method", "allowed"), [("gauss4", 1e-4), ("gauss6", 1e-6), ("generalized-alpha", 2e-2)])
def test_rates_that_become_poor_shorten_no_steps(name, time, method, allowed):
    """What is computed with them beyond the row at which others are taken says nothing of how long steps may be."""
    fine = simulate(load(name), time=time, method="gauss6", step=1e-4)
    run = simulate(load(name), time=time, method=method, step=5e-4)
    summary = run.summary
    assert summary["changes"] and summary["steps"] < 5000  # 5 million in runs of generalized-alpha that began again
    assert not any("evaluations each" in sentence for sentence in summary["warnings"])
    way = np.abs(positions(fine) - positions(fine)[:, :1]).max()
    # 10 rad/s: 0.005 rad a step, whose error a whip at a dead centre makes a hundred times larger
    assert np.abs(positions(run) - positions(fine)).max() < allowed * way


def test_a_run_back_in_time_ends_where_it_began():
    robot = load_robot("slider-crank-spatial")
    there = simulate(robot, time=0.8, start={"velocity": {"crank": 6.0}}, step=5e-4)
    q = np.array([there[f"q.{name}"][-1] for name in robot.tree.position_names])
    qd = -np.array([there[f"qd.{name}"][-1] for name in robot.tree.position_names])
    back = simulate(robot, time=0.8, start={"q": q, "qd": qd}, step=5e-4)
    assert np.abs(positions(back)[:, -1] - positions(there)[:, 0]).max() < 2e-7  # 3200 steps, iterated to 1e-12


@pytest.mark.few
@pytest.mark.parametrize(("method", "allowed"), [("gauss4", 1e-6), ("rk4", 5e-6), ("generalized-alpha", 0.1)])
def test_the_double_four_bar_swings_through_the_line(method, allowed, figure):
    robot, wanted = load_robot("double-four-bar"), read("double-four-bar")
    run = simulate(robot, time=10.0, start={"velocity": {"r0": -1.0}}, step=1e-2, out_step=0.1, method=method)
    assert run.status == "ok" and run["closure_error"].max() < 1e-12
    off = max(np.abs(run[f"q.{name}"][::2] - wanted["angle"]).max() for name in ("r0", "r1", "r2"))
    figure(f"double four-bar through the line, {method} with 0.01 s", float(off), allowed)
    assert off < allowed  # of each method with steps of 0.01 s: 1/30 of that with 0.005 s (a quarter of order 2)
    passages = [change for change in run.summary["changes"] if "singular_until" in change]
    assert len(passages) == 10  # five turns


def test_a_parallelogram_stays_one_through_the_line_free_or_led():
    robot = load_robot("parallelogram")
    free = simulate(robot, time=1.0, start={"velocity": {"crank": 3.0}}, step=2e-3, out_step=0.02)
    # nothing is put in: the energy is that of a bar on two equal rockers; order four, 500 steps
    assert free.status == "ok" and np.ptp(free["energy.total"]) < 1e-8
    driven = simulate(robot, lambda t: ([1 + 4 * t], [4.0], [0.0]), time=1.0, step=2e-3, out_step=0.02)
    assert driven.status == "ok" and driven.summary["energy_balance_error"] < 1e-8
    for run in (free, driven):
        assert any("singular_until" in change for change in run.summary["changes"])
        assert np.abs(run["q.crank"] - run["q.rocker"]).max() < 1e-11
    # the crank turns evenly: the effort is the weight's, (m1/2 + m3/2 + m2) g r cos q, with its centre where it is
    arm = 9.81 * (1.0 * 0.25 + 1.3 * 0.5 + 0.7 * 0.25)
    assert np.abs(driven["effort.crank"] - arm * np.cos(driven["q.crank"])).max() < 1e-7


def test_where_the_loops_leave_the_motion_open_a_run_ends():
    robot = load_robot("double-four-bar")
    signs = np.array([-1.0 if name.startswith("h") else 1.0 for name in robot.tree.position_names])
    with pytest.raises(SingularError, match="may change its motion mode"):
        simulate(robot, time=0.1, start={"q": 0 * signs, "qd": 0 * signs})
    run = simulate(robot, time=0.1, start={"q": 1e-5 * signs, "qd": 0 * signs})
    assert run.status == "diverged" and run.summary["stopped_at"] == 0.0
    assert "do not determine how it moves on" in run.summary["why"] and run.summary["coordinate"] in robot.rates
    clear = simulate(robot, time=0.1, start={"q": 0.01 * signs, "qd": 0 * signs}, step=1e-3)
    assert clear.status == "ok" and clear.summary["energy_balance_error"] < 1e-8


@pytest.mark.verify
def test_a_driven_slider_ends_at_its_dead_centre():
    robot = load_robot("slider-crank-spatial")
    run = simulate(robot, lambda t: ([0.2 + 0.5 * t], [0.5], [0.0]), time=0.4, step=1e-3, out_step=0.01)
    assert run.status == "diverged" and "drive the robot to a singular pose" in run.summary["why"]
    assert 0.15 < run.summary["stopped_at"] < 0.25 and run["closure_error"].max() < 1e-12


def test_a_controller_goes_on_over_a_dead_centre_with_its_memory():
    robot, times = load_robot("slider-crank-spatial"), []

    def damped(sensed, memory):
        times.append(sensed.time)
        return [-2.0 * sensed.velocity[0]], (memory or 0) + 1

    damped.sample_time = 1e-3
    run = simulate(robot, time=0.5, controller=damped, start={"velocity": {"crank": 6.0}}, independent=["slider"])
    assert run.status == "ok" and run.summary["changes"]
    assert np.array_equal(times, np.arange(500) * 1e-3)  # once at each sample
    assert run.summary["energy_balance_error"] < 1e-8


def test_a_slider_crank_whose_rod_bends_has_no_dead_centre_and_passes_those_of_rates_that_are_named():
    settings = {"frame.rod.beam.elements": 1, "materials.steel.elastic_modulus": 2e9}
    robot = load_robot("slider-crank-beam", settings=settings)
    given = {"time": 0.25, "start": {"pose": {"crank": 1.0}, "velocity": {"crank": 12.0}}, "out_step": 1e-3}
    run, fine = (simulate(robot, step=step, **given) for step in (1e-4, 5e-5))
    # the tip of the rod closes the loop in both directions at any pose
    assert run.status == "ok" and not run.summary["changes"] and {"qdd.crank", "qdd.rod"} < set(run)
    error = np.abs(positions(run) - positions(fine)).max()
    for names in (["rod", "rod.uy", "rod.rz", "slider"], ["rod.ux", "rod.uy", "rod.rz", "slider"]):
        run = simulate(robot, step=1e-4, independent=names, **given)
        assert run.status == "ok" and run.summary["changes"] and run["closure_error"].max() < 1e-13
        assert run.summary["energy_balance_error"] < 1e-7  # of 0.6 J; order four, steps of 1e-4 s
        assert np.abs(positions(run) - positions(fine)).max() < 1.5 * error + 1e-9  # errors of the steps, as before


@pytest.mark.verify
def test_a_robot_that_bends_ends_at_a_singular_pose():
    driven = {"time": 0.14, "step": 2e-4, "out_step": 0.01, "start": "rest"}
    run = simulate(load_robot("parallelogram-with-pointer"), lambda t: ([2.9 + 4 * t], [4.0], [0.0]), **driven)
    assert run.status == "diverged" and "where runs of flexible robots end" in run.summary["why"]
    assert 0.03 < run.summary["stopped_at"] < 0.07 and run["closure_error"].max() < 1e-12  # the line is at 0.0604 s
    assert run.summary["energy_balance_error"] < 1e-6


def jumping(when, rate):
    """Run the parallelogram with a velocity that jumps; it is in line at 0.5354 s."""

    def motion(t):
        return [1 + 4 * min(t, when) + rate * max(t - when, 0.0)], [4.0 if t < when else rate], [0.0]

    return simulate(load_robot("parallelogram"), motion, time=0.7, step=2e-3, out_step=0.02, breaks=[when])


@pytest.mark.few
@pytest.mark.parametrize(("when", "rate"), [(0.49, 4.4), (0.52, 4.4), (0.52, 3.0), (0.535, 4.4), (0.54, 4.4)])
def test_a_motor_whose_velocity_jumps_within_a_passage_pushes_with_an_impulse(when, rate):
    run = jumping(when, rate)
    assert run.status == "ok" and any("singular_until" in change for change in run.summary["changes"])
    assert "velocity jumps" in run.summary["warnings"][0]
    assert np.abs(run["q.crank"] - run["q.rocker"]).max() < 1e-11
    # a bar on two equal cranks: inertia of all three about the axes, turned by (4^2 - rate^2) / 2
    inertia = (0.02 + 1.0 * 0.25**2) + (0.02 + 0.7 * 0.25**2) + 1.3 * 0.5**2
    assert abs(run["energy.kinetic"][-1] - inertia * rate**2 / 2) < 1e-8
    assert run.summary["energy_balance_error"] < 1e-7  # with the work of the impulse


def test_a_velocity_that_jumps_at_the_singular_pose_ends_the_run():
    run = jumping((np.pi - 1) / 4, 5.0)
    assert run.status == "diverged" and "a motor jumps too near a singular pose, at t = 0.535" in run.summary["why"]


def test_a_pose_beside_a_start_is_where_the_run_starts():
    robot = load("four-bar")
    given = {"time": 0.01, "start": {"velocity": {"crank": 2.0}}}
    run = simulate(robot, pose={"crank": 2.0}, **given)
    assert run["q.crank"][0] == pytest.approx(2.0, abs=1e-12)
    with pytest.raises(InputError, match="the start already has a 'pose'"):
        simulate(robot, pose={"crank": 2.0}, time=0.01, start={"pose": {"crank": 1.0}})


def test_the_condition_of_a_program_is_the_inverse_distance_to_its_dead_centre():
    robot = load("four-bar")
    program = model(robot, "state-rates", independent=["rocker"])
    stretched = np.arccos((0.40**2 + 0.45**2 - 0.30**2) / (2 * 0.40 * 0.45))  # crank and coupler in line
    poses = [configure(robot, {"crank": stretched + off}).q for off in (1e-2, 1e-3, 1e-4)]
    conditions = [model_condition(robot, program, q) for q in poses]
    # the inverse of the distance, whose square is a thousandth of it beside the first pose and less beside the others
    assert np.array(conditions[1:]) / conditions[:-1] == pytest.approx(10.0, rel=0.05) and conditions[0] > 100
    for name in ("direct", "inverse"):  # whose rate is the crank's
        assert model_condition(robot, model(robot, name), poses[-1]) < 10
    cases = ((model(robot, "mass-matrix"), poses[-1], "list its independent"), (program, [0.0], "shape"))
    for other, q, message in cases:
        with pytest.raises(InputError, match=message):
            model_condition(robot, other, q)


def test_a_run_with_joints_that_stick_ends_at_a_singular_pose():
    """Efforts that hold joints are no part of the model there; smoothed friction is."""
    robot = load_robot("parallelogram", settings={"frame.crank.friction": {"coulomb": 0.01}})
    given = {"time": 1.0, "start": {"velocity": {"crank": 10.0}}, "without": ["gravity"]}
    run = simulate(robot, **given)
    assert run.status == "diverged" and "with a friction_width they go on" in run.summary["why"]
    assert len(run["t"]) > 10
    assert simulate(robot, **given, friction_width=1e-3).status == "ok"
