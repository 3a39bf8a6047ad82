"""Poses far from home, and poses of robots with elastic couplings."""

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation
from support.maps import OK, UNREACHABLE, end_effector, indices, pose_solver
from support.robots import load_robot, robot_file, write_robot

import parflex

ROUNDING = 1e-9  # m, rad: loops close to 1e-10 of the typical length
CLEAR = 1e-3  # rad of sines: nearer to a fold or a stretched leg rounding chooses
SAME = 1e-6  # rad: positions are closed to 1e-9 of lengths, and folds are 1e-3 away


def apart(first, second) -> float:
    return float(np.abs(np.angle(np.exp(1j * np.subtract(first, second)))).max())


# The crank places one end of the coupler, the rocker the other; their distance is the coupler's length. That is
# `a cos + b sin = c` for the rocker: two angles, told apart by the sign of their arc cosine. The cross at the other end
# flips with it, so that the determinant of the loop does not tell them apart.
COUPLER, CROSS, PIVOT, BALL = 0.5, [0.12, 0.0, 0.02], [0.5, 0.1, 0.05], [0.25, 0.0, 0.03]


def rocker(robot: parflex.Robot, crank: float, branch: float) -> float:
    """Return the angle of the rocker on one branch, from the length of the coupler alone."""
    placed = robot.tree.links[robot.tree.number("rocker")].rotation
    away = placed.T @ (Rotation.from_rotvec([0, 0, crank]).apply(CROSS) - PIVOT)
    # |Rz(t) ball - away| = coupler
    a = 2 * (BALL[0] * away[0] + BALL[1] * away[1])
    b = 2 * (BALL[0] * away[1] - BALL[1] * away[0])
    c = float(np.dot(BALL, BALL) + away @ away - 2 * BALL[2] * away[2] - COUPLER**2)
    return float(np.arctan2(b, a) + branch * np.arccos(c / np.hypot(a, b)))


@pytest.fixture(scope="module")
def four_bar() -> tuple[parflex.Robot, float, int]:
    robot = load_robot("spatial-four-bar")
    index = robot.coordinates.index("rocker")
    branch = next(sign for sign in (1.0, -1.0) if apart(rocker(robot, 0.4, sign), robot.home[index]) < ROUNDING)
    return robot, branch, index


def test_far_cranks_stay_in_the_assembly_of_home_alone_and_in_maps(four_bar) -> None:
    robot, branch, index = four_bar
    for crank in [1.253, *np.random.default_rng(5).uniform(-1.15, 1.5, 8)]:
        result = robot.assemble({"crank": float(crank)})[index]
        assert apart(result, rocker(robot, crank, branch)) < ROUNDING
        whole = robot.assemble({"crank": float(crank) + 2 * np.pi})[index]  # the way round is blocked
        assert apart(whole, result) < ROUNDING
    for count in (1, 9, 90):
        cranks = np.linspace(1.253, -1.15, count)
        mapped = pose_solver(robot, ["crank"], [0.4])(cranks[:, None])
        assert not mapped.status.any()
        assert apart(mapped.q[:, index], [rocker(robot, float(crank), branch) for crank in cranks]) < ROUNDING


def coupler(crank: np.ndarray) -> np.ndarray:
    joint = 0.1 * np.exp(1j * crank)
    away = 0.4 - joint
    far = np.abs(away)
    inner = np.arccos((0.4**2 + far**2 - 0.25**2) / (2 * 0.4 * far))
    return np.unwrap(np.angle(away) + inner - crank)


def test_a_spring_is_wound_as_turning_there_from_home_winds_it() -> None:
    robot = load_robot("sprung-crank")
    (pin,) = indices(robot, ["pin"])
    goals = np.array([-3.0, 4.5, -4.5, 0.7, 6.0, -9.0])
    paths = [coupler(np.linspace(0.5, goal, 2001)) for goal in goals]
    true = [robot.home[pin] + path[-1] - path[0] for path in paths]
    for goal, angle in zip(goals, true, strict=True):
        assert robot.assemble({"crank": float(goal)})[pin] == pytest.approx(angle, abs=ROUNDING)
        alone = pose_solver(robot, ["crank"], [0.5])(np.array([[goal]]))
        assert alone.q[0, pin] == pytest.approx(angle, abs=ROUNDING)
    together = pose_solver(robot, ["crank"], [0.5])(goals[:, None])
    assert not together.status.any() and together.q[:, pin] == pytest.approx(true, abs=ROUNDING)


