"""Elements between two points against Lagrange's equations, and against forms without them."""

import re
from functools import cache

import numpy as np
import pytest
from support.command_line import answered
from support.comparison import chosen, largest, order_of, positions, stiffness_error
from support.coupled_robots import saddle
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex.tree.force_elements import Curve
from parflex.view.skeleton import skeleton

RIGID = ["sprung-arm", "sprung-five-bar", "rod-linkage", "struts"]
BEAMS = "sprung-beams"
ALL = [*RIGID, BEAMS]
TIGHT = 1e-10  # systems of condition up to 1e4 in double precision


@cache
def load(name):
    return load_robot(name)


@cache
def lagrange(name):
    kind = FlexibleEnergyModel if name == BEAMS else EnergyModel
    data = read_robot(robot_file(name))
    robot = load(name)
    rods = {row.name: row.rest for row in robot.closures.constraints if row.kind == "rod"}
    assert all(e.rest is None for e in data.elements if e.kind == "rod")
    for element in data.elements:  # the files leave them out: as long as they start
        if element.kind == "rod":
            object.__setattr__(element, "rest", rods[element.name])
    return kind(data)


def states(name, count, seed, size=0.2):
    """Closed configurations about home with rates of all coordinates that fit, and efforts by name."""
    robot, rng = load(name), np.random.default_rng(seed)
    home, tree = parflex.Configuration(robot, robot.home), robot.tree
    for _ in range(count):
        step = np.zeros(tree.n)
        direction = home.null_space @ rng.standard_normal(home.null_space.shape[1])
        step[robot.free] = size * direction / largest(direction) * tree.rate_units[robot.free]
        step[list(tree.elastic)] *= 0.02
        q, error = robot.assembler.newton(tree.moved(home.q, step), robot.free, robot.closures.rows)
        assert error < 1e-12
        at = parflex.Configuration(robot, q)
        qd = np.zeros(tree.n)
        qd[robot.free] = at.null_space @ rng.standard_normal(at.null_space.shape[1]) * tree.rate_units[robot.free]
        tau = dict(zip(robot.actuated_names, rng.uniform(-5, 5, robot.nu).tolist(), strict=True))
        yield at, at.rates(chosen(at, qd)), tau


def forward(at, qd, tau, **words):
    return parflex.forward_dynamics(at.robot, at, chosen(at, qd), tau, **words)


def inverse(at, qd, qdd):
    return parflex.inverse_dynamics(at.robot, at, chosen(at, qd), chosen(at, qdd))


def freedoms(robot):
    return parflex.explain(robot).sizes["degrees_of_freedom"]


def arm_and_wall(kind="spring", rest=0.2, **settings):
    return load_robot("arm-and-wall", settings={"element.0.kind": kind, "element.0.rest": rest} | settings)


@pytest.mark.parametrize("name", ALL)
def test_accelerations_efforts_energies_and_forces_are_those_of_lagrange(name, figure):
    robot, oracle, worst = load(name), lagrange(name), 0.0
    held = [row.name for row in robot.closures.constraints]
    for at, qd, tau in states(name, 4, 4):
        found = forward(at, qd, tau, reactions=True)
        qdd, lam = saddle(oracle, at, found.rates, tau)
        worst = max(worst, largest(found.accelerations - qdd) / largest(qdd))
        back = np.argsort(order_of(robot, oracle))
        assert tuple(parflex.energies(at, qd)) == pytest.approx(oracle.energy(positions(at), qd[back]), rel=1e-11)
        pulled = [-found.elements[rod]["force"] for rod in held]
        if held:
            assert pulled == pytest.approx(lam[-len(held) :], rel=1e-8, abs=1e-8 * largest(lam))
        assert found.reactions["elements"].keys() == found.elements.keys()
        if len(at.independent_names) == len(tau) and not robot.tree.elastic:
            assert inverse(at, qd, qdd).efforts == pytest.approx(tau, rel=1e-8, abs=1e-8 * largest(qdd))
    figure(f"{name}: accelerations against Lagrange", worst, TIGHT)
    assert worst < (1e-9 if name == BEAMS else TIGHT)  # beams are stiff: their forces take digits


