"""Wrenches, stiffness and deflection at any place of a beam: closed forms and finer meshes."""

import numpy as np
import pytest
from support import bars
from support.command_line import answered
from support.robots import any_robot

import parflex
from parflex.robot.beam_nodes import at_nodes, is_between, with_nodes_at
from parflex.statics.modes import participation

L, GA = bars.LENGTH, 5 / 6 * bars.E / 2.6 * bars.AREA
PLACES = (0.1, 0.37, 0.62, 0.93)
CLOSED = '[[closure]]\nbetween = ["bar.tip", "wall"]\njoint = "{}"\n'
WALL = '[[point]]\nname = "wall"\nframe = "base"\nposition = [0.8, 0, 0]\n'
ENDS = {  # joint at the root, what holds the tip, and motions of a cantilever that these hold at the tip
    "cantilever": ("", "", []),
    "clamped": ("", WALL + CLOSED.format("welded"), [0, 1]),
    "propped": ("", WALL + CLOSED.format("revolute"), [0]),
    "supported": ('joint = "revolute"', WALL + CLOSED.format("revolute"), [0]),
}


def influence(x, a, stiff, soft):
    """Deflection and slope (rows) of a Timoshenko cantilever at x by a unit force and a unit moment (columns) at a."""
    if x <= a:
        rows = [[x**2 * (3 * a - x) / 6, x**2 / 2], [x * (2 * a - x) / 2, x]]
    else:
        rows = [[a**2 * (3 * x - a) / 6, a * (2 * x - a) / 2], [a**2 / 2, a]]
    return np.array(rows) / stiff + [[min(x, a) * soft, 0], [0, 0]]


def exact_motion(x, a, load, ends, stiff, soft=0.0):
    """Deflection and slope at x by a force and a moment at a: a cantilever with reactions at its tip, and a hinge."""
    held, turn = ENDS[ends][2], np.array([L, 1.0])  # motions of the tip by a turn of the root; also arms of reactions
    A = influence(L, L, stiff, soft)[np.ix_(held, held)]
    b = (influence(L, a, stiff, soft) @ load)[held]
    columns = influence(x, L, stiff, soft)[:, held]
    if ENDS[ends][0]:  # the root turns, and carries no moment
        A = np.block([[A, turn[held][:, None]], [turn[held][None], np.zeros((1, 1))]])
        b, columns = np.append(b, load @ [a, 1.0]), np.column_stack([columns, [x, 1.0]])
    return influence(x, a, stiff, soft) @ load - columns @ np.linalg.solve(A, b)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("keys", ["elements = 1", "elements = 3", "elements = 4, reduce = { error = 0.5, band = 20 }"])
@pytest.mark.parametrize("shear", [False, True], ids=["slender", "shear"])
def test_a_load_at_any_place_deflects_every_place_as_the_closed_form(tmp_path, ends, keys, shear):
    joint, closed, _ = ENDS[ends]
    robot = bars.beam(tmp_path, f"{keys}, shear = {str(shear).lower()}", closed, joint)
    frames = [f"bar@{s}" for s in PLACES]
    for a, load in ((0.37, [20.0, 0.0]), (0.37, [-20.0, 1.5]), (0.81, [0.0, -2.0])):
        push = {f"bar@{a}": [0.0, *load]}
        result = parflex.deflection(robot, frames=frames, about="undeformed", wrench=push)
        bent, nodes = result.frames, result.configuration.robot.nodes
        assert set(nodes) == {*frames, *push} or "reduce" in keys
        for s in PLACES:
            exact = exact_motion(s * L, a * L, np.array(load), ends, bars.EI, 1 / GA if shear else 0.0)
            assert bent[f"bar@{s}"][[1, 5]] == pytest.approx(exact, rel=1e-7, abs=1e-9 * np.abs(exact).max())


