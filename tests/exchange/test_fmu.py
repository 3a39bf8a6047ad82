"""FMUs: validated and run by FMPy, beside `simulate`, changed robots, differences and closed forms."""

import ctypes
import re
import shutil
import subprocess
import sys
import time
import zipfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import fmpy
import fmpy.fmi2
import fmpy.fmi3
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu
from support.fmu_units import EFFORTS, STEP, Unit, as_run, exported, given
from support.paths import DATA
from support.robots import any_robot, load_robot
from support.shared_libraries import libraries_in

import parflex
from parflex.control.laws import make_law
from parflex.control.references import reference_from
from parflex.exchange.fmu.package import step_notes
from parflex.exchange.fmu.plant import make_plant
from parflex.trajectories.follow import track

ROWS = 40
SOFT = ("qdd.", "ax", "ay", "az", "alx", "aly", "alz", "friction.", "energy.", "power.", "closure_error")


@pytest.fixture(autouse=True)
def _closed_units():
    yield
    Unit.close_all()


def soft(column):
    return any(column.endswith(word) or column.startswith(word) for word in SOFT)


def largest_difference(rows, run, names):
    """Return the largest difference of rows and a run, relative to columns above 1."""
    scales = [max(1.0, np.abs(run[name]).max()) for name in names]
    return max(float(np.abs(row - run[name]).max() / s) for row, name, s in zip(rows.T, names, scales, strict=True))


@pytest.mark.verify
@pytest.mark.parametrize("name", EFFORTS)
@pytest.mark.parametrize("fmi", [2, 3])
def test_co_simulation_makes_the_steps_of_simulate(name, fmi, figure):
    file, efforts = exported(name, fmi), given(name)
    assert validate_fmu(str(file)) == []
    unit = Unit(file)
    unit.start(efforts)
    names = unit.names("output")
    rows = np.vstack([unit.get(names), unit.run(0, ROWS, names)])
    words = {"time": ROWS * STEP, "step": STEP, "out_step": STEP, "method": "gauss4"}
    run = parflex.simulate(parflex.load(name), **as_run(name), **words)
    pushes = [[word for word in words if word.startswith("wrench.")] for words in (unit.names("input"), efforts)]
    assert pushes[0] == pushes[1]  # planar robots have those of the plane alone
    assert set(names) | {word for word in efforts if word.startswith("effort.")} | {"t"} == set(run.columns)
    # the same steps: what differs is rounding of sines, which stiff beams enlarge in accelerations
    assert largest_difference(rows, run, names) < 1e-5
    hard = [name for name in names if not soft(name)]
    worst = largest_difference(rows[:, [names.index(name) for name in hard]], run, hard)
    figure(f"{name}: co-simulation of FMI {fmi} beside a run", worst, 1e-9)
    assert worst < 1e-9 and rows[:, names.index("closure_error")].max() < 1e-12


# friction that sticks, gears that lose power, elastic drives, cables, screws, stiff beams: by each method; from 24
# elements on, runs call one function for alike elements, and a unit has all written out
OTHERS = [
    ("gear-with-friction", "gauss4", STEP), ("beam-with-friction", "gauss4", STEP), ("elastic-drive", "gauss6", STEP),
    ("sprung-five-bar", "dopri5", STEP), ("planar-cable", "gauss4", STEP), ("screw-loop", "rk4", STEP),
    ("slider-crank-flexible", "generalized-alpha", 1e-4), ("dualemps", "gauss4", STEP),
]  # fmt: skip


@pytest.mark.verify
@pytest.mark.parametrize(("name", "method", "step"), OTHERS)
def test_other_kinds_of_robots_make_the_steps_of_simulate(name, method, step, tmp_path, figure):
    many = name == "dualemps"
    robot = parflex.load(name, elements=8) if many else any_robot(name)
    unit = Unit(Path(parflex.export_fmu(robot, tmp_path / "robot.fmu", method=method, step=step).file))
    names = [word for word in unit.names("output") if not soft(word) and (not many or word.startswith(("q.", "P.")))]
    push = as_run(name)["effort"] if many else dict.fromkeys(robot.actuated_names, 0.2)
    unit.start({f"effort.{motor}": value for motor, value in push.items()})
    rows = np.vstack([unit.get(names), unit.run(0, ROWS, names, step)])
    run = parflex.simulate(robot, effort=push, time=ROWS * step, step=step, out_step=step, method=method)
    worst = largest_difference(rows, run, names)
    figure(f"{name}: co-simulation by {method} beside a run", worst, 1e-9)
    assert worst < 1e-9 and (not many or np.ptp(rows, axis=0).max() > 1e-6)  # the same steps, and beams move


