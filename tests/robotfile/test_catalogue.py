"""Robots of the catalogue against their papers, frame models and closed forms."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.catalogue import CATALOGUE, MACHINES, RIGID
from support.command_line import answered
from support.comparison import largest
from support.oracles.beam_robots import dualemps_model, gough_stewart_model
from support.oracles.navaro_frame import POSES, navaro_model
from support.published import published
from support.robots import load_robot
from support.states import Draws, random_states
from support.variants import read_table

import parflex
from parflex.recursion.kinematics import motion

# bodies, joints, motors, coordinates, closure rows, redundant rows, freedoms: counted by hand from the structure
COUNTS = {
    "3-prrr": (10, 9, 3, 15, 15, 3, 3),
    "3-prs-2r": (9, 8, 5, 14, 9, 0, 5),
    "3rrr": (7, 6, 3, 9, 6, 0, 3),
    "4rrr": (9, 8, 4, 11, 8, 0, 3),
    "5r": (4, 4, 2, 4, 2, 0, 2),
    "bricard": (5, 5, 1, 5, 5, 1, 1),
    "c5": (7, 6, 6, 12, 6, 0, 6),
    "delta": (13, 12, 3, 18, 15, 0, 3),
    "emps": (1, 1, 1, 1, 0, 0, 1),
    "four-bar": (3, 3, 1, 3, 2, 0, 1),
    "gough-stewart": (19, 18, 6, 24, 18, 0, 6),
    "hexaglide": (13, 12, 6, 24, 18, 0, 6),
    "linear-delta": (13, 12, 3, 18, 15, 0, 3),
    "orthoglide": (16, 15, 3, 21, 30, 12, 3),
    "par4": (13, 20, 4, 26, 23, 1, 4),
    "planar-cable": (5, 8, 4, 11, 8, 0, 3),
    "puma560": (6, 6, 6, 6, 0, 0, 6),
    "rx90": (6, 6, 6, 6, 0, 0, 6),
    "space": (10, 9, 6, 15, 9, 0, 6),
}
KEYS = ("bodies", "joints", "active", "total_coordinates", "closure_rows", "redundant_closures", "degrees_of_freedom")


@pytest.mark.parametrize("name", COUNTS)
def test_a_robot_has_the_freedoms_that_its_structure_gives_is_closed_at_home_and_cites_its_source(name, capsys):
    robot, table = parflex.load(name), read_table(CATALOGUE / f"{name}.toml")
    count = answered(capsys, "info", name)
    assert tuple(count[key] for key in KEYS) == COUNTS[name]
    assert count["independent_coordinates"] == len(robot.independent) == COUNTS[name][-1]
    assert count["active"] + count["passive"] == count["joints"]
    assert parflex.configure(robot, "home").closure_error < 1e-12  # Newton ends at rounding: 1e-16 of a metre
    assert table["name"] == name and table["title"] and len(table["reference"]["source"]) > 15


def test_every_rigid_robot_is_counted():
    assert {*COUNTS} == {*RIGID, *MACHINES}


def test_rows_that_repeat_others_are_named(capsys):
    # the first leg forbids two turns, the second forbids one of them again, the third both of its own
    assert answered(capsys, "info", "3-prrr")["names"]["redundant_closures"] == [
        "along_x.attachment~along_x.end: rotation y",
        "along_y.attachment~along_y.end: rotation x",
        "along_y.attachment~along_y.end: rotation z",
    ]
    (row,) = answered(capsys, "info", "bricard")["names"]["redundant_closures"]
    assert row.startswith("sixth hinge: rotation")


def test_joint_values_of_long2014_put_the_attachments_on_the_hexagon(figure):
    robot = parflex.load("gough-stewart")
    alone = parflex.frames(robot, parflex.Configuration(robot, robot.tree.start))  # legs as in Table 4, not closed
    worst = 0.0
    for leg, angle in enumerate(np.radians([-120, -60, 0, 60, 120, 180]), start=1):
        vertex = np.array([0.25, 0.433, 1.0]) + 0.5 * np.array([np.cos(angle), np.sin(angle), 0])
        worst = max(worst, float(np.linalg.norm(alone[f"leg{leg}.3"][0] - vertex)))
    figure("gough-stewart: attachments of [Long2014, Table 4] from the hexagon, metres", worst, 1e-3)
    assert worst < 1e-3  # Table 4 has three decimals of a radian and of a metre, on legs of one metre


def test_the_stroke_lengths_of_long2014_give_its_pose():
    robot = parflex.load("gough-stewart")
    position, rotation = parflex.frames(robot, "table-4")["platform"]
    error = np.abs([*(position - [0.25, 0.433, 1.0]), *Rotation.from_matrix(rotation).as_rotvec()])
    rounding = np.abs(parflex.jacobian(robot, "home")).sum(axis=1) * 5e-4  # Table 4 gives strokes to a millimetre
    assert np.all(error < rounding)


def test_the_c5_row_is_the_corrected_one_and_not_the_printed_one(figure):
    """A foot slides on its face, so its place on the platform is not constant: [Khalil2007, eq. (64)] forgets it."""
    robot, rng = parflex.load("c5"), np.random.default_rng(4)
    tree, ours_error, printed_error = robot.tree, 0.0, []
    for state in random_states(robot, 8, 3, Draws(), spread=0.05):
        configuration = state.configuration
        qd = configuration.rates(state.velocity)
        qdd = rng.uniform(-20, 20, tree.n)
        rows = robot.closures.bias(configuration.at, motion(tree, configuration.at, qd, qdd))
        p, R = parflex.frames(robot, configuration)["platform"]
        v, w, vd, wd = (R @ part for part in (qd[:3], qd[3:6], qdd[:3], qdd[3:6]))
        printed = []
        for k, axis in enumerate(np.repeat(np.eye(3), 2, axis=0)):
            stroke = robot.rates.index(f"leg{k + 1}.rod")
            foot = parflex.frames(robot, configuration)[f"leg{k + 1}.rod"][0] - p
            r, slide, push = R @ axis, axis * qd[stroke], axis * qdd[stroke]
            common = r @ (vd + np.cross(wd, foot))
            corrected = common + r @ np.cross(w, 2 * slide - 2 * v - np.cross(w, foot))
            ours_error = max(ours_error, abs(r @ push - corrected - rows[k]) / abs(corrected))
            printed.append(abs(r @ np.cross(w, slide - v) - (corrected - common)) / abs(corrected - common))
        printed_error.append(max(printed))
    figure("c5: our acceleration row against the corrected one", ours_error, 1e-11)
    figure("c5: printed acceleration row (64), relative error of its bias, smallest over poses", min(printed_error))
    assert ours_error < 1e-11  # a dozen products, small differences of them
    assert min(printed_error) > 0.03


def test_the_platform_of_the_delta_keeps_its_orientation():
    for x in (0.0, 0.08, -0.1):
        S, chosen = parflex.configure(parflex.load("delta"), {"x": x, "y": 0.5 * x, "z": -0.42}).platform_freedom()
        assert chosen == ["vx", "vy", "vz"]
        assert largest(S - np.eye(6)[:, :3]) < 1e-12  # a null space found by singular values


def test_the_rod_of_the_5r_turns_as_its_tip_asks():
    robot = parflex.load("5r")
    for pose in ("home", {"x": 0.1, "y": 0.45}, {"x": -0.12, "y": 0.5}):
        configuration = parflex.configure(robot, pose)
        S, chosen = configuration.platform_freedom()
        frames = parflex.frames(robot, configuration)
        foot, elbow, tip = (frames[name][0] for name in ("left.1", "left.2", "tip"))
        # the elbow moves at right angles to the crank: v . crank = w (z x rod) . crank
        crank, rod = elbow - foot, tip - elbow
        turning = crank[:2] / (np.cross([0, 0, 1], rod) @ crank)
        expected = np.zeros((6, 2))
        expected[:2], expected[5] = np.eye(2), turning
        assert chosen == ["vx", "vy"]
        assert largest(S - expected) < 1e-12 * largest(expected)  # a null space found by singular values


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
