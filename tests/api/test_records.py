"""What functions hand out: short lines, equality by value, hashes, pickles and copies."""

import copy
import dataclasses
import importlib
import inspect
import os
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.cases import PUBLIC, VERIFY
from support.peers import import_some

import parflex
from parflex.records import Record, equal

LONGEST = 300  # letters: a line or two of a terminal
STUDY = {"robot": "5r", "laws": ["ctc"], "percentages": [1], "templates": 1, "seed": 1, "vary": ["masses"]}
COLUMNS = {"t": np.linspace(0.0, 1.0, 40), "tip.x": np.sin(np.linspace(0.0, 9.0, 40)), "energy.total": np.ones(40)}
TIMES = np.arange(600) * 2e-3
RECORD = {"t": TIMES, "q.axis": 0.1 * np.sin(9 * TIMES), "effort.axis": 30 * np.cos(9 * TIMES)}


def five(state: object, argument: str) -> float:
    """A response of one's own."""
    return 5.0


PROBLEM = """
robot = "dualemps"
steps = 2
[variables.constants.offset]
lower = 0.06
upper = 0.08
[responses.first]
response = "frequency:1"
[objective]
maximise = "first"
"""


@pytest.fixture(scope="module")
def flat():
    return parflex.load("3rrr")


@pytest.fixture(scope="module")
def flexible():
    return parflex.load("dualemps")


@pytest.fixture(scope="module")
def program(flat):
    return parflex.model(flat, "inverse")


TRACKED = {
    "columns": {"motors": {"left.1": "a", "right.1": "b"}, "pose": [{"frame": "tip", "x": "x", "deviation": 1e-4}]}
}
TRACKED |= {"over": [("x", -0.1, 0.1, 5)]}


def probed(robot):
    """Motors of a five-bar and where its tip is, in four poses."""
    places = [(0.0, 0.4), (0.05, 0.4), (0.0, 0.45), (-0.05, 0.42)]
    here = [parflex.configure(robot, {"x": x, "y": y}) for x, y in places]
    columns = {name: [float(at.q[robot.coordinates.index(name)]) for at in here] for name in robot.motors}
    return columns | {f"tip.{axis}": [place[k] for place in places] for k, axis in enumerate("xy")}


def slow(call):
    """Answers that only `make verify` computes."""
    return call() if VERIFY else None


