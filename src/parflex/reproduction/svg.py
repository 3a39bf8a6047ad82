"""Figures of the report as SVG inside the page: lines and text, coloured by the style of the page.

Colours are classes and not `style` attributes, which the content security policy forbids, so one figure serves light,
dark and paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

Array = np.ndarray
Curve = tuple[str, Array]
WIDTH = 860
LETTER = 6.4  # width of a letter at the size of the labels, for margins
MARKS = {"ok": "good", "fitted": "fit", "differs": "bad"}


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers in a range, about as many as requested."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / count
    step = 10.0 ** math.floor(math.log10(raw))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= raw)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def figure(height: float, title: str, text: str, parts: Sequence[str]) -> str:
    """A figure that a screen reader can read out: a title, a sentence, and the picture."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(text)}</desc>{''.join(parts)}</svg>"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line of a class."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def words(x: float, y: float, text: str, anchor: str = "start", kind: str = "label") -> str:
    """A label."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def dot(x: float, y: float, radius: float, kind: str, tooltip: str) -> str:
    """A point that says what it is when it is pointed at."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}"><title>{escape(tooltip)}</title></circle>'


class Axis:
    """A horizontal or vertical axis: values to places."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool = False) -> None:
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        value = math.log10(max(value, self.low)) if self.log else value
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, count: int = 6) -> list[float]:
        """Values that get a label."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            return [10.0**k for k in range(first, last + 1, max(1, (last - first) // count))]
        return ticks(self.low, self.high, count)

    def grid(self, top: float, bottom: float, count: int = 6) -> list[str]:
        """Vertical lines at the ticks of a horizontal axis, with their labels below."""
        parts = []
        for value in self.ticks(count):
            x = self.at(value)
            parts += [line(x, top, x, bottom, "grid"), words(x, bottom + 16, shown(value), "middle")]
        return parts


def shown(value: float) -> str:
    """A number as a label."""
    if value and (abs(value) < 1e-3 or abs(value) >= 1e5):
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.10g}" if abs(value) > 1e-12 else "0"


def comparison(title: str, unit: str, rows: Sequence[tuple[str, Sequence[tuple[float, float, float, str]]]]) -> str:
    """Published (rings) and computed (dots) values in rows; beside them differences in parts of their tolerances.

    A row is a name and (published, computed, tolerance, status) of its numbers.
    """
    entries = [entry for _, row in rows for entry in row]
    values = [value for published, computed, *_ in entries for value in (published, computed)]
    pad = 0.06 * (max(values) - min(values)) or 1.0
    left, top, step = 20 + LETTER * max(len(name) for name, _ in rows), 30.0, 24.0
    bottom = top + step * len(rows)
    value_axis = Axis(min(values) - pad, max(values) + pad, left, WIDTH * 0.62)
    share_axis = Axis(-1.15, 1.15, WIDTH * 0.68, WIDTH - 14)
    x = [share_axis.at(-1), share_axis.at(1)]
    parts = [f'<rect x="{x[0]:.1f}" y="{top}" width="{x[1] - x[0]:.1f}" height="{bottom - top:g}" class="band"/>']
    parts += [*value_axis.grid(top, bottom), words(left, 16, f"published (ring) and computed (dot), {unit}")]
    parts += [words(share_axis.start, 16, "difference / tolerance")]
    for value in (-1, 0, 1):
        parts += [line(share_axis.at(value), top, share_axis.at(value), bottom, "grid")]
        parts += [words(share_axis.at(value), bottom + 16, str(value), "middle")]
    for k, (name, row) in enumerate(rows):
        y = top + step * (k + 0.5)
        parts += [words(left - 10, y + 4, name, "end"), line(left, y, value_axis.end, y, "rule")]
        for published, computed, tolerance, status in row:
            tooltip = f"{name}: published {published:g}, computed {computed:.6g}"
            share = max(-1.15, min(1.15, (computed - published) / tolerance)) if tolerance else 0.0
            parts += [dot(value_axis.at(published), y, 6, "ring", tooltip)]
            parts += [dot(value_axis.at(computed), y, 2.6, "point", tooltip)]
            parts += [dot(share_axis.at(share), y, 3.6, MARKS.get(status, "point"), tooltip)]
    text = f"{len(entries)} numbers; the largest difference is {max(abs(c - p) for p, c, *_ in entries):.2g} {unit}."
    return figure(bottom + 24, title, text, parts)


