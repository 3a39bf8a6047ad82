"""The page that `parflex reproduce --report` writes: self-contained, strict about content, and alive in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from support.browser import Watched, chromium
from support.documentation import run_parflex

import parflex
from parflex import InputError, reproduce
from parflex.reproduction import peers, report, svg

VOID = {"meta", "br", "input"}
SVG_LEAVES = {"line", "rect", "circle", "path", "polyline"}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of one paper with modes, and of what was fitted to it."""
    return report.write_report(tmp_path_factory.mktemp("report"), reproduce("Briot2014", quick=True), quick=True)


@pytest.fixture(scope="module")
def text(page):
    return page.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """All elements with their attributes, and whether every one that is opened is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in SVG_LEAVES, f"<{tag}/> is not closed in HTML"
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def elements(text):
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader.elements


def test_the_page_names_no_address_outside_itself(text, elements):
    assert "://" not in text
    for _, attributes in elements:
        assert not {"src", "srcset", "action", "ping", "data"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")


def test_links_lead_to_places_of_the_page(elements):
    places = {attributes["id"] for _, attributes in elements if "id" in attributes}
    links = {attributes["href"][1:] for _, attributes in elements if "href" in attributes}
    assert links and links <= places


def test_the_content_policy_allows_the_own_script_and_style_by_their_hashes_and_nothing_else(text, elements):
    (policy,) = (a["content"] for t, a in elements if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (own,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.S)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert set(rules) == {"default-src", "base-uri", "form-action", "style-src", "script-src"}
    for _, attributes in elements:  # what the policy would refuse is not there
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes)


def test_pictures_and_controls_can_be_read_out(text, elements):
    pictures = re.findall(r"<svg[^>]*role=\"img\"[^>]*>(?:<title>(.+?)</title>)", text)
    assert len(pictures) == text.count("<svg") > 5 and all(pictures)
    assert all("aria-label" in attributes for tag, attributes in elements if tag == "canvas")
    assert all("aria-pressed" in a for tag, a in elements if tag == "button" and a["class"] != "pause")
    assert "prefers-reduced-motion" in text and "@media print" in text and "prefers-color-scheme" in text


def test_the_page_plays_the_modes_of_the_robot(text):
    (data,) = re.findall(r'<script type="application/json" id="mode-data">(.*?)</script>', text, flags=re.S)
    (robot,) = json.loads(data)
    found = parflex.natural_frequencies(parflex.load("dualemps"))
    assert [mode["hz"] for mode in robot["modes"]] == pytest.approx(found.frequencies, abs=1e-4)  # four decimals
    count = len(robot["points"]) // 3
    assert len(robot["edges"]) == 2 * len(robot["kinds"]) and max(robot["edges"]) < count
    for mode in robot["modes"]:
        sizes = [sum(x * x for x in mode["shape"][3 * k : 3 * k + 3]) ** 0.5 for k in range(count)]
        assert max(sizes) == pytest.approx(1, abs=1e-3)  # rounded to four decimals


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


def test_an_own_page_is_replaced_and_an_interrupted_one_leaves_nothing(tmp_path, monkeypatch):
    checks = reproduce("Khalil2007", quick=True)
    first = report.write_report(tmp_path / "new" / "folder", checks, quick=True)
    assert report.write_report(tmp_path / "new" / "folder", checks, quick=True) == first
    assert [file.name for file in first.parent.iterdir()] == ["index.html"]

    def stop(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(report.report_figures, "beside_others", stop)
    code, told = run_parflex(["reproduce", "Khalil2007", "--quick", "--report", str(tmp_path / "other")])
    assert code == 1 and told == ""
    assert not (tmp_path / "other").exists()


# -- its figures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.1, 1.9), (36.98, 97.92), (1e-7, 3e-7), (-400.0, 2700.0)])
def test_ticks_are_round_and_within_their_range(low, high):
    found = svg.ticks(low, high)
    assert 3 <= len(found) <= 8
    step = found[1] - found[0]
    assert np.diff(found) == pytest.approx([step] * (len(found) - 1))  # even steps
    assert low - 1e-9 * step <= found[0] and found[-1] <= high + 1e-9 * step
    assert float(f"{step:.0e}") == pytest.approx(step)  # one digit


def test_a_thinned_curve_keeps_its_ends_and_its_extremes():
    t = np.linspace(0, 10, 20_001)
    values = np.sin(300 * t) * np.exp(-t)
    values[7777] = 5.0  # a single sample that sticks out
    shown, kept = svg.thinned(t, values)
    assert len(shown) < 2000 and np.all(np.diff(shown) > 0)
    assert (shown[0], shown[-1]) == (0, 10)
    assert (kept.max(), kept.min()) == (5.0, values.min())
    assert svg.thinned(t[:100], values[:100])[1] is not None and len(svg.thinned(t[:100], values[:100])[0]) == 100


def test_libraries_that_are_not_installed_are_left_out(monkeypatch):
    robot = parflex.load("puma560")
    names = {who for who, _, _ in peers._speeds(robot, "inverse")}
    assert {"parflex, compiled, batches", "NumPy, the same program in batches"} <= names
    for library in ("casadi", "pinocchio"):
        monkeypatch.setitem(sys.modules, library, None)
    assert len(peers._speeds(robot, "inverse")) == 2


# -- in a browser --------------------------------------------------------------------------------------------


def picture(page) -> str:
    """What the canvas shows."""
    return page.evaluate("document.querySelector('canvas').toDataURL()")


@pytest.mark.verify
def test_the_page_moves_its_modes_in_a_browser_without_a_complaint(page):
    with chromium() as browser:
        watched = Watched(browser, viewport={"width": 1100, "height": 800})
        shown = watched.page
        shown.goto(page.as_uri())
        shown.locator("#modes").scroll_into_view_if_needed()
        told = shown.locator("output")
        assert told.inner_text() == "mode 1: 14.21 Hz, in-plane"
        before = picture(shown)
        shown.wait_for_function("before => document.querySelector('canvas').toDataURL() !== before", arg=before)
        shown.locator(".still").nth(3).click()
        assert told.inner_text().startswith("mode 4: 91.91 Hz")
        shown.get_by_role("button", name="Pause").click()
        assert shown.locator(".pause").inner_text() == "Play"
        stopped = picture(shown)
        shown.wait_for_timeout(200)
        assert picture(shown) == stopped
        shown.locator("canvas").focus()
        shown.keyboard.press("ArrowLeft")
        assert picture(shown) != stopped
        shown.pdf()  # prints
        assert watched.complaints == []
        assert watched.requests == [page.as_uri()]

        calm = Watched(browser, reduced_motion="reduce", color_scheme="dark")
        calm.page.goto(page.as_uri())
        assert calm.page.locator(".pause").inner_text() == "Play"
        assert calm.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
        assert calm.complaints == [] and calm.requests == [page.as_uri()]


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
