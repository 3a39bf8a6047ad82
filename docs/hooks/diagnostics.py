"""The page of diagnostics, from `parflex.diagnostics.CODES`: `python docs/hooks/diagnostics.py` writes it."""

from __future__ import annotations

from pathlib import Path

from parflex.diagnostics import CODES

PAGE = Path(__file__).resolve().parent.parent / "generated" / "diagnostics.md"
INTRODUCTION = """# Diagnostics

Each result has `diagnostics`: records with a `code`, the name of a `quantity` and its `value` (SI) if there is one, and
a `text`. `warnings` holds the texts alone. JSON has both. A function that returns an array warns by `ParflexWarning`,
whose `diagnostic` is the same record.

```python
import parflex

robot = parflex.load("orthoglide")
for diagnostic in parflex.configure(robot, {"x": 0.3, "y": 0.0, "z": 0.0}).diagnostics:
    print(diagnostic.code, diagnostic.quantity, diagnostic.value, diagnostic.text)
```

Compare codes in programs: they stay the same, while texts may change.
"""


def page() -> str:
    """Return the text of the page: the introduction and one row for each code."""
    rows = [f"| `{code}` | {meaning} | {remedy} |" for code, (meaning, remedy) in sorted(CODES.items())]
    return "\n".join([INTRODUCTION, "| code | meaning | what to do |", "| --- | --- | --- |", *rows]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
