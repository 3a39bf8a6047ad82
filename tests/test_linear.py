"""Linear models: servos between locked and free, Cartesian stiffness, what takes part in a mode, what cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from support import bars
from support.command_line import answered, refused
from support.robots import load_robot

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


def test_stiffness_of_the_end_of_a_cantilever_is_that_of_its_element(tmp_path):
    bar = bars.cantilever(tmp_path, motion="spatial", elements=2)
    result = cartesian_stiffness(bar, frame="bar.tip")
    L, K = bars.LENGTH, result.stiffness
    EIy, EIz = bars.E * bars.IY, bars.EI
    expected = np.diag([bars.EA / L, 12 * EIz / L**3, 12 * EIy / L**3, K[3, 3], 4 * EIy / L, 4 * EIz / L])
    expected[1, 5] = expected[5, 1] = -6 * EIz / L**2
    expected[2, 4] = expected[4, 2] = 6 * EIy / L**2
    assert np.abs(K - expected).max() < 1e-9 * np.abs(expected).max()  # rounding of an inverse of condition 1e6
    assert np.abs(K @ result.compliance - np.eye(6)).max() < 1e-9
    assert result.rigid == []


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


def test_a_direction_that_does_not_give_way_is_named():
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


def test_the_verbs_say_what_is_wrong_with_their_options(capsys):
    for arguments, word in (
        (("frequencies", "dualemps", "--modes", "99"), "modes"),
        (("frequencies", "dualemps", "--modes", "0"), "modes"),
        (("frequencies", "dualemps", "--servo", "stiff"), "servo"),
        (("frequencies", "dualemps", "--servo", "1,2"), "servo"),
        (("frequencies", "dualemps", "--about", "rest"), "about"),
        (("stiffness", "dualemps", "--load", "17:1,2"), "wrench"),
        (("stiffness", "dualemps", "--load", "71:1,2,3"), "wrench"),
        (("stiffness", "dualemps", "--load", "17"), "wrench"),
        (("stiffness", "dualemps", "--load", "17:1,2,3", "--load", "17=1,2,3"), "wrench"),
        (("stiffness", "dualemps", "--frame", "71"), "frame"),
        (("stiffness", "dualemps", "--lock", "none"), "stiffness"),
    ):
        assert refused(capsys, *arguments)["key"] == word, arguments


def test_the_verb_stiffness_answers_like_python(capsys):
    answer = answered(capsys, "stiffness", "navaro", "--load", "platform:0,0,-50", "--about", "equilibrium")
    robot = parflex.load("navaro")
    result = cartesian_stiffness(robot, about="equilibrium", wrench={"platform": [0, 0, -50]})
    assert np.array(answer["stiffness"]) == pytest.approx(result.stiffness, rel=1e-12)
    assert answer["directions"] == ["x", "y", "z", "rx", "ry", "rz"]
    assert len(answer["section_forces"]) == 18
    assert answer["deflection"]["platform"][2] < 0
    assert set(answer["efforts"]) == {f"leg{leg}.{k}" for leg in (1, 2, 3) for k in (1, 2)}
