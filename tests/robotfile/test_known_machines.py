"""Orthoglide, Hexaglide, 4-RRR, Par4 and tripod with wrist: published geometry, dynamics by two other engines."""

import itertools
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.cases import VERIFY
from support.catalogue import CATALOGUE
from support.comparison import chosen, largest, nearby_states, order_of, positions, written
from support.oracles import closing, known_machines, sharing
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.states import State, random_motion
from support.variants import read_table, toml_text

import parflex
from parflex import Configuration, SingularError, UnreachableError

# both sides solve systems of condition up to 1e2 in double precision (1e-16): 1e-13 is left, 1e-10 is asked
TOLERANCE = 1e-10
RANGES = {  # about which poses are drawn, and how far
    "4rrr": ({"x": 0.0, "y": 0.0, "theta": 0.0}, (0.07, 0.07, 0.5)),
    "hexaglide": (
        {"x": 0.0, "y": 0.0, "z": -0.44, "rx": 0.0, "ry": 0.0, "rz": 0.0},
        (0.3, 0.06, 0.05, 0.25, 0.25, 0.25),
    ),
    "orthoglide": ({"x": -0.027, "y": -0.027, "z": -0.027}, (0.1, 0.1, 0.1)),
}
COUNTS = {  # operators of the programs, those of the last two with all that may act; `4rrr` with its fourth motor free
    "4rrr": {"inverse": 500, "direct": 690, "mass-matrix": 330},
    "hexaglide": {"inverse": 1959, "direct": 3152, "mass-matrix": 2350},
    "orthoglide": {"inverse": 2216, "direct": 2841, "mass-matrix": 1588},
    "par4": {"inverse": 3103},
    "3-prs-2r": {"inverse": 898, "direct": 1254},
}


def drawn(robot: parflex.Robot, kind: str, count: int, seed: int = 1) -> list[State]:
    if kind not in RANGES:
        return list(nearby_states(robot, count, seed))
    rng, (middle, spread) = np.random.default_rng(seed), RANGES[kind]
    result = []
    for _ in range(count):
        steps = rng.uniform(-1, 1, len(middle)) * spread
        pose = {word: value + step for (word, value), step in zip(middle.items(), steps, strict=True)}
        configuration = parflex.configure(robot, pose)
        result.append(State(configuration, *random_motion(configuration, rng)))
    return result


@cache
def machine(name: str) -> parflex.Robot:
    return parflex.load(name)


def test_the_slides_of_the_orthoglide_are_those_of_its_equations():
    robot = machine("orthoglide")
    length = known_machines.orthoglide_design(0.2, 0.5, 2.0)[0]
    for state in drawn(robot, "orthoglide", 6):
        p, R = parflex.frames(robot, state.configuration)["platform"]
        slides = [positions(state.configuration)[f"{axis}.slide"] for axis in "xyz"]
        wanted = known_machines.orthoglide_slides(p, length) - length  # zero at the isotropic point
        assert largest(slides - wanted) < 1e-12  # Newton ends at rounding
        assert largest(R - np.eye(3)) < 1e-12


def test_the_design_of_the_orthoglide_follows_from_the_conditions_of_its_paper(figure):
    length, near, far = known_machines.orthoglide_design(0.2, 0.5, 2.0)
    # [Chablat2003]: factors from 1/2 to 2 in a cube of 200 mm; strokes are those that the cube asks for
    assert [round(1e3 * value, 2) for value in (length, near, far)] == [310.58, 73.21, -126.79]
    robot = machine("orthoglide")
    link = next(link for link in robot.tree.links if link.name == "x.slide")
    assert link.limits == pytest.approx((-far - length, near), abs=1e-15)
    assert round(1e3 * (link.limits[1] - link.limits[0])) == 257
    for name, place in (("near", near), ("far", far)):
        assert parflex.frames(robot, name)["platform"][0] == pytest.approx([place] * 3, abs=1e-12)


