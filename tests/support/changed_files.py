"""The five-bar robot file of the documentation, and changes of it."""

import re

from support.paths import ROOT

PAGE = (ROOT / "docs" / "robot-file.md").read_text(encoding="utf-8")
FIVE_BAR = re.search(r"## A whole robot.*?```toml\n(.*?)```", PAGE, re.DOTALL).group(1)


def changed(old: str, new: str, text: str = FIVE_BAR) -> str:
    """The robot of the documentation with one thing made wrong."""
    assert old in text
    return text.replace(old, new, 1)
