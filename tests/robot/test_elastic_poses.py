"""Poses of elastic robots: joints that follow couplings, and equilibria that are not stable."""

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from support.posing import pose_solver
from support.robots import load_robot

import parflex
from parflex import ParflexWarning, SingularError

# positions m1, m2, wheel, arm, fore by hand: wheel = 0.2 m1 + 0.3, arm = -0.5 wheel, fore = 0.1 m2 - arm + 0.9
POSES = {
    ("m1",): ([2.0], [2.0, 0.0, 0.7, -0.35, 1.25]),
    ("m2",): ([2.0], [0.0, 2.0, 0.3, -0.15, 1.25]),
    ("arm",): ([-0.4], [2.5, 0.0, 0.8, -0.4, 1.3]),
    ("arm", "fore"): ([-0.4, 1.5], [2.5, 2.0, 0.8, -0.4, 1.5]),
    ("m1", "arm"): ([2.0, -0.4], [2.0, 0.0, 0.7, -0.4, 1.3]),  # the second is stretched, the third rests
    ("wheel", "arm", "fore"): ([0.7, -0.4, 1.5], [2.0, 2.0, 0.7, -0.4, 1.5]),
}


@pytest.fixture(scope="module")
def chain():
    return load_robot("chain-of-gears")


@pytest.mark.parametrize("names", POSES, ids="-".join)
def test_joints_follow_couplings_at_rest_alone_and_among_others(chain, names):
    given, wanted = POSES[names]
    solver = pose_solver(chain, names, given)
    assert solver.fast
    assert solver(np.array([given])).q[0] == pytest.approx(wanted, abs=1e-12)
    assert chain.assemble(dict(zip(names, given, strict=True))) == pytest.approx(wanted, abs=1e-12)


def test_a_pose_that_leaves_open_which_motor_moves_is_the_nearest_one_alone_and_among_others(chain):
    solver = pose_solver(chain, ["fore"], [1.2])
    found = solver(np.array([[1.2], [0.8]]))
    assert not solver.fast
    for q, fore in zip(found.q, (1.2, 0.8), strict=True):
        assert q == pytest.approx(chain.assemble({"fore": fore}), abs=1e-9)
        assert q[4] == pytest.approx(0.1 * q[1] - q[3] + 0.9, abs=1e-12) and q[0] != 0.0 and q[1] != 0.0


def test_slopes_of_a_pose_that_stretches_a_coupling_hold_the_others(chain):
    """The second coupling is stretched: its rest moves the arm, and the third, at rest, moves nothing of the hand."""
    pose = {"m1": 2.0, "arm": -0.4}
    found = parflex.sensitivities(chain, "deflection:y", ["coupling.first.offset"], pose)
    step = 1e-5
    moved = [load_robot("chain-of-gears", settings={"coupling.first.offset": 0.3 + s}) for s in (step, -step)]
    ends = [parflex.deflection(robot, pose).frames["hand"][1] for robot in moved]
    assert found.matrices.ravel() == pytest.approx([(ends[0] - ends[1]) / (2 * step)], rel=1e-6)  # of differences


def test_poses_about_their_equilibrium_give_no_advice(recwarn):
    """A gear that is wound up by 0.5 rad is at rest by 0.5 rad from where the pose has it."""
    robot = load_robot("geared-pendulum")
    for count in (1, 8):  # alone and together
        found = parflex.many_responses(robot, ["motor", "arm"], [[0.0, 0.5]] * count, ["deflection:rz"])
        assert found["deflection:rz"] == pytest.approx([-0.5 - 2.0 * 9.81 * 0.3 / 800] * count, rel=1e-4)  # cos 0
    assert not [warning for warning in recwarn if "ask about" in str(warning.message)]


