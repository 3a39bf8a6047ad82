"""Calibrations of robots whose numbers are known: recovery, coverage of intervals, plans, error budgets."""

import re

import numpy as np
import pytest
from support.calibrations import BENCHES, Bench
from support.command_line import answered, refused

import parflex
from parflex.parameters.design_numbers import number_at

REFITS = 200
# 200 x 4 numbers, correlated: the share of a right interval is within 2 % of 95 % but for one seed in twenty
COVERAGE = (0.93, 0.97)
SLOW = "gough-stewart-beams"  # a minute for each fit
ALL = [pytest.param(name, marks=[pytest.mark.verify] if name == SLOW else []) for name in BENCHES]


@pytest.mark.parametrize("name", ALL)
def test_exact_data_give_the_numbers_back(name):
    bench = BENCHES[name]
    found = bench.fit(bench.data())
    for key, value in bench.truth().items():
        assert found.parameters[key].value == pytest.approx(value, abs=1e-10, rel=1e-10), key
    assert found.rms_after < 1e-12 < found.rms_before
    assert not found.undetermined


@pytest.mark.verify
@pytest.mark.parametrize("name", [name for name in BENCHES if name != SLOW])
def test_intervals_hold_the_true_numbers(name, figure):
    bench = BENCHES[name]
    data, truth = bench.data(), bench.truth()
    rng, hits = np.random.default_rng(7), []
    for _ in range(REFITS):
        noisy = {
            key: values + bench.measured.get(key, 0.0) * rng.standard_normal(len(values))
            for key, values in data.items()
        }
        found = bench.fit(noisy)
        hits += [low <= truth[key] <= high for key, (low, high) in found.intervals.items()]
    figure(f"share of 95 % intervals of {name} that hold", float(np.mean(hits)))
    assert COVERAGE[0] <= np.mean(hits) <= COVERAGE[1]


def test_angles_alone_do_not_determine_the_scale():
    bench = BENCHES["3rrr"]
    keys = ["constants.proximal", "constants.distal", "constants.arm"]
    keys += [f"legs.base_{axis}.{leg}" for axis in "xy" for leg in range(3)]
    found = parflex.calibrate(bench.robot(), bench.data(), keys, columns=bench.columns())
    assert len(found.undetermined) == 3  # the scale, and the place of the whole robot
    null = np.array([[item.get(key, 0.0) for key in keys] for item in found.undetermined])
    scale = np.array([item.value for item in found.parameters.values()])
    left = scale - null.T @ np.linalg.lstsq(null.T, scale, rcond=None)[0]
    assert np.linalg.norm(left) < 1e-6 * np.linalg.norm(scale)
    assert not any(found.parameters[key].determined for key in keys[:3])
    note = next(note for note in found.diagnostics if note.code == "undetermined-parameters")
    assert "constants.arm" in note.text or "legs.base" in note.text


def test_unknown_measuring_frames_and_points_are_found():
    bench = BENCHES["hexaglide"]
    data, truth = bench.data(), bench.truth()
    P = np.array([data[f"platform.{axis}"] for axis in "xyz"])
    c, s = np.cos(0.4), np.sin(0.4)
    R, t, anchor = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.array([1.0, -2.0, 0.3]), np.array([0.5, 0.2, -1.0])
    for axis, row in zip("XYZ", R.T @ (P - t[:, None]), strict=True):
        data[axis] = row
    data["length"] = np.linalg.norm(P - anchor[:, None], axis=0)
    columns = {
        "motors": {motor: motor for motor in bench.robot().motors},
        "pose": [{"x": "X", "y": "Y", "z": "Z", "base": "tracker", "deviation": 1e-5},
                 {"rx": "platform.rx", "ry": "platform.ry", "rz": "platform.rz", "rotation_deviation": 1e-5}],
        "distance": [{"between": ["platform", "anchor"], "length": "length", "deviation": 1e-5}],
        "bases": {"tracker": {"fit": True}},
        "points": {"anchor": {"x": 0.45, "y": 0.25, "z": -0.9, "fit": True}},
    }  # fmt: skip
    found = parflex.calibrate(bench.robot(), data, list(truth), columns=columns)
    for key, value in truth.items():
        assert found.parameters[key].value == pytest.approx(value, abs=1e-9), key
    places = {f"tracker.{axis}": value for axis, value in zip("xyz", t, strict=True)} | {"tracker.rz": 0.4}
    places |= {f"anchor.{axis}": value for axis, value in zip("xyz", anchor, strict=True)}
    for name, value in places.items():
        assert found.parameters[name].value == pytest.approx(value, abs=1e-8), name