# of the Gough-Stewart robot: legs are distances of points, and the assembly of home is followed by their own slopes
GROUND = np.array([[0.1, 0.3, 1.3, 1.0, -0.2, -0.7], [-0.2, -0.2, 0.4, 1.0, 0.9, 0.5], np.zeros(6)]).T
VERTICES = np.array([-2, -1, 0, 1, 2, 3]) * np.pi / 3
TOPS = 0.5 * np.array([np.cos(VERTICES), np.sin(VERTICES), np.zeros(6)]).T
HOME = np.array([0.25, 0.433, 1.0])
MOVED = np.random.default_rng(3).uniform(-0.03, 0.03, (8, 6))
BEYOND = [3, 7]  # rows of MOVED between which and home two assemblies meet and vanish


def legs(place: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    arms = TOPS @ turn.T
    along = place + arms - GROUND
    sizes = np.linalg.norm(along, axis=1)
    unit = along / sizes[:, None]
    return sizes, np.hstack([unit, np.cross(arms, unit)])


def followed_home(change: np.ndarray, steps: int = 60) -> tuple[np.ndarray, np.ndarray] | None:
    """Where the platform goes while all legs grow evenly; None where the slopes become singular before."""
    place, turn = HOME, np.eye(3)
    start, J = legs(place, turn)
    side = np.linalg.det(J)
    for step in range(1, steps + 1):
        for _ in range(20):
            sizes, J = legs(place, turn)
            move = np.linalg.solve(J, start + step / steps * change - sizes)
            if np.abs(move).max() > 0.3:
                return None
            place, turn = place + move[:3], Rotation.from_rotvec(move[3:]).as_matrix() @ turn
        if np.linalg.det(legs(place, turn)[1]) * side <= 0 or np.abs(move).max() > ROUNDING:
            return None
    return place, turn


@pytest.mark.verify
def test_legs_beyond_a_singular_pose_are_refused_alone_and_in_maps() -> None:
    hexapod = parflex.load("gough-stewart")
    names = list(hexapod.actuated_names)
    lengths = legs(HOME, np.eye(3))[0] + MOVED
    true = [followed_home(change) for change in MOVED]
    assert [k for k, one in enumerate(true) if one is None] == BEYOND
    result = pose_solver(hexapod, names, lengths[0].tolist(), compiled=True)(lengths)
    assert np.flatnonzero(result.status).tolist() == BEYOND and (result.status[BEYOND] == UNREACHABLE).all()
    assert result.messages is not None
    assert all("only in another assembly mode" in result.messages[k] for k in BEYOND)
    for k, one in enumerate(true):
        if one is not None and k < BEYOND[0]:
            alone = hexapod.assemble(dict(zip(names, lengths[k].tolist(), strict=True)))
            assert result.q[k] == pytest.approx(alone, abs=ROUNDING)
        if one is not None:
            assert result.q[k, :3] == pytest.approx(one[0], abs=ROUNDING)
    refused = dict(zip(names, lengths[BEYOND[0]].tolist(), strict=True))
    with pytest.raises(parflex.UnreachableError, match="only in another assembly mode"):
        hexapod.assemble(refused)


def test_a_path_around_a_singular_pose_stays_on_the_side_of_home() -> None:
    robot = load_robot("turret")
    goals = np.array([[-0.5, 0.0, 0.7], [-0.3, 0.0, 0.8], [-0.2, 0.3, 0.9]])
    mapped = pose_solver(robot, ["x", "y", "z"], goals[0].tolist())(goals)
    assert (mapped.status == OK).all()
    for row, goal in enumerate(goals):
        far = np.hypot(goal[0], goal[1])
        alone = robot.assemble(dict(zip("xyz", goal.tolist(), strict=True)))
        for q in (alone, mapped.q[row]):
            pan, tilt, slide = q[indices(robot, ["pan", "tilt", "slide"])]
            assert np.exp(1j * pan) == pytest.approx((goal[0] + 1j * goal[1]) / far, abs=ROUNDING)
            assert (tilt, slide) == pytest.approx((np.arctan2(far, goal[2]), np.linalg.norm(goal)), abs=ROUNDING)


@pytest.mark.verify
def test_maps_report_poses_that_only_another_working_mode_reaches():
    """A four-bar turns the shoulder: crank 0.1 and coupler 0.3 span 0.2 to 0.4 from its pivot."""
    robot, poses = load_robot("arm-on-four-bar"), np.random.default_rng(2).uniform(-0.5, 0.5, (40, 2))
    far = np.hypot(*poses.T)
    within = (far < 0.55) & (far > 0.05)  # of upper arm and forearm
    turn = np.arccos(np.clip((0.3**2 + far**2 - 0.25**2) / (0.6 * far), -1, 1))
    spans = []
    for side in (1, -1):  # at home the forearm is turned to the right of the upper arm
        shoulder = np.arctan2(poses[:, 1], poses[:, 0]) + side * turn
        span = np.hypot(0.15 * np.cos(shoulder) + 0.3, 0.15 * np.sin(shoulder))
        spans.append(within & (span > 0.2) & (span < 0.4))
    result = parflex.many_responses(robot, ["x", "y"], poses, ["mass"])
    own, other = spans
    assert np.array_equal(result.status == OK, own) and 3 < (~own & other).sum() < 30
    for k in np.flatnonzero(~own):
        said = "pin reaches this pose only in another working mode" if other[k] else "the pose cannot be reached"
        assert result.reasons[k] == said
    row = int(np.flatnonzero(~own & other)[0])
    with pytest.raises(parflex.UnreachableError, match="pin reaches this pose only in another working mode"):
        robot.assemble(dict(zip("xy", poses[row].tolist(), strict=True)))


# legs have the working mode of home; of two poses that have it, the one on its side of the fold is meant
FEET, CRANK, ROD = (-0.12, 0.12), 0.3, 0.4  # of the 5r


def sine(angle: float) -> float:
    return float(np.sin(angle))


def five_bars(crank: float, x: float) -> list[tuple[np.ndarray, float]]:
    """All assemblies of a five-bar with its left crank and x of its tip given: angles, and the side of the fold."""
    elbow = np.array([FEET[0], 0.0]) + CRANK * np.array([np.cos(crank), np.sin(crank)])
    if abs(x - elbow[0]) > ROD:
        return []
    result = []
    for turn in (1, -1):
        rod = turn * np.arccos((x - elbow[0]) / ROD)
        tip = elbow + ROD * np.array([np.cos(rod), np.sin(rod)]) - [FEET[1], 0.0]
        bend = (tip @ tip - CRANK**2 - ROD**2) / (2 * CRANK * ROD)
        for side in (1, -1) if abs(bend) <= 1 else ():
            knee = side * np.arccos(bend)
            foot = np.arctan2(tip[1], tip[0]) - np.arctan2(ROD * sine(knee), CRANK + ROD * np.cos(knee))
            result.append((np.array([crank, rod - crank, foot, knee]), sine(rod)))
    return result


def meant(result: list[tuple[np.ndarray, float]]) -> np.ndarray | None:
    """Left elbow to the left, right one to the right as at home, and above the fold if there is such a one."""
    mode = [one for one in result if sine(one[0][1]) < 0 < sine(one[0][3])]
    return max(mode, key=lambda one: one[1])[0] if mode else None


def clear(result: list[tuple[np.ndarray, float]]) -> bool:
    return all(min(abs(fold), abs(sine(q[1])), abs(sine(q[3]))) > CLEAR for q, fold in result)


@pytest.fixture(scope="module")
def five_bar() -> parflex.Robot:
    return parflex.load("5r")


@pytest.mark.verify
def test_a_fold_of_a_coordinate_is_no_other_working_mode(five_bar):
    turns, places = np.linspace(0.1, 6.1, 8), np.linspace(-0.4, 0.4, 5)
    rows = np.array([(a, x) for a in turns for x in places if clear(five_bars(a, x))])
    solver = pose_solver(five_bar, ["left.1", "x"], rows[0])
    assert solver.fast
    result, folded = solver(rows), 0
    assert result.messages is not None
    for row, q, state, said in zip(rows, result.q, result.status, result.messages, strict=True):
        assemblies = five_bars(*row)
        wanted = meant(assemblies)
        if wanted is None:
            assert state == UNREACHABLE, row
            assert ("another working mode" in said) == bool(assemblies), row
        else:
            assert state == OK, row
            assert apart(q, wanted) < SAME, row
            if not folded:  # single poses are those of maps
                assert apart(five_bar.assemble({"left.1": float(row[0]), "x": float(row[1])}), wanted) < SAME
            folded += all(fold < 0 for other, fold in assemblies if apart(other, wanted) < SAME)
    assert folded > 5  # poses that the side of the fold would refuse


ARM, PROXIMAL, DISTAL = 0.1732, 0.5, 0.4  # of the 3rrr
BASES = np.array([[-0.15, -0.84], [0.69, -0.17], [-0.66, 0.21]])
PHI = np.array([1, 5, 9]) * np.pi / 6


def turns_of_platform(crank: float, place: np.ndarray) -> list[tuple[float, float, bool]]:
    """Turns at which leg 1 closes with its crank given: the sine of its knee, and whether the other legs reach it."""
    elbow = BASES[0] + PROXIMAL * np.array([np.cos(crank), np.sin(crank)])
    away = elbow - place
    far = float(np.linalg.norm(away))
    spread = (far**2 + ARM**2 - DISTAL**2) / (2 * far * ARM)
    result = []
    for side in (1, -1) if abs(spread) <= 1 else ():
        attached = np.arctan2(away[1], away[0]) + side * np.arccos(spread)
        rod = place + ARM * np.array([np.cos(attached), np.sin(attached)]) - elbow
        angles = attached + PHI - PHI[0]
        reach = place + ARM * np.column_stack([np.cos(angles), np.sin(angles)]) - BASES
        reached = bool(np.all(np.abs(np.linalg.norm(reach[1:], axis=1) - PROXIMAL) < DISTAL))
        result.append((attached - PHI[0] - np.pi, float(np.sin(np.arctan2(rod[1], rod[0]) - crank)), reached))
    return result


@pytest.mark.verify
def test_platforms_follow_a_motor_and_their_place():
    robot = parflex.load("3rrr")
    home, spread = robot.home, np.random.default_rng(3).uniform(-1, 1, (16, 3))
    rows = np.array([home[3], home[0], home[1]]) + spread * [1.5, 0.15, 0.15]
    solver = pose_solver(robot, ["leg1.1", "x", "y"], rows[0])
    assert solver.fast
    result = solver(rows)
    answered = 0
    for row, q, state in zip(rows, result.q, result.status, strict=True):
        all_turns = turns_of_platform(row[0], row[1:])
        mode = [turn for turn, knee, reached in all_turns if reached and knee > 0]
        assert (state == OK) == bool(mode), (row, all_turns)
        if mode:
            assert min(apart(turn, q[2]) for turn in mode) < SAME
            assert [sine(q[k]) > 0 for k in (4, 6, 8)] == [True, False, True]
            answered += 1
    assert 2 < answered < len(rows)


@pytest.mark.parametrize(
    ("name", "by", "to"),
    [("navaro", ["x", "y", "rz"], ["leg1.1", "leg2.1", "leg3.1"]), ("four-bar", None, ["x"])],
    ids=["three motors of six", "one coordinate of two"],
)
def test_what_a_pose_names_moves_what_it_would_keep(name, by, to):
    robot = parflex.load(name)
    by = by or [robot.actuated_names[0]]
    spread = np.random.default_rng(5).uniform(-0.02, 0.02, (4, len(by)))

    def read(q: np.ndarray, words: list[str]) -> list[float]:
        P, R = end_effector(robot, q)
        own = {"x": P[0], "y": P[1], "rz": np.arctan2(R[1, 0], R[0, 0])} | dict(zip(robot.coordinates, q, strict=True))
        return [float(own[word]) for word in words]

    poses = [robot.assemble(dict(zip(by, np.add(read(robot.home, by), row).tolist(), strict=True))) for row in spread]
    rows = np.array([read(q, to) for q in poses])
    solver = pose_solver(robot, to, rows[0])
    result = solver(rows)
    assert (result.status == OK).all()
    for one, row, q in zip(poses, rows, result.q, strict=True):
        assert np.abs(q - one[solver.geometry.kept]).max() < SAME
        assert np.abs(robot.assemble(dict(zip(to, row.tolist(), strict=True))) - one).max() < SAME


FLIPPED = [  # poses that have one sign of the determinant of a leg with two of its loops flipped together
    {"x": -0.21797173014883436, "y": -0.09660177156682007, "rz": -1.2343846399701035},
    {"x": 0.1662797079308596, "y": -0.15949233223891188, "rz": -0.7868457293954285},
]
GAMMA = np.array([np.pi / 2, -5 * np.pi / 6, -np.pi / 6])


def navaro_reach(pose):
    feet = 0.7 / np.sqrt(3) * np.c_[np.cos(GAMMA), np.sin(GAMMA)]
    turn = pose["rz"] + GAMMA + 4 * np.pi / 3
    ends = np.array([pose["x"], pose["y"]]) - 0.2027 * np.c_[np.cos(turn), np.sin(turn)]
    return np.linalg.norm(ends - feet, axis=1)


def navaro_sides(robot, q):
    value = dict(zip(robot.coordinates, q, strict=True))
    sides = []
    for leg in ("leg1", "leg2", "leg3"):
        one, two, three, four = (value[f"{leg}.{k}"] for k in (1, 2, 3, 4))
        sides += [np.sin(two + three + four - one) > 0, bool(abs(np.sin((two + three - one) / 2)) < 1e-6)]
    return sides


def navaro_poses(count):
    rng, poses = np.random.default_rng(11), list(FLIPPED)
    while len(poses) < count:
        pose = {"x": rng.uniform(-0.3, 0.3), "y": rng.uniform(-0.3, 0.3), "rz": rng.uniform(-3, 3)}
        reach = navaro_reach(pose)
        if reach.max() < 0.415 and reach.min() > 0.02:  # two lengths of 0.21 m
            poses.append(pose)
    return poses


@pytest.mark.verify
def test_random_poses_of_the_navaro_keep_knees_and_parallelograms_alone_and_in_maps():
    robot, poses = parflex.load("navaro"), navaro_poses(10)
    assert navaro_sides(robot, robot.home) == [True, True] * 3
    solver = pose_solver(robot, ["x", "y", "rz"], list(poses[0].values()))
    result = solver(np.array([list(pose.values()) for pose in poses]))
    assert solver.fast
    for pose, q, status in zip(poses, solver.geometry.whole(result.q), result.status, strict=True):
        single = robot.assemble(pose)
        assert navaro_sides(robot, single) == [True, True] * 3, pose
        if status == OK:
            assert np.abs(np.exp(1j * q) - np.exp(1j * single)).max() < 1e-8, pose  # closed to 1e-10, conditions of 100


def elbow(foot, end, first, second, side):
    square = np.sum((np.asarray(end) - foot) ** 2)
    return side * np.arccos((square - first**2 - second**2) / (2 * first * second))


@pytest.mark.parametrize("name", ["3rrr", "5r"])
def test_random_poses_of_planar_robots_have_the_elbows_of_the_closed_form(name):
    robot, rng, seen = parflex.load(name), np.random.default_rng(2), 0
    lengths = {"3rrr": (0.4, 0.5), "5r": (0.3, 0.4)}[name]
    legs = {"3rrr": ["leg1", "leg2", "leg3"], "5r": ["left", "right"]}[name]
    start = dict(zip(robot.coordinates, robot.home, strict=True))
    while seen < 25:
        x, y, theta = rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.7), rng.uniform(-2, 2)
        if name == "3rrr":
            feet = np.array([(-0.15, -0.84), (0.69, -0.17), (-0.66, 0.21)])
            turn = theta + np.radians([30, 150, 270])
            ends = np.array([x, y]) - 0.1732 * np.c_[np.cos(turn), np.sin(turn)]
            pose = {"x": x, "y": y, "theta": theta}
        else:
            feet, ends, pose = np.array([(-0.12, 0.0), (0.12, 0.0)]), np.full((2, 2), (x, y)), {"x": x, "y": y}
        reach = np.linalg.norm(ends - feet, axis=1)
        if reach.max() > 0.99 * sum(lengths) or reach.min() < 1.1 * abs(lengths[0] - lengths[1]):
            continue
        seen += 1
        there = dict(zip(robot.coordinates, robot.assemble(pose), strict=True))
        for leg, foot, end in zip(legs, feet, ends, strict=True):
            wanted = elbow(foot, end, *lengths, np.sign(np.sin(start[f"{leg}.2"])))
            assert abs(np.sin((there[f"{leg}.2"] - wanted) / 2)) < 1e-7, pose  # 1e-10 of a length near a straight leg


