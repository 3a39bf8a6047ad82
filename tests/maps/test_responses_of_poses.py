"""Responses at many poses and designs, and about equilibria: against functions of single poses and closed forms."""

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from support.differences import value_of_response
from support.maps import number_at, small_chunks
from support.robots import load_robot

import parflex
from parflex.maps import linear_models, positions
from parflex.statics.equilibrium_solver import Equilibria

DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")


@pytest.fixture(scope="module")
def robots():
    return {name: parflex.load(name) for name in ("gough-stewart-beams", "dualemps", "3rrr-flexible")}


def poses_of(robot, count: int, seed: int = 2) -> tuple[list[str], np.ndarray]:
    """Motor positions around home; of six legs the pose of the platform, from which each leg follows by itself."""
    if robot.name == "gough-stewart-beams":
        shift = np.random.default_rng(seed).uniform(-0.05, 0.05, (count, 6))
        return list(DIRECTIONS), np.array([0.25, 0.433, 1.0, 0.0, 0.0, 0.0]) + shift
    names = list(robot.actuated_names)
    q = robot.home[[robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]]
    spread = 0.03 * robot.tree.rate_units[list(robot.actuated)]
    return names, q + np.random.default_rng(seed).uniform(-1, 1, (count, len(names))) * spread


@pytest.mark.few
@pytest.mark.parametrize("name", ["gough-stewart-beams", "dualemps", "3rrr-flexible"])
def test_responses_of_many_poses_are_those_of_single_ones(robots, name):
    robot = robots[name]
    names, poses = poses_of(robot, 64)
    tip = robot.tree.end_effector
    asked = ["frequency:1", "frequency:4", "damping:2", f"stiffness:{tip}", f"compliance:{tip}", f"deflection:{tip}"]
    result = parflex.many_responses(robot, names, poses, [*asked, "strain:1", "stiffness:x", "deflection:rz"])
    assert not result.status.any() and result.fallbacks == 0 and result.method == "together"
    for k, pose in enumerate(poses[:3]):
        at = dict(zip(names, pose.tolist(), strict=True))
        modes = parflex.natural_frequencies(robot, at, modes=4)
        frame = parflex.cartesian_stiffness(robot, at)
        bent = parflex.deflection(robot, at, about="undeformed")
        # rounding of K, whose condition number is up to 1e8 before it is scaled
        assert result["frequency:4"][k] == pytest.approx(modes.frequencies[3], rel=1e-9)
        assert result["damping:2"][k] == pytest.approx(modes.damping[1], rel=1e-9, abs=1e-15)
        for word in ("stiffness", "compliance"):
            exact = getattr(frame, word)
            assert result[f"{word}:{tip}"][k] == pytest.approx(exact, rel=1e-9, abs=1e-9 * np.abs(exact).max())
        assert result["stiffness:x"][k] == result[f"stiffness:{tip}"][k, 0, 0]
        moved = bent.frames[tip]
        tiny = 1e-9 * max(np.abs(moved).max(), 1e-12)
        assert result[f"deflection:{tip}"][k] == pytest.approx(moved, rel=1e-9, abs=tiny)
        assert result["deflection:rz"][k] == result[f"deflection:{tip}"][k, 5]
        assert result["strain:1"][k].sum() == pytest.approx(1.0, rel=1e-12)
    assert result.units["stiffness:x"] == "N/m" and result.units["deflection:rz"] == "rad"


def test_kinds_that_are_solved_pose_by_pose_are_those_of_single_poses(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 2)
    motor, beam = names[0], next(iter(parflex.deflection(robot).beams))
    asked = ["conditioning", "singularity", f"effort:{motor}", f"stress:{beam}", "mass", "motion:2"]
    result = parflex.many_responses(robot, names, poses, asked)
    for k, pose in enumerate(poses):
        at = dict(zip(names, pose.tolist(), strict=True))
        here, bent = parflex.configure(robot, at).condition, parflex.deflection(robot, at)
        assert result["conditioning"][k] == pytest.approx(here.platform, rel=1e-9)  # Newton of two ways of assembly
        assert result["singularity"][k] == pytest.approx(1 / max(here.platform, *here.legs.values(), here.closures))
        assert result[f"effort:{motor}"][k] == pytest.approx(bent.efforts[motor], rel=1e-8)
        assert result[f"stress:{beam}"][k] > 0
        shapes = parflex.natural_frequencies(robot, at, 2).shapes[:, 1]
        assert result["motion:2"][k] == pytest.approx(shapes, abs=1e-6 * np.abs(shapes).max())
    assert result["mass"] == pytest.approx([sum(link.body.m for link in robot.tree.links)] * 2)


