"""Pieces of HTML pages: cards, tables, notes, figures; inline styles whose colours suit light and dark.

Robot files are untrusted input: all text from them is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any
from urllib.parse import quote

import numpy as np

from parflex.io import MARK
from parflex.records import Record, brief, one_line
from parflex.view.style import svg_of

LINE = "rgba(128,128,128,.35)"
CARD = f"border:1px solid {LINE};border-radius:8px;padding:10px 14px;max-width:880px;overflow-x:auto"
ROWS = "display:flex;flex-wrap:wrap;gap:18px;align-items:flex-start"
CELL = f"border-bottom:1px solid {LINE};padding:3px 10px 3px 0;vertical-align:top;text-align:"
PAGE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:24px auto;max-width:940px;padding:0 16px;color-scheme:light dark}"
)
LONG = 28  # letters from which words are wrapped
TABLE = "border-collapse:collapse;border:none;margin:0;font-variant-numeric:tabular-nums"
WARNED = "border-left:4px solid #d08a00;padding:2px 10px;margin:6px 0"
MOST_ROWS = 30
MOST_MATRIX = 12


def card(title: str, *parts: str) -> str:
    """Return a frame with a title around parts; nothing if all of them are empty."""
    content = "".join(parts)
    head = f'<div style="font-weight:600;margin-bottom:6px">{escape(title)}</div>'
    return f'<div style="{CARD}">{head}{content}</div>' if content else ""


def figure_card(title: str, figure: Any, *parts: str) -> str:
    """Return a card with a figure above other parts."""
    return card(title, embedded_figure(figure, title), *parts)


def side_by_side(*parts: str) -> str:
    """Return parts side by side, stacked on narrow pages."""
    content = "".join(f"<div>{part}</div>" for part in parts if part)
    return f'<div style="{ROWS}">{content}</div>' if content else ""


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Return rows of words and numbers, numbers to the right; of a long table the first rows."""
    rows = list(rows)
    lines = [_row(head, "th")] * bool(head) + [_row(row, "td") for row in rows[:MOST_ROWS]]
    more = f"<div>... {len(rows)} rows</div>" if len(rows) > MOST_ROWS else ""
    return f'<table style="{TABLE}"><tbody>{"".join(lines)}</tbody></table>{more}' if rows else ""


def _row(entries: Sequence[Any], tag: str) -> str:
    cells = []
    for entry in entries:
        number = isinstance(entry, int | float | np.number) and not isinstance(entry, bool)
        weight = ";font-weight:600" if tag == "th" else ""
        text = one_line(entry, 200) if isinstance(entry, str) else brief(entry)
        width = ";max-width:320px;white-space:normal" if len(text) > LONG else ";white-space:nowrap"
        style = CELL + ("right" if number else "left") + width + weight
        cells.append(f'<{tag} style="{style}">{escape(text)}</{tag}>')
    return f'<tr style="background:none">{"".join(cells)}</tr>'


def rounded(value: Any) -> float:
    """Return a number without the last digits, which are rounding."""
    return round(float(value), 12) + 0.0


def matrix(values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Return a small matrix with names; of a large one its size."""
    if max(values.shape) > MOST_MATRIX:
        return f"<div>{escape(brief(values))}</div>"
    return table([[name, *map(float, row)] for name, row in zip(rows, values, strict=True)], ["", *columns])


def notes(sentences: Iterable[str]) -> str:
    """Return warnings, one below the other."""
    return "".join(f'<div style="{WARNED}">{escape(one_line(text, 400))}</div>' for text in sentences)


def embedded_figure(figure: Any, caption: str) -> str:
    """Return a figure as a picture inside the page; it has a light ground of its own."""
    return embedded_svg(svg_of(figure), caption)


def embedded_svg(svg: str, caption: str, still: str = "", width: str = "") -> str:
    """Return an SVG as a picture, which cannot run scripts; `still` is shown where motion is not wanted."""
    style = f"width:{width or 'auto'};max-width:100%;background:#fff;border-radius:6px"
    picture = f'<img alt="{escape(caption)}" style="{style}" src="{svg_address(svg)}">'
    address = svg_address(still).replace(" ", "%20")  # a space ends an address in a srcset
    source = f'<source media="(prefers-reduced-motion: reduce)" srcset="{address}">'
    return f"<picture>{source}{picture}</picture>" if still else picture


def svg_address(svg: str) -> str:
    """Return the address of an SVG text as data, its quotes exchanged because those of the address need no escape."""
    plain = " ".join(svg.replace("'", "&apos;").replace('"', "'").split())
    return "data:image/svg+xml," + quote(plain, safe=" ='()/;,.-_+*!?@[]{}|~")


def page(title: str, *parts: str) -> str:
    """Return a whole page of parts, one below the other; everything is in it."""
    body = "\n".join(f'<div style="margin:14px 0">{part}</div>' for part in parts if part)
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{PAGE}</style>'
    return (
        f'<!DOCTYPE html><!-- {MARK} -->\n<html lang="en"><head>{head}</head>'
        f"<body><h1>{escape(title)}</h1>\n{body}</body></html>\n"
    )


def any_page(record: Record) -> str:
    """Return a record as a table of its fields."""
    shown = [(f.name, brief(getattr(record, f.name))) for f in fields(record) if f.repr]  # type: ignore[arg-type]
    return card(type(record).__name__, table([row for row in shown if row[1]]))
