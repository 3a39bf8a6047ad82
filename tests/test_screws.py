"""Screws (helical joints) against closed forms, Lagrange's equations and Pinocchio's own helical joint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.comparison import error_against, largest, nearby_states, written
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot

import parflex
from parflex import RobotFileError
from parflex.codegen.traces.feedback import wrapped
from parflex.control.plant import family
from parflex.models.elastic.participation import plane_normal

ROBOTS = Path(__file__).parent / "robots"
G = 9.81
M, IZZ, AWAY, PITCH = 3.0, 0.05, 0.04, 0.02  # a body whose centre is off the axis
SCREW = f"""
format = 1
name = "screw"
[[frame]]
name = "nut"
joint = "helical"
pitch = {PITCH}
actuated = true
inertia = {{ mass = {M}, centre = [{AWAY}, 0, 0.1], about_centre = [0.05, 0.06, {IZZ}] }}
"""
INERTIA = IZZ + M * AWAY**2 + M * PITCH**2
WEIGHT = M * G * PITCH
KINDS = ["helical", "revolute", "prismatic", "helical", "universal", "spherical", "cylindrical", "helical"]


def screw(folder, more="", text=SCREW):
    return parflex.load(written(text + more, folder))


# -- closed forms --------------------------------------------------------------------------------------------


def test_a_body_on_an_upright_screw_falls_as_its_inertia_and_its_pitch_say(tmp_path, figure):
    robot = screw(tmp_path)
    fall = parflex.forward_dynamics(robot, {"nut": 2.0}, {"nut": 7.0}, {"nut": 0.0}).accelerations[0]
    assert fall == pytest.approx(-WEIGHT / INERTIA, rel=1e-13)
    lifted = parflex.inverse_dynamics(robot, {"nut": 2.0}, {"nut": 7.0}, {"nut": 5.0}).efforts["nut"]
    assert lifted == pytest.approx(INERTIA * 5 + WEIGHT, rel=1e-13)
    assert parflex.mass_matrix(robot)[0] == pytest.approx(np.array([[INERTIA]]), rel=1e-13)
    run = parflex.simulate(robot, None, 3.0, step=2e-3, out_step=0.1)
    error = largest(run["q.nut"] + WEIGHT / INERTIA / 2 * run["t"] ** 2)
    figure("fall of a body on a screw over many turns, rad", error, 1e-9)
    assert run["q.nut"][-1] < -6 * np.pi
    assert error < 1e-9  # of 27 rad
    assert largest(run["nut.z"] - PITCH * run["q.nut"]) < 1e-14


def test_energies_frames_and_jacobian_of_a_screw(tmp_path):
    robot, q, rate = screw(tmp_path), 9.0, 3.0
    kinetic, potential = parflex.energies(robot, {"nut": q}, {"nut": rate})
    assert kinetic == pytest.approx(INERTIA * rate**2 / 2, rel=1e-13)
    _, start = parflex.energies(robot, {"nut": 0.0}, {"nut": rate})
    assert potential - start == pytest.approx(WEIGHT * q, rel=1e-12)
    here = parflex.configure(robot, {"nut": q})
    R, p = here.at.of(robot.tree.places["nut"])
    assert p == pytest.approx([0, 0, PITCH * q], abs=1e-15)
    assert R[:, 0] == pytest.approx([np.cos(q), np.sin(q), 0], abs=1e-15)
    assert here.frame_rows("nut")[:, 0] == pytest.approx([0, 0, PITCH, 0, 0, 1], abs=1e-15)


def test_a_spring_in_a_screw_has_the_frequency_of_its_inertia(tmp_path):
    text = SCREW.replace("actuated = true", "spring = { stiffness = 40 }\nmotor_inertia = 0.01")
    found = parflex.natural_frequencies(screw(tmp_path, text=text))
    expected = np.sqrt(40 / (INERTIA + 0.01)) / (2 * np.pi)
    assert found.frequencies == pytest.approx([expected], rel=1e-12)
    rest = parflex.equilibrium(screw(tmp_path, text=text))
    assert rest.configuration.q == pytest.approx([-WEIGHT / 40], rel=1e-10)


def ball_screw():
    """Screw and table, by hand: shaft J, table m uphill of the screw by x = -p q."""
    p, m, J, incline = 0.005 / (2 * np.pi), 20.0, 3e-4 + 2e-4, 0.4
    return p, J + m * p**2, -m * G * p * np.sin(incline)


def test_a_table_on_a_ball_screw_moves_as_written_by_hand(figure):
    robot = parflex.load(ROBOTS / "ball-screw.toml")
    p, inertia, weight = ball_screw()
    here = parflex.configure(robot, {"screw": -50.0})
    assert here.q == pytest.approx([50 * p, -50], rel=1e-12)
    found = parflex.inverse_dynamics(robot, here, {"screw": 30.0}, {"screw": 200.0})
    assert found.rates == pytest.approx([-30 * p, 30], rel=1e-12)
    assert found.efforts["screw"] == pytest.approx(inertia * 200 + weight, rel=1e-11)
    program = parflex.model(robot, "direct")
    out = program(q=here.q, qd=found.rates[[robot.tree.number(program.labels["qd"][0])]], effort=np.array([0.7]))
    chosen = [-p, 1.0][program.labels["qdd"] == ["screw"]]
    assert out["qdd"][0] / chosen == pytest.approx((0.7 - weight) / inertia, rel=1e-10)
    run = parflex.simulate(robot, None, 1.0, step=1e-3, out_step=0.05, effort={"screw": 0.0})
    error = largest(run["q.screw"] + weight / inertia / 2 * run["t"] ** 2) / largest(run["q.screw"])
    figure("table that slides down on a ball screw, relative error", error, 1e-10)
    assert error < 1e-10
    assert run["closure_error"].max() < 1e-12
    assert run["q.screw"][-1] > 8 * np.pi


@pytest.mark.parametrize("x", [0.3, -0.8])
def test_a_ball_screw_is_posed_over_hundreds_of_turns(x):
    robot = parflex.load(ROBOTS / "ball-screw.toml")
    here = parflex.configure(robot, {"table": x})
    assert here.q == pytest.approx([x, -x / (0.005 / (2 * np.pi))], rel=1e-10)
    turned = parflex.configure(robot, {"table.x": x * np.cos(0.4)})
    assert turned.q == pytest.approx(here.q, rel=1e-9)


def test_a_nut_held_from_turning_moves_along_its_shaft(tmp_path):
    """The same by another loop: a motor turns the shaft, the nut slides along the base."""
    p, mass, J = 0.01, 7.0, 2e-3
    text = f"""
