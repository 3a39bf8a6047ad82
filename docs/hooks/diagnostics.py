"""The table of diagnostics in docs/diagnostics.md, read from `parflex.diagnostics.CODES`."""

from __future__ import annotations

import sys
from typing import Any

from parflex.diagnostics import CODES

MARK = "<!-- the codes are put here -->"


def table() -> str:
    """One row a code."""
    rows = [f"| `{code}` | {meaning} | {remedy} |" for code, (meaning, remedy) in sorted(CODES.items())]
    return "\n".join(["| code | meaning | what to do |", "| --- | --- | --- |", *rows]) + "\n"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What mkdocs calls for each page."""
    return markdown.replace(MARK, table()) if MARK in markdown else markdown


if __name__ == "__main__":
    sys.stdout.write(table())