@pytest.mark.parametrize("ends", ["cantilever", "clamped"])
def test_compliance_in_both_directions_is_that_of_the_closed_form(tmp_path, ends):
    robot = bars.beam(tmp_path, "elements = 2, shear = true", ENDS[ends][1], motion="spatial")
    for s in PLACES:
        C = parflex.cartesian_stiffness(robot, frame=f"bar@{s}").compliance
        for stiff, k, n, sign in ((bars.EI, 1, 5, 1), (bars.E * bars.IY, 2, 4, -1)):
            exact = np.array([exact_motion(s * L, s * L, load, ends, stiff, 1 / GA) for load in np.eye(2)])
            exact *= [[1, sign], [sign, 1]]
            assert C[np.ix_([k, n], [k, n])] == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "beam"),
    [
        ("rolled-beams", "left"),
        ("geared-beams", "upper"),
        *(pytest.param(*case, marks=pytest.mark.verify) for case in (("navaro", "leg1.1"), ("dualemps", "13"))),
    ],
)
def test_places_of_coarse_beams_are_nodes_of_fine_ones(name, beam):
    """To first order the number of elements does not matter."""
    coarse = any_robot(name)
    fine, place, other = parflex.load(coarse.file, elements=8), f"{beam}@0.375", f"{beam}@0.625"
    assert is_between(coarse, place) and not is_between(fine, place)
    load = [9.0, -4.0, 2.0] if coarse.tree.planar else [9.0, -4.0, 2.0, 0.3, -0.1, 0.5]
    found = []
    for robot in (coarse, fine):
        C = parflex.cartesian_stiffness(robot, frame=place, about="undeformed").compliance
        bent = parflex.deflection(robot, frames=[other, beam + ".tip"], about="undeformed", wrench={place: load})
        forces = bent.beams[beam].table([0.0, 0.2, 0.5, 1.0])
        rows = [*bent.frames.values(), *(np.array(forces[word]) for word in ("N", "Vy", "Mz"))]
        found.append([C.ravel(), *rows, np.array(list(bent.efforts.values()))])
        assert sorted(entry["element"] for entry in bent.sections) == sorted(
            link.name for link in robot.tree.links if link.body.by_tip
        )
    for one, two in zip(*found, strict=True):
        assert one == pytest.approx(two, rel=1e-7, abs=1e-8 * np.abs(two).max())


def test_nodes_are_added_once_and_leave_the_others(tmp_path):
    robot = bars.beam(tmp_path, "elements = 3", elements=2)
    made = with_nodes_at(robot, ["bar@0.41", "bar@0.5", "bar.1", "bar@0.3334", "no@0.3", "bar@2"])
    assert made.nodes == ("bar@0.41",) and with_nodes_at(robot, ["bar@0.41"]) is made
    assert with_nodes_at(made, ["bar@0.41", "bar.0.1"]) is made and with_nodes_at(robot, ["bar.2"]) is robot
    names = [link.name for link in made.tree.links]
    assert [name for name in names if name != "bar@0.41"] == [link.name for link in robot.tree.links]
    places = [parflex.frames(which)["bar.2"].position for which in (robot, made)]
    assert places[0] == pytest.approx(places[1], abs=1e-15)
    assert with_nodes_at(with_nodes_at(robot, ["bar@0.2"]), ["bar@0.41"]).nodes == ("bar@0.2", "bar@0.41")
    modes = parflex.natural_frequencies(robot, modes=1, wrench={"bar@0.41": [0, 1, 0]})
    assert participation(modes.model.configuration, modes.shapes) == [{"bar": pytest.approx(1.0)}]
    further = parflex.natural_frequencies(made, modes=1, converge=1e-4)
    assert further.frequencies[0] == pytest.approx(bars.bending(1.8751041), rel=1e-4)


