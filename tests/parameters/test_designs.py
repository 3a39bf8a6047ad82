"""Designs: other numbers of the robot file in every row, against robots that are loaded one by one."""

import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from scipy.optimize import brentq
from support.designed_machines import MACHINES, keys_of
from support.maps import OK, number_at, pose_solver
from support.robots import load_robot, robot_file

import parflex
from parflex.parameters.robot_file import redesigned, write_design


def numbers_in(part):
    if is_dataclass(part) and not isinstance(part, type):
        return [x for field in fields(part) if field.init for x in numbers_in(getattr(part, field.name))]
    if isinstance(part, dict):
        return [x for value in part.values() for x in numbers_in(value)]
    if isinstance(part, tuple | list):
        return [x for value in part for x in numbers_in(value)]
    if isinstance(part, np.ndarray):
        return [float(x) for x in part.ravel()]
    return [float(part)] if isinstance(part, float) else []


def own_keys(robot) -> list[str]:
    """Constants of a robot, and keys of its sections, materials and bodies."""
    keys = [f"constants.{name}" for name in robot.description.constants]
    for table, word in (("sections", "sections"), ("materials", "materials")):
        for name, entry in getattr(robot.description, table).items():
            keys += [f"{word}.{name}.{key}" for key in entry.model_fields_set if key != "shape"]
    return [key for key in keys if usable(robot, key)]


def usable(robot, key: str) -> bool:
    try:
        return number_at(robot, key) != 0
    except parflex.ParflexError:
        return False


@pytest.mark.parametrize("about", ["undeformed", "equilibrium", None])
@pytest.mark.parametrize("rows", [2, 40])  # one by one, and together
def test_designs_with_prestressed_springs_are_solved_about_the_requested_configuration(about, rows):
    robot, masses = load_robot("sprung-tool"), np.linspace(0.7, 0.9, rows)
    poses, keys = np.full((rows, 2), [0.05, 0.3]), {"constants.mass": masses}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = parflex.many_frequencies(robot, ["slide", "arm"], poses, modes=1, designs=keys, about=about)
    assert not found.fallbacks or rows == 2
    if about == "undeformed":  # sqrt(k / m) / l about any pose
        assert found.frequencies[:, 0] == pytest.approx(np.sqrt(40 / masses) / 0.4 / (2 * np.pi), rel=1e-12)
    assert [f"{rows} of {rows} poses have springs" in str(one.message) for one in told] == [True] * (about is None)
    assert all(one.filename == __file__ for one in told)
    for k in (0, rows - 1):  # k - m g l sin(a) holds it where k (a - rest) = -m g l cos(a)
        if about != "undeformed":
            a = brentq(lambda a, weight: 40 * (a - 0.1) + weight * np.cos(a), -2, 2, masses[k] * 9.81 * 0.4)
            stiff = 40 - masses[k] * 9.81 * 0.4 * np.sin(a)
            expected = np.sqrt(stiff / masses[k]) / 0.4 / (2 * np.pi)
            assert found.frequencies[k, 0] == pytest.approx(expected, rel=1e-9)  # equilibria are found to 1e-10


@pytest.mark.parametrize("key", ["constants.start", "constants.distal", "constants.line_mass"])
def test_what_a_pose_does_not_name_stands_as_at_the_home_of_its_design(key):
    arm = key != "constants.distal"
    file, names = (robot_file("arm-with-start"), ["turn"]) if arm else ("3rrr-flexible", ["leg1.1", "leg2.1"])
    robot = parflex.load(file)
    lock = ["arm"] if arm else "actuators"
    links = [robot.tree.links[robot.tree.link_of_rate[k]] for k in robot.actuated[: len(names)]]
    poses = np.repeat(robot.home[None, [link.q.start for link in links]], 2, axis=0)
    values = number_at(robot, key) * np.linspace(0.98, 1.02, 2)
    found = parflex.many_frequencies(robot, names, poses, modes=1, lock=lock, designs={key: values})
    assert (found.fallbacks == 2) == (key != "constants.line_mass")
    assert ("designs move it at home" in found.reason) == (key != "constants.line_mass")
    own = parflex.load(file, settings={key: float(values[0])} | (mode_of(robot) if not arm else {}))
    one = parflex.natural_frequencies(own, dict(zip(names, poses[0].tolist(), strict=True)), 1, lock)
    assert found.frequencies[0] == pytest.approx(one.frequencies, rel=1e-9)  # loops are closed to 1e-11, each way


