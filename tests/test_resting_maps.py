"""Equilibria, springs between points and condition numbers of many poses: against closed forms and single poses."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.optimize import brentq
from support.robots import load_robot

import parflex
from parflex.maps.responses import response_rows
from parflex.maps.rest import rest_solver
from parflex.maps.rows import single_positions


@pytest.fixture(scope="module")
def planar():
    robot = parflex.load("3rrr-flexible")
    names = list(robot.actuated_names)
    q = robot.home[[robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]]
    return robot, names, q + np.random.default_rng(3).uniform(-0.03, 0.03, (9, len(names)))


@pytest.mark.verify
def test_equilibria_of_many_poses_are_those_of_single_ones(planar):
    robot, names, poses = planar
    tip = robot.tree.end_effector
    load = {tip: [3000.0, -2000.0, 50.0]}
    beam = next(iter(parflex.deflection(robot).beams))
    asked = ["frequency:3", "damping:1", "shape:2", "motion:1", "strain:1", "stiffness", "compliance", "deflection"]
    asked += [f"effort:{names[1]}", f"stress:{beam}", "mass", "conditioning", "singularity"]
    many = parflex.many_responses(robot, names, poses, asked, wrench=load)
    assert many.method == "together" and not many.fallbacks and not many.status.any()
    for k in (0, 7):
        one = parflex.many_responses(robot, names, poses[k : k + 1], asked, wrench=load)
        assert one.method == "one by one"
        for word in asked:
            # both start from loops that are closed to 1e-11 of a length, each in its own way, which deflections feel
            near = 1e-11 if word == "deflection" else 2e-9 * np.abs(one[word]).max()
            assert many[word][k] == pytest.approx(one[word][0], rel=2e-9, abs=near), word


def swing_slope(angle, turn, order=1, k=3.0, rest=0.2, pull=40.0, length_at_rest=0.3, mass=2.0, reach=0.5):
    """Of the potential of `sprung-swing` along the angle of its bob, by hand: first or second derivative."""
    whole = turn + angle
    r = reach * np.array([np.cos(whole), np.sin(whole)])
    d = reach * np.array([-np.sin(whole), np.cos(whole)])
    line = r - np.array([0.1, 0.7])
    length = np.hypot(*line)
    rate = line @ d / length
    if order == 1:
        return mass * 9.81 * 0.4 * np.cos(whole) + k * (angle - rest) + pull * (length - length_at_rest) * rate
    bend = (d @ d - line @ r - rate**2) / length
    return -mass * 9.81 * 0.4 * np.sin(whole) + k + pull * (rate**2 + (length - length_at_rest) * bend)


def test_equilibria_beside_springs_and_gravity_are_those_of_the_potential():
    """Angle and frequency by hand: V = m g z + spring of the joint + spring between points, omega^2 = V'' / I."""
    robot = load_robot("sprung-swing")
    turns = np.linspace(-0.6, 0.6, 8)
    many = parflex.many_responses(robot, ["turn"], turns[:, None], ["frequency:1", "motion:1", "deflection:bob"])
    plain = parflex.many_frequencies(robot, ["turn"], turns[:, None], modes=1)
    assert many.method == "together" and not many.fallbacks and not plain.fallbacks
    inertia = 2 * 0.4**2 + 0.01
    for k, turn in enumerate(turns):
        start = robot.assemble({"turn": float(turn)})[1]
        angle = brentq(swing_slope, -1.5, 2.5, args=(turn,), xtol=1e-14)
        assert many["deflection:bob"][k, 4] == pytest.approx(-(angle - start), abs=1e-10)
        exact = np.sqrt(swing_slope(angle, turn, 2) / inertia) / (2 * np.pi)
        assert many["frequency:1"][k] == pytest.approx(exact, rel=1e-9)
        assert plain.frequencies[k, 0] == pytest.approx(exact, rel=1e-9)


def test_equilibria_with_designs_are_those_of_the_potential():
    """Each row has its own springs, mass and place of the tip."""
    robot = load_robot("sprung-swing")
    draw, count = np.random.default_rng(5), 8
    turns = np.linspace(-0.6, 0.6, count)
    own = {
        name: draw.uniform(*bounds, count)
        for name, bounds in {
            "k": (2, 4),
            "mass": (1, 3),
            "pull": (30, 50),
            "length_at_rest": (0.2, 0.4),
            "reach": (0.4, 0.6),
        }.items()
    }
    keys = {"k": "frame.bob.spring.stiffness", "mass": "frame.bob.inertia.mass", "pull": "element.cord.stiffness"}
    keys |= {"length_at_rest": "element.cord.rest", "reach": "point.tip.position.0"}
    designs = {keys[name]: values for name, values in own.items()}
    asked = ["frequency:1", "mass", "deflection:bob", "strain:1"]
    many = parflex.many_responses(robot, ["turn"], turns[:, None], asked, designs=designs, about="equilibrium")
    with pytest.warns(parflex.ParflexWarning, match="8 of 8 poses have springs under tension"):
        plain = parflex.many_frequencies(robot, ["turn"], turns[:, None], modes=1, designs=designs, shapes=True)
    assert many.method == "together" and not many.fallbacks and not plain.fallbacks, many.reason
    assert many["mass"] == pytest.approx(own["mass"], rel=1e-15)
    for k, turn in enumerate(turns):
        here = {name: values[k] for name, values in own.items()}
        angle = brentq(lambda a, turn=turn, here=here: swing_slope(a, turn, **here), -2.0, 2.5, xtol=1e-14)
        exact = np.sqrt(swing_slope(angle, turn, 2, **here) / (here["mass"] * 0.4**2 + 0.01)) / (2 * np.pi)
        start = robot.assemble({"turn": float(turn)})[1]
        assert many["deflection:bob"][k, 4] == pytest.approx(start - angle, abs=1e-10)
        assert many["frequency:1"][k] == pytest.approx(exact, rel=1e-9)
        assert plain.frequencies[k, 0] == pytest.approx(exact, rel=1e-9)
        assert plain.shapes[k, 0, 4] ** 2 == pytest.approx(1 / (here["mass"] * 0.4**2 + 0.01), rel=1e-9)


def test_equilibria_beyond_a_limit_point_are_marked():
    """A shallow truss: the load of its limit point is the largest of k (1 - l0 / l(z)) z on the way down."""
    robot = load_robot("truss")
    z = np.linspace(0, 0.05, 100001)
    limit = (1000 * (np.hypot(1, 0.05) / np.hypot(1, z) - 1) * z).max()
    lifts = np.linspace(0, 0.3, 6)[:, None]
    for share, marked in ((0.9, False), (20.0, True)):
        load = {"roof": [0, 0, -share * limit]}
        with pytest.warns(parflex.ParflexWarning, match="limit point") if marked else nullcontext():
            found = parflex.many_responses(robot, ["lift"], lifts, ["deflection:z"], wrench=load)
            alone = parflex.many_responses(robot, ["lift"], lifts[:1], ["deflection:z"], wrench=load)
        assert not found.status.any() and found.method == "together"
        assert all(("snaps through" in reason) == marked for reason in (*found.reasons, *alone.reasons))
        assert (found["deflection:z"] < -0.1).all() == marked
        bent = parflex.deflection(robot, {"lift": 0.0}, wrench=load)
        assert any("snaps through" in word for word in bent.warnings) == marked
        run = parflex.simulate(robot, None, 0.01, pose={"lift": 0.0}, start="equilibrium", wrench=load)
        assert any("snaps through" in word for word in run.summary["warnings"]) == marked


def test_bits_of_equilibria_depend_neither_on_threads_nor_on_chunks(planar, monkeypatch):
    robot, names, poses = planar
    load = {robot.tree.end_effector: [300.0, -200.0, 5.0]}
    whole = parflex.many_frequencies(robot, names, poses, modes=2, wrench=load, threads=1).frequencies
    monkeypatch.setattr(response_rows, "CHUNK_AT_REST", 4)
    halves = [parflex.many_frequencies(robot, names, poses, modes=2, wrench=load, threads=n) for n in (1, 2)]
    assert np.array_equal(halves[0].frequencies, halves[1].frequencies)
    # positions of fewer rows start otherwise: closed to 1e-12
    assert halves[0].frequencies == pytest.approx(whole, rel=1e-9)


def test_rows_that_programs_do_not_bring_to_rest_are_solved_one_by_one(planar, monkeypatch):
    robot, names, poses = planar
    load = {robot.tree.end_effector: [3000.0, -2000.0, 50.0]}
    whole = parflex.many_responses(robot, names, poses[:6], ["deflection"], wrench=load)
    monkeypatch.setattr(rest_solver, "STEPS", 1)
    alone = parflex.many_responses(robot, names, poses[:6], ["deflection"], wrench=load)
    assert not whole.fallbacks and alone.fallbacks == 6 and not alone.status.any()
    assert alone["deflection"] == pytest.approx(whole["deflection"], rel=1e-8, abs=1e-11)


@pytest.mark.parametrize("poses", [1, 6])
def test_what_is_free_and_moves_no_end_is_not_a_singularity_of_any_mesh(poses):
    """A ball behind the tip of a beam spins freely; the tip feels the beam alone: 3 E I / L^3 and E A / L."""
    rows = np.zeros((poses, 1))
    for elements in (1, 32):
        robot = load_robot("ball-arm", elements=elements)
        found = parflex.many_responses(robot, ["arm"], rows, ["compliance:link.tip"])
        assert not found.status.any()
        C = found["compliance:link.tip"][0]
        soft, stiff = 0.4**3 / (3 * 200e9 * 0.02 * 0.01**3 / 12), 0.4 / (200e9 * 0.02 * 0.01)
        turned = np.array([np.cos(0.9), 0, -np.sin(0.9)])
        assert turned @ C[:3, :3] @ turned == pytest.approx(stiff, rel=1e-6)
        assert np.linalg.eigvalsh(C[:3, :3])[2] == pytest.approx(soft, rel=1e-9)
        with pytest.raises(parflex.SingularError, match="nothing constrains"):
            parflex.cartesian_stiffness(robot)  # of the hand, which the ball leaves free


def test_conditions_of_many_poses_are_those_of_single_ones():
    robot = parflex.load("gough-stewart")
    names = ["x", "y", "z", "rx", "ry", "rz"]
    poses = np.array([0.25, 0.433, 1.0, 0, 0, 0]) + np.random.default_rng(1).uniform(-0.1, 0.1, (6, 6))
    found = parflex.many_responses(robot, names, poses, ["conditioning", "singularity"])
    assert found.method == "together" and not found.fallbacks
    here = parflex.configure(robot, dict(zip(names, poses[4].tolist(), strict=True))).condition
    assert found["conditioning"][4] == pytest.approx(here.platform, rel=1e-9)  # two ways of closing the loops
    worst = max(here.platform, here.closures, *here.legs.values())
    assert found["singularity"][4] == pytest.approx(1 / worst, rel=1e-9)
    assert max(here.legs.values()) > 1.0001


def test_a_response_without_an_answer_leaves_the_others_of_its_row():
    robot = load_robot("ball-arm")
    found = parflex.many_responses(robot, ["arm"], [[0.0], [0.3]], ["stiffness:hand", "frequency:1"])
    assert not found.status.any() and np.isfinite(found["frequency:1"]).all()
    assert np.isnan(found["stiffness:hand"]).all()
    assert all(reason.startswith("stiffness:hand: the stiffness is singular") for reason in found.reasons)
    with pytest.raises(parflex.InputError, match="modes are requested"):
        parflex.many_responses(robot, ["arm"], [[0.0], [0.3]], ["frequency:90", "stiffness:link.tip", "motion:90"])


def test_cells_of_a_five_bar_are_reached_where_its_links_reach_and_searches_are_few(monkeypatch):
    """Both cranks of 0.3 m and rods of 0.4 m span 0.1 to 0.7 m: what lies outside is proven, and costs no search."""
    robot = parflex.load("5r")
    poses = np.array([[x, y] for x in np.linspace(-1, 1, 11) for y in np.linspace(-0.2, 1, 11)])
    searched = []
    plain = type(robot).assemble
    monkeypatch.setattr(type(robot), "assemble", lambda *a, **k: searched.append(a) or plain(*a, **k))
    found = parflex.many_responses(robot, ["x", "y"], poses, ["conditioning"])
    spans = [np.hypot(poses[:, 0] - foot, poses[:, 1]) for foot in (-0.12, 0.12)]
    inside = np.all([(span > 0.1) & (span < 0.7) for span in spans], axis=0)
    assert inside.any() and np.array_equal(found.status == 0, inside)
    assert {reason[:26] for reason in np.array(found.reasons)[~inside]} == {"the pose cannot be reached"}
    assert len(searched) <= 8
    alone = single_positions.SinglePositions(robot, ["x", "y"], (0, 1, 2))
    _, status, said = alone(poses)
    assert np.array_equal(status == 0, inside) and len(searched) <= 16
    assert {reason[:26] for reason in np.array(said)[~inside]} == {"the pose cannot be reached"}
    # nothing proves the same cells: they are not called unreachable
    monkeypatch.setattr(single_positions.Reach, "excludes", lambda *_: False)
    monkeypatch.setattr(single_positions, "LEAST", 0)
    _, status, said = alone(np.array([[5.0, 0.5], *poses[inside][:3]]))
    assert status.tolist() == [1, 0, 0, 0] and "was not found" in said[0]


def test_an_interrupted_map_about_equilibria_goes_on_to_the_same_bits(planar, tmp_path, monkeypatch):
    robot, names, poses = planar
    load = {robot.tree.end_effector: [300.0, -200.0, 5.0]}
    monkeypatch.setattr(response_rows, "CHUNK_AT_REST", 4)
    middle = poses.mean(axis=0)
    over = [(name, value - 0.01, value + 0.01, 3) for name, value in zip(names[:2], middle[:2].tolist(), strict=True)]
    asked = {"fixed": {names[2]: float(middle[2])}, "modes": 1, "wrench": load, "responses": ["deflection:x"]}
    whole = parflex.frequency_map(robot, over, **asked, threads=2)

    def stop(done: int, _: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    part = parflex.frequency_map(robot, over, **asked, out=tmp_path / "map.npz", progress=stop)
    rest = parflex.frequency_map(robot, over, **asked, out=tmp_path / "map.npz")
    assert part.interrupted and 0 < rest.computed < 9
    assert np.array_equal(rest.frequencies, whole.frequencies)
    assert np.array_equal(rest.responses["deflection:x"], whole.responses["deflection:x"])
