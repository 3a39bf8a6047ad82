"""Programs in every formulation and maps of substructures, against the general path and Lagrange."""

import copy

import numpy as np
import pytest
from support.cases import VERIFY
from support.catalogue import CATALOGUE
from support.command_line import answered
from support.comparison import accelerated, largest, positions
from support.emitted import EMITTERS, SHORT, c_library
from support.flexible_states import batch, bent_state, bent_states, error_of
from support.forms_lagrange import BEHIND, CUT, pair_in_pieces
from support.maps import home_matrices
from support.modal_robots import MODES, POSES, bodies, place
from support.oracles.plate_on_beams import gough_stewart_on_beams
from support.paths import ROBOTS
from support.robots import INVENTED, any_robot, load_robot, robot_file, write_robot
from support.traced import LEG_FORM, Sample, difference, expected, inputs, made, robot, samples
from support.variants import read_table, toml_text

import parflex
from parflex.formulations.base import ModelRequest
from parflex.formulations.choice import choose
from parflex.formulations.substructures import substructure_state
from parflex.robot.legs import find_legs
from parflex.robot.substructures import substructures_or_reason

NO_TERMS = ("friction", "springs", "motor-inertia")
ROUNDING = 1e-11  # systems of condition up to 1e3 in double precision


@pytest.mark.few("3rrr", "dualemps", "rx90")
@pytest.mark.parametrize("name", [*parflex.catalogue_names(), *sorted(path.stem for path in ROBOTS.glob("*.toml"))])
def test_programs_take_the_independent_rates_of_the_robot(name):
    try:
        of = parflex.load(name if name in parflex.catalogue_names() else robot_file(name))
        rates = of.independent_rates
    except parflex.ParflexError:  # a file for a refusal, or one that needs settings
        return
    form = choose(of, ModelRequest("direct", coordinates="independent"))
    assert tuple(int(k) for k in form.independent) == rates


@pytest.mark.parametrize("name", [*LEG_FORM, "delta", "5r", "c5", "rx90", "wrist"])
def test_robots_on_legs_with_balls_are_recognised(name):
    form = parflex.explain(robot(name)).forms["direct"]
    assert (form == "leg form") == (name in LEG_FORM)
    if name in LEG_FORM:
        assert set(made(name, "inverse").inputs) >= {"position", "rotation", "velocity", "acceleration"}


UNIVERSAL = {"inverse": 2240, "step": 4870}  # operators of six-ups; a rise is an error


def with_two_hinges(table: dict) -> dict:
    """The same robot with each universal joint written as two revolute ones and a frame fixed behind them."""
    table = copy.deepcopy(table)
    frames = []
    for frame in table["legs"]["frame"]:
        if frame["joint"] != "universal":
            frames.append(frame)
            continue
        place = {key: frame[key] for key in ("parent", "place", "mdh") if key in frame}
        second = {"parent": "first", "joint": "revolute", "place": {"rotation": [0, "pi/2", 0]}}  # z along x
        behind = {"parent": "second", "joint": "fixed", "place": {"rotation": [0, "-pi/2", 0]}}
        frames += [{"name": "first", "joint": "revolute"} | place, {"name": "second"} | second]
        frames.append({"name": frame["name"], "inertia": frame["inertia"]} | behind)
    table["legs"]["frame"] = frames
    return table


@pytest.mark.verify
@pytest.mark.parametrize("model", ["inverse", "step"])
def test_a_universal_joint_costs_what_two_revolute_joints_cost(model, tmp_path, figure):
    program = made("six-ups", model)
    hinges = parflex.load(write_robot(tmp_path, toml_text(with_two_hinges(read_table(robot_file("six-ups"))))))
    assert program.counts["total"] == parflex.model(hinges, model, include=()).counts["total"] == UNIVERSAL[model]
    states = samples("six-ups", 10)
    error = difference(program(**inputs(program, states)), expected("six-ups", model, states))
    figure.below(f"six-ups, {model}: closed legs with universal joints against the float path", error, ROUNDING)