def test_designs_that_are_read_otherwise_are_loaded_one_by_one_and_right():
    robot = parflex.load("three-beam-legs")
    widths = [0.02, 0.04, 0.029, -0.01, np.nan]
    turns = [0.0, 0.0, 0.1, 0.0, 0.0]  # the place of a leg that turns is read otherwise than one that does not
    designs = {"sections.bar.y": widths, "legs.gamma.0": turns}
    many = parflex.many_frequencies(robot, ["leg1.upper"], [[0.3]] * 5, modes=3, designs=designs)
    assert many.status.tolist() == [0, 0, 0, 3, 3]
    assert many.fallbacks == 2
    assert "not positive" in many.reasons[3]
    assert "not a finite number" in many.reasons[4]
    for row in range(3):
        settings = {key: values[row] for key, values in designs.items()}
        one = parflex.natural_frequencies(parflex.load("three-beam-legs", settings=settings), modes=3)
        # both by LAPACK, whose rounding is 1e-16 of the largest eigenvalue
        assert many.frequencies[row] == pytest.approx(one.frequencies, rel=1e-8)


@pytest.mark.parametrize("shape", ["rectangle", pytest.param("box", marks=pytest.mark.verify)])
def test_sections_whose_sides_change_their_order_are_solved_together(shape):
    thickness = {"sections.bar.thickness": 0.002} if shape == "box" else {}
    fixed = {"sections.bar.shape": shape, **thickness}
    robot = parflex.load("three-beam-legs", settings=fixed)
    sides = {"sections.bar.y": [0.02, 0.03, 0.05, 0.003], "sections.bar.z": [0.03, 0.03, 0.01, 0.02]}
    many = parflex.many_frequencies(robot, ["leg1.upper"], [[0.3]] * 4, modes=3, designs=sides)
    assert many.status.tolist() == [0, 0, 0, 3 if thickness else 0]  # a wall thicker than half a side
    assert many.fallbacks == bool(thickness)
    for row in np.flatnonzero(many.status == 0):
        own = {key: values[row] for key, values in sides.items()}
        other = parflex.load("three-beam-legs", settings={**fixed, **own})
        expected = parflex.natural_frequencies(other, {"leg1.upper": 0.3}, modes=3).frequencies
        assert many.frequencies[row] == pytest.approx(expected, rel=1e-8)  # rounding of LAPACK


@pytest.mark.parametrize(("y", "z"), [(0.02, 0.03), (0.03, 0.03), (0.04, 0.03)])
def test_the_torsion_of_a_rectangle_has_slopes_also_where_it_is_square(y, z):
    keys, step = ["sections.flat.y", "sections.flat.z"], 1e-5

    def bar(sides):
        clamped = {"motion": "spatial", "frame.bar.joint": "fixed", "frame.bar.actuated": False}
        return load_robot("flat-bar", settings=clamped | dict(zip(keys, sides, strict=True)))

    def twist(sides):
        return parflex.cartesian_stiffness(bar(sides), frame="bar.tip", about="undeformed").compliance[3, 3]

    result = parflex.sensitivities(bar([y, z]), "compliance:bar.tip.rx", keys, about="undeformed")
    assert result.value == pytest.approx(twist([y, z]), rel=1e-9)
    for key, change in zip(keys, np.eye(2) * step, strict=True):
        slope = (twist(np.array([y, z]) + change) - twist(np.array([y, z]) - change)) / (2 * step)
        assert result.sensitivities[key]["derivative"] == pytest.approx(slope, rel=1e-5)  # (step / side)^2


@pytest.mark.parametrize(
    ("designs", "words"),
    [
        ({"constants.baz": 1.0}, "there is no value at 'constants.baz'"),
        ({"constants.bar": [1.0, 2.0, 3.0]}, "has 3 values for 2 poses"),
        ({"constants.bar": "long"}, "are not numbers"),
        ({"name": 3.0}, "is not a number of the robot file"),
    ],
)
def test_invalid_designs_are_refused(designs, words):
    with pytest.raises(parflex.ParflexError, match=words):
        parflex.many_frequencies(parflex.load("navaro"), ["x", "y", "rz"], np.zeros((2, 3)), designs=designs)


