"""Designs: other numbers of the robot file in every row, read once for all rows, against robots loaded one by one."""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from scipy.optimize import brentq
from support.robots import load_robot, robot_file

import parflex
from parflex import ParflexError, load
from parflex.bodies.sections import rectangle
from parflex.codegen.passes.optimise import make_program
from parflex.designs.design_numbers import design_numbers, number_at
from parflex.designs.traced_numbers import TracedDecisions, TracedNumber
from parflex.graph.derivative import jacobian
from parflex.graph.expression import Graph
from parflex.maps import batches
from parflex.maps.batches import Geometry
from parflex.maps.engine.mode_finder import ModeFinder
from parflex.maps.kept_numbers import TracedNumbers, numbers_of_designs
from parflex.models.elastic.holding import locked_robot
from parflex.spatial.varied import Decisions, OneNumberError, Varied


def numbers_in(part):
    """All numbers of a record in its order."""
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
    except ParflexError:
        return False


@pytest.mark.few
@pytest.mark.parametrize(
    "name", ["navaro", "gough-stewart-beams", "dualemps", "3rrr", "delta", "three-beam-legs", "5r"]
)
def test_every_number_of_a_robot_in_many_designs_is_that_of_the_robot_loaded_so(name):
    robot = load(name)
    keys, rng = own_keys(robot), np.random.default_rng(5)
    designs = {key: number_at(robot, key) * rng.uniform(0.97, 1.03, 3) for key in keys}
    both = design_numbers(robot, designs), numbers_of_designs(robot, designs)  # by arrays, by a program
    assert both[0].alone.tolist() == both[1].alone.tolist()
    assert both[1].name  # it was traced
    for row in np.flatnonzero(~both[0].alone):
        other = load(name, settings={key: float(values[row]) for key, values in designs.items()})
        for found in both:
            here = found.with_numbers(dict(enumerate(found.values[row])))
            for one, two in ((here.tree, other.tree), (here.closures.loops, other.closures.loops)):
                mine, its = np.array(numbers_in(one)), np.array(numbers_in(two))
                # the same operations in another order: rounding, and angles that are exact for one robot alone
                assert mine == pytest.approx(its, rel=1e-12, abs=1e-15)
    assert not both[0].alone.all()


def test_slopes_of_numbers_are_those_of_differences():
    robot = load("gough-stewart-beams")
    keys = own_keys(robot)
    nominal = np.array([number_at(robot, key) for key in keys])
    step = 1e-6

    def values(factors):
        designs = {key: number * factors[k] for k, (key, number) in enumerate(zip(keys, nominal, strict=True))}
        return design_numbers(robot, designs, slopes=True)

    steps = np.ones((len(keys), 2 * len(keys))) + step * np.kron(np.eye(len(keys)), [1, -1])
    around, here = values(steps), values(np.ones((len(keys), 1)))
    assert around.slopes is not None and here.slopes is not None
    for k, number in enumerate(nominal):
        slope = (around.values[2 * k] - around.values[2 * k + 1]) / (2 * step * number)
        there = around.slopes[k, 2 * k : 2 * k + 2].mean(axis=0)
        scale = np.abs(around.values).max(axis=0) / abs(number)
        # rounding of 1e-16 / 1e-6, and a thousand times that where a flat body's inertia is a small difference
        assert (np.abs(slope - there) <= 1e-6 * scale).all()


@pytest.mark.parametrize(
    ("name", "coordinates", "spread"),
    [
        ("navaro", ["x", "y", "rz"], [0.03, 0.03, 0.1]),
        ("gough-stewart-beams", ["x", "y", "z", "rx", "ry", "rz"], [0.03, 0.03, 0.0, 0.1, 0.1, 0.1]),
        ("three-beam-legs", ["leg1.upper", "leg1.lower"], [0.3, 0.3]),
    ],
)
def test_frequencies_of_poses_with_their_own_designs_are_those_of_robots_loaded_one_by_one(name, coordinates, spread):
    robot = parflex.load(name)
    rng, count = np.random.default_rng(7), 4
    home = dict(zip(coordinates, np.zeros(len(coordinates)), strict=True)) | {
        key: value for key, value in robot.description.poses.get("home", {}).items() if key in coordinates
    }
    poses = np.array([home[key] for key in coordinates]) + rng.uniform(-1, 1, (count, len(coordinates))) * spread
    keys = [key for key in own_keys(robot) if not key.endswith(("poisson_ratio",))]
    designs = {key: number_at(robot, key) * rng.uniform(0.98, 1.02, count) for key in keys}
    many = parflex.many_frequencies(robot, coordinates, poses, modes=4, shapes=True, designs=designs)
    for row in range(count):
        other = parflex.load(name, settings={key: float(values[row]) for key, values in designs.items()})
        try:
            one = parflex.natural_frequencies(other, dict(zip(coordinates, poses[row], strict=True)), modes=4)
        except ParflexError:
            assert many.status[row] != 0
            continue
        assert many.status[row] == 0, many.reasons[row]
        # the same matrices by another way; LAPACK's rounding is 1e-16 of the largest eigenvalue, 1e6 times the lowest
        assert many.frequencies[row] == pytest.approx(one.frequencies, rel=1e-8)
    assert (many.status == 0).any()
    assert many.fallbacks < count