def test_random_poses_of_the_delta_have_the_arms_of_the_closed_form():
    robot, rng, seen = parflex.load("delta"), np.random.default_rng(4), 0
    while seen < 30:
        place = np.array([rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), rng.uniform(-0.65, -0.3)])
        arms = []
        for gamma in (0.0, 2 * np.pi / 3, -2 * np.pi / 3):
            c, s = np.cos(gamma), np.sin(gamma)
            out, side, up = c * place[0] + s * place[1] + 0.05 - 0.2, c * place[1] - s * place[0], place[2]
            radius, rest = np.hypot(out, up), 0.5**2 - side**2
            cosine = (radius**2 + 0.25**2 - rest) / (2 * 0.25 * radius)
            arms.append(np.arctan2(up, out) + np.arccos(cosine) if abs(cosine) < 0.98 else np.nan)
        if np.isnan(arms).any():
            continue
        seen += 1
        q = dict(zip(robot.coordinates, robot.assemble(dict(zip("xyz", place, strict=True))), strict=True))
        result = np.array([q[f"leg{k}.arm"] for k in (1, 2, 3)])
        assert np.abs(np.sin((result - arms) / 2)).max() < 1e-7, place  # closed to 1e-10, conditions below 1000


def test_starts_of_motors_weigh_more_than_starts_of_passive_joints(tmp_path):
    text = robot_file("hexaglide").read_text().replace('start = "rx"', "start = 0.45")
    robot = parflex.load(write_robot(tmp_path, text))
    slides = dict(zip(robot.coordinates, robot.home, strict=True))
    assert slides["l6.slide"] == pytest.approx(0.369, abs=1e-3)
    assert all(slides[f"l{k}.slide"] > 0 for k in range(1, 7))
    assert not robot.start_warnings()
    far = write_robot(tmp_path, text.replace("start = 0.45", "start = 2.5"))  # rods reach no slide there
    assert "joint 'l1.slide' is assembled at" in parflex.load(far).start_warnings()[0].text


