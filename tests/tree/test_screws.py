"""Screws (helical joints) against closed forms, Lagrange's equations and Pinocchio's own helical joint."""

import numpy as np
import pytest
from support.comparison import error_against, largest, nearby_states
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex.codegen.family import family_model, member_model

M, PITCH = 3.0, 0.02  # a body whose centre is 0.04 m off the axis
INERTIA = 0.05 + M * 0.04**2 + M * PITCH**2
WEIGHT = M * 9.81 * PITCH
KINDS = ["helical", "revolute", "prismatic", "helical", "universal", "spherical", "cylindrical", "helical"]


def screw(**settings):
    return load_robot("nut-on-screw", settings={f"frame.0.{key}": value for key, value in settings.items()})


def test_a_body_on_an_upright_screw_falls_as_its_inertia_and_its_pitch_say(figure):
    robot = screw()
    fall = parflex.forward_dynamics(robot, {"nut": 2.0}, {"nut": 7.0}, {"nut": 0.0}).accelerations[0]
    assert fall == pytest.approx(-WEIGHT / INERTIA, rel=1e-13)
    lifted = parflex.inverse_dynamics(robot, {"nut": 2.0}, {"nut": 7.0}, {"nut": 5.0}).efforts["nut"]
    assert lifted == pytest.approx(INERTIA * 5 + WEIGHT, rel=1e-13)
    assert parflex.mass_matrix(robot)[0] == pytest.approx(np.array([[INERTIA]]), rel=1e-13)
    run = parflex.simulate(robot, None, 3.0, step=2e-3, out_step=0.1)
    error = largest(run["q.nut"] + WEIGHT / INERTIA / 2 * run["t"] ** 2)
    figure("fall of a body on a screw over many turns, rad", error, 1e-9)
    assert run["q.nut"][-1] < -6 * np.pi
    assert error < 1e-9  # of 27 rad
    assert largest(run["nut.z"] - PITCH * run["q.nut"]) < 1e-14


def test_energies_frames_and_jacobian_of_a_screw():
    robot, q, rate = screw(), 9.0, 3.0
    kinetic, potential = parflex.energies(robot, {"nut": q}, {"nut": rate})
    assert kinetic == pytest.approx(INERTIA * rate**2 / 2, rel=1e-13)
    assert potential - parflex.energies(robot, {"nut": 0.0}).potential == pytest.approx(WEIGHT * q, rel=1e-12)
    p, R = parflex.frames(robot, {"nut": q})["nut"]
    assert p == pytest.approx([0, 0, PITCH * q], abs=1e-15)
    assert R[:, 0] == pytest.approx([np.cos(q), np.sin(q), 0], abs=1e-15)
    assert parflex.jacobian(robot, {"nut": q}).matrix[:, 0] == pytest.approx([0, 0, PITCH, 0, 0, 1], abs=1e-15)


def test_a_spring_in_a_screw_has_the_frequency_of_its_inertia():
    robot = screw(actuated=False, spring={"stiffness": 40}, motor_inertia=0.01)
    expected = np.sqrt(40 / (INERTIA + 0.01)) / (2 * np.pi)
    assert parflex.natural_frequencies(robot).frequencies == pytest.approx([expected], rel=1e-12)
    assert parflex.equilibrium(robot).configuration.q == pytest.approx([-WEIGHT / 40], rel=1e-10)


def test_a_table_on_a_ball_screw_moves_as_written_by_hand(figure):
    """Shaft of 5e-4 kg m2, table of 20 kg uphill of the screw by x = -p q."""
    robot, p = load_robot("ball-screw"), 0.005 / (2 * np.pi)
    inertia, weight = 5e-4 + 20 * p**2, -20 * 9.81 * p * np.sin(0.4)
    here = parflex.configure(robot, {"screw": -50.0})
    assert here.q == pytest.approx([50 * p, -50], rel=1e-12)
    found = parflex.inverse_dynamics(robot, here, {"screw": 30.0}, {"screw": 200.0})
    assert found.rates == pytest.approx([-30 * p, 30], rel=1e-12)
    assert found.efforts["screw"] == pytest.approx(inertia * 200 + weight, rel=1e-11)
    program = parflex.model(robot, "direct")
    out = program(q=here.q, qd=found.rates[[robot.rates.index(program.labels["qd"][0])]], effort=np.array([0.7]))
    share = [-p, 1.0][program.labels["qdd"] == ["screw"]]
    assert out["qdd"][0] / share == pytest.approx((0.7 - weight) / inertia, rel=1e-10)
    run = parflex.simulate(robot, None, 1.0, step=1e-3, out_step=0.05, effort={"screw": 0.0})
    error = largest(run["q.screw"] + weight / inertia / 2 * run["t"] ** 2) / largest(run["q.screw"])
    figure.below("table that slides down on a ball screw, relative error", error, 1e-10)
    assert run["closure_error"].max() < 1e-12
    assert run["q.screw"][-1] > 8 * np.pi