def awkward_poses(name: str) -> list[dict[str, float]]:
    """Poses in which legs have zero components, stand upright in part, or are all alike."""
    if name == "3rrr":
        return [{"x": 0, "y": 0, "theta": 0}, {"x": 0.05, "y": 0, "theta": 0}, {"x": 0, "y": 0.05, "theta": np.pi / 6}]
    x, y, z = robot(name).home[:3]
    turns = ({}, {"rz": 0.1}, {"rz": np.pi / 12}, {"rx": 0.1}, {"ry": -0.2})
    return [{"x": x + dx, "y": y, "z": z + dz, **turn} for dx in (0, 0.05) for dz in (0, 0.1) for turn in turns]


def aligned_poses(name: str) -> list[dict[str, float]]:
    """Poses in which a leg lies in a plane of the world's axes: a component of it is exactly zero."""
    of = robot(name)
    poses = []
    for leg in find_legs(of).legs:
        foot = leg.tree.links[0].position
        home = of.home[:3]
        for axis in (0, 1):
            place = home.copy()
            place[axis] = foot[axis] - leg.attachment[axis]  # with the platform's axes along the world's
            poses.append(dict(zip("xyz", place, strict=True)) | {"qw": 1.0, "qx": 0.0, "qy": 0.0, "qz": 0.0})
    return poses


@pytest.mark.few("space", "3rrr")
@pytest.mark.parametrize("name", ["gough-stewart", "space", "3rrr"])
def test_efforts_are_right_where_components_of_legs_vanish(name, figure):
    poses = awkward_poses(name) + (aligned_poses(name) if name != "3rrr" else [])
    model, of = made(name, "inverse"), robot(name)
    rng = np.random.default_rng(9)
    states = []
    for words in poses:
        try:
            configuration = parflex.configure(of, words)
        except parflex.ParflexError:  # out of reach
            continue
        condition = configuration.condition
        if max(condition.platform, condition.closures, *condition.legs.values()) > 1e3:
            continue
        names = of.actuated_names
        motion = [dict(zip(names, size * rng.uniform(-1, 1, len(names)), strict=True)) for size in (0.1, 1)]
        result = parflex.inverse_dynamics(of, configuration, *motion, without=NO_TERMS)
        efforts = np.array(list(result.efforts.values()))
        states.append(Sample(configuration, result.rates, result.accelerations, efforts))
    assert len(states) > len(poses) / 2
    found = model(**inputs(model, states))
    error = difference(found, expected(name, "inverse", states))
    figure.below(f"{name}: efforts at {len(states)} poses with vanishing components", error, ROUNDING)


def test_a_working_mode_with_the_elbows_on_the_other_side_is_followed():
    modes = sorted({"default", *parflex.load("3rrr").description.working_modes})
    assert len(modes) > 1
    for mode in (modes[0], modes[-1]):
        other = parflex.load("3rrr", working_mode=mode)
        model = parflex.model(other, "geometry")
        configuration = parflex.configure(other, {"x": 0.02, "y": 0.01, "theta": 0.1})
        platform = Sample(configuration, np.zeros(9), np.zeros(9), np.zeros(3)).platform()
        joints = model(position=platform["position"], rotation=platform["rotation"])["joints"]
        names = list(other.tree.position_names)
        wanted = configuration.q[[names.index(joint) for joint in model.labels["joints"]]]
        assert (joints - wanted + np.pi) % (2 * np.pi) - np.pi == pytest.approx(np.zeros(6), abs=1e-12)  # rounding


