"""Motions by every law: velocities and accelerations are derivatives, bad tables are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.cli.main import cli
from parflex.simulation.inputs.function_samples import Span
from parflex.simulation.inputs.motor_motions import motion_of

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


@pytest.fixture(scope="module")
def robot():
    return parflex.load("5r")


@pytest.fixture(scope="module")
def plans(robot):
    return {name: parflex.plan_motion(robot, table, END) for name, table in TABLES.items()}


def inner_times(plan, away):
    """Times away from breaks at which higher derivatives jump: differences would mix both sides."""
    edges = [0.0, END, *(plan.pieces.breaks if plan.exact is None else ())]
    if plan.exact is not None:
        edges += [plan.exact.ramp, plan.exact.duration, plan.exact.duration - plan.exact.ramp]
    if len(edges) > 60:  # knots of a path, that are many; breaks of its law are these
        edges = [0.0, END, *(0.4, 0.5, 0.9), *(0.2, 0.3, 0.8, 1.0), plan.end, plan.end - 0.2]
    return [t for t in TIMES if min(abs(t - edge) for edge in edges) > away and t > 0]


@pytest.mark.few
@pytest.mark.parametrize("name", TABLES)
def test_velocities_and_accelerations_are_the_derivatives(plans, name):
    plan, h = plans[name], 1e-3
    times = inner_times(plan, 2 * h)
    rows = np.array([plan.at(t) for t in times])
    assert len(times) > 20 and np.abs(rows[:, 1]).max() > 0.01
    for order in (0, 1):

        def difference(step, order=order):
            ahead, back = ([plan.at(t + sign * step)[order] for t in times] for sign in (1, -1))
            return (np.array(ahead) - np.array(back)) / (2 * step)

        richardson = (4 * difference(h / 2) - difference(h)) / 3
        scale = np.abs(rows[:, order + 1]).max()
        # (w h)^4 / 480 of a wave of 10 Hz and 1 ms is 3e-8; rounding of positions over h another 1e-12
        assert np.abs(richardson - rows[:, order + 1]).max() < 1e-6 * scale


@pytest.mark.parametrize("name", ["sines", "faded sines", "chirp", "exponential chirp"])
def test_runs_get_quintics_that_follow_the_waves(plans, name):
    plan = plans[name]
    times = inner_times(plan, 1e-3)
    exact = np.array([plan.exact.at(t) for t in times])
    for order, share in ((0, 1e-9), (1, 1e-8), (2, 1e-6)):  # quintics through knots 0.1 rad of the fastest wave apart
        off = plan.pieces.at(np.array(times), order) - exact[:, order]
        assert np.abs(off).max() < share * np.abs(exact[:, order]).max()


def test_laws_go_their_ways_at_rest_at_both_ends(plans):
    for name in ("quintic moves", "septic moves", "moves at constant speed", "trapezoid"):
        first, last = plans[name].at(0.0), plans[name].at(plans[name].end)
        assert last[0][0] - first[0][0] == pytest.approx(0.2, abs=1e-12)
        assert np.abs([first[1], last[1]]).max() < 1e-12
    jerk = plans["septic moves"].pieces.at(np.array([0.0, 0.5]), 3)
    assert np.abs(jerk).max() < 1e-9  # the quintic has 60 times the way over the cube of the time
    middle = plans["moves at constant speed"].at(0.25)
    assert middle[1][0] == pytest.approx(0.2 / 0.4) and middle[2][0] == pytest.approx(0, abs=1e-12)


def test_points_are_passed_at_their_times_and_blends_cut_corners(plans):
    through = np.array([[row.get(RIGHT, 2.1) for row in ROWS], [row[LEFT] for row in ROWS]])
    for name in ("positions", "spline"):
        times = TABLES[name]["times"]
        found = np.array([plans[name].at(t)[0] for t in times]).T
        assert found[::-1] == pytest.approx(through, abs=1e-12)
    assert np.abs(plans["spline"].at(0.4)[1]).max() > 0.05  # without a stop
    corner = plans["blend"].at(0.4)[0][0]
    assert 0.9 < corner < 1.0
    for order in range(5):  # the first four derivatives of the spline are continuous
        sides = [plans["spline"].pieces.at(0.4, order, behind=behind) for behind in (False, True)]
        assert sides[0] == pytest.approx(sides[1], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", OF_FRAMES)
def test_frames_go_where_they_should(robot, plans, name):
    plan = plans[name]
    rigid, near = robot, plan.start
    places = []
    for t in np.linspace(0, min(plan.end, END), 9):
        near = rigid.assemble(dict(zip(plan.motors, map(float, plan.at(t)[0]), strict=True)), near)
        places.append(parflex.Configuration(rigid, near).at.of(robot.tree.places["tip"])[1][:2])
    places = np.array(places)
    if "circle" in name:
        assert np.hypot(*(places - [0.05, 0.45]).T) == pytest.approx(0.05, abs=1e-9)
    elif "spline" in name:
        assert places[[0, -1]] == pytest.approx(np.array(POINTS)[[0, 2], :2], abs=1e-9)
    elif "waves" in name:
        phase = 2 * np.pi * np.linspace(0, 1, 9)
        assert places - places[0] == pytest.approx(
            np.array([0.03 * np.sin(phase), 0.02 * np.sin(2 * phase)]).T, abs=1e-8
        )
    else:  # on straight lines
        assert np.all(places[:, 0] <= 0.1 + 1e-9) and places[0] == pytest.approx([0, 0.4], abs=1e-9)


def test_a_motion_is_the_same_from_file_text_and_table(robot, plans, tmp_path):
    file = tmp_path / "swing.toml"
    file.write_text(f'moves = [{{ "{LEFT}" = 0.2 }}, {{ "{RIGHT}" = -0.1 }}]\nlaw = "septic"\nduration = 0.5\n')
    text = f'{{ moves = [{{ "{LEFT}" = 0.2 }}, {{ "{RIGHT}" = -0.1 }}], law = "septic", duration = 0.5 }}'
    for given in (str(file), text):
        pieces = motion_of(robot, given, Span(1.0)).pieces
        assert np.array_equal(pieces.coefficients, plans["septic moves"].pieces.coefficients)


def test_the_command_line_plans_and_writes_a_table(tmp_path, capsys):
    text = f'{{ moves = [{{ "{LEFT}" = 0.2 }}], law = "septic", duration = 0.5 }}'
    table = tmp_path / "swing.csv"
    cli.main(["motion", "5r", text, "--out", str(table), "--json"], standalone_mode=False)
    answer = json.loads(capsys.readouterr().out)
    assert answer["time"] == 0.5 and answer["rows"] == 501
    # the peak velocity of the septic is 35/16 ways a time
    assert answer["motors"][LEFT]["velocity"] == pytest.approx(0.2 / 0.5 * 35 / 16, rel=1e-6)
    assert motion_of(parflex.load("5r"), str(table), Span(0.5)).at(0.2)[0][0] > 0


def test_largest_values_are_those_of_the_motion_not_of_the_rows(capsys):
    text = f'{{ moves = [{{ "{LEFT}" = 0.2 }}, {{ "{RIGHT}" = -0.1 }}], law = "quintic", duration = 0.6 }}'
    cli.main(["motion", "5r", text, "--step", "0.5", "--json"], standalone_mode=False)
    motors = json.loads(capsys.readouterr().out)["motors"]
    for motor, way in ((LEFT, 0.2), (RIGHT, 0.1)):  # of a quintic: 15/8 ways a time, 10/sqrt(3) ways a time squared
        expected = {"way": way, "velocity": way / 0.6 * 15 / 8, "acceleration": way / 0.36 * 10 / np.sqrt(3)}
        assert motors[motor] == pytest.approx(expected, rel=1e-12)
    waves = f'{{ cosines = {{ "{LEFT}" = [0.1] }}, frequency = 1.0 }}'
    cli.main(["motion", "5r", waves, "--step", "0.7", "--time", "0.8", "--json"], standalone_mode=False)
    found, w = json.loads(capsys.readouterr().out)["motors"][LEFT], 2 * np.pi
    # quintics err by 2e-7 of the acceleration
    assert found == pytest.approx({"way": 0.2, "velocity": 0.1 * w, "acceleration": 0.1 * w**2}, rel=1e-6)


@pytest.mark.parametrize("planned", [None, 0.2, 2.0])
def test_a_plan_goes_on_as_its_table_does(robot, planned):
    closed = {"joints": [ROWS[0], ROWS[1], ROWS[0]], "times": [0, 0.5, 1.1], "law": "spline", "period": 1.5}
    swing = {"sines": {LEFT: [0.1]}, "duration": 1.0, "frequency": 1.0, "ramp": 0.2, "period": 1.25}
    for table, period in ((closed, 1.5), (swing, 1.25), (TABLES["sines"], 1 / 0.7)):
        plan = parflex.plan_motion(robot, table, planned)
        once, later = (np.array([plan.at(t + k * period) for t in (0.3, 0.62)]) for k in (0, 7))
        assert np.abs(once[:, 1]).max() > 0.01 and np.abs(once - later).max() < 1e-10  # of phases of 50 rad
        assert plan.table(0.3, 9.0)[LEFT][-1] == plan.at(9.0)[0][0]
        run = motion_of(robot, plan, Span(4.0)).given  # what simulate gets
        expected = motion_of(robot, table, Span(4.0)).given
        times = np.linspace(0, 4, 173)
        assert np.abs(run.at(times) - [plan.at(t)[0] for t in times]).max() < 1e-9
        for order in range(3):
            assert np.abs(run.at(times, order) - expected.at(times, order)).max() < 1e-5


def test_a_plan_without_an_end_is_not_asked_behind_what_was_planned(robot):
    endless = {"circle": {**AROUND, "turns": None}, "speed": 0.4, "ramp": 0.2}
    waves = {**TABLES["waves of a frame"], "duration": 3.0}
    still = [0.9, 2.2], [0.0, 0.0], [0.0, 0.0]
    for motion in (endless, waves, lambda t: still):
        plan = parflex.plan_motion(robot, motion, 0.5)
        plan.at(0.5)
        for ask in (plan.at, lambda t, p=plan: p.table(0.1, t), lambda t, p=plan: parflex.simulate(robot, p, t)):
            with pytest.raises(InputError, match=r"planned until t = 0\.5"):
                ask(0.7)
    assert parflex.plan_motion(robot, waves).end == 3.0


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
    "from one frequency to another": {"chirp": {LEFT: 0.1}, "frequencies": [1], "duration": 1},
    "'rihgt.1' is not an actuated joint": {"sines": {"rihgt.1": [0.1]}, "frequency": 1},
    "is not a direction of a frame": {"frame": "tip", "sines": {LEFT: [0.1]}, "frequency": 1},
    "no frame 'tpi'": {"frame": "tpi", "sines": {"x": [0.1]}, "frequency": 1},
    "a motion has one of": {"moves": [{LEFT: 0.1}], "joints": ROWS, "duration": 1},
    "no sweep 'up'": {"chirp": {LEFT: 0.1}, "frequencies": [1, 2], "duration": 1, "sweep": "up"},
    "needs an end": {"circle": {"centre": [0, 0.45, 0], "start": [0.1, 0.45, 0]}, "law": "septic", "duration": 1},
    "unknown key 'lwa'": {"moves": [{LEFT: 0.1}], "duration": 1, "lwa": "septic"},
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_a_bad_table_is_told_in_one_sentence(robot, message):
    with pytest.raises(InputError, match=message) as error:
        parflex.plan_motion(robot, BAD[message])
    assert error.value.hint and error.value.key
