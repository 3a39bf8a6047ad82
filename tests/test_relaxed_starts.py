"""Runs of flexible robots start where the pose puts their joints, with bodies at rest as if brakes held the joints.

The proof of each start is a second run: with a motor in every joint that was held, nothing moves.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import bars

import parflex
from parflex import Configuration
from parflex.codegen import program_store
from parflex.models.posing.home_pose import HomePose
from parflex.models.terms import acting
from parflex.simulation import conditioning
from parflex.simulation.problem import prepare
from parflex.simulation.starts import kept_home, kept_rest
from parflex.simulation.starts.relaxed import relaxed
from parflex.simulation.starts.settling import settled

ROBOTS = Path(__file__).parent / "robots"
DOWN, STILL = (0, -9.81, 0), 1e-9  # in metres and radians; Newton's method leaves 1e-12 of a typical length


def arm(name, of="base", more="", place="", start=0.0, joint="revolute"):
    return f"""
[[frame]]
name = "{name}"
parent = "{of}"
joint = "{joint}"
start = {start}
{place}
{more}
inertia = {{ mass = 0.2, about_centre = [0.0001, 0.0001, 0.0002] }}
beam = {{ length = 0.4, material = "steel", section = "bar", elements = 1 }}
"""


TURNED = "place = { rotation = ['pi/2', 0, 0.3] }"  # the axis of the joint lies level
CART = """
[[frame]]
name = "cart"
joint = "prismatic"
actuated = true
place = { rotation = [0, "pi/2", 0] }
inertia = { mass = 2 }
[[frame]]
name = "carried"
parent = "cart"
place = { rotation = [0, "-pi/2", 0] }
"""
FOUR_BAR = (
    arm("crank", start=0.9)
    + arm("coupler", "crank.tip", start=-0.8)
    + arm("rocker", place="place = { position = [0.5, 0, 0] }", start=0.9)
    + """
