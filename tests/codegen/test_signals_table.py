"""Generated programs say what each number is: names and units of the file, in its order, and where they come from."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.command_line import answered
from support.emitted import STRICT, c_library, compile_c, write_c
from support.fmu_signals import check_signals
from support.traced import robot

import parflex
from parflex.codegen.source_files import index_names

DEFINE = re.compile(r"^#define (\w+) (\d+)$", re.M)


def indices(header: str) -> dict[str, int]:
    found = DEFINE.findall(header)
    assert len({name for name, _ in found}) == len(found)
    return {name: int(value) for name, value in found}


def named_inputs(model: parflex.Model, here: parflex.Configuration, result) -> dict[str, np.ndarray]:
    """Inputs of a model in the general form, by the names that the model itself says."""
    of = here.robot
    known = {("q", name): value for name, value in zip(of.coordinates, here.q, strict=True)}
    for group, values in (("qd", result.rates), ("qdd", result.accelerations)):
        known |= {(group, name): value for name, value in zip(of.rates, values, strict=True)}
    found: dict[str, list[float]] = {group: [] for group in model.inputs}
    for signal in model.signals:
        if signal["direction"] == "input":
            found[signal["group"]].append(known[signal["group"], signal["name"]])
    return {group: np.array(values) for group, values in found.items()}


@pytest.mark.parametrize("name", ["tripod-wrist", "5r", "rx90", "two-bodies"])
def test_each_motor_of_generated_c_has_the_effort_of_its_name(name, tmp_path):
    """A wrist that the file names behind the legs had the first numbers, which the C code did not say."""
    of = robot(name)
    model, rng = parflex.model(of, "inverse"), np.random.default_rng(2)
    here = parflex.Configuration(of, of.home)
    push = [{motor: float(rng.uniform(-1, 1)) for motor in of.actuated_names} for _ in range(2)]
    result = parflex.inverse_dynamics(of, here, *push)
    given = {group: value[None] for group, value in named_inputs(model, here, result).items()}
    found = c_library(model, given, tmp_path)["effort"][0]
    header = next(tmp_path.glob("*.h")).read_text(encoding="utf-8")
    places = indices(header)
    size = max(abs(value) for value in result.efforts.values())
    for motor, effort in result.efforts.items():
        macro = next(word for word in places if word.endswith("OUT_EFFORT_" + re.sub(r"\W", "_", motor).upper()))
        assert found[places[macro]] == pytest.approx(effort, abs=1e-10 * size)  # condition of the loops below 1e4
        assert f"effort[{places[macro]}]  {motor}  [" in header


@pytest.mark.verify
@pytest.mark.parametrize("name", ["3rrr", "rx90", "gough-stewart", "dualemps", "four-bar", "gough-stewart-flexible"])
def test_every_entry_of_every_model_has_a_name_and_a_unit(name):
    of, tried = parflex.load(name), 0
    for model in parflex.explain(of).forms:
        if model == "jacobian-of-inverse":
            continue  # 10 000 operators, and nothing new
        try:
            signals = parflex.model(of, model).signals
        except parflex.ParflexError:
            continue  # this robot has no such model
        tried += 1
        check_signals(signals, model)
        efforts = [s["name"] for s in signals if s["group"] == "effort" and s["direction"] == "output"]
        assert efforts in ([], of.actuated_names), model
    assert tried >= 6


def test_units_are_those_of_what_a_joint_does():
    def units(name: str, model: str, group: str) -> list[str]:
        signals = parflex.model(parflex.load(name), model).signals
        return [signal["unit"] for signal in signals if signal["group"] == group]

    assert units("gough-stewart", "inverse", "effort") == ["N"] * 6
    assert units("rx90", "inverse", "effort") == ["N m"] * 6
    assert units("rx90", "inverse", "qdd") == ["rad/s2"] * 6
    assert units("3-prrr", "inverse", "qd") == ["m/s"] * 3
    assert units("3-prrr", "mass-matrix", "mass_matrix") == ["kg"] * 9
    assert units("5r", "mass-matrix", "mass_matrix") == ["kg m2"] * 4
    assert units("5r", "pd-law", "stiffness") == ["N m/rad"] * 2


@pytest.mark.parametrize("model", ["inverse", "pd-law", "mass-matrix"])
def test_signals_stand_where_the_program_has_them(model):
    program = parflex.model(parflex.load("5r"), model)
    check_signals(program.signals, model)
    places = {"input": program.program.variables, "parameter": program.program.parameters}
    places["output"] = [label for label, _ in program.program.outputs]
    for direction, labels in places.items():
        own = [signal for signal in program.signals if signal["direction"] == direction]
        assert len(own) == len(labels)
        assert all(label.startswith(signal["group"]) for signal, label in zip(own, labels, strict=True))


@pytest.mark.parametrize("target", ["c", "llvm", "numpy", "jax", "casadi", "sympy"])
def test_every_file_says_where_it_comes_from(target, capsys, tmp_path):
    words = ("codegen", "5r", "inverse", "--target", target, "-o", str(tmp_path), "--without", "friction")
    answer = answered(capsys, *words)
    main = next(Path(file) for file in answer["files"] if Path(file).suffix in (".h", ".py", ".ll"))
    head = main.read_text(encoding="utf-8")[:6000]
    assert answer["about"]["parflex"] == parflex.__version__
    for part in (parflex.__version__, answer["about"]["robot_sha256"], "friction", "left.1", "rad/s2", "N m"):
        assert part in head, part
    again = answered(capsys, *words, "--set", "constants.proximal=0.41")
    assert again["about"]["robot_sha256"] != answer["about"]["robot_sha256"]
    assert answer["about"]["without"] == ["friction"]
    keys = {"index", "direction", "group", "name", "unit"}
    assert all(set(signal) == keys for signal in answer["signals"])
    assert [s["name"] for s in answer["signals"] if s["direction"] == "output"] == ["left.1", "right.1"]
    assert len(answer["inputs"]) == sum(s["direction"] == "input" for s in answer["signals"])


def test_names_that_c_cannot_tell_apart_have_indices_of_their_own(tmp_path):
    same = {"direction": "output", "group": "effort", "unit": "N"}
    signals = [same | {"index": k, "name": name} for k, name in enumerate(("a-b", "a_b", "A.b", "a b", "ä"))]
    words = [word for word, _ in index_names("R", signals, ["effort"])]
    assert len(set(words)) == len(words)
    assert all(re.fullmatch(r"[A-Z_][A-Z0-9_]*", word) for word in words)
    model = parflex.model(parflex.load("5r", settings={"name": "zwei-Räder"}), "inverse")
    name = write_c(model, tmp_path / "c")
    assert name.isascii()
    compile_c(*STRICT, "-c", "-o", tmp_path / "c" / "o.o", tmp_path / "c" / f"{name}.c")
