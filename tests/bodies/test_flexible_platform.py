"""A flexible platform, in programs and in time: every emitter, states in motion, driven frames, warnings, starts."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.command_line import answered
from support.comparison import largest, order_of, positions
from support.flexible_states import bent_state
from support.modal_programs import pair, states
from support.modal_robots import TWIST

import parflex
from parflex.statics.linear_model import tree_stiffness
from parflex.statics.loads import tangent_stiffness
from parflex.statics.small_deformation import deflection_warnings
from parflex.statics.zero_dynamics import check_system, held_frame, system_jacobian, zero_dynamics
from parflex.trajectories.follow import follow
from parflex.trajectories.frames import platform_trajectory

NAME = "gough-stewart-flexible"
TOLERANCE = 1e-11  # asked for; rounding of systems of condition 1e4 leaves 1e-13
UNSTABLE = {"x": 0.55, "y": 0.6, "z": 0.99, "rx": -0.1, "ry": 0.5, "rz": -0.5}  # driven there, deformations grow


@cache
def flexible() -> parflex.Robot:
    return parflex.load(NAME)


@pytest.mark.verify
@pytest.mark.parametrize("drive", ["efforts", "platform"])
@pytest.mark.parametrize("modes", [10, 3])
def test_states_in_motion_change_as_by_the_general_reduction(drive, modes, figure):
    robot = flexible()
    if modes != 10:  # fewer than the directions in which the attachments move
        settings = {"platform.modal.modes": modes, "platform.modal.stiffness": [35625.55, 35625.63, 99677.16]}
        robot = parflex.load(NAME, settings=settings)
    tree, following = robot.tree, drive == "platform"
    kind = "state-rates-following" if following else "state-rates"
    program = parflex.model(robot, kind, include=())
    chosen = [robot.rates.index(name) for name in program.labels["qd"]]
    rng, worst = np.random.default_rng(2), 0.0
    for _ in range(3):
        state = bent_state(robot, rng, 0.05)
        at, qdd = state["at"], state["accelerations"]
        R = at.at.rotation[tree.number("platform")]
        world = np.concatenate([R @ qdd[:3], R @ qdd[3:6]])
        given = {"q": at.q, "qd": state["rates"][chosen]}
        given |= {"platform_acceleration": world} if following else {"effort": state["effort"]}
        found = program(**given)
        worst = max(worst, largest(found["acceleration"] - qdd[chosen]) / largest(qdd))
        if following:
            inertia = np.abs(world).max() * 1e3  # about a tonne and its arms: what efforts are the sum of
            worst = max(worst, largest(found["effort"] - state["effort"]) / max(inertia, largest(state["effort"])))
        assert largest(found["q"] - at.q) < 1e-13 * 10  # legs in closed form, rounding of metres and radians
        expected = tree.position_rates(at.q, state["rates"])
        assert largest(found["position_rates"] - expected) < 1e-12 * largest(expected)  # rounding
    figure.below(f"{NAME}, {modes} modes, driven by {drive}: general reduction", worst, TOLERANCE)


def test_the_jacobian_of_the_system_is_equation_48(figure):
    """J_sys^-T = J_p^-T - (A_re + W_p A_x W_e^T) A_ee^-1 J_e^-T from the oracle's mass matrix and Jacobians."""
    robot, oracle = pair("the catalogue")
    state = states("the catalogue")[0]
    q, names = positions(state.at), oracle.coordinates
    M, _ = oracle.mass_matrix_and_bias(q, state.rates[np.argsort(order_of(robot, oracle))])
    own = [names.index(f"platform.{part}") for part in TWIST]
    modes = [k for k, name in enumerate(names) if "mode" in name]
    turn = np.kron(np.eye(2), state.rotation)  # platform axes to those of the world
    A_re, A_ee = turn @ M[np.ix_(own, modes)], M[np.ix_(modes, modes)].copy()
    J_p, J_e = np.zeros((6, 6)), np.zeros((len(modes), 6))
    for k in range(6):
        leg = [names.index(f"leg{k + 1}.{joint}") for joint in (1, 2, 3)]
        J = oracle.frame_jacobian(q, f"leg{k + 1}.3")[:3, leg]
        W = oracle.frame_jacobian(q, f"leg{k + 1}.attachment")[:3]
        W_p, W_e = turn @ W[:, own].T, W[:, modes].T
        A_x = np.linalg.inv(J).T @ M[np.ix_(leg, leg)] @ np.linalg.inv(J)
        push = np.linalg.inv(J)[2]  # a_3 of the leg: the third row of the inverse
        A_re = A_re + W_p @ A_x @ W_e.T
        A_ee += W_e @ A_x @ W_e.T
        J_p[:, k], J_e[:, k] = W_p @ push, W_e @ push
    expected = J_p - A_re @ np.linalg.solve(A_ee, J_e)
    lengths = np.array([robot.tree.length] * 3 + [1.0] * 3)
    found = system_jacobian(state.at, "platform")
    units = robot.tree.rate_units[list(robot.actuated)]
    error = largest(found / lengths[:, None] * units - expected) / largest(expected)
    figure.below("J_sys against equation (48) by hand", error, TOLERANCE)