[[closure]]
between = ["coupler.tip", "rocker.tip"]
joint = "revolute"
"""
)
GEARED = """
[[frame]]
name = "motor"
joint = "revolute"
actuated = true
place = { position = [-1, 0, 0] }
inertia = { mass = 1, about_centre = [0, 0, 0.001] }
[[coupling]]
name = "gear"
joint = "arm"
terms = { motor = 0.1 }
stiffness = 800
""" + arm("arm")
SPRUNG = "spring = { stiffness = 60, rest = 0.1 }"
WEAK = "spring = { stiffness = 0.1, rest = 1.5 }"
# text, gravity, pose, planar: which joints are held, and which may go elsewhere
CASES = {
    "a pendulum": (arm("arm"), DOWN, {"arm": 0.5}, True, ["arm"]),
    "a pendulum at home": (arm("arm", start=1.1), DOWN, None, True, ["arm"]),
    "a pendulum level": (arm("arm"), DOWN, None, True, ["arm"]),
    "a pendulum nearly upside down": (arm("arm"), DOWN, {"arm": 1.5}, True, ["arm"]),
    "two pendulums": (arm("arm") + arm("fore", "arm.tip"), DOWN, {"arm": 0.3, "fore": -1}, True, ["arm", "fore"]),
    "a pendulum in space": (arm("arm", place=TURNED), (0, 0, -9.81), {"arm": 0.4}, False, ["arm"]),
    "a pendulum on a cart": (CART + arm("arm", "carried", start=-1.0), DOWN, None, True, ["arm"]),
    "a loop": (FOUR_BAR, DOWN, None, True, ["crank"]),
    "a loop at a pose": (FOUR_BAR, DOWN, {"rocker": 1.2}, True, ["rocker"]),
    "a sprung arm at a pose": (arm("arm", more=SPRUNG), DOWN, {"arm": -0.6}, True, ["arm"]),
    "an upright arm on a weak spring": (arm("arm", more=WEAK, start=1.4), DOWN, None, True, ["arm"]),
    "an elastic gear at a pose": (GEARED, DOWN, {"motor": 0.0, "arm": 0.2}, True, ["arm"]),
}


def robot(tmp_path, text, gravity, planar, motors=()):
    for name in motors:
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\nactuated = true\n')
    return bars.robot(tmp_path, text, gravity, "planar" if planar else "spatial")


@pytest.mark.few
@pytest.mark.parametrize("case", CASES)
def test_joints_start_where_the_pose_puts_them_and_bodies_at_rest(tmp_path, case):
    text, gravity, pose, planar, held = CASES[case]
    of = robot(tmp_path, text, gravity, planar)
    run = parflex.simulate(of, None, 1e-3, pose=pose)
    assert run.summary["start"] == "relaxed" and len(run.summary["start_held"]) == len(held)
    there = parflex.configure(of, pose)
    for name in held if pose else run.summary["start_held"]:
        assert run[f"q.{name}"][0] == there.q[of.tree.position_names.index(name)]  # not moved at all
    # the same state with a motor in each held joint, led nowhere: all stays there
    braked = robot(tmp_path, text, gravity, planar, run.summary["start_held"])
    q = np.array([run[f"q.{name}"][0] for name in of.tree.position_names])
    rest = parflex.configure(braked, q)
    motion = {
        "t": [0.0, 0.01],
        **{name: [rest.q[braked.tree.position_names.index(name)]] * 2 for name in braked.motors},
    }
    kept = parflex.simulate(braked, motion, 0.01, start={"q": q}, out_step=1e-3, step=1e-3)
    for name in braked.tree.position_names:
        assert np.ptp(kept[f"q.{name}"]) < STILL, name
    assert max(abs(run[f"q.{n}"][0]) for n in of.tree.position_names if n.endswith("uy")) > 1e-6  # it is bent


def test_a_pendulum_sags_at_the_start_as_a_cantilever(tmp_path):
    of = parflex.load(ROBOTS / "pendulum-beam.toml")
    run = parflex.simulate(of, None, 1e-3, pose={"arm": 0.0}, frames=["arm.tip"])
    load, EI = 2700 * 0.004 * 0.02 * 9.81, 70e9 * 0.02 * 0.004**3 / 12
    assert run["arm.tip.y"][0] == pytest.approx(-load * 0.4**4 / (8 * EI), rel=1e-4)  # small deflections: 1e-3 of it
    assert run["q.arm"][0] == 0.0 and run.summary["start_held"] == ["arm"]


def test_what_springs_keep_settles_where_no_pose_is_given(tmp_path):
    for text, name in ((arm("arm", more=SPRUNG), "arm"), (GEARED, "arm")):
        of = bars.robot(tmp_path, text, DOWN)
        run = parflex.simulate(of, None, 1e-3)
        assert run.summary["start"] == "equilibrium" and "start_held" not in run.summary
        rest = parflex.equilibrium(of)
        assert run[f"q.{name}"][0] == pytest.approx(rest.configuration.q[of.tree.position_names.index(name)], abs=STILL)


def test_brakes_that_carry_nothing_are_not_spoken_of(tmp_path):
    of = bars.robot(tmp_path, arm("arm"))  # without gravity
    run = parflex.simulate(of, None, 1e-3, pose={"arm": 0.5})
    assert run.summary["start"] == "equilibrium" and run["q.arm"][0] == 0.5
    of = bars.robot(tmp_path, arm("arm"), DOWN)
    run = parflex.simulate(of, None, 1e-3, pose={"arm": -np.pi / 2})  # it hangs
    assert run.summary["start"] == "equilibrium" and run["q.arm"][0] == -np.pi / 2


def test_an_equilibrium_that_is_asked_for_tells_that_it_is_elsewhere_or_not_stable(tmp_path):
    of = bars.robot(tmp_path, arm("arm"), DOWN)
    up = parflex.simulate(of, None, 1e-3, pose={"arm": 1.2}, start="equilibrium")
    assert up["q.arm"][0] == pytest.approx(np.pi / 2, abs=STILL)
    said = " ".join(up.summary["warnings"])
    assert "not at the pose that was given: 'arm' is off by 0.371" in said and "not stable" in said
    down = parflex.simulate(of, None, 1e-3, pose={"arm": -1.565}, start="equilibrium")
    assert not [sentence for sentence in down.summary["warnings"] if "equilibrium" in sentence]


@pytest.mark.verify
def test_motors_stay_where_a_pose_of_joints_puts_them_and_hold_the_frame_at_a_pose_of_it():
    of = parflex.load("3rrr-flexible", settings={"gravity": [0, -9.81, 0]})
    where = parflex.configure(of, {"x": 0.02, "y": 0.01, "theta": 0.1})
    motors = {name: float(where.q[of.tree.position_names.index(name)]) for name in of.motors}
    run = parflex.simulate(of, None, 1e-3, pose=motors)
    assert [run[f"q.{name}"][0] for name in of.motors] == pytest.approx(list(motors.values()), abs=1e-12)
    assert run.summary["start"] == "equilibrium"
    held = parflex.simulate(of, None, 1e-3, pose={"x": 0.02, "y": 0.01, "theta": 0.1})
    assert held.summary["start"] == "held"
    assert abs(held["q." + of.motors[0]][0] - motors[of.motors[0]]) > 1e-8  # its bars are stiff


SLENDER = """
format = 1
name = "slender"
motion = "planar"
gravity = [0, -9.81, 0]
[materials.m]
elastic_modulus = 70e9
density = 2700
[sections.s]
shape = "rectangle"
y = 0.006
z = 0.02
[[frame]]
name = "arm"
joint = "revolute"
beam = { length = 0.8, material = "m", section = "s", elements = 4 }
"""


@pytest.mark.verify
def test_a_start_beyond_the_buckling_load_is_not_steady_and_says_so(tmp_path):
    file, pose = tmp_path / "slender.toml", {"arm": 1.5}
    file.write_text(SLENDER)
    robot = parflex.load(file)
    for load, steady in ((-90.0, True), (-150.0, False)):  # Euler's load of the cantilever: pi^2 E I / (4 L^2) = 97 N
        wrench = {"arm.tip": [0.0, load, 0.0, 0.0, 0.0, 0.0]}
        assert relaxed(robot, parflex.configure(robot, pose), wrench, pose).steady == steady
        bent = parflex.deflection(robot, pose, ["arm.tip"], lock=["arm"], wrench=wrench)
        assert steady != any("not stable, as beyond a buckling load" in line for line in bent.warnings)
    run = parflex.simulate(robot, None, 1e-4, pose=pose, wrench=wrench, method="rk4", step=1e-5, out_step=1e-4)
    assert any("equilibrium that is not stable" in line for line in run.summary["warnings"])


def test_programs_of_a_run_settle_its_bodies_as_tangents_of_the_whole_robot_do(figure):
    """The matrix of a very long step is the stiffness: after some steps only rounding is left of what pushes."""
    problem = prepare(parflex.load("dualemps"), "motors", ("P",), ("friction",), numbers=("pairs",))
    home, load = problem.robot.home, {"P": [3.0, -8.0, 0.0, 0.0, 0.0, 0.2]}
    found = settled(problem, home, load)
    wanted = relaxed(problem.robot, Configuration(problem.robot, home), load, None).q
    worst = np.abs(found - wanted).max() / np.abs(wanted - home).max()
    figure("rest by the programs of a run, of the deflection", float(worst), 1e-9)
    assert np.abs(wanted - home).max() > 1e-4
    assert worst < 1e-9  # rounding of accelerations: stiffness spans eight orders
    assert settled(replace(problem, prescribed="efforts"), home, load) is None  # nothing holds the motors then


def test_a_rest_that_was_found_is_read_for_the_same_robot_pose_and_source_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    found = []

    def find():
        found.append(1)
        return kept_rest.Relaxed(np.array([0.1, len(found)]), ("a",), False)

    def asked(robot, *choices):
        return kept_rest.kept_rest(robot, choices, find)

    robot = parflex.load("dualemps")
    first = asked(robot, np.zeros(2), {"tip": [1.0]})
    again = asked(parflex.load("dualemps"), np.zeros(2), {"tip": [1.0]})
    assert len(found) == 1 and again == first and again.held == ("a",) and not again.steady
    asked(robot, np.zeros(2), {"tip": [1.0 + 1e-15]})
    asked(robot, np.full(2, 1e-300), {"tip": [1.0]})
    asked(parflex.load("dualemps", settings={"constants.blade": 0.4505001}), np.zeros(2), {"tip": [1.0]})
    asked(robot.locking([0]), np.zeros(2), {"tip": [1.0]})
    monkeypatch.setattr(program_store, "_code", lambda: b"another version")
    asked(robot, np.zeros(2), {"tip": [1.0]})
    assert len(found) == 6


def test_home_and_mobility_are_read_for_the_same_robot_and_source_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    found = []
    monkeypatch.setattr(HomePose, "found", lambda home: found.append(1) or home.assembled())

    def again_from_disk(**more):
        kept_home._known.clear()  # as in another process
        return kept_home.with_kept_home(parflex.load("dualemps", **more))

    first, again = again_from_disk(), again_from_disk()
    other = again_from_disk(settings={"constants.blade": 0.4505001})
    assert len(found) == 2  # the second time home was read
    poses = len(first.reference_poses)
    assert poses == 3
    for one in (again, acting(again, ("friction",))):
        assert np.array_equal(one.home, first.home)
        assert (one.mobility.rank, one.mobility.redundant) == (first.mobility.rank, first.mobility.redundant)
        assert np.array_equal(one.reference_poses, first.reference_poses)
    assert not np.array_equal(other.home, first.home)
    # closed poses of one robot serve another that knows its mobility only where its own loops close there
    borrowed = replace(other, known_home=other.home, known_mobility=first.mobility)
    assert len(borrowed.reference_poses) == poses
    assert all(Configuration(borrowed, q).closure_error < 1e-11 for q in borrowed.reference_poses)
    monkeypatch.setattr(program_store, "_code", lambda: b"another version")
    again_from_disk()
    assert len(found) == 3


def test_how_near_singular_poses_are_is_read_for_the_same_robot_and_motors_alone(monkeypatch, tmp_path):
    """A second start computes it no more; another robot, or rates that are led, have their own."""
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    monkeypatch.setattr(conditioning, "MANY_RATES", 0)
    computed = []
    spread = conditioning.Watch._spread
    monkeypatch.setattr(conditioning.Watch, "_spread", lambda watch, J: computed.append(1) or spread(watch, J))

    def near(prescribed, **more):
        before = len(computed)
        found = conditioning.Watch(prepare(parflex.load("5r", **more), prescribed)).near
        return found, len(computed) > before

    first, again = near("efforts"), near("efforts")
    assert first[1] and not again[1] and again[0] == first[0]
    assert near("motors")[1] and near("efforts", settings={"constants.distal": 0.45})[1]
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    assert near("efforts") == (first[0], True)
