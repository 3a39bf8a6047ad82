"""FMUs far from the pose of their export: loops close in the assembly they were exported in, or it is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from support.fmu_units import STEP, Unit, exported

import parflex

ROBOTS = Path(__file__).parent / "robots"
R, L, INERTIA, MASS, FALL = 0.1, 0.3, 0.001, 0.8, 9.81  # of robots/slider-crank-line.toml
KINDS = {"cs": "CoSimulation", "me": "ModelExchange"}
SET = {("cs", "efforts"): "start.q.crank", ("me", "efforts"): "state.crank", ("cs", "motions"): "q.crank"}
SET |= {("me", "motions"): "q.crank"}


@cache
def slider_crank(kind: str, drive: str) -> Path:
    file = Path(mkdtemp()) / "slider-crank.fmu"
    robot = parflex.load(ROBOTS / "slider-crank-line.toml")
    parflex.export_fmu(robot, file, fmi=3 if kind == "me" else 2, kind=kind, drive=drive, method="rk4", step=STEP)
    return file


def closed_form(crank: float, rate: float = 0.0) -> np.ndarray:
    """Angle of the rod, its rate, where its end is and how fast, and kinetic energy: by hand."""
    sine = -R * np.sin(crank) / L
    turned = np.arcsin(sine)  # of the rod in the world
    turning = -R * np.cos(crank) * rate / (L * np.cos(turned))
    x = R * np.cos(crank) + L * np.cos(turned)
    xd = -R * np.sin(crank) * rate - L * np.sin(turned) * turning
    home = np.arcsin(-R * np.sin(0.7) / L) - 0.7
    rod = turned - crank
    rod += 2 * np.pi * np.round((home - rod) / (2 * np.pi))  # the turn nearest to the pose of the export
    return np.array([rod, turning - rate, x, xd, INERTIA * rate**2 / 2 + MASS * xd**2 / 2])


COLUMNS = ["q.rod", "qd.rod", "pin.x", "pin.vx", "energy.kinetic"]


@pytest.mark.few
@pytest.mark.parametrize(("kind", "drive"), SET)
def test_starts_over_the_whole_circle_are_those_of_the_closed_form(kind, drive):
    unit = Unit(slider_crank(kind, drive), KINDS[kind])
    rates = {"start.q.crank": "start.qd.crank", "state.crank": "state.rate.crank", "q.crank": "qd.crank"}
    key = SET[kind, drive]
    for crank in 0.7 + np.linspace(-6, 6, 9):
        unit.start({key: crank, rates[key]: 1.7})
        assert np.abs(unit.get(COLUMNS) - closed_form(crank, 1.7)).max() < 1e-12, crank  # rounding
        unit.unit.terminate()
        unit.unit.reset()
    unit.close()


def test_states_of_model_exchange_that_jump_close_in_the_same_assembly():
    """As by a master that puts an integrator back, or looks for a steady state."""
    unit = Unit(slider_crank("me", "efforts"), "ModelExchange")
    unit.start({})
    unit.unit.enterContinuousTimeMode()
    random = np.random.default_rng(2)
    for crank, rate in random.uniform(-3, 3, (8, 2)):
        unit.put({"state.crank": crank, "state.rate.crank": rate})
        missed = unit.get(COLUMNS) - closed_form(crank, rate)
        missed[0] -= 2 * np.pi * np.round(missed[0] / (2 * np.pi))  # turns are those of the way
        assert np.abs(missed).max() < 1e-12
    unit.close()


def test_starts_beyond_a_singular_pose_are_an_error_with_a_reason():
    unit = Unit(exported("four-bar", 3, "me", independent=("rocker",)), "ModelExchange")
    with pytest.raises(FMICallException):
        unit.start({"state.rocker": 3.0})  # it turns back before
    assert "hardly determine the others on the way to the positions that were set" in unit.said[-1]
    unit.close()


def test_motions_of_model_exchange_are_those_of_the_instant_in_any_order_of_calls():
    unit = Unit(slider_crank("me", "motions"), "ModelExchange")
    unit.start({"q.crank": 0.7, "qd.crank": 2.0})
    unit.unit.enterContinuousTimeMode()
    found = []
    for order in (0, 1):
        unit.unit.setTime(0.0)
        unit.put({"q.crank": 0.7, "qd.crank": 2.0})
        if order:
            unit.unit.setTime(0.4)
        unit.put({"q.crank": 1.1})
        if not order:
            unit.unit.setTime(0.4)
        found.append(unit.get([*COLUMNS, "effort.crank"]))
    assert np.array_equal(found[0], found[1])
    assert np.abs(found[0][:5] - closed_form(1.1, 2.0)).max() < 1e-12
    unit.close()


def test_the_impulse_of_a_velocity_jump_is_in_the_work():
    unit = Unit(slider_crank("cs", "motions"))
    unit.start({"q.crank": 0.7})
    unit.unit.doStep(0.0, STEP)
    unit.put({"qd.crank": 2.0})
    unit.unit.doStep(STEP, STEP)
    kinetic = closed_form(0.7 + 2 * STEP, 2.0)[4]
    # gravity takes what it does to the point mass: its height is zero on the line
    assert abs(unit.get(["work.input"])[0] - kinetic) < 1e-9  # the powers of one step of rk4
    unit.close()


def test_the_impulse_of_a_velocity_jump_moves_what_is_free(tmp_path):
    """A pendulum on a cart: its momentum about the pin, (I + m l^2) w - m l sin(a) v, stays."""
    robot = parflex.load(ROBOTS / "cart-pendulum.toml")
    unit = Unit(Path(parflex.export_fmu(robot, tmp_path / "cart.fmu", drive="motions", method="rk4").file))
    mass, length, inertia, angle, rate, jump = 0.5, 0.4, 0.01, -1.2, 0.7, 0.9
    unit.start({"q.cart": 0.1, "qd.cart": 0.2, "start.q.bob": angle, "start.qd.bob": rate})
    before = unit.get(["energy.kinetic"])[0]
    unit.put({"qd.cart": 0.2 + jump})
    unit.unit.doStep(0.0, 1e-9)
    after, work, kinetic = unit.get(["qd.bob", "work.input", "energy.kinetic"])
    expected = rate + mass * length * np.sin(angle) * jump / (inertia + mass * length**2)
    assert abs(after - expected) < 1e-7  # gravity in a nanosecond
    assert abs(work - (kinetic - before)) < 1e-7
    unit.close()


CONTROLLERS = {
    "model": ({"model": "inverse", "coordinates": "motors"}, ("motor_position.crank",), "motor_acceleration.crank"),
    "law": ({"law": "ctc"}, ("q.crank", "reference.q.crank"), "reference.qdd.crank"),
}


@pytest.mark.parametrize("word", [pytest.param("model", marks=pytest.mark.verify), "law"])
def test_controllers_far_from_home_have_the_efforts_of_the_closed_form(word, tmp_path):
    """The mass stays on its line: gravity needs no effort at rest, an acceleration of the crank (I + m x'^2) of it."""
    choice, places, push = CONTROLLERS[word]
    robot = parflex.load(ROBOTS / "slider-crank-line.toml")
    unit = Unit(Path(parflex.export_fmu(robot, tmp_path / "controller.fmu", **choice).file))
    for crank in 0.7 + np.linspace(-3, 3, 7):
        unit.start(dict.fromkeys(places, crank) | {push: 5.0})
        slope = closed_form(crank, 1.0)[3]  # of x by the crank
        assert abs(unit.get(["effort.crank"])[0] - (INERTIA + MASS * slope**2) * 5.0) < 1e-12, crank
        unit.unit.terminate()
        unit.unit.reset()
    unit.close()


def wound(folder: Path) -> Path:
    """The slider-crank with a spring in its passive joint, which tells a turn from the next."""
    text = (ROBOTS / "slider-crank-line.toml").read_text()
    assert text.count('name = "rod"') == 1
    (folder / "wound.toml").write_text(
        text.replace('name = "rod"', 'name = "rod"\nspring = { stiffness = 2.0, rest = -0.9 }')
    )
    return folder / "wound.toml"


@pytest.mark.parametrize("kind", ["cs", pytest.param("me", marks=pytest.mark.verify)])
def test_starts_wind_springs_of_passive_joints_by_the_turns_on_the_way(kind, tmp_path):
    parflex.export_fmu(parflex.load(wound(tmp_path)), tmp_path / "wound.fmu", kind=kind, method="rk4", step=STEP)
    unit = Unit(tmp_path / "wound.fmu", KINDS[kind])
    for crank in 0.7 + np.linspace(-9, 9, 5):
        unit.start({SET[kind, "efforts"]: crank})
        rod = np.arcsin(-R * np.sin(crank) / L) - crank  # turns against the crank
        expected = [rod, (rod + 0.9) ** 2]
        assert np.abs(unit.get(["q.rod", "energy.elastic"]) - expected).max() < 1e-11, crank  # rounding of 80 J
        unit.unit.terminate()
        unit.unit.reset()
    unit.close()


def test_control_laws_far_from_home_hold_springs_by_the_turns_on_the_way(tmp_path):
    unit = Unit(Path(parflex.export_fmu(parflex.load(wound(tmp_path)), tmp_path / "law.fmu", law="ctc").file))
    for crank in 0.7 + np.linspace(-9, 9, 5):
        unit.start({"q.crank": crank, "reference.q.crank": crank})
        rod, rate = np.arcsin(-R * np.sin(crank) / L) - crank, closed_form(crank, 1.0)[1]
        assert abs(unit.get(["effort.crank"])[0] - 2.0 * (rod + 0.9) * rate) < 1e-11, crank  # power of the spring
        unit.unit.terminate()
        unit.unit.reset()
    unit.close()


@pytest.mark.parametrize(
    ("choice", "far", "says"),
    [
        ({"model": "inverse"}, {"q.left.1": 2.5}, "the loops are open at the positions that are given"),
        ({"law": "pd"}, {"q.left.1": 4.5, "q.right.1": -1.5}, "do not close on the way"),
    ],
)
def test_positions_that_are_open_or_out_of_reach_are_errors_of_controllers(choice, far, says, tmp_path):
    unit = Unit(Path(parflex.export_fmu(parflex.load("5r"), tmp_path / "controller.fmu", **choice).file))
    with pytest.raises(FMICallException):
        unit.start(far)
    assert says in unit.said[-1]
    unit.close()


BENDING = """
format = 1
name = "bending"
motion = "planar"
gravity = [0, 0, 0]
end_effector = "slide"
materials.m = { elastic_modulus = 7e10, density = 2700 }
sections.s = { shape = "rectangle", y = 0.004, z = 0.02 }
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 0.7
inertia = { mass = 0.2, about_centre = [0, 0, 0.001] }
[[frame]]
name = "rod"
parent = "crank"
joint = "revolute"
place = { position = [0.1, 0, 0] }
start = -0.9
beam = { length = 0.3, material = "m", section = "s" }
[[frame]]
name = "slide"
joint = "prismatic"
place = { rotation = [0, "pi/2", 0] }
start = 0.37
inertia = { mass = 0.3 }
[[closure]]
between = ["rod.tip", "slide"]
joint = "revolute"
[poses.home]
crank = 0.7
"""


def bending(tmp_path, kind: str, drive: str) -> Unit:
    """The same slider-crank with a rod that bends, in whose steps the end of the rod depends on the joints."""
    (tmp_path / "bending.toml").write_text(BENDING)
    robot = parflex.load(tmp_path / "bending.toml")
    parflex.export_fmu(robot, tmp_path / "bending.fmu", kind=kind, drive=drive, method="rk4", step=1e-5)
    return Unit(tmp_path / "bending.fmu", KINDS[kind])


@pytest.mark.parametrize("drive", ["efforts", pytest.param("motions", marks=pytest.mark.verify)])
def test_joints_that_are_not_set_follow_and_bodies_keep_their_deformation(drive, tmp_path):
    unit = bending(tmp_path, "cs", drive)
    place, rate = ("start.q.crank", "start.qd.crank") if drive == "efforts" else ("q.crank", "qd.crank")
    both = [f"{word}.rod.{axis}" for word in ("q", "qd") for axis in ("ux", "uy", "rz")]
    for crank in 0.7 + np.linspace(-2.5, 2.5, 6):
        unit.start({place: crank, rate: 1.7})
        expected = closed_form(crank, 1.7)
        found = unit.get(["q.rod", "qd.rod", "q.slide", "qd.slide"])
        assert np.abs(found - expected[:4]).max() < 1e-12, crank  # rounding
        assert np.abs(unit.get(both)).max() < 1e-12
        unit.unit.terminate()
        unit.unit.reset()
    assert not unit.said
    # masters that set all start values say nothing of those that are as they were, others are kept
    if drive == "efforts":
        unit.start({"start.q.rod": unit.get(["start.q.rod"])[0], place: 1.2})
        assert abs(unit.get(["q.rod"])[0] - closed_form(1.2)[0]) < 1e-12
        unit.unit.terminate()
        unit.unit.reset()
        unit.start({"start.q.slide": closed_form(1.2)[2]})  # the motor stays unless the loops cannot close
        assert abs(unit.get(["q.crank"])[0] - 1.2) < 1e-9 and np.abs(unit.get(both)).max() < 1e-12
        unit.unit.terminate()
        unit.unit.reset()
        # two joints of one freedom that belong together, as written with six digits: the third follows
        unit.start(
            {
                place: 2.2,
                "start.q.rod": closed_form(2.2)[0].round(6),
                rate: 1.7,
                "start.qd.rod": closed_form(2.2, 1.7)[1].round(6),
            }
        )
        assert np.abs(unit.get(["q.slide", "qd.slide"]) - closed_form(2.2, 1.7)[2:4]).max() < 1e-5
        assert np.abs(unit.get(both)).max() < 1e-4 and not unit.said
        unit.unit.terminate()
        unit.unit.reset()
        unit.start({rate: 1.7, "start.qd.rod": 1.0, "start.qd.slide": 0.1})
        assert unit.said == ["the rates that were set deform bodies: set rates of joints that belong together"]
    unit.close()


@pytest.mark.verify
def test_states_of_model_exchange_that_bend_bodies_too_far_are_said(tmp_path):
    unit = bending(tmp_path, "me", "efforts")
    unit.start({"state.crank": 0.9})
    assert "deform bodies by" in unit.said[-1]
    unit.unit.terminate()
    unit.unit.reset()
    unit.start({"state.rate.crank": 1.7})
    assert "the rates that were set deform bodies" in unit.said[-1]
    unit.close()
