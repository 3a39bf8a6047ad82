"""Elements between two points against Lagrange's equations, and against forms without them."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from support.comparison import largest, order_of, positions, written
from support.emitted import c_library, llvm_batch
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.reader import read_robot

import parflex
from parflex import Configuration, ParflexError, RobotFileError
from parflex.codegen.family import family_model, member
from parflex.description.schema import json_schema
from parflex.models.dynamics.dynamic_models import moved_by, rigid_inverse
from parflex.models.elastic.participation import energy_shares
from parflex.models.frames_and_jacobians import counts as info
from parflex.tree.point_elements import Curve
from parflex.view.scene.robot_scene import scene

ROBOTS = Path(__file__).parent / "robots"
RIGID = ["sprung-arm", "sprung-five-bar", "rod-linkage", "struts"]
BEAMS = "sprung-beams"
ALL = [*RIGID, BEAMS]
TIGHT = 1e-10  # systems of condition up to 1e4 in double precision


@cache
def load(name):
    return parflex.load(ROBOTS / f"{name}.toml")


@cache
def lagrange(name):
    kind = FlexibleEnergyModel if name == BEAMS else EnergyModel
    data = read_robot(ROBOTS / f"{name}.toml")
    robot = load(name)
    rods = {row.name: row.rest for row in robot.closures.constraints if row.kind == "rod"}
    assert all(e.rest is None for e in data.elements if e.kind == "rod")
    for element in data.elements:  # the files leave them out: as long as they start
        if element.kind == "rod":
            object.__setattr__(element, "rest", rods[element.name])
    return kind(data)


def states(name, count, seed, size=0.2):
    """Closed configurations about home with rates of all coordinates that fit, and efforts."""
    robot, rng = load(name), np.random.default_rng(seed)
    home, tree = Configuration(robot, robot.home), robot.tree
    for _ in range(count):
        step = np.zeros(tree.n)
        direction = home.null_space @ rng.standard_normal(home.null_space.shape[1])
        step[robot.free] = size * direction / largest(direction) * tree.rate_units[robot.free]
        if tree.elastic:
            step[list(tree.elastic)] *= 0.02
        q, error = robot.assembler.newton(tree.moved(home.q, step), robot.free, robot.closures.rows)
        assert error < 1e-12
        at = Configuration(robot, q)
        qd = np.zeros(tree.n)
        qd[robot.free] = at.null_space @ rng.standard_normal(at.null_space.shape[1]) * tree.rate_units[robot.free]
        yield at, at.J @ qd[at.reduction.partition.independent], rng.uniform(-5, 5, len(robot.actuated))


def saddle(oracle, at, qd, efforts):
    """Accelerations and multipliers by one system of all rates and all rows, in our order of rates."""
    robot, named = at.robot, positions(at)
    back = np.argsort(order_of(robot, oracle))
    M, c = oracle.mass_matrix_and_bias(named, qd[back])
    A, bias = oracle.closure_jacobian(named, qd[back])
    force = np.zeros(len(M))
    for name, value in zip(robot.actuated_names, efforts, strict=True):
        force[oracle.coordinates.index(name)] = value
    zero = np.zeros((len(A), len(A)))
    found = np.linalg.solve(np.block([[M, -A.T], [A, zero]]), np.concatenate([force - c, -bias]))
    return found[: len(M)][order_of(robot, oracle)], found[len(M) :]


# -- against Lagrange ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_accelerations_efforts_energies_and_forces_are_those_of_lagrange(name, figure):
    robot, oracle, worst = load(name), lagrange(name), 0.0
    held = [row.name for row in robot.closures.constraints]
    for at, qd, tau in states(name, 4, 4):
        found = moved_by(at, qd, tau, reactions=True)
        qdd, lam = saddle(oracle, at, found.rates, tau)
        worst = max(worst, largest(found.accelerations - qdd) / largest(qdd))
        kinetic, potential = parflex.energies(at, qd)
        back = np.argsort(order_of(robot, oracle))
        assert (kinetic, potential) == pytest.approx(oracle.energy(positions(at), qd[back]), rel=1e-11)
        pulled = [-found.elements[rod]["force"] for rod in held]
        if held:
            assert pulled == pytest.approx(lam[-len(held) :], rel=1e-8, abs=1e-8 * largest(lam))
        assert found.reactions["elements"].keys() == found.elements.keys()
        if len(at.reduction.partition.independent) == len(tau) and not robot.tree.elastic:
            again = rigid_inverse(at, qd, qdd)
            assert list(again.efforts.values()) == pytest.approx(tau, rel=1e-8, abs=1e-8 * largest(qdd))
    figure(f"{name}: accelerations against Lagrange", worst, TIGHT)
    assert worst < (1e-9 if name == BEAMS else TIGHT)  # beams are stiff: their forces take digits


@pytest.mark.parametrize("name", ALL)
def test_frequencies_about_rest_are_the_second_derivatives_of_the_energies(name, figure):
    """About an equilibrium, with the multipliers of all rows and the tension of all elements."""
    robot, oracle = load(name), lagrange(name)
    lock = "actuators" if name == BEAMS else "none"
    held = {} if name in (BEAMS, "sprung-arm") else parflex.inverse_dynamics(robot).efforts
    rest = parflex.equilibrium(robot, None, lock, effort=held)
    at = rest.configuration
    named, back = positions(at), np.argsort(order_of(robot, oracle))
    tau = np.array([held.get(k, 0.0) for k in robot.actuated_names])
    locked = [] if lock == "none" else robot.actuated_names
    M, c = oracle.mass_matrix_and_bias(named, np.zeros(robot.tree.n))
    A, _ = oracle.closure_jacobian(named)
    rows = np.vstack([A, np.eye(len(M))[[oracle.coordinates.index(k) for k in locked]].reshape(-1, len(M))])
    force = c.copy()
    for motor, value in zip(robot.actuated_names, tau, strict=True):
        force[oracle.coordinates.index(motor)] -= value
    lam, *_ = np.linalg.lstsq(rows.T, force, rcond=None)
    assert largest(rows.T @ lam - force) < 1e-7 * max(1.0, largest(c))  # at rest indeed
    K = oracle.tangent(named, lam[: len(A)])
    Z = scipy.linalg.null_space(rows)
    expected = np.sort(scipy.linalg.eigvalsh(Z.T @ K @ Z, Z.T @ M @ Z))
    model = parflex.linear_model(robot, None, lock, "equilibrium", effort=held)
    found = np.sort(scipy.linalg.eigvalsh((model.K + model.K.T) / 2, model.M))
    error = largest(found - expected) / largest(expected)
    figure(f"{name}: squares of frequencies against Lagrange", error, 1e-8)
    assert error < 1e-8 and len(back) == robot.tree.n


def test_a_mass_between_two_stretched_springs_swings_across_by_their_tension(tmp_path):
    """omega^2 = 2 T / (l m) across and 2 k / m along, also without an equilibrium being asked for."""
    text = """