@pytest.fixture(scope="module")
def answers(flat, flexible, program, tmp_path_factory):
    """What every public function gives, called as people call it."""
    moved = tmp_path_factory.mktemp("run") / "run.npz"
    circle = {"kind": "circle", "radius": 0.02, "time": 0.02}
    small = parflex.load("5r")
    run = parflex.simulate(small, time=0.01)
    run.save(moved)
    modes = parflex.natural_frequencies(flexible, modes=2)
    folder = moved.parent
    (folder / "problem.toml").write_text(PROBLEM)
    (folder / "sweep.toml").write_text(PROBLEM + "[samples]\nkind = 'sobol'\ncount = 1\n")
    measured = flat.home[[flat.tree.links[flat.tree.link_of_rate[k]].q.start for k in flat.actuated]]
    answers = {
        "PD": parflex.PD(100.0, 10.0),
        "add_response": parflex.add_response("five", five, "m", "Five."),
        "base_parameters": parflex.base_parameters(flat),
        "calibrate": slow(lambda: parflex.calibrate(small, probed(small), ["constants.proximal"])),
        "cartesian_stiffness": parflex.cartesian_stiffness(flexible),
        "catalogue_names": parflex.catalogue_names(),
        "configure": parflex.configure(flat, {"x": 0.01}),
        "deflection": parflex.deflection(flexible, wrench={"17": [0.0, 5.0, 0.0]}),
        "energies": parflex.energies(flat),
        "equilibrium": parflex.equilibrium(flexible),
        "explain": parflex.explain(flat),
        "export_fmu": slow(lambda: parflex.export_fmu(small, folder / "robot.fmu")),
        "update": slow(
            lambda: parflex.update(flexible, [{"pose": "home", "mode": 1, "frequency_hz": 14}], "constants.blade")
        ),
        "excite": slow(lambda: parflex.excite(parflex.load("emps"), 4.0, 2, velocity_limit=0.5, starts=1)),
        "export_mjcf": parflex.export_mjcf(flat, folder / "robot.xml"),
        "export_urdf": (exported := parflex.export_urdf(flat, folder / "robot.urdf")),
        "forward_dynamics": parflex.forward_dynamics(flexible),
        "frames": parflex.frames(flat),
        "frequency_map": parflex.frequency_map(flexible, [("11", -0.05, 0.05, 3)], modes=2),
        "gains_from": parflex.gains_from(),
        "geometric_solutions": slow(lambda: parflex.geometric_solutions(flat)),
        "geometry_from_sensors": parflex.geometry_from_sensors(flat.sensing([]), measured),
        "identify": parflex.identify(parflex.load("emps"), RECORD, cutoff=50),
        "import_robot": slow(lambda: import_some(exported.file, folder / "read.toml", loops=exported.files[1])),
        "inverse_dynamics": parflex.inverse_dynamics(flat, "home", acceleration={"x": 1.0}, reactions=True),
        "jacobian": parflex.jacobian(flat),
        "linear_model": parflex.linear_model(flexible),
        "load": flat,
        "load_run": parflex.load_run(moved),
        "many_frequencies": parflex.many_frequencies(flexible, ["11"], np.array([[0.0], [0.01]]), modes=2),
        "many_responses": parflex.many_responses(flexible, ["11"], [[0.0], [0.01]], ["stiffness:x", "shape:1"]),
        "mass_matrix": parflex.mass_matrix(flat),
        "model": program,
        "natural_frequencies": modes,
        "optimise": slow(lambda: parflex.optimise(folder / "problem.toml")),
        "plan_calibration": slow(lambda: parflex.plan_calibration(small, ["constants.proximal"], 3, **TRACKED)),
        "plan_motion": parflex.plan_motion(flexible, "square"),
        "redundant_model": parflex.redundant_model(flat),
        "reproduce": slow(lambda: parflex.reproduce("Zubizarreta2010", quick=True)[:2]),
        "run_control": slow(lambda: parflex.run_control(small, circle, "ctc")),
        "run_differences": parflex.run_differences(COLUMNS, COLUMNS),
        "run_study": slow(lambda: parflex.run_study(parflex.StudyFile(**STUDY, reference=circle), jobs=1)),
        "sensitivities": slow(lambda: parflex.sensitivities(flexible, "frequency:1", ["constants.offset"])),
        "simulate": run,
        "spectrum_peaks": parflex.spectrum_peaks(COLUMNS, ["tip.x"]),
        "state_space": parflex.state_space(flexible, ["17.fx"], ["17.x"]),
        "sweep": slow(lambda: parflex.sweep(folder / "sweep.toml", jobs=1)),
        "tolerance": slow(lambda: parflex.tolerance(small, {"constants.proximal": 1e-4}, samples=20)),
        "track_modes": parflex.track_modes(flexible, ["home", {"11": 0.02, "21": 0.0}], modes=2),
    }
    return {name: answer for name, answer in answers.items() if answer is not None}


def parts_of(value, depth: int = 3) -> list:
    """A record and the records in it, as far as people go into them."""
    if isinstance(value, list | tuple):
        return [part for entry in value[:3] for part in parts_of(entry, depth)]
    if not isinstance(value, Record) or not depth:
        return []
    inside = [getattr(value, field.name) for field in dataclasses.fields(value) if not field.name.startswith("_")]
    return [value, *(part for entry in inside for part in parts_of(entry, depth - 1))]


@pytest.mark.verify
def test_every_public_function_is_called_here(answers):
    assert {name for name in PUBLIC if not name.startswith("draw")} <= set(answers)


@pytest.mark.verify
def test_lines_are_short_and_say_what_it_is(answers):
    parts = [part for answer in answers.values() for part in parts_of(answer)]
    assert len({type(part) for part in parts}) > (25 if VERIFY else 15)
    for part in parts:
        assert type(part).__name__ in repr(part) and len(repr(part)) < LONGEST and "\n" not in repr(part)
        assert "object at 0x" not in repr(part)
    assert len(repr(answers["load"].description)) < LONGEST
    named = ("load", "inverse_dynamics", "forward_dynamics", "natural_frequencies", "simulate")
    shown = {name: repr(answers[name]) for name in named}
    assert shown["load"].startswith("<Robot 3rrr: 3 degrees of freedom, motors leg1.1, leg2.1, leg3.1, rigid")
    assert shown["inverse_dynamics"].startswith("<Result 3rrr: efforts leg1.1 1.5889 N m, leg2.1")
    assert shown["forward_dynamics"].startswith("<Result dualemps: accelerations 11 0 m/s2, 21 0 m/s2")
    assert shown["natural_frequencies"] == "<Modes dualemps: 2 modes, 14.21, 25.04 Hz>"
    assert shown["simulate"].startswith("<Run 5r: 11 rows to t = 0.01 s")
    assert "441 operators" in repr(answers["model"]) and "effort[3]" in repr(answers["model"])