def test_velocity_factors_of_the_orthoglide_lie_between_a_half_and_two_in_its_cube(figure):
    robot = machine("orthoglide")
    length, near, far = known_machines.orthoglide_design(0.2, 0.5, 2.0)
    corners = {name: np.linalg.svd(parflex.jacobian(robot, name).matrix[:3])[1] for name in ("home", "near", "far")}
    assert corners["home"] == pytest.approx([1, 1, 1], abs=1e-12)
    assert corners["near"] == pytest.approx([2, 0.8, 0.8], abs=1e-12)
    assert corners["far"] == pytest.approx([2, 2, 0.5], abs=1e-12)
    grid = np.linspace(far, near, 5)
    factors = []
    for p in np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3):
        inverse = known_machines.orthoglide_inverse_jacobian(p, length)
        if p[0] >= p[1] >= p[2]:  # the rest of the cube by symmetry
            ours = parflex.jacobian(robot, dict(zip("xyz", map(float, p), strict=True))).matrix[:3]
            assert largest(ours @ inverse - np.eye(3)) < 1e-11  # condition below 4
        factors += list(1 / np.linalg.svd(inverse, compute_uv=False))
    figure("orthoglide: smallest velocity factor in the cube of 200 mm, published 1/2", min(factors))
    figure("orthoglide: largest velocity factor in the cube of 200 mm, published 2", max(factors))
    assert min(factors) > 0.5 - 1e-12 and max(factors) < 2 + 1e-12


@pytest.mark.verify
@pytest.mark.parametrize("name", ["orthoglide", "3-prrr"])
def test_turning_a_platform_that_cannot_turn_is_refused(name):
    with pytest.raises(UnreachableError, match="'platform' cannot turn: the loops keep its orientation; leave the rot"):
        parflex.configure(parflex.load(name), {"rx": 0.1})


def test_the_sliders_of_the_hexaglide_are_those_of_its_equations():
    robot = machine("hexaglide")
    legs = read_table(CATALOGUE / "hexaglide.toml")["legs"]
    balls = np.stack([legs["ball_x"], legs["ball_y"], np.zeros(6)], axis=1)
    for state in drawn(robot, "hexaglide", 6):
        p, R = parflex.frames(robot, state.configuration)["platform"]
        slides = [parflex.frames(robot, state.configuration)[f"leg{k}.slide"][0][0] for k in range(1, 7)]
        wanted = known_machines.rail_slides(p, R, balls, np.array(legs["rail"]), np.array(legs["side"]), 0.60)
        assert largest(slides - wanted) < 1e-12


def test_the_hexaglide_is_the_same_all_along_its_rails():
    robot = machine("hexaglide")
    here, ahead = (parflex.inverse_dynamics(robot, pose, {"y": 0.3}, {"z": 2.0}).efforts for pose in ("home", "ahead"))
    assert list(here.values()) == pytest.approx(list(ahead.values()), rel=1e-10, abs=1e-10)


def test_the_angles_of_the_4rrr_are_those_of_its_equations():
    robot = machine("4rrr")
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    for state in drawn(robot, "4rrr", 6):
        p, R = parflex.frames(robot, state.configuration)["platform"]
        ends = p[:2] + 0.05 * corners @ R[:2, :2].T
        wanted = known_machines.two_bar_angles(0.25 * corners, ends, 0.2, 0.2, np.ones(4))
        q = positions(state.configuration)
        found = [[q[f"leg{k}.{joint}"] for k in range(1, 5)] for joint in (1, 2)]
        assert largest((np.array(found) - wanted + np.pi) % (2 * np.pi) - np.pi) < 1e-12


WORKSPACES = {  # as the files say; condition numbers of the platform with locked motors there
    "4rrr": ({"x": (-0.06, 0.0, 0.06), "y": (-0.06, 0.0, 0.06), "theta": (-0.349, 0.349)}, 4.0),
    "hexaglide": (
        {"x": (-0.1, 0.1), "y": (-0.05, 0.05), "z": (-0.45, -0.36)}
        | dict.fromkeys(("rx", "ry", "rz"), (-0.1745, 0.1745)),
        30.0,
    ),
}


@pytest.mark.parametrize("name", WORKSPACES)
def test_machines_reach_the_corners_of_their_workspaces_within_limits(name, figure):
    robot, (spans, limit) = machine(name), WORKSPACES[name]
    worst = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", parflex.ParflexWarning)
        for corner in list(itertools.product(*spans.values()))[:: 1 if VERIFY else 5]:
            configuration = parflex.configure(robot, dict(zip(spans, corner, strict=True)))
            worst = max(worst, configuration.condition.platform)
    figure.below(f"{name}: largest condition number of the platform in its workspace", worst, limit)


@pytest.mark.parametrize("name", ["par4", "3-prs-2r"])
def test_every_named_pose_is_within_the_limits(name):
    robot = machine(name)
    for pose in robot.description.poses:
        assert not parflex.inverse_dynamics(robot, pose).warnings[len(robot.mobility.redundant) :]