@pytest.mark.few
@pytest.mark.parametrize("name", sorted(INVENTED))
@pytest.mark.parametrize("model", ["direct", "mass-matrix", "kinematics"])
def test_programs_of_invented_robots_give_the_numbers_of_the_float_path(name, model):
    states = samples(name, 10)
    program = made(name, model)
    if not set(program.inputs) <= {"q", "qd", "qdd", "effort"}:
        pytest.skip("its legs are in closed form")
    found = program(**inputs(program, states))
    assert difference(found, expected(name, model, states)) < 10 * ROUNDING  # conditions up to 1e4 in the mass matrix


@pytest.mark.few
@pytest.mark.parametrize("name", sorted(INVENTED))
def test_inverse_models_of_invented_robots_are_right_or_refused_by_name(name):
    of = robot(name)
    if len(of.actuated) != INVENTED[name]:
        with pytest.raises(parflex.ParflexError, match="motors"):
            made(name, "inverse")
        return
    states, program = samples(name, 10), made(name, "inverse")
    assert difference(program(**inputs(program, states)), expected(name, "inverse", states)) < ROUNDING


def test_a_stroke_is_counted_from_where_its_slide_begins():
    plain = robot("gough-stewart")
    starts = [1.025, 1.039, 1.142, 1.126, 1.0203, 1.099]
    settings = {"legs.frame.3.mdh.r": 0.2, "legs.start_3": [start - 0.2 for start in starts]}
    longer = parflex.load("gough-stewart", settings=settings)
    found = []
    for of in (plain, longer):
        program = parflex.model(of, "geometry")
        names, joints = program.labels["joints"], program(**program.sample)["joints"]
        assert np.abs(joints - [of.home[of.tree.position_names.index(name)] for name in names]).max() < 1e-12
        found.append(np.array([value for name, value in zip(names, joints, strict=True) if name.endswith(".3")]))
    assert found[1] == pytest.approx(found[0] - 0.2, abs=1e-12)  # rounding


def test_the_direct_program_of_a_floating_robot_equals_the_float_path():
    of, rng = load_robot("floating"), np.random.default_rng(11)
    model = parflex.model(of, "direct", include=["motor-inertia"])
    q, qd = of.tree.moved(of.home, rng.uniform(-1, 1, of.nv)), rng.uniform(-2, 2, of.nv)
    expected = accelerated(parflex.Configuration(of, q), qd, [2.5]).accelerations
    assert model(q=q, qd=qd, effort=[2.5])["qdd"] == pytest.approx(expected, rel=1e-10)  # rounding, condition below 1e3


def test_models_that_the_motors_do_not_define_are_refused_by_name():
    for model in ("jacobian-of-inverse", "step"):
        with pytest.raises(parflex.ActuationError, match="1 motor for 10 degrees of freedom"):
            parflex.model(load_robot("floating"), model)


def test_an_arm_with_a_locked_joint_keeps_it_where_it_is():
    of = load_robot("locked-arm")
    q, qd, qdd = np.array([0.3, 0.4, -0.5]), np.array([1.0, -2.0]), np.array([3.0, 4.0])
    words = [dict(zip(("0", "2"), values, strict=True)) for values in ((0.3, -0.5), qd, qdd)]
    wanted = np.array(list(parflex.inverse_dynamics(of, *words, without=NO_TERMS).efforts.values()))
    inverse, step = parflex.model(of, "inverse"), parflex.model(of, "step")
    assert inverse(q=q, qd=qd, qdd=qdd)["effort"] == pytest.approx(wanted, rel=1e-12)  # rounding
    motors = {"motor_position": q[[0, 2]], "motor_rate": qd, "motor_acceleration": qdd}
    assert step(**motors)["effort"] == pytest.approx(wanted, rel=1e-12)
    accelerations = parflex.model(of, "direct")(q=q, qd=qd, effort=wanted)["qdd"]
    assert accelerations == pytest.approx(qdd, rel=1e-10)  # rounding, condition below 1e3


