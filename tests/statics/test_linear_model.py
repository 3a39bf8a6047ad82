"""Linear models: servos, Cartesian stiffness, participation in modes, preload of redundant motors."""

from __future__ import annotations

import numpy as np
import pytest
from support import bars
from support.command_line import answered
from support.comparison import positions, stiffness_error
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file

import parflex
from parflex import InputError, SingularError, cartesian_stiffness, deflection, equilibrium, natural_frequencies


@pytest.mark.parametrize(("name", "soft"), [("dualemps", 1e10), ("navaro", 1e8)])
def test_stiff_servos_give_the_locked_frequencies_and_none_the_free_ones(name, soft, figure):
    robot = parflex.load(name)
    locked = natural_frequencies(robot, modes=4).frequencies
    errors = [np.abs(natural_frequencies(robot, modes=4, servo=k).frequencies / locked - 1) for k in (soft, 10 * soft)]
    figure(f"{name}: frequencies with stiff servos over locked ones, less one", float(errors[1].max()))
    moving = errors[0] > 1e-7  # above the rounding of the eigenvalues
    assert moving.any()
    # the difference falls as one over the stiffness; the next term is a hundredth of it at the softer servo
    assert (errors[0] / errors[1])[moving] == pytest.approx(10, rel=0.02)
    free, none = (natural_frequencies(robot, modes=4, **how) for how in ({"lock": "none"}, {"servo": 0}))
    assert none.frequencies == pytest.approx(free.frequencies, rel=1e-12)
    assert none.free_motions == free.free_motions
    assert len(free.free_motions) == {"dualemps": 2, "navaro": 3}[name]
    motor = robot.actuated_names[0]  # the others stay locked
    one = natural_frequencies(robot, servo={motor: 1e5}, modes=1)
    assert one.independent_coordinates == natural_frequencies(robot, modes=1).independent_coordinates + 1


def test_a_servo_and_a_spring_of_the_file_share_a_joint(tmp_path):
    text = '[[frame]]\nname = "arm"\njoint = "revolute"\nactuated = true\nstart = 0.2\ninertia = { ZZ = 0.5 }\n'
    alone = natural_frequencies(bars.robot(tmp_path, text), servo={"arm": 200}, servo_damping={"qarm": 3})
    assert alone.frequencies == pytest.approx([20 / (2 * np.pi)], rel=1e-12)
    assert alone.damping == pytest.approx([3 / (2 * 20 * 0.5)], rel=1e-12)
    robot = bars.robot(tmp_path, text + "spring = { stiffness = 30, rest = -0.1 }\n")
    rest = equilibrium(robot, servo=70)
    assert rest.configuration.q[0] == pytest.approx((30 * -0.1 + 70 * 0.2) / 100, rel=1e-12)
    assert deflection(robot, servo=70, about="equilibrium").efforts["arm"] == pytest.approx(30 * 0.21, rel=1e-12)


@pytest.mark.few("gough-stewart")
@pytest.mark.parametrize(("name", "conditions"), [("navaro", {}), ("gough-stewart", {"servo": 1e7})])
def test_compliance_is_what_small_loads_move_and_obeys_maxwell(name, conditions, figure):
    robot = parflex.load(name)
    frame = robot.tree.end_effector
    load = np.array([3.0, -2.0, 5.0, 0.0, 0.0, 0.0])
    result = cartesian_stiffness(robot, about="equilibrium", wrench={frame: load}, **conditions)
    worst, size = 0.0, float(np.abs(result.compliance).max())
    for k in range(3):
        ends = []
        for sign in (-1, 1):
            more = load + sign * np.eye(6)[k]
            ends.append(deflection(robot, about="equilibrium", wrench={frame: more}, **conditions).frames[frame])
        moved = (ends[1] - ends[0]) / 2
        worst = max(worst, float(np.abs(moved[:3] - result.compliance[:3, k]).max()) / size)
    figure(f"{name}: compliance against finite loads, of the largest entry", worst)
    assert worst < 1e-5  # differences of a newton: the square of the deflection they make
    # deflections of one load under another are equal, as forces have a potential
    assert np.abs(result.compliance - result.compliance.T).max() < 1e-9 * size


