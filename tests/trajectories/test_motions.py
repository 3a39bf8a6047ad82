"""Motions by every law, frames that turn along a path: derivatives, geometry, Pinocchio; bad tables are refused."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.cases import VERIFY
from support.catalogue import CATALOGUE
from support.command_line import answered
from support.oracles import tripod_wrist
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import load_robot

import parflex
from parflex.control.references import reference_from
from parflex.robotfile.motion_schema import MotionTable
from parflex.trajectories import follow as following
from parflex.trajectories.frames import FrameTrajectory, paths_of
from parflex.trajectories.laws import unit_law

LEFT, RIGHT = "left.1", "right.1"
ROWS = [{LEFT: 0.9, RIGHT: 2.2}, {LEFT: 1.0, RIGHT: 2.1}, {LEFT: 0.8}]
AROUND = {"centre": [0.05, 0.45, 0], "start": [0.1, 0.45, 0], "turns": 1}
POINTS = [[0.0, 0.4, 0], [0.1, 0.45, 0], [0.05, 0.5, 0]]
TABLES = {
    "quintic moves": {"moves": [{LEFT: 0.2}, {RIGHT: -0.1}], "law": "quintic", "duration": 0.5, "rest": 0.1},
    "septic moves": {"moves": [{LEFT: 0.2}, {RIGHT: -0.1}], "law": "septic", "duration": 0.5},
    "moves at constant speed": {"moves": [{LEFT: 0.2}], "law": "constant-speed", "duration": 0.5, "ramp": 0.1},
    "trapezoid": {"moves": [{LEFT: 0.2}], "duration": 0.5, "ramp": 0.1, "smoothing": 0.05},
    "positions": {"joints": ROWS, "times": [0.1, 0.4, 1.0]},
    "spline": {"joints": ROWS, "times": [0, 0.4, 1.0], "law": "spline"},
    "blend": {"joints": ROWS, "times": [0, 0.4, 1.0], "law": "blend", "blend": 0.1},
    "sines": {"sines": {LEFT: [0.1, 0.05]}, "cosines": {RIGHT: [0.02, -0.01]}, "frequency": 0.7},
    "faded sines": {"sines": {LEFT: [0.1, 0.05]}, "frequencies": [1.0, 1.7], "duration": 2.0, "ramp": 0.3},
    "chirp": {"chirp": {LEFT: 0.05}, "frequencies": [1, 10], "duration": 1.0, "ramp": 0.2},
    "exponential chirp": {
        "chirp": {LEFT: 0.05, RIGHT: -0.03}, "frequencies": [1, 10], "sweep": "exponential", "duration": 1.0,
    },
    "repeated": {"moves": [{LEFT: 0.2}, {LEFT: -0.2}], "law": "septic", "duration": 0.3, "period": 0.7},
    "quintic lines": {"points": POINTS, "law": "quintic", "duration": 0.4, "rest": 0.1},
    "spline of a frame": {"points": POINTS, "times": [0, 0.4, 1.0], "law": "spline"},
    "blend of a frame": {"points": POINTS, "times": [0, 0.4, 1.0], "law": "blend", "blend": 0.1},
    "septic circle": {"circle": AROUND, "law": "septic", "duration": 1.2},
    "circle at constant speed": {"circle": AROUND, "speed": 0.4, "ramp": 0.2},
    "waves of a frame": {"frame": "tip", "sines": {"x": [0.03], "y": [0.0, 0.02]}, "frequency": 1.0, "duration": 1.0},
    "septic poses": {
        "poses": [{"tip.x": 0, "tip.y": 0.4}, {"tip.x": 0.1, "tip.y": 0.45}], "law": "septic", "duration": 0.5,
    },
}  # fmt: skip
OF_FRAMES = [name for name, table in TABLES.items() if {"points", "circle", "frame", "poses"} & set(table)]
END = 1.9
TIMES = np.linspace(-0.1, END, 211)  # in no even ratio to the breaks


@cache
def robot():
    return parflex.load("5r")


@cache
def plan_of(name):
    return parflex.plan_motion(robot(), TABLES[name], END)


def inner_times(plan, away):
    """Times away from breaks at which higher derivatives jump: differences would mix both sides."""
    edges = [0.0, END, *(plan.breaks if plan.waves is None else ())]
    if plan.waves is not None:
        edges += [plan.waves.ramp, plan.waves.duration, plan.waves.duration - plan.waves.ramp]
    if len(edges) > 60:  # knots of a path, that are many; breaks of its law are these
        edges = [0.0, END, *(0.4, 0.5, 0.9), *(0.2, 0.3, 0.8, 1.0), plan.end, plan.end - 0.2]
    return [t for t in TIMES if min(abs(t - edge) for edge in edges) > away and t > 0]


@pytest.mark.few
@pytest.mark.parametrize("name", TABLES)
def test_velocities_and_accelerations_are_the_derivatives(name):
    plan, h = plan_of(name), 1e-3
    times = inner_times(plan, 2 * h)[:: 1 if VERIFY else 4]
    rows = np.array([plan.at(t) for t in times])
    assert len(times) > (20 if VERIFY else 5) and np.abs(rows[:, 1]).max() > 0.01
    for order in (0, 1):

        def difference(step, order=order):
            ahead, back = ([plan.at(t + sign * step)[order] for t in times] for sign in (1, -1))
            return (np.array(ahead) - np.array(back)) / (2 * step)

        richardson = (4 * difference(h / 2) - difference(h)) / 3
        scale = np.abs(rows[:, order + 1]).max()
        # (w h)^4 / 480 of a wave of 10 Hz and 1 ms is 3e-8; rounding of positions over h another 1e-12
        assert np.abs(richardson - rows[:, order + 1]).max() < 1e-6 * scale


@pytest.mark.parametrize("name", ["sines", "faded sines", "chirp", "exponential chirp"])
def test_runs_get_quintics_that_follow_the_waves(name):
    plan = plan_of(name)
    times = inner_times(plan, 1e-3)
    exact = np.stack(plan.waves.at(times), axis=1)
    for order, share in ((0, 1e-9), (1, 1e-8), (2, 1e-6)):  # quintics through knots 0.1 rad of the fastest wave apart
        off = plan.value(np.array(times), order) - exact[:, order]
        assert np.abs(off).max() < share * np.abs(exact[:, order]).max()


def test_laws_go_their_ways_at_rest_at_both_ends():
    for plan in map(plan_of, ("quintic moves", "septic moves", "moves at constant speed", "trapezoid")):
        first, last = plan.at(0.0), plan.at(plan.end)
        assert last[0][0] - first[0][0] == pytest.approx(0.2, abs=1e-12)
        assert np.abs([first[1], last[1]]).max() < 1e-12
    jerk = plan_of("septic moves").value(np.array([0.0, 0.5]), 3)
    assert np.abs(jerk).max() < 1e-9  # the quintic has 60 times the way over the cube of the time
    middle = plan_of("moves at constant speed").at(0.25)
    assert middle[1][0] == pytest.approx(0.2 / 0.4) and middle[2][0] == pytest.approx(0, abs=1e-12)


def test_an_averaged_law_is_the_mean_over_its_window():
    law, width, count = unit_law("trapezoid", 1.0, 0.3), 0.2, 4000
    averaged = law.averaged(width)
    shares = (np.arange(count) + 0.5) / count * width
    for t in (0.0, 0.1, 0.31, 0.5, 0.77, 1.05, 1.2):
        mean = law.value(np.maximum(t - shares, 0.0))[:, 0].mean()  # by the midpoint rule: rests before its start
        assert averaged.value(t)[0] == pytest.approx(mean, abs=1e-8)
    assert averaged.breaks[-1] == pytest.approx(1.2)
    for order in range(3):  # trapezoidal speeds, averaged, have continuous accelerations
        assert not len(averaged.jumps(order)[0])


def test_points_are_passed_at_their_times_and_blends_cut_corners():
    through = np.array([[row.get(RIGHT, 2.1) for row in ROWS], [row[LEFT] for row in ROWS]])
    for name in ("positions", "spline"):
        places = np.array([plan_of(name).at(t)[0] for t in TABLES[name]["times"]]).T
        assert places[::-1] == pytest.approx(through, abs=1e-12)
    spline = plan_of("spline")
    assert np.abs(spline.at(0.4)[1]).max() > 0.05  # without a stop
    assert 0.9 < plan_of("blend").at(0.4)[0][0] < 1.0
    for order in range(5):  # the first four derivatives of the spline are continuous
        sides = [spline.value(0.4, order, behind=behind) for behind in (False, True)]
        assert sides[0] == pytest.approx(sides[1], rel=1e-9, abs=1e-9)


@pytest.mark.few("septic circle", "blend", "waves")
@pytest.mark.parametrize("name", OF_FRAMES)
def test_frames_go_along_their_paths(name):
    plan, places = plan_of(name), []
    near = plan.start
    for t in np.linspace(0, min(plan.end, END), 9):
        near = robot().assemble(dict(zip(plan.names, map(float, plan.at(t)[0]), strict=True)), near)
        places.append(tool_at(robot(), near)[0][:2])
    places = np.array(places)
    if "circle" in name:
        assert np.hypot(*(places - [0.05, 0.45]).T) == pytest.approx(0.05, abs=1e-9)
    elif "spline" in name:
        assert places[[0, -1]] == pytest.approx(np.array(POINTS)[[0, 2], :2], abs=1e-9)
    elif "waves" in name:
        phase = 2 * np.pi * np.linspace(0, 1, 9)
        waves = np.array([0.03 * np.sin(phase), 0.02 * np.sin(2 * phase)]).T
        assert places - places[0] == pytest.approx(waves, abs=1e-8)
    else:  # on straight lines
        assert np.all(places[:, 0] <= 0.1 + 1e-9) and places[0] == pytest.approx([0, 0.4], abs=1e-9)


def test_a_motion_is_the_same_from_file_text_and_table(tmp_path):
    file = tmp_path / "swing.toml"
    file.write_text(f'moves = [{{ "{LEFT}" = 0.2 }}, {{ "{RIGHT}" = -0.1 }}]\nlaw = "septic"\nduration = 0.5\n')
    text = f'{{ moves = [{{ "{LEFT}" = 0.2 }}, {{ "{RIGHT}" = -0.1 }}], law = "septic", duration = 0.5 }}'
    for given in (str(file), text):
        plan = parflex.plan_motion(robot(), given, END)
        assert np.array_equal(plan.coefficients, plan_of("septic moves").coefficients)


def test_the_command_line_plans_and_writes_a_table_and_largest_values_are_those_of_the_motion(tmp_path, capsys):
    table = tmp_path / "swing.csv"
    answer = answered(capsys, "motion", "5r", f'{{ moves = [{{ "{LEFT}" = 0.2 }}], law = "septic", duration = 0.5 }}',
                      "--out", str(table))  # fmt: skip
    assert answer["time"] == 0.5 and answer["rows"] == 501
    # the peak velocity of the septic is 35/16 ways a time
    assert answer["motors"][LEFT]["velocity"] == pytest.approx(0.2 / 0.5 * 35 / 16, rel=1e-6)
    assert parflex.plan_motion(robot(), str(table), 0.5).at(0.2)[0][0] > 0
    text = f'{{ moves = [{{ "{LEFT}" = 0.2 }}, {{ "{RIGHT}" = -0.1 }}], law = "quintic", duration = 0.6 }}'
    motors = answered(capsys, "motion", "5r", text, "--step", "0.5")["motors"]
    for motor, way in ((LEFT, 0.2), (RIGHT, 0.1)):  # of a quintic: 15/8 ways a time, 10/sqrt(3) ways a time squared
        expected = {"way": way, "velocity": way / 0.6 * 15 / 8, "acceleration": way / 0.36 * 10 / np.sqrt(3)}
        assert motors[motor] == pytest.approx(expected, rel=1e-12)
    waves, w = f'{{ cosines = {{ "{LEFT}" = [0.1] }}, frequency = 1.0 }}', 2 * np.pi
    motors = answered(capsys, "motion", "5r", waves, "--step", "0.7", "--time", "0.8")["motors"]
    # quintics err by 2e-7 of the acceleration
    assert motors[LEFT] == pytest.approx({"way": 0.2, "velocity": 0.1 * w, "acceleration": 0.1 * w**2}, rel=1e-6)


@pytest.mark.parametrize("planned", [None, 0.2, 2.0])
def test_a_plan_is_periodic_as_its_table(planned):
    closed = {"joints": [ROWS[0], ROWS[1], ROWS[0]], "times": [0, 0.5, 1.1], "law": "spline", "period": 1.5}
    swing = {"sines": {LEFT: [0.1]}, "duration": 1.0, "frequency": 1.0, "ramp": 0.2, "period": 1.25}
    for table, period in ((closed, 1.5), (swing, 1.25), (TABLES["sines"], 1 / 0.7)):
        plan = parflex.plan_motion(robot(), table, planned)
        once, later = (np.array([plan.at(t + k * period) for t in (0.3, 0.62)]) for k in (0, 7))
        assert np.abs(once[:, 1]).max() > 0.01 and np.abs(once - later).max() < 1e-10  # of phases of 50 rad
        assert plan.table(0.3, 9.0)[LEFT][-1] == plan.at(9.0)[0][0]
        words = {"step": 0.01, "out_step": 0.02, "without": ["friction"], "check_steps": False}
        runs = [parflex.simulate(robot(), motion, 4.0, **words) for motion in (plan, table)]
        for order, word in enumerate(("q", "qd")):
            rows = [run[f"{word}.{LEFT}"] for run in runs]
            assert np.abs(rows[0] - [plan.at(t)[order][plan.names.index(LEFT)] for t in runs[0].t]).max() < 1e-5
            assert np.abs(rows[0] - rows[1]).max() < 1e-5


def test_a_plan_without_an_end_is_refused_behind_its_time():
    endless = {"circle": {**AROUND, "turns": None}, "speed": 0.4, "ramp": 0.2}
    waves = {**TABLES["waves of a frame"], "duration": 3.0}
    still = [0.9, 2.2], [0.0, 0.0], [0.0, 0.0]
    for motion in (endless, waves, lambda t: still):
        plan = parflex.plan_motion(robot(), motion, 0.5)
        plan.at(0.5)
        for ask in (plan.at, lambda t, p=plan: p.table(0.1, t), lambda t, p=plan: parflex.simulate(robot(), p, t)):
            with pytest.raises(parflex.InputError, match=r"planned until t = 0\.5"):
                ask(0.7)
    assert parflex.plan_motion(robot(), waves).end == 3.0


BAD = {
    "no law 'quinitc'": {"moves": [{LEFT: 0.1}], "duration": 1, "law": "quinitc"},
    "no law 'spline'": {"moves": [{LEFT: 0.1}], "duration": 1, "law": "spline"},
    "'speed' has no effect": {"points": POINTS, "law": "quintic", "duration": 1, "speed": 1},
    "'duration' is missing": {"moves": [{LEFT: 0.1}], "law": "septic"},
    "'times' is missing": {"joints": ROWS, "law": "spline"},
    "'blend' is missing": {"joints": ROWS, "law": "blend", "times": [0, 1, 2]},
    "2 times for 3 joints": {"joints": ROWS, "times": [0, 1]},
    "times do not increase": {"joints": ROWS, "times": [0, 1, 1]},
    "longer than half of a move": {"joints": ROWS, "times": [0, 1, 2], "law": "blend", "blend": 0.6},
    "blends of 0.4 s overlap": {"joints": ROWS, "times": [0, 1, 2], "law": "blend", "blend": 0.4},
    "either 'frequency'": {"sines": {LEFT: [0.1]}},
    "has 1 amplitudes for 2": {"sines": {LEFT: [0.1]}, "frequencies": [1, 2]},
    "needs two frequencies": {"chirp": {LEFT: 0.1}, "frequencies": [1], "duration": 1},
    "'rihgt.1' is not an actuated joint": {"sines": {"rihgt.1": [0.1]}, "frequency": 1},
    "is not a direction of a frame": {"frame": "tip", "sines": {LEFT: [0.1]}, "frequency": 1},
    "no frame 'tpi'": {"frame": "tpi", "sines": {"x": [0.1]}, "frequency": 1},
    "a motion has one of": {"moves": [{LEFT: 0.1}], "joints": ROWS, "duration": 1},
    "'up' is not known here": {"chirp": {LEFT: 0.1}, "frequencies": [1, 2], "duration": 1, "sweep": "up"},
    "needs an end": {"circle": {"centre": [0, 0.45, 0], "start": [0.1, 0.45, 0]}, "law": "septic", "duration": 1},
    "unknown key 'lwa'": {"moves": [{LEFT: 0.1}], "duration": 1, "lwa": "septic"},
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_wrong_tables_are_refused(message):
    with pytest.raises(parflex.InputError, match=message) as refusal:
        parflex.plan_motion(robot(), BAD[message])
    assert refusal.value.hint and refusal.value.key


CIRCLE = {"circle": {"centre": [0, 0, -0.45], "start": [0.05, 0, -0.45], "turns": 1}, "speed": 0.25, "ramp": 0.15}


@pytest.fixture(scope="module")
def five_axes():
    return parflex.load("3-prs-2r")


def tool_at(of, q):
    return parflex.frames(of, parflex.Configuration(of, q))[of.tree.end_effector]


def by_motors(of, values):
    return dict(zip(of.motors, map(float, values), strict=True))


def table(more, base=CIRCLE):
    return MotionTable.model_validate(base | more)


def moving(of, arc):
    """The robot by the way along an arc: configuration, rates, accelerations."""
    segment, driven = arc
    return following.moving_frame(of, of.tree.end_effector, driven, segment.at)


def first_arc(of, motion):
    """The first segment of the path of a motion, and what the robot follows of it."""
    paths, driven, _ = paths_of(of, motion, "path")
    return paths[0], driven


def differences(f, s, h):
    """First and second derivative of fourth order, extrapolated from steps h and h/2: h^6 is left."""

    def coarse(h):
        v = {k: f(s + k * h) for k in (-2, -1, 0, 1, 2)}
        first = (8 * (v[1] - v[-1]) - (v[2] - v[-2])) / (12 * h)
        return np.array([first, (16 * (v[1] + v[-1]) - (v[2] + v[-2]) - 30 * v[0]) / (12 * h**2)])

    return (16 * coarse(h / 2) - coarse(h)) / 15


TURNING = {
    "fixed": ("3-prs-2r", CIRCLE | {"direction": [0, 0.1, 1]}),
    "cone": ("3-prs-2r", CIRCLE | {"cone": 0.2}),
    "hexapod on a cone": (
        "gough-stewart",
        {"circle": {"centre": [0.25, 0.43, 1], "start": [0.3, 0.43, 1]}, "speed": 0.2, "ramp": 0.1, "cone": 0.15},
    ),
    "slerp": (
        "3rrr",
        {"points": [[0, 0, 0], [0.04, 0.02, 0]], "speed": 0.2, "ramp": 0.1, "orientation": [[0, 0, 0], [0, 0, 0.3]]},
    ),
}


@pytest.mark.parametrize("case", TURNING)
def test_rates_and_accelerations_along_a_turning_path_are_its_derivatives(case):
    """Of a hexapod the turn about its axis, too, which no condition gives: the shortest turn from home has it."""
    name, given = TURNING[case]
    of = parflex.load(name)
    at, s = moving(of, first_arc(of, MotionTable.model_validate(given))), 0.017
    here, qd, qdd = at(s, of.home)
    rates, changes = differences(lambda s: at(s, here.q)[0].q[motor_places(of)], s, 2e-3)
    motors = list(of.actuated)
    assert np.abs(rates - qd[motors]).max() < 1e-7 * max(1.0, np.abs(rates).max())  # 1e-6 is asked
    assert np.abs(changes - qdd[motors]).max() < 1e-6 * max(1.0, np.abs(changes).max())


def motor_places(of):
    return [of.coordinates.index(name) for name in of.motors]


def test_the_tool_goes_round_the_cone_and_the_motors_return(five_axes, monkeypatch):
    monkeypatch.setitem(following.KNOTS, "m", 60)
    arc, driven = first_arc(five_axes, table({"cone": 0.2}))
    path = FrameTrajectory("path", "tool", False, driven, (), five_axes.home)
    along, first, last = following.follow_segment(five_axes, path, arc, five_axes.home)
    assert np.abs(first - last).max() < 1e-9  # whatever the way
    for s in (0.03, 0.2, 0.29):
        p, R = tool_at(five_axes, five_axes.assemble(by_motors(five_axes, along.value(s))))
        out = np.array([np.cos(s / 0.05), np.sin(s / 0.05), 0.0])
        assert np.abs(p - (0.05 * out + [0, 0, -0.45])).max() < 1e-8  # quintics between 60 knots
        assert np.abs(R[:, 2] - (np.cos(0.2) * np.array([0, 0, 1]) + np.sin(0.2) * out)).max() < 1e-7
    bends = along.value(np.linspace(0, arc.length, 400), 2)
    assert np.abs(np.diff(bends, axis=0)).max() < 0.1 * np.abs(bends).max()  # smooth


def test_a_circle_with_a_fixed_tool_is_that_of_geometry_written_anew():
    of = load_robot("five-axis")
    z = np.array([-0.4, -0.2, 0.9]) / np.linalg.norm([-0.4, -0.2, 0.9])
    circle = {"centre": [-0.04, -0.03, 0.78], "start": [-0.05, -0.03, 0.78], "turns": 1}
    arc = first_arc(of, table({"circle": circle, "direction": list(z)}))
    at, near = moving(of, arc), of.home
    for s in (0.0, 0.02, 0.05):
        near = at(s, near)[0].q
        known = dict(zip(of.coordinates, near, strict=True))
        for name, value in tripod_wrist.joints_at(arc[0].at(np.array([s])).position[0], z).items():
            assert known[name] == pytest.approx(value, abs=1e-10)  # both Newtons end at rounding


def test_efforts_along_a_cone_are_those_of_pinocchio_and_of_a_spline_of_poses(five_axes):
    at = moving(five_axes, first_arc(five_axes, table({"cone": 0.2})))
    here, q1, q2 = at(0.1, five_axes.home)
    v = 0.25
    names = five_axes.actuated_names
    states = [{n: float(part[five_axes.rates.index(n)]) for n in names} for part in (v * q1, v**2 * q2)]
    efforts = parflex.inverse_dynamics(five_axes, here, *states).efforts
    oracle = PinocchioTree(read_robot(CATALOGUE / "3-prs-2r.toml"))
    position = dict(zip(five_axes.coordinates, here.q, strict=True))
    assert oracle.inverse(position, *states, names) == pytest.approx(efforts, rel=1e-9, abs=1e-9)
    rates, changes = differences(lambda s: at(s, here.q)[0].q[motor_places(five_axes)], 0.1, 2e-3)  # poses alone
    knots = [dict(zip(names, map(float, part), strict=True)) for part in (v * rates, v**2 * changes)]
    assert parflex.inverse_dynamics(five_axes, here, *knots).efforts == pytest.approx(efforts, rel=1e-6)


def test_the_tangent_turns_a_platform_with_the_circle():
    of = load_robot("planar-arm")
    p = tool_at(of, of.home)[0]
    circle = {"centre": [float(p[0]), float(p[1]) - 0.05, 0], "start": [float(p[0]), float(p[1]), 0]}
    arc = first_arc(of, table({"circle": circle, "orientation": "tangent"}))
    for s in (0.0, 0.02):
        R = tool_at(of, moving(of, arc)(s, of.home)[0].q)[1]
        assert R[:, 0] == pytest.approx(arc[0].at(np.array([s])).twist[0, :3], abs=1e-10)


def test_poses_with_directions_are_reached_and_joints_given_too(five_axes, monkeypatch):
    monkeypatch.setitem(following.KNOTS, "", 12)
    given = {"x": 0.03, "y": 0.02, "z": -0.42, "zx": 0.2, "zy": -0.1}
    plan = parflex.plan_motion(five_axes, {"poses": ["home", given, "aside"], "duration": 0.5}, 1.0)
    for t, pose in ((0.5, given), (1.0, "aside")):  # it went by the place alone, and ended elsewhere
        assert np.abs(plan.at(t)[0] - five_axes.assemble(pose)[motor_places(five_axes)]).max() < 1e-9
    p, R = tool_at(five_axes, five_axes.assemble(by_motors(five_axes, plan.at(0.25)[0])))
    begin, end = (Rotation.from_matrix(tool_at(five_axes, five_axes.assemble(pose))[1]) for pose in (None, given))
    middle = begin * Rotation.from_rotvec((begin.inv() * end).as_rotvec() / 2)
    assert R[:, 2] == pytest.approx(middle.as_matrix()[:, 2], abs=1e-7)  # halfway about one axis
    assert p == pytest.approx([0.015, 0.01, -0.435], abs=1e-8)
    slerp = {"points": [[0, 0, 0], [0.1, 0, 0]], "speed": 1, "ramp": 1, "orientation": [[0.1, 0.2, 0], [0, 0, 0.8]]}
    half = first_arc(five_axes, MotionTable.model_validate(slerp))[0].at(np.array([0.05])).rotation[0]
    first, last = (Rotation.from_rotvec(turn).as_matrix() for turn in slerp["orientation"])
    assert np.abs(half @ first.T @ half - last).max() < 1e-12  # half the turn, twice


@pytest.mark.verify
def test_references_of_a_controller_keep_a_given_direction(five_axes, monkeypatch):
    monkeypatch.setattr("parflex.trajectories.follow.TRACK_STEP", 0.125)
    wanted = reference_from(five_axes, "circle:radius=0.03,time=1,z=-0.45,zx=0.1,zy=0")
    driven = following.track(five_axes, wanted, five_axes.actuated_names)
    for t in (0.0, 0.5, 1.0):  # at knots
        R = tool_at(five_axes, five_axes.assemble(by_motors(five_axes, driven.at(np.array([t]))[0][0])))[1]
        assert R[:, 2] == pytest.approx([0.1, 0.0, np.sqrt(0.99)], abs=1e-9)

    def leaning(t):
        return {"x": 0.02 * t**3, "zx": 0.1 * t**3, "zy": 0.0, "zz": 1.0}

    function = reference_from(five_axes, leaning, 1.0)
    assert function.at(1.0).turn == "axis"
    z = function.at(1.0).rotation[:, 2]
    assert z == pytest.approx(np.array([0.1, 0, 1]) / np.sqrt(1.01), abs=1e-9)  # at the last sample
    with pytest.raises(parflex.InputError, match="one component does not give the direction of 'tool'"):
        reference_from(five_axes, lambda t: {"zx": 0.1}, 1.0)
    kept = reference_from(five_axes, "circle:radius=0.03,time=1")  # its turn cannot be kept: it was refused
    assert np.isfinite(following.track(five_axes, kept, five_axes.actuated_names).joints.coefficients).all()


LINES = {"points": [[0, 0, 0], [0.1, 0, 0], [0.1, 0.1, 0]], "speed": 0.1, "ramp": 0.1}


@pytest.mark.parametrize(
    ("more", "base", "message"),
    [
        ({"direction": [[0, 0, 1], [0, 1, 1]]}, CIRCLE, "there are 2 vectors for 1 point of the circle"),
        ({"direction": [0, 0, 0]}, CIRCLE, "a direction is zero"),
        ({"cone": 0.1, "direction": [0, 0, 1]}, CIRCLE, "'cone' and 'direction' both set the orientation of the frame"),
        ({"orientation": "along"}, CIRCLE, "orientation"),
        ({"cone": 0.1}, LINES, "'cone' needs a circle"),
        ({"orientation": "tangent"}, LINES, "along corners the tangent jumps"),
        pytest.param(
            {"direction": [1, 0, 0]}, CIRCLE, "no pose has this direction of 'tool'.*deg", marks=pytest.mark.verify
        ),
    ],
)
def test_directions_that_do_not_fit_a_path_are_refused(more, base, message, five_axes):
    with pytest.raises(parflex.ParflexError, match=message):
        parflex.plan_motion(five_axes, base | more, 1.0)
    if base is CIRCLE and "zero" in message:
        circle = {"centre": [0, 0.45, 0], "start": [0.03, 0.45, 0]}
        with pytest.raises(parflex.InputError, match="'tip' cannot have every rotation"):
            parflex.plan_motion(robot(), CIRCLE | {"circle": circle, "orientation": "tangent"}, 1.0)