FLEXIBLE = sorted(path.stem for path in CATALOGUE.glob("*.toml") if "beam = " in path.read_text(encoding="utf-8"))
FLEXIBLE += ["gough-stewart-elastic"]  # beams of the robot that it extends, and a platform given by modes
# of the largest acceleration, and of the largest force that an effort is the sum of: beams and slides push against
# each other with much more than what remains for a motor
TOLERANCE = 1e-11


@pytest.mark.verify
@pytest.mark.parametrize("model", ["inverse", "direct"])
@pytest.mark.parametrize("name", FLEXIBLE)
def test_every_emitter_gives_the_numbers_of_the_general_reduction(name, model, tmp_path, figure):
    program = made(name, model)
    size = len(program.program.instructions)
    states = bent_states(name, (200 if VERIFY else 40) if size <= SHORT else 20)
    given, wanted = batch(states, program, robot(name))
    for key, (emitter, count) in EMITTERS.items():
        if size > SHORT and not key.startswith("llvm"):
            continue
        found = emitter(program, {group: value[:count] for group, value in given.items()})
        error = error_of(found, {group: value[:count] for group, value in wanted.items()}, states)
        figure(f"{name} {model} by {key}", error, TOLERANCE)
        assert error < TOLERANCE, key
    assert error_of(c_library(program, given, tmp_path), wanted, states) < TOLERANCE, "c"


WRENCH = {"17": np.array([30.0, -20.0, 0.0, 0.0, 0.0, 5.0])}
THIN = {"gravity": [1, 2, -9.81]} | {f"legs.frame.{k}.beam.rotary_inertia": False for k in range(1, 6)}
VARIANTS = {  # robot, its settings, a wrench, and the terms of joints that are left out
    "sections that only spin": ("navaro", THIN, {}, NO_TERMS),
    "terms of joints": (
        "dualemps",
        {"frame.0.motor_inertia": 3.0, "frame.8.spring": {"stiffness": 70.0, "rest": 0.2}},
        {},
        (),
    ),
    "a wrench": ("dualemps", {}, WRENCH, NO_TERMS),
}


@pytest.mark.few("terms", "wrench")
@pytest.mark.parametrize("case", VARIANTS)
def test_variants_accelerate_in_programs_as_by_the_general_reduction(case):
    name, settings, wrench, without = VARIANTS[case]
    of = parflex.load(name, settings=settings)
    state = bent_state(of, np.random.default_rng(6))
    program = parflex.model(of, "state-rates", wrench_frames=list(wrench), without=without)
    independent = [of.rates.index(label) for label in program.labels["qd"]]
    words = {"wrench": wrench, "without": without}
    wanted = accelerated(state["at"], state["rates"], state["effort"], **words).accelerations[independent]
    given = {"q": state["q"], "qd": state["rates"][independent], "effort": state["effort"]}
    given |= {f"wrench_{frame}": value for frame, value in wrench.items()}
    found = program.evaluate("numpy", **given)["acceleration"]
    assert np.abs(found - wanted).max() < TOLERANCE * np.abs(wanted).max()
    if not case.startswith("sections"):  # they matter
        assert np.abs(found - state["accelerations"][independent]).max() > 1e-2 * np.abs(wanted).max()


def test_wrenches_on_other_frames_or_models_are_refused():
    for model, frame, words in (("state-rates", "71", "there is no frame"), ("inverse", "17", "takes no wrenches")):
        with pytest.raises(parflex.InputError, match=words):
            parflex.model(robot("dualemps"), model, wrench_frames=[frame])


def test_a_rigid_loop_beside_beams_takes_the_general_form():
    of = load_robot("lever")
    program = parflex.model(of, "inverse")
    assert program.about["form"] == "general form"
    states = [bent_state(of, np.random.default_rng(k)) for k in range(5)]
    given, wanted = batch(states, program, of)
    assert error_of(program(**given), wanted, states) < TOLERANCE


def test_a_controller_step_of_a_bending_robot_is_refused_with_the_reason():
    with pytest.raises(parflex.InputError, match="do not give the state of a flexible body"):
        parflex.model(robot("dualemps"), "step")