@pytest.mark.parametrize("name", ["3rrr", pytest.param("4rrr", marks=pytest.mark.verify)])
def test_modes_whose_signs_are_not_those_of_the_starts_give_no_warning(name):
    for mode in parflex.load(name).description.working_modes:
        robot = parflex.load(name, working_mode=mode)
        assert robot.start_warnings() == [], mode
        assert not any("limit" in text for text in parflex.inverse_dynamics(robot).warnings), mode


def test_angles_stand_in_the_turn_of_their_limits():
    for limits, wanted in (([-3.0, 3.0], None), ([3.5, 9.0], 2 * np.pi), ([-9.0, -4.0], -2 * np.pi)):
        robot = parflex.load("3rrr", settings={"legs.frame.2.limits": limits})
        pose = {"x": 0.05, "y": 0.02, "theta": 0.1}
        plain, turned = parflex.load("3rrr").assemble(pose), robot.assemble(pose)
        index = robot.coordinates.index("leg1.2")
        assert turned[index] - plain[index] == pytest.approx(wanted or 0.0, abs=1e-9)
    given = robot.assemble({"leg1.2": float(plain[index]), "x": 0.05, "y": 0.02})
    assert given[index] == plain[index]  # as the user says


# positions m1, m2, wheel, arm, fore by hand: wheel = 0.2 m1 + 0.3, arm = -0.5 wheel, fore = 0.1 m2 - arm + 0.9
POSES = {
    ("m1",): ([2.0], [2.0, 0.0, 0.7, -0.35, 1.25]),
    ("m2",): ([2.0], [0.0, 2.0, 0.3, -0.15, 1.25]),
    ("arm",): ([-0.4], [2.5, 0.0, 0.8, -0.4, 1.3]),
    ("arm", "fore"): ([-0.4, 1.5], [2.5, 2.0, 0.8, -0.4, 1.5]),
    ("m1", "arm"): ([2.0, -0.4], [2.0, 0.0, 0.7, -0.4, 1.3]),  # the second is stretched, the third rests
    ("wheel", "arm", "fore"): ([0.7, -0.4, 1.5], [2.0, 2.0, 0.7, -0.4, 1.5]),
}


