"""Optimisation of robots from files: against dense optima of our own, stock sizes, limits that cannot be met."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from click.testing import CliRunner

import parflex
from parflex import ParflexError, ParflexWarning
from parflex.cli.main import cli
from parflex.description.inheritance import merged
from parflex.design.design_state import Circumstances
from parflex.design.problem_file import read_problem, region_poses
from parflex.design.questions import Tolerances, read_question
from parflex.design.robot_difference import difference
from parflex.design.search.batched_values import values_in_designs
from parflex.design.search.descent import Designs, Term, descend, linear_step
from parflex.design.search.optimisation import Optimisation
from parflex.design.search.pareto import hypervolume, pareto_front, undominated
from parflex.design.search.polishing import polished
from parflex.design.search.worst_pieces import Piece, pieces_of

SIDE, E, RHO = 0.02, 2.1e11, 7800.0


def cantilever(folder, count: int) -> float:
    """A robot file of a clamped beam of square sections with a tip mass of half its own; gives its whole mass."""
    mass = SIDE**2 * RHO
    lines = ["format = 1", 'name = "cantilever"', 'motion = "planar"', "gravity = [0, 0, 0]", 'end_effector = "load"']
    lines += ["[materials.steel]", f"elastic_modulus = {E}", f"density = {RHO}", "[constants]"]
    lines += [f"side{k} = {SIDE}" for k in range(count)]
    for k in range(count):
        lines += [f"[sections.s{k}]", 'shape = "numbers"', f'A = "side{k}**2"', f'Iy = "side{k}**4/12"']
        lines += [f'Iz = "side{k}**4/12"', f'J = "0.1406*side{k}**4"']
    for k in range(count):
        parent = [f'parent = "b{k - 1}.tip"'] if k else []
        lines += ["[[frame]]", f'name = "b{k}"', *parent]
        lines += [f'beam = {{ length = {1 / count}, material = "steel", section = "s{k}" }}']
    lines += ["[[frame]]", 'name = "load"', f'parent = "b{count - 1}.tip"', f"inertia = {{ M = {0.5 * mass} }}"]
    (folder / "cantilever.toml").write_text("\n".join(lines) + "\n")
    return 1.5 * mass


def problem(folder, count: int, limit: float, more: str = "", steps: int = 60) -> str:
    """The file of its optimisation."""
    lines = ['robot = "cantilever.toml"', f"steps = {steps}"]
    for k in range(count):
        lines += [f"[variables.constants.side{k}]", f"lower = {0.3 * SIDE}", f"upper = {2 * SIDE}"]
    lines += ["[responses.first]", 'response = "frequency:1"', "[responses.mass]", 'response = "mass"']
    lines += ["[objective]", 'maximise = "first"', "[[constraint]]", 'response = "mass"', f"upper = {limit}", more]
    path = folder / "problem.toml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def own_frequency(sides) -> float:
    """The first frequency of that beam: cubic elements with consistent masses, written here."""
    count = len(sides)
    h = 1 / count
    K, M = np.zeros((2 * count + 2,) * 2), np.zeros((2 * count + 2,) * 2)
    stiff = np.array([[12, 6 * h, -12, 6 * h], [6 * h, 4 * h**2, -6 * h, 2 * h**2], [-12, -6 * h, 12, -6 * h],
                      [6 * h, 2 * h**2, -6 * h, 4 * h**2]]) / h**3  # fmt: skip
    heavy = np.array([[156, 22 * h, 54, -13 * h], [22 * h, 4 * h**2, 13 * h, -3 * h**2], [54, 13 * h, 156, -22 * h],
                      [-13 * h, -3 * h**2, -22 * h, 4 * h**2]]) * h / 420  # fmt: skip
    for k, side in enumerate(sides):
        own = np.ix_(range(2 * k, 2 * k + 4), range(2 * k, 2 * k + 4))
        K[own] += E * side**4 / 12 * stiff
        M[own] += RHO * side**2 * heavy
    M[-2, -2] += 0.5 * SIDE**2 * RHO
    return np.sqrt(scipy.linalg.eigh(K[2:, 2:], M[2:, 2:], eigvals_only=True)[0]) / (2 * np.pi)


def own_optimum(count: int) -> float:
    """The largest first frequency at the same mass, by a dense search of our own."""
    limit = {"type": "ineq", "fun": lambda s: 1 - np.mean((s / SIDE) ** 2)}
    best = 0.0
    for seed in range(3):
        start = SIDE * np.random.default_rng(seed).uniform(0.7, 1.0, count)
        found = scipy.optimize.minimize(
            lambda s: -own_frequency(s), start, method="SLSQP", bounds=[(0.3 * SIDE, 2 * SIDE)] * count,
            constraints=[limit], options={"ftol": 1e-12, "maxiter": 400},
        )  # fmt: skip
        best = max(best, -found.fun)
    return best


@pytest.mark.verify
def test_a_cantilever_gets_the_frequency_of_a_dense_optimum(tmp_path):
    count = 3
    limit = cantilever(tmp_path, count)
    found = parflex.optimise(problem(tmp_path, count, limit), tmp_path / "out")
    assert found.status == "optimal"
    assert found.responses["first"]["before"] == pytest.approx(own_frequency([SIDE] * count), rel=1e-6)
    assert found.objective == pytest.approx(own_optimum(count), rel=1e-5)  # flat at the optimum: steps of 1e-3
    (mass,) = found.constraints
    assert mass["active"] and mass["value"] == pytest.approx(limit, rel=1e-6)
    # the multiplier is what a heavier beam would gain
    assert mass["multiplier"] > 0
    # the file that is written is the robot that was found
    again = parflex.load(found.robot_file)
    assert parflex.natural_frequencies(again, modes=1).frequencies[0] == pytest.approx(found.objective, rel=1e-9)
    assert again.name == "cantilever-optimised"


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
def test_ten_elements_get_the_frequency_of_a_dense_optimum(tmp_path):
    limit = cantilever(tmp_path, 10)
    found = parflex.optimise(problem(tmp_path, 10, limit, steps=80))
    assert found.objective == pytest.approx(own_optimum(10), rel=1e-4)


@pytest.mark.verify
def test_stock_sizes_come_from_their_list_and_the_rest_is_optimised_again(tmp_path):
    limit = cantilever(tmp_path, 2)
    path = problem(tmp_path, 2, limit, steps=40)
    text = (tmp_path / "problem.toml").read_text()
    old = f"[variables.constants.side0]\nlower = {0.3 * SIDE}\nupper = {2 * SIDE}"
    assert old in text
    (tmp_path / "problem.toml").write_text(
        text.replace(old, "[variables.constants.side0]\nchoices = [0.018, 0.021, 0.03]")
    )
    found = parflex.optimise(path)
    assert found.variables["constants.side0"]["value"] in (0.018, 0.021, 0.03)
    assert found.constraints[0]["value"] <= limit * (1 + 1e-6)
    grid = np.linspace(0.3 * SIDE, 2 * SIDE, 2001)
    best = max(
        own_frequency([first, second])
        for first in (0.018, 0.021, 0.03)
        for second in grid[::20]
        if (first**2 + second**2) / 2 <= SIDE**2
    )
    assert found.objective >= best * (1 - 1e-6)


def test_bounds_that_hold_a_design_are_told_with_what_they_cost(tmp_path):
    cantilever(tmp_path, 1)
    path = problem(tmp_path, 1, 1e3, steps=20)  # no limit but the bound
    text = (tmp_path / "problem.toml").read_text().replace(f"upper = {2 * SIDE}", f"upper = {0.9 * SIDE}")
    (tmp_path / "problem.toml").write_text(text)
    with pytest.warns(ParflexWarning, match="outside its bounds: the search starts at 0.018"):
        found = parflex.optimise(path)
    side = found.variables["constants.side0"]
    assert side["at"] == "upper" and side["value"] == pytest.approx(0.9 * SIDE)
    h = 1e-6
    slope = (own_frequency([0.9 * SIDE + h]) - own_frequency([0.9 * SIDE - h])) / (2 * h)
    assert side["multiplier"] == pytest.approx(slope, rel=1e-6)  # differences over 1e-4 of the side
    text = text.replace('maximise = "first"', 'minimise = "first"')
    (tmp_path / "problem.toml").write_text(text.replace(f"upper = {0.9 * SIDE}", f"upper = {2 * SIDE}"))
    side = parflex.optimise(path).variables["constants.side0"]
    slope = (own_frequency([0.3 * SIDE + h]) - own_frequency([0.3 * SIDE - h])) / (2 * h)
    assert side["at"] == "lower" and side["multiplier"] == pytest.approx(slope, rel=1e-5)


TOO_MUCH = '[[constraint]]\nresponse = "first"\nlower = 1000'


@pytest.mark.verify
def test_a_limit_that_cannot_be_met_is_named(tmp_path):
    found = parflex.optimise(problem(tmp_path, 2, cantilever(tmp_path, 2), TOO_MUCH, steps=60))
    assert found.status == "infeasible"
    assert "'first' cannot be at least 1000" in found.message
    assert not any(one["multiplier"] for one in found.constraints)  # nothing is gained for limits


def test_steps_follow_the_kink_of_equal_values_to_its_top():
    # two values that part as soon as the second number changes: the best is where they are equal, at z = (0.7, 0.5)
    matrices = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])]

    def at(z):
        return np.array([[1.0, 0.0], [0.0, 1.0]]) * (1 - (z[0] - 0.7) ** 2) + matrices[1] * (z[1] - 0.5)

    def pieces(z):
        values, modes = np.linalg.eigh(at(z))
        slopes = np.array([matrices[0] * -2 * (z[0] - 0.7), matrices[1]])
        if values[1] - values[0] < 1e-9:
            return [[Piece(float(values[0]), slopes)]]
        along = np.einsum("ia,kij,ja->ak", modes, slopes, modes)
        return [[Piece(float(v), s.reshape(2, 1, 1)) for v, s in zip(values, along, strict=True)]]

    designs = Designs([Term("lowest", 1.0, None, 1.0)], lambda z: np.linalg.eigvalsh(at(z))[:1], pieces)
    found = descend(designs, np.array([0.2, 0.9]), np.ones(2, dtype=bool), 80, 1e-9)
    assert found.values[0] == pytest.approx(1.0, abs=1e-5)


def test_a_step_keeps_its_bound_along_every_combination_of_equal_values():
    # the second number parts the values along combinations of the modes, not along the modes themselves
    matrices = np.array([np.eye(2), [[0.0, 1.0], [1.0, 0.0]]])
    designs = Designs([Term("lowest", 1.0, None, 1.0)], lambda z: np.array([1.0]), lambda z: [[Piece(1.0, matrices)]])
    here = designs.with_pieces(designs.at(np.array([0.5, 0.5])))
    step, ahead, _ = linear_step(designs, here, np.ones(2, dtype=bool), 0.1)
    lowest = np.linalg.eigvalsh(np.eye(2) + np.tensordot(step, matrices, 1))[0]
    assert step[0] == pytest.approx(0.1)
    assert -ahead == pytest.approx(lowest, abs=1e-6)
    # with a gain along the second number the step goes on only as far as the combination allows
    leaning = np.array([np.zeros((2, 2)), [[0.5, 1.0], [1.0, 0.5]]])
    designs = Designs([Term("lowest", 1.0, None, 1.0)], lambda z: np.array([1.0]), lambda z: [[Piece(1.0, leaning)]])
    here = designs.with_pieces(designs.at(np.array([0.5, 0.5])))
    step, ahead, _ = linear_step(designs, here, np.ones(2, dtype=bool), 0.1)
    assert -ahead == pytest.approx(1.0, abs=1e-6)
    assert step[1] == pytest.approx(0.0, abs=1e-6)


def test_pieces_hold_all_modes_that_may_become_the_lowest():
    robot = parflex.load("dualemps")
    question = read_question("frequency:1", ["home"], Circumstances(servo=2e4))
    found = pieces_of(robot, question, ["constants.blade"])
    frequencies = parflex.natural_frequencies(robot, "home", servo=2e4).frequencies
    near = frequencies[frequencies <= 1.15 * frequencies[0]]
    assert [piece.value for piece in found] == pytest.approx(near.tolist())
    assert len(near) > 1


def test_what_a_file_must_say_to_be_another_one_is_its_difference():
    below = {"constants": {"a": 1.0, "b": 2.0}, "frame": [{"name": "x", "beam": {"length": 1.0}}, {"name": "y"}],
             "legs": {"gamma": [1, 2], "frame": [{"name": "1", "mass": 2.0}]}}  # fmt: skip
    above = {"constants": {"a": 3.0, "b": 2.0}, "frame": [{"name": "x", "beam": {"length": 2.0}}, {"name": "y"}],
             "legs": {"gamma": [1, 5], "frame": [{"name": "1", "mass": 4.0}]}}  # fmt: skip
    said = difference(below, above)
    assert merged(below, said) == above
    assert "b" not in said["constants"] and len(said["frame"]) == 1


def test_regions_are_grids_of_poses():
    poses = region_poses({"x": [-1, 1, 3], "rz": 0.2})
    assert [pose["x"] for pose in poses] == [-1.0, 0.0, 1.0]
    assert {pose["rz"] for pose in poses} == {0.2}
    with pytest.raises(ParflexError, match="is not a range"):
        region_poses({"x": [1, 2]})


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("upper = 0.04", "upper = 0.001", "nothing lies between"),
        ("lower = 0.006\nupper = 0.04", "choices = []", "the list of choices is empty"),
        ("constants.side0", "constants.depth", "there is no value at 'constants.depth'"),
        ("variables.constants.side0", "variables.name", "'name' is not a number"),
        ('maximise = "first"', 'maximise = "last"', "there is no response 'last'"),
        ("steps = 3", "stepps = 3", "stepps"),
        ("steps = 3", "steps = 3\nstarts = 0", "starts.* 'starts' is 0, not from 1 to 1000"),
        ('response = "mass"\nupper', 'response = "mas"\nupper', "constraint.0.response.*there is no response 'mas'"),
        (
            "frequency:1",
            'frequency:1"\ntolerances = { "constants.side0" = -1e-4 }\nabout = "undeformed',
            "responses.first.tolerances.*standard deviation -0.0001 of 'constants.side0' is negative",
        ),
        (
            "frequency:1",
            'frequency:1"\nstatistic = "0.05"\nabout = "undeformed',
            "'statistic' says nothing without 'tolerances'",
        ),
    ],
)
def test_files_that_cannot_be_are_refused_in_a_sentence(tmp_path, old, new, says):
    limit = cantilever(tmp_path, 2)
    path = problem(tmp_path, 2, limit, steps=3)
    text = (tmp_path / "problem.toml").read_text()
    assert old in text
    (tmp_path / "problem.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(ParflexError, match=says):
        parflex.optimise(path)


def test_the_command_writes_a_robot_file_and_a_page(tmp_path):
    limit = cantilever(tmp_path, 2)
    path = problem(tmp_path, 2, limit, steps=2)
    done = CliRunner().invoke(cli, ["optimise", path, "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    fields = {"status", "objective", "variables", "responses", "constraints", "robot_file", "page"}
    assert fields <= set(answer)
    assert set(answer["constraints"][0]) == {"name", "value", "limit", "active", "multiplier"}
    page = (tmp_path / "out" / "index.html").read_text()
    assert "constants.side0" in page and "before.svg" in page and "modes-after.svg" in page
    assert (tmp_path / "out" / "after.svg").exists() and (tmp_path / "out" / "modes-before.svg").exists()
    assert parflex.load(answer["robot_file"]).tree.n > 0


def test_smooth_optima_are_polished_to_their_last_digits():
    # largest -|z - c|^2 below the line z_0 + z_1 = 0.9: at the foot of the perpendicular from c = (0.6, 0.5)
    centre = np.array([0.6, 0.5])

    def values(z):
        return np.array([1 - (z - centre) @ (z - centre), z.sum()])

    def pieces(z):
        slopes = [-2 * (z - centre), np.ones(2)]
        return [[Piece(float(v), s.reshape(2, 1, 1))] for v, s in zip(values(z), slopes, strict=True)]

    designs = Designs([Term("f", 1.0, None, 1.0), Term("line", -1.0, 0.9, 1.0)], values, pieces)
    free = np.ones(2, dtype=bool)
    rough = descend(designs, np.array([0.1, 0.2]), free, 4, 1e-6)
    found = polished(designs, rough, free)
    assert found.z == pytest.approx([0.5, 0.4], abs=1e-7)
    assert found.multipliers[1] == pytest.approx(0.2, rel=1e-3)  # d/dlimit of 1 - 2 (1.1 - limit)^2 / 4


@pytest.mark.parametrize("limit", [1.0005, 0.999])
def test_limits_that_hardly_change_are_kept_where_they_can_be(limit):
    """The objective gains 1000 times what the mass changes by, each by its size."""
    terms = [Term("f", 1.0, None, 1.0), Term("mass", -1.0, limit, limit)]
    slopes = np.ones((1, 1, 1))
    designs = Designs(
        terms,
        lambda z: np.array([1 + z[0], 1 + 0.001 * z[0]]),
        lambda z: [[Piece(1 + z[0], slopes)], [Piece(1 + 0.001 * z[0], 0.001 * slopes)]],
    )
    found = descend(designs, np.array([0.9]), np.ones(1, dtype=bool), 60, 1e-7)
    assert found.done
    if limit > 1:
        assert found.z == pytest.approx([0.5], abs=1e-6)
        assert found.multipliers[1] == pytest.approx(1000, rel=1e-9)
    else:
        assert found.z == pytest.approx([0.0]) and found.missed[1] > 1e-4


def test_masses_in_many_designs_are_those_of_robots_loaded_one_by_one():
    robot = parflex.load("dualemps")
    designs = {"sections.blade.y": np.array([0.003, 0.004]), "frame.14.inertia.M": np.array([1.0, 2.0])}
    found = values_in_designs(robot, read_question("mass"), designs)
    for row in range(2):
        other = parflex.load("dualemps", settings={key: float(values[row]) for key, values in designs.items()})
        assert found[row, 0] == pytest.approx(sum(link.body.m for link in other.tree.links))


def test_the_area_behind_a_front_is_that_of_its_rectangles():
    points = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0], [1.5, 1.5], [2.0, 2.0]])
    assert undominated(points).tolist() == [True, True, True, False, False]
    assert hypervolume(points, np.zeros(2)) == pytest.approx(6.0)
    assert hypervolume(points, np.array([0.5, 2.5])) == pytest.approx(0.25)


def test_a_front_by_gradients_goes_from_the_lightest_to_the_stiffest_beam(tmp_path):
    limit = cantilever(tmp_path, 1)
    path = problem(tmp_path, 1, limit, '[pareto]\nminimise = "mass"\npoints = 3', steps=20)
    found = parflex.optimise(path)
    assert [len(one["variables"]) for one in found.front] == [1, 1, 1]
    for one in found.front:
        side = one["variables"]["constants.side0"]
        assert one["objectives"]["first"] == pytest.approx(own_frequency([side]), rel=1e-6)
        assert one["objectives"]["mass"] == pytest.approx(RHO * (side**2 + 0.5 * SIDE**2), rel=1e-9)
    sides = [one["variables"]["constants.side0"] for one in found.front]
    assert sides[0] == pytest.approx(0.3 * SIDE) and sides[2] == pytest.approx(SIDE, rel=1e-6)


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
def test_fronts_by_gradients_and_by_pymoo_have_the_same_area(tmp_path):
    pytest.importorskip("pymoo")
    limit = cantilever(tmp_path, 2)
    fronts = {}
    for method in ("gradients", "pymoo"):
        table = f'[pareto]\nminimise = "mass"\nmethod = "{method}"\npoints = 41\npopulation = 60\ngenerations = 60'
        read = read_problem(problem(tmp_path, 2, limit, table, steps=40))
        fronts[method] = pareto_front(Optimisation(read, parflex.load(str(tmp_path / "cantilever.toml"))))
    reference = [fronts["gradients"].points[:, 0].min(), fronts["gradients"].points[:, 1].max()]
    areas = [front.hypervolume(reference) for front in fronts.values()]
    assert areas[1] == pytest.approx(areas[0], rel=1e-2)


def test_bounds_that_make_the_robot_impossible_are_named(tmp_path):
    limit = cantilever(tmp_path, 2)
    path = problem(tmp_path, 2, limit, steps=3)
    text = (tmp_path / "problem.toml").read_text()
    old = f"[variables.constants.side0]\nlower = {0.3 * SIDE}\nupper = {2 * SIDE}"
    assert old in text
    (tmp_path / "problem.toml").write_text(
        text.replace(old, "[variables.materials.steel.density]\nlower = -2\nupper = -1")
    )
    with pytest.raises(ParflexError, match=r"cannot be at the start of the search, materials.steel.density = -1"):
        parflex.optimise(path)


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
def test_sections_of_a_navaro_are_those_of_a_fine_grid(tmp_path):
    """The lowest frequency over a region at equal mass: the best of grids is not above."""
    robot = Path(__file__).parent / "robots" / "navaro-free.toml"
    limit = parflex.sensitivities(parflex.load(robot), "mass", ["constants.high"]).value
    asked = """[responses.lowest]