@pytest.mark.parametrize("name", ["navaro", "rolled-beams"])
def test_a_deformed_pose_is_the_same_one_with_more_nodes(name):
    robot = any_robot(name)
    beam = next(frame.name for frame in robot.description.frame if frame.beam is not None)
    push = {f"{beam}.tip": [3.0, -2.0, 0.1] if robot.tree.planar else [3.0, -2.0, 1.0, 0.1, 0.2, 0.3]}
    rest = parflex.equilibrium(robot, wrench=push).configuration
    made, here = at_nodes(robot, rest, [f"{beam}@0.37", f"{beam}@0.1"])
    assert made.tree.n > robot.tree.n and np.abs(rest.q[list(robot.tree.elastic)]).max() > 1e-6
    for frame in (*robot.tree.places, f"{beam}@0.37", f"{beam}@0.1"):
        (R, p), (R_made, p_made) = rest.at.of(rest.robot.tree.places[frame]), here.at.of(made.tree.places[frame])
        assert p_made == pytest.approx(p, abs=1e-13) and R_made == pytest.approx(R, abs=1e-12)
    assert here.closure_error < 1e-12
    bent = parflex.deflection(robot, rest, [f"{beam}@0.37"], wrench=push)
    again = parflex.deflection(robot, bent.configuration, [f"{beam}@0.37"], wrench=push)
    # at rest already: what is left is the mesh error of the first equilibrium, then nothing
    assert np.abs(again.frames[f"{beam}@0.37"]).max() < 1e-9 * np.abs(rest.q).max()


def test_robots_with_other_numbers_than_their_file_are_not_divided():
    robot = any_robot("geared-beams")
    held = parflex.equilibrium(robot, servo=1e4).robot
    with pytest.raises(parflex.InputError, match=r"cannot be divided at .upper@0\.37."):
        parflex.cartesian_stiffness(held, frame="upper@0.37", lock="none")
    locked = robot.locking(robot.tree.elastic)
    assert with_nodes_at(locked, ["upper@0.37"]) is locked


def test_a_payload_an_actuation_and_locked_joints_stay():
    robot = parflex.load("dualemps", payload=[2.0, 0.0, 0.1, 0.0])
    fixed = robot.locking([robot.actuated[0]])
    made = with_nodes_at(fixed, ["13@0.3"])
    assert sum(link.body.m for link in made.tree.links) == pytest.approx(sum(link.body.m for link in robot.tree.links))
    assert made.actuated_names == fixed.actuated_names
    assert [made.tree.rate_names[k] for k in made.locked] == [fixed.tree.rate_names[k] for k in fixed.locked]


def test_a_force_input_inside_a_beam_is_one_on_a_node(tmp_path):
    robot = bars.beam(tmp_path, "elements = 1")
    words = [f"bar@{s}.y" for s in PLACES]
    A, B, C, D = parflex.state_space(robot, ["bar@0.37.fy"], [*words, "velocity:bar@0.37.y"])
    assert A.shape == (12, 12) and not D.any()
    gain = (-C @ np.linalg.solve(A, B))[:, 0]
    exact = [exact_motion(s * L, 0.37 * L, np.array([1.0, 0.0]), "cantilever", bars.EI)[0] for s in PLACES]
    assert gain[:-1] == pytest.approx(exact, rel=1e-8)
    assert gain[-1] == pytest.approx(0.0, abs=1e-12)
    # power at the input is force times its velocity: both rows are of the same node
    assert (C @ B)[-1, 0] > 0