format = 1
name = "string"
gravity = [0, 0, 0]
[platform]
inertia = { mass = 2.0, about_centre = [0.1, 0.1, 0.1] }
[[point]]
name = "left"
frame = "base"
position = [-0.5, 0, 0]
[[point]]
name = "right"
frame = "base"
position = [0.5, 0, 0]
[[element]]
name = "a"
kind = "spring"
between = ["left", "platform"]
stiffness = 300
rest = 0.3
damping = 4
[[element]]
name = "b"
kind = "spring"
between = ["platform", "right"]
stiffness = 300
rest = 0.3
"""
    robot = parflex.load(written(text, tmp_path))
    found = parflex.natural_frequencies(robot, lock="none")
    across, along = np.sqrt(2 * 300 * 0.2 / 0.5 / 2), np.sqrt(2 * 300 / 2)
    assert 2 * np.pi * found.frequencies == pytest.approx([across, across, along], rel=1e-12)
    assert len(found.free_motions) == 3  # its three turns
    assert found.damping == pytest.approx([0, 0, 4 / (2 * 2 * along)], abs=1e-12)
    still = parflex.natural_frequencies(robot, lock="none", without=["damping"])
    assert still.damping == pytest.approx([0, 0, 0])
    with pytest.raises(ParflexError):
        parflex.natural_frequencies(robot, lock="none", without=["springs"], modes=1)
    assert energy_shares(found)[2]["strain"]["elements"] == pytest.approx({"a": 0.5, "b": 0.5})


@pytest.mark.verify
def test_frequencies_of_many_poses_are_those_of_single_ones():
    robot, poses = load(BEAMS), np.array([[0.3], [0.35]])
    many = parflex.many_frequencies(robot, ["arm"], poses, modes=3)
    for pose, found in zip(poses, many.frequencies, strict=True):
        expected = parflex.natural_frequencies(robot, {"arm": float(pose[0])}, 3).frequencies
        assert found == pytest.approx(expected, rel=1e-9)


# -- against forms without them ------------------------------------------------------------------------------


def bare(name, folder):
    """The same robot without elements."""
    text = (ROBOTS / f"{name}.toml").read_text(encoding="utf-8")
    return parflex.load(written(text[: text.index("[[element]]")], folder, name))


@pytest.mark.parametrize("name", ["sprung-arm", "sprung-five-bar", "rod-linkage"])
def test_elements_act_as_wrenches_on_both_points(name, tmp_path):
    """Accelerations and reactions of joints are those of the robot without elements under the forces of these."""
    robot, plain = load(name), bare(name, tmp_path)
    for at, qd, tau in states(name, 2, 7):
        found = moved_by(at, qd, tau, reactions=True)
        wrench = {}
        for entry in robot.description.element:
            p1, p2 = (at.at.of(robot.tree.places[end])[1] for end in entry.between)
            pull = found.elements[entry.name]["force"] * (p2 - p1) / np.linalg.norm(p2 - p1)
            assert found.elements[entry.name]["length"] == pytest.approx(np.linalg.norm(p2 - p1))
            for end, sign in zip(entry.between, (1, -1), strict=True):
                if end != "base" and robot.tree.places[end].link >= 0:
                    wrench[end] = wrench.get(end, np.zeros(6)) + np.r_[sign * pull, np.zeros(3)]
        same = moved_by(Configuration(plain, at.q), qd, tau, wrench, reactions=True)
        assert found.accelerations == pytest.approx(same.accelerations, rel=1e-9, abs=1e-9)
        for joint, reaction in same.reactions["joints"].items():
            ours = found.reactions["joints"][joint]
            assert ours["force"] == pytest.approx(reaction["force"], rel=1e-8, abs=1e-8)
            assert ours["moment"] == pytest.approx(reaction["moment"], rel=1e-8, abs=1e-8)


def test_six_struts_are_the_legs_without_mass_of_the_catalogue(tmp_path):
    text = resources.files("parflex.description.catalogue").joinpath("gough-stewart.toml").read_text(encoding="utf-8")
    legs = re.sub(r"inertia = \{ M.*\n", "", text)
    head, tail = legs[: legs.index("[[legs.frame]]")], legs[legs.index("[[legs.point]]") :]
    struts = (
        re.sub(r"start_\d = .*\n", "", head)
        + """
