"""Trajectories as functions of time: laws against closed forms, operations on pieces, extremes, and wrong input."""

from functools import cache

import numpy as np
import pytest

import parflex
from parflex.trajectories import trajectory as functions
from parflex.trajectories.laws import Waves, blended, cruise, splined, unit_law
from parflex.trajectories.trajectory import Trajectory

LEFT, RIGHT = "left.1", "right.1"
HOME = {LEFT: 0.9, RIGHT: 2.2}


@cache
def robot():
    return parflex.load("5r")


def values(law, times, order=0):
    return law.value(np.asarray(times, dtype=float), order)[:, 0]


def parabola():
    """Two channels on two pieces: 1 - 0.6 t + t^2 until t = 1, then straight on; and the time."""
    rows = [[[1, 0], [-0.6, 1], [1, 0]], [[1.4, 1], [1.4, 1], [0, 0]]]
    return Trajectory(np.array([0.0, 1.0]), np.array(rows, dtype=float), (LEFT, RIGHT), "bent")


def test_laws_are_the_polynomials_of_the_textbook():
    time, u = 2.5, np.linspace(0, 1, 11)
    assert values(unit_law("quintic", time), u * time) == pytest.approx(10 * u**3 - 15 * u**4 + 6 * u**5, abs=1e-14)
    septic = 35 * u**4 - 84 * u**5 + 70 * u**6 - 20 * u**7
    assert values(unit_law("septic", time), u * time) == pytest.approx(septic, abs=1e-13)
    for law in ("quintic", "septic", "trapezoid", "constant-speed"):
        rests = unit_law(law, time, 0.4)
        assert [rests.value(9.0, order)[0] for order in range(3)] == pytest.approx([1, 0, 0], abs=1e-15)


@pytest.mark.parametrize(("ramp", "breaks"), [(0.0, 2), (0.3, 4), (1.0, 3)], ids=["none", "short", "half of the time"])
def test_the_trapezoid_is_that_of_its_speeds(ramp, breaks):
    law, time = unit_law("trapezoid", 2.0, ramp), 2.0
    t, top = np.linspace(0.01, 1.99, 41), 1 / (time - ramp)
    edges = np.minimum(np.minimum(t, time - t) / ramp, 1) if ramp else np.ones_like(t)
    assert values(law, t, 1) == pytest.approx(top * edges, abs=1e-14)
    assert values(law, [0, 1, 2]) == pytest.approx([0, 0.5, 1], abs=1e-15) and len(law.breaks) == breaks


def test_speeds_at_constant_speed_rise_by_smooth_steps():
    law, ramp = unit_law("constant-speed", 2.0, 0.5), 0.5
    u = np.linspace(0, 1, 9)
    step = (10 * u**3 - 15 * u**4 + 6 * u**5) / 1.5
    assert values(law, u * ramp, 1) == pytest.approx(step, abs=1e-14)
    assert values(law, 2.0 - u * ramp, 1) == pytest.approx(step, abs=1e-13)
    endless = cruise(0.3, ramp)
    assert values(endless, [0.5, 100.5]) == pytest.approx(
        [0.3 * 0.25, 0.3 * 100.25], rel=1e-14
    )  # half the ramp is lost
    assert values(endless, [0.0, 7.0], 1) == pytest.approx([0, 0.3], abs=1e-15)


def test_a_mean_of_a_ramp_is_the_closed_form():
    law, width = unit_law("trapezoid", 1.0), 0.2  # straight from 0 to 1
    t = np.array([0.05, 0.2, 0.5, 1.0, 1.1, 1.2])
    mean = np.where(t < width, t**2 / (2 * width), t - width / 2)
    mean = np.where(t > 1, 1 - (1 + width - t) ** 2 / (2 * width), mean)
    assert values(law.averaged(width), t) == pytest.approx(mean, abs=1e-14)