@pytest.mark.verify
def test_maps_and_sensitivities_under_a_load_inside_a_beam_are_those_of_single_poses(tmp_path):
    """Ten rows, so that equilibria are solved together; the largest error is that of a Newton step."""
    robot = bars.beam(tmp_path, joint=bars.HINGE, gravity=(0, -9.81, 0))
    push, angles = {"bar@0.6": [0, 2.0, 0.1]}, np.linspace(0.3, 0.5, 10)
    words = ["frequency:1", "deflection:bar.tip.y", "deflection:bar@0.4.y", "compliance:bar@0.4.y", "stress:bar"]
    many = parflex.many_responses(robot, ["bar"], angles[:, None], words, wrench=push)
    modes = parflex.many_frequencies(robot, ["bar"], angles[:, None], 1, wrench=push, shapes="all")
    grid = parflex.frequency_map(robot, [("bar", 0.3, 0.5, 10)], modes=1, wrench=push)
    for row in (0, 9):
        pose = {"bar": angles[row]}
        bent = parflex.deflection(robot, pose, ["bar.tip", "bar@0.4"], wrench=push)
        single = parflex.natural_frequencies(robot, pose, 1, wrench=push)
        stiff = parflex.cartesian_stiffness(robot, pose, "bar@0.4", wrench=push)
        exact = [single.frequencies[0], *(bent.frames[frame][1] for frame in ("bar.tip", "bar@0.4"))]
        exact += [stiff.compliance[1, 1], bent.largest_stress["value"]]
        # a node at 0.4 besides that at 0.6 changes the tip and the stress by its part of the mesh error
        assert [many[word][row] for word in words] == pytest.approx(exact, rel=2e-4)
        assert many["frequency:1"][row] == pytest.approx(exact[0], rel=1e-9)
        assert [modes.frequencies[row, 0], grid.frequencies[row, 0]] == pytest.approx([exact[0]] * 2, rel=1e-9)
        assert modes.shapes.shape[-1] == len(single.shapes)
    key, sizes = "sections.bar.y", [0.009, 0.012]
    designs = parflex.many_responses(robot, ["bar"], [[0.3], [0.5]], words[:1], designs={key: sizes}, wrench=push)
    for size, angle, frequency in zip(sizes, (0.3, 0.5), designs["frequency:1"], strict=True):
        own = parflex.natural_frequencies(
            parflex.load(robot.file, settings={key: size}), {"bar": angle}, 1, wrench=push
        )
        assert frequency == pytest.approx(own.frequencies[0], rel=1e-9)
    for word, value in (("frequency:1", exact[0]), ("deflection:bar@0.4.y", exact[2])):
        result = parflex.sensitivities(robot, word, ["sections.bar.y"], {"bar": 0.5}, wrench=push)
        assert result.value == pytest.approx(value, rel=1e-9)


def test_slopes_under_a_load_inside_a_beam_are_those_of_differences(tmp_path):
    robot = bars.beam(tmp_path, joint=bars.HINGE, gravity=(0, -9.81, 0))
    key, h = "frame.bar.beam.length", 1e-6
    push = {"bar@0.6": [0, 2.0, 0.1]}
    at_place = ("deflection:bar@0.4.y", "compliance:bar@0.4.y", "error:bar@0.4")
    for word in ("frequency:1", *at_place, "effort:bar", "stress:bar"):

        def value(size, word=word):
            own = parflex.load(robot.file, settings={key: size})
            return parflex.sensitivities(own, word, [key], {"bar": 0.3}, wrench=push).value

        slope = parflex.sensitivities(robot, word, [key], {"bar": 0.3}, wrench=push).sensitivities[key]["derivative"]
        assert slope == pytest.approx((value(L + h) - value(L - h)) / (2 * h), rel=1e-5)


def test_commands_answer_at_places_as_the_functions(tmp_path, capsys):
    robot = bars.beam(tmp_path, "elements = 2")
    for about in ("undeformed", "equilibrium"):
        load = ["--wrench", "bar@0.3=0,5,0"] if about == "equilibrium" else []
        answer = answered(capsys, "stiffness", robot.file, "--frame", "bar@0.37", "--about", about, *load)
        push = {"wrench": {"bar@0.3": [0, 5, 0]}} if load else {}
        C = parflex.cartesian_stiffness(robot, frame="bar@0.37", about=about, **push).compliance
        assert np.array(answer["compliance"]) == pytest.approx(C, rel=1e-7)
    words = ["--input", "bar@0.37.fy", "--output", "bar@0.2.y", "--frequencies", "0:1:2"]
    response = answered(capsys, "statespace", robot.file, *words)["response"]["real"][0][0][0]
    exact = exact_motion(0.2 * L, 0.37 * L, np.array([1.0, 0.0]), "cantilever", bars.EI)[0]
    assert response == pytest.approx(exact, rel=1e-8)
