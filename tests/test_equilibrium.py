"""Statics of flexible robots: closed forms of bars and frames, the elastica, an energy differentiated elsewhere."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
from support import bars
from support.oracles.beam_loops import BeamLoops

import parflex
from parflex import (
    Configuration,
    InputError,
    ParflexError,
    SingularError,
    deflection,
    equilibrium,
    linear_model,
    natural_frequencies,
)
from parflex.closure.reduction import reduction
from parflex.models.elastic.loads_at_rest import tangent_stiffness
from parflex.spatial.dual import Dual, slopes, small_steps

EI, EA, L = bars.EI, bars.EA, bars.LENGTH


def test_a_cantilever_sags_under_its_weight_and_under_a_load_as_the_closed_forms_say(tmp_path, figure):
    q = bars.WEIGHT * bars.G
    heavy = bars.cantilever(tmp_path, gravity=(0, -bars.G, 0), elements=3)
    sag = deflection(heavy, frames=["bar.tip"]).frames["bar.tip"]
    loaded = deflection(
        heavy, frames=["bar.tip"], about="undeformed", wrench={"bar.tip": [0, 7, 0, 0, 0, 2]}, without=["gravity"]
    )
    bent = loaded.frames["bar.tip"]
    # cubic elements with consistent loads are exact at their ends; what is left is rounding
    assert sag[1] == pytest.approx(-q * L**4 / (8 * EI), rel=1e-11)
    assert sag[5] == pytest.approx(-q * L**3 / (6 * EI), rel=1e-11)
    assert bent[1] == pytest.approx(7 * L**3 / (3 * EI) + 2 * L**2 / (2 * EI), rel=1e-11)
    assert bent[5] == pytest.approx(7 * L**2 / (2 * EI) + 2 * L / EI, rel=1e-11)
    figure("cantilever: sag under its weight over its closed form, less one", abs(sag[1] / (-q * L**4 / (8 * EI)) - 1))


def test_section_forces_of_a_heavy_cantilever_at_all_nodes(tmp_path):
    q, elements = bars.WEIGHT * bars.G, 4
    heavy = bars.cantilever(tmp_path, gravity=(0, -bars.G, 0), elements=elements)
    table = deflection(heavy, about="undeformed", wrench={"bar.tip": [30, 0, 0]}).sections
    assert len(table) == elements
    for k, entry in enumerate(table):
        for end, x in (("root", k * L / elements), ("tip", (k + 1) * L / elements)):
            assert entry[end]["N"] == pytest.approx(30, rel=1e-12)
            # what lies beyond the section pulls it down and turns it clockwise
            assert entry[end]["Vy"] == pytest.approx(-q * (L - x), rel=1e-12, abs=1e-12)
            assert entry[end]["Mz"] == pytest.approx(-q * (L - x) ** 2 / 2, rel=1e-12, abs=1e-12)
    assert table[0]["nodes"][1] == table[1]["nodes"][0]


def test_section_forces_and_deflections_in_space_have_the_signs_of_the_textbook(tmp_path):
    bar = bars.cantilever(tmp_path, motion="spatial", elements=2)
    force, moment = np.array([5.0, 2.0, -3.0]), np.array([0.4, 0.2, -0.1])
    found = deflection(bar, frames=["bar.tip"], about="undeformed", wrench={"bar.tip": [*force, *moment]})
    root = found.sections[0]["root"]
    at_root = moment + np.cross([L, 0, 0], force)
    expected = dict(zip(("N", "Vy", "Vz", "T", "My", "Mz"), [*force, *at_root], strict=True))
    assert root == pytest.approx(expected, rel=1e-12)  # rounding
    moved = found.frames["bar.tip"]
    torsion = bars.E / 2.6 * bars_torsion()
    assert moved[0] == pytest.approx(5 * L / EA, rel=1e-12)
    assert moved[1] == pytest.approx(2 * L**3 / (3 * EI) - 0.1 * L**2 / (2 * EI), rel=1e-10)
    other = bars.E * bars.IY
    assert moved[2] == pytest.approx(-3 * L**3 / (3 * other) - 0.2 * L**2 / (2 * other), rel=1e-10)
    assert moved[3] == pytest.approx(0.4 * L / torsion, rel=1e-5)


def bars_torsion() -> float:
    """Saint-Venant's constant of the section: a rectangle with sides 1 : 2, from tables of elasticity."""
    return 0.228682 * bars.Z * bars.Y**3  # six digits


