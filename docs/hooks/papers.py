"""The page of the published papers, from their data: `python docs/hooks/papers.py` writes it."""

from __future__ import annotations

from pathlib import Path

from parflex.reproduction.tables import paper_names, read_paper

PAGE = Path(__file__).resolve().parent.parent / "generated" / "papers.md"
INTRODUCTION = """# Numbers and errata, by paper

What [`parflex reproduce`](../reproduce.md) compares, and the print errors and gaps of the papers with the reading that
parflex uses. [Errata of the papers](../errata.md) explains how a reading is known.
"""
VERDICTS = {"check": "compared", "fitted": "fitted", "not-reproducible": "not reproducible"}
NUMBERS = ["| numbers | source | verdict | reason |", "| --- | --- | --- | --- |"]
ERRATA = ["| where | reading | how it is known |", "| --- | --- | --- |"]


def page() -> str:
    """Return the text of the page: two tables for each paper."""
    lines = [INTRODUCTION]
    for name in paper_names():
        paper = read_paper(name)
        numbers = [f"| {g.title} | {g.source} | {VERDICTS[g.verdict]} | {g.reason} |" for g in paper.group]
        errata = [f"| {error.where} | {error.meant} | {error.how or 'open'} |" for error in paper.erratum]
        lines += [f"## {name}", "", paper.about, "", *NUMBERS, *numbers, "", *ERRATA, *errata, ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
