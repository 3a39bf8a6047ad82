"""A headless Chromium for tests of pages, or a sentence that says what is missing."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = ["--no-sandbox"]  # tests may run as root
FLAGS += ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
PATIENCE = 60.0  # seconds; a busy machine without a graphics card needs a while for its first picture
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """A started browser of playwright; where there is none, the test is skipped, but not in continuous integration."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found, sync_playwright = None, None
    if found is None:
        missing = "no browser: install Debian's 'chromium' (apt-get install chromium) and 'pip install playwright'"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


def screenshot(page: Any, **options: Any) -> bytes:
    """What a page shows: Chromium refuses captures before its first frame and takes the same one a moment later."""
    from playwright.sync_api import Error

    end = time.monotonic() + PATIENCE
    while True:
        try:
            return bytes(page.screenshot(timeout=PATIENCE * 1000, **options))
        except Error as error:
            if "Unable to capture" not in str(error) or time.monotonic() > end:
                raise
        page.wait_for_timeout(250)


class Watched:
    """A page that remembers what it complained about and which addresses it asked for."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(PATIENCE * 1000)
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")
