"""Programs with a fixed number of Newton steps report whether these converged, in every target."""

import ctypes

import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from support import emitted
from support.catalogue import CATALOGUE
from support.fmu_units import STEP, Unit
from support.linkages import CHAINS, draw
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot
from support.random_linkages import FREEDOMS
from support.robots import write_robot
from support.traced import inputs, made, robot, samples

import parflex
from parflex.codegen.source_files import identifier

TARGETS = (
    emitted.llvm_batch,
    emitted.llvm_scalar,
    emitted.numpy_run,
    emitted.numpy_file,
    emitted.jax_file,
    emitted.casadi_function,
)
STARTS = ("guess", "last", "last_position", "last_turn")
ITERATING = [("delta", "step"), ("delta", "geometry"), ("3rrr", "step"), ("four-bar", "geometry")]
ITERATING += [("3rrr", model) for model in ("geometry-direct", "geometry-redundant", "classical-step")]
OPEN, SINGLE = 1e-8, 100  # of the characteristic length, and how much more in single precision
FAR = 1.2  # rad and m, from where three Newton steps do not converge


def near_far_and_nan(program, name: str) -> dict[str, np.ndarray]:
    """Inputs that converge, the same from far away, and the same with one number missing in each group."""
    near = {group: values[0] for group, values in inputs(program, samples(name, 1)).items()}
    signs = np.random.default_rng(1)
    far = {g: v + FAR * signs.choice([-1.0, 1.0], v.shape) if g in STARTS else v for g, v in near.items()}
    rows = [near, far]
    for group, values in near.items():
        missing = values.copy()
        missing.flat[-1] = np.nan
        rows.append(near | {group: missing})
    return {group: np.array([row[group] for row in rows]) for group in near}


def returned_by_c(program, arrays, folder, float32: bool = False) -> tuple[list[int], np.ndarray]:
    """What the C function returns, and its outputs."""
    name = emitted.write_c(program, folder, float32)
    emitted.compile_c(*emitted.STRICT, "-O0", "-fPIC", "-shared", "-o", folder / "made.so", folder / f"{name}.c", "-lm")
    function = ctypes.CDLL(str(folder / "made.so"))[name]
    assert not program.program.parameters
    real = np.float32 if float32 else float
    rows = emitted.flat(program, arrays).astype(real)
    y = np.zeros((len(rows), len(program.program.outputs)), dtype=real)
    pairs = [(x.ctypes.data, out.ctypes.data) for x, out in zip(rows, y, strict=True)]
    status = [function(*map(ctypes.c_void_p, pair)) for pair in pairs]
    return status, y


@pytest.mark.few("four-bar", "3rrr-geometry-direct")
@pytest.mark.parametrize(("name", "model"), ITERATING)
def test_every_target_reports_newton_steps_that_fail(name, model, tmp_path):
    program = made(name, model)
    given = near_far_and_nan(program, name)
    small = len(program.program.instructions) < 3000  # of longer ones files take seconds
    targets = TARGETS if small else (emitted.llvm_batch, emitted.numpy_run, emitted.casadi_function)
    tolerance = OPEN * robot(name).tree.length
    for target in targets:
        found = target(program, given)
        status, residual = found["status"][:, 0], found["residual"][:, 0]
        assert status[0] == 0.0 and residual[0] < tolerance, target
        assert status[1] == 1.0 and not residual[1] < tolerance, target
        for row in range(2, len(status)):
            outputs = [found[group][row] for group in program.outputs if group != "status"]
            assert status[row] == float(not all(np.isfinite(values).all() for values in outputs)), target
        assert status[2:].any()


@pytest.mark.few("delta-geometry")
@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize(("name", "model"), [("delta", "step"), ("delta", "geometry"), ("3rrr", "step")])
def test_the_c_function_returns_the_status(name, model, float32, tmp_path):
    program = made(name, model)
    given = near_far_and_nan(program, name)
    status, y = returned_by_c(program, given, tmp_path, float32)
    wanted = program.evaluate("numpy", **given)["status"][:, 0].tolist()
    assert status == wanted == y[:, -1].tolist() and wanted[:2] == [0, 1]
    tolerance = OPEN * robot(name).tree.length * (SINGLE if float32 else 1)
    assert y[0, -2] < tolerance and not y[1, -2] < tolerance
    header = (tmp_path / f"{identifier(program.name)}.h").read_text()
    tolerance = f"{1e-6 if float32 else 1e-8:g} of the characteristic length"
    assert f"int {identifier(program.name)}(" in header and tolerance in header


def test_programs_without_newton_steps_have_no_status():
    for name, model in (("delta", "inverse"), ("3rrr", "geometry"), ("rx90", "step"), ("5r", "state-rates")):
        program = made(name, model)
        assert not {"status", "residual"} & set(program.outputs)
        header = program.files("c")[f"{identifier(program.name)}.h"]
        assert f"void {identifier(program.name)}(" in header and "int " not in header


