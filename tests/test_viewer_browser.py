"""The viewer in a real browser: its page opens, a slider moves the robot, a mode plays, and nothing else is asked."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.browser import PATIENCE, Watched, chromium, screenshot

import parflex

pytest.importorskip("viser", reason="the extra 'view' is not installed")
from parflex.view.page.viewer import Viewer

# a graphics card is not needed: the browser draws in software, slowly
SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
SCENE = {"x": 0, "y": 160, "width": 900, "height": 600}  # without the panel and without notes of the page


@contextmanager
def shown(robot: parflex.models.robot.Robot, make: Any = Viewer, **options: Any) -> Iterator[Viewer]:
    """A viewer whose loop runs beside the test."""
    viewer, stop = make(robot, port=0, **options), threading.Event()

    def loop() -> None:
        while not stop.is_set():
            viewer.turn()
            time.sleep(0.03)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield viewer
    finally:
        stop.set()
        thread.join(timeout=20)
        viewer.close()


def until(page: Any, what: Callable[[], Any], reason: str) -> Any:
    """Wait for something to become true, while the page lives on."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        page.wait_for_timeout(100)
    raise AssertionError(reason)


def picture(page: Any) -> np.ndarray:
    """What the scene looks like, as numbers."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(screenshot(page, clip=SCENE))).convert("RGB"), dtype=float)


def changed(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the pixels that differ clearly."""
    return float((np.abs(first - second).max(axis=2) > 40).mean())


def steady(page: Any) -> np.ndarray:
    """The scene once it shows something and no longer changes."""
    last = [picture(page)]

    def still() -> bool:
        page.wait_for_timeout(300)
        now = picture(page)
        same = changed(now, last[0]) == 0
        last[0] = now
        return same and float(now.min()) < 120  # something dark is there: the robot

    until(page, still, "the scene shows nothing")
    return last[0]


def field(page: Any, label: str) -> Any:
    """The field of numbers beside a label of the panel."""
    return page.locator(f"xpath=//*[normalize-space(text())='{label}']/ancestor::*[.//input][1]//input").last


def complaints(watched: Watched) -> list[str]:
    """Errors; the page's own library warns that a part of it is old."""
    return [text for text in watched.complaints if not text.startswith("warning")]


@pytest.mark.verify
def test_the_viewer_in_a_browser():
    robot = parflex.load("dualemps")
    with shown(robot) as viewer, chromium(*SOFTWARE) as browser:
        watched = Watched(browser, viewport={"width": 1280, "height": 800})
        page = watched.page
        page.goto(viewer.address)
        page.get_by_text("End effector").wait_for(timeout=PATIENCE * 1000)
        home = steady(page)

        before = viewer.session.q.copy()
        field(page, "x (m)").fill("0.4")
        page.keyboard.press("Enter")
        until(page, lambda: np.abs(viewer.session.q - before).max() > 0.01, "the slider moves nothing")
        moved = steady(page)
        assert changed(home, moved) > 0.005
        at = viewer.session.pose_sliders()[0].value
        assert at == pytest.approx(0.4, abs=1e-9)

        viewer.panel.pose_sliders["x"].max = 3.0
        good = viewer.session.q.copy()
        page.wait_for_timeout(300)
        field(page, "x (m)").fill("3")
        page.keyboard.press("Enter")
        page.get_by_text("cannot be reached").wait_for(timeout=PATIENCE * 1000)
        assert np.array_equal(viewer.session.q, good)
        assert viewer.stage.mark is not None

        page.get_by_role("tab", name="Modes").click()
        page.get_by_text("Play the mode").wait_for()
        seen = [picture(page)]
        page.get_by_text("Play the mode").click()

        def moves() -> bool:
            page.wait_for_timeout(400)
            seen.append(picture(page))
            return changed(seen[-1], seen[-2]) > 0.002

        until(page, moves, "the mode does not play")
        assert viewer.panel.play_mode.value and viewer.panel.mode.value.endswith("Hz")

        page.get_by_role("tab", name="Show").click()
        for label, name, start in (("Save picture", "dualemps.png", b"\x89PNG"), ("Save page", "dualemps.html", b"<!")):
            with page.expect_download(timeout=PATIENCE * 1000) as download:
                page.get_by_role("button", name=label).click()
            assert download.value.suggested_filename == name
            assert Path(download.value.path()).read_bytes().startswith(start)
        assert complaints(watched) == []
        root = viewer.address.rstrip("/")
        here = (root, root.replace("http", "ws"), "data:", "blob:")
        assert all(address.startswith(here) for address in watched.requests), watched.requests