@pytest.mark.few("5r")
@pytest.mark.parametrize("name", EFFORTS)
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


@pytest.mark.verify
@pytest.mark.parametrize("fmi", [2, 3])
def test_model_exchange_has_the_derivatives_of_the_direct_model(fmi):
    file = exported("5r", fmi, "me")
    result = fmpy.simulate_fmu(
        str(file), start_values=given("5r"), stop_time=0.05, solver="CVode", relative_tolerance=1e-11,
        output=["q.left.1", "q.right.1", "closure_error"], output_interval=0.01,
    )  # fmt: skip
    words = {"time": 0.05, "step": 1e-4, "out_step": 0.01, "method": "gauss6", "without": ["friction"]}
    run = parflex.simulate(parflex.load("5r"), **as_run("5r"), **words)
    for column in ("q.left.1", "q.right.1"):
        assert np.abs(result[column] - run[column]).max() < 1e-8  # the tolerance of CVode, over five hundred steps
    assert result["closure_error"].max() < 1e-12


def states_of(unit: Unit) -> list[str]:
    return [v.name for v in unit.about.modelVariables if v.name.startswith("state.")]


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
        a = slope(x, t)
        b = slope(x + step / 2 * a, t + step / 2)
        c = slope(x + step / 2 * b, t + step / 2)
        d = slope(x + step * c, t + step)
        x = x + step / 6 * (a + 2 * b + 2 * c + d)
        slope(x, t + step)
        rows.append(unit.get(names))
    return np.array(rows)


@pytest.mark.verify
@pytest.mark.parametrize("name", EFFORTS)
@pytest.mark.parametrize("fmi", [2, 3])
def test_model_exchange_with_the_steps_of_a_run_is_that_run(name, fmi, figure):
    step = 1e-6 if parflex.load(name).tree.elastic else STEP  # explicit steps must be stable
    file = exported(name, fmi, "me")
    assert validate_fmu(str(file)) == []
    unit = Unit(file, "ModelExchange")
    unit.start(given(name))
    unit.unit.enterContinuousTimeMode()
    names = [column for column in unit.names("output") if not soft(column)]
    rows = by_runge_kutta(unit, states_of(unit), step, ROWS // 2, names)
    words = {"time": ROWS // 2 * step, "step": step, "out_step": step, "method": "rk4", "check_steps": False}
    run = parflex.simulate(parflex.load(name), **as_run(name), **words, without=["friction"])
    worst = largest_difference(rows, run, names)
    figure.below(f"{name}: model exchange of FMI {fmi} beside a run", worst, 1e-9)  # the same steps


@pytest.mark.verify
def test_motors_that_follow_motions_start_at_home_and_have_efforts_as_outputs():
    robot, unit = parflex.load("5r"), Unit(exported("5r", 2, "cs", "motions"))
    motors, home = robot.actuated_names, dict(zip(robot.coordinates, robot.home, strict=True))
    unit.start({})
    assert np.abs(unit.get([f"q.{motor}" for motor in motors]) - [home[motor] for motor in motors]).max() < 1e-12
    assert unit.get(["closure_error"])[0] < 1e-12
    push = {motor: 2.0 * (k + 1) for k, motor in enumerate(motors)}
    unit.again({f"qdd.{motor}": value for motor, value in push.items()})
    for k in range(20):
        t = k * STEP
        for motor, a in push.items():
            unit.put({f"q.{motor}": home[motor] + a * t * t / 2, f"qd.{motor}": a * t, f"qdd.{motor}": a})
        unit.unit.doStep(t, STEP)
    t, efforts = 20 * STEP, unit.get([f"effort.{motor}" for motor in motors])
    q = {motor: home[motor] + a * t * t / 2 for motor, a in push.items()}
    expected = parflex.inverse_dynamics(robot, q, {motor: a * t for motor, a in push.items()}, push).efforts
    assert np.abs(efforts - list(expected.values())).max() < 1e-9


@pytest.mark.parametrize("fmi", [2, 3])
def test_the_sources_inside_make_the_same_library(fmi, tmp_path):
    """As a master makes it that compiles FMUs itself: of the files that the FMU lists, of C99."""
    file = exported("5r", fmi)
    with zipfile.ZipFile(file) as archive:
        assert {"modelDescription.xml", "documentation/index.html", "sources/unit.c"} <= set(archive.namelist())
        text = archive.read("modelDescription.xml").decode()
        archive.extractall(tmp_path / "fmu")
    assert fmi == 3 or ('<Unit name="N.m">' in text and 'name="effort.left.1"' in text)
    about = fmpy.read_model_description(str(tmp_path / "fmu"))
    (files,) = [sources.sourceFiles for build in about.buildConfigurations for sources in build.sourceFileSets]
    (library,) = (tmp_path / "fmu" / "binaries").glob("*/*")
    library.unlink()
    command = ["cc", "-std=c99", "-O0", "-w", "-fPIC", "-shared", *files, "-o", str(library), "-lm"]
    subprocess.run(command, cwd=tmp_path / "fmu" / "sources", check=True)
    rows = []
    for unit in map(Unit, (tmp_path / "fmu", file)):
        unit.start(given("5r"))
        rows.append(unit.run(0, 5, unit.names("output")))
    assert np.abs(rows[0] - rows[1]).max() < 1e-9  # the same steps, by another optimisation


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fmi": 1}, "fmi: .* 2"),
        ({"kind": "both"}, "'both' is not a known value of 'kind'"),
        ({"drive": "motors"}, "'motors' is not a known value of 'drive'"),
        ({"method": "euler"}, "there is no method 'euler'"),
        ({"platforms": "some"}, "'some' is not a known value of 'platforms'"),
        ({"frames": ["nowhere"]}, "there is no frame 'nowhere'"),
        ({"parameters": ["mass"]}, "there is no parameter 'mass'"),
        ({"parameters": ["M[nowhere]"]}, "there is no parameter"),
        ({"law": "fast"}, None),
        ({"model": "state-rates"}, None),
        ({"law": "pd", "model": "inverse"}, None),
    ],
)
def test_impossible_fmus_are_refused(arguments, message, tmp_path):
    with pytest.raises(parflex.InputError, match=message):
        parflex.export_fmu(parflex.load("5r"), tmp_path / "5r.fmu", **arguments)