[[legs.point]]
name = "foot"
frame = "base"
position = ["base_x", "base_y", 0]
[[legs.element]]
name = "3"
kind = "strut"
between = ["foot", "attachment"]
actuated = true
"""
        + tail[: tail.index("[[legs.closure]]")]
    )
    old, new = parflex.load(written(legs, tmp_path, "legs")), parflex.load(written(struts, tmp_path, "struts"))
    assert old.actuated_names == new.actuated_names and info(new)["degrees_of_freedom"] == 6
    given = [{"x": 0.3, "y": 0.4, "z": 1.1, "rx": 0.1}, {"z": 0.3, "ry": 0.4}, {"x": 2.0, "rz": -1.0}]
    one, two = (parflex.inverse_dynamics(robot, *given) for robot in (old, new))
    assert list(two.efforts.values()) == pytest.approx(list(one.efforts.values()), rel=1e-9)
    lengths = {name: one.configuration.q[old.tree.position_names.index(name)] for name in old.actuated_names}
    assert {name: two.elements[name]["length"] for name in lengths} == pytest.approx(lengths, rel=1e-12)
    forces = [two.elements[name]["force"] for name in lengths]
    assert forces == pytest.approx([-value for value in two.efforts.values()], rel=1e-9)  # motors push, tension pulls
    back = parflex.configure(new, lengths)  # poses by lengths
    assert back.q[:3] == pytest.approx([0.3, 0.4, 1.1], abs=1e-9)
    moved = [parflex.forward_dynamics(robot, given[0], given[1], one.efforts).acceleration_of() for robot in (old, new)]
    assert moved[1] == pytest.approx(moved[0], abs=1e-9)


def test_a_rod_takes_away_a_freedom_and_a_spring_does_not(tmp_path):
    assert info(load("rod-linkage"))["degrees_of_freedom"] == 2
    assert info(bare("rod-linkage", tmp_path))["degrees_of_freedom"] == 3
    assert info(load("sprung-five-bar"))["degrees_of_freedom"] == 2
    names = info(load("struts"))["names"]
    assert names["actuated"] == names["elements"][1:] and names["elements"][0] == "hang"


def test_a_slack_cable_does_nothing_and_a_taut_one_pulls(tmp_path):
    text = """
