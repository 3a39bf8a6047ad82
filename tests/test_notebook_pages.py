"""What notebooks show of robots, answers, modes, runs and maps: whole in itself, escaped, small, and moving."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from support.browser import Watched, chromium, screenshot

import parflex
from parflex.records import Record
from parflex.view.scene.projection import angles_of_view, view

LARGEST = 200_000  # letters of a page
VOID = {"img", "br"}


class Reader(HTMLParser):
    """Reads a page: tags in their order, words, and whether all that is opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(page)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def read(record: Record) -> Reader:
    """The page of a record, with what holds for all pages."""
    page = record._repr_html_()
    assert page is not None and len(page) < LARGEST
    found = Reader(page)
    assert not {"script", "link", "iframe", "object", "form"} & set(found.tags)
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "href") or str(value).startswith("data:image/png;base64,")
    assert not re.search(r"https?://|url\(|@import", page)
    return found


@pytest.fixture(scope="module")
def flat():
    return parflex.load("3rrr")


@pytest.fixture(scope="module")
def flexible():
    return parflex.load("dualemps")


def test_a_robot_is_shown_with_its_picture_freedoms_and_motors(flat, flexible):
    page = read(flat)
    assert "svg" in page.tags and "circle" in page.tags
    assert {"freedoms", "3", "leg1.1", "leg3.1", "N m", "none: rigid"} <= set(page.words)
    page = read(flexible)
    assert {"2", "13, 16, 23", "9", "N"} <= set(page.words)
    assert "no real body has the inertia of '3'" in read(parflex.load("puma560")).text
    assert "svg" in read(parflex.configure(flat, {"x": 0.05})).tags


def test_a_picture_of_a_robot_in_space_shows_its_height(flat):
    """A plan would have all points of a vertical line at one place; planar robots are seen as plans."""
    for robot, tilt in ((flat, 90.0), (parflex.load("delta"), 55.0)):
        assert angles_of_view(robot)[1] == tilt
        up = view(*angles_of_view(robot)) @ [0.0, 0.0, 1.0]
        assert up == pytest.approx([0.0, np.cos(np.radians(tilt))], abs=1e-15)


def test_answers_are_tables_with_units(flat, flexible):
    page = read(parflex.inverse_dynamics(flat, acceleration={"x": 1.0}, reactions=True))
    assert {"1.5889", "-8.7372", "N m", "reaction in", "leg1.attachment~leg1.end"} <= set(page.words)
    assert "0.0013165" in read(parflex.deflection(flexible, wrench={"17": [1.0, 5.0, 0.0]})).words
    assert "compliance, per N and N m" in read(parflex.cartesian_stiffness(flexible)).words
    assert {"steps", "moved by"} <= set(read(parflex.equilibrium(flexible)).words)
    page = read(parflex.model(flat, "inverse"))
    assert {"platform.vx", "rad/s", "445", "leg2.1"} <= set(page.words)
    assert "details" in read(parflex.explain(flat)).tags
    assert "A" in read(parflex.state_space(flexible, ["17.fx"], ["17.x"])).words  # a table of its parts


def test_modes_move_without_a_script(flexible):
    page = read(parflex.natural_frequencies(flexible))
    assert page.tags.count("svg") == 6 and page.tags.count("animate") >= 6
    assert {"14.207", "mode 6: 436.2 Hz", "in-plane"} <= set(page.words)
    moves = [value for name, value in page.attributes if name == "values"]
    for value in moves:
        first, second, third = value.split(";")
        assert first == third and re.sub(r"[\d.\- ]", "", first) == re.sub(r"[\d.\- ]", "", second)
    assert sum(value.split(";")[0] != value.split(";")[1] for value in moves) >= 6
    plate = parflex.natural_frequencies(parflex.load("gough-stewart-flexible"), modes=3)
    assert read(plate).tags.count("svg") == 3


def test_runs_and_maps_are_drawn(flexible):
    t = np.linspace(0.0, 1.0, 400)
    columns = {"t": t, "P.x": np.sin(9 * t), "effort.11": np.cos(9 * t), "energy.total": t**2}
    page = read(parflex.Run(columns, {"robot": "dualemps", "method": "gauss4", "step": 1e-3}, {"warnings": ["a < b"]}))
    assert "img" in page.tags and {"dualemps: run", "400", "a < b"} <= set(page.words)
    read(parflex.Run({"t": t}))  # nothing to draw
    found = parflex.frequency_map(flexible, [("11", -0.05, 0.05, 3), ("21", -0.05, 0.05, 2)], modes=1)
    page = read(found)
    assert "img" in page.tags and {"poses with frequencies", "6"} <= set(page.words)
    assert "no frequency" in repr(parflex.frequency_map(flexible, [("11", 50.0, 60.0, 2)], modes=1))


def test_what_a_robot_file_says_is_escaped(tmp_path, flat):
    evil = '</title></svg></div><script>alert(1)</script><img src=x onerror="alert(1)">'
    robot = parflex.load("3rrr", settings={"title": evil})
    page = read(robot)
    assert evil in page.text and "script" not in page.tags
    read(parflex.Run({"t": np.arange(3.0), evil: np.arange(3.0)}, {"robot": evil}, {"warnings": [evil]}))


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