def test_readings_with_noise_place_the_poses_of_redundant_motors():
    bench = Bench("4rrr", {"constants.base": 3e-4}, {"x": (-0.08, 0.08), "y": (-0.08, 0.08), "theta": (-0.2, 0.2)},
                  {"platform.x": 1e-5, "platform.y": 1e-5}, {"leg1.1": 1e-3})  # fmt: skip
    data, columns = bench.data(), bench.columns()
    with pytest.raises(parflex.UnreachableError, match="redundant motors a deviation"):
        bench.fit(data)
    columns["motors"] = {motor: {"column": motor, "deviation": 1e-5} for motor in bench.robot().motors}
    data["leg2.1"][3] = np.nan  # one that was not read
    found = parflex.calibrate(bench.robot(), data, list(bench.truth()), columns=columns)
    assert found.values == pytest.approx(list(bench.truth().values()), abs=1e-10)


def test_outliers_count_less_by_the_loss_of_huber_and_priors_hold_what_is_not_measured(tmp_path):
    bench = BENCHES["5r"]
    data, truth = bench.data(), bench.truth()
    rng = np.random.default_rng(3)
    noisy = data | {key: data[key] + 2e-5 * rng.standard_normal(len(data[key])) for key in ("tip.x", "tip.y")}
    noisy["tip.x"][4] += 5e-3
    keys = list(truth)
    errors = {}
    for loss in ("linear", "huber"):
        found = parflex.calibrate(bench.robot(), noisy, keys, columns=bench.columns(), loss=loss)
        errors[loss] = max(abs(found.parameters[key].value - truth[key]) for key in keys)
    assert errors["huber"] < 0.2 * errors["linear"]
    prior = {keys[0]: 1e-9}
    tight = parflex.calibrate(bench.robot(), data, keys, columns=bench.columns(), tolerances=prior)
    assert tight.parameters[keys[0]].value == pytest.approx(0.3, abs=1e-7)
    tight.to_file(tmp_path / "mine.toml")
    program = parflex.model(parflex.load(tmp_path / "mine.toml"), "inverse", coordinates="platform")
    literals = np.array(re.findall(r"\d+\.\d+", "".join(program.files("c").values())), dtype=float)
    for key in bench.changes:  # generated C has the calibrated numbers
        assert np.abs(literals - tight.parameters[key].value).min() < 1e-14


@pytest.mark.verify
def test_the_fmu_of_a_calibrated_file_moves_as_the_true_robot(tmp_path):
    fmpy = pytest.importorskip("fmpy")
    bench = BENCHES["5r"]
    bench.fit(bench.data()).to_file(tmp_path / "mine.toml")
    pose = {"tip.x": 0.0, "tip.y": 0.5}
    parflex.export_fmu(parflex.load(tmp_path / "mine.toml"), tmp_path / "mine.fmu", pose=pose)
    efforts, columns = {"left.1": 0.3, "right.1": -0.1}, ["tip.x", "tip.y"]
    words = {"start_values": {f"effort.{motor}": effort for motor, effort in efforts.items()}, "output": columns}
    rows = fmpy.simulate_fmu(str(tmp_path / "mine.fmu"), stop_time=0.1, **words)
    for settings, agree in ((bench.changed(), True), ({}, False)):
        run = parflex.simulate(bench.load(settings), time=0.1, pose=pose, effort=efforts, step=5e-4, out_step=5e-4)
        # numbers of exact data are right to 1e-10, and wrong ones by 1e-4
        misses = [np.abs(rows[name] - run[name]).max() for name in columns]
        assert (max(misses) < 1e-8) == agree, misses


