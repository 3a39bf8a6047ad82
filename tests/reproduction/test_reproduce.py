"""Published numbers: computed numbers agree, the command line and the page of the report show them."""

import base64
import hashlib
import json
import re
import shutil
import tomllib
from collections import Counter
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from support.browser import Watched, chromium, screenshot
from support.documentation import run_parflex
from support.pages import Reader
from support.published import FOLDER, published

import parflex
from parflex import InputError, reproduce
from parflex.reproduction import report, tables
from parflex.reproduction.checks import totals


@pytest.fixture(scope="module")
def quick():
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


@pytest.mark.parametrize("marks", [pytest.param(None, marks=pytest.mark.verify)])
def test_every_published_number_is_as_it_should_be(marks, figure):
    checks = parflex.reproduce()
    title = "Errors under the extended law over those under the classical one, means of ten templates"
    assert statuses(checks, "Zubizarreta2010", title) == {"ok": 15}
    count = totals(checks)
    figure("all published numbers that agree, differ, were fitted, cannot be reproduced", str(tuple(count.values())))
    assert count["differs"] == 0 and count["ok"] > 100


@pytest.mark.parametrize("marks", [pytest.param(None, marks=pytest.mark.verify)])
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


def reproduced(*arguments: str) -> tuple[int, dict]:
    code, text = run_parflex(["reproduce", *arguments, "--json"])
    return code, json.loads(text)


def test_the_json_has_the_promised_keys():
    code, answer = reproduced("Long2014")
    assert code == 0 and answer["warnings"] == []
    for check in answer["checks"]:
        assert set(check) >= {"paper", "quantity", "published", "computed", "difference", "tolerance", "note"}
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
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "published")


def test_a_number_that_is_wrong_differs_and_the_command_fails(wrong):
    code, answer = reproduced("Long2014")
    found = [check for check in answer["checks"] if check["status"] == "differs"]
    assert code == 1 and len(found) == 1
    assert found[0]["ok"] is False and found[0]["published"] == 189.3 and "mode 7" in found[0]["quantity"]


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
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    code, answer = reproduced()
    (check,) = answer["checks"]
    assert code == 1 and check["status"] == "differs" and check["computed"] is None
    assert "cannot be reached" in check["note"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report.write_report(tmp_path_factory.mktemp("report"), reproduce("Briot2014", quick=True), quick=True)


@pytest.fixture(scope="module")
def text(page):
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def elements(text):
    return Reader(text).elements


def test_the_page_names_no_address_outside_itself(text, elements):
    assert "://" not in text
    pictures = [
        address for tag, a in elements if tag in ("img", "source") for address in (a.get("src"), a.get("srcset"))
    ]
    for address in filter(None, pictures):
        assert address.startswith("data:image/svg+xml,")
        ElementTree.fromstring(unquote(address.partition(",")[2]))
    for _, attributes in elements:
        assert not {"action", "ping", "data"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    places = {attributes["id"] for _, attributes in elements if "id" in attributes}
    links = {attributes["href"][1:] for _, attributes in elements if "href" in attributes}
    assert links and links <= places
    images = [attributes for tag, attributes in elements if tag == "img"]
    assert len(images) > 5 and all(attributes.get("alt") for attributes in images)  # read aloud


def test_the_content_policy_allows_only_the_style_of_the_page_by_its_hash(text, elements):
    (policy,) = (a["content"] for t, a in elements if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    (style,) = re.findall(r"<style>(.*?)</style>", text, flags=re.S)
    assert rules["style-src"] == f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
    assert set(rules) == {"default-src", "base-uri", "form-action", "style-src", "img-src"}
    assert rules["img-src"] == "data:" and "<script" not in text
    for _, attributes in elements:  # what the policy would refuse is not there
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes)


def test_the_page_moves_the_modes_of_the_robot(text, elements):
    found = parflex.natural_frequencies(parflex.load("dualemps"))
    labels = [f"DualEMPS: {frequency:.2f} Hz" for frequency in found.frequencies]
    moving = [a for t, a in elements if t == "img" and a["alt"].startswith("DualEMPS: ")]
    assert [attributes["alt"] for attributes in moving] == labels
    assert all("%3Canimate" in attributes["src"] for attributes in moving)
    still = [attributes["srcset"] for tag, attributes in elements if tag == "source"]
    assert len(still) == 6 and not any("%3Canimate" in address for address in still)


def test_every_number_is_on_the_page(text):
    for check in reproduce("Briot2014", quick=True):
        if check.published is not None:
            assert f"{check.published:.6g}" in text and f"{check.computed:.6g}" in text, check.quantity


def test_a_file_of_somebody_else_is_not_replaced(tmp_path):
    (tmp_path / "index.html").write_text("<!DOCTYPE html>\n<p>mine</p>", encoding="utf-8")
    code, told = run_parflex(["reproduce", "Long2014", "--report", str(tmp_path), "--json"])
    assert code == 2 and "was not written by parflex" in json.loads(told)["error"]["message"]
    assert "mine" in (tmp_path / "index.html").read_text(encoding="utf-8")
    (tmp_path / "index.html").rename(tmp_path / "file")
    with pytest.raises(InputError, match="not a folder"):
        report.check_folder(tmp_path / "file")


def test_a_page_is_replaced_and_an_interrupted_run_leaves_nothing(tmp_path, monkeypatch):
    checks = reproduce("Khalil2007", quick=True)
    first = report.write_report(tmp_path / "new" / "folder", checks, quick=True)
    assert report.write_report(tmp_path / "new" / "folder", checks, quick=True) == first
    assert [file.name for file in first.parent.iterdir()] == ["index.html"]

    def stop(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "peer_figure", stop)
    code, told = run_parflex(["reproduce", "Khalil2007", "--quick", "--report", str(tmp_path / "other")])
    assert code == 1 and told == ""
    assert not (tmp_path / "other").exists()


@pytest.mark.verify
def test_the_page_moves_its_modes_in_a_browser_without_a_complaint(page):
    with chromium() as browser:
        watched = Watched(browser, viewport={"width": 1100, "height": 800})
        calm = Watched(browser, reduced_motion="reduce", color_scheme="dark")
        for each, moves in ((watched, True), (calm, False)):
            shown = each.page
            shown.goto(page.as_uri())
            shown.locator("#modes").scroll_into_view_if_needed()
            shown.wait_for_function("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
            before = screenshot(shown)
            shown.wait_for_timeout(500)  # a third of a swing
            assert (screenshot(shown) != before) is moves
            if moves:
                shown.emulate_media(media="print")
                heights = "[...document.querySelectorAll('details')].map((part) => part.offsetHeight)"
                assert min(shown.evaluate(heights)) > 100  # what is folded on the screen is printed
                shown.pdf()
            assert each.complaints == [] and each.requests == [page.as_uri()]
        assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"


def test_the_policy_of_the_page_stops_a_foreign_script(page, tmp_path):
    """The check above sees nothing because nothing is there: with a stranger's script in it, the browser complains."""
    strange = tmp_path / "strange.html"
    text = page.read_text(encoding="utf-8").replace("</body>", "<script>document.title = 'strange'</script></body>")
    strange.write_text(text, encoding="utf-8")
    with chromium() as browser:
        watched = Watched(browser)
        watched.page.goto(strange.as_uri())
        assert watched.page.title() != "strange"
        assert any("Content Security Policy" in complaint for complaint in watched.complaints)