def test_robots_and_machines_that_an_fmu_cannot_serve_are_refused(tmp_path, monkeypatch):
    with pytest.raises(parflex.InputError, match="4 motors for 3 degrees of freedom"):
        parflex.export_fmu(parflex.load("4rrr"), tmp_path / "x.fmu", drive="motions")
    with pytest.raises(parflex.InputError, match="'rod' is flexible"):
        parflex.export_fmu(load_robot("slider-crank-beam"), tmp_path / "x.fmu", parameters=["gravity", "M[rod]"])
    robot = load_robot("joint-named-as-column")
    message = r"the frame 'q' and a joint would both have the column 'q\.theta'"
    with pytest.raises(parflex.InputError, match=message):
        parflex.export_fmu(robot, tmp_path / "x.fmu")
    with pytest.raises(parflex.InputError, match=message):
        parflex.simulate(robot, effort={}, time=1)
    monkeypatch.setattr(shutil, "which", lambda word: None)
    with pytest.raises(parflex.InputError, match="there is no C compiler") as refusal:
        parflex.export_fmu(parflex.load("5r"), tmp_path / "5r.fmu", method="rk4")
    assert "pip install 'parflex[fmu]'" in refusal.value.hint


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
    version = fmpy.fmi2 if fmi == 2 else fmpy.fmi3
    text = Path(version.__file__).read_text()
    return set(re.findall(rf'"(fmi{fmi}[A-Z][A-Za-z0-9]+)"', text))


def check_library(data: bytes, name: str, fmi: int) -> None:
    libraries = libraries_in(data)
    assert {library.processor for library in libraries} == PROCESSORS[name]
    for library in libraries:
        assert functions_of(fmi) <= library.shown
        others = {word for word in library.shown if not word.startswith(f"fmi{fmi}")}
        assert not others & {"look", "step_to", "gauss_steps", "program_address"}, "internal functions are shown"
        assert all(word.startswith(OF_SYSTEM[library.system]) for word in library.needed), library.needed