response = "frequency:1"
region = { x = [-0.03, 0.03, 2], y = [-0.03, 0.03, 2], rz = -0.5 }
[responses.mass]
response = "mass"
"""

    def written(box, more):
        keys = "".join(f'[variables."{key}"]\nlower = {low}\nupper = {high}\n' for key, (low, high) in box.items())
        path = tmp_path / "problem.toml"
        path.write_text(f'robot = "{robot.as_posix()}"\n{keys}{asked}{more}')
        return path

    bounds = {"constants.high": (0.008, 0.0155), "sections.link.z": (0.0156, 0.03)}
    goal = f'[objective]\nmaximise = "lowest"\n[[constraint]]\nresponse = "mass"\nupper = {limit!r}\n'
    found = parflex.optimise(written(bounds, goal))
    assert found.responses["lowest"]["after"] > 1.3 * found.responses["lowest"]["before"]
    box, best = dict(bounds), 0.0
    for _ in range(3):
        grid = parflex.sweep(written(box, '[samples]\nkind = "grid"\ncount = 25\n'), jobs=1)
        values = np.where(grid.responses["mass"] <= limit * (1 + 1e-9), grid.responses["lowest"], -1.0)
        k = int(values.argmax())
        best, steps = float(values[k]), {key: 1.5 * (high - low) / 24 for key, (low, high) in box.items()}
        near = {key: float(own[k]) for key, own in grid.variables.items()}
        box = {
            key: (max(low, near[key] - steps[key]), min(high, near[key] + steps[key]))
            for key, (low, high) in bounds.items()
        }
    assert best <= found.objective * (1 + 1e-6)  # the limit is met to 1e-6
    assert found.objective == pytest.approx(best, rel=2e-3)  # the finest grid has steps of 1e-3 of the sides


def test_the_mean_mass_over_tolerances_is_that_of_robots_loaded_one_by_one(tmp_path):
    cantilever(tmp_path, 1)
    path, one = tmp_path / "cantilever.toml", read_question("mass")
    question = read_question("mass", None, None, Tolerances({"constants.side0": 1e-3}, "0.3", 4, seed=2))
    draws = np.random.default_rng(2).standard_normal(4)
    own = [one.asked(parflex.load(path, settings={"constants.side0": SIDE + 1e-3 * x})).answer for x in draws]
    assert question.asked(parflex.load(path)).answer == pytest.approx(np.quantile(own, 0.3), rel=1e-12)
