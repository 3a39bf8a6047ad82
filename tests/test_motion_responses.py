"""Responses over a motion: largest efforts, speeds and powers, and energy, against closed forms and reloaded robots."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.differences import extrapolated
from support.robots import load_robot

import parflex
from parflex import ParflexError
from parflex.description.motion_tables import MotionTable
from parflex.design.questions import read_question
from parflex.models.loading import redesigned
from parflex.simulation.motions.frame_courses import frame_course
from parflex.spatial import vector_from_rotation

LONG = [pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")]

MASS, ARM, INERTIA, GRAVITY = 2.0, 0.4, 0.05, 9.81
TURN, PULSE = 0.8, 2 * np.pi * 1.5  # of the swing: rad, rad/s


@pytest.fixture(scope="module")
def pendulum():
    return load_robot("motor-pendulum")


def swing(t, mass=MASS, arm=ARM):
    """Effort, speed and power of the swing, by Newton."""
    q, speed, push = TURN * np.sin(PULSE * t), TURN * PULSE * np.cos(PULSE * t), -TURN * PULSE**2 * np.sin(PULSE * t)
    effort = (INERTIA + mass * arm**2) * push + mass * GRAVITY * arm * np.cos(q)
    return np.abs([effort, speed, effort * speed])


def largest(row, **given):
    """The largest value of a row of the swing, by looking closer three times."""
    t, step = np.linspace(0, 2 / 1.5, 4001), 2 / 1.5 / 4000
    for _ in range(3):
        best = t[np.argmax(swing(t, **given)[row])]
        t, step = np.linspace(best - step, best + step, 401), step / 200
    return swing(t, **given)[row].max()  # 1e-16 of it beside the top


@pytest.mark.verify
def test_largest_values_on_the_way_and_energy_are_those_of_the_closed_form(pendulum):
    keys = ["constants.mass", "constants.arm"]
    for row, name in enumerate(("effort", "speed", "power")):
        found = parflex.sensitivities(pendulum, f"{name}:arm@swing", keys)
        assert found.value == pytest.approx(largest(row), rel=1e-10)
        for key, nominal in zip(keys, (MASS, ARM), strict=True):
            word = key.partition(".")[2]
            its = extrapolated(lambda h, w=word, x=nominal, r=row: largest(r, **{w: x * (1 + h)}), 2) / found.value
            # differences of fourth order with steps of 0.004
            assert found.sensitivities[key]["elasticity"] == pytest.approx(its, rel=1e-7, abs=1e-9)
    found = parflex.sensitivities(pendulum, "energy:swing", keys)
    assert found.unit == "J"
    assert found.value == pytest.approx(work(), rel=1e-10)
    for key, nominal in zip(keys, (MASS, ARM), strict=True):
        word = key.partition(".")[2]
        its = extrapolated(lambda h, w=word, x=nominal: work(**{w: x * (1 + h)}), 2, 0.002) / found.value
        assert found.sensitivities[key]["elasticity"] == pytest.approx(its, rel=1e-7)  # kinks: third order


def work(**given):
    """The integral of the power of the swing in size, by trapezoids: 1e-12 of it are missing at kinks."""
    t = np.linspace(0, 2 / 1.5, 1_000_001)
    return np.trapezoid(swing(t, **given)[2], t)


def test_the_largest_effort_of_a_trapezoid_is_beside_a_jump_of_its_acceleration(pendulum):
    push = 1.2 / 0.4 / 0.1  # full speed in 0.1 s
    q = np.array([0.0, push * 0.1**2 / 2, 1.2 - push * 0.1**2 / 2, 1.2])
    with_push = (INERTIA + MASS * ARM**2) * np.array([push, push, -push, -push]) + MASS * GRAVITY * ARM * np.cos(q)
    found = parflex.sensitivities(pendulum, "effort:arm@lift", ["constants.mass"])
    assert found.value == pytest.approx(np.abs(with_push).max(), rel=1e-12)
    assert found.value == pytest.approx(with_push[0], rel=1e-12)
    slope = ARM**2 * push + GRAVITY * ARM
    assert found.sensitivities["constants.mass"]["derivative"] == pytest.approx(slope, rel=1e-10)


def test_instants_that_reach_the_largest_value_together_are_active_together(pendulum):
    """The speed of a swing is largest each time that it passes the middle."""
    found = parflex.sensitivities(pendulum, "speed:arm@swing", ["constants.mass"])
    assert found.multiplicity == 5 and np.abs(found.directional["constants.mass"]).max() == 0


def test_where_dry_friction_jumps_the_largest_effort_is_its_limit():
    """It is just behind the instant at which the slider turns back, before which friction helps to stop it."""
    robot = load_robot("rubbing-slider")
    found = parflex.sensitivities(robot, "effort:slide@swing", ["constants.mass", "constants.rub"])
    push = 0.1 * (4 * np.pi) ** 2
    assert found.value == pytest.approx(2.0 * push + 3.0, rel=1e-10)
    assert found.sensitivities["constants.mass"]["derivative"] == pytest.approx(push, rel=1e-9)
    assert found.sensitivities["constants.rub"]["derivative"] == pytest.approx(1.0, rel=1e-9)
    energy = parflex.sensitivities(robot, "energy:swing", ["constants.rub"])
    # out, the motor brakes where inertia exceeds friction, from x0 on; back, both resist: twice both ways
    way, x0 = 0.1, 0.1 * 3.0 / (2.0 * push)
    out = 3.0 * x0 / 2 + (2.0 * push - 3.0) * (way - x0) / 2
    assert energy.value == pytest.approx(2 * (out + 3.0 * way + push * way), rel=1e-10)
    assert energy.sensitivities["constants.rub"]["derivative"] == pytest.approx(4 * x0, rel=1e-9)


def test_what_a_motion_asks_of_a_frame_is_known_at_any_instant():
    """Twists and accelerations of courses are derivatives of their places, by differences."""
    robot, h = parflex.load("rx90"), 1e-4
    p = [[0.5, 0.1, 0.3], [0.4, 0.3, 0.2], [0.3, 0.4, 0.4]]
    tables = [
        {"circle": {"centre": [0.4, 0.1, 0.3], "start": p[0], "turns": 1.5}, "speed": 0.5, "ramp": 0.2, "cone": 0.3},
        {"points": p, "law": "quintic", "duration": 0.7, "orientation": [[0, 1, 0], [0.3, 1, 0], [0, 0, 1]]},
        {"points": p, "law": "spline", "times": [0, 1, 1.5]},
        {"points": p, "law": "blend", "times": [0, 1, 1.5], "blend": 0.1},
        {"poses": [{"x": 0.5, "z": 0.4}, {"x": 0.45, "z": 0.3, "rx": 3.0}], "law": "septic", "duration": 0.8},
        {"frame": robot.tree.end_effector, "sines": {"x": [0.1]}, "frequency": 1.0, "duration": 2.0, "ramp": 0.3},
    ]
    for raw in tables:
        course = frame_course(robot, "go", MotionTable.model_validate(raw))
        for t in np.random.default_rng(3).uniform(0.05, 0.95, 4) * course.breaks[-1]:
            before, here, behind = (course.at(t + k * h)[0] for k in (-1, 0, 1))
            size = np.abs(here.acceleration).max()
            assert (behind.position - before.position) / (2 * h) == pytest.approx(here.twist[:3], abs=1e-5)
            second = (behind.position - 2 * here.position + before.position) / h**2
            assert second == pytest.approx(here.acceleration[:3], abs=1e-4 * max(size, 1.0))
            if here.rotation is not None:
                turned = vector_from_rotation(behind.rotation @ before.rotation.T) / (2 * h)
                assert turned == pytest.approx(here.twist[3:], abs=1e-5)
                change = (behind.twist[3:] - before.twist[3:]) / (2 * h)
                assert change == pytest.approx(here.acceleration[3:], abs=1e-4 * max(size, 1.0))


RUBBED = {"legs.frame.1.friction": {"coulomb": 2.0}, "legs.frame.2.friction": {"coulomb": 1.5}}


@pytest.mark.verify
@pytest.mark.parametrize(
    ("response", "settings"),
    [("energy:push", {}), *(pytest.param(*one, marks=LONG) for one in [
        ("power:@line", {}), ("energy:line", {}), ("effort:left.1@line", RUBBED), ("energy:line", RUBBED),
        ("power:@line", RUBBED)])],
)  # fmt: skip
def test_slopes_over_motions_are_those_of_reloaded_robots(response, settings):
    robot = load_robot("five-bar-motions", settings=settings)
    found = parflex.sensitivities(robot, response, ["constants.proximal"])
    nominal = robot.description.constants["proximal"]

    def changed(h):
        return read_question(response).asked(redesigned(robot, {"constants.proximal": nominal * (1 + h)})).answer

    long = response != "energy:push"
    its = extrapolated(changed, *((3, 0.002) if long else (1, 0.001))) / found.value
    # errors of second order: 1e-5; extrapolated twice 1e-10 (a dead point is near: steps of a percent leave 1e-7)
    assert found.sensitivities["constants.proximal"]["elasticity"] == pytest.approx(its, rel=1e-8 if long else 1e-5)


@pytest.mark.parametrize(
    ("response", "key", "says"),
    [
        ("effort:arm@swing", "constants.wide", "itself follows from 'constants.wide'"),
        ("speed:arm@swing", "motions.lift.ramp", None),
        ("speed:arm@lift", "motions.lift.ramp", "itself follows from 'motions.lift.ramp'"),
        ("power:arm@fast", "constants.mass", "takes another time in each design"),
        ("effort:arm@slow", "constants.mass", "no motion 'slow'"),
        ("effort:leg@swing", "constants.mass", "no motor 'leg'"),
    ],
)
def test_motions_that_change_with_the_key_have_no_slopes(pendulum, response, key, says):
    if says is None:
        assert parflex.sensitivities(pendulum, response, [key]).sensitivities[key]["derivative"] == 0
        return
    with pytest.raises(ParflexError, match=says):
        parflex.sensitivities(pendulum, response, [key])


def test_motions_whose_start_is_not_followed_are_refused():
    robot = load_robot("five-bar-motions")
    with pytest.raises(ParflexError, match="starts where home puts motors"):
        parflex.sensitivities(robot, "speed:left.1@there", ["constants.proximal"])
    given = {"velocity": {"x": 0.1}}
    with pytest.raises(ParflexError, match="says how the robot moves"):
        parflex.sensitivities(robot, "speed:left.1@line", ["constants.proximal"], **given)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_motions_without_an_end_are_refused():
    circle = {"centre": [0.0, 0.5, 0.0], "start": [0.05, 0.5, 0.0]}
    endless = {"frequency": 2.0, "sines": {"left.1": [0.1]}}
    motions = {"endless": endless, "round": {"circle": circle, "speed": 0.5, "ramp": 0.05}}
    robot = parflex.load("5r", settings={"motions": motions})
    for name in motions:
        says = "has no end; add turns = 1 to its circle" if name == "round" else "has no end; name one that ends"
        with pytest.raises(ParflexError, match=says):
            _ = read_question(f"energy:{name}").asked(robot).answer