@pytest.mark.verify
def test_everything_pickles_and_copies_and_is_equal_to_its_copy(answers):
    for name, answer in answers.items():
        again, copied = pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)
        assert equal(again, answer) and equal(copied, answer), name
        for part in parts_of(answer):
            assert part == copy.copy(part)
            if type(part).__dataclass_params__.frozen:
                assert hash(part) == hash(pickle.loads(pickle.dumps(part))), type(part)
            else:
                with pytest.raises(TypeError, match="unhashable"):
                    hash(part)


def test_results_that_differ_are_unequal(flat, flexible, answers):
    one = parflex.inverse_dynamics(flat, "home", acceleration={"x": 1.0}, reactions=True)
    assert one == answers["inverse_dynamics"]
    assert one != parflex.inverse_dynamics(flat, "home", acceleration={"x": 1.1}, reactions=True)
    assert answers["natural_frequencies"] == parflex.natural_frequencies(flexible, modes=2)
    assert answers["natural_frequencies"] != parflex.natural_frequencies(flexible, modes=1)
    assert answers["model"] != parflex.model(flat, "direct")
    columns = dict(answers["simulate"].columns)
    other = dataclasses.replace(answers["simulate"], columns=columns | {"t": columns["t"] + 1e-9})
    assert other != answers["simulate"] and answers["simulate"] != columns


def test_two_loads_of_a_robot_are_equal_and_other_robots_are_not(flat):
    assert parflex.load("3rrr") == flat and hash(parflex.load("3rrr")) == hash(flat)
    assert {flat: 1}[parflex.load("3rrr")] == 1
    assert parflex.load("3rrr", settings={"platform.inertia.mass": 7}) != flat
    assert parflex.load("5r") != flat and flat != "3rrr"


def test_errors_pickle_with_what_they_know(flat):
    """A pool of processes hands them over."""
    with pytest.raises(parflex.UnreachableError) as caught:
        parflex.configure(flat, {"x": 9.0})
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is parflex.UnreachableError and str(again) == str(caught.value)
    assert vars(again) == vars(caught.value)


def test_positions_stay_read_only_in_copies(flat):
    here = parflex.configure(flat, {"x": 0.01})
    for other in (pickle.loads(pickle.dumps(here)), copy.deepcopy(here)):
        with pytest.raises(ValueError, match="read-only"):
            other.q[0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            other.robot.home[0] = 1.0


CHILD = """import pickle, sys
robot, model, result = pickle.load(sys.stdin.buffer)
import parflex
anew = parflex.inverse_dynamics(robot, "home", acceleration={"x": 1.0}, reactions=True)
pickle.dump((anew, model(**model.sample)), sys.stdout.buffer)
"""


@pytest.mark.verify
def test_pickles_are_read_in_another_process(answers, flat, program):
    given = pickle.dumps((flat, program, answers["inverse_dynamics"]))
    paths = os.pathsep.join([str(Path(parflex.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    words = {"capture_output": True, "check": True, "env": os.environ | {"PYTHONPATH": paths}}
    ran = subprocess.run([sys.executable, "-c", CHILD], input=given, **words)
    result, outputs = pickle.loads(ran.stdout)
    assert result == answers["inverse_dynamics"]
    assert np.array_equal(outputs["effort"], program(**program.sample)["effort"])


def test_no_dataclass_with_arrays_compares_as_a_tuple():
    """`==` of generated methods asks an array whether it is true; a hash of one is refused."""
    for module in pkgutil.walk_packages(parflex.__path__, "parflex."):
        if module.name.endswith("__main__"):
            continue
        for kind in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(kind) and dataclasses.is_dataclass(kind) and kind.__module__ == module.name:
                arrays = [f.name for f in dataclasses.fields(kind) if f.compare and "Array" in str(f.type)]
                safe = issubclass(kind, Record) and not kind.__dataclass_params__.eq
                assert not arrays or safe, f"{module.name}.{kind.__name__} holds {arrays} and is no record"
