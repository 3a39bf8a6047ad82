"""`explain` reports formulations, sizes and equation numbers; the page for contributors names the functions."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from support.catalogue import CATALOGUE
from support.command_line import answered, run
from support.paths import ROOT
from support.robots import load_robot, robot_file

import parflex
from parflex.codegen.options import Options
from parflex.codegen.trace import MODELS, formulation_of, trace
from parflex.records import count_of

ROBOTS = sorted(path.stem for path in CATALOGUE.glob("*.toml"))
FORMS_TRIED = [*ROBOTS, *(str(robot_file(name)) for name in ("cart-pendulum", "hexaglide", "upu", "two-bodies"))]
KEYS = ["bodies", "coordinates", "loops", "dependent", "motors", "models", "programs", "data"]


def equations_of_the_page() -> set[int]:
    """Return the numbers of the equations of the theory page."""
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    return {int(number) for number in re.findall(r"\\tag\{(\d+)\}$", text, flags=re.M)}


@pytest.mark.few("3rrr", "bricard", "dualemps")
@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_is_explained_with_its_numbers(name, capsys):
    robot = parflex.load(name)
    told, known = parflex.explain(robot), answered(capsys, "info", name)
    closed = bool(robot.closures.loops or robot.closures.constraints)
    assert [section.key for section in told.sections] == [k for k in KEYS if closed or k not in ("loops", "dependent")]
    assert told.sizes["rates"] == known["total_coordinates"] == robot.nv
    assert told.sizes["independent"] == known["independent_coordinates"] == len(robot.independent)
    assert told.sizes["degrees_of_freedom"] == known["degrees_of_freedom"]
    assert told.sizes["rank"] == known["closure_rows"] - known["redundant_closures"]
    assert {number for section in told.sections for number in section.equations} <= equations_of_the_page()
    text = told.as_text()
    flat = " ".join(text.split())
    assert f"degrees of freedom {told.sizes['degrees_of_freedom']}, motors {len(robot.actuated)}" in flat
    assert not closed or f"{count_of(known['closure_rows'], 'row')} of J_tot, rank {told.sizes['rank']}" in flat
    assert ("redundant row" in flat) == bool(known["redundant_closures"])
    assert all(motor in text for motor in robot.actuated_names[:6])
    for line in robot.description.reference.inferred:
        assert " ".join(line.split()) in flat, "inferred data are not told"
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.few("3rrr", "cart-pendulum")
@pytest.mark.parametrize("name", FORMS_TRIED)
def test_the_reported_form_of_every_model_is_that_of_its_trace(name):
    robot = parflex.load(name)
    told = parflex.explain(robot).forms
    assert set(told) == set(MODELS)
    for model_name, form in told.items():
        try:
            found = formulation_of(robot, model_name, Options())[0].name  # what a trace is made of, with bodies grouped
        except parflex.ParflexError:
            found = None
        assert form == found, model_name


def test_legs_with_a_spring_have_the_general_form():
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
    names = parflex.model(robot, "direct").labels["qd"]
    assert f"independent ({len(names)})" in " ".join(told.text)
    listed = next(line for line in told.text if line.startswith("- dependent")).partition(": ")[2].split(", ")
    assert set(listed) == set(robot.tree.rate_names) - set(names)


def test_the_verb_prints_text_markdown_or_json(capsys):
    text = run(capsys, "explain", "3rrr").out
    assert text.startswith("3rrr: ") and "Formulation: leg form\n---------------------\n" in text
    markdown = run(capsys, "explain", "3rrr", "--markdown").out
    assert markdown.startswith("# 3rrr") and "## Formulation: leg form" in markdown
    assert "Operators: inverse 441, direct " in run(capsys, "explain", "3rrr", "--counts").out
    content = answered(capsys, "explain", "3rrr", "--counts")
    keys = ("name", "title", "form", "forms", "sizes", "sections", "operators", "warnings", "diagnostics")
    assert set(content) == set(keys)
    assert content["operators"]["inverse"] == parflex.model(parflex.load("3rrr"), "inverse").counts["total"]
    equations = [equation for section in content["sections"] for equation in section["equations"]]
    assert {"number": 21, "text": "theory (21)"} in equations


PAGE = ROOT / "docs" / "contributing.md"
NAMES = ("package_map", "concept_map", "flow_charts", "working_modes")
PICTURES = [ROOT / "docs" / "hooks" / f"{name}.py" for name in NAMES]
SOURCE = Path(parflex.__file__).parent


def steps(heading: str) -> list[str]:
    """The functions in the first column of the table below a heading."""
    text = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w.]+)` \|", text, flags=re.M)


def returned(call) -> list[str]:
    """The functions of parflex in the order in which they return, while something is called."""
    found: list[str] = []

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "return" and path.is_relative_to(SOURCE):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            found.append(f"{module}.{frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def missing_steps(wanted: list[str], seen: list[str]) -> list[str]:
    """What of the wanted names does not come in this order."""
    rest = iter(seen)
    return [name for name in wanted if name not in rest]


def test_a_joint_angle_passes_the_functions_of_the_page_to_an_effort():
    wanted = steps("The path of a joint angle to an effort")
    seen = returned(lambda: parflex.inverse_dynamics(parflex.load("four-bar"), "home"))
    assert len(wanted) == 14 and missing_steps(wanted, seen) == []


def test_a_modulus_passes_the_functions_of_the_page():
    wanted = steps("The path of a modulus to a frequency")
    seen = returned(lambda: parflex.natural_frequencies(parflex.load("dualemps"), "home"))
    assert len(wanted) == 10 and missing_steps(wanted, seen) == []
    assert missing_steps(wanted[::-1], seen) != []


def test_a_joint_angle_passes_the_functions_of_the_page_to_c(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))  # nothing is kept there: the program is made anew
    robot = parflex.load("four-bar")
    sources = {}
    wanted = steps("The path of a joint angle to C")
    seen = returned(lambda: sources.update(parflex.model(robot, "inverse").files("c")))
    assert len(wanted) == 11 and missing_steps(wanted, seen) == []
    line = re.findall(r"`(const double [^`]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(line) == 1 and line[0] in sources["four_bar_inverse.c"]


@pytest.mark.verify
@pytest.mark.parametrize("hook", PICTURES, ids=lambda path: path.stem)
@pytest.mark.skipif(not PICTURES[0].is_file(), reason="the hooks of the documentation are not there")
def test_the_pictures_of_the_page_are_those_of_the_source(hook):
    for path, text in runpy.run_path(str(hook))["pictures"]().items():
        assert path.read_text(encoding="utf-8") == text, f"run python {hook.relative_to(ROOT)}"
