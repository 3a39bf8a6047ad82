"""What the documentation shows is run; its tables, links and citations are checked."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PUBLIC
from support.documentation import ROOT, blocks, commands, run_parflex, shows

DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS]
TEXT_SUFFIXES = {".md", ".py", ".toml", ".cff", ".yml", ".yaml", ".json", ".svg", ".txt", ".cfg", ".sh", ""}
NOT_OURS = {"build", "dist", "out", "site", "LICENSE"}


def pages(*names: str) -> list[object]:
    return [pytest.param(ROOT / name, id=name) for name in names]


def test_shown_text_is_compared_as_people_read_it() -> None:
    assert shows("a 1.5 b", "a  1.5000001\nb\n")
    assert shows("a ... c\n...", "a 1 2 c 3 4")
    assert shows('{"x": 1.2346, ...}', '{"x": 1.23456789, "y": 2}')
    assert not shows("a 1.5 b", "a 1.6 b")
    assert not shows("a b", "a b c")
    assert not shows("a ... d", "a b c")
    assert not shows("... c", "a c b")


@pytest.mark.few
@pytest.mark.parametrize("page", pages("README.md", "docs/command-line.md", "docs/codegen.md", "docs/reproduce.md"))
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    shown = commands(page)
    assert shown
    for line, code, text in shown:
        program, *arguments = shlex.split(line)
        assert program == "parflex", line
        real_code, output = run_parflex(arguments)
        assert real_code == code, f"{line}\n{output}"
        assert not text.strip() or shows(text, output), f"{page.name}: {line}\nshown:\n{text}\nreal:\n{output}"


def test_every_verb_has_its_section_and_its_example() -> None:
    from parflex.cli.main import cli

    page = ROOT / "docs" / "command-line.md"
    assert set(re.findall(r"^## `(\w+)`", page.read_text(encoding="utf-8"), flags=re.M)) == set(cli.commands)
    assert {line.split()[1] for line, _, _ in commands(page)} >= set(cli.commands)


@pytest.mark.few
@pytest.mark.parametrize(
    "page",
    pages(
        "README.md",
        "docs/index.md",
        "docs/arrays.md",
        "docs/codegen.md",
        "docs/vibration.md",
        "docs/control.md",
        "docs/identification.md",
        "docs/simulation.md",
        "docs/viewer.md",
        "docs/figures.md",
        "docs/reproduce.md",
        "docs/flexible-bodies.md",
        "docs/maps.md",
        "docs/design.md",
        "docs/redundant.md",
        "docs/robot-file.md",
        "docs/exchange.md",
    ),
)
def test_python_examples_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    examples = [index for index, (language, _) in enumerate(found) if language == "python"]
    assert examples
    for index in examples:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(found[index][1], str(page), "exec"), {"__name__": "example"})
        language, shown = found[index + 1]
        assert language == "text", "an example is followed by what it prints"
        assert shows(shown, output.getvalue()), f"shown:\n{shown}\nreal:\n{output.getvalue()}"


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M)
    assert {"demo", "test"} <= set(named)
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_the_example_of_the_dualemps_writes_its_figures_and_tables(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "dualemps.py"), "--output", str(tmp_path), "--short"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Largest values" in done.stdout
    for name in ("circle", "square"):
        assert (tmp_path / f"dualemps-{name}.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
        heading = (tmp_path / f"dualemps-{name}.csv").open(encoding="utf-8").readline()
        assert {"t", "P.x", "P.y", "P.local_ax", "P.local_ay", "effort.11", "effort.21"} <= set(
            heading.strip().split(",")
        )


def test_the_example_of_control_writes_the_figures_of_the_paper(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "extended_ctc.py"), "--output", str(tmp_path)]
    done = subprocess.run(
        [*command, "--templates", "1", "--jobs", "1"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Means over templates" in done.stdout and "largest error" in done.stdout
    for number in range(4, 10):
        text = (tmp_path / f"extended-ctc-figure-{number}.svg").read_text(encoding="utf-8")
        assert text.rstrip().endswith("</svg>")


@pytest.mark.verify
def test_the_example_of_the_gough_stewart_robot_writes_its_figure_and_table(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "gough_stewart.py"), "--output", str(tmp_path), "--samples", "9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "gough-stewart.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 10
    assert rows[0].startswith("t,platform.x,") and rows[0].endswith("effort.leg6.3")
    assert (tmp_path / "gough-stewart.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert "gough-stewart.svg" in done.stdout and "largest" in done.stdout
    work, change = re.search(r"Work of the motors (\S+) J, change of energy (\S+) J", done.stdout).groups()
    assert float(work) == pytest.approx(float(change), rel=2e-3)  # eight trapezoids miss 0.03 %


def test_the_whole_robot_of_the_robot_file_page_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = [text for language, text in blocks(ROOT / "docs" / "robot-file.md") if text.startswith("format = 1")]
    assert whole
    for text in whole:
        (tmp_path / "robot.toml").write_text(text, encoding="utf-8")
        code, output = run_parflex(["check", "robot.toml", "--strict", "--json"])
        assert code == 0, output


def test_every_function_of_the_package_is_on_the_start_page() -> None:
    listed = set(re.findall(r"^- `(\w+)\(", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), flags=re.M))
    assert listed == set(PUBLIC)


@pytest.mark.parametrize(
    "page", [page for page in DOCS if re.match("howto|tutorial|coming", page.name)], ids=lambda page: page.name
)
def test_a_how_to_shows_a_picture_before_its_third_paragraph(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    paragraphs = [part for part in text.split("\n\n") if part.strip() and not part.startswith(("#", "![", "|"))]
    assert 0 < text.find("![") < text.find(paragraphs[2])


# -- citations, symbols, links -------------------------------------------------------------------------


def citation_keys() -> set[str]:
    """Keys that the page of references defines."""
    text = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| (\w+\d{4}) \|", text, flags=re.M))


def test_every_cited_paper_is_in_the_references() -> None:
    known = citation_keys()
    assert known >= {"Khalil2007", "Zubizarreta2010", "Briot2014", "Long2014", "Germain2015", "Bathe1989"}
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml")]
    for path in [*sources, *PAGES]:
        cited = set(re.findall(r"\b([A-Z][a-z]+(?:19|20)\d\d)\b", path.read_text(encoding="utf-8")))
        assert cited <= known, f"{path.relative_to(ROOT)}: {sorted(cited - known)}"


def symbol_rows() -> list[list[str]]:
    """Cells of all rows of the symbol tables, heads and rules left out."""
    lines = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if row[0] != "symbol" and not set(row[0]) <= set("- ")]


def test_symbol_rows_have_five_columns_and_names_of_the_code() -> None:
    words = {
        word for path in (ROOT / "src").rglob("*.py") for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    rows = symbol_rows()
    assert len(rows) > 40
    for row in rows:
        assert len(row) == 5 and all(row), row
        names = re.findall(r"`(\w+)`", row[1])
        assert names, f"no name of the code: {row}"
        for name in names:
            assert name in words, f"'{name}' is not in the code: {row}"


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page."""
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