format = 1
name = "yo-yo"
[[frame]]
name = "drop"
joint = "prismatic"
start = -0.3
inertia = { mass = 1.5 }
[[element]]
name = "rope"
kind = "cable"
between = ["base", "drop"]
stiffness = 2000
rest = 0.5
"""
    robot = parflex.load(written(text, tmp_path))
    short, long = ({"drop": -0.3}, {"drop": -0.7})
    assert parflex.forward_dynamics(robot, short).accelerations == pytest.approx([-9.81])
    found = parflex.forward_dynamics(robot, long)
    assert found.elements["rope"]["force"] == pytest.approx(400) and found.accelerations[0] == pytest.approx(
        400 / 1.5 - 9.81
    )
    assert parflex.energies(robot, long)[1] == pytest.approx(2000 * 0.04 / 2 - 1.5 * 9.81 * 0.7)
    assert parflex.energies(robot, short)[1] == pytest.approx(-1.5 * 9.81 * 0.3)
    run = parflex.simulate(robot, None, 2.0, step=2e-4, out_step=0.01)
    force = run["element.rope.force"]
    taut = run["element.rope.length"] > 0.5
    assert taut.any() and not taut.all() and np.all(force[~taut] == 0) and np.all(force[taut] > 0)
    assert np.ptp(run["energy.total"]) < 1e-4 * np.ptp(run["energy.kinetic"])  # kinks: steps cross them


def test_a_cable_that_shortens_fast_does_not_push(tmp_path):
    rope = "kind = 'cable'\nname = 'rope'\nbetween = ['base', 'drop']\nstiffness = 100\nrest = 0.5\ndamping = 50\n"
    text = "format = 1\nname = 'fall'\n[[frame]]\nname = 'drop'\njoint = 'prismatic'\nstart = -0.6\n"
    robot = parflex.load(written(f"{text}inertia = {{ mass = 1.0 }}\n[[element]]\n{rope}", tmp_path))
    for speed, force in ((0.0, 10.0), (0.1, 5.0), (3.0, 0.0), (-1.0, 60.0)):
        found = parflex.forward_dynamics(robot, None, {"drop": speed})
        assert found.elements["rope"]["force"] == pytest.approx(force)
        assert found.accelerations[0] == pytest.approx(force - 9.81)


# -- curves, programs, runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [[(0, 1), (1, 3)], [(0, 0), (1, 2), (2, 2.5), (4, -1)], [(0, -9), (0.1, 4), (3, 5)]])
def test_a_table_is_smooth_goes_through_its_points_and_stores_its_integral(points):
    from scipy.integrate import quad
    from scipy.interpolate import PchipInterpolator

    x, y = (tuple(float(v) for v in column) for column in zip(*points, strict=True))
    curve = Curve(x, y)
    assert [curve.value(v) for v in x] == pytest.approx(y, abs=1e-14)
    if len(x) > 2:
        inside = np.linspace(x[0], x[-1], 33)
        assert [curve.value(v) for v in inside] == pytest.approx(PchipInterpolator(x, y)(inside), abs=1e-13)
    for v in (x[0] - 1, x[0] + 0.3 * (x[1] - x[0]), x[-1] + 2):
        assert curve.integral(v) == pytest.approx(quad(curve.value, x[0], v, points=[], limit=200)[0], abs=1e-7)
    for v in x:
        below, above = ((curve.value(v + s * 1e-6) - curve.value(v)) / (s * 1e-6) for s in (-1, 1))
        # differences over 1e-6 err by half the second derivative, some hundred times the values here, times 1e-6
        assert below == pytest.approx(above, abs=1e-3 * max(map(abs, y)))


@pytest.mark.few
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", ALL)
def test_programs_of_robots_with_elements_equal_lagrange(name, target, tmp_path):
    robot, oracle = load(name), lagrange(name)
    words = ["direct"] if target == "c" or name == "sprung-arm" else ["inverse", "direct"]
    for word in words:
        model = parflex.model(robot, word)
        for at, qd, tau in states(name, 2, 9):
            qdd, _ = saddle(oracle, at, qd, tau)
            own = [robot.tree.rate_names.index(n) for n in model.labels["qd"]]
            given = {"q": at.q, "qd": qd[own], "qdd": qdd[own], "effort": tau}
            given["motor_acceleration"] = qdd[list(robot.actuated)]
            arrays = {key: np.array([given[key]]) for key in model.inputs}
            found = llvm_batch(model, arrays) if target == "llvm" else c_library(model, arrays, tmp_path)
            out = {key: value[0] for key, value in found.items()}
            if word == "direct":
                assert out["qdd"] == pytest.approx(qdd[own], rel=1e-9, abs=1e-9 * largest(qdd))
            else:
                assert out["effort"] == pytest.approx(tau, rel=1e-7, abs=1e-9 * largest(qdd))


@pytest.mark.parametrize("model", ["mass-matrix", "energy", "kinematics", "geometry", "step"])
def test_other_programs_of_a_platform_on_struts_equal_its_models(model):
    robot = load("struts")
    program = parflex.model(robot, model)
    at, qd, _ = next(states("struts", 1, 3))
    motors = [robot.tree.link_of_rate[k] for k in robot.actuated]
    places = [robot.tree.links[j].q.start for j in motors]
    found = rigid_inverse(at, qd, at.acceleration_bias(qd))
    own = [robot.tree.rate_names.index(n) for n in program.labels.get("qd", robot.actuated_names)]
    sensed = {"motor_position": at.q[places], "motor_rate": qd[list(robot.actuated)]}
    sensed["motor_acceleration"] = found.accelerations[list(robot.actuated)]
    guess = at.q.copy()
    guess[places] += 0.01
    if model == "step":
        guess = at.q + 1e-3
    given = {"q": at.q, "qd": qd[own], "rates": qd, "last": guess, "guess": guess, **sensed}
    out = program(**{key: np.asarray(given[key], dtype=float) for key in program.inputs})
    if model == "mass-matrix":
        expected = parflex.mass_matrix(robot, at)
        assert out["mass_matrix"] == pytest.approx(expected.matrix, rel=1e-10, abs=1e-12)
    elif model == "energy":
        kinetic, potential = parflex.energies(at, qd)
        assert [out["kinetic"][0], out["elastic"][0] + out["gravity"][0]] == pytest.approx(
            [kinetic, potential], rel=1e-10
        )
    elif model == "kinematics":
        assert out["rates"] == pytest.approx(qd, rel=1e-9, abs=1e-10)
    elif model == "geometry":
        assert out["q"] == pytest.approx(at.q, abs=1e-9)
    else:
        assert out["effort"] == pytest.approx(list(found.efforts.values()), rel=1e-6)


@pytest.mark.few
@pytest.mark.parametrize("name", ALL)
def test_robots_with_elements_keep_the_balance_of_energy(name, figure):
    robot = load(name)
    effort = dict.fromkeys(robot.actuated_names, 0.05)
    run = parflex.simulate(robot, None, 0.3, effort=effort, step=5e-4, out_step=0.05)
    size = np.ptp(run["energy.kinetic"])
    figure(f"{name}: balance of energy", run.summary["energy_balance_error"] / size, 1e-5)
    assert run.summary["energy_balance_error"] < 1e-5 * size  # fourth order at this step; beams vibrate fast
    q, change = (np.array([run[f"{w}.{c}"][-1] for c in robot.tree.position_names]) for w in ("q", "qd"))
    found = moved_by(Configuration(robot, q), robot.tree.rates(q, change), np.full(len(robot.actuated), 0.05))
    for element, values in found.elements.items():
        assert run[f"element.{element}.length"][-1] == pytest.approx(values["length"], rel=1e-9)
        assert run[f"element.{element}.force"][-1] == pytest.approx(values["force"], rel=1e-6, abs=1e-8)


def test_elements_can_be_left_out(tmp_path):
    robot, plain = load("sprung-five-bar"), bare("sprung-five-bar", tmp_path)
    given = ({"left": 1.9, "right": 1.2}, {"left": 2.0, "right": 1.0})
    without = parflex.inverse_dynamics(robot, *given, without=["springs"])
    assert list(without.efforts.values()) == pytest.approx(
        list(parflex.inverse_dynamics(plain, *given).efforts.values()), rel=1e-12
    )
    assert all(one["force"] == 0 for one in without.elements.values())
    undamped = parflex.inverse_dynamics(robot, *given, without=["damping"])
    still = parflex.inverse_dynamics(robot, given[0])
    assert undamped.elements["dash"]["force"] == 0
    assert undamped.elements["across"]["force"] == pytest.approx(still.elements["across"]["force"])


# -- told and shown ------------------------------------------------------------------------------------------


def test_elements_are_explained_drawn_and_in_the_schema(tmp_path):
    told = parflex.explain(load("rod-linkage"))
    rows = next(part for part in told.sections if part.key == "loops")
    assert rows.title == "Rods" and 45 in rows.equations and any("link: length = 0.52" in line for line in rows.text)
    tree = next(part for part in told.sections if part.key == "coordinates")
    assert 44 in tree.equations and any("gas (spring)" in line for line in tree.text)
    assert "element" in json_schema()["properties"]
    robot = load("struts")
    shown = scene(robot)
    bars = [part for part in shown.parts if type(part).__name__ == "Tie"]
    at = Configuration(robot, robot.home).at
    for part, entry in zip(sorted(bars, key=lambda p: p.group), robot.description.element, strict=True):
        ends = [at.of(place)[1] for place in (part.first, part.second)]
        placed = part.placed(robot.home)
        assert np.linalg.norm(placed.mean(axis=0) - (ends[0] + ends[1]) / 2) < 1e-9, entry.name
    figure = parflex.draw(robot, None, tmp_path / "struts.svg")
    assert (tmp_path / "struts.svg").stat().st_size > 1000 or figure is not None


# -- bad input -----------------------------------------------------------------------------------------------

BAD = {
    "kind = 'spring'": "needs its stiffness",
    "kind = 'spring'\nstiffness = 10": "needs its rest",
    "kind = 'spring'\nstiffness = -1\nrest = 0.1": "stiffness is negative",
    "kind = 'spring'\nstiffness = 0\nrest = 0.1": "stiffness 0",
    "kind = 'spring'\nstiffness = 1\nrest = 0.1\ntable = [[0, 1], [1, 2]]": "both say",
    "kind = 'spring'\ntable = [[0, 1]]": "one pair",
    "kind = 'spring'\ntable = [[1, 1], [0, 2]]": "do not rise",
    "kind = 'spring'\ntable = { speed = [[0, 1], [1, 2]] }": "table over length",
    "kind = 'damper'": "needs its damping",
    "kind = 'damper'\ndamping = 3\nrest = 0.1": "has no 'rest'",
    "kind = 'rod'\nrest = 0": "length zero",
    "kind = 'rod'\nstiffness = 10": "has no 'stiffness'",
    "kind = 'rod'\nrest = 5": "contradicts",
    "kind = 'cable'\nrest = 0.1": "needs its stiffness",
    "kind = 'force'": "needs its table",
    "kind = 'strut'\nstiffness = 10": "'stiffness' and 'rest'",
    "kind = 'glue'": "glue",
    "kind = 'rod'\nbetween = ['base', 'nowhere']": "no frame or point 'nowhere'",
    "kind = 'rod'\nbetween = ['left', 'left']": "same",
    "kind = 'rod'\nbetween = ['base', 'post']": "both on the ground",
    "kind = 'rod'\nbetween = ['left.elbow', 'tip']": "both on the body",
    "kind = 'rod'\nbetween = ['home', 'left']": "meet",
    "kind = 'spring'\nstiffness = 1\nrest = 0\ndamping = 2\nbetween = ['home', 'left']": "meet",
    "name = 'tip'\nkind = 'strut'": "a point is called 'tip' too",
    "name = 'left'\nkind = 'spring'\nstiffness = 1\nrest = 0.1": "a frame is called 'left' too",
    "name = 'x'\nkind = 'strut'": "'x' is a coordinate of the end effector",
    "name = 'tip.x'\nkind = 'strut'": "'tip.x' is a coordinate of the frame 'tip'",
    "name = 'none'\nkind = 'strut'": "'none' is a choice of joints",
    "name = 'a=b'\nkind = 'rod'": "is not a valid name",
    "name = ' a'\nkind = 'rod'": "is not a valid name",
    "name = 'x'\nkind = 'rod'\n[[element]]\nname = 'x'\nkind = 'rod'\nbetween = ['base', 'tip']": "twice",
}


@pytest.mark.parametrize("keys", BAD)
def test_elements_that_cannot_be_are_refused(keys, tmp_path):
    text = (ROBOTS / "sprung-five-bar.toml").read_text(encoding="utf-8")
    plain = text[: text.index("[[element]]")]
    plain += "[[point]]\nname = 'home'\nframe = 'base'\nposition = [-0.2, 0, 0]\n[[element]]\n"
    plain += "" if keys.startswith("name") else "name = 'x'\n"
    lines = keys.split("\n[[element]]")
    body = lines[0] + ("" if "between" in lines[0] else "\nbetween = ['base', 'tip']")
    tail = f"\n[[element]]{lines[1]}" if len(lines) > 1 else ""
    with pytest.raises(RobotFileError, match=re.escape(BAD[keys])) as refused:
        parflex.load(written(plain + body + tail, tmp_path)).home  # noqa: B018
    assert "\n" not in str(refused.value.message)


def test_points_that_meet_on_the_way_are_named(tmp_path):
    text = (ROBOTS / "sprung-five-bar.toml").read_text(encoding="utf-8")
    robot = parflex.load(written(text.replace("position = [0.1, 0.9, 0]", "position = [0.007, 0.4954, 0]"), tmp_path))
    at = parflex.configure(robot)
    tip = at.at.of(robot.tree.places["tip"])[1]
    text = text.replace("position = [0.1, 0.9, 0]", f"position = [{tip[0]!r}, {tip[1]!r}, 0]".replace("np.float64", ""))
    with pytest.raises(ParflexError, match="meet"):
        parflex.inverse_dynamics(parflex.load(written(text, tmp_path)))


def test_a_cable_longer_than_its_path_is_told(tmp_path):
    text = (ROBOTS / "sprung-five-bar.toml").read_text(encoding="utf-8").replace("rest = 0.22", "rest = 0.8")
    assert any(
        "'rope' of 0.8 m is longer than its path" in told for told in parflex.load(written(text, tmp_path)).warnings
    )
    assert not load("sprung-five-bar").warnings


# -- other models --------------------------------------------------------------------------------------------


def test_models_by_sensors_know_elements():
    robot = load("sprung-five-bar").sensing(["left.elbow", "right.elbow"])
    at = parflex.configure(robot, {"left": 1.95, "right": 1.2})
    found = parflex.inverse_dynamics(robot, at, {"left": 2.0, "right": 1.0}, {"left": 3.0, "right": -4.0})
    matrices = parflex.redundant_model(robot, at, {"left": 2.0, "right": 1.0})
    own = [robot.tree.rate_names.index(name) for name in matrices.names]
    again = matrices.D @ found.accelerations[own] + matrices.C @ found.rates[own] + matrices.G + matrices.H
    efforts = list(found.efforts.values())
    assert again == pytest.approx(efforts, rel=1e-10)
    program = parflex.model(robot, "redundant")
    own = [robot.tree.rate_names.index(name) for name in program.labels["qd"]]
    out = program(q=at.q, qd=found.rates[own], qdd=found.accelerations[own])
    assert out["effort"] == pytest.approx(efforts, rel=1e-10)


def test_a_platform_on_struts_is_controlled_and_has_the_parameters_of_its_body():
    robot = load("struts")
    run = parflex.run_control(robot, "line:x=0.05,time=0.2", "ctc")
    assert largest(run.columns["error"] if "error" in run.columns else [run.summary["max"]]) < 1e-4
    assert len(parflex.base_parameters(robot).names) == 10


def test_a_family_of_robots_may_differ_in_its_elements(tmp_path):
    robot = load("rod-linkage")
    text = (ROBOTS / "rod-linkage.toml").read_text(encoding="utf-8")
    text = text.replace("stiffness = 80", "stiffness = 95").replace(
        "position = [0.2, 0, 0.05]", "position = [0.21, 0, 0.05]"
    )
    other = parflex.load(written(text.replace("rest = 0.5", "rest = 0.45"), tmp_path))
    made = family_model(robot, other, "state-rates")
    assert {"rest[link]"} <= set(made.parameters) and any("stiffness" in word for word in made.parameters)
    for one in (robot, other):
        program, at = member(made, one), Configuration(one, one.home)
        rates = at.J @ np.array([0.3, -0.2])
        expected = moved_by(at, rates, np.array([1.0, 2.0]))
        names = program.labels
        given = {"q": at.q, "effort": np.array([1.0, 2.0])}
        own = at.reduction.partition.independent
        given |= {key: rates[own] for key in program.inputs if key not in given}
        out = program(**given)
        values = np.concatenate([np.ravel(value) for value in out.values()])
        for k in own:
            assert np.abs(values - expected.accelerations[k]).min() < 1e-9, (names, out, expected.accelerations)


def test_forces_in_runs_under_a_wrench_are_those_of_the_models():
    robot = load("struts")
    effort, wrench = parflex.inverse_dynamics(robot).efforts, {"platform": [10, 0, -50]}
    run = parflex.simulate(robot, None, 0.02, effort=effort, wrench=wrench, step=1e-3)
    q, change = (np.array([run[f"{w}.{c}"][-1] for c in robot.tree.position_names]) for w in ("q", "qd"))
    found = moved_by(Configuration(robot, q), robot.tree.rates(q, change), np.array(list(effort.values())), wrench)
    for element, values in found.elements.items():
        assert run[f"element.{element}.force"][-1] == pytest.approx(values["force"], rel=1e-9)


def test_struts_are_named_in_actuations_and_poses_of_the_file(tmp_path):
    names = [f"'{leg}.strut'" for leg in "ABCDEF"]
    text = (ROBOTS / "struts.toml").read_text(encoding="utf-8")
    text += f"[actuation.five]\nactuated = [{', '.join(names[:5])}]\nlocked = [{names[5]}]\n[poses.high]\n"
    file = written(text + "\n".join(f"{name} = 0.85" for name in names), tmp_path)
    robot = parflex.load(file, actuation="five")
    assert robot.actuated_names == [f"{leg}.strut" for leg in "ABCDE"]
    assert info(robot)["independent_coordinates"] == 5 and len(parflex.inverse_dynamics(robot).efforts) == 5
    high = parflex.configure(parflex.load(file), "high")
    assert high.q[-6:] == pytest.approx(np.full(6, 0.85)) and high.closure_error < 1e-10


def test_poses_by_lengths_of_struts_and_independent_coordinates_of_choice():
    """Any choice of independent rates gives the same motion."""
    robot = load("struts")
    at, qd, tau = next(states("struts", 1, 12))
    found = moved_by(at, qd, tau)
    lengths = {name: float(at.q[robot.tree.position_names.index(name)]) for name in robot.actuated_names}
    assert parflex.configure(robot, lengths).q[:3] == pytest.approx(at.q[:3], abs=1e-8)
    motors = {name: float(found.accelerations[k]) for name, k in zip(robot.actuated_names, robot.actuated, strict=True)}
    rates = {name: float(qd[k]) for name, k in zip(robot.actuated_names, robot.actuated, strict=True)}
    again = parflex.inverse_dynamics(robot, at, rates, motors)
    assert again.rates == pytest.approx(qd, rel=1e-9, abs=1e-9)
    assert list(again.efforts.values()) == pytest.approx(tau, rel=1e-8)
    for name in ("motors", "platform"):
        model = parflex.model(robot, "inverse", coordinates=name)
        given = {
            "last": at.q,
            "motor_position": np.array(list(lengths.values())),
            "motor_rate": np.array(list(rates.values())),
        }
        given["motor_acceleration"] = np.array(list(motors.values()))
        R, p = at.at.of(robot.tree.places["platform"])
        given |= {"position": p, "rotation": R}
        rows = at.frame_rows("platform")
        a = found.acceleration_of("platform")
        given |= {"velocity": rows[:3] @ qd, "angular_velocity": rows[3:] @ qd}
        given |= {"acceleration": a[:3], "angular_acceleration": a[3:]}
        out = model(**{key: given[key] for key in model.inputs})
        assert out["effort"] == pytest.approx(tau, rel=1e-7)


ARM_AND_WALL = """
format = 1
name = "arm"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "arm"
joint = "revolute"
inertia = { mass = 1.0, centre = [0.4, 0, 0], about_centre = [0, 0, 0.01] }
[[point]]
name = "hook"
frame = "arm"
position = [0.5, 0, 0]
[[point]]
name = "wall"
frame = "base"
position = [0, 0.6, 0]
[[element]]
name = "e"
kind = "KIND"
between = ["wall", "hook"]
stiffness = 300
rest = REST
"""


def arm_and_wall(folder, kind, rest, more=""):
    path = folder / "arm.toml"
    path.write_text(ARM_AND_WALL.replace("KIND", kind).replace("REST", rest) + more)
    return parflex.load(path)


TAUT_LENGTH = "0.7810249675906654"


@pytest.mark.parametrize(
    ("kind", "rest", "words"),
    [
        ("spring", "0.2", "'e' is under tension"),
        ("strut", "0.2", "'e' is under tension"),
        ("cable", TAUT_LENGTH, "'e' is just taut"),
        ("spring", TAUT_LENGTH, ""),
    ],
)
def test_linear_models_of_robots_with_tension_are_about_the_equilibrium_and_say_so(kind, rest, words, tmp_path):
    robot = arm_and_wall(tmp_path, kind, rest)
    model = parflex.natural_frequencies(robot).model
    assert (model.about == "equilibrium") == bool(words) == bool(model.warnings)
    assert all(words in told and "about the equilibrium" in told for told in model.warnings)
    if rest == "0.2":
        asked = parflex.natural_frequencies(robot, about="equilibrium")
        assert parflex.natural_frequencies(robot).frequencies == pytest.approx(asked.frequencies, rel=1e-12)
        assert not asked.model.warnings
        assert parflex.cartesian_stiffness(robot).model.about == "equilibrium"
        about = parflex.linear_model(robot, about="undeformed")
        assert about.about == "undeformed" and "what balances it" in about.warnings[0]
        moved = parflex.deflection(robot)
        turned = parflex.equilibrium(robot).configuration.q[0] - robot.home[0]
        assert moved.frames["arm"][-1] == pytest.approx(turned, abs=1e-9) and words in moved.warnings[0]
    if kind == "cable":
        with pytest.raises(parflex.SingularError, match="'e' is at its rest length"):
            parflex.linear_model(robot, about="undeformed")


def test_springs_of_joints_and_couplings_under_tension_are_balanced_too(tmp_path):
    """A pendulum with a spring in its joint: (k + m g l cos q) / I about its rest, which is not the pose asked for."""
    text = ARM_AND_WALL[: ARM_AND_WALL.index("[[element]]")]
    text = text.replace('joint = "revolute"', 'joint = "revolute"\nspring = { stiffness = 20, rest = -1.5 }')
    robot = parflex.load(written(text, tmp_path))
    found = parflex.natural_frequencies(robot, {"arm": -0.5})
    q = found.model.configuration.q[0]
    weight = 9.81 * 0.4
    assert 20 * (q + 1.5) + weight * np.cos(q) == pytest.approx(0, abs=1e-9)
    expected = np.sqrt((20 - weight * np.sin(q)) / (0.01 + 0.16)) / (2 * np.pi)
    assert found.frequencies == pytest.approx([expected], rel=1e-10) and "'arm' is under" in found.model.warnings[0]


def test_a_robot_under_tension_without_an_equilibrium_is_refused_in_a_sentence(tmp_path):
    push = """
