"""What `explain` says of a robot is what the models do with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import CATALOGUE
from support.command_line import answered, run
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex import ParflexError, model
from parflex.codegen.traces.trace import MODELS, Options, form_of, trace
from parflex.models.explaining.equations import EQUATIONS

ROOT = Path(__file__).resolve().parents[1]
ROBOTS = sorted(path.stem for path in CATALOGUE.glob("*.toml"))
FORMS_TRIED = [*ROBOTS, *(str(robot_file(name)) for name in ("cart-pendulum", "hexaglide", "upu", "two-bodies"))]
KEYS = ["bodies", "coordinates", "loops", "dependent", "motors", "models", "programs", "data"]


def equations_of_the_page() -> dict[int, str]:
    """Numbered equations of the theory page: the lines since the last number."""
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    found, lines = {}, []
    for block in re.findall(r"^```text\n(.*?)^```", text, flags=re.M | re.S):
        lines = []
        for line in block.splitlines():
            number = re.search(r" +\((\d+)\)$", line)
            lines.append((line[: number.start()] if number else line).rstrip())
            if number:
                found[int(number[1])] = "\n".join(lines)
                lines = []
    return found


def test_the_equations_are_those_of_the_theory_page():
    assert equations_of_the_page() == EQUATIONS


@pytest.mark.few("3rrr", "bricard", "dualemps")
@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_is_explained_with_its_own_numbers(name, capsys):
    robot = parflex.load(name)
    told, known = parflex.explain(robot), answered(capsys, "info", name)
    closed = bool(robot.closures.loops or robot.closures.constraints)
    assert [section.key for section in told.sections] == [k for k in KEYS if closed or k not in ("loops", "dependent")]
    assert told.sizes["rates"] == known["total_coordinates"] == robot.nv
    assert told.sizes["independent"] == known["independent_coordinates"] == len(robot.independent)
    assert told.sizes["degrees_of_freedom"] == known["degrees_of_freedom"]
    assert told.sizes["rank"] == known["closure_rows"] - known["redundant_closures"]
    text = told.as_text()
    assert all(motor in text for motor in robot.actuated_names[:6])
    for line in robot.description.reference.inferred:
        assert " ".join(line.split()) in " ".join(text.split()), "inferred data are not told"
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize(
    ("name", "form", "inputs"),
    [
        ("3rrr", "leg form", {"position", "rotation"}),  # the platform goes in
        ("5r", "general form", {"q", "qd"}),
        ("rx90", "open tree", {"q", "qd"}),
        ("dualemps", "two-node form", {"q", "qd"}),
        ("gough-stewart-flexible", "leg form", {"position", "rotation"}),
    ],
)
def test_the_form_that_is_told_is_that_of_the_program(name, form, inputs):
    robot = parflex.load(name)
    assert parflex.explain(robot).form == form
    assert inputs <= set(trace(robot, "direct").inputs)


@pytest.mark.few("3rrr", "cart-pendulum")
@pytest.mark.parametrize("name", FORMS_TRIED)
def test_the_form_that_is_told_of_every_model_is_that_of_its_trace(name):
    robot = parflex.load(name)
    told = parflex.explain(robot).forms
    assert set(told) == set(MODELS)
    for model_name, form in told.items():
        try:
            found = form_of(robot, model_name, Options())[0].name  # what a trace is made of, with bodies grouped
        except ParflexError:
            found = None
        assert form == found, model_name


def test_a_program_remembers_its_form():
    robot = parflex.load("3rrr")
    told = parflex.explain(robot).forms
    for name in ("direct", "mass-matrix", "redundant"):
        assert told[name] == trace(robot, name).form == model(robot, name).about["form"]


def test_legs_under_a_spring_are_told_as_they_are_computed():
    """Sine and cosine of a joint of a leg are known, its angle is not: a spring there needs the general form."""
    robot = parflex.load("3rrr", settings={"legs.frame.1.spring": {"stiffness": 3.0}})
    told = parflex.explain(robot)
    assert told.form == trace(robot, "direct").form == "general form"
    assert "a spring acts on a joint of its legs" in " ".join(told.sections[-2].text)
    assert told.forms["geometry"] == "leg form"


def test_legs_on_universal_joints_are_not_taken_for_legs_on_balls():
    told = parflex.explain(load_robot("upu"))
    assert "is not a ball" in told.as_text()
    assert (told.form, told.sizes["degrees_of_freedom"]) == ("general form", 3)
    assert 10 in told.sections[2].equations  # the row of a universal closure


def test_dependent_and_independent_rates_are_those_of_the_program():
    robot = parflex.load("dualemps")
    told = next(section for section in parflex.explain(robot).sections if section.key == "dependent")
    names = model(robot, "direct").labels["qd"]
    assert f"independent ({len(names)})" in " ".join(told.text)
    listed = next(line for line in told.text if line.startswith("- dependent")).partition(": ")[2].split(", ")
    assert set(listed) == set(robot.tree.rate_names) - set(names)


def test_what_is_odd_about_a_robot_is_told(tmp_path):
    over = parflex.explain(parflex.load("3-prrr"))
    assert "over-constrained, 3 rows repeat others" in " ".join(over.sections[2].text)
    mass = "inertia = { mass = 1, centre = [1, 0, 0] }"
    text = f'format = 1\nname = "few"\n[[frame]]\nname = "a"\njoint = "spherical"\n{mass}\n'
    text += f'[[frame]]\nname = "b"\nparent = "a"\njoint = "revolute"\nactuated = true\n{mass}\n'
    told = parflex.explain(parflex.load(write_robot(tmp_path, text)))
    assert "1 motor (b) for 4 freedoms. Fewer motors than degrees of freedom" in " ".join(told.sections[2].text)
    assert 2 in told.sections[1].equations  # quaternions


def test_the_verb_prints_text_markdown_or_json(capsys):
    text = run(capsys, "explain", "3rrr").out
    assert text.startswith("3rrr: ") and "Programs: leg form\n------------------\n" in text
    markdown = run(capsys, "explain", "3rrr", "--markdown").out
    assert markdown.startswith("# 3rrr") and "## Programs: leg form" in markdown
    assert markdown.count("```") % 2 == 0
    content = answered(capsys, "explain", "3rrr", "--counts")
    assert set(content) == {"name", "title", "form", "forms", "sizes", "sections", "operators", "warnings"}
    assert content["operators"]["inverse"] == model(parflex.load("3rrr"), "inverse").counts["total"]
    numbers = [equation["number"] for section in content["sections"] for equation in section["equations"]]
    assert set(numbers) <= set(EQUATIONS) and 21 in numbers