@pytest.mark.parametrize("kind", ["cs", "me"])
def test_a_unit_has_its_kind_only(kind, tmp_path):
    with zipfile.ZipFile(exported("5r", 2, kind)) as archive:
        (path,) = [path for path in archive.namelist() if path.startswith("binaries/")]
        library = ctypes.CDLL(archive.extract(path, tmp_path))
        token = re.findall(r'guid="([^"]+)"', archive.read("modelDescription.xml").decode())[0].encode()
    library.fmi2Instantiate.restype = ctypes.c_void_p
    made = [library.fmi2Instantiate(b"unit", number, token, b"", None, 0, 0) for number in (0, 1)]  # me, cs
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


DRIVER = DATA / "fmu_driver.c"
STEPS = 40
# folder in the FMU, target of the compiler, what runs a program for it
ELSEWHERE = {
    "aarch64-linux": ("aarch64-linux-gnu.2.31", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
    "x86_64-windows": ("x86_64-windows-gnu", ("wine",)),
}


@pytest.mark.verify
@pytest.mark.parametrize("platform", ELSEWHERE)
def test_a_library_for_another_machine_makes_the_steps_of_simulate(platform, tmp_path, figure):
    pytest.importorskip("ziglang")
    target, emulator = ELSEWHERE[platform]
    if shutil.which(emulator[0]) is None:
        pytest.skip(f"no {emulator[0]}: install Debian's qemu-user and libc6-arm64-cross, or wine")
    robot = parflex.load("5r")
    file = parflex.export_fmu(robot, tmp_path / "5r.fmu", fmi=3, step=STEP, method="gauss4", platforms="all").file
    about = fmpy.read_model_description(file)
    with zipfile.ZipFile(file) as archive:
        (inside,) = [name for name in archive.namelist() if name.startswith(f"binaries/{platform}/")]
        library = Path(archive.extract(inside, tmp_path))
    program = tmp_path / "driver.exe"
    compile_ = [sys.executable, "-m", "ziglang", "cc", "-target", target, str(DRIVER), "-o", str(program)]
    subprocess.run(compile_, check=True, capture_output=True)
    outputs = [v for v in about.modelVariables if v.causality == "output" and v.name.startswith(("q.", "qd."))]
    words = [about.guid or about.instantiationToken, str(STEPS), str(STEP), *(str(v.valueReference) for v in outputs)]
    done = subprocess.run([*emulator, str(program), str(library), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = np.array([float(line) for line in done.stdout.split()])
    run = parflex.simulate(robot, effort={}, time=STEPS * STEP, step=STEP, out_step=STEP, method="gauss4")
    error = float(np.abs(found - [run[v.name][-1] for v in outputs]).max())
    figure(f"5r on {platform} beside a run here", error, 1e-9)
    assert len(found) > 4 and error < 1e-9  # the same steps; sines of another library of mathematics


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
def test_rates_at_their_dead_centre_are_an_error_with_a_reason_and_better_rates_go_through():
    """The rocker turns back while the crank goes on: by its rate the crank would turn back too."""
    columns = ["q.crank", "q.coupler", "q.rocker"]
    bad = Unit(exported("four-bar", 2, "cs", independent=("rocker",)))
    ended = pushed(bad, 0.6)
    assert ended < 0.6 and "the independent rates (rocker) hardly determine the others" in bad.said[-1]
    bad.refused(bad.get, columns)  # it stays so
    good = Unit(exported("four-bar"))
    assert pushed(good, 0.6) == 0.6
    words = {"time": 0.6, "step": STEP, "out_step": STEP, "method": "gauss4"}
    run = parflex.simulate(parflex.load("four-bar"), effort={"crank": 3.0}, **words)
    assert np.abs(good.get(columns) - [run[name][-1] for name in columns]).max() < 1e-9  # the same steps
    turn = run.t[np.argmax(run["qd.rocker"] * run["qd.rocker"][10] < 0)]
    assert turn - 0.05 < ended <= turn + STEP


def test_model_exchange_keeps_its_rates_and_says_where_they_are_singular():
    unit = Unit(exported("four-bar", 3, "me", independent=("rocker",)), "ModelExchange")
    unit.start(TURN)
    unit.unit.enterContinuousTimeMode()
    names = states_of(unit)
    with pytest.raises(FMICallException):
        for k in range(6000):  # Euler, short enough to meet the limit
            x, dx = unit.get(names), unit.get([f"der({name})" for name in names])
            unit.unit.setTime((k + 1) * 1e-4)
            unit.put(dict(zip(names, x + 1e-4 * dx, strict=True)))
    assert "hardly determine the others" in unit.said[-1]


@pytest.mark.parametrize("fmi", [2, 3])
def test_impossible_steps_are_errors_with_a_reason(fmi):
    unit = Unit(exported("5r", fmi))
    unit.start(given("5r"))
    unit.unit.doStep(0.0, STEP)
    assert "the last one ended at 0.001" in unit.refused(unit.unit.doStep, 0.5, STEP)
    for length in (0.0, -STEP):
        assert "not a positive number" in unit.refused(unit.unit.doStep, STEP, length)
    unit.unit.doStep(STEP, 2.5 * STEP)  # steps become shorter, so that they fit
    assert "not a finite number" in unit.refused(unit.put, {"effort.left.1": float("nan")})


@pytest.mark.parametrize(
    ("name", "settings", "step", "note"),
    [
        ("5r", {}, 0.05, "the step 0.05 s is too long for the robot: it needs"),
        ("5r", {}, 1e-5, ""),
        ("four-bar", {"frame.rocker.spring.stiffness": 4000}, 0.01, "the mean of steps"),
        ("four-bar", {}, 5e-4, ""),  # nothing that is soft needs less than the default step
    ],
)
def test_a_step_that_is_too_long_for_the_robot_is_warned_of_whatever_rates_are_independent(name, settings, step, note):
    """A stiff spring of the rocker vibrates at the same frequency where the motor holds it, in whatever coordinates."""
    robot, notes = parflex.load(name, settings=settings), set()
    for rates in [(rate,) for rate in ("crank", "rocker", "coupler")] if name == "four-bar" else [None]:
        notes |= set(step_notes(make_plant(robot, "cs", "efforts", "rk4", step, [], [], None, (), rates)))
    assert len(notes) == bool(note) and note in "".join(notes)


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
    return unit.run(0, 20, COLUMNS)[-1]


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
    words = {"time": 20 * STEP, "step": STEP, "out_step": STEP, "method": "gauss4"}
    run = parflex.simulate(changed, effort={"11": 60.0}, start={"q": q}, **words)
    expected = np.array([run[name][-1] for name in names])
    worst = float((np.abs(found - expected) / np.maximum(1, np.abs(expected))).max())
    figure("dualemps with gravity and a payload as parameters beside a run", worst, 1e-7)
    assert worst < 1e-7  # the same steps to the tolerance of their iterations; stiff beams enlarge it in accelerations


def test_fixed_parameters_are_set_before_the_start_and_masses_are_not_negative(changeable):
    unit = Unit(changeable)
    assert "a mass is not negative" in unit.refused(unit.put, {"payload.mass": -0.1})
    unit.start({"payload.mass": 0.1, "start.q.left.1": 2.2})
    for name in ("payload.mass", "start.q.left.1", "gravity.x"):
        assert "before the initialisation ends" in unit.refused(unit.put, {name: 0.2})


LOOPS = [("extended", 2, "5r", ["friction"]), *((law, 3, "5r", ["friction"]) for law in ("pd", "ctc", "ctc-task"))]
LOOPS += [(law, 3, name, []) for name in ("5r", "3rrr") for law in ("extended", "ctc-task")]  # joints that stick too


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
    made = make_law(robot, law, parflex.gains_from())
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


STEP_OF_DIFFERENCES = 1e-5  # in SI: the third derivative leaves 1e-10 of the size, rounding 1e-11 of it
CASES = [("5r", 2, "efforts"), pytest.param("5r", 3, "motions", marks=pytest.mark.verify)]
LONG = ("5r", "3rrr", "dualemps", "gough-stewart", "gough-stewart-flexible")
CASES += [pytest.param(name, 3, "efforts", marks=pytest.mark.verify) for name in LONG]


def moved(unit: Unit, seed: int) -> tuple[list[str], list[str]]:
    """Away from rest; names of what is known, and of what follows from it."""
    unit.start({name: value for name, value in given(unit.about.modelName).items() if name in unit.names("input")})
    unit.unit.enterContinuousTimeMode()
    states = states_of(unit)
    random = np.random.default_rng(seed)
    now = unit.get(states)
    size = np.array([0.3 if name.startswith("state.rate.") else 0.02 for name in states])
    unit.put(dict(zip(states, now + size * random.uniform(-1, 1, len(states)), strict=True)))
    unit.get(["closure_error"])
    unknown = [*unit.names("output"), *(f"der({name})" for name in states)]
    return [*states, *unit.names("input")], unknown


@pytest.mark.parametrize(("name", "fmi", "drive"), CASES)
def test_directional_derivatives_are_those_of_differences(name, fmi, drive):
    unit = Unit(exported(name, fmi, "me", drive), "ModelExchange")
    known, unknown = moved(unit, 5)
    here, random = unit.get(known), np.random.default_rng(7)
    for _ in range(3):
        way = random.uniform(-1, 1, len(known))
        found = unit.along(unknown, known, way)
        ends = []
        for side in (1, -1):
            unit.put(dict(zip(known, here + side * STEP_OF_DIFFERENCES * way, strict=True)))
            ends.append(unit.get(unknown))
        unit.put(dict(zip(known, here, strict=True)))
        differences = (ends[0] - ends[1]) / (2 * STEP_OF_DIFFERENCES)
        size = np.maximum(np.abs(differences), np.abs(unit.get(unknown)) + 1e-2 * np.abs(differences).max())
        for k, column in enumerate(unknown):
            if column != "closure_error":  # rounding
                assert abs(found[k] - differences[k]) < 1e-6 * size[k], column


def test_frames_whose_x_axis_is_normal_to_the_plane_turn_and_move_along_their_axes(tmp_path):
    """A crank with a frame on it whose x axis points out of the plane, y along the crank, z across it."""
    robot = load_robot("crank-with-turned-frame")
    run = parflex.simulate(robot, pose={"crank": 0.4}, start={"velocity": {"crank": 2.0}}, effort={}, time=0.1)
    axes = parflex.configure(robot, {"crank": 0.4}).at.of(robot.tree.places["side"])[0]
    parflex.export_fmu(robot, tmp_path / "crank.fmu", kind="me")
    unit = Unit(tmp_path / "crank.fmu", "ModelExchange")
    unit.start({"state.rate.crank": 2.0})
    world = np.array([-np.sin(0.4), np.cos(0.4), 0.0])  # 0.5 m at 2 rad/s
    for k, word in enumerate("xyz"):
        for speed in (unit.get([f"side.local_v{word}"])[0], run[f"side.local_v{word}"][0]):
            assert abs(speed - axes[:, k] @ world) < 1e-12
    assert abs(unit.along(["side.theta"], ["state.crank"], [1.0])[0] - 1.0) < 1e-12
    assert abs(run["side.theta"][-1] - run["side.theta"][0] - 0.2) < 1e-9
    assert np.abs(np.abs(axes[2]) - [1, 0, 0]).max() < 1e-12


def test_model_exchange_remembers_where_its_loops_were_closed():
    """The guess of the closures is part of the state: the same calls give the same bits."""
    unit = Unit(exported("5r", 2, "me"), "ModelExchange")
    known, unknown = moved(unit, 3)
    states = [name for name in known if name.startswith("state.")]
    slopes = [f"der({name})" for name in states]

    def run() -> np.ndarray:
        rows = []
        for _ in range(20):
            x = unit.get(states) + 1e-3 * unit.get(slopes)
            unit.put(dict(zip(states, x, strict=True)))
            rows.append(unit.get(unknown))
        return np.array(rows)

    kept = unit.state()
    once = run()
    unit.restore(kept)
    assert np.array_equal(run(), once)


R, L, INERTIA, MASS = 0.1, 0.3, 0.001, 0.8  # of robots/slider-crank-line.toml
KINDS = {"cs": "CoSimulation", "me": "ModelExchange"}
SET = {("cs", "efforts"): "start.q.crank", ("me", "efforts"): "state.crank", ("cs", "motions"): "q.crank"}
SET |= {("me", "motions"): "q.crank"}


@cache
def slider_crank(kind: str, drive: str) -> Path:
    file = Path(mkdtemp()) / "slider-crank.fmu"
    words = {"fmi": 3 if kind == "me" else 2, "kind": kind, "drive": drive, "method": "rk4", "step": STEP}
    parflex.export_fmu(load_robot("slider-crank-line"), file, **words)
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


PINS = ["q.rod", "qd.rod", "pin.x", "pin.vx", "energy.kinetic"]


@pytest.mark.few
@pytest.mark.parametrize(("kind", "drive"), SET)
def test_starts_over_the_whole_circle_are_those_of_the_closed_form(kind, drive):
    unit, key = Unit(slider_crank(kind, drive), KINDS[kind]), SET[kind, drive]
    rates = {"start.q.crank": "start.qd.crank", "state.crank": "state.rate.crank", "q.crank": "qd.crank"}
    start = unit.start
    for crank in 0.7 + np.linspace(-6, 6, 9):
        start({key: crank, rates[key]: 1.7})
        assert np.abs(unit.get(PINS) - closed_form(crank, 1.7)).max() < 1e-12, crank  # rounding
        start = unit.again


def test_states_of_model_exchange_that_jump_close_in_the_same_assembly():
    """As by a master that puts an integrator back, or looks for a steady state."""
    unit = Unit(slider_crank("me", "efforts"), "ModelExchange")
    unit.start({})
    unit.unit.enterContinuousTimeMode()
    random = np.random.default_rng(2)
    for crank, rate in random.uniform(-3, 3, (8, 2)):
        unit.put({"state.crank": crank, "state.rate.crank": rate})
        missed = unit.get(PINS) - closed_form(crank, rate)
        missed[0] -= 2 * np.pi * np.round(missed[0] / (2 * np.pi))  # turns are those of the way
        assert np.abs(missed).max() < 1e-12


def test_starts_beyond_a_singular_pose_are_an_error_with_a_reason():
    unit = Unit(exported("four-bar", 3, "me", independent=("rocker",)), "ModelExchange")
    said = unit.refused(unit.start, {"state.rocker": 3.0})  # it turns back before
    assert "hardly determine the others on the way to the positions that were set" in said


@pytest.mark.verify
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
        found.append(unit.get([*PINS, "effort.crank"]))
    assert np.array_equal(found[0], found[1])
    assert np.abs(found[0][:5] - closed_form(1.1, 2.0)).max() < 1e-12


def test_the_impulse_of_a_velocity_jump_moves_what_is_free(tmp_path):
    """A pendulum on a cart: its momentum about the pin, (I + m l^2) w - m l sin(a) v, stays."""
    robot = load_robot("cart-pendulum")
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


CONTROLLERS = {
    "model": ({"model": "inverse", "coordinates": "motors"}, ("motor_position.crank",), "motor_acceleration.crank"),
    "law": ({"law": "ctc"}, ("q.crank", "reference.q.crank"), "reference.qdd.crank"),
}


@pytest.mark.parametrize("word", [pytest.param("model", marks=pytest.mark.verify), "law"])
def test_controllers_far_from_home_have_the_efforts_of_the_closed_form(word, tmp_path):
    """The mass stays on its line: gravity needs no effort at rest, an acceleration of the crank (I + m x'^2) of it."""
    choice, places, push = CONTROLLERS[word]
    unit = Unit(Path(parflex.export_fmu(load_robot("slider-crank-line"), tmp_path / "law.fmu", **choice).file))
    start = unit.start
    for crank in 0.7 + np.linspace(-3, 3, 7):
        start(dict.fromkeys(places, crank) | {push: 5.0})
        slope = closed_form(crank, 1.0)[3]  # of x by the crank
        assert abs(unit.get(["effort.crank"])[0] - (INERTIA + MASS * slope**2) * 5.0) < 1e-12, crank
        start = unit.again


@pytest.mark.few("cs", "law")
@pytest.mark.parametrize("kind", ["cs", "me", "law"])
def test_starts_wind_springs_of_passive_joints_by_the_turns_on_the_path(kind, tmp_path):
    """A spring in the passive joint tells a turn from the next."""
    robot = load_robot("slider-crank-line", settings={"frame.rod.spring": {"stiffness": 2.0, "rest": -0.9}})
    words = {"law": "ctc"} if kind == "law" else {"kind": kind, "method": "rk4", "step": STEP}
    unit = Unit(Path(parflex.export_fmu(robot, tmp_path / "wound.fmu", **words).file), KINDS.get(kind, "CoSimulation"))
    keys, start = ["q.crank", "reference.q.crank"] if kind == "law" else [SET[kind, "efforts"]], unit.start
    for crank in 0.7 + np.linspace(-9, 9, 5):
        start(dict.fromkeys(keys, crank))
        rod = np.arcsin(-R * np.sin(crank) / L) - crank  # turns against the crank
        power = 2.0 * (rod + 0.9) * closed_form(crank, 1.0)[1]  # of the spring
        expected = {"effort.crank": power} if kind == "law" else {"q.rod": rod, "energy.elastic": (rod + 0.9) ** 2}
        assert np.abs(unit.get(expected) - list(expected.values())).max() < 1e-11, crank  # rounding of 80 J
        start = unit.again


@pytest.mark.parametrize(
    ("choice", "far", "message"),
    [
        ({"model": "inverse"}, {"q.left.1": 2.5}, "the loops are open at the positions that are given"),
        ({"law": "pd"}, {"q.left.1": 4.5, "q.right.1": -1.5}, "do not close on the way"),
    ],
)
def test_positions_that_are_open_or_out_of_reach_are_errors_of_controllers(choice, far, message, tmp_path):
    unit = Unit(Path(parflex.export_fmu(parflex.load("5r"), tmp_path / "controller.fmu", **choice).file))
    assert message in unit.refused(unit.start, far)


def bending(tmp_path, kind: str, drive: str) -> Unit:
    """The same slider-crank with a rod that bends, in whose steps the end of the rod depends on the joints."""
    settings = {"constants.l1": R, "constants.l2": L, "poses.home": {"crank": 0.7}, "frame.rod.beam.elements": 1}
    robot = load_robot("slider-crank-beam", settings=settings)
    parflex.export_fmu(robot, tmp_path / "bending.fmu", kind=kind, drive=drive, method="rk4", step=1e-5)
    return Unit(tmp_path / "bending.fmu", KINDS[kind])


@pytest.mark.parametrize("drive", ["efforts", pytest.param("motions", marks=pytest.mark.verify)])
def test_joints_that_are_not_set_follow_and_bodies_keep_their_deformation(drive, tmp_path):
    unit = bending(tmp_path, "cs", drive)
    place, rate = ("start.q.crank", "start.qd.crank") if drive == "efforts" else ("q.crank", "qd.crank")
    both = [f"{word}.rod.{axis}" for word in ("q", "qd") for axis in ("ux", "uy", "rz")]
    start = unit.start
    for crank in 0.7 + np.linspace(-2.5, 2.5, 6):
        start({place: crank, rate: 1.7})
        joints = unit.get(["q.rod", "qd.rod", "q.slider", "qd.slider"])
        assert np.abs(joints - closed_form(crank, 1.7)[:4]).max() < 1e-12, crank  # rounding
        assert np.abs(unit.get(both)).max() < 1e-12
        start = unit.again
    assert not unit.said
    if drive == "motions":
        return
    # masters that set all start values say nothing of those that are as they were, others are kept
    unit.again({})
    unit.again({"start.q.rod": unit.get(["start.q.rod"])[0], place: 1.2})
    assert abs(unit.get(["q.rod"])[0] - closed_form(1.2)[0]) < 1e-12
    unit.again({"start.q.slider": closed_form(1.2)[2]})  # the motor stays unless the loops cannot close
    assert abs(unit.get(["q.crank"])[0] - 1.2) < 1e-9 and np.abs(unit.get(both)).max() < 1e-12
    # two joints of one freedom that belong together, as written with six digits: the third follows
    rod = closed_form(2.2, 1.7).round(6)
    unit.again({place: 2.2, "start.q.rod": rod[0], rate: 1.7, "start.qd.rod": rod[1]})
    assert np.abs(unit.get(["q.slider", "qd.slider"]) - closed_form(2.2, 1.7)[2:4]).max() < 1e-5
    assert np.abs(unit.get(both)).max() < 1e-4 and not unit.said
    unit.again({rate: 1.7, "start.qd.rod": 1.0, "start.qd.slider": 0.1})
    assert unit.said == ["the rates that were set deform bodies: set rates of joints that belong together"]


@pytest.mark.verify
def test_states_of_model_exchange_that_bend_bodies_too_far_are_warned_of(tmp_path):
    unit = bending(tmp_path, "me", "efforts")
    unit.start({"state.crank": 0.9})
    assert "deform bodies by" in unit.said[-1]
    unit.again({"state.rate.crank": 1.7})
    assert "the rates that were set deform bodies" in unit.said[-1]
