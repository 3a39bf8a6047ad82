"""Programs and runs of robots with couplings and elements against Lagrange and the models; families of robots."""

import numpy as np
import pytest
from support.comparison import accelerated, chosen, largest, nearby_states
from support.coupled_robots import RIGID, pair, saddle
from support.emitted import c_library, llvm_batch
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file

import parflex
from parflex.codegen.family import family_model, member_model


def test_a_family_of_gears_has_the_ratio_of_each(tmp_path):
    one = pair(tmp_path, "terms = { pinion = -3 }", name="one")
    two = pair(tmp_path, "terms = { pinion = -2.5 }\noffset = 0.2", name="two")
    shared = member_model(family_model(one, two, "state-rates"), two)
    q = two.home.copy()
    q[:2] = 0.3, 0.2 - 2.5 * 0.3
    inputs = {"q": q, "qd": np.array([1.0]), "effort": np.array([0.4])}
    for name, values in parflex.model(two, "state-rates")(**inputs).items():
        assert shared(**inputs)[name] == pytest.approx(values, rel=1e-11)


def test_a_family_of_robots_may_differ_in_its_elements():
    robot = load_robot("rod-linkage")
    changed = {"element.1.stiffness": 95, "element.1.rest": 0.45, "point.0.position": [0.21, 0, 0.05]}
    other = load_robot("rod-linkage", settings=changed)
    made = family_model(robot, other, "state-rates")
    assert "rest[link]" in made.parameters and any("stiffness" in word for word in made.parameters)
    for one in (robot, other):
        program, at = member_model(made, one), parflex.Configuration(one, one.home)
        own = [one.rates.index(name) for name in program.labels["qd"]]
        qd = at.motions @ np.linalg.solve(at.motions[own], [0.3, -0.2])
        expected = accelerated(at, qd, [1.0, 2.0]).accelerations[own]
        out = program(q=at.q, qd=qd[own], effort=[1.0, 2.0])["acceleration"]
        assert out == pytest.approx(expected, abs=1e-9)  # rounding of accelerations up to 1e2


def test_gears_of_two_efficiencies_are_no_family(tmp_path):
    one, two = (pair(tmp_path, f"terms = {{ pinion = -4 }}\nefficiency = {e}", name=f"e{e}") for e in (0.8, 0.7))
    with pytest.raises(parflex.InputError, match="differ in more than numbers"):
        family_model(one, two, "state-rates")


BEAMS = ("geared-beams", "sprung-beams")
ROBOTS = [*RIGID, "sprung-arm", "sprung-five-bar", "rod-linkage", "struts", *BEAMS]


def load(name):
    return load_robot(name, actuation=RIGID.get(name))


@pytest.mark.few("geared-five-bar-llvm", "planetary-c", "struts-llvm", "sprung-arm-c")
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", ROBOTS)
def test_programs_equal_lagrange(name, target, tmp_path):
    robot, data = load(name), read_robot(robot_file(name))
    rods = {row.name: row.rest for row in robot.closures.constraints if getattr(row, "kind", "") == "rod"}
    for element in data.elements:  # the files leave their lengths out: as long as they start
        if element.kind == "rod":
            object.__setattr__(element, "rest", rods[element.name])
    oracle = (FlexibleEnergyModel if name in BEAMS else EnergyModel)(data)
    inverse = target == "llvm" and robot.nu == len(robot.independent)
    for word in ("inverse", "direct") if inverse else ("direct",):
        model = parflex.model(robot, word)
        own = [robot.rates.index(label) for label in model.labels["qd"]]
        for state in nearby_states(robot, 2, 9):
            at = state.configuration
            effort, qd = dict.fromkeys(robot.motors, 1.7), at.motions @ np.ones(at.motions.shape[1])
            qdd, _ = saddle(oracle, at, qd, effort)
            given = {"q": at.q, "qd": qd[own], "qdd": qdd[own], "effort": np.full(robot.nu, 1.7)}
            given["motor_acceleration"] = qdd[list(robot.actuated)]
            arrays = {key: np.array([given[key]]) for key in model.inputs}
            found = llvm_batch(model, arrays) if target == "llvm" else c_library(model, arrays, tmp_path)
            if word == "direct":
                assert found["qdd"][0] == pytest.approx(qdd[own], rel=1e-9, abs=1e-9 * largest(qdd))
            else:  # of inertial terms to 1e3 N m
                assert found["effort"][0] == pytest.approx(given["effort"], rel=1e-7, abs=1e-9 * largest(qdd))


def moving(robot, pose=None):
    """A pose, rates, and the inverse model for accelerations that go with them."""
    at = parflex.configure(robot, pose)
    qd = at.motions @ np.linspace(0.5, 1.0, at.motions.shape[1])
    qdd = at.acceleration_bias(qd) + at.motions @ np.linspace(-2.0, 3.0, at.motions.shape[1])
    return at, qd, parflex.inverse_dynamics(robot, at, chosen(at, qd), chosen(at, qdd))