[[frame]]
name = "car"
joint = "prismatic"
place = { rotation = [0, "pi/2", 0] }
inertia = { mass = 1.0 }
[[element]]
name = "push"
kind = "force"
between = ["hook", "car"]
table = [[0, -5], [1, -5]]
"""
    robot = arm_and_wall(tmp_path, "spring", "0.2", push)
    with pytest.raises(
        parflex.SingularError, match="under tension at this pose, and the robot has no equilibrium"
    ) as no:
        parflex.natural_frequencies(robot)
    assert "undeformed" in no.value.hint and "\n" not in str(no.value)


def test_maps_are_about_the_equilibrium_and_count_modes_at_each_pose(tmp_path):
    """A cable that is slack at home, and has no frequency there, has one where it is taut."""
    text = (
        "format = 1\nname = 'fall'\n[[frame]]\nname = 'drop'\njoint = 'prismatic'\nstart = -0.3\n"
        "inertia = { mass = 1.0 }\n[[element]]\nkind = 'cable'\nname = 'rope'\nbetween = ['base', 'drop']\n"
        "stiffness = 2000\nrest = 0.5\n"
    )
    robot, hung = parflex.load(written(text, tmp_path)), np.sqrt(2000) / (2 * np.pi)
    with pytest.warns(parflex.ParflexWarning, match="2 of 3 poses have springs under tension"):
        found = parflex.many_frequencies(robot, ["drop"], [[-0.6], [-0.4], [-0.5]], modes=1)
    assert found.frequencies[[0, 2], 0] == pytest.approx(hung) and np.isnan(found.frequencies[1, 0])
    assert found.status.tolist() == [0, 2, 0] and "1 modes are requested" in found.reasons[1]
    with pytest.warns(parflex.ParflexWarning, match="2 of 5 poses"):
        grid = parflex.frequency_map(robot, [("drop", -0.7, -0.2, 5)], modes=1)
    assert grid.status.tolist() == [0, 0, 2, 2, 2] and "element" in grid.reason
    with pytest.raises(parflex.InputError, match="the robot has 0"):
        parflex.many_frequencies(robot, ["drop"], [[-0.4]], modes=1)
    with pytest.raises(parflex.InputError, match="2 modes are requested"):
        parflex.many_frequencies(robot, ["drop"], [[-0.6]], modes=2)


# -- equilibria, runs and scripts ----------------------------------------------------------------------------

FALL = """
format = 1
name = "fall"
[[frame]]
name = "drop"
joint = "prismatic"
start = -0.3
inertia = { mass = 1.0 }
[[element]]
kind = "cable"
name = "rope"
between = ["base", "drop"]
stiffness = 2000
rest = 0.5
"""


def test_an_equilibrium_is_found_from_a_slack_cable_and_knows_its_elements(tmp_path):
    robot = parflex.load(written(FALL, tmp_path))
    hung = {"length": pytest.approx(0.5 + 9.81 / 2000), "rate": 0.0, "force": pytest.approx(9.81)}
    assert parflex.equilibrium(robot).elements["rope"] == hung == parflex.deflection(robot).elements["rope"]
    lifted = parflex.equilibrium(robot, wrench={"drop": [0, 0, 20]})  # beyond the roof, where the rope is taut again
    assert lifted.elements["rope"]["force"] == pytest.approx(20 - 9.81, rel=1e-9)
    assert lifted.configuration.q[0] == pytest.approx(0.5 + (20 - 9.81) / 2000, rel=1e-9)
    wheel = 'joint = "revolute"\nplace = { position = [0.3, 0, 0] }'  # on its axis the rope stays slack
    heavy = FALL.replace("mass = 1.0", "mass = 1.0, about_centre = [0.01, 0.01, 0.01]")
    turning = parflex.load(written(heavy.replace('joint = "prismatic"', wheel), tmp_path))
    with pytest.raises(parflex.SingularError, match="nothing constrains 'drop' \\('rope' is slack\\)"):
        parflex.equilibrium(turning, wrench={"drop": [0, 0, 0, 0, 0, 1]})
    struts = load("struts")
    held = parflex.equilibrium(struts, servo=1e9).elements
    for name, values in parflex.inverse_dynamics(struts).elements.items():
        assert held[name]["force"] == pytest.approx(values["force"], rel=1e-5)  # servos of 1e9 N/m give by 1e-7 m


def test_a_strut_whose_points_meet_in_a_run_is_named(tmp_path):
    text = ARM_AND_WALL[: ARM_AND_WALL.index("[[element]]")].replace(
        "position = [0, 0.6, 0]", "position = [0, -0.5, 0]"
    )
    strut = "[[element]]\nname = 's'\nkind = 'strut'\nbetween = ['wall', 'hook']\nactuated = true\n"
    robot = parflex.load(written(text + strut, tmp_path))
    run = parflex.simulate(robot, None, 1.0, start={"pose": {"arm": 0.0}}, effort={"s": 3.0})
    assert run.status == "diverged" and "the two points of the element 's' meet" in run.summary["why"]
    assert run["q.s"].min() > 0 and run["closure_error"].max() < 1e-12  # no row of what is no motion


@pytest.mark.parametrize("target", ["casadi", "sympy"])
def test_libraries_of_single_numbers_evaluate_batches_row_by_row(target):
    robot = load("sprung-five-bar")
    model = parflex.model(robot, "mass-matrix" if target == "sympy" else "direct")
    rows = {name: np.zeros((2, *shape)) for name, shape in model.inputs.items()}
    rows["q"] = np.stack([robot.home, robot.home + 1e-3])
    found, expected = model.evaluate(target, **rows), model.evaluate("numpy", **rows)
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=1e-12, abs=1e-12)


def test_independent_rates_that_do_not_determine_the_others_are_refused_in_a_sentence(tmp_path):
    """A strut on one arm says nothing of another arm."""
    text = ARM_AND_WALL[: ARM_AND_WALL.index("[[element]]")]
    text += "[[frame]]\nname = 'other'\njoint = 'revolute'\ninertia = { mass = 1.0, about_centre = [0, 0, 0.01] }\n"
    text += "[[element]]\nname = 's'\nkind = 'strut'\nbetween = ['wall', 'hook']\n"
    robot = parflex.load(written(text, tmp_path))
    with pytest.raises(parflex.InputError, match="arm, s do not determine the others"):
        parflex.simulate(robot, None, 0.1, independent=["arm", "s"])
