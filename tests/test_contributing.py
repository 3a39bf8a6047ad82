"""The contributor's page: its picture and its paths of numbers are those of the source."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

import parflex

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "contributing.md"
MAP = ROOT / "docs" / "hooks" / "package_map.py"
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


def missing(wanted: list[str], seen: list[str]) -> list[str]:
    """What of the wanted names does not come in this order."""
    rest = iter(seen)
    return [name for name in wanted if name not in rest]


def test_a_modulus_goes_the_way_of_the_page():
    wanted = steps("The path of a modulus to a frequency")
    seen = returned(lambda: parflex.natural_frequencies(parflex.load("dualemps"), "home"))
    assert len(wanted) == 10 and missing(wanted, seen) == []
    assert missing(wanted[::-1], seen) != []


def test_a_joint_angle_goes_the_way_of_the_page(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))  # nothing is kept there: the program is made anew
    robot = parflex.load("four-bar")
    sources = {}
    wanted = steps("The path of a joint angle to C")
    seen = returned(lambda: sources.update(parflex.model(robot, "inverse").files("c")))
    assert len(wanted) == 11 and missing(wanted, seen) == []
    line = re.findall(r"`(const double [^`]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(line) == 1 and line[0] in sources["four_bar_inverse.c"]


@pytest.mark.verify
@pytest.mark.skipif(not MAP.is_file(), reason="the hooks of the documentation are not there")
def test_the_map_of_the_packages_is_that_of_the_source():
    drawn = runpy.run_path(str(MAP))
    assert drawn["PICTURE"].read_text(encoding="utf-8") == drawn["svg"](), f"run python {MAP.relative_to(ROOT)}"