@pytest.fixture(scope="module")
def chain():
    return load_robot("chain-of-gears")


@pytest.mark.parametrize("names", POSES, ids="-".join)
def test_joints_follow_couplings_at_rest_alone_and_among_others(chain, names):
    given, wanted = POSES[names]
    solver = pose_solver(chain, names, given)
    assert solver.fast
    assert solver(np.array([given])).q[0] == pytest.approx(wanted, abs=1e-12)
    assert chain.assemble(dict(zip(names, given, strict=True))) == pytest.approx(wanted, abs=1e-12)


def test_a_pose_that_leaves_open_which_motor_moves_is_the_nearest_one_alone_and_among_others(chain):
    solver = pose_solver(chain, ["fore"], [1.2])
    found = solver(np.array([[1.2], [0.8]]))
    assert not solver.fast
    for q, fore in zip(found.q, (1.2, 0.8), strict=True):
        assert q == pytest.approx(chain.assemble({"fore": fore}), abs=1e-9)
        assert q[4] == pytest.approx(0.1 * q[1] - q[3] + 0.9, abs=1e-12) and q[0] != 0.0 and q[1] != 0.0


def test_slopes_of_a_pose_that_stretches_a_coupling_hold_the_others(chain):
    """The second coupling is stretched: its rest moves the arm, and the third, at rest, moves nothing of the hand."""
    pose = {"m1": 2.0, "arm": -0.4}
    found = parflex.sensitivities(chain, "deflection:y", ["coupling.first.offset"], pose)
    step = 1e-5
    moved = [load_robot("chain-of-gears", settings={"coupling.first.offset": 0.3 + s}) for s in (step, -step)]
    ends = [parflex.deflection(robot, pose).frames["hand"][1] for robot in moved]
    assert found.matrices.ravel() == pytest.approx([(ends[0] - ends[1]) / (2 * step)], rel=1e-6)  # of differences