def test_planned_poses_determine_more_than_random_ones_and_deviations_are_those_of_fits(tmp_path, capsys):
    bench = BENCHES["5r"]
    over = [("tip.x", -0.15, 0.15, 7), ("tip.y", 0.35, 0.62, 6)]
    keys = list(bench.truth())
    plan = parflex.plan_calibration(bench.robot(), keys, 6, columns=bench.columns(), over=over)
    robot = bench.robot()

    def deviations(poses):
        data = {motor: np.array([pose[motor] for pose in poses]) for motor in robot.motors}
        places = [parflex.frames(robot, pose)["tip"].position for pose in poses]
        data |= {"tip.x": np.array(places)[:, 0], "tip.y": np.array(places)[:, 1]}
        found = parflex.calibrate(robot, data, keys, columns=bench.columns())
        return np.array([item.deviation for item in found.parameters.values()]), np.linalg.slogdet(found.covariance)[1]

    planned, size = deviations(plan.poses)
    assert planned == pytest.approx(list(plan.deviations.values()), rel=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(5):
        points = [{"tip.x": rng.uniform(-0.15, 0.15), "tip.y": rng.uniform(0.35, 0.6)} for _ in range(6)]
        q = [dict(zip(robot.coordinates, parflex.configure(robot, point).q, strict=True)) for point in points]
        assert deviations([{motor: row[motor] for motor in robot.motors} for row in q])[1] > size
    (tmp_path / "map.toml").write_text(
        '[motors]\n"left.1" = "a"\n"right.1" = "b"\n[[pose]]\nframe = "tip"\nx = "x"\ny = "y"\ndeviation = 1e-5\n'
    )
    words = ["calibrate", "5r", "--columns", str(tmp_path / "map.toml"), "--vary", "constants.proximal", "--plan", "3"]
    answer = answered(capsys, *words, "--over", "tip.x=-0.1:0.1:5,tip.y=0.4:0.6:5", "--out", str(tmp_path / "plan.csv"))
    assert len(answer["poses"]) == 3 and (tmp_path / "plan.csv").read_text().startswith("left.1,right.1\n")
    assert "no limits" in refused(capsys, *words)["message"]


def test_an_error_budget_is_the_change_of_the_pose_at_fixed_motors(capsys, tmp_path):
    robot, deviations = parflex.load("gough-stewart"), {"constants.radius": 1e-4, "legs.base_x.1": 2e-4}
    found = parflex.tolerance(robot, deviations)
    here = parflex.configure(robot)
    motors = {motor: float(here.q[robot.coordinates.index(motor)]) for motor in robot.motors}
    for key, deviation in deviations.items():
        values = [number_at(robot, key) + side * 1e-2 * deviation for side in (1, -1)]
        changed = [parflex.load("gough-stewart", settings={key: value}) for value in values]
        ends = [parflex.frames(one, motors)["platform"].position for one in changed]
        slope = (ends[0] - ends[1]) / 2e-2
        assert [found.contributions[key][axis] for axis in "xyz"] == pytest.approx(slope, abs=1e-9)
    assert found.total["position"] ** 2 == pytest.approx(
        sum(one["position"] ** 2 for one in found.contributions.values())
    )
    assert sum(one["share"] for one in found.contributions.values()) == pytest.approx(1.0)
    # a thousand robots: the root of the mean square is known to 3 %, and the budget is linear to more than that
    assert found.monte_carlo["position"] == pytest.approx(found.total["position"], rel=0.1)
    words = ["tolerance", "linear-delta", "--keys", "constants.radius=1e-4"]
    figure = tmp_path / "budget.svg"
    answer = answered(capsys, *words, "--map", "x=-0.1:0.1:3,y=-0.1:0.1:3", "--figure", str(figure))
    assert len(answer["poses"]) == 9 and figure.exists()
    assert "positive" in refused(capsys, *words[:3], "constants.radius=-1")["message"]