def test_a_frame_of_two_beams_bends_as_the_unit_load_method_says(tmp_path):
    text = """
[[frame]]
name = "column"
place = { rotation = [0, 0, "pi/2"] }
beam = { length = 0.5, material = "steel", section = "bar" }
[[frame]]
name = "arm"
parent = "column.tip"
place = { rotation = [0, 0, "-pi/2"] }
beam = { length = 0.8, material = "steel", section = "bar" }
"""
    frame = bars.robot(tmp_path, text)
    F, H = 11.0, 0.5
    found = deflection(frame, frames=["arm.tip"], about="undeformed", wrench={"arm.tip": [0, -F, 0]})
    moved = found.frames["arm.tip"]
    down = F * L**3 / (3 * EI) + F * L**2 * H / EI + F * H / EA
    assert moved[1] == pytest.approx(-down, rel=1e-10)  # rounding
    assert moved[0] == pytest.approx(F * L * H**2 / (2 * EI), rel=1e-10)
    column = found.sections[0]
    assert column["root"]["N"] == pytest.approx(-F, rel=1e-12)
    assert column["root"]["Mz"] == pytest.approx(-F * L, rel=1e-12)
    assert column["tip"]["Mz"] == pytest.approx(-F * L, rel=1e-12)


def test_what_hangs_on_the_root_of_a_beam_is_not_in_its_section(tmp_path):
    text = bars.CANTILEVER.replace(
        'name = "bar"\n', 'name = "bar"\njoint = "revolute"\nactuated = true\ninertia = { M = 50 }\n'
    )
    text += '[[point]]\nname = "hook"\nframe = "bar"\nposition = [0, 0.1, 0]\n'
    heavy = bars.robot(tmp_path, text, gravity=(0, -bars.G, 0))
    found = deflection(heavy, about="undeformed", wrench={"hook": [0, -100, 0], "bar.tip": [0, -3, 0]})
    assert found.sections[0]["root"]["Vy"] == pytest.approx(-3 - bars.WEIGHT * L * bars.G, rel=1e-12)
    assert found.efforts["bar"] == pytest.approx(3 * L + bars.WEIGHT * L * bars.G * L / 2, rel=1e-12)


def test_a_long_way_down_is_the_elastica(tmp_path, figure):
    """A cantilever bent by more than a third of its length, against the differential equation of the elastica."""
    P = EI / L**2
    bar = bars.cantilever(tmp_path, elements=16)
    rest = equilibrium(bar, wrench={"bar.tip": [0, -P, 0]})
    _, tip = rest.configuration.at.of(bar.tree.places["bar.tip"])

    def slopes_of(_, y):
        return [y[1], -np.cos(y[0])]  # angle and curvature along the length, both in lengths of the bar

    def missing(k):
        return scipy.integrate.solve_ivp(slopes_of, (0, 1), [0, k], rtol=1e-10, atol=1e-12).y[1, -1]

    k = scipy.optimize.brentq(missing, 0, 2)
    way = scipy.integrate.solve_ivp(
        lambda s, y: [*slopes_of(s, y), np.cos(y[0]), np.sin(y[0])], (0, 1), [0, k, 0, 0], rtol=1e-10, atol=1e-12
    )
    expected = np.array([way.y[2, -1], -way.y[3, -1]]) * L
    error = np.abs(tip[:2] - expected).max() / L
    figure("elastica: tip of 16 elements over the length", float(error))
    # straight elements of 1/16 miss the shortening by their own bending, theta^2 / 2 per element, summed: 0.03 %
    assert error < 5e-4
    assert abs(tip[1]) > 0.3 * L


