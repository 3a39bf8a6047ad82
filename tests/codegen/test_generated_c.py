"""Generated C: it compiles without a warning, runs cleanly and gives Python's numbers."""

import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.chains import chain
from support.command_line import answered
from support.documentation import blocks, commands, run_parflex, shows
from support.emitted import STRICT, c_library, compile_c, tool, write_c
from support.paths import ROOT
from support.traced import ROBOTS, difference, expected, inputs, made, samples

import parflex
from parflex.codegen import simd_plan
from parflex.codegen.emit_c import CHUNK, emit_c
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.codegen.source_files import identifier
from parflex.symbolic.expression import Graph

BENDING = ["dualemps", "dualemps-fitted", "gough-stewart-beams", "navaro", "three-beam-legs"]  # up to 40 000 operators
CASES = [(name, model) for name in (*ROBOTS, *BENDING) for model in ("inverse", "direct")]
SHORT_RUNS = [("3rrr", "step"), ("delta", "mass-matrix")]
VALGRIND = SHORT_RUNS + [(name, "inverse") for name in (*ROBOTS, *BENDING)]


@pytest.mark.few("four-bar-direct", "dualemps-inverse")
@pytest.mark.parametrize(("name", "model"), CASES)
def test_the_example_compiles_strictly_and_prints_the_numbers_of_python(name, model, tmp_path):
    program = made(name, model)
    word = write_c(program, tmp_path)
    compile_c(*STRICT, "-O1", "-o", tmp_path / "example", tmp_path / f"{word}_example.c", tmp_path / f"{word}.c", "-lm")
    done = subprocess.run([str(tmp_path / "example")], capture_output=True, text=True, check=True)
    printed = np.array([float(line) for line in done.stdout.split()])
    wanted = np.concatenate([value.ravel() for value in program.evaluate("numpy", **program.sample).values()])
    # the same operations in the same order; sines of another library and fused operations differ by rounding
    assert np.abs(printed - wanted).max() <= 1e-12 * np.abs(wanted).max()


@pytest.mark.few("3rrr")
@pytest.mark.parametrize(("name", "model"), [("gough-stewart", "inverse"), ("delta", "direct"), ("3rrr", "geometry")])
def test_the_header_serves_cpp(name, model, tmp_path):
    program = made(name, model)
    word = write_c(program, tmp_path)
    (tmp_path / "use.cpp").write_text(
        f'#include "{word}.h"\n#include "{word}.h"\n'
        f"int main() {{ double x[{word.upper()}_INPUTS] = {{}}, y[{word.upper()}_OUTPUTS] = {{}};\n"
        f"  {word}(x, y); return {word.upper()}_PARAMETERS; }}\n"
    )
    compile_c(*STRICT, "-c", "-o", tmp_path / "model.o", tmp_path / f"{word}.c")
    strict = [option for option in STRICT if not option.startswith("-std")]
    files = (tmp_path / "use.cpp", tmp_path / "model.o")
    compile_c("-std=c++11", *strict, "-o", tmp_path / "use", *files, "-lm", compiler="g++")
    assert subprocess.run([str(tmp_path / "use")], check=False).returncode == 0
    # the source itself is C++ too
    words = ("-x", "c++", "-c", "-o", tmp_path / "again.o", tmp_path / f"{word}.c")
    compile_c("-std=c++11", *strict, *words, compiler="g++")


@pytest.mark.few("3rrr", "four-bar")
@pytest.mark.parametrize("name", ["gough-stewart", "3rrr", "rx90", "four-bar"])
def test_single_precision_is_near(name, tmp_path):
    program, states = made(name, "inverse"), samples(name, 10)
    found = c_library(program, inputs(program, states), tmp_path, float32=True)
    # seven digits, of which a matrix of condition up to 1e3 takes three
    assert difference(found, expected(name, "inverse", states)) < 1e-3
    assert difference(found, expected(name, "inverse", states)) > 1e-12  # it is single precision
    text = "".join(text for name, text in program.files("c", float32=True).items() if not name.endswith(".mk"))
    assert "static const double" not in text and "double *" not in text