FUNCTIONS = {
    "sqrt": "sqrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
}
EXPRESSIONS = {f"{word}(line_mass)": getattr(np, name) for word, name in FUNCTIONS.items()} | {
    "2/line_mass": lambda v: 2 / v,
    "line_mass**-1.5": lambda v: v**-1.5,
    "1 - line_mass*line_mass": lambda v: 1 - v * v,
    "atan2(line_mass, 2*line_mass + 1)": lambda v: np.arctan2(v, 2 * v + 1),
    "abs(line_mass - 0.6)": lambda v: np.abs(v - 0.6),
}


@pytest.mark.parametrize(("text", "function"), EXPRESSIONS.items())
def test_expressions_in_many_designs_and_their_slopes_are_those_of_numpy(text, function):
    x, step, key = np.array([0.3, 0.55, 0.8]), 1e-6, "constants.line_mass"
    robot = load_robot("arm-with-start", settings={"frame.arm.inertia.mass": f"3 + {text}"})
    result = parflex.many_responses(robot, ["turn", "arm"], np.zeros((3, 2)), ["mass"], designs={key: x}, lock=["arm"])
    assert not result.fallbacks
    assert result["mass"] == pytest.approx(3 + x + function(x), rel=1e-14)
    slope = parflex.sensitivities(robot, "mass:arm", [key]).sensitivities[key]["derivative"]
    # central differences: rounding 1e-16 / 1e-6 and 1e-12 of the third derivative, which is at most 100 here
    assert slope == pytest.approx((function(0.5 + step) - function(0.5 - step)) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1e300, 0.0])
def test_designs_that_are_no_numbers_have_a_reason_and_no_warnings_of_numpy(value):
    of = parflex.load("dualemps")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        designs = {"sections.blade.y": [0.003, value]}
        found = parflex.many_frequencies(of, ["11", "21"], [[0.02, -0.03], [0.05, 0.05]], modes=1, designs=designs)
    assert found.status.tolist() == [0, 3] and found.reasons[1]


def test_files_with_equal_numbers_and_other_formulas_have_separate_designs():
    for masses in (("line_mass", 0.5), (0.5, "line_mass"), ("line_mass", "line_mass")):
        settings = {f"frame.{frame}.inertia.mass": mass for frame, mass in zip(("turn", "arm"), masses, strict=True)}
        robot, designs = load_robot("arm-with-start", settings=settings), {"constants.line_mass": [0.7]}
        words, rest = ["mass", "frequency:1"], {"lock": ["arm"], "about": "undeformed"}
        result = parflex.many_responses(robot, ["turn", "arm"], [[0.0, 0.0]], words, designs=designs, **rest)
        turn, arm = (0.7 if mass == "line_mass" else mass for mass in masses)
        assert result["mass"][0] == pytest.approx(turn + arm, rel=1e-14)
        expected = np.sqrt(9 / (arm * 0.9**2)) / (2 * np.pi)  # the spring of the turn, the arm 0.9 m away
        assert result["frequency:1"][0] == pytest.approx(expected, rel=1e-12)


def robot_of(name):
    if name != "five-bar":
        return name, parflex.load(name)
    return robot_file("designed-five-bar"), load_robot("designed-five-bar")


CASES = {  # coordinates, middle of poses, how far they go, keys of the geometry
    "five-bar": (["x", "y"], [0.0, 0.42], [0.15, 0.15], ["base", "near", "far", "other_near", "other_far"]),
    "3rrr-flexible": (["x", "y", "theta"], [0.0, 0.0, 0.0], [0.04, 0.04, 0.2], None),
    "gough-stewart-beams": (["x", "y", "z", "rx", "ry", "rz"], None, [0.05, 0.05, 0.05, 0.1, 0.1, 0.1], None),
    "navaro": (["x", "y", "rz"], [0.0, 0.0, 0.0], [0.03, 0.03, 0.1], None),
    "three-beam-legs": (["leg1.upper", "leg1.lower"], [0.0, 0.0], [0.3, 0.3], None),
}