@pytest.mark.parametrize("about", ["undeformed", "equilibrium", None])
@pytest.mark.parametrize("rows", [2, 40])  # one by one, and together
def test_designs_with_springs_under_tension_are_about_what_was_asked_for(about, rows):
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
    """Home is where legs close on the platform: motors that are not named stand otherwise for each length."""
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
    own = parflex.load(file, settings={key: float(values[0])})
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


def test_steps_make_the_numbers_of_designs_as_arrays_have_them(monkeypatch):
    """Machine code that makes numbers from keys beside arrays of them; products and sums are fused otherwise."""
    robot, rng, count = parflex.load("gough-stewart-beams"), np.random.default_rng(6), 60
    keys = ["constants.rod", "sections.rod.diameter", "materials.steel.density"]
    designs = {key: number_at(robot, key) * rng.uniform(0.9, 1.1, count) for key in keys}
    monkeypatch.setattr(batches, "COMPILE_FROM", 1)
    numbers = numbers_of_designs(robot, designs)
    assert isinstance(numbers.held, TracedNumbers)
    as_array = replace(numbers, held=numbers.values)
    assert np.array_equal(numbers.columns([3, 1]), numbers.values[:, [3, 1]])
    assert np.array_equal(numbers.of_rows(np.array([7, 2])).values, numbers.values[[7, 2]])
    geometry = Geometry(robot, numbers)
    q, locked = np.repeat(geometry.home[None], count, axis=0), locked_robot(robot, "actuators")
    made, taken = (ModeFinder(locked, 6, 0, own)(q, np.arange(count), shapes=True) for own in (numbers, as_array))
    # each mode is proved to 2e-10; a shape turns by 1e-8, and no mode here has less than 1e-3 of it at the platform
    assert made.ok.all() and made.x == pytest.approx(taken.x, rel=4e-10)
    assert np.abs(made.twists - taken.twists).max() < 2e-5 * np.abs(taken.twists).max()
    assert np.ptp(made.x[:, 0]) > 1e-3 * made.x[0, 0]
    sizes = np.abs(made.twists) * np.array([1.0] * 3 + [robot.tree.length] * 3)
    first = np.argmax(sizes >= 0.9 * sizes.max(axis=2, keepdims=True), axis=2)  # nearly as large as the largest
    assert (np.take_along_axis(made.twists, first[:, :, None], axis=2) > 0).all()


@pytest.mark.parametrize("shape", ["rectangle", "box"])
def test_sections_whose_sides_change_their_order_are_mere_numbers(shape):
    thickness = {"sections.bar.thickness": 0.002} if shape == "box" else {}
    fixed = {"sections.bar.shape": shape, **thickness}
    robot = parflex.load("three-beam-legs", settings=fixed)
    sides = {
        "sections.bar.y": np.array([0.02, 0.03, 0.05, 0.003]),
        "sections.bar.z": np.array([0.03, 0.03, 0.01, 0.02]),
    }
    for found in (design_numbers(robot, sides, slopes=True), numbers_of_designs(robot, sides)):
        assert found.alone.tolist() == [False, False, False, bool(thickness)]  # a wall thicker than half a side
        for row in np.flatnonzero(~found.alone):
            own = {key: float(values[row]) for key, values in sides.items()}
            other = parflex.load("three-beam-legs", settings={**fixed, **own})
            mine = np.array(numbers_in(found.with_numbers(dict(enumerate(found.values[row]))).tree))
            assert mine == pytest.approx(np.array(numbers_in(other.tree)), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("y", "z"), [(0.02, 0.03), (0.03, 0.03), (0.04, 0.03)])
def test_the_torsion_of_a_rectangle_has_slopes_also_where_it_is_square(y, z):
    decisions = Decisions(1)
    sides = [Varied(np.array([side]), decisions, np.eye(2)[:, [k]].copy()) for k, side in enumerate((y, z))]
    graph = Graph()
    traced = TracedDecisions(graph)
    symbols = [graph.symbol(name) for name in "yz"]
    expression = rectangle(*(TracedNumber(v, s, traced) for v, s in zip((y, z), symbols, strict=True))).J.expression
    (row,) = jacobian([expression], symbols)
    made = make_program(graph, "slopes", {"J": expression, "slope": np.array(row, dtype=object)}, quick=True)
    mine = made.evaluate({"y": y, "z": z})
    its = rectangle(*sides).J
    step = 1e-5
    for k, change in enumerate(np.eye(2) * step):
        ahead, behind = (rectangle(y + sign * change[0], z + sign * change[1]).J for sign in (1, -1))
        # error 1e-7 of the slope: (step / side)^2
        assert its.slopes[k, 0] == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)
        assert mine[f"slope[{k}]"] == pytest.approx(its.slopes[k, 0], rel=1e-12)
    assert mine["J"] == pytest.approx(rectangle(y, z).J, rel=1e-14)