def test_geometry_closes_the_loops_of_a_bent_robot():
    of, program = robot("dualemps"), made("dualemps", "geometry")
    for state in bent_states("dualemps", 5):
        guess = state["q"] + 1e-4 * np.isin(np.arange(of.tree.nq), of.tree.elastic)
        found = program(guess=guess)["q"]
        assert parflex.Configuration(of, found).closure_error < 1e-14
        changed = np.flatnonzero(found != guess)
        assert len(changed) == of.closures.size  # only as many as the loops have equations


@pytest.mark.few
@pytest.mark.parametrize("name", ["dualemps", "5r", "space"])
def test_a_state_gives_its_rates_whatever_is_guessed_for_dependent_positions(name):
    of = robot(name)
    program, driven = made(name, "state-rates"), made(name, "state-rates-driven")
    rng = np.random.default_rng(7)
    for _ in range(5):
        state = bent_state(of, rng)
        for model in (program, driven):
            independent = [of.rates.index(label) for label in model.labels["qd"]]
            dependent = np.array([k not in set(independent) for k in range(of.tree.n)])
            off = 1e-5 * rng.uniform(-1, 1, of.tree.n) * dependent
            given = {"q": of.tree.moved(state["q"], off), "qd": state["rates"][independent]}
            if model is program:
                found = model(**given, effort=state["effort"])
            else:
                found = model(**given, motor_acceleration=state["accelerations"][list(of.actuated)])
                assert np.abs(found["effort"] - state["effort"]).max() < TOLERANCE * state["sizes"]["effort"]
            assert np.abs(found["q"] - state["q"]).max() < 1e-9  # the square of the guess's error
            wanted = state["accelerations"][independent]
            # stiffness over mass, up to 1e12 1/s2, times what is left of the guess's error
            assert np.abs(found["acceleration"] - wanted).max() < 1e-6 * state["sizes"]["qdd"]
            h = 1e-6
            moved = of.tree.moved(state["q"], h * state["rates"]) - of.tree.moved(state["q"], -h * state["rates"])
            assert np.abs(found["position_rates"] - moved / (2 * h)).max() < 1e-8  # rounding over h


def test_coulomb_friction_may_change_its_sign_smoothly():
    of, state = robot("dualemps"), bent_states("dualemps", 1)[0]
    programs = [parflex.model(of, "inverse", include=["friction"], friction_width=width) for width in (0.0, 1e-9, 1e3)]
    given, _ = batch([state], programs[0], of)
    sharp, narrow, wide = (program(**given)["effort"][0] for program in programs)
    assert np.abs(sharp - narrow).max() < 1e-6
    assert np.abs(sharp - wide).max() > 1.0  # 25 N on the slides


def test_the_direct_verb_gives_joints_and_elastic_coordinates_apart(capsys):
    answer = answered(capsys, "direct", "dualemps", "--effort", "11=100")
    assert set(answer["accelerations"]) == {"11", "12", "17", "21", "22", "25"}
    assert set(answer["elastic_accelerations"]) == {f"{b}.{e}" for b in (13, 16, 23) for e in ("ux", "uy", "rz")}


def test_a_joint_that_moves_nothing_with_inertia_is_refused_by_name():
    of = robot("navaro-refined")  # its motors have inertia, their links hang on springs behind them
    with pytest.raises(parflex.SingularError, match="moves nothing that has inertia") as stop:
        parflex.model(of, "direct", without=["motor-inertia"])
    assert "motor-inertia" in stop.value.hint


OF_MAPS = 1e-10  # accelerations come out of systems whose condition is up to 1e6


def all_frequencies(robot: parflex.Robot) -> np.ndarray:
    """All frequencies at home with the motors locked, also those that are zero, as maps compute them."""
    K, M = home_matrices(robot)
    factor = np.linalg.inv(np.linalg.cholesky(M))
    return np.sqrt(np.maximum(np.linalg.eigvalsh(factor @ K @ factor.T), 0)) / (2 * np.pi)


