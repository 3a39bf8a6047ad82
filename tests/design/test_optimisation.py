"""Optimisation of robots from files: dense optima of their own elements, stock sizes, impossible limits."""

import numpy as np
import pytest
import scipy
import scipy.linalg
import scipy.optimize
from support.command_line import answered
from support.robots import robot_file

import parflex
from parflex.design.descent import Designs, Term, descend, polished
from parflex.design.problem import ResponsePiece

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
    lines = ['robot = "cantilever.toml"', f"steps = {steps}"]
    for k in range(count):
        lines += [f"[variables.constants.side{k}]", f"lower = {0.3 * SIDE}", f"upper = {2 * SIDE}"]
    lines += ["[responses.first]", 'response = "frequency:1"', "[responses.mass]", 'response = "mass"']
    lines += ["[objective]", 'maximise = "first"', "[[constraint]]", 'response = "mass"', f"upper = {limit}", more]
    path = folder / "problem.toml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def own_frequency(sides) -> float:
    """Return the first frequency of that beam: cubic elements with consistent masses, written here."""
    count = len(sides)
    K, M = np.zeros((2 * count + 2,) * 2), np.zeros((2 * count + 2,) * 2)
    for k, side in enumerate(sides):
        own = np.ix_(range(2 * k, 2 * k + 4), range(2 * k, 2 * k + 4))
        stiff, heavy = bending(1 / count, side)
        K[own] += stiff
        M[own] += heavy
    M[-2, -2] += 0.5 * SIDE**2 * RHO
    return np.sqrt(scipy.linalg.eigh(K[2:, 2:], M[2:, 2:], eigvals_only=True)[0]) / (2 * np.pi)


def bending(h: float, side: float, E: float = E, rho: float = RHO) -> tuple[np.ndarray, np.ndarray]:
    """Return stiffness and mass of a cubic element of square section, over deflections and slopes of its ends."""
    stiff = [[12, 6 * h, -12, 6 * h], [6 * h, 4 * h**2, -6 * h, 2 * h**2]]
    stiff += [[-12, -6 * h, 12, -6 * h], [6 * h, 2 * h**2, -6 * h, 4 * h**2]]
    heavy = [[156, 22 * h, 54, -13 * h], [22 * h, 4 * h**2, 13 * h, -3 * h**2]]
    heavy += [[54, 13 * h, 156, -22 * h], [-13 * h, -3 * h**2, -22 * h, 4 * h**2]]
    return E * side**4 / 12 / h**3 * np.array(stiff), rho * side**2 * h / 420 * np.array(heavy)


def own_optimum(count: int) -> float:
    limit = {"type": "ineq", "fun": lambda s: 1 - np.mean((s / SIDE) ** 2)}
    best = 0.0
    for seed in range(3):
        start = SIDE * np.random.default_rng(seed).uniform(0.7, 1.0, count)
        result = scipy.optimize.minimize(
            lambda s: -own_frequency(s), start, method="SLSQP", bounds=[(0.3 * SIDE, 2 * SIDE)] * count,
            constraints=[limit], options={"ftol": 1e-12, "maxiter": 400},
        )  # fmt: skip
        best = max(best, -result.fun)
    return best


@pytest.mark.verify
def test_a_cantilever_gets_the_frequency_of_a_dense_optimum(tmp_path):
    count = 3
    limit = cantilever(tmp_path, count)
    result = parflex.optimise(problem(tmp_path, count, limit), tmp_path / "out")
    assert result.status == "optimal"
    assert result.responses["first"]["before"] == pytest.approx(own_frequency([SIDE] * count), rel=1e-6)
    assert result.objective == pytest.approx(own_optimum(count), rel=1e-5)  # flat at the optimum: steps of 1e-3
    (mass,) = result.constraints
    assert mass["active"] and mass["value"] == pytest.approx(limit, rel=1e-6)
    # the multiplier is what a heavier beam would gain
    assert mass["multiplier"] > 0
    # the file that is written is the robot that was optimised
    again = parflex.load(result.robot_file)
    assert parflex.natural_frequencies(again, modes=1).frequencies[0] == pytest.approx(result.objective, rel=1e-9)
    assert again.name == "cantilever-optimised"


@pytest.mark.verify
def test_ten_elements_get_the_frequency_of_a_dense_optimum(tmp_path):
    limit = cantilever(tmp_path, 10)
    result = parflex.optimise(problem(tmp_path, 10, limit, steps=80))
    assert result.objective == pytest.approx(own_optimum(10), rel=1e-4)


