"""Commands, examples, tables, links and citations of the documentation; pages are followed from top to bottom."""

import contextlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.cases import PUBLIC
from support.documentation import blocks, commands, console_commands, run_parflex, shows
from support.paths import ROOT, TESTS

from parflex.cli.group import cli

DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS]
TEXT_SUFFIXES = {".md", ".py", ".toml", ".cff", ".yml", ".yaml", ".json", ".svg", ".txt", ".cfg", ".sh", ""}
NOT_OURS = {"build", "dist", "out", "site", "LICENSE"}


def run_shown(line: str, code: int, text: str, page: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "parflex", line
    real_code, output = run_parflex(arguments)
    assert real_code == code, f"{line}\n{output}"
    assert not text.strip() or shows(text, output), f"{page}: {line}\nshown:\n{text}\nreal:\n{output}"


def run_python(text: str, page: str, names: dict[str, object]) -> str:
    """Return the output of an example; later examples of a page know the names of those before."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(text, page, "exec"), names)
    return output.getvalue()


def check_output(following: tuple[str, str], real: str) -> None:
    assert following[0] == "text", "an example is followed by its output"
    assert shows(following[1], real), f"shown:\n{following[1]}\nreal:\n{real}"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.few("README", "codegen")
@pytest.mark.parametrize("name", ["README.md", "docs/codegen.md", "docs/command-line.md", "docs/reproduce.md"])
def test_commands_print_the_output_on_the_page(name: str) -> None:
    shown = commands(ROOT / name)
    assert shown
    for line, code, text in shown:
        run_shown(line, code, text, name)


def test_every_command_has_a_row_of_its_answer() -> None:
    rows = re.findall(
        r"^\| ((?:`\w+` )+)\|", (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8"), flags=re.M
    )
    assert {name for row in rows for name in re.findall(r"\w+", row)} == set(cli.commands)


WITH_PYTHON = "arrays codegen vibration control simulation viewer figures reproduce flexible-bodies maps"
WITH_PYTHON += " index design redundant robot-file exchange"
WITH_PYTHON = ["README.md", *(f"docs/{name}.md" for name in WITH_PYTHON.split())]


@pytest.mark.few
@pytest.mark.parametrize("name", WITH_PYTHON)
def test_python_examples_print_the_output_on_the_page(name: str) -> None:
    found = blocks(ROOT / name)
    examples = [index for index, (language, _) in enumerate(found) if language == "python"]
    assert examples
    for index in examples:
        check_output(found[index + 1], run_python(found[index][1], name, {"__name__": "example"}))


def run_example(name: str, folder: Path, *words: str) -> str:
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--output", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.verify
def test_the_example_of_the_dualemps_writes_its_figures_and_tables(tmp_path: Path) -> None:
    assert "Largest values" in run_example("dualemps", tmp_path, "--short")
    columns = {"t", "P.x", "P.y", "P.local_ax", "P.local_ay", "effort.11", "effort.21"}
    for name in ("circle", "square"):
        assert (tmp_path / f"dualemps-{name}.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
        heading = (tmp_path / f"dualemps-{name}.csv").open(encoding="utf-8").readline()
        assert columns <= set(heading.strip().split(","))


@pytest.mark.verify
def test_the_example_of_control_writes_the_figures_of_the_paper(tmp_path: Path) -> None:
    shown = run_example("extended_ctc", tmp_path, "--templates", "1", "--jobs", "1")
    assert "Means over templates" in shown and "largest error" in shown
    for number in range(4, 10):
        text = (tmp_path / f"extended-ctc-figure-{number}.svg").read_text(encoding="utf-8")
        assert text.rstrip().endswith("</svg>")


@pytest.mark.verify
def test_the_example_of_the_gough_stewart_robot_writes_its_figure_and_table(tmp_path: Path) -> None:
    shown = run_example("gough_stewart", tmp_path, "--samples", "9")
    rows = (tmp_path / "gough-stewart.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 10
    assert rows[0].startswith("t,platform.x,") and rows[0].endswith("effort.leg6.3")
    assert (tmp_path / "gough-stewart.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert "gough-stewart.svg" in shown and "largest" in shown
    work, change = re.search(r"Work of the motors (\S+) J, change of energy (\S+) J", shown).groups()
    assert float(work) == pytest.approx(float(change), rel=2e-3)  # eight trapezoids miss 0.03 %


def test_the_whole_robot_of_the_robot_file_page_is_valid(tmp_path: Path) -> None:
    whole = [text for language, text in blocks(ROOT / "docs" / "robot-file.md") if text.startswith("format = 1")]
    assert whole
    for text in whole:
        (tmp_path / "robot.toml").write_text(text, encoding="utf-8")
        code, output = run_parflex(["check", "robot.toml", "--strict", "--json"])
        assert code == 0, output


def test_every_cited_paper_is_in_the_references() -> None:
    known = set(re.findall(r"^\| (\w+\d{4}) \|", (ROOT / "docs" / "references.md").read_text(), flags=re.M))
    assert known >= {"Khalil2007", "Zubizarreta2010", "Briot2014", "Long2014", "Germain2015", "Bathe1989"}
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml")]
    for path in [*sources, *PAGES]:
        cited = set(re.findall(r"\b([A-Z][a-z]+(?:19|20)\d\d)\b", path.read_text(encoding="utf-8")))
        assert cited <= known, f"{path.relative_to(ROOT)}: {sorted(cited - known)}"


def test_symbol_rows_have_five_columns_and_names_of_the_code() -> None:
    words = {word for path in (ROOT / "src").rglob("*.py") for word in re.findall(r"\w+", path.read_text())}
    lines = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    rows = [row for row in rows if row[0] != "symbol" and not set(row[0]) <= set("- ")]
    assert len(rows) > 40
    for row in rows:
        assert len(row) == 5 and all(row), row
        names = re.findall(r"`(\w+)`", row[1])
        assert names and set(names) <= words, f"not in the code: {row}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_pages_targets_and_functions_that_are_listed_exist() -> None:
    site, makefile, readme = ((ROOT / name).read_text() for name in ("mkdocs.yml", "Makefile", "README.md"))
    listed = re.findall(r"^ +- [^:]+: (\S+\.md)$", site, flags=re.M)
    assert listed and all((ROOT / "docs" / name).exists() for name in listed)
    targets = set(re.findall(r"^make (\w+)", readme, flags=re.M))
    assert {"demo", "test"} <= targets <= set(re.findall(r"^(\w+):", makefile, flags=re.M))
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| (`.*`) \|$", start.partition("## Python functions")[2], flags=re.M)
    assert sorted(" ".join(rows).replace("`", "").split()) == sorted(PUBLIC)


def test_no_file_names_a_path_of_some_machine() -> None:
    top = [path for path in ROOT.iterdir() if path.name not in NOT_OURS and (path.name[0] != "." or path.name == ".ci")]
    files = [file for path in top for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    made = re.compile("egg-info|__pycache__")
    files = [file for file in files if file.suffix in TEXT_SUFFIXES and not made.search(str(file))]
    assert len(files) > 40
    for file in files:
        path = re.search(r"(?<![\w.$}])/(?:work|home|root|Users|tmp)/\w", file.read_text(errors="replace"))
        assert path is None, f"{file.relative_to(ROOT)}: {path and path[0]}"


def cited_equations(text: str) -> set[int]:
    """Numbers in `theory (3)`, `theory (9), (10)` and `theory (20) to (22)`."""
    found: set[int] = set()
    for run in re.findall(r"\b[Tt]heory ((?:\(\d+\)(?:,? (?:and |to )?)?)+)", text):
        for first, last in re.findall(r"\((\d+)\)(?: to \((\d+)\))?", run):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def test_equations_are_numbered_once_each_and_tied_to_the_code() -> None:
    equations = "\n".join(text for language, text in blocks(ROOT / "docs" / "theory.md") if language == "math")
    numbers = [int(number) for number in re.findall(r"\\tag\{(\d+)\}$", equations, flags=re.M)]
    assert numbers == list(range(1, len(numbers) + 1)), "number them in the order of the page"
    cited = {path: cited_equations(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")}
    for path, equations in cited.items():
        assert equations <= set(numbers), f"{path.relative_to(ROOT)} cites {sorted(equations - set(numbers))}"
    missing = set(numbers) - set().union(*cited.values())
    assert not missing, f"no code says that it computes theory {sorted(missing)}"


FOLLOWED = [
    "tutorial.md", "howto-flexible-link.md", "howto-modal-data.md", "howto-controller.md", "howto-study.md",
    "howto-identify.md", "howto-excite.md", "howto-update.md",
    "howto-calibrate.md",
]  # fmt: skip


def run_shell(text: str) -> str:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    done = subprocess.run(["sh", "-e"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.few
@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_can_be_followed_literally(page: str, tmp_path: Path) -> None:
    found = blocks(ROOT / "docs" / page)
    assert found
    names: dict[str, object] = {"__name__": "example"}
    for index, (language, text) in enumerate(found):
        name = re.match(r"(?:# |/\* )([\w.-]+\.(?:toml|py|c))(?: \*/)?\n", text)
        if name:
            (tmp_path / name[1]).write_text(text.partition("\n")[2], encoding="utf-8")
        elif language == "console":
            for command in console_commands(text):
                run_shown(*command, page)
        elif language == "python":
            check_output(found[index + 1], run_python(text, page, names))
        elif language == "sh" and text.startswith("cc "):
            check_output(found[index + 1], run_shell(text))


def has_a_test(name: str) -> bool:
    """Whether another test runs an example."""
    files = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    tested = ("dualemps.py", "extended_ctc.py", "gough_stewart.py")
    return name in tested or any(name in path.read_text(encoding="utf-8") for path in files)


EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py") if not has_a_test(path.name))


def test_every_example_is_in_the_gallery() -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert all(f"`python examples/{path.name}`" in gallery for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.few
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_writes_its_figure(name: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", [name, "--output", str(tmp_path), "--short"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    shown = capsys.readouterr()
    assert (stop.value.code, shown.err) == (0, "")
    picture = Path(re.search(r"^Figure: (.*)$", shown.out, flags=re.M)[1])
    assert picture.parent == tmp_path
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_the_robot_of_the_examples_is_that_of_the_tutorial() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    files = dict(re.findall(r"^```toml\n# (\S+)\n(.*?)^```", text, flags=re.M | re.S))
    assert set(files) == {"crank-slide.toml", "crank-slide-flexible.toml"}
    for name, text in files.items():
        assert (ROOT / "examples" / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", ["api_reference", "commands", "diagnostics", "papers", "robot_file"])
def test_generated_pages_are_those_of_the_source(name: str) -> None:
    hook = runpy.run_path(str(ROOT / "docs" / "hooks" / f"{name}.py"))
    assert hook["PAGE"].read_text(encoding="utf-8") == hook["page"](), f"run python docs/hooks/{name}.py"