@pytest.mark.parametrize("case", [*CUT, *BEHIND])
def test_maps_have_the_frequencies_of_lagrange(case, figure):
    """Of every kind of closure; motions are proven in `dynamics/test_flexible_robots.py`."""
    robot, oracle = pair_in_pieces(case)
    if case in BEHIND:  # forms leave closures to the general form whose equations cost less than their rates
        assert isinstance(substructures_or_reason(robot), str) == ("led" in case or "table" in case)
    found = all_frequencies(robot)
    expected = oracle.frequencies(positions(parflex.Configuration(robot, robot.home)), robot.motors)
    assert len(found) == len(expected)
    # rounding of eigenvalues is that of the largest: 1e-16 of its square, 1e-8 of itself, for those that are zero
    error = largest(found - expected) / largest(expected)
    figure.below(f"{case}: all frequencies, of the largest", error, 1e-7)
    moving = expected > 1e-4 * expected[-1]
    assert largest(found[moving] / expected[moving] - 1) < 1e-6  # of their squares 1e-16 / (1e-4)^2, and some more


def test_a_map_of_a_platform_given_by_modes_equals_direct_stiffness(figure):
    poses, modes = np.array(list(POSES.values())), bodies()["plate"]
    robot = parflex.load("gough-stewart-elastic")
    found = parflex.many_frequencies(robot, ["x", "y", "z", "rx", "ry", "rz"], poses, MODES, shapes=True)
    assert found.status.tolist() == [0] * len(poses), found.reason
    expected = [gough_stewart_on_beams(modes, *place(name)).frequencies(MODES) for name in POSES]
    worst = largest(found.frequencies / np.array(expected) - 1)
    figure.below("map of a plate on beams: frequencies against direct stiffness", worst, 1e-8)


HELD = {"one coordinate": slice(0, 1), "every second": slice(1, None, 2), "all": slice(None)}


@pytest.mark.few("three-beam-legs-one", "spin-up-every", "satellite-all")
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", ["three-beam-legs", "spin-up", "bending-satellite"])
def test_locked_coordinates_of_beams_stand_still(name, held, figure):
    """Against the general reduction and its frequencies: the bodies are no longer cut, so nothing else is shared."""
    whole = any_robot(name)
    elastic = list(whole.tree.elastic)
    locked = elastic[HELD[held]]
    robot, rng = whole.locking(locked), np.random.default_rng(8)
    form = substructures_or_reason(robot)
    assert not isinstance(form, str), form
    own = form.partition.independent
    assert set(own) <= set(robot.free)
    step = rng.uniform(-1, 1, robot.nv) * np.where(np.isin(np.arange(robot.nv), elastic), 1e-3, 0.1)
    step[locked] = 0.0
    at = parflex.Configuration(robot, robot.tree.moved(robot.home, step))
    rates, effort = at.J @ rng.uniform(-3, 3, at.J.shape[1]), rng.uniform(-5, 5, robot.nu)
    wanted = accelerated(at, rates, effort).accelerations[own]
    found = substructure_state(form, at.q, rates[own]).pushed(effort)[0]
    figure(f"{name}, locked {held}: direct model", largest(found - wanted) / largest(wanted), OF_MAPS)
    assert largest(found - wanted) < OF_MAPS * largest(wanted)
    if held != "all":
        modes = parflex.many_frequencies(robot, [], np.zeros((1, 0)), 2, "none").frequencies[0]
        assert modes == pytest.approx(parflex.natural_frequencies(robot, modes=2, lock="none").frequencies, rel=1e-7)


def test_a_loop_without_a_beam_leaves_the_general_form():
    assert substructures_or_reason(parflex.load("gough-stewart-flexible")) == "a loop has no beam in it"
