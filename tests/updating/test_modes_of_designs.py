"""Modes of robots with other numbers: slopes of frequencies and poles with every element, robots put together again."""

import numpy as np
import pytest
import scipy.linalg
from support.robots import load_robot, robot_file, with_constants, write_robot

import parflex
from parflex.design.design_state import Circumstances, SensitiveDesign
from parflex.parameters.design_numbers import number_at
from parflex.robot.load import with_settings
from parflex.updating.modes import modes_at
from parflex.updating.rebound_robots import ReboundRobots

CONSTANTS = {"m": 2.0, "k": 900.0, "c": 12.0, "a": 0.25}
KEYS = [f"constants.{key}" for key in CONSTANTS]
ELEMENTS = {  # kind of element, beside the ends
    "spring": 'kind = "spring"\nstiffness = "k"\nrest = 0.3\ndamping = "c"',
    "cable": 'kind = "cable"\nstiffness = "k"\nrest = 0.3\ndamping = "c"',
    "damper": 'kind = "damper"\ndamping = "c"',
    "force": 'kind = "force"\ndamping = "c"\n'
             'table = { length = [[0.1, "-k/10"], [0.9, "k/10"]], speed = [[-1, "-c"], [1, "c"]] }',
    "spring by a table": 'kind = "spring"\ntable = [[0.1, "-k/10"], [0.4, 0], [0.9, "k/5"]]\ndamping = "c"',
}  # fmt: skip
COUPLING = """
[[coupling]]
name = "belt"
joint = "second"
terms = { first = 0.5 }
stiffness = "k/10"
damping = "c/100"
"""


def with_element(base: str, first: str, second: str, text: str) -> str:
    head = f"format = 1\nname = 'sprung'\nextends = '{robot_file(base)}'\n"
    return f'{head}[[element]]\nname = "x"\nbetween = ["{first}", "{second}"]\n{text}\n'


ROBOTS = {
    **{f"{kind} between links": with_element("sprung-links", "wall", "tip", text) for kind, text in ELEMENTS.items()},
    **{
        f"{kind} on a free platform": with_element("sprung-platform", "g2", "platform.p3", text)
        for kind, text in ELEMENTS.items()
    },
    "elastic coupling": f"format = 1\nname = 'sprung'\nextends = '{robot_file('sprung-links')}'\n{COUPLING}",
}


def poles(robot, about):
    """All that vibrate, by LAPACK on the whole matrices: frequency |pole|/(2 pi) and ratio, by frequency."""
    model = parflex.linear_model(robot, "home", about=about)
    M, D, K = (np.asarray(matrix, dtype=float) for matrix in (model.M, model.D, model.K))
    I, O = np.eye(len(M)), np.zeros_like(M)
    values = scipy.linalg.eigvals(np.block([[O, I], [-K, -D]]), np.block([[I, O], [O, M]]))
    values = values[values.imag > 1e-6]
    return np.array(sorted((abs(pole) / (2 * np.pi), -pole.real / abs(pole)) for pole in values))


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "about"),
    [
        *((name, "undeformed") for name in ROBOTS),
        *((f"{kind} between links", "equilibrium") for kind in ("spring", "cable")),
    ],
)
def test_poles_have_the_slopes_of_their_differences(name, about, tmp_path):
    path = write_robot(tmp_path, ROBOTS[name])
    robot = parflex.load(path)
    modes = modes_at(robot, "home", Circumstances(about=about), 3, SensitiveDesign(robot, KEYS))
    wanted, changes = poles(robot, about), []
    for key in KEYS:
        value = CONSTANTS[key.split(".")[1]]
        sides = [poles(parflex.load(path, settings={key: value * (1 + way)}), about) for way in (1e-4, -1e-4)]
        changes.append((sides[0] - sides[1]) / 2e-4)
    for mode in range(2):
        f, ratio, *slopes = modes.damped(mode)
        at = int(np.argmin(np.abs(wanted[:, 0] - f)))
        assert [f, ratio] == pytest.approx(wanted[at], rel=1e-9, abs=1e-12)
        relative = np.transpose(slopes) * np.array(list(CONSTANTS.values()))[:, None]
        # differences of second order: 1e-8 of what changes, and rounding over steps of 1e-4
        assert relative == pytest.approx(np.array(changes)[:, at], rel=1e-5, abs=1e-6)


DUALEMPS = ["materials.dural.elastic_modulus", "materials.dural.density", "frame.12.inertia.M"]
CHAIN = ["constants.first", "constants.second_damper"]


def compared(robot, keys, pose, given, share=1.1, count=5):
    """Modes of the robot with all numbers at keys by a share, kept and read again; and whether the pose is kept."""
    values = np.array([share * number_at(robot, key) for key in keys])
    designs = ReboundRobots(robot, keys, given)
    designs.of(2 * values).modes(pose, count)  # nothing of another design is kept
    again = with_settings(robot, dict(zip(keys, map(float, values), strict=True)))
    anew = modes_at(again, pose, given, count, SensitiveDesign(again, keys))
    return designs.of(values).modes(pose, count), anew, designs.at(pose)


DESIGNS = {
    "materials and masses of a closed loop": ("dualemps", DUALEMPS, {}),
    "servos on motors with inertia": ("carriage", ["constants.rotor", "constants.spring"], {"servo": 1e4}),
    "springs of drives and sections": ("navaro-refined", ["legs.frame.1.spring.stiffness", "sections.platform.Iz"], {}),
    "about the equilibrium": ("dualemps", DUALEMPS[:1], {"about": "equilibrium"}),
}


@pytest.mark.parametrize("case", DESIGNS)
def test_numbers_that_move_nothing_are_put_into_the_robot_as_it_is(case):
    name, keys, words = DESIGNS[case]
    robot = load_robot(name) if name == "carriage" else parflex.load(name)
    kept, anew, pose = compared(robot, keys, "home", Circumstances(**words))
    assert pose is not None
    # sums in another order: rounding of eigenvalues, about 1e-16 of the highest squared frequency over that of a mode
    assert kept.modes.frequencies == pytest.approx(anew.modes.frequencies, rel=1e-8)
    assert kept.modes.excess == pytest.approx(anew.modes.excess, rel=1e-6)
    for mode in range(min(3, len(kept.modes.frequencies))):
        assert kept.frequency(mode)[1] == pytest.approx(anew.frequency(mode)[1], rel=1e-7)


def test_numbers_that_move_poses_put_the_robot_together_again_and_dampers_do_not(tmp_path):
    text = with_constants("spring-chain", first=900.0, second=400.0, third=150.0)
    text += '\n[poses.turned]\nmotor-b = "first/900"\n'
    dampers = {"constants.first_damper": 2.0, "constants.second_damper": 1.0}
    robot = parflex.load(write_robot(tmp_path, text), settings=dampers)
    kept, anew, _ = compared(robot, CHAIN, "bent", Circumstances(), count=3)
    for mine, other in zip(kept.damped(1), anew.damped(1), strict=True):
        assert mine == pytest.approx(other, rel=1e-9)
    kept, anew, pose = compared(robot, CHAIN[:1], "turned", Circumstances(), count=3)
    assert pose is None  # a stiffness stands in the pose: 10 % more turn the joint
    assert kept.modes.frequencies == pytest.approx(anew.modes.frequencies, rel=1e-12)
    assert ReboundRobots(robot, CHAIN[:1], Circumstances()).at("bent") is not None
    assert ReboundRobots(parflex.load("navaro"), ["constants.bar"], Circumstances()).at("home") is None