def errors(robot: parflex.Robot, path, kind: str, count: int) -> dict[str, float]:
    """Largest relative errors against Lagrange's equations and Pinocchio at random states."""
    data = read_robot(path)
    lagrange, pinocchio = EnergyModel(data), PinocchioTree(data)
    worst = dict.fromkeys(("motion", "inverse", "balance", "direct", "energy"), 0.0)
    rng, tool = np.random.default_rng(7), robot.tree.end_effector

    def note(word: str, ours, wanted) -> None:
        worst[word] = max(worst[word], largest(np.asarray(ours) - wanted) / largest(np.asarray(wanted)))

    order, names = order_of(robot, lagrange), robot.actuated_names
    back, scale = np.argsort(order), robot.tree.rate_units
    for state in drawn(robot, kind, count, 3):
        here, q = state.configuration, positions(state.configuration)
        load = rng.uniform(-50, 50, 6) * ([1, 1, 0, 0, 0, 1] if robot.tree.planar else 1)
        wrench = {tool: load}
        result = parflex.inverse_dynamics(robot, here, state.velocity, state.acceleration, wrench=wrench)
        ours = np.array(list(result.efforts.values()))
        given = chosen(here, result.rates), chosen(here, result.accelerations)
        for oracle in (lagrange, pinocchio):
            qd, qdd = oracle.motion(q, *given)
            note("motion", result.rates / scale, qd[order] / scale)
            note("motion", result.accelerations / scale, qdd[order] / scale)
        mass, bias = lagrange.mass_matrix_and_bias(q, qd)
        pulled = lagrange.frame_jacobian(q, tool).T @ load
        jacobian, drift = lagrange.closure_jacobian(q, qd)
        forces = mass @ qdd + bias - pulled
        motors = [lagrange.coordinates.index(name) for name in names]
        balance, right = sharing.balance(jacobian, forces, motors)
        efforts = np.linalg.pinv(balance) @ right
        note("balance", balance @ ours, right)
        note("inverse", ours, efforts)
        if len(names) == balance.shape[0]:
            expected = pinocchio.inverse(q, *given, names, wrenches=wrench)
            note("inverse", ours, [expected[name] for name in names])
        push = rng.uniform(-1, 1, len(names)) * largest(ours)
        force = pulled - bias
        force[motors] += push
        wanted = closing.accelerations(mass, force, jacobian, drift)[order]
        pushes = dict(zip(names, map(float, push), strict=True))
        direct = parflex.forward_dynamics(robot, here, state.velocity, pushes, wrench=wrench)
        note("direct", direct.accelerations / scale, wanted / scale)
        note("energy", list(parflex.energies(here, result.rates)), lagrange.energy(q, result.rates[back]))
    return worst


@pytest.mark.few("4rrr", "hexaglide", "3-prs-2r")
@pytest.mark.parametrize("name", COUNTS)
def test_models_equal_those_of_lagrange_and_pinocchio(name, figure):
    worst = errors(machine(name), CATALOGUE / f"{name}.toml", name, 8 if VERIFY else 4)
    for word, value in worst.items():
        figure(f"{name}: {word} against Lagrange and Pinocchio, largest relative error", value, TOLERANCE)
    assert max(worst.values()) < TOLERANCE


LEANING = 'place = { position = ["rail_radius*cos(gamma)", "rail_radius*sin(gamma)", 0], '
LEANING += 'rotation = ["-0.25*sin(gamma)", "0.25*cos(gamma)", 0] }'
CHANGES = {  # as users change files: rails that lean, another gear, plate and base, bars of several lengths
    "hexaglide": {'rotation = [0, "pi/2", 0]': 'rotation = [0, "pi/2 - 0.1*side", 0]'},
    "orthoglide": {"spindle = ": "spindle = 6.0 # ", "gravity = ": "gravity = [3.0, -4.0, -8.0] # "},
    "4rrr": {"gravity = ": "gravity = [0, -9.81, 0] # "},
    "3-prs-2r": {
        'mdh = { gamma = "gamma", d = "rail_radius" }': LEANING,
        'mdh = { alpha = "pi/2" }': 'place = { rotation = ["pi/2*cos(gamma)", "pi/2*sin(gamma)", 0] }',
    },
    "par4": {"ratio = 4 ": "ratio = 3.7 ", "half_distance = 0.08": "half_distance = 0.07", "0.275": "0.30"},
}