def overview(rows: Sequence[tuple[str, Sequence[tuple[str, float, str]]]]) -> str:
    """All checks, in rows by paper: the difference in parts of the tolerance, on a logarithmic scale."""
    left, top, step = 20 + LETTER * max(len(name) for name, _ in rows), 34.0, 46.0
    bottom = top + step * len(rows)
    axis = Axis(1e-6, 3.0, left, WIDTH - 14, log=True)
    x = axis.at(1)
    parts = [f'<rect x="{left:.1f}" y="{top}" width="{x - left:.1f}" height="{bottom - top:g}" class="band"/>']
    parts += [*axis.grid(top, bottom), words(left, 18, "difference / tolerance; exact or smaller at the left edge")]
    for k, (name, checks) in enumerate(rows):
        y = top + step * (k + 0.5)
        parts += [words(left - 10, y + 4, name, "end"), line(left, y + step / 2, WIDTH - 14, y + step / 2, "rule")]
        for j, (tooltip, share, status) in enumerate(checks):
            up = ((j * 7) % 11 - 5) / 5 * (step / 2 - 7)  # spread, so that equal ones can be told apart
            parts.append(dot(axis.at(min(share, 2.9)), y + up, 3.4, MARKS.get(status, "point"), tooltip))
    count = sum(len(checks) for _, checks in rows)
    return figure(bottom + 26, "All checks at a glance", f"{count} numbers; those right of 1 differ.", parts)


def series(title: str, label: str, t: Array, curves: Sequence[Curve]) -> str:
    """Time series; more samples than the figure has columns are drawn as the band that they fill."""
    left, top, bottom = 62.0, 30.0, 210.0
    low = min(float(values.min()) for _, values in curves)
    high = max(float(values.max()) for _, values in curves)
    pad = 0.06 * (high - low) or 1.0
    across, up = Axis(float(t[0]), float(t[-1]), left, WIDTH - 14), Axis(low - pad, high + pad, bottom, top)
    parts = [*across.grid(top, bottom, 8), words(left, 18, label), words(WIDTH - 14, bottom + 32, "time (s)", "end")]
    for value in up.ticks(5):
        parts += [line(left, up.at(value), WIDTH - 14, up.at(value), "grid")]
        parts += [words(left - 8, up.at(value) + 4, shown(value), "end")]
    for k, (_, values) in enumerate(curves):
        steps = " ".join(f"{across.at(a):.1f},{up.at(b):.1f}" for a, b in zip(*thinned(t, values), strict=True))
        parts.append(f'<polyline points="{steps}" class="curve s{k + 1}"/>')
        parts += [_legend(k, curves)] if len(curves) > 1 else []
    return figure(bottom + 38, title, f"{label} over {t[-1]:g} s, from {low:.3g} to {high:.3g}.", parts)


def _legend(k: int, curves: Sequence[Curve]) -> str:
    """The name of a curve in its colour, in a line above the figure."""
    after = sum(LETTER * len(other) + 16 for other, _ in curves[k + 1 :])
    return words(WIDTH - 14 - after, 18, curves[k][0], "end", f"label t{k + 1}")