HANGING = np.array([0.9, *np.array([0.96, 0.2, -0.16, 0.11]) / np.linalg.norm([0.96, 0.2, -0.16, 0.11])])


@pytest.mark.parametrize("name", ALL)
def test_the_stiffness_about_rest_is_the_second_derivative_of_the_energies(name, figure):
    """About an equilibrium, with the multipliers of all rows and the tension of all elements."""
    robot = load(name)
    held = {} if name in (BEAMS, "sprung-arm") else parflex.inverse_dynamics(robot).efforts
    near = parflex.Configuration(robot, HANGING) if name == "sprung-arm" else None  # its start is not stable
    lock = "actuators" if name == BEAMS else "none"
    model = parflex.linear_model(robot, near, lock, "equilibrium", effort=held)
    figure.below(f"{name}: stiffness against Lagrange", stiffness_error(model, lagrange(name), held), 1e-8)


def test_a_mass_between_two_stretched_springs_swings_across_by_their_tension(capsys):
    """omega^2 = 2 T / (l m) across and 2 k / m along, also without an equilibrium being asked for."""
    robot = load_robot("mass-on-springs")
    found = parflex.natural_frequencies(robot, lock="none")
    across, along = np.sqrt(2 * 300 * 0.2 / 0.5 / 2), np.sqrt(2 * 300 / 2)
    assert 2 * np.pi * found.frequencies == pytest.approx([across, across, along], rel=1e-12)
    undeformed = parflex.natural_frequencies(robot, lock="none", about="undeformed")  # the springs balance at home
    assert undeformed.frequencies == pytest.approx(found.frequencies, rel=1e-12)
    assert len(found.free_motions) == 3  # its three turns
    assert found.damping == pytest.approx([0, 0, 4 / (2 * 2 * along)], abs=1e-12)
    still = parflex.natural_frequencies(robot, lock="none", without=["damping"])
    assert still.damping == pytest.approx([0, 0, 0])
    with pytest.raises(parflex.ParflexError):
        parflex.natural_frequencies(robot, lock="none", without=["springs"], modes=1)
    energy = answered(capsys, "frequencies", robot_file("mass-on-springs"), "--lock", "none")["energy"]
    assert energy[2]["strain"]["elements"] == pytest.approx({"a": 0.5, "b": 0.5})


def bare(name, folder):
    text = robot_file(name).read_text(encoding="utf-8")
    return parflex.load(write_robot(folder, text[: text.index("[[element]]")], name))


@pytest.mark.parametrize("name", ["sprung-arm", "sprung-five-bar", "rod-linkage"])
def test_elements_act_as_wrenches_on_both_points(name, tmp_path):
    """Accelerations and reactions of joints are those of the robot without elements under the forces of these."""
    robot, plain = load(name), bare(name, tmp_path)
    for at, qd, tau in states(name, 2, 7):
        found, frames = forward(at, qd, tau, reactions=True), parflex.frames(robot, at)
        wrench = {}
        for entry in robot.description.element:
            p1, p2 = (np.zeros(3) if end == "base" else frames[end].position for end in entry.between)
            pull = found.elements[entry.name]["force"] * (p2 - p1) / np.linalg.norm(p2 - p1)
            assert found.elements[entry.name]["length"] == pytest.approx(np.linalg.norm(p2 - p1))
            for end, sign in zip(entry.between, (1, -1), strict=True):
                if end != "base" and robot.tree.places[end].link >= 0:
                    wrench[end] = wrench.get(end, np.zeros(6)) + np.r_[sign * pull, np.zeros(3)]
        same = forward(parflex.Configuration(plain, at.q), qd, tau, wrench=wrench, reactions=True)
        assert found.accelerations == pytest.approx(same.accelerations, rel=1e-9, abs=1e-9)
        for joint, reaction in same.reactions["joints"].items():
            for part in ("force", "moment"):
                ours = found.reactions["joints"][joint][part]
                assert ours == pytest.approx(reaction[part], rel=1e-8, abs=1e-8)


def test_a_rod_takes_away_a_freedom_and_a_spring_does_not(tmp_path):
    assert freedoms(load("rod-linkage")) == freedoms(load("sprung-five-bar")) == 2
    assert freedoms(bare("rod-linkage", tmp_path)) == 3


