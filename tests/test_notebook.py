"""The notebook of the examples, run by a real kernel: every cell, and what it shows."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

import parflex

NOTEBOOK = Path(__file__).parent.parent / "examples" / "tour.ipynb"
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
    """What the cell whose source has the word shows, by kind."""
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


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('load("dualemps")', ["freedoms", "<svg", "13, 16, 23"]),
        ("reactions=True", ["effort", "N m", "reaction in"]),
        ("natural_frequencies", ["<animate", "14.207", "mode 6"]),
        ("simulate", ["data:image/png", "energy balance error"]),
        ("frequency_map", ["data:image/png", "unreachable"]),
        ("parflex.model", ["leg1.1", "operators"]),
    ],
)
def test_a_cell_shows_a_page_and_a_short_line(cells, source, words):
    data = shown(cells, source)
    assert set(data) == {"text/html", "text/plain"}
    assert all(word in data["text/html"] for word in words) and len(data["text/html"]) < 200_000
    assert len(data["text/plain"]) < 300


def test_a_figure_is_shown_without_pyplot(cells):
    data = shown(cells, "draw_spectrum")
    assert "image/png" in data and "Drawing" in data["text/plain"]