def test_poses_about_their_equilibrium_give_no_advice(recwarn):
    """A gear that is wound up by 0.5 rad is at rest by 0.5 rad from where the pose has it."""
    robot = load_robot("geared-pendulum")
    for count in (1, 8):  # alone and together
        found = parflex.many_responses(robot, ["motor", "arm"], [[0.0, 0.5]] * count, ["deflection:rz"])
        assert found["deflection:rz"] == pytest.approx([-0.5 - 2.0 * 9.81 * 0.3 / 800] * count, rel=1e-4)  # cos 0
    assert not [warning for warning in recwarn if "about='equilibrium'" in str(warning.message)]


@pytest.mark.parametrize("name", ["arm", "motor"])
@pytest.mark.parametrize("designs", [None, {"frame.arm.inertia.mass": [2.0] * 6}], ids=["plain", "designs"])
def test_an_arm_on_an_elastic_gear_sags_as_one_line_says(name, designs):
    robot = load_robot("geared-pendulum")
    arm = np.array([-2.5, -1.0, 0.0, 0.7, 1.5, 2.5])
    poses = (arm if name == "arm" else arm / 0.02)[:, None]
    inertia = 0.05 + 2.0 * 0.3**2
    load = 2.0 * 9.81 * 0.3
    plain = parflex.many_responses(robot, [name], poses, ["frequency:1", "deflection:rz"], designs=designs)
    assert plain["frequency:1"] == pytest.approx(np.sqrt(800 / inertia) / (2 * np.pi), rel=1e-9)
    assert plain["deflection:rz"] == pytest.approx(-load * np.cos(arm) / 800, rel=1e-9, abs=1e-15)
    about = {"about": "equilibrium", "designs": designs}
    resting = parflex.many_responses(robot, [name], poses, ["frequency:1", "deflection:rz"], **about)
    sag = [brentq(lambda d, a=a: 800 * d + load * np.cos(a + d), -0.1, 0.1, xtol=1e-15) for a in arm]
    stiffness = 800 - load * np.sin(arm + sag)
    assert resting["deflection:rz"] == pytest.approx(sag, rel=1e-8, abs=1e-12)  # Newton's method ends at 1e-10
    assert resting["frequency:1"] == pytest.approx(np.sqrt(stiffness / inertia) / (2 * np.pi), rel=1e-8)


