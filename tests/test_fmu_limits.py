"""Where an FMU must not go on: rates that no longer serve, steps that are too long, names that FMI does not allow."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import CATALOGUE
from fmpy.fmi1 import FMICallException
from support.fmu_units import STEP, Unit, exported, given

import parflex
from parflex.exchange.fmu.description_xml import Variable
from parflex.exchange.fmu.export_checks import refuse_names, step_notes
from parflex.exchange.fmu.fmu_plant import make_plant
from parflex.exchange.fmu.watching_c import LEAST_QUALITY
from parflex.simulation.conditioning import Watch
from parflex.simulation.problem import prepare

TURN = {"effort.crank": 3.0}  # takes the crank through the dead centre of the rocker within half a second


def pushed(unit: Unit, seconds: float) -> float:
    """When a unit under a constant effort ends."""
    unit.start(TURN)
    for k in range(round(seconds / STEP)):
        try:
            unit.unit.doStep(k * STEP, STEP)
        except FMICallException:
            return k * STEP
    return seconds


@pytest.mark.verify
def test_rates_at_their_dead_centre_are_an_error_with_a_reason_and_better_ones_go_through():
    """The rocker turns back while the crank goes on: by its rate the crank would turn back too."""
    robot = parflex.load("four-bar")
    columns = ["q.crank", "q.coupler", "q.rocker"]
    bad = Unit(exported("four-bar", 2, "cs", independent=("rocker",)))
    ended = pushed(bad, 0.6)
    assert ended < 0.6 and "the independent rates (rocker) hardly determine the others" in bad.said[-1]
    with pytest.raises(FMICallException):  # it stays so
        bad.get(columns)
    bad.close()
    good = Unit(exported("four-bar"))
    assert pushed(good, 0.6) == 0.6
    run = parflex.simulate(robot, effort={"crank": 3.0}, time=0.6, step=STEP, out_step=STEP, method="gauss4")
    assert np.abs(good.get(columns) - [run[name][-1] for name in columns]).max() < 1e-9  # the same steps
    # the limit is met where the watch of runs says so, between two checks
    watch = Watch(prepare(robot, "efforts", independent=("rocker",)))
    rows = watch.rows(np.stack([run[name] for name in columns], axis=1))
    quality = np.array([watch.quality(J, ("rocker",)) for J in rows])
    first = int(np.argmax(quality < LEAST_QUALITY))
    assert abs(ended - first * STEP) < 5 * STEP
    good.close()


def test_model_exchange_keeps_its_rates_and_says_where_they_are_singular():
    unit = Unit(exported("four-bar", 3, "me", independent=("rocker",)), "ModelExchange")
    unit.start(TURN)
    unit.unit.enterContinuousTimeMode()
    names = [v.name for v in unit.about.modelVariables if v.name.startswith("state.")]
    ended = None
    for k in range(6000):  # Euler, short enough to meet the limit
        try:
            x, dx = unit.get(names), unit.get([f"der({name})" for name in names])
            unit.unit.setTime((k + 1) * 1e-4)
            unit.put(dict(zip(names, x + 1e-4 * dx, strict=True)))
        except FMICallException:
            ended = k * 1e-4
            break
    assert ended is not None and "hardly determine the others" in unit.said[-1]
    unit.close()


@pytest.mark.parametrize("fmi", [2, 3])
def test_steps_that_cannot_be_are_errors_with_a_reason(fmi):
    unit = Unit(exported("5r", fmi))
    unit.start(given("5r"))
    unit.unit.doStep(0.0, STEP)
    for t, length, says in (
        (0.5, STEP, "the last one ended at 0.001"),
        (STEP, 0.0, "not a positive number"),
        (STEP, -STEP, "not a positive number"),
    ):
        with pytest.raises(FMICallException):
            unit.unit.doStep(t, length)
        assert says in unit.said[-1]
    unit.unit.doStep(STEP, 2.5 * STEP)  # steps become shorter, so that they fit
    with pytest.raises(FMICallException):
        unit.put({"effort.left.1": float("nan")})
    assert "not a finite number" in unit.said[-1]
    unit.close()


def test_a_step_that_is_too_long_for_the_robot_is_said_with_the_reason():
    robot = parflex.load("5r")
    notes = [
        step_notes(make_plant(robot, "cs", "efforts", "rk4", step, [], ["tip"], None, (), None))
        for step in (0.05, 1e-5)
    ]
    assert "the step 0.05 s is too long for the robot: it needs" in notes[0][0] and notes[1] == ()


def test_what_is_said_of_the_step_does_not_depend_on_the_independent_rates(tmp_path):
    """A stiff spring of the rocker vibrates at one frequency where the motor holds it, in whatever coordinates."""
    text = (CATALOGUE / "four-bar.toml").read_text().replace("stiffness = 4,", "stiffness = 4000,")
    (tmp_path / "stiff.toml").write_text(text)
    robots = [parflex.load(tmp_path / "stiff.toml"), parflex.load("four-bar")]
    notes = [
        {
            note
            for rate in ("crank", "rocker", "coupler")
            for note in step_notes(make_plant(robot, "cs", "efforts", "rk4", step, [], [], None, (), (rate,)))
        }
        for robot, step in zip(robots, (0.01, 5e-4), strict=True)
    ]
    assert len(notes[0]) == 1 and "Hz" in notes[0].pop()
    assert not notes[1]  # nothing that is soft needs less than the step of all runs


@pytest.mark.parametrize(
    ("names", "says"), [(("tip.x", "tip.x"), "would have the name 'tip.x'"), (("a\nb",), "no line breaks")]
)
def test_names_that_fmi_does_not_allow_are_refused(names, says):
    with pytest.raises(parflex.InputError, match=says):
        refuse_names([Variable(name, "output") for name in names])


def test_frames_whose_columns_would_have_names_of_joints_are_refused(tmp_path):
    text = (
        'format = 1\nname = "twice"\nmotion = "planar"\nend_effector = "q"\n[[frame]]\nname = "theta"\n'
        'joint = "revolute"\nactuated = true\ninertia = { mass = 1, about_centre = [0, 0, 0.1] }\n'
        '[[point]]\nname = "q"\nframe = "theta"\nposition = [0.3, 0, 0]\n'
    )
    (tmp_path / "twice.toml").write_text(text)
    robot = parflex.load(tmp_path / "twice.toml")
    for ask in (
        lambda: parflex.export_fmu(robot, tmp_path / "x.fmu"),
        lambda: parflex.simulate(robot, effort={}, time=1),
    ):
        with pytest.raises(
            parflex.InputError, match=r"the frame 'q' and a joint would both have the column 'q\.theta'"
        ):
            ask()


def test_frequencies_that_are_not_known_are_said_of_the_step(monkeypatch):
    monkeypatch.setattr("parflex.exchange.fmu.export_checks.MOST_COORDINATES", 0)
    (note,) = step_notes(make_plant(parflex.load("dualemps"), "cs", "efforts", "rk4", 1e-4, [], [], None, (), None))
    assert note.startswith("the frequencies of 11 coordinates are not known: give a step of a twentieth")
