"""The page of errata, from the data of the published papers: `python docs/hooks/errata.py` writes it."""

from __future__ import annotations

from pathlib import Path

from parflex.reproduction.tables import paper_names, read_paper

PAGE = Path(__file__).resolve().parent.parent / "generated" / "errata.md"
INTRODUCTION = """# Errata, by paper

Print errors and gaps of the papers, with the reading that parflex uses. [Errata of the papers](../errata.md) explains
the last column.
"""
HEAD = ["| where | reading | source |", "| --- | --- | --- |"]


def page() -> str:
    """Return the text of the page: one table for each paper."""
    lines = [INTRODUCTION]
    for name in paper_names():
        paper = read_paper(name)
        rows = [f"| {error.where} | {error.meant} | {error.how or 'open'} |" for error in paper.erratum]
        lines += [f"## {name}", "", f"{paper.title}.", "", *HEAD, *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