def test_responses_under_a_wrench_are_those_of_the_equilibrium_or_of_first_order(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 2)
    load = {robot.tree.end_effector: [3000.0, -2000.0, 50.0]}
    rest = parflex.many_responses(robot, names, poses, ["deflection", "frequency:1"], wrench=load)
    first = parflex.many_responses(robot, names, poses, ["deflection"], wrench=load, about="undeformed")
    many = parflex.many_frequencies(robot, names, poses, modes=2, wrench=load, shapes=True)
    for k, pose in enumerate(poses):
        at = dict(zip(names, pose.tolist(), strict=True))
        for result, about in ((rest, None), (first, "undeformed")):
            moved = parflex.deflection(robot, at, wrench=load, about=about).frames[robot.tree.end_effector]
            # both start from loops that are closed to 1e-11 of a length, each in its own way
            assert result["deflection"][k] == pytest.approx(moved, rel=1e-8, abs=1e-11)
        one = parflex.natural_frequencies(robot, at, 2, wrench=load).frequencies
        assert many.frequencies[k] == pytest.approx(one, rel=1e-9)
        assert rest["frequency:1"][k] == pytest.approx(one[0], rel=1e-9)
    assert np.abs(rest["deflection"] - first["deflection"]).max() > 1e-9
    with pytest.raises(parflex.InputError, match="have no effect"):
        parflex.many_frequencies(robot, names, poses, wrench=load, about="undeformed")


def test_designs_of_responses_are_those_of_robots_loaded_one_by_one(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 4)
    key = "sections.rod.diameter"
    value = number_at(robot, key)
    designs = {key: value * np.array([0.95, 1.05, -1.0, np.nan])}
    asked = ["stiffness:x", "deflection:y", "frequency:2", "damping:1", "mass"]
    result = parflex.many_responses(robot, names, poses, asked, designs=designs)
    assert result.status.tolist() == [0, 0, 3, 3] and "not a finite number" in result.reasons[3]
    for k in range(2):
        other = parflex.load("3rrr-flexible", settings={key: float(designs[key][k])})
        one = parflex.many_responses(other, names, poses[k : k + 1], asked)
        for word in asked:
            assert result[word][k] == pytest.approx(one[word][0], rel=1e-9)  # the same matrices, rounded otherwise


def test_the_order_of_rows_the_size_of_chunks_and_the_number_of_threads_change_nothing(robots, monkeypatch):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 12)
    asked = ["frequency:1", "stiffness:x"]
    whole = parflex.many_responses(robot, names, poses, asked, threads=1)
    plain = parflex.many_frequencies(robot, names, poses, modes=2, threads=1)
    small_chunks(monkeypatch, 5)
    order = np.random.default_rng(0).permutation(12)
    one, two = (parflex.many_responses(robot, names, poses, asked, threads=n) for n in (1, 2))
    mixed = parflex.many_responses(robot, names, poses[order], asked, threads=2)
    for word in asked:
        assert np.array_equal(one[word], two[word])
        # Newton may start elsewhere: closed to 1e-12, which stiff directions feel
        assert one[word] == pytest.approx(whole[word], rel=1e-9)
        assert mixed[word] == pytest.approx(whole[word][order], rel=1e-9)
    halves = [parflex.many_frequencies(robot, names, poses, modes=2, threads=n).frequencies for n in (1, 2)]
    assert np.array_equal(*halves) and halves[0] == pytest.approx(plain.frequencies, rel=1e-9)


def test_rows_that_are_not_numbers_are_marked_without_a_warning(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 3)
    poses[1, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        many = parflex.many_frequencies(robot, names, poses, modes=2, shapes=True)
        result = parflex.many_responses(robot, names, poses, ["stiffness:x", "conditioning"])
        designs = {"sections.rod.diameter": [0.02, 0.021, np.inf]}
        varied = parflex.many_frequencies(robot, names, poses, modes=2, designs=designs)
    for status, reasons in ((many.status, many.reasons), (result.status, result.reasons)):
        assert status.tolist() == [0, 1, 0] and reasons[1] == f"'{names[0]}' is not a finite number in this row"
    assert np.isnan(many.shapes[1]).all() and np.isnan(result["stiffness:x"][1])
    assert varied.status[1] == 1 and "not a finite number" in varied.reasons[1]
    assert varied.status[2] == 3 and "not a finite number" in varied.reasons[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["loudness"], "'loudness' is not a response"),
        (["frequency:one"], "is not a mode"),
        (["stiffness:nowhere"], "there is no frame"),
        (["effort:nobody"], "there is no motor"),
        (["mass", "mass"], "twice"),
        (["frequency:1000"], "modes are requested, but the robot has"),
    ],
)
def test_invalid_responses_are_refused(robots, words, said):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 1)
    with pytest.raises(parflex.InputError, match=said) as refusal:
        parflex.many_responses(robot, names, poses, words)
    assert "\n" not in str(refusal.value)


