"""FMUs: validated and run by FMPy, beside `simulate`."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import fmpy
import fmpy.fmi2
import fmpy.fmi3
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from support.fmu_units import EFFORTS, STEP, Unit, as_run, exported, given
from support.shared_libraries import libraries_in

import parflex
from parflex.cli.main import main

ROWS = 40
LONG = (pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify"))
ROBOTS = ["5r", *(pytest.param(name, marks=LONG) for name in EFFORTS if name != "5r")]
SOFT = ("qdd.", "ax", "ay", "az", "alx", "aly", "alz", "friction.", "energy.", "power.", "closure_error")


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("fmi", [2, 3])
def test_co_simulation_makes_the_steps_of_simulate(name, fmi, figure):
    file, efforts = exported(name, fmi), given(name)
    assert validate_fmu(str(file)) == []
    unit = Unit(file)
    unit.start(efforts)
    names = unit.names("output")
    rows = np.vstack([unit.get(names), unit.run(0, ROWS, names)])
    unit.close()
    run = parflex.simulate(
        parflex.load(name), **as_run(name), time=ROWS * STEP, step=STEP, out_step=STEP, method="gauss4"
    )
    assert [word for word in unit.names("input") if word.startswith("wrench.")] == [
        word for word in efforts if word.startswith("wrench.")
    ]  # planar robots have those of the plane alone
    assert set(names) | {word for word in efforts if word.startswith("effort.")} | {"t"} == set(run.columns)
    hard = [k for k, column in enumerate(names) if not any(column.endswith(w) or column.startswith(w) for w in SOFT)]
    worst = max(np.abs(rows[:, k] - run[names[k]]).max() / max(1.0, float(np.abs(run[names[k]]).max())) for k in hard)
    figure(f"{name}: co-simulation of FMI {fmi} beside a run", worst, 1e-9)
    for k, column in enumerate(names):
        # the same steps: what differs is rounding of sines, which stiff beams enlarge in accelerations
        limit = 1e-5 if any(column.endswith(word) or column.startswith(word) for word in SOFT) else 1e-9
        size = max(1.0, float(np.abs(run[column]).max()))
        assert np.abs(rows[:, k] - run[column]).max() < limit * size, column
    assert rows[:, names.index("closure_error")].max() < 1e-12


# friction that sticks, gears that lose power, elastic drives, cables, screws, stiff beams: by each method
OTHERS = [
    ("gear-with-friction", "gauss4", STEP), ("beam-with-friction", "gauss4", STEP), ("elastic-drive", "gauss6", STEP),
    ("sprung-five-bar", "dopri5", STEP), ("planar-cable", "gauss4", STEP), ("screw-loop", "rk4", STEP),
    ("slider-crank-flexible", "generalized-alpha", 1e-4),
]  # fmt: skip


@pytest.mark.verify
@pytest.mark.parametrize(("name", "method", "step"), OTHERS)
def test_other_kinds_of_robots_make_the_steps_of_simulate(name, method, step, tmp_path, figure):
    own = Path(__file__).parent / "robots" / f"{name}.toml"
    robot = parflex.load(own if own.exists() else name)
    unit = Unit(Path(parflex.export_fmu(robot, tmp_path / "robot.fmu", method=method, step=step).file))
    names = [word for word in unit.names("output") if not any(word.endswith(w) or word.startswith(w) for w in SOFT)]
    push = dict.fromkeys(robot.actuated_names, 0.2)
    unit.start({f"effort.{motor}": value for motor, value in push.items()})
    rows = [unit.get(names)]
    for k in range(ROWS):
        unit.unit.doStep(k * step, step)
        rows.append(unit.get(names))
    unit.close()
    run = parflex.simulate(robot, effort=push, time=ROWS * step, step=step, out_step=step, method=method)
    found = np.array(rows)
    worst = max(np.abs(found[:, k] - run[c]).max() / max(1.0, np.abs(run[c]).max()) for k, c in enumerate(names))
    figure(f"{name}: co-simulation by {method} beside a run", float(worst), 1e-9)
    assert worst < 1e-9  # the same steps


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="a minute of compiling: make verify")
def test_many_elements_make_the_steps_of_simulate(tmp_path, figure):
    """From 24 elements on, runs call one function for alike elements; a unit has all written out."""
    robot = parflex.load("dualemps", elements=8)
    unit = Unit(Path(parflex.export_fmu(robot, tmp_path / "robot.fmu", step=STEP).file))
    names = ["P.x", "P.y", "P.theta", *(f"q.{name}" for name in robot.tree.position_names)]
    unit.start(given("dualemps"))
    rows = [unit.get(names)]
    for k in range(ROWS):
        unit.unit.doStep(k * STEP, STEP)
        rows.append(unit.get(names))
    unit.close()
    run = parflex.simulate(robot, **as_run("dualemps"), time=ROWS * STEP, step=STEP, out_step=STEP)
    found = np.array(rows)
    worst = max(np.abs(found[:, k] - run[c]).max() / max(1.0, np.abs(run[c]).max()) for k, c in enumerate(names))
    figure("dualemps of 24 elements: co-simulation beside a run", float(worst), 1e-9)
    assert worst < 1e-9 and np.ptp(found, axis=0).max() > 1e-6  # the same steps, and they move


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("fmi", [2, 3])
def test_a_saved_state_is_restored_and_runs_on_bit_for_bit_beside_another_instance(name, fmi):
    first, second = (Unit(exported(name, fmi)) for _ in range(2))
    names = first.names("output")
    first.start(given(name))
    second.start({word: -value for word, value in given(name).items()})
    first.run(0, 5, names)
    kept = first.state()
    once = first.run(5, 15, names)
    other = second.run(0, 10, names)  # in between, in the same process
    first.restore(kept)
    assert np.array_equal(first.run(5, 15, names), once)
    assert np.abs(once - other).max() > 1e-3
    for unit in (first, second):
        unit.close()


@pytest.mark.parametrize("fmi", [2, 3])
def test_model_exchange_has_the_derivatives_of_the_direct_model(fmi):
    file = exported("5r", fmi, "me")
    result = fmpy.simulate_fmu(
        str(file), start_values=given("5r"), stop_time=0.05, solver="CVode", relative_tolerance=1e-11,
        output=["q.left.1", "q.right.1", "closure_error"], output_interval=0.01,
    )  # fmt: skip
    run = parflex.simulate(
        parflex.load("5r"), **as_run("5r"), time=0.05, step=1e-4, out_step=0.01, method="gauss6", without=["friction"]
    )
    for column in ("q.left.1", "q.right.1"):
        assert np.abs(result[column] - run[column]).max() < 1e-8  # the tolerance of CVode, over five hundred steps
    assert result["closure_error"].max() < 1e-12


def by_runge_kutta(unit: Unit, states: list[str], step: float, count: int, names: list[str]) -> np.ndarray:
    """The classical method, as a master of model exchange makes it."""
    slopes, rows = [f"der({name})" for name in states], [unit.get(names)]

    def slope(x: np.ndarray, t: float) -> np.ndarray:
        unit.unit.setTime(t)
        unit.put(dict(zip(states, x, strict=True)))
        return unit.get(slopes)

    x = unit.get(states)
    for k in range(count):
        t = k * step
        one = slope(x, t)
        two = slope(x + step / 2 * one, t + step / 2)
        three = slope(x + step / 2 * two, t + step / 2)
        four = slope(x + step * three, t + step)
        x = x + step / 6 * (one + 2 * two + 2 * three + four)
        slope(x, t + step)
        rows.append(unit.get(names))
    return np.array(rows)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("fmi", [2, 3])
def test_model_exchange_with_the_steps_of_a_run_is_that_run(name, fmi, figure):
    step = 1e-6 if parflex.load(name).tree.elastic else STEP  # explicit steps must be stable
    file = exported(name, fmi, "me")
    assert validate_fmu(str(file)) == []
    unit = Unit(file, "ModelExchange")
    unit.start(given(name))
    unit.unit.enterContinuousTimeMode()
    states = [v.name for v in unit.about.modelVariables if v.name.startswith("state.")]
    names = [
        column for column in unit.names("output") if not any(column.endswith(w) or column.startswith(w) for w in SOFT)
    ]
    rows = by_runge_kutta(unit, states, step, ROWS // 2, names)
    unit.close()
    run = parflex.simulate(
        parflex.load(name), **as_run(name), time=ROWS // 2 * step, step=step, out_step=step, method="rk4",
        without=["friction"], check_steps=False,
    )  # fmt: skip
    sizes = [max(1.0, float(np.abs(run[column]).max())) for column in names]
    worst = max(np.abs(rows[:, k] - run[column]).max() / sizes[k] for k, column in enumerate(names))
    figure(f"{name}: model exchange of FMI {fmi} beside a run", worst, 1e-9)
    assert worst < 1e-9  # the same steps


def test_motors_that_follow_motions_have_efforts_as_outputs():
    robot = parflex.load("5r")
    unit = Unit(exported("5r", 2, "cs", "motions"))
    motors = robot.actuated_names
    home = dict(zip(robot.coordinates, robot.home, strict=True))
    push = {motor: 2.0 * (k + 1) for k, motor in enumerate(motors)}
    unit.start({f"qdd.{motor}": value for motor, value in push.items()})
    names = [f"effort.{motor}" for motor in motors]
    for k in range(20):
        t = k * STEP
        for motor, a in push.items():
            unit.put({f"q.{motor}": home[motor] + a * t * t / 2, f"qd.{motor}": a * t, f"qdd.{motor}": a})
        unit.unit.doStep(t, STEP)
    t, found = 20 * STEP, unit.get(names)
    q = {motor: home[motor] + a * t * t / 2 for motor, a in push.items()}
    expected = parflex.inverse_dynamics(robot, q, {motor: a * t for motor, a in push.items()}, push).efforts
    assert np.abs(found - list(expected.values())).max() < 1e-9
    unit.close()


def test_motors_that_follow_motions_start_where_the_robot_stands():
    robot = parflex.load("5r")
    unit = Unit(exported("5r", 2, "cs", "motions"))
    unit.start({})
    motors = unit.get([f"q.{motor}" for motor in robot.actuated_names])
    assert np.abs(motors - [robot.home[robot.coordinates.index(motor)] for motor in robot.actuated_names]).max() < 1e-12
    assert unit.get(["closure_error"])[0] < 1e-12
    unit.close()


@pytest.mark.parametrize("fmi", [2, 3])
def test_the_sources_inside_make_the_same_library(fmi, tmp_path):
    """As a master makes it that compiles FMUs itself: of the files that the FMU lists, of C99."""
    file = exported("5r", fmi)
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "fmu")
    about = fmpy.read_model_description(str(tmp_path / "fmu"))
    (files,) = [one.sourceFiles for way in about.buildConfigurations for one in way.sourceFileSets]
    (library,) = (tmp_path / "fmu" / "binaries").glob("*/*")
    library.unlink()
    command = ["cc", "-std=c99", "-O0", "-w", "-fPIC", "-shared", *files, "-o", str(library), "-lm"]
    subprocess.run(command, cwd=tmp_path / "fmu" / "sources", check=True)
    rows = []
    for place in (tmp_path / "fmu", file):
        unit = Unit(place)
        unit.start(given("5r"))
        rows.append(unit.run(0, 5, unit.names("output")))
        unit.close()
    assert np.abs(rows[0] - rows[1]).max() < 1e-9  # the same steps, by another optimisation


def test_an_fmu_has_units_a_page_and_sources_inside():
    with zipfile.ZipFile(exported("5r")) as archive:
        names = archive.namelist()
        assert {"modelDescription.xml", "documentation/index.html", "sources/unit.c"} <= set(names)
        text = archive.read("modelDescription.xml").decode()
    assert '<Unit name="N.m">' in text and 'name="effort.left.1"' in text


def test_the_command_line_tells_file_platforms_and_variables(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["export", "fmu", "5r", "--fmi", "3", "--kind", "cs", "--drive", "efforts", "--method", "rk4"]
    with pytest.raises(SystemExit) as done:
        main([*words, "--step", "0.001", "--platforms", "own", "-o", "5r.fmu", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert done.value.code == 0 and answer["file"] == "5r.fmu" and len(answer["platforms"]) == 1
    assert {"name": "tip.x", "causality": "output", "unit": "m"} in answer["variables"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"fmi": 1}, "there is no FMI 1"),
        ({"kind": "both"}, "there is no kind 'both'"),
        ({"drive": "motors"}, "there is no drive 'motors'"),
        ({"method": "euler"}, "there is no method 'euler'"),
        ({"platforms": "some"}, "there are no platforms 'some'"),
        ({"frames": ["nowhere"]}, "there is no frame 'nowhere'"),
    ],
)
def test_fmus_that_cannot_be_are_refused_in_a_sentence(arguments, says, tmp_path):
    with pytest.raises(parflex.InputError, match=says):
        parflex.export_fmu(parflex.load("5r"), tmp_path / "5r.fmu", **arguments)


def test_motions_of_more_motors_than_freedoms_and_missing_compilers_are_refused(tmp_path, monkeypatch):
    with pytest.raises(parflex.InputError, match="4 motors for 3 freedoms"):
        parflex.export_fmu(parflex.load("4rrr"), tmp_path / "4rrr.fmu", drive="motions")
    monkeypatch.setattr(shutil, "which", lambda word: None)
    with pytest.raises(parflex.InputError, match="there is no C compiler") as refused:
        parflex.export_fmu(parflex.load("5r"), tmp_path / "5r.fmu", method="rk4")
    assert "pip install 'parflex[fmu]'" in refused.value.hint


# of each platform: processors, and what a machine has that has nothing of ours
PROCESSORS = {
    "linux64": {"x86_64"}, "x86_64-linux": {"x86_64"}, "aarch64-linux": {"aarch64"}, "win64": {"x86_64"},
    "x86_64-windows": {"x86_64"}, "darwin64": {"x86_64", "aarch64"}, "x86_64-darwin": {"x86_64"},
    "aarch64-darwin": {"aarch64"},
}  # fmt: skip
OF_SYSTEM = {
    "linux": ("libc.so.6", "libm.so.6", "ld-linux"), "windows": ("kernel32.dll", "api-ms-win-crt-", "ntdll.dll"),
    "darwin": ("/usr/lib/libSystem.B.dylib",),
}  # fmt: skip


def functions_of(fmi: int) -> set[str]:
    """All that FMI asks of a library, as FMPy knows them."""
    version = fmpy.fmi2 if fmi == 2 else fmpy.fmi3
    text = Path(version.__file__).read_text()
    return set(re.findall(rf'"(fmi{fmi}[A-Z][A-Za-z0-9]+)"', text))


def check_library(data: bytes, name: str, fmi: int) -> None:
    found = libraries_in(data)
    assert {one.processor for one in found} == PROCESSORS[name]
    for one in found:
        assert functions_of(fmi) <= one.shown
        others = {word for word in one.shown if not word.startswith(f"fmi{fmi}")}
        assert not others & {"look", "step_to", "gauss_steps", "program_address"}, "our own functions are shown"
        assert all(word.startswith(OF_SYSTEM[one.system]) for word in one.needed), one.needed


@pytest.mark.parametrize("kind", ["cs", "me"])
def test_a_unit_for_one_kind_is_not_made_for_the_other(kind, tmp_path):
    with zipfile.ZipFile(exported("5r", 2, kind)) as archive:
        (path,) = [path for path in archive.namelist() if path.startswith("binaries/")]
        library = ctypes.CDLL(archive.extract(path, tmp_path))
        token = re.findall(r'guid="([^"]+)"', archive.read("modelDescription.xml").decode())[0].encode()
    library.fmi2Instantiate.restype = ctypes.c_void_p
    made = [library.fmi2Instantiate(b"one", number, token, b"", None, 0, 0) for number in (0, 1)]  # me, cs
    assert [unit is not None for unit in made] == [kind == "me", kind == "cs"]
    library.fmi2FreeInstance(ctypes.c_void_p(made[int(kind == "cs")]))


def test_the_library_of_this_machine_shows_all_functions_and_needs_nothing_of_ours():
    for fmi in (2, 3):
        with zipfile.ZipFile(exported("5r", fmi)) as archive:
            (path,) = [path for path in archive.namelist() if path.startswith("binaries/")]
            check_library(archive.read(path), path.split("/")[1], fmi)


@pytest.mark.verify
@pytest.mark.parametrize("fmi", [2, 3])
def test_libraries_for_all_platforms_have_their_format_and_functions(fmi, tmp_path, figure):
    pytest.importorskip("ziglang")
    begin = time.perf_counter()
    file = parflex.export_fmu(parflex.load("5r"), tmp_path / "5r.fmu", fmi=fmi, platforms="all").file
    figure(f"FMI {fmi} for all platforms (s)", time.perf_counter() - begin, 30)
    with zipfile.ZipFile(file) as archive:
        made = {path.split("/")[1]: archive.read(path) for path in archive.namelist() if path.startswith("binaries/")}
    assert len(made) == (3 if fmi == 2 else 5)
    for name, data in made.items():
        check_library(data, name, fmi)