def test_a_rigid_direction_is_named():
    slide = load_robot("two-masses-on-springs")
    result = cartesian_stiffness(slide, frame="second")
    assert result.stiffness is None
    assert result.rigid == ["y", "theta"]
    assert result.compliance[0, 0] == pytest.approx(1 / 300 + 1 / 100, rel=1e-12)


def test_wrong_servos_and_states_are_refused(tmp_path):
    robot = parflex.load("dualemps")
    for conditions, word in (
        ({"servo": {"12": 1e3}}, "12"),
        ({"servo": -1.0}, "negative"),
        ({"servo": float("nan")}, "finite"),
        ({"servo": {"11": 1e3}, "lock": ["11"]}, "servo"),
        ({"servo": 1e3, "without": ["springs"]}, "springs"),
        ({"about": "middle"}, "middle"),
        ({"lock": ["13x"]}, "13x"),
    ):
        with pytest.raises(InputError, match=word):
            natural_frequencies(robot, **conditions)
    with pytest.raises(SingularError, match="nothing constrains"):
        cartesian_stiffness(robot, lock="none")
    with pytest.raises(InputError, match="nothing can move"):
        cartesian_stiffness(parflex.load("3rrr"))


def test_a_wheel_that_nothing_drives_is_left_out_of_the_stiffness(tmp_path):
    wheel = '[[frame]]\nname = "wheel"\njoint = "revolute"\ninertia = { mass = 2, about_centre = [0.1, 0.1, 0.1] }\n'
    alone, beside = bars.cantilever(tmp_path), bars.robot(tmp_path, bars.CANTILEVER + wheel)
    wanted, result = (cartesian_stiffness(robot, frame="bar.tip").compliance for robot in (alone, beside))
    assert result == pytest.approx(wanted, rel=1e-9, abs=1e-12 * np.abs(wanted).max())  # rounding of eigenvectors
    with pytest.raises(SingularError, match="nothing constrains 'wheel'"):
        cartesian_stiffness(beside, frame="wheel")
    light = '[[frame]]\nname = "arm"\njoint = "revolute"\nspring = { stiffness = 3 }\n'
    with pytest.raises(SingularError, match="'arm' has no positive inertia"):
        natural_frequencies(bars.robot(tmp_path, light))


# -- preload of redundant motors


# second derivatives by two exact methods; efforts that balance come from a system of condition below a hundred
EXACT = 1e-9
ENDS = {"left": (-0.5, 0.12), "right": (0.7, -0.2)}


def test_the_stiffness_of_a_redundant_robot_is_the_second_derivative_of_its_energy(figure):
    robot, rng, worst = load_robot("four-rrr"), np.random.default_rng(3), 0.0
    oracle = EnergyModel(read_robot(robot_file("four-rrr")))
    for servo in (None, 150.0):
        for _ in range(3):
            pose = dict(zip(("x", "y", "theta"), rng.uniform(-0.05, 0.05, 3), strict=True))
            words = {"preload": {"leg3.1": float(rng.uniform(-30, 30))}, "weights": {"leg1.1": 2.0}}
            model = parflex.linear_model(robot, pose, lock="none", servo=servo, **words)
            efforts = dict(zip(robot.motors, model.loading.tau[list(robot.actuated)], strict=True))
            at = positions(model.configuration)
            servos = {motor: (servo, at[motor]) for motor in robot.motors if servo}
            worst = max(worst, stiffness_error(model, oracle, efforts, servos=servos))
            inside = model.loading.internal["efforts"]
            assert inside["leg3.1"] == pytest.approx(words["preload"]["leg3.1"])
    figure.below("four-rrr: stiffness with preload against the energy's second derivative", worst, EXACT)


def test_frequencies_rise_with_the_preload_and_fall_against_it():
    robot, result = load_robot("four-rrr"), []
    for effort in (-0.5, 0.0, 5.0, 20.0):
        modes = parflex.natural_frequencies(robot, servo=200.0, preload={"leg2.1": effort})
        result.append(modes.frequencies[0])
        stiff = parflex.cartesian_stiffness(robot, servo=200.0, preload={"leg2.1": effort})
        values = np.linalg.eigvals(np.linalg.solve(parflex.mass_matrix(robot).matrix, stiff.stiffness))
        assert np.sqrt(values.real.min()) / (2 * np.pi) == pytest.approx(result[-1], rel=1e-6)
    assert result == sorted(result) and result[-1] > 2 * result[1]
    free = parflex.natural_frequencies(robot, lock="none", preload={"leg2.1": -20.0})
    assert free.unstable_motions and any("not stable" in said for said in free.model.warnings)


