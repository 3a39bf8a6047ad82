"""Statics of flexible robots: closed forms of bars and frames, the elastica, an energy differentiated elsewhere."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from support import bars, command_line
from support.comparison import stiffness_error
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.led_records import changed
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file, write_robot
from support.variants import toml_text

import parflex
from parflex import Configuration, InputError, SingularError, deflection, equilibrium, linear_model, natural_frequencies

EI, EA, L = bars.EI, bars.EA, bars.LENGTH


def test_a_frame_of_two_beams_bends_as_by_the_unit_load_method(tmp_path):
    frame = load_robot("corner-of-bars")
    F, H = 11.0, 0.5
    result = deflection(frame, frames=["arm.tip"], about="undeformed", wrench={"arm.tip": [0, -F, 0]})
    moved = result.frames["arm.tip"]
    down = F * L**3 / (3 * EI) + F * L**2 * H / EI + F * H / EA
    assert moved[1] == pytest.approx(-down, rel=1e-10)  # rounding
    assert moved[0] == pytest.approx(F * L * H**2 / (2 * EI), rel=1e-10)
    column = result.sections[0]
    assert column["root"]["N"] == pytest.approx(-F, rel=1e-12)
    assert column["root"]["Mz"] == pytest.approx(-F * L, rel=1e-12)
    assert column["tip"]["Mz"] == pytest.approx(-F * L, rel=1e-12)


def test_a_large_deflection_is_the_elastica(tmp_path, figure):
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
def test_a_round_bar_bends_equally_in_all_directions_of_the_force(angle, tmp_path):
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
    robot = parflex.load(name)
    load = {robot.tree.end_effector: [5.0, -3.0, -8.0, 0.4, 0.8, -0.3]}
    rest = equilibrium(robot, wrench=load, **conditions)
    here, h = rest.configuration, 1e-5
    K = linear_model(robot, wrench=load, about="equilibrium", **conditions).K
    held, part = here.robot, here.reduction.partition

    def forces(x: np.ndarray) -> np.ndarray:
        q = held.tree.moved(here.q, here.J @ x)
        q, _ = held.assembler.newton(q, part.dependent, list(held.closures.loops))
        there = Configuration(held, q)
        return there.J.T @ rest.loading.forces(there)

    columns = range(0, len(K), max(1, len(K) // 12))
    units = held.tree.rate_units[part.independent]
    error = 0.0
    for k in columns:
        x = h * units[k] * np.eye(len(K))[k]
        slope = (forces(x) - forces(-x)) / (2 * h * units[k])
        error = max(error, float(np.abs(slope - K[:, k]).max() / np.abs(K).max()))
    figure(f"{name}: tangent against central differences", error)
    assert error < 1e-7  # steps of 1e-5: the third derivative counts 1e-10, rounding of the closures 1e-9


@pytest.mark.few
@pytest.mark.parametrize("held", ["servo", "locked", "free"])
def test_equilibrium_and_tangent_are_those_of_an_energy_differentiated_elsewhere(held, figure):
    load = (6.0, -20.0, 0.0) if held != "free" else (0.5, -2.0, 0.0)
    spring = 10.0 if held != "free" else 80.0
    loop = load_robot("loop-of-thin-bars", settings={"frame.left-arm.spring.stiffness": spring})
    data = changed(read_robot(robot_file("loop-of-thin-bars")), "left-arm", stiffness=spring)
    servo = {"servo": {"left": 300.0, "right": 200.0}, "locked": {}, "free": {"left": 300.0}}[held]
    conditions = {"servo": servo, "lock": "none" if held == "free" else "actuators"}
    wrench = {"left-arm.tip": [*load[:2], 0]}
    model = linear_model(loop, wrench=wrench, about="equilibrium", **conditions)
    assert np.abs(model.configuration.q - loop.home).max() > 0.02  # more than the tangent alone can say
    assert model.configuration.closure_error < 1e-14  # rounding of lengths of a metre
    servos = {name: (stiff, loop.home[loop.coordinates.index(name)]) for name, stiff in servo.items()}
    error = stiffness_error(model, FlexibleEnergyModel(data), pulls={"left-arm.tip": load}, servos=servos)
    figure.below(f"tangent of a loop of beams, motors {held}: difference from the energy", error, 1e-9)


def test_a_pendulum_comes_to_rest_hanging_and_swings_as_a_pendulum(tmp_path):
    pendulum = load_robot("hanging-arm")
    rest = equilibrium(pendulum, {"arm": -0.1}, lock="none")
    assert rest.configuration.q[0] == pytest.approx(-np.pi / 2, abs=1e-12)
    expected = np.sqrt(3 * bars.G * 0.4 / (0.02 + 3 * 0.16)) / (2 * np.pi)
    result = natural_frequencies(pendulum, {"arm": -0.1}, lock="none", about="equilibrium")
    assert result.frequencies == pytest.approx([expected], rel=1e-12)  # rounding
    for start, word in ((0.0, "nothing constrains 'arm'"), (1.5, "'arm' is unstable at this pose")):
        refused(SingularError, lambda start=start: equilibrium(pendulum, {"arm": start}, lock="none"), word, "start")
    upside_down = natural_frequencies(pendulum, {"arm": np.pi / 2}, lock="none", about="equilibrium", modes=None)
    assert upside_down.unstable_motions == ["arm"]
    assert len(upside_down.frequencies) == 0
    assert "not stable" in upside_down.model.warnings[0]


def test_locked_motors_of_a_robot_that_bends_hold_what_free_ones_need():
    loop, load = load_robot("loop-of-thin-bars"), {"left-arm.tip": [6.0, -20.0, 0]}
    rest = equilibrium(loop, wrench=load)
    efforts = deflection(loop, wrench=load, about="equilibrium").efforts
    again = equilibrium(loop, Configuration(loop, rest.configuration.q), lock="none", wrench=load, effort=efforts)
    assert np.abs(again.configuration.q - rest.configuration.q).max() < 1e-8  # rounding over the softest stiffness
    inverse = parflex.inverse_dynamics(loop, rest.configuration, wrench=load).efforts
    assert inverse == pytest.approx(efforts, rel=1e-8)  # the same statics; the Newton iteration ends there
    fallen = parflex.forward_dynamics(loop, rest.configuration, wrench=load)
    assert np.array_equal(fallen.configuration.q, rest.configuration.q) and fallen.configuration.robot is loop
    assert np.abs(fallen.accelerations[list(loop.actuated)]).min() > 0.1  # nothing holds the motors
    with pytest.raises(InputError, match="other coordinates"):
        parflex.inverse_dynamics(parflex.load("four-bar"), rest.configuration)


# -- what cannot be --------------------------------------------------------------------------------------------------


def refused(kind: type[parflex.ParflexError], call, *words: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint


def test_an_equilibrium_that_is_not_there_is_refused_and_the_free_motion_named(tmp_path):
    loop = load_robot("loop-of-thin-bars", settings={"gravity": [0, 0, 0], "frame.left-arm.spring": None})
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
def test_an_overloaded_element_is_refused_with_the_number_of_elements_that_suffices(load, tmp_path):
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


# -- deflections to first order -------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [0.09, 0.11])
def test_rotations_beyond_a_tenth_warn_that_first_order_does_not_hold(tmp_path, turn):
    gravity = 6 * bars.EI * turn / (bars.WEIGHT * bars.LENGTH**3)
    result = parflex.deflection(bars.cantilever(tmp_path, (0, -gravity, 0), elements=4), frames=["bar.tip"])
    assert abs(result.frames["bar.tip"][5]) == pytest.approx(turn, rel=1e-9)
    said = [text for text in result.warnings if "about='equilibrium'" in text]
    assert len(said) == (turn > 0.1)
    assert all(f"{turn:.2g} rad" in text for text in said)


# -- loads that have no effect, and loads of planar robots ----------------------------------------------------------


def test_a_load_that_would_change_nothing_is_refused(capsys):
    load = ("--load", "platform:0,0,-2000")
    error = command_line.refused(capsys, "frequencies", "navaro", "--about", "undeformed", *load)
    assert error["key"] == "about"
    error = command_line.refused(capsys, "frequencies", "navaro", "--wrench", "platform=0,0,1", *load)
    assert "given twice" in error["message"]
    robot = parflex.load("dualemps")
    for call in (parflex.natural_frequencies, parflex.cartesian_stiffness):
        with pytest.raises(InputError, match="have no effect"):
            call(robot, about="undeformed", wrench={"17": [1.0, 0.0, 0.0]})
    first = parflex.deflection(robot, about="undeformed", wrench={"17": [1.0, 0.0, 0.0]})  # to first order
    assert np.abs(first.frames["17"]).max() > 0


@pytest.mark.parametrize("load", [[0.0, -5.0, 2.0], [0.0, -5.0, 0.0, 0.0, 0.0, 2.0]], ids=["three", "six"])
def test_three_numbers_on_a_planar_robot_are_a_force_and_a_moment_in_its_plane(load):
    robot = parflex.load("3rrr")
    free, loaded = (
        np.array(list(parflex.inverse_dynamics(robot, wrench=wrenches).efforts.values()))
        for wrenches in ({}, {"platform": load})
    )
    J = parflex.jacobian(robot)[[0, 1, 5]]  # of the platform per motor rate
    assert loaded - free == pytest.approx(-J.T @ [0.0, -5.0, 2.0], rel=1e-9)  # virtual powers


def test_loads_and_efforts_that_cannot_act_are_refused(tmp_path):
    bar, loop, across = bars.cantilever(tmp_path), load_robot("loop-of-thin-bars"), {"platform": [0, 0, 5, 0, 0, 0]}
    for call, words in (
        (lambda: equilibrium(bar, wrench={"bar.tap": [0, 1, 0]}), "bar.tap"),
        (lambda: equilibrium(bar, wrench={"bar.tip": [0, 1]}), "fx,fy,mz"),
        (lambda: equilibrium(bar, wrench={"bar.tip": [0, np.nan, 0]}), "wrench"),
        (lambda: equilibrium(loop, effort={"left": 3.0}), "'left' is locked"),
        (lambda: equilibrium(loop, without=["weight"]), "weight"),
        (lambda: parflex.inverse_dynamics(parflex.load("3rrr"), wrench=across), "do not act on a planar robot"),
        (lambda: parflex.simulate(parflex.load("3rrr"), None, 0.01, wrench=across), "do not act on a planar robot"),
        (lambda: parflex.simulate(parflex.load("gough-stewart"), None, 0.01, effort=[1.0, 2.0]), "6 numbers"),
    ):
        refused(InputError, call, words)


# -- loads that grow -----------------------------------------------------------------------------------------------


def test_an_arm_that_its_weight_pulls_far_down_comes_to_rest_where_its_spring_holds_it():
    rest = parflex.equilibrium(load_robot("arm-behind-spring"))
    own = scipy.optimize.brentq(lambda sag: 15.0 * sag + 2.0 * 9.81 * np.cos(1.0 + sag), -2.0, 0.0, xtol=1e-14)
    assert rest.configuration.q[1] == pytest.approx(own, abs=1e-10)  # rounding over the stiffness
    assert rest.stable


@pytest.mark.parametrize("times", [0.9, 1.1, 60.0])  # of the limit load
def test_a_truss_carries_its_limit_load_and_no_more(times):
    height = np.linspace(0.0, 0.05, 100001)
    pull = 1000 * (np.hypot(1, 0.05) / np.hypot(1, height) - 1) * height
    force = times * pull.max()

    def left(z: float) -> float:
        return 1000 * (np.hypot(1, 0.05) / np.hypot(1, z) - 1) * z - force

    truss, load = load_robot("truss"), {"roof": [0, 0, -force]}
    if times < 1.0:
        own = scipy.optimize.brentq(left, height[pull.argmax()], 0.05, xtol=1e-14)
        bent = parflex.deflection(truss, {"lift": 0.0}, wrench=load)
        assert bent.frames["roof"][2] == pytest.approx(own - 0.05, abs=1e-9)
        return
    with pytest.raises(SingularError, match="'roof' becomes unstable") as caught:
        parflex.deflection(truss, {"lift": 0.0}, wrench=load)
    reached = float(re.search(r"at (\S+) % of them", str(caught.value))[1])
    assert reached == pytest.approx(100 / times, rel=2e-2)  # arcs across a limit point are not shorter


@pytest.mark.verify
def test_a_column_that_leans_buckles_to_the_side_it_leans_to():
    buckling = np.pi**2 * 210e9 * 0.03 * 0.004**3 / 12 / 4 / 0.8**2
    column = load_robot("rod-on-motor")
    rest = parflex.equilibrium(column, {"turn": np.pi / 2 + 0.02}, wrench={"rod.tip": [0, -1.2 * buckling, 0]})
    tip = rest.configuration.at.of(column.tree.places["rod.tip"])[1]
    assert rest.stable and tip[0] < -0.25


# -- random mechanisms -----------------------------------------------------------------------------------


@pytest.mark.few
@pytest.mark.parametrize("lean", [3e-2, 1e-3, -1e-4])
def test_a_column_that_leans_little_bends_far_beyond_its_critical_load(lean, tmp_path):
    """Three bars on springs, the stiffest at the foot; its own potential over absolute angles, loads grown."""
    k, load, n = np.array([60.0, 30.0, 30.0]), 21.0, 3  # the load is 1.3 times that at which a straight one buckles
    begun = np.pi / 2 + lean * np.arange(1, n + 1)
    text = 'format = 1\nname = "column"\nmotion = "planar"\ngravity = [0, 0, 0]\nend_effector = "tip"\n'
    text += '[[frame]]\nname = "motor"\njoint = "revolute"\nactuated = true\ninertia = { mass = 1 }\n'
    for i, (parent, turn) in enumerate(zip(["base", "bar0", "bar1"], np.diff(begun, prepend=0.0), strict=True)):
        place = "place = { position = [0.5, 0, 0] }\n" * (i > 0)
        text += f'[[frame]]\nname = "bar{i}"\nparent = "{parent}"\njoint = "revolute"\nstart = {turn}\n{place}'
        text += f"spring = {{ stiffness = {k[i]}, rest = {turn} }}\ninertia = {{ mass = 0.1, centre = [0.5, 0, 0] }}\n"
    text += '[[point]]\nname = "tip"\nframe = "bar2"\nposition = [0.5, 0, 0]\n'
    rest = parflex.equilibrium(parflex.load(write_robot(tmp_path, text)), wrench={"tip": [0, -load, 0]})
    difference = np.eye(n) - np.eye(n, k=-1)
    stiff, angles = difference.T @ np.diag(k) @ difference, begun.copy()
    critical = np.linalg.eigvalsh(stiff)[0] / 0.5
    assert 1.2 * critical < load < 1.4 * critical
    for share in np.linspace(0, 1, 4001)[1:]:
        for _ in range(3):
            slope = stiff @ (angles - begun) + share * load * 0.5 * np.cos(angles)
            angles = angles - np.linalg.solve(stiff - np.diag(share * load * 0.5 * np.sin(angles)), slope)
    assert rest.stable
    assert np.cumsum(rest.configuration.q[1:]) == pytest.approx(
        angles, abs=1e-8
    )  # both by Newton's method, to rounding
    assert abs(angles - begun).max() > 0.5 and np.sign(angles[-1] - np.pi / 2) == np.sign(lean)


class Mechanism:
    """One or two joints in a row with springs, weights, a force and a moment at the tip, and a spring to the ground."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.n = n = int(draw.integers(1, 3))
        self.g = float(draw.choice([0.0, -9.81]))
        self.turns = draw.random(n) < 0.7
        self.lengths, self.masses = draw.uniform(0.3, 1.0, n).tolist(), draw.uniform(0.2, 3.0, n).tolist()
        self.start = np.where(self.turns, draw.uniform(-3, 3, n), draw.uniform(-0.3, 0.3, n))
        self.k = np.where(self.turns, 10 ** draw.uniform(0.3, 2, n), 10 ** draw.uniform(1.5, 3, n))
        self.rests = self.start + np.where(draw.random(n) < 0.4, draw.uniform(-0.5, 0.5, n), 0.0)
        self.force = draw.uniform(-1, 1, 2) * 10 ** draw.uniform(0.0, 2.5)
        self.moment = float(draw.uniform(-1, 1) * 10 ** draw.uniform(-1, 1) * (draw.random() < 0.3))
        self.tied, self.anchor = bool(draw.random() < 0.4), draw.uniform(-1, 1, 2)
        self.tie = float(10 ** draw.uniform(1, 2.5))
        stretch = float(draw.choice([0.0, draw.uniform(-0.2, 0.2)]))
        self.tie_rest = float(np.linalg.norm(self.places(self.start)[0][-1] - self.anchor)) + stretch

    def places(self, q, xp=np):
        angle, here, result = 0.0, xp.zeros(2), []
        for k in range(self.n):
            if self.turns[k]:
                angle = angle + q[k]
            along = xp.stack([xp.cos(angle), xp.sin(angle)])
            here = here + along * (self.lengths[k] + (0.0 if self.turns[k] else q[k]))
            result.append(here)
        return result, angle

    def text(self) -> str:
        motor = {"name": "motor", "joint": "revolute", "actuated": True, "inertia": {"M": 1, "ZZ": 1}}
        frames, points, elements, parent = [motor], [], [], "base"
        for k in range(self.n):
            kind, length, turned = ("revolute", "prismatic")[int(not self.turns[k])], self.lengths[k], [0, "pi/2", 0]
            centre = [length, 0, 0] if self.turns[k] else [0, 0, length]
            inertia = {"mass": self.masses[k], "centre": centre, "about_centre": [0.01, 0.01, 0.01]}
            joint = {
                "name": f"j{k}",
                "parent": parent,
                "joint": kind,
                "start": float(self.start[k]),
                "inertia": inertia,
            }
            joint |= {"spring": {"stiffness": float(self.k[k]), "rest": float(self.rests[k])}}
            joint |= {} if self.turns[k] else {"place": {"rotation": turned}}
            back = {} if self.turns[k] else {"rotation": [0, "-pi/2", 0]}
            frames += [joint, {"name": f"p{k}", "parent": f"j{k}", "place": {"position": centre} | back}]
            parent = f"p{k}"
        points.append({"name": "tip", "frame": parent})
        if self.tied:
            points.append({"name": "anchor", "frame": "base", "position": [*self.anchor.tolist(), 0]})
            tie = {"name": "tie", "kind": "spring", "between": ["anchor", "tip"]}
            elements.append(tie | {"stiffness": self.tie, "rest": self.tie_rest})
        head = {"format": 1, "name": "m", "motion": "planar", "gravity": [0, self.g, 0], "end_effector": "tip"}
        return toml_text(head | {"frame": frames, "point": points, "element": elements})

    def slopes(self):
        """First and second derivative of the potential with a share of the loads, by JAX."""
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        xp = jax.numpy

        def inner(q):
            result = 0.5 * xp.sum(self.k * (q - self.rests) ** 2)
            if self.tied:
                length = xp.sqrt(xp.sum((self.places(q, xp)[0][-1] - self.anchor) ** 2))
                result = result + 0.5 * self.tie * (length - self.tie_rest) ** 2
            return result

        def loads(q):
            places, angle = self.places(q, xp)
            weights = sum(m * self.g * place[1] for m, place in zip(self.masses, places, strict=True))
            return -(xp.sum(self.force * places[-1]) + self.moment * angle + weights)

        held = jax.grad(inner)(xp.array(self.start))
        potential = lambda q, s: inner(q) + s * loads(q) - (1 - s) * xp.sum(held * q)  # noqa: E731
        return jax.jit(jax.grad(potential)), jax.jit(jax.hessian(potential))

    def led(self, first, second) -> np.ndarray | None:
        """Where shares that grow by a thousandth and less lead in stable states; None where they lead no further."""
        q, share, step = self.start.copy(), 0.0, 1e-3
        while share < 1.0:
            ahead = min(1.0, share + step)
            change = first(q, 1.0) - first(q, 0.0)
            caught = -np.linalg.solve(second(q, share), change) * (ahead - share)
            there, good = q + caught, bool(np.abs(caught).max() < 0.02)
            for _ in range(12 if good else 0):
                move = -np.linalg.solve(second(there, ahead), first(there, ahead))
                there = there + move
            good = good and np.abs(move).max() < 1e-11 and np.linalg.eigvalsh(second(there, ahead)).min() > 0.0
            if good and np.abs(there - q - caught).max() < 0.5 * np.abs(caught).max() + 1e-9:
                q, share, step = there, ahead, min(2e-3, 2 * step)
                continue
            step /= 2
            if step < 1e-9:
                return None
        return q