MODELS = ["mass-matrix", "energy", "kinematics", "geometry", "step"]


@pytest.mark.few("five-bar", "struts-step", "struts-kinematics")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("name", "pose"), [("geared-five-bar", {"motor": 3.0}), ("struts", None)])
def test_other_programs_equal_the_models(name, pose, model):
    robot = load(name)
    program, (at, qd, found) = parflex.model(robot, model), moving(robot, pose)
    motors, places = list(robot.actuated), [robot.coordinates.index(motor) for motor in robot.motors]
    own = [robot.rates.index(label) for label in program.labels.get("qd", robot.motors)]
    guess = at.q + 1e-3
    if name == "geared-five-bar" or model == "geometry":
        guess[places] = at.q[places] if name == "geared-five-bar" else guess[places] + 0.01
    if model == "geometry" and name == "struts":
        guess = np.where(np.isin(np.arange(robot.nq), places), guess, at.q)  # the platform stands
    given = {"q": at.q, "qd": qd[own], "rates": qd, "last": guess, "guess": guess, "motor_position": at.q[places]}
    given |= {"motor_rate": qd[motors], "motor_acceleration": found.accelerations[motors]}
    out = program(**{key: np.asarray(given[key], dtype=float) for key in program.inputs})
    if model == "mass-matrix":
        assert out["mass_matrix"] == pytest.approx(parflex.mass_matrix(robot, at).matrix, rel=1e-10, abs=1e-12)
    elif model == "energy":
        energies = [out["kinetic"][0], out["elastic"][0] + out["gravity"][0]]
        assert energies == pytest.approx(tuple(parflex.energies(at, qd)), rel=1e-10)
    elif model == "kinematics":
        assert out["rates"] == pytest.approx(qd, rel=1e-9, abs=1e-10)
    elif model == "geometry":
        assert out["q"] == pytest.approx(at.q, abs=1e-9)
    else:
        assert out["effort"] == pytest.approx(list(found.efforts.values()), rel=1e-6)


SENSED = {"geared-five-bar": ["right.elbow"], "sprung-five-bar": ["left.elbow", "right.elbow"]}


@pytest.mark.parametrize("name", SENSED)
def test_models_by_sensors_know_couplings_and_elements(name):
    robot = load(name).sensing(SENSED[name])
    at, qd, found = moving(robot)
    efforts, program = list(found.efforts.values()), parflex.model(robot, "redundant")
    own = [robot.rates.index(label) for label in program.labels["qd"]]
    out = program(q=at.q, qd=qd[own], qdd=found.accelerations[own])
    assert out["effort"] == pytest.approx(efforts, rel=1e-9)
    matrices = parflex.redundant_model(robot, at, {motor: qd[robot.rates.index(motor)] for motor in robot.motors})
    own = [robot.rates.index(label) for label in matrices.names]
    again = matrices.D @ found.accelerations[own] + matrices.C @ qd[own] + matrices.G + matrices.H
    assert again == pytest.approx(efforts, rel=1e-9)
    places = [robot.coordinates.index(label) for label in matrices.names]
    assert parflex.geometry_from_sensors(robot, at.q[places], at.q + 1e-2) == pytest.approx(at.q, abs=1e-9)


WRENCH = {"struts": {"platform": [10, 0, -50]}}


@pytest.mark.few("screw-jack", "geared-beams", "sprung-five-bar", "struts")
@pytest.mark.parametrize("name", [name for name in ROBOTS if name not in ("differential", "nut-in-loop")])
def test_runs_keep_the_balance_of_energy_and_have_the_forces_of_the_models(name, figure):
    robot = load(name)
    effort, words = dict.fromkeys(robot.motors, 0.05), {"without": ["friction"], "wrench": WRENCH.get(name)}
    run = parflex.simulate(robot, None, 0.3, effort=effort, step=5e-4, out_step=0.05, **words)
    size = np.ptp(run["energy.kinetic"])
    limit = 1e-7 if name in RIGID or name == "geared-beams" else 1e-5  # fourth order at this step; beams vibrate fast
    figure(f"{name}: balance of energy", run.summary["energy_balance_error"] / size, limit)
    assert run.summary["energy_balance_error"] < limit * size
    q, change = (np.array([run[f"{word}.{c}"][-1] for c in robot.coordinates]) for word in ("q", "qd"))
    at = parflex.Configuration(robot, q)
    told = accelerated(at, robot.tree.rates(q, change), list(effort.values()), reactions=True, **words)
    for element, values in told.elements.items():
        assert run[f"element.{element}.length"][-1] == pytest.approx(values["length"], rel=1e-9)
        assert run[f"element.{element}.force"][-1] == pytest.approx(values["force"], rel=1e-6, abs=1e-8)
    for coupling, values in told.reactions.get("couplings", {}).items():
        assert run[f"coupling.{coupling}.effort"][-1] == pytest.approx(values["effort"], rel=1e-5, abs=1e-6)
