"""Flexible robots of the catalogue: published tables, fitted files, and frame models of the same robots."""

import itertools

import numpy as np
import pytest
from support.oracles.beam_robots import dualemps_model, gough_stewart_model
from support.oracles.navaro_frame import POSES, navaro_model
from support.published import published
from support.robots import load_robot

import parflex

MASSES = {"B": 0.4053, "C": 0.4079, "D": 0.4123, "E": 0.3108}
CLUTCHES = (1998.5, 3895.0)
OUT_OF_PLANE = ("uz", "rx", "ry", "vz", "wx", "wy")
PRINTED = {"zz14": 0.003, "mx17": 0.006, "mx24": 0.011}
FITTED = {"zz14": 0.003075, "mx17": 0.005815, "mx24": 0.01117}


def by_plane(robot, modes) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of modes in the plane and out of it, double ones once."""
    out = np.array([name.rpartition(".")[2] in OUT_OF_PLANE for name in robot.tree.rate_names])
    share = (modes.shapes[out] ** 2).sum(axis=0) / (modes.shapes**2).sum(axis=0)
    assert np.all((share < 1e-6) | (share > 1 - 1e-6))  # a flat robot of symmetric sections: no mode is mixed
    kinds = (modes.frequencies[share < 0.5], modes.frequencies[share > 0.5])
    return tuple(np.array([f for f, g in itertools.pairwise([*kind, np.inf]) if g - f > 1e-4]) for kind in kinds)


def test_in_plane_rows_of_table_4_follow_from_the_refined_navaro(figure):
    robot = parflex.load("navaro-refined")
    assert "fit" in " ".join(robot.description.reference.fitted)
    worst, worst_out, rows = 0.0, 0.0, 0
    places = ("in the plane", "out of the plane")
    inner, outer = (published("Germain2015", f"Table 4, calculated, {where}") for where in places)
    for number in range(1, 5):
        inside, outside = inner[f"pose {number}"], outer[f"pose {number}"]
        result = parflex.natural_frequencies(robot, f"pose-{number}", modes=14)
        assert result.independent_coordinates == 96  # 90 and a spring in each of six clutches
        in_plane, out = by_plane(robot, result)
        worst = max(worst, float(np.abs(in_plane[: len(inside)] - inside).max()))
        worst_out = max(worst_out, *(float(np.abs(out - row).min()) for row in outside))
        rows += len(inside)
    figure("navaro-refined: twenty in-plane rows of Table 4, largest difference in Hz", worst, 0.02)
    figure("navaro-refined: out-of-plane rows, largest distance from the nearest such mode in Hz", worst_out)
    assert rows == 20
    assert worst < 0.02  # asked for: the fit itself is good to 0.007 Hz, the table is rounded to 0.005 Hz
    assert worst_out > 0.5  # these values do not give the out-of-plane rows, and the file says so


@pytest.mark.verify
def test_the_refined_navaro_equals_its_frame_model(figure):
    robot, worst = parflex.load("navaro-refined"), 0.0
    for number, pose in POSES.items():
        result = parflex.natural_frequencies(robot, f"pose-{number}", modes=10).frequencies
        worst = max(worst, float(np.abs(result / navaro_model(pose, MASSES, CLUTCHES).frequencies(10) - 1).max()))
    figure("navaro-refined: largest relative difference from its frame model", worst, 1e-9)
    assert worst < 1e-9  # rounding of eigenvalue problems whose largest value is 1e8 times the lowest


@pytest.mark.few
@pytest.mark.parametrize("driven", ["".join(digits) for digits in itertools.product("12", repeat=3)])
def test_an_actuation_of_the_navaro_holds_one_link_of_each_leg(driven):
    plain = parflex.natural_frequencies(parflex.load("navaro", actuation=driven), "pose-4")
    assert plain.independent_coordinates == 93 and not plain.free_motions
    # as above; the lowest mode is far below the others, near a singularity of this actuation
    assert plain.frequencies == pytest.approx(navaro_model(POSES[4], driven=driven).frequencies(6), rel=1e-7)
    refined = parflex.natural_frequencies(parflex.load("navaro-refined", actuation=driven), "pose-4").frequencies
    expected = navaro_model(POSES[4], MASSES, CLUTCHES, driven, disc=1e-4).frequencies(6)
    assert refined == pytest.approx(expected, rel=1e-7)


def test_elastic_drives_are_at_rest_in_every_pose():
    robot = parflex.load("navaro-refined")
    springs = [robot.tree.links[number].name for number in robot.drive_springs]
    assert springs == [f"leg{leg}.{link}" for leg in (1, 2, 3) for link in (1, 2)]
    for pose in ("home", "pose-4", {"x": 0.05, "y": -0.02, "z": 0, "rx": 0, "ry": 0, "rz": -0.4}):
        q = parflex.configure(robot, pose).q
        assert [q[robot.tree.links[number].q.start] for number in robot.drive_springs] == [0.0] * 6
        assert parflex.configure(robot, pose).condition.platform < 10  # motors hold all that is not elastic


@pytest.mark.parametrize(
    ("kind", "place", "drive"),
    [
        ("revolute", {"position": [0, 0, 0.1]}, True),
        ("revolute", {"rotation": ["pi", 0, 0]}, True),
        ("revolute", {"position": [0.1, 0, 0]}, False),
        ("revolute", {"rotation": ["pi/2", 0, 0]}, False),
        ("prismatic", {"position": [0.1, 0.2, 0]}, True),
        ("prismatic", {"rotation": [0, 0.3, 0]}, False),
    ],
)
def test_a_spring_is_an_elastic_drive_only_along_the_axis_of_its_motor(kind, place, drive):
    settings = {"frame.motor.joint": kind, "frame.arm.joint": kind, "frame.arm.place": place}
    assert len(load_robot("spring-behind-motor", settings=settings).drive_springs) == drive


def test_frequencies_of_the_fitted_dualemps(figure):
    """Briot2014, Table 3: five frequencies by three fitted values, and a sixth that they do not fit exactly."""
    robot = parflex.load("dualemps-fitted")
    assert "chosen" in robot.description.reference.fitted[0]
    result = parflex.natural_frequencies(robot).frequencies
    (printed,) = published("Briot2014", "Table 3, natural frequencies, row 'model'").values()
    worst = float(np.abs(result[:5] - printed[:5]).max())
    figure("dualemps-fitted: Table 3, largest difference of the first five in Hz", worst, 0.01)
    assert worst < 0.01  # half of the last printed digit, and 0.005 Hz for the digits of the fit
    assert result[5] == pytest.approx(423.08, rel=1e-3)
    assert result[5] == pytest.approx(printed[5], rel=1e-3)


@pytest.mark.parametrize(("name", "values"), [("dualemps", PRINTED), ("dualemps-fitted", FITTED)])
def test_the_dualemps_equals_its_frame_model(name, values, figure):
    result = parflex.natural_frequencies(parflex.load(name), modes=9).frequencies
    worst = float(np.abs(result / dualemps_model(values).frequencies(9) - 1).max())
    figure(f"{name}: nine modes, largest relative difference from its frame model", worst, 1e-8)
    assert worst < 1e-8  # rounding of an eigenvalue problem whose largest value is 1e7 times the lowest


def test_more_elements_take_the_dualemps_to_its_limit_at_the_fourth_power(figure):
    """Cubic shapes: halving the elements leaves a sixteenth of the error, seen by the steps from mesh to mesh."""
    result = [parflex.natural_frequencies(parflex.load("dualemps", elements=n)).frequencies for n in (1, 2, 4, 8, 16)]
    steps = [coarse - fine for coarse, fine in itertools.pairwise(result)]
    assert all(np.all(step > 0) for step in steps)  # consistent mass: from above
    before, after = (np.log2(coarse / fine) for coarse, fine in itertools.pairwise(steps[1:]))
    figure("dualemps: rates from 4, 8, 16 elements, farthest from four", float(np.abs(after - 4).max()), 0.1)
    # two elements are too few for the wave of the sixth mode; the terms behind the first fall sixteen times as fast
    assert np.abs(before[:5] - 4).max() < 0.3
    assert np.abs(after - 4).max() < 0.1


def test_the_gough_stewart_robot_of_beams_equals_its_frame_model(figure):
    robot, worst = parflex.load("gough-stewart-beams"), 0.0
    poses = ["home", {"x": 0.3, "y": 0.4, "z": 1.05, "rx": 0.1, "ry": -0.05, "rz": 0.2}]
    for pose in poses:
        position, rotation = parflex.frames(robot, pose)["platform"]
        result = parflex.natural_frequencies(robot, pose, modes=20)
        assert result.independent_coordinates == 72  # 6 x 12 elastic, 12 of universal joints, 6 of the plate; 18 rows
        expected = gough_stewart_model(position, rotation).frequencies(20)
        worst = max(worst, float(np.abs(result.frequencies / expected - 1).max()))
    figure("gough-stewart-beams: twenty modes, largest relative difference from its frame model", worst, 1e-6)
    assert worst < 1e-6  # asked for; rounding is far below