@pytest.mark.verify
@pytest.mark.parametrize("tens", range(20))
def test_equilibria_of_random_mechanisms_are_reached_by_growing_loads_in_an_independent_potential(tens, tmp_path):
    for seed in range(10 * tens, 10 * tens + 10):
        own = Mechanism(seed)
        first, second = own.slopes()
        robot = parflex.load(write_robot(tmp_path, own.text()))
        names = list(robot.tree.position_names)
        try:
            rest = parflex.equilibrium(robot, wrench={"tip": [*own.force, own.moment]})
        except parflex.ParflexError:
            rest = None
        result = None if rest is None else rest.configuration.q[[names.index(f"j{k}") for k in range(own.n)]]
        if result is not None:  # whatever is answered is an equilibrium, and stable where that is said
            size = np.abs(own.k).max() + np.abs(own.force).max()
            assert np.abs(first(result, 1.0)).max() < 1e-8 * size, seed
            assert rest.stable == (np.linalg.eigvalsh(second(result, 1.0)).min() > 0.0), seed
        if np.linalg.eigvalsh(second(own.start, 0.0)).min() <= 0.0:  # the pose itself is not stable
            continue
        led = own.led(first, second)
        if led is None:
            assert rest is None or not rest.stable, seed
        else:
            assert rest is not None and rest.stable, seed
            assert np.abs(result - led).max() < 1e-7, seed  # both end at rounding over the softest stiffness
