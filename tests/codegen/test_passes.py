"""Passes keep values and save operators; generated programs name each number, its unit and its origin."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.command_line import answered
from support.emitted import STRICT, c_library, compile_c, write_c
from support.fmu_signals import check_signals
from support.traced import robot

import parflex
from parflex.codegen.lower import lower, repeated_sums_as_products
from parflex.codegen.nary import Nary
from parflex.codegen.optimise import make_program, optimise, simplify, with_collected_constants
from parflex.codegen.passes import cancel, cancel_products, factor, flatten, parallel_axes, share
from parflex.codegen.program import Program
from parflex.codegen.source_files import index_names
from parflex.symbolic.expression import Expression, Graph

# another order of some dozen operations on numbers around one, in double precision (1e-16)
ROUNDING = 1e-12


def in_place(change):
    return lambda program: program.__dict__.update(change(program).__dict__)


PASSES = {change.__name__: change for change in (flatten, cancel, cancel_products, factor, share)}
ALL = PASSES | {
    "parallel_axes": in_place(lambda program: parallel_axes(program, simplify)),
    "collect": in_place(with_collected_constants),
    "all together": in_place(optimise),
}


def random_outputs(rng: np.random.Generator, graph: Graph) -> list[Expression]:
    """Sums of products of a few things over and over, as recursions write them."""
    pool = [graph.symbol(name) for name in "abcdef"]
    pool += [function for angle in pool[:3] for function in (angle.sin(), angle.cos())]
    for _ in range(30):
        terms = []
        for _ in range(rng.integers(1, 4)):
            term = pool[rng.integers(len(pool))] * float(rng.choice([1, 1, 1, -1, 2, -0.5]))
            for _ in range(rng.integers(3)):
                term = term * pool[rng.integers(len(pool))]
            if rng.random() < 0.2:
                divisor = pool[rng.integers(len(pool))]
                term = term / (divisor * divisor + 1.5)
            terms.append(term)
        value = sum(terms[1:], terms[0])
        if isinstance(value, Expression):
            pool.append(value)
    return pool[-6:]


def lowered(program: Nary) -> Program:
    names = list(program.source.names)
    return lower(program, "random", names, [], [f"y{k}" for k in range(len(program.outputs))])


@pytest.mark.few("factor", "all together")
@pytest.mark.parametrize("name", ALL)
def test_a_pass_keeps_values_and_never_costs_operators(name):
    rng = np.random.default_rng(4)
    saved = 0
    for trial in range(60):
        graph = Graph()
        program = Nary(graph, [value.edge for value in random_outputs(rng, graph)])
        if trial % 2:
            flatten(program)  # some find more in longer sums
        before, cost = lowered(program), program.cost()
        ALL[name](program)
        after = lowered(program)
        assert program.cost() <= cost
        if name == "all together":  # one pass alone may part instructions that happened to be equal; `share` comes last
            assert after.counts()["total"] <= before.counts()["total"]
        saved += before.counts()["total"] - after.counts()["total"]
        values = dict(zip(before.inputs, rng.uniform(-1, 1, len(before.inputs)), strict=True))
        old, new = (np.array(list(version.evaluate(values).values())) for version in (before, after))
        assert np.abs(new - old).max() <= ROUNDING * max(1.0, np.abs(old).max())
    print(f"{name} saves {saved} operators in 60 programs")


def operators(name: str, build) -> tuple[int, int]:
    """Operators before and after a pass, on the long sums and products that `flatten` makes; the values stay."""
    graph = Graph()
    outputs = build(*(graph.symbol(letter) for letter in "abcd"))
    program = Nary(graph, [value.edge for value in outputs])
    before = lowered(program)
    flatten(program)
    ALL[name](program)
    after, values = lowered(program), {"a": 0.7, "b": -1.3, "c": 2.1, "d": 0.4}
    assert after.evaluate(values) == pytest.approx(before.evaluate(values), rel=1e-14)  # rounding
    return before.counts()["total"], after.counts()["total"]


@pytest.mark.parametrize(
    ("name", "build", "before", "after"),
    [
        ("flatten", lambda a, b, c, d: [((a + b) - c) - (b - c) + d], 5, 1),
        ("cancel", lambda a, b, c, d: [a + b + c, (a + b + c) - b], 3, 2),
        ("cancel", lambda a, b, c, d: [a + b, (a + b) - a - c + d], 4, 3),
        ("cancel_products", lambda a, b, c, d: [a * b, (a * b) / a + c * d], 4, 3),
        ("factor", lambda a, b, c, d: [a * b + a * c + a * d], 5, 3),
        ("factor", lambda a, b, c, d: [a / b + a / c], 3, 3),  # a (1/b + 1/c) would be four
        ("share", lambda a, b, c, d: [(a * c) * b, (b * d) * a * 2], 5, 4),
        ("share", lambda a, b, c, d: [(a + c) - b, (a + d) - b], 4, 3),
        ("share", lambda a, b, c, d: [(a + c) - b, (b + d) - a], 4, 3),
        ("collect", lambda a, b, c, d: [3 * a + 2, a * b + 5 * (3 * a + 2) - 7 * a], 7, 5),
        ("collect", lambda a, b, c, d: [3 * a + 2, a * b - 5 * (3 * a + 2) + 7 * a], 7, 5),
        ("collect", lambda a, b, c, d: [3 * a + 2 * b, 6 * a + 4 * b, -1.5 * a - b], 8, 5),
        ("parallel_axes", lambda a, b, c, d: [c * (a.cos() * b.cos() - a.sin() * b.sin())], 4, 2),
        ("parallel_axes", lambda a, b, c, d: [a.sin() * b.cos() + d - a.cos() * b.sin()], 4, 2),
    ],
)
def test_a_pass_saves_what_it_is_there_for(name, build, before, after):
    assert operators(name, build) == (before, after)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("first", ["sin", "cos"])
@pytest.mark.parametrize("second", ["sin", "cos"])
def test_signs_and_quarters_of_sums_of_angles_are_right(first, second, sign):
    other = {"sin": "cos", "cos": "sin"}

    def value(functions, a, b):
        x = functions[first](a) * functions[second](b)
        return x + sign * functions[other[first]](a) * functions[other[second]](b)

    graph = Graph()
    a, b, c, d = (graph.symbol(letter) for letter in "abcd")
    y = value({"sin": Expression.sin, "cos": Expression.cos}, a, b)
    program = make_program(graph, "angles", {"y": y * c + d})
    assert program.counts()["total"] == 3
    numbers = dict(zip("abcd", np.random.default_rng(8).uniform(-3, 3, 4), strict=True))
    wanted = value({"sin": np.sin, "cos": np.cos}, numbers["a"], numbers["b"]) * numbers["c"] + numbers["d"]
    assert program.evaluate(numbers)["y"] == pytest.approx(wanted, abs=1e-14)  # rounding


def test_a_difference_that_is_there_the_other_way_round_is_taken_with_its_sign():
    graph = Graph()
    a, b, c, d = (graph.symbol(letter) for letter in "abcd")
    program = Nary(graph, [(c * d).edge, (a - b).edge, ((c * d + b) - a).edge, ((c * d + a) - b).edge])
    flatten(program)
    found = lowered(program)
    assert list(found.evaluate({"a": 2.0, "b": 3.0, "c": 5.0, "d": 7.0}).values()) == [35.0, -1.0, 36.0, 34.0]
    assert found.counts()["total"] == 4


def test_terms_that_become_the_same_are_added():
    graph = Graph()
    a, b, c, d = (graph.symbol(letter) for letter in "abcd")
    program = Nary(graph, [(a * b).edge, (c * d).edge, (a * b + c * d).edge])
    (first, _), (second, _), _ = program.outputs
    program.rebuild({second: (first, 1)})
    assert lowered(program).evaluate(dict.fromkeys("abcd", 3.0)) == {"y0": 9.0, "y1": 9.0, "y2": 18.0}


def test_a_lone_reciprocal_may_stand_in_a_sum():
    graph = Graph()
    a, b = graph.symbol("a"), graph.symbol("b")
    program = make_program(graph, "reciprocal", {"y": 1 / a + b, "z": 1 / b})
    assert program.evaluate({"a": 4.0, "b": 8.0}) == {"y": 8.25, "z": 0.125}
    assert program.counts()["total"] == 3


def test_arithmetic_on_parameters_alone_is_hoisted_in_front():
    graph = Graph()
    x, p, q = (graph.symbol(name) for name in ("x", "p", "q"))
    program = make_program(graph, "setup", {"y": x * (p * q + 1).hold() + (p - q).hold()}, ["p", "q"])
    assert (program.counts()["setup"], program.counts()["total"]) == (3, 2)
    setup, main = program.split()
    values = {"x": 2.0, "p": 3.0, "q": 5.0}
    handed = setup.evaluate(values)
    assert main.evaluate({"x": 2.0, **handed}) == program.evaluate(values) == {"y": 30.0}
    assert main.counts()["total"] == 2 and setup.counts()["total"] == 3


def test_two_sums_that_would_become_each_other_stay_two():
    """Derivatives of a flexible robot: one sum was to be the other, and that a multiple of the first."""
    program = parflex.model(parflex.load("dualemps"), "jacobian-of-inverse")
    assert all(np.isfinite(value).all() for value in program(**program.sample).values())


def numbered(instructions, outputs):
    return Program("sums", ("x", "d", "e"), (), tuple(instructions), 0, tuple((f"y{k}", k) for k in outputs))


def both(program, **given):
    """Outputs as the program has them, and with products."""
    return [np.array(list(own.evaluate(given).values())) for own in (program, repeated_sums_as_products(program))]


def test_a_number_that_is_added_sixteen_times_is_one_product():
    chain = [("add", 0, 1)] + [("add", k, 1) if k % 2 else ("add", 1, k) for k in range(3, 18)]
    program = numbered(chain, [18])
    plain, made = both(program, x=0.3, d=0.7, e=0.0)
    assert np.allclose(made, 0.3 + 16 * 0.7, rtol=1e-15) and np.allclose(plain, made, rtol=1e-14)  # sums round more
    assert [word for word, *_ in repeated_sums_as_products(program).instructions] == ["const", "mul", "add"]


def test_sums_that_are_used_on_the_way_stay_as_they_are():
    """Values 3 to 6: x + d, twice, three times, and three times with e; the second is asked for, the third squared."""
    chain = [("add", 0, 1), ("add", 3, 1), ("add", 4, 1), ("add", 5, 2), ("mul", 5, 5), ("add", 6, 2)]
    program = numbered(chain, [4, 8, 7])
    plain, made = both(program, x=2.0, d=0.25, e=-4.0)
    assert np.array_equal(plain, made) and np.array_equal(made, [2.5, -5.25, 2.75**2])  # exact in powers of two
    assert repeated_sums_as_products(program).instructions == program.instructions


def test_random_sums_with_products_are_the_same():
    rng = np.random.default_rng(4)
    for _ in range(50):
        made = [("add", 0, 1)]
        while len(made) < 40:
            last, word = len(made) + 2, rng.choice(["add", "add", "add", "add", "mul", "sub"])
            other = int(rng.choice([1, 1, 1, 2, int(rng.integers(0, last + 1))]))
            made.append((str(word), last, other) if rng.random() < 0.7 else (str(word), other, last))
        program = numbered(made, sorted({len(made) + 2, *rng.integers(3, len(made) + 2, 2).tolist()}))
        given = {name: float(x) for name, x in zip("xde", rng.uniform(-0.5, 0.5, 3), strict=True)}
        plain, short = both(program, **given)
        assert np.allclose(plain, short, rtol=1e-9, atol=1e-9)  # differences lose digits


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


@pytest.mark.verify
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
