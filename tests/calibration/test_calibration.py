"""Calibration of geometry: exact data, derivatives, undetermined combinations, real touches, bad tables."""

import os
from pathlib import Path

import numpy as np
import pytest
from support.command_line import answered, refused
from support.oracles import linear_delta

import parflex
from parflex.calibration.measurements import MapReader
from parflex.calibration.problem import CalibrationProblem

DATA = Path(os.environ.get("PARFLEX_DATA", "/none")) / "delta-probe"
TOUCHES = pytest.mark.skipif(not DATA.is_dir(), reason="PARFLEX_DATA names no folder with the touches")
SIX = [f"constants.{name}" for name in linear_delta.NAMES]
ARMS = [f"constants.arm_{leg}" for leg in "abc"]
STEP = 60 / 6400 * 1e-3  # m
STEPS_MAP = {
    "motors": {f"{leg}.carriage": {"column": f"{leg}_steps", "gain": STEP} for leg in "abc"},
    "contact": [{"frame": "platform", "height": {"column": "height", "gain": 1e-3}}],
}


def touches(numbers, seed=0, count=41):
    """Travels at which a linear delta of these numbers touches the bed, by Newton's method on the trilateration."""
    rng = np.random.default_rng(seed)
    radius, angle = 0.12 * np.sqrt(rng.uniform(size=count)), rng.uniform(0, 2 * np.pi, count)
    goals = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(count)], axis=1)
    travels = np.full((count, 3), 0.33)
    for _ in range(20):
        at = linear_delta.nozzle(numbers, travels)
        J = np.stack([(linear_delta.nozzle(numbers, travels + 1e-7 * e) - at) / 1e-7 for e in np.eye(3)], axis=2)
        travels = travels - np.linalg.solve(J, (at - goals)[:, :, None])[:, :, 0]
    return travels


def table(travels, heights=None):
    columns = {f"{leg}.carriage": travels[:, k] for k, leg in enumerate("abc")}
    return columns | {"platform.z": np.zeros(len(travels)) if heights is None else heights}


TRUE = linear_delta.NOMINAL + np.array([-2.6e-3, -7e-4, -8e-4, -4e-3, 4e-3, 1.5e-3])


def test_touches_with_noise_agree_with_scipy_on_the_closed_form():
    travels = touches(TRUE)
    heights = 3e-5 * np.random.default_rng(1).standard_normal(len(travels))
    found = parflex.calibrate(parflex.load("linear-delta"), table(travels, heights), SIX)
    numbers, deviations = linear_delta.fitted(travels, heights)
    assert found.values == pytest.approx(numbers, abs=1e-12)
    assert [item.deviation for item in found.parameters.values()] == pytest.approx(deviations, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "keys"),
    [("linear-delta", [*SIX, *ARMS, "a.carriage.gain"]), ("5r", ["constants.proximal", "left.1.offset"]),
     ("3rrr", ["constants.arm", "legs.base_x.1", "leg1.1.gain"])],
)  # fmt: skip
def test_jacobians_agree_with_differences(name, keys):
    robot = parflex.load(name)
    rng = np.random.default_rng(0)
    data = {motor: robot.home[robot.coordinates.index(motor)] + rng.uniform(-0.03, 0.03, 4) for motor in robot.motors}
    frame = robot.tree.end_effector
    data |= {f"{frame}.x": np.zeros(4), f"{frame}.y": np.zeros(4)}
    problem = CalibrationProblem(robot, MapReader(robot, data, None).measurements(), keys)
    x = problem.first
    _, J = problem.weighted(x)
    step = 1e-6
    for k, unit in enumerate(np.eye(len(x))):
        high, low = (problem.weighted(x + side * step * unit)[0] for side in (1, -1))
        assert J[:, k] == pytest.approx(
            (high - low) / (2 * step), abs=1e-8
        )  # of second order in the step, and rounding


