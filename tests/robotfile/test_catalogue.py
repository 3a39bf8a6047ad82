"""The robots of the catalogue: counts and published numbers."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.catalogue import CATALOGUE, MACHINES, RIGID
from support.command_line import answered
from support.comparison import largest
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