@pytest.mark.parametrize("name", ["arm", "motor"])
@pytest.mark.parametrize("designs", [None, {"frame.arm.inertia.mass": [2.0] * 6}], ids=["plain", "designs"])
def test_an_arm_on_an_elastic_gear_sags_as_one_line_says(name, designs):
    robot = load_robot("geared-pendulum")
    arm = np.array([-2.5, -1.0, 0.0, 0.7, 1.5, 2.5])
    poses = (arm if name == "arm" else arm / 0.02)[:, None]
    inertia = 0.05 + 2.0 * 0.3**2
    load = 2.0 * 9.81 * 0.3
    plain = parflex.many_responses(robot, [name], poses, ["frequency:1", "deflection:rz"], designs=designs)
    assert plain["frequency:1"] == pytest.approx(np.sqrt(800 / inertia) / (2 * np.pi), rel=1e-9)
    assert plain["deflection:rz"] == pytest.approx(-load * np.cos(arm) / 800, rel=1e-9, abs=1e-15)
    about = {"about": "equilibrium", "designs": designs}
    resting = parflex.many_responses(robot, [name], poses, ["frequency:1", "deflection:rz"], **about)
    sag = [brentq(lambda d, a=a: 800 * d + load * np.cos(a + d), -0.1, 0.1, xtol=1e-15) for a in arm]
    stiffness = 800 - load * np.sin(arm + sag)
    assert resting["deflection:rz"] == pytest.approx(sag, rel=1e-8, abs=1e-12)  # Newton's method ends at 1e-10
    assert resting["frequency:1"] == pytest.approx(np.sqrt(stiffness / inertia) / (2 * np.pi), rel=1e-8)


def test_a_column_beyond_its_buckling_load_is_refused_however_slowly_it_would_leave():
    """Below it the closed form of a massless column with a head; above, there is no stable equilibrium."""
    robot, length, bending, head = load_robot("column-with-head"), 0.8, 210e9 * 0.03 * 0.004**3 / 12, 3.0
    critical = np.pi**2 * bending / 4 / length**2
    load = 0.9 * critical
    below = parflex.natural_frequencies(robot, modes=1, wrench={"head": [0, -load, 0]})
    k = np.sqrt(load / bending)
    expected = np.sqrt(load * k / (np.tan(k * length) - k * length) / head) / (2 * np.pi)
    assert below.frequencies[0] == pytest.approx(
        expected, rel=1e-3
    )  # elements miss 1e-4 of the buckling load, times 10
    above = {"head": [0, -1.002 * critical, 0]}
    with pytest.raises(SingularError, match=r"at 99\.\d % of them 'bar.*' becomes unstable"):
        parflex.natural_frequencies(robot, modes=1, wrench=above)
    rows = parflex.many_frequencies(robot, ["foot"], [[np.pi / 2]] * 2, modes=1, wrench=above)
    assert rows.status.all() and all("becomes unstable" in reason for reason in rows.reasons)


def test_rows_with_a_single_growing_motion_are_not_stable():
    """An arm upright on a spring that does not hold it; hanging, it swings as the closed form says."""
    robot, upright = load_robot("arm-above-motor"), {"motor": np.pi / 2}
    rows, stiffness = [[np.pi / 2], [-np.pi / 2]], 15.0 + 2.0 * 9.81
    for designs in (None, {"constants.stiffness": [15.0, 15.0]}):
        with pytest.warns(ParflexWarning, match="1 of 2 poses"):
            result = parflex.many_frequencies(robot, ["motor"], rows, modes=1, about="equilibrium", designs=designs)
        assert "not stable" in result.reasons[0] and result.reasons[1] == "" and np.isnan(result.frequencies[0, 0])
        assert result.frequencies[1, 0] == pytest.approx(np.sqrt(stiffness / 2.1) / (2 * np.pi), rel=1e-9)
    with pytest.raises(SingularError, match="not stable"):
        parflex.natural_frequencies(robot, upright, 1, about="equilibrium")
    for ask in (parflex.equilibrium, parflex.natural_frequencies, parflex.deflection):
        words = {} if ask is parflex.equilibrium else {"about": "equilibrium"}
        with pytest.warns(ParflexWarning, match="equilibrium is not stable"):
            ask(robot, upright, **words)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParflexWarning)
            ask(robot, {"motor": -np.pi / 2}, **words)  # hanging, it stays