@TOUCHES
def test_real_touches_of_a_printer(capsys, tmp_path):
    robot = parflex.load("linear-delta")
    found = parflex.calibrate(robot, DATA / "probes41.csv", SIX, columns=STEPS_MAP)
    assert 1.5e-3 < found.rms_before < 1.7e-3
    assert found.rms_after < 4.5e-5
    rows = np.loadtxt(DATA / "probes41.csv", delimiter=",", skiprows=1)
    numbers, deviations = linear_delta.fitted(rows[:, 1:] * STEP, rows[:, 0] * 1e-3)
    assert found.values == pytest.approx(numbers, abs=1e-11)
    assert [item.deviation for item in found.parameters.values()] == pytest.approx(deviations, rel=1e-7)
    free = parflex.calibrate(robot, DATA / "probes41.csv", [*SIX, *ARMS], columns=STEPS_MAP)
    assert "hardly-determined" in [note.code for note in free.diagnostics]
    assert all(free.parameters[key].inflation > 5 for key in ARMS)


def test_undetermined_combinations_are_named():
    robot, travels = parflex.load("linear-delta"), touches(TRUE)
    data = {f"{leg}": travels[:, k] for k, leg in enumerate("abc")}
    columns = {
        "motors": {f"{leg}.carriage": leg for leg in "abc"},
        "contact": [{"plane": "bed"}],
        "planes": {"bed": {"fit": True}},
    }
    found = parflex.calibrate(robot, data, SIX[:3] + SIX[5:], columns=columns)
    sets = [set(item) for item in found.undetermined]
    assert {"bed.height", *SIX[:3]} in sets  # a bed that is higher by as much as all endstops
    for item in found.undetermined:
        steps = {name: found.parameters[name].value - found.parameters[name].before for name in item}
        assert sum(weight * steps[name] for name, weight in item.items()) == pytest.approx(0.0, abs=1e-15)
        assert max(map(abs, steps.values())) > 1e-4
    assert not found.parameters["bed.height"].determined
    assert found.parameters["bed.height"].deviation is None
    assert found.parameters["constants.radius"].determined
    # a prior determines them, and residuals of four deviations do not widen it
    columns["contact"] = [{"plane": "bed", "height": "h", "deviation": 1e-5}]
    given = [data | {"h": 4e-5 * np.random.default_rng(1).standard_normal(41)}, SIX[:3] + SIX[5:]]
    found = parflex.calibrate(robot, *given, columns=columns, tolerances={"bed.height": 1e-4})
    assert "model-error" in [note.code for note in found.diagnostics]
    assert found.parameters["bed.height"].deviation == pytest.approx(1e-4, rel=1e-6)
    del columns["contact"][0]["deviation"]
    with pytest.raises(parflex.InputError, match="nothing weighs it against priors"):
        parflex.calibrate(robot, *given, columns=columns, tolerances={"bed.height": 1e-4})


def test_the_file_has_the_numbers_and_the_readings(tmp_path, capsys):
    travels = touches(TRUE)
    lines = ["row,a,b,c", *(f"touch-{k},{a!r},{b!r},{c!r}" for k, (a, b, c) in enumerate(travels.tolist()))]
    (tmp_path / "probes.csv").write_text("\n".join(lines))
    motors = "".join(f'"{leg}.carriage" = "{leg}"\n' for leg in "abc")
    (tmp_path / "map.toml").write_text(f'row = "row"\n[motors]\n{motors}[[contact]]\nframe = "platform"\n')
    words = ["calibrate", "linear-delta", str(tmp_path / "probes.csv"), "--columns", str(tmp_path / "map.toml")]
    vary = ",".join([*SIX[1:], "a.carriage.offset"])
    out = tmp_path / "mine.toml"
    answer = answered(capsys, *words, "--vary", vary, "--hold-out", "touch-3,touch-7-touch-9", "--out", str(out),
                      "--page", str(tmp_path / "page"))  # fmt: skip
    assert answer["held_out"] == ["touch-3", "touch-7", "touch-8", "touch-9"]
    assert answer["rms_held_out"] < 1e-10
    robot = parflex.load(out)
    assert robot.description.readings["a.carriage"].offset == pytest.approx(0.333 - TRUE[0], abs=1e-9)
    assert robot.description.constants["radius"] == pytest.approx(TRUE[5], abs=1e-10)
    again = parflex.calibrate(robot, tmp_path / "probes.csv", SIX[5], columns=tmp_path / "map.toml")
    assert again.rms_before < 1e-10
    assert "estimated deviation of a measurement (m)" in (tmp_path / "page" / "index.html").read_text()