@pytest.mark.verify
@pytest.mark.parametrize(("name", "model"), VALGRIND)
def test_valgrind_finds_nothing(name, model, tmp_path):
    valgrind = tool("valgrind")
    word = write_c(made(name, model), tmp_path)
    compile_c(*STRICT, "-g", "-o", tmp_path / "run", tmp_path / f"{word}_example.c", tmp_path / f"{word}.c", "-lm")
    options = ["--error-exitcode=9", "--leak-check=full", "--track-origins=yes"]
    done = subprocess.run([valgrind, *options, str(tmp_path / "run")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_parameters_are_set_up_by_a_function_of_their_own(tmp_path):
    states = samples("rx90", 5)
    program = made("rx90", "inverse", "base")
    found = c_library(program, inputs(program, states), tmp_path)
    assert difference(found, expected("rx90", "inverse", states)) < 1e-11  # rounding
    header = program.files("c")["rx90_inverse.h"]
    for label in (*program.program.variables, *(name for name, _ in program.program.outputs)):
        assert f": {label}  " in header
    assert f"total {program.counts['total']}" in header
    assert "void rx90_inverse_setup(const double *p, double *s);" in header
    assert f"#define RX90_INVERSE_PARAMETERS {len(program.program.parameters)}" in header
    assert f"#define RX90_INVERSE_OPERATORS {program.counts['total']}" in header


def test_the_makefile_builds_the_example(capsys, tmp_path):
    make = tool("make")
    tool("cc")
    (tmp_path / "Makefile").write_text("mine")
    for model in ("inverse", "direct"):  # two models in one folder, beside a Makefile of somebody else
        answered(capsys, "codegen", "four-bar", model, "--target", "c", "-o", tmp_path)
        name = f"four_bar_{model}"
        subprocess.run([make, "-C", str(tmp_path), "-f", f"{name}.mk"], capture_output=True, check=True)
        assert subprocess.run([str(tmp_path / f"{name}_example")], capture_output=True, check=True).stdout
    assert (tmp_path / "Makefile").read_text() == "mine"


@pytest.mark.parametrize(("robot", "name"), [("rx90", "rx90_inverse"), ("5r", "m_5r_inverse")])
def test_names_of_generated_files_are_those_of_the_documentation(robot, name):
    model, page = made(robot, "inverse"), PAGE.read_text(encoding="utf-8")
    assert set(model.files("c")) == {f"{name}.h", f"{name}.c", f"{name}_example.c", f"{name}.mk"}
    assert set(model.files("llvm")) == {f"{name}.ll"}
    for target in ("numpy", "jax", "casadi", "sympy"):
        assert set(model.files(target)) == {f"m_{robot}_inverse_{target}.py"} and f"`{target}`" in page
    for word in parflex.explain(parflex.load(robot)).forms:
        assert f"`{word}`" in page, word


def test_a_program_without_inputs_or_with_constant_outputs_compiles(tmp_path):
    graph = Graph()
    graph.symbol("unused")
    program = make_program(graph, "constant", {"y": np.array([2.5, -1.0], dtype=object)})
    for name, text in emit_c(program).items():
        (tmp_path / name).write_text(text)
    compile_c(*STRICT, "-c", "-o", tmp_path / "constant.o", tmp_path / "constant.c")


def there_and_back(instructions: int, inputs: int) -> Program:
    """A program whose second half uses the values of the first, the latest first; sizes stay near one."""
    made: list[tuple] = [("const", 0.5)]
    for k in range(1, instructions):
        last = inputs + k - 1
        partner = inputs + instructions - k if 2 * k > instructions else k % inputs
        made.append(("sin", last) if k % 40 == 0 else ("add", last, partner) if k % 2 else ("mul", inputs, last))
    names = tuple(f"x[{k}]" for k in range(inputs))
    outputs = tuple((f"y[{k}]", inputs + instructions - 1 - 7 * k) for k in range(20))
    return Program("long_one", names, (), tuple(made), 0, outputs)


PAGE = ROOT / "docs" / "codegen.md"
STACK = 24  # kB; a process that does nothing needs about ten
SMALL_STACK = """
#include <stdio.h>
#include "{name}.h"
static double x[{upper}_INPUTS], w[{upper}_WORK], y[{upper}_OUTPUTS];
int main(void) {{
  for (int k = 0; k < {upper}_INPUTS; ++k) x[k] = 0.1 + 0.8 * k / {upper}_INPUTS;
  {call};
  for (int k = 0; k < {upper}_OUTPUTS; ++k) printf("%.17g\\n", y[k]);
  return 0;
}}
"""


def on_a_small_stack(program: Program, call: str, folder: Path) -> subprocess.CompletedProcess:
    """Compile a main that makes this call, unoptimised so that all values have a place, and run it on a small stack."""
    name = identifier(program.name)
    for file, text in emit_c(program).items():
        (folder / file).write_text(text)
    (folder / "main.c").write_text(SMALL_STACK.format(name=name, upper=name.upper(), call=call))
    compile_c(*STRICT, "-O0", "-o", folder / "run", folder / "main.c", folder / f"{name}.c", "-lm")
    command = ["env", "-i", "sh", "-c", f"ulimit -s {STACK}; exec {shlex.quote(str(folder / 'run'))}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.verify
@pytest.mark.parametrize("case", ["there and back", pytest.param("chain of 80 joints", marks=pytest.mark.verify)])
def test_a_long_program_runs_on_a_small_stack_with_a_workspace_of_the_caller(case, tmp_path):
    if case == "there and back":
        program, tolerance = there_and_back(13_000, 30), 1e-12  # values of size one, halved again and again
    else:  # accelerations of 1e4 from masses of condition 1e6
        program, tolerance = parflex.model(parflex.load(chain(80, tmp_path)), "direct").program, 1e-6
    name = identifier(program.name)
    # it does not find room on that stack by itself
    assert on_a_small_stack(program, f"{name}(x, y); (void)w", tmp_path).returncode != 0
    done = on_a_small_stack(program, f"{name}_in(x, w, y)", tmp_path)
    assert done.returncode == 0, done
    count = len(program.variables)
    x = np.array([0.1 + 0.8 * k / count for k in range(count)])
    wanted = np.array(list(program.evaluate(dict(zip(program.variables, x, strict=True))).values()))
    assert np.abs(np.array([float(line) for line in done.stdout.split()]) - wanted).max() < tolerance


@pytest.mark.verify
def test_every_kind_of_instruction_works_across_the_pieces_of_a_long_program(monkeypatch, tmp_path):
    """Values, flags and angles that are used hundreds of instructions after they were made."""
    graph = Graph()
    a, b = graph.symbol("a"), graph.symbol("b")
    entries = np.array([[a, b, 1.0], [b, -a * b, a], [0.5, a, b]], dtype=object)
    x = a.solve_system(entries, np.array([a, b, 2.0], dtype=object))
    value = a
    for k in range(2 * CHUNK):
        value = (value * b).sin() if k % 20 == 0 else 0.5 * value * b + (k % 7) * a
    early = [*x, a.arctan2(b), b.sign(), a.sin(), (a * a).sqrt()]
    program = make_program(graph, "pieces", {"y": np.array([value, *(value * one for one in early)], dtype=object)})
    assert len(program.instructions) > 3 * CHUNK
    shapes = {"a": (1,), "b": (1,)}
    model = parflex.Model("pieces", program, shapes, {"y": (len(program.outputs),)}, sample={"a": [0.3], "b": [-0.9]})
    given = {"a": np.array([[0.3], [-1.2]]), "b": np.array([[-0.9], [0.7]])}
    wanted = model.evaluate("numpy", **given)
    # every step halves what came before: rounding does not grow
    assert difference(c_library(model, given, tmp_path), wanted) < 1e-12
    monkeypatch.setenv("PARFLEX_CACHE", "off")
    for whole, piece in ((simd_plan.WHOLE, simd_plan.CHUNK), (0, 100)):  # as one function, and in pieces
        monkeypatch.setattr(simd_plan, "WHOLE", whole)
        monkeypatch.setattr(simd_plan, "CHUNK", piece)
        kernel, rows = Kernel(program), np.concatenate([given["a"], given["b"]], axis=1)
        one = np.array([kernel.one(row) for row in rows])
        assert difference({"y": one}, wanted) < 1e-12
        assert difference({"y": kernel.many(rows)}, wanted) < 1e-12
        both = np.zeros_like(one)
        half, work = kernel.half("pair"), np.empty(2 * kernel.half("pair").work + 1)
        half.call(rows.ctypes.data, both.ctypes.data, 1, work.ctypes.data)
        assert difference({"y": both}, wanted) < 1e-12


def test_commands_and_c_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line, code, text in commands(PAGE):
        real_code, output = run_parflex(shlex.split(line)[1:])
        assert real_code == code and shows(text, output), output
    source = next(text for language, text in blocks(PAGE) if language == "c" and "main(" in text)
    (tmp_path / "use.c").write_text(source)
    files = (tmp_path / "use.c", tmp_path / "generated" / "m_3rrr_inverse.c")
    compile_c(*STRICT, f"-I{tmp_path / 'generated'}", "-o", tmp_path / "use", *files, "-lm")
    done = subprocess.run([str(tmp_path / "use")], capture_output=True, text=True, check=True)
    still = {"position": [0, 0], "rotation": np.eye(2), "velocity": [0, 0], "angular_velocity": [0]}
    push = {"acceleration": [1, 0], "angular_acceleration": [0]}
    wanted = made("3rrr", "inverse")(**still, **push)["effort"]
    assert float(done.stdout) == pytest.approx(wanted[1], abs=6e-5)  # of 'leg2.1', four digits are printed