@pytest.mark.parametrize(
    ("designs", "words"),
    [
        ({"constants.baz": 1.0}, "there is no value at 'constants.baz'"),
        ({"constants.bar": [1.0, 2.0, 3.0]}, "has 3 values for 2 poses"),
        ({"constants.bar": "long"}, "are not numbers"),
        ({"name": 3.0}, "is not a number of the robot file"),
    ],
)
def test_designs_that_make_no_sense_are_refused_in_one_sentence(designs, words):
    with pytest.raises(ParflexError, match=words):
        parflex.many_frequencies(parflex.load("navaro"), ["x", "y", "rz"], np.zeros((2, 3)), designs=designs)


def test_functions_of_numbers_in_many_designs_and_their_slopes_are_those_of_numpy():
    x = np.array([0.3, 0.5, 0.7])
    number = Varied(x, Decisions(3), np.ones((1, 3)))
    step = 1e-6
    for word in ("sqrt", "sin", "cos", "tan", "tanh", "arcsin", "arccos", "arctan"):
        function = getattr(np, word)
        found = getattr(number, word)()
        assert found.values == pytest.approx(function(x), rel=1e-15)
        # central differences: rounding 1e-16 / 1e-6 and 1e-12 of the third derivative, which is at most 20 here
        assert found.slopes[0] == pytest.approx((function(x + step) - function(x - step)) / (2 * step), abs=1e-9)
    for made, function in (
        (2.0 / number, lambda v: 2 / v),
        (number**3, lambda v: v**3),
        (1.0 - number * number, lambda v: 1 - v * v),
        (number.arctan2(2.0 * number + 1.0), lambda v: np.arctan2(v, 2 * v + 1)),
        (abs(number - 0.6), lambda v: np.abs(v - 0.6)),
    ):
        assert made.values == pytest.approx(function(x), rel=1e-15)
        assert made.slopes[0] == pytest.approx((function(x + step) - function(x - step)) / (2 * step), abs=1e-9)


def test_functions_of_traced_numbers_are_those_of_numpy():
    graph = Graph()
    decisions, x = TracedDecisions(graph), 0.3
    number = TracedNumber(x, graph.symbol("x"), decisions)
    made = {
        word: getattr(number, word)() for word in ("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "tanh")
    }
    made |= {
        "power": number**-1.5,
        "over": 2.0 / number,
        "less": 1.0 - number,
        "size": abs(number - 0.6),
        "beside": number.lifted(0.2).arctan2(number - 1.0),
    }
    functions = {word: getattr(np, word) for word in made if hasattr(np, word)} | {
        "power": lambda v: v**-1.5,
        "over": lambda v: 2 / v,
        "less": lambda v: 1 - v,
        "size": lambda v: abs(v - 0.6),
        "beside": lambda v: np.arctan2(0.2, v - 1),
    }
    program = make_program(graph, "functions", {word: own.expression for word, own in made.items()}, quick=True)
    for value in (0.3, 0.7):
        found = program.evaluate({"x": value})
        for word, own in made.items():
            assert found[word] == pytest.approx(functions[word](value), rel=1e-14)
            assert own.nominal == pytest.approx(functions[word](x), rel=1e-14)
    assert number < 0.5 and number != 0.4 and number
    assert sorted(how for _, how in decisions.compared) == ["lt", "ne", "ne"]
    wide = make_program(graph, "tanh", {"y": (10.0 * number).tanh().expression}, quick=True)
    for value in (0.0, 0.2, 1.0, 5.0, 500.0):
        assert wide.evaluate({"x": value})["y"] == pytest.approx(np.tanh(10 * value), rel=1e-14)
    with pytest.raises(OneNumberError):
        number**0.3


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1e300, 0.0])
def test_designs_that_are_no_numbers_have_a_reason_and_no_warnings_of_numpy(value):
    of = parflex.load("dualemps")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = parflex.many_frequencies(
            of, ["11", "21"], [[0.02, -0.03], [0.05, 0.05]], modes=1, designs={"sections.blade.y": [0.003, value]}
        )
    assert found.status.tolist() == [0, 3] and found.reasons[1]


def test_files_of_the_same_robot_with_other_formulas_have_their_own_designs(tmp_path):
    """What is kept of one file is not taken for another whose numbers happen to be the same."""
    text = (
        'format = 1\nname = "two"\n[constants]\na = 0.5\n[[frame]]\nname = "arm"\njoint = "revolute"\nactuated = true\n'
        "place = {{ position = [{}, {}, 0], rotation = [0, 0, 0] }}\n"
        "inertia = {{ mass = 1, about_centre = [1, 1, 1] }}\n"
    )
    found = []
    for places in (('"a"', "0.5"), ("0.5", '"a"'), ('"a"', '"a"')):
        path = tmp_path / "two.toml"
        path.write_text(text.format(*places))
        numbers = numbers_of_designs(load(path), {"constants.a": np.array([0.7])})
        found.append(np.asarray(numbers.robot_of(0, np.zeros(1)).tree.links[0].position[:2], dtype=float))
    assert np.array_equal(found, [[0.7, 0.5], [0.5, 0.7], [0.7, 0.7]])