def below(title: str, label: str, names: Sequence[str], limit: float, curves: Sequence[Curve]) -> str:
    """Values over named steps, and the limit that they should stay below."""
    left, top, bottom = 62.0, 30.0, 210.0
    high = max(limit, *(float(values.max()) for _, values in curves))
    across, up = Axis(0, len(names) - 1, left + 30, WIDTH - 90), Axis(0, 1.1 * high, bottom, top)
    y = up.at(limit)
    parts = [
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{WIDTH - 14 - left:.1f}" height="{bottom - y:.1f}" class="band"/>'
    ]
    parts += [words(left, 18, label), line(left, y, WIDTH - 14, y, "limit")]
    for value in up.ticks(5):
        parts += [line(left, up.at(value), WIDTH - 14, up.at(value), "grid")]
        parts += [words(left - 8, up.at(value) + 4, shown(value), "end")]
    parts += [words(across.at(k), bottom + 18, name, "middle") for k, name in enumerate(names)]
    for k, (name, values) in enumerate(curves):
        places = [(across.at(j), up.at(value)) for j, value in enumerate(values)]
        steps = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline points="{steps}" class="curve s{k + 1}"/>')
        parts += [dot(a, b, 3.4, f"f{k + 1}", f"{name}: {values[j]:.4g}") for j, (a, b) in enumerate(places)]
        parts.append(_legend(k, curves))
    text = "; ".join(f"{name} from {values.min():.3g} to {values.max():.3g}" for name, values in curves)
    return figure(bottom + 26, title, f"{text}; the limit is {limit:g}.", parts)


def thinned(t: Array, values: Array, columns: int = 780) -> tuple[Array, Array]:
    """At most two samples a column, the lowest and the highest, in their order."""
    size = max(1, len(t) // columns)
    if size < 2:
        return t, values
    count = len(t) // size
    blocks = values[: count * size].reshape(count, size)
    ends = np.sort(np.stack([blocks.argmin(axis=1), blocks.argmax(axis=1)], axis=1), axis=1)
    indices = (ends + size * np.arange(count)[:, None]).ravel()
    indices = np.unique(np.concatenate([indices, [0, len(t) - 1]]))
    return t[indices], values[indices]


def bars(title: str, label: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, str]]]]) -> str:
    """Horizontal bars in groups, each beside the first of its group; an entry is (who, value, class of the bar)."""
    left = 24 + LETTER * max(len(who) for _, entries in groups for who, _, _ in entries)
    largest = max(value for _, entries in groups for _, value, _ in entries)
    axis = Axis(0, largest * 1.2, left, WIDTH - 14)
    y, parts = 30.0, [words(left, 16, label)]
    for name, entries in groups:
        parts.append(words(left, y + 13, name, "start", "label strong"))
        y += 20
        for who, value, kind in entries:
            wide = axis.at(value) - left
            parts.append(f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(wide, 1):.1f}" height="13" class="{kind}"/>')
            times = f" ({value / entries[0][1]:.2g} times)" if value != entries[0][1] else ""
            parts += [words(left - 8, y + 11, who, "end"), words(left + wide + 6, y + 11, f"{value:.4g}{times}")]
            y += 18
        y += 8
    text = "; ".join(f"{name}: " + ", ".join(f"{who} {value:.4g}" for who, value, _ in rows) for name, rows in groups)
    return figure(y + 4, title, text, parts)


def still(
    points: Array, shape: Array, edges: Array, fine: Sequence[bool], amplitude: float, view: Array, tooltip: str
) -> str:
    """A small picture of a mode: at rest, and deformed. Edges that are `fine` are those of a mesh."""
    flat = points @ view.T
    bent = (points + amplitude * shape) @ view.T
    both = np.concatenate([flat, bent])
    size = max(float(np.ptp(both, axis=0).max()), 1e-9)
    centre = (both.min(axis=0) + both.max(axis=0)) / 2

    thin = np.asarray(fine, dtype=bool)

    def path(places: Array, chosen: Array, kind: str) -> str:
        xy = 60 + (places - centre) / size * 104
        steps = "".join(f"M{xy[i, 0]:.1f} {120 - xy[i, 1]:.1f}L{xy[j, 0]:.1f} {120 - xy[j, 1]:.1f}" for i, j in chosen)
        return f'<path d="{steps}" class="{kind}"/>' if len(chosen) else ""

    drawn = path(flat, edges[~thin], "rest") + path(bent, edges[thin], "mesh") + path(bent, edges[~thin], "bent")
    return f'<svg viewBox="0 0 120 120" role="img"><title>{escape(tooltip)}</title>{drawn}</svg>'