@pytest.mark.parametrize("angle", [0.0, 0.7, np.pi / 2])
def test_a_round_bar_in_space_bends_by_the_same_way_whichever_side_it_is_pushed(angle, tmp_path):
    text = bars.CANTILEVER.replace('section = "bar"', 'section = "rod"')
    text += '[sections.rod]\nshape = "circle"\ndiameter = 0.01\n'
    push, pull = 60.0, 90.0
    plane, space = (bars.robot(tmp_path, text, motion=motion, elements=4) for motion in ("planar", "spatial"))
    loads = {"bar.tip": [pull, push, 0]}
    expected = deflection(plane, frames=["bar.tip"], about="equilibrium", wrench=loads).frames["bar.tip"]
    turned = {"bar.tip": [pull, push * np.cos(angle), push * np.sin(angle)]}
    moved = deflection(space, frames=["bar.tip"], about="equilibrium", wrench=turned).frames["bar.tip"]
    across = np.array([np.cos(angle), np.sin(angle)])
    assert abs(expected[1]) > 0.05  # a sixteenth of the length: far from linear
    assert moved[0] == pytest.approx(expected[0], rel=1e-9)  # both end at rounding over the stiffness
    assert moved[1:3] == pytest.approx(expected[1] * across, rel=1e-9, abs=1e-12)
    assert moved[4:6] == pytest.approx(expected[5] * np.array([-across[1], across[0]]), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "conditions"),
    [("navaro", {}), ("gough-stewart", {"servo": 1e6}), ("space", {"servo": 1e5}), ("delta", {"servo": 1e4})],
)
def test_the_tangent_is_the_derivative_of_the_reduced_forces(name, conditions, figure):
    """Also in space, with quaternions, and with a moment that makes it unsymmetric; loops stay closed on the way."""
    robot = parflex.load(name)
    load = {robot.tree.end_effector: [5.0, -3.0, -8.0, 0.4, 0.8, -0.3]}
    rest = equilibrium(robot, wrench=load, **conditions)
    here, loading = rest.configuration, rest.loading
    K = tangent_stiffness(here, loading)
    held, part, h = here.robot, here.reduction.partition, 1e-5

    def forces(x: np.ndarray) -> np.ndarray:
        q = held.tree.moved(here.q, here.J @ x)
        q, _ = held.assembler.newton(q, part.dependent, list(held.closures.loops))
        there = Configuration(held, q)
        return reduction(there.closure_jacobian, part).forces(loading.forces(there))

    columns = range(0, len(K), max(1, len(K) // 12))
    units = held.tree.rate_units[part.independent]
    error = 0.0
    for k in columns:
        x = h * units[k] * np.eye(len(K))[k]
        slope = (forces(x) - forces(-x)) / (2 * h * units[k])
        error = max(error, float(np.abs(slope - K[:, k]).max() / np.abs(K).max()))
    figure(f"{name}: tangent against central differences", error)
    assert error < 1e-7  # steps of 1e-5: the third derivative counts 1e-10, rounding of the closures 1e-9


LOOP = """
[[frame]]
name = "left"
joint = "revolute"
start = 1.9
actuated = true
beam = { length = 0.3, material = "steel", section = "thin", elements = 1 }
[[frame]]
name = "left-arm"
parent = "left.tip"
joint = "revolute"
start = -1.1
spring = { stiffness = 10.0, rest = -1.0 }
beam = { length = 0.5, material = "steel", section = "thin", elements = 2 }
[[frame]]
name = "right"
joint = "revolute"
place = { position = [0.4, 0, 0] }
start = 1.1
actuated = true
beam = { length = 0.35, material = "steel", section = "thin", elements = 1 }
[[frame]]
name = "right-arm"
parent = "right.tip"
joint = "revolute"
start = 1.0
beam = { length = 0.45, material = "steel", section = "thin", elements = 1 }
[[closure]]
name = "top"
between = ["left-arm.tip", "right-arm.tip"]
joint = "revolute"
[sections.thin]
shape = "rectangle"
y = 0.003
z = 0.02
"""


def thin(length: float) -> tuple:
    """An element of the thin bars of the loop."""
    area = 0.003 * 0.02
    return "beam", length, bars.E * area, bars.E * 0.02 * 0.003**3 / 12, bars.DENSITY * area


@pytest.mark.few
@pytest.mark.parametrize("held", ["servo", "locked", "free"])
def test_equilibrium_and_tangent_are_those_of_an_energy_differentiated_elsewhere(tmp_path, held, figure):
    gravity, load = (1.0, -bars.G, 0), (6.0, -20.0) if held != "free" else (0.5, -2.0)
    spring = 10.0 if held != "free" else 80.0
    loop = bars.robot(tmp_path, LOOP.replace("stiffness = 10.0", f"stiffness = {spring}"), gravity=gravity)
    start = loop.home
    conditions = {
        "servo": {"servo": {"left": 300.0, "right": 200.0}},
        "locked": {},
        "free": {"servo": {"left": 300.0}, "lock": "none"},
    }[held]
    rest = equilibrium(loop, wrench={"left-arm.tip": [*load, 0]}, **conditions)
    names = list(loop.tree.position_names)
    stiff = {"servo": (300.0, 200.0), "locked": (1e14, 1e14), "free": (300.0, 0.0)}[held]
    values = {name: start[names.index(name)] for name in ("left", "right")}
    oracle = BeamLoops(
        [
            ((0, 0), [("joint", stiff[0], values["left"]), thin(0.3), ("joint", spring, -1.0), thin(0.25), thin(0.25)]),
            ((0.4, 0), [("joint", stiff[1], values["right"]), thin(0.35), ("joint", 0.0, 0.0), thin(0.45)]),
        ],
        True,
        gravity[:2],
        load,
    )
    x, lam = oracle.minimum(rest.configuration.q)
    assert (
        np.abs(rest.configuration.q - start).max() > 0.02
    )  # the loop gives way by more than the tangent alone can say
    # both solve to rounding of a system of condition 1e8; servos of 1e14 stand for locked motors to 1e-12
    assert np.abs(x - rest.configuration.q).max() < 1e-9
    J = rest.configuration.J
    expected = J.T @ oracle.second_derivative(x, lam) @ J
    K = tangent_stiffness(rest.configuration, rest.loading)
    error = float(np.abs(K - expected).max() / np.abs(expected).max())
    figure(f"tangent of a loop of beams, motors {held}: difference from the energy", error)
    assert error < 1e-9
    assert rest.configuration.closure_error < 1e-14  # rounding of lengths of a metre


def test_columns_with_the_strain_of_the_papers_buckle_late(tmp_path, figure):
    """With `axial = "linear"` two, four and eight elements buckle 28, 6 and 1 percent above Euler, one not at all."""
    euler = np.pi**2 * EI / (2 * L) ** 2
    text = bars.CANTILEVER.replace(" }", ', axial = "linear" }')
    found = {}
    for elements in (2, 4, 8):
        column = bars.robot(tmp_path, text, elements=elements)

        def lowest(share: float, column=column) -> float:
            model = linear_model(column, about="equilibrium", wrench={"bar.tip": [-share * euler, 0, 0]})
            return float(scipy.linalg.eigh(model.K, model.M, eigvals_only=True)[0])

        found[elements] = scipy.optimize.brentq(lowest, 0.5, 1.6, xtol=1e-4)
        figure(f"column of {elements} elements, linear strain: buckling load over Euler's", found[elements])
    assert [round(100 * (found[n] - 1)) for n in (2, 4, 8)] == [28, 6, 1]
    single = bars.robot(tmp_path, text)
    still, pressed = (
        natural_frequencies(single, modes=1, wrench=loads).frequencies[0]
        for loads in ({}, {"bar.tip": [-0.9 * euler, 0, 0]})
    )
    assert pressed == pytest.approx(still, rel=1e-3)  # only the shortening of the bar changes


def test_compression_lowers_the_frequency_as_the_beam_column_does(tmp_path, figure):
    """The square of the lowest frequency falls in a straight line to zero at the buckling load, but for 1 %."""
    euler = np.pi**2 * EI / (2 * L) ** 2
    column = bars.cantilever(tmp_path, elements=4)
    squares = [
        natural_frequencies(
            column, about="equilibrium", modes=1, wrench={"bar.tip": [-share * euler, 0, 0]}
        ).frequencies[0]
        ** 2
        for share in (-1.0, 0.0, 0.25, 0.5)
    ]
    assert squares[0] > squares[1] > squares[2] > squares[3]
    exact = [beam_column(share * np.pi**2 / 4) ** 2 for share in (-1.0, 0.0, 0.25, 0.5)]
    error = max(abs(a / b - 1) for a, b in zip(squares, exact, strict=True))
    figure("beam-column of four elements: squares of the frequency, relative", error)
    # the bar is shortened by 1e-4 at the load, and lower frequencies of four elements are 1e-5 high
    assert error < 4e-4


def beam_column(p: float) -> float:
    """Lowest frequency in Hz of a cantilever with the dead axial compression p EI / L^2, from the exact shapes."""

    def determinant(lam: float) -> float:
        b = lam**4
        s1, s2 = np.sqrt(-p / 2 + np.sqrt(p**2 / 4 + b)), np.sqrt(p / 2 + np.sqrt(p**2 / 4 + b))
        # w = A (cosh s1 x - cos s2 x) + B (sinh s1 x / s1 - sin s2 x / s2); w'' = 0 and w''' + p w' = 0 at the end
        ch, sh, c, s = np.cosh(s1), np.sinh(s1), np.cos(s2), np.sin(s2)
        rows = np.array(
            [
                [s1**2 * ch + s2**2 * c, s1 * sh + s2 * s],
                [s1**3 * sh - s2**3 * s + p * (s1 * sh + s2 * s), s1**2 * ch + s2**2 * c + p * (ch - c)],
            ]
        )
        return float(np.linalg.det(rows))

    grid = np.linspace(0.3, 4, 400)
    values = [determinant(lam) for lam in grid]
    k = next(k for k in range(len(grid) - 1) if values[k] * values[k + 1] < 0)
    return bars.bending(scipy.optimize.brentq(determinant, grid[k], grid[k + 1]))


def test_a_pendulum_comes_to_rest_hanging_and_swings_as_a_pendulum(tmp_path):
    text = """
[[frame]]
name = "arm"
joint = "revolute"
start = -1.1
inertia = { mass = 3, centre = [0.4, 0, 0], about_centre = [0, 0, 0.02] }
"""
    pendulum = bars.robot(tmp_path, text, gravity=(0, -bars.G, 0))
    rest = equilibrium(pendulum, lock="none")
    assert rest.configuration.q[0] == pytest.approx(-np.pi / 2, abs=1e-12)
    expected = np.sqrt(3 * bars.G * 0.4 / (0.02 + 3 * 0.16)) / (2 * np.pi)
    found = natural_frequencies(pendulum, lock="none", about="equilibrium")
    assert found.frequencies == pytest.approx([expected], rel=1e-12)  # rounding
    upside_down = natural_frequencies(pendulum, {"arm": 1.5}, lock="none", about="equilibrium", modes=None)
    assert upside_down.unstable_motions == ["arm"]
    assert len(upside_down.frequencies) == 0
    assert "not stable" in upside_down.model.warnings[0]


@pytest.mark.parametrize("name", ["3rrr", "delta", "gough-stewart"])
def test_motors_let_go_under_their_holding_efforts_do_not_move(name):
    """Efforts that servos of great stiffness hold are those of the inverse model at rest, and keep the robot there."""
    robot = parflex.load(name)
    soft, hard = (deflection(robot, servo=k, about="equilibrium").efforts for k in (1e8, 1e9))
    inverse = parflex.inverse_dynamics(robot).efforts
    stiff = {name: (10 * hard[name] - soft[name]) / 9 for name in inverse}
    # servos give way by up to a percent near a singular home; what is left is the square of it, a tenth
    assert stiff == pytest.approx(inverse, rel=1e-4, abs=1e-4)
    rest = equilibrium(robot, lock="none", effort=inverse)
    assert np.abs(rest.configuration.q - rest.start.q).max() < 1e-9  # rounding of the efforts over the stiffness


def test_locked_motors_of_a_robot_that_bends_hold_what_free_ones_need(tmp_path):
    loop = bars.robot(tmp_path, LOOP, gravity=(1.0, -bars.G, 0))
    load = {"left-arm.tip": [6.0, -20.0, 0]}
    rest = equilibrium(loop, wrench=load)
    efforts = deflection(loop, wrench=load, about="equilibrium").efforts
    again = equilibrium(loop, Configuration(loop, rest.configuration.q), lock="none", wrench=load, effort=efforts)
    assert np.abs(again.configuration.q - rest.configuration.q).max() < 1e-8  # rounding over the softest stiffness


def test_the_configuration_of_an_equilibrium_gives_positions_and_locks_no_motor_elsewhere(tmp_path):
    loop = bars.robot(tmp_path, LOOP, gravity=(1.0, -bars.G, 0))
    rest = equilibrium(loop)
    efforts = parflex.inverse_dynamics(loop, rest.configuration).efforts
    held = deflection(loop, about="equilibrium").efforts
    assert efforts.keys() == held.keys() and efforts
    assert efforts == pytest.approx(held, rel=1e-8)  # two ways to the same statics; the Newton iteration ends there
    fallen = parflex.forward_dynamics(loop, rest.configuration)
    assert np.array_equal(fallen.configuration.q, rest.configuration.q) and fallen.configuration.robot is loop
    assert np.abs(fallen.accelerations[list(loop.actuated)]).min() > 0.1  # nothing holds the motors
    with pytest.raises(InputError, match="other coordinates"):
        parflex.inverse_dynamics(parflex.load("four-bar"), rest.configuration)


def test_dual_numbers_follow_the_rules_of_calculus():
    x, y = small_steps(np.eye(2)) + np.array([0.7, 1.3])
    assert isinstance(x, Dual)
    value = np.sin(x) * np.cos(y) / np.sqrt(x * y) - 2 / y + (3 - x) * 0.5 - (-x) / 4
    slope = slopes([value, 1.0], 2)

    def plain(a, b):
        return np.sin(a) * np.cos(b) / np.sqrt(a * b) - 2 / b + (3 - a) * 0.5 + a / 4

    assert value.value == pytest.approx(plain(0.7, 1.3), rel=1e-15)
    h = 1e-6  # central differences: 1e-12 of the third derivative, 1e-10 of rounding
    assert slope[0, 0] == pytest.approx((plain(0.7 + h, 1.3) - plain(0.7 - h, 1.3)) / (2 * h), rel=1e-8)
    assert slope[0, 1] == pytest.approx((plain(0.7, 1.3 + h) - plain(0.7, 1.3 - h)) / (2 * h), rel=1e-8)
    assert not slope[1].any()


# -- what cannot be --------------------------------------------------------------------------------------------------


def refused(kind: type[ParflexError], call, *words: str) -> None:
    with pytest.raises(kind) as told:
        call()
    for word in words:
        assert word in str(told.value)
    assert told.value.hint


def test_bad_loads_and_efforts_are_refused_with_one_sentence(tmp_path):
    bar = bars.cantilever(tmp_path)
    refused(InputError, lambda: equilibrium(bar, wrench={"bar.tap": [0, 1, 0]}), "wrench", "bar.tap", "bar.tip")
    refused(InputError, lambda: equilibrium(bar, wrench={"bar.tip": [0, 1]}), "wrench", "fx,fy,mz")
    refused(InputError, lambda: equilibrium(bar, wrench={"bar.tip": [0, np.nan, 0]}), "wrench")
    loop = bars.robot(tmp_path, LOOP)
    refused(InputError, lambda: equilibrium(loop, effort={"left": 3.0}), "'left' is locked")
    refused(InputError, lambda: equilibrium(loop, without=["weight"]), "weight")


def test_an_equilibrium_that_is_not_there_is_refused_and_the_free_motion_named(tmp_path):
    loop = bars.robot(tmp_path, LOOP.replace("spring = { stiffness = 10.0, rest = -1.0 }", ""))
    refused(
        SingularError,
        lambda: equilibrium(loop, lock="none", wrench={"left-arm.tip": [3, 1, 0]}),
        "no equilibrium",
        "left",
    )
    slide = bars.robot(
        tmp_path,
        '[[frame]]\nname = "slide"\njoint = "prismatic"\nplace = { rotation = ["pi/2", 0, 0] }\ninertia = { M = 2 }\n',
    )
    refused(
        SingularError,
        lambda: equilibrium(slide, lock="none", wrench={"slide": [0, 1, 0]}),
        "nothing constrains 'slide'",
    )
    # nothing pushes it: it stays
    assert equilibrium(slide, lock="none").steps == 1


@pytest.mark.parametrize("load", [2.2, *(pytest.param(load, marks=pytest.mark.verify) for load in (1.03, 1.3))])
def test_a_column_beyond_what_its_element_carries_is_told_how_many_do(load, tmp_path):
    critical = np.pi**2 * EI / (4 * L**2)
    wrench = {"bar.tip": [-load * critical, 0.01 * critical, 0]}
    with pytest.raises(SingularError, match="no equilibrium") as caught:
        equilibrium(bars.cantilever(tmp_path, elements=1), wrench=wrench)
    said = re.search(
        r"use (\d+) elements for 'bar', of which one carries no more than about (\S+) N; or", caught.value.hint
    )
    # the cubic of one element carries 2.486 EI/L^2 instead of pi^2/4, less what it is bent by before
    assert float(said[2]) == pytest.approx(critical, rel=0.05)
    assert equilibrium(bars.cantilever(tmp_path, elements=int(said[1])), wrench=wrench).stable


@pytest.mark.verify
def test_an_equilibrium_that_is_not_there_is_given_up_soon(monkeypatch, figure):
    """The plate of Long2014 does not stand on locked motors; half the effort went into closing loops far away."""
    from parflex.closure import assembly

    poses, pose = [], assembly.pose
    monkeypatch.setattr(assembly, "pose", lambda *given: poses.append(1) or pose(*given))
    with pytest.raises(SingularError, match="no equilibrium"):
        parflex.equilibrium(parflex.load("gough-stewart-flexible"))
    figure("gough-stewart-flexible: poses tried before no equilibrium was found", len(poses), 4000)
    assert len(poses) < 4000  # a quarter of a second for a thousand; it was 11 800