def test_splines_rest_at_both_ends_and_blends_keep_speeds_away_from_corners():
    times, rows = np.array([0.0, 1.0, 3.0]), np.array([[0.0], [1.0], [-1.0]])
    spline = splined(times, rows)
    assert values(spline, times) == pytest.approx(rows[:, 0], abs=1e-14)
    assert [spline.value(t, order)[0] for t in (0.0, 3.0) for order in (1, 2)] == pytest.approx([0] * 4, abs=1e-12)
    blend = blended(times, rows, 0.2, "motions.m.blend")
    # the first and last corner lie 0.2 s inside
    assert values(blend, [0.6, 2.0], 1) == pytest.approx([1 / 0.8, -2 / 1.8], rel=1e-12)
    assert values(blend, [0.0, 3.0]) == pytest.approx([0, -1], abs=1e-14)
    with pytest.raises(parflex.InputError, match=r"blends of 0\.6 s overlap between the times 0 and 1 s") as refusal:
        blended(times, rows, 0.6, "motions.m.blend")
    assert refusal.value.key == "motions.m.blend"


def chirp(sweep, ends, duration=2.0, ramp=0.0):
    return Waves(np.array([0.1]), np.array(ends), np.array([[0.3]]), np.zeros((1, 1)), duration, ramp, sweep)


@pytest.mark.parametrize(("sweep", "ends"), [("linear", (1.0, 4.0)), ("exponential", (1.0, 4.0)),
                                             ("exponential", (2.0, 2.0))])  # fmt: skip
def test_the_phase_of_a_chirp_is_the_integral_of_its_frequency(sweep, ends):
    t = np.linspace(0, 2, 20_001)
    share = t / 2
    w = (
        2
        * np.pi
        * (ends[0] + share * (ends[1] - ends[0]) if sweep == "linear" else ends[0] * (ends[1] / ends[0]) ** share)
    )
    phase = np.concatenate([[0], np.cumsum((w[1:] + w[:-1]) / 2 * np.diff(t))])
    value, rate, _ = chirp(sweep, ends).at(t)
    assert value[:, 0] == pytest.approx(0.1 + 0.3 * np.sin(phase), abs=1e-6)  # of the trapezoidal sum
    assert rate[:, 0] == pytest.approx(0.3 * w * np.cos(phase), abs=3e-5)
    assert [part[0] for part in chirp(sweep, ends).at(5.0)] == pytest.approx([value[-1, 0], 0, 0])  # at rest behind


def test_fading_waves_multiplies_them_by_smooth_steps_at_both_ends():
    plain, faded = chirp("linear", (1.0, 4.0)), chirp("linear", (1.0, 4.0), ramp=0.5)
    for t, share in ((0.25, 0.5), (1.0, 1.0), (1.75, 0.5)):
        assert faded.at(t)[0] - 0.1 == pytest.approx(share * (plain.at(t)[0] - 0.1), abs=1e-14)
    assert list(faded.smooth_until(1.0)) == [0.0, 0.5, 1.0] and list(faded.smooth_until(2.0)) == [0.0, 0.5, 1.5, 2.0]
    endless = Waves(np.zeros(1), np.array([1.0]), np.ones((1, 1)), np.zeros((1, 1)), np.inf, 0.5, "")
    assert endless.at(0.25)[0] == pytest.approx([0.5 * np.sin(np.pi / 2)]) and endless.at(7.25)[0] == pytest.approx(
        [1.0]
    )
    with pytest.raises(parflex.InputError, match=r"would have 8e\+06 knots"):
        endless.quintics(1e5)


def test_a_function_of_the_way_follows_its_law_lap_after_lap():
    places = np.linspace(0, 2 * np.pi, 200)
    turn = np.stack([np.sin(places), places], axis=1)
    slopes = np.stack([np.cos(places), np.ones_like(places)], axis=1), np.stack([-np.sin(places), 0 * places], axis=1)
    along, law = functions.hermite(places, turn, *slopes), cruise(3.0, 0.5)
    motion = functions.composed(along, law, 5.0, 2 * np.pi)
    for t in (0.3, 2.0, 4.9):  # the last in the third lap
        s, v = values(law, [t])[0], values(law, [t], 1)[0]
        assert motion.value(t) == pytest.approx([np.sin(s), s], abs=1e-9)
        assert motion.value(t, 1) == pytest.approx([np.cos(s) * v, v], abs=1e-7)