@pytest.mark.parametrize("x", [0.3, -0.8])
def test_a_ball_screw_is_posed_over_hundreds_of_turns(x):
    robot = load_robot("ball-screw")
    here = parflex.configure(robot, {"table": x})
    assert here.q == pytest.approx([x, -x / (0.005 / (2 * np.pi))], rel=1e-10)
    assert parflex.configure(robot, {"table.x": x * np.cos(0.4)}).q == pytest.approx(here.q, rel=1e-9)


def test_a_nut_held_from_turning_moves_along_its_shaft():
    """The same by another loop: a motor turns the shaft, the nut slides along the base."""
    robot = load_robot("nut-on-shaft")
    for angle in (4.0, -4.0, -3.0, 20 * np.pi, -2000.0):  # the loop closes at every whole turn, with the nut elsewhere
        assert parflex.configure(robot, {"shaft": angle}).q == pytest.approx([angle, -angle], rel=1e-10)
    found = parflex.inverse_dynamics(robot, {"shaft": 0.7}, {"shaft": 3.0}, {"shaft": 11.0})
    assert found.rates == pytest.approx([3, -3]) and found.accelerations == pytest.approx([11, -11])
    assert found.efforts["shaft"] == pytest.approx((2e-3 + 7 * 0.01**2) * 11 - 7 * 9.81 * 0.01, rel=1e-11)


def made_up(rng, kinds):
    """A chain with branches of these joints, everything about it drawn."""
    lines = ["format = 1", 'name = "made-up"', "gravity = [1.1, -2.0, -9.3]"]
    names = ["base"]
    for k, kind in enumerate(kinds):
        a, b, c = rng.uniform(-0.3, 0.3, (3, 3)).round(3).tolist()
        principal = rng.uniform(0.02, 0.04, 3).round(4).tolist()
        lines += ["[[frame]]", f'name = "f{k}"', f'parent = "{names[max(0, k - int(rng.integers(0, 2)))]}"']
        lines += [f'joint = "{kind}"', "actuated = true", f"place = {{ position = {a}, rotation = {b} }}"]
        lines += [f"inertia = {{ mass = {rng.uniform(0.5, 2):.3f}, centre = {c}, about_centre = {principal} }}"]
        if kind in ("helical", "revolute", "prismatic"):
            lines += [f"motor_inertia = {rng.uniform(0, 0.1):.3f}", f"damper = {rng.uniform(0, 1):.3f}"]
            lines += [f"spring = {{ stiffness = {rng.uniform(0, 20):.2f}, rest = 0.3 }}"]
            lines += ["friction = { viscous = 0.2, coulomb = 0.1 }", f"start = {rng.uniform(-1, 1):.3f}"]
        lines += [f"pitch = {rng.choice([-1, 1]) * rng.uniform(0.01, 0.3):.4f}"] if kind == "helical" else []
        names.append(f"f{k}")
    return "\n".join(lines) + "\n"


def tree(folder, seed, kinds, name="tree"):
    return parflex.load(write_robot(folder, made_up(np.random.default_rng(seed), kinds), name))


@pytest.mark.parametrize("oracle", [EnergyModel, PinocchioTree])
@pytest.mark.parametrize("seed", [*range(4), "loop"])
def test_robots_with_screws_equal_other_engines(seed, oracle, tmp_path, figure):
    path, count, limit = robot_file("screw-loop"), 20, 1e-10  # systems of condition up to 1e4 in double precision
    if seed != "loop":
        rng = np.random.default_rng(seed)
        kinds = ["helical", *rng.permutation(KINDS)[:4]]
        path, count, limit = write_robot(tmp_path, made_up(rng, rng.permutation(kinds))), 5, 1e-11  # sums of products
    robot, other = parflex.load(path), oracle(read_robot(path))
    worst = max(error_against(other, state) for state in nearby_states(robot, count, 1))
    figure.below(f"screws ({seed}) against {oracle.__name__}, largest relative error", worst, limit)


def six_screws(folder, pitch=0.008):
    """Six legs whose strokes are screws; without friction, so that both directions of a rate are alike."""
    text = robot_file("six-ups").read_text()
    old, new = 'joint = "prismatic"', f'joint = "helical"\npitch = {pitch}'
    assert text.count(old) == 1 and text.count("start = 1.1") == 1
    return write_robot(folder, text.replace(old, new).replace("start = 1.1", f"start = {1.1 / pitch}"))


