"""Figures of the report as SVG: published and computed numbers, limits, motions, other programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.reproduction.checks import Check
from parflex.reproduction.tables import Show
from parflex.view.style import INK, LINES, REST, drawing, legend_above, name_rows, svg_of, time_axis

COLOURS = {"ok": "#1a7f45", "fitted": LINES[4], "differs": "#c4231c", "not-reproducible": INK}
BAND = "#e6f1ea"
LEAST = 1e-6  # shares below are drawn at the edge: they are rounding
SPREAD = 11  # rows over which dots of one paper are spread


def overview(shares: Sequence[tuple[str, float, str]]) -> str:
    """Draw all checks in rows by paper: the difference relative to the tolerance, on a logarithmic scale."""
    papers = list(dict.fromkeys(paper for paper, *_ in shares))
    with drawing(None, 0.7 + 0.42 * len(papers)) as figure:
        panel = figure.subplots()
        panel.axvspan(LEAST / 2, 1.0, color=BAND, lw=0)
        for paper, row in zip(papers, name_rows(panel, papers), strict=True):
            for k, (_, share, status) in enumerate(entry for entry in shares if entry[0] == paper):
                y = row - 0.7 * ((7 * (k + 1) % SPREAD) / (SPREAD - 1) - 0.5)
                panel.plot(min(max(share, LEAST), 3.0), y, "o", ms=3.5, color=COLOURS[status], alpha=0.8, mew=0)
        panel.set_xscale("log")
        panel.set_xlim(LEAST / 2, 5.0)
        panel.set_xlabel("difference / tolerance (left edge: exact or smaller; right of 1: differs)")
        return svg_of(figure)


def _rows(checks: Sequence[Check]) -> dict[str, list[Check]]:
    """Return the checks that can be compared by the row of their table."""
    rows: dict[str, list[Check]] = {}
    for check in checks:
        if check.published is not None and check.computed is not None:
            rows.setdefault(check.row or check.name or check.group.title, []).append(check)
    return rows


def comparison(checks: Sequence[Check]) -> str:
    """Draw published values as rings and computed ones as dots; beside them differences relative to tolerances."""
    rows = _rows(checks)
    unit = f" ({checks[0].group.unit})" if checks[0].group.unit else ""
    with drawing(None, 0.8 + 0.24 * len(rows)) as figure:
        values, shares = figure.subplots(1, 2, sharey=True, width_ratios=[2.2, 1])
        shares.axvspan(-1, 1, color=BAND, lw=0)
        for y, row in zip(name_rows(values, list(rows)), rows.values(), strict=True):
            values.plot([c.published for c in row], [y] * len(row), "o", ms=7, mfc="none", mec=INK, mew=0.8)
            values.plot([c.computed for c in row], [y] * len(row), "o", ms=3, color=LINES[0])
            for c in row:
                share = float((c.difference or 0.0) / c.tolerance) if c.tolerance else 0.0
                shares.plot(np.clip(share, -1.3, 1.3), y, "o", ms=3.5, color=COLOURS[c.status])
        shares.grid(axis="y", visible=False)
        values.set_xlabel(f"published (ring), computed (dot){unit}")
        shares.set_xlim(-1.4, 1.4)
        shares.set_xlabel("difference / tolerance")
        return svg_of(figure)


def limits(checks: Sequence[Check]) -> str:
    """Draw values over named steps, and the limit that they keep."""
    with drawing(None, 2.6) as figure:
        panel = figure.subplots()
        rows = _rows(checks)
        for name, row in rows.items():
            panel.plot([c.name for c in row], [c.computed for c in row], "o-", ms=4, label=name)
        limit = float(checks[0].published or 0.0)
        panel.axhline(limit, color=COLOURS["ok"], ls="--", label=f"limit {limit:g}")
        panel.set_ylim(bottom=0)
        panel.set_ylabel(checks[0].group.unit or "ratio")
        legend_above(panel, len(rows) + 1)
        return svg_of(figure)


def series(show: Show, run: Any) -> str:
    """Draw time series of a motion, one panel for each of its labels."""
    with drawing(None, 0.5 + 1.6 * len(show.series)) as figure:
        panels = figure.subplots(len(show.series), 1, sharex=True, squeeze=False)[:, 0]
        for panel, (label, columns) in zip(panels, show.series.items(), strict=True):
            for name in columns:
                panel.plot(run.t, run[name], lw=0.9, label=name)
            panel.set_title(label)
            legend_above(panel, len(columns) if len(columns) < 3 else 9)  # beside the panel: the title is above
        time_axis(panels[-1], run.t)
        return svg_of(figure)


def bars(label: str, groups: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Draw horizontal bars in groups, ours first, each with its ratio to ours."""
    names = [name for _, entries in groups for name in ("", *(who for who, _ in entries))]
    with drawing(None, 0.6 + 0.24 * len(names)) as figure:
        panel = figure.subplots()
        rows = iter(name_rows(panel, names))
        for title, entries in groups:
            panel.text(0.0, next(rows), f" {title}", fontweight="bold", va="center")
            ours = entries[0][1]
            for k, ((_, value), y) in enumerate(zip(entries, rows, strict=False)):
                panel.barh(y, value, height=0.7, color=REST if k else LINES[0])
                times = f"  ({value / ours:.2g} times parflex)" if k else ""
                panel.text(value, y, f" {value:.4g}{times}", va="center")
        panel.set_xlim(right=1.35 * panel.dataLim.xmax)
        panel.set_xlabel(label)
        return svg_of(figure)
