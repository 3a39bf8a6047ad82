"""The forms in which programs write the physics: the same numbers as the general path, at awkward poses too."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from support.comparison import written
from support.mechanisms import INVENTED, invented
from support.traced import LEG_FORM, Sample, difference, expected, inputs, made, robot, samples
from support.variants import read_table, toml_text

import parflex
from parflex import ActuationError, Configuration, ParflexError, configure
from parflex.codegen.passes.optimise import make_program
from parflex.graph import Graph
from parflex.models.dynamics.reduced import reduced_equations
from parflex.models.forms.on_legs.platform_legs import find_legs
from parflex.recursion import pose
from parflex.recursion.articulated import articulated_accelerations
from parflex.recursion.newton_euler import JOINT_TERMS
from parflex.spatial.linear import solve, solve_positive, triangular_blocks

ROUNDING = 1e-11  # systems of condition up to 1e3 in double precision


# -- linear systems ------------------------------------------------------------------------------------------------


def symbolic(graph: Graph, name: str, numbers: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """Symbols where an array has numbers, plain zeros where it has zeros; and their values."""
    array, values = np.zeros(numbers.shape, dtype=object), {}
    for index in np.ndindex(numbers.shape):
        if numbers[index] != 0:
            label = f"{name}{index}"
            array[index], values[label] = graph.symbol(label), float(numbers[index])
    return array, values


def solved(solver, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """By a program of symbols."""
    graph = Graph()
    (left, values), (right, more) = symbolic(graph, "A", A), symbolic(graph, "b", b)
    program = make_program(graph, "solve", {"x": solver(left, right)})
    found = program.evaluate({name: (values | more).get(name, 0.0) for name in program.inputs})
    return np.array(list(found.values())).reshape(b.shape)


@pytest.mark.parametrize("columns", [None, 2])
def test_systems_of_symbols_are_solved_by_their_structure(columns):
    rng = np.random.default_rng(6)
    for density in (0.4, 0.7, 1.0):
        for _ in range(8):
            A = rng.uniform(-1, 1, (6, 6)) * (rng.random((6, 6)) < density) + np.eye(6)[rng.permutation(6)] * 2
            b = rng.uniform(-1, 1, 6 if columns is None else (6, columns))
            wanted = np.linalg.solve(A, b)
            # the condition of such matrices is below 1e3
            assert solved(solve, A, b) == pytest.approx(wanted, abs=1e-12 * max(1, np.abs(wanted).max()) * 1e2)


def test_a_system_whose_leading_pivots_vanish_is_solved():
    graph = Graph()
    names = np.array([[f"a{i}{j}" for j in range(4)] for i in range(4)])
    A = np.array([[graph.symbol(name) for name in row] for row in names], dtype=object)
    b = np.array([graph.symbol(f"b{i}") for i in range(4)], dtype=object)
    program = make_program(graph, "solve", {"x": solve(A, b)})
    numbers = np.array(
        [[0, 0, 0, 2.0], [0, 0, 3.0, 1], [0, 4.0, 1, 1], [5.0, 1, 1, 1]]
    )  # entries are zero, symbols are not
    right = np.array([1.0, -2, 3, 4])
    values = dict(zip(names.ravel(), numbers.ravel(), strict=True)) | {f"b{i}": right[i] for i in range(4)}
    assert list(program.evaluate(values).values()) == pytest.approx(np.linalg.solve(numbers, right), rel=1e-14)


def legs_on_a_platform(rng, legs: int, zeros: float) -> np.ndarray:
    """A regular matrix like that of legs with 4 joints and 5 rows each on a platform with as many unknowns as legs."""
    while True:
        A = np.zeros((5 * legs, 5 * legs))
        for k in range(legs):
            own = slice(5 * k, 5 * k + 5)
            A[own, 4 * k : 4 * k + 4] = rng.uniform(-1, 1, (5, 4)) * (rng.random((5, 4)) > zeros)
            A[own, 4 * legs :] = rng.uniform(-1, 1, (5, legs)) * (rng.random((5, legs)) > zeros)
        if np.linalg.cond(A) < 1e3:
            return A


def test_legs_are_eliminated_one_by_one_at_any_pose():
    """The same program for matrices whose entries vanish in other places each time: no row can be chosen beforehand."""
    rng, graph, legs = np.random.default_rng(10), Graph(), 3
    A, _ = symbolic(graph, "A", np.abs(legs_on_a_platform(rng, legs, 0.0)))
    b = np.array([graph.symbol(f"b{k}") for k in range(5 * legs)], dtype=object)
    program = make_program(graph, "legs", {"x": solve(A, b)})
    # in one block elimination alone takes 2 n^3 / 3; leg by leg it is about 4 x 5 x (4 + 3 + 1) for each, and 3 x 3
    assert program.counts()["total"] < 2 * (5 * legs) ** 3 / 3 / 3
    for _ in range(20):
        numbers, right = legs_on_a_platform(rng, legs, 0.4), rng.uniform(-1, 1, 5 * legs)
        values = {f"A{index}": numbers[index] for index in np.ndindex(numbers.shape)}
        values |= {f"b{k}": value for k, value in enumerate(right)}
        found = program.evaluate({name: float(values[name]) for name in program.inputs})
        # rounding times the condition
        assert list(found.values()) == pytest.approx(np.linalg.solve(numbers, right), rel=1e-10, abs=1e-10)


def test_constants_among_symbols_are_eliminated_as_numbers():
    graph = Graph()
    a, b = graph.symbol("a"), graph.symbol("b")
    A = np.array(
        [[1.0, 2.0, 0, 0, a], [3.0, 1.0, 0, 0, b], [-1.0, 4.0, 0, 0, 1.0], [0, 0, a, b, 1.0], [0, 0, b, -a, 0]]
    )
    A = A.astype(object)
    x = solve(A, np.array([1.0, 2.0, 3.0, a, 0.0], dtype=object))
    program = make_program(graph, "mixed", {"x": x})
    numbers = np.array(
        [[0.7 if e is a else 1.3 if e is b else -0.7 if hasattr(e, "edge") else e for e in row] for row in A]
    )
    found = program.evaluate({"a": 0.7, "b": 1.3})
    wanted = np.linalg.solve(numbers.astype(float), [1.0, 2.0, 3.0, 0.7, 0.0])
    assert list(found.values()) == pytest.approx(wanted, rel=1e-13)  # condition below 100


def test_a_positive_definite_system_is_solved_without_pivots():
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 6):
        J = rng.uniform(-1, 1, (n + 2, n))
        A, b = J.T @ J + 0.1 * np.eye(n), rng.uniform(-1, 1, n)
        assert solved(solve_positive, A, b) == pytest.approx(np.linalg.solve(A, b), rel=1e-11)  # condition below 1e3


def test_blocks_come_in_an_order_in_which_each_needs_earlier_ones_only():
    rng = np.random.default_rng(8)
    for _ in range(20):
        A = rng.uniform(1, 2, (7, 7)) * (rng.random((7, 7)) < 0.3) + np.eye(7)[rng.permutation(7)]
        known: set[int] = set()
        for rows, columns in triangular_blocks(A):
            used = {int(k) for row in rows for k in np.flatnonzero(A[row])}
            assert used <= known | set(columns)
            known |= set(columns)
        assert known == set(range(7))
    with pytest.raises(np.linalg.LinAlgError, match="structure"):
        triangular_blocks(np.array([[1.0, 0], [1.0, 0]]))


# -- legs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEG_FORM)
def test_robots_on_legs_with_balls_are_recognised(name):
    assert find_legs(robot(name)).closed_form
    assert set(made(name, "inverse").inputs) >= {"position", "rotation", "velocity", "acceleration"}


@pytest.mark.parametrize("name", ["delta", "5r", "c5", "rx90", "wrist"])
def test_other_robots_take_the_general_form(name):
    form = find_legs(robot(name))
    assert isinstance(form, str) or not form.closed_form


UNIVERSAL = {"inverse": 2270, "step": 4870}  # operators of six-ups; a rise is an error


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
@pytest.mark.parametrize("model", ["inverse", pytest.param("step", marks=pytest.mark.verify)])
def test_a_universal_joint_costs_what_two_revolute_joints_cost(model, tmp_path, figure):
    program = made("six-ups", model)
    hinges = parflex.load(written(toml_text(with_two_hinges(read_table(invented("six-ups")))), tmp_path))
    assert program.counts["total"] == parflex.model(hinges, model, include=()).counts["total"] == UNIVERSAL[model]
    states = samples("six-ups", 10)
    error = difference(program(**inputs(program, states)), expected("six-ups", model, states))
    figure(f"six-ups, {model}: closed legs with universal joints against the float path", error, ROUNDING)
    assert error < ROUNDING


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


@pytest.mark.few
@pytest.mark.parametrize("name", ["gough-stewart", "space", "3rrr"])
def test_efforts_are_right_where_components_of_legs_vanish(name, figure):
    poses = awkward_poses(name) + (aligned_poses(name) if name != "3rrr" else [])
    model, of = made(name, "inverse"), robot(name)
    rng = np.random.default_rng(9)
    states = []
    for words in poses:
        try:
            configuration = configure(of, words)
        except ParflexError:  # out of reach
            continue
        condition = configuration.condition
        if max(condition.platform, condition.closures, *condition.legs.values()) > 1e3:
            continue
        names = of.actuated_names
        motion = [dict(zip(names, size * rng.uniform(-1, 1, len(names)), strict=True)) for size in (0.1, 1)]
        result = parflex.inverse_dynamics(of, configuration, *motion, without=JOINT_TERMS)
        efforts = np.array(list(result.efforts.values()))
        states.append(Sample(configuration, result.rates, result.accelerations, efforts))
    assert len(states) > len(poses) / 2
    found = model(**inputs(model, states))
    error = difference(found, expected(name, "inverse", states))
    figure(f"{name}: efforts at {len(states)} poses with vanishing components", error, ROUNDING)
    assert error < ROUNDING


def test_a_working_mode_with_the_elbows_on_the_other_side_is_followed():
    modes = sorted({"default", *parflex.load("3rrr").description.working_modes})
    assert len(modes) > 1
    for mode in (modes[0], modes[-1]):
        other = parflex.load("3rrr", working_mode=mode)
        model = parflex.model(other, "geometry")
        configuration = configure(other, {"x": 0.02, "y": 0.01, "theta": 0.1})
        platform = Sample(configuration, np.zeros(9), np.zeros(9), np.zeros(3)).platform()
        joints = model(position=platform["position"], rotation=platform["rotation"])["joints"]
        names = list(other.tree.position_names)
        wanted = configuration.q[[names.index(joint) for joint in model.labels["joints"]]]
        assert (joints - wanted + np.pi) % (2 * np.pi) - np.pi == pytest.approx(np.zeros(6), abs=1e-12)  # rounding


# -- robots that were never in the catalogue -----------------------------------------------------------------------


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
        with pytest.raises(ParflexError, match="motors"):
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


@pytest.mark.parametrize("name", ["rx90", "scara", "floating"])
def test_articulated_bodies_give_the_accelerations_of_the_mass_matrix(name, tmp_path):
    of = parflex.load(floating(tmp_path)) if name == "floating" else robot(name)
    tree = of.tree
    rng = np.random.default_rng(10)
    for _ in range(5):
        q = tree.moved(of.home, rng.uniform(-1, 1, tree.n))
        qd, tau = rng.uniform(-2, 2, tree.n), rng.uniform(-5, 5, tree.n)
        configuration = Configuration(of, q)
        M, c, _ = reduced_equations(configuration, qd)
        found = articulated_accelerations(tree, pose(tree, q), q, qd, tau)
        assert found == pytest.approx(np.linalg.solve(M, tau - c), rel=1e-9, abs=1e-9)  # condition up to 1e4


def floating(folder):
    """A hull that floats, with a hand on a ball and an arm on a hinge with its own motor."""
    inertia = "inertia = { mass = 3, centre = [0.1, 0.2, -0.1], about_centre = [0.2, 0.3, 0.25] }"
    rows = ["format = 1", 'name = "floating"', "gravity = [0, 1, -9.81]"]
    for name, parent, joint in (("hull", "base", "free"), ("hand", "hull", "spherical"), ("arm", "hand", "revolute")):
        rows += ["[[frame]]", f'name = "{name}"', f'parent = "{parent}"', f'joint = "{joint}"', inertia]
        rows += ["place = { position = [0.1, 0.2, 0.3], rotation = [0.1, 0.2, 0.3] }"]
    rows += ["actuated = true", "motor_inertia = 0.3"]
    file = folder / "floating.toml"
    file.write_text("\n".join(rows), encoding="utf-8")
    return file


def test_the_direct_program_of_a_floating_robot_equals_the_float_path(tmp_path):
    of = parflex.load(floating(tmp_path))
    model = parflex.model(of, "direct", include=["motor-inertia"])
    rng = np.random.default_rng(11)
    q, qd = of.tree.moved(of.home, rng.uniform(-1, 1, of.tree.n)), rng.uniform(-2, 2, of.tree.n)
    M, c, _ = reduced_equations(Configuration(of, q), qd)
    push = np.zeros(of.tree.n)
    push[list(of.actuated)] = 2.5
    found = model(q=q, qd=qd, effort=[2.5])["qdd"]
    assert found == pytest.approx(np.linalg.solve(M, push - c), rel=1e-10)  # rounding, condition below 1e3


# -- what cannot be generated --------------------------------------------------------------------------------------


def test_models_that_the_motors_do_not_define_are_refused_by_name(tmp_path):
    of = parflex.load(floating(tmp_path))
    for model in ("jacobian-of-inverse", "step"):
        with pytest.raises(ActuationError, match="1 motor for 10 freedoms"):
            parflex.model(of, model)


def test_an_arm_with_a_locked_joint_keeps_it_where_it_is(tmp_path):
    rows = ["format = 1", 'name = "arm"', "gravity = [0, 0, -9.81]"]
    for k, more in enumerate(("actuated = true", "locked = true\nstart = 0.4", "actuated = true")):
        rows += ["[[frame]]", f'name = "{k}"', f'parent = "{k - 1 if k else "base"}"', 'joint = "revolute"', more]
        rows += ["mdh = { alpha = 0.7, d = 0.3 }", "inertia = { mass = 2, centre = [0.1, 0.1, 0.1] }"]
    file = tmp_path / "arm.toml"
    file.write_text("\n".join(rows), encoding="utf-8")
    of = parflex.load(file)
    q, qd, qdd = np.array([0.3, 0.4, -0.5]), np.array([1.0, -2.0]), np.array([3.0, 4.0])
    words = [dict(zip(("0", "2"), values, strict=True)) for values in ((0.3, -0.5), qd, qdd)]
    wanted = np.array(list(parflex.inverse_dynamics(of, *words, without=JOINT_TERMS).efforts.values()))
    inverse, step = parflex.model(of, "inverse"), parflex.model(of, "step")
    assert inverse(q=q, qd=qd, qdd=qdd)["effort"] == pytest.approx(wanted, rel=1e-12)  # rounding
    motors = {"motor_position": q[[0, 2]], "motor_rate": qd, "motor_acceleration": qdd}
    assert step(**motors)["effort"] == pytest.approx(wanted, rel=1e-12)
    accelerations = parflex.model(of, "direct")(q=q, qd=qd, effort=wanted)["qdd"]
    assert accelerations == pytest.approx(qdd, rel=1e-10)  # rounding, condition below 1e3