def check_rows(name, count, seed, spread=0.5, at_once=None):
    """Rows of random designs are what robots loaded in their working mode answer; gives how many of each state."""
    source, robot = robot_of(name)
    coordinates, middle, far, keys = CASES[name]
    rng = np.random.default_rng(seed)
    home = robot.description.poses.get("home", {})
    poses = np.array([home[word] for word in coordinates] if middle is None else middle)
    poses = poses + rng.uniform(-1, 1, (count, len(far))) * far
    keys = [f"constants.{key}" for key in keys] if keys else own_keys(robot)
    designs = {key: number_at(robot, key) * rng.uniform(1 - spread, 1 + spread, count) for key in keys}
    times = at_once or 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tiled = {key: np.tile(values, times) for key, values in designs.items()}
        many = parflex.many_frequencies(robot, coordinates, np.tile(poses, (times, 1)), modes=2, designs=tiled)
        states = np.zeros(4, dtype=int)
        for row in range(count):
            settings = {key: float(values[row]) for key, values in designs.items()} | mode_of(robot)
            state, expected = alone(source, settings, dict(zip(coordinates, poses[row].tolist(), strict=True)))
            states[state] += 1
            for k in range(row, len(many.status), count):
                assert many.status[k] == state, (row, settings, many.reasons[k], expected)
                if state == 0:
                    # matrices by another way; rounding of LAPACK is 1e-16 of the largest eigenvalue, 1e6 times these
                    assert many.frequencies[k] == pytest.approx(expected, rel=1e-8)
    return states, many


def mode_of(robot, moved=()) -> dict:
    """Working mode of a robot as a setting: its loops start at its home, but for joints whose start is `moved`."""
    links = {robot.tree.links[j] for loop in robot.closures.loops for j in loop.links(robot.tree)}
    starts = {link.name: float(robot.home[link.q.start]) for link in links if link.joint.one_axis}
    bends = [name for name in starts if name in ("left.rod", "right.rod")]  # knees, whose signs are a working mode
    signs = {name: "+" if np.sin(starts[name]) > 0 else "-" for name in bends}
    starts = {name: value for name, value in starts.items() if name not in moved}
    return {"working_modes": {"default": {"start": starts, "signs": signs}}}


def alone(source, settings, pose):
    """State of a row that is loaded by itself, with its frequencies or what is said."""
    try:
        robot = parflex.load(source, settings=settings)
        robot.assemble()
    except parflex.ParflexError:  # it has another home than the first robot
        try:
            robot = parflex.load(source, settings=settings | {"poses": {"home": pose}})
            robot.assemble()
        except parflex.ParflexError as error:
            return 1, error.message
    try:
        return 0, parflex.natural_frequencies(robot, pose, modes=2).frequencies
    except parflex.UnreachableError as error:
        return 1, error.message
    except parflex.ParflexError as error:
        return 2, error.message


@pytest.mark.few("five-bar-12-0.5-None")
@pytest.mark.parametrize(
    ("name", "count", "spread", "at_once"),
    [
        ("five-bar", 12, 0.5, None),
        ("five-bar", 4, 0.08, 700),
        ("3rrr-flexible", 6, 0.5, None),
        ("gough-stewart-beams", 4, 0.5, None),
        ("navaro", 4, 0.02, None),
        ("three-beam-legs", 4, 0.02, None),
    ],
)
def test_rows_with_other_lengths_answer_what_a_robot_loaded_so_answers(name, count, spread, at_once):
    states, many = check_rows(name, count, 3, spread, at_once)
    assert states[0]
    assert not states[3] and (not many.fallbacks or name not in ("five-bar", "navaro"))


