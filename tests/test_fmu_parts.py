"""FMUs with parameters, and controllers as FMUs of their own: beside changed robots, and in closed loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu
from support.fmu_units import STEP, Unit

import parflex
from parflex import gains_from
from parflex.control.following import track
from parflex.control.laws import make_law
from parflex.control.reference_text import reference_from
from parflex.exchange.fmu.plant_parameters import read_plant_parameters

LONG = pytest.mark.verify
LOAD = [0.4, 0.05, -0.03, 0.0]  # kg, m: in the axes of the tip
FALL = [1.5, -3.0, 0.0]
EFFORT = {"left.1": 0.5, "right.1": -0.8}
COLUMNS = ["tip.x", "tip.y", "q.left.2", "qd.right.2", "energy.kinetic", "energy.gravity", "work.input"]


@pytest.fixture(scope="module")
def changeable(tmp_path_factory) -> Path:
    """The 5R with parameters: a unit with payload has those of its second link too."""
    file = tmp_path_factory.mktemp("fmu") / "5r.fmu"
    names = ["gravity", "payload", "M[left.2]", "MX[left.2]", "MY[left.2]", "ZZ[left.2]"]
    parflex.export_fmu(parflex.load("5r"), file, method="rk4", step=STEP, parameters=names)
    assert validate_fmu(str(file)) == []
    return file


def at_end(file: Path, values: dict[str, float]) -> np.ndarray:
    unit = Unit(file)
    unit.start({f"effort.{name}": value for name, value in EFFORT.items()} | values)
    found = unit.run(0, 20, COLUMNS)[-1]
    unit.close()
    return found


def test_parameters_of_an_fmu_are_those_of_a_changed_robot(changeable):
    carried = {"payload.mass": LOAD[0], "payload.x": LOAD[1], "payload.y": LOAD[2]}
    fall = {"gravity.x": FALL[0], "gravity.y": FALL[1]}
    robot = parflex.load("5r", payload=LOAD, settings={"gravity": FALL})
    run = parflex.simulate(robot, effort=EFFORT, time=20 * STEP, step=STEP, out_step=STEP, method="rk4")
    expected = np.array([run[name][-1] for name in COLUMNS])
    assert np.abs(at_end(changeable, carried | fall) - expected).max() < 1e-9  # the same steps
    # the same payload, said of the body that carries it
    unit = Unit(changeable)
    own = {name: unit.get([name])[0] for name in unit.names("parameter") if name.endswith("[left.2]")}
    unit.close()
    x, y = 0.4 + LOAD[1], LOAD[2]
    own["M[left.2]"] += LOAD[0]
    own["MX[left.2]"] += LOAD[0] * x
    own["MY[left.2]"] += LOAD[0] * y
    own["ZZ[left.2]"] += LOAD[0] * (x * x + y * y)
    assert np.abs(at_end(changeable, own | fall) - expected).max() < 1e-9


@pytest.mark.verify
def test_parameters_of_a_robot_whose_bodies_bend_are_those_of_a_changed_robot(tmp_path, figure):
    """Gravity, and a payload at the end of a beam; both runs start from the same positions."""
    robot, load = parflex.load("dualemps"), [0.3, 0.02, -0.01, 0.0]
    unit = Unit(Path(parflex.export_fmu(robot, tmp_path / "p.fmu", step=STEP, parameters=["gravity", "payload"]).file))
    values = {"gravity.x": FALL[0], "gravity.y": FALL[1], "payload.mass": load[0]}
    unit.start({"effort.11": 60.0, "payload.x": load[1], "payload.y": load[2]} | values)
    q = unit.get([f"q.{name}" for name in robot.tree.position_names])
    names = [name for name in unit.names("output") if name.startswith(("q.", "qd.", "17."))]
    found = unit.run(0, 20, names)[-1]
    changed = parflex.load("dualemps", payload=load, settings={"gravity": FALL})
    run = parflex.simulate(
        changed, effort={"11": 60.0}, time=20 * STEP, step=STEP, out_step=STEP, method="gauss4", start={"q": q}
    )
    expected = np.array([run[name][-1] for name in names])
    worst = float((np.abs(found - expected) / np.maximum(1, np.abs(expected))).max())
    figure("dualemps with gravity and a payload as parameters beside a run", worst, 1e-7)
    assert worst < 1e-7  # the same steps to the tolerance of their iterations; stiff beams enlarge it in accelerations
    unit.close()


def test_inertias_of_bodies_that_bend_are_not_parameters():
    robot = parflex.load(Path(__file__).parent / "robots" / "slider-crank-beam.toml")
    with pytest.raises(parflex.InputError, match="'rod' is flexible"):
        read_plant_parameters(robot, ["gravity", "M[rod]"])


def test_the_start_of_an_fmu_is_that_of_a_run(changeable):
    robot = parflex.load("5r")
    pose, rates = {"left.1": 2.3, "right.1": 0.8}, {"left.1": 0.7, "right.1": -0.4}
    run = parflex.simulate(
        robot, effort=EFFORT, time=20 * STEP, step=STEP, out_step=STEP, method="rk4",
        start={"pose": pose, "velocity": rates},
    )  # fmt: skip
    values = {f"start.q.{name}": value for name, value in pose.items()}
    values |= {f"start.qd.{name}": value for name, value in rates.items()}
    found = at_end(changeable, values)
    assert np.abs(found - [run[name][-1] for name in COLUMNS]).max() < 1e-9  # the same steps


def test_fixed_parameters_are_set_before_the_start_and_masses_are_not_negative(changeable):
    unit = Unit(changeable)
    with pytest.raises(FMICallException):
        unit.put({"payload.mass": -0.1})
    assert "a mass is not negative" in unit.said[-1]
    unit.start({"payload.mass": 0.1, "start.q.left.1": 2.2})
    for name in ("payload.mass", "start.q.left.1", "gravity.x"):
        with pytest.raises(FMICallException):
            unit.put({name: 0.2})
        assert "before the initialisation ends" in unit.said[-1]
    unit.close()


@pytest.mark.parametrize(
    ("parameters", "says"), [(["mass"], "there is no parameter 'mass'"), (["M[nowhere]"], "there is no parameter")]
)
def test_parameters_that_are_not_there_are_refused(parameters, says, tmp_path):
    with pytest.raises(parflex.InputError, match=says):
        parflex.export_fmu(parflex.load("5r"), tmp_path / "x.fmu", parameters=parameters)


@pytest.mark.parametrize("choice", [{"law": "fast"}, {"model": "state-rates"}, {"law": "pd", "model": "inverse"}])
def test_controllers_that_are_not_there_are_refused(choice, tmp_path):
    with pytest.raises(parflex.InputError):
        parflex.export_fmu(parflex.load("5r"), tmp_path / "x.fmu", **choice)


LOOPS = [("extended", 2, "5r", ["friction"])]
LOOPS += [pytest.param(law, 3, "5r", ["friction"], marks=LONG) for law in ("pd", "ctc", "ctc-task")]
LOOPS += [pytest.param(law, 3, "5r", [], marks=LONG) for law in ("extended", "ctc-task")]  # joints that stick too
LOOPS += [pytest.param(law, 3, "3rrr", [], marks=LONG) for law in ("ctc-task", "extended")]


@pytest.mark.verify
@pytest.mark.parametrize(("law", "fmi", "name", "without"), LOOPS)
def test_a_plant_and_a_controller_as_fmus_are_a_controlled_run(law, fmi, name, without, tmp_path, figure):
    robot, samples = parflex.load(name), 60
    path = "circle:radius=0.05,time=1"
    run = parflex.run_control(robot, path, law=law, time=samples * STEP, without=without)
    files = [tmp_path / "plant.fmu", tmp_path / "controller.fmu"]
    motors = robot.actuated_names
    parflex.export_fmu(robot, files[0], fmi=fmi, method="rk4", step=STEP, without=without, independent=motors)
    parflex.export_fmu(robot, files[1], fmi=fmi, law=law)
    assert validate_fmu(str(files[1])) == []
    made = make_law(robot, law, gains_from())
    desired = track(robot, reference_from(robot, path, samples * STEP), [*robot.actuated_names, *robot.sensed_names])
    rows = made.reference_rows(desired, np.arange(samples) * STEP)
    plant, controller = (Unit(file) for file in files)
    start = {f"start.q.{motor}": run.columns[f"q.{motor}"][0] for motor in motors}
    plant.start(start | {f"start.qd.{motor}": run.columns[f"qd.{motor}"][0] for motor in motors})
    sensed = [f"{word}.{name}" for word in ("q", "qd") for name in made.sensed]
    given = [name for name in controller.names("input") if name.startswith("reference.")]
    all_q = [f"q.{name}" for name in robot.tree.position_names]
    controller.start({f"start.{name}": value for name, value in zip(all_q, plant.get(all_q), strict=True)})
    efforts = [f"effort.{name}" for name in motors]
    found, places = [], [f"{robot.tree.end_effector}.{axis}" for axis in "xy"]
    for k in range(samples):
        controller.put(dict(zip(sensed, plant.get(sensed), strict=True)) | dict(zip(given, rows[k], strict=True)))
        controller.unit.doStep(k * STEP, STEP)
        plant.put(dict(zip(efforts, controller.get(efforts), strict=True)))
        plant.unit.doStep(k * STEP, STEP)
        found.append(plant.get(places))
    for unit in (plant, controller):
        unit.close()
    expected = np.stack([run.columns[name][1 : samples + 1] for name in places], axis=1)
    missed = float(np.abs(np.array(found) - expected).max())
    figure(f"{name}: {law} as an FMU in a closed loop{' with friction' * (not without)}", missed, 1e-9)
    assert missed < 1e-9  # the same samples and steps


def test_a_model_as_an_fmu_gives_its_outputs_and_starts_from_the_last_ones(tmp_path):
    robot = parflex.load("5r")
    file = tmp_path / "inverse.fmu"
    parflex.export_fmu(robot, file, fmi=3, model="inverse", coordinates="motors", without=["friction"])
    assert validate_fmu(str(file)) == []
    unit = Unit(file)
    unit.start({})
    motors = robot.actuated_names
    for k in range(30):  # far from home, where a guess from there would close the loop in another way
        q = {"left.1": 2.2 - 0.02 * k, "right.1": 0.94 - 0.02 * k}
        unit.put({f"motor_position.{name}": q[name] for name in motors} | {"motor_acceleration.left.1": 2.0})
        unit.unit.doStep(k * STEP, STEP)
    expected = parflex.inverse_dynamics(robot, q, {}, {"left.1": 2.0, "right.1": 0.0}, without=["friction"]).efforts
    found = unit.get([f"effort.{name}" for name in motors])
    assert np.abs(found - list(expected.values())).max() < 1e-9
    unit.close()