def test_a_slack_cable_does_nothing_and_a_taut_one_pulls():
    robot = load_robot("hanging-weight")
    short, long = ({"drop": -0.3}, {"drop": -0.7})
    assert parflex.forward_dynamics(robot, short).accelerations == pytest.approx([-9.81])
    found = parflex.forward_dynamics(robot, long)
    assert found.elements["rope"]["force"] == pytest.approx(400)
    assert found.accelerations == pytest.approx([400 - 9.81])
    assert parflex.energies(robot, long)[1] == pytest.approx(2000 * 0.04 / 2 - 9.81 * 0.7)
    assert parflex.energies(robot, short)[1] == pytest.approx(-9.81 * 0.3)
    run = parflex.simulate(robot, None, 2.0, step=2e-4, out_step=0.01)
    force = run["element.rope.force"]
    taut = run["element.rope.length"] > 0.5
    assert taut.any() and not taut.all() and np.all(force[~taut] == 0) and np.all(force[taut] > 0)
    assert np.ptp(run["energy.total"]) < 1e-4 * np.ptp(run["energy.kinetic"])  # kinks: steps cross them


def test_a_cable_that_shortens_fast_does_not_push():
    robot = load_robot("hanging-weight", settings={"element.0.stiffness": 100, "element.0.damping": 50})
    for speed, force in ((0.0, 10.0), (0.1, 5.0), (3.0, 0.0), (-1.0, 60.0)):
        found = parflex.forward_dynamics(robot, {"drop": -0.6}, {"drop": speed})
        assert found.elements["rope"]["force"] == pytest.approx(force)
        assert found.accelerations[0] == pytest.approx(force - 9.81)


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


def test_elements_can_be_left_out(tmp_path):
    robot, plain = load("sprung-five-bar"), bare("sprung-five-bar", tmp_path)
    given = ({"left": 1.9, "right": 1.2}, {"left": 2.0, "right": 1.0})
    without = parflex.inverse_dynamics(robot, *given, without=["springs"])
    alone = parflex.inverse_dynamics(plain, *given)
    assert list(without.efforts.values()) == pytest.approx(list(alone.efforts.values()), rel=1e-12)
    assert all(one["force"] == 0 for one in without.elements.values())
    undamped = parflex.inverse_dynamics(robot, *given, without=["damping"])
    still = parflex.inverse_dynamics(robot, given[0])
    assert undamped.elements["dash"]["force"] == 0
    assert undamped.elements["across"]["force"] == pytest.approx(still.elements["across"]["force"])


def test_elements_are_explained_and_drawn():
    told = parflex.explain(load("rod-linkage"))
    rows = next(part for part in told.sections if part.key == "loops")
    assert rows.title == "Rods" and 45 in rows.equations and any("link: length = 0.52" in line for line in rows.text)
    tree = next(part for part in told.sections if part.key == "coordinates")
    assert 44 in tree.equations and any("gas (spring)" in line for line in tree.text)
    robot = load("struts")
    frames = parflex.frames(robot)
    bones = skeleton(robot)
    points = bones.points(robot.home)
    drawn = [points[list(edge[:2])] for edge in bones.edges]
    for entry in robot.description.element:
        ends = np.array([np.zeros(3) if end == "base" else frames[end].position for end in entry.between])
        assert any(np.allclose(line, ends) for line in drawn), entry.name