def test_parts_are_joined_cut_and_put_side_by_side():
    first, second = parabola(), Trajectory(np.array([2.0]), np.array([[[5.0, 6.0]]]))
    whole = functions.joined([first, second])
    t = np.array([-1.0, 0.5, 1.5, 3.0])
    assert whole.value(t)[:, 0] == pytest.approx([2.6, 0.95, 2.1, 5.0])  # the outer pieces go on
    late = functions.joined([Trajectory(np.array([1.0]), np.array([[[2.0], [1.0]]])), second.selected([0])])
    assert values(late, [0.5, 1.5, 2.5]) == pytest.approx([2.0, 2.5, 5.0])  # its first value is held before it begins
    assert whole.cut(np.array([0.3, 0.9])).value(0.6) == pytest.approx(first.value(0.6))
    beside = first.beside(second.selected([1]))
    assert beside.names == (LEFT, RIGHT) and beside.value(2.5) == pytest.approx([3.5, 2.5, 6.0])
    assert beside.powers == 3 and beside.channels == 3
    assert first.selected([1]).names == (RIGHT,) and first.selected([1]).value(0.7) == pytest.approx([0.7])
    assert list(first.between(0.2, 0.8).breaks) == [0.0] and list(first.between(1.0, 3.0).breaks) == [1.0]


def test_jumps_are_seen_from_both_sides_and_rounding_is_none():
    bent = parabola()
    assert not len(bent.jumps(0)[0]) and not len(bent.jumps(1)[0]) and not len(bent.jumps(5)[0])
    times, sizes = bent.jumps(2)
    assert list(times) == [1.0] and sizes[0] == pytest.approx([-2.0, 0.0])
    assert [bent.value(1.0, 2, behind)[0] for behind in (False, True)] == [2.0, 0.0]
    step = functions.linear([0.0, 1.0, 1.0, 2.0], [[0.0], [1.0], [5.0], [5.0]])
    assert [step.value(1.0, 0, behind)[0] for behind in (False, True)] == [1.0, 5.0]
    assert values(step, [-3.0, 0.5, 9.0]) == pytest.approx([0.0, 0.5, 5.0])


def test_a_repeated_motion_goes_on_in_laps_and_rests_at_their_end():
    law = unit_law("quintic", 1.0)
    back = functions.joined([law, law.scaled(1.0, np.ones(1), -np.ones(1))])
    swing = Trajectory(back.breaks, back.coefficients, (LEFT,), period=2.5)
    assert swing.end == np.inf and len(swing.at(0.0)) == 3
    t = np.linspace(0, 9, 91)
    assert swing.at(t)[0] == pytest.approx(back.value(np.fmod(t, 2.5)))
    assert swing.until(9.0).value(t) == pytest.approx(swing.at(t)[0], abs=1e-14)
    assert swing.until(9.0).value(50.0)[0] == 0.0  # behind four laps
    before = swing.at(-1.0)
    assert [part[0] for part in before] == [0.0, 0.0, 0.0]
    table = swing.table(0.5)
    assert list(table) == ["t", LEFT, f"{LEFT}.velocity", f"{LEFT}.acceleration"] and table["t"][-1] == 2.5


def test_extremes_are_those_of_calculus():
    bent = parabola()
    lowest, when = bent.extremes(3.0, 0)
    assert lowest == pytest.approx(np.array([[0.91, 0.0], [4.2, 3.0]])) and when[0, 0] == pytest.approx(0.3)
    way, velocity, acceleration = bent.largest_values(3.0)
    assert (way[0], velocity[0], acceleration[0]) == pytest.approx((3.29, 1.4, 2.0))
    sine = chirp("exponential", (2.0, 2.0)).quintics(2.0)
    assert sine.largest_values(2.0)[1] == pytest.approx([0.3 * 4 * np.pi], rel=1e-9)
    limited = parflex.load("5r", settings={"legs.frame.1.limits": [0.93, 4.5]})
    (violation,) = bent.violations(limited, 2.0)[:1]
    assert violation.joint == LEFT and (violation.time, violation.value) == pytest.approx((0.3, 0.91))


def test_tables_and_plans_without_an_end_need_a_time():
    endless = parflex.plan_motion(robot(), {"sines": {LEFT: [0.1]}, "frequency": 1.0})
    with pytest.raises(parflex.InputError, match="has no end") as refusal:
        endless.table()
    assert refusal.value.key == "time"
    with pytest.raises(parflex.InputError, match=r"would have 1e\+12 rows"):
        endless.table(1e-12, 1.0)
    for time in (0.0, 1e5, -1.0):
        with pytest.raises(parflex.InputError, match="'time' is not a positive number"):
            parflex.plan_motion(robot(), {"sines": {LEFT: [0.1]}, "frequency": 1.0}, time)