def says_whether_loops_close(of: parflex.Robot, energy: EnergyModel, model: str, count: int) -> list[float]:
    """Compare the status with the oracle, from starts near and far; the statuses that occurred."""
    program, rng, units = parflex.model(of, model), np.random.default_rng(2), of.tree.rate_units
    start = "last" if model == "step" else "guess"
    rows = []
    for distance in 10 ** rng.uniform(-3, 0.2, count):
        row = {group: np.array(values) for group, values in program.sample.items()}
        row[start] = of.tree.moved(of.home, distance * rng.uniform(-1, 1, of.tree.n) * units)
        rows.append(row)
    found = program(**{group: np.array([row[group] for row in rows]) for group in program.inputs})
    tolerance, seen = OPEN * of.tree.length, []
    for q, residual, status in zip(found["q"], found["residual"][:, 0], found["status"][:, 0], strict=True):
        gaps = energy.closure_residual(dict(zip(of.coordinates, q, strict=True))) if np.isfinite(q).all() else np.inf
        theirs = float(np.abs(gaps).max())
        rows_of = 4 * len(energy.data.closures) * max(1.0, of.tree.length, 1 / of.tree.length)  # norms and units
        if not 1 / rows_of < theirs / tolerance < rows_of:
            assert (status == 0.0) == (theirs < tolerance), (residual, theirs)
            seen.append(float(status))
    return seen


@pytest.mark.few("four-bar", "5r")
@pytest.mark.parametrize(
    ("name", "model"), [("delta", "step"), ("3-prrr", "geometry-direct"), ("four-bar", "geometry"), ("5r", "step")]
)
def test_the_status_says_whether_the_loops_of_an_oracle_close(name, model):
    seen = says_whether_loops_close(robot(name), EnergyModel(read_robot(CATALOGUE / f"{name}.toml")), model, 40)
    assert set(seen) == {0.0, 1.0}


@pytest.mark.few
@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("seed", range(3))
def test_the_status_of_random_linkages_says_whether_they_close(kind, seed, tmp_path):
    drawn, _ = draw(np.random.default_rng([2000 + seed, *kind.encode()]), kind, FREEDOMS[kind])
    path = write_robot(tmp_path, drawn.text)
    of = parflex.load(path, actuation="drawn")
    seen = says_whether_loops_close(of, EnergyModel(read_robot(path)), "step", 40)
    assert set(seen) == {0.0, 1.0}


@pytest.mark.parametrize("name", ["delta", "c5", "bricard", "3-prrr", "space", "5r"])
def test_gaps_are_openings_with_chords_for_angles(name):
    of, rng = robot(name), np.random.default_rng(0)
    for _ in range(20):
        at = parflex.Configuration(of, of.tree.moved(of.home, rng.uniform(-3, 3, of.nv) * of.tree.rate_units)).at
        ratio = np.linalg.norm(of.closures.gaps(at)) / np.linalg.norm(of.closures.residual(at))
        assert 2 / np.pi - 1e-9 < ratio < 1 + 1e-9  # of 2 sin(a / 2) to a


def test_the_status_of_spare_motors_says_whether_they_fit():
    of = robot("four-rrr")
    program = parflex.model(of, "step")
    motors = [of.coordinates.index(name) for name in of.motors]
    still = np.zeros(len(motors))

    def status(sensed, last):
        return program(motor_position=sensed, motor_rate=still, motor_acceleration=still, last=last)["status"][0]

    sensed = of.home[motors]
    apart = 1e-4 * np.array([1.0, -1.0, 1.0, -1.0])  # rad, as encoders of stiff motors differ
    assert status(sensed, of.home) == status(sensed + apart, of.home) == 0.0
    there = parflex.configure(of, {"x": 0.06, "y": 0.06, "theta": 0.5}).q
    assert status(there[motors], of.home) == 1.0


@pytest.mark.parametrize(
    ("model", "coordinates"), [("inverse", "motors"), ("kinematics", "motors"), ("direct", "platform")]
)
def test_models_in_coordinates_that_are_found_by_newton_steps_have_a_status(model, coordinates):
    program = parflex.model(robot("5r"), model, coordinates=coordinates)
    near = program.sample
    far = near | {"last": near["last"] + np.array([1.2, -1.2, 1.2, -1.2])}
    assert program(**near)["status"][0] == 0.0
    assert program(**far)["status"][0] == 1.0
    assert not {"status"} & set(parflex.model(robot("5r"), model, coordinates="all").outputs)


@pytest.mark.few
@pytest.mark.parametrize("name", ["3rrr", "5r"])  # from the last pose of the platform, of all joints
@pytest.mark.parametrize("fmi", [2, 3])
def test_an_fmu_reports_newton_steps_that_fail(name, fmi, tmp_path):
    parflex.export_fmu(robot(name), tmp_path / "step.fmu", fmi=fmi, model="step")
    unit = Unit(tmp_path / "step.fmu")
    unit.start({})
    unit.unit.doStep(0.0, STEP)
    assert unit.get(["status"])[0] == 0.0 and unit.get(["residual"])[0] < OPEN * robot(name).tree.length
    far = {
        "3rrr": {"last_position.platform.x": 0.9},
        "5r": {"motor_position.left.1": 3.0, "motor_position.right.1": 0.0},
    }
    unit.put(far[name])
    with pytest.raises(FMICallException):
        unit.unit.doStep(STEP, STEP)
    assert "do not converge" in unit.said[-1] or "do not close" in unit.said[-1]
    unit.close()