@pytest.mark.verify
def test_stock_sizes_come_from_their_list_and_the_rest_is_optimised_again(tmp_path):
    limit = cantilever(tmp_path, 2)
    path = problem(tmp_path, 2, limit, steps=40)
    text = (tmp_path / "problem.toml").read_text()
    old = f"[variables.constants.side0]\nlower = {0.3 * SIDE}\nupper = {2 * SIDE}"
    assert old in text
    choices = "[variables.constants.side0]\nchoices = [0.018, 0.021, 0.03]"
    (tmp_path / "problem.toml").write_text(text.replace(old, choices))
    result = parflex.optimise(path)
    assert result.variables["constants.side0"]["value"] in (0.018, 0.021, 0.03)
    assert result.constraints[0]["value"] <= limit * (1 + 1e-6)
    grid = np.linspace(0.3 * SIDE, 2 * SIDE, 2001)
    best = max(
        own_frequency([first, second])
        for first in (0.018, 0.021, 0.03)
        for second in grid[::20]
        if (first**2 + second**2) / 2 <= SIDE**2
    )
    assert result.objective >= best * (1 - 1e-6)


def test_active_bounds_are_reported_with_their_multipliers(tmp_path):
    cantilever(tmp_path, 1)
    path = problem(tmp_path, 1, 1e3, steps=20)  # no limit but the bound
    text = (tmp_path / "problem.toml").read_text().replace(f"upper = {2 * SIDE}", f"upper = {0.9 * SIDE}")
    (tmp_path / "problem.toml").write_text(text)
    with pytest.warns(parflex.ParflexWarning, match="outside its bounds: the search starts at 0.018"):
        result = parflex.optimise(path)
    side = result.variables["constants.side0"]
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
    result = parflex.optimise(problem(tmp_path, 2, cantilever(tmp_path, 2), TOO_MUCH, steps=60))
    assert result.status == "infeasible"
    assert "'first' cannot be at least 1000" in result.message
    assert not any(one["multiplier"] for one in result.constraints)  # nothing is gained for limits


