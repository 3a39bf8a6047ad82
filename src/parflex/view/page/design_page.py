"""A page that shows a design before and after its optimisation: pictures, modes, responses, limits and their cost."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from parflex.design.optimise import Optimised
from parflex.errors import ParflexError
from parflex.io import atomic_file
from parflex.robot.robot import Robot
from parflex.statics.modes import natural_frequencies
from parflex.view.page.design_pictures import write_pictures

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1f2430; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .25rem .9rem .25rem 0; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.active td { font-weight: 600; } th { border-bottom: 1px solid #b4bac4; font-weight: 600; }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .both img { width: 100%; }
figure { margin: 0; } figcaption { color: #5a6270; }
"""


def write_design_page(found: Optimised, folder: str | Path) -> str:
    """The page of an optimisation, with its pictures beside it; gives its path."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    pictures = write_pictures(found, target)
    page = target / "index.html"
    with atomic_file(page) as file:
        file.write(_page(found, pictures).encode())
    return str(page)


def _page(found: Optimised, pictures: list[tuple[str, list[tuple[str, str]]]]) -> str:
    name = escape(found.before.name)
    parts = [
        f"<h1>{name}: {escape(found.status)}</h1>",
        f"<p>{escape(found.message)}; {found.evaluations} designs computed.</p>",
        *_shown(name, pictures[:1]),
        "<h2>Responses</h2>",
        _table(
            ["response", "", "before", "after", "unit", "change"],
            [
                (key, one["response"], one["before"], one["after"], one["unit"], _change(one["before"], one["after"]))
                for key, one in found.responses.items()
            ],
        ),
        "<h2>Variables</h2>",
        _table(
            ["key", "before", "after", "lower", "upper"],
            [(key, one["start"], one["value"], one["lower"], one["upper"]) for key, one in found.variables.items()],
        ),
    ]
    bounds = [(key, one) for key, one in found.variables.items() if one["at"]]
    if found.constraints or bounds:
        words = ["limit of", "value", "limit", "active", "objective per unit of the limit"]
        rows = [
            (one["name"], one["value"], one["limit"], "yes" if one["active"] else "", one["multiplier"])
            for one in found.constraints
        ]
        rows += [
            (f"{key} ({one['at']})", one["value"], one[one["at"]], "yes", one["multiplier"]) for key, one in bounds
        ]
        parts += ["<h2>What holds it back</h2>", _table(words, rows, [row[3] == "yes" for row in rows])]
    parts += _shown(name, pictures[1:])
    modes = _modes(found.before), _modes(found.robot)
    if all(modes):
        lines: list[tuple[Any, ...]] = [
            (k + 1, a, b, _change(a, b)) for k, (a, b) in enumerate(zip(*modes, strict=False))
        ]
        parts += ["<h2>Natural frequencies at home (Hz)</h2>", _table(["mode", "before", "after", "change"], lines)]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _shown(name: str, pictures: list[tuple[str, list[tuple[str, str]]]]) -> list[str]:
    """Pictures side by side under their titles."""
    parts: list[str] = []
    for title, files in pictures:
        parts += [f"<h2>{escape(title)}</h2>"] if title else []
        parts += ['<div class="both">']
        parts += [
            f'<figure><img src="{file}" alt="{name}: {word}"><figcaption>{word}</figcaption></figure>'
            for file, word in ((file, escape(caption)) for file, caption in files)
        ]
        parts += ["</div>"]
    return parts


def _modes(robot: Robot) -> list[float]:
    """Frequencies at home; none where nothing vibrates."""
    try:
        return [float(f) for f in natural_frequencies(robot).frequencies]
    except ParflexError:
        return []


def _change(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.2f} %" if before else ""


def _table(head: list[str], rows: list[tuple[Any, ...]], strong: list[bool] | None = None) -> str:
    numeric = [bool(rows) and all(isinstance(row[k], int | float) for row in rows) for k in range(len(head))]
    kinds = [' class="number"' if one else "" for one in numeric]
    top = "".join(f"<th{kind}>{escape(word)}</th>" for word, kind in zip(head, kinds, strict=True))
    lines = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td{kind}>{_cell(value)}</td>" for value, kind in zip(row, kinds, strict=True))
        lines.append(f"<tr{' class=active' if strong and strong[number] else ''}>{cells}</tr>")
    return f"<table><tr>{top}</tr>{''.join(lines)}</table>"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