BAD = {
    "kind = 'spring'": "needs its stiffness",
    "kind = 'spring'\nstiffness = 10": "needs its rest",
    "kind = 'spring'\nstiffness = -1\nrest = 0.1": "stiffness = -1.0 is negative",
    "kind = 'spring'\nstiffness = 0\nrest = 0.1": "stiffness 0",
    "kind = 'spring'\nstiffness = 1\nrest = 0.1\ntable = [[0, 1], [1, 2]]": "both define",
    "kind = 'spring'\ntable = [[0, 1]]": "needs two pairs",
    "kind = 'spring'\ntable = [[1, 1], [0, 2]]": "do not increase",
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
    "kind = 'rod'\nbetween = ['home', 'left']": "coincide",
    "kind = 'spring'\nstiffness = 1\nrest = 0\ndamping = 2\nbetween = ['home', 'left']": "coincide",
    "name = 'tip'\nkind = 'strut'": "a point has the name 'tip' too",
    "name = 'left'\nkind = 'spring'\nstiffness = 1\nrest = 0.1": "a frame has the name 'left' too",
    "name = 'x'\nkind = 'strut'": "'x' is a coordinate of the end effector",
    "name = 'tip.x'\nkind = 'strut'": "'tip.x' is a coordinate of the frame 'tip'",
    "name = 'none'\nkind = 'strut'": "'none' is a choice of joints",
    "name = 'a=b'\nkind = 'rod'": "is not a valid name",
    "name = ' a'\nkind = 'rod'": "is not a valid name",
    "name = 'x'\nkind = 'rod'\n[[element]]\nname = 'x'\nkind = 'rod'\nbetween = ['base', 'tip']": "twice",
}


@pytest.mark.parametrize("keys", BAD)
def test_elements_that_cannot_be_are_refused(keys, tmp_path):
    text = robot_file("sprung-five-bar").read_text(encoding="utf-8")
    plain = text[: text.index("[[element]]")]
    plain += "[[point]]\nname = 'home'\nframe = 'base'\nposition = [-0.2, 0, 0]\n[[element]]\n"
    plain += "" if keys.startswith("name") else "name = 'x'\n"
    lines = keys.split("\n[[element]]")
    body = lines[0] + ("" if "between" in lines[0] else "\nbetween = ['base', 'tip']")
    tail = f"\n[[element]]{lines[1]}" if len(lines) > 1 else ""
    with pytest.raises(parflex.RobotFileError, match=re.escape(BAD[keys])) as refused:
        parflex.load(write_robot(tmp_path, plain + body + tail)).home  # noqa: B018
    assert "\n" not in str(refused.value.message)


def test_points_that_meet_on_the_way_are_named():
    tip = parflex.frames(load("sprung-five-bar"))["tip"].position
    robot = load_robot("sprung-five-bar", settings={"point.2.position": tip.tolist()})
    with pytest.raises(parflex.ParflexError, match="meet"):
        parflex.inverse_dynamics(robot)


def test_a_cable_longer_than_its_path_is_told():
    robot = load("sprung-five-bar")
    (index,) = (k for k, entry in enumerate(robot.description.element) if entry.name == "rope")
    slack = load_robot("sprung-five-bar", settings={f"element.{index}.rest": 0.8})
    assert any("'rope' of 0.8 m is longer than its path" in told for told in slack.warnings)
    assert not robot.warnings


@pytest.mark.verify
def test_a_platform_on_struts_is_controlled_and_has_the_parameters_of_its_body():
    robot = load("struts")
    run = parflex.run_control(robot, "line:x=0.05,time=0.2", "ctc")
    assert largest(run.columns["error"] if "error" in run.columns else [run.summary["max"]]) < 1e-4
    assert len(parflex.base_parameters(robot).names) == 10


def test_struts_are_named_in_actuations_and_poses_of_the_file(tmp_path):
    names = [f"'{leg}.strut'" for leg in "ABCDEF"]
    text = robot_file("struts").read_text(encoding="utf-8")
    text += f"[actuation.five]\nactuated = [{', '.join(names[:5])}]\nlocked = [{names[5]}]\n[poses.high]\n"
    file = write_robot(tmp_path, text + "\n".join(f"{name} = 0.85" for name in names))
    robot = parflex.load(file, actuation="five")
    assert robot.actuated_names == [f"{leg}.strut" for leg in "ABCDE"]
    assert len(robot.independent) == 5 and len(parflex.inverse_dynamics(robot).efforts) == 5
    high = parflex.configure(parflex.load(file), "high")
    assert high.q[-6:] == pytest.approx(np.full(6, 0.85)) and high.closure_error < 1e-10