@pytest.mark.few("4rrr", "3-prs-2r")
@pytest.mark.parametrize("name", CHANGES)
def test_changed_machines_equal_lagrange_and_pinocchio_too(name, tmp_path):
    text = (CATALOGUE / f"{name}.toml").read_text(encoding="utf-8")
    for old, new in CHANGES[name].items():
        assert old in text
        text = text.replace(old, new)
    path = written(text, tmp_path)
    if name == "4rrr":
        table = read_table(path)
        table["legs"]["length"] = [0.2, 0.21, 0.19, 0.2]
        table["legs"]["frame"][1]["mdh"]["d"], table["legs"]["point"][0]["position"][0] = "length", 0.21
        path = written(toml_text(table), tmp_path)
    robot = parflex.load(path, actuation="three-motors" if name == "4rrr" else None)
    worst = errors(robot, path, name, 3)
    assert max(worst.values()) < TOLERANCE, worst


def test_the_spare_motor_of_the_4rrr_stretches_the_platform_without_moving_it():
    robot = machine("4rrr")
    inner = np.linalg.svd(parflex.configure(robot).J_a.T)[2][-1]  # efforts that do no work
    assert inner * np.sign(inner[0]) == pytest.approx([0.5, -0.5, 0.5, -0.5], abs=1e-12)  # by symmetry
    push = dict(zip(robot.actuated_names, map(float, 10 * inner), strict=True))
    assert largest(parflex.forward_dynamics(robot, effort=push).accelerations) < 1e-10  # of 10 N m on 0.001 kg m2


def driven(name: str) -> parflex.Robot:
    return parflex.load(name, actuation="three-motors") if name == "4rrr" else machine(name)


@pytest.mark.few("4rrr", "3-prs-2r")
@pytest.mark.parametrize("name", COUNTS)
def test_the_operators_of_known_machines_are_pinned(name, figure):
    words = {"include": ()} if name in RANGES else {}
    totals = {model: parflex.model(driven(name), model, **words).counts["total"] for model in COUNTS[name]}
    for model, total in totals.items():
        figure(f"{name} {model}: operators", total, COUNTS[name][model])
    assert totals == COUNTS[name]


@pytest.mark.few("4rrr")
@pytest.mark.parametrize("name", COUNTS)
def test_compiled_programs_of_known_machines_equal_the_answers_by_names(name):
    robot = driven(name)
    for state in drawn(robot, name, 2):
        wanted = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        efforts, q = np.array(list(wanted.efforts.values())), state.configuration.q
        off = parflex.inverse_dynamics(robot, q, wanted.rates, wanted.accelerations) - efforts
        assert largest(off) < 1e-9 * largest(efforts)
        if name == "3-prs-2r":
            back = parflex.forward_dynamics(robot, q, wanted.rates, efforts)
            assert largest(back - wanted.accelerations) < 1e-8 * largest(wanted.accelerations)


def arm_angles(x, y, z, rz):
    """Arms of the Par4 by the closed form of Pierrot2009: each elbow is on a circle and on a sphere about its ball."""
    bar = -rz / 4
    front = np.array([x, y, z + 0.06])
    rear = front - np.array([0.16 * np.cos(bar), 0.16 * np.sin(bar), 0])
    side = np.array([0, 0.08, 0])
    balls = [front + side, rear + side, rear - side, front - side]
    angles = []
    for ball, gamma in zip(balls, np.radians([45, 135, -135, -45]), strict=True):
        outwards = np.array([np.cos(gamma), np.sin(gamma), 0])
        way = ball - 0.275 * outwards  # |way - 0.375 (cos q outwards + sin q z)| = 0.825
        a, b = way @ outwards, way[2]
        c = (way @ way + 0.375**2 - 0.825**2) / (2 * 0.375)
        angles.append(np.arctan2(b, a) + np.arccos(c / np.hypot(a, b)))
    return np.arctan2(np.sin(angles), np.cos(angles))  # the elbows outside


def test_the_arms_of_the_par4_follow_the_closed_form():
    robot, rng = machine("par4"), np.random.default_rng(7)
    for k in range(24):
        pose = dict(zip("xyz", [0.08, 0, -0.85] + rng.uniform(-1, 1, 3) * [0.25, 0.25, 0.1], strict=True))
        pose["rz"] = float(rng.uniform(-3.1, 3.1)) if k else np.pi / 2
        q = positions(parflex.configure(robot, pose))
        found = [q[f"{leg}.arm"] for leg in ("front_left", "rear_left", "rear_right", "front_right")]
        assert found == pytest.approx(arm_angles(**pose), abs=1e-11)  # Newton ends at rounding times conditions
        assert q["left_bar"] == pytest.approx(-pose["rz"] / 4, abs=1e-11)  # an eighth of a turn each way is half a turn


