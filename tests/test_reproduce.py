"""Published numbers beside computed ones: the numbers themselves, the JSON, the tables and the data behind them."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.documentation import run_parflex
from support.published import FOLDER, published
from support.traced import long

import parflex
from parflex.reproduction import published_tables
from parflex.reproduction.ahead import KIND, Ahead
from parflex.reproduction.checks import totals
from parflex.reproduction.published_tables import paper_names, read_paper
from parflex.reproduction.quantities import KINDS
from parflex.reproduction.report import page

KEYS = ["paper", "quantity", "published", "computed", "difference", "tolerance", "status", "ok", "note"]
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def quick():
    """All numbers that do not take long."""
    return parflex.reproduce(quick=True)


def statuses(checks, paper, title):
    return Counter(check.status for check in checks if check.paper == paper and check.group.title == title)


def test_no_published_number_differs(quick, figure):
    count = totals(quick)
    figure("published numbers that agree, differ, were fitted, cannot be reproduced", str(tuple(count.values())))
    assert count["differs"] == 0, [check.quantity for check in quick if check.status == "differs"]


@pytest.mark.parametrize(
    ("paper", "title", "status", "count"),
    [
        ("Germain2015", "Table 3, natural frequencies", "ok", 40),
        ("Germain2015", "Table 4, calculated, in the plane", "fitted", 20),
        ("Germain2015", "Table 4, calculated, out of the plane", "not-reproducible", 14),
        ("Germain2015", "Coordinates of the model", "ok", 2),
        ("Briot2014", "Table 3, natural frequencies, row 'model'", "ok", 6),
        ("Briot2014", "Operators of the model", "ok", 4),
        ("Long2014", "Table 2, natural frequencies of the plate", "ok", 7),
        ("Long2014", "Table 4, joint values", "ok", 18),
        ("Long2014", "Deflection of the plate at rest", "ok", 2),
        ("Khalil2007", "Direct model of the inverse model's efforts, largest relative difference", "ok", 3),
        ("Khalil2007", "Efforts by (20) against those by (22), largest relative difference", "ok", 3),
        (
            "Zubizarreta2010",
            "Model with passive-joint sensors against the inverse model, largest relative difference",
            "ok",
            1,
        ),
        ("Zubizarreta2010", "Singularities on the circle of radius 0.1 m, working mode", "ok", 4),
        ("Zubizarreta2010", "Gains for 10 % overshoot and a peak after 0.1 s", "ok", 2),
    ],
)
def test_tables_of_the_papers_come_out_as_they_should(quick, paper, title, status, count):
    assert statuses(quick, paper, title) == {status: count}


def test_numbers_have_names_of_their_own_and_reasons(quick):
    names = [(check.paper, check.quantity) for check in quick]
    assert len(set(names)) == len(names)
    for check in quick:
        assert len(check.note) > 15, check.quantity
        if check.status in ("ok", "fitted"):
            assert check.ok is True and check.difference == check.computed - check.published
            assert check.tolerance is not None
        else:
            assert check.ok is None and check.tolerance is None


@pytest.mark.parametrize("name", paper_names())
def test_the_data_of_a_paper_can_be_read(name):
    paper = read_paper(name.lower())
    assert paper.paper == name and paper.erratum
    for group in paper.group:
        assert group.kind is None or group.kind in KINDS
        assert group.kind is not None or group.verdict == "not-reproducible"
        for row in group.rows:
            known = row.names or group.names
            assert row.published and (len(row.published) == 1 or len(known) >= len(row.published)), row
            for tolerance in (group.tolerance, row.tolerance):
                assert not isinstance(tolerance, list) or len(tolerance) == len(row.published)


@pytest.mark.parametrize("marks", [pytest.param(None, marks=long)])
def test_every_published_number_is_as_it_should_be(marks, figure):
    checks = parflex.reproduce()
    title = "Errors under the extended law over those under the classical one, means of ten templates"
    assert statuses(checks, "Zubizarreta2010", title) == {"ok": 15}
    count = totals(checks)
    figure("all published numbers that agree, differ, were fitted, cannot be reproduced", str(tuple(count.values())))
    assert count["differs"] == 0 and count["ok"] > 100


@pytest.mark.parametrize("marks", [pytest.param(None, marks=long)])
def test_tolerances_of_table_3_of_briot2014_follow_from_the_rounding_of_its_table_2(marks):
    """Each inertia to both ends of its rounding, and the larger changes of a frequency added up."""
    printed = {
        "12": {"M": (0.843, 5e-4), "MX": (0.004, 5e-4), "ZZ": (7.06e-4, 5e-7)},
        "14": {"M": (0.396, 5e-4), "MX": (0.030, 5e-4), "ZZ": (0.003, 5e-4)},
        "17": {"M": (0.177, 5e-4), "MX": (0.006, 5e-4), "ZZ": (2.56e-4, 5e-7)},
        "22": {"M": (0.843, 5e-4), "MX": (0.004, 5e-4), "ZZ": (7.06e-4, 5e-7)},
        "24": {"M": (0.190, 5e-4), "MX": (0.011, 5e-4), "ZZ": (9.44e-4, 5e-7)},
    }

    def frequencies(**settings):
        return parflex.natural_frequencies(parflex.load("dualemps", settings=settings)).frequencies

    moved, middle = np.zeros(6), frequencies()
    for frame, row in printed.items():
        for key, (value, half) in row.items():
            ends = [frequencies(**{f"frame.{frame}.inertia.{key}": value + way * half}) for way in (-1, 1)]
            moved += np.abs(np.array(ends) - middle).max(axis=0)
    table = tomllib.loads((FOLDER / "Briot2014.toml").read_text(encoding="utf-8"))
    assert table["group"][0]["tolerance"] == pytest.approx(moved, rel=0.03)  # rounded to two or three digits
    assert len(published("Briot2014", table["group"][0]["title"])[""]) == 6


def test_a_second_process_compiles_loops_only_where_they_are_needed_and_does_not_outlive_its_use(monkeypatch):
    groups = read_paper("Briot2014").group
    needs = next(group for group in groups if group.kind == KIND)
    with Ahead([group for group in groups if group is not needs]) as ahead:
        assert ahead._process is None
    monkeypatch.setattr("parflex.reproduction.ahead.COMPILE", "import time; time.sleep(60)")
    with Ahead(groups) as ahead:
        assert ahead._process.poll() is None
        ahead.wait_for(groups[0])  # needs nothing: does not wait
    assert ahead._process.returncode is not None


# -- the command line ------------------------------------------------------------------------------------


def answered(*arguments: str) -> tuple[int, dict]:
    code, text = run_parflex(["reproduce", *arguments, "--json"])
    return code, json.loads(text)


def test_the_json_has_the_promised_keys():
    code, answer = answered("Long2014")
    assert code == 0 and answer["warnings"] == []
    for check in answer["checks"]:
        assert list(check) == KEYS
        assert check["status"] in ("ok", "differs", "fitted", "not-reproducible")
        assert check["ok"] is {"ok": True, "fitted": True, "differs": False, "not-reproducible": None}[check["status"]]
    assert {check["paper"] for check in answer["checks"]} == {"Long2014"}


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    """A copy of the data with one published number changed by 0.1 rad/s more than its tolerance."""
    shutil.copytree(FOLDER, tmp_path / "published")
    file = tmp_path / "published" / "Long2014.toml"
    text = file.read_text(encoding="utf-8")
    assert text.count("188.7473,") == 1
    file.write_text(text.replace("188.7473,", "189.3,"), encoding="utf-8")
    monkeypatch.setattr(published_tables, "FOLDER", tmp_path / "published")


def test_a_number_that_is_wrong_differs_and_the_command_fails(wrong):
    code, answer = answered("Long2014")
    found = [check for check in answer["checks"] if check["status"] == "differs"]
    assert code == 1 and len(found) == 1
    assert found[0]["ok"] is False and found[0]["published"] == 189.3 and "mode 7" in found[0]["quantity"]


@pytest.mark.verify
def test_a_number_that_is_wrong_is_red_on_the_page(wrong):
    text = page(parflex.reproduce("Long2014"), quick=True)
    assert text.count('<td class="verdict differs">') == 1
    assert '<li class="differs"><b>1</b>' in text
    assert text.count('class="bad"') == 2  # among all checks, and in the figure of its table


def test_a_quantity_that_cannot_be_computed_differs_and_says_why(tmp_path, monkeypatch):
    text = """
        paper = "Khalil2007"
        title = "one"
        about = "two"
        [[group]]
        title = "three"
        source = "here"
        kind = "frame-pose"
        reason = "because"
        options = { robot = "3rrr", pose = { x = 9 }, frame = "platform" }
        rows = [{ published = [1] }]
    """
    (tmp_path / "Khalil2007.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(published_tables, "FOLDER", tmp_path)
    code, answer = answered()
    (check,) = answer["checks"]
    assert code == 1 and check["status"] == "differs" and check["computed"] is None
    assert "cannot be reached" in check["note"]


def test_a_wrong_name_of_a_paper_is_refused_with_the_nearest_one():
    code, answer = answered("Lang2014")
    assert code == 2
    assert answer["error"]["value"] == "Lang2014" and "Long2014" in answer["error"]["hint"]


def test_people_get_tables_with_reasons(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    code, text = run_parflex(["reproduce", "briot2014", "--quick"])
    assert code == 0
    lines = text.splitlines()
    assert lines[0] == "Briot2014"
    assert re.search(r"^f1 +14\.22 +14\.2068 +-0\.013 +0\.31 +ok", text, flags=re.M)
    assert "rounding of Table 2" in " ".join(text.split())
    fitted = lines.index("fitted robots: their parameters were chosen to match these numbers")
    assert any("fitted" in line for line in lines[fitted + 1 :])
    assert not any(line.rstrip().endswith(" fitted") for line in lines[:fitted])


# -- the errata --------------------------------------------------------------------------------------------


def test_the_page_of_errata_lists_those_of_the_data():
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    for name in paper_names():
        part = next(part for part in re.split(r"^## ", page, flags=re.M) if part.startswith(name))
        rows = re.findall(r"^- \*\*(.*?)\*\*: (.*?)(?: \*(read|inferred|open)\*)?$", part, flags=re.M)
        shown = [(where, meant, {"": "checked", "open": ""}.get(how, how)) for where, meant, how in rows]
        assert shown == [(e.where, e.meant, e.how) for e in read_paper(name).erratum], name