def test_poses_by_lengths_of_struts_and_independent_coordinates_of_choice():
    """Any choice of independent rates gives the same motion."""
    robot = load("struts")
    at, qd, tau = next(states("struts", 1, 12))
    found = forward(at, qd, tau)
    lengths = {name: float(at.q[robot.coordinates.index(name)]) for name in robot.motors}
    assert parflex.configure(robot, lengths).q[:3] == pytest.approx(at.q[:3], abs=1e-8)
    driven = list(zip(robot.motors, robot.actuated, strict=True))
    rates, motors = ({name: float(values[k]) for name, k in driven} for values in (qd, found.accelerations))
    again = parflex.inverse_dynamics(robot, at, rates, motors)
    assert again.rates == pytest.approx(qd, rel=1e-9, abs=1e-9)
    assert again.efforts == pytest.approx(tau, rel=1e-8)
    words = ("motor_position", "motor_rate", "motor_acceleration")
    given = {word: list(table.values()) for word, table in zip(words, (lengths, rates, motors), strict=True)}
    position, rotation = parflex.frames(robot, at)["platform"]
    twist, a = at.frame_rows("platform") @ qd, found.acceleration_of("platform")
    given |= {"last": at.q, "position": position, "rotation": rotation, "velocity": twist[:3]}
    given |= {"angular_velocity": twist[3:], "acceleration": a[:3], "angular_acceleration": a[3:]}
    for name in ("motors", "platform"):
        model = parflex.model(robot, "inverse", coordinates=name)
        out = model(**{key: np.asarray(given[key]) for key in model.inputs})
        assert out["effort"] == pytest.approx(list(tau.values()), rel=1e-7)


TAUT = np.hypot(0.5, 0.6)  # m, the length at home


@pytest.mark.parametrize(
    ("kind", "rest", "words"),
    [
        ("spring", 0.2, "'e' is under tension"),
        ("strut", 0.2, "'e' is under tension"),
        ("cable", TAUT, "'e' is just taut"),
        ("spring", TAUT, ""),
    ],
)
def test_linear_models_of_robots_with_tension_are_about_the_equilibrium_and_say_so(kind, rest, words):
    robot = arm_and_wall(kind, float(rest))
    model = parflex.natural_frequencies(robot).model
    assert (model.about == "equilibrium") == bool(words) == bool(model.warnings)
    assert all(words in told and "about the equilibrium" in told for told in model.warnings)
    if rest == 0.2:
        asked = parflex.natural_frequencies(robot, about="equilibrium")
        assert parflex.natural_frequencies(robot).frequencies == pytest.approx(asked.frequencies, rel=1e-12)
        assert not asked.model.warnings
        assert parflex.cartesian_stiffness(robot).model.about == "equilibrium"
        about = parflex.linear_model(robot, about="undeformed")
        assert about.about == "undeformed" and "does not balance" in about.warnings[0]
        moved = parflex.deflection(robot)
        turned = parflex.equilibrium(robot).configuration.q[0] - robot.home[0]
        assert moved.frames["arm"][-1] == pytest.approx(turned, abs=1e-9) and words in moved.warnings[0]
    if kind == "cable":
        with pytest.raises(parflex.SingularError, match="'e' is at its rest length"):
            parflex.linear_model(robot, about="undeformed")


def test_springs_of_joints_under_tension_are_balanced_too():
    """A pendulum on a spring: (k - m g l sin q) / I about its rest, which is not the pose asked for."""
    robot = load_robot("pendulum-on-motor", settings={"constants.stiffness": 90.0, "constants.rest": -1.5})
    found = parflex.natural_frequencies(robot, {"motor": -0.5, "arm": -0.3})
    motor, arm = found.model.configuration.q
    weight = 2 * 9.81
    assert 90 * (arm + 1.5) + weight * np.cos(motor + arm) == pytest.approx(0, abs=1e-9)
    expected = np.sqrt((90 - weight * np.sin(motor + arm)) / (0.1 + 2)) / (2 * np.pi)
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
    robot = parflex.load(write_robot(tmp_path, robot_file("arm-and-wall").read_text(encoding="utf-8") + push))
    said = "under tension at this pose, and the robot has no equilibrium"
    with pytest.raises(parflex.SingularError, match=said) as no:
        parflex.natural_frequencies(robot)
    assert "undeformed" in no.value.hint and "\n" not in str(no.value)


