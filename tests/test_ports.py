"""Generated programs say what each number is: names and units of the file, in its order, and where they come from."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import CATALOGUE
from support.command_line import answered
from support.emitted import STRICT, c_library, compile_c, write_c
from support.fmu_signals import check_signals

import parflex
from parflex import Configuration, Model, ParflexError, Robot
from parflex.codegen.emit.heading import index_names
from parflex.codegen.model import TARGETS
from parflex.codegen.ports import signals_of
from parflex.codegen.traces.trace import MODELS, trace

ROBOTS = Path(__file__).parent / "robots"
DEFINE = re.compile(r"^#define (\w+) (\d+)$", re.M)


def indices(header: str) -> dict[str, int]:
    """Macros of a header."""
    found = DEFINE.findall(header)
    assert len({name for name, _ in found}) == len(found)
    return {name: int(value) for name, value in found}


def named_inputs(of: Robot, model: Model, here: Configuration, result) -> dict[str, np.ndarray]:
    """Inputs of a model in the general form, by the names that the model itself says."""
    tree = of.tree
    positions = dict(zip(tree.position_names, here.q, strict=True))
    rates = {f"qd {name}": value for name, value in zip(tree.rate_names, result.rates, strict=True)}
    rates |= {f"qdd {name}": value for name, value in zip(tree.rate_names, result.accelerations, strict=True)}
    found: dict[str, list[float]] = {group: [] for group in model.inputs}
    for signal in model.signals:
        if signal["direction"] == "input":
            group, name = signal["group"], signal["name"]
            found[group].append(positions[name] if group == "q" else rates[f"{group} {name}"])
    return {group: np.array(values) for group, values in found.items()}


@pytest.mark.parametrize("name", ["tripod-wrist", "5r", "rx90", "two-bodies"])
def test_each_motor_of_generated_c_has_the_effort_of_its_name(name, tmp_path):
    """A wrist that the file names behind the legs had the first numbers, which the C code did not say."""
    of = parflex.load(ROBOTS / f"{name}.toml" if (ROBOTS / f"{name}.toml").exists() else name)
    model, rng = parflex.model(of, "inverse"), np.random.default_rng(2)
    here = Configuration(of, of.home)
    push = [{motor: float(rng.uniform(-1, 1)) for motor in of.actuated_names} for _ in range(2)]
    result = parflex.inverse_dynamics(of, here, *push)
    given = {group: value[None] for group, value in named_inputs(of, model, here, result).items()}
    found = c_library(model, given, tmp_path)["effort"][0]
    header = next(tmp_path.glob("*.h")).read_text(encoding="utf-8")
    places = indices(header)
    size = max(abs(value) for value in result.efforts.values())
    for motor, effort in result.efforts.items():
        macro = next(word for word in places if word.endswith("OUT_EFFORT_" + re.sub(r"\W", "_", motor).upper()))
        assert found[places[macro]] == pytest.approx(effort, abs=1e-10 * size)  # condition of the loops below 1e4
        assert f"effort[{places[macro]}]  {motor}  [" in header


def test_motors_stand_in_the_order_of_the_file():
    text = (ROBOTS / "tripod-wrist.toml").read_text(encoding="utf-8")
    assert text.index("[legs]") < text.index("[[frame]]")
    of = parflex.load(ROBOTS / "tripod-wrist.toml")
    assert of.actuated_names == ["a.P", "b.P", "c.P", "w1", "w2"]
    assert list(of.tree.rate_names[6:]) == ["a.P", "a.R", "b.P", "b.R", "c.P", "c.R", "w1", "w2"]


@pytest.mark.few
@pytest.mark.parametrize("name", ["3rrr", "rx90", "gough-stewart", "dualemps", "four-bar", "gough-stewart-flexible"])
def test_every_entry_of_every_model_has_a_name_and_a_unit(name):
    of, tried = parflex.load(name), 0
    for model in MODELS:
        if model == "jacobian-of-inverse" and name.startswith("gough"):
            continue  # 10 000 operators, and nothing new
        try:
            traced = trace(of, model)
        except ParflexError:
            continue  # this robot has no such model
        tried += 1
        shapes = [
            {group: np.shape(values) for group, values in side.items()} for side in (traced.inputs, traced.outputs)
        ]
        signals = signals_of(of, model, *shapes, list(traced.parameters), traced.labels)
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


@pytest.mark.parametrize("target", TARGETS)
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


def test_python_targets_do_not_write_over_each_other(capsys, tmp_path):
    targets = ("numpy", "jax", "casadi", "sympy")
    for robot, stem in (("3rrr", "m_3rrr_inverse"), ("rx90", "m_rx90_inverse")):
        for target in targets:
            answered(capsys, "codegen", robot, "inverse", "--target", target, "-o", str(tmp_path / robot))
        assert sorted(path.name for path in (tmp_path / robot).iterdir()) == sorted(
            f"{stem}_{target}.py" for target in targets
        )


def test_names_that_c_cannot_tell_apart_have_indices_of_their_own(tmp_path):
    signals = [
        {"index": k, "direction": "output", "group": "effort", "name": name, "unit": "N"}
        for k, name in enumerate(("a-b", "a_b", "A.b", "a b", "ä"))
    ]
    words = [word for word, _ in index_names("R", signals, ["effort"])]
    assert len(set(words)) == len(words)
    assert all(re.fullmatch(r"[A-Z_][A-Z0-9_]*", word) for word in words)
    text = (CATALOGUE / "5r.toml").read_text(encoding="utf-8").replace('name = "5r"', 'name = "zwei-Räder"')
    file = tmp_path / "robot.toml"
    file.write_text(text, encoding="utf-8")
    model = parflex.model(parflex.load(file), "inverse")
    name = write_c(model, tmp_path / "c")
    assert name.isascii()
    compile_c(*STRICT, "-c", "-o", tmp_path / "c" / "o.o", tmp_path / "c" / f"{name}.c")
