"""Figures and report page of a calibration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.calibration.calibrate import Calibrated
from parflex.calibration.tolerance import STATIC, Tolerance
from parflex.io import write_generated
from parflex.view.fit_figure import draw_correlations
from parflex.view.html import card, embedded_figure, notes, page, table
from parflex.view.style import LINES, MEASURED, REST, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAD = ["number", "before", "value", "deviation", "95 % from", "to", "unit", "inflation"]
MILLI = {"m": (1e3, "mm"), "rad": (1e3, "mrad")}


def residual_sizes(found: Calibrated, residuals: dict[str, np.ndarray]) -> tuple[np.ndarray, str]:
    """Residual of each row, of several gauges the norm, and its unit; of lengths if there are any."""
    unit = "m" if any(gauge["unit"] == "m" for gauge in found.gauges.values()) else "rad"
    rows = np.array([residuals[name] for name, gauge in found.gauges.items() if gauge["unit"] == unit])
    values = rows[0] if len(rows) == 1 else np.sqrt(np.nansum(rows**2, axis=0))
    return values * MILLI[unit][0], MILLI[unit][1]


def draw_calibration(found: Calibrated, path: str | Path | None = None) -> Figure:
    """Residuals before and after the fit, over the places where they were measured."""
    spans = np.nan_to_num(np.ptp(found.places, axis=0))
    first, second = sorted(np.argsort(spans)[-2:].tolist())
    fitted = np.array([name not in found.held_out for name in found.rows])
    with drawing(path, 3.4) as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for panel, word, residuals in zip(
            panels, ("before", "after"), (found.residuals_before, found.residuals), strict=True
        ):
            values, unit = residual_sizes(found, residuals)
            most = float(np.nanmax(np.abs(values), initial=1e-300))
            signed = bool((values[np.isfinite(values)] < 0).any())
            for some, marker in ((fitted, "o"), (~fitted, "s")):
                points = panel.scatter(
                    found.places[some, first] * 1e3, found.places[some, second] * 1e3, c=values[some], s=42,
                    marker=marker, cmap="RdBu_r" if signed else "viridis", vmin=-most if signed else 0.0, vmax=most,
                    edgecolors=MEASURED, linewidths=0.4,
                )  # fmt: skip
            rms = found.rms_before if word == "before" else found.rms_after
            panel.set_title(f"{word}: rms {rms * 1e3:.3g} {unit}")
            panel.set_xlabel(f"{'xyz'[first]} (mm)")
            panel.set_aspect("equal")
            figure.colorbar(points, ax=panel, shrink=0.7, label=f"residual ({unit})")
        panels[0].set_ylabel(f"{'xyz'[second]} (mm)")
    return figure


def draw_calibrated(found: Calibrated, path: str | Path | None = None) -> Figure:
    """Changes of the numbers with their 95 % intervals, over the widths of these."""
    places = np.arange(len(found.parameters))[::-1]
    with drawing(path, 1.3 + 0.24 * len(places)) as figure:
        plot = figure.subplots()
        for place, item in zip(places, found.parameters.values(), strict=True):
            if item.deviation:
                change = (item.value - item.before) / item.deviation
                plot.barh(place, change, height=0.5, color=LINES[0], alpha=0.75)
                plot.plot([change - 1.96, change + 1.96], [place, place], color=MEASURED, lw=1.2)
            else:
                plot.annotate("not determined", (0.0, place), (4, -3), textcoords="offset points", color=LINES[1],
                              fontsize=8)  # fmt: skip
        plot.axvline(0.0, color=REST, lw=1.0)
        plot.set_yticks(places, list(found.parameters))
        plot.set_xlabel("change over its standard deviation, with 95 % intervals")
        plot.grid(visible=False, axis="y")
    return figure


def draw_tolerance(found: Tolerance, path: str | Path | None = None) -> Figure:
    """Error of a frame by number of the robot file; of a map also over the poses."""
    turns = found.total["position"] < STATIC
    word, scale, unit = ("rotation", 1e3, "mrad") if turns else ("position", 1e6, "um")
    names = sorted(found.contributions, key=lambda name: found.contributions[name][word])
    axes = [name for name in (found.poses[0] if found.poses else {}) if name not in ("position", "rotation")]
    varied = [name for name in axes if len({pose[name] for pose in found.poses}) > 1]
    with drawing(path, max(2.4, 1.2 + 0.22 * len(names))) as figure:
        panels = figure.subplots(1, 2 if len(varied) > 1 else 1, squeeze=False)[0]
        panels[0].barh(names, [found.contributions[name][word] * scale for name in names], color=LINES[0])
        panels[0].axvline(found.total[word] * scale, color=LINES[1], lw=1.2)
        panels[0].set_title(f"total {found.total[word] * scale:.3g} {unit} (line)")
        panels[0].set_xlabel(f"{word} error ({unit})")
        panels[0].grid(visible=False, axis="y")
        if len(varied) > 1:
            x, y, values = (np.array([pose[name] for pose in found.poses]) for name in (*varied[:2], word))
            points = panels[1].scatter(x, y, c=values * scale, s=30, cmap="viridis")
            panels[1].set_xlabel(varied[0])
            panels[1].set_ylabel(varied[1])
            figure.colorbar(points, ax=panels[1], label=f"{word} error ({unit})")
    return figure


def calibration_page(found: Calibrated) -> str:
    """The text of the page; everything is in it."""
    numbers: list[list[Any]] = []
    for name, item in found.parameters.items():
        known = ["not determined", "", ""] if item.interval is None else [item.deviation, *item.interval]
        inflation = "" if item.inflation is None else item.inflation
        numbers.append([name, item.before, item.value, *known, item.unit, inflation])
    summary = [("rows", len(found.rows)), ("rows held out", len(found.held_out)), *found.figures]
    gauges = [[name, item["before"], item["after"], item["unit"]] for name, item in found.gauges.items()]
    lost = [[name, weight, k + 1] for k, item in enumerate(found.undetermined) for name, weight in item.items()]
    parts = [
        card("Result", table(summary)),
        notes(found.warnings),
        card("Residuals", embedded_figure(draw_calibration(found), "residuals before and after")),
        card("Numbers", table(numbers, HEAD), embedded_figure(draw_calibrated(found), "changes of the numbers")),
        card("Root mean squares by measurement", table(gauges, ["measurement", "before", "after", "unit"])),
    ]
    if lost:
        parts.append(card("Combinations that are not determined", table(lost, ["number", "weight", "combination"])))
    if len(found.parameters) > 1:
        parts.append(card("Correlation", embedded_figure(draw_correlations(found), "correlation of the numbers")))
    return page(f"{found.robot}: calibration", *parts)


def write_calibration(folder: str | Path, found: Calibrated) -> Path:
    """Write the page into a folder; files of others are not replaced."""
    return write_generated(folder, {"index.html": calibration_page(found)})[0]