@pytest.mark.verify
def test_a_platform_on_six_screws_equals_lagrange_and_its_programs(tmp_path, figure):
    path = six_screws(tmp_path)
    robot, other = parflex.load(path), EnergyModel(read_robot(path))
    model, worst, apart = parflex.model(robot, "inverse"), 0.0, 0.0
    for state in nearby_states(robot, 8, 2):
        worst = max(worst, error_against(other, state))
        here = state.configuration
        found = parflex.inverse_dynamics(robot, here, state.velocity, state.acceleration)
        own = [robot.rates.index(name) for name in model.labels["qd"]]
        out = model(q=here.q, qd=found.rates[own], qdd=found.accelerations[own])["effort"]
        efforts = np.array(list(found.efforts.values()))
        apart = max(apart, largest(out - efforts) / largest(efforts))
    figure("platform on six screws against Lagrange, largest relative error", worst, 1e-9)
    assert worst < 1e-9 and apart < 1e-9  # a screw of 8 mm/rad multiplies the condition of the loops by 100


@pytest.mark.parametrize("pitch", [0.3, *(pytest.param(p, marks=pytest.mark.verify) for p in (0.0008, -0.02))])
def test_six_screws_stand_where_six_slides_stand(pitch, tmp_path):
    """The balls sit on the axes of the screws: poses are the same, whatever way the screws have to turn for them."""
    slides, screws = load_robot("six-ups"), parflex.load(six_screws(tmp_path, pitch))
    way = np.array([link.joint.pitch or 1.0 for link in screws.tree.links for _ in link.position_labels])
    for pose in ("home", {"z": 1.3}, {"x": 0.1, "z": 0.8, "rz": 0.2}):
        expected, found = (parflex.configure(robot, pose).q for robot in (slides, screws))
        assert found * way == pytest.approx(expected, abs=1e-9)  # loops close to 1e-10 of 1.1 m


@pytest.mark.few("screw-loop-inverse", "tree-direct", "tree-energy")
@pytest.mark.parametrize("name", ["inverse", "direct", "mass-matrix", "energy", "state-rates"])
@pytest.mark.parametrize("file", ["screw-loop", "ball-screw", "tree"])
def test_programs_equal_the_models(name, file, tmp_path):
    kinds = ["helical", "universal", "helical", "prismatic"]
    robot = tree(tmp_path, 8, kinds) if file == "tree" else load_robot(file)
    model = parflex.model(robot, name, friction_width=0.0)
    for state in nearby_states(robot, 3, 5):
        here = state.configuration
        found = parflex.inverse_dynamics(robot, here, state.velocity, state.acceleration)
        own = [robot.rates.index(n) for n in model.labels.get("qd", here.independent_names)]
        given = {"q": here.q, "qd": found.rates[own], "qdd": found.accelerations[own], "rates": found.rates}
        given["effort"] = np.array(list(found.efforts.values()))
        out = model(**{key: given[key] for key in model.inputs})
        result, expected = {
            "inverse": ("effort", given["effort"]),
            "direct": ("qdd", given["qdd"]),
            "state-rates": ("acceleration", given["qdd"]),
            "mass-matrix": ("mass_matrix", parflex.mass_matrix(robot, here).matrix),
            "energy": ("kinetic", [parflex.energies(robot, here, state.velocity).kinetic]),
        }[name]
        assert out[result] == pytest.approx(np.asarray(expected), rel=1e-8, abs=1e-9 * largest(expected))


@pytest.mark.parametrize("file", ["screw-loop", "tree"])
def test_robots_with_screws_keep_the_balance_of_energy(file, tmp_path, figure):
    robot = tree(tmp_path, 3, ["helical", "revolute", "helical"]) if file == "tree" else load_robot(file)
    options = {"step": 5e-4, "out_step": 0.02, "tolerance": 1e-14, "without": ["friction"]}
    run = parflex.simulate(robot, None, 0.3, effort=dict.fromkeys(robot.motors, 0.3), **options)
    size = np.ptp(run["energy.kinetic"])
    figure(f"{file} with screws: balance of energy", run.summary["energy_balance_error"] / size, 1e-8)
    assert run.summary["energy_balance_error"] < 1e-8 * size
    assert run["closure_error"].max() < 1e-11


def test_turns_of_a_screw_are_not_dropped_by_control():
    run = parflex.run_control(load_robot("ball-screw"), f"line:x={0.05 * np.cos(0.4)},time=0.5", "ctc")  # ten turns
    assert run.columns["q.screw"][-1] == pytest.approx(-20 * np.pi, abs=0.01)  # tracking error; a turn is 6.28
    assert run.errors["max"] < 1e-5  # m; a turn more is 5 mm


