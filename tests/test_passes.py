"""Each pass alone keeps the values and never costs operators; each saves what it is there for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.codegen.passes.lower import lower
from parflex.codegen.passes.nary import Nary
from parflex.codegen.passes.optimise import collected, make_program, optimise, tidy
from parflex.codegen.passes.parallel_axes import parallel_axes
from parflex.codegen.passes.saving import PASSES
from parflex.codegen.program import Program
from parflex.graph import Expression, Graph

DOCS = Path(__file__).resolve().parents[1] / "docs"
# another order of some dozen operations on numbers around one, in double precision (1e-16)
ROUNDING = 1e-12


def angles(program: Nary) -> None:
    """The pass over angles, in place like the others."""
    program.__dict__.update(parallel_axes(program, tidy).__dict__)


def everything(program: Nary) -> None:
    program.__dict__.update(optimise(program).__dict__)


def numbers(program: Nary) -> None:
    program.__dict__.update(collected(program).__dict__)


ALL = PASSES | {"parallel_axes": angles, "collect": numbers, "all together": everything}


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


@pytest.mark.few
@pytest.mark.parametrize("name", ALL)
def test_a_pass_keeps_values_and_never_costs_operators(name):
    rng = np.random.default_rng(4)
    saved = 0
    for trial in range(60):
        graph = Graph()
        program = Nary(graph, [value.edge for value in random_outputs(rng, graph)])
        if trial % 2:
            PASSES["flatten"](program)  # some find more in longer sums
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


@pytest.mark.parametrize("trial", range(5))
def test_the_cost_of_sums_and_products_is_what_the_instructions_cost(trial):
    graph = Graph()
    program = Nary(graph, [value.edge for value in random_outputs(np.random.default_rng(trial), graph)])
    for step in ("flatten", "factor", "share"):
        # instructions that happen to be equal are one, so the program may have fewer
        assert lowered(program).counts()["total"] <= program.cost()
        PASSES[step](program)


def operators(name: str, build) -> tuple[int, int]:
    """Operators before and after a pass, on the long sums and products that `flatten` makes; the values stay."""
    graph = Graph()
    outputs = build(*(graph.symbol(letter) for letter in "abcd"))
    program = Nary(graph, [value.edge for value in outputs])
    before = lowered(program)
    PASSES["flatten"](program)
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


def test_signs_and_quarters_of_sums_of_angles_are_right():
    rng = np.random.default_rng(8)
    for first in ("sin", "cos"):
        for second in ("sin", "cos"):
            for sign in (1, -1):
                graph = Graph()
                a, b, c, d = (graph.symbol(letter) for letter in "abcd")
                other = {"sin": "cos", "cos": "sin"}
                x = getattr(a, first)() * getattr(b, second)()
                y = getattr(a, other[first])() * getattr(b, other[second])()
                program = make_program(graph, "angles", {"y": (x + sign * y) * c + d})
                assert program.counts()["total"] == 3
                values = dict(zip("abcd", rng.uniform(-3, 3, 4), strict=True))
                functions = {"sin": np.sin, "cos": np.cos}
                u, v = values["a"], values["b"]
                wanted = functions[first](u) * functions[second](v)
                wanted += sign * functions[other[first]](u) * functions[other[second]](v)
                found = program.evaluate(values)["y"]
                assert found == pytest.approx(wanted * values["c"] + values["d"], abs=1e-14)  # rounding


def test_a_difference_that_is_there_the_other_way_round_is_taken_with_its_sign():
    graph = Graph()
    a, b, c, d = (graph.symbol(letter) for letter in "abcd")
    program = Nary(graph, [(c * d).edge, (a - b).edge, ((c * d + b) - a).edge, ((c * d + a) - b).edge])
    PASSES["flatten"](program)
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


def test_a_program_is_run_in_python_by_the_definitions_of_its_operations():
    graph = Graph()
    a, b = graph.symbol("a"), graph.symbol("b")
    terms = [np.sign(a), np.sign(b), a - b, a / b, np.sqrt(b), np.arctan2(a, b)]
    program = make_program(graph, "some", {"y": np.array(terms, dtype=object)})
    found = program.evaluate({"a": -2.0, "b": 4.0})
    assert list(found.values()) == pytest.approx([-1, 1, -6, -0.5, 2, np.arctan2(-2, 4)], rel=1e-15)


def test_every_pass_has_its_line_in_the_documentation():
    page = (DOCS / "codegen.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- `(\w+)`:", page, flags=re.M)) >= {*PASSES, "parallel_axes"}


def test_two_sums_that_would_become_each_other_stay_two():
    """Derivatives of a flexible robot: one sum was to be the other, and that a multiple of the first."""
    program = parflex.model(parflex.load("dualemps"), "jacobian-of-inverse")
    assert all(np.isfinite(value).all() for value in program(**program.sample).values())


# -- effort --------------------------------------------------------------------------------------------------------


def test_a_program_is_put_in_order_once_between_two_changes(monkeypatch):
    graph = Graph()
    a, b, c = (graph.symbol(name) for name in "abc")
    program = Nary(graph, [(a * b + b * c).edge, ((a + b) * c).edge])
    ordered, before = [], Nary._ordered
    monkeypatch.setattr(Nary, "_ordered", lambda self, change: (ordered.append(1), before(self, change))[1])
    for _ in range(2):
        program.cost(), program.uses(), program.divisors(), program.order()
    assert len(ordered) == 1
    program.rebuild({program.outputs[0][0]: (program.outputs[1][0], -1)})
    program.cost(), program.uses()
    assert len(ordered) == 3  # by the change, and once behind it
    assert program.outputs[0][0] == program.outputs[1][0] and program.outputs[0][1] == -program.outputs[1][1]
    assert program.uses()[program.outputs[0][0]] == 2


def test_what_a_change_does_not_reach_is_not_built_anew(monkeypatch):
    graph = Graph()
    chains = [[graph.symbol(f"{name}{k}") for k in range(30)] for name in "xy"]
    totals = []
    for chain in chains:
        total = chain[0]
        for x in chain[1:]:
            total = (total * x + chain[0]).sqrt()
        totals.append(total)
    program = Nary(graph, [total.edge for total in totals])
    first, other = (program.imported(chain[0].edge)[0] for chain in chains)
    built, before = [], Nary._rebuilt
    monkeypatch.setattr(Nary, "_rebuilt", lambda self, node, memo: (built.append(node), before(self, node, memo))[1])
    kept = program.outputs[1]
    program.rebuild({first: (other, 1)})
    assert program.outputs[1] == kept
    assert len(built) == 3 * 29  # products, sums and roots of the chain that changes, none of the other
