"""Notebooks: every cell of the example runs; robots, results, modes, runs and maps are shown as whole pages."""

import os
import re
import warnings
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from support.browser import Watched, chromium, screenshot
from support.pages import Reader
from support.paths import ROOT

import parflex
from parflex.records import Record

NOTEBOOK = ROOT / "examples" / "tour.ipynb"
IMAGE, LARGEST = "data:image/svg+xml,", 330_000  # letters of a page
MOST = 60  # s that a cell may take on a busy machine, the compiled time loop included
SAID = "parflex compiles the inverse dynamics of '3rrr': once; the program is kept for later calls"


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The code cells of the notebook after a kernel ran them."""
    try:
        import nbclient
        import nbformat
    except ImportError:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no nbclient: pip install '.[test]'")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "kept without outputs"
    folder = tmp_path_factory.mktemp("notebook")
    paths = os.pathsep.join([str(Path(parflex.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    there = {"PYTHONPATH": paths, "IPYTHONDIR": str(folder), "JUPYTER_RUNTIME_DIR": str(folder)}
    there |= {"PYTHONWARNINGS": "error::UserWarning:parflex"}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's own packages
        for name, value in there.items():
            patch.setenv(name, value)
        patch.delenv("MPLBACKEND", raising=False)  # as a user's kernel chooses it
        nbclient.NotebookClient(notebook, timeout=10 * MOST, resources={"metadata": {"path": folder}}).execute()
    assert not [path for path in folder.iterdir() if path.suffix in (".npz", ".png", ".svg", ".csv")]
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells, word: str) -> dict[str, str]:
    (cell,) = [cell for cell in cells if word in cell.source]
    results = [output.data for output in cell.outputs if output.output_type == "execute_result"]
    return results[0] if results else {}


@pytest.mark.verify
def test_all_cells_run_without_errors_and_words_of_warning(cells):
    streams = [output for cell in cells for output in cell.outputs if output.output_type == "stream"]
    complaints = "".join(output.text for output in streams if output.name == "stderr")
    assert complaints.replace(SAID, "").strip() == ""
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    printed = "".join(output.text for output in streams if output.name == "stdout")
    assert "<Run dualemps: 1001 rows to t = 1 s" in printed and "(1000, 3)" in printed
    figure = shown(cells, "draw_spectrum")  # without pyplot
    assert "image/svg+xml" in figure and "NotebookFigure" in figure["text/plain"]


@pytest.mark.verify  # starts a kernel; the pages of records below are those of the cells
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('load("dualemps")', ["degrees of freedom", IMAGE, "13, 16, 23"]),
        ("reactions=True", ["effort", "N m", "reaction in"]),
        ("natural_frequencies", ["%3Canimate", "14.207", "mode 6"]),
        ("simulate", [IMAGE, "energy balance error"]),
        ("frequency_map", [IMAGE, "unreachable"]),
        ("parflex.model", ["leg1.1", "operators"]),
    ],
)
def test_a_cell_shows_a_page_and_a_short_line(cells, source, words):
    data = shown(cells, source)
    assert set(data) == {"text/html", "text/plain"}
    assert all(word in data["text/html"] for word in words) and len(data["text/html"]) < LARGEST
    assert len(data["text/plain"]) < 300


def read_page(record: Record) -> Reader:
    """The page of a record, with what holds for all pages."""
    page = record._repr_html_()
    assert page is not None and len(page) < LARGEST
    found = Reader(page)
    assert not {"script", "link", "iframe", "object", "form"} & set(found.tags)
    for name, value in (pair for _, attributes in found.elements for pair in attributes.items()):
        assert not name.startswith("on")
        assert name not in ("src", "srcset", "href") or str(value).startswith(IMAGE)
    assert not re.search(r"https?://|url\(|@import", re.sub(re.escape(IMAGE) + '[^"]*', "", page))
    for address in (*found.values("src"), *found.values("srcset")):
        ElementTree.fromstring(unquote(address.removeprefix(IMAGE)))  # well formed as a browser reads it
    return found


@pytest.fixture(scope="module")
def flat():
    return parflex.load("3rrr")


@pytest.fixture(scope="module")
def flexible():
    return parflex.load("dualemps")


def test_a_robot_is_shown_with_its_picture_freedoms_and_motors(flat, flexible):
    page = read_page(flat)
    assert "img" in page.tags
    assert {"degrees of freedom", "3", "leg1.1", "leg3.1", "N m", "none: rigid"} <= set(page.words)
    page = read_page(flexible)
    assert {"2", "13, 16, 23", "9", "N"} <= set(page.words)
    assert "no real body has the inertia of '3'" in " ".join(read_page(parflex.load("puma560")).words)
    assert "img" in read_page(parflex.configure(flat, {"x": 0.05})).tags


def test_answers_are_tables_with_units(flat, flexible):
    page = read_page(parflex.inverse_dynamics(flat, acceleration={"x": 1.0}, reactions=True))
    assert {"1.5889", "-8.7372", "N m", "reaction in", "leg1.attachment~leg1.end"} <= set(page.words)
    assert "0.0013165" in read_page(parflex.deflection(flexible, wrench={"17": [1.0, 5.0, 0.0]})).words
    assert "compliance, per N and N m" in read_page(parflex.cartesian_stiffness(flexible)).words
    assert {"steps", "moved by"} <= set(read_page(parflex.equilibrium(flexible)).words)
    page = read_page(parflex.model(flat, "inverse"))
    assert {"platform.vx", "rad/s", "441", "leg2.1"} <= set(page.words)
    assert "details" in read_page(parflex.explain(flat)).tags
    assert "A" in read_page(parflex.state_space(flexible, ["17.fx"], ["17.x"])).words  # a table of its parts


def test_modes_move_without_a_script(flexible):
    page = read_page(parflex.natural_frequencies(flexible))
    assert page.tags.count("img") == page.tags.count("source") == 6
    assert {"14.207", "mode 6: 436.2 Hz", "in-plane"} <= set(page.words)
    for moving, still in zip(page.values("src"), page.values("srcset"), strict=True):
        drawn = unquote(moving.removeprefix(IMAGE))
        assert "<animate" not in unquote(still) and "<script" not in drawn
        moves = re.findall(r"<animate attributeName='(\w)' values='([^']*)'", drawn)
        assert {"d"} < {name for name, _ in moves} <= {"d", "x", "y"}
        for _, values in moves:
            first, second, third = values.split(";")
            assert first == third != second and re.sub(r"[\d.\- ]", "", first) == re.sub(r"[\d.\- ]", "", second)


@pytest.mark.verify
def test_runs_and_maps_are_drawn(flexible):
    t = np.linspace(0.0, 1.0, 400)
    columns = {"t": t, "P.x": np.sin(9 * t), "effort.11": np.cos(9 * t), "energy.total": t**2}
    settings = {"robot": "dualemps", "method": "gauss4", "step": 1e-3}
    page = read_page(parflex.Run(columns, settings, {"warnings": ["a < b"]}))
    assert "img" in page.tags and {"dualemps: run", "400", "a < b"} <= set(page.words)
    read_page(parflex.Run({"t": t}))  # nothing to draw
    found = parflex.frequency_map(flexible, [("11", -0.05, 0.05, 3), ("21", -0.05, 0.05, 2)], modes=1)
    page = read_page(found)
    assert "img" in page.tags and {"poses with frequencies", "6"} <= set(page.words)
    assert "no frequency" in repr(parflex.frequency_map(flexible, [("11", 50.0, 60.0, 2)], modes=1))


def test_what_a_robot_file_says_is_escaped(tmp_path, flat):
    evil = '</title></svg></div><script>alert(1)</script><img src=x onerror="alert(1)">'
    robot = parflex.load("3rrr", settings={"title": evil})
    page = read_page(robot)
    assert evil in " ".join(page.words) and "script" not in page.tags
    read_page(parflex.Run({"t": np.arange(3.0), evil: np.arange(3.0)}, {"robot": evil}, {"warnings": [evil]}))


@pytest.mark.verify
def test_in_a_browser_without_scripts_modes_move_and_nothing_is_asked_for(flexible, flat):
    pages = [parflex.natural_frequencies(flexible, modes=2)._repr_html_(), flat._repr_html_()]
    with chromium() as browser:
        watched = Watched(browser, java_script_enabled=False)
        for ground, ink in (("#ffffff", "#111111"), ("#111418", "#e8e8e8")):
            style = f"<body style='background:{ground};color:{ink}'>"
            watched.page.set_content(style + "".join(pages))
            first = screenshot(watched.page)
            watched.page.wait_for_timeout(500)  # a third of a swing
            assert screenshot(watched.page) != first
        assert not watched.complaints and not [url for url in watched.requests if url.startswith("http")]
        calm = Watched(browser, java_script_enabled=False, reduced_motion="reduce")
        calm.page.set_content(pages[0])
        first = screenshot(calm.page)
        calm.page.wait_for_timeout(500)
        assert screenshot(calm.page) == first