def test_bad_input_is_refused(tmp_path, capsys):
    robot, travels = parflex.load("linear-delta"), touches(TRUE, count=5)
    data = table(travels)
    columns = {"motors": {f"{leg}.carriage": f"{leg}.carriage" for leg in "abc"}, "contact": [{"height": "hight"}]}
    with pytest.raises(parflex.InputError, match="no column 'hight'"):
        parflex.calibrate(robot, data, SIX, columns=columns)
    with pytest.raises(parflex.InputError, match="5 equations cannot determine 6 numbers"):
        parflex.calibrate(robot, data, SIX)
    far = {**data, "b.carriage": np.where(np.arange(5) == 2, 2.0, travels[:, 1])}
    with pytest.raises(parflex.UnreachableError, match="row 3: the robot cannot be closed"):
        parflex.calibrate(robot, far, SIX[:3])
    with pytest.raises(parflex.UnreachableError, match="units"):
        parflex.calibrate(robot, table(travels * 1e3), SIX[:3])
    wide = {**data, "platform.x": 1e3 * linear_delta.nozzle(TRUE, travels)[:, 0]}
    with pytest.raises(parflex.InputError, match=r"gain of 0\.001"):
        parflex.calibrate(robot, wide, SIX[:3])
    with pytest.raises(parflex.InputError, match="apart with the start values"):
        parflex.calibrate(robot, table(travels * 1e-3), SIX[:3])
    with pytest.raises(parflex.InputError, match="not a finite number"):
        parflex.calibrate(robot, data, SIX, columns={"motors": {"a.carriage": {"column": "a", "gain": "mm"}}})
    with pytest.raises(parflex.InputError, match="no rows"):
        parflex.calibrate(robot, [], SIX)
    (tmp_path / "touches.csv").write_text("a;b\n0,3;0,4\n")
    for bad, hint in ((data, "did you mean 'constants.radius'"), (tmp_path / "touches.csv", "use commas")):
        with pytest.raises(parflex.ParflexError) as error:
            parflex.calibrate(robot, bad, "radius")
        assert hint in error.value.hint
    (tmp_path / "short.csv").write_text("a.carriage,b.carriage,c.carriage,platform.z\n0.3,0.3,0.3\n")
    error = refused(capsys, "calibrate", "linear-delta", str(tmp_path / "short.csv"), "--vary", SIX[5])
    assert "line 2 has 3 fields" in error["message"]


def test_the_file_keeps_the_settings_with_which_the_robot_was_loaded(tmp_path):
    settings = {"constants.distal": 0.41}
    true = parflex.load("5r", settings=settings | {"constants.proximal": 0.301})
    places = [(0.0, 0.4), (0.05, 0.4), (0.0, 0.45), (-0.05, 0.42)]
    here = [parflex.configure(true, {"x": x, "y": y}) for x, y in places]
    data = {name: [float(at.q[true.coordinates.index(name)]) for at in here] for name in true.motors}
    data |= {f"tip.{axis}": [place[k] for place in places] for k, axis in enumerate("xy")}
    found = parflex.calibrate(parflex.load("5r", settings=settings), data, ["constants.proximal"])
    found.to_file(tmp_path / "mine.toml")
    constants = parflex.load(tmp_path / "mine.toml").description.constants
    assert constants["distal"] == 0.41 and constants["proximal"] == pytest.approx(0.301, rel=1e-10)