format = 1
name = "shaft"
[[frame]]
name = "shaft"
joint = "revolute"
actuated = true
inertia = {{ ZZ = {J} }}
[[frame]]
name = "nut"
parent = "shaft"
joint = "helical"
pitch = {p}
inertia = {{ mass = {mass}, about_centre = [0.1, 0.1, 0.1] }}
[[closure]]
between = ["base", "nut"]
joint = "prismatic"
"""
    robot = parflex.load(written(text, tmp_path))
    found = parflex.inverse_dynamics(robot, {"shaft": 0.7}, {"shaft": 3.0}, {"shaft": 11.0})
    for angle in (4.0, -4.0, 20 * np.pi, -2000.0):  # the loop closes at every whole turn, with the nut elsewhere
        assert parflex.configure(robot, {"shaft": angle}).q == pytest.approx([angle, -angle], rel=1e-10)
    assert abs(parflex.configure(robot, {"shaft": -3.0}).q).max() == pytest.approx(3.0)
    assert found.rates == pytest.approx([3, -3]) and found.accelerations == pytest.approx([11, -11])
    assert found.efforts["shaft"] == pytest.approx((J + mass * p**2) * 11 - mass * G * p, rel=1e-11)


# -- other engines -------------------------------------------------------------------------------------------


def made_up(rng, kinds):
    """A chain with branches of these joints, everything about it drawn."""
    lines = ["format = 1", 'name = "made-up"', "gravity = [1.1, -2.0, -9.3]"]
    names = ["base"]
    for k, kind in enumerate(kinds):
        a, b, c = rng.uniform(-0.3, 0.3, (3, 3)).round(3).tolist()
        principal = rng.uniform(0.02, 0.04, 3).round(4).tolist()
        lines += ["[[frame]]", f'name = "f{k}"', f'parent = "{names[max(0, k - int(rng.integers(0, 2)))]}"']
        lines += [f'joint = "{kind}"', "actuated = true", f"place = {{ position = {a}, rotation = {b} }}"]
        lines += [f"inertia = {{ mass = {rng.uniform(0.5, 2):.3f}, centre = {c}, about_centre = {principal} }}"]
        if kind in ("helical", "revolute", "prismatic"):
            lines += [f"motor_inertia = {rng.uniform(0, 0.1):.3f}", f"damper = {rng.uniform(0, 1):.3f}"]
            lines += [f"spring = {{ stiffness = {rng.uniform(0, 20):.2f}, rest = 0.3 }}"]
            lines += ["friction = { viscous = 0.2, coulomb = 0.1 }", f"start = {rng.uniform(-1, 1):.3f}"]
        lines += [f"pitch = {rng.choice([-1, 1]) * rng.uniform(0.01, 0.3):.4f}"] if kind == "helical" else []
        names.append(f"f{k}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("oracle", [EnergyModel, PinocchioTree])
@pytest.mark.parametrize("seed", range(4))
def test_trees_with_screws_equal_other_engines(seed, oracle, tmp_path, figure):
    rng = np.random.default_rng(seed)
    kinds = ["helical", *rng.permutation(KINDS)[:4]]
    path = written(made_up(rng, rng.permutation(kinds)), tmp_path)
    robot, other = parflex.load(path), oracle(read_robot(path))
    worst = max(error_against(other, state) for state in nearby_states(robot, 5, seed))
    figure(f"tree with screws {seed} against {oracle.__name__}, largest relative error", worst, 1e-11)
    assert worst < 1e-11  # no loop: sums of products


@pytest.mark.parametrize("oracle", [EnergyModel, PinocchioTree])
def test_a_loop_of_screws_equals_other_engines(oracle, figure):
    path = ROBOTS / "screw-loop.toml"
    robot, other = parflex.load(path), oracle(read_robot(path))
    worst = max(error_against(other, state) for state in nearby_states(robot, 20, 1))
    figure(f"loop of screws against {oracle.__name__}, largest relative error", worst, 1e-10)
    assert worst < 1e-10  # systems of condition up to 1e4 in double precision


def six_screws(folder, pitch=0.008):
    """Six legs whose strokes are screws; without friction, so that both directions of a rate are alike."""
    text = (ROBOTS / "six-ups.toml").read_text()
    old, new = 'joint = "prismatic"', f'joint = "helical"\npitch = {pitch}'
    assert text.count(old) == 1 and text.count("start = 1.1") == 1
    return written(text.replace(old, new).replace("start = 1.1", f"start = {1.1 / pitch}"), folder)


@pytest.mark.verify
def test_a_platform_on_six_screws_equals_lagrange_and_its_programs(tmp_path, figure):
    path = six_screws(tmp_path)
    robot, other = parflex.load(path), EnergyModel(read_robot(path))
    model, worst, apart = parflex.model(robot, "inverse"), 0.0, 0.0
    for state in nearby_states(robot, 8, 2):
        worst = max(worst, error_against(other, state))
        here = state.configuration
        found = parflex.inverse_dynamics(robot, here, state.velocity, state.acceleration)
        chosen = [robot.tree.rate_names.index(name) for name in model.labels["qd"]]
        out = model(q=here.q, qd=found.rates[chosen], qdd=found.accelerations[chosen])["effort"]
        efforts = np.array(list(found.efforts.values()))
        apart = max(apart, largest(out - efforts) / largest(efforts))
    figure("platform on six screws against Lagrange, largest relative error", worst, 1e-9)
    assert worst < 1e-9 and apart < 1e-9  # a screw of 8 mm/rad multiplies the condition of the loops by 100


@pytest.mark.parametrize("pitch", [0.3, 0.0008, pytest.param(-0.02, marks=pytest.mark.verify)])
def test_six_screws_stand_where_six_slides_stand(pitch, tmp_path):
    """The balls sit on the axes of the screws: poses are the same, whatever way the screws have to turn for them."""
    slides, screws = parflex.load(ROBOTS / "six-ups.toml"), parflex.load(six_screws(tmp_path, pitch))
    way = np.array([link.joint.pitch or 1.0 for link in screws.tree.links for _ in link.position_labels])
    for pose in ("home", {"z": 1.3}, {"x": 0.1, "z": 0.8, "rz": 0.2}):
        expected, found = (parflex.configure(robot, pose).q for robot in (slides, screws))
        assert found * way == pytest.approx(expected, abs=1e-9)  # loops close to 1e-10 of 1.1 m


@pytest.mark.few
@pytest.mark.parametrize("name", ["inverse", "direct", "mass-matrix", "energy", "state-rates"])
@pytest.mark.parametrize("file", ["screw-loop", "ball-screw", "tree"])
def test_programs_equal_the_models(name, file, tmp_path):
    if file == "tree":
        path = written(made_up(np.random.default_rng(8), ["helical", "universal", "helical", "prismatic"]), tmp_path)
    else:
        path = ROBOTS / f"{file}.toml"
    robot = parflex.load(path)
    model = parflex.model(robot, name, friction_width=0.0)
    for state in nearby_states(robot, 3, 5):
        here = state.configuration
        found = parflex.inverse_dynamics(robot, here, state.velocity, state.acceleration)
        own = model.labels.get("qd", here.independent_names)
        chosen = [robot.tree.rate_names.index(n) for n in own]
        effort = np.array([found.efforts[n] for n in robot.actuated_names])
        given = {"q": here.q, "qd": found.rates[chosen], "qdd": found.accelerations[chosen], "effort": effort}
        given["rates"] = found.rates
        out = model(**{key: given[key] for key in model.inputs})
        if name == "inverse":
            assert out["effort"] == pytest.approx(effort, rel=1e-9, abs=1e-9 * largest(effort))
        elif name in ("direct", "state-rates"):
            wanted = found.accelerations[chosen]
            assert out["qdd" if name == "direct" else "acceleration"] == pytest.approx(
                wanted, rel=1e-8, abs=1e-8 * largest(wanted)
            )
        elif name == "mass-matrix":
            expected, _ = parflex.mass_matrix(robot, here)
            assert out["mass_matrix"] == pytest.approx(expected, rel=1e-9, abs=1e-10 * largest(expected))
        else:
            kinetic, _ = parflex.energies(robot, here, state.velocity)
            assert out["kinetic"][0] == pytest.approx(kinetic, rel=1e-10)


# -- motion --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["screw-loop", "tree"])
def test_robots_with_screws_keep_the_balance_of_energy(file, tmp_path, figure):
    if file == "tree":
        path = written(made_up(np.random.default_rng(3), ["helical", "revolute", "helical"]), tmp_path)
    else:
        path = ROBOTS / f"{file}.toml"
    robot = parflex.load(path)
    efforts = dict.fromkeys(robot.actuated_names, 0.3)
    options = {"step": 5e-4, "out_step": 0.02, "tolerance": 1e-14, "without": ["friction"]}
    run = parflex.simulate(robot, None, 0.3, effort=efforts, **options)
    size = np.ptp(run["energy.kinetic"])
    figure(f"{file} with screws: balance of energy", run.summary["energy_balance_error"] / size, 1e-8)
    assert run.summary["energy_balance_error"] < 1e-8 * size
    assert run["closure_error"].max() < 1e-11


def test_turns_of_a_screw_are_not_dropped_by_control(tmp_path):
    robot = screw(tmp_path)
    assert wrapped(robot, np.array([20.0]))[0] == 20.0
    hinge = screw(tmp_path, text=SCREW.replace('"helical"', '"revolute"').replace(f"pitch = {PITCH}\n", ""))
    assert wrapped(hinge, np.array([20.0]))[0] == pytest.approx(20 - 6 * np.pi)
    table = parflex.load(ROBOTS / "ball-screw.toml")
    run = parflex.run_control(table, f"line:x={0.05 * np.cos(0.4)},time=0.5", "ctc")  # ten turns
    assert run.columns["q.screw"][-1] == pytest.approx(-20 * np.pi, abs=0.01)  # tracking error; a turn is 6.28
    assert run.errors["max"] < 1e-5  # m; a turn more is 5 mm


def test_a_robot_of_base_parameters_has_the_same_efforts(tmp_path):
    for seed, kinds in ((1, ["helical", "revolute", "helical"]), (2, ["prismatic", "helical", "prismatic"])):
        rng = np.random.default_rng(seed)
        robot = parflex.load(written(made_up(rng, kinds), tmp_path))
        lean = parflex.base_parameters(robot)
        assert len(lean.names) < 30
        for _ in range(3):
            pose, rates, speeds = (dict(zip(robot.actuated_names, rng.uniform(-2, 2, 3), strict=True)) for _ in "123")
            one, two = (parflex.inverse_dynamics(r, pose, rates, speeds).efforts for r in (robot, lean.robot))
            assert list(two.values()) == pytest.approx(list(one.values()), rel=1e-10, abs=1e-10)


def test_a_family_of_screws_has_the_pitch_of_each(tmp_path):
    one = parflex.load(written(made_up(np.random.default_rng(4), ["helical", "revolute"]), tmp_path, "one"))
    text = (tmp_path / "one.toml").read_text()
    pitch = next(line for line in text.splitlines() if line.startswith("pitch"))
    two = parflex.load(written(text.replace(pitch, "pitch = 0.0777"), tmp_path, "two"))
    shared = family(one, two).plant(two).problem.model
    inputs = {"q": two.home + 0.3, "qd": np.array([1.0, -2.0]), "effort": np.array([0.4, 0.5])}
    alone = parflex.model(two, "state-rates", friction_width=1e-3)
    for name, values in alone(**inputs).items():
        assert shared(**inputs)[name] == pytest.approx(values, rel=1e-11)


# -- vibration and maps --------------------------------------------------------------------------------------

BEAM = """
format = 1
name = "beam-on-screw"
end_effector = "bar.tip"
[materials.steel]
elastic_modulus = 2.1e11
density = 7800
[sections.flat]
shape = "rectangle"
y = 0.01
z = 0.02
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
inertia = { mass = 1, centre = [0.1, 0, 0], about_centre = [0.01, 0.01, 0.01] }
[[frame]]
name = "screw"
parent = "arm"
joint = "helical"
pitch = 0.05
place = { position = [0.2, 0, 0], rotation = [0.3, 0.4, 0] }
spring = { stiffness = 50 }
motor_inertia = 0.02
[[frame]]
name = "bar"
parent = "screw"
beam = { length = 0.5, material = "steel", section = "flat" }
"""


def test_springs_and_rotors_of_screws_are_in_frequencies_of_many_poses(tmp_path):
    robot = parflex.load(written(BEAM, tmp_path))
    poses = np.array([[0.0], [0.7], [-1.1]])
    many = parflex.many_frequencies(robot, ["arm"], poses, modes=5)
    for pose, got in zip(poses, many.frequencies, strict=True):
        expected = parflex.natural_frequencies(robot, {"arm": float(pose[0])}, 5).frequencies
        assert got == pytest.approx(expected, rel=1e-7)
    soft = parflex.natural_frequencies(parflex.load(written(BEAM.replace("= 50", "= 5"), tmp_path)), "home", 5)
    assert soft.frequencies[0] < 0.5 * many.frequencies[0, 0]


def test_a_screw_of_small_pitch_leaves_the_plane_of_hinges(tmp_path):
    robot = screw(tmp_path, text=SCREW.replace(f"pitch = {PITCH}", "pitch = 0.0008"))
    assert plane_normal(parflex.configure(robot)) is None


DRIVE = """
format = 1
name = "drive"
[[frame]]
name = "motor"
joint = "helical"
pitch = 0.02
actuated = true
[[frame]]
name = "load"
parent = "motor"
joint = "{kind}"
{pitch}
place = {{ {place} }}
spring = {{ stiffness = 50 }}
inertia = {{ mass = 1, about_centre = [1, 1, 1] }}
"""


@pytest.mark.parametrize(
    ("kind", "pitch", "place", "drive"),
    [
        ("helical", "pitch = 0.02", "position = [0, 0, 0.1]", True),
        ("helical", "pitch = 0.02", 'rotation = ["pi", 0, 0]', True),  # a screw is the same from both ends
        ("helical", "pitch = -0.02", "position = [0, 0, 0.1]", False),
        ("helical", "pitch = 0.02", "position = [0.1, 0, 0]", False),
        ("revolute", "", "position = [0, 0, 0.1]", False),
    ],
)
def test_a_spring_is_an_elastic_drive_of_a_screw_only_with_its_pitch(kind, pitch, place, drive, tmp_path):
    robot = parflex.load(written(DRIVE.format(kind=kind, pitch=pitch, place=place), tmp_path))
    assert len(robot.drive_springs) == drive


# -- the file ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (f"pitch = {PITCH}\n", "", "needs its pitch"),
        (f"pitch = {PITCH}", "pitch = 0", "pitch of zero"),
        (f"pitch = {PITCH}", "pitch = inf", "pitch"),
        (f"pitch = {PITCH}", "pitch = nan", "pitch"),
        (f"pitch = {PITCH}", 'pitch = "fine"', "pitch"),
        ('"helical"', '"revolute"', "a revolute joint has no pitch"),
        ('joint = "helical"', "", "a fixed joint has no pitch"),
        ("format = 1", 'format = 1\nmotion = "planar"\ngravity = [0, -9.81, 0]', "leaves the plane"),
        ("actuated = true", "actuated = true\nstart = [1, 2]", "2 start values"),
    ],
)
def test_what_no_screw_can_be_is_refused_in_words(old, new, said, tmp_path):
    assert old in SCREW
    with pytest.raises(RobotFileError) as caught:
        screw(tmp_path, text=SCREW.replace(old, new, 1))
    assert said in str(caught.value)


def test_a_screw_is_told_and_drawn(tmp_path):
    robot = parflex.load(ROBOTS / "screw-loop.toml")
    assert "crank (helical, motor)" in parflex.explain(robot).as_text()
    parflex.draw(robot, None, tmp_path / "screw.png")
    signals = parflex.model(robot, "inverse").signals
    units = {(signal["group"], signal["name"]): signal["unit"] for signal in signals}
    assert units["effort", "crank"] == "N m" and units["q", "crank"] == "rad" and units["q", "follower"] == "m"
    assert robot.tree.links[0].joint.unit == "rad"


def test_a_screw_may_have_limits_and_a_sensor(tmp_path):
    text = (ROBOTS / "ball-screw.toml").read_text().replace("actuated = true", "sensed = true\nlimits = [-99, 99]")
    text = text.replace('joint = "prismatic"', 'joint = "prismatic"\nactuated = true')
    robot = parflex.load(written(text, tmp_path))
    assert [robot.tree.rate_names[k] for k in robot.sensed] == ["screw"]
    again = robot.sensing(["screw"])
    assert again.sensed == robot.sensed
    found = parflex.redundant_model(robot)
    assert found is not None