def test_the_tripod_moves_aside_as_the_planes_of_its_legs_ask():
    """Closed form of Carretero2000: with tilts about axes in the plane the balls stay in the planes of their rails."""
    robot, rng = machine("3-prs-2r"), np.random.default_rng(8)
    for _ in range(12):
        tilt, height, wrist = rng.uniform(-0.3, 0.3, 2), rng.uniform(-0.1, 0.1), rng.uniform(-0.5, 0.5, 2)
        R = Rotation.from_rotvec([*tilt, 0]).as_matrix()
        place = np.array([0.11 * (R[0, 0] - R[1, 1]), -0.22 * R[1, 0], height])
        slides = {}
        for leg, gamma in zip("abc", np.radians([0, 120, -120]), strict=True):
            ball = place + R @ [0.22 * np.cos(gamma), 0.22 * np.sin(gamma), 0]
            assert ball @ [-np.sin(gamma), np.cos(gamma), 0] == pytest.approx(0, abs=1e-14)
            inwards = 0.35 - ball @ [np.cos(gamma), np.sin(gamma), 0]
            slides[f"{leg}.slide"] = ball[2] + np.sqrt(0.45**2 - inwards**2)
        turned = R @ Rotation.from_euler("XY", wrist).as_matrix()
        tip = place + R @ [0, 0, -0.25] + turned @ [0, 0, -0.2]
        position, rotation = parflex.frames(robot, slides | {"A": wrist[0], "B": wrist[1]})["tool"]
        assert position == pytest.approx(tip, abs=1e-11) and largest(rotation - turned) < 1e-11  # as above
        tool = dict(zip(("x", "y", "z", "zx", "zy", "zz"), [*tip, *turned[:, 2]], strict=True))  # point and axis
        q = positions(parflex.configure(robot, tool))
        assert [q[key] for key in (*slides, "A", "B")] == pytest.approx([*slides.values(), *wrist], abs=1e-9)


def test_the_tool_of_the_par4_is_driven_through_its_gear():
    """A torque on the tool is held by the gear: the effort in it is that torque, four times it on the bar."""
    robot = machine("par4")
    torque = {"tool": [0, 0, 0, 0, 0, 2.5]}
    found, plain = (parflex.inverse_dynamics(robot, "pick", wrench=w, reactions=True) for w in (torque, None))
    assert found.reactions["couplings"]["gear"]["effort"] == pytest.approx(-2.5, rel=1e-9)
    taken = np.array([plain.efforts[motor] - found.efforts[motor] for motor in robot.actuated_names])
    assert taken == pytest.approx(2.5 * parflex.jacobian(robot, "pick")[5], rel=1e-8, abs=1e-9)  # virtual work


def test_poses_on_another_branch_of_an_over_constrained_robot_are_refused():
    """The Par4 also closes tilted, with its bars turned by a quarter: there it has three freedoms, not four."""
    robot = machine("par4")
    plate = [0.033, 0.082, -0.42, 0.999, -0.043, -0.02, 0.018, 1.571, 1.496, -1.645, -6.283]
    left = [1.042, -3.025, 0.113, -0.209, 0.193, -2.705, -0.033, 0.081]
    right = [1.252, -3.203, 0.161, -0.064, 0.453, -2.819, 0.033, -0.082]
    near = np.array([*plate, *left, *right])
    q, error = robot.assembler.newton(near, robot.free, robot.closures.rows)
    assert error < 1e-12 and largest(q - near) < 1e-2
    for ask in (lambda at: at.reduction, lambda at: parflex.inverse_dynamics(robot, at)):
        with pytest.raises(SingularError, match="in another way than at home, where they leave 4 motions: here they"):
            ask(Configuration(robot, q))


@pytest.mark.few("misses")
@pytest.mark.parametrize(
    ("pose", "message"),
    [({"z": -0.4, "rz": 0.5}, "misses it"), ({"z": -0.8, "rx": 0.1}, "contradict each other")],
    ids=["misses", "contradicts"],
)
def test_poses_that_are_too_far_and_poses_that_contradict_themselves_are_distinguished(pose, message):
    with pytest.raises(UnreachableError, match=message):
        parflex.configure(machine("par4"), {"x": 0.03, "y": 0.08} | pose)