def test_steps_follow_the_kink_of_equal_values_to_its_top():
    # two values that part as soon as the second number changes: the best is where they are equal, at z = (0.7, 0.5)
    matrices = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])]

    def at(z):
        return np.array([[1.0, 0.0], [0.0, 1.0]]) * (1 - (z[0] - 0.7) ** 2) + matrices[1] * (z[1] - 0.5)

    def pieces(z):
        values, modes = np.linalg.eigh(at(z))
        slopes = np.array([matrices[0] * -2 * (z[0] - 0.7), matrices[1]])
        if values[1] - values[0] < 1e-9:
            return [[ResponsePiece(float(values[0]), slopes)]]
        along = np.einsum("ia,kij,ja->ak", modes, slopes, modes)
        return [[ResponsePiece(float(v), s.reshape(2, 1, 1)) for v, s in zip(values, along, strict=True)]]

    designs = Designs([Term("lowest", 1.0, None, 1.0)], lambda z: np.linalg.eigvalsh(at(z))[:1], pieces)
    result = descend(designs, np.array([0.2, 0.9]), np.ones(2, dtype=bool), 80, 1e-9)
    assert result.values[0] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("upper = 0.04", "upper = 0.001", "nothing lies between"),
        ("lower = 0.006\nupper = 0.04", "choices = []", "the list of choices is empty"),
        ("constants.side0", "constants.depth", "there is no value at 'constants.depth'"),
        ('maximise = "first"', 'maximise = "last"', "there is no response 'last'"),
        ("steps = 3", "stepps = 3", "stepps"),
        ('response = "mass"\nupper', 'response = "mas"\nupper', "constraint.0.response.*there is no response 'mas'"),
        (
            "frequency:1",
            'frequency:1"\ntolerances = { "constants.side0" = -1e-4 }\nabout = "undeformed',
            "responses.first.tolerances.*standard deviation -0.0001 of 'constants.side0' is negative",
        ),
    ],
)
def test_invalid_problem_files_are_refused(tmp_path, old, new, says):
    limit = cantilever(tmp_path, 2)
    path = problem(tmp_path, 2, limit, steps=3)
    text = (tmp_path / "problem.toml").read_text()
    assert old in text
    (tmp_path / "problem.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(parflex.ParflexError, match=says):
        parflex.optimise(path)


def test_the_command_writes_a_robot_file_and_a_page(tmp_path, capsys):
    path = problem(tmp_path, 2, cantilever(tmp_path, 2), steps=2)
    answer = answered(capsys, "optimise", path, "--out", tmp_path / "out")
    assert {"status", "objective", "variables", "responses", "constraints", "robot_file", "page"} <= set(answer)
    assert set(answer["constraints"][0]) == {"name", "value", "limit", "active", "multiplier"}
    page = (tmp_path / "out" / "index.html").read_text()
    assert "constants.side0" in page and page.count('<img alt="before"') == page.count('<img alt="after"') == 2
    assert parflex.load(answer["robot_file"]).tree.n > 0


def test_smooth_optima_are_polished_to_their_last_digits():
    # largest -|z - c|^2 below the line z_0 + z_1 = 0.9: at the foot of the perpendicular from c = (0.6, 0.5)
    centre = np.array([0.6, 0.5])

    def values(z):
        return np.array([1 - (z - centre) @ (z - centre), z.sum()])

    def pieces(z):
        slopes = [-2 * (z - centre), np.ones(2)]
        return [[ResponsePiece(float(v), s.reshape(2, 1, 1))] for v, s in zip(values(z), slopes, strict=True)]

    designs = Designs([Term("f", 1.0, None, 1.0), Term("line", -1.0, 0.9, 1.0)], values, pieces)
    free = np.ones(2, dtype=bool)
    rough = descend(designs, np.array([0.1, 0.2]), free, 4, 1e-6)
    result = polished(designs, rough, free)
    assert result.z == pytest.approx([0.5, 0.4], abs=1e-7)
    assert result.multipliers[1] == pytest.approx(0.2, rel=1e-3)  # d/dlimit of 1 - 2 (1.1 - limit)^2 / 4


def test_a_front_by_gradients_goes_from_the_lightest_to_the_stiffest_beam(tmp_path):
    limit = cantilever(tmp_path, 1)
    path = problem(tmp_path, 1, limit, '[pareto]\nminimise = "mass"\npoints = 3', steps=20)
    result = parflex.optimise(path)
    assert [len(one["variables"]) for one in result.front] == [1, 1, 1]
    for one in result.front:
        side = one["variables"]["constants.side0"]
        assert one["objectives"]["first"] == pytest.approx(own_frequency([side]), rel=1e-6)
        assert one["objectives"]["mass"] == pytest.approx(RHO * (side**2 + 0.5 * SIDE**2), rel=1e-9)
    sides = [one["variables"]["constants.side0"] for one in result.front]
    assert sides[0] == pytest.approx(0.3 * SIDE) and sides[2] == pytest.approx(SIDE, rel=1e-6)


@pytest.mark.verify
def test_fronts_by_gradients_and_by_pymoo_have_the_same_area(tmp_path):
    pytest.importorskip("pymoo")
    limit, fronts = cantilever(tmp_path, 2), []
    for method in ("gradients", "pymoo"):
        table = f'[pareto]\nminimise = "mass"\nmethod = "{method}"\npoints = 41\npopulation = 60\ngenerations = 60'
        front = parflex.optimise(problem(tmp_path, 2, limit, table, steps=40)).front
        fronts.append(np.array(sorted([part["objectives"]["mass"], part["objectives"]["first"]] for part in front)))
    low, high = fronts[0][:, 1].min(), fronts[0][:, 0].max()
    areas = [float(np.sum(np.diff(front[:, 0], append=high).clip(0) * (front[:, 1] - low).clip(0))) for front in fronts]
    assert areas[1] == pytest.approx(areas[0], rel=1e-2)


E_ALU, RHO_ALU = 7e10, 2700.0
L, ROD, ARM, BASE, CRANK = 0.3, 0.35, 0.08, 0.5, 0.02
LEGS = range(3)


def geometry():
    """Of each leg: base, angle of the beam, angle of the rod, attachment; the platform in the middle."""
    result = []
    for k in LEGS:
        out = np.array([np.cos(np.pi / 2 + 2 * np.pi * k / 3), np.sin(np.pi / 2 + 2 * np.pi * k / 3)])
        way = (ARM - BASE) * out
        far = np.linalg.norm(way)
        turn = np.arctan2(way[1], way[0]) + np.arccos((L**2 + far**2 - ROD**2) / (2 * L * far))
        rod = ARM * out - BASE * out - L * np.array([np.cos(turn), np.sin(turn)])
        result.append((BASE * out, turn, np.arctan2(rod[1], rod[0]), ARM * out))
    return result


def parted(skew):
    return 1 + skew, 1 - skew / 2, 1 - skew / 2


def element(side):
    """Stiffness and mass of half a leg's beam, over displacements along and across it and turns at both ends."""
    h, A, bends = L / 2, side**2, [1, 2, 4, 5]
    K, M = np.zeros((6, 6)), np.zeros((6, 6))
    K[np.ix_([0, 3], [0, 3])] = E_ALU * A / h * np.array([[1, -1], [-1, 1]])
    M[np.ix_([0, 3], [0, 3])] = RHO_ALU * A * h / 6 * np.array([[2, 1], [1, 2]])
    K[np.ix_(bends, bends)], M[np.ix_(bends, bends)] = bending(h, side, E_ALU, RHO_ALU)
    return K, M


def lowest(root, tip, skew):
    K, M, rods = np.zeros((21, 21)), np.zeros((21, 21)), np.zeros((3, 21))
    M[[0, 1, 2], [0, 1, 2]] = 1.0, 1.0, 0.004
    for k, (_, turn, rod, arm) in enumerate(geometry()):
        (k1, m1), (k2, m2) = element(root * parted(skew)[k]), element(tip * parted(skew)[k])
        first, both = np.arange(3 + 6 * k, 6 + 6 * k), np.arange(3 + 6 * k, 9 + 6 * k)
        K[np.ix_(first, first)] += k1[3:, 3:]
        M[np.ix_(first, first)] += m1[3:, 3:]
        K[np.ix_(both, both)] += k2
        M[np.ix_(both, both)] += m2
        way = np.array([np.cos(rod), np.sin(rod)])
        rods[k, :3] = *way, way @ [-arm[1], arm[0]]
        rods[k, both[3:5]] = -way @ [np.cos(turn), np.sin(turn)], -way @ [-np.sin(turn), np.cos(turn)]
    Z = scipy.linalg.null_space(rods)
    return np.sqrt(scipy.linalg.eigh(Z.T @ K @ Z, Z.T @ M @ Z, eigvals_only=True)[:2]) / (2 * np.pi)


def best_of_grids(squares):
    """The best of nested grids whose beams have a given sum of squared sides."""
    best, low, high = (0.0, 0.0, 0.0), np.array([0.008, -0.3]), np.array([0.04, 0.3])
    for _ in range(9):
        for tip in np.linspace(low[0], high[0], 13):
            for skew in np.linspace(low[1], high[1], 13):
                root = np.sqrt(max(squares / np.sum(np.square(parted(skew))) - tip**2, 0.0))
                if 0.008 <= root <= 0.04:
                    best = max(best, (lowest(root, tip, skew)[0], tip, skew))
        half = (high - low) / 6
        low, high = np.maximum(best[1:] - half, [0.008, -0.3]), np.minimum(best[1:] + half, [0.04, 0.3])
    return best


@pytest.mark.verify
def test_a_symmetric_robot_is_best_where_two_modes_are_equal(tmp_path):
    bounds = {"root": "lower = 0.008\nupper = 0.04", "tip": "lower = 0.008\nupper = 0.04",
              "skew": "lower = -0.3\nupper = 0.3\nstart = 0.15"}  # fmt: skip
    text = f'robot = "{robot_file("three-rods").as_posix()}"\nsteps = 60\n'
    text += "".join(f"[variables.constants.{key}]\n{value}\n" for key, value in bounds.items())
    text += '[responses.first]\nresponse = "frequency:1"\npose = "middle"\n[responses.mass]\nresponse = "mass"\n'
    text += '[objective]\nmaximise = "first"\n[[constraint]]\nresponse = "mass"\n'
    text += f"upper = {1 + RHO_ALU * L / 2 * 6 * CRANK**2}\n"
    (tmp_path / "problem.toml").write_text(text)
    result = parflex.optimise(str(tmp_path / "problem.toml"))
    values = [result.variables[f"constants.{key}"]["value"] for key in bounds]
    assert abs(values[2]) < 1e-6 and result.status == "optimal"
    own = lowest(*values)
    assert result.objective == pytest.approx(own[0], rel=1e-8) and own[1] == pytest.approx(own[0], rel=1e-6)
    # cells of the last grid are 1e-5 wide
    assert result.objective == pytest.approx(best_of_grids(6 * CRANK**2)[0], rel=1e-6)