def test_a_column_beyond_its_buckling_load_is_refused_however_slowly_it_would_leave():
    """Below it the closed form of a massless column with a head; above, there is no stable equilibrium."""
    robot, length, bending, head = load_robot("column-with-head"), 0.8, 210e9 * 0.03 * 0.004**3 / 12, 3.0
    critical = np.pi**2 * bending / 4 / length**2
    load = 0.9 * critical
    below = parflex.natural_frequencies(robot, modes=1, wrench={"head": [0, -load, 0]})
    k = np.sqrt(load / bending)
    expected = np.sqrt(load * k / (np.tan(k * length) - k * length) / head) / (2 * np.pi)
    assert below.frequencies[0] == pytest.approx(
        expected, rel=1e-3
    )  # elements miss 1e-4 of the buckling load, times 10
    above = {"head": [0, -1.002 * critical, 0]}
    with pytest.raises(parflex.SingularError, match=r"at 99\.\d % of them 'bar.*' becomes unstable"):
        parflex.natural_frequencies(robot, modes=1, wrench=above)
    rows = parflex.many_frequencies(robot, ["foot"], [[np.pi / 2]] * 2, modes=1, wrench=above)
    assert rows.status.all() and all("becomes unstable" in reason for reason in rows.reasons)


def test_rows_with_a_single_growing_motion_are_not_stable():
    """An arm upright on a spring that does not hold it; hanging, it swings as the closed form says."""
    robot, upright = load_robot("arm-above-motor"), {"motor": np.pi / 2}
    rows, stiffness = [[np.pi / 2], [-np.pi / 2]], 15.0 + 2.0 * 9.81
    for designs in (None, {"constants.stiffness": [15.0, 15.0]}):
        with pytest.warns(parflex.ParflexWarning, match="1 of 2 poses"):
            result = parflex.many_frequencies(robot, ["motor"], rows, modes=1, about="equilibrium", designs=designs)
        assert "unstable" in result.reasons[0] and result.reasons[1] == "" and np.isnan(result.frequencies[0, 0])
        assert result.frequencies[1, 0] == pytest.approx(np.sqrt(stiffness / 2.1) / (2 * np.pi), rel=1e-9)
    with pytest.raises(parflex.SingularError, match="unstable"):
        parflex.natural_frequencies(robot, upright, 1, about="equilibrium")
    for ask in (parflex.equilibrium, parflex.natural_frequencies, parflex.deflection):
        words = {} if ask is parflex.equilibrium else {"about": "equilibrium"}
        with pytest.warns(parflex.ParflexWarning, match="equilibrium is (not stable|unstable)"):
            ask(robot, upright, **words)
        with warnings.catch_warnings():
            warnings.simplefilter("error", parflex.ParflexWarning)
            ask(robot, {"motor": -np.pi / 2}, **words)  # hanging, it stays