def test_the_pages_of_the_site_exist() -> None:
    listed = re.findall(r"^  - [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.M)
    assert listed
    for name in listed:
        assert (ROOT / "docs" / name).exists(), name


def own_files() -> list[Path]:
    """Text files of the repository, without what is built or installed."""
    top = [path for path in ROOT.iterdir() if path.name not in NOT_OURS and (path.name[0] != "." or path.name == ".ci")]
    files = [file for path in top for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return [
        file
        for file in files
        if file.suffix in TEXT_SUFFIXES and not any(part.endswith((".egg-info", "__pycache__")) for part in file.parts)
    ]


def test_no_file_names_a_path_of_some_machine() -> None:
    somewhere = re.compile(r"(?<![\w.$}])/(?:work|home|root|Users|tmp)/\w")
    files = own_files()
    assert len(files) > 40
    for file in files:
        found = somewhere.search(file.read_text(encoding="utf-8", errors="replace"))
        assert found is None, f"{file.relative_to(ROOT)}: {found and found[0]}"


# -- numbered equations -----------------------------------------------------------------------------------------


def equation_numbers() -> list[int]:
    """Numbers at the right of the equations of the theory page, in the order of the page."""
    equations = "\n".join(text for language, text in blocks(ROOT / "docs" / "theory.md") if language == "text")
    return [int(number) for number in re.findall(r" \((\d+)\)$", equations, flags=re.M)]


def cited_equations(text: str) -> set[int]:
    """Numbers in `theory (3)`, `theory (9), (10)` and `theory (20) to (22)`."""
    found: set[int] = set()
    for run in re.findall(r"\b[Tt]heory ((?:\(\d+\)(?:,? (?:and |to )?)?)+)", text):
        for first, last in re.findall(r"\((\d+)\)(?: to \((\d+)\))?", run):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def test_equations_are_numbered_once_each_and_tied_to_the_code() -> None:
    numbers = equation_numbers()
    assert numbers == list(range(1, len(numbers) + 1)), "number them in the order of the page"
    cited = {path: cited_equations(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")}
    for path, found in cited.items():
        assert found <= set(numbers), f"{path.relative_to(ROOT)} cites {sorted(found - set(numbers))}"
    missing = set(numbers) - set().union(*cited.values())
    assert not missing, f"no code says that it computes theory {sorted(missing)}"
    assert cited_equations("theory (20) to (22), (3)") == {3, 20, 21, 22}
