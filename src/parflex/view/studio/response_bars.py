"""Bars of responses as a piece of a page: values, limits, and a second design beside the first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from parflex.view.studio.design_desk import DesignDesk, ShownDesign

SPARE = 1.1  # of the bar for the largest number that it shows
GOOD, BAD, OTHER, LINE = "#3468a8", "#dc2626", "#b4bac4", "#1f2430"


def response_bars(desk: DesignDesk, shown: ShownDesign) -> str:
    """All responses; what breaks a limit is red, the design that was kept is grey below."""
    parts = [_bar(desk, name, shown, desk.kept) for name in shown.responses]
    trouble = f'<p style="color:{BAD};margin:4px 0">{escape(shown.reason)}</p>' if shown.reason else ""
    return line(f"{trouble}{''.join(parts)}")


def line(content: str) -> str:
    """A piece of the tab in its font."""
    return f'<div style="font:13px system-ui,sans-serif;padding:3px 12px">{content}</div>' if content else ""


def _bar(desk: DesignDesk, name: str, shown: ShownDesign, kept: ShownDesign | None) -> str:
    value, before = shown.responses[name], None if kept is None else kept.responses[name]
    limits = [limit for limit in desk.limits if limit.name == name]
    best = None if desk.best is None else desk.best.responses[name]
    known = [
        abs(x) for x in (value, before, best, *(limit.value for limit in limits)) if x is not None and math.isfinite(x)
    ]
    top = max(known, default=0.0) * SPARE or 1.0
    broken = any(limit.missed(value) > 0 for limit in limits)
    rows = [_strip(value, top, BAD if broken else GOOD, 10)]
    if before is not None:
        rows.append(_strip(before, top, OTHER, 5))
    marks = "".join(_mark(limit.value / top, f"limit {limit.value:g}") for limit in limits)
    change = ""
    if before is not None and before and math.isfinite(value) and math.isfinite(before):
        change = f" ({100 * (value / before - 1):+.2f} %)"
    said = f"{value:.5g} {desk.units[name]}" if math.isfinite(value) else "-"
    head = f"<b>{escape(name)}</b><span style='float:right'>{escape(said)}{change}</span>"
    body = f"<div style='position:relative;background:#eef0f4;padding:2px 0'>{''.join(rows)}{marks}</div>"
    return f"<div style='margin:6px 0'>{head}{body}</div>"


def _strip(value: float, top: float, colour: str, height: int) -> str:
    share = 100 * min(1.0, abs(value) / top) if math.isfinite(value) else 0.0
    return f"<div style='width:{share:.2f}%;height:{height}px;background:{colour};margin:1px 0'></div>"


def _mark(share: float, text: str) -> str:
    return (
        f"<div title='{escape(text)}' style='position:absolute;left:{100 * min(1.0, abs(share)):.2f}%;top:0;"
        f"bottom:0;width:2px;background:{LINE}'></div>"
    )


def frequency_line(frequencies: Mapping[int, float]) -> str:
    """Frequencies at the pose that is shown."""
    if not frequencies:
        return ""
    return "Modes here: " + ", ".join(f"{value:.2f}" for value in frequencies.values()) + " Hz"