def test_homes_that_designs_place_elsewhere_are_those_of_robots_loaded_so():
    robot, count, rng = parflex.load("par4"), 6, np.random.default_rng(2)
    keys = [f"constants.{key}" for key in ("base_radius", "arm", "rod", "half_distance", "ratio")]
    designs = {key: number_at(robot, key) * rng.uniform(0.8, 1.2, count) for key in keys}
    names, poses = list(robot.actuated_names), np.full((count, 4), 0.3)
    result = parflex.many_responses(robot, names, poses, ["conditioning"], designs=designs)
    for row in range(count):
        own = parflex.load("par4", settings={key: float(values[row]) for key, values in designs.items()})
        here = parflex.configure(own, dict(zip(names, poses[row].tolist(), strict=True))).condition
        assert result["conditioning"][row] == pytest.approx(here.platform, rel=1e-9)


@pytest.mark.parametrize("times", [1, 4000])  # few rows are solved by arrays, many by machine code
def test_designs_are_reached_where_their_rods_meet_whatever_home_would_need(times):
    """The distance of the elbows at two motor angles is known; rods that miss it by a tenth of a micrometre stay open.

    At other angles they do, though the file with these rods has no home.
    """
    robot = robot_of("five-bar")[1]
    elbows = np.array([-0.15, 0.15]) + np.array([0.31, 0.28]) * np.exp(1j * np.array([2.1, 1.0]))
    gaps = np.array([1e-3, 3e-4, 1e-5, 1e-7, *[-1e-3] * times])  # in metres, of 0.6; the last ones meet
    designs = {"constants.far": np.full(len(gaps), 0.3), "constants.other_far": abs(elbows[0] - elbows[1]) - 0.3 - gaps}
    found = parflex.many_frequencies(robot, ["left", "right"], np.tile([2.1, 1.0], (len(gaps), 1)), 2, designs=designs)
    assert (found.status == (gaps > 0)).all(), found.status[:6]
    found = parflex.many_frequencies(robot, ["x", "y"], np.tile([0.0, 0.3], (len(gaps), 1)), 2, designs=designs)
    assert not found.status.any() and not found.fallbacks