def test_a_corner_that_is_driven_while_it_turns_accelerates_as_asked():
    """Its velocity a moment later less that a moment before, along the rates that were found."""
    robot = parflex.load("3rrr-flexible", settings={"end_effector": "leg1.attachment"})
    found = parflex.inverse_dynamics(robot, None, {"x": 0.3, "y": -0.2, "theta": 0.5}, {"x": 1.0, "theta": 0.7})
    changes, step, ends = robot.tree.rate_changes(found.rates, found.accelerations), 1e-5, []
    for time in (step, -step):
        there = parflex.Configuration(robot, robot.tree.moved(found.configuration.q, time * found.rates))
        ends.append(there.frame_rows("leg1.attachment") @ (found.rates + time * changes))
    # third derivatives of size 1 times 1e-5 squared, and 1e-16 / 1e-5; the way to the centre is 0.04
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx([1, 0, 0, 0, 0, 0.7], abs=1e-8)


def test_efforts_that_hold_the_platform_leave_everything_at_rest():
    robot = flexible()
    for pose in ("home", {"x": 0.3, "y": 0.38, "z": 1.05, "rx": 0.1, "ry": 0.0, "rz": 0.0}):
        held = held_frame(robot, pose)
        place, R = (parflex.frames(robot, pose)["platform"][k] for k in (0, 1))
        now, turned = (parflex.frames(robot, held.configuration)["platform"][k] for k in (0, 1))
        assert largest(now - place) < 1e-9 and largest(turned - R) < 1e-9  # where Newton stops
        found = parflex.forward_dynamics(robot, held.configuration, None, held.efforts)
        # modes are known to 1e-11 m: stiffnesses of 2e6 N/m over masses of 1 kg leave 1e-5 m/s2 of g
        assert largest(found.accelerations) < 1e-4
        assert largest(held.configuration.q[robot.tree.links[robot.tree.number("platform")].e]) > 1e-3  # bent


@pytest.mark.few("inverse")
@pytest.mark.parametrize("function", ["inverse", "simulate"])
def test_unstable_zero_dynamics_are_told_once_with_their_figure(function, tmp_path):
    robot = flexible()
    here = zero_dynamics(robot, UNSTABLE)
    assert here.growth == pytest.approx(3.877, rel=1e-3) and not here.stable  # found once, pinned
    if function == "inverse":
        warnings = parflex.inverse_dynamics(robot, UNSTABLE, {"x": 0.0}).warnings
        quiet = parflex.inverse_dynamics(robot, None, {"x": 0.0}).warnings
    else:
        poses = [UNSTABLE, UNSTABLE | {"z": 1.0}]
        settings = {"motions.there": {"poses": poses, "duration": 0.5, "rest": 0.01}}
        away = platform_trajectory(parflex.load(NAME, settings=settings), "there")
        frames = {"frames": ["platform"], "drive": "platform"}
        warnings = parflex.simulate(robot, away, 0.005, **frames).summary["warnings"]
        quiet = parflex.simulate(robot, "tour", 0.005, **frames).summary["warnings"]
    told = [warning for warning in warnings if "zero dynamics" in warning]
    assert len(told) == 1 and "+3.88 1/s" in told[0] and "0.258 s" in told[0]
    assert not [warning for warning in quiet if "zero dynamics" in warning]


def test_motors_that_cannot_drive_the_platform_are_refused_and_nearly_so_is_told(monkeypatch):
    here = parflex.configure(flexible())
    assert check_system(here, "platform") == []
    condition = np.linalg.cond(system_jacobian(here, "platform"))
    monkeypatch.setattr("parflex.statics.zero_dynamics.NEAR_SINGULAR", condition / 2)
    (told,) = check_system(here, "platform")
    assert f"{condition:.1e}" in told.text
    monkeypatch.setattr("parflex.statics.zero_dynamics.SINGULAR", condition / 2)
    with pytest.raises(parflex.SingularError, match="J_sys is singular"):
        check_system(here, "platform")
    with pytest.raises(parflex.InputError, match="2 motors cannot drive all"):
        held_frame(parflex.load("dualemps"))


