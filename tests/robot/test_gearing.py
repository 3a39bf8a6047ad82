"""Robots behind gears: base parameters, condition numbers and distances do not depend on ratios; records of arms."""

import numpy as np
import pytest
from support.geared_arm import GEAR, recorded
from support.robots import load_robot, write_robot

import parflex
from parflex.identification.excitation_limits import read_motion_limits
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import base_columns, random_motion
from parflex.identification.unknowns import unknowns

FEET, LENGTHS, HOME = ((-0.2, 0.0), (0.25, 0.05)), ((0.35, 0.5), (0.4, 0.45)), (1.6, 1.3)
GRAVITY = np.array([0.0, -9.81])


def elbows(shoulders):
    """Angles of the outer links of a five-bar, from the circles of its two knees; end above them."""
    knees = [np.array(f) + a[0] * way(s) for f, a, s in zip(FEET, LENGTHS, shoulders, strict=True)]
    apart = knees[1] - knees[0]
    d, (r1, r2) = np.linalg.norm(apart), (a[1] for a in LENGTHS)
    along = (d**2 + r1**2 - r2**2) / (2 * d)
    end = knees[0] + along * apart / d + np.sqrt(r1**2 - along**2) * turned(apart / d)
    return [np.arctan2(*(end - k)[::-1]) - s for k, s in zip(knees, shoulders, strict=True)]