@pytest.mark.verify
@pytest.mark.parametrize(("name", "count"), [("five-bar", 160), ("3rrr-flexible", 50), ("gough-stewart-beams", 24)])
@pytest.mark.parametrize("seed", [11, 12])
def test_many_rows_with_other_lengths_answer_what_robots_loaded_so_answer(name, count, seed):
    check_rows(name, count, seed)
    check_rows(name, count, seed + 100, spread=0.08, at_once=-(-2500 // count))


def test_files_of_designs_have_their_working_mode_and_the_settings_of_the_robot(tmp_path):
    source, numbers = str(robot_file("designed-five-bar")), {"constants.near": 0.33, "constants.far": 0.4}
    folded = {"working_modes": {"default": {"start": {"left.rod": -2.8, "right.rod": 2.8}}}}
    for number, settings in enumerate(({}, folded)):
        robot = parflex.load(source, settings=settings)
        design, file = redesigned(robot, numbers), tmp_path / f"{number}.toml"
        write_design(source, robot, design, numbers, file, "changed")
        again = parflex.load(file)
        assert again.home == pytest.approx(design.home, abs=1e-9)
        tip = parflex.frames(again, "home")["tip"][0]
        assert tip[1] > 0.4 if not number else tip[1] < 0.1  # above the elbows, or below
    wider = parflex.load(source, settings={"constants.base": 0.2})  # not in the first file, so the new one has it
    design, file = redesigned(wider, numbers), tmp_path / "wider.toml"
    write_design(source, wider, design, numbers, file, "changed")
    again = parflex.load(file)
    assert again.description.constants["base"] == 0.2 and again.home == pytest.approx(design.home, abs=1e-9)


def test_designs_without_a_home_in_the_working_mode_are_refused():
    robot = load_robot("designed-five-bar")
    with pytest.raises(parflex.UnreachableError, match="pin misses it by"):
        redesigned(robot, {"constants.far": 0.1, "constants.other_far": 0.1})


MASS, REACH, ABOUT, SOFT = 1.2, 0.2, 0.01, 50.0


@pytest.fixture(scope="module")
def geared():
    return load_robot("soft-gear")


@pytest.mark.parametrize("name", ["motor", "arm"])
@pytest.mark.parametrize("about", ["undeformed", "equilibrium"])
def test_an_arm_behind_a_soft_gear_sags_from_where_the_gear_of_its_design_holds_it(geared, name, about):
    rng, count = np.random.default_rng(0), 8
    ratio, offset, motor = rng.uniform(0.3, 0.8, count), rng.uniform(0, 0.3, count), rng.uniform(-1, 1, count)
    held = ratio * motor + offset
    poses = (motor if name == "motor" else held)[:, None]
    designs = {"coupling.gear.terms.motor": ratio, "coupling.gear.offset": offset}
    asked = ["deflection:rz", "frequency:1"]
    found = parflex.many_responses(geared, [name], poses, asked, designs=designs, about=about)
    assert found.method == "together" and found.fallbacks == 0
    weight, inertia = MASS * 9.81 * REACH, ABOUT + MASS * REACH**2
    for row, at in enumerate(held):
        sag, stiff = -weight * np.cos(at) / SOFT, SOFT
        if about == "equilibrium":
            sag = brentq(lambda x, at: SOFT * x + weight * np.cos(at + x), -1, 1, at, 1e-14)
            stiff = SOFT - weight * np.sin(at + sag)
        assert found["deflection:rz"][row] == pytest.approx(sag, rel=1e-9)
        assert found["frequency:1"][row] == pytest.approx(np.sqrt(stiff / inertia) / (2 * np.pi), rel=1e-9)


@pytest.mark.parametrize("rigid", [False, True])
def test_joints_follow_the_gear_of_their_design_whether_it_is_rigid_or_not(rigid):
    robot = load_robot("soft-gear", settings={"coupling.gear.stiffness": None if rigid else SOFT})
    designs = {"coupling.gear.terms.motor": np.array([0.5, 0.7])}
    solver = pose_solver(robot, ["motor"], [0.4], designs)
    assert not solver.fast or solver(np.full((2, 1), 0.4)).q[:, :2] == pytest.approx(np.c_[[0.4, 0.4], [0.3, 0.38]])


def test_a_gear_that_a_pose_winds_up_pushes_in_first_order_too(geared):
    poses = np.array([[0.4, 0.1], [0.4, 0.4], [0.0, 0.3]])
    wound = poses[:, 1] - 0.5 * poses[:, 0] - 0.1
    expected = -wound - MASS * 9.81 * REACH * np.cos(poses[:, 1]) / SOFT
    found = parflex.many_responses(geared, ["motor", "arm"], poses, ["deflection:rz"], about="undeformed")
    assert found["deflection:rz"] == pytest.approx(expected, rel=1e-9)


def test_by_default_there_are_six_modes_or_as_many_as_the_robot_has(geared):
    over = [("motor", -0.5, 0.5, 3)]
    assert parflex.frequency_map(geared, over).frequencies.shape == (3, 1)
    assert parflex.many_frequencies(geared, ["motor"], [[0.1]]).frequencies.shape == (1, 1)
    assert parflex.track_modes(geared, [{"motor": 0.0}, {"motor": 0.5}]).frequencies.shape[1] == 1
    with pytest.raises(parflex.InputError, match="3 modes are requested, but the robot has 1"):
        parflex.frequency_map(geared, over, modes=3)


def drawn(rng, kind, folder):
    text, choices = MACHINES[kind](rng)
    file = folder / f"{kind}.toml"
    file.write_text(text)
    robot = parflex.load(file)
    at = {link.name: float(robot.home[link.q.start]) for link in robot.tree.links if link.joint.one_axis}
    x, y, _ = parflex.configure(robot).at.of(robot.tree.places["tip"])[1]
    return robot, choices, at | {"x": x, "y": y}


def numbers_near(rng, robot, keys, count):
    found = {}
    for key in keys:
        value = number_at(robot, key)
        found[key] = value * rng.uniform(0.93, 1.07, count) if value else rng.uniform(-0.02, 0.02, count)
    return found


def loaded_row(robot, designs, row):
    moved = [key.split(".")[1] for key in designs if key.endswith(".start")]
    settings = {key: float(values[row]) for key, values in designs.items()}
    return parflex.load(robot.file, settings=mode_of(robot, moved) | settings)


@pytest.mark.few
@pytest.mark.parametrize(
    ("kind", "seed", "word"),
    [
        ("arm", 0, "coupling."),
        ("arm", 1, "coupling."),
        ("arm", 2, "coupling."),
        ("five-bar", 0, "coupling."),
        ("five-bar", 1, "coupling."),
        ("five-bar", 4, "frame.ar.start"),
    ],
)
def test_joints_stand_where_the_couplings_of_their_design_put_them(kind, seed, word, tmp_path):
    rng = np.random.default_rng(seed)
    robot, choices, at = drawn(rng, kind, tmp_path)
    keys = [key for key in keys_of(robot.written.table) if key.startswith(word)]
    designs = numbers_near(rng, robot, keys, 2)
    fast, others = 0, [loaded_row(robot, designs, row) for row in range(2)]
    for names in choices:
        near = np.array([at[name] for name in names]) + rng.uniform(-0.03, 0.03, (2, len(names)))
        solver = pose_solver(robot, names, near[0].tolist(), designs)
        fast += solver.fast
        found = solver(near) if solver.fast else None  # others are loaded one by one
        for row, other in enumerate(others if found is not None else []):
            assert found.status[row] == OK
            # loops are closed to 1e-11, and ratios of 0.1 make ten times that of a motor
            there = other.assemble(dict(zip(names, near[row], strict=True)))
            assert found.q[row, : robot.nq] == pytest.approx(there, abs=1e-8)
    assert fast > 1


WORDS = ["frequency:1", "damping:1", "shape:1", "strain:1", "compliance", "deflection", "mass"]
MORE = ["motion:1", "stiffness", "conditioning", "singularity"]  # pose by pose, as a rule


def compare(rng, kind, folder, chosen):
    robot, choices, at = drawn(rng, kind, folder)
    names, about = choices[int(rng.integers(len(choices)))], (None, "undeformed", "equilibrium")[int(rng.integers(3))]
    count = int(rng.choice([3, 12]))
    designs = numbers_near(rng, robot, chosen(list(keys_of(robot.written.table))), count)
    words = WORDS + MORE * bool(rng.random() < 0.2)
    if about == "equilibrium":
        words = [*words, f"effort:{robot.motors[0]}"]
    poses = np.array([at[name] for name in names]) + rng.uniform(-0.03, 0.03, (count, len(names)))
    try:
        found = parflex.many_responses(robot, names, poses, words, designs=designs, about=about)
    except parflex.ParflexError:
        found = None
    for row in (0, count // 2, count - 1):
        try:
            other = loaded_row(robot, designs, row)
            own = parflex.many_responses(other, names, poses[row : row + 1], words, about=about)
        except parflex.ParflexError:
            own = None
        if own is None or own.status[0] or own.reasons[0]:
            assert found is None or found.status[row] or found.reasons[row]
            continue
        assert found is not None and found.status[row] == 0
        for name in words:
            values = own[name][0]
            size = max(float(np.abs(values).max()), 1e-9)
            mine = found[name][row]
            if name.startswith("motion") and np.sum(mine * values) < 0:
                mine = -mine
            # equilibria are found to 1e-10, and couplings are up to a hundred times as stiff as a spring
            assert mine == pytest.approx(values, abs=1e-6 * size, nan_ok=True), name


def placing(keys):
    return [key for key in keys if key.startswith(("coupling.", "poses.")) or key.endswith((".start", ".rest"))]


@pytest.mark.few("arm-0")
@pytest.mark.filterwarnings("ignore::parflex.ParflexWarning")
@pytest.mark.parametrize(
    ("kind", "seed"),
    [("arm", 0), ("arm", 1), *(pytest.param(k, n, marks=pytest.mark.verify) for n in range(2, 60) for k in MACHINES)],
)
def test_every_response_of_designs_is_that_of_fresh_robots(kind, seed, tmp_path):
    rng = np.random.default_rng([seed, len(kind)])
    compare(rng, kind, tmp_path, lambda keys: [str(key) for key in rng.permutation(placing(keys))[:3]])
    if seed > 1:  # any other key, alone and all at once
        compare(rng, kind, tmp_path, lambda keys: [str(rng.choice(keys))])
        compare(rng, kind, tmp_path, lambda keys: keys if rng.random() < 0.2 else placing(keys))