def test_a_rigid_direction_has_no_stiffness_and_no_compliance(robots):
    robot = robots["3rrr-flexible"]
    names, poses = poses_of(robot, 1)
    result = parflex.many_responses(robot, names, poses, ["compliance:leg1.1", "stiffness:leg1.1"])
    one = parflex.cartesian_stiffness(robot, dict(zip(names, poses[0].tolist(), strict=True)), frame="leg1.1")
    assert one.stiffness is None and np.isnan(result["stiffness:leg1.1"]).all()
    assert result["compliance:leg1.1"][0] == pytest.approx(one.compliance, abs=1e-18)


@pytest.mark.parametrize("rows", [[[0.1, 0.2]], "home"])
def test_poses_with_another_number_of_columns_are_refused(robots, rows):
    for ask in (parflex.many_frequencies, lambda *given: parflex.many_responses(*given, ["mass"])):
        with pytest.raises(parflex.InputError, match="poses"):
            ask(robots["3rrr-flexible"], ["x", "y", "theta"], rows)


def test_rows_that_are_solved_one_by_one_report_reason_and_progress(robots):
    seen, words = [], ["inertia:leg1.1"]
    note = lambda *n: seen.append(n)  # noqa: E731
    result = parflex.many_responses(robots["3rrr-flexible"], ["x", "y"], np.zeros((3, 2)), words, progress=note)
    assert result.units == {"inertia:leg1.1": "kg m^2"} and seen == [(3, 3)]
    assert result.method == "one by one" and result.reason == "inertia:leg1.1: computed pose by pose"


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


def test_equilibria_with_designs_are_those_of_the_potential():
    robot = load_robot("sprung-swing")
    draw, count = np.random.default_rng(5), 8
    turns = np.linspace(-0.6, 0.6, count)
    ranges = {"k": (2, 4), "mass": (1, 3), "pull": (30, 50), "length_at_rest": (0.2, 0.4), "reach": (0.4, 0.6)}
    own = {name: draw.uniform(*bounds, count) for name, bounds in ranges.items()}
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


@pytest.mark.verify
def test_equilibria_beyond_a_limit_point_are_refused():
    """A shallow truss: the load of its limit point is the largest of k (1 - l0 / l(z)) z on the way down."""
    robot = load_robot("truss")
    z = np.linspace(0, 0.05, 100001)
    limit = (1000 * (np.hypot(1, 0.05) / np.hypot(1, z) - 1) * z).max()
    lifts = np.linspace(0, 0.3, 6)[:, None]
    for share in (0.9, 20.0):
        load = {"roof": [0, 0, -share * limit]}
        result = parflex.many_responses(robot, ["lift"], lifts, ["deflection:z"], wrench=load)
        assert bool(result.status.all()) == bool(result.status.any()) == (share > 1)
        assert all(("% of them 'roof' becomes unstable" in reason) == (share > 1) for reason in result.reasons)


def no_equilibria(model, q):
    none = np.zeros(len(q), dtype=bool)
    return Equilibria(q, none, 0.0 * none, none.astype(int), {}, set())


@pytest.mark.verify
def test_rows_that_programs_do_not_bring_to_rest_are_solved_one_by_one(planar, monkeypatch):
    robot, names, poses = planar
    load = {robot.tree.end_effector: [3000.0, -2000.0, 50.0]}
    whole = parflex.many_responses(robot, names, poses[:6], ["deflection"], wrench=load)
    monkeypatch.setattr(linear_models, "find_equilibria", no_equilibria)
    alone = parflex.many_responses(robot, names, poses[:6], ["deflection"], wrench=load)
    assert not whole.fallbacks and alone.fallbacks == 6 and not alone.status.any()
    assert alone["deflection"] == pytest.approx(whole["deflection"], rel=1e-8, abs=1e-11)