def test_maps_are_about_the_equilibrium_and_count_modes_at_each_pose():
    """A cable that is slack at home, and has no frequency there, has one where it is taut."""
    robot, hung = load_robot("hanging-weight"), np.sqrt(2000) / (2 * np.pi)
    with pytest.warns(parflex.ParflexWarning, match="2 of 3 poses have springs under tension"):
        found = parflex.many_frequencies(robot, ["drop"], [[-0.6], [-0.4], [-0.5]], modes=1)
    assert found.frequencies[[0, 2], 0] == pytest.approx(hung) and np.isnan(found.frequencies[1, 0])
    assert found.status.tolist() == [0, 2, 0] and "1 modes are requested" in found.reasons[1]
    many = np.linspace(-0.7, -0.2, 300)  # enough for compiled steps
    with pytest.warns(parflex.ParflexWarning, match="have springs under tension"):
        taut = parflex.many_frequencies(robot, ["drop"], many[:, None], modes=1)
    assert np.array_equal(taut.status == 0, many < -0.5) and taut.frequencies[0, 0] == pytest.approx(hung)
    with pytest.warns(parflex.ParflexWarning, match="2 of 5 poses"):
        grid = parflex.frequency_map(robot, [("drop", -0.7, -0.2, 5)], modes=1)
    assert grid.status.tolist() == [0, 0, 2, 2, 2] and not grid.reason
    for place, modes, words in ((-0.4, 1, "the robot has 0"), (-0.6, 2, "2 modes are requested")):
        with pytest.raises(parflex.InputError, match=words):
            parflex.many_frequencies(robot, ["drop"], [[place]], modes=modes)


def test_an_equilibrium_is_found_from_a_slack_cable_and_knows_its_elements():
    robot = load_robot("hanging-weight")
    hung = {"length": pytest.approx(0.5 + 9.81 / 2000), "rate": 0.0, "force": pytest.approx(9.81)}
    assert parflex.equilibrium(robot).elements["rope"] == hung == parflex.deflection(robot).elements["rope"]
    lifted = parflex.equilibrium(robot, {"drop": 0.3}, wrench={"drop": [0, 0, 20]})  # above the roof, until it is taut
    assert lifted.elements["rope"]["force"] == pytest.approx(20 - 9.81, rel=1e-9)
    assert lifted.configuration.q[0] == pytest.approx(0.5 + (20 - 9.81) / 2000, rel=1e-9)
    with pytest.raises(parflex.SingularError, match=r"'drop' \('rope' is slack\).*near the equil"):
        parflex.equilibrium(robot, wrench={"drop": [0, 0, 20]})  # below the roof: the rope would pass through it
    wheel = {"joint": "revolute", "place": {"position": [0.3, 0, 0]}, "inertia.about_centre": [0.01, 0.01, 0.01]}
    turning = load_robot("hanging-weight", settings={f"frame.0.{key}": value for key, value in wheel.items()})
    with pytest.raises(parflex.SingularError, match="nothing constrains 'drop' \\('rope' is slack\\)"):
        parflex.equilibrium(turning, wrench={"drop": [0, 0, 0, 0, 0, 1]})  # on its axis the rope stays slack
    struts = load("struts")
    held = parflex.equilibrium(struts, servo=1e9).elements
    for name, values in parflex.inverse_dynamics(struts).elements.items():
        assert held[name]["force"] == pytest.approx(values["force"], rel=1e-5)  # servos of 1e9 N/m give by 1e-7 m


STRUT = '[[element]]\nname = "s"\nkind = "strut"\nbetween = ["wall", "hook"]\nactuated = true\n'


def with_a_strut(folder, **settings):
    text = robot_file("arm-and-wall").read_text(encoding="utf-8")
    text = text[: text.index("[[element]]")] + STRUT
    other = '[[frame]]\nname = "other"\njoint = "revolute"\ninertia = { mass = 1, about_centre = [0, 0, 0.01] }\n'
    return parflex.load(write_robot(folder, text + other), settings=settings)


def test_a_strut_whose_points_meet_in_a_run_is_named(tmp_path):
    robot = with_a_strut(tmp_path, **{"point.1.position": [0, -0.5, 0]})
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
    with pytest.raises(parflex.InputError, match="arm, s do not determine the others"):
        parflex.simulate(with_a_strut(tmp_path), None, 0.1, independent=["arm", "s"])