def knots(**more):
    return {"t": [0.0, 0.5, 1.0], LEFT: [0.9, 1.0, 1.1], RIGHT: [2.2, 2.1, 2.2]} | more


def still(_t):
    return [0.9, 2.2], [0.0, 0.0], [0.0, 0.0]


MOVE = {"moves": [{LEFT: 0.1}], "law": "quintic", "duration": 0.5}
WRONG = {
    f"column '{RIGHT}' is missing": {"t": [0.0, 1.0], LEFT: [0.9, 1.0]},
    "'t' does not increase from 0": knots(t=[0.0, 0.7, 0.6]),
    "not all numbers are finite": knots(**{LEFT: [0.9, np.nan, 1.0]}),
    "velocity jumps twice about t = 0.5 s": knots(t=[0.0, 0.5, 0.5]),
    "a function of time has no end": still,
    "the robot has no motion 'waltz'": "waltz",
    "there is no frame 'tpi'": "{ frame = 'tpi', sines = { x = [0.1] }, frequency = 1 }",
    "'effort_limit' has no effect": (MOVE, {"effort_limit": 2.0}),
    "ends where it began": MOVE | {"period": 1.0},
    "within the period": {"joints": [HOME, HOME], "times": [0, 2], "law": "quintic", "period": 1.0},
}


@pytest.mark.parametrize("message", WRONG)
def test_motions_that_no_plan_can_be_are_refused(message):
    motion, limits = WRONG[message] if isinstance(WRONG[message], tuple) else (WRONG[message], {})
    with pytest.raises(parflex.InputError, match=message) as refusal:
        parflex.plan_motion(robot(), motion, **limits)
    assert refusal.value.key and refusal.value.hint


def test_functions_that_are_no_motions_or_inputs_are_refused():
    cases = [
        (lambda: parflex.plan_motion(robot(), lambda t: [0.9, 2.2], 0.1), "three lists of 2", "motion"),
        (
            lambda: parflex.simulate(robot(), None, 0.01, effort={LEFT: ([0.0, 1.0], [1.0])}),
            "f(t), or",
            f"effort.{LEFT}",
        ),
        (lambda: parflex.simulate(robot(), None, 0.01, effort=([0.0, np.nan], np.zeros((2, 2)))), "f(t), or", "effort"),
        (lambda: parflex.simulate(robot(), None, 0.01, wrench={"tip": lambda: 1}), "f(t), or", "wrench.tip"),
        (lambda: parflex.simulate(robot(), None, 0.01, effort=lambda t: [1.0]), "motors", "effort"),
        (lambda: parflex.simulate(robot(), "waltz", 0.01, drive="platform"), "poses", "motion"),
        (lambda: parflex.simulate(robot(), MOVE, 0.01, drive="platform"), "poses", "motion"),
    ]
    for ask, hint, key in cases:
        with pytest.raises(parflex.InputError) as refusal:
            ask()
        assert refusal.value.key == key and hint in refusal.value.hint


LINE = {"points": [[0.0, 0.4, 0], [0.1, 0.45, 0]], "law": "quintic", "duration": 0.4}
ROUND = {"law": "quintic", "duration": 1.0}
PATHS = {
    "a path needs two points": LINE | {"points": [[0.0, 0.4, 0]]},
    "two points of the path are the same": LINE | {"points": [[0.0, 0.4, 0], [0.0, 0.4, 0]]},
    "not on a circle": ROUND | {"circle": {"centre": [0, 0.4, 0], "start": [0.1, 0.4, 0.1], "turns": 1}},
    "there are 3 vectors for 2 points": LINE | {"direction": [[0, 0, 1]] * 3},
    "begins along the z axis": LINE | {"points": [[0, 0.4, 0], [0, 0.4, 0.1]], "orientation": "tangent"},
    "waves of the frame would have": {"frame": "tip", "sines": {"x": [1e-9]}, "frequency": 9e4, "duration": 1.0},
}


@pytest.mark.parametrize("message", PATHS)
def test_paths_that_no_frame_can_follow_are_refused(message):
    with pytest.raises(parflex.InputError, match=message) as refusal:
        parflex.plan_motion(robot(), PATHS[message], 0.5)
    assert refusal.value.key.startswith("motions.given") and refusal.value.hint