def test_a_deflection_beyond_small_ones_is_told_once_with_its_figure(capsys):
    robot = flexible()
    held = held_frame(robot)
    (told,) = deflection_warnings(robot.tree, held.configuration.q)
    nodes = robot.tree.links[robot.tree.number("platform")].body.nodes.values()
    way = max(np.linalg.norm(node.Phi_d @ held.configuration.q[7:17]) for node in nodes)
    assert f"{way:.3g} m, {way / 0.0075:.2g} times half its thickness" in told.text
    assert deflection_warnings(robot.tree, robot.home) == []
    assert deflection_warnings(robot.tree, np.array([robot.home, held.configuration.q])) == [told]  # the worst of all
    answer = answered(capsys, "inverse", NAME, "--velocity", "x=0")
    assert not [warning for warning in answer["warnings"] if "small deformations" in warning]  # undeformed there


def growth(law, here: parflex.Configuration, rows: np.ndarray, loading) -> float:
    """Largest real part of the eigenvalues about rest, under a law of what the rows measure and of its rate."""
    J, n, h, count = here.J, here.J.shape[1], 1e-6, len(rows)
    steps = [np.eye(2 * count)[k] * h for k in range(2 * count)]
    gains = np.array([(law(*np.split(e, 2)) - law(*np.split(-e, 2))) / (2 * h) for e in steps]).T
    M = parflex.mass_matrix(here.robot, here).matrix
    D = J.T @ tree_stiffness(here)[1] @ J - here.J_a.T @ gains[:, count:] @ rows
    K = tangent_stiffness(here, loading) - here.J_a.T @ gains[:, :count] @ rows
    states = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    return float(np.linalg.eigvals(states).real.max())


@pytest.mark.verify
def test_the_rigid_model_holds_the_platform_by_its_pose_up_to_six_rad_per_second_and_motors_never(figure):
    """Numbers that the page on flexible platforms tells."""
    held, rigid = held_frame(flexible()), parflex.load("gough-stewart")
    here, model = held.configuration, parflex.model(rigid, "inverse", include=("motor-inertia",))
    R, p = here.at.of(flexible().tree.places["platform"])
    rows = here.frame_rows("platform") @ here.J

    def computed_torque(bandwidth: float):
        def law(x: np.ndarray, v: np.ndarray) -> np.ndarray:
            push = -(bandwidth**2) * x - 2 * bandwidth * v
            place = {"position": p + x[:3], "rotation": Rotation.from_rotvec(x[3:]).as_matrix() @ R}
            moving = {"velocity": v[:3], "angular_velocity": v[3:], "acceleration": push[:3]}
            return model(**place, **moving, angular_acceleration=push[3:])["effort"]

        return law

    found = {w: growth(computed_torque(w), here, rows, held.loading) for w in (4.0, 5.9, 6.1, 10.0)}
    figure("growth under computed torque with the rigid model, 1/s", str({w: round(g, 3) for w, g in found.items()}))
    assert found[4.0] < -1 and found[5.9] < 0 < found[6.1] < found[10.0]
    for stiffness in (1e4, 1e6, 1e9):
        for damping in (1e2, 1e4):
            alone = growth(lambda x, v, k=stiffness, d=damping: -k * x - d * v, here, here.J_a, held.loading)
            assert alone > 2.5


def test_twists_and_accelerations_of_a_path_are_its_derivatives():
    path, h = platform_trajectory(flexible(), "tour"), 1e-5
    for t in (0.31, 0.77, 1.5, 2.4, 3.3):
        here, before, after = (path.at(t + d) for d in (0.0, -h, h))
        turn = Rotation.from_matrix(after.rotation @ before.rotation.T).as_rotvec()
        rate = np.concatenate([after.position - before.position, turn]) / (2 * h)
        assert largest(rate - here.twist) < 1e-8  # third derivatives of 10 times h squared, rounding over h
        assert largest((after.twist - before.twist) / (2 * h) - here.acceleration) < 1e-8  # the same
        assert largest(path.accelerations.value(t) - here.acceleration) < 1e-12 * 10  # the pieces that the loop gets
        assert largest(here.rotation @ here.rotation.T - np.eye(3)) < 1e-14 * 10
    for t in (0.1, 1.1, 2.1, 3.1, 4.1):  # rests
        assert largest(path.at(t).twist) == largest(path.at(t).acceleration) == 0.0
    places = [path.at(t).position.tolist() for t in (0.0, 1.1, 2.1, 3.1, 4.1)]
    assert places[1] == pytest.approx([0.30, 0.38, 1.05]) and places[2] == pytest.approx([0.20, 0.45, 0.95])
    assert places[0] == pytest.approx(places[4]) and path.end == pytest.approx(4.0)
    assert largest(path.at(2.1).rotation - Rotation.from_rotvec([0.0, -0.10, 0.10]).as_matrix()) < 1e-14


