"""The studio in a headless browser: from the move of a slider to the picture with the new numbers on the page."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from report import Report
from timing import Harness

import parflex

NAME = "studio"
MOVES = int(os.environ.get("PARFLEX_STUDIO_MOVES", "12"))
DESIGNS = {
    "navaro": """
[variables.constants.bar]
lower = 0.2
upper = 0.22
[responses.lowest]
response = "frequency:1"
region = { x = [-0.05, 0.05, 3], y = [-0.05, 0.05, 3], rz = -0.5 }
[responses.stiffness]
response = "stiffness:platform.x"
pose = "pose-3"
[responses.mass]
response = "mass"
""",
    "gough-stewart-beams": """
[variables.constants.plate_mass]
lower = 60
upper = 90
[responses.lowest]
response = "frequency:1"
[responses.stiffness]
response = "stiffness:platform.x"
[responses.mass]
response = "mass"
""",
}
# a browser without a graphics card draws in software
FLAGS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
# when vertices or colours last went to the graphics, so that the picture that needs them can be told from later ones
UPLOADS = """(() => { const own = WebGL2RenderingContext.prototype; window.uploaded = 0;
  for (const name of ["bufferData", "bufferSubData"]) { const plain = own[name];
    own[name] = function (...given) { window.uploaded = performance.now(); return plain.apply(this, given); }; } })()"""
# milliseconds from the event that sends a number: to the first picture with another value beside its bar (waited), to
# the last vertices and colours of the move given to the graphics (given), and to the first picture after it (complete)
WATCH = """() => { const own = window.watch = {waited: null, given: null, complete: null};
  let begun = null, before = null, drawn = 0;
  const value = () => { const bar = [...document.querySelectorAll("b")].find(one => one.textContent == "lowest");
    return bar ? bar.parentElement.textContent : before; };
  before = value();
  document.addEventListener("input", () => { begun ??= performance.now(); }, {capture: true, once: true});
  const look = () => { const now = performance.now();
    if (begun !== null && own.waited === null && value() != before) own.waited = now - begun;
    if (begun !== null && window.uploaded > begun && window.uploaded != drawn) {
      drawn = window.uploaded; own.given = drawn - begun; own.complete = now - begun; }
    if (window.watch === own && !own.over) requestAnimationFrame(look); };
  requestAnimationFrame(look); }"""


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Both robots, one slider each."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        report.progress("studio: no browser, skipped")
        return
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=list(FLAGS))
        for name, text in DESIGNS.items():
            _measured(report, browser, name, text, folder)
        browser.close()


def _measured(report: Report, browser: Any, name: str, text: str, folder: Path) -> None:
    from parflex.design.sweep import read_design
    from parflex.view.studio import DesignSession, StudioViewer

    class TimedStudio(StudioViewer):
        """Notes the processor time of each turn that showed a design."""

        spent: ClassVar[list[float]] = []

        def turn(self) -> None:
            start, shown = time.thread_time(), self.shown
            super().turn()
            if self.shown is not shown:
                self.spent.append(time.thread_time() - start)

    path = folder / "design.toml"
    path.write_text(text)
    begin = time.perf_counter()
    desk = DesignSession(parflex.load(name), read_design(path), name)
    viewer, stop = TimedStudio(desk, port=0, folder=folder), threading.Event()
    report.figure(NAME, f"{name}, page open", time.perf_counter() - begin, "s")

    def loop() -> None:
        while not stop.is_set():
            viewer.watch(0.2)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        page = browser.new_context(viewport={"width": 800, "height": 500}).new_page()
        page.add_init_script(UPLOADS)
        page.goto(viewer.address)
        while viewer.shown is None:
            page.wait_for_timeout(50)
        report.figure(NAME, f"{name}, sliders ready", time.perf_counter() - begin, "s")
        page.locator("b", has_text="lowest").first.wait_for(timeout=60_000)
        key = desk.keys[0]
        slider = page.locator(f"xpath=//label[normalize-space(.)='{key}']/ancestor::*[.//input][1]//input").last
        low, high = desk.file.variables[key].bounds
        waits: dict[str, list[float]] = {
            "picture": [],
            "vertices and colours in the graphics": [],
            "all of the picture": [],
        }
        for share in np.linspace(0.3, 0.7, MOVES):
            page.wait_for_timeout(200)
            page.evaluate(WATCH)
            slider.fill(f"{low + share * (high - low):.6g}")
            page.wait_for_function("window.watch.waited !== null", polling=100, timeout=60_000)
            page.wait_for_timeout(700)  # the scene is drawn
            while not viewer.resting:  # the list of modes is made when the slider rests
                page.wait_for_timeout(50)
            page.evaluate("window.watch.over = true")
            found = page.evaluate("(({waited, given, complete}) => [waited, given, complete])(window.watch)")
            for own, seen in zip(waits.values(), found, strict=True):
                own.append(np.nan if seen is None else seen / 1e3)
        if os.environ.get("PARFLEX_PICTURES"):
            page.screenshot(path=Path(os.environ["PARFLEX_PICTURES"]) / f"studio-{name}.png")
    finally:
        stop.set()
        thread.join(timeout=30)
        viewer.close()
    for what, own in waits.items():
        low_, high_ = np.nanquantile(own, [0.1, 0.9])
        note = f"{low_:.3g} to {high_:.3g} s, first {own[0]:.3g} s, load {os.getloadavg()[0]:.1f}"
        report.figure(NAME, f"{name}, slider to {what}", float(np.nanmedian(own)), "s", note=note)
    report.figure(NAME, f"{name}, processor time of a move", float(np.median(viewer.spent[1:])), "s")