@pytest.mark.parametrize("poses", [1, 6])
def test_free_spins_behind_a_frame_leave_its_stiffness_regular(poses):
    """A ball behind the tip of a beam spins freely; the tip feels the beam alone: 3 E I / L^3 and E A / L."""
    rows = np.zeros((poses, 1))
    for elements in (1, 32):
        robot = load_robot("ball-arm", elements=elements)
        result = parflex.many_responses(robot, ["arm"], rows, ["compliance:link.tip"])
        assert not result.status.any()
        C = result["compliance:link.tip"][0]
        soft, stiff = 0.4**3 / (3 * 200e9 * 0.02 * 0.01**3 / 12), 0.4 / (200e9 * 0.02 * 0.01)
        turned = np.array([np.cos(0.9), 0, -np.sin(0.9)])
        assert turned @ C[:3, :3] @ turned == pytest.approx(stiff, rel=1e-6)
        assert np.linalg.eigvalsh(C[:3, :3])[2] == pytest.approx(soft, rel=1e-9)
        with pytest.raises(parflex.SingularError, match="nothing constrains"):
            parflex.cartesian_stiffness(robot)  # of the hand, which the ball leaves free


def test_a_response_without_an_answer_leaves_the_others_of_its_row():
    robot = load_robot("ball-arm")
    result = parflex.many_responses(robot, ["arm"], [[0.0], [0.3]], ["stiffness:hand", "frequency:1"])
    assert not result.status.any() and np.isfinite(result["frequency:1"]).all()
    assert np.isnan(result["stiffness:hand"]).all()
    assert all(reason.startswith("stiffness:hand: the stiffness is singular") for reason in result.reasons)
    with pytest.raises(parflex.InputError, match="modes are requested"):
        parflex.many_responses(robot, ["arm"], [[0.0], [0.3]], ["frequency:90", "stiffness:link.tip", "motion:90"])


@pytest.mark.verify
def test_cells_of_a_five_bar_are_reached_where_its_links_reach_and_searches_are_few(monkeypatch):
    """Both cranks of 0.3 m and rods of 0.4 m span 0.1 to 0.7 m: what lies outside is proven, and costs no search."""
    robot = parflex.load("5r")
    poses = np.array([[x, y] for x in np.linspace(-1, 1, 11) for y in np.linspace(-0.2, 1, 11)])
    searched = []
    plain = type(robot).assemble
    monkeypatch.setattr(type(robot), "assemble", lambda *a, **k: searched.append(a) or plain(*a, **k))
    result = parflex.many_responses(robot, ["x", "y"], poses, ["conditioning"])
    spans = [np.hypot(poses[:, 0] - foot, poses[:, 1]) for foot in (-0.12, 0.12)]
    inside = np.all([(span > 0.1) & (span < 0.7) for span in spans], axis=0)
    assert inside.any() and np.array_equal(result.status == 0, inside)
    assert {reason[:26] for reason in np.array(result.reasons)[~inside]} == {"the pose cannot be reached"}
    assert len(searched) <= 8
    alone = positions.SinglePositions(robot, ["x", "y"])
    _, status, said = alone(poses)
    assert np.array_equal(status == 0, inside) and len(searched) <= 16
    assert {reason[:26] for reason in np.array(said)[~inside]} == {"the pose cannot be reached"}
    # nothing proves the same cells: they are not called unreachable
    monkeypatch.setattr(positions.Reach, "excludes", lambda *_: False)
    monkeypatch.setattr(positions, "LEAST", 0)
    _, status, said = alone(np.array([[5.0, 0.5], *poses[inside][:3]]))
    assert status.tolist() == [1, 0, 0, 0] and "was not found" in said[0]


LIMITS = [-0.6, 0.3]


def delta_angles(robot, poses):
    """Motor angles of the three legs of a Delta robot in closed form, elbows outside."""
    words = ("base_radius", "platform_radius", "arm", "rod")
    base, platform, arm, rod = (number_at(robot, f"constants.{word}") for word in words)
    angles = []
    for gamma in (0.0, 2 * np.pi / 3, -2 * np.pi / 3):
        out = np.cos(gamma) * poses[:, 0] + np.sin(gamma) * poses[:, 1] + platform - base
        aside = np.cos(gamma) * poses[:, 1] - np.sin(gamma) * poses[:, 0]
        share = (out**2 + aside**2 + poses[:, 2] ** 2 + arm**2 - rod**2) / (2 * arm * np.hypot(out, poses[:, 2]))
        with np.errstate(invalid="ignore"):
            angles.append(np.arctan2(poses[:, 2], out) + np.arccos(share))
    return np.array(angles).T