@pytest.mark.verify
def test_a_recorded_page_plays_offline(tmp_path):
    viewer = Viewer(parflex.load("dualemps"), port=0)
    try:
        viewer.begin(1, 15.0)
        path = tmp_path / "mode.html"
        path.write_text(viewer.page(), encoding="utf-8")
    finally:
        viewer.close()
    with chromium(*SOFTWARE) as browser:
        watched = Watched(browser, viewport={"width": 1280, "height": 800})
        watched.context.set_offline(True)
        watched.page.goto(path.as_uri())
        seen = [picture(watched.page)]

        def moves() -> bool:
            watched.page.wait_for_timeout(400)
            seen.append(picture(watched.page))
            dark = float(seen[-2].min()) < 120
            return dark and changed(seen[-1], seen[-2]) > 0.002

        until(watched.page, moves, "the recorded mode does not play")
        assert complaints(watched) == []
        assert all(address.startswith(("file:", "data:", "blob:")) for address in watched.requests), watched.requests


DESIGN = """
[variables.constants.proximal]
lower = 0.45
upper = 0.55
[responses.lowest]
response = "frequency:1"
pose = { x = 0.0, y = 0.0 }
[responses.mass]
response = "mass"
[[constraint]]
response = "lowest"
lower = 249.8
"""


@pytest.mark.verify
def test_a_slider_of_a_design_moves_robot_and_frequencies(tmp_path):
    from parflex.sweeps.sweep_file import read_design
    from parflex.view.studio.design_desk import DesignDesk
    from parflex.view.studio.studio_viewer import StudioViewer

    file = tmp_path / "design.toml"
    file.write_text(DESIGN)
    desk = DesignDesk(parflex.load("3rrr-flexible"), read_design(file), "3rrr-flexible")

    def studio(robot: Any, **options: Any) -> Viewer:
        return StudioViewer(desk, folder=tmp_path, **options)

    with shown(desk.robot, studio) as viewer, chromium(*SOFTWARE) as browser:
        watched = Watched(browser, viewport={"width": 1280, "height": 800})
        page = watched.page
        page.goto(viewer.address)
        page.get_by_text("Keep to compare").wait_for(timeout=PATIENCE * 1000)
        until(page, lambda: viewer.shown is not None, "the programs are not prepared")
        first = steady(page)
        before = viewer.shown.responses["lowest"]
        page.get_by_role("button", name="Keep to compare").click()
        until(page, lambda: desk.kept is not None, "nothing is kept")
        own = "xpath=//label[normalize-space(.)='constants.proximal']/ancestor::*[.//input][1]//input"
        page.locator(own).last.fill("0.54")
        page.keyboard.press("Enter")
        until(page, lambda: viewer.shown.values["constants.proximal"] > 0.53, "the slider changes nothing")
        assert viewer.shown.responses["lowest"] != before
        lowest = f"{viewer.shown.responses['lowest']:.5g} Hz"
        until(page, lambda: lowest in page.content(), "the page does not show the new frequency")
        assert changed(first, steady(page)) > 0.002  # the robot, its ghost and the map
        page.get_by_role("button", name="Write robot file").click()
        until(page, lambda: list(tmp_path.glob("3rrr-flexible-design-*.toml")), "no robot file is written")
        if os.environ.get("PARFLEX_PICTURES"):
            screenshot(page, path=Path(os.environ["PARFLEX_PICTURES"]) / "studio.png")
        assert complaints(watched) == []