def way(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def turned(v):
    return np.array([-v[1], v[0]])


def five_bar(gears, chains=2, back=False, limits=""):
    """A five-bar, or its first two links alone; `gears`: how far motors turn while their links turn by a radian."""
    parts, home = ["format = 1", 'name = "geared"', 'motion = "planar"', "gravity = [0, -9.81, 0]"], elbows(HOME)
    parts.append('end_effector = "end0"')
    frame = '[[frame]]\nname = "{}"\nparent = "{}"\njoint = "revolute"\nplace = {{ position = {} }}\nstart = {}'
    inertia = "inertia = { M = 1.5, ZZ = 0.03, MX = 0.2, MY = 0.05 }"
    motors = [f"s{n}" if gears[n] is None else f"m{n}" for n in range(chains)] + [f"e{n}" for n in range(2 - chains)]
    for n in range(chains):
        foot, (inner, _) = [*FEET[n], 0], LENGTHS[n]
        for name, parent, place, start in (
            *([] if gears[n] is None else [(f"m{n}", "base", foot, 0.0)]),
            (f"s{n}", "base", foot, HOME[n]), (f"e{n}", f"s{n}", [inner, 0, 0], float(home[n])),
        ):  # fmt: skip
            parts.append(frame.format(name, parent, list(place), start))
            parts.append(inertia if name[0] != "m" else "motor_inertia = 0.001")
            parts.append(f"actuated = true{limits}" if name in motors else "")
    parts += [f'[[point]]\nname = "end{n}"\nframe = "e{n}"\nposition = [{LENGTHS[n][1]}, 0, 0]' for n in range(chains)]
    if chains == 2:
        parts.append('[[closure]]\nbetween = ["end0", "end1"]\njoint = "revolute"')
    for n, gear in enumerate(gears[:chains]):
        if gear is not None:
            one, other, ratio, offset = (f"s{n}", f"m{n}", 1 / gear, HOME[n])
            if back:
                one, other, ratio, offset = other, one, gear, -gear * HOME[n]
            text = '[[coupling]]\nname = "gear{}"\njoint = "{}"\nterms = {{ {} = {} }}\noffset = {}'
            parts.append(text.format(n, one, other, ratio, offset))
    return "\n".join(parts), motors


def own_rows(gears, chains, motors, names, count, rng):
    """Efforts of the motors per unit of all parameters, written by hand, at states spread over 0.4 rad."""
    rows = []
    for _ in range(count):
        shoulders = HOME[:chains] + rng.uniform(-0.4, 0.4, chains)
        outer = elbows(shoulders) if chains == 2 else [elbows(HOME)[0] + rng.uniform(-0.4, 0.4)]
        # rates of s and e of all chains per independent one: of shoulders, or of shoulder and elbow
        J = np.eye(2) if chains == 1 else np.zeros((4, 2))
        angles = [(s, s + e) for s, e in zip(shoulders, outer, strict=True)]
        v, a = rng.uniform(-2, 2, 2), rng.uniform(-6, 6, 2)
        bias = np.zeros(2 * chains)
        if chains == 2:
            J[0, 0] = J[2, 1] = 1.0
            both = zip(angles, LENGTHS, strict=True)
            sides = [(l1 * turned(way(p)), l2 * turned(way(t))) for (p, t), (l1, l2) in both]
            # end0 = end1: columns per shoulder and per elbow
            by_s = np.column_stack([sides[0][0] + sides[0][1], -(sides[1][0] + sides[1][1])])
            by_e = np.column_stack([sides[0][1], -sides[1][1]])
            J[[1, 3]] = -np.linalg.solve(by_e, by_s)
            w = J @ v
            squares = [(w[2 * n] ** 2, (w[2 * n] + w[2 * n + 1]) ** 2) for n in range(len(sides))]
            pull = [turned(x) * a + turned(y) * b for (x, y), (a, b) in zip(sides, squares, strict=True)]
            bias[[1, 3]] = -np.linalg.solve(by_e, pull[0] - pull[1])
        w, acc = J @ v, J @ a + bias
        W = np.zeros((2, len(names)))
        for n in range(chains):
            rate = [w[2 * n], w[2 * n] + w[2 * n + 1]]
            change = [acc[2 * n], acc[2 * n] + acc[2 * n + 1]]
            arm = LENGTHS[n][0] * way(angles[n][0])
            place = [np.zeros(2), turned(arm) * change[0] - arm * rate[0] ** 2]
            turns = [J[2 * n], J[2 * n] + J[2 * n + 1]]
            moves = [np.zeros((2, 2)), np.outer(turned(arm), turns[0])]
            for k, link in enumerate((f"s{n}", f"e{n}")):
                lift = place[k] - GRAVITY
                W[:, names.index(f"ZZ[{link}]")] = change[k] * turns[k]
                W[:, names.index(f"M[{link}]")] = lift @ moves[k]
                for symbol, e in (("MX", way(angles[n][k])), ("MY", turned(way(angles[n][k])))):
                    spin = turned(e) * change[k] - e * rate[k] ** 2
                    W[:, names.index(f"{symbol}[{link}]")] = turns[k] * (turned(e) @ lift) + spin @ moves[k]
            if gears[n] is not None:  # a rotor about a fixed axis
                turn, angle = gears[n] * J[2 * n], gears[n] * (shoulders[n] - HOME[n])
                W[:, names.index(f"ZZ[m{n}]")] = W[:, names.index(f"IA[m{n}]")] = gears[n] * acc[2 * n] * turn
                W[:, names.index(f"MX[m{n}]")] = -turn * (turned(way(angle)) @ GRAVITY)
                W[:, names.index(f"MY[m{n}]")] = turn * (way(angle) @ GRAVITY)
        places = [(m, 2 * int(m[1])) for m in motors]
        by_motor = [gears[k // 2] * J[k] if m[0] == "m" else J["se".index(m[0]) + k] for m, k in places]
        rows.append(np.linalg.solve(np.transpose(by_motor), W))
    return np.concatenate(rows)


CASES = [
    ((50.0, None), 1, False), ((0.01, None), 1, True), ((-1000.0, None), 1, True), ((100.0, -30.0), 2, False),
    ((-0.01, 1000.0), 2, True), ((200.0, None), 2, False), ((1.7, -1.3), 2, False),
]  # fmt: skip


@pytest.mark.few
@pytest.mark.parametrize(("gears", "chains", "back"), CASES)
def test_base_parameters_behind_gears_are_those_of_equations_by_hand(tmp_path, gears, chains, back):
    text, motors = five_bar(gears, chains, back)
    robot = parflex.load(write_robot(tmp_path, text))
    every = unknowns(robot, "none")
    base = base_columns(Regressor(robot, every, "none"))
    names = [one.name for one in every]
    assert robot.motors == motors
    W = own_rows(gears, chains, motors, names, 40, np.random.default_rng(3))
    # each row and each column at its own size: neither gears nor units decide on the rank
    W = (W.reshape(40, 2, -1) / np.sqrt((W.reshape(40, 2, -1) ** 2).mean(axis=(0, 2)))[:, None]).reshape(80, -1)
    size = np.linalg.norm(W, axis=0)
    told = size > 1e-12 * size.max()
    values = np.linalg.svd(W[:, told] / size[told], compute_uv=False)
    rank = int(np.sum(values > 1e-7))
    assert values[rank - 1] > 100 * (values[rank] if rank < len(values) else 0)  # the gap is no matter of a bound
    assert len(base.kept) == rank
    # all columns are the kept ones times their groups, but for rounding and shares below SHARE
    left = (W - W[:, base.kept] @ base.groups) / np.where(told, size, 1.0)
    assert np.abs(left).max() < 1e-5


@pytest.mark.parametrize("gear", [None, 0.01, 1000.0])
def test_random_poses_turn_links_by_as_much_behind_any_gear(gear, tmp_path):
    text, _ = five_bar((gear, None), 1)
    robot = parflex.load(write_robot(tmp_path, text))
    motion = random_motion(Regressor(robot, unknowns(robot, "none"), "none"), 30, seed=1)
    turned_by = np.ptp(motion.q[:, robot.coordinates.index("s0")])
    assert 0.2 < turned_by <= 0.3  # of 0.15 rad both ways


def posed(robot, gears, ways):
    """Positions of the motors at which shoulders are so far from home."""
    home = np.array([0.0 if gear is not None else angle for gear, angle in zip(gears, HOME, strict=True)])
    places = home + [w * (g or 1.0) for w, g in zip(ways, gears, strict=True)]
    return dict(zip(robot.motors, places, strict=True))


GEARED = [(100.0, -30.0), (0.01, -1000.0), (1.0, None), (-200.0, 0.3)]
WAYS = [(0.0, 0.0), (0.4, -0.4), (0.6, -0.52)]  # the last of them near to where the outer links stretch


@pytest.mark.few
@pytest.mark.parametrize("gears", GEARED)
def test_condition_numbers_do_not_depend_on_gears(tmp_path, gears):
    plain, robot = (parflex.load(write_robot(tmp_path, five_bar(one, 2)[0])) for one in ((None, None), gears))
    for ways in WAYS:
        posed_robots = (
            (one, one.assemble(posed(one, own, ways))) for one, own in ((plain, (None, None)), (robot, gears))
        )
        wanted, found = (parflex.Configuration(one, q).condition for one, q in posed_robots)
        numbers = [[one.platform, one.closures, *one.legs.values()] for one in (wanted, found)]
        assert numbers[1] == pytest.approx(numbers[0], rel=1e-9)  # poses close to 1e-11
    asked = ["conditioning", "singularity"]
    maps = []
    for one, own in ((plain, (None, None)), (robot, gears)):
        rows = np.array([list(posed(one, own, ways).values()) for ways in WAYS])
        maps.append(parflex.many_responses(one, one.motors, rows, asked))
    for name in asked:
        assert maps[1][name] == pytest.approx(maps[0][name], rel=1e-9)
    assert found.platform == pytest.approx(maps[1]["conditioning"][2]) and found.platform > 2 * numbers_at_home(robot)


def numbers_at_home(robot):
    return parflex.Configuration(robot, robot.home).condition.platform


@pytest.mark.few
@pytest.mark.parametrize("gears", GEARED)
def test_distances_of_exciting_motions_do_not_depend_on_gears(tmp_path, gears):
    found = []
    for own in ((None, None), gears):
        robot = parflex.load(write_robot(tmp_path, five_bar(own, 2)[0]))
        regressor = Regressor(robot, unknowns(robot, "none"), "none")
        limits = read_motion_limits(regressor, 0.5, None, None, None, 0.3)
        poses = [list(posed(robot, own, ways).values()) for ways in WAYS]
        moving = regressor.moving(np.array(poses), *np.zeros((2, 3, 2)))
        efforts, place = np.zeros((3, 2)), np.zeros((3, 3))
        judged = limits.judged(regressor, moving, efforts, place)
        reach = [(one["limits"][1] - one["limits"][0]) / 2 for one in judged["position"].values()]
        found.append([judged["distance"]["lowest"], *(r / abs(g or 1) for r, g in zip(reach, own, strict=True))])
    assert found[1] == pytest.approx(found[0], rel=1e-9) and found[0][0] < 0.5


@pytest.mark.parametrize("response", ["conditioning", "singularity"])
def test_slopes_by_a_ratio_are_those_of_the_angle_that_it_turns(tmp_path, response):
    gears, ways, key = (100.0, -30.0), (0.4, -0.4), "frame.e0.place.position.0"
    plain, robot = (parflex.load(write_robot(tmp_path, five_bar(one, 2)[0])) for one in ((None, None), gears))
    ratio = "coupling.gear0.terms.m0"
    found = parflex.sensitivities(robot, response, [key, ratio], posed(robot, gears, ways)).sensitivities
    wanted = parflex.sensitivities(plain, response, [key], posed(plain, (None, None), ways)).sensitivities
    assert found[key]["derivative"] == pytest.approx(wanted[key]["derivative"], rel=1e-8)
    beside = np.array([[HOME[0] + 0.4 + step, HOME[1] - 0.4] for step in (-1e-5, 1e-5)])
    low, high = parflex.many_responses(plain, plain.motors, beside, [response])[response]
    # the motor is at 40 rad; differences are as good as the square of their step
    assert found[ratio]["derivative"] == pytest.approx(40 * (high - low) / 2e-5, rel=1e-6)


@pytest.mark.verify
@pytest.mark.parametrize("gears", GEARED)
def test_maps_reach_what_they_reach_without_gears(tmp_path, gears):
    """Steps of positions were short beside the turns of a motor: four of five poses by x and y were lost."""
    plain, robot = (parflex.load(write_robot(tmp_path, five_bar(one, 2)[0])) for one in ((None, None), gears))
    x, y = np.meshgrid(np.linspace(-0.3, 0.4, 5), np.linspace(0.35, 0.75, 4))
    rows = np.column_stack([x.ravel(), y.ravel()])
    wanted, found = (parflex.many_responses(one, ["x", "y"], rows, ["conditioning"]) for one in (plain, robot))
    assert (wanted.status == 0).sum() > 10
    assert found.status.tolist() == wanted.status.tolist()
    good = wanted.status == 0
    assert found["conditioning"][good] == pytest.approx(wanted["conditioning"][good], rel=1e-8)  # poses close to 1e-11


@pytest.fixture
def arm():
    return lambda gear=GEAR: load_robot("arm-behind-gear", settings={"coupling.gear.terms.motor": gear})


@pytest.mark.few("4.0", "0.0205")
@pytest.mark.parametrize(("off", "gear"), [(4.0, GEAR), (-12.0, GEAR), (0.0, 0.0205)])
def test_another_zero_or_ratio_of_a_gear_leaves_residuals_above_noise(arm, off, gear):
    record = recorded()
    assert not parflex.identify(arm(), record).warnings
    warnings = parflex.identify(arm(gear), record | {"q.motor": record["q.motor"] + off}).warnings
    assert any("residuals are above the noise level" in text and "'elbow'" in text for text in warnings)


def test_efforts_with_bursts_of_outliers_are_reported_as_above_the_noise(arm):
    record, rng = recorded(), np.random.default_rng(1)
    for name in ("effort.motor", "effort.elbow"):
        record[name] = record[name].copy()
        for start in rng.integers(200, 2700, 8):
            record[name][start : start + 30] += 4 * record[name].std() * rng.choice([-1, 1])
    warnings = parflex.identify(arm(), record).warnings
    for motor in ("motor", "elbow"):
        assert any("above the noise level" in text and f"'{motor}':" in text for text in warnings)
