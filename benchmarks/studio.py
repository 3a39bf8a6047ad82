"""The studio in a headless browser: from the move of a slider to the picture with the new numbers on the page."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

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
# milliseconds from the key that sends a number to the first picture with another value beside its bar
WATCH = """() => { window.waited = null; let begun = null, before = null;
  const value = () => { const own = [...document.querySelectorAll("b")].find(one => one.textContent == "lowest");
    return own ? own.parentElement.textContent : before; };
  before = value();
  const note = () => { begun = performance.now(); };
  for (const kind of ["input", "keydown"]) document.addEventListener(kind, note, {capture: true});
  const look = () => { if (value() == before || begun === null) return requestAnimationFrame(look);
    for (const kind of ["input", "keydown"]) document.removeEventListener(kind, note, {capture: true});
    window.waited = performance.now() - begun; };
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
    from parflex.sweeps.sweep_file import read_design
    from parflex.view.studio.design_desk import DesignDesk
    from parflex.view.studio.studio_viewer import StudioViewer

    path = folder / "design.toml"
    path.write_text(text)
    begin = time.perf_counter()
    desk = DesignDesk(parflex.load(name), read_design(path), name)
    viewer, stop, spent = StudioViewer(desk, port=0, folder=folder), threading.Event(), []
    report.figure(NAME, f"{name}, page open", time.perf_counter() - begin, "s")

    def loop() -> None:
        while not stop.is_set():
            start, shown = time.thread_time(), viewer.shown
            viewer.turn()
            if viewer.shown is not shown:
                spent.append(time.thread_time() - start)
            time.sleep(0.01)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        page = browser.new_context(viewport={"width": 800, "height": 500}).new_page()
        page.goto(viewer.address)
        while viewer.shown is None:
            page.wait_for_timeout(50)
        report.figure(NAME, f"{name}, sliders ready", time.perf_counter() - begin, "s")
        page.locator("b", has_text="lowest").first.wait_for(timeout=60_000)
        key = desk.keys[0]
        slider = page.locator(f"xpath=//label[normalize-space(.)='{key}']/ancestor::*[.//input][1]//input").last
        low, high = desk.file.variables[key].bounds
        waits = []
        for share in np.linspace(0.3, 0.7, MOVES):
            page.wait_for_timeout(700)  # the list of modes is made when the slider rests
            page.evaluate(WATCH)
            slider.fill(f"{low + share * (high - low):.6g}")
            page.keyboard.press("Enter")
            page.wait_for_function("window.waited !== null", polling=100, timeout=60_000)
            waits.append(page.evaluate("window.waited") / 1e3)
        if os.environ.get("PARFLEX_PICTURES"):
            page.screenshot(path=Path(os.environ["PARFLEX_PICTURES"]) / f"studio-{name}.png")
    finally:
        stop.set()
        thread.join(timeout=30)
        viewer.close()
    low_, high_ = np.quantile(waits, [0.1, 0.9])
    note = f"{low_:.3g} to {high_:.3g} s, first {waits[0]:.3g} s, load {os.getloadavg()[0]:.1f}"
    report.figure(NAME, f"{name}, slider to picture", float(np.median(waits)), "s", note=note)
    report.figure(NAME, f"{name}, processor time of a move", float(np.median(spent[1:])), "s")
