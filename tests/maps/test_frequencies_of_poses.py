"""Frequencies at many poses: a finite-element model of the NaVARo, loops, gears with backlash, and single poses."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from support.maps import OK, UNREACHABLE, Geometry, ModeFinder, PositionSolver, held_robot
from support.oracles.navaro_frame import Navaro, directions
from support.robots import load_robot, robot_file, write_robot

import parflex


@pytest.fixture(scope="module")
def navaro():
    return parflex.load("navaro")


def random_poses(count: int) -> np.ndarray:
    rng, poses = np.random.default_rng(3), []
    while len(poses) < count:
        pose = np.array([*rng.uniform(-0.35, 0.35, 2), rng.uniform(-np.pi, np.pi)])
        if np.isfinite(directions(*pose)).all():
            poses.append(pose)
    return np.array(poses)


@pytest.mark.verify
def test_compiled_steps_equal_the_finite_element_model_at_random_poses(navaro, figure):
    poses = random_poses(700)
    found = parflex.many_frequencies(navaro, ["x", "y", "rz"], poses)
    assert found.method == "steps", found.reason
    reached = found.status == OK
    assert reached.mean() > 0.995
    oracle = Navaro()
    expected = np.array([oracle.modes(*pose)[0] for pose in poses[reached][:150]])
    error = np.abs(found.frequencies[reached][:150] - expected).max()
    figure("frequencies by compiled steps, largest error in Hz", float(error), 2e-7)
    assert error < 2e-7  # proved to 5e-10 of 120 Hz; the full problem has a condition of 1e8
    assert found.fallbacks == 0


def together(frequencies: np.ndarray) -> list[slice]:
    cuts = [0, *(np.flatnonzero(np.diff(frequencies) > 1e-5 * frequencies[1:]) + 1), len(frequencies)]
    return [slice(a, b) for a, b in pairwise(cuts)]


def outer(twists: np.ndarray) -> np.ndarray:
    return twists.T @ twists


@pytest.mark.few("64")
@pytest.mark.parametrize("count", [600, 64])
def test_shapes_at_the_platform_are_those_of_the_finite_element_model(navaro, figure, count):
    poses = random_poses(count)
    poses[:2] = (0, 0, -1.0), (0, 0, 0.3)
    found = parflex.many_frequencies(navaro, ["x", "y", "rz"], poses, shapes=True)
    assert found.method == ("steps" if count > 500 else "together")
    assert found.fallbacks == (2 if count > 500 else 0)  # shapes of double modes come from linear models
    oracle, error, double = Navaro(), 0.0, 0
    for pose, status, twists in zip(poses[:120], found.status, found.shapes, strict=False):
        frequencies, vectors = oracle.modes(*pose)
        for modes in together(frequencies) if status == OK else []:
            expected = outer(vectors[-6:, modes].T)
            error = max(error, float(np.abs(outer(twists[modes]) - expected).max() / np.abs(expected).max()))
            double += modes.stop - modes.start == 2
    figure(f"twists of the platform in modes, relative, {count} poses", error, 1e-6)
    # modes are told apart if 1e-5 of x lies between them; shapes know others to 1e-9 / 1e-5 at worst
    assert error < 1e-6
    assert double >= 2


def test_steps_that_disagree_with_single_poses_are_given_up(navaro, monkeypatch):
    poses = random_poses(200)
    right, plain = parflex.many_frequencies(navaro, ["x", "y", "rz"], poses), ModeFinder.__call__
    assert right.method == "steps" and right.largest_difference < 2e-7  # as above
    monkeypatch.setattr(
        ModeFinder, "__call__", lambda self, q, *own, **more: replace(plain(self, q), x=1.1 * plain(self, q).x)
    )
    parflex.cache.clear()  # steps of a robot are checked once
    other = parflex.many_frequencies(parflex.load("navaro"), ["x", "y", "rz"], poses)
    assert other.method == "together" and "disagree" in other.reason
    assert np.nanmax(np.abs(other.frequencies - right.frequencies)) < 2e-7  # as above


def test_unreachable_cells_of_a_map_are_those_of_the_inverse_geometry(navaro):
    found = parflex.frequency_map(navaro, [("x", -0.5, 0.5, 15), ("y", -0.5, 0.5, 15)], {"rz": -1.0}, modes=2)
    x, y = found.axes.values()
    possible = np.array([[np.isfinite(directions(a, b, -1.0)).all() for b in y] for a in x])
    assert ((found.status == OK) == possible).all()
    assert np.isnan(found.frequencies[found.status == UNREACHABLE]).all()
    assert np.isfinite(found.frequencies[found.status == OK]).all()


SERVO = 3e4  # N m/rad, N/m
SPACE = ["x", "y", "z", "rx", "ry", "rz"]


@pytest.mark.parametrize(
    "name",
    [
        "geared-beams",  # gears whose joints are met against their direction
        "four-rrr",  # more rows than are needed
        "nut-in-loop",
        "rccc",  # closures that slide
        "upu",  # universal joints
        "planetary",  # a motion without stiffness
        "ball-screw",
    ],
)
def test_modes_of_loops_without_beams_are_those_of_single_poses(name):
    robot = load_robot(name)
    single = parflex.natural_frequencies(robot, lock="none", servo=SERVO, about="undeformed")
    free, modes = len(single.free_motions), len(single.frequencies)
    held, geometry = held_robot(robot, robot.home, parflex.LoadCase("none", servo=SERVO)), Geometry(robot)
    finder = ModeFinder(held, modes, free)
    found = finder(geometry.home[None])
    assert finder.programs.unknowns == single.independent_coordinates and found.ok.all()
    assert np.sqrt(found.x[0]) / (2 * np.pi) == pytest.approx(single.frequencies, rel=2e-10)  # of the proof


@pytest.mark.verify
def test_flexible_platforms_on_rigid_legs_are_solved_by_steps():
    robot = parflex.load("gough-stewart-flexible")
    rng = np.random.default_rng(3)
    poses = np.array([0.25, 0.433, 1.0, 0, 0, 0]) + 0.1 * rng.uniform(-1, 1, (200, 6))
    found = parflex.many_frequencies(robot, SPACE, poses, 3, shapes=True)
    assert found.method == "steps" and found.fallbacks == 0
    for k in (0, 77, 199):
        single = parflex.natural_frequencies(robot, dict(zip(SPACE, poses[k].tolist(), strict=True)), 3)
        assert found.frequencies[k] == pytest.approx(single.frequencies, rel=1e-9)
    asked = ["frequency:2", "damping:1", "stiffness:platform", "deflection:z"]
    answers = parflex.many_responses(robot, SPACE, poses[:64], asked)
    assert answers.method == "together"
    pose = dict(zip(SPACE, poses[1].tolist(), strict=True))
    stiff = parflex.cartesian_stiffness(robot, pose, "platform").stiffness
    assert answers["stiffness:platform"][1] == pytest.approx(stiff, rel=1e-9, abs=1e-9 * np.abs(stiff).max())
    moved = parflex.deflection(robot, pose, ["platform"]).frames["platform"][2]
    assert answers["deflection:z"][1] == pytest.approx(moved, rel=1e-9)
    assert answers["damping:1"][1] == pytest.approx(parflex.natural_frequencies(robot, pose, 1).damping[0], rel=1e-9)


def test_gears_with_springs_are_in_maps_and_under_tension_they_are_about_the_equilibrium():
    robot = load_robot("geared-beams", settings={"coupling.reducer.stiffness": 2000.0})
    poses = [[0.1, 0.505]] * 5 + [[0.1, 0.52]]  # at rest, and wound up
    with pytest.warns(parflex.ParflexWarning, match="1 of 6 poses have springs under tension"):
        found = parflex.many_frequencies(robot, ["motor", "shoulder"], poses, 3)
    assert found.fallbacks == 0
    for row, (motor, shoulder) in zip(found.frequencies[4:], poses[4:], strict=True):
        single = parflex.natural_frequencies(robot, {"motor": motor, "shoulder": shoulder}, 3)
        assert row == pytest.approx(single.frequencies, rel=1e-10)


def test_dampers_between_points_are_in_damping_ratios(tmp_path):
    dash = '[[element]]\nname = "dash"\nkind = "damper"\nbetween = ["base", "hand"]\ndamping = 12.0\n'
    robot = parflex.load(write_robot(tmp_path, robot_file("geared-beams").read_text() + dash))
    found = parflex.many_responses(robot, ["motor"], [[0.1]] * 6, ["damping:1", "frequency:1"])
    single = parflex.natural_frequencies(robot, {"motor": 0.1}, 1)
    assert found["damping:1"][0] == pytest.approx(single.damping[0], rel=1e-9) and found.fallbacks == 0
    plain = parflex.many_frequencies(robot, ["motor"], [[0.1]] * 6, 1)
    assert plain.fallbacks == 0 and plain.frequencies[0, 0] == pytest.approx(single.frequencies[0], rel=1e-10)


def test_single_poses_are_reached_as_in_batches():
    robot, names = load_robot("unlike-legs"), ["x", "y", "theta"]
    poses = np.array([[-0.2131, -0.1731, 0.1291], [-0.1023, -0.2139, 0.042], [0.2011, -0.1952, 0.0575], [0.4, 0, 0]])
    solver = PositionSolver(Geometry(robot), names, [0.0, 0.0, 0.0])
    assert [int(solver(pose[None]).status[0]) for pose in poses] == [OK, OK, OK, UNREACHABLE]
    found = solver(poses[:1]).q[0]
    single = robot.assemble(dict(zip(names, poses[0].tolist(), strict=True)))[solver.geometry.kept]
    assert np.exp(1j * found) == pytest.approx(np.exp(1j * single), abs=1e-9)  # whole turns aside


def five_bar(x, y, a, proximal, distal, offset, side=1.0):
    """Joints of the five-bar by the cosine law: left arm, its elbow, right arm, its elbow; NaN out of reach."""

    def arm(x, y, first, second, side):
        elbow = side * np.arccos((x * x + y * y - first**2 - second**2) / (2 * first * second))
        return np.arctan2(y, x) - np.arctan2(second * np.sin(elbow), first + second * np.cos(elbow)), elbow

    left, bent = arm(x + a, y, proximal, distal + offset, -side)
    pin = x - offset * np.cos(left + bent), y - offset * np.sin(left + bent)
    return np.array([left, bent, *arm(pin[0] - a, pin[1], proximal, distal, side)])


@pytest.mark.verify
@np.errstate(invalid="ignore")
def test_end_effectors_on_joints_are_placed_for_all_rows_and_designs_together():
    robot, names, rng = load_robot("offset-five-bar"), ["x", "y"], np.random.default_rng(5)
    poses = np.stack([rng.uniform(-0.35, 0.35, 300), rng.uniform(0.1, 0.7, 300)], axis=1)
    sizes = np.array([0.12, 0.25, 0.34, 0.02])
    solver = PositionSolver(Geometry(robot), names, poses[0].tolist())
    found, right = solver(poses), np.array([five_bar(*pose, *sizes) for pose in poses])
    assert solver.fast and np.array_equal(found.status == UNREACHABLE, np.isnan(right).any(axis=1))
    good = found.status == OK
    assert 100 < good.sum() < 290 and solver.why(UNREACHABLE) == "the pose cannot be reached"
    assert np.exp(1j * found.q[good]) == pytest.approx(np.exp(1j * right[good]), abs=1e-11)  # of Newton's last step
    # both elbows on their other sides: the determinant of the whole keeps its sign
    turned = solver.given.start(poses[good][:1], five_bar(*poses[good][0], *sizes, -1.0)[None])
    assert solver._newton(turned)[1][0] == UNREACHABLE
    # every row with its own design, the place of the end effector on its link among its numbers
    designs = sizes * rng.uniform(0.9, 1.1, (12, 4))
    keys = [f"constants.{name}" for name in ("a", "proximal", "distal", "offset")]
    own, columns = poses[good][:12], dict(zip(keys, designs.T, strict=True))
    answers = parflex.many_responses(robot, names, own, ["stiffness:tip.x"], designs=columns)
    assert answers.method == "together"
    for k in np.flatnonzero(answers.status == OK)[:3]:
        one = parflex.load(robot.file, settings=dict(zip(keys, designs[k].tolist(), strict=True)))
        angles = dict(zip(["left", "right"], five_bar(*own[k], *designs[k])[[0, 2]].tolist(), strict=True))
        single = parflex.cartesian_stiffness(one, angles).stiffness[0, 0]
        assert answers["stiffness:tip.x"][k] == pytest.approx(single, rel=1e-9)
    assert (answers.status == OK).sum() > 8


PROXIMAL, DISTAL, ARM, SOFT = 0.5, 0.4, 0.1732, 4000.0
BASES = np.array([-0.15 - 0.84j, 0.69 - 0.17j, -0.66 + 0.21j])
PHI, ELBOW = np.pi * np.array([1 / 6, 5 / 6, 9 / 6]), np.array([1, -1, 1])
STEP = 1e-5  # m, rad: central differences of the angles, good to 1e-10


def angles(x, y, theta):
    """First and second angles of the legs in the world, by the law of cosines."""
    way = x + 1j * y - ARM * np.exp(1j * (theta + PHI)) - BASES
    d = np.abs(way)
    first = np.angle(way) - ELBOW * np.arccos((PROXIMAL**2 + d**2 - DISTAL**2) / (2 * PROXIMAL * d))
    elbow = BASES + PROXIMAL * np.exp(1j * first)
    return first, np.angle(way + BASES - elbow)


def moving(x, y, theta):
    """Mass and, per unit of stiffness at the first joints, stiffness over the coordinates of the platform."""
    here, steps = np.array([x, y, theta]), STEP * np.eye(3)
    rates = [(np.array(angles(*(here + s))) - np.array(angles(*(here - s)))) / (2 * STEP) for s in steps]
    first, second = np.array([r[0] for r in rates]).T, np.array([r[1] for r in rates]).T  # legs x coordinates
    a, b = angles(x, y, theta)
    M, K = np.diag([1.3576 + 0.5, 1.3576 + 0.5, 0.0085 + 8.3333e-4]), np.zeros((3, 3))
    for k in range(3):
        K += np.outer(first[k], first[k])
        elbow = PROXIMAL * np.outer([-np.sin(a[k]), np.cos(a[k])], first[k])
        middle = elbow + DISTAL / 2 * np.outer([-np.sin(b[k]), np.cos(b[k])], second[k])
        M += (0.0088 + 0.4239 * (PROXIMAL / 2) ** 2 + 3.687e-6) * np.outer(first[k], first[k])
        M += 0.0656 * elbow.T @ elbow + 0.3391 * middle.T @ middle + 0.0045 * np.outer(second[k], second[k])
    return M, K


def frequencies(x, y, soft=SOFT):
    M, K = moving(x, y, 0.0)
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M, soft * K)).real)) / (2 * np.pi)


@pytest.fixture(scope="module")
def geared():
    return load_robot("geared-3rrr")


def test_motors_follow_and_gears_rest(geared):
    values = np.random.default_rng(0).uniform(-0.05, 0.05, (20, 2))
    found = PositionSolver(Geometry(geared), ["x", "y"], [0.0, 0.0])(values)
    assert (found.status == OK).all()
    for row, q in zip(values[:3], found.q, strict=False):
        assert np.abs(q - parflex.configure(geared, {"x": row[0], "y": row[1]}).q).max() < 1e-9
    for leg in (1, 2, 3):
        motor, joint = (geared.tree.links[geared.tree.number(f"leg{leg}.{word}")].q.start for word in ("motor", "1"))
        assert np.abs(found.q[:, joint] - 0.02 * found.q[:, motor]).max() < 1e-12


def test_frequencies_of_soft_gears_with_play_are_those_of_springs(geared):
    values = np.random.default_rng(1).uniform(-0.05, 0.05, (220, 2))
    found = parflex.many_frequencies(geared, ["x", "y"], values, modes=3)
    assert found.method == "steps" and found.fallbacks == 0
    for row, own in zip(values[::20], found.frequencies[::20], strict=True):
        assert own == pytest.approx(frequencies(*row), rel=1e-7)  # of the differences of angles
    single = parflex.natural_frequencies(geared, {"x": values[0, 0], "y": values[0, 1]}, 3).frequencies
    assert found.frequencies[0] == pytest.approx(single, rel=1e-9)


def test_designs_of_gears_are_solved_together(geared):
    rng = np.random.default_rng(2)
    values, soft, slop = rng.uniform(-0.05, 0.05, (12, 2)), rng.uniform(2e3, 6e3, 12), rng.uniform(0, 0.004, 12)
    designs = {"constants.soft": soft, "constants.slop": slop}
    found = parflex.many_frequencies(geared, ["x", "y"], values, modes=3, designs=designs)
    assert found.fallbacks == 0 and (found.status == 0).all()
    for row, own, k in zip(values, found.frequencies, soft, strict=True):
        assert own == pytest.approx(frequencies(*row, k), rel=1e-7)
    one = load_robot("geared-3rrr", settings={"constants.soft": soft[3], "constants.slop": slop[3]})
    single = parflex.natural_frequencies(one, {"x": values[3, 0], "y": values[3, 1]}, 3).frequencies
    assert found.frequencies[3] == pytest.approx(single, rel=1e-9)


def energy(place, motors, flanks, soft):
    first, second = angles(*place)
    elbow = BASES + PROXIMAL * np.exp(1j * first)
    middle = elbow + DISTAL / 2 * np.exp(1j * second)
    height = (0.4239 * (BASES + elbow) / 2 + 0.0656 * elbow + 0.3391 * middle).imag.sum() + 1.8576 * place[1]
    stretch = (first - motors + np.pi) % (2 * np.pi) - np.pi
    return 9.81 * height + soft / 2 * ((stretch - flanks) ** 2).sum()


def slopes(f, at, h=2e-4):
    steps = h * np.eye(3)
    return np.array([(8 * (f(at + s) - f(at - s)) - (f(at + 2 * s) - f(at - 2 * s))) / (12 * h) for s in steps])


def at_rest(x, y, soft, slop):
    """Frequencies about the equilibrium under gravity, by energies alone."""
    place, motors = np.array([x, y, 0.0]), angles(x, y, 0.0)[0]
    flanks = np.zeros(3)
    for sides in range(2):
        stored = partial(energy, motors=motors, flanks=flanks, soft=soft)
        for _ in range(6):
            K = slopes(partial(slopes, stored), place)
            place = place - np.linalg.solve(K, slopes(stored, place))
        stretch = (angles(*place)[0] - motors + np.pi) % (2 * np.pi) - np.pi
        if not sides:
            flanks = np.sign(stretch) * slop / 2
    assert (np.sign(flanks) * stretch > slop / 2).all()
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(moving(*place)[0], K)).real)) / (2 * np.pi)


@pytest.mark.verify
def test_equilibria_on_loaded_flanks_are_those_of_energies(geared):
    rng = np.random.default_rng(3)
    values, soft, slop = rng.uniform(-0.05, 0.05, (6, 2)), rng.uniform(2e3, 6e3, 6), rng.uniform(1e-3, 4e-3, 6)
    designs = {"constants.soft": soft, "constants.slop": slop}
    found = parflex.many_frequencies(geared, ["x", "y"], values, modes=3, about="equilibrium", designs=designs)
    assert found.fallbacks == 0 and (found.status == 0).all()
    for k in range(2):
        own = at_rest(*values[k], soft[k], slop[k])
        assert found.frequencies[k] == pytest.approx(own, rel=1e-6)  # of the differences
    plain = parflex.many_frequencies(geared, ["x", "y"], values, modes=3, about="equilibrium")
    assert plain.fallbacks == 0
    single = parflex.natural_frequencies(geared, {"x": values[5, 0], "y": values[5, 1]}, 3, about="equilibrium")
    assert plain.frequencies[5] == pytest.approx(single.frequencies, rel=1e-9)
    words = {"modes": 3, "about": "equilibrium"}
    halves = [parflex.many_frequencies(geared, ["x", "y"], values, **words, threads=n).frequencies for n in (1, 2)]
    assert np.array_equal(*halves)


def test_gears_that_nothing_presses_are_refused_as_single_poses_are():
    calm = load_robot("geared-3rrr", settings={"gravity.1": 0.0})
    for ask in (
        lambda: parflex.many_frequencies(calm, ["x", "y"], np.zeros((6, 2)), modes=1, about="equilibrium"),
        lambda: parflex.natural_frequencies(calm, None, 1, about="equilibrium"),
    ):
        with pytest.raises(parflex.InputError, match="motions have no frequency"):
            ask()