@pytest.mark.parametrize("kinds", [["helical", "revolute", "helical"], ["prismatic", "helical", "prismatic"]])
def test_a_robot_of_base_parameters_has_the_same_efforts(kinds, tmp_path):
    robot, rng = tree(tmp_path, 1, kinds), np.random.default_rng(2)
    lean = parflex.base_parameters(robot)
    assert len(lean.names) < 30
    for _ in range(3):
        state = (dict(zip(robot.motors, rng.uniform(-2, 2, 3), strict=True)) for _ in "123")
        pose, *motion = state
        one, two = (parflex.inverse_dynamics(r, pose, *motion).efforts for r in (robot, lean.robot))
        assert two == pytest.approx(one, rel=1e-10, abs=1e-10)


def test_a_family_of_screws_has_the_pitch_of_each(tmp_path):
    one = tree(tmp_path, 4, ["helical", "revolute"])
    two = parflex.load(one.file, settings={"frame.0.pitch": 0.0777})
    shared = member_model(family_model(one, two, "state-rates"), two)
    inputs = {"q": two.home + 0.3, "qd": np.array([1.0, -2.0]), "effort": np.array([0.4, 0.5])}
    for name, values in parflex.model(two, "state-rates")(**inputs).items():
        assert shared(**inputs)[name] == pytest.approx(values, rel=1e-11)


def test_springs_and_rotors_of_screws_are_in_frequencies_of_many_poses():
    robot, poses = load_robot("beam-on-screw"), np.array([[0.0], [0.7], [-1.1]])
    many = parflex.many_frequencies(robot, ["arm"], poses, modes=5).frequencies
    for pose, row in zip(poses, many, strict=True):
        single = parflex.natural_frequencies(robot, {"arm": float(pose[0])}, 5)
        assert row == pytest.approx(single.frequencies, rel=1e-7)
    soft = load_robot("beam-on-screw", settings={"frame.screw.spring.stiffness": 5})
    assert parflex.natural_frequencies(soft, "home", 1).frequencies[0] < 0.5 * many[0, 0]


@pytest.mark.parametrize(
    ("changes", "drive"),
    [
        ({}, True),
        ({"place": {"rotation": ["pi", 0, 0]}}, True),  # a screw is the same from both ends
        ({"pitch": -0.02}, False),
        ({"place.position": [0.1, 0, 0]}, False),
        ({"joint": "revolute", "pitch": None}, False),
    ],
)
def test_a_spring_is_an_elastic_drive_of_a_screw_only_with_its_pitch(changes, drive, tmp_path):
    changes = {f"frame.load.{key}": value for key, value in changes.items()}
    robot = load_robot("sprung-screw", settings=changes)
    assert len(robot.drive_springs) == drive


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("pitch = 0.02\n", "", "needs its pitch"),
        ("pitch = 0.02", "pitch = 0", "pitch of zero"),
        *(("pitch = 0.02", f"pitch = {value}", "pitch") for value in ("inf", "nan", '"fine"')),
        ('"helical"', '"revolute"', "a revolute joint has no pitch"),
        ('joint = "helical"', "", "a fixed joint has no pitch"),
        ("format = 1", 'format = 1\nmotion = "planar"\ngravity = [0, -9.81, 0]', "leaves the plane"),
        ("actuated = true", "actuated = true\nstart = [1, 2]", "2 start values"),
    ],
)
def test_screws_that_cannot_be_are_refused(old, new, words, tmp_path):
    text = robot_file("nut-on-screw").read_text()
    assert old in text
    with pytest.raises(parflex.RobotFileError, match=words):
        parflex.load(write_robot(tmp_path, text.replace(old, new, 1)))


def test_a_screw_is_explained_and_has_units_limits_and_a_sensor():
    robot = load_robot("screw-loop")
    assert "crank (helical, motor)" in parflex.explain(robot).as_text() and parflex.draw(robot).axes
    units = {(one["group"], one["name"]): one["unit"] for one in parflex.model(robot, "inverse").signals}
    assert units["effort", "crank"] == "N m" and units["q", "crank"] == "rad" and units["q", "follower"] == "m"
    settings = {"frame.screw.actuated": False, "frame.screw.sensed": True, "frame.screw.limits": [-99, 99]}
    table = load_robot("ball-screw", settings=settings | {"frame.table.actuated": True})
    assert table.sensed_names == ["screw"] and parflex.redundant_model(table) is not None