def test_a_slide_between_two_struts_has_the_stiffness_of_the_closed_form():
    robot = load_robot("struts-on-slide")
    for x, push in ((0.05, 40.0), (-0.1, -60.0)):
        for servo in (None, 500.0):
            words = {"lock": "none", "servo": servo, "preload": {"left": push}}
            model = parflex.linear_model(robot, {"slide": x}, **words)
            forces = dict(zip(robot.motors, model.loading.tau[list(robot.actuated)], strict=True))
            assert forces["left"] == pytest.approx(push)
            K = 0.0  # lengths of the struts by Pythagoras
            for name, (a, b) in ENDS.items():
                length = np.hypot(x - a, b)
                K += (servo or 0.0) * ((x - a) / length) ** 2 - forces[name] * b * b / length**3
            along = model.J[robot.tree.rate_names.index("slide"), 0]  # per independent rate, whichever that is
            assert model.K[0, 0] == pytest.approx(K * along**2, rel=1e-10)
            modes = parflex.natural_frequencies(robot, {"slide": x}, **words)
            if K > 0:
                assert modes.frequencies[0] == pytest.approx(np.sqrt(K / 3) / (2 * np.pi), rel=1e-10)
            else:
                assert modes.unstable_motions


def test_a_beam_between_two_motors_sounds_higher_the_harder_they_pull(figure):
    robot = load_robot("blade-between-motors")
    EI, mass = 2e11 * 0.02 * 0.002**3 / 12, 7800 * 0.002 * 0.02
    worst = 0.0
    for tension in (1.0, 100.0, 400.0):
        for words in ({}, {"servo": 1e9}):
            modes = parflex.natural_frequencies(robot, preload={"second": tension}, modes=1, **words)
            k = np.pi / 0.5  # half a wave between hinges
            wanted = np.sqrt((EI * k**4 + tension * k * k) / mass) / (2 * np.pi)
            worst = max(worst, abs(modes.frequencies[0] / wanted - 1))
    figure("beam between two motors: lowest frequency against the closed form", worst, 1e-4)
    assert worst < 1e-4  # eight cubic elements, and 400 N stretch the blade by 5e-5 of its length
    with pytest.raises(InputError, match="the preload must name as many motors as are redundant"):
        parflex.natural_frequencies(robot, weights={"second": 2.0})


def test_a_preload_that_cannot_act_is_refused():
    robot = load_robot("four-rrr")
    with pytest.raises(InputError, match="a preload acts about the equilibrium"):
        parflex.natural_frequencies(robot, about="undeformed", servo=1.0, preload={"leg1.1": 1.0})
    with pytest.raises(InputError, match="'effort' and 'preload' both determine"):
        parflex.natural_frequencies(robot, servo=1.0, preload={"leg1.1": 1.0}, effort={"leg2.1": 1.0})
    with pytest.raises(InputError, match="nothing can move"):
        parflex.natural_frequencies(robot, preload={"leg1.1": 1.0})
    with pytest.raises(InputError, match="so 'preload' has no effect"):
        parflex.natural_frequencies(parflex.load("3rrr"), servo=1.0, preload={"leg1.1": 1.0})


def test_the_command_line_reports_frequencies_and_stiffness_of_a_preload(capsys):
    shared, robot = [robot_file("four-rrr"), "--servo", "200", "--preload", "leg2.1=5"], load_robot("four-rrr")
    frequencies, stiffness = (answered(capsys, verb, *shared) for verb in ("frequencies", "stiffness"))
    modes = parflex.natural_frequencies(robot, servo=200.0, preload={"leg2.1": 5.0})
    assert frequencies["frequencies_hz"] == modes.frequencies.tolist() and frequencies["about"] == "equilibrium"
    assert frequencies["internal"] == stiffness["internal"] == modes.model.loading.internal
    held = parflex.inverse_dynamics(robot, preload={"leg2.1": 5.0})
    assert stiffness["efforts"] == pytest.approx(held.efforts)