@pytest.mark.verify
def test_motors_lead_the_rigid_robot_along_the_path():
    robot = flexible()
    path = platform_trajectory(robot, "tour")
    motors = follow(robot, path)
    rigid, near = robot.locking(robot.tree.elastic), robot.home
    for t in (0.33, 1.71, 2.47, 3.9):
        near = rigid.assemble(dict(zip(robot.motors, motors.value(t), strict=True)), near)
        p, R, twist = (getattr(path.at(t), word) for word in ("position", "rotation", "twist"))
        here = parflex.Configuration(rigid, near)
        turned, place = here.at.of(robot.tree.places["platform"])
        assert largest(place - p) < 1e-7 and largest(turned - R) < 1e-7  # quintics between knots, by condition 35
        rates = here.rates(dict(zip(robot.motors, motors.value(t, 1), strict=True)))
        assert largest(here.frame_rows("platform") @ rates - twist) < 1e-5  # their derivative


@pytest.mark.verify
def test_a_platform_starts_where_motors_hold_it_and_undeformed_only_on_request():
    robot = flexible()
    options = {"drive": "platform", "frames": ["platform"]}
    held, undeformed = (parflex.simulate(robot, "tour", 0.05, start=start, **options) for start in (None, "rest"))
    assert held.summary["start"] == "held" and undeformed.summary["start"] == "rest"
    columns = [f"effort.{name}" for name in robot.motors]
    static = largest(held[columns[2]][0])
    for column in columns:  # the platform rests until 0.2 s
        assert np.ptp(held[column]) < 1e-6 * static
    first = max(largest(undeformed[column]) for column in columns)
    assert first / static == pytest.approx(5.08, abs=0.01)  # "five times"; our plate and its modes
    assert undeformed["q.platform.mode1"][0] == 0.0 != held["q.platform.mode1"][0]
    falling = parflex.simulate(robot, None, 0.002, pose="home", frames=["platform"])
    assert falling.summary["start"] == "held"
    with pytest.raises(parflex.SingularError, match=r"at 27.\d % of them '.*' becomes unstable"):
        parflex.simulate(robot, None, 0.002, pose="home", start="equilibrium")  # locked motors do not hold it


MOTION_ALONE = "a platform is driven by a motion alone"
BAD = {  # robot, its settings, what the run is given, and words of the refusal
    "one pose": ("3rrr", {"poses": ["home"], "duration": 1.0}, {}, "two poses"),
    "unknown pose": ("3rrr", {"poses": ["home", "hoem"], "duration": 1.0}, {}, "did you mean 'home'"),
    "unreachable pose": ("3rrr", {"poses": ["home", {"x": 9, "y": 0, "theta": 0}], "duration": 1.0}, {}, "poses.1"),
    "no duration": ("3rrr", {"poses": ["home", "home"]}, {}, "duration"),
    "a wrench": (NAME, None, {"wrench": {"platform": [0, 0, 1]}}, MOTION_ALONE),
    "a controller": (NAME, None, {"controller": parflex.PD(1.0, 1.0)}, MOTION_ALONE),
    "no motion": (NAME, None, {"motion": None}, MOTION_ALONE),
    "a motion of motors": ("dualemps", None, {"motion": "square"}, "has no poses"),
    "an unknown one": (NAME, None, {"motion": "tuor"}, "did you mean 'tour'"),
    "something else": (NAME, None, {"drive": "legs"}, "cannot be driven"),
    "no legs in closed form": ("delta", {"poses": ["home", "home"], "duration": 0.1}, {}, "platform"),
}


@pytest.mark.parametrize(("name", "motion", "changes", "words"), BAD.values(), ids=BAD.keys())
def test_motions_that_cannot_drive_a_platform_are_refused(name, motion, changes, words):
    settings = {} if motion is None else {"motions.tour": motion}
    with pytest.raises(parflex.ParflexError, match=words) as refusal:
        words = {"motion": "tour", "time": 0.1, "drive": "platform"} | changes
        parflex.simulate(parflex.load(name, settings=settings), **words)
    assert refusal.value.hint and (name != "3rrr" or str(refusal.value.key).startswith("motions.tour"))