@pytest.mark.parametrize("count", [8, 80])  # by arrays, and by machine code
def test_limits_of_joints_bound_poses_and_areas_as_closed_form_inverse_kinematics_does(count):
    robot = parflex.load("delta", settings={"legs.frame.0.limits": LIMITS})
    middles = (np.arange(count) + 0.5) / count * 0.8 - 0.4
    poses = np.stack([*np.meshgrid(middles, middles, indexing="ij"), np.full((count, count), -0.4)], axis=-1)
    poses = poses.reshape(-1, 3)
    angles = delta_angles(robot, poses)
    within = np.all((angles >= LIMITS[0]) & (angles <= LIMITS[1]), axis=1)
    reached = np.isfinite(angles).all(axis=1)
    area = value_of_response(robot, f"area:x,-0.4,0.4,{count};y,-0.4,0.4,{count};z,-0.4")
    assert area == pytest.approx(within.sum() * (0.8 / count) ** 2, rel=1e-12) and 0 < within.sum() < reached.sum()
    if count == 8:
        found = parflex.many_responses(robot, ["x", "y", "z"], poses, ["mass"])
        assert np.array_equal(found.status, np.where(within, 0, np.where(reached, 4, 1)))
        told = np.array(["arm' is outside its limits" in text for text in found.reasons])
        assert np.array_equal(told, found.status == 4)
        assert np.isfinite(found["mass"][within]).all() and np.isnan(found["mass"][~within]).all()
        free = parflex.many_responses(robot, ["x", "y", "z"], poses, ["mass"], ignore_limits=True)
        assert np.array_equal(free.status, np.where(reached, 0, 1))
        pose = dict(zip("xyz", poses[np.flatnonzero(reached & ~within)[0]], strict=True))
        requested = [{"x": 0.0, "y": 0.0, "z": -0.4}, pose, {"x": 0.0, "y": 0.0, "z": -2.0}]
        assert [value_of_response(robot, "reachable", [at]) for at in requested] == [1, 0, 0]


def test_maps_of_rigid_robots_have_responses_and_no_modes(tmp_path):
    robot = parflex.load("delta", settings={"legs.frame.0.limits": LIMITS})
    axes, asked = [("x", -0.4, 0.4, 5), ("y", -0.4, 0.4, 5)], ["conditioning", "limit_margin", "limit_margin:leg2.arm"]
    found = parflex.frequency_map(robot, axes, {"z": -0.4}, responses=asked, out=tmp_path / "map.npz")
    poses = np.stack([*np.meshgrid(*found.axes.values(), indexing="ij"), np.full((5, 5), -0.4)], axis=-1)
    angles = delta_angles(robot, poses.reshape(-1, 3)).reshape(5, 5, 3)
    margins = np.minimum(angles - LIMITS[0], LIMITS[1] - angles) / (LIMITS[1] - LIMITS[0])
    assert found.frequencies.shape == (5, 5, 0) and 0 < found.count(0) < 25 and "no frequency" in repr(found)
    assert np.array_equal(found.status == 0, margins.min(axis=-1) > 0)
    reached = found.status == 0
    assert found.responses["limit_margin"][reached] == pytest.approx(margins.min(axis=-1)[reached], abs=1e-9)
    assert found.responses["limit_margin:leg2.arm"][reached] == pytest.approx(margins[..., 1][reached], abs=1e-9)
    one = parflex.configure(robot, dict(zip("xyz", poses[2, 2], strict=True))).condition.platform
    assert found.responses["conditioning"][2, 2] == pytest.approx(one, rel=1e-9)
    with pytest.raises(parflex.InputError, match="no frequencies"):
        found.lowest_over(["x"])
    with pytest.raises(parflex.InputError, match="nothing can move"):
        parflex.frequency_map(robot, axes, {"z": -0.4})


def test_limits_of_designs_bound_their_own_rows():
    robot = parflex.load("delta", settings={"legs.frame.0.limits": LIMITS})
    poses, above = np.array([[0.0, 0.0, -0.4]] * 3), np.array([0.1, -0.34, 0.0])
    angle = delta_angles(robot, poses[:1])[0, 0]  # about -0.336
    found = parflex.many_responses(robot, list("xyz"), poses, ["mass"], designs={"legs.frame.0.limits.1": above})
    assert found.status.tolist() == [4 * int(angle > limit) for limit in above] == [0, 4, 0]


@pytest.mark.verify
def test_an_interrupted_map_about_equilibria_goes_on_to_the_same_bits(planar, tmp_path, monkeypatch):
    robot, names, poses = planar
    load = {robot.tree.end_effector: [300.0, -200.0, 5.0]}
    small_chunks(monkeypatch, 4)
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
